"""Words of a failure told by their parts, refusals with memory free, and advice held against what the log states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from corpus import MORE, verdict_on

from sheetgen.catalog import Catalog
from sheetgen.diagnose.cause import (
    HOST,
    NOT_AN_OOM,
    POOL,
    POSING,
    PREFILL,
    PROMPTS,
    REFUSED,
    UNDETERMINED,
    WEIGHTS,
    Verdict,
)
from sheetgen.diagnose.diagnosis import Diagnosis, diagnose, headline, text
from sheetgen.diagnose.log_facts import amounts
from sheetgen.units import GIB


def verdict(log: str, tmp_path: Path) -> Verdict:
    path = tmp_path / "x.log"
    path.write_text(log, encoding="utf-8")
    return verdict_on(path)


def told(log: str, tmp_path: Path, **options: object) -> Diagnosis:
    path = tmp_path / "x.log"
    path.write_text(log, encoding="utf-8")
    return diagnose(str(path), options, Catalog())


def flags(diagnosis: Diagnosis) -> dict[str, Any]:
    return {fix.flag: fix.value for fix in diagnosis.fixes}


TORCH_213 = (
    "[rank1]:[W828 17:15:54.544007289 CUDACachingAllocator.cpp:3933] memory allocation failed with OOM on device 1 "
    "while trying to allocate 180355072 bytes (free: 170328064, total: 16611278848).\n"
)


@pytest.mark.parametrize(
    "line",
    [
        TORCH_213,
        "[W CUDAAllocator.cpp:1] Allocation of 180355072 bytes failed on device 0: out of memory\n",
        "GPU 0: could not allocate 2.00 GiB (OOM)\n",
        "E1120 runtime.cc:7] XPU allocator: unable to allocate 17 blocks, insufficient memory\n",
    ],
)
def test_a_failed_allocation_is_told_by_its_parts(line: str, tmp_path: Path) -> None:
    """In words that no thread has shown: what was to be had, that it failed, for want of memory, on a GPU."""
    outcome = verdict(line, tmp_path)
    assert outcome.failure is not None and outcome.failure.match.signature.kind == "oom"
    weights = "  File vllm/model_executor/model_loader/utils.py, line 7, in load_weights\n"
    assert verdict(weights + line, tmp_path).cause.label == WEIGHTS


@pytest.mark.parametrize(
    "line",
    [
        "WARNING pinned host memory allocation failed with OOM, device copies are slower\n",
        "INFO the allocator retries on device 0 after an OOM, allocation did not fail\n",
        "INFO allocated 17 blocks on device 0\n",
        "INFO device 0: memory allocation took 3 s\n",
    ],
)
def test_parts_alone_are_no_failure(line: str, tmp_path: Path) -> None:
    assert verdict(line, tmp_path).failure is None


def test_amounts_without_units_are_bytes() -> None:
    parts = amounts(TORCH_213)
    assert parts["tried_bytes"] == 180_355_072 and parts["free_bytes"] == 170_328_064
    assert parts["gpu_memory_bytes"] == 16_611_278_848
    assert "in_use_bytes" not in amounts("this process has 17179869184.00 GiB memory in use"), "a negative number"


TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried:.2f} GiB. GPU 0 has a total capacity of "
    "24.00 GiB of which {free:.2f} GiB is free. Of the allocated memory 7.89 GiB is allocated by PyTorch\n"
)


@pytest.mark.parametrize(("tried", "free", "is_refused"), [(1.19, 14.71, True), (1, 2, True), (1, 1.9, False)])
def test_what_was_refused_with_memory_free_is_no_part(
    tried: float, free: float, is_refused: bool, tmp_path: Path
) -> None:
    advised = told(TORCH.format(tried=tried, free=free), tmp_path)
    cause = advised.verdict.cause
    assert cause.label == UNDETERMINED and (cause.case == REFUSED) == is_refused
    assert f"{tried:.2f} GiB were refused with {free:.2f}" in " ".join(text(advised).split())
    assert ("WSL 2" in " ".join(cause.missing)) == is_refused
    frame = '  File "vllm/v1/worker/gpu_worker.py", line 7, in capture_model\n'
    by_frame = told(frame + TORCH.format(tried=tried, free=free), tmp_path).verdict.cause
    assert (by_frame.label == UNDETERMINED) == is_refused and (not is_refused or by_frame.also)


def test_less_free_than_requested_is_not_remarked(tmp_path: Path) -> None:
    assert "were refused" not in text(told(TORCH.format(tried=2, free=1), tmp_path))


def test_a_message_on_several_lines_has_its_amounts() -> None:
    verdict = verdict_on(MORE / "m415.log")
    assert verdict.cause.case == REFUSED and verdict.amounts["free_bytes"] == pytest.approx(50.40 * GIB)


def test_out_of_memory_without_a_part_is_said_so(tmp_path: Path) -> None:
    assert "memory of the GPU ran out" in headline(told(TORCH_213, tmp_path))
    assert "if any did" in headline(told("INFO vllm\n", tmp_path))


@pytest.mark.parametrize(
    "line",
    [
        "UserWarning: Not enough free disk space to download the file. The expected file size is: 9989.87 MB.",
        "OSError: [Errno 28] No space left on device",
        'IoError(Os { code: 28, kind: StorageFull, message: "No space left on device" })',
        "OSError: [Errno 122] Disk quota exceeded: '/home/x'",
        "error: insufficient disk space for the checkpoint",
        "OSError: x/y is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
        "HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/'.",
        "RepositoryNotFoundError: 404 Client Error. Repository Not Found for url: https://huggingface.co/x/y",
        "ValueError: Tokenizer class Foo does not exist or is not currently imported.",
        "Error: pull model manifest: file does not exist",
        "llama_model_load: error loading model: unknown model architecture: 'qwen9'",
    ],
)
def test_a_full_disk_and_no_model_are_not_memory(line: str, tmp_path: Path) -> None:
    cause = verdict(line + "\n", tmp_path).cause
    assert cause.label == NOT_AN_OOM and cause.confidence >= 0.7


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: Not enough space for mamba cache, try to increase --mem-fraction-static.",
        "ValueError: Too large swap space. 64.00 GiB out of the 62.00 GiB total CPU memory is allocated.",
    ],
)
def test_space_of_memory_is_no_disk(line: str, tmp_path: Path) -> None:
    assert verdict(line + "\n", tmp_path).cause.label != NOT_AN_OOM


def test_weights_that_are_repacked_do_not_fit(tmp_path: Path) -> None:
    log = (
        "(Worker pid=61) INFO 05-07 09:11:02 [default_loader.py:430] Loading weights took 14.02 seconds\n"
        '  File "/opt/vllm/model_executor/kernels/linear/mixed_precision/marlin.py", line 99, in transform_w_q\n'
        "    x.data = ops.gptq_marlin_repack(\nRuntimeError: CUDA driver error: out of memory\n"
    )
    advised = told(log, tmp_path)
    assert advised.verdict.cause.label == WEIGHTS and PREFILL not in advised.verdict.cause.also
    assert "--quantization" not in flags(advised), "the weights have four bits"
    after = "INFO [default_loader.py:430] Loading weights took 14.02 seconds\nRuntimeError: CUDA error: out of memory\n"
    assert verdict(after, tmp_path).cause.label == WEIGHTS, "the rank had not said what the model takes"


SGLANG = (
    "[2026-08-27 09:12:44 TP0] max_total_num_tokens={pool}, chunked_prefill_size=8192, max_running_requests=2, "
    "context_len={context}, available_gpu_mem=46.90 GB\n[2026-08-27 09:12:46] The server is fired up and ready to "
    "roll!\n"
    "[2026-08-27 09:13:02] Input length (3034 tokens) exceeds the maximum allowed length ({limit} tokens).\n"
)


@pytest.mark.parametrize(
    ("pool", "context", "limit", "is_pool"),
    [
        (1741, 65_536, 1735, True),
        (349_377, 2048, 2047, False),
        (65_536, 2048, 2042, False),
        (9000, 65_536, 4096, False),
    ],
)
def test_a_pool_that_poses_as_a_limit_of_the_context(
    pool: int, context: int, limit: int, is_pool: bool, tmp_path: Path
) -> None:
    advised = told(SGLANG.format(pool=pool, context=context, limit=limit), tmp_path)
    cause = advised.verdict.cause
    assert (cause.label, cause.case) == ((POOL, POSING) if is_pool else (PREFILL, "refused"))
    assert (cause.label == POOL) == ("--context-length" not in flags(advised))
    if is_pool:
        assert "46.90 GiB of the GPU" in text(advised) and advised.short is not None
        assert (advised.short.needed, advised.short.there) == (context, pool)
        assert advised.fixes[0].flag == "--mem-fraction-static" and advised.fixes[0].direction == "raise"


@pytest.mark.parametrize(
    "line",
    [
        "PyTorch activation peak memory takes 1.42GiB; the rest of the memory reserved for KV Cache is -1.05GiB.",
        "INFO 11-20 [gpu_worker.py:642] Available KV cache memory: -2.26 GiB",
        "INFO 02-26 09:54:05 executor_base.py:111] # cuda blocks: 0, # CPU blocks: 4681",
    ],
)
def test_less_than_nothing_left_is_an_empty_pool(line: str, tmp_path: Path) -> None:
    cause = verdict(line + "\n", tmp_path).cause
    assert (cause.label, cause.case) == (POOL, "empty")
    assert verdict(line.replace("-", "").replace(": 0,", ": 900,") + "\n", tmp_path).failure is None


VLLM = (
    "(APIServer pid=1) INFO 11-20 10:00:00 [api_server.py:1896] vLLM API server version {version}\n"
    "(APIServer pid=1) INFO 11-20 10:00:00 [utils.py:253] non-default args: {{'model': '{model}'{more}}}\n"
)
NO_ROOM = (
    "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (10.00 GiB).\n"
)
WEIGHTS_FRAME = '  File "/opt/vllm/model_executor/model_loader/utils.py", line 7, in load_weights\n'
GRAPHS_FRAME = '  File "/opt/vllm/v1/worker/gpu_worker.py", line 7, in capture_model\n'
MADE = "(EngineCore pid=5) INFO 11-20 10:00:09 [gpu_worker.py:642] Available KV cache memory: 2.97 GiB\n"
ENCODER_FRAME = '  File "/opt/vllm/model_executor/models/qwen2_vl_vision.py", line 7, in forward\n'


@pytest.mark.parametrize(
    ("more", "line", "is_advised"),
    [
        ("", "", True),
        (", 'kv_cache_dtype': 'fp8_e4m3'", "", False),
        (", 'kv_cache_dtype': 'nvfp4'", "", False),
        ("", "INFO [cache.py:1] Using fp8 data type to store kv cache. It reduces the memory footprint.\n", False),
        (", 'kv_cache_dtype': 'bfloat16'", "", True),
    ],
)
def test_no_eight_bits_where_they_are_on(more: str, line: str, is_advised: bool, tmp_path: Path) -> None:
    advised = told(VLLM.format(version="0.31.0", model="x/y", more=more) + line + NO_ROOM, tmp_path)
    assert ("--kv-cache-dtype" in flags(advised)) == is_advised


@pytest.mark.parametrize(
    ("model", "more", "is_advised"),
    [("x/y", "", True), ("x/y-FP8", "", False), ("x/y-AWQ", "", False), ("x/y", ", 'quantization': 'fp8'", False)],
)
def test_no_fp8_weights_where_they_are_narrow(model: str, more: str, is_advised: bool, tmp_path: Path) -> None:
    log = VLLM.format(version="0.31.0", model=model, more=more) + WEIGHTS_FRAME + TORCH.format(tried=2, free=1)
    advised = told(log, tmp_path)
    assert advised.verdict.cause.label == WEIGHTS and ("--quantization" in flags(advised)) == is_advised


def test_what_is_set_already_is_not_advised(tmp_path: Path) -> None:
    def of(more: str, version: str = "0.31.0") -> dict[str, Any]:
        head = VLLM.format(version=version, model="x/y", more=more)
        return flags(told(head + MADE + GRAPHS_FRAME + TORCH.format(tried=1, free=0.5), tmp_path))

    assert {"--enforce-eager", "--cudagraph-capture-sizes", "--gpu-memory-utilization"} <= of("").keys()
    eager = of(", 'enforce_eager': True")
    assert not {"--enforce-eager", "--cudagraph-capture-sizes"} & eager.keys()
    assert "--gpu-memory-utilization" not in of(", 'kv_cache_memory_bytes': 3000000000"), "it does not count"
    assert of("")["--kv-cache-memory-bytes"] == f"{int((2.97 - 0.5 - 0.3) * 1024)}M"
    assert "--kv-cache-memory-bytes" in of("", "0.10.2") and "--kv-cache-memory-bytes" not in of("", "0.10.1")


@pytest.mark.parametrize(("version", "has"), [("0.10.0", False), ("0.10.1", True), ("0.33.0", True)])
def test_the_profile_run_of_images_can_be_skipped(version: str, has: bool, tmp_path: Path) -> None:
    def of(more: str) -> dict[str, Any]:
        head = VLLM.format(version=version, model="x/y", more=more)
        return flags(told(head + ENCODER_FRAME + TORCH.format(tried=2, free=1), tmp_path))

    assert ("--skip-mm-profiling" in of("")) == has
    assert "--skip-mm-profiling" not in of(", 'skip_mm_profiling': True")


@pytest.mark.parametrize("name", ["m407.log", "m408.log"])
def test_copies_of_prompts_are_the_first_to_go(name: str) -> None:
    diagnosed = diagnose(str(MORE / name), {}, Catalog())
    assert diagnosed.verdict.cause.label == HOST and diagnosed.verdict.cause.case == PROMPTS
    assert (diagnosed.fixes[0].flag, diagnosed.fixes[0].value) == ("--cache-ram", 0)


def test_a_server_without_copies_of_prompts_keeps_its_order(tmp_path: Path) -> None:
    log = "load_tensors: x\nOut of memory: Killed process 92787 (llama-server)\n"
    assert told(log, tmp_path).fixes[0].flag != "--cache-ram"
