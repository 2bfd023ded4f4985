"""A start-up log -> what the engine is, what it was given, and what it measured, each with its line.

The texts that engines print are a table of the catalogs (startup_lines.yaml).
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
MOST_RANKS = 1024  # that are kept apart
MOST_OPENING = 10_000  # characters by which two openings of a start are kept apart
MOST_ARGUMENT_TEXT = 50_000_000  # characters that are searched for arguments
# vLLM forgets a comma: `chunked_prefill_enabled=False multi_step_stream_outputs=True`.
_NO_COMMA = re.compile(r"(=(?:True|False|None)) (\w{1,60}=)")
# (engine, word, what opens the arguments, how they are read, how far they are to be trusted)
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
ENGINE_SAYS = 4  # a single setting, after the engine has worked it out
OF_EACH_RANK = " with config: model="  # which each replica of one start prints of itself
STARTS = ("non-default args:", "args: Namespace(", OF_EACH_RANK, "server_args=", "LLM version:")


@dataclass(frozen=True)
class Argument:
    """One argument in the engine's own words; `trust` is higher the later the engine worked it out."""

    name: str
    value: Value
    line_number: int
    trust: int


L = TypeVar("L", bound=StartupLine)


def startup_words(catalog: Catalog) -> tuple[str, ...]:
    """What lines hold that may say something of a start."""
    dumped = (word for _, word, *_ in _DUMPS)
    return *catalog.file(StartupFile).words, *dumped, *catalog.devices.words


def _matches(line: Line, known: Iterable[L]) -> Iterator[tuple[L, re.Match[str]]]:
    for one in known:
        if one.word in line.text and (match := compiled(one.match).search(line.text)):
            yield one, match


def _arguments_of(line: Line, settings: Iterable[StartupLine]) -> Iterator[tuple[str, Argument]]:
    """Every argument that a line states, each with the engine whose it is."""
    for engine, word, opening, read, trust in _DUMPS:
        if word in line.text:
            found = read(line.text[line.text.index(opening) + len(opening) :])
            for name, given in found.items():
                yield engine, Argument(name, given, line.number, trust)
            break
    for setting, match in _matches(line, settings):
        for name, stated in match.groupdict().items():
            yield setting.engine, Argument(name, value(stated.replace(",", "")), line.number, ENGINE_SAYS)


@dataclass(frozen=True)
class Figure:
    """A figure that one rank printed: bytes, tokens, blocks or a ratio."""

    name: str
    value: float
    rank: str
    line_number: int
    text: str


def _figures_of(line: Line, figures: Iterable[StartupFigure]) -> Iterator[tuple[StartupFigure, Figure]]:
    for printed, match in _matches(line, figures):
        groups = match.groupdict()
        unit = UNITS.get(groups.pop("unit", printed.unit), 1)
        text = str(shown(line.text[max(0, match.start() - 60) :], 300))
        for name, given in groups.items():
            number = float(given.replace(",", "")) * (unit if "bytes" in name else 1)
            yield printed, Figure(name, number, line.rank, line.number, text)


@dataclass
class StartupLog:
    """One start of one engine; of those in a log the last that measured anything (or the last of all) is returned.

    arguments: by the engine's own name. figures: by name, then by rank. gpu: as the catalog and the log call it, and
    its line. n_starts: that measured anything. opened: what followed each of the words that open a start.
    """

    engine: str
    version: str | None
    arguments: dict[str, Argument]
    figures: dict[str, dict[str, Figure]]
    gpu: tuple[str, str, int] | None = None
    line_number: int = 1
    n_starts: int = 1
    opened: dict[str, str] = field(default_factory=dict)

    def put(self, figure: Figure, keep: str) -> None:
        ranks = self.figures.setdefault(figure.name, {})
        before = ranks.get(figure.rank)
        if (before is None and len(ranks) >= MOST_RANKS) or (before is not None and keep == "first"):
            return
        if before is not None and keep == "sum":
            figure = replace(figure, value=before.value + figure.value)
        ranks[figure.rank] = figure

    def argument(self, given: Argument) -> None:
        """Take an argument in, unless one of a later hour of the start is known. None says nothing."""
        before = self.arguments.get(given.name)
        if given.value is not None and (before is None or given.trust >= before.trust):
            self.arguments[given.name] = given


