"""All overrides of XlsxWriter. They are private methods, so pyproject.toml has an upper bound for its release.

`_get_packager`, `_filename`, `_create_package`: parts are compressed on other threads, and to 7 % less.
`_extract_named_ranges`: the properties do not list all defined names again.
`_prepare_formula`: formulas are not searched for newer functions; a test checks that we write none.
`_write_cell`, `_check_dimensions`, `table`: shared formulas, which the library lacks: those that run down a column or
along a row share one text, as spreadsheets store them, which makes files a third as large.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias
from xml.sax.saxutils import escape

import deflate
import xlsxwriter
from xlsxwriter.packager import Packager
from xlsxwriter.utility import xl_range, xl_rowcol_to_cell
from xlsxwriter.worksheet import Worksheet

from sheetgen.book.sheets import Cell, Row, column_name, column_number, plain
from sheetgen.errors import PageError
from sheetgen.writers.hand_edits import CORE, marked

CellFormat: TypeAlias = Any  # a format of XlsxWriter, which has no types
LEVEL = 9  # of libdeflate's 12; level 10 is 3 % smaller, but takes three times as long
THREADS = 2
EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of every part: a fixed day gives the same bytes


class Packing(Packager):  # type: ignore[misc]  # the library has no types
    """Compresses each of the library's parts on another thread while the next one is written, and zips them.

    The library calls `_filename` for a part when the one before is done, and zips the parts that `_create_package`
    returns: none. If a release did otherwise, the tests of the bytes would fail.
    """

    def __init__(self) -> None:
        super().__init__()
        self.package = b""
        self._threads = ThreadPoolExecutor(THREADS)
        self._parts: list[tuple[str, bytes, Future[bytearray]]] = []

    def _filename(self, xml_filename: str) -> Any:
        self._begin()
        return super()._filename(xml_filename)

    def _create_package(self) -> list[Any]:
        with self._threads:
            super()._create_package()
            self._begin()
            self.package = _zipped([(name, data, smaller.result()) for name, data, smaller in self._parts])
        return []

    def _begin(self) -> None:
        for buffer, name, is_binary in self.filenames[len(self._parts) :]:
            data = buffer.getvalue() if is_binary else buffer.getvalue().encode()
            self._parts.append((name, data, self._threads.submit(deflate.deflate_compress, data, LEVEL)))


def _zipped(parts: list[tuple[str, bytes, bytearray]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data, smaller in sorted(parts, key=lambda part: part[0] == CORE):  # it has a mark of all others
            if name == CORE:
                data = marked(data, made)
                smaller = deflate.deflate_compress(data, LEVEL)
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            with made.open(info, "w") as part:
                # zipfile takes no other compressor, but keeps its own in this attribute. If it ignored ours, the file
                # would only be larger, and the test of the sizes would fail.
                part._compressor = _Whole(smaller)  # type: ignore[attr-defined]
                part.write(data)
    return out.getvalue()


class _Whole:
    """A compressor for zipfile that returns a part which is compressed already."""

    def __init__(self, packed: bytearray) -> None:
        self.packed = packed

    def compress(self, data: bytes) -> bytes:
        return b""

    def flush(self) -> bytearray:
        return self.packed


class Workbook(xlsxwriter.Workbook):  # type: ignore[misc]  # the library has no types
    """A workbook that uses Packing, and whose properties do not list the defined names."""

    packing: Packing

    def _get_packager(self) -> Packing:
        self.packing = Packing()
        return self.packing

    def _extract_named_ranges(self, defined_names: object) -> list[str]:
        return []


Place = tuple[int, int]  # row and column

_REFERENCE = re.compile(r"(?<![\w.$])(\$?)([A-Z]{1,3})(\$?)(\d+)(?![\w(.])")


class Shared(NamedTuple):
    """A cell's part in a shared formula: its number on the sheet; text and area are set in the first cell alone."""

    number: int
    text: str = ""
    area: str = ""


def shared_runs(cells: Mapping[Place, Cell]) -> dict[Place, Shared]:
    """The shared formulas by cell: runs down a column or along a row in which each formula is the one before, moved."""
    formulas = {
        place: cell.formula for place, cell in cells.items() if cell.formula is not None and not cell.formula.array
    }
    # Excel shares no formula that refers to another sheet.
    texts = {place: formula.text for place, formula in formulas.items() if "!" not in formula.text}
    seen = {place: _seen(text, *place) for place, text in texts.items()}
    down = _runs(sorted(texts, key=lambda place: (place[1], place[0])), seen, (1, 0))
    alone = texts.keys() - {place for run in down for place in run}
    along = _runs(sorted(alone), seen, (0, 1))
    by_place: dict[Place, Shared] = {}
    for number, run in enumerate([*down, *along]):
        (top, left), (bottom, right) = run[0], run[-1]
        by_place[run[0]] = Shared(number, texts[run[0]], xl_range(top, left, bottom, right))
        by_place |= dict.fromkeys(run[1:], Shared(number))
    return by_place


