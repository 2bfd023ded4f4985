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
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sheetgen.catalog.base import read_bounded
from sheetgen.errors import Problems, ScenarioError, did_you_mean, shown
from sheetgen.plan.plan_currency import IN_DOLLARS, Currency
from sheetgen.plan.quarters import Quarter, quarter_of
from sheetgen.plan.schema import DOLLARS
from sheetgen.plan.spending import in_dollars
from sheetgen.plan.stated_plan import machine_in
from sheetgen.question.parse import MOST_TEXT, number
from sheetgen.units import PURCHASES

MOST_BYTES = 200_000_000
MOST_PROBLEMS = 20  # that are named one by one
MOST_COLUMNS = 500  # an export of costs has a hundred
MOST = 1e12  # of a number, as in plan.yaml
OWN = (
    "quarter", "from", "until", "service", "instance", "purchase", "usd", "n_instances", "in_flight_peak", "replicas",
)  # fmt: skip
STARTS, ENDS = ("ChargePeriodStart", "BillingPeriodStart"), ("ChargePeriodEnd", "BillingPeriodEnd")
FOCUS = (
    *STARTS, *ENDS, "EffectiveCost", "BilledCost", "ChargeCategory",
    "CommitmentDiscountStatus", "PricingCategory", "BillingCurrency", "Tags", "SkuId", "ServiceName",
)  # fmt: skip
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ].*)?")
COUNTED = ("", "usage", "purchase", "adjustment")  # of ChargeCategory; tax and credits are not capacity
SPOT = "dynamic"  # FOCUS's PricingCategory for it
UNTAGGED = "idle, or not tagged"  # of charges, and of what is planned
OWNED, COMMITTED = "owned", "committed"  # classes of what is paid anyway
_DAY_LONG = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Actual:
    """One line: what something cost in a quarter, or what was measured there."""

    quarter: Quarter
    days: tuple[datetime.date | None, datetime.date | None] = (None, None)  # the first and the last; None: all of it
    usd: float = 0.0
    unused_usd: float = 0.0  # of it: commitments that nobody used
    purchase: str = ""
    service: str = ""
    instance: str = ""
    n_instances: float | None = None
    in_flight_peak: float | None = None
    replicas: float | None = None


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
        starts, ends = (
            [day for line in self.lines if (day := line.days[end]) is not None] if self._is_dated(quarter) else []
            for end in (0, 1)
        )
        begins, finishes = max(first, min(starts, default=first)), min(last, max(ends, default=last))
        return (finishes - begins).days + 1, (last - first).days + 1

    def _is_dated(self, quarter: Quarter) -> bool:
        """True where all lines of a quarter have days."""
        return all(None not in line.days for line in self.of(quarter))


def read_actuals(path: Path, fiscal_year_starts: int = 1, currency: Currency = IN_DOLLARS) -> Actuals:
    """The lines of a CSV, whose bills are in US dollars or in a plan's currency. Raises ScenarioError with every line
    that cannot be read."""
    where = shown(path, 200)
    try:
        text = read_bounded(path, MOST_BYTES, "Name a CSV.").decode("utf-8-sig")
        rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        heads = [head or "" for head in rows.fieldnames or ()]
    except (ValueError, csv.Error) as error:  # UnicodeDecodeError is a ValueError
        raise ScenarioError(f"{where}: {str(error).rstrip('.')}.") from None
    of_focus = "EffectiveCost" in heads or "BilledCost" in heads
    _check_heads(where, heads, of_focus)
    problems, lines, left_out = Problems(), list[Actual](), 0
    try:
        for row in rows:
            try:
                line = _of_focus(row, fiscal_year_starts, currency) if of_focus else _own(row, fiscal_year_starts)
            except ValueError as error:
                problems.append(f"{where}:{rows.line_num}: {error}.")
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


def _amount(row: Mapping[str, Any], *names: str, least: float = -MOST) -> float:
    """The first of these columns that has a number. Raises ValueError."""
    for name in names:
        if text := (row.get(name) or "").strip():
            if not least <= (amount := number(text)) <= MOST:  # nor is NaN
                span = f"from {least:,.0f} to" if least > -MOST else "of at most"
                raise ValueError(f"{name} is {shown(text)!r}, but must be a number {span} {MOST:,.0f}")
            return amount
    raise ValueError(f"{names[0]} is blank")


def _optional(row: Mapping[str, Any], name: str, least: float = -MOST) -> float | None:
    return _amount(row, name, least=least) if (row.get(name) or "").strip() else None


def _text(row: Mapping[str, Any], *names: str) -> str:
    """The first of these columns that has a text. Raises ValueError for one that is not of one line."""
    for name in names:
        if text := (row.get(name) or "").strip():
            return _line(name, text)
    return ""


def _line(name: str, text: str) -> str:
    """A text of one line, as a plan has them. Raises ValueError."""
    if not text.isprintable() or len(text) > MOST_TEXT:
        raise ValueError(f"{name} is {shown(text)!r}, but must be one line of at most {MOST_TEXT} characters")
    return text


