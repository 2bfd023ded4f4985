"""The label of a failure, from the facts of a log: the engine's own message, the traceback's frames, the phase and the
numbers.

"CUDA out of memory" ends logs of seven labels. The deepest engine frame decides, else the progress of the start, else
the numbers of the line; where these do not decide, the label is undetermined. Without a matched failure a log is
healthy, cut too early, ended by an unknown error, or no log of an engine.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sheetgen.diagnose.log_facts import SERVING, Evidence, Facts, Failure, Match, Run, Sample
from sheetgen.shipped import shipped_table
from sheetgen.units import GIB

UNDETERMINED, NOT_AN_OOM, HEALTHY = "undetermined", "not_an_oom", "healthy"
POOL, WEIGHTS = "startup_kv_pool_too_small", "startup_weights_do_not_fit"
WORKSPACE = "startup_workspace_or_cuda_graph"
PREFILL, SAMPLER, ENCODER = "prefill_long_prompt", "sampler_logits_peak", "multimodal_encoder_profile"
ADDED, SHARED, FRAGMENTED = "lora_draft_model", "gpu_shared_by_other_process", "fragmentation"
HOST = "host_ram_oom"
MANY, LONG = "concurrency_spike", "long_completion"
STARTING = ("loading", "loaded", "sized", "capturing", "captured", "failed-start")
UNSAID = "unsaid"  # the signature of a failed allocation that does not mention memory
# Forms of a failure:
REFUSED = "refused-with-room"  # an allocation failed though the GPU had more free than was requested
PROMPTS = "prompts"  # host memory, in a server that keeps a copy of each prompt's cache there
POSING = "posing"  # a KV pool shorter than the context, which then limits the length of requests
NEARLY_FULL = 0.95
FULL = 0.985  # usage of the fullest of the last samples, at which requests were preempted
LONG_REQUEST = 65_536  # tokens of one request, beyond which a few of them fill a pool
FEW = 8  # requests
_FLAT = 3  # more samples than this with equally many running requests, while others wait, show a limit
_HIGH = 0.9
# Confidences, most of them upper limits:
_UNSAID, _UNSAID_HERE = 0.7, 0.45  # a failed allocation that does not mention memory; on a host with other causes
_KILLED_OTHERWISE = 0.4  # host memory, where the log names another reason for the end of the process
_QUOTED = 0.45  # words that a text quotes
_GRAPHS_MADE = 0.45  # the peak of a step, where only the CUDA graphs' memory shows the phase
_OF_ONE_BLOCK = 0.2  # share of the card in one allocation of a profile run: only an image encoder needs so much
_WITH_ROOM = 2  # times the requested memory: if so much is free, no part of memory was short
_POOL_RESERVE = 64  # tokens of the pool that SGLang does not give to a request
_MOSTLY_OTHERS, _PARTLY_OTHERS = 0.25, 0.05  # shares of the card held by other processes
_OVER_ANY_BUDGET = 0.93  # share of the card in this process's tensors, more than a pool within the budget allows


@dataclass(frozen=True)
class Cause:
    """A label with its confidence, the form of the failure, other possible labels, and the evidence that is missing."""

    label: str
    confidence: float
    case: str | None = None
    also: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The cause, its run of the engine, the failure that decided it (None where nothing failed), and the evidence."""

    cause: Cause
    run: Run
    failure: Failure | None
    phase: str
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...] = ()
    queue: Queue | None = None

    @property
    def of_failure(self) -> dict[str, float]:
        """The figures of the line that failed."""
        return self.failure.match.figures if self.failure else {}

    @property
    def figures(self) -> dict[str, float]:
        """The figures of the whole run; those of the line that failed take precedence."""
        return {**self.run.figures, **self.of_failure}

    @property
    def amounts(self) -> dict[str, float]:
        """The amounts of GPU memory in the line that failed, in bytes."""
        return self.failure.amounts if self.failure else {}


