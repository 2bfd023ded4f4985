"""A plan that begins from a sizing sheet: its models at the headline's load, their targets, prices and limits."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sheetgen.catalog.base import read_bounded
from sheetgen.errors import ScenarioError, shown
from sheetgen.plan.quarters import quarter_of
from sheetgen.plan.schema import MAX_LINE, OF_DAY, OF_ENGINE
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


def read_sheet(path: Path) -> dict[str, Any]:
    """The JSON of a sheet, of `build` or of `recommend`. Raises ScenarioError where it is none."""
    where = shown(path, 200)
    try:
        sheet = json.loads(read_bounded(path, MOST_BYTES, "Name a sheet, its workbook or its JSON."))
        plan_of_sheet(sheet, where)
        return dict(sheet)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        why = error if type(error) is ValueError else "is no sheet"
        way_out = "Name the workbook or the JSON that `sheetgen build` writes."
        raise ScenarioError(f"{where}: {str(why).rstrip('.')}. {way_out}") from None


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
    workload = next(workload for workload in inputs["workloads"] if workload["id"] == cell["workload"])
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
