"""What the What-if page is built with: its choices and factors as typed, all that its dropdowns offer, and whether the
choices can be answered.

A spreadsheet cannot refuse what is typed into it. Where a choice is not known it shows words, and no numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sheetgen.answer.solution import Solution, headline_rows
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.model import Model
from sheetgen.errors import ScenarioError
from sheetgen.formula import (
    formula,
    is_number,
    largest,
    round_up,
    smallest,
    where,
)
from sheetgen.question.sheet_question import Question
from sheetgen.units import DTYPE_CHOICES, TENSOR_PARALLEL_SIZES, WEIGHT_CHOICES

AUTO = "auto"
CASES = ("low", "base", "high")
# By context and users, the cases that are worked out: all together, and each of the two by itself.
LOADS = ((0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2))
BASE = LOADS.index((1, 1))
FACTORS = {"users": (0.5, 1, 2), "context": (0.5, 1, 2), "price": (0.8, 1, 1.25)}


@formula("Context of the case")
def case_context_tokens(context_tokens: Any, case_factor: Any, max_context_tokens: Any, answer_tokens: Any) -> Any:
    """The context of a case: at least the answer, and at most what the model accepts, where the base keeps to these.

    Source: context x the case's factor.
    """
    context = where(is_number(context_tokens), largest(context_tokens, 1), 1)
    least = where(answer_tokens < context, answer_tokens, context)
    scaled = largest(round_up(context * case_factor), least)
    return where(context <= max_context_tokens, smallest(scaled, max_context_tokens), scaled)


@formula("Requests at once of the case")
def case_requests(users: Any, case_factor: Any) -> Any:
    """Requests at once of a case.

    Source: requests at once x the case's factor.
    """
    return round_up(where(is_number(users), users, 0) * case_factor)


@dataclass(frozen=True)
class WhatIf:
    """picked: the page's choices by name; factors: those of the cases, by users, context and price; and what the
    dropdowns offer beside the workbook's own models and instances."""

    picked: Mapping[str, Any]
    factors: Mapping[str, tuple[float, ...]]
    models: tuple[Model, ...]
    gpus: tuple[Gpu, ...]


def what_if(solved: Solution) -> WhatIf:
    """The headline's load of the model to approve, or of the first, on the hardware recommended for it; or what was
    typed on the page."""
    question = solved.question
    m, w = question.ask or 0, question.headline[0]
    row = headline_rows(solved)[m]
    offer = solved.choices[row].offer
    hardware = question.candidates[0] if offer is None else solved.candidate(offer)
    workload, settings = question.workloads[w], question.settings
    usual = {
        "model": question.models[m].model.name,
        "hardware": hardware.instance,
        "tensor_parallel_size": AUTO,
        "weight_dtype": settings.weight_dtype,
        "kv_cache_dtype": settings.kv_cache_dtype,
        "users": question.loads[row].requests,
        "context_tokens": workload.context_tokens,
        "answer_tokens": workload.output_tokens,
        "tpot_ms": workload.tpot_target_ms,
        "ttft_ms": workload.ttft_target_ms,
    }
    picked = {name: question.overrides.input(f"whatif_{name}", value) for name, value in usual.items()}
    factors = {
        name: tuple(question.overrides.input(f"case_{name}_{case}", f) for case, f in zip(CASES, values, strict=True))
        for name, values in FACTORS.items()
    }
    if (picked["answer_tokens"] or 0) > (picked["context_tokens"] or 0):
        raise ScenarioError(
            f"What-if: the answer of {picked['answer_tokens']:,} tokens is longer than the context of "
            f"{picked['context_tokens'] or 0:,}, which holds prompt and answer. "
            "Lengthen the context, or shorten the answer."
        )
    models, gpus = question.reference.models, question.reference.gpus
    # A spreadsheet finds a name in capitals, too: the choices as the dropdowns spell them.
    lists = offered(question, models, gpus)
    spelled = {name: {str(known).lower(): known for known in reversed(of)} for name, of in lists.items()}
    picked = {name: spelled.get(name, {}).get(str(value).lower(), value) for name, value in picked.items()}
    return WhatIf(picked, factors, models, gpus)


def offered(question: Question, models: Sequence[Model], gpus: Sequence[Gpu]) -> dict[str, Sequence[Any]]:
    """What each dropdown offers, in the order in which a spreadsheet looks for it."""
    own = [row["model"] for row in question.overrides.own_models if row.get("model")]
    blank = [NO_MODEL] if len(own) < SPARE_MODELS else []
    return {
        "model": (*(m.model.name for m in question.models), *own, *blank, *(m.name for m in models)),
        "hardware": (*(g.id for g in gpus), *(g.id for g in question.gpus), *(name for name, _ in instances(question))),
        "tensor_parallel_size": (AUTO, *TENSOR_PARALLEL_SIZES),
        "weight_dtype": WEIGHT_CHOICES,
        "kv_cache_dtype": DTYPE_CHOICES,
    }


def instances(question: Question) -> list[tuple[str, str | None]]:
    """Name and GPU of each row of Prices and hardware, as typed; those too that cannot be rented."""
    overrides, found = question.overrides, []
    for one in question.rows:
        provider, kind = one.instance.split("/", 1)
        row = overrides.instances.get(one.instance, {})
        name = f"{row.get('provider', provider)}/{row.get('type', kind)}"
        found.append((name, row.get("instance_gpu", one.gpu.id)))
    own = (row for row in overrides.own_instances if row.get("type"))
    return found + [(f"{row.get('provider') or ''}/{row['type']}", row.get("instance_gpu")) for row in own]


NO_MODEL = "(your own model)"  # in the dropdown, for a blank row of Models
SPARE_MODELS = 3  # rows of one's own on Models, at least
CHOICES = ("model", "hardware", "tensor_parallel_size", "weight_dtype", "kv_cache_dtype")
