"""A sheet's facts, which two are compared by, out of a workbook or the JSON of `build --format json`."""

from __future__ import annotations

import datetime
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sheetgen.errors import SheetgenError, shown
from sheetgen.scenario.inputs import BY_NAME, INPUTS
from sheetgen.scenario.parse import name_part
from sheetgen.scenario.overrides import ENGINE
from sheetgen.units import ON_DEMAND, PURCHASES
from sheetgen.workbook.cells import is_number
from sheetgen.workbook.package import MB, WorkbookError, naming, read_file
from sheetgen.workbook.read import RESULTS, NamedCell, Snapshot, Table, read_workbook_bytes

LoadKey = tuple[str, str, int]  # model id, workload's key, number of the tier from 1
ASKED = "asked"  # the workload of `recommend`: a context of the user's own


@dataclass(frozen=True)
class Setting:
    """An input: its value, the words for it, and how it is shown (number, percent, text, date)."""

    value: Any
    label: str
    shown_as: str = "number"
    unit: str = ""
    built_with: bool = False  # an option of the build, None where its default held


@dataclass(frozen=True)
class WorkloadFacts:
    """A kind of request."""

    name: str
    context_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True)
class Price:
    """Dollars an hour of one purchase class, and the day they were read."""

    usd_per_hour: float
    date: datetime.date | None


@dataclass(frozen=True)
class Offer:
    """An instance as it can be rented."""

    gpu: str | None
    gpu_count: Any
    prices: Mapping[str, Price]


@dataclass(frozen=True)
class Answer:
    """What a load gets; no instance where nothing holds it, and then `verdict` says why."""

    instance: str | None
    n_instances: Any
    monthly_usd: float | None
    verdict: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SheetFacts:
    """One sheet. Workloads stand under their key (an id with underscores), tiers in order.

    tables: models, GPUs and precisions by row and column, as far as the file carries them; names and heads are the
    sheet's own words for rows and columns. options: those of `build`, for solving the sheet again.
    """

    path: str
    kind: str  # workbook or JSON
    version: str
    catalog_sha256: str
    as_of: datetime.date | None
    models: Mapping[str, str]  # of the loads: id and name
    workloads: Mapping[str, WorkloadFacts]
    tiers: tuple[Any, ...]
    headline: tuple[str, int] | None  # workload's key, number of the tier
    settings: Mapping[str, Setting]
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]]
    names: Mapping[str, Mapping[str, str]]
    heads: Mapping[str, Mapping[str, str]]
    offers: Mapping[str, Offer]
    purchase: str
    answers: Mapping[LoadKey, Answer]
    other_results: Mapping[str, Setting]
    options: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    is_calculated: bool = True

    @property
    def classes(self) -> set[str]:
        """The purchase classes that it has prices of."""
        return {purchase for offer in self.offers.values() for purchase in offer.prices}


# Options of `build` that stand in no cell of the workbook.
OF_MARKET = ("providers", "gpus", "instances", "region", "purchase")  # what may be rented, and in which class
OF_PRICES = (*OF_MARKET, "discount_fraction")  # with an input: what moves prices other than their lists
# Inputs that files of earlier versions do not have: what held then.
HELD_BEFORE: dict[str, float] = {one.name: one.default for one in INPUTS if one.added}
BUILT_WITH = ("engine", "engine_version", *OF_MARKET)
MORE_OF_ANSWER = {  # figures of an answer that JSON has and a workbook's names do not
    "tensor_parallel_size": "TP", "pipeline_parallel_size": "PP", "n_replicas": "replicas", "n_gpus": "GPUs",
    "sized_by": "sized by",
}  # fmt: skip
OF_LOAD = ("context", "output", "tier", "headline")  # inputs that make the load: the first part of their names


def same(a: Any, b: Any) -> bool:
    """Equal; numbers to 1e-9 of themselves."""
    if is_number(a) and is_number(b):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return bool(a == b)


def load_words(side: SheetFacts, workload: str, tier: int) -> str:
    """`RAG at 32`."""
    requests = side.tiers[tier - 1]
    return f"{side.workloads[workload].name} at {requests:,}" if requests is not None else f"tier {tier}, blank"


def model_name(model: str, *sides: SheetFacts) -> str:
    """The model's name, where a sheet has another one than its id."""
    return next((s.models[model] for s in sides if s.models.get(model, model) != model), model)


