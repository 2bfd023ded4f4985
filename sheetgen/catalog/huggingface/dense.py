"""Families whose every layer has attention and one FFN, by model_type.

Each row says what the classes of that type do and their configs leave unsaid; it was held against the
parameter count of the transformers class (tests/data/huggingface_oracle.csv).
"""

from __future__ import annotations

from dataclasses import replace

from sheetgen.catalog.huggingface.bases import GLM, GRANITE, LLAMA, MLA, QWEN2, QWEN3
from sheetgen.catalog.huggingface.family import Family

_OLD_GPT = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
    "intermediate_size": "n_inner",
}
_LLAMA_NESTED = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
}
_MISTRAL_NESTED = {
    **_LLAMA_NESTED,
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
}
_GEMMA = Family(qkv_bias="attention_bias", o_bias="attention_bias", tied=True)
_GEMMA_DEFAULTS = {"head_dim": 256}
_GEMMA2 = replace(_GEMMA, layers="alternate", norms=4, defaults={"head_dim": 256, "sliding_window": 4096})
_GEMMA3 = replace(
    _GEMMA,
    layers="pattern",
    norms=4,
    qk_norm="head",
    rope="gemma3",
    defaults={"head_dim": 256, "sliding_window_pattern": 6, "max_position_embeddings": 131072},
    nested={"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "sliding_window": 4096},
)
_PLAIN_MLP = Family(norm="layer", gated=False)
_GPT2 = replace(
    _PLAIN_MLP,
    qkv_bias=True,
    o_bias=True,
    mlp_bias=True,
    tied=True,
    positions=0,
    rope="none",
    rename=_OLD_GPT,
    builder="old_gpt",
)
_OLMO2 = replace(LLAMA, qk_norm="width", mlp_bias=False)
_COHERE = Family(qkv_bias="attention_bias", o_bias="attention_bias", norms=1, norm="layer", norm_bias=False, tied=True)

DENSE: dict[str, Family] = {
    "llama": replace(LLAMA, nested=_LLAMA_NESTED),
    "mistral": Family(layers="windowed", nested=_MISTRAL_NESTED),
    "ministral": Family(layers="windowed"),
    "ministral3": Family(layers="windowed"),
    "mimo": QWEN2,
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "qwen2_vl_text": replace(QWEN2, rope="mrope"),
    "qwen2_5_vl_text": replace(QWEN2, rope="mrope"),
    "qwen3_vl_text": replace(QWEN3, rope="mrope"),
    "gemma": replace(_GEMMA, defaults=_GEMMA_DEFAULTS),
    "gemma2": _GEMMA2,
    "gemma3_text": _GEMMA3,
    "phi": Family(
        qkv_bias=True,
        o_bias=True,
        norm="layer",
        norms=1,
        gated=False,
        mlp_bias=True,
        lm_head_bias=True,
        partial_rotary=0.5,
        qk_norm="head",
        qk_norm_if="qk_layernorm",
    ),
    "phi3": Family(layers="windowed"),
    "granite": GRANITE,
    "glm": GLM,
    "glm4": replace(GLM, norms=4),
    "glm4v_text": replace(GLM, norms=4, rope="mrope", defaults={"attention_bias": True}),
    "cohere": replace(_COHERE, qk_norm="each", qk_norm_if="use_qk_norm", tied=True),
    "cohere2": replace(_COHERE, layers="pattern", defaults={"sliding_window_pattern": 4}, tied=True),
    "olmo": replace(LLAMA, norm="none", mlp_bias=False),
    "olmo2": _OLMO2,
    "olmo3": replace(_OLMO2, layers="pattern", rope="olmo3", defaults={"sliding_window_pattern": 4}),
    "exaone4": Family(layers="pattern", qk_norm="head"),
    "seed_oss": Family(qkv_bias="attention_bias", o_bias="attention_out_bias", mlp_bias="mlp_bias"),
    "smollm3": replace(LLAMA, layers="qwen2", tied=True),
    "ernie4_5": Family(qkv_bias="use_bias", o_bias="use_bias", mlp_bias="use_bias", tied=True),
    "internlm3": Family(qkv_bias="qkv_bias", o_bias="bias", mlp_bias="bias"),
    "hunyuan_v1_dense": Family(
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        qk_norm="head",
        qk_norm_if="use_qk_norm",
        defaults={"use_qk_norm": True},
    ),
    "stablelm": Family(
        qkv_bias="use_qkv_bias",
        norm="layer",
        qk_norm="each",
        qk_norm_if="qk_layernorm",
        partial_rotary=0.25,
        builder="stablelm",
    ),
    "starcoder2": Family(
        layers="windowed",
        qkv_bias="use_bias",
        o_bias="use_bias",
        norm="layer",
        gated=False,
        mlp_bias="use_bias",
        tied=True,
        defaults={"use_bias": True},
    ),
    "nemotron": Family(
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        norm="layer",
        gated=False,
        mlp_bias="mlp_bias",
        partial_rotary=0.5,
    ),
    "arcee": replace(LLAMA, gated=False),
    "apertus": replace(LLAMA, gated=False, qk_norm="head", mlp_bias=False, builder="apertus"),
    "gpt2": _GPT2,
    "gpt_bigcode": _GPT2,
    "gptj": replace(
        _PLAIN_MLP, mlp_bias=True, norms=1, lm_head_bias=True, rope="gptj", rename=_OLD_GPT, builder="old_gpt"
    ),
    "gpt_neox": replace(
        _PLAIN_MLP,
        qkv_bias="attention_bias",
        o_bias="attention_bias",
        mlp_bias=True,
        rope="neox",
        defaults={"attention_bias": True},
    ),
    "opt": Family(
        qkv_bias="enable_bias",
        o_bias="enable_bias",
        norm="layer",
        gated=False,
        mlp_bias="enable_bias",
        tied=True,
        positions=2,
        rope="none",
        rename={"intermediate_size": "ffn_dim"},
        defaults={"enable_bias": True},
        builder="opt",
    ),
    "bloom": replace(
        _PLAIN_MLP,
        qkv_bias=True,
        o_bias=True,
        mlp_bias=True,
        tied=True,
        rope="none",
        rename={"num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "hidden_size": "n_embed"},
        builder="bloom",
    ),
    "mpt": Family(
        norm="layer",
        norm_bias=False,
        gated=False,
        tied=True,
        rope="none",
        builder="mpt",
        rename={
            "hidden_size": "d_model",
            "num_attention_heads": "n_heads",
            "num_key_value_heads": "attn_config.kv_n_heads",
            "num_hidden_layers": "n_layers",
            "max_position_embeddings": "max_seq_len",
        },
    ),
    "falcon": Family(
        norm="layer", gated=False, tied=True, builder="falcon", defaults={"max_position_embeddings": 2048}
    ),
    "minicpm3": replace(MLA, tied=True),
    "internlm2": Family(qkv_bias="bias", o_bias="bias"),
    "exaone": Family(rename={"num_hidden_layers": "num_layers"}),
    "baichuan": Family(rope="baichuan"),
    "chatglm": Family(
        qkv_bias="add_qkv_bias",
        o_bias="add_bias_linear",
        mlp_bias="add_bias_linear",
        partial_rotary=0.5,
        builder="chatglm",
        rename={
            "num_hidden_layers": "num_layers",
            "intermediate_size": "ffn_hidden_size",
            "vocab_size": "padded_vocab_size",
            "max_position_embeddings": "seq_length",
        },
    ),
    "gpt_neo": replace(
        _PLAIN_MLP,
        o_bias=True,
        mlp_bias=True,
        tied=True,
        positions=0,
        rope="none",
        builder="gpt_neo",
        rename={"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"},
    ),
}
