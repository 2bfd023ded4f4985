"""Every cell of a worksheet as the file has it: its value, its number format, and its formula if it has one."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeGuard
from xml.etree import ElementTree
from xml.parsers import expat

from sheetgen.book.sheets import column_number
from sheetgen.errors import shown
from sheetgen.question.parse import Raw
from sheetgen.readback.package import MAIN, SAVE_ANEW, Area, Outline, WorkbookError, areas, read_xml, sound_pieces, walk

MOST_SHEET_ELEMENTS = 300_000  # of the sheets that carry names; those of three models have 30,000
MOST_ELEMENTS = 2_000_000  # of all sheets; those of eight models have 700,000
MOST_INLINE_TEXTS = 10_000
MOST_STRING_ELEMENTS = 60_000
MOST_STYLE_ELEMENTS = 20_000
MOST_WHOLE = 2**53

_NAMESPACE = f"{{{MAIN}}}"
_DATA, _CELL, _FORMULA, _VALUE, _INLINE, _HINT, _PIECE = (
    f"{MAIN}}}{tag}" for tag in ("sheetData", "c", "f", "v", "is", "rPh", "t")
)
_OF_TEXTS = "r rPr rPh phoneticPr rFont charset family b i strike outline shadow condense extend color sz u vertAlign"
# What rows are made of.
_IN_ROWS = {f"{MAIN}}}{tag}" for tag in ("sheetData", "row", "c", "f", "v", "is", "t", "scheme", *_OF_TEXTS.split())}
_POSITION = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")  # how OOXML writes a character that XML cannot hold


class Cell(NamedTuple):
    """The content of one cell. A formula shared by several cells is written as in the first of them, `away` rows and
    columns off.

    kind: n number, s text, b true or false, d date, e error. A date is its serial number until `as_shown`.
    """

    value: Raw
    kind: str = "n"
    number_format: str = "General"
    formula: str | None = None
    away: tuple[int, int] = (0, 0)


Grid = dict[tuple[int, int], Cell]  # by row and column, which count from 1
BLANK = Cell(None)


def read_cells(book: Outline, wanted: Mapping[str, tuple[int, int]] | None = None) -> dict[str, Grid]:
    """By sheet, every cell that is not empty; only for the wanted sheets, each to its last row and column, where they
    are given. Raises WorkbookError."""
    strings: list[str] = []
    if book.strings is not None:
        items = read_xml(book.package, book.strings, MOST_STRING_ELEMENTS).iter(f"{_NAMESPACE}si")
        strings = [_without_hints(item) for item in items]
    formats = _number_formats(read_xml(book.package, book.styles, MOST_STYLE_ELEMENTS)) if book.styles else []
    grids: dict[str, Grid] = {}
    left, left_inline = MOST_ELEMENTS if wanted is None else MOST_SHEET_ELEMENTS, MOST_INLINE_TEXTS
    for sheet in book.sheets if wanted is None else wanted:
        part = book.sheets[sheet]
        rows = _Rows(strings, formats, (math.inf, math.inf) if wanted is None else wanted[sheet], left_inline)
        try:
            left -= walk(part, sound_pieces(book.package, part), left, rows.parser())
        except _Unread as error:
            raise WorkbookError(f"its part {shown(part)} {error} {SAVE_ANEW}") from error
        left_inline, grids[sheet] = rows.left_inline, rows.grid
    return grids


def read_named(book: Outline) -> tuple[dict[str, Area], dict[str, Grid]]:
    """Our names with their areas, and by sheet the cells as far as names, and what is right below them, reach. Raises
    WorkbookError."""
    places = areas(book)
    last: dict[str, tuple[int, int]] = {}
    for area in places.values():
        row, column = last.get(area.sheet, (0, 0))
        last[area.sheet] = max(row, area.row + area.n_rows), max(column, area.column + 1)
    return places, read_cells(book, last)


class _Unread(Exception):
    """The reason why the cells of a sheet cannot be read."""


class _Rows:
    """The cells of a sheet, taken as its parser meets them: a sheet of formulas has more text than memory should
    hold."""

    def __init__(
        self, strings: Sequence[str], formats: Sequence[str], last: tuple[float, float], left_inline: int
    ) -> None:
        self._strings, self._formats, self._last, self.left_inline = strings, formats, last, left_inline
        self.grid: Grid = {}
        self._shared: dict[str, tuple[tuple[int, int], str]] = {}
        self._depth = self._of_cell = self._hints = 0  # within the rows; 0 outside
        self._was_read = False
        self._texts: list[str] | None = None  # of the element that is open, where they count
        self._cell: Mapping[str, str] = {}
        self._formula: tuple[Mapping[str, str], list[str]] | None = None
        self._held: list[str] | None = None
        self._own: list[str] | None = None

    def parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text
        return parser

    def _text(self, text: str) -> None:
        if self._texts is not None:
            self._texts.append(text)

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if not self._depth:
            if name == _DATA:
                if self._was_read:
                    raise _Unread("has its rows in two places.")
                self._was_read, self._depth = True, 1
            return
        self._depth += 1
        if name not in _IN_ROWS:
            raise _Unread(f"holds {shown(name.rpartition('}')[2])!r} among its rows, as no sheet does.")
        is_of_cell = self._of_cell and self._depth == self._of_cell + 1
        if name == _CELL:
            if self._of_cell:
                raise _Unread("holds a cell in a cell.")
            self._of_cell, self._cell = self._depth, attributes
            self._formula = self._held = self._own = None
        elif name == _FORMULA and is_of_cell and self._formula is None:
            self._texts = []
            self._formula = attributes, self._texts
        elif name == _VALUE and is_of_cell and self._held is None:
            self._texts = self._held = []
        elif name == _INLINE:
            self.left_inline -= 1
            if self.left_inline < 0:
                raise _Unread("holds too many texts of its own.")
        elif name == _HINT:
            self._hints += 1
        elif name == _PIECE:  # of a text of its own, without its hints on pronunciation
            self._own = self._own or []
            self._texts = None if self._hints else self._own

    def _end(self, name: str) -> None:
        if not self._depth:
            return
        self._depth -= 1
        self._texts = None
        if name == _HINT:
            self._hints -= 1
        elif name == _CELL:
            self._of_cell = 0
            self._add_cell()

    def _add_cell(self) -> None:
        cell = self._cell
        place = _POSITION.fullmatch(cell.get("r", ""))
        if place is None:
            raise _Unread("has cells that do not say where they stand.")
        position = int(place[2]), 1 + column_number(place[1])
        if position[0] > self._last[0] or position[1] > self._last[1]:
            return
        text, away = None, (0, 0)
        if self._formula is not None:
            attributes, pieces = self._formula
            text = "".join(pieces)
            if attributes.get("t") == "shared" and "si" in attributes:
                origin, text = self._shared.setdefault(attributes["si"], (position, text))
                away = position[0] - origin[0], position[1] - origin[1]
        value, kind = self._value(cell)
        if value is not None or text is not None:
            style = cell.get("s", "0")
            has_format = style.isdecimal() and int(style) < len(self._formats)
            self.grid[position] = Cell(value, kind, self._formats[int(style)] if has_format else "General", text, away)

    def _value(self, cell: Mapping[str, str]) -> tuple[Raw, str]:
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return None if self._own is None else _unescaped("".join(self._own)), "s"
        text = None if self._held is None else "".join(self._held)
        if text is None or (text == "" and kind != "str"):
            return None, kind
        try:
            if kind == "s":
                return self._strings[int(text)], "s"
            if kind == "n":
                return _number(text), "n"
        except (ValueError, IndexError) as error:
            raise _Unread(f"holds {shown(text)!r} in {shown(cell.get('r'))} ({error}).") from error
        if kind == "b":
            return text in ("1", "true"), "b"
        return (text, kind) if kind in ("e", "d") else (_unescaped(text), "s")


def is_number(value: Raw) -> TypeGuard[float]:
    """True where a cell's value is a number; False for a truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_shown(cell: Cell, from_1904: bool) -> Cell:
    """The cell with the date that its format shows in place of a serial number; without an empty text."""
    from openpyxl.styles.numbers import is_date_format, is_timedelta_format
    from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH, from_excel, from_ISO8601

    value, code = cell.value, cell.number_format
    if value == "":
        return cell._replace(value=None)
    try:
        if cell.kind == "d":
            value = from_ISO8601(value)  # type: ignore[no-untyped-call]
        elif cell.kind == "n" and value is not None and code != "General" and is_date_format(code):
            epoch = MAC_EPOCH if from_1904 else WINDOWS_EPOCH
            value = from_excel(value, epoch, timedelta=is_timedelta_format(code))
        else:
            return cell
    except (OverflowError, ValueError):
        return cell._replace(value="#VALUE!", kind="e")
    if isinstance(value, datetime.datetime):
        value = value.date()
    return cell._replace(value=value if isinstance(value, datetime.date) else str(value), kind="d")


def _number(text: str) -> float:
    number = float(text) if re.search("[.eE]", text) else int(text)
    if isinstance(number, int) and abs(number) > MOST_WHOLE:  # as a float can hold it
        return float(number) if abs(number) < 10**300 else math.inf
    return number


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


def _without_hints(item: ElementTree.Element) -> str:
    """A text without its hints on pronunciation."""
    spoken = {id(t) for hint in item.iter(f"{_NAMESPACE}rPh") for t in hint.iter(f"{_NAMESPACE}t")}
    return _unescaped("".join(t.text or "" for t in item.iter(f"{_NAMESPACE}t") if id(t) not in spoken))


def _number_formats(styles: ElementTree.Element) -> list[str]:
    from openpyxl.styles.numbers import BUILTIN_FORMATS

    own = {style.get("numFmtId"): style.get("formatCode", "General") for style in styles.iter(f"{_NAMESPACE}numFmt")}
    usual = {str(n): code for n, code in BUILTIN_FORMATS.items()}
    ids = [xf.get("numFmtId", "0") for xf in styles.iterfind(f"{_NAMESPACE}cellXfs/{_NAMESPACE}xf")]
    return [own.get(format_id) or usual.get(format_id, "General") for format_id in ids]