@dataclass(frozen=True)
class Pairing:
    """Which tier, workload and model of one sheet is which of the other, by name and number, never by place alone.

    Pairs (of A, of B); what stands alone is in neither.
    """

    tiers: tuple[tuple[int, int], ...]
    workloads: tuple[tuple[str, str], ...]
    models: tuple[str, ...]

    def loads(self) -> list[tuple[LoadKey, LoadKey]]:
        """Every load that both sheets have, in B's order."""
        pairs = [(w, t) for w in self.workloads for t in self.tiers]
        return [((m, wa, ta), (m, wb, tb)) for m in self.models for (wa, wb), (ta, tb) in pairs]

    def in_a(self, workload: str, tier: int) -> tuple[str, int] | None:
        """A's name for a workload and tier of B."""
        wa = next((a for a, b in self.workloads if b == workload), None)
        ta = next((a for a, b in self.tiers if b == tier), None)
        return (wa, ta) if wa is not None and ta is not None else None


def pair(a: SheetFacts, b: SheetFacts) -> Pairing:
    """Tiers of the same number of requests are the same; of the others, those of the same rank."""
    return Pairing(_tiers(a, b), _workloads(a, b), tuple(m for m in b.models if m in a.models))


def _tiers(a: SheetFacts, b: SheetFacts) -> tuple[tuple[int, int], ...]:
    left = {i: n for i, n in enumerate(b.tiers, 1)}
    found: list[tuple[int, int]] = []
    alone: list[int] = []
    for i, requests in enumerate(a.tiers, 1):
        at = next((k for k, n in left.items() if same(n, requests)), None)
        if at is None:
            alone.append(i)
        else:
            found.append((i, at))
            del left[at]
    found += [(i, i) for i in alone if i in left]
    return tuple(sorted(found, key=lambda one: one[1]))


def _workloads(a: SheetFacts, b: SheetFacts) -> tuple[tuple[str, str], ...]:
    """The same id; the one load of `recommend` is the other sheet's workload of the same context and answer."""
    found = [(key, key) for key in b.workloads if key in a.workloads]
    left_a = [k for k in a.workloads if k not in b.workloads]
    left_b = [k for k in b.workloads if k not in a.workloads]
    for wa in left_a:
        for wb in left_b:
            lengths = [(w.context_tokens, w.output_tokens) for w in (a.workloads[wa], b.workloads[wb])]
            if ASKED in (wa, wb) and lengths[0] == lengths[1]:
                found.append((wa, wb))
                left_b.remove(wb)
                break
    return tuple(found)


COMPARED_TABLES = ("models", "gpus", "precisions")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Results beside the loads, whose own row on the sheet says only part of what they are.
_RESULTS_ASIDE = {
    "whatif_hardware_monthly_usd": "$ per month on the hardware chosen",
    "whatif_hardware_gpus": "GPUs for all users on the hardware chosen",
    "whatif_monthly_usd": "$ per month of the cheapest hardware", "whatif_instance": "cheapest hardware",
    "whatif_n_instances": "how many of the cheapest hardware",
}  # fmt: skip
_TIMES = {"users": "users, times", "context": "context, times", "price": "prices, times"}
_OF_CASES = _TIMES | {"monthly_usd": "$ per month"}
_ASIDE = _RESULTS_ASIDE | {  # inputs are case_users_low, results case_low_monthly_usd
    name: f"{case} case, {label}"
    for case in ("low", "base", "high")
    for what, label in _OF_CASES.items()
    for name in (f"case_{what}_{case}", f"case_{case}_{what}")
}


def read_sheet(path: Path | str) -> SheetFacts:
    """What a workbook, or the JSON of one, says. Raises WorkbookError."""
    data = read_file(Path(path))
    if data[:1000].removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"["):
        return facts_of_json(data, str(path))
    return facts_of_workbook(read_workbook_bytes(data, str(path)))


def read_sheets(*paths: Path | str) -> list[SheetFacts]:
    """Several; what is wrong with any of them is reported in one go."""
    found: list[SheetFacts] = []
    problems: list[str] = []
    for path in paths:
        try:
            found.append(read_sheet(path))
        except SheetgenError as error:
            problems += error.problems
    if problems:
        raise WorkbookError(*dict.fromkeys(problems))
    return found


