"""What of XlsxWriter is overridden, all of it here: private methods, so its release is pinned from above in pyproject.

`_get_packager`, `_filename`, `_create_package`: parts are compressed tighter and beside the writing, by a fourteenth.
`_extract_named_ranges`: the properties do not list every defined name once more, which nobody reads.
`_prepare_formula`: formulas are not searched for newer functions, of which a test says that we write none.
`_write_cell`, `_check_dimensions`, `table`: shared formulas, which the library does not know: those that run down a
column or along a row share one text, as spreadsheets themselves store them, and files are a third as large.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import deflate
import xlsxwriter
from xlsxwriter.packager import Packager
from xlsxwriter.utility import xl_range, xl_rowcol_to_cell
from xlsxwriter.worksheet import Worksheet

from sheetgen.book.sheets import Cell, Row, column_name, column_number, plain
from sheetgen.errors import PageError

LEVEL = 9  # of libdeflate's 12; the next is a thirtieth smaller, and takes three times as long
THREADS = 2
EPOCH = (1980, 1, 1, 0, 0, 0)  # the day of every part, so that a book gives the same bytes on any day


class Packing(Packager):  # type: ignore[misc]  # the library has no types
    """The library's parts, each compressed on another thread while the next one is written, and zipped here.

    The library asks `_filename` where to write a part when the one before is done, and zips the parts that
    `_create_package` returns: none. Were a release of it to do otherwise, the tests of the bytes would tell.
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
        for name, data, smaller in parts:
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            with made.open(info, "w") as part:
                # zipfile takes no other compressor, but this attribute is where it keeps its own. Were it to ignore
                # ours, the file would only be larger, and the test of the sizes would tell.
                part._compressor = _Whole(smaller)  # type: ignore[attr-defined]
                part.write(data)
    return out.getvalue()


class _Whole:
    """A compressor of the kind that zipfile calls, for a part that is compressed already."""

    def __init__(self, packed: bytearray) -> None:
        self.packed = packed

    def compress(self, data: bytes) -> bytes:
        return b""

    def flush(self) -> bytearray:
        return self.packed


class Workbook(xlsxwriter.Workbook):  # type: ignore[misc]  # the library has no types
    """A workbook that is packed by ours, and whose properties do not list every defined name: nobody reads them."""

    packing: Packing

    def _get_packager(self) -> Packing:
        self.packing = Packing()
        return self.packing

    def _extract_named_ranges(self, defined_names: Any) -> list[str]:
        return []


Place = tuple[int, int]  # row and column

_REFERENCE = re.compile(r"(?<![\w.$])(\$?)([A-Z]{1,3})(\$?)(\d+)(?![\w(.])")


class Shared(NamedTuple):
    """A cell's part in a run: the run's number on its sheet; its text and area in the first cell, else nothing."""

    number: int
    text: str = ""
    area: str = ""


def shared_runs(cells: Mapping[Place, Cell]) -> dict[Place, Shared]:
    """By row and column, the cells whose formula is the one above moved down, or the one before moved along, and those
    that such a run begins with."""
    formulas = {at: cell.formula for at, cell in cells.items() if cell.formula is not None and not cell.formula.array}
    texts = {at: one.text for at, one in formulas.items() if "!" not in one.text}  # Excel shares none of other sheets
    seen = {at: _seen(text, *at) for at, text in texts.items()}
    down = _runs(sorted(texts, key=lambda at: (at[1], at[0])), seen, (1, 0))
    alone = texts.keys() - {at for run in down for at in run}
    along = _runs(sorted(alone), seen, (0, 1))
    found: dict[Place, Shared] = {}
    for number, run in enumerate([*down, *along]):
        (top, left), (bottom, right) = run[0], run[-1]
        found[run[0]] = Shared(number, texts[run[0]], xl_range(top, left, bottom, right))
        found |= dict.fromkeys(run[1:], Shared(number))
    return found


def shared_rows(rows: Sequence[Row], first: int) -> list[Shared | None]:
    """For each row of cells that share a formula, its part; rows one below the other whose formula moves down are one
    run. Numbers begin with `first`; none for a row of facts."""
    found: list[Shared | None] = []
    seen = [None if row.formula is None else _seen(row.formula.text, row.row, row.left) for row in rows]
    start, text = 0, ""  # of the run
    for i, row in enumerate(rows):
        if row.formula is None:
            found.append(None)
            continue
        above = rows[i - 1]
        found.append(Shared(first + start))
        as_above = i > 0 and (above.row + 1, above.left, len(above)) == (row.row, row.left, len(row))
        if not as_above or seen[i] != seen[i - 1]:
            start, text = i, row.formula.text
        area = f"{xl_rowcol_to_cell(rows[start].row, row.left)}:{xl_rowcol_to_cell(row.row, row.left + len(row) - 1)}"
        found[start] = Shared(first + start, text, area)
    return found


