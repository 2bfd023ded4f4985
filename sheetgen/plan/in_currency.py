"""The plan's page in its currency: every amount in it, US dollars beside what is to be approved. JSON, CSV and what is
printed keep dollars."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from sheetgen import cost
from sheetgen.plan.charts import Waterfall
from sheetgen.plan.schema import DOLLARS, Head
from sheetgen.sheet.page import Cell, Column, Table
from sheetgen.sheet.wording import is_short_money, prefix_of, short_money, sign_of
from sheetgen.units import USD


def in_currency(page: Any, head: Head) -> Any:
    """`page`, or any part of it, with its dollars converted; as it is where the plan is in dollars."""
    if head.currency == DOLLARS:
        return page
    sign = sign_of(head.currency)
    prefix = prefix_of(sign)

    def there(usd: float) -> float:
        return float(cost.in_currency(usd, head.fx_rate))

    def named(text: str) -> str:
        return text.replace(OF_HEADS, head.currency).replace(USD.prefix, sign)

    def converted(value: Any) -> Any:
        if isinstance(value, Cell):
            return amount(value)
        if isinstance(value, Waterfall):
            parts = tuple((name, there(usd)) for name, usd in value.parts)
            return Waterfall(there(value.last_usd), parts, there(value.usd), head.currency, prefix)
        if isinstance(value, Table):
            columns = tuple(Column(named(one.head), one.right) for one in value.columns)
            return value._replace(title=named(value.title), columns=columns, rows=converted(value.rows))
        if isinstance(value, tuple):
            inside = map(converted, value)
            return type(value)(*inside) if hasattr(value, "_fields") else tuple(inside)
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{one.name: converted(getattr(value, one.name)) for one in fields(value)})
        return value

    def amount(cell: Cell) -> Cell:
        if cell.parts:
            return replace(cell, parts=converted(cell.parts))
        if cell.display.prefix != USD.prefix or cell.value is None:
            return cell
        if is_short_money(cell):
            return short_money(there(cell.value), prefix)
        return Cell(there(cell.value), replace(cell.display, prefix=prefix))

    return converted(page)


OF_HEADS = "US dollars"  # in heads of tables
