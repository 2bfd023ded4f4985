"""Compare two sheets, section by section: by name and key, never by row."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from sheetgen.sheet.wording import month_as_budgeted
from sheetgen.workbook import facts
from sheetgen.workbook.cells import is_number

SECTIONS = {
    "recommendation": "Recommendation at the headline", "load": "Load", "inputs": "Inputs", "prices": "Prices",
    "models": "Models", "gpus": "GPUs", "precisions": "Precisions", "results": "Results of every load",
    "what_if": "What-if and its cases",
}  # fmt: skip
TABLES = {"models": "facts of models", "gpus": "facts of GPUs", "precisions": "precisions"}
OF_ENGINE = "n_params"  # columns whose heads are the ends of one phrase: parameters active, in layers ...


@dataclass(frozen=True)
class Change:
    """One thing that changed. `name` is for programs, `words` for people; `more` has its figures."""

    name: str
    label: str
    words: str
    before: Any = None
    after: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.label}: {self.words}"

    def data(self) -> dict[str, Any]:
        """The change as JSON has it."""
        values = {"before": _plain(self.before), "after": _plain(self.after)}
        return {"name": self.name, "label": self.label, **values, **_plain(self.more), "words": str(self)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value.isoformat()[:10] if isinstance(value, (datetime.date, datetime.datetime)) else value


@dataclass(frozen=True)
class Comparison:
    """All that changed, by section, and what one of the files does not say."""

    a: facts.SheetFacts
    b: facts.SheetFacts
    pairing: facts.Pairing
    sections: Mapping[str, tuple[Change, ...]]
    not_compared: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """Whether nothing changed, as far as both files say."""
        return not any(self.sections.values())


def compare(a: facts.SheetFacts, b: facts.SheetFacts) -> Comparison:
    """What changed from sheet `a` to sheet `b`."""
    pairing = facts.pair(a, b)
    a, b = _named_as(a, b, dict(pairing.workloads)), _named_as(b, a, {y: x for x, y in pairing.workloads})
    found: dict[str, Iterable[Change]] = {
        "recommendation": _answer_changes(a, b, headline_loads(a, b, pairing)), "load": _load_changes(a, b, pairing),
        "inputs": _input_changes(a, b, pairing), "prices": _price_changes(a, b),
        **{table: _table_changes(a, b, table) for table in TABLES}, "results": _answer_changes(a, b, pairing.loads()),
        "what_if": _other_result_changes(a, b),
    }  # fmt: skip
    return Comparison(a, b, pairing, {s: tuple(found[s]) for s in SECTIONS}, tuple(_not_compared(a, b, pairing)))


def _named_as(one: facts.SheetFacts, other: facts.SheetFacts, workloads: Mapping[str, str]) -> facts.SheetFacts:
    """`one` in the words of `other`, where that is a workbook and `one` is JSON, which has ids alone."""
    if one.kind == other.kind or one.kind == "workbook":
        return one
    named = {
        key: replace(w, name=other.workloads[workloads[key]].name) if key in workloads else w
        for key, w in one.workloads.items()
    }
    return replace(one, workloads=named, models={m: other.models.get(m, m) for m in one.models})


def _not_compared(a: facts.SheetFacts, b: facts.SheetFacts, pairing: facts.Pairing) -> Iterator[str]:
    for table, what in TABLES.items():
        columns = [{c for row in x.tables.get(table, {}).values() for c in row} for x in (a, b)]
        if any(columns) and not columns[0] & columns[1]:
            yield f"{what}: the JSON does not carry them"
    if a.classes != b.classes and "JSON" in (a.kind, b.kind):
        yield f"prices of {', '.join(sorted(a.classes ^ b.classes))}: only one of the files has them"
    for x in (a, b):
        if not x.is_calculated:
            yield f"results: {x.path} was saved without them. Open it in Excel or LibreOffice and save it once"
    if not pairing.loads():
        yield "results: the two have no load in common"


def _changed(
    name: str, label: str, before: Any, after: Any, unit: str = "", more: Mapping[str, Any] | None = None
) -> Iterator[Change]:
    """A value that both have, where it differs."""
    if not facts.same(before, after):
        figures = {**(more or {}), "change_fraction": change_fraction(before, after)}
        yield Change(name, label, from_to(before, after, unit=unit), before, after, figures)


def _load_changes(a: facts.SheetFacts, b: facts.SheetFacts, pairing: facts.Pairing) -> Iterator[Change]:
    """Models, workloads and tiers: what the hardware has to hold."""
    for change in _lists("model", a.models, b.models, {**a.models, **b.models}):
        answer = b.answers.get((change.after, *b.headline)) if change.after and b.headline else None
        yield replace(change, words=f"added, {answer_words(answer)} at the headline") if answer else change
    paired_a, paired_b = dict(pairing.workloads), {x for _, x in pairing.workloads}
    alone = [k for k in a.workloads if k not in paired_a], [k for k in b.workloads if k not in paired_b]
    yield from _lists("workload", *alone, {k: w.name for side in (a, b) for k, w in side.workloads.items()})
    for wa, wb in pairing.workloads:
        before, after = a.workloads[wa], b.workloads[wb]
        lengths = (before.context_tokens, after.context_tokens), (before.output_tokens, after.output_tokens)
        yield from _changed(f"context_{wb}", f"context of {after.name}", *lengths[0], "tokens")
        yield from _changed(f"output_{wb}", f"answer of {after.name}", *lengths[1], "tokens")
    for ta, tb in pairing.tiers:
        yield from _changed(f"tier_{tb}", f"in flight, tier {tb}", a.tiers[ta - 1], b.tiers[tb - 1])
    paired = {ta for ta, _ in pairing.tiers}, {tb for _, tb in pairing.tiers}
    for side, word, at in ((a, "removed", 0), (b, "added", 1)):
        for i in (i for i, _ in enumerate(side.tiers, 1) if i not in paired[at]):
            requests = side.tiers[i - 1]
            values = {"before": requests} if side is a else {"after": requests}
            yield Change(f"tier_{i}", f"in flight, tier {i}", f"{shown_value(requests)} {word}", **values)
    if a.headline and b.headline and pairing.in_a(*b.headline) != a.headline:
        before_load, after_load = facts.load_words(a, *a.headline), facts.load_words(b, *b.headline)
        yield Change("headline", "headline", f"{before_load}{ARROW}{after_load}", before_load, after_load)


def _lists(what: str, before: Collection[str], after: Collection[str], names: Mapping[str, str]) -> Iterator[Change]:
    for key in (k for k in before if k not in after):
        yield Change(f"{what}_{key}", f"{what} {names.get(key, key)}", "removed", before=key)
    for key in (k for k in after if k not in before):
        yield Change(f"{what}_{key}", f"{what} {names.get(key, key)}", "added", after=key)


def _input_changes(a: facts.SheetFacts, b: facts.SheetFacts, pairing: facts.Pairing) -> Iterator[Change]:
    """Inputs that both have; one that only one has is reported where both files are of one kind."""
    alone = {f"{figure}_{w}" for figure in ("tpot_ms", "ttft_ms") for w in (*a.workloads, *b.workloads)
             if (w, w) not in pairing.workloads}  # fmt: skip
    mixed = a.kind != b.kind
    for name in dict.fromkeys((*b.settings, *a.settings)):
        before, after = a.settings.get(name), b.settings.get(name)
        if name in alone:
            continue
        if before and after:
            if not facts.same(before.value, after.value) and not (mixed and before.built_with):
                label = (after.label if b.kind == "workbook" else before.label) or name
                more = {"change_fraction": change_fraction(before.value, after.value)}
                yield Change(name, label, setting_change(before, after), before.value, after.value, more)
        elif (one := after or before) and not mixed:
            word = "added" if before is None else "removed"
            yield Change(name, one.label or name, f"{word}, {shown_value(one.value, one.shown_as)}",
                         before and before.value, after and after.value)  # fmt: skip


def _table_changes(a: facts.SheetFacts, b: facts.SheetFacts, table: str) -> Iterator[Change]:
    """Cells of rows and columns that both have, and rows that one has."""
    rows_a, rows_b = a.tables.get(table, {}), b.tables.get(table, {})
    if not rows_a or not rows_b:
        return
    names = {**a.names.get(table, {}), **b.names.get(table, {})}
    heads = {**a.heads.get(table, {}), **b.heads.get(table, {})}
    loads = {**a.models, **b.models} if table == "models" else {}
    for key in dict.fromkeys((*rows_b, *rows_a)):
        label = names.get(key) or key
        if key in rows_a and key in rows_b:
            for column in (c for c in rows_b[key] if c in rows_a[key]):
                head = f"{label}, {_head(column, heads.get(column, ''))}"
                more = {"row": key, "column": column}
                yield from _changed(f"{key}.{column}", head, rows_a[key][column], rows_b[key][column], more=more)
        elif key not in loads:  # those of a load are reported there
            word = "added" if key in rows_b else "removed"
            yield Change(key, label, word, key if key in rows_a else None, key if key in rows_b else None)


def _head(column: str, head: str) -> str:
    if not head:
        return column.replace("_", " ")
    return f"parameters {head}" if column.startswith(OF_ENGINE) and head[0].islower() else head


def _price_changes(a: facts.SheetFacts, b: facts.SheetFacts) -> Iterator[Change]:
    """Instances and their prices, those of the purchase class in use first; JSON has that class alone."""
    compared = a.classes & b.classes if "JSON" in (a.kind, b.kind) else a.classes | b.classes
    for key in dict.fromkeys((*b.offers, *a.offers)):
        before, after = a.offers.get(key), b.offers.get(key)
        if before and after:
            pairs = ("gpu", "GPU", before.gpu, after.gpu), ("gpu_count", "GPUs", before.gpu_count, after.gpu_count)
            for what, label, old, new in pairs:
                if not facts.same(old, new):
                    yield Change(f"{key}.{what}", f"{key}, {label}", from_to(old, new), old, new, {"instance": key})
            for purchase in sorted(compared, key=lambda p: (p != b.purchase, p)):
                yield from _price(key, before, after, purchase, b.purchase)
        elif one := after or before:
            yield _instance(key, one, b.purchase if after else a.purchase, "added" if after else "removed")


def _instance(key: str, offer: facts.Offer, purchase: str, word: str) -> Change:
    """An instance that one sheet alone has."""
    price = offer.prices.get(purchase)
    money = f", ${price.usd_per_hour:,.2f} an hour" if price else ""
    gpus = f" ({shown_value(offer.gpu_count)}x {offer.gpu})" if offer.gpu else ""
    figures = {"instance": key, "purchase": purchase, "what": word}
    return Change(key, key, f"{word}{gpus}{money}", *_one_side(price and price.usd_per_hour, word), figures)


def _one_side(value: Any, word: str) -> tuple[Any, Any]:
    return (None, value) if word == "added" else (value, None)


def _price(key: str, before: facts.Offer, after: facts.Offer, purchase: str, usual: str) -> Iterator[Change]:
    old, new = before.prices.get(purchase), after.prices.get(purchase)
    name, label = f"{key}.{purchase}", key if purchase == usual else f"{key}, {purchase}"
    figures: dict[str, Any] = {"instance": key, "purchase": purchase}
    if old and new:
        a, b = old.usd_per_hour, new.usd_per_hour
        if not facts.same(a, b) or old.date != new.date:
            figures |= {"what": "date" if facts.same(a, b) else "price", "change_fraction": change_fraction(a, b),
                        "before_date": old.date, "after_date": new.date}  # fmt: skip
            yield Change(name, label, price_change(old, new), a, b, figures)
    elif one := new or old:
        word = "added" if new else "removed"
        words = f"price {word}, ${one.usd_per_hour:,.2f} an hour"
        yield Change(name, label, words, *_one_side(one.usd_per_hour, word), {**figures, "what": word})


def _answers_differ(before: facts.Answer, after: facts.Answer) -> bool:
    plain = all(facts.same(getattr(before, n), getattr(after, n)) for n in ("instance", "n_instances", "monthly_usd"))
    alike = all(facts.same(v, after.more[k]) for k, v in before.more.items() if k in after.more)
    return not (plain and alike and (before.instance is not None or before.verdict == after.verdict))


def _answer(a: facts.SheetFacts, b: facts.SheetFacts, la: facts.LoadKey, lb: facts.LoadKey) -> Change:
    before, after = a.answers[la], b.answers[lb]
    load = facts.load_words(b, *lb[1:])
    requests = a.tiers[la[2] - 1], b.tiers[lb[2] - 1]
    if not facts.same(*requests):
        load = f"{b.workloads[lb[1]].name} at {shown_value(requests[0])}{ARROW}{shown_value(requests[1])}"
    moved = {
        k: [v, after.more[k]] for k, v in before.more.items() if k in after.more and not facts.same(v, after.more[k])
    }
    also = [f"{facts.MORE_OF_ANSWER.get(k, k)} {ARROW.join(map(shown_value, v))}" for k, v in moved.items()]
    words = answer_change(before, after) + (f"; {', '.join(also)}" if also else "")
    usd = before.monthly_usd, after.monthly_usd
    figures = {"model": lb[0], "workload": lb[1], "tier": list(requests), "also": moved,
               "change_usd": None if usd[0] is None or usd[1] is None else usd[1] - usd[0]}  # fmt: skip
    label = f"{facts.model_name(lb[0], a, b)}, {load}"
    return Change(f"{lb[0]}.{lb[1]}.{lb[2]}", label, words, _record(before), _record(after), figures)


def _record(answer: facts.Answer) -> dict[str, Any]:
    return {"instance": answer.instance, "n_instances": answer.n_instances, "monthly_usd": answer.monthly_usd,
            "words": hardware(answer)}  # fmt: skip


def headline_loads(
    a: facts.SheetFacts, b: facts.SheetFacts, pairing: facts.Pairing
) -> list[tuple[facts.LoadKey, facts.LoadKey]]:
    """The load at the top of B's sheet, per model, and the same load on A."""
    headline = b.headline
    if headline is None and a.headline is not None:  # B's tier was changed under its headline
        both = ((x, y) for x in pairing.workloads for y in pairing.tiers)
        headline = next(((x[1], y[1]) for x, y in both if (x[0], y[0]) == a.headline), None)
    before = pairing.in_a(*headline) if headline else None
    return [((m, *before), (m, *headline)) for m in pairing.models] if headline and before else []


