"""A language model from the table of families: its layers, and what stands before and after them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sheetgen.catalog.huggingface.families import Family
from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.layer_kinds import layer_kinds
from sheetgen.catalog.huggingface.layers import (
    NOTHING,
    Heads,
    Layer,
    Tally,
    dense,
    gqa,
    heads_of,
    mla,
    moe,
    moe_layers,
    n_shared,
    whole,
)
from sheetgen.catalog.huggingface.recurrent import recurrence


@dataclass(frozen=True)
class Decoder:
    """`rest` is of the body but of no layer: the last norm, learned positions."""

    layers: tuple[Layer, ...]
    embedding: int
    lm_head: int
    rest: Tally
    n_heads: int
    experts: tuple[int, int, int] | None = None  # all, chosen, shared
    per_layer_embedding: int = 0
    parallel_hybrid: bool = False
    mtp_extra: int = 0
    kind: str = "model"
    notes: tuple[str, ...] = ()


def plain_decoder(f: Fields, family: Family) -> Decoder:
    """All that the table can say, layer by layer."""
    kinds = layer_kinds(f, family)
    sparse = moe_layers(f, family.moe, len(kinds)) if family.moe else [False] * len(kinds)
    layers = tuple(plain_layer(f, family, i, kind, sparse[i]) for i, kind in enumerate(kinds))
    return around(f, family, layers)


def plain_layer(f: Fields, family: Family, i: int, kind: str, sparse: bool) -> Layer:
    mixer = layer_mixer(f, family, i, kind)
    return joined(mixer, moe(f, family, i) if sparse else dense(f, family), norms(f, family, family.norms))


def layer_mixer(f: Fields, family: Family, i: int, kind: str) -> Layer:
    if kind == "linear":
        return recurrence(f, family)
    if family.attention == "mla":
        return mla(f, family, i)
    sinks = None
    if f.has("add_swa_attention_sink_bias"):
        sinks = f.flag("add_swa_attention_sink_bias" if kind == "windowed" else "add_full_attention_sink_bias", False)
    return gqa(f, family, kind, layer_heads(f, i, kind), sinks)


def layer_heads(f: Fields, i: int, kind: str) -> Heads:
    """Heads of one layer, where a config gives windowed layers or single layers others."""
    heads = heads_of(f)
    if f.has("num_attention_heads_per_layer"):
        return replace(heads, n=f.whole_numbers("num_attention_heads_per_layer", f.layers())[i])
    if kind == "windowed" and f.has("swa_num_key_value_heads"):
        n, n_kv = f.count("swa_num_attention_heads", heads.n), f.count("swa_num_key_value_heads")
        return Heads(n, n_kv, f.count("swa_head_dim", heads.key), f.count("swa_v_head_dim", heads.value))
    return heads


def joined(mixer: Layer, ffn: Layer, norm: Tally) -> Layer:
    return replace(ffn, body=mixer.body + ffn.body + norm, groups=mixer.groups, mixer=mixer.mixer)


def norms(f: Fields, family: Family, n: int = 1) -> Tally:
    if family.norm == "none":
        return NOTHING
    elements = 2 if family.norm == "layer" and family.norm_bias else 1
    return whole(n * elements * f.count("hidden_size"))


def around(f: Fields, family: Family, layers: tuple[Layer, ...]) -> Decoder:
    """Embedding, last norm and output matrix around the layers."""
    vocab, hidden = f.count("vocab_size"), f.count("hidden_size")
    tied = f.flag("tie_word_embeddings", family.tied)
    rest = norms(f, family)
    if family.positions is not None:
        rest += whole((f.count("max_position_embeddings") + family.positions) * hidden)
    experts = None
    if family.moe and any(layer.routed for layer in layers):
        rule = family.moe
        n, top_k = f.count(rule.n), f.count(rule.top_k)
        if top_k > n:
            f.refuse(rule.top_k, f"is {top_k}, more than the {n} experts.")
        experts = (n, top_k, n_shared(f, rule))
    lm_head = 0 if tied else vocab * hidden + vocab * f.flag(family.lm_head_bias, False)
    return Decoder(layers, vocab * hidden, lm_head, rest, f.count("num_attention_heads"), experts)
