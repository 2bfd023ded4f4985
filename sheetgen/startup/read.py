"""A start-up log -> what the engine is, what it was given, and what it measured, each with its line.

The texts that engines print are a table: which figure, in which unit, seen in which versions. A group of a pattern is
a figure. Groups that end in `_per_gpu` or hold `_bytes` are sizes in the pattern's unit, or in the one that the text
names; the engines' GB are GiB (they divide by 2^30), and so is TensorRT-LLM's. `keep` says what holds where a rank
prints a figure more than once: the first (a draft model follows), the last (a trial comes before), or the sum (one of
several parts). "Seen" are the versions whose logs were read, not the first and last that print it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from sheetgen.catalog.names import Devices
from sheetgen.errors import ScenarioError, shown
from sheetgen.startup.lines import Line, log_lines, open_log
from sheetgen.startup.words import Value, command_flags, pairs, value
from sheetgen.units import GIB, MIB

N = r"(-?\d{1,12}(?:,\d{3}){0,4}(?:\.\d{1,6})?)"
UNITS = {"B": 1, "bytes": 1, "MiB": MIB, "MB": MIB, "GiB": GIB, "Gib": GIB, "GB": GIB}


@dataclass(frozen=True)
class Pattern:
    """One text: `word` must be in the line before `regex` is tried."""

    engine: str
    word: str
    regex: re.Pattern[str]
    seen: str
    unit: int = GIB
    keep: Literal["first", "last", "sum"] = "last"


def _p(
    engine: str, regex: str, seen: str, unit: int = GIB, keep: Literal["first", "last", "sum"] = "last", word: str = ""
) -> Pattern:  # fmt: skip
    """`<name>` in `regex` stands for a number that is the figure `name`; the word is its beginning, unless given."""
    groups = re.sub(r"(?<!P)<(\w+)>", lambda m: f"(?P<{m[1]}>{N[1:]}", regex)
    beginning = re.sub(r"\\(\W)", r"\1", re.split(r"<|(?<!\\)[(\[]", regex)[0]).strip()
    return Pattern(engine, word or beginning, re.compile(groups), seen, unit, keep)


_vllm, _trtllm = partial(_p, "vllm"), partial(_p, "tensorrt-llm")
_sglang = partial(_p, "sglang", keep="first")  # a draft model follows
VLLM = (
    _vllm(r"Loading model weights took <weights_bytes_per_gpu> G", "0.4 to 0.9"),
    _vllm(r"Model loading took <weights_bytes_per_gpu> GiB", "0.8 to 0.31"),
    _vllm(r"model weights take <weights_bytes_per_gpu>GiB", "0.6.5 to 0.9 (V0)"),
    _vllm(r"non_torch_memory takes <non_torch_bytes_per_gpu>GiB", "0.6.5 to 0.9 (V0)"),
    _vllm(r"PyTorch activation peak memory takes <activation_bytes_per_gpu>GiB", "0.6.5 to 0.9 (V0)"),
    _vllm(r"reserved for KV Cache is <kv_pool_bytes_per_gpu>GiB", "0.6.5 to 0.9 (V0)"),
    _vllm(r"total_gpu_memory \(<gpu_memory_bytes>GiB\)", "0.6.5 to 0.9 (V0)"),
    _vllm(r"total_gpu_memory=<gpu_memory_bytes>GiB.{0,80}?peak_torch_memory=<peak_torch_bytes_per_gpu>GiB"
          r".{0,80}?non_torch_memory=<non_torch_bytes_per_gpu>GiB kv_cache_size=<kv_pool_bytes_per_gpu>GiB",
          "0.6.3 to 0.6.4 (V0)", word="Memory profiling results:"),
    _vllm(r"# \w{2,6} blocks: <n_gpu_blocks>, # CPU blocks", "0.1 to 0.9 (V0)", 1, word=" blocks: "),
    _vllm(r"Available KV cache memory: <kv_pool_bytes_per_gpu> GiB", "0.9 to 0.31"),
    _vllm(r"reserved <kv_pool_bytes_per_gpu> GiB memory for KV Cache as specified by", "0.22 to 0.26"),
    _vllm(r"GPU KV cache size: <kv_tokens> tokens", "0.8 to 0.31", 1),
    _vllm(r"aximum concurrency for <tokens_per_request> tokens per request: <max_concurrency>x", "0.6 to 0.31", 1),
    _vllm(r"Free memory on device (?:\w{1,10}:\d{1,3} )?\(<free_bytes_at_start>/<gpu_memory_bytes> GiB\)",
          "0.9 to 0.31"),
    _vllm(r"<weights_bytes_per_gpu> GiB for weight,", "0.10 to 0.30", word="GiB for weight"),
    _vllm(r"<consumed_bytes_per_gpu> GiB for consumed memory \(weights", "0.27 to 0.31",
          word="consumed memory (weights"),
    _vllm(r"<activation_bytes_per_gpu> GiB for peak activation", "0.10 to 0.31", word="GiB for peak activation"),
    _vllm(r"<non_torch_bytes_per_gpu> GiB for non-torch memory", "0.10 to 0.30", word="GiB for non-torch"),
    _vllm(r"<cuda_graph_bytes_per_gpu> GiB for CUDAGraph memory", "0.10 to 0.31", word="GiB for CUDAGraph"),
    _vllm(r"kv cache memory in use is <kv_pool_bytes_per_gpu> (?P<unit>bytes|GiB)", "0.10 to 0.31"),
    _vllm(r"secs, took <cuda_graph_bytes_per_gpu> GiB", "0.4 to 0.31", word="Graph capturing finished"),
    _vllm(r"CUDA graph pool memory: <cuda_graph_bytes_per_gpu> GiB \(actual\), "
          r"<cuda_graph_estimate_bytes_per_gpu> GiB \(est", "0.19 to 0.30"),
    _vllm(r"Estimated CUDA graph memory: <cuda_graph_estimate_bytes_per_gpu> GiB", "0.18 to 0.30"),
)  # fmt: skip

SGLANG = (
    _sglang(r"Load weight begin\. avail mem=<free_bytes_at_start> GB", "0.2 to 0.5"),
    _sglang(r"Load weight end\..{0,400}? mem usage=<weights_bytes_per_gpu> GB", "0.4 to 0.5", word="Load weight end."),
    _sglang(r"#tokens: <pool_tokens>, K size: <k_bytes_per_gpu> GB, V size: <v_bytes_per_gpu> GB", "0.4 to 0.5",
            word="KV Cache is allocated."),
    _sglang(r"#tokens: <pool_tokens>, KV size: <k_bytes_per_gpu> GB", "0.4 to 0.5", word="KV Cache is allocated."),
    _sglang(r"conv_state size: <conv_state_bytes_per_gpu> ?GB, ssm_state size: <ssm_state_bytes_per_gpu> ?GB", "0.5",
            word="Mamba Cache is allocated."),
    _sglang(r"Memory pool end\. avail mem=<free_bytes_after_pool> GB", "0.2 to 0.5", keep="last"),
    _sglang(r"Capture [\w -]{0,40}(?:cuda|CUDA) graph end\..{0,80}? mem usage=<cuda_graph_bytes_per_gpu> GB",
            "0.4 to 0.5", keep="sum", word="raph end."),
    _sglang(r"(?<!\w)max_total_num_tokens=<kv_tokens>(?![\d.])", "0.2 to 0.5", 1, word="max_total_num_tokens="),
)  # fmt: skip

_PROFILED = r" in memory usage profiling: "
TENSORRT_LLM = (
    _trtllm(r"Loaded engine size: <weights_bytes_per_gpu> MiB", "0.5 to 1.2 (engine)", MIB),
    _trtllm(r"Allocated <activation_bytes_per_gpu> (?P<unit>[GM]i?B) for execution context memory",
            "0.11 to 1.2 (engine)", word="execution context memory"),
    _trtllm(r"Allocated <runtime_buffer_bytes_per_gpu> (?P<unit>[GM]i?B) GPU memory for runtime",
            "0.11 to 1.2 (engine)", word="for runtime buffers"),
    _trtllm(r"Allocated <decoder_bytes_per_gpu> (?P<unit>[GM]i?B) GPU memory for decoder", "0.11 to 1.2 (engine)",
            word="GPU memory for decoder"),
    _trtllm(r"paged kv cache: total: <gpu_memory_bytes> GiB, available: <free_bytes_before_pool> GiB", "0.11 to 1.2",
            word="tokens in paged kv cache: total"),
    _trtllm(r"Number of blocks in KV cache primary pool: <n_gpu_blocks>", "0.11 to 0.20", 1,
            word="blocks in KV cache primary pool"),
    _trtllm(r"primary blocks=<n_gpu_blocks>", "0.20 to 1.2", 1, word="Max KV cache blocks per sequence"),
    _trtllm(r"Allocated <kv_pool_bytes_per_gpu> GiB for max tokens in paged KV cache \(<kv_tokens>\)", "0.11 to 1.2",
            word="max tokens in paged KV cache"),
    _trtllm(r"\(inside torch\)" + _PROFILED + r"<weights_bytes_per_gpu> GiB", "0.17 to 1.2 (PyTorch)",
            word="loading model weights (inside torch)"),
    _trtllm(r"\(inside torch\)" + _PROFILED + r"<activation_bytes_per_gpu> GiB", "0.17 to 1.2 (PyTorch)",
            word="during inference (inside torch)"),
    _trtllm(r"Memory used outside torch[^:]{0,60}" + _PROFILED + r"<non_torch_bytes_per_gpu> GiB",
            "0.17 to 1.2 (PyTorch)", word="Memory used outside torch"),
    _trtllm(r"device total memory <gpu_memory_bytes> GiB", "0.17 to 1.2 (PyTorch)"),
)  # fmt: skip

PATTERNS = (*VLLM, *SGLANG, *TENSORRT_LLM)
_V = r"v?(\d{1,4}\.\d{1,4}(?:\.\d{1,8})?(?:(?:\.?(?:rc|post|dev|a|b))\d{1,12}){0,3})"
VERSIONS = tuple(
    (engine, word, re.compile(regex.replace("<V>", _V)))
    for engine, word, regex in (
        ("vllm", "vLLM API server version", r"vLLM API server version <V>"),
        ("vllm", "LLM engine (v", r"LLM engine \(<V>"),
        ("vllm", "  version ", "█ {1,4}version <V>"),
        ("vllm", "vllm-openai:v", r"vllm-openai:<V>"),
        ("vllm", "vLLM version", r"vLLM version:? <V>"),
        ("sglang", "SGLang version", r"SGLang version:? <V>"),
        ("sglang", "lmsysorg/sglang:v", r"lmsysorg/sglang:<V>"),
        ("tensorrt-llm", "LLM version:", r"TensorRT[- ]LLM version: {1,4}<V>"),
        ("tensorrt-llm", "LLM Version:", r"TensorRT[- ]LLM Version: {1,4}<V>"),
        ("tensorrt-llm", "Engine version ", r"Engine version <V>"),
    )
)
# (engine, word, regex whose one group is the value, the engine's own name of the argument)
SETTINGS = tuple(
    (engine, word, re.compile(regex.replace("<N>", N)), name)
    for engine, word, regex, name in (
        ("vllm", "Using max model len", r"Using max model len <N>", "max_model_len"),
        ("vllm", "Chunked prefill is enabled", r"max_num_batched_tokens=<N>", "max_num_batched_tokens"),
        ("vllm", "GPU memory utilization is (", r"GPU memory utilization is \(<N>,", "gpu_memory_utilization"),
        ("vllm", "x gpu_memory_utilization (", r"x gpu_memory_utilization \(<N>\)", "gpu_memory_utilization"),
        ("vllm", "kv_cache_size=", r"GiB gpu_memory_utilization=<N>", "gpu_memory_utilization"),
        ("vllm", "is equivalent to", r"The current --gpu-memory-utilization=<N>", "gpu_memory_utilization"),
        ("vllm", "aximum concurrency for", r"aximum concurrency for <N> tokens per request", "max_model_len"),
        ("sglang", "Using KV cache dtype:", r"Using KV cache dtype: torch\.(\w{1,30})", "kv_cache_dtype"),
        ("sglang", "max_total_num_tokens=", r"context_len=<N>", "context_length"),
        ("sglang", "max_total_num_tokens=", r"max_running_requests=<N>", "max_running_requests"),
        ("sglang", "max_total_num_tokens=", r"chunked_prefill_size=<N>", "chunked_prefill_size"),
        ("tensorrt-llm", "fraction is set", r"fraction is set <N>", "free_gpu_memory_fraction"),
        ("tensorrt-llm", "max_num_requests=", r"\bmax_seq_len=<N>", "max_seq_len"),
        ("tensorrt-llm", "max_num_requests=", r"\bmax_num_tokens=<N>", "max_num_tokens"),
        ("tensorrt-llm", "max_num_requests=", r"\bmax_batch_size=<N>", "max_batch_size"),
        ("tensorrt-llm", "TRTGptModel max", r"TRTGptModel maxBatchSize: <N>", "max_batch_size"),
        ("tensorrt-llm", "TRTGptModel max", r"TRTGptModel maxSequenceLen: <N>", "max_seq_len"),
        ("tensorrt-llm", "TRTGptModel max", r"TRTGptModel maxNumTokens: <N>", "max_num_tokens"),
        ("tensorrt-llm", "Number of tokens per block", r"Number of tokens per block: <N>", "tokens_per_block"),
        ("tensorrt-llm", "MPI size:", r"MPI size: <N>", "world_size"),
        ("tensorrt-llm", "TP Size:", r"TP Size: {1,40}<N>", "tp_size"),
        ("tensorrt-llm", "PP Size:", r"PP Size: {1,40}<N>", "pp_size"),
        ("tensorrt-llm", "Starting trtllm-serve for", r"Starting trtllm-serve for model (\S{1,300})", "model"),
        ("tensorrt-llm", "Model:  ", r"^Model: {2,40}(\S{1,300})$", "model"),
    )
)
# (engine, word, what opens the arguments, how they are read, how far they are to be trusted)
_DUMPS: tuple[tuple[str, str, str, Callable[[str], dict[str, Value]], int], ...] = (
    ("vllm", "non-default args:", "non-default args:", pairs, 2),
    ("vllm", "args: Namespace(", "args:", pairs, 2),
    ("vllm", "EngineArgs(model=", "EngineArgs", lambda t: pairs("EngineArgs" + t), 2),
    ("vllm", " with config: model=", "with config:", lambda t: pairs(_mended(t)), 3),
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
WORDS = (*(p.word for p in PATTERNS), *(v[1] for v in VERSIONS), *(s[1] for s in SETTINGS), *(d[1] for d in _DUMPS))
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


def arguments_of(line: Line) -> Iterator[tuple[str, Argument]]:
    """Every argument that a line states, each with the engine whose it is."""
    for engine, word, opening, read, trust in _DUMPS:
        if word in line.text:
            found = read(line.text[line.text.index(opening) + len(opening) :])
            for name, given in found.items():
                yield engine, Argument(name, given, line.number, trust)
            break
    for engine, word, regex, name in SETTINGS:
        if word in line.text and (match := regex.search(line.text)):
            yield engine, Argument(name, value(match[1].replace(",", "")), line.number, ENGINE_SAYS)


def version_of(line: Line) -> tuple[str, str] | None:
    """The engine and the version that a line names."""
    for engine, word, regex in VERSIONS:
        if word in line.text and (match := regex.search(line.text)):
            return engine, match[1]
    return None


def _mended(text: str) -> str:
    """vLLM forgets a comma: `chunked_prefill_enabled=False multi_step_stream_outputs=True`."""
    return re.sub(r"(=(?:True|False|None)) (\w{1,60}=)", r"\1, \2", text)


@dataclass(frozen=True)
class Figure:
    """A figure that one rank printed: bytes, tokens, blocks or a ratio."""

    name: str
    value: float
    rank: str
    line_number: int
    text: str


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


WORDS = tuple(dict.fromkeys(WORDS))
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
        return bool(self.figures) or (again and word != OF_EACH_RANK)

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
        word = next((w for w in STARTS if w in line.text), None)
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