def _answer_changes(
    a: facts.SheetFacts, b: facts.SheetFacts, loads: Sequence[tuple[facts.LoadKey, facts.LoadKey]]
) -> Iterator[Change]:
    """The loads of both sheets that are answered otherwise."""
    if a.is_calculated and b.is_calculated:
        both = ((la, lb) for la, lb in loads if la in a.answers and lb in b.answers)
        yield from (_answer(a, b, la, lb) for la, lb in both if _answers_differ(a.answers[la], b.answers[lb]))


def _other_result_changes(a: facts.SheetFacts, b: facts.SheetFacts) -> Iterator[Change]:
    """The results beside those of loads: of What-if and its cases."""
    if not (a.is_calculated and b.is_calculated):
        return
    labels = [one.label for one in b.other_results.values()]
    for name, after in b.other_results.items():
        before = a.other_results.get(name)
        if before is not None and not facts.same(before.value, after.value):
            before, after = (replace(v, value="none") if v.value == "-" else v for v in (before, after))
            plain = name.replace("_", " ")
            label = f"{after.label} ({plain})" if labels.count(after.label) > 1 else after.label or plain
            words = usd_or_none(before.value, after.value) if name.endswith("_usd") else setting_change(before, after)
            yield Change(name, label, words, before.value, after.value)


