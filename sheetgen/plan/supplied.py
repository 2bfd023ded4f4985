"""Services on the machines that are there anyway: owned, or committed and paid whether used or not.

`recommend` knows of no supply. A service goes to hardware of one's own, for all quarters or for those of the supply,
where that makes the whole plan cheaper by more than a near tie; moves count at what they cost.
"""

from __future__ import annotations

import datetime
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from sheetgen.plan import needs
from sheetgen.plan.read import Plan
from sheetgen.plan.schema import Committed, Owned

if TYPE_CHECKING:
    from sheetgen.plan.hardware import Placed

Names = tuple[frozenset[str], frozenset[str]]  # instances, and kinds of GPU
At = tuple[int, int]  # a service and a quarter, by position
SWEEPS = 3  # over all services, as a move may make room for another


@dataclass(frozen=True)
class Supplied:
    """What is there in each quarter: instances by type, and GPUs by kind."""

    committed: Mapping[str, Any]
    gpus: Mapping[str, Any]

    def has(self, place: Placed, quarter: int) -> bool:
        """Whether there is some of it in a quarter."""
        counts = self.committed.get(place.instance), self.gpus.get(place.candidate.gpu.id)
        return any(one is not None and one[quarter] > 0 for one in counts)

    @property
    def names(self) -> Names:
        """What there is some of, in any quarter."""
        return frozenset(self.committed), frozenset(self.gpus)

    def knows(self, instance: str, gpu: str) -> bool:
        """Whether there is some of it in any quarter."""
        return instance in self.committed or gpu in self.gpus

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
        name = plan.machine(one.type)
        committed[name] = committed.get(name, 0) + numpy.array([one.count * on for on, _ in live(plan, one)], float)
    for pool in plan.supply.owned:
        gpu = plan.gpus[pool.id].id
        gpus[gpu] = gpus.get(gpu, 0) + numpy.array([pool.count * on for on, _ in live(plan, pool)], float)
    return Supplied(committed, gpus)


def improved(
    plan: Plan, supply: Supplied, chosen: Mapping[At, Placed], others: Mapping[At, Sequence[Placed]],
    months: Sequence[float],
) -> dict[At, Placed]:  # fmt: skip
    """`chosen`, with services on what is there where the plan is cheaper for it. others: what else can serve each
    service in each quarter; months: by quarter what a month's price stands for until the next."""
    now = dict(chosen)
    if not supply.is_any:
        return now
    costs = _Costs.of(plan, supply, (*chosen.values(), *itertools.chain.from_iterable(others.values())), months)
    by_service: dict[int, dict[At, Placed]] = defaultdict(dict)
    for at in sorted(chosen):
        by_service[at[0]][at] = chosen[at]
    every = {s: [*_alternatives(supply, mine, others)] for s, mine in by_service.items()}
    drawn = {s: [costs.filled(one) for one in alternatives] for s, alternatives in every.items()}
    filled = {s: costs.filled(mine) for s, mine in by_service.items()}
    machines = sum((one.machines for one in filled.values()), costs.filled({}).machines)
    for _ in range(SWEEPS):
        changed = False
        for s, mine in by_service.items():
            now_filled = filled[s]
            rest, near = machines - now_filled.machines, plan.policy.near_tie_fraction * sum(
                one.machines * one.instance_month_usd * months[q] for (_, q), one in mine.items()
            )
            tried = [now_filled, *(now_filled.but(one) for one in drawn[s])]
            usd = costs.usd(rest + numpy.array([one.machines for one in tried]))
            usd += [one.n_moves * plan.policy.moving_cost_usd for one in tried]
            usd[0] -= near  # what is there must be cheaper by more than a near tie
            best = int(usd.argmin())
            if best:
                by_service[s], filled[s], changed = mine | every[s][best - 1], tried[best], True
                machines = rest + tried[best].machines
        if not changed:
            break
    for mine in by_service.values():
        now |= mine
    return now


def _alternatives(
    supply: Supplied, mine: Iterable[At], others: Mapping[At, Sequence[Placed]]
) -> Iterator[dict[At, Placed]]:
    """A service on each type of what is there: in all quarters in which that can serve it, and in those in which there
    is some of it alone."""
    by_type: dict[str, dict[At, Placed]] = {}
    for at in mine:
        for place in others[at]:
            by_type.setdefault(place.instance, {})[at] = place
    for places in by_type.values():
        there = {at: one for at, one in places.items() if supply.has(one, at[1])}
        if there:
            yield places
            if len(there) < len(places):
                yield there


@dataclass(frozen=True)
class _Filled:
    """A service's machines, and by quarter its type, by position; -1 where it has none."""

    machines: Any  # types x quarters
    types: Any

    def but(self, other: _Filled) -> _Filled:
        """These, and in the quarters of another those."""
        there = other.types >= 0
        return _Filled(numpy.where(there, other.machines, self.machines), numpy.where(there, other.types, self.types))

    @property
    def n_moves(self) -> int:
        served = self.types[self.types >= 0]
        return int((served[1:] != served[:-1]).sum())


@dataclass(frozen=True)
class _Costs:
    """What must be bought over the plan at the quantile that is bought, and what a service's moves cost."""

    plan: Plan
    months: Any
    place: Mapping[str, int]  # of each type
    gpus: Sequence[tuple[int, str, int]]  # the types of which some GPUs are owned: place, kind, GPUs of a machine
    owned: Mapping[str, Any]
    committed: Any  # types x quarters
    month_usd: Any  # types

    @classmethod
    def of(cls, plan: Plan, supply: Supplied, places: Iterable[Placed], months: Sequence[float]) -> _Costs:
        types = {one.instance: one for one in places}
        none = numpy.zeros(len(months))
        return cls(
            plan, numpy.array(months), {name: i for i, name in enumerate(types)},
            [(i, one.gpu.id, one.gpu_count) for i, one in enumerate(each.candidate for each in types.values())
             if one.gpu.id in supply.gpus],
            supply.gpus, numpy.array([supply.committed.get(name, none) for name in types]).reshape(-1, len(months)),
            numpy.array([one.instance_month_usd for one in types.values()]),
        )  # fmt: skip

    def filled(self, places: Mapping[At, Placed]) -> _Filled:
        """What a service fills."""
        found, types = numpy.zeros(self.committed.shape), numpy.full(len(self.months), -1)
        for (_, q), one in places.items():
            types[q] = self.place[one.instance]
            found[types[q], q] = one.machines
        return _Filled(found, types)

    def usd(self, machines: Any) -> Any:
        """What must be bought: by case, of the machines of each type and quarter."""
        quarters = numpy.arange(len(self.months))
        # Sums of parts that are taken off again leave a trace that is no machine.
        needed = needs.needed_instances(numpy.round(machines, 9))[..., None, :]
        release = self.plan.policy.release_after_quarters
        kept = needs.kept_instances(needed, quarters, quarters[:, None], release)
        owned, free = numpy.zeros(kept.shape), dict(self.owned)
        for i, gpu, count in self.gpus:
            owned[:, i] = needs.owned_instances(free[gpu], count, kept[:, i], 0)
            free[gpu] = free[gpu] - owned[:, i] * count
        missing = needs.gap(kept, owned, self.committed)
        return (missing @ self.months) @ self.month_usd
