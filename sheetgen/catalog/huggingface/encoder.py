"""The largest image that the engine's profile run feeds, where config.json determines it.

Often it does not: the limit is in preprocessor_config.json, which is not read. Then there is a note instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sheetgen.catalog.huggingface.fields import Fields

Item = dict[str, Any]
_NOTE = "the largest image is not in config.json: no encoder is entered"


def largest_item(outer: Fields, tower: str) -> tuple[Item | None, tuple[str, ...]]:
    """Its language tokens and pixel elements, or why they are not known."""
    if not tower or not outer.raw("vision_config"):
        return None, ()
    found = ITEMS[tower](outer) if tower in ITEMS else None
    return (found, ()) if found else (None, (_NOTE,))


def _item(tokens: int, elements: int, source: str) -> Item:
    return {"max_item_tokens": tokens, "max_item_elements": elements, "source": source}


def _one_image(side: int) -> int:
    return 3 * side * side


def _gemma3(outer: Fields) -> Item:
    side = outer.part("vision_config").count("image_size", 224)
    tokens = outer.count("mm_tokens_per_image", 256)
    return _item(tokens, _one_image(side), f"config.json: mm_tokens_per_image, one image of {side} x {side}")


def _pixtral(outer: Fields) -> Item:
    """One token for every merged patch; the breaks between rows are text."""
    v = outer.part("vision_config")
    side = v.count("image_size", 1024)
    patch = v.count("patch_size", 16) * outer.count("spatial_merge_size", 1)
    grid = -(-side // patch)
    return _item(grid * grid, _one_image(side), f"config.json: image_size {side} in patches of {patch}")


def _llava(outer: Fields) -> Item:
    """LLaVA-NeXT cuts an image into tiles beside a small whole; the best fit of its grids is the largest."""
    v = outer.part("vision_config")
    if v.raw("model_type") == "pixtral":
        return _pixtral(outer)
    side = v.count("image_size", 224)
    grid = side // v.count("patch_size", 32)
    extra = (
        1
        if outer.raw("vision_feature_select_strategy") == "full" and v.raw("model_type") != ("siglip_vision_model")
        else 0
    )
    base = grid * grid + extra
    if outer.raw("image_grid_pinpoints") is None:
        return _item(base, _one_image(side), f"config.json: image_size {side}")
    best = (0, 0)
    for i, point in enumerate(outer.items("image_grid_pinpoints")):
        ok = isinstance(point, list) and len(point) == 2 and all(isinstance(x, int) and x >= side for x in point)
        if not ok:
            outer.refuse(f"image_grid_pinpoints[{i}]", "must be a height and a width of whole tiles.")
        rows, columns = point[0] // side, point[1] // side
        tokens = grid * rows * (grid * columns + 1) + base  # one more at the end of every row
        best = max(best, (tokens, rows * columns + 1))
    return _item(best[0], best[1] * _one_image(side), "config.json: the largest of image_grid_pinpoints")


def _gemma4(outer: Fields) -> Item | None:
    if not outer.has("vision_soft_tokens_per_image"):
        return None
    v = outer.part("vision_config")
    tokens = outer.count("vision_soft_tokens_per_image")
    side = v.count("pooling_kernel_size", 3) * v.count("patch_size", 16)
    return _item(tokens, tokens * _one_image(side), "config.json: vision_soft_tokens_per_image")


def _intern_vit(outer: Fields) -> Item | None:
    """Tiles, and a small whole beside them where there is more than one."""
    if not outer.has("max_dynamic_patch"):
        return None
    v = outer.part("vision_config")
    tiles = outer.count("max_dynamic_patch")
    tiles += int(tiles > 1 and outer.flag("use_thumbnail", True))
    side = outer.count("force_image_size", v.count("image_size"))
    each = int((side // v.count("patch_size")) ** 2 * outer.number("downsample_ratio", 0.5) ** 2)
    return _item(tiles * each, tiles * _one_image(side), f"config.json: {tiles} tiles of {side} x {side}")


ITEMS: dict[str, Callable[[Fields], Item | None]] = {
    "siglip": _gemma3,
    "pixtral": _pixtral,
    "llava": _llava,
    "gemma4": _gemma4,
    "intern_vit": _intern_vit,
}
