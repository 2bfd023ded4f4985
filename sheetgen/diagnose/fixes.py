"""The flags to change for a verdict, in the engine's words, with values from the log, the replay, or as a first
step."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sheetgen.catalog.guidance import Assumption, EngineFlag, FingerprintFile, bare
from sheetgen.catalog.guidance import Fix as Advice
from sheetgen.diagnose.cause import (
    ADDED,
    ENCODER,
    HEALTHY,
    LONG,
    MANY,
    NEARLY_FULL,
    POOL,
    PREFILL,
    SHARED,
    WORKSPACE,
    Queue,
    Verdict,
)
from sheetgen.diagnose.replay import MOST_SHARE, NOT_ENOUGH, Replay, whole
from sheetgen.shipped import shipped_table
from sheetgen.startup.printed_arguments import RENAMED
from sheetgen.startup.startup_log import Argument, StartupLog
from sheetgen.units import GIB, MIB

# The form of a failure where the verdict names none, and forms that only their own fixes help.
_USUAL = {POOL: "length", MANY: "pool", PREFILL: "peak"}
_ALONE = ("refused", "admission", "slots", "empty", "full", "room", "placed", "places", "posing")
# Engines whose profile run precedes the pool and the graphs, which then hold no memory yet.
_PROFILE_FIRST = ("vllm", "nim", "tgi")
# Settings that an engine built ahead of time (TensorRT-LLM in Triton) lacks.
_NOT_IN_BUILT = ("cuda_graph_config",)
# vLLM V1 (EngineCore): the server's default step on cards with less memory than this.
_STEP, _SMALL_CARD_STEP, _LARGE_CARD = "--max-num-batched-tokens", 2048, 70 * GIB
OLLAMA = "ollama"  # based on llama.cpp, with settings of other names
_WORDS = shipped_table("fixes.toml")
_SETTINGS = {name: setting for setting, names in _WORDS["settings"].items() for name in names}
# Without chunked prefill a step shorter than the longest prompt is refused, or the prompt is.
_SPREADS = ("--enable-chunked-prefill", "enable_chunked_prefill")

_OUTRIGHT = "kv_cache_memory_bytes"
_OF_GRAPHS = (
    *("enforce_eager", "disable_cuda_graph", "cudagraph_capture_sizes", "cuda_graph_sizes"),
    *("cuda_graph_max_bs", "cuda_graph_max_bs_decode"),
)
_OFF_BY_DEFAULT = ("cpu_offload_gb", "kv_offloading_size")
_NARROW = re.compile(
    r"(?i)fp8|float8|e4m3|e5m2|w8a8|int8|fp4|int4|awq|gptq|w4a|[48]-?bit|modelopt|bitsandbytes|\bq\d|autoround"
)
USELESS: Any = object()  # in place of a value: the change does not help and is left out
Value = tuple[Any, str]  # a value (None for none), and a remark on it
_LEAST_SHARE = 0.1  # with a smaller share no model is served: only the other process can give way
_SAFETY = 0.3 * GIB  # for the CUDA context of this process, beside the memory of others
_ROUND = 1024  # tokens: raised limits are multiples of it
# TGI limits the prompt by the first two, prompt and answer by the third, which must be larger.
_OF_PROMPT, _OF_BOTH = ("max_input_tokens", "max_input_length"), "max_total_tokens"
# TensorRT-LLM's messages on a prompt longer than its engine was built for.
_BUILT_FOR, _PAST_THE_BUILD = "max_input_len", ("maximum input length", "optimization profile")
_FAR = 8  # times a limit: such a prompt is a mistake
_UNDER_THE_CONTEXT = ("max_prefill_tokens",)  # SGLang takes the larger of it and the context length
_OF_STEP = ("max_num_batched_tokens",)
_BELOW_PREEMPTION = 0.9  # of the running requests when some were preempted, whatever the statistics show
_OF_ANSWER = ("max_tokens", "max_new_tokens")  # parameters of a request
_MOST_STEP = 0.1  # of the card: a larger shortage is not cured by a smaller share for the pool
_FULL_SHARES = ("cuda_memory_fraction",)  # their default is all of the GPU


class Step(str):
    """A step by which to change a setting, in place of the value to change it to."""


SHARE_STEP = Step("by 0.02 to 0.05")
_FIRST_STEPS = {
    (row["direction"], flag): Step(row["by"]) if "by" in row else row["to"]
    for row in _WORDS["first_steps"]
    for flag in row["flags"]
}


@dataclass(frozen=True)
class Fix:
    """One change. `flag` is the engine's; for the direction `free`, which needs no flag, the words of the change."""

    flag: str
    direction: str
    value: int | float | str | None
    reason: str
    cost: str


