"""--flags in `recommend` and `build`: the launch of one replica of what is recommended, and the stack that suits."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from answers import page_for, record_for

import sheetgen
from sheetgen.answer.solution import Fit, Solution, headline_rows
from sheetgen.answer.solve import solve
from sheetgen.api import recommended
from sheetgen.catalog import Catalog
from sheetgen.cli.extras import flag_lines
from sheetgen.launch.recommended import Launch, fullest_replica, launches, with_launch_rows
from sheetgen.question.sheet_question import ask

LOADS: list[dict[str, Any]] = [
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


def solved(**options: Any) -> Solution:
    return recommended({**options, "as_of": "2026-11-20"}, catalog())


def launched(answer: Solution, *engines: str) -> dict[int, Launch]:
    return launches(record_for(answer, ()), answer.question, engines, catalog())


@pytest.mark.some(4)
@pytest.mark.parametrize("load", LOADS, ids=lambda load: "-".join(map(str, load.values())))
def test_the_flags_are_of_the_fullest_replica(load: dict[str, Any]) -> None:
    answer = solved(**load)
    record = record_for(answer, ())
    point, choice = fullest_replica(answer.question, record.cells[0]), record.cells[0].answer
    sized = sheetgen.size(**point)
    assert sized["fits"] and sized["tpot_seconds"] == pytest.approx(choice.tpot_seconds, rel=1e-9)
    assert point["concurrent_requests"] == -(-load["concurrent_requests"] // choice.n_replicas)
    assert sized["gpu_memory_utilization"] == answer.question.settings.gpu_memory_utilization
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


def test_ranks_are_launched_as_ranks() -> None:
    answer = solved(**LOADS[1])
    fit = Fit.of(answer, 0)
    assert fit is not None and fit.layout.data_parallel_size > 1
    launch = launched(answer, "vllm")[0]
    text, ranks = "\n".join(flag_lines(launch.flags)), fit.layout.data_parallel_size
    of_rank = -(-fit.choice.requests_per_replica // ranks)
    assert f"--data-parallel-size {ranks} " in text and "--enable-expert-parallel" in text
    assert f"--max-num-seqs {of_rank} " in text


@pytest.mark.long
def test_the_page_has_the_command_of_each_answer() -> None:
    """Those of all models are worked out together, and are what each gives by itself; no row where nothing holds it."""
    answer = solve(ask(catalog(), {"models": "8b,gemma-2-9b,deepseek-v3", "as_of": "2026-11-20"}))
    page = page_for(answer)
    assert not page.launches, "which a floor above fills in"
    rows = with_launch_rows(page, record_for(answer, ()), answer.question, {}, catalog()).launches
    assert [row.model for row in rows] == ["Llama 3.1 8B", "DeepSeek-V3"]  # 16k tokens are over Gemma's 8k
    for line, row in ((0, 0), (2, 1)):
        fit = Fit.of(answer, headline_rows(answer)[line])
        assert fit is not None
        name = str(answer.question.models[line].model.id)
        alone = launched(solve(ask(catalog(), {"models": name, "as_of": "2026-11-20"})), "vllm")
        (of_one,) = alone.values()
        assert str(rows[row].stack).endswith(of_one.advice.line)
        assert f"--tensor-parallel-size {fit.layout.tensor_parallel_size} " in rows[row].command
        assert f"{fit.choice.n_replicas} replica" in str(rows[row].on)
    requested = launched(answer, "sglang", "vllm")
    assert with_launch_rows(page, record_for(answer, ()), answer.question, requested, catalog()).launches == rows


def test_replicas_that_share_a_machine_say_how() -> None:
    """And the command, which is for the replica's share of the case, what it serves beside that."""
    answer = solve(ask(catalog(), {"models": "8b,70b", "workloads": "rag", "tiers": "32", "as_of": "2026-11-20"}))
    one, two = with_launch_rows(page_for(answer), record_for(answer, ()), answer.question, {}, catalog()).launches
    assert str(two.on) == (
        "2 replicas, each on 4× H100 SXM with 16 at once, up to 25 within the targets; side by side with "
        "CUDA_VISIBLE_DEVICES=0,1,2,3 and 4,5,6,7, ports 8000 and 8001, a load balancer before them"
    )
    assert str(one.on) == "1 replica on 1× H100 NVL with 32 at once, up to 36 by memory"


def test_what_other_engines_choose_themselves_is_not_typed_for_them() -> None:
    launch = launched(solved(**LOADS[0]), "sglang", "tensorrt-llm")[0]
    assert not [note for flags in launch.flags.values() for note in flags.notes if "was typed" in note]


def test_recommend_tells_the_stack_always_and_flags_where_asked(run) -> None:  # type: ignore[no-untyped-def]
    asked = ("recommend", "--model", "70b", "--context", "16k", "--concurrent-requests", "32")
    plain, flagged = (json.loads(run(*asked, *more, "--json").output) for more in ((), ("--flags", "vllm")))
    assert plain["flags"] is None and plain["stack"]["engine"] and plain["stack"] == flagged["stack"]
    assert list(flagged["flags"]) == ["vllm"] and flagged["cells"][0]["flags"] == flagged["flags"]
    command = flagged["flags"]["vllm"]["command"]
    assert f"--tensor-parallel-size {flagged['tensor_parallel_size']}" in command and "--max-num-seqs 16" in command
    text = run(*asked, "--details", "--flags", "all").output
    assert text.count("\n# ") >= 5 and f"vllm serve {plain['checkpoint']}" in text
    stack = text.split("\nSTACK\n")[1].split("\n\n")[0]
    assert plain["stack"]["line"] in " ".join(stack.split())
    assert "LAUNCH FLAGS" not in run(*asked).output


def test_where_nothing_holds_it_there_is_nothing_to_launch(run) -> None:  # type: ignore[no-untyped-def]
    asked = ("recommend", "--model", "405b", "--instances", "aws/g5.xlarge", "--flags", "vllm")
    found = json.loads(run(*asked, "--json").output)
    assert found["flags"] is None and found["stack"] is None
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
def test_build_has_them_in_json_and_below_its_text(run, here: Path) -> None:  # type: ignore[no-untyped-def]
    (here / "s.yaml").write_text("models: [8b, 70b]\nworkloads: rag\ntiers: [8, 32]\nflags: [vllm, sglang]\n")
    asked = ("build", "--scenario", "s.yaml", "--as-of", "2026-11-20", "--format", "json,md")
    text = run(*asked, "--name", "a").output
    assert text.count("LAUNCH FLAGS") == 2 and text.count("vllm serve") == 2 and text.count("Stack: ") == 2
    cells = json.loads((here / "output" / "a.json").read_text())["cells"]
    assert [cell["tier"] for cell in cells if cell["flags"]] == [32, 32]
    assert all(list(cell["flags"]) == ["vllm", "sglang"] for cell in cells if cell["flags"])
    assert json.loads(run(*asked, "--name", "a", "--json").stdout)["cells"] == cells
    (here / "s.yaml").write_text("models: [8b, 70b]\nworkloads: rag\ntiers: [8, 32]\n")
    assert "LAUNCH" not in run(*asked, "--name", "b").output
    assert (here / "output" / "a.md").read_bytes() == (here / "output" / "b.md").read_bytes()
    assert "flags" not in json.loads((here / "output" / "b.json").read_text())["cells"][0]
