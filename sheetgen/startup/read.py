"""A start-up log -> what the engine is, what it was given, and what it measured, each with its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sheetgen.catalog.names import Devices
from sheetgen.errors import ScenarioError, shown
from sheetgen.startup import patterns
from sheetgen.startup.lines import Line, log_lines, open_log
from sheetgen.startup.patterns import Argument, Figure, arguments_of, figures_of, version_of

WORDS = tuple(dict.fromkeys(patterns.WORDS))
ENGINES = ("vllm", "sglang", "tensorrt-llm")
MOST_RANKS = 1024  # that are kept apart
MOST_OPENING = 10_000  # characters by which two openings of a start are kept apart
MOST_ARGUMENT_TEXT = 50_000_000  # characters that are searched for arguments


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
        return bool(self.figures) or (again and word != patterns.OF_EACH_RANK)

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
        word = next((w for w in patterns.STARTS if w in line.text), None)
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


def read_log(name: str, devices: Devices) -> StartupLog:
    """The start-up log in the file `name` (`-`: stdin). Raises ScenarioError where it is none."""
    called = "stdin" if name == "-" else shown(name, 200)
    with open_log(name) as stream:
        log = read_lines(log_lines(stream, (*WORDS, *devices.words)), devices)
    if log is None:
        raise ScenarioError(
            f"{called}: no line of a start of vLLM, SGLang or TensorRT-LLM was found. Give the log from the engine's"
            " first line to the one that says it is ready."
        )
    return log


def read_lines(lines: Iterable[Line], devices: Devices, n_runs: Callable[[], int] = lambda: 1) -> StartupLog | None:
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
        if not gpus and (device := devices.find(line.text)) is not None:
            gpus.append((*device, line.number))
    if not votes:
        return None
    engine = max(ENGINES, key=lambda e: votes[e])
    last, n_starts = starts[engine].last()
    gpu = gpus[0] if gpus else None
    return StartupLog(engine, last.version, last.arguments, last.figures, gpu, last.line_number, n_starts)


# What is compared, in the order of the table; all but the last three in bytes per GPU.
QUANTITIES = {
    "gpu_memory_bytes": "memory that the engine sees", "weights_bytes_per_gpu": "weights",
    "activation_bytes_per_gpu": "activation peak", "non_torch_bytes_per_gpu": "non-torch (NCCL, CUDA)",
    "cuda_graph_bytes_per_gpu": "CUDA graphs", "kv_pool_bytes_per_gpu": "KV pool", "kv_tokens": "KV tokens",
    "n_gpu_blocks": "KV blocks", "max_concurrency": "maximum concurrency",
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
    figures = {name: _one(name, known[name], rank) for name in QUANTITIES if known.get(name)}
    if "kv_tokens" not in figures and "n_gpu_blocks" in figures and log.engine == "vllm":
        _tokens_of_blocks(figures, log, notes)
    return Measured(figures, (*_rank_notes(pools, known, rank), *notes))


def _one(name: str, ranks: Mapping[str, Figure], rank: str) -> Figure:
    """The chosen rank's figure; where it states none, the one that leaves the least room."""
    if rank in ranks:
        return ranks[rank]
    pick = min if name in _SMALLEST else max
    return pick(ranks.values(), key=lambda figure: figure.value)


def _rank_notes(pools: Mapping[str, Figure], known: Mapping[str, Mapping[str, Figure]], rank: str) -> list[str]:
    seen = {name for ranks in known.values() for name in ranks}
    if len(pools) > 1:
        values = [figure.value for figure in pools.values()]
        if max(values) > min(values):
            return [f"{rank or 'the first rank'} has the smallest KV pool of {len(pools)} ranks; it sets the tokens."]
        return [f"the {len(pools)} ranks in the log have the same KV pool."]
    if len(pools) == 1 and len(seen - {""}) > 1 and rank:
        return [f"only {rank} states its KV pool; the smallest of all ranks sets the tokens."]
    return []


def _derive(known: dict[str, dict[str, Figure]]) -> None:
    """What versions state only together: non-torch in the consumed memory, the activation in torch's peak."""
    for whole, target in (("consumed", "non_torch"), ("peak_torch", "activation")):
        whole, target = f"{whole}_bytes_per_gpu", f"{target}_bytes_per_gpu"
        for rank, figure in known.get(whole, {}).items():
            weights = known.get("weights_bytes_per_gpu", {})
            loaded = weights.get(rank) or next(iter(weights.values()), None)
            if loaded is not None and rank not in known.get(target, {}):
                text = f"(less the weights of line {loaded.line_number}) {figure.text}"
                found = Figure(target, figure.value - loaded.value, rank, figure.line_number, text)
                known.setdefault(target, {})[rank] = found


def _sglang_pool(known: dict[str, dict[str, Figure]], notes: list[str]) -> None:
    """SGLang states keys and values apart, and the states of recurrent layers in a pool of their own."""
    for rank, keys in known.get("k_bytes_per_gpu", {}).items():
        values = known.get("v_bytes_per_gpu", {}).get(rank)
        both = keys.value + (values.value if values else 0)
        pool = Figure("kv_pool_bytes_per_gpu", both, rank, keys.line_number, keys.text)
        known.setdefault("kv_pool_bytes_per_gpu", {})[rank] = pool
    if "kv_tokens" not in known and "pool_tokens" in known:
        known["kv_tokens"] = known["pool_tokens"]
    parts = (known.get(f"{part}_state_bytes_per_gpu", {}) for part in ("conv", "ssm"))
    states = [next(iter(ranks.values())).value for ranks in parts if ranks]
    if states:
        notes.append(f"the states of recurrent layers have {sum(states) / 2**30:.2f} GiB beside the KV pool.")


def _tokens_of_blocks(figures: dict[str, Figure], log: StartupLog, notes: list[str]) -> None:
    """vLLM V0 prints blocks, not tokens."""
    given = log.arguments.get("block_size")
    size = given.value if given and isinstance(given.value, int) and 0 < given.value <= 4096 else 16
    blocks = figures["n_gpu_blocks"]
    tokens = Figure("kv_tokens", blocks.value * size, blocks.rank, blocks.line_number, blocks.text)
    figures["kv_tokens"] = tokens
    notes.append(f"the log states blocks; the tokens are blocks x {size}.")
