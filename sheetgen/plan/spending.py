"""Money of a plan: prices as they are expected, what is bought and paid anyway, budgets, days and delays."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import (
    Quantity,
    formula,
    is_number,
    largest,
    number_where,
    power,
    ratio,
    round_up,
    where,
)
from sheetgen.sizing.cost import contingency_usd
from sheetgen.units import DATE, ONE_DECIMAL, PERCENT, TEXT, USD, USD_CENTS

WITHIN, OVER_AT_P90, OVER, NO_BUDGET = "within", "over at p90", "over at p50", "no budget"
A_CENT = 0.01  # amounts that differ by less are the same


@formula("US dollars", USD)
def in_dollars(amount: Quantity, fx_rate: Quantity) -> Any:
    """An amount of the plan's currency in US dollars; none of none.

    Source: in_currency, the other way round.
    """
    return number_where(is_number(amount), amount / fx_rate)


@formula("Price over today's", PERCENT)
def price_factor(expected_change_per_year: Quantity, quarters_ahead: Quantity, quarters_in_a_year: Quantity) -> Any:
    """The price that is expected, over today's.

    Source: the change a year that is expected, compounded. Check: -20 % a year is 0.894 after two quarters.
    """
    return power(1 + expected_change_per_year, quarters_ahead / quarters_in_a_year)


@formula("Price of an order over today's", PERCENT)
def order_price_factor(
    expected_change_per_year: Quantity, order_quarters_ahead: Quantity, quarters_in_a_year: Quantity
) -> Any:
    """The price that is expected when machines are ordered, over today's: of a term when it is signed, as a price that
    is signed does not fall.

    Source: price_factor.
    """
    return price_factor(expected_change_per_year, order_quarters_ahead, quarters_in_a_year)


@formula("$ per machine and month", USD)
def quarter_instance_month_usd(instance_month_usd: Quantity, order_price_factor: Quantity) -> Any:
    """The cost of one instance in a month of the quarter, less the discount, in US dollars.

    Source: instance_month_usd, at the price expected when it is ordered.
    """
    return instance_month_usd * order_price_factor


@formula("Machines that are there")
def there_instances(
    needed_instances: Quantity,
    owned_instances: Quantity,
    committed_instances: Quantity,
    gap: Quantity,
    lent_instances: Quantity,
) -> Any:
    """Instances of a type that are owned, committed or bought, with those of other types that serve it and less those
    that serve others (lent_instances), and no fewer than are needed.

    Source: definition.
    """
    return largest(needed_instances, owned_instances + committed_instances + gap + lent_instances)


@formula("$ per machine and month, on average", USD)
def mean_month_usd(
    bought_usd: Quantity, paid_usd: Quantity, there_instances: Quantity, months_in_a_quarter: Quantity
) -> Any:
    """The cost of one instance of a type in a month on average over all that are there: what is bought, and what the
    owned and committed ones cost anyway (paid_usd); in US dollars.

    Source: definition.
    """
    return ratio((bought_usd + paid_usd) / months_in_a_quarter, there_instances)


@formula("$ per month", USD)
def service_month_usd(own_instances: Quantity, mean_month_usd: Quantity) -> Any:
    """A service's part of the instances at what they cost on average, in US dollars a month.

    Source: own_instances, mean_month_usd.
    """
    return own_instances * mean_month_usd


@formula("Spend, $", USD)
def spend_usd(bought_of_all_usd: Quantity, committed_usd: Quantity, owned_usd: Quantity, late_usd: Quantity) -> Any:
    """The cost of a quarter: what is bought, what covers late orders, commitments whether used or not, and what is
    owned; in US dollars, without contingency.

    Source: definition.
    """
    return bought_of_all_usd + late_usd + committed_usd + owned_usd


@formula("Contingency, $", USD)
def reserve_usd(
    spend_usd: Quantity, committed_usd: Quantity, owned_usd: Quantity, contingency_fraction: Quantity
) -> Any:
    """The contingency of a quarter, a line of its own, in US dollars: of what is not owned or committed already, whose
    price is known.

    Source: contingency_usd.
    """
    return contingency_usd(spend_usd - committed_usd - owned_usd, contingency_fraction)


@formula("Budget left, $", USD)
def budget_left_usd(budget_usd: Quantity, spend_usd: Quantity, reserve_usd: Quantity) -> Any:
    """The rest of a quarter's budget after spend and contingency, in US dollars; below 0 where they are over it;
    none without a budget.

    Source: definition.
    """
    return number_where(is_number(budget_usd), budget_usd - spend_usd - reserve_usd)


@formula("Budget", TEXT)
def budget_verdict(budget_left_p50_usd: Quantity, budget_left_p90_usd: Quantity) -> Any:
    """The verdict on the budget of a quarter, contingency counted: within; over at p90 alone, or at p50 already.

    Source: budget_left_usd.
    """
    at_p90 = where(budget_left_p90_usd < 0, OVER_AT_P90, WITHIN)
    return where(is_number(budget_left_p50_usd), where(budget_left_p50_usd < 0, OVER, at_p90), NO_BUDGET)


@formula("Million tokens a month", ONE_DECIMAL)
def month_million_tokens(
    requests_per_second: Quantity,
    mean_over_peak: Quantity,
    tokens_per_request: Quantity,
    hours_per_month: Quantity,
    seconds_in_an_hour: Quantity,
    tokens_in_a_million: Quantity,
) -> Any:
    """Tokens of a month, in millions, of a rate whose mean is so much of its peak.

    Source: definition. Check: 10 a second at peak, a quarter of it on average, of 1,000 tokens are 6,570 in 730 hours.
    """
    tokens = requests_per_second * mean_over_peak * tokens_per_request * seconds_in_an_hour * hours_per_month
    return tokens / tokens_in_a_million


@formula("$ per million tokens", USD_CENTS)
def usd_per_million_planned(service_month_usd: Quantity, month_million_tokens: Quantity) -> Any:
    """A service's month over the tokens of a month, prompts and answers together, in US dollars.

    Source: month_million_tokens.
    """
    return ratio(service_month_usd, month_million_tokens)


@formula("Order by", DATE)
def order_by_day(first_day: Quantity, lead_days: Quantity, approval_days: Quantity) -> Any:
    """The day by which approval must be requested, so that an order is there on the first day; in days.

    Source: the lead time that nine of ten orders keep to, and the days of approval.
    """
    return first_day - round_up(lead_days) - approval_days


@formula("Ordered today, there on", DATE)
def arrives_day(as_of_day: Quantity, lead_days: Quantity, approval_days: Quantity) -> Any:
    """The day on which an order is there for which approval is requested on the day of the plan; in days.

    Source: order_by_day, the other way round.
    """
    return as_of_day + approval_days + round_up(lead_days)


@formula("Cost of waiting, $", USD)
def waiting_usd(
    cover_month_usd: Quantity, planned_month_usd: Quantity, n_instances: Quantity, months_in_a_quarter: Quantity
) -> Any:
    """The extra cost of a quarter's delay: what covers it until then, over the price that is planned; in US dollars.

    Source: definition; none where nothing that costs more covers it: then a delay costs service, not money.
    """
    more = cover_month_usd - planned_month_usd
    return number_where(more > 0, more * n_instances * months_in_a_quarter)


@formula("Machines ordered")
def ordered_instances(wanted_instances: Quantity, running_instances: Quantity) -> Any:
    """Instances that are ordered of a class with a term: those that are wanted beyond those whose term still runs.

    Source: definition.
    """
    return largest(0, wanted_instances - running_instances)


@formula("Cover of late orders, $", USD)
def cover_usd(
    late_instances: Quantity,
    cover_month_usd: Quantity,
    price_factor: Quantity,
    covered_share: Quantity,
    months_in_a_quarter: Quantity,
) -> Any:
    """The cost of the machines that serve in place of late orders until those are there, in US dollars.

    Source: definition; for the share of the quarter between the days on which either is there.
    """
    return late_instances * cover_month_usd * price_factor * months_in_a_quarter * covered_share


@formula("Paid for a commitment, $", USD)
def committed_quarter_usd(
    count: Quantity, committed_month_usd: Quantity, months_in_a_quarter: Quantity, paid_share: Quantity
) -> Any:
    """The cost of a commitment in a quarter, used or not, in US dollars: for the share of its days that are paid.

    Source: definition.
    """
    return committed_month_usd * count * months_in_a_quarter * paid_share