@dataclass(frozen=True)
class Situation:
    """A fix and the evidence on it: the verdict, the start-up log, the replay.

    plain: the engine's flag without dashes. name: the sheetgen input that it sets. default: its default value.
    """

    fix: Advice
    plain: str
    name: str
    default: float | None
    engine: str | None
    verdict: Verdict
    startup: StartupLog | None
    replayed: Replay | None


def fixes_for(
    verdict: Verdict,
    engine: str | None,
    guidance: FingerprintFile,
    shares: Mapping[str, Assumption],
    startup: StartupLog | None,
    replayed: Replay | None,
    version: str | None = None,
) -> tuple[Fix, ...]:
    """The fixes for a verdict that exist in this version of the engine (None: the log's), the cheapest first; before
    them those that by the replay free what was short, and behind them those that free less."""
    label = verdict.cause.label
    fingerprint = next((f for f in guidance.fingerprints if f.label == label), None)
    if fingerprint is None:
        return ()
    if engine == "llama.cpp" and OLLAMA in verdict.run.clues:
        engine = OLLAMA
    case = verdict.cause.case or _USUAL.get(label)
    chosen = [f for f in fingerprint.fixes if f.case == case and case is not None]
    if case not in _ALONE:
        chosen += [f for f in fingerprint.fixes if f.case is None]
    if _before_the_pool(engine, verdict):
        chosen = [f for f in chosen if not (f.what.startswith("share of the GPU") or "CUDA graph" in f.what)]
    share = shares.get("gpu_memory_utilization")
    flags = guidance.flags.get(engine or "", ())
    version = version or (startup.version if startup and startup.engine == engine else None)
    arguments = tuple(startup.arguments) if startup else ()
    failure = verdict.failure
    # vLLM V1 always uses chunked prefill, and its default step depends on the card.
    has_core = engine == "vllm" and failure is not None and "EngineCore" in failure.match.text
    card_bytes = verdict.amounts.get("gpu_memory_bytes", 0)
    fixes: list[Fix] = []
    is_enough: dict[str, bool] = {}  # by flag, where both are known: whether it frees what was short
    short = verdict.amounts.get("tried_bytes", 0.0) - verdict.amounts.get("free_bytes", math.inf)
    for fix in chosen:
        newest = flag_of(fix, engine, share)
        flag = newest if fix.direction == "free" else in_version(newest, flags, version, arguments)
        if newest is None or flag is None or any(f.flag == flag for f in fixes):
            continue
        if (flag in _NOT_IN_BUILT and "built" in verdict.run.clues) or (flag in _SPREADS and has_core):
            continue
        default = next((f.default for f in flags if f.flag == flag), None)
        if not default and has_core and flag == _STEP and 0 < card_bytes < _LARGE_CARD:
            default = _SMALL_CARD_STEP
        name = setting_of(fix, newest, engine)
        situation = Situation(fix, bare(flag), name, default, engine, verdict, startup, replayed)
        value, remark = value_of(situation)
        if value is USELESS or is_met(situation, value):
            continue
        fixes.append(Fix(flag, fix.direction, value, f"{fix.reason} ({remark})" if remark else fix.reason, fix.cost))
        if replayed and short > 0 and value == replayed.values.get(name) and name in replayed.freed:
            is_enough[flag] = replayed.freed[name] >= short
    ranks = {True: 0, None: 1, False: 2}
    fixes.sort(key=lambda fix: ranks[is_enough.get(fix.flag)])
    return _with_switch_joined(fixes, flags)


