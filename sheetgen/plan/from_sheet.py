"""A plan that begins from a sizing sheet: its models at the headline's load, their targets, prices and limits."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sheetgen.catalog.base import read_bounded, scalar
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
TO_STATE = (
    ("policy", "# policy: {plan_at: p90, redundancy: {survive: machine}, approval_days: 30}"),
    ("budget", "# budget: {%s: 250000}   # US dollars, of as many quarters as have one"),
)
OF_SERVICE = (
    "# owner: a-team",
    "# priority: 1          # served first where something is short",
    "# growth: {per_quarter: {p10: 0.05, p50: 0.1, p90: 0.2}}",
)


def read_sheet(path: Path) -> dict[str, Any]:
    """The JSON of a sheet, of `build` or of `recommend`. Raises ScenarioError where it is none."""
    where = shown(path, 200)
    try:
        sheet = json.loads(read_bounded(path, MOST_BYTES, "Name a sheet, its workbook or its JSON."))
        plan_text(sheet, where)
        return dict(sheet)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        why = error if type(error) is ValueError else "is no sheet"
        way_out = "Name the workbook or the JSON that `sheetgen build` writes."
        raise ScenarioError(f"{where}: {str(why).rstrip('.')}. {way_out}") from None


def plan_text(sheet: Mapping[str, Any], name: str) -> str:
    """plan.yaml for a sheet's record; `name`: of the sheet, for the first line."""
    inputs, as_of = sheet["inputs"], datetime.date.fromisoformat(sheet["as_of"])
    start = quarter_of(as_of, 1).after(1)
    people = {key: inputs[key] for key in ("owner", "approver") if inputs.get(key)}
    head = {"name": inputs["title"] or "Serving capacity plan", "start": start, "quarters": QUARTERS, "as_of": as_of}
    sections = {"plan": head | people, "policy": _policy(inputs), "supply": _supply(inputs), "prices": _prices(inputs)}
    lines = [
        f"# The plan of {name}: each of its models at the load of its headline, held in every quarter.",
        "# What begins with # is not stated yet: take the # away and write your own. Every key: docs/reference/plan.md",
    ]
    for section, fields in sections.items():
        if fields:
            lines += [f"{section}:", *(f"  {key}: {_flow(value)}" for key, value in fields.items())]
    lines += [line.replace("%s", str(start)) for section, line in TO_STATE if not sections.get(section)]
    lines.append("services:")
    for cell in _cells(sheet):
        lines += _service(cell, inputs)
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return (
        str(value)
        if isinstance(value, datetime.date)
        else scalar(value[:MAX_LINE] if isinstance(value, str) else value)
    )


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


def _cells(sheet: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The cell of the headline of each model."""
    workload, _, tier = sheet["inputs"]["headline"].partition(":")
    wanted = None if tier == "rate" else int(tier)
    cells = [cell for cell in sheet["cells"] if (cell["workload"], cell["tier"]) == (workload, wanted)]
    if not cells:
        raise ValueError("has no cell of its headline")
    yield from cells


def _demand(cell: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The load as the sheet states it: people, a rate, or requests at once."""
    rate, people = cell["requests_per_second"] if cell["tier"] is None else None, inputs["users"]
    if rate and people:
        of_day = {key: inputs[key] for key in OF_DAY}
        a_day = rate * SECONDS_IN_AN_HOUR / math.prod((people, *of_day.values()))
        return {"users": {"people": people, "requests_per_user_per_day": round(a_day, DIGITS), **of_day}}
    return {"requests": {"peak_per_second": rate}} if rate else {"at_once": cell["concurrent_requests"]}


def _service(cell: Mapping[str, Any], inputs: Mapping[str, Any]) -> Iterator[str]:
    workload = next(workload for workload in inputs["workloads"] if workload["id"] == cell["workload"])
    demand = _demand(cell, inputs)
    request = {name: workload[name] for name in ("context_tokens", "input_tokens", "output_tokens")}
    if hits := inputs["prefix_cache_hit_fraction"]:
        request["prefix_hit_fraction"] = hits
    targets = {name: workload[f"{name.removesuffix('_ms')}_target_ms"] or "off" for name in ("tpot_ms", "ttft_ms")}
    if "at_once" not in demand:
        targets["max_wait_probability"] = inputs["max_wait_fraction"]
    targets["confidence"] = inputs["confidence"]
    engine = {"name": inputs["engine"]} | {
        name: inputs[name] for name in OF_ENGINE if inputs[name] != BY_NAME[name].default
    }
    stated = ", ".join(f"{key}: {_flow(value)}" for key, value in engine.items())
    served = {"id": cell["model"], **{name: cell[name] for name in ("weight_dtype", "kv_cache_dtype")}}
    if instance := cell["instance"]:
        yield f"  # The sheet: {cell['n_instances']} x {instance}, {USD.text(cell['monthly_usd'])} a month."
    yield f"  - id: {cell['model'].replace('_', '-')}-{cell['workload']}"
    yield f"    demand: {_flow(demand)}"
    yield f"    request: {_flow(request)}"
    yield f"    model: [{_flow(served)}]"
    yield f"    targets: {_flow(targets)}"
    yield f"    engine: {{{stated}, version: '{inputs['engine_version']}'}}"
    yield from (f"    {line}" for line in OF_SERVICE)
