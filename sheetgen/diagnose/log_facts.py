"""The facts of a log, collected line by line: matched signatures, phases, failures with their frames, statistics."""

from __future__ import annotations

import itertools
import re
from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.signatures import Signature, compiled
from sheetgen.diagnose import prose
from sheetgen.errors import shown
from sheetgen.startup.log_lines import ByShape, Line, without_digits
from sheetgen.startup.startup_log import UNITS, StartupLog, startup_words
from sheetgen.units import GIB

FAILED = ("failed-start", "died-serving")
SERVING = ("ready", "serving", "died-serving")
WORKERS = ("TP", "PP", "EP", "rank", "process")
MOST = 300  # characters of an excerpt
_LEAD = 80  # characters of it before the match
_NEAR = 40  # characters within which a space is looked for, to cut between words
_N = r"(\d{1,12}(?:\.\d{1,6})?)"
_VLLM = re.compile(
    rf"Avg prompt throughput: {_N} tokens/s, Avg generation throughput: {_N} tokens/s, Running: {_N} reqs, "
    rf"(?:Swapped: {_N} reqs, )?(?:Waiting|Pending): {_N} reqs(?:.{{0,120}}?KV cache usage: {_N}%)?"
)
_SGLANG = re.compile(r"(Prefill|Decode) batch")
_SGLANG_FIGURES = {
    name: re.compile(before + _N)
    for name, before in {
        "running": "#running-req: ",
        "waiting": "#queue-req: ",
        "usage": "(?:full |(?<!swa ))token usage: ",
        "new": "#new-token: ",
        "tokens": "#(?:full )?token: ",
        "generated": r"gen throughput \(token/s\): ",
    }.items()
}
USAGE_WORDS = ("Avg prompt throughput", "Prefill batch", "Decode batch")
_LOOKED_AT = 12  # the last samples before a line


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line of the log, shortened for quotation."""

    line_number: int
    text: str


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of an engine's statistics; `usage` is a share of the KV pool, rates are tokens per second."""

    line_number: int
    running: float
    waiting: float
    usage: float | None
    prompt_rate: float | None = None
    generation_rate: float | None = None
    tokens: float | None = None
    text: str = ""


@dataclass
class Usage:
    """The first samples and the last, in bounded memory."""

    first: list[Sample] = field(default_factory=list)
    last: deque[Sample] = field(default_factory=lambda: deque(maxlen=200))

    def add(self, sample: Sample) -> None:
        if len(self.first) < 20:
            self.first.append(sample)
        self.last.append(sample)

    def until(self, line_number: int | None) -> list[Sample]:
        """The last samples up to a line; None: those at the end."""
        chosen = [s for s in self.last if line_number is None or s.line_number <= line_number]
        chosen = chosen or [s for s in self.first if line_number is None or s.line_number <= line_number]
        return chosen[-_LOOKED_AT:]


@dataclass(frozen=True, slots=True)
class Match:
    """A signature found in a line, with its figures, and whether the line is printed by a program, quotes it in a
    sentence, or is source code."""

    signature: Signature
    line_number: int
    rank: str
    text: str
    figures: dict[str, float]
    is_quoted: bool = False
    is_printed: bool = True
    is_source: bool = False


@dataclass
class Failure:
    """One failure: its match, the frames of its traceback, and the phase in which it happened."""

    match: Match
    phase: str
    frames: list[Match] = field(default_factory=list)
    amounts: dict[str, float] = field(default_factory=dict)
    frames_follow: bool = False

    @property
    def stages(self) -> list[str]:
        """The stages of its frames, the outermost first."""
        return [frame.signature.says for frame in self.frames]


