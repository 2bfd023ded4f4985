"""Money really spent and loads measured: a CSV in FOCUS columns or in a few of our own, by quarter, against the plan.

FOCUS (focus.finops.org, version 1.2): EffectiveCost in place of what was billed, as it spreads commitments over the
hours that they cover; CommitmentDiscountStatus says what of them nobody used.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from sheetgen.catalog.base import first_fault
from sheetgen.errors import Problems, ScenarioError, did_you_mean, shown
from sheetgen.input_files import read_bounded
from sheetgen.plan.plan_currency import IN_DOLLARS, Currency
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER, Quarter, quarter_of
from sheetgen.plan.schema import COMMITTED, DOLLARS, OWNED, InQuarter, Line, one_line
from sheetgen.plan.spending import A_CENT, in_dollars
from sheetgen.plan.stated_plan import machine_in
from sheetgen.question.parse import number
from sheetgen.units import PURCHASES

MOST_BYTES = 200_000_000
MOST_PROBLEMS = 20  # that are named one by one
MOST_COLUMNS = 500  # an export of costs has a hundred
MOST = 1e12  # of a number, as in plan.yaml
STARTS, ENDS = ("ChargePeriodStart", "BillingPeriodStart"), ("ChargePeriodEnd", "BillingPeriodEnd")
FOCUS = (
    *STARTS, *ENDS, "EffectiveCost", "BilledCost", "ChargeCategory",
    "CommitmentDiscountStatus", "PricingCategory", "BillingCurrency", "Tags", "SkuId", "ServiceName",
)  # fmt: skip
COUNTED = ("", "usage", "purchase", "adjustment")  # of ChargeCategory; tax and credits are not capacity
SPOT = "dynamic"  # FOCUS's PricingCategory for it
UNTAGGED = "idle, or not tagged"  # of charges, and of what is planned
_DAY_LONG = datetime.timedelta(days=1)


def _amount(text: Any) -> float:
    """Raises ValueError for what is no number of at most MOST."""
    amount = number(text)
    if not abs(amount) <= MOST:  # nor is NaN
        raise ValueError(f"must be a number of at most {MOST:,.0f}")
    return amount


def _count(text: Any) -> float:
    """Raises ValueError for what is no such number, or below 0."""
    if (amount := _amount(text)) < 0:
        raise ValueError(f"must be a number from 0 to {MOST:,.0f}")
    return amount


def _whole(text: Any) -> float:
    """Raises ValueError for what is no whole number from 0."""
    if (amount := _count(text)) != int(amount):
        raise ValueError("must be a whole number")
    return amount


def _day(text: Any) -> datetime.date:
    """The day of a time. Raises ValueError."""
    try:
        return datetime.datetime.fromisoformat(text).date()
    except ValueError:
        raise ValueError("must be a day such as 2027-01-31") from None


def _tagged(text: Any) -> str:
    """The service that tags name, a mapping as JSON; nothing where there is none. Raises ValueError."""
    try:
        tags = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError('are no JSON that can be read, such as {"service": "chat"}') from None
    service = tags.get("service") if isinstance(tags, dict) else None
    return "" if service is None else one_line(str(service).strip())


Amount = Annotated[float, PlainValidator(_amount)]
Count = Annotated[float, PlainValidator(_count)]
Whole = Annotated[float, PlainValidator(_whole)]
Day = Annotated[datetime.date, PlainValidator(_day)]


class _Row(BaseModel):
    """A line of a CSV, without the cells that are blank."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Actual(_Row):
    """A cost in a quarter, or a measurement there."""

    quarter: InQuarter
    first: Day | None = Field(None, alias="from")
    last: Day | None = Field(None, alias="until")  # neither: all of the quarter
    usd: Amount = 0.0
    unused_usd: float = 0.0  # of it: commitments that nobody used
    purchase: Line = ""
    service: Line = ""
    instance: Line = ""
    n_instances: Count | None = None  # on average
    in_flight_peak: Count | None = None
    replicas: Whole | None = None  # at that peak


