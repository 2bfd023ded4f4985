"""Whether a deployment fits, how much it is short, and one sentence that says so with its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.scenario.deployment import Resolved
from sheetgen.units import GIB

GUESSED = ("assumed", "unknown")  # bases of a GPU's memory that nobody has seen or derived


@dataclass(frozen=True)
class Verdicts:
    """One entry per deployment. `short_by_bytes` is the whole replica's, NaN where it fits."""

    fits: Any
    short_by_bytes: Any
    text: list[str]


def judge(known: Mapping[str, Any], names: list[Resolved]) -> Verdicts:
    """Verdicts for columns of `estimate.point` and what their names stand for.

    A deployment fits when the GPU runs its precisions, the engine would start (one request of max_model_len
    fits in the pool) and the replica holds all requests, in memory and under max_num_seqs.
    """
    n_rows = len(names)
    obstacles = [_obstacle(names[i]) for i in range(n_rows)]
    runs = numpy.array([o is None for o in obstacles], bool)
    starts = known["max_concurrency"] >= 1
    fits = runs & starts & (known["concurrent_requests"] <= known["sequences_per_replica"])
    n_gpus = known["tensor_parallel_size"] * known["pipeline_parallel_size"] * known["data_parallel_size"]
    longest = known["full_kv_blocks_per_sequence"] * known["kv_block_bytes"] * known["stage_fraction"]
    to_start = numpy.maximum(0, longest - known["kv_budget_bytes_per_gpu"])
    short = numpy.ceil(n_gpus * numpy.maximum(known["shortage_bytes_per_gpu"], to_start))
    words = ("concurrent_requests", "context_tokens", "max_model_len", "max_num_seqs", "data_parallel_size")
    words += ("sequences_in_pool", "sequences_per_replica", "shortage_bytes_per_gpu", "weights_bytes_per_gpu")
    words += ("draft_weights_bytes_per_gpu", "kv_budget_bytes_per_gpu", "memory_budget_bytes", "gpu_memory_bytes")
    columns = [numpy.broadcast_to(known[name], n_rows).tolist() for name in words]
    rows = zip(*columns, n_gpus.tolist(), short.tolist(), fits.tolist(), strict=True)
    text = [
        _sentence(dict(zip((*words, "n_gpus", "short_by_bytes", "fits"), row, strict=True)), names[i], obstacles[i])
        for i, row in enumerate(rows)
    ]
    return Verdicts(fits, numpy.where(fits, numpy.nan, short), text)


def _obstacle(names: Resolved) -> str | None:
    """Why these names cannot go together, or None."""
    gpu = names.gpu
    if gpu.vendor not in names.engine.vendors:
        return f"{names.engine.name} does not run on {gpu.name}."
    if names.weight_dtype not in gpu.weights_run:
        return f"{gpu.name} does not run {names.weight_dtype} weights. It runs {', '.join(gpu.weights_run)}."
    if names.kv_cache_dtype not in gpu.kv_run:
        return f"{gpu.name} does not run a {names.kv_cache_dtype} KV cache. It runs {', '.join(gpu.kv_run)}."
    return None


def _sentence(row: Mapping[str, Any], names: Resolved, obstacle: str | None) -> str:
    if obstacle:
        return "does not fit: " + obstacle
    text = _fitting(row) if row["fits"] else _short(row, names)
    if names.gpu.memory.basis in GUESSED:
        text += f" The memory of {names.gpu.short_name} is assumed ({_gib(row['gpu_memory_bytes'])})."
    return text


def _fitting(row: Mapping[str, Any]) -> str:
    held = row["data_parallel_size"] * row["sequences_in_pool"]
    room = f"fits: room for {_requests(row['sequences_per_replica'])} of {row['context_tokens']:,.0f} tokens"
    if held > row["sequences_per_replica"]:
        return f"{room}, which is max_num_seqs; memory would hold {held:,.0f}."
    return f"{room}; request {held + 1:,.0f} does not fit."


def _short(row: Mapping[str, Any], names: Resolved) -> str:
    where = f"{row['n_gpus']:.0f}x {names.gpu.short_name}"
    asked = row["concurrent_requests"]
    if row["short_by_bytes"] == 0:
        held = row["data_parallel_size"] * row["sequences_in_pool"]
        return (
            f"does not fit: max_num_seqs admits {row['sequences_per_replica']:,.0f} of {_requests(asked)}; "
            f"memory would hold {held:,.0f}. Raise max_num_seqs or add a replica."
        )
    text = f"does not fit: {_gib(row['short_by_bytes'])} short on {where}; "
    weights = row["weights_bytes_per_gpu"] + row["draft_weights_bytes_per_gpu"]
    if row["kv_budget_bytes_per_gpu"] < 0:
        of = "the weights alone need" if weights > row["memory_budget_bytes"] else "weights and overhead need more than"
        need = f"{_gib(weights)} of " if weights > row["memory_budget_bytes"] else ""
        return f"{text}{of} {need}the {_gib(row['memory_budget_bytes'])} that the engine may use of each GPU."
    if row["shortage_bytes_per_gpu"] == 0:
        return (
            f"{text}the engine does not start, because one request of max_model_len "
            f"({row['max_model_len']:,.0f} tokens) is more than the pool. Lower max_model_len."
        )
    room = row["sequences_per_replica"]
    return f"{text}room for {_requests(room)} of {row['context_tokens']:,.0f} tokens, and {asked:,.0f} are asked for."


def _requests(count: float) -> str:
    return f"{count:,.0f} request{'' if count == 1 else 's'}"


def _gib(count: float) -> str:
    """Bytes in GiB; a shortage too small for one decimal in MiB."""
    return f"{count / GIB:,.1f} GiB" if count >= GIB / 10 else f"{count / 2**20:,.1f} MiB"