_TABLE = shipped_table("causes.toml")
_MISSING: Mapping[str, str] = _TABLE["missing"]
_OF_STAGE, _OF_PHASE = (
    {place: Cause(**{**parts, "also": tuple(parts.get("also", ()))}) for place, parts in _TABLE[places].items()}
    for places in ("stages", "phases")
)
# Stages of outer frames, which other frames specify: a run of the model, and whether the engine starts or serves.
WIDE = ("profile", "forward", "compile", "serving", "starting")


def _share_of_others(amounts: Mapping[str, float]) -> float:
    """The share of the card that other processes hold; 0 where unknown."""
    total = amounts.get("gpu_memory_bytes", 0.0)
    return amounts.get("other_bytes", 0.0) / total if total else 0.0


def cause_of(failure: Failure, run: Run, added: Collection[str]) -> Cause:
    """The cause of a failed allocation; `added` has "lora" and "draft" if the engine's arguments enable them."""
    amounts, stages = failure.amounts, failure.stages
    if 0 < _WITH_ROOM * amounts.get("tried_bytes", 0.0) <= amounts.get("free_bytes", 0.0):
        suspects = [cause.label for cause in (_by_frame(stages, run),) if cause is not None]
        return Cause(UNDETERMINED, 0.3, REFUSED, tuple(suspects), (_MISSING["refused"],))
    share = _share_of_others(amounts) if amounts.get("other_bytes", 0.0) > GIB else 0.0
    if share > _MOSTLY_OTHERS:
        return Cause(SHARED, 0.7, also=(WEIGHTS,))
    cause = _by_frame(stages, run) or _by_phase(failure, run, added)
    is_block = amounts.get("tried_bytes", 0.0) > _OF_ONE_BLOCK * amounts.get("gpu_memory_bytes", float("inf"))
    if cause.case == "profile" and is_block:
        cause = Cause(ENCODER, 0.5, also=(WORKSPACE,), missing=(_MISSING["lines"],))
    if failure.match.signature.says == UNSAID:
        most = _UNSAID_HERE if "no-virtual-memory" in run.clues else _UNSAID
        also, missing = (*cause.also, NOT_AN_OOM), (_MISSING["unsaid"], *cause.missing)
        cause = replace(cause, confidence=min(most, cause.confidence), also=also, missing=missing)
    if failure.match.signature.engine == "llama.cpp":  # which prints no traceback
        missing = tuple(_MISSING["lines"] if hint == _MISSING["frames"] else hint for hint in cause.missing)
        cause = replace(cause, missing=missing)
    if share > _PARTLY_OTHERS and cause.confidence < 0.7:
        return Cause(SHARED, 0.55, also=(cause.label,) if cause.label != UNDETERMINED else ())
    return cause


def _by_frame(stages: list[str], run: Run) -> Cause | None:
    """The cause by the frames of the traceback; None where they do not decide."""
    for word in ("draft", "lora", "pinned"):
        if word in stages:
            return _OF_STAGE[word]
    deep = [s for s in stages if s not in WIDE]
    if deep:
        return _OF_STAGE.get(deep[-1])
    if "profile" in stages:
        if "images" in run.clues:
            return Cause(ENCODER, 0.75, also=(WORKSPACE,))
        return Cause(WORKSPACE, 0.65, "profile", (ENCODER,))
    if "compile" in stages and not {"forward", "serving"} & set(stages):
        return Cause(WORKSPACE, 0.65, also=(SAMPLER,))
    return None


