"""The hardware of each service in each quarter: what `recommend` chooses, which stays unless moving saves enough.

The loads of all questions (a model at its precisions, a request, targets, an engine) that can be put as one are worked
out together. Who works many plans out that are alike (the bridge) keeps what each load gave, and only what is another
is worked out again.
"""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy

from sheetgen.answer.joined import joined, with_loads
from sheetgen.answer.picks import pick
from sheetgen.answer.solution import Choice, Solution
from sheetgen.answer.solve import NOTHING_FITS, TOO_SLOW, tables, with_speed
from sheetgen.plan import needs
from sheetgen.plan.orders import class_months
from sheetgen.plan.placement import BOUGHT, MIDDLE, At, Placed, Until, filled_by_hour
from sheetgen.plan.quarters import QUARTERS_OF_TERM
from sheetgen.plan.schema import MIX, QUANTILES
from sheetgen.plan.stated_plan import Key, Plan, machine_in, served_in
from sheetgen.plan.terms import quarters_of_term
from sheetgen.plan.together import FEWER, TRIES, Assignment, by_service, moving_usd, together
from sheetgen.program.sheet_program import SHEET
from sheetgen.question.market import Candidate
from sheetgen.question.sheet_question import Question
from sheetgen.sizing import cost, parallelism
from sheetgen.units import PURCHASES, Layout


@dataclass(frozen=True)
class Speed:
    """The times that users see at a quantile, and the chance that the hardware serves that load as predicted."""

    ttft_seconds: float
    tpot_seconds: float
    sized_by: str
    chance: float


Speeds = dict[tuple[int, int, int], Speed]  # by service, quarter and quantile


@dataclass(frozen=True)
class Hardware:
    """By service and quarter where it runs; and why it does not, where nothing serves it."""

    placed: Mapping[At, Placed]
    speed: Speeds
    nothing: Mapping[At, str]
    alone: Mapping[At, str]  # the instance that `recommend` names by itself; only where speeds are
    until: Mapping[At, Until] = field(default_factory=dict)  # of moves within a quarter; one day for those of a quarter
    speed_until: Speeds = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()  # types of machine on which nothing is put, as the plan is cheaper for it
    loads: Loads = field(default_factory=dict, compare=False, repr=False)  # what was worked out for it
    ways: Mapping[At, _Load] = field(default_factory=dict, compare=False, repr=False)  # of each service and quarter
    assignment: Assignment | None = field(default=None, compare=False, repr=False)  # of which the places are

    @property
    def moves(self) -> frozenset[At]:
        """The moves to other machines."""
        return frozenset(slot for slot, place in self.placed.items() if place.moved)

    @property
    def places(self) -> Iterator[Placed]:
        """All places, in the order in which services come to them."""
        for slot in sorted(self.placed):
            if slot in self.until:
                yield self.until[slot].place
            yield self.placed[slot]

    def nearby(self, n: int, n_rearranged: int, resting: frozenset[int]) -> Iterator[Hardware]:
        """See `Assignment.nearby` and `Assignment.rearranged`."""
        if self.assignment is not None:
            yield from map(self.assigned, self.assignment.nearby(n, resting))
            yield from map(self.assigned, self.assignment.rearranged(n_rearranged, resting))

    def without(self, moves: Collection[At]) -> Hardware | None:
        """See `Assignment.without`."""
        in_quarters = {(s, self.until[s, q].quarter if (s, q) in self.until else q) for s, q in moves}
        there = self.assignment.without(in_quarters) if self.assignment is not None else None
        return None if there is None else self.assigned(there)

    def assigned(self, assignment: Assignment) -> Hardware:
        """The same with the services elsewhere."""
        where = {slot: self.ways[slot].placed(offer) for slot, offer in assignment.offers.items()}
        where |= {slot: replace(where[slot], moved=True) for slot in assignment.moves}
        return replace(self, placed=where, assignment=assignment, until={})

    def moving_within(self, slots: Collection[At], q: int, day: datetime.date, start: Fraction) -> Hardware | None:
        """The same with some moves, of a quarter or of the next one, on a day within it; None where one of them cannot
        be so long where it was before, or where it is after. start: see `Until`."""
        placed, until = dict(self.placed), dict(self.until)
        for s, moves_in in slots:
            before, after = (self.placed.get((s, moves_in - n)) for n in (1, 0))
            if before is None or after is None or (moves_in > q and before.moved):
                return None
            stays, moved = (self.ways[s, q].on_as(place) for place in (before, after))
            if stays is None or moved is None:
                return None
            placed[s, moves_in] = replace(after, moved=False)
            placed[s, q] = replace(moved, moved=True)
            until[s, q] = Until(stays, day, start, moves_in)
        return replace(self, placed=placed, until=until)

    def everywhere(self, slot: At) -> Mapping[str, Placed]:
        """The places of a service by the type of machine that can serve it."""
        return self.ways[slot].everywhere if slot in self.ways else {}

    def on(self, slot: At, instance: str) -> Placed | None:
        """The place of a service on a type of machine; None where that cannot serve it."""
        return self.everywhere(slot).get(instance)