@dataclass
class Starts:
    """The starts of one engine: the one being read, and of those before only the last, in bounded memory."""

    current: StartupLog
    before: StartupLog | None = None
    n_measured: int = 0

    def open(self, line: Line) -> None:
        """Take in a line that may open a start: this one; or another, after figures, or if it was opened otherwise."""
        word = next((w for w in STARTS if w in line.text), None)
        if word is None:
            return
        said = line.text.partition(word)[2][:MOST_OPENING]
        is_other = self.current.opened.get(word, said) != said and word != OF_EACH_RANK
        if self.current.figures or is_other:
            self.begin(line.number)
        self.current.opened.setdefault(word, said)

    def begin(self, line_number: int) -> None:
        """A new start begins; the one before counts where it has measured something."""
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
    """The last start of the engine that says most in `lines`; None where no engine says anything.

    `n_runs` says how many runs have begun so far, where who reads along sees an engine end.
    """
    known_lines, devices = catalog.file(StartupFile), catalog.devices
    votes: Counter[str] = Counter()
    starts = {engine: Starts(StartupLog(engine, None, {}, {})) for engine in ENGINES}
    gpu: tuple[str, str, int] | None = None
    searched, run = 0, 1
    for line in lines:
        if n_runs() != run:
            run = n_runs()
            for known in starts.values():
                known.begin(line.number)
        if searched < MOST_ARGUMENT_TEXT:
            searched += len(line.text)
            arguments = tuple(_arguments_of(line, known_lines.settings))
            for engine in {engine for engine, given in arguments if given.trust > 1}:
                starts[engine].open(line)
            for engine, given in arguments:
                starts[engine].current.argument(given)
                votes[engine] += 1
        for one, match in itertools.islice(_matches(line, known_lines.versions), 1):
            starts[one.engine].current.version = match[1]
            votes[one.engine] += 1
        for printed, figure in _figures_of(line, known_lines.figures):
            starts[printed.engine].current.put(figure, printed.keep)
            votes[printed.engine] += 3
        if gpu is None and (device := devices.find(line.text)) is not None:
            gpu = (*device, line.number)
    if not votes:
        return None
    found = starts[max(ENGINES, key=lambda engine: votes[engine])]
    if found.before is None or found.current.figures:
        return replace(found.current, gpu=gpu, n_starts=found.n_measured + 1)
    return replace(found.before, gpu=gpu, n_starts=found.n_measured)


# What is compared, in the order of the table; all but the last three in bytes per GPU.
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
    """One figure for each quantity that the log states or that follows from it, and how the rank was chosen."""

    figures: dict[str, Figure]
    notes: tuple[str, ...]


def measure(log: StartupLog) -> Measured:
    """The figures that hold for the whole engine: those of the rank with the smallest pool, which sets the tokens."""
    known = {name: dict(ranks) for name, ranks in log.figures.items()}
    notes: list[str] = []
    if log.engine == "sglang":
        _sglang_pool(known, notes)
    _derive(known)
    pools = known.get("kv_pool_bytes_per_gpu", {})
    rank = min(pools, key=lambda r: pools[r].value) if pools else ""
    figures: dict[str, Figure] = {}
    for name in QUANTITIES:
        if ranks := known.get(name):  # the chosen rank's; where it states none, the one that leaves the least room
            pick = min if name in _SMALLEST else max
            figures[name] = ranks.get(rank) or pick(ranks.values(), key=lambda figure: figure.value)
    if "kv_tokens" not in figures and "n_gpu_blocks" in figures and log.engine == "vllm":  # V0 prints blocks
        given = log.arguments.get("block_size")
        size = given.value if given and isinstance(given.value, int) and 0 < given.value <= 4096 else 16
        blocks = figures["n_gpu_blocks"]
        figures["kv_tokens"] = replace(blocks, name="kv_tokens", value=blocks.value * size)
        notes.append(f"the log states blocks; the tokens are blocks x {size}.")
    values = [figure.value for figure in pools.values()]
    others = {name for ranks in known.values() for name in ranks} - {""}
    if len(values) > 1 and max(values) > min(values):
        notes.insert(
            0, f"{rank or 'the first rank'} has the smallest KV pool of {len(pools)} ranks; it sets the tokens."
        )
    elif len(values) > 1:
        notes.insert(0, f"the {len(pools)} ranks in the log have the same KV pool.")
    elif values and len(others) > 1 and rank:
        notes.insert(0, f"only {rank} states its KV pool; the smallest of all ranks sets the tokens.")
    return Measured(figures, tuple(notes))


def _derive(known: dict[str, dict[str, Figure]]) -> None:
    """What versions state only together: non-torch in the consumed memory, the activation in torch's peak."""
    for whole, target in (("consumed", "non_torch"), ("peak_torch", "activation")):
        whole, target = f"{whole}_bytes_per_gpu", f"{target}_bytes_per_gpu"
        for rank, figure in known.get(whole, {}).items():
            weights = known.get("weights_bytes_per_gpu", {})
            loaded = weights.get(rank) or next(iter(weights.values()), None)
            if loaded is not None and rank not in known.get(target, {}):
                text = f"(less the weights of line {loaded.line_number}) {figure.text}"
                rest = replace(figure, name=target, value=figure.value - loaded.value, text=text)
                known.setdefault(target, {})[rank] = rest


def _sglang_pool(known: dict[str, dict[str, Figure]], notes: list[str]) -> None:
    """SGLang states keys and values apart, and the states of recurrent layers in a pool of their own."""
    for rank, keys in known.get("k_bytes_per_gpu", {}).items():
        values = known.get("v_bytes_per_gpu", {}).get(rank)
        pool = replace(keys, name="kv_pool_bytes_per_gpu", value=keys.value + (values.value if values else 0))
        known.setdefault("kv_pool_bytes_per_gpu", {})[rank] = pool
    if "kv_tokens" not in known and "pool_tokens" in known:
        known["kv_tokens"] = known["pool_tokens"]
    parts = (known.get(f"{part}_state_bytes_per_gpu", {}) for part in ("conv", "ssm"))
    states = [next(iter(ranks.values())).value for ranks in parts if ranks]
    if states:
        notes.append(f"the states of recurrent layers have {sum(states) / GIB:.2f} GiB beside the KV pool.")
