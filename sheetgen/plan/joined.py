"""Questions of services that are worked out together, as numpy takes little longer for many loads than for few."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from sheetgen.question.market import Candidate
from sheetgen.question.sheet_question import Load, Question

MOST_LOADS = 200  # of one question, about: the columns of more do not stay in the CPU's caches
Slot = TypeVar("Slot")


def on_machines(question: Question, machines: Collection[Candidate]) -> Question:
    """A question on some of its candidates alone."""
    names = {(machine.instance, machine.purchase) for machine in machines}
    candidates = tuple(machine for machine in question.candidates if (machine.instance, machine.purchase) in names)
    ids = {machine.gpu.id for machine in candidates}
    gpus = tuple(gpu for gpu in question.gpus if gpu.id in ids)
    return replace(question, candidates=candidates, gpus=gpus, n_there=0)


def joined(questions: Iterable[tuple[list[Slot], Question]]) -> Iterator[tuple[list[Slot], Question]]:
    """The questions, each with what its loads are of: as one those that differ only in models, workloads and loads."""
    alike: list[tuple[tuple[object, ...], list[Slot], list[Question]]] = []
    for slots, question in questions:
        same = _same(question)
        for other, many, parts in alike:
            if other == same and len(many) + len(slots) <= MOST_LOADS:
                many += slots
                parts.append(question)
                break
        else:
            alike.append((same, [*slots], [question]))
    for _, many, parts in alike:
        yield many, _as_one(parts)


def _same(question: Question) -> tuple[object, ...]:
    """All that questions have in common that can be put as one: two are the same where they hold equal facts."""
    runs_kv = {
        (model.kv_cache_dtype, gpu.id): question.engine.runs_kv(gpu, model.kv_cache_dtype, [model.model])
        for model in question.models
        for gpu in question.gpus
    }
    return (
        {load.requests_per_second > 0 for load in question.loads},
        question.layouts,
        question.has_latent_entries,
        question.filters,
        question.settings,
        question.discounts,
        [(machine.instance, machine.purchase, machine.usd_per_hour) for machine in question.candidates],
        question.engine,
        runs_kv,
        question.measurements,
        question.overrides,
        question.draft,
    )


def _as_one(parts: list[Question]) -> Question:
    """Questions that have all but their models, workloads and loads in common as one."""
    models = tuple(model for part in parts for model in part.models)
    workloads = tuple(workload for part in parts for workload in part.workloads)
    loads, n_models, n_workloads = list[Load](), 0, 0
    for part in parts:
        for load in part.loads:
            places = {"model": load.model + n_models, "workload": load.workload + n_workloads}
            loads.append(replace(load, tier=len(loads), **places))
        n_models, n_workloads = n_models + len(part.models), n_workloads + len(part.workloads)
    tiers = tuple(range(1, len(loads) + 1))
    return replace(parts[0], models=models, workloads=workloads, loads=tuple(loads), tiers=tiers)
