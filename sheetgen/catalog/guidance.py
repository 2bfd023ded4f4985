"""The schema of what the sheet advises and assumes: fingerprints.yaml and assumptions.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from sheetgen.catalog.base import Date, Entry, Id, Label, Many, Problem, Some, Text, among, must
from sheetgen.catalog.engines import release_of
from sheetgen.catalog.load import Catalog
from sheetgen.errors import CatalogError, shown

Version = Annotated[str, Field(pattern=r"^\d{1,4}(\.\d{1,4}){0,3}$")]


class EngineFlag(Entry):
    """A flag, argument or variable that an engine has, and where that was read.

    `since` and `until` are the first and the last release in which it does what the fixes say, where that is known;
    an older name has the one that took its place in `instead`; `default` is its value where nobody sets it.
    """

    flag: Annotated[str, Field(pattern=r"^-{0,2}[A-Za-z][\w-]{0,59}$")]
    since: Version | None = None
    until: Version | None = None
    instead: str | None = None
    default: Annotated[float, Field(ge=0)] | None = None
    source: Text

    def serves(self, version: str | None) -> bool:
        """Whether a release has it. An unknown one counts as the newest, with flags dropped without a successor."""
        release = release_of((version or "").strip())
        if release is None:
            return self.instead is None
        since, until = (release_of(f"{one}.0") if one else None for one in (self.since, self.until))
        parts = self.until.count(".") + 1 if self.until else 0  # 0.12 has all of 0.12.x
        return (since is None or since <= release) and (until is None or release[:parts] <= until)


Direction = Literal["raise", "lower", "set", "unset", "free"]
Setting = Literal[
    "gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "kv_cache_dtype", "weight_dtype", "cuda_graphs",
    "tensor_parallel_size",
]  # fmt: skip
LABELS = (
    "startup_weights_do_not_fit", "startup_kv_pool_too_small", "startup_workspace_or_cuda_graph", "prefill_long_prompt",
    "concurrency_spike", "long_completion", "sampler_logits_peak", "multimodal_encoder_profile", "lora_draft_model",
    "fragmentation", "host_ram_oom", "gpu_shared_by_other_process", "not_an_oom", "healthy",
)  # fmt: skip
Flag = Annotated[
    str,
    must(
        lambda text: re.sub("[_=-]", "", text).isalnum() and len(text) <= 60,
        "is no flag: write it as the engine's command line has it, such as --max-model-len",
    ),
]
# A line of a log, as it is printed.
Line = Annotated[str, must(lambda text: text.strip() and len(text) <= 240, "is empty or longer than 240 characters")]
EngineFlags = dict[Id, Flag]


class Fix(Entry):
    """One change: the flag of each engine that has one, which way to turn it, why, and what it costs.

    `set` without a value is a switch that is turned on. `setting` is what it turns in the words of the sheet, by
    which a value is known to be met already; `values` are those of engines that name them otherwise. `engines` are
    those that it is for, where it is not for all; `case` is the form of the death that it is for, where there are
    several. One that is not on_page is said by `sheetgen diagnose` alone.
    """

    what: Label
    flags: EngineFlags = Field(default_factory=dict)
    setting: Setting | None = None
    engines: Many[Id] = ()
    direction: Direction
    value: Label | None = None
    values: dict[Id, Label] = Field(default_factory=dict)
    reason: Text
    cost: Text
    case: Id | None = None
    on_page: bool = True


class Source(Entry):
    text: Label
    url: Text


class OwnWords(Entry):
    """What one engine has better words for than those said of all: its own message, its own flags."""

    looks_like: Label | None = None
    symptom: Text | None = None
    leave_alone: Text | None = None


class CaseWords(Entry):
    """What is said of one form of a death where the words for all would mislead. looks_like: by engine, where its log
    tells that form from the others; the page then has a row for it."""

    bill: Label
    symptom: Text
    looks_like: dict[Id, Label] = Field(default_factory=dict)


class Fingerprint(Entry):
    """Where a deployment dies, how its log looks, which part of memory ran out, and the fixes in their order.

    Without looks_like the log is known only by an engine's own message.
    """

    label: Annotated[str, among(LABELS, f"is not one of {', '.join(LABELS)}")]
    where: Label
    bill: Label
    looks_like: Label | None = None
    symptom: Text
    own: dict[Id, OwnWords] = Field(default_factory=dict)
    cases: dict[Id, CaseWords] = Field(default_factory=dict)
    log_lines: dict[Id, Many[Line]]
    fixes: Some[Fix]
    leave_alone: Text | None = None
    sources: Some[Source]
    on_page: bool = True

    def words(self, engine: str) -> OwnWords:
        """What is said of it for an engine: its own words where it has some, else those for all."""
        own = self.own.get(engine, OwnWords())
        return OwnWords(**{name: getattr(own, name) or getattr(self, name) for name in OwnWords.model_fields})


class Form(Fingerprint):
    """One form of a death as a row of its own."""

    case: Id


class FingerprintFile(Entry):
    file_name: ClassVar[str] = "fingerprints.yaml"
    checked_on: Date
    fingerprints: Some[Fingerprint]
    flags: dict[Id, Many[EngineFlag]] = Field(default_factory=dict)

    def problems(self) -> Iterator[Problem]:
        yield from self.twice("fingerprints", "label")


class Assumption(Entry):
    """One judgement: its value, its unit, why, and where it is from. `flags` are what the engines call it."""

    id: Id
    value: float | int | Label | Many[int]
    unit: Label
    reason: Text
    source: Text
    flags: EngineFlags = Field(default_factory=dict)


class AssumptionFile(Entry):
    file_name: ClassVar[str] = "assumptions.yaml"
    checked_on: Date
    assumptions: Some[Assumption]

    def problems(self) -> Iterator[Problem]:
        yield from self.twice("assumptions", "id")


def fingerprints(catalog: Catalog) -> tuple[Fingerprint, ...]:
    """The fingerprints of the page, in its order, each with the fixes that the page says; before it those of its forms
    that have a row of their own."""
    rows: list[Fingerprint] = []
    for one in catalog.file(FingerprintFile).fingerprints:
        if one.on_page:
            forms = [_form(one, case) for case, words in one.cases.items() if words.looks_like]
            apart = {form.case for form in forms}
            fixes = tuple(fix for fix in one.fixes if fix.on_page and fix.case not in apart)
            rows += [*forms, one.model_copy(update={"fixes": fixes})]
    return tuple(rows)


def _form(one: Fingerprint, case: str) -> Form:
    words = one.cases[case]
    return Form(
        label=one.label,
        case=case,
        where=one.where,
        bill=words.bill,
        symptom=words.symptom,
        own={engine: OwnWords(looks_like=text) for engine, text in words.looks_like.items()},
        log_lines={},
        fixes=tuple(fix for fix in one.fixes if fix.on_page and fix.case == case),
        sources=one.sources,
    )


def assumptions(catalog: Catalog) -> dict[str, Assumption]:
    return {one.id: one for one in catalog.file(AssumptionFile).assumptions}


def bare(flag: str) -> str:
    """A flag as the engine's Python has it, which does not break at a line's end: max_model_len."""
    return flag.lstrip("-").replace("-", "_") if flag.startswith("--") else flag


def number(known: dict[str, Assumption], name: str) -> float:
    """The value of an assumption that is a number.

    Raises CatalogError where the catalogs lack it, or it is no number.
    """
    one = known.get(name)
    if one is None or not isinstance(one.value, (int, float)):
        given = "is missing" if one is None else f"is {shown(one.value)!r}, which is not a number"
        raise CatalogError(f"catalogs/assumptions.yaml: {name} {given}. The sheet needs it.")
    return float(one.value)
