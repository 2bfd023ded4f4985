"""Small random configs of every family, for make_huggingface_oracle.py."""

from __future__ import annotations

import random
from typing import Any

Config = dict[str, Any]
WINDOW = 8


class Draw:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, *options: Any) -> Any:
        return self.random.choice(options)

    def number(self, low: int, high: int, step: int = 1) -> int:
        return self.random.randrange(low, high + 1, step)

    def flag(self) -> bool:
        return self.random.random() < 0.5


def plain(d: Draw, **more: Any) -> Config:
    kv = d.of(1, 2, 4)
    return {
        "hidden_size": d.number(32, 96, 16),
        "intermediate_size": d.number(24, 120, 8),
        "num_hidden_layers": d.number(2, 7),
        "num_attention_heads": kv * d.of(1, 2, 3),
        "num_key_value_heads": kv,
        "head_dim": d.of(8, 16, 24),
        "vocab_size": d.number(90, 300),
        "max_position_embeddings": 256,
        "tie_word_embeddings": d.flag(),
        **more,
    }


def by_heads(d: Draw, **more: Any) -> Config:
    """Where the class takes hidden_size / heads for the width of a head."""
    heads = more.pop("num_attention_heads", d.of(2, 4, 8))
    out = plain(d, num_attention_heads=heads, hidden_size=heads * d.of(8, 16), **more)
    out["num_key_value_heads"] = d.of(*(n for n in (1, 2, 4, 8) if heads % n == 0))
    del out["head_dim"]
    return out


def even(d: Draw, **more: Any) -> Config:
    """With a width of its own for a head, though hidden_size is a multiple of the heads as well."""
    out = plain(d, **more)
    return {**out, "hidden_size": 16 * out["num_attention_heads"]}


def kinds(d: Draw, n: int, *words: str) -> list[str]:
    """Each of the words at least once, where there is room."""
    out = [*words, *(d.of(*words) for _ in range(n))][:n]
    d.random.shuffle(out)
    return out


def experts(d: Draw, n_key: str = "num_experts", top: str = "num_experts_per_tok", **more: Any) -> Config:
    return {n_key: d.of(4, 6, 8), top: d.of(1, 2, 3), "moe_intermediate_size": d.number(8, 40, 8), **more}


def mla(d: Draw, **more: Any) -> Config:
    out = plain(d, **more)
    del out["head_dim"]
    return {
        **out,
        "num_key_value_heads": out["num_attention_heads"],
        "kv_lora_rank": d.of(16, 32),
        "q_lora_rank": d.of(None, 24),
        "qk_rope_head_dim": d.of(4, 8),
        "qk_nope_head_dim": d.of(8, 16),
        "v_head_dim": d.of(8, 12),
        "first_k_dense_replace": d.of(0, 1, 2),
        "n_group": 1,
        "topk_group": 1,
        **experts(d, "n_routed_experts", n_shared_experts=d.of(1, 2)),
    }


def mamba2(d: Draw, hidden: int) -> Config:
    width = d.of(8, 16)
    return {
        "mamba_n_heads": 2 * hidden // width,
        "mamba_d_head": width,
        "mamba_d_state": d.of(8, 16),
        "mamba_n_groups": 1,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_conv_bias": d.flag(),
        "mamba_proj_bias": d.flag(),
    }


def delta(d: Draw) -> Config:
    k = d.of(1, 2)
    return {
        "linear_num_key_heads": k,
        "linear_num_value_heads": k * d.of(1, 2),
        "linear_key_head_dim": d.of(8, 16),
        "linear_value_head_dim": d.of(8, 16),
        "linear_conv_kernel_dim": d.of(3, 4),
    }


def windows(d: Draw, c: Config, other: str = "full_attention") -> Config:
    n = c["num_hidden_layers"]
    return {**c, "sliding_window": WINDOW, "layer_types": kinds(d, n, "sliding_attention", other)}