def _by_phase(failure: Failure, run: Run, added: Collection[str]) -> Cause:
    """The cause by the phase of the engine, and by the amounts of the line."""
    phase = failure.phase
    if "serving" in failure.stages and "starting" not in failure.stages:
        return _while_serving(failure, run, added)
    starting = run.seen("failed-start") or "starting" in failure.stages
    if phase in ("unknown", "captured") and run.seen("died-serving") and not starting:
        phase = "died-serving"
    if "images" in run.clues and phase not in ("loading", "sized", "capturing"):
        return Cause(ENCODER, 0.75, also=(WORKSPACE, PREFILL))
    if phase == "loading" and "draft" in run.clues:
        return Cause(ADDED, 0.65, "draft", (WEIGHTS,))
    if phase in _OF_PHASE:
        return _OF_PHASE[phase]
    if (phase in SERVING and "starting" not in failure.stages) or "forward" in failure.stages:
        return _while_serving(failure, run, added)
    # Before the pool is allocated only weights can take nearly all of the card; CUDA graphs show as private pools.
    amounts = failure.amounts
    total, held = amounts.get("gpu_memory_bytes", 0.0), amounts.get("allocated_bytes", 0.0)
    alone = total and held / total > _OVER_ANY_BUDGET and "private_pool_bytes" not in amounts
    if alone and starting:
        return Cause(WEIGHTS, 0.55, also=(WORKSPACE,), missing=(_MISSING["frames"], _MISSING["phase"]))
    likely = (WEIGHTS, PREFILL) if alone else (WORKSPACE, PREFILL)
    if added:
        return Cause(ADDED, 0.45, next(iter(added)), likely, (_MISSING["frames"], _MISSING["phase"]))
    if "private_pool_bytes" in amounts and not starting:
        return Cause(PREFILL, _GRAPHS_MADE, "peak", (WORKSPACE, SAMPLER), (_MISSING["frames"], _MISSING["phase"]))
    return Cause(UNDETERMINED, 0.3, also=likely, missing=(_MISSING["frames"], _MISSING["phase"]))


def _while_serving(failure: Failure, run: Run, added: Collection[str]) -> Cause:
    """The cause of a failure while serving: the pool is allocated, so the peak of a step was too high."""
    if failure.match.signature.engine == "llama.cpp":
        # Its compute buffers were reserved at the start: a request allocates only for images, or scratch.
        return Cause(ENCODER, 0.5, also=(WORKSPACE,), missing=(_MISSING["frames"],))
    if "lora" in added:
        return Cause(ADDED, 0.55, "lora", (PREFILL,))
    images = (ENCODER,) if "images" in run.clues else ()
    samples = run.usage.until(failure.match.line_number)
    by, usage = filled_by(samples), next((s.usage for s in reversed(samples) if s.usage is not None), 0.0)
    # A full pool does not make an allocation outside of it fail, but it limits the fixes.
    full = (_FILLED[by].label,) if by and usage >= NEARLY_FULL else ()
    return Cause(PREFILL, 0.55 if images or full else 0.62, "peak", (*full, *images, SAMPLER), (_MISSING["frames"],))


def soon_full(samples: Sequence[Sample]) -> bool:
    """True if usage rose in all samples, and the pool will be full after at most twice the rise seen so far."""
    usages = [s.usage for s in samples if s.usage is not None]
    rises = len(usages) > 2 and all(later > earlier for earlier, later in itertools.pairwise(usages))
    return rises and usages[-1] >= _HIGH and FULL - usages[-1] <= 2 * (usages[-1] - usages[0])


def filled_by(samples: Sequence[Sample]) -> Literal["length", "number"] | None:
    """The reason why the pool fills: the length of few requests or their number; None where the samples do not tell.

    Length: no new prompts, nobody waits and equally many run while usage rises; or a few requests with very many
    tokens each. Number: a queue, new prompts or more and more running requests.
    """
    sampled = [s for s in samples if s.usage is not None]
    if not sampled:
        return None
    last = sampled[-1]
    if last.tokens and 0 < last.running <= FEW and last.tokens / last.running >= LONG_REQUEST:
        return "length"
    if max(s.running + s.waiting for s in sampled) <= 1:
        return "length"
    if last.waiting > 0:
        return "number"
    if len(sampled) < 2:
        return None
    running = [s.running for s in sampled]
    flat = max(running) - min(running) <= max(0.0, 0.1 * max(running))
    rising = (last.usage or 0) > (sampled[0].usage or 0)
    prompts = sum(s.prompt_rate or 0 for s in sampled)
    made = sum(s.generation_rate or 0 for s in sampled)
    if flat and rising and prompts <= 0.02 * max(made, 1):
        return "length"
    return "number" if running[-1] > running[0] or prompts > 0.02 * max(made, 1) else None


