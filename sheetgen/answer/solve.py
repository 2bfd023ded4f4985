"""Work out every load on every candidate, and choose: pools, charges, sequences, speed, instances, money.

The choice for each load is made by the steps of `choice`; then how fast the chosen hardware answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy

from sheetgen.answer.answer_record import Json, RentalRecord, SureAt, SureRental
from sheetgen.answer.confidences import at_confidence_asked, in_force, paces_at_even_chance, were_measured
from sheetgen.answer.picks import Pick, Picks, pick, picks_of
from sheetgen.answer.sheet_facts import grid_of, with_offers
from sheetgen.answer.solution import Choice, Offer, Profile, Solution, short_tokens
from sheetgen.program.grid import Grid
from sheetgen.program.sheet_program import (
    AGAIN,
    ANSWERED,
    CELL_KV,
    CHOSEN,
    OF_CHANCE,
    PEOPLE_READ,
    RATE,
    READ,
    sheet_program,
)
from sheetgen.question.market import Candidate, in_class
from sheetgen.question.sheet_question import Question
from sheetgen.sizing import parallelism, rates
from sheetgen.units import ON_DEMAND, PURCHASES

OF_CHOSEN = ("chosen",)
# Times of users in the answer: the field's name, and the quantity's.
TIMES = {
    "tpot_seconds": "tpot_seconds", "ttft_seconds": "ttft_seconds",
    "output_tokens_per_second": "load_tokens_per_second",
}  # fmt: skip
NOTHING_FITS = "nothing fits"
TOO_SLOW = "no count meets the target"  # memory holds it somewhere, but a lone request is too slow


def solve(question: Question) -> Solution:
    """Work out every load of `question` on every candidate, and choose."""
    solved = chosen_of(question)
    choices = solved.choices
    if question.settings.speed_targets:
        choices = with_fewer_targets(choices, solved)
    if question.settings.survive:
        choices = with_no_loss(choices, solved)
    solved = _with_requests(replace(solved, choices=choices))
    _cell_kv(solved)
    return replace(solved, by_purchase=_commitments_that_save(dict(_by_purchase(solved)), solved))


def chosen_of(question: Question) -> Solution:
    """Every load on every candidate with what is chosen, and how fast that is; without what else would be chosen."""
    solved = tables(question)
    return replace(solved, choices=with_speed(solved, tuple(choose(solved))))


def _commitments_that_save(
    by_purchase: Mapping[str, list[RentalRecord | None]], solved: Solution
) -> dict[str, list[RentalRecord | None]]:
    """By class, each load's answer; None for a commitment that is not cheaper than on demand at the same confidence.
    The class in use stays as it is."""
    question, is_even = solved.question, paces_at_even_chance(solved)
    as_sure = [
        None if is_even[question.pace(load)] else usual
        for load, usual in zip(question.loads, by_purchase[ON_DEMAND], strict=True)
    ]

    def saves(committed: RentalRecord | None, usual: RentalRecord | None) -> bool:
        return committed is not None and (usual is None or committed.monthly_usd < usual.monthly_usd)

    return {
        purchase: answers
        if purchase == question.settings.purchase or not PURCHASES[purchase].committed
        else [own if saves(own, usual) else None for own, usual in zip(answers, as_sure, strict=True)]
        for purchase, answers in by_purchase.items()
    }


def _with_requests(solved: Solution) -> Solution:
    """The solution with the requests at once that follow for loads that are rates."""
    loads = tuple(
        replace(load, concurrent_requests=choice.in_flight) if load.requests_per_second else load
        for load, choice in zip(solved.question.loads, solved.choices, strict=True)
    )
    solved.grid.put(("load",), {"concurrent_requests": [load.concurrent_requests for load in loads]})
    return replace(solved, question=replace(solved.question, loads=loads))


def tables(question: Question) -> Solution:
    """Every load on every candidate, with no candidate chosen yet: for the planner, which chooses for all loads
    together."""
    gpu_index = {gpu.id: i for i, gpu in enumerate(question.gpus)}
    profiles = tuple(Profile(g, layout) for g in range(len(question.gpus)) for layout in question.layouts)
    offers = _offers_of(question.candidates, profiles, gpu_index)
    grid = grid_of(question, profiles, offers)
    grid.work_out(*sheet_program(question.draft is not None).tables)
    return Solution(question, profiles, offers, in_force(grid, question.settings.confidence), ())


def _offers_of(
    candidates: Sequence[Candidate], profiles: Sequence[Profile], gpu_index: Mapping[str, int]
) -> tuple[Offer, ...]:
    """Each candidate at every layout that it has the GPUs and the links for."""
    places = {profile: i for i, profile in enumerate(profiles)}
    layouts = dict.fromkeys(profile.layout for profile in profiles)
    return tuple(
        Offer(c, places[Profile(gpu_index[candidate.gpu.id], layout)])
        for c, candidate in enumerate(candidates)
        for layout in layouts
        if layout.n_gpus <= candidate.linked_gpus and (layout.data_parallel_size == 1 or candidate.tries_ranks)
    )


def _cell_kv(solved: Solution) -> None:
    """Put in the bytes that each load's cache keeps in memory, on one undivided GPU of the kind chosen (the first where
    none is)."""
    loads = range(len(solved.question.loads))
    whole = solved.grid.along("chosen", {"load": loads, "profile": [solved.undivided_profile(row) for row in loads]})
    whole.work_out(CELL_KV)
    solved.grid.put(("load",), {name: whole.spread(name, OF_CHOSEN) for name in CELL_KV.named()})


def choose(solved: Solution) -> list[Choice]:
    """For each load the choice of INTERFACE, the cheapest and the runner-up, by the steps of `choice`."""
    loads, offers = solved.question.loads, solved.offers
    gpu = numpy.array([solved.profiles[s.profile].gpu for s in offers])
    providers = [solved.candidate(i).provider for i in range(len(offers))]
    provider = numpy.array([providers.index(p) for p in providers])
    picks = pick(solved.grid)
    mine = numpy.array([0 if pair is None else pair[0].offer for pair in picks])[:, None]
    solved.grid.put(("load", "offer"), {"is_elsewhere": (gpu != gpu[mine]) | (provider != provider[mine])})
    runners_up = _picks_again(solved.grid, "runner_up")
    choices = [Choice(verdict_without(solved, row)) for row in range(len(loads))]
    held = [
        (row, pair) for row, (load, pair) in enumerate(zip(loads, picks, strict=True)) if pair and not load.over_limit
    ]
    rows = [row for row, _ in held]
    chosen = solved.grid.along("chosen", {"load": rows, "offer": [best.offer for _, (best, _) in held]})
    chosen.work_out(ANSWERED, READ)
    read = numpy.full(len(loads), numpy.nan)
    read[rows] = chosen.spread("read_per_second", OF_CHOSEN)
    solved.grid.put(("load",), {"read_per_second": read})
    solved.grid.work_out(PEOPLE_READ)
    columns = {
        name: chosen.spread(name, OF_CHOSEN).tolist()
        for name in (*_OF_CHOICE, *(_OF_RATE if RATE in chosen.columns else ()))
    }
    for i, (row, (best, cheapest)) in enumerate(held):
        numbers = {name: column[i] for name, column in columns.items()}
        second = runners_up[row]
        choices[row] = Choice(
            "fits",
            best.offer,
            second and second[0].offer,
            sequences_per_replica=int(numbers["sequences"] * numbers["data_parallel_size"]),
            n_replicas=int(numbers["n_replicas"]),
            pipeline_parallel_size=int(numbers["pipeline_stages"]),
            n_instances=best.n_instances,
            hourly_usd=numbers["hourly_usd"],
            monthly_usd=best.usd,
            runner_up_monthly_usd=second and second[0].usd,
            headroom_fraction=float(numbers["headroom_fraction"]),
            memory_holds=int(numbers["memory_holds"]),
            cheapest=cheapest,
            **_served(numbers, bool(loads[row].requests_per_second)),
        )
    return choices


def _served(numbers: Mapping[str, float], is_rate: bool) -> Json:
    """The load served within the targets: requests at once; for a rate, requests a second, its places, and the share of
    requests that wait and how long."""
    if not is_rate:
        return {"served_at_target": int(numbers["served_at_target"])}
    serving = parallelism.needed_replicas(numbers["load_requests"], numbers["paced_requests"])
    n_places, offered = int(serving * numbers["paced_requests"]), numbers["offered_requests"]
    wait = {"full_turn_seconds": numbers["full_turn_seconds"], "n_places": n_places, "offered_requests": offered}
    share = rates.exact_wait_fraction(n_places, offered)
    mean_wait = float(rates.mean_wait_seconds.of(wait)) if n_places > offered else None
    few = {"mean_wait_seconds": mean_wait or 0.0, "wait_fraction": share, "few_fraction": rates.FEW_FRACTION}
    return {
        "served_at_target": float(numbers["served_requests_per_second"]),
        "n_places": n_places,
        "wait_fraction": share,
        "mean_wait_seconds": mean_wait,
        "few_wait_seconds": None if mean_wait is None else float(rates.few_wait_seconds.of(few)),
        "replica_clears_per_second": float(rates.cleared_per_second.of({**numbers, "clearing_replicas": 1.0})),
    }


def _picks_again(grid: Grid, name: str) -> Picks:
    """The picks where tables are read again under other values."""
    return picks_of(grid.read_again(AGAIN.again(name), AGAIN))


# What a choice reads of the chosen hardware; and where loads are rates.
_OF_CHOICE = (
    "n_replicas", "sequences", "data_parallel_size", "pipeline_stages", "hourly_usd", "headroom_fraction",
    "served_at_target", "memory_holds",
)  # fmt: skip
_OF_RATE = (
    "load_requests", "paced_requests", "offered_requests", "full_turn_seconds", "served_requests_per_second",
    "replica_prefill_seconds",
)  # fmt: skip


def verdict_without(solved: Solution, row: int) -> str:
    """The reason why nothing serves a load: no memory holds it, or a lone request is too slow wherever memory does."""
    cell = solved.question.loads[row]
    if cell.over_limit:
        limit = solved.question.models[cell.model].model.max_context_tokens
        return f"over the model's {short_tokens(limit or 0)}"
    return TOO_SLOW if (solved.costs["n_instances"][row] == 0).any() else NOTHING_FITS


def with_fewer_targets(choices: tuple[Choice, ...], solved: Solution) -> tuple[Choice, ...]:
    """The choices, each with what it would take without targets of speed, and without the target of the first token
    alone, where that costs less."""
    alone, no_ttft = (_picks_again(solved.grid, name) for name in ("without_targets", "without_ttft"))
    out = []
    for choice, *fewer in zip(choices, alone, no_ttft, strict=True):
        by_memory, by_tpot = (
            pair[0] if pair and (choice.offer is None or pair[0].usd < choice.monthly_usd * (1 - 1e-12)) else None
            for pair in fewer
        )
        by = choice.sized_by
        if by_memory and choice.offer is not None:
            by = "ttft" if by_tpot else "tpot"
        out.append(replace(choice, without_targets=by_memory, without_ttft=by_tpot, sized_by=by))
    return tuple(out)


def with_no_loss(choices: tuple[Choice, ...], solved: Solution) -> tuple[Choice, ...]:
    """The choices, each with what it would take if no loss had to be survived, where that costs less."""
    out = []
    for choice, pair in zip(choices, _picks_again(solved.grid, "without_loss"), strict=True):
        cheaper = choice.offer is not None and pair and pair[0].usd < choice.monthly_usd * (1 - 1e-12)
        out.append(replace(choice, sized_by="survival", without_survival=pair[0]) if pair and cheaper else choice)
    return tuple(out)


def _by_purchase(solved: Solution) -> Iterator[tuple[str, list[RentalRecord | None]]]:
    """For each purchase class, the answer by load from the same rule over the candidates with a price in that class.
    Classes that commit money are answered at the confidence asked for or not at all; other classes at the confidence of
    the load's own answer."""
    question, answered = solved.question, on_gpus_of_classes(solved)
    asked = answered.grid if not any(paces_at_even_chance(solved)) else at_confidence_asked(answered.grid)
    for purchase, paid in PURCHASES.items():
        if purchase == question.settings.purchase:
            yield (
                purchase,
                _rented(
                    solved,
                    question.candidates,
                    {
                        row: Pick(choice.offer, choice.n_instances, choice.monthly_usd)
                        for row, choice in enumerate(solved.choices)
                        if choice.offer is not None
                    },
                ),
            )
        else:
            yield purchase, rented_in(answered, asked if paid.binds else answered.grid, purchase)


