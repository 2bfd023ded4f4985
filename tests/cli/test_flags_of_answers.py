"""--flags in `recommend` and `build`: the launch of one replica of what is recommended, and the stack that suits."""

from __future__ import annotations

import functools
import html
import json
import os
import re
import shlex
import subprocess
from itertools import chain
from pathlib import Path
from statistics import NormalDist

import pytest
from answers import page_for, record_for
from option_values import Options

import sheetgen
from sheetgen.answer.solution import Fit, Solution, headline_rows
from sheetgen.answer.solve import solve
from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.cli.extras import flag_lines
from sheetgen.launch.recommended import Launch, fullest_replica, launches, with_launch_rows
from sheetgen.question.sheet_question import ask
from sheetgen.report.page import Page
from sheetgen.units import GIB
from sheetgen.writers.html import print_environment

TEMPLATES = Path(__file__).parents[2] / "templates"
BAND_END = 1.2816  # standard deviations
COMMAND_EMS = 60.0  # about a line of A4
LOADS: list[Options] = [
    {"model": "70b", "context": "16k", "concurrent_requests": 200},
    {"model": "deepseek-v3", "context": "4k", "concurrent_requests": 128, "confidence": 0.5},  # ranks
    {"model": "kimi-k2", "context": "4k", "concurrent_requests": 8, "gpus": "h100"},  # spans machines
    {"model": "8b", "concurrent_requests": 64, "engine": "sglang"},
    {"model": "8b", "concurrent_requests": 64, "vendors": "amd"},
    {
        "model": "gpt-oss-120b",
        "context": "32k",
        "concurrent_requests": 40,
        "prefix_cache_hit_fraction": 0.4,
        "block_size": 32,
    },
    {"model": "70b", "context": "8k", "concurrent_requests": 20, "weight_dtype": "fp8", "kv_cache_dtype": "fp8"},
    {"model": "8b", "concurrent_requests": 10, "kv_allocation": "reserved", "gpu_memory_utilization": 0.8},
    {"model": "70b", "concurrent_requests": 20, "draft_model": "meta-llama/Llama-3.1-8B-Instruct"},
]


@functools.cache
def catalog() -> Catalog:
    return Catalog()


def solved(**options: object) -> Solution:
    return recommended({**options, "as_of": "2026-11-20"}, catalog())


def launched(answer: Solution, *engines: str) -> dict[int, Launch]:
    return launches(record_for(answer, ()), answer.question, engines, catalog())


