"""What a log says, as it is read line by line: matched signatures, phases, failures with their frames, figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sheetgen.catalog.signatures import Signature, compiled
from sheetgen.diagnose import torch_oom
from sheetgen.diagnose.usage import Usage, sample_of
from sheetgen.errors import shown
from sheetgen.startup.lines import Line

TRACEBACK = "Traceback (most recent call last)"
_ERROR = re.compile(r"\b((?:[A-Za-z_]{1,40}\.){0,4}[A-Z]\w{1,40}(?:Error|Exception)): (.{1,300})|\bAssertionError$")
# What follows from a failure that was told before, and an error of a request or a client.
_CONSEQUENCE = re.compile(
    r"ngine core init|ngine process failed|EngineDead|EngineCore|See (?:root cause|stack trace)|background process"
    r"|WorkerProc|is already dead|sigquit|CancelledError|EngineGenerate|BadRequest|ShardCannotStart|RayActorError"
    r"|ActorDied|died during init|KeyboardInterrupt|HTTPException|Broken pipe|Connection reset"
)
_STARTS = ("vLLM API server version", "non-default args:", "args: Namespace(", "server_args=", "LLM version:")
ERROR_WORDS = ("Error: ", "Exception: ", "AssertionError", TRACEBACK)
WORDS = (*ERROR_WORDS, *_STARTS)
_BEFORE, _AFTER = 200, 1500  # characters around a signature's word that its match sees
_MOST = 400  # failures of one run that are kept
_MOST_SHAPES = 20_000
_NO_DIGITS = {ord(c): None for c in "0123456789"}
FAILED = ("failed-start", "died-serving")
WORKERS = ("TP", "PP", "EP", "rank", "process")


@dataclass(frozen=True, slots=True)
class Match:
    """A signature found in a line."""

    signature: Signature
    line_number: int
    rank: str
    text: str
    figures: dict[str, float]


@dataclass
class Failure:
    """One failure: the match that tells it, the frames of its traceback and how far the start had come."""

    match: Match
    phase: str
    frames: list[Match] = field(default_factory=list)
    amounts: dict[str, float] = field(default_factory=dict)
    frames_follow: bool = False

    @property
    def stages(self) -> list[str]:
        """What its frames are of, the outermost first."""
        return [frame.signature.says for frame in self.frames]


@dataclass(frozen=True, slots=True)
class PlainError:
    """An exception that no signature knows."""

    line_number: int
    text: str
    phase: str
    in_traceback: bool


@dataclass
class Run:
    """What one run of the engine says."""

    line_number: int = 1
    failures: list[Failure] = field(default_factory=list)
    errors: list[PlainError] = field(default_factory=list)
    clues: dict[str, Match] = field(default_factory=dict)
    phases: dict[str, dict[str, Match]] = field(default_factory=dict)  # by rank, then by phase: the last of each
    figures: dict[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    tracebacks: dict[str, list[Match]] = field(default_factory=dict)
    n_tracebacks: int = 0

    def seen(self, phase: str) -> Match | None:
        """The first match of a phase, whatever the rank."""
        found = [by_name[phase] for by_name in self.phases.values() if phase in by_name]
        return min(found, key=lambda m: m.line_number) if found else None

    def last(self, phase: str) -> int:
        """The last line of a phase; 0 where it was not seen."""
        return max((names[phase].line_number for names in self.phases.values() if phase in names), default=0)

    @property
    def ended(self) -> bool:
        """Whether something ended it, so that a start that follows is another run."""
        return any(not f.match.signature.lasting for f in self.failures) or bool(self.errors and self.phases)

    def phase_of(self, rank: str) -> str:
        """How far `rank` had come: by its own lines and those of no worker, else by all."""
        own = [m for r, names in self.phases.items() if r == rank or not r.startswith(WORKERS) for m in names.values()]
        every = own or [m for names in self.phases.values() for m in names.values()]
        # A line that says that it failed says so of the phase before.
        every = [m for m in every if m.signature.says not in FAILED] or every
        return max(every, key=lambda m: m.line_number).signature.says if every else "unknown"

    @property
    def frames(self) -> list[Match]:
        """All frames, of all ranks."""
        return [match for frames in self.tracebacks.values() for match in frames]


@dataclass
class Facts:
    """All runs of a log; of those before the last only the latest is kept."""

    runs: list[Run] = field(default_factory=lambda: [Run()])
    n_runs: int = 1
    votes: Counter[str] = field(default_factory=Counter)
    n_lines: int = 0

    @property
    def run(self) -> Run:
        return self.runs[-1]


Known = tuple[Signature, re.Pattern[str] | None]


def _by_word(signatures: Sequence[Signature]) -> tuple[list[Known], list[Known]]:
    """Signatures whose word has digits, and all others, each with its compiled match."""
    known = [(s, compiled(s.match) if s.match else None) for s in signatures]
    numbered = [any(c.isdigit() for c in s.word) for s in signatures]
    return (
        [k for k, has in zip(known, numbered, strict=True) if has],
        [k for k, has in zip(known, numbered, strict=True) if not has],
    )


class Watcher:
    """Puts line after line into `facts`."""

    def __init__(self, signatures: Sequence[Signature]) -> None:
        self.facts = Facts()
        self._digits, self._plain = _by_word(signatures)
        self._shapes: dict[str, list[Known]] = {}

    def see(self, line: Line) -> None:
        facts, run, text = self.facts, self.facts.run, line.text
        facts.n_lines += 1
        if any(word in text for word in _STARTS) and run.ended:
            facts.runs, facts.n_runs = [run, Run(line.number)], facts.n_runs + 1
            run = facts.run
        if TRACEBACK in text:
            run.n_tracebacks += 1
            run.tracebacks[line.rank] = []
            for failure in run.failures[-3:]:
                failure.frames_follow = failure.frames_follow and not failure.frames
        if sample := sample_of(line):
            run.usage.put(sample)
        told = False
        for match in self._matches(line):
            told = _take(run, match, text) or told
            if match.signature.engine:
                facts.votes[match.signature.engine] += _WEIGHTS.get(match.signature.kind, 1)
        if not told:
            _plain_error(run, line)

    def _matches(self, line: Line) -> Iterator[Match]:
        text = line.text
        for signature, pattern in (*self._candidates(text), *self._digits):
            at = text.find(signature.word)
            if at < 0:
                continue
            window = text[max(0, at - _BEFORE) : at + _AFTER]
            found = pattern.search(window) if pattern else None
            if pattern and found is None:
                continue
            figures = {k: float(v.replace(",", "")) for k, v in (found.groupdict() if found else {}).items() if v}
            start = max(0, at - 80)
            yield Match(signature, line.number, line.rank, shown(text[start:], 300), figures)

    def _candidates(self, text: str) -> list[Known]:
        """The signatures whose word is in the line; lines that differ in their digits alone are looked at once."""
        shape = text[:2000].translate(_NO_DIGITS)
        found = self._shapes.get(shape)
        if found is None or len(text) > 2000:
            found = [known for known in self._plain if known[0].word in text]
            if len(self._shapes) < _MOST_SHAPES and len(text) <= 2000:
                self._shapes[shape] = found
        return found


_WEIGHTS = {"typed": 3, "trap": 3, "phase": 2, "engine": 1}


def _take(run: Run, match: Match, text: str) -> bool:
    """Put a match where it belongs; whether it tells a failure."""
    kind = match.signature.kind
    if kind == "phase":
        name = match.signature.says
        ranks = run.phases.setdefault(match.rank, {})
        if name == "loading" and "sized" in ranks and "draft" not in run.clues:
            run.clues["draft"] = match
        if len(run.phases) <= 2048:
            ranks[name] = match
    elif kind == "clue":
        run.clues.setdefault(match.signature.says, match)
        run.figures |= {k: v for k, v in match.figures.items() if k not in run.figures}
    elif kind == "frame":
        _frame(run, match)
    elif kind != "engine":
        return _fail(run, match, text)
    return False


def _frame(run: Run, match: Match) -> None:
    frames = run.tracebacks.setdefault(match.rank, [])
    if len(frames) < 200:
        frames.append(match)
    for failure in run.failures[-3:]:
        if (
            failure.frames_follow
            and failure.match.rank == match.rank
            and match.line_number >= failure.match.line_number
        ):
            failure.frames.append(match)


def _fail(run: Run, match: Match, text: str) -> bool:
    if len(run.failures) >= _MOST:
        return True
    before = [f for f in run.tracebacks.get(match.rank, []) if match.line_number - f.line_number < 500]
    failure = Failure(match, run.phase_of(match.rank), before)
    if match.signature.kind in ("oom", "typed"):
        failure.amounts = torch_oom.amounts(text)
    failure.frames_follow = not failure.frames
    if match.signature.kind in ("typed", "oom"):
        run.tracebacks.pop(match.rank, None)
    run.failures.append(failure)
    return True


def _plain_error(run: Run, line: Line) -> None:
    if len(run.errors) >= _MOST or not any(word in line.text for word in ERROR_WORDS[:3]):
        return
    found = _ERROR.search(line.text)
    if found and not _CONSEQUENCE.search(found[0]):
        kept = PlainError(line.number, shown(found[0], 300), run.phase_of(line.rank), run.n_tracebacks > 0)
        run.errors.append(kept)
