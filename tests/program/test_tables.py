"""Programs worked out by the runtime: whole questions, and deployments, give in node what they give in Python."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from node import run
from option_values import Options
from random_calls import as_json

from sheetgen.answer.sheet_facts import grid_of
from sheetgen.answer.solution import Choice
from sheetgen.answer.solve import solve, tables
from sheetgen.api import RESULTS, TEXTS, size_columns
from sheetgen.catalog import Catalog
from sheetgen.program.declared import Again, Axes, Program, Repeat, by_name
from sheetgen.program.grid import Grid
from sheetgen.program.javascript import print_programs
from sheetgen.program.row_program import DEPLOYMENT, ROW
from sheetgen.program.sheet_program import CHOICE, CHOSEN, SHEET
from sheetgen.question.deployment import complete
from sheetgen.question.sheet_question import ask

Facts = dict[str, Any]  # of a question or of rows, as JSON has them
ANSWER = Path(__file__).with_name("question.js")
CATALOG = Catalog()
PROGRAMS = {"sheet": SHEET, "choice": Program(SHEET.axes, (CHOICE,)), "chosen": CHOSEN, "deployment": DEPLOYMENT}
FOUR = {"models": "8b,70b,405b,deepseek-v3"}
QUESTIONS: list[Options] = [
    FOUR,
    {**FOUR, "survive": "machine"},
    {**FOUR, "survive": "zone", "headroom": 0.2, "tiers": "3,20,400,3000"},
    {**FOUR, "purchase": "reserved-1yr"},
    {**FOUR, "weight_dtype": "fp8", "kv_cache_dtype": "fp8"},
    {**FOUR, "engine": "sglang"},
    {**FOUR, "speed_targets": "off"},
    {**FOUR, "requests_per_second": 5},
    {"models": "8b,gpt-oss-120b,gemma-3-27b"},
    {"models": "deepseek-v3,deepseek-r1", "kv_cache_dtype": "fp8"},
    {"models": "70b", "requests_per_second": 40, "survive": "replica"},
    {"models": "8b,70b", "tpot_ms": "20", "ttft_ms": "800", "confidence": 0.6},
]  # fmt: skip
# What is compared of tables, and of the answers.
CELLS: dict[Axes, tuple[str, ...]] = {
    ("model", "profile"): ("weights_bytes_per_gpu", "kv_budget_bytes_per_gpu", "activation_bytes_per_gpu", "runs"),
    ("pace", "profile"): ("charge_bytes", "steady_bytes", "batch_limit", "pipeline_stages", "fixed_step_seconds"),
    ("load", "offer"): ("monthly_usd", "n_instances", "n_replicas", "requests_per_instance"),
}
ANSWERS = (
    "offer",
    "n_instances",
    "monthly_usd",
    "runner_up",
    "tpot_seconds",
    "ttft_seconds",
    "in_flight",
    "bound_by",
    "chance",
)
DEPLOYMENTS: dict[str, list[Any]] = {
    "model": ["8b", "70b", "405b", "deepseek-v3", "gpt-oss-120b", "gemma-3-27b", "70b", "8b", "deepseek-v3", "70b"],
    "gpu": ["l40s", "h100", "h200", "h200", "h100", "a100-80gb", "b200", "h100", "b200", "h100"],
    "tensor_parallel_size": [1, 4, 8, 8, 1, 2, 2, 1, 8, 1],
    "pipeline_parallel_size": [1, 1, 2, 1, 1, 1, 1, 1, 1, 2],
    "weight_dtype": ["bf16", "bf16", "bf16", "fp8", "auto", "bf16", "fp8", "fp8", "fp8", "bf16"],
    "kv_cache_dtype": ["auto", "auto", "auto", "auto", "auto", "auto", "fp8", "auto", "fp8", "auto"],
    "engine": ["vllm", "vllm", "vllm", "sglang", "vllm", "vllm", "sglang", "vllm", "vllm", "vllm"],
    "context_tokens": [8192, 16384, 32768, 65536, 131072, 8192, 2048, 1000, 16384, 131072],
    "concurrent_requests": [4, 64, 32, 100, 8, 300, 128, 1, 1000, 2],
}
# Deployments whose results Python alone searches for.
SEARCHED = {"max_context_tokens_that_fit", "min_gpus"}


def facts_of(program: str, grid: Grid) -> Facts:
    """A grid in which nothing is worked out yet."""
    return {
        "program": program,
        "sizes": grid.sizes,
        "places": [[*axes, positions.tolist()] for axes, positions in grid.places.items()],
        "columns": [
            column(name, axes, values, grid) for name, columns in grid.columns.items() for axes, values in columns
        ],
    }


def column(name: str, axes: Axes, values: Any, grid: Grid) -> Facts:
    every = numpy.broadcast_to(values, [grid.sizes[axis] for axis in axes]).ravel()
    return {"name": name, "axes": axes, "data": as_json((every if every.dtype.kind == "U" else every + 0.0).tolist())}


def case(options: Options) -> Facts:
    """A question's facts, and what Python answers."""
    question = ask(CATALOG, {name: value for name, value in options.items() if name != "speed_targets"})
    if options.get("speed_targets") == "off":  # as typed in a workbook: no option of a command
        question = replace(question, settings=replace(question.settings, speed_targets=0))
    solved = tables(question)
    candidates = [solved.candidate(offer) for offer in range(len(solved.offers))]
    return {
        **facts_of("sheet", grid_of(question, solved.profiles, solved.offers)),
        "gpu": [solved.profiles[offer.profile].gpu for offer in solved.offers],
        "provider": [candidate.provider for candidate in candidates],
        "over": [bool(load.over_limit) for load in question.loads],
        "has_targets": bool(question.settings.speed_targets),
        "cells": [
            column(name, axes, solved.grid.read(name, axes), solved.grid)
            for axes, names in CELLS.items()
            for name in names
        ],
        "answers": [answer_of(choice) for choice in solve(question).choices],
    }


