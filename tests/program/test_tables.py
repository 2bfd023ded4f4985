"""Tables of formulas evaluated by the runtime: whole questions give in node what they give in Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy
import pytest
from node import run
from random_calls import as_json
from sheetgen.estimate import PACE

from sheetgen.catalog import Catalog
from sheetgen.program.javascript import TableOfFormulas, print_tables
from sheetgen.recommend import choice, solve, tables
from sheetgen.recommend.solution import TABLES, Grid, Solution, by_name
from sheetgen.scenario.question import ask
from sheetgen.sheet.book.matrices import held_inside
from sheetgen.sizing import parallelism, rates, speed

STRIDE = 64  # batches of 1 to 64 requests, or of so many times 64, are tried

ANSWER = Path(__file__).with_name("question.js")
CATALOG = Catalog()
FOUR = {"models": "8b,70b,405b,deepseek-v3"}
QUESTIONS: list[dict[str, Any]] = [
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
    {"models": "8b,70b", "tpot_ms": "20", "ttft_ms": "800"},
]  # fmt: skip
# What is compared of tables, and of the answers.
CELLS = {
    ("model", "profile"): ("weights_bytes_per_gpu", "kv_budget_bytes_per_gpu", "activation_bytes_per_gpu", "runs"),
    ("pace", "profile"): ("charge_bytes", "steady_bytes", "batch_limit", "pipeline_stages", "fixed_step_seconds"),
    ("load", "offer"): ("monthly_usd", "n_instances", "n_replicas", "requests_per_instance", "sure_sequences"),
}
ANSWERS = ("offer", "n_instances", "monthly_usd", "runner_up", "tpot_seconds", "ttft_seconds", "in_flight", "bound_by")
OF_HELD = {"stages": "pipeline_stages", "offered": "instance_month_usd"}  # rows of held_inside


def program() -> dict[str, TableOfFormulas]:
    """The tables of a sheet and those of the choice and of speed, as the printer takes them."""
    declared = {name: TableOfFormulas(axes, tuple(by_name(formulas))) for name, (axes, formulas) in TABLES.items()}
    limits = declared["limits"]
    chosen = {
        "per_replica": (parallelism.requests_per_replica,),
        "pace": PACE,
        "replica_rate": (rates.replica_requests_per_second,),
        "next": (rates.next_in_flight,),
        "secant": (rates.secant_in_flight,),
        "rate": (("batch_requests", rates.mean_batch_requests), *PACE[1:], rates.in_flight_at_peak),
    }
    untouched = (("untouched_fraction", speed.untouched_fraction),)
    return {
        **declared,
        "limits": limits._replace(rows="step"),
        "untouched": TableOfFormulas(("model", "layout", "step"), untouched),
        "held": TableOfFormulas(("load",), (("held_inside", held_inside),), "offer"),
        "choice": TableOfFormulas(("load",), (*choice.STEPS, ("cheapest_position", choice.cheapest_position)), "offer"),
        **{name: TableOfFormulas(("chosen",), tuple(by_name(formulas))) for name, formulas in chosen.items()},
    }


def facts_of(question: Any) -> tuple[Solution, list[Any]]:
    """The tables of a question, and the columns that its grid was given from outside formulas."""
    given, depth = [], []
    put, evaluate = Grid.put, Grid.evaluate

    def record(self: Grid, axes: Any, columns: Mapping[str, Any]) -> None:
        put(self, axes, columns)
        if not depth:
            given.extend((name, *self.columns[name][-1]) for name in columns)

    def inside(self: Grid, *arguments: Any, **options: Any) -> Any:
        depth.append(True)
        try:
            results = evaluate(self, *arguments, **options)
        finally:
            depth.pop()
        if "tpot_limit_seconds" in results or "ttft_limit_seconds" in results or "network_bytes_per_second" in results:
            given.extend((name, *self.columns[name][-1]) for name in results)
        return results

    with patch.object(Grid, "put", record), patch.object(Grid, "evaluate", inside):
        return tables(question), [fact for fact in given if fact[0] not in ("pipeline_parallel_size", "held_inside")]


def column(axes: tuple[str, ...], values: Any) -> dict[str, Any]:
    array = numpy.asarray(values, float)
    return {"axes": list(axes), "sides": list(array.shape), "data": as_json(array.ravel().tolist())}


def case(options: dict[str, Any]) -> dict[str, Any]:
    """A question's facts, and what Python answers."""
    question = ask(CATALOG, options)
    solved, given = facts_of(question)
    sizes = {"model": len(question.models), "gpu": len(question.gpus), "layout": len(question.layouts)}
    sizes |= {"profile": len(solved.profiles), "pace": len(question.models) * len(question.workloads)}
    sizes |= {"load": len(question.loads), "offer": len(solved.offers), "step": STRIDE}

    def sides(axes: tuple[str, ...]) -> list[int]:
        return [sizes[axis] for axis in axes]

    providers = [solved.candidate(offer).provider for offer in range(len(solved.offers))]
    answered = solve(question)
    is_rate = any(load.requests_per_second for load in question.loads)
    answers = [{name: as_json(getattr(chosen, name)) for name in ANSWERS} for chosen in answered.choices]
    return {
        "sizes": sizes,
        "places": [[near, far, numpy.asarray(where).tolist()] for (near, far), where in solved.grid.places.items()],
        "columns": [{"name": name, **column(axes, values)} for name, axes, values in given],
        "gpu": [solved.profiles[offer.profile].gpu for offer in solved.offers],
        "provider": [providers.index(provider) for provider in providers],
        "over": [bool(load.over_limit) for load in question.loads],
        "rows": choice.ROWS | ({"of_instance": choice.RANKED} if is_rate else {}),
        "held": OF_HELD,
        "secants": rates.SECANTS,
        "cells": [
            {
                "name": name,
                **column(axes, numpy.broadcast_to(solved.grid.read(name, axes), [sizes[axis] for axis in axes])),
            }
            for axes, names in CELLS.items()
            for name in names
        ],
        "answers": [None if answer["offer"] is None else answer for answer in answers],
    }


def compared(folder: Path, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By question: cells and answers compared, and which are not the same."""
    done: list[dict[str, Any]] = run(ANSWER, folder, print_tables(program()), cases)
    return done


@pytest.mark.parametrize(
    "questions", [QUESTIONS[7:9], pytest.param(QUESTIONS, marks=pytest.mark.long)], ids=["two", "all"]
)
def test_whole_questions(questions, tmp_path):
    done = compared(tmp_path, [case(options) for options in questions])
    for options, result in zip(questions, done, strict=True):
        print(options, {name: value for name, value in result.items() if name != "wrong"})
    assert [result["wrong"] for result in done] == [[] for _ in questions]
    assert all(result["cells"] > 300 and result["answers"] > 5 for result in done)


def test_another_formula_is_seen(tmp_path):
    """The twin that must fail: replicas are rounded down."""
    source = print_tables(program())
    needed = "roundUp(ratioOr(load_requests,paced_requests,0))"
    assert needed in source
    result = run(
        ANSWER, tmp_path, source.replace(needed, needed.replace("roundUp", "Math.floor")), [case(QUESTIONS[-1])]
    )
    assert len(result[0]["wrong"]) > 20
