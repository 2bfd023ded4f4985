"""A plan that begins from a sizing sheet: its models at the headline's load, their targets, prices and limits."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sheetgen.catalog.base import read_bounded, scalar
from sheetgen.errors import ScenarioError, shown
from sheetgen.plan.quarters import quarter_of
from sheetgen.plan.schema import MAX_LINE, OF_ENGINE
from sheetgen.question.inputs import BY_NAME

MOST_BYTES = 50_000_000
QUARTERS = 4
# What a plan takes of a sheet's inputs, and where it has it; those that have the sheet's default are left out.
POLICY = {"headroom_fraction": "extra_headroom_fraction", "near_tie_fraction": "near_tie_fraction", "buy": "purchase"}
PRICES = {"discount_fraction": "discount_fraction", "hours_per_month": "hours_per_month"}


def read_sheet(path: Path) -> dict[str, Any]:
    """The JSON of a sheet, of `build` or of `recommend`. Raises ScenarioError where it is none."""
    import json

    where = shown(path, 200)
    try:
        known = json.loads(read_bounded(path, MOST_BYTES, "Name a sheet, its workbook or its JSON."))
        plan_text(known, where)
        return dict(known)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        why = error if type(error) is ValueError else "is no sheet"
        way_out = "Name the workbook or the JSON that `sheetgen build` writes."
        raise ScenarioError(f"{where}: {str(why).rstrip('.')}. {way_out}") from None


def plan_text(sheet: Mapping[str, Any], name: str) -> str:
    """plan.yaml for a sheet's record; `name` is what it is called in the first line."""
    inputs, as_of = sheet["inputs"], datetime.date.fromisoformat(sheet["as_of"])
    start = quarter_of(as_of, 1).after(1)
    lines = [
        f"# The plan of {name}: each of its models at the load of its headline. Growth, supply and budget are to be",
        "# said; `sheetgen plan init` writes an example with all of them.",
        f"plan: {{name: {_quoted(inputs['title'] or 'Serving capacity plan')}, start: {start}, quarters: {QUARTERS}, "
        f"as_of: {as_of}}}",
        *_mapping("policy", _policy(inputs)),
        *_mapping("supply", _supply(inputs)),
        *_mapping("prices", _prices(inputs)),
        "services:",
    ]
    for cell in _cells(sheet):
        lines += _service(cell, inputs)
    return "\n".join(lines) + "\n"


def _quoted(value: Any) -> str:
    return scalar(value[:MAX_LINE] if isinstance(value, str) else value)


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_flow(one)}" for name, one in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]" if isinstance(value, list) else _quoted(value)


def _mapping(name: str, fields: Mapping[str, Any]) -> Iterator[str]:
    if fields:
        yield f"{name}: {_flow(fields)}"


def _changed(inputs: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {to: inputs[name] for to, name in names.items() if inputs[name] not in (BY_NAME[name].default, None)}


def _policy(inputs: Mapping[str, Any]) -> dict[str, Any]:
    found = _changed(inputs, POLICY)
    if survive := inputs["survive"]:
        found["redundancy"] = {"survive": BY_NAME["survive"].words[survive], "zones": inputs["zones"]}
    return found


def _supply(inputs: Mapping[str, Any]) -> dict[str, Any]:
    limits = {name: inputs[name] for name in ("providers", "vendors", "gpus", "instances", "region") if inputs[name]}
    return {"allowed": limits} if limits else {}


def _prices(inputs: Mapping[str, Any]) -> dict[str, Any]:
    found = _changed(inputs, PRICES)
    contingency = inputs["money"]["contingency_fraction"]
    return found | ({"contingency_fraction": contingency} if contingency else {})


def _cells(sheet: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The cell of the headline of each model."""
    workload, _, tier = sheet["inputs"]["headline"].partition(":")
    wanted = None if tier == "rate" else int(tier)
    found = [one for one in sheet["cells"] if (one["workload"], one["tier"]) == (workload, wanted)]
    if not found:
        raise ValueError("has no cell of its headline")
    yield from found


def _service(cell: Mapping[str, Any], inputs: Mapping[str, Any]) -> Iterator[str]:
    workload = next(one for one in inputs["workloads"] if one["id"] == cell["workload"])
    rate = cell["requests_per_second"] if cell["tier"] is None else None
    demand = {"requests": {"peak_per_second": rate}} if rate else {"in_flight": cell["concurrent_requests"]}
    request = {name: workload[name] for name in ("context_tokens", "input_tokens", "output_tokens")}
    if hits := inputs["prefix_cache_hit_fraction"]:
        request["prefix_hit_fraction"] = hits
    targets = {name: workload[f"{name.removesuffix('_ms')}_target_ms"] or "off" for name in ("tpot_ms", "ttft_ms")}
    if rate:
        targets["max_wait_probability"] = inputs["max_wait_fraction"]
    targets["confidence"] = inputs["confidence"]
    engine = {"name": inputs["engine"], "version": f"'{inputs['engine_version']}'"}
    engine |= {name: inputs[name] for name in OF_ENGINE if inputs[name] != BY_NAME[name].default}
    served = {"id": cell["model"], **{name: cell[name] for name in ("weight_dtype", "kv_cache_dtype")}}
    said = ", ".join(f"{name}: {value if name == 'version' else _flow(value)}" for name, value in engine.items())
    yield f"  - id: {cell['model'].replace('_', '-')}-{cell['workload']}"
    yield f"    demand: {_flow(demand)}"
    yield f"    request: {_flow(request)}"
    yield f"    model: [{_flow(served)}]"
    yield f"    targets: {_flow(targets)}"
    yield f"    engine: {{{said}}}"
