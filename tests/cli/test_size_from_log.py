"""`sheetgen size --from-log`: the prediction beside real logs, what they do not state, and what cannot be told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from command_lines import Run

import sheetgen
from sheetgen.cli import main

LOGS = Path(__file__).parent.parent / "startup" / "logs"
GIB = 2**30


def answer(run: Run, log: str, *options: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(run("size", "--from-log", LOGS / f"{log}.log", "--json", *options).output)
    return record


def test_a_log_that_states_its_figures(run) -> None:  # type: ignore[no-untyped-def]
    record = answer(run, "vllm-0.31.0")
    assert record["inputs"]["model_id"] == "llama-3.1-8b" and record["inputs"]["max_model_len"] == 131072
    sized = sheetgen.size(
        model="llama-3.1-8b",
        gpu=record["inputs"]["gpu_id"],
        engine_version="0.31.0",
        gpu_memory_utilization=0.92,
        max_model_len=131072,
        context_tokens=131072,
    )
    parts = ("gpu_memory", "weights", "activation", "non_torch", "cuda_graph")
    for name in (f"{part}_bytes{'' if part == 'gpu_memory' else '_per_gpu'}" for part in parts):
        assert record["predicted"][name] == sized[name], name
    # The log states all parts of the budget, and its pool follows from them: 0.92 x 79.25 - 15.26 - 1.44 GiB.
    assert record["predicted"]["kv_pool_bytes_per_gpu"] == pytest.approx((0.92 * 79.25 - 15.26 - 1.44) * GIB, rel=2e-4)
    assert record["notes"][0].startswith("The KV pool is predicted")
    assert record["measured"]["kv_pool_bytes_per_gpu"] == round(56.21 * GIB)
    assert record["measured"]["kv_tokens"] == 460_496
    for name, difference in record["difference"].items():
        if difference is not None:
            assert difference == pytest.approx(record["predicted"][name] - record["measured"][name])
    assert abs(record["difference_percent"]["weights_bytes_per_gpu"]) < 1
    assert any(line.startswith("tensor_parallel_size ") for line in record["not_stated"])
    assert record["not_stated"][0].startswith("gpu is not in the log; nvidia-a100-sxm4-80gb ")
    assert record["evidence"]["kv_tokens"]["line_number"] == 10


START = """\
(APIServer pid=1) INFO 05-03 17:10:31 [utils.py:299]   █▄█▀ █     █     █     █  version {version}
(APIServer pid=1) INFO 05-03 17:10:31 [u.py:233] non-default args: {{'model': '{model}', 'max_model_len': 8192{more}}}
"""


def start(folder: Path, *lines: str, version: str = "0.30.0", model: str = "Qwen/Qwen3.5-9B", more: str = "") -> Path:
    log = folder / "server.log"
    log.write_text(START.format(version=version, model=model, more=more) + "".join(f"{line}\n" for line in lines))
    return log


def test_what_a_log_states_beats_what_is_predicted(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Weights, graphs and the card's memory one by one: the pool moves by as much as the log states otherwise."""
    options = ("--gpu", "l40s", "--json")

    def pool(*lines: str) -> float:
        data = json.loads(run("size", "--from-log", start(tmp_path, *lines), *options).output)
        return float(data["predicted"]["kv_pool_bytes_per_gpu"]) / GIB

    plain = json.loads(run("size", "--from-log", start(tmp_path, "Using max model len 8192"), *options).output)
    of_nothing = plain["predicted"]["kv_pool_bytes_per_gpu"] / GIB
    weights, graphs = (plain["predicted"][f"{part}_bytes_per_gpu"] / GIB for part in ("weights", "cuda_graph"))
    assert not [note for note in plain["notes"] if "with what the log states" in note]
    for line, less in (
        ("Model loading took 20.00 GiB memory and 3 seconds", 20 - weights),
        ("Estimated CUDA graph memory: 5.00 GiB total", 5 - graphs),
        (
            "Free memory on device (43.0/46.42 GiB) on startup",
            -0.92 * (46.42 - plain["predicted"]["gpu_memory_bytes"] / GIB),
        ),
    ):
        assert pool(line) == pytest.approx(of_nothing - less, abs=1e-6), line


