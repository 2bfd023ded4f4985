"""The precisions of a checkpoint's weights and KV cache, from config.json and the hf_quant_config.json beside it.

The quantized matrices are given by a list of rules: the first one that means a matrix applies, else the general format.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sheetgen.catalog.base import RawValue
from sheetgen.catalog.model import EXL3
from sheetgen.errors import shown
from sheetgen.importer.config_reader import Fields
from sheetgen.importer.module_names import ModuleList, Pattern, plain, regular, wildcard

_TORCH = {
    "bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "float": "fp32", "torch.bfloat16": "bf16",
    "torch.float16": "fp16", "torch.float32": "fp32",
}  # fmt: skip
_KV = {"FP8": "fp8", "fp8": "fp8", "fp8_e4m3": "fp8", "INT8": "int8", "NVFP4": "nvfp4", "NVFP4_AFFINE": "nvfp4"}
_UNKNOWN = "Import the unquantized config, and say --weight-dtype."
BITS_16 = 16
LEAST_OF_8 = 6  # bits from which a format counts as 8-bit, not 4-bit
DEEPSEEK_BLOCK = (128, 128)
FP4_GROUP, MXFP4_GROUP, INT4_GROUP, NF4_GROUP = 16, 32, 128, 64


@dataclass(frozen=True)
class Stored:
    """The storage format of a matrix: bits per element, scales, zero points and order of inputs.

    A scale is for `group` inputs of `rows` outputs; group 0 is a whole row, None the whole matrix.
    """

    dtype: str
    bits: float
    group: int | None = None
    rows: int = 1
    scale_bytes: float = 4
    zero_bits: int = 0  # zero point per scale
    order_bytes: int = 0  # per input, if the order of inputs is kept

    def bytes_of(self, n_in: int, n_out: int) -> int:
        """The bytes of one matrix with its scales."""
        n_scales = 1
        if self.group is not None:
            n_scales = math.ceil(n_in / (self.group or n_in)) * math.ceil(n_out / self.rows)
        beside = n_scales * (self.scale_bytes + self.zero_bits / 8) + self.order_bytes * n_in
        return math.ceil(n_in * n_out * self.bits / 8 + beside)


FP8 = Stored("fp8", 8)
MXFP4 = Stored("mxfp4", 4, MXFP4_GROUP, scale_bytes=1)


@dataclass(frozen=True)
class Rule:
    """The storage format of the modules that a pattern means; None: they stay in 16 bits."""

    pattern: Pattern
    stored: Stored | None = None


_SINGLE_EXPERT = re.compile(r"(.*\bexperts)\.(\d{1,6})(\..+)?")


@dataclass
class Recipe:
    """The storage formats of a checkpoint's matrices.

    linears: of matrices without a rule. experts, head: of the routed experts and the output matrix, if different.
    place: the key of the list in the config, for messages.
    """

    rules: list[Rule] = field(default_factory=list)
    linears: Stored | None = None
    experts: Stored | None = None
    head: Stored | None = None
    dtype: str = ""  # the name of the precision; "": that of most weights
    name: str = ""
    place: str = "quantization_config"

    def __post_init__(self) -> None:
        self.modules = ModuleList(rule.pattern for rule in self.rules)

    def of_experts(self, n: int) -> Recipe:
        """The recipe for a model with `n` experts, with a single rule in place of equal rules for each of them."""
        numbers: dict[tuple[str, Stored | None], set[int]] = {}
        kinds = [(rule, _SINGLE_EXPERT.fullmatch(rule.pattern.text)) for rule in self.rules]
        for rule, match in kinds:
            if match and not rule.pattern.branches:
                numbers.setdefault((match[1] + (match[3] or ""), rule.stored), set()).add(int(match[2]))
        of_all = {kind for kind, numbered in numbers.items() if numbered == set(range(n))}
        rules = []
        for rule, match in kinds:
            kind = (match[1] + (match[3] or ""), rule.stored) if match else None
            if kind not in of_all:
                rules.append(rule)
            elif match and match[2] == "0":
                rules.append(Rule(plain(match[1] + (match[3] or "")), rule.stored))
        return replace(self, rules=rules)


@dataclass(frozen=True)
class Precision:
    """The precisions of a checkpoint: of unquantized weights, of the KV cache, and the recipe of quantized matrices."""

    base: str
    kv_cache: str
    recipe: Recipe | None = None
    notes: tuple[str, ...] = ()


def precision_of(outer: Fields, text: Fields, beside: Fields | None = None) -> Precision:
    """The precisions of a config; `beside` is the hf_quant_config.json in its folder. FP8 weights alone do not imply an
    FP8 cache."""
    places = [(fields, key) for fields in (outer, text) for key in ("torch_dtype", "dtype")]
    named = [(fields, key) for fields, key in places if fields.raw(key) not in (None, "auto")]
    stored = named[0][0].one_of(named[0][1], _TORCH) if named else "bf16"
    base = "bf16" if stored == "fp32" else stored
    keys = ("quantization_config", "compression_config")
    parts = [fields.part(key) for fields in (outer, text) for key in keys if fields.raw(key)]
    if parts or beside is not None:
        q = _joined(parts[0] if parts else None, beside)
        recipe = _METHODS[_method_of(q)](q)
        if text.raw("expert_dtype") is not None:
            recipe.experts = _expert_format(text, recipe)
        return Precision(base, _kv_cache(q) or base, recipe)
    notes: tuple[str, ...] = () if named else ("the config names no dtype: taken to be bf16",)
    notes += ("a float32 checkpoint: engines load it in 16 bits unless told otherwise",) if stored == "fp32" else ()
    return Precision(base, base, notes=notes)


def _expert_format(text: Fields, recipe: Recipe) -> Stored | None:
    kind = text.one_of("expert_dtype", {name: name for name in ("fp4", "fp8", "bf16", "bfloat16")})
    return {"fp4": MXFP4, "fp8": recipe.linears}.get(kind)


def _joined(config: Fields | None, beside: Fields | None) -> Fields:
    """Both files as one: config.json, completed by the other. Either may have its fields inside `quantization`.

    Raises CatalogError where they name different algorithms.
    """
    parts = [p.part("quantization") if p.has("quantization") else p for p in (config, beside) if p is not None]
    if config is not None and config.has("quant_method"):
        parts[0] = parts[0].adding(quant_method=config.raw("quant_method"))
    if len(parts) == 1:
        return parts[0]
    algo = "quant_algo"
    if (ours := parts[0].raw(algo)) and (theirs := parts[1].raw(algo)) and ours != theirs:
        problem = f"is {shown(ours)!r}, but hf_quant_config.json says {shown(theirs)!r}. Keep the file that is right."
        parts[0].refuse(algo, problem)
    missing = {key: value for key, value in parts[1].data.items() if parts[0].raw(key) is None}
    return parts[0].adding(**missing)


def _method_of(q: Fields) -> str:
    if q.raw("quant_method") is None and q.has("quant_algo"):
        return "modelopt"
    return q.one_of("quant_method", {method: method for method in _METHODS})


def _listed(q: Fields, *keys: str) -> list[tuple[str, str]]:
    """The module names in the lists at these keys, each with its key."""
    items = [(key, item) for key in keys if q.raw(key) is not None for item in q.items(key)]
    for key, item in items:
        if not isinstance(item, str):
            q.refuse(key, f"holds {shown(item)!r}, but must be names of modules.")
    return [(key, item.removesuffix(".weight")) for key, item in items]


def _pattern(q: Fields, key: str, text: str) -> Pattern:
    """The pattern of a name, a name with `*`, or a regular expression after `re:`."""
    if not text.startswith("re:"):
        return wildcard(text)
    return _regular(q, key, text.removeprefix("re:"))


def _regular(q: Fields, key: str, text: str) -> Pattern:
    pattern = regular(text)
    if pattern is None:
        q.refuse(key, f"holds {shown(text)!r}, a pattern that is not read. {_UNKNOWN}")
    return pattern


def _left_out(q: Fields, *keys: str) -> list[Rule]:
    return [Rule(_pattern(q, key, item)) for key, item in _listed(q, *keys)]


_NOT_CONVERTED = ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules")


def _fp8(q: Fields) -> Recipe:
    """FP8, per tensor or in blocks; neither engines nor files quantize the output matrix."""
    dtype = "fp8_e5m2" if q.raw("fmt") == "e5m2" else "fp8"
    linears = Stored(dtype, 8)
    if q.raw("weight_block_size") is not None:
        rows, group = _block(q, "weight_block_size")
        linears = Stored(dtype, 8, group, rows)
    if not q.has("quantized_layers"):
        return Recipe(_left_out(q, *_NOT_CONVERTED), linears, dtype=dtype, name="fp8")
    # ModelOpt applied to an FP8 checkpoint: modules that its list does not name stay in FP8.
    rules = list(_quantized_layers(q))
    return Recipe(rules, linears, name="mixed precision (modelopt over fp8)", place=f"{q.inside}quantized_layers")


def _block(q: Fields, key: str) -> tuple[int, int]:
    sides = q.whole_numbers(key)
    if len(sides) != 2 or not all(sides):
        q.refuse(key, "must be two whole numbers: the sides of a block.")
    return sides[0], sides[1]


def _fbgemm(q: Fields) -> Recipe:
    return Recipe(_left_out(q, *_NOT_CONVERTED), Stored("fp8", 8, 0), dtype="fp8", name="fbgemm_fp8")


def _mxfp4(q: Fields) -> Recipe:
    """MXFP4, which quantizes experts only."""
    return Recipe(_left_out(q, "modules_to_not_convert"), None, MXFP4, dtype="mxfp4", name="mxfp4")


def _bits_of(q: Fields, *keys: str) -> int:
    key = q.first(*keys)
    bits = q.count(key)
    if bits not in (4, 8):
        q.refuse(key, f"is {bits}, but must be 4 or 8.")
    return bits


def _group_of(q: Fields, default: int) -> int:
    """The number of inputs in a group, 0 for a whole row (-1 in the config)."""
    size = q.count("group_size", default, least=-1)
    return max(size, 0)


def _integers(bits: int, group: int, zero_point: bool, order: bool = False) -> Stored:
    zero_bits = bits if zero_point else 0
    return Stored(f"int{bits}", bits, group, scale_bytes=2, zero_bits=zero_bits, order_bytes=4 if order else 0)


def _exl3(q: Fields) -> Recipe:
    """ExLlamaV3: any number of bits, also fractional ones, and 16-bit signs of inputs and outputs."""

    def stored(bits: float) -> Stored:
        return Stored("int4" if bits < LEAST_OF_8 else "int8", bits, 0, scale_bytes=2, order_bytes=2)

    bits, head_bits = (q.number(key, least=1, most=8) for key in ("bits", "head_bits"))
    linears = stored(bits)
    return Recipe([], linears, head=stored(head_bits), dtype=linears.dtype, name=f"{EXL3} of {bits:g} bits")


def _awq(q: Fields) -> Recipe:
    bits = _bits_of(q, "bits", "w_bit")
    group = _group_of(q.adding(group_size=q.raw(q.first("group_size", "q_group_size"))), INT4_GROUP)
    stored = _integers(bits, group, q.flag("zero_point", True))
    return Recipe(_left_out(q, *_NOT_CONVERTED), stored, dtype=stored.dtype, name=f"awq, groups of {group}")


def _gptq(q: Fields) -> Recipe:
    """GPTQ: files contain zero points and the order of inputs even if these are not used."""
    bits, group = _bits_of(q, "bits"), _group_of(q, INT4_GROUP)
    stored = _integers(bits, group, zero_point=True, order=True)
    rules = _left_out(q, "modules_to_not_convert")
    if q.raw("dynamic"):
        rules += _dynamic(q.part("dynamic"), bits, group)
    inside = q.raw("modules_in_block_to_quantize")
    if inside:
        names = [name for item in q.items("modules_in_block_to_quantize") for name in _texts(item)]
        rules += [Rule(plain(name), stored) for name in names]
        return Recipe(rules, None, dtype=stored.dtype, name=f"gptq, groups of {group}")
    head = stored if q.flag("lm_head", False) else None
    return Recipe(rules, stored, head=head, dtype=stored.dtype, name=f"gptq, groups of {group}")


def _texts(item: RawValue) -> list[str]:
    items = item if isinstance(item, list) else [item]
    return [str(name) for name in items]


def _dynamic(part: Fields, bits: int, group: int) -> Iterator[Rule]:
    """GPTQ's rules for single modules: `-:` excludes modules, others change their format."""
    for key in part.data:
        text = str(key)
        if text.startswith("-:"):
            yield Rule(_regular(part, key, text[2:]))
            continue
        changed = part.part(key)
        if changed.data and text.removeprefix("+:"):
            stored = _integers(
                _bits_of(changed.adding(bits=changed.raw("bits") or bits), "bits"),
                _group_of(changed, group),
                zero_point=True,
                order=True,
            )
            yield Rule(_regular(part, key, text.removeprefix("+:")), stored)


