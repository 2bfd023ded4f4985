"""Vision towers by the model that carries them: the tower and the projector into the language model."""

from __future__ import annotations

from collections.abc import Callable

from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.merging_towers import glm4v, minimax_m3, qwen2_5_vl, qwen2_vl, qwen3_vl
from sheetgen.catalog.huggingface.vit import blocks, grid_of, matrix, patches, vision_part


def siglip_tower(v: Fields) -> int:
    width, mlp, n = v.count("hidden_size"), v.count("intermediate_size"), v.count("num_hidden_layers")
    total = patches(v, width, bias=True) + grid_of(v) ** 2 * width + blocks(n, width, mlp) + 2 * width
    if v.flag("vision_use_head", True):
        total += width + matrix(width, 4 * width) + 2 * width + matrix(width, mlp) + matrix(mlp, width)
    return total


def clip_tower(v: Fields) -> int:
    width, mlp, n = v.count("hidden_size"), v.count("intermediate_size"), v.count("num_hidden_layers")
    return width + patches(v, width, bias=False) + (grid_of(v) ** 2 + 1) * width + blocks(n, width, mlp) + 4 * width


def pixtral_tower(v: Fields) -> int:
    width, mlp, n = v.count("hidden_size"), v.count("intermediate_size"), v.count("num_hidden_layers")
    return patches(v, width, bias=False) + width + blocks(n, width, mlp, gated=True, bias=False, norm=1)


_TOWERS = {"siglip_vision_model": siglip_tower, "clip_vision_model": clip_tower, "pixtral": pixtral_tower}
_TOWER_DEFAULTS = {
    "siglip_vision_model": {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "image_size": 224,
        "patch_size": 16,
    },
    "clip_vision_model": {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "image_size": 224,
        "patch_size": 32,
    },
    "pixtral": {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "image_size": 1024,
        "patch_size": 16,
    },
}


def _named_tower(outer: Fields, default: str) -> tuple[Fields, int]:
    v = vision_part(outer)
    name = v.one_of("model_type", {key: key for key in _TOWERS}, default)
    v = v.reading(_TOWER_DEFAULTS[name], {})
    return v, _TOWERS[name](v)


def gemma3(outer: Fields, text: Fields) -> int:
    v, tower = _named_tower(outer, "siglip_vision_model")
    return tower + v.count("hidden_size") * text.count("hidden_size") + v.count("hidden_size")


def llava(outer: Fields, text: Fields) -> int:
    """One layer of the tower, or several side by side, through two matrices."""
    v, tower = _named_tower(outer, "clip_vision_model")
    bias, hidden = outer.flag("multimodal_projector_bias", True), text.count("hidden_size")
    n = len(outer.items("vision_feature_layer")) if isinstance(outer.raw("vision_feature_layer"), list) else 1
    newline = hidden if outer.raw("model_type") == "llava_next" else 0
    return tower + matrix(n * v.count("hidden_size"), hidden, bias) + matrix(hidden, hidden, bias) + newline


def mistral3(outer: Fields, text: Fields) -> int:
    v, tower = _named_tower(outer, "pixtral")
    width, hidden, merge = v.count("hidden_size"), text.count("hidden_size"), outer.count("spatial_merge_size", 2)
    bias = outer.flag("multimodal_projector_bias", False)
    merger = width + merge**2 * width * width
    return tower + merger + matrix(width, hidden, bias) + matrix(hidden, hidden, bias)


def llama4(outer: Fields, text: Fields) -> int:
    v = vision_part(outer).reading(
        {
            "hidden_size": 768,
            "intermediate_size": 5632,
            "num_hidden_layers": 34,
            "image_size": 448,
            "patch_size": 14,
            "projector_input_dim": 4096,
            "projector_output_dim": 4096,
            "vision_output_dim": 7680,
        },
        {},
    )
    width, mlp, n = v.count("hidden_size"), v.count("intermediate_size"), v.count("num_hidden_layers")
    tower = width + patches(v, width, bias=False) + (grid_of(v) ** 2 + 1) * width + 4 * width + blocks(n, width, mlp)
    middle, out = v.count("projector_input_dim"), v.count("projector_output_dim")
    adapter = mlp * middle + middle * out
    return tower + adapter + v.count("vision_output_dim") * text.count("hidden_size")


