"""Configs at random, and their parameters added up once more, matrix by matrix, sharing nothing with the importer."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Config = dict[str, Any]
SMALL = st.integers(1, 64)


@st.composite
def dense(draw: st.DrawFn) -> Config:
    kv = draw(st.sampled_from([1, 2, 4, 8]))
    n = draw(st.integers(1, 40))
    config: Config = {
        "model_type": "qwen3",
        "hidden_size": draw(SMALL) * 8,
        "intermediate_size": draw(SMALL) * 8,
        "num_hidden_layers": n,
        "num_attention_heads": kv * draw(st.integers(1, 6)),
        "num_key_value_heads": kv,
        "head_dim": draw(st.sampled_from([8, 64, 80, 128])),
        "vocab_size": draw(st.integers(10, 300_000)),
        "max_position_embeddings": draw(st.integers(64, 10**6)),
        "tie_word_embeddings": draw(st.booleans()),
        "attention_bias": draw(st.booleans()),
        "torch_dtype": draw(st.sampled_from(["bfloat16", "float16"])),
    }
    if draw(st.booleans()):
        config["layer_types"] = draw(
            st.lists(st.sampled_from(["full_attention", "sliding_attention"]), min_size=n, max_size=n)
        )
        config["sliding_window"] = draw(st.integers(1, 63))
    return config


@st.composite
def sparse(draw: st.DrawFn) -> Config:
    n = draw(st.integers(2, 64))
    return {
        **draw(dense()),
        "model_type": "qwen3_moe",
        "num_experts": n,
        "num_experts_per_tok": draw(st.integers(1, n)),
        "moe_intermediate_size": draw(SMALL),
        "decoder_sparse_step": draw(st.integers(1, 3)),
        "mlp_only_layers": draw(st.lists(st.integers(0, 20), max_size=4)),
    }


@st.composite
def latent(draw: st.DrawFn) -> Config:
    config = draw(sparse())
    for key in ("layer_types", "sliding_window", "head_dim"):
        config.pop(key, None)
    return {
        **config,
        "model_type": "deepseek_v3",
        "kv_lora_rank": draw(SMALL) * 8,
        "q_lora_rank": draw(st.none() | SMALL),
        "qk_rope_head_dim": draw(st.sampled_from([8, 64])),
        "qk_nope_head_dim": draw(st.sampled_from([16, 128])),
        "v_head_dim": draw(st.sampled_from([16, 128])),
        "n_routed_experts": config["num_experts"],
        "n_shared_experts": draw(st.integers(0, 2)),
        "first_k_dense_replace": draw(st.integers(0, 5)),
    }


@st.composite
def hybrid(draw: st.DrawFn) -> Config:
    config = draw(dense())
    n = config["num_hidden_layers"]
    k = draw(st.integers(1, 4))
    config.pop("sliding_window", None)
    return {
        **config,
        "model_type": "qwen3_5_text",
        "layer_types": draw(st.lists(st.sampled_from(["full_attention", "linear_attention"]), min_size=n, max_size=n)),
        "linear_num_key_heads": k,
        "linear_num_value_heads": k * draw(st.integers(1, 4)),
        "linear_key_head_dim": draw(SMALL),
        "linear_value_head_dim": draw(SMALL),
        "linear_conv_kernel_dim": draw(st.integers(2, 5)),
    }


def total(c: Config) -> int:
    """Every weight of the model: embedding, layers, last norm, output."""
    count = c["vocab_size"] * c["hidden_size"] * (1 if c["tie_word_embeddings"] else 2) + c["hidden_size"]
    for i in range(c["num_hidden_layers"]):
        count += 2 * c["hidden_size"]  # the two norms
        count += _attention(c, i) + (_moe(c) if _is_sparse(c, i) else 3 * c["hidden_size"] * c["intermediate_size"])
    return count


def routed(c: Config) -> int:
    mlp = 3 * c["hidden_size"] * c.get("moe_intermediate_size", 0)
    return sum(_n(c) * mlp for i in range(c["num_hidden_layers"]) if _is_sparse(c, i))


def _n(c: Config) -> int:
    return c.get("n_routed_experts") or c.get("num_experts") or 0


def _is_sparse(c: Config, i: int) -> bool:
    if c["model_type"] == "deepseek_v3":
        return i >= c["first_k_dense_replace"]
    return c["model_type"] == "qwen3_moe" and i not in c["mlp_only_layers"] and (i + 1) % c["decoder_sparse_step"] == 0


def _moe(c: Config) -> int:
    h, w = c["hidden_size"], c["moe_intermediate_size"]
    return _n(c) * h + _n(c) * 3 * h * w + 3 * h * w * c.get("n_shared_experts", 0)


def _attention(c: Config, i: int) -> int:
    h, heads = c["hidden_size"], c["num_attention_heads"]
    if c["model_type"] == "deepseek_v3":
        rope, nope, v = c["qk_rope_head_dim"], c["qk_nope_head_dim"], c["v_head_dim"]
        rank, latent_width, b = c["q_lora_rank"], c["kv_lora_rank"], c["attention_bias"]
        q = h * rank + rank * b + rank + rank * heads * (nope + rope) if rank else h * heads * (nope + rope)
        down = h * (latent_width + rope) + (latent_width + rope) * b + latent_width
        return q + down + latent_width * heads * (nope + v) + heads * v * h + h * b
    if c.get("layer_types", [""] * (i + 1))[i] == "linear_attention":
        k = c["linear_num_key_heads"] * c["linear_key_head_dim"]
        vh, vd = c["linear_num_value_heads"], c["linear_value_head_dim"]
        qkvz = h * (2 * k + 2 * vh * vd) + 2 * h * vh
        return qkvz + (2 * k + vh * vd) * c["linear_conv_kernel_dim"] + 2 * vh + vd + vh * vd * h
    kv, d, b = c["num_key_value_heads"], c["head_dim"], c["attention_bias"]
    gates = 2 if c["model_type"] == "qwen3_5_text" else 1
    weights = h * (gates * heads + 2 * kv) * d + heads * d * h + 2 * d
    return weights + ((gates * heads + 2 * kv) * d + h) * b
