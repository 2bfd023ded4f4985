"""The yellow cells of a plan's workbook: the name of each, its place in plan.yaml, and what it takes. Their words and
displays are templates/plan_inputs.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, NamedTuple, get_args

from pydantic.fields import FieldInfo

from sheetgen import units
from sheetgen.catalog.base import Entry, Loc
from sheetgen.plan import schema
from sheetgen.plan.schema import DOLLARS, MIX, QUANTILES, Band, Growth, Head
from sheetgen.plan.stated_plan import Plan, class_in, in_class
from sheetgen.plan.tables import amounts_of
from sheetgen.question.parse import LEAST, Kind, name_part
from sheetgen.report.wording import prefix_of, sign_of
from sheetgen.shipped import shipped_table
from sheetgen.units import AS_IT_IS, PURCHASES, USD, WHOLE, Display

LARGE = 1000  # from which a whole number is shown as such
POLICY, PRICES, SUPPLY = "Policy", "Prices", "Owned, committed, quotas"


def kind_of(part: type[Entry], field: str, *, blank: bool = False) -> Kind:
    """The values that a cell takes: those that plan.yaml may have in a field."""
    stated = part.model_fields[field]
    if NoneType in get_args(stated.annotation):
        stated = FieldInfo.from_annotation(get_args(stated.annotation)[0])
    if words := get_args(stated.annotation):
        return Kind("word", words=words)
    ends = {end: getattr(bound, end) for bound in stated.metadata for end in ("gt", "ge", "le") if hasattr(bound, end)}
    low, high = ends["ge"] if "ge" in ends else ends["gt"] + LEAST, ends["le"]
    return Kind("whole" if stated.annotation is int else "share" if high <= 1 else "number", low, high, blank)


QUANTILE, SURVIVE = kind_of(schema.Policy, "plan_at"), kind_of(schema.Redundancy, "survive")
AMOUNT, MONEY = kind_of(schema.Amounts, "p50"), kind_of(schema.Owned, "cost_per_quarter", blank=True)


@dataclass(frozen=True)
class Row:
    """How a field stands on Inputs: see the table, whose {} are filled in."""

    label: str
    display: Display
    unit: str = ""
    note: str = ""
    name: str = ""
    money: bool = False
    blank: bool = False


ROWS: Mapping[str, Mapping[str, Row]] = {
    part: {name: Row(**row | {"display": getattr(units, row["display"].upper())}) for name, row in fields.items()}
    for part, fields in shipped_table("plan_inputs.toml").items()
}


class YellowCell(NamedTuple):
    """One cell: its defined name without in_, where its value stands in plan.yaml, and that value."""

    name: str
    place: Loc
    value: Any


@dataclass(frozen=True)
class Yellow:
    """A row of Inputs. value: one, or a band. is_money: the workbook's money follows it."""

    section: str
    label: str
    name: str
    place: Loc
    value: Any
    kind: Kind
    usual_display: Display
    unit: str = ""
    note: str = ""
    is_money: bool = False

    @property
    def is_band(self) -> bool:
        return isinstance(self.value, Band)

    @property
    def display(self) -> Display:
        """How its values show: large whole ones of a band as such."""
        values = [getattr(self.value, z) for z in QUANTILES] if self.is_band else []
        is_large = values and all(value >= LARGE and value.is_integer() for value in values)
        return WHOLE if is_large and self.usual_display is AS_IT_IS else self.usual_display

    @property
    def cells(self) -> tuple[YellowCell, ...]:
        """The cell, or the three of a band."""
        if not self.is_band:
            return (YellowCell(self.name, self.place, self.value),)
        return tuple(YellowCell(f"{self.name}_{z}", (*self.place, z), getattr(self.value, z)) for z in QUANTILES)


def part_of_name(text: str) -> str:
    """A quarter or a class as part of a defined name, whose letters are small: spreadsheets do not tell them apart."""
    return name_part(text).lower()