def _auto_round(q: Fields) -> Recipe:
    kind = q.one_of("data_type", {"int": "int", "mx_fp": "mx_fp", "nv_fp": "nv_fp", "fp8": "fp8"}, "int")
    if kind != "int":
        q.refuse("data_type", f"is {kind}, which is not counted. {_UNKNOWN}")
    bits, group = _bits_of(q, "bits"), _group_of(q, INT4_GROUP)
    stored = _integers(bits, group, zero_point=True)
    rules = []
    if q.raw("extra_config"):
        layers = q.part("extra_config")
        for name in layers.data:
            layer = layers.part(name)
            own_bits = layer.count("bits", bits)
            own = None
            if own_bits < BITS_16:
                own = _integers(_bits_of(layer.adding(bits=own_bits), "bits"), _group_of(layer, group), True)
            rules.append(Rule(_pattern_or_regular(layers, str(name)), own))
    return Recipe(rules, stored, dtype=stored.dtype, name=f"auto-round, groups of {group}")


def _pattern_or_regular(q: Fields, text: str) -> Pattern:
    return _regular(q, text, text) if set(text) & set("*+?()[]|\\^$") else plain(text)


def _bitsandbytes(q: Fields) -> Recipe:
    rules = _left_out(q, "llm_int8_skip_modules")
    for bits in (4, 8):
        if q.flag(q.first(f"load_in_{bits}bit", f"_load_in_{bits}bit"), False):
            if bits == 8:
                return Recipe(rules, Stored("int8", 8, 0), dtype="int8", name="bitsandbytes, 8 bits")
            # Double quantization: one byte for the scale of a block, and 4 bytes for 256 of these scales.
            scale_bytes = 1 + 4 / 256 if q.flag("bnb_4bit_use_double_quant", False) else 4
            return Recipe(
                rules, Stored("int4", 4, NF4_GROUP, scale_bytes=scale_bytes), dtype="int4", name="bitsandbytes, 4 bits"
            )
    q.refuse("quant_method", "is bitsandbytes, but neither load_in_4bit nor load_in_8bit is true.")


