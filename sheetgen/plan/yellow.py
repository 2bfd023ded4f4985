"""The yellow cells of a plan's workbook: the name of each, its place in plan.yaml, and what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sheetgen.catalog.base import Loc
from sheetgen.plan.schema import DOLLARS, MIX, QUANTILES, Band, Growth, Head
from sheetgen.plan.stated_plan import Plan, class_in, in_class
from sheetgen.plan.tables import bands_of, numbers_of
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.parse import LEAST, SHARE, SHARE_ABOVE_0, Kind, name_part
from sheetgen.report.wording import prefix_of, sign_of
from sheetgen.units import AS_IT_IS, DATE, EXACT_PERCENT, FACTOR, PLAIN, PURCHASES, TEXT, USD, USD_CENTS, WHOLE, Display

AMOUNT, MONEY = Kind("number", LEAST, 1e12), Kind("number", 0, 1e12)
OR_BLANK = {kind: Kind(kind.what, kind.low, kind.high, blank=True) for kind in (AMOUNT, MONEY)}
CHANGE = Kind("number", LEAST - 1, 100)
DAYS, LEAD_DAYS = Kind("whole", 0, 730), Kind("number", 0, 3650)
COUNT = Kind("whole", 1, 10**9)
LARGE = 1000  # from which a whole number is shown as such
POLICY, PRICES, SUPPLY = "Policy", "Prices", "Owned, committed, quotas"
QUANTILE, SURVIVE = Kind("word", words=QUANTILES), Kind("word", words=BY_NAME["survive"].words)

Row = tuple[str, str, Kind, Display, str, str]  # label, field, what it takes, how it shows, unit, note
REDUNDANCY: tuple[Row, ...] = (
    ("What may be lost", "survive", SURVIVE, TEXT, "", f"{', '.join(SURVIVE.words)}."),
    ("Zones", "zones", Kind("whole", 2, 20), PLAIN, "", "Over which replicas are spread, where a zone may be lost."),
    ("Spare replicas", "replicas", Kind("whole", 0, 10**9), PLAIN, "", "More than the load takes."),
    ("Up at once after a loss", "hot_share", SHARE, EXACT_PERCENT, "",
     "Of the replicas that the load needs; the others start anew on spare machines that services share."),
)  # fmt: skip
OF_POLICY: tuple[Row, ...] = (
    ("Capacity is bought for", "plan_at", QUANTILE, TEXT, "",
     "This quantile of each service's demand; money is shown at all three."),
    ("Headroom", "headroom_fraction", SHARE, EXACT_PERCENT, "", "Room above the load."),
    ("Kept after the need falls", "release_after_quarters", Kind("whole", 0, 8), PLAIN, "quarters",
     "Quarters of lower need after which machines are given back."),
    ("Both run in a move", "move_days", LEAD_DAYS, AS_IT_IS, "days",
     "Old and new replicas, in a move to other machines; moves must save more than that."),
    ("Approval", "approval_days", DAYS, PLAIN, "days", "From the request to the order."),
)  # fmt: skip
OF_PRICES: tuple[Row, ...] = (
    ("Discount", "discount_fraction", Kind("share", 0, 0.99), EXACT_PERCENT, "", "Of a contract, off list prices."),
    ("Contingency", "contingency_fraction", SHARE, EXACT_PERCENT, "", "A line of its own, counted by the budget."),
    ("Hours run", "hours_per_month", Kind("number", 1, 744), AS_IT_IS, "a month", "Commitments are paid in all."),
)  # fmt: skip
OF_DEMAND: dict[str, tuple[str, str, Kind, Display]] = {
    "at_once": ("Requests at once", "requests", AMOUNT, AS_IT_IS),
    "people": ("People", "", AMOUNT, AS_IT_IS),
    "requests_per_user_per_day": ("Requests of each of them a day", "requests", AMOUNT, AS_IT_IS),
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
}  # fmt: skip


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
    policy, prices, (shown, sign) = plan.policy, plan.prices, of_currency(plan.head)
    about = "Orders whose day is before it are late."
    yield Yellow(POLICY, "Day of the plan", "as_of", ("plan", "as_of"), plan.as_of, Kind("date"), DATE, "", about)
    yield from _fields(POLICY, OF_POLICY, policy, ("policy",))
    yield from _fields(POLICY, REDUNDANCY, policy.redundancy, ("policy", "redundancy"))
    for way in (*PURCHASES, "owned"):
        days, name = plan.lead_days(way), f"lead_days_{part_of_name(way)}"
        place: Loc = ("supply", "lead_time_days", way, "p90")
        about = "That nine of ten orders keep to."
        if days and way not in plan.supply.lead_time_days:
            about += " As judged: none was stated."
        yield Yellow(POLICY, f"Lead time, {way}", name, place, days, LEAD_DAYS, AS_IT_IS, "days", about)
    for instance, usd in listed.items():
        key = instance if class_in(instance) else in_class(instance, plan.class_of(instance), policy.purchase)
        place = ("prices", "usd_per_hour", key)
        yield Yellow(PRICES, instance, price_name(instance), place, usd, AMOUNT, USD_CENTS, "$ an hour", "", True)
    yield from _fields(PRICES, OF_PRICES, prices, ("prices",), is_money=True)
    if plan.head.currency != DOLLARS:
        rate, label = BY_NAME["fx_rate"].kind, f"{plan.head.currency} for one US dollar"
        about = "Budgets and costs of pools are stated in it."
        yield Yellow(PRICES, label, "fx_rate", ("plan", "fx_rate"), plan.head.fx_rate, rate, FACTOR, "", about, True)
    place, about = ("prices", "expected_change_per_year"), "p50 is live; p10 and p90 are in the joint draws alone."
    label, change = "Change of prices a year", prices.expected_change_per_year
    yield Yellow(PRICES, label, "price_change", place, change, CHANGE, EXACT_PERCENT, "", about, True)
    section = f"Budget, {'US dollars' if plan.head.currency == DOLLARS else plan.head.currency}"
    for quarter in plan.quarters:
        name, stated = f"budget_{part_of_name(str(quarter))}", _stated(plan, plan.budget.get(quarter))
        place = ("budget", str(quarter))
        yield Yellow(section, str(quarter), name, place, stated, OR_BLANK[MONEY], shown, sign, "Blank: none.", True)
    for s in range(len(plan.services)):
        yield from _of_service(plan, s)
    yield from _of_supply(plan)


def _fields(
    section: str, rows: Sequence[Row], part: Any, place: Loc, *, stem: str = "", is_money: bool = False
) -> Iterator[Yellow]:
    """The fields of a part of the plan, one a row."""
    for label, field, kind, display, unit, note in rows:
        name = f"{stem}{'spare_replicas' if field == 'replicas' else field}"
        yield Yellow(section, label, name, (*place, field), getattr(part, field), kind, display, unit, note, is_money)


def _stated(plan: Plan, usd: float | None) -> float | None:
    """Dollars as the plan states them, in its currency; without the trace of having been divided by its rate."""
    return usd if usd is None or plan.head.currency == DOLLARS else float(f"{usd * plan.head.fx_rate:.14g}")


def _of_service(plan: Plan, s: int) -> Iterator[Yellow]:
    service = plan.services[s]
    section = f"{service.id}{f' ({service.owner})' if service.owner else ''}"
    stem, stated = f"service_{s + 1}_", service.demand
    base: Loc = ("services", s)
    written = plan.data["services"][s]["demand"]  # where requests at once may have their old name
    key = next(name for name, value in written.items() if value is not None)
    of_demand: Loc = (*base, "demand", key)
    for name, band in bands_of(stated).items():
        label, unit, kind, display = OF_DEMAND[name]
        label = f"{key.capitalize()}: {label.lower()}" if key in ("requests", "tokens") else label
        place = of_demand if name == "at_once" else (*of_demand, name)
        yield Yellow(section, label, f"{stem}{name}", place, band, kind, display, unit)
    for name, value in numbers_of(stated).items():
        if service.profile is not None and name == "peak_hour_share":
            continue  # it is the profile's
        label, unit, kind, display = OF_DEMAND[name]
        yield Yellow(section, label, f"{stem}{name}", (*of_demand, name), value, kind, display, unit)
    for key, label, growing in _growth(plan, service.growth) if service.growth else ():
        kind, display = (CHANGE, EXACT_PERCENT) if key[0] == "per_quarter" else (AMOUNT, AS_IT_IS)
        name = f"{stem}growth_{part_of_name('_'.join(map(str, key)))}"
        yield Yellow(section, label, name, (*base, "growth", *key), growing, kind, display)
    if _holder(plan, s, "floor_replicas") == s:
        floor, name = service.floor_replicas or 1, "floor_replicas"
        yield Yellow(section, "Replicas at least", f"{stem}{name}", (*base, name), floor, COUNT, PLAIN)
    if service.redundancy is not None and _holder(plan, s, "redundancy") == s:
        yield from _fields(section, REDUNDANCY, service.redundancy, (*base, "redundancy"), stem=stem)


def _growth(plan: Plan, growth: Growth) -> Iterator[tuple[Loc, str, Band]]:
    """The bands of a growth, by their place in it, with their labels."""
    if growth.per_quarter is not None:
        yield ("per_quarter",), "Growth a quarter", growth.per_quarter
    for i, band in enumerate(growth.series or ()):
        quarter = plan.quarters[i] if i < len(plan.quarters) else f"quarter {i + 1}"
        yield ("series", i), f"Demand over that stated, in {quarter}", band
    for step, band in (growth.steps or {}).items():
        yield ("steps", str(step)), f"Demand over that stated, from {step} on", band


def _holder(plan: Plan, s: int, name: str) -> int:
    """The service whose field of that name holds for a service: its own, or that of the one that it is like."""
    ids = [service.id for service in plan.services]
    while name not in plan.data["services"][s] and plan.services[s].like is not None:
        s = ids.index(str(plan.services[s].like))
    return s


def _of_supply(plan: Plan) -> Iterator[Yellow]:
    supply, (shown, sign) = plan.supply, of_currency(plan.head)
    for i, pool in enumerate(supply.owned):
        stem, base = f"owned_{i + 1}_", ("supply", "owned", i)
        label = f"{pool.id}: GPUs owned ({pool.gpu})"
        yield Yellow(SUPPLY, label, f"{stem}count", (*base, "count"), pool.count, COUNT, PLAIN)
        cost, place = _stated(plan, pool.cost_per_quarter), (*base, "cost_per_quarter")
        label = f"{pool.id}: cost"
        yield Yellow(SUPPLY, label, f"{stem}cost", place, cost, MONEY, shown, f"{sign} a quarter", "", True)
    for i, term in enumerate(supply.committed):
        stem, base, about = f"committed_{i + 1}_", ("supply", "committed", i), f"{term.type}, {term.purchase}."
        label = f"{term.id}: machines committed"
        yield Yellow(SUPPLY, label, f"{stem}count", (*base, "count"), term.count, COUNT, PLAIN, "", about)
        label, name, kind = f"{term.id}: price", f"{stem}usd_per_hour", OR_BLANK[AMOUNT]
        place, about = (*base, "usd_per_hour"), "Blank: the list price, less the discount."
        yield Yellow(SUPPLY, label, name, place, term.usd_per_hour, kind, USD_CENTS, "$ an hour", about, True)
    for i, quota in enumerate(supply.quota):
        stem, base, whole = f"quota_{i + 1}_", ("supply", "quota", i), Kind("whole", 0, 10**9)
        label = f"Quota of {quota.type}"
        yield Yellow(SUPPLY, label, f"{stem}limit", (*base, "limit"), quota.limit, whole, PLAIN, "machines")
        label, days = f"Days to raise it, {quota.type}", quota.request_lead_days
        yield Yellow(SUPPLY, label, f"{stem}days", (*base, "request_lead_days"), days, DAYS, PLAIN, "days")
