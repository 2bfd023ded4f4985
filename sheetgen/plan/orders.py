"""When what is bought is ordered, when it can be there, what covers it until then, and how long it is paid.

Machines of a class without a term are given back when nothing needs them. Those of a term are paid to its end at the
price at which they were signed; no more are ordered than those that run already leave missing. Nothing that is ordered
today is there before the days of approval and the lead time are over.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy

from sheetgen.catalog.guidance import assumptions, number
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER
from sheetgen.plan.spending import arrives_day, missing_share, ordered_instances
from sheetgen.plan.stated_plan import Plan
from sheetgen.question.market import Candidate
from sheetgen.sizing import cost
from sheetgen.units import PURCHASES

CAPACITY_BLOCK = "capacity-block"
QUARTERS_OF_TERM = {"reserved-1yr": 4, "reserved-3yr": 12, CAPACITY_BLOCK: 1}  # other classes run on


@dataclass(frozen=True)
class Cover:
    """What serves in a quarter until an order is there."""

    purchase: str
    month_usd: float  # of one, at today's price
    missing: float  # share of the quarter that is over before this is there, too
    until_then: datetime.date  # the day on which it is there


@dataclass(frozen=True)
class Buying:
    """How machines of a type are bought. missing: by quarter the share of it that is over before what is ordered today
    is there; covers: by quarter, where that is not 0."""

    purchase: str
    there_on: datetime.date  # what is ordered today
    missing: tuple[float, ...]
    covers: tuple[Cover | None, ...]

    @property
    def term(self) -> int | None:
        """In quarters."""
        return QUARTERS_OF_TERM.get(self.purchase)

    @cached_property
    def first_there(self) -> int:
        """The first quarter in which something is there that is ordered today; one past the plan where none is."""
        return next((q for q in self._all if self.missing[q] < 1), len(self.missing))

    @cached_property
    def unserved(self) -> Any:
        """By quarter the share of it in which neither an order nor its cover is there."""
        return numpy.array(
            [share if cover is None else cover.missing for share, cover in zip(self.missing, self.covers, strict=True)]
        )

    @cached_property
    def running(self) -> Any:
        """Of a term, by the quarter of an order and every quarter: 1 where its machines are there, or were to be."""
        return numpy.array([[float(p <= q < self._starts(p) + self._term) for q in self._all] for p in self._all])

    @cached_property
    def paid(self) -> Any:
        """Of a term, by the quarter of an order and every quarter the share of it that is paid: all quarters of the
        term, from the day on which the machines are there."""
        shares = numpy.zeros(self.running.shape)
        for p in self._all:
            first = self._starts(p)
            late = self.missing[first] if first in self._all else 0.0
            for q in self._all:
                shares[p, q] = (1 - late) * (first <= q < first + self._term) + late * (first < q <= first + self._term)
        return shares

    @property
    def _all(self) -> range:
        return range(len(self.missing))

    @property
    def _term(self) -> int:
        assert self.term is not None
        return self.term

    def _starts(self, p: int) -> int:
        """The quarter from which an order's machines are paid."""
        return max(p, self.first_there)

    def wanted(self, short: Any) -> Any:
        """By quarter, the first side, and case how many machines orders are for: those that are short; before anything
        can be there no more than are short still when it is."""
        wanted = numpy.array(short)
        for q in reversed(range(min(self.first_there, len(wanted) - 1))):
            wanted[q] = numpy.minimum(wanted[q], wanted[q + 1])
        return wanted

    def ordered(self, wanted: Any) -> Any:
        """Of a term, by quarter and case the machines that are ordered: those that are wanted beyond what runs."""
        orders = numpy.zeros(wanted.shape)
        for q in self._all:
            runs = numpy.tensordot(self.running[:q, q], orders[:q], axes=(0, 0)) if q else 0.0
            orders[q] = ordered_instances(wanted[q], runs)
        return orders

    def paid_quarters(self, short: Any) -> Any:
        """Of a term, by the quarter at whose price, the first side, the quarters of machines that are paid for what is
        short."""
        flat = short.reshape(len(short), -1)
        months = self.machine_months(flat, self.ordered(self.wanted(flat)))
        return months.sum(axis=1).reshape(short.shape) / MONTHS_IN_A_QUARTER

    def _moved(self, ordered: Any) -> Any:
        """Of a term what is paid later than by whole quarters: an order in place of one that was there late begins, and
        ends, on the day of the year on which that did."""
        moved, n = numpy.zeros((len(ordered), *ordered.shape)), len(ordered)
        first = self.first_there
        if first < n and (late := self.missing[first]):
            ends = ordered[: first + 1].sum(axis=0)
            for q in range(first + self._term, n, self._term):
                ends = numpy.minimum(ends, ordered[q])
                moved[q, q] -= late * ends
                moved[q, q + self._term : q + self._term + 1] += late * ends
        return moved

    def machine_months(self, gap: Any, ordered: Any) -> Any:
        """By the quarter at whose price they are paid, by quarter and case: months of machines. Without a term a
        quarter has its own price, and machines that are not there are not paid."""
        if self.term is not None:
            return MONTHS_IN_A_QUARTER * (self.paid[..., None] * ordered[:, None] + self._moved(ordered))
        return _at_own_price(self.there(gap))

    def there(self, gap: Any) -> Any:
        """Without a term: months of the machines while they are there."""
        return MONTHS_IN_A_QUARTER * gap * (1 - numpy.array(self.missing))[:, None]