def _modelopt_format(q: Fields, default_group: int | None = None) -> Stored:
    """The storage format of ModelOpt's quant_algo."""
    group = q.count("group_size", default_group or 0, least=0)
    formats: dict[str, Stored] = {
        "FP8": FP8,
        "FP8_PER_CHANNEL_PER_TOKEN": Stored("fp8", 8, 0),
        "FP8_PB_WO": Stored("fp8", 8, group or DEEPSEEK_BLOCK[1], DEEPSEEK_BLOCK[0]),
        "FP8_PB_REAL": Stored("fp8", 8, group or DEEPSEEK_BLOCK[1], DEEPSEEK_BLOCK[0]),
        "MXFP8": Stored("fp8", 8, group or MXFP4_GROUP, scale_bytes=1),
        **dict.fromkeys(
            ("NVFP4", "NVFP4_AWQ", "W4A16_NVFP4", "W4A8_NVFP4_FP8"),
            Stored("nvfp4", 4, group or FP4_GROUP, scale_bytes=1),
        ),
        **dict.fromkeys(("MXFP4", "W4A8_MXFP4_FP8"), Stored("mxfp4", 4, group or MXFP4_GROUP, scale_bytes=1)),
        **dict.fromkeys(("W4A16_AWQ", "W4A8_AWQ", "INT4_AWQ"), Stored("int4", 4, group or INT4_GROUP, scale_bytes=2)),
        **dict.fromkeys(("W8A8_SQ_PER_CHANNEL", "INT8_SQ", "W8A16"), Stored("int8", 8, 0)),
    }
    word = q.one_of("quant_algo", {name: name for name in formats})
    return formats[word]


