"""Defined names: where each of ours stands now, or why it stands nowhere."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sheetgen.errors import escaped, shown
from sheetgen.workbook.package import WorkbookError

CELLS, COLUMNS = ("in_", "rec_", "meta_"), ("cat_",)
PREFIXES = (*CELLS, *COLUMNS)
MOST_ROW, MOST_COLUMN = 50_000, 1_000  # where a named cell may stand; a sheet of ours is far smaller
MOST_TABLE_ROWS = 5_000

_AREA = re.compile(
    r"(?:'((?:[^']|'')+)'|([^'!\[\]#(),]+))!\$?([A-Z]{1,3})\$?(\d{1,7})(?::\$?([A-Z]{1,3})\$?(\d{1,7}))?"
)
_OTHER_FILE = re.compile(r"\[|file:|#\$")
_WHOLE = re.compile(r".*!\$?[A-Z]{1,3}:\$?[A-Z]{1,3}|.*!\$?\d+:\$?\d+")
NAME_MANAGER = "Mend it in Formulas, Name Manager (LibreOffice: Sheet, Named Ranges), or start from a fresh build."


@dataclass(frozen=True)
class DefinedName:
    """A defined name as the file has it; `sheet` is the sheet that it is local to."""

    name: str
    text: str
    sheet: str | None = None


@dataclass(frozen=True)
class Area:
    """A block of cells; rows and columns count from 1."""

    sheet: str
    top: int
    left: int
    bottom: int
    right: int


@dataclass(frozen=True)
class Place:
    """One cell, as messages name it."""

    sheet: str
    row: int
    column: int

    def __str__(self) -> str:
        sheet = f"'{self.sheet}'" if re.search(r"\W", self.sheet) else self.sheet
        return f"{escaped(sheet)}!{letters(self.column)}{self.row}"


def letters(column: int) -> str:
    """1 is A, 27 is AA."""
    name = ""
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name


def number(column: str) -> int:
    """A is 1, AA is 27."""
    found = 0
    for letter in column:
        found = 26 * found + ord(letter) - 64
    return found


def areas(written: Iterable[DefinedName], sheets: Iterable[str], where: str) -> dict[str, Area]:
    """Our names, each with its area on one of `sheets`, in the order of sheets, rows and columns.

    A name that is local to a sheet is passed over: a copied sheet has such names beside the workbook's.

    Raises WorkbookError with a line for each way in which names are broken.
    """
    found: dict[str, Area] = {}
    broken: dict[str, list[str]] = defaultdict(list)
    local: dict[str, str] = {}
    seen: set[str] = set()
    order = list(sheets)
    by_lower = {name.lower(): name for name in order}
    for one in written:
        name = one.name.lower()  # spreadsheets do not tell cases apart
        if not name.startswith(PREFIXES):
            continue
        if one.sheet is not None:
            local[name] = one.sheet
            continue
        problem = "stands twice in the workbook" if name in seen else None
        seen.add(name)
        area = None if problem else _area(one.text, by_lower)
        problem = problem or (area if isinstance(area, str) else _misfit(name, area))
        if problem:
            broken[problem].append(name)
        elif isinstance(area, Area):
            found[name] = area
    for name, sheet in local.items():
        if name not in seen:
            broken[f"is defined for the sheet {shown(sheet)!r} alone, not for the workbook"].append(name)
    if broken:
        raise WorkbookError(
            *(f"{where}: the name {listed(names)} {why}. {NAME_MANAGER}" for why, names in broken.items())
        )
    return dict(sorted(found.items(), key=lambda one: (order.index(one[1].sheet), one[1].top, one[1].left)))


def listed(names: Iterable[str], most: int = 4) -> str:
    """A few names, and how many more there are."""
    every = [shown(name, 80) for name in names]
    rest = f" (and {len(every) - most:,} more)" if len(every) > most else ""
    return ", ".join(every[:most]) + rest


def _area(text: str, sheets: Mapping[str, str]) -> Area | str:
    """Where a name points, or what is wrong with that."""
    text = text.strip().removeprefix("=")
    if "#REF!" in text:
        return "points to a cell that was deleted (#REF!)"
    if _OTHER_FILE.search(text):
        return f"points to another file ({shown(text)})"
    if _WHOLE.fullmatch(text):
        return f"points to whole rows or columns ({shown(text)})"
    match = _AREA.fullmatch(text)
    if match is None:
        return f"points to no plain cells ({shown(text)})"
    sheet = (match[1] or match[2]).replace("''", "'")
    if sheet.lower() not in sheets:
        return f"points to the sheet {shown(sheet)!r}, which is not in the workbook"
    first, last = number(match[3]), number(match[5] or match[3])
    top, bottom = int(match[4]), int(match[6] or match[4])
    return Area(sheets[sheet.lower()], min(top, bottom), min(first, last), max(top, bottom), max(first, last))


def _misfit(name: str, area: Area | str | None) -> str | None:
    """What is wrong with the size of an area, or with where it stands."""
    assert isinstance(area, Area)
    rows, columns = area.bottom - area.top + 1, area.right - area.left + 1
    if columns > 1 or (rows > 1 and name.startswith(CELLS)):
        return "points to more cells than one" if name.startswith(CELLS) else "points to more columns than one"
    if rows > MOST_TABLE_ROWS:
        return f"points to {rows:,} rows, more than the {MOST_TABLE_ROWS:,} that are read"
    if not (area.top >= 1 and area.bottom <= MOST_ROW and area.right <= MOST_COLUMN):
        return f"points to {Place(area.sheet, area.bottom, area.right)}, too far out to be read"
    return None


def ends_by_sheet(found: Iterable[Area]) -> dict[str, tuple[int, int]]:
    """Each sheet that the areas stand on, with its last row and column."""
    ends: dict[str, tuple[int, int]] = {}
    for area in found:
        row, column = ends.get(area.sheet, (0, 0))
        ends[area.sheet] = max(row, area.bottom), max(column, area.right)
    return ends
