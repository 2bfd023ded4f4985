"""Line after line of a log into its facts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sheetgen.catalog.names import Devices
from sheetgen.catalog.signatures import Signature, compiled
from sheetgen.diagnose import torch_oom
from sheetgen.diagnose.excerpt import excerpt
from sheetgen.diagnose.facts import Facts, Failure, Match, PlainError, Run
from sheetgen.diagnose.usage import WORDS as OF_USAGE
from sheetgen.diagnose.usage import sample_of
from sheetgen.startup.lines import HEX, Line
from sheetgen.startup.read import WORDS as OF_STARTUP

TRACEBACK = "Traceback (most recent call last)"
_ERROR = re.compile(
    r"\b((?:[A-Za-z_]{1,40}\.){0,4}(?:[A-Z]\w{1,40}(?:Error|Exception)|Exception)): (.{1,300})|\bAssertionError$"
)
# What follows from a failure that was told before, and an error of a request or a client.
_CONSEQUENCE = re.compile(
    r"ngine core init|ngine process failed|EngineDead|EngineCore|See (?:root cause|stack trace)|background process"
    r"|WorkerProc|is already dead|sigquit|CancelledError|EngineGenerate|BadRequest|ShardCannotStart|RayActorError"
    r"|ActorDied|died during init|KeyboardInterrupt|HTTPException|Broken pipe|Connection reset"
)
# A new run begins, after one that has ended.
_STARTS = ("vLLM API server version", "non-default args:", "args: Namespace(", "server_args=", "LLM version:")
ERROR_WORDS = ("Error: ", "Exception: ", "AssertionError", TRACEBACK)
WORDS = (*ERROR_WORDS, *_STARTS)
# Where an engine prints what a user wrote, or what was answered: no word from there on is the engine's.
_USERS_LINES = ("Received request", "Generated response", "details: prompt", "Receive: obj=", "Finish: obj=",
                "log_server_r: request", "prompt=", "Parsing input with format", "request body: ",
                "input_value=")  # fmt: skip
_USERS_TEXT = re.compile(
    r"(?<=Receive: obj=)|(?<=Finish: obj=)|(?<=Parsing input with format)|(?<=request body: )"
    r"|\binput_value=(?=['\"{\[])"
    r"|\bprompt: ?(?=['\"])|\bprompt=(?=['\"])|\boutput: ?(?=['\"])|\b(?:text|out)=(?=['\"{\[])|\brequest: ?(?=\{)"
)
_BEFORE, _AFTER = 200, 1500  # characters around a signature's word that its match sees
_AROUND = 200  # of these, those that a quoted line shows
_AMOUNTS = 1 << 14  # characters of a line that states amounts
_MOST = 400  # failures of one run that are kept
_MOST_SHAPES = 20_000
_NO_DIGITS = {ord(c): None for c in "0123456789"}
_SHAPED = 2000  # characters of a line that is told by its shape
_HEX = re.compile(HEX)
Known = tuple[Signature, re.Pattern[str] | None]


@dataclass(frozen=True, slots=True)
class Shape:
    """What is looked for in lines that differ in digits and long hexadecimal names alone."""

    known: tuple[Known, ...]
    starts: bool
    traceback: bool
    error: bool
    statistics: bool
    of_startup: bool


class Watcher:
    """Puts line after line into `facts`."""

    def __init__(self, signatures: Sequence[Signature], devices: Devices) -> None:
        self.facts = Facts()
        self._known = [(s, compiled(s.match) if s.match else None) for s in signatures]
        self._parts = [_plain(s.word) for s in signatures]
        self._by_shape = [_is_by_shape(s) for s in signatures]
        self._startup = tuple({_plain(word) for word in (*OF_STARTUP, *devices.words)})
        self._shapes: dict[str, Shape] = {}

    def see(self, line: Line) -> Line | None:
        """Take a line in; what of it may concern the start-up reader."""
        if any(word in line.text for word in _USERS_LINES) and (users := _USERS_TEXT.search(line.text)):
            line = Line(line.number, line.text[: users.start()], line.rank)
        shape = self._shape(line.text)
        facts, run = self.facts, self.facts.run
        facts.n_lines += 1
        if shape.starts and run.ended:
            facts.runs, facts.n_runs = [run, Run(line.number)], facts.n_runs + 1
            run = facts.run
        if shape.traceback:
            run.n_tracebacks += 1
            run.tracebacks[line.rank] = []
            for failure in run.failures[-3:]:
                failure.frames_follow = failure.frames_follow and not failure.frames
        if shape.statistics and (sample := sample_of(line)):
            run.usage.put(sample)
        told = False
        for match in _matches(line, shape.known):
            told = _take(run, match, line.text) or told
            if match.signature.engine:
                facts.votes[match.signature.engine] += _WEIGHTS.get(match.signature.kind, 1)
        if shape.error and not told:
            _plain_error(run, line)
        return line if shape.of_startup else None

    def _shape(self, text: str) -> Shape:
        if len(text) > _SHAPED:
            return self._look_at(text)
        bare = text.translate(_NO_DIGITS)
        found = self._shapes.get(bare)
        if found is None:
            bare = _HEX.sub("\x00", text).translate(_NO_DIGITS)
            found = self._shapes.get(bare)
        if found is None:
            found = self._look_at(text)
            if len(self._shapes) < _MOST_SHAPES:
                self._shapes[bare] = found
        return found

    def _look_at(self, text: str) -> Shape:
        return Shape(
            tuple(
                known
                for known, part, by_shape in zip(self._known, self._parts, self._by_shape, strict=True)
                if part in text and (not by_shape or _found(text, known) is not None)
            ),
            starts=any(word in text for word in _STARTS),
            traceback=TRACEBACK in text,
            error=any(word in text for word in ERROR_WORDS[:3]),
            statistics=any(word in text for word in OF_USAGE),
            of_startup=any(word in text for word in self._startup),
        )


def _plain(word: str) -> str:
    """The longest part of a word without digits, for lines are told by what they are without them."""
    return max(re.split(r"\d+", word), key=len)


def _is_by_shape(signature: Signature) -> bool:
    """Whether no digit and no figure decides its match, so that all lines of a shape match alike."""
    bare = re.sub(r"\{\d+(?:,\d+)?\}|\(\?<[!=]", "", signature.match or "<none>")
    return not re.search(r"[\d<]|\\d", bare + signature.word)


def _found(text: str, known: Known) -> tuple[int, re.Match[str] | None] | None:
    """Where a signature's word stands and what its pattern found there; None where it is not in the line."""
    signature, pattern = known
    at = text.find(signature.word)
    if at < 0 or pattern is None:
        return None if at < 0 else (at, None)
    found = pattern.search(text[max(0, at - _BEFORE) : at + _AFTER])
    return None if found is None else (at, found)