def _before_the_pool(engine: str | None, verdict: Verdict) -> bool:
    """True if the failure preceded pool and graphs, so that shrinking them does not help."""
    label, failure = verdict.cause.label, verdict.failure
    if engine not in _PROFILE_FIRST or failure is None:
        return False
    if label == PREFILL:
        return "prefill tokens" in failure.match.text and engine == "tgi"  # in its warm-up
    if label not in (ENCODER, ADDED):
        return verdict.cause.case == "profile"
    at_load = any("create_lora_weights" in frame.text for frame in failure.frames)
    return failure.phase in ("loading", "loaded") or "profile" in failure.stages or at_load


def _with_switch_joined(fixes: list[Fix], flags: Sequence[EngineFlag]) -> tuple[Fix, ...]:
    """The fixes, with the switch for chunked prefill made part of the fix for a shorter step, which needs it."""
    switch = next((f for f in fixes if f.flag in _SPREADS), None)
    step_index = next((i for i, f in enumerate(fixes) if "tokens" in f.flag and f.direction == "lower"), None)
    if switch is None or step_index is None:
        return tuple(fixes)
    until = next((f.until for f in flags if f.flag == switch.flag), None)
    who = f"releases up to {until} need" if until else "it needs"
    step = fixes[step_index]
    fixes[step_index] = replace(step, reason=f"{step.reason} (together with {switch.flag}, which {who} for this)")
    return tuple(f for f in fixes if f is not switch)


def flag_of(fix: Advice, engine: str | None, share: Assumption | None) -> str | None:
    """The engine's flag for a fix, or the words of a fix without a flag; None if the engine has no such setting."""
    if fix.direction == "free":
        return fix.what
    if engine is None or (fix.engines and engine not in fix.engines):
        return None
    shared = share.flags if share and fix.setting == "gpu_memory_utilization" else {}
    return fix.flags.get(engine) or shared.get(engine)


def in_version(
    flag: str | None, flags: Sequence[EngineFlag], version: str | None, argument_names: Collection[str]
) -> str | None:
    """The flag's name in a release; None if the release lacks it or ignores it.

    Without a version it is the name among the log's own arguments, else the newest.
    """
    newest = next((entry.instead for entry in flags if entry.flag == flag and entry.instead), flag)
    family = [entry for entry in flags if newest in (entry.flag, entry.instead)]
    if version is None and (named := [entry.flag for entry in family if bare(entry.flag) in argument_names]):
        return named[0]
    return next((entry.flag for entry in family if entry.serves(version)), None) if family else flag


def setting_of(fix: Advice, flag: str, engine: str | None) -> str:
    """The sheetgen input that a flag sets."""
    plain = bare(flag)
    return fix.setting or RENAMED.get(engine or "", {}).get(plain) or _SETTINGS.get(plain, plain)