def facts_of_workbook(snapshot: Snapshot) -> SheetFacts:
    """What a workbook says, in the form in which sheets are compared."""
    inputs = snapshot.inputs
    keys = [n.removeprefix("context_") for n in inputs if n.startswith("context_") and n not in ENGINE]
    names = {key: snapshot.cells[f"in_context_{key}"].label for key in keys}
    workloads = {
        key: WorkloadFacts(name, inputs[f"context_{key}"], inputs.get(f"output_{key}")) for key, name in names.items()
    }
    numbers = itertools.takewhile(lambda n: f"tier_{n}" in inputs, itertools.count(1))
    tiers = tuple(inputs[f"tier_{n}"] for n in numbers)
    models = snapshot.tables["models"]
    answers = dict(_answers(snapshot, models, workloads, len(tiers)))
    in_loads = {load[0] for load in answers}
    used = {f"{_stem(load)}_{what}" for load in answers for what in RESULTS}
    results = {name: snapshot.cells[f"rec_{name}"] for name in snapshot.results}
    purchase = str(snapshot.options.get("purchase") or ON_DEMAND)
    return SheetFacts(
        snapshot.path, "workbook", snapshot.version, snapshot.catalog_sha256, inputs["as_of"],
        {m: models.names[m] for m in models if m in in_loads}, workloads, tiers,
        _headline(inputs, workloads, tiers), dict(_settings(snapshot)),
        {name: snapshot.tables[name] for name in COMPARED_TABLES},
        {name: snapshot.tables[name].names for name in COMPARED_TABLES},
        {name: snapshot.tables[name].heads for name in COMPARED_TABLES},
        {key: _offer(row, purchase) for key, row in snapshot.tables["instances"].items()}, purchase, answers,
        {n: _setting(c, _label(n, c, "")) for n, c in results.items() if n not in used},
        snapshot.options, snapshot.notes, snapshot.is_calculated,
    )  # fmt: skip


def _settings(snapshot: Snapshot) -> Iterator[tuple[str, Setting]]:
    """Inputs but those that make the load, and what the build was given beside them."""
    names = [n for n in snapshot.inputs if n in ENGINE or n.partition("_")[0] not in OF_LOAD or "band" in n]
    usual = snapshot.cells["in_kv_cache_dtype"].place.sheet
    cells = {name: snapshot.cells[f"in_{name}"] for name in names}
    labels = {name: _label(name, c, usual) for name, c in cells.items()}
    taken = Counter(labels.values())
    for name in names:
        label = labels[name] if taken[labels[name]] == 1 else f"{labels[name]} ({name.replace('_', ' ')})"
        yield name, _setting(snapshot.cells[f"in_{name}"], label)
    for name, value in HELD_BEFORE.items():
        if name not in names:
            yield name, Setting(value, name.replace("_", " "), "percent")
    for name in BUILT_WITH:
        yield name, Setting(snapshot.options.get(name), f"{name.replace('_', ' ')} (as built)", "text", "", True)


def _label(name: str, cell: NamedCell, usual: str) -> str:
    """The words before a cell, and its sheet where that is not the one of inputs."""
    sheet, label = cell.place.sheet, cell.label
    if name in _ASIDE:
        return f"{sheet.removesuffix(' loads')}, {_ASIDE[name]}"
    return label if sheet == usual or not label or label.startswith(f"{sheet}, ") else f"{sheet}, {label}"


def _setting(cell: NamedCell, label: str) -> Setting:
    shown_as = "percent" if "%" in cell.number_format else "number"
    if isinstance(cell.value, datetime.date):
        shown_as = "date"
    return Setting(cell.value, label, "text" if isinstance(cell.value, str) else shown_as, cell.unit)


def _headline(
    inputs: Mapping[str, Any], workloads: Mapping[str, WorkloadFacts], tiers: tuple[Any, ...]
) -> tuple[str, int] | None:
    """The load of the two dropdowns; none where they name no load of the sheet (any more)."""
    workload = next((key for key, w in workloads.items() if w.name == inputs["headline_workload"]), None)
    tier = inputs["headline_tier"]
    return (workload, tiers.index(tier) + 1) if workload and tier in tiers else None


def _offer(row: Mapping[str, Any], purchase: str) -> Offer:
    columns = {p: (f"price_{name_part(p)}", f"date_{name_part(p)}") for p in PURCHASES}
    columns[purchase] = ("price_usd_per_hour", "price_date")
    prices = {p: Price(row[usd], row.get(date)) for p, (usd, date) in columns.items() if row.get(usd) is not None}
    return Offer(row.get("instance_gpu"), row.get("gpu_count"), prices)


def _stem(load: LoadKey) -> str:
    return f"{name_part(load[0])}_{load[1]}_{load[2]}"


