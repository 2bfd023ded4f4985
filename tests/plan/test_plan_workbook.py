"""The plan's workbook: every cell recalculated, edits against the plan solved anew, and a twin that must fail."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from amounts import amount
from plan_books import example, example_workbook
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

from sheetgen.plan.answer import Answer

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
