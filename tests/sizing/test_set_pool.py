"""A KV pool that is set outright (vLLM's --kv-cache-memory-bytes): the engine takes it, whatever its share leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import sheetgen
from sheetgen.catalog import Catalog
from sheetgen.cli import main
from sheetgen.question.sheet_question import ask

GIB = 2**30
# Public start-up logs of vLLM 0.30 with KV in nvfp4 set this pool; a log says so in these words.
LOG = """\
INFO 10-03 10:00:00 [api_server.py:1] vLLM API server version 0.30.0
INFO 10-03 10:00:00 [utils.py:1] non-default args: {'model': 'meta-llama/Llama-3.1-8B-Instruct', 'max_model_len': 8192,\
 'kv_cache_memory_bytes': 6442450944}
INFO 10-03 10:00:09 [gpu_worker.py:664] Initial free memory 78.6 GiB, reserved 6.0 GiB memory for KV Cache as specified\
 by kv_cache_memory_bytes config and skipped memory profiling.
INFO 10-03 10:00:10 [kv_cache_utils.py:1] GPU KV cache size: 49,152 tokens
"""


def size(**asked: object) -> dict[str, Any]:
    return sheetgen.size(**{"model": "8b", "gpu": "h100", "context": 8192, **asked})


@pytest.mark.parametrize("share", [0.3, 0.92])
def test_the_pool_is_what_it_is_set_to(share: float) -> None:
    sized = size(kv_cache_memory_bytes=6 * GIB, gpu_memory_utilization=share, engine_version="0.30.0")
    assert sized["kv_pool_bytes_per_gpu"] == sized["kv_pool_bytes_per_gpu_low"] == 6 * GIB
    assert sized["kv_pool_bytes_per_gpu_high"] == 6 * GIB
    assert sized["kv_tokens"] == 49_152 and sized["max_concurrency"] == 6
    assert sized["fits"] and not size(kv_cache_memory_bytes=6 * GIB, concurrent_requests=7)["fits"]


def test_an_engine_does_not_start_where_less_is_left() -> None:
    asked = {"concurrent_requests": 1, "engine_version": "0.30.0"}
    most = size(gpu_memory_utilization=1, **asked)["kv_pool_bytes_per_gpu"]
    assert size(kv_cache_memory_bytes=most, **asked)["fits"]
    over = size(kv_cache_memory_bytes=most + 1, **asked)
    assert not over["fits"] and over["kv_pool_bytes_per_gpu"] == 0 and over["min_gpus"] == 2


def test_what_is_rented_holds_the_load_in_the_pool_that_is_set() -> None:
    asked = {"model": "8b", "context": 8192, "concurrent_requests": 24, "gpus": "l40s"}
    free, bound = (sheetgen.recommend(**asked, **more) for more in ({}, {"kv_cache_memory_bytes": 6 * GIB}))
    assert bound["cells"][0]["sequences_per_replica"] == 6 < free["cells"][0]["sequences_per_replica"]
    assert bound["cells"][0]["n_replicas"] == 4


def test_a_log_that_sets_its_pool_is_predicted_by_it(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(LOG, encoding="utf-8")
    ran = CliRunner().invoke(main, ["size", "--from-log", str(log), "--gpu", "h100", "--json"])
    data = json.loads(ran.output)
    assert data["inputs"]["kv_cache_memory_bytes"] == 6 * GIB
    assert data["predicted"]["kv_tokens"] == data["measured"]["kv_tokens"] == 49_152
    assert not [note for note in data["notes"] if "kv_cache_memory" in note]
    assert data["predicted"]["kv_pool_bytes_per_gpu"] == data["measured"]["kv_pool_bytes_per_gpu"]


def test_the_command_sets_it() -> None:
    asked = ["size", "--model", "8b", "--gpu", "h100", "--kv-cache-memory-bytes", "6442450944"]
    assert "KV pool, set outright" in CliRunner().invoke(main, asked).output
    assert "--kv-cache-memory-bytes 6442450944" in CliRunner().invoke(main, [*asked, "--flags", "vllm"]).output


@pytest.mark.parametrize(
    ("gpu", "version", "bytes_per_token"),
    [  # 78 layers of 656 or 576 bytes, 21 of index keys of 132; a log of 0.26 on GPUs of class B200 prints 47,701
        ("h200", "0.19.0", 53_940),
        ("b200", "0.26.0", 47_700),
        ("b300", "0.26.0", 47_700),
        ("b200", "0.18.0", 53_940),
        ("rtx-pro-6000", "0.26.0", 53_940),
    ],
)
def test_entries_of_fp8_latents_are_the_backends(gpu: str, version: str, bytes_per_token: int) -> None:
    asked = {"model": "glm-5.2", "gpu": gpu, "engine_version": version, "tensor_parallel_size": 4}
    assert sheetgen.size(**asked, kv_cache_dtype="fp8")["kv_bytes_per_token"] == bytes_per_token
    assert sheetgen.size(**asked, kv_cache_dtype="bf16")["kv_bytes_per_token"] == 78 * 1152 + 21 * 132


def test_states_have_a_pool_by_ratio() -> None:
    """SGLang: 0.9 bytes of states for each byte of keys and values; three states a request with the prefix cache."""
    asked = {"model": "qwen3.6-27b", "gpu": "h100", "engine": "sglang", "weight_dtype": "fp8", "concurrent_requests": 8}
    long, short = (sheetgen.size(**asked, context=n) for n in (16_384, 128))
    pool, state = long["kv_pool_bytes_per_gpu"], long["state_bytes_per_sequence"]
    assert long["kv_tokens"] == int(pool / 1.9 / 65_536) == 318_354  # before: all 604,872
    assert int(long["max_concurrency"]) == 318_354 // 16_384  # keys and values are full first
    assert int(short["max_concurrency"]) == int(pool * 0.9 / 1.9 / (3 * state))  # the states are
    alone = sheetgen.size(**asked, context=128, enable_prefix_caching=0)
    assert int(alone["max_concurrency"]) == int(pool * 0.9 / 1.9 / state)


def test_windows_have_a_pool_by_ratio() -> None:
    """SGLang, for models whose windows it keeps apart: 0.8 tokens of windowed layers for each of the others."""
    asked = {"model": "gpt-oss-120b", "gpu": "h100", "engine": "sglang", "context": 16_384, "concurrent_requests": 8}
    sized = sheetgen.size(**asked, hybrid_kv_manager=1)
    assert sized["kv_tokens"] == int(sized["kv_pool_bytes_per_gpu"] / (36_864 * 1.8))
    assert int(sized["max_concurrency"]) == sized["kv_tokens"] // 16_384


def test_ratios_that_sglang_sets_for_one_model() -> None:
    """DeepSeek-V4 and Inkling: 0.1 tokens of windows; Inkling: 0.1 bytes of states, too."""
    asked = {
        "gpu": "b300",
        "engine": "sglang",
        "tensor_parallel_size": 8,
        "concurrent_requests": 1,
        "hybrid_kv_manager": 1,
    }
    for model, windows in (("deepseek-v4-flash", 43 * 512), ("inkling", 55 * 16 * 256 * 2 // 8)):
        sized = sheetgen.size(**asked, model=model, context=16_384)
        token = sized["kv_bytes_per_token_per_gpu"] + 0.1 * windows
        states = 1.1 if model == "inkling" else 1
        assert sized["kv_tokens"] == int(sized["kv_pool_bytes_per_gpu"] / (token * states))
    old = sheetgen.size(**asked, model="inkling", context=16_384, engine_version="0.4.0")
    assert old["kv_tokens"] > sized["kv_tokens"]  # no pools by ratio: the longest context is one pool's
    alone, both = (ask(Catalog(), {"models": m, "engine": "sglang"}) for m in ("inkling", "inkling,8b"))
    assert (alone.engine.window_pool_ratio, both.engine.window_pool_ratio) == (0.1, 0.8)


def test_tensorrt_llm_takes_it_as_a_limit() -> None:
    """KvCacheConfig.max_gpu_total_bytes: the lesser of it and of the fraction; vLLM does not start with too much."""
    asked = {"model": "8b", "gpu": "h100", "context": 16_384, "concurrent_requests": 8}
    for engine in ("tensorrt-llm", "vllm"):
        free = sheetgen.size(**asked, engine=engine)["kv_pool_bytes_per_gpu"]
        less, more = (sheetgen.size(**asked, engine=engine, kv_cache_memory_bytes=n) for n in (20 * GIB, 100 * GIB))
        assert less["kv_pool_bytes_per_gpu"] == 20 * GIB < free
        assert more["kv_pool_bytes_per_gpu"] == (free if engine == "tensorrt-llm" else 0)
        assert more["fits"] == (engine == "tensorrt-llm")


@pytest.mark.parametrize("limit", [200_000_000_000, 2 * GIB])
def test_a_limit_bounds_the_stages_of_equal_layers(limit: int) -> None:
    """405B in bf16 is 811.7 GB on 8 x 80 GB at most 640: two stages, whatever limit is above what a request takes."""
    asked = {
        "model": "405b",
        "context": 4096,
        "concurrent_requests": 1,
        "instances": "aws/p4d.24xlarge,aws/p4de.24xlarge",
    }
    asked |= {"engine": "tensorrt-llm", "tpot_ms": "off", "ttft_ms": "off", "weight_dtype": "published"}
    free, bound = (sheetgen.recommend(**asked, **more)["cells"][0] for more in ({}, {"kv_cache_memory_bytes": limit}))
    for cell in free, bound:
        assert (cell["instance"], cell["n_instances"], cell["pipeline_parallel_size"]) == ("aws/p4de.24xlarge", 2, 2)
    outright = sheetgen.recommend(**asked | {"engine": "vllm"}, kv_cache_memory_bytes=limit)["cells"][0]
    assert (outright["instance"] is not None) == (limit == 2 * GIB)


TRTLLM_LOG = """\
Starting trtllm-serve for model meta-llama/Llama-3.1-8B-Instruct on port 8000...
[TensorRT-LLM] TensorRT-LLM version: 1.2.1
[10/20/2026-04:20:04] [TRT-LLM] [I] LLM Args: TorchLlmArgs(model='meta-llama/Llama-3.1-8B-Instruct',\
 tensor_parallel_size=1, kv_cache_config=KvCacheConfig(enable_block_reuse=True, max_tokens=None,\
 free_gpu_memory_fraction=0.9, max_gpu_total_bytes=%s, dtype='auto'), max_batch_size=64)