@pytest.mark.some(4)
@pytest.mark.parametrize("load", LOADS, ids=lambda load: "-".join(map(str, load.values())))
def test_the_flags_are_of_the_fullest_replica(load: Options) -> None:
    answer = solved(**load)
    record = record_for(answer, ())
    point, choice = fullest_replica(answer.question, record.cells[0]), record.cells[0].answer
    sized = sheetgen.size(**point)
    assert sized["fits"] and sized["tpot_seconds"] == pytest.approx(choice.tpot_seconds, rel=1e-9)
    assert point["concurrent_requests"] == -(-load["concurrent_requests"] // choice.n_replicas)
    assert sized["gpu_memory_utilization"] == record.of_replica["gpu_memory_utilization"]
    assert sized["block_size"] == answer.question.settings.block_size
    launch = launched(answer, answer.question.engine.engine)[0]
    (flags,) = launch.flags.values()
    assert flags.checked.fits and flags.written is not None
    trial = flags.checked.requested.answer
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        assert trial[name] == point[name]
    assert (point["pipeline_parallel_size"] > 1) == (load["model"] == "kimi-k2")
    assert (point["expert_parallel_size"] > 1) == (point["data_parallel_size"] > 1)
    assert not [note for note in flags.notes if "was typed for" in note]
    drafting = flags.written.settings.get("--speculative-config", "")
    assert (load.get("draft_model", "no draft") in drafting) == ("draft_model" in load)


@pytest.mark.parametrize(
    "asked",
    [
        {"models": "8b,70b,gpt-oss-120b", "headline": "rag:32"},
        {"models": "8b,70b", "headline": "chat:1024"},  # more replicas on the machines than are needed
        {"models": "deepseek-v3", "headline": "rag:128", "confidence": "0.5"},
        {"models": "8b", "requests_per_second": "9"},
    ],
    ids=lambda asked: "-".join(asked.values()).replace(":", "-"),
)
def test_what_is_started_serves_what_is_said(asked: dict[str, str]) -> None:
    """The requests that all commands admit are no fewer than those served within the targets; where a target
    limits them one more of a rank would miss it; and the record's log is of the same start."""
    answer = solve(ask(catalog(), {"as_of": "2026-11-20", **asked}))
    record = record_for(answer, ())
    page = with_launch_rows(page_for(answer), record, answer.question, {}, catalog())
    z = NormalDist().inv_cdf(answer.question.settings.confidence)
    started = launches(record, answer.question, (), catalog())
    for (row, launch), of_page in zip(started.items(), page.replicas, strict=True):
        cell, choice = record.cells[row], record.cells[row].answer
        words = shlex.split(launch.serve or "")
        admitted = choice.data_parallel_size * int(words[words.index("--max-num-seqs") + 1])
        if not cell.is_rate:
            assert admitted * choice.replicas_held >= choice.served_at_target >= cell.requests
        assert of_page.in_target == admitted >= of_page.requests
        assert str(of_page.replicas).startswith(f"{choice.replicas_held:,} × ")
        point = fullest_replica(answer.question, cell)
        for n in (admitted, admitted + choice.data_parallel_size):
            ranks = {"concurrent_requests": n, "max_num_seqs": n // choice.data_parallel_size}
            sized = sheetgen.size(**{**point, **ranks})
            slow = sized["tpot_seconds_high"] / sized["tpot_seconds"]
            late = sized["ttft_seconds_high"] / sized["ttft_seconds"]
            paces = [sized["tpot_seconds"] * slow ** (z / BAND_END) <= cell.tpot_target_seconds]
            paces += [sized["ttft_seconds"] * late ** (z / BAND_END) <= cell.ttft_target_seconds]
            if n == admitted:
                assert all(paces) and sized["chance"] >= answer.question.settings.confidence
            elif choice.paced_requests < choice.sequences_per_replica:
                assert not all(paces)
        assert launch.started["kv_tokens"] == cell.log.kv_tokens


def test_ranks_are_launched_as_ranks() -> None:
    answer = solved(**LOADS[1])
    fit = Fit.of(answer, 0)
    assert fit is not None and fit.layout.data_parallel_size > 1
    launch = launched(answer, "vllm")[0]
    text, ranks = "\n".join(flag_lines(launch.flags)), fit.layout.data_parallel_size
    of_rank = record_for(answer, ()).cells[0].answer.sequences_of_rank
    assert f"--data-parallel-size {ranks} " in text and "--enable-expert-parallel" in text
    assert f"--max-num-seqs {of_rank} " in text


@pytest.mark.long
def test_the_page_has_the_replica_of_each_answer() -> None:
    """Replicas of all models, worked out together, equal those worked out one by one; a model that nothing holds has
    no row."""
    answer = solve(ask(catalog(), {"models": "8b,gemma-2-9b,deepseek-v3", "as_of": "2026-11-20"}))
    page = page_for(answer)
    assert not page.replicas, "which a floor above fills in"
    rows = with_launch_rows(page, record_for(answer, ()), answer.question, {}, catalog()).replicas
    assert [row.model for row in rows] == ["Llama 3.1 8B", "DeepSeek-V3"]  # 16k tokens are over Gemma's 8k
    for line, row in ((0, 0), (2, 1)):
        fit = Fit.of(answer, headline_rows(answer)[line])
        assert fit is not None
        assert f"TP {fit.layout.tensor_parallel_size}" in str(rows[row].replicas)
        assert str(rows[row].replicas).startswith(f"{fit.choice.n_replicas} × ")
    requested = launched(answer, "sglang", "vllm")
    assert with_launch_rows(page, record_for(answer, ()), answer.question, requested, catalog()).replicas == rows


def started(tmp_path: Path, page: Page) -> list[tuple[str, list[str]]]:
    """The commands that bash starts when a page's lines are pasted as printed: the GPUs and the words of each."""
    tmp_path.joinpath("vllm").write_text('#!/bin/bash\necho "${CUDA_VISIBLE_DEVICES-all}" "$@" >> "$OUT"\n')
    tmp_path.joinpath("vllm").chmod(0o755)
    commands = print_environment(TEMPLATES).filters["commands"]
    script = html.unescape(str(commands(page.start.lines, COMMAND_EMS))) + "\nwait\n"
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "OUT": str(tmp_path / "out")}
    subprocess.run(["bash", "-eu", "-c", script], env=env, check=True)
    lines = [line.split() for line in (tmp_path / "out").read_text().splitlines()]
    return sorted((devices, effective(words)) for devices, *words in lines)


def effective(words: list[str]) -> list[str]:
    """The words of a command, sorted; of a flag that is given twice only the last value."""
    flags: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            flags[word] = []
        (flags[list(flags)[-1]] if word.startswith("--") or flags else flags.setdefault("", [])).append(word)
    return sorted(word for of_flag in flags.values() for word in of_flag)


@pytest.mark.parametrize(
    "models", ["70b", "8b,70b", pytest.param("8b,49b,70b,gpt-oss-120b,405b", marks=pytest.mark.long)]
)
def test_what_is_pasted_starts_every_replica(models: str, tmp_path: Path) -> None:
    """Each replica starts with the words of its own command, on its own GPUs and port; words that models have in common
    change nothing."""
    answer = solve(ask(catalog(), {"models": models, "workloads": "rag", "tiers": "32", "as_of": "2026-11-20"}))
    page = with_launch_rows(page_for(answer), record_for(answer, ()), answer.question, {}, catalog())
    expected = []
    for row, launch in launched(answer, "vllm").items():
        fit = Fit.of(answer, row)
        assert fit is not None and launch.serve is not None
        n_gpus, words = fit.gpus_per_replica, shlex.split(launch.serve)[1:]
        on_one = min(fit.candidate.gpu_count // n_gpus, fit.choice.n_replicas)
        for i in range(on_one):
            devices = ",".join(str(gpu) for gpu in range(i * n_gpus, (i + 1) * n_gpus)) if on_one > 1 else "all"
            expected.append((devices, effective([*words, *(["--port", str(8000 + i)] if on_one > 1 else [])])))
    assert started(tmp_path, page) == sorted(expected)


@pytest.mark.parametrize(
    "asked",
    [
        {"models": "8b,70b", "headline": "rag:32"},
        {"models": "deepseek-v3", "weight_dtype": "published", "headline": "chat:128"},
        {"models": "8b", "workloads": "long-doc", "headline": "long-doc:32", "kv_cache_dtype": "fp8"},
        {"models": "70b", "engine": "sglang", "gpu_memory_utilization": "0.85"},
    ],
    ids=lambda asked: "-".join(asked.values()).replace(":", "-"),
)
def test_size_as_printed_says_what_the_page_says(asked: dict[str, str], run) -> None:  # type: ignore[no-untyped-def]
    """Every command on the page for engineers can be pasted, and gives that replica's pool, tokens and concurrency."""
    answer = solve(ask(catalog(), {"as_of": "2026-11-20", **asked}))
    page = with_launch_rows(page_for(answer), record_for(answer, ()), answer.question, {}, catalog())
    assert len(page.sized_by) == len(page.replicas) > 0
    for command, row in zip(page.sized_by, page.replicas, strict=True):
        program, *words = shlex.split(command)
        assert program == "sheetgen"
        sized = json.loads(run(*words, "--json").output)
        assert sized["fits"] and sized["concurrent_requests"] == row.requests
        assert sized["kv_pool_bytes_per_gpu"] == pytest.approx(row.pool.value, rel=1e-9)
        assert f"{sized['kv_tokens']:,}" == str(row.kv_tokens)
        assert sized["max_concurrency"] == pytest.approx(row.max_concurrency.value, rel=1e-9)
        text = run(*words).output
        ends = re.findall(r"left for the KV pool .* ([\d.]+) to ([\d.]+)\n", text)
        assert bool(ends) == bool(row.pool_band)
        for end, of_page in zip(chain(*ends), row.pool_band.parts, strict=True):
            assert float(end) == pytest.approx(of_page.value / GIB, abs=0.006)
        printed = " ".join(text.split())
        if len(page.replicas) == 1:
            assert all(line in printed for line in page.beyond_measured)
            assert ("prompts above" in str(page.beyond_measured)) == ("prompts above" in printed)


def test_what_other_engines_choose_themselves_is_not_typed_for_them() -> None:
    launch = launched(solved(**LOADS[0]), "sglang", "tensorrt-llm")[0]
    assert not [note for flags in launch.flags.values() for note in flags.notes if "was typed" in note]


def test_recommend_tells_the_stack_always_and_flags_where_asked(run) -> None:  # type: ignore[no-untyped-def]
    asked = ("recommend", "--model", "70b", "--context", "16k", "--concurrent-requests", "32")
    plain, flagged = (json.loads(run(*asked, *more, "--json").output) for more in ((), ("--flags", "vllm")))
    assert plain["flags"] is None and plain["stack"]["engine"] and plain["stack"] == flagged["stack"]
    assert list(flagged["flags"]) == ["vllm"] and flagged["cells"][0]["flags"] == flagged["flags"]
    command = flagged["flags"]["vllm"]["command"]
    assert f"--tensor-parallel-size {flagged['tensor_parallel_size']}" in command
    assert (
        flagged["n_replicas"] > 1
        and f"--max-num-seqs {flagged['served_at_target'] // flagged['n_replicas']:.0f} " in command
    )
    text = run(*asked, "--details", "--flags", "all").output
    assert text.count("\n# ") >= 5 and f"vllm serve {plain['checkpoint']}" in text
    stack = text.split("\nSTACK\n")[1].split("\n\n")[0]
    assert plain["stack"]["line"] in " ".join(stack.split())
    assert "LAUNCH FLAGS" not in run(*asked).output


def test_where_nothing_holds_it_there_is_nothing_to_launch(run) -> None:  # type: ignore[no-untyped-def]
    asked = ("recommend", "--model", "405b", "--instances", "aws/g5.xlarge", "--flags", "vllm")
    record = json.loads(run(*asked, "--json").output)
    assert record["flags"] is None and record["stack"] is None
    text = run(*asked).output
    assert "LAUNCH" not in text and "Stack" not in text


def test_shared_prefixes_suit_stacks_that_keep_them() -> None:
    advice = launched(solved(model="8b", concurrent_requests=64, prefix_cache_hit_fraction=0.5))[0].advice
    assert advice.rule is not None and advice.rule.id == "shared-prefix" and advice.engine in ("sglang", "vllm")
    assert "radix tree" in advice.line


@pytest.mark.parametrize("command", [("recommend", "--model", "8b"), ("build", "--models", "8b")])
def test_an_engine_without_flags_is_told(command: tuple[str, ...], run) -> None:  # type: ignore[no-untyped-def]
    result = run(*command, "--flags", "vlm")
    assert result.exit_code == 1 and "Did you mean vllm?" in result.stderr


@pytest.mark.long
def test_build_has_them_in_json_and_below_its_text(run, workdir: Path) -> None:  # type: ignore[no-untyped-def]
    (workdir / "s.yaml").write_text("models: [8b, 70b]\nworkloads: rag\ntiers: [8, 32]\nflags: [vllm, sglang]\n")
    asked = ("build", "--scenario", "s.yaml", "--as-of", "2026-11-20", "--format", "json,md")
    text = run(*asked, "--name", "a").output
    assert text.count("LAUNCH FLAGS") == 2 and text.count("vllm serve") == 2 and text.count("Stack: ") == 2
    cells = json.loads((workdir / "output" / "a.json").read_text())["cells"]
    assert [cell["tier"] for cell in cells if cell["flags"]] == [32, 32]
    assert all(list(cell["flags"]) == ["vllm", "sglang"] for cell in cells if cell["flags"])
    assert json.loads(run(*asked, "--name", "a", "--json").stdout)["cells"] == cells
    (workdir / "s.yaml").write_text("models: [8b, 70b]\nworkloads: rag\ntiers: [8, 32]\n")
    assert "LAUNCH" not in run(*asked, "--name", "b").output
    assert (workdir / "output" / "a.md").read_bytes() == (workdir / "output" / "b.md").read_bytes()
    assert "flags" not in json.loads((workdir / "output" / "b.json").read_text())["cells"][0]
