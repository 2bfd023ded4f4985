"""Compare two sheets, section by section: by name and key, never by row; and the words for values and their changes.

Texts of a file stay as they are: whoever prints them escapes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypedDict

from sheetgen.answer.solution import short_tokens
from sheetgen.question.discounts import CELL
from sheetgen.question.inputs import BY_WORKLOAD
from sheetgen.question.parse import Raw, plain
from sheetgen.readback import compared_facts
from sheetgen.readback.compared_facts import Answer, LoadKey, Pairing, Price, Setting, SheetFacts, same
from sheetgen.readback.file_cells import is_number
from sheetgen.report.wording import month_as_budgeted
from sheetgen.units import USD

SECTIONS = {
    "recommendation": "Recommendation at the headline", "load": "Load", "inputs": "Inputs", "prices": "Prices",
    "models": "Models", "gpus": "GPUs", "precisions": "Precisions", "results": "Results of all loads",
    "decision": "Decision and its cases",
}  # fmt: skip
TABLES = {"models": "facts of models", "gpus": "facts of GPUs", "precisions": "precisions"}
OF_ENGINE = "n_params"  # columns whose heads are the ends of one phrase: parameters active, in layers ...
ARROW = " -> "


class WhatChanged(TypedDict):
    """The keys that every change has."""

    name: str
    label: str
    before: Raw
    after: Raw
    words: str


class ChangeRecord(WhatChanged, total=False):
    """One thing that changed, with its figures and its place where it has some."""

    change_fraction: float | None
    change_usd: float | None
    model: str
    workload: str
    tier: int | list[int] | None
    instance: str
    purchase: str
    what: str
    before_date: str | None
    after_date: str | None
    row: str
    column: str
    also: Raw


class ComparedRecord(TypedDict):
    """One of the two sheets: its file, its kind, and what it was made with."""

    file: str
    kind: str
    as_of: str | None
    version: str | None
    catalog_sha256: str


@dataclass(frozen=True)
class Change:
    """One thing that changed. `name` is for programs, `words` for people; `more` has its figures."""

    name: str
    label: str
    words: str
    before: Raw = None
    after: Raw = None
    more: Mapping[str, Raw] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.label}: {self.words}"

    def data(self) -> dict[str, Raw]:
        """The change as JSON has it."""
        values = {"name": self.name, "label": self.label, "before": self.before, "after": self.after, **self.more}
        return {**plain(values), "words": str(self)}


@dataclass(frozen=True)
class Comparison:
    """Everything that changed, by section, and what one of the files does not say."""

    a: SheetFacts
    b: SheetFacts
    pairing: Pairing
    sections: Mapping[str, tuple[Change, ...]]
    not_compared: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """True where nothing differs, as far as both files say."""
        return not any(self.sections.values())


def compare(a: SheetFacts, b: SheetFacts) -> Comparison:
    """The changes from sheet `a` to sheet `b`."""
    pairing = compared_facts.pair(a, b)
    a, b = _named_as(a, b, dict(pairing.workloads)), _named_as(b, a, {y: x for x, y in pairing.workloads})
    sections: dict[str, Iterable[Change]] = {
        "recommendation": _answer_changes(a, b, headline_loads(a, b, pairing)),
        "load": _load_changes(a, b, pairing),
        "inputs": _input_changes(a, b, pairing),
        "prices": _price_changes(a, b),
        **{table: _table_changes(a, b, table) for table in TABLES},
        "results": _answer_changes(a, b, pairing.loads()),
        "decision": _other_result_changes(a, b),
    }
    return Comparison(a, b, pairing, {s: tuple(sections[s]) for s in SECTIONS}, tuple(_not_compared(a, b, pairing)))


def _named_as(facts: SheetFacts, other: SheetFacts, workloads: Mapping[str, str]) -> SheetFacts:
    """`facts` with the names of `other`, where that is a workbook and `facts` come from JSON, which has only ids."""
    if facts.kind == other.kind or facts.kind == "workbook":
        return facts
    named = {
        key: replace(w, name=other.workloads[workloads[key]].name) if key in workloads else w
        for key, w in facts.workloads.items()
    }
    return replace(facts, workloads=named, models={m: other.models.get(m, m) for m in facts.models})


def _not_compared(a: SheetFacts, b: SheetFacts, pairing: Pairing) -> Iterator[str]:
    for table, rows in TABLES.items():
        columns = [{c for row in x.tables.get(table, {}).values() for c in row} for x in (a, b)]
        if any(columns) and not columns[0] & columns[1]:
            yield f"{rows}: the JSON does not carry them"
    if a.classes != b.classes and "JSON" in (a.kind, b.kind):
        yield f"prices of {', '.join(sorted(a.classes ^ b.classes))}: only one of the files has them"
    if not pairing.loads():
        yield "results: the two have no load in common"


def _compare(name: str, label: str, before: Raw, after: Raw, unit: str = "", **more: Raw) -> Iterator[Change]:
    """The change of a value that both sheets have; nothing where it is the same."""
    if not same(before, after):
        figures = {**more, "change_fraction": change_fraction(before, after)}
        yield Change(name, label, from_to(before, after, unit=unit), before, after, figures)


def _one_sided(name: str, label: str, words: str, value: Raw, is_added: bool, **more: Raw) -> Change:
    """The change of a value that only one of the sheets has: it was added or removed."""
    return Change(name, label, words, None if is_added else value, value if is_added else None, more)


def _load_changes(a: SheetFacts, b: SheetFacts, pairing: Pairing) -> Iterator[Change]:
    """Models, workloads and tiers: what the hardware has to hold."""
    for change in _lists("model", a.models, b.models, {**a.models, **b.models}):
        answer = b.answers.get((change.after, *b.headline)) if change.after and b.headline else None
        if answer:
            month = "" if answer.monthly_usd is None else f", {usd(answer.monthly_usd)} a month"
            change = replace(change, words=f"added, {hardware(answer)}{month} at the headline")
        yield change
    paired_a, paired_b = dict(pairing.workloads), {x for _, x in pairing.workloads}
    alone = [k for k in a.workloads if k not in paired_a], [k for k in b.workloads if k not in paired_b]
    yield from _lists("workload", *alone, {k: w.name for side in (a, b) for k, w in side.workloads.items()})
    for wa, wb in pairing.workloads:
        was, now = a.workloads[wa], b.workloads[wb]
        yield from _compare(f"context_{wb}", f"context of {now.name}", was.context_tokens, now.context_tokens, "tokens")
        yield from _compare(f"output_{wb}", f"answer of {now.name}", was.output_tokens, now.output_tokens, "tokens")
    for ta, tb in pairing.tiers:
        yield from _compare(f"tier_{tb}", f"at once, tier {tb}", a.tiers[ta - 1], b.tiers[tb - 1])
    for of_side, (side, word) in enumerate(((a, "removed"), (b, "added"))):
        paired = {tiers[of_side] for tiers in pairing.tiers}
        for i, requests in enumerate(side.tiers, 1):
            if i not in paired:
                words = f"{shown_value(requests)} {word}"
                yield _one_sided(f"tier_{i}", f"at once, tier {i}", words, requests, side is b)
    if a.headline and b.headline and pairing.in_a(*b.headline) != a.headline:
        before, after = compared_facts.load_words(a, *a.headline), compared_facts.load_words(b, *b.headline)
        yield Change("headline", "headline", f"{before}{ARROW}{after}", before, after)


def _lists(kind: str, before: Collection[str], after: Collection[str], names: Mapping[str, str]) -> Iterator[Change]:
    for word, keys, others in (("removed", before, after), ("added", after, before)):
        for key in (k for k in keys if k not in others):
            yield _one_sided(f"{kind}_{key}", f"{kind} {names.get(key, key)}", word, key, word == "added")


def _input_changes(a: SheetFacts, b: SheetFacts, pairing: Pairing) -> Iterator[Change]:
    """Changes of inputs that both have; one that only one has is reported where both files are of one kind."""
    alone = {
        f"{figure}_{w}"
        for figure in BY_WORKLOAD
        for w in (*a.workloads, *b.workloads)
        if (w, w) not in pairing.workloads
    }
    mixed = a.kind != b.kind
    for name in (n for n in dict.fromkeys((*b.settings, *a.settings)) if n not in alone):
        before, after = a.settings.get(name), b.settings.get(name)
        if before and after:
            if not same(before.value, after.value) and not (mixed and before.built_with):
                label = (after.label if b.kind == "workbook" else before.label) or name
                more = {"change_fraction": change_fraction(before.value, after.value)}
                yield Change(name, label, setting_change(before, after), before.value, after.value, more)
        elif (only := after or before) and (not mixed or name.startswith(CELL)):  # a value that is not stated is none
            words = f"{'removed' if before else 'added'}, {shown_value(only.value, only.shown_as)}"
            yield _one_sided(name, only.label or name, words, only.value, before is None)


def _table_changes(a: SheetFacts, b: SheetFacts, table: str) -> Iterator[Change]:
    """Changes of cells of rows and columns that both have, and of rows that only one has."""
    was, now = a.tables.get(table), b.tables.get(table)
    if not was or not now:
        return
    heads = {**was.heads, **now.heads}
    loads = {**a.models, **b.models} if table == "models" else {}
    for key in dict.fromkeys((*now, *was)):
        label = now.names.get(key) or was.names.get(key) or key
        if key in was and key in now:
            for column in (c for c in now[key] if c in was[key]):
                head = heads.get(column) or column.replace("_", " ")
                if heads.get(column) and column.startswith(OF_ENGINE) and head[0].islower():
                    head = f"parameters {head}"
                yield from _compare(
                    f"{key}.{column}", f"{label}, {head}", was[key][column], now[key][column], row=key, column=column
                )
        elif key not in loads:  # those of a load are reported there
            yield _one_sided(key, label, "added" if key in now else "removed", key, key in now)


def _price_changes(a: SheetFacts, b: SheetFacts) -> Iterator[Change]:
    """Changes of instances and their prices, those of the purchase class in use first; JSON has that class alone."""
    compared = a.classes & b.classes if "JSON" in (a.kind, b.kind) else a.classes | b.classes
    for key in dict.fromkeys((*b.offers, *a.offers)):
        before, after = a.offers.get(key), b.offers.get(key)
        if before and after:
            pairs = ("gpu", "GPU", before.gpu, after.gpu), ("gpu_count", "GPUs", before.gpu_count, after.gpu_count)
            for part, label, old, new in pairs:
                if not same(old, new):
                    yield Change(f"{key}.{part}", f"{key}, {label}", from_to(old, new), old, new, {"instance": key})
            for purchase in sorted(compared, key=lambda p: (p != b.purchase, p)):
                label = key if purchase == b.purchase else f"{key}, {purchase}"
                yield from _price(key, label, purchase, before.prices.get(purchase), after.prices.get(purchase))
        elif alone := after or before:
            word, purchase = ("added", b.purchase) if after else ("removed", a.purchase)
            if "JSON" in (a.kind, b.kind) and not (b if after else a).is_cheapest(key):
                continue  # a workbook lists the candidates of other classes, too
            usd_per_hour = alone.prices[purchase].usd_per_hour if purchase in alone.prices else None
            gpus = f" ({shown_value(alone.gpu_count)}x {alone.gpu})" if alone.gpu else ""
            words = f"{word}{gpus}{'' if usd_per_hour is None else f', {usd(usd_per_hour, 2)} an hour'}"
            yield _one_sided(key, key, words, usd_per_hour, alone is after, instance=key, purchase=purchase, what=word)


def _price(instance: str, label: str, purchase: str, old: Price | None, new: Price | None) -> Iterator[Change]:
    name, figures = f"{instance}.{purchase}", {"instance": instance, "purchase": purchase}
    if old and new:
        a, b = old.usd_per_hour, new.usd_per_hour
        if not same(a, b) or old.date != new.date:
            more = {
                "what": "date" if same(a, b) else "price",
                "change_fraction": change_fraction(a, b),
                "before_date": old.date,
                "after_date": new.date,
            }
            yield Change(name, label, price_change(old, new), a, b, figures | more)
    elif price := new or old:
        word = "added" if new else "removed"
        words = f"price {word}, {usd(price.usd_per_hour, 2)} an hour"
        yield _one_sided(name, label, words, price.usd_per_hour, price is new, **figures, what=word)


def headline_loads(a: SheetFacts, b: SheetFacts, pairing: Pairing) -> list[tuple[LoadKey, LoadKey]]:
    """For each model, the load at the top of B's sheet, and the same load on A."""
    headline = b.headline
    if headline is None and a.headline is not None:  # B's tier was changed under its headline
        both = ((x, y) for x in pairing.workloads for y in pairing.tiers)
        headline = next(((x[1], y[1]) for x, y in both if (x[0], y[0]) == a.headline), None)
    before = pairing.in_a(*headline) if headline else None
    return [((m, *before), (m, *headline)) for m in pairing.models] if headline and before else []


