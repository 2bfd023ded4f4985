"""When what is bought is ordered, when it can be there, what covers it until then, and how long it is paid.

Machines of a class without a term are given back when nothing needs them. Those of a term are paid to its end at the
price at which they were signed; no more are ordered than those that run already leave missing. Nothing that is ordered
today is there before the days of approval and the lead time are over. No more machines are rented than the quota of the
day allows: those beyond it are there when it is raised, and nothing covers them until then.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy

from sheetgen.catalog.guidance import assumptions, number
from sheetgen.plan.arrays import Array
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER
from sheetgen.plan.schema import Quota
from sheetgen.plan.spending import arrives_day, cover_usd, missing_share, ordered_instances
from sheetgen.plan.stated_plan import Plan
from sheetgen.question.market import Candidate
from sheetgen.sizing import cost
from sheetgen.units import PURCHASES

CAPACITY_BLOCK = "capacity-block"
QUARTERS_OF_TERM = {"reserved-1yr": 4, "reserved-3yr": 12, CAPACITY_BLOCK: 1}  # other classes run on


@dataclass(frozen=True)
class Cover:
    """The class that serves in a quarter until an order is there."""

    purchase: str
    month_usd: float  # of one, at today's price
    missing: float  # share of the quarter that is over before this is there, too
    there_on: datetime.date


@dataclass(frozen=True)
class Buying:
    """How machines of a type are bought. missing: by quarter the share of it that is over before what is ordered today
    is there; covers: by quarter, where that is not 0; ordered: how the first so many are bought that were ordered
    before; beyond: how those are bought that a quota does not allow yet."""

    purchase: str
    there_on: datetime.date  # what is ordered today
    missing: tuple[float, ...]
    covers: tuple[Cover | None, ...]
    n_ordered: float = 0
    before: Buying | None = None  # those
    quota: float = math.inf  # of today, committed machines too
    beyond: Buying | None = None

    @property
    def term(self) -> int | None:
        """In quarters."""
        return QUARTERS_OF_TERM.get(self.purchase)

    @cached_property
    def first_there(self) -> int:
        """The first quarter in which something is there that is ordered today; one past the plan where none is."""
        return next((q for q in self._all if self.missing[q] < 1), len(self.missing))

    @cached_property
    def unserved(self) -> Array:
        """By quarter the share of it in which neither an order nor its cover is there."""
        return numpy.array(
            [share if cover is None else cover.missing for share, cover in zip(self.missing, self.covers, strict=True)]
        )

    @cached_property
    def running(self) -> Array:
        """Of a term, by the quarter of an order and every quarter: 1 where its machines are there, or were to be."""
        return numpy.array([[float(p <= q < self._starts(p) + self._term) for q in self._all] for p in self._all])

    @cached_property
    def paid(self) -> Array:
        """Of a term, by the quarter of an order and every quarter the share of it that is paid: all quarters of the
        term, from the day on which the machines are there."""
        q, first = numpy.array(self._all), numpy.array([[self._starts(p)] for p in self._all])
        late = numpy.append(self.missing, 0.0)[first]
        on_time, later = (((start <= q) & (q < start + self._term)).astype(float) for start in (first, first + 1))
        return numpy.asarray((1 - late) * on_time + late * later)

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

    def allowed(self, committed: Array | float) -> Array:
        """By quarter the machines that the quota of today allows to be rented beside those that are committed; those
        that were ordered before are within it."""
        return numpy.asarray(numpy.maximum(self.n_ordered, self.quota - committed))

    def most(self, committed: Array | float) -> Array:
        """By quarter the machines that may be there from its first day on beside those that are committed."""
        late = numpy.zeros(len(self.missing)) if self.beyond is None else numpy.array(self.beyond.missing)
        return numpy.where(late > 0, self.allowed(committed), math.inf)

    def parts(self, counts: Array, committed: Array) -> Iterator[tuple[Buying, Array]]:
        """Machines by quarter, the first side, as they are bought: those that were ordered before, those within the
        quota, and those beyond it. committed: by quarter."""
        within = numpy.minimum(counts, self.allowed(committed).reshape(-1, *[1] * (counts.ndim - 1)))
        ordered = numpy.minimum(counts, self.n_ordered)
        if self.before is not None:
            yield self.before, ordered
        yield self, within - ordered
        if self.beyond is not None:
            yield self.beyond, counts - within

    def wanted(self, short: Array) -> Array:
        """By quarter, the first side, and case how many machines orders are for: those that are short; before anything
        can be there no more than are short still when it is."""
        wanted = numpy.array(short)
        for q in reversed(range(min(self.first_there, len(wanted) - 1))):
            wanted[q] = numpy.minimum(wanted[q], wanted[q + 1])
        return wanted

    def ordered(self, wanted: Array) -> Array:
        """Of a term, by quarter and case the machines that are ordered: those that are wanted beyond what runs."""
        orders = numpy.zeros(wanted.shape)
        for q in self._all:
            orders[q] = ordered_instances(wanted[q], self._runs(orders, q))
        return orders

    def ordered_beyond(self, wanted: Array, committed: Array) -> tuple[Array, Array]:
        """The same of orders within the quota, and of those beyond it: of what is ordered before it is raised so many
        as are more than it allows, and what follows these when their term ends."""
        assert self.beyond is not None
        within, beyond = numpy.zeros(wanted.shape), numpy.zeros(wanted.shape)
        for q in self._all:
            runs, runs_beyond = self._runs(within, q), self.beyond._runs(beyond, q)
            new = ordered_instances(wanted[q], runs + runs_beyond)
            more = runs + new - self.allowed(committed)[q] if self.beyond.missing[q] else self.beyond._ended(beyond, q)
            beyond[q] = numpy.clip(more, 0, new)
            within[q] = new - beyond[q]
        return within, beyond

    def _runs(self, ordered: Array, q: int) -> Array:
        """The machines that were ordered before a quarter, and run in it."""
        return numpy.asarray(numpy.tensordot(self.running[:q, q], ordered[:q], axes=(0, 0)))

    def _ended(self, ordered: Array, q: int) -> Array:
        """The machines whose term ends as a quarter begins."""
        ends = numpy.array([float(self._starts(p) + self._term == q) for p in range(q)])
        return numpy.asarray(numpy.tensordot(ends, ordered[:q], axes=(0, 0)))

    def paid_quarters(self, short: Array) -> Array:
        """Of a term, by the quarter at whose price, the first side, the quarters of machines that are paid for what is
        short."""
        flat = short.reshape(len(short), -1)
        months = self.machine_months(flat, self.ordered(self.wanted(flat)))
        return numpy.asarray(months.sum(axis=1).reshape(short.shape) / MONTHS_IN_A_QUARTER)

    def cover_usd(self, late: Array, price_factor: Array) -> Array:
        """The cost of what covers machines that are late, by quarter and case."""
        covers = [
            (cover.month_usd, share - cover.missing) if cover else (0.0, 0.0)
            for cover, share in zip(self.covers, self.missing, strict=True)
        ]
        month_usd, covered_share = numpy.array(covers).T[..., None]
        return numpy.asarray(cover_usd(late, month_usd, price_factor, covered_share, MONTHS_IN_A_QUARTER))

    def _moved(self, ordered: Array) -> Array:
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

    def machine_months(self, gap: Array, ordered: Array) -> Array:
        """By the quarter at whose price they are paid, by quarter and case: months of machines. Without a term a
        quarter has its own price, and machines that are not there are not paid."""
        if self.term is not None:
            return MONTHS_IN_A_QUARTER * (self.paid[..., None] * ordered[:, None] + self._moved(ordered))
        return _at_own_price(self.there(gap))

    def there(self, gap: Array) -> Array:
        """Without a term: months of the machines while they are there."""
        return numpy.asarray(MONTHS_IN_A_QUARTER * gap * (1 - numpy.array(self.missing))[:, None])


def _at_own_price(machine_months: Array) -> Array:
    """Months of machines by quarter and case, each at the price of its quarter: by the quarter at whose price first."""
    return numpy.eye(len(machine_months))[..., None] * machine_months[:, None]


def lead_days(plan: Plan, way: str) -> float:
    """Days from an order to its delivery, which nine of ten orders keep to; where none is stated 0, of a capacity block
    those that are judged."""
    band = plan.supply.lead_time_days.get(way)
    if band is None:
        return number(assumptions(plan.catalog), "capacity_block_lead_days") if way == CAPACITY_BLOCK else 0.0
    return band.p90


def there_after(plan: Plan, days: float) -> datetime.date:
    """The day on which something that takes so many days is there, for which approval is requested on the day of the
    plan."""
    return datetime.date.fromordinal(int(arrives_day(plan.as_of.toordinal(), days, plan.policy.approval_days)))


def there_on(plan: Plan, way: str) -> datetime.date:
    """The day on which something of a class is there that is ordered today."""
    return there_after(plan, lead_days(plan, way))


def missing_until(plan: Plan, day: datetime.date) -> tuple[float, ...]:
    """By quarter the share of its days that go by, from today on, until a day."""
    arrives, today = day.toordinal(), plan.as_of.toordinal()
    days = ((plan.first_day(quarter).toordinal(), plan.last_day(quarter).toordinal() + 1) for quarter in plan.quarters)
    return tuple(float(missing_share(arrives, first, after, today)) for first, after in days)


def allowed_prices(plan: Plan, candidate: Candidate) -> dict[str, float]:
    """By purchase class what an hour of an instance costs as listed, of the classes that may be used."""
    prices = dict[str, float]()
    for purchase in PURCHASES:
        price, may = candidate.class_price(purchase), plan.supply.allowed.may_buy(purchase)
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


def quota_of(plan: Plan, instance: str) -> Quota | None:
    """The quota of a type of machine; of several the smallest."""
    mine = (quota for quota in plan.supply.quota if plan.machine(quota.type) == instance)
    return min(mine, key=lambda quota: quota.limit, default=None)


def raised_on(plan: Plan, quota: Quota) -> datetime.date:
    """The day from which on a quota no longer limits what is rented, where it is asked for today that it is raised."""
    return there_after(plan, quota.request_lead_days)


def buying(
    plan: Plan,
    candidate: Candidate | None,
    purchase: str,
    quota: Quota | None = None,
    ordered: tuple[int, datetime.date] | None = None,
) -> Buying:
    """How machines of a type are bought in a class: those that were ordered before, within a quota and beyond it."""
    whole = _buying(plan, candidate, purchase, plan.as_of)
    if ordered is not None:
        n_ordered, day = ordered
        before = Buying(purchase, day, missing_until(plan, max(day, plan.as_of)), (None,) * len(plan.quarters))
        whole = replace(whole, n_ordered=float(n_ordered), before=before)
    if quota is None or not any(missing_until(plan, day := raised_on(plan, quota))):
        return whole
    return replace(whole, quota=float(quota.limit), beyond=_buying(plan, candidate, purchase, day))


def _buying(plan: Plan, candidate: Candidate | None, purchase: str, earliest: datetime.date) -> Buying:
    """How machines are bought in a class that are there on a day at the earliest: an order that cannot be there in time
    is covered by the class that leaves the least of the quarter unserved, of several the cheapest, where one without a
    term, or of a quarter at most, is there sooner.
    """

    def there(way: str) -> datetime.date:
        return max(earliest, there_on(plan, way))

    missing = missing_until(plan, there(purchase))
    covers: list[Cover | None] = [None] * len(missing)
    if any(missing):
        months = class_months(plan, candidate)
        others = {
            other: missing_until(plan, there(other))
            for other in months
            if other != purchase and QUARTERS_OF_TERM.get(other, 0) <= 1
        }
        for q, share in enumerate(missing):
            sooner = [(gone[q], months[other], other) for other, gone in others.items() if gone[q] < share]
            if sooner:
                still, usd, other = min(sooner)
                covers[q] = Cover(other, usd, still, there(other))
    return Buying(purchase, there(purchase), missing, tuple(covers))


@dataclass(frozen=True)
class Bought:
    """Purchases of a type: machines that are ordered, there (or to be there), paid by month at the price of each
    quarter's orders, short until an order is there; by quarter and case."""

    ordered: Array
    gap: Array
    machine_months: Array  # quarters at whose price, quarters, cases
    late: Array  # short of in the quarter's share that is missing
    cover_usd: Array


