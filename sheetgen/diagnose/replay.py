"""The sizing engine on the configuration of a log: what each bill needs, what there is, and what a change gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sheetgen.api import record, sized_point
from sheetgen.catalog.load import Catalog
from sheetgen.diagnose import bills
from sheetgen.diagnose.rules import ADDED, LONG, MANY, POOL, PREFILL, SAMPLER, WEIGHTS, WORKSPACE
from sheetgen.diagnose.verdict import Verdict
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.startup.inputs import ask
from sheetgen.startup.patterns import Figure
from sheetgen.startup.read import Measured, StartupLog, measure
from sheetgen.startup.words import RENAMED
from sheetgen.units import GIB

STEP = 0.01  # of gpu_memory_utilization
MOST_SHARE = 0.97
NOT_ENOUGH = "not enough by itself"
_WORTH = 0.005 * GIB  # what a page shows as 0.01
TOKENS_AT_ONCE = 1024  # a length is told in whole thousands of 1,024
_OF_ENGINE = {"nim": "vllm"}  # whose arguments its log prints
_FROM_FIGURES = ("max_model_len", "max_num_seqs", "gpu_memory_utilization")


@dataclass
class Replay:
    """The sized configuration; `rows` are bills of one GPU in bytes: name, needed, there, short (0 where it fits)."""

    inputs: dict[str, Any]
    answer: dict[str, Any]
    rows: list[tuple[str, int, int | None, int]] = field(default_factory=list)
    outcomes: dict[str, str] = field(default_factory=dict)  # by input: what its suggested value gives
    values: dict[str, Any] = field(default_factory=dict)  # by input: the value that is suggested
    notes: tuple[str, ...] = ()
    contradiction: str | None = None  # where the prediction fits what the log says did not fit


def replay(
    verdict: Verdict, startup: StartupLog | None, engine: str | None, options: Mapping[str, Any], catalog: Catalog
) -> tuple[Replay | None, tuple[str, ...]]:
    """The replay, or the reasons why there is none. Options win over the log."""
    try:
        inputs, notes = _inputs(verdict, startup, engine, options, catalog)
        sized = sized_point(inputs, catalog)
    except SheetgenError as error:
        return None, error.problems
    found = Replay(inputs, record(sized), notes=notes)
    found.rows = bills.rows(sized, found.answer, sampler=verdict.bill.label == SAMPLER)
    found.notes += bills.weights_differ(startup, found.answer)
    found.contradiction = bills.contradiction(verdict, found.rows)
    _suggest(found, verdict, catalog)
    return found, ()


def _inputs(
    verdict: Verdict, startup: StartupLog | None, engine: str | None, options: Mapping[str, Any], catalog: Catalog
) -> tuple[dict[str, Any], tuple[str, ...]]:
    given = {name: value for name, value in options.items() if value is not None}
    told = verdict.failure.match.figures if verdict.failure else {}
    base = _OF_ENGINE.get(engine or "vllm", engine or "vllm")
    if base not in RENAMED:
        if "model" not in given:
            raise ScenarioError("the log does not say which model was loaded. Add --model NAME.")
        return {"engine": engine, **given}, ()
    log = startup if startup is not None and startup.engine == base else StartupLog(base, None, {}, {})
    measured = _with_memory(measure(log), verdict)
    asked = ask(log, measured, given, catalog)
    for name in _FROM_FIGURES:
        if name in told and name not in given and told[name] > 0:
            value = told[name]
            asked.inputs[name] = int(value) if value == int(value) else value
    length, limit = (
        asked.inputs.get("max_model_len"),
        catalog.resolve_model(asked.inputs["model"])[0].max_context_tokens,
    )
    if length and limit and length > limit and "max_model_len" not in given:
        asked.notes.append(
            f"max_model_len is {length:,.0f} in the log, over the model's {limit:,}, which was replayed."
        )
        length = asked.inputs["max_model_len"] = limit
    if length and not {"context", "context_tokens"} & given.keys():
        asked.inputs["context_tokens"] = length
    return asked.inputs, (*asked.not_stated, *asked.notes)


def _with_memory(measured: Measured, verdict: Verdict) -> Measured:
    """The card's memory from the line that failed, where the start did not print it."""
    if "gpu_memory_bytes" in measured.figures or verdict.failure is None:
        return measured
    match = verdict.failure.match
    total = verdict.failure.amounts.get("gpu_memory_bytes") or match.figures.get("gpu_memory_gib", 0) * GIB
    for other in verdict.run.failures:
        total = total or other.amounts.get("gpu_memory_bytes", 0)
    if not total:
        return measured
    figure = Figure("gpu_memory_bytes", total, match.rank, match.line_number, match.text)
    return replace(measured, figures={**measured.figures, "gpu_memory_bytes": figure})


def _try(found: Replay, catalog: Catalog, **changes: Any) -> dict[str, Any] | None:
    """The answer with some inputs changed; None where it cannot be sized."""
    try:
        return record(sized_point({**found.inputs, **changes}, catalog))
    except SheetgenError:
        return None


