"""What a worksheet says of ranges of cells: what they accept, their tints by word, and the filter of a table."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from sheetgen.errors import PageError
from sheetgen.sheet.kinds import CONTROL, kind_of
from sheetgen.sheet.model import EXCEL_DAY_ZERO, Sheet, Validation, column_name
from sheetgen.writers.xlsx_styles import STATUS


class Area(NamedTuple):
    """A rectangle of cells; rows and columns count from 0."""

    top: int
    left: int
    bottom: int
    right: int

    def __str__(self) -> str:
        first = f"{column_name(self.left)}{self.top + 1}"
        last = f"{column_name(self.right)}{self.bottom + 1}"
        return first if first == last else f"{first}:{last}"


def areas(cells: Iterable[tuple[int, int]]) -> list[Area]:
    """The rectangles that cover these cells: runs down a column, side by side where they are of the same rows."""
    runs: list[Area] = []
    for row, column in sorted(cells, key=lambda at: (at[1], at[0])):
        if runs and runs[-1].left == column and runs[-1].bottom == row - 1:
            runs[-1] = runs[-1]._replace(bottom=row)
        else:
            runs.append(Area(row, column, row, column))
    found: list[Area] = []
    for run in sorted(runs, key=lambda one: (one.top, one.bottom, one.left)):
        last = found[-1] if found else None
        if last and (last.top, last.bottom, last.right) == (run.top, run.bottom, run.left - 1):
            found[-1] = last._replace(right=run.right)
        else:
            found.append(run)
    return found


def several(found: list[Area]) -> dict[str, str]:
    """The library's option for more than one rectangle."""
    return {"multi_range": " ".join(map(str, found))} if len(found) > 1 else {}


MOST_TITLE, MOST_PROMPT, MOST_ERROR = 32, 255, 225  # characters that Excel allows
LEAST_HEADS = 3  # of a table that gets a filter
# Words that are tinted where a sheet says so. The word itself says what the tint does.
TINTS = {
    **STATUS,
    "OK": STATUS["fits"],
    "changed": STATUS["tight"],
    "CHECK": STATUS["none fits"],
    "out of range": STATUS["none fits"],
}


def put_validations(worksheet: Any, sheet: Sheet) -> None:
    """Each way of accepting values once, with all the cells that have it. Raises PageError for one that is refused."""
    alike: dict[Validation, list[tuple[int, int]]] = {}
    for at, cell in sheet.cells.items():
        if cell.validation is not None:
            alike.setdefault(cell.validation, []).append(at)
    for validation, cells in alike.items():
        found = areas(cells)
        code = worksheet.data_validation(*found[0], _options(validation) | several(found))
        if code not in (None, 0):
            raise PageError(
                f"{sheet.name}!{found[0]}: the workbook library refused what the cell accepts (code {code})"
            )


def _options(v: Validation) -> dict[str, Any]:
    out: dict[str, Any] = {
        "input_title": v.title[:MOST_TITLE],
        "input_message": v.message[:MOST_PROMPT],
        "ignore_blank": True,
        "error_title": "Not allowed",
        "error_message": v.message[:MOST_ERROR],
    }
    if v.source is not None:
        return out | {"validate": "list", "source": f"={v.source}", "ignore_blank": False}
    assert v.kind is not None
    low, high = v.bounds
    least: Any = f"=MAX({low:.0f},{v.at_least})" if v.at_least else low
    most: Any = f"=MIN({high:.0f},{v.at_most})" if v.at_most else high
    what = {"text": "length", "date": "date"}.get(v.kind.holds, "integer" if v.kind.is_whole else "decimal")
    if what == "date":
        least, most = (EXCEL_DAY_ZERO + datetime.timedelta(int(day)) for day in (low, high))
    return out | {"validate": what, "criteria": "between", "minimum": least, "maximum": most}


def put_tints(worksheet: Any, sheet: Sheet, form: Callable[[str], Any]) -> None:
    """Tints by the word in a cell: mutually exclusive rules, one a word for all cells of the sheet."""
    found = areas(sheet.status_cells)
    for word in TINTS if found else ():
        rule = {"type": "cell", "criteria": "==", "value": f'"{word}"', "format": form(word)}
        worksheet.conditional_format(*found[0], rule | several(found))


def put_filter(worksheet: Any, sheet: Sheet) -> None:
    """Filter buttons on the heads of the table under the frozen rows, where there is one."""
    area = filtered(sheet)
    if area is not None and kind_of(sheet.name) != CONTROL:
        worksheet.autofilter(*area)


def filtered(sheet: Sheet) -> Area | None:
    """The table whose heads are the last frozen row: its heads, and its rows as far as they have a first cell."""
    top = sheet.freeze[0] - 1
    heads = len(list(_heads(sheet, top)))
    if heads < LEAST_HEADS:
        return None
    bottom = top
    while (bottom + 1, 0) in sheet.cells:
        bottom += 1
    return Area(top, 0, bottom, heads - 1)


def _heads(sheet: Sheet, row: int) -> Iterator[int]:
    column = 0
    while (cell := sheet.cells.get((row, column))) is not None and cell.role == "head":
        yield column
        column += 1
