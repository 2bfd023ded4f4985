"""Layers with a fixed state per sequence: their parameters, and the elements of that state.

Convolutions keep kernel - 1 columns, as engines do. Source of the shapes: vLLM v1, mamba_utils.
"""

from __future__ import annotations

from collections.abc import Callable

from sheetgen.catalog.huggingface.families import Family
from sheetgen.catalog.huggingface.fields import Fields
from sheetgen.catalog.huggingface.layers import Layer, Shape, linear, mixer_of, plain, whole

STATE_DTYPES = {
    "float32": "fp32", "fp32": "fp32", "bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16",
    "auto": "",
}  # fmt: skip


def state_dtype(f: Fields) -> str:
    """The precision that the config pins; else the model's 16-bit type, as the engine's `auto` takes it."""
    for key in ("mamba_ssm_cache_dtype", "mamba_ssm_dtype"):
        if f.has(key):
            return f.one_of(key, STATE_DTYPES) or sixteen_bit(f)
    return sixteen_bit(f)


def sixteen_bit(f: Fields) -> str:
    return "fp16" if f.raw("torch_dtype") == "float16" or f.raw("dtype") == "float16" else "bf16"


def state(conv: int, elements: int, dtype: str) -> Shape:
    return {"kind": "recurrent", "conv_elements": conv, "state_elements": elements, "state_dtype": dtype}


def mamba2(f: Fields, family: Family) -> Layer:
    hidden = f.count("hidden_size")
    heads = f.count(f.first("mamba_n_heads", "mamba_num_heads", "n_mamba_heads", "num_heads"))
    width = f.count(f.first("mamba_d_head", "mamba_head_dim", "mamba_headdim", "head_dim"))
    d_state = f.count(f.first("mamba_d_state", "ssm_state_size", "state_size"))
    groups = f.count(f.first("mamba_n_groups", "mamba_ngroups", "n_groups"))
    kernel = f.count(f.first("mamba_d_conv", "conv_kernel"))
    inner = heads * width
    _inner_agrees(f, inner)
    conv = inner + 2 * groups * d_state
    proj_bias = f.flag(f.first("use_bias", "mamba_proj_bias", "add_bias_linear"), False)
    conv_bias = f.flag(f.first("mamba_conv_bias", "use_conv_bias"), True)
    tally = (
        linear(hidden, inner + conv + heads, proj_bias)
        + plain(conv * kernel + conv * conv_bias + 3 * heads)
        + linear(inner, hidden, proj_bias, split="in")
    )
    if f.flag("mamba_rms_norm", True):
        tally += plain(inner)  # this norm is split like the heads
    return mixer_of(tally, state(conv * (kernel - 1), inner * d_state, state_dtype(f)))


def _inner_agrees(f: Fields, inner: int) -> None:
    """The heads must fill the width that the config gives as well, where it does."""
    if f.has("mamba_d_ssm"):
        said = f.count("mamba_d_ssm")
    elif f.has("mamba_expand"):
        said = int(f.number("mamba_expand") * f.count("hidden_size"))
    else:
        return
    if said != inner:
        key = f.first("mamba_d_ssm", "mamba_expand")
        f.refuse(key, f"gives {said:,} Mamba channels, but its heads have {inner:,}.")


def mamba1(f: Fields, family: Family) -> Layer:
    hidden = f.count("hidden_size")
    d_state = f.count(f.first("mamba_d_state", "state_size"))
    kernel = f.count(f.first("mamba_d_conv", "conv_kernel"))
    if family.builder == "attention_free" and f.has("intermediate_size"):
        inner = f.count("intermediate_size")
    else:
        inner = int(f.number(f.first("mamba_expand", "expand")) * hidden)
    key = f.first("time_step_rank", "mamba_dt_rank")
    rank = -(-hidden // 16) if f.raw(key) == "auto" else f.count(key)
    proj_bias = f.flag(f.first("mamba_proj_bias", "use_bias"), False)
    conv_bias = f.flag(f.first("mamba_conv_bias", "use_conv_bias"), True)
    tally = (
        linear(hidden, 2 * inner, proj_bias)
        + plain(inner * kernel + inner * conv_bias + inner * d_state + inner)
        + linear(inner, rank + 2 * d_state, split="in")
        + linear(rank, inner, bias=True)
        + linear(inner, hidden, proj_bias, split="in")
    )
    if family.linear == "mamba1_norms":
        tally += whole(rank + 2 * d_state)
    return mixer_of(tally, state(inner * (kernel - 1), inner * d_state, state_dtype(f)))


def gated_delta_net(f: Fields, family: Family) -> Layer:
    hidden, kernel = f.count("hidden_size"), f.count("linear_conv_kernel_dim")
    k_heads, v_heads = f.count("linear_num_key_heads"), f.count("linear_num_value_heads")
    k_width, v_width = f.count("linear_key_head_dim"), f.count("linear_value_head_dim")
    keys, values = k_heads * k_width, v_heads * v_width
    conv = 2 * keys + values
    tally = (
        linear(hidden, conv + values)
        + plain(2 * hidden * v_heads + conv * kernel + 2 * v_heads)
        + whole(v_width)
        + linear(values, hidden, split="in")
    )
    return mixer_of(tally, state(conv * (kernel - 1), v_heads * v_width * k_width, state_dtype(f)))


def kimi_delta(f: Fields, family: Family) -> Layer:
    """Kimi delta attention. Its state is 32-bit in every engine."""
    if f.has("linear_attn_config"):
        part = f.part("linear_attn_config")
        heads, width = part.count("num_heads"), part.count("head_dim")
        kernel = part.count("short_conv_kernel_size")
    else:
        heads, width = f.count("linear_num_heads"), f.count("linear_head_dim")
        kernel = f.count("linear_conv_kernel_dim")
    hidden, inner = f.count("hidden_size"), heads * width
    tally = (
        linear(hidden, 3 * inner)
        + plain(3 * inner * kernel + inner + heads)
        + linear(hidden, 2 * width, split="none")
        + linear(width, 2 * inner)
        + linear(hidden, heads)
        + whole(width)
        + linear(inner, hidden, split="in")
    )
    return mixer_of(tally, state(3 * inner * (kernel - 1), heads * width * width, "fp32"))


def lightning(f: Fields, family: Family) -> Layer:
    hidden, heads = f.count("hidden_size"), f.count("num_attention_heads")
    width = f.count("head_dim", hidden // heads)
    inner = heads * width
    tally = linear(hidden, 3 * inner) + plain(inner) + linear(hidden, inner) + linear(inner, hidden, split="in")
    return mixer_of(tally, state(0, heads * width * width, state_dtype(f)))


def short_conv(f: Fields, family: Family) -> Layer:
    """A gated convolution. Its columns are all its state, given here as state elements."""
    hidden, kernel, bias = f.count("hidden_size"), f.count("conv_L_cache", least=2), f.flag("conv_bias", False)
    tally = linear(hidden, 3 * hidden, bias) + plain(hidden * kernel + hidden * bias)
    tally += linear(hidden, hidden, bias, split="in")
    return mixer_of(tally, state(0, hidden * (kernel - 1), sixteen_bit(f)))


RECURRENCES: dict[str, Callable[[Fields, Family], Layer]] = {
    "mamba2": mamba2, "mamba1": mamba1, "mamba1_norms": mamba1, "gated_delta_net": gated_delta_net, "kda": kimi_delta,
    "lightning": lightning, "short_conv": short_conv,
}  # fmt: skip


def recurrence(f: Fields, family: Family) -> Layer:
    return RECURRENCES[family.linear](f, family)
