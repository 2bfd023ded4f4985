"""Families that transformers has no class for, against totals that others counted on the published weights."""

from __future__ import annotations

from typing import Any

import pytest

from sheetgen.importer.model_entry import import_config

INTERNLM2 = {
    "model_type": "internlm2",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 92544,
    "max_position_embeddings": 32768,
    "bias": False,
    "tie_word_embeddings": False,
}
# safetensors totals by HfApi: github:floschne/gimmick, gimmick/models (get_model_sizes); ChatGLM and DeepSeek MoE
# as printed by several public training logs ("all params: 6243584000") and benchmarks ("num_params: 16375728128");
# Ling-mini by its safetensors total.
PUBLISHED: list[tuple[str, dict[str, Any], int]] = [
    ("internlm/internlm2_5-7b-chat", INTERNLM2, 7_737_708_544),
    (
        "internlm/internlm2_5-20b-chat",
        {
            **INTERNLM2,
            "hidden_size": 6144,
            "intermediate_size": 16384,
            "num_hidden_layers": 48,
            "num_attention_heads": 48,
        },
        19_861_149_696,
    ),
    (
        "OpenGVLab/InternVL2_5-8B",
        {
            "model_type": "internvl_chat",
            "downsample_ratio": 0.5,
            "force_image_size": 448,
            "max_dynamic_patch": 12,
            "llm_config": {**INTERNLM2, "vocab_size": 92553},
            "vision_config": {
                "hidden_size": 1024,
                "intermediate_size": 4096,
                "num_hidden_layers": 24,
                "image_size": 448,
                "patch_size": 14,
                "qkv_bias": True,
                "qk_normalization": False,
                "norm_type": "layer_norm",
            },
        },
        8_075_365_376,
    ),
    (
        "THUDM/chatglm3-6b",
        {
            "model_type": "chatglm",
            "hidden_size": 4096,
            "ffn_hidden_size": 13696,
            "kv_channels": 128,
            "num_layers": 28,
            "num_attention_heads": 32,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
            "padded_vocab_size": 65024,
            "seq_length": 8192,
            "add_qkv_bias": True,
            "add_bias_linear": False,
        },
        6_243_584_000,
    ),
    (
        "deepseek-ai/deepseek-moe-16b-base",
        {
            "model_type": "deepseek",
            "hidden_size": 2048,
            "intermediate_size": 10944,
            "moe_intermediate_size": 1408,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "first_k_dense_replace": 1,
            "vocab_size": 102400,
            "max_position_embeddings": 4096,
        },
        16_375_728_128,
    ),
    (
        "inclusionAI/Ling-mini-2.0",
        {
            "model_type": "bailing_moe",
            "hidden_size": 2048,
            "intermediate_size": 5120,
            "moe_intermediate_size": 512,
            "num_hidden_layers": 20,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "num_experts": 256,
            "num_shared_experts": 1,
            "num_experts_per_tok": 8,
            "first_k_dense_replace": 1,
            "use_qk_norm": True,
            "use_qkv_bias": False,
            "use_bias": False,
            "tie_word_embeddings": False,
            "vocab_size": 157184,
            "max_position_embeddings": 32768,
        },
        16_255_643_392 - 19 * 256,  # less the routers' corrections, which no entry counts
    ),
]


@pytest.mark.parametrize(("name", "config", "total"), PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_total(name: str, config: dict[str, Any], total: int) -> None:
    assert import_config(config, name=name.split("/")[1]).params.total == total


def test_the_largest_images() -> None:
    """The images of vLLM's profile run, for models whose config.json says them."""
    internvl = import_config(PUBLISHED[2][1], name="x").encoder
    assert internvl is not None
    assert (internvl.max_item_tokens, internvl.max_item_elements) == (13 * 256, 13 * 3 * 448 * 448)
