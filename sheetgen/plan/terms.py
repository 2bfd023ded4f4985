"""Terms: the machines that are worth a price paid in every hour of a term, and what a mix orders for its base.

The machine that is needed in the most hours is the first, and so on. One is worth its term where the hours in which it
is needed cost more as they are bought otherwise than the term does: at the quantile that is bought for the base of a
mix, over all draws of the demand for a commitment. After the plan's end demand is as in its last quarter, and prices go
on as they are expected to; a term of which more than half lies there is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy

from sheetgen.plan.arrays import Array
from sheetgen.plan.orders import QUARTERS_OF_TERM, buying, there_on
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER
from sheetgen.plan.stated_plan import Base, Plan


def quarters_of_term(purchase: str, first: int, n_quarters: int) -> range:
    """The quarters of a term by position, on past the plan's end; none where more than half of them lie there."""
    term = QUARTERS_OF_TERM[purchase]
    return range(first, first + term if 2 * (n_quarters - first) >= term else first)


def in_plan(ahead: range, n_quarters: int) -> Array:
    """The quarters of the plan whose demand those of a term have."""
    return numpy.minimum(ahead, n_quarters - 1)


def quarters_usd(plan: Plan, month_usd: float, quarters: range) -> Array:
    """The cost of a machine in each of some quarters, on past the plan's end, where all hours are paid."""
    return month_usd * numpy.array(plan.months_ahead(quarters))


def worth_a_term(shares: Array, bought_usd: Array, term_usd: float) -> Array:
    """By machine whether its term costs less than the hours in which it is needed. shares: by quarter of the term and
    machine, of those hours; bought_usd: by quarter what all its hours cost otherwise; term_usd: a quarter of the
    term."""
    return numpy.asarray((shares * bought_usd[:, None]).sum(axis=0) > term_usd * len(shares))


def wanted_for_terms(
    plan: Plan, purchase: str, shares: Array, bought_usd: Array, term_usd: Array, most: Array
) -> Array:
    """By quarter the machines that are worth a term from then on, in its first quarter and over the whole of it; none
    before a quarter in which something that is ordered today is there from the first day on. bought_usd, term_usd: by
    quarter what one costs, the first on past the plan's end; most: by quarter those that a quota allows."""
    wanted, day, n = numpy.zeros(len(shares)), there_on(plan, purchase), len(shares)
    for q, quarter in enumerate(plan.quarters):
        ahead = quarters_of_term(purchase, q, n)
        if ahead and day <= plan.first_day(quarter):
            pays = worth_a_term(shares[in_plan(ahead, n)], bought_usd[ahead.start : ahead.stop], term_usd[q])
            n_paying = (pays & worth_a_term(shares[q : q + 1], bought_usd[q : q + 1], term_usd[q])).sum()
            wanted[q] = min(n_paying, most[q])
    return wanted


def base_of(
    plan: Plan, instance: str, shares: Array, month_usd: float, months: Mapping[str, float], most: Array
) -> tuple[Base, ...]:
    """The orders of a type for its base: in the class with a term in which the plan costs least, of those with the
    same the shortest. shares: by quarter and machine, of the hours in which it is needed; month_usd: of one on demand;
    months: by class what a month of one costs; most: by quarter those that a quota allows."""
    n = len(shares)
    bought = quarters_usd(plan, month_usd, range(n + max(QUARTERS_OF_TERM.values())))
    ways: list[tuple[Base, ...]] = [()]
    for purchase in sorted(QUARTERS_OF_TERM.keys() & months.keys(), key=QUARTERS_OF_TERM.__getitem__):
        of_term = quarters_usd(plan, months[purchase], range(n))
        wanted = wanted_for_terms(plan, purchase, shares, bought, of_term, most)
        orders = buying(plan, None, purchase).ordered(wanted[:, None])[:, 0]
        ways.append(
            tuple(
                Base(instance, purchase, int(count), q, QUARTERS_OF_TERM[purchase], float(usd) / MONTHS_IN_A_QUARTER)
                for q, (count, usd) in enumerate(zip(orders, of_term, strict=True))
                if count
            )
        )
    return min(ways, key=lambda way: round(_usd(way, shares, bought), 6))


def _usd(base: tuple[Base, ...], shares: Array, bought_usd: Array) -> float:
    """The cost of a base and of the hours above it in the plan."""
    n_quarters = len(shares)
    counts, usd = numpy.zeros(n_quarters, int), 0.0
    for order in base:
        runs = order.runs(n_quarters)
        counts[runs] += order.count
        usd += order.count * order.month_usd * MONTHS_IN_A_QUARTER * len(runs)
    return usd + sum(float(shares[q, counts[q] :].sum() * bought_usd[q]) for q in range(n_quarters))
