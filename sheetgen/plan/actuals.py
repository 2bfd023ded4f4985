"""What was really spent and measured: a CSV in FOCUS columns or in a few of our own, by quarter, against the plan.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sheetgen.catalog.base import read_bounded
from sheetgen.errors import Problems, ScenarioError, did_you_mean, shown
from sheetgen.plan.quarters import Quarter, quarter_of
from sheetgen.question.parse import number

MOST_BYTES = 200_000_000
MOST_PROBLEMS = 20  # that are named one by one
MOST = 1e12  # of a number, as in plan.yaml
OWN = ("quarter", "service", "instance", "purchase", "usd", "n_instances", "in_flight_peak", "replicas")
FOCUS = (
    "ChargePeriodStart", "BillingPeriodStart", "EffectiveCost", "BilledCost", "ChargeCategory",
    "CommitmentDiscountStatus", "PricingCategory", "BillingCurrency", "Tags", "SkuId", "ServiceName",
)  # fmt: skip
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ].*)?")
COUNTED = ("", "usage", "purchase", "adjustment")  # of ChargeCategory; tax and credits are not capacity
SPOT = "dynamic"  # FOCUS's PricingCategory for it


@dataclass(frozen=True)
class Actual:
    """One line: what something cost in a quarter, or what was measured there."""

    quarter: Quarter
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


def read_actuals(path: Path, fiscal_year_starts: int = 1) -> Actuals:
    """The lines of a CSV. Raises ScenarioError with every line that cannot be read."""
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
                found = _of_focus(row, fiscal_year_starts) if of_focus else _own(row)
            except ValueError as error:
                problems.append(f"{where}:{rows.line_num}: {error}.")
                continue
            if found is None:
                left_out += 1
            else:
                lines.append(found)
    except csv.Error as error:
        problems.append(f"{where}:{rows.line_num}: {error}.")
    if not lines and not problems:
        problems.append(f"{where}: holds no line of capacity.")
    if len(problems) > MOST_PROBLEMS:
        problems[MOST_PROBLEMS:] = [f"{where}: {len(problems) - MOST_PROBLEMS:,} lines more cannot be read."]
    if problems:
        raise ScenarioError(*problems)
    return Actuals(lines, left_out)


def _check_heads(where: str, heads: Sequence[str], of_focus: bool) -> None:
    if twice := sorted({one for one in heads if heads.count(one) > 1}):
        raise ScenarioError(f"{where}:1: column {shown(twice[0])} stands twice. Keep one.")
    if of_focus:
        if not {"ChargePeriodStart", "BillingPeriodStart"} & {*heads}:
            raise ScenarioError(f"{where}:1: column ChargePeriodStart is missing, which says when it was spent.")
        return
    if "quarter" not in heads:
        near = next((did_you_mean(one, (*OWN, *FOCUS)) for one in heads if did_you_mean(one, (*OWN, *FOCUS))), "")
        known = f"our own ({', '.join(OWN)}) or FOCUS's (ChargePeriodStart, EffectiveCost, ...)"
        raise ScenarioError(f"{where}:1: its columns are neither {known}.{near}")
    unknown = [f"{where}:1: unknown column {shown(one)}.{did_you_mean(one, OWN)}" for one in heads if one not in OWN]
    if unknown:
        raise ScenarioError(*unknown)


def _amount(row: Mapping[str, Any], *names: str) -> float:
    """The first of these columns that has a number. Raises ValueError."""
    for name in names:
        if text := (row.get(name) or "").strip():
            if not abs(found := number(text)) <= MOST:  # nor is NaN
                raise ValueError(f"{name} is {shown(text)!r}, but must be a number of at most {MOST:g}")
            return found
    raise ValueError(f"{names[0]} is blank")


def _optional(row: Mapping[str, Any], name: str) -> float | None:
    return _amount(row, name) if (row.get(name) or "").strip() else None


def _text(row: Mapping[str, Any], *names: str) -> str:
    return next((text for name in names if (text := (row.get(name) or "").strip())), "")


def _of_focus(row: Mapping[str, Any], fiscal_year_starts: int) -> Actual | None:
    if _text(row, "ChargeCategory").lower() not in COUNTED:
        return None
    day = _DAY.fullmatch(when := _text(row, "ChargePeriodStart", "BillingPeriodStart"))
    try:
        quarter = quarter_of(datetime.date.fromisoformat(day[1] if day else ""), fiscal_year_starts)
    except ValueError:
        raise ValueError(f"ChargePeriodStart is {shown(when)!r}, but must be a day such as 2027-01-31") from None
    currency = _text(row, "BillingCurrency").upper()
    if currency not in ("", "USD"):
        raise ValueError(f"BillingCurrency is {shown(currency)!r}. Only USD is read: convert it first")
    usd, status = _amount(row, "EffectiveCost", "BilledCost"), _text(row, "CommitmentDiscountStatus").lower()
    spot = _text(row, "PricingCategory").lower() == SPOT
    return Actual(
        quarter,
        usd,
        usd if status == "unused" else 0.0,
        "committed" if status else "spot" if spot else "on-demand",
        _tagged(_text(row, "Tags")),
        _text(row, "x_InstanceType", "SkuId"),
    )


def _tagged(text: str) -> str:
    """The service that tags name, a mapping as JSON; nothing where there is none."""
    try:
        tags = json.loads(text) if text else {}
    except json.JSONDecodeError:
        raise ValueError('Tags are no JSON, such as {"service": "chat"}') from None
    return str(tags.get("service", "")) if isinstance(tags, dict) else ""


def _own(row: Mapping[str, Any]) -> Actual:
    if None in row:
        raise ValueError("has more cells than the first line has columns")
    try:
        quarter = Quarter.parse(_text(row, "quarter"))
    except ValueError as error:
        raise ValueError(f"quarter {_text(row, 'quarter')!r} {error}") from None
    return Actual(
        quarter,
        _optional(row, "usd") or 0.0,
        0.0,
        _text(row, "purchase"),
        _text(row, "service"),
        _text(row, "instance"),
        *(_optional(row, name) for name in ("n_instances", "in_flight_peak", "replicas")),
    )


def by_quarter(found: Actuals) -> Iterator[dict[str, Any]]:
    """By quarter what was spent, and how."""
    for quarter in sorted({one.quarter for one in found.lines}):
        mine = [one for one in found.lines if one.quarter == quarter]
        ways = sorted({one.purchase for one in mine if one.purchase})
        services = sorted({one.service for one in mine if one.service})
        yield {
            "quarter": str(quarter),
            "usd": math.fsum(one.usd for one in mine),
            "unused_usd": math.fsum(one.unused_usd for one in mine),
            "by_purchase": {way: math.fsum(one.usd for one in mine if one.purchase == way) for way in ways},
            "by_service": {name: math.fsum(one.usd for one in mine if one.service == name) for name in services},
        }


def measured(found: Actuals) -> Iterator[dict[str, Any]]:
    """By service and quarter the highest load that was measured, and the replicas that served it."""
    peaks: dict[tuple[str, Quarter], Actual] = {}
    for one in found.lines:
        if one.service and one.in_flight_peak is not None and one.replicas is not None:
            before = peaks.get((one.service, one.quarter))
            if before is None or (before.in_flight_peak or 0) < one.in_flight_peak:
                peaks[one.service, one.quarter] = one
    for (service, quarter), one in sorted(peaks.items()):
        yield {"id": service, "quarter": str(quarter), "in_flight_peak": one.in_flight_peak, "replicas": one.replicas}


def against(plan: Mapping[str, Any], found: Actuals) -> Iterator[dict[str, Any]]:
    """Each quarter of a plan's JSON that was spent, beside what the plan said of it."""
    said = {one["quarter"]: one for one in plan["money"]}
    for one in by_quarter(found):
        of_plan = said.get(one["quarter"])
        if of_plan is not None:
            inside = of_plan["p10_usd"] <= one["usd"] <= of_plan["p90_usd"]
            yield {
                "quarter": one["quarter"],
                "p50_usd": of_plan["p50_usd"],
                "p90_usd": of_plan["p90_usd"],
                "actual_usd": one["usd"],
                "difference_usd": one["usd"] - of_plan["p50_usd"],
                "error_fraction": of_plan["p50_usd"] / one["usd"] - 1 if one["usd"] else None,
                "inside_band": inside,
            }
