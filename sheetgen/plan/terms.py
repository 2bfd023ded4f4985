"""Terms: which machines are worth a commitment, and what a mix (`buy: mix`) orders as its base.

Machines are ranked by the hours in which they are needed, the busiest first. A machine is worth a commitment where
buying only those hours would cost more than the whole term. A mix judges that at the quantile of demand for which it
buys, a commitment over all draws of demand. Beyond the plan's last quarter demand stays as it is there, and prices go
on as expected; a term that lies more than half beyond the plan is not considered.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy

from sheetgen.plan.arrays import Array
from sheetgen.plan.orders import buying
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER, QUARTERS_OF_TERM
from sheetgen.plan.stated_plan import Base, Plan


def quarters_of_term(purchase: str, first: int, n_quarters: int) -> range:
    """The positions of a term's quarters, also those after the plan's end; none where these are more than half."""
    term = QUARTERS_OF_TERM[purchase]
    return range(first, first + term if 2 * (n_quarters - first) >= term else first)


def in_plan(ahead: range, n_quarters: int) -> Array:
    """For each quarter of a term the quarter of the plan whose demand it has: its own, or the last one."""
    return numpy.minimum(ahead, n_quarters - 1)


def quarters_usd(plan: Plan, month_usd: float, quarters: range) -> Array:
    """The cost of a machine in each of these quarters, also after the plan's end, where every hour is paid for."""
    return month_usd * numpy.array(plan.months_ahead(quarters))


def worth_a_term(shares: Array, bought_usd: Array, term_usd: float) -> Array:
    """By machine, True where its term costs less than buying the hours in which it is needed. shares: of all hours
    those, by quarter of the term and machine; bought_usd: by quarter, what all its hours cost when bought; term_usd:
    what a quarter of the term costs."""
    return numpy.asarray((shares * bought_usd[:, None]).sum(axis=0) > term_usd * len(shares))


def wanted_for_terms(
    plan: Plan, purchase: str, shares: Array, bought_usd: Array, term_usd: Array, most: Array
) -> Array:
    """By quarter, the number of machines that are worth a term which begins there, both in its first quarter and over
    its whole length; 0 for quarters whose first day comes before an order of today is delivered. bought_usd, term_usd:
    what a machine costs in each quarter, bought_usd also after the plan's end; most: those that a quota allows in each
    quarter."""
    wanted, day, n = numpy.zeros(len(shares)), plan.there_on(purchase), len(shares)
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
    """The orders of one instance type for the base of a mix, in the class whose term makes the plan cheapest; of equal
    ones the shortest term. shares: of all hours those in which a machine is needed, by quarter and machine; month_usd:
    a machine's month on demand; months: by class, its month in that class; most: those that a quota allows in each
    quarter."""
    n = len(shares)
    bought = quarters_usd(plan, month_usd, range(n + max(QUARTERS_OF_TERM.values())))
    ways: list[tuple[Base, ...]] = [()]
    for purchase in sorted(QUARTERS_OF_TERM.keys() & months.keys(), key=QUARTERS_OF_TERM.__getitem__):
        of_term = months[purchase] * numpy.array(plan.months_of(purchase))
        wanted = wanted_for_terms(plan, purchase, shares, bought, of_term, most)
        by_span = buying(plan, None, purchase).ordered(wanted[plan.spans.quarters, None])[:, 0]
        orders = plan.spans.sums(by_span)
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
