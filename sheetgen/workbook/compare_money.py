"""What changed of a sheet's prices, and of what each load is answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sheetgen.workbook.change import Change
from sheetgen.workbook.pairing import Pairing
from sheetgen.workbook.sheet_facts import Answer, Load, Offer, SheetFacts, load_words, model_name, same
from sheetgen.workbook.words import (
    ARROW,
    answer_change,
    change_fraction,
    from_to,
    hardware,
    price_change,
    setting_change,
    shown_value,
    usd_or_none,
)

MORE_WORDS = {
    "tensor_parallel_size": "TP", "pipeline_parallel_size": "PP", "n_replicas": "replicas", "n_gpus": "GPUs",
    "sized_by": "sized by",
}  # fmt: skip


def price_changes(a: SheetFacts, b: SheetFacts) -> Iterator[Change]:
    """Instances and their prices, those of the purchase class in use first."""
    classes = {p for o in a.offers.values() for p in o.prices}, {p for o in b.offers.values() for p in o.prices}
    in_both = classes[0] & classes[1]  # JSON has the class in use alone
    compared = in_both if "JSON" in (a.kind, b.kind) else classes[0] | classes[1]
    for key in dict.fromkeys((*b.offers, *a.offers)):
        before, after = a.offers.get(key), b.offers.get(key)
        if before is None or after is None:
            yield _offer(key, before, after, b.purchase if after else a.purchase)
            continue
        for what, label, old, new in (
            ("gpu", "GPU", before.gpu, after.gpu),
            ("gpu_count", "GPUs", before.gpu_count, after.gpu_count),
        ):
            if not same(old, new):
                yield Change(f"{key}.{what}", f"{key}, {label}", from_to(old, new), old, new, {"instance": key})
        for purchase in sorted(compared, key=lambda p: (p != b.purchase, p)):
            yield from _price(key, before, after, purchase, b.purchase)


def _offer(key: str, before: Offer | None, after: Offer | None, purchase: str) -> Change:
    one = after or before
    assert one is not None
    price = one.prices.get(purchase)
    money = f", ${price.usd_per_hour:,.2f} an hour" if price else ""
    word = "added" if after else "removed"
    gpus = f" ({shown_value(one.gpu_count)}x {one.gpu})" if one.gpu else ""
    figures = {"instance": key, "purchase": purchase, "what": word}
    value = price.usd_per_hour if price else None
    return Change(key, key, f"{word}{gpus}{money}", value if before else None, value if after else None, figures)


def _price(key: str, before: Offer, after: Offer, purchase: str, usual: str) -> Iterator[Change]:
    old, new = before.prices.get(purchase), after.prices.get(purchase)
    label = key if purchase == usual else f"{key}, {purchase}"
    figures: dict[str, Any] = {"instance": key, "purchase": purchase}
    if old is None and new is None:
        return
    if old is None or new is None:
        one = new or old
        assert one is not None
        figures |= {"what": "added" if old is None else "removed"}
        words = f"price {figures['what']}, ${one.usd_per_hour:,.2f} an hour"
        values = (None, one.usd_per_hour) if old is None else (one.usd_per_hour, None)
        yield Change(f"{key}.{purchase}", label, words, values[0], values[1], figures)
    elif not same(old.usd_per_hour, new.usd_per_hour) or old.date != new.date:
        a, b = old.usd_per_hour, new.usd_per_hour
        what = "date" if same(a, b) else "price"
        figures |= {"what": what, "change_fraction": change_fraction(a, b),
                    "before_date": old.date, "after_date": new.date}  # fmt: skip
        yield Change(f"{key}.{purchase}", label, price_change(old, new), a, b, figures)


def answers_differ(before: Answer, after: Answer) -> bool:
    """Whether a load is answered otherwise."""
    plain = all(same(getattr(before, n), getattr(after, n)) for n in ("instance", "n_instances", "monthly_usd"))
    alike = all(same(v, after.more[k]) for k, v in before.more.items() if k in after.more)
    return not (plain and alike and (before.instance is not None or before.verdict == after.verdict))


def _answer(a: SheetFacts, b: SheetFacts, la: Load, lb: Load) -> Change | None:
    before, after = a.answers.get(la), b.answers.get(lb)
    if before is None or after is None or not answers_differ(before, after):
        return None
    load = load_words(b, *lb[1:])
    requests = a.tiers[la[2] - 1], b.tiers[lb[2] - 1]
    if not same(*requests):
        load = f"{b.workloads[lb[1]].name} at {shown_value(requests[0])}{ARROW}{shown_value(requests[1])}"
    words = answer_change(before, after)
    moved = {k: [v, after.more[k]] for k, v in before.more.items() if k in after.more and not same(v, after.more[k])}
    if moved:
        words += "; " + ", ".join(f"{MORE_WORDS.get(k, k)} {ARROW.join(map(shown_value, v))}" for k, v in moved.items())
    usd_before, usd_after = before.monthly_usd, after.monthly_usd
    figures = {
        "model": lb[0], "workload": lb[1], "tier": list(requests), "also": moved,
        "change_usd": None if usd_before is None or usd_after is None else usd_after - usd_before,
    }  # fmt: skip
    label = f"{model_name(lb[0], a, b)}, {load}"
    return Change(f"{lb[0]}.{lb[1]}.{lb[2]}", label, words, _record(before), _record(after), figures)


def _record(answer: Answer) -> dict[str, Any]:
    return {"instance": answer.instance, "n_instances": answer.n_instances, "monthly_usd": answer.monthly_usd,
            "words": hardware(answer)}  # fmt: skip


def headline_loads(a: SheetFacts, b: SheetFacts, pairing: Pairing) -> list[tuple[Load, Load]]:
    """The load at the top of B's sheet, per model, and the same load on A."""
    headline = b.headline
    if headline is None and a.headline is not None:  # B's tier was changed under its headline
        headline = next(
            ((wb, tb) for wa, wb in pairing.workloads for ta, tb in pairing.tiers if (wa, ta) == a.headline), None
        )
    before = pairing.in_a(*headline) if headline else None
    if headline is None or before is None:
        return []
    return [((m, *before), (m, *headline)) for m in pairing.models]


def recommendation_changes(a: SheetFacts, b: SheetFacts, pairing: Pairing) -> Iterator[Change]:
    """What is recommended at the headline's load, per model."""
    if a.is_calculated and b.is_calculated:
        yield from filter(None, (_answer(a, b, *loads) for loads in headline_loads(a, b, pairing)))


def result_changes(a: SheetFacts, b: SheetFacts, pairing: Pairing) -> Iterator[Change]:
    """What every load that both sheets have is answered."""
    if a.is_calculated and b.is_calculated:
        yield from filter(None, (_answer(a, b, *loads) for loads in pairing.loads()))


def other_result_changes(a: SheetFacts, b: SheetFacts) -> Iterator[Change]:
    """The results beside those of loads: of What-if and its cases."""
    if not (a.is_calculated and b.is_calculated):
        return
    labels = [one.label for one in b.other_results.values()]
    for name, after in b.other_results.items():
        before = a.other_results.get(name)
        if before is not None and not same(before.value, after.value):
            before, after = (replace(v, value="none") if v.value == "-" else v for v in (before, after))
            plain = name.replace("_", " ")
            label = f"{after.label} ({plain})" if labels.count(after.label) > 1 else after.label or plain
            words = usd_or_none(before.value, after.value) if name.endswith("_usd") else setting_change(before, after)
            yield Change(name, label, words, before.value, after.value)
