"""Work out every cell on every candidate: pools, charges, sequences, instances, money."""

from __future__ import annotations

from dataclasses import replace

import numpy

from sheetgen import cost
from sheetgen.estimate import CHARGE, MODEL, PEAK, SHARD, evaluate
from sheetgen.recommend.choose import choose, with_memory_alone
from sheetgen.recommend.latency import solve_paces, speed_inputs, speed_of_gpus, with_paces
from sheetgen.recommend.solution import Choice, Columns, Offer, Profile, Solution
from sheetgen.scenario.deployment import band_columns, engine_columns, model_columns
from sheetgen.scenario.overridden import limits_of
from sheetgen.scenario.overrides import Overrides
from sheetgen.scenario.question import MAX_PIPELINE_PARALLEL_SIZE, Question, SheetModel
from sheetgen.sizing import admission, memory, parallelism, weights
from sheetgen.units import TENSOR_PARALLEL_SIZES

# What one replica on a profile takes and holds of a load, and how many replicas the load needs.
LOAD = (
    admission.charge_bytes,
    parallelism.layers_that_fit,
    parallelism.pipeline_stages,
    parallelism.sequences,
    parallelism.sure_sequences,
    parallelism.shared_replicas,
    parallelism.staged_instances,
)
POOL = (
    memory.overhead_bytes_per_gpu,
    memory.stage_overhead_bytes,
    memory.memory_budget_bytes,
    memory.kv_budget_bytes_per_gpu,
    parallelism.layer_budget_bytes,
)


_WEIGHTS = ("copied_kv_weights_bytes", "tensor_rounding_bytes", "layer_bytes_per_gpu", "paid_layer_bytes")


NO_BATCH_LIMIT = 1e9  # requests: more than any memory holds


def solve(question: Question) -> Solution:
    """Work out every cell of `question` on every candidate, and choose."""
    solved = tables(question)
    choices = with_paces(solved, tuple(choose(solved)))
    if question.settings.speed_targets:
        unpaced = {"batch_limit": numpy.full_like(solved.steps["batch_limit"], NO_BATCH_LIMIT)}
        choices = with_memory_alone(choices, _held(solved, _inputs(question), unpaced)[2])
    return replace(solved, choices=choices, cells=_cell_kv(solved, choices))


def tables(question: Question) -> Solution:
    """Every cell on every candidate, of which none is chosen yet: for who chooses among them otherwise."""
    gpu_index = {gpu.id: i for i, gpu in enumerate(question.gpus)}
    profiles = tuple(Profile(g, t) for g in range(len(question.gpus)) for t in TENSOR_PARALLEL_SIZES)
    profile_index = {(p.gpu, p.tensor_parallel_size): i for i, p in enumerate(profiles)}
    offers = tuple(
        Offer(c, profile_index[gpu_index[one.gpu.id], t])
        for c, one in enumerate(question.candidates)
        for t in TENSOR_PARALLEL_SIZES
        if t <= one.gpu_count
    )
    inputs = _inputs(question)
    rows = [_model_columns(m, question.overrides) for m in question.models]
    models = evaluate(MODEL, {**inputs, **{k: numpy.array([r[k] for r in rows], float) for k in rows[0]}})
    gpus = gpu_columns(question)
    shards = evaluate(
        SHARD,
        {**inputs, **_down(models), "tensor_parallel_size": numpy.array([TENSOR_PARALLEL_SIZES], float)},
    )
    pools = _pools(question, profiles, inputs, models, shards, gpus)
    every = numpy.arange(len(question.models))
    position = numpy.array([TENSOR_PARALLEL_SIZES.index(p.tensor_parallel_size) for p in profiles])
    latency, steps = solve_paces(question, profiles, inputs, models, _shard(shards, every, position), gpus)
    found = Solution(question, profiles, offers, models, shards, gpus, {}, pools, {}, {}, latency, steps, ())
    cells, sequences, costs = _held(found, inputs, steps)
    return replace(found, cells=cells, sequences=sequences, costs=costs)


def _held(solved: Solution, inputs: Columns, steps: Columns) -> tuple[Columns, Columns, Columns]:
    """Cells, what a replica of each profile holds of them, and what they cost, with the batch limits of `steps`."""
    of = solved.question, solved.profiles
    cells, sequences = _sequences(*of, inputs, solved.models, solved.shards, solved.gpus, solved.pools, steps)
    return cells, sequences, _costs(*of, solved.offers, inputs, solved.models, cells, sequences)


