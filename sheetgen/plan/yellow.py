"""What of a plan may be typed over in its workbook: the yellow cells of Inputs, and where each stands in plan.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.base import Loc
from sheetgen.plan.read import Plan
from sheetgen.plan.schema import QUANTILES, Band, Service
from sheetgen.plan.tables import bands_of, growth_bands, numbers_of
from sheetgen.scenario.inputs import BY_NAME
from sheetgen.scenario.parse import LEAST, SHARE, SHARE_ABOVE_0, Kind, name_part
from sheetgen.units import DATE, EXACT_PERCENT, FACTOR, PLAIN, PURCHASES, TEXT, USD, USD_CENTS, Display

AMOUNT, MONEY = Kind("number", LEAST, 1e12), Kind("number", 0, 1e12)
CHANGE = Kind("number", LEAST - 1, 100)
DAYS, LEAD_DAYS = Kind("whole", 0, 730), Kind("number", 0, 3650)
COUNT = Kind("whole", 1, 10**9)
QUANTILE, SURVIVE = Kind("word", words=QUANTILES), Kind("word", words=BY_NAME["survive"].words)
FIELDS = {  # of a demand: what its row says, its unit, what it takes, how it shows
    "in_flight": ("Requests at once", "requests", AMOUNT, FACTOR), "people": ("People", "", AMOUNT, FACTOR),
    "active_fraction": ("Share of them that is active", "", SHARE_ABOVE_0, EXACT_PERCENT),
    "dau": ("Users of a day", "", AMOUNT, FACTOR),
    "sessions_per_user_day": ("Sessions of a user and day", "", AMOUNT, FACTOR),
    "requests_per_session": ("Requests of a session", "", AMOUNT, FACTOR),
    "peak_per_second": ("A second at peak", "", AMOUNT, FACTOR), "per_day": ("A day", "", AMOUNT, FACTOR),
    "per_month": ("A month", "", AMOUNT, FACTOR),
    "peak_hour_share": ("Share of a day in its busiest hour", "", SHARE_ABOVE_0, EXACT_PERCENT),
    "burst_factor": ("Busiest minutes over that hour", "", Kind("number", 1, 100), FACTOR),
    "days_per_month": ("Days of a month", "days", Kind("number", 1, 31), FACTOR),
}  # fmt: skip


@dataclass(frozen=True)
class Yellow:
    """One cell: its defined name without in_, where its value stands in plan.yaml, and that value."""

    name: str
    at: Loc
    value: Any


@dataclass(frozen=True)
class Line:
    """A row of Inputs: one cell, or the three of a band."""

    label: str
    cells: tuple[Yellow, ...]
    kind: Kind
    display: Display
    unit: str = ""
    note: str = ""

    @property
    def is_band(self) -> bool:
        return len(self.cells) > 1


@dataclass(frozen=True)
class Section:
    title: str
    lines: tuple[Line, ...]


def sections(plan: Plan) -> Iterator[Section]:
    """Every yellow cell of a plan, in the order of the sheet."""
    yield Section("Policy", tuple(_policy(plan)))
    yield Section("Prices", tuple(_prices(plan)))
    yield Section("Budget, US dollars", tuple(
        _one(str(q), f"budget_{name_part(str(q))}", ("budget", str(q)), plan.budget.get(q), _or_blank(MONEY), USD, "$",
             "Blank: none." if not i else "")
        for i, q in enumerate(plan.quarters)
    ))  # fmt: skip
    for s, service in enumerate(plan.services):
        yield Section(f"{service.id}{f' ({service.owner})' if service.owner else ''}", tuple(_service(plan, s, service)))
    if plan.supply.owned or plan.supply.committed or plan.supply.quota:
        yield Section("Owned, committed, quotas", tuple(_supply(plan)))


def every_cell(plan: Plan) -> dict[str, tuple[Line, Yellow]]:
    """By name, each yellow cell with its row."""
    return {cell.name: (line, cell) for section in sections(plan) for line in section.lines for cell in line.cells}


def _or_blank(kind: Kind) -> Kind:
    return Kind(kind.what, kind.low, kind.high, blank=True, words=kind.words)


def _one(label: str, name: str, at: Loc, value: Any, kind: Kind, display: Display, unit: str = "", note: str = "") -> Line:
    return Line(label, (Yellow(name, at, value),), kind, display, unit, note)


def _band(label: str, name: str, at: Loc, band: Band, kind: Kind, display: Display, unit: str = "", note: str = "") -> Line:
    cells = (Yellow(f"{name}_{z}", (*at, z), getattr(band, z)) for z in QUANTILES)
    return Line(label, tuple(cells), kind, display, unit, note)


def _policy(plan: Plan) -> Iterator[Line]:
    policy, loss = plan.policy, plan.policy.redundancy
    yield _one("Day of the plan", "as_of", ("plan", "as_of"), plan.as_of, Kind("date"), DATE, "",
               "Orders whose day is before it are late.")  # fmt: skip
    yield _one("Capacity is bought for", "plan_at", ("policy", "plan_at"), policy.plan_at, QUANTILE, TEXT, "",
               "This quantile of each service's demand; money is shown at all three.")  # fmt: skip
    yield _one("Headroom", "headroom_fraction", ("policy", "headroom_fraction"), policy.headroom_fraction, SHARE,
               EXACT_PERCENT, "", "Room above the load.")  # fmt: skip
    yield from _redundancy("", "", ("policy", "redundancy"), loss.survive, loss.zones, loss.replicas)
    yield _one("Kept after the need falls", "release_after_quarters", ("policy", "release_after_quarters"),
               policy.release_after_quarters, Kind("whole", 0, 8), PLAIN, "quarters",
               "Quarters of lower need after which machines are given back.")  # fmt: skip
    yield _one("Approval", "approval_days", ("policy", "approval_days"), policy.approval_days, DAYS, PLAIN, "days",
               "From the request to the order.")  # fmt: skip
    for what in (*PURCHASES, "owned"):
        band = plan.supply.lead_time_days.get(what)
        yield _one(f"Lead time, {what}", f"lead_days_{name_part(what)}", ("supply", "lead_time_days", what, "p90"),
                   band.p90 if band else 0, LEAD_DAYS, FACTOR, "days", "That nine of ten orders keep to.")  # fmt: skip


def _redundancy(of: str, stem: str, at: Loc, survive: str, zones: int, replicas: int) -> Iterator[Line]:
    yield _one(f"{of}What may be lost", f"{stem}survive", (*at, "survive"), survive, SURVIVE, TEXT, "",
               f"{', '.join(SURVIVE.words)}.")  # fmt: skip
    yield _one(f"{of}Zones", f"{stem}zones", (*at, "zones"), zones, Kind("whole", 2, 20), PLAIN, "",
               "Over which replicas are spread, where a zone may be lost.")  # fmt: skip
    yield _one(f"{of}Spare replicas", f"{stem}spare_replicas", (*at, "replicas"), replicas, Kind("whole", 0, 10**9),
               PLAIN, "", "More than the load takes.")  # fmt: skip


def _prices(plan: Plan) -> Iterator[Line]:
    prices = plan.prices
    for label, name, kind, display, unit, note in (
        ("Discount", "discount_fraction", Kind("share", 0, 0.99), EXACT_PERCENT, "", "Of a contract, off list prices."),
        ("Contingency", "contingency_fraction", SHARE, EXACT_PERCENT, "", "A line of its own, counted by the budget."),
        ("Hours run", "hours_per_month", Kind("number", 1, 744), FACTOR, "a month", "Commitments are paid in all."),
    ):  # fmt: skip
        yield _one(label, name, ("prices", name), getattr(prices, name), kind, display, unit, note)
    yield _band("Change of prices a year", "price_change", ("prices", "expected_change_per_year"),
                prices.expected_change_per_year, CHANGE, EXACT_PERCENT, "",
                "p50 is live; p10 and p90 are in the joint draws alone.")  # fmt: skip


def _service(plan: Plan, s: int, service: Service) -> Iterator[Line]:
    stem, at = f"service_{s + 1}_", ("services", s)
    stated = service.demand
    key = next(name for name in ("users", "requests", "tokens", "in_flight") if getattr(stated, name) is not None)
    of: Loc = (*at, "demand", key)
    for name, band in bands_of(stated).items():
        label, unit, kind, display = FIELDS[name]
        label = f"{key.capitalize()}: {label.lower()}" if key in ("requests", "tokens") else label
        yield _band(label, f"{stem}{name}", of if key == "in_flight" else (*of, name), band, kind, display, unit)
    for name, value in numbers_of(stated).items():
        label, unit, kind, display = FIELDS[name]
        yield _one(label, f"{stem}{name}", (*of, name), value, kind, display, unit)
    growth = service.growth
    for name, growing in growth_bands(growth).items():
        what, _, which = name.partition("_") if name != "per_quarter" else (name, "", "")
        place: Loc = (*at, "growth", what, *([int(which) if what == "series" else which] if which else ()))
        is_rate = what == "per_quarter"
        label = "Growth a quarter" if is_rate else f"Demand over that stated, {'from' if what == 'steps' else 'in'} "
        if what == "series":
            label += str(plan.quarters[int(which)]) if int(which) < len(plan.quarters) else f"quarter {int(which) + 1}"
        elif what == "steps":
            label += f"{which} on"
        yield _band(label, f"{stem}growth_{name_part(name)}", place, growing, CHANGE if is_rate else AMOUNT,
                    EXACT_PERCENT if is_rate else FACTOR)  # fmt: skip
    yield _one("Replicas at least", f"{stem}floor_replicas", (*at, "floor_replicas"), service.floor_replicas or 1,
               COUNT, PLAIN)  # fmt: skip
    if (own := service.redundancy) is not None:
        yield from _redundancy("", stem, (*at, "redundancy"), own.survive, own.zones, own.replicas)


def _supply(plan: Plan) -> Iterator[Line]:
    supply = plan.supply
    for i, pool in enumerate(supply.owned):
        stem, at = f"owned_{i + 1}_", ("supply", "owned", i)
        yield _one(f"{pool.id}: GPUs owned ({pool.gpu})", f"{stem}count", (*at, "count"), pool.count, COUNT, PLAIN)
        yield _one(f"{pool.id}: cost", f"{stem}cost", (*at, "cost_per_quarter"), pool.cost_per_quarter, MONEY, USD,
                   "$ a quarter")  # fmt: skip
    for i, one in enumerate(supply.committed):
        stem, at = f"committed_{i + 1}_", ("supply", "committed", i)
        yield _one(f"{one.id}: machines committed", f"{stem}count", (*at, "count"), one.count, COUNT, PLAIN, "",
                   f"{one.type}, {one.purchase}.")  # fmt: skip
        yield _one(f"{one.id}: price", f"{stem}usd_per_hour", (*at, "usd_per_hour"), one.usd_per_hour,
                   _or_blank(AMOUNT), USD_CENTS, "$ an hour", "Blank: the list price, less the discount.")  # fmt: skip
    for i, quota in enumerate(supply.quota):
        stem, at = f"quota_{i + 1}_", ("supply", "quota", i)
        yield _one(f"Quota of {quota.type}", f"{stem}limit", (*at, "limit"), quota.limit, Kind("whole", 0, 10**9),
                   PLAIN, "machines")  # fmt: skip
        yield _one(f"Days to raise it, {quota.type}", f"{stem}days", (*at, "request_lead_days"),
                   quota.request_lead_days, DAYS, PLAIN, "days")  # fmt: skip


SHORT = {"users": "people", "requests": "peak_per_second", "tokens": "peak_per_second", "growth": "per_quarter"}


def put(data: dict[str, Any], at: Loc, value: Any) -> None:
    """Write a value into a plan as it was written; what was written in short is written out where that is needed."""
    part: Any = data
    for key, following in zip(at, at[1:], strict=False):
        inner = part.get(key) if isinstance(part, dict) else part[key]
        if not isinstance(inner, dict | list):
            inner = part[key] = _written_out(str(key), inner, following)
        elif isinstance(inner, dict) and following not in QUANTILES and {*inner} & {*QUANTILES}:
            inner = part[key] = {SHORT[str(key)]: inner}
        part = inner
    if value is None:
        part.pop(at[-1], None)
    else:
        part[at[-1]] = value


def _written_out(key: str, value: Any, following: Any) -> dict[str, Any]:
    """A number, or nothing, as the mapping that it is short for."""
    if following in QUANTILES:
        return {} if value is None else dict.fromkeys(QUANTILES, value)
    return {} if value is None else {SHORT[key]: value}


def changed(data: dict[str, Any], plan: Plan, edits: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A plan as it was written, with other values in its yellow cells."""
    import copy

    cells, found = every_cell(plan), copy.deepcopy(data)
    for name, value in edits:
        put(found, cells[name][1].at, value)
    return found