def samples(d: Draw) -> dict[str, Config]:
    """One config of every family."""
    bias = {"attention_bias": d.flag()}
    out: dict[str, Config] = {
        "llama": plain(d, mlp_bias=d.flag(), **bias),
        "mistral": plain(d, sliding_window=d.of(None, WINDOW)),
        "ministral3": plain(d, sliding_window=d.of(None, WINDOW)),
        "ministral": windows(d, plain(d)),
        "mixtral": plain(d, sliding_window=None, num_local_experts=d.of(4, 8), num_experts_per_tok=2),
        "qwen2": by_heads(d),
        "qwen2_windowed": by_heads(d, use_sliding_window=True, sliding_window=WINDOW, max_window_layers=2),
        "qwen2_moe": by_heads(
            d,
            shared_expert_intermediate_size=d.of(16, 32),
            decoder_sparse_step=d.of(1, 2),
            mlp_only_layers=d.of([], [0]),
            **experts(d),
        ),
        "qwen3": plain(d, **bias),
        "qwen3_moe": plain(d, decoder_sparse_step=d.of(1, 2), mlp_only_layers=d.of([], [1]), **experts(d), **bias),
        "gemma": plain(d, **bias),
        "gemma2": windows(d, plain(d, **bias)),
        "gemma3_text": windows(d, plain(d, **bias)),
        "phi": by_heads(d, qk_layernorm=d.flag(), tie_word_embeddings=False, partial_rotary_factor=0.5),
        "phi3": by_heads(d, pad_token_id=0, sliding_window=d.of(None, WINDOW)),
        "phimoe": by_heads(
            d, num_local_experts=4, num_experts_per_tok=2, lm_head_bias=d.flag(), tie_word_embeddings=False, **bias
        ),
        "granite": by_heads(d, mlp_bias=d.flag(), **bias),
        "granitemoe": by_heads(d, num_local_experts=4, num_experts_per_tok=2, **bias),
        "granitemoeshared": by_heads(
            d, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=d.of(16, 32), **bias
        ),
        "glm": plain(d, pad_token_id=0, **bias),
        "glm4": plain(d, pad_token_id=0, **bias),
        "glm4_moe": plain(
            d,
            pad_token_id=0,
            use_qk_norm=d.flag(),
            first_k_dense_replace=d.of(0, 1),
            n_group=1,
            topk_group=1,
            n_shared_experts=d.of(1, 2),
            **experts(d, "n_routed_experts"),
            **bias,
        ),
        "cohere": by_heads(d, use_qk_norm=d.flag(), **bias),
        "cohere2": windows(d, plain(d, **bias)),
        "olmo": by_heads(d, pad_token_id=0, **bias),
        "olmo2": by_heads(d, pad_token_id=0, **bias),
        "olmo3": windows(d, by_heads(d, pad_token_id=0, **bias)),
        "olmoe": by_heads(d, pad_token_id=0, num_experts=4, num_experts_per_tok=2, **bias),
        "exaone4": windows(d, plain(d)),
        "seed_oss": plain(d, attention_out_bias=d.flag(), mlp_bias=d.flag(), **bias),
        "smollm3": by_heads(d, mlp_bias=d.flag(), pad_token_id=0, **bias),
        "ernie4_5": plain(d, use_bias=d.flag()),
        "ernie4_5_moe": by_heads(
            d,
            use_bias=d.flag(),
            moe_num_experts=d.of(4, 8),
            moe_k=2,
            moe_intermediate_size=d.of(16, 24),
            moe_num_shared_experts=d.of(1, 2),
            moe_layer_start_index=d.of(0, 1),
            moe_layer_interval=1,
            moe_layer_end_index=-1,
        ),
        "internlm3": even(d, qkv_bias=d.flag(), bias=d.flag()),
        "hunyuan_v1_dense": plain(d, **bias),
        "hunyuan_v1_moe": plain(d, num_experts=d.of(2, 4), moe_topk=1, **bias),
        "stablelm": by_heads(d, use_qkv_bias=d.flag(), qk_layernorm=d.flag(), use_parallel_residual=d.flag()),
        "starcoder2": by_heads(d, use_bias=d.flag(), sliding_window=d.of(None, WINDOW)),
        "nemotron": by_heads(d, mlp_bias=d.flag(), **bias),
        "arcee": even(d, mlp_bias=d.flag(), **bias),
        "apertus": by_heads(d, **bias),
        "hy_v3": plain(d, num_shared_experts=d.of(1, 2), mlp_bias=False, **experts(d), **bias),
        "exaone_moe": windows(d, plain(d, num_shared_experts=1, n_group=1, topk_group=1, **experts(d))),
        "minimax_m2": plain(d, num_local_experts=4, num_experts_per_tok=2, rotary_dim=8),
        "gpt_oss": windows(d, plain(d, num_local_experts=4, num_experts_per_tok=2, attention_bias=d.flag())),
        "minicpm3": {k: v for k, v in mla(d).items() if "exper" not in k and k != "first_k_dense_replace"},
        "deepseek_v2": mla(d, moe_layer_freq=1, topk_method="greedy", **bias),
        "deepseek_v3": mla(d, **bias),
        "glm4_moe_lite": {**mla(d, pad_token_id=0, **bias), "first_k_dense_replace": 1},
        "deepseek_v32": {
            **mla(d, **bias),
            "q_lora_rank": 24,
            "index_head_dim": 16,
            "index_n_heads": 2,
            "index_topk": 8,
        },
        "glm_moe_dsa": {
            **mla(d, pad_token_id=0, **bias),
            "q_lora_rank": 24,
            "index_head_dim": 16,
            "index_n_heads": 2,
            "index_topk": 8,
            "index_topk_freq": d.of(1, 2, 3),
            "index_skip_topk_offset": d.of(2, 3),
        },
        "gptj": {
            "model_type": "gptj",
            "n_embd": 64,
            "n_layer": d.number(2, 4),
            "n_head": d.of(2, 4),
            "n_positions": 128,
            "rotary_dim": 8,
            "vocab_size": d.number(90, 200),
            "n_inner": d.of(None, 96),
            "tie_word_embeddings": False,
        },
        "gpt2": {
            "n_embd": 48,
            "n_layer": d.number(2, 4),
            "n_head": d.of(2, 4),
            "n_positions": 128,
            "vocab_size": d.number(90, 200),
            "n_inner": d.of(None, 96),
        },
        "gpt_bigcode": {
            "n_embd": 48,
            "n_layer": d.number(2, 4),
            "n_head": d.of(2, 4),
            "n_positions": 128,
            "vocab_size": d.number(90, 200),
            "n_inner": d.of(None, 96),
            "multi_query": d.flag(),
        },
        "gpt_neo": {
            "hidden_size": 48,
            "num_layers": 4,
            "num_heads": 4,
            "max_position_embeddings": 128,
            "vocab_size": d.number(90, 200),
            "window_size": 64,
            "attention_types": [[["global", "local"], 2]],
        },
        "gpt_neox": {
            **{k: v for k, v in by_heads(d, tie_word_embeddings=False).items() if k != "num_key_value_heads"},
            "attention_bias": d.flag(),
        },
        "opt": {
            "hidden_size": 64,
            "num_hidden_layers": d.number(2, 4),
            "num_attention_heads": 4,
            "ffn_dim": 96,
            "vocab_size": d.number(90, 200),
            "max_position_embeddings": 128,
            "word_embed_proj_dim": d.of(64, 32),
            "do_layer_norm_before": d.flag(),
            "enable_bias": d.flag(),
            "pad_token_id": 1,
        },
        "bloom": {
            "hidden_size": 64,
            "n_layer": d.number(2, 4),
            "n_head": 4,
            "vocab_size": d.number(90, 200),
            "seq_length": 128,
        },
        "mpt": {
            "d_model": 64,
            "n_layers": d.number(2, 4),
            "n_heads": 4,
            "vocab_size": d.number(90, 200),
            "max_seq_len": 128,
            "expansion_ratio": 4,
            "no_bias": True,
        },
        "falcon": {
            "hidden_size": 64,
            "num_hidden_layers": d.number(2, 4),
            "num_attention_heads": 4,
            "vocab_size": 150,
            "multi_query": d.flag(),
            "parallel_attn": d.flag(),
            "bias": d.flag(),
            "alibi": False,
            "new_decoder_architecture": False,
        },
        "falcon_new": {
            "hidden_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "vocab_size": 150,
            "num_kv_heads": 2,
            "new_decoder_architecture": True,
            "bias": d.flag(),
            "num_ln_in_parallel_attn": d.of(1, 2),
            "tie_word_embeddings": d.flag(),
        },
        "jamba": by_heads(
            d,
            num_hidden_layers=8,
            num_experts=4,
            num_experts_per_tok=2,
            attn_layer_period=4,
            attn_layer_offset=2,
            expert_layer_period=2,
            expert_layer_offset=1,
            mamba_d_state=8,
            mamba_d_conv=4,
            mamba_expand=2,
            mamba_dt_rank=d.of("auto", 5),
            mamba_conv_bias=d.flag(),
            mamba_proj_bias=d.flag(),
            pad_token_id=0,
            use_mamba_kernels=False,
        ),
        "minimax": plain(
            d,
            num_local_experts=4,
            num_experts_per_tok=2,
            num_hidden_layers=4,
            block_size=16,
            layer_types=kinds(d, 4, "linear_attention", "full_attention"),
        ),
        "nemotron_h": {
            **plain(
                d,
                tie_word_embeddings=False,
                mlp_bias=d.flag(),
                n_group=1,
                topk_group=1,
                moe_shared_expert_intermediate_size=24,
                mamba_num_heads=d.of(2, 4),
                mamba_head_dim=16,
                ssm_state_size=8,
                n_groups=1,
                conv_kernel=4,
                use_conv_bias=d.flag(),
                moe_latent_size=d.of(None, 16),
                use_mamba_kernels=False,
                **experts(d, "n_routed_experts"),
                **bias,
            ),
            "num_hidden_layers": 6,
            "hybrid_override_pattern": "".join(kinds(d, 6, "M", "E", "*", "-")),
        },
        "qwen3_5_moe_text": plain(
            d,
            num_hidden_layers=4,
            shared_expert_intermediate_size=24,
            **experts(d),
            **delta(d),
        ),
        "qwen3_5_text": plain(d, num_hidden_layers=d.of(4, 8), full_attention_interval=d.of(2, 4), **delta(d)),
        "qwen3_next": plain(
            d,
            num_hidden_layers=4,
            shared_expert_intermediate_size=24,
            decoder_sparse_step=1,
            mlp_only_layers=[],
            **experts(d),
            **delta(d),
        ),
        "kimi_linear": {
            **mla(d, tie_word_embeddings=False),
            "num_hidden_layers": 4,
            "num_experts": 4,
            "num_experts_per_token": 2,
            "num_shared_experts": 1,
            "num_expert_group": 1,
            "model_max_length": 256,
            "pad_token_id": 0,
            "first_k_dense_replace": 1,
            "moe_layer_freq": 1,
            "linear_attn_config": {
                "kda_layers": [1, 2, 4],
                "full_attn_layers": [3],
                "num_heads": 2,
                "head_dim": 16,
                "short_conv_kernel_size": 4,
            },
        },
        "laguna": windows(
            d,
            plain(
                d,
                num_hidden_layers=4,
                num_attention_heads=4,
                num_key_value_heads=2,
                num_attention_heads_per_layer=[4, 8, 4, 8],
                shared_expert_intermediate_size=24,
                mlp_layer_types=["dense", "sparse", "sparse", "sparse"],
                gating=True,
                pad_token_id=0,
                **experts(d),
            ),
        ),
        "lfm2": {
            **by_heads(
                d,
                block_auto_adjust_ff_dim=d.flag(),
                block_multiple_of=16,
                conv_L_cache=3,
                conv_bias=d.flag(),
                pad_token_id=0,
            ),
            "num_hidden_layers": 4,
            "full_attn_idxs": [1, 3],
        },
        "lfm2_moe": {
            **by_heads(d, conv_L_cache=3, conv_bias=d.flag(), num_dense_layers=1, pad_token_id=0, **experts(d)),
            "num_hidden_layers": 4,
            "layer_types": ["conv", "full_attention", "conv", "full_attention"],
        },
        "llama4_text": plain(
            d,
            num_local_experts=4,
            num_experts_per_tok=1,
            intermediate_size_mlp=72,
            interleave_moe_layer_step=d.of(1, 2),
            attention_chunk_size=512,
            num_hidden_layers=4,
            pad_token_id=0,
            **bias,
        ),
        "gemma3n_text": windows(
            d,
            even(
                d,
                num_hidden_layers=6,
                num_kv_shared_layers=2,
                hidden_size_per_layer_input=8,
                vocab_size=120,
                vocab_size_per_layer_input=120,
                laurel_rank=8,
                altup_num_inputs=d.of(2, 4),
                pad_token_id=0,
                activation_sparsity_pattern=[0.0] * 6,
            ),
        ),
        "gemma4_text": plain(
            d,
            num_hidden_layers=6,
            num_kv_shared_layers=d.of(0, 2),
            hidden_size_per_layer_input=8,
            vocab_size=120,
            vocab_size_per_layer_input=120,
            global_head_dim=32,
            sliding_window=WINDOW,
            layer_types=["sliding_attention", "sliding_attention", "full_attention"] * 2,
            use_double_wide_mlp=d.flag(),
            pad_token_id=0,
        ),
        "gemma4_text_moe": plain(
            d,
            num_hidden_layers=6,
            hidden_size_per_layer_input=0,
            global_head_dim=32,
            sliding_window=WINDOW,
            num_key_value_heads=2,
            num_attention_heads=4,
            num_global_key_value_heads=1,
            attention_k_eq_v=True,
            enable_moe_block=True,
            num_experts=4,
            top_k_experts=2,
            moe_intermediate_size=24,
            pad_token_id=0,
        ),
        "deepseek_v4": {
            **plain(
                d,
                num_hidden_layers=5,
                head_dim=32,
                num_key_value_heads=1,
                num_attention_heads=4,
                intermediate_size=None,
            ),
            "q_lora_rank": 24,
            "o_groups": 2,
            "o_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "sliding_window": WINDOW,
            "compress_ratios": [0, 128, 4, 128, 4],
            "index_head_dim": 16,
            "index_n_heads": 2,
            "index_topk": 4,
            "hc_mult": d.of(2, 4),
            "n_shared_experts": 1,
            "num_hash_layers": 0,
            **experts(d, "n_routed_experts"),
        },
    }
    hidden = d.of(32, 64)
    out["granitemoehybrid"] = (
        by_heads(
            d,
            num_attention_heads=4,
            num_hidden_layers=4,
            num_local_experts=d.of(0, 4),
            num_experts_per_tok=2,
            shared_intermediate_size=40,
            layer_types=["mamba", "attention", "mamba", "mamba"],
            **bias,
        )
        | {"hidden_size": hidden, "num_key_value_heads": 2}
        | mamba2(d, hidden)
    )
    out["bamba"] = (
        by_heads(d, num_attention_heads=4, num_hidden_layers=4, attn_layer_indices=[1, 3], mlp_bias=d.flag(), **bias)
        | {"hidden_size": hidden, "num_key_value_heads": 2}
        | mamba2(d, hidden)
    )
    proj = d.flag()
    out["falcon_h1"] = (
        plain(d, hidden_size=hidden, mamba_d_ssm=2 * hidden, mamba_rms_norm=d.flag(), projectors_bias=proj, **bias)
        | mamba2(d, hidden)
        | {"mamba_proj_bias": proj}
    )
    out |= towers(d) | autumn_2026(d)
    for name, config in out.items():
        config["model_type"] = _TYPES.get(name, name)
        for key in [key for key, value in config.items() if value is None and key == "intermediate_size"]:
            del config[key]
    return out


