"""Work out every load on every candidate, and choose: pools, charges, sequences, speed, instances, money.

The choice for each load is made by the steps of `choice`; then how fast the chosen hardware answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy

from sheetgen.answer.answer_record import RentalRecord
from sheetgen.answer.picks import Pick, Picks, pick
from sheetgen.answer.sheet_facts import NO_LIMIT_SECONDS, grid_of, with_offers
from sheetgen.answer.solution import Choice, Offer, Profile, Solution, short_tokens
from sheetgen.catalog.engines import MODEL_KINDS, OF_ANY_KIND, ModelKind, Scope
from sheetgen.program.grid import Grid
from sheetgen.program.sheet_program import CELL_KV, CHOSEN, RATE, SHEET, sheet_program
from sheetgen.question import deployment
from sheetgen.question.market import Candidate, in_class
from sheetgen.question.sheet_question import Question
from sheetgen.sizing import parallelism, rates, speed
from sheetgen.units import PURCHASES

Ends = tuple[float, float]  # of a band
OF_CHOSEN = ("chosen",)
OF_OFFERS = ("offers", "held", "costs", "ranks")  # the tables that prices and machines enter
# What is kept of users' times: its name in the answer, and that of the quantity.
TIMES = {
    "tpot_seconds": "tpot_seconds", "ttft_seconds": "ttft_seconds",
    "output_tokens_per_second": "load_tokens_per_second",
}  # fmt: skip
NO_BATCH_LIMIT = 1e9  # requests: more than any memory holds
NOTHING_FITS = "nothing fits"
TOO_SLOW = "no count meets the target"  # memory holds it somewhere, but a lone request is too slow


def solve(question: Question) -> Solution:
    """Work out every load of `question` on every candidate, and choose."""
    solved = tables(question)
    choices = with_speed(solved, tuple(choose(solved)))
    if question.settings.speed_targets:
        choices = with_fewer_targets(choices, solved)
    if question.settings.survive:
        choices = with_no_loss(choices, solved)
    solved = _with_requests(replace(solved, choices=choices))
    _cell_kv(solved)
    return replace(solved, by_purchase=dict(_by_purchase(solved)))


def _with_requests(solved: Solution) -> Solution:
    """The solution with the requests at once that follow where a load is a rate, and the people of each load."""
    loads = tuple(
        replace(load, concurrent_requests=choice.in_flight) if load.requests_per_second else load
        for load, choice in zip(solved.question.loads, solved.choices, strict=True)
    )
    solved.grid.put(("load",), {"concurrent_requests": [one.concurrent_requests for one in loads]})
    solved.grid.evaluate((parallelism.users,), ("load",))
    if any(one.users for one in loads):  # what was stated, where a share of them was rounded up to whole requests
        solved.grid.put(("load",), {"users": [float(one.users or 0) for one in loads]})
    return replace(solved, question=replace(solved.question, loads=loads))


def tables(question: Question) -> Solution:
    """Every load on every candidate, of which none is chosen yet: for the planner, who chooses jointly."""
    gpu_index = {gpu.id: i for i, gpu in enumerate(question.gpus)}
    profiles = tuple(Profile(g, layout) for g in range(len(question.gpus)) for layout in question.layouts)
    offers = _offers_of(question.candidates, profiles, gpu_index)
    grid = grid_of(question, profiles, offers)
    grid.work_out(*sheet_program(question.draft is not None).tables)
    return Solution(question, profiles, offers, grid, ())


def _offers_of(
    candidates: Sequence[Candidate], profiles: Sequence[Profile], gpu_index: Mapping[str, int]
) -> tuple[Offer, ...]:
    """Each candidate at every layout that it has the GPUs and the links for."""
    places = {profile: i for i, profile in enumerate(profiles)}
    layouts = dict.fromkeys(profile.layout for profile in profiles)
    return tuple(
        Offer(c, places[Profile(gpu_index[one.gpu.id], layout)])
        for c, one in enumerate(candidates)
        for layout in layouts
        if layout.n_gpus <= one.linked_gpus and (layout.data_parallel_size == 1 or one.tries_ranks)
    )


def _cell_kv(solved: Solution) -> None:
    """Put in what stays in memory of each load's cache on the GPU chosen (the first where none is), before division
    over several."""
    loads = range(len(solved.question.loads))
    whole = solved.grid.along("chosen", {"load": loads, "profile": [solved.undivided_profile(row) for row in loads]})
    whole.work_out(CELL_KV)
    solved.grid.put(("load",), {name: whole.spread(name, OF_CHOSEN) for name in CELL_KV.named()})


def choose(solved: Solution) -> list[Choice]:
    """Per load the choice of INTERFACE, the very cheapest and the runner-up, by the steps of `choice`."""
    offers = solved.offers
    gpu = numpy.array([solved.profiles[s.profile].gpu for s in offers])
    providers = [solved.candidate(i).provider for i in range(len(offers))]
    provider = numpy.array([providers.index(p) for p in providers])
    picks = pick(solved.grid)
    mine = numpy.array([0 if one is None else one[0].offer for one in picks])[:, None]
    others = pick(solved.grid, (gpu != gpu[mine]) | (provider != provider[mine]))
    return [
        _choice(solved, row, *one, second and second[0])
        if one and not load.over_limit
        else Choice(_verdict_without(solved, row))
        for row, (load, one, second) in enumerate(zip(solved.question.loads, picks, others, strict=True))
    ]


def _choice(solved: Solution, row: int, best: Pick, cheapest: Pick, runner_up: Pick | None) -> Choice:
    at = solved.at(row, offer=best.offer)
    known = {name: float(at[name][0]) for name in _OF_CHOICE} | {"n_instances": best.n_instances}
    held = known["sequences"] * known["data_parallel_size"]
    of_rate: dict[str, Any] = {}
    if solved.question.loads[row].requests_per_second:
        known |= {name: float(at[name][0]) for name in _OF_RATE}
        serving = parallelism.needed_replicas(known["load_requests"], known["paced_requests"])
        n_places = of_rate["n_places"] = int(serving * known["paced_requests"])
        of_rate["wait_fraction"] = rates.exact_wait_fraction(n_places, known["offered_requests"])
        served = float(rates.served_requests_per_second.of(known))
    else:
        served = int(parallelism.served_at_target.of(known))
    return Choice(
        "fits",
        best.offer,
        runner_up and runner_up.offer,
        sequences_per_replica=int(held),
        n_replicas=int(known["n_replicas"]),
        pipeline_parallel_size=int(known["pipeline_stages"]),
        n_instances=best.n_instances,
        hourly_usd=known["hourly_usd"],
        monthly_usd=best.usd,
        runner_up_monthly_usd=runner_up and runner_up.usd,
        headroom_fraction=float(parallelism.headroom_fraction.of(known)),
        sure_headroom_fraction=float(parallelism.sure_headroom_fraction.of(known)),
        served_at_target=served,
        memory_holds=int(parallelism.memory_holds.of(known)),
        cheapest=cheapest,
        **of_rate,
    )


_OF_CHOICE = (
    "load_requests", "n_replicas", "sequences", "sure_sequences", "data_parallel_size", "pipeline_stages", "hourly_usd",
    "replicas_per_instance", "paced_requests", "survive", "zones", "extra_headroom_fraction",
)  # fmt: skip
_OF_RATE = ("full_turn_seconds", "offered_requests", "wait_z")


def _verdict_without(solved: Solution, row: int) -> str:
    cell = solved.question.loads[row]
    if cell.over_limit:
        limit = solved.question.models[cell.model].model.max_context_tokens
        return f"over the model's {short_tokens(limit or 0)}"
    return TOO_SLOW if (solved.costs["n_instances"][row] == 0).any() else NOTHING_FITS


def with_fewer_targets(choices: tuple[Choice, ...], solved: Solution) -> tuple[Choice, ...]:
    """The choices with what they would take without targets of speed, and without that of the first token alone, where
    it costs less."""
    after = ("sequences", "rates", "costs", "ranks")
    by_memory_alone, alone = _picked_with(solved, "batch_limit", NO_BATCH_LIMIT, *after)
    _, no_ttft = _picked_with(solved, "ttft_limit_seconds", float(NO_LIMIT_SECONDS), "limits", *after)
    rows = [row for row, one in enumerate(alone) if one]
    tpot_seconds = dict.fromkeys(range(len(choices)), 0.0)
    if rows:
        found = _paced(by_memory_alone, rows, [one[0].offer for one in alone if one])
        tpot_seconds |= dict(zip(rows, found.spread("tpot_seconds", OF_CHOSEN).tolist(), strict=True))
    out = []
    for row, (choice, *fewer) in enumerate(zip(choices, alone, no_ttft, strict=True)):
        by_memory, by_tpot = (
            one[0] if one and (choice.offer is None or one[0].usd < choice.monthly_usd * (1 - 1e-12)) else None
            for one in fewer
        )
        by = choice.sized_by
        if by_memory and choice.offer is not None:
            by = "ttft" if by_tpot else "tpot"
        out.append(
            replace(
                choice,
                without_targets=by_memory,
                without_ttft=by_tpot,
                sized_by=by,
                without_targets_tpot_seconds=tpot_seconds[row],
            )
        )
    return tuple(out)


def with_no_loss(choices: tuple[Choice, ...], solved: Solution) -> tuple[Choice, ...]:
    """The choices with what they would take if nothing had to be survived, where that costs less."""
    out = []
    for choice, found in zip(choices, _picked_with(solved, "survive", 0.0, "costs")[1], strict=True):
        cheaper = choice.offer is not None and found and found[0].usd < choice.monthly_usd * (1 - 1e-12)
        out.append(replace(choice, sized_by="survival", without_survival=found[0]) if found and cheaper else choice)
    return tuple(out)


def _by_purchase(solved: Solution) -> Iterator[tuple[str, list[RentalRecord | None]]]:
    """Each purchase class answered by the same rule over the candidates with a price in it: by load its answer."""
    question = solved.question
    elsewhere = [one.gpu for of_class in question.others.values() for one in of_class]
    gpus = {gpu.id: gpu for gpu in (*elsewhere, *question.gpus)}  # typed values stand in the question's own
    # A class may have GPUs that the class shown has no price for.
    known = solved if len(gpus) == len(question.gpus) else tables(replace(question, gpus=tuple(gpus.values())))
    gpu_index = {gpu.id: i for i, gpu in enumerate(known.question.gpus)}
    for purchase, paid in PURCHASES.items():
        if purchase == question.settings.purchase:
            yield (
                purchase,
                _rented(
                    solved,
                    question.candidates,
                    {
                        row: Pick(one.offer, one.n_instances, one.monthly_usd)
                        for row, one in enumerate(solved.choices)
                        if one.offer is not None
                    },
                ),
            )
            continue
        candidates = in_class(question.candidates, question.others.get(purchase, ()), purchase)
        if not candidates:
            yield purchase, [None] * len(question.loads)
            continue
        offers = _offers_of(candidates, known.profiles, gpu_index)
        grid = with_offers(known.grid, question, candidates, offers)
        grid.put((), {"is_committed": float(paid.committed)})
        grid.work_out(*(SHEET[name] for name in OF_OFFERS))
        picks = pick(grid)
        of_loads = enumerate(zip(question.loads, picks, strict=True))
        chosen = {row: one[0] for row, (load, one) in of_loads if one and not load.over_limit}
        yield purchase, _rented(replace(known, grid=grid, offers=offers), candidates, chosen)


def _rented(solved: Solution, candidates: Sequence[Candidate], chosen: Mapping[int, Pick]) -> list[RentalRecord | None]:
    """By load what is rented of `candidates`; `chosen`: the loads that something holds, by row."""
    answers: list[RentalRecord | None] = [None] * len(solved.question.loads)
    tight = has_little_headroom(solved, list(chosen), [one.offer for one in chosen.values()])
    for (row, one), is_tight in zip(chosen.items(), tight, strict=True):
        instance = candidates[solved.offers[one.offer].candidate].instance
        answers[row] = RentalRecord(instance, one.n_instances, one.usd, is_tight)
    return answers


def _picked_with(solved: Solution, limit: str, value: float, *tables: str) -> tuple[Solution, Picks]:
    """Another limit in place of the question's, which `tables` follow from: all tables then, and what is chosen."""
    grid = solved.grid.again({limit: value})
    grid.work_out(*(SHEET[name] for name in tables))
    return replace(solved, grid=grid), pick(grid)


