"""A model of like size that keeps less of each request: another model, so quality is not compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy

from sheetgen.catalog.model import Model
from sheetgen.estimate import evaluate
from sheetgen.levers.plan import Change, Facts, Planned
from sheetgen.recommend import Solution
from sheetgen.scenario.deployment import model_columns
from sheetgen.scenario.inputs import Settings
from sheetgen.scenario.question import SheetModel
from sheetgen.sizing import kv_cache
from sheetgen.units import GIB, ONE_DECIMAL

KNOWN_WELL = ("sourced", "partly_derived")  # entries whose shape was read
NO_CHAT = "embedding"  # part of the ids of models that answer nothing
# What a decoding request keeps, whole (TP 1): its growing layers, its windows, its states.
KEPT = (
    kv_cache.windowed_kv_heads_per_gpu, kv_cache.kv_bytes_per_token, kv_cache.shard_windowed_bytes_per_token,
    kv_cache.state_bytes_per_sequence, kv_cache.kv_bytes_per_sequence_steady,
)  # fmt: skip


def leaner_models(solved: Solution, rows: Sequence[int], facts: Facts) -> Iterator[Planned]:
    """The lever of each load: of the models whose total parameters are alike, the one that keeps least of it."""
    question = solved.question
    every = [m for m in question.reference.models if m.kind == "model" and m.confidence in KNOWN_WELL]
    every = [m for m in every if NO_CHAT not in m.id]  # that answer
    answers: dict[tuple[int, int], Planned] = {}
    for row in rows:
        cell = question.loads[row]
        key = (cell.model, cell.context_tokens)
        if key not in answers:
            alike = _alike(question.models[cell.model].model, every, facts.like_size_fraction, cell.context_tokens)
            answers[key] = _leanest(question.models[cell.model], alike, cell.context_tokens, question.settings)
        found = answers[key]
        change = found.change and Change(row, model=found.change.model)
        yield replace(found, row=row, change=change)


def _alike(model: Model, every: Sequence[Model], share: float, context_tokens: int) -> list[Model]:
    """Other models of like size (total parameters, which decide the weights) that take the context."""
    total = model.params.total
    return [
        m
        for m in every
        if m.id != model.id
        and abs(m.params.total / total - 1) <= share
        and (m.max_context_tokens or 0) >= context_tokens
    ]


def _leanest(model: SheetModel, alike: Sequence[Model], context_tokens: int, settings: Settings) -> Planned:
    others = [_on_sheet(m, settings) for m in alike]
    kept = kept_bytes([model, *others], context_tokens, settings)
    if not others or kept[1:].min() >= kept[0]:
        return Planned("leaner-model", 0, why_not="no model of like size in the catalog keeps less of a request")
    at = int(kept[1:].argmin())
    other = others[at]
    changed = f"{_described(model, kept[0])} to {_described(other, kept[1 + at])}"
    words = f"{other.model.name} instead"
    return Planned("leaner-model", 0, Change(0, model=other), words=words, changed=changed)


def _on_sheet(model: Model, settings: Settings) -> SheetModel:
    """A model with the precisions that the sheet asks for."""
    weight, kv = settings.weight_dtype, settings.kv_cache_dtype
    return SheetModel(
        model,
        model.weight_dtype if weight == "auto" else weight,
        model.kv_cache_dtype if kv == "auto" else kv,
        model.weight_dtype,
        model.kv_cache_dtype,
    )


def kept_bytes(models: Sequence[SheetModel], context_tokens: int, settings: Settings) -> numpy.ndarray:
    """Bytes of cache that a request of this context keeps while it is answered, by model."""
    rows = [model_columns(m.model, m.weight_dtype, m.kv_cache_dtype) for m in models]
    values: dict[str, Any] = {k: numpy.array([r[k] for r in rows], float) for k in rows[0]}
    values |= {
        "tensor_parallel_size": 1.0,
        "charged_tokens": float(context_tokens),
        "block_size": float(settings.block_size),
        "hybrid_kv_manager": float(settings.hybrid_kv_manager),
    }
    return numpy.asarray(evaluate(KEPT, values)["kv_bytes_per_sequence_steady"], float)


def _described(model: SheetModel, kept: float) -> str:
    """A model by its own numbers: parameters (10^9), and what a request keeps."""
    params = model.model.params
    active = f", {ONE_DECIMAL.text(params.active / 1e9)} B active" if params.active < params.total else ""
    size = f"{ONE_DECIMAL.text(params.total / 1e9)} B{active}"
    kv_per_request = f"{kept / GIB:,.2f} GiB of KV a request"
    return f"{model.model.name} ({size}; {model.weight_dtype} weights, {kv_per_request})"
