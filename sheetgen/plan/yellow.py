"""What of a plan may be typed over in its workbook: the yellow cells of Inputs, and where each stands in plan.yaml."""

from __future__ import annotations

import copy
import datetime
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.base import Loc
from sheetgen.plan.read import Plan
from sheetgen.plan.schema import DOLLARS, QUANTILES, Band, Head, Service
from sheetgen.plan.tables import bands_of, growth_bands, numbers_of
from sheetgen.scenario.inputs import BY_NAME
from sheetgen.scenario.parse import LEAST, SHARE, SHARE_ABOVE_0, Kind, name_part
from sheetgen.sheet.wording import prefix_of, sign_of
from sheetgen.units import AS_IT_IS, DATE, EXACT_PERCENT, FACTOR, PLAIN, PURCHASES, TEXT, USD, USD_CENTS, WHOLE, Display

AMOUNT, MONEY = Kind("number", LEAST, 1e12), Kind("number", 0, 1e12)
CHANGE = Kind("number", LEAST - 1, 100)
DAYS, LEAD_DAYS = Kind("whole", 0, 730), Kind("number", 0, 3650)
COUNT = Kind("whole", 1, 10**9)
LARGE = 1000  # from which a whole number is shown as such
QUANTILE, SURVIVE = Kind("word", words=QUANTILES), Kind("word", words=BY_NAME["survive"].words)
FIELDS = {  # of a demand: what its row says, its unit, what it takes, how it shows
    "in_flight": ("Requests at once", "requests", AMOUNT, AS_IT_IS),
    "people": ("People", "", AMOUNT, AS_IT_IS),
    "active_fraction": ("Share of them that is active", "", SHARE_ABOVE_0, EXACT_PERCENT),
    "dau": ("Users of a day", "", AMOUNT, AS_IT_IS),
    "sessions_per_user_day": ("Sessions of a user and day", "", AMOUNT, AS_IT_IS),
    "requests_per_session": ("Requests of a session", "", AMOUNT, AS_IT_IS),
    "peak_per_second": ("A second at peak", "", AMOUNT, AS_IT_IS),
    "per_day": ("A day", "", AMOUNT, AS_IT_IS),
    "per_month": ("A month", "", AMOUNT, AS_IT_IS),
    "peak_hour_share": ("Share of a day in its busiest hour", "", SHARE_ABOVE_0, EXACT_PERCENT),
    "burst_factor": ("Busiest minutes over that hour", "", Kind("number", 1, 100), AS_IT_IS),
    "days_per_month": ("Days of a month", "days", Kind("number", 1, 31), AS_IT_IS),
}


def part_of_name(text: str) -> str:
    """A quarter or a class as part of a defined name, whose letters are small: spreadsheets do not tell them apart."""
    return name_part(text).lower()


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
    code, (display, sign) = plan.head.currency, of_currency(plan.head)
    yield Section(
        f"Budget, {'US dollars' if code == DOLLARS else code}",
        tuple(
            _one(
                str(q),
                f"budget_{part_of_name(str(q))}",
                ("budget", str(q)),
                _stated(plan, plan.budget.get(q)),
                _or_blank(MONEY),
                display,
                sign,
                "Blank: none." if not i else "",
            )
            for i, q in enumerate(plan.quarters)
        ),
    )
    for s, service in enumerate(plan.services):
        owner = f" ({service.owner})" if service.owner else ""
        yield Section(f"{service.id}{owner}", tuple(_service(plan, s, service)))
    if plan.supply.owned or plan.supply.committed or plan.supply.quota:
        yield Section("Owned, committed, quotas", tuple(_supply(plan)))


def of_currency(head: Head) -> tuple[Display, str]:
    """How an amount in the plan's currency shows, and its sign."""
    sign = sign_of(head.currency)
    prefix = prefix_of(sign)
    return (USD, sign) if head.currency == DOLLARS else (Display(f'"{prefix}"#,##0', prefix=prefix), sign)


def _stated(plan: Plan, usd: float | None) -> float | None:
    """Dollars as the plan states them, in its currency; without the trace of having been divided by its rate."""
    return usd if usd is None or plan.head.currency == DOLLARS else float(f"{usd * plan.head.fx_rate:.14g}")


def every_cell(plan: Plan) -> dict[str, tuple[Line, Yellow]]:
    """By name, each yellow cell with its row."""
    return {cell.name: (line, cell) for section in sections(plan) for line in section.lines for cell in line.cells}


def labels(plan: Plan) -> dict[str, str]:
    """By name, what each yellow cell is called in a message."""
    return {
        cell.name: f"{section.title}: {line.label}{f', {quantile}' if line.is_band else ''}"
        for section in sections(plan)
        for line in section.lines
        for cell, quantile in zip(line.cells, QUANTILES, strict=False)
    }