def _inputs(question: Question) -> Columns:
    """Settings, constants and what was typed, by name."""
    settings = question.settings
    inputs: Columns = {
        **engine_columns(question.engine),
        **{k: float(v) for k, v in vars(settings).items() if isinstance(v, (int, float))},
        "max_pipeline_parallel_size": MAX_PIPELINE_PARALLEL_SIZE,
        "max_tensor_parallel_size": TENSOR_PARALLEL_SIZES[-1],
        **cost.CONSTANTS,
        "is_committed": settings.is_committed,
        **speed_inputs(question),
    }
    return inputs | {name: float(value) for name, value in question.overrides.inputs.items() if name in inputs}


def _down(columns: Columns) -> Columns:
    """One-dimensional columns as rows of a matrix."""
    return {k: v[:, None] if getattr(v, "ndim", 0) == 1 else v for k, v in columns.items()}


def _model_columns(model: SheetModel, overrides: Overrides) -> Columns:
    """The numbers of a model at its precisions, whose bytes may have been typed over."""
    columns = model_columns(model.model, model.weight_dtype, model.kv_cache_dtype)
    if overrides.precisions:
        of_weights, of_kv = (overrides.precisions.get(d, {}) for d in (model.weight_dtype, model.kv_cache_dtype))
        columns |= {name: v for name, v in of_weights.items() if not name.startswith("kv_")}
        columns |= {name: v for name, v in of_kv.items() if name.startswith("kv_")}
    return columns


def gpu_columns(question: Question) -> Columns:
    """What an engine makes of each GPU: memory, limits of a batch, error bands, speed."""
    limits = [limits_of(question.engine, g) for g in question.gpus]
    older = [question.engine.is_older(g.architecture) for g in question.gpus]
    columns: Columns = {
        "gpu_memory_bytes": numpy.array([g.memory.engine_bytes for g in question.gpus], float),
        "max_num_seqs": numpy.array([seqs for seqs, _ in limits], float),
        "max_num_batched_tokens": numpy.array([batched for _, batched in limits], float),
        "pool_error_bytes_measured": _pool_errors(question, [question.engine.band_scope(g.id) for g in question.gpus]),
        "pool_error_bytes_elsewhere": _pool_errors(question, ["other"] * len(question.gpus)),
        **speed_of_gpus(question),
        "is_older_gpu": numpy.array(older, float),
    }
    for g, gpu in enumerate(question.gpus):
        for name, value in question.overrides.gpus.get(gpu.id, {}).items():
            if name in columns:
                columns[name][g] = value
    return columns


def _pool_errors(question: Question, scopes: list[str]) -> numpy.ndarray:
    """The low end of the pool's error band per GPU; without a band the prediction is taken at its word."""
    ends = [band_columns(question.engine, scope)["kv_pool_error_bytes_low"] for scope in scopes]
    return numpy.asarray(numpy.nan_to_num(numpy.array(ends, float)))


def _pools(
    question: Question,
    profiles: tuple[Profile, ...],
    inputs: Columns,
    models: Columns,
    shards: Columns,
    gpus: Columns,
) -> Columns:
    """What each model leaves on each profile: weights, activations, budget for the cache, and whether it runs."""
    gpu = numpy.array([p.gpu for p in profiles])
    size = numpy.array([p.tensor_parallel_size for p in profiles], float)
    position = numpy.array([TENSOR_PARALLEL_SIZES.index(p.tensor_parallel_size) for p in profiles])
    values = {**inputs, **_down(models), **{k: v[gpu][None, :] for k, v in gpus.items()}}
    values["tensor_parallel_size"] = size[None, :]
    values["kv_pool_error_bytes_low"] = parallelism.pool_error_bytes.of(values)
    older = gpus["is_older_gpu"][gpu]
    names = [f"{'older_' if o else ''}non_torch_bytes_tp{int(t)}" for o, t in zip(older, size, strict=True)]
    values["non_torch_bytes_per_gpu"] = numpy.array([inputs[name] for name in names])[None, :]
    values["non_torch_bytes_per_tp"] = values["non_torch_bytes_per_gpu"]
    values["staged_non_torch_bytes_per_gpu"] = memory.staged_non_torch_bytes_per_gpu.of(values)
    values |= {name: row[:, position] for name, row in shards.items() if name in _WEIGHTS}
    values = evaluate(PEAK, values)
    values["activation_bytes_per_gpu"] = values["profile_peak_bytes"]  # pools are those without pipeline stages
    values["weights_bytes_per_gpu"] = weights.rank_weights_bytes.of(values)
    values["loaded_weights_bytes_per_gpu"] = values["weights_bytes_per_gpu"]  # no draft model on a sheet
    pools = evaluate(POOL, values)
    of_gpu = [question.gpus[p.gpu] for p in profiles]
    pools["runs_weights"] = numpy.array([[m.weight_dtype in g.weights_run for g in of_gpu] for m in question.models])
    pools["runs_kv"] = numpy.array([[m.kv_cache_dtype in g.kv_run for g in of_gpu] for m in question.models])
    return evaluate((parallelism.runs,), pools)


