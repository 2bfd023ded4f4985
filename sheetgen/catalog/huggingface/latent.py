"""Families with latent attention that the table cannot say whole: residual streams, shared or several latents.

Each was held against the transformers class, as those of `families` were.
"""

from __future__ import annotations

from dataclasses import replace

from sheetgen.catalog.huggingface.config import Fields
from sheetgen.catalog.huggingface.families import Family
from sheetgen.catalog.huggingface.layers import (
    Decoder,
    Shape,
    Tally,
    around,
    layer_kinds,
    linear,
    mixer_of,
    mla,
    moe,
    moe_layers,
    plain_decoder,
    plus,
    whole,
    with_ffn,
)


def mixing(f: Fields, streams: int) -> Tally:
    """How several residual streams are read and written, before attention and before the FFN of one layer."""
    return whole(2 * ((2 + streams) * streams * (streams * f.count("hidden_size") + 1) + 3))


def collecting(f: Fields, streams: int) -> Tally:
    """How the streams become one behind the last layer, without a matrix between them."""
    return whole(streams * (streams * f.count("hidden_size") + 1) + 1)


def with_streams(decoder: Decoder, of_layer: Tally, at_end: Tally) -> Decoder:
    layers = tuple(plus(layer, of_layer) for layer in decoder.layers)
    return replace(decoder, layers=layers, rest=decoder.rest + at_end)


def hy_v4(f: Fields, family: Family) -> Decoder:
    """Streams are read and written without a matrix between them; every fourth layer picks tokens."""
    hidden, streams = f.count("hidden_size"), f.count("hc_mult", 4)
    if f.raw("indexer_types") is None:
        kinds = ["full" if i == 0 or (i - 1) % 4 == 0 else "shared" for i in range(f.layers())]
        f = f.adding(indexer_types=kinds)
    of_layer = whole(2 * (2 * streams * (streams * hidden + 1) + 2))
    return with_streams(plain_decoder(f, family), of_layer, collecting(f, streams))


def glm5_next(f: Fields, family: Family) -> Decoder:
    """Kimi delta attention, and latent attention without positions; index keys are weighed over pools of tokens."""
    decoder = plain_decoder(f, family)
    width, pool = f.count("index_head_dim"), f.count("index_kpool", 16)
    pooling = whole(pool * width + width * f.count("hidden_size"))
    layers = tuple(
        plus(replace(layer, groups=tuple(pooled(shape, pool) for shape in layer.groups)), pooling)
        if any(shape["kind"] == "indexer" for shape in layer.groups)
        else layer
        for layer in decoder.layers
    )
    return with_streams(replace(decoder, layers=layers), mixing(f, f.count("hc_mult", 4)), whole(0))


def pooled(shape: Shape, pool: int) -> Shape:
    """An index that keeps one key for so many tokens: the bytes of a token, and one block of a request for the raw keys
    of those that are not so many yet. Source: vLLM 0.33, models/glm5next (Glm5NextTailCache)."""
    if shape["kind"] != "indexer":
        return shape
    return {**shape, "entry_bytes": -(-shape["entry_bytes"] // pool), "side_blocks": 1}


def longcat(f: Fields, family: Family) -> Decoder:
    """A layer of the config is two of attention and a dense part each, with the experts beside the second."""
    n, hidden = f.layers(), f.count("hidden_size")
    zero = f.count("zero_expert_num", 0, least=0)
    half = with_ffn(f, family, mla(f, family), sparse=False)
    experts = plus(moe(f, family), whole(zero * hidden))
    both = replace(half, body=half.body + experts.body, routed=experts.routed, moe_width=experts.moe_width)
    decoder = around(f, family, (half, both) * n)
    if not zero:
        return decoder
    note = (
        f"of the {f.count('num_experts_per_tok')} experts of a token some are among {zero} that do nothing: active"
        " parameters are the most that a token has"
    )
    return replace(decoder, notes=(note,))


def mistral_large4(f: Fields, family: Family) -> Decoder:
    """Every fourth layer has no positions, and a latent without their part; the index reads the hidden state."""
    n, hidden, heads = f.layers(), f.count("hidden_size"), f.count("num_attention_heads")
    if f.raw("kv_source_layers") is not None and f.whole_numbers("kv_source_layers", n) != list(range(n)):
        f.refuse("kv_source_layers", "shares latents between layers, which is not counted.")
    if f.raw("no_rope_layers") is not None:
        rotated = [bool(word) for word in f.whole_numbers("no_rope_layers", n)]
    else:
        period = f.count("no_rope_layer_interval", 4)
        rotated = [(i + 1) % period != 0 for i in range(n)]
    nope, rope, value = f.count("qk_nope_head_dim"), f.count("qk_rope_head_dim"), f.count("v_head_dim")
    latent, width, n_index = f.count("kv_lora_rank"), f.count("index_head_dim"), f.count("index_n_heads")
    sparse = moe_layers(f, family, n)
    layers = []
    for i in range(n):
        key, extra = (nope, rope) if rotated[i] else (nope + rope, 0)
        tally = linear(hidden, heads * (nope + rope)) + linear(hidden, latent + extra, split="none") + whole(latent)
        tally += linear(latent, heads * (key + value)) + linear(heads * value, hidden, split="in") + whole(2 * heads)
        shape = {"kind": "mla", "latent_width": latent + extra, "absorbed_elements": latent * heads * (key + value)}
        tally += linear(hidden, n_index * width, split="none") + linear(hidden, width, split="none")
        tally += whole(2 * width + hidden * n_index + 2 * hidden + 2 * n_index)
        index = {"kind": "indexer", "width": width, "entry_bytes": width + 4}
        layers.append(with_ffn(f, family, mixer_of(tally, shape, index), sparse[i]))
    return around(f, family, tuple(layers))


def dots3_note(f: Fields, family: Family) -> Decoder:
    """Two kinds of latent attention: sparse over all tokens, and a wider latent of fewer heads over a window."""
    near = {key: f.count(f"swa_{key}", default) for key, default in _NEAR.items()}
    near["qk_rope_head_dim"] = f.count("swa_qk_rope_head_dim", near.pop("head_dim") - near["qk_nope_head_dim"])
    kinds = layer_kinds(f, family)
    sparse = moe_layers(f, family, len(kinds))
    layers = []
    for i, kind in enumerate(kinds):
        of_layer = f if kind == "full" else f.adding(**near, index_head_dim=None)
        mixer = mla(of_layer, family, i)
        if kind != "full":
            kept = {"n_kv_heads": 1, "key_width": mixer.groups[0]["latent_width"], "value_width": 0}
            window = f.count(f.first("sliding_window", "sliding_window_size"), 512)
            mixer = replace(mixer, groups=({"kind": "windowed", **kept, "window_tokens": window},))
        positions = whole(of_layer.count("qk_rope_head_dim"))  # a norm of the part with positions
        mixer = replace(mixer, body=mixer.body + positions, mixer=mixer.mixer + positions)
        layers.append(with_ffn(f, family, mixer, sparse[i]))
    return around(f, family, tuple(layers))


_NEAR = {
    "num_attention_heads": 64, "q_lora_rank": 1024, "kv_lora_rank": 1024, "head_dim": 256, "qk_nope_head_dim": 192,
    "v_head_dim": 128,
}  # fmt: skip

LATENT = (hy_v4, glm5_next, longcat, mistral_large4, dots3_note)  # its families
