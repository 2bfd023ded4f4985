"""A mix: the machines of a type that are worth a term by the hours in which they are needed, at the quantile that is
bought, and all above them on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

from sheetgen.plan.hours import base_orders
from sheetgen.plan.orders import QUARTERS_OF_TERM, there_on
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER
from sheetgen.plan.spending import price_factor
from sheetgen.plan.stated_plan import Base, Plan

QUARTERS_IN_A_YEAR = 4.0


def base_of(plan: Plan, instance: str, shares: Any, month_usd: float, months: Mapping[str, float]) -> tuple[Base, ...]:
    """What is ordered of a type for its base: in the class with a term in which the plan costs least, of those with the
    same the shortest. shares: by quarter and machine, of the hours in which it is needed; month_usd: of one on demand;
    months: by class what a month of one costs."""
    n_quarters, change = len(plan.quarters), plan.prices.expected_change_per_year.p50
    ahead = range(n_quarters + max(QUARTERS_OF_TERM.values()))
    factors = [float(price_factor(change, q, QUARTERS_IN_A_YEAR)) for q in ahead]
    ways: list[tuple[Base, ...]] = [()]
    for purchase in sorted(QUARTERS_OF_TERM.keys() & months.keys(), key=QUARTERS_OF_TERM.__getitem__):
        ways.append(tuple(_orders(plan, instance, shares, month_usd, purchase, months[purchase], factors)))
    return min(ways, key=lambda way: round(_usd(way, shares, month_usd, factors), 6))


def _orders(
    plan: Plan,
    instance: str,
    shares: Any,
    month_usd: float,
    purchase: str,
    term_month_usd: float,
    factors: Sequence[float],
) -> Iterator[Base]:
    """Those of one class, from the first quarter on in which they can be there."""
    term, day = QUARTERS_OF_TERM[purchase], there_on(plan, purchase)
    first = next((q for q, quarter in enumerate(plan.quarters) if day <= plan.first_day(quarter)), len(plan.quarters))
    bought, of_term = (
        [factor * usd * MONTHS_IN_A_QUARTER for factor in factors] for usd in (month_usd, term_month_usd)
    )
    for q, count in enumerate(base_orders(shares, bought, of_term, term, first)):
        if count:
            yield Base(instance, purchase, count, q, term, term_month_usd * factors[q])


def _usd(base: Sequence[Base], shares: Any, month_usd: float, factors: Sequence[float]) -> float:
    """What a base and the hours above it cost in the plan, by the month."""
    n_quarters = len(shares)
    counts, usd = numpy.zeros(n_quarters, int), 0.0
    for order in base:
        runs = order.runs(n_quarters)
        counts[runs] += order.count
        usd += order.count * order.month_usd * len(runs)
    return usd + sum(float(shares[q, counts[q] :].sum()) * month_usd * factors[q] for q in range(n_quarters))