_TYPES = {
    "qwen2_windowed": "qwen2", "falcon_new": "falcon", "gemma4_text_moe": "gemma4_text", "qwen4_ngrams": "qwen4_exp",
}  # fmt: skip


def autumn_2026(d: Draw) -> dict[str, Config]:
    """Families of that autumn; those with a tower are given the smallest that their class makes."""
    bias = {"attention_bias": d.flag()}
    index = {"index_head_dim": 16, "index_n_heads": d.of(2, 4), "index_topk": 8}
    tower = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    latent = {**mla(d), "num_hidden_layers": d.number(5, 9), "q_lora_rank": 24, "pad_token_id": 0}
    delta_of = {**{key: value for key, value in latent.items() if key != "q_lora_rank"}, "head_dim": 16}

    def nested(text: Config, **more: Any) -> Config:
        return {"text_config": text, "tie_word_embeddings": text["tie_word_embeddings"], **more}

    grouped = plain(d, num_hidden_layers=d.number(5, 9), pad_token_id=0)
    wide = even(d, num_hidden_layers=d.number(5, 9), pad_token_id=0, sliding_window=WINDOW)
    windowed = {**grouped, "sliding_window": WINDOW}
    qwen4 = plain(
        d,
        num_hidden_layers=d.of(4, 8),
        head_dim=16,
        shared_expert_intermediate_size=24,
        hc_lowrank=8,
        indexer_n_heads=d.of(2, 3),
        indexer_kv_heads=1,
        indexer_head_dim=16,
        indexer_budget=8,
        indexer_compress_ratio=4,
        pad_token_id=0,
        eos_token_id=1,
        **experts(d),
        **delta(d),
        **bias,
    )
    ngrams = {
        "ple_layer_ids": d.of([1], [2, 3]),
        "ple_embed_dim": 32,
        "heads_per_ngram": 2,
        "ngram_vocab_size_base": d.number(60, 200),
        "make_ngram_vocab_size_divisible_by": 8,
        "split_ngram_parts": 4,
    }
    qwen_tower = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 2,
        "patch_size": 14,
        "out_hidden_size": 24,
        "num_position_embeddings": 64,
    }
    return {
        "granite_swa": {**by_heads(d, **bias), "sliding_window": WINDOW},
        "afmoe": {
            **windowed,
            **experts(d),
            "num_dense_layers": d.of(0, 1, 2),
            "num_shared_experts": d.of(1, 2),
            **bias,
        },
        "beam": {**windowed, **experts(d), "n_group": 1, "topk_group": 1, **bias},
        "cohere2_moe": {
            **windowed,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "num_shared_experts": d.of(0, 1, 2),
            "prefix_dense_intermediate_size": 72,
            "first_k_dense_replace": d.of(0, 1, 2),
            "prefix_dense_sliding_window_pattern": d.of(1, 2),
            **bias,
        },
        "lfm3": {**windowed, "conv_L_cache": d.of(3, 7), "use_sandwich_norm": d.flag(), "use_attention_gate": d.flag()},
        "longcat_flash": {
            **{key: value for key, value in latent.items() if key != "num_hidden_layers"},
            "num_layers": 3,
            "ffn_hidden_size": 40,
            "expert_ffn_hidden_size": 24,
            "moe_topk": 2,
            "zero_expert_num": 0,
            "head_dim": latent["qk_rope_head_dim"],
        },
        "hy_v4": {**latent, **index, "first_k_dense_replace": 1, "hc_mult": d.of(2, 4), **bias},
        "bailing_hybrid": {
            **delta_of,
            "layer_group_size": d.of(2, 3),
            "num_local_experts": 6,
            "short_conv_kernel_size": 4,
            "num_mtp_layers": 0,
        },
        "glm5_next": nested(
            {
                **latent,
                **index,
                "first_k_dense_replace": 3,
                "qk_rope_head_dim": 0,
                "head_dim": 0,
                "linear_num_heads": d.of(2, 4),
                "linear_head_dim": 16,
                "linear_conv_kernel_dim": 4,
                "index_kpool": d.of(2, 4),
                "hc_mult": d.of(2, 4),
            },
            vision_config={
                **{key: tower[key] for key in ("hidden_size", "intermediate_size")},
                "depth": 2,
                "num_heads": 2,
                "out_hidden_size": 24,
                "projection_intermediate_size": 40,
            },
        ),
        "mistral_large4": nested(
            {**{key: value for key, value in latent.items() if key != "q_lora_rank"}, **index},
            vision_config={**tower, "model_type": "pixtral", "head_dim": 16, "image_size": 56, "patch_size": 14},
        ),
        "muse_spark": nested(
            {
                **wide,
                "tie_word_embeddings": False,
                "num_local_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 24,
                "moe_hidden_size": 40,
                **bias,
            },
            vision_config={**tower, "pos_emb_height": 8, "pos_emb_width": 8},
            audio_config={
                "out_hidden_size": wide["hidden_size"],
                "patch_sizes": [2, 2, 2, 2],
                "hidden_sizes": [8, 8, 8, 8],
            },
            out_hidden_size=128,
            projector_hidden_size=40,
        ),
        "step3p7": nested(
            {
                **windows(d, grouped),
                "num_sliding_attention_heads": grouped["num_key_value_heads"] * d.of(2, 4),
                "n_routed_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 24,
                "share_expert_dim": 16,
            },
            vision_config={
                **tower,
                "image_size": 56,
                "patch_size": 14,
                "max_position_embeddings": 16,
                "mlp_ratio": 1.5,
            },
        ),
        "inkling_mm_model": nested(
            {
                **{key: value for key, value in windowed.items() if key != "sliding_window"},
                "tie_word_embeddings": False,
                "num_attention_heads": 4,
                "num_key_value_heads": 2,
                "sliding_window_size": WINDOW,
                "swa_num_attention_heads": 4,
                "swa_head_dim": 8,
                "swa_num_key_value_heads": d.of(1, 2),
                "d_rel": 4,
                "rel_extent": 12,
                **experts(d, "n_routed_experts", n_shared_experts=d.of(1, 2)),
            },
            vision_config={},
        ),
        "dots3_note": nested(
            {
                **latent,
                **index,
                "sliding_window": WINDOW,
                "use_sliding_window": True,
                "swa_num_attention_heads": 4,
                "swa_num_key_value_heads": 4,
                "swa_q_lora_rank": 16,
                "swa_kv_lora_rank": 24,
                "swa_head_dim": 16,
                "swa_qk_nope_head_dim": 12,
                "swa_v_head_dim": 8,
                "n_shared_experts": 1,
                "shared_experts_intermediate_size": 24,
            },
            vision_config={
                **tower,
                "adapter_in_dim": 32,
                "adapter_out_dim": latent["hidden_size"],
                "pyramid_num_routed": [-1, -1],
            },
            audio_config={"adapter_out_dim": latent["hidden_size"]},
        ),
        "qwen4_exp": nested({**qwen4}, vision_config=qwen_tower),
        "qwen4_ngrams": nested({**qwen4, **ngrams}, vision_config=qwen_tower),
    }