def _at_own_price(machine_months: Any) -> Any:
    """Months of machines by quarter and case, each at the price of its quarter: by the quarter at whose price first."""
    return numpy.eye(len(machine_months))[..., None] * machine_months[:, None]


def lead_days(plan: Plan, way: str) -> float:
    """Days from an order to its delivery, which nine of ten orders keep to; where none is stated 0, of a capacity block
    those that are judged."""
    band = plan.supply.lead_time_days.get(way)
    if band is None:
        return number(assumptions(plan.catalog), "capacity_block_lead_days") if way == CAPACITY_BLOCK else 0.0
    return band.p90


def there_on(plan: Plan, way: str) -> datetime.date:
    """The day on which something is there for which approval is requested on the day of the plan."""
    day = arrives_day(plan.as_of.toordinal(), lead_days(plan, way), plan.policy.approval_days)
    return datetime.date.fromordinal(int(day))


def missing_of(plan: Plan, way: str) -> tuple[float, ...]:
    """By quarter the share of its days that go by, from today on, until something is there that is ordered today."""
    arrives, today = there_on(plan, way).toordinal(), plan.as_of.toordinal()
    days = ((plan.first_day(quarter).toordinal(), plan.last_day(quarter).toordinal() + 1) for quarter in plan.quarters)
    return tuple(float(missing_share(arrives, first, after, today)) for first, after in days)


def allowed_prices(plan: Plan, candidate: Candidate) -> dict[str, float]:
    """By purchase class what an hour of an instance costs as listed, of the classes that may be used: those listed, or
    all but spot, which may be taken away."""
    prices, allowed = dict[str, float](), plan.supply.allowed
    for purchase in PURCHASES:
        price = candidate.class_price(purchase)
        listed = purchase in allowed.purchase if allowed.purchase else purchase != "spot"
        may = listed and purchase not in allowed.exclude
        if price is not None and (may or purchase == plan.class_of(candidate.instance)):
            prices[purchase] = price.usd_per_hour
    return prices


def class_months(plan: Plan, candidate: Candidate | None) -> dict[str, float]:
    """By purchase class a month of one instance, less the discount; nothing of one that serves nothing."""
    months = {}
    for purchase, listed in allowed_prices(plan, candidate).items() if candidate else ():
        hours = cost.paid_hours_per_month(
            plan.prices.hours_per_month, cost.HOURS_IN_A_MONTH, int(PURCHASES[purchase].committed)
        )
        usd = cost.discounted_usd_per_hour(listed, plan.prices.discount_fraction)
        months[purchase] = float(cost.instance_month_usd(usd, hours))
    return months


def buying(plan: Plan, candidate: Candidate | None, purchase: str) -> Buying:
    """How machines of a type are bought in a class: an order that cannot be there in time is covered by the class that
    leaves the least of the quarter unserved, of several the cheapest, where one without a term, or of a quarter at
    most, is there sooner.
    """
    missing = missing_of(plan, purchase)
    covers: list[Cover | None] = [None] * len(missing)
    if any(missing):
        months = class_months(plan, candidate)
        others = {
            other: missing_of(plan, other)
            for other in months
            if other != purchase and QUARTERS_OF_TERM.get(other, 0) <= 1
        }
        for q, share in enumerate(missing):
            sooner = [(gone[q], months[other], other) for other, gone in others.items() if gone[q] < share]
            if sooner:
                still, usd, other = min(sooner)
                covers[q] = Cover(other, usd, still, there_on(plan, other))
    return Buying(purchase, there_on(plan, purchase), missing, tuple(covers))


@dataclass(frozen=True)
class Bought:
    """What is bought of a type: machines that are ordered, there (or to be there), paid by month at the price of each
    quarter's orders, short until an order is there; by quarter and case."""

    ordered: Any
    gap: Any
    machine_months: Any  # quarters at whose price, quarters, cases
    late: Any  # short of in the quarter's share that is missing
    late_paid: Any  # of them those that a cover is paid for, on average over the hours


def bought(way: Buying, short: Any, kept_gap: Any) -> Bought:
    """Of a type; short, and what is bought without a term: by quarter and case."""
    wanted = way.wanted(short)
    ordered = way.ordered(wanted) if way.term is not None else numpy.zeros(wanted.shape)
    gap = kept_gap if way.term is None else numpy.tensordot(way.running.T, ordered, axes=(1, 0))
    late = short * (numpy.array(way.missing) > 0)[:, None]
    return Bought(ordered, gap, way.machine_months(gap, ordered), late, late)


def bought_by_hour(way: Buying, short: Any, gap: Any, weights: Any) -> Bought:
    """The same of a type that is rented for the hours in which something needs it: by quarter, case and hour, as most
    of an hour and as months of all. weights: of the hours."""
    is_late = (numpy.array(way.missing) > 0)[:, None]
    months = _at_own_price(way.there(gap @ weights))
    most = gap.max(axis=-1)
    return Bought(numpy.zeros(most.shape), most, months, short.max(axis=-1) * is_late, short @ weights * is_late)


def shed(filled: Mapping[int, float], priorities: Sequence[float], available: float) -> dict[int, float]:
    """By service the share of it that is not served by so many machines. filled: the machines that each fills;
    priorities: by service, the lowest number is served first; services of the same share what is left evenly."""
    left, lost = available, dict[int, float]()
    for priority in sorted({priorities[s] for s in filled}):
        mine = {s: n for s, n in filled.items() if priorities[s] == priority}
        whole = sum(mine.values())
        share = min(1.0, left / whole) if whole else 1.0
        left = max(0.0, left - whole)
        lost |= {s: 1 - share for s in mine if share < 1 - 1e-9}
    return lost
