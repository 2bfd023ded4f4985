"""The question that What-if's page asks, for `solve` to answer: one model, the cases of context and users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sheetgen.book.sheets import number
from sheetgen.book.what_if_choices import (
    AUTO,
    CASES,
    CHOICES,
    LOADS,
    NO_MODEL,
    WhatIf,
    case_context_tokens,
    case_requests,
    instances,
    offered,
)
from sheetgen.catalog.model import Model
from sheetgen.question.overrides import overridden_model
from sheetgen.question.sheet_question import Load, Question, SheetModel, at_settings
from sheetgen.report.sentences import OK, choices_state, model_lacks
from sheetgen.units import DTYPE_ALIASES, DTYPES, PLAIN_LAYOUTS, PUBLISHED

NOTHING = {"max_context_tokens": 0}  # of a model that cannot be sized: it takes no context at all


def asked_of(question: Question, picked: Mapping[str, Any], one: WhatIf) -> Question:
    """The question of the page: one model, the cases of context and users, the chosen GPU before the others.

    What stands in no list is the first of it, as in the workbook; then, and where facts are missing, the model takes
    no context at all, so that nothing is recommended. Layouts are those of the workbook: data-parallel ranks are tried
    where a model of its own has experts.
    """
    models, gpus, factors = one.models, one.gpus, one.factors
    known = {name: picked[name] in of for name, of in offered(question, models, gpus).items()}
    for name, otherwise in (("weight_dtype", PUBLISHED), ("kv_cache_dtype", AUTO)):
        asked_dtype = picked[name] if known[name] else otherwise
        picked = {**picked, name: PUBLISHED if name == "weight_dtype" and asked_dtype == AUTO else asked_dtype}
    settings = replace(
        question.settings,
        **{name: DTYPE_ALIASES.get(picked[name], picked[name]) for name in ("weight_dtype", "kv_cache_dtype")},
    )
    overrides = question.overrides
    own = [*question.models, *(_own_model(row, models[0]) for row in overrides.own_models if row.get("model"))]
    chosen = next((m for m in own if m.model.name == picked["model"]), None)
    if chosen is None:
        found = next((m for m in models if m.name == picked["model"]), None)
        if found is None and known["model"]:
            chosen = _own_model({"model": NO_MODEL}, models[0])
        else:
            chosen = own[0] if found is None else _sheet_model(found, found.weight_dtype, found.kv_cache_dtype)
            if found is not None:
                chosen = replace(chosen, recommended_weight_dtype=question.recommended_weights(found))
    shape = chosen.model.shape()
    state, layers = state_of(picked, known, shape), shape["n_layers"]
    model = chosen.model if state == OK else overridden_model(chosen.model, NOTHING | {"n_layers": layers or 1})
    chosen = at_settings(replace(chosen, model=model), settings)
    asked_for = str(picked["hardware"])  # an instance stands for its GPU, whether or not it has a price
    gpu_id = next((gpu for name, gpu in instances(question) if name.lower() == asked_for.lower()), asked_for)
    gpu = next((g for g in (*question.gpus, *gpus) if g.id.lower() == str(gpu_id).lower()), gpus[0])
    limit, answer = int(chosen.model.max_context_tokens or 0), int(picked["answer_tokens"] or 0)
    scaled = [int(case_context_tokens(number(picked["context_tokens"]), f, limit, answer)) for f in factors["context"]]
    workloads = tuple(
        question.workloads[0].model_copy(
            update={
                "id": case,
                "name": case,
                "input_tokens": max(context - answer, 0),
                "output_tokens": answer,
                "tpot_target_ms": picked["tpot_ms"] or None,
                "ttft_target_ms": picked["ttft_ms"] or None,
            }
        )
        for case, context in zip(CASES, scaled, strict=True)
    )
    has_ranks = len(question.layouts) > len(PLAIN_LAYOUTS)
    tiers = tuple(int(case_requests(number(picked["users"]), f)) for f in factors["users"])
    cells = tuple(Load(0, c, u, scaled[c], max(scaled[c] - answer, 0), tiers[u], scaled[c] > limit) for c, u in LOADS)
    return replace(
        question,
        models=(chosen,),
        workloads=workloads,
        tiers=tiers,
        loads=cells,
        headline=(1, 1),
        gpus=(gpu, *question.gpus),
        settings=settings,
        candidates=tuple(replace(c, tries_ranks=c.tries_ranks and has_ranks) for c in question.candidates),
    )


def _sheet_model(model: Model, weight_dtype: str, kv_cache_dtype: str) -> SheetModel:
    return SheetModel(model, weight_dtype, kv_cache_dtype, weight_dtype, kv_cache_dtype, weight_dtype)


def _own_model(row: Mapping[str, Any], like: Model) -> SheetModel:
    """A model typed in a spare row: what is blank is 0, and the precisions are bf16 unless typed."""
    blank = overridden_model(like, {**dict.fromkeys(like.shape(), 0), **{f"checkpoint_{d}": 0 for d in DTYPES}})
    facts = {name: value for name, value in row.items() if isinstance(value, (int, float))}
    model = overridden_model(blank, facts or {"n_layers": 0}).model_copy(update={"name": row["model"]})
    return _sheet_model(model, row.get("own_weight_dtype") or "bf16", row.get("own_kv_dtype") or "bf16")


def state_of(picked: Mapping[str, Any], known: Mapping[str, bool], shape: Mapping[str, float]) -> str:
    """`choices_state` of the page's choices: `known` by choice, `shape` of the model."""
    facts = model_lacks.of({name: shape[name] for name in model_lacks.inputs})
    of_load = ("users", "context_tokens", "answer_tokens", "tpot_ms", "ttft_ms")
    answered = {name: number(picked[name]) for name in of_load}
    env = {name: picked[name] for name in CHOICES} | {f"{name}_known": int(known[name]) for name in CHOICES}
    return str(choices_state.of({**env, **answered, "facts": facts}))
