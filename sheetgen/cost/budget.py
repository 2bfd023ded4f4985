"""The foot of a budget: the contingency in a line of its own, then the currency. Neither is inside a unit rate."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, both, formula, is_number, number_where
from sheetgen.units import USD, WHOLE


@formula("Contingency, $", USD)
def contingency_usd(usd: Quantity, contingency_fraction: Quantity) -> Any:
    """What is added for what nobody foresaw, in US dollars: a share of the sum, in a line of its own.

    Source: finance's convention; the share is an input.
    """
    return number_where(is_number(usd), usd * contingency_fraction)


@formula("Total, $", USD)
def total_usd(usd: Quantity, contingency_usd: Quantity) -> Any:
    """The sum and its contingency, in US dollars.

    Source: definition.
    """
    return number_where(both(is_number(usd), is_number(contingency_usd)), usd + contingency_usd)


@formula("Total in the budget's currency", WHOLE)
def in_currency(usd: Quantity, fx_rate: Quantity) -> Any:
    """US dollars in the budget's currency, at the rate on Inputs: units of that currency for one dollar.

    Source: definition; prices are in dollars, and only totals are converted.
    """
    return number_where(is_number(usd), usd * fx_rate)
