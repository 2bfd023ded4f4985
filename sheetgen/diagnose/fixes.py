"""The flags to move for a verdict, in the engine's words, with a value where log or replay give one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sheetgen.catalog.guidance import Assumption, EngineFlag, FingerprintFile, bare
from sheetgen.catalog.guidance import Fix as Advice
from sheetgen.diagnose.replay import Replay
from sheetgen.diagnose.rules import ADDED, ENCODER, MANY, POOL, PREFILL, Verdict
from sheetgen.diagnose.values import USELESS, Situation, value_of
from sheetgen.startup.read import StartupLog
from sheetgen.startup.words import RENAMED
from sheetgen.units import GIB

# The form of a death where the verdict names none, and forms whose own fixes are all that help.
_USUAL = {POOL: "length", MANY: "pool", PREFILL: "peak"}
_ALONE = ("refused", "admission", "slots", "empty", "full", "room", "placed")
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
        "max_model_len": ("max_total_tokens", "max_input_tokens", "ctx_size", "session_len", "NIM_MAX_MODEL_LEN",
                          "num_ctx"),
        "max_num_seqs": ("parallel", "OLLAMA_NUM_PARALLEL", "NIM_MAX_NUM_SEQS", "max_concurrent_requests",
                         "max_batch_size"),
        "max_num_batched_tokens": ("max_batch_prefill_tokens", "ubatch_size", "num_batch", "max_num_tokens"),
        "tensor_parallel_size": ("num_shard", "NIM_TENSOR_PARALLEL_SIZE"),
        "gpu_memory_utilization": ("cuda_memory_fraction", "NIM_KVCACHE_PERCENT", "TGI_WIGGLE_ROOM"),
        "weight_dtype": ("quantization",),
    }.items()
    for name in names
}  # fmt: skip
# A step shorter than the longest prompt is refused, or the prompt is, where a prompt is not spread over steps.
_SPREADS = ("--enable-chunked-prefill", "enable_chunked_prefill")


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
    found: list[Fix] = []
    for fix in chosen:
        newest = flag_of(fix, engine, share)
        flag = newest if fix.direction == "free" else in_version(newest, flags, version, arguments)
        if newest is None or flag is None or any(f.flag == flag for f in found):
            continue
        if (flag in _OF_NO_BUILT and "built" in verdict.run.clues) or (flag in _SPREADS and _has_core(engine, verdict)):
            continue
        default = next((f.default for f in flags if f.flag == flag), None) or _by_card(engine, flag, verdict)
        situation = Situation(verdict, engine, startup, replayed, default)
        value, said = value_of(fix, setting_of(fix, newest, engine), bare(flag), situation)
        if value is USELESS:
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


def _has_core(engine: str | None, verdict: Verdict) -> bool:
    """Whether the line that failed is of vLLM's second engine, which spreads every prompt over steps."""
    return engine == "vllm" and verdict.failure is not None and "EngineCore" in verdict.failure.match.text


def _by_card(engine: str | None, flag: str, verdict: Verdict) -> float | None:
    """The default where it follows the card, if the line that failed says what card and which time it is of."""
    if verdict.failure is None or flag != _STEP or not _has_core(engine, verdict):
        return None
    return _SMALL_CARD_STEP if 0 < verdict.failure.amounts.get("gpu_memory_bytes", 0) < _LARGE_CARD else None


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