@dataclass(frozen=True)
class Beginning:
    """The hardware of a plan that is much alike, from which alone a search begins.

    only_changed: services whose loads are the same there stay on it.
    """

    hardware: Hardware
    only_changed: bool

    def stays(self, loads: Mapping[At, _Load]) -> bool:
        """True where a service with these loads stays."""
        before = self.hardware
        return self.only_changed and all(
            slot in before.placed and load is before.ways[slot] for slot, load in loads.items()
        )

    def place(self, slot: At, load: _Load, otherwise: Placed) -> Placed:
        """The first place of a load: its own, or of a changed load one on the same machine; `otherwise` where that
        machine cannot serve it."""
        place = self.hardware.placed.get(slot)
        if place is None:
            return otherwise
        if load.offers is self.hardware.ways[slot].offers and load.able[place.offer]:
            return load.placed(place.offer)
        return load.everywhere.get(place.instance, otherwise)


@dataclass(frozen=True)
class _Offers:
    """The offers of a question: instances at their layouts."""

    there: Sequence[tuple[Candidate, Layout]]
    instances: Any  # numbers of them

    @classmethod
    def of_solution(cls, solved: Solution) -> _Offers:
        there = [(solved.candidate(i), solved.layout(i)) for i in range(len(solved.offers))]
        return cls(there, numpy.array([offer.candidate for offer in solved.offers]))

    def instance(self, offer: int) -> str:
        return self.there[offer][0].instance


@dataclass(frozen=True)
class _Load:
    """A load at the quantile that is bought, on every offer."""

    offers: _Offers
    pick: int | None  # the offer that `recommend` takes; None where nothing serves
    verdict: str
    usd_of_month: tuple[Any, Any]  # by itself, at p50 and at the quantile; NaN or 0 where it cannot serve
    fills: Sequence[tuple[Any, Any]]  # the same of FILLS, beside the replicas of others
    columns: Mapping[str, Any]  # of which `Placed` takes those of its offer
    seen: dict[int, Placed] = field(default_factory=dict)  # what was asked of it, by offer

    def usd(self, offer: int) -> float:
        """A month of an offer by itself: the mean of the one at p50 and the one that is bought."""
        return float(sum(usd[offer] for usd in self.usd_of_month)) / len(self.usd_of_month)

    @property
    def machines(self) -> Any:
        """That its replicas fill by offer, at the quantile."""
        return self.fills[0][BOUGHT]

    @property
    def able(self) -> Any:
        """By offer whether it can serve the load."""
        return self.usd_of_month[BOUGHT] > 0

    def without(self, left_out: frozenset[str]) -> _Load:
        """The load where some types of machine are not to be had; what is picked then is the cheapest by itself."""
        gone = [i for i in range(len(self.offers.there)) if self.offers.instance(i) in left_out] if left_out else []
        if not gone:
            return self
        able = self.able.copy()
        able[gone] = False
        usd = [numpy.where(able, month, 0.0) for month in self.usd_of_month]
        pick = self.pick if self.pick is None or able[self.pick] else None
        if pick is None and able.any():
            order = numpy.lexsort([-self.columns["suitability"], usd[BOUGHT]])
            pick = int(order[able[order]][0])
        return replace(self, pick=pick, usd_of_month=(usd[MIDDLE], usd[BOUGHT]))

    def placed(self, offer: int) -> Placed:
        if offer not in self.seen:
            quantities: dict[str, Any] = {name: float(self.columns[name][offer]) for name in OF_PLACE}
            machines, safe, halves = ((float(middle[offer]), float(bought[offer])) for middle, bought in self.fills)
            there, stages = self.offers.there[offer], int(self.columns["pipeline_stages"][offer])
            self.seen[offer] = Placed(offer, *there, machines, safe, halves, stages, **quantities)
        return self.seen[offer]

    def on_as(self, before: Placed) -> Placed | None:
        """The place on the machine of another load, in its layout where that is an offer of the same question; None
        where it cannot serve this one."""
        is_same = before.offer < len(self.able) and self.offers.there[before.offer] == (before.candidate, before.layout)
        if is_same and self.able[before.offer]:
            return self.placed(before.offer)
        return self.everywhere.get(before.instance)

    @cached_property
    def everywhere(self) -> Mapping[str, Placed]:
        """On each instance that can serve it the layout on which it fills least, of several the most suitable."""
        able = numpy.flatnonzero(self.able)
        of_instance = self.offers.instances[able]
        alike = (able[of_instance == instance] for instance in dict.fromkeys(of_instance.tolist()))
        keys = -self.columns["suitability"], self.machines
        places = (self.placed(int(some[numpy.lexsort([key[some] for key in keys])[0]])) for some in alike)
        return {place.instance: place for place in places}