def _answers(
    snapshot: Snapshot, models: Table, workloads: Mapping[str, WorkloadFacts], n_tiers: int
) -> Iterator[tuple[LoadKey, Answer]]:
    """Each load that the workbook has a result for."""
    for load in ((m, w, t) for m in models for w in workloads for t in range(1, n_tiers + 1)):
        stem = _stem(load)
        if f"{stem}_instance" in snapshot.results:
            instance, count, usd = (snapshot.results.get(f"{stem}_{what}") for what in RESULTS)
            if isinstance(usd, (int, float)):
                yield load, Answer(str(instance), count, usd)
            else:
                yield load, Answer(None, None, None, str(instance))


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
    discount_fraction: float = Field(HELD_BEFORE["discount_fraction"], ge=0, lt=1)
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


def facts_of_json(data: bytes, path: str) -> SheetFacts:
    """What such a file says. Raises WorkbookError where it is none."""
    with naming(path):
        document = _read(data)
    inputs = document.inputs
    keys = {w.id: name_part(w.id) for w in inputs.workloads}
    models = {c.model: {fact: getattr(c, fact) for fact in FACTS} for c in document.cells}
    workload, _, tier = inputs.headline.rpartition(":")
    headline = None
    if workload in keys and tier.isdecimal() and int(tier) in inputs.tiers:
        headline = keys[workload], inputs.tiers.index(int(tier)) + 1
    return SheetFacts(
        path, "JSON", "", inputs.catalog_sha256, _day(document.as_of), {m: m for m in inputs.models},
        {keys[w.id]: WorkloadFacts(w.id, w.context_tokens, w.output_tokens) for w in inputs.workloads},
        tuple(inputs.tiers), headline, dict(_json_settings(document)), {"models": models}, {}, {"models": FACTS},
        {c.instance: Offer(c.gpu, c.gpu_count, {c.purchase: Price(_listed(c, inputs), _day(c.price_as_of))})
         for c in document.candidates},
        inputs.purchase, dict(_json_answers(document, keys)), {}, dict(_options(inputs)),
    )  # fmt: skip


def _read(data: bytes) -> _Document:
    if len(data) > MOST_JSON_BYTES:
        size = f"{len(data) / MB:,.0f} MB of JSON; {MOST_JSON_BYTES // MB} MB are the most"
        raise WorkbookError(f"has {size}. Give what `sheetgen build --format json` wrote.")
    try:
        found = json.loads(data, parse_constant=_refuse, parse_int=_whole, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise WorkbookError(f"is no JSON that can be read ({shown(error)}). Write it anew.") from error
    if not isinstance(found, dict) or not {"schema_version", "inputs", "cells"} <= found.keys():
        raise WorkbookError("is no JSON of a sheet. Give what `sheetgen build --format json` wrote.")
    version = found["schema_version"]
    if version != SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        what = f"schema_version is {shown(version)!r}; this sheetgen reads {SCHEMA_VERSION}"
        raise WorkbookError(f"{what}. {'Update sheetgen.' if newer else 'Write it anew.'}")
    try:
        return _Document.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        what = f"{shown('.'.join(map(str, first['loc'])))}: {shown(first['msg'])}"
        raise WorkbookError(f"{what}. Write it anew with `sheetgen build`.") from error


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


def _json_settings(document: _Document) -> Iterator[tuple[str, Setting]]:
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
        yield name, _json_setting(name, value)
    yield "as_of", Setting(_day(document.as_of), "as of", "date")
    for w in inputs.workloads:
        for figure in ("tpot", "ttft"):
            name = f"{figure}_ms_{name_part(w.id)}"
            yield name, _json_setting(name, getattr(w, f"{figure}_target_ms"))


def _json_setting(name: str, value: Any) -> Setting:
    row = BY_NAME[name].row if name in BY_NAME else None
    percent = row is not None and row.display.percent
    shown_as = "text" if isinstance(value, str) else "percent" if percent else "number"
    return Setting(value, name.replace("_", " "), shown_as, built_with=name in BUILT_WITH)


def _json_answers(document: _Document, keys: Mapping[str, str]) -> Iterator[tuple[LoadKey, Answer]]:
    tiers = document.inputs.tiers
    for c in document.cells:
        if c.workload in keys and c.tier in tiers:
            load = (c.model, keys[c.workload], tiers.index(c.tier) + 1)
            more = {name: getattr(c, name) for name in MORE}
            yield load, Answer(c.instance, c.n_instances, c.monthly_usd, c.verdict, more)


def _options(inputs: _Inputs) -> Iterator[tuple[str, Any]]:
    """The options of `build` that no setting of a workbook has."""
    extra = inputs.model_extra or {}
    for name in BUILT_WITH:
        value = inputs.purchase if name == "purchase" else extra.get(name)
        if value:
            yield name, ",".join(map(str, value)) if isinstance(value, list) else value
    yield "models", ",".join(inputs.models)
