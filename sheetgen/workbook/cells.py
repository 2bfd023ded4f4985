"""Every cell of a worksheet as it stands in the file: its value, its number format, and its formula if it has one.

And what the cell of an input may hold: a number, a text or a date, and never what stands there by mistake.
"""

from __future__ import annotations

import datetime
import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard
from xml.etree import ElementTree

from sheetgen.errors import shown
from sheetgen.sheet.model import column_number
from sheetgen.workbook.package import MAIN, SAVE_ANEW, Checked, Outline, Refusal, read_member, read_xml

MOST_SHEET_ELEMENTS = 300_000  # of the sheets that carry names; those of three models have 30,000
MOST_ELEMENTS = 2_000_000  # of all sheets; those of eight models have 700,000
MOST_INLINE_TEXTS = 10_000
MOST_STRING_ELEMENTS = 60_000
MOST_STYLE_ELEMENTS = 20_000
MOST_WHOLE = 2**53

_IN_DATA = {  # what rows are made of; their order is of no account
    f"{MAIN} {tag}": tag
    for tag in (
        "row", "c", "f", "v", "is", "t", "r", "rPr", "rPh", "phoneticPr", "rFont", "charset", "family", "b", "i",
        "strike", "outline", "shadow", "condense", "extend", "color", "sz", "u", "vertAlign", "scheme",
    )
}  # fmt: skip
_POSITION = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")  # how OOXML writes a character that XML cannot hold


class Cell(NamedTuple):
    """What one cell holds. A formula shared by several cells stands as the first has it, `away` rows and columns off.

    kind: n number, s text, b true or false, d date, e error. A date is its serial number until `as_shown`.
    """

    value: Any
    kind: str = "n"
    number_format: str = "General"
    formula: str | None = None
    away: tuple[int, int] = (0, 0)


Grid = dict[tuple[int, int], Cell]  # by row and column, which count from 1
BLANK = Cell(None)


def read_cells(
    package: zipfile.ZipFile, book: Outline, where: str, wanted: Mapping[str, tuple[int, int]] | None = None
) -> dict[str, Grid]:
    """By sheet, every cell that holds something; of the wanted sheets alone, each to its last row and column, where
    they are given. Raises WorkbookError."""
    strings: list[str] = []
    if book.strings is not None:
        items = read_xml(package, book.strings, where, MOST_STRING_ELEMENTS).iter(f"{{{MAIN}}}si")
        strings = [_unescaped(_spoken_apart(item)) for item in items]
    formats = _number_formats(read_xml(package, book.styles, where, MOST_STYLE_ELEMENTS)) if book.styles else []
    grids: dict[str, Grid] = {}
    left, left_inline = MOST_ELEMENTS if wanted is None else MOST_SHEET_ELEMENTS, MOST_INLINE_TEXTS
    for sheet in book.sheets if wanted is None else wanted:
        part = book.sheets[sheet]
        end = (math.inf, math.inf) if wanted is None else wanted[sheet]
        read = _Sheet(read_member(package, part, where), part, where, left, left_inline, strings, formats, end)
        left, left_inline = left - read.elements, left_inline - read.n_inline
        grids[sheet] = read.grid
    return grids


