"""Gemma 3n and Gemma 4: shared caches, embeddings for every layer, other heads in the full layers."""

from __future__ import annotations

from dataclasses import replace

from sheetgen.catalog.huggingface.attention import Heads, heads_of, kv_shape
from sheetgen.catalog.huggingface.decoder import Decoder, around, norms
from sheetgen.catalog.huggingface.family import Family
from sheetgen.catalog.huggingface.feed_forward import matrices
from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.layer_kinds import WORDS
from sheetgen.catalog.huggingface.tally import NOTHING, Layer, Tally, linear, no_cache, whole


def gemma3n(f: Fields, family: Family) -> Decoder:
    n, hidden = f.layers(), f.count("hidden_size")
    kinds = _kinds(f, n, 5)
    widths = _widths(f, n)
    inputs, rank = f.count("altup_num_inputs", 4), f.count("laurel_rank", 64)
    altup = whole(2 * hidden + inputs**2 + inputs**3 + inputs * hidden)
    laurel = linear(hidden, rank) + linear(rank, hidden) + whole(hidden)
    extra = altup + laurel + _per_layer(f)
    shared_from = n - f.count_or_zero("num_kv_shared_layers")
    layers = tuple(
        _layer(f, family, kind, heads_of(f), i < shared_from, matrices(hidden, widths[i], True) + extra, widths[i])
        for i, kind in enumerate(kinds)
    )
    between = linear(hidden, hidden) * (2 * (inputs - 1))
    return _with_per_layer(f, around(f, family, layers), between)


def gemma4(f: Fields, family: Family) -> Decoder:
    n, hidden = f.layers(), f.count("hidden_size")
    kinds = _kinds(f, n, 6)
    kinds[-1] = "full"  # its class makes the last layer full whatever the config says
    shared_from = n - f.count_or_zero("num_kv_shared_layers")
    k_is_v = f.flag("attention_k_eq_v", False)
    local = heads_of(f)
    global_kv = f.count("num_global_key_value_heads", local.n_kv) if k_is_v else local.n_kv
    width = f.count("global_head_dim", 512)
    full = Heads(local.n, global_kv, width, width)
    experts = _Experts(f, family) if f.flag("enable_moe_block", False) else None
    layers = []
    for i, kind in enumerate(kinds):
        ffn_width = f.count("intermediate_size")
        if f.flag("use_double_wide_mlp", False) and i >= shared_from:
            ffn_width *= 2
        ffn = matrices(hidden, ffn_width, True)
        if f.count_or_zero("hidden_size_per_layer_input"):
            ffn += _per_layer(f)
        if experts:
            ffn += experts.around
        heads = full if kind == "full" else local
        layer = _layer(f, family, kind, heads, i < shared_from, ffn, ffn_width, no_v=k_is_v and kind == "full")
        layers.append(replace(layer, routed=experts.routed, moe_width=experts.width) if experts else layer)
    decoder = around(f, family, tuple(layers))
    if experts:
        decoder = replace(decoder, experts=(experts.n, experts.top_k, 0))
    return _with_per_layer(f, decoder, NOTHING)


class _Experts:
    """Experts beside the dense part, with norms of their own."""

    def __init__(self, f: Fields, family: Family) -> None:
        hidden = f.count("hidden_size")
        self.n, self.top_k = f.count("num_experts"), f.count("top_k_experts")
        self.width = f.count("moe_intermediate_size")
        self.routed = self.n * matrices(hidden, self.width, True).total
        self.around = whole(self.n * hidden + hidden + self.n + 3 * hidden)


def _kinds(f: Fields, n: int, period: int) -> list[str]:
    if f.data.get("layer_types") is not None:
        return f.words("layer_types", {k: v for k, v in WORDS.items() if v in ("full", "windowed")}, n)
    return ["full" if (i + 1) % period == 0 else "windowed" for i in range(n)]


def _widths(f: Fields, n: int) -> list[int]:
    if isinstance(f.raw("intermediate_size"), list):
        return f.whole_numbers("intermediate_size", n)
    return [f.count("intermediate_size")] * n


def _layer(
    f: Fields, family: Family, kind: str, heads: Heads, owns_cache: bool, ffn: Tally, ffn_width: int, no_v: bool = False
) -> Layer:
    """Layers that use the cache of an earlier one have no keys and values of their own."""
    hidden = f.count("hidden_size")
    tally = linear(hidden, heads.n * heads.key) + linear(heads.n * heads.value, hidden, split="in")
    tally += whole(heads.key)
    groups = (no_cache("shared_kv"),)
    if owns_cache:
        tally += linear(hidden, heads.n_kv * heads.key) * (1 if no_v else 2) + whole(heads.key)
        groups = (kv_shape(f, kind, heads),)
    return Layer(tally + norms(f, family, 4) + ffn, groups, tally, dense_width=ffn_width)


def _per_layer(f: Fields) -> Tally:
    """What a layer does with its own embedding of every token."""
    hidden, width = f.count("hidden_size"), f.count("hidden_size_per_layer_input")
    return linear(hidden, width, split="none") + linear(width, hidden, split="none") + whole(hidden)


def _with_per_layer(f: Fields, decoder: Decoder, rest: Tally) -> Decoder:
    width = f.count_or_zero("hidden_size_per_layer_input")
    if width:
        all_layers = len(decoder.layers) * width
        rest += linear(f.count("hidden_size"), all_layers) + whole(width)
        table = f.count("vocab_size_per_layer_input") * all_layers
        decoder = replace(decoder, per_layer_embedding=table)
    return replace(decoder, rest=decoder.rest + rest)
