"""Questions that are put as one have the answers that each has by itself."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from sheetgen.answer.joined import joined, with_loads
from sheetgen.answer.picks import pick
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import tables
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import Question, ask

CATALOG = Catalog()
LOADS = {"rates": ((0.2, 0.0), (40.0, 0.0)), "at once": ((0.0, 3.0), (0.0, 700.0))}
SERVICES: tuple[dict[str, Any], ...] = (
    {"models": "llama-3.1-8b"},
    {"models": "llama-3.3-70b", "context_tokens": 30_000, "tpot_ms": 15, "ttft_ms": 900},
    {"models": "llama-3.1-405b", "context_tokens": 100_000, "tpot_ms": 8},  # only at an even chance, or nowhere
    {"models": "deepseek-v3", "kv_cache_dtype": "fp8"},
    {"models": "deepseek-v3.2", "kv_cache_dtype": "fp8"},  # whose latents an engine may keep in entries of its own
    {"models": "deepseek-v4-flash", "kv_cache_dtype": "fp8"},  # SGLang has other pools for it
    {"models": "llama-3.1-8b", "kv_cache_dtype": "nvfp4"},
    {"models": "gemma-3-27b", "kv_cache_dtype": "nvfp4"},  # no kernel takes its heads
    {"models": "gpt-oss-120b", "survive": "machine"},
    {"models": "deepseek-v3", "input_tokens": 3000, "output_tokens": 300},
    {"models": "deepseek-v3", "input_tokens": 500, "output_tokens": 900},
    {"models": "qwen3-235b-a22b", "purchase": "reserved-1yr"},
)
OF_OFFERS = ("monthly_usd", "n_instances", "n_replicas", "suitability", "pipeline_stages", "paced_requests")


def questions(engine: str) -> list[tuple[list[tuple[int, str, int]], Question]]:
    asked = []
    for (i, service), (kind, loads) in itertools.product(enumerate(SERVICES), LOADS.items()):
        options = {"context_tokens": 8192, "concurrent_requests": "1", "engine": engine} | service
        question = ask(CATALOG, {name: str(value) for name, value in options.items()})
        asked.append(([(i, kind, n) for n in range(len(loads))], with_loads(question, loads)))
    return asked


def answer(solved: Solution, row: int) -> tuple[object, ...]:
    """The pick of a load, and its quantities by instance, class and layout."""
    numbers = {
        (solved.candidate(i).instance, solved.candidate(i).purchase, solved.layout(i)): [
            str(float(solved.costs[name][row][i])) for name in OF_OFFERS
        ]
        for i in range(len(solved.offers))
    }
    picked = pick(solved.grid)[row]
    return picked and [(solved.candidate(best.offer), best.usd) for best in picked], numbers


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_each_has_the_answer_that_it_has_by_itself(engine: str) -> None:
    asked = questions(engine)
    alone = dict[tuple[int, str, int], tuple[object, ...]]()
    for slots, question in asked:
        solved = tables(question)
        alone |= {slot: answer(solved, row) for row, slot in enumerate(slots)}
    groups = [*joined(asked)]
    assert len(groups) < len(asked)
    together = dict[tuple[int, str, int], tuple[object, ...]]()
    for slots, question in groups:
        solved = tables(question)
        together |= {slot: answer(solved, row) for row, slot in enumerate(slots)}
    assert together == alone
    assert {picked is None for picked, _ in alone.values()} == {True, False}


def test_what_differs_in_more_stays_apart() -> None:
    question = with_loads(ask(CATALOG, {"models": "llama-3.1-8b", "context_tokens": "8192"}), LOADS["rates"])
    machines = tuple(replace(machine, usd_per_hour=machine.usd_per_hour / 2) for machine in question.candidates)
    others = (
        with_loads(question, LOADS["at once"]),
        replace(question, candidates=machines),
        replace(question, candidates=question.candidates[1:]),
        replace(question, engine=question.engine.model_copy(update={"context_gib": 9.0})),
        replace(question, settings=replace(question.settings, survive=1)),
        replace(question, discounts={("aws", "on-demand"): 0.5}),
    )
    assert [slots for slots, _ in joined(([i, i], q) for i, q in enumerate((question, *others, question)))] == [
        [0, 0, len(others) + 1, len(others) + 1],
        *([i, i] for i in range(1, len(others) + 1)),
    ]
