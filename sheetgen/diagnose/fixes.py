"""The flags to move for a verdict, in the engine's words, with a value where log or replay give one."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.guidance import Assumption, FingerprintFile, bare
from sheetgen.catalog.guidance import Fix as Advice
from sheetgen.catalog.signatures import EngineFlag
from sheetgen.diagnose.replay import MOST_SHARE, NOT_ENOUGH, Replay, whole
from sheetgen.diagnose.verdict import Verdict
from sheetgen.startup.read import StartupLog
from sheetgen.startup.words import RENAMED
from sheetgen.units import GIB

# The form of a death where the verdict names none, and forms in which nothing was allocated, so that no memory helps.
_USUAL = {"startup_kv_pool_too_small": "length", "concurrency_spike": "pool", "prefill_long_prompt": "peak"}
_LIMITS = ("refused", "admission", "slots")
_SETTINGS = {
    "max_total_tokens": "max_model_len", "max_input_tokens": "max_model_len", "ctx_size": "max_model_len",
    "session_len": "max_model_len", "NIM_MAX_MODEL_LEN": "max_model_len", "parallel": "max_num_seqs",
    "NIM_MAX_NUM_SEQS": "max_num_seqs", "max_batch_prefill_tokens": "max_num_batched_tokens",
    "ubatch_size": "max_num_batched_tokens", "num_shard": "tensor_parallel_size",
    "NIM_TENSOR_PARALLEL_SIZE": "tensor_parallel_size", "kv_cache_dtype": "kv_cache_dtype",
    "quantization": "weight_dtype", "max_concurrent_requests": "max_num_seqs", "max_batch_size": "max_num_seqs",
    "cuda_memory_fraction": "gpu_memory_utilization", "NIM_KVCACHE_PERCENT": "gpu_memory_utilization",
}  # fmt: skip
_LEAST_SHARE = 0.1  # below it no model is served: only the other process can give way
_SAFETY = 0.3 * GIB  # beside what another process holds: the context of this one


@dataclass(frozen=True)
class Fix:
    """One change. `flag` is the engine's; words where the direction is free, which no flag does."""

    flag: str
    direction: str
    value: int | float | str | None
    reason: str
    cost: str


def fixes_for(
    verdict: Verdict, engine: str | None, known: FingerprintFile, shares: Mapping[str, Assumption],
    startup: StartupLog | None, replayed: Replay | None, version: str | None = None,
) -> tuple[Fix, ...]:  # fmt: skip
    """Every fix of the label that the engine has in this version, or the log's, in the order of their cost."""
    label = verdict.bill.label
    one = next((f for f in known.fingerprints if f.label == label), None)
    if one is None:
        return ()
    case = verdict.bill.case or _USUAL.get(label)
    chosen = [f for f in one.fixes if f.case == case and case is not None]
    if case not in _LIMITS:
        chosen += [f for f in one.fixes if f.case is None]
    share = shares.get("gpu_memory_utilization")
    flags = known.flags.get(engine or "", ())
    version = version or (startup.version if startup and startup.engine == engine else None)
    arguments = tuple(startup.arguments) if startup else ()
    found: list[Fix] = []
    for fix in chosen:
        newest = flag_of(fix, engine, share)
        flag = newest if fix.direction == "free" else in_version(newest, flags, version, arguments)
        if newest is None or flag is None or any(f.flag == flag for f in found):
            continue
        name = setting_of(fix, newest, engine)
        value, said = _value(fix, name, engine, verdict, startup, replayed)
        if value is _USELESS:
            continue
        found.append(Fix(flag, fix.direction, value, f"{fix.reason} ({said})" if said else fix.reason, fix.cost))
    return tuple(found)


def flag_of(fix: Advice, engine: str | None, share: Assumption | None) -> str | None:
    """The engine's flag; words for what no flag does; None where this engine has nothing to turn."""
    if fix.direction == "free":
        return fix.what
    if engine is None or (fix.engines and engine not in fix.engines):
        return None
    shared = share.flags if share and fix.setting == "gpu_memory_utilization" else {}
    return fix.flags.get(engine) or shared.get(engine)


def in_version(
    flag: str | None, flags: Sequence[EngineFlag], version: str | None, said: Collection[str] = ()
) -> str | None:
    """The flag as a release calls it; None where it has none, or one that no longer does anything.

    Without a version the name that the log's own arguments (`said`) have is taken, else the newest.
    """
    newest = next((one.instead for one in flags if one.flag == flag and one.instead), flag)
    family = [one for one in flags if newest in (one.flag, one.instead)]
    if version is None and (named := [one.flag for one in family if bare(one.flag) in said]):
        return named[0]
    return next((one.flag for one in family if one.serves(version)), None) if family else flag


def setting_of(fix: Advice, flag: str, engine: str | None) -> str:
    """Our name of what a flag sets."""
    plain = bare(flag)
    return fix.setting or RENAMED.get(engine or "", {}).get(plain) or _SETTINGS.get(plain, plain)


_USELESS: Any = object()


