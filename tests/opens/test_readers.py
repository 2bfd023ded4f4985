"""SheetJS, openpyxl, calamine, pandas and Gnumeric open our workbook, and read in it what was written."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from opened_books import build
from openpyxl.formula.translate import Translator
from package import MAIN, WORKBOOK, Package
from readers import needs_gnumeric, needs_sheetjs, read_with_sheetjs, recalculate_with_gnumeric
from recalculation import Mismatch, compare, poison, tamper
from workbook_cells import cells, names

DAY_ZERO = datetime.datetime(1899, 12, 30)


@pytest.fixture(params=(*(pytest.param(key, marks=pytest.mark.long) for key in ("three models", "plan")), "hostile"))
def read_book(request: pytest.FixtureRequest, built: dict[str, Path]) -> Path:
    """A large workbook, one whose texts are hostile, and that of a plan."""
    if request.param == "hostile":
        path, _ = request.getfixturevalue("hostile_book")
        assert isinstance(path, Path)
        return path
    return build(built, request.param)


def _same(expected: object, got: object) -> bool:
    if isinstance(got, datetime.date):
        got = (datetime.datetime.combine(got, datetime.time()) - DAY_ZERO).days
    if isinstance(expected, float) and isinstance(got, (int, float)):
        return math.isclose(expected, got, rel_tol=1e-15)
    return bool(expected == got)


def _unlike(path: Path, read: Mapping[tuple[str, str], Any]) -> list[Any]:
    """The cells that a program read otherwise than they stand in the file."""
    held = cells(path)
    assert len(held) > 1_000
    return [(*c.place, c.value, read.get(c.place)) for c in held if not _same(c.value, read.get(c.place))]


def _grids(sheets: Iterable[tuple[str, Any]]) -> dict[tuple[str, str], Any]:
    letters = openpyxl.utils.get_column_letter
    return {
        (name, f"{letters(column)}{row}"): value
        for name, rows in sheets
        for row, values in enumerate(rows, 1)
        for column, value in enumerate(values, 1)
    }


@needs_sheetjs
def test_sheetjs_and_openpyxl_read_what_is_written(read_book: Path) -> None:
    package, book, read = Package.read(read_book), openpyxl.load_workbook(read_book), read_with_sheetjs(read_book)
    assert read["sheets"] == book.sheetnames == [s.name for s in package.sheets]
    content = {(sheet, place): cell for sheet, held in read["cells"].items() for place, cell in held.items()}
    assert not _unlike(read_book, {place: cell[0] for place, cell in content.items()})[:5]
    # Each works out for itself what a cell of a shared formula says.
    opened = {
        (s.title, c.coordinate): c.value for s in book for row in s.iter_rows() for c in row if c.data_type == "f"
    }
    texts = {
        place: getattr(value, "text", value).removeprefix("=") for place, value in opened.items()
    }  # of an array formula
    assert texts == {place: cell[1] for place, cell in content.items() if cell[1]}
    assert len(texts) == sum(cell.find(f"{MAIN}f") is not None for _, cell in package.cells()) > 1_000
    written = [n.get("name") for n in package.xml(WORKBOOK).iter(f"{MAIN}definedName")]
    assert sorted(name for name, _, _ in read["names"]) == sorted(written)
    assert set(book.defined_names) == {name for name in written if not name.startswith("_xlnm.")}
    over: Counter[str] = Counter()
    for sheet, raw in zip(book, package.sheets, strict=True):
        read_books = {
            "dataValidation": len(sheet.data_validations.dataValidation),
            "conditionalFormatting": len(list(sheet.conditional_formatting)),
            "pane": int(sheet.sheet_view.pane is not None),
        }
        assert read_books == {kind: len(list(raw.root.iter(f"{MAIN}{kind}"))) for kind in read_books}, sheet.title
        notes = [c for p in package.related(raw.part, "comments") for c in package.xml(p).iter(f"{MAIN}comment")]
        assert len(notes) == read["n_comments"][sheet.title], sheet.title
        over.update({**read_books, "note": len(notes), "chart": len(sheet._charts)})
    assert all(over.values()), over


def test_calamine_reads_every_value(read_book: Path) -> None:
    calamine = pytest.importorskip("python_calamine")
    book = calamine.CalamineWorkbook.from_path(str(read_book))
    rows = ((name, book.get_sheet_by_name(name).to_python(skip_empty_area=False)) for name in book.sheet_names)
    assert not _unlike(read_book, _grids(rows))[:5]


@pytest.mark.parametrize("engine", (pytest.param("openpyxl", marks=pytest.mark.long), "calamine"))
def test_pandas_reads_every_value(engine: str, least: Path) -> None:
    import pandas

    if engine == "calamine":
        pytest.importorskip("python_calamine")
    frames = pandas.read_excel(least, sheet_name=None, header=None, engine=engine, keep_default_na=False)  # type: ignore[call-overload]
    assert not _unlike(least, _grids((name, frame.to_numpy()) for name, frame in frames.items()))[:5]


# Gnumeric ------------------------------------------------------------------------------------------------


def _is_bit_above(mismatch: Mismatch) -> bool:
    """Gnumeric 1.12.57 takes 100 * 1.1 up to 111; 1.12.55, LibreOffice and Python see a whole number in it."""
    return (
        mismatch.formula.startswith("ROUNDUP(")
        and isinstance(mismatch.got, float)
        and mismatch.got == mismatch.expected + 1
    )


def _left_over(mismatches: list[Mismatch], path: Path) -> list[Mismatch]:
    """The mismatches but for those that are a bit above a whole number."""
    shared = _first_of_shared(Package.read(path)) if any(m.formula == "(shared)" for m in mismatches) else {}
    return [m for m in (_with_text(m, shared) for m in mismatches) if not _is_bit_above(m)]


def _first_of_shared(package: Package) -> dict[tuple[str, str], tuple[str, str]]:
    """The first cell of each cell's shared formula, and its text."""
    firsts: dict[tuple[str, str], tuple[str, str]] = {}
    texts = {}
    for sheet, cell in package.cells():
        formula = cell.find(f"{MAIN}f")
        if formula is not None and formula.get("t") == "shared":
            number, place = formula.get("si", ""), cell.get("r", "")
            if formula.text:
                firsts[sheet.name, number] = place, formula.text
            texts[sheet.name, place] = firsts[sheet.name, number]
    return texts


