"""Excerpts as people paste them: lines broken in two, a few frames, statistics without an error, and their advice."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import signatures, verdict_on

from sheetgen.catalog import Catalog, guidance
from sheetgen.diagnose.cause import Verdict, soon_full
from sheetgen.diagnose.diagnosis import engine_of
from sheetgen.diagnose.fixes import Fix, fixes_for
from sheetgen.diagnose.log_facts import Sample, amounts
from sheetgen.diagnose.reading import MOST, read, rejoined

FILE = Catalog().file(guidance.FingerprintFile)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 23.56 GiB "
    "of which 400.00 MiB is free. Including non-PyTorch memory, this process has 23.10 GiB memory in use. Of the "
    "allocated memory 22.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.\n"
)
TOO_SMALL = (
    "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV "
    "cache (7344). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
)


def verdict(text: str, folder: Path) -> Verdict:
    path = folder / "short.log"
    path.write_text(text, encoding="utf-8")
    return verdict_on(path)


def advice(text: str, folder: Path) -> dict[str, Fix]:
    path = folder / "short.log"
    path.write_text(text, encoding="utf-8")
    lines_read = read(str(path), signatures(), Catalog())
    shares = guidance.assumptions(Catalog())
    fixes = fixes_for(verdict_on(path), engine_of(lines_read), FILE, shares, lines_read.startup, None)
    return {fix.flag: fix for fix in fixes}


@pytest.mark.parametrize("width", [40, 61, 72, 80, 97, 120])
@pytest.mark.parametrize("quoted", ["", "> "])
def test_a_message_broken_by_a_width_is_found(width: int, quoted: str, tmp_path: Path) -> None:
    broken = "\n".join(quoted + TOO_SMALL[i : i + width] for i in range(0, len(TOO_SMALL), width))
    outcome = verdict(f"INFO 01-02 12:00:00 gpu_executor.py:90] # GPU blocks: 459\n{broken}\n", tmp_path)
    assert outcome.cause.label == "startup_kv_pool_too_small"
    assert outcome.evidence[-1].line_number >= 2


def test_lines_that_begin_as_lines_are_not_joined() -> None:
    text = (
        "INFO 01-02 12:00:00 model_runner.py:1] Loading model weights took 14 GB and then,\n"
        "ERROR 01-02 12:00:01 engine.py:2] something else\n"
        "RuntimeError: and an error of its own\n"
        '  File "x.py", line 1, in f\n'
        "2026-01-02 12:00:00 a line with a date\n"
    )
    assert list(rejoined(text.encode())) == []
    joined = list(rejoined(b"a line that is long enough to be a cut one of\nmany words\nend\n"))
    assert [j.split(b"\n")[0][-14:] for j in joined] == [b" of many words", b"e ofmany words"]
    assert all(j.count(b"\n") == 2 for j in joined)


def test_a_long_log_is_read_once(tmp_path: Path) -> None:
    """The second look is for what people paste: a broken message in a long log is not searched for."""
    filler = 'INFO:     10.0.0.1:1 - "GET /health HTTP/1.1" 200 OK\n'
    broken = TOO_SMALL[:90] + "\n" + TOO_SMALL[90:] + "\n"
    assert verdict(broken, tmp_path).cause.label == "startup_kv_pool_too_small"
    assert verdict(filler * (MOST // len(filler) + 2) + broken, tmp_path).cause.label != "not_an_oom"


def samples(*usages: float) -> list[Sample]:
    return [Sample(i, 2.0, 0.0, u) for i, u in enumerate(usages)]


@pytest.mark.parametrize(
    "usages,soon",
    [
        ((0.7, 0.8, 0.93), True),
        ((0.7, 0.8, 0.85), False),
        ((0.91, 0.915, 0.92), False),
        ((0.8, 0.7, 0.93), False),
        ((0.9, 0.95), False),
        ((), False),
    ],
)
def test_a_pool_that_is_soon_full(usages: tuple[float, ...], soon: bool) -> None:
    assert soon_full(samples(*usages)) is soon


def test_contexts_of_one_job_are_no_other_program() -> None:
    line = (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.00 GiB is "
        "free. {others} Including non-PyTorch memory, this process has 74.00 GiB memory in use."
    )
    ranks = " ".join(f"Process {n} has 500.00 MiB memory in use." for n in range(1, 8))
    assert "other_bytes" not in amounts(line.format(others=ranks))
    assert "other_bytes" in amounts(line.format(others="Process 7 has 4.00 GiB memory in use."))
    big = " ".join(f"Process {n} has 20.00 GiB memory in use." for n in range(1, 4))
    assert "other_bytes" in amounts(line.format(others=big))


def test_frames_tell_serving_from_starting(tmp_path: Path) -> None:
    trace = 'Traceback (most recent call last):\n  File "/opt/vllm/v1/engine/core.py", line 7, in {}\n'
    serving = verdict(trace.format("run_busy_loop") + OOM, tmp_path).cause
    starting = verdict(trace.format("_initialize_kv_caches") + OOM, tmp_path).cause
    assert serving.label == "prefill_long_prompt"
    assert starting.label != "prefill_long_prompt"


@pytest.mark.parametrize(
    "error,label",
    [("KeyError: 'model.layers.0.weight'", "not_an_oom"), ("RuntimeError: no block left in the cache", "undetermined")],
)
def test_an_unknown_error_of_capacity_is_left_open(error: str, label: str, tmp_path: Path) -> None:
    text = (
        "INFO 01-02 12:00:00 api_server.py:1] vLLM API server version 0.6.3\n"
        'Traceback (most recent call last):\n  File "/opt/x/y.py", line 7, in f\n' + error + "\n"
    )
    assert verdict(text, tmp_path).cause.label == label


def test_the_cache_in_the_words_of_the_engine(tmp_path: Path) -> None:
    """SGLang and TGI refuse the word that vLLM takes."""
    full = (
        "[2026-01-02 12:00:00 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 5, #new_token_ratio: 0.5\n"
    )
    assert advice(full, tmp_path)["--kv-cache-dtype"].value == "fp8_e4m3"
    for fingerprint in FILE.fingerprints:
        for fix in fingerprint.fixes:
            if fix.flags.get("tgi") == "--kv-cache-dtype" and fix.direction == "set":
                assert fix.values["tgi"] == "fp8_e4m3fn"


def test_a_prompt_over_the_context_is_no_matter_of_the_step(tmp_path: Path) -> None:
    """SGLang's step is the larger of --max-prefill-tokens and the context."""
    refused = "ValueError: The input (61709 tokens) is longer than the model\\'s context length (40960 tokens).\n"
    assert {flag: fix.value for flag, fix in advice(refused, tmp_path).items()} == {"--context-length": 62464}