def shared_rows(rows: Sequence[Row], first: int) -> list[Shared | None]:
    """The shared formula of each row of cells, None for a row of facts; consecutive rows whose formula moves down share
    one. Numbers begin with `first`."""
    parts: list[Shared | None] = []
    seen = [None if row.formula is None else _seen(row.formula.text, row.row, row.left) for row in rows]
    start, text = 0, ""  # of the run
    for i, row in enumerate(rows):
        if row.formula is None:
            parts.append(None)
            continue
        above = rows[i - 1]
        parts.append(Shared(first + start))
        as_above = i > 0 and (above.row + 1, above.left, len(above)) == (row.row, row.left, len(row))
        if not as_above or seen[i] != seen[i - 1]:
            start, text = i, row.formula.text
        area = f"{xl_rowcol_to_cell(rows[start].row, row.left)}:{xl_rowcol_to_cell(row.row, row.left + len(row) - 1)}"
        parts[start] = Shared(first + start, text, area)
    return parts


def _seen(formula: str, row: int, column: int) -> list[Any]:
    """A formula with its references relative to its cell, so that a moved formula compares equal."""
    parts: list[Any] = _REFERENCE.split(formula)  # text, $, letters, $, digits, text, ...
    for i in range(1, len(parts), 5):
        if not parts[i]:
            parts[i + 1] = column_number(parts[i + 1]) - column
        if not parts[i + 2]:
            parts[i + 3] = int(parts[i + 3]) - row
    return parts


def _runs(places: Iterable[Place], seen: Mapping[Place, list[Any]], step: Place) -> list[list[Place]]:
    """Runs of two or more places, each a step from the one before and with its formula, moved."""
    runs: list[list[Place]] = []
    for place in places:
        before = place[0] - step[0], place[1] - step[1]
        if runs and runs[-1][-1] == before and seen[place] == seen[before]:
            runs[-1].append(place)
        else:
            runs.append([place])
    return [run for run in runs if len(run) > 1]


ALONE = -1  # the number of a formula that no other cell shares


class PortableWorksheet(Worksheet):  # type: ignore[misc]  # the library has no types
    """A worksheet for formulas with Excel 2007 functions, which need no prefixes for newer functions.

    The library would search each formula for some thirty newer functions; a test checks that we write none.
    """

    def _prepare_formula(self, formula: str, expand_future_functions: bool = False) -> str:
        return formula.removeprefix("{").removeprefix("=").removesuffix("}")

    def write_one(self, cell: Cell, row: int, column: int, form: CellFormat, shared: Shared | None) -> int:
        """Write a number, or a formula with its value, which other cells may share; 0 for success, else -1."""
        if self._check_dimensions(row, column):
            return -1
        if shared is None and cell.formula is not None:
            shared = Shared(ALONE, cell.formula.text)
        self.table[row][column] = Formula(form, shared, (cell.value,))
        return 0

    def write_row_of(self, cells: Row, form: CellFormat, shared: Shared | None) -> None:
        last = cells.left + len(cells) - 1
        if self._check_dimensions(cells.row, cells.left) or self._check_dimensions(cells.row, last):
            raise PageError(f"{self.get_name()}: row {cells.row + 1} is out of a worksheet's bounds")
        self.table[cells.row][cells.left] = Formula(form, shared, cells.values.tolist())

    def _write_cell(self, row: int, col: int, cell: object) -> None:
        """Write the XML of a cell; of a shared formula the text once, then its number."""
        if not isinstance(cell, Formula):
            super()._write_cell(row, col, cell)
            return
        shared, formula, follower = cell.shared, "", ""
        if shared is not None:
            formula = follower = f'<f t="shared" si="{shared.number}"/>'
        if shared is not None and shared.text:
            formula = f'<f t="shared" ref="{shared.area}" si="{shared.number}">{escape(shared.text)}</f>'
        if shared is not None and shared.number == ALONE:
            formula = f"<f>{escape(shared.text)}</f>"
        look = f'{row + 1}" s="{cell.form._get_xf_index()}"'
        parts = []
        for column, value in enumerate(cell.values, col):
            if type(value) is float and shared and math.isfinite(value):  # most cells: as below
                text = f"{value:.0f}" if value.is_integer() else repr(value)
                parts.append(f'<c r="{column_name(column)}{look}>{formula}<v>{text}</v></c>')
            elif value is not None:
                value = plain(value)
                kind = ' t="str"' if isinstance(value, str) else ""
                text = escape(value) if kind else digits(value)
                parts.append(f'<c r="{column_name(column)}{look}{kind}>{formula}<v>{text}</v></c>')
            formula = follower
        self.fh.write("".join(parts))


def digits(value: float) -> str:
    """A number as text that reads back as the same number, with a 17th digit where needed. LibreOffice reckons array
    formulas when it opens a book, from the cached values of the others: rounded ones would no longer be equal."""
    text = f"{value:.16G}"
    return text if float(text) == value else repr(value)


class Formula(NamedTuple):
    """Adjacent cells of a row in the library's table of cells, at the first one's column.

    The library tells kinds of cells by the name of their class; charts find their cached values by this one.
    """

    form: CellFormat
    shared: Shared | None  # None: the values are facts
    values: Sequence[Any]

    @property
    def value(self) -> Any:
        return self.values[0]
