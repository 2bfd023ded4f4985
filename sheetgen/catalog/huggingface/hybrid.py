"""Families with a recurrence in some layers or in all, and families of one shape only, by model_type.

Each row says what the classes of that type do and their configs leave unsaid; it was held against the
parameter count of the transformers class (tests/data/huggingface_oracle.csv).
"""

from __future__ import annotations

from dataclasses import replace

from sheetgen.catalog.huggingface.bases import DEEPSEEK, LLAMA, LOCAL_MOE, QWEN_SHARED_MOE, QWEN_SPARSE
from sheetgen.catalog.huggingface.family import Family, Moe

_QWEN35 = Family(
    layers="interval",
    qkv_bias="attention_bias",
    o_bias="attention_bias",
    q_gate="width",
    qk_norm="head",
    linear="gated_delta_net",
    partial_rotary=0.25,
    mtp="joined",
)
_QWEN35_MOE = replace(_QWEN35, moe=QWEN_SHARED_MOE)

_MAMBA = Family(
    layers="linear",
    linear="mamba1",
    norms=1,
    tied=True,
    rope="none",
    builder="attention_free",
    defaults={"time_step_rank": "auto"},
)
_LFM2 = Family(layers="conv", linear="short_conv", qk_norm="head", tied=True, builder="lfm2")

HYBRID: dict[str, Family] = {
    "qwen3_next": replace(_QWEN35_MOE, defaults=QWEN_SPARSE),
    "qwen3_5_text": replace(_QWEN35, rope="mrope"),
    "qwen3_5_moe_text": replace(_QWEN35_MOE, rope="mrope", moe=replace(QWEN_SHARED_MOE, layers="all")),
    "jamba": Family(
        layers="jamba", linear="mamba1_norms", rope="none", moe=Moe(width="intermediate_size", layers="period")
    ),
    "bamba": Family(
        layers="bamba",
        linear="mamba2",
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        mlp_bias="mlp_bias",
        partial_rotary=0.5,
    ),
    "granitemoehybrid": Family(
        layers="required",
        linear="mamba2",
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        tied=True,
        moe=replace(LOCAL_MOE, shared_width="shared_intermediate_size"),
        rope="granite_hybrid",
        dense_width="shared_intermediate_size",
    ),
    "falcon_h1": Family(
        linear="mamba2",
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        mlp_bias="mlp_bias",
        builder="falcon_h1",
        defaults={"mamba_rms_norm": False},
    ),
    "nemotron_h": Family(
        linear="mamba2",
        gated=False,
        mlp_bias="mlp_bias",
        norms=1,
        rope="none",
        builder="nemotron_h",
        mtp="blocks",
        moe=Moe(n="n_routed_experts", shared_width="moe_shared_expert_intermediate_size"),
    ),
    "minimax": Family(layers="minimax", linear="lightning", moe=LOCAL_MOE, rope="rotary_dim"),
    "minimax_text_01": Family(layers="minimax", linear="lightning", moe=LOCAL_MOE, rope="rotary_dim"),
    "minimax_m1": Family(layers="minimax", linear="lightning", moe=LOCAL_MOE, rope="rotary_dim"),
    "kimi_linear": replace(
        DEEPSEEK,
        layers="kimi",
        linear="kda",
        rope="none",
        moe=Moe(layers="first_k", shared="num_shared_experts", top_k="num_experts_per_token"),
    ),
    "lfm2": _LFM2,
    "lfm2_moe": replace(_LFM2, moe=Moe(layers="first_k")),
    "mamba": _MAMBA,
    "falcon_mamba": _MAMBA,
    "mamba2": replace(_MAMBA, linear="mamba2", tied=False),
}

SPECIAL: dict[str, Family] = {
    "gemma3n_text": Family(tied=True, qk_norm="head", rope="gemma3", builder="gemma3n"),
    "gemma4_text": Family(tied=True, qk_norm="head", rope="gemma4", builder="gemma4", defaults={"sliding_window": 512}),
    "gemma4_unified_text": Family(
        tied=True, qk_norm="head", rope="gemma4", builder="gemma4", defaults={"sliding_window": 512}
    ),
    "deepseek_v4": Family(
        rope="deepseek_v4", builder="deepseek_v4", moe=Moe(n="n_routed_experts", shared="n_shared_experts")
    ),
    "nemotron-nas": replace(LLAMA, builder="nemotron_nas"),
}