@dataclass(frozen=True)
class Queue:
    """A saturated server: running and waiting requests, and the `limit`: a full pool, or the places (max_num_seqs)."""

    limit: Literal["full", "places"]
    running: int
    waiting: int
    usage: float | None


def queue_of(samples: Sequence[Sample], most_running: float | None) -> Queue | None:
    """The queue of the last samples; None where requests do not wait for long, or the samples do not show the limit.

    The pool is full if another request of the mean size does not fit. Otherwise the limit is places, if as many run as
    `most_running` allows, or, where that is unknown, equally many in each sample.
    """
    queued = [s for s in samples if s.waiting > 0 and s.running > 0]
    if not queued or samples[-1] is not queued[-1] or 2 * len(queued) < len(samples):
        return None
    last = samples[-1]
    running, usage = last.running, last.usage
    if usage is not None and (usage >= _HIGH or (len(queued) > 1 and usage * (running + 1) > running)):
        return Queue("full", int(running), int(last.waiting), usage)
    is_capped = (
        running >= most_running if most_running else len(queued) > _FLAT and len({s.running for s in queued}) == 1
    )
    return Queue("places", int(running), int(last.waiting), usage) if is_capped else None


# The cause of a pool that fills while serving, by `filled_by`.
_FILLED = {"length": Cause(LONG, 0.65, also=(MANY,)), "number": Cause(MANY, 0.65, "pool", (LONG,))}
PHASES: Mapping[str, str] = _TABLE["words_of_phases"]
SOURCE = "The words stand in source code or in a command and not in a line of a log."
QUOTED = "This reads like a text about such a failure and not like a log: the line may only be quoted."
_ADDED_ARGUMENTS = {
    "lora": ("enable_lora", "lora_paths", "lora_modules", "lora_dir"),
    "draft": ("speculative_config", "speculative_algorithm", "speculative_model", "speculative_draft_model_path"),
}
# A line that only reports that another process is gone.
_DIED = re.compile(r"(?i)\b(scheduler|worker|detokenizer|engine|shard|runner|router)\b.{0,40}\b(?:died|dead|exited)\b")
_HAD_FREE_TOKENS = 0.6  # confidence where the engine reports a shortage that its figures contradict
_CROWDED = 0.75  # confidence where weights did not fit beside other processes, usually ranks of the same job
_JUST_BEFORE = 200  # lines
_SMALL_STEP = 512  # tokens: if even so few do not fit, the weights fill the GPU
_PHASE_OF_LABEL: Mapping[str, str] = _TABLE["phases_of_labels"]
# Values of an argument that leave it off.
_OFF = (None, False, 0, "", "{}", "[]", "None", "null")
# Words of errors that may concern memory or a limit, though no signature matches them.
_OF_CAPACITY = re.compile(
    r"(?i)memory|alloc|oom\b|\bcache|block|seq(?:uence)?s?\b|swap|larger than|longer than|exceed|at least one|capacity"
    r"|insufficient|not enough|too (?:long|large|small|many(?! open files))|\bout o"
)


def verdict_of(facts: Facts) -> Verdict:
    """The verdict on the last run of the engine, or on the one before it if the last one had only begun."""
    verdict = _verdict_of_run(facts.run, facts)
    if facts.n_runs == 1:
        return verdict
    before = _verdict_of_run(facts.runs[0], facts)
    note = f"the log holds {facts.n_runs} runs"
    if verdict.cause.label == UNDETERMINED or (verdict.cause.label == HEALTHY and verdict.cause.confidence < 0.5):
        return replace(before, notes=(f"{note}; the last one had only begun, this is the one before.",))
    last = f"{note}; this is the last, from line {facts.run.line_number:,}."
    if before.failure is not None:
        line_number = before.failure.match.line_number
        last += f" The one before it died at line {line_number:,}: {before.cause.label}."
    return replace(verdict, notes=(last, *verdict.notes))


