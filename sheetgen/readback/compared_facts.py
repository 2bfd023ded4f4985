"""A sheet's facts, which two are compared by, out of a workbook or the JSON of `build --format json`."""

from __future__ import annotations

import datetime
import itertools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sheetgen.errors import Problems, shown
from sheetgen.question.discounts import CELL, Discounts, cell_name, in_force, key_of
from sheetgen.question.inputs import BY_NAME, INPUTS
from sheetgen.question.overrides import ENGINE
from sheetgen.question.parse import name_part
from sheetgen.question.sheet_question import ASKED
from sheetgen.question.stated_load import RATE
from sheetgen.readback.file_cells import is_number
from sheetgen.readback.package import MB, WorkbookError, naming, read_file
from sheetgen.readback.read_book import RESULTS, NamedCell, Snapshot, Table, read_workbook_bytes
from sheetgen.report.notes import day_of
from sheetgen.units import ON_DEMAND, PURCHASES

LoadKey = tuple[str, str, int]  # model id, workload's key, number of the tier from 1
# Options of `build` that stand in no cell of the workbook: what may be rented, and in which class.
OF_MARKET = ("providers", "vendors", "gpus", "instances", "region", "purchase")
OF_PRICES = (*OF_MARKET, "discount_fraction")  # with an input: what moves prices other than their lists
OF_SERVING = ("engine", "engine_version", "draft_model")  # and what serves
BUILT_WITH = (*OF_SERVING, *OF_MARKET)
# Inputs that files of earlier versions do not have: what held then.
HELD_BEFORE: dict[str, float] = {one.name: one.default for one in INPUTS if one.added}
MORE_OF_ANSWER = {  # figures of an answer that JSON has and a workbook's names do not
    "tensor_parallel_size": "TP", "pipeline_parallel_size": "PP", "n_replicas": "replicas", "n_gpus": "GPUs",
    "sized_by": "size set by",
}  # fmt: skip
OF_MODELS = {"weights_bytes": "weights, bytes", "weight_dtype": "weights' precision", "kv_cache_dtype": "KV precision"}
# Results beside the loads, whose own row on the sheet says only part of what they are.
_LABELS = {
    "whatif_hardware_monthly_usd": "$ per month on the hardware chosen",
    "whatif_hardware_gpus": "GPUs for all requests on the hardware chosen",
    "whatif_monthly_usd": "$ per month of the cheapest hardware", "whatif_instance": "cheapest hardware",
    "whatif_n_instances": "how many of the cheapest hardware",
}  # fmt: skip
_OF_CASES = {**{what: f"{what} multiplier" for what in ("users", "context", "price")}, "monthly_usd": "$ per month"}
_LABELS |= {  # inputs are case_users_low, results case_low_monthly_usd
    name: f"{case} case, {label}"
    for case in ("low", "base", "high")
    for what, label in _OF_CASES.items()
    for name in (f"case_{what}_{case}", f"case_{case}_{what}")
}
MOST_JSON_BYTES = 10 * MB
SCHEMA_VERSION = 1
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def moves_prices(name: str) -> bool:
    """Whether an input moves prices other than their lists."""
    return name in OF_PRICES or name.startswith(CELL)


@dataclass(frozen=True)
class Setting:
    """An input: its value, the words for it, and how it is shown (number, percent, text, date)."""

    value: Any
    label: str
    shown_as: str = "number"
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

    tables: models, GPUs and precisions, as far as the file carries them. options: those of `build`, for solving the
    sheet again.
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
    tables: Mapping[str, Table]
    offers: Mapping[str, Offer]
    purchase: str
    answers: Mapping[LoadKey, Answer]
    options: Mapping[str, Any]
    other_results: Mapping[str, Setting] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    is_calculated: bool = True

    def is_cheapest(self, key: str) -> bool:
        """Whether no other instance of its provider with the same GPUs is cheaper in the class in use."""
        one = self.offers[key]
        shape, paid = (key.partition("/")[0], one.gpu, one.gpu_count), one.prices.get(self.purchase)
        same_shape = (o for k, o in self.offers.items() if (k.partition("/")[0], o.gpu, o.gpu_count) == shape)
        usd = [o.prices[self.purchase].usd_per_hour for o in same_shape if self.purchase in o.prices]
        return paid is not None and paid.usd_per_hour == min(usd)

    @property
    def classes(self) -> set[str]:
        return {purchase for offer in self.offers.values() for purchase in offer.prices}