def _sequences(
    question: Question,
    profiles: tuple[Profile, ...],
    inputs: Columns,
    models: Columns,
    shards: Columns,
    gpus: Columns,
    pools: Columns,
    steps: Columns,
) -> tuple[Columns, Columns]:
    """Per cell its load, and per cell and profile the charge, the pipeline stages and the sequences held."""
    of_model = numpy.array([c.model for c in question.loads])
    cells = {
        **inputs,
        **{k: v[of_model] for k, v in models.items() if getattr(v, "ndim", 0) == 1},
        "context_tokens": numpy.array([c.context_tokens for c in question.loads], float),
        "max_model_len": numpy.array([c.context_tokens for c in question.loads], float),
        "input_tokens": numpy.array([c.input_tokens for c in question.loads], float),
        "concurrent_requests": numpy.array([c.concurrent_requests for c in question.loads], float),
    }
    cells = evaluate(
        (admission.charged_tokens, parallelism.load_requests, parallelism.users, parallelism.within_limit),
        cells,
    )
    gpu = numpy.array([p.gpu for p in profiles])
    position = numpy.array([TENSOR_PARALLEL_SIZES.index(p.tensor_parallel_size) for p in profiles])
    wide = {**_down(cells), **_shard(shards, of_model, position)}
    wide |= {k: v[gpu][None, :] for k, v in gpus.items()}
    full = numpy.ones((len(question.models), len(profiles)))
    for name in (
        "kv_budget_bytes_per_gpu",
        "layer_budget_bytes",
        "paid_layer_bytes",
        "runs",
        "kv_pool_error_bytes_low",
    ):
        wide[name] = (pools[name] * full)[of_model]
    wide["batch_limit"] = steps["batch_limit"][numpy.array([question.pace(c) for c in question.loads])]
    return cells, evaluate(LOAD, wide)


def _cell_kv(solved: Solution, choices: tuple[Choice, ...]) -> Columns:
    """The cells with their own KV bill, before division over GPUs.

    A window's charge depends on the batch in flight: the one of the recommended GPU, else the largest.
    """
    default = solved.gpus["max_num_batched_tokens"]
    batched = [
        default.max() if c.offer is None else default[solved.profiles[solved.offers[c.offer].profile].gpu]
        for c in choices
    ]
    of_model = numpy.array([c.model for c in solved.question.loads])
    whole = {k: v[:, 0] for k, v in _shard(solved.shards, of_model, numpy.zeros(1, int)).items()}
    values = {**solved.cells, **whole, "max_num_batched_tokens": numpy.array(batched, float)}
    values = evaluate(CHARGE, values)
    values["unsharded_kv_blocks_per_sequence"] = values["kv_blocks_per_sequence"]
    values["unsharded_kv_block_bytes"] = values["kv_block_bytes"]
    return evaluate((admission.kv_bytes_per_sequence, memory.kv_bytes), values)


def _shard(shards: Columns, of_model: numpy.ndarray, position: numpy.ndarray) -> Columns:
    """The shards of each cell's model at each profile's tensor-parallel size."""
    names = {f.name for f in SHARD}
    full = numpy.ones((1, len(TENSOR_PARALLEL_SIZES)))
    return {k: (v * full)[of_model][:, position] for k, v in shards.items() if k in names}


def _costs(
    question: Question,
    profiles: tuple[Profile, ...],
    offers: tuple[Offer, ...],
    inputs: Columns,
    models: Columns,
    cells: Columns,
    sequences: Columns,
) -> Columns:
    """Per cell and slot: replicas, whole instances, $ an hour and a month; NaN where it cannot hold the load."""
    of_model = numpy.array([c.model for c in question.loads])
    profile = numpy.array([s.profile for s in offers])
    candidates = [question.candidates[s.candidate] for s in offers]
    values = {
        **inputs,
        **{name: models[name][of_model][:, None] for name in ("n_heads", "full_kv_heads", "windowed_kv_heads")},
        "load_requests": cells["load_requests"][:, None],
        **{f.name: sequences[f.name][:, profile] for f in LOAD},
        "batch_limit": sequences["batch_limit"][:, profile],
        "tensor_parallel_size": numpy.array([profiles[p].tensor_parallel_size for p in profile], float)[None, :],
        "gpu_count": numpy.array([c.gpu_count for c in candidates], float)[None, :],
        "listed_usd_per_hour": numpy.array([c.usd_per_hour for c in candidates], float)[None, :],
    }
    values["price_usd_per_hour"] = cost.discounted_usd_per_hour.of(values)
    return evaluate(
        (
            parallelism.replicas_per_instance,
            parallelism.larger_tensor_parallel_size,
            parallelism.n_replicas,
            cost.n_instances,
            cost.paid_hours_per_month,
            cost.hourly_usd,
            cost.monthly_usd,
        ),
        values,
    )
