"""Rotary positions: the longest context, and the tables of cosines and sines that vLLM keeps on every GPU.

Each distinct rotary embedding has one table, positions x rotated width, for all positions of the config, whatever
max_model_len is. Source: vLLM model_executor/layers/rotary_embedding (one class for each type).
"""

from __future__ import annotations

from sheetgen.catalog.families import Family
from sheetgen.importer.config_reader import Fields
from sheetgen.importer.layers import heads_of
from sheetgen.importer.special import ratios_of

# rope_type -> the number of positions in its table
_TYPES = {
    "default": "max", "mrope": "max", "llama3": "max", "proportional": "max", "ntk": "max", "linear": "times_factor",
    "dynamic": "dynamic", "yarn": "original_times_factor", "deepseek_yarn": "original_times_factor", "longrope": "both",
    "su": "both",
}  # fmt: skip
MROPE_POSITIONS = 4  # a clip's time steps count as positions: vLLM makes the table four times as long
_BY_TYPE = ("full_attention", "sliding_attention")


def max_context(f: Fields) -> int:
    """The maximum context in tokens: that of the config, or YaRN's scaled length if longer."""
    longest = f.count(f.first("max_position_embeddings", "model_max_length", "seq_length", "max_seq_len"))
    if f.has("model_max_length"):  # Command R is served beyond its max_position_embeddings
        longest = max(longest, f.count("model_max_length"))
    for part in _parts(f):
        if part and _kind(part) == "original_times_factor":
            longest = max(longest, _positions(f, part, longest))
    return longest


def rope_tables(f: Fields, family: Family, kinds: set[str]) -> int:
    """The number of elements of all rotary tables of the model."""
    if family.rope == "none":
        return 0
    if family.rope == "granite_hybrid":
        rotates = f.text("position_embedding_type", "nope") == "rope"
    elif family.rope == "baichuan":
        rotates = f.count("hidden_size") == 4096  # the 7B rotates, the 13B has ALiBi: vLLM tells them apart so
    else:
        rotates = not f.flag("alibi", False)
    if not rotates:
        return 0
    longest = f.count(f.first("max_position_embeddings", "model_max_length", "seq_length"))
    scaling = _parts(f)[0]
    if family.rope in ("deepseek_v4", "mla"):
        table = _positions(f, scaling, longest) * f.count("qk_rope_head_dim")
        # Layers with and without compressed entries rotate by other bases; an indexer rotates in the other style.
        has_two = 0 in ratios_of(f) if family.rope == "deepseek_v4" else f.has("index_head_dim")
        return 2 * table if has_two else table
    width = heads_of(f).key
    if family.rope in ("gemma3", "gemma4", "olmo3", "by_type"):
        return _two_tables(f, family, kinds, longest, width)
    if family.rope == "mimo_v2":
        local = f.count("swa_head_dim", width)
        return longest * (_rotated(f, family, scaling, width) + _rotated(f, family, scaling, local))
    table = _positions(f, scaling, longest) * _rotated(f, family, scaling, width)
    is_mrope = family.rope == "mrope" or (scaling is not None and scaling.has("mrope_section"))
    return table * MROPE_POSITIONS if is_mrope else table


def _two_tables(f: Fields, family: Family, kinds: set[str], longest: int, width: int) -> int:
    """The elements of two tables: windowed layers have a base of their own, or no scaling."""
    full, local = _parts(f)
    local_table = longest * _rotated(f, family, local, width)
    if family.rope == "gemma4":
        return local_table + longest * f.count("global_head_dim", 512)
    if family.rope == "olmo3" and (full is None or _kind(full) == "max"):
        return local_table
    full_table = _positions(f, full, longest) * _rotated(f, family, full, width)
    return (local_table if "windowed" in kinds else 0) + (full_table if "full" in kinds else 0)


def _rotated(f: Fields, family: Family, scaling: Fields | None, width: int) -> int:
    """The rotated part of a head's width."""
    if f.has(key := f.first("rotary_dim", "attn_rotary_emb")):
        return f.count(key)
    share = f.number(f.first("partial_rotary_factor", "rotary_pct", "rope_pct"), family.partial_rotary, most=1)
    if scaling is not None:
        share = scaling.number("partial_rotary_factor", share, most=1)
    return int(width * share)


def _parts(f: Fields) -> tuple[Fields | None, Fields | None]:
    """The scaling of full and of windowed layers; one for both is first, with None."""
    key = f.first("rope_parameters", "rope_scaling")
    if not f.raw(key):
        return None, None
    whole = f.part(key)
    full, local = (whole.part(name) if whole.has(name) else None for name in _BY_TYPE)
    return (full, local) if full or local else (whole, None)


def _kind(scaling: Fields) -> str:
    return scaling.one_of(scaling.first("rope_type", "type"), _TYPES, "default")


def _positions(f: Fields, scaling: Fields | None, longest: int) -> int:
    if scaling is None:
        return longest
    kind = _kind(scaling)
    if kind == "times_factor" or (kind == "dynamic" and not scaling.has("alpha")):
        return int(longest * scaling.number("factor", least=0.001, most=10_000))
    if kind in ("original_times_factor", "both"):
        key = "original_max_position_embeddings"
        original = scaling.count(key, f.raw(key) or longest)
        if kind == "both":
            return original + longest
        return int(original * scaling.number("factor", least=0.001, most=10_000))
    return longest
