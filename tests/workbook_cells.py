"""The cells of a workbook, read apart from the product: what stands in each, which formula, under which name.

A workbook is parsed once: who asks again for the same file gets the same cells.
"""

from __future__ import annotations

import datetime
import functools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

PRICES_SHEET = "Prices and hardware"

KEPT = 4  # workbooks: a test compares two, and looks at them again
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_CELL, _FORMULA, _VALUE, _TEXT = (f"{MAIN}{tag}" for tag in ("c", "f", "v", "t"))
Place = tuple[str, str]  # sheet, cell
CellValue = str | float | bool | datetime.date | None
Values = dict[Place | str, CellValue]  # by (sheet, cell), and by a defined name


class ErrorValue(str):
    """The value of a cell that went wrong: #N/A, #DIV/0! ..."""


class Cell:
    """A cell that holds something. value: float, str, bool, ErrorValue or None."""

    __slots__ = ("_first", "_text", "cell", "sheet", "value")

    def __init__(self, sheet: str, cell: str, text: str | None, value: CellValue, first: str = "") -> None:
        self.sheet, self.cell, self.value = sheet, cell, value
        self._text, self._first = text, first

    @property
    def is_formula(self) -> bool:
        return self._text is not None

    @property
    def formula(self) -> str:
        """Its text as it reads here, "" for a constant: of a formula that cells share, the file has the first's."""
        return moved(self._text, self._first, self.cell) if self._text and self._first else self._text or ""

    @property
    def place(self) -> Place:
        return self.sheet, self.cell

    def __iter__(self) -> Iterator[CellValue]:
        return iter((self.sheet, self.cell, self.formula, self.value))


def cells(path: Path) -> list[Cell]:
    """Every cell that holds something, sheet by sheet."""
    about = path.stat()
    return _cells(path, about.st_mtime_ns, about.st_size, about.st_ino)


@functools.lru_cache(KEPT)
def _cells(path: Path, *_version: int) -> list[Cell]:
    with zipfile.ZipFile(path) as package:
        shared = shared_strings(package)
        parts = [(s, package.read(member)) for s, member in sheet_parts(package).items() if "worksheets/" in member]
    return [cell for sheet, xml in parts for cell in _of_sheet(sheet, xml, shared)]


def _of_sheet(sheet: str, xml: bytes, shared: list[str]) -> Iterator[Cell]:
    runs: dict[str, tuple[str, str]] = {}  # by number, the first cell of those that share a formula, and its text
    for cell in ElementTree.fromstring(xml).iter(_CELL):
        place, formula = cell.get("r", ""), None
        value: CellValue = None
        for part in cell:
            if part.tag == _FORMULA:
                formula = part
            elif part.tag != _VALUE:
                value = "".join(t.text or "" for t in part.iter(_TEXT))  # of an inline string
            elif part.text or cell.get("t") == "str":
                value = _value(cell.get("t", "n"), part.text or "", shared)
        if formula is None:
            if value is not None:
                yield Cell(sheet, place, None, value)
        elif formula.get("t") == "shared":
            first, text = runs.setdefault(formula.get("si", ""), (place, formula.text or ""))
            assert text, f"{sheet}!{place} shares a formula that nobody has"
            yield Cell(sheet, place, text, value, "" if first == place else first)
        else:
            yield Cell(sheet, place, formula.text or "", value)


def _value(kind: str, text: str, shared: list[str]) -> CellValue:
    if kind == "n":
        return float(text)
    if kind == "b":
        return text in ("1", "true")
    return shared[int(text)] if kind == "s" else ErrorValue(text) if kind == "e" else text


def number(value: CellValue) -> float:
    """The value of a cell that holds a number."""
    assert isinstance(value, float | int), f"{value!r} is no number"
    return value