def moonvit(outer: Fields, text: Fields) -> int:
    v = vision_part(outer).reading({"patch_size": 14}, {})
    width = v.count(v.first("vt_hidden_size", "hidden_size"))
    mlp = v.count(v.first("vt_intermediate_size", "intermediate_size"))
    n = v.count(v.first("vt_num_hidden_layers", "num_hidden_layers"))
    positions = v.count(v.first("init_pos_emb_height", "pos_emb_height"), 64) * v.count(
        v.first("init_pos_emb_width", "pos_emb_width"), 64
    )
    merged = 4 * width
    tower = patches(v, width, bias=True) + positions * width + blocks(n, width, mlp) + 2 * width
    return tower + 2 * width + matrix(merged, merged) + matrix(merged, text.count("hidden_size"))


def gemma4(outer: Fields, text: Fields) -> int:
    v = vision_part(outer).reading(
        {
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 16,
            "num_attention_heads": 12,
            "num_key_value_heads": 12,
            "head_dim": 64,
            "patch_size": 16,
            "position_embedding_size": 10240,
        },
        {},
    )
    width, mlp, head = v.count("hidden_size"), v.count("intermediate_size"), v.count("head_dim")
    heads, kv = v.count("num_attention_heads"), v.count("num_key_value_heads")
    block = 2 * width * head * (heads + kv) + 3 * width * mlp + 2 * head + 4 * width
    tower = 2 * v.count("position_embedding_size") * width + patches(v, width, bias=False)
    return tower + v.count("num_hidden_layers") * block + width * text.count("hidden_size")


def muse(outer: Fields, text: Fields) -> int:
    v = vision_part(outer).reading(
        {
            "hidden_size": 1536,
            "intermediate_size": 8960,
            "num_hidden_layers": 50,
            "patch_size": 14,
            "patch_temporal": 2,
            "merge_size": 2,
            "max_position_embeddings": 1024,
        },
        {},
    )
    width, n = v.count("hidden_size"), v.count("num_hidden_layers")
    tower = patches(v, width, bias=False, frames=v.count("patch_temporal")) + 4 * width
    tower += v.count("max_position_embeddings") * width + blocks(n, width, v.count("intermediate_size"))
    merged, middle = outer.count("out_hidden_size", 6144), outer.count("projector_hidden_size", 4096)
    return tower + merged * middle + middle * middle + middle * text.count("hidden_size")


def intern_vit(outer: Fields, text: Fields) -> int:
    v = vision_part(outer)
    width, mlp, n = v.count("hidden_size"), v.count("intermediate_size"), v.count("num_hidden_layers")
    grid = outer.count("force_image_size", v.count("image_size")) // v.count("patch_size")
    block = blocks(1, width, mlp) + 2 * width  # two scales of the residuals
    if not v.flag("qkv_bias", True):
        block -= 3 * width
    if v.flag("qk_normalization", False):
        block += 2 * width
    if v.text("norm_type", "layer_norm") == "rms_norm":
        block -= 2 * width
    tower = width + (grid**2 + 1) * width + patches(v, width, bias=True) + n * block
    merged, hidden = round(width / outer.number("downsample_ratio", 0.5) ** 2), text.count("hidden_size")
    return tower + 2 * merged + matrix(merged, hidden) + matrix(hidden, hidden)


def cohere2_vision(outer: Fields, text: Fields) -> int:
    """Neighbouring patches side by side through a gated pair of matrices."""
    v, tower = _named_tower(outer, "siglip_vision_model")
    middle = outer.count("alignment_intermediate_size", 36864)
    merged = v.count("hidden_size") * outer.count("downsample_factor", 2) ** 2
    return tower + matrix(merged, middle) + matrix(middle // 2, text.count("hidden_size"))


TOWERS: dict[str, Callable[[Fields, Fields], int]] = {
    "siglip": gemma3,
    "llava": llava,
    "pixtral": mistral3,
    "cohere2": cohere2_vision,
    "llama4": llama4,
    "qwen2_vl": qwen2_vl,
    "qwen2_5_vl": qwen2_5_vl,
    "qwen3_vl": qwen3_vl,
    "moonvit": moonvit,
    "gemma4": gemma4,
    "muse": muse,
    "minimax_m3": minimax_m3,
    "glm4v": glm4v,
    "intern_vit": intern_vit,
}
