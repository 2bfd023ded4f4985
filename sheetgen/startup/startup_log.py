"""Reads a start-up log: the engine, its arguments and its measurements, each with its line.

The texts that engines print are in the catalogs (startup_lines.yaml).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.signatures import StartupFigure, StartupFile, StartupLine, compiled
from sheetgen.errors import ScenarioError, shown
from sheetgen.startup.log_lines import Line, blocks_of, log_lines, open_log
from sheetgen.startup.printed_arguments import Value, command_flags, pairs, value
from sheetgen.units import GIB, MIB

UNITS = {
    "none": 1,
    "B": 1,
    "bytes": 1,
    "KiB": 1024,
    "KB": 1024,
    "MiB": MIB,
    "MB": MIB,
    "GiB": GIB,
    "Gib": GIB,
    "GB": GIB,
}
ENGINES = ("vllm", "sglang", "tensorrt-llm")
MOST_RANKS = 1024  # with figures of their own
MOST_OPENING = 10_000  # characters by which the openings of two starts are compared
MOST_ARGUMENT_TEXT = 50_000_000  # characters that are searched for arguments
# vLLM forgets a comma: `chunked_prefill_enabled=False multi_step_stream_outputs=True`.
_NO_COMMA = re.compile(r"(=(?:True|False|None)) (\w{1,60}=)")
# (engine, word of the line, text before the arguments, their reader, trust)
_DUMPS: tuple[tuple[str, str, str, Callable[[str], dict[str, Value]], int], ...] = (
    ("vllm", "non-default args:", "non-default args:", pairs, 2),
    ("vllm", "args: Namespace(", "args:", pairs, 2),
    ("vllm", "EngineArgs(model=", "EngineArgs", lambda t: pairs("EngineArgs" + t), 2),
    ("vllm", " with config: model=", "with config:", lambda t: pairs(_NO_COMMA.sub(r"\1, \2", t)), 3),
    ("sglang", "server_args=", "server_args=", pairs, 2),
    ("tensorrt-llm", "LLM Args:", "LLM Args:", pairs, 2),
    ("vllm", "vllm serve ", "vllm serve ", lambda t: command_flags(t, "model"), 1),
    ("vllm", "openai.api_server ", "openai.api_server ", command_flags, 1),
    ("vllm", "vllm/vllm-openai:", "vllm/vllm-openai:", lambda t: command_flags(t.partition(" ")[2], "model"), 1),
    ("sglang", "sglang.launch_server ", "sglang.launch_server ", command_flags, 1),
    ("sglang", "sglang serve ", "sglang serve ", command_flags, 1),
    ("vllm", "Starting to load model ", "load model ", lambda t: {"model": t.partition("...")[0].strip()}, 0),
    ("tensorrt-llm", "trtllm-serve ", "trtllm-serve ", lambda t: command_flags(t.removeprefix("serve "), "model"), 1),
)
ENGINE_SAYS = 4  # trust of a single setting that the engine has worked out
OF_EACH_RANK = " with config: model="  # printed by each replica of one start
STARTS = ("non-default args:", "args: Namespace(", OF_EACH_RANK, "server_args=", "LLM version:")


@dataclass(frozen=True)
class Argument:
    """One argument under the engine's own name; `trust` is higher the later in the start the engine printed it."""

    name: str
    value: Value
    line_number: int
    trust: int


L = TypeVar("L", bound=StartupLine)


def startup_words(catalog: Catalog) -> tuple[str, ...]:
    """The words of all lines that concern a start; a line with none of them does not."""
    dumped = (word for _, word, *_ in _DUMPS)
    return *catalog.file(StartupFile).words, *dumped, *catalog.devices.words


def _matches(line: Line, printed_lines: Iterable[L]) -> Iterator[tuple[L, re.Match[str]]]:
    """The entries of the table that match a line, with their matches."""
    for printed in printed_lines:
        if printed.word in line.text and (match := compiled(printed.match).search(line.text)):
            yield printed, match


def _arguments_of(line: Line, settings: Iterable[StartupLine]) -> Iterator[tuple[str, Argument]]:
    """The arguments that a line states, each with its engine."""
    for engine, word, opening, read, trust in _DUMPS:
        if word in line.text:
            arguments = read(line.text[line.text.index(opening) + len(opening) :])
            for name, given in arguments.items():
                yield engine, Argument(name, given, line.number, trust)
            break
    for setting, match in _matches(line, settings):
        for name, stated in match.groupdict().items():
            yield setting.engine, Argument(name, value(stated.replace(",", "")), line.number, ENGINE_SAYS)


@dataclass(frozen=True)
class Figure:
    """A figure printed by one rank: bytes, tokens, blocks or a ratio."""

    name: str
    value: float
    rank: str
    line_number: int
    text: str