def on_gpus_of_classes(solved: Solution) -> Solution:
    """The solution with the GPUs of every purchase class, as a class may have some for which the class shown has no
    price."""
    question = solved.question
    elsewhere = [candidate.gpu for of_class in question.others.values() for candidate in of_class]
    gpus = {gpu.id: gpu for gpu in (*elsewhere, *question.gpus)}  # the question's own GPUs have the typed values
    return solved if len(gpus) == len(question.gpus) else tables(replace(question, gpus=tuple(gpus.values())))


def rented_in(answered: Solution, grid: Grid, purchase: str) -> list[RentalRecord | None]:
    """By load, the answer in a purchase class at the levels of a grid. answered: from `on_gpus_of_classes`."""
    question = answered.question
    candidates = in_class(question.candidates, question.others.get(purchase, ()), purchase)
    if not candidates:
        return [None] * len(question.loads)
    offers = _offers_of(candidates, answered.profiles, {gpu.id: i for i, gpu in enumerate(question.gpus)})
    priced = with_offers(grid, question, candidates, offers)
    priced.put((), {"is_committed": float(PURCHASES[purchase].committed)})
    priced = priced.read_again(AGAIN.again("at_other_prices"), AGAIN)
    of_loads = enumerate(zip(question.loads, picks_of(priced), strict=True))
    chosen = {row: pair[0] for row, (load, pair) in of_loads if pair and not load.over_limit}
    return _rented(replace(answered, grid=priced, offers=offers), candidates, chosen)


