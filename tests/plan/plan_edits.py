"""Random edits of a plan's yellow cells, and the plan solved anew with them on the hardware that was chosen."""

from __future__ import annotations

import datetime
import math
import random
import unittest.mock
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sheetgen import cost
from sheetgen.catalog.base import Document
from sheetgen.plan.answer import Answer
from sheetgen.plan.book.inputs import PlanInputs
from sheetgen.plan.book.workings import Workings
from sheetgen.plan.decisions import decisions, orders
from sheetgen.plan.hardware import Placed
from sheetgen.plan.read import Plan, plan_of
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.solve import solved_plan
from sheetgen.plan.spending import budget_verdict
from sheetgen.plan.tables import types_of
from sheetgen.plan.yellow import Line, changed, every_cell
from sheetgen.sheet.book.wiring import Wiring
from sheetgen.sheet.model import EXCEL_DAY_ZERO, Ref, column_name, number
from sheetgen.units import PURCHASES

OF_LOADS = (
    "demand", "concurrent_requests", "requests_per_second", "load_requests", "n_replicas", "planned_replicas",
    "machines", "at_once", "own_instances", "service_month_usd",
)  # fmt: skip
OF_POOLS = ("needed_instances", "kept_instances", "owned_instances", "committed_instances", "gap", "idle", "bought_usd")
OF_MONEY = (
    "bought_of_all_usd", "late_usd", "committed_usd", "owned_usd", "spend_usd", "reserve_usd", "budget_left_usd",
)  # fmt: skip


def workings(answer: Answer) -> Workings:
    """The workings of a workbook of this plan: which cell holds what."""
    wiring = Wiring()
    return Workings(answer, PlanInputs(answer.plan, wiring), wiring)


def solved_with(answer: Answer, edits: Mapping[str, Any]) -> Answer:
    """The plan read and solved anew with these values, on the hardware of `answer` at its new price."""
    data = changed(answer.plan, edits)
    plan = plan_of(Document("edited", data, {}), answer.plan.catalog)
    placed = {at: repriced(one, plan) for at, one in answer.hardware.placed.items()}
    hardware = replace(answer.hardware, placed=placed)
    assert [one.instance for one in types_of(plan, hardware)] == [one.instance for one in answer.types]
    with unittest.mock.patch("sheetgen.plan.solve.placed", return_value=hardware):  # not what would be chosen now
        return solved_plan(plan)


def repriced(one: Placed, plan: Plan) -> Placed:
    paid = cost.paid_hours_per_month(
        plan.prices.hours_per_month, cost.HOURS_IN_A_MONTH, int(PURCHASES[plan.policy.buy].committed)
    )
    usd = cost.discounted_usd_per_hour(one.candidate.usd_per_hour, plan.prices.discount_fraction)
    return replace(one, instance_month_usd=float(cost.instance_month_usd(usd, paid)))


def said(work: Workings, answer: Answer) -> Iterator[tuple[str, Ref, Any]]:
    """What Python says of a plan, and the cells of the workings that must say the same."""
    n_services, n_quarters, n_types = work.n_services, work.n_quarters, len(answer.types)
    for q in range(n_quarters):
        for z in range(len(QUANTILES)):
            for s in range(n_services):
                row = work.row_of_load(s, q, z)
                for name in OF_LOADS:
                    yield f"{name} {s, q, z}", work.loads.columns[name][row], answer.services[name][s, q, z]
                if (s, q) in answer.hardware.placed:
                    yield f"set by {s, q, z}", work.loads.columns["set_by"][row], answer.set_by(s, q, z)
            for t in range(n_types):
                for name in OF_POOLS:
                    ref = work.pools.columns[name][work.row_of_pool(t, q, z)]
                    yield f"{name} {t, q, z}", ref, answer.supply[name][t, q, z]
            for name in OF_MONEY:
                yield f"{name} {q, z}", work.money.columns[name][work.row_of_money(q, z)], answer.money[name][q, z]
        left = [float(one) for one in answer.money["budget_left_usd"][q]]
        yield f"verdict {q}", work.quarters.columns["budget_verdict"][q], budget_verdict(left[1], left[2])
    yield from _orders(work, answer)
    yield from _quotas(work, answer)