class _Sheet(Checked):
    """A worksheet, read in one pass with its limits."""

    def __init__(
        self, data: bytes, part: str, where: str, most_elements: int, most_inline: int,
        strings: Sequence[str], formats: Sequence[str], end: tuple[float, float],
    ) -> None:  # fmt: skip
        self.grid: Grid = {}
        self.n_inline = 0
        self._most_inline, self._strings, self._formats, self._end = most_inline, strings, formats, end
        self._rows = "none yet"  # of the part: none yet, open or read
        self._shared: dict[str, tuple[tuple[int, int], str]] = {}
        self._cell: dict[str, str] = {}  # attributes of the cell that is open, and of its formula
        self._formula: dict[str, str] = {}
        self._parts: dict[str, str] = {}  # its texts by tag: v, f, t
        self._in_phonetic = False
        self._text: list[str] = []
        self.characters = self._text.append
        super().__init__(data, part, where, most_elements)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        super().start(name, attributes)
        if self._rows != "open":
            if self.depth == 2 and name == f"{MAIN} sheetData":
                if self._rows == "read":
                    raise Refusal(f"has its rows in two places. {SAVE_ANEW}")
                self._rows = "open"
            return
        tag = _IN_DATA.get(name)
        if tag is None:
            raise Refusal(f"holds {shown(name.rpartition(' ')[2])!r} among its rows, as no sheet does. {SAVE_ANEW}")
        if tag == "c":
            self._cell, self._parts = attributes, {}
        elif tag == "f":
            self._formula = attributes
        elif tag == "rPh":
            self._in_phonetic = True
        elif tag == "is":
            self.n_inline += 1
            if self.n_inline > self._most_inline:
                raise Refusal(f"holds too many texts of its own. {SAVE_ANEW}")
        self._text.clear()

    def end(self, name: str) -> None:
        super().end(name)
        if self._rows != "open":
            return
        if self.depth == 1:
            self._rows = "read"
            return
        tag = _IN_DATA[name]
        if tag in ("v", "f"):
            self._parts[tag] = "".join(self._text)
        elif tag == "t" and not self._in_phonetic:
            self._parts["t"] = self._parts.get("t", "") + "".join(self._text)
        elif tag == "rPh":
            self._in_phonetic = False
        elif tag == "c":
            self._keep()

    def _keep(self) -> None:
        at = position(self._cell.get("r", ""))
        if at is None:
            raise Refusal(f"has cells that do not say where they stand. {SAVE_ANEW}")
        text = self._parts.get("f")
        if at[0] > self._end[0] or at[1] > self._end[1]:
            return
        away = (0, 0)
        if text is not None and self._formula.get("t") == "shared" and "si" in self._formula:
            origin, text = self._shared.setdefault(self._formula["si"], (at, text))
            away = at[0] - origin[0], at[1] - origin[1]
        value, kind = self._value()
        if value is not None or text is not None:
            style = self._cell.get("s", "0")
            known = style.isdecimal() and int(style) < len(self._formats)
            self.grid[at] = Cell(value, kind, self._formats[int(style)] if known else "General", text, away)

    def _value(self) -> tuple[Any, str]:
        kind, text = self._cell.get("t", "n"), self._parts.get("v")
        if kind == "inlineStr":
            return (_unescaped(self._parts["t"]) if "t" in self._parts else None), "s"
        if text is None or (text == "" and kind != "str"):
            return None, kind
        try:
            if kind == "s":
                return self._strings[int(text)], "s"
            if kind == "n":
                return _number(text), "n"
        except (ValueError, IndexError) as error:
            raise Refusal(f"holds {shown(text)!r} in {shown(self._cell['r'])} ({error}). {SAVE_ANEW}") from error
        if kind == "b":
            return text in ("1", "true"), "b"
        return (text, kind) if kind in ("e", "d") else (_unescaped(text), "s")


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a cell's value is one; a yes or no is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def position(reference: str) -> tuple[int, int] | None:
    """`B12` as row and column."""
    match = _POSITION.fullmatch(reference)
    return (int(match[2]), 1 + column_number(match[1])) if match else None


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
    found = float(text) if re.search("[.eE]", text) else int(text)
    if isinstance(found, int) and abs(found) > MOST_WHOLE:  # as a float can hold it
        return float(found) if abs(found) < 10**300 else math.inf
    return found


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


def _spoken_apart(item: ElementTree.Element) -> str:
    """A text without its hints on pronunciation."""
    spoken = {id(t) for hint in item.iter(f"{{{MAIN}}}rPh") for t in hint.iter(f"{{{MAIN}}}t")}
    return "".join(t.text or "" for t in item.iter(f"{{{MAIN}}}t") if id(t) not in spoken)


def _number_formats(styles: ElementTree.Element) -> list[str]:
    """The number format of each style that a cell may have."""
    from openpyxl.styles.numbers import BUILTIN_FORMATS

    own = {one.get("numFmtId"): one.get("formatCode", "General") for one in styles.iter(f"{{{MAIN}}}numFmt")}
    usual = {str(n): code for n, code in BUILTIN_FORMATS.items()}
    ids = [xf.get("numFmtId", "0") for xf in styles.iterfind(f"{{{MAIN}}}cellXfs/{{{MAIN}}}xf")]
    return [own.get(one) or usual.get(one, "General") for one in ids]
