"""What vision transformers are made of."""

from __future__ import annotations

from sheetgen.catalog.huggingface.fields import Fields


def blocks(n: int, width: int, mlp: int, *, gated: bool = False, bias: bool = True, norm: int = 2) -> int:
    """`n` plain blocks: four square matrices, an FFN, two norms of `norm` elements per channel."""
    matrices = (3 if gated else 2) * width * mlp
    biases = 4 * width + (2 if gated else 1) * mlp + width if bias else 0
    return n * (4 * width * width + matrices + biases + 2 * norm * width)


def matrix(n_in: int, n_out: int, bias: bool = True) -> int:
    return n_in * n_out + n_out * bias


def grid_of(v: Fields) -> int:
    """Patches along one side."""
    size, patch = v.count("image_size"), v.count("patch_size")
    return size // patch


def patches(v: Fields, width: int, bias: bool, frames: int = 1) -> int:
    return (
        v.count(v.first("num_channels", "in_channels", "in_chans"), 3) * frames * v.count("patch_size") ** 2 * (width)
        + width * bias
    )


def vision_part(outer: Fields) -> Fields:
    return outer.part("vision_config")
