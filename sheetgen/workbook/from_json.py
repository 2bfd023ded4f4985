"""The facts of the JSON that `build --format json` and `recommend --json` write."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sheetgen.errors import shown
from sheetgen.scenario.inputs import BY_NAME
from sheetgen.scenario.kinds import name_part
from sheetgen.workbook import sheet_facts as facts
from sheetgen.workbook.package import MB, WorkbookError

MOST_JSON_BYTES = 10 * MB
SCHEMA_VERSION = 1
MORE = ("tensor_parallel_size", "pipeline_parallel_size", "n_replicas", "n_gpus", "sized_by")
FACTS = {"weights_bytes": "weights, bytes", "weight_dtype": "weights' precision", "kv_cache_dtype": "KV precision"}
_NOT_SETTINGS = (
    "models", "workloads", "tiers", "headline", "left_out", "catalog_sha256", "money", "owning", "kv_allocation",
    "users", "options", "typed", "paper",
)  # fmt: skip
_Part = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


class _Workload(BaseModel):
    model_config = _Part
    id: str
    context_tokens: int
    output_tokens: int
    tpot_target_ms: float | None = None
    ttft_target_ms: float | None = None


class _Inputs(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, strict=True, allow_inf_nan=False)
    models: list[str] = Field(max_length=100)
    workloads: list[_Workload] = Field(max_length=100)
    tiers: list[int] = Field(max_length=100)
    headline: str
    catalog_sha256: str
    purchase: str
    discount_fraction: float = Field(facts.HELD_BEFORE["discount_fraction"], ge=0, lt=1)
    money: dict[str, float | str | None]
    owning: dict[str, float | dict[str, float]]


class _Candidate(BaseModel):
    model_config = _Part
    instance: str
    gpu: str
    gpu_count: int
    purchase: str
    hourly_usd: float
    price_as_of: str | None


class _Cell(BaseModel):
    model_config = _Part
    model: str
    workload: str
    tier: int
    verdict: str
    instance: str | None
    n_instances: int | None
    monthly_usd: float | None
    weights_bytes: int
    weight_dtype: str
    kv_cache_dtype: str
    tensor_parallel_size: int | None
    pipeline_parallel_size: int | None
    n_replicas: int | None
    n_gpus: int | None
    sized_by: str | None = None


class _Document(BaseModel):
    model_config = _Part
    as_of: str
    inputs: _Inputs
    candidates: list[_Candidate]
    cells: list[_Cell]


def facts_of_json(data: bytes, path: str, where: str) -> facts.SheetFacts:
    """What such a file says. Raises WorkbookError where it is none."""
    document = _read(data, where)
    inputs = document.inputs
    keys = {w.id: name_part(w.id) for w in inputs.workloads}
    models = {c.model: {fact: getattr(c, fact) for fact in FACTS} for c in document.cells}
    workload, _, tier = inputs.headline.rpartition(":")
    headline = None
    if workload in keys and tier.isdecimal() and int(tier) in inputs.tiers:
        headline = keys[workload], inputs.tiers.index(int(tier)) + 1
    return facts.SheetFacts(
        path, "JSON", "", inputs.catalog_sha256, _day(document.as_of), {m: m for m in inputs.models},
        {keys[w.id]: facts.WorkloadFacts(w.id, w.context_tokens, w.output_tokens) for w in inputs.workloads},
        tuple(inputs.tiers), headline, dict(_settings(document)), {"models": models}, {}, {"models": FACTS},
        {c.instance: facts.Offer(c.gpu, c.gpu_count, {c.purchase: facts.Price(_listed(c, inputs), _day(c.price_as_of))})
         for c in document.candidates},
        inputs.purchase, dict(_answers(document, keys)), {}, dict(_options(inputs)),
    )  # fmt: skip


def _read(data: bytes, where: str) -> _Document:
    if len(data) > MOST_JSON_BYTES:
        size = f"{len(data) / MB:,.0f} MB of JSON; {MOST_JSON_BYTES // MB} MB are the most"
        raise WorkbookError(f"{where}: has {size}. Give what `sheetgen build --format json` wrote.")
    try:
        found = json.loads(data, parse_constant=_refuse, parse_int=_whole, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise WorkbookError(f"{where}: is no JSON that can be read ({shown(error)}). Write it anew.") from error
    if not isinstance(found, dict) or not {"schema_version", "inputs", "cells"} <= found.keys():
        raise WorkbookError(f"{where}: is no JSON of a sheet. Give what `sheetgen build --format json` wrote.")
    version = found["schema_version"]
    if version != SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        what = "Update sheetgen." if newer else "Write it anew."
        this = f"this sheetgen reads {SCHEMA_VERSION}"
        raise WorkbookError(f"{where}: schema_version is {shown(version)!r}; {this}. {what}")
    try:
        return _Document.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        what = f"{shown('.'.join(map(str, first['loc'])))}: {shown(first['msg'])}"
        raise WorkbookError(f"{where}: {what}. Write it anew with `sheetgen build`.") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{shown(constant)} is no number")


def _finite(text: str) -> float:
    found = float(text)
    return found if math.isfinite(found) else _refuse(text)


def _whole(text: str) -> int | float:
    return int(text) if len(text) < 19 else _finite(text)


def _day(text: str | None) -> Any:
    from sheetgen.sheet.notes import day_of

    try:
        return day_of(text)
    except (ValueError, OverflowError):
        return None


def _listed(candidate: _Candidate, inputs: _Inputs) -> float:
    """The price before the discount: the file has what is paid. To 12 digits, as what was paid is rounded."""
    if inputs.discount_fraction == 0:
        return candidate.hourly_usd
    return float(f"{candidate.hourly_usd / (1 - inputs.discount_fraction):.12g}")


def _settings(document: _Document) -> Iterator[tuple[str, facts.Setting]]:
    """Every input under the name that it has in a workbook."""
    inputs = document.inputs
    extra = dict(inputs.model_extra or {}) | {"purchase": inputs.purchase}
    extra["discount_fraction"] = inputs.discount_fraction
    extra["kv_reserved"] = int(extra.get("kv_allocation") == "reserved")
    flat = {**{k: v for k, v in extra.items() if k not in _NOT_SETTINGS}, **inputs.money, **inputs.owning}
    for name, value in flat.items():
        if isinstance(value, bool):
            value = int(value)
        elif isinstance(value, (list, dict)):
            value = json.dumps(value, ensure_ascii=False)[1:-1].replace('"', "") or None
        if name == "fx_date":
            value = _day(str(value))
        yield name, _setting(name, value)
    yield "as_of", facts.Setting(_day(document.as_of), "as of", "date")
    for w in inputs.workloads:
        for figure in ("tpot", "ttft"):
            name = f"{figure}_ms_{name_part(w.id)}"
            yield name, _setting(name, getattr(w, f"{figure}_target_ms"))


def _setting(name: str, value: Any) -> facts.Setting:
    row = BY_NAME[name].row if name in BY_NAME else None
    percent = row is not None and row.display.percent
    shown_as = "text" if isinstance(value, str) else "percent" if percent else "number"
    return facts.Setting(value, name.replace("_", " "), shown_as, built_with=name in facts.BUILT_WITH)


def _answers(document: _Document, keys: Mapping[str, str]) -> Iterator[tuple[facts.LoadKey, facts.Answer]]:
    tiers = document.inputs.tiers
    for c in document.cells:
        if c.workload in keys and c.tier in tiers:
            load = (c.model, keys[c.workload], tiers.index(c.tier) + 1)
            more = {name: getattr(c, name) for name in MORE}
            yield load, facts.Answer(c.instance, c.n_instances, c.monthly_usd, c.verdict, more)


def _options(inputs: _Inputs) -> Iterator[tuple[str, Any]]:
    """The options of `build` that no setting of a workbook has."""
    extra = inputs.model_extra or {}
    for name in facts.BUILT_WITH:
        value = inputs.purchase if name == "purchase" else extra.get(name)
        if value:
            yield name, ",".join(map(str, value)) if isinstance(value, list) else value
    yield "models", ",".join(inputs.models)