def towers(d: Draw) -> dict[str, Config]:
    """Models with a vision tower, of which parameters alone are compared."""
    siglip = {
        "model_type": "siglip_vision_model",
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 56,
        "patch_size": 14,
    }
    clip = {**siglip, "model_type": "clip_vision_model"}
    pixtral = {**siglip, "model_type": "pixtral", "head_dim": 16}
    qwen = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 2,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }
    text = even(d)
    hidden = text["hidden_size"]

    def of(model_type: str, **more: Any) -> Config:
        return {**text, "model_type": model_type, **more}

    out = {
        "gemma3": {
            "text_config": of("gemma3_text", sliding_window=WINDOW),
            "vision_config": {**siglip, "vision_use_head": d.flag()},
            "mm_tokens_per_image": 4,
        },
        "llava": {"text_config": of("llama"), "vision_config": clip, "multimodal_projector_bias": d.flag()},
        "llava_next": {
            "text_config": of("mistral", sliding_window=None),
            "vision_config": clip,
            "vision_feature_layer": d.of(-2, [-2, -1]),
        },
        "mistral3": {
            "text_config": of("mistral", sliding_window=None),
            "vision_config": pixtral,
            "spatial_merge_size": 2,
            "multimodal_projector_bias": d.flag(),
        },
        "qwen2_vl": {
            "text_config": by_heads(d, num_hidden_layers=2),
            "vision_config": {
                "depth": 2,
                "embed_dim": 32,
                "num_heads": 2,
                "mlp_ratio": 4,
                "patch_size": 14,
                "hidden_size": hidden,
            },
        },
        "qwen2_5_vl": {
            "text_config": by_heads(d, num_hidden_layers=2),
            "vision_config": {**qwen, "out_hidden_size": hidden},
        },
        "qwen3_vl": {
            "text_config": of("qwen3_vl_text"),
            "vision_config": {
                **qwen,
                "out_hidden_size": hidden,
                "num_position_embeddings": 64,
                "deepstack_visual_indexes": d.of([0], [0, 1]),
            },
        },
        "qwen3_vl_moe": {
            "text_config": of("qwen3_vl_moe_text", **experts(d)),
            "vision_config": {**qwen, "out_hidden_size": hidden, "num_position_embeddings": 64},
        },
        "qwen3_5": {
            "text_config": of("qwen3_5_text", num_hidden_layers=4, **delta(d)),
            "vision_config": {**qwen, "out_hidden_size": hidden, "num_position_embeddings": 64},
        },
        "llama4": {
            "text_config": of(
                "llama4_text", num_local_experts=4, num_experts_per_tok=1, intermediate_size_mlp=72, pad_token_id=0
            ),
            "vision_config": {
                **siglip,
                "model_type": "llama4_vision_model",
                "intermediate_size": 128,
                "projector_input_dim": 40,
                "projector_output_dim": 40,
                "vision_output_dim": 40,
            },
        },
        "gemma4": {
            "text_config": of(
                "gemma4_text",
                num_hidden_layers=6,
                sliding_window=WINDOW,
                hidden_size_per_layer_input=0,
                global_head_dim=32,
                pad_token_id=0,
            ),
            "vision_config": {
                "model_type": "gemma4_vision",
                "hidden_size": 32,
                "intermediate_size": 48,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "num_key_value_heads": 2,
                "head_dim": 16,
                "position_embedding_size": 30,
            },
        },
        "muse_glimmer": {
            "text_config": windows(d, of("muse_glimmer_text", pad_token_id=0)),
            "vision_config": {
                "hidden_size": 32,
                "intermediate_size": 48,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "max_position_embeddings": 64,
                "pos_emb_height": 8,
                "pos_emb_width": 8,
            },
            "out_hidden_size": 128,
            "projector_hidden_size": 40,
        },
        "cohere2_vision": {
            "text_config": of("cohere2", sliding_window=WINDOW),
            "vision_config": siglip,
            "downsample_factor": 2,
            "alignment_intermediate_size": 40,
        },
        "glm4v": {
            "text_config": {**by_heads(d, pad_token_id=0), "model_type": "glm4v_text"},
            "vision_config": {**qwen, "out_hidden_size": 24, "image_size": 56},
        },
    }
    for config in out.values():
        config["tie_word_embeddings"] = config["text_config"]["tie_word_embeddings"]
    return out