def _figures_of(line: Line, figures: Iterable[StartupFigure]) -> Iterator[tuple[StartupFigure, Figure]]:
    """The figures in a line, each with its entry of the table."""
    for printed, match in _matches(line, figures):
        groups = match.groupdict()
        unit = UNITS.get(groups.pop("unit", printed.unit), 1)
        text = str(shown(line.text[max(0, match.start() - 60) :], 300))
        for name, given in groups.items():
            number = float(given.replace(",", "")) * (unit if "bytes" in name else 1)
            yield printed, Figure(name, number, line.rank, line.number, text)


@dataclass
class StartupLog:
    """One start of one engine: of those in a log the last with measurements, or the last of all.

    arguments: by the engine's own name. figures: by name, then by rank. gpu: its names in the catalog and in the log,
    and the line. n_starts: the starts with measurements. opened: the text after each of the words that open a start.
    """

    engine: str
    version: str | None
    arguments: dict[str, Argument]
    figures: dict[str, dict[str, Figure]]
    gpu: tuple[str, str, int] | None = None
    line_number: int = 1
    n_starts: int = 1
    opened: dict[str, str] = field(default_factory=dict)

    def add_figure(self, figure: Figure, keep: str) -> None:
        """Add a figure; `keep` says which of several of one rank is kept: the first, the last or their sum."""
        ranks = self.figures.setdefault(figure.name, {})
        before = ranks.get(figure.rank)
        if (before is None and len(ranks) >= MOST_RANKS) or (before is not None and keep == "first"):
            return
        if before is not None and keep == "sum":
            figure = replace(figure, value=before.value + figure.value)
        ranks[figure.rank] = figure

    def add_argument(self, given: Argument) -> None:
        """Add an argument, unless one of higher trust is there; None is ignored."""
        before = self.arguments.get(given.name)
        if given.value is not None and (before is None or given.trust >= before.trust):
            self.arguments[given.name] = given


@dataclass
class Starts:
    """The starts of one engine in bounded memory: the current one, and the last before it."""

    current: StartupLog
    before: StartupLog | None = None
    n_measured: int = 0

    def open(self, line: Line) -> None:
        """Read a line that may open a start: another one after figures, or if its opening differs from the current."""
        word = next((w for w in STARTS if w in line.text), None)
        if word is None:
            return
        opening = line.text.partition(word)[2][:MOST_OPENING]
        is_other = self.current.opened.get(word, opening) != opening and word != OF_EACH_RANK
        if self.current.figures or is_other:
            self.begin(line.number)
        self.current.opened.setdefault(word, opening)

    def begin(self, line_number: int) -> None:
        """Begin a new start; the one before is kept if it has measurements."""
        if self.current.figures:
            self.before, self.n_measured = self.current, self.n_measured + 1
        self.current = StartupLog(self.current.engine, self.current.version, {}, {}, line_number=line_number)


def read_log(name: str, catalog: Catalog) -> StartupLog:
    """The start-up log in the file `name` (`-`: stdin). Raises ScenarioError where it is none."""
    called = "stdin" if name == "-" else shown(name, 200)
    with open_log(name) as stream:
        log = read_lines(log_lines(blocks_of(stream), startup_words(catalog)), catalog)
    if log is None:
        raise ScenarioError(
            f"{called}: no line of a start of vLLM, SGLang or TensorRT-LLM was found. Give the log from the engine's"
            " first line to the one that says it is ready."
        )
    return log


def read_lines(lines: Iterable[Line], catalog: Catalog, n_runs: Callable[[], int] = lambda: 1) -> StartupLog | None:
    """The last start of the engine with the most lines; None if no engine has any.

    n_runs: the number of runs begun so far, from a caller that sees an engine end in the same lines.
    """
    known_lines, devices = catalog.file(StartupFile), catalog.devices
    votes: Counter[str] = Counter()
    starts = {engine: Starts(StartupLog(engine, None, {}, {})) for engine in ENGINES}
    gpu: tuple[str, str, int] | None = None
    searched, run = 0, 1
    for line in lines:
        if n_runs() != run:
            run = n_runs()
            for of_engine in starts.values():
                of_engine.begin(line.number)
        if searched < MOST_ARGUMENT_TEXT:
            searched += len(line.text)
            arguments = tuple(_arguments_of(line, known_lines.settings))
            for engine in {engine for engine, given in arguments if given.trust > 1}:
                starts[engine].open(line)
            for engine, given in arguments:
                starts[engine].current.add_argument(given)
                votes[engine] += 1
        for version, match in itertools.islice(_matches(line, known_lines.versions), 1):
            starts[version.engine].current.version = match[1]
            votes[version.engine] += 1
        for printed, figure in _figures_of(line, known_lines.figures):
            starts[printed.engine].current.add_figure(figure, printed.keep)
            votes[printed.engine] += 3
        if gpu is None and (device := devices.find(line.text)) is not None:
            gpu = (*device, line.number)
    if not votes:
        return None
    chosen = starts[max(ENGINES, key=lambda engine: votes[engine])]
    if chosen.before is None or chosen.current.figures:
        return replace(chosen.current, gpu=gpu, n_starts=chosen.n_measured + 1)
    return replace(chosen.before, gpu=gpu, n_starts=chosen.n_measured)