def price_name(instance: str) -> str:
    """The name of the cell with the price of a machine."""
    return f"price_{part_of_name(instance)}"


def listed_prices_of(plan: Plan, record: Mapping[str, Any]) -> dict[str, float]:
    """By machine that serves a plan what an hour costs before the discount, in the class that is bought; and of a mix
    in the class of its base, too. record: the plan as JSON."""
    machines = dict.fromkeys(row["instance"] for row in record["services"] if row["instance"])
    ways = [(name, plan.class_of(name)) for name in machines]
    orders = (order for order in record["decisions"] if plan.policy.buy == MIX and order["what"] == "order")
    ways += dict.fromkeys((order["instance"], order["purchase"]) for order in orders if order["instance"] in machines)
    prices = ((name, way, record["prices"][name][way]) for name, way in ways)
    return {
        name if class_in(name) else in_class(name, way, plan.class_of(name)): float(usd) for name, way, usd in prices
    }


def of_currency(head: Head) -> tuple[Display, str]:
    """How an amount in the plan's currency shows, and its sign."""
    sign = sign_of(head.currency)
    return USD.in_currency(prefix_of(sign)), sign


def yellow_rows(plan: Plan, listed: Mapping[str, float]) -> Iterator[Yellow]:
    """Every yellow cell, in the order of the sheet. listed: of each machine that serves the plan the price of an hour,
    in the class that is bought, before the discount."""
    policy, prices, head = plan.policy, plan.prices, plan.head
    yield _row(plan, POLICY, "Head.as_of", ("plan", "as_of"), plan.as_of, Kind("date"))
    yield from _fields(plan, POLICY, policy, ("policy",))
    yield from _fields(plan, POLICY, policy.redundancy, ("policy", "redundancy"))
    for way in (*PURCHASES, "owned"):
        days, of_days = plan.lead_days(way), ("supply", "lead_time_days", way, "p90")
        judged = " As judged: none was stated." if days and way not in plan.supply.lead_time_days else ""
        kind, name = kind_of(schema.Days, "p90"), f"lead_days_{part_of_name(way)}"
        yield _row(plan, POLICY, "Days.p90", of_days, days, kind, name, way=way, judged=judged)
    for instance, usd in listed.items():
        key = instance if class_in(instance) else in_class(instance, plan.class_of(instance), policy.purchase)
        place, name = ("prices", "usd_per_hour", key), price_name(instance)
        yield _row(plan, PRICES, "Prices.usd_per_hour", place, usd, AMOUNT, name, instance=instance)
    yield from _fields(plan, PRICES, prices, ("prices",))
    if head.currency != DOLLARS:
        rate = kind_of(Head, "fx_rate")
        yield _row(plan, PRICES, "Head.fx_rate", ("plan", "fx_rate"), head.fx_rate, rate)
    change, name = prices.expected_change_per_year, "expected_change_per_year"
    yield _row(plan, PRICES, f"Prices.{name}", ("prices", name), change, kind_of(type(change), "p50"))
    section = f"Budget, {'US dollars' if head.currency == DOLLARS else head.currency}"
    for quarter in plan.quarters:
        name, stated = f"budget_{part_of_name(str(quarter))}", _stated(plan, plan.budget.get(quarter))
        yield _row(plan, section, "Budget.quarters", ("budget", str(quarter)), stated, MONEY, name, quarter=quarter)
    for s in range(len(plan.services)):
        yield from _of_service(plan, s)
    for name in ("owned", "committed", "quota"):
        for i, part in enumerate(getattr(plan.supply, name)):
            yield from _fields(plan, SUPPLY, part, ("supply", name, i), stem=f"{name}_{i + 1}_")


