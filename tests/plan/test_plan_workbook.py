"""The plan's workbook: every cell recalculated, money live, an old figure never shown, and a twin that must fail."""

from __future__ import annotations

import functools
import itertools
import math
import random
import re
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from amounts import amount
from option_values import Options
from plan_books import example, example_record, example_workbook, plan_that_moves_within_a_quarter, workbook_of
from plan_edits import differ, edited, edits, rows_of, solved_with
from recalculation import (
    ALLOWED_FUNCTIONS,
    assert_recalculates,
    compare,
    functions_used,
    needs_libreoffice,
    poison,
    recalculate_with_formualizer,
    tamper,
    values_after,
)
from workbook_cells import Values, values

from sheetgen.catalog import Catalog, read_document
from sheetgen.catalog.base import Document
from sheetgen.errors import SheetgenError
from sheetgen.plan.decisions import in_lines
from sheetgen.plan.findings import Findings, findings, spans, spent
from sheetgen.plan.flat_book import ON_PLAN, PULL
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.yellow import Yellow, price_name, yellow_rows
from sheetgen.writers.formats import templates_folder

SEED = 1919
SHEETS = ["Inputs", "Plan", "Decisions", "Services", "Supply", "Money", "Checks"]
COST_OF_POOLS = ("owned_1_cost", "committed_1_usd_per_hour")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("plan") / "plan.xlsx"
    target.write_bytes(example_workbook())
    return target


