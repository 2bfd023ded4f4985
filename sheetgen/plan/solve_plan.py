"""Work a plan out: demand, hardware, machines, supply, what is late, and money.

The hardware is that of the cheapest whole plan that is found. Of few services plans are tried without each type of
machine that is bought, too, the one with the fewest services first: more types to choose from may hide a cheaper plan
on fewer of them. At last each move, and all of them together, are left undone, with the other services laid out anew:
a move that saves nothing over that is none of the plan.
"""

from __future__ import annotations

import datetime
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy

from sheetgen.plan.decisions import late, unserved
from sheetgen.plan.hardware_by_quarter import Beginning, Hardware, Loads, Sized, sized
from sheetgen.plan.orders import class_months
from sheetgen.plan.placement import At
from sheetgen.plan.schema import MIX, QUANTILES
from sheetgen.plan.spending import A_CENT
from sheetgen.plan.stated_plan import Base, Plan
from sheetgen.plan.supplied import supplied
from sheetgen.plan.tables import (
    OF_SERVICE,
    Rented,
    Type,
    Z,
    buy,
    demand_grid,
    put_hardware,
    put_supply,
    put_times,
    share,
    types_of,
    work_out,
)
from sheetgen.plan.terms import base_of
from sheetgen.plan.worked_plan import CASE, Answer, moves_usd
from sheetgen.program.grid import Grid

FEW = 12  # services, of which plans without some types of machine are tried
NEARBY = 2  # whole plans with one service elsewhere that are tried, by service
REARRANGED = 1  # the same where the others move for it
LeftOut = frozenset[str]  # types of machine


def solved_plan(
    plan: Plan,
    timed: bool = True,
    kept: Loads | None = None,
    hardware: Hardware | None = None,
    tried: Iterable[LeftOut] | None = None,
    begin: Beginning | None = None,
) -> Answer:
    """The plan worked out; not timed, without how fast its hardware is. kept: see `sized`; hardware: what it is on,
    where that is not to be chosen; tried: the types without which it is tried, where these are not to be searched
    for; begin: where the search of a plan of many services begins."""
    plan, grid = _unsolved(plan)
    if hardware:
        return _bought(plan, grid, hardware)
    rates, at_once = (grid.spread(name, OF_SERVICE) for name in ("requests_per_second", "concurrent_requests"))
    loads = sized(plan, rates, at_once, kept)
    best = _Search(plan, grid, loads).cheapest(tried, begin)
    return _timed(best, loads.with_speeds(best.hardware)) if timed else best


def _unsolved(plan: Plan) -> tuple[Plan, Grid]:
    """A plan without what is worked out of it, and its demand."""
    plan = replace(plan, base=(), held=())
    return plan, demand_grid(plan, numpy.array([Z[name] for name in QUANTILES]))


def without_moves(answer: Answer, moves: frozenset[At]) -> Answer | None:
    """The plan without some moves, all other services laid out anew; None where a service cannot do without its own."""
    if moves not in answer.without_moves:
        _Search(*_unsolved(answer.plan), None).without_moves(_Whole.of_answer(answer), moves)
    return answer.without_moves[moves]


