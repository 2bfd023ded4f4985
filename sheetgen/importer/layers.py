"""The layers of a model: their kinds, their counted parameters, and their caches.

Recurrent layers keep a fixed state per sequence; convolutions keep kernel - 1 columns, as in engines. Source of the
shapes: vLLM v1, mamba_utils.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from sheetgen.catalog.base import RawRecord
from sheetgen.catalog.families import Family, Moe
from sheetgen.importer.config_reader import Fields

WORDS = {
    "full_attention": "full", "sliding_attention": "windowed", "chunked_attention": "chunked",
    "linear_attention": "linear", "attention": "full", "full": "full", "sliding": "windowed", "mamba": "linear",
    "conv": "linear", "indexed_attention": "full", "hybrid": "full", "hybrid_sliding": "windowed",
    "deepseek_sparse_attention": "full",
}  # fmt: skip
Kinds = list[str]


def layer_kinds(f: Fields, family: Family) -> Kinds:
    """The kind of each layer, from a list in the config, else by the rule of the family's class."""
    n = f.layers()
    stated = next((key for key in ("layer_types", "layers_block_type") if f.data.get(key) is not None), None)
    kinds = f.words(stated, WORDS, n) if stated else RULES[family.layers](f, n)
    if "linear" in kinds and not family.linear:
        f.refuse("layer_types", f"has linear layers, which a {f.raw('model_type')} is not known to have.")
    if f.has("use_sliding_window") and not f.flag("use_sliding_window"):
        kinds = ["full" if kind == "windowed" else kind for kind in kinds]
    return kinds


def full_every(n: int, period: int, others: str, offset: int | None = None) -> Kinds:
    """Kinds with full attention once per period, at `offset` (None: in its last place)."""
    place = period - 1 if offset is None else offset
    return ["full" if i % period == place else others for i in range(n)]


def _qwen2(f: Fields, n: int) -> Kinds:
    """Windowed from max_window_layers on, and only with use_sliding_window."""
    if not f.has("sliding_window") or not f.flag("use_sliding_window", False):
        return ["full"] * n
    first = f.count_or_zero("max_window_layers", 28)
    return ["windowed" if i >= first else "full" for i in range(n)]


