"""The texts that serving engines print at start, as a table: which figure, in which unit, seen in which versions.

A group of a pattern is a figure. Groups that end in `_per_gpu` or hold `_bytes` are sizes in the pattern's unit,
or in the one that the text names; the engines' GB are GiB (they divide by 2^30), and so is TensorRT-LLM's.
`keep` says what holds where a rank prints a figure more than once: the first (a draft model follows), the last
(a trial comes before), or the sum (one of several parts).

"Seen" are the versions whose logs were read, not the first and last that print it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sheetgen.errors import shown
from sheetgen.startup.lines import Line
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
