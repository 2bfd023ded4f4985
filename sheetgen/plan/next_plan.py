"""The plan that follows one: the same services a quarter on, with what was to be signed as commitments and orders."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from sheetgen.plan.decisions import NOW
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER, QUARTERS_OF_TERM, Quarter, months_after, quarter_of
from sheetgen.plan.schema import MIX, QUANTILES
from sheetgen.plan.stated_plan import machine_in
from sheetgen.sizing.cost import HOURS_IN_A_MONTH
from sheetgen.units import ON_DEMAND

Data = dict[str, Any]


def next_plan(last: Mapping[str, Any], file: str, today: datetime.date) -> Data:
    """plan.yaml as data, of a plan's JSON in a file: it starts a quarter later, or in the quarter that runs."""
    data: Data = deepcopy(dict(last["inputs"]))
    head = data["plan"]
    before, year = Quarter.parse(head["start"]), int(head.get("fiscal_year_starts", 1))
    start = max(before.after(1), quarter_of(today, year))
    head |= {"start": str(start), "as_of": today.isoformat(), "since": file}
    data["budget"] = {quarter: usd for quarter, usd in (data.get("budget") or {}).items() if str(quarter) >= str(start)}
    data["services"] = [
        _moved(service, before, start)
        for service in data["services"]
        if "retire" not in service or Quarter.parse(service["retire"]) > start
    ]
    buy = (data.get("policy") or {}).get("buy", ON_DEMAND)
    supply = data.get("supply") or {}
    data["supply"] = supply | _signed(supply, _to_sign(last), last["as_of"], ON_DEMAND if buy == MIX else buy)
    for part in (*data["supply"].get("committed", ()), *data["supply"].get("ordered", ())):
        part.pop("services", None)
        if services := _on(part, last, start, {service["id"] for service in data["services"]}):
            part["services"] = services
    return data


def _on(part: Data, last: Mapping[str, Any], start: Quarter, ids: set[str]) -> list[str]:
    """The services that the last plan has on machines of an order or a commitment: on the first of its days on which
    they are there, and then as moves that were to be signed have it; a later move is a forecast."""
    day, stands = str(part.get("from", "")), dict[str, str | None]()
    moves = {(d["instance"], d["needed_from"]) for d in _to_sign(last) if d["what"] == "move"}
    there = [quarter for quarter in last.get("quarters", ()) if quarter["until"] >= day]
    for i, quarter in enumerate(there):
        for row in last["services"] if i == 0 or Quarter.parse(quarter["quarter"]) <= start else ():
            is_signed = i == 0 or (row["instance"], quarter["from"]) in moves
            if row["quarter"] == quarter["quarter"] and row["id"] in ids and is_signed:
                stands[row["id"]] = row["instance"]
    return [name for name, on in stands.items() if on and f"/{machine_in(on)}".endswith(f"/{part['type']}")]


def _to_sign(last: Mapping[str, Any]) -> list[Data]:
    """The decisions that the last plan had to sign."""
    return [decision for decision in last.get("decisions", ()) if decision["kind"] == NOW]


def _moved(service: Data, before: Quarter, start: Quarter) -> Data:
    """A service in a plan that starts later: its demand speaks of the quarter for which it was stated."""
    growth, n = service.get("growth"), start.since(before)
    launch = Quarter.parse(service["launch"]) if "launch" in service else before
    if isinstance(growth, dict) and "series" in growth:
        series = growth["series"]
        return service | {"growth": growth | {"series": [*series[n:], *series[-1:] * n][: len(series)]}}
    if isinstance(growth, dict) and "steps" in growth:
        steps: Data = {}
        for quarter, factor in growth["steps"].items():
            key = max(str(quarter), str(start))
            steps[key] = _product(steps[key], factor) if key in steps else factor
        return service | {"growth": {"steps": steps}}
    if growth is not None and "stated_for" not in service and launch < start:
        return service | {"stated_for": str(max(before, launch))}
    return service


def _product(amount: Any, factor: Any) -> Any:
    """The product of two numbers or bands."""
    bands = [band if isinstance(band, dict) else dict.fromkeys(QUANTILES, band) for band in (amount, factor)]
    if not any(isinstance(band, dict) for band in (amount, factor)):
        return amount * factor
    return {name: bands[0][name] * bands[1][name] for name in QUANTILES}


def _signed(supply: Data, now: Sequence[Data], as_of: str, buy: str) -> Data:
    """The parts of the supply to which decisions add: orders of a term as commitments, others as orders, and quotas as
    they are to be raised."""
    terms = [_commitment(i, order, as_of) for i, order in enumerate(now, 1) if _has_term(order)]
    raised = {
        decision["instance"]: int(decision["n_instances"]) for decision in now if decision["what"] == "raise quota"
    }
    added: Data = {}
    if terms:
        added["committed"] = [*supply.get("committed", ()), *terms]
    ordered = [*_ordered(supply.get("ordered", ()), now, buy)]
    if ordered or "ordered" in supply:
        added["ordered"] = ordered
    if quotas := supply.get("quota"):
        added["quota"] = [quota | _limit(quota, raised) for quota in quotas]
    return added


def _has_term(decision: Data) -> bool:
    return decision["what"] == "order" and decision["purchase"] in QUARTERS_OF_TERM


def _limit(quota: Data, raised: Mapping[str, int]) -> Data:
    """The limit to which a quota is to be raised, where it is."""
    return next(({"limit": n} for name, n in raised.items() if name.endswith(str(quota["type"]))), {})


def _commitment(i: int, order: Data, as_of: str) -> Data:
    n_quarters, first = QUARTERS_OF_TERM[order["purchase"]], _first_day(order)
    until = months_after(first, MONTHS_IN_A_QUARTER * n_quarters) - datetime.timedelta(days=1)
    hours = order["n_instances"] * MONTHS_IN_A_QUARTER * n_quarters * HOURS_IN_A_MONTH
    return {
        "id": f"ordered-{as_of}-{i}",
        "type": machine_in(order["instance"]),
        "count": int(order["n_instances"]),
        "purchase": order["purchase"],
        "from": first.isoformat(),
        "until": until.isoformat(),
        "usd_per_hour": round(order["binds_usd"] / hours, 6),
    }


def _first_day(order: Data) -> datetime.date:
    return datetime.date.fromisoformat(max(order["needed_from"], order["there_on"] or ""))


def _ordered(before: Sequence[Data], now: Sequence[Data], buy: str) -> Iterator[Data]:
    """The machines without a term, by the day from which they are there: those of before, those that are ordered now,
    less those that are given back, the last of them first."""
    counts = Counter[tuple[str, str, str]]()
    for part in before:
        counts[part["type"], part.get("purchase") or buy, str(part.get("from", ""))] += part["count"]
    changed = [decision for decision in now if decision["what"] in ("order", "release") and not _has_term(decision)]
    for decision in changed:
        subject, n = (machine_in(decision["instance"]), decision["purchase"]), int(decision["n_instances"])
        if decision["what"] == "order":
            counts[*subject, _first_day(decision).isoformat()] += n
        for key in sorted((key for key in counts if key[:2] == subject), reverse=True):
            if decision["what"] == "release":
                given = min(n, counts[key])
                counts[key], n = counts[key] - given, n - given
    for (name, purchase, day), count in counts.items():
        if count > 0:
            row = {"type": name, "count": count, "purchase": purchase, "from": day}
            yield {key: value for key, value in row.items() if value}