def _value(
    fix: Advice, name: str, engine: str | None, verdict: Verdict, startup: StartupLog | None, replayed: Replay | None
) -> tuple[Any, str]:
    """The value to set, and what is known of its effect. The log's own figures outrank the replay."""
    told = _from_log(fix, name, verdict, startup)
    outcome = replayed.outcomes.get(name, "") if replayed else ""
    if told is not None:
        return told, outcome if replayed and replayed.values.get(name) == told else ""
    if replayed and name in replayed.values:
        value = replayed.values[name]
        right = fix.direction not in ("raise", "lower") or _moves(fix.direction, replayed.answer.get(name), value)
        if right:
            return value, outcome
    if outcome.startswith(NOT_ENOUGH):
        return None, outcome
    given = fix.values.get(engine or "", fix.value)
    now = current(name, startup, verdict)
    if given and given.isdigit():
        number = int(given)
        if now and fix.direction == "lower" and number >= now:
            number = max(1, int(now) // 4)
            if number >= now:
                return _USELESS, ""
        return number, outcome
    if name == "gpu_memory_utilization" and fix.direction == "lower" and now and now > 0.2:
        return _share_that_leaves(now, verdict), outcome
    if name == "tensor_parallel_size" and fix.direction == "raise" and now:
        return int(2 * now), outcome
    return given, outcome


def _share_that_leaves(now: float, verdict: Verdict) -> float:
    """A share that leaves what the failed allocation was short of, and a hundredth; three hundredths at least."""
    amounts = verdict.failure.amounts if verdict.failure else {}
    short, total = amounts.get("tried_bytes", 0) - amounts.get("free_bytes", 0), amounts.get("gpu_memory_bytes", 0)
    step = math.ceil(100 * short / total) / 100 + 0.01 if short > 0 and total else 0.0
    return round(max(0.1, now - max(0.03, step)), 2)


def _moves(direction: str, now: float | None, value: float) -> bool:
    return now is None or (value > now if direction == "raise" else value < now)


def current(name: str, startup: StartupLog | None, verdict: Verdict) -> float | None:
    """What an input was set to, as far as the log says."""
    figures = verdict.failure.match.figures if verdict.failure else {}
    told = figures.get(name) or (figures.get("prefill_tokens") if name == "max_num_batched_tokens" else None)
    if told:
        return told
    if startup is not None:
        for theirs, ours in RENAMED[startup.engine].items():
            argument = startup.arguments.get(theirs)
            if ours == name and argument and isinstance(argument.value, (int, float)) and argument.value > 0:
                return float(argument.value)
    return None


def _from_log(fix: Advice, name: str, verdict: Verdict, startup: StartupLog | None) -> Any:
    """A value that follows from the figures of the log alone."""
    label, run = verdict.bill.label, verdict.run
    figures = {**run.figures, **(verdict.failure.match.figures if verdict.failure else {})}
    if label == "startup_kv_pool_too_small":
        if name == "max_model_len" and fix.direction == "lower":
            return _length_that_fits(figures)
        if name == "max_num_seqs" and "mamba_blocks" in figures:
            return int(figures["mamba_blocks"])
        if name == "gpu_memory_utilization":
            return _share_that_fits(figures, verdict, startup)
    if label == "gpu_shared_by_other_process" and name == "gpu_memory_utilization":
        free, total = figures.get("free_at_start_gib"), figures.get("gpu_memory_gib")
        if free and total:
            share = math.floor(100 * (free * GIB - _SAFETY) / (total * GIB)) / 100
            return share if share >= _LEAST_SHARE else _USELESS
    if label == "prefill_long_prompt" and verdict.bill.case == "refused" and fix.direction == "raise":
        asked = max(figures.get("requested_tokens", 0), figures.get("prompt_tokens", 0) + figures.get(
            "completion_tokens", 0))  # fmt: skip
        limit = figures.get("limit_tokens", 0)
        return math.ceil(asked / 1024) * 1024 if limit < asked < 10**7 else None
    if label == "concurrency_spike" and name == "max_num_seqs" and fix.direction == "lower":
        held = [s for s in run.usage.last if s.usage and s.running > 1]
        return max(1, int(held[-1].running * min(1.0, 0.95 / (held[-1].usage or 1)))) if held else None
    return None


def _length_that_fits(figures: Mapping[str, float]) -> int | None:
    for name in ("longest_max_model_len", "kv_tokens_available"):
        if figures.get(name, 0) > 0:
            return int(figures[name])
    needed, there = figures.get("kv_needed_gib", 0), figures.get("kv_available_gib", 0)
    if needed > 0 and there > 0 and figures.get("max_model_len"):
        return whole(figures["max_model_len"] * there / needed) or None
    return None


def _share_that_fits(figures: Mapping[str, float], verdict: Verdict, startup: StartupLog | None) -> float | None:
    """The share in use and what was short of one request, as far as that stays below what any engine starts with."""
    now = current("gpu_memory_utilization", startup, verdict)
    seen = startup.figures.get("gpu_memory_bytes", {}) if startup else {}
    total = next(iter(seen.values())).value if seen else 0
    short = figures.get("kv_needed_gib", 0) - figures.get("kv_available_gib", 0)
    if not (now and total and short > 0):
        return None
    share = math.ceil(100 * (now + short * GIB / total)) / 100
    return share if share <= MOST_SHARE else None