Loads = dict[tuple[Any, ...], _Load]  # what loads gave, by all that they follow from
OF_RATE = ("full_turn_seconds", "replica_prefill_seconds")  # NaN where no load is a rate
MEDIAN = QUANTILES.index("p50")
FILLS = (needs.machines, needs.safe_machines, needs.half_machines)
OF_PLACE = ("paced_requests", "replicas_per_instance", *OF_RATE, "instance_month_usd", "wait_z", "output_tokens")


@dataclass(frozen=True)
class Sized:
    """The loads of a plan's services, worked out on every offer."""

    plan: Plan
    rates: Any
    at_once: Any
    keys: Mapping[At, Key]  # of the quarters in which a service has a load
    loads: Mapping[At, _Load]
    kept: Loads  # those of other plans, too

    def places(
        self, plan: Plan, left_out: frozenset[str] = frozenset(), begin: Beginning | None = None
    ) -> Iterator[Hardware]:
        """The places of every service, by what is looked at first: the machines that are cheapest for its peak by
        itself; where machines are rented by the hour, for its hours; and of a mix, at the price of a term. left_out:
        types of machine on which nothing is put."""
        loads = {slot: load.without(left_out) for slot, load in self.loads.items()}
        nothing = {slot: load.verdict for slot, load in loads.items() if load.pick is None}
        every: list[Mapping[At, Placed]] = []
        nowhere = Hardware({}, {}, nothing, {}, left_out=left_out, loads=self.kept, ways=self.loads)
        served = by_service({slot: load for slot, load in loads.items() if slot not in nothing})
        if not served:
            yield nowhere
            return
        layouts = {s: [*_layouts(mine, self.keys)] for s, mine in served.items()}
        of_term = _of_term(plan, loads)
        resting = frozenset(s for s, mine in served.items() if begin and begin.stays(mine))
        for by in _ways(plan, of_term):
            offers = dict[At, int]()
            for mine in served.values():
                offers |= _alone(plan, mine, by, of_term)
            here = {slot: loads[slot].placed(offer) for slot, offer in offers.items()}
            by_hour, tries = by != PEAK and plan.rents_by_hour, FEWER if left_out else TRIES
            first = None if begin is None else {slot: begin.place(slot, loads[slot], here[slot]) for slot in here}
            for assignment in together(plan, here, layouts, by_hour, of_term, tries, first, resting):
                if (hardware := nowhere.assigned(assignment)).placed not in every:
                    every.append(hardware.placed)
                    yield hardware

    def with_speeds(self, hardware: Hardware) -> Hardware:
        """Hardware with how fast it is, and what `recommend` names by itself."""
        places, until = hardware.placed, {slot: until.place for slot, until in hardware.until.items()}
        names, questions = {place.instance for place in hardware.places}, defaultdict[Key, list[At]](list)
        for slot in places:
            questions[self.keys[slot]].append(slot)
        asked, speed, speed_until = list[tuple[list[At], Question]](), Speeds(), Speeds()
        for key, many in questions.items():
            question = self.plan.question(key)
            there = (candidate for candidate in question.candidates if candidate.instance in names)
            asked.append((many, replace(question, candidates=tuple(there))))
        for work in _worked_out(self.plan, asked, self.rates, self.at_once, range(len(QUANTILES))):
            speed |= _speeds(work, places)
            speed_until |= _speeds(work, {**places, **until}) if until else ()
        alone = {slot: load.offers.instance(load.pick) for slot, load in self.loads.items() if load.pick is not None}
        return replace(hardware, speed=speed, speed_until=speed_until, alone=alone)