def sheet_parts(package: zipfile.ZipFile) -> dict[str, str]:
    """Sheet name -> its member in the package, in the workbook's order."""
    rels = ElementTree.fromstring(package.read("xl/_rels/workbook.xml.rels"))
    targets = {r.get("Id"): r.get("Target", "") for r in rels}
    book = ElementTree.fromstring(package.read("xl/workbook.xml"))
    members = {s.get("name", ""): targets[s.get(_REL)] for s in book.iter(f"{MAIN}sheet")}
    return {n: t.lstrip("/") if t.startswith("/") else f"xl/{t}" for n, t in members.items()}


def shared_strings(package: zipfile.ZipFile) -> list[str]:
    """The texts that cells name by their number."""
    if "xl/sharedStrings.xml" not in package.namelist():
        return []
    table = ElementTree.fromstring(package.read("xl/sharedStrings.xml"))
    return ["".join(t.text or "" for t in item.iter(_TEXT)) for item in table]


# Names --------------------------------------------------------------------------------------------------

_AREA = re.compile(r"(?:'((?:[^']|'')+)'|([^'!]+))!\$([A-Z]+)\$(\d+)(?::\$([A-Z]+)\$(\d+))?")


def areas(path: Path) -> dict[str, list[Place]]:
    """Defined name -> its cells from top to bottom, for the names of one cell or one column."""
    cells = {}
    with zipfile.ZipFile(path) as package:
        book = ElementTree.fromstring(package.read("xl/workbook.xml"))
    for name in book.iter(f"{MAIN}definedName"):
        area = _AREA.fullmatch(name.text or "")
        if area and area[5] in (None, area[3]):
            sheet, first, last = (area[1] or area[2]).replace("''", "'"), int(area[4]), int(area[6] or area[4])
            cells[name.get("name", "")] = [(sheet, f"{area[3]}{row}") for row in range(first, last + 1)]
    return cells


def names(path: Path) -> dict[str, Place]:
    """Defined name -> its cell, for the names of one cell."""
    return {name: places[0] for name, places in areas(path).items() if len(places) == 1}


# Formulas and values ------------------------------------------------------------------------------------

_REFERENCE = re.compile(r"(?<![\w.$])(\$?)([A-Z]{1,3})(\$?)(\d+)(?![\w(.])|\"[^\"]*\"|'[^']*'")
_PLACE = re.compile(r"([A-Z]+)(\d+)")


@functools.cache
def _column_number(letters: str) -> int:
    return functools.reduce(lambda n, c: 26 * n + ord(c) - 64, letters, 0)


@functools.cache
def _column_letters(number: int) -> str:
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


@functools.lru_cache(4096)
def _pieces(formula: str) -> list[str | tuple[str, int, str, int]]:
    """A formula's texts, and its references: a "$" or "", the column's number, a "$" or "", the row."""
    pieces: list[str | tuple[str, int, str, int]] = []
    end = 0
    for m in _REFERENCE.finditer(formula):
        if m[2] and not (m[1] and m[3]):
            pieces += [formula[end : m.start()], (m[1], _column_number(m[2]), m[3], int(m[4]))]
            end = m.end()
    return [*pieces, formula[end:]]


@functools.cache
def column_and_row(cell: str) -> tuple[int, int]:
    letters, digits = _PLACE.fullmatch(cell).groups()  # type: ignore[union-attr]
    return _column_number(letters), int(digits)


def moved(formula: str, first: str, to: str) -> str:
    """A shared formula as it reads in another cell than its first."""
    (left, top), (column, row) = column_and_row(first), column_and_row(to)
    across, down = column - left, row - top
    return "".join(
        part
        if isinstance(part, str)
        else f"{part[0]}{_column_letters(part[1] + (0 if part[0] else across))}"
        f"{part[2]}{part[3] + (0 if part[2] else down)}"
        for part in _pieces(formula)
    )


def formulas(path: Path) -> list[Cell]:
    """The cells that hold a formula."""
    return [cell for cell in cells(path) if cell.is_formula]


def values(path: Path) -> Values:
    """Every value, by (sheet, cell) and, where one cell has a defined name, by that name."""
    values: Values = {cell.place: cell.value for cell in cells(path)}
    return values | {name: values.get(place) for name, place in names(path).items()}
