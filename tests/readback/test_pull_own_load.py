"""A sheet of one's own load, whose memory is for longer requests than its times are of: live, and carried back."""

from __future__ import annotations

from pathlib import Path

import books
import pytest
from cells_of import FEW
from recalculation import assert_recalculates, edit_and_recalculate, needs_libreoffice

from sheetgen.answer.solve import solve
from sheetgen.cli.options import with_scenario
from sheetgen.question.overrides import Written
from sheetgen.question.sheet_question import ask
from sheetgen.readback.pulled import Pulled, _points_as_built, pull
from sheetgen.readback.pulled_words import scenario_text

OPTIONS = {
    "models": "70b",
    "instances": FEW,
    "as_of": books.AS_OF,
    "context_tokens": "10200",
    "input_tokens": "1800",
    "output_tokens": "350",
    "tiers": "100",
    "tpot_ms": "50",
    "ttft_ms": "1500",
}


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("own"), "own", OPTIONS)[0]


def answer(**options: str) -> tuple[float, float]:
    """A month and the time to the first token, as Python has them."""
    typed = {name: options.pop(name) for name in [*options] if name.endswith("_asked")}
    written = {"typed": Written({"inputs": {k: int(v) for k, v in typed.items()}}, str)} if typed else {}
    (choice,) = solve(ask(books.catalog(), {**OPTIONS, **options, **written})).choices
    return choice.monthly_usd, choice.ttft_seconds


def pulled_after(book: Path, folder: Path, **cells: int) -> Pulled:
    typed = {f"in_{name}": value for name, value in cells.items()}
    return pull(edit_and_recalculate(book, folder / "edited.xlsx", typed), books.catalog())


def test_its_answer_is_that_of_the_load_that_recommend_is_asked_for() -> None:
    options = {name: value for name, value in OPTIONS.items() if name != "tiers"} | {"concurrent_requests": "100"}
    (choice,) = solve(ask(books.catalog(), options)).choices
    assert (choice.monthly_usd, choice.ttft_seconds) == answer()


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("cells", "as_asked"),
    [
        ({"prompt_asked": 6000}, {"prompt_asked": "6000"}),
        ({"context_asked": 30_000, "prompt_asked": 900}, {"context_tokens": "30000", "prompt_asked": "900"}),
        ({"output_asked": 4000, "context_asked": 8000}, {"output_asked": "4000", "context_tokens": "8000"}),
    ],
)
def test_an_edit_of_its_lengths_is_what_python_works_out(
    book: Path, tmp_path: Path, cells: dict[str, int], as_asked: dict[str, str]
) -> None:
    pulled = pulled_after(book, tmp_path, **cells)
    assert pulled.other_results == ()
    (choice,) = pulled.solved.choices
    assert (choice.monthly_usd, choice.ttft_seconds) == answer(**as_asked) != answer()


def test_as_built_nothing_was_changed_and_its_options_build_it_again(book: Path) -> None:
    pulled = pull(book, books.catalog())
    assert not pulled.changed
    assert pulled.audit is not None
    assert not pulled.audit.overwritten
    assert books.book_bytes(solve(ask(books.catalog(), pulled.options))) == book.read_bytes()


@pytest.mark.long  # in the gate formualizer calculates it, edited
@needs_libreoffice
def test_libreoffice_recalculates_it(book: Path, tmp_path: Path) -> None:
    assert_recalculates(book, tmp_path)


POINT = "model=8b,gpu=h100,tp=1,concurrent_requests=64,input_tokens=1024,output_tokens=1024,tpot_ms=22.4"


def test_a_measured_point_is_carried_back(tmp_path: Path) -> None:
    """The formulas of a sheet with measured points are others: without the point each would look overwritten."""
    asked = {**OPTIONS, "models": "8b", "measured": [POINT]}
    pulled = pull(str(books.build(tmp_path, "measured", asked)[0]), books.catalog())
    assert not pulled.changed and pulled.audit is not None and not pulled.audit.overwritten
    (point,) = pulled.options["measured"]
    assert point.endswith("tpot_ms=22.4")
    scenario = tmp_path / "again.yaml"
    scenario.write_text(scenario_text(pulled.options, pulled.overrides, "measured.xlsx", "1"))
    assert with_scenario(str(scenario), dict.fromkeys(pulled.options))["measured"] == [point]


def test_a_file_in_place_of_a_measured_point_is_not_read() -> None:
    """Whoever writes a workbook names no file of its reader's."""
    written = [POINT, "/etc/passwd", "result.json,gpu=h100", "a=b", 5]
    assert _points_as_built(written) == [POINT] and _points_as_built("x=1,y=2") == []
