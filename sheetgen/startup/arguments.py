"""The arguments of an engine, wherever a start-up log states them: command lines, dumps, single settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sheetgen.startup.lines import Line
from sheetgen.startup.literals import Value, command_flags, pairs, value
from sheetgen.startup.patterns import N

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
WORDS = (*(v[1] for v in VERSIONS), *(s[1] for s in SETTINGS), *(d[1] for d in _DUMPS))
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