def _answer_changes(a: SheetFacts, b: SheetFacts, loads: Iterable[tuple[LoadKey, LoadKey]]) -> Iterator[Change]:
    """The loads of both sheets whose answers differ."""
    for la, lb in loads:
        before, after = a.answers.get(la), b.answers.get(lb)
        if before is None or after is None:
            continue
        shared = {k: [v, after.more[k]] for k, v in before.more.items() if k in after.more}
        moved = {k: pair for k, pair in shared.items() if not same(*pair)}
        is_same = all(same(getattr(before, n), getattr(after, n)) for n in ("instance", "n_instances", "monthly_usd"))
        if is_same and not moved and (before.instance is not None or before.verdict == after.verdict):
            continue
        model, workload, tier = lb
        load, requests = changed_load(a, b, la, lb), (a.tiers[la[2] - 1], b.tiers[tier - 1])
        also = [
            f"{compared_facts.MORE_OF_ANSWER.get(k, k)} {ARROW.join(map(shown_value, pair))}"
            for k, pair in moved.items()
        ]
        was, now = before.monthly_usd, after.monthly_usd
        figures = {
            "model": model,
            "workload": workload,
            "tier": list(requests),
            "also": moved,
            "change_usd": None if was is None or now is None else now - was,
        }
        old, new = (
            {
                "instance": answer.instance,
                "n_instances": answer.n_instances,
                "monthly_usd": answer.monthly_usd,
                "words": hardware(answer),
            }
            for answer in (before, after)
        )
        words = "; ".join(filter(None, (answer_change(before, after), ", ".join(also))))
        yield Change(
            f"{model}.{workload}.{tier}", f"{compared_facts.model_name(model, a, b)}, {load}", words, old, new, figures
        )


