"""Cells by openpyxl, out of a copy of the workbook that holds nothing but what is to be read."""

from __future__ import annotations

import datetime
import io
import math
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from sheetgen.errors import shown
from sheetgen.workbook.error import WorkbookError
from sheetgen.workbook.names import number
from sheetgen.workbook.outline import Outline
from sheetgen.workbook.package import CONTENT_TYPES, read_member
from sheetgen.workbook.xml_part import MAIN, SAVE_ANEW, Checked, CheckedSheet

MOST_SHEET_ELEMENTS = 300_000  # of all sheets that are read; one of three models has 30,000
MOST_INLINE_TEXTS = 10_000
MOST_STRING_ELEMENTS = 60_000
MOST_STYLE_ELEMENTS = 20_000
MOST_WHOLE = 2**53

_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"


class Found(NamedTuple):
    """What one cell holds. `kind` is openpyxl's: n number, s text, b true or false, d date, e error."""

    value: Any
    kind: str = "n"
    number_format: str = "General"
    is_formula: bool = False


Grid = dict[tuple[int, int], Found]


def read_cells(
    package: zipfile.ZipFile, book: Outline, wanted: Mapping[str, tuple[int, int]], where: str
) -> dict[str, Grid]:
    """By sheet, the cells from A1 to the wanted last row and column. Raises WorkbookError.

    openpyxl gives the values; which cells hold a formula was seen when the sheets were checked.
    """
    parts: dict[str, bytes] = {}
    for part, most in ((book.strings, MOST_STRING_ELEMENTS), (book.styles, MOST_STYLE_ELEMENTS)):
        if part is not None:
            parts[part] = read_member(package, part, where)
            Checked(parts[part], part, where, most)
    grids: dict[str, Grid] = {}
    left, left_inline = MOST_SHEET_ELEMENTS, MOST_INLINE_TEXTS
    for sheet in wanted:
        part = book.sheets[sheet]
        checked = CheckedSheet(read_member(package, part, where), part, where, left, left_inline)
        left, left_inline = left - checked.elements, left_inline - checked.inline
        parts[part] = checked.rows_alone()
        grids[sheet] = {at: Found(None, is_formula=True) for at in map(position, checked.formulas) if at}
    for sheet, at, found in _cells(_slim(book, wanted, parts), wanted, where):
        grids[sheet][at] = found._replace(is_formula=at in grids[sheet])
    return grids


def position(reference: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"([A-Z]{1,3})(\d{1,7})", reference)
    return (int(match[2]), number(match[1])) if match else None


def _cells(
    slim: bytes, wanted: Mapping[str, tuple[int, int]], where: str
) -> Iterator[tuple[str, tuple[int, int], Found]]:
    """Every cell of the wanted sheets that shows something."""
    import openpyxl

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it leaves out, none of which is read here
            book = openpyxl.load_workbook(io.BytesIO(slim), read_only=True, data_only=True)
            for sheet, (last_row, last_column) in wanted.items():
                for row in book[sheet].iter_rows(max_row=last_row, max_col=last_column):
                    for cell in row:
                        if cell.value is not None:
                            found = Found(_plain(cell.value), cell.data_type, cell.number_format)
                            yield sheet, (cell.row, cell.column), found
    except Exception as error:  # a library's, on a file that anybody may have written
        reason = f"{type(error).__name__}: {error}"
        raise WorkbookError(f"{where}: cannot be read as a workbook ({shown(reason, 100)}). {SAVE_ANEW}") from error


def _plain(value: Any) -> Any:
    """A date without its time; text without OOXML's escapes; a number that floats can hold."""
    from openpyxl.utils.escape import unescape

    if isinstance(value, str):
        return unescape(value)
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, int) and abs(value) > MOST_WHOLE:
        return float(value) if abs(value) < 10**300 else math.inf
    return value if isinstance(value, (int, float, datetime.date)) else str(value)  # a time of day, a span of hours


def _slim(book: Outline, wanted: Iterable[str], parts: Mapping[str, bytes]) -> bytes:
    """The wanted sheets, their strings and formats as a workbook of its own: openpyxl sees no other part."""
    kinds = {book.strings: "sharedStrings", book.styles: "styles"}
    files = {part: f"{kinds.get(part, f'sheet{i}')}.xml" for i, part in enumerate(parts)}

    def kind(part: str) -> str:
        return kinds.get(part, "worksheet")

    types = "".join(f'<Override PartName="/xl/{f}" ContentType="{_TYPE}.{kind(p)}+xml"/>' for p, f in files.items())
    relations = "".join(
        f'<Relationship Id="r{i}" Type="{_OFFICE}/{kind(p)}" Target="{f}"/>' for i, (p, f) in enumerate(files.items())
    )
    at = {part: i for i, part in enumerate(files)}
    listed = "".join(
        f'<sheet name={quoteattr(s)} sheetId="{1 + at[book.sheets[s]]}" r:id="r{at[book.sheets[s]]}"/>' for s in wanted
    )
    written = {
        CONTENT_TYPES: f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml" ContentType="text/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>{types}</Types>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{_OFFICE}">'
        f'<workbookPr date1904="{book.from_1904:d}"/><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{relations}</Relationships>',
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as copy:
        for name, text in written.items():
            copy.writestr(name, text)
        for part, data in parts.items():
            copy.writestr(f"xl/{files[part]}", data)
    return out.getvalue()
