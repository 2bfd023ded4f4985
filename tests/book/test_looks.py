"""The workbook as people see it: six tabs, of which four are printed, with nothing too wide for its column."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import books
import openpyxl
import pdfplumber
import pytest
from amounts import IN_LONG
from cells_of import FEW
from openpyxl.utils import get_column_letter, range_boundaries
from openpyxl.worksheet.worksheet import Worksheet
from recalculation import convert_all, needs_libreoffice

from sheetgen.book.money_page import SHOWN, WAYS
from sheetgen.book.sizing_sheet import COSTS
from sheetgen.question.inputs import RARE
from sheetgen.report import sentences
from sheetgen.units import DATE, NARROW
from sheetgen.writers.xlsx_styles import _ROLES, BRANDED, style

EIGHT = f"{books.FAMILIES},70b,405b,49b"
TABS_PRINTED = ("Sizing sheet", "Decision", "Inputs", "Money")
READ = 8.5  # points of the least text on paper
SIZES = {"a4": (595, 842), "letter": (612, 792)}

needs_poppler = pytest.mark.skipif(not shutil.which("pdftotext"), reason="pdftotext is not installed")


def run(*command: object) -> str:
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def shown(page: pdfplumber.page.Page) -> pdfplumber.page.Page:
    """What a page shows: LibreOffice draws the hidden columns too, and cuts them off at the last rule."""
    right = max(edge["x1"] for edge in page.edges)
    return page.filter(lambda drawn: drawn["object_type"] != "char" or drawn["x0"] < right)


def test_a_look_has_one_role() -> None:
    """But for those whose meaning is read: labels of an input, and cells that are given, computed or a change."""
    roles: dict[str, set[str]] = {}
    for role in set(_ROLES) - set(BRANDED):
        looks = [sorted({**style(role, display), "quote_prefix": None}.items()) for display in ("@", "0", DATE.excel)]
        roles.setdefault(repr(looks), set()).add(role)
    alike = sorted(map(sorted, (same for same in roles.values() if len(same) > 1)))
    assert alike == [["computed", "fixed", "state"], ["label", "text"]]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = {**books.SMALL, "models": "8b", "instances": FEW}
    return books.build(tmp_path_factory.mktemp("looks"), "ways", options)[0]


def pixels(sheet: Worksheet) -> int:
    """The width of the columns that are shown, as Excel draws them in Arial 10."""
    shown = [column for column in sheet.column_dimensions.values() if not column.hidden]
    return sum((column.max - column.min + 1) * int((column.width - 0.71) * 7 + 5.5) for column in shown)


def last_printed(sheet: Worksheet) -> tuple[int, int]:
    """The last row and column of the print area."""
    area = range_boundaries(sheet.print_area.rpartition("!")[2])
    return int(area[3]), int(area[2])


def test_decision_and_its_charts_are_as_wide_as_a_small_window(book: Path) -> None:
    sheet = books.opened(book)["Decision"]
    row, column = last_printed(sheet)
    assert pixels(sheet) <= 700
    (model,) = (cell for cell in sheet["B"] if cell.value == "Llama 3.1 8B")
    assert model.alignment.wrap_text, "a longer name is no reason for a wider column"
    assert all(chart.anchor.to.col < column and chart.anchor.to.row < row for chart in sheet._charts)
    assert len(sheet._charts) == 2
    tops = sorted((chart.anchor._from.row, chart.anchor.to.row) for chart in sheet._charts)
    filled = [cell.row - 1 for (cell,) in sheet.iter_rows(max_col=1) if cell.value]
    for top, bottom in tops:  # neither over cells nor far above the next ones
        below = min(row for row in filled if row > top)
        assert bottom < below <= bottom + 2


def test_on_the_sizing_sheet_the_rent_stands_below_the_price_and_the_cache(book: Path) -> None:
    sheet = books.opened(book)["Sizing sheet"]
    assert pixels(sheet) <= 850
    kv = [cell for row in sheet.iter_rows() for cell in row if cell.number_format == NARROW.excel]
    merged = {str(area) for area in sheet.merged_cells.ranges}
    assert kv
    for cell in kv:
        rent = sheet.cell(cell.row + 1, cell.column - 1)
        assert f"{rent.coordinate}:{cell.column_letter}{cell.row + 1}" in merged and rent.alignment.shrink_to_fit


def test_inputs_are_printed_up_to_the_head_of_those_folded_away(book: Path) -> None:
    sheet = books.opened(book)["Inputs"]
    (folded,) = (cell.row for (cell,) in sheet.iter_rows(max_col=1) if str(cell.value).startswith(RARE))
    assert last_printed(sheet)[0] < folded and sheet.row_dimensions[folded + 1].hidden
    about = sheet["A2"]
    assert about.alignment.wrap_text and sheet.row_dimensions[2].height > 20
    assert f"A2:{get_column_letter(last_printed(sheet)[1])}2" in {str(area) for area in sheet.merged_cells.ranges}


def test_no_white_text_runs_beyond_its_dark_bar(book: Path) -> None:
    """The last head of the discounts has no cell on the same ground beside it."""
    sheet = books.opened(book)["Prices and hardware"]
    last = [cell for row in sheet.iter_rows() for cell in row if cell.value == "capacity-block" and cell.fill.fill_type]
    assert last
    for cell in last:
        assert not cell.offset(column=1).fill.fill_type
        column = next(c for c in sheet.column_dimensions.values() if c.min <= cell.column <= c.max)
        assert column.width > len(cell.value) * 1.08


def test_beside_its_bar_a_way_to_pay_says_its_cash_or_why_it_has_none(tmp_path: Path) -> None:
    options = {**books.SMALL, "models": "8b", "instances": "azure/Standard_NC80adis_H100_v5"}
    path, _ = books.build(tmp_path, "bars", options)
    sheet = openpyxl.load_workbook(path, data_only=True)["Money"]
    (chart,) = sheet._charts
    assert chart.x_axis.tickLblSkip == 1
    source = chart.ser[0].cat
    (names,) = sheet[(source.strRef or source.numRef).f.rpartition("!")[2].replace("$", "")]
    (row,) = (cell.row for (cell,) in sheet.iter_rows(max_col=1) if cell.value == "Each month")
    each_month = [sheet.cell(row, 2 + k).value for k in range(len(names))]
    assert {type(usd) for usd in each_month} > {str}, "some have a price, some have none"
    lacking = sentences.NOT_SOLD, sentences.UNPRICED
    assert [name.value.endswith(lacking) for name in names] == [isinstance(usd, str) for usd in each_month]
    (paid,) = (cell.row for (cell,) in sheet.iter_rows(max_col=1) if cell.value == SHOWN[-1])
    in_all = [sheet.cell(paid, 2 + k).value for k in range(len(names))]
    shown = [name.value for name, usd in zip(names, in_all, strict=True) if not isinstance(usd, str)]
    assert shown == [
        f"{name}: ${usd:,.0f}" for name, usd in zip(WAYS.values(), in_all, strict=True) if not isinstance(usd, str)
    ]


def test_no_way_to_pay_less_is_cut_off_on_decision(book: Path) -> None:
    """The rent and the losses stand beside cells that are filled: they shrink where they are long."""
    sheet = books.opened(book)["Decision"]
    (top,) = (cell.row for (cell,) in sheet.iter_rows(max_col=1) if cell.value == "Ways to pay less")
    beside = [sheet[f"{column}{row}"] for row in range(top + 1, top + 6) for column in "DG"]
    assert all(cell.value and (cell.alignment.shrink_to_fit or cell.alignment.wrap_text) for cell in beside)


FOUR = "8b,70b,405b,gemma-3-27b"
PRINTED = [  # paper and models of each: LibreOffice starts once for them
    (("letter", FOUR),),
    pytest.param((("a4", "8b"), ("a4", books.DEFAULT), ("a4", EIGHT), ("a4", books.FAMILIES)), marks=pytest.mark.long),
    pytest.param((("letter", "8b"), ("letter", books.DEFAULT), ("letter", EIGHT)), marks=pytest.mark.long),
    pytest.param((("letter", books.FAMILIES),), marks=pytest.mark.long),
]


@pytest.mark.parametrize("sheets", PRINTED)
@needs_poppler
@needs_libreoffice
def test_four_sheets_are_printed_and_nothing_is_too_wide(sheets: tuple[tuple[str, str], ...], tmp_path: Path) -> None:
    paths = []
    for paper, models in sheets:
        options = {"models": models, "as_of": books.AS_OF, "paper": paper}
        if not (IN_LONG and models == books.DEFAULT):
            options["instances"] = books.INSTANCES
        if not IN_LONG:
            options |= {"workloads": "chat,long-doc", "tiers": "32", "instances": FEW}
        paths.append(books.build(tmp_path, f"{paper}-{len(models.split(','))}", options)[0])
    for path, pdf in zip(paths, convert_all(paths, tmp_path, "pdf", timeout=300), strict=True):
        pages = run("pdftotext", "-layout", pdf, "-").split("\f")
        with pdfplumber.open(pdf) as drawn:
            text = "\n".join(str(shown(page).extract_text()) for page in drawn.pages)
        for sign in ("###", "Err:", "#N/A", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!"):
            assert sign not in text, f"{path.name} shows {sign}"
        feet = (re.search(r" (\S.+\S) {2,}Page \d+ of \d+", page) for page in pages)
        printed = [foot[1].split("  ")[-1].strip() for foot in feet if foot]
        assert list(dict.fromkeys(printed)) == list(TABS_PRINTED), printed
        n_first, n_models = printed.count("Sizing sheet"), int(path.stem.partition("-")[2])
        assert n_first == (1 if n_models == 1 else 2), f"{path.name}: {n_first} pages"
        assert printed.count("Decision") == 1 and printed.count("Inputs") <= 2 and printed.count("Money") <= 2
        with pdfplumber.open(pdf) as drawn:
            sizes = [min(char["size"] for char in shown(page).chars) for page in drawn.pages]
        assert round(min(sizes), 1) >= READ, f"{path.name}: {sizes}"
        assert "LLM serving sizing sheet" in pages[0]
        assert COSTS in pages[0] and "Sheet's date" in pages[n_first - 1]
        width, height = (float(n) for n in re.findall(r"Page size:\s+([\d.]+) x ([\d.]+)", run("pdfinfo", pdf))[0])
        assert sorted((round(width), round(height))) == sorted(SIZES[path.stem.partition("-")[0]])


@pytest.mark.long
def test_of_many_models_the_grid_breaks_above_a_band(tmp_path: Path) -> None:
    """Its heads are printed above those of the second page."""
    models = "8b,70b,405b,49b,gemma-3-27b,gpt-oss-20b,qwen3-32b,gpt-oss-120b,deepseek-v3"
    options = {**books.SMALL, "models": models, "workloads": "chat", "tiers": "32"}
    book, _ = books.build(tmp_path, "six", options | {"title": "Six models"}, with_decision=False)
    sheet = books.opened(book)["Sizing sheet"]
    assert sheet["A1"].value == "Six models"
    model_rows = {cell.row for (cell,) in sheet.iter_rows(max_col=1) if str(cell.value).startswith("=Models!$A")}
    band = sheet.row_breaks.brk[0].id + 1
    assert band in model_rows
    first, last = (int(row) for row in sheet.print_title_rows.replace("$", "").split(":"))
    assert str(sheet.cell(first, 2).value).startswith("=") and sheet.cell(last, 2).value == "$ a month"
    assert first > 5 and last < band
