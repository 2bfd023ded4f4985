"""Services placed together: on machines that another half fills, or that are there anyway.

`recommend` places each service by itself, on whole machines, and knows of no supply. Here services go to another type,
some together or one to what others are on or what is owned or committed, for all quarters or for those of the supply,
where the whole plan is cheaper for it: by more than a near tie of what they cost, unless it is for what is there. A
plan costs what must be bought, on average at p50 and at the quantile that is bought, and what its moves do.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy

from sheetgen.plan import needs
from sheetgen.plan.arrays import Array
from sheetgen.plan.orders import QUARTERS_OF_TERM, buying
from sheetgen.plan.placement import At, Placed, filled_by_hour
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.supplied import Supplied, supplied
from sheetgen.sizing.parallelism import MACHINE, REPLICA, ZONE

SWEEPS = 4  # over all services, as a move may make room for another
A_CENT = 0.01
A_BIT = 1e-9  # of a month
TRIES = 60  # services that are put together to begin with: all types for few services, one for many
AT_ONCE = 300_000  # numbers of the ways that are counted together
SURVIVES = {"none": 0, "replica": REPLICA, "machine": MACHINE, "zone": ZONE}


def moving_usd(plan: Plan, there: Placed, months: float) -> float:
    """The cost of a move to a place: as stated, or what its replicas do while those of before run beside them. months:
    what a month's price stands for until the next quarter."""
    stated = plan.policy.moving_cost_usd
    twice = there.twice_usd(plan.policy.move_days) * months / MONTHS_IN_A_QUARTER
    return twice if stated is None else stated