def test_a_log_without_graphs_or_images(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """An eager engine keeps no graphs; one that profiles no image has the encoder's memory for its pool."""
    asked = {"model": "qwen3.5-9b", "gpu": "l40s", "engine_version": "0.20.0", "max_model_len": 8192, "context": 8192}
    for argument, setting in (("enforce_eager", "enforce_eager"), ("language_model_only", "skip_mm_profiling")):
        log = start(tmp_path, version="0.20.0", more=f", '{argument}': True")
        data = json.loads(run("size", "--from-log", log, "--gpu", "l40s", "--json").output)
        sized, whole = sheetgen.size(**asked, **{setting: 1}), sheetgen.size(**asked)
        assert data["predicted"]["kv_pool_bytes_per_gpu"] == sized["kv_pool_bytes_per_gpu"]
        assert sized["kv_pool_bytes_per_gpu"] > whole["kv_pool_bytes_per_gpu"]
    assert sheetgen.size(**asked, enforce_eager=1)["cuda_graph_bytes_per_gpu"] == 0


def test_a_named_model_keeps_the_precision_of_the_log(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    log = start(tmp_path, model="RedHatAI/Qwen3.6-35B-A3B-NVFP4")
    named, asked, other = (
        json.loads(run("size", "--from-log", log, "--gpu", "rtx-5090", "--json", *options).output)["inputs"]
        for options in ((), ("--model", "qwen3.5-35b-a3b"), ("--model", "8b"))
    )
    assert (named["weight_dtype"], asked["weight_dtype"], other["weight_dtype"]) == ("nvfp4", "nvfp4", "bf16")
    unknown = start(tmp_path, model="somebody/their-own-9b-AWQ")
    data = json.loads(run("size", "--from-log", unknown, "--gpu", "l40s", "--model", "qwen3.5-9b", "--json").output)
    assert data["inputs"]["weight_dtype"] == "int4"


def test_a_build_without_tags_is_the_newest(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    log = start(tmp_path, version="0.1.dev19754+g3a0914114.d20260816")
    data = json.loads(run("size", "--from-log", log, "--gpu", "l40s", "--json").output)
    newest = sheetgen.size(model="qwen3.5-9b", gpu="l40s", max_model_len=8192, context=8192)
    assert data["predicted"]["kv_tokens"] == newest["kv_tokens"]
    assert any(note.startswith("vLLM 0.1.dev19754") and "newest rules known" in note for note in data["notes"])


def test_what_cannot_be_is_remarked_on(run) -> None:  # type: ignore[no-untyped-def]
    """A pool larger than the GPU, weights twice as wide as the log's, a GPU of another size; and nothing else."""
    pool, wide, other, narrow, right = (
        answer(run, log, *options)["notes"]
        for log, *options in (
            ("sglang-0.5", "--model", "8b", "--gpu", "h100"),
            ("tensorrt-llm-0.12",),
            ("vllm-0.10.2", "--gpu", "h100"),
            ("vllm-0.31.0", "--weight-dtype", "fp8"),
            ("vllm-0.10.2",),
        )
    )
    assert "136.36 GiB" in pool[0] and "79.19: another GPU? --gpu NAME" in pool[0]
    assert "12.55 GiB a GPU" in wide[0] and "6.07 in the log: quantized (--weight-dtype)" in wide[0]
    assert "139.81 GiB" in other[0] and "79.19: another GPU?" in other[0]
    assert "15.00 in the log: another model" in narrow[0]
    assert not [note for note in right if note.endswith("?") or "another GPU" in note]


def test_in_words(run) -> None:  # type: ignore[no-untyped-def]
    text = run("size", "--from-log", LOGS / "vllm-0.10.2.log").output
    assert "qwen3-next-80b-a3b on 2x nvidia-h200-sxm5-141gb" in text
    row = next(line for line in text.splitlines() if line.startswith("  weights"))
    assert "74.28 GiB" in row and row.endswith("%")
    assert "max_num_seqs is not" in text and "gpu is not" not in text


def test_options_win_over_the_log(run) -> None:  # type: ignore[no-untyped-def]
    record = answer(run, "vllm-0.31.0", "--gpu", "h200", "--model", "70b", "--tensor-parallel-size", "2")
    assert (record["inputs"]["gpu_id"], record["inputs"]["model_id"]) == ("nvidia-h200-sxm5-141gb", "llama-3.1-70b")
    assert record["inputs"]["tensor_parallel_size"] == 2
    assert not any(line.startswith(("gpu", "tensor_parallel")) for line in record["not_stated"])


def test_what_cannot_be_told_is_asked_for(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("size", "--from-log", LOGS / "vllm-0.22.0.log")
    assert result.exit_code == 1
    assert result.output.endswith(" Add --gpu NAME.\n")
    unknown = tmp_path / "unknown.log"
    unknown.write_text(
        (LOGS / "vllm-0.6.4.log").read_text(encoding="utf-8").replace("realtreetune/rho-1b", "nobody/none")
    )
    result = run("size", "--from-log", unknown)
    assert result.exit_code == 1 and "Add --model NAME." in result.output and len(result.output.splitlines()) == 1
    assert run("size", "--from-log", LOGS / "vllm-0.22.0.log", "--gpu", "l40s").exit_code == 0


@pytest.mark.parametrize("name", [file.stem for file in sorted(LOGS.glob("*.log"))])
def test_every_log_prints_its_figures(name: str, run) -> None:  # type: ignore[no-untyped-def]
    options = ("--model", "8b", "--gpu", "h100")
    result = run("size", "--from-log", LOGS / f"{name}.log", *options)
    assert (result.exit_code == 0 and "KV tokens" in result.output and result.output.isascii()) or "–" in result.output
    record = answer(run, name, *options)
    assert set(record) >= {"inputs", "predicted", "measured", "difference", "not_stated"}
    assert set(record["predicted"]) == set(record["measured"]) == set(record["difference"])


def test_an_engine_without_accounting_still_shows_what_was_measured(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    log = tmp_path / "log"
    text = (LOGS / "vllm-0.31.0.log").read_text(encoding="utf-8")
    log.write_text(text, encoding="utf-8")
    result = run("size", "--from-log", log, "--engine", "my-engine", "--gpu", "h100")
    assert result.exit_code == 0 and "no prediction: engine 'my-engine'" in result.output
    assert "460,496" in result.output


def test_stdin_and_gzip() -> None:
    data = (LOGS / "vllm-0.31.0.log").read_bytes()
    runs = [
        CliRunner().invoke(main, ["size", "--from-log", "-", "--json"], input=sent)
        for sent in (data, gzip.compress(data, mtime=0))
    ]
    assert runs[0].exit_code == 0 and runs[0].output == runs[1].output


def test_no_log_text_is_looked_for_on_disk(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "secret").mkdir()
    (workdir / "secret" / "config.json").write_text("{}")
    log = workdir / "log"
    for name in ("secret", "./secret", "../secret/x.json", "/etc/passwd", "~/x", "a\\b"):
        log.write_text(
            f"INFO non-default args: {{'model': '{name}'}}\nFree memory on device (1.0/79.25 GiB) on startup."
        )
        result = run("size", "--from-log", log)
        assert (result.exit_code == 1 and "Add --model NAME." in result.output) or (
            "does not say which model" in result.output
        )


def test_no_log_text_commands_the_terminal(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    log = workdir / "log"
    log.write_bytes(b"INFO non-default args: {'model': 'x\x1b[31my\x07\xe2\x80\xaez'}\nModel loading took 1.0 GiB\n")
    for options in ((), ("--model", "8b", "--gpu", "h100"), ("--model", "8b", "--gpu", "h100", "--json")):
        output = run("size", "--from-log", log, *options).output
        assert all(c.isprintable() or c == "\n" for c in output)


def test_absurd_arguments_do_not_hide_what_was_measured(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    log = workdir / "log"
    log.write_text(
        "non-default args: {'model': 'llama-3.1-8b', 'tensor_parallel_size': 7}\nGPU KV cache size: 5 tokens"
    )
    result = run("size", "--from-log", log, "--gpu", "h100")
    assert result.exit_code == 0 and "tensor_parallel_size is 7" in result.output


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "no line"), (b"\0\1\2", "is no text"), (b"hello\n" * 100, "no line"), (b"{" * 10000, "no line")],
)
def test_no_log_at_all(data: bytes, words: str, run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "log").write_bytes(data)
    result = run("size", "--from-log", "log")
    assert result.exit_code == 1 and len(result.output.splitlines()) == 1 and f"log: {words}" in result.output


def test_usage(run) -> None:  # type: ignore[no-untyped-def]
    assert run("size", "--from-log", "a", "--batch", "b").exit_code == 2
    assert run("size", "--from-log", "nothing.log").exit_code == 1


def test_the_total_capacity_of_an_error_is_the_memory_that_the_engine_saw(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    log = tmp_path / "oom.log"
    log.write_text(
        "INFO [api_server.py:1289] vLLM API server version 0.19.0\n"
        "INFO [gpu_model_runner.py:3100] Model loading took 14.99 GiB and 12.3 seconds\n"
        "ERROR [core.py:700] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 44.40 GiB of which 1.20 GiB is free.\n"
    )
    data = json.loads(run("size", "--from-log", log, "--model", "8b", "--json").output)
    assert data["measured"]["gpu_memory_bytes"] == round(44.40 * GIB)
    assert data["inputs"]["gpu_id"] == "nvidia-l40s-48gb"