def _verdict_of_run(run: Run, facts: Facts) -> Verdict:
    """The verdict on one run of the engine, with less confidence where its words may be quoted or are source code."""
    start = facts.start_of(run)
    stated = {name: argument.value for name, argument in start.arguments.items()} if start else {}
    added = [word for word, names in _ADDED_ARGUMENTS.items() if any(stated.get(n) not in _OFF for n in names)]
    failure, cause = _first_cause(run, added)
    if failure is None:
        cap = stated.get("max_num_seqs") or stated.get("max_running_requests")
        verdict = without_failure(run, facts, cap if isinstance(cap, (int, float)) else None)
        overcome = [f.match for f in run.failures if f not in run.lasting_failures]
        if verdict.cause.label != HEALTHY or not overcome:
            return verdict
        failed = f"line {overcome[0].line_number:,} failed on the way, and the engine came up nevertheless"
        return replace(verdict, notes=(f"{failed}: {overcome[0].text[:100]}",))
    alone = not facts.votes and not any(other.phases for other in facts.runs)
    if failure.match.signature.kind == "oom" and alone and "other-program" in run.clues:
        # Training, a notebook, an image generator: the same message, but no label of a server applies.
        also = (cause.label,) if cause.label != UNDETERMINED else cause.also
        cause = Cause(UNDETERMINED, 0.2, also=also, missing=(_MISSING["engine"], *cause.missing))
    notes: tuple[str, ...] = ()
    if failure.match.is_source:
        line_number = failure.match.line_number
        # Tracebacks show source code too.
        if not run.n_tracebacks and all(frame.line_number == line_number for frame in failure.frames):
            also = (cause.label,) if cause.label != UNDETERMINED else cause.also
            cause = Cause(UNDETERMINED, 0.1, also=also, missing=(_MISSING["source"],))
            notes = (SOURCE,)
    elif failure.match.is_quoted or (facts.is_text and not failure.match.is_printed and not failure.frames):
        cause = replace(cause, confidence=min(_QUOTED, cause.confidence), missing=(_MISSING["quoted"], *cause.missing))
        notes = (QUOTED,)
    if cause.label == NOT_AN_OOM and (other := _DIED.search(failure.match.text)):
        cause = replace(cause, missing=(*cause.missing, _MISSING["traceback"].format(who=other[1].lower())))
    return Verdict(cause, run, failure, _phase(failure, run, cause), _evidence(run, failure, cause), notes)


def _first_cause(run: Run, added: Collection[str]) -> tuple[Failure | None, Cause]:
    """The decisive failure of a run and its cause, by rank: a trap, the engine's own message, a failed allocation, a
    weak message, a refusal; (None, undetermined) without failures."""
    failures = [f for f in run.lasting_failures if not _is_quoted(f, run)]
    failures = [f for f in failures if not f.match.is_quoted] or failures
    kinds = ("trap", "typed", "oom", "weak")
    of_kind = {kind: [f for f in failures if f.match.signature.kind == kind] for kind in kinds}
    refused = [f for f in of_kind["typed"] if f.match.signature.lasting]
    deadly = [f for f in of_kind["typed"] if not f.match.signature.lasting]
    best: Failure | None = None
    if of_kind["trap"] and not any(f.match.signature.kind == "oom" for f in run.failures):
        best = of_kind["trap"][0]
    elif deadly:
        best = _clearest(deadly)
    elif ooms := _unexplained(of_kind["oom"], of_kind["weak"]):
        causes = [(f, cause_of(f, run, added)) for f in ooms[:50]]
        failure, cause = max(causes, key=lambda pair: (pair[1].label != UNDETERMINED, round(pair[1].confidence, 1)))
        others = [f for f in of_kind["weak"] if f.match.signature.says != NOT_AN_OOM]
        if cause.label != UNDETERMINED or not others:
            kept, tried = (failure.amounts.get(k, 0.0) for k in ("reserved_unallocated_bytes", "tried_bytes"))
            # More memory was reserved but unused than requested: a cheap fix to try, not the diagnosis.
            return failure, replace(cause, also=(*cause.also, FRAGMENTED)) if tried and kept >= 0.9 * tried else cause
        best = max(others, key=_weight)  # more specific than the allocator's message
    else:
        weak = [f for f in of_kind["weak"] if f.match.line_number > run.last("ready")]
        if refused and not any(f.match.signature.confidence >= 0.8 for f in weak):
            best = _clearest(refused)
        elif weak:
            best = max(weak, key=_weight)
    best = _by_the_pool(best, run) if best else None
    return best, _cause_of_message(best, run, added) if best else Cause(UNDETERMINED, 0.0)


