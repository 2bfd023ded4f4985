"""The plan's workbook: every cell recalculated, edits against the plan solved anew, and a twin that must fail."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from amounts import amount
from plan_books import example, example_workbook, workbook_of
from plan_edits import differ, edits, solved_with, typed, workings
from recalculation import (
    ALLOWED_FUNCTIONS,
    compare,
    functions_used,
    needs_libreoffice,
    poison,
    recalculate,
    recalculate_with_formualizer,
    tamper,
    values_after,
)
from workbook_cells import values

from sheetgen.catalog import Catalog
from sheetgen.catalog.base import Document
from sheetgen.plan.answer import Answer
from sheetgen.plan.findings import findings, spans, spent
from sheetgen.plan.read import plan_of
from sheetgen.plan.solve import solved_plan

SEED = 1919


@pytest.fixture(scope="module")
def answer() -> Answer:
    return example().answer


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("plan") / "plan.xlsx"
    target.write_bytes(example_workbook())
    return target


def test_every_cell_recalculates(answer: Answer, path: Path, tmp_path: Path) -> None:
    poisoned = tmp_path / "poisoned.xlsx"
    count = poison(path, poisoned)
    result = compare(path, recalculate_with_formualizer(poisoned, tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert result.n_compared == count > 3000
    assert functions_used(path) <= ALLOWED_FUNCTIONS
    assert not differ(workings(answer), answer, values(path))


def test_a_tampered_twin_fails(path: Path, tmp_path: Path) -> None:
    twin = tmp_path / "twin.xlsx"
    tamper(path, twin)
    poison(twin, tmp_path / "poisoned.xlsx")
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert result.mismatches


def check_edits(answer: Answer, path: Path, n: int, seed: int) -> None:
    """Random edits, each with the plan solved anew; after each of them the values of the build are stale."""
    rng, work = random.Random(seed), workings(answer)
    for _ in range(n):
        found = edits(rng, answer.plan)
        now = values_after(path, typed(found))
        wrong = differ(work, solved_with(answer, found), now)
        assert not wrong, f"{found}: {wrong[:6]} and {len(wrong)} in all"


def test_edits_follow(answer: Answer, path: Path) -> None:
    check_edits(answer, path, amount(12, 24), SEED)


OTHERS = {
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
        {"id": "too-large", "demand": {"in_flight": 9}, "model": "kimi-k2",
         "allowed": {"gpus": ["l4"]}},
    ],
    "supply": {
        "owned": [{"id": "o", "gpu": "h100", "count": 2, "until": "2027-08-09", "cost_per_quarter": 5000}],
        "committed": [{"id": "c", "type": "aws/g6e.xlarge", "count": 2, "from": "2027-02-01", "days": 100}],
        "allowed": {"gpus": ["l40s", "h100"]}, "lead_time_days": {"reserved-1yr": 30, "capacity-block": 90},
    },
}  # fmt: skip


def test_other_demands(tmp_path: Path) -> None:
    """Tokens, people, requests of a month; series and steps; a service that nothing serves; late orders; euros."""
    found = findings(solved_plan(plan_of(Document("plan.yaml", OTHERS, {}), Catalog())))
    assert found.answer.hardware.nothing and any(found.answer.money["late_usd"][:, 0] > 0)
    path = tmp_path / "others.xlsx"
    path.write_bytes(workbook_of(found))
    poison(path, tmp_path / "poisoned.xlsx")
    result = compare(path, recalculate_with_formualizer(tmp_path / "poisoned.xlsx", tmp_path / "out.xlsx"))
    assert not result.mismatches, str(result)
    assert not differ(workings(found.answer), found.answer, values(path))
    check_edits(found.answer, path, amount(6, 60), SEED + 2)


def money_rows(now: dict[Any, Any], title: str) -> dict[str, list[Any]]:
    """By quarter, year and in all what Money says below a title."""
    top = next(int(cell[1:]) for (sheet, cell), value in cells_of(now) if sheet == "Money" and value == title)
    rows: dict[str, list[Any]] = {}
    for row in range(top + 2, top + 20):
        name = now.get(("Money", f"A{row}"))
        if not name:
            break
        rows[name] = [now.get(("Money", f"{column}{row}")) for column in "BCDEFGHI"]
    return rows


def cells_of(now: dict[Any, Any]) -> list[tuple[tuple[str, str], Any]]:
    return [(place, value) for place, value in now.items() if isinstance(place, tuple)]


@pytest.mark.parametrize("typed_in", [{}, {"discount_fraction": 0.4}, {"budget_2027_q3": None, "headroom_fraction": 0}])
def test_fiscal_years_follow(answer: Answer, path: Path, typed_in: dict[str, Any]) -> None:
    now, solved = values_after(path, typed(typed_in)), solved_with(answer, typed_in)
    found = money_rows(now, "By quarter, contingency apart")
    assert [*found] == [name for name, *_ in spans(solved.plan)]
    assert [name for name in found if ", " in name] == ["2027, Q1–Q4", "2028, Q1–Q2"]
    for name, _, many in spans(solved.plan):
        one = spent(solved, example().draws, many)
        none = one.budget_usd is None
        wanted = [one.budget_usd, *one.usd.values(), one.reserve_p90_usd, None if none else one.left_p90_usd]
        for value, usd in zip(found[name], wanted, strict=False):
            assert value == "-" if usd is None else math.isclose(value, usd, rel_tol=1e-9, abs_tol=1e-6), name
        assert found[name][-1] == one.verdict


def test_money_is_in_the_plans_currency_too(tmp_path: Path) -> None:
    plan = plan_of(Document("plan.yaml", OTHERS, {}), Catalog())
    path = tmp_path / "others.xlsx"
    path.write_bytes(workbook_of(findings(solved_plan(plan))))
    for typed_in in ({}, {"in_fx_rate": 0.5, "in_budget_2027_q2": 70_000}):
        now = values_after(path, typed_in)
        rate = typed_in.get("in_fx_rate", 0.92)
        dollars, euros = (
            money_rows(now, title)
            for title in ("By quarter, contingency apart", "The same in EUR, at the rate on Inputs")
        )
        assert euros["2027-Q2"][0] == typed_in.get("in_budget_2027_q2", 90_000)
        for name, amounts in dollars.items():
            for usd, eur in zip(amounts[:-1], euros[name], strict=False):
                assert eur == "-" if usd == "-" else math.isclose(usd * rate, eur)
        assert any("€" in str(cell.number_format) for cell in openpyxl.load_workbook(path)["Money"]["C"])


@pytest.mark.long
def test_many_edits_follow(answer: Answer, path: Path) -> None:
    check_edits(answer, path, 300, SEED + 1)


@needs_libreoffice
@pytest.mark.long
def test_libreoffice_says_the_same(path: Path, tmp_path: Path) -> None:
    count = poison(path, tmp_path / "poisoned.xlsx")
    result = compare(path, recalculate(tmp_path / "poisoned.xlsx", tmp_path))
    assert not result.mismatches, str(result)
    assert result.n_compared == count


def test_an_edit_makes_the_values_of_the_build_stale(path: Path) -> None:
    assert values_after(path, {})["chk_values"] == "as built"
    after = values_after(path, {"in_headroom_fraction": 0.3})
    assert (after["chk_values"], after["chk_all"]) == ("stale", "OK")
    out_of_order = values_after(path, {"in_service_1_dau_p10": 2e6})
    assert (out_of_order["chk_values"], out_of_order["chk_all"]) == ("stale", "CHECK")
