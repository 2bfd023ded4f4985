"""Which precision the weights and the KV cache of a checkpoint have, by its quantization_config."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sheetgen.importer.config_reader import Fields

_TORCH = {
    "bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "float": "fp32", "torch.bfloat16": "bf16",
    "torch.float16": "fp16", "torch.float32": "fp32",
}  # fmt: skip
_METHODS = (
    "fp8", "fbgemm_fp8", "mxfp4", "awq", "gptq", "auto-round", "bitsandbytes", "compressed-tensors", "modelopt",
    "modelopt_fp4",
)  # fmt: skip
_MODELOPT = {
    "FP8": "fp8", "FP8_PER_CHANNEL_PER_TOKEN": "fp8", "FP8_PB_WO": "fp8", "NVFP4": "nvfp4", "NVFP4_AWQ": "nvfp4",
    "W4A16_NVFP4": "nvfp4", "MXFP4": "mxfp4", "W4A16_AWQ": "int4", "W8A8_SQ_PER_CHANNEL": "int8", "MIXED_PRECISION": "",
}  # fmt: skip
_KV = {"FP8": "fp8", "fp8": "fp8", "fp8_e4m3": "fp8", "INT8": "int8", "NVFP4": "nvfp4"}
_MIXED = "One dtype must hold for all linear layers: import the unquantized config, and say --weight-dtype."
_BITS = {4: "int4", 8: "int8"}


@dataclass(frozen=True)
class Precision:
    """Of a checkpoint; `left` are parts of the body that its quantization leaves in 16 bits: attention, ffn."""

    weights: str
    kv_cache: str
    left: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def precision_of(outer: Fields, text: Fields) -> Precision:
    """FP8 weights alone never make an FP8 cache."""
    places = [(fields, key) for fields in (outer, text) for key in ("torch_dtype", "dtype")]
    named = [(fields, key) for fields, key in places if fields.raw(key) not in (None, "auto")]
    stored = named[0][0].one_of(named[0][1], _TORCH) if named else "bf16"
    base = "bf16" if stored == "fp32" else stored
    for fields in (outer, text):
        for key in ("quantization_config", "compression_config"):
            if fields.raw(key):
                part = fields.part(key)
                left = left_alone(part)
                notes = tuple(f"its quantization leaves {name} in 16 bits" for name in sorted(left))
                if text.raw("expert_dtype") == "fp4":
                    notes += ("experts are fp4 inside an otherwise fp8 checkpoint: their size here is too large",)
                return Precision(_weights(part), _kv_cache(part) or base, left, notes)
    notes = () if named else ("the config names no dtype: taken to be bf16",)
    notes += ("a float32 checkpoint: engines load it in 16 bits unless told otherwise",) if stored == "fp32" else ()
    return Precision(base, base, notes=notes)


_ATTENTION = {"self_attn", "attn", "self_attention"}
_PROJECTIONS = {"q_proj", "k_proj", "v_proj", "o_proj"}
_FFN = {"mlp", "feed_forward", "shared_expert", "shared_experts"}
_SKIPPED = {"re", "model", "layers", "language_model", "d"}  # words of a pattern that name no part


def left_alone(q: Fields) -> frozenset[str]:
    """Parts that the list of exceptions names for all layers. Its patterns are read as words, and never run."""
    if q.raw("quant_method") == "mxfp4":
        return frozenset(("attention", "ffn"))  # it quantizes experts only
    left, projections = set[str](), set[str]()
    for key in ("ignore", "modules_to_not_convert", "exclude_modules"):
        for item in q.raw(key) if isinstance(q.raw(key), list) else ():
            words = [word for word in re.findall(r"[a-z_]+", str(item)[:200]) if word not in _SKIPPED]
            if not words or any(character.isdigit() for character in str(item)):
                continue  # single layers
            if words[0] in _ATTENTION:
                projections |= set(words[1:]) or _PROJECTIONS
            elif words[0] in _FFN and (len(words) == 1 or words[1] in _FFN or "_proj" in words):
                left.add("ffn")
    return frozenset(left | {"attention"} if projections >= _PROJECTIONS else left)


def _weights(q: Fields) -> str:
    is_old_modelopt = q.has("quant_algo") and not q.has("quant_method")
    method = "modelopt" if is_old_modelopt else q.one_of("quant_method", {m: m for m in _METHODS})
    if method in ("fp8", "fbgemm_fp8"):
        return "fp8_e5m2" if q.raw("fmt") == "e5m2" else "fp8"
    if method == "mxfp4":
        return "mxfp4"
    if method == "compressed-tensors":
        return _compressed_tensors(q)
    if method.startswith("modelopt"):
        inner = q.part("quantization") if q.has("quantization") else q
        dtype = inner.one_of("quant_algo", _MODELOPT)
        if not dtype:
            inner.refuse("quant_algo", f"is MIXED_PRECISION. {_MIXED}")
        return dtype
    if method == "bitsandbytes":
        for bits in _BITS:
            if q.flag(q.first(f"load_in_{bits}bit", f"_load_in_{bits}bit"), False):
                return _BITS[bits]
        q.refuse("quant_method", "is bitsandbytes, but neither load_in_4bit nor load_in_8bit is true.")
    key = "bits" if method != "awq" else q.first("bits", "w_bit")
    bits = q.count(key)
    if bits not in _BITS:
        q.refuse(key, f"is {bits}, but must be 4 or 8.")
    return _BITS[bits]


def _compressed_tensors(q: Fields) -> str:
    """All groups must agree: a mix of precisions has no single dtype."""
    groups = q.part("config_groups")
    found: dict[str, str] = {}
    for name in groups.data:
        group = groups.part(name)
        weights = group.part("weights")
        kind = weights.one_of("type", {"float": "float", "int": "int"})
        bits = weights.count("num_bits")
        form = str(group.raw("format") or q.raw("format") or "")
        dtype = {("float", 8): "fp8", ("int", 8): "int8", ("int", 4): "int4"}.get((kind, bits))
        if (kind, bits) == ("float", 4):
            dtype = "mxfp4" if "mxfp4" in form or weights.raw("group_size") == 32 else "nvfp4"
        if dtype is None:
            weights.refuse("num_bits", f"is {bits} with type {kind}, which is none of fp8, int8, int4, nvfp4, mxfp4.")
        found[dtype] = name
    if not found:
        q.refuse("config_groups", "is empty: no precision is named.")
    if len(found) > 1:
        q.refuse("config_groups", f"mix {' and '.join(sorted(found))}. {_MIXED}")
    return next(iter(found))


def _kv_cache(q: Fields) -> str:
    """The checkpoint's own cache precision, where it has one."""
    inner = q.part("quantization") if q.has("quantization") else q
    for key in ("kv_cache_quant_algo", "kv_cache_dtype"):
        if inner.raw(key) is not None:
            return inner.one_of(key, _KV)
    stating = inner if inner.raw("kv_cache_scheme") is not None else q
    if stating.raw("kv_cache_scheme") is None:
        return ""
    scheme = stating.part("kv_cache_scheme")
    kind, bits = scheme.text("type"), scheme.count("num_bits")
    dtype = {("float", 8): "fp8", ("int", 8): "int8", ("float", 4): "nvfp4"}.get((kind, bits), "")
    if not dtype:
        scheme.refuse("num_bits", f"is {bits} with type {kind}, which is no known KV cache precision.")
    return dtype
