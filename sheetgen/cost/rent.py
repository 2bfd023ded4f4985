"""What renting costs: from whole instances to an hour, a month and years; a user and a million tokens; the currency.

Money rounds once, when it is shown. Contingency is a line of its own, then comes the currency: neither is inside a
unit rate.
"""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, both, formula, is_number, largest, number_where, ratio, round_up, where
from sheetgen.sizing import parallelism
from sheetgen.units import ONE_DECIMAL, USD, USD_CENTS, WHOLE

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


SECONDS_IN_AN_HOUR = 3600
TOKENS_IN_A_MILLION = 10**6


@formula("$ per user and month", USD_CENTS)
def usd_per_user_per_month(monthly_usd: Quantity, users: Quantity) -> Any:
    """A month's cost over the people served, in US dollars.

    Source: users = requests in flight / the share of users active at the peak.
    """
    return number_where(both(is_number(monthly_usd), users > 0), ratio(monthly_usd, users))


@formula("Million answer tokens a month", ONE_DECIMAL)
def million_output_tokens_per_month(
    output_tokens_per_second: Quantity, utilization: Quantity, hours_per_month: Quantity, seconds_in_an_hour: Quantity,
    tokens_in_a_million: Quantity,
) -> Any:  # fmt: skip
    """Tokens of answers that all replicas write in a month, in millions.

    They do this load in `utilization` of the hours that they run, and nothing in the rest.

    Source: tokens per second x seconds of the hours run x utilization.
    """
    seconds = seconds_in_an_hour * hours_per_month * utilization
    return number_where(is_number(output_tokens_per_second), output_tokens_per_second * seconds / tokens_in_a_million)


@formula("Million prompt tokens a month", ONE_DECIMAL)
def million_input_tokens_per_month(
    million_output_tokens_per_month: Quantity, input_tokens: Quantity, output_tokens: Quantity
) -> Any:
    """Tokens of prompts that all replicas take in beside those answers, in millions; cached ones too.

    Source: each request brings its prompt once and its answer once.
    """
    known = both(is_number(million_output_tokens_per_month), output_tokens > 0)
    return number_where(known, million_output_tokens_per_month * ratio(input_tokens, output_tokens))


def _per_million(usd: Quantity, millions: Quantity, *known: Quantity) -> Any:
    return number_where(both(*known, is_number(millions), millions > 0), ratio(usd, millions))


@formula("$ per million prompt tokens", USD_CENTS)
def usd_per_million_input_tokens(
    monthly_usd: Quantity, prefill_fraction: Quantity, million_input_tokens_per_month: Quantity
) -> Any:
    """The part of the bill that pays for reading prompts, over the prompts' tokens of a month, in US dollars.

    Source: the bill is split by GPU time: the share of it that prefill takes.
    """
    known = is_number(monthly_usd), is_number(prefill_fraction)
    return _per_million(monthly_usd * prefill_fraction, million_input_tokens_per_month, *known)


@formula("$ per million answer tokens", USD_CENTS)
def usd_per_million_output_tokens(
    monthly_usd: Quantity, prefill_fraction: Quantity, million_output_tokens_per_month: Quantity
) -> Any:
    """The rest of the bill, over the answers' tokens of a month, in US dollars.

    Source: the bill is split by GPU time: what prefill does not take, writing the answers takes.
    """
    known = is_number(monthly_usd), is_number(prefill_fraction)
    return _per_million(monthly_usd * (1 - prefill_fraction), million_output_tokens_per_month, *known)


@formula("$ per million tokens", USD_CENTS)
def usd_per_million_tokens(
    monthly_usd: Quantity, million_input_tokens_per_month: Quantity, million_output_tokens_per_month: Quantity
) -> Any:
    """The whole bill over all tokens of a month, prompts and answers together, in US dollars.

    Source: definition. Check: prompts and answers at their own rates add up to the bill.
    """
    millions = million_input_tokens_per_month + million_output_tokens_per_month
    known = (
        is_number(monthly_usd),
        is_number(million_input_tokens_per_month),
        is_number(million_output_tokens_per_month),
    )
    return number_where(both(*known, million_output_tokens_per_month > 0), ratio(monthly_usd, millions))


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
