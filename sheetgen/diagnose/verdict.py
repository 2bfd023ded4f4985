"""Facts -> a label: was it an allocation failure, the engine's own message, the frame, the phase, the numbers.

"CUDA out of memory" closes logs of seven labels. What decides is the deepest frame of the engine, else how far the
start had come, else the numbers of the line; where these do not decide, nothing is guessed. Where no failure was
matched a log is healthy, cut too early, failed by an unknown error, or no log of an engine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sheetgen.diagnose.facts import FULL, NEARLY_FULL, Facts, Failure, Match, Run, filled_by, soon_full
from sheetgen.startup.read import StartupLog
from sheetgen.units import GIB

UNDETERMINED, NOT_AN_OOM, HEALTHY = "undetermined", "not_an_oom", "healthy"
POOL, WEIGHTS = "startup_kv_pool_too_small", "startup_weights_do_not_fit"
WORKSPACE = "startup_workspace_or_cuda_graph"
PREFILL, SAMPLER, ENCODER = "prefill_long_prompt", "sampler_logits_peak", "multimodal_encoder_profile"
ADDED, SHARED, FRAGMENTED = "lora_draft_model", "gpu_shared_by_other_process", "fragmentation"
HOST = "host_ram_oom"
MANY, LONG = "concurrency_spike", "long_completion"
STARTING = ("loading", "loaded", "sized", "capturing", "captured", "failed-start")
SERVING = ("ready", "serving", "died-serving")
FRAMES_MISSING = "the traceback above the error line: its deepest engine frame names the bill"
LINES_MISSING = "the lines above the error: what was being made, and whether an image was being processed"
PHASE_MISSING = "the log from the engine's first line, which says how far the start had come"
_MOSTLY_OTHERS, _PARTLY_OTHERS = 0.25, 0.05  # of the card
_OVER_ANY_BUDGET = 0.93  # of the card in this process's tensors: more than a pool within the budget leaves


@dataclass(frozen=True)
class Bill:
    """A label, how sure it is, the form of the death, other labels that would look the same, and what is missing."""

    label: str
    confidence: float
    case: str | None = None
    also: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """A line of the log and why it was looked at."""

    line_number: int
    text: str


@dataclass(frozen=True)
class Verdict:
    """The bill, the run that it is of, the failure that decided it (none where nothing failed), and the evidence."""

    bill: Bill
    run: Run
    failure: Failure | None
    phase: str
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...] = ()


# What the deepest frame says; `None` says nothing by itself.
_OF_STAGE = {
    "sampler": Bill(SAMPLER, 0.87), "logprobs": Bill(SAMPLER, 0.85, also=(PREFILL,)), "encoder": Bill(ENCODER, 0.85),
    "lora": Bill(ADDED, 0.82, "lora"), "draft": Bill(ADDED, 0.8, "draft"), "graphs": Bill(WORKSPACE, 0.88),
    "weights": Bill(WEIGHTS, 0.88), "pinned": Bill(HOST, 0.85), "cache": Bill(WORKSPACE, 0.5, also=(SHARED, POOL)),
    "slots": Bill(MANY, 0.6, "pool", (LONG,)),
}  # fmt: skip
# Frames below which others say more: a run of the model, and whether the engine starts or serves.
WIDE = ("profile", "forward", "compile", "serving", "starting")


def bill_of(failure: Failure, run: Run, added: Collection[str]) -> Bill:
    """The bill of an allocation failure; `added` are "lora" and "draft" where the arguments have them."""
    amounts, stages = failure.amounts, failure.stages
    total = amounts.get("gpu_memory_bytes", 0.0)
    others = amounts.get("other_bytes", 0.0)
    if total and others > max(GIB, _MOSTLY_OTHERS * total):
        return Bill(SHARED, 0.7, also=(WEIGHTS,))
    found = _by_frame(stages, run) or _by_phase(failure, run, added)
    if failure.match.signature.engine == "llama.cpp":  # which prints no traceback
        missing = tuple(LINES_MISSING if one == FRAMES_MISSING else one for one in found.missing)
        found = replace(found, missing=missing)
    if total and others > max(GIB, _PARTLY_OTHERS * total) and found.confidence < 0.7:
        return Bill(SHARED, 0.55, also=(found.label,) if found.label != UNDETERMINED else ())
    return found


def is_crowded(amounts: Mapping[str, float]) -> bool:
    """Whether several processes share the GPU, and much of it is not this one's."""
    others, total = amounts.get("other_bytes", 0.0), amounts.get("gpu_memory_bytes", 0.0)
    return amounts.get("n_processes", 0) > 1 and total > 0 and others > _MOSTLY_OTHERS * total


