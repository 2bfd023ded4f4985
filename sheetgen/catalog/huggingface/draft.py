"""EAGLE-3 heads: one layer that reads its target's hidden states, with a vocabulary of its own."""

from __future__ import annotations

from sheetgen.catalog.huggingface.attention import gqa, heads_of
from sheetgen.catalog.huggingface.decoder import Decoder
from sheetgen.catalog.huggingface.family import Family
from sheetgen.catalog.huggingface.feed_forward import dense
from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.tally import Layer, linear, plain, whole


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
    body = mixer.tally + mixer_twice + ffn.tally + linear(3 * target, hidden) + whole(4 * hidden)
    body += plain((vocab + own) * hidden) + whole(own + vocab)  # embedding and output, and the map between vocabularies
    layer = Layer(body, mixer.groups, dense_width=ffn.dense_width)
    note = f"draft vocabulary {own:,}; an engine may share the embedding ({vocab * hidden:,}) with the target"
    return Decoder((layer,), 0, 0, whole(0), heads.n, kind="draft", notes=(note, "the context follows the target"))
