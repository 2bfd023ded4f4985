"""The sizing engine on the configuration of a log: memory needed and available by part, and the effect of changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sheetgen.api import Sized, record, sized_point
from sheetgen.catalog.base import RawMapping, RawRecord
from sheetgen.catalog.load import Catalog
from sheetgen.diagnose.cause import ADDED, LONG, MANY, POOL, PREFILL, SAMPLER, WEIGHTS, WORKSPACE, Verdict
from sheetgen.diagnose.log_compared import notes_of
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.report.wording import sure
from sheetgen.startup.log_inputs import inputs_of, keep_within_limit
from sheetgen.startup.printed_arguments import RENAMED
from sheetgen.startup.startup_log import Figure, Measured, StartupLog, measure
from sheetgen.units import GIB, TENSOR_PARALLEL_SIZES

STEP = 0.01  # of gpu_memory_utilization
MOST_SHARE = 0.97
NOT_ENOUGH = "not enough by itself"
_WORTH = 0.005 * GIB  # the least that is displayed as 0.01 GiB
TOKENS_AT_ONCE = 1024  # suggested lengths are multiples of it
_OF_ENGINE = {"nim": "vllm"}  # the engine whose arguments the log prints
_FROM_FIGURES = ("max_model_len", "max_num_seqs", "gpu_memory_utilization")
Row = tuple[str, int, int, int]  # a part of one GPU's memory in bytes: words, needed, available, short (0: it fits)
OTHER_WEIGHTS = 0.15  # a larger relative difference of the weights: another model, precision or parallelism ran
_PARTS = (
    ("weights", "weights_bytes_per_gpu"), ("activations", "activation_bytes_per_gpu"),
    ("non-torch (NCCL, CUDA)", "non_torch_bytes_per_gpu"), ("CUDA graphs", "cuda_graph_bytes_per_gpu"),
)  # fmt: skip
# By label: the part that ran out, the words if it fits, and the engine's contrary result.
_RAN_OUT = {
    WEIGHTS: ("weights", "the weights fit", "measured less"),
    POOL: ("KV pool", "the KV pool fits", "measured less"),
    WORKSPACE: ("CUDA graphs", "the CUDA graphs fit", "needed more"),
    SAMPLER: ("sampler", "the sampler fits", "needed more"),
    PREFILL: ("activations", "the activations fit", "needed more"),
}
_BESIDE = 1.1  # times the predicted weights: a larger allocation is mentioned


@dataclass
class Replay:
    """The sized configuration of a log, and one GPU's memory by part."""

    inputs: RawRecord
    answer: RawRecord
    catalog: Catalog
    rows: dict[str, Row] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)  # by input: the effect of the suggested value
    values: RawRecord = field(default_factory=dict)  # by input: the suggested value
    freed: dict[str, int] = field(default_factory=dict)  # by input: the bytes on a GPU that the suggested value frees
    notes: tuple[str, ...] = ()
    not_enough: set[str] = field(default_factory=set)  # inputs of which no value suffices
    contradiction: str | None = None  # the prediction fits where the log reports a failure

    def tried(self, **changes: object) -> RawRecord | None:
        """The answer with some inputs changed; None where it cannot be sized."""
        try:
            return record(sized_point({**self.inputs, **changes}, self.catalog))
        except SheetgenError:
            return None

    def suggest(self, name: str, value: object, outcome: str) -> None:
        self.values[name], self.outcomes[name] = value, outcome

    def refuse(self, name: str, why: str) -> None:
        self.not_enough.add(name)
        self.outcomes[name] = f"{NOT_ENOUGH}: {why}"