@dataclass
class Run:
    """The facts of one run of the engine."""

    line_number: int = 1
    failures: list[Failure] = field(default_factory=list)
    errors: list[Evidence] = field(default_factory=list)  # exceptions that no signature matches
    clues: dict[str, Match] = field(default_factory=dict)
    phases: dict[str, dict[str, Match]] = field(default_factory=dict)  # by rank, then by phase: the last of each
    figures: dict[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    tracebacks: dict[str, list[Match]] = field(default_factory=dict)
    n_tracebacks: int = 0
    is_up: bool = False
    none_minor: bool = False  # once the list is full: no minor failure is left in it

    def seen(self, phase: str) -> Match | None:
        """The first match of a phase, of any rank."""
        matches = [by_name[phase] for by_name in self.phases.values() if phase in by_name]
        return min(matches, key=lambda m: m.line_number) if matches else None

    def last(self, phase: str) -> int:
        """The number of a phase's last line; 0 where there is none."""
        return max((names[phase].line_number for names in self.phases.values() if phase in names), default=0)

    @property
    def lasting_failures(self) -> list[Failure]:
        """The failures without those before a successful start: llama.cpp tries again with less memory."""
        up = self.last("ready")
        return [f for f in self.failures if f.match.line_number > up or f.phase in SERVING]

    def phase_of(self, rank: str) -> str:
        """The last phase of `rank`, by its own lines and those of no worker, else by all lines."""
        own = [m for r, names in self.phases.items() if r == rank or not r.startswith(WORKERS) for m in names.values()]
        every = own or [m for names in self.phases.values() for m in names.values()]
        # A line on a failure does not start a phase.
        every = [m for m in every if m.signature.says not in FAILED] or every
        return max(every, key=lambda m: m.line_number).signature.says if every else "unknown"

    @property
    def frames(self) -> list[Match]:
        return [match for frames in self.tracebacks.values() for match in frames]


@dataclass
class Facts:
    """The last two runs of a log, and its start-up log, if the engine is known.

    n_runs: the number of all runs. votes: weighted lines by engine. is_text: the file reads like a text about logs.
    """

    runs: list[Run] = field(default_factory=lambda: [Run()])
    n_runs: int = 1
    votes: Counter[str] = field(default_factory=Counter)
    startup: StartupLog | None = None
    is_text: bool = False

    @property
    def run(self) -> Run:
        return self.runs[-1]

    def start_of(self, run: Run) -> StartupLog | None:
        """The start-up log, if it is of this run; other runs may have other flags."""
        start = self.startup
        if start is None or start.line_number < run.line_number:
            return None
        return start if run is self.run or start.line_number < self.run.line_number else None


def excerpt(text: str, begin: int = 0, end: int = 0, most: int = MOST) -> str:
    """At most `most` characters of a line that include `begin` to `end`: from the line's beginning if these are within
    them, else from a little before `begin`."""
    first = 0 if end <= most else max(0, begin - _LEAD)
    if first:
        gap = text.find(" ", first, first + _NEAR)
        first = gap + 1 if gap >= 0 else first
    part = text[first : first + most]
    if first + most < len(text):
        gap = part.rfind(" ", most - _NEAR)
        part = f"{part[: gap if gap >= 0 else most]}…"
    return str(shown(f"…{part}" if first else part, 2 * most))


def sample_of(line: Line) -> Sample | None:
    """The statistics in a line of vLLM or SGLang; None for other lines."""
    text = line.text
    if "Avg prompt throughput" in text and (match := _VLLM.search(text)):
        prompts, made, running, _, waiting, used = match.groups()
        usage = None if used is None else float(used) / 100
        return Sample(line.number, float(running), float(waiting), usage, float(prompts), float(made), None, match[0])
    match = _SGLANG.search(text)
    part = text[match.start() : match.start() + 600] if match else ""
    figures = {name: float(m[1]) for name, pattern in _SGLANG_FIGURES.items() if (m := pattern.search(part))}
    if match is None or "running" not in figures:
        return None
    return Sample(
        line.number,
        figures["running"],
        figures.get("waiting", 0.0),
        figures.get("usage"),
        figures.get("new", 1.0) if match[1] == "Prefill" else 0.0,
        figures.get("generated"),
        figures.get("tokens"),
        excerpt(part),
    )


TRACEBACK = "Traceback (most recent call last)"
_ERROR = re.compile(
    r"\b((?:[A-Za-z_]{1,40}\.){0,4}(?:[A-Z]\w{1,40}(?:Error|Exception)|Exception)): (.{1,300})|\bAssertionError$"
)
# Consequences of a failure that was reported before, and errors of a request or a client.
_CONSEQUENCE = re.compile(
    r"ngine core init|ngine process failed|EngineDead|EngineCore|See (?:root cause|stack trace)|background process"
    r"|WorkerProc|is already dead|sigquit|CancelledError|EngineGenerate|BadRequest|ShardCannotStart|RayActorError"
    r"|ActorDied|died during init|KeyboardInterrupt|HTTPException|Broken pipe|Connection reset"
)
# Lines at which a new run begins, if the one before has ended.
_STARTS = ("vLLM API server version", "non-default args:", "args: Namespace(", "server_args=", "LLM version:")
ERROR_WORDS = ("Error: ", "Exception: ", "AssertionError", TRACEBACK)
WORDS = (*ERROR_WORDS, *_STARTS)
# Where an engine prints a user's text or an answer: the rest of the line is not the engine's.
_USERS_LINES = ("Received request", "Generated response", "details: prompt", "Receive: obj=", "Finish: obj=",
                "log_server_r: request", "prompt=", "prompt:", "prompt'", 'prompt"',
                "Parsing input with format", "request body: ", "input_value=", "completion", "content", "answer",
                "question", "messages")  # fmt: skip
_USERS_TEXT = re.compile(
    r"(?<=Receive: obj=)|(?<=Finish: obj=)|(?<=Parsing input with format)|(?<=request body: )"
    r"|\binput_value=(?=['\"{\[])"
    r"|\b(?:prompt|completions?|(?:reasoning_)?content|answer|question|messages)[\"']?\s{0,3}[=:]\s{0,3}(?=[\\]?['\"{\[])"
    r"|\bprompt: ?(?=['\"])|\bprompt=(?=['\"])|\boutput: ?(?=['\"])|\b(?:text|out)=(?=['\"{\[])|\brequest: ?(?=\{)"
)
# Once an engine is up, words in quotes are a user's, unless their line mentions an error.
_IN_QUOTES = re.compile(r"(?<!\w)([\"'])(?:\\.|(?!\1).)*(?:\1|$)")
_OF_AN_ERROR = re.compile(
    r"(?i)\b(?:\w*error|\w*exception|fatal|critical|traceback|fail\w*|died|dead|killed|panic|abort\w*|unable|cannot)\b"
)
_NAMES_AN_ERROR = re.compile(
    r"(?i)(?:\w*error|exc\w*|msg|message|reason|details?|cause|stack\w*|trace\w*|stderr|what|file)[\"']?\W{0,4}$"
)
_BEFORE, _AFTER = 200, 1500  # characters around a signature's word in which its patterns are searched
_AROUND = 200  # characters of these that evidence quotes
_AMOUNTS = 1 << 14  # characters of a line in which amounts are searched
_MOST_FAILURES = 400  # failures of one run that are kept
_MESSAGES = ("typed", "weak", "trap", "oom")  # kinds of signatures that report a failure
_VOTES = {"typed": 3, "trap": 3, "phase": 2, "engine": 1}  # for an engine, by the kind of signature


@dataclass(frozen=True, slots=True)
class Candidate:
    """A signature with one of its words, and its place among all.

    is_by_shape: lines that differ only in digits match alike.
    """

    place: tuple[int, int]
    signature: Signature
    word: str
    is_by_shape: bool


_AMOUNT = r"(\d{1,18}(?:\.\d{1,4})?) (bytes|KiB|MiB|GiB|KB|MB|GB)"
_BYTES = r"(\d{1,18})( bytes)?(?![\d.])"  # runtimes print bytes without a unit
_MOST_BYTES = 2**50  # larger amounts are negative numbers printed as unsigned, as under WSL 2
_WORDINGS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("tried_bytes", rf"[Tt]r(?:ied|ying) to allocate {_AMOUNT}"),
        ("gpu_memory_bytes", rf"total capaci?ty of {_AMOUNT}"),
        ("gpu_memory_bytes", rf"{_AMOUNT} total capacity"),
        ("free_bytes", rf"of which {_AMOUNT} is free"),
        ("free_bytes", rf"; {_AMOUNT} free"),
        ("free_bytes", rf"\bfree: {_BYTES}"),
        ("gpu_memory_bytes", rf"\btotal: {_BYTES}"),
        ("in_use_bytes", rf"this process has {_AMOUNT} memory in use"),
        ("allocated_bytes", rf"{_AMOUNT} is allocated by PyTorch"),
        ("allocated_bytes", rf"{_AMOUNT} already allocated"),
        ("private_pool_bytes", rf"{_AMOUNT} allocated in private pools"),
        ("reserved_bytes", rf"{_AMOUNT} reserved in total"),
        ("reserved_unallocated_bytes", rf"{_AMOUNT} is reserved by PyTorch but unallocated"),
    )
)
_PROCESS = re.compile(rf"Process (\d{{1,10}}) has {_AMOUNT}")
_CONTEXT = 2 * GIB  # more than the CUDA context of a rank that has only begun
_GPU = re.compile(r"GPU (\d{1,4})(?: has|;)")


