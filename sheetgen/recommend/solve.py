"""Work out every load on every candidate, and choose: pools, charges, sequences, speed, instances, money.

The choice for each load is made by the steps of `choice`; then how fast the chosen hardware answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy

from sheetgen import cost
from sheetgen.catalog.engines import MODEL_KINDS, OF_ANY_KIND, RESIDUALS, ModelKind, Scope
from sheetgen.catalog.hardware import Gpu
from sheetgen.estimate import PACE, STEADY
from sheetgen.recommend.choice import Pick, Picks, pick
from sheetgen.recommend.solution import (
    TABLES,
    Axes,
    Choice,
    Columns,
    Grid,
    Offer,
    Profile,
    Rental,
    Solution,
    Table,
    quantities_of,
    short_tokens,
)
from sheetgen.scenario import deployment
from sheetgen.scenario.market import LEAST_LINK_BYTES_PER_SECOND, Candidate, in_class
from sheetgen.scenario.overrides import limits_of
from sheetgen.scenario.question import MAX_PIPELINE_PARALLEL_SIZE, Question, SheetModel
from sheetgen.sizing import kv_cache, memory, parallelism, rates, speed
from sheetgen.units import DTYPES, GBPS, PURCHASES

Ends = tuple[float, float]  # of a band
NO_BATCH_LIMIT = 1e9  # requests: more than any memory holds
STRIDE = 64  # requests; 64 strides of it are more than any engine runs in a batch
MILLISECONDS_PER_SECOND = 1000
NO_LIMIT_SECONDS = 100_000  # a target that is off
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
    """Every load on every candidate, of which none is chosen yet: for who chooses among them otherwise."""
    gpu_index = {gpu.id: i for i, gpu in enumerate(question.gpus)}
    layouts = question.layouts
    profiles = tuple(Profile(g, layout) for g in range(len(question.gpus)) for layout in layouts)
    offers = _offers_of(question.candidates, profiles, gpu_index)
    paces = [(m, w) for m in range(len(question.models)) for w in question.workloads]
    of_layout = [layouts.index(p.layout) for p in profiles]
    grid = Grid({}, {}).along("profile", {"gpu": [p.gpu for p in profiles], "layout": of_layout})
    grid = grid.along("offer", {"profile": [s.profile for s in offers]}).along("pace", {"model": [m for m, _ in paces]})
    grid = grid.along("load", {"pace": [question.pace(one) for one in question.loads]})
    _put_facts(grid, question)
    _put_offers(grid, question, [question.candidates[s.candidate] for s in offers])
    for name in ("models", "shards", "profiles", "pools"):
        grid.evaluate(quantities_of(name, question.draft is not None), TABLES[name][0])
    _put_paces(grid, [w for _, w in paces])
    _work_out(grid, "paces", "stages")
    grid.put(("pace", "profile"), {"pipeline_parallel_size": grid.read("pipeline_stages", ("pace", "profile"))})
    _work_out(grid, "steps", "limits", also=batches(grid))
    _work_out(grid, "loads", "sequences", "rates")
    _cost(grid)
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


def _cost(grid: Grid) -> None:
    """What every load costs on every offer; a replica spans machines only where no offer holds it inside one."""
    _work_out(grid, "offers")
    held = grid.read("pipeline_stages", ("load", "offer")) == 1
    held = (held & (grid.read("instance_month_usd", ("offer",)) > 0)).any(axis=-1)
    grid.put(("load",), {"held_inside": held.astype(float)})
    _work_out(grid, "costs", "ranks")


_OF_A_RATE = ("rates", "ranks")  # worked out only where a load is one


def _work_out(grid: Grid, *names: str, also: Columns | None = None) -> None:
    for name in names:
        if name in _OF_A_RATE and not grid.has("requests_per_second", ("load",)):
            continue
        axes, formulas = TABLES[name]
        grid.evaluate(formulas, axes, also)


def _put_facts(grid: Grid, question: Question) -> None:
    """Settings, constants and what was typed; what models, GPUs and both together contribute; the loads."""
    inputs = _inputs(question)
    grid.put((), inputs)
    grid.evaluate((speed.network_bytes_per_second,), ())
    models = question.models
    rows = [_model_columns(m, question) for m in models]
    grid.put(("model",), {k: [r[k] for r in rows] for k in rows[0]})
    gpus = gpu_columns(question)
    grid.put(("gpu",), gpus)
    residuals = [deployment.residual_columns(gpus, deployment.model_kind(m.model), m.weight_dtype) for m in models]
    grid.put(
        ("model", "gpu"),
        {
            "peak_flops": numpy.array([gpus[f"peak_flops_{m.weight_dtype}"] for m in models]),
            **{name: numpy.array([one[name] for one in residuals]) for name in residuals[0]},
            "runs_weights": numpy.array([[runs_weights(g, m.weight_dtype) for g in question.gpus] for m in models]),
            "runs_kv": numpy.array([[m.kv_cache_dtype in g.kv_run for g in question.gpus] for m in models]),
        },
    )
    sizes, ranks = numpy.array(question.layouts, float).T
    grid.put(("layout",), {"tensor_parallel_size": sizes, "data_parallel_size": ranks, "busy_ranks": ranks})
    apart = memory.non_torch_bytes_at({**inputs, "is_older_gpu": gpus["is_older_gpu"][:, None]}, sizes[None, :])
    grid.put(("gpu", "layout"), {"non_torch_bytes_per_tp": apart, "non_torch_bytes_per_gpu": apart})
    of_load = ("context_tokens", "input_tokens", "concurrent_requests")
    columns = {name: [getattr(one, name) for one in question.loads] for name in of_load}
    grid.put(("load",), {**columns, "max_model_len": columns["context_tokens"]})
    if any(one.requests_per_second for one in question.loads):
        grid.put(("load",), {"requests_per_second": [one.requests_per_second for one in question.loads]})


def settings_of(question: Question) -> Columns:
    """Constants, and the settings that are numbers."""
    settings = {k: float(v) for k, v in vars(question.settings).items() if isinstance(v, (int, float))}
    return {**cost.CONSTANTS, **settings, "is_committed": question.settings.is_committed}


def _inputs(question: Question) -> Columns:
    """What holds for the whole sheet: settings, constants and what was typed, by name."""
    inputs: Columns = {
        **question.engine.columns(),
        **settings_of(question),
        "max_pipeline_parallel_size": MAX_PIPELINE_PARALLEL_SIZE,
        "least_link_bytes_per_second": LEAST_LINK_BYTES_PER_SECOND,
        **{name: float(getattr(question.speed, name)) for name in deployment.OF_EVERY_SPEED},
        "bytes_per_gigabit": float(GBPS),
        **{name: float(value) for name, value in deployment.DEFINITIONS.items()},
        **(deployment.draft_columns(question.draft) if question.draft else {}),
        "requests_per_stride": float(STRIDE),
        "wait_z": rates.z_of(question.settings.max_wait_fraction),
        "milliseconds_per_second": float(MILLISECONDS_PER_SECOND),
        "no_limit_seconds": float(NO_LIMIT_SECONDS),
    }
    return inputs | {name: float(value) for name, value in question.overrides.inputs.items() if name in inputs}


def _model_columns(model: SheetModel, question: Question) -> Columns:
    """The numbers of a model at its precisions, whose bytes may have been typed over."""
    columns = deployment.model_columns(model.model, model.weight_dtype, model.kv_cache_dtype)
    typed = question.overrides.precisions
    of_weights, of_kv = (typed.get(d, {}) for d in (model.weight_dtype, model.kv_cache_dtype))
    columns |= {name: v for name, v in of_weights.items() if not name.startswith("kv_")}
    return columns | {name: v for name, v in of_kv.items() if name.startswith("kv_")}


def runs_weights(gpu: Gpu, dtype: str) -> int:
    """2 where a GPU computes in that precision of weights, 1 where it keeps weights in it alone, 0 where neither."""
    return {"native": 2, "weight_only": 1}.get(gpu.weights_run.get(dtype, ""), 0)


def gpu_columns(question: Question) -> Columns:
    """What an engine makes of each GPU: memory, limits of a batch, error bands, speed."""
    gpus, engine, speed = question.gpus, question.engine, question.speed
    limits = [limits_of(engine, g) for g in gpus]
    by_dtype = {d: [deployment.speed_columns(speed, engine, g, d) for g in gpus] for d in DTYPES}
    residuals = [speed.residuals(engine.engine, g) for g in gpus]
    columns: dict[str, list[Any]] = {
        "gpu_memory_bytes": [g.memory.engine_bytes for g in gpus],
        "max_num_seqs": [seqs for seqs, _ in limits],
        "max_num_batched_tokens": [batched for _, batched in limits],
        "pool_error_bytes_measured": [_pool_error(question, engine.band_scope(g)) for g in gpus],
        "pool_error_bytes_elsewhere": [_pool_error(question, engine.scope_elsewhere(g)) for g in gpus],
        **{k: [row[k] for row in by_dtype["bf16"]] for k in by_dtype["bf16"][0] if k != "peak_flops"},
        **{f"peak_flops_{d}": [row["peak_flops"] for row in rows] for d, rows in by_dtype.items()},
        **{name: [one[name] for one in residuals] for name in RESIDUALS},
        "measured_kinds": [0 if question.draft else speed.measured_kinds(engine.engine, g) for g in gpus],
        "is_older_gpu": [engine.is_older(g.architecture) for g in gpus],
        "runs_sparse_attention": [engine.runs_sparse_attention(g.architecture) for g in gpus],
        "plain_fp8_latent": [engine.keeps_plain_fp8_latents(g.architecture) for g in gpus],
    }
    for g, gpu in enumerate(gpus):
        for name, value in question.overrides.gpus.get(gpu.id, {}).items():
            if name in columns:
                columns[name][g] = value
    if not question.has_latent_entries:  # one typed over a model's is taken as on the first GPU, as the workbook has it
        columns["plain_fp8_latent"] = columns["plain_fp8_latent"][:1] * len(gpus)
    return {name: numpy.array(column, float) for name, column in columns.items()}


def _pool_error(question: Question, scope: str) -> float:
    """The low end of the pool's error band; without a band the prediction is taken at its word."""
    return float(numpy.nan_to_num(deployment.band_columns(question.engine, scope)["kv_pool_error_bytes_low"]))


