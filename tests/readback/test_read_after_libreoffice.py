"""A file saved by LibreOffice is read back right, and `diff` names what was done there and nothing else."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import books
import pytest
from amounts import IN_LONG
from command_lines import RunOfSome
from office_edits import Job, Step, edit_in_libreoffice, needs_uno
from option_values import OptionValue
from packages import TINY, area_of, cell_of
from recalculation import convert_all, edit, needs_libreoffice
from workbook_cells import CellValue, Place, values

from sheetgen.book.carried import IN_A_CELL, record_sheet
from sheetgen.book.sheets import Book, Range, Ref
from sheetgen.readback.file_cells import read_cells
from sheetgen.readback.package import WorkbookError, areas, outline
from sheetgen.readback.read_book import Snapshot, read_workbook
from sheetgen.readback.read_record import read_parts
from sheetgen.writers.xlsx import write_xlsx

HERE = "aws/p5.48xlarge"
OWN = {
    "type": "box.1",
    "provider": "acme",
    "instance_gpu": "nvidia-h100-sxm5-80gb",
    "gpu_count": 8,
    "price_usd_per_hour": 33.5,
    "price_date": 46300,
}


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lean one: LibreOffice opens, recalculates and saves it anew for each job."""
    asked = {**TINY, "models": "8b", "instances": f"aws/g6.xlarge,aws/g6e.xlarge,{HERE}"}
    return books.build(tmp_path_factory.mktemp("book"), "lean", asked, with_decision=False)[0]


@pytest.fixture(scope="module")
def snapshot(book: Path) -> Snapshot:
    return read_workbook(book)


def places(book: Path, snapshot: Snapshot) -> dict[Place, CellValue]:
    """The cells of three edits: a tier, a price, a spare row filled."""
    instances = list(snapshot.tables["instances"])
    price = area_of(book, "cat_instances_price_usd_per_hour")[instances.index(HERE)]
    spare = {area_of(book, f"cat_instances_{c}")[len(instances)]: v for c, v in OWN.items()}
    return {cell_of(book, "in_tier_2"): 64, cell_of(book, "in_headline_tier"): 64, price: 49.0, **spare}


def kept(inputs: Mapping[str, OptionValue]) -> dict[str, Any]:
    """Numbers to 15 digits, which is what LibreOffice keeps of a third."""
    return {name: float(f"{value:.15g}") if isinstance(value, float) else value for name, value in inputs.items()}


def typing(cells: dict[Place, CellValue]) -> list[Step]:
    return [
        ("text" if isinstance(value, str) else "number", sheet, cell, str(value))
        for (sheet, cell), value in cells.items()
    ]


BROKEN = {
    "delete": ("1", "in_tier_2 points to a cell that was deleted (#REF!)"),
    "formula": ("=1/0", "in_tier_2 ({cell}) holds the error #DIV/0!"),
    "text": ("many", "in_tier_2 ({cell}) holds the text 'many', where a number belongs"),
    "remove": ("", "points to a cell that was deleted (#REF!)"),
}
IN_GATE = tuple(BROKEN) if IN_LONG else ("delete", "formula")


def inserted(book: Path) -> list[Step]:
    """Rows above every table and among the inputs, and a column before the models."""
    sheet, cell = cell_of(book, "in_block_size")
    return [
        ("insert", sheet, cell[1:], "1"),
        *(("insert", sheet, "1", "2") for sheet in ("Inputs", "Models", "GPUs", "Prices and hardware", "Workings")),
        ("columns", "Models", "1", "1"),
        ("rename", "Inputs", "Assumptions (ours)"),
    ]


def inside_a_table(book: Path) -> list[Step]:
    """A row of one's own among those of a table, and a blank one; blank rows among the inputs."""
    sheet, third = area_of(book, "cat_instances_type")[2]
    return [
        ("insert", "Prices and hardware", third[1:], "1"),
        ("text", sheet, third, "box.1"),
        ("text", sheet, f"B{third[1:]}", "acme"),
        ("insert", "Prices and hardware", third[1:], "1"),
        ("insert", "Inputs", cell_of(book, "in_tier_2")[1][1:], "2"),
    ]


