"""Values of `typed` in a scenario: every problem is told at once, each with its place and what is allowed."""

from __future__ import annotations

import datetime
from pathlib import Path

import books
import pytest
from answers import document
from cells_of import TINY
from click.testing import CliRunner
from option_values import Options

from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.cli import main
from sheetgen.errors import ScenarioError
from sheetgen.question.overrides import Overrides, Written, read_overrides
from sheetgen.question.sheet_question import Question, ask

BAD = """models: 8b
typed:
  input: {stale_after_days: 10}
  inputs:
    stale_after_days: 0
    cuda_graf_bytes: 5
    gpu_memory_utilization: 0.8
    hybrid_kv_manager: yes
  models:
    llama-3.1-8b: {n_layer: 3, n_heads: 2.5, own_kv_dtype: auto}
    llama-3.1-9b: {n_heads: 8}
  gpus:
    nvidia-h100-sxm5-80gb: {capex_date: 2026-13-01, weights_fp8: 7}
  instances: [aws]
  own_instances:
    - {provider: acme, price_usd_per_hour: -1}
"""
PROBLEMS = """3: unknown part input. Did you mean inputs?
5: stale_after_days is '0'. It must be a whole number from 1 to 10,000.
6: unknown input cuda_graf_bytes.
7: unknown input gpu_memory_utilization.
8: hybrid_kv_manager is 'yes'. It must be a whole number from 0 to 1.
10: unknown column n_layer of models. Did you mean n_layers?
10: n_heads of llama-3.1-8b is '2.5'. It must be a whole number from 1 to 1e+15.
10: own_kv_dtype of llama-3.1-8b is 'auto'. It must be one of bf16, fp16,
13: capex_date of nvidia-h100-sxm5-80gb is '2026-13-01'. It must be a date such as 2026-11-20,
13: weights_fp8 of nvidia-h100-sxm5-80gb is '7'. It must be a whole number from 0 to 2.
14: instances must hold rows by name.
16: price_usd_per_hour of your own row 1 is '-1'. It must be a number from 0 to 1,000,000.
16: own_instances has a row without type. Name it, or take it out."""
SMALL: Options = {**TINY, "models": "8b,gemma-3-27b"}


def asked(**typed: object) -> Question:
    return ask(books.catalog(), {**SMALL, "typed": typed})


def solved(**typed: object) -> Solution:
    return solve(asked(**typed))


def test_every_problem_of_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(BAD)
    result = CliRunner().invoke(main, ["build", "--scenario", str(path), "--out", str(tmp_path / "out")])
    assert result.exit_code == 1 and not (tmp_path / "out").exists()
    told = result.stderr.splitlines()
    for line, expected in zip(told, PROBLEMS.splitlines(), strict=True):
        assert line.startswith(f"{path}:{expected}"), line


def test_rows_that_the_sheet_does_not_have_are_told_with_the_nearest() -> None:
    typed = {
        "inputs": {"output_rag": 5},
        "models": {"llama-3.1-9b": {"n_heads": 8}},
        "instances": {"aws/p5.48xlrge": {"price_usd_per_hour": 3}},
        "precisions": {"fp9": {"other_bytes": 2}},
    }
    with pytest.raises(ScenarioError) as raised:
        ask(books.catalog(), {**SMALL, "typed": Written(typed, lambda loc: ".".join(map(str, loc)) + ": ")})
    assert list(raised.value.problems) == [
        "inputs.output_rag: output_rag is not an input on this sheet. Did you mean output_chat?",
        "models.llama-3.1-9b: llama-3.1-9b is not a row of models on this sheet. Did you mean llama-3.1-8b?",
        "instances.aws/p5.48xlrge: aws/p5.48xlrge is not a row of instances on this sheet. "
        "Did you mean aws/p5.48xlarge?",
        "precisions.fp9: fp9 is not a row of precisions on this sheet. Did you mean fp8?",
    ]


def test_no_price_left_is_told() -> None:
    rows = {c.instance: {"price_usd_per_hour": 0} for c in asked().candidates}
    with pytest.raises(ScenarioError, match="none has a price above 0"):
        asked(instances=rows)


