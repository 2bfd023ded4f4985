"""From whole instances to money: hourly, monthly, a year, three years. Money rounds once, when it is shown."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, both, formula, is_number, largest, number_where, ratio, round_up, where
from sheetgen.sizing import parallelism
from sheetgen.units import USD, USD_CENTS

HOURS_IN_A_MONTH = 730  # 8,760 hours of a year / 12: what a commitment pays for
MONTHS_IN_A_YEAR = 12
MONTHS_IN_THREE_YEARS = 36


@formula("$ per hour, paid", USD_CENTS)
def discounted_usd_per_hour(listed_usd_per_hour: Quantity, discount_fraction: Quantity) -> Any:
    """What an instance costs an hour under one's own contract, in US dollars: its price less the discount on Inputs.

    Source: the price that is listed, or typed, of any purchase class x (1 - discount).
    Check: p5.48xlarge at $55.04 less 20 % is $44.03.
    """
    return listed_usd_per_hour * (1 - discount_fraction)


@formula("Instances")
def n_instances(
    shared_replicas: Quantity, staged_instances: Quantity, replicas_per_instance: Quantity, n_heads: Quantity,
    full_kv_heads: Quantity, windowed_kv_heads: Quantity, larger_tensor_parallel_size: Quantity,
    price_usd_per_hour: Quantity,
) -> Any:  # fmt: skip
    """Whole instances for all replicas; none where the instance cannot hold the load or has no price, 0 where it
    holds it but no count meets the targets of speed.

    A replica without stages never spans instances: each instance carries floor(GPUs / TP) of them. A
    replica with stages takes one whole instance a stage, and only at the largest TP of the instance.

    Source: INTERFACE: ceil(n_replicas / floor(gpu_count / TP)).
    """
    shared = round_up(ratio(shared_replicas, replicas_per_instance))
    may_span = parallelism.may_span_instances(n_heads, full_kv_heads, windowed_kv_heads, larger_tensor_parallel_size)
    staged = number_where(both(is_number(staged_instances), may_span), staged_instances)
    held = where(is_number(shared_replicas), shared, staged)
    return number_where(both(replicas_per_instance >= 1, is_number(price_usd_per_hour)), held)


@formula("Hours paid for in a month")
def paid_hours_per_month(hours_per_month: Quantity, hours_in_a_month: Quantity, is_committed: Quantity) -> Any:
    """Hours that a month's bill counts: those run, or all of the month under a commitment (a reserved price).

    Source: reserved instances and committed-use discounts are billed whether they run or not.
    Check: 200 hours run under a reservation are billed as 730.
    """
    return where(is_committed == 1, largest(hours_per_month, hours_in_a_month), hours_per_month)


@formula("$ per hour", USD_CENTS)
def hourly_usd(n_instances: Quantity, price_usd_per_hour: Quantity) -> Any:
    """What all instances cost in an hour, in US dollars; none where there are none, or no price is known.

    Source: the provider's price of one instance.
    """
    known = both(is_number(n_instances), n_instances >= 1, is_number(price_usd_per_hour))
    return number_where(known, n_instances * price_usd_per_hour)


@formula("$ per month", USD)
def monthly_usd(hourly_usd: Quantity, paid_hours_per_month: Quantity) -> Any:
    """What all instances cost in a month, in US dollars, for the hours paid; none where there are none.

    Source: 730 hours a month (8,760 / 12), as cloud price lists count.
    Check: p5.48xlarge at $55.04 an hour is $40,179.20.
    """
    return number_where(is_number(hourly_usd), hourly_usd * paid_hours_per_month)


@formula("$ per year", USD)
def annual_usd(monthly_usd: Quantity, months_in_a_year: Quantity) -> Any:
    """What a year costs at today's price: twelve months, in US dollars.

    Source: definition.
    """
    return number_where(is_number(monthly_usd), monthly_usd * months_in_a_year)


@formula("$ in 3 years", USD)
def three_year_usd(monthly_usd: Quantity, months_in_three_years: Quantity) -> Any:
    """What three years cost at today's price: 36 months, in US dollars, for a three-year commitment as for others.

    Source: definition; nothing is discounted, and no price is foreseen.
    """
    return number_where(is_number(monthly_usd), monthly_usd * months_in_three_years)


@formula("Unused commitment, $ per month", USD)
def commitment_waste_usd(
    hourly_usd: Quantity, hours_per_month: Quantity, hours_in_a_month: Quantity, is_committed: Quantity
) -> Any:
    """The part of a month's bill that pays for hours not run, in US dollars: 0 without a commitment.

    Source: hours of the month not run x the committed rate.
    """
    paid = paid_hours_per_month(hours_per_month, hours_in_a_month, is_committed)
    return number_where(is_number(hourly_usd), hourly_usd * (paid - hours_per_month))