OWN = [field.alias or name for name, field in Actual.model_fields.items() if name != "unused_usd"]


class _Focus(_Row):
    """A charge in the columns of FOCUS."""

    first: Day = Field(validation_alias=AliasChoices(*STARTS))
    end: Day | None = Field(None, validation_alias=AliasChoices(*ENDS))  # the day after
    amount: Amount = Field(validation_alias=AliasChoices("EffectiveCost", "BilledCost"))
    status: Line = Field("", alias="CommitmentDiscountStatus")
    pricing: Line = Field("", alias="PricingCategory")
    currency: Annotated[Line, AfterValidator(str.upper)] = Field(DOLLARS, alias="BillingCurrency")
    service: Annotated[str, PlainValidator(_tagged)] = Field("", alias="Tags")
    instance: Line = Field("", validation_alias=AliasChoices("x_InstanceType", "SkuId"))


@dataclass(frozen=True)
class Actuals:
    lines: Sequence[Actual]
    left_out: int  # lines that are no capacity: tax, credits
    fiscal_year_starts: int = 1

    @property
    def quarters(self) -> list[Quarter]:
        return sorted({line.quarter for line in self.lines})

    def of(self, quarter: Quarter) -> list[Actual]:
        return [line for line in self.lines if line.quarter == quarter]

    def days(self, quarter: Quarter) -> tuple[int, int]:
        """The days of a quarter of which the lines speak, from the first to the last of all of them; and all its
        days."""
        first, last = quarter.first_day(self.fiscal_year_starts), quarter.last_day(self.fiscal_year_starts)
        is_dated = all(line.first and line.last for line in self.of(quarter))
        starts, ends = (
            [day for line in self.lines if is_dated and (day := getattr(line, end)) is not None]
            for end in ("first", "last")
        )
        begins, finishes = max(first, min(starts, default=first)), min(last, max(ends, default=last))
        return (finishes - begins).days + 1, (last - first).days + 1


def read_actuals(path: Path, fiscal_year_starts: int = 1, currency: Currency = IN_DOLLARS) -> Actuals:
    """The lines of a CSV, whose bills are in US dollars or in a plan's currency. Raises ScenarioError with every line
    that cannot be read."""
    where = shown(path, 200)
    try:
        text = read_bounded(path, MOST_BYTES, "Name a CSV.", pipes=True).decode("utf-8-sig")
        rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        heads = [head or "" for head in rows.fieldnames or ()]
    except (ValueError, csv.Error) as error:  # UnicodeDecodeError is a ValueError
        raise ScenarioError(f"{where}: {str(error).rstrip('.')}.") from None
    of_focus = "EffectiveCost" in heads or "BilledCost" in heads
    _check_heads(where, heads, of_focus)
    problems, lines, left_out = Problems(), list[Actual](), 0
    try:
        for cells in rows:
            row = {name: text for name, cell in cells.items() if isinstance(cell, str) and (text := cell.strip())}
            try:
                if None in cells:
                    raise ValueError("has more cells than the first line has columns.")
                line = _of_focus(row, fiscal_year_starts, currency) if of_focus else _own(row, fiscal_year_starts)
            except ValidationError as error:
                fault = first_fault(error, _Focus if of_focus else Actual)
                problems.append(f"{where}:{rows.line_num}: {fault}")
                continue
            except ValueError as error:
                problems.append(f"{where}:{rows.line_num}: {error}")
                continue
            if line is None:
                left_out += 1
            else:
                lines.append(line)
    except csv.Error as error:
        problems.append(f"{where}:{rows.line_num}: {error}.")
    if not lines and not problems:
        problems.append(f"{where}: holds no line of capacity.")
    if len(problems) > MOST_PROBLEMS:
        problems[MOST_PROBLEMS:] = [f"{where}: {len(problems) - MOST_PROBLEMS:,} lines more cannot be read."]
    if problems:
        raise ScenarioError(*problems)
    return Actuals(lines, left_out, fiscal_year_starts)