def test_nothing_typed_is_the_same_question() -> None:
    assert document(solve(asked())) == document(solve(ask(books.catalog(), SMALL)))
    assert not asked().overrides and "typed" not in asked().options


def test_values_by_cell_and_as_data_again() -> None:
    day = datetime.date(2026, 5, 1)
    given = {
        "inputs": {"stale_after_days": 20},
        "instances": {"aws/p5.48xlarge": {"price_usd_per_hour": None, "price_date": day.isoformat()}},
        "own_instances": [{"provider": "acme", "type": "box", "gpu_count": 8.0}],
    }
    typed, _ = read_overrides(given)
    assert typed.value("instances", "aws/p5.48xlarge", "price_usd_per_hour", 55.04) is None
    assert typed.value("instances", "aws/p5.48xlarge", "price_date", None) == day
    assert typed.value("instances", "aws/p5.48xlarge", "gpu_count", 8) == 8
    assert typed.input("stale_after_days", 180) == 20 and typed.input("max_candidates", 120) == 120
    assert typed.data() == {**given, "own_instances": [{"provider": "acme", "type": "box", "gpu_count": 8}]}
    assert read_overrides(typed.data())[0] == typed and not Overrides()
    assert asked(**given).options["typed"] == typed.data()


def test_an_instance_without_a_price_or_of_an_unknown_gpu_is_rented_by_nobody() -> None:
    for change in (
        {"price_usd_per_hour": None},
        {"price_usd_per_hour": 0},
        {"instance_gpu": "h1000"},
        {"gpu_count": None},
    ):
        question = asked(instances={"aws/g6e.xlarge": change})
        assert "aws/g6e.xlarge" not in [c.instance for c in question.candidates]
        assert "aws/g6e.xlarge" in [c.instance for c in question.rows], "the workbook lists it still"
        assert len(question.rows) == len(question.candidates) + 1
        assert question.gpus == asked().gpus


def test_capital_letters_of_a_gpu_count_for_nothing() -> None:
    shouted = {"instance_gpu": "NVIDIA-L40S-48GB"}
    assert asked(instances={"aws/g6.xlarge": shouted}).candidates[1].gpu.id == "nvidia-l40s-48gb"


def test_a_precisions_bytes_change_every_model_that_uses_it() -> None:
    before, after = solved(), solved(precisions={"bf16": {"kv_dtype_bytes": 4}})
    ratio = after.models["kv_bytes_per_token"] / before.models["kv_bytes_per_token"]
    assert ratio.tolist() == [2, 2]


def test_own_weights_change_what_auto_stands_for() -> None:
    question = asked(models={"llama-3.1-8b": {"own_weight_dtype": "fp8", "own_kv_dtype": "fp8_e4m3"}})
    assert [m.auto_weight_dtype for m in question.models] == ["fp8", "bf16"]
    assert [m.weight_dtype for m in question.models] == ["fp8", "fp8"], "the second's are those recommended"
    assert question.models[0].kv_cache_dtype == "fp8"
    forced = ask(books.catalog(), {**SMALL, "weight_dtype": "bf16", "typed": question.overrides})
    assert forced.models[0].weight_dtype == "bf16" and forced.models[0].auto_weight_dtype == "fp8"


def test_a_longer_limit_lets_a_context_in() -> None:
    over = [c.over_limit for c in asked(models={"llama-3.1-8b": {"max_context_tokens": 4096}}).loads]
    assert over == [False, False, True, True, False, False, False, False]


def test_batch_limits_do_not_follow_a_typed_memory() -> None:
    before = solved()
    after = solved(gpus={"nvidia-l4-24gb": {"gpu_memory_bytes": 90e9}})
    position = [g.id for g in after.question.gpus].index("nvidia-l4-24gb")
    assert after.gpus["gpu_memory_bytes"][position] == 90e9 == after.question.gpus[position].memory.engine_bytes
    for name in ("max_num_seqs", "max_num_batched_tokens"):
        assert (after.gpus[name] == before.gpus[name]).all()
