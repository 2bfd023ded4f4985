"""Random edits of the yellow cells that money follows, and the plan solved anew with them on the hardware that was
chosen."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any

from workbook_cells import CellValue, Values, number

from sheetgen.catalog.base import Document
from sheetgen.plan.decisions import decisions
from sheetgen.plan.findings import Findings
from sheetgen.plan.placement import Placed
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.plan.yellow import Yellow, listed_prices_of, yellow_rows
from sheetgen.readback.package import Place
from sheetgen.readback.plan_book import Edit
from sheetgen.readback.pulled_plan import with_edits
from sheetgen.sizing import cost
from sheetgen.units import PURCHASES


def rows_of(findings: Findings) -> list[Yellow]:
    """The yellow cells of a plan's workbook."""
    return [*yellow_rows(findings.answer.plan, listed_prices_of(findings.answer.plan, record_of(findings)))]


def edited(rows: Sequence[Yellow], data: Mapping[str, Any], typed: Mapping[str, CellValue]) -> dict[str, Any]:
    """A plan as it was written, with these values by the names of their cells."""
    cells = {cell.name: (row, cell) for row in rows for cell in row.cells}
    edits = [Edit(*cells[name], name, Place("Inputs", 1, 1), value) for name, value in typed.items()]
    return with_edits(data, edits)


def solved_with(rows: Sequence[Yellow], answer: Answer, typed: Mapping[str, CellValue]) -> Answer:
    """The plan read and solved anew with these values, on the hardware of `answer` at its new price."""
    plan = plan_of(Document("edited", edited(rows, answer.plan.data, typed), {}), answer.plan.catalog)
    placed = {key: repriced(place, plan) for key, place in answer.hardware.placed.items()}
    hardware = replace(answer.hardware, placed=placed)
    return solved_plan(plan, hardware=hardware)  # not on what would be chosen now


def repriced(place: Placed, plan: Plan) -> Placed:
    usd = (plan.listed or {}).get(place.instance, {}).get(plan.policy.buy, place.candidate.usd_per_hour)
    paid = cost.paid_hours_per_month(
        plan.prices.hours_per_month, cost.HOURS_IN_A_MONTH, int(PURCHASES[plan.policy.buy].committed)
    )
    usd = cost.discounted_usd_per_hour(usd, plan.prices.discount_fraction)
    return replace(place, instance_month_usd=float(cost.instance_month_usd(usd, paid)))


def expected_cells(answer: Answer) -> Iterator[tuple[str, str, list[CellValue | EllipsisType]]]:
    """Money as Python has it, in the plan's currency: a sheet, what its row begins with, and the cells from the second
    one on that must say the same."""
    money, rate = answer.money, answer.plan.head.fx_rate
    for q, quarter in enumerate(map(str, answer.plan.quarters)):
        spend = [float(money["spend_usd"][q, z]) for z in CASE.values()]
        reserves = [float(money["reserve_usd"][q, CASE[name]]) for name in ("p50", "p90")]
        budget = answer.plan.budget.get(answer.plan.quarters[q], math.nan)
        amounts = [usd * rate for usd in (budget, *spend, *reserves)]
        yield "Money", quarter, [*amounts, ..., answer.verdicts[q]]
    orders = (decision for decision in decisions(answer, ()) if decision.what == "order")
    for n, order in enumerate(sorted(orders, key=lambda order: (order.instance, order.needed_from))):
        assert order.usd is not None
        yield "Decisions", f"order {n}", ["order", order.n_instances, order.instance, ..., ..., order.usd * rate]


def differ(answer: Answer, values: Values) -> list[str]:
    """Where cells, by (sheet, cell), hold something else than Python says."""
    wrong = []
    lines = (n for n in range(5, 60) if values.get(("Decisions", f"I{n}")) != "or")  # in place of another order
    orders = [n for n in lines if values.get(("Decisions", f"B{n}")) == "order"]
    orders.sort(key=lambda n: (values["Decisions", f"D{n}"], values["Decisions", f"E{n}"]))
    if len(orders) != (n_orders := sum(decision.what == "order" for decision in decisions(answer, ()))):
        return [f"{len(orders)} orders in the workbook, {n_orders} in Python"]
    for sheet, key, wanted in expected_cells(answer):
        if sheet == "Decisions":
            row = orders[int(key.removeprefix("order "))]
        else:
            row = next(n for n in range(6, 60) if values.get((sheet, f"A{n}")) == key)
        for column, expected in zip("BCDEFGHIJ", wanted, strict=False):
            if expected is not ... and not _same(expected, value := values[sheet, f"{column}{row}"]):
                wrong.append(f"{sheet}!{column}{row}: {value!r} in the workbook, {expected!r} in Python")
    return wrong


def _same(expected: CellValue, value: CellValue) -> bool:
    if isinstance(expected, str):
        return bool(expected == value)
    assert isinstance(expected, float | int)
    if math.isnan(expected):
        return bool(value == "-")
    # Sums of thousands of dollars that cancel leave a trace.
    return isinstance(value, float | int) and math.isclose(expected, value, rel_tol=1e-9, abs_tol=1e-6)


def edits(rng: random.Random, rows: Sequence[Yellow]) -> dict[str, CellValue]:
    """From one to a dozen rows of money typed over; a band stays in order."""
    every = [row for row in rows if row.is_money]
    typed: dict[str, CellValue] = {}
    for row in rng.sample(every, min(len(every), rng.choice((1, 2, 4, 12)))):
        values = sorted(map(number, (_value(rng, row) for _ in row.cells))) if row.is_band else [_value(rng, row)]
        typed |= {cell.name: value for cell, value in zip(row.cells, values, strict=True)}
    return typed


def _value(rng: random.Random, row: Yellow) -> float | None:
    kind, old = row.kind, row.cells[-1].value
    if kind.blank and rng.random() < 0.2:
        return None
    if kind.what == "share":
        return min(kind.high, max(kind.low, rng.choice((0, 0.05, 0.2, 0.5, 0.9))))
    if kind.low < 0:
        return rng.choice((-0.4, -0.1, 0.0, 0.07, 0.3, 1.0))
    base = old if old else 10.0
    return min(kind.high, max(kind.low, base * rng.choice((0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 7.0))))