def _check_heads(where: str, heads: Sequence[str], of_focus: bool) -> None:
    if len(heads) > MOST_COLUMNS:
        raise ScenarioError(f"{where}:1: has {len(heads):,} columns. {MOST_COLUMNS:,} are the most.")
    if twice := sorted({head for head in heads if heads.count(head) > 1}):
        raise ScenarioError(f"{where}:1: column {shown(twice[0])} stands twice. Keep one.")
    if of_focus:
        if not {*STARTS} & {*heads}:
            raise ScenarioError(f"{where}:1: column ChargePeriodStart is missing, which says when it was spent.")
        return
    if "quarter" not in heads:
        near = next(filter(None, (did_you_mean(head, (*OWN, *FOCUS)) for head in heads if head not in OWN)), "")
        ours = f"neither the column quarter (ours are {', '.join(OWN)})"
        raise ScenarioError(f"{where}:1: has {ours} nor those of FOCUS (ChargePeriodStart, EffectiveCost, ...).{near}")
    ours = f" Ours are {', '.join(OWN)}."
    unknown = [
        f"{where}:1: unknown column {shown(head)}.{did_you_mean(head, OWN)}{ours}" for head in heads if head not in OWN
    ]
    if unknown:
        raise ScenarioError(*unknown[:MOST_PROBLEMS])


def _of_focus(row: Mapping[str, str], fiscal_year_starts: int, currency: Currency) -> Actual | None:
    if row.get("ChargeCategory", "usage").lower() not in COUNTED:
        return None
    charge = _Focus.model_validate(row)
    first, end, status = charge.first, charge.end, charge.status.lower()
    if end is None:  # of a month, where that begins then; else of a day
        end = (first + 31 * _DAY_LONG).replace(day=1) if first.day == 1 else first + _DAY_LONG
    if charge.currency not in (DOLLARS, currency.code):
        read = (
            f"{DOLLARS} and {currency.code}" if currency.code != DOLLARS else f"{DOLLARS}, and the currency of a plan,"
        )
        raise ValueError(f"BillingCurrency is {shown(charge.currency)!r}. Only {read} are read: convert it first.")
    usd = float(in_dollars(charge.amount, 1 if charge.currency == DOLLARS else currency.per_usd))
    return Actual.model_construct(
        quarter=quarter_of(first, fiscal_year_starts),
        first=first,
        last=max(first, end - _DAY_LONG),
        usd=usd,
        unused_usd=usd if status == "unused" else 0.0,
        purchase=COMMITTED if status else "spot" if charge.pricing.lower() == SPOT else "on-demand",
        service=charge.service,
        instance=charge.instance,
    )


def _own(row: Mapping[str, str], fiscal_year_starts: int) -> Actual:
    line = Actual.model_validate(row)
    for name, day in (("from", line.first), ("until", line.last)):
        if day is not None and quarter_of(day, fiscal_year_starts) != line.quarter:
            raise ValueError(f"{name} {day} is not in {line.quarter}.")
    if line.first is None and line.last is None:
        return line
    ends = line.quarter.first_day(fiscal_year_starts), line.quarter.last_day(fiscal_year_starts)
    return line.model_copy(update={"first": line.first or ends[0], "last": line.last or ends[1]})


def _sums(lines: Sequence[Actual], name: str) -> dict[str, float]:
    """The cost of lines by one of their texts; of no text under ""."""
    names = sorted({getattr(line, name) for line in lines})
    return {text: math.fsum(line.usd for line in lines if getattr(line, name) == text) for text in names}


def by_quarter(actuals: Actuals) -> Iterator[dict[str, Any]]:
    """By quarter what was spent, and how."""
    for quarter in actuals.quarters:
        mine = actuals.of(quarter)
        days, of_days = actuals.days(quarter)
        yield {
            "quarter": str(quarter),
            "days": days,
            "of_days": of_days,
            "usd": math.fsum(line.usd for line in mine),
            "unused_usd": math.fsum(line.unused_usd for line in mine),
            **{
                f"by_{name}": {text: usd for text, usd in _sums(mine, name).items() if text}
                for name in ("purchase", "service", "instance")
            },
        }