def test_every_cell_recalculates(path: Path, tmp_path: Path) -> None:
    poisoned = tmp_path / "poisoned.xlsx"
    count = poison(path, poisoned)
    result = compare(path, recalculate_with_formualizer(poisoned, tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert result.n_compared == count > 1000
    assert functions_used(path) <= ALLOWED_FUNCTIONS
    assert not differ(example().answer, values(path))


@needs_libreoffice
def test_libreoffice_says_the_same(path: Path, tmp_path: Path) -> None:
    assert_recalculates(path, tmp_path)


def test_a_tampered_twin_fails(path: Path, tmp_path: Path) -> None:
    twin = tmp_path / "twin.xlsx"
    tamper(path, twin)
    poison(twin, tmp_path / "poisoned.xlsx")
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert result.mismatches


def test_its_sheets_and_names(path: Path) -> None:
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == SHEETS and {sheet.sheet_state for sheet in book} == {"visible"}
    names = {cell.name for row in rows_of(example()) for cell in row.cells}
    assert {name.removeprefix("in_") for name in book.defined_names if name.startswith("in_")} == names
    assert {"rec_asked_usd", "rec_p50_usd", "rec_p90_usd"} <= {*book.defined_names}
    for sheet in book.worksheets[1:-1]:
        assert sheet["A3"].value == "values of 2026-11-26:"


def table_rows(now: Values, sheet: str, top: int) -> list[int]:
    """The rows of a table from its first one on, to the next whose first cell is blank."""
    return [*itertools.takewhile(lambda row: now.get((sheet, f"A{row}")), itertools.count(top))]


def test_a_doubled_price_doubles_the_money(path: Path) -> None:
    """That of the machines, of what is committed and of what is owned: together all of it."""
    rows = rows_of(example())
    prices = {row.name: row.value for row in rows if row.name.startswith("price_azure")}
    assert len(prices) == 2
    committed = example().answer.plan.types["azure/Standard_NC40ads_H100_v5"].price("reserved-1yr")
    assert committed is not None
    owned, listed = 90_000, committed.usd_per_hour * 0.9  # a price that is stated has its discount
    before = values_after(path, {})
    after = values_after(
        path,
        {
            **{f"in_{name}": 2 * usd for name, usd in prices.items()},
            **dict(zip((f"in_{name}" for name in COST_OF_POOLS), (2 * owned, 2 * listed), strict=True)),
        },
    )
    for name in ("rec_asked_usd", "rec_p50_usd", "rec_p90_usd"):
        assert math.isclose(after[name], 2 * before[name], rel_tol=1e-12)
    doubled = [("Money", f"{column}{row}") for column in "CDEF" for row in range(6, 15)]
    served = [row for row in table_rows(before, "Services", 5) if before["Services", f"L{row}"] != "not served"]
    assert {before["Services", f"A{row}"] for row in served} == {
        service["id"] for service in example_record()["services"]
    }
    doubled += [("Services", f"{column}{row}") for column in "PQRS" for row in served]
    supply = table_rows(before, "Supply", 5)
    assert len(supply) == len(example_record()["supply"])
    doubled += [("Supply", f"{column}{row}") for column in "KLMN" for row in supply]
    decided = in_lines(example().decisions)
    rows_with = {
        kind: [5 + n for n, (decision, _) in enumerate(decided) if decision.what == kind]
        for kind in ("order", "commit")
    }
    doubled += [("Decisions", f"G{row}") for row in rows_with["order"]]
    assert rows_with["order"] and rows_with["commit"]
    for place in doubled:
        assert math.isclose(after[place], 2 * before[place], rel_tol=1e-12), place
    # What was worked out of money by other means is not shown any more; quantities are.
    assert after["Money", "H6"] == PULL
    # What is offered is in no sum: its cost stood among those that are.
    assert {after["Decisions", f"G{row}"] for row in rows_with["commit"]} == {"-"}
    machine = example().answer.place[before["Supply", "B5"]]
    needed = example().answer.supply["needed_instances"][machine, 0, example().answer.case]
    assert after["Supply", "D5"] == before["Supply", "D5"] == needed > 0
    assert after["Plan", "B3"] == "changed"
    check_lights(before, after)


def check_lights(before: Any, after: Any) -> None:
    """The light counts what speaks against signing, which only `pull` knows after an edit."""
    holds = all(check["ok"] for check in example_record()["checks"])
    assert before["chk_signing"] == before["chk_all"] == ("OK" if holds else "CHECK")
    assert after["chk_signing"] == after["chk_all"] == "CHECK"
    assert after["chk_money"] == after["chk_quantiles"] == "OK"


def check_edits(whole: Findings, path: Path, n: int, seed: int) -> None:
    """Random edits of what money follows, each with the plan solved anew on its hardware."""
    rng, rows = random.Random(seed), rows_of(whole)
    is_late = any(whole.answer.money["late_usd"][:, 0] > 0)  # what covers late orders is a value of its day
    for _ in range(n):
        typed = edits(rng, rows)
        now = values_after(path, {f"in_{name}": value for name, value in typed.items()})
        wrong = differ(solved_with(rows, whole.answer, typed), now)
        wrong = [difference for difference in wrong if not (is_late and f"{PULL!r} in the workbook" in difference)]
        assert not wrong, f"{typed}: {wrong[:6]} and {len(wrong)} in all"


def test_money_follows_prices(path: Path) -> None:
    check_edits(example(), path, amount(12, 100), SEED)


QUANTITIES = {
    "service_1_dau_p50": 110_000,
    "service_2_at_once_p90": 900,
    "service_3_growth_steps_2027_q3_p50": 1.4,
    "committed_1_count": 3,
    "owned_1_count": 24,
    "headroom_fraction": 0.3,
    "approval_days": 60,
    "as_of": 46_400,
    "survive": "none",
}


@pytest.mark.parametrize("name", QUANTITIES)
def test_no_old_figure_is_shown(path: Path, name: str) -> None:
    """After an edit of demand, a quantity or policy, what hangs on it says so in place of a figure."""
    after = values_after(path, {f"in_{name}": QUANTITIES[name]})
    hardware = [("Services", f"{column}{row}") for column in "CDEFGHIJKLMNOQRSTUV" for row in (5, 17)]
    supply = table_rows(after, "Supply", 5)
    assert len(supply) == len(example_record()["supply"])
    hardware += [("Supply", f"{column}{row}") for column in "DEFGHIJLMN" for row in supply]
    head = supply[-1] + 3  # of GPUs: a blank row, the title, the heads; a column for each kind
    gpus = "BCDEFGHIJ"[: len({supply["gpu"] for supply in example_record()["supply"]}) + 4]
    assert (after["Supply", f"A{head}"], after["Supply", f"{gpus[-1]}{head}"]) == ("Quarter", "Owned and committed")
    quarters = table_rows(after, "Supply", head + 1)
    assert len(quarters) == len(example_record()["quarters"])
    hardware += [("Supply", f"{column}{row}") for column in gpus for row in quarters]
    n_decisions = len(in_lines(example().decisions))
    orders = [("Decisions", f"{column}{5 + n}") for column in "ABCDEFGHIJ" for n in range(n_decisions)]
    totals = [("Money", f"{column}{row}") for column in "CDEFGHI" for row in range(6, 15)]
    on_plan = [("Plan", f"{column}{row}") for column in "CDEFGHI" for row in range(12, 21)]
    on_plan += [
        ("Plan", f"{column}{row}") for column in "ABCDEFGH" for row in range(24, 24 + min(n_decisions, ON_PLAN))
    ]
    for place in (*hardware, *orders, *totals, *on_plan):
        assert after[place] == PULL, place
    assert {after[name] for name in ("rec_asked_usd", "rec_p50_usd", "rec_p90_usd")} == {PULL}
    assert after["Plan", "C8"] == after["Plan", "B3"] == after["Inputs", "E3"] == PULL
    assert after["Money", "B6"] == 1_350_000
    assert after["chk_money"] == after["chk_quantiles"] == "OK"


OTHERS: dict[str, Any] = {
    "plan": {"start": "2027-Q1", "quarters": 3, "as_of": "2026-12-20", "currency": "EUR", "fx_rate": 0.92},
    "prices": {"discount_fraction": 0.2},
    "policy": {"approval_days": 20, "buy": "reserved-1yr", "redundancy": {"replicas": 1}},
    "budget": {"2027-Q2": 90_000},
    "services": [
        {"id": "tokens", "demand": {"tokens": {"per_month": {"p10": 1e9, "p50": 2e9, "p90": 5e9}, "of": "all"}},
         "growth": {"series": [1, {"p10": 1, "p50": 1.2, "p90": 2}, 3]}, "model": "llama-3.1-8b"},
        {"id": "people", "demand": {"users": {"people": 900, "active_fraction": 0.3}}, "model": "llama-3.1-8b",
         "growth": {"steps": {"2027-Q2": {"p10": 1, "p50": 2, "p90": 3}, "2027-Q3": 1.1}},
         "redundancy": {"survive": "machine"}},
        {"id": "month", "demand": {"requests": {"per_month": {"p10": 1e6, "p50": 2e6, "p90": 5e6}}}, "like": "people"},
        {"id": "too-large", "demand": {"at_once": 9}, "model": "kimi-k2",
         "allowed": {"gpus": ["l4"]}},
    ],
    "supply": {
        "owned": [{"id": "o", "gpu": "h100", "count": 2, "until": "2027-08-09", "cost_per_quarter": 5000}],
        "committed": [{"id": "c", "type": "aws/g6e.xlarge", "count": 2, "from": "2027-02-01", "days": 100}],
        "allowed": {"gpus": ["l40s", "h100"]}, "lead_time_days": {"reserved-1yr": 30, "capacity-block": 90},
    },
}  # fmt: skip


@functools.cache
def others(approval_days: int = 20) -> Findings:
    """Orders of a year; after twenty days of approval and thirty of lead time they are late."""
    policy = {**OTHERS["policy"], "approval_days": approval_days}
    supply = OTHERS["supply"] if approval_days else {**OTHERS["supply"], "lead_time_days": {}}
    data = {**OTHERS, "policy": policy, "supply": supply}
    return findings(solved_plan(plan_of(Document("plan.yaml", data, {}), Catalog())))


@pytest.mark.parametrize("approval_days", [0, 20])
def test_other_demands(approval_days: int, tmp_path: Path) -> None:
    """Tokens, people, requests of a month; series and steps; a service that nothing serves; orders of a year, in time
    and late; euros."""
    whole = others(approval_days)
    assert whole.answer.hardware.nothing and sum(whole.answer.bound_usd) > whole.answer.bound_after_usd > 0
    assert any(whole.answer.money["late_usd"][:, 0] > 0) == (approval_days > 0)
    path = tmp_path / "others.xlsx"
    path.write_bytes(workbook_of(whole))
    poison(path, tmp_path / "poisoned.xlsx")
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert not differ(whole.answer, values(path))
    check_edits(whole, path, amount(6, 60), SEED + 2)


def money_rows(now: Values, title: str) -> dict[str, list[Any]]:
    """By quarter, year and in all what Money says below a title."""
    top = next(int(cell[1:]) for (sheet, cell), value in cells_of(now) if sheet == "Money" and value == title)
    rows: dict[str, list[Any]] = {}
    for row in range(top + 2, top + 20):
        name = now.get(("Money", f"A{row}"))
        if not name:
            break
        rows[name] = [now.get(("Money", f"{column}{row}")) for column in "BCDEFGHI"]
    return rows


def cells_of(now: Values) -> list[tuple[tuple[str, str], Any]]:
    return [(place, value) for place, value in now.items() if isinstance(place, tuple)]


@pytest.mark.parametrize("typed", [{}, {"discount_fraction": 0.4}, {"budget_2027_q3": None, "contingency_fraction": 0}])
def test_fiscal_years_follow(path: Path, typed: Options) -> None:
    now = values_after(path, {f"in_{name}": value for name, value in typed.items()})
    solved = solved_with(rows_of(example()), example().answer, typed)
    shown = money_rows(now, "By quarter, US dollars; contingency apart")
    assert [*shown] == [name for name, *_ in spans(solved.plan)]
    assert [name for name in shown if ", " in name] == ["2027, Q1–Q4", "2028, Q1–Q2"]
    for name, _, many in spans(solved.plan):
        money = spent(solved, example().draws, many)
        wanted = [money.budget_usd, *money.usd.values(), *(money.reserve_usd[name] for name in ("p50", "p90"))]
        for value, usd in zip(shown[name], wanted, strict=False):
            assert value == "-" if usd is None else math.isclose(value, usd, rel_tol=1e-9, abs_tol=1e-6), name
        assert shown[name][-1] == money.verdict


def test_amounts_are_in_the_plans_currency(tmp_path: Path) -> None:
    """Live at the rate on Inputs, with US dollars beside what is to be approved; formulas read dollars on hidden
    sheets."""
    path = tmp_path / "others.xlsx"
    path.write_bytes(workbook_of(others(approval_days=0)))  # no cover of late orders, which is of its day
    book, built = openpyxl.load_workbook(path), values_after(path, {})
    shown = ("Plan", "Decisions", "Services", "Supply", "Money")
    hidden = {f"{name} in US dollars" for name in shown}
    assert {sheet.title for sheet in book if sheet.sheet_state == "hidden"} == hidden
    formats = {
        (name, cell.coordinate): cell.number_format for name in shown for row in book[name].iter_rows() for cell in row
    }
    amounts = {place for place, text in formats.items() if "€" in text}
    assert len(amounts) > 100 and not [place for place, text in formats.items() if "$" in text]
    for sheet, cell in amounts:
        usd, converted = built.get((f"{sheet} in US dollars", cell)), built.get((sheet, cell))
        is_amount = isinstance(usd, float)
        assert math.isclose(usd * 0.92, converted, rel_tol=1e-9) if is_amount else converted == usd, (sheet, cell)
    texts = {place: value for place, value in built.items() if isinstance(place, tuple) and isinstance(value, str)}
    named = {place: text for place, text in texts.items() if place[0] in shown and re.search(r"\$|US dollar", text)}
    assert not named
    assert (formats["Plan", "A7"], built["Plan", "A7"]) == ('"USD "#,##0', built["rec_asked_usd"])
    assert built["Plan", "A6"] == pytest.approx(0.92 * built["rec_asked_usd"])
    after = values_after(path, {"in_fx_rate": 0.5, "in_budget_2027_q2": 70_000})
    budgets = [money_rows(now, "By quarter, EUR; contingency apart")["2027-Q2"][0] for now in (built, after)]
    assert budgets == [90_000, 70_000]
    assert after["Plan", "A6"] == pytest.approx(0.5 * after["rec_asked_usd"])


def test_the_price_of_a_mixs_term_is_live(tmp_path: Path) -> None:
    """Only the price on demand had a cell: who typed what was agreed for a year saw no other money."""
    data = {
        "plan": {"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"},
        "policy": {"buy": "mix"},
        "prices": {"expected_change_per_year": -0.1, "discount_fraction": 0.1},
        "services": [
            {"id": "chat", "demand": {"requests": {"per_day": 4e5}}, "profile": "business", "model": "8b"},
            {"id": "flat", "demand": {"at_once": 40}, "model": "8b", "growth": {"steps": {"2027-Q2": 1.5}}},
        ],
        "supply": {"allowed": {"instances": ["azure/Standard_NC40ads_H100_v5"]}},
    }
    whole = findings(solved_plan(plan_of(Document("plan.yaml", data, {}), Catalog())))
    (purchase,) = {base.purchase for base in whole.answer.plan.base}
    name = price_name(f"azure/Standard_NC40ads_H100_v5 ({purchase})")
    listed = next(row.value for row in rows_of(whole) if row.name == name)
    (path := tmp_path / "mix.xlsx").write_bytes(workbook_of(whole))
    before, after = values_after(path, {}), values_after(path, {f"in_{name}": listed / 2})
    assert whole.answer.base_usd > 0
    for quantile in ("p50", "p90"):
        saved = before[f"rec_{quantile}_usd"] - after[f"rec_{quantile}_usd"]
        assert math.isclose(saved, whole.answer.base_usd / 2)
    bases = [
        5 + n
        for n, (decision, _) in enumerate(in_lines(whole.decisions))
        if decision.purchase == purchase and decision.usd
    ]
    ordered = sum(before["Decisions", f"G{n}"] - after["Decisions", f"G{n}"] for n in bases)
    assert bases and math.isclose(ordered, whole.answer.base_usd / 2)


def test_a_mix_of_many_types_has_its_workbook(tmp_path: Path) -> None:
    """The months at each price ran into the columns of what machines cost: six types, three of them for a term."""
    types = {"chat": "aws/g6e.xlarge", "code": "azure/Standard_NC40ads_H100_v5", "rag": "gcp/a2-ultragpu-1g"}
    data = {
        "plan": {"start": "2027-Q1", "quarters": 4, "as_of": "2026-11-26"},
        "policy": {"buy": "mix"},
        "services": [
            {"id": name, "demand": {"at_once": 40}, "model": "8b", "allowed": {"instances": [instance]}}
            for name, instance in types.items()
        ],
    }
    whole = findings(solved_plan(plan_of(Document("plan.yaml", data, {}), Catalog())))
    (path := tmp_path / "mix.xlsx").write_bytes(workbook_of(whole))
    poison(path, tmp_path / "poisoned.xlsx")
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert values(path)["rec_p50_usd"] == pytest.approx(float(whole.answer.money["spend_usd"][:, 1].sum()))


def test_a_move_within_a_quarter_has_its_workbook(tmp_path: Path) -> None:
    """A service's money is of two types then."""
    plan = plan_of(Document("plan.yaml", plan_that_moves_within_a_quarter(), {}), Catalog())
    whole = findings(solved_plan(plan))
    assert whole.answer.hardware.until
    (path := tmp_path / "moves.xlsx").write_bytes(workbook_of(whole))
    poison(path, tmp_path / "poisoned.xlsx")
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert not differ(whole.answer, values(path))
    check_edits(whole, path, amount(6, 60), SEED + 3)


def test_a_yellow_cell_takes_what_its_field_of_plan_yaml_takes() -> None:
    """At either end of what a cell takes, no bound of the field is told, and above it one is."""
    document = read_document(templates_folder() / "plan.yaml")
    document.data["services"][0]["demand"] = {"users": {"people": 3000, "requests_per_user_per_day": 20}}
    document.data["services"][1]["demand"] = {"users": {"people": 900, "active_fraction": 0.1}}
    rows = [*yellow_rows(plan_of(document, Catalog()), {})]

    def told(row: Yellow, value: float) -> list[str]:
        data = edited(rows, document.data, {cell.name: value for cell in row.cells})
        try:
            plan_of(Document("plan.yaml", data, {}), Catalog())
        except SheetgenError as error:
            return [line for line in error.problems if f"{row.place[-1]} is" in line and "should" in line]
        return []

    numbers = [row for row in rows if row.kind.is_number and row.place[0] == "services"]
    assert len(numbers) > 8
    for row in numbers:
        assert not told(row, row.kind.low) and not told(row, row.kind.high), row.name
        assert row.is_band or told(row, 2 * row.kind.high), row.name
