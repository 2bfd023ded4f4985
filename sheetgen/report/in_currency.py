"""The page in the currency of the budget: every amount converted, with US dollars beside the sum to be approved.

The sheets of answers in the workbook show that currency too, by formulas; JSON and CSV keep dollars.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from sheetgen.question.inputs import Settings
from sheetgen.report.page import Cell, Page, PagePart, Rented, with_parts, words
from sheetgen.report.wording import is_short_money, money, prefix_of, short_money, sign_of
from sheetgen.sizing import cost
from sheetgen.units import USD

LONGEST = 12  # characters of an amount; longer ones, as in won, are in millions: KRW 56.65M


def in_currency(page: Page, settings: Settings) -> Page:
    """`page` with its dollars converted; as it is where the budget is in dollars."""
    if settings.currency == "USD":
        return page

    def converted(value: PagePart) -> PagePart:
        if isinstance(value, Cell):
            return amount_in(value, settings.currency, settings.fx_rate, LONGEST)
        changed = with_parts(value, converted)
        if not (isinstance(value, Rented) and value.monthly):
            return changed
        amounts = value.approve or (value.monthly, value.per_year)
        return replace(changed, in_dollars=words("in US dollars {} a month, {}", *amounts))

    in_budget: Page = converted(page)
    return replace(in_budget, sign=sign_of(settings.currency))


def amounts_of(settings: Settings) -> Callable[[float], str]:
    """A function from US dollars to whole amounts in the budget's currency, as text: $40,179 or €36,965."""

    def amount(usd: float) -> str:
        return str(amount_in(money(usd), settings.currency, settings.fx_rate))

    return amount


def more_than(cell: Cell, other: Cell, settings: Settings, longest: float = math.inf) -> float:
    """How much one amount is above another in US dollars, as both are printed in the budget's currency, in short where
    that takes more than `longest` characters."""
    printed = (amount_in(amount, settings.currency, settings.fx_rate, longest) for amount in (cell, other))
    first, second = (amount.display.as_shown(amount.value) for amount in printed)
    return (first - second) / settings.fx_rate


def amount_in(cell: Cell, code: str, fx_rate: float, longest: float = math.inf) -> Cell:
    """A cell, and the cells in it, with dollars in another currency; in short where that takes more than `longest`
    characters."""
    if cell.parts:
        inside = (amount_in(part, code, fx_rate, longest) if isinstance(part, Cell) else part for part in cell.parts)
        return replace(cell, parts=tuple(inside))
    prefix = prefix_of(sign_of(code))
    if cell.display.prefix != USD.prefix or cell.value is None:
        return cell
    converted = float(cost.in_currency(cell.value, fx_rate))
    full = Cell(converted, cell.display.in_currency(prefix))
    return short_money(converted, prefix) if is_short_money(cell) or len(str(full)) > longest else full