def test_a_default_is_no_advice(tmp_path: Path) -> None:
    """2,048 tokens are the default of a server on a card of 24 GB: the step named is below it, and needs no switch."""
    died = (
        f"(EngineCore pid=100) ERROR 05-01 14:39:06 [core.py:1131] {OOM}"
        "(APIServer pid=1) ERROR 05-01 14:39:06 [async_llm.py:699] AsyncLLM output_handler failed.\n"
    )
    told_advice = advice(died, tmp_path)
    assert told_advice["--max-num-batched-tokens"].value == 512
    assert "chunked" not in told_advice["--max-num-batched-tokens"].reason.replace("chunked prefill spreads", "")


def test_a_built_engine_has_no_graphs_to_unset(tmp_path: Path) -> None:
    error = "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, mCudaStream->get()): out of memory "
    place = "(/app/tensorrt_llm/cpp/tensorrt_llm/runtime/tllmBuffers.h:112)\n"
    built = advice(f"unexpected error when creating modelInstanceState: {error}{place}", tmp_path)
    assert "free_gpu_memory_fraction" in built
    assert "cuda_graph_config" not in built
    assert "cuda_graph_config" in advice(error + place, tmp_path)


def test_what_a_user_of_ollama_can_turn(tmp_path: Path) -> None:
    error = "Error: model requires more system memory (164.8 GiB) than is available (13.4 GiB)\n"
    assert "--no-mmap" not in advice(error, tmp_path)
    assert "num_ctx" in advice(error, tmp_path)


V1 = "INFO 05-20 09:00:01 [api_server.py:1289] vLLM API server version 0.9.1\n"
SITE = '  File "/opt/venv/lib/python3.12/site-packages/vllm/'
FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {} GiB. GPU 0 has a total capacity of 23.57 GiB of which 0.40 GiB is free.\n"  # noqa: E501
BEFORE_THE_POOL = {
    "profile": V1
    + "INFO [gpu_model_runner.py:1549] Model loading took 21.2041 GiB and 12.662010 seconds\n"
    + SITE
    + 'v1/worker/gpu_model_runner.py", line 2062, in profile_run\n'
    + FULL.format(1.75),
    "images": V1
    + SITE
    + 'v1/worker/gpu_model_runner.py", line 2062, in profile_run\n'
    + SITE
    + 'model_executor/models/qwen2_5_vl.py", line 1011, in get_multimodal_embeddings\n'
    + FULL.format("16.00"),
    "adapters": V1 + SITE + 'lora/layers.py", line 712, in create_lora_weights\n' + FULL.format(0.88),
    "warm-up of TGI": "2025-02-11T09:14:00.1Z  INFO text_generation_router_v3: lib.rs:125: Warming up model\n"
    'Error: Backend(Warmup(Generation("Not enough memory to handle 32768 prefill tokens. You need to decrease '
    '`--max-batch-prefill-tokens`")))\n',
}