def value_of(situation: Situation) -> Value:
    """The value to set (`USELESS`: leave the change out), and a remark on its effect."""
    fix, replayed = situation.fix, situation.replayed
    outcome = replayed.outcomes.get(situation.name, "") if replayed else ""
    suggested = replayed.values.get(situation.name) if replayed else None
    if (of_log := from_log(situation)) is not None:
        value, remark = of_log
        same = value is not None and value == suggested
        return value, "; ".join(filter(None, (remark, outcome if same else "")))
    if replayed and suggested is not None:
        before = replayed.answer.get(situation.name)
        is_right_way = before is None or (suggested > before) == (fix.direction == "raise")
        if fix.direction not in ("raise", "lower") or is_right_way:
            return suggested, outcome
    if replayed and situation.name in replayed.not_enough:
        return None, outcome
    now, given = current(situation), fix.values.get(situation.engine or "", fix.value)
    if given and given.isdigit():
        # If the setting was at most the catalog's number, a quarter of it.
        number, before = int(given), now or situation.default
        if before and fix.direction == "lower" and number >= before:
            number = max(1, int(before) // 4)
            if number >= before:
                return USELESS, ""
        remark = f"{situation.default:,.0f} is the default" if situation.default and not now else ""
        return number, "; ".join(filter(None, (outcome, remark)))
    value, remark = _first_step(situation, now)
    return (given if value is None else value), outcome or remark


def _first_step(situation: Situation, now: float | None) -> Value:
    """A first value or step to try, if neither the log nor the replay gives one."""
    direction, name = situation.fix.direction, situation.name
    if name == "gpu_memory_utilization":
        return _share_value(situation, now)
    if situation.plain == _OUTRIGHT:
        return _pool_bytes_value(situation)
    if words := _FIRST_STEPS.get((direction, situation.plain)):
        return words, ""
    if name == "tensor_parallel_size" and direction == "raise":
        return (int(2 * now) if now else "twice as many"), ""
    limits = ("max_num_seqs", "max_num_batched_tokens")
    is_limit = name in limits or (name == "max_model_len" and situation.verdict.cause.label in (POOL, WORKSPACE))
    if is_limit and direction == "lower":
        return (USELESS if now == 1 else int(now) // 2 if now else "half"), ""
    return None, ""


def _pool_bytes_value(situation: Situation) -> Value:
    """A pool size smaller by what the failed allocation was short of; USELESS if the log has no pool size."""
    pools = situation.startup.figures.get("kv_pool_bytes_per_gpu", {}).values() if situation.startup else ()
    pool = min((figure.value for figure in pools), default=0.0)
    amounts = situation.verdict.amounts
    short = max(0.0, amounts.get("tried_bytes", 0.0) - amounts.get("free_bytes", 0.0))
    left = int((pool - short - _SAFETY) / MIB)
    if left <= 0 or not short:
        return USELESS, ""
    return (
        f"{left}M",
        f"the pool's {pool / GIB:,.2f} GiB less what was short, {short / GIB:,.2f} GiB, and {_SAFETY / GIB:g}",
    )


def stated(situation: Situation, *names: str) -> Argument | None:
    """The first of these arguments that the log states; None for none."""
    arguments = situation.startup.arguments if situation.startup else {}
    return next((arguments[name] for name in names if name in arguments), None)


def is_met(situation: Situation, value: object) -> bool:
    """True if the log shows that the change is already made, or concerns a feature that is not in use."""
    direction, given = situation.fix.direction, stated(situation, situation.plain)
    if situation.name in ("kv_cache_dtype", "cache_type_k", "kv_cache_config") and direction == "set":
        return "kv-in-8-bits" in situation.verdict.run.clues or (given is not None and _is_narrow(given.value))
    if situation.name == "weight_dtype" and direction == "set":
        model = stated(situation, "model", "model_tag", "model_path")
        return "narrow-weights" in situation.verdict.run.clues or any(
            argument is not None and _is_narrow(argument.value) for argument in (given, model)
        )
    if situation.name == "gpu_memory_utilization" and stated(situation, _OUTRIGHT):
        return True  # the pool's size was set, so the share has no effect
    eager = stated(situation, "enforce_eager", "disable_cuda_graph")
    if situation.plain in _OF_GRAPHS and eager is not None and eager.value is True:
        return True
    if direction == "set" and given is not None and value is None:
        return given.value not in (False, None)
    if situation.plain in _OFF_BY_DEFAULT and direction == "lower":
        shows_all = stated(situation, "model", "model_tag", "model_path") is not None
        return (shows_all and given is None) or (given is not None and given.value in (0, 0.0))
    now = given.value if given is not None and isinstance(given.value, (int, float)) else None
    if now is None or isinstance(now, bool) or not isinstance(value, (int, float)):
        return False
    return now >= value if direction == "raise" else 0 < now <= value if direction == "lower" else False


def _is_narrow(words: object) -> bool:
    """True if a precision, or the name of a checkpoint, has eight bits or fewer."""
    return isinstance(words, str) and _NARROW.search(words) is not None


def _share_value(situation: Situation, now: float | None) -> Value:
    """A first value or step for the share of the GPU's memory, of which `now` is set."""
    direction, amounts = situation.fix.direction, situation.verdict.amounts
    if situation.verdict.cause.label == SHARED:
        return None, ""
    if direction == "raise":
        if situation.plain in _FULL_SHARES and (now or situation.default) == situation.default:
            return int(situation.default or 1), "its default: it helps only where it was set lower"
        if now is None:
            return SHARE_STEP, ""
        return (round(min(MOST_SHARE, now + 0.05), 2), "") if now < MOST_SHARE else (None, f"{NOT_ENOUGH}: it is {now}")
    # The shortage of the failed allocation as a share of the card, plus 0.01; 0 where unknown.
    short, total = amounts.get("tried_bytes", 0) - amounts.get("free_bytes", 0), amounts.get("gpu_memory_bytes", 0)
    step = math.ceil(100 * short / total) / 100 + 0.01 if direction == "lower" and short > 0 and total else 0.0
    if step > _MOST_STEP:
        return USELESS, ""
    if direction == "lower" and now and now > 0.2:
        return round(max(0.1, now - max(0.03, step)), 2), ""
    return (Step(f"by {max(0.02, step):.2f}") if step else SHARE_STEP), ""


def current(situation: Situation) -> float | None:
    """The value of the setting by the log; None where the log does not state it."""
    of_step = situation.verdict.of_failure.get("prefill_tokens") if situation.name == "max_num_batched_tokens" else None
    if stated := situation.verdict.of_failure.get(situation.name, of_step):
        return stated
    startup = situation.startup
    for theirs, ours in RENAMED[startup.engine].items() if startup else ():
        argument = startup.arguments.get(theirs) if startup else None
        if ours == situation.name and argument and isinstance(argument.value, (int, float)) and argument.value > 0:
            return float(argument.value)
    return situation.verdict.run.figures.get(situation.name)


def from_log(situation: Situation) -> Value | None:
    """The value that follows from the log's figures alone; None for none."""
    cause = situation.verdict.cause
    if cause.label == HEALTHY and situation.verdict.queue:
        return _value_for_queue(situation, situation.verdict.queue)
    if cause.label == POOL:
        return _value_for_pool(situation)
    if cause.label == SHARED and situation.name == "gpu_memory_utilization":
        figures = situation.verdict.figures
        free, total = figures.get("free_at_start_gib"), figures.get("gpu_memory_gib")
        if free and total:
            share = math.floor(100 * (free * GIB - _SAFETY) / (total * GIB)) / 100
            return (share if share >= _LEAST_SHARE else USELESS), ""
    if cause.label == PREFILL and cause.case == "refused":
        return _value_for_refusal(situation)
    if cause.label in (MANY, LONG) and cause.case != "room" and situation.fix.direction == "lower":
        return _value_for_full_pool(situation)
    return None


def _value_for_queue(situation: Situation, queue: Queue) -> Value | None:
    """The number of replicas, or of sequences in one, that serves the waiting requests beside the running ones."""
    want, direction = queue.running + queue.waiting, situation.fix.direction
    if direction == "free":
        n = math.ceil(want / queue.running)
        return n, f"{want:,} run or wait, {queue.running:,} at once in each"
    if situation.name == "max_num_seqs":
        held = math.floor(round(queue.running * NEARLY_FULL / queue.usage, 6)) if queue.usage else want
        more, both = min(want, held), f"{want:,} run or wait"
        remark = both if held >= want else f"{both}, the pool holds about {held:,}"
        return (more, remark) if more > queue.running else (USELESS, "")
    return None


def _value_for_pool(situation: Situation) -> Value | None:
    """The value with which one request fits into the KV pool, by the engine's own figures."""
    figures, name = situation.verdict.figures, situation.name
    needed, there = figures.get("kv_needed_gib", 0), figures.get("kv_available_gib", 0)
    if name == "max_num_seqs" and "mamba_blocks" in figures:
        return int(figures["mamba_blocks"]), ""
    if name == "gpu_memory_utilization":
        # The share in use plus what one request is short of, up to the most with which any engine starts.
        now = current(situation)
        seen = situation.startup.figures.get("gpu_memory_bytes", {}) if situation.startup else {}
        total = next((figure.value for figure in seen.values()), 0)
        share = math.ceil(100 * (now + (needed - there) * GIB / total)) / 100 if now and total else 0
        return (share, "") if needed > there and 0 < share <= MOST_SHARE else None
    if situation.fix.direction != "lower":
        return None
    if name == "max_model_len":
        if (longest := figures.get("longest_max_model_len", 0)) > 0:
            return int(longest), f"the log says that {longest:,.0f} would fit"
        if (held := figures.get("kv_tokens_available", 0)) > 0:
            return int(held), f"the log says that the pool holds {held:,.0f}"
        length = whole(figures.get("max_model_len", 0) * there / needed) if needed > 0 and there > 0 else 0
        if length > 0:
            return length, f"worked out from {there:,.2f} of {needed:,.2f} GiB"
    asked = situation.verdict.of_failure.get("asked_tokens", 0)
    if asked > 1 and name in ("max_model_len", "max_batch_total_tokens"):
        return int(asked) // 2, f"{asked:,.0f} did not fit: half, and half again until it starts"
    return None


def _value_for_refusal(situation: Situation) -> Value | None:
    """The value for a refused request: of the limit on the prompt, or of that on prompt and answer together."""
    figures, plain, failure = situation.verdict.figures, situation.plain, situation.verdict.failure
    prompt, answer = figures.get("prompt_tokens", 0), figures.get("completion_tokens", 0)
    limit, both = figures.get("limit_tokens", 0), figures.get("requested_tokens", 0) or prompt + answer
    answer_is_over = 0 < prompt < limit < both
    if plain in _OF_STEP and failure and "context length" in failure.match.text:
        return USELESS, ""  # the message names another limit
    if plain == _BUILT_FOR:
        if not failure or not any(words in failure.match.text for words in _PAST_THE_BUILD):
            return USELESS, ""
        both = prompt
    if plain in _OF_ANSWER:
        remark = f"the limit is {limit:,.0f}, the prompt has {prompt:,.0f}"
        return (int(limit - prompt), remark) if answer_is_over else (USELESS, "")
    if plain in _UNDER_THE_CONTEXT and limit:
        return USELESS, ""
    if situation.fix.direction != "raise":
        return None
    if plain in _OF_PROMPT:
        if answer_is_over:
            return USELESS, ""
        if not limit < prompt < 10**7:
            return None, ""
        return _up(prompt), "--max-batch-prefill-tokens must not be below it"
    if plain == _OF_BOTH:
        if both <= limit or both >= 10**7:
            return None, "it must be above the limit of the prompt"
        if answer_is_over:
            return _up(both), f"the limit of the prompt must stay below it, at {prompt:,.0f} or more"
        answer = max(answer, _ROUND)
        return _up(_up(prompt) + answer), f"above the limit of the prompt, with {answer:,.0f} tokens for the answer"
    if 0 < _FAR * limit < both:
        return None, f"it is {both / limit:,.0f} times the limit: look first at what the client sends"
    return (_up(both), "") if limit < both < 10**7 else None


def _up(tokens: float) -> int:
    return math.ceil(tokens / _ROUND) * _ROUND


def _value_for_full_pool(situation: Situation) -> Value | None:
    """The value by the fullest statistics before the failure: running requests and usage of the pool."""
    failure, usage = situation.verdict.failure, situation.verdict.run.usage
    seen = [s for s in usage.until(failure.match.line_number if failure else None) if s.usage]
    last = max(reversed(seen), key=lambda s: s.usage or 0.0, default=None)
    if last is None:
        return None
    if situation.name == "max_num_seqs":
        running = int(last.running)
        if running <= 1:
            return USELESS, ""
        if situation.verdict.cause.label == LONG:
            return running // 2, f"{running:,} ran: half as many may each grow to twice the length"
        most = _BELOW_PREEMPTION if failure and "preempt" in failure.match.text else 1.0
        return max(1, int(running * min(most, 0.95 / (last.usage or 1)))), f"{running:,} ran"
    if situation.name == "max_model_len" and last.running >= 1:
        of_start = situation.startup.figures.get("kv_tokens", {}).values() if situation.startup else ()
        of_last = last.tokens / last.usage if last.tokens and last.usage else 0
        pools = (situation.verdict.figures.get("kv_tokens"), of_last, *(figure.value for figure in of_start))
        if pool := next(filter(None, pools), None):
            remark = f"the pool's {pool:,.0f} tokens over the {last.running:,.0f} that ran"
            return whole(pool / last.running) or None, remark
        return None, f"to the pool's tokens over the {last.running:,.0f} that ran; the log does not print the pool"
    return None