def same(a: Any, b: Any) -> bool:
    """Equal; numbers to 1e-9 of themselves."""
    if is_number(a) and is_number(b):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return bool(a == b)


def load_words(side: SheetFacts, workload: str, tier: int) -> str:
    """`RAG at 32`."""
    requests = side.tiers[tier - 1]
    return (
        f"{side.workloads[workload].name} at {tier_words(requests)}" if requests is not None else f"tier {tier}, blank"
    )


def tier_words(requests: Any) -> str:
    """A tier's requests at once; or that it is a rate."""
    return f"a {RATE}" if requests == RATE else f"{requests:,}"


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
    left_b = [k for k in b.workloads if k not in a.workloads]
    for wa in (k for k in a.workloads if k not in b.workloads):
        for wb in left_b:
            lengths = [(w.context_tokens, w.output_tokens) for w in (a.workloads[wa], b.workloads[wb])]
            if ASKED in (wa, wb) and lengths[0] == lengths[1]:
                found.append((wa, wb))
                left_b.remove(wb)
                break
    return tuple(found)


def read_sheet(path: Path | str) -> SheetFacts:
    """What a workbook, or the JSON of one, says: which it is, is seen by its first bytes. Raises WorkbookError."""
    data = read_file(Path(path))
    if data[:1000].removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"["):
        with naming(path):
            return facts_of_json(data, str(path))
    return facts_of_workbook(read_workbook_bytes(data, str(path)))


def read_sheets(*paths: Path | str) -> list[SheetFacts]:
    """Several; what is wrong with any of them is reported in one go."""
    problems = Problems()
    found = [problems.attempt(read_sheet, path) for path in paths]
    if problems:
        raise WorkbookError(*dict.fromkeys(problems))
    return found


def facts_of_workbook(snapshot: Snapshot) -> SheetFacts:
    """What a workbook says, in the form in which sheets are compared."""
    inputs, results, models = snapshot.inputs, snapshot.results, snapshot.tables["models"]
    keys = [n.removeprefix("context_") for n in inputs if n.startswith("context_") and n not in ENGINE]
    workloads = {
        key: WorkloadFacts(
            snapshot.cells[f"in_context_{key}"].label, inputs[f"context_{key}"], inputs.get(f"output_{key}")
        )
        for key in keys
    }
    tier_names = list(itertools.takewhile(inputs.__contains__, map("tier_{}".format, itertools.count(1))))
    tiers = tuple(inputs[name] for name in tier_names)
    typed = inputs["headline_tier"]
    if typed not in tiers and is_number(typed) and typed >= 1 and any("_headline_" in name for name in results):
        tiers = (*tiers, typed)  # a load of its own
    in_dropdown = [key for key, w in workloads.items() if w.name == inputs["headline_workload"]]
    is_load = in_dropdown and inputs["headline_tier"] in tiers
    of_load = {
        "headline_workload",
        "headline_tier",
        *tier_names,
        *(f"{what}_{key}" for what in ("context", "output") for key in keys),
    }
    stems = {(m, w, t): f"{name_part(m)}_{w}_{t}" for m in models for w in workloads for t, _ in enumerate(tiers, 1)}
    if len(tiers) > len(tier_names):
        own = {(m, w, len(tiers)): f"{name_part(m)}_headline" for m in models for w in in_dropdown}
        stems |= own
    stems = {load: stem for load, stem in stems.items() if f"{stem}_instance" in results}
    shown_with_loads = {f"{stem}_{what}" for stem in stems.values() for what in RESULTS}
    others = {n: snapshot.cells[f"rec_{n}"] for n in results if n not in shown_with_loads and "_headline_" not in n}
    in_loads = {model for model, _, _ in stems}
    # A workbook of before `in_purchase` has the class it was built with in the first column of prices.
    first = ON_DEMAND if "purchase" in inputs else str(snapshot.options.get("purchase") or ON_DEMAND)
    purchase = str(inputs.get("purchase") or first)
    return SheetFacts(
        snapshot.path,
        "workbook",
        snapshot.version,
        snapshot.catalog_sha256,
        inputs["as_of"],
        {m: models.names[m] for m in models if m in in_loads},
        workloads,
        tiers,
        (in_dropdown[0], tiers.index(inputs["headline_tier"]) + 1) if is_load else None,
        dict(_settings(snapshot, of_load)),
        snapshot.tables,
        {key: _offer(row, first) for key, row in snapshot.tables["instances"].items()},
        purchase,
        {load: _answer(*(results.get(f"{stem}_{what}") for what in RESULTS)) for load, stem in stems.items()},
        snapshot.options,
        {n: _setting(cell, _label(n, cell, "")) for n, cell in others.items()},
        snapshot.notes,
        snapshot.is_calculated,
    )