def _by_frame(stages: list[str], run: Run) -> Bill | None:
    for word in ("draft", "lora", "pinned"):
        if word in stages:
            return _OF_STAGE[word]
    deep = [s for s in stages if s not in WIDE]
    if deep:
        return _OF_STAGE.get(deep[-1])
    if "profile" in stages:
        if "images" in run.clues:
            return Bill(ENCODER, 0.75, also=(WORKSPACE,))
        return Bill(WORKSPACE, 0.65, "profile", (ENCODER,))
    if "compile" in stages and not {"forward", "serving"} & set(stages):
        return Bill(WORKSPACE, 0.65, also=(SAMPLER,))
    return None


def _by_phase(failure: Failure, run: Run, added: Collection[str]) -> Bill:
    phase = failure.phase
    if "serving" in failure.stages and "starting" not in failure.stages:
        return _while_serving(failure, run, added)
    starting = run.seen("failed-start") or "starting" in failure.stages
    if phase in ("unknown", "captured") and run.seen("died-serving") and not starting:
        phase = "died-serving"
    if "images" in run.clues and phase not in ("loading", "sized", "capturing"):
        return Bill(ENCODER, 0.75, also=(WORKSPACE, PREFILL))
    if phase == "loading":
        return Bill(ADDED, 0.65, "draft", (WEIGHTS,)) if "draft" in run.clues else Bill(WEIGHTS, 0.8)
    if phase == "loaded":
        return Bill(WORKSPACE, 0.6, "profile", (ENCODER,))
    if phase in ("sized", "capturing"):
        return Bill(WORKSPACE, 0.87) if phase == "capturing" else Bill(WORKSPACE, 0.7, also=(SAMPLER,))
    if phase == "captured":
        return Bill(SAMPLER, 0.5, also=(WORKSPACE,))
    if (phase in SERVING and "starting" not in failure.stages) or "forward" in failure.stages:
        return _while_serving(failure, run, added)
    return _by_numbers(failure, run, added)


def _while_serving(failure: Failure, run: Run, added: Collection[str]) -> Bill:
    """The pool was allocated long before, so that a peak of one step overran: a prompt, an image, an adapter."""
    if failure.match.signature.engine == "llama.cpp":
        # Its compute buffers were reserved at the start: what a request allocates is an image's, or scratch.
        return Bill(ENCODER, 0.5, also=(WORKSPACE,), missing=(FRAMES_MISSING,))
    if "lora" in added:
        return Bill(ADDED, 0.55, "lora", (PREFILL,))
    images = (ENCODER,) if "images" in run.clues else ()
    return Bill(PREFILL, 0.55 if images else 0.62, "peak", (*images, SAMPLER), (FRAMES_MISSING,))


def _by_numbers(failure: Failure, run: Run, added: Collection[str]) -> Bill:
    """Before the pool is made only weights can take nearly all of the card; graphs show as private pools."""
    amounts = failure.amounts
    total, held = amounts.get("gpu_memory_bytes", 0.0), amounts.get("allocated_bytes", 0.0)
    alone = total and held / total > _OVER_ANY_BUDGET and "private_pool_bytes" not in amounts
    if alone and (run.seen("failed-start") or "starting" in failure.stages):
        return Bill(WEIGHTS, 0.55, also=(WORKSPACE,), missing=(FRAMES_MISSING, PHASE_MISSING))
    likely = (WEIGHTS, PREFILL) if alone else (WORKSPACE, PREFILL)
    if added:
        return Bill(ADDED, 0.45, next(iter(added)), likely, (FRAMES_MISSING, PHASE_MISSING))
    return Bill(UNDETERMINED, 0.3, also=likely, missing=(FRAMES_MISSING, PHASE_MISSING))


