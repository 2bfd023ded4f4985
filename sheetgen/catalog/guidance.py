"""Schemas of fingerprints.yaml (how deployments run out of memory, and the fixes) and assumptions.yaml."""

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from sheetgen.catalog.base import Date, Entry, Id, Label, Many, Problem, Some, Text, among, must
from sheetgen.catalog.engines import release_of
from sheetgen.catalog.load import Catalog
from sheetgen.errors import CatalogError, shown

Version = Annotated[str, Field(pattern=r"^[0-9]{1,4}(\.[0-9]{1,4}){0,3}$")]


class EngineFlag(Entry):
    """A flag, argument or variable of an engine, with its source.

    `since` and `until` are the first and the last release in which it works as the fixes say, where known;
    `instead` is the flag that replaced an older name; `default` is its default value.
    """

    flag: Annotated[str, Field(pattern=r"^-{0,2}[A-Za-z][\w-]{0,59}$")]
    since: Version | None = None
    until: Version | None = None
    instead: str | None = None
    default: Annotated[float, Field(ge=0)] | None = None
    source: Text

    def serves(self, version: str | None) -> bool:
        """True if a release has the flag. An unknown version counts as the newest release, but keeps flags that were
        dropped without a successor."""
        release = release_of((version or "").strip())
        if release is None:
            return self.instead is None
        since, until = (release_of(f"{version}.0") if version else None for version in (self.since, self.until))
        n_parts = self.until.count(".") + 1 if self.until else 0  # 0.12 includes every 0.12.x
        return (since is None or since <= release) and (until is None or release[:n_parts] <= until)


Direction = Literal["raise", "lower", "set", "unset", "free"]
Setting = Literal[
    "gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "kv_cache_dtype", "weight_dtype", "cuda_graphs",
    "tensor_parallel_size", "max_model_len",
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
# A log line as the engine prints it.
Line = Annotated[str, must(lambda text: text.strip() and len(text) <= 240, "is empty or longer than 240 characters")]
EngineFlags = dict[Id, Flag]


class Fix(Entry):
    """One change: the flag of each engine that has one, its direction, its reason, and its cost.

    `set` without a value turns a switch on. `setting` is the sheet's name of the setting, by which a value that is
    already in force is recognized; `values` has the values of engines that spell them differently. `engines` limits
    the fix to some engines, `case` to one form of the failure. A fix that is not on_page appears in
    `sheetgen diagnose` alone.
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
    """The source of a fingerprint: in words, and its address."""

    text: Label
    url: Text


class OwnWords(Entry):
    """One engine's own words, with its messages and flags, in place of those for all engines."""

    looks_like: Label | None = None
    symptom: Text | None = None
    leave_alone: Text | None = None


class CaseWords(Entry):
    """The words for one form of a failure, where those for all forms would mislead.

    looks_like: by engine, the log line that tells this form from the others; the page then has a row for it.
    """

    bill: Label
    symptom: Text
    looks_like: dict[Id, Label] = Field(default_factory=dict)


class Fingerprint(Entry):
    """One kind of failure: its stage, its log, the part of memory that ran out, and the fixes in order.

    Without looks_like only the engines' own entries have a log line.
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
        """The words for an engine: its own where it has some, else those for all engines."""
        own = self.own.get(engine, OwnWords())
        return OwnWords(**{name: getattr(own, name) or getattr(self, name) for name in OwnWords.model_fields})


class Form(Fingerprint):
    """One form of a failure as a row of its own."""

    case: Id


class FingerprintFile(Entry):
    file_name: ClassVar[str] = "fingerprints.yaml"
    checked_on: Date
    fingerprints: Some[Fingerprint]
    flags: dict[Id, Many[EngineFlag]] = Field(default_factory=dict)

    def problems(self) -> Iterator[Problem]:
        yield from self.twice("fingerprints", "label")


class Assumption(Entry):
    """One judgement: value, unit, reason and source. `flags` has the engines' names for it."""

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
    """The rows of the page's table: the fingerprints in order, each with the fixes of the page, and each preceded by
    its forms that have a row of their own."""
    rows: list[Fingerprint] = []
    for fingerprint in catalog.file(FingerprintFile).fingerprints:
        if fingerprint.on_page:
            forms = [_form(fingerprint, case) for case, words in fingerprint.cases.items() if words.looks_like]
            apart = {form.case for form in forms}
            fixes = tuple(fix for fix in fingerprint.fixes if fix.on_page and fix.case not in apart)
            rows += [*forms, fingerprint.model_copy(update={"fixes": fixes})]
    return tuple(rows)


def _form(fingerprint: Fingerprint, case: str) -> Form:
    """The form of a failure as a row, with its own words and only its own fixes."""
    words = fingerprint.cases[case]
    return Form(
        label=fingerprint.label,
        case=case,
        where=fingerprint.where,
        bill=words.bill,
        symptom=words.symptom,
        own={engine: OwnWords(looks_like=text) for engine, text in words.looks_like.items()},
        log_lines={},
        fixes=tuple(fix for fix in fingerprint.fixes if fix.on_page and fix.case == case),
        sources=fingerprint.sources,
    )


def assumptions(catalog: Catalog) -> dict[str, Assumption]:
    """Every judgement of assumptions.yaml, by its id."""
    return {assumption.id: assumption for assumption in catalog.file(AssumptionFile).assumptions}


def bare(flag: str) -> str:
    """A flag as the engine's Python spells it, such as max_model_len, which does not break at a line's end."""
    return flag.lstrip("-").replace("-", "_") if flag.startswith("--") else flag


def number(by_id: dict[str, Assumption], name: str) -> float:
    """The value of the numeric assumption `name`.

    Raises CatalogError where the catalogs lack it or it is no number.
    """
    assumption = by_id.get(name)
    if assumption is None or not isinstance(assumption.value, (int, float)):
        given = "is missing" if assumption is None else f"is {shown(assumption.value)!r}, which is not a number"
        raise CatalogError(f"catalogs/assumptions.yaml: {name} {given}. The sheet needs it.")
    return float(assumption.value)
