"""What the classes of one model_type share and a config does not say: where biases, norms and gates are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Switch = bool | str  # fixed by the family, or the key that says it
Rename = Mapping[str, str]


@dataclass(frozen=True)
class Moe:
    """How a family's experts are named, and which layers have them."""

    n: str = "num_experts"
    top_k: str = "num_experts_per_tok"
    width: str = "moe_intermediate_size"
    layers: Literal["all", "first_k", "sparse_step", "period", "interleave", "range"] = "all"
    shared: str | None = None  # the key with the number of shared experts, each as wide as a routed one
    shared_width: str | None = None  # or the key with the width of the one shared expert
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    correction: bool = False  # a parameter, not a buffer, corrects the router's scores


@dataclass(frozen=True)
class Family:
    """One row of the table of families. The plain row is Llama."""

    attention: Literal["gqa", "mla"] = "gqa"
    layers: str = "full"  # the rule of layer_kinds for configs without layer_types
    qkv_bias: Switch = False
    o_bias: Switch = False
    q_gate: Literal["", "width", "head"] = ""  # the query is gated: as wide as it, or one number a head
    qk_norm: Literal["", "head", "width", "each"] = ""  # over a head, over all heads, one for each head
    qk_norm_if: Switch = True
    sinks: bool = False
    norm: Literal["rms", "layer", "none"] = "rms"
    norm_bias: bool = True  # of layer norms
    norms: int = 2  # of a layer, beside those of queries and keys
    gated: bool = True
    mlp_bias: Switch = False
    dense_width: str = "intermediate_size"  # the key of it
    moe: Moe | None = None
    tied: bool = False  # where tie_word_embeddings is absent
    lm_head_bias: Switch = False
    positions: int | None = None  # learned positions: their number beyond the maximum
    rope: str = "one"  # the rule of rope_tables
    partial_rotary: float = 1.0  # where the config does not say
    linear: str = ""  # the recurrence of its linear layers
    builder: str = ""  # the function of `special` that counts what this table cannot say
    mtp: Literal["", "each", "joined", "blocks"] = (
        ""  # how the layers of multi-token prediction are joined to the model
    )
    rename: Rename = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    nested: Mapping[str, Any] = field(default_factory=dict)  # defaults of its class, as a text_config leaves them out