ERROR_MISSING = "the error line itself: the log ends, or was cut, before it"
READY_MISSING = "the rest of the log, up to the line that says that the server is ready"
CAUSE_ABOVE = "read the {who}'s own traceback above this line: it names the cause"
NO_ENGINE = "a line of vLLM, SGLang, TensorRT-LLM, NIM, TGI, LMDeploy or llama.cpp: none was found"
PHASES = {
    "loading": "start: loading weights", "loaded": "start: weights loaded, KV pool not sized",
    "sized": "start: KV pool sized", "capturing": "start: capturing CUDA graphs",
    "captured": "start: CUDA graphs captured", "failed-start": "start", "ready": "serving", "serving": "serving",
    "died-serving": "serving",
}  # fmt: skip
_ADDED_ARGUMENTS = {
    "lora": ("enable_lora", "lora_paths", "lora_modules", "lora_dir"),
    "draft": ("speculative_config", "speculative_algorithm", "speculative_model", "speculative_draft_model_path"),
}
# A line that only reports that another process is gone.
_DIED = re.compile(r"(?i)\b(scheduler|worker|detokenizer|engine|shard|runner|router)\b.{0,40}\b(?:died|dead|exited)\b")
_HAD_FREE_TOKENS = 0.6  # how sure: the engine says that memory is short, its figures say that it is not
_CROWDED = 0.75  # how sure: weights did not fit beside other processes, most often ranks of the same job
_SMALL_STEP = 512  # tokens: where even these do not fit, the weights fill the GPU
# What an engine's own message says of the phase by itself.
_PHASE_OF_LABEL = {
    POOL: "start: sizing the KV pool", SHARED: "start: before the weights",
    SAMPLER: "start: warming up the sampler", MANY: "serving", LONG: "serving",
}  # fmt: skip
_OFF = (None, False, 0, "", "{}", "[]", "None", "null")
# Words of an error that may be one of memory or of a limit, though no signature knows it, or it was cut.
_OF_CAPACITY = re.compile(
    r"(?i)memory|alloc|oom\b|\bcache|block|seq(?:uence)?s?\b|swap|larger than|longer than|exceed|at least one|capacity"
    r"|insufficient|not enough|too (?:long|large|small|many(?! open files))|\bout o"
)


def verdict_of(facts: Facts, startup: StartupLog | None) -> Verdict:
    """The verdict on the last run; on the one before it where the last one only began."""
    added = _added(start_of(facts.run, facts, startup))
    verdict = _verdict_of_run(facts.run, facts, added)
    if facts.n_runs > 1:
        before = _verdict_of_run(facts.runs[0], facts, _added(start_of(facts.runs[0], facts, startup)))
        note = f"the log holds {facts.n_runs} runs"
        if verdict.bill.label == UNDETERMINED or (verdict.bill.label == HEALTHY and verdict.bill.confidence < 0.5):
            return replace(before, notes=(f"{note}; the last one had only begun, this is the one before.",))
        last = f"{note}; this is the last, from line {facts.run.line_number:,}."
        if before.failure is not None:
            at = before.failure.match.line_number
            last += f" The one before it died at line {at:,}: {before.bill.label}."
        return replace(verdict, notes=(last, *verdict.notes))
    return verdict


def start_of(run: Run, facts: Facts, startup: StartupLog | None) -> StartupLog | None:
    """The start that was read, if it is of this run: flags may have been changed since."""
    if startup is None or startup.line_number < run.line_number:
        return None
    return startup if run is facts.run or startup.line_number < facts.run.line_number else None


def _added(startup: StartupLog | None) -> Collection[str]:
    """What the start arguments add to the model: adapters, a draft."""
    if startup is None:
        return ()
    stated = {name: argument.value for name, argument in startup.arguments.items()}
    return tuple(word for word, names in _ADDED_ARGUMENTS.items() if any(stated.get(n) not in _OFF for n in names))


def _verdict_of_run(run: Run, facts: Facts, added: Collection[str]) -> Verdict:
    failure, bill = _first_cause(run, added)
    if failure is None:
        found = without_failure(run, facts)
        return replace(found, notes=_recovered(run)) if run.failures and found.bill.label == HEALTHY else found
    alone = not facts.votes and not any(one.phases for one in facts.runs)
    if failure.match.signature.kind == "oom" and alone and "other-program" in run.clues:
        # Training, a notebook, an image generator: the same text, and none of the bills of a server.
        bill = Bill(UNDETERMINED, 0.2, also=(bill.label,) if bill.label != UNDETERMINED else bill.also,
                    missing=(NO_ENGINE, *bill.missing))  # fmt: skip
    if bill.label == NOT_AN_OOM and (other := _DIED.search(failure.match.text)):
        bill = replace(bill, missing=(*bill.missing, CAUSE_ABOVE.format(who=other[1].lower())))
    return Verdict(bill, run, failure, _phase(failure, run, bill), tuple(_evidence(run, failure, bill)))


