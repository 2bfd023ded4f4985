"""A plan that begins from a sizing sheet: models of it at the headline's load, their targets, prices and limits. The
models of a sheet are alternatives for one load, unless it adds them up."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import first_fault
from sheetgen.catalog.hardware import PurchaseId
from sheetgen.errors import ScenarioError, shown
from sheetgen.importer.model_names import place_of_model
from sheetgen.input_files import read_bounded
from sheetgen.plan import schema
from sheetgen.plan.quarters import quarter_of
from sheetgen.question.inputs import BY_NAME
from sheetgen.units import USD, count, listed

MOST_BYTES = 50_000_000
QUARTERS = 4
SECONDS_IN_AN_HOUR, DIGITS = 3600, 9
# The inputs of a sheet by the plan's key; those that have the sheet's default are left out.
POLICY = {"headroom_fraction": "extra_headroom_fraction", "near_tie_fraction": "near_tie_fraction", "buy": "purchase"}
PRICES = {"discount_fraction": "discount_fraction", "hours_per_month": "hours_per_month"}
PLACES = ("providers", "vendors", "gpus", "instances", "region")
NOT_STATED = """\
# Not stated yet, and every other key in docs/reference/plan.md:
# policy: {plan_at: p90, redundancy: {survive: machine}, approval_days: 30}
# budget: {%s: 250000}   # US dollars, of as many quarters as have one
# of a service: owner; priority: 1, the first that is served where something is short;
#   growth: {per_quarter: {p10: 0.05, p50: 0.1, p90: 0.2}}
"""


class _Part(BaseModel):
    """A part of a sheet's JSON: the keys that a plan begins from."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _Money(_Part):
    contingency_fraction: schema.Share


class _Workload(_Part):
    id: schema.Line
    context_tokens: schema.AboveZero
    input_tokens: schema.AboveZero
    output_tokens: schema.AboveZero
    tpot_target_ms: schema.Positive | None
    ttft_target_ms: schema.Positive | None


class _Inputs(_Part):
    title: str | None
    owner: str | None = None
    approver: str | None = None
    ask: str | None = None
    together: str | None = None
    headline: Annotated[str, Field(pattern="^[^:]+:(rate|[0-9]{1,9})$")]
    workloads: list[_Workload]
    users: schema.AboveZero | None
    peak_hour_share: schema.ShareAbove0
    burst_factor: schema.Positive
    survive: Annotated[int, Field(ge=0, lt=len(BY_NAME["survive"].words))]
    zones: schema.AboveZero
    providers: list[schema.Line]
    vendors: list[schema.Line]
    gpus: list[schema.Line]
    instances: list[schema.Line]
    region: schema.Line | None
    extra_headroom_fraction: schema.Share
    near_tie_fraction: schema.Share
    purchase: PurchaseId
    discount_fraction: schema.Share
    hours_per_month: schema.Positive
    money: _Money
    prefix_cache_hit_fraction: schema.Share
    max_wait_fraction: schema.Share
    confidence: schema.ShareAbove0
    engine: schema.Line
    engine_version: schema.Line | None
    gpu_memory_utilization: schema.ShareAbove0
    block_size: schema.AboveZero
    speed_factor: schema.Positive
    ttft_factor: schema.Positive


class _Cell(_Part):
    model: schema.Line
    workload: schema.Line
    tier: schema.AboveZero | None  # none where it is the rate
    requests_per_second: schema.Amount | None
    concurrent_requests: schema.Amount | None
    weight_dtype: schema.Line
    kv_cache_dtype: schema.Line
    instance: schema.Line | None
    n_instances: schema.Whole | None
    monthly_usd: schema.Amount | None


class _Sheet(_Part):
    as_of: schema.Day
    inputs: _Inputs
    cells: list[_Cell]


def read_sheet(path: Path) -> dict[str, Any]:
    """The JSON of a sheet, of `build` or of `recommend`. Raises ScenarioError where it is none."""
    where, why = shown(path, 200), "is no sheet"
    try:
        sheet = json.loads(read_bounded(path, MOST_BYTES, "Name a sheet, its workbook or its JSON.", pipes=True))
        _Sheet.model_validate(sheet)
        plan_of_sheet(sheet, where, models_of(sheet))
        return dict(sheet)
    except ValidationError as error:
        why = f"is no sheet: {first_fault(error, _Sheet)}"
    except (ValueError, RecursionError) as error:
        why = str(error) if type(error) is ValueError else why
    raise ScenarioError(f"{where}: {why.rstrip('.')}. Name the workbook or the JSON that `sheetgen build` writes.")


def models_of(sheet: Mapping[str, Any]) -> list[str]:
    """The models of a sheet's headline."""
    return [cell["model"] for cell in _cells(sheet)]


def models_named(sheet: Mapping[str, Any], names: Iterable[str], catalog: Catalog) -> list[str]:
    """The models of a sheet that are meant by these names. Raises ScenarioError for a model that it lacks."""
    models = models_of(sheet)
    return [models[place] for place in dict.fromkeys(place_of_model(name, models, "models", catalog) for name in names)]


def models_to_serve(sheet: Mapping[str, Any]) -> list[str]:
    """The models that a sheet itself says are to serve: its only one, all that it adds up, or the one that it asks to
    approve; none where it leaves the choice open."""
    models, inputs = models_of(sheet), sheet["inputs"]
    if len(models) == 1 or inputs.get("together") == "yes":
        return models
    return [model for model in models if model == inputs.get("ask")]


