"""The KV pool of a start-up log, predicted with the parts of memory that the log itself states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sheetgen.api import Sized
from sheetgen.catalog.base import RawMapping
from sheetgen.catalog.engines import release_of
from sheetgen.program.grid import Column
from sheetgen.startup.startup_log import Figure, Measured
from sheetgen.units import GIB

OF_POOL = ("kv_pool_bytes_per_gpu", "kv_tokens", "max_concurrency")
SAME_MEMORY = 0.001  # relative difference of a GPU's memory that rounding to two decimals explains
MOST_MEMORY_OFF = 0.2  # a GPU with a larger relative difference of memory is another one
GRAPHS_IN_PEAK_SINCE = (0, 26, 0)  # vLLM: since then the printed peak of activations includes the estimated graphs

# A part's words, and its bytes as predicted and as stated.
Part = tuple[str, float, float]


def pool_of_parts(
    sized: Sized, answer: RawMapping, measured: Measured, figures: Mapping[str, Mapping[str, Figure]]
) -> tuple[int, tuple[str, ...]]:
    """The pool of one GPU in bytes, predicted with the parts that the log states, and words on these.

    The words are empty if the log states none of them, or if the pool's size was set.
    """
    if answer["kv_cache_memory_bytes"]:
        return 0, ()
    values = {name: float(column[0]) for name, column in sized.known.items() if _is_number(column)}
    seen = {name: figure.value for name, figure in measured.figures.items()}
    estimates = [figure.value for figure in figures.get("cuda_graph_estimate_bytes_per_gpu", {}).values()]
    if estimates:
        seen["estimate"] = max(estimates)
    engine = sized.points.names[0].engine
    release = release_of(engine.default_version)
    has_graphs_inside = engine.engine == "vllm" and (release is None or release >= GRAPHS_IN_PEAK_SINCE)
    parts = list(_parts(values, seen, has_graphs_inside=has_graphs_inside))
    paid = answer["gpu_memory_utilization"] if engine.fraction_of_free else 1.0
    pool = values["kv_budget_bytes_per_gpu"] + paid * sum(predicted - stated for _, predicted, stated in parts)
    assumed: float = answer["gpu_memory_bytes"]
    total = seen.get("gpu_memory_bytes", assumed)
    off = abs(total / assumed - 1)
    if off <= MOST_MEMORY_OFF:
        pool += (total - assumed) * answer["gpu_memory_utilization"]
        parts += [("memory of the GPU", assumed, total)] if off > SAME_MEMORY else []
    return round(pool), tuple(f"{words} {stated / GIB:,.2f} GiB" for words, _, stated in parts)


def _is_number(column: Column) -> bool:
    return getattr(column, "ndim", 0) == 1 and column.dtype.kind in "fiub"


def _parts(values: Mapping[str, float], seen: Mapping[str, float], *, has_graphs_inside: bool) -> Iterator[Part]:
    """The parts of the budget that the log states: words, predicted and stated bytes."""
    weights, apart = values["loaded_weights_bytes_per_gpu"], values["non_torch_bytes_per_gpu"]
    if "consumed_bytes_per_gpu" in seen:
        yield "weights and memory outside torch", weights + apart, seen["consumed_bytes_per_gpu"]
    else:
        for words, predicted, name in (
            ("weights", weights, "weights_bytes_per_gpu"),
            ("memory outside torch", apart, "non_torch_bytes_per_gpu"),
        ):
            if name in seen:
                yield words, predicted, seen[name]
    reserved = values["graphs_reserved"] * values["cuda_graph_bytes_per_gpu"]
    peak = seen.get("activation_bytes_per_gpu") if values["activations_in_budget"] else None
    if peak is not None and has_graphs_inside:
        yield "activations and graphs", values["activation_bytes_per_gpu"] + reserved, peak
        return
    if peak is not None:
        yield "activations", values["activation_bytes_per_gpu"], peak
    if values["graphs_reserved"] and "estimate" in seen:
        yield "graphs", reserved, seen["estimate"]