def together(
    plan: Plan,
    here: Mapping[At, str],
    places: Mapping[At, Mapping[str, Placed]],
    by_hour: bool,
    of_term: Mapping[str, float],
) -> tuple[Mapping[At, Placed], dict[At, float]]:
    """The places of services, moved from `here` where the plan is cheaper for it; and what it would cost more without
    each move, NaN where it cannot do without. places: on each type of machine that can serve a service in a quarter the
    layout on which it fills least; by_hour: where what is bought is rented for the hours that need it; of_term: by type
    what a month of the cheapest term of a mix costs over one on demand."""
    supply = supplied(plan)
    by_service: dict[int, dict[At, Placed]] = defaultdict(dict)
    for slot in sorted(here):
        by_service[slot[0]][slot] = places[slot][here[slot]]
    if not by_service:
        return {}, {}
    search = _Search(plan, supply, by_service, places, by_hour, of_term)
    best = search.home
    if len(by_service) > 1 or supply.is_any:  # one service by itself is where `recommend` has it
        best = search.improved(search.home)
        for start in search.starts(max(1, TRIES // len(by_service))):
            if search.total_usd(better := search.improved(start)) < search.total_usd(best):
                best = better
    types = list(search.place)
    there = {(s, q): places[s, q][types[t]] for s, filled in best.items() for q, t in enumerate(filled.types) if t >= 0}
    return there, search.moves(best)


def _alternatives(
    supply: Supplied, mine: Iterable[At], places: Mapping[At, Mapping[str, Placed]]
) -> Iterator[dict[At, Placed]]:
    """A service on each type of machine: in all quarters in which that can serve it; and in those alone in which there
    is some of it anyway."""
    by_type: dict[str, dict[At, Placed]] = {}
    for slot in mine:
        for name, place in places[slot].items():
            by_type.setdefault(name, {})[slot] = place
    for whole in by_type.values():
        yield whole
        there = {slot: place for slot, place in whole.items() if supply.has(place, slot[1])}
        if there and len(there) < len(whole):
            yield there


@dataclass(frozen=True)
class _Filled:
    """A service's machines by quarter, on one type each."""

    # (Filled, what a lost replica, machine or zone must leave of it, what lies apart) x pair x quarters.
    fills: Array
    spares_of: Array  # (machines of its largest replica, its share of zones) x quarters
    types: Array  # by position; -1 where it has none
    enters_usd: Array  # what it costs to come there
    n_types: int

    @property
    def machines(self) -> Array:
        """The machines that it fills by type, too: with types before the quarters."""
        return self._by_type(self.fills)

    @property
    def spares(self) -> Array:
        """The machines that it spares by type, too."""
        return self._by_type(self.spares_of)

    def _by_type(self, values: Array) -> Array:
        by_type = numpy.zeros((*values.shape[:-1], self.n_types, values.shape[-1]))
        quarters = numpy.flatnonzero(self.types >= 0)
        by_type[..., self.types[quarters], quarters] = values[..., quarters]
        return by_type

    def but(self, other: _Filled, quarters: Array | bool = True) -> _Filled:
        """These, and in the quarters of another, or some of them, those."""
        if quarters is True and (other.types >= 0)[self.types >= 0].all():
            return other
        there = (other.types >= 0) & quarters
        parts = ("fills", "spares_of", "types", "enters_usd")
        return replace(self, **{name: numpy.where(there, getattr(other, name), getattr(self, name)) for name in parts})

    @cached_property
    def moves(self) -> list[tuple[int, int]]:
        """The quarters in which it comes to other machines, each with the one before."""
        served = numpy.flatnonzero(self.types >= 0)
        pairs = itertools.pairwise(served.tolist())
        return [(before, q) for before, q in pairs if self.types[before] != self.types[q]]

    @cached_property
    def moves_usd(self) -> float:
        return float(sum(self.enters_usd[q] for _, q in self.moves))


Ways = dict[int, _Filled]  # by service


class _Search:
    """The cost of a plan by the places of its services, and cheaper places."""

    def __init__(
        self,
        plan: Plan,
        supply: Supplied,
        home: Mapping[int, dict[At, Placed]],
        places: Mapping[At, Mapping[str, Placed]],
        by_hour: bool,
        of_term: Mapping[str, float],
    ) -> None:
        self.plan, self.months = plan, numpy.array(plan.months)
        mean_loads, hours = plan.week.in_blocks
        self.over_peak = mean_loads if by_hour else plan.week.peaks_in_blocks
        self.weights = numpy.concatenate([hours.T, hours.T]) / 2  # at p50 and at the quantile, by block of hours
        types = {name: place for of_slot in places.values() for name, place in of_slot.items()}
        self.place = {name: i for i, name in enumerate(types)}
        self.month_usd = numpy.array([place.instance_month_usd for place in types.values()])
        self.of_term = numpy.array([of_term.get(name, 1.0) for name in types])
        self.bought_as = numpy.array([plan.class_of(name) for name in types])
        # By type, whether there are in all hours so many as in the one that needs most.
        self.is_held = numpy.array([not by_hour or way in QUARTERS_OF_TERM for way in self.bought_as])
        self.terms = {way: buying(plan, None, way) for way in {*self.bought_as.tolist()} & QUARTERS_OF_TERM.keys()}
        none = numpy.zeros(len(self.months))
        self.committed = numpy.array([supply.committed.get(name, none) for name in types]).reshape(-1, len(none))
        self.supply = supply
        self.kinds = [(place.candidate.gpu.id, place.candidate.gpu_count) for place in types.values()]
        self.lost = numpy.array([supply.lost_instances(gpu, n) + none for gpu, n in self.kinds])
        self.is_owned = numpy.array([gpu in supply.gpus for gpu, _ in self.kinds])  # some of its GPUs
        self.is_there = (self.committed > 0).any(axis=1) | self.is_owned
        self.home = {s: self._filled(mine) for s, mine in home.items()}
        # By type, and last of none: whether a service is there at home, or it is there anyway.
        self.is_near = {s: numpy.append(self.is_there, True) for s in self.home}
        for s, filled in self.home.items():
            self.is_near[s][filled.types] = True
        self.near_usd = {s: plan.policy.near_tie_fraction * self._part_usd(filled) for s, filled in self.home.items()}
        self.elsewhere = {
            s: [self._filled(places_of) for places_of in _alternatives(supply, mine, places)]
            for s, mine in home.items()
        }

    def total_usd(self, ways: Ways) -> float:
        """The cost of the plan, and what must be saved besides for services that are not at home."""
        return float(self._usd(*_sum(ways.values()))) + sum(self._besides_usd(s, filled) for s, filled in ways.items())

    def improved(self, ways: Ways) -> Ways:
        """Services moved one by one while that makes the plan cheaper: home, to what others are on, to what is there,
        or no more from what they were on before. In each sweep the one that saves most goes first, as it may leave no
        reason to the others."""
        now = dict(ways)
        for _ in range(SWEEPS):
            saves = {s: saved for s, saved, _ in self._best(now, now) if saved > A_CENT}
            moved = 0
            for s in sorted(saves, key=lambda s: -saves[s]):
                ((_, saved, there),) = self._best([s], now)
                if saved > A_CENT:
                    now[s], moved = there, moved + 1
            if not moved:
                break
        return now

    def moves(self, ways: Ways) -> dict[At, float]:
        """By move what the plan would cost more without it; NaN where it cannot do without."""
        saves: dict[At, float] = {}
        total = float(self._usd(*_sum(ways.values())))
        for s, filled in ways.items():
            stays = dict(self._stays(s, filled))
            for _, q in filled.moves:
                other = ways | {s: stays[q]} if q in stays else None
                saves[s, q] = numpy.nan if other is None else float(self._usd(*_sum(other.values()))) - total
        return saves

    def _stays(self, s: int, now: _Filled) -> Iterator[tuple[int, _Filled]]:
        """By move the service without it: on the machines of before until the next one, where those can serve it."""
        quarters = numpy.arange(len(self.months))
        ends = (*(q for _, q in now.moves[1:]), len(quarters))
        for (before, q), end in zip(now.moves, ends, strict=False):
            mine = (quarters >= q) & (quarters < end) & (now.types >= 0)
            for other in self.elsewhere[s]:
                if other.types.max() == now.types[before] and (other.types[mine] >= 0).all():
                    yield q, now.but(other, mine)
                    break

    def _best(self, some: Iterable[int], now: Ways) -> Iterator[tuple[int, float, _Filled]]:
        """By service where it makes the plan cheapest while the others stay, and what that saves."""
        machines, some = _total([*now.values()]), [*some]
        tried, rests = list[tuple[int, _Filled]](), list[tuple[Array, Array]]()
        largest = _without_each(now, some)
        for s in some:
            rest = machines - now[s].machines, largest[s]
            is_open = (rest[0] > 1e-9).any(axis=(0, 1, 3)) | self.is_there
            mine = [now[s], self.home[s], *(way for _, way in self._stays(s, now[s]))]
            mine += [now[s].but(way) for way in self.elsewhere[s] if is_open[way.types.max()]]
            unlike = {way.types.tobytes(): way for way in mine}  # on the same types they are the same
            tried += ((s, way) for way in unlike.values())
            rests += [rest] * len(unlike)
        n = max(1, AT_ONCE // machines.size)
        usd: list[float] = []
        for i in range(0, len(tried), n):
            pairs = [*zip(rests[i : i + n], tried[i : i + n], strict=True)]
            filled = numpy.array([rest + way.machines for (rest, _), (_, way) in pairs])
            spares = numpy.array([numpy.maximum(rest, way.spares) for (_, rest), (_, way) in pairs])
            usd += (self._usd(filled, spares) + [self._besides_usd(s, way) for _, (s, way) in pairs]).tolist()
        for s, many in itertools.groupby(range(len(tried)), lambda i: tried[i][0]):
            first, *_ = of_it = [*many]
            best = min(of_it, key=lambda i: usd[i])
            yield s, float(usd[first] - usd[best]), tried[best][1]

    def starts(self, n: int) -> Iterator[Ways]:
        """By type all services that it can serve on it, and as many of them as is cheapest: first the one that saves
        most by a part of its machines in place of its own, and so on. Of all these the n cheapest."""
        own = {s: float(self._usd(way.machines, way.spares)) for s, way in self.home.items()}
        by_type: dict[int, dict[int, tuple[float, _Filled]]] = defaultdict(dict)
        for s, every in self.elsewhere.items():
            for way in every:
                there, t = self.home[s].but(way), int(way.types.max())
                more = self._part_usd(there) - own[s]
                if s not in by_type[t] or more < by_type[t][s][0]:
                    by_type[t][s] = more, there
        (machines, spares), starts = _sum(self.home.values()), list[tuple[float, int, Ways]]()
        for of_it in by_type.values():
            ranked = sorted(of_it, key=lambda s: of_it[s][0])
            chosen = [(s, of_it[s][1]) for s in ranked]
            filled = machines + numpy.cumsum([way.machines - self.home[s].machines for s, way in chosen], axis=0)
            # The largest replicas of those that stay and of those that went: never less than there are.
            largest = numpy.maximum(spares, numpy.maximum.accumulate([way.spares for _, way in chosen]))
            besides = [self._besides_usd(s, way) - self._besides_usd(s, self.home[s]) for s, way in chosen]
            usd = self._usd(filled, largest) + numpy.cumsum(besides)
            for last in {int(usd.argmin()), len(chosen) - 1}:
                starts.append((float(usd[last]), len(starts), self.home | dict(chosen[: last + 1])))
        yield from (ways for *_, ways in sorted(starts, key=lambda start: start[:2])[:n])

    def _besides_usd(self, s: int, there: _Filled) -> float:
        """The cost of a service's moves; and a near tie of what it fills at home, where it is on machines that it has
        not there, and that are not there anyway."""
        return there.moves_usd + (0 if self.is_near[s][there.types].all() else self.near_usd[s])

    def _part_usd(self, way: _Filled) -> float:
        """The cost of the machines that a service fills."""
        filled = (way.fills[0] * self.weights).sum(axis=0)
        return float((filled * self.months) @ self.month_usd[way.types])

    def _filled(self, places: Mapping[At, Placed]) -> _Filled:
        redundancy = self.plan.redundancy(next(iter(places))[0])
        lost = SURVIVES[redundancy.survive]
        zone_share = 1 / (redundancy.zones - 1) if lost == ZONE else 0
        n_quarters = len(self.months)
        fills = numpy.zeros((len(SURVIVES) + 1, *self.weights.shape))
        spares, types = numpy.zeros((2, n_quarters)), numpy.full(n_quarters, -1)
        enters = numpy.zeros(n_quarters)
        every, slots = [*places.values()], [*places]
        quarters = [q for _, q in slots]
        fills[0][:, quarters], safe, fills[-1][:, quarters] = filled_by_hour(
            every, self.over_peak[tuple(zip(*slots, strict=True))]
        )
        fills[1 : 1 + lost][:, :, quarters] = safe
        for q, place in zip(quarters, every, strict=True):
            types[q] = self.place[place.instance]
            if lost:
                spares[:, q] = 1 / place.replicas_per_instance, zone_share
            enters[q] = moving_usd(self.plan, place, self.months[q])
        return _Filled(fills, spares, types, enters, len(self.place))

    def _usd(self, machines: Array, spares: Array) -> Array:
        """The cost of what must be bought, of what is filled of each type and quarter: the mean of the hours at p50 and
        at the quantile."""
        quarters = numpy.arange(len(self.months))
        used = numpy.asarray((machines.reshape(-1, *self.committed.shape) > 0).any(axis=(0, 2)))
        # Sums of parts that are taken off again leave a trace that is no machine.
        filled = numpy.moveaxis(numpy.round(machines[..., used, :], 9), -4, 0)
        largest = numpy.moveaxis(spares[..., used, :], -3, 0)[..., None, :, :]
        needed = needs.needed_instances(*filled, *largest, self.lost[used])
        pairs = needed.reshape(*needed.shape[:-3], 2, -1, *needed.shape[-2:])
        held = numpy.where(self.is_held[used][:, None], pairs.max(axis=-3, keepdims=True), pairs)
        needed = held.reshape(needed.shape)
        release, earlier = self.plan.policy.release_after_quarters, quarters.reshape(-1, *[1] * needed.ndim)
        kept = needs.kept_instances(_by_earlier_quarter(needed), earlier, quarters, release)
        owned, mine = numpy.zeros(kept.shape), numpy.flatnonzero(self.is_owned[used])
        kinds = [self.kinds[i] for i in numpy.flatnonzero(self.is_owned & used)]
        of_types = self.supply.owned_instances(kinds, [kept[..., t, :] for t in mine], gives_rest=False)
        for t, counts in zip(mine, of_types, strict=True):
            owned[..., t, :] = counts
        committed = self.committed[used]
        short = needs.short_instances(needed, owned, committed)
        missing = needs.gap(_by_earlier_quarter(short), earlier, quarters, release, kept, owned, committed)
        for purchase, term in self.terms.items():
            mine = self.bought_as[used] == purchase
            paid = term.paid_quarters(numpy.moveaxis(short[..., mine, :], -1, 0))
            missing[..., mine, :] = numpy.moveaxis(paid, 0, -1)
        return numpy.asarray(self._paid_months(missing, self.of_term[used]) @ self.month_usd[used])

    def _paid_months(self, missing: Array, of_term: Array) -> Array:
        """By type months of machines that are paid, of those that are missing by block of hours, type and quarter, at
        today's price: the mean of the hours at p50 and at the quantile. Of a mix those machines are bought for a term
        that the hours at the quantile need for a larger share of the time than what the term costs over it."""
        paid = self.weights[:, None, :] * self.months
        if (of_term == 1).all():
            return numpy.asarray((missing * paid).sum(axis=(-3, -1)))
        half = len(self.weights) // 2
        counts = numpy.moveaxis(missing[..., half:, :, :], -2, -3).reshape(*missing.shape[:-3], len(of_term), -1)
        order = numpy.argsort(-counts, axis=-1, kind="stable")
        hours = numpy.cumsum((paid[half:, 0] * 2).reshape(-1)[order], axis=-1)
        whole = self.months.sum()
        enough = hours > (of_term * whole)[:, None] + A_BIT
        ranked = numpy.take_along_axis(counts, order, axis=-1)
        base = numpy.where(enough, ranked, 0).max(axis=-1)
        above = numpy.maximum(0, missing - base[..., None, :, None])
        return numpy.asarray((above * paid).sum(axis=(-3, -1)) + base * of_term * whole)


def _by_earlier_quarter(counts: Array) -> Array:
    """Counts by quarter, the last side, as rows that are read whole for each quarter: they are the first side then."""
    return numpy.moveaxis(counts, -1, 0)[..., None]


def _spread(services: Sequence[_Filled], values: Array, into: numpy.ufunc, n_types: int) -> Array:
    """Values of services by quarter, their last side, put together by type: added or the largest of them, as `into`
    says."""
    types = numpy.array([filled.types for filled in services])
    which, quarters = numpy.nonzero(types >= 0)
    spread = numpy.zeros((*values.shape[1:-1], n_types, values.shape[-1]))
    parts = numpy.moveaxis(numpy.array(values)[which, ..., quarters], 0, -1)
    into.at(spread, (..., types[which, quarters], quarters), parts)  # type: ignore[arg-type]
    return spread


def _total(services: Sequence[_Filled]) -> Array:
    """The machines that services fill together, by type."""
    return _spread(services, numpy.array([filled.fills for filled in services]), numpy.add, services[0].n_types)


def _largest(services: Sequence[_Filled], like: _Filled) -> Array:
    """The largest of what services spare, by type; of none as one like them has it."""
    if not services:
        return numpy.zeros_like(like.spares)
    return _spread(services, numpy.array([filled.spares_of for filled in services]), numpy.maximum, like.n_types)


def _sum(services: Iterable[_Filled]) -> tuple[Array, Array]:
    """The machines that services fill together, and the largest of what they spare."""
    every = [*services]
    return _total(every), _largest(every, every[0])


def _without_each(ways: Ways, some: Iterable[int]) -> dict[int, Array]:
    """By some of the services the largest of what the others spare."""
    if len(few := [*some]) == 1:
        return {few[0]: _largest([filled for s, filled in ways.items() if s != few[0]], ways[few[0]])}
    every = numpy.array([filled.spares for filled in ways.values()])
    order = numpy.argsort(every, axis=0)
    first = numpy.take_along_axis(every, order[-1:], axis=0)[0]
    second = numpy.take_along_axis(every, order[-2:-1], axis=0)[0] if len(every) > 1 else numpy.zeros(first.shape)
    return {s: numpy.where(order[-1] == i, second, first) for i, s in enumerate(ways)}
