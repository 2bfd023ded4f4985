"""Models whose layers are recurrent in every place: beside attention, between it, or alone."""

from __future__ import annotations

from dataclasses import replace

from sheetgen.catalog.huggingface.decoder import Decoder, around, joined, mixer_of, norms, plain_decoder
from sheetgen.catalog.huggingface.family import Family
from sheetgen.catalog.huggingface.feed_forward import dense
from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.recurrent import recurrence
from sheetgen.catalog.huggingface.tally import NOTHING, FeedForward


def falcon_h1(f: Fields, family: Family) -> Decoder:
    """Every layer has attention and Mamba side by side."""
    bias = f.flag("projectors_bias", False)
    if bias != f.flag("mamba_proj_bias", False):
        f.refuse("projectors_bias", "differs from mamba_proj_bias, which is not counted.")
    layers = []
    for i in range(f.layers()):
        attention, mamba = mixer_of(f, family, i, "full"), recurrence(f, family)
        layer = joined(attention, dense(f, family), norms(f, family, 2))
        layers.append(replace(layer, body=layer.body + mamba.tally, groups=attention.groups + mamba.groups))
    return replace(around(f, family, tuple(layers)), parallel_hybrid=True)


def lfm2(f: Fields, family: Family) -> Decoder:
    """The FFN's width is adjusted from the one in the config; the sparse model's is not."""
    width = f.count(f.first("block_ff_dim", "intermediate_size"))
    if family.moe is None and f.flag("block_auto_adjust_ff_dim", True):
        width = int(2 * width / 3)
        if f.raw("block_ffn_dim_multiplier") is not None:
            width = int(f.number("block_ffn_dim_multiplier") * width)
        multiple = f.count("block_multiple_of", 256)
        width = multiple * -(-width // multiple)
    data = {**f.data, "intermediate_size": width, "first_k_dense_replace": f.count_or_zero("num_dense_layers")}
    if f.has("tie_embedding"):
        data["tie_word_embeddings"] = f.flag("tie_embedding")
    return plain_decoder(Fields(data, f.where, f.inside, f.defaults, f.rename), family)


def attention_free(f: Fields, family: Family) -> Decoder:
    """Mamba alone: no attention, no FFN. What ranks divide are its heads, or else its channels."""
    layers = tuple(joined(recurrence(f, family), FeedForward(NOTHING), norms(f, family)) for _ in range(f.layers()))
    heads = f.count("num_heads", f.count("hidden_size"))
    return around(f.reading({**f.defaults, "num_attention_heads": heads}, f.rename), family, layers)
