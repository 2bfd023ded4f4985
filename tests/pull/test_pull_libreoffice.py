"""A workbook that LibreOffice edited and saved, its rows and columns moved: all is read right, and faults are found."""

from __future__ import annotations

from pathlib import Path

import books
import pytest
from cells_of import TINY, Places, without_picks
from office_edits import Step, edit_in_libreoffice, needs_uno
from workbook_cells import formulas

from sheetgen.pull import Pulled, pull
from sheetgen.pull.words import lines

MOVED: list[Step] = [
    ("insert", "Inputs", "1", "2"), ("insert", "Instances", "2", "3"), ("insert", "Workings", "1", "1"),
    ("insert", "Candidates", "1", "2"), ("insert", "Profiles", "30", "2"), ("columns", "GPUs", "1", "1"),
    ("insert", "Sizing sheet", "1", "1"),
]  # fmt: skip


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return books.build(tmp_path_factory.mktemp("pull"), "tiny", TINY)[0]


def saved(book: Path, folder: Path, steps: list[Step]) -> Pulled:
    return pull(edit_in_libreoffice(book, folder / "saved.xlsx", steps), books.catalog())


def down(place: tuple[str, str], rows: int) -> tuple[str, str]:
    """A cell so many rows below."""
    letters = place[1].rstrip("0123456789")
    return place[0], f"{letters}{int(place[1][len(letters) :]) + rows}"


@needs_uno
def test_rows_inserted_a_price_changed_and_a_row_added_are_read_right(book: Path, tmp_path: Path) -> None:
    places = Places(book)
    price = places.rows("instances")["aws/p5.48xlarge"]["price_usd_per_hour"]
    spare = places.spare("instances")[0]
    own = {"type": "box.1", "provider": "acme", "instance_gpu": "nvidia-l40s-48gb"}
    steps: list[Step] = [
        ("number", "Inputs", places.columns["in_context_chat"][0][1], "8192"),
        ("number", *price, "12.5"),
        *(("text", *spare[column], text) for column, text in own.items()),
        ("number", *spare["gpu_count"], "2"),
        ("number", *spare["price_usd_per_hour"], "1.5"),
    ]
    pulled = saved(book, tmp_path, steps + MOVED)
    sheet, cell = down(price, 3)
    assert [(one.part, one.row, one.name, one.new, str(one.place)) for one in pulled.changed[:2]] == [
        ("inputs", None, "context_chat", 8192, "Inputs!B7"),
        ("instances", "aws/p5.48xlarge", "price_usd_per_hour", 12.5, f"{sheet}!{cell}"),
    ]
    assert len(pulled.changed) == 3
    assert without_picks(pulled.overrides) == {
        "instances": {"aws/p5.48xlarge": {"price_usd_per_hour": 12.5}},
        "own_instances": [{**own, "gpu_count": 2, "price_usd_per_hour": 1.5}],
    }
    assert pulled.audit is not None and pulled.audit.verdict == "agrees" and not pulled.audit.overwritten
    assert pulled.audit.n_formulas > 10_000 and not pulled.other_results


@needs_uno
def test_overwritten_formulas_are_named_where_they_stand_now(book: Path, tmp_path: Path) -> None:
    typed = {"Workings": ("number", "5"), "Candidates": ("formula", "=1+1"), "Money": ("text", "")}
    at = {sheet: next(c.cell for c in formulas(book) if c.sheet == sheet and c.cell > "C") for sheet in typed}
    moved = {"Workings": 1, "Candidates": 2, "Money": 0}
    places = {sheet: down((sheet, cell), moved[sheet])[1] for sheet, cell in at.items()}
    faults: list[Step] = [(what, sheet, places[sheet], text) for sheet, (what, text) in typed.items()]
    pulled = saved(book, tmp_path, MOVED + faults)
    assert pulled.audit is not None
    found = {str(one.place): one.now for one in pulled.audit.overwritten}
    now = {"Workings": 5, "Candidates": "=1+1", "Money": None}
    assert found == {f"{sheet}!{places[sheet]}": now[sheet] for sheet in typed}
    assert not pulled.changed
    was = next(c.formula for c in formulas(book) if (c.sheet, c.cell) == ("Workings", at["Workings"]))
    said = "\n".join(lines(pulled))
    assert f"Workings!{places['Workings']}" in said and f"was overwritten by 5; it was ={was}"[:60] in said