def _modelopt(q: Fields) -> Recipe:
    left = _left_out(q, *_NOT_CONVERTED)
    if q.raw("quant_algo") != "MIXED_PRECISION":
        group = _group_in_groups(q)
        stored = _modelopt_format(q, group)
        name = f"{stored.dtype} (modelopt)"
        return Recipe(left, stored, head=stored, dtype=stored.dtype, name=name, place=f"{q.inside}exclude_modules")
    rules = list(_quantized_layers(q) if q.has("quantized_layers") else _group_rules(q, {}))
    if not rules:
        q.refuse(
            "quant_algo",
            "is MIXED_PRECISION, but quantized_layers does not say of which layers: put the"
            " hf_quant_config.json of the checkpoint beside config.json, or import the unquantized config and say"
            " --weight-dtype.",
        )
    return Recipe([*rules, *left], None, name="mixed precision (modelopt)", place=f"{q.inside}quantized_layers")


def _group_in_groups(q: Fields) -> int | None:
    """The group size inside config_groups, as newer files have it; None for none."""
    if not q.raw("config_groups"):
        return None
    groups = q.part("config_groups")
    for name in groups.data:
        weights = groups.part(name).part("weights", {})
        if weights.raw("group_size") is not None:
            return weights.count("group_size")
    return None