def _put_paces(grid: Grid, workloads: list[Any]) -> None:
    """By model and workload its prompt, answer and targets."""
    of_pace = ("context_tokens", "input_tokens", "output_tokens")
    grid.put(("pace",), {name: [getattr(w, name) for w in workloads] for name in of_pace})
    grid.put(("pace",), {"max_model_len": grid.read("context_tokens", ("pace",))})
    for figure in ("tpot", "ttft"):
        target = [getattr(w, f"{figure}_target_ms") or 0 for w in workloads]
        grid.put(("pace",), {f"{figure}_target_ms": target, "target_ms": target})
        grid.evaluate(((f"{figure}_limit_seconds", parallelism.limit_seconds),), ("pace",))


def _put_offers(grid: Grid, question: Question, candidates: Sequence[Candidate]) -> None:
    """What instances contribute, at the price of their class, and what the contract takes off it."""
    grid.put(
        ("offer",),
        {
            "gpu_count": [c.gpu_count for c in candidates],
            "network_gbps": [c.network_gbps for c in candidates],
            "nvlink_domain_gpus": [c.nvlink_domain_gpus for c in candidates],
            "listed_usd_per_hour": [c.usd_per_hour for c in candidates],
            "discount_fraction": [question.discount(c.provider, c.purchase) for c in candidates],
        },
    )