def _by_the_pool(failure: Failure, run: Run) -> Failure:
    """The failure; the refusal of a prompt whose limit is the pool, not the longer context, gets the pool's figures."""
    of_run, figures = run.figures, failure.match.figures
    pool, context, limit = of_run.get("pool_tokens", 0), of_run.get("context_tokens", 0), figures.get("limit_tokens", 0)
    if failure.match.signature.case != "refused" or not pool - _POOL_RESERVE <= limit <= pool < context:
        return failure
    held = {"kv_tokens_available": pool, "max_model_len": context}
    return replace(failure, match=replace(failure.match, figures={**figures, **held}))


def _unexplained(ooms: list[Failure], weak: list[Failure]) -> list[Failure]:
    """The failed allocations, except those that do not mention memory and follow another fault closely."""
    others = [f.match.line_number for f in weak if f.match.signature.says == NOT_AN_OOM]
    return [
        f
        for f in ooms
        if f.match.signature.says != UNSAID or not any(0 <= f.match.line_number - n <= _JUST_BEFORE for n in others)
    ]


def _is_quoted(failure: Failure, run: Run) -> bool:
    """True if a fatal message is probably a client's text in a line of an engine or a proxy: it has no traceback, and
    the engine goes on to answer."""
    s, line = failure.match.signature, failure.match.line_number
    deadly = (s.kind == "oom" and s.engine is None) or (s.kind != "oom" and s.says in (POOL, WEIGHTS))
    if not deadly or failure.frames or failure.phase not in SERVING or run.last("died-serving") > line:
        return False
    return any(sample.line_number > line and sample.generation_rate for sample in run.usage.last)


def _weight(weak: Failure) -> tuple[float, ...]:
    """The rank of a weak message: high confidence first, then the earliest, then the highest confidence of a line."""
    sure, line = weak.match.signature.confidence, weak.match.line_number
    return (sure >= 0.8, sure >= 0.6, -line, sure)


def _clearest(failures: list[Failure]) -> Failure:
    """The first failure, or the one with the highest confidence within 40 lines if it has the same label or is clearly
    more certain."""
    first = failures[0].match
    near = [f for f in failures if f.match.line_number - first.line_number <= 40]
    better = max(near, key=lambda f: (f.match.signature.confidence, -f.match.line_number))
    has_same_cause = better.match.signature.says == first.signature.says
    is_surer = better.match.signature.confidence - 0.1 >= first.signature.confidence
    return better if has_same_cause or is_surer else failures[0]