def replay(
    verdict: Verdict, startup: StartupLog | None, engine: str | None, options: RawMapping, catalog: Catalog
) -> Replay:
    """The replay of a log; the user's options override it. Raises SheetgenError where it cannot be sized."""
    inputs, notes = _inputs(verdict, startup, engine, options, catalog)
    sized = sized_point(inputs, catalog)
    answer = record(sized)
    replayed = Replay(inputs, answer, catalog, _rows(sized, answer, verdict.cause.label == SAMPLER))
    replayed.notes = (*notes, *_weights_differ(startup, answer))
    replayed.contradiction = _contradiction(verdict, replayed.rows, answer["chance"])
    label, figures = verdict.cause.label, verdict.figures
    measured = figures.get("kv_needed_gib", 0) > figures.get("kv_available_gib", 0) > 0
    if measured:
        _suggest_from_measured_pool(replayed, figures)
    elif verdict.cause.case != "empty" and (label in (LONG, MANY, ADDED) or (label == POOL and not answer["fits"])):
        _suggest_length(replayed)
    if label in (POOL, WEIGHTS) and not answer["fits"]:
        _suggest_more_memory(replayed, shares=not measured)
    if label in (SAMPLER, WORKSPACE):
        _suggest_smaller(replayed, "max_num_seqs", min(256, max(1, answer["max_num_seqs"] // 4)))
    if label in (PREFILL, WORKSPACE) and verdict.cause.case != "refused":
        _suggest_smaller(replayed, "max_num_batched_tokens", min(2048, max(256, answer["max_num_batched_tokens"] // 4)))
    return replayed


def _inputs(
    verdict: Verdict, startup: StartupLog | None, engine: str | None, options: RawMapping, catalog: Catalog
) -> tuple[RawRecord, tuple[str, ...]]:
    """The sizing inputs from the options, the start-up log and the line that failed; and notes on them."""
    given = {name: value for name, value in options.items() if value is not None}
    base = _OF_ENGINE.get(engine or "vllm", engine or "vllm")
    if base not in RENAMED:
        if "model" not in given:
            raise ScenarioError("the log does not say which model was loaded. Add --model NAME.")
        return {"engine": engine, **given}, ()
    log = startup if startup is not None and startup.engine == base else StartupLog(base, None, {}, {})
    sized = inputs_of(log, _with_memory(measure(log), verdict), given, catalog)
    for name in _FROM_FIGURES:
        if name not in given and (value := verdict.of_failure.get(name, 0)) > 0:
            sized.inputs[name] = int(value) if value == int(value) else value
    if "max_model_len" not in given:
        keep_within_limit(sized, catalog, "replayed")
    if (length := sized.inputs.get("max_model_len")) and not {"context", "context_tokens"} & given.keys():
        sized.inputs["context_tokens"] = length
    return sized.inputs, (*sized.not_stated.values(), *notes_of(sized))


def _with_memory(measured: Measured, verdict: Verdict) -> Measured:
    """The measurements, with the card's memory from a failed line where the start-up log did not print it."""
    if "gpu_memory_bytes" in measured.figures or verdict.failure is None:
        return measured
    match = verdict.failure.match
    of_others = (other.amounts.get("gpu_memory_bytes") for other in verdict.run.failures)
    of_line = (verdict.amounts.get("gpu_memory_bytes"), match.figures.get("gpu_memory_gib", 0) * GIB)
    total = next(filter(None, (*of_line, *of_others)), None)
    if total is None:
        return measured
    figure = Figure("gpu_memory_bytes", total, match.rank, match.line_number, match.text)
    return replace(measured, figures={**measured.figures, "gpu_memory_bytes": figure})


def whole(tokens: float) -> int:
    """The length rounded down to a multiple of 1,024 tokens, or of 16 for short ones."""
    step = TOKENS_AT_ONCE if tokens >= 4 * TOKENS_AT_ONCE else 16
    return int(tokens // step * step)


def _suggest_from_measured_pool(replayed: Replay, figures: Mapping[str, float]) -> None:
    """Suggest values by the engine's own figures for what one request needs and has, which override the prediction."""
    needed, available, length = figures["kv_needed_gib"], figures["kv_available_gib"], figures.get("max_model_len", 0)
    name = f"KV pool, as the engine measured it: 1 of {length:,.0f} tokens"
    replayed.rows["KV pool"] = (name, int(needed * GIB), int(available * GIB), int((needed - available) * GIB))
    longest = figures.get("longest_max_model_len") or length * available / needed
    if value := whole(longest):
        replayed.suggest("max_model_len", value, f"{length:,.0f} -> {value:,} fits")
    changed, before = replayed.tried(kv_cache_dtype="fp8"), replayed.answer
    if changed and changed["kv_cache_dtype"] != before["kv_cache_dtype"] and changed["kv_bytes_per_token"]:
        fits = min(int(length), whole(longest * before["kv_bytes_per_token"] / changed["kv_bytes_per_token"]))
        replayed.outcomes["kv_cache_dtype"] = f"FP8 KV fits {fits:,} of {length:,.0f} tokens"
    share = before["gpu_memory_utilization"]
    wanted = math.ceil(100 * (share + (needed - available) * GIB / before["gpu_memory_bytes"])) / 100
    if wanted <= MOST_SHARE:
        replayed.suggest("gpu_memory_utilization", wanted, f"{share:g} -> {wanted:g} fits")
    else:
        replayed.refuse("gpu_memory_utilization", f"{MOST_SHARE:g} is the most, and it is short")


def _suggest_length(replayed: Replay) -> None:
    """Suggest the longest context that fits, and report the effect of an FP8 KV cache."""
    before = replayed.answer
    longest, wanted = before["max_context_tokens_that_fit"] or 0, before["context_tokens"]
    if 0 < longest < wanted and (value := whole(longest)):
        replayed.suggest("max_model_len", value, f"{wanted:,} -> {value:,} fits")
    elif not longest:
        replayed.refuse("max_model_len", "no length fits")
    changed = replayed.tried(kv_cache_dtype="fp8")
    if not changed or changed["kv_cache_dtype"] == before["kv_cache_dtype"]:
        return
    fitting = changed["max_context_tokens_that_fit"]
    if not fitting:
        replayed.refuse("kv_cache_dtype", "no length fits")
    elif changed["fits"]:
        held = (
            f"{changed['max_concurrency']:,.1f} requests of {wanted:,} tokens, {before['max_concurrency']:,.1f} before"
        )
        replayed.outcomes["kv_cache_dtype"] = f"FP8 KV holds {held}"
    else:
        replayed.outcomes["kv_cache_dtype"] = f"FP8 KV fits {min(whole(fitting), wanted):,} of {wanted:,} tokens"


def _suggest_more_memory(replayed: Replay, shares: bool) -> None:
    """Suggest the least share (if `shares`) and the least TP that fit, and report the effect of FP8 weights."""
    before = replayed.answer
    if (share := before["gpu_memory_utilization"]) and shares:
        tries = []
        while share + STEP <= MOST_SHARE + 1e-9:
            tries.append(share := round(share + STEP, 2))
        _first_that_fits(replayed, "gpu_memory_utilization", tries, f"even {MOST_SHARE:g} does not fit")
    sizes = [size for size in TENSOR_PARALLEL_SIZES if size > before["tensor_parallel_size"]]
    _first_that_fits(replayed, "tensor_parallel_size", sizes, "even 8 does not fit, add pipeline stages")
    changed = replayed.tried(weight_dtype="fp8")
    if changed and changed["weight_dtype"] != before["weight_dtype"]:
        gib = (changed["weights_bytes_per_gpu"] or 0) / GIB
        replayed.outcomes["weight_dtype"] = f"{gib:,.2f} GiB of weights a GPU" + (", fits" if changed["fits"] else "")


def _first_that_fits(replayed: Replay, name: str, tries: Sequence[float], none: str) -> None:
    for value in tries:
        if (changed := replayed.tried(**{name: value})) and changed["fits"]:
            replayed.suggest(name, value, f"{replayed.answer[name]:g} -> {value:g} fits")
            return
    replayed.refuse(name, none)


def _suggest_smaller(replayed: Replay, name: str, value: int) -> None:
    """Suggest a smaller value of an input, with the activation memory that it frees."""
    before = replayed.answer
    if value >= before[name] or (changed := replayed.tried(**{name: value})) is None:
        return
    freed = (before["activation_bytes_per_gpu"] or 0) - (changed["activation_bytes_per_gpu"] or 0)
    replayed.values[name], replayed.freed[name] = value, int(freed)
    if freed >= _WORTH:
        replayed.outcomes[name] = f"{before[name]:,} -> {value:,} frees {freed / GIB:,.2f} GiB a GPU"


def _rows(sized: Sized, answer: RawMapping, sampler: bool) -> dict[str, Row]:
    """One GPU's memory by part, in the order of allocation: each part beside what those before it left.

    The sampler runs last, in the memory of the activations and what is outside the budget beside the graphs.
    """
    columns = {name: column for name, column in sized.known.items() if getattr(column, "ndim", 0)}
    values = {name: float(column[0]) for name, column in columns.items() if column.dtype.kind in "fiub"}
    total: float = answer["gpu_memory_bytes"]
    counts_graphs = values.get("graphs_reserved")
    left, outside = values.get("memory_budget_bytes", total), total - values.get("memory_budget_bytes", 0)
    rows: dict[str, Row] = {}

    def add_row(name: str, words: str, needed: float, available: float) -> None:
        rows[name] = (name + words, int(needed), int(available), max(0, int(needed - available)))

    for name, column in _PARTS:
        needed = answer[column] or 0
        if name == "CUDA graphs" and not counts_graphs:
            add_row(name, ", outside the budget", needed, outside)
        else:
            add_row(name, "", needed, left)
            left = max(0.0, left - needed)
    held = f": {answer['concurrent_requests']:,} of {answer['context_tokens']:,} tokens"
    add_row("KV pool", held, values.get("kv_needed_bytes_per_gpu", 0), max(0, answer["kv_pool_bytes_per_gpu"] or 0))
    if sampler and (logits := values.get("sampler_bytes", 0)):
        graphs = 0 if counts_graphs else answer["cuda_graph_bytes_per_gpu"] or 0
        available = (answer["activation_bytes_per_gpu"] or 0) + max(0.0, outside - graphs)
        add_row("sampler", f", {answer['max_num_seqs']:,} rows of the vocabulary", logits, available)
    return rows


def _contradiction(verdict: Verdict, rows: Mapping[str, Row], chance: float | None) -> str | None:
    """A sentence if the part that ran out in the log fits by the prediction, with the chance that it fits; None where
    both agree."""
    name, fits, did = _RAN_OUT.get(verdict.cause.label, ("", "", ""))
    if name not in rows or verdict.failure is None or verdict.cause.case in ("refused", "state"):
        return None
    _, needed, _, short = rows[name]
    if short:
        return None
    claim = fits if any(short for *_, short in rows.values()) else "this fits"
    why = "so the GPU, TP or a setting differs, or something else held memory."
    held = verdict.amounts.get("allocated_bytes", 0.0)
    if verdict.cause.label == WEIGHTS and held > _BESIDE * needed:
        why += f" When it failed {held / GIB:,.2f} GiB were allocated, and the weights are {needed / GIB:,.2f}."
    how_sure = f" ({sure(chance)})" if chance is not None else ""
    return f"Our prediction says {claim}{how_sure}; the engine {did}, {why}"


def _weights_differ(startup: StartupLog | None, answer: RawMapping) -> tuple[str, ...]:
    """A note if the log's weights differ from the predicted ones, so that another configuration ran."""
    seen = startup.figures.get("weights_bytes_per_gpu", {}) if startup else {}
    measured, taken = max((figure.value for figure in seen.values()), default=0), answer["weights_bytes_per_gpu"] or 0
    if not seen or abs(measured - taken) <= OTHER_WEIGHTS * taken or not taken:
        return ()
    sizes = f"{measured / GIB:,.2f} GiB of weights a GPU, the replay takes {taken / GIB:,.2f}"
    return (f"the log measured {sizes}: model, precision or parallelism are not those of the log.",)