def _matches(line: Line, candidates: Sequence[Known]) -> Iterator[Match]:
    for known in candidates:
        hit = _found(line.text, known)
        if hit is None:
            continue
        at, found = hit
        figures = {k: float(v.replace(",", "")) for k, v in (found.groupdict() if found else {}).items() if v}
        begin, end = at, at + len(known[0].word)
        if found:
            first = max(0, at - _BEFORE)
            begin, end = min(begin, first + found.start()), max(end, first + found.end())
        # A pattern may look far back or ahead; what was found is around the word.
        begin, end = max(begin, at - _AROUND), min(end, at + _AROUND)
        yield Match(known[0], line.number, line.rank, excerpt(line.text, begin, end), figures)


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
    if len(run.failures) >= _MOST and not _made_room(run, match):
        return True
    before = [f for f in run.tracebacks.get(match.rank, []) if match.line_number - f.line_number < 500]
    failure = Failure(match, run.phase_of(match.rank), before)
    if match.signature.kind in ("oom", "typed"):
        failure.amounts = torch_oom.amounts(text[:_AMOUNTS])
    failure.frames_follow = not failure.frames
    if match.signature.kind in ("typed", "oom"):
        run.tracebacks.pop(match.rank, None)
    run.failures.append(failure)
    return True


def _made_room(run: Run, match: Match) -> bool:
    """A thousand refusals must not hide the death that follows: the latest of what is no death gives way."""
    if run.none_minor or _is_minor(match.signature):
        return False
    minor = next((i for i in range(_MOST - 1, 0, -1) if _is_minor(run.failures[i].match.signature)), None)
    if minor is not None:
        del run.failures[minor]
    run.none_minor = minor is None
    return minor is not None


def _is_minor(signature: Signature) -> bool:
    return signature.lasting or signature.kind == "weak"


def _plain_error(run: Run, line: Line) -> None:
    if len(run.errors) >= _MOST:
        return
    found = _ERROR.search(line.text)
    if found and not _CONSEQUENCE.search(found[0]):
        kept = PlainError(line.number, excerpt(found[0]), run.phase_of(line.rank), run.n_tracebacks > 0)
        run.errors.append(kept)
