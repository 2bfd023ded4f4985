"""Where a recommendation breaks: its most requests by context are what the sizing engine says of the same hardware."""

from __future__ import annotations

from functools import cache

import pytest
from answers import record_for

import sheetgen
from sheetgen.answer.answer_record import CellRecord
from sheetgen.answer.replica_bills import held_per_replica
from sheetgen.answer.solution import Fit, Solution, headline_rows
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import ask
from sheetgen.report.fingerprints import longest_fit
from sheetgen.report.page import NONE

MODELS = "8b,70b,405b,deepseek-v3,gpt-oss-120b,qwen3.6-27b"


@cache
def solved(**more: str) -> Solution:
    return solve(ask(Catalog(), {"models": MODELS, "as_of": "2026-11-20", **more}))


def cells_of(one: Solution) -> tuple[CellRecord, ...]:
    return record_for(one, ()).headline_cells


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "more", [{}, {"kv_cache_dtype": "fp8"}, {"prefix_cache_hit_fraction": "0.35"}, {"survive": "machine"}]
)
def test_the_load_answered_is_on_the_curve(more: dict[str, str]) -> None:
    one = solved(**more)
    for row, cell in zip(headline_rows(one), cells_of(one), strict=True):
        choice = one.choices[row]
        held = choice.n_replicas * choice.sequences_per_replica
        assert cell.breaks is not None and cell.breaks.n_requests == held >= cell.requests
        assert cell.breaks.requests_by_context[cell.context_tokens] == held
        many = list(cell.breaks.requests_by_context.values())
        assert many == sorted(many, reverse=True)


def test_the_longest_context_is_the_last_that_holds_the_load() -> None:
    one = solved()
    for row, cell in zip(headline_rows(one), cells_of(one), strict=True):
        fit = Fit.of(one, row)
        assert fit is not None and cell.breaks is not None
        longest = cell.breaks.context_tokens
        limit = one.question.models[fit.model].model.max_context_tokens
        at, beyond = (n * fit.choice.n_replicas for n in held_per_replica(fit, [longest, longest + 1]))
        assert at >= cell.requests and (longest == limit or beyond < cell.requests)


@pytest.mark.some(2)
@pytest.mark.parametrize("context", [3_000, 16_384, 50_000, 131_072])
def test_size_says_the_same(context: int) -> None:
    """`size`, which takes predictions at their word, holds as many on the same GPUs, where it is not capped."""
    one = solved(confidence="0.5")
    compared = 0
    for row in headline_rows(one):
        fit = Fit.of(one, row)
        assert fit is not None
        if fit.choice.pipeline_parallel_size > 1:
            continue
        held = held_per_replica(fit, [context])[0]
        point = {
            "weight_dtype": one.question.models[fit.model].weight_dtype,
            "model": one.question.models[fit.model].model.id,
            "gpu": fit.candidate.gpu.id,
            **fit.layout._asdict(),
            "context_tokens": context,
        }
        assert [sheetgen.size(**point, concurrent_requests=held + more)["fits"] for more in (0, 1)] == [True, False]
        compared += 1
    assert compared >= 4


def test_nothing_fits_is_no_curve() -> None:
    one = solve(ask(Catalog(), {"models": "405b", "gpus": "l4", "as_of": "2026-11-20"}))
    (cell,) = cells_of(one)
    assert cell.breaks is None and longest_fit(one.question, cell) == NONE