def _cause_of_message(failure: Failure, run: Run, added: Collection[str]) -> Cause:
    """The cause of a message; other evidence in the log may change it to a related one."""
    s, amounts, figures = failure.match.signature, failure.amounts, {**run.figures, **failure.match.figures}
    cause = Cause(s.says, s.confidence, s.case, tuple(s.also))
    if s.says == HOST and "prompt-cache" in run.clues:
        cause = replace(cause, case=PROMPTS)
    if s.says == HOST and s.kind == "weak" and "killed-otherwise" in run.clues:
        return replace(cause, confidence=_KILLED_OTHERWISE, also=(NOT_AN_OOM,), missing=(_MISSING["killer"],))
    if s.says == WEIGHTS and amounts.get("n_processes", 0) > 1 and _share_of_others(amounts) > _MOSTLY_OTHERS:
        return Cause(WEIGHTS, min(s.confidence, _CROWDED), "placed", (SHARED, *s.also))
    small_step = 0 < failure.match.figures.get("prefill_tokens", 0) <= _SMALL_STEP
    if s.says == PREFILL and s.case == "peak" and small_step:
        return Cause(PREFILL, s.confidence, "full", (WEIGHTS, *s.also))
    if s.says == PREFILL and "kv_tokens_available" in failure.match.figures:
        return Cause(POOL, s.confidence, POSING, (PREFILL,))
    if s.says == POOL and figures.get("kv_available_gib", 1) <= 0:
        return replace(cause, case="empty")
    if s.says == MANY and s.case == "pool" and 0 < figures.get("asked_tokens", 0) <= figures.get("pool_free_tokens", 0):
        # By the engine's own figures enough was free, unless the statistics contradict them.
        seen = [sample.usage for sample in run.usage.until(failure.match.line_number) if sample.usage is not None]
        if not seen or seen[-1] < NEARLY_FULL:
            return replace(cause, confidence=min(s.confidence, _HAD_FREE_TOKENS), case="room")
    if s.engine == "sglang" and s.says in (MANY, WORKSPACE) and "draft" in failure.stages:
        return Cause(ADDED, 0.75, "draft", (s.says,))
    if s.engine == "sglang" and s.says == POOL and ("draft" in added or "draft" in run.clues):
        return Cause(ADDED, 0.55, "draft", (POOL,))
    if s.case == "reserve" and (failure.phase in SERVING or failure.stages[-1:] == ["encoder"]):
        # Compute buffers are reserved once, at the start; only the image encoder reserves memory at a request.
        return Cause(ENCODER, 0.6, also=(WORKSPACE,))
    if s.says == WORKSPACE and s.engine == "llama.cpp" and "images" in run.clues:
        return Cause(ENCODER, 0.75, also=(WORKSPACE,))
    if s.kind == "weak" and s.says == POOL and failure.phase in SERVING:
        cause = Cause(MANY, s.confidence, "pool", (LONG, POOL))
    if cause.label not in (MANY, LONG) or cause.case not in ("pool", "swap", None):
        return cause
    # A full pool: the course of its usage tells length from number; without samples the slots do.
    by_slots = "number" if "several-slots" in run.clues else "length" if "one-slot" in run.clues else ""
    by = filled_by(run.usage.until(failure.match.line_number)) or by_slots
    if not by or _FILLED[by].label == cause.label:
        return cause
    return replace(_FILLED[by], confidence=0.8 if by == "length" else 0.7)


def _phase(failure: Failure, run: Run, cause: Cause) -> str:
    """The phase in which a run failed, in the words of PHASES; for some labels that of the label."""
    phase = failure.phase
    if failure.match.signature.kind == "typed":
        if cause.label in _PHASE_OF_LABEL and cause.case != POSING:
            return _PHASE_OF_LABEL[cause.label]
        if cause.case in ("refused", POSING):
            return "serving"
    if phase in ("unknown", "failed-start", "died-serving"):
        if run.seen("failed-start") or any(s in ("weights", "profile", "cache", "graphs") for s in failure.stages):
            phase = "failed-start"
        elif run.seen("died-serving"):
            phase = "died-serving"
    if phase == "capturing" and failure.match.signature.engine == "tgi":
        return "start: warming up"  # capturing graphs is the last part of it
    return PHASES.get(phase, "unknown")


def _as_evidence(*lines: Match | Sample) -> tuple[Evidence, ...]:
    return tuple(Evidence(line.line_number, line.text) for line in lines)


def _evidence(run: Run, failure: Failure, cause: Cause) -> tuple[Evidence, ...]:
    """The decisive line and the other evidence considered, in the order of the log."""
    deep = [f for f in failure.frames if f.signature.says not in WIDE] or failure.frames
    alike = [f.match for f in run.failures[:30] if f.match.signature.says == failure.match.signature.says]
    names = (*STARTING, "died-serving") if cause.label not in (MANY, LONG, PREFILL) else SERVING
    samples = run.usage.until(failure.match.line_number)[-2:] if cause.label in (MANY, LONG) else []
    chosen: dict[int, Evidence] = {}
    for lines, most in (
        ([failure.match, *deep[-1:]], 2),
        (alike, 3),
        (filter(None, map(run.seen, names)), 7),
        (samples, 9),
        (run.clues.values(), 8),
    ):
        for quoted in _as_evidence(*lines):
            if len(chosen) < most:
                chosen.setdefault(quoted.line_number, quoted)
    return tuple(chosen[number] for number in sorted(chosen))