def with_speed(solved: Solution, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """The choices with what users get of them: times, tokens, bands, and what asked for the replicas."""
    rows = [i for i, c in enumerate(choices) if c.offer is not None]
    if not rows:
        return choices
    at = _paced(solved, rows, [choices[i].offer for i in rows])
    found = at.table(*OF_CHOSEN)
    in_flight = found["concurrent_requests"]
    if RATE in at.columns:
        in_flight = numpy.where(found[RATE] > 0, found["in_flight_at_peak"], in_flight)
    read = (*TIMES.values(), "sized_by", "bound_by", "requests_per_replica", "prefill_fraction")
    columns = {name: found[name] for name in read}
    out, measured = list(choices), dict[int, Ends]()
    for n, i in enumerate(rows):
        times: dict[str, Any] = {name: float(columns[of][n]) for name, of in TIMES.items()}
        bands, measured[i] = _bands(solved, i, choices[i])
        ends = zip(times.values(), bands, strict=True)
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
            bands=tuple(
                (float(speed.at_speed_band(time, low)), float(speed.at_speed_band(time, high)))
                for time, (low, high) in ends
            ),
        )
    ended = _with_ends(at, [out[i] for i in rows], list(measured.values()))
    return tuple(next(ended) if i in measured else one for i, one in enumerate(out))


