"""The purchase class as an input: a workbook with another class typed in says what `build` says of that class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import books
import pytest
from amounts import IN_LONG
from cells_of import FEW
from recalculation import convert_all, edit, edit_and_recalculate, needs_libreoffice, values_after
from workbook_cells import PRICES_SHEET, CellValue, ErrorValue, Place, values

from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.catalog.engines import load_engine
from sheetgen.question.market import Filters, select
from sheetgen.question.parse import name_part
from sheetgen.question.sheet_question import ask
from sheetgen.readback.pulled import pull
from sheetgen.readback.pulled_words import lines
from sheetgen.units import PURCHASES

OTHERS = tuple(PURCHASES)[1:]
LEAN = {"models": "8b,70b", "tiers": "1,32", "instances": FEW, "as_of": books.AS_OF}


USUAL = books.USUAL if IN_LONG else LEAN


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("purchase"), "usual", USUAL, with_decision=IN_LONG)[0]


def answered(purchase: str) -> Solution:
    return solve(ask(books.catalog(), {**USUAL, "purchase": purchase}))


def unlike(values: Mapping[Place | str, CellValue], solved: Solution) -> list[str]:
    """Loads of which the workbook's names say otherwise than Python."""
    wrong = []
    for load, choice in zip(solved.question.loads, solved.choices, strict=True):
        model, workload = solved.question.models[load.model].model.id, solved.question.workloads[load.workload].id
        stem = f"rec_{name_part(model)}_{name_part(workload)}_{load.tier + 1}"
        if choice.offer is None:
            assert not isinstance(values[f"{stem}_monthly_usd"], float)
            continue
        want = solved.candidate(choice.offer).instance, choice.n_instances, choice.monthly_usd
        got = tuple(values[f"{stem}_{part}"] for part in ("instance", "n_instances", "monthly_usd"))
        if not all(map(books.same, got, want)):
            wrong.append(f"{stem}: the workbook says {got}, Python {want}")
    return wrong


def test_the_rows_are_the_candidates_of_every_class() -> None:
    """Whichever class is in use; and of a provider's instances with the same GPUs one is a candidate in a class."""
    engine = load_engine(books.catalog(), "vllm", None)
    by_purchase = {p: select(books.catalog(), engine, Filters(purchase=p)) for p in PURCHASES}
    rows = [[row.instance for row in asked.rows] for asked in by_purchase.values()]
    assert all(row == rows[0] for row in rows)
    assert set(rows[0]) == {candidate.instance for asked in by_purchase.values() for candidate in asked.candidates}
    for purchase, selected in by_purchase.items():
        taking_part = [r.instance for r in selected.rows if r.class_price(purchase) and purchase not in r.passed_over]
        assert taking_part == [candidate.instance for candidate in selected.candidates]


@pytest.mark.some(1)
@pytest.mark.parametrize("purchase", OTHERS)
def test_another_class_typed_in_gives_what_build_gives_for_it(purchase: str, book: Path) -> None:
    values, solved = values_after(book, {"in_purchase": purchase}), answered(purchase)
    assert not unlike(values, solved)
    assert unlike(values, answered("on-demand")), "no answer depends on the class: it tests nothing"
    first = [v for k, v in values.items() if isinstance(k, tuple) and k[0] == "Money" and k[1].startswith("A")]
    assert f"In use: {purchase}" in first and f"Contingency on {purchase}" in first
    checks = {k: v for k, v in values.items() if k in ("chk_money_sheet", "chk_prices_dated", "chk_no_errors")}
    assert not [k for k, v in checks.items() if v == "CHECK"]


@pytest.mark.long
@needs_libreoffice
def test_libreoffice_says_so_too(book: Path, tmp_path: Path) -> None:
    file = edit(book, tmp_path / "spot.xlsx", {"in_purchase": "spot"})
    assert not unlike(values(convert_all([file], tmp_path)[0]), answered("spot"))


@pytest.mark.long
def test_a_workbook_built_of_another_class_switches_back(tmp_path: Path) -> None:
    path, _ = books.build(tmp_path, "spot", {**LEAN, "purchase": "spot"})
    by_place = values_after(path, {"in_purchase": "on-demand"})
    assert not unlike(by_place, solve(ask(books.catalog(), LEAN)))


def test_no_class_is_no_price_and_a_check_says_so(book: Path) -> None:
    by_place = values_after(book, {"in_purchase": "barter"})
    assert not [k for k, v in by_place.items() if str(k).endswith("_monthly_usd") and isinstance(v, float)]
    assert by_place["chk_all"] == "CHECK" and not [k for k, v in by_place.items() if isinstance(v, ErrorValue)]


@pytest.mark.long
def test_pull_carries_the_class_and_prices_stay_with_theirs(tmp_path: Path) -> None:
    """A price typed in a column of a class is of that class, whichever is in use."""
    instances = "aws/g6e.xlarge,aws/p5.48xlarge,gcp/a3-highgpu-8g,gcp/a3-megagpu-8g"
    options = {"models": "8b", "workloads": "chat", "tiers": "1,32", "instances": instances, "as_of": books.AS_OF}
    path, _ = books.build(tmp_path, "small", options)
    sheets = books.Sheets(path)
    typed = {"in_purchase": "spot", sheets.at(PRICES_SHEET, "p5.48xlarge", "$ per hour, spot"): 0.125}
    pulled = pull(edit_and_recalculate(path, tmp_path / "edited.xlsx", typed), books.catalog())
    assert pulled.options["purchase"] == "spot"
    assert pulled.overrides["instances"] == {"aws/p5.48xlarge": {"price_spot": 0.125}}
    assert len(pulled.changed) == 2 and not pulled.other_results
    assert pulled.audit is not None and pulled.audit.verdict == "agrees", list(lines(pulled))
    assert pulled.solved.candidate(pulled.solved.choices[0].offer).instance == "aws/p5.48xlarge"
