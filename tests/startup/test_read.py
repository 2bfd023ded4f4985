"""Real start-up logs of the three engines, version by version: what is read from each, and from which line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheetgen.catalog import Catalog
from sheetgen.startup.log_lines import log_lines
from sheetgen.startup.printed_arguments import command_flags, pairs
from sheetgen.startup.startup_log import StartupLog, measure, read_lines, read_log, startup_words

LOGS = Path(__file__).parent / "logs"
CATALOG = Catalog()
DEVICES, WORDS = CATALOG.devices, startup_words(CATALOG)
GIB = 2**30
# engine, version; figures in GiB, tokens, blocks, times; arguments in the engine's words
EXPECTED: dict[str, tuple[str, str | None, dict[str, float], dict[str, object]]] = {
    "vllm-0.6.4": (
        "vllm",
        "0.6.4.post1",
        {
            "gpu_memory": 139.80,
            "weights": 2.0512,
            "activation": 2.38 - 2.0512,
            "non_torch": 0.73,
            "cuda_graph": 0.16,
            "kv_pool": 122.71,
            "n_gpu_blocks": 365549,
            "kv_tokens": 365549 * 16,
            "max_concurrency": 2855.85,
        },
        {"max_seq_len": 2048, "gpu_memory_utilization": 0.9, "multi_step_stream_outputs": True},
    ),
    "vllm-0.7.2": (
        "vllm",
        "0.7.2",
        {
            "gpu_memory": 14.56,
            "weights": 2.89,
            "activation": 2.02,
            "non_torch": 0.01,
            "cuda_graph": 0.17,
            "kv_pool": 2.36,
            "n_gpu_blocks": 5519,
            "kv_tokens": 88304,
            "max_concurrency": 2.69,
        },
        {"gpu_memory_utilization": 0.5, "dtype": "torch.float16"},
    ),
    "vllm-0.8.3": (
        "vllm",
        "0.8.3",
        {"weights": 3.3465, "cuda_graph": 1.47, "kv_tokens": 426448, "max_concurrency": 3.25},
        {"max_model_len": 131072, "max_num_batched_tokens": 2048, "gpu_memory_utilization": 0.9},
    ),
    "vllm-0.10.2": (
        "vllm",
        "0.10.2",
        {
            "gpu_memory": 139.81,
            "weights": 74.28,
            "activation": 5.58,
            "non_torch": 1.38,
            "cuda_graph": 2.37,
            "kv_pool": 47878721024 / GIB,
            "kv_tokens": 973760,
            "max_concurrency": 14.77,
        },
        {"tensor_parallel_size": 2, "gpu_memory_utilization": 0.9, "max_num_batched_tokens": 8192},
    ),
    "vllm-0.22.0": (
        "vllm",
        "0.22.0",
        {"weights": 14.29, "cuda_graph": 0.31, "kv_pool": 26.32, "kv_tokens": 492912, "max_concurrency": 120.34},
        {"gpu_memory_utilization": 0.95, "max_model_len": 4096, "data_parallel_size": 1},
    ),
    "vllm-0.27-tp4": (
        "vllm",
        None,
        {
            "gpu_memory": 95.01,
            "weights": 55.19,
            "consumed": 56.89,
            "activation": 0.76,
            "non_torch": 56.89 - 55.19,
            "cuda_graph": 0.32,
            "kv_pool": 27.85,
            "kv_tokens": 621392,
            "max_concurrency": 18.96,
        },
        {"model": "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "tensor_parallel_size": 4, "max_num_seqs": 32},
    ),
    "vllm-0.31.0": (
        "vllm",
        "0.31.0",
        {
            "gpu_memory": 79.25,
            "weights": 15.0,
            "consumed": 15.26,
            "activation": 1.44,
            "non_torch": 0.26,
            "cuda_graph": 0.23,
            "kv_pool": 56.21,
            "kv_tokens": 460496,
            "max_concurrency": 3.51,
        },
        {"model": "meta-llama/Llama-3.1-8B-Instruct", "max_model_len": 131072, "gpu_memory_utilization": 0.92},
    ),
    "sglang-0.4.3": (
        "sglang",
        None,
        {"weights": 15.54, "cuda_graph": 0.93, "kv_pool": 2.84, "kv_tokens": 46611},
        {"tp_size": 4, "mem_fraction_static": 0.85, "context_length": 131072, "max_running_requests": 2049},
    ),
    "sglang-0.5": (
        "sglang",
        None,
        {"weights": 15.28, "cuda_graph": 0.60, "kv_pool": 136.36, "kv_tokens": 992896},
        {"model_path": "Qwen/Qwen3-8B", "kv_cache_dtype": "bfloat16"},
    ),
    "tensorrt-llm-0.12": (
        "tensorrt-llm",
        "0.12.0.dev2024073000",
        {
            "gpu_memory": 79.10,
            "weights": 6214 / 1024,
            "activation": 928.77 / 1024,
            "kv_pool": 62.99,
            "n_gpu_blocks": 4607,
            "kv_tokens": 294848,
        },
        {"model": "meta-llama/Llama-2-7b-hf", "max_batch_size": 4096, "max_seq_len": 4098, "tokens_per_block": 64},
    ),
    "tensorrt-llm-1.1": (
        "tensorrt-llm",
        "1.1.0rc3",
        {
            "gpu_memory": 119.70,
            "weights": 63.52,
            "activation": 0.85,
            "non_torch": 49.28,
            "kv_pool": 5.95,
            "kv_tokens": 86720,
        },
        {"model": "openai/gpt-oss-120b", "max_num_tokens": 8192, "max_seq_len": 86720},
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_real_logs(name: str) -> None:
    engine, version, figures, stated = EXPECTED[name]
    log = read_log(str(LOGS / f"{name}.log"), CATALOG)
    assert (log.engine, log.version) == (engine, version)
    facts = {
        key.removesuffix("_bytes").removesuffix("_bytes_per_gpu"): f.value / (GIB if "bytes" in key else 1)
        for key, f in measure(log).figures.items()
    }
    assert facts == pytest.approx(figures, abs=1e-6)
    assert stated.items() <= {key: a.value for key, a in log.arguments.items()}.items()


@pytest.mark.parametrize("name", EXPECTED)
def test_figures_keep_their_line(name: str) -> None:
    lines = (LOGS / f"{name}.log").read_text(encoding="utf-8").splitlines()
    for ranks in read_log(str(LOGS / f"{name}.log"), CATALOG).figures.values():
        for figure in ranks.values():
            assert figure.text[:40] in " ".join(lines[figure.line_number - 1].split("\t")), figure


def read(text: str) -> StartupLog:
    log = read_lines(log_lines([text.encode()], WORDS), CATALOG)
    assert log is not None
    return log


def test_the_smallest_rank_sets_the_tokens() -> None:
    log = read(
        "(Worker_TP0 pid=1) INFO Available KV cache memory: 20.00 GiB\n"
        "(Worker_TP1 pid=2) INFO Available KV cache memory: 18.50 GiB\n"
        "(Worker_TP0 pid=1) INFO Model loading took 15.0 GiB memory and 1.0 seconds\n"
        "(Worker_TP1 pid=2) INFO Model loading took 15.5 GiB memory and 1.0 seconds\n"
        "(EngineCore pid=3) INFO GPU KV cache size: 1,000 tokens\n"
        "(EngineCore pid=4) INFO GPU KV cache size: 900 tokens\n"
    )
    measured = measure(log)
    assert measured.figures["kv_pool_bytes_per_gpu"].rank == measured.figures["weights_bytes_per_gpu"].rank == "TP1"
    assert measured.figures["weights_bytes_per_gpu"].value == 15.5 * GIB
    assert [note.split()[0] for note in measured.notes] == ["TP1"]


def test_the_last_start_is_taken() -> None:
    log = read_log(str(LOGS / "vllm-0.6.4.log"), CATALOG)
    assert (log.n_starts, log.line_number) == (2, 8)
    assert log.figures["kv_pool_bytes_per_gpu"][""].line_number == 10


def test_a_draft_model_is_not_added() -> None:
    log = read(
        "[2026-08-28 21:32:38] Load weight end. elapsed=7.55 s, type=A, quant=fp8, avail mem=29.01 GB, "
        "mem usage=82.97 GB.\n"
        "[2026-08-28 21:34:13] Load weight end. elapsed=9.49 s, type=B, avail mem=30.67 GB, mem usage=-1.86 GB.\n"
        "[2026-08-28 21:34:15] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 159552, K size: 1.83 GB, "
        "V size: 1.83 GB\n"
        "[2026-08-28 21:34:51] Capture target verify CUDA graph end. elapsed=1.61 s, mem usage=0.11 GB, avail.\n"
        "[2026-08-28 21:34:52] Capture draft decode CUDA graph end. elapsed=1.61 s, mem usage=0.25 GB, avail.\n"
    )
    figures = {name: round(f.value / GIB, 2) for name, f in measure(log).figures.items() if "bytes" in name}
    assert figures == {
        "weights_bytes_per_gpu": 82.97,
        "cuda_graph_bytes_per_gpu": 0.36,
        "kv_pool_bytes_per_gpu": 3.66,
    }


def test_nested_arguments_are_not_taken_for_the_outer_ones() -> None:
    text = (
        "{'model_path': '/m/x', 'model_loader_extra_config': {'tp_size': 99}, 'tp_size': 2, 'b': \"it's\", 'c': None}"
    )
    assert pairs(text) == {
        "model_path": "/m/x",
        "model_loader_extra_config": "{'tp_size': 99}",
        "tp_size": 2,
        "b": "it's",
        "c": None,
    }
    assert pairs("Namespace(a=<F.A: 'auto'>, f=<function S.cmd at 0x7f>, b=0.9, c=[1, 2], d=True) rest=1") == {
        "a": "<F.A: 'auto'>",
        "f": "<function S.cmd at 0x7f>",
        "b": 0.9,
        "c": "[1, 2]",
        "d": True,
    }


def test_command_lines() -> None:
    flags = command_flags("org/m -tp 4 --max-model-len 32K --kv-cache-dtype=fp8 --enforce-eager --x 1e2", "model")
    assert flags == {
        "model": "org/m",
        "tp": 4,
        "max_model_len": 32768,
        "kv_cache_dtype": "fp8",
        "enforce_eager": True,
        "x": 100.0,
    }
    assert command_flags("--a 'never closed", "model") == {"a": "'never"}


@given(st.text(max_size=300))
def test_no_text_breaks_the_readers(text: str) -> None:
    pairs(text)
    command_flags(text, "model")
    pairs("{" * 5000 + text)
    read_lines(log_lines([("non-default args: " + text).encode("utf-8", "replace")], WORDS), CATALOG)


def test_every_device_is_in_the_catalog() -> None:
    catalog = Catalog()
    named = [(name, gpu) for gpu in catalog.gpus() for name in gpu.device_names]
    assert len(named) > 40
    for name, gpu in named:
        device = DEVICES.find(f"GPU 0: {name}")
        assert device is not None and device[1] == name and catalog.gpu(device[0]).id == gpu.id


@pytest.mark.parametrize(
    ("text", "gpu"),
    [
        ("configs/E=512,N=256,device_name=NVIDIA_H200.json for MoE layer.", "h200"),
        ("E=8,device_name=NVIDIA_H100_80GB_HBM3.json", "h100"),
        ("GPU 0: NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("device_name=NVIDIA_L40S.json", "l40s"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA GeForce RTX 4090 D", None),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        ("the H100 of a sentence", None),
    ],
)
def test_devices(text: str, gpu: str | None) -> None:
    device = DEVICES.find(text)
    assert (device and device[0]) == gpu


def test_what_no_engine_says() -> None:
    assert read_lines(log_lines([b"hello\nworld\n"]), CATALOG) is None


def test_a_thousand_starts_take_the_room_of_two() -> None:
    start = "INFO non-default args: {'model': 'm%d'}\nModel loading took %d.5 GiB memory\n"
    log = read("".join(start % (i, i) for i in range(1000)) + "INFO non-default args: {'model': 'cut off'}\n")
    assert (log.n_starts, log.line_number, log.arguments["model"].value) == (1000, 1999, "m999")
    assert log.figures["weights_bytes_per_gpu"][""].value == 999.5 * GIB


def test_a_start_that_measured_nothing_leaves_no_arguments() -> None:
    """It died while loading and was tried again with other flags; several ranks of one start say the same."""
    first = "INFO non-default args: {'model': 'm', 'enable_lora': True}\n"
    second = "INFO non-default args: {'model': 'm', 'max_model_len': 8192}\nModel loading took 2.5 GiB memory\n"
    log = read(first + second)
    assert {name for name, _ in log.arguments.items()} == {"model", "max_model_len"}
    assert (log.n_starts, log.line_number) == (1, 2)
    assert set(read(first + "INFO Using max model len 4096\n" + first).arguments) == {
        "model",
        "enable_lora",
        "max_model_len",
    }