# The quantities compared, in the order of the table; all but the last three in bytes per GPU.
QUANTITIES = {
    "gpu_memory_bytes": "memory that the engine sees", "weights_bytes_per_gpu": "weights",
    "consumed_bytes_per_gpu": "weights and non-torch", "activation_bytes_per_gpu": "activation peak",
    "non_torch_bytes_per_gpu": "non-torch (NCCL, CUDA)", "cuda_graph_bytes_per_gpu": "CUDA graphs",
    "kv_pool_bytes_per_gpu": "KV pool", "kv_tokens": "KV tokens", "n_gpu_blocks": "KV blocks",
    "max_concurrency": "maximum concurrency",
}  # fmt: skip
_SMALLEST = ("kv_pool_bytes_per_gpu", "kv_tokens", "n_gpu_blocks", "max_concurrency", "gpu_memory_bytes")


@dataclass(frozen=True)
class Measured:
    """One figure for each quantity that the log states or that follows from it, and notes on the choice of rank."""

    figures: dict[str, Figure]
    notes: tuple[str, ...]


def measure(log: StartupLog) -> Measured:
    """The figures of the whole engine: those of the rank with the smallest pool, which limits the tokens."""
    figures_of = {name: dict(ranks) for name, ranks in log.figures.items()}
    notes: list[str] = []
    if log.engine == "sglang":
        _sglang_pool(figures_of, notes)
    _derive(figures_of)
    pools = figures_of.get("kv_pool_bytes_per_gpu", {})
    rank = min(pools, key=lambda r: pools[r].value) if pools else ""
    figures: dict[str, Figure] = {}
    for name in QUANTITIES:
        if ranks := figures_of.get(name):  # of the chosen rank; if it has none, the one that leaves the least memory
            pick = min if name in _SMALLEST else max
            figures[name] = ranks.get(rank) or pick(ranks.values(), key=lambda figure: figure.value)
    if "kv_tokens" not in figures and "n_gpu_blocks" in figures and log.engine == "vllm":  # V0 prints blocks
        given = log.arguments.get("block_size")
        size = given.value if given and isinstance(given.value, int) and 0 < given.value <= 4096 else 16
        blocks = figures["n_gpu_blocks"]
        figures["kv_tokens"] = replace(blocks, name="kv_tokens", value=blocks.value * size)
        notes.append(f"the log states blocks; the tokens are blocks x {size}.")
    values = [figure.value for figure in pools.values()]
    others = {name for ranks in figures_of.values() for name in ranks} - {""}
    if len(values) > 1 and max(values) > min(values):
        notes.insert(
            0, f"{rank or 'the first rank'} has the smallest KV pool of {len(pools)} ranks; it sets the tokens."
        )
    elif len(values) > 1:
        notes.insert(0, f"the {len(pools)} ranks in the log have the same KV pool.")
    elif values and len(others) > 1 and rank:
        notes.insert(0, f"only {rank} states its KV pool; the smallest of all ranks sets the tokens.")
    return Measured(figures, tuple(notes))


def _derive(figures_of: dict[str, dict[str, Figure]]) -> None:
    """Add figures that some versions print only in a sum: non-torch in the consumed memory, activations in torch's
    peak; both less the weights."""
    for whole, target in (("consumed", "non_torch"), ("peak_torch", "activation")):
        whole, target = f"{whole}_bytes_per_gpu", f"{target}_bytes_per_gpu"
        for rank, figure in figures_of.get(whole, {}).items():
            weights = figures_of.get("weights_bytes_per_gpu", {})
            loaded = weights.get(rank) or next(iter(weights.values()), None)
            if loaded is not None and rank not in figures_of.get(target, {}):
                text = f"(less the weights of line {loaded.line_number}) {figure.text}"
                rest = replace(figure, name=target, value=figure.value - loaded.value, text=text)
                figures_of.setdefault(target, {})[rank] = rest


def _sglang_pool(figures_of: dict[str, dict[str, Figure]], notes: list[str]) -> None:
    """Add SGLang's pool of keys and values, which it prints apart, and a note on its pool of recurrent states."""
    for rank, keys in figures_of.get("k_bytes_per_gpu", {}).items():
        values = figures_of.get("v_bytes_per_gpu", {}).get(rank)
        pool = replace(keys, name="kv_pool_bytes_per_gpu", value=keys.value + (values.value if values else 0))
        figures_of.setdefault("kv_pool_bytes_per_gpu", {})[rank] = pool
    if "kv_tokens" not in figures_of and "pool_tokens" in figures_of:
        figures_of["kv_tokens"] = figures_of["pool_tokens"]
    parts = (figures_of.get(f"{part}_state_bytes_per_gpu", {}) for part in ("conv", "ssm"))
    states = [next(iter(ranks.values())).value for ranks in parts if ranks]
    if states:
        notes.append(f"the states of recurrent layers have {sum(states) / GIB:.2f} GiB beside the KV pool.")
