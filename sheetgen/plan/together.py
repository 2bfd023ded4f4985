"""Services placed together: on machines that another half fills, or that are there anyway.

`recommend` places each service by itself, on whole machines, and knows of no supply. Here services go to another type,
some together or one to what others are on or what is owned or committed, for all quarters or for those of the supply,
where the whole plan is cheaper for it: by more than a near tie of what they cost, unless it is for what is there.
Moves count at what they cost.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy

from sheetgen.plan import needs
from sheetgen.plan.placement import At, Placed
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.supplied import Supplied, supplied

SWEEPS = 4  # over all services, as a move may make room for another
A_CENT = 0.01
TRIES = 60  # services that are put together to begin with: all types for few services, one for many


def together(
    plan: Plan, here: Mapping[At, str], places: Mapping[At, Mapping[str, Placed]], months: Sequence[float]
) -> Mapping[At, Placed]:
    """Where services are, moved from `here` where the plan is cheaper for it. places: on each type of machine that can
    serve a service in a quarter the layout on which it fills least; months: by quarter what a month's price stands for
    until the next."""
    supply = supplied(plan)
    by_service: dict[int, dict[At, Placed]] = defaultdict(dict)
    for at in sorted(here):
        by_service[at[0]][at] = places[at][here[at]]
    if not by_service or (len(by_service) == 1 and not supply.is_any):
        return {}  # one service by itself is where `recommend` has it
    search = _Search(plan, supply, by_service, places, months)
    best = search.improved(search.home)
    for start in search.starts(max(1, TRIES // len(by_service))):
        if search.total_usd(found := search.improved(start)) < search.total_usd(best):
            best = found
    types = list(search.place)
    return {(s, q): places[s, q][types[t]] for s, one in best.items() for q, t in enumerate(one.types) if t >= 0}


def _alternatives(
    supply: Supplied, mine: Iterable[At], places: Mapping[At, Mapping[str, Placed]]
) -> Iterator[dict[At, Placed]]:
    """A service on each type of machine: in all quarters in which that can serve it; and in those alone in which there
    is some of it anyway."""
    by_type: dict[str, dict[At, Placed]] = {}
    for at in mine:
        for name, place in places[at].items():
            by_type.setdefault(name, {})[at] = place
    for whole in by_type.values():
        yield whole
        there = {at: one for at, one in whole.items() if supply.has(one, at[1])}
        if there and len(there) < len(whole):
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

    @cached_property
    def n_moves(self) -> int:
        served = self.types[self.types >= 0]
        return int((served[1:] != served[:-1]).sum())


Ways = dict[int, _Filled]  # by service


class _Search:
    """What a plan costs by where its services are, at the quantile that is bought, and ways that are cheaper."""

    def __init__(
        self,
        plan: Plan,
        supply: Supplied,
        home: Mapping[int, dict[At, Placed]],
        places: Mapping[At, Mapping[str, Placed]],
        months: Sequence[float],
    ) -> None:
        self.plan, self.months = plan, numpy.array(months)
        types = {name: one for of_it in places.values() for name, one in of_it.items()}
        self.place = {name: i for i, name in enumerate(types)}
        self.month_usd = numpy.array([one.instance_month_usd for one in types.values()])
        none = numpy.zeros(len(months))
        self.committed = numpy.array([supply.committed.get(name, none) for name in types]).reshape(-1, len(months))
        self.owned = supply.gpus
        # The types of which some GPUs are owned: place, kind, GPUs of a machine.
        self.gpus = [
            (i, one.gpu.id, one.gpu_count)
            for i, one in enumerate(each.candidate for each in types.values())
            if one.gpu.id in supply.gpus
        ]
        has_gpus = numpy.isin(numpy.arange(len(types)), [i for i, *_ in self.gpus])
        self.is_there = (self.committed > 0).any(axis=1) | has_gpus
        self.home = {s: self._filled(mine) for s, mine in home.items()}
        self.near_usd = {
            s: plan.policy.near_tie_fraction * float((one.machines @ self.months) @ self.month_usd)
            for s, one in self.home.items()
        }
        self.elsewhere = {
            s: [self._filled(one) for one in _alternatives(supply, mine, places)] for s, mine in home.items()
        }

    def total_usd(self, ways: Ways) -> float:
        """What the plan costs, and what must be saved besides for services that are not at home."""
        return float(self._usd(_sum(ways))) + sum(self._besides_usd(s, one) for s, one in ways.items())

    def improved(self, ways: Ways) -> Ways:
        """Services moved one by one while that makes the plan cheaper: home, to what others are on, or what is there.
        In each sweep the one that saves most goes first, as it may leave no reason to the others."""
        now, machines = dict(ways), _sum(ways)
        for _ in range(SWEEPS):
            saves = {s: saved for s, saved, _ in self._best(now, now, machines) if saved > A_CENT}
            moved = 0
            for s in sorted(saves, key=lambda s: -saves[s]):
                ((_, saved, there),) = self._best([s], now, machines)
                if saved > A_CENT:
                    now[s], machines, moved = there, machines - now[s].machines + there.machines, moved + 1
            if not moved:
                break
        return now

    def _best(self, some: Iterable[int], now: Ways, machines: Any) -> Iterator[tuple[int, float, _Filled]]:
        """By service where it makes the plan cheapest while the others stay, and what that saves."""
        tried = list[tuple[int, _Filled]]()
        for s in some:
            rest = machines - now[s].machines
            known = (rest > 1e-9).any(axis=1) | self.is_there
            tried += ((s, now[s]), (s, self.home[s]))
            tried += ((s, now[s].but(one)) for one in self.elsewhere[s] if known[one.types.max()])
        more = numpy.array([one.machines - now[s].machines for s, one in tried])
        usd = self._usd(machines + more) + [self._besides_usd(s, one) for s, one in tried]
        for s, many in itertools.groupby(range(len(tried)), lambda i: tried[i][0]):
            first, *_ = of_it = [*many]
            best = min(of_it, key=lambda i: usd[i])
            yield s, float(usd[first] - usd[best]), tried[best][1]

    def starts(self, n: int) -> Iterator[Ways]:
        """By type all services that it can serve on it, and as many of them as is cheapest: first the one that saves
        most by a part of its machines in place of its own, and so on. Of all these the n cheapest."""
        own = {s: float(self._usd(one.machines)) for s, one in self.home.items()}
        by_type: dict[int, dict[int, tuple[float, _Filled]]] = defaultdict(dict)
        for s, every in self.elsewhere.items():
            for one in every:
                there, t = self.home[s].but(one), int(one.types.max())
                more = float((there.machines @ self.months) @ self.month_usd) - own[s]
                if s not in by_type[t] or more < by_type[t][s][0]:
                    by_type[t][s] = more, there
        at_home, found = _sum(self.home), list[tuple[float, int, Ways]]()
        for of_it in by_type.values():
            ranked = sorted(of_it, key=lambda s: of_it[s][0])
            chosen = [(s, of_it[s][1]) for s in ranked]
            machines = at_home + numpy.cumsum([one.machines - self.home[s].machines for s, one in chosen], axis=0)
            besides = [self._besides_usd(s, one) - self._besides_usd(s, self.home[s]) for s, one in chosen]
            usd = self._usd(machines) + numpy.cumsum(besides)
            for last in {int(usd.argmin()), len(chosen) - 1}:
                found.append((float(usd[last]), len(found), self.home | dict(chosen[: last + 1])))
        yield from (ways for *_, ways in sorted(found, key=lambda one: one[:2])[:n])

    def _besides_usd(self, s: int, there: _Filled) -> float:
        """What a service's moves cost; and a near tie of what it fills at home, where it is elsewhere, and that is
        not there anyway."""
        stays = (there.types == self.home[s].types) | self.is_there[there.types]
        near = 0 if stays.all() else self.near_usd[s]
        return there.n_moves * self.plan.policy.moving_cost_usd + near

    def _filled(self, places: Mapping[At, Placed]) -> _Filled:
        found, types = numpy.zeros(self.committed.shape), numpy.full(len(self.months), -1)
        for (_, q), one in places.items():
            types[q] = self.place[one.instance]
            found[types[q], q] = one.machines
        return _Filled(found, types)

    def _usd(self, machines: Any) -> Any:
        """What must be bought: by case, of the machines of each type and quarter."""
        quarters = numpy.arange(len(self.months))
        used = (machines.reshape(-1, *self.committed.shape) > 0).any(axis=(0, 2))
        place = numpy.cumsum(used) - 1
        # Sums of parts that are taken off again leave a trace that is no machine.
        needed = needs.needed_instances(numpy.round(machines[..., used, :], 9))
        release, earlier = self.plan.policy.release_after_quarters, quarters.reshape(-1, *[1] * needed.ndim)
        kept = needs.kept_instances(_by_earlier_quarter(needed), earlier, quarters, release)
        owned, free = numpy.zeros(kept.shape), dict(self.owned)
        for i, gpu, count in self.gpus:
            if used[i]:
                owned[..., place[i], :] = needs.owned_instances(free[gpu], count, kept[..., place[i], :], 0)
                free[gpu] = free[gpu] - owned[..., place[i], :] * count
        committed = self.committed[used]
        short = _by_earlier_quarter(needs.short_instances(needed, owned, committed))
        missing = needs.gap(short, earlier, quarters, release, kept, owned, committed)
        return (missing @ self.months) @ self.month_usd[used]


def _by_earlier_quarter(counts: Any) -> Any:
    """Counts by quarter, the last side, as rows that are read whole for each quarter: they are the first side then."""
    return numpy.moveaxis(counts, -1, 0)[..., None]


def _sum(ways: Ways) -> Any:
    return sum(one.machines for one in ways.values())
