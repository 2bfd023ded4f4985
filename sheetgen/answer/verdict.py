"""The verdict of each deployment: fits or not, by how much it falls short, and a sentence with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from string import Formatter

import numpy

from sheetgen.program.grid import Column, Grid
from sheetgen.program.row_program import DEPLOYMENT, ROW, VERDICT
from sheetgen.question.deployment import NO_TEXT, SPEED_SCOPES, Resolved, model_kind, objects
from sheetgen.units import GIB, MIB, count

GUESSED = ("assumed", "unknown")  # bases of a GPU's memory that nobody has seen or derived


def quantities_of(results: Iterable[str]) -> set[str]:
    """The quantities of deployments of which these results are made."""
    return DEPLOYMENT.needed(_read_by(results), VERDICT)[1]


def _read_by(results: Iterable[str]) -> set[str]:
    return {quantity for result in results for quantity in (_WORDS[result][1] if result in _WORDS else (result,))}


def judge(
    grid: Grid, names: Sequence[Resolved | None], axis: str, wanted: Collection[str] = ("fits", "verdict")
) -> None:
    """Put the results `wanted` that are no quantities of their own into a grid of sized deployments: verdicts, words
    for numbers, and the time to first token, which has no end where the queue grows.

    names: what the names of the positions of `axis` stand for. short_by_bytes is the whole replica's, none where it
    fits; min_gpus is none where no number of them would do.
    """

    def put_of_names(name: str, value_of: Callable[[Resolved], object]) -> None:
        grid.put((axis,), {name: objects(None if resolved is None else value_of(resolved) for resolved in names)})

    put_of_names("refused", _refusal)
    put_of_names("gpu_name", lambda resolved: resolved.gpu.short_name)
    put_of_names("guess", _assumed_memory)
    put_of_names("scope_here", lambda resolved: "calibrated" if resolved.engine.bands else None)
    put_of_names(
        "scope_elsewhere",
        lambda resolved: resolved.engine.scope_elsewhere(resolved.gpu) if resolved.engine.bands else None,
    )
    grid.combine("runs_here", lambda refused: numpy.equal(refused, NO_TEXT), ("refused",), ROW)
    grid.work_out(*DEPLOYMENT.needed(_read_by(wanted), VERDICT)[0])
    for name, (written, reads) in _WORDS.items():
        if name in wanted:
            grid.combine(name, written, reads, ROW)


def _refusal(names: Resolved) -> str | None:
    why = obstacle(names)
    return None if why is None else f"{_NOT}{why}"


def obstacle(names: Resolved) -> str | None:
    """The reason why these names cannot go together; None where they can."""
    gpu = names.gpu
    if gpu.vendor not in names.engine.vendors:
        return f"{names.engine.name} does not run on {gpu.name}."
    if names.weight_dtype not in gpu.weights_run:
        return f"{gpu.name} does not run {names.weight_dtype} weights. It runs {', '.join(gpu.weights_run)}."
    if foreign := names.model.foreign_format(names.weight_dtype):
        return f"{names.engine.name} {foreign}."
    if why := refused_cache(names):
        return why
    if model_kind(names.model) == "sparse" and not names.engine.runs_sparse_attention(gpu.architecture):
        return f"{names.engine.name} has no kernel for the sparse attention of {names.model.name} on {gpu.name}."
    return None


def refused_cache(names: Resolved) -> str | None:
    """The reason why the engine keeps no KV cache of the model in its precision on the GPU; None where it does."""
    return names.engine.no_kv(names.gpu, names.kv_cache_dtype, names.model)


def _gib(n_bytes: float) -> str:
    """Bytes in GiB; a shortage too small for one decimal in MiB."""
    return f"{n_bytes / GIB:,.1f} GiB" if n_bytes >= GIB / 10 else f"{n_bytes / MIB:,.1f} MiB"


_whole = "{:,.0f}".format
_requests = partial(count, word="request")
# Fields of the sentences: the column of each, and how it is written.
_WRITTEN: dict[str, tuple[str, Callable[[Column], str]]] = {
    "room": ("sequences_per_replica", _requests),
    "admitted": ("sequences_per_replica", _whole),
    "next": ("sequences_per_replica", lambda room: _whole(room + 1)),
    "held": ("sequences_held", _whole),
    "asked": ("concurrent_requests", _whole),
    "requests": ("concurrent_requests", _requests),
    "context": ("context_tokens", _whole),
    "longest": ("max_model_len", _whole),
    "short": ("short_bytes", _gib),
    "n_gpus": ("gpus_per_replica", "{:.0f}".format),
    "gpu": ("gpu_name", str),
    "arriving": ("requests_per_second", "{:,.4g}".format),
    "rate": ("max_requests_per_second", "{:,.4g}".format),
    "waiting": ("waiting_requests", _whole),
    "budget": ("limit_bytes", _gib),
    "pool": ("outright_pool_bytes", _gib),
    "left": ("left_bytes", _gib),
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
# The quantities that verdicts' sentences read.
_SAID = (
    "sequences_per_replica", "concurrent_requests", "context_tokens", "max_model_len", "loaded_weights_bytes_per_gpu",
    "kv_budget_bytes_per_gpu", "shortage_bytes_per_gpu", "runs_here", "fits", "gpus_per_replica", "short_bytes",
    "sequences_held", "limit_bytes", "left_bytes", "outright_pool_bytes", "refused", "gpu_name", "guess",
)  # fmt: skip


def _assumed_memory(names: Resolved) -> str:
    """The sentence that is added where the memory of the GPU is assumed."""
    gpu = names.gpu
    is_guess = gpu.memory.basis in GUESSED
    return f" The memory of {gpu.short_name} is assumed ({_gib(gpu.memory.engine_bytes)})." if is_guess else ""


def _sentences(columns: Mapping[str, Column]) -> Column:
    """One sentence per row: each kind of verdict with its numbers, for all rows at once."""
    fits, runs, full = columns["fits"], columns["runs_here"], columns["kv_budget_bytes_per_gpu"] < 0
    text = _filled(
        columns["refused"].copy(),
        columns,
        runs,
        (
            (fits & (columns["sequences_held"] > columns["sequences_per_replica"]), _CAPPED),
            (fits, _ROOMY),
            (columns["short_bytes"] == 0, _REFUSED),
            (full & (columns["outright_pool_bytes"] > 0) & (columns["left_bytes"] >= 0), _OVERSET),
            (full & (columns["loaded_weights_bytes_per_gpu"] > columns["limit_bytes"]), _HEAVY),
            (full, _CROWDED),
            (columns["shortage_bytes_per_gpu"] == 0, _STUCK),
            (runs, _NARROW),
        ),
    )
    guessed = numpy.flatnonzero(runs & columns["guess"].astype(bool))
    text[guessed] += columns["guess"][guessed]
    return text


def _filled(text: Column, columns: Mapping[str, Column], left: Column, kinds: Iterable[tuple[Column, str]]) -> Column:
    """`text` with a sentence in the rows that are `left`: that of the first of the `kinds` that holds there."""
    for rows, sentence in kinds:
        places = numpy.flatnonzero(left & rows)
        left = left & ~rows
        parts: list[Iterable[str]] = []
        for plain, part, _, _ in Formatter().parse(sentence):
            parts.append(repeat(plain, len(places)))
            if part:
                name, rule = _WRITTEN[part]
                parts.append(map(rule, numpy.broadcast_to(columns[name], len(text))[places].tolist()))
        text[places] = list(map("".join, zip(*parts, strict=True)))
    return text


def _as_object(word: str | None) -> Column:
    return numpy.array(word, object)


_OF_QUEUE = (
    "requests_per_second", "max_requests_per_second", "concurrent_requests", "grows", "waiting_requests",
)  # fmt: skip


def _queues(columns: Mapping[str, Column]) -> Column:
    """One sentence per row where requests queue, else None."""
    kinds = (columns["grows"] == 1, _ENDLESS), (columns["waiting_requests"] > 0, _WAITS)
    return _filled(numpy.full(len(columns["grows"]), None, object), columns, True, kinds)


def _sentence(sentences: Callable[[Mapping[str, Column]], Column], reads: Sequence[str]) -> Callable[..., Column]:
    """A function that writes a sentence for each row, made for all rows at once from the columns that it reads."""

    def written(*columns: Column) -> Column:
        texts = sentences({read: numpy.atleast_1d(column) for read, column in zip(reads, columns, strict=True)})
        return texts if numpy.ndim(columns[0]) else numpy.array(texts[0], object)

    return written


def _bound_by(grows: Column, bound_by: Column, tpot_seconds: Column) -> Column:
    """The bound of each row's speed; None where it is not known."""
    words = numpy.where(grows == 1, _as_object("queue"), bound_by)
    return numpy.where(numpy.isnan(tpot_seconds), _as_object(None), words)


def _speed_scope(scope: Column) -> Column:
    """The runs that the bands of speed are from."""
    return numpy.choose(scope.astype(int), list(map(_as_object, SPEED_SCOPES)))


def _unless_queue_grows(grows: Column, seconds: Column) -> Column:
    return numpy.where(grows == 1, numpy.nan, seconds)


# Results that are words, or figures in whose place words stand: how each is made, and of which quantities.
_WORDS: dict[str, tuple[Callable[..., Column], tuple[str, ...]]] = {
    "verdict": (_sentence(_sentences, _SAID), _SAID),
    "queue": (_sentence(_queues, _OF_QUEUE), _OF_QUEUE),
    "bound_by": (_bound_by, ("grows", "bound_by", "tpot_seconds")),
    "speed_scope": (_speed_scope, ("speed_scope",)),
    "band_scope": (numpy.where, ("is_calibrated", "scope_here", "scope_elsewhere")),
    **{
        name: (_unless_queue_grows, ("grows", name))
        for name in ("ttft_seconds", "ttft_seconds_low", "ttft_seconds_high")
    },
}
