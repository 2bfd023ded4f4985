"""Points that the tests of `launch` share, and readers of the commands that it writes."""

from __future__ import annotations

import functools
import json
import shlex
from typing import Any

import yaml
from option_values import Options, OptionValue

from sheetgen.api import record, sized_point
from sheetgen.catalog import Catalog
from sheetgen.catalog.stacks import StackFile
from sheetgen.launch.flags import Advice, Flags, flags_for

ENGINES = ("vllm", "sglang", "tensorrt-llm", "nim", "lmdeploy")
POINTS: dict[str, Options] = {
    "8b": {"model": "8b", "gpu": "h100", "context_tokens": 8192, "concurrent_requests": 32},
    "8b-l4": {"model": "8b", "gpu": "l4", "context_tokens": 4096, "concurrent_requests": 4},
    "70b": {
        "model": "70b", "gpu": "h100", "tensor_parallel_size": 4, "context_tokens": "16k", "concurrent_requests": 20,
    },
    "70b-fp8": {
        "model": "70b", "gpu": "h200", "tensor_parallel_size": 2, "context_tokens": "32k", "concurrent_requests": 16,
        "weight_dtype": "fp8", "kv_cache_dtype": "fp8",
    },
    "gpt-oss": {
        "model": "gpt-oss-120b", "gpu": "h200", "tensor_parallel_size": 2, "context_tokens": "32k",
        "concurrent_requests": 40,
    },
    "r1": {
        "model": "deepseek-r1", "gpu": "h200", "tensor_parallel_size": 8, "context_tokens": "8k",
        "concurrent_requests": 32,
    },
    "r1-dp": {
        "model": "deepseek-r1", "gpu": "b200", "data_parallel_size": 8, "expert_parallel_size": 8,
        "context_tokens": "8k", "concurrent_requests": 64,
    },
    "qwen3-235b": {
        "model": "qwen3-235b", "gpu": "h200", "tensor_parallel_size": 8, "context_tokens": "16k",
        "concurrent_requests": 64, "max_model_len": "32k", "max_num_batched_tokens": 4096,
    },
    "8b-pp-dp": {
        "model": "8b", "gpu": "l40s", "pipeline_parallel_size": 2, "data_parallel_size": 2, "context_tokens": "16k",
        "concurrent_requests": 10, "block_size": 64, "enable_prefix_caching": 0,
    },
}  # fmt: skip


@functools.cache
def catalog() -> Catalog:
    return Catalog()


def written(engines: tuple[str, ...] = ENGINES, **asked: OptionValue) -> tuple[dict[str, Flags], Advice]:
    """Flags and advice of a point, as the command line asks for them."""
    flags, advice = flags_for(engines, [(asked, record(sized_point(asked, catalog())))], catalog())[0]
    assert advice is not None
    return flags, advice


def words(flags: Flags) -> list[str]:
    """The words of a command as a shell has them."""
    assert flags.written is not None
    return shlex.split(flags.text(flags.written).split("EOF\n")[-1].replace("\\\n", ""))


def flags_of(parts: list[str]) -> dict[str, str]:
    """`--flag value` and `--flag` of a list of words."""
    flags: dict[str, str] = {}
    for i, word in enumerate(parts):
        if word.startswith("--"):
            value = parts[i + 1] if i + 1 < len(parts) and not parts[i + 1].startswith("--") else ""
            flags[word] = value
    return flags


def read_back(engine: str, of_flags: Flags) -> dict[str, Any]:
    """Inputs of `sheetgen.size` that a printed command stands for, read from its text alone."""
    assert of_flags.written is not None
    parts = words(of_flags)
    flags: dict[str, Any] = flags_of(parts)
    if engine == "nim":
        env = dict(parts[i + 1].split("=", 1) for i, w in enumerate(parts) if w == "-e" and "=" in parts[i + 1])
        flags = env | flags_of(shlex.split(env["NIM_PASSTHROUGH_ARGS"]))
    if engine == "tensorrt-llm":
        text = of_flags.text(of_flags.written).split("<<'EOF'\n")[1].split("EOF\n")[0]
        flags |= flat(yaml.safe_load(text))
    names = of_flags.launcher.flags
    caches = {word: dtype for dtype, word in reversed(of_flags.launcher.kv_cache_dtypes.items())}
    settings: Options = {"engine": engine}
    for name in names:
        if name in ("dtype", "draft_model", "enable_prefix_caching", "hybrid_kv_manager", "expert_parallel_size"):
            continue
        if names[name] in flags:
            settings[name] = flags[names[name]]
    settings["kv_cache_dtype"] = caches[str(settings["kv_cache_dtype"])]
    return settings


def flat(options: Options, above: str = "") -> dict[str, Any]:
    settings: Options = {}
    for name, value in options.items():
        settings |= flat(value, f"{above}{name}.") if isinstance(value, dict) else {f"{above}{name}": value}
    return settings


def model_named(engine: str, flags: Flags) -> str:
    """The model that a printed command names."""
    parts = words(flags)
    if engine == "nim":
        return next(w for w in parts if w.startswith("NIM_MODEL_PATH=")).split("=", 1)[1]
    return {
        "vllm": parts[2],
        "sglang": flags_of(parts).get("--model-path", ""),
        "tensorrt-llm": parts[1],
        "lmdeploy": parts[3],
    }[engine]


def launchers() -> dict[str, Any]:
    return {launcher.engine: launcher for launcher in catalog().file(StackFile).launchers}


def speculation(flags: Flags) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(flags_of(words(flags))["--speculative-config"])
    return record
