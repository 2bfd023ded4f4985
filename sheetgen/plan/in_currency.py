"""The plan's page in its currency: every amount in it, US dollars beside what is to be approved. JSON, CSV and what is
printed keep dollars."""

from __future__ import annotations

from typing import Any

from sheetgen.plan.charts import Waterfall
from sheetgen.plan.schema import DOLLARS, Head
from sheetgen.sheet.in_currency import amount_there, with_cells
from sheetgen.sheet.page import Column, Table
from sheetgen.sheet.wording import prefix_of, sign_of
from sheetgen.units import USD


def in_currency(page: Any, head: Head) -> Any:
    """`page`, or any part of it, with its dollars converted; as it is where the plan is in dollars."""
    if head.currency == DOLLARS:
        return page
    sign = sign_of(head.currency)
    prefix, rate = prefix_of(sign), head.fx_rate

    def named(text: str) -> str:
        return text.replace(OF_HEADS, head.currency).replace(USD.prefix, sign)

    def beside(part: Any) -> dict[str, Any]:
        if isinstance(part, Waterfall):
            return {"last_usd": part.last_usd * rate, "parts": tuple((name, usd * rate) for name, usd in part.parts),
                    "usd": part.usd * rate, "currency": head.currency, "prefix": prefix}  # fmt: skip
        if isinstance(part, Table):
            return {"title": named(part.title), "columns": tuple(Column(named(h), right) for h, right in part.columns)}
        return {}

    return with_cells(page, lambda cell: amount_there(cell, rate, prefix), beside)


OF_HEADS = "US dollars"  # in heads of tables