def rented(sheet: Mapping[str, Any]) -> dict[str, str]:
    """By model of a sheet the machines of its headline and their month, as text."""
    return {
        cell["model"]: f"{cell['n_instances']} x {cell['instance']}, {USD.text(cell['monthly_usd'])} a month"
        if cell["instance"]
        else "no machine serves it within its targets"
        for cell in _cells(sheet)
    }


def remarks_on_models(sheet: Mapping[str, Any], models: Sequence[str]) -> list[str]:
    """Sentences on the models of a plan: those of its sheet that it leaves out, and the load that several serve."""
    remarks = []
    if others := [model for model in models_of(sheet) if model not in models]:
        why = ", which the sheet asks to approve" if models == models_to_serve(sheet) else ""
        remarks.append(
            f"Planned: {listed(models)}{why}. Left out, as alternatives for the same load: {listed(others)}."
        )
    if len(models) > 1:
        load = f"each of the {len(models)} models carries the whole load of the headline"
        remarks.append(
            f"Note: {load}, so that the plan serves it {len(models)} times. Where they share it, lower each demand."
        )
    return remarks


def plan_of_sheet(sheet: Mapping[str, Any], name: str, models: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The first lines of a plan.yaml of some models of a sheet's record, and its content. name: of the sheet."""
    inputs, as_of = sheet["inputs"], datetime.date.fromisoformat(sheet["as_of"])
    start = quarter_of(as_of, 1).after(1)
    title = (inputs["title"] or "Serving capacity plan")[: schema.MAX_LINE]
    head = {"name": title, "start": str(start), "quarters": QUARTERS, "as_of": as_of}
    people = {key: inputs[key][: schema.MAX_LINE] for key in ("owner", "approver") if inputs.get(key)}
    lost = {"survive": BY_NAME["survive"].words[inputs["survive"]], "zones": inputs["zones"]}
    limits = {name: inputs[name] for name in PLACES if inputs[name]}
    contingency = inputs["money"]["contingency_fraction"]
    sections = {
        "plan": head | people,
        "policy": _changed(inputs, POLICY) | ({"redundancy": lost} if inputs["survive"] else {}),
        "supply": {"allowed": limits} if limits else {},
        "prices": _changed(inputs, PRICES) | ({"contingency_fraction": contingency} if contingency else {}),
    }
    lines = [f"# The plan of {name}: {count(len(models), 'model')} at the load of its headline, held in every quarter."]
    lines += [f"# {remark}" for remark in remarks_on_models(sheet, models)]
    lines += [f"# {model}: there {machines}" for model, machines in rented(sheet).items() if model in models]
    data = {section: fields for section, fields in sections.items() if fields}
    text = "\n".join((*lines, NOT_STATED.replace("%s", str(start))))
    return text, {**data, "services": [_service(cell, inputs) for cell in _cells(sheet) if cell["model"] in models]}


def _changed(inputs: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {key: inputs[name] for key, name in names.items() if inputs[name] not in (BY_NAME[name].default, None)}


def _cells(sheet: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The cell of the headline of each model."""
    workload, _, tier = sheet["inputs"]["headline"].partition(":")
    wanted = None if tier == "rate" else int(tier)
    cells = [cell for cell in sheet["cells"] if (cell["workload"], cell["tier"]) == (workload, wanted)]
    if not cells:
        raise ValueError("has no cell of its headline")
    return cells


def _demand(cell: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The load as the sheet states it: people, a rate, or requests at once."""
    rate, people = cell["requests_per_second"] if cell["tier"] is None else None, inputs["users"]
    if rate and people:
        of_day = {key: inputs[key] for key in schema.OF_DAY}
        a_day = rate * SECONDS_IN_AN_HOUR / math.prod((people, *of_day.values()))
        return {"users": {"people": people, "requests_per_user_per_day": round(a_day, DIGITS), **of_day}}
    return {"requests": {"peak_per_second": rate}} if rate else {"at_once": cell["concurrent_requests"]}


def _service(cell: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    workload = next((workload for workload in inputs["workloads"] if workload["id"] == cell["workload"]), None)
    if workload is None:
        raise ValueError(f"has no workload {shown(cell['workload'])}, of which its headline is")
    demand = _demand(cell, inputs)
    request = {name: workload[name] for name in ("context_tokens", "input_tokens", "output_tokens")}
    if hits := inputs["prefix_cache_hit_fraction"]:
        request["prefix_hit_fraction"] = hits
    targets = {name: workload[f"{name.removesuffix('_ms')}_target_ms"] or "off" for name in ("tpot_ms", "ttft_ms")}
    if "at_once" not in demand:
        targets["max_wait_probability"] = inputs["max_wait_fraction"]
    of_engine = {name: inputs[name] for name in schema.OF_ENGINE if inputs[name] != BY_NAME[name].default}
    return {
        "id": f"{cell['model'].replace('_', '-')}-{cell['workload']}",
        "demand": demand,
        "request": request,
        "model": {"id": cell["model"], **{name: cell[name] for name in ("weight_dtype", "kv_cache_dtype")}},
        "targets": targets | {"confidence": inputs["confidence"]},
        "engine": {"name": inputs["engine"], "version": inputs["engine_version"], **of_engine},
    }