def without_failure(run: Run, facts: Facts, most_running: float | None = None) -> Verdict:
    """The verdict on a run without a matched failure.

    It is healthy, saturated, cut too early, ended by an unknown error, or no log of an engine. most_running: the limit
    on running requests, if known.
    """
    samples = run.usage.until(None)
    queue = queue_of(samples, most_running)
    last = [s for s in samples if s.usage is not None][-1:]
    phases = {name: match for names in run.phases.values() for name, match in names.items()}
    marks = _as_evidence(*sorted(phases.values(), key=lambda m: m.line_number))[-4:]
    says = max(phases.values(), key=lambda m: m.line_number).signature.says if phases else ""

    def verdict(cause: Cause, *evidence: Evidence, phase: str = PHASES.get(says, "unknown")) -> Verdict:
        return Verdict(cause, run, None, phase, evidence, queue=queue if cause.label in (HEALTHY, MANY) else None)

    by = filled_by(samples)
    fullest = max((s.usage or 0.0 for s in samples), default=0.0)
    if by and (fullest >= FULL or any((s.usage or 0) >= NEARLY_FULL for s in last)):
        return verdict(_FILLED[by], *_as_evidence(samples[0], *last), phase="serving")
    if by == "length" and soon_full(samples):
        return verdict(replace(_FILLED[by], confidence=0.5), *_as_evidence(samples[0], *last), phase="serving")
    frames = run.frames
    if (frames or run.n_tracebacks) and not run.errors:
        lines = [*frames[-3:], *run.clues.values()][:8]
        quoted = {evidence.line_number: evidence for evidence in (*marks, *_as_evidence(*lines))}
        return verdict(_of_frames(run), *(quoted[number] for number in sorted(quoted)))
    started = run.seen("ready") or run.seen("serving") or samples
    signs = max([run.last("ready"), run.last("serving"), *(s.line_number for s in samples)])
    late = [e for e in run.errors if e.line_number > signs]
    ended = run.seen("died-serving") or bool(late)
    if run.errors and (not started or ended) and (facts.votes or run.seen("failed-start")):
        error = late[0] if started and late else run.errors[0]
        if not _OF_CAPACITY.search(f"{error.text} {frames}"):
            return verdict(Cause(NOT_AN_OOM, 0.6), error, *marks)
        cause = _of_frames(run) if frames else Cause(UNDETERMINED, 0.2)
        return verdict(replace(cause, missing=(_MISSING["frames"], _MISSING["phase"])), error, *marks)
    if run.seen("died-serving") or run.seen("failed-start"):
        return verdict(Cause(UNDETERMINED, 0.2, missing=(_MISSING["error"],)), *marks)
    if started:
        return verdict(Cause(HEALTHY, 0.9, queue.limit if queue else None), *marks, *_as_evidence(*last))
    if "captured" in phases:
        return verdict(Cause(HEALTHY, 0.65), *marks)
    if any(name in phases for name in ("sized", "capturing")):
        return verdict(Cause(HEALTHY, 0.45, missing=(_MISSING["ready"],)), *marks)
    if facts.votes:
        return verdict(Cause(UNDETERMINED, 0.1, missing=(_MISSING["ready"],)), *marks)
    return verdict(Cause(UNDETERMINED, 0.0, missing=(_MISSING["engine"],)), *marks)


def _of_frames(run: Run) -> Cause:
    """The cause by the frames of an error whose own line is missing, with low confidence."""
    unknown = Cause(UNDETERMINED, 0.2, missing=(_MISSING["error"],))
    if not run.frames:
        return unknown
    match = run.frames[-1]
    cause = cause_of(Failure(match, run.phase_of(match.rank), run.frames), run, ())
    if cause.label in (UNDETERMINED, PREFILL):
        return replace(unknown, also=cause.also)
    return replace(cause, confidence=min(cause.confidence, 0.45), missing=(_MISSING["error"],))