def sized(plan: Plan, rates: Any, at_once: Any, kept: Loads | None = None) -> Sized:
    """The loads of every service. rates, at_once: by service, quarter and quantile. kept: loads of plans that were
    worked out before, at the same prices, to which this one's are added."""
    keys: dict[At, Key] = {}
    for s, service in enumerate(plan.services):
        for q, quarter in enumerate(plan.quarters):
            if (rates[s, q] + at_once[s, q] > 0).all():
                keys[s, q] = plan.key(service, served_in(service, quarter))
    case = QUANTILES.index(plan.policy.plan_at)
    kept_loads: Loads = {} if kept is None else kept
    whole = {
        slot: (
            key,
            id(plan.listed),
            plan.policy.purchase,
            rates[slot].tobytes(),
            at_once[slot].tobytes(),
            plan.services[slot[0]].floor_replicas,
            plan.redundancy(slot[0]).replicas,
            plan.redundancy(slot[0]).hot_share,
            case,
        )
        for slot, key in keys.items()
    }
    wanted: dict[Key, list[At]] = defaultdict(list)
    for slot, key in keys.items():
        if whole[slot] not in kept_loads:
            wanted[key].append(slot)
    questions = [(many, plan.question(key)) for key, many in wanted.items()]
    for work in _worked_out(plan, questions, rates, at_once, sorted({MEDIAN, case})):
        kept_loads |= ((whole[slot], load) for slot, load in _loads(work, case))
    loads = {slot: kept_loads[facts] for slot, facts in whole.items()}
    return Sized(plan, rates, at_once, keys, loads, kept_loads)


PEAK, HOURS, TERM = "peak", "hours", "term"  # by which a service's machines by itself are the cheapest


def _ways(plan: Plan, of_term: Mapping[str, float]) -> Iterator[str]:
    """By what places are looked for."""
    if not plan.rents_by_hour or plan.policy.purchase in QUARTERS_OF_TERM:
        yield PEAK
    if plan.rents_by_hour:
        yield HOURS
    if any(share < 1 for share in of_term.values()):
        yield TERM


def _of_term(plan: Plan, loads: Mapping[At, _Load]) -> Mapping[str, float]:
    """Of a mix what a month of the cheapest term costs over one on demand, by type that is bought so."""
    if plan.policy.buy != MIX:
        return {}
    of_term, n = dict[str, float](), len(plan.quarters)
    for place in {place.instance: place for load in loads.values() for place in load.everywhere.values()}.values():
        if plan.class_of(place.instance) == plan.policy.purchase:
            months = class_months(plan, place.candidate)
            terms = [usd for way, usd in months.items() if way in QUARTERS_OF_TERM and quarters_of_term(way, 0, n)]
            of_term[place.instance] = min([place.instance_month_usd, *terms]) / place.instance_month_usd
    return of_term


def _alone(plan: Plan, loads: Mapping[At, _Load], by: str, of_term: Mapping[str, float]) -> dict[At, int]:
    """The offers of a service by itself: of the machines that `recommend` takes for it in some quarter, and by hour of
    all others too that save more than a near tie, those that cost least over all quarters, moves counted."""
    picked = {load.offers.instance(load.pick) for load in loads.values() if load.pick is not None}
    able = {name for load in loads.values() for name in load.everywhere}
    ordered = plan.stands_on(*min(loads)) if loads else ()
    stood = {name for name in able if machine_in(name) in ordered}
    # By the machine of the quarter before, or that was ordered for it.
    best = dict[str, tuple[float, tuple[int, ...]]]()
    best |= dict.fromkeys(sorted(stood) or [""], (0.0, ()))
    near_by, months = picked | stood, plan.months
    for slot in sorted(loads):
        load, ways = loads[slot], dict[str, tuple[float, tuple[int, ...]]]()
        names = sorted(load.everywhere.keys() if by != PEAK else near_by & load.everywhere.keys())
        of_names = [load.everywhere[name].offer for name in names]
        if load.pick is not None and (picked_name := load.offers.instance(load.pick)) in names:
            of_names[names.index(picked_name)] = load.pick
        there = [load.placed(offer) for offer in of_names]
        usd_of_month = _by_hour_usd(plan, slot, there) if by == HOURS else [load.usd(offer) for offer in of_names]
        cheapest_usd, cheapest_way = min(best.values())
        for name, place, month in zip(names, there, usd_of_month, strict=True):
            stays = [best[before] for before in ("", name) if before in best]
            usd, way = min([*stays, (cheapest_usd + moving_usd(plan, place, months[slot[1]]), cheapest_way)])
            share = of_term.get(name, 1) if by == TERM else 1
            near = 1 if name in near_by else 1 + plan.policy.near_tie_fraction
            ways[name] = usd + month * share * near * months[slot[1]], (*way, place.offer)
        best = ways
    return dict(zip(sorted(loads), min(best.values())[1], strict=True))