def batches(grid: Grid, axes: Axes = ("pace", "profile")) -> Columns:
    """How many requests the batches have that are tried, and which share of the experts each leaves alone."""
    one_by_one = numpy.arange(1.0, STRIDE + 1)
    missed, ranks = (grid.read(name, axes) for name in ("expert_miss_fraction", "data_parallel_size"))
    found = {"steps": one_by_one}
    for name, size in (("untouched_by_request", 1), ("untouched_by_stride", STRIDE)):
        found[name] = speed.untouched_fraction((one_by_one * size).reshape(-1, *[1] * len(axes)), missed[None], ranks)
    return found


def _cell_kv(solved: Solution) -> None:
    """Put in what stays in memory of each load's cache on the GPU chosen (the first where none is), before division
    over several."""
    loads = range(len(solved.question.loads))
    whole = solved.grid.along("chosen", {"load": loads, "profile": [solved.undivided_profile(row) for row in loads]})
    found = whole.evaluate(STEADY, ("chosen",))
    unsharded = ("kv_blocks_per_sequence_steady", "kv_block_bytes")
    found |= {f"unsharded_{name}": whole.read(name, ("chosen",)) for name in unsharded}
    whole.put(("chosen",), found)
    found |= whole.evaluate((kv_cache.kv_bytes_per_sequence_steady, memory.kv_bytes), ("chosen",))
    solved.grid.put(("load",), found)