@dataclass(frozen=True)
class _Whole:
    """A whole plan as it is judged."""

    answer: Answer
    lost: tuple[float, ...]  # days of services that have no machine, of those up to each priority
    usd: float  # to the end of its terms, and its moves; the mean of p50 and of the quantile that is bought

    @classmethod
    def of_answer(cls, answer: Answer) -> _Whole:
        plan, case = answer.plan, answer.case
        lost = defaultdict[float, float](float)
        for s, q in answer.hardware.nothing:
            days = (plan.last_day(plan.quarters[q]) - plan.first_day(plan.quarters[q])).days + 1
            lost[plan.priorities[s]] += days
        for gap in unserved(answer):
            lost[plan.priorities[gap.service]] += gap.share * ((gap.last - gap.first).days + 1)
        spend = float(answer.money["spend_usd"][:, [CASE["p50"], case]].sum()) / 2
        return cls(
            answer,
            tuple(round(days, 6) for days in accumulate(lost[priority] for priority in sorted({*plan.priorities}))),
            spend + moves_usd(answer, plan),
        )

    @property
    def rank(self) -> tuple[float, int]:
        """Its cost in cents; of equal ones with the fewest moves first."""
        return round(self.usd, 2), len(self.answer.hardware.moves)

    def is_cheaper(self, other: _Whole) -> bool:
        """True where it is, and serves no less."""
        return self.usd < other.usd - A_CENT and self.serves_no_less(other)

    def is_better(self, other: _Whole) -> bool:
        """True where it is cheaper, or serves more for no more than a near tie."""
        near_usd = other.usd * (1 + self.answer.plan.policy.near_tie_fraction)
        serves_more = self.lost != other.lost and self.serves_no_less(other)
        return self.is_cheaper(other) or (serves_more and self.usd <= near_usd)

    def serves_no_less(self, other: _Whole) -> bool:
        """True where of the services up to each priority no more is lost."""
        return all(mine <= theirs for mine, theirs in zip(self.lost, other.lost, strict=True))


class _Search:
    """The hardware of a plan, and cheaper whole plans."""

    def __init__(self, plan: Plan, grid: Grid, loads: Sized | None) -> None:
        self.plan, self.grid, self.loads = plan, grid, loads  # no loads: of a plan that has its hardware
        self.wholes: dict[frozenset[tuple[At, int, datetime.date | None]], _Whole] = {}  # by the places of the services
        # One service by itself is where `recommend` has it.
        self.is_few = 1 < len(plan.services) <= FEW or (len(plan.services) == 1 and supplied(plan).is_any)

    def cheapest(self, tried: Iterable[LeftOut] | None, begin: Beginning | None) -> Answer:
        best = self._without(frozenset(), begin if len(self.plan.services) > FEW else None)
        for left_out in tried or ():
            if left_out and (other := self._without(left_out)).is_better(best):
                best = other
        best = self._fewer(best) if tried is None and self.is_few else best
        best = self._moved(best) if self.is_few else best
        best = self._moving_within(best)
        return (self._moving(best) if len(self.plan.services) <= FEW else best).answer

    def _fewer(self, best: _Whole) -> _Whole:
        """A whole plan without some of its types of machine, where it is better for it."""
        seen = {best.answer.hardware.left_out}
        while True:
            for instance in _in_use(best.answer):
                left_out = best.answer.hardware.left_out | {instance}
                if left_out not in seen:
                    seen.add(left_out)
                    begin = Beginning(best.answer.hardware, only_changed=False)
                    if (other := self._without(left_out, begin)).is_better(best):
                        best = other
                        break
            else:
                return best

    def _moved(self, best: _Whole, near: int = NEARBY, resting: frozenset[int] = frozenset()) -> _Whole:
        """A whole plan with services moved one by one, and the others for it, while it is cheaper for it. near: see
        NEARBY; resting: those that are not moved."""
        n_services = len(self.plan.services)
        while True:
            ways = best.answer.hardware.nearby(near * n_services, REARRANGED * n_services, resting)
            cheaper = next((other for way in ways if (other := self._whole(way)).is_cheaper(best)), None)
            if cheaper is None:
                return best
            best = cheaper

    def _moving(self, best: _Whole) -> _Whole:
        """A whole plan without moves that save nothing, all together or one by itself."""
        while moves := best.answer.hardware.moves:
            sets = dict.fromkeys((moves, *(frozenset([move]) for move in sorted(moves))))
            others = filter(None, (self.without_moves(best, some) for some in sets))
            idle = (other for other in others if other.rank < best.rank and other.serves_no_less(best))
            if (better := next(idle, None)) is None:
                break
            best = self._moving_within(self._moved(better, 0))
        return best

    def _moving_within(self, best: _Whole) -> _Whole:
        """A whole plan with moves on a day within a quarter, as supply comes or ends, where it is cheaper for that:
        those of a quarter later, or those of the next one earlier, all of them or one by itself."""
        for q in range(len(self.plan.quarters)):
            hardware = best.answer.hardware
            spans = numpy.flatnonzero(self.plan.spans.quarters == q)[1:].tolist()
            days = [(self.plan.days[span][0], self.plan.spans.starts[span]) for span in spans]
            moves = sorted(slot for slot in hardware.moves if slot not in hardware.until)
            later, earlier = (tuple(slot for slot in moves if slot[1] == quarter) for quarter in (q, q + 1))
            sets = dict.fromkeys((later, earlier, later + earlier, *((slot,) for slot in later + earlier)))
            for some, (day, start) in itertools.product(filter(None, sets), days):
                way = hardware.moving_within(some, q, day, start) if day > self.plan.as_of else None
                if way is not None and (other := self._whole(way)).is_cheaper(best):
                    best = other
        return best

    def without_moves(self, whole: _Whole, moves: frozenset[At]) -> _Whole | None:
        """A whole plan without some of its moves."""
        hardware = whole.answer.hardware.without(moves)
        other = None if hardware is None else self._whole(hardware)
        other = self._moved(other, 0, frozenset(s for s, _ in moves)) if other and self.is_few else other
        other = self._moving_within(other) if other else None
        whole.answer.without_moves[moves] = other.answer if other else None
        return other

    def _whole(self, hardware: Hardware) -> _Whole:
        places = frozenset(
            (slot, place.offer, hardware.until[slot].day if slot in hardware.until else None)
            for slot, place in hardware.placed.items()
        )
        if places not in self.wholes:
            self.wholes[places] = _Whole.of_answer(_bought(self.plan, self.grid, hardware))
        return self.wholes[places]

    def _without(self, left_out: LeftOut, begin: Beginning | None = None) -> _Whole:
        """The best whole plan without some types of machine, of the ways in which places are found."""
        assert self.loads is not None
        best, *others = map(self._whole, self.loads.places(self.plan, left_out, begin))
        for other in others:
            if other.is_better(best):
                best = other
        return best