@lru_cache(maxsize=4096)  # every log is matched with the same signatures
def _is_by_shape(patterns: tuple[str, ...], word: str) -> bool:
    """True if lines that differ only in digits match alike: neither digits nor figures are in the patterns."""
    bare = re.sub(r"\{\d+(?:,\d+)?\}|\(\?<[!=]", "", " ".join(patterns) or "<none>")
    return not re.search(r"[\d<]|\\d", bare + word)


class Matcher:
    """Collects the facts of a log in `facts`, line by line."""

    def __init__(self, signatures: Sequence[Signature], catalog: Catalog) -> None:
        self.facts = Facts()
        self._candidates: dict[str, list[Candidate]] = {}  # by the part of a word that a line must contain
        for i, s in enumerate(signatures):
            for nth, word in enumerate(s.word):
                candidate = Candidate((i, nth), s, word, _is_by_shape((*s.match, s.unless or ""), word))
                self._candidates.setdefault(without_digits(word), []).append(candidate)
        # The words that a line must contain for each trait.
        self._words: dict[str, Collection[str]] = {
            "start": _STARTS,
            "traceback": (TRACEBACK,),
            "error": ERROR_WORDS[:3],
            "statistics": USAGE_WORDS,
            "startup": set(map(without_digits, startup_words(catalog))),
        }
        self._parts = tuple(dict.fromkeys([*self._candidates, *itertools.chain(*self._words.values())]))
        self._traits = ByShape(str, self._traits_of)

    def take(self, line: Line) -> Line | None:
        """Collect the facts of a line; return it, without users' text, if the start-up reader may need it."""
        if any(word in line.text for word in _USERS_LINES) and (users := _USERS_TEXT.search(line.text)):
            line = Line(line.number, line.text[: users.start()], line.rank)
        traits, candidates = self._traits(line.text)
        facts, run = self.facts, self.facts.run
        if "start" in traits and (
            (run.errors and run.phases) or any(not f.match.signature.lasting for f in run.failures)
        ):
            facts.runs, facts.n_runs = [run, Run(line.number)], facts.n_runs + 1
            run = facts.run
        is_up = run.is_up and ('"' in line.text or "'" in line.text)
        if "traceback" in traits and not (is_up and _is_quoted(line.text, TRACEBACK)):
            run.n_tracebacks += 1
            run.tracebacks[line.rank] = []
            for failure in run.failures[-3:]:
                failure.frames_follow = failure.frames_follow and not failure.frames
        if "statistics" in traits and (sample := sample_of(line)):
            run.usage.add(sample)
        is_failure, place = False, -1
        for candidate in candidates:
            if candidate.place[0] != place and (match := _match(line, candidate)):
                place = candidate.place[0]  # a signature counts once, even if several of its words are in the line
                if is_up and _may_be_quoted(match.signature) and _is_quoted(line.text, candidate.word):
                    continue
                is_failure = _record_match(run, match, line.text) or is_failure
                if match.signature.engine:
                    facts.votes[match.signature.engine] += _VOTES.get(match.signature.kind, 1)
        if "error" in traits and not is_failure and len(run.errors) < _MOST_FAILURES:
            error = _ERROR.search(line.text)
            if error and not _CONSEQUENCE.search(error[0]) and not (is_up and _is_quoted(line.text, error[0])):
                run.errors.append(Evidence(line.number, excerpt(error[0])))
        return line if "startup" in traits else None

    def _traits_of(self, text: str) -> tuple[set[str], tuple[Candidate, ...]]:
        line, held = Line(1, text), {part for part in self._parts if part in text}
        candidates = [candidate for part in held for candidate in self._candidates.get(part, ())]
        fitting = (candidate for candidate in candidates if not candidate.is_by_shape or _match(line, candidate))
        names = {name for name, words in self._words.items() if not held.isdisjoint(words)}
        return names, tuple(sorted(fitting, key=attrgetter("place")))


