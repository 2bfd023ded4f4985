"""Questions that are worked out together, as numpy takes little longer for many loads than for few."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from sheetgen.question.sheet_question import Question

MOST_LOADS = 200  # of one question: the columns of more do not stay in the CPU's caches
Slot = TypeVar("Slot")


def with_loads(question: Question, loads: Iterable[tuple[float, float]]) -> Question:
    """A question with loads of so many requests a second, or at once."""
    load = replace(question.loads[0], users=None)
    many = (replace(load, requests_per_second=rate, concurrent_requests=at_once) for rate, at_once in loads)
    return replace(question, loads=tuple(many))


def joined(questions: Iterable[tuple[list[Slot], Question]]) -> Iterator[tuple[list[Slot], Question]]:
    """Questions of one model and workload, each with what its loads are of: as one those that differ in nothing but
    these."""
    alike: list[tuple[tuple[object, ...], list[Slot], list[Question]]] = []
    for slots, question in questions:
        facts = _facts(question)
        room = (group for group in alike if group[0] == facts and len(group[1]) + len(slots) <= MOST_LOADS)
        if (group := next(room, None)) is None:
            alike.append(group := (facts, [], []))
        group[1].extend(slots)
        group[2].append(question)
    for _, many, parts in alike:
        models = tuple(part.models[0] for part in parts)
        workloads = tuple(part.workloads[0] for part in parts)
        loads = (replace(load, model=i, workload=i) for i, part in enumerate(parts) for load in part.loads)
        yield many, replace(parts[0], models=models, workloads=workloads, loads=tuple(loads))


def _facts(question: Question) -> tuple[object, ...]:
    """All that the columns of a question follow from but its model, its workload and its loads' requests."""
    (model,) = question.models
    return (
        {load.requests_per_second > 0 for load in question.loads},
        question.layouts,
        # A precision of the KV cache is kept by a kernel that takes all models.
        [kernel.takes(model.model) for kernel in question.engine.kv_kernels],
        question.filters,
        question.settings,
        question.discounts,
        [(machine.instance, machine.purchase, machine.usd_per_hour) for machine in question.candidates],
        question.engine,
        question.measurements,
        question.overrides,
        question.draft,
    )
