"""Compare two sheets, section by section: by name and key, never by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sheetgen.workbook.change import SECTIONS, Change
from sheetgen.workbook.compare_inputs import input_changes, load_changes, table_changes
from sheetgen.workbook.compare_money import other_result_changes, price_changes, recommendation_changes, result_changes
from sheetgen.workbook.pairing import Pairing, pair
from sheetgen.workbook.sheet_facts import SheetFacts


@dataclass(frozen=True)
class Comparison:
    """All that changed, by section, and what one of the files does not say."""

    a: SheetFacts
    b: SheetFacts
    pairing: Pairing
    sections: Mapping[str, tuple[Change, ...]]
    not_compared: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """Whether nothing changed, as far as both files say."""
        return not any(self.sections.values())


def compare(a: SheetFacts, b: SheetFacts) -> Comparison:
    """What changed from sheet `a` to sheet `b`."""
    pairing = pair(a, b)
    a, b = _named_as(a, b, {x: y for x, y in pairing.workloads}), _named_as(b, a, {y: x for x, y in pairing.workloads})
    found: dict[str, Callable[[], Iterable[Change]]] = {
        "recommendation": lambda: recommendation_changes(a, b, pairing),
        "load": lambda: load_changes(a, b, pairing),
        "inputs": lambda: input_changes(a, b, pairing),
        "prices": lambda: price_changes(a, b),
        **{table: lambda t=table: table_changes(a, b, t) for table in ("models", "gpus", "precisions")},  # type: ignore[misc]
        "results": lambda: result_changes(a, b, pairing),
        "what_if": lambda: other_result_changes(a, b),
    }
    return Comparison(a, b, pairing, {s: tuple(found[s]()) for s in SECTIONS}, tuple(_not_compared(a, b, pairing)))


def _named_as(one: SheetFacts, other: SheetFacts, workloads: Mapping[str, str]) -> SheetFacts:
    """`one` in the words of `other`, where that is a workbook and `one` is JSON, which has ids alone."""
    if one.kind == other.kind or one.kind == "workbook":
        return one
    named = {
        key: replace(w, name=other.workloads[workloads[key]].name) if key in workloads else w
        for key, w in one.workloads.items()
    }
    return replace(one, workloads=named, models={m: other.models.get(m, m) for m in one.models})


def _not_compared(a: SheetFacts, b: SheetFacts, pairing: Pairing) -> Iterator[str]:
    for table, what in (("models", "facts of models"), ("gpus", "facts of GPUs"), ("precisions", "precisions")):
        columns = [{c for row in x.tables.get(table, {}).values() for c in row} for x in (a, b)]
        if any(columns) and not columns[0] & columns[1]:
            yield f"{what}: the JSON does not carry them"
    classes = [{p for o in x.offers.values() for p in o.prices} for x in (a, b)]
    if classes[0] != classes[1] and "JSON" in (a.kind, b.kind):
        yield f"prices of {', '.join(sorted(classes[0] ^ classes[1]))}: only one of the files has them"
    for x in (a, b):
        if not x.is_calculated:
            yield f"results: {x.path} was saved without them. Open it in Excel or LibreOffice and save it once"
    if not pairing.loads():
        yield "results: the two have no load in common"
