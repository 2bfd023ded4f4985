"""Whether a deployment fits, by how much it falls short, and one sentence that says so with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.scenario.deployment import SPEED_SCOPES, Resolved
from sheetgen.units import GIB, MIB

GUESSED = ("assumed", "unknown")  # bases of a GPU's memory that nobody has seen or derived


@dataclass(frozen=True)
class Verdicts:
    """One entry per deployment.

    short_by_bytes is the whole replica's, NaN where it fits; min_gpus is NaN where no number of them would do.
    """

    fits: Any
    short_by_bytes: Any
    min_gpus: Any
    verdict: Any


def judge(known: Mapping[str, Any], names: list[Resolved]) -> Verdicts:
    """Verdicts for columns of `estimate.point` and what their names stand for.

    A deployment fits when the GPU runs its precisions, the engine would start (one request of max_model_len
    fits in the pool) and the replica holds all requests, in memory and under max_num_seqs.
    """
    distinct = {id(one): obstacle(one) for one in {id(one): one for one in names}.values()}
    obstacles = [distinct[id(one)] for one in names]
    runs = numpy.array([o is None for o in obstacles], bool)
    starts = known["max_concurrency"] >= 1
    fits = runs & starts & (known["concurrent_requests"] <= known["sequences_per_replica"])
    n_gpus = known["tensor_parallel_size"] * known["pipeline_parallel_size"] * known["data_parallel_size"]
    longest = known["full_kv_blocks_per_sequence"] * known["kv_block_bytes"] * known["stage_fraction"]
    to_start = numpy.maximum(0, longest - known["kv_budget_bytes_per_gpu"])
    short = numpy.ceil(n_gpus * numpy.maximum(known["shortage_bytes_per_gpu"], to_start))
    held = known["shortage_bytes_per_gpu"] == 0
    fewest = numpy.where(held, numpy.fmin(known["min_gpus"], n_gpus), known["min_gpus"])
    said = {
        **known,
        "n_gpus": n_gpus,
        "short": short,
        "held": known["data_parallel_size"] * known["sequences_in_pool"],
    }
    text = _sentences(said, names, fits, obstacles)
    return Verdicts(fits, numpy.where(fits, numpy.nan, short), numpy.where(runs, fewest, numpy.nan), text)


def obstacle(names: Resolved) -> str | None:
    """Why these names cannot go together, or None."""
    gpu = names.gpu
    if gpu.vendor not in names.engine.vendors:
        return f"{names.engine.name} does not run on {gpu.name}."
    if names.weight_dtype not in gpu.weights_run:
        return f"{gpu.name} does not run {names.weight_dtype} weights. It runs {', '.join(gpu.weights_run)}."
    if names.kv_cache_dtype not in gpu.kv_run:
        return f"{gpu.name} keeps no KV cache in {names.kv_cache_dtype}. It keeps {', '.join(gpu.kv_run)}."
    return None


def _sentences(said: Mapping[str, Any], names: list[Resolved], fits: Any, obstacles: list[str | None]) -> Any:
    """One sentence per row: each kind of verdict with the numbers that it needs, all its rows at once."""
    text = numpy.array([f"does not fit: {o}" if o else None for o in obstacles], object)
    runs = numpy.array([o is None for o in obstacles], bool)
    full = said["kv_budget_bytes_per_gpu"] < 0
    left = runs
    for rows, words, columns in (
        (fits & (said["held"] > said["sequences_per_replica"]), _capped, _CAPPED),
        (fits, _roomy, ("sequences_per_replica", "context_tokens")),
        (said["short"] == 0, _refused, ("sequences_per_replica", "concurrent_requests", "held")),
        (full & (said["loaded_weights_bytes_per_gpu"] > said["memory_budget_bytes"]), _heavy, _HEAVY),
        (full, _crowded, (*_SHORT, "memory_budget_bytes")),
        (said["shortage_bytes_per_gpu"] == 0, _stuck, (*_SHORT, "max_model_len")),
        (runs, _narrow, (*_SHORT, "sequences_per_replica", "context_tokens", "concurrent_requests")),
    ):
        at = numpy.flatnonzero(left & rows)
        left = left & ~rows
        numbers = [numpy.broadcast_to(said[name], len(text))[at].tolist() for name in columns]
        gpus = [names[i].gpu.short_name for i in at.tolist()]
        text[at] = _each(words, gpus, *numbers)
    for i in [i for i, one in enumerate(names) if one.gpu.memory.basis in GUESSED and runs[i]]:
        gpu = names[i].gpu
        text[i] += f" The memory of {gpu.short_name} is assumed ({_gib(gpu.memory.engine_bytes)})."
    return text


def _each(words: Callable[..., str], *columns: list[Any]) -> Any:
    out = numpy.empty(len(columns[0]), object)
    out[:] = [words(*row) for row in zip(*columns, strict=True)]
    return out


_SHORT = ("short", "n_gpus")
_CAPPED = ("sequences_per_replica", "context_tokens", "held")
_HEAVY = (*_SHORT, "memory_budget_bytes", "loaded_weights_bytes_per_gpu")


def _capped(gpu: str, room: float, context: float, held: float) -> str:
    limit = f"which is max_num_seqs; memory would hold {held:,.0f}."
    return f"fits: room for {_requests(room)} of {context:,.0f} tokens, {limit}"


def _roomy(gpu: str, room: float, context: float) -> str:
    return f"fits: room for {_requests(room)} of {context:,.0f} tokens; request {room + 1:,.0f} does not fit."


def _refused(gpu: str, room: float, asked: float, held: float) -> str:
    advice = "Raise max_num_seqs or add a replica."
    admits = f"max_num_seqs admits {room:,.0f} of {_requests(asked)}"
    return f"does not fit: {admits}; memory would hold {held:,.0f}. {advice}"


def _heavy(gpu: str, short: float, n_gpus: float, budget: float, weights: float) -> str:
    need = f"the weights alone need {_gib(weights)} of each GPU, and the engine may use {_gib(budget)}."
    return f"{_lacking(gpu, short, n_gpus)}; {need}"


def _crowded(gpu: str, short: float, n_gpus: float, budget: float) -> str:
    need = f"weights and overhead need more than the {_gib(budget)} that the engine may use of each GPU."
    return f"{_lacking(gpu, short, n_gpus)}; {need}"


def _stuck(gpu: str, short: float, n_gpus: float, length: float) -> str:
    why = f"one request of max_model_len ({length:,.0f} tokens) is more than the pool. Lower max_model_len."
    return f"{_lacking(gpu, short, n_gpus)}; the engine does not start, because {why}"


def _narrow(gpu: str, short: float, n_gpus: float, room: float, context: float, asked: float) -> str:
    room_for = f"room for {_requests(room)} of {context:,.0f} tokens, {asked:,.0f} asked for."
    return f"{_lacking(gpu, short, n_gpus)}; {room_for}"


def _lacking(gpu: str, short: float, n_gpus: float) -> str:
    return f"does not fit: {_gib(short)} short on {n_gpus:.0f}x {gpu}"


def _requests(count: float) -> str:
    return f"{count:,.0f} request{'' if count == 1 else 's'}"


def _gib(count: float) -> str:
    """Bytes in GiB; a shortage too small for one decimal in MiB."""
    return f"{count / GIB:,.1f} GiB" if count >= GIB / 10 else f"{count / MIB:,.1f} MiB"


def pace_words(known: Mapping[str, Any]) -> dict[str, Any]:
    """What a row's speed is bound by, which runs its bands are from, whether requests queue; and its time to first
    token, which has no end where the queue grows. None where the speed is not known."""
    tpot, rate = known["tpot_seconds"], known["max_requests_per_second"]
    asked, running, arriving = (known[n] for n in ("concurrent_requests", "running_requests", "requests_per_second"))
    grows = known["grows"] == 1
    queue = [
        f"the queue grows without bound: {a:,.4g} requests a second arrive, {r:,.4g} can be served"
        if g
        else f"{c - b:,.0f} of {_requests(c)} wait for their turn"
        if b < c
        else None
        for a, r, g, c, b in zip(arriving, rate, grows, asked, running, strict=True)
    ]
    bound = [
        None if t != t else "queue" if g else str(b) for t, g, b in zip(tpot, grows, known["bound_by"], strict=True)
    ]
    scopes = [SPEED_SCOPES[int(s)] for s in known["speed_scope"]]
    endless = {
        name: numpy.where(grows, numpy.nan, known[name])
        for name in ("ttft_seconds", "ttft_seconds_low", "ttft_seconds_high")
    }
    return {"queue": queue, "bound_by": bound, "speed_scope": scopes, **endless}
