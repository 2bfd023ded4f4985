"""Attention with keys and values, and with a latent: its parameters, and what a layer of it caches."""

from __future__ import annotations

from dataclasses import dataclass

from sheetgen.catalog.huggingface.family import Family
from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.layer_kinds import window
from sheetgen.catalog.huggingface.tally import Mixer, Shape, Tally, linear, plain, whole

DSA_ENTRY_BYTES = 656  # 512 in FP8, 16 of scales, 64 rotated in 16 bits; source: vLLM v1, fp8_ds_mla
INDEX_SCALE_BYTES = 4  # index keys are FP8 with one 4-byte scale; source: vLLM v1, the indexer's cache


@dataclass(frozen=True)
class Heads:
    n: int
    n_kv: int
    key: int
    value: int


def heads_of(f: Fields) -> Heads:
    """Query heads, KV heads and their widths; a missing head_dim is hidden_size / heads."""
    n = f.count("num_attention_heads")
    n_kv = f.count("num_key_value_heads", n)
    width = head_dim(f, n)
    return Heads(n, n_kv, width, f.count("v_head_dim", width))


def head_dim(f: Fields, n_heads: int) -> int:
    if f.has("head_dim"):
        return f.count("head_dim")
    hidden = f.count("hidden_size")
    if hidden % n_heads:
        f.refuse("hidden_size", f"{hidden:,} is not a multiple of the {n_heads} heads, and head_dim is missing.")
    return hidden // n_heads


def gqa(f: Fields, family: Family, kind: str, heads: Heads, sinks: bool | None = None) -> Mixer:
    """Query, key, value and output matrices, with the biases, norms and gates of the family."""
    hidden = f.count("hidden_size")
    qkv_bias, o_bias = f.flag(family.qkv_bias, False), f.flag(family.o_bias, False)
    q_width = heads.n * heads.key
    tally = (
        linear(hidden, q_width, qkv_bias)
        + linear(hidden, heads.n_kv * heads.key, qkv_bias)
        + linear(hidden, heads.n_kv * heads.value, qkv_bias)
        + linear(heads.n * heads.value, hidden, o_bias, split="in")
    )
    if family.q_gate:
        tally += linear(hidden, q_width if family.q_gate == "width" else heads.n, qkv_bias)
    if family.qk_norm and f.flag(family.qk_norm_if, False):
        tally += qk_norms(family, heads)
    if family.sinks if sinks is None else sinks:
        tally += plain(heads.n)
    return Mixer(tally, (kv_shape(f, kind, heads),))


def qk_norms(family: Family, heads: Heads) -> Tally:
    if family.qk_norm == "head":
        return whole((4 if family.norm == "layer" and family.norm_bias else 2) * heads.key)
    return whole((heads.n + heads.n_kv) * heads.key)  # one over all heads, or one for each: as many elements


def kv_shape(f: Fields, kind: str, heads: Heads) -> Shape:
    """What a layer keeps. A window that the longest context never fills keeps everything."""
    shape: Shape = {"n_kv_heads": heads.n_kv, "key_width": heads.key, "value_width": heads.value}
    if kind == "full":
        return {"kind": "full", **shape}
    tokens = window(f, kind)
    longest = f.raw("max_position_embeddings")
    if kind == "windowed" and isinstance(longest, int) and tokens >= longest:
        return {"kind": "full", **shape}
    return {"kind": kind, **shape, "window_tokens": tokens}


def mla(f: Fields, family: Family, layer: int = 0) -> Mixer:
    """Latent attention: down-projections that every rank keeps whole, up-projections by head."""
    hidden, heads = f.count("hidden_size"), f.count("num_attention_heads")
    bias = f.flag(family.o_bias, False)
    latent, rope = f.count("kv_lora_rank"), f.count("qk_rope_head_dim")
    nope, value = f.count("qk_nope_head_dim"), f.count("v_head_dim")
    q_width = heads * (nope + rope)
    if f.has("q_lora_rank"):
        rank = f.count("q_lora_rank")
        queries = linear(hidden, rank, bias, split="none") + whole(rank) + linear(rank, q_width)
    else:
        queries = linear(hidden, q_width)
    tally = (
        queries
        + linear(hidden, latent + rope, bias, split="none")
        + whole(latent)
        + linear(latent, heads * (nope + value))
        + linear(heads * value, hidden, bias, split="in")
    )
    shape: Shape = {"kind": "mla", "latent_width": latent + rope, "absorbed_elements": latent * heads * (nope + value)}
    if not f.has("index_head_dim"):
        return Mixer(tally, (shape,))
    if latent + rope == 576:
        shape["fp8_entry_bytes"] = DSA_ENTRY_BYTES
    if not has_indexer(f, layer):
        return Mixer(tally, (shape,))
    indexer, index_keys = dsa_indexer(f, f.count("q_lora_rank"))
    return Mixer(tally + indexer, (shape, index_keys))


def dsa_indexer(f: Fields, rank: int) -> tuple[Tally, Shape]:
    """DeepSeek's sparse attention picks tokens by a small attention of its own, whole on every rank."""
    hidden, n, width = f.count("hidden_size"), f.count("index_n_heads"), f.count("index_head_dim")
    tally = linear(rank, n * width, split="none") + linear(hidden, width, split="none")
    tally += whole(2 * width) + whole(hidden * n)  # a layer norm of the key, and the heads' weights
    return tally, {"kind": "indexer", "width": width, "entry_bytes": width + INDEX_SCALE_BYTES}


def has_indexer(f: Fields, layer: int) -> bool:
    """Some layers use the tokens that an earlier layer picked, and keep no index keys."""
    if f.raw("indexer_types") is not None:
        kinds = f.words("indexer_types", {"full": "full", "shared": "shared"}, f.layers())
        return kinds[layer] == "full"
    if f.raw("index_topk_pattern") is not None:
        pattern = f.text("index_topk_pattern")
        if set(pattern) - set("FS") or len(pattern) != f.layers():
            f.refuse("index_topk_pattern", "must be letters F (full) and S (shared), one a layer.")
        return pattern[layer] == "F"
    after = layer - f.count_or_zero("index_skip_topk_offset", 2) + 1
    return max(after, 0) % f.count("index_topk_freq", 1) == 0