def wanted(way: Buying, short: Array, committed: Array) -> Array:
    """By quarter, the first side, the machines that orders are for, within a quota and beyond it."""
    return numpy.asarray(sum(part.wanted(counts) for part, counts in way.parts(short, committed)))


def bought(
    way: Buying, short: Array, kept_gap: Array, committed: Array, price_factor: Array, weights: Array | None = None
) -> list[tuple[Buying, Bought]]:
    """Purchases of a type in its parts. short, and what is bought without a term:
    by quarter and case; of a type that is rented for the hours in which something needs it by hour too, whose weights
    are given. committed: by quarter."""
    parts, gaps = [*way.parts(short, committed)], [gap for _, gap in way.parts(kept_gap, committed)]
    orders: Sequence[Array] = [numpy.zeros(price_factor.shape)] * len(parts)
    if way.term is not None:
        wants = wanted(way, short, committed)
        orders = [way.ordered(wants)] if way.beyond is None else way.ordered_beyond(wants, committed)
        gaps = [numpy.tensordot(part.running.T, orders[i], axes=(1, 0)) for i, (part, _) in enumerate(parts)]
    return [
        (part, _bought(part, counts, gap, ordered, price_factor, weights))
        for (part, counts), gap, ordered in zip(parts, gaps, orders, strict=True)
    ]


def _bought(
    way: Buying, short: Array, gap: Array, ordered: Array, price_factor: Array, weights: Array | None
) -> Bought:
    if weights is None:
        most, late, on_average, months = gap, short, short, way.machine_months(gap, ordered)
    else:
        most, late, on_average = gap.max(axis=-1), short.max(axis=-1), short @ weights
        months = _at_own_price(way.there(gap @ weights))
    is_late = (numpy.array(way.missing) > 0)[:, None]
    return Bought(ordered, most, months, late * is_late, way.cover_usd(on_average * is_late, price_factor))


def added(parts: Sequence[tuple[Buying, Bought]]) -> Bought:
    """Purchases of a type together."""
    return Bought(*(sum(getattr(part, entry.name) for _, part in parts) for entry in fields(Bought)))


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
