"""All formulas on rows of scenarios. The order here is the order in which quantities come about.

A row is a mapping from names to numbers or numpy columns; `evaluate` adds each formula's result under the
formula's own name. Nothing here knows a catalog or a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from sheetgen.program.grid import evaluate
from sheetgen.program.quantities import *  # noqa
from sheetgen.sizing import draft, kv_cache, memory, parallelism, rates, speed
from sheetgen.units import TENSOR_PARALLEL_SIZES


def point(values: Mapping[str, Any]) -> dict[str, Any]:
    """Every quantity of one deployment: model, GPU, engine, parallel sizes and requests are in `values`.

    Columns (numpy arrays of one length) work as well as numbers. Two quantities need a second reading of
    the same formulas: what a sequence takes of one unsharded rank, and the charge at max_model_len.
    """
    alone = _with_draft({**values, "tensor_parallel_size": 1 + 0 * values["tensor_parallel_size"]})
    whole = evaluate((*TOKENS, *MODEL, *SHARD, *CHARGE), alone)
    known = evaluate((*TOKENS, *MODEL, *SHARD, *CHARGE, *POOL), _with_draft(values))
    known |= {name: whole[name] for name in ("kv_bytes_per_token", "state_bytes_per_sequence")}
    longest = evaluate(CHARGE, known | all_of(known["max_model_len"]))
    unsharded = ("kv_blocks_per_sequence", "kv_blocks_per_sequence_steady", "kv_block_bytes")
    known |= {f"unsharded_{name}": whole[name] for name in unsharded}
    known["full_kv_blocks_per_sequence"] = longest["kv_blocks_per_sequence"]
    known = evaluate(FIT, known)
    known |= _band_ends(known)
    known["max_context_tokens_that_fit"] = _longest_context(known)
    with_draft = known | {name: values[name] for name in draft.ADDED_TO}
    known["min_gpus"], known["min_gpus_tensor_parallel_size"] = _fewest_gpus(with_draft)
    return known | _speed(known)


def requests_at_rate(values: Mapping[str, Any]) -> Any:
    """The fewest requests at once that are answered as fast as they arrive; where none are, as many as memory holds
    at their full length, or one.

    values: as `point` reads them, with requests_per_second, whatever their requests at once.
    """
    alone = {"concurrent_requests": 1 + 0 * values["concurrent_requests"], "requests_per_rank": 1}
    known = point({**values, **alone})
    high = numpy.maximum(1, numpy.asarray(known["running_capacity"], float))
    full, low = known["sequences_per_replica"], numpy.ones_like(high)
    while (low < high).any():
        middle = numpy.floor((low + high) / 2)
        at = evaluate(OF_RUNNING, {**known, "running_requests": middle, "concurrent_requests": middle})
        keeps_up = rates.in_flight_at_peak.of(at) <= middle
        low, high = numpy.where(keeps_up, low, numpy.minimum(middle + 1, high)), numpy.where(keeps_up, middle, high)
    at = evaluate(OF_RUNNING, {**known, "running_requests": high, "concurrent_requests": high})
    return numpy.where(rates.in_flight_at_peak.of(at) <= high, high, numpy.maximum(1, full))


def _speed(known: Mapping[str, Any]) -> dict[str, Any]:
    """Every quantity of speed; a draft model's gain and cost in time are not counted."""
    known = {**known, "filled_tokens": speed.filled_tokens.of(known)}
    filled = evaluate(CHARGE, known | all_of(known["filled_tokens"]))
    known |= {f"filled_{n}": filled[n] for n in ("kv_blocks_per_sequence", "kv_blocks_per_sequence_steady")}
    known = evaluate(SPEED, known)
    full = {**known, "running_requests": speed.full_house.of(known)}
    known["max_requests_per_second"] = evaluate(OF_RUNNING, full)["max_requests_per_second"]
    known["grows"] = speed.grows.of(known)
    for figure in ("tpot", "ttft", "output_tokens_per_second"):
        name = figure if figure in known else f"{figure}_seconds"
        for end in ("low", "high"):
            band = {"predicted": known[name], "band_factor": known[f"{figure}_band_{end}"]}
            known[f"{name}_{end}"] = speed.at_speed_band.of(band)
    known["output_tokens_per_second_per_gpu"] = known["output_tokens_per_second"] / (
        known["tensor_parallel_size"] * known["pipeline_parallel_size"] * known["data_parallel_size"]
    )
    return known