def _in_use(answer: Answer) -> list[str]:
    """The types of machine that are bought, those with the fewest services first."""
    services = Counter(
        instance for _, instance in {(s, place.instance) for (s, _), place in answer.hardware.placed.items()}
    )
    bought = (machine.instance for t, machine in enumerate(answer.types) if answer.to_buy[t].any())
    return sorted(bought, key=lambda instance: (services[instance], instance))


def _bought(plan: Plan, grid: Grid, hardware: Hardware) -> Answer:
    """The plan on some hardware."""
    types = types_of(plan, hardware)
    grid = grid.again({}, type=len(types))
    put_hardware(grid, plan, hardware, types)
    put_supply(grid, plan, types)
    rented = buy(grid, plan, types)
    if plan.policy.buy == MIX and (base := (*bases(plan, types, rented, CASE[plan.policy.plan_at]),)):
        plan = plan.ordering(base)
        put_supply(grid, plan, types)
        rented = buy(grid, plan, types)
    waiting, held = late(Answer(plan, hardware, types, grid, rented))
    if held:
        plan = plan.ordering(plan.base, held)
        rented = buy(grid, plan, types)
    share(grid, plan.spans, CASE[plan.policy.plan_at])
    work_out(grid, "money")
    return Answer(plan, hardware, types, grid, rented, waiting)


def _timed(answer: Answer, hardware: Hardware) -> Answer:
    """The plan with how long requests take on its hardware, and what is in use."""
    put_times(answer.grid, answer.plan, hardware, answer.case)
    return replace(answer, hardware=hardware)


def bases(plan: Plan, types: Sequence[Type], rented: Sequence[Rented], case: int) -> Iterator[Base]:
    """The orders of a mix for a term, of every type that is bought in its class, in a case of the demand."""
    committed = supplied(plan).committed
    for machine, hours in zip(types, rented, strict=True):
        if machine.candidate is not None and machine.buying.purchase == plan.policy.purchase:
            shares, months = hours.shares(case), class_months(plan, machine.candidate)
            most = machine.buying.most(committed.get(machine.instance, 0.0))
            yield from base_of(plan, machine.instance, shares, machine.month_usd, months, most)