def _quantized_layers(q: Fields) -> Iterator[Rule]:
    layers = q.part("quantized_layers")
    for name in layers.data:
        yield Rule(wildcard(str(name)), _modelopt_format(layers.part(name), None))


def _compressed_tensors(q: Fields) -> Recipe:
    """compressed-tensors: ignored modules take precedence over names, and names over classes."""
    sparsity = q.part("sparsity_config", {})
    if sparsity.raw("format") not in (None, "dense"):
        sparsity.refuse("format", f"is {shown(sparsity.raw('format'))!r}, which is not counted. {_UNKNOWN}")
    rules = _left_out(q, *_NOT_CONVERTED)
    of_all: dict[str, Stored] = {}
    rules += _group_rules(q, of_all)
    linears = of_all.get(_LINEAR)
    if linears is None and not any(rule.stored for rule in rules):
        q.refuse("config_groups", "is empty: no precision is named.")
    dtypes = {rule.stored.dtype for rule in rules if rule.stored} | ({linears.dtype} if linears else set())
    dtype = next(iter(dtypes)) if len(dtypes) == 1 else ""
    name = f"{dtype or 'mixed precision'} (compressed-tensors)"
    return Recipe(rules, linears, head=linears, dtype=dtype, name=name, place=f"{q.inside}ignore")


_LINEAR = "Linear"


def _group_rules(q: Fields, of_all: dict[str, Stored]) -> Iterator[Rule]:
    """The rules for the modules that the groups name; the format for all Linear layers is put into `of_all`.

    A single group without names is for all Linear layers.
    """
    groups = q.part("config_groups", {})
    for name in groups.data:
        group = groups.part(name)
        targets = [item for _, item in _listed(group, "targets")]
        if not targets:
            if len(groups.data) > 1:
                return
            targets = [_LINEAR]
        stored = _group_format(group, group.part("weights"), str(group.raw("format") or q.raw("format") or ""))
        for target in targets:
            if target == _LINEAR:
                if of_all.setdefault(_LINEAR, stored) != stored:
                    group.refuse("targets", f"has a second format for all Linear layers. {_UNKNOWN}")
            elif target.isalnum() and target[0].isupper():
                group.refuse("targets", f"has the class {shown(target)!r}, which is not known. {_UNKNOWN}")
            else:
                yield Rule(_pattern(group, "targets", target), stored)


