"""Formulas of the Money sheet: the cheapest of each provider, and sentences."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import (
    both,
    first_where,
    formula,
    greatest_where,
    is_number,
    join_text,
    least_where,
    number_where,
    percent_text,
    same_money,
    where,
)
from sheetgen.units import PLAIN, TEXT, USD, USD_CENTS


@formula("$ per month", USD)
def provider_monthly_usd(provider: Any, monthly: Any, providers: Any) -> Any:
    """The least $ per month of one provider's instances for the load; none where none of them holds it.

    Source: the load's row on Candidates.
    """
    return least_where(monthly, monthly > 0, providers == provider, otherwise="-")


@formula("$ per instance and hour", USD_CENTS)
def provider_price(best: Any, provider: Any, monthly: Any, prices: Any, providers: Any) -> Any:
    """What an instance of that provider's cheapest costs an hour; the dearest, of which there are the fewest, where
    months tie.

    Source: INTERFACE (ties: fewer instances first).
    """
    return number_where(is_number(best), greatest_where(prices, same_money(monthly, best), providers == provider))


@formula("TP", PLAIN)
def provider_tp(best: Any, price: Any, provider: Any, monthly: Any, prices: Any, sizes: Any, providers: Any) -> Any:
    """Tensor-parallel size of that provider's cheapest; the smallest where the rest ties.

    Source: INTERFACE (ties: then smaller TP).
    """
    tied = same_money(monthly, best), providers == provider, same_money(prices, price)
    return number_where(is_number(best), least_where(sizes, *tied))


@formula("Column on Candidates", PLAIN)
def provider_position(
    best: Any, price: Any, size: Any, provider: Any, monthly: Any, prices: Any, sizes: Any, providers: Any
) -> Any:
    """Column of that provider's cheapest; the first in catalog order where all else ties.

    Source: INTERFACE (ties: then catalog order).
    """
    tied = same_money(monthly, best), providers == provider, same_money(prices, price), sizes == size
    return number_where(is_number(best), first_where(*tied))


@formula("Total in words", TEXT)
def total_words(currency: Any) -> Any:
    """The label of the line in the budget's currency.

    Source: the currency on Inputs.
    """
    return join_text("Total, ", currency)


@formula("GPUs to own", TEXT)
def owned_words(n_gpus: Any, gpu_name: Any) -> Any:
    """The GPUs of the replicas, as they would be bought.

    Source: the choice on Workings.
    """
    return where(is_number(n_gpus), join_text(n_gpus, "× ", gpu_name), "-")


@formula("Break-even in words", TEXT)
def break_even_words(low: Any, base: Any, high: Any) -> Any:
    """From which share of the month's hours owning is cheaper than renting on demand.

    Source: break-even utilization at the low, base and high price.
    """
    span = join_text(percent_text(low), " to ", percent_text(high))
    above = join_text("Owning is cheaper above ", percent_text(base), " of the hours (", span, ") than on demand.")
    never = join_text("Renting on demand is cheaper in any month (owning costs ", percent_text(base), " of it).")
    known = both(is_number(low), is_number(base), is_number(high))
    unknown = "The purchase price, the power or the on-demand price is not known."
    return where(known, where(base > 1, never, above), unknown)