def _recovered(run: Run) -> tuple[str, ...]:
    """What failed on the way to a start that came up nevertheless."""
    overcome = [f for f in run.failures if f not in run.lasting_failures]
    if not overcome:
        return ()
    at = overcome[0].match
    return (f"line {at.line_number:,} failed on the way, and the engine came up nevertheless: {at.text[:100]}",)


def _first_cause(run: Run, added: Collection[str]) -> tuple[Failure | None, Bill]:
    """What outranks the rest: a trap, the engine's message, an allocation failure, a weak message, a refusal."""
    failures = [f for f in run.lasting_failures if not _is_quoted(f, run)]
    kinds = ("trap", "typed", "oom", "weak")
    of_kind = {kind: [f for f in failures if f.match.signature.kind == kind] for kind in kinds}
    refused = [f for f in of_kind["typed"] if f.match.signature.lasting]
    deadly = [f for f in of_kind["typed"] if not f.match.signature.lasting]
    best: Failure | None = None
    if of_kind["trap"] and not any(f.match.signature.kind == "oom" for f in run.failures):
        best = of_kind["trap"][0]
    elif deadly:
        best = _clearest(deadly)
    elif ooms := of_kind["oom"]:
        bills = [(f, bill_of(f, run, added)) for f in ooms[:50]]
        failure, bill = max(bills, key=lambda fb: (fb[1].label != UNDETERMINED, round(fb[1].confidence, 1)))
        others = [f for f in of_kind["weak"] if f.match.signature.says != NOT_AN_OOM]
        if bill.label != UNDETERMINED or not others:
            return failure, _with_fragmentation(failure, bill)
        best = max(others, key=_weight)  # the allocator does not say what for, another line does
    else:
        weak = [f for f in of_kind["weak"] if f.match.line_number > run.last("ready")]
        if refused and not any(f.match.signature.confidence >= 0.8 for f in weak):
            best = _clearest(refused)
        elif weak:
            best = max(weak, key=_weight)
    return best, _bill_of_message(best, run, added) if best else Bill(UNDETERMINED, 0.0)


def _is_quoted(failure: Failure, run: Run) -> bool:
    """Words of a client in a line that an engine or a proxy printed: no traceback, and answers that follow."""
    s, line = failure.match.signature, failure.match.line_number
    deadly = (s.kind == "oom" and s.engine is None) or (s.kind != "oom" and s.says in (POOL, WEIGHTS))
    if not deadly or failure.frames or failure.phase not in SERVING or run.last("died-serving") > line:
        return False
    return any(sample.line_number > line and sample.generation_rate for sample in run.usage.last)


def _weight(weak: Failure) -> tuple[float, ...]:
    """Of messages with several causes: a sure one, then the first in time, then the surest of a line."""
    sure, line = weak.match.signature.confidence, weak.match.line_number
    return (sure >= 0.8, sure >= 0.6, -line, sure)


def _clearest(failures: list[Failure]) -> Failure:
    """The first in time; of one and the same bill's messages the surest one."""
    first = failures[0].match
    near = [f for f in failures if f.match.line_number - first.line_number <= 40]
    better = max(near, key=lambda f: (f.match.signature.confidence, -f.match.line_number))
    is_of_bill = better.match.signature.says == first.signature.says
    is_surer = better.match.signature.confidence - 0.1 >= first.signature.confidence
    return better if is_of_bill or is_surer else failures[0]


def _bill_of_message(failure: Failure, run: Run, added: Collection[str]) -> Bill:
    """The label of a message; the rest of the log may tip it to a neighbour."""
    s, figures = failure.match.signature, {**run.figures, **failure.match.figures}
    bill = Bill(s.says, s.confidence, s.case, tuple(s.also))
    if s.says == WEIGHTS and is_crowded(failure.amounts):
        return Bill(WEIGHTS, min(s.confidence, _CROWDED), "placed", (SHARED, *s.also))
    if s.says == PREFILL and s.case == "peak" and 0 < failure.match.figures.get("prefill_tokens", 0) <= _SMALL_STEP:
        return Bill(PREFILL, s.confidence, "full", (WEIGHTS, *s.also))
    if s.says == POOL and figures.get("kv_available_gib", 1) <= 0:
        return Bill(POOL, s.confidence, "empty", tuple(s.also))
    if s.says == MANY and s.case == "pool" and _had_free_tokens(failure, run, figures):
        return Bill(MANY, min(s.confidence, _HAD_FREE_TOKENS), "room", tuple(s.also))
    if s.engine == "sglang" and s.says in (MANY, WORKSPACE) and "draft" in failure.stages:
        return Bill(ADDED, 0.75, "draft", (s.says,))
    if s.engine == "sglang" and s.says == POOL and ("draft" in added or "draft" in run.clues):
        return Bill(ADDED, 0.55, "draft", (POOL,))
    if s.case == "reserve" and (failure.phase in SERVING or failure.stages[-1:] == ["encoder"]):
        # Compute buffers are reserved once, at the start; what is reserved at a request is the image encoder's.
        return Bill(ENCODER, 0.6, also=(WORKSPACE,))
    if s.says == WORKSPACE and s.engine == "llama.cpp" and "images" in run.clues:
        return Bill(ENCODER, 0.75, also=(WORKSPACE,))
    if s.kind == "weak" and s.says == POOL and failure.phase in SERVING:
        bill = Bill(MANY, s.confidence, "pool", (LONG, POOL))
    if bill.label in (MANY, LONG) and bill.case in ("pool", "swap", None):
        return _many_or_long(failure, run, bill)
    return bill