def _paced(solved: Solution, rows: Sequence[int], offers: Sequence[Any]) -> Grid:
    """What users get of loads on offers that hold them, on an axis of these."""
    grid = solved.grid.along("chosen", {"load": rows, "offer": offers})
    grid.work_out(*CHOSEN.tables)
    return grid


def _with_ends(at: Grid, choices: Sequence[Choice], measured: Sequence[Ends]) -> Iterator[Choice]:
    """The choices (the axis of `at`) with what the chosen hardware costs at both ends of the band of TPOT, and of the
    band that is left where a run of that deployment confirms the prediction."""
    predicted = [[seconds / one.tpot_seconds for seconds in one.bands[0]] for one in choices]
    factors = numpy.transpose([(*one, *left) for one, left in zip(predicted, measured, strict=True)])
    found = [_monthly_usd(at, "speed_factor", factor) for factor in factors]
    for one, *ends in zip(choices, *found, strict=True):
        low, high, measured_low, measured_high = (float(usd) if usd > 0 else None for usd in ends)
        yield replace(one, monthly_usd_ends=(low, high), monthly_usd_measured=(measured_low, measured_high))


def _monthly_usd(at: Grid, name: str, factor: Any) -> Any:
    """What the hardware of `at` costs where a factor of speed is so much of what it is; not above 0 where no count is
    enough."""
    held = at.again({})
    held.put(OF_CHOSEN, {name: at.spread(name, OF_CHOSEN) * factor})
    held.work_out(*(SHEET[table].over(OF_CHOSEN) for table in ("limits", "sequences", "rates", "costs")))
    return held.spread("monthly_usd", OF_CHOSEN)


