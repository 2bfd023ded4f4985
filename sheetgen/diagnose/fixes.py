"""The flags to move for a verdict, in the engine's words, and by how much: by the log, the replay, or a first step."""

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
from sheetgen.startup.printed_arguments import RENAMED
from sheetgen.startup.startup_log import Argument, StartupLog
from sheetgen.units import GIB, MIB

# The form of a death where the verdict names none, and forms whose own fixes are all that help.
_USUAL = {POOL: "length", MANY: "pool", PREFILL: "peak"}
_ALONE = ("refused", "admission", "slots", "empty", "full", "room", "placed", "places", "posing")
# Engines that run one step before they make the pool and the graphs, which then have taken nothing yet.
_PROFILE_FIRST = ("vllm", "nim", "tgi")
# What an engine that is built ahead (TensorRT-LLM in Triton) has not.
_OF_NO_BUILT = ("cuda_graph_config",)
# vLLM since its second engine (EngineCore): a server's default step on a card of less than that.
_STEP, _SMALL_CARD_STEP, _LARGE_CARD = "--max-num-batched-tokens", 2048, 70 * GIB
OLLAMA = "ollama"  # llama.cpp, or its kin, with knobs of other names
_SETTINGS = {
    name: setting
    for setting, names in {
        "max_model_len": (
            "max_total_tokens",
            "max_input_tokens",
            "ctx_size",
            "session_len",
            "NIM_MAX_MODEL_LEN",
            "num_ctx",
        ),
        "max_num_seqs": (
            "parallel",
            "OLLAMA_NUM_PARALLEL",
            "NIM_MAX_NUM_SEQS",
            "max_concurrent_requests",
            "max_batch_size",
        ),
        "max_num_batched_tokens": ("max_batch_prefill_tokens", "ubatch_size", "num_batch", "max_num_tokens"),
        "tensor_parallel_size": ("num_shard", "NIM_TENSOR_PARALLEL_SIZE"),
        "gpu_memory_utilization": ("cuda_memory_fraction", "NIM_KVCACHE_PERCENT", "TGI_WIGGLE_ROOM"),
        "weight_dtype": ("quantization",),
    }.items()
    for name in names
}
# A step shorter than the longest prompt is refused, or the prompt is, where a prompt is not spread over steps.
_SPREADS = ("--enable-chunked-prefill", "enable_chunked_prefill")

_OUTRIGHT = "kv_cache_memory_bytes"
_OF_GRAPHS = (
    "enforce_eager",
    "disable_cuda_graph",
    "cudagraph_capture_sizes",
    "cuda_graph_sizes",
    "cuda_graph_max_bs",
    "cuda_graph_max_bs_decode",
)
_OFF_BY_DEFAULT = ("cpu_offload_gb", "kv_offloading_size")
_NARROW = re.compile(
    r"(?i)fp8|float8|e4m3|e5m2|w8a8|int8|fp4|int4|awq|gptq|w4a|[48]-?bit|modelopt|bitsandbytes|\bq\d|autoround"
)
USELESS: Any = object()  # a change that does not help: it is left out
Value = tuple[Any, str]  # a value, None where there is none, and what is known of it
_LEAST_SHARE = 0.1  # below it no model is served: only the other process can give way
_SAFETY = 0.3 * GIB  # beside what another process holds: the context of this one
_ROUND = 1024  # tokens: a limit is raised to whole thousands of them
# TGI limits the prompt alone by the first, prompt and answer by the second, which must be the larger.
_OF_PROMPT, _OF_BOTH = ("max_input_tokens", "max_input_length"), "max_total_tokens"
# What TensorRT-LLM prints where the length of a prompt is over what its engine was built for.
_BUILT_FOR, _PAST_THE_BUILD = "max_input_len", ("maximum input length", "optimization profile")
_FAR = 8  # times a limit: no prompt that was meant
_UNDER_THE_CONTEXT = ("max_prefill_tokens",)  # SGLang takes the larger of it and the context length
_OF_STEP = ("max_num_batched_tokens",)
_BELOW_PREEMPTION = 0.9  # of the requests that ran when some were preempted, whatever the statistics showed by then
_OF_ANSWER = ("max_tokens", "max_new_tokens")  # what a request asks for
_MOST_STEP = 0.1  # of the card: what is short of more does not go beside a pool
_FULL_SHARES = ("cuda_memory_fraction",)  # whose default is all of the GPU
_LAYERS = ("num_gpu", "n_gpu_layers", "n_gpu_layers_draft")


class Step(str):
    """How far to move it, where another value says what to move it to."""


