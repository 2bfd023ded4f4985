"""The question of the what-if page as it is built, and its answer: the headline's load of the first model.

The load and others around it are worked out together: the cases of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sheetgen.catalog.engines import Engine
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.model import Model
from sheetgen.catalog.speed import SpeedConstants
from sheetgen.errors import ScenarioError
from sheetgen.formula import formula, is_number, largest, round_up, smallest, where
from sheetgen.recommend import Solution, solve
from sheetgen.scenario.deployment import engine_columns
from sheetgen.scenario.overridden import overridden_model
from sheetgen.scenario.overrides import Overrides
from sheetgen.scenario.question import Load, Question, SheetModel
from sheetgen.sheet.model import number
from sheetgen.sheet.what_if_state import NO_MODEL, OK, SPARE_MODELS, state_of
from sheetgen.units import DTYPE_ALIASES, DTYPE_CHOICES, DTYPES, TENSOR_PARALLEL_SIZES

AUTO = "auto"
NOTHING = {"max_context_tokens": 0}  # of a model that cannot be sized: it takes no context at all
CASES = ("low", "base", "high")
# By context and users, the cases that are worked out: all together, and each of the two by itself.
LOADS = ((0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2))
BASE = LOADS.index((1, 1))
FACTORS = {"users": (0.5, 1, 2), "context": (0.5, 1, 2), "price": (0.8, 1, 1.25)}
ENGINE_ON_GPU = (  # facts of a GPU that an engine decides
    "max_num_seqs", "max_num_batched_tokens", "pool_error_bytes_measured", "pool_error_bytes_elsewhere",
    "is_older_gpu", "speed_is_fitted", *SpeedConstants.model_fields,
)  # fmt: skip


@formula("Context of the case")
def case_context_tokens(context_tokens: Any, case_factor: Any, max_context_tokens: Any, answer_tokens: Any) -> Any:
    """The context of a case: at least the answer, and at most what the model accepts, where the base keeps to these.

    Source: context x the case's factor.
    """
    context = where(is_number(context_tokens), largest(context_tokens, 1), 1)
    least = where(answer_tokens < context, answer_tokens, context)
    scaled = largest(round_up(context * case_factor), least)
    return where(context <= max_context_tokens, smallest(scaled, max_context_tokens), scaled)


@formula("Requests in flight of the case")
def case_requests(users: Any, case_factor: Any, active_fraction: Any) -> Any:
    """Requests in flight of a case: the users of it who are active.

    Source: users x the case's factor x active fraction.
    """
    return round_up(where(is_number(users), users, 0) * case_factor * active_fraction)


@dataclass(frozen=True)
class WhatIf:
    """What the page is built with, its answer, and all that its dropdowns may choose.

    `solved` is of one model, three contexts and three counts of requests; its first GPU is the chosen one.
    picked: the page's choices by name; factors: those of the cases, by users, context and price.
    """

    solved: Solution
    picked: Mapping[str, Any]
    factors: Mapping[str, tuple[float, ...]]
    models: tuple[Model, ...]
    gpus: tuple[Gpu, ...]
    engines: tuple[Engine, ...]


def what_if(solved: Solution) -> WhatIf:
    """The headline's load of the first model on the hardware recommended for it, or what was typed on the page."""
    question = solved.question
    w, t = question.headline
    row = next(i for i, c in enumerate(question.loads) if (c.model, c.workload, c.tier) == (0, w, t))
    offer = solved.choices[row].offer
    hardware = question.candidates[0] if offer is None else solved.candidate(offer)
    workload, settings = question.workloads[w], question.settings
    usual = {
        "model": question.models[0].model.name,
        "hardware": hardware.instance,
        "tensor_parallel_size": AUTO,
        "weight_dtype": settings.weight_dtype,
        "kv_cache_dtype": settings.kv_cache_dtype,
        "engine": question.engine.engine,
        "users": int(round_up(question.tiers[t] / settings.active_fraction)),
        "context_tokens": workload.context_tokens,
        "answer_tokens": workload.output_tokens,
        "tpot_ms": workload.tpot_target_ms,
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
    engines = tuple(question.engine if e.engine == question.engine.engine else e for e in question.reference.engines)
    picked = as_listed(question, picked, models, gpus, engines)
    asked = asked_of(solved, picked, factors, models, gpus, engines)
    return WhatIf(solve(asked), picked, factors, models, gpus, engines)


def as_listed(
    question: Question, picked: Mapping[str, Any], models: Sequence[Model], gpus: Sequence[Gpu],
    engines: Sequence[Engine],
) -> dict[str, Any]:  # fmt: skip
    """The choices as the dropdowns spell them: a spreadsheet finds a name in capitals, too."""
    lists = _lists(question, models, gpus, engines)
    spelled = {name: {str(known).lower(): known for known in reversed(of)} for name, of in lists.items()}
    return {name: spelled.get(name, {}).get(str(value).lower(), value) for name, value in picked.items()}


def asked_of(
    solved: Solution, picked: Mapping[str, Any], factors: Mapping[str, Sequence[float]], models: Sequence[Model],
    gpus: Sequence[Gpu], engines: Sequence[Engine],
) -> Question:  # fmt: skip
    """The question of the page: one model, the cases of context and users, the chosen GPU before the others.

    What stands in no list is the first of it, as in the workbook; then, and where facts are missing, the model takes
    no context at all, so that nothing is recommended.
    """
    question = solved.question
    known = {name: picked[name] in of for name, of in _lists(question, models, gpus, engines).items()}
    for name in ("weight_dtype", "kv_cache_dtype"):
        picked = {**picked, name: picked[name] if known[name] else AUTO}
    engine = next((e for e in engines if e.engine == picked["engine"]), engines[0])
    settings = replace(
        question.settings,
        **{name: DTYPE_ALIASES.get(picked[name], picked[name]) for name in ("weight_dtype", "kv_cache_dtype")},
    )
    overrides = question.overrides
    if engine.engine != question.engine.engine:
        settings = replace(
            settings, gpu_memory_utilization=engine.gpu_memory_utilization, block_size=engine.block_size,
            hybrid_kv_manager=int(engine.frees_windows),
        )  # fmt: skip
        overrides = _without_engine(overrides, question.engine)
    own = [*question.models, *(_own_model(row, models[0]) for row in overrides.own_models if row.get("model"))]
    chosen = next((m for m in own if m.model.name == picked["model"]), None)
    if chosen is None:
        found = next((m for m in models if m.name == picked["model"]), None)
        if found is None and known["model"]:
            chosen = _own_model({"model": NO_MODEL}, models[0])
        else:
            chosen = own[0] if found is None else _sheet_model(found, found.weight_dtype, found.kv_cache_dtype)
    shape = chosen.model.shape()
    state, layers = state_of(picked, known, shape), shape["n_layers"]
    chosen = replace(
        chosen,
        model=chosen.model if state == OK else overridden_model(chosen.model, NOTHING | {"n_layers": layers or 1}),
        weight_dtype=chosen.auto_weight_dtype if settings.weight_dtype == "auto" else settings.weight_dtype,
        kv_cache_dtype=chosen.auto_kv_cache_dtype if settings.kv_cache_dtype == "auto" else settings.kv_cache_dtype,
    )
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
                "ttft_target_ms": None,
            }
        )
        for case, context in zip(CASES, scaled, strict=True)
    )
    active = settings.active_fraction
    tiers = tuple(int(case_requests(number(picked["users"]), f, active)) for f in factors["users"])
    cells = tuple(Load(0, c, u, scaled[c], max(scaled[c] - answer, 0), tiers[u], scaled[c] > limit) for c, u in LOADS)
    return replace(
        question, models=(chosen,), workloads=workloads, tiers=tiers, loads=cells, headline=(1, 1),
        gpus=(gpu, *question.gpus), engine=engine, settings=settings, overrides=overrides,
    )  # fmt: skip


