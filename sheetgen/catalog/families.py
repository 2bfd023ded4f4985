"""The schema of families.yaml: model families by model_type, those that can be counted and those that cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Literal

from pydantic import Field

from sheetgen.catalog.base import Entry, Problem, RawRecord, Some, checked

Switch = bool | str  # fixed by the family, or the key of the config that decides
Row = RawRecord  # a raw row of a table; `like` names the row whose fields it takes over


class Moe(Entry):
    """The config keys of a family's experts, and the layers that have them."""

    n: str = "num_experts"
    top_k: str = "num_experts_per_tok"
    width: str = "moe_intermediate_size"
    layers: Literal["all", "first_k", "sparse_step", "period", "interleave", "range"] = "all"
    shared: str | None = None  # the key with the number of shared experts, each as wide as a routed one
    shared_width: str | None = None  # or the key with the width of the one shared expert
    shared_gate: bool = False
    shared_bias: Switch = False  # biases of the shared expert, and of the matrices around a latent
    latent: str = ""  # the key of the width of a latent for routed experts, with a matrix into it and one back
    router_bias: bool = False
    expert_bias: bool = False
    module: str = "mlp"  # the module's name in a layer
    correction: bool = False  # a parameter, not a buffer, corrects the router's scores


class Family(Entry):
    """One row of the table of families. The plain row is Llama."""

    attention: Literal["gqa", "mla"] = "gqa"
    layers: str = "full"  # the rule of layer_kinds for configs without layer_types
    qkv_bias: Switch = False
    o_bias: Switch = False
    q_gate: Literal["", "width", "head"] = ""  # the query is gated: as wide as it, or one number a head
    qk_norm: Literal["", "head", "width", "each"] = ""  # over a head, over all heads, one for each head
    qk_norm_if: Switch = True
    sinks: bool = False
    whole_heads: bool = False  # latents that some engines expand to keys and values of all heads
    norm: Literal["rms", "layer", "none"] = "rms"
    norm_bias: bool = True  # for layer norms
    norms: int = 2  # norms of a layer, beside those of queries and keys
    gated: bool = True
    mlp_bias: Switch = False
    dense_width: str = "intermediate_size"  # the key of the dense feed-forward width
    moe: Moe | None = None
    tied: bool = False  # where tie_word_embeddings is absent
    lm_head_bias: Switch = False
    positions: int | None = None  # learned positions: how many more than the maximum context
    rope: str = "one"  # the rule of rope_tables
    partial_rotary: float = 1.0  # where the config does not say
    kv_cache: str = ""  # the KV cache's precision where engines have a special one for the family
    linear: str = ""  # the recurrence of the linear layers
    builder: str = ""  # the function of `special` that counts the parts that this table cannot describe
    # How layers of multi-token prediction are joined to the model; copying: each with its own embedding and output
    # matrix.
    mtp: Literal["", "each", "copying", "joined", "blocks"] = ""
    rename: dict[str, str] = Field(default_factory=dict)
    defaults: RawRecord = Field(default_factory=dict)
    nested: RawRecord = Field(default_factory=dict)  # defaults of its class, which a text_config leaves out


class Refused(Entry):
    """Types of configs that are known and cannot be counted, and the reason."""

    types: Some[str]
    reason: str


class Wrapper(Entry):
    """Types of configs that wrap a language model: its key, and the tower beside it."""

    types: Some[str]
    key: str = "text_config"
    tower: str


class FamilyFile(Entry):
    file_name: ClassVar[str] = "families.yaml"
    mixtures: dict[str, Row]
    bases: dict[str, Row]
    families: Some[Row]
    refused: Some[Refused]
    wrappers: Some[Wrapper]

    def problems(self) -> Iterator[Problem]:
        for i, row in enumerate(self.families):
            _, problems = checked(self._fields(row), Family, ("families", i))
            yield from ((loc, problem.rstrip(".")) for loc, problem in problems)

    def _fields(self, row: Row) -> Row:
        """The fields of a row of the families, with those that it takes over from others."""
        fields = _whole(row, self.bases)
        if "moe" in fields:
            fields["moe"] = _whole(fields["moe"], self.mixtures)
        return {name: value for name, value in fields.items() if name != "types"}

    @cached_property
    def by_type(self) -> Mapping[str, Family]:
        """The families that can be counted, by model_type."""
        rows = ((row["types"], Family.model_validate(self._fields(row))) for row in self.families)
        return {model_type: family for types, family in rows for model_type in types}

    @cached_property
    def reasons(self) -> Mapping[str, str]:
        """The reason by model_type for families that are known and cannot be counted."""
        return {model_type: refused.reason for refused in self.refused for model_type in refused.types}

    @cached_property
    def wrapper_of(self) -> Mapping[str, Wrapper]:
        """The wrapper by model_type of configs that wrap a language model."""
        return {model_type: wrapper for wrapper in self.wrappers for model_type in wrapper.types}


def _whole(row: Row, others: Mapping[str, Row]) -> Row:
    """The row with the fields of the row that its `like` names, and of that one's own, filled in."""
    own = {name: value for name, value in row.items() if name != "like"}
    return {**_whole(others[row["like"]], others), **own} if "like" in row else own