def whole(tokens: float) -> int:
    """A length that is easily typed and not above `tokens`."""
    step = TOKENS_AT_ONCE if tokens >= 4 * TOKENS_AT_ONCE else 16
    return int(tokens // step * step)


def _suggest(found: Replay, verdict: Verdict, catalog: Catalog) -> None:
    """The value of each input that would have fit, and what it gives."""
    label, before = verdict.bill.label, found.answer
    told = {**verdict.run.figures, **(verdict.failure.match.figures if verdict.failure else {})}
    measured = told.get("kv_needed_gib", 0) > told.get("kv_available_gib", 0) > 0
    if measured:
        _as_measured(found, told, catalog)
    elif verdict.bill.case != "empty" and (label in (LONG, MANY, ADDED) or (label == POOL and not before["fits"])):
        _lengths(found, catalog)
    if label in (POOL, WEIGHTS) and not before["fits"]:
        _more(found, catalog, shares=not measured)
    if label in (SAMPLER, WORKSPACE):
        _freed(found, "max_num_seqs", min(256, max(1, before["max_num_seqs"] // 4)), catalog)
    if label in (PREFILL, WORKSPACE) and verdict.bill.case != "refused":
        fewer = min(2048, max(256, before["max_num_batched_tokens"] // 4))
        _freed(found, "max_num_batched_tokens", fewer, catalog)


def _as_measured(found: Replay, told: Mapping[str, float], catalog: Catalog) -> None:
    """The engine said what one request needs and what there is: that outranks the prediction of both."""
    needed, there, length = told["kv_needed_gib"], told["kv_available_gib"], told.get("max_model_len", 0)
    name = f"KV pool, as the engine measured it: 1 of {length:,.0f} tokens"
    found.rows[-1] = (name, int(needed * GIB), int(there * GIB), int((needed - there) * GIB))
    longest = told.get("longest_max_model_len") or length * there / needed
    if value := whole(longest):
        found.values["max_model_len"] = value
        found.outcomes["max_model_len"] = f"{length:,.0f} -> {value:,} fits"
    changed, before = _try(found, catalog, kv_cache_dtype="fp8"), found.answer
    if changed and changed["kv_cache_dtype"] != before["kv_cache_dtype"] and changed["kv_bytes_per_token"]:
        fits = min(int(length), whole(longest * before["kv_bytes_per_token"] / changed["kv_bytes_per_token"]))
        found.outcomes["kv_cache_dtype"] = f"FP8 KV fits {fits:,} of {length:,.0f} tokens"
    share = before["gpu_memory_utilization"]
    wanted = math.ceil(100 * (share + (needed - there) * GIB / before["gpu_memory_bytes"])) / 100
    if wanted <= MOST_SHARE:
        found.values["gpu_memory_utilization"] = wanted
        found.outcomes["gpu_memory_utilization"] = f"{share:g} -> {wanted:g} fits"
    else:
        found.outcomes["gpu_memory_utilization"] = f"{NOT_ENOUGH}: {MOST_SHARE:g} is the most, and it is short"


def _lengths(found: Replay, catalog: Catalog) -> None:
    before = found.answer
    longest, asked = before["max_context_tokens_that_fit"] or 0, before["context_tokens"]
    if 0 < longest < asked and (value := whole(longest)):
        found.values["max_model_len"] = value
        found.outcomes["max_model_len"] = f"{asked:,} -> {value:,} fits"
    elif not longest:
        found.outcomes["max_model_len"] = f"{NOT_ENOUGH}: no length fits"
    changed = _try(found, catalog, kv_cache_dtype="fp8")
    if changed and changed["kv_cache_dtype"] != before["kv_cache_dtype"] and not changed["max_context_tokens_that_fit"]:
        found.outcomes["kv_cache_dtype"] = f"{NOT_ENOUGH}: no length fits"
    elif changed and changed["kv_cache_dtype"] != before["kv_cache_dtype"]:
        fits = min(whole(changed["max_context_tokens_that_fit"] or 0), asked)
        found.outcomes["kv_cache_dtype"] = f"FP8 KV fits {fits:,} of {asked:,} tokens"
        if changed["fits"]:
            found.outcomes["kv_cache_dtype"] = (
                f"FP8 KV holds {changed['max_concurrency']:,.1f} requests of {asked:,} tokens, "
                f"{before['max_concurrency']:,.1f} before"
            )


def _more(found: Replay, catalog: Catalog, shares: bool) -> None:
    before = found.answer
    share = before["gpu_memory_utilization"]
    if share and shares:
        tried = share
        while tried + STEP <= MOST_SHARE + 1e-9:
            tried = round(tried + STEP, 2)
            if (changed := _try(found, catalog, gpu_memory_utilization=tried)) and changed["fits"]:
                found.values["gpu_memory_utilization"] = tried
                found.outcomes["gpu_memory_utilization"] = f"{share:g} -> {tried:g} fits"
                break
        else:
            found.outcomes["gpu_memory_utilization"] = f"{NOT_ENOUGH}: even {MOST_SHARE:g} does not fit"
    for size in (2, 4, 8):
        if size > before["tensor_parallel_size"]:
            changed = _try(found, catalog, tensor_parallel_size=size)
            if changed and changed["fits"]:
                found.values["tensor_parallel_size"] = size
                found.outcomes["tensor_parallel_size"] = f"{before['tensor_parallel_size']} -> {size} fits"
                break
    else:
        found.outcomes["tensor_parallel_size"] = f"{NOT_ENOUGH}: even 8 does not fit, add pipeline stages"
    changed = _try(found, catalog, weight_dtype="fp8")
    if changed and changed["weight_dtype"] != before["weight_dtype"]:
        gib = (changed["weights_bytes_per_gpu"] or 0) / GIB
        found.outcomes["weight_dtype"] = f"{gib:,.2f} GiB of weights a GPU" + (", fits" if changed["fits"] else "")


def _freed(found: Replay, name: str, value: int, catalog: Catalog) -> None:
    before = found.answer
    if value >= before[name]:
        return
    changed = _try(found, catalog, **{name: value})
    if changed is None:
        return
    freed = (before["activation_bytes_per_gpu"] or 0) - (changed["activation_bytes_per_gpu"] or 0)
    found.values[name] = value
    if freed >= _WORTH:
        found.outcomes[name] = f"{before[name]:,} -> {value:,} frees {freed / GIB:,.2f} GiB a GPU"