def _match(line: Line, candidate: Candidate) -> Match | None:
    """The match of a signature in a line: its word, with its patterns found around it; None for no match."""
    signature, word_begin = candidate.signature, line.text.find(candidate.word)
    if word_begin < 0:
        return None
    first, figures = max(0, word_begin - _BEFORE), dict[str, float]()
    spans = [(word_begin, word_begin + len(candidate.word))]
    around = line.text[first : word_begin + _AFTER]
    if signature.unless and compiled(signature.unless).search(around):
        return None
    for pattern in signature.match:
        if (match := compiled(pattern).search(around)) is None:
            return None
        figures |= {name: float(number.replace(",", "")) for name, number in match.groupdict().items() if number}
        spans.append((first + match.start(), first + match.end()))
    # A pattern may match far before or after the word; the excerpt stays near it.
    begin, end = max(min(spans)[0], word_begin - _AROUND), min(max(span[1] for span in spans), word_begin + _AROUND)
    text = excerpt(line.text, begin, end)
    if signature.kind not in _MESSAGES:
        return Match(signature, line.number, line.rank, text, figures)
    begin, end = spans[1] if len(spans) == 2 else (begin, end)
    quoted, printed = prose.is_quoted(line.text, begin, end), prose.is_printed(line.text)
    source = prose.is_source(line.text, begin)
    return Match(signature, line.number, line.rank, text, figures, quoted or source, printed, source)


