"""The Inputs sheet's part about money: how busy the hardware is, the contingency, the currency, the terms of owning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sheetgen import cost
from sheetgen.formula import Formula
from sheetgen.scenario.kinds import LEAST
from sheetgen.sheet.accepts import day, letters, number, share
from sheetgen.sheet.notes import day_of
from sheetgen.units import DATE, FACTOR, PERCENT, PLAIN, TEXT, TWO_DECIMALS, WHOLE, Display
from sheetgen.units import OWNING_TERMS as TERMS

if TYPE_CHECKING:
    from sheetgen.sheet.book.inputs import InputsSheet

_TERMS: dict[str, tuple[str, Display, str]] = {
    "owned_years": ("Years that a GPU is used", TWO_DECIMALS, "years"),
    "residual_fraction": ("Worth at the end, of the purchase", PERCENT, ""),
    "cost_of_capital_fraction": ("Cost of capital a year", PERCENT, ""),
    "support_fraction": ("Support a year, of the purchase", PERCENT, ""),
    "installed_multiplier": ("Installed price over the module's", FACTOR, ""),
    "system_power_multiplier": ("Server's power over its GPUs' rated power", FACTOR, ""),
    "usd_per_kwh": ("Electricity", FACTOR, "$ per kWh"),
    "pue": ("PUE", FACTOR, ""),
    "colo_usd_per_kw_month": ("Site, without power", TWO_DECIMALS, "$/kW-month"),
}
_CONSTANTS = (
    ("hours_in_a_month", "Hours in a month", "hours", "8,760 / 12: what a commitment pays for, run or not."),
    ("months_in_a_year", "Months in a year", "months", ""),
    ("months_in_three_years", "Months in three years", "months", ""),
    ("seconds_in_an_hour", "Seconds in an hour", "seconds", ""),
    ("tokens_in_a_million", "Tokens in a million", "tokens", ""),
    ("watts_in_a_kilowatt", "Watts in a kilowatt", "watts", ""),
)


def add_money_inputs(page: InputsSheet) -> None:
    """The sections about money and owning, and the constants that their formulas count in."""
    settings, as_of = page.solved.question.settings, page.solved.question.as_of
    page.section("Money")
    page.put(
        "utilization", "Utilization", settings.utilization, PERCENT, "",
        "Share of the hours run in which the hardware does the load: what a million tokens costs is at this share.",
        number("Utilization", 0.01, 1),
    )  # fmt: skip
    page.put(
        "contingency_fraction", "Contingency", settings.contingency_fraction, PERCENT, "",
        "A line of its own under the sums; it is in no price of an hour, a user or a token.",
        share("Contingency"),
    )  # fmt: skip
    page.put("currency", "Currency of the totals", settings.currency, TEXT, "",
             "Its three letters. Prices are in US dollars; totals are converted at the rate below.",
             letters("Currency", 3, "Its three letters, such as EUR."))  # fmt: skip
    page.put(
        "fx_rate", "Exchange rate", settings.fx_rate, FACTOR, "per $", "How many of that currency one US dollar is.",
        number("Exchange rate", LEAST, 10_000_000),
    )  # fmt: skip
    fx_day = day_of(settings.fx_date) or as_of
    page.put("fx_date", "Day of the exchange rate", fx_day, DATE, "", "The sheet's date unless said.",
             day("Day of the exchange rate"))  # fmt: skip
    for name, label, unit, note in _CONSTANTS:
        page.put(name, label, cost.CONSTANTS[name], WHOLE, unit, note, role="fixed")
    page.put(
        "is_committed", "Prices are commitments (0 or 1)", settings.is_committed, PLAIN, "",
        f"The prices on Instances are of the class {settings.purchase}; a reserved price is paid for all hours.",
        role="fixed",
    )  # fmt: skip
    _computed(page, cost.paid_hours_per_month, "hours", "Hours run, or all of the month under a commitment.")
    _owning(page)


def _owning(page: InputsSheet) -> None:
    owning = page.solved.question.owning
    page.section("Owning instead of renting (purchase prices and power stand on GPUs)")
    for name in TERMS:
        label, display, unit = _TERMS[name]
        term, (low, high) = owning.terms[name], TERMS[name]
        own = owning.values[name] == term.value
        named = "Our judgement" if term.source == "sheetgen" else term.source
        origin = f"{named}{f', {term.as_of}' if term.as_of else ''}" if own else f"Yours, not {term.value:g}"
        page.put(
            name, label, owning.values[name], display, unit, f"{term.reason}. {origin}.",
            number(label, low, high),
        )  # fmt: skip
    _computed(page, cost.purchase_share_per_year, "", "A straight line, or an annuity at the cost of capital.")


def _computed(page: InputsSheet, one: Formula, unit: str, note: str) -> None:
    """A quantity that follows from inputs alone: worked out here once, and read by many cells."""
    from sheetgen.sheet.book.inputs import LABEL, NOTE, UNIT, VALUE

    inputs: dict[str, Any] = dict(page.wiring.inputs)
    page.sheet.text(page.row, LABEL, one.label, "label")
    page.sheet.text(page.row, UNIT, unit, "unit")
    page.sheet.text(page.row, NOTE, note, "remark_wrapped")
    page.wiring.inputs[one.name] = page.sheet.compute(page.row, VALUE, one, inputs)
    page.row += 1
