"""Numbers: what was short, what the suggested values are, and that they fit when they are sized."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sheetgen.api import size
from sheetgen.catalog import Catalog
from sheetgen.diagnose import diagnosis
from sheetgen.diagnose.diagnosis import Diagnosis, diagnose

ARGUMENTS = (
    "(APIServer pid=1) INFO 11-20 10:00:00 [api_server.py:1896] vLLM API server version 0.19.0\n"
    "(APIServer pid=1) INFO 11-20 10:00:00 [utils.py:253] non-default args: {{'model': '{model}', "
    "'max_model_len': {length}, 'tensor_parallel_size': {tp}, 'gpu_memory_utilization': 0.9}}\n"
)
NO_BLOCKS = (
    "(EngineCore pid=5) ERROR 11-20 10:02:00 [core.py:708] ValueError: No available memory for the cache blocks. Try "
    "increasing `gpu_memory_utilization` when initializing the engine.\n"
)
TOO_LONG = (
    "(EngineCore pid=5) ERROR 11-20 10:02:00 [core.py:708] ValueError: The model's max seq len (131072) is larger than "
    "the maximum number of tokens that can be stored in KV cache (16).\n"
)


def told(tmp_path: Path, text: str, **options: object) -> Diagnosis:
    path = tmp_path / "server.log"
    path.write_text(text, encoding="utf-8")
    return diagnose(str(path), options, Catalog())


def test_a_length_is_suggested_that_fits(tmp_path: Path) -> None:
    text = ARGUMENTS.format(model="meta-llama/Llama-3.1-8B-Instruct", length=131072, tp=1)
    advised = told(tmp_path, text + TOO_LONG, gpu="l4")
    assert advised.verdict.cause.label == "startup_kv_pool_too_small" and advised.engine_version == "0.19.0"
    assert advised.replayed is not None and not advised.replayed.answer["fits"]
    row = advised.replayed.rows["KV pool"]
    assert row[1] > row[2] and row[3] == row[1] - row[2], "what was needed, what there was, by how much it failed"
    values = {fix.flag: fix.value for fix in advised.fixes}
    assert values["--max-model-len"] == 16, "the log's own figure outranks the replay"
    length = advised.replayed.values["max_model_len"]
    assert isinstance(length, int) and 0 < length < 131072
    asked = {"model": "llama-3.1-8b", "gpu": "l4", "engine_version": "0.19.0", "users": 1}
    assert size(**asked, context=length, max_model_len=length)["fits"]
    assert not size(**asked, context=length + 2048, max_model_len=length + 2048)["fits"]
    assert size(**asked, context=131072, max_model_len=131072, tensor_parallel_size=values["--tensor-parallel-size"])[
        "fits"
    ]
    assert "FP8 KV" in advised.replayed.outcomes["kv_cache_dtype"]


def test_the_engines_own_figures_outrank_the_prediction(tmp_path: Path) -> None:
    text = ARGUMENTS.format(model="meta-llama/Llama-3.1-70B-Instruct", length=131072, tp=4) + (
        "(EngineCore pid=5) ERROR 11-20 10:02:00 [core.py:708] ValueError: To serve at least one request with the "
        "models's max seq len (131072), (10.00 GiB KV cache is needed, which is larger than the available KV cache "
        "memory (6.00 GiB). Based on the available memory, the estimated maximum model length is 78640.\n"
    )
    advised = told(tmp_path, text, gpu="h100")
    assert advised.short is not None and advised.short.short_by == 4 * 2**30
    values = {fix.flag: fix.value for fix in advised.fixes}
    assert values["--max-model-len"] == 78640
    assert values["--gpu-memory-utilization"] == pytest.approx(0.96)
    assert advised.replayed is not None and advised.replayed.rows["KV pool"][1:] == (10 * 2**30, 6 * 2**30, 4 * 2**30)


def test_blocks_are_recomputed(tmp_path: Path) -> None:
    text = (
        "INFO llm_engine.py:275] # GPU blocks: 229, # CPU blocks: 512\n"
        "ValueError: The model's max seq len (4096) is larger than the maximum number of tokens that can be stored in "
        "KV cache (3664). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`\n"
    )
    advised = told(tmp_path, text)
    assert advised.numbers["kv_tokens"] == 229 * 16 == advised.numbers["kv_tokens_available"]
    assert advised.short is not None and advised.short.short_by == 432 and advised.fixes[0].value == 3664


def test_a_shared_gpu_gets_the_share_that_is_free(tmp_path: Path) -> None:
    text = (
        "ValueError: Free memory on device cuda:1 (19.77/22.05 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 19.84 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
        "  File x/vllm/v1/worker/gpu_worker.py\n"
    )
    advised = told(tmp_path, text)
    assert [(fix.direction, fix.value) for fix in advised.fixes] == [("free", None), ("lower", 0.88)]
    assert 0.88 * 22.05 < 19.77


@pytest.mark.parametrize("gpu", ["h100", "l40s"])
def test_weights_that_do_not_fit_get_the_gpus_that_hold_them(tmp_path: Path, gpu: str) -> None:
    text = ARGUMENTS.format(model="meta-llama/Llama-3.1-70B-Instruct", length=8192, tp=1) + (
        "(EngineCore pid=5) ERROR 11-20 10:02:00 [gpu_model_runner.py:5403] Failed to load model - not enough GPU "
        "memory. Try lowering --gpu-memory-utilization to free memory for weights, increasing --tensor-parallel-size\n"
    )
    advised = told(tmp_path, text, gpu=gpu)
    assert advised.verdict.cause.label == "startup_weights_do_not_fit" and advised.replayed is not None
    weights = advised.replayed.rows["weights"]
    assert weights[0] == "weights" and weights[3] > 0
    value = next(fix.value for fix in advised.fixes if fix.flag == "--tensor-parallel-size")
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
    advised = told(tmp_path, text, gpu="h100")
    assert (
        advised.verdict.cause.label == "healthy"
        and advised.verdict.cause.confidence > 0.8
        and advised.health is not None
    )
    assert re.search("user 23 .* 365,296 tokens .* 22$", advised.health.first_limit)
    assert advised.health.compared["kv_tokens"][1] == 365_296
    eight = told(tmp_path, text, gpu="h100", context_tokens="8k").health
    assert eight is not None and eight.first_limit.startswith("user 45 at 8k")


STARTED = (
    "INFO 11-20 [utils.py:261] vLLM API server version 0.30.0\n"
    "INFO 11-20 [utils.py:261] non-default args: {{'model': 'meta-llama/Llama-3.1-8B-Instruct'{more}}}\n"
    "INFO 11-20 [kv_cache_utils.py:1305] GPU KV cache size: 41,920 tokens\nINFO:     Application startup complete.\n"
)
SERVES = (
    "INFO 11-20 [loggers.py:257] Engine 000: Avg prompt throughput: 300.0 tokens/s, Avg generation throughput: 400.0 "
    "tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage}%\n"
)


def queued(running: int, waiting: int, usage: float, times: int = 6, more: str = "") -> str:
    return STARTED.format(more=more) + times * SERVES.format(running=running, waiting=waiting, usage=usage)


def test_a_full_pool_with_a_queue_is_healthy_and_saturated(tmp_path: Path) -> None:
    """It says so first, with the limit, who waits, and what would serve them."""
    advised = told(tmp_path, queued(12, 37, 91.0))
    cause = advised.verdict.cause
    assert (cause.label, cause.case, cause.confidence) == ("healthy", "full", 0.9)
    assert diagnosis.text(advised).splitlines()[0] == (
        "Healthy, and saturated: 12 requests run, the KV cache is full (91 % of the KV cache in use), and 37 wait "
        "(healthy, confidence 90 %)."
    )
    assert advised.record()["queue"] == {"limit": "full", "running": 12, "waiting": 37, "usage": 0.91}
    assert advised.record()["shortfall"]["short_by"] == 37
    replicas = next(fix for fix in advised.fixes if fix.direction == "free")
    assert replicas.value == 5 and "49 run or wait" in replicas.reason
    assert {"--kv-cache-dtype", "--gpu-memory-utilization"} <= {fix.flag for fix in advised.fixes}


@pytest.mark.parametrize("more", ["", ", 'max_num_seqs': 16"])
def test_a_queue_for_places_asks_for_more_of_them(more: str, tmp_path: Path) -> None:
    """As far as the pool holds: 16 take 40 % of it, 38 take 95 %."""
    advised = told(tmp_path, queued(16, 37, 40.0, more=more))
    assert advised.verdict.cause.case == "places" and "no more may run" in diagnosis.headline(advised)
    raised = next(fix for fix in advised.fixes if fix.flag == "--max-num-seqs")
    assert (raised.direction, raised.value) == ("raise", 38)


@pytest.mark.parametrize(
    "text",
    [
        queued(12, 0, 50.0),
        queued(12, 0, 60.0)
        + SERVES.format(running=12, waiting=5, usage=60.0)
        + SERVES.format(running=12, waiting=0, usage=60.0),
        queued(12, 3, 50.0, times=1),
        queued(12, 3, 50.0, more=", 'max_num_seqs': 64"),
    ],
    ids=["nobody waits", "once", "a single line", "places are free"],
)
def test_who_does_not_wait_for_long_is_no_queue(text: str, tmp_path: Path) -> None:
    advised = told(tmp_path, text)
    assert advised.verdict.queue is None and advised.verdict.cause.label == "healthy" and not advised.fixes


def test_without_model_the_log_alone_is_read(tmp_path: Path) -> None:
    advised = told(tmp_path, NO_BLOCKS)
    assert advised.replayed is None and any("--model" in reason for reason in advised.not_replayed_because)
    assert advised.fixes


SGLANG = (
    "[2026-06-11 09:12:05] server_args=ServerArgs(model_path='{model}', context_length={length}, "
    "mem_fraction_static=0.9, tp_size={tp}, chunked_prefill_size=8192)\n"
    "[2026-06-11 09:12:45 TP0] Load weight end. type=X, dtype=torch.bfloat16, avail mem=3.01 GB, mem usage=34.2 GB.\n"
    "RuntimeError: Not enough memory to allocate KV cache\n"
)


@pytest.mark.some(4)
@pytest.mark.parametrize("text", [ARGUMENTS + TOO_LONG, SGLANG], ids=["vllm", "sglang"])
@pytest.mark.parametrize(
    "model,gpu,tp",
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "l4", 1),
        ("Qwen/Qwen3-30B-A3B", "a100-80gb", 1),
        ("openai/gpt-oss-20b", "l4", 1),
        ("meta-llama/Llama-3.1-70B-Instruct", "h100", 2),
    ],
)
def test_what_is_suggested_is_what_the_size_command_says(
    text: str, model: str, gpu: str, tp: int, tmp_path: Path
) -> None:
    """Every value fits by `sheetgen size`, and a little less of a change does not."""
    advised = told(tmp_path, text.format(model=model, length=131072, tp=tp), gpu=gpu)
    assert advised.replayed is not None
    if advised.replayed.answer["fits"]:
        assert advised.replayed.contradiction and "the engine measured less" in advised.replayed.contradiction
        return
    asked, values = advised.replayed.inputs, advised.replayed.values
    for _, needed, there, short in advised.replayed.rows.values():
        assert there is None or short == max(0, needed - there)
    length = values["max_model_len"]
    assert size(**{**asked, "context_tokens": length, "max_model_len": length})["fits"]
    above = min(length + 2048, asked["max_model_len"])
    assert not size(**{**asked, "context_tokens": above, "max_model_len": above})["fits"]
    if share := values.get("gpu_memory_utilization"):
        assert size(**{**asked, "gpu_memory_utilization": share})["fits"]
        assert not size(**{**asked, "gpu_memory_utilization": round(share - 0.01, 2)})["fits"]
    if gpus := values.get("tensor_parallel_size"):
        assert size(**{**asked, "tensor_parallel_size": gpus})["fits"]


def test_where_nothing_is_enough_no_value_is_named(tmp_path: Path) -> None:
    advised = told(
        tmp_path, (ARGUMENTS + NO_BLOCKS).format(model="deepseek-ai/DeepSeek-V3", length=131072, tp=1), gpu="l4"
    )
    fixes = {fix.flag: fix for fix in advised.fixes}
    assert "--max-model-len" not in fixes, "no length helps where the pool is empty"
    for flag in ("--tensor-parallel-size", "--gpu-memory-utilization"):
        assert fixes[flag].value is None and "not enough by itself" in fixes[flag].reason, flag


def test_weights_of_another_model_are_told(tmp_path: Path) -> None:
    text = ARGUMENTS.format(model="meta-llama/Llama-3.1-8B-Instruct", length=131072, tp=1) + (
        "(EngineCore pid=5) INFO 11-20 [gpu_model_runner.py:3905] Model loading took <W> GiB memory and 3.2 seconds\n"
    )
    other = told(tmp_path, text.replace("<W>", "5.40") + NO_BLOCKS, gpu="l4")
    assert any("5.40 GiB of weights" in note and "14.99" in note for note in other.notes)
    same = told(tmp_path, text.replace("<W>", "14.99") + NO_BLOCKS, gpu="l4")
    assert not any("of weights a GPU" in note for note in same.notes)


def test_the_share_leaves_what_was_short(tmp_path: Path) -> None:
    """3.50 GiB asked, 0.30 free of 79.11: 3.20 GiB are 4.05 %, so five hundredths and one more."""
    text = ARGUMENTS.format(model="meta-llama/Llama-3.1-8B-Instruct", length=8192, tp=1) + (
        "(EngineCore pid=5) INFO 11-20 [kv_cache_utils.py:1087] GPU KV cache size: 365,296 tokens\n"
        "  File x/vllm/v1/worker/gpu_model_runner.py, line 1660, in capture_model\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate <T> GiB. GPU 0 has a total capacity of 79.11 "
        "GiB of which 0.30 GiB is free.\n"
    )
    for tried, share in (("3.50", 0.84), ("0.40", 0.87)):
        advised = told(tmp_path, text.replace("<T>", tried))
        assert advised.verdict.cause.label == "startup_workspace_or_cuda_graph"
        assert next(f.value for f in advised.fixes if f.flag == "--gpu-memory-utilization") == pytest.approx(share)


def test_a_share_that_serves_no_model_is_not_suggested(tmp_path: Path) -> None:
    text = (
        "ValueError: Free memory on device cuda:1 (3.1/79.11 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
        "  File x/vllm/v1/worker/gpu_worker.py\n"
    )
    assert [fix.direction for fix in told(tmp_path, text).fixes] == ["free"]


def test_what_frees_enough_comes_before_what_does_not(tmp_path: Path) -> None:
    """A profile run that was 0.37 GiB short: fewer requests free 4 GiB, a shorter step 0.06 GiB."""
    log = """\
