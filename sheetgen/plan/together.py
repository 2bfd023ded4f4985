"""Services placed together: on machines that another half fills, or that are there anyway.

`recommend` places each service by itself, on whole machines, and knows of no supply. Here services go to another type
or layout, some together or one by itself, for all quarters or for those of the supply, where the whole plan is cheaper
for it: by more than a near tie of what they cost, unless it is for what is there. A plan costs what must be bought, on
average at p50 and at the quantile that is bought, and what its moves do. The search begins in several ways; from the
cheapest that it comes to, each service leaves its machines to the others once. What several ways cost is worked out as
whole plans (solve_plan.py), as a search counts a mix's base from the first quarter on alone.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from typing import Any, TypeVar

import numpy

from sheetgen.plan import needs
from sheetgen.plan.arrays import Array
from sheetgen.plan.lending import PaidPool
from sheetgen.plan.orders import buying
from sheetgen.plan.placement import At, Placed, filled_by_hour
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER, QUARTERS_OF_TERM
from sheetgen.plan.spending import A_CENT
from sheetgen.plan.stated_plan import Plan, machine_in
from sheetgen.plan.supplied import Supplied, supplied
from sheetgen.sizing.parallelism import MACHINE, REPLICA, ZONE

_T = TypeVar("_T")
SWEEPS = 4  # over all services, as a move may make room for another
A_BIT = 1e-9  # of a month
DEARER = 0.02  # of all, by which what is tried as a whole plan may seem dearer: a search goes by blocks of hours
TRIES, FEWER = 100, 25  # beginnings x services; of a plan that is tried without some types of machine
TRIES_OF_WHOLE = 3  # of so many beginnings one is given as a whole plan
AT_ONCE = 300_000  # numbers that are worked out together
ROWS = 10 * AT_ONCE  # numbers of the ways that are gathered for it
SURVIVES = {"none": 0, "replica": REPLICA, "machine": MACHINE, "zone": ZONE}


def moving_usd(plan: Plan, there: Placed, months: float) -> float:
    """The cost of a move to a place: as stated, or what its replicas do while those of before run beside them. months:
    what a month's price stands for until the next quarter."""
    stated = plan.policy.moving_cost_usd
    twice = there.twice_usd(plan.policy.move_days) * months / MONTHS_IN_A_QUARTER
    return twice if stated is None else stated