@pytest.fixture(scope="module")
def saved(book: Path, snapshot: Snapshot, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All that LibreOffice edits here, in one run of it."""
    folder, (sheet, cell) = tmp_path_factory.mktemp("saved"), cell_of(book, "in_tier_2")
    steps = {
        **({"moved": [*typing(places(book, snapshot)), *inserted(book)]} if IN_LONG else {}),
        "inside": inside_a_table(book),
        "copied": [("copy", "Inputs", "Inputs before"), ("formula", *cell_of(book, "in_tier_1"), "=2*8")],
    }
    for fault in IN_GATE:
        value, _ = BROKEN[fault]
        where = {"delete": (sheet, cell[1:]), "remove": ("GPUs",)}.get(fault, (sheet, cell))
        steps[fault] = [(fault, *where, value)]
    jobs = [Job(book, folder / f"{name}.xlsx", edits) for name, edits in steps.items()]
    return dict(zip(steps, edit_in_libreoffice(jobs, folder), strict=True))


def assert_is_edited(got: Snapshot, was: Snapshot, sheetgen: RunOfSome, book: Path, path: Path) -> None:
    """All is as it was but for the three edits, and they are what `diff` says."""
    assert kept(got.inputs) == kept({**was.inputs, "tier_2": 64, "headline_tier": 64})
    for name in ("models", "gpus", "precisions"):
        assert dict(got.tables[name]) == dict(was.tables[name])
        assert dict(got.tables[name].heads) == dict(was.tables[name].heads)
    rows = {k: dict(r) for k, r in was.tables["instances"].items()}
    rows[HERE]["price_usd_per_hour"] = 49.0
    own = got.tables["instances"]["acme/box.1"]
    assert {k: own[k] for k in OWN if k != "price_date"} == {k: v for k, v in OWN.items() if k != "price_date"}
    assert own["price_date"].isoformat() == "2026-10-05"
    assert {k: dict(r) for k, r in got.tables["instances"].items() if k != "acme/box.1"} == rows
    assert got.is_edited and got.notes == () and got.record == was.record

    ran = sheetgen("diff", book, path, "--json")
    assert ran.code == 0, ran.err
    data = json.loads(ran.out)
    words = [c["words"] for s in ("load", "inputs", "prices", "models", "gpus", "precisions") for c in data[s]]
    assert words == [
        "at once, tier 2: 32 -> 64 (+100 %)",
        "aws/p5.48xlarge: $55.04 -> $49.00 an hour (-11 %)",
        "acme/box.1: added (8x nvidia-h100-sxm5-80gb), $33.50 an hour",
    ]
    assert data["results"] and [b["how"] for b in data["bridge"]] == ["solved again"], data["bridge"]


@pytest.mark.long  # in the gate test_pull_libreoffice reads a workbook that LibreOffice saved
@needs_libreoffice
def test_a_workbook_that_libreoffice_saved_again(
    book: Path, snapshot: Snapshot, sheetgen: RunOfSome, tmp_path: Path
) -> None:
    plain, edited = (
        edit(book, tmp_path / f"{name}.xlsx", typed)
        for name, typed in (("plain", {}), ("typed", places(book, snapshot)))
    )
    *saved_plain, saved = convert_all([*([plain] if IN_LONG else []), edited], tmp_path)
    assert_is_edited(read_workbook(saved), snapshot, sheetgen, book, saved)
    for path in saved_plain:
        assert_is_as_built(read_workbook(path), snapshot, sheetgen, book, path)


def assert_is_as_built(got: Snapshot, snapshot: Snapshot, sheetgen: RunOfSome, book: Path, path: Path) -> None:
    assert kept(got.inputs) == kept(snapshot.inputs)
    assert got.results == pytest.approx(snapshot.results)
    assert got.record == snapshot.record and not got.is_edited
    assert {n: dict(t) for n, t in got.tables.items()} == {n: dict(t) for n, t in snapshot.tables.items()}
    assert json.loads(sheetgen("diff", book, path, "--json").out)["equal"]


@needs_libreoffice
def test_a_record_of_many_cells_survives_libreoffice(tmp_path: Path) -> None:
    record = {"noise": random.Random(5).randbytes(60_000).hex(), "text": "=1+1 <&> é 漢 \u0007"}
    names: dict[str, Ref | Range] = {}
    sheet = record_sheet(names, record)
    assert len(names) > 2 and max(len(ref.value) for ref in names.values() if isinstance(ref, Ref)) == IN_A_CELL
    path = tmp_path / "record.xlsx"
    path.write_bytes(write_xlsx(Book([sheet], names, {}, datetime.datetime(2026, 11, 20), "a4")))
    for file in (path, *convert_all([path], tmp_path)):
        book = outline(file.read_bytes())
        places = areas(book)
        (grid,) = read_cells(book).values()
        assert all(cell.formula is None and cell.kind == "s" for cell in grid.values())
        assert read_parts(places, lambda area, grid=grid: grid[area.row, area.column].value, dict) == record


@pytest.mark.long
@needs_uno
def test_rows_inserted_above_a_row_filled_and_a_price_changed(
    book: Path, snapshot: Snapshot, sheetgen: RunOfSome, saved: dict[str, Path]
) -> None:
    got = read_workbook(saved["moved"])
    was, now = snapshot.cells["in_block_size"].place, got.cells["in_block_size"].place
    assert (now.row, now.sheet) == (was.row + 3, "Assumptions (ours)")
    assert_is_edited(got, snapshot, sheetgen, book, saved["moved"])


@pytest.mark.long
@needs_uno
def test_a_row_inserted_inside_a_table_is_read(book: Path, snapshot: Snapshot, saved: dict[str, Path]) -> None:
    """The names grow with the table; a blank row in it is no row."""
    path = saved["inside"]
    assert (values(book)["chk_rows_of_instances"], values(path)["chk_rows_of_instances"]) == ("OK", "CHECK")
    got = read_workbook(path)
    assert list(got.tables["instances"])[2] == "acme/box.1"
    rows = {k: dict(r) for k, r in got.tables["instances"].items() if k != "acme/box.1"}
    assert rows == {k: dict(r) for k, r in snapshot.tables["instances"].items()}
    assert kept(got.inputs) == kept(snapshot.inputs)


@pytest.mark.long
@needs_uno
@pytest.mark.parametrize("fault", IN_GATE)
def test_what_libreoffice_broke_is_told(fault: str, book: Path, saved: dict[str, Path]) -> None:
    with pytest.raises(WorkbookError) as caught:
        read_workbook(saved[fault])
    (line,) = caught.value.problems
    assert BROKEN[fault][1].format(cell="!".join(cell_of(book, "in_tier_2"))) in line


@pytest.mark.long
@needs_uno
def test_a_copied_sheet_and_a_formula_do_no_harm(book: Path, snapshot: Snapshot, saved: dict[str, Path]) -> None:
    sheet, cell = cell_of(book, "in_tier_1")
    got = read_workbook(saved["copied"])
    assert kept(got.inputs) == kept({**snapshot.inputs, "tier_1": 16})
    assert got.notes == (f"in_tier_1 ({sheet}!{cell}) holds a formula: the value of the last recalculation is taken.",)