ARROW = " -> "


def shown_value(value: Any, shown_as: str = "number") -> str:
    """A value as a person writes it; `blank` for an empty cell."""
    if value is None:
        return "blank"
    if hasattr(value, "isoformat"):
        return str(value.isoformat()[:10])
    if not is_number(value):
        return str(value)
    if shown_as == "percent":
        return f"{_digits(value * 100)} %"
    return _digits(value)


def _digits(value: float) -> str:
    """Up to ten digits, all of a whole number, and never an exponent."""
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{Decimal(f'{value:.10g}'):,f}"


def from_to(before: Any, after: Any, shown_as: str = "number", unit: str = "") -> str:
    """`32 -> 64 (+100 %)`."""
    texts = [shown_value(v, shown_as) for v in (before, after)]
    if texts[0] == texts[1]:  # they differ in a digit that is not shown, or a text looks like a number
        texts = [repr(v) for v in (before, after)]
    grown = "" if shown_as == "percent" else growth(before, after)
    unit = f" {unit}" if unit and isinstance(after, (int, float)) else ""
    return f"{texts[0]}{ARROW}{texts[1]}{unit}{grown}"


def change_fraction(before: Any, after: Any) -> float | None:
    """By what share a number grew; None where that says nothing."""
    return (after - before) / abs(before) if is_number(before) and is_number(after) and before else None