def _seen(formula: str, row: int, column: int) -> list[Any]:
    """A formula as its cell sees it, which a cell that it is moved to sees alike: by how far off a reference is."""
    parts: list[Any] = _REFERENCE.split(formula)  # text, $, letters, $, digits, text, ...
    for i in range(1, len(parts), 5):
        if not parts[i]:
            parts[i + 1] = column_number(parts[i + 1]) - column
        if not parts[i + 2]:
            parts[i + 3] = int(parts[i + 3]) - row
    return parts


def _runs(places: Iterable[Place], seen: Mapping[Place, list[Any]], step: Place) -> list[list[Place]]:
    """Places a step apart, each with the formula of the one before, moved."""
    runs: list[list[Place]] = []
    for at in places:
        before = at[0] - step[0], at[1] - step[1]
        if runs and runs[-1][-1] == before and seen[at] == seen[before]:
            runs[-1].append(at)
        else:
            runs.append([at])
    return [run for run in runs if len(run) > 1]


DIGITS = 12  # of 16: spreadsheets work the formulas out anew, and files are a hundredth smaller
ALONE = -1  # the number of a formula that no other cell shares


class PortableWorksheet(Worksheet):  # type: ignore[misc]  # the library has no types
    """A worksheet for formulas of the Excel 2007 vocabulary, which need no prefixes for newer functions.

    The library searches each formula for some thirty such functions; a test holds ours to the vocabulary.
    """

    def _prepare_formula(self, formula: str, expand_future_functions: bool = False) -> str:
        return formula.removeprefix("{").removeprefix("=").removesuffix("}")

    def write_one(self, cell: Cell, row: int, column: int, form: Any, shared: Shared | None) -> int:
        """A number, or a formula with its value, of its own or shared with the cells above or below."""
        if self._check_dimensions(row, column):
            return -1
        if shared is None and cell.formula is not None:
            shared = Shared(ALONE, cell.formula.text)
        self.table[row][column] = Formula(form, shared, (cell.value,))
        return 0

    def write_row_of(self, of: Row, form: Any, shared: Shared | None) -> None:
        last = of.left + len(of) - 1
        if self._check_dimensions(of.row, of.left) or self._check_dimensions(of.row, last):
            raise PageError(f"{self.get_name()}: row {of.row + 1} is out of a worksheet's bounds")
        self.table[of.row][of.left] = Formula(form, shared, of.values.tolist())

    def _write_cell(self, row: int, col: int, cell: Any) -> None:
        """The library knows no shared formulas, so this class writes them: the text once, then its number."""
        if not isinstance(cell, Formula):
            super()._write_cell(row, col, cell)
            return
        of, formula, follower = cell.shared, "", ""
        if of is not None:
            formula = follower = f'<f t="shared" si="{of.number}"/>'
        if of is not None and of.text:
            formula = f'<f t="shared" ref="{of.area}" si="{of.number}">{escape(of.text)}</f>'
        if of is not None and of.number == ALONE:
            formula = f"<f>{escape(of.text)}</f>"
        look = f'{row + 1}" s="{cell.form._get_xf_index()}"'
        parts = []
        for column, value in enumerate(cell.values, col):
            if type(value) is float and of and math.isfinite(value):  # most cells: as below
                text = f"{value:.15g}" if value.is_integer() else f"{value:.{DIGITS}g}"
                parts.append(f'<c r="{column_name(column)}{look}>{formula}<v>{text}</v></c>')
            elif value is not None:
                value = plain(value)
                kind = ' t="str"' if isinstance(value, str) else ""
                text = escape(value) if kind else digits(value) if of else fact_digits(value)
                parts.append(f'<c r="{column_name(column)}{look}{kind}>{formula}<v>{text}</v></c>')
            formula = follower
        self.fh.write("".join(parts))


def digits(value: float) -> str:
    """A formula's cached number: whole numbers in full, others with the digits that a reader could ever use."""
    return f"{value:.15g}" if value == int(value) else f"{value:.{DIGITS}g}"


def fact_digits(value: float) -> str:
    """A fact's number, with a 17th digit where it needs one: a formula that gives it again is then equal to it."""
    text = f"{value:.16G}"
    return text if float(text) == value else repr(value)


class Formula(NamedTuple):
    """Cells side by side in the library's table of cells, under the first one's column.

    The library knows its kinds of cells by their class's name: by this one charts find the value to show.
    """

    form: Any
    shared: Shared | None  # none: the values are facts
    values: Sequence[Any]

    @property
    def value(self) -> Any:
        return self.values[0]
