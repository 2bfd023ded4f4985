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
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy

from sheetgen.plan.arrays import Array
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER, QUARTERS_OF_TERM
from sheetgen.plan.schema import Quota
from sheetgen.plan.spans import Spans, end_of_term
from sheetgen.plan.spending import cover_usd, ordered_instances
from sheetgen.plan.stated_plan import Plan
from sheetgen.question.market import Candidate
from sheetgen.sizing import cost
from sheetgen.units import PURCHASES


@dataclass(frozen=True)
class Cover:
    """The class that serves in a quarter until an order is there."""

    purchase: str
    month_usd: float  # of one, at today's price
    there_on: datetime.date


@dataclass(frozen=True)
class InTime:
    """Machines of another type that are there in time for all that is not served. usd: the cost of those days, at
    today's price, beside what is planned."""

    instance: str
    purchase: str
    n_instances: int
    there_on: datetime.date
    usd: float


@dataclass(frozen=True)
class OnOthers:
    """A share of a service that machines of another type serve: those that are idle or spare, or of an earlier order
    that is kept for it."""

    instance: str
    share: float
    was_ordered: bool


@dataclass(frozen=True)
class Unserved:
    """A share of a service that has no machine on some days of a quarter, as no order can be there (limit: MACHINES),
    or as no more may be rented until a quota is raised (QUOTA)."""

    service: int
    quarter: int
    instance: str
    first: datetime.date
    last: datetime.date
    share: float
    limit: str
    other: InTime | None = None  # the cheapest; none where nothing that is allowed is there in time
    on_others: tuple[OnOthers, ...] = ()  # beside it