def _or_blank(kind: Kind) -> Kind:
    return Kind(kind.what, kind.low, kind.high, blank=True, words=kind.words)


def _one(
    label: str, name: str, at: Loc, value: Any, kind: Kind, display: Display, unit: str = "", note: str = ""
) -> Line:
    return Line(label, (Yellow(name, at, value),), kind, display, unit, note)


def _band(
    label: str, name: str, at: Loc, band: Band, kind: Kind, display: Display, unit: str = "", note: str = ""
) -> Line:
    cells = tuple(Yellow(f"{name}_{z}", (*at, z), getattr(band, z)) for z in QUANTILES)
    is_large = display is AS_IT_IS and all(cell.value >= LARGE and cell.value.is_integer() for cell in cells)
    return Line(label, cells, kind, WHOLE if is_large else display, unit, note)


def _policy(plan: Plan) -> Iterator[Line]:
    policy, loss = plan.policy, plan.policy.redundancy
    yield _one(
        "Day of the plan",
        "as_of",
        ("plan", "as_of"),
        plan.as_of,
        Kind("date"),
        DATE,
        "",
        "Orders whose day is before it are late.",
    )
    yield _one(
        "Capacity is bought for",
        "plan_at",
        ("policy", "plan_at"),
        policy.plan_at,
        QUANTILE,
        TEXT,
        "",
        "This quantile of each service's demand; money is shown at all three.",
    )
    yield _one(
        "Headroom",
        "headroom_fraction",
        ("policy", "headroom_fraction"),
        policy.headroom_fraction,
        SHARE,
        EXACT_PERCENT,
        "",
        "Room above the load.",
    )
    yield from _redundancy("", "", ("policy", "redundancy"), loss.survive, loss.zones, loss.replicas)
    yield _one(
        "Kept after the need falls",
        "release_after_quarters",
        ("policy", "release_after_quarters"),
        policy.release_after_quarters,
        Kind("whole", 0, 8),
        PLAIN,
        "quarters",
        "Quarters of lower need after which machines are given back.",
    )
    yield _one(
        "Approval",
        "approval_days",
        ("policy", "approval_days"),
        policy.approval_days,
        DAYS,
        PLAIN,
        "days",
        "From the request to the order.",
    )
    for what in (*PURCHASES, "owned"):
        band, at = plan.supply.lead_time_days.get(what), ("supply", "lead_time_days", what, "p90")
        yield _one(
            f"Lead time, {what}",
            f"lead_days_{part_of_name(what)}",
            at,
            band.p90 if band else 0,
            LEAD_DAYS,
            AS_IT_IS,
            "days",
            "That nine of ten orders keep to.",
        )


def _redundancy(of: str, stem: str, at: Loc, survive: str, zones: int, replicas: int) -> Iterator[Line]:
    yield _one(
        f"{of}What may be lost",
        f"{stem}survive",
        (*at, "survive"),
        survive,
        SURVIVE,
        TEXT,
        "",
        f"{', '.join(SURVIVE.words)}.",
    )
    yield _one(
        f"{of}Zones",
        f"{stem}zones",
        (*at, "zones"),
        zones,
        Kind("whole", 2, 20),
        PLAIN,
        "",
        "Over which replicas are spread, where a zone may be lost.",
    )
    yield _one(
        f"{of}Spare replicas",
        f"{stem}spare_replicas",
        (*at, "replicas"),
        replicas,
        Kind("whole", 0, 10**9),
        PLAIN,
        "",
        "More than the load takes.",
    )


def _prices(plan: Plan) -> Iterator[Line]:
    prices = plan.prices
    for label, name, kind, display, unit, note in (
        ("Discount", "discount_fraction", Kind("share", 0, 0.99), EXACT_PERCENT, "", "Of a contract, off list prices."),
        ("Contingency", "contingency_fraction", SHARE, EXACT_PERCENT, "", "A line of its own, counted by the budget."),
        ("Hours run", "hours_per_month", Kind("number", 1, 744), AS_IT_IS, "a month", "Commitments are paid in all."),
    ):
        yield _one(label, name, ("prices", name), getattr(prices, name), kind, display, unit, note)
    if plan.head.currency != DOLLARS:
        yield _one(
            f"{plan.head.currency} for one US dollar",
            "fx_rate",
            ("plan", "fx_rate"),
            plan.head.fx_rate,
            BY_NAME["fx_rate"].kind,
            FACTOR,
            "",
            "Budgets and costs of pools are stated in it.",
        )
    yield _band(
        "Change of prices a year",
        "price_change",
        ("prices", "expected_change_per_year"),
        prices.expected_change_per_year,
        CHANGE,
        EXACT_PERCENT,
        "",
        "p50 is live; p10 and p90 are in the joint draws alone.",
    )


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
        yield _band(
            label,
            f"{stem}growth_{part_of_name(name)}",
            place,
            growing,
            CHANGE if is_rate else AMOUNT,
            EXACT_PERCENT if is_rate else AS_IT_IS,
        )
    if holder(plan, s, "floor_replicas") == s:
        yield _one(
            "Replicas at least",
            f"{stem}floor_replicas",
            (*at, "floor_replicas"),
            service.floor_replicas or 1,
            COUNT,
            PLAIN,
        )
    if (own := service.redundancy) is not None and holder(plan, s, "redundancy") == s:
        yield from _redundancy("", stem, (*at, "redundancy"), own.survive, own.zones, own.replicas)


