"""Facts -> a label: was it an allocation failure, the engine's own message, the frame, the phase, the numbers.

Where no failure was matched a log is healthy, cut too early, failed by an unknown error, or no log of an engine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from sheetgen.diagnose import rules
from sheetgen.diagnose.facts import FULL, NEARLY_FULL, Facts, Failure, Match, Run, filled_by, soon_full
from sheetgen.diagnose.rules import SERVING, STARTING, WIDE, Bill, Evidence, Verdict, bill_of, is_crowded
from sheetgen.startup.read import StartupLog

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
    rules.POOL: "start: sizing the KV pool", rules.SHARED: "start: before the weights",
    rules.SAMPLER: "start: warming up the sampler", rules.MANY: "serving", rules.LONG: "serving",
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
        if verdict.bill.label == rules.UNDETERMINED or (
            verdict.bill.label == rules.HEALTHY and verdict.bill.confidence < 0.5
        ):
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
        return replace(found, notes=_recovered(run)) if run.failures and found.bill.label == rules.HEALTHY else found
    alone = not facts.votes and not any(one.phases for one in facts.runs)
    if failure.match.signature.kind == "oom" and alone and "other-program" in run.clues:
        # Training, a notebook, an image generator: the same text, and none of the bills of a server.
        bill = Bill(rules.UNDETERMINED, 0.2, also=(bill.label,) if bill.label != rules.UNDETERMINED else bill.also,
                    missing=(NO_ENGINE, *bill.missing))  # fmt: skip
    if bill.label == rules.NOT_AN_OOM and (other := _DIED.search(failure.match.text)):
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
        failure, bill = max(bills, key=lambda fb: (fb[1].label != rules.UNDETERMINED, round(fb[1].confidence, 1)))
        others = [f for f in of_kind["weak"] if f.match.signature.says != rules.NOT_AN_OOM]
        if bill.label != rules.UNDETERMINED or not others:
            return failure, _with_fragmentation(failure, bill)
        best = max(others, key=_weight)  # the allocator does not say what for, another line does
    else:
        weak = [f for f in of_kind["weak"] if f.match.line_number > run.last("ready")]
        if refused and not any(f.match.signature.confidence >= 0.8 for f in weak):
            best = _clearest(refused)
        elif weak:
            best = max(weak, key=_weight)
    return best, _bill_of_message(best, run, added) if best else Bill(rules.UNDETERMINED, 0.0)


def _is_quoted(failure: Failure, run: Run) -> bool:
    """Words of a client in a line that an engine or a proxy printed: no traceback, and answers that follow."""
    s, line = failure.match.signature, failure.match.line_number
    deadly = (s.kind == "oom" and s.engine is None) or (s.kind != "oom" and s.says in (rules.POOL, rules.WEIGHTS))
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
    if s.says == rules.WEIGHTS and is_crowded(failure.amounts):
        return Bill(rules.WEIGHTS, min(s.confidence, _CROWDED), "placed", (rules.SHARED, *s.also))
    if (
        s.says == rules.PREFILL
        and s.case == "peak"
        and 0 < failure.match.figures.get("prefill_tokens", 0) <= _SMALL_STEP
    ):
        return Bill(rules.PREFILL, s.confidence, "full", (rules.WEIGHTS, *s.also))
    if s.says == rules.POOL and figures.get("kv_available_gib", 1) <= 0:
        return Bill(rules.POOL, s.confidence, "empty", tuple(s.also))
    if s.says == rules.MANY and s.case == "pool" and _had_free_tokens(failure, run, figures):
        return Bill(rules.MANY, min(s.confidence, _HAD_FREE_TOKENS), "room", tuple(s.also))
    if s.engine == "sglang" and s.says in (rules.MANY, rules.WORKSPACE) and "draft" in failure.stages:
        return Bill(rules.ADDED, 0.75, "draft", (s.says,))
    if s.engine == "sglang" and s.says == rules.POOL and ("draft" in added or "draft" in run.clues):
        return Bill(rules.ADDED, 0.55, "draft", (rules.POOL,))
    if s.case == "reserve" and (failure.phase in SERVING or failure.stages[-1:] == ["encoder"]):
        # Compute buffers are reserved once, at the start; what is reserved at a request is the image encoder's.
        return Bill(rules.ENCODER, 0.6, also=(rules.WORKSPACE,))
    if s.says == rules.WORKSPACE and s.engine == "llama.cpp" and "images" in run.clues:
        return Bill(rules.ENCODER, 0.75, also=(rules.WORKSPACE,))
    if s.kind == "weak" and s.says == rules.POOL and failure.phase in SERVING:
        bill = Bill(rules.MANY, s.confidence, "pool", (rules.LONG, rules.POOL))
    if bill.label in (rules.MANY, rules.LONG) and bill.case in ("pool", "swap", None):
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
    if by == "length" and bill.label == rules.MANY:
        return Bill(rules.LONG, 0.8, None, (rules.MANY,))
    if by == "number" and bill.label == rules.LONG:
        return Bill(rules.MANY, 0.7, "pool", (rules.LONG,))
    return bill


def _with_fragmentation(failure: Failure, bill: Bill) -> Bill:
    """More reserved and unused than was requested: a cheap trial, never the diagnosis."""
    kept, tried = (failure.amounts.get(k, 0.0) for k in ("reserved_unallocated_bytes", "tried_bytes"))
    return replace(bill, also=(*bill.also, rules.FRAGMENTED)) if tried and kept >= 0.9 * tried else bill


def _phase_words(phase: str) -> str:
    return PHASES.get(phase, "unknown")


def _phase(failure: Failure, run: Run, bill: Bill) -> str:
    if failure.match.signature.kind == "typed":
        if bill.label in _PHASE_OF_LABEL:
            return _PHASE_OF_LABEL[bill.label]
        if bill.label == rules.PREFILL and bill.case == "refused":
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
    names = (*STARTING, "died-serving") if bill.label not in (rules.MANY, rules.LONG, rules.PREFILL) else SERVING
    for name in names:
        if (match := run.seen(name)) and len(chosen) < 7:
            chosen.setdefault(match.line_number, match.text)
    if bill.label in (rules.MANY, rules.LONG):
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
            label, other = (rules.LONG, rules.MANY) if by == "length" else (rules.MANY, rules.LONG)
            bill = Bill(label, 0.65, None if by == "length" else "pool", (other,))
            return Verdict(bill, run, None, "serving", (first, *shown_last))
    if soon_full(samples) and filled_by(samples) == "length":
        first = Evidence(samples[0].line_number, samples[0].text)
        return Verdict(Bill(rules.LONG, 0.5, None, (rules.MANY,)), run, None, "serving", (first, *shown_last))
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
            bill = _of_frames(run) if frames else Bill(rules.UNDETERMINED, 0.2)
            bill = replace(bill, missing=(rules.FRAMES_MISSING, rules.PHASE_MISSING))
            return Verdict(bill, run, None, phase, evidence)
        return Verdict(Bill(rules.NOT_AN_OOM, 0.6), run, None, phase, evidence)
    if run.seen("died-serving") or run.seen("failed-start"):
        return Verdict(Bill(rules.UNDETERMINED, 0.2, missing=(ERROR_MISSING,)), run, None, phase, marks)
    if started:
        return Verdict(Bill(rules.HEALTHY, 0.9), run, None, phase, (*marks, *shown_last))
    if "captured" in phases:
        return Verdict(Bill(rules.HEALTHY, 0.65), run, None, phase, marks)
    if any(name in phases for name in ("sized", "capturing")):
        return Verdict(Bill(rules.HEALTHY, 0.45, missing=(READY_MISSING,)), run, None, phase, marks)
    missing = (READY_MISSING,) if facts.votes else (NO_ENGINE,)
    return Verdict(Bill(rules.UNDETERMINED, 0.1 if facts.votes else 0.0, missing=missing), run, None, phase, marks)


def _in_order(matches: Sequence[Match], marks: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Frames and what tipped the scale, each line once, in the order of the log."""
    chosen = {m.line_number: Evidence(m.line_number, m.text) for m in matches[:8]}
    return tuple(({one.line_number: one for one in marks} | chosen)[n] for n in sorted(
        {*chosen, *(one.line_number for one in marks)}))  # fmt: skip


def _of_frames(run: Run) -> Bill:
    """Frames of an error whose own line is missing: a suspicion at most."""
    match = run.frames[-1] if run.frames else None
    if match is None:
        return Bill(rules.UNDETERMINED, 0.2, missing=(ERROR_MISSING,))
    bill = bill_of(Failure(match, run.phase_of(match.rank), run.frames), run, ())
    if bill.label in (rules.UNDETERMINED, rules.PREFILL):
        return Bill(rules.UNDETERMINED, 0.2, also=bill.also, missing=(ERROR_MISSING,))
    return replace(bill, confidence=min(bill.confidence, 0.45), missing=(ERROR_MISSING,))
