"""Longer contexts that cost less than the one asked for, as the default targets grow with the context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sheetgen.answer.answer_record import LongerContext
from sheetgen.answer.confidences import is_fallback
from sheetgen.answer.levers.changes import with_context
from sheetgen.answer.picks import Pick, pick
from sheetgen.answer.solution import Choice, Solution
from sheetgen.answer.solve import tables
from sheetgen.catalog.hardware import Workload
from sheetgen.formula import same_money
from sheetgen.question.sheet_question import TARGETS, Load, Question, with_stated

STEPS_OF_A_DOUBLING = 4  # how closely longer contexts are tried
DOUBLINGS = 4  # how far: beyond 16 times a context nobody compares


def cheaper_longer(solved: Solution, rows: Iterable[int]) -> dict[int, LongerContext]:
    """By load the nearest longer context that costs less at its own default targets; loads without one are left out,
    and those that are answered at an even chance."""
    question = solved.question
    asked = [(row, shape) for row in rows if _grows(solved, row) for shape in _longer(question, row)]
    if not asked:
        return {}
    workloads = tuple(dict.fromkeys(shape for _, shape in asked))
    places = {shape: w for w, shape in enumerate(workloads)}
    loads = tuple(_at_context(question.loads[row], places[shape], shape) for row, shape in asked)
    others = tables(replace(question, workloads=workloads, loads=loads, headline=(0, 0)))
    nearest: dict[int, LongerContext] = {}
    for place, ((row, shape), pair) in enumerate(zip(asked, pick(others.grid), strict=True)):
        if row in nearest or pair is None or is_fallback(others, place):
            continue
        if _costs_less(pair, solved.choices[row]):
            best = pair[0]
            instance = others.candidate(best.offer).instance
            targets = (shape.tpot_target_ms, shape.ttft_target_ms)
            nearest[row] = LongerContext(shape.context_tokens, instance, best.n_instances, best.usd, *targets)
    return nearest


def _grows(solved: Solution, row: int) -> bool:
    """True where a load is served within targets of which at least one follows from the context."""
    question, workload = solved.question, solved.workload_of(row)
    is_default = any(workload.id not in question.stated[option] for option in TARGETS)
    is_served = solved.choices[row].offer is not None and not is_fallback(solved, row)
    return bool(question.settings.speed_targets) and is_default and is_served


def _longer(question: Question, row: int) -> Iterator[Workload]:
    """The load's workload at longer contexts that its model accepts, with their own targets."""
    workload, longest = question.workload_of(row), question.model_of(row).model.max_context_tokens or 0
    steps = range(1, STEPS_OF_A_DOUBLING * DOUBLINGS + 1)
    contexts = (int(workload.context_tokens * 2 ** (step / STEPS_OF_A_DOUBLING)) for step in steps)
    shapes = [with_context(workload, context) for context in contexts if context <= longest]
    yield from with_stated(shapes, question.stated, question.settings, question.reference)


def _at_context(load: Load, place: int, shape: Workload) -> Load:
    return replace(load, workload=place, context_tokens=shape.context_tokens, input_tokens=shape.input_tokens)


def _costs_less(pair: tuple[Pick, Pick], choice: Choice) -> bool:
    """True where both the choice and the cheapest cost less: a near tie alone may tip the choice."""
    best, least = pair
    assert choice.cheapest is not None
    months = (best.usd, choice.monthly_usd), (least.usd, choice.cheapest.usd)
    return all(other < own and not same_money(other, own) for other, own in months)
