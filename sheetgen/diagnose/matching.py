"""Line after line of a log into its facts, and the amounts of PyTorch's out-of-memory line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sheetgen.catalog.guidance import Signature, compiled
from sheetgen.catalog.names import Devices
from sheetgen.diagnose.facts import USAGE_WORDS, Facts, Failure, Match, PlainError, Run, excerpt, sample_of
from sheetgen.startup.lines import ByShape, Line, without_digits
from sheetgen.startup.read import WORDS as STARTUP_WORDS
from sheetgen.units import GIB, MIB

TRACEBACK = "Traceback (most recent call last)"
_ERROR = re.compile(
    r"\b((?:[A-Za-z_]{1,40}\.){0,4}(?:[A-Z]\w{1,40}(?:Error|Exception)|Exception)): (.{1,300})|\bAssertionError$"
)
# What follows from a failure that was reported before, and an error of a request or a client.
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
_VOTES = {"typed": 3, "trap": 3, "phase": 2, "engine": 1}  # for an engine, by the kind of its text
Known = tuple[Signature, re.Pattern[str] | None]
_AMOUNT = r"(\d{1,9}(?:\.\d{1,4})?) (bytes|KiB|MiB|GiB|KB|MB|GB)"
_UNITS = {"bytes": 1, "KiB": 1024, "KB": 1024, "MiB": MIB, "MB": MIB, "GiB": GIB, "GB": GIB}
_WORDINGS = (
    ("tried_bytes", rf"Tried to allocate {_AMOUNT}"),
    ("gpu_memory_bytes", rf"total capaci?ty of {_AMOUNT}"),
    ("gpu_memory_bytes", rf"{_AMOUNT} total capacity"),
    ("free_bytes", rf"of which {_AMOUNT} is free"),
    ("free_bytes", rf"; {_AMOUNT} free"),
    ("in_use_bytes", rf"this process has {_AMOUNT} memory in use"),
    ("allocated_bytes", rf"{_AMOUNT} is allocated by PyTorch"),
    ("allocated_bytes", rf"{_AMOUNT} already allocated"),
    ("private_pool_bytes", rf"{_AMOUNT} allocated in private pools"),
    ("reserved_bytes", rf"{_AMOUNT} reserved in total"),
    ("reserved_unallocated_bytes", rf"{_AMOUNT} is reserved by PyTorch but unallocated"),
)
_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _WORDINGS)
_PROCESS = re.compile(rf"Process (\d{{1,10}}) has {_AMOUNT}")
_CONTEXT = 2 * GIB  # of a rank that has only begun
_GPU = re.compile(r"GPU (\d{1,4})(?: has|;)")


@dataclass(frozen=True, slots=True)
class Traits:
    """What is looked for in lines of one shape."""

    candidates: tuple[Known, ...]
    opens_run: bool
    is_traceback: bool
    is_error: bool
    is_statistics: bool
    is_of_startup: bool


class Matcher:
    """Puts line after line into `facts`."""

    def __init__(self, signatures: Sequence[Signature], devices: Devices) -> None:
        self.facts = Facts()
        self._known = [
            ((s, compiled(s.match) if s.match else None), without_digits(s.word), _is_by_shape(s)) for s in signatures
        ]
        self._startup_words = tuple({without_digits(word) for word in (*STARTUP_WORDS, *devices.words)})
        self._traits = ByShape(str, self._traits_of)

    def take(self, line: Line) -> Line | None:
        """Take a line in; what of it may concern the start-up reader."""
        if any(word in line.text for word in _USERS_LINES) and (users := _USERS_TEXT.search(line.text)):
            line = Line(line.number, line.text[: users.start()], line.rank)
        traits = self._traits(line.text)
        facts, run = self.facts, self.facts.run
        facts.n_lines += 1
        if traits.opens_run and run.ended:
            facts.runs, facts.n_runs = [run, Run(line.number)], facts.n_runs + 1
            run = facts.run
        if traits.is_traceback:
            run.n_tracebacks += 1
            run.tracebacks[line.rank] = []
            for failure in run.failures[-3:]:
                failure.frames_follow = failure.frames_follow and not failure.frames
        if traits.is_statistics and (sample := sample_of(line)):
            run.usage.put(sample)
        is_failure = False
        for match in _matches(line, traits.candidates):
            is_failure = _take(run, match, line.text) or is_failure
            if match.signature.engine:
                facts.votes[match.signature.engine] += _VOTES.get(match.signature.kind, 1)
        if traits.is_error and not is_failure:
            _plain_error(run, line)
        return line if traits.is_of_startup else None

    def _traits_of(self, text: str) -> Traits:
        return Traits(
            tuple(k for k, part, by_shape in self._known if part in text and (not by_shape or _found(text, k))),
            opens_run=any(word in text for word in _STARTS), is_traceback=TRACEBACK in text,
            is_error=any(word in text for word in ERROR_WORDS[:3]),
            is_statistics=any(word in text for word in USAGE_WORDS),
            is_of_startup=any(word in text for word in self._startup_words),
        )  # fmt: skip


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


def _take(run: Run, match: Match, text: str) -> bool:
    """Put a match where it belongs; whether it is a failure."""
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
        of_failure = failure.match.rank == match.rank and match.line_number >= failure.match.line_number
        if failure.frames_follow and of_failure:
            failure.frames.append(match)


def _fail(run: Run, match: Match, text: str) -> bool:
    if len(run.failures) >= _MOST and not _makes_way(run, match):
        return True
    before = [f for f in run.tracebacks.get(match.rank, []) if match.line_number - f.line_number < 500]
    failure = Failure(match, run.phase_of(match.rank), before)
    if match.signature.kind in ("oom", "typed"):
        failure.amounts = amounts(text[:_AMOUNTS])
    failure.frames_follow = not failure.frames
    if match.signature.kind in ("typed", "oom"):
        run.tracebacks.pop(match.rank, None)
    run.failures.append(failure)
    return True


def _makes_way(run: Run, match: Match) -> bool:
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
        run.errors.append(PlainError(line.number, excerpt(found[0]), run.phase_of(line.rank)))


def amounts(text: str) -> dict[str, float]:
    """Every amount of the line; `other_bytes` is what processes but this one hold, where the line lets one tell."""
    found: dict[str, float] = {}
    for name, pattern in _PATTERNS:
        if name not in found and (match := pattern.search(text)):
            found[name] = float(match[1]) * _UNITS[match[2]]
    if "reserved_bytes" in found and "allocated_bytes" in found:
        kept = found["reserved_bytes"] - found["allocated_bytes"]
        found.setdefault("reserved_unallocated_bytes", max(0.0, kept))
    sizes = [float(m[2]) * _UNITS[m[3]] for m in _PROCESS.finditer(text)]
    if sizes:
        found["n_processes"] = len(sizes) + ("in_use_bytes" in found)
    if gpu := _GPU.search(text):
        found["gpu"] = float(gpu[1])
    others = _others(found, sizes)
    if others is not None and not _of_one_job(found, sizes):
        found["other_bytes"] = others
    return found


def _of_one_job(found: dict[str, float], sizes: list[float]) -> bool:
    """Several processes of the same small size beside this one: contexts of its own ranks, not somebody else's."""
    alike = len(sizes) > 1 and max(sizes) - min(sizes) <= 0.01 * max(sizes)
    return alike and "in_use_bytes" in found and max(sizes) < _CONTEXT


def _others(found: dict[str, float], sizes: list[float]) -> float | None:
    """What is in use and not by this process. A container sees its own process by another number."""
    least = found.get("allocated_bytes", 0.0)
    own = found.get("in_use_bytes")
    if own is not None and own < least:  # a container that cannot see itself: "this process has 0 bytes"
        return None
    if own is None and len(sizes) > 1:
        own = min((size for size in sizes if size >= least), default=max(sizes))
        return sum(sizes) - own
    if own is not None and {"gpu_memory_bytes", "free_bytes"} <= found.keys():
        return max(0.0, found["gpu_memory_bytes"] - found["free_bytes"] - own)
    return None
