"""A brand in the workbook: its colours in the roles it has, logo and name on the first sheet, its line on each page."""

from __future__ import annotations

import html
import io
import re
import warnings
import zipfile
from functools import cache
from typing import Any

import books
import openpyxl
import pytest
import xlsxwriter
from answers import book_for
from brands import COLORS, named

from sheetgen import __version__
from sheetgen.answer.solve import solve
from sheetgen.book.sheets import Book
from sheetgen.brand import Brand, Colors
from sheetgen.question.sheet_question import ask
from sheetgen.writers.formats import Options
from sheetgen.writers.xlsx import put_print_marks, write_xlsx
from sheetgen.writers.xlsx_styles import BRANDED, STATUS, style


@cache
def book(models: str) -> Book:
    solved = solve(ask(books.catalog(), {**books.SMALL, "models": models, "tiers": "32"}))
    return book_for(solved)


@cache
def workbook(brand: str, models: str = "8b,70b") -> bytes:
    return write_xlsx(book(models), Options(brand=named(brand)))


def read(data: bytes) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl on what it does not keep
        return openpyxl.load_workbook(io.BytesIO(data))


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("brand", "models"),
    [
        *((brand, "8b,70b") for brand in ("example", "wide", "tall", "codes", "unbroken")),
        *((brand, models) for brand in ("wide", "tall") for models in ("8b", "8b,70b,405b")),
    ],
)
def test_logo_and_name_stand_on_the_first_sheet(brand: str, models: str) -> None:
    opened, wanted = read(workbook(brand, models)), named(brand)
    assert wanted is not None and wanted.logo is not None
    first, *others = opened.worksheets
    (image,) = first._images
    assert image._data() == wanted.logo.png and not any(sheet._images for sheet in others)
    width, height = image.anchor.to, image.anchor._from
    assert image.anchor._from.row == 0 == image.anchor.to.row, "the logo leaves the first row"
    assert (width.col, height.col) <= (first.max_column, first.max_column)
    names = [cell for row in first.iter_rows(max_row=3) for cell in row if cell.value == wanted.name]
    assert len(names) == 1 and names[0].alignment.horizontal == "right" and names[0].data_type == "s"
    with zipfile.ZipFile(io.BytesIO(workbook(brand, models))) as package:
        assert f'descr="Logo of {_xml(wanted.name)}"' in package.read("xl/drawings/drawing1.xml").decode()
        assert f"<Company>{_xml(wanted.name, quotes=False)}</Company>" in package.read("docProps/app.xml").decode()


def _xml(text: str, quotes: bool = True) -> str:
    text = text.replace("&", "&amp;")
    return text.replace('"', "&quot;") if quotes else text


@pytest.mark.long
def test_every_value_and_formula_is_the_one_without_a_brand() -> None:
    plain, branded = read(workbook("none")), read(workbook("example"))
    for sheet, branded_sheet in zip(plain.worksheets, branded.worksheets, strict=True):
        cells = {c.coordinate: c.value for row in sheet.iter_rows() for c in row if c.value is not None}
        more = {c.coordinate: c.value for row in branded_sheet.iter_rows() for c in row if c.value is not None}
        added = {cell: value for cell, value in more.items() if cell not in cells}
        assert {cell: value for cell, value in more.items() if cell in cells}.keys() == cells.keys()
        assert set(added.values()) <= {"Acme GmbH"} and len(added) == (sheet is plain.worksheets[0])


def test_the_colours_are_the_brands_and_what_means_something_keeps_its_own() -> None:
    for role in ("title", "finding", "section", "answer"):
        part, name = BRANDED[role]
        assert style(role, "General", COLORS)[part] == getattr(COLORS, name) != style(role, "General")[part]
        assert style(role, "General", Colors()) == style(role, "General")
    for role in (
        "head",
        "input",
        "fixed",
        "computed",
        "link",
        "band",
        "grid_money",
        "light",
        "link_text",
        "legend_fits",
    ):
        assert style(role, "0", COLORS) == style(role, "0")
    assert set(BRANDED) == {"title", "finding", "section", "answer"} and STATUS.keys() == {
        "fits",
        "none fits",
        "over limit",
    }


@pytest.mark.some(2)
@pytest.mark.parametrize("brand", ["none", "example", "wide", "codes", "unbroken"])
def test_every_printed_page_has_name_and_line(brand: str) -> None:
    wanted = named(brand)
    feet, heads = _printed(workbook(brand), "Footer"), _printed(workbook(brand), "Header")
    line = f"{wanted.footer}\n" if wanted else ""
    below = "\n" if wanted else ""
    for foot in feet:
        left, right = foot.split("&C&10")
        assert _shown(left.removeprefix("&L&10")) == f"{line}sheetgen {__version__}"
        assert right == f"{below}&A&R&10{below}Page &P of &N"
    # On the left a wide sheet says which of its columns are printed.
    names = [head.rpartition("&R&10")[2] if "&R&10" in head else "" for head in heads]
    assert [_shown(head) for head in names] == [
        "",
        *[wanted.name if wanted else ""] * (len(feet) - 1),
    ]


def _printed(data: bytes, part: str) -> list[str]:
    """The header or footer of each sheet, from the XML: openpyxl takes codes out of a text that has && before them."""
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        sheets = [name for name in package.namelist() if name.startswith("xl/worksheets/sheet")]
        sheets.sort(key=lambda name: int(re.sub(r"\D", "", name)))
        matches = [re.search(f"<odd{part}>(.*?)</odd{part}>", package.read(name).decode(), re.S) for name in sheets]
    return [html.unescape(match[1]) if match else "" for match in matches]


def _shown(text: str) -> str:
    """A header's text as a reader sees it: && is &, a size that changes nothing is nothing."""
    return re.sub(r"&(&|10)", lambda m: "&" if m[1] == "&" else "", text or "").strip()


@pytest.mark.parametrize(
    "words", ["R&G", "&&G", "AT&T", "&[Picture]", "&P of &N", "2026", "&", "&K00FF00x", "a&10b", "W" * 60]
)
def test_words_never_become_codes_of_a_header(words: str) -> None:
    book = xlsxwriter.Workbook(io.BytesIO())
    sheet = book.add_worksheet()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        put_print_marks(sheet, "0.1.0", Brand(words, words))
    left = sheet.footer.removeprefix("&L&10").partition("\nsheetgen")[0]
    assert _shown(left) == words == _shown(sheet.header.removeprefix("&R&10"))
    assert not left[0].isdigit() and len(sheet.footer) <= 255 and "&G" not in sheet.footer
    book.close()


def test_the_longest_foot_is_within_what_excel_holds() -> None:
    book = xlsxwriter.Workbook(io.BytesIO())
    sheet = book.add_worksheet()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        put_print_marks(sheet, "0.1.0.dev123+g0123456789ab", Brand("&G" * 12, "&G" * 24))
        assert 150 < len(sheet.footer) <= 255
        put_print_marks(sheet, "0.1.0.dev123+g0123456789ab", Brand("W" * 60, "W" * 120))
    assert 150 < len(sheet.footer) <= 255
    book.close()


@pytest.mark.long
def test_the_same_bytes_each_time() -> None:
    first = workbook("example")
    workbook.cache_clear()
    book.cache_clear()
    assert first == workbook("example")