[10/20/2026-04:21:10] [TRT-LLM] [I] max_seq_len=16384, max_num_requests=64, max_num_tokens=8192, max_batch_size=64
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 20.00 GiB for max tokens in paged KV cache (163840).
"""


@pytest.mark.parametrize(("stated", "read"), [(20 * GIB, 20 * GIB), (100 * GIB, 100 * GIB), (0, 0), ("None", 0)])
def test_a_log_of_tensorrt_llm_states_its_limit(stated: int | str, read: int, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(TRTLLM_LOG % stated, encoding="utf-8")
    ran = CliRunner().invoke(main, ["size", "--from-log", str(log), "--gpu", "h100", "--json"])
    assert ran.exit_code == 0, ran.output
    data = json.loads(ran.output)
    assert data["inputs"]["kv_cache_memory_bytes"] == read
    asked = {"model": "8b", "gpu": "h100", "engine": "tensorrt-llm", "max_num_seqs": 64, "context": 16_384}
    free = sheetgen.size(**asked)["kv_pool_bytes_per_gpu"]
    assert data["predicted"]["kv_pool_bytes_per_gpu"] == (20 * GIB if read == 20 * GIB else free)


@pytest.mark.parametrize("gib", [20, 100])
def test_a_launch_of_tensorrt_llm_states_its_limit(gib: int) -> None:
    asked = [
        "size",
        "--model",
        "8b",
        "--gpu",
        "h100",
        "--engine",
        "tensorrt-llm",
        "--context",
        "16k",
        "--concurrent-requests",
        "8",
    ]
    set_to = [*asked, "--kv-cache-memory-bytes", str(gib * GIB), "--flags", "tensorrt-llm"]
    printed = CliRunner().invoke(main, set_to).output
    assert f"\n  max_gpu_total_bytes: {gib * GIB}\n" in printed and "max_tokens_in_paged_kv_cache" in printed
    assert ("KV pool, as limited" in printed) == (gib == 20)
    assert "set outright" not in printed and "the engine may use" not in printed
    assert ("KV pool, 90% of" in printed) == (gib == 100)
    plain = CliRunner().invoke(main, [*asked, "--flags", "tensorrt-llm"]).output
    assert "max_gpu_total_bytes" not in plain and "max_tokens_in_paged_kv_cache" not in plain


@pytest.mark.parametrize(
    ("model", "gib", "words"),
    [
        ("8b", 100, "the stated KV pool of 100.0 GiB is more than the 61.1 GiB"),
        ("8b", 79, "the stated KV pool of 79.0 GiB is more than the 61.1 GiB"),
        ("70b", 10, "the weights alone need 131.4 GiB of each GPU, and the engine may use 79.2 GiB"),
    ],
)
def test_a_pool_larger_than_what_is_left_is_what_the_verdict_blames(model: str, gib: int, words: str) -> None:
    """Beside weights that fit it is the pool that does not; where they do not, it is the weights."""
    sized = sheetgen.size(model=model, gpu="h100", kv_cache_memory_bytes=gib * GIB)
    assert not sized["fits"] and words in sized["verdict"]


def test_the_share_of_tensorrt_llm_is_of_what_is_free() -> None:
    """It is no limit for weights: a replica of 70B on one H100 lacks what the GPU has, not 90 % of it."""
    assert "may use 79.2 GiB" in sheetgen.size(model="70b", gpu="h100", engine="tensorrt-llm")["verdict"]
