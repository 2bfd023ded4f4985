"""Values and their changes in words. Texts of a file stay as they are: whoever prints them escapes them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sheetgen.sheet.money import month_as_budgeted
from sheetgen.workbook.cells import is_number
from sheetgen.workbook.sheet_facts import Answer, Price, Setting, SheetFacts

ARROW = " -> "


def shown_value(value: Any, shown_as: str = "number") -> str:
    """A value as a person writes it; `blank` for an empty cell."""
    if value is None:
        return "blank"
    if hasattr(value, "isoformat"):
        return str(value.isoformat()[:10])
    if not is_number(value):
        return str(value)
    if shown_as == "percent":
        return f"{_digits(value * 100)} %"
    return _digits(value)


def _digits(value: float) -> str:
    """Up to ten digits, all of a whole number, and never an exponent."""
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{Decimal(f'{value:.10g}'):,f}"


def from_to(before: Any, after: Any, shown_as: str = "number", unit: str = "") -> str:
    """`32 -> 64 (+100 %)`."""
    texts = [shown_value(v, shown_as) for v in (before, after)]
    if texts[0] == texts[1]:  # they differ in a digit that is not shown, or a text looks like a number
        texts = [repr(v) for v in (before, after)]
    grown = "" if shown_as == "percent" else growth(before, after)
    unit = f" {unit}" if unit and isinstance(after, (int, float)) else ""
    return f"{texts[0]}{ARROW}{texts[1]}{unit}{grown}"


def change_fraction(before: Any, after: Any) -> float | None:
    """By what share a number grew; None where that says nothing."""
    return (after - before) / abs(before) if is_number(before) and is_number(after) and before else None


def growth(before: Any, after: Any) -> str:
    """` (+100 %)`, or nothing where there is no share to give."""
    share = change_fraction(before, after)
    if share is None:
        return ""
    percent = 100 * share
    return f" ({percent:+,.0f} %)" if abs(percent) >= 0.5 else f" ({'+' if percent > 0 else '-'}<0.5 %)"


def usd(amount: float) -> str:
    """`$40,179`."""
    return f"{'-' if amount < 0 else ''}${abs(amount):,.0f}"


def usd_change(before: float, after: float, decimals: int = 0) -> str:
    """`$40,179 -> $80,358`; as many decimals as tell the two apart."""
    for n in (n for n in (0, 2, 4, 8) if n >= decimals):
        texts = [f"${v:,.{n}f}" for v in (before, after)]
        if texts[0] != texts[1]:
            break
    return ARROW.join(texts)


def usd_or_none(before: Any, after: Any) -> str:
    """The change of a cell of dollars, which holds a sign where there are none: `$5,095 -> none`."""
    if all(isinstance(v, (int, float)) for v in (before, after)):
        return usd_change(before, after) + growth(before, after)
    return ARROW.join(usd(v) if isinstance(v, (int, float)) else "none" for v in (before, after))


def signed_usd(amount: float) -> str:
    """`+$40,179`."""
    for decimals in (0, 2, 4):
        text = f"{abs(amount):,.{decimals}f}"
        if float(text.replace(",", "")):
            break
    return f"{'-' if amount < 0 else '+'}${text}"


def price_change(before: Price, after: Price) -> str:
    """`$55.04 -> $49.00 an hour (-11 %), price of 2026-07-20 -> 2026-11-01`."""
    a, b = before.usd_per_hour, after.usd_per_hour
    days = [one.date.isoformat() if one.date else "no date" for one in (before, after)]
    dates = f", price of {ARROW.join(days)}" if before.date != after.date else ""
    if f"{a:.8f}" == f"{b:.8f}":
        return f"still ${b:,.2f} an hour{dates}"
    return f"{usd_change(a, b, 2)} an hour{growth(a, b)}{dates}"


def hardware(answer: Answer) -> str:
    """`2x aws/p5.48xlarge`, or why there is none."""
    return f"{shown_value(answer.n_instances)}x {answer.instance}" if answer.instance else answer.verdict or "no answer"


def answer_words(answer: Answer) -> str:
    """`2x aws/p5.48xlarge, $80,358 a month`."""
    return hardware(answer) + (f", {usd(answer.monthly_usd)} a month" if answer.monthly_usd is not None else "")


def answer_change(before: Answer, after: Answer) -> str:
    """`1x aws/p5.48xlarge -> 2x aws/p5.48xlarge, $40,179 -> $80,358 a month (+$40,179)`."""
    a, b = hardware(before), hardware(after)
    rented = a if a == b else f"{a}{ARROW}{b}"
    if before.monthly_usd is None and after.monthly_usd is None:
        return rented
    if before.monthly_usd is None or after.monthly_usd is None:
        money = [usd(v) if v is not None else "none" for v in (before.monthly_usd, after.monthly_usd)]
        return f"{rented}, {ARROW.join(money)} a month"
    if before.monthly_usd == after.monthly_usd:
        return f"{rented}, {usd(after.monthly_usd)} a month as before"
    money_words = usd_change(before.monthly_usd, after.monthly_usd)
    return f"{rented}, {money_words} a month ({signed_usd(after.monthly_usd - before.monthly_usd)})"


def setting_change(before: Setting, after: Setting) -> str:
    """`90 % -> 95 %`, as either sheet shows it."""
    shown_as = "percent" if "percent" in (before.shown_as, after.shown_as) else after.shown_as
    if before.built_with or after.built_with:
        return f"{before.value or 'default'}{ARROW}{after.value or 'default'}"
    return from_to(before.value, after.value, shown_as)


def budget_words(side: SheetFacts, amount: float | None) -> str:
    """`EUR 40,554, with 10% contingency (1 USD = 0.92 EUR)`; nothing where the sheet's totals are plain dollars, or
    where what was typed for them is no currency, rate or share."""
    usual = {"currency": "USD", "fx_rate": 1, "contingency_fraction": 0}
    code, rate, share = (side.settings[n].value if n in side.settings else v for n, v in usual.items())
    if amount is None or not code or not isinstance(rate, (int, float)) or not isinstance(share, (int, float)):
        return ""
    return month_as_budgeted(amount, str(code), rate, share)