def _may_be_quoted(signature: Signature) -> bool:
    return signature.kind not in ("phase", "clue", "engine") or signature.says in FAILED


def _is_quoted(text: str, words: str) -> bool:
    """True if `words` are in quotes on a line that does not mention an error: a user's or an answer's text."""
    words_begin = text.find(words)
    quote = next((span for span in _IN_QUOTES.finditer(text) if span.start() < words_begin < span.end()), None)
    if quote is None or _NAMES_AN_ERROR.search(text[max(0, quote.start() - 60) : quote.start()]):
        return False
    return not _OF_AN_ERROR.search(_IN_QUOTES.sub("", text)) and not _OF_AN_ERROR.search(text[: quote.start()])


def _record_match(run: Run, match: Match, text: str) -> bool:
    """Add a match to the run's phases, clues, frames or failures; true if it is a failure."""
    kind = match.signature.kind
    if kind == "phase":
        name = match.signature.says
        run.is_up = run.is_up or name in SERVING
        ranks = run.phases.setdefault(match.rank, {})
        if name == "loading" and "sized" in ranks and "draft" not in run.clues:
            run.clues["draft"] = match
        if len(run.phases) <= 2048:
            ranks[name] = match
    elif kind == "clue":
        run.clues.setdefault(match.signature.says, match)
        run.figures |= {k: v for k, v in match.figures.items() if k not in run.figures}
    elif kind == "frame":
        frames = run.tracebacks.setdefault(match.rank, [])
        if len(frames) < 200:
            frames.append(match)
        for failure in run.failures[-3:]:
            of_failure = failure.match.rank == match.rank and match.line_number >= failure.match.line_number
            if failure.frames_follow and of_failure:
                failure.frames.append(match)
    elif kind != "engine":
        if len(run.failures) < _MOST_FAILURES or _drop_minor_failure(run, match):
            frames = [f for f in run.tracebacks.get(match.rank, []) if match.line_number - f.line_number < 500]
            failure = Failure(match, run.phase_of(match.rank), frames, frames_follow=not frames)
            if kind in ("oom", "typed"):
                failure.amounts = amounts(text[:_AMOUNTS])
                run.tracebacks.pop(match.rank, None)
            run.failures.append(failure)
        return True
    return False


