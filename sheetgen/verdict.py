"""Whether a deployment fits, by how much it falls short, and one sentence that says so with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from string import Formatter
from typing import Any

import numpy

from sheetgen.grouped import Grouped, factorized, once_a_group
from sheetgen.scenario.deployment import NO_TEXT, SPEED_SCOPES, Resolved, model_kind, objects
from sheetgen.units import GIB, MIB, count

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

    @property
    def reason(self) -> list[str]:
        return [one.removeprefix(_NOT).removeprefix(_FITS) for one in self.verdict]


def judge(known: Mapping[str, Any], names: Sequence[Resolved] | Grouped) -> Verdicts:
    """Verdicts for columns of `estimate.point` and what their names stand for.

    A deployment fits when the GPU runs its precisions, the engine would start (one request of max_model_len
    fits in the pool) and the replica holds all requests, in memory and under max_num_seqs.
    """
    of_name = by_name(names)
    runs = numpy.equal(of_name(obstacle), NO_TEXT)
    starts = known["max_concurrency"] >= 1
    fits = runs & starts & (known["concurrent_requests"] <= known["sequences_per_replica"])
    n_gpus = known["tensor_parallel_size"] * known["pipeline_parallel_size"] * known["data_parallel_size"]
    longest = known["full_kv_blocks_per_sequence"] * known["kv_block_bytes"] * known["stage_fraction"]
    to_start = numpy.maximum(0, longest - known["kv_budget_bytes_per_gpu"])
    short = numpy.ceil(n_gpus * numpy.maximum(known["shortage_bytes_per_gpu"], to_start))
    held = known["shortage_bytes_per_gpu"] == 0
    set_pool = known["kv_cache_memory_bytes"] * (1 - known["set_pool_is_limit"])  # outright, not as a limit
    fewest = numpy.where(held, numpy.fmin(known["min_gpus"], n_gpus), known["min_gpus"])
    said = {name: known[name] for name in _SAID} | {
        "runs": runs,
        "fits": fits,
        "n_gpus": n_gpus,
        "short": short,
        "held": known["data_parallel_size"] * known["sequences_in_pool"],
        # Of engines whose pool is a share of what is free, all that they see is there for the rest.
        "limit": numpy.where(known["fraction_of_free"] == 1, known["gpu_memory_bytes"], known["memory_budget_bytes"]),
        "left": known["kv_budget_bytes_per_gpu"] + set_pool,
        "set_pool": set_pool,
        "refused": of_name(lambda one: f"{_NOT}{obstacle(one)}"),
        "gpu": of_name(lambda one: one.gpu.short_name),
        "guess": of_name(_guess),
    }
    fewest = numpy.where(runs, fewest, numpy.nan)
    return Verdicts(fits, numpy.where(fits, numpy.nan, short), fewest, once_a_group(_sentences, said))


def by_name(names: Sequence[Resolved] | Grouped) -> Callable[[Callable[[Resolved], Any]], Any]:
    """A column of what a function says of each row's names, which asks it once for each that are different."""
    listed = names.values.tolist() if isinstance(names, Grouped) else names
    code, _ = factorized([id(one) for one in listed])
    distinct = {id(one): one for one in listed}

    def column(of: Callable[[Resolved], Any]) -> Any:
        said = objects(map(of, distinct.values()))
        return Grouped(said[code], names.group) if isinstance(names, Grouped) else said[code]

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
    if model_kind(names.model) == "sparse" and not names.engine.runs_sparse_attention(gpu.architecture):
        return f"{names.engine.name} has no kernel for the sparse attention of {names.model.name} on {gpu.name}."
    return None


def _gib(n_bytes: float) -> str:
    """Bytes in GiB; a shortage too small for one decimal in MiB."""
    return f"{n_bytes / GIB:,.1f} GiB" if n_bytes >= GIB / 10 else f"{n_bytes / MIB:,.1f} MiB"


