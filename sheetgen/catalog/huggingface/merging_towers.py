"""Towers that take images of any size and merge neighbouring patches: the Qwen line and its like."""

from __future__ import annotations

from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.vit import blocks, grid_of, matrix, patches, vision_part


def qwen2_vl(outer: Fields, text: Fields) -> int:
    v = vision_part(outer).reading(
        {
            "embed_dim": 1280,
            "depth": 32,
            "mlp_ratio": 4,
            "patch_size": 14,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "hidden_size": 3584,
        },
        {},
    )
    width, merge = v.count("embed_dim"), v.count("spatial_merge_size") ** 2
    mlp = int(width * v.number("mlp_ratio"))
    tower = patches(v, width, bias=False, frames=v.count("temporal_patch_size")) + blocks(v.count("depth"), width, mlp)
    return tower + 2 * width + matrix(merge * width, merge * width) + matrix(merge * width, v.count("hidden_size"))


def qwen2_5_vl(outer: Fields, text: Fields) -> int:
    v = vision_part(outer).reading(
        {
            "hidden_size": 3584,
            "intermediate_size": 3420,
            "depth": 32,
            "patch_size": 14,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "out_hidden_size": 3584,
        },
        {},
    )
    width, merge = v.count("hidden_size"), v.count("spatial_merge_size") ** 2
    tower = patches(v, width, bias=False, frames=v.count("temporal_patch_size"))
    tower += blocks(v.count("depth"), width, v.count("intermediate_size"), gated=True, norm=1)
    return tower + width + matrix(merge * width, merge * width) + matrix(merge * width, v.count("out_hidden_size"))


def qwen3_vl(outer: Fields, text: Fields) -> int:
    """As before with learned positions, and one more merger for each layer that is fed deep into the model."""
    v = vision_part(outer).reading(
        {
            "hidden_size": 1152,
            "intermediate_size": 4304,
            "depth": 27,
            "patch_size": 16,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "out_hidden_size": 3584,
            "num_position_embeddings": 2304,
        },
        {},
    )
    width, merge, out = v.count("hidden_size"), v.count("spatial_merge_size") ** 2, v.count("out_hidden_size")
    tower = patches(v, width, bias=True, frames=v.count("temporal_patch_size"))
    tower += v.count("num_position_embeddings") * width + blocks(v.count("depth"), width, v.count("intermediate_size"))
    merger = matrix(merge * width, merge * width) + matrix(merge * width, out)
    is_vl = str(outer.raw("model_type")).startswith("qwen3_vl")
    deep = 3 if is_vl and v.raw("deepstack_visual_indexes") is None else 0
    if v.raw("deepstack_visual_indexes") is not None:
        deep = len(v.items("deepstack_visual_indexes"))
    return tower + 2 * width + merger + deep * (2 * merge * width + merger)


def minimax_m3(outer: Fields, text: Fields) -> int:
    v = vision_part(outer).reading(
        {
            "hidden_size": 1280,
            "intermediate_size": 5120,
            "num_hidden_layers": 32,
            "patch_size": 14,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
        },
        {},
    )
    width, hidden = v.count("hidden_size"), text.count("hidden_size")
    middle = outer.count("projector_hidden_size", hidden)
    tower = patches(v, width, bias=False, frames=v.count("temporal_patch_size")) + 2 * width
    tower += blocks(v.count("num_hidden_layers"), width, v.count("intermediate_size"))
    merged = v.count("spatial_merge_size") ** 2 * hidden
    return tower + matrix(width, middle) + matrix(middle, hidden) + matrix(merged, middle) + matrix(middle, hidden)


def glm4v(outer: Fields, text: Fields) -> int:
    v = vision_part(outer).reading(
        {
            "hidden_size": 1536,
            "intermediate_size": 13696,
            "out_hidden_size": 4096,
            "depth": 24,
            "patch_size": 14,
            "image_size": 336,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
        },
        {},
    )
    width, out, mlp = v.count("hidden_size"), v.count("out_hidden_size"), v.count("intermediate_size")
    bias = v.flag("attention_bias", False)
    tower = grid_of(v) ** 2 * width + patches(v, width, bias=True, frames=v.count("temporal_patch_size"))
    block = 4 * width * width + 3 * width * out + 2 * width + 4 * width * bias
    merger = out * out + 2 * out + 3 * out * mlp
    down = matrix(v.count("spatial_merge_size") ** 2 * width, out)
    return tower + v.count("depth") * block + merger + down + 2 * width
