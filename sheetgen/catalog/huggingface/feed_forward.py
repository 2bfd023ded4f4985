"""Feed-forward parts: dense, and a mixture of experts with its router and its shared experts."""

from __future__ import annotations

from sheetgen.catalog.huggingface.family import Family, Moe
from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.tally import FeedForward, Tally, linear, whole

_MLP_WORDS = {"dense": "dense", "sparse": "moe", "moe": "moe"}


def matrices(hidden: int, width: int, gated: bool, bias: bool = False) -> Tally:
    """Two matrices, or three where one gates the other."""
    up = linear(hidden, width, bias)
    return (up * 2 if gated else up) + linear(width, hidden, bias, split="in")


def dense(f: Fields, family: Family) -> FeedForward:
    width = f.count(family.dense_width)
    tally = matrices(f.count("hidden_size"), width, family.gated, f.flag(family.mlp_bias, False))
    return FeedForward(tally, dense_width=width)


def moe(f: Fields, family: Family, layer: int = 0) -> FeedForward:
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
    return FeedForward(tally, routed=n * one.total, moe_width=width)


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
        return _first_k(f, n)
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


def _first_k(f: Fields, n: int) -> list[bool]:
    freq = f.raw("moe_layer_freq")
    if isinstance(freq, (list, tuple)):
        return [bool(x) for x in f.whole_numbers("moe_layer_freq", n)]
    step = f.count("moe_layer_freq", 1)
    first = f.count("first_k_dense_replace", least=0)
    return [i >= first and i % step == 0 for i in range(n)]