INFO 11-21 09:12:01 [api_server.py:1896] vLLM API server version 0.13.0
INFO 11-21 09:12:01 [utils.py:233] non-default args: {'model': 'Qwen/Qwen2.5-32B-Instruct', 'max_model_len': 32768, \
'gpu_memory_utilization': 0.97}
(EngineCore_DP0 pid=77) INFO 11-21 09:13:10 [gpu_model_runner.py:2653] Model loading took 61.0374 GiB and 40.1 seconds
(EngineCore_DP0 pid=77) ERROR 11-21 09:13:30 [core.py:718] torch.OutOfMemoryError: CUDA out of memory. Tried to \
allocate 1.16 GiB. GPU 0 has a total capacity of 79.19 GiB of which 812.00 MiB is free. Process 12 has 78.39 GiB \
memory in use. Of the allocated memory 76.90 GiB is allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but \
unallocated.
"""
    flags = [fix.flag for fix in told(tmp_path, log).fixes]
    assert (flags[0], flags[-1]) == ("--max-num-seqs", "--max-num-batched-tokens")
    enough = told(tmp_path, log.replace("1.16 GiB", "0.80 GiB")).fixes
    assert {fix.flag for fix in enough[:2]} == {"--max-num-seqs", "--max-num-batched-tokens"}
