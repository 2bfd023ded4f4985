"""A plan that begins from a sizing sheet: its models at the headline's load, their targets, prices and limits."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sheetgen.catalog.base import first_fault, read_bounded
from sheetgen.catalog.hardware import PurchaseId
from sheetgen.errors import ScenarioError, shown
from sheetgen.plan.quarters import quarter_of
from sheetgen.plan.schema import (
    MAX_LINE,
    OF_DAY,
    OF_ENGINE,
    AboveZero,
    Amount,
    Day,
    Line,
    Positive,
    Share,
    ShareAbove0,
    Whole,
)
from sheetgen.question.inputs import BY_NAME
from sheetgen.units import USD

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
    contingency_fraction: Share


class _Workload(_Part):
    id: Line
    context_tokens: AboveZero
    input_tokens: AboveZero
    output_tokens: AboveZero
    tpot_target_ms: Positive | None
    ttft_target_ms: Positive | None


class _Inputs(_Part):
    title: str | None
    owner: str | None = None
    approver: str | None = None
    headline: Annotated[str, Field(pattern="^[^:]+:(rate|[0-9]{1,9})$")]
    workloads: list[_Workload]
    users: AboveZero | None
    peak_hour_share: ShareAbove0
    burst_factor: Positive
    survive: Annotated[int, Field(ge=0, lt=len(BY_NAME["survive"].words))]
    zones: AboveZero
    providers: list[Line]
    vendors: list[Line]
    gpus: list[Line]
    instances: list[Line]
    region: Line | None
    extra_headroom_fraction: Share
    near_tie_fraction: Share
    purchase: PurchaseId
    discount_fraction: Share
    hours_per_month: Positive
    money: _Money
    prefix_cache_hit_fraction: Share
    max_wait_fraction: Share
    confidence: ShareAbove0
    engine: Line
    engine_version: Line | None
    gpu_memory_utilization: ShareAbove0
    block_size: AboveZero
    speed_factor: Positive
    ttft_factor: Positive


class _Cell(_Part):
    model: Line
    workload: Line
    tier: AboveZero | None  # none where it is the rate
    requests_per_second: Amount | None
    concurrent_requests: Amount | None
    weight_dtype: Line
    kv_cache_dtype: Line
    instance: Line | None
    n_instances: Whole | None
    monthly_usd: Amount | None


class _Sheet(_Part):
    as_of: Day
    inputs: _Inputs
    cells: list[_Cell]


def read_sheet(path: Path) -> dict[str, Any]:
    """The JSON of a sheet, of `build` or of `recommend`. Raises ScenarioError where it is none."""
    where, why = shown(path, 200), "is no sheet"
    try:
        sheet = json.loads(read_bounded(path, MOST_BYTES, "Name a sheet, its workbook or its JSON."))
        _Sheet.model_validate(sheet)
        plan_of_sheet(sheet, where)
        return dict(sheet)
    except ValidationError as error:
        why = f"is no sheet: {first_fault(error, _Sheet)}"
    except (ValueError, RecursionError) as error:
        why = str(error) if type(error) is ValueError else why
    raise ScenarioError(f"{where}: {why.rstrip('.')}. Name the workbook or the JSON that `sheetgen build` writes.")


def plan_of_sheet(sheet: Mapping[str, Any], name: str) -> tuple[str, dict[str, Any]]:
    """The first lines of a plan.yaml for a sheet's record, and its content. name: of the sheet."""
    inputs, as_of = sheet["inputs"], datetime.date.fromisoformat(sheet["as_of"])
    start = quarter_of(as_of, 1).after(1)
    title = (inputs["title"] or "Serving capacity plan")[:MAX_LINE]
    head = {"name": title, "start": str(start), "quarters": QUARTERS, "as_of": as_of}
    people = {key: inputs[key][:MAX_LINE] for key in ("owner", "approver") if inputs.get(key)}
    sections = {"plan": head | people, "policy": _policy(inputs), "supply": _supply(inputs), "prices": _prices(inputs)}
    cells = _cells(sheet)
    lines = [f"# The plan of {name}: each of its models at the load of its headline, held in every quarter."]
    lines += [
        f"# {cell['model']}: there {cell['n_instances']} x {cell['instance']}, {USD.text(cell['monthly_usd'])} a month"
        for cell in cells
        if cell["instance"]
    ]
    data = {section: fields for section, fields in sections.items() if fields}
    text = "\n".join((*lines, NOT_STATED.replace("%s", str(start))))
    return text, {**data, "services": [_service(cell, inputs) for cell in cells]}


def _changed(inputs: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {key: inputs[name] for key, name in names.items() if inputs[name] not in (BY_NAME[name].default, None)}


def _policy(inputs: Mapping[str, Any]) -> dict[str, Any]:
    survive = inputs["survive"]
    lost = {"survive": BY_NAME["survive"].words[survive], "zones": inputs["zones"]}
    return _changed(inputs, POLICY) | ({"redundancy": lost} if survive else {})


def _supply(inputs: Mapping[str, Any]) -> dict[str, Any]:
    limits = {name: inputs[name] for name in PLACES if inputs[name]}
    return {"allowed": limits} if limits else {}


def _prices(inputs: Mapping[str, Any]) -> dict[str, Any]:
    contingency = inputs["money"]["contingency_fraction"]
    return _changed(inputs, PRICES) | ({"contingency_fraction": contingency} if contingency else {})


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
        of_day = {key: inputs[key] for key in OF_DAY}
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
    of_engine = {name: inputs[name] for name in OF_ENGINE if inputs[name] != BY_NAME[name].default}
    return {
        "id": f"{cell['model'].replace('_', '-')}-{cell['workload']}",
        "demand": demand,
        "request": request,
        "model": {"id": cell["model"], **{name: cell[name] for name in ("weight_dtype", "kv_cache_dtype")}},
        "targets": targets | {"confidence": inputs["confidence"]},
        "engine": {"name": inputs["engine"], "version": inputs["engine_version"], **of_engine},
    }
