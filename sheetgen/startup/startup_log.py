"""A start-up log -> what the engine is, what it was given, and what it measured, each with its line.

The texts that engines print are a table: which figure, in which unit, seen in which versions. A group of a pattern is
a figure. Groups that end in `_per_gpu` or hold `_bytes` are sizes in the pattern's unit, or in the one that the text
names; the engines' GB are GiB (they divide by 2^30), and so is TensorRT-LLM's. `keep` says what holds where a rank
prints a figure more than once: the first (a draft model follows), the last (a trial comes before), or the sum (one of
several parts). "Seen" are the versions whose logs were read, not the first and last that print it.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from sheetgen.catalog.hardware import Devices
from sheetgen.errors import ScenarioError, shown
from sheetgen.startup.log_lines import Line, blocks_of, log_lines, open_log
from sheetgen.startup.printed_arguments import Value, command_flags, pairs, value
from sheetgen.units import GIB, MIB

N = r"-?\d{1,12}(?:,\d{3}){0,4}(?:\.\d{1,6})?"
_V = r"v?(\d{1,4}\.\d{1,4}(?:\.\d{1,8})?(?:(?:\.?(?:rc|post|dev|a|b))\d{1,12}){0,3})"
UNITS = {"B": 1, "bytes": 1, "KiB": 1024, "KB": 1024, "MiB": MIB, "MB": MIB, "GiB": GIB, "Gib": GIB, "GB": GIB}
ENGINES = ("vllm", "sglang", "tensorrt-llm")
MOST_RANKS = 1024  # that are kept apart
MOST_OPENING = 10_000  # characters by which two openings of a start are kept apart
MOST_ARGUMENT_TEXT = 50_000_000  # characters that are searched for arguments
Keep = Literal["first", "last", "sum"]


@dataclass(frozen=True)
class Pattern:
    """One text: `word` must be in the line before `regex` is tried."""

    engine: str
    word: str
    regex: re.Pattern[str]
    seen: str
    unit: int = GIB
    keep: Keep = "last"


def _p(engine: str, regex: str, seen: str = "", unit: int = GIB, keep: Keep = "last", word: str = "") -> Pattern:
    """In `regex` `<name>` is a number of that name, `<V>` a version; the word is its beginning, unless given."""
    groups = re.sub(r"(?<!P)<(\w+)>", lambda m: f"(?P<{m[1]}>{N})", regex.replace("<V>", _V))
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
    _vllm(
        r"total_gpu_memory=<gpu_memory_bytes>GiB.{0,80}?peak_torch_memory=<peak_torch_bytes_per_gpu>GiB"
        r".{0,80}?non_torch_memory=<non_torch_bytes_per_gpu>GiB kv_cache_size=<kv_pool_bytes_per_gpu>GiB",
        "0.6.3 to 0.6.4 (V0)",
        word="Memory profiling results:",
    ),
    _vllm(r"# \w{2,6} blocks: <n_gpu_blocks>, # CPU blocks", "0.1 to 0.9 (V0)", 1, word=" blocks: "),
    _vllm(r"Available KV cache memory: <kv_pool_bytes_per_gpu> GiB", "0.9 to 0.31"),
    _vllm(r"reserved <kv_pool_bytes_per_gpu> GiB memory for KV Cache as specified by", "0.22 to 0.26"),
    _vllm(r"GPU KV cache size: <kv_tokens> tokens", "0.8 to 0.31", 1),
    _vllm(r"aximum concurrency for <tokens_per_request> tokens per request: <max_concurrency>x", "0.6 to 0.31", 1),
    _vllm(
        r"Free memory on device (?:\w{1,10}:\d{1,3} )?\(<free_bytes_at_start>/<gpu_memory_bytes> GiB\)", "0.9 to 0.31"
    ),
    _vllm(r"total capacity of <gpu_memory_bytes> GiB", "0.6 to 0.31 (torch)", keep="first"),
    _vllm(r"<weights_bytes_per_gpu> GiB for weight,", "0.10 to 0.30", word="GiB for weight"),
    _vllm(
        r"<consumed_bytes_per_gpu> GiB for consumed memory \(weights", "0.27 to 0.31", word="consumed memory (weights"
    ),
    _vllm(r"<activation_bytes_per_gpu> GiB for peak activation", "0.10 to 0.31", word="GiB for peak activation"),
    _vllm(r"<non_torch_bytes_per_gpu> GiB for non-torch memory", "0.10 to 0.30", word="GiB for non-torch"),
    _vllm(r"<cuda_graph_bytes_per_gpu> GiB for CUDAGraph memory", "0.10 to 0.31", word="GiB for CUDAGraph"),
    _vllm(r"kv cache memory in use is <kv_pool_bytes_per_gpu> (?P<unit>bytes|GiB)", "0.10 to 0.31"),
    _vllm(r"secs, took <cuda_graph_bytes_per_gpu> GiB", "0.4 to 0.31", word="Graph capturing finished"),
    _vllm(
        r"CUDA graph pool memory: <cuda_graph_bytes_per_gpu> GiB \(actual\), "
        r"<cuda_graph_estimate_bytes_per_gpu> GiB \(est",
        "0.19 to 0.30",
    ),
    _vllm(r"Estimated CUDA graph memory: <cuda_graph_estimate_bytes_per_gpu> GiB", "0.18 to 0.30"),
)

SGLANG = (
    _sglang(r"Load weight begin\. avail mem=<free_bytes_at_start> GB", "0.2 to 0.5"),
    _sglang(r"Load weight end\..{0,400}? mem usage=<weights_bytes_per_gpu> GB", "0.4 to 0.5", word="Load weight end."),
    _sglang(
        r"#tokens: <pool_tokens>, K size: <k_bytes_per_gpu> GB, V size: <v_bytes_per_gpu> GB",
        "0.4 to 0.5",
        word="KV Cache is allocated.",
    ),
    _sglang(r"#tokens: <pool_tokens>, KV size: <k_bytes_per_gpu> GB", "0.4 to 0.5", word="KV Cache is allocated."),
    _sglang(
        r"conv_state size: <conv_state_bytes_per_gpu> ?GB, ssm_state size: <ssm_state_bytes_per_gpu> ?GB",
        "0.5",
        word="Mamba Cache is allocated.",
    ),
    _sglang(r"Memory pool end\. avail mem=<free_bytes_after_pool> GB", "0.2 to 0.5", keep="last"),
    _sglang(
        r"Capture [\w -]{0,40}(?:cuda|CUDA) graph end\..{0,80}? mem usage=<cuda_graph_bytes_per_gpu> GB",
        "0.4 to 0.5",
        keep="sum",
        word="raph end.",
    ),
    _sglang(r"(?<!\w)max_total_num_tokens=<kv_tokens>(?![\d.])", "0.2 to 0.5", 1, word="max_total_num_tokens="),
)

_PROFILED = r" in memory usage profiling: "
TENSORRT_LLM = (
    _trtllm(r"Loaded engine size: <weights_bytes_per_gpu> MiB", "0.5 to 1.2 (engine)", MIB),
    _trtllm(
        r"Allocated <activation_bytes_per_gpu> (?P<unit>[GM]i?B) for execution context memory",
        "0.11 to 1.2 (engine)",
        word="execution context memory",
    ),
    _trtllm(
        r"Allocated <runtime_buffer_bytes_per_gpu> (?P<unit>[GM]i?B) GPU memory for runtime",
        "0.11 to 1.2 (engine)",
        word="for runtime buffers",
    ),
    _trtllm(
        r"Allocated <decoder_bytes_per_gpu> (?P<unit>[GM]i?B) GPU memory for decoder",
        "0.11 to 1.2 (engine)",
        word="GPU memory for decoder",
    ),
    _trtllm(
        r"paged kv cache: total: <gpu_memory_bytes> GiB, available: <free_bytes_before_pool> GiB",
        "0.11 to 1.2",
        word="tokens in paged kv cache: total",
    ),
    _trtllm(
        r"Number of blocks in KV cache primary pool: <n_gpu_blocks>",
        "0.11 to 0.20",
        1,
        word="blocks in KV cache primary pool",
    ),
    _trtllm(r"primary blocks=<n_gpu_blocks>", "0.20 to 1.2", 1, word="Max KV cache blocks per sequence"),
    _trtllm(
        r"Allocated <kv_pool_bytes_per_gpu> GiB for max tokens in paged KV cache \(<kv_tokens>\)",
        "0.11 to 1.2",
        word="max tokens in paged KV cache",
    ),
    _trtllm(
        r"\(inside torch\)" + _PROFILED + r"<weights_bytes_per_gpu> GiB",
        "0.17 to 1.2 (PyTorch)",
        word="loading model weights (inside torch)",
    ),
    _trtllm(
        r"\(inside torch\)" + _PROFILED + r"<activation_bytes_per_gpu> GiB",
        "0.17 to 1.2 (PyTorch)",
        word="during inference (inside torch)",
    ),
    _trtllm(
        r"Memory used outside torch[^:]{0,60}" + _PROFILED + r"<non_torch_bytes_per_gpu> GiB",
        "0.17 to 1.2 (PyTorch)",
        word="Memory used outside torch",
    ),
    _trtllm(r"device total memory <gpu_memory_bytes> GiB", "0.17 to 1.2 (PyTorch)"),
)

PATTERNS = (*VLLM, *SGLANG, *TENSORRT_LLM)
VERSIONS = (
    _vllm(r"vLLM API server version <V>"),
    _vllm(r"LLM engine \(<V>", word="LLM engine (v"),
    _vllm("█ {1,4}version <V>", word="  version "),
    _vllm(r"vllm-openai:<V>", word="vllm-openai:v"),
    _vllm(r"vLLM version:? <V>", word="vLLM version"),
    _sglang(r"SGLang version:? <V>", word="SGLang version"),
    _sglang(r"lmsysorg/sglang:<V>", word="lmsysorg/sglang:v"),
    _trtllm(r"TensorRT[- ]LLM version: {1,4}<V>", word="LLM version:"),
    _trtllm(r"TensorRT[- ]LLM Version: {1,4}<V>", word="LLM Version:"),
    _trtllm(r"Engine version <V>", word="Engine version "),
)
# A group has the engine's own name of the argument.
SETTINGS = (
    _vllm(r"Using max model len <max_model_len>"),
    _vllm(r"max_num_batched_tokens=<max_num_batched_tokens>", word="Chunked prefill is enabled"),
    _vllm(r"GPU memory utilization is \(<gpu_memory_utilization>,"),
    _vllm(r"x gpu_memory_utilization \(<gpu_memory_utilization>\)"),
    _vllm(r"GiB gpu_memory_utilization=<gpu_memory_utilization>", word="kv_cache_size="),
    _vllm(r"The current --gpu-memory-utilization=<gpu_memory_utilization>", word="is equivalent to"),
    _vllm(r"aximum concurrency for <max_model_len> tokens per request"),
    _vllm(r"Using (?P<kv_cache_dtype>\w{3,40}) data type to store kv cache", word="data type to store kv cache"),
    _vllm(r"Using (?P<kv_cache_dtype>fp8) kv-cache for Glm"),  # from 0.32, where the arguments say nothing
    _vllm(r"Using (?P<kv_cache_dtype>fp8) KV cache for GLM"),
    _sglang(r"Using KV cache dtype: torch\.(?P<kv_cache_dtype>\w{1,30})", word="Using KV cache dtype:"),
    _sglang(r"context_len=<context_length>", word="max_total_num_tokens="),
    _sglang(r"max_running_requests=<max_running_requests>", word="max_total_num_tokens="),
    _sglang(r"chunked_prefill_size=<chunked_prefill_size>", word="max_total_num_tokens="),
    _trtllm(r"fraction is set <free_gpu_memory_fraction>"),
    _trtllm(r"\bmax_gpu_total_bytes['\"]?[=:] {0,2}<max_gpu_total_bytes>", word="max_gpu_total_bytes"),
    _trtllm(r"\bmax_seq_len=<max_seq_len>", word="max_num_requests="),
    _trtllm(r"\bmax_num_tokens=<max_num_tokens>", word="max_num_requests="),
    _trtllm(r"\bmax_batch_size=<max_batch_size>", word="max_num_requests="),
    _trtllm(r"TRTGptModel maxBatchSize: <max_batch_size>", word="TRTGptModel max"),
    _trtllm(r"TRTGptModel maxSequenceLen: <max_seq_len>", word="TRTGptModel max"),
    _trtllm(r"TRTGptModel maxNumTokens: <max_num_tokens>", word="TRTGptModel max"),
    _trtllm(r"Number of tokens per block: <tokens_per_block>"),
    _trtllm(r"MPI size: <world_size>"),
    _trtllm(r"TP Size: {1,40}<tp_size>", word="TP Size:"),
    _trtllm(r"PP Size: {1,40}<pp_size>", word="PP Size:"),
    _trtllm(r"Starting trtllm-serve for model (?P<model>\S{1,300})", word="Starting trtllm-serve for"),
    _trtllm(r"^Model: {2,40}(?P<model>\S{1,300})$", word="Model:  "),
)
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
STARTUP_WORDS = tuple(
    dict.fromkeys([*(p.word for p in (*PATTERNS, *VERSIONS, *SETTINGS)), *(dump[1] for dump in _DUMPS)])
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


def _matches(line: Line, patterns: Iterable[Pattern]) -> Iterator[tuple[Pattern, re.Match[str]]]:
    for pattern in patterns:
        if pattern.word in line.text and (match := pattern.regex.search(line.text)):
            yield pattern, match


def arguments_of(line: Line) -> Iterator[tuple[str, Argument]]:
    """Every argument that a line states, each with the engine whose it is."""
    for engine, word, opening, read, trust in _DUMPS:
        if word in line.text:
            found = read(line.text[line.text.index(opening) + len(opening) :])
            for name, given in found.items():
                yield engine, Argument(name, given, line.number, trust)
            break
    for pattern, match in _matches(line, SETTINGS):
        for name, stated in match.groupdict().items():
            yield pattern.engine, Argument(name, value(stated.replace(",", "")), line.number, ENGINE_SAYS)


@dataclass(frozen=True)
class Figure:
    """A figure that one rank printed: bytes, tokens, blocks or a ratio."""

    name: str
    value: float
    rank: str
    line_number: int
    text: str


def figures_of(line: Line) -> Iterator[tuple[Pattern, Figure]]:
    for pattern, match in _matches(line, PATTERNS):
        groups = match.groupdict()
        unit = UNITS[groups.pop("unit")] if "unit" in groups else pattern.unit
        text = str(shown(line.text[max(0, match.start() - 60) :], 300))
        for name, given in groups.items():
            number = float(given.replace(",", "")) * (unit if "bytes" in name else 1)
            yield pattern, Figure(name, number, line.rank, line.number, text)


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


def read_log(name: str, devices: Devices) -> StartupLog:
    """The start-up log in the file `name` (`-`: stdin). Raises ScenarioError where it is none."""
    called = "stdin" if name == "-" else shown(name, 200)
    with open_log(name) as stream:
        log = read_lines(log_lines(blocks_of(stream), (*STARTUP_WORDS, *devices.words)), devices)
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
            arguments = tuple(arguments_of(line))
            for engine in {engine for engine, given in arguments if given.trust > 1}:
                starts[engine].open(line)
            for engine, given in arguments:
                starts[engine].current.argument(given)
                votes[engine] += 1
        for pattern, match in itertools.islice(_matches(line, VERSIONS), 1):
            starts[pattern.engine].current.version = match[1]
            votes[pattern.engine] += 1
        for pattern, figure in figures_of(line):
            starts[pattern.engine].current.put(figure, pattern.keep)
            votes[pattern.engine] += 3
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