@dataclass(frozen=True)
class Buying:
    """The way in which machines of a type are bought. covers: by span the class that serves until the order arrives,
    None where nothing does. before: the way in which the first `n_ordered` machines were bought, which an earlier plan
    ordered. beyond: the way for machines that the quota does not allow yet."""

    purchase: str
    spans: Spans
    there_on: datetime.date  # of an order that is placed today
    today: Fraction
    there: Fraction  # that day on the axis of quarters
    covers: tuple[Cover | None, ...]
    n_ordered: float = 0
    before: Buying | None = None
    quota: float = math.inf  # of today; committed machines count in it
    beyond: Buying | None = None

    @property
    def term(self) -> int | None:
        """The quarters of the class's term; None without one."""
        return QUARTERS_OF_TERM.get(self.purchase)

    @cached_property
    def missing(self) -> Array:
        """By span: 1 where it ends before an order of today arrives, else 0."""
        return self.spans.missing(self.today, self.there)

    @cached_property
    def unserved(self) -> Array:
        """By span: 1 where neither the order nor its cover serves, else 0."""
        return self.missing * [cover is None for cover in self.covers]

    @cached_property
    def ends(self) -> list[Fraction]:
        """The end of the term by the span in which the order is placed."""
        assert self.term is not None
        return [end_of_term(start, self.term, self.today, self.there) for start in self.spans.starts]

    @cached_property
    def running(self) -> Array:
        """By the span of an order and by span: 1 where the order's term runs, even if its machines are late."""
        starts, first = self.spans.starts, enumerate(self.ends)
        return numpy.array([[float(s >= p and start < end) for s, start in enumerate(starts)] for p, end in first])

    def allowed(self, committed: Array | float) -> Array:
        """By span the machines that may be rented within today's quota, beside the committed ones; those ordered by an
        earlier plan always may."""
        return numpy.asarray(numpy.maximum(self.n_ordered, self.quota - committed))

    def most(self, committed: Array | float) -> Array:
        """By quarter the most machines that can be there on its first day, beside the committed ones."""
        late = 0 if self.beyond is None else self.beyond.missing
        most = numpy.where(late, self.allowed(committed), math.inf) + numpy.zeros(len(self.spans))
        return most[self.spans.firsts]

    def split(self, counts: Array, committed: Array) -> list[tuple[Buying, Array]]:
        """The counts of machines, by span on their first axis, by way of buying: those an earlier plan ordered, those
        within the quota, and those beyond it."""
        within = numpy.minimum(counts, self.allowed(committed).reshape(-1, *[1] * (counts.ndim - 1)))
        ordered = numpy.minimum(counts, self.n_ordered)
        ways = [(self.before, ordered), (self, within - ordered), (self.beyond, counts - within)]
        return [(way, n) for way, n in ways if way is not None]

    def parts(self, counts: Array, committed: Array) -> Iterator[tuple[Buying, Array]]:
        """The same by span, case and hour: each hour first uses the machines that have arrived, then those that are
        covered."""
        parts = self.split(counts.max(axis=-1), committed)
        for i, (way, n) in enumerate(parts):
            others = [(other.is_ahead(way, k < i), m) for k, (other, m) in enumerate(parts) if k != i]
            ahead = sum((is_ahead[:, None] * m for is_ahead, m in others), numpy.zeros(n.shape))
            yield way, numpy.clip(counts - ahead[..., None], 0, n[..., None])

    def is_ahead(self, other: Buying, is_first: bool) -> Array:
        """By span: true where these machines are used before those of another way. is_first: the rule for a tie."""
        mine, theirs = self.missing + self.unserved, other.missing + other.unserved
        return numpy.asarray(mine <= theirs if is_first else mine < theirs)

    def wanted(self, short: Array) -> Array:
        """By span, on the first axis, the machines to order: the shortage; in a span that ends before an order can
        arrive no more than are still short when it does."""
        wanted = numpy.array(short)
        for s in reversed(numpy.flatnonzero(self.missing[:-1])):
            wanted[s] = numpy.minimum(wanted[s], wanted[s + 1])
        return wanted

    def ordered(self, wanted: Array) -> Array:
        """By span and case the machines ordered with a term: the wanted ones less those whose term still runs."""
        orders = numpy.zeros(wanted.shape)
        for s in range(len(orders)):
            orders[s] = ordered_instances(wanted[s], self._runs(orders, s))
        return orders

    def running_machines(self, short: Array) -> Array:
        """Of a term, by span, the first side, the machines that are there where orders are for what is short."""
        runs = self.running * (1 - self.missing)
        return numpy.asarray(numpy.tensordot(runs.T, self.ordered(self.wanted(short)), axes=(1, 0)))

    def ordered_beyond(self, wanted: Array, committed: Array) -> tuple[Array, Array]:
        """The same, split into orders within the quota and beyond it. Beyond it are the machines above the quota that
        are ordered before it is raised, and the orders that renew these when their term ends."""
        assert self.beyond is not None
        within, beyond = numpy.zeros(wanted.shape), numpy.zeros(wanted.shape)
        for s in range(len(wanted)):
            runs, runs_beyond = self._runs(within, s), self.beyond._runs(beyond, s)
            new = ordered_instances(wanted[s], runs + runs_beyond)
            more = runs + new - self.allowed(committed)[s] if self.beyond.missing[s] else self.beyond._ended(beyond, s)
            beyond[s] = numpy.clip(more, 0, new)
            within[s] = new - beyond[s]
        return within, beyond

    def _runs(self, ordered: Array, s: int) -> Array:
        """The machines of earlier spans' orders whose term runs in a span."""
        return numpy.asarray(numpy.tensordot(self.running[:s, s], ordered[:s], axes=(0, 0)))

    def _ended(self, ordered: Array, s: int) -> Array:
        """The machines whose term ends as a span begins."""
        return numpy.asarray(ordered[:s][[end == self.spans.starts[s] for end in self.ends[:s]]].sum(axis=0))

    def paid_quarters(self, short: Array) -> Array:
        """The machine-quarters that a shortage makes one pay for with a term, by the span whose price is paid, on the
        first axis."""
        flat = short.reshape(len(short), -1)
        months = self.machine_months(flat, self.ordered(self.wanted(flat)))
        return numpy.asarray(months.sum(axis=1).reshape(short.shape) / MONTHS_IN_A_QUARTER)

    def cover_usd(self, late: Array, price_factor: Array) -> Array:
        """The cost of covering late machines, by span and case."""
        month_usd = numpy.array([cover.month_usd if cover else 0.0 for cover in self.covers])[:, None]
        share = (self.missing * self.spans.shares)[:, None]
        return numpy.asarray(cover_usd(late, month_usd, price_factor, share, MONTHS_IN_A_QUARTER))

    def machine_months(self, gap: Array, ordered: Array) -> Array:
        """Machine-months by the span whose price is paid, by span and case: with a term from arrival to its end,
        without one at each span's own price."""
        there = MONTHS_IN_A_QUARTER * (1 - self.missing) * self.spans.shares
        if self.term is not None:
            return numpy.asarray((self.running * there)[..., None] * ordered[:, None])
        return numpy.asarray(numpy.eye(len(gap))[..., None] * (there[:, None] * gap)[:, None])


def class_months(plan: Plan, candidate: Candidate | None) -> dict[str, float]:
    """The discounted month of one instance by purchase class that may be used; empty without an instance."""
    months = dict[str, float]()
    if candidate is None:
        return months
    for purchase, way in PURCHASES.items():
        price, may = candidate.class_price(purchase), plan.supply.allowed.may_buy(purchase)
        if price is not None and (may or purchase == plan.class_of(candidate.instance)):
            hours = cost.paid_hours_per_month(plan.prices.hours_per_month, cost.HOURS_IN_A_MONTH, int(way.committed))
            usd = cost.discounted_usd_per_hour(price.usd_per_hour, plan.prices.discount_fraction)
            months[purchase] = float(cost.instance_month_usd(usd, hours))
    return months


