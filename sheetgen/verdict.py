"""Whether a deployment fits, by how much it falls short, and one sentence that says so with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

import numpy

from sheetgen.scenario.deployment import NO_TEXT, SPEED_SCOPES, Resolved
from sheetgen.units import GIB, MIB

GUESSED = ("assumed", "unknown")  # bases of a GPU's memory that nobody has seen or derived


@dataclass(frozen=True)
class Verdicts:
    """One entry per deployment.

    short_by_bytes is the whole replica's, NaN where it fits; min_gpus is NaN where no number of them would do.
    reason is the verdict without its first words.
    """

    fits: Any
    short_by_bytes: Any
    min_gpus: Any
    verdict: Any
    reason: Any


def judge(known: Mapping[str, Any], names: list[Resolved]) -> Verdicts:
    """Verdicts for columns of `estimate.point` and what their names stand for.

    A deployment fits when the GPU runs its precisions, the engine would start (one request of max_model_len
    fits in the pool) and the replica holds all requests, in memory and under max_num_seqs.
    """
    obstacles = by_name(names)(obstacle)
    runs = numpy.equal(obstacles, NO_TEXT)
    starts = known["max_concurrency"] >= 1
    fits = runs & starts & (known["concurrent_requests"] <= known["sequences_per_replica"])
    n_gpus = known["tensor_parallel_size"] * known["pipeline_parallel_size"] * known["data_parallel_size"]
    longest = known["full_kv_blocks_per_sequence"] * known["kv_block_bytes"] * known["stage_fraction"]
    to_start = numpy.maximum(0, longest - known["kv_budget_bytes_per_gpu"])
    short = numpy.ceil(n_gpus * numpy.maximum(known["shortage_bytes_per_gpu"], to_start))
    held = known["shortage_bytes_per_gpu"] == 0
    fewest = numpy.where(held, numpy.fmin(known["min_gpus"], n_gpus), known["min_gpus"])
    said = {**known, "n_gpus": n_gpus, "short": short, "held": known["data_parallel_size"] * known["sequences_in_pool"]}
    reason = _sentences(said, names, fits, obstacles)
    verdict = numpy.where(fits, "fits: ", "does not fit: ").astype(object) + reason
    fewest = numpy.where(runs, fewest, numpy.nan)
    return Verdicts(fits, numpy.where(fits, numpy.nan, short), fewest, verdict, reason)


def by_name(names: Sequence[Resolved]) -> Callable[[Callable[[Resolved], Any]], Any]:
    """A column of what a function says of each row's names, which asks it once for each that are different."""
    distinct = {id(one): one for one in names}
    places = {key: place for place, key in enumerate(distinct)}
    code = numpy.fromiter(map(places.__getitem__, map(id, names)), int, len(names))

    def column(of: Callable[[Resolved], Any]) -> Any:
        said = numpy.empty(len(distinct), object)
        said[:] = [of(one) for one in distinct.values()]
        return said[code]

    return column


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


def _requests(count: float) -> str:
    return f"{count:,.0f} request{'' if count == 1 else 's'}"


def _gib(count: float) -> str:
    """Bytes in GiB; a shortage too small for one decimal in MiB."""
    return f"{count / GIB:,.1f} GiB" if count >= GIB / 10 else f"{count / MIB:,.1f} MiB"


_whole = "{:,.0f}".format
# What stands in the sentences: the column that it is of, and how that is written.
_WRITTEN: dict[str, tuple[str, Callable[[Any], str]]] = {
    "room": ("sequences_per_replica", _requests), "admitted": ("sequences_per_replica", _whole),
    "next": ("sequences_per_replica", lambda room: _whole(room + 1)), "held": ("held", _whole),
    "asked": ("concurrent_requests", _whole), "requests": ("concurrent_requests", _requests),
    "context": ("context_tokens", _whole), "longest": ("max_model_len", _whole),
    "short": ("short", _gib), "n_gpus": ("n_gpus", "{:.0f}".format), "gpu": ("gpu", str),
    "budget": ("memory_budget_bytes", _gib), "weights": ("loaded_weights_bytes_per_gpu", _gib),
}  # fmt: skip
_CAPPED = "room for {room} of {context} tokens, which is max_num_seqs; memory would hold {held}."
_ROOMY = "room for {room} of {context} tokens; request {next} does not fit."
_REFUSED = "max_num_seqs admits {admitted} of {requests}; memory would hold {held}. "
_REFUSED += "Raise max_num_seqs or add a replica."
_LACKS = "{short} short on {n_gpus}x {gpu}; "
_HEAVY = _LACKS + "the weights alone need {weights} of each GPU, and the engine may use {budget}."
_CROWDED = _LACKS + "weights and overhead need more than the {budget} that the engine may use of each GPU."
_STUCK = _LACKS + "the engine does not start, because one request of max_model_len ({longest} tokens) is more than the "
_STUCK += "pool. Lower max_model_len."
_NARROW = _LACKS + "room for {room} of {context} tokens, {asked} asked for."