def _drop_minor_failure(run: Run, match: Match) -> bool:
    """Drop the latest minor failure of a full list in favour of a fatal one; false if there is none, or `match` is
    minor itself. A thousand refusals must not hide the failure that follows."""
    if run.none_minor or _is_minor(match.signature):
        return False
    minor = next((i for i in range(_MOST_FAILURES - 1, 0, -1) if _is_minor(run.failures[i].match.signature)), None)
    if minor is not None:
        del run.failures[minor]
    run.none_minor = minor is None
    return minor is not None


def _is_minor(signature: Signature) -> bool:
    return signature.lasting or signature.kind == "weak"


def amounts(text: str) -> dict[str, float]:
    """The amounts of memory in a line, in bytes by name; `other_bytes`, those of other processes, if they can be
    told."""
    by_name: dict[str, float] = {}
    for name, pattern in _WORDINGS:
        if name not in by_name and (match := pattern.search(text)):
            by_name[name] = float(match[1]) * UNITS[(match[2] or "bytes").strip()]
    by_name = {name: value for name, value in by_name.items() if value < _MOST_BYTES}
    if "reserved_bytes" in by_name and "allocated_bytes" in by_name:
        kept = by_name["reserved_bytes"] - by_name["allocated_bytes"]
        by_name.setdefault("reserved_unallocated_bytes", max(0.0, kept))
    every = (float(m[2]) * UNITS[m[3]] for m in _PROCESS.finditer(text))
    sizes = [size for size in every if size < _MOST_BYTES]
    if sizes:
        by_name["n_processes"] = len(sizes) + ("in_use_bytes" in by_name)
    if gpu := _GPU.search(text):
        by_name["gpu"] = float(gpu[1])
    least, own = by_name.get("allocated_bytes", 0.0), by_name.get("in_use_bytes")
    # In a container a process has another number, or is not seen at all: "this process has 0 bytes".
    if own is None and len(sizes) > 1:
        by_name["other_bytes"] = sum(sizes) - min((size for size in sizes if size >= least), default=max(sizes))
    elif own is not None and own >= least and {"gpu_memory_bytes", "free_bytes"} <= by_name.keys():
        # Several of the same small size are the contexts of this job's own ranks.
        alike = len(sizes) > 1 and max(sizes) - min(sizes) <= 0.01 * max(sizes)
        if not (alike and max(sizes) < _CONTEXT):
            by_name["other_bytes"] = max(0.0, by_name["gpu_memory_bytes"] - by_name["free_bytes"] - own)
    return by_name