def quota_of(plan: Plan, instance: str) -> Quota | None:
    """The quota of a type of machine; of several the smallest."""
    mine = (quota for quota in plan.supply.quota if plan.machine(quota.type) == instance)
    return min(mine, key=lambda quota: quota.limit, default=None)


def buying(
    plan: Plan,
    candidate: Candidate | None,
    purchase: str,
    quota: Quota | None = None,
    ordered: tuple[int, datetime.date] | None = None,
) -> Buying:
    """The way in which machines of a type are bought in a class, with those ordered by an earlier plan and those that
    wait for a larger quota."""
    whole = _buying(plan, candidate, purchase, plan.as_of)
    if ordered is not None:
        n_ordered, day = ordered
        whole = replace(whole, n_ordered=float(n_ordered), before=_from_day(plan, purchase, max(day, plan.as_of)))
    if quota is None or plan.position(day := plan.raised_on(quota)) <= plan.today_at:
        return whole
    return replace(whole, quota=float(quota.limit), beyond=_buying(plan, candidate, purchase, day))


def _from_day(plan: Plan, purchase: str, day: datetime.date) -> Buying:
    """The way in which machines are bought that arrive on a day, with nothing that serves until then."""
    return Buying(purchase, plan.spans, day, plan.today_at, plan.position(day), (None,) * len(plan.spans))


def _buying(plan: Plan, candidate: Candidate | None, purchase: str, earliest: datetime.date) -> Buying:
    """The way in which machines of a class are bought that arrive on a day at the earliest. A class without a term, or
    with one of a quarter at most, covers a late order where its machines arrive sooner: the one that leaves the least
    of the quarter unserved, the cheapest of equals.
    """
    way = _from_day(plan, purchase, max(earliest, plan.there_on(purchase)))
    if not way.missing.any():
        return way
    spans, covers, best = plan.spans, list[Cover | None](way.covers), dict[int, tuple[float, float, str]]()
    others = dict[str, Buying]()
    for other, month_usd in class_months(plan, candidate).items():
        if other != purchase and QUARTERS_OF_TERM.get(other, 0) <= 1:
            others[other] = _from_day(plan, other, max(earliest, plan.there_on(other)))
            for q, share in enumerate(spans.sums(others[other].missing * spans.shares).tolist()):
                best[q] = min(best.get(q, (math.inf, 0.0, "")), (share, month_usd, other))
    for s, q in enumerate(spans.quarters.tolist()):
        if q in best and way.missing[s] and not others[best[q][2]].missing[s]:
            _, month_usd, other = best[q]
            covers[s] = Cover(other, month_usd, others[other].there_on)
    return replace(way, covers=tuple(covers))


@dataclass(frozen=True)
class Bought:
    """Purchases of a type in one way, by span and case; counts are the most of any hour. gap: machines that serve, or
    would if they were not late."""

    way: Buying
    ordered: Array
    gap: Array
    machine_months: Array  # by the span whose price is paid, span and case
    late: Array  # machines whose order has not arrived
    cover_usd: Array


def wanted(way: Buying, short: Array, committed: Array) -> Array:
    """By span, case and hour the machines to order, within a quota and beyond it."""
    return numpy.asarray(sum(part.wanted(counts) for part, counts in way.split(short, committed)))


def bought(
    way: Buying, short: Array, kept_gap: Array, committed: Array, price_factor: Array, weights: Array
) -> list[Bought]:
    """The purchases of a type by way of buying. short, kept_gap: machines by span, case and hour, the latter of a class
    without a term. weights: of the hours. committed: machines by span."""
    parts, gaps = [*way.parts(short, committed)], [gap for _, gap in way.parts(kept_gap, committed)]
    orders: Sequence[Array] = [numpy.zeros(price_factor.shape)] * len(parts)
    if way.term is not None:
        wants = wanted(way, short, committed).max(axis=-1)
        orders = [way.ordered(wants)] if way.beyond is None else way.ordered_beyond(wants, committed)
        runs = zip(parts, orders, strict=True)
        gaps = [numpy.tensordot(part.running.T, ordered, axes=(1, 0))[..., None] for (part, _), ordered in runs]
    every = list[Bought]()
    for (part, counts), gap, ordered in zip(parts, gaps, orders, strict=True):
        late = counts * part.missing[:, None, None]
        months = part.machine_months(gap @ weights, ordered)
        cover = part.cover_usd(late @ weights, price_factor)
        every.append(Bought(part, ordered, gap.max(axis=-1), months, late.max(axis=-1), cover))
    return every


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
