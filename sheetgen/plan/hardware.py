"""The hardware of each service in each quarter: what `recommend` chooses, which stays unless moving saves enough.

All loads of one question (a model at its precisions, a request, targets, an engine) are worked out together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from sheetgen.plan import needs
from sheetgen.plan.read import Key, Plan
from sheetgen.plan.schema import QUANTILES, Served, Service
from sheetgen.plan.supplied import Place, improved, supplied
from sheetgen.recommend import NOTHING_FITS, TOO_SLOW, Choice, Solution, tables
from sheetgen.recommend.choice import pick
from sheetgen.recommend.solution import TABLES
from sheetgen.recommend.solve import with_speed
from sheetgen.scenario.market import Candidate
from sheetgen.scenario.question import Question
from sheetgen.sizing import parallelism
from sheetgen.units import Layout

At = tuple[int, int]  # a service and a quarter, by position


@dataclass(frozen=True)
class Placed:
    """Where a service runs in a quarter, and what one replica there serves."""

    candidate: Candidate
    layout: Layout
    pipeline_parallel_size: int
    paced_requests: float
    replicas_per_instance: float
    full_turn_seconds: float  # NaN where the load is no rate
    instance_month_usd: float
    wait_z: float
    output_tokens: float
    moved: bool = False
    saves_usd: float = 0.0  # until the plan's end, of a move

    @property
    def instance(self) -> str:
        return self.candidate.instance


@dataclass(frozen=True)
class Speed:
    """What users get of it at a quantile."""

    ttft_seconds: float
    tpot_seconds: float
    sized_by: str


@dataclass(frozen=True)
class Hardware:
    """By service and quarter where it runs; and why it does not, where nothing serves it."""

    placed: Mapping[At, Placed]
    speed: Mapping[tuple[int, int, int], Speed]  # by quantile, too
    nothing: Mapping[At, str]


@dataclass(frozen=True)
class _Loads:
    """The loads of one question, worked out on every candidate."""

    solved: Solution
    rows: Mapping[tuple[int, int, int], int]
    picks: Sequence[Any]
    offers: Mapping[tuple[str, Layout], int]
    # By load and offer.
    monthly_usd: Any  # NaN or 0 where it cannot serve
    machines: Any  # that its replicas fill
    month_usd: Any  # of one machine

    def usd(self, at: tuple[int, int, int], offer: int | None) -> float:
        """A month of an offer for a load; NaN where it cannot serve it."""
        usd = math.nan if offer is None else float(self.monthly_usd[self.rows[at], offer])
        return usd if usd > 0 else math.nan


def served_in(service: Service, quarter: Any) -> Served:
    """The model that is served in a quarter; before the first one's it is the first one."""
    models = service.model or ()
    return ([one for one in models if one.starts is None or one.starts <= quarter] or models[:1])[-1]


def placed(plan: Plan, rates: Any, at_once: Any, months: Sequence[float], timed: bool = True) -> Hardware:
    """Where every service runs. rates, at_once: the load by service, quarter and quantile; months: by quarter what a
    month's price stands for until the next. Not timed, it is not said how fast that is."""
    keys: dict[At, Key] = {}
    wanted: dict[Key, list[At]] = defaultdict(list)
    for s, service in enumerate(plan.services):
        for q, quarter in enumerate(plan.quarters):
            if (rates[s, q] + at_once[s, q] > 0).all():
                keys[s, q] = plan.key(service, served_in(service, quarter))
                wanted[keys[s, q]].append((s, q))
    loads = {key: _worked_out(plan, plan.question(key), many, rates, at_once) for key, many in wanted.items()}
    offers, nothing = dict[At, int](), dict[At, str]()
    moves: dict[At, float] = {}
    case = QUANTILES.index(plan.policy.plan_at)
    for s in range(len(plan.services)):
        held: tuple[str, Layout] | None = None
        for q in range(len(plan.quarters)):
            if (s, q) not in keys:
                continue
            of = loads[keys[s, q]]
            row = of.rows[s, q, case]
            picked = of.picks[row]
            if picked is None:
                slow = (of.solved.costs["n_instances"][row] == 0).any()
                nothing[s, q], held = TOO_SLOW if slow else NOTHING_FITS, None
                continue
            offer, stays = picked[0].offer, of.offers.get(held) if held else None
            if not math.isnan(of.usd((s, q, case), stays)):
                saves = sum(_savings(loads, keys, s, q, case, held, _named(of.solved, offer), months))
                if saves > plan.policy.moving_cost_usd:
                    moves[s, q] = saves
                else:
                    assert stays is not None
                    offer = stays
            elif held is not None:
                moves[s, q] = math.nan
            offers[s, q], held = offer, _named(of.solved, offer)
    _supply(plan, loads, keys, offers, moves, case, months)
    _pack(loads, keys, offers, case)
    where, speed = dict[At, Placed](), dict[tuple[int, int, int], Speed]()
    for key, of in loads.items():
        mine = [at for at in wanted[key] if at in offers]
        where |= {at: _placed(of, (*at, case), offers[at], moves.get(at)) for at in mine}
        if timed:
            speed |= dict(_speeds(of, mine, offers))
    return Hardware(where, speed, nothing)


