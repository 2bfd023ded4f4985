"""Services on the machines that are there anyway: owned, or committed and paid whether used or not.

`recommend` knows of no supply. A service goes to hardware of one's own, for all quarters or for those of the supply,
where that makes the whole plan cheaper by more than a near tie; moves count at what they cost.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.plan import needs
from sheetgen.plan.read import Plan
from sheetgen.plan.schema import Committed, Owned

At = tuple[int, int]  # a service and a quarter, by position
SWEEPS = 3  # over all services, as a move may make room for another


@dataclass(frozen=True)
class Place:
    """An offer for a service in a quarter: the machines that it fills at the quantile that is bought."""

    offer: int
    instance: str
    gpu: str
    gpu_count: int
    machines: float
    month_usd: float


@dataclass(frozen=True)
class Supplied:
    """What is there in each quarter: instances by type, and GPUs by kind."""

    committed: Mapping[str, Any]
    gpus: Mapping[str, Any]

    def has(self, place: Place, quarter: int) -> bool:
        """Whether there is some of it in a quarter."""
        counts = self.committed.get(place.instance), self.gpus.get(place.gpu)
        return any(one is not None and one[quarter] > 0 for one in counts)

    @property
    def is_any(self) -> bool:
        return bool(self.committed or self.gpus)


def term(one: Committed | Owned) -> tuple[datetime.date, datetime.date]:
    """The first and the last day of what is owned or committed."""
    first = one.starts or datetime.date.min
    if isinstance(one, Committed) and one.days is not None:
        return first, first + datetime.timedelta(days=one.days - 1)
    return first, one.until or datetime.date.max


def live(plan: Plan, one: Committed | Owned) -> Iterator[tuple[bool, float]]:
    """By quarter whether it serves all of it, and the share of its days that are paid."""
    first, last = term(one)
    for quarter in plan.quarters:
        start, end = plan.first_day(quarter), plan.last_day(quarter)
        days = (min(last, end) - max(first, start)).days + 1
        yield first <= start and last >= end, max(0, days) / ((end - start).days + 1)


def supplied(plan: Plan) -> Supplied:
    """What serves all of each quarter."""
    committed, gpus = dict[str, Any](), dict[str, Any]()
    for one in plan.supply.committed:
        name = plan.types[one.type].id
        committed[name] = committed.get(name, 0) + numpy.array([one.count * on for on, _ in live(plan, one)], float)
    for pool in plan.supply.owned:
        gpu = plan.gpus[pool.id].id
        gpus[gpu] = gpus.get(gpu, 0) + numpy.array([pool.count * on for on, _ in live(plan, pool)], float)
    return Supplied(committed, gpus)


def improved(
    plan: Plan, supply: Supplied, chosen: Mapping[At, Place], others: Mapping[At, Sequence[Place]],
    months: Sequence[float],
) -> dict[At, Place]:  # fmt: skip
    """`chosen`, with services on what is there where the plan is cheaper for it. others: what else can serve each
    service in each quarter; months: by quarter what a month's price stands for until the next."""
    now = dict(chosen)
    if not supply.is_any:
        return now
    least = cost(plan, supply, now, months)
    for _ in range(SWEEPS):
        before = least
        for s in range(len(plan.services)):
            mine = [at for at in sorted(chosen) if at[0] == s]
            near = plan.policy.near_tie_fraction * sum(
                now[at].machines * now[at].month_usd * months[at[1]] for at in mine
            )
            best: tuple[float, dict[At, Place]] = (least - near, now)
            for changed in _alternatives(supply, mine, others):
                tried = now | changed
                usd = cost(plan, supply, tried, months)
                if usd < best[0]:
                    best = usd, tried
            if best[1] is not now:
                least, now = best
        if least == before:
            break
    return now


def _alternatives(
    supply: Supplied, mine: Sequence[At], others: Mapping[At, Sequence[Place]]
) -> Iterator[dict[At, Place]]:
    """A service on each type of what is there: in all quarters in which that can serve it, and in those in which there
    is some of it alone."""
    by_type: dict[str, dict[At, Place]] = {}
    for at in mine:
        for place in others[at]:
            by_type.setdefault(place.instance, {})[at] = place
    for places in by_type.values():
        there = {at: one for at, one in places.items() if supply.has(one, at[1])}
        if there:
            yield places
            if len(there) < len(places):
                yield there


def cost(plan: Plan, supply: Supplied, places: Mapping[At, Place], months: Sequence[float]) -> float:
    """What must be bought over the plan at the quantile that is bought, and what all moves cost, in US dollars."""
    types: dict[str, tuple[Place, Any]] = {}
    moves = 0
    for (s, q), one in places.items():
        types.setdefault(one.instance, (one, numpy.zeros(len(months))))[1][q] += one.machines
        before = places.get((s, q - 1))
        moves += before is not None and before.instance != one.instance
    free = dict(supply.gpus)
    usd, quarters = 0.0, numpy.arange(len(months))
    for one, machines in types.values():
        kept = needs.kept_instances(
            needs.needed_instances(machines)[None, :], quarters[None, :], quarters[:, None],
            plan.policy.release_after_quarters,
        )  # fmt: skip
        left = free.get(one.gpu, numpy.zeros(len(months)))
        owned = needs.owned_instances(left, one.gpu_count, kept, 0)
        free[one.gpu] = left - owned * one.gpu_count
        missing = needs.gap(kept, owned, supply.committed.get(one.instance, 0))
        usd += float((missing * months).sum()) * one.month_usd
    return usd + moves * plan.policy.moving_cost_usd
