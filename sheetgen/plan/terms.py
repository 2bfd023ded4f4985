"""Terms: which machines are worth a commitment, and what a mix (`buy: mix`) orders as its base.

Machines are ranked by the hours in which they are needed, the busiest first. A machine is worth a commitment where
buying only those hours would cost more than the whole term. A mix judges that at the quantile of demand for which it
buys, a commitment over all draws of demand. Beyond the plan's last quarter demand stays as it is there, and prices go
on as expected; a term that lies more than half beyond the plan is not considered.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction

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


def worth_a_term(shares: Array, bought_usd: Array, term_usd: float, paid: Array | float = 1.0) -> Array:
    """By machine, True where its term costs less than buying the hours in which it is needed. shares: of all hours
    those, by quarter of the term and machine; bought_usd: by quarter, what all its hours cost when bought; term_usd:
    what a quarter of the term costs; paid: by quarter, the share of it in which the term runs."""
    weights = paid + numpy.zeros(len(shares))
    return numpy.asarray((shares * (bought_usd * weights)[:, None]).sum(axis=0) > term_usd * weights.sum())


def wanted_for_terms(
    plan: Plan, purchase: str, shares: Array, bought_usd: Array, term_usd: Array, most: Array
) -> Array:
    """By quarter, the number of machines that are worth a term which begins there, both in its first quarter and over
    its whole length: the term of an order of today that is late begins on the day on which it is delivered; 0 for
    quarters that are over by then. bought_usd, term_usd: what a machine costs in each quarter, bought_usd also after
    the plan's end; most: those that a quota allows in each quarter."""
    wanted, there, n = numpy.zeros(len(shares)), plan.position(plan.there_on(purchase)), len(shares)
    for q in range(n):
        late = float(max(Fraction(0), there - q))
        if late < 1 and quarters_of_term(purchase, q, n):
            ahead = range(q, q + QUARTERS_OF_TERM[purchase] + (late > 0))
            paid = numpy.ones(len(ahead))
            if late:
                paid[0], paid[-1] = 1 - late, late
            pays = worth_a_term(shares[in_plan(ahead, n)], bought_usd[ahead.start : ahead.stop], term_usd[q], paid)
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
    n, spans = len(shares), plan.spans
    bought = quarters_usd(plan, month_usd, range(n + max(QUARTERS_OF_TERM.values()) + 1))
    to_come = numpy.array([start >= plan.today_at for start in spans.starts])
    ways: list[tuple[Base, ...]] = [()]
    for purchase in sorted(QUARTERS_OF_TERM.keys() & months.keys(), key=QUARTERS_OF_TERM.__getitem__):
        of_term, term = months[purchase] * numpy.array(plan.months_of(purchase)), QUARTERS_OF_TERM[purchase]
        wanted = wanted_for_terms(plan, purchase, shares, bought, of_term, most)[spans.quarters] * to_come
        there = plan.position(plan.there_on(purchase))
        orders = zip(spans.starts, buying(plan, None, purchase).ordered(wanted[:, None])[:, 0].tolist(), strict=True)
        ways.append(
            tuple(
                Base(
                    instance,
                    purchase,
                    int(count),
                    start,
                    max(start, there),
                    term,
                    float(of_term[math.floor(start)]) / MONTHS_IN_A_QUARTER,
                )
                for start, count in orders
                if count
            )
        )
    return min(ways, key=lambda way: round(_usd(way, shares, bought), 6))


def _usd(base: tuple[Base, ...], shares: Array, bought_usd: Array) -> float:
    """The cost of a base and of the hours beside it in the plan."""
    n_quarters = len(shares)
    usd = sum(order.count * order.month_usd * MONTHS_IN_A_QUARTER * sum(order.shares(n_quarters)) for order in base)
    cuts = {place for order in base for place in (order.start, order.end) if place < n_quarters}
    for start, end in itertools.pairwise(sorted({*map(Fraction, range(n_quarters + 1)), *cuts})):
        q, count = math.floor(start), sum(order.count for order in base if order.start <= start < order.end)
        usd += float(end - start) * float(shares[q, count:].sum() * bought_usd[q])
    return usd
