"""Work out every load on every candidate, and choose: pools, charges, sequences, speed, instances, money.

The choice for each load is the least monthly cost; then how fast the chosen hardware answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy

from sheetgen import cost
from sheetgen.catalog.engines import MODEL_KINDS, OF_ANY_KIND
from sheetgen.estimate import CHARGE, PACE
from sheetgen.formula import cheapest, first_where, least_where, same_money
from sheetgen.recommend.solution import TABLES, Choice, Columns, Grid, Offer, Profile, Solution, short_tokens
from sheetgen.scenario import deployment
from sheetgen.scenario.inputs import BY_NAME
from sheetgen.scenario.overrides import limits_of
from sheetgen.scenario.question import MAX_PIPELINE_PARALLEL_SIZE, Question, SheetModel
from sheetgen.sizing import kv_cache, memory, parallelism, speed
from sheetgen.sizing.speed import untouched_fraction
from sheetgen.units import DTYPES, GBPS, TENSOR_PARALLEL_SIZES

NO_BATCH_LIMIT = 1e9  # requests: more than any memory holds
STRIDE = 64  # requests; 64 strides of it are more than any engine runs in a batch
MILLISECONDS_PER_SECOND = 1000
NO_LIMIT_SECONDS = 100_000  # a target that is off
NETWORK_BYTES_PER_SECOND = float(BY_NAME["network_gbps"].default * GBPS)  # of every machine
NOTHING_FITS = "nothing fits"
TOO_SLOW = "no count meets the target"  # memory holds it somewhere, but a lone request is too slow


def solve(question: Question) -> Solution:
    """Work out every load of `question` on every candidate, and choose."""
    solved = tables(question)
    choices = with_speed(solved, tuple(choose(solved)))
    if question.settings.speed_targets:
        alone = solved.grid.along("chosen", {})
        alone.put((), {"batch_limit": NO_BATCH_LIMIT})
        _work_out(alone, "sequences", "costs")
        choices = with_memory_alone(choices, replace(solved, grid=alone))
    _cell_kv(solved, choices)
    return replace(solved, choices=choices)


def tables(question: Question) -> Solution:
    """Every load on every candidate, of which none is chosen yet: for who chooses among them otherwise."""
    gpu_index = {gpu.id: i for i, gpu in enumerate(question.gpus)}
    profiles = tuple(Profile(g, t) for g in range(len(question.gpus)) for t in TENSOR_PARALLEL_SIZES)
    places = {profile: i for i, profile in enumerate(profiles)}
    offers = tuple(
        Offer(c, places[Profile(gpu_index[one.gpu.id], t)])
        for c, one in enumerate(question.candidates)
        for t in TENSOR_PARALLEL_SIZES
        if t <= one.gpu_count
    )
    paces = [(m, w) for m in range(len(question.models)) for w in question.workloads]
    of_layout = [TENSOR_PARALLEL_SIZES.index(p.tensor_parallel_size) for p in profiles]
    grid = Grid({}, {}).along("profile", {"gpu": [p.gpu for p in profiles], "layout": of_layout})
    grid = grid.along("offer", {"profile": [s.profile for s in offers]}).along("pace", {"model": [m for m, _ in paces]})
    grid = grid.along("load", {"pace": [question.pace(one) for one in question.loads]})
    _put_facts(grid, question)
    candidates = [question.candidates[s.candidate] for s in offers]
    listed = [c.usd_per_hour for c in candidates]
    grid.put(("offer",), {"gpu_count": [c.gpu_count for c in candidates], "listed_usd_per_hour": listed})
    _work_out(grid, "models", "shards", "profiles", "pools")
    _put_paces(grid, [w for _, w in paces])
    _work_out(grid, "paces", "stages")
    grid.put(("pace", "profile"), {"pipeline_parallel_size": grid.read("pipeline_stages", ("pace", "profile"))})
    _work_out(grid, "steps", also=_batches(grid))
    _work_out(grid, "loads", "offers", "sequences", "costs")
    return Solution(question, profiles, offers, grid, ())


def _work_out(grid: Grid, *names: str, also: Columns | None = None) -> None:
    for name in names:
        axes, formulas = TABLES[name]
        grid.evaluate(formulas, axes, also)


def _put_facts(grid: Grid, question: Question) -> None:
    """Settings, constants and what was typed; what models, GPUs and both together contribute; the loads."""
    inputs = _inputs(question)
    grid.put((), inputs)
    models = question.models
    rows = [_model_columns(m, question) for m in models]
    grid.put(("model",), {k: [r[k] for r in rows] for k in rows[0]})
    gpus = gpu_columns(question)
    grid.put(("gpu",), gpus)
    grid.put(("model", "gpu"), {
        "peak_flops": numpy.array([gpus[f"peak_flops_{m.weight_dtype}"] for m in models]),
        "runs_weights": numpy.array([[m.weight_dtype in g.weights_run for g in question.gpus] for m in models]),
        "runs_kv": numpy.array([[m.kv_cache_dtype in g.kv_run for g in question.gpus] for m in models]),
    })  # fmt: skip
    sizes = numpy.array(TENSOR_PARALLEL_SIZES, float)
    grid.put(("layout",), {"tensor_parallel_size": sizes})
    apart = memory.non_torch_bytes_at({**inputs, "is_older_gpu": gpus["is_older_gpu"][:, None]}, sizes[None, :])
    grid.put(("gpu", "layout"), {"non_torch_bytes_per_tp": apart, "non_torch_bytes_per_gpu": apart})
    of_load = ("context_tokens", "input_tokens", "concurrent_requests")
    columns = {name: [getattr(one, name) for one in question.loads] for name in of_load}
    grid.put(("load",), {**columns, "max_model_len": columns["context_tokens"]})


def settings_of(question: Question) -> Columns:
    """Constants, and the settings that are numbers."""
    settings = {k: float(v) for k, v in vars(question.settings).items() if isinstance(v, (int, float))}
    return {**cost.CONSTANTS, **settings, "is_committed": question.settings.is_committed}


def _inputs(question: Question) -> Columns:
    """What holds for the whole sheet: settings, constants and what was typed, by name."""
    speed = question.speed
    inputs: Columns = {
        **question.engine.columns(), **settings_of(question),
        "max_pipeline_parallel_size": MAX_PIPELINE_PARALLEL_SIZE, "max_tensor_parallel_size": TENSOR_PARALLEL_SIZES[-1],
        "nvlink_gpus": float(speed.nvlink_gpus), "all_reduce_growth": speed.all_reduce_growth,
        "network_hop_seconds": speed.network_hop_seconds, "network_bytes_per_second": NETWORK_BYTES_PER_SECOND,
        **{name: float(value) for name, value in deployment.SPEED_DEFINITIONS.items()},
        "data_parallel_size": 1.0, "busy_ranks": 1.0, "requests_per_stride": float(STRIDE),
        "milliseconds_per_second": float(MILLISECONDS_PER_SECOND), "no_limit_seconds": float(NO_LIMIT_SECONDS),
    }  # fmt: skip
    return inputs | {name: float(value) for name, value in question.overrides.inputs.items() if name in inputs}


def _model_columns(model: SheetModel, question: Question) -> Columns:
    """The numbers of a model at its precisions, whose bytes may have been typed over."""
    columns = deployment.model_columns(model.model, model.weight_dtype, model.kv_cache_dtype)
    typed = question.overrides.precisions
    of_weights, of_kv = (typed.get(d, {}) for d in (model.weight_dtype, model.kv_cache_dtype))
    columns |= {name: v for name, v in of_weights.items() if not name.startswith("kv_")}
    return columns | {name: v for name, v in of_kv.items() if name.startswith("kv_")}


def gpu_columns(question: Question) -> Columns:
    """What an engine makes of each GPU: memory, limits of a batch, error bands, speed."""
    gpus, engine, speed = question.gpus, question.engine, question.speed
    limits = [limits_of(engine, g) for g in gpus]
    by_dtype = {d: [deployment.speed_columns(speed, engine, g, d) for g in gpus] for d in DTYPES}
    columns: dict[str, list[Any]] = {
        "gpu_memory_bytes": [g.memory.engine_bytes for g in gpus],
        "max_num_seqs": [seqs for seqs, _ in limits],
        "max_num_batched_tokens": [batched for _, batched in limits],
        "pool_error_bytes_measured": [_pool_error(question, engine.band_scope(g.id)) for g in gpus],
        "pool_error_bytes_elsewhere": [_pool_error(question, "other")] * len(gpus),
        **{k: [row[k] for row in by_dtype["bf16"]] for k in by_dtype["bf16"][0] if k != "peak_flops"},
        **{f"peak_flops_{d}": [row["peak_flops"] for row in rows] for d, rows in by_dtype.items()},
        "measured_kinds": [speed.measured_kinds(engine.engine, g) for g in gpus],
        "is_older_gpu": [engine.is_older(g.architecture) for g in gpus],
    }
    for g, gpu in enumerate(gpus):
        for name, value in question.overrides.gpus.get(gpu.id, {}).items():
            if name in columns:
                columns[name][g] = value
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


def _batches(grid: Grid) -> Columns:
    """How many requests the batches have that are tried, and which share of the experts each leaves alone."""
    one_by_one = numpy.arange(1.0, STRIDE + 1)
    missed, ranks = (grid.read(name, ("pace", "profile")) for name in ("expert_miss_fraction", "data_parallel_size"))
    found = {"steps": one_by_one}
    for name, size in (("untouched_by_request", 1), ("untouched_by_stride", STRIDE)):
        found[name] = untouched_fraction(one_by_one[:, None, None] * size, missed[None], ranks)
    return found


def _cell_kv(solved: Solution, choices: tuple[Choice, ...]) -> None:
    """Put in the loads' own KV bill, before division over GPUs.

    A window's charge depends on the batch in flight: the one of the recommended GPU, else the largest.
    """
    batched = solved.gpus["max_num_batched_tokens"]
    of_gpu = [
        batched.max() if c.offer is None else batched[solved.profiles[solved.offers[c.offer].profile].gpu]
        for c in choices
    ]
    whole = solved.grid.along("chosen", {"load": range(len(choices)), "layout": [0] * len(choices)})
    whole.put(("chosen",), {"max_num_batched_tokens": of_gpu})
    found = whole.evaluate(CHARGE, ("chosen",))
    found |= {f"unsharded_{n}": whole.read(n, ("chosen",)) for n in ("kv_blocks_per_sequence", "kv_block_bytes")}
    whole.put(("chosen",), found)
    found |= whole.evaluate((kv_cache.kv_bytes_per_sequence, memory.kv_bytes), ("chosen",))
    solved.grid.put(("load",), found)


class Least(NamedTuple):
    """The least monthly cost of a load: of which offer, and of how many instances."""

    offer: int
    n_instances: int
    usd: float


def least_cost(monthly: Any, instances: Any, size: Any) -> list[Least | None]:
    """By row the least of its offers, or nothing where all are NaN: ties by fewer instances, smaller TP, then order."""
    best = cheapest(monthly, numpy.nan)
    least = same_money(monthly, best[:, None])
    fewest = least_where(instances, least)
    narrowest = least_where(size, least, instances == fewest[:, None])
    position = first_where(least, instances == fewest[:, None], size == narrowest[:, None])
    found: list[Least | None] = [None] * len(best)
    for row in numpy.flatnonzero(~numpy.isnan(best)).tolist():
        offer = int(position[row]) - 1
        found[row] = Least(offer, int(instances[row, offer]), float(best[row]))
    return found


def choose(solved: Solution) -> list[Choice]:
    """Per cell the least monthly cost; ties: fewer instances, then smaller TP, then catalog order."""
    costs, offers = solved.costs, solved.offers
    monthly = costs["monthly_usd"]
    best = least_cost(monthly, costs["n_instances"], costs["tensor_parallel_size"])
    gpu = numpy.array([solved.profiles[s.profile].gpu for s in offers])
    providers = [solved.candidate(i).provider for i in range(len(offers))]
    provider = numpy.array([providers.index(p) for p in providers])
    choices = []
    for row, (cell, least) in enumerate(zip(solved.question.loads, best, strict=True)):
        if cell.over_limit or least is None:
            choices.append(Choice(_verdict_without(solved, row)))
            continue
        offer = least.offer
        other = (gpu != gpu[offer]) | (provider != provider[offer])
        others = numpy.where(other, monthly[row], numpy.nan)
        second = cheapest(others, numpy.nan)
        runner_up = None if numpy.isnan(second) else int(first_where(same_money(others, second))) - 1
        replicas = costs["n_replicas"][row, offer]
        load = costs["load_requests"][row, 0]
        held, sure = costs["sequences"][row, offer], costs["sure_sequences"][row, offer]
        choices.append(Choice(
            "fits", offer, runner_up, sequences_per_replica=int(held), n_replicas=int(replicas),
            pipeline_parallel_size=int(costs["pipeline_stages"][row, offer]), n_instances=least.n_instances,
            hourly_usd=float(costs["hourly_usd"][row, offer]), monthly_usd=float(monthly[row, offer]),
            runner_up_monthly_usd=None if runner_up is None else float(second),
            headroom_fraction=float(parallelism.headroom_fraction(load, held, replicas)),
            sure_headroom_fraction=float(parallelism.sure_headroom_fraction(load, sure, replicas)),
        ))  # fmt: skip
    return choices


def _verdict_without(solved: Solution, row: int) -> str:
    cell = solved.question.loads[row]
    if cell.over_limit:
        limit = solved.question.models[cell.model].model.max_context_tokens
        return f"over the model's {short_tokens(limit or 0)}"
    if (solved.costs["n_instances"][row] == 0).any():
        return TOO_SLOW
    return NOTHING_FITS


def with_memory_alone(choices: tuple[Choice, ...], alone: Solution) -> tuple[Choice, ...]:
    """The choices with what memory alone would take, where that costs less: `alone` is without targets."""
    costs, out = alone.costs, []
    best = least_cost(costs["monthly_usd"], costs["n_instances"], costs["tensor_parallel_size"])
    for choice, least in zip(choices, best, strict=True):
        cheaper = least and (choice.offer is None or least.usd < choice.monthly_usd * (1 - 1e-12))
        by_memory = least if cheaper else None
        by = "speed" if by_memory and choice.offer is not None else choice.sized_by
        out.append(replace(choice, without_targets=by_memory, sized_by=by))
    return tuple(out)


def with_speed(solved: Solution, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """The choices with what users get of them: times, tokens, bands, and what asked for the replicas."""
    rows = [i for i, c in enumerate(choices) if c.offer is not None]
    if not rows:
        return choices
    at = solved.grid.along("chosen", {"load": rows, "offer": [choices[i].offer for i in rows]})
    of_choice = ("n_replicas", "pipeline_parallel_size")
    at.put(("chosen",), {name: [getattr(choices[i], name) for i in rows] for name in of_choice})
    found = at.evaluate((parallelism.requests_per_replica,), ("chosen",))
    each = found["requests_per_replica"]
    at.put(("chosen",), {"running_requests": each, "concurrent_requests": each})
    found |= at.evaluate(PACE, ("chosen",))
    # All replicas together serve the load: the fullest one's times hold for every request.
    load = at.read("load_requests", ("chosen",))
    at.put(("chosen",), {"concurrent_requests": load})
    found |= at.evaluate((speed.output_tokens_per_second,), ("chosen",))
    limits = at.read("batch_limit", ("chosen",)) * at.read("pipeline_parallel_size", ("chosen",))
    out = list(choices)
    for n, i in enumerate(rows):
        names = ("tpot_seconds", "ttft_seconds", "output_tokens_per_second")
        times: dict[str, Any] = {name: float(found[name][n]) for name in names}
        ends = zip(times.values(), _bands(solved, i, choices[i]), strict=True)
        by = str(parallelism.sized_by(load[n], choices[i].sequences_per_replica, limits[n]))
        out[i] = replace(
            choices[i], **times, bound_by=str(found["bound_by"][n]), sized_by=by, replicas_by=by,
            requests_per_replica=int(found["requests_per_replica"][n]),
            prefill_fraction=float(found["prefill_fraction"][n]),
            bands=tuple(
                (float(speed.at_speed_band(time, low)), float(speed.at_speed_band(time, high)))
                for time, (low, high) in ends
            ),
        )  # fmt: skip
    return tuple(out)


def _bands(solved: Solution, row: int, choice: Choice) -> list[tuple[float, float]]:
    """Both ends of the bands of TPOT, TTFT and tokens a second, as factors."""
    at = solved.grid.along("chosen", {"load": [row], "offer": [choice.offer or 0]})
    at.put(("chosen",), {"pipeline_parallel_size": [choice.pipeline_parallel_size]})
    kind = MODEL_KINDS[int(at.read("speed_kind", ("chosen",))[0]) - 1]
    found = at.evaluate((speed.measured_scope,), ("chosen",))
    scope = deployment.SPEED_SCOPES[int(found["measured_scope"][0])]
    of = scope if scope in OF_ANY_KIND else f"{scope}_{kind}"
    columns = deployment.speed_band_columns(solved.question.speed, scope, kind)
    columns = {name: solved.question.overrides.input(f"{name}_{of}", v) for name, v in columns.items()}
    return [(columns[f"{f}_band_low"], columns[f"{f}_band_high"]) for f in deployment.SPEED_FIGURES]
