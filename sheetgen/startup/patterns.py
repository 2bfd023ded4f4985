"""The texts that serving engines print at start, as a table: which figure, in which unit, seen in which versions.

A group of a pattern is a figure. Groups that end in `_per_gpu` or hold `_bytes` are sizes in the pattern's unit,
or in the one that the text names; the engines' GB are GiB (they divide by 2^30), and so is TensorRT-LLM's.
`keep` says what holds where a rank prints a figure more than once: the first (a draft model follows), the last
(a trial comes before), or the sum (one of several parts).

"Seen" are the versions whose logs were read, not the first and last that print it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

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
    engine: str, word: str, regex: str, seen: str, unit: int = GIB, keep: Literal["first", "last", "sum"] = "last"
) -> Pattern:  # fmt: skip
    """`<name>` in `regex` stands for a number that is the figure `name`."""
    groups = re.sub(r"(?<!P)<(\w+)>", lambda m: f"(?P<{m[1]}>{N[1:]}", regex)
    return Pattern(engine, word, re.compile(groups), seen, unit, keep)


VLLM = (
    _p("vllm", "Loading model weights took", r"Loading model weights took <weights_bytes_per_gpu> G", "0.4 to 0.9"),
    _p("vllm", "Model loading took", r"Model loading took <weights_bytes_per_gpu> GiB", "0.8 to 0.31"),
    _p("vllm", "model weights take", r"model weights take <weights_bytes_per_gpu>GiB", "0.6.5 to 0.9 (V0)"),
    _p("vllm", "non_torch_memory takes", r"non_torch_memory takes <non_torch_bytes_per_gpu>GiB", "0.6.5 to 0.9 (V0)"),
    _p(
        "vllm", "PyTorch activation peak",
        r"PyTorch activation peak memory takes <activation_bytes_per_gpu>GiB", "0.6.5 to 0.9 (V0)",
    ),
    _p(
        "vllm", "reserved for KV Cache is",
        r"reserved for KV Cache is <kv_pool_bytes_per_gpu>GiB", "0.6.5 to 0.9 (V0)",
    ),
    _p("vllm", "total_gpu_memory (", r"total_gpu_memory \(<gpu_memory_bytes>GiB\)", "0.6.5 to 0.9 (V0)"),
    _p(
        "vllm", "Memory profiling results:",
        r"total_gpu_memory=<gpu_memory_bytes>GiB.{0,80}?peak_torch_memory=<peak_torch_bytes_per_gpu>GiB"
        r".{0,80}?non_torch_memory=<non_torch_bytes_per_gpu>GiB kv_cache_size=<kv_pool_bytes_per_gpu>GiB",
        "0.6.3 to 0.6.4 (V0)",
    ),
    _p("vllm", " blocks: ", r"# \w{2,6} blocks: <n_gpu_blocks>, # CPU blocks", "0.1 to 0.9 (V0)", 1),
    _p("vllm", "Available KV cache memory:", r"Available KV cache memory: <kv_pool_bytes_per_gpu> GiB", "0.9 to 0.31"),
    _p(
        "vllm", "reserved ", r"reserved <kv_pool_bytes_per_gpu> GiB memory for KV Cache as specified by",
        "0.22 to 0.26",
    ),
    _p("vllm", "GPU KV cache size:", r"GPU KV cache size: <kv_tokens> tokens", "0.8 to 0.31", 1),
    _p(
        "vllm", "aximum concurrency for", r"aximum concurrency for <tokens_per_request> tokens per request: "
        r"<max_concurrency>x", "0.6 to 0.31", 1,
    ),
    _p(
        "vllm", "Free memory on device",
        r"Free memory on device (?:\w{1,10}:\d{1,3} )?\(<free_bytes_at_start>/<gpu_memory_bytes> GiB\)", "0.9 to 0.31",
    ),
    _p("vllm", "GiB for weight", r"<weights_bytes_per_gpu> GiB for weight,", "0.10 to 0.30"),
    _p(
        "vllm", "consumed memory (weights", r"<consumed_bytes_per_gpu> GiB for consumed memory \(weights",
        "0.27 to 0.31",
    ),
    _p("vllm", "GiB for peak activation", r"<activation_bytes_per_gpu> GiB for peak activation", "0.10 to 0.31"),
    _p("vllm", "GiB for non-torch", r"<non_torch_bytes_per_gpu> GiB for non-torch memory", "0.10 to 0.30"),
    _p("vllm", "GiB for CUDAGraph", r"<cuda_graph_bytes_per_gpu> GiB for CUDAGraph memory", "0.10 to 0.31"),
    _p(
        "vllm", "kv cache memory in use",
        r"kv cache memory in use is <kv_pool_bytes_per_gpu> (?P<unit>bytes|GiB)", "0.10 to 0.31",
    ),
    _p("vllm", "Graph capturing finished", r"secs, took <cuda_graph_bytes_per_gpu> GiB", "0.4 to 0.31"),
    _p(
        "vllm", "CUDA graph pool memory:",
        r"CUDA graph pool memory: <cuda_graph_bytes_per_gpu> GiB \(actual\), "
        r"<cuda_graph_estimate_bytes_per_gpu> GiB \(est", "0.19 to 0.30",
    ),
    _p(
        "vllm", "Estimated CUDA graph memory:",
        r"Estimated CUDA graph memory: <cuda_graph_estimate_bytes_per_gpu> GiB", "0.18 to 0.30",
    ),
)  # fmt: skip

SGLANG = (
    _p(
        "sglang", "Load weight begin.",
        r"Load weight begin\. avail mem=<free_bytes_at_start> GB", "0.2 to 0.5", keep="first",
    ),
    _p(
        "sglang", "Load weight end.",
        r"Load weight end\..{0,400}? mem usage=<weights_bytes_per_gpu> GB", "0.4 to 0.5", keep="first",
    ),
    _p(
        "sglang", "KV Cache is allocated.",
        r"#tokens: <pool_tokens>, K size: <k_bytes_per_gpu> GB, V size: <v_bytes_per_gpu> GB", "0.4 to 0.5",
        keep="first",
    ),
    _p(
        "sglang", "KV Cache is allocated.",
        r"#tokens: <pool_tokens>, KV size: <k_bytes_per_gpu> GB", "0.4 to 0.5", keep="first",
    ),
    _p(
        "sglang", "Mamba Cache is allocated.",
        r"conv_state size: <conv_state_bytes_per_gpu> ?GB, ssm_state size: <ssm_state_bytes_per_gpu> ?GB", "0.5",
        keep="first",
    ),
    _p("sglang", "Memory pool end.", r"Memory pool end\. avail mem=<free_bytes_after_pool> GB", "0.2 to 0.5"),
    _p(
        "sglang", "raph end.",
        r"Capture [\w -]{0,40}(?:cuda|CUDA) graph end\..{0,80}? mem usage=<cuda_graph_bytes_per_gpu> GB", "0.4 to 0.5",
        keep="sum",
    ),
    _p(
        "sglang", "max_total_num_tokens=",
        r"(?<!\w)max_total_num_tokens=<kv_tokens>(?![\d.])", "0.2 to 0.5", 1, keep="first",
    ),
)  # fmt: skip

_PROFILED = r" in memory usage profiling: "
TENSORRT_LLM = (
    _p(
        "tensorrt-llm", "Loaded engine size:",
        r"Loaded engine size: <weights_bytes_per_gpu> MiB", "0.5 to 1.2 (engine)", MIB,
    ),
    _p(
        "tensorrt-llm", "execution context memory",
        r"Allocated <activation_bytes_per_gpu> (?P<unit>[GM]i?B) for execution context memory", "0.11 to 1.2 (engine)",
    ),
    _p(
        "tensorrt-llm", "for runtime buffers",
        r"Allocated <runtime_buffer_bytes_per_gpu> (?P<unit>[GM]i?B) GPU memory for runtime", "0.11 to 1.2 (engine)",
    ),
    _p(
        "tensorrt-llm", "GPU memory for decoder",
        r"Allocated <decoder_bytes_per_gpu> (?P<unit>[GM]i?B) GPU memory for decoder", "0.11 to 1.2 (engine)",
    ),
    _p(
        "tensorrt-llm", "tokens in paged kv cache: total",
        r"paged kv cache: total: <gpu_memory_bytes> GiB, available: <free_bytes_before_pool> GiB", "0.11 to 1.2",
    ),
    _p(
        "tensorrt-llm", "blocks in KV cache primary pool",
        r"Number of blocks in KV cache primary pool: <n_gpu_blocks>", "0.11 to 0.20", 1,
    ),
    _p(
        "tensorrt-llm", "Max KV cache blocks per sequence",
        r"primary blocks=<n_gpu_blocks>", "0.20 to 1.2", 1,
    ),
    _p(
        "tensorrt-llm", "max tokens in paged KV cache",
        r"Allocated <kv_pool_bytes_per_gpu> GiB for max tokens in paged KV cache \(<kv_tokens>\)", "0.11 to 1.2",
    ),
    _p(
        "tensorrt-llm", "loading model weights (inside torch)",
        r"\(inside torch\)" + _PROFILED + r"<weights_bytes_per_gpu> GiB", "0.17 to 1.2 (PyTorch)",
    ),
    _p(
        "tensorrt-llm", "during inference (inside torch)",
        r"\(inside torch\)" + _PROFILED + r"<activation_bytes_per_gpu> GiB", "0.17 to 1.2 (PyTorch)",
    ),
    _p(
        "tensorrt-llm", "Memory used outside torch",
        r"Memory used outside torch[^:]{0,60}" + _PROFILED + r"<non_torch_bytes_per_gpu> GiB", "0.17 to 1.2 (PyTorch)",
    ),
    _p(
        "tensorrt-llm", "device total memory",
        r"device total memory <gpu_memory_bytes> GiB", "0.17 to 1.2 (PyTorch)",
    ),
)  # fmt: skip

PATTERNS = (*VLLM, *SGLANG, *TENSORRT_LLM)