def answer_of(choice: Choice) -> dict[str, Any]:
    """The compared values of a choice: nothing of it where nothing holds the load, and what no targets would take."""
    answer = {} if choice.offer is None else {name: as_json(getattr(choice, name)) for name in ANSWERS}
    if choice.without_targets:
        offer, n_instances, usd = choice.without_targets
        answer |= {"without_targets_offer": offer, "without_targets_n_instances": n_instances}
        answer["without_targets_monthly_usd"] = usd
    return answer


def compared(cases: list[Facts], source: str = "") -> list[Facts]:
    """By question: cells and answers compared, and which are not the same."""
    done: list[Facts] = run(ANSWER, source or print_programs(PROGRAMS), cases)
    return done


@pytest.mark.parametrize(
    "questions", [QUESTIONS[7:9], pytest.param(QUESTIONS, marks=pytest.mark.long)], ids=["two", "all"]
)
def test_whole_questions(questions: list[dict[str, Any]]) -> None:
    cases = [case(options) for options in questions]
    done = compared(cases)
    for options, result in zip(questions, done, strict=True):
        print(options, {name: value for name, value in result.items() if name != "wrong"})
    assert [result["wrong"] for result in done] == [[] for _ in questions]
    assert all(result["cells"] > 300 and result["answers"] > 5 for result in done)
    assert any("without_targets_offer" in answer for facts in cases for answer in facts["answers"])


def test_another_formula_is_seen() -> None:
    """The twin that must fail: replicas are rounded down."""
    source = print_programs(PROGRAMS)
    needed = "roundUp(ratioOr(load_requests,paced_requests,0))"
    assert needed in source
    floor = needed.replace("roundUp", "Math.floor")
    [result] = compared([case(QUESTIONS[-1])], source.replace(needed, floor))
    assert len(result["wrong"]) > 20


def quantities_of(program: Program) -> list[str]:
    """The names of all that a program works out."""
    names: dict[str, None] = {}
    for table in program.tables:
        if isinstance(table, Again):
            names |= dict.fromkeys(table.keeps)
        else:
            quantities = (*table.start, *table.step) if isinstance(table, Repeat) else table.quantities
            names |= dict.fromkeys(name for name, _ in by_name(quantities))
    return list(names)


@pytest.mark.parametrize("most", [1, 40, None])
def test_steps_of_a_search_that_are_taken_together_end_where_they_end_one_by_one(most: int | None) -> None:
    """Few pairs of loads and offers take all steps at once, many some or one."""
    solved = tables(ask(CATALOG, {"models": "8b,70b", "requests_per_second": 5, "providers": "aws,lambda"}))
    held = numpy.argwhere(solved.grid.spread("monthly_usd", ("load", "offer")) > 0)[:most]
    one_by_one = [replace(table, answer=None) if isinstance(table, Repeat) else table for table in CHOSEN.tables]
    ends = []
    for of_program in (CHOSEN.tables, one_by_one):
        chosen = solved.grid.along("chosen", {"load": held[:, 0], "offer": held[:, 1]})
        chosen.work_out(*of_program)
        ends.append(
            {name: chosen.spread(name, ("chosen",)) for name in ("low_z", "high_z", "paced_at_level", "chance")}
        )
    together, apart = ends
    assert all((together[name] == apart[name]).all() for name in apart)
    assert len({*together["low_z"]}) > (len(held) > 1) * 5


def test_deployments() -> None:
    """Rows give every quantity that `size` has of them, but for the two searches."""
    n_rows = len(DEPLOYMENTS["model"])
    sized = size_columns(DEPLOYMENTS, n_rows, CATALOG)
    assert not any(sized.results["error"])
    facts = facts_of("deployment", complete(DEPLOYMENTS, n_rows, CATALOG).grid)
    names = quantities_of(DEPLOYMENT)
    cells = [column(name, ROW, sized.grid.read(name, ROW), sized.grid) for name in names]
    [result] = compared([{**facts, "cells": cells}])
    print({name: value for name, value in result.items() if name != "wrong"})
    assert result["wrong"] == []
    given = {fact["name"] for fact in facts["columns"]}
    assert set(RESULTS) - {*names, *TEXTS} - given == SEARCHED | {"chance", "short_by_bytes"}