def changed_load(a: SheetFacts, b: SheetFacts, la: LoadKey, lb: LoadKey) -> str:
    """A load of both sheets, with the lengths and requests by which they differ: `RAG 16k -> 32k at 32 -> 64`."""
    was, now = a.workloads[la[1]], b.workloads[lb[1]]
    lengths = [short_tokens(length) if length else "blank" for length in (was.context_tokens, now.context_tokens)]
    context = "" if same(was.context_tokens, now.context_tokens) else f" {ARROW.join(lengths)}"
    requests = a.tiers[la[2] - 1], b.tiers[lb[2] - 1]
    if not context and same(*requests):
        return compared_facts.load_words(b, lb[1], lb[2])
    shown = [compared_facts.tier_words(number) if number is not None else "blank" for number in requests]
    return f"{now.name}{context} at {ARROW.join(dict.fromkeys(shown))}"


def _other_result_changes(a: SheetFacts, b: SheetFacts) -> Iterator[Change]:
    """Changes of the results other than those of loads: of Decision and its cases."""
    labels = [result.label for result in b.other_results.values()]
    for name, after in b.other_results.items():
        before = a.other_results.get(name)
        if before is not None and not same(before.value, after.value):
            before, after = (replace(v, value="none") if v.value == "-" else v for v in (before, after))
            spaced = name.replace("_", " ")
            label = f"{after.label} ({spaced})" if labels.count(after.label) > 1 else after.label or spaced
            old, new = before.value, after.value
            is_money = name.endswith("_usd")
            words = usd_change(old, new) + growth(old, new) if is_money else setting_change(before, after)
            yield Change(name, label, words, old, new)