def _rented(solved: Solution, candidates: Sequence[Candidate], chosen: Mapping[int, Pick]) -> list[RentalRecord | None]:
    """By load what is rented of `candidates`; `chosen`: the loads that something holds, by row."""
    answers: list[RentalRecord | None] = [None] * len(solved.question.loads)
    chances = chances_of(solved, list(chosen), [picked.offer for picked in chosen.values()])
    for (row, picked), chance in zip(chosen.items(), chances, strict=True):
        instance = candidates[solved.offers[picked.offer].candidate].instance
        answers[row] = RentalRecord(instance, picked.n_instances, picked.usd, chance)
    return answers


def with_speed(solved: Solution, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """The choices with what users get from them: times, tokens, bands, and the limit that set the replicas."""
    offers = {row: choice.offer for row, choice in enumerate(choices) if choice.offer is not None}
    if not offers:
        return choices
    chosen = _timed(solved.grid, list(offers), list(offers.values()))
    columns = chosen.table(*OF_CHOSEN)
    in_flight = columns["concurrent_requests"]
    in_rate = columns[RATE] > 0 if RATE in chosen.columns else numpy.zeros(len(in_flight), dtype=bool)
    if RATE in chosen.columns:
        in_flight = numpy.where(in_rate, columns["in_flight_at_peak"], in_flight)
    out = list(choices)
    for n, i in enumerate(offers):
        times: Json = {name: float(columns[quantity][n]) for name, quantity in TIMES.items()}
        by = str(columns["sized_by"][n])
        out[i] = replace(
            choices[i],
            **times,
            in_flight=float(in_flight[n]),
            bound_by=str(columns["bound_by"][n]),
            sized_by=by,
            replicas_by=by,
            requests_per_replica=int(columns["requests_per_replica"][n]),
            prefill_fraction=float(columns["prefill_fraction"][n]),
            chance=float(columns["chance"][n]),
            chance_of={name: float(columns[f"{name}_chance"][n]) for name in OF_CHANCE},
            sure_at=_sure_at({name: float(columns[name][n]) for name in _OF_SURE}, bool(in_rate[n])),
            bands=tuple((float(columns[f"{name}_low"][n]), float(columns[f"{name}_high"][n])) for name in times),
        )
    return tuple(out)


# The load that a chance is of, and its predicted times.
_OF_SURE = (
    "rank_requests", "data_parallel_size", "requests_per_replica", "fullest_ttft_seconds", "fullest_tpot_seconds",
)  # fmt: skip


def _sure_at(numbers: Mapping[str, float], is_rate: bool) -> SureAt:
    """The load of the fullest replica that a chance is of: for a rate all places that it needs where the load is only
    just served, which may be fewer than it has."""
    requests = numbers["rank_requests"] * numbers["data_parallel_size"]
    requests = requests if is_rate else min(requests, numbers["requests_per_replica"])
    return SureAt(int(requests), numbers["fullest_ttft_seconds"], numbers["fullest_tpot_seconds"])


def _timed(grid: Grid, rows: Sequence[int], offers: Sequence[int]) -> Grid:
    """The times that users see for loads on offers that hold them, on an axis of these pairs."""
    chosen = grid.along("chosen", {"load": rows, "offer": offers})
    chosen.work_out(*CHOSEN.tables)
    return chosen


def chances_of(solved: Solution, rows: Sequence[int], offers: Sequence[int]) -> list[float]:
    """The chance that each load, by its row, is served by its offer, on as many machines as the load takes."""
    return [float(chance) for chance in _timed(solved.grid, rows, offers).spread("chance", OF_CHOSEN)] if rows else []


def sure_rentals(solved: Solution, picks: Mapping[int, Pick]) -> dict[int, SureRental]:
    """The rental of each load, by its row, with its chance."""
    if not picks:
        return {}
    timed = _timed(solved.grid, list(picks), [best.offer for best in picks.values()])
    chances = map(float, timed.spread("chance", OF_CHOSEN))
    return {
        row: SureRental(solved.candidate(best.offer).instance, best.n_instances, best.usd, chance, measured)
        for (row, best), chance, measured in zip(picks.items(), chances, were_measured(timed), strict=True)
    }