def measured(actuals: Actuals) -> Iterator[dict[str, Any]]:
    """By service and quarter the highest load that was measured, and the replicas that served it."""
    peaks: dict[tuple[str, Quarter], Actual] = {}
    for line in sorted(actuals.lines, key=lambda line: -(line.in_flight_peak or 0)):
        if line.service and line.in_flight_peak is not None and line.replicas is not None:
            peaks.setdefault((line.service, line.quarter), line)
    for (service, quarter), line in sorted(peaks.items()):
        yield {"id": service, "quarter": str(quarter), "in_flight_peak": line.in_flight_peak, "replicas": line.replicas}


def _compared(
    plan: Mapping[str, Any], actuals: Actuals
) -> Iterator[tuple[str, Mapping[str, Any], list[Actual], tuple[int, int]]]:
    """Each quarter of a plan's JSON that was spent: its name, its money, the lines of it, and how many of its days they
    cover."""
    money = {row["quarter"]: row for row in plan["money"]}
    for quarter in actuals.quarters:
        if str(quarter) in money:
            yield str(quarter), money[str(quarter)], actuals.of(quarter), actuals.days(quarter)


def against(plan: Mapping[str, Any], actuals: Actuals) -> Iterator[dict[str, Any]]:
    """Each quarter of a plan's JSON that was spent, beside what the plan said of the same days; what is owned apart, as
    no cloud charges it."""
    for quarter, of_plan, lines, (days, of_days) in _compared(plan, actuals):
        share, spent = days / of_days, _sums(lines, "purchase")
        owned, usd = spent.pop(OWNED, 0.0), math.fsum(spent.values())
        low, middle, high = (share * (of_plan[f"{z}_usd"] - of_plan["owned_usd"]) for z in ("p10", "p50", "p90"))
        yield {
            "quarter": quarter,
            "days": days,
            "of_days": of_days,
            "p50_usd": middle,
            "p90_usd": high,
            "actual_usd": usd,
            "difference_usd": usd - middle,
            "error_fraction": middle / usd - 1 if usd else None,
            "inside_band": low <= usd <= high,
            "owned_planned_usd": share * of_plan["owned_usd"],
            "owned_actual_usd": owned,
        }


def variance(plan: Mapping[str, Any], actuals: Actuals) -> Iterator[dict[str, Any]]:
    """Each quarter of a plan's JSON that was spent, without owned machines: by service, class and machine what was
    planned at p50 for the same days, and what was spent. Of no service is what serves none, or is not tagged; of no
    machine what names none."""
    for quarter, of_plan, lines, (days, of_days) in _compared(plan, actuals):
        rows = [row for row in plan["services"] if row["quarter"] == quarter and row["quantile"] == "p50"]
        machines = _of_machines(plan, quarter)
        names = {_machine(name): name for name in machines}
        is_told = COMMITTED not in {line.purchase for line in lines}
        charged = [
            line.model_copy(
                update={
                    "instance": names.get(_machine(line.instance), line.instance),
                    "purchase": _class(line.purchase, is_told),
                }
            )
            for line in lines
            if line.purchase != OWNED
        ]
        classes = dict[str, float]()
        for purchase, usd in of_plan["by_class_usd"].items():
            key = _class(purchase, is_told)
            classes[key] = classes.get(key, 0.0) + usd
        planned = {"service": _of_services(rows, machines), "purchase": classes, "instance": machines}
        for by, parts in planned.items():
            spent = _sums(charged, by)
            for name in sorted({*parts, *spent}):
                usd, expected = spent.get(name, 0.0), parts.get(name, 0.0) * days / of_days
                if usd or expected:
                    yield {
                        "quarter": quarter,
                        "by": by,
                        "name": name or None,
                        "planned_usd": expected,
                        "actual_usd": usd,
                        "difference_usd": usd - expected,
                    }


def _class(purchase: str, is_told: bool) -> str:
    """A purchase class as charges tell it: those of FOCUS do not tell one commitment from another."""
    return purchase if is_told or purchase not in PURCHASES or not PURCHASES[purchase].committed else COMMITTED


