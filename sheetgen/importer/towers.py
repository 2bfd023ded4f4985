"""Vision towers by model: the parameters of the tower and of the projector into the language model.

The Qwen models and similar ones take images of any size and merge neighbouring patches. Of every function `v` is the
vision_config, `outer` the whole config, and `text` the part of the language model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sheetgen.catalog.base import RawRecord
from sheetgen.importer.config_reader import Fields
from sheetgen.shipped import shipped_table


def blocks(n: int, width: int, mlp: int, *, gated: bool = False, bias: bool = True, norm: int = 2) -> int:
    """The parameters of `n` plain blocks: four square matrices, an FFN, two norms of `norm` elements per channel."""
    matrices = (3 if gated else 2) * width * mlp
    biases = 4 * width + (2 if gated else 1) * mlp + width if bias else 0
    return n * (4 * width * width + matrices + biases + 2 * norm * width)


def matrix(n_in: int, n_out: int, bias: bool = True) -> int:
    return n_in * n_out + n_out * bias


def grid_of(v: Fields) -> int:
    """The number of patches along one side."""
    return v.count("image_size") // v.count("patch_size")


def patches(v: Fields, width: int, bias: bool, frames: int = 1) -> int:
    channels = v.count(v.first("num_channels", "in_channels", "in_chans"), 3)
    return channels * frames * v.count("patch_size") ** 2 * width + width * bias


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


_TABLE = shipped_table("towers.toml")
_DEFAULTS: Mapping[str, dict[str, float]] = _TABLE["towers"]
_MODELS = {"siglip_vision_model": siglip_tower, "clip_vision_model": clip_tower, "pixtral": pixtral_tower}


def _named_tower(v: Fields, default: str) -> tuple[Fields, int]:
    name = v.one_of("model_type", {key: key for key in _MODELS}, default)
    v = v.reading(_TABLE["models"][name], {})
    return v, _MODELS[name](v)


# Defaults of each tower's class for absent keys of its vision_config, beside those that nearly all share.
_USUAL = {"patch_size": 14, "temporal_patch_size": 2, "spatial_merge_size": 2}


def gemma3(v: Fields, outer: Fields, text: Fields) -> int:
    v, tower = _named_tower(v, "siglip_vision_model")
    return tower + v.count("hidden_size") * text.count("hidden_size") + v.count("hidden_size")


def llava(v: Fields, outer: Fields, text: Fields) -> int:
    """The tower, and a projector of two matrices for one of its layers or several side by side."""
    v, tower = _named_tower(v, "clip_vision_model")
    bias, hidden = outer.flag("multimodal_projector_bias", True), text.count("hidden_size")
    n = len(outer.items("vision_feature_layer")) if isinstance(outer.raw("vision_feature_layer"), list) else 1
    newline = hidden if outer.raw("model_type") == "llava_next" else 0
    return tower + matrix(n * v.count("hidden_size"), hidden, bias) + matrix(hidden, hidden, bias) + newline


def mistral3(v: Fields, outer: Fields, text: Fields) -> int:
    v, tower = _named_tower(v, "pixtral")
    width, hidden, merge = v.count("hidden_size"), text.count("hidden_size"), outer.count("spatial_merge_size", 2)
    bias = outer.flag("multimodal_projector_bias", False)
    merger = width + merge**2 * width * width
    return tower + merger + matrix(width, hidden, bias) + matrix(hidden, hidden, bias)


def llama4(v: Fields, outer: Fields, text: Fields) -> int:
    tower, middle = clip_tower(v), v.count("projector_input_dim")
    adapter = v.count("intermediate_size") * middle + middle * v.count("projector_output_dim")
    return tower + adapter + v.count("vision_output_dim") * text.count("hidden_size")


def moonvit(v: Fields, outer: Fields, text: Fields) -> int:
    width = v.count(v.first("vt_hidden_size", "hidden_size"))
    mlp = v.count(v.first("vt_intermediate_size", "intermediate_size"))
    n = v.count(v.first("vt_num_hidden_layers", "num_hidden_layers"))
    rows, columns = (v.count(v.first(f"init_pos_emb_{side}", f"pos_emb_{side}"), 64) for side in ("height", "width"))
    merged = 4 * width
    tower = patches(v, width, bias=True) + rows * columns * width + blocks(n, width, mlp) + 2 * width
    return tower + 2 * width + matrix(merged, merged) + matrix(merged, text.count("hidden_size"))


def gemma4(v: Fields, outer: Fields, text: Fields) -> int:
    width, mlp, head = v.count("hidden_size"), v.count("intermediate_size"), v.count("head_dim")
    heads, kv = v.count("num_attention_heads"), v.count("num_key_value_heads")
    block = 2 * width * head * (heads + kv) + 3 * width * mlp + 2 * head + 4 * width
    tower = 2 * v.count("position_embedding_size") * width + patches(v, width, bias=False)
    return tower + v.count("num_hidden_layers") * block + width * text.count("hidden_size")


def muse(v: Fields, outer: Fields, text: Fields) -> int:
    width, n = v.count("hidden_size"), v.count("num_hidden_layers")
    positions = v.count("max_position_embeddings", v.count("pos_emb_height") * v.count("pos_emb_width"))
    tower = patches(v, width, bias=False, frames=v.count("patch_temporal")) + 4 * width
    tower += positions * width + blocks(n, width, v.count("intermediate_size"))
    merged, middle = outer.count("out_hidden_size", 6144), outer.count("projector_hidden_size", 4096)
    return tower + merged * middle + middle * middle + middle * text.count("hidden_size")


def intern_vit(v: Fields, outer: Fields, text: Fields) -> int:
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
    merged, hidden = round(width / downsample_ratio(outer) ** 2), text.count("hidden_size")
    return tower + 2 * merged + matrix(merged, hidden) + matrix(hidden, hidden)


def downsample_ratio(outer: Fields) -> float:
    """The factor by which an image's side shrinks before the language model."""
    return outer.number("downsample_ratio", 0.5, least=0.01, most=1)