def holder(plan: Plan, s: int, name: str) -> int:
    """The service whose field of that name holds for a service: its own, or that of the one that it is like."""
    ids = [one.id for one in plan.services]
    while name not in plan.data["services"][s] and plan.services[s].like is not None:
        s = ids.index(str(plan.services[s].like))
    return s


def _supply(plan: Plan) -> Iterator[Line]:
    supply, (display, sign) = plan.supply, of_currency(plan.head)
    for i, pool in enumerate(supply.owned):
        stem, at = f"owned_{i + 1}_", ("supply", "owned", i)
        yield _one(f"{pool.id}: GPUs owned ({pool.gpu})", f"{stem}count", (*at, "count"), pool.count, COUNT, PLAIN)
        yield _one(
            f"{pool.id}: cost",
            f"{stem}cost",
            (*at, "cost_per_quarter"),
            _stated(plan, pool.cost_per_quarter),
            MONEY,
            display,
            f"{sign} a quarter",
        )
    for i, one in enumerate(supply.committed):
        stem, at = f"committed_{i + 1}_", ("supply", "committed", i)
        yield _one(
            f"{one.id}: machines committed",
            f"{stem}count",
            (*at, "count"),
            one.count,
            COUNT,
            PLAIN,
            "",
            f"{one.type}, {one.purchase}.",
        )
        yield _one(
            f"{one.id}: price",
            f"{stem}usd_per_hour",
            (*at, "usd_per_hour"),
            one.usd_per_hour,
            _or_blank(AMOUNT),
            USD_CENTS,
            "$ an hour",
            "Blank: the list price, less the discount.",
        )
    for i, quota in enumerate(supply.quota):
        stem, at = f"quota_{i + 1}_", ("supply", "quota", i)
        yield _one(
            f"Quota of {quota.type}",
            f"{stem}limit",
            (*at, "limit"),
            quota.limit,
            Kind("whole", 0, 10**9),
            PLAIN,
            "machines",
        )
        yield _one(
            f"Days to raise it, {quota.type}",
            f"{stem}days",
            (*at, "request_lead_days"),
            quota.request_lead_days,
            DAYS,
            PLAIN,
            "days",
        )


SHORT = {"users": "people", "requests": "peak_per_second", "tokens": "peak_per_second", "growth": "per_quarter"}


def put(data: dict[str, Any], at: Loc, value: Any) -> None:
    """Write a value into a plan as it was written; what was written in short is written out where that is needed."""
    part: Any = data
    for key, following in itertools.pairwise(at):
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


def changed(plan: Plan, edits: Mapping[str, Any]) -> dict[str, Any]:
    """The plan as it was written, with other values in some of its yellow cells; of a band all three are written."""
    cells, found, bands = every_cell(plan), copy.deepcopy(dict(plan.data)), set[tuple[str, ...]]()
    for name, value in edits.items():
        line, cell = cells[name]
        names = tuple(one.name for one in line.cells)
        if len(names) > 1 and names not in bands:
            bands.add(names)
            values = [edits.get(one.name, one.value) for one in line.cells]
            for one, number in zip(line.cells, values, strict=True):
                put(found, one.at, _whole(number))
        elif len(names) == 1:
            _put_one(found, cell.at, value)
    return found


def _whole(value: Any) -> Any:
    return int(value) if float(value).is_integer() else value


def _put_one(data: dict[str, Any], at: Loc, value: Any) -> None:
    """A value that stands alone; of a lead time its other quantiles are at most that."""
    if at[:2] != ("supply", "lead_time_days"):
        put(data, at, value.isoformat() if isinstance(value, datetime.date) else value)
        return
    section = (data.get("supply") or {}).get("lead_time_days") or {}
    band = section.get(at[2])
    if not isinstance(band, dict):
        put(data, at[:3], value)
        return
    for name, number in band.items():
        band[name] = value if name == at[3] else min(number, value)
