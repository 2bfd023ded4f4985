"""Schemas of stacks.yaml (launch flags, the engines that suit a KV pattern, other tools' names of our inputs) and of
levers.yaml (names and costs of changes to a deployment, host links, precisions that engines lack).
"""

import re
import string
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field

from sheetgen.catalog.base import Count, Date, DtypeName, Entry, Id, Label, Many, Problem, Some, Text, among, must
from sheetgen.catalog.engines import Gib, Share
from sheetgen.catalog.hardware import Gpu
from sheetgen.errors import CatalogError, did_you_mean, shown

# Facts about a point that a rule's conditions and sentence may use; sheetgen/launch/flags.py computes them.
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
    """A text in whose braces there are only names of facts: no attribute, index or format."""
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
    """A condition on one fact: bounds, or allowed and excluded texts; all that are given must hold."""

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
    """A remark on a launch command for points where all of `when` holds, and the extra flags needed there."""

    when: Many[Condition]
    flags: Many[Word] = ()
    says: Text
    source: Text


class Launcher(Entry):
    """One engine's launch flags and their values.

    kv_cache_16_bits: the value for a 16-bit KV cache, where `auto` follows the checkpoint. quantizes_while_loading:
    precisions that the engine makes of 16-bit weights, and the flags. most_share: the largest gpu_memory_utilization
    that is ever proposed. uncharged_gib: GiB per GPU, at TP 1 and at higher TP, that the engine uses but does not
    count. host_kv: the flags that give host memory to the KV cache, with {gib} for a whole replica or {gb_of_gpu}.
    images: its container image by vendor of GPUs, with {version}.
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
        """True if a flag without a number distributes whole experts: among ranks, or where TP would split a scale."""
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
    """A KV pattern or a kind of GPU, and the engines that suit it; `first` is listed first even where another has a
    larger KV cache. runs: the benchmark runs whose rates the sentence cites."""

    id: Id
    when: Many[Condition]
    suits: Some[Id]
    first: Id | None = None
    says: Sentence  # with facts of the point in braces
    reason: Text
    sources: Some[Text]
    runs: Many[Run] = ()


class Setting(Entry):
    """A setting of trtllm-build or NIM: the sheetgen input that it sets, or a remark about it."""

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
        engines = [launcher.engine for launcher in self.launchers]
        yield from self.twice("launchers", "engine")
        for i, rule in enumerate(self.rules):
            for engine in (*rule.suits, *((rule.first,) if rule.first else ())):
                if engine not in engines:
                    near = did_you_mean(engine, engines)
                    yield ("rules", i, "suits"), f"suits has {engine}, which is no launcher here{near.rstrip('?')}"
            for k, condition in enumerate(rule.when):
                bounds, texts = (
                    (condition.at_least, condition.at_most) != (None, None),
                    bool(condition.is_not or condition.is_one_of),
                )
                if not (bounds or texts) or (bounds if condition.fact in TEXT_FACTS else texts):
                    kind = "is_not or is_one_of" if condition.fact in TEXT_FACTS else "at_least or at_most"
                    yield ("rules", i, "when", k, "fact"), f"{condition.fact} needs {kind}, and nothing else"
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
        """The launcher of an engine. Raises CatalogError where it has none."""
        engines = [launcher.engine for launcher in self.launchers]
        if engine not in engines:
            near = did_you_mean(engine, engines)
            raise CatalogError(f"flags are kept for {', '.join(engines)}, not for {shown(engine)!r}.{near}")
        return next(launcher for launcher in self.launchers if launcher.engine == engine)


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


TOKENS_A_SECOND = ("now", "then")  # the names that braces in a lever's cost may have


def _cost(value: str) -> str:
    """A label in whose braces there are only TOKENS_A_SECOND: one user's tokens per second before and after."""
    try:
        value.format_map(dict.fromkeys(TOKENS_A_SECOND, ""))
    except (ValueError, LookupError, AttributeError):
        raise ValueError("may name {now} and {then} in braces, and nothing else") from None
    return value


class LeverWords(Entry):
    """One kind of change: its name, and its cost beside money, in short and (`more`) in detail. A page shows one of
    each family."""

    id: LeverId
    family: Family
    words: Label
    cost: Annotated[Label, AfterValidator(_cost)]
    more: Text | None = None
    source: Text


class TriedTargets(Entry):
    """The speed targets in milliseconds that are tried in place of tighter ones, the tightest first."""

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
    """A kind of link between a host and one GPU, in bytes per second one way; GPUs refer to it by name."""

    name: Label
    bytes_per_second: Count
    source: Text


class NotRun(Entry):
    """The features that an engine without a launcher lacks: precisions, and a shared prefix cache; and its
    substitute."""

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
        ids = [lever.id for lever in self.levers]
        yield from self.twice("levers", "id")
        missing = [lever_id for lever_id in get_args(LeverId) if lever_id not in ids]
        if missing:
            yield ("levers",), f"levers lacks {', '.join(missing)}"
        yield from self.twice("host_links", "name")

    def link(self, gpu: Gpu) -> HostLink | None:
        """The host link of a GPU; None where it is not known."""
        return next((link for link in self.host_links if link.name == gpu.host_link), None)
