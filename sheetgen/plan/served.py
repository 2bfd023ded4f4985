"""The share of each service's demand that a limit leaves: a quarter's budget, a quota, or the machines of a date.

Services are served in the order of their priority, those of the same in the plan's. Each has as much of its demand as
what the ones before it leave of the limit is enough for, in steps; so a small service may have all of its own behind a
large one that has not. The cost of the next step of the first that has not all stands beside it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy

from sheetgen.plan.arrays import Array
from sheetgen.plan.decisions import BUDGET, MACHINES, QUOTA
from sheetgen.plan.orders import Unserved, quota_of
from sheetgen.plan.spending import reserve_usd
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.tables import OF_MONEY, OF_TYPE, Z
from sheetgen.plan.worked_plan import Answer

STEPS = 20  # of a service's demand
AT_ONCE = 500  # plans that are worked out together
ANYWAY = ("committed_usd", "owned_usd")


@dataclass(frozen=True)
class Served:
    """The share of a service's demand that a limit leaves, at the quantile that is bought."""

    service: int
    quarter: int
    limit: str
    instance: str | None  # of a quota, or of machines
    until: datetime.date | None  # the last day of machines
    share: float
    next_usd: float | None  # of the first that has not all of it, how much more the quarter costs with the next step


def in_order_of_priority(plan: Plan) -> list[int]:
    """The services by position, those that are served first first."""
    priorities = plan.priorities
    return sorted(range(len(priorities)), key=lambda s: priorities[s])


@dataclass(frozen=True)
class Limit:
    """A limit that does not hold in a quarter: its budget, in dollars, or the quota of a type, in machines."""

    kind: str
    quarter: int
    most: float
    place: int | None = None  # of the type

    def is_of(self, instance: int, quarter: int) -> bool:
        return quarter == self.quarter and self.place in (None, instance)


def served(answer: Answer, lost: Sequence[Unserved]) -> list[Served]:
    """By limit that does not hold the services on its machines, or all, and the share of its demand that each has.
    lost: what is not served until orders are there, and quotas are raised."""
    every = (*_within(answer, [*_limits(answer)]), *_of_a_date(answer, lost))
    kinds = [BUDGET, QUOTA, MACHINES]

    def limit(row: Served) -> tuple[int, int, datetime.date, str]:
        return row.quarter, kinds.index(row.limit), row.until or datetime.date.min, row.instance or ""

    return sorted(every, key=limit)  # of each as they come: by priority


def _of_a_date(answer: Answer, lost: Sequence[Unserved]) -> Iterator[Served]:
    """The services on machines that are short until a day."""
    days = {(gap.quarter, gap.instance, gap.last) for gap in lost}
    for q, instance, last in days:
        there = answer.on(instance, q)
        shares = {gap.service: gap.share for gap in lost if gap.quarter == q and gap.first <= last <= gap.last}
        for s in in_order_of_priority(answer.plan):
            if s in there:
                yield Served(s, q, MACHINES, instance, last, 1 - shares.get(s, 0.0), None)


def _limits(answer: Answer) -> Iterator[Limit]:
    """The limits that do not hold, by quarter."""
    plan = answer.plan
    left, rented = answer.money["budget_left_usd"][:, answer.case], answer.rented_instances[..., answer.case]
    quotas = {t: quota.limit for t, machine in enumerate(answer.types) if (quota := quota_of(plan, machine.instance))}
    for q, quarter in enumerate(plan.quarters):
        if left[q] < 0:
            yield Limit(BUDGET, q, plan.budget[quarter])
        yield from (Limit(QUOTA, q, float(most), t) for t, most in quotas.items() if rented[t, q] > most)


def _within(answer: Answer, limits: Sequence[Limit]) -> Iterator[Served]:
    """Of each limit the services that it is about, one after the other, each with as much as the limit leaves it."""
    every, placed = range(len(limits)), answer.hardware.placed
    subjects = {
        (i, s) for i in every for (s, q), there in placed.items() if limits[i].is_of(answer.place[there.instance], q)
    }
    # What a limit is not about is served; of what it is about, nothing at first.
    services = range(len(answer.plan.services))
    live = numpy.array([[float((i, s) not in subjects) for i in every] for s in services])
    nothing = _worked_out(answer, limits, live, every)
    # What is paid anyway serves, though that alone may be beyond the limit.
    most = [max(limit.most, used.of_limit) for limit, used in zip(limits, nothing, strict=True)]
    whole, spent = {*every}, [of_nothing.usd for of_nothing in nothing]
    for s in in_order_of_priority(answer.plan):
        mine = [i for i in every if (i, s) in subjects]
        tried = dict[tuple[int, int], _Used]()

        def fits(i: int, step: int, tried: Mapping[tuple[int, int], _Used] = tried) -> bool:
            return tried[i, step].of_limit <= most[i]

        for steps in ((1, STEPS), range(2, STEPS)):
            cases = [(i, step) for i in mine if 1 in steps or (fits(i, 1) and not fits(i, STEPS)) for step in steps]
            which = [i for i, _ in cases]
            shares = live[:, which]
            shares[s] = [step / STEPS for _, step in cases]
            tried |= zip(cases, _worked_out(answer, limits, shares, which), strict=True)
        for i in mine:
            n = STEPS if fits(i, STEPS) else next(step for step in range(1, STEPS + 1) if not fits(i, step)) - 1
            live[s, i], more = n / STEPS, None
            spent[i] = tried[i, n].usd if n else spent[i]
            if n < STEPS and i in whole:
                more = tried[i, n + 1].usd - spent[i]
                whole.remove(i)
            place = limits[i].place
            instance = None if place is None else answer.types[place].instance
            yield Served(s, limits[i].quarter, limits[i].kind, instance, None, n / STEPS, more)


@dataclass(frozen=True)
class _Used:
    """A plan's use of a limit, and what the limit's quarter costs without contingency."""

    usd: float
    of_limit: float  # dollars with contingency, or machines


def _worked_out(answer: Answer, limits: Sequence[Limit], live: Array, which: Sequence[int]) -> list[_Used]:
    """The use with these shares of the services' demands, by service and case, of the limit of each case; the
    least of the ways that there are, as a smaller plan may have no base."""
    plan = answer.plan
    ways = [plan, *([replace(plan, base=())] if plan.base else [])]
    at_once = max(1, AT_ONCE // plan.week.over_peak.shape[-1])
    used = list[_Used]()
    for first in range(0, len(which), at_once):
        columns = [_columns(answer, way, live[:, first : first + at_once]) for way in ways]
        usd, rented = (numpy.minimum.reduce(of_ways) for of_ways in zip(*columns, strict=True))
        for case, i in enumerate(which[first : first + at_once]):
            q, place = limits[i].quarter, limits[i].place
            spend, already = float(usd[q, case]), (float(answer.money[name][q, 0]) for name in ANYWAY)
            asked = spend + reserve_usd(spend, *already, plan.prices.contingency_fraction)
            used.append(_Used(spend, asked if place is None else float(rented[place, q, case])))
    return used


def _columns(answer: Answer, plan: Plan, live: Array) -> tuple[Array, Array]:
    """By quarter and case the spend, and by type the machines that are rented. plan: that of the answer, or with
    another base."""
    z = numpy.full(live.shape[1], Z[answer.plan.policy.plan_at])
    grid, _ = answer.at_demand(z, live, plan)
    return grid.spread("spend_usd", OF_MONEY), grid.spread("rented_instances", OF_TYPE)