def _had_free_tokens(failure: Failure, run: Run, figures: Mapping[str, float]) -> bool:
    """Whether the engine's own figures say that what it requested was there, and the statistics do not object."""
    seen = [s.usage for s in run.usage.until(failure.match.line_number) if s.usage is not None]
    full = bool(seen) and seen[-1] >= NEARLY_FULL
    return not full and 0 < figures.get("asked_tokens", 0) <= figures.get("pool_free_tokens", 0)


def _many_or_long(failure: Failure, run: Run, bill: Bill) -> Bill:
    """A full pool: the slope of its usage says whether length or number filled it; slots do, where there is none."""
    by = filled_by(run.usage.until(failure.match.line_number))
    if by is None and "one-slot" in run.clues and "several-slots" not in run.clues:
        by = "length"
    if by is None and "several-slots" in run.clues:
        by = "number"
    if by == "length" and bill.label == MANY:
        return Bill(LONG, 0.8, None, (MANY,))
    if by == "number" and bill.label == LONG:
        return Bill(MANY, 0.7, "pool", (LONG,))
    return bill


def _with_fragmentation(failure: Failure, bill: Bill) -> Bill:
    """More reserved and unused than was requested: a cheap trial, never the diagnosis."""
    kept, tried = (failure.amounts.get(k, 0.0) for k in ("reserved_unallocated_bytes", "tried_bytes"))
    return replace(bill, also=(*bill.also, FRAGMENTED)) if tried and kept >= 0.9 * tried else bill


def _phase_words(phase: str) -> str:
    return PHASES.get(phase, "unknown")


def _phase(failure: Failure, run: Run, bill: Bill) -> str:
    if failure.match.signature.kind == "typed":
        if bill.label in _PHASE_OF_LABEL:
            return _PHASE_OF_LABEL[bill.label]
        if bill.label == PREFILL and bill.case == "refused":
            return "serving"
    if failure.phase in ("unknown", "failed-start", "died-serving"):
        if run.seen("failed-start") or any(s in ("weights", "profile", "cache", "graphs") for s in failure.stages):
            return _phase_words("failed-start")
        if run.seen("died-serving"):
            return _phase_words("died-serving")
    if failure.phase == "capturing" and failure.match.signature.engine == "tgi":
        return "start: warming up"  # of which the graphs are the last part
    return _phase_words(failure.phase)


def _evidence(run: Run, failure: Failure, bill: Bill) -> Iterable[Evidence]:
    """The line that decided it, then what it was weighed by, in the order of the log."""
    chosen: dict[int, str] = {failure.match.line_number: failure.match.text}
    deep = [f for f in failure.frames if f.signature.says not in WIDE] or failure.frames
    for frame in deep[-1:]:
        chosen.setdefault(frame.line_number, frame.text)
    for other in run.failures[:30]:
        if other.match.signature.says == failure.match.signature.says and len(chosen) < 3:
            chosen.setdefault(other.match.line_number, other.match.text)
    names = (*STARTING, "died-serving") if bill.label not in (MANY, LONG, PREFILL) else SERVING
    for name in names:
        if (match := run.seen(name)) and len(chosen) < 7:
            chosen.setdefault(match.line_number, match.text)
    if bill.label in (MANY, LONG):
        for sample in run.usage.until(failure.match.line_number)[-2:]:
            chosen.setdefault(sample.line_number, sample.text)
    for match in run.clues.values():
        if len(chosen) < 8:
            chosen.setdefault(match.line_number, match.text)
    return [Evidence(number, text) for number, text in sorted(chosen.items())]