SHARE_STEP = Step("by 0.02 to 0.05")
_BY_A_FEW = Step("by a few at a time")
_FIRST_STEPS = {
    (direction, flag): words
    for direction, words, flags in (
        (
            "raise",
            "twice as much",
            ("ctx_size", "num_ctx", "swap_space", "max_concurrent_requests", "max_queued_requests", "max_queue_size"),
        ),
        (
            "lower",
            "half",
            (
                "cudagraph_capture_sizes",
                "cuda_graph_sizes",
                "cuda_graph_max_bs",
                "cuda_graph_max_bs_decode",
                "cpu_offload_gb",
                "kv_offloading_size",
                "cache_ram",
                "predict",
                "num_predict",
                "hicache_ratio",
                "max_loras",
                "max_loras_per_batch",
            ),
        ),
        ("raise", _BY_A_FEW, _LAYERS),
        ("lower", _BY_A_FEW, _LAYERS),
    )
    for flag in flags
}


@dataclass(frozen=True)
class Fix:
    """One change. `flag` is the engine's; words where the direction is free, which no flag does."""

    flag: str
    direction: str
    value: int | float | str | None
    reason: str
    cost: str


@dataclass(frozen=True)
class Situation:
    """A change in the light of a log: the verdict, the start, the replay.

    `plain` is the engine's flag without dashes, `name` our input that it sets, `default` what it is if nobody sets it.
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
    known: FingerprintFile,
    shares: Mapping[str, Assumption],
    startup: StartupLog | None,
    replayed: Replay | None,
    version: str | None = None,
) -> tuple[Fix, ...]:
    """Every fix of the label that the engine has in this version, or the log's, in the order of their cost."""
    label = verdict.bill.label
    one = next((f for f in known.fingerprints if f.label == label), None)
    if one is None:
        return ()
    if engine == "llama.cpp" and OLLAMA in verdict.run.clues:
        engine = OLLAMA
    case = verdict.bill.case or _USUAL.get(label)
    chosen = [f for f in one.fixes if f.case == case and case is not None]
    if case not in _ALONE:
        chosen += [f for f in one.fixes if f.case is None]
    if _before_the_pool(engine, verdict):
        chosen = [f for f in chosen if not (f.what.startswith("share of the GPU") or "CUDA graph" in f.what)]
    share = shares.get("gpu_memory_utilization")
    flags = known.flags.get(engine or "", ())
    version = version or (startup.version if startup and startup.engine == engine else None)
    arguments = tuple(startup.arguments) if startup else ()
    failure = verdict.failure
    # vLLM's second engine spreads every prompt over steps, and a server's default step follows the card.
    has_core = engine == "vllm" and failure is not None and "EngineCore" in failure.match.text
    card_bytes = verdict.amounts.get("gpu_memory_bytes", 0)
    found: list[Fix] = []
    for fix in chosen:
        newest = flag_of(fix, engine, share)
        flag = newest if fix.direction == "free" else in_version(newest, flags, version, arguments)
        if newest is None or flag is None or any(f.flag == flag for f in found):
            continue
        if (flag in _OF_NO_BUILT and "built" in verdict.run.clues) or (flag in _SPREADS and has_core):
            continue
        default = next((f.default for f in flags if f.flag == flag), None)
        if not default and has_core and flag == _STEP and 0 < card_bytes < _LARGE_CARD:
            default = _SMALL_CARD_STEP
        name = setting_of(fix, newest, engine)
        value, said = value_of(Situation(fix, bare(flag), name, default, engine, verdict, startup, replayed))
        if value is USELESS or is_met(
            Situation(fix, bare(flag), name, default, engine, verdict, startup, replayed), value
        ):
            continue
        found.append(Fix(flag, fix.direction, value, f"{fix.reason} ({said})" if said else fix.reason, fix.cost))
    return _with_its_switch(found, flags)


def _before_the_pool(engine: str | None, verdict: Verdict) -> bool:
    """Whether it died before pool and graphs were made, so that neither can give way."""
    label, failure = verdict.bill.label, verdict.failure
    if engine not in _PROFILE_FIRST or failure is None:
        return False
    if label == PREFILL:
        return "prefill tokens" in failure.match.text and engine == "tgi"  # of its warm-up
    if label not in (ENCODER, ADDED):
        return verdict.bill.case == "profile"
    at_load = any("create_lora_weights" in frame.text for frame in failure.frames)
    return failure.phase in ("loading", "loaded") or "profile" in failure.stages or at_load


