"""What may move an answer from one sheet to another, by kind: for the block of `diff` and for `mail`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sheetgen.workbook.bridge import ASIDE, NO_EFFECT
from sheetgen.workbook.change import Change
from sheetgen.workbook.compare import Comparison
from sheetgen.workbook.sheet_facts import OF_PRICES

OF_BUDGET = ("contingency_fraction", "currency", "fx_rate")  # they move no answer, but what finance reads of it


def by_kind(found: Comparison) -> dict[str, list[Change]]:
    """Prices, load, facts and settings. Dates alone and What-if, which moves no answer, stay out."""
    sections = found.sections
    inputs = [c for c in sections["inputs"] if not c.name.startswith(ASIDE)]
    market = [c for c in inputs if c.name in OF_PRICES]
    hidden = {*OF_PRICES, *NO_EFFECT} - {*OF_BUDGET}
    rest = [c for c in inputs if c.name not in hidden]
    prices = [c for c in sections["prices"] if c.more.get("what") != "date"]
    facts = [*sections["models"], *sections["gpus"], *sections["precisions"]]
    return {
        "Prices": [*market, *sorted(prices, key=lambda c: _weight(c, found))],
        "Load": [*sections["load"]],
        "Facts and settings": [*rest, *facts],
    }


def _weight(change: Change, found: Comparison) -> int:
    """Prices of what either sheet recommends at the headline first, those of other purchase classes last."""
    if change.more.get("purchase", found.b.purchase) != found.b.purchase:
        return 2
    return 0 if change.more.get("instance") in _recommended(found.sections["recommendation"]) else 1


def _recommended(changes: Sequence[Change]) -> set[Any]:
    return {answer["instance"] for change in changes for answer in (change.before, change.after)}
