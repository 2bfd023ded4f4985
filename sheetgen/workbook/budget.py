"""A sheet's dollars as its budget has them: with contingency, in its currency."""

from __future__ import annotations

from typing import Any

from sheetgen.sheet.money import month_as_budgeted
from sheetgen.workbook.sheet_facts import SheetFacts


def budget_words(side: SheetFacts, usd: float | None) -> str:
    """`EUR 40,554, with 10% contingency (1 USD = 0.92 EUR)`; nothing where the sheet's totals are plain dollars, or
    where what was typed for them is no currency, rate or share."""
    code = _value(side, "currency", "USD")
    rate, share = _value(side, "fx_rate", 1), _value(side, "contingency_fraction", 0)
    if usd is None or not code or not isinstance(rate, (int, float)) or not isinstance(share, (int, float)):
        return ""
    return month_as_budgeted(usd, str(code), rate, share)


def _value(side: SheetFacts, name: str, usual: Any) -> Any:
    return side.settings[name].value if name in side.settings else usual
