"""The program of single deployments: the formulas of a sheet over one axis, a row for each deployment.

What rows have in common stands once: facts of the names that a row gives (model, GPU, engine, precisions) on `names`,
numbers that many rows share on `group`.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy

from sheetgen.program import quantities
from sheetgen.program.declared import Again, Axis, Named, Program, Table, same_as
from sheetgen.program.grid import Column, Grid
from sheetgen.sizing import draft, kv_cache, memory, parallelism, rates, speed, verdicts
from sheetgen.units import ENDS, TENSOR_PARALLEL_SIZES

AXES = (Axis("names"), Axis("group", on=("names",)), Axis("row", on=("group",)))
ROW, TRIED = ("row",), ("tried", "row")
MEMORY_ERRORS = ("weights_error_share", "activation_error_bytes", "non_torch_error_bytes", "kv_pool_error_bytes")
MEASURED_POOL = ("measured_pool_more_bytes", "measured_pool_less_bytes")
MOST_STAGES = 64  # of pipelines that are tried for the fewest GPUs
MOST_TRIED, TRIED_AT_ONCE = 63, 4096  # contexts of a row, and of all


def _row(name: str, *formulas: Named) -> Table:
    return Table(name, ROW, formulas)


def _memory_ends() -> list[Named]:
    """Both ends of the 80 % error band of each predicted part of memory; none where no band is known."""
    ends: list[Named] = []
    for end in ENDS:
        ends += [
            (
                f"weights_error_bytes_{end}",
                memory.weights_error_bytes.reading(weights_error_share=f"weights_error_share_{end}"),
            ),
            (
                f"set_pool_error_bytes_{end}",
                memory.set_pool_error_bytes.reading(kv_pool_error_bytes=f"kv_pool_error_bytes_{end}"),
            ),
        ]
        for name, predicted, error in (
            ("weights_bytes_per_gpu", "weights_bytes_per_gpu", f"weights_error_bytes_{end}"),
            ("activation_bytes_per_gpu", "activation_bytes_per_gpu", f"activation_error_bytes_{end}"),
            ("non_torch_bytes_per_gpu", "non_torch_bytes_per_gpu", f"non_torch_error_bytes_{end}"),
            ("kv_pool_bytes_per_gpu", "kv_budget_bytes_per_gpu", f"set_pool_error_bytes_{end}"),
        ):
            ends.append((f"{name}_{end}", memory.at_band_end.reading(predicted_bytes=predicted, error_bytes=error)))
    return ends


def _errors() -> list[Named]:
    """The errors of memory in the scope of a row: of the runs that set the constants, or of all others."""
    return [
        (name, memory.error_in_scope.reading(error_here=f"{name}_here", error_elsewhere=f"{name}_elsewhere"))
        for name in (f"{error}_{end}" for error in MEMORY_ERRORS for end in ENDS)
    ]


def _unless_off() -> list[Named]:
    """The memory that the engine does not use where a setting switches its cause off."""
    graphs = dict.fromkeys(
        (
            "cuda_graph_base_bytes",
            "cuda_graph_layer_bytes",
            "heavier_cuda_graph_layer_bytes",
            "apart_cuda_graph_layer_bytes",
            "cold_start_embeddings",
        ),
        "enforce_eager",
    )
    images = dict.fromkeys(("encoder_item_tokens", "encoder_item_patches"), "skip_mm_profiling")
    return [
        (name, memory.unless_off.reading(amount=name, is_off=setting)) for name, setting in (graphs | images).items()
    ]


def _blocks(end: str) -> Again:
    """Requests and tokens that the pool holds if it comes out at one end of its band."""
    kept = {f"{name}_{end}": name for name in ("kv_tokens", "max_concurrency")}
    return Again(f"blocks_{end}", {"kv_pool_bytes_per_gpu": f"kv_pool_bytes_per_gpu_{end}"}, ("blocks",), kept)


DEPLOYMENT = Program(
    AXES,
    (
        _row(
            "given",
            memory.requests_per_rank,
            memory.non_torch_bytes_per_tp,
            speed.network_bytes_per_second.reading(least_network_gbps="network_gbps"),
            ("state_blocks", kv_cache.kept_state_blocks),
            ("checkpoint_blocks", kv_cache.kept_checkpoint_blocks),
            *_unless_off(),
            ("seconds_per_layer", speed.layer_seconds_as_run),
            ("is_calibrated", parallelism.is_calibrated),
            *_errors(),
            *quantities.SPEED_BANDS,
        ),
        # Of the model alone: a draft does not change its kind.
        _row("kind", speed.speed_kind),
        # A draft model's layers and cache are counted among the layers that grow.
        _row(
            "without_draft",
            same_as("other_bytes_without_draft", "other_bytes_per_token"),
            same_as("other_layers_without_draft", "n_other_layers"),
        ),
        _row(
            "with_draft",
            (
                "other_bytes_per_token",
                draft.other_bytes_beside_draft.reading(other_bytes_per_token="other_bytes_without_draft"),
            ),
            ("n_other_layers", draft.layers_beside_draft.reading(n_other_layers="other_layers_without_draft")),
        ),
        _row("tokens", *quantities.TOKENS),
        _row("cached", speed.cached_fraction),
        _row("model", *quantities.MODEL),
        _row("shard", *quantities.SHARD),
        _row("charge", *quantities.CHARGE),
        _row("pool", *quantities.POOL),
        # What a sequence takes before any division.
        Again(
            "undivided",
            {"tensor_parallel_size": 1},
            ("with_draft", "model", "shard", "charge"),
            {
                "kv_bytes_per_token": "kv_bytes_per_token",
                "state_bytes_per_sequence": "state_bytes_per_sequence",
                "unsharded_kv_blocks_per_sequence": "kv_blocks_per_sequence",
                "unsharded_kv_blocks_per_sequence_steady": "kv_blocks_per_sequence_steady",
                "unsharded_kv_block_bytes": "kv_block_bytes",
            },
        ),
        Again(
            "longest",
            {"charged_tokens": "max_model_len", "admitted_tokens": "max_model_len"},
            ("charge",),
            {"full_kv_blocks_per_sequence": "kv_blocks_per_sequence"},
        ),
        _row("fit", *quantities.FIT),
        _row("memory_ends", *_memory_ends()),
        *(_blocks(end) for end in ENDS),
        _row("filled_tokens", speed.filled_tokens),
        Again(
            "filled",
            {"charged_tokens": "filled_tokens", "admitted_tokens": "filled_tokens"},
            ("charge",),
            {
                "filled_kv_blocks_per_sequence": "kv_blocks_per_sequence",
                "filled_kv_blocks_per_sequence_steady": "kv_blocks_per_sequence_steady",
            },
        ),
        _row("work", *(formula for formula in quantities.WORK if formula != speed.speed_kind)),
        _row("running", *quantities.RUNNING),
        _row("step", *quantities.STEP),
        _row("pace", *quantities.PACE),
        _row("full_house", speed.full_house),
        Again(
            "full",
            {"running_requests": "full_house"},
            ("of_running",),
            {"max_requests_per_second": "max_requests_per_second"},
        ),
        _row(
            "grows",
            speed.grows,
            speed.waiting_requests,
            *quantities.speed_ends(),
            speed.output_tokens_per_second_per_gpu,
        ),
    ),
    (
        _row("of_running", *quantities.OF_RUNNING),  # what depends on how many requests run
        _row("needed", *quantities.NEEDED),
        _row("blocks", memory.n_kv_blocks, memory.max_concurrency, memory.kv_tokens),
    ),
)


LONGEST, FEWEST = "max_context_tokens_that_fit", ("min_gpus", "min_gpus_tensor_parallel_size")


def evaluate_deployments(grid: Grid, wanted: Collection[str] | None = None, longest: bool = True) -> None:
    """Put quantities of the deployments into their grid, which holds what the rows give: those `wanted` and what they
    depend on, by default all; without the longest context that fits where that is not read."""
    longest = longest and (wanted is None or LONGEST in wanted)
    fewest = wanted is None or any(name in wanted for name in FEWEST)
    if wanted is not None:
        wanted = {*wanted, *(_longest_reads() if longest else ()), *(_fewest_reads() if fewest else ())}
    evaluate_tables(grid, wanted)
    if longest:
        _put_longest_context(grid)
    if fewest:
        _put_fewest_gpus(grid)


def evaluate_tables(grid: Grid, wanted: Collection[str] | None = None) -> None:
    """The same without what is searched for, the longest context and the fewest GPUs, which takes most of the time."""
    tables = DEPLOYMENT.tables if wanted is None else DEPLOYMENT.needed(wanted)[0]
    grid.work_out(*tables, program=DEPLOYMENT)


def requests_at_rate(grid: Grid) -> Column:
    """The fewest requests at once that are answered as fast as they arrive; where no number is, as many as memory holds
    at their full length, or one.

    grid: of rows with requests_per_second, whatever their requests at once.
    """
    lone = grid.again({"concurrent_requests": 1.0})
    evaluate_tables(lone)
    high = numpy.maximum(1, numpy.array(lone.spread("running_capacity", ROW), float))
    full, low = lone.spread("sequences_per_replica", ROW), numpy.ones_like(high)

    def in_flight(requests: Column) -> Column:
        running = lone.again({})
        running.put(ROW, {"running_requests": requests, "concurrent_requests": requests})
        running.work_out(DEPLOYMENT["of_running"])
        running.evaluate((rates.in_flight_at_peak,), ROW)
        return running.spread("in_flight_at_peak", ROW)

    while (low < high).any():
        middle = numpy.floor((low + high) / 2)
        keeps_up = in_flight(middle) <= middle
        low, high = numpy.where(keeps_up, low, numpy.minimum(middle + 1, high)), numpy.where(keeps_up, middle, high)
    return numpy.where(in_flight(high) <= high, high, numpy.maximum(1, full))


_OF_LONGEST = ("kv_budget_bytes_per_gpu", "max_context_tokens", "output_tokens")
_TRIED_CONTEXT = ("context_tokens", "max_model_len", "input_tokens")


def _charge_of_context() -> list[Table]:
    """The tables that tell what the requests take at a context."""
    return [DEPLOYMENT[name] for name in ("tokens", "charge", "needed")]


def _longest_reads() -> set[str]:
    """The quantities on which the longest context that fits depends."""
    return DEPLOYMENT.needed(("kv_needed_bytes_per_gpu",), *_charge_of_context())[1].union(_OF_LONGEST)


def _put_longest_context(grid: Grid) -> None:
    """Put in the longest context at which all requests still fit, found by searching the charge itself: for few rows
    several contexts at a time, as these take little longer than one."""
    tables = _charge_of_context()
    axes = grid.fewest_axes(_longest_reads().difference(_TRIED_CONTEXT), ROW)
    budget, high, answer = (grid.spread(name, axes) for name in _OF_LONGEST)
    low = numpy.zeros_like(high)
    n_tried = max(1, min(MOST_TRIED, TRIED_AT_ONCE // max(1, low.size)))
    shares = (numpy.arange(1, n_tried + 1) / (n_tried + 1)).reshape(-1, *[1] * low.ndim)
    several = grid.along("tried", {}, n_tried)
    while (low < high).any():
        tried = low + numpy.ceil((high - low) * shares)
        trial = several.again({})
        prompt = numpy.maximum(tried - answer, 0)
        trial.put(("tried", *axes), dict(zip(_TRIED_CONTEXT, (tried, tried, prompt), strict=True)))
        trial.work_out(*(table.along({"row": TRIED}) for table in tables))
        fits = trial.spread("kv_needed_bytes_per_gpu", ("tried", *axes)) <= budget
        n_held = numpy.logical_and.accumulate(fits).sum(axis=0)[None]
        low, high = (
            numpy.take_along_axis(numpy.concatenate(ends), n_held, 0)[0]
            for ends in ((low[None], tried), (numpy.maximum(tried - 1, low), high[None]))
        )
    grid.put(axes, {LONGEST: low})


def _fewest_reads() -> set[str]:
    """The quantities on which the fewest GPUs depend."""
    own = (*MEASURED_POOL, "tensor_parallel_size", "pipeline_parallel_size")
    return DEPLOYMENT.needed(("gpus_of_replica",), *_replica_of_any_size())[1].union(own)


def _replica_of_any_size() -> list[Table]:
    """The tables that tell how many GPUs a replica takes at a tensor-parallel size."""
    tables = (_row("without_stages", memory.non_torch_bytes_per_tp), *(DEPLOYMENT[name] for name in _OF_FEWEST))
    return [table.along({"row": TRIED}) for table in (*tables, _row("fewest", *FEWEST_GPUS))]


_OF_FEWEST = ("with_draft", "shard", "charge", "pool")


def _put_fewest_gpus(grid: Grid) -> None:
    """Put in the fewest GPUs of this kind in one replica that hold weights and cache of all requests, and their
    tensor-parallel size, the largest of several; NaN if none do."""
    sizes = numpy.array(TENSOR_PARALLEL_SIZES, float)
    trial = grid.along("tried", {}, len(sizes))
    trial.put(("tried",), {"tried_size": sizes})
    for name in MEASURED_POOL:  # as start-up logs have it at their size without stages, else as predicted
        if numpy.any(grid.read(name, ROW)):
            reads = (name, "tensor_parallel_size", "pipeline_parallel_size", "tried_size")
            trial.combine(name, lambda more, tp, pp, size: numpy.where((tp == size) & (pp == 1), more, 0), reads, TRIED)
    # One rank of each size without stages; pipeline_stages then says how many stages it takes.
    trial.put((), {"pipeline_parallel_size": 1, "max_pipeline_parallel_size": MOST_STAGES, "within_limit": 1})
    trial.put(("tried",), {"tensor_parallel_size": sizes})
    trial.work_out(*_replica_of_any_size())
    axes = tuple(axis for axis in trial.fewest_axes(("gpus_of_replica",), TRIED) if axis != "tried")
    gpus = trial.spread("gpus_of_replica", ("tried", *axes))
    best = numpy.fmin.reduce(gpus)
    best_size = numpy.where(gpus == best, sizes.reshape(-1, *[1] * best.ndim), 0).max(axis=0)
    grid.put(axes, dict(zip(FEWEST, (best, numpy.where(best_size > 0, best_size, numpy.nan)), strict=True)))


FEWEST_GPUS: tuple[Named, ...] = (
    memory.stage_overhead_bytes,
    *draft.beside((parallelism.layer_budget_bytes,)),
    ("runs", parallelism.heads_divide),
    ("charge_bytes", memory.charge_of_rank),
    parallelism.layers_that_fit,
    parallelism.pipeline_stages,
    parallelism.gpus_of_replica,
)


# Whether a deployment fits, and what the sentence that says so reads. `runs_here`: whether the GPU runs its precisions.
VERDICT = _row(
    "verdict",
    verdicts.gpus_per_replica,
    verdicts.fits,
    verdicts.chance,
    verdicts.short_bytes,
    ("short_by_bytes", verdicts.short_by_bytes),
    ("min_gpus", verdicts.fewest_gpus),
    verdicts.sequences_held,
    verdicts.outright_pool_bytes,
    verdicts.limit_bytes,
    verdicts.left_bytes,
)