def _group_format(group: Fields, weights: Fields, form: str) -> Stored:
    if "24" in form or "sparse" in form:
        group.refuse("format", f"is {shown(form)!r}, whose sparsity is not counted. {_UNKNOWN}")
    if weights.raw("quant_algo") is not None:
        return _modelopt_format(weights)
    kind = weights.one_of("type", {"float": "float", "int": "int"})
    bits = weights.count("num_bits")
    size = weights.raw("group_size")
    strategies = {word: word for word in ("tensor", "channel", "group", "block", "tensor_group", "token")}
    strategy = weights.one_of("strategy", strategies, "group" if size else "tensor")
    if (kind, bits) == ("float", 4):
        is_mx = "mxfp4" in form or size == MXFP4_GROUP
        default = MXFP4_GROUP if is_mx else FP4_GROUP
        return Stored("mxfp4" if is_mx else "nvfp4", 4, weights.count("group_size", default), scale_bytes=1)
    dtype = {("float", 8): "fp8", ("int", 8): "int8", ("int", 4): "int4"}.get((kind, bits))
    if dtype is None:
        weights.refuse("num_bits", f"is {bits} with type {kind}, which is none of fp8, int8, int4, nvfp4, mxfp4.")
    scale_bytes = 1 if "uint8" in str(weights.raw("scale_dtype")) else 2
    zero_bits = 0 if weights.flag("symmetric", True) else bits
    by_order = weights.raw("actorder") in ("group", "dynamic", True)
    order_bytes = 4 if by_order else 0
    if strategy == "block":
        rows, columns = _block(weights, "block_structure")
        return Stored(dtype, bits, columns, rows, 4, zero_bits)
    if strategy in ("channel", "token"):
        return Stored(dtype, bits, 0, 1, scale_bytes, zero_bits)
    if strategy == "tensor":
        return Stored(dtype, bits)
    return Stored(dtype, bits, _group_of(weights, INT4_GROUP), 1, scale_bytes, zero_bits, order_bytes)


def _quark(q: Fields) -> Recipe:
    """AMD's Quark: one format for all matrices, others for single layers, and a list of excluded modules."""
    rules = _left_out(q, "exclude")
    if q.raw("layer_quant_config"):
        layers = q.part("layer_quant_config")
        rules += [Rule(wildcard(str(name)), _quark_format(layers.part(name))) for name in layers.data]
    if q.raw("layer_type_quant_config"):
        q.refuse("layer_type_quant_config", f"is not read. {_UNKNOWN}")
    linears = _quark_format(q.part("global_quant_config"))
    dtypes = {linears.dtype, *(rule.stored.dtype for rule in rules if rule.stored)}
    dtype = linears.dtype if len(dtypes) == 1 else ""
    return Recipe(
        rules, linears, head=linears, dtype=dtype, name=f"{dtype or 'mixed'} (quark)", place=f"{q.inside}exclude"
    )


def _quark_format(part: Fields) -> Stored:
    weight = part.part("weight")
    dtypes = {
        "fp8_e4m3": ("fp8", 8),
        "fp4": ("mxfp4", 4),
        "int8": ("int8", 8),
        "int4": ("int4", 4),
        "uint4": ("int4", 4),
    }
    dtype, bits = dtypes[weight.one_of("dtype", {name: name for name in dtypes})]
    kinds = {"per_tensor": None, "per_channel": 0, "per_group": -1}
    group = kinds[weight.one_of("qscheme", {name: name for name in kinds})]
    if group == -1:
        group = weight.count("group_size")
    scale_bytes = 1 if weight.raw("scale_format") == "e8m0" else 2
    return Stored(dtype, bits, group, scale_bytes=scale_bytes, zero_bits=0 if weight.flag("symmetric", True) else bits)


_METHODS: dict[str, Callable[[Fields], Recipe]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "mxfp4": _mxfp4,
    "awq": _awq,
    "exl3": _exl3,
    "gptq": _gptq,
    "auto-round": _auto_round,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed_tensors,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "modelopt_mixed": _modelopt,
    "quark": _quark,
}


def _kv_cache(q: Fields) -> str:
    """The KV cache precision that the checkpoint states; empty for none."""
    for key in ("kv_cache_quant_algo", "kv_cache_dtype"):
        if q.raw(key) not in (None, "auto"):
            return q.one_of(key, _KV)
    if q.raw("kv_cache_scheme") is None:
        return ""
    if isinstance(q.raw("kv_cache_scheme"), str):
        return q.one_of("kv_cache_scheme", _KV)
    scheme = q.part("kv_cache_scheme")
    kind, bits = scheme.text("type"), scheme.count("num_bits")
    dtype = {("float", 8): "fp8", ("int", 8): "int8", ("float", 4): "nvfp4"}.get((kind, bits), "")
    if not dtype:
        scheme.refuse("num_bits", f"is {bits} with type {kind}, which is no known KV cache precision.")
    return dtype