def growth(before: Any, after: Any) -> str:
    """` (+100 %)`, or nothing where there is no share to give."""
    share = change_fraction(before, after)
    if share is None:
        return ""
    percent = 100 * share
    return f" ({percent:+,.0f} %)" if abs(percent) >= 0.5 else f" ({'+' if percent > 0 else '-'}<0.5 %)"


def usd(amount: float) -> str:
    """`$40,179`."""
    return f"{'-' if amount < 0 else ''}${abs(amount):,.0f}"


def usd_change(before: float, after: float, decimals: int = 0) -> str:
    """`$40,179 -> $80,358`; as many decimals as tell the two apart."""
    for n in (n for n in (0, 2, 4, 8) if n >= decimals):
        texts = [f"${v:,.{n}f}" for v in (before, after)]
        if texts[0] != texts[1]:
            break
    return ARROW.join(texts)


def usd_or_none(before: Any, after: Any) -> str:
    """The change of a cell of dollars, which holds a sign where there are none: `$5,095 -> none`."""
    if all(isinstance(v, (int, float)) for v in (before, after)):
        return usd_change(before, after) + growth(before, after)
    return ARROW.join(usd(v) if isinstance(v, (int, float)) else "none" for v in (before, after))


def signed_usd(amount: float) -> str:
    """`+$40,179`."""
    for decimals in (0, 2, 4):
        text = f"{abs(amount):,.{decimals}f}"
        if float(text.replace(",", "")):
            break
    return f"{'-' if amount < 0 else '+'}${text}"