def _sentences(known: Mapping[str, Any], names: list[Resolved], fits: Any, obstacles: Any) -> Any:
    """One sentence per row: each kind of verdict with the numbers that it needs, all its rows at once."""
    runs, of_name = numpy.equal(obstacles, NO_TEXT), by_name(names)
    text = obstacles.copy()
    said = {**known, "gpu": of_name(lambda one: one.gpu.short_name)}
    full = said["kv_budget_bytes_per_gpu"] < 0
    left = runs
    for rows, sentence in (
        (fits & (said["held"] > said["sequences_per_replica"]), _CAPPED),
        (fits, _ROOMY),
        (said["short"] == 0, _REFUSED),
        (full & (said["loaded_weights_bytes_per_gpu"] > said["memory_budget_bytes"]), _HEAVY),
        (full, _CROWDED),
        (said["shortage_bytes_per_gpu"] == 0, _STUCK),
        (runs, _NARROW),
    ):
        at = numpy.flatnonzero(left & rows)
        left = left & ~rows
        written = [_WRITTEN[part] for _, part, _, _ in Formatter().parse(sentence) if part]
        texts = [_texts(numpy.broadcast_to(said[name], len(text))[at].tolist(), rule) for name, rule in written]
        template = Formatter().vformat(sentence, (), dict.fromkeys(_WRITTEN, "%s"))
        text[at] = [template % row for row in zip(*texts, strict=True)]
    is_guess = of_name(lambda one: one.gpu.memory.basis in GUESSED).astype(bool) & runs
    for i in numpy.flatnonzero(is_guess).tolist():
        gpu = names[i].gpu
        text[i] += f" The memory of {gpu.short_name} is assumed ({_gib(gpu.memory.engine_bytes)})."
    return text


def _texts(column: list[Any], rule: Callable[[Any], str]) -> Iterable[str]:
    """The column as text: where its values repeat themselves, each of the different ones is written once."""
    different = set(column)
    repeats = 4 * len(different) < len(column)
    return map({value: rule(value) for value in different}.__getitem__ if repeats else rule, column)


def pace_words(known: Mapping[str, Any]) -> dict[str, Any]:
    """What a row's speed is bound by, which runs its bands are from, whether requests queue; and its time to first
    token, which has no end where the queue grows. None where the speed is not known."""
    running, n_rows = known["running_requests"], len(known["concurrent_requests"])
    grows, waits = known["grows"] == 1, running < known["concurrent_requests"]
    queue, some = numpy.full(n_rows, None, object), numpy.flatnonzero(grows | waits)
    names = ("requests_per_second", "max_requests_per_second", "concurrent_requests", "running_requests")
    queue[some] = [
        f"the queue grows without bound: {arriving:,.4g} requests a second arrive, {rate:,.4g} can be served"
        if endless
        else f"{count - runs:,.0f} of {_requests(count)} wait for their turn"
        for endless, arriving, rate, count, runs in zip(
            grows[some].tolist(), *(known[name][some].tolist() for name in names), strict=True
        )
    ]
    bound = numpy.broadcast_to(known["bound_by"], n_rows).astype(object)
    bound[grows] = "queue"
    bound[numpy.isnan(known["tpot_seconds"])] = None
    scopes = numpy.array(SPEED_SCOPES, object)[numpy.asarray(known["speed_scope"], int)]
    served = {
        name: numpy.where(grows, numpy.nan, known[name])
        for name in ("ttft_seconds", "ttft_seconds_low", "ttft_seconds_high")
    }
    return {"queue": queue, "bound_by": bound, "speed_scope": scopes, **served}