def _lists(
    question: Question, models: Sequence[Model], gpus: Sequence[Gpu], engines: Sequence[Engine]
) -> dict[str, Sequence[Any]]:
    """What each dropdown offers, in the order in which a spreadsheet looks for it."""
    own = [row["model"] for row in question.overrides.own_models if row.get("model")]
    blank = [NO_MODEL] if len(own) < SPARE_MODELS else []
    return {
        "model": (*(m.model.name for m in question.models), *own, *blank, *(m.name for m in models)),
        "hardware": (*(g.id for g in gpus), *(g.id for g in question.gpus), *(name for name, _ in instances(question))),
        "tensor_parallel_size": (AUTO, *TENSOR_PARALLEL_SIZES),
        "weight_dtype": DTYPE_CHOICES,
        "kv_cache_dtype": DTYPE_CHOICES,
        "engine": [e.engine for e in engines],
    }


def instances(question: Question) -> list[tuple[str, str | None]]:
    """Name and GPU of each row of Instances, as typed; those too that cannot be rented."""
    overrides, found = question.overrides, []
    for one in question.rows:
        provider, kind = one.instance.split("/", 1)
        row = overrides.instances.get(one.instance, {})
        name = f"{row.get('provider', provider)}/{row.get('type', kind)}"
        found.append((name, row.get("instance_gpu", one.gpu.id)))
    own = (row for row in overrides.own_instances if row.get("type"))
    return found + [(f"{row.get('provider') or ''}/{row['type']}", row.get("instance_gpu")) for row in own]


def _without_engine(overrides: Overrides, engine: Engine) -> Overrides:
    """What was typed, without the constants of the workbook's own engine: they say nothing of another one."""
    known = {*engine_columns(engine), "gpu_memory_utilization", "block_size", "hybrid_kv_manager"}
    gpus = {
        key: {name: value for name, value in row.items() if name not in ENGINE_ON_GPU}
        for key, row in overrides.gpus.items()
    }
    return replace(overrides, inputs={n: v for n, v in overrides.inputs.items() if n not in known}, gpus=gpus)


def _sheet_model(model: Model, weight_dtype: str, kv_cache_dtype: str) -> SheetModel:
    return SheetModel(model, weight_dtype, kv_cache_dtype, weight_dtype, kv_cache_dtype)


def _own_model(row: Mapping[str, Any], like: Model) -> SheetModel:
    """A model typed in a spare row: what is blank is 0, and the precisions are bf16 unless typed."""
    blank = overridden_model(like, {**dict.fromkeys(like.shape(), 0), **{f"checkpoint_{d}": 0 for d in DTYPES}})
    facts = {name: value for name, value in row.items() if isinstance(value, (int, float))}
    model = overridden_model(blank, facts or {"n_layers": 0}).model_copy(update={"name": row["model"]})
    return _sheet_model(model, row.get("own_weight_dtype") or "bf16", row.get("own_kv_dtype") or "bf16")