def _named(solved: Solution, offer: int) -> tuple[str, Layout]:
    return solved.candidate(offer).instance, solved.layout(offer)


def _supply(
    plan: Plan, loads: Mapping[Key, _Loads], keys: Mapping[At, Key], offers: dict[At, int], moves: dict[At, float],
    case: int, months: Sequence[float],
) -> None:  # fmt: skip
    """Put services on what is owned or committed where the whole plan is cheaper for it."""
    supply = supplied(plan)
    if not supply.is_any:
        return
    chosen, others = dict[At, Place](), dict[At, list[Place]]()
    for at, offer in offers.items():
        of, row = loads[keys[at]], loads[keys[at]].rows[(*at, case)]
        able = numpy.flatnonzero(of.monthly_usd[row] > 0).tolist()
        least: dict[str, Place] = {}
        for i in able:
            candidate = of.solved.candidate(i)
            place = Place(i, candidate.instance, candidate.gpu.id, candidate.gpu_count,
                          float(of.machines[row, i]), float(of.month_usd[row, i]))  # fmt: skip
            if i == offer:
                chosen[at] = place
            if candidate.instance not in least or place.machines < least[candidate.instance].machines:
                least[candidate.instance] = place
        others[at] = list(least.values())
    for at, place in improved(plan, supply, chosen, others, months).items():
        if place is chosen[at]:
            continue
        offers[at] = place.offer
    for s, q in offers:
        names = [loads[keys[at]].solved.candidate(offers[at]).instance for at in ((s, q - 1), (s, q)) if at in offers]
        if len(names) == len({*names}) + 1 or len(names) == 1:
            moves.pop((s, q), None)
        else:
            moves.setdefault((s, q), math.nan)


def _pack(loads: Mapping[Key, _Loads], keys: Mapping[At, Key], offers: dict[At, int], case: int) -> None:
    """Lay out services that share a type of machine so that their replicas fill least of it: alone each of them would
    have the whole machine, and `recommend` gives it the layout that serves most there."""
    instance = {at: loads[keys[at]].solved.candidate(offer).instance for at, offer in offers.items()}
    sharing: dict[tuple[int, str], set[int]] = defaultdict(set)
    for (s, q), name in instance.items():
        sharing[q, name].add(s)
    runs: dict[tuple[int, Key, str, int], list[At]] = defaultdict(list)  # a service's quarters on the same offer
    for at in sorted(offers):
        runs[at[0], keys[at], instance[at], offers[at]].append(at)
    for (_, key, name, offer), many in runs.items():
        if all(len(sharing[q, name]) == 1 for _, q in many):
            continue
        of = loads[key]
        rows = [of.rows[(*at, case)] for at in many]
        able, filled = (of.monthly_usd[rows] > 0).all(axis=0), of.machines[rows].sum(axis=0)
        alike = [i for i in range(len(able)) if able[i] and of.solved.candidate(i).instance == name]
        best = min(alike, key=lambda i: (round(float(filled[i]), 9), i != offer))
        offers.update(dict.fromkeys(many, best))


