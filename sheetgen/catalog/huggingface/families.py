"""The families that can be counted, by model_type. What is not here is refused by name, never guessed."""

from __future__ import annotations

from sheetgen.catalog.huggingface.dense import DENSE
from sheetgen.catalog.huggingface.family import Family
from sheetgen.catalog.huggingface.hybrid import HYBRID, SPECIAL
from sheetgen.catalog.huggingface.sparse import SPARSE

FAMILIES: dict[str, Family] = {**DENSE, **SPARSE, **HYBRID, **SPECIAL}

# A model_type that wraps a text_config: the key of that, and the tower beside it ("" where it is not counted).
WRAPPERS: dict[str, tuple[str, str]] = {
    "gemma3": ("text_config", "siglip"),
    "gemma3n": ("text_config", "gemma3n"),
    "gemma4": ("text_config", "gemma4"),
    "gemma4_unified": ("text_config", "gemma4"),
    "cohere2_vision": ("text_config", "cohere2"),
    "llama4": ("text_config", "llama4"),
    "llava": ("text_config", "llava"),
    "llava_next": ("text_config", "llava"),
    "mistral3": ("text_config", "pixtral"),
    "qwen2_vl": ("text_config", "qwen2_vl"),
    "qwen2_5_vl": ("text_config", "qwen2_5_vl"),
    "qwen3_vl": ("text_config", "qwen3_vl"),
    "qwen3_vl_moe": ("text_config", "qwen3_vl"),
    "qwen3_5": ("text_config", "qwen3_vl"),
    "qwen3_5_moe": ("text_config", "qwen3_vl"),
    "kimi_k25": ("text_config", "moonvit"),
    "muse_glimmer": ("text_config", "muse"),
    "minimax_m3_vl": ("text_config", "minimax_m3"),
    "glm4v": ("text_config", "glm4v"),
    "glm4v_moe": ("text_config", "glm4v"),
    "internvl_chat": ("llm_config", "intern_vit"),
    "kimi_vl": ("text_config", "moonvit"),
}
