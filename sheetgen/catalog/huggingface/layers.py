"""What a layer is made of: counted parameters, attention with what it caches, and the feed-forward part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from sheetgen.catalog.huggingface.families import Family, Moe
from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.layer_kinds import window


@dataclass(frozen=True)
class Tally:
    """Of `total`, `copied` are kept whole by every tensor-parallel rank, `unquantized` are never quantized."""

    total: int = 0
    copied: int = 0
    unquantized: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.total + other.total, self.copied + other.copied, self.unquantized + other.unquantized)

    def __mul__(self, times: int) -> Tally:
        return Tally(self.total * times, self.copied * times, self.unquantized * times)


NOTHING = Tally()


def linear(n_in: int, n_out: int, bias: bool = False, split: Literal["out", "in", "none"] = "out") -> Tally:
    """A quantizable matrix. Split over its outputs its bias is split too; split over its inputs the bias is copied."""
    weight, n_bias = n_in * n_out, n_out * bias
    copied = {"out": 0, "in": n_bias, "none": weight + n_bias}[split]
    return Tally(weight + n_bias, copied, n_bias)


def whole(n: int) -> Tally:
    """Copied to every rank and left in 16 bits: norms, routers."""
    return Tally(n, n, n)


def plain(n: int) -> Tally:
    """Split over the ranks but left in 16 bits: convolutions, decay rates, sinks."""
    return Tally(n, 0, n)


Shape = dict[str, Any]  # an attention group of the catalog without its number of layers


@dataclass(frozen=True)
class Layer:
    """A decoder layer or a part of one: its parameters, its routed experts apart, and what it caches.

    `mixer` are those of the body that move information between tokens: attention or a recurrence.
    """

    body: Tally
    groups: tuple[Shape, ...] = ()
    mixer: Tally = NOTHING
    routed: int = 0
    dense_width: int = 0
    moe_width: int = 0


def mixer_of(tally: Tally, *groups: Shape) -> Layer:
    return Layer(tally, groups, mixer=tally)


def plus(part: Layer, tally: Tally) -> Layer:
    return replace(part, body=part.body + tally)


def no_cache(reason: str) -> Shape:
    return {"kind": "no_cache", "reason": reason}


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


def gqa(f: Fields, family: Family, kind: str, heads: Heads, sinks: bool | None = None) -> Layer:
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
        # One over all heads, or one for each, has as many elements.
        of_a_head = 4 if family.norm == "layer" and family.norm_bias else 2
        tally += whole((of_a_head if family.qk_norm == "head" else heads.n + heads.n_kv) * heads.key)
    if family.sinks if sinks is None else sinks:
        tally += plain(heads.n)
    return mixer_of(tally, kv_shape(f, kind, heads))


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


def mla(f: Fields, family: Family, layer: int = 0) -> Layer:
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
        return mixer_of(tally, shape)
    if latent + rope == 576:
        shape["fp8_entry_bytes"] = DSA_ENTRY_BYTES
    if not has_indexer(f, layer):
        return mixer_of(tally, shape)
    # DeepSeek's sparse attention picks tokens by a small attention of its own, whole on every rank.
    n, width = f.count("index_n_heads"), f.count("index_head_dim")
    tally += linear(f.count("q_lora_rank"), n * width, split="none") + linear(hidden, width, split="none")
    tally += whole(2 * width) + whole(hidden * n)  # a layer norm of the key, and the heads' weights
    return mixer_of(tally, shape, {"kind": "indexer", "width": width, "entry_bytes": width + INDEX_SCALE_BYTES})


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


_MLP_WORDS = {"dense": "dense", "sparse": "moe", "moe": "moe"}


def matrices(hidden: int, width: int, gated: bool, bias: bool = False) -> Tally:
    """Two matrices, or three where one gates the other."""
    up = linear(hidden, width, bias)
    return (up * 2 if gated else up) + linear(width, hidden, bias, split="in")


def dense(f: Fields, family: Family) -> Layer:
    width = f.count(family.dense_width)
    tally = matrices(f.count("hidden_size"), width, family.gated, f.flag(family.mlp_bias, False))
    return Layer(tally, dense_width=width)


def moe(f: Fields, family: Family, layer: int = 0) -> Layer:
    """Router and shared experts are of the body; routed experts are counted apart."""
    rule = family.moe
    assert rule is not None
    hidden, n, width = f.count("hidden_size"), f.count(rule.n), f.count(rule.width)
    tally = whole(n * hidden + n * rule.router_bias + n * rule.correction)
    if shared := shared_width(f, rule, width):
        tally += matrices(hidden, shared, family.gated)
        if rule.shared_gate:
            tally += whole(hidden)
    one = matrices(hidden, width, family.gated, rule.expert_bias)
    return Layer(tally, routed=n * one.total, moe_width=width)


def shared_width(f: Fields, rule: Moe, width: int) -> int:
    if rule.shared_width:
        return f.count_or_zero(rule.shared_width)
    return f.count_or_zero(rule.shared) * width if rule.shared else 0


def n_shared(f: Fields, rule: Moe) -> int:
    if rule.shared_width:
        return int(f.count_or_zero(rule.shared_width) > 0)
    return f.count_or_zero(rule.shared) if rule.shared else 0


def moe_layers(f: Fields, rule: Moe, n: int) -> list[bool]:
    """Which layers have experts instead of a dense part."""
    if f.data.get("mlp_layer_types") is not None:
        return [word == "moe" for word in f.words("mlp_layer_types", _MLP_WORDS, n)]
    if not f.has(rule.n) or f.count_or_zero(rule.n) == 0:
        return [False] * n
    if rule.layers == "first_k":
        if isinstance(f.raw("moe_layer_freq"), (list, tuple)):
            return [bool(x) for x in f.whole_numbers("moe_layer_freq", n)]
        step, first = f.count("moe_layer_freq", 1), f.count("first_k_dense_replace", least=0)
        return [i >= first and i % step == 0 for i in range(n)]
    if rule.layers == "sparse_step":
        only = set(f.whole_numbers("mlp_only_layers")) if f.data.get("mlp_only_layers") is not None else set()
        step = f.count("decoder_sparse_step", 1)
        return [i not in only and (i + 1) % step == 0 for i in range(n)]
    if rule.layers == "period":
        period = f.count("expert_layer_period")
        return [i % period == f.count_or_zero("expert_layer_offset") % period for i in range(n)]
    if rule.layers == "interleave":
        if f.data.get("moe_layers") is not None:
            listed = set(f.whole_numbers("moe_layers"))
            return [i in listed for i in range(n)]
        step = f.count("interleave_moe_layer_step", 1)
        return [(i + 1) % step == 0 for i in range(n)]
    if rule.layers == "range":
        start, step = f.count_or_zero("moe_layer_start_index"), f.count("moe_layer_interval", 1)
        end = f.count("moe_layer_end_index", n - 1, least=-1)
        end = n - 1 if end == -1 else end
        return [(i + 1) % step == 0 and start <= i <= end for i in range(n)]
    return [True] * n
