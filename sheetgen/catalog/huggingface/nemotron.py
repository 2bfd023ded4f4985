"""Nemotron: hybrids of one part a layer, and the blocks that an architecture search left."""

from __future__ import annotations

from sheetgen.catalog.huggingface.attention import Heads, gqa, heads_of
from sheetgen.catalog.huggingface.decoder import Decoder, around, norms
from sheetgen.catalog.huggingface.family import Family
from sheetgen.catalog.huggingface.feed_forward import dense, matrices
from sheetgen.catalog.huggingface.fields import MAX_LAYERS, Fields
from sheetgen.catalog.huggingface.recurrent import recurrence
from sheetgen.catalog.huggingface.tally import NOTHING, Layer, Shape, linear, no_cache, whole

_LETTERS = {"M": "linear", "*": "full", "-": "mlp", "E": "moe"}
_WORDS = {
    "linear_attention": "linear",
    "mamba": "linear",
    "full_attention": "full",
    "attention": "full",
    "mlp": "mlp",
    "moe": "moe",
}


def nemotron_h(f: Fields, family: Family) -> Decoder:
    """A layer is one thing: Mamba 2, attention, an FFN, or experts."""
    kinds = _kinds(f)
    made = {kind: hybrid_layer(f, family, kind) for kind in set(kinds)}
    layers = tuple(made[kind] for kind in kinds)
    return around(f, family, layers)


def hybrid_layer(f: Fields, family: Family, kind: str) -> Layer:
    norm = norms(f, family)
    if kind == "linear":
        mixer = recurrence(f, family)
        return Layer(mixer.tally + norm, mixer.groups, mixer.tally)
    if kind == "full":
        mixer = gqa(f, family, "full", heads_of(f))
        return Layer(mixer.tally + norm, mixer.groups, mixer.tally)
    if kind == "mlp":
        ffn = dense(f, family)
        return Layer(ffn.tally + norm, (no_cache("mlp"),), dense_width=ffn.dense_width)
    return _experts(f, family)


def _experts(f: Fields, family: Family) -> Layer:
    """Experts may work in a narrower latent, with a projection into it and one back."""
    hidden, n, width = f.count("hidden_size"), f.count("n_routed_experts"), f.count("moe_intermediate_size")
    bias = f.flag("mlp_bias", False)
    latent = f.count("moe_latent_size", hidden)
    shared = f.count("moe_shared_expert_intermediate_size")
    tally = whole(n * hidden) + matrices(hidden, shared, False, bias) + norms(f, family)
    if f.has("moe_latent_size"):
        tally += linear(hidden, latent, bias, split="none") + linear(latent, hidden, bias, split="none")
    routed = n * 2 * latent * width
    return Layer(tally, (no_cache("moe"),), routed=routed, moe_width=width)


def _kinds(f: Fields) -> list[str]:
    for key in ("layers_block_type", "layer_types"):
        if f.data.get(key) is not None:
            return f.words(key, _WORDS, f.layers() if f.has("num_hidden_layers") else None)
    pattern = f.text("hybrid_override_pattern")
    if len(pattern) > MAX_LAYERS or set(pattern) - set(_LETTERS) or not pattern:
        f.refuse("hybrid_override_pattern", f"must be letters of {' '.join(_LETTERS)}, one a layer.")
    if f.has("num_hidden_layers") and len(pattern) != f.layers():
        f.refuse("hybrid_override_pattern", f"has {len(pattern)} letters, but the model has {f.layers()} layers.")
    return [_LETTERS[letter] for letter in pattern]


def mtp_kinds(f: Fields) -> list[str]:
    """The layers of one step of multi-token prediction: attention and experts unless the config says otherwise."""
    if f.raw("mtp_layers_block_type") is not None:
        return f.words("mtp_layers_block_type", _WORDS)
    pattern = f.text("mtp_hybrid_override_pattern", "*E")
    if set(pattern) - set(_LETTERS) or len(pattern) > 20:
        f.refuse("mtp_hybrid_override_pattern", f"must be letters of {' '.join(_LETTERS)}, one a layer.")
    return [_LETTERS[letter] for letter in pattern]


_NOT_COUNTED = ("replace_with_linear", "sparsify", "window_length", "num_sink_tokens", "unshifted_sink")


def nemotron_nas(f: Fields, family: Family) -> Decoder:
    """Each block says for itself whether it attends, with how many KV heads, and how wide its FFN is."""
    layers = tuple(_block(f, family, block) for block in f.parts("block_configs", f.layers()))
    return around(f, family, layers)


def _block(f: Fields, family: Family, block: Fields) -> Layer:
    hidden, heads = f.count("hidden_size"), f.count("num_attention_heads")
    attention, ffn = block.part("attention"), block.part("ffn")
    for part in (attention, ffn):
        for key in _NOT_COUNTED:
            if part.raw(key):
                part.refuse(key, "is set, which is not counted.")
    tally, attends, width = NOTHING, NOTHING, 0
    groups: tuple[Shape, ...] = (no_cache("no_op"),)
    if not attention.flag("no_op", False):
        group = attention.count("n_heads_in_group")
        if heads % group:
            attention.refuse("n_heads_in_group", f"{group} does not divide the {heads} heads.")
        each = f.count("head_dim", hidden // heads)
        mixer = gqa(f, family, "full", Heads(heads, heads // group, each, each))
        tally += mixer.tally + norms(f, family)
        attends, groups = mixer.tally, mixer.groups
    if not ffn.flag("no_op", False):
        width = _ffn_width(f, ffn)
        tally += matrices(hidden, width, family.gated, f.flag("mlp_bias", False)) + norms(f, family)
    return Layer(tally, groups, attends, dense_width=width)


def _ffn_width(f: Fields, ffn: Fields) -> int:
    """Two thirds of the multiple of the width, rounded up to 256, as its class has it."""
    if ffn.has("intermediate_size"):
        return ffn.count("intermediate_size")
    width = int(2 * ffn.number("ffn_mult", most=100) * f.count("hidden_size") / 3)
    return 256 * -(-width // 256)
