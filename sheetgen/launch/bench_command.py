"""The benchmark of a deployment at the load of its fullest replica, whose result `--measured` reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sheetgen.launch.commands import command, flag_groups

PROMPTS_PER_REQUEST = 10  # prompts for each request at once: enough that filling up and running dry weigh little
RESULT = "result.json"


def vllm_bench(checkpoint: str, point: Mapping[str, Any]) -> str:
    """`vllm bench serve`, which any server with OpenAI's interface answers; what its result does not say by itself is
    in its metadata."""
    metadata = [f"gpu={point['gpu']}", f"weight_dtype={point['weight_dtype']}", f"engine={point['engine']}"]
    sizes = {"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size"}
    metadata += [f"{short}={point[name]}" for short, name in sizes.items()]
    flags = {
        "--model": checkpoint,
        "--dataset-name": "random",
        "--random-input-len": point["input_tokens"],
        "--random-output-len": point["output_tokens"],
        "--ignore-eos": True,
        "--max-concurrency": point["concurrent_requests"],
        "--num-prompts": PROMPTS_PER_REQUEST * point["concurrent_requests"],
        "--save-result": True,
        "--result-filename": RESULT,
    }
    return command([("vllm", "bench", "serve"), *flag_groups(flags), ("--metadata", *metadata)], " ")


def sglang_bench(checkpoint: str, point: Mapping[str, Any]) -> str:
    """`python -m sglang.bench_serving`; a range ratio of 1 makes all prompts as long as stated."""
    flags = {
        "--backend": "sglang",
        "--model": checkpoint,
        "--dataset-name": "random",
        "--random-input-len": point["input_tokens"],
        "--random-output-len": point["output_tokens"],
        "--random-range-ratio": 1,
        "--max-concurrency": point["concurrent_requests"],
        "--num-prompts": PROMPTS_PER_REQUEST * point["concurrent_requests"],
        "--output-file": RESULT,
    }
    return command([("python", "-m", "sglang.bench_serving"), *flag_groups(flags)], " ")


BENCHES: dict[str, Callable[[str, Mapping[str, Any]], str]] = {"sglang": sglang_bench}


def bench_command(engine: str, checkpoint: str, point: Mapping[str, Any]) -> str:
    """The benchmark of an engine's server: its own, where it has one of the kinds that are read."""
    return BENCHES.get(engine, vllm_bench)(checkpoint, point)