def _by_hour_usd(plan: Plan, slot: At, there: Sequence[Placed]) -> list[float]:
    """By place a month of a service by itself, of whose machines each is rented for the hours that need it."""
    if not there:
        return []
    week = plan.week
    filled = filled_by_hour(there, week.over_peak[slot][None])[0].T.reshape(len(there), 2, -1)
    machines = (numpy.ceil(numpy.round(filled, 9)) @ week.shares[slot[1]]).mean(axis=1)
    return [float(usd) for usd in machines * [place.instance_month_usd for place in there]]


def _layouts(loads: Mapping[At, _Load], keys: Mapping[At, Key]) -> Iterator[Mapping[At, Placed]]:
    """A service on each type of machine that can serve it: in the layout that fills least of it over all quarters of a
    question, and in the one that costs least there by itself; of equal ones the most suitable."""
    by_key, ways = defaultdict[Key, list[At]](list), defaultdict[tuple[int, str], dict[At, Placed]](dict)
    for slot in loads:
        by_key[keys[slot]].append(slot)
    for slots in by_key.values():
        of_slots = [loads[slot] for slot in slots]
        instances, able = of_slots[0].offers.instances, numpy.array([load.able for load in of_slots])
        suits = sum(load.columns["suitability"] for load in of_slots)
        values = [load.machines for load in of_slots], [load.usd_of_month[BOUGHT] for load in of_slots]
        there = dict[int, dict[At, Placed]]()
        for k, of_offers in enumerate(values):
            whole = numpy.where(able, of_offers, 0).sum(axis=0)
            order = numpy.lexsort((-suits, numpy.round(whole, 9), -able.sum(axis=0), instances))
            for offer in order[numpy.unique(instances[order], return_index=True)[1]].tolist():
                name = of_slots[0].offers.instance(offer)
                if offer not in there:
                    places = (
                        load.placed(offer) if can else load.everywhere.get(name)
                        for load, can in zip(of_slots, able[:, offer].tolist(), strict=True)
                    )
                    there[offer] = {slot: place for slot, place in zip(slots, places, strict=True) if place is not None}
                if there[offer]:
                    ways[k, name] |= there[offer]
    seen = set()
    for way in ways.values():
        offers = tuple((slot, place.offer) for slot, place in way.items())
        if offers not in seen:
            seen.add(offers)
            yield way


@dataclass(frozen=True)
class _Solved:
    """Loads that were worked out together, on every candidate."""

    solved: Solution
    rows: Mapping[tuple[int, int, int], int]  # by service, quarter and quantile


def _worked_out(
    plan: Plan, questions: Iterable[tuple[list[At], Question]], rates: Any, at_once: Any, cases: Sequence[int]
) -> Iterator[_Solved]:
    """The loads of services and quarters at some quantiles on every candidate of their questions, with their floors and
    spare replicas."""
    rows = ((question, [(*slot, z) for slot in many for z in cases]) for many, question in questions)
    asked = ((row, with_loads(question, ((rates[i], at_once[i]) for i in row))) for question, row in rows)
    for slots, question in joined(asked):
        yield _with_spares(plan, tables(question), slots)