def choose(solved: Solution) -> list[Choice]:
    """Per load the choice of INTERFACE, the very cheapest and the runner-up, by the steps of `choice`."""
    offers = solved.offers
    gpu = numpy.array([solved.profiles[s.profile].gpu for s in offers])
    providers = [solved.candidate(i).provider for i in range(len(offers))]
    provider = numpy.array([providers.index(p) for p in providers])
    picks = pick(solved.costs)
    mine = numpy.array([0 if one is None else one[0].offer for one in picks])[:, None]
    others = pick(solved.costs, (gpu != gpu[mine]) | (provider != provider[mine]))
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
    of_rate: Columns = {}
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
        found = _paced(by_memory_alone, rows, [one[0].offer for one in alone if one])[1]
        tpot_seconds |= dict(zip(rows, found["tpot_seconds"].tolist(), strict=True))
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


def _by_purchase(solved: Solution) -> Iterator[tuple[str, list[Rental | None]]]:
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
        grid = known.grid.along("offer", {"profile": [s.profile for s in offers]})
        grid.put((), {"is_committed": float(paid.committed)})
        _put_offers(grid, question, [candidates[s.candidate] for s in offers])
        _cost(grid)
        picks = pick(Table(grid, ("load", "offer"), (len(question.loads), len(offers))))
        of_loads = enumerate(zip(question.loads, picks, strict=True))
        chosen = {row: one[0] for row, (load, one) in of_loads if one and not load.over_limit}
        yield purchase, _rented(replace(known, grid=grid, offers=offers), candidates, chosen)


def _rented(solved: Solution, candidates: Sequence[Candidate], chosen: Mapping[int, Pick]) -> list[Rental | None]:
    """By load what is rented of `candidates`; `chosen`: the loads that something holds, by row."""
    answers: list[Rental | None] = [None] * len(solved.question.loads)
    tight = has_little_headroom(solved, list(chosen), [one.offer for one in chosen.values()])
    for (row, one), is_tight in zip(chosen.items(), tight, strict=True):
        answers[row] = Rental(candidates[solved.offers[one.offer].candidate], one.n_instances, one.usd, is_tight)
    return answers


