"""`sheetgen diagnose` as people and scripts call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from command_lines import run_command
from corpus import LOGS, corpus

from sheetgen.catalog import guidance

CONTRACT = (
    "label", "confidence", "bill", "phase", "engine", "engine_version", "evidence", "numbers", "fixes",
    "also_possible", "missing",
)  # fmt: skip
ENGINES = {"vllm", "sglang", "tensorrt-llm", "nim", "tgi", "lmdeploy", "llama.cpp", None}


def call(*arguments: object, **environment: str) -> Result:
    return run_command("diagnose", *arguments, **environment)


@pytest.mark.parametrize("name", [log.file for log in corpus()][::9])
def test_json_is_the_contract(name: str) -> None:
    record = json.loads(call(LOGS / name, "--json").stdout)
    assert tuple(record)[: len(CONTRACT)] == CONTRACT
    assert record["label"] in (*guidance.LABELS, "undetermined")
    assert 0 <= record["confidence"] <= 1 and record["engine"] in ENGINES
    for line in record["evidence"]:
        assert set(line) == {"line_number", "text"} and line["line_number"] >= 1
    for fix in record["fixes"]:
        assert set(fix) == {"flag", "direction", "value", "reason", "cost"}
        assert fix["direction"] in ("raise", "lower", "set", "unset", "free")
    assert all(isinstance(value, (int, float)) for value in record["numbers"].values())
    assert isinstance(record["also_possible"], list) and isinstance(record["missing"], list)


def test_the_page_is_short() -> None:
    for log in corpus()[::4]:
        text = call(log.path, COLUMNS="110").stdout
        assert len(text.splitlines()) <= 60, log.file
        long = [line for line in text.splitlines()[3:] if len(line) > 110]
        assert all(len(line.split()) == 1 for line in long), log.file  # a word of the log is not broken


def test_the_page_says_what_overran_and_what_to_turn() -> None:
    text = call(LOGS / "019.log").stdout
    assert text.startswith("Sampler (sampler_logits_peak, ")
    assert "--max-num-seqs to 256" in text and "--gpu-memory-utilization by 0.02" in text
    text = call(LOGS / "115.log").stdout
    assert "a limit of tokens" in text and "11 tokens" in text and "raise --ctx-size" in text


def test_html_is_written_beside_the_page(tmp_path: Path) -> None:
    out = tmp_path / "why.html"
    result = call(LOGS / "009.log", "--html", out, "--json")
    assert json.loads(result.stdout)["label"] == "startup_kv_pool_too_small"
    page = out.read_text(encoding="utf-8")
    assert (
        page.startswith("<!doctype html>") and "--max-model-len" in page and "http" not in page.replace("https://x", "")
    )


def test_the_log_is_not_overwritten(tmp_path: Path) -> None:
    log, link = tmp_path / "x.log", tmp_path / "link.html"
    before = (LOGS / "009.log").read_bytes()
    log.write_bytes(before)
    link.symlink_to(log)
    for place in (log, tmp_path / "." / "x.log", link):
        result = call(log, "--html", place)
        assert result.exit_code == 1 and result.stderr.count("\n") == 1 and "is the log itself" in result.stderr
    assert log.read_bytes() == before


def test_a_wrong_name_is_told_in_one_line() -> None:
    result = call(LOGS / "009.log", "--model", "lama-3")
    assert result.exit_code == 1 and not result.stdout and result.stderr.count("\n") == 1 and "lama-3" in result.stderr
    assert call(LOGS / "009.log", "--gpu", "h1000").exit_code == 1
    assert "vlm" in call(LOGS / "009.log", "--engine", "vlm").stderr
    assert call().exit_code == 2


def test_options_win_over_the_log(tmp_path: Path) -> None:
    record = json.loads(
        call(LOGS / "010.log", "--model", "70b", "--gpu", "h100", "--tensor-parallel-size", "2", "--json").stdout
    )
    assert record["replay"]["inputs"]["tensor_parallel_size"] in (2, "2")
    assert record["replay"]["bills"][-1]["short_by_bytes"] > 0


def test_the_last_run_counts(tmp_path: Path) -> None:
    banner = b"INFO [api_server.py:1896] vLLM API server version 0.11.0\nINFO Model loading took 15.0 GiB memory\n"
    ready = b"INFO GPU KV cache size: 365,296 tokens\nINFO:     Application startup complete.\n"
    log = tmp_path / "x.log"
    log.write_bytes(banner + (LOGS / "010.log").read_bytes() + banner + ready)
    record = json.loads(call(log, "--json").stdout)
    assert record["label"] == "healthy" and "2 runs" in record["notes"][0]
    log.write_bytes(banner + ready + banner + (LOGS / "010.log").read_bytes())
    assert json.loads(call(log, "--json").stdout)["label"] == "startup_kv_pool_too_small"


@pytest.mark.parametrize("typed", ["--kv-cache-dtype=fp9", "--gpu-memory-utilization=x", "--max-num-seqs=0"])
def test_a_value_that_cannot_be_is_refused_though_nothing_is_replayed(typed: str) -> None:
    result = call(LOGS / "001.log", typed)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
