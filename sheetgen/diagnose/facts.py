"""What a log says: matched signatures, phases, failures with their frames, figures, and the KV cache over time."""

from __future__ import annotations

import itertools
import re
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from sheetgen.catalog.guidance import Signature
from sheetgen.errors import shown
from sheetgen.startup.lines import Line

FAILED = ("failed-start", "died-serving")
CAME_UP = ("ready", "serving", "died-serving")
WORKERS = ("TP", "PP", "EP", "rank", "process")
MOST = 300  # characters of an excerpt
_BEFORE = 80  # of them before what was found
_NEAR = 40  # a place between words is looked for within so many
_N = r"(\d{1,12}(?:\.\d{1,6})?)"
_VLLM = re.compile(
    rf"Avg prompt throughput: {_N} tokens/s, Avg generation throughput: {_N} tokens/s, Running: {_N} reqs, "
    rf"(?:Swapped: {_N} reqs, )?(?:Waiting|Pending): {_N} reqs(?:.{{0,120}}?KV cache usage: {_N}%)?"
)
_SGLANG = re.compile(r"(Prefill|Decode) batch")
_RUNNING, _QUEUE = re.compile(rf"#running-req: {_N}"), re.compile(rf"#queue-req: {_N}")
_USAGE = re.compile(rf"full token usage: {_N}|(?<!swa )token usage: {_N}")
_TOKENS = re.compile(rf"#(?:full )?token: {_N}")
_GENERATED = re.compile(rf"gen throughput \(token/s\): {_N}")
_NEW = re.compile(rf"#new-token: {_N}")
USAGE_WORDS = ("Avg prompt throughput", "Prefill batch", "Decode batch")
NEARLY_FULL = 0.95
FULL = 0.985  # the fullest of the last samples, where requests were thrown out again
LONG_REQUEST = 65_536  # tokens of one request, beyond which a few of them fill a pool
FEW = 8  # requests
_HIGH = 0.9
_LOOKED_AT = 12  # samples before the end


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of an engine's statistics; `usage` is a share of the pool."""

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
    n_samples: int = 0

    def put(self, sample: Sample) -> None:
        self.n_samples += 1
        if len(self.first) < 20:
            self.first.append(sample)
        self.last.append(sample)

    def until(self, line_number: int | None) -> list[Sample]:
        """The samples just before a line; the last ones without one."""
        chosen = [s for s in self.last if line_number is None or s.line_number <= line_number]
        chosen = chosen or [s for s in self.first if line_number is None or s.line_number <= line_number]
        return chosen[-_LOOKED_AT:]


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
    """One failure: the match that shows it, the frames of its traceback and how far the start had come."""

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
    none_minor: bool = False  # of the failures kept, once there are as many as are kept

    def seen(self, phase: str) -> Match | None:
        """The first match of a phase, whatever the rank."""
        found = [by_name[phase] for by_name in self.phases.values() if phase in by_name]
        return min(found, key=lambda m: m.line_number) if found else None

    def last(self, phase: str) -> int:
        """The last line of a phase; 0 where it was not seen."""
        return max((names[phase].line_number for names in self.phases.values() if phase in names), default=0)

    @property
    def lasting_failures(self) -> list[Failure]:
        """Failures but those of a start that came up nevertheless: llama.cpp tries again with less."""
        up = self.last("ready")
        return [f for f in self.failures if f.match.line_number > up or f.phase in CAME_UP]

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


def excerpt(text: str, begin: int = 0, end: int = 0, most: int = MOST) -> str:
    """The line from its beginning where `begin` to `end` are within `most` characters, else from a little before."""
    first = 0 if end <= most else max(0, begin - _BEFORE)
    if first:
        gap = text.find(" ", first, first + _NEAR)
        first = gap + 1 if gap >= 0 else first
    part = text[first : first + most]
    if first + most < len(text):
        gap = part.rfind(" ", most - _NEAR)
        part = f"{part[: gap if gap >= 0 else most]}…"
    return str(shown(f"…{part}" if first else part, 2 * most))


def sample_of(line: Line) -> Sample | None:
    """The sample that a line holds."""
    text = line.text
    if "Avg prompt throughput" in text and (match := _VLLM.search(text)):
        prompts, made, running, _, waiting, used = match.groups()
        usage = None if used is None else float(used) / 100
        return Sample(line.number, float(running), float(waiting), usage, float(prompts), float(made), None, match[0])
    if match := _SGLANG.search(text):
        part = text[match.start() : match.start() + 600]
        running, queue, used, new = (p.search(part) for p in (_RUNNING, _QUEUE, _USAGE, _NEW))
        if running is None:
            return None
        tokens, generated = (float(m[1]) if (m := p.search(part)) else None for p in (_TOKENS, _GENERATED))
        usage = float(used[1] or used[2]) if used else None
        prompts = (float(new[1]) if new else 1.0) if match[1] == "Prefill" else 0.0
        waiting = float(queue[1]) if queue else 0.0
        return Sample(line.number, float(running[1]), waiting, usage, prompts, generated, tokens, excerpt(part))
    return None


def soon_full(samples: Sequence[Sample]) -> bool:
    """Whether few requests, and nobody new, fill what is left as fast as they filled what was seen."""
    known = [s.usage for s in samples if s.usage is not None]
    rises = len(known) > 2 and all(later > earlier for earlier, later in itertools.pairwise(known))
    return rises and known[-1] >= _HIGH and FULL - known[-1] <= 2 * (known[-1] - known[0])


def filled_by(samples: Sequence[Sample]) -> Literal["length", "number"] | None:
    """Whether the length of few requests fills the pool, or their number; None where the samples do not say.

    Prompts no longer come in, nobody waits and as many run as before, while the pool fills: length. A queue, new
    prompts or more and more running: number, unless a few requests hold very many tokens each.
    """
    known = [s for s in samples if s.usage is not None]
    if not known:
        return None
    last = known[-1]
    if last.tokens and 0 < last.running <= FEW and last.tokens / last.running >= LONG_REQUEST:
        return "length"
    if max(s.running + s.waiting for s in known) <= 1:
        return "length"
    if last.waiting > 0:
        return "number"
    if len(known) < 2:
        return None
    running = [s.running for s in known]
    flat = max(running) - min(running) <= max(0.0, 0.1 * max(running))
    rising = (last.usage or 0) > (known[0].usage or 0)
    prompts = sum(s.prompt_rate or 0 for s in known)
    made = sum(s.generation_rate or 0 for s in known)
    if flat and rising and prompts <= 0.02 * max(made, 1):
        return "length"
    return "number" if running[-1] > running[0] or prompts > 0.02 * max(made, 1) else None