def _with_spares(plan: Plan, solved: Solution, slots: Sequence[tuple[int, int, int]]) -> _Solved:
    lost = [plan.redundancy(s) for s, _, _ in slots]
    solved.grid.put((), {"is_alone": 1.0})
    solved.grid.put(
        ("load",),
        {
            "floor_replicas": [float(plan.services[s].floor_replicas or 1) for s, _, _ in slots],
            "spare_replicas": [float(redundancy.replicas) for redundancy in lost],
            "hot_share": [redundancy.hot_share for redundancy in lost],
        },
    )
    costs = SHEET["costs"]
    quantities = list(costs.quantities)
    after_replicas = quantities.index(parallelism.n_replicas) + 1
    planned = (needs.hot_replicas, needs.safe_replicas, ("n_replicas", needs.planned_replicas))
    before, after = (parallelism.n_replicas, *planned[:1]), (*planned[1:], *quantities[after_replicas:])
    solved.grid.evaluate(before, costs.axes)
    beside = solved.grid.again({"is_alone": 0.0})
    beside.evaluate((needs.safe_replicas, needs.planned_replicas, *FILLS), costs.axes)
    for name in (fills.name for fills in FILLS):
        solved.grid.put(costs.axes, {name: beside.spread(name, costs.axes)})
    solved.grid.evaluate(after, costs.axes)
    solved.grid.work_out(SHEET["ranks"])
    return _Solved(solved, {slot: i for i, slot in enumerate(slots)})


def _loads(work: _Solved, case: int) -> Iterator[tuple[At, _Load]]:
    """Each load at the quantile that is bought, without the tables around it."""
    solved, picks, offers = work.solved, pick(work.solved.grid), _Offers.of_solution(work.solved)
    many = [(s, q) for s, q, z in work.rows if z == case]
    middle, rows = ([work.rows[(*slot, z)] for slot in many] for z in (MEDIAN, case))
    costs = solved.costs
    slow = (costs["n_instances"][rows] == 0).any(axis=-1)

    def column(name: str, rows: list[int] = rows) -> Any:
        return solved.grid.spread(name, ("load", "offer"))[rows]

    monthly, hours = column("monthly_usd"), _hours_over_class(work.solved, offers)
    turns = solved.grid.has("full_turn_seconds", ("load", "offer"))
    columns = {
        name: column(name) if turns or name not in OF_RATE else numpy.full(monthly.shape, math.nan)
        for name in (*OF_PLACE, "pipeline_stages", "suitability")
    }
    columns["instance_month_usd"] = columns["instance_month_usd"] * hours
    usd = [*zip(column("monthly_usd", middle) * hours, monthly * hours, strict=True)]
    filled = [[*zip(column(fills.name, middle), column(fills.name), strict=True)] for fills in FILLS]
    question = solved.question
    of_plan = question.candidates[len(question.candidates) - question.n_there :]
    there = frozenset(machine.instance for machine in of_plan)
    for i, (slot, pair) in enumerate(zip(many, (picks[row] for row in rows), strict=True)):
        load = _Load(
            offers,
            None if pair is None else pair[0].offer,
            TOO_SLOW if slow[i] else NOTHING_FITS,
            usd[i],
            [fills[i] for fills in filled],
            {name: values[i] for name, values in columns.items()},
        )
        # What `recommend` takes by itself is not for what the plan has.
        pick_of_market = load.without(there).pick
        yield slot, load if pick_of_market is None else replace(load, pick=pick_of_market)


def _hours_over_class(solved: Solution, offers: _Offers) -> Any:
    """By offer the hours that are paid in a month of its class, over those of the question's."""
    settings = solved.question.settings

    def paid(purchase: str) -> float:
        is_committed = int(PURCHASES[purchase].committed)
        return float(cost.paid_hours_per_month(settings.hours_per_month, cost.HOURS_IN_A_MONTH, is_committed))

    return numpy.array([paid(candidate.purchase) / paid(settings.purchase) for candidate, _ in offers.there])


def _speeds(work: _Solved, placed: Mapping[At, Placed]) -> Iterator[tuple[tuple[int, int, int], Speed]]:
    """How fast the chosen hardware is at each quantile."""
    solved, offers = work.solved, dict[tuple[str, str, Layout], int]()
    for i in range(len(solved.offers)):
        machine = solved.candidate(i)
        offers[machine.instance, machine.purchase, solved.layout(i)] = i
    places = (placed[s, q] for s, q, _ in work.rows)
    chosen = (offers[place.instance, place.candidate.purchase, place.layout] for place in places)
    choices = with_speed(solved, tuple(Choice("fits", offer) for offer in chosen))
    for slot, choice in zip(work.rows, choices, strict=True):
        yield slot, Speed(choice.ttft_seconds, choice.tpot_seconds, choice.replicas_by, choice.chance)