def together(
    plan: Plan,
    here: Mapping[At, Placed],
    layouts: Mapping[int, Sequence[Mapping[At, Placed]]],
    by_hour: bool,
    of_term: Mapping[str, float],
    tries: int,
    begin: Mapping[At, Placed] | None = None,
    resting: frozenset[int] = frozenset(),
) -> Iterator[Assignment]:
    """The services, moved from `here` where the plan is cheaper for it, in the cheapest ways first. layouts: of each
    service, one on each type of machine that can serve it, or several; by_hour: where what is bought is rented for the
    hours that need it; of_term: by type what a month of the cheapest term of a mix costs over one on demand; tries: see
    TRIES; begin: the places from which alone the search begins, where those are given; resting: the services that
    stay on them."""
    supply = supplied(plan)
    home = by_service(here)
    search = _Search(plan, supply, home, layouts, by_hour, of_term)
    if len(home) == 1 and not supply.is_any:  # where `recommend` has it
        yield Assignment(search, search.home)
        return
    if begin is not None:
        yield Assignment(search, search.improved(search.ways(by_service(begin)), resting=resting))
        return
    n = max(1, tries // len(home))
    every = [search.improved(start) for start in (search.home, *search.starts(n))]
    unlike = {_key(ways): ways for ways in every}
    for ways in sorted(unlike.values(), key=search.total_usd)[: max(1, n // TRIES_OF_WHOLE)]:
        yield Assignment(search, search.exchanged(ways, n))


def by_service(by_slot: Mapping[At, _T]) -> dict[int, dict[At, _T]]:
    """By service what it has in each quarter."""
    of_service: dict[int, dict[At, _T]] = defaultdict(dict)
    for slot in sorted(by_slot):
        of_service[slot[0]][slot] = by_slot[slot]
    return of_service


@dataclass(frozen=True)
class Assignment:
    """Places of all services."""

    search: _Search
    ways: Ways

    @property
    def offers(self) -> dict[At, int]:
        return {(s, q): int(way.offers[0, q]) for s, way in self.ways.items() for q in way.quarters}

    @property
    def moves(self) -> frozenset[At]:
        """The moves to other machines."""
        return frozenset((s, q) for s, way in self.ways.items() for _, q in self.search.moves(s, way))

    def nearby(self, n: int, resting: frozenset[int]) -> Iterator[Assignment]:
        """The same with one service elsewhere, in all quarters, from one on or until it; those first that seem to save
        most, and none that seems dearer by more than DEARER. n: the number of them; resting: services that stay."""
        for _, ways in islice(self.search.nearby(self.ways, resting), n):
            yield replace(self, ways=ways)

    def rearranged(self, n: int, resting: frozenset[int]) -> Iterator[Assignment]:
        """The same with one service elsewhere, as `nearby` has it, and the others where the plan is cheaper then."""
        seen = {_key(self.ways)}
        for s, ways in islice(self.search.nearby(self.ways, resting), n):
            there = self.search.improved(ways, waits=s, resting=resting)
            if (key := _key(there)) not in seen:
                seen.add(key)
                yield replace(self, ways=there)

    def without(self, moves: Collection[At]) -> Assignment | None:
        """The same without some moves: these services stay on the machines of before, and the others are where the
        plan is cheaper then. None where one of them cannot do without."""
        stay = {s: self.search.stays(s, self.ways[s], moves) for s in {s for s, _ in moves}}
        held = {s: way for s, way in stay.items() if way is not None}
        if len(held) < len(stay):
            return None
        return replace(self, ways=self.search.improved(self.ways | held, resting=frozenset(held)))


def _ways(supply: Supplied, layouts: Iterable[Mapping[At, Placed]]) -> Iterator[Mapping[At, Placed]]:
    """Each layout in all quarters in which it can serve, and in those alone in which there is some of its machine
    anyway."""
    for whole in layouts:
        yield whole
        there = {slot: place for slot, place in whole.items() if supply.has(place, slot[1])}
        if there and len(there) < len(whole):
            yield there


@dataclass(frozen=True)
class _Filled:
    """Ways to serve a service: by quarter its machines, on one type each."""

    # Ways x (filled, what a lost replica, machine or zone must leave of it, what lies apart) x pair x quarters.
    fills: Array
    spares: Array  # ways x (machines of its largest replica, its share of zones) x quarters
    types: Array  # ways x quarters, by position; -1 where it has none
    offers: Array  # ways x quarters: the layouts there
    enters_usd: Array  # ways x quarters: what it costs to come there

    @property
    def parts(self) -> tuple[Array, ...]:
        return self.fills, self.spares, self.types, self.offers, self.enters_usd

    @classmethod
    def of_all(cls, some: Sequence[_Filled]) -> _Filled:
        return cls(*(numpy.concatenate(parts) for parts in zip(*(ways.parts for ways in some), strict=True)))

    def __getitem__(self, which: Any) -> _Filled:
        return _Filled(*(part[which] for part in self.parts))

    def but(self, others: _Filled, quarters: Array | bool = True) -> _Filled:
        """This way, and in the quarters of others, or some of them, those."""
        stays = (self.types >= 0) & ~((others.types >= 0) & quarters)
        if not stays.any():
            return others
        sides = stays[:, None, None], stays[:, None], stays, stays, stays
        return _Filled(*map(numpy.where, sides, self.parts, others.parts))

    def on(self, types: Array, later: int) -> tuple[Array, Array]:
        """The machines that each way fills, and spares, of one type or several: with ways and types before the
        quarters. later: see `stays`."""
        is_there = self.types[:, None] == types[..., None]
        fills, spares = self.fills.transpose(1, 2, 0, 3), self.spares.transpose(1, 0, 2)
        every = [fills[..., None, :] * (is_there & stays[:, None]) for stays in self.stays(later)]
        return numpy.concatenate(every) if later else every[0], spares[..., None, :] * is_there

    def stays(self, later: int) -> Iterator[Array]:
        """By way and quarter whether it serves, and whether it is on the same type a quarter later still, and so on,
        to so many: what is left is kept for nobody."""
        yield self.types >= 0
        for n in range(1, later + 1):
            then = numpy.full(self.types.shape, -1)
            then[:, :-n] = self.types[:, n:]
            yield (self.types >= 0) & (self.types == then)

    @cached_property
    def quarters(self) -> list[int]:
        """Those in which all ways serve."""
        served: list[int] = numpy.flatnonzero(self.types[0] >= 0).tolist()
        return served

    @property
    def moves(self) -> list[tuple[int, int]]:
        """The quarters in which one way comes to other machines, each with the type of before."""
        (types,) = self.types
        pairs = itertools.pairwise(self.quarters)
        return [(int(types[before]), q) for before, q in pairs if types[before] != types[q]]

    @cached_property
    def moves_usd(self) -> Array:
        """By way the cost of its moves; all of them serve the same quarters."""
        types, enters = self.types[:, self.quarters], self.enters_usd[:, self.quarters]
        return numpy.asarray(((types[:, 1:] != types[:, :-1]) * enters[:, 1:]).sum(axis=1))


Ways = dict[int, _Filled]  # by service, one each
Key = tuple[bytes, ...]  # by service its offers, of which all else follows


class _Tried:
    """The ways of a service that are tried while the others stay: few near its own, those elsewhere, last none at all;
    and the cost of each unit that a way is on, with it, as it was worked out last: only what changes is anew."""

    def __init__(self, few: _Filled, elsewhere: _Filled, nothing: _Filled, units: Sequence[Array], unit: Array) -> None:
        self.few, self.mine, self.elsewhere, self.nothing = few, few[[0]], elsewhere, nothing
        there = numpy.where(elsewhere.types >= 0, elsewhere.types, self.mine.types)
        self.types = numpy.concatenate([few.types, there, nothing.types])
        self.last = len(self.types) - 1
        is_on = numpy.zeros((len(self.types), unit.max(initial=0) + 1), bool)
        served = numpy.nonzero(self.types >= 0)
        is_on[served[0], unit[self.types[served]]] = True
        is_on[-1] = is_on[0]
        pairs = [numpy.nonzero(is_on[:, unit[some[:, 0]]]) for some in units]
        self.types_of_rows = [some[of_rows] for some, (_, of_rows) in zip(units, pairs, strict=True)]
        self.way = numpy.concatenate([way for way, _ in pairs])
        self.unit = numpy.concatenate([unit[types[:, 0]] for types in self.types_of_rows])
        self.ends = numpy.cumsum([len(types) for types in self.types_of_rows])
        self.usd, self.is_rest = numpy.zeros(len(self.way)), self.way == self.last
        self.besides_usd = numpy.zeros(0)
        self.filled, self.spared = numpy.full(is_on.shape[1], -1), numpy.zeros(0)

    def __getitem__(self, which: Array) -> _Filled:
        """Some of the ways, in their order."""
        n = len(self.few.types)
        near, others = which[which < n], which[(which >= n) & (which < self.last)] - n
        parts = [self.few[near]] if near.size else []
        parts += [self.mine.but(self.elsewhere[others])] if others.size else []
        parts += [self.nothing] * (len(which) - len(near) - len(others))
        return parts[0] if len(parts) == 1 else _Filled.of_all(parts)

    def changed(self, filled: Array, spared: Array, unit: Array) -> Iterator[tuple[int, Array, Array]]:
        """The rows whose unit is not as it was, by kind of unit, with their types. filled: by unit, see `_Sum`; spared:
        by type the largest of what others spare."""
        is_other = filled != self.filled
        if self.spared.shape == spared.shape:
            is_other[unit[(spared != self.spared).any(axis=(0, 2))]] = True
        self.filled, self.spared = filled, spared
        rows = numpy.flatnonzero(is_other[self.unit])
        begins = (0, *self.ends[:-1].tolist())
        for kind, (begin, end) in enumerate(zip(begins, self.ends.tolist(), strict=True)):
            some = rows[(rows >= begin) & (rows < end)]
            if some.size:
                yield kind, some, self.types_of_rows[kind][some - begin]

    def saves_usd(self, usd: Array) -> Array:
        """By way what it saves over the service's own. usd: by unit what it costs with that."""
        without = usd.copy()
        without[self.unit[self.is_rest]] = self.usd[self.is_rest]
        more = numpy.bincount(self.way, self.usd - without[self.unit], len(self.types))
        whole = more[:-1] + self.besides_usd
        return numpy.asarray(whole[0] - whole)


def _key(ways: Ways) -> Key:
    return tuple(way.offers.tobytes() for way in ways.values())


@dataclass(frozen=True)
class _Sum:
    """The machines that services fill together, by type, what each spares of them, and what they cost by unit."""

    machines: Array
    spared: Array  # (machines of the largest replica, share of zones) x service x type x quarters
    usd: Array
    filled: Array  # by unit a number for what is filled of it; 0 where nothing is


class _Search:
    """The cost of a plan by the places of its services, and cheaper places. A plan costs the sum of its units: a type
    of machine in its classes, or all types of a kind of GPU that is owned."""

    def __init__(
        self,
        plan: Plan,
        supply: Supplied,
        home: Mapping[int, dict[At, Placed]],
        layouts: Mapping[int, Sequence[Mapping[At, Placed]]],
        by_hour: bool,
        of_term: Mapping[str, float],
    ) -> None:
        self.plan, self.months = plan, numpy.array(plan.months)
        mean_loads, hours = plan.week.in_blocks
        self.over_peak = mean_loads if by_hour else plan.week.peaks_in_blocks
        self.weights = numpy.concatenate([hours.T, hours.T]) / 2  # at p50 and at the quantile, by block of hours
        every = (*home.values(), *itertools.chain(*layouts.values()))
        types = {place.instance: place for places in every for place in places.values()}
        self.place = {name: i for i, name in enumerate(types)}
        self.every = numpy.arange(len(types))
        self.month_usd = numpy.array([place.instance_month_usd for place in types.values()])
        self.of_term = numpy.array([of_term.get(name, 1.0) for name in types])
        self.bought_as = numpy.array([plan.class_of(name) for name in types])
        # By type, whether there are in all hours so many as in the one that needs most.
        self.is_held = numpy.array([not by_hour or way in QUARTERS_OF_TERM for way in self.bought_as])
        self.terms = {way: buying(plan, None, way) for way in {*self.bought_as.tolist()} & QUARTERS_OF_TERM.keys()}
        self.spans, none = plan.spans, numpy.zeros(len(plan.spans))
        # By span the price of a term when it is signed, over the one of that quarter.
        self.signed = {way: (numpy.array(plan.months_of(way)) / self.months)[self.spans.quarters] for way in self.terms}
        self.keeps = min(plan.policy.release_after_quarters, len(self.months) - 1)  # quarters
        kept_since = numpy.array(self.spans.kept_since(self.keeps))
        self.before = numpy.arange(len(none)) - kept_since  # by span how many before it are kept in it
        # By span itself and those; of one that keeps fewer its first one again.
        back = numpy.arange(1 + self.before.max(initial=0))[:, None]
        self.earlier = numpy.maximum(numpy.arange(len(none)) - back, kept_since)
        self.later = self.spans.quarters - self.spans.quarters[self.earlier]  # than those, in quarters
        self.committed = numpy.array([supply.committed.get(name, none) for name in types]).reshape(-1, len(none))
        self.supply = supply
        self.kinds = [(place.candidate.gpu.id, place.candidate.gpu_count) for place in types.values()]
        self.lost = numpy.array([supply.lost_instances(gpu, n) + none for gpu, n in self.kinds])
        self.is_owned = numpy.array([gpu in supply.gpus for gpu, _ in self.kinds])  # some of its GPUs
        of_unit = defaultdict[str, list[int]](list)
        for name, t in self.place.items():
            of_unit[self.kinds[t][0] if self.is_owned[t] else machine_in(name)].append(t)
        alone = [unit for unit in of_unit.values() if len(unit) == 1]
        shared = [[unit] for unit in of_unit.values() if len(unit) > 1]
        self.units = [numpy.array(units) for units in (alone, *shared) if units]
        self.shapes = [(name, *kind) for name, kind in zip(types, self.kinds, strict=True)]
        self.unit = numpy.zeros(len(types), int)  # by type
        for i, unit in enumerate(unit for units in self.units for unit in units):
            self.unit[unit] = i
        self.n_units = sum(map(len, self.units))
        was_ordered = numpy.array([plan.was_ordered(name) for name in types])
        is_committed = numpy.array([machine_in(name) in supply.committed for name in types])
        self.is_there = is_committed | self.is_owned | was_ordered
        self.home = self.ways(home)
        # By type, and last of none: whether a service is there at home, or it is there anyway.
        self.is_near = {s: numpy.append(self.is_there, True) for s in self.home}
        for s, way in self.home.items():
            self.is_near[s][way.types] = True
        # By service the types that were ordered for it, in any class, where it is in its first quarter unless it moves;
        # -1 where nothing is put on those here.
        self.stands_on = dict[int, list[int]]()
        for s, way in self.home.items():
            names = plan.stands_on(s, way.quarters[0])
            self.stands_on[s] = [t for name, t in self.place.items() if machine_in(name) in names] or [-1] * bool(names)
        for s, stood in self.stands_on.items():
            self.is_near[s][stood] = True
        self.near_usd = {s: plan.policy.near_tie_fraction * self._part_usd(way) for s, way in self.home.items()}
        self.elsewhere = {s: self._filled([*_ways(supply, layouts[s])]) for s in home}
        self.seen: dict[bytes, float] = {}  # what `_usd` gave, by a unit's types and what is filled and spared of them
        self.swept: dict[tuple[frozenset[int], Key], Ways] = {}  # what `_swept` gave, by the services that rest
        self.numbers: dict[bytes, int] = {}  # of what is filled of a unit
        self.tried: dict[tuple[int, bytes], _Tried] = {}  # by a service and the offers it has

    def ways(self, places: Mapping[int, Mapping[At, Placed]]) -> Ways:
        """By service its places as a way."""
        return {s: self._filled([mine]) for s, mine in places.items()}

    def total_usd(self, ways: Ways) -> float:
        """The cost of the plan, and what must be saved besides for services that are not at home."""
        besides = (self._besides_usd(s, way) for s, way in ways.items())
        return float(self._sum(ways).usd.sum() + sum(float(usd[0]) for usd in besides))

    def improved(self, ways: Ways, waits: int | None = None, resting: frozenset[int] = frozenset()) -> Ways:
        """Services moved one by one while that makes the plan cheaper: home, to any type, to what is there, or no more
        from what they were on before. In each sweep the one that saves most goes first, as it may leave no reason to
        the others. waits: a service that does not move in the first; resting: those that never move."""
        now = ways
        for sweep in range(SWEEPS):
            rest = resting if sweep or waits is None else resting | {waits}
            before = _key(now)
            if (rest, before) not in self.swept:
                self.swept[rest, before] = self._swept([s for s in now if s not in rest], now)
            now = self.swept[rest, before]
            if _key(now) == before and rest == resting:
                break
        return now

    def _swept(self, some: Sequence[int], ways: Ways) -> Ways:
        """Services moved one by one, each once; the same ways where none does."""
        now, together = ways, self._sum(ways)
        best = {s: (saved, there) for s, saved, there in self._best(some, now, together) if saved > A_CENT}
        for s in sorted(best, key=lambda s: -best[s][0]):
            saved, there = best[s]
            if now is not ways:
                ((_, saved, there),) = self._best([s], now, together)
            if saved > A_CENT:
                together = self._sum_with(together, list(now).index(s), now[s], there)
                now = now | {s: there}
        return now

    def exchanged(self, ways: Ways, n: int) -> Ways:
        """Ways that are cheaper for it that one of n services first leaves its machines to others: those that cost
        most."""
        if len(ways) == 1:
            return ways
        now = ways
        for s in sorted(ways, key=lambda s: -float(self._part_usd(ways[s])[0]))[:n]:
            together = self._sum(now)
            ((_, saved, there),) = self._best([s], now, together, leaves=True)
            other = now | {s: there}
            others = self._best([i for i in other if i != s], other, self._sum(other))
            if saved + sum(of_other for _, of_other, _ in others) > A_CENT:
                better = self.improved(other, waits=s)
                if self.total_usd(better) < self.total_usd(now) - A_CENT:
                    now = better
        return now

    def moves(self, s: int, way: _Filled) -> list[tuple[int, int]]:
        """The quarters in which a service comes to other machines, each with the type of before; the first of all where
        it leaves those that were ordered for it."""
        (leaves,) = self._leaves(s, way)
        return [*((max(self.stands_on[s]), way.quarters[0]) for _ in range(int(leaves))), *way.moves]

    def _leaves(self, s: int, ways: _Filled) -> Array:
        """By way whether a service is not on what was ordered for it from the first on."""
        stood = self.stands_on[s]
        if not stood:
            return numpy.zeros(len(ways.types), bool)
        return ~numpy.isin(ways.types[:, ways.quarters[0]], stood)

    def _stays(self, s: int, now: _Filled) -> Iterator[tuple[int, _Filled]]:
        """By move the service without it: on the machines of before until the next one, where those can serve it."""
        for _, q in self.moves(s, now):
            if (stays := self.stays(s, now, {(s, q)})) is not None:
                yield q, stays

    def stays(self, s: int, now: _Filled, without: Collection[At]) -> _Filled | None:
        """A service without some moves: on the machines of before each until the next one; None where those cannot
        serve it."""
        quarters, others = numpy.arange(len(self.months)), self.elsewhere[s]
        moves, (types,), stays = self.moves(s, now), now.types, now
        ends, left = (*(q for _, q in moves[1:]), len(quarters)), -1
        for (before, q), end in zip(moves, ends, strict=False):
            if (s, q) not in without:
                left = -1
                continue
            left = left if left >= 0 else before
            mine = (quarters >= q) & (quarters < end) & (types >= 0)
            able = (others.types.max(axis=1) == left) & (others.types[:, mine] >= 0).all(axis=1)
            if not able.any():
                return None
            stays = stays.but(others[[int(able.argmax())]], mine)
        return stays

    def nearby(self, ways: Ways, resting: Collection[int]) -> Iterator[tuple[int, Ways]]:
        """See `Assignment.nearby`; each with the service that is elsewhere."""
        tried = self._tried([s for s in ways if s not in resting], ways, self._sum(ways), in_parts=True)
        least = -DEARER * self.total_usd(ways)
        every = [(float(saves[i]), s, some, i) for s, saves, some in tried for i in numpy.flatnonzero(saves >= least)]
        seen = {_key(ways)}
        for _, s, some, i in sorted(every, key=lambda way: -way[0]):
            other = ways | {s: some[numpy.array([i])]}
            if (key := _key(other)) not in seen:
                seen.add(key)
                yield s, other

    def _best(
        self, some: Sequence[int], now: Ways, together: _Sum, leaves: bool = False
    ) -> Iterator[tuple[int, float, _Filled]]:
        """By service where it makes the plan cheapest while the others stay, and what that saves. leaves: where it goes
        to other machines in all quarters, if that can be."""
        for s, saves, every in self._tried(some, now, together):
            able = numpy.full(len(saves), True)
            if leaves:
                quarters = every.mine.quarters
                able = (every.types[:-1, quarters] != every.types[0, quarters]).all(axis=1)
            best = int(numpy.where(able, saves, -numpy.inf).argmax())
            yield s, float(saves[best]), every[numpy.array([best])]

    def _tried(
        self, some: Sequence[int], now: Ways, together: _Sum, in_parts: bool = False
    ) -> Iterator[tuple[int, Array, _Tried]]:
        """By service what each of its ways saves while the others stay, and the ways."""
        n = max(1, ROWS // (len(self.place) * together.machines[:, :, 0].size))
        for i in range(0, len(some), n):
            yield from self._tried_of_each(some[i : i + n], now, together, in_parts)

    def _tried_of_each(
        self, some: Sequence[int], now: Ways, together: _Sum, in_parts: bool
    ) -> Iterator[tuple[int, Array, _Tried]]:
        """The same of few: by unit that a way is on what it costs with it, over what it costs without the service."""
        fresh, tried = defaultdict[int, list[tuple[Any, ...]]](list), list[_Tried]()
        for s, others in zip(some, self._spares_of_others(some, now, together), strict=True):
            tried.append(every := self._ways_tried(s, now[s], together if in_parts else None))
            for kind, rows, types in every.changed(together.filled, others, self.unit):
                (fills, spares), (left, _) = (ways.on(types, self.keeps) for ways in (every[every.way[rows]], now[s]))
                machines = together.machines[:, :, types] + fills - left
                fresh[kind].append((every, rows, types, machines, numpy.maximum(others[:, types], spares)))
        for parts in fresh.values():
            types = numpy.concatenate([part[2] for part in parts])
            machines, largest = (numpy.concatenate([part[k] for part in parts], axis=-3) for k in (3, 4))
            usd, ends = self._usd(types, machines, largest), numpy.cumsum([len(part[1]) for part in parts])
            for (every, rows, *_), of_rows in zip(parts, numpy.split(usd, ends[:-1]), strict=True):
                every.usd[rows] = of_rows
        for s, every in zip(some, tried, strict=True):
            yield s, every.saves_usd(together.usd), every

    def _ways_tried(self, s: int, mine: _Filled, together: _Sum | None) -> _Tried:
        """The ways of a service that are tried; with the sum of all those in parts of the quarters, too, on types that
        are in use, and where paid machines are idle."""
        key = s, mine.offers.tobytes()
        if together is None and key in self.tried:
            return self.tried[key]
        alone, nothing = self.elsewhere[s], self._filled([{}])
        few = _Filled.of_all([mine, self.home[s], *(way for _, way in self._stays(s, mine))])
        if together is not None:
            in_use = numpy.append((together.machines > A_BIT).any(axis=(0, 1, 3)), True)  # by type, and last of none
            halves = self._parts(mine, alone[in_use[alone.types].all(axis=1)])
            of_idle = (
                (alone, is_idle[alone.types, numpy.arange(len(self.months))]) for is_idle in self._idle(together)
            )
            windows = [mine.but(ways[some := there.any(axis=1)], there[some]) for ways, there in of_idle]
            alone = _Filled.of_all([mine.but(alone), *halves, *windows])
        every = _Tried(few, alone, nothing, self.units, self.unit)
        besides = [self._besides_usd(s, ways) for ways in (few, mine.but(alone))]
        every.besides_usd = numpy.concatenate(besides)
        if together is None:
            self.tried[key] = every
        return every

    def _parts(self, now: _Filled, others: _Filled) -> Iterator[_Filled]:
        """A service elsewhere from a quarter on, or until then."""
        quarters = numpy.arange(len(self.months))
        for q in now.quarters[1:]:
            for some in (quarters >= q, quarters < q):
                yield now.but(others, some)

    def starts(self, n: int) -> Iterator[Ways]:
        """At home, in the layouts that fill least; and by type all services that it can serve on it, and as many of
        them as is cheapest: first the one that saves most by a part of its machines in place of its own, and so on. Of
        all these n: those of types that are there anyway, then the cheapest."""
        yield {s: self._filling_least(s) for s in self.home}
        if n < 2:
            return
        homes = _Filled.of_all([*self.home.values()])
        near = {*self.unit[homes.types[homes.types >= 0]].tolist()}
        at_home = homes.on(some := self._types_of(near), self.keeps)
        own = self._by_unit(*at_home, some).sum(axis=1)
        by_type = defaultdict[int, dict[int, tuple[float, int, float, _Filled]]](dict)
        for place, ((s, ways), own_usd) in enumerate(zip(self.elsewhere.items(), own, strict=True)):
            there, types = self.home[s].but(ways), ways.types.max(axis=1)
            more = self._part_usd(there) - own_usd
            besides = self._besides_usd(s, there) - self._besides_usd(s, self.home[s])
            for i in numpy.argsort(more, kind="stable").tolist():
                if s not in (of_type := by_type[int(types[i])]):
                    of_type[s] = float(more[i]), place, float(besides[i]), there[[i]]
        together = self._sum(self.home)
        machines, spares = together.machines, together.spared.max(axis=1)
        starts = dict[tuple[bytes, ...], tuple[tuple[bool, float], Ways]]()
        for t, of_it in by_type.items():
            services = sorted(of_it, key=lambda s: of_it[s][0])
            _, places, besides_usd, chosen = zip(*(of_it[s] for s in services), strict=True)
            all_chosen = _Filled.of_all(chosen)
            some = self._types_of(near | {*self.unit[all_chosen.types[all_chosen.types >= 0]].tolist()})
            comes, spared = all_chosen.on(some, self.keeps)
            filled = machines[:, :, some] + numpy.cumsum(comes - homes[[*places]].on(some, self.keeps)[0], axis=2)
            # The largest replicas of those that stay and of those that went: never less than there are.
            largest = numpy.maximum(spares[:, some], numpy.maximum.accumulate(spared, axis=1))
            usd = self._by_unit(filled, largest, some).sum(axis=1) + numpy.cumsum(besides_usd)
            for last in {int(usd.argmin()), len(chosen) - 1}:
                start = self.home | dict(zip(services[: last + 1], chosen, strict=False))
                rank = not self.is_there[t], float(usd[last])
                starts.setdefault(tuple(way.types.tobytes() for way in start.values()), (rank, start))
        of_home = tuple(way.types.tobytes() for way in self.home.values())
        ranked = sorted((start for key, start in starts.items() if key != of_home), key=lambda start: start[0])
        yield from (start for _, start in ranked[: n - 1])

    def _filling_least(self, s: int) -> _Filled:
        """A service on its machines at home, in the layout that fills least of them."""
        there = self.home[s].but(self.elsewhere[s])
        alike = numpy.flatnonzero((there.types == self.home[s].types).all(axis=1))
        return there[[min(alike, key=self._part_usd(there).__getitem__)]] if alike.size else self.home[s]

    def _besides_usd(self, s: int, ways: _Filled) -> Array:
        """The cost of a service's moves; and a near tie of what it fills at home, where it is on machines that it has
        not there, and that are not there anyway."""
        is_near = self.is_near[s][ways.types].all(axis=1)
        leaves_usd = self._leaves(s, ways) * ways.enters_usd[:, ways.quarters[0]]
        return numpy.asarray(ways.moves_usd + leaves_usd + numpy.where(is_near, 0, self.near_usd[s]))

    def _part_usd(self, ways: _Filled) -> Array:
        """By way the cost of the machines that a service fills."""
        filled = (ways.fills[:, 0] * self.weights).sum(axis=1)
        return numpy.asarray((filled * self.months * self.month_usd[ways.types]).sum(axis=1))

    def _filled(self, ways: Sequence[Mapping[At, Placed]]) -> _Filled:
        n_ways, n_quarters = len(ways), len(self.months)
        fills = numpy.zeros((n_ways, len(SURVIVES) + 1, *self.weights.shape))
        spares, enters = numpy.zeros((n_ways, 2, n_quarters)), numpy.zeros((n_ways, n_quarters))
        types, offers = numpy.full((2, n_ways, n_quarters), -1)
        slots = [slot for way in ways for slot in way]
        if not slots:
            return _Filled(fills, spares, types, offers, enters)
        places = [place for way in ways for place in way.values()]
        way, quarters = numpy.repeat(numpy.arange(n_ways), [*map(len, ways)]), numpy.array(slots)[:, 1]
        redundancy = self.plan.redundancy(slots[0][0])
        lost = SURVIVES[redundancy.survive]
        filled, safe, apart = filled_by_hour(places, self.over_peak[tuple(zip(*slots, strict=True))])
        fills[way, 0, :, quarters], fills[way, -1, :, quarters] = filled.T, apart.T
        for k in range(1, 1 + lost):
            fills[way, k, :, quarters] = safe.T
        types[way, quarters] = [self.place[place.instance] for place in places]
        offers[way, quarters] = [place.offer for place in places]
        if lost:
            spares[way, 0, quarters] = [1 / place.replicas_per_instance for place in places]
            spares[way, 1, quarters] = 1 / (redundancy.zones - 1) if lost == ZONE else 0
        pairs = zip(places, quarters, strict=True)
        enters[way, quarters] = [moving_usd(self.plan, place, self.months[q]) for place, q in pairs]
        return _Filled(fills, spares, types, offers, enters)

    def _sum(self, ways: Ways) -> _Sum:
        of_all, spared = _Filled.of_all([*ways.values()]), self._spared(ways)
        every = numpy.zeros((self.keeps + 1, *of_all.fills.shape[1:3], len(self.place), len(self.months)))
        for then, stays in zip(every, of_all.stays(self.keeps), strict=True):
            which, quarters = numpy.nonzero(stays)
            filled = numpy.moveaxis(of_all.fills[which, ..., quarters], 0, -1)
            numpy.add.at(then, (..., of_all.types[which, quarters], quarters), filled)  # type: ignore[arg-type]
        machines = every.reshape(-1, *every.shape[2:])
        usd = self._by_unit(machines[:, :, None], spared.max(axis=1)[:, None], self.every[None])[0]
        some = self.unit[(machines > A_BIT).any(axis=(0, 1, 3))]
        return _Sum(machines, spared, usd, self._numbered(numpy.zeros(self.n_units, int), some, machines))

    def _sum_with(self, together: _Sum, place: int, mine: _Filled, there: _Filled) -> _Sum:
        """The sum where a service, by its place among all, is there: of other units what it was."""
        machines, spared, usd = together.machines.copy(), together.spared.copy(), together.usd.copy()
        spared[:, place] = 0
        for way, sign in ((mine, -1), (there, 1)):
            types, quarters, n_fills = way.types[0, way.quarters], way.quarters, way.fills.shape[1]
            for n, (stays,) in enumerate(way.stays(self.keeps)):
                some = numpy.flatnonzero(stays)
                then = machines[n * n_fills : (n + 1) * n_fills]
                then[:, :, way.types[0, some], some] += sign * way.fills[0][:, :, some]
        spared[:, place, types, quarters] = there.spares[0][:, quarters]
        changed = {*self.unit[mine.types[0, mine.quarters]].tolist(), *self.unit[types].tolist()}
        for units in self.units:
            some = units[numpy.isin(self.unit[units[:, 0]], [*changed])]
            if some.size:
                usd[self.unit[some[:, 0]]] = self._usd(some, machines[:, :, some], spared.max(axis=1)[:, some])
        return _Sum(machines, spared, usd, self._numbered(together.filled, numpy.array([*changed]), machines))

    def _numbered(self, filled: Array, changed: Array, machines: Array) -> Array:
        """By unit the number of what is filled of it, where that of some has changed."""
        filled = filled.copy()
        for unit in numpy.unique(changed).tolist():
            of_unit = numpy.round(machines[:, :, self.unit == unit], 9) + 0.0
            filled[unit] = self.numbers.setdefault(of_unit.tobytes(), len(self.numbers) + 1) if of_unit.any() else 0
        return filled

    def _types_of(self, units: set[int]) -> Array:
        """The types of some units, as one row."""
        return numpy.flatnonzero(numpy.isin(self.unit, [*units]))[None]

    def _spared(self, ways: Ways) -> Array:
        """By service and type what it spares."""
        of_all = _Filled.of_all([*ways.values()])
        spared = numpy.zeros((2, len(ways), len(self.place), len(self.months)))
        which, quarters = numpy.nonzero(of_all.types >= 0)
        spared[:, which, of_all.types[which, quarters], quarters] = of_all.spares[which, :, quarters].T
        return spared

    def _spares_of_others(self, some: Sequence[int], now: Ways, together: _Sum) -> list[Array]:
        """By some of the services the largest of what the others spare."""
        every, place = together.spared, {s: i for i, s in enumerate(now)}
        if len(some) == 1:
            return [numpy.delete(every, place[some[0]], axis=1).max(axis=1, initial=0)]
        second, first = numpy.partition(every, -2, axis=1)[:, -2:].swapaxes(0, 1)
        return [numpy.where(every[:, place[s]] == first, second, first) for s in some]

    def _by_unit(self, machines: Array, spares: Array, types: Array) -> Array:
        """By plan and unit what must be bought costs. machines, spares: with plans and types before the quarters;
        types: those, in their order, all of a unit."""
        n_plans = machines.shape[2]
        usd = numpy.zeros((n_plans, self.n_units))
        used, place = numpy.zeros(len(self.every), bool), numpy.zeros(len(self.every), int)
        used[types], place[types] = (machines > A_BIT).any(axis=(0, 1, 2, 4)), numpy.arange(types.size)
        for some in self.units:
            units = some[used[some].any(axis=1)]
            if units.size:
                rows, mine = (n_plans * len(units), units.shape[1], len(self.months)), place[units]
                filled, spared = (part[..., mine, :].reshape(*part.shape[:-3], *rows) for part in (machines, spares))
                of_rows = self._usd(numpy.tile(units, (n_plans, 1)), filled, spared)
                usd[:, self.unit[units[:, 0]]] = of_rows.reshape(n_plans, -1)
        return usd

    def _usd(self, types: Array, machines: Array, spares: Array) -> Array:
        """The cost of what must be bought of units, one or another in each row: the mean of the hours at p50 and at the
        quantile. types: by row, those of its unit; machines, spares: what is filled, and the largest that is spared,
        with rows and types before the quarters."""
        # Sums of parts that are taken off again leave a trace that is no machine.
        rows = numpy.round(machines, 9).transpose(2, 0, 1, 3, 4), spares.transpose(1, 0, 2, 3), types
        whole = numpy.ascontiguousarray(numpy.concatenate([part.reshape(len(types), -1) for part in rows], axis=1))
        keys = [blake2b(row, digest_size=16).digest() for row in whole]
        fresh = {key: row for row, key in enumerate(keys) if key not in self.seen}
        new, n = [*fresh.values()], max(1, AT_ONCE // whole.shape[1])
        for i in range(0, len(new), n):
            usd = self._usd_of_rows(types[new[i : i + n]], *(part[new[i : i + n]] for part in rows[:2]))
            self.seen |= zip((keys[row] for row in new[i : i + n]), usd.tolist(), strict=True)
        return numpy.array([self.seen[key] for key in keys])

    def _usd_of_rows(self, types: Array, machines: Array, spares: Array) -> Array:
        spans, needed_then = numpy.arange(len(self.spans)), self._needed(types, machines, spares)
        needed = needed_then[0]
        earlier = self.earlier.reshape(len(self.earlier), *[1] * (needed.ndim - 1), -1)
        by_earlier = self._by_earlier_span(needed)
        if self.keeps:
            by_earlier = numpy.moveaxis(numpy.moveaxis(needed_then, -1, 1)[self.later, self.earlier], 1, -1)
        kept = needs.kept_instances(by_earlier, earlier, spans, self.before)
        owned = self._owned(types[0], kept, gives_rest=False)
        committed = self.committed[types]
        # Rows in which one type may serve another: of one alone none does.
        some = numpy.flatnonzero(((needed > 0).any(axis=(0, -1)) | (committed > 0).any(axis=-1)).sum(axis=-1) > 1)
        if some.size:
            borrowed = numpy.zeros(needed.shape)
            pool = self._pool(types[0], needed[:, some], owned[:, some])
            borrowed[:, some] = numpy.repeat(numpy.stack(pool.borrowed, axis=-2), len(needed) // 2, axis=0)
            committed = committed + borrowed
        short = needs.short_instances(needed, owned, committed)
        missing = needs.gap(self._by_earlier_span(short), earlier, spans, self.before, kept, owned, committed)
        for purchase, term in self.terms.items():
            mine = self.bought_as[types] == purchase
            paid = term.paid_quarters(numpy.moveaxis(short[:, mine], -1, 0))
            missing[:, mine] = numpy.moveaxis(paid, 0, -1) / self.spans.shares * self.signed[purchase]
        months = self._paid_months(missing, self.of_term[types])
        return numpy.asarray((months * self.month_usd[types]).sum(axis=1))

    def _needed(self, types: Array, machines: Array, spares: Array) -> Array:
        """By block of hours, row, type and span the machines that are needed: first of all services, then of those that
        are there a quarter later still, and so on."""
        filled = machines.transpose(1, 2, 0, 3, 4)[..., self.spans.quarters]
        spared = spares.transpose(1, 0, 2, 3)[..., self.spans.quarters]
        then = filled.reshape(self.keeps + 1, -1, *filled.shape[1:]).swapaxes(0, 1)
        needed = needs.needed_instances(*then, *spared[:, None], self.lost[types])
        pairs = needed.reshape(len(needed), 2, -1, *needed.shape[2:])
        held = numpy.where(self.is_held[types][..., None], pairs.max(axis=2, keepdims=True), pairs)
        return numpy.asarray(held.reshape(needed.shape))

    def _owned(self, unit: Array, kept: Array, gives_rest: bool) -> Array:
        """The same of owned machines. unit: its types."""
        if not self.is_owned[unit[0]]:
            return numpy.zeros(kept.shape)
        of_types = [*numpy.moveaxis(kept, -2, 0)]
        counts = self.supply.owned_instances([self.kinds[t] for t in unit], of_types, gives_rest)
        return numpy.stack([numpy.broadcast_to(count, of_types[0].shape) for count in counts], axis=-2)

    def _pool(self, unit: Array, needed: Array, owned: Array) -> PaidPool:
        """The paid machines of a unit, of which each type has borrowed in place of what it is short of; by pair, row
        and span, in all hours."""
        counts = [part.reshape(2, -1, *part.shape[1:]).max(axis=1) for part in (needed, owned)]
        of_needed, of_owned = ([*numpy.moveaxis(part, -2, 0)] for part in counts)
        pool = PaidPool([self.shapes[t] for t in unit], of_needed, of_owned, [*self.committed[unit]])
        ways = [self.terms.get(self.bought_as[t]) for t in unit]
        for i, way in sorted(enumerate(ways), key=lambda place: place[1] is None):
            pool.borrow(i)
            if way is not None:
                runs = way.running_machines(numpy.moveaxis(pool.short(i), -1, 0))
                pool.add_paid(i, numpy.moveaxis(runs, 0, -1))
        return pool

    def _idle(self, together: _Sum) -> Iterator[Array]:
        """By type, and last of none, and quarter whether paid machines are idle that can serve it, at the quantile
        that is bought: on some day of the quarter, and on all of them."""
        counts = numpy.zeros((len(self.place) + 1, len(self.spans)))
        spared = together.spared.max(axis=1)
        for unit in itertools.chain.from_iterable(self.units):
            if not (self.is_there[unit].any() or (together.machines[:, :, unit] > A_BIT).any()):
                continue
            needed = self._needed(unit[None], together.machines[None, :, :, unit], spared[None, :, unit])[0]
            pool = self._pool(unit, needed, self._owned(unit, needed, gives_rest=True))
            for i, t in enumerate(unit):
                counts[t] = pool.idle_for(i)[-1, 0]
        for of_quarter in (numpy.maximum, numpy.minimum):
            yield of_quarter.reduceat(counts, self.spans.firsts, axis=1) > 0

    def _by_earlier_span(self, counts: Array) -> Array:
        """Counts by span, the last side, and first by the spans from which it keeps machines."""
        return numpy.moveaxis(counts[..., self.earlier], -2, 0)

    def _paid_months(self, missing: Array, of_term: Array) -> Array:
        """By row and type months of machines that are paid, of those that are missing by block of hours, row, type and
        span, at today's price: the mean of the hours at p50 and at the quantile. Of a mix those machines are bought
        for a term that the hours at the quantile need for a larger share of the time than what the term costs over
        it."""
        paid = (self.weights * self.months)[:, None, None, self.spans.quarters] * self.spans.shares
        if (of_term == 1).all():
            return numpy.asarray((missing * paid).sum(axis=(0, -1)))
        half = len(self.weights) // 2
        counts = numpy.moveaxis(missing[half:], 0, -2).reshape(*of_term.shape, -1)
        order = numpy.argsort(-counts, axis=-1, kind="stable")
        hours = numpy.cumsum((paid[half:, 0, 0] * 2).reshape(-1)[order], axis=-1)
        whole = self.months.sum()
        enough = hours > (of_term * whole)[..., None] + A_BIT
        base = numpy.where(enough, numpy.take_along_axis(counts, order, axis=-1), 0).max(axis=-1)
        above = numpy.maximum(0, missing - base[..., None])
        return numpy.asarray((above * paid).sum(axis=(0, -1)) + base * of_term * whole)