def _pattern(f: Fields, n: int) -> Kinds:
    """One full layer per period."""
    if not f.has("sliding_window"):
        return ["full"] * n
    key = f.first("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
    return full_every(n, f.count(key), "windowed")


def _llama4(f: Fields, n: int) -> Kinds:
    """Chunked attention in the layers with rotary positions, full in the others."""
    if f.raw("no_rope_layers"):
        return ["chunked" if rotated else "full" for rotated in f.whole_numbers("no_rope_layers", n)]
    return full_every(n, f.count("no_rope_layer_interval", 4), "chunked")


def _jamba(f: Fields, n: int) -> Kinds:
    period = f.count("attn_layer_period")
    return full_every(n, period, "linear", f.count_or_zero("attn_layer_offset") % period)


def _full_at(key: str, f: Fields, n: int) -> Kinds:
    full = f.whole_numbers(key)
    return ["full" if i in full else "linear" for i in range(n)]


def _cohere2_moe(f: Fields, n: int) -> Kinds:
    """Leading dense layers have a pattern of their own, and the others' pattern begins after them."""
    first = f.count_or_zero("first_k_dense_replace")
    return [
        *full_every(min(first, n), f.count("prefix_dense_sliding_window_pattern", 1), "windowed"),
        *full_every(max(0, n - first), f.count("sliding_window_pattern", 4), "windowed"),
    ]


def _minimax(f: Fields, n: int) -> Kinds:
    if f.has("attn_type_list"):
        return ["full" if kind else "linear" for kind in f.whole_numbers("attn_type_list", n)]
    return f.words("layer_types", WORDS, n)


def _kimi(f: Fields, n: int) -> Kinds:
    """By two lists of layer numbers, which start at 1."""
    part = f.part("linear_attn_config")
    full, linear = set(part.whole_numbers("full_attn_layers")), set(part.whole_numbers("kda_layers"))
    for i in range(1, n + 1):
        if (i in full) == (i in linear):
            part.refuse("full_attn_layers", f"and kda_layers do not say what layer {i} is.")
    return ["full" if i in full else "linear" for i in range(1, n + 1)]


RULES: dict[str, Callable[[Fields, int], Kinds]] = {
    "full": lambda f, n: ["full"] * n,
    "windowed": lambda f, n: ["windowed" if f.has("sliding_window") else "full"] * n,
    "alternate": lambda f, n: full_every(n, 2, "windowed"),
    "always_windowed": lambda f, n: full_every(n, f.count("sliding_window_pattern"), "windowed"),
    "interval": lambda f, n: full_every(n, f.count("full_attention_interval", 4), "linear"),
    "mimo": lambda f, n: ["windowed" if kind else "full" for kind in f.whole_numbers("hybrid_layer_pattern", n)],
    "required": lambda f, n: f.words("layer_types", WORDS, n),
    "bamba": lambda f, n: _full_at("attn_layer_indices", f, n),
    "conv": lambda f, n: _full_at("full_attn_idxs", f, n),
    "first_of_four": lambda f, n: full_every(n, 4, "windowed", 0),
    "last_of_four": lambda f, n: full_every(n, 4, "windowed", (n - 1) % 4),
    "sixth_and_last": lambda f, n: [*full_every(n, 6, "windowed")[:-1], "full"],
    "dots3_note": lambda f, n: ["full" if i < 2 or i % 4 == 1 else "windowed" for i in range(n)],
    "lfm3": lambda f, n: ["full" if i % 4 == 2 else "windowed" if i % 4 == 0 and i else "linear" for i in range(n)],
    "cohere2_moe": _cohere2_moe,
    "qwen2": _qwen2,
    "pattern": _pattern,
    "llama4": _llama4,
    "jamba": _jamba,
    "minimax": _minimax,
    "kimi": _kimi,
}


class Matrix(NamedTuple):
    """A quantizable matrix: its module's name inside the layer, its sides, and the number of such matrices."""

    name: str
    n_in: int
    n_out: int
    n: int = 1


@dataclass(frozen=True)
class Tally:
    """Counted parameters: of `total`, every tensor-parallel rank keeps the `copied` whole, and the `unquantized` are
    never quantized; the others are in `matrices`."""

    total: int = 0
    copied: int = 0
    unquantized: int = 0
    matrices: tuple[Matrix, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        totals = self.total + other.total, self.copied + other.copied, self.unquantized + other.unquantized
        return Tally(*totals, self.matrices + other.matrices)

    def __mul__(self, times: int) -> Tally:
        matrices = tuple(matrix._replace(n=matrix.n * times) for matrix in self.matrices)
        return Tally(self.total * times, self.copied * times, self.unquantized * times, matrices)

    def within(self, module: str) -> Tally:
        """The same parameters as parts of a module of the layer."""
        return replace(self, matrices=tuple(m._replace(name=f"{module}.{m.name}") for m in self.matrices))


NOTHING = Tally()


def linear(name: str, n_in: int, n_out: int, bias: bool = False, split: Literal["out", "in", "none"] = "out") -> Tally:
    """A quantizable matrix with its bias, which is split with the outputs, but copied if the inputs are split."""
    weight, n_bias = n_in * n_out, n_out * bias
    copied = {"out": 0, "in": n_bias, "none": weight + n_bias}[split]
    return Tally(weight + n_bias, copied, n_bias, (Matrix(name, n_in, n_out),))


def whole(n: int) -> Tally:
    """Parameters copied to every rank and kept in 16 bits: norms, routers."""
    return Tally(n, n, n)


def plain(n: int) -> Tally:
    """Parameters split over the ranks but kept in 16 bits: convolutions, decay rates, sinks."""
    return Tally(n, 0, n)


Shape = RawRecord  # an attention group of the catalog without its number of layers


@dataclass(frozen=True)
class Layer:
    """A decoder layer or a part of one: its parameters, routed experts apart, and its caches.

    mixer: the parameters of the body that mix tokens, by attention or a recurrence. experts: the matrices of the routed
    experts.
    """

    body: Tally
    groups: tuple[Shape, ...] = ()
    mixer: Tally = NOTHING
    routed: int = 0
    experts: tuple[Matrix, ...] = ()
    dense_width: int = 0
    moe_width: int = 0


def mixer_of(tally: Tally, *groups: Shape) -> Layer:
    return Layer(tally, groups, mixer=tally)


def plus(part: Layer, tally: Tally) -> Layer:
    return replace(part, body=part.body + tally)


def no_cache(reason: str) -> Shape:
    return {"kind": "no_cache", "reason": reason}


DSA_ENTRY_BYTES = 656  # 512 in FP8, 16 of scales, 64 rotated in 16 bits; source: vLLM v1, fp8_ds_mla (SM90)
INDEX_SCALE_BYTES = 4  # index keys are FP8 with one 4-byte scale; source: vLLM v1, the indexer's cache


@dataclass(frozen=True)
class Heads:
    n: int
    n_kv: int
    key: int
    value: int


def heads_of(f: Fields) -> Heads:
    """The numbers and widths of query and KV heads; a missing head_dim is hidden_size / heads."""
    n = f.count("num_attention_heads")
    n_kv = f.count("num_key_value_heads", n)
    if f.has("head_dim"):
        width = f.count("head_dim")
    else:
        hidden = f.count("hidden_size")
        if hidden % n:
            f.refuse("hidden_size", f"{hidden:,} is not a multiple of the {n} heads, and head_dim is missing.")
        width = hidden // n
    return Heads(n, n_kv, width, f.count("v_head_dim", width))


def gqa(f: Fields, family: Family, kind: str, heads: Heads, sinks: bool | None = None) -> Layer:
    """Grouped-query attention: its matrices, with the family's biases, norms and gates, and its cache."""
    hidden = f.count("hidden_size")
    qkv_bias, o_bias = f.flag(family.qkv_bias, False), f.flag(family.o_bias, False)
    q_width = heads.n * heads.key
    tally = linear("q_proj", hidden, q_width, qkv_bias)
    tally += linear("k_proj", hidden, heads.n_kv * heads.key, qkv_bias)
    tally += linear("v_proj", hidden, heads.n_kv * heads.value, qkv_bias)
    tally += linear("o_proj", heads.n * heads.value, hidden, o_bias, split="in")
    if family.q_gate:
        name = "q_proj" if family.q_gate == "width" else "g_proj"
        tally += linear(name, hidden, q_width if family.q_gate == "width" else heads.n, qkv_bias)
    if family.qk_norm and f.flag(family.qk_norm_if, False):
        # One norm over all heads, or one for each, has the same number of elements.
        of_a_head = 4 if family.norm == "layer" and family.norm_bias else 2
        tally += whole((of_a_head if family.qk_norm == "head" else heads.n + heads.n_kv) * heads.key)
    if family.sinks if sinks is None else sinks:
        tally += plain(heads.n)
    return mixer_of(tally.within("self_attn"), kv_shape(f, kind, heads))


def kv_shape(f: Fields, kind: str, heads: Heads) -> Shape:
    """The cache of an attention layer; a window as long as the longest context counts as full attention."""
    shape: Shape = {"n_kv_heads": heads.n_kv, "key_width": heads.key, "value_width": heads.value}
    if kind == "full":
        return {"kind": "full", **shape}
    key = "attention_chunk_size" if kind == "chunked" else f.first("sliding_window", "sliding_window_size")
    tokens = f.count(key)
    longest = f.raw("max_position_embeddings")
    if kind == "windowed" and isinstance(longest, int) and tokens >= longest:
        return {"kind": "full", **shape}
    return {"kind": kind, **shape, "window_tokens": tokens}


def mla(f: Fields, family: Family, layer: int = 0) -> Layer:
    """Multi-head latent attention: down-projections are copied to every rank, up-projections split by head."""
    hidden, heads = f.count("hidden_size"), f.count("num_attention_heads")
    bias = f.flag(family.o_bias, False)
    latent, rope = f.count("kv_lora_rank"), f.count("qk_rope_head_dim", least=0)
    nope, value = f.count("qk_nope_head_dim"), f.count("v_head_dim")
    q_width = heads * (nope + rope)
    if f.has("q_lora_rank"):
        rank = f.count("q_lora_rank")
        queries = linear("q_a_proj", hidden, rank, bias, split="none") + whole(rank) + linear("q_b_proj", rank, q_width)
    else:
        queries = linear("q_proj", hidden, q_width)
    tally = queries + linear("kv_a_proj_with_mqa", hidden, latent + rope, bias, split="none") + whole(latent)
    tally += linear("kv_b_proj", latent, heads * (nope + value))
    tally += linear("o_proj", heads * value, hidden, bias, split="in")
    if family.q_gate:
        tally += linear("g_proj", hidden, heads * value if family.q_gate == "width" else heads)
    if family.sinks:
        tally += plain(heads)
    shape: Shape = {"kind": "mla", "latent_width": latent + rope, "absorbed_elements": latent * heads * (nope + value)}
    if family.whole_heads:
        shape["key_width"] = nope + rope
    if not f.has("index_head_dim"):
        return mixer_of(tally.within("self_attn"), shape)
    if latent + rope == 576:
        shape["fp8_entry_bytes"] = DSA_ENTRY_BYTES
    if not has_indexer(f, layer):
        return mixer_of(tally.within("self_attn"), shape)
    # DeepSeek's sparse attention selects tokens by a small attention of its own, copied to every rank.
    n, width = f.count("index_n_heads"), f.count("index_head_dim")
    tally += linear("indexer.wq_b", f.count("q_lora_rank"), n * width, split="none")
    tally += linear("indexer.wk", hidden, width, split="none")
    tally += whole(2 * width) + whole(hidden * n)  # a layer norm of the key, and the heads' weights
    index: Shape = {"kind": "indexer", "width": width, "entry_bytes": width + INDEX_SCALE_BYTES}
    return mixer_of(tally.within("self_attn"), shape, index)


def has_indexer(f: Fields, layer: int) -> bool:
    """True for a layer with index keys; others use the tokens that an earlier layer selected."""
    if f.raw("indexer_types") is not None:
        kinds = f.words("indexer_types", {"full": "full", "shared": "shared"}, f.layers())
        return kinds[layer] == "full"
    if f.has("index_topk_pattern"):
        f.refuse("index_topk_pattern", "is not read: indexer_types must say which layers keep index keys.")
    after = layer - f.count_or_zero("index_skip_topk_offset", 2) + 1
    return max(after, 0) % f.count("index_topk_freq", 1) == 0


def matrices(hidden: int, width: int, gated: bool, bias: bool = False) -> Tally:
    """The matrices of a feed-forward layer: two, or three with a gate."""
    up = linear("up_proj", hidden, width, bias)
    both = linear("gate_proj", hidden, width, bias) + up if gated else up
    return both + linear("down_proj", width, hidden, bias, split="in")


def dense(f: Fields, family: Family) -> Layer:
    width = f.count(family.dense_width)
    tally = matrices(f.count("hidden_size"), width, family.gated, f.flag(family.mlp_bias, False))
    return Layer(tally.within("mlp"), dense_width=width)


def moe(f: Fields, family: Family) -> Layer:
    """A mixture of experts: router and shared experts in the body, routed experts apart."""
    rule = family.moe
    assert rule is not None
    hidden, n, width = f.count("hidden_size"), f.count(rule.n), f.count(rule.width)
    bias = f.flag(rule.shared_bias, False)
    tally = whole(n * hidden + n * rule.router_bias + n * rule.correction)
    if shared := shared_experts(f, rule)[1]:
        tally += matrices(hidden, shared, family.gated, bias).within(f"{rule.module}.shared_experts")
        if rule.shared_gate:
            tally += whole(hidden)
    if rule.latent and f.has(rule.latent):
        latent = f.count(rule.latent)
        tally += linear(f"{rule.module}.fc1_latent_proj", hidden, latent, bias, split="none")
        tally += linear(f"{rule.module}.fc2_latent_proj", latent, hidden, bias, split="none")
        hidden = latent
    experts = matrices(hidden, width, family.gated, rule.expert_bias).within(f"{rule.module}.experts") * n
    return Layer(tally, routed=experts.total, experts=experts.matrices, moe_width=width)


def shared_experts(f: Fields, rule: Moe) -> tuple[int, int]:
    """The number of shared experts, and their total width."""
    if rule.shared_width:
        width = f.count(rule.shared_width, least=0)
        return int(width > 0), width
    n = f.count_or_zero(rule.shared) if rule.shared else 0
    return n, n and n * f.count(rule.width)


def moe_layers(f: Fields, family: Family, n: int) -> list[bool]:
    """For each layer, true if it has experts in place of a dense part."""
    if (rule := family.moe) is None:
        return [False] * n
    if f.data.get("mlp_layer_types") is not None:
        return [word != "dense" for word in f.words("mlp_layer_types", {w: w for w in ("dense", "sparse", "moe")}, n)]
    if rule.n in f.data and f.count_or_zero(rule.n) == 0:  # without the key, reading the experts raises an error
        return [False] * n
    if rule.layers == "first_k":
        if isinstance(f.raw("moe_layer_freq"), (list, tuple)):
            return [bool(x) for x in f.whole_numbers("moe_layer_freq", n)]
        step, first = f.count("moe_layer_freq", 1), f.count("first_k_dense_replace", least=0)
        return [i >= first and i % step == 0 for i in range(n)]
    if rule.layers == "sparse_step":
        only = set() if f.data.get("mlp_only_layers") is None else set(f.whole_numbers("mlp_only_layers"))
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


STATE_DTYPES = dict(float32="fp32", fp32="fp32", bfloat16="bf16", bf16="bf16", float16="fp16", fp16="fp16", auto="")


def state_dtype(f: Fields) -> str:
    """The precision of the state in the config, else the model's 16-bit type, as with the engines' `auto`."""
    key = f.first("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
    return (f.has(key) and f.one_of(key, STATE_DTYPES)) or sixteen_bit(f)


def sixteen_bit(f: Fields) -> str:
    return "fp16" if f.raw("torch_dtype") == "float16" or f.raw("dtype") == "float16" else "bf16"


DELTA_CHUNK = 64  # tokens between the states within a prompt that a gated delta net's kernel can keep


def state(conv: int, elements: int, dtype: str, checkpoint_tokens: int = 0) -> Shape:
    """The shape of a recurrent layer's state, with checkpoint_tokens of the catalog's schema unless 0."""
    shape: Shape = {"kind": "recurrent", "conv_elements": conv, "state_elements": elements, "state_dtype": dtype}
    return {**shape, "checkpoint_tokens": checkpoint_tokens} if checkpoint_tokens else shape


def mamba2(f: Fields, family: Family) -> Layer:
    hidden = f.count("hidden_size")
    heads = f.count(f.first("mamba_n_heads", "mamba_num_heads"))
    width = f.count(f.first("mamba_d_head", "mamba_head_dim"))
    d_state = f.count(f.first("mamba_d_state", "ssm_state_size"))
    groups = f.count(f.first("mamba_n_groups", "n_groups"))
    kernel = f.count(f.first("mamba_d_conv", "conv_kernel"))
    inner = heads * width
    stated = inner  # if the config states the width too, it must match the heads
    if f.has("mamba_d_ssm"):
        stated = f.count("mamba_d_ssm")
    elif f.has("mamba_expand"):
        stated = int(f.number("mamba_expand") * hidden)
    if stated != inner:
        key = f.first("mamba_d_ssm", "mamba_expand")
        f.refuse(key, f"gives {stated:,} Mamba channels, but its heads have {inner:,}.")
    conv = inner + 2 * groups * d_state
    proj_bias = f.flag(f.first("use_bias", "mamba_proj_bias"), False)
    conv_bias = f.flag(f.first("mamba_conv_bias", "use_conv_bias"), True)
    tally = linear("in_proj", hidden, inner + conv + heads, proj_bias)
    tally += linear("out_proj", inner, hidden, proj_bias, split="in")
    tally += plain(conv * kernel + conv * conv_bias + 3 * heads)
    if f.flag("mamba_rms_norm", True):
        tally += plain(inner)  # this norm is split like the heads
    return mixer_of(tally.within("mamba"), state(conv * (kernel - 1), inner * d_state, state_dtype(f), 1))


def mamba1(f: Fields, family: Family) -> Layer:
    """Mamba 1 as in Jamba, with norms of the step and of both projections of the state."""
    hidden, d_state, kernel = f.count("hidden_size"), f.count("mamba_d_state"), f.count("mamba_d_conv")
    inner = int(f.number("mamba_expand") * hidden)
    rank = -(-hidden // 16) if f.raw("mamba_dt_rank") == "auto" else f.count("mamba_dt_rank")
    proj_bias, conv_bias = f.flag("mamba_proj_bias", False), f.flag("mamba_conv_bias", True)
    tally = linear("in_proj", hidden, 2 * inner, proj_bias) + plain(inner * (kernel + conv_bias + d_state + 1))
    tally += linear("x_proj", inner, rank + 2 * d_state, split="in") + linear("dt_proj", rank, inner, bias=True)
    tally += linear("out_proj", inner, hidden, proj_bias, split="in") + whole(rank + 2 * d_state)
    return mixer_of(tally.within("mamba"), state(inner * (kernel - 1), inner * d_state, state_dtype(f)))


def gated_delta_net(f: Fields, family: Family) -> Layer:
    hidden, kernel = f.count("hidden_size"), f.count("linear_conv_kernel_dim")
    k_heads, v_heads = f.count("linear_num_key_heads"), f.count("linear_num_value_heads")
    k_width, v_width = f.count("linear_key_head_dim"), f.count("linear_value_head_dim")
    keys, values = k_heads * k_width, v_heads * v_width
    conv = 2 * keys + values
    tally = linear("in_proj_qkv", hidden, conv) + linear("in_proj_z", hidden, values)
    tally += linear("out_proj", values, hidden, split="in") + whole(v_width)
    tally += plain(2 * hidden * v_heads + conv * kernel + 2 * v_heads)
    kept = state(conv * (kernel - 1), v_heads * v_width * k_width, state_dtype(f), DELTA_CHUNK)
    return mixer_of(tally.within("linear_attn"), kept)


def kimi_delta(f: Fields, family: Family) -> Layer:
    """Kimi delta attention, whose state has 32 bits in every engine; decay and gate may have low-rank matrices."""
    if f.has("linear_attn_config"):
        part = f.part("linear_attn_config")
        heads, width = part.count("num_heads"), part.count("head_dim")
        kernel = part.count("short_conv_kernel_size")
    else:
        heads = f.count(f.first("linear_num_heads", "num_attention_heads"))
        width = f.count(f.first("linear_head_dim", "head_dim"))
        kernel = f.count(f.first("linear_conv_kernel_dim", "short_conv_kernel_size"))
    hidden, inner = f.count("hidden_size"), heads * width
    tally = linear("o_proj", inner, hidden, split="in") + linear("b_proj", hidden, heads)
    for name in ("q_proj", "k_proj", "v_proj"):
        tally += linear(name, hidden, inner)
    for name in ("f", "g"):  # decay and gate
        if family.linear == "kda_wide":
            tally += linear(f"{name}_proj", hidden, inner)
        else:
            tally += linear(f"{name}_a_proj", hidden, width, split="none") + linear(f"{name}_b_proj", width, inner)
    tally += plain(3 * inner * kernel + inner + heads) + whole(width)
    kept = state(3 * inner * (kernel - 1), heads * width * width, "fp32")
    return mixer_of(tally.within("self_attn"), kept)


def lightning(f: Fields, family: Family) -> Layer:
    hidden, heads = f.count("hidden_size"), f.count("num_attention_heads")
    width = f.count("head_dim", hidden // heads)
    inner = heads * width
    tally = linear("qkv_proj", hidden, 3 * inner) + plain(inner)
    tally += linear("output_gate", hidden, inner) + linear("out_proj", inner, hidden, split="in")
    return mixer_of(tally.within("self_attn"), state(0, heads * width * width, state_dtype(f)))


def short_conv(f: Fields, family: Family) -> Layer:
    """A gated convolution; its columns are its whole state, counted as state elements."""
    hidden, kernel, bias = f.count("hidden_size"), f.count("conv_L_cache", least=2), f.flag("conv_bias", False)
    tally = linear("in_proj", hidden, 3 * hidden, bias) + plain(hidden * kernel + hidden * bias)
    tally += linear("out_proj", hidden, hidden, bias, split="in")
    return mixer_of(tally.within("conv"), state(0, hidden * (kernel - 1), sixteen_bit(f)))


RECURRENCES: dict[str, Callable[[Fields, Family], Layer]] = {
    "mamba2": mamba2,
    "mamba1": mamba1,
    "gated_delta_net": gated_delta_net,
    "kda": kimi_delta,
    "kda_wide": kimi_delta,
    "lightning": lightning,
    "short_conv": short_conv,
}


@dataclass(frozen=True)
class Decoder:
    """The counted language model.

    rest: the body outside the layers: last norm, learned positions. mtp: layers for multi-token prediction, which
    checkpoints contain beside the model. joining: the parameters that join them to it. copied_ends: elements of the
    second embedding and output matrix that some checkpoints have for them.
    """

    layers: tuple[Layer, ...]
    embedding: int
    lm_head: int
    rest: Tally
    n_heads: int
    experts: tuple[int, int, int] | None = None  # all, chosen, shared
    per_layer_embedding: int = 0
    looked_up: int = 0  # table rows that are only looked up, without the plain embedding
    parallel_hybrid: bool = False
    mtp: tuple[Layer, ...] = ()
    joining: Tally = NOTHING
    copied_ends: int = 0
    in_order: bool = False  # layers differ so much that pipeline stages are unequal
    kind: str = "model"
    notes: tuple[str, ...] = ()

    @property
    def mtp_extra(self) -> int:
        return sum(layer.body.total + layer.routed for layer in self.mtp) + self.joining.total


def plain_decoder(f: Fields, family: Family) -> Decoder:
    """The decoder of a family that its row of families.yaml describes completely."""
    kinds = layer_kinds(f, family)
    sparse = moe_layers(f, family, len(kinds))
    mixers = (layer_mixer(f, family, i, kind) for i, kind in enumerate(kinds))
    return around(f, family, tuple(with_ffn(f, family, *both) for both in zip(mixers, sparse, strict=True)))


def with_ffn(f: Fields, family: Family, mixer: Layer, sparse: bool) -> Layer:
    """A whole layer: a mixer, then experts or a dense part, and the norms of both."""
    ffn = moe(f, family) if sparse else dense(f, family)
    body = mixer.body + ffn.body + norms(f, family, family.norms)
    return replace(ffn, body=body, groups=mixer.groups, mixer=mixer.mixer)


def layer_mixer(f: Fields, family: Family, i: int, kind: str) -> Layer:
    """The mixer of layer `i`; in some configs windowed layers, or single layers, have heads of their own."""
    if kind == "linear":
        return RECURRENCES[family.linear](f, family)
    if family.attention == "mla":
        return mla(f, family, i)
    sinks = None
    if f.has("add_swa_attention_sink_bias"):
        sinks = f.flag("add_swa_attention_sink_bias" if kind == "windowed" else "add_full_attention_sink_bias", False)
    heads = heads_of(f)
    if f.has("num_attention_heads_per_layer"):
        heads = replace(heads, n=f.whole_numbers("num_attention_heads_per_layer", f.layers())[i])
    elif kind == "windowed" and f.has("swa_num_key_value_heads"):
        n, n_kv = f.count("swa_num_attention_heads", heads.n), f.count("swa_num_key_value_heads")
        heads = Heads(n, n_kv, f.count("swa_head_dim", heads.key), f.count("swa_v_head_dim", heads.value))
    return gqa(f, family, kind, heads, sinks)


def norms(f: Fields, family: Family, n: int = 1) -> Tally:
    if family.norm == "none":
        return NOTHING
    elements = 2 if family.norm == "layer" and family.norm_bias else 1
    return whole(n * elements * f.count("hidden_size"))


def around(f: Fields, family: Family, layers: tuple[Layer, ...]) -> Decoder:
    """The decoder of these layers, with embedding, last norm and output matrix."""
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
        experts = (n, top_k, shared_experts(f, rule)[0])
    lm_head = 0 if tied else vocab * hidden + vocab * f.flag(family.lm_head_bias, False)
    return Decoder(layers, vocab * hidden, lm_head, rest, f.count("num_attention_heads"), experts)
