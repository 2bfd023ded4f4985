"""Families with a mixture of experts, by model_type.

Each row says what the classes of that type do and their configs leave unsaid; it was held against the
parameter count of the transformers class (tests/data/huggingface_oracle.csv).
"""

from __future__ import annotations

from dataclasses import replace

from sheetgen.catalog.huggingface.bases import (
    DEEPSEEK,
    DEEPSEEK_MOE,
    GLM,
    GRANITE,
    LOCAL_MOE,
    QWEN2,
    QWEN3,
    QWEN_MOE,
    QWEN_SHARED_MOE,
    QWEN_SPARSE,
)
from sheetgen.catalog.huggingface.family import Family, Moe

_GRANITE_MOE = replace(GRANITE, moe=LOCAL_MOE)
_DEEPSEEK_V2 = replace(DEEPSEEK, defaults={"moe_layer_freq": 1})
_GLM_MOE = replace(
    GLM,
    mtp="each",
    qk_norm="head",
    qk_norm_if="use_qk_norm",
    moe=Moe(n="n_routed_experts", layers="first_k", shared="n_shared_experts"),
)

_HUNYUAN = Family(
    qkv_bias="attention_bias",
    o_bias="attention_bias",
    qk_norm="head",
    qk_norm_if="use_qk_norm",
    moe=Moe(top_k="moe_topk", shared_width="shared_width"),
    builder="hunyuan",
)

SPARSE: dict[str, Family] = {
    "mixtral": Family(layers="windowed", moe=LOCAL_MOE),
    "qwen2_moe": replace(QWEN2, moe=QWEN_SHARED_MOE, defaults=QWEN_SPARSE),
    "qwen3_moe": replace(QWEN3, moe=QWEN_MOE, defaults=QWEN_SPARSE),
    "qwen3_vl_moe_text": replace(QWEN3, moe=QWEN_MOE, defaults=QWEN_SPARSE, rope="mrope"),
    "phimoe": Family(
        layers="windowed",
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        norm="layer",
        moe=LOCAL_MOE,
        lm_head_bias="lm_head_bias",
    ),
    "olmoe": Family(
        qkv_bias="attention_bias", o_bias="attention_bias", qk_norm="width", moe=Moe(width="intermediate_size")
    ),
    "granitemoe": _GRANITE_MOE,
    "granitemoeshared": replace(_GRANITE_MOE, moe=replace(LOCAL_MOE, shared_width="shared_intermediate_size")),
    "gpt_oss": Family(
        layers="alternate",
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        sinks=True,
        moe=replace(LOCAL_MOE, router_bias=True, expert_bias=True),
        defaults={"attention_bias": True, "head_dim": 64},
    ),
    "llama4_text": Family(
        layers="llama4",
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        moe=replace(LOCAL_MOE, layers="interleave", shared_width="intermediate_size"),
        dense_width="intermediate_size_mlp",
        defaults={"attention_chunk_size": 8192},
    ),
    "dbrx": Family(
        norm="layer",
        norm_bias=False,
        moe=Moe(),
        rename={
            "num_experts": "ffn_config.moe_num_experts",
            "num_experts_per_tok": "ffn_config.moe_top_k",
            "moe_intermediate_size": "ffn_config.ffn_hidden_size",
            "hidden_size": "d_model",
            "num_attention_heads": "n_heads",
            "num_key_value_heads": "attn_config.kv_n_heads",
            "num_hidden_layers": "n_layers",
            "max_position_embeddings": "max_seq_len",
        },
    ),
    "deepseek_v2": _DEEPSEEK_V2,
    "deepseek_v3": replace(DEEPSEEK, defaults={"first_k_dense_replace": 3}),
    "deepseek_v32": replace(DEEPSEEK, defaults={"first_k_dense_replace": 3}),
    "kimi_k2": DEEPSEEK,
    "deepseek": Family(
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        moe=Moe(n="n_routed_experts", layers="first_k", shared="n_shared_experts"),
    ),
    "dots1": Family(qkv_bias="attention_bias", o_bias="attention_bias", qk_norm="head", moe=DEEPSEEK_MOE),
    "bailing_moe": Family(
        qkv_bias="use_qkv_bias",
        o_bias="use_bias",
        qk_norm="head",
        qk_norm_if="use_qk_norm",
        moe=Moe(layers="first_k", shared="num_shared_experts"),
    ),
    "glm4_moe_lite": replace(DEEPSEEK, defaults={"first_k_dense_replace": 1}),
    "glm_moe_dsa": replace(DEEPSEEK, defaults={"first_k_dense_replace": 3}),
    "mistral4": replace(DEEPSEEK, defaults={"first_k_dense_replace": 0}),
    "glm4_moe": replace(_GLM_MOE, defaults={"first_k_dense_replace": 1}),
    "glm4v_moe_text": replace(_GLM_MOE, rope="mrope"),
    "minimax_m2": Family(qk_norm="width", rope="rotary_dim", moe=LOCAL_MOE),
    "ernie4_5_moe": Family(
        qkv_bias="use_bias",
        o_bias="use_bias",
        mlp_bias="use_bias",
        tied=True,
        moe=Moe(n="moe_num_experts", top_k="moe_k", layers="range", shared="moe_num_shared_experts", correction=True),
    ),
    "hy_v3": Family(
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        qk_norm="head",
        mlp_bias="mlp_bias",
        moe=Moe(layers="first_k", shared="num_shared_experts"),
        defaults={"first_k_dense_replace": 1},
    ),
    "exaone_moe": Family(
        layers="pattern",
        qk_norm="head",
        moe=Moe(layers="first_k", shared="num_shared_experts"),
        defaults={"first_k_dense_replace": 1},
    ),
    "laguna": Family(
        layers="required",
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        qk_norm="head",
        q_gate="head",
        rope="by_type",
        moe=Moe(layers="first_k", shared_width="shared_expert_intermediate_size", correction=True),
        builder="laguna",
        defaults={"first_k_dense_replace": 1},
    ),
    "mimo_v2_flash": Family(
        layers="mimo", qkv_bias="attention_bias", rope="mimo_v2", moe=Moe(n="n_routed_experts", layers="first_k")
    ),
    "hunyuan_v1_moe": replace(_HUNYUAN, defaults={"use_qk_norm": True}),
    "hunyuan": _HUNYUAN,
    "solar_open": Family(
        qkv_bias="attention_bias",
        moe=replace(DEEPSEEK_MOE, layers="first_k"),
        qk_norm="head",
        qk_norm_if="use_qk_norm",
        defaults={"first_k_dense_replace": 0},
    ),
    "muse_glimmer_text": Family(layers="required", q_gate="width", norms=4),
    "minimax_m3_vl_text": Family(
        rope="rotary_dim",
        qk_norm="head",
        builder="minimax_m3",
        moe=Moe(n="num_local_experts", layers="first_k", width="intermediate_size", shared="n_shared_experts"),
        defaults={"first_k_dense_replace": 0},
    ),
}