def _of_machines(plan: Mapping[str, Any], quarter: str) -> dict[str, float]:
    """The cost of each machine in a quarter, whatever its class, less what is owned."""
    usd: dict[str, float] = {}
    for row in plan["supply"]:
        if row["quarter"] == quarter:
            name = machine_in(row["instance"])
            usd[name] = usd.get(name, 0.0) + row["p50_usd"]
    return usd


def _of_services(rows: Sequence[Mapping[str, Any]], machines: Mapping[str, float]) -> dict[str, float]:
    """The cost of machines by the services on them, spare and idle ones too, as bills are tagged; under "" what serves
    none."""
    filled, usd = dict[str, float](), dict[str, float]()
    served = [(row["id"], machine_in(row["instance"]), row["n_instances"]) for row in rows if row["n_instances"]]
    for _, name, n in served:
        filled[name] = filled.get(name, 0.0) + n
    for service, name, n in served:
        usd[service] = usd.get(service, 0.0) + machines[name] * n / filled[name]
    return usd | {"": math.fsum(amount for name, amount in machines.items() if name not in filled)}


def not_in_plan(plan: Mapping[str, Any], actuals: Actuals) -> list[str]:
    """The services of lines that the plan does not have."""
    ids = {row["id"] for row in plan["services"]}
    return sorted({line.service for line in actuals.lines if line.service and line.service not in ids})


def of_services(plan: Mapping[str, Any], actuals: Actuals) -> Iterator[dict[str, Any]]:
    """By quarter and service what a plan's JSON planned at p50 for the same days, what of it was approved for the
    demand that it was bought for, and what was spent; with the requests at once of that demand, and those that were
    measured at the peak."""
    peaks, plan_at = dict[tuple[str, str], float](), plan.get("plan_at", "p90")
    for line in actuals.lines:
        if line.in_flight_peak is not None:
            subject = str(line.quarter), line.service
            peaks[subject] = max(line.in_flight_peak, peaks.get(subject, 0.0))
    at_once = {
        (row["quarter"], row["id"]): row.get("concurrent_requests")
        for row in plan["services"]
        if row["quantile"] == plan_at
    }
    spent = {(part["quarter"], part["name"]): part for part in variance(plan, actuals) if part["by"] == "service"}
    for quarter, money, _, (days, of_days) in _compared(plan, actuals):
        approved = _approved(plan, quarter, money)
        names = dict.fromkeys((*(name for of_quarter, name in spent if of_quarter == quarter), *approved))
        for name in names:
            part = spent.get((quarter, name), {"planned_usd": 0.0, "actual_usd": 0.0})
            usd = part["planned_usd"], approved.get(name, 0.0) * days / of_days, part["actual_usd"]
            if any(abs(amount) >= A_CENT for amount in usd):
                row = dict(zip(("planned", "approved", "measured"), usd, strict=True))
                subject = quarter, name or ""
                measured_peak = {"planned_at_once": at_once.get(subject), "in_flight_peak": peaks.get(subject)}
                yield {"quarter": quarter, "service": name, **row, **measured_peak}


def _approved(plan: Mapping[str, Any], quarter: str, of_plan: Mapping[str, Any]) -> dict[str | None, float]:
    """The cost of a quarter by service at the demand that was bought for, less what is owned; under None the rest."""
    plan_at = plan.get("plan_at", "p90")
    mine = (row for row in plan["services"] if (row["quarter"], row["quantile"]) == (quarter, plan_at))
    usd: dict[str | None, float] = {
        row["id"]: MONTHS_IN_A_QUARTER * (row["monthly_usd"] - row.get("monthly_owned_usd", 0))
        for row in mine
        if row["instance"]
    }
    return usd | {None: of_plan[f"{plan_at}_usd"] - of_plan["owned_usd"] - math.fsum(usd.values())}


def _machine(name: str) -> str:
    """A machine as bills name it, which is without its provider and its class."""
    return machine_in(name).rpartition("/")[2].lower()
