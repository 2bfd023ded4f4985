"""Families that families.yaml cannot describe completely, each built on the plain decoder; and multi-token prediction.

The layers for multi-token prediction are outside the total: engines load them for speculative decoding. They share the
model's embedding and output matrix, which are not counted again (checkpoints may hold a second copy).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from sheetgen.catalog.families import Family
from sheetgen.errors import shown
from sheetgen.importer.config_reader import MAX_LAYERS, Fields
from sheetgen.importer.layers import (
    NOTHING,
    WORDS,
    Decoder,
    Heads,
    Layer,
    Shape,
    Tally,
    around,
    dense,
    gqa,
    heads_of,
    kv_shape,
    layer_kinds,
    layer_mixer,
    linear,
    matrices,
    mixer_of,
    mla,
    moe,
    moe_layers,
    no_cache,
    norms,
    plain,
    plain_decoder,
    plus,
    whole,
    with_ffn,
)


def gemma3n(f: Fields, family: Family) -> Decoder:
    n, hidden = f.layers(), f.count("hidden_size")
    kinds = layer_kinds(f, family)
    key = "intermediate_size"
    widths = f.whole_numbers(key, n) if isinstance(f.raw(key), list) else [f.count(key)] * n
    inputs, rank = f.count("altup_num_inputs", 4), f.count("laurel_rank", 64)
    altup = whole(2 * hidden + inputs**2 + inputs**3 + inputs * hidden)
    laurel = linear("laurel.linear_left", hidden, rank) + linear("laurel.linear_right", rank, hidden) + whole(hidden)
    extra = altup + laurel + _per_layer(f)
    shared_from = n - f.count_or_zero("num_kv_shared_layers")
    layers = tuple(
        _layer(
            f,
            family,
            kind,
            heads_of(f),
            i < shared_from,
            matrices(hidden, widths[i], True).within("mlp") + extra,
            widths[i],
        )
        for i, kind in enumerate(kinds)
    )
    between = linear("altup_projections", hidden, hidden) * (2 * (inputs - 1))
    return _with_per_layer(f, around(f, family, layers), between)


def gemma4(f: Fields, family: Family) -> Decoder:
    n, hidden = f.layers(), f.count("hidden_size")
    kinds = layer_kinds(f, family)
    kinds[-1] = "full"  # its class always makes the last layer full
    shared_from = n - f.count_or_zero("num_kv_shared_layers")
    k_is_v = f.flag("attention_k_eq_v", False)
    local = heads_of(f)
    global_kv = f.count("num_global_key_value_heads", local.n_kv) if k_is_v else local.n_kv
    width = f.count("global_head_dim", 512)
    full = Heads(local.n, global_kv, width, width)
    experts = (f.count("num_experts"), f.count("top_k_experts"), 0) if f.flag("enable_moe_block", False) else None
    moe_width = f.count("moe_intermediate_size") if experts else 0
    n_experts = experts[0] if experts else 0
    layers = []
    for i, kind in enumerate(kinds):
        ffn_width = f.count("intermediate_size")
        if f.flag("use_double_wide_mlp", False) and i >= shared_from:
            ffn_width *= 2
        ffn = matrices(hidden, ffn_width, True).within("mlp")
        if f.count_or_zero("hidden_size_per_layer_input"):
            ffn += _per_layer(f)
        if experts:  # in addition to the dense part, with norms of their own
            ffn += whole(n_experts * hidden + hidden + n_experts + 3 * hidden)
        heads = full if kind == "full" else local
        layer = _layer(f, family, kind, heads, i < shared_from, ffn, ffn_width, no_v=k_is_v and kind == "full")
        routed = matrices(hidden, moe_width, True).within("experts") * n_experts
        layers.append(replace(layer, routed=routed.total, experts=routed.matrices, moe_width=moe_width))
    return _with_per_layer(f, replace(around(f, family, tuple(layers)), experts=experts), NOTHING)


def _layer(
    f: Fields, family: Family, kind: str, heads: Heads, owns_cache: bool, ffn: Tally, ffn_width: int, no_v: bool = False
) -> Layer:
    """A Gemma layer; one that uses the cache of an earlier layer has no key and value matrices."""
    hidden = f.count("hidden_size")
    tally = linear("q_proj", hidden, heads.n * heads.key) + linear("o_proj", heads.n * heads.value, hidden, split="in")
    tally += whole(heads.key)
    groups = (no_cache("shared_kv"),)
    if owns_cache:
        tally += linear("k_proj", hidden, heads.n_kv * heads.key) + whole(heads.key)
        if not no_v:
            tally += linear("v_proj", hidden, heads.n_kv * heads.key)
        groups = (kv_shape(f, kind, heads),)
    tally = tally.within("self_attn")
    return Layer(tally + norms(f, family, 4) + ffn, groups, tally, dense_width=ffn_width)


def _per_layer(f: Fields) -> Tally:
    """The matrices of a layer for its own embedding of every token."""
    hidden, width = f.count("hidden_size"), f.count("hidden_size_per_layer_input")
    gate = linear("per_layer_input_gate", hidden, width, split="none")
    return gate + linear("per_layer_projection", width, hidden, split="none") + whole(hidden)


def _with_per_layer(f: Fields, decoder: Decoder, rest: Tally) -> Decoder:
    width = f.count_or_zero("hidden_size_per_layer_input")
    if width:
        all_layers = len(decoder.layers) * width
        rest += linear("per_layer_model_projection", f.count("hidden_size"), all_layers) + whole(width)
        table = f.count("vocab_size_per_layer_input") * all_layers
        decoder = replace(decoder, per_layer_embedding=table)
    return replace(decoder, rest=decoder.rest + rest)


def mixing(f: Fields, streams: int) -> Tally:
    """The parameters of one layer that read and write several residual streams, for attention and FFN."""
    return whole(2 * ((2 + streams) * streams * (streams * f.count("hidden_size") + 1) + 3))


def collecting(f: Fields, streams: int) -> Tally:
    """The parameters that merge the streams after the last layer, without a mixing matrix."""
    return whole(streams * (streams * f.count("hidden_size") + 1) + 1)


def add_to_layers(decoder: Decoder, of_layer: Tally, at_end: Tally = NOTHING) -> Decoder:
    layers = tuple(plus(layer, of_layer) for layer in decoder.layers)
    return replace(decoder, layers=layers, rest=decoder.rest + at_end)


def hy_v4(f: Fields, family: Family) -> Decoder:
    """Residual streams without a mixing matrix; every fourth layer selects tokens."""
    hidden, streams = f.count("hidden_size"), f.count("hc_mult", 4)
    of_layer = whole(2 * (2 * streams * (streams * hidden + 1) + 2))
    return add_to_layers(plain_decoder(f, family), of_layer, collecting(f, streams))


def glm5_next(f: Fields, family: Family) -> Decoder:
    """Kimi delta attention, and latent attention without positions; index keys are weighted over pools of tokens."""
    decoder = plain_decoder(f, family)
    width, pool = f.count("index_head_dim"), f.count("index_kpool", 16)
    pooling = whole(pool * width + width * f.count("hidden_size"))
    layers = tuple(
        plus(replace(layer, groups=tuple(pooled(shape, pool) for shape in layer.groups)), pooling)
        if any(shape["kind"] == "indexer" for shape in layer.groups)
        else layer
        for layer in decoder.layers
    )
    return add_to_layers(replace(decoder, layers=layers), mixing(f, f.count("hc_mult", 4)))


def pooled(shape: Shape, pool: int) -> Shape:
    """An index with one key for `pool` tokens: fewer bytes per token, and one block per request for the raw keys of
    incomplete pools. Source: vLLM 0.33, models/glm5next (Glm5NextTailCache)."""
    if shape["kind"] != "indexer":
        return shape
    return {**shape, "entry_bytes": -(-shape["entry_bytes"] // pool), "side_blocks": 1}


def longcat(f: Fields, family: Family) -> Decoder:
    """A layer of the config is two layers of attention and a dense part, the second with experts beside it."""
    n, hidden = f.layers(), f.count("hidden_size")
    zero = f.count("zero_expert_num", 0, least=0)
    half = with_ffn(f, family, mla(f, family), sparse=False)
    experts = plus(moe(f, family), whole(zero * hidden))
    both = replace(
        experts, body=half.body + experts.body, groups=half.groups, mixer=half.mixer, dense_width=half.dense_width
    )
    decoder = around(f, family, (half, both) * n)
    if not zero:
        return decoder
    note = (
        f"of the {f.count('num_experts_per_tok')} experts of a token some are among {zero} that do nothing: active"
        " parameters are the most that a token has"
    )
    return replace(decoder, notes=(note,))


def minimax_m3(f: Fields, family: Family) -> Decoder:
    """Most layers select blocks of tokens by 16-bit index keys beside their own keys and values."""
    sparse = f.part("sparse_attention_config")
    n, width = sparse.count("sparse_num_index_heads"), sparse.count("sparse_index_dim")
    decoder, hidden = plain_decoder(f, family), f.count("hidden_size")
    picking = linear("self_attn.index_q_proj", hidden, n * width, split="none") + whole(2 * width)
    picking += linear("self_attn.index_k_proj", hidden, width, split="none")
    index: Shape = {"kind": "indexer", "width": width, "entry_bytes": 2 * width}
    picks = sparse.whole_numbers("sparse_attention_freq", len(decoder.layers))
    layers = tuple(
        replace(plus(layer, picking), mixer=layer.mixer + picking, groups=(*layer.groups, index)) if pick else layer
        for pick, layer in zip(picks, decoder.layers, strict=True)
    )
    notes = ("the MTP layers are not counted",) if f.raw("num_mtp_modules") else ()
    return replace(decoder, layers=layers, notes=(*decoder.notes, *notes))


def mistral_large4(f: Fields, family: Family) -> Decoder:
    """Every fourth layer has no positions, and a latent without a rotary part; the index reads the hidden state."""
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
        tally = linear("q_proj", hidden, heads * (nope + rope)) + whole(latent + 2 * heads)
        tally += linear("kv_a_proj_with_mqa", hidden, latent + extra, split="none")
        tally += linear("kv_b_proj", latent, heads * (key + value)) + linear(
            "o_proj", heads * value, hidden, split="in"
        )
        shape = {"kind": "mla", "latent_width": latent + extra, "absorbed_elements": latent * heads * (key + value)}
        tally += linear("indexer.wq_b", hidden, n_index * width, split="none")
        tally += linear("indexer.wk", hidden, width, split="none")
        tally += whole(2 * width + hidden * n_index + 2 * hidden + 2 * n_index)
        index = {"kind": "indexer", "width": width, "entry_bytes": width + 4}
        layers.append(with_ffn(f, family, mixer_of(tally.within("self_attn"), shape, index), sparse[i]))
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


_SCALES, _INDEX_SCALE = 8, 4  # bytes: of an entry's blocks of 64 elements, filled up to 8, and of an index key
_RATIOS = {"sliding_attention": "0", "compressed_sparse_attention": "4", "heavily_compressed_attention": "128"}


def deepseek_v4(f: Fields, family: Family) -> Decoder:
    streams, ratios = f.count("hc_mult"), ratios_of(f)
    made = {ratio: with_ffn(f, family, _attention(f, ratio), sparse=True) for ratio in set(ratios)}
    decoder = around(f, family, tuple(made[ratio] for ratio in ratios))
    decoder = add_to_layers(decoder, mixing(f, streams), collecting(f, streams))
    hidden, n = f.count("hidden_size"), mtp_layers(f)
    mtp_layer = plus(with_ffn(f, family, _attention(f, 0), sparse=True), mixing(f, streams))
    joining = linear("e_proj", hidden, hidden) + linear("h_proj", hidden, hidden) + norms(f, family) * 3
    joining += collecting(f, streams)
    return replace(decoder, mtp=(mtp_layer,) * n, joining=joining * n)


def ratios_of(f: Fields) -> list[int]:
    """The tokens per compressed entry by layer; 0 for a layer with a window alone."""
    n = f.layers()
    if f.data.get("layer_types") is not None:
        return [int(word) for word in f.words("layer_types", _RATIOS, n)]
    listed = f.whole_numbers("compress_ratios")
    if len(listed) < n:
        f.refuse("compress_ratios", f"has {len(listed)} items, but the model has {n} layers.")
    for i, ratio in enumerate(listed[:n]):
        if ratio not in (0, 4, 128):
            f.refuse(f"compress_ratios[{i}]", f"is {ratio}, but must be 0, 4 or 128.")
    return listed[:n]  # further ones belong to the MTP layers


def _attention(f: Fields, ratio: int) -> Layer:
    hidden, heads, width = f.count("hidden_size"), f.count("num_attention_heads"), f.count("head_dim")
    rank, groups, o_rank = f.count("q_lora_rank"), f.count("o_groups"), f.count("o_lora_rank")
    if heads * width % groups:
        f.refuse("o_groups", f"{groups} does not divide the {heads * width:,} outputs of attention.")
    tally = linear("wq_a", hidden, rank, split="none") + linear("wkv", hidden, width, split="none")
    tally += linear("wq_b", rank, heads * width) + linear("wo_a", heads * width // groups, groups * o_rank)
    tally += linear("wo_b", groups * o_rank, hidden, split="in") + plain(heads) + whole(rank + width)
    kept: Shape = {"n_kv_heads": 1, "key_width": width, "value_width": 0, "window_tokens": f.count("sliding_window")}
    window: Shape = {"kind": "windowed", **kept}
    if ratio == 0:
        return mixer_of(tally.within("attn"), window)
    tally += _compressor(hidden, width, ratio)
    in_16_bits = f.count("qk_rope_head_dim")
    entries: Shape = {"tokens_per_entry": ratio, "width": width, "fp8_entry_bytes": width + in_16_bits + _SCALES}
    if ratio == 4:
        index, n_index = f.count("index_head_dim"), f.count("index_n_heads")
        tally += _compressor(hidden, index, ratio)
        tally += linear("indexer.wq_b", rank, n_index * index, split="none") + whole(hidden * n_index)
        entries |= {"index_width": index, "index_entry_bytes": index + _INDEX_SCALE}
    return mixer_of(tally.within("attn"), window, {"kind": "compressed", **entries})


def _compressor(hidden: int, width: int, ratio: int) -> Tally:
    """The parameters that pool keys and their weights over `ratio` tokens; twice as wide if the pools overlap."""
    wide = 2 * width if ratio == 4 else width
    return whole(ratio * wide + 2 * hidden * wide + width)


_LETTERS = {"M": "linear", "*": "full", "-": "mlp", "E": "moe"}
_PART_WORDS = {
    "linear_attention": "linear", "mamba": "linear", "full_attention": "full", "attention": "full", "mlp": "mlp",
    "moe": "moe",
}  # fmt: skip


def nemotron_h(f: Fields, family: Family) -> Decoder:
    """Each layer is a single part: Mamba 2, attention, an FFN, or experts."""
    kinds = layer_parts(f, ("layers_block_type", "layer_types"), "hybrid_override_pattern")
    if f.has("num_hidden_layers") and len(kinds) != f.layers():
        f.refuse("num_hidden_layers", f"is {f.layers()}, but {len(kinds)} layers are listed.")
    made = {kind: hybrid_layer(f, family, kind) for kind in set(kinds)}
    return around(f, family, tuple(made[kind] for kind in kinds))


def hybrid_layer(f: Fields, family: Family, kind: str) -> Layer:
    """A layer of one part with its norm; FFNs and experts keep no cache."""
    if kind in ("mlp", "moe"):
        part = replace(dense(f, family) if kind == "mlp" else moe(f, family), groups=(no_cache(kind),))
    else:
        part = layer_mixer(f, family, 0, kind)
    return plus(part, norms(f, family))


def layer_parts(f: Fields, lists: tuple[str, ...], pattern: str, *default: str) -> list[str]:
    """The kind of each layer, from the first list that is given, else from the letters at the key `pattern`."""
    if stated := next((key for key in lists if f.data.get(key) is not None), None):
        return f.words(stated, _PART_WORDS)
    letters = f.text(pattern, *default)
    if not 0 < len(letters) <= MAX_LAYERS or set(letters) - set(_LETTERS):
        f.refuse(pattern, f"must be letters of {' '.join(_LETTERS)}, one a layer.")
    return [_LETTERS[letter] for letter in letters]


_BLOCK_KEYS_NOT_COUNTED = (
    "intermediate_size",
    "replace_with_linear",
    "sparsify",
    "window_length",
    "num_sink_tokens",
    "unshifted_sink",
)


def nemotron_nas(f: Fields, family: Family) -> Decoder:
    """Each block states its own attention, KV heads and FFN width."""
    layers = tuple(_block(f, family, block) for block in f.parts("block_configs", f.layers()))
    return replace(around(f, family, layers), in_order=True)


def _block(f: Fields, family: Family, block: Fields) -> Layer:
    """One block; its FFN's width is 2/3 x ffn_mult x hidden_size, rounded up to a multiple of 256."""
    hidden, heads = f.count("hidden_size"), f.count("num_attention_heads")
    attention, ffn = block.part("attention"), block.part("ffn")
    for part in (attention, ffn):
        for key in _BLOCK_KEYS_NOT_COUNTED:
            if part.raw(key):
                part.refuse(key, "is set, which is not counted.")
    tally, attends, width = NOTHING, NOTHING, 0
    groups: tuple[Shape, ...] = (no_cache("no_op"),)
    if not attention.flag("no_op", False):
        group = attention.count("n_heads_in_group")
        if heads % group:
            attention.refuse("n_heads_in_group", f"{group} does not divide the {heads} heads.")
        width_of_head = f.count("head_dim", hidden // heads)
        mixer = gqa(f, family, "full", Heads(heads, heads // group, width_of_head, width_of_head))
        tally += mixer.body + norms(f, family)
        attends, groups = mixer.mixer, mixer.groups
    if not ffn.flag("no_op", False):
        width = 256 * -(-int(2 * ffn.number("ffn_mult", most=100) * hidden / 3) // 256)
        tally += matrices(hidden, width, family.gated, f.flag("mlp_bias", False)).within("mlp") + norms(f, family)
    return Layer(tally, groups, attends, dense_width=width)


_NOTE = "MTP layers: without the second copy of embedding and output matrix that a checkpoint may hold"


def with_mtp(f: Fields, family: Family, decoder: Decoder) -> Decoder:
    """The decoder with its layers for multi-token prediction: like the model's last layer, after a joining matrix."""
    n = mtp_layers(f)
    if not n or decoder.mtp:
        return decoder
    if not family.mtp:
        return replace(decoder, notes=(*decoder.notes, "the MTP layers are not counted"))
    # One matrix, and norms of both inputs and of the output.
    joining = whole(2 * f.count("hidden_size") ** 2) + norms(f, family) * 3
    if family.mtp == "blocks":
        kinds = layer_parts(f, ("mtp_layers_block_type",), "mtp_hybrid_override_pattern", "*E")
        layers = [hybrid_layer(f, family, kind) for kind in kinds]
    else:
        kind = "full" if family.linear or family.attention == "gqa" else "mla"
        mixer = layer_mixer(f, family, len(decoder.layers) - 1, kind)
        layers = [with_ffn(f, family, mixer, bool(decoder.layers[-1].routed))]
    copies = n * (decoder.embedding + decoder.lm_head) if family.mtp == "copying" else 0
    joined = joining * (1 if family.mtp == "joined" else n)
    notes = (*decoder.notes, _NOTE)
    return replace(decoder, mtp=tuple(layers * n), joining=joined, copied_ends=copies, notes=notes)


def mtp_layers(f: Fields) -> int:
    """The number of layers for multi-token prediction in the checkpoint."""
    key = next((key for key in ("num_nextn_predict_layers", "mtp_num_hidden_layers") if f.raw(key)), None)
    return f.count(key, most=MAX_LAYERS) if key else 0


def old_gpt(f: Fields, family: Family) -> Decoder:
    """GPT-2 and similar models: an absent n_inner is four times the width; multi_query means one KV head."""
    has_one_kv_head = f.flag("multi_query", f.raw("model_type") == "gpt_bigcode")
    f = _with_four_times(f)
    return plain_decoder(f.adding(num_key_value_heads=1) if has_one_kv_head else f, family)


def _with_four_times(f: Fields) -> Fields:
    return f if f.has("intermediate_size") else f.adding(intermediate_size=4 * f.count("hidden_size"))


def opt(f: Fields, family: Family) -> Decoder:
    """Embeddings may be narrower than the model, and a post-norm model has no last norm."""
    decoder = plain_decoder(f, family)
    hidden, vocab = f.count("hidden_size"), f.count("vocab_size")
    width = f.count("word_embed_proj_dim", hidden)
    rest = decoder.rest
    if not f.flag("do_layer_norm_before", True) or f.flag("_remove_final_layer_norm", False):
        rest += norms(f, family) * -1
    if width != hidden:
        rest += linear("project_in", width, hidden, split="none") + linear("project_out", hidden, width, split="none")
    return replace(decoder, embedding=vocab * width, lm_head=decoder.lm_head and vocab * width, rest=rest)


def bloom(f: Fields, family: Family) -> Decoder:
    """With a norm after the embedding, too."""
    decoder = plain_decoder(_with_four_times(f), family)
    return replace(decoder, rest=decoder.rest + norms(f, family))


def mpt(f: Fields, family: Family) -> Decoder:
    width = f.count("expansion_ratio", 4) * f.count("hidden_size")
    attention = f.part("attn_config", {})
    for key in ("qk_ln", "qk_gn"):
        if attention.has(key) and attention.flag(key):
            attention.refuse(key, "is true, which is not counted.")
    if not f.flag("no_bias", True):
        f.refuse("no_bias", "is false, and biases are not counted.")
    if not attention.flag("alibi", True):
        attention.refuse("alibi", "is false, and positions of another kind are not counted.")
    return plain_decoder(f.reading({**f.defaults, "intermediate_size": width}, f.rename), family)


def falcon(f: Fields, family: Family) -> Decoder:
    """Three generations with many, one or a few KV heads, and one or two norms before the parallel parts."""
    heads = f.count("num_attention_heads")
    new = f.flag("new_decoder_architecture", False)
    has_one_kv_head = f.flag("multi_query", True) and not new
    n_kv = f.count("num_kv_heads", heads) if new else 1 if has_one_kv_head else heads
    n_norms = f.count("num_ln_in_parallel_attn", 2 if new else 1) if f.flag("parallel_attn", True) else 2
    bias = f.flag("bias", False)
    changes = {**dict.fromkeys(("qkv_bias", "o_bias", "mlp_bias"), bias), "norms": n_norms}
    family = family.model_copy(update=changes)
    width = f.count("ffn_hidden_size", 4 * f.count("hidden_size"))
    f = f.adding(num_key_value_heads=n_kv).reading({**f.defaults, "intermediate_size": width}, f.rename)
    return plain_decoder(f, family)


def stablelm(f: Fields, family: Family) -> Decoder:
    is_parallel = f.flag("use_parallel_residual", False)
    return plain_decoder(f, family.model_copy(update={"norms": 1}) if is_parallel else family)


def apertus(f: Fields, family: Family) -> Decoder:
    """The activation has two trained numbers per layer."""
    decoder = plain_decoder(f, family)
    return replace(decoder, rest=decoder.rest + whole(2 * len(decoder.layers)))


def chatglm(f: Fields, family: Family) -> Decoder:
    n_kv = f.count("multi_query_group_num") if f.flag("multi_query_attention", False) else None
    return plain_decoder(f.adding(num_key_value_heads=n_kv, head_dim=f.count("kv_channels")), family)


def gpt_neo(f: Fields, family: Family) -> Decoder:
    """The kinds of layers are given as `[[["global", "local"], 12]]`: a list, and its repetitions."""
    kinds: list[str] = []
    words = {"global": "full_attention", "local": "sliding_attention"}
    for i, item in enumerate(f.items("attention_types")):
        ok = isinstance(item, list) and len(item) == 2 and isinstance(item[0], list) and isinstance(item[1], int)
        if not ok or not all(word in words for word in item[0]) or item[1] * len(item[0]) > f.layers():
            f.refuse(f"attention_types[{i}]", "must be a list of global and local, and how often it comes.")
        kinds += [words[word] for word in item[0]] * item[1]
    f = _with_four_times(f)
    return plain_decoder(f.adding(layer_types=kinds, sliding_window=f.count("window_size")), family)


def laguna(f: Fields, family: Family) -> Decoder:
    """The gate of attention is one number per head."""
    if f.raw("gating") not in (None, True, "per-head"):
        f.refuse("gating", f"is {shown(f.raw('gating'))!r}, but must be true or per-head.")
    return plain_decoder(f, family)


def hunyuan(f: Fields, family: Family) -> Decoder:
    """Settings may be lists by layer; with `use_cla`, pairs of layers share keys and values."""
    for key in ("moe_topk", "num_shared_expert", "moe_intermediate_size"):
        if isinstance(f.data.get(key), list):
            values = set(f.whole_numbers(key, f.layers()))
            if len(values) != 1:
                f.refuse(key, "differs between layers, and one number must hold for all.")
            f = f.adding(**{key: values.pop()})
    f = f.adding(moe_intermediate_size=f.count("moe_intermediate_size", f.count("intermediate_size")))
    shared = f.count_or_zero("num_shared_expert", 1) * f.count("intermediate_size")
    f = f.adding(shared_width=shared if f.flag("use_mixed_mlp_moe", True) else 0)
    decoder = plain_decoder(f, family)
    if not f.flag("use_cla", False):
        return decoder
    factor, heads = f.count("cla_share_factor"), heads_of(f)  # one layer in `factor` has keys and values
    hidden, bias = f.count("hidden_size"), f.flag(family.qkv_bias, False)
    of_kv = linear("k_proj", hidden, heads.n_kv * heads.key, bias)
    of_kv = (of_kv + linear("v_proj", hidden, heads.n_kv * heads.value, bias)).within("self_attn")
    layers = tuple(
        layer if i % factor == 0 else replace(plus(layer, of_kv * -1), groups=(no_cache("shared_kv"),))
        for i, layer in enumerate(decoder.layers)
    )
    return replace(decoder, layers=layers)


def falcon_h1(f: Fields, family: Family) -> Decoder:
    """Every layer has attention and Mamba side by side."""
    bias = f.flag("projectors_bias", False)
    if bias != f.flag("mamba_proj_bias", False):
        f.refuse("projectors_bias", "differs from mamba_proj_bias, which is not counted.")
    layers = []
    for i in range(f.layers()):
        attention, mamba = (layer_mixer(f, family, i, kind) for kind in ("full", "linear"))
        layer = with_ffn(f, family, attention, sparse=False)
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
    f = f.adding(intermediate_size=width, first_k_dense_replace=f.count_or_zero("num_dense_layers"))
    if f.has("tie_embedding"):
        f = f.adding(tie_word_embeddings=f.flag("tie_embedding"))
    return plain_decoder(f, family)


def step(f: Fields, family: Family) -> Decoder:
    """Its configs state the heads of windowed layers apart, list sparse layers in a text, and append MTP layers."""
    n = f.layers()
    if isinstance(f.data.get("layer_types"), list):
        f = f.adding(layer_types=f.data["layer_types"][:n])
        kinds = f.words("layer_types", WORDS, n)
        if f.has("attention_other_setting"):
            heads = f.part("attention_other_setting").count("num_attention_heads", f.count("num_attention_heads"))
        else:
            heads = f.count("num_sliding_attention_heads", f.count("num_attention_heads"))
        all_heads = f.count("num_attention_heads")
        f = f.adding(num_attention_heads_per_layer=[heads if kind == "windowed" else all_heads for kind in kinds])
    if f.has("moe_layers_enum"):
        sparse = {word.strip() for word in f.text("moe_layers_enum").split(",")}
        f = f.adding(mlp_layer_types=["sparse" if str(i) in sparse else "dense" for i in range(n)])
    return plain_decoder(f, family)


def inkling(f: Fields, family: Family) -> Decoder:
    """Relative positions by head, and short convolutions of keys, values and both parts' outputs, which have states."""
    hidden, kernel = f.count("hidden_size"), f.count(f.first("conv_kernel_size", "sconv_kernel_size"), 4)
    relative, extent = f.count("d_rel", 16), f.count("rel_extent", 1024)
    decoder = plain_decoder(_inkling_fields(f), family)
    kinds = layer_kinds(_inkling_fields(f), family)
    n_state = 0
    layers = []
    for kind, layer in zip(kinds, decoder.layers, strict=True):
        heads = _inkling_heads(f, kind)
        kv = heads.n_kv * heads.key
        near = extent if kind == "full" else min(extent, f.count(f.first("sliding_window_size", "sliding_window")))
        extra = linear("self_attn.r_proj", hidden, heads.n * relative) + whole(relative * near)
        extra += plain(2 * kv * kernel)
        n_state += (2 * kv + 2 * hidden) * (kernel - 1)
        layers.append(plus(replace(layer, mixer=layer.mixer + extra), extra + whole(2 * hidden * kernel)))
    scales = sum(layer.routed > 0 for layer in layers)  # one of each router
    sink = f.flag("shared_expert_sink", True) * f.count_or_zero("n_shared_experts") * hidden * scales
    n_of_layer = -(-n_state // len(layers))
    shape: Shape = {"kind": "recurrent", "conv_elements": 0, "state_elements": n_of_layer, "state_dtype": "bf16"}
    layers = [replace(layer, groups=(*layer.groups, shape)) for layer in layers]
    rest = decoder.rest + whole(hidden + scales + sink)  # a norm of the embedding
    return replace(decoder, layers=tuple(layers), rest=rest, parallel_hybrid=True)


def _inkling_fields(f: Fields) -> Fields:
    """The fields with layer kinds from the ids of local layers, if not listed, and the common name of the dense
    width."""
    n = f.layers()
    if f.data.get("layer_types") is None:
        local = f.whole_numbers("local_layer_ids") if f.has("local_layer_ids") else [i for i in range(n) if (i + 1) % 6]
        f = f.adding(layer_types=["hybrid_sliding" if i in local else "hybrid" for i in range(n)])
    if (dense_width := f.raw("dense_intermediate_size")) is not None:
        f = f.adding(moe_intermediate_size=f.raw("intermediate_size"), intermediate_size=dense_width)
    absent = {"first_k_dense_replace": f.count_or_zero("dense_mlp_idx"), "swa_v_head_dim": f.raw("swa_head_dim")}
    return f.adding(**{**absent, **f.data})


def _inkling_heads(f: Fields, kind: str) -> Heads:
    heads = heads_of(f)
    if kind == "full":
        return heads
    return Heads(f.count("swa_num_attention_heads"), f.count("swa_num_key_value_heads"), *[f.count("swa_head_dim")] * 2)


def qwen4(f: Fields, family: Family) -> Decoder:
    """Low-rank residual streams, a table of hashed n-grams, and attention to blocks that an index selects."""
    hidden, streams, rank = f.count("hidden_size"), f.count("hc_count", 4), f.count("hc_lowrank", 320)
    wide = streams * hidden
    read = linear("hyper_connection.read_a", wide, rank, split="none") + whole(wide)
    read += linear("hyper_connection.read_b", rank, wide, split="none")
    decoder = plain_decoder(f, family)
    ids = f.whole_numbers("ple_layer_ids") if f.has("ple_layer_ids") else []
    layers, table = [], 0
    for i, (kind, layer) in enumerate(zip(layer_kinds(f, family), decoder.layers, strict=True), 1):
        extra = read * 2 + linear("hyper_connection.write", wide, streams, split="none") * 2
        if kind == "full" and f.has("indexer_n_heads"):
            n, n_kv, width = (f.count(f"indexer_{part}") for part in ("n_heads", "kv_heads", "head_dim"))
            extra += linear("self_attn.indexer_proj", hidden, (n + n_kv) * width, split="none") + whole(2 * width)
            # One 16-bit key for a block of tokens; the raw keys of the last block, and the state of the n-grams'
            # convolution, have own KV groups. Source: vLLM 0.33, models/qwen4_exp (qsa_cache.py, ple_layer.py).
            entry = -(-2 * width // f.count("indexer_compress_ratio"))
            index: Shape = {"kind": "indexer", "width": width, "entry_bytes": entry, "side_blocks": 3 if ids else 1}
            layer = replace(layer, groups=(*layer.groups, index))
        if i in ids:
            rows, width = _ngram_rows(f, sorted(set(ids)).index(i)), f.count("ple_embed_dim", hidden)
            table += rows * (width // ((f.count("ngram_size", 3) - 1) * f.count("heads_per_ngram", 8)))
            extra += linear("ple.key_proj", width, wide) + linear("ple.value_proj", width, hidden) + whole(3 * wide)
            extra += plain(wide * f.count("ple_conv_kernel_size", 4))
        layers.append(plus(layer, extra))
    note = "the n-gram tables count as embedding per layer: an engine may keep them in the host's memory"
    notes = (*decoder.notes, note) if ids else decoder.notes
    rest = decoder.rest + whole(-hidden) + read  # the last norm is of the streams
    return replace(decoder, layers=tuple(layers), rest=rest, per_layer_embedding=table, looked_up=table, notes=notes)


def _ngram_rows(f: Fields, place: int) -> int:
    """The rows of one layer's table: the sum of successive primes, one per head and continued by layer, rounded up."""
    heads = (f.count("ngram_size", 3) - 1) * f.count("heads_per_ngram", 8)
    number = f.count("ngram_vocab_size_base", 20_000_000) - 1
    if heads * (place + 1) > MAX_NGRAM_HEADS or number > MAX_NGRAMS:
        f.refuse("ngram_vocab_size_base", "asks for more n-gram tables than are counted.")
    total = 0
    for i in range(heads * (place + 1)):
        number += 1
        while any(number % k == 0 for k in range(2, math.isqrt(number) + 1)) or number < 2:
            number += 1
        total += number if i >= heads * place else 0
    multiple = f.count("make_ngram_vocab_size_divisible_by", 128)
    return multiple * -(-total // multiple)


MAX_NGRAMS, MAX_NGRAM_HEADS = 10**8, 256


def muse_spark(f: Fields, family: Family) -> Decoder:
    """Norms before and after the experts, in their narrower width, and residuals gated by element."""
    decoder = plain_decoder(f, family)
    if not all(layer.routed for layer in decoder.layers):
        f.refuse("num_local_experts", "leaves layers without experts, which are not counted.")
    return add_to_layers(decoder, whole(2 * f.count("moe_hidden_size") + 2 * f.count("hidden_size")))


def lfm3(f: Fields, family: Family) -> Decoder:
    """Norms after each part, and a gate for every head, unless the config disables them."""
    n_norms = 4 if f.flag("use_sandwich_norm", True) else 2
    gate = family.q_gate if f.flag("use_attention_gate", True) else ""
    return plain_decoder(f, family.model_copy(update={"norms": n_norms, "q_gate": gate}))


def eagle3(f: Fields, family: Family) -> Decoder:
    """An EAGLE-3 head, counted in the body: the parts shared with the target depend on the engine."""
    if f.layers() != 1:
        f.refuse("num_hidden_layers", f"is {f.layers()}, but an EAGLE-3 head that can be counted has 1.")
    hidden, vocab = f.count("hidden_size"), f.count("vocab_size")
    target = f.count("target_hidden_size", hidden)
    own = f.count("draft_vocab_size", vocab)
    heads = heads_of(f)
    mixer = gqa(f, family, "full", heads)
    # It reads two states side by side.
    mixer_twice = linear("self_attn.qkv_proj", hidden, heads.n * heads.key + 2 * heads.n_kv * heads.key)
    ffn = dense(f, family)
    body = mixer.body + mixer_twice + ffn.body + linear("fc", 3 * target, hidden) + whole(4 * hidden)
    body += plain((vocab + own) * hidden) + whole(own + vocab)  # embedding and output, and the map between vocabularies
    layer = Layer(body, mixer.groups, dense_width=ffn.dense_width)
    note = f"draft vocabulary {own:,}; an engine may share the embedding ({vocab * hidden:,}) with the target"
    return Decoder((layer,), 0, 0, whole(0), heads.n, kind="draft", notes=(note, "the context follows the target"))


BUILDERS: dict[str, Callable[[Fields, Family], Decoder]] = {
    build.__name__: build
    for build in (
        old_gpt,
        opt,
        bloom,
        mpt,
        falcon,
        stablelm,
        apertus,
        chatglm,
        gpt_neo,
        laguna,
        hunyuan,
        falcon_h1,
        lfm2,
        lfm3,
        gemma3n,
        gemma4,
        deepseek_v4,
        nemotron_h,
        nemotron_nas,
        inkling,
        qwen4,
        step,
        muse_spark,
        hy_v4,
        glm5_next,
        longcat,
        minimax_m3,
        mistral_large4,
        dots3_note,
    )
}