def price_change(before: facts.Price, after: facts.Price) -> str:
    """`$55.04 -> $49.00 an hour (-11 %), price of 2026-07-20 -> 2026-11-01`."""
    a, b = before.usd_per_hour, after.usd_per_hour
    days = [one.date.isoformat() if one.date else "no date" for one in (before, after)]
    dates = f", price of {ARROW.join(days)}" if before.date != after.date else ""
    if f"{a:.8f}" == f"{b:.8f}":
        return f"still ${b:,.2f} an hour{dates}"
    return f"{usd_change(a, b, 2)} an hour{growth(a, b)}{dates}"


def hardware(answer: facts.Answer) -> str:
    """`2x aws/p5.48xlarge`, or why there is none."""
    return f"{shown_value(answer.n_instances)}x {answer.instance}" if answer.instance else answer.verdict or "no answer"


def answer_words(answer: facts.Answer) -> str:
    """`2x aws/p5.48xlarge, $80,358 a month`."""
    return hardware(answer) + (f", {usd(answer.monthly_usd)} a month" if answer.monthly_usd is not None else "")


def answer_change(before: facts.Answer, after: facts.Answer) -> str:
    """`1x aws/p5.48xlarge -> 2x aws/p5.48xlarge, $40,179 -> $80,358 a month (+$40,179)`."""
    a, b = hardware(before), hardware(after)
    rented = a if a == b else f"{a}{ARROW}{b}"
    if before.monthly_usd is None and after.monthly_usd is None:
        return rented
    if before.monthly_usd is None or after.monthly_usd is None:
        money = [usd(v) if v is not None else "none" for v in (before.monthly_usd, after.monthly_usd)]
        return f"{rented}, {ARROW.join(money)} a month"
    if before.monthly_usd == after.monthly_usd:
        return f"{rented}, {usd(after.monthly_usd)} a month as before"
    money_words = usd_change(before.monthly_usd, after.monthly_usd)
    return f"{rented}, {money_words} a month ({signed_usd(after.monthly_usd - before.monthly_usd)})"


def setting_change(before: facts.Setting, after: facts.Setting) -> str:
    """`90 % -> 95 %`, as either sheet shows it."""
    shown_as = "percent" if "percent" in (before.shown_as, after.shown_as) else after.shown_as
    if before.built_with or after.built_with:
        return f"{before.value or 'default'}{ARROW}{after.value or 'default'}"
    return from_to(before.value, after.value, shown_as)


def budget_words(side: facts.SheetFacts, amount: float | None) -> str:
    """`EUR 40,554, with 10% contingency (1 USD = 0.92 EUR)`; nothing where the sheet's totals are plain dollars, or
    where what was typed for them is no currency, rate or share."""
    usual = {"currency": "USD", "fx_rate": 1, "contingency_fraction": 0}
    code, rate, share = (side.settings[n].value if n in side.settings else v for n, v in usual.items())
    if amount is None or not code or not isinstance(rate, (int, float)) or not isinstance(share, (int, float)):
        return ""
    return month_as_budgeted(amount, str(code), rate, share)
