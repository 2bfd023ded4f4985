"""The KV pool of a start-up log, worked out with the parts that the log itself states in place of predicted ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sheetgen.api import Sized
from sheetgen.catalog.engines import release_of
from sheetgen.startup.startup_log import Figure, Measured
from sheetgen.units import GIB

OF_POOL = ("kv_pool_bytes_per_gpu", "kv_tokens", "max_concurrency")
SAME_MEMORY = 0.001  # a share of a GPU's memory that only the log's two decimals may lack
MOST_MEMORY_OFF = 0.2  # a GPU whose memory is further off than this share is another one
GRAPHS_IN_PEAK_SINCE = (0, 26, 0)  # of vLLM: the printed peak of activations holds the estimate of the graphs

# A part in words, as predicted, and as stated.
Part = tuple[str, float, float]


def pool_of_parts(
    sized: Sized, answer: Mapping[str, Any], measured: Measured, figures: Mapping[str, Mapping[str, Figure]]
) -> tuple[int, tuple[str, ...]]:
    """The pool of one GPU in bytes with the parts that the log states, and these in words: none where the log states
    none of them, or the pool is set outright."""
    if answer["kv_cache_memory_bytes"]:
        return 0, ()
    known = {name: float(column[0]) for name, column in sized.known.items() if _is_number(column)}
    seen = {name: figure.value for name, figure in measured.figures.items()}
    estimates = [figure.value for figure in figures.get("cuda_graph_estimate_bytes_per_gpu", {}).values()]
    if estimates:
        seen["estimate"] = max(estimates)
    engine = sized.points.names[0].engine
    release = release_of(engine.default_version)
    has_graphs_inside = engine.engine == "vllm" and (release is None or release >= GRAPHS_IN_PEAK_SINCE)
    parts = list(_parts(known, seen, has_graphs_inside=has_graphs_inside))
    paid = answer["gpu_memory_utilization"] if engine.fraction_of_free else 1.0
    pool = known["kv_budget_bytes_per_gpu"] + paid * sum(predicted - stated for _, predicted, stated in parts)
    total = seen.get("gpu_memory_bytes", answer["gpu_memory_bytes"])
    off = abs(total / answer["gpu_memory_bytes"] - 1)
    if off <= MOST_MEMORY_OFF:
        pool += (total - answer["gpu_memory_bytes"]) * answer["gpu_memory_utilization"]
        parts += [("memory of the GPU", answer["gpu_memory_bytes"], total)] if off > SAME_MEMORY else []
    return round(pool), tuple(f"{words} {stated / GIB:,.2f} GiB" for words, _, stated in parts)


def _is_number(column: Any) -> bool:
    return getattr(column, "ndim", 0) == 1 and column.dtype.kind in "fiub"


def _parts(known: Mapping[str, float], seen: Mapping[str, float], *, has_graphs_inside: bool) -> Iterator[Part]:
    """The parts of the budget that the log states."""
    weights, apart = known["loaded_weights_bytes_per_gpu"], known["non_torch_bytes_per_gpu"]
    if "consumed_bytes_per_gpu" in seen:
        yield "weights and memory outside torch", weights + apart, seen["consumed_bytes_per_gpu"]
    else:
        for words, predicted, name in (
            ("weights", weights, "weights_bytes_per_gpu"),
            ("memory outside torch", apart, "non_torch_bytes_per_gpu"),
        ):
            if name in seen:
                yield words, predicted, seen[name]
    reserved = known["graphs_reserved"] * known["cuda_graph_bytes_per_gpu"]
    peak = seen.get("activation_bytes_per_gpu") if known["activations_in_budget"] else None
    if peak is not None and has_graphs_inside:
        yield "activations and graphs", known["activation_bytes_per_gpu"] + reserved, peak
        return
    if peak is not None:
        yield "activations", known["activation_bytes_per_gpu"], peak
    if known["graphs_reserved"] and "estimate" in seen:
        yield "graphs", reserved, seen["estimate"]