def shown_value(value: Raw, shown_as: str = "number") -> str:
    """A value as a person writes it; `blank` for an empty cell."""
    if value is None:
        return "blank"
    if hasattr(value, "isoformat"):
        return str(value.isoformat()[:10])
    if not is_number(value):
        return str(value)
    if shown_as == "percent":
        return f"{shown_value(value * 100)} %"
    # Up to ten digits, but all digits of a whole number, and never an exponent.
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{Decimal(f'{value:.10g}'):,f}"


def from_to(before: Raw, after: Raw, shown_as: str = "number", unit: str = "") -> str:
    """`32 -> 64 (+100 %)`."""
    texts = [shown_value(v, shown_as) for v in (before, after)]
    if texts[0] == texts[1]:  # they differ in a digit that is not shown, or a text looks like a number
        texts = [repr(v) for v in (before, after)]
    grown = "" if shown_as == "percent" else growth(before, after)
    unit = f" {unit}" if unit and isinstance(after, (int, float)) else ""
    return f"{texts[0]}{ARROW}{texts[1]}{unit}{grown}"


def change_fraction(before: Raw, after: Raw) -> float | None:
    """The share by which a number grew; None where a share says nothing."""
    return (after - before) / abs(before) if is_number(before) and is_number(after) and before else None


