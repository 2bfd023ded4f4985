"""The plan's page in its currency: every amount in it, US dollars beside what is to be approved. JSON and CSV keep
dollars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sheetgen.plan.charts import Waterfall
from sheetgen.plan.schema import DOLLARS, Head
from sheetgen.report.in_currency import amount_in
from sheetgen.report.page import Cell, Column, Table, with_parts
from sheetgen.report.wording import prefix_of, sign_of
from sheetgen.sizing import cost
from sheetgen.units import USD

OF_HEADS = "US dollars"  # in heads of tables


class Currency(NamedTuple):
    """A plan's currency: its code, and units of it for a dollar."""

    code: str = DOLLARS
    per_usd: float = 1


IN_DOLLARS = Currency()


def currency_of(record: Mapping[str, Any]) -> Currency:
    """The currency of a plan's JSON."""
    head = record["inputs"]["plan"]
    return Currency(head.get("currency", DOLLARS), head.get("fx_rate", 1))


def in_currency(page: Any, head: Head) -> Any:
    """`page`, or any part of it, with its dollars converted; as it is where the plan is in dollars."""
    if head.currency == DOLLARS:
        return page
    sign = sign_of(head.currency)

    def there(usd: float) -> float:
        return float(cost.in_currency(usd, head.fx_rate))

    def named(text: str) -> str:
        return text.replace(OF_HEADS, head.currency).replace(USD.prefix, sign)

    def converted(value: Any) -> Any:
        if isinstance(value, Cell):
            return amount_in(value, head.currency, head.fx_rate)
        if isinstance(value, Waterfall):
            parts = tuple((name, there(usd)) for name, usd in value.parts)
            return Waterfall(there(value.last_usd), parts, there(value.usd), head.currency, prefix_of(sign))
        if isinstance(value, Table):
            columns = tuple(Column(named(one.head), one.right) for one in value.columns)
            return value._replace(title=named(value.title), columns=columns, rows=converted(value.rows))
        return with_parts(value, converted)

    return converted(page)