def late_usd(solved: Solution, row: int) -> float | None:
    """What the instances of a load's answer cost a month where the first token comes at the slow end of its band: in
    the layout that is the cheapest then; None where no count of them is enough."""
    choice, offers = solved.choices[row], solved.offers
    mine = [i for i, one in enumerate(offers) if one.candidate == offers[choice.offer or 0].candidate]
    at = solved.grid.along("chosen", {"load": [row] * len(mine), "offer": mine})
    usd = _monthly_usd(at, "ttft_factor", choice.bands[1][1] / choice.ttft_seconds)
    return min((float(one) for one in usd if one > 0), default=None)


def _bands(solved: Solution, row: int, choice: Choice) -> tuple[list[Ends], Ends]:
    """Both ends of the bands of TPOT, TTFT and tokens a second, as factors; and those of TPOT after a run."""
    scope, kind = _speed_scope(solved, row, choice.offer or 0)

    def ends(figure: str, scope: Scope) -> Ends:
        of = scope if scope in OF_ANY_KIND else f"{scope}_{kind}"
        columns = deployment.speed_band_columns(solved.question.speed, scope, kind)
        low, high = (
            solved.question.overrides.input(f"{figure}_band_{end}_{of}", columns[f"{figure}_band_{end}"])
            for end in ("low", "high")
        )
        return low, high

    settings, bands = solved.question.settings, []
    for figure in deployment.SPEED_FIGURES:  # a factor comes from a measured point, which tells of its own figure alone
        factor = settings.ttft_factor if figure == "ttft" else settings.speed_factor
        bands.append(ends(figure, scope if factor == 1 else "anchored"))
    return bands, ends("tpot", "anchored")


def _speed_scope(solved: Solution, row: int, offer: int) -> tuple[Scope, ModelKind]:
    """Which runs the speed of a load on an offer is judged by, and the kind of its model."""
    at = solved.grid.along("chosen", {"load": [row], "offer": [offer]})
    kind = MODEL_KINDS[int(at.spread("speed_kind", OF_CHOSEN)[0]) - 1]
    at.evaluate((speed.measured_scope,), OF_CHOSEN)
    return deployment.SPEED_SCOPES[int(at.spread("measured_scope", OF_CHOSEN)[0])], kind


def was_measured(solved: Solution, row: int, offer: int) -> bool:
    """Whether runs of this kind took part in the fit of the speed: of the engine, the offer's GPU and the model's kind,
    inside one machine and without data-parallel ranks."""
    return _speed_scope(solved, row, offer)[0] == "fitted"


def has_little_headroom(solved: Solution, rows: Sequence[int], offers: Sequence[int]) -> list[bool]:
    """Whether loads have little headroom on offers that hold them: see `parallelism.has_little_headroom`."""
    if not rows:
        return []
    tight = _paced(solved, rows, offers).spread("has_little_headroom", OF_CHOSEN)
    return [bool(is_tight) for is_tight in tight]
