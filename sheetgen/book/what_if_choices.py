"""What the What-if page is built with: its choices and factors as typed, all that its dropdowns offer, and whether the
choices can be answered.

A spreadsheet cannot refuse what is typed into it. Where a choice is not known it shows words, and no numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sheetgen.answer import Solution, headline_rows
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.model import Model
from sheetgen.errors import ScenarioError
from sheetgen.formula import (
    both,
    either,
    formula,
    is_blank,
    is_number,
    is_text,
    join_text,
    largest,
    round_down,
    round_up,
    smallest,
    where,
)
from sheetgen.question.sheet_question import Question
from sheetgen.units import DTYPE_CHOICES, TENSOR_PARALLEL_SIZES, TEXT

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
def case_requests(users: Any, case_factor: Any, active_fraction: Any) -> Any:
    """Requests at once of a case: the users of it who are active.

    Source: users x the case's factor x active fraction.
    """
    return round_up(where(is_number(users), users, 0) * case_factor * active_fraction)


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
        "users": int(round_up(question.loads[row].requests / settings.active_fraction)),
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
        "weight_dtype": DTYPE_CHOICES,
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


OK = "OK"
NO_MODEL = "(your own model)"  # in the dropdown, for a blank row of Models
SPARE_MODELS = 3  # rows of one's own on Models, at least
LACKS = "facts missing:"
TWICE = "another row has this name"
CHOICES = ("model", "hardware", "tensor_parallel_size", "weight_dtype", "kv_cache_dtype")


@formula("Facts", TEXT)
def model_lacks(
    n_layers: Any,
    n_heads: Any,
    hidden_size: Any,
    vocab_size: Any,
    ffn_matrices: Any,
    intermediate_size: Any,
    n_experts: Any,
    experts_per_token: Any,
    expert_intermediate_size: Any,
    n_params_routed: Any,
    max_context_tokens: Any,
    n_params: Any,
    n_params_active: Any,
    n_full_layers: Any,
    full_kv_heads: Any,
    full_kv_width: Any,
    n_windowed_layers: Any,
    windowed_kv_heads: Any,
    windowed_kv_width: Any,
    window_tokens: Any,
    n_mla_layers: Any,
    mla_width: Any,
    n_other_layers: Any,
    other_elements_per_token: Any,
    other_bytes_per_token: Any,
    n_state_layers: Any,
    conv_bytes_per_state_layer: Any,
    state_elements_per_layer: Any,
) -> Any:
    """The facts of a model without which its memory or its price would come out too small.

    Source: every model of the catalog has them; what is 0 where its kind of layer is absent may be blank.
    """
    attention = n_full_layers + n_windowed_layers + n_mla_layers + n_other_layers + n_state_layers
    experts = n_experts > 0
    parts = (
        ("layers", n_layers > 0),
        ("query heads", n_heads > 0),
        ("hidden size", hidden_size > 0),
        ("vocabulary", vocab_size > 0),
        ("feed-forward width, or experts", either(intermediate_size > 0, experts)),
        ("feed-forward matrices", ffn_matrices > 0),
        ("experts per token", where(experts, experts_per_token, 1) > 0),
        ("expert width", where(experts, expert_intermediate_size, 1) > 0),
        ("parameters in routed experts", where(experts, n_params_routed, 1) > 0),
        ("longest context", max_context_tokens > 0),
        ("parameters", n_params > 0),
        ("active parameters", n_params_active > 0),
        ("layers of some kind of attention", attention > 0),
        ("KV heads (full)", where(n_full_layers > 0, full_kv_heads, 1) > 0),
        ("key + value width", where(n_full_layers > 0, full_kv_width, 1) > 0),
        ("KV heads (window)", where(n_windowed_layers > 0, windowed_kv_heads, 1) > 0),
        ("width (window)", where(n_windowed_layers > 0, windowed_kv_width, 1) > 0),
        ("window", where(n_windowed_layers > 0, window_tokens, 1) > 0),
        ("latent width", where(n_mla_layers > 0, mla_width, 1) > 0),
        ("other elements", where(n_other_layers > 0, other_elements_per_token + other_bytes_per_token, 1) > 0),
        ("recurrent state", where(n_state_layers > 0, conv_bytes_per_state_layer + state_elements_per_layer, 1) > 0),
    )
    return join_text(LACKS, *(where(known, "", f" · {words}") for words, known in parts))


@formula("Choices", TEXT)
def choices_state(
    model: Any,
    model_known: Any,
    hardware: Any,
    hardware_known: Any,
    tensor_parallel_size: Any,
    tensor_parallel_size_known: Any,
    weight_dtype: Any,
    weight_dtype_known: Any,
    kv_cache_dtype: Any,
    kv_cache_dtype_known: Any,
    users: Any,
    context_tokens: Any,
    answer_tokens: Any,
    tpot_ms: Any,
    ttft_ms: Any,
    facts: Any,
) -> Any:
    """OK where every choice stands in its list and the model has its facts; else what is wrong, the first of it.

    Source: the lists of the dropdowns, and the facts of the chosen model.
    """
    lists = (
        ("no such model: ", model, model_known),
        ("no such GPU or instance: ", hardware, hardware_known),
        ("no such tensor-parallel size: ", tensor_parallel_size, tensor_parallel_size_known),
        ("no such precision of weights: ", weight_dtype, weight_dtype_known),
        ("no such precision of the KV cache: ", kv_cache_dtype, kv_cache_dtype_known),
    )
    words = where(facts == LACKS, OK, join_text(model, ": ", facts))
    words = where(answer_tokens > context_tokens, "the answer is longer than its context", words)
    for target in (ttft_ms, tpot_ms):
        known = where(is_blank(target), 1, where(is_number(target), where(target >= 0, 1, 0), 0))
        words = where(known == 1, words, "the target must be a number of milliseconds, or blank")
    amounts = (("the answer", answer_tokens, 0), ("the context", context_tokens, 1), ("people online", users, 1))
    for said, amount, least in amounts:
        words = where(_whole_from(amount, least) == 1, words, f"{said} must be a whole number from {least}")
    for said, choice, known in reversed(lists):
        words = where(known == 1, words, join_text(said, choice))
    return words


def _whole_from(amount: Any, least: int) -> Any:
    return where(is_number(amount), where(amount >= least, where(round_down(amount) == amount, 1, 0), 0), 0)


@formula("Row", TEXT)
def own_model_state(model: Any, n_filled: Any, facts: Any, n_named: Any) -> Any:
    """What a row of one's own on Models still lacks; a dash where it is blank. n_named: models of this name.

    Source: model_lacks.
    """
    known = where(facts == LACKS, where(n_named > 1, TWICE, OK), facts)
    return where(n_filled > 0, where(is_text(model), known, "a name is missing"), "-")


@formula("Row", TEXT)
def own_instance_state(
    provider: Any,
    type: Any,
    instance_gpu: Any,
    gpu_known: Any,
    gpu_count: Any,
    price_usd_per_hour: Any,
    n_filled: Any,
    n_named: Any,
) -> Any:
    """What a row of one's own on Prices and hardware still lacks; a dash where it is blank.

    In:     n_named, instances of this name.
    Source: an instance can be rented with all five.
    """
    gpu = where(is_text(instance_gpu), where(gpu_known == 1, "", " · a GPU of the GPUs sheet"), " · GPU")
    words = join_text(
        LACKS,
        where(is_text(provider), "", " · provider"),
        where(is_text(type), "", " · type"),
        gpu,
        where(gpu_count > 0, "", " · GPUs"),
        where(price_usd_per_hour > 0, "", " · $ per hour"),
    )
    whole = both(is_text(provider), is_text(type), gpu_known == 1, gpu_count > 0, price_usd_per_hour > 0)
    return where(n_filled > 0, where(whole, where(n_named > 1, TWICE, OK), words), "-")