def cohere2_vision(v: Fields, outer: Fields, text: Fields) -> int:
    """The tower, and a projector of two gated matrices for merged neighbouring patches."""
    v, tower = _named_tower(v, "siglip_vision_model")
    middle = outer.count("alignment_intermediate_size", 36864)
    merged = v.count("hidden_size") * outer.count("downsample_factor", 2) ** 2
    return tower + matrix(merged, middle) + matrix(middle // 2, text.count("hidden_size"))


def qwen2_vl(v: Fields, outer: Fields, text: Fields) -> int:
    width, merge = v.count("embed_dim"), v.count("spatial_merge_size") ** 2
    mlp = int(width * v.number("mlp_ratio"))
    tower = patches(v, width, bias=False, frames=v.count("temporal_patch_size")) + blocks(v.count("depth"), width, mlp)
    return tower + 2 * width + matrix(merge * width, merge * width) + matrix(merge * width, v.count("hidden_size"))


def qwen2_5_vl(v: Fields, outer: Fields, text: Fields) -> int:
    width, merge = v.count("hidden_size"), v.count("spatial_merge_size") ** 2
    tower = patches(v, width, bias=False, frames=v.count("temporal_patch_size"))
    tower += blocks(v.count("depth"), width, v.count("intermediate_size"), gated=True, norm=1)
    return tower + width + matrix(merge * width, merge * width) + matrix(merge * width, v.count("out_hidden_size"))


def qwen3_vl(v: Fields, outer: Fields, text: Fields) -> int:
    """The tower with learned positions, and one more merger for each layer that is fed into deeper layers."""
    width, merge, out = v.count("hidden_size"), v.count("spatial_merge_size") ** 2, v.count("out_hidden_size")
    tower = patches(v, width, bias=True, frames=v.count("temporal_patch_size"))
    tower += v.count("num_position_embeddings") * width + blocks(v.count("depth"), width, v.count("intermediate_size"))
    merger = matrix(merge * width, merge * width) + matrix(merge * width, out)
    if v.has("deepstack_visual_indexes"):
        deep = len(v.items("deepstack_visual_indexes"))
    else:
        deep = 3 if str(outer.raw("model_type")).startswith("qwen3_vl") else 0
    return tower + 2 * width + merger + deep * (2 * merge * width + merger)


def glm4v(v: Fields, outer: Fields, text: Fields) -> int:
    width, out, mlp = v.count("hidden_size"), v.count("out_hidden_size"), v.count("intermediate_size")
    bias = v.flag("attention_bias", False)
    tower = grid_of(v) ** 2 * width + patches(v, width, bias=True, frames=v.count("temporal_patch_size"))
    block = 4 * width * width + 3 * width * out + 2 * width + 4 * width * bias
    merger = out * out + 2 * out + 3 * out * mlp
    down = matrix(v.count("spatial_merge_size") ** 2 * width, out)
    return tower + v.count("depth") * block + merger + down + 2 * width


def glm5_next(v: Fields, outer: Fields, text: Fields) -> int:
    width, out, mlp = v.count("hidden_size"), v.count("out_hidden_size"), v.count("intermediate_size")
    bias = v.flag("attention_bias", True)
    block = 4 * width * width + 4 * width * bias + 2 * matrix(width, mlp, bias) + matrix(mlp, width, bias)
    block += 2 * width + 2 * (width // v.count("num_heads"))
    merger = out * out + 2 * out + 3 * out * v.count("projection_intermediate_size")
    down = matrix(v.count("spatial_merge_size") ** 2 * width, out)
    tower = patches(v, width, bias=True, frames=v.count("temporal_patch_size")) + width
    return tower + v.count("depth") * block + merger + down


def step(v: Fields, outer: Fields, text: Fields) -> int:
    """The tower, with two convolutions that each merge four patches into one."""
    width, n = v.count(v.first("width", "hidden_size")), v.count(v.first("layers", "num_hidden_layers"))
    tower = patches(v, width, bias=False) + v.count("max_position_embeddings") * width + 2 * width
    tower += blocks(n, width, int(width * v.number("mlp_ratio"))) + n * 2 * width  # two scales of the residuals
    tower += matrix(9 * width, 2 * width) + matrix(9 * 2 * width, 4 * width)
    return tower + matrix(4 * width, text.count("hidden_size"), outer.flag("projector_bias", False))


def vision_params(outer: Fields, text: Fields, tower: str) -> tuple[int, tuple[str, ...]]:
    """The number of parameters of the vision tower, and notes on towers that are not counted."""
    if not tower:
        return 0, ()
    notes = ["the audio tower is not counted"] if outer.raw("audio_config") else []
    if tower == "none":
        return 0, ("the vision tower is not counted", *notes)
    if tower == "gemma3n":
        return 0, ("the vision tower is not counted: its config names a timm model only", *notes)
    if not outer.raw("vision_config"):
        return 0, ("no vision_config: the vision tower is not counted", *notes)
    v = outer.part("vision_config", _USUAL | _DEFAULTS[tower] if tower in _DEFAULTS else {})
    return TOWERS[tower](v, outer, text), tuple(notes)


TOWERS: dict[str, Callable[[Fields, Fields, Fields], int]] = {
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
    "glm4v": glm4v,
    "intern_vit": intern_vit,
    "glm5_next": glm5_next,
    "step": step,
}


# The largest image of the engine's profile run, if config.json determines it. Often the limit is in
# preprocessor_config.json, which is not read; then there is a note instead.

Item = tuple[int, int, str]  # an image's language tokens, its pixels, and the source in config.json


def largest_item(outer: Fields, tower: str) -> tuple[RawRecord | None, tuple[str, ...]]:
    """The encoder entry for the largest image (language tokens and pixel elements), or a note that it is unknown."""
    if not tower or not outer.raw("vision_config"):
        return None, ()
    item = ITEMS[tower](outer) if tower in ITEMS else None
    if item is None:
        return None, ("the largest image is not in config.json: no encoder is entered",)
    tokens, pixels, source = item
    return {"max_item_tokens": tokens, "max_item_elements": 3 * pixels, "source": f"config.json: {source}"}, ()


def _gemma3_image(outer: Fields) -> Item:
    side = outer.part("vision_config").count("image_size", 224)
    tokens = outer.count("mm_tokens_per_image", 256)
    return tokens, side * side, f"mm_tokens_per_image, one image of {side} x {side}"


def _pixtral_image(outer: Fields) -> Item:
    """One token per merged patch; the breaks between rows are text tokens."""
    v = outer.part("vision_config")
    side = v.count("image_size", 1024)
    patch = v.count("patch_size", 16) * outer.count("spatial_merge_size", 1)
    grid = -(-side // patch)
    return grid * grid, side * side, f"image_size {side} in patches of {patch}"


def _llava_image(outer: Fields) -> Item:
    """An image in tiles and a small whole (LLaVA-NeXT), for the largest of its grids."""
    v = outer.part("vision_config")
    if v.raw("model_type") == "pixtral":
        return _pixtral_image(outer)
    side = v.count("image_size", 224)
    grid = side // v.count("patch_size", 32)
    is_full = outer.raw("vision_feature_select_strategy") == "full"
    base = grid * grid + int(is_full and v.raw("model_type") != "siglip_vision_model")
    if outer.raw("image_grid_pinpoints") is None:
        return base, side * side, f"image_size {side}"
    best = (0, 0)
    for i, point in enumerate(outer.items("image_grid_pinpoints")):
        is_grid = isinstance(point, list) and len(point) == 2 and all(isinstance(x, int) and x >= side for x in point)
        if not is_grid:
            outer.refuse(f"image_grid_pinpoints[{i}]", "must be a height and a width of whole tiles.")
        rows, columns = point[0] // side, point[1] // side
        tokens = grid * rows * (grid * columns + 1) + base  # one more at the end of every row
        best = max(best, (tokens, rows * columns + 1))
    return best[0], best[1] * side * side, "the largest of image_grid_pinpoints"


def _gemma4_image(outer: Fields) -> Item | None:
    if not outer.has("vision_soft_tokens_per_image"):
        return None
    v = outer.part("vision_config")
    tokens = outer.count("vision_soft_tokens_per_image")
    side = v.count("pooling_kernel_size", 3) * v.count("patch_size", 16)
    return tokens, tokens * side * side, "vision_soft_tokens_per_image"


def _intern_vit_image(outer: Fields) -> Item | None:
    """An image in tiles, and a small whole beside them if there are several."""
    if not outer.has("max_dynamic_patch"):
        return None
    v = outer.part("vision_config")
    tiles = outer.count("max_dynamic_patch")
    tiles += tiles > 1 and outer.flag("use_thumbnail", True)
    side = outer.count("force_image_size", v.count("image_size"))
    tile_tokens = int((side // v.count("patch_size")) ** 2 * downsample_ratio(outer) ** 2)
    return tiles * tile_tokens, tiles * side * side, f"{tiles} tiles of {side} x {side}"


ITEMS: dict[str, Callable[[Fields], Item | None]] = {
    "siglip": _gemma3_image,
    "pixtral": _pixtral_image,
    "llava": _llava_image,
    "gemma4": _gemma4_image,
    "intern_vit": _intern_vit_image,
}
