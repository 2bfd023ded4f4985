"""The benchmark command of a deployment at the load of its fullest replica; `--measured` reads its result."""

from __future__ import annotations

from sheetgen.catalog.base import RawMapping
from sheetgen.launch.commands import command, flag_groups

PROMPTS_PER_REQUEST = 10  # prompts per concurrent request: enough that ramp-up and ramp-down matter little
RESULT = "result.json"


def vllm_bench(checkpoint: str, point: RawMapping) -> str:
    """`vllm bench serve`, for any server with OpenAI's interface; settings that its result lacks are in its
    metadata."""
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


def sglang_bench(checkpoint: str, point: RawMapping) -> str:
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


def bench_command(engine: str, checkpoint: str, point: RawMapping) -> str:
    """The benchmark command for an engine's server: its own benchmark if `--measured` reads its results, else
    vLLM's."""
    return sglang_bench(checkpoint, point) if engine == "sglang" else vllm_bench(checkpoint, point)
