"""A log in which no failure was matched: healthy, cut too early, failed by an unknown error, or no log of an engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sheetgen.diagnose import usage
from sheetgen.diagnose.facts import Facts, Failure, Match, Run
from sheetgen.diagnose.rules import FRAMES_MISSING, LONG, MANY, PHASE_MISSING, PREFILL, UNDETERMINED, Bill, bill_of
from sheetgen.diagnose.verdict import (
    ERROR_MISSING,
    HEALTHY,
    NO_ENGINE,
    NOT_AN_OOM,
    READY_MISSING,
    Evidence,
    Verdict,
    named,
)  # fmt: skip

# Words of an error that may be one of memory or of a limit, though no signature knows it, or it was cut.
_OF_CAPACITY = re.compile(
    r"(?i)memory|alloc|oom\b|\bcache|block|seq(?:uence)?s?\b|swap|larger than|longer than|exceed|at least one|capacity"
    r"|insufficient|not enough|too (?:long|large|small|many(?! open files))|\bout o"
)


def without_failure(run: Run, facts: Facts) -> Verdict:
    """Nothing failed in the file: it is healthy, or it ends too early, or it is no log of an engine."""
    samples = run.usage.until(None)
    last = next((s for s in reversed(samples) if s.usage is not None), None)
    shown_last = (Evidence(last.line_number, last.text),) if last else ()
    phases = {name: match for names in run.phases.values() for name, match in names.items()}
    marks = tuple(Evidence(m.line_number, m.text) for m in sorted(phases.values(), key=lambda m: m.line_number))[-4:]
    phase = named(max(phases.values(), key=lambda m: m.line_number).signature.says) if phases else "unknown"
    fullest = max((s.usage or 0.0 for s in samples), default=0.0)
    if (last is not None and (last.usage or 0) >= usage.NEARLY_FULL) or fullest >= usage.FULL:
        by = usage.filled_by(samples)
        if by is not None:
            first = Evidence(samples[0].line_number, samples[0].text)
            label, other = (LONG, MANY) if by == "length" else (MANY, LONG)
            bill = Bill(label, 0.65, None if by == "length" else "pool", (other,))
            return Verdict(bill, run, None, "serving", (first, *shown_last))
    if usage.soon_full(samples) and usage.filled_by(samples) == "length":
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
            return Verdict(replace(bill, missing=(FRAMES_MISSING, PHASE_MISSING)), run, None, phase, evidence)
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