def _savings(
    loads: Mapping[Key, _Loads], keys: Mapping[At, Key], s: int, first: int, case: int,
    held: tuple[str, Layout] | None, other: tuple[str, Layout], months: Sequence[float],
) -> Iterator[float]:  # fmt: skip
    """By quarter from `first` on what the other hardware saves, while both can serve the service."""
    for q in range(first, len(months)):
        if (s, q) not in keys:
            return
        of = loads[keys[s, q]]
        usd = [of.usd((s, q, case), of.offers.get(one)) if one else math.nan for one in (held, other)]
        if math.isnan(usd[0]) or math.isnan(usd[1]):
            return
        yield (usd[0] - usd[1]) * months[q]


def _worked_out(plan: Plan, question: Question, many: Sequence[At], rates: Any, at_once: Any) -> _Loads:
    """The loads of some services and quarters on every candidate, with their floors and spare replicas."""
    one = question.loads[0]
    rows = {(s, q, z): i for i, (s, q, z) in enumerate((s, q, z) for s, q in many for z in range(len(QUANTILES)))}
    question = replace(
        question, tiers=tuple(range(1, len(rows) + 1)), loads=tuple(
            replace(one, tier=i, concurrent_requests=float(at_once[at]), requests_per_second=float(rates[at]),
                    users=None)
            for at, i in rows.items()
        ),
    )  # fmt: skip
    solved = tables(question)
    solved.grid.put(("load",), {
        "floor_replicas": [float(plan.services[s].floor_replicas or 1) for s, _, _ in rows],
        "spare_replicas": [float(plan.redundancy(s).replicas) for s, _, _ in rows],
    })  # fmt: skip
    quantities = list(TABLES["costs"][1])
    at = quantities.index(parallelism.n_replicas)
    quantities.insert(at + 1, ("n_replicas", needs.planned_replicas))
    solved.grid.evaluate(quantities[at:], TABLES["costs"][0])
    if solved.grid.has("requests_per_second", ("load",)):
        solved.grid.evaluate(TABLES["ranks"][1], TABLES["ranks"][0])
    offers = {_named(solved, i): i for i in range(len(solved.offers))}
    filled = needs.machines(solved.costs["n_replicas"], solved.costs["replicas_per_instance"])
    months, of_one = (solved.costs[name] for name in ("monthly_usd", "instance_month_usd"))
    return _Loads(solved, rows, pick(solved.costs), offers, months, filled, of_one)


def _placed(of: _Loads, at: tuple[int, int, int], offer: int, saves: float | None) -> Placed:
    solved, row = of.solved, of.rows[at]
    known = solved.at(row, offer=offer)
    turn = float(known["full_turn_seconds"][0]) if "full_turn_seconds" in known else math.nan
    return Placed(
        solved.candidate(offer), solved.layout(offer), int(known["pipeline_stages"][0]),
        float(known["paced_requests"][0]), float(known["replicas_per_instance"][0]), turn,
        float(known["instance_month_usd"][0]), float(known["wait_z"][0]),
        float(known["output_tokens"][0]), saves is not None, saves or 0.0,
    )  # fmt: skip


def _speeds(
    of: _Loads, many: Sequence[At], offers: Mapping[At, int]
) -> Iterator[tuple[tuple[int, int, int], Speed]]:
    """How fast the chosen hardware is at each quantile."""
    solved = of.solved
    choices = [Choice(NOTHING_FITS)] * len(solved.question.loads)
    for s, q in many:
        for z in range(len(QUANTILES)):
            row, offer = of.rows[s, q, z], offers[s, q]
            known = solved.at(row, offer=offer)
            replicas = float(known["n_replicas"][0])
            count = needs.machines(replicas, float(known["replicas_per_instance"][0]))
            choices[row] = Choice(
                "fits", offer, n_replicas=int(replicas), n_instances=math.ceil(count),
                pipeline_parallel_size=int(known["pipeline_stages"][0]),
            )  # fmt: skip
    fast = with_speed(solved, tuple(choices))
    for s, q in many:
        for z in range(len(QUANTILES)):
            one = fast[of.rows[s, q, z]]
            yield (s, q, z), Speed(one.ttft_seconds, one.tpot_seconds, one.replicas_by)
