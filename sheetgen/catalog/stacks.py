"""The schemas of stacks.yaml (how engines are launched, which suits which KV pattern, what other tools call our inputs)
and of levers.yaml (what changes of a deployment are called and cost, host links, what engines lack).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field

from sheetgen.catalog.base import Count, Date, DtypeName, Entry, Id, Label, Many, Problem, Some, Text, among, must
from sheetgen.catalog.engines import Gib, Share
from sheetgen.catalog.hardware import Gpu
from sheetgen.errors import CatalogError, did_you_mean, shown

# What a rule may ask of a point, and name in its sentence; sheetgen/launch/flags.py works each out.
FACTS = (
    "vendor", "gpu", "architecture", "data_center", "gpu_memory_gib", "n_gpus", "tensor_parallel_size",
    "data_parallel_size", "context_tokens", "input_tokens", "concurrent_requests", "prefix_cache_hit_fraction",
    "prefix_tokens",
    "n_layers", "n_full_layers", "n_windowed_layers", "window_tokens", "context_beyond_window", "windows_freed",
    "n_mla_layers", "n_state_layers", "state_mib_per_sequence", "is_moe", "has_draft", "weight_dtype",
    "kv_cache_dtype", "kv_bytes_per_token", "engine_version",
)  # fmt: skip
TEXT_FACTS = ("vendor", "gpu", "architecture", "weight_dtype", "kv_cache_dtype", "engine_version")
Input = Literal[
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "expert_parallel_size",
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "kv_cache_dtype",
    "block_size",
    "kv_cache_memory_bytes",
    "enable_prefix_caching",
    "hybrid_kv_manager",
    "draft_model",
    "dtype",
    "input_tokens",
]
SWITCH = "--enable-"
_WORD = re.compile(r"[A-Za-z0-9_.-]{1,60}")


def _sentence(value: str) -> str:
    """Text whose braces hold names of facts and nothing else: no attribute, index or format."""
    try:
        parts = list(string.Formatter().parse(value))
    except ValueError as error:
        raise ValueError(f"has a brace that does not close ({error})") from None
    for _, name, spec, conversion in parts:
        if name is not None and (name not in FACTS or spec or conversion):
            raise ValueError(f"names {{{shown(name)}}}, which is not a fact.{did_you_mean(name, FACTS)}".rstrip("."))
    if len(value) > 600 or not value.strip() or "\n" in value:
        raise ValueError("must be one line of up to 600 characters")
    return value


Word = Annotated[str, must(_WORD.fullmatch, "is no flag or word of one: letters, digits, dot, dash and underscore")]
Fact = Annotated[str, among(FACTS, "is not a fact of a point")]
Sentence = Annotated[str, AfterValidator(_sentence)]
Milliseconds = Annotated[int, Field(gt=0, le=3_600_000)]
Bound = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]


class Condition(Entry):
    """What a fact must be: within bounds, or a text; all that is given has to hold."""

    fact: Fact
    at_least: Bound | None = None
    at_most: Bound | None = None
    is_not: Label | None = None
    is_one_of: Many[Label] = ()

    def holds(self, facts: dict[str, float | str]) -> bool:
        value = facts[self.fact]
        if isinstance(value, str):
            return value != self.is_not and (not self.is_one_of or value in self.is_one_of)
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


class Remark(Entry):
    """What a reader of the flags has to know where all of `when` holds, and the flags that the command needs there."""

    when: Many[Condition]
    flags: Many[Word] = ()
    says: Text
    source: Text


class Launcher(Entry):
    """One engine's flags and words.

    kv_cache_16_bits: its word for 16 bits outright, where `auto` follows the checkpoint.
    quantizes_while_loading: precisions that the engine makes of 16-bit weights, and how. most_share: the largest
    gpu_memory_utilization that is ever proposed. uncharged_gib: memory of each GPU, at TP 1 and beyond, that the engine
    takes and counts nowhere. host_kv: the flags that give host memory to the KV cache, with
    {gib} of a whole replica or {gb_of_gpu}. images: its container image by vendor of GPUs, with {version}.
    """

    engine: Id
    flags: dict[Input, Word]
    flags_source: Text
    kv_cache_dtypes: dict[DtypeName, Word]
    kv_cache_source: Text
    kv_cache_16_bits: Word | None = None
    weight_dtypes: dict[DtypeName, Many[Word]]
    quantizes_while_loading: dict[DtypeName, Many[Word]] = Field(default_factory=dict)
    weight_source: Text
    most_share: Share
    most_share_source: Text
    uncharged_gib: Gib = 0
    uncharged_gib_at_more_ranks: Gib = 0
    uncharged_source: Text | None = None
    host_kv: Text | None = None
    host_kv_source: Text | None = None
    images: dict[str, Text] = Field(default_factory=dict)
    images_source: Text | None = None
    remarks: Many[Remark] = ()

    @property
    def switches_experts_whole(self) -> bool:
        """Whether a flag without a number deals experts out whole: among ranks, or where a split would cut a scale."""
        return self.flags.get("expert_parallel_size", "").startswith(SWITCH)


class Run(Entry):
    """A benchmark run that a rule cites."""

    engine: Id
    model: Id
    gpu: Id
    n_gpus: Count
    tensor_parallel_size: Count
    weight_dtype: DtypeName
    kv_cache_dtype: DtypeName | None = None  # where it is stated
    input_tokens: Count
    output_tokens: Count
    concurrency: Count
    tokens_per_second: Count
    source: Text


class Rule(Entry):
    """A KV pattern or a kind of GPU, and the stacks that suit it; `first` is named first even where another has more
    room. runs: those whose rates the sentence names."""

    id: Id
    when: Many[Condition]
    suits: Some[Id]
    first: Id | None = None
    says: Sentence  # with facts of the point in braces
    reason: Text
    sources: Some[Text]
    runs: Many[Run] = ()


class Setting(Entry):
    """A setting of trtllm-build or NIM: the input of ours that it sets, or what becomes of it."""

    name: Word
    also: Many[Word] = ()
    engine: Id
    input: Input | None = None
    about: Label | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.also)


class StackFile(Entry):
    file_name: ClassVar[str] = "stacks.yaml"
    checked_on: Date
    launchers: Some[Launcher]
    speculative_tokens: Count
    speculative_tokens_reason: Text
    speculative_tokens_source: Text
    room_tie_fraction: Share
    room_tie_reason: Text
    room_tie_source: Text
    rules: Some[Rule]
    settings: Some[Setting]
    settings_source: Text

    def problems(self) -> Iterator[Problem]:
        engines = [one.engine for one in self.launchers]
        yield from self.twice("launchers", "engine")
        for i, rule in enumerate(self.rules):
            for engine in (*rule.suits, *((rule.first,) if rule.first else ())):
                if engine not in engines:
                    near = did_you_mean(engine, engines)
                    yield ("rules", i, "suits"), f"suits has {engine}, which is no launcher here{near.rstrip('?')}"
            for k, one in enumerate(rule.when):
                bounds, texts = (one.at_least, one.at_most) != (None, None), bool(one.is_not or one.is_one_of)
                if not (bounds or texts) or (bounds if one.fact in TEXT_FACTS else texts):
                    kind = "is_not or is_one_of" if one.fact in TEXT_FACTS else "at_least or at_most"
                    yield ("rules", i, "when", k, "fact"), f"{one.fact} needs {kind}, and nothing else"
        if self.rules[-1].when:
            yield ("rules", len(self.rules) - 1), "the last rule must hold for every point: when: []"
        seen: dict[str, int] = {}
        for i, setting in enumerate(self.settings):
            for name in setting.names:
                if seen.setdefault(name.lower(), i) != i:
                    yield ("settings", i, "name"), f"{name} is given twice. Keep one"
            if (setting.input is None) == (setting.about is None):
                yield ("settings", i, "name"), f"{setting.name} needs either an input or what it is about"

    def launcher(self, engine: str) -> Launcher:
        """The launcher of that engine. Raises CatalogError for one that has none."""
        known = [one.engine for one in self.launchers]
        if engine not in known:
            near = did_you_mean(engine, known)
            raise CatalogError(f"flags are kept for {', '.join(known)}, not for {shown(engine)!r}.{near}")
        return next(one for one in self.launchers if one.engine == engine)


Family = Literal["precision", "prefix", "context", "users", "speed", "hardware", "model", "offload"]
LeverId = Literal[
    "fp8-kv-cache",
    "fp8-weights",
    "fp8-both",
    "fp4-weights",
    "prefix-cache",
    "half-context",
    "shorter-context",
    "fewer-users",
    "users-for-less",
    "slower-tokens",
    "later-first-token",
    "slower-and-later",
    "more-of-memory",
    "bigger-gpus",
    "leaner-model",
    "host-memory",
]


TOKENS_A_SECOND = ("now", "then")  # what braces in a lever's cost may name


def _cost(value: str) -> str:
    """A label whose braces name the tokens a second that one user sees, without and with the change."""
    try:
        value.format_map(dict.fromkeys(TOKENS_A_SECOND, ""))
    except (ValueError, LookupError, AttributeError):
        raise ValueError("may name {now} and {then} in braces, and nothing else") from None
    return value


class LeverWords(Entry):
    """One kind of change: what it is called, and what it costs beside money: in short, and what else there is to know.
    A page shows one of each family."""

    id: LeverId
    family: Family
    words: Label
    cost: Annotated[Label, AfterValidator(_cost)]
    more: Text | None = None
    source: Text


class TriedTargets(Entry):
    """The targets of speed that are tried in place of tighter ones, in milliseconds, the tightest first."""

    tpot_ms: Some[Milliseconds]
    ttft_ms: Some[Milliseconds]
    reason: Text
    source: Text

    def problems(self) -> Iterator[Problem]:
        for name in ("tpot_ms", "ttft_ms"):
            tried = getattr(self, name)
            if list(tried) != sorted(set(tried)):
                yield (name,), f"{name} must grow from each to the next"


class HostLink(Entry):
    """A link between a host and one GPU, which GPUs name as theirs: bytes per second one way."""

    name: Label
    bytes_per_second: Count
    source: Text


class NotRun(Entry):
    """Precisions that an engine without a launcher does not run, whether requests share a prefix's cache there, and
    what it has instead."""

    engine: Id
    weight_dtypes: Many[DtypeName] = ()
    kv_cache_dtypes: Many[DtypeName] = ()
    shared_prefix: bool = True
    instead: Text
    source: Text


class LeverFile(Entry):
    file_name: ClassVar[str] = "levers.yaml"
    checked_on: Date
    levers: Some[LeverWords]
    tried_targets: TriedTargets
    host_links: Many[HostLink]
    nvme_bytes_per_second: Count
    nvme_source: Text
    not_run: Many[NotRun] = ()

    def problems(self) -> Iterator[Problem]:
        ids = [one.id for one in self.levers]
        yield from self.twice("levers", "id")
        missing = [one for one in get_args(LeverId) if one not in ids]
        if missing:
            yield ("levers",), f"levers lacks {', '.join(missing)}"
        yield from self.twice("host_links", "name")

    def link(self, gpu: Gpu) -> HostLink | None:
        """The host link of a GPU, or nothing where it is not known."""
        return next((link for link in self.host_links if link.name == gpu.host_link), None)