def _with_its_switch(found: list[Fix], flags: Sequence[EngineFlag]) -> tuple[Fix, ...]:
    """A shorter step and the switch that it needs are one change, not the first and the last."""
    switch = next((f for f in found if f.flag in _SPREADS), None)
    at = next((i for i, f in enumerate(found) if "tokens" in f.flag and f.direction == "lower"), None)
    if switch is None or at is None:
        return tuple(found)
    until = next((f.until for f in flags if f.flag == switch.flag), None)
    who = f"releases up to {until} need" if until else "it needs"
    step = found[at]
    found[at] = replace(step, reason=f"{step.reason} (together with {switch.flag}, which {who} for this)")
    return tuple(f for f in found if f is not switch)


def flag_of(fix: Advice, engine: str | None, share: Assumption | None) -> str | None:
    """The engine's flag; words for what no flag does; None where this engine has nothing to turn."""
    if fix.direction == "free":
        return fix.what
    if engine is None or (fix.engines and engine not in fix.engines):
        return None
    shared = share.flags if share and fix.setting == "gpu_memory_utilization" else {}
    return fix.flags.get(engine) or shared.get(engine)


def in_version(flag: str | None, flags: Sequence[EngineFlag], version: str | None, said: Collection[str]) -> str | None:
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


def value_of(known: Situation) -> Value:
    """The value to set (`USELESS`: leave the change out), and what is known of its effect."""
    fix, replayed = known.fix, known.replayed
    outcome = replayed.outcomes.get(known.name, "") if replayed else ""
    suggested = replayed.values.get(known.name) if replayed else None
    if (of_log := from_log(known)) is not None:
        value, said = of_log
        same = value is not None and value == suggested
        return value, "; ".join(filter(None, (said, outcome if same else "")))
    if replayed and suggested is not None:
        before = replayed.answer.get(known.name)
        is_right_way = before is None or (suggested > before) == (fix.direction == "raise")
        if fix.direction not in ("raise", "lower") or is_right_way:
            return suggested, outcome
    if replayed and known.name in replayed.not_enough:
        return None, outcome
    now, given = current(known), fix.values.get(known.engine or "", fix.value)
    if given and given.isdigit():
        # Where no more than the catalog's number was set, a quarter of what was.
        number, before = int(given), now or known.default
        if before and fix.direction == "lower" and number >= before:
            number = max(1, int(before) // 4)
            if number >= before:
                return USELESS, ""
        said = f"{known.default:,.0f} is the default" if known.default and not now else ""
        return number, "; ".join(filter(None, (outcome, said)))
    value, said = _first_step(known, now)
    return (given if value is None else value), outcome or said


def _first_step(known: Situation, now: float | None) -> Value:
    """Where neither the log nor a replay names a value: how far to go first."""
    direction, name = known.fix.direction, known.name
    if name == "gpu_memory_utilization":
        return _share_step(known, now)
    if known.plain == _OUTRIGHT:
        return _outright(known)
    if words := _FIRST_STEPS.get((direction, known.plain)):
        return words, ""
    if name == "tensor_parallel_size" and direction == "raise":
        return (int(2 * now) if now else "twice as many"), ""
    limits = ("max_num_seqs", "max_num_batched_tokens")
    is_limit = name in limits or (name == "max_model_len" and known.verdict.bill.label in (POOL, WORKSPACE))
    if is_limit and direction == "lower":
        return (USELESS if now == 1 else int(now) // 2 if now else "half"), ""
    return None, ""


def _outright(known: Situation) -> Value:
    """A pool that leaves what the failed allocation was short of; USELESS where the log prints no pool."""
    pools = known.startup.figures.get("kv_pool_bytes_per_gpu", {}).values() if known.startup else ()
    pool = min((figure.value for figure in pools), default=0.0)
    amounts = known.verdict.amounts
    short = max(0.0, amounts.get("tried_bytes", 0.0) - amounts.get("free_bytes", 0.0))
    left = int((pool - short - _SAFETY) / MIB)
    if left <= 0 or not short:
        return USELESS, ""
    return (
        f"{left}M",
        f"the pool's {pool / GIB:,.2f} GiB less what was short, {short / GIB:,.2f} GiB, and {_SAFETY / GIB:g}",
    )


def stated(known: Situation, *names: str) -> Argument | None:
    """The first of some arguments that the log states."""
    arguments = known.startup.arguments if known.startup else {}
    return next((arguments[name] for name in names if name in arguments), None)


def is_met(known: Situation, value: Any) -> bool:
    """Whether the log shows that a change is made already, or that it moves what is not in use."""
    direction, given = known.fix.direction, stated(known, known.plain)
    if known.name in ("kv_cache_dtype", "cache_type_k", "kv_cache_config") and direction == "set":
        return "kv-in-8-bits" in known.verdict.run.clues or (given is not None and _is_narrow(given.value))
    if known.name == "weight_dtype" and direction == "set":
        model = stated(known, "model", "model_tag", "model_path")
        return "narrow-weights" in known.verdict.run.clues or any(
            one is not None and _is_narrow(one.value) for one in (given, model)
        )
    if known.name == "gpu_memory_utilization" and stated(known, _OUTRIGHT):
        return True  # the pool was set outright, so that the share does not count
    eager = stated(known, "enforce_eager", "disable_cuda_graph")
    if known.plain in _OF_GRAPHS and eager is not None and eager.value is True:
        return True
    if direction == "set" and given is not None and value is None:
        return given.value not in (False, None)
    if known.plain in _OFF_BY_DEFAULT and direction == "lower":
        shows_all = stated(known, "model", "model_tag", "model_path") is not None
        return (shows_all and given is None) or (given is not None and given.value in (0, 0.0))
    now = given.value if given is not None and isinstance(given.value, (int, float)) else None
    if now is None or isinstance(now, bool) or not isinstance(value, (int, float)):
        return False
    return now >= value if direction == "raise" else 0 < now <= value if direction == "lower" else False


def _is_narrow(words: Any) -> bool:
    """Whether a precision, or the name of a checkpoint, is one of eight bits or fewer."""
    return isinstance(words, str) and _NARROW.search(words) is not None


def _share_step(known: Situation, now: float | None) -> Value:
    direction, amounts = known.fix.direction, known.verdict.amounts
    if known.verdict.bill.label == SHARED:
        return None, ""
    if direction == "raise":
        if known.plain in _FULL_SHARES and (now or known.default) == known.default:
            return int(known.default or 1), "its default: it helps only where it was set lower"
        if now is None:
            return SHARE_STEP, ""
        return (round(min(MOST_SHARE, now + 0.05), 2), "") if now < MOST_SHARE else (None, f"{NOT_ENOUGH}: it is {now}")
    # What the failed allocation was short of, as a share of the card, and a hundredth; nothing where it is not known.
    short, total = amounts.get("tried_bytes", 0) - amounts.get("free_bytes", 0), amounts.get("gpu_memory_bytes", 0)
    step = math.ceil(100 * short / total) / 100 + 0.01 if direction == "lower" and short > 0 and total else 0.0
    if step > _MOST_STEP:
        return USELESS, ""
    if direction == "lower" and now and now > 0.2:
        return round(max(0.1, now - max(0.03, step)), 2), ""
    return (Step(f"by {max(0.02, step):.2f}") if step else SHARE_STEP), ""


def current(known: Situation) -> float | None:
    """What an input was set to, as far as the log says."""
    of_step = known.verdict.of_failure.get("prefill_tokens") if known.name == "max_num_batched_tokens" else None
    if stated := known.verdict.of_failure.get(known.name, of_step):
        return stated
    startup = known.startup
    for theirs, ours in RENAMED[startup.engine].items() if startup else ():
        argument = startup.arguments.get(theirs) if startup else None
        if ours == known.name and argument and isinstance(argument.value, (int, float)) and argument.value > 0:
            return float(argument.value)
    return known.verdict.run.figures.get(known.name)


def from_log(known: Situation) -> Value | None:
    """A value that follows from the figures of the log alone; None where none does."""
    bill = known.verdict.bill
    if bill.label == HEALTHY and known.verdict.queue:
        return _of_queue(known, known.verdict.queue)
    if bill.label == POOL:
        return _of_pool(known)
    if bill.label == SHARED and known.name == "gpu_memory_utilization":
        free, total = known.verdict.figures.get("free_at_start_gib"), known.verdict.figures.get("gpu_memory_gib")
        if free and total:
            share = math.floor(100 * (free * GIB - _SAFETY) / (total * GIB)) / 100
            return (share if share >= _LEAST_SHARE else USELESS), ""
    if bill.label == PREFILL and bill.case == "refused":
        return _of_refusal(known)
    if bill.label in (MANY, LONG) and bill.case != "room" and known.fix.direction == "lower":
        return _of_full_pool(known)
    return None


def _of_queue(known: Situation, queue: Queue) -> Value | None:
    """What would serve those that wait beside those that run, none of them with more than runs have now."""
    want, direction = queue.running + queue.waiting, known.fix.direction
    if direction == "free":
        n = math.ceil(want / queue.running)
        return n, f"{want:,} run or wait, {queue.running:,} at once in each"
    if known.name == "max_num_seqs":
        held = math.floor(round(queue.running * NEARLY_FULL / queue.usage, 6)) if queue.usage else want
        more, both = min(want, held), f"{want:,} run or wait"
        said = both if held >= want else f"{both}, the pool holds about {held:,}"
        return (more, said) if more > queue.running else (USELESS, "")
    return None


def _of_pool(known: Situation) -> Value | None:
    figures, name = known.verdict.figures, known.name
    needed, there = figures.get("kv_needed_gib", 0), figures.get("kv_available_gib", 0)
    if name == "max_num_seqs" and "mamba_blocks" in figures:
        return int(figures["mamba_blocks"]), ""
    if name == "gpu_memory_utilization":
        # The share in use and what was short of one request, as far as that stays below what any engine starts with.
        now = current(known)
        seen = known.startup.figures.get("gpu_memory_bytes", {}) if known.startup else {}
        total = next((figure.value for figure in seen.values()), 0)
        share = math.ceil(100 * (now + (needed - there) * GIB / total)) / 100 if now and total else 0
        return (share, "") if needed > there and 0 < share <= MOST_SHARE else None
    if known.fix.direction != "lower":
        return None
    if name == "max_model_len":
        if (longest := figures.get("longest_max_model_len", 0)) > 0:
            return int(longest), f"the log says that {longest:,.0f} would fit"
        if (held := figures.get("kv_tokens_available", 0)) > 0:
            return int(held), f"the log says that the pool holds {held:,.0f}"
        length = whole(figures.get("max_model_len", 0) * there / needed) if needed > 0 and there > 0 else 0
        if length > 0:
            return length, f"worked out from {there:,.2f} of {needed:,.2f} GiB"
    asked = known.verdict.of_failure.get("asked_tokens", 0)
    if asked > 1 and name in ("max_model_len", "max_batch_total_tokens"):
        return int(asked) // 2, f"{asked:,.0f} did not fit: half, and half again until it starts"
    return None


def _of_refusal(known: Situation) -> Value | None:
    """Which limit refused: that of the prompt, or that of prompt and answer together."""
    figures, plain, failure = known.verdict.figures, known.plain, known.verdict.failure
    prompt, answer = figures.get("prompt_tokens", 0), figures.get("completion_tokens", 0)
    limit, both = figures.get("limit_tokens", 0), figures.get("requested_tokens", 0) or prompt + answer
    answer_is_over = 0 < prompt < limit < both
    if plain in _OF_STEP and failure and "context length" in failure.match.text:
        return USELESS, ""  # the message names the limit, and it is another
    if plain == _BUILT_FOR:
        if not failure or not any(words in failure.match.text for words in _PAST_THE_BUILD):
            return USELESS, ""
        both = prompt
    if plain in _OF_ANSWER:
        said = f"the limit is {limit:,.0f}, the prompt has {prompt:,.0f}"
        return (int(limit - prompt), said) if answer_is_over else (USELESS, "")
    if plain in _UNDER_THE_CONTEXT and limit:
        return USELESS, ""
    if known.fix.direction != "raise":
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


def _of_full_pool(known: Situation) -> Value | None:
    """By the statistics of the fullest moment before the end: how many ran, and how full the pool was."""
    failure, usage = known.verdict.failure, known.verdict.run.usage
    seen = [s for s in usage.until(failure.match.line_number if failure else None) if s.usage]
    last = max(reversed(seen), key=lambda s: s.usage or 0.0, default=None)
    if last is None:
        return None
    if known.name == "max_num_seqs":
        running = int(last.running)
        if running <= 1:
            return USELESS, ""
        if known.verdict.bill.label == LONG:
            return running // 2, f"{running:,} ran: half as many may each grow to twice the length"
        most = _BELOW_PREEMPTION if failure and "preempt" in failure.match.text else 1.0
        return max(1, int(running * min(most, 0.95 / (last.usage or 1)))), f"{running:,} ran"
    if known.name == "max_model_len" and last.running >= 1:
        of_start = known.startup.figures.get("kv_tokens", {}).values() if known.startup else ()
        of_last = last.tokens / last.usage if last.tokens and last.usage else 0
        pools = (known.verdict.figures.get("kv_tokens"), of_last, *(figure.value for figure in of_start))
        if pool := next(filter(None, pools), None):
            said = f"the pool's {pool:,.0f} tokens over the {last.running:,.0f} that ran"
            return whole(pool / last.running) or None, said
        return None, f"to the pool's tokens over the {last.running:,.0f} that ran; the log does not print the pool"
    return None
