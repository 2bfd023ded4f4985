"""Whether the choices of What-if can be answered: what stands in no list, and which facts a model still lacks.

A spreadsheet cannot refuse what is typed into it. Where a choice is not known it shows these words, and no numbers.
"""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Expr, both, either, formula, is_number, is_text, join_text, round_down, where
from sheetgen.units import TEXT

OK = "OK"
NO_MODEL = "(your own model)"  # in the dropdown, for a blank row of Models
SPARE_MODELS = 3  # rows of one's own on Models, at least
LACKS = "facts missing:"
TWICE = "another row has this name"
CHOICES = ("model", "hardware", "tensor_parallel_size", "weight_dtype", "kv_cache_dtype")


@formula("Facts", TEXT)
def model_lacks(
    n_layers: Any, n_heads: Any, hidden_size: Any, vocab_size: Any, ffn_matrices: Any, intermediate_size: Any,
    n_experts: Any, experts_per_token: Any, expert_intermediate_size: Any, n_params_routed: Any,
    max_context_tokens: Any, n_params: Any, n_params_active: Any, n_full_layers: Any, full_kv_heads: Any,
    full_kv_width: Any, n_windowed_layers: Any, windowed_kv_heads: Any, windowed_kv_width: Any, window_tokens: Any,
    n_mla_layers: Any, mla_width: Any, n_other_layers: Any, other_elements_per_token: Any, other_bytes_per_token: Any,
    n_state_layers: Any, conv_bytes_per_state_layer: Any, state_elements_per_layer: Any,
) -> Any:  # fmt: skip
    """The facts of a model without which its memory or its price would come out too small.

    Source: every model of the catalog has them; what is 0 where its kind of layer is absent may be blank.
    """
    attention = n_full_layers + n_windowed_layers + n_mla_layers + n_other_layers + n_state_layers
    experts = n_experts > 0
    parts = (("layers", n_layers > 0), ("query heads", n_heads > 0), ("hidden size", hidden_size > 0), ("vocabulary",
             vocab_size > 0), ("feed-forward width, or experts", either(intermediate_size > 0, experts)),
             ("feed-forward matrices", ffn_matrices > 0), ("experts per token", where(experts, experts_per_token,
             1) > 0), ("expert width", where(experts, expert_intermediate_size, 1) > 0),
             ("parameters in routed experts", where(experts, n_params_routed, 1) > 0), ("longest context",
             max_context_tokens > 0), ("parameters", n_params > 0), ("active parameters", n_params_active > 0),
             ("layers of some kind of attention", attention > 0), ("KV heads (full)", where(n_full_layers > 0,
             full_kv_heads, 1) > 0), ("key + value width", where(n_full_layers > 0, full_kv_width, 1) > 0),
             ("KV heads (window)", where(n_windowed_layers > 0, windowed_kv_heads, 1) > 0), ("width (window)",
             where(n_windowed_layers > 0, windowed_kv_width, 1) > 0), ("window", where(n_windowed_layers > 0,
             window_tokens, 1) > 0), ("latent width", where(n_mla_layers > 0, mla_width, 1) > 0), ("other elements",
             where(n_other_layers > 0, other_elements_per_token + other_bytes_per_token, 1) > 0), ("recurrent state",
             where(n_state_layers > 0, conv_bytes_per_state_layer + state_elements_per_layer, 1) > 0))  # fmt: skip
    return join_text(LACKS, *(where(known, "", f" · {words}") for words, known in parts))


@formula("Choices", TEXT)
def choices_state(
    model: Any, model_known: Any, hardware: Any, hardware_known: Any, tensor_parallel_size: Any,
    tensor_parallel_size_known: Any, weight_dtype: Any, weight_dtype_known: Any, kv_cache_dtype: Any,
    kv_cache_dtype_known: Any, users: Any, context_tokens: Any, answer_tokens: Any,
    tpot_ms: Any, facts: Any,
) -> Any:  # fmt: skip
    """OK where every choice stands in its list and the model has its facts; else what is wrong, the first of it.

    Source: the lists of the dropdowns, and the facts of the chosen model.
    """
    lists = (("no such model: ", model, model_known), ("no such GPU or instance: ", hardware, hardware_known),
             ("no such tensor-parallel size: ", tensor_parallel_size, tensor_parallel_size_known),
             ("no such precision of weights: ", weight_dtype, weight_dtype_known),
             ("no such precision of the KV cache: ", kv_cache_dtype, kv_cache_dtype_known))  # fmt: skip
    words = where(facts == LACKS, OK, join_text(model, ": ", facts))
    words = where(answer_tokens > context_tokens, "the answer is longer than its context", words)
    target = where(_is_blank(tpot_ms), 1, where(is_number(tpot_ms), where(tpot_ms >= 0, 1, 0), 0))
    words = where(target == 1, words, "the target must be a number of milliseconds, or blank")
    amounts = (("the answer", answer_tokens, 0), ("the context", context_tokens, 1), ("users", users, 1))
    for said, amount, least in amounts:
        words = where(_whole_from(amount, least) == 1, words, f"{said} must be a whole number from {least}")
    for said, choice, known in reversed(lists):
        words = where(known == 1, words, join_text(said, choice))
    return words


def _is_blank(amount: Any) -> Any:
    """Whether a number was left blank; in Python that is a number that is none."""
    return amount == "" if isinstance(amount, Expr) else amount != amount


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
    provider: Any, type: Any, instance_gpu: Any, gpu_known: Any, gpu_count: Any, price_usd_per_hour: Any,
    n_filled: Any, n_named: Any,
) -> Any:  # fmt: skip
    """What a row of one's own on Instances still lacks; a dash where it is blank. n_named: instances of this name.

    Source: an instance can be rented with all five.
    """
    gpu = where(is_text(instance_gpu), where(gpu_known == 1, "", " · a GPU of the GPUs sheet"), " · GPU")
    words = join_text(
        LACKS, where(is_text(provider), "", " · provider"), where(is_text(type), "", " · type"), gpu,
        where(gpu_count > 0, "", " · GPUs"), where(price_usd_per_hour > 0, "", " · $ per hour"),
    )  # fmt: skip
    whole = both(is_text(provider), is_text(type), gpu_known == 1, gpu_count > 0, price_usd_per_hour > 0)
    return where(n_filled > 0, where(whole, where(n_named > 1, TWICE, OK), words), "-")