def growth(before: Raw, after: Raw) -> str:
    """` (+100 %)`; "" where there is no share to give."""
    share = change_fraction(before, after)
    if share is None:
        return ""
    percent = 100 * share
    return f" ({percent:+,.0f} %)" if abs(percent) >= 0.5 else f" ({'+' if percent > 0 else '-'}<0.5 %)"


def usd(amount: float, decimals: int = 0) -> str:
    """`$40,179`, with so many decimals."""
    return replace(USD, decimals=decimals).text(amount)


def usd_change(before: Raw, after: Raw, decimals: int = 0) -> str:
    """`$40,179 -> $80,358`, with as many decimals as tell the two apart; `$5,095 -> none` where one of them is no
    number."""
    if not (is_number(before) and is_number(after)):
        return ARROW.join(usd(v) if is_number(v) else "none" for v in (before, after))
    for n in (n for n in (0, 2, 4, 8) if n >= decimals):
        texts = [usd(v, n) for v in (before, after)]
        if texts[0] != texts[1]:
            break
    return ARROW.join(texts)


def signed_usd(amount: float) -> str:
    """`+$40,179`; less than a dollar in cents, so that it is not rounded to 0."""
    decimals = next((n for n in (0, 2) if abs(amount) >= 10**-n), 4)
    return f"{'-' if amount < 0 else '+'}{usd(abs(amount), decimals)}"


def price_change(before: Price, after: Price) -> str:
    """`$55.04 -> $49.00 an hour (-11 %), price of 2026-07-20 -> 2026-11-01`."""
    a, b = before.usd_per_hour, after.usd_per_hour
    days = [price.date.isoformat() if price.date else "no date" for price in (before, after)]
    dates = f", price of {ARROW.join(days)}" if before.date != after.date else ""
    if f"{a:.8f}" == f"{b:.8f}":
        return f"still {usd(b, 2)} an hour{dates}"
    return f"{usd_change(a, b, 2)} an hour{growth(a, b)}{dates}"


def hardware(answer: Answer) -> str:
    """`2x aws/p5.48xlarge`, or the reason why there is none."""
    return f"{shown_value(answer.n_instances)}x {answer.instance}" if answer.instance else answer.verdict or "no answer"


def answer_change(before: Answer, after: Answer) -> str:
    """`1x aws/p5.48xlarge -> 2x aws/p5.48xlarge, $40,179 -> $80,358 a month (+$40,179)`."""
    a, b = hardware(before), hardware(after)
    rented = a if a == b else f"{a}{ARROW}{b}"
    was, now = before.monthly_usd, after.monthly_usd
    if was is None or now is None:
        return rented if was == now else f"{rented}, {usd_change(was, now)} a month"
    if was == now:
        return f"{rented}, {usd(now)} a month as before"
    return f"{rented}, {usd_change(was, now)} a month ({signed_usd(now - was)})"


def setting_change(before: Setting, after: Setting) -> str:
    """`90 % -> 95 %`, as either sheet shows it."""
    shown_as = "percent" if "percent" in (before.shown_as, after.shown_as) else after.shown_as
    if before.built_with or after.built_with:
        return f"{before.value or 'default'}{ARROW}{after.value or 'default'}"
    return from_to(before.value, after.value, shown_as)


def budget_words(side: SheetFacts, amount: float | None) -> str:
    """`EUR 40,554, with 10% contingency (1 USD = 0.92 EUR)`; nothing where the sheet's totals are plain dollars, or
    where what was typed for them is no currency, rate or share."""
    usual = {"currency": "USD", "fx_rate": 1, "contingency_fraction": 0}
    code, rate, share = (side.settings[n].value if n in side.settings else v for n, v in usual.items())
    if amount is None or not code or not isinstance(rate, (int, float)) or not isinstance(share, (int, float)):
        return ""
    return month_as_budgeted(amount, str(code), rate, share)