def _row(
    plan: Plan, section: str, field: str, place: Loc, value: Any, kind: Kind, name: str = "", **words: Any
) -> Yellow:
    """A row of the table, by entry and field, filled in. name: of the cell, where the table does not state it."""
    part, _, of_part = field.partition(".")
    row, (shown, sign) = ROWS[part][of_part], of_currency(plan.head)
    filled = {"sign": sign, "code": plan.head.currency, **words}
    label, unit, note = (text.format(**filled) for text in (row.label, row.unit, row.note))
    display = shown if row.display is USD else row.display
    return Yellow(section, label, name or row.name or of_part, place, value, kind, display, unit, note, row.money)


def _fields(plan: Plan, section: str, part: Entry, place: Loc, stem: str = "") -> Iterator[Yellow]:
    """The fields of a part of the plan that hold one number or word."""
    for field, row in ROWS[type(part).__name__].items():
        value = getattr(part, field)
        if not isinstance(value, Mapping | Band):
            kind, stated = (
                kind_of(type(part), field, blank=row.blank),
                _stated(plan, value) if row.display is USD else value,
            )
            input_name, name = f"{type(part).__name__}.{field}", f"{stem}{row.name or field}"
            yield _row(plan, section, input_name, (*place, field), stated, kind, name, part=part)


def _stated(plan: Plan, usd: float | None) -> float | None:
    """Dollars as the plan states them, in its currency; without the trace of having been divided by its rate."""
    return usd if usd is None or plan.head.currency == DOLLARS else float(f"{usd * plan.head.fx_rate:.14g}")


def _of_service(plan: Plan, s: int) -> Iterator[Yellow]:
    service = plan.services[s]
    section = f"{service.id}{f' ({service.owner})' if service.owner else ''}"
    stem, demand = f"service_{s + 1}_", service.demand
    base: Loc = ("services", s)
    written = plan.data["services"][s]["demand"]  # where requests at once may have their old name
    stated = next(name for name, value in written.items() if value is not None)
    for name, value in amounts_of(demand).items():
        if service.profile is not None and name == "peak_hour_share":
            continue  # it is the profile's
        kind = AMOUNT if isinstance(value, Band) else kind_of(type(getattr(demand, stated)), name)
        place = (*base, "demand", stated) if name == "at_once" else (*base, "demand", stated, name)
        yield _row(plan, section, f"Demand.{name}", place, value, kind, f"{stem}{name}", amount=stated.capitalize())
    for key, quarter, band in _growth(plan, service.growth) if service.growth else ():
        name, kind = f"{stem}growth_{part_of_name('_'.join(map(str, key)))}", kind_of(type(band), "p50")
        yield _row(plan, section, f"Growth.{key[0]}", (*base, "growth", *key), band, kind, name, quarter=quarter)
    if _holder(plan, s, "floor_replicas") == s:
        name, kind = "floor_replicas", kind_of(schema.Service, "floor_replicas")
        yield _row(plan, section, f"Service.{name}", (*base, name), service.floor_replicas or 1, kind, f"{stem}{name}")
    if service.redundancy is not None and _holder(plan, s, "redundancy") == s:
        yield from _fields(plan, section, service.redundancy, (*base, "redundancy"), stem)


def _growth(plan: Plan, growth: Growth) -> Iterator[tuple[Loc, str, Band]]:
    """The bands of a growth, by their place in it, each with its quarter."""
    if growth.per_quarter is not None:
        yield ("per_quarter",), "", growth.per_quarter
    for i, band in enumerate(growth.series or ()):
        yield ("series", i), str(plan.quarters[i]) if i < len(plan.quarters) else f"quarter {i + 1}", band
    for step, band in (growth.steps or {}).items():
        yield ("steps", str(step)), str(step), band


def _holder(plan: Plan, s: int, name: str) -> int:
    """The service whose field of that name holds for a service: its own, or that of the one that it is like."""
    ids = [service.id for service in plan.services]
    while name not in plan.data["services"][s] and plan.services[s].like is not None:
        s = ids.index(str(plan.services[s].like))
    return s