_whole = "{:,.0f}".format
_requests = partial(count, word="request")
# What stands in the sentences: the column that it is of, and how that is written.
_WRITTEN: dict[str, tuple[str, Callable[[Any], str]]] = {
    "room": ("sequences_per_replica", _requests),
    "admitted": ("sequences_per_replica", _whole),
    "next": ("sequences_per_replica", lambda room: _whole(room + 1)),
    "held": ("held", _whole),
    "asked": ("concurrent_requests", _whole),
    "requests": ("concurrent_requests", _requests),
    "context": ("context_tokens", _whole),
    "longest": ("max_model_len", _whole),
    "short": ("short", _gib),
    "n_gpus": ("n_gpus", "{:.0f}".format),
    "gpu": ("gpu", str),
    "arriving": ("requests_per_second", "{:,.4g}".format),
    "rate": ("max_requests_per_second", "{:,.4g}".format),
    "waiting": ("waiting", _whole),
    "budget": ("limit", _gib),
    "pool": ("set_pool", _gib),
    "left": ("left", _gib),
    "weights": ("loaded_weights_bytes_per_gpu", _gib),
}
_FITS, _NOT = "fits: ", "does not fit: "
_CAPPED = _FITS + "{room} of {context} tokens at once, which is max_num_seqs; memory for {held}."
_ROOMY = _FITS + "memory for {room} of {context} tokens at once; request {next} does not fit."
_REFUSED = _NOT + "max_num_seqs admits {admitted} of {requests}; memory would hold {held}. "
_REFUSED += "Raise max_num_seqs or add a replica."
_LACKS = _NOT + "{short} short on {n_gpus}x {gpu}; "
_HEAVY = _LACKS + "the weights alone need {weights} of each GPU, and the engine may use {budget}."
_CROWDED = _LACKS + "weights and overhead need more than the {budget} that the engine may use of each GPU."
_OVERSET = _LACKS + "the stated KV pool of {pool} is more than the {left} that weights and overhead leave of each GPU."
_STUCK = _LACKS + "the engine does not start, because one request of max_model_len ({longest} tokens) is more than the "
_STUCK += "pool. Lower max_model_len."
_NARROW = _LACKS + "memory for {room} of {context} tokens at once, {asked} requested."
_ENDLESS = "the queue grows without bound: {arriving} requests a second arrive, {rate} can be served"
_WAITS = "{waiting} of {requests} wait for their turn"
# What the verdicts' sentences read of `estimate.point`.
_SAID = (
    "sequences_per_replica",
    "concurrent_requests",
    "context_tokens",
    "max_model_len",
    "loaded_weights_bytes_per_gpu",
    "kv_budget_bytes_per_gpu",
    "shortage_bytes_per_gpu",
)


def _guess(names: Resolved) -> str:
    """What a sentence adds where the memory of the GPU is assumed."""
    gpu = names.gpu
    is_guess = gpu.memory.basis in GUESSED
    return f" The memory of {gpu.short_name} is assumed ({_gib(gpu.memory.engine_bytes)})." if is_guess else ""


def _sentences(said: Mapping[str, Any]) -> Any:
    """One sentence per row: each kind of verdict with the numbers that it needs, all its rows at once."""
    fits, runs, full = said["fits"], said["runs"], said["kv_budget_bytes_per_gpu"] < 0
    text = _written(
        said["refused"].copy(),
        said,
        runs,
        (
            (fits & (said["held"] > said["sequences_per_replica"]), _CAPPED),
            (fits, _ROOMY),
            (said["short"] == 0, _REFUSED),
            (full & (said["set_pool"] > 0) & (said["left"] >= 0), _OVERSET),
            (full & (said["loaded_weights_bytes_per_gpu"] > said["limit"]), _HEAVY),
            (full, _CROWDED),
            (said["shortage_bytes_per_gpu"] == 0, _STUCK),
            (runs, _NARROW),
        ),
    )
    at = numpy.flatnonzero(runs & said["guess"].astype(bool))
    text[at] += said["guess"][at]
    return text


def _written(text: Any, said: Mapping[str, Any], left: Any, kinds: Iterable[tuple[Any, str]]) -> Any:
    """`text` with a sentence in the rows that are `left`: that of the first of the `kinds` that holds there."""
    for rows, sentence in kinds:
        at = numpy.flatnonzero(left & rows)
        left = left & ~rows
        parts: list[Iterable[str]] = []
        for plain, part, _, _ in Formatter().parse(sentence):
            parts.append(repeat(plain, len(at)))
            if part:
                name, rule = _WRITTEN[part]
                parts.append(map(rule, numpy.broadcast_to(said[name], len(text))[at].tolist()))
        text[at] = list(map("".join, zip(*parts, strict=True)))
    return text


def pace_words(known: Mapping[str, Any]) -> dict[str, Any]:
    """What a row's speed is bound by, which runs its bands are from, whether requests queue; and its time to first
    token, which has no end where the queue grows. None where the speed is not known."""
    grows, waiting = known["grows"] == 1, known["concurrent_requests"] - known["running_requests"]
    said = {name: known[name] for name in ("requests_per_second", "max_requests_per_second", "concurrent_requests")}
    bound = numpy.where(grows, _as_object("queue"), known["bound_by"])
    times = ("ttft_seconds", "ttft_seconds_low", "ttft_seconds_high")
    served = {name: numpy.where(grows, numpy.nan, known[name]) for name in times}
    return {
        "queue": once_a_group(_queues, {**said, "grows": grows, "waiting": waiting}),
        "bound_by": numpy.where(numpy.isnan(known["tpot_seconds"]), _as_object(None), bound),
        "speed_scope": numpy.choose(known["speed_scope"], [_as_object(one) for one in SPEED_SCOPES]),
        **served,
    }


def _as_object(one: Any) -> Any:
    return numpy.array(one, object)


def _queues(said: Mapping[str, Any]) -> Any:
    """One sentence per row where requests queue, else None."""
    kinds = (said["grows"], _ENDLESS), (said["waiting"] > 0, _WAITS)
    return _written(numpy.full(len(said["grows"]), None, object), said, True, kinds)
