"""The page in the currency of the budget: every amount in it, US dollars beside what is to be approved.

The workbook keeps dollars, with a conversion of its own, and so do JSON and CSV.
"""

from __future__ import annotations

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

    def converted(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(converted, value))
        if isinstance(value, Cell):
            return amount(value)
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **parts(value) | of_answer(value))
        return value

    def parts(value: Any) -> dict[str, Any]:
        return {one.name: converted(getattr(value, one.name)) for one in fields(value)}

    def amount(cell: Cell) -> Cell:
        if cell.parts:
            return replace(cell, parts=converted(cell.parts))
        if cell.display.prefix == code + " ":  # a budget, which is in it already
            return replace(cell, display=replace(cell.display, prefix=prefix))
        if cell.display.prefix != USD.prefix or cell.value is None:
            return cell
        there = float(cost.in_currency(cell.value, settings.fx_rate))
        full = Cell(there, replace(cell.display, prefix=prefix))
        return short_money(there, prefix) if is_short_money(cell) or len(str(full)) > _LONGEST else full

    def of_answer(value: Any) -> dict[str, Cell]:
        """What an answer has beside: its dollars; no budget where that is the amount itself."""
        if not isinstance(value, Card | Total) or not value.monthly:
            return {}
        amounts = value.approve or (value.monthly, value.per_year)
        dollars = {"in_dollars": words("in US dollars {} a month, {}", *amounts)}
        return dollars if isinstance(value, Total) or settings.contingency_fraction else dollars | {"budget": NONE}

    found: Page = converted(page)
    return replace(found, sign=sign)
