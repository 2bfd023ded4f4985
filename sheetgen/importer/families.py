"""The families that can be counted, by model_type: what their classes share and a config does not say.

That is where biases, norms and gates are. What is not here is refused by name, never guessed. Each row was held
against the parameter count of the transformers class (tests/data/huggingface_oracle.csv).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
    shared_bias: Switch = False  # of the shared expert, and of the matrices around a latent
    latent: str = ""  # the key of the narrower width that routed experts work in, with a matrix into it and one back
    router_bias: bool = False
    expert_bias: bool = False
    module: str = "mlp"  # its name in a layer
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
    whole_heads: bool = False  # latents, of which some engines keep keys and values of all heads
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
    kv_cache: str = ""  # its precision where engines have one of their own for the family
    linear: str = ""  # the recurrence of its linear layers
    builder: str = ""  # the function of `special` that counts what this table cannot say
    # How layers of multi-token prediction are joined to the model; copying: each with an embedding and an output matrix
    # of its own.
    mtp: Literal["", "each", "copying", "joined", "blocks"] = ""
    rename: Rename = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    nested: Mapping[str, Any] = field(default_factory=dict)  # defaults of its class, as a text_config leaves them out


DEEPSEEK_MOE = Moe(n="n_routed_experts", layers="first_k", shared="n_shared_experts")
FIRST_DENSE_MOE = Moe(layers="first_k", shared="num_shared_experts")
QWEN_MOE = Moe(layers="sparse_step")
QWEN_SHARED_MOE = replace(QWEN_MOE, shared_width="shared_expert_intermediate_size", shared_gate=True)
LOCAL_MOE = Moe(n="num_local_experts", width="intermediate_size")

BIASED = Family(qkv_bias="attention_bias", o_bias="attention_bias")
LLAMA = replace(BIASED, mlp_bias="mlp_bias")
QWEN2 = Family(layers="qwen2", qkv_bias=True)
QWEN3 = replace(BIASED, layers="qwen2", qk_norm="head")
GRANITE = replace(LLAMA, tied=True)
MLA = Family(attention="mla", o_bias="attention_bias", rope="mla")
DEEPSEEK = replace(MLA, moe=DEEPSEEK_MOE, mtp="each")
GLM = Family(qkv_bias="attention_bias", partial_rotary=0.5)


_OLD_GPT = {
    "hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions", "intermediate_size": "n_inner",
}  # fmt: skip
_MOSAIC = {
    "hidden_size": "d_model", "num_attention_heads": "n_heads", "num_key_value_heads": "attn_config.kv_n_heads",
    "num_hidden_layers": "n_layers", "max_position_embeddings": "max_seq_len",
}  # fmt: skip
_LLAMA_NESTED = {
    "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "max_position_embeddings": 2048,
}  # fmt: skip
_MISTRAL_NESTED = {
    **_LLAMA_NESTED,
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
}
_GEMMA = replace(BIASED, tied=True)
_PLAIN_MLP = Family(norm="layer", gated=False)
_ALL_BIASED = replace(_PLAIN_MLP, qkv_bias=True, o_bias=True, mlp_bias=True)
_USE_BIAS = Family(qkv_bias="use_bias", o_bias="use_bias", mlp_bias="use_bias", tied=True)
_GPT2 = replace(_ALL_BIASED, tied=True, positions=0, rope="none", rename=_OLD_GPT, builder="old_gpt")
_OLMO2 = replace(BIASED, qk_norm="width")
_HUNYUAN_DENSE = replace(BIASED, qk_norm="head", qk_norm_if="use_qk_norm")
_COHERE = replace(BIASED, norms=1, norm="layer", norm_bias=False, tied=True)

DENSE: dict[str, Family] = {
    "llama": replace(LLAMA, nested=_LLAMA_NESTED),
    "mistral": Family(layers="windowed", nested=_MISTRAL_NESTED),
    **dict.fromkeys(("ministral", "ministral3", "phi3"), Family(layers="windowed")),
    **dict.fromkeys(("qwen2", "mimo"), QWEN2),
    "qwen3": QWEN3,
    **dict.fromkeys(("qwen2_vl_text", "qwen2_5_vl_text"), replace(QWEN2, rope="mrope")),
    "qwen3_vl_text": replace(QWEN3, rope="mrope"),
    "gemma": replace(_GEMMA, defaults={"head_dim": 256}),
    "gemma2": replace(_GEMMA, layers="alternate", norms=4, defaults={"head_dim": 256, "sliding_window": 4096}),
    "gemma3_text": replace(
        _GEMMA,
        layers="pattern",
        norms=4,
        qk_norm="head",
        rope="gemma3",
        defaults={"head_dim": 256, "sliding_window_pattern": 6, "max_position_embeddings": 131072},
        nested={"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "sliding_window": 4096},
    ),
    "phi": replace(
        _ALL_BIASED, norms=1, lm_head_bias=True, partial_rotary=0.5, qk_norm="head", qk_norm_if="qk_layernorm"
    ),
    "granite": GRANITE,
    "granite_swa": replace(GRANITE, layers="first_of_four", sinks=True, defaults={"sliding_window": 128}),
    "glm": GLM,
    "glm4": replace(GLM, norms=4),
    "glm4v_text": replace(GLM, norms=4, rope="mrope", defaults={"attention_bias": True}),
    "cohere": replace(_COHERE, qk_norm="each", qk_norm_if="use_qk_norm"),
    "cohere2": replace(_COHERE, layers="pattern", defaults={"sliding_window_pattern": 4}),
    "olmo": replace(BIASED, norm="none"),
    "olmo2": _OLMO2,
    "olmo3": replace(_OLMO2, layers="pattern", rope="olmo3", defaults={"sliding_window_pattern": 4}),
    "exaone4": Family(layers="pattern", qk_norm="head"),
    "seed_oss": Family(qkv_bias="attention_bias", o_bias="attention_out_bias", mlp_bias="mlp_bias"),
    "smollm3": replace(LLAMA, layers="qwen2", tied=True),
    "ernie4_5": _USE_BIAS,
    "internlm3": Family(qkv_bias="qkv_bias", o_bias="bias", mlp_bias="bias"),
    "hunyuan_v1_dense": replace(_HUNYUAN_DENSE, defaults={"use_qk_norm": True}),
    "stablelm": Family(
        qkv_bias="use_qkv_bias",
        norm="layer",
        qk_norm="each",
        qk_norm_if="qk_layernorm",
        partial_rotary=0.25,
        builder="stablelm",
    ),
    "starcoder2": replace(_USE_BIAS, layers="windowed", norm="layer", gated=False, defaults={"use_bias": True}),
    "nemotron": replace(LLAMA, norm="layer", gated=False, partial_rotary=0.5),
    "arcee": replace(LLAMA, gated=False),
    "apertus": replace(BIASED, gated=False, qk_norm="head", builder="apertus"),
    **dict.fromkeys(("gpt2", "gpt_bigcode"), _GPT2),
    "gptj": replace(_PLAIN_MLP, mlp_bias=True, norms=1, lm_head_bias=True, rename=_OLD_GPT, builder="old_gpt"),
    "gpt_neox": replace(
        _PLAIN_MLP, qkv_bias="attention_bias", o_bias="attention_bias", mlp_bias=True, defaults={"attention_bias": True}
    ),
    "opt": replace(
        _PLAIN_MLP,
        qkv_bias="enable_bias",
        o_bias="enable_bias",
        mlp_bias="enable_bias",
        tied=True,
        positions=2,
        rope="none",
        rename={"intermediate_size": "ffn_dim"},
        defaults={"enable_bias": True},
        builder="opt",
    ),
    "bloom": replace(
        _ALL_BIASED,
        tied=True,
        rope="none",
        rename={"num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "hidden_size": "n_embed"},
        builder="bloom",
    ),
    "mpt": replace(_PLAIN_MLP, norm_bias=False, tied=True, rope="none", builder="mpt", rename=_MOSAIC),
    "falcon": Family(
        norm="layer", gated=False, tied=True, builder="falcon", defaults={"max_position_embeddings": 2048}
    ),
    "minicpm3": replace(MLA, tied=True, whole_heads=True),
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


_GRANITE_SHARED_MOE = replace(LOCAL_MOE, shared_width="shared_intermediate_size")
_GLM_MOE = replace(GLM, mtp="each", qk_norm="head", qk_norm_if="use_qk_norm", moe=DEEPSEEK_MOE)
_HUNYUAN = replace(_HUNYUAN_DENSE, moe=Moe(top_k="moe_topk", shared_width="shared_width"), builder="hunyuan")

SPARSE: dict[str, Family] = {
    "mixtral": Family(layers="windowed", moe=LOCAL_MOE),
    "qwen2_moe": replace(QWEN2, moe=QWEN_SHARED_MOE),
    "qwen3_moe": replace(QWEN3, moe=QWEN_MOE),
    "qwen3_vl_moe_text": replace(QWEN3, moe=QWEN_MOE, rope="mrope"),
    "phimoe": replace(BIASED, layers="windowed", norm="layer", moe=LOCAL_MOE, lm_head_bias="lm_head_bias"),
    "olmoe": replace(BIASED, qk_norm="width", moe=Moe(width="intermediate_size")),
    "granitemoe": replace(GRANITE, moe=LOCAL_MOE),
    "granitemoeshared": replace(GRANITE, moe=_GRANITE_SHARED_MOE),
    "gpt_oss": replace(
        BIASED,
        layers="alternate",
        sinks=True,
        moe=replace(LOCAL_MOE, router_bias=True, expert_bias=True),
        defaults={"attention_bias": True, "head_dim": 64},
    ),
    "llama4_text": replace(
        BIASED,
        layers="llama4",
        dense_width="intermediate_size_mlp",
        moe=replace(LOCAL_MOE, layers="interleave", shared_width="intermediate_size"),
        defaults={"attention_chunk_size": 8192},
    ),
    "dbrx": Family(
        norm="layer",
        norm_bias=False,
        moe=Moe(),
        rename={
            **_MOSAIC,
            "num_experts": "ffn_config.moe_num_experts",
            "num_experts_per_tok": "ffn_config.moe_top_k",
            "moe_intermediate_size": "ffn_config.ffn_hidden_size",
        },
    ),
    **dict.fromkeys(
        ("deepseek_v2", "deepseek_v3", "deepseek_v32", "mistral_large_3"), replace(DEEPSEEK, mtp="copying")
    ),
    **dict.fromkeys(("glm_moe_dsa", "glm4_moe_lite", "kimi_k2"), DEEPSEEK),
    "deepseek": replace(BIASED, moe=DEEPSEEK_MOE),
    "dots1": replace(BIASED, qk_norm="head", moe=DEEPSEEK_MOE),
    "bailing_moe": Family(
        qkv_bias="use_qkv_bias", o_bias="use_bias", qk_norm="head", qk_norm_if="use_qk_norm", moe=FIRST_DENSE_MOE
    ),
    "mistral4": replace(DEEPSEEK, defaults={"first_k_dense_replace": 0}),
    "glm4_moe": _GLM_MOE,
    "glm4v_moe_text": replace(_GLM_MOE, rope="mrope"),
    "minimax_m2": Family(qk_norm="width", moe=LOCAL_MOE),
    **dict.fromkeys(
        ("minimax_m3", "minimax_m3_vl_text"),
        Family(
            qk_norm="head",
            dense_width="dense_intermediate_size",
            moe=replace(
                LOCAL_MOE, layers="first_k", shared_width="shared_intermediate_size", module="block_sparse_moe"
            ),
            builder="minimax_m3",
        ),
    ),
    "ernie4_5_moe": replace(
        _USE_BIAS,
        moe=Moe(n="moe_num_experts", top_k="moe_k", layers="range", shared="moe_num_shared_experts", correction=True),
    ),
    "hy_v3": replace(LLAMA, qk_norm="head", moe=FIRST_DENSE_MOE, defaults={"first_k_dense_replace": 1}),
    "exaone_moe": Family(layers="pattern", qk_norm="head", moe=FIRST_DENSE_MOE, defaults={"first_k_dense_replace": 1}),
    "laguna": replace(
        BIASED,
        layers="required",
        qk_norm="head",
        q_gate="head",
        rope="by_type",
        builder="laguna",
        moe=Moe(layers="first_k", shared_width="shared_expert_intermediate_size", correction=True),
    ),
    "mimo_v2_flash": Family(
        layers="mimo", qkv_bias="attention_bias", rope="mimo_v2", moe=Moe(n="n_routed_experts", layers="first_k")
    ),
    "hunyuan_v1_moe": replace(_HUNYUAN, defaults={"use_qk_norm": True}),
    "hunyuan": _HUNYUAN,
    "solar_open": Family(
        qkv_bias="attention_bias",
        moe=DEEPSEEK_MOE,
        qk_norm="head",
        qk_norm_if="use_qk_norm",
        defaults={"first_k_dense_replace": 0},
    ),
    "afmoe": replace(
        BIASED,
        layers="pattern",
        q_gate="width",
        qk_norm="head",
        norms=4,
        rename={"first_k_dense_replace": "num_dense_layers"},
        moe=replace(FIRST_DENSE_MOE, correction=True),
        defaults={"first_k_dense_replace": 1, "global_attn_every_n_layers": 4, "sliding_window": 1024},
    ),
    # The bias of the gate, one number a head, counts as the sinks of others do.
    "beam": replace(
        BIASED,
        layers="sixth_and_last",
        q_gate="width",
        sinks=True,
        qk_norm="head",
        norms=4,
        moe=Moe(layers="first_k"),
        defaults={"first_k_dense_replace": 3, "sliding_window": 512},
    ),
    "cohere2_moe": replace(
        _COHERE,
        layers="cohere2_moe",
        dense_width="prefix_dense_intermediate_size",
        moe=replace(FIRST_DENSE_MOE, width="intermediate_size"),
        defaults={"first_k_dense_replace": 0, "sliding_window": 4096},
    ),
    "longcat_flash": replace(
        MLA,
        builder="longcat",
        moe=Moe(n="n_routed_experts"),
        rename={
            "num_hidden_layers": "num_layers",
            "intermediate_size": "ffn_hidden_size",
            "moe_intermediate_size": "expert_ffn_hidden_size",
            "num_experts_per_tok": "moe_topk",
        },
    ),
    "hy_v4": replace(
        DEEPSEEK,
        builder="hy_v4",
        sinks=True,
        q_gate="width",
        mtp="",
        defaults={"first_k_dense_replace": 1, "index_topk_freq": 4},
    ),
    "muse_spark_text": replace(
        BIASED,
        layers="last_of_four",
        q_gate="width",
        norms=3,
        builder="muse_spark",
        moe=Moe(n="num_local_experts", latent="moe_hidden_size"),
        defaults={"sliding_window": 2048},
    ),
    "mistral_large4_text": replace(
        MLA, builder="mistral_large4", moe=DEEPSEEK_MOE, defaults={"first_k_dense_replace": 1}
    ),
    "dots3_note_text": replace(
        MLA,
        layers="dots3_note",
        builder="dots3_note",
        q_gate="head",
        moe=replace(DEEPSEEK_MOE, shared=None, shared_width="shared_experts_intermediate_size"),
        defaults={"first_k_dense_replace": 1, "shared_experts_intermediate_size": 1536},
    ),
    "step3p5": replace(
        LLAMA,
        q_gate="head",
        qk_norm="head",
        rope="by_type",
        moe=Moe(n="n_routed_experts", layers="first_k", shared_width="share_expert_dim"),
        builder="step",
        rename={
            "n_routed_experts": "moe_num_experts",
            "num_key_value_heads": "num_attention_groups",
            "num_experts_per_tok": "moe_top_k",
            "share_expert_dim": "share_expert_dims",
        },
        defaults={"first_k_dense_replace": 3},
    ),
    "inkling_mm_model_text": Family(
        layers="required",
        qk_norm="head",
        rope="none",
        builder="inkling",
        rename={
            "sliding_window": "sliding_window_size",
            "max_position_embeddings": "model_max_length",
            "n_routed_experts": "num_local_experts",
        },
        moe=DEEPSEEK_MOE,
    ),
    "muse_glimmer_text": Family(layers="required", q_gate="width", norms=4),
}


_QWEN35 = replace(
    BIASED,
    layers="interval",
    q_gate="width",
    qk_norm="head",
    linear="gated_delta_net",
    partial_rotary=0.25,
    mtp="joined",
)
_QWEN35_MOE = replace(_QWEN35, moe=QWEN_SHARED_MOE)

_MAMBA = Family(
    linear="mamba1", norms=1, tied=True, rope="none", builder="attention_free", defaults={"time_step_rank": "auto"}
)
_LFM2 = Family(layers="conv", linear="short_conv", qk_norm="head", tied=True, builder="lfm2")

HYBRID: dict[str, Family] = {
    "qwen3_next": replace(_QWEN35_MOE, defaults={"mtp_num_hidden_layers": 1}),  # its files bring one, unsaid
    "qwen3_5_text": replace(_QWEN35, rope="mrope"),
    "qwen3_5_moe_text": replace(_QWEN35_MOE, rope="mrope", moe=replace(QWEN_SHARED_MOE, layers="all")),
    "jamba": Family(
        layers="jamba", linear="mamba1_norms", rope="none", moe=Moe(width="intermediate_size", layers="period")
    ),
    "bamba": replace(LLAMA, layers="bamba", linear="mamba2", partial_rotary=0.5),
    "granitemoehybrid": replace(
        BIASED,
        layers="required",
        linear="mamba2",
        tied=True,
        rope="granite_hybrid",
        moe=_GRANITE_SHARED_MOE,
        dense_width="shared_intermediate_size",
    ),
    "falcon_h1": replace(LLAMA, linear="mamba2", builder="falcon_h1", defaults={"mamba_rms_norm": False}),
    "nemotron_h": Family(
        linear="mamba2",
        gated=False,
        mlp_bias="mlp_bias",
        norms=1,
        rope="none",
        builder="nemotron_h",
        mtp="blocks",
        moe=Moe(
            n="n_routed_experts",
            shared_width="moe_shared_expert_intermediate_size",
            shared_bias="mlp_bias",
            latent="moe_latent_size",
        ),
    ),
    **dict.fromkeys(
        ("minimax", "minimax_text_01", "minimax_m1"), Family(layers="minimax", linear="lightning", moe=LOCAL_MOE)
    ),
    "kimi_linear": replace(
        DEEPSEEK, layers="kimi", linear="kda", rope="none", moe=replace(FIRST_DENSE_MOE, top_k="num_experts_per_token")
    ),
    "lfm2": _LFM2,
    "lfm2_moe": replace(_LFM2, moe=Moe(layers="first_k")),
    "mamba": _MAMBA,
    "falcon_mamba": _MAMBA,
    "mamba2": replace(_MAMBA, linear="mamba2", tied=False),
    "qwen4_exp_text": replace(
        _QWEN35_MOE, moe=replace(QWEN_SHARED_MOE, layers="all"), norms=0, rope="mrope", mtp="", builder="qwen4"
    ),
    "lfm3": Family(
        layers="lfm3",
        linear="short_conv",
        qk_norm="head",
        q_gate="head",
        norms=4,
        tied=True,
        rope="by_type",
        builder="lfm3",
        defaults={"sliding_window": 256, "conv_L_cache": 7, "head_dim": 128},
    ),
    "glm5_next_text": replace(
        MLA,
        layers="interval",
        linear="kda",
        rope="none",
        builder="glm5_next",
        moe=DEEPSEEK_MOE,
        defaults={"first_k_dense_replace": 3},
    ),
    "bailing_hybrid": replace(
        MLA,
        layers="interval",
        linear="kda_wide",
        q_gate="head",
        moe=FIRST_DENSE_MOE,
        rename={
            "full_attention_interval": "layer_group_size",
            "max_position_embeddings": "model_max_length",
            "num_experts": "num_local_experts",
            "num_experts_per_tok": "num_experts_per_token",
            "num_shared_experts": "n_shared_experts",
        },
        defaults={"first_k_dense_replace": 2, "full_attention_interval": 6},
    ),
}

_GEMMA4 = Family(
    layers="always_windowed",
    tied=True,
    qk_norm="head",
    rope="gemma4",
    builder="gemma4",
    defaults={"sliding_window": 512, "sliding_window_pattern": 6},
)
SPECIAL: dict[str, Family] = {
    "gemma3n_text": Family(
        layers="always_windowed",
        tied=True,
        qk_norm="head",
        rope="gemma3",
        builder="gemma3n",
        defaults={"sliding_window_pattern": 5},
    ),
    **dict.fromkeys(("gemma4_text", "gemma4_unified_text"), _GEMMA4),
    "deepseek_v4": Family(
        rope="deepseek_v4", builder="deepseek_v4", moe=replace(DEEPSEEK_MOE, layers="all"), kv_cache="fp8"
    ),
    "nemotron-nas": replace(LLAMA, builder="nemotron_nas"),
}

FAMILIES: dict[str, Family] = {**DENSE, **SPARSE, **HYBRID, **SPECIAL}
FAMILIES["step3p7_text"] = FAMILIES["step3p5"]

# Known, and not counted: why.
_ENCODER = "an encoder keeps no cache of keys and values, so that nothing of it grows with context"
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("bert", "roberta", "xlm-roberta", "distilbert", "mpnet", "nomic_bert", "modernbert", "deberta-v2", "new"),
        _ENCODER,
    ),
    **dict.fromkeys(
        ("llada", "llada2_moe"),
        "it writes blocks of text by diffusion, many steps over one block, which is not counted",
    ),
    **dict.fromkeys(("rwkv", "rwkv7"), "it has no attention, and its state is not counted"),
    "nemotron_h_puzzle": "its blocks, found by search, have widths of their own, which are not counted",
    "deepseek_v41": "its n-gram tables, and no class of transformers to hold a count against",
    "inkling2": "its attention residuals and projected convolutions are not counted yet",
    "zamba2": "layers that share one attention block, each with adapters of its own, are not counted",
    **dict.fromkeys(
        ("qwen2_5_omni", "qwen3_omni_moe", "nemotron_h_omni", "cosmos3_omni"),
        "its speech and talker parts are models of their own beside the one that writes text",
    ),
}
REFUSED |= {"deepseek_v41_text": REFUSED["deepseek_v41"], "inkling2_text": REFUSED["inkling2"]}

# A model_type that wraps a text_config: the key of that, and the tower beside it ("" where it is not counted).
WRAPPERS: dict[str, tuple[str, str]] = {"internvl_chat": ("llm_config", "intern_vit")} | {
    model_type: ("text_config", tower)
    for tower, model_types in {
        "siglip": ("gemma3",),
        "gemma3n": ("gemma3n",),
        "gemma4": ("gemma4", "gemma4_unified"),
        "cohere2": ("cohere2_vision",),
        "llama4": ("llama4",),
        "llava": ("llava", "llava_next"),
        "pixtral": ("mistral3", "mistral_large4"),
        "qwen2_vl": ("qwen2_vl",),
        "qwen2_5_vl": ("qwen2_5_vl",),
        "qwen3_vl": ("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen4_exp"),
        "moonvit": ("kimi_k25", "kimi_vl"),
        "muse": ("muse_glimmer", "muse_spark"),
        "glm4v": ("glm4v", "glm4v_moe"),
        "glm5_next": ("glm5_next",),
        "step": ("step3p7",),
        "none": ("inkling_mm_model", "dots3_note", "minimax_m3_vl"),
    }.items()
    for model_type in model_types
}