def _settings(snapshot: Snapshot, of_load: Collection[str]) -> Iterator[tuple[str, Setting]]:
    """Inputs but those that make the load, and what the build was given beside them."""
    usual = snapshot.cells["in_kv_cache_dtype"].place.sheet
    blank = {name for name, value in snapshot.inputs.items() if value is None and name.startswith(CELL)}
    names = (name for name in snapshot.inputs if name not in of_load and name not in blank)
    cells = {name: snapshot.cells[f"in_{name}"] for name in names}
    labels = {name: _label(name, cell, usual) for name, cell in cells.items()}
    taken = Counter(labels.values())
    for name, label in labels.items():
        yield name, _setting(cells[name], label if taken[label] == 1 else f"{label} ({name.replace('_', ' ')})")
    for name, value in HELD_BEFORE.items():
        if name not in cells and name not in BUILT_WITH:
            yield name, Setting(value, name.replace("_", " "), "percent")
    for name in (one for one in BUILT_WITH if one not in cells):
        yield name, Setting(snapshot.options.get(name), f"{name.replace('_', ' ')} (as built)", "text", True)


def _label(name: str, cell: NamedCell, usual: str) -> str:
    """The words before a cell, and its sheet where that is not the one of inputs."""
    sheet, label = cell.place.sheet, cell.label
    if name in _LABELS:
        return f"{sheet.removesuffix(' loads')}, {_LABELS[name]}"
    return label if sheet == usual or not label or label.startswith(f"{sheet}, ") else f"{sheet}, {label}"


def _setting(cell: NamedCell, label: str) -> Setting:
    kinds = {str: "text", datetime.date: "date"}
    return Setting(cell.value, label, kinds.get(type(cell.value), "percent" if "%" in cell.number_format else "number"))


def _offer(row: Mapping[str, Any], first: str) -> Offer:
    columns = {p: (f"price_{name_part(p)}", f"date_{name_part(p)}") for p in PURCHASES}
    columns[first] = ("price_usd_per_hour", "price_date")
    prices = {p: Price(row[usd], row.get(date)) for p, (usd, date) in columns.items() if row.get(usd) is not None}
    return Offer(row.get("instance_gpu"), row.get("gpu_count"), prices)


def _answer(instance: Any, n_instances: Any, monthly_usd: Any) -> Answer:
    if isinstance(monthly_usd, (int, float)):
        return Answer(str(instance), n_instances, monthly_usd)
    return Answer(None, None, None, str(instance))


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


class _Workload(_Part):
    id: str
    context_tokens: int
    output_tokens: int
    tpot_target_ms: float | None = None
    ttft_target_ms: float | None = None


class _Inputs(_Part):
    model_config = ConfigDict(extra="allow")
    models: list[str] = Field(max_length=100)
    workloads: list[_Workload] = Field(max_length=100)
    tiers: list[int] = Field(max_length=100)
    headline: str
    catalog_sha256: str
    purchase: str
    discount_fraction: float = Field(HELD_BEFORE["discount_fraction"], ge=0, lt=1)
    discounts: dict[str, Annotated[float, Field(ge=0, lt=1)]] = {}
    money: dict[str, float | str | None]
    owning: dict[str, float | dict[str, float]]


class _Candidate(_Part):
    instance: str
    gpu: str
    gpu_count: int
    purchase: str
    hourly_usd: float
    price_as_of: str | None


class _Cell(_Part):
    model: str
    workload: str
    tier: int | None  # none where it is the rate
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


class _Document(_Part):
    as_of: str
    inputs: _Inputs
    candidates: list[_Candidate]
    cells: list[_Cell]