def without_failure(run: Run, facts: Facts) -> Verdict:
    """Nothing failed in the file: it is healthy, or it ends too early, or it is no log of an engine."""
    samples = run.usage.until(None)
    last = next((s for s in reversed(samples) if s.usage is not None), None)
    shown_last = (Evidence(last.line_number, last.text),) if last else ()
    phases = {name: match for names in run.phases.values() for name, match in names.items()}
    marks = tuple(Evidence(m.line_number, m.text) for m in sorted(phases.values(), key=lambda m: m.line_number))[-4:]
    phase = _phase_words(max(phases.values(), key=lambda m: m.line_number).signature.says) if phases else "unknown"
    fullest = max((s.usage or 0.0 for s in samples), default=0.0)
    if (last is not None and (last.usage or 0) >= NEARLY_FULL) or fullest >= FULL:
        by = filled_by(samples)
        if by is not None:
            first = Evidence(samples[0].line_number, samples[0].text)
            label, other = (LONG, MANY) if by == "length" else (MANY, LONG)
            bill = Bill(label, 0.65, None if by == "length" else "pool", (other,))
            return Verdict(bill, run, None, "serving", (first, *shown_last))
    if soon_full(samples) and filled_by(samples) == "length":
        first = Evidence(samples[0].line_number, samples[0].text)
        return Verdict(Bill(LONG, 0.5, None, (MANY,)), run, None, "serving", (first, *shown_last))
    frames = run.frames
    if (frames or run.n_tracebacks) and not run.errors:
        return Verdict(_of_frames(run), run, None, phase, _in_order((*frames[-3:], *run.clues.values()), marks))
    started = run.seen("ready") or run.seen("serving") or samples
    signs = max([run.last("ready"), run.last("serving"), *(s.line_number for s in samples)])
    late = [e for e in run.errors if e.line_number > signs]
    ended = run.seen("died-serving") or bool(late)
    if run.errors and (not started or ended) and (facts.votes or run.seen("failed-start")):
        error = late[0] if started and late else run.errors[0]
        evidence = (Evidence(error.line_number, error.text), *marks)
        if _OF_CAPACITY.search(f"{error.text} {frames}"):
            bill = _of_frames(run) if frames else Bill(UNDETERMINED, 0.2)
            bill = replace(bill, missing=(FRAMES_MISSING, PHASE_MISSING))
            return Verdict(bill, run, None, phase, evidence)
        return Verdict(Bill(NOT_AN_OOM, 0.6), run, None, phase, evidence)
    if run.seen("died-serving") or run.seen("failed-start"):
        return Verdict(Bill(UNDETERMINED, 0.2, missing=(ERROR_MISSING,)), run, None, phase, marks)
    if started:
        return Verdict(Bill(HEALTHY, 0.9), run, None, phase, (*marks, *shown_last))
    if "captured" in phases:
        return Verdict(Bill(HEALTHY, 0.65), run, None, phase, marks)
    if any(name in phases for name in ("sized", "capturing")):
        return Verdict(Bill(HEALTHY, 0.45, missing=(READY_MISSING,)), run, None, phase, marks)
    missing = (READY_MISSING,) if facts.votes else (NO_ENGINE,)
    return Verdict(Bill(UNDETERMINED, 0.1 if facts.votes else 0.0, missing=missing), run, None, phase, marks)


def _in_order(matches: Sequence[Match], marks: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Frames and what tipped the scale, each line once, in the order of the log."""
    chosen = {m.line_number: Evidence(m.line_number, m.text) for m in matches[:8]}
    return tuple(({one.line_number: one for one in marks} | chosen)[n] for n in sorted(
        {*chosen, *(one.line_number for one in marks)}))  # fmt: skip


def _of_frames(run: Run) -> Bill:
    """Frames of an error whose own line is missing: a suspicion at most."""
    match = run.frames[-1] if run.frames else None
    if match is None:
        return Bill(UNDETERMINED, 0.2, missing=(ERROR_MISSING,))
    bill = bill_of(Failure(match, run.phase_of(match.rank), run.frames), run, ())
    if bill.label in (UNDETERMINED, PREFILL):
        return Bill(UNDETERMINED, 0.2, also=bill.also, missing=(ERROR_MISSING,))
    return replace(bill, confidence=min(bill.confidence, 0.45), missing=(ERROR_MISSING,))
