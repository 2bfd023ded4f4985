"""The loads at which a recommendation breaks are the sizing engine's for the same hardware."""

from __future__ import annotations

from functools import cache

import pytest
from answers import record_for

import sheetgen
from sheetgen.answer.replica_bills import held_per_replica, longest_context
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


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "more", [{}, {"kv_cache_dtype": "fp8"}, {"prefix_cache_hit_fraction": "0.35"}, {"survive": "machine"}]
)
def test_the_load_answered_is_held(more: dict[str, str]) -> None:
    answer = solved(**more)
    for row in headline_rows(answer):
        fit, load = Fit.of(answer, row), answer.question.loads[row]
        assert fit is not None
        held = held_per_replica(fit, [load.context_tokens // 4, load.context_tokens, 4 * load.context_tokens])
        assert held == sorted(held, reverse=True)
        assert held[1] == fit.choice.sequences_per_replica >= load.requests / fit.choice.n_replicas


def test_the_longest_context_is_the_last_that_holds_the_load() -> None:
    answer = solved()
    for row in headline_rows(answer):
        fit, longest = Fit.of(answer, row), longest_context(answer, row)
        assert fit is not None and longest is not None
        limit = answer.question.models[fit.model].model.max_context_tokens
        held, beyond = (n * fit.choice.n_replicas for n in held_per_replica(fit, [longest, longest + 1]))
        requests = answer.question.loads[row].requests
        assert held >= requests and (longest == limit or beyond < requests)


@pytest.mark.some(2)
@pytest.mark.parametrize("context", [3_000, 16_384, 50_000, 131_072])
def test_size_says_the_same(context: int) -> None:
    """`size`, which takes predictions at their word, holds as many on the same GPUs, where it is not capped."""
    answer = solved(confidence="0.5")
    compared = 0
    for row in headline_rows(answer):
        fit = Fit.of(answer, row)
        assert fit is not None
        if fit.choice.pipeline_parallel_size > 1:
            continue
        held = held_per_replica(fit, [context])[0]
        point = {
            "weight_dtype": answer.question.models[fit.model].weight_dtype,
            "model": answer.question.models[fit.model].model.id,
            "gpu": fit.candidate.gpu.id,
            **fit.layout._asdict(),
            "context_tokens": context,
        }
        assert [sheetgen.size(**point, concurrent_requests=held + more)["fits"] for more in (0, 1)] == [True, False]
        compared += 1
    assert compared >= 4


def test_nothing_fits_is_no_context() -> None:
    solved = solve(ask(Catalog(), {"models": "405b", "gpus": "l4", "as_of": "2026-11-20"}))
    (cell,) = record_for(solved, ()).headline_cells
    assert cell.longest_context is None and longest_fit(solved.question, cell) == NONE