def _picked_with(solved: Solution, limit: str, value: float, *tables: str) -> tuple[Solution, Picks]:
    """Another limit in place of the question's, which `tables` follow from: all tables then, and what is chosen."""
    grid = solved.grid.along("chosen", {})
    grid.put((), {limit: value})
    _work_out(grid, *tables, also=batches(grid))
    other = replace(solved, grid=grid)
    return other, pick(other.costs)


def with_speed(solved: Solution, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """The choices with what users get of them: times, tokens, bands, and what asked for the replicas."""
    rows = [i for i, c in enumerate(choices) if c.offer is not None]
    if not rows:
        return choices
    at, found, load, in_flight = _paced(solved, rows, [choices[i].offer for i in rows])
    # All replicas together serve the load: the fullest one's times hold for every request.
    at.put(("chosen",), {"concurrent_requests": load})
    found |= at.evaluate((speed.output_tokens_per_second, parallelism.next_tpot_seconds), ("chosen",))
    asked_by = at.evaluate((parallelism.sized_by,), ("chosen",))["sized_by"]
    out, measured = list(choices), dict[int, Ends]()
    for n, i in enumerate(rows):
        names = ("tpot_seconds", "ttft_seconds", "output_tokens_per_second")
        times: dict[str, Any] = {name: float(found[name][n]) for name in names}
        bands, measured[i] = _bands(solved, i, choices[i])
        ends = zip(times.values(), bands, strict=True)
        by = str(asked_by[n])
        out[i] = replace(
            choices[i],
            **times,
            in_flight=float(in_flight[n]),
            bound_by=str(found["bound_by"][n]),
            sized_by=by,
            replicas_by=by,
            requests_per_replica=int(found["requests_per_replica"][n]),
            prefill_fraction=float(found["prefill_fraction"][n]),
            bands=tuple(
                (float(speed.at_speed_band(time, low)), float(speed.at_speed_band(time, high)))
                for time, (low, high) in ends
            ),
        )
    ended = _with_ends(at, [out[i] for i in rows], list(measured.values()))
    return tuple(next(ended) if i in measured else one for i, one in enumerate(out))


def _paced(solved: Solution, rows: Sequence[int], offers: Sequence[Any]) -> tuple[Grid, Columns, Any, Any]:
    """What users get of loads on offers that hold them: the axis of these, what was worked out on it, the load, and the
    requests at once."""
    at = solved.grid.along("chosen", {"load": rows, "offer": offers})
    at.put(("chosen",), {"pipeline_parallel_size": at.read("pipeline_stages", ("chosen",))})
    found = at.evaluate((parallelism.requests_per_replica,), ("chosen",))
    each, load = found["requests_per_replica"], at.read("load_requests", ("chosen",))
    at.put(("chosen",), {"running_requests": each, "concurrent_requests": each})
    found |= at.evaluate(PACE, ("chosen",))
    in_flight = at.read("concurrent_requests", ("load",))[rows]
    if at.has("requests_per_second", ("load",)):
        return at, *_at_rate(at, found, load, in_flight)
    return at, found, load, in_flight


def _at_rate(at: Grid, stated: Columns, load: Any, in_flight_stated: Any) -> tuple[Columns, Any, Any]:
    """What users get, the load and the requests at once, where some loads are rates: at the speed at which as many
    requests run at once on a replica as arrive in the time of one, found from a full replica downward."""
    known = at.along("chosen", {})
    known.evaluate((rates.replica_requests_per_second,), ("chosen",))

    def follows(in_flight: Any) -> Any:
        known.put(("chosen",), {"in_flight": in_flight})
        return known.evaluate((rates.next_in_flight,), ("chosen",))["next_in_flight"]

    full = known.read("paced_requests", ("chosen",))
    pairs = [(full, follows(full))]
    in_flight = pairs[0][1]
    for _ in range(rates.SECANTS):
        pairs.append((in_flight, follows(in_flight)))
        in_flight = rates.secant_in_flight(*pairs[-2], *pairs[-1])
    known.put(("chosen",), {"in_flight": in_flight, "running_requests": in_flight, "concurrent_requests": in_flight})
    found = known.evaluate((("batch_requests", rates.mean_batch_requests), *PACE[1:]), ("chosen",))
    arriving = known.read("requests_per_second", ("chosen",))
    at_peak = known.evaluate((rates.in_flight_at_peak,), ("chosen",))["in_flight_at_peak"]
    is_rate, more = arriving > 0, 1 + at.read("extra_headroom_fraction", ("chosen",))
    found = stated | {name: numpy.where(is_rate, found[name], stated[name]) for name in found}
    at.put(("chosen",), found)
    return found, numpy.where(is_rate, at_peak * more, load), numpy.where(is_rate, at_peak, in_flight_stated)


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
    held = at.along("chosen", {})
    held.put(("chosen",), {name: at.read(name, ("chosen",)) * factor})
    held.evaluate((*TABLES["limits"][1], parallelism.paced_requests), ("chosen",), batches(held, ("chosen",)))
    if held.has("requests_per_second", ("load",)):
        # The load that `at` has by now is that of the times; places replace it.
        held.evaluate((parallelism.load_requests, *TABLES["rates"][1]), ("chosen",))
    return held.evaluate(TABLES["costs"][1], ("chosen",))["monthly_usd"]


def late_usd(solved: Solution, row: int) -> float | None:
    """What the instances of a load's answer cost a month where the first token comes at the slow end of its band: in
    the layout that is the cheapest then; None where no count of them is enough."""
    choice, offers = solved.choices[row], solved.offers
    mine = [i for i, one in enumerate(offers) if one.candidate == offers[choice.offer or 0].candidate]
    at = solved.grid.along("chosen", {"load": [row] * len(mine), "offer": mine})
    usd = _monthly_usd(at, "ttft_factor", choice.bands[1][1] / choice.ttft_seconds)
    return min((float(one) for one in numpy.broadcast_to(usd, len(mine)) if one > 0), default=None)


def _bands(solved: Solution, row: int, choice: Choice) -> tuple[list[Ends], Ends]:
    """Both ends of the bands of TPOT, TTFT and tokens a second, as factors; and those of TPOT after a run."""
    scope, kind = _speed_scope(solved, row, choice.offer or 0, choice.pipeline_parallel_size)

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


def _speed_scope(solved: Solution, row: int, offer: int, stages: int) -> tuple[Scope, ModelKind]:
    """Which runs the speed of a load on an offer is judged by, and the kind of its model."""
    at = solved.grid.along("chosen", {"load": [row], "offer": [offer]})
    at.put(("chosen",), {"pipeline_parallel_size": [stages]})
    kind = MODEL_KINDS[int(at.read("speed_kind", ("chosen",))[0]) - 1]
    found = at.evaluate((speed.measured_scope,), ("chosen",))
    return deployment.SPEED_SCOPES[int(found["measured_scope"][0])], kind


def was_measured(solved: Solution, row: int, offer: int, stages: int) -> bool:
    """Whether runs of this kind took part in the fit of the speed: of the engine, the offer's GPU and the model's kind,
    inside one machine and without data-parallel ranks."""
    return _speed_scope(solved, row, offer, stages)[0] == "fitted"


def has_little_headroom(solved: Solution, rows: Sequence[int], offers: Sequence[int]) -> list[bool]:
    """Whether loads have little headroom on offers that hold them: see `parallelism.has_little_headroom`."""
    if not rows:
        return []
    question, name = solved.question, "near_target_fraction"
    near = question.overrides.input(name, question.reference.assumption(name))
    at, *_ = _paced(solved, rows, offers)
    found = at.evaluate((parallelism.has_little_headroom,), ("chosen",), {name: near})
    return [bool(one) for one in numpy.broadcast_to(found["has_little_headroom"], len(rows))]