def _orders(work: Workings, answer: Answer) -> Iterator[tuple[str, Ref, Any]]:
    place = {one.instance: t for t, one in enumerate(answer.types)}
    days = {answer.plan.first_day(one): q for q, one in enumerate(answer.plan.quarters)}
    rest = {(t, q) for t in place.values() for q in days.values()}
    columns = work.orders.columns
    for one in orders(answer):
        at = place[one.instance], days[one.needed_from]
        row = work.row_of_order(*at)
        if one.what == "release":
            yield f"release {at}", columns["released_instances"][row], one.n_instances
            continue
        rest.discard(at)
        yield f"order {at}", columns["ordered_instances"][row], one.n_instances
        yield f"order by {at}", columns["order_by_day"][row], number(one.order_by)
        yield f"late {at}", columns["is_late"][row], float(one.late)
        yield f"$ of order {at}", columns["order_usd"][row], one.usd
        waiting = math.nan if one.cost_of_waiting_usd is None else one.cost_of_waiting_usd
        yield f"waiting {at}", columns["waiting_usd"][row], waiting
    for at in rest:
        yield f"no order {at}", columns["ordered_instances"][work.row_of_order(*at)], 0.0


def _quotas(work: Workings, answer: Answer) -> Iterator[tuple[str, Ref, Any]]:
    raised = {one.instance: one for one in decisions(answer) if one.what == "raise quota"}
    for row, i in enumerate(work.quota_of):
        one = raised.get(answer.plan.machine(answer.plan.supply.quota[i].type))
        state = "enough" if one is None else "late" if one.late else "live"
        yield f"quota {i}", work.quotas.columns["quota_state"][row], state
        if one is not None:
            yield f"raise {i} by", work.quotas.columns["raise_by_day"][row], number(one.order_by)
            yield f"raise {i} to", work.quotas.columns["most_instances"][row], one.n_instances


def differ(work: Workings, answer: Answer, values: Mapping[Any, Any]) -> list[str]:
    """Where cells, by (sheet, cell), hold something else than Python says."""
    found = []
    for what, ref, expected in said(work, answer):
        value = values[ref.sheet, f"{column_name(ref.column)}{ref.row + 1}"]
        if not _same(expected, value):
            found.append(f"{what}: {value!r} in the workbook, {expected!r} in Python")
    return found


def _same(expected: Any, value: Any) -> bool:
    if isinstance(expected, str):
        return bool(expected == value)
    if math.isnan(expected):
        return bool(value == "-")
    # Sums of thousands of dollars that cancel leave a trace.
    return isinstance(value, float | int) and math.isclose(expected, value, rel_tol=1e-9, abs_tol=1e-6)


def edits(rng: random.Random, plan: Plan) -> dict[str, Any]:
    """From one to a dozen rows of Inputs typed over; a band stays in order."""
    every = list({id(line): line for line, _ in every_cell(plan).values()}.values())
    found: dict[str, Any] = {}
    for line in rng.sample(every, min(len(every), rng.choice((1, 2, 4, 12)))):
        values = sorted(_value(rng, line) for _ in line.cells) if line.is_band else [_value(rng, line)]
        found |= {cell.name: value for cell, value in zip(line.cells, values, strict=True)}
    return found


def _value(rng: random.Random, line: Line) -> Any:
    kind, old = line.kind, line.cells[-1].value
    if kind.what == "word":
        return rng.choice(kind.words)
    if kind.what == "date":
        return old + datetime.timedelta(days=rng.choice((-200, -30, -1, 1, 20, 90, 400)))
    if kind.blank and rng.random() < 0.2:
        return None
    if kind.what == "whole":
        return min(kind.high, max(kind.low, rng.choice((0, 1, 2, 3, 8, 40, int(old * 2)))))
    if kind.what == "share":
        return min(kind.high, max(kind.low, rng.choice((0, 0.05, 0.2, 0.5, 0.9))))
    if kind.low < 0:
        return rng.choice((-0.4, -0.1, 0.0, 0.07, 0.3, 1.0))
    base = old if old else 10.0
    return min(kind.high, max(kind.low, base * rng.choice((0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 7.0))))


def typed(found: Mapping[str, Any]) -> dict[str, Any]:
    """Edits as a spreadsheet's cells hold them, by defined name."""
    return {
        f"in_{name}": float((value - EXCEL_DAY_ZERO).days) if isinstance(value, datetime.date) else value
        for name, value in found.items()
    }
