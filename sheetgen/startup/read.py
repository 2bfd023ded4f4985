"""A start-up log -> what the engine is, what it was told, and what it measured, each with its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sheetgen.errors import ScenarioError, shown
from sheetgen.startup import arguments, devices
from sheetgen.startup.arguments import Argument, arguments_of, version_of
from sheetgen.startup.lines import Line, log_lines, open_log
from sheetgen.startup.patterns import PATTERNS, UNITS, Pattern

WORDS = tuple(dict.fromkeys((*(p.word for p in PATTERNS), *arguments.WORDS, *devices.WORDS)))
ENGINES = ("vllm", "sglang", "tensorrt-llm")
MOST_RANKS = 1024  # that are told apart
MOST_OPENING = 10_000  # characters by which two openings of a start are told apart
MOST_ARGUMENT_TEXT = 50_000_000  # characters that are searched for arguments


@dataclass(frozen=True)
class Figure:
    """A figure that one rank printed: bytes, tokens, blocks or a ratio."""

    name: str
    value: float
    rank: str
    line_number: int
    text: str


@dataclass
class Start:
    """What one start of one engine says. A log may hold several."""

    line_number: int = 1
    version: str | None = None
    arguments: dict[str, Argument] = field(default_factory=dict)
    figures: dict[str, dict[str, Figure]] = field(default_factory=dict)  # by name, then by rank
    opened: dict[str, str] = field(default_factory=dict)  # what followed each of the words that open a start

    def is_over(self, word: str, said: str) -> bool:
        """Whether `said` after `word` opens another start: after figures, or if other words opened this one."""
        again = self.opened.get(word, said) != said
        return bool(self.figures) or (again and word != arguments.OF_EACH_RANK)

    def put(self, figure: Figure, keep: str) -> None:
        """Take a figure in; `keep` says what holds where the rank has printed it before."""
        ranks = self.figures.setdefault(figure.name, {})
        before = ranks.get(figure.rank)
        if (before is None and len(ranks) >= MOST_RANKS) or (before is not None and keep == "first"):
            return
        if before is not None and keep == "sum":
            figure = Figure(figure.name, before.value + figure.value, figure.rank, figure.line_number, figure.text)
        ranks[figure.rank] = figure

    def argument(self, given: Argument) -> None:
        """Take an argument in, unless one of a later hour of the start is known. None says nothing."""
        before = self.arguments.get(given.name)
        if given.value is not None and (before is None or given.trust >= before.trust):
            self.arguments[given.name] = given


@dataclass
class Starts:
    """The starts of one engine: the one being read, and of those before only the last, in bounded memory."""

    current: Start = field(default_factory=Start)
    before: Start | None = None
    n_measured: int = 0

    def open(self, line: Line) -> None:
        """Take in a line that may open a start: this one, or another."""
        word = next((w for w in arguments.STARTS if w in line.text), None)
        if word is None:
            return
        said = line.text.partition(word)[2][:MOST_OPENING]
        if self.current.is_over(word, said):
            self.begin(line.number)
        self.current.opened.setdefault(word, said)

    def begin(self, line_number: int) -> None:
        """A new start begins; the one before counts where it has measured something."""
        if self.current.figures:
            self.before, self.n_measured = self.current, self.n_measured + 1
        self.current = Start(line_number, self.current.version)

    def last(self) -> tuple[Start, int]:
        """The last start that measured anything, and how many did."""
        if self.current.figures or self.before is None:
            return self.current, self.n_measured + 1
        return self.before, self.n_measured


@dataclass(frozen=True)
class StartupLog:
    """The last start in a log that measured anything (or the last of all); `gpu` as the catalog and the log call it."""

    engine: str
    version: str | None
    arguments: dict[str, Argument]
    figures: dict[str, dict[str, Figure]]
    gpu: tuple[str, str, int] | None = None
    line_number: int = 1
    n_starts: int = 1


def read_log(name: str) -> StartupLog:
    """The start-up log in the file `name` (`-`: stdin). Raises ScenarioError where it is none."""
    called = "stdin" if name == "-" else shown(name, 200)
    with open_log(name) as stream:
        log = read_lines(log_lines(stream, WORDS))
    if log is None:
        raise ScenarioError(
            f"{called}: no line of a start of vLLM, SGLang or TensorRT-LLM was found. Give the log from the engine's"
            " first line to the one that says it is ready."
        )
    return log


def read_lines(lines: Iterable[Line], n_runs: Callable[[], int] = lambda: 1) -> StartupLog | None:
    """The last start of the engine that says most in `lines`; None where no engine says anything.

    `n_runs` says how many runs have begun so far, where who reads along sees an engine end.
    """
    votes: Counter[str] = Counter()
    starts = {engine: Starts() for engine in ENGINES}
    gpus: list[tuple[str, str, int]] = []
    searched, run = 0, 1
    for line in lines:
        if n_runs() != run:
            run = n_runs()
            for known in starts.values():
                known.begin(line.number)
        if searched < MOST_ARGUMENT_TEXT:
            searched += len(line.text)
            found = tuple(arguments_of(line))
            for engine in {engine for engine, given in found if given.trust > 1}:
                starts[engine].open(line)
            for engine, given in found:
                starts[engine].current.argument(given)
                votes[engine] += 1
        if (named := version_of(line)) is not None:
            starts[named[0]].current.version = named[1]
            votes[named[0]] += 1
        for pattern, figure in figures_of(line):
            starts[pattern.engine].current.put(figure, pattern.keep)
            votes[pattern.engine] += 3
        if not gpus and (device := devices.gpu_named(line.text)) is not None:
            gpus.append((*device, line.number))
    if not votes:
        return None
    engine = max(ENGINES, key=lambda e: votes[e])
    last, n_starts = starts[engine].last()
    gpu = gpus[0] if gpus else None
    return StartupLog(engine, last.version, last.arguments, last.figures, gpu, last.line_number, n_starts)


def figures_of(line: Line) -> list[tuple[Pattern, Figure]]:
    """Every figure that a line states."""
    found = []
    for pattern in PATTERNS:
        if pattern.word not in line.text or (match := pattern.regex.search(line.text)) is None:
            continue
        groups = match.groupdict()
        unit = UNITS[groups.pop("unit")] if "unit" in groups else pattern.unit
        text = shown(line.text[max(0, match.start() - 60) :], 300)
        for name, given in groups.items():
            number = float(given.replace(",", "")) * (unit if "bytes" in name else 1)
            found.append((pattern, Figure(name, number, line.rank, line.number, str(text))))
    return found
