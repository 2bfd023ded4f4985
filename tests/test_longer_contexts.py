"""The longer contexts that default targets, which grow with the context, make cheaper: a short list."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
from amounts import amount
from answers import recommend_text
from option_values import Options

import sheetgen
from sheetgen.answer.levers.changes import with_context
from sheetgen.answer.picks import pick
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve, tables
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import Load, Question, ask, with_stated

CATALOG = Catalog()
SHORTEST, LONGEST, STEP = 2048, 65_536, amount(8192, 512)
N_MODELS = amount(2, 40)
AT_ONCE = (1, 4, 32, 128)
PER_SECOND = (0.5, 4.0, 500 * 20 * 0.12 / 3600 * 1.3)  # the last of 500 people who ask 20 times a day
OPTIONS = {"tpot_ms": "tpot", "ttft_ms": "ttft"}
NEAR_TIE = 0.05
ALMOST = 1 - 1e-9


class Month(NamedTuple):
    """The very cheapest of a load at a context; usd is infinite where nothing serves it."""

    context_tokens: int
    usd: float
    rented: str


class Fall(NamedTuple):
    """A load whose month falls from one context to the next."""

    model: str
    load: Load
    shorter: Month
    longer: Month

    def __str__(self) -> str:
        change = " -> ".join(f"{step.context_tokens:,} ${step.usd:,.0f} {step.rented}" for step in self[2:])
        rate = self.load.requests_per_second
        load = f"{rate:.3g} a second" if rate else f"{self.load.concurrent_requests:g} at once"
        return f"{self.model}, {load}: {change} ({1 - self.longer.usd / self.shorter.usd:.1%})"


def swept(model: str, contexts: Sequence[int], **options: str) -> tuple[Question, Solution]:
    """A model under every load at every context, all in one question, and its tables."""
    question = ask(CATALOG, {"models": model, "context_tokens": SHORTEST, "concurrent_requests": 1, **options})
    (workload,), (load,) = question.workloads, question.loads
    shapes = [with_context(workload, context) for context in contexts]
    workloads = with_stated(shapes, question.stated, question.settings, question.reference)
    of_context = [
        replace(load, workload=i, context_tokens=workload.context_tokens, input_tokens=workload.input_tokens)
        for i, workload in enumerate(workloads)
    ]
    loads = [replace(workload, concurrent_requests=requests) for requests in AT_ONCE for workload in of_context]
    loads += [
        replace(workload, concurrent_requests=0, requests_per_second=rate)
        for rate in PER_SECOND
        for workload in of_context
    ]
    question = replace(question, workloads=workloads, loads=tuple(loads))
    return question, tables(question)


def months_of(model: str, contexts: Sequence[int], **options: str) -> dict[Load, list[Month]]:
    """By load the months of all contexts; an even chance's, where nothing serves one at the confidence, are none."""
    question, solved = swept(model, contexts, **options)
    levels, picks = solved.grid.spread("level_z", ("load",)), pick(solved.grid)
    months: dict[Load, list[Month]] = {}
    for load, pair, level in zip(question.loads, picks, levels, strict=True):
        usd, rented = math.inf, "-"
        if pair is not None and level:
            least = pair[1]
            usd = least.usd
            layout = solved.layout(least.offer)
            rented = f"{least.n_instances}x {solved.candidate(least.offer).instance} ({layout.words()})"
        anywhere = replace(load, workload=0, context_tokens=0, input_tokens=0)
        months.setdefault(anywhere, []).append(Month(load.context_tokens, usd, rented))
    return months


def falls_of(model: str, contexts: Sequence[int], **options: str) -> Iterator[Fall]:
    """The steps to a longer context that make the very cheapest cheaper."""
    for load, months in months_of(model, contexts, **options).items():
        for shorter, longer in itertools.pairwise(months):
            if longer.usd < shorter.usd * ALMOST and shorter.usd < math.inf:
                yield Fall(model, load, shorter, longer)


def contexts_of(longest: int) -> range:
    return range(SHORTEST, min(longest, LONGEST) + 1, STEP)


def drawn_models() -> list[tuple[str, int]]:
    """Models by a seed, with their longest context."""
    models = [model for model in CATALOG.models() if (model.max_context_tokens or 0) >= 8192 and model.kind != "draft"]
    return [(model.id, model.max_context_tokens or 0) for model in random.Random(34).sample(models, 40)[-N_MODELS:]]


@pytest.mark.parametrize("model,longest", [("gemma-3-27b", 131_072), *drawn_models()])
def test_where_a_longer_context_is_cheaper_the_answer_says_so(
    model: str, longest: int, record_property: Callable[[str, object], None]
) -> None:
    """And the targets that it is served within do the same for the shorter one; in a near tie the choice may stay."""
    for fall in falls_of(model, contexts_of(longest)):
        record_property("counted", f"longer is cheaper: {fall}")
        if fall.longer.usd > (1 - NEAR_TIE) * fall.shorter.usd:
            continue
        load = {name: getattr(fall.load, name) for name in ("concurrent_requests", "requests_per_second")}
        asked = {"model": model, "context": fall.shorter.context_tokens, **{k: v for k, v in load.items() if v}}
        cheaper = sheetgen.recommend(**asked)["cheaper_longer"]
        assert cheaper and cheaper["monthly_usd"] < fall.shorter.usd, fall
        targets = {option: cheaper[f"{figure}_target_ms"] for option, figure in OPTIONS.items()}
        at_its_targets = sheetgen.recommend(**asked, **targets)
        assert at_its_targets["cheapest"]["monthly_usd"] <= cheaper["monthly_usd"] / ALMOST, fall
        assert at_its_targets["cheaper_longer"] is None, "of stated targets a longer context is never cheaper"


@pytest.mark.parametrize("context,is_cheaper", [("16k", True), ("48k", False)])
def test_the_terminal_says_where_a_longer_context_is_cheaper(context: str, is_cheaper: bool) -> None:
    solved = solve(ask(CATALOG, {"models": "gemma-3-27b", "context_tokens": context, "concurrent_requests": 1}))
    assert ("as default targets grow" in recommend_text(solved)) is is_cheaper


@pytest.mark.parametrize("model,longest", drawn_models())
def test_within_stated_targets_no_longer_context_is_cheaper(model: str, longest: int) -> None:
    assert not list(falls_of(model, contexts_of(longest), tpot_ms="60", ttft_ms="20000"))


def test_half_and_twice_a_context_are_what_is_asked_of_them() -> None:
    usual: Options = {"model": "70b", "concurrent_requests": 32}
    (move,) = (m for m in sheetgen.recommend(**usual, context="8k")["moves"] if m["input"] == "context_tokens")
    for end in ("low", "high"):
        assert move[f"{end}_usd"] == sheetgen.recommend(**usual, context=int(move[end]))["monthly_usd"]
