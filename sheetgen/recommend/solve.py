"""Work out every load on every candidate: pools, charges, sequences, speed, instances, money."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy

from sheetgen import cost
from sheetgen.estimate import CHARGE
from sheetgen.recommend.choose import choose, with_memory_alone, with_speed
from sheetgen.recommend.grid import TABLES, Grid
from sheetgen.recommend.solution import Choice, Columns, Offer, Profile, Solution
from sheetgen.scenario.deployment import SPEED_DEFINITIONS, band_columns, model_columns, speed_columns
from sheetgen.scenario.overrides import limits_of
from sheetgen.scenario.question import MAX_PIPELINE_PARALLEL_SIZE, Question, SheetModel
from sheetgen.sizing import kv_cache, memory, parallelism
from sheetgen.sizing.speed import untouched_fraction
from sheetgen.units import DTYPES, TENSOR_PARALLEL_SIZES

NO_BATCH_LIMIT = 1e9  # requests: more than any memory holds
STRIDE = 64  # requests; 64 strides of it are more than any engine runs in a batch
MILLISECONDS_PER_SECOND = 1000
NO_LIMIT_SECONDS = 100_000  # a target that is off


def solve(question: Question) -> Solution:
    """Work out every load of `question` on every candidate, and choose."""
    solved = tables(question)
    choices = with_speed(solved, tuple(choose(solved)))
    if question.settings.speed_targets:
        alone = solved.grid.along("chosen", {})
        alone.put((), {"batch_limit": NO_BATCH_LIMIT})
        choices = with_memory_alone(choices, replace(solved, grid=_held(alone)))
    _cell_kv(solved, choices)
    return replace(solved, choices=choices)


def tables(question: Question) -> Solution:
    """Every load on every candidate, of which none is chosen yet: for who chooses among them otherwise."""
    gpu_index = {gpu.id: i for i, gpu in enumerate(question.gpus)}
    profiles = tuple(Profile(g, t) for g in range(len(question.gpus)) for t in TENSOR_PARALLEL_SIZES)
    profile_index = {(p.gpu, p.tensor_parallel_size): i for i, p in enumerate(profiles)}
    offers = tuple(
        Offer(c, profile_index[gpu_index[one.gpu.id], t])
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
    grid.put(("offer",), {
        "gpu_count": numpy.array([c.gpu_count for c in candidates], float),
        "listed_usd_per_hour": numpy.array([c.usd_per_hour for c in candidates], float),
    })  # fmt: skip
    for name in ("models", "shards", "profiles", "pools"):
        _work_out(grid, name)
    _put_paces(grid, [w for _, w in paces])
    _work_out(grid, "steps", _batches(grid))
    for name in ("cells", "offers"):
        _work_out(grid, name)
    return Solution(question, profiles, offers, _held(grid), ())


def _work_out(grid: Grid, table: str, also: Columns | None = None) -> None:
    axes, formulas = TABLES[table]
    grid.evaluate(formulas, axes, also)


def _held(grid: Grid) -> Grid:
    """The grid with what a replica of each profile holds of the loads, and what they cost, within its batch limits."""
    _work_out(grid, "sequences")
    _work_out(grid, "costs")
    return grid


def _put_facts(grid: Grid, question: Question) -> None:
    """Settings, constants and what was typed; what models, GPUs and both together contribute; the loads."""
    inputs = _inputs(question)
    grid.put((), inputs)
    models = question.models
    rows = [_model_columns(m, question) for m in models]
    grid.put(("model",), {k: numpy.array([r[k] for r in rows], float) for k in rows[0]})
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
    loads = question.loads
    contexts = numpy.array([c.context_tokens for c in loads], float)
    grid.put(("load",), {
        "context_tokens": contexts,
        "max_model_len": contexts,
        "input_tokens": numpy.array([c.input_tokens for c in loads], float),
        "concurrent_requests": numpy.array([c.concurrent_requests for c in loads], float),
    })  # fmt: skip


def _inputs(question: Question) -> Columns:
    """What holds for the whole sheet: settings, constants and what was typed, by name."""
    settings, speed = question.settings, question.speed
    inputs: Columns = {
        **question.engine.columns(),
        **{k: float(v) for k, v in vars(settings).items() if isinstance(v, (int, float))},
        "max_pipeline_parallel_size": MAX_PIPELINE_PARALLEL_SIZE,
        "max_tensor_parallel_size": TENSOR_PARALLEL_SIZES[-1],
        **cost.CONSTANTS,
        "is_committed": settings.is_committed,
        "nvlink_gpus": float(speed.nvlink_gpus),
        "all_reduce_growth": speed.all_reduce_growth,
        **{name: float(value) for name, value in SPEED_DEFINITIONS.items()},
        "data_parallel_size": 1.0,
        "requests_per_stride": float(STRIDE),
        "milliseconds_per_second": float(MILLISECONDS_PER_SECOND),
        "no_limit_seconds": float(NO_LIMIT_SECONDS),
    }
    return inputs | {name: float(value) for name, value in question.overrides.inputs.items() if name in inputs}


def _model_columns(model: SheetModel, question: Question) -> Columns:
    """The numbers of a model at its precisions, whose bytes may have been typed over."""
    columns, typed = model_columns(model.model, model.weight_dtype, model.kv_cache_dtype), question.overrides.precisions
    of_weights, of_kv = (typed.get(d, {}) for d in (model.weight_dtype, model.kv_cache_dtype))
    columns |= {name: v for name, v in of_weights.items() if not name.startswith("kv_")}
    return columns | {name: v for name, v in of_kv.items() if name.startswith("kv_")}


def gpu_columns(question: Question) -> Columns:
    """What an engine makes of each GPU: memory, limits of a batch, error bands, speed."""
    gpus, engine, speed = question.gpus, question.engine, question.speed
    limits = [limits_of(engine, g) for g in gpus]
    by_dtype = {d: [speed_columns(speed, engine, g, d) for g in gpus] for d in DTYPES}
    columns: dict[str, list[Any]] = {
        "gpu_memory_bytes": [g.memory.engine_bytes for g in gpus],
        "max_num_seqs": [seqs for seqs, _ in limits],
        "max_num_batched_tokens": [batched for _, batched in limits],
        "pool_error_bytes_measured": [_pool_error(question, engine.band_scope(g.id)) for g in gpus],
        "pool_error_bytes_elsewhere": [_pool_error(question, "other")] * len(gpus),
        **{k: [row[k] for row in by_dtype["bf16"]] for k in by_dtype["bf16"][0] if k != "peak_flops"},
        **{f"peak_flops_{d}": [row["peak_flops"] for row in rows] for d, rows in by_dtype.items()},
        "speed_is_fitted": [speed.scope(engine.engine, g) == "fitted" for g in gpus],
        "is_older_gpu": [engine.is_older(g.architecture) for g in gpus],
    }
    for g, gpu in enumerate(gpus):
        for name, value in question.overrides.gpus.get(gpu.id, {}).items():
            if name in columns:
                columns[name][g] = value
    return {name: numpy.array(column, float) for name, column in columns.items()}


def _pool_error(question: Question, scope: str) -> float:
    """The low end of the pool's error band; without a band the prediction is taken at its word."""
    return float(numpy.nan_to_num(band_columns(question.engine, scope)["kv_pool_error_bytes_low"]))


def _put_paces(grid: Grid, workloads: list[Any]) -> None:
    """By model and workload its prompt, answer and targets."""
    columns: Columns = {
        "input_tokens": numpy.array([w.input_tokens for w in workloads], float),
        "output_tokens": numpy.array([w.output_tokens for w in workloads], float),
    }
    for figure in ("tpot", "ttft"):
        target = numpy.array([getattr(w, f"{figure}_target_ms") or 0 for w in workloads], float)
        columns[f"{figure}_target_ms"] = target
        grid.put(("pace",), {**columns, "target_ms": target})
        found = grid.evaluate(((f"{figure}_limit_seconds", parallelism.limit_seconds),), ("pace",))
        columns |= found


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
    whole.put(("chosen",), {"max_num_batched_tokens": numpy.array(of_gpu, float)})
    found = whole.evaluate(CHARGE, ("chosen",))
    found |= {f"unsharded_{n}": whole.read(n, ("chosen",)) for n in ("kv_blocks_per_sequence", "kv_block_bytes")}
    whole.put(("chosen",), found)
    found |= whole.evaluate((kv_cache.kv_bytes_per_sequence, memory.kv_bytes), ("chosen",))
    solved.grid.put(("load",), found)