def facts_of_json(data: bytes, path: str) -> SheetFacts:
    """What JSON of `build --format json` or `recommend --json` says. Raises WorkbookError where it is none."""
    document = _read(data)
    inputs = document.inputs
    keys = {w.id: name_part(w.id) for w in inputs.workloads}
    listed = tuple(dict.fromkeys((*inputs.tiers, *(c.tier for c in document.cells))))
    tiers = {requests: i for i, requests in reversed([*enumerate(listed, 1)])}
    workload, _, tier = inputs.headline.rpartition(":")
    headline, asked = None, None if tier == RATE else int(tier) if tier.isdecimal() else 0
    if workload in keys and asked in tiers:
        headline = keys[workload], tiers[asked]
    models = {c.model: {fact: getattr(c, fact) for fact in OF_MODELS} for c in document.cells}
    answers = {
        (c.model, keys[c.workload], tiers[c.tier]): Answer(
            c.instance, c.n_instances, c.monthly_usd, c.verdict, {name: getattr(c, name) for name in MORE_OF_ANSWER}
        )
        for c in document.cells
        if c.workload in keys and c.tier in tiers
    }
    given = {**(inputs.model_extra or {}), "purchase": inputs.purchase, "models": inputs.models}
    options = {name: given[name] for name in (*BUILT_WITH, "models") if given.get(name)}
    return SheetFacts(
        path,
        "JSON",
        "",
        inputs.catalog_sha256,
        _day(document.as_of),
        {m: m for m in inputs.models},
        {keys[w.id]: WorkloadFacts(w.id, w.context_tokens, w.output_tokens) for w in inputs.workloads},
        tuple(RATE if n is None else n for n in listed),
        headline,
        dict(_settings_of_json(document)),
        {"models": Table("models", models, {}, {}, heads=OF_MODELS)},
        {
            c.instance: Offer(c.gpu, c.gpu_count, {c.purchase: Price(_listed(c, inputs), _day(c.price_as_of))})
            for c in document.candidates
        },
        inputs.purchase,
        answers,
        {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in options.items()},
    )


def _read(data: bytes) -> _Document:
    if len(data) > MOST_JSON_BYTES:
        size = f"{len(data) / MB:,.0f} MB of JSON; {MOST_JSON_BYTES // MB} MB are the most"
        raise WorkbookError(f"has {size}. Give what `sheetgen build --format json` wrote.")
    try:
        found = json.loads(data, parse_constant=_finite, parse_int=_whole, parse_float=_finite)
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


def _finite(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"{shown(text)} is no number")
    return found


def _whole(text: str) -> int | float:
    return int(text) if len(text) < 19 else _finite(text)


def _day(text: str | None) -> datetime.date | None:
    try:
        return day_of(text)
    except (ValueError, OverflowError):
        return None


def _listed(candidate: _Candidate, inputs: _Inputs) -> float:
    """The price before the discount: the file has what is paid. To 12 digits, as what was paid is rounded."""
    provider = candidate.instance.partition("/")[0]
    less = in_force(_discounts(inputs), inputs.discount_fraction, provider, candidate.purchase)
    return float(f"{candidate.hourly_usd / (1 - less):.12g}") if less else candidate.hourly_usd


def _discounts(inputs: _Inputs) -> Discounts:
    """Those by provider and purchase class."""
    return {key_of(words): value for words, value in inputs.discounts.items()}


def _settings_of_json(document: _Document) -> Iterator[tuple[str, Setting]]:
    """Every input under the name that it has in a workbook."""
    inputs = document.inputs
    extra = inputs.model_extra or {}
    flat = {name: value for name, value in extra.items() if name in BY_NAME and name != "paper"} | {
        "purchase": inputs.purchase,
        "discount_fraction": inputs.discount_fraction,
        "kv_reserved": extra.get("kv_allocation") == "reserved",
        **inputs.money,
        **inputs.owning,
        "as_of": _day(document.as_of),
    }
    of_providers = {cell_name(key): value for key, value in _discounts(inputs).items()}
    flat |= of_providers
    for w in inputs.workloads:
        key = name_part(w.id)
        flat |= {f"tpot_ms_{key}": w.tpot_target_ms, f"ttft_ms_{key}": w.ttft_target_ms}
    for name, value in flat.items():
        if isinstance(value, bool):
            value = int(value)
        elif isinstance(value, (list, dict)):
            value = json.dumps(value, ensure_ascii=False)[1:-1].replace('"', "") or None
        if name == "fx_date":
            value = _day(str(value))
        row = BY_NAME[name].row if name in BY_NAME else None
        percent = name in of_providers or (row is not None and row.display.percent)
        shown_as = "text" if isinstance(value, str) else "percent" if percent else "number"
        yield name, Setting(value, name.replace("_", " "), shown_as, name in BUILT_WITH)
