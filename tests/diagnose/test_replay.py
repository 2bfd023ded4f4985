"""Numbers: what was short, what the suggested values are, and that they fit when they are sized."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sheetgen.api import size
from sheetgen.catalog import Catalog
from sheetgen.diagnose.report import Diagnosis, diagnose

ARGUMENTS = (
    "(APIServer pid=1) INFO 11-20 10:00:00 [api_server.py:1896] vLLM API server version 0.19.0\n"
    "(APIServer pid=1) INFO 11-20 10:00:00 [utils.py:253] non-default args: {{'model': '{model}', "
    "'max_model_len': {length}, 'tensor_parallel_size': {tp}, 'gpu_memory_utilization': 0.9}}\n"
)
NO_BLOCKS = (
    "(EngineCore pid=5) ERROR 11-20 10:02:00 [core.py:708] ValueError: No available memory for the cache blocks. Try "
    "increasing `gpu_memory_utilization` when initializing the engine.\n"
)


def told(tmp_path: Path, text: str, **options: Any) -> Diagnosis:
    path = tmp_path / "server.log"
    path.write_text(text, encoding="utf-8")
    return diagnose(str(path), options, Catalog())


def test_a_length_is_suggested_that_fits(tmp_path: Path) -> None:
    text = ARGUMENTS.format(model="meta-llama/Llama-3.1-8B-Instruct", length=131072, tp=1)
    found = told(tmp_path, text + NO_BLOCKS, gpu="l4")
    assert found.verdict.bill.label == "startup_kv_pool_too_small" and found.engine_version == "0.19.0"
    assert found.replayed is not None and not found.replayed.answer["fits"]
    row = found.replayed.rows[-1]
    assert row[1] > row[2] and row[3] == row[1] - row[2], "what was needed, what there was, by how much it failed"
    values = {fix.flag: fix.value for fix in found.fixes}
    length = values["--max-model-len"]
    assert isinstance(length, int) and 0 < length < 131072
    asked = {"model": "llama-3.1-8b", "gpu": "l4", "engine_version": "0.19.0", "users": 1}
    assert size(**asked, context=length, max_model_len=length)["fits"]
    assert not size(**asked, context=length + 2048, max_model_len=length + 2048)["fits"]
    assert size(**asked, context=131072, max_model_len=131072, tensor_parallel_size=values["--tensor-parallel-size"])[
        "fits"
    ]
    assert "FP8 KV" in found.replayed.outcomes["kv_cache_dtype"]


def test_the_engines_own_figures_outrank_the_prediction(tmp_path: Path) -> None:
    text = ARGUMENTS.format(model="meta-llama/Llama-3.1-70B-Instruct", length=131072, tp=4) + (
        "(EngineCore pid=5) ERROR 11-20 10:02:00 [core.py:708] ValueError: To serve at least one request with the "
        "models's max seq len (131072), (10.00 GiB KV cache is needed, which is larger than the available KV cache "
        "memory (6.00 GiB). Based on the available memory, the estimated maximum model length is 78640.\n"
    )
    found = told(tmp_path, text, gpu="h100")
    assert found.short is not None and found.short.short_by == 4 * 2**30
    values = {fix.flag: fix.value for fix in found.fixes}
    assert values["--max-model-len"] == 78640
    assert values["--gpu-memory-utilization"] == pytest.approx(0.96)
    assert found.replayed is not None and found.replayed.rows[-1][1:] == (10 * 2**30, 6 * 2**30, 4 * 2**30)


def test_blocks_are_recomputed(tmp_path: Path) -> None:
    text = (
        "INFO llm_engine.py:275] # GPU blocks: 229, # CPU blocks: 512\n"
        "ValueError: The model's max seq len (4096) is larger than the maximum number of tokens that can be stored in "
        "KV cache (3664). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`\n"
    )
    found = told(tmp_path, text)
    assert found.numbers["kv_tokens"] == 229 * 16 == found.numbers["kv_tokens_available"]
    assert found.short is not None and found.short.short_by == 432 and found.fixes[0].value == 3664


def test_a_shared_gpu_gets_the_share_that_is_free(tmp_path: Path) -> None:
    text = (
        "ValueError: Free memory on device cuda:1 (19.77/22.05 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 19.84 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
        "  File x/vllm/v1/worker/gpu_worker.py\n"
    )
    found = told(tmp_path, text)
    assert [(fix.direction, fix.value) for fix in found.fixes] == [("free", None), ("lower", 0.88)]
    assert 0.88 * 22.05 < 19.77


@pytest.mark.parametrize("gpu", ["h100", "l40s"])
def test_weights_that_do_not_fit_get_the_gpus_that_hold_them(tmp_path: Path, gpu: str) -> None:
    text = ARGUMENTS.format(model="meta-llama/Llama-3.1-70B-Instruct", length=8192, tp=1) + (
        "(EngineCore pid=5) ERROR 11-20 10:02:00 [gpu_model_runner.py:5403] Failed to load model - not enough GPU "
        "memory. Try lowering --gpu-memory-utilization to free memory for weights, increasing --tensor-parallel-size\n"
    )
    found = told(tmp_path, text, gpu=gpu)
    assert found.verdict.bill.label == "startup_weights_do_not_fit" and found.replayed is not None
    weights = found.replayed.rows[0]
    assert weights[0] == "weights" and weights[3] > 0
    value = next(fix.value for fix in found.fixes if fix.flag == "--tensor-parallel-size")
    asked = {"model": "70b", "gpu": gpu, "engine_version": "0.19.0", "context": 8192, "users": 1}
    assert (
        size(**asked, tensor_parallel_size=value)["fits"] and not size(**asked, tensor_parallel_size=value // 2)["fits"]
    )


def test_a_healthy_log_says_who_waits_first(tmp_path: Path) -> None:
    text = ARGUMENTS.format(model="meta-llama/Llama-3.1-8B-Instruct", length=16384, tp=1) + (
        "(EngineCore pid=5) INFO 11-20 [gpu_worker.py:298] Available KV cache memory: 44.59 GiB\n"
        "(EngineCore pid=5) INFO 11-20 [kv_cache_utils.py:1087] GPU KV cache size: 365,296 tokens\n"
        "(APIServer pid=1) INFO:     Application startup complete.\n"
    )
    found = told(tmp_path, text, gpu="h100")
    assert found.verdict.bill.label == "healthy" and found.verdict.bill.confidence > 0.8 and found.health is not None
    assert found.health.first_limit == "user 23 at 16k: the pool of 365,296 tokens holds 22"
    assert found.health.compared["kv_tokens"][1] == 365_296
    eight = told(tmp_path, text, gpu="h100", context_tokens="8k").health
    assert eight is not None and eight.first_limit.startswith("user 45 at 8k")


def test_without_model_the_log_alone_is_read(tmp_path: Path) -> None:
    found = told(tmp_path, NO_BLOCKS)
    assert found.replayed is None and any("--model" in reason for reason in found.not_replayed_because)
    assert found.fixes
