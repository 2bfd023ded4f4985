"""DeepSeek V4: one KV head with a short window, and compressed entries beside it that grow slowly."""

from __future__ import annotations

from dataclasses import replace

from sheetgen.catalog.huggingface.decoder import Decoder, around, norms
from sheetgen.catalog.huggingface.family import Family
from sheetgen.catalog.huggingface.feed_forward import moe
from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.tally import Layer, Shape, Tally, linear, plain, whole

_WORDS = {"sliding_attention": "0", "compressed_sparse_attention": "4", "heavily_compressed_attention": "128"}


def deepseek_v4(f: Fields, family: Family) -> Decoder:
    hidden, streams = f.count("hidden_size"), f.count("hc_mult")
    mixing = whole(2 * ((2 + streams) * streams * (streams * hidden + 1) + 3))  # before attention and before experts
    made = {}
    for ratio in set(ratios := _ratios(f)):
        attention, shapes = _attention(f, ratio)
        ffn = moe(f, family)
        body = attention + ffn.tally + mixing + norms(f, family, 2)
        made[ratio] = Layer(body, shapes, attention, ffn.routed, moe_width=ffn.moe_width)
    decoder = around(f, family, tuple(made[ratio] for ratio in ratios))
    head = whole(streams * (streams * hidden + 1) + 1)
    return replace(decoder, rest=decoder.rest + head)


def _ratios(f: Fields) -> list[int]:
    """Tokens that one compressed entry stands for, by layer; 0 where a layer has its window only."""
    n = f.layers()
    if f.data.get("layer_types") is not None:
        return [int(word) for word in f.words("layer_types", _WORDS, n)]
    listed = f.whole_numbers("compress_ratios")
    if len(listed) < n:
        f.refuse("compress_ratios", f"has {len(listed)} items, but the model has {n} layers.")
    for i, ratio in enumerate(listed[:n]):
        if ratio not in (0, 4, 128):
            f.refuse(f"compress_ratios[{i}]", f"is {ratio}, but must be 0, 4 or 128.")
    return listed[:n]  # more of them belong to the MTP layers


def any_without_compression(f: Fields) -> bool:
    return 0 in _ratios(f)


def _attention(f: Fields, ratio: int) -> tuple[Tally, tuple[Shape, ...]]:
    hidden, heads, width = f.count("hidden_size"), f.count("num_attention_heads"), f.count("head_dim")
    rank, groups, o_rank = f.count("q_lora_rank"), f.count("o_groups"), f.count("o_lora_rank")
    if heads * width % groups:
        f.refuse("o_groups", f"{groups} does not divide the {heads * width:,} outputs of attention.")
    tally = (
        plain(heads)
        + linear(hidden, rank + width, split="none")
        + whole(rank + width)
        + linear(rank, heads * width)
        + linear(heads * width // groups, groups * o_rank)
        + linear(groups * o_rank, hidden, split="in")
    )
    window: Shape = {
        "kind": "windowed",
        "n_kv_heads": 1,
        "key_width": width,
        "value_width": 0,
        "window_tokens": f.count("sliding_window"),
    }
    if ratio == 0:
        return tally, (window,)
    tally += _compressor(hidden, width, ratio)
    grows = width / ratio
    if ratio == 4:
        index, n_index = f.count("index_head_dim"), f.count("index_n_heads")
        tally += _compressor(hidden, index, ratio)
        tally += linear(rank, n_index * index, split="none") + whole(hidden * n_index)
        grows += index / ratio
    return tally, (window, {"kind": "compressed", "elements_per_token": grows})


def _compressor(hidden: int, width: int, ratio: int) -> Tally:
    """Keys and their weights, pooled over `ratio` tokens; of twice the width where the pools overlap."""
    wide = 2 * width if ratio == 4 else width
    return whole(ratio * wide + 2 * hidden * wide + width)
