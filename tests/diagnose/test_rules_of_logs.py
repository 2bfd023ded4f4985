"""Messages of public threads that are not among the labelled logs, and the rules' narrow places."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from corpus import signatures, verdict_on

from sheetgen.catalog.signatures import Signature
from sheetgen.diagnose.cause import filled_by
from sheetgen.diagnose.log_facts import Sample, amounts
from sheetgen.units import GIB, MIB

TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.47 GiB. GPU 0 has a total capacity of 79.11 "
    "GiB of "
    "which 1.25 GiB is free. Including non-PyTorch memory, this process has {own} memory in use. Of the allocated "
    "memory "
    "70.03 GiB is allocated by PyTorch, and 22.16 MiB is reserved by PyTorch but unallocated.\n"
)
OOM = TORCH.format(own="77.80 GiB")
TRACE = "Traceback (most recent call last):\n"


def frame(path: str, function: str) -> str:
    return f'  File "/opt/venv/lib/python3.12/site-packages/{path}", line 7, in {function}\n'


ADMITTED = "INFO [engine.py:275] Added request cmpl-1.\n"
ARGUMENTS = "INFO [utils.py:253] non-default args: {'model': 'x/y', 'enable_lora': True}\n"
UNSAID = (
    'RuntimeError: torch_call_dispatcher( "aten::empty", "memory_format", stack.data(), TORCH_ABI_VERSION) API call '
    "failed at /usr/include/torch/csrc/stable/ops.h, line 631\n"
)
CASES = {
    "weights, by frame": (
        TRACE
        + frame("vllm/v1/worker/gpu_model_runner.py", "load_model")
        + frame("vllm/model_executor/layers/linear.py", "create_weights")
        + OOM,
        "startup_weights_do_not_fit",
    ),
    "weights, in vLLM's words": (
        "ERROR [gpu_model_runner.py:4818] Failed to load model - not enough GPU memory. Try lowering "
        "--gpu-memory-utilization to free memory for weights\n" + OOM,
        "startup_weights_do_not_fit",
    ),
    "weights, SGLang between begin and end": (
        "[2026-01-02 12:00:00 TP0] Load weight begin. avail mem=78.58 GB\n" + OOM,
        "startup_weights_do_not_fit",
    ),
    "graphs": (
        "(Worker_TP0 pid=1) INFO Available KV cache memory: 30.00 GiB\n(Worker_TP0 pid=1) "
        + TRACE
        + "(Worker_TP0 pid=1)"
        + frame("vllm/v1/worker/gpu_model_runner.py", "capture_model")
        + "(Worker_TP0 pid=1) "
        + OOM,
        "startup_workspace_or_cuda_graph",
    ),
    "graphs, by an asynchronous error": (
        TRACE + frame("torch/cuda/graphs.py", "capture_end") + "RuntimeError: CUDA error: out of memory\n",
        "startup_workspace_or_cuda_graph",
    ),
    "profile of images": (
        "INFO [gpu_model_runner.py:1] Encoder cache will be initialized with a budget of 16384 tokens, and "
        "profiled with 1 "
        "image items of the maximum feature size.\n"
        + TRACE
        + frame("vllm/v1/worker/gpu_model_runner.py", "profile_run")
        + OOM,
        "multimodal_encoder_profile",
    ),
    "encoder frame": (
        TRACE
        + frame("vllm/worker/worker.py", "determine_num_available_blocks")
        + frame("vllm/model_executor/models/clip.py", "forward")
        + OOM,
        "multimodal_encoder_profile",
    ),
    "sampler's sort": (
        TRACE
        + frame("vllm/v1/worker/gpu_worker.py", "compile_or_warm_up_model")
        + frame("vllm/v1/sample/ops/topk_topp_sampler.py", "apply_top_k_top_p")
        + TORCH.format(own="0 bytes"),
        "sampler_logits_peak",
    ),
    "prefill while serving": (
        ADMITTED + TRACE + frame("vllm/v1/worker/gpu_model_runner.py", "execute_model") + OOM,
        "prefill_long_prompt",
    ),
    "adapter while serving": (ARGUMENTS + ADMITTED + OOM, "lora_draft_model"),
    "draft in SGLang": (
        TRACE + frame("sglang/srt/speculative/eagle_worker.py", "verify") + "RuntimeError: Prefill out of memory. "
        "Try to "
        "lower your batch size.\nTry to allocate 90 tokens.\n",
        "lora_draft_model",
    ),
    "component of TensorRT-LLM": (
        "[TRT-LLM] [RANK 1] [E] Failed to initialize executor on rank 1: Executor creation failed due to "
        "insufficient GPU "
        "memory.\n\nThe following component could not be created: Additional executor resources\n",
        "startup_workspace_or_cuda_graph",
    ),
    "KV cache of TensorRT-LLM": (
        "RuntimeError: Executor creation failed due to insufficient GPU memory.\n\nThe following component could "
        "not be "
        "created: KV cache\n[TRT-LLM] [E] x\n",
        "startup_kv_pool_too_small",
    ),
    "prefill in TGI": (
        "ERROR batch{batch_size=1}:prefill:prefill{id=1 size=1}: text_generation_client: router/client/src/lib.rs:33: "
        "Server error: CUDA out of memory. Tried to allocate 222.00 MiB.\n",
        "prefill_long_prompt",
    ),
    "graph capture that failed otherwise": (
        "[2026-01-02 12:00:00 TP0] x\nException: Capture cuda graph failed: Ninja build failed.\nPossible solutions:\n"
        "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n",
        "not_an_oom",
    ),
    "swap space that is pinned": (
        TRACE + frame("vllm/worker/cache_engine.py", "allocate_cpu_cache") + "RuntimeError: CUDA error: out of "
        "memory\n",
        "host_ram_oom",
    ),
    "SGLang's host cache": (
        "ValueError: Not enough host memory available. Requesting 98.30 GB but only have 60.10 GB free. Please "
        "reduce the "
        "size of the hierarchical cache.\n",
        "host_ram_oom",
    ),
    "unbalanced GPUs": (
        "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
        "pre_model_load_memory=16.28\n",
        "gpu_shared_by_other_process",
    ),
    "an operator of the stable ABI, in the repacking of weights": (
        TRACE + frame("vllm/model_executor/model_loader/utils.py", "process_weights_after_loading") + UNSAID,
        "startup_weights_do_not_fit",
    ),
    "an operator of the stable ABI, while it serves": (
        "INFO vllm\nINFO:     Application startup complete.\n"
        + TRACE
        + frame("vllm/v1/worker/gpu_model_runner.py", "execute_model")
        + frame("vllm/x.py", "forward")
        + UNSAID,
        "prefill_long_prompt",
    ),
    "an operator of the stable ABI, after a broken compile cache": (
        "INFO vllm\nINFO:     Application startup complete.\n"
        "RuntimeError: ('Cubin file saved by TritonBundler not found at %s', '/root/.cache/x.cubin')\n"
        + TRACE
        + frame("vllm/v1/worker/gpu_model_runner.py", "execute_model")
        + UNSAID,
        "not_an_oom",
    ),
    "HIP's allocator": (
        TRACE
        + frame("vllm/v1/worker/gpu_worker.py", "load_model")
        + "RuntimeError: hipMalloc failed with error code 2: out of memory\n",
        "startup_weights_do_not_fit",
    ),
    "hipBLAS": (
        TRACE
        + frame("vllm/v1/worker/gpu_worker.py", "load_model")
        + "RuntimeError: CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`\n",
        "startup_weights_do_not_fit",
    ),
    "RCCL": (
        TRACE
        + frame("vllm/v1/worker/gpu_worker.py", "load_model")
        + "node:1:1 [0] /src/init.cc:1 NCCL WARN HIP failure: 'out of memory'\ntorch.distributed.DistBackendError: "
        "NCCL error in: /ProcessGroupNCCL.cpp:94, unhandled cuda error\n",
        "startup_weights_do_not_fit",
    ),
    "a fault of a kernel on HIP": (
        "INFO vllm\nINFO:     Application startup complete.\nMemory access fault by GPU node-1 (Agent handle: 0x55) on "
        "address 0x7f. Reason: Page not present or supervisor privilege.\n",
        "not_an_oom",
    ),
    "systemd": (
        "systemd[1]: vllm.service: A process of this unit has been killed by the OOM killer.\n"
        "systemd[1]: vllm.service: Main process exited, code=killed, status=9/KILL\n",
        "host_ram_oom",
    ),
    "an eviction": (
        "Warning  Evicted  kubelet  The node was low on resource: memory. Container vllm was using 61Gi\n",
        "host_ram_oom",
    ),
    "a list of containers": (
        "INFO vllm\n3f2a  vllm/vllm-openai:v0.33.0  Exited (137) 2 minutes ago  vllm-1\n",
        "host_ram_oom",
    ),
    "kubelet": ("    Reason:       OOMKilled\n    Exit Code:    137\n", "host_ram_oom"),
    "advice of a good start": (
        "INFO [model_runner.py:1028] CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of "
        "memory, consider decreasing `gpu_memory_utilization`.\nINFO Graph capturing finished in 20 secs, took "
        "0.5 GiB\n"
        "INFO:     Application startup complete.\n",
        "healthy",
    ),
    "a module that was missed and not needed": (
        "ImportError: No module named 'flash_attn'\nINFO vllm/x\nINFO:     Application startup complete.\n",
        "healthy",
    ),
    "a plain error at start": (
        "ERROR [core.py:708] EngineCore failed to start.\n"
        + TRACE
        + frame("vllm/config/model.py", "x")
        + "KeyError: 'qwen9'\n",
        "not_an_oom",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_messages_of_other_threads(name: str, tmp_path: Path) -> None:
    text, label = CASES[name]
    path = tmp_path / "x.log"
    path.write_text(text, encoding="utf-8")
    assert verdict_on(path).cause.label == label


def test_a_line_alone_is_not_enough(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(OOM, encoding="utf-8")
    cause = verdict_on(path).cause
    assert cause.label == "undetermined" and len(cause.missing) == 2


def test_amounts_of_all_wordings() -> None:
    new = amounts(OOM)
    assert new["tried_bytes"] == 1.47 * GIB and new["reserved_unallocated_bytes"] == 22.16 * MIB
    assert new["other_bytes"] == pytest.approx(0.06 * GIB)
    assert "other_bytes" not in amounts(TORCH.format(own="0 bytes"))
    old = amounts(
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.65 GiB total capacity; 22.00 GiB already "
        "allocated; "
        "5.00 MiB free; 22.50 GiB reserved in total by PyTorch)"
    )
    assert old["free_bytes"] == 5 * MIB and old["reserved_unallocated_bytes"] == 0.5 * GIB
    two = amounts(
        "Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 0.50 GiB is free. Process 1 "
        "has 50.00 "
        "GiB memory in use. Process 2 has 29.00 GiB memory in use. Of the allocated memory 28.00 GiB is allocated "
        "by PyTorch"
    )
    assert two["other_bytes"] == 50 * GIB and two["n_processes"] == 2


def sample(running: float, waiting: float, used: float, prompt: float = 0.0, tokens: float | None = None) -> Sample:
    return Sample(1, running, waiting, used, prompt, 200.0, tokens)


def test_slope() -> None:
    """Length where few go on and nobody comes; number where they wait, come or become more."""
    assert filled_by([sample(8, 0, 0.91), sample(8, 0, 0.96)]) == "length"
    assert filled_by([sample(8, 3, 0.91), sample(8, 5, 0.96)]) == "number"
    assert filled_by([sample(4, 0, 0.5, 900), sample(30, 0, 0.96, 900)]) == "number"
    assert filled_by([sample(1, 0, 0.8), sample(1, 0, 0.99), sample(0, 1, 0.3)]) == "length"
    assert filled_by([sample(4, 3, 1.0, tokens=2_642_688)]) == "length"
    assert filled_by([]) is None


def narrow(rules: tuple[Signature, ...]) -> list[str]:
    """Rules whose word has one case of a letter of which their pattern takes both, and nothing that has the other."""
    matched = []
    for rule in rules:
        pattern = re.sub(r"\[ [^\]]*\]\??", " ", " ".join(rule.match))
        cases = [re.sub(r"\[([A-Z])([a-z])\]", lambda m, i=i: str(m[i]), pattern) for i in (1, 2)]  # type: ignore[misc]
        for (case, other), word in itertools.product((cases, cases[::-1]), rule.word):
            if word in case and word not in other:
                spelt = other[case.index(word) :][: len(word)]
                alike = [r for r in rules if (r.kind, r.says) == (rule.kind, rule.says)]
                same = [w for r in alike for w in r.word if w in spelt]
                matched += [] if same else [rule.id]
    return matched


def test_no_word_is_narrower_than_its_pattern() -> None:
    """The word is looked for first, so that its case decides what the pattern was written to take."""
    assert narrow(signatures()) == []
    bind = next(s for s in signatures() if s.word == ("ddress already in use",))
    assert narrow((bind.model_copy(update={"word": ("Address already",), "match": ("[Aa]ddress already in use",)}),))


@pytest.mark.parametrize(
    "around",
    [
        'INFO vllm\n{"OOMKilled": false, "ExitCode": 137}\n',
        "INFO vllm\nNormal Killing kubelet Container vllm failed liveness probe, will be restarted\nExit Code: 137\n",
        "INFO vllm\nINFO:     Application startup complete.\nINFO:     Shutting down\nvllm-1 exited with code 137\n",
    ],
)
def test_not_every_kill_is_for_memory(around: str, tmp_path: Path) -> None:
    """Code 137 alone is the host's memory; with another who may have sent the signal it is not claimed."""
    path = tmp_path / "x.log"
    path.write_text(around, encoding="utf-8")
    cause = verdict_on(path).cause
    assert cause.confidence < 0.5 and "not_an_oom" in cause.also and "dmesg" in cause.missing[0]
    path.write_text("INFO vllm\nvllm-1 exited with code 137\n", encoding="utf-8")
    assert verdict_on(path).cause.label == "host_ram_oom" and verdict_on(path).cause.confidence > 0.6


def test_an_allocation_without_a_word_of_memory_is_less_sure(tmp_path: Path) -> None:
    path, loading = tmp_path / "x.log", frame("vllm/x.py", "process_weights_after_loading")
    words = {}
    for name, lines in {"said": OOM, "unsaid": UNSAID}.items():
        path.write_text(TRACE + loading + lines, encoding="utf-8")
        words[name] = verdict_on(path).cause
    assert words["unsaid"].label == words["said"].label and words["unsaid"].confidence < words["said"].confidence
    assert "not_an_oom" in words["unsaid"].also and words["unsaid"].missing
    path.write_text(
        "WARNING Using 'pin_memory=False' as WSL is detected.\n" + TRACE + loading + UNSAID, encoding="utf-8"
    )
    assert verdict_on(path).cause.confidence < 0.5
