"""Families that the table cannot say whole: each builds on the plain decoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sheetgen.catalog.huggingface.decoder import Decoder, around, joined, layer_mixer, norms, plain_decoder, plain_layer
from sheetgen.catalog.huggingface.families import Family
from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.layers import (
    Layer,
    dense,
    gqa,
    heads_of,
    linear,
    moe_layers,
    no_cache,
    plain,
    plus,
    whole,
)
from sheetgen.catalog.huggingface.own_layers import deepseek_v4, gemma3n, gemma4, nemotron_h, nemotron_nas
from sheetgen.catalog.huggingface.recurrent import recurrence

Builder = Callable[[Fields, Family], Decoder]


def old_gpt(f: Fields, family: Family) -> Decoder:
    """GPT-2 and its kin: an absent n_inner is four times the width; multi_query means one KV head."""
    one = f.flag("multi_query", f.raw("model_type") == "gpt_bigcode")
    return plain_decoder(_with_four_times(f, n_kv=1 if one else None), family)


def _with_four_times(f: Fields, n_kv: int | None = None) -> Fields:
    data = dict(f.data)
    if f.raw("intermediate_size") is None:
        data["intermediate_size"] = 4 * f.count("hidden_size")
    if n_kv is not None:
        data["num_key_value_heads"] = n_kv
    return f.with_data(data)


def opt(f: Fields, family: Family) -> Decoder:
    """Embeddings may be narrower than the model, and a post-norm model has no last norm."""
    decoder = plain_decoder(f, family)
    hidden, vocab = f.count("hidden_size"), f.count("vocab_size")
    width = f.count("word_embed_proj_dim", hidden)
    rest = decoder.rest
    if not f.flag("do_layer_norm_before", True) or f.flag("_remove_final_layer_norm", False):
        rest += norms(f, family) * -1
    if width != hidden:
        rest += linear(hidden, width, split="none") * 2
    return replace(decoder, embedding=vocab * width, lm_head=decoder.lm_head and vocab * width, rest=rest)


def bloom(f: Fields, family: Family) -> Decoder:
    """A norm stands behind the embedding as well."""
    decoder = plain_decoder(_with_four_times(f), family)
    return replace(decoder, rest=decoder.rest + norms(f, family))


def mpt(f: Fields, family: Family) -> Decoder:
    width = f.count("expansion_ratio", 4) * f.count("hidden_size")
    attention = f.part("attn_config", {})
    for key in ("qk_ln", "qk_gn"):
        if attention.has(key) and attention.flag(key):
            attention.refuse(key, "is true, which is not counted.")
    if not f.flag("no_bias", True):
        family = replace(family, norm_bias=True, qkv_bias=True, o_bias=True, mlp_bias=True)
    if not attention.flag("alibi", True) and not attention.flag("rope", False) and f.flag("learned_pos_emb", True):
        family = replace(family, positions=0)
    return plain_decoder(f.reading({**f.defaults, "intermediate_size": width}, f.rename), family)


def falcon(f: Fields, family: Family) -> Decoder:
    """Three generations: many KV heads, one, or a few; and one or two norms before the parallel parts."""
    heads = f.count("num_attention_heads")
    new = f.flag("new_decoder_architecture", False)
    one = f.flag("multi_query", True) and not new
    n_kv = f.count("num_kv_heads", heads) if new else 1 if one else heads
    n_norms = 2
    if f.flag("parallel_attn", True):
        n_norms = f.count("num_ln_in_parallel_attn", 2 if new else 1)
    bias = f.flag("bias", False)
    family = replace(family, qkv_bias=bias, o_bias=bias, mlp_bias=bias, norms=n_norms)
    width = f.count("ffn_hidden_size", 4 * f.count("hidden_size"))
    sizes = {**f.defaults, "intermediate_size": width, "num_key_value_heads": n_kv}
    return plain_decoder(Fields({**f.data, "num_key_value_heads": n_kv}, f.where, f.inside, sizes), family)


def stablelm(f: Fields, family: Family) -> Decoder:
    return plain_decoder(f, replace(family, norms=1) if f.flag("use_parallel_residual", False) else family)


def apertus(f: Fields, family: Family) -> Decoder:
    """Its activation has two trained numbers a layer."""
    decoder = plain_decoder(f, family)
    return replace(decoder, rest=decoder.rest + whole(2 * len(decoder.layers)))


def chatglm(f: Fields, family: Family) -> Decoder:
    n_kv = f.count("multi_query_group_num") if f.flag("multi_query_attention", False) else None
    data = {**f.data, "num_key_value_heads": n_kv, "head_dim": f.count("kv_channels")}
    return plain_decoder(f.with_data(data), family)


def gpt_neo(f: Fields, family: Family) -> Decoder:
    """Kinds of layers as `[[["global", "local"], 12]]`: a list and how often it comes."""
    kinds: list[str] = []
    words = {"global": "full_attention", "local": "sliding_attention"}
    for i, item in enumerate(f.items("attention_types")):
        ok = isinstance(item, list) and len(item) == 2 and isinstance(item[0], list) and isinstance(item[1], int)
        if not ok or not all(word in words for word in item[0]) or item[1] * len(item[0]) > f.layers():
            f.refuse(f"attention_types[{i}]", "must be a list of global and local, and how often it comes.")
        kinds += [words[word] for word in item[0]] * item[1]
    f = _with_four_times(f)
    data = {**f.data, "layer_types": kinds, "sliding_window": f.count("window_size")}
    return plain_decoder(f.with_data(data), family)


def laguna(f: Fields, family: Family) -> Decoder:
    """The gate of attention is one number a head, or as wide as the query."""
    gating = f.raw("gating")
    if gating is True or gating in (None, "per-head"):
        return plain_decoder(f, family)
    if gating in (False, "none"):
        return plain_decoder(f, replace(family, q_gate=""))
    if gating == "per-element":
        return plain_decoder(f, replace(family, q_gate="width"))
    f.refuse("gating", f"is {str(gating)[:40]!r}, but must be true, false, per-head or per-element.")


def hunyuan(f: Fields, family: Family) -> Decoder:
    """Settings may be lists by layer; with `use_cla`, pairs of layers share keys and values."""
    data = dict(f.data)
    for key in ("moe_topk", "num_shared_expert", "moe_intermediate_size"):
        if isinstance(data.get(key), list):
            values = set(f.whole_numbers(key, f.layers()))
            if len(values) != 1:
                f.refuse(key, "differs between layers, and one number must hold for all.")
            data[key] = values.pop()
    f = f.with_data(data)  # which sees what is added to them now
    data["moe_intermediate_size"] = f.count("moe_intermediate_size", f.count("intermediate_size"))
    shared = f.count_or_zero("num_shared_expert", 1) * f.count("intermediate_size")
    data["shared_width"] = shared if f.flag("use_mixed_mlp_moe", True) else 0
    decoder = plain_decoder(f, family)
    if not f.flag("use_cla", False):
        return decoder
    factor, heads = f.count("cla_share_factor"), heads_of(f)  # only the first of so many layers has keys and values
    of_kv = linear(f.count("hidden_size"), heads.n_kv * (heads.key + heads.value), f.flag(family.qkv_bias, False))
    layers = tuple(
        layer if i % factor == 0 else replace(plus(layer, of_kv * -1), groups=(no_cache("shared_kv"),))
        for i, layer in enumerate(decoder.layers)
    )
    return replace(decoder, layers=layers)


def minimax_m3(f: Fields, family: Family) -> Decoder:
    """Most layers pick blocks of tokens by index keys of their own."""
    n = f.layers()
    sparse_config = f.part("sparse_attention_config", {})
    if f.data.get("layer_types") is not None:
        words = {"minimax_m3_sparse": "sparse", "full_attention": "full"}
        picks = [word == "sparse" for word in f.words("layer_types", words, n)]
    elif sparse_config.has("sparse_attention_freq"):
        picks = [bool(x) for x in sparse_config.whole_numbers("sparse_attention_freq", n)]
    else:
        picks = [False] * n
    index = sparse_config if sparse_config.has("sparse_index_dim") else f
    width = index.count(index.first("sparse_index_dim", "index_head_dim"), 128)
    heads = index.count(index.first("sparse_num_index_heads", "index_n_heads"), 4)
    hidden = f.count("hidden_size")
    tally = linear(hidden, (heads + 1) * width, split="none") + whole(2 * width)
    shape = {"kind": "indexer", "width": width, "entry_bytes": 2 * width}
    assert family.moe is not None
    sparse = moe_layers(f, family.moe, n)
    layers = []
    for i in range(n):
        layer = plain_layer(f, family, i, "full", sparse[i])
        layers.append(replace(layer, body=layer.body + tally, groups=(*layer.groups, shape)) if picks[i] else layer)
    return around(f, family, tuple(layers))


def falcon_h1(f: Fields, family: Family) -> Decoder:
    """Every layer has attention and Mamba side by side."""
    bias = f.flag("projectors_bias", False)
    if bias != f.flag("mamba_proj_bias", False):
        f.refuse("projectors_bias", "differs from mamba_proj_bias, which is not counted.")
    layers = []
    for i in range(f.layers()):
        attention, mamba = layer_mixer(f, family, i, "full"), recurrence(f, family)
        layer = joined(attention, dense(f, family), norms(f, family, 2))
        layers.append(replace(layer, body=layer.body + mamba.body, groups=attention.groups + mamba.groups))
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
    return plain_decoder(f.with_data(data), family)


def attention_free(f: Fields, family: Family) -> Decoder:
    """Mamba alone: no attention, no FFN. What ranks divide are its heads, or else its channels."""
    layers = tuple(plus(recurrence(f, family), norms(f, family)) for _ in range(f.layers()))
    heads = f.count("num_heads", f.count("hidden_size"))
    return around(f.reading({**f.defaults, "num_attention_heads": heads}, f.rename), family, layers)


def is_eagle3(f: Fields) -> bool:
    """By the class that the config names: `LlamaForCausalLMEagle3` and its kin."""
    names = f.raw("architectures")
    return isinstance(names, list) and any("eagle3" in str(name).lower() for name in names)


def eagle3(f: Fields, family: Family) -> Decoder:
    """Everything is of the body: what an engine shares with the target depends on the engine."""
    if f.layers() != 1:
        f.refuse("num_hidden_layers", f"is {f.layers()}, but an EAGLE-3 head that can be counted has 1.")
    hidden, vocab = f.count("hidden_size"), f.count("vocab_size")
    target = f.count("target_hidden_size", hidden)
    own = f.count("draft_vocab_size", vocab)
    heads = heads_of(f)
    mixer = gqa(f, family, "full", heads)
    mixer_twice = linear(hidden, heads.n * heads.key + 2 * heads.n_kv * heads.key)  # it reads two states side by side
    ffn = dense(f, family)
    body = mixer.body + mixer_twice + ffn.body + linear(3 * target, hidden) + whole(4 * hidden)
    body += plain((vocab + own) * hidden) + whole(own + vocab)  # embedding and output, and the map between vocabularies
    layer = Layer(body, mixer.groups, dense_width=ffn.dense_width)
    note = f"draft vocabulary {own:,}; an engine may share the embedding ({vocab * hidden:,}) with the target"
    return Decoder((layer,), 0, 0, whole(0), heads.n, kind="draft", notes=(note, "the context follows the target"))


BUILDERS: dict[str, Builder] = {
    "old_gpt": old_gpt, "opt": opt, "bloom": bloom, "mpt": mpt, "falcon": falcon, "stablelm": stablelm,
    "apertus": apertus, "chatglm": chatglm, "gpt_neo": gpt_neo, "laguna": laguna, "hunyuan": hunyuan,
    "falcon_h1": falcon_h1, "lfm2": lfm2, "attention_free": attention_free, "minimax_m3": minimax_m3,
    "gemma3n": gemma3n, "gemma4": gemma4, "deepseek_v4": deepseek_v4, "nemotron_h": nemotron_h,
    "nemotron_nas": nemotron_nas,
}  # fmt: skip
