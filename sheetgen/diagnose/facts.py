"""What a log says: matched signatures, phases, failures with their frames, figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sheetgen.catalog.signatures import Signature
from sheetgen.diagnose.usage import Usage

FAILED = ("failed-start", "died-serving")
CAME_UP = ("ready", "serving", "died-serving")
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
