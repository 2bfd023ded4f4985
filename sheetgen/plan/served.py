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
from sheetgen.plan.decisions import BUDGET, MACHINES, QUOTA, Unserved
from sheetgen.plan.orders import quota_of
from sheetgen.plan.spending import reserve_usd
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.tables import Z
from sheetgen.plan.worked_plan import OF_MONEY, OF_TYPE, Answer

STEPS = 20  # of a service's demand
AT_ONCE = 500  # plans that are worked out together


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
    """A limit that does not hold in a quarter: its budget, or the quotas of some types, with the most of each."""

    kind: str
    quarter: int
    most: Mapping[int | None, float]  # dollars under none, machines by type


def served(answer: Answer, lost: Sequence[Unserved]) -> list[Served]:
    """By limit that does not hold the services on its machines, or all, and the share of its demand that each has.
    lost: what is not served until orders are there, and quotas are raised."""
    every = (*_within(answer, [*_limits(answer)]), *_of_a_date(answer, lost))
    kinds = [BUDGET, QUOTA, MACHINES]
    place = {s: i for i, s in enumerate(in_order_of_priority(answer.plan))}
    return sorted(
        every,
        key=lambda row: (
            row.quarter,
            kinds.index(row.limit),
            row.until or datetime.date.min,
            row.instance or "",
            place[row.service],
        ),
    )


def _of_a_date(answer: Answer, lost: Sequence[Unserved]) -> Iterator[Served]:
    """The services on machines that are short until a day."""
    days = {(gap.quarter, gap.instance, gap.last) for gap in lost}
    shares = {(gap.service, gap.quarter, gap.last): gap.share for gap in lost}
    for q, instance, last in days:
        for s in answer.on(instance, q):
            yield Served(s, q, MACHINES, instance, last, 1 - shares.get((s, q, last), 0.0), None)


def _limits(answer: Answer) -> Iterator[Limit]:
    """The limits that do not hold, by quarter."""
    plan = answer.plan
    left, rented = answer.money["budget_left_usd"][:, answer.case], answer.rented_instances[..., answer.case]
    quotas = {t: quota.limit for t, machine in enumerate(answer.types) if (quota := quota_of(plan, machine.instance))}
    for q, quarter in enumerate(plan.quarters):
        if left[q] < 0:
            yield Limit(BUDGET, q, {None: plan.budget[quarter]})
        over: dict[int | None, float] = {t: float(limit) for t, limit in quotas.items() if rented[t, q] > limit}
        if over:
            yield Limit(QUOTA, q, over)


def _within(answer: Answer, limits: Sequence[Limit]) -> Iterator[Served]:
    """Of each limit the services that it is about, one after the other, each with as much as the limit leaves it."""
    if not limits:
        return
    subjects = {
        (i, s): None if limit.kind == BUDGET else answer.place[place.instance]
        for i, limit in enumerate(limits)
        for (s, q), place in answer.hardware.placed.items()
        if q == limit.quarter and (limit.kind == BUDGET or answer.place[place.instance] in limit.most)
    }
    # What a limit is not about is served; of what it is about, nothing at first.
    services = range(len(answer.plan.services))
    live = numpy.array([[float((i, s) not in subjects) for i in range(len(limits))] for s in services])
    nothing = _worked_out(answer, limits, live, [*range(len(limits))])
    # What is paid anyway serves, though that alone may be beyond the limit.
    most = {(i, t): max(usd, nothing[i].used(t)) for i, limit in enumerate(limits) for t, usd in limit.most.items()}
    whole, spent = set(most), {i: of_nothing.usd for i, of_nothing in enumerate(nothing)}
    for s in in_order_of_priority(answer.plan):
        mine = [i for i in range(len(limits)) if (i, s) in subjects]
        tried = dict[tuple[int, int], _Used]()

        def fits(i: int, step: int, s: int = s, tried: Mapping[tuple[int, int], _Used] = tried) -> bool:
            subject = subjects[i, s]
            return tried[i, step].used(subject) <= most[i, subject]

        for steps in ((1, STEPS), range(2, STEPS)):
            cases = [(i, step) for i in mine if 1 in steps or (fits(i, 1) and not fits(i, STEPS)) for step in steps]
            which = [i for i, _ in cases]
            shares = live[:, which]
            shares[s] = [step / STEPS for _, step in cases]
            tried |= zip(cases, _worked_out(answer, limits, shares, which), strict=True)
        for i in mine:
            n = STEPS if fits(i, STEPS) else next(step for step in range(1, STEPS + 1) if not fits(i, step)) - 1
            live[s, i], key, more = n / STEPS, (i, subjects[i, s]), None
            spent[i] = tried[i, n].usd if n else spent[i]
            if n < STEPS and key in whole:
                more = tried[i, n + 1].usd - spent[i]
                whole.remove(key)
            subject = subjects[i, s]
            instance = None if subject is None else answer.types[subject].instance
            yield Served(s, limits[i].quarter, limits[i].kind, instance, None, n / STEPS, more)


@dataclass(frozen=True)
class _Used:
    """A plan's use of a limit's quarter."""

    usd: float  # without contingency
    asked_usd: float
    rented: Array  # by type

    def used(self, subject: int | None) -> float:
        return self.asked_usd if subject is None else float(self.rented[subject])


def _worked_out(answer: Answer, limits: Sequence[Limit], live: Array, which: Sequence[int]) -> list[_Used]:
    """The use with these shares of the services' demands, by service and case, of the limit of each case; the
    least of the ways that there are, as a smaller plan may have no base."""
    plan = answer.plan
    ways = [plan, *([replace(plan, base=())] if plan.base else [])]
    at_once = max(1, AT_ONCE // plan.week.over_peak.shape[-1])
    used = list[_Used]()
    for i in range(0, len(which), at_once):
        part, cases = live[:, i : i + at_once], [limits[j].quarter for j in which[i : i + at_once]]
        columns = [_columns(answer, way, part) for way in ways]
        usd, rented = (numpy.minimum.reduce(of_ways) for of_ways in zip(*columns, strict=True))
        for case, q in enumerate(cases):
            spend, (committed, owned) = (
                usd[q, case],
                (answer.money[name][q, 0] for name in ("committed_usd", "owned_usd")),
            )
            reserve = reserve_usd(spend, float(committed), float(owned), plan.prices.contingency_fraction)
            used.append(_Used(float(spend), float(spend + reserve), rented[:, q, case]))
    return used


def _columns(answer: Answer, plan: Plan, live: Array) -> tuple[Array, Array]:
    """By quarter and case the spend, and by type the machines that are rented. plan: that of the answer, or with
    another base."""
    z = numpy.full(live.shape[1], Z[answer.plan.policy.plan_at])
    grid, _ = answer.at_demand(z, live, plan)
    gap, committed = (grid.spread(name, OF_TYPE) for name in ("gap", "committed_instances"))
    return grid.spread("spend_usd", OF_MONEY), gap + committed
