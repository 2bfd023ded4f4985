"""Which kind every layer is: full, windowed, chunked or linear attention, or a block without any."""

from __future__ import annotations

from collections.abc import Callable

from sheetgen.catalog.huggingface.families import Family
from sheetgen.catalog.huggingface.fields import Fields

WORDS = {
    "full_attention": "full", "sliding_attention": "windowed", "chunked_attention": "chunked",
    "linear_attention": "linear", "attention": "full", "full": "full", "sliding": "windowed", "mamba": "linear",
    "conv": "linear",
}  # fmt: skip
Kinds = list[str]


def layer_kinds(f: Fields, family: Family) -> Kinds:
    """One word a layer. A list in the config holds; else the rule of the family's class."""
    n = f.layers()
    kinds = None
    for key in ("layer_types", "layers_block_type"):
        if f.data.get(key) is not None:
            kinds = f.words(key, WORDS, n)
            break
    if kinds is None:
        kinds = RULES[family.layers](f, n)
    if "linear" in kinds and not family.linear:
        f.refuse("layer_types", f"has linear layers, which a {f.raw('model_type')} is not known to have.")
    if f.has("use_sliding_window") and not f.flag("use_sliding_window"):
        kinds = ["full" if kind == "windowed" else kind for kind in kinds]
    return kinds


def window(f: Fields, kind: str) -> int:
    """Tokens that a windowed or chunked layer keeps."""
    key = "attention_chunk_size" if kind == "chunked" else f.first("sliding_window", "sliding_window_size")
    return f.count(key)


def _every(n: int, period: int, last: str, others: str, offset: int | None = None) -> Kinds:
    at = period - 1 if offset is None else offset
    return [last if i % period == at else others for i in range(n)]


def _qwen2(f: Fields, n: int) -> Kinds:
    """Windowed from max_window_layers on, and only if use_sliding_window says so."""
    if not f.has("sliding_window") or not f.flag("use_sliding_window", False):
        return ["full"] * n
    first = f.count_or_zero("max_window_layers", 28)
    return ["windowed" if i >= first else "full" for i in range(n)]


def _pattern(f: Fields, n: int) -> Kinds:
    """Every so many layers one is full. Some configs write the pattern as letters: LLLG."""
    if not f.has("sliding_window"):
        return ["full"] * n
    key = f.first("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
    if isinstance(f.raw(key), str):
        letters = f.text(key)
        if not letters or set(letters) - set("LG"):
            f.refuse(key, f"is {letters[:20]!r}, but must be a number or letters L (local) and G (global).")
        kinds = ["windowed" if letters[i % len(letters)] == "L" else "full" for i in range(n)]
        return [*kinds[:-1], "full"]
    return _every(n, f.count(key), "full", "windowed")


def _llama4(f: Fields, n: int) -> Kinds:
    """Chunked where positions are rotated."""
    if f.raw("no_rope_layers"):
        return ["chunked" if rotated else "full" for rotated in f.whole_numbers("no_rope_layers", n)]
    return _every(n, f.count("no_rope_layer_interval", 4), "full", "chunked")


def _jamba(f: Fields, n: int) -> Kinds:
    period = f.count("attn_layer_period")
    return _every(n, period, "full", "linear", f.count_or_zero("attn_layer_offset") % period)


def _bamba(f: Fields, n: int) -> Kinds:
    full = set(f.whole_numbers("attn_layer_indices")) if f.raw("attn_layer_indices") is not None else set()
    return ["full" if i in full else "linear" for i in range(n)]


def _minimax(f: Fields, n: int) -> Kinds:
    if f.has("attn_type_list"):
        return ["full" if kind else "linear" for kind in f.whole_numbers("attn_type_list", n)]
    return f.words("layer_types", WORDS, n)


def _kimi(f: Fields, n: int) -> Kinds:
    """Layers are listed by number, from 1."""
    part = f.part("linear_attn_config")
    full, linear = set(part.whole_numbers("full_attn_layers")), set(part.whole_numbers("kda_layers"))
    for i in range(1, n + 1):
        if (i in full) == (i in linear):
            part.refuse("full_attn_layers", f"and kda_layers do not say what layer {i} is.")
    return ["full" if i in full else "linear" for i in range(1, n + 1)]


def _conv(f: Fields, n: int) -> Kinds:
    full = set(f.whole_numbers("full_attn_idxs"))
    return ["full" if i in full else "linear" for i in range(n)]


RULES: dict[str, Callable[[Fields, int], Kinds]] = {
    "full": lambda f, n: ["full"] * n,
    "linear": lambda f, n: ["linear"] * n,
    "windowed": lambda f, n: ["windowed" if f.has("sliding_window") else "full"] * n,
    "alternate": lambda f, n: _every(n, 2, "full", "windowed"),
    "interval": lambda f, n: _every(n, f.count("full_attention_interval", 4), "full", "linear"),
    "mimo": lambda f, n: ["windowed" if kind else "full" for kind in f.whole_numbers("hybrid_layer_pattern", n)],
    "required": lambda f, n: f.words("layer_types", WORDS, n),
    "qwen2": _qwen2, "pattern": _pattern, "llama4": _llama4, "jamba": _jamba, "bamba": _bamba, "minimax": _minimax,
    "kimi": _kimi, "conv": _conv,
}  # fmt: skip