def _with_text(mismatch: Mismatch, shared: Mapping[tuple[str, str], tuple[str, str]]) -> Mismatch:
    if mismatch.formula != "(shared)":
        return mismatch
    first, text = shared[mismatch.sheet, mismatch.cell]
    return mismatch._replace(formula=Translator(f"={text}", first).translate_formula(mismatch.cell)[1:])


@needs_gnumeric
@pytest.mark.parametrize(
    "read_book",
    [*(pytest.param(key, marks=pytest.mark.long) for key in ("three models", "plan", "hostile")), "mixture"],
    indirect=True,
)
def test_gnumeric_recalculates_every_formula(read_book: Path, tmp_path: Path) -> None:
    poisoned, out = tmp_path / "poisoned.xlsx", tmp_path / "gnumeric.xlsx"
    assert poison(read_book, poisoned) > 1_000
    recalculate_with_gnumeric(poisoned, out)
    result = compare(read_book, out)
    left = _left_over(result.mismatches, read_book)
    assert result.n_compared == result.n_formulas and result.n_poisoned == 0
    assert not left, (len(left), left[:3])
    assert names(read_book).keys() <= names(out).keys()


@needs_gnumeric
def test_gnumeric_finds_one_wrong_sign(least: Path, tmp_path: Path) -> None:
    tampered, poisoned, out = (tmp_path / f"{name}.xlsx" for name in ("tampered", "poisoned", "gnumeric"))
    sheet, cell, _, _ = tamper(least, tampered)
    poison(tampered, poisoned)
    recalculate_with_gnumeric(poisoned, out)
    assert (sheet, cell) in {(m.sheet, m.cell) for m in compare(least, out).mismatches}