@pytest.mark.parametrize("name", BEFORE_THE_POOL)
def test_what_is_not_made_yet_cannot_give_way(name: str, tmp_path: Path) -> None:
    told_advice = advice(BEFORE_THE_POOL[name], tmp_path)
    assert told_advice
    for flag in told_advice:
        assert not any(word in flag for word in ("memory-utilization", "WIGGLE", "memory-fraction", "graph", "eager"))
    assert ("--tensor-parallel-size" in told_advice) is (name == "profile")


def test_a_share_gives_way_by_a_tenth_at_most(tmp_path: Path) -> None:
    served = V1 + "INFO:     Application startup complete.\n"
    assert advice(served + FULL.format(1.75), tmp_path)["--gpu-memory-utilization"].value == "by 0.07"
    assert "--gpu-memory-utilization" not in advice(served + FULL.format("16.00"), tmp_path)


def test_ranks_on_one_gpu_are_placed_first(tmp_path: Path) -> None:
    where = "[RANK 7] [E] Error executing load_single_module with args (): "
    others = " ".join(f"Process {n} has {n}.00 GiB memory in use." for n in range(1, 5))
    text = "[01/02/2025-12:00:00] [TRT-LLM] " + where + FULL.format(0.5).rstrip() + " " + others + "\n"
    cause = verdict(text, tmp_path).cause
    assert cause.label == "startup_weights_do_not_fit" and cause.confidence < 0.8
    assert cause.also[0] == "gpu_shared_by_other_process"
    assert [flag[:16] for flag in advice(text, tmp_path)] == ["one rank per GPU"]


def test_requests_by_the_fullest_moment(tmp_path: Path) -> None:
    line = (
        "INFO [loggers.py:118] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 "
        "tokens/s, Running: {} reqs, Waiting: {} reqs, GPU KV cache usage: {}%, Prefix cache hit rate: 0.0%\n"
    )
    up = V1 + "INFO:     Application startup complete.\n"
    eased = up + line.format(256, 40, 99.2) + line.format(20, 0, 9.2) + line.format(0, 0, 0.0)
    assert advice(eased, tmp_path)["--max-num-seqs"].value == 245
    preempted = "WARNING scheduler.py:1481] Sequence group c-1 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. total_num_cumulative_preemption=1\n"  # noqa: E501
    assert advice(up + line.format(60, 0, 88.0) + preempted, tmp_path)["--max-num-seqs"].value == 54


def test_a_limit_that_the_message_names(tmp_path: Path) -> None:
    refused = (
        "ERROR [serving_chat.py:250] ValueError: This model's maximum context length is 8192 tokens. However, you "
        "requested 9000 tokens in the messages, Please reduce the length of the messages.\n"
    )
    told_advice = advice(V1 + "INFO:     Application startup complete.\n" + refused, tmp_path)
    assert {flag: fix.value for flag, fix in told_advice.items()} == {"--max-model-len": 9216}


def test_llama_cpp_prints_no_traceback(tmp_path: Path) -> None:
    line = "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 1139.46 MiB on device 0: cudaMalloc failed: out of memory\n"  # noqa: E501
    assert not any("traceback" in missing for missing in verdict(line, tmp_path).cause.missing)


@pytest.mark.parametrize(("usage", "also"), [("99.2", True), ("12.0", False)])
def test_a_full_pool_is_named_beside_a_peak_of_serving(usage: str, also: bool, tmp_path: Path) -> None:
    stats = (
        "INFO [loggers.py:127] Engine 000: Avg prompt throughput: 1021.3 tokens/s, Avg generation throughput: 812.0 "
        f"tokens/s, Running: 13 reqs, Waiting: 87 reqs, GPU KV cache usage: {usage}%, Prefix cache hit rate: 0.0%\n"
    )
    cause = verdict("INFO vLLM API server version 0.19.0\n" + stats + OOM, tmp_path).cause
    assert cause.label == "prefill_long_prompt" and ("concurrency_spike" in cause.also) is also
    assert (cause.confidence < 0.6) is also
    if also:  # without an error outside of the pool it is the pool
        assert verdict("INFO vLLM API server version 0.19.0\n" + stats, tmp_path).cause.label == "concurrency_spike"
