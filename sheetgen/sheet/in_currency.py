"""The page in the currency of the budget: every amount in it, US dollars beside what is to be approved.

The workbook keeps dollars, with a conversion of its own, and so do JSON and CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from sheetgen import cost
from sheetgen.scenario.inputs import Settings
from sheetgen.sheet.page import NONE, Card, Cell, Page, Total, words
from sheetgen.sheet.wording import is_short_money, prefix_of, short_money, sign_of
from sheetgen.units import USD

_LONGEST = 12  # characters of an amount; longer ones, as in won, are in millions: KRW 56.65M


def in_currency(page: Page, settings: Settings) -> Page:
    """`page` with its dollars converted; as it is where the budget is in dollars."""
    code = settings.currency
    sign = sign_of(code)
    prefix = prefix_of(sign)
    if code == "USD":
        return page

    def amount(cell: Cell) -> Cell:
        if cell.display.prefix == code + " ":  # a budget, which is in it already
            return replace(cell, display=replace(cell.display, prefix=prefix))
        full = amount_there(cell, settings.fx_rate, prefix)
        is_long = full is not cell and len(str(full)) > _LONGEST and not is_short_money(cell)
        return short_money(full.value, prefix) if is_long else full

    def of_answer(value: Any) -> dict[str, Cell]:
        """What an answer has beside: its dollars; no budget where that is the amount itself."""
        if not isinstance(value, Card | Total) or not value.monthly:
            return {}
        amounts = value.approve or (value.monthly, value.per_year)
        dollars = {"in_dollars": words("in US dollars {} a month, {}", *amounts)}
        return dollars if isinstance(value, Total) or settings.contingency_fraction else dollars | {"budget": NONE}

    found: Page = with_cells(page, amount, of_answer)
    return replace(found, sign=sign)


def amount_there(cell: Cell, fx_rate: float, prefix: str) -> Cell:
    """A cell of dollars in another currency; any other as it is."""
    if cell.display.prefix != USD.prefix or cell.value is None:
        return cell
    there = float(cost.in_currency(cell.value, fx_rate))
    return short_money(there, prefix) if is_short_money(cell) else Cell(there, replace(cell.display, prefix=prefix))


def with_cells(
    page: Any, amount: Callable[[Cell], Cell], beside: Callable[[Any], Mapping[str, Any]] = lambda part: {}
) -> Any:
    """A page, or any part of it, with other cells; beside: what else of a part is another, by its fields."""

    def converted(value: Any) -> Any:
        if isinstance(value, Cell):
            return replace(value, parts=converted(value.parts)) if value.parts else amount(value)
        if isinstance(value, tuple):
            inside = map(converted, value)
            return value._make(inside)._replace(**beside(value)) if hasattr(value, "_make") else tuple(inside)
        if is_dataclass(value) and not isinstance(value, type):
            parts = {one.name: converted(getattr(value, one.name)) for one in fields(value)}
            return replace(value, **parts | dict(beside(value)))
        return value

    return converted(page)
