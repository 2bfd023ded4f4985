"""Every cell of an edited workbook as it stands in the file: its value, and the formula if it has one."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from sheetgen.errors import shown
from sheetgen.pull.formula_text import Parsed, parsed
from sheetgen.workbook.cells import MOST_STRING_ELEMENTS, position
from sheetgen.workbook.outline import outline
from sheetgen.workbook.package import open_package, read_file, read_member
from sheetgen.workbook.xml_part import MAIN, Checked

_C, _F, _V, _T, _ROW = (f"{{{MAIN}}}{tag}" for tag in ("c", "f", "v", "t", "row"))
_STRING, _PHONETIC = f"{{{MAIN}}}si", f"{{{MAIN}}}rPh"

MOST_ELEMENTS = 2_000_000  # of all sheets; a sheet of eight models has 700,000


class Held(NamedTuple):
    """What a cell holds. A formula shared by several cells stands as the first has it, `away` rows and columns off."""

    value: Any
    formula: Parsed | None = None
    away: tuple[int, int] = (0, 0)
    text: str = ""


Cells = dict[tuple[int, int], Held]


def read_edited(path: Path | str) -> dict[str, Cells]:
    """By sheet, every cell that holds something; rows and columns count from 1. Raises WorkbookError."""
    where = shown(path, 200)
    package = open_package(read_file(Path(path)), where)
    book = outline(package, where)
    strings: list[str] = []
    if book.strings is not None:
        data = read_member(package, book.strings, where)
        Checked(data, book.strings, where, MOST_STRING_ELEMENTS)
        strings = [_text(item) for item in ElementTree.fromstring(data).iter(_STRING)]
    found: dict[str, Cells] = {}
    left = MOST_ELEMENTS
    for sheet, part in book.sheets.items():
        data = read_member(package, part, where)
        left -= Checked(data, part, where, left).elements
        found[sheet] = dict(_cells(data, sheet, strings))
    return found


def _text(item: ElementTree.Element) -> str:
    """A text without its hints on pronunciation."""
    spoken = {id(t) for hint in item.iter(_PHONETIC) for t in hint.iter(_T)}
    return "".join(t.text or "" for t in item.iter(_T) if id(t) not in spoken)


def _cells(data: bytes, sheet: str, strings: Sequence[str]) -> Iterator[tuple[tuple[int, int], Held]]:
    shared: dict[str, tuple[tuple[int, int], str]] = {}
    for _, row in ElementTree.iterparse(io.BytesIO(data)):
        if row.tag != _ROW:
            continue
        for cell in row.iter(_C):
            at = position(cell.get("r", ""))
            if at is None:
                continue
            value, formula = _value(cell, strings), cell.find(_F)
            if formula is not None:
                text, away = formula.text or "", (0, 0)
                key = formula.get("si") if formula.get("t") == "shared" else None
                if key is not None:
                    origin, text = shared.setdefault(key, (at, text))
                    away = at[0] - origin[0], at[1] - origin[1]
                yield at, Held(value, parsed(text, sheet), away, text)
            elif value is not None:
                yield at, Held(value)
        row.clear()


def _value(cell: ElementTree.Element, strings: Sequence[str]) -> Any:
    kind, text = cell.get("t", "n"), cell.findtext(_V)
    if kind == "inlineStr":
        return _text(cell)
    if text is None or (text == "" and kind != "str"):
        return None
    try:
        if kind == "s":
            return strings[int(text)]
        if kind == "b":
            return text in ("1", "true")
        return text if kind in ("str", "e", "d") else float(text)
    except (ValueError, IndexError):
        return text
