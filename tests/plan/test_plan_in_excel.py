"""The plan's formulas in both readings: Excel's text gives what Python gives, for every table of the example."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy
import pytest
import xlsxwriter
from recalculation import ALLOWED_FUNCTIONS, compare, functions_used, poison, recalculate_with_formualizer
from xlsxwriter.utility import xl_range_abs, xl_rowcol_to_cell

from sheetgen.catalog import Catalog
from sheetgen.formula import Expr, Formula
from sheetgen.plan import demand, needs, spending
from sheetgen.plan.read_plan import read_plan
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.tables import TABLES
from sheetgen.plan.worked_plan import Answer
from sheetgen.writers.formats import templates_folder


@pytest.fixture(scope="module")
def answer() -> Answer:
    return solved_plan(read_plan(templates_folder() / "plan.yaml", Catalog()))


def rows(answer: Answer) -> list[tuple[Formula, dict[str, Any]]]:
    """Every formula of the tables with its inputs, at every position of its axes."""
    written = []
    for name, declared in TABLES.items():
        table = answer.grid.table(*declared.axes)
        sizes = [answer.grid.sizes[axis] for axis in declared.axes]
        for named in declared.quantities:
            quantity = named if isinstance(named, Formula) else named[1]
            if quantity in (needs.kept_instances, needs.gap) or name == "shares":
                continue
            columns = {input_name: table[input_name] for input_name in quantity.inputs}
            for position in itertools.product(*map(range, sizes)):
                written.append(
                    (quantity, {input_name: float(column[position]) for input_name, column in columns.items()})
                )
    return written


def test_excel_says_the_same(answer: Answer, tmp_path: Path) -> None:
    some: list[tuple[Formula, dict[str, Any]]] = [
        *rows(answer),
        *alone(),
        *(
            (needs.own_instances, {"planned_machines": m, "planned_machines_of_all": 2.5, "machines_of_all": 2.5})
            for m in (0.0, 0.5, 2.5)
        ),
        *((spending.service_month_usd, {"own_instances": n, "mean_month_usd": 812.5}) for n in (0.0, 1.5)),
    ]
    path = tmp_path / "plan.xlsx"
    needed = answer.supply["needed_instances"][..., answer.case]
    n_quarters = needed.shape[1]
    with xlsxwriter.Workbook(path) as book:
        sheet, answers, ranges = (book.add_worksheet(name) for name in ("Inputs", "Plan", "Kept"))
        for i, (quantity, values) in enumerate(some):
            cells = {}
            for j, (name, value) in enumerate(values.items()):
                if not numpy.isnan(value):
                    sheet.write_number(i, j, value)
                cells[name] = Expr(f"Inputs!{xl_rowcol_to_cell(i, j)}")
            answers.write_formula(i, 0, f"={quantity.written(cells).text}", None, shown(quantity.of(values)))
        # What is kept reads all quarters of a type.
        for t, row in enumerate(needed):
            for q in range(n_quarters):
                ranges.write_number(0, q, q)
                ranges.write_number(t + 1, q, float(row[q]))
                inputs = {
                    "needed": row,
                    "position": numpy.arange(n_quarters),
                    "this_quarter": q,
                    "release_after_quarters": 1,
                }
                cells = {
                    "needed": Expr(f"Kept!{xl_range_abs(t + 1, 0, t + 1, n_quarters - 1)}"),
                    "position": Expr(f"Kept!{xl_range_abs(0, 0, 0, n_quarters - 1)}"),
                    "this_quarter": Expr(str(q)),
                    "release_after_quarters": Expr("1"),
                }
                text = needs.kept_instances.written(cells).text
                answers.write_array_formula(
                    t, q + 1, t, q + 1, f"{{={text}}}", None, float(needs.kept_instances.of(inputs))
                )
    count = len(some) + needed.size
    assert poison(path, tmp_path / "poisoned.xlsx") == count
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert result.n_compared == count > 1000
    assert functions_used(path) <= ALLOWED_FUNCTIONS


def shown(value: Any) -> Any:
    """A value as the cell has it: "-" where there is none."""
    plain = value.item() if hasattr(value, "item") else value
    return "-" if isinstance(plain, float) and numpy.isnan(plain) else plain


def alone() -> list[tuple[Formula, dict[str, Any]]]:
    """What the tables begin from, and what stands beside them."""
    return [
        (demand.spread_below, {"p10": 80.0, "p50": 100.0, "z_of_p90": 1.28}),
        (demand.spread_above, {"p50": 100.0, "p90": 130.0, "z_of_p90": 1.28}),
        (demand.requests_of_users, {"dau": 1e5, "sessions_per_user_day": 1.6, "requests_per_session": 6.0}),
        (demand.requests_of_month, {"per_month": 3e6, "days_per_month": 30.4}),
        (demand.requests_of_tokens, {"tokens": 9e5, "tokens_per_request": 350.0}),
        (demand.grown, {"growth_fraction": 0.12, "quarters_grown": 5.0}),
        *(
            (demand.grown_spread, {"growth_spread": 0.07, "quarters_grown": 3.0, "persists": persists})
            for persists in (0.0, 1.0)
        ),
        *(
            (
                needs.set_by,
                {
                    "planned_replicas": planned,
                    "safe_replicas": safe,
                    "load_requests": 90.0,
                    "paced_requests": 20.0,
                    "offered_requests": mean,
                    "places": places,
                    "prefill_replicas": prefill,
                    "sized_by": 0.0,
                },
            )
            for planned, safe, mean, places, prefill in (
                (9.0, 5.0, 0.0, 0.0, 0.0),
                (9.0, 9.0, 0.0, 0.0, 0.0),
                (6.0, 6.0, 70.0, 90.0, 4.2),
                (5.0, 5.0, 70.0, 90.0, 4.2),
                (5.0, 5.0, 85.0, 90.0, 4.2),
                (5.0, 5.0, 50.0, 70.0, 4.2),  # five replicas for its prompts, four for its places
                (6.0, 6.0, 50.0, 70.0, 4.2),
            )
        ),
        *(
            (
                needs.needed_instances,
                {
                    "machines_of_all": filled,
                    "safe_of_replicas": safe,
                    "safe_of_machines": of_machines,
                    "safe_of_zones": of_zones,
                    "halves": halves,
                    "largest_replica": largest,
                    "zone_share": 0.5,
                    "lost_instances": lost,
                },
            )
            for filled, safe, of_machines, of_zones, halves, largest, lost in (
                (1.2, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
                (1.2, 1.2, 0.0, 0.0, 0.0, 0.25, 1.0),
                (1.2, 1.2, 1.2, 0.0, 0.0, 0.25, 1.0),
                (5.0, 5.0, 5.0, 4.5, 0.0, 2.0, 1.0),
                (2.8, 1.4, 1.4, 0.0, 1.4, 0.5, 1.0),
                (6.0, 6.0, 6.0, 4.5, 0.0, 1.0, 8.0),
            )
        ),
        *(
            (
                needs.hot_replicas,
                {
                    "load_requests": 90.0,
                    "paced_requests": 20.0,
                    "replicas_per_instance": 8.0,
                    "survive": 2.0,
                    "zones": 3.0,
                    "hot_share": share,
                },
            )
            for share in (0.0, 0.5, 1.0)
        ),
        *(
            (needs.half_machines, {"replicas_per_instance": per_machine, "survive": 2.0, "hot_replicas": 6.0})
            for per_machine in (2.0, 8.0)
        ),
        *(
            (spending.budget_verdict, {"budget_left_p50_usd": middle, "budget_left_p90_usd": high})
            for middle, high in ((5.0, 1.0), (5.0, -1.0), (-2.0, -9.0))
        ),
        (
            spending.month_million_tokens,
            {
                "requests_per_second": 3.5,
                "mean_over_peak": 0.27,
                "tokens_per_request": 1200.0,
                "hours_per_month": 730.0,
                "seconds_in_an_hour": 3600.0,
                "tokens_in_a_million": 1e6,
            },
        ),
        (spending.usd_per_million_planned, {"service_month_usd": 4e4, "month_million_tokens": 2980.0}),
        (spending.order_by_day, {"first_day": 46388.0, "lead_days": 13.2, "approval_days": 30.0}),
        *(
            (
                spending.waiting_usd,
                {"cover_month_usd": cover, "planned_month_usd": 7.0, "n_instances": 3.0, "months_in_a_quarter": 3.0},
            )
            for cover in (5.0, 9.0)
        ),
    ]


def test_checks_of_the_docstrings() -> None:
    assert demand.spread_below(80, 100, 1.2815515655446004) == pytest.approx(0.174, abs=5e-4)
    assert demand.spread_above(100, 130, 1.2815515655446004) == pytest.approx(0.205, abs=5e-4)
    assert demand.grown(0.12, 5) == pytest.approx(1.76, abs=5e-3)
    assert spending.price_factor(-0.2, 2, 4) == pytest.approx(0.894, abs=5e-4)