def _with_draft(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with the draft model's layers and cache counted among the layers that grow."""
    return {
        **values,
        "other_bytes_per_token": draft.other_bytes_beside_draft.of(values),
        "n_other_layers": draft.layers_beside_draft.of(values),
        "draft_layers": 0,
    }


def _band_ends(known: Mapping[str, Any]) -> dict[str, Any]:
    """Both ends of the 80 % error band of every predicted figure; NaN where no band is known."""
    ends: dict[str, Any] = {}
    for end in ("low", "high"):
        weight = known["weights_bytes_per_gpu"]
        for figure, error in (
            ("weights_bytes_per_gpu", weight * known[f"weights_error_share_{end}"]),
            ("activation_bytes_per_gpu", known[f"activation_error_bytes_{end}"]),
            ("non_torch_bytes_per_gpu", known[f"non_torch_error_bytes_{end}"]),
        ):
            ends[f"{figure}_{end}"] = memory.at_band_end.of({"predicted_bytes": known[figure], "error_bytes": error})
        budget = known["kv_budget_bytes_per_gpu"]
        error = memory.pool_error_as_set(
            known[f"kv_pool_error_bytes_{end}"], known["kv_cache_memory_bytes"], known["set_pool_is_limit"]
        )
        pool = memory.at_band_end.of({"predicted_bytes": budget, "error_bytes": error})
        trial = evaluate(
            (memory.n_kv_blocks, memory.max_concurrency, memory.kv_tokens), {**known, "kv_pool_bytes_per_gpu": pool}
        )
        ends[f"kv_pool_bytes_per_gpu_{end}"] = pool
        ends |= {f"{name}_{end}": trial[name] for name in ("kv_tokens", "max_concurrency")}
    return ends


def _longest_context(known: Mapping[str, Any]) -> Any:
    """The longest context at which all requests still fit, by bisection on the charge itself."""
    budget = known["kv_budget_bytes_per_gpu"]
    low = numpy.zeros_like(budget, float)
    high = known["max_context_tokens"] + low
    while (low < high).any():
        middle = numpy.ceil((low + high) / 2)
        prompt = numpy.maximum(middle - known["output_tokens"], 0)
        asked = {**known, "context_tokens": middle, "max_model_len": middle, "input_tokens": prompt}
        trial = evaluate((*TOKENS, *CHARGE, *NEEDED), asked)
        fits = trial["kv_needed_bytes_per_gpu"] <= budget
        low, high = numpy.where(fits, middle, low), numpy.where(fits, high, numpy.maximum(middle - 1, low))
    return low


def _fewest_gpus(known: Mapping[str, Any]) -> tuple[Any, Any]:
    """Fewest GPUs of this kind in one replica that hold weights and cache of all requests, and their tensor-parallel
    size, of several the largest; NaN if none do. What a draft adds is not in `known` yet: it follows the size that is
    tried."""
    best = numpy.full_like(known["kv_budget_bytes_per_gpu"], numpy.nan, float)
    best_size = best
    for size in TENSOR_PARALLEL_SIZES:
        # One rank of TP `size` without stages; pipeline_stages then says how many stages it takes.
        trial = _with_draft({**known, "tensor_parallel_size": size, "pipeline_parallel_size": 1})
        trial["non_torch_bytes_per_tp"] = memory.non_torch_bytes_per_tp.of(trial)
        staged = (memory.stage_overhead_bytes, *draft.beside((parallelism.layer_budget_bytes,)))
        trial = evaluate((*SHARD, *CHARGE, *POOL, *staged), trial)
        trial["runs"] = parallelism.heads_divide.of(trial)
        each = (trial[n] * trial["kv_block_bytes"] for n in ("kv_blocks_per_sequence", "kv_blocks_per_sequence_steady"))
        trial["charge_bytes"] = kv_cache.pool_for(known["requests_per_rank"], *each)
        trial["max_pipeline_parallel_size"] = 64
        trial["within_limit"] = 1
        trial = evaluate((parallelism.layers_that_fit, parallelism.pipeline_stages), trial)
        stages = trial["pipeline_stages"]
        gpus = numpy.where(stages > 0, stages * size, numpy.nan) * known["data_parallel_size"]
        best_size = numpy.where((gpus <= best) | numpy.isnan(best) & (stages > 0), size, best_size)
        best = numpy.fmin(best, gpus)
    return best, best_size
