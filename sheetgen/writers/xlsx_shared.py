"""Formulas that run down a column or along a row share one text, as spreadsheets themselves store them: files are a
third as large."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from sheetgen.sheet.block import Row
from sheetgen.sheet.model import Cell, column_name, column_number

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
    texts = {at: text for at, cell in cells.items() if (text := _shareable(cell))}
    down = _runs(sorted(texts, key=lambda at: (at[1], at[0])), texts, (1, 0), moved_down)
    alone = texts.keys() - {at for run in down for at in run}
    along = _runs(sorted(alone), texts, (0, 1), moved_along)
    found: dict[Place, Shared] = {}
    for number, run in enumerate([*down, *along]):
        (top, left), (bottom, right) = run[0], run[-1]
        area = f"{column_name(left)}{top + 1}:{column_name(right)}{bottom + 1}"
        found[run[0]] = Shared(number, texts[run[0]], area)
        found |= dict.fromkeys(run[1:], Shared(number))
    return found


def shared_rows(rows: Sequence[Row], first: int) -> list[Shared | None]:
    """For each row of cells that share a formula, its part; rows one below the other whose formula moves down are one
    run. Numbers begin with `first`; none for a row of facts."""
    found: list[Shared | None] = []
    start = 0  # of the run
    for i, row in enumerate(rows):
        if row.formula is None:
            found.append(None)
            continue
        above, text = rows[i - 1] if i else None, row.formula.text
        if (
            above is not None and above.formula is not None and above.row + 1 == row.row
            and (above.left, len(above)) == (row.left, len(row)) and moved_down(above.formula.text) == text
        ):  # fmt: skip
            head = found[start]
            assert head is not None
            found[start] = head._replace(area=f"{head.area.partition(':')[0]}:{_corner(row)}")
            found.append(Shared(head.number))
            continue
        start = i
        found.append(Shared(first + i, text, f"{column_name(row.left)}{row.row + 1}:{_corner(row)}"))
    return found


def _corner(row: Row) -> str:
    return f"{column_name(row.left + len(row) - 1)}{row.row + 1}"


def moved_down(formula: str) -> str:
    """The formula as it reads one row further down."""
    return _REFERENCE.sub(lambda m: m[0] if m[3] else f"{m[1]}{m[2]}{int(m[4]) + 1}", formula)


def moved_along(formula: str) -> str:
    """The formula as it reads one column further to the right."""
    return _REFERENCE.sub(lambda m: m[0] if m[1] else f"{column_name(column_number(m[2]) + 1)}{m[3]}{m[4]}", formula)


def _shareable(cell: Cell) -> str:
    """A formula's text; nothing where it cannot be shared: Excel shares none that name another sheet."""
    formula = cell.formula
    return "" if formula is None or formula.array or "!" in formula.text else formula.text


def _runs(
    places: Iterable[Place], texts: Mapping[Place, str], step: Place, moved: Callable[[str], str]
) -> list[list[Place]]:
    """Places a step apart, each with the formula of the one before, moved."""
    runs: list[list[Place]] = []
    for at in places:
        before = at[0] - step[0], at[1] - step[1]
        if runs and runs[-1][-1] == before and texts[at] == moved(texts[before]):
            runs[-1].append(at)
        else:
            runs.append([at])
    return [run for run in runs if len(run) > 1]
