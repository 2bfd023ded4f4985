"""From the layer list of a model to the one set of columns that every model fits in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sheetgen.units import DTYPES

if TYPE_CHECKING:
    from sheetgen.catalog.model import Model

CONV_ELEMENT_BYTES = 2  # the convolution's state is 16-bit in every engine
# MLA's heads as every model so far has them (DeepSeek, Kimi, GLM): a latent of 512, and 64 for the rotary part.
MLA_LATENT, MLA_ROTARY = 512, 64
MLA_KEY_AND_VALUE = 320  # of a head, where the up-projections are not known: DeepSeek's 192 and 128


def shape_of(model: Model) -> dict[str, float]:
    """Groups of one kind have one shape (the schema sees to it): layers add up, the rest is theirs."""
    p = model.params
    out: dict[str, float] = dict.fromkeys(_ATTENTION, 0)
    for g in model.attention:
        if g.kind == "full":
            out["n_full_layers"] += g.n_layers
            out["full_kv_heads"] = g.n_kv_heads
            out["full_kv_width"] = g.key_width + g.value_width
            out["attention_elements"] += g.n_layers * model.n_heads * (g.key_width + g.value_width)
        elif g.kind == "windowed" or g.kind == "chunked":
            out["n_windowed_layers"] += g.n_layers
            out["windowed_kv_heads"] = g.n_kv_heads
            out["windowed_kv_width"] = g.key_width + g.value_width
            out["window_tokens"] = g.window_tokens
            out["windowed_attention_elements"] += g.n_layers * model.n_heads * (g.key_width + g.value_width)
            out["window_is_chunked"] = int(g.kind == "chunked")
        elif g.kind == "mla":
            out["n_mla_layers"] += g.n_layers
            out["mla_width"] = g.latent_width
            out["mla_fp8_entry_bytes"] = g.fp8_entry_bytes
            out["mla_absorbed_elements"] += g.n_layers * g.absorbed_elements
            known = g.absorbed_elements / MLA_LATENT + model.n_heads * MLA_ROTARY
            heads = known if g.absorbed_elements else model.n_heads * MLA_KEY_AND_VALUE
            out["attention_elements"] += g.n_layers * heads
        elif g.kind == "compressed":
            out["n_other_layers"] += g.n_layers
            out["other_elements_per_token"] += g.n_layers * g.elements_per_token
        elif g.kind == "indexer":
            out["other_bytes_per_token"] += g.n_layers * g.entry_bytes
        elif g.kind == "recurrent":
            out["n_state_layers"] += g.n_layers
            out["conv_bytes_per_state_layer"] = g.conv_elements * CONV_ELEMENT_BYTES
            out["state_elements_per_layer"] = g.state_elements
            out["state_element_bytes"] = int(DTYPES[g.state_dtype].other_bytes)
    return {
        "n_layers": model.n_layers,
        "n_heads": model.n_heads,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "intermediate_size": model.intermediate_size or 0,
        "ffn_matrices": 3 if model.gated_ffn else 2,
        "n_experts": model.experts.n if model.experts else 0,
        "experts_per_token": model.experts.top_k if model.experts else 0,
        "expert_intermediate_size": (model.moe_intermediate_size or model.intermediate_size or 0)
        if model.experts
        else 0,
        "encoder_item_tokens": model.encoder.max_item_tokens if model.encoder else 0,
        "encoder_item_elements": model.encoder.max_item_elements if model.encoder else 0,
        "rope_table_elements": model.rope_table_elements,
        "max_context_tokens": model.max_context_tokens or 0,
        **out,
        "n_params": p.total,
        "n_params_active": p.active,
        "n_params_quantizable": p.body + p.routed_experts - p.unquantized,
        "n_params_copied": p.copied,
        "n_params_mtp": p.mtp_extra,
        "n_params_routed": p.routed_experts,
        "n_params_embedding": p.embedding,
        "n_params_lm_head": p.lm_head,
        "n_params_per_layer_embedding": p.per_layer_embedding,
    }


_ATTENTION = (
    "n_full_layers",
    "full_kv_heads",
    "full_kv_width",
    "n_windowed_layers",
    "windowed_kv_heads",
    "windowed_kv_width",
    "window_tokens",
    "window_is_chunked",
    "n_mla_layers",
    "mla_width",
    "mla_fp8_entry_bytes",
    "mla_absorbed_elements",
    "n_other_layers",
    "other_elements_per_token",
    "other_bytes_per_token",
    "attention_elements",
    "windowed_attention_elements",
    "n_state_layers",
    "conv_bytes_per_state_layer",
    "state_elements_per_layer",
    "state_element_bytes",
)