def _of_focus(row: Mapping[str, Any], fiscal_year_starts: int, currency: Currency) -> Actual | None:
    if _text(row, "ChargeCategory").lower() not in COUNTED:
        return None
    first = _day(row, *STARTS)
    if first is None:
        raise ValueError("ChargePeriodStart is blank")
    end = _day(row, *ENDS)  # the day after
    if end is None:  # of a month, where that begins then; else of a day
        end = (first + 31 * _DAY_LONG).replace(day=1) if first.day == 1 else first + _DAY_LONG
    last = max(first, end - _DAY_LONG)
    billed, in_plan = _text(row, "BillingCurrency").upper() or DOLLARS, f" and {currency.code}, the plan's"
    if billed not in (DOLLARS, currency.code):
        read = f"{DOLLARS}{in_plan if currency.code != DOLLARS else ', and the currency of a plan,'}"
        raise ValueError(f"BillingCurrency is {shown(billed)!r}. Only {read} are read: convert it first")
    amount, status = _amount(row, "EffectiveCost", "BilledCost"), _text(row, "CommitmentDiscountStatus").lower()
    usd = float(in_dollars(amount, 1 if billed == DOLLARS else currency.per_usd))
    spot = _text(row, "PricingCategory").lower() == SPOT
    return Actual(
        quarter_of(first, fiscal_year_starts),
        (first, last),
        usd,
        usd if status == "unused" else 0.0,
        COMMITTED if status else "spot" if spot else "on-demand",
        _tagged(row.get("Tags") or ""),
        _text(row, "x_InstanceType", "SkuId"),
    )


def _day(row: Mapping[str, Any], *names: str) -> datetime.date | None:
    """The first of these columns that has a day; None where all are blank. Raises ValueError."""
    for name in names:
        if when := _text(row, name):
            day = _DAY.fullmatch(when)
            try:
                return datetime.date.fromisoformat(day[1] if day else "")
            except ValueError:
                raise ValueError(f"{name} is {shown(when)!r}, but must be a day such as 2027-01-31") from None
    return None


def _tagged(text: str) -> str:
    """The service that tags name, a mapping as JSON; nothing where there is none."""
    try:
        tags = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        raise ValueError('Tags are no JSON that can be read, such as {"service": "chat"}') from None
    service = tags.get("service") if isinstance(tags, dict) else None
    return "" if service is None else _line("the service in Tags", str(service).strip())


def _own(row: Mapping[str, Any], fiscal_year_starts: int) -> Actual:
    if None in row:
        raise ValueError("has more cells than the first line has columns")
    try:
        quarter = Quarter.parse(_text(row, "quarter"))
    except ValueError as error:
        raise ValueError(f"quarter {_text(row, 'quarter')!r} {error}") from None
    first, last = (_day(row, name) for name in ("from", "until"))
    for name, day in (("from", first), ("until", last)):
        if day is not None and quarter_of(day, fiscal_year_starts) != quarter:
            raise ValueError(f"{name} {day} is not in {quarter}")
    if first is not None or last is not None:
        first, last = first or quarter.first_day(fiscal_year_starts), last or quarter.last_day(fiscal_year_starts)
    return Actual(
        quarter,
        (first, last),
        _optional(row, "usd") or 0.0,
        0.0,
        _text(row, "purchase"),
        _text(row, "service"),
        _text(row, "instance"),
        *(_optional(row, name, least=0) for name in ("n_instances", "in_flight_peak", "replicas")),
    )


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
    for line in actuals.lines:
        if line.service and line.in_flight_peak is not None and line.replicas is not None:
            before = peaks.get((line.service, line.quarter))
            if before is None or (before.in_flight_peak or 0) < line.in_flight_peak:
                peaks[line.service, line.quarter] = line
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
    machine what names none. Raises ScenarioError for the JSON of a plan that says no money of machines."""
    for quarter, of_plan, lines, (days, of_days) in _compared(plan, actuals):
        rows = [row for row in plan["services"] if row["quarter"] == quarter and row["quantile"] == "p50"]
        machines = _of_machines(plan, quarter)
        names = {_machine(name): name for name in machines}
        is_told = COMMITTED not in {line.purchase for line in lines}
        charged = [
            replace(
                line,
                instance=names.get(_machine(line.instance), line.instance),
                purchase=_class(line.purchase, is_told),
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
        if "p50_usd" not in row:
            problem = "the plan's JSON is of an older sheetgen, and does not say what each machine costs"
            raise ScenarioError(f"{problem}. Write it anew: `sheetgen plan` reads the JSON itself.")
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
    """By quarter and service what a plan's JSON planned at p50 for the same days, and what was spent."""
    for part in variance(plan, actuals):
        if part["by"] == "service":
            usd = {"planned": part["planned_usd"], "measured": part["actual_usd"]}
            yield {"quarter": part["quarter"], "service": part["name"], **usd}


def _machine(name: str) -> str:
    """A machine as bills name it, which is without its provider and its class."""
    return machine_in(name).rpartition("/")[2].lower()
