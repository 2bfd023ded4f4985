"""Formulas that run down a column or along a row share one text, as spreadsheets themselves store them: files are a
third as large."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sheetgen.sheet.model import Cell, Row, column_name, column_number

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
    seen = {at: _seen(text, *at) for at, text in texts.items()}
    down = _runs(sorted(texts, key=lambda at: (at[1], at[0])), seen, (1, 0))
    alone = texts.keys() - {at for run in down for at in run}
    along = _runs(sorted(alone), seen, (0, 1))
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
    above: Row | None = None
    seen = seen_above = ""
    for i, row in enumerate(rows):
        if row.formula is None:
            found.append(None)
            above = None
            continue
        seen = _seen(row.formula.text, row.row, row.left)
        if (
            above is not None and above.row + 1 == row.row
            and (above.left, len(above)) == (row.left, len(row)) and seen_above == seen
        ):  # fmt: skip
            head = found[start]
            assert head is not None
            found[start] = head._replace(area=f"{head.area.partition(':')[0]}:{_corner(row)}")
            found.append(Shared(head.number))
        else:
            start = i
            text, area = row.formula.text, f"{column_name(row.left)}{row.row + 1}:{_corner(row)}"
            found.append(Shared(first + i, text, area))
        above, seen_above = row, seen
    return found


def _corner(row: Row) -> str:
    return f"{column_name(row.left + len(row) - 1)}{row.row + 1}"


def _seen(formula: str, row: int, column: int) -> str:
    """A formula as its cell sees it, which a cell that it is moved to sees alike: by how far off a reference is."""
    return _REFERENCE.sub(
        lambda m: f"{m[2] if m[1] else column_number(m[2]) - column},{m[3]}{m[4] if m[3] else int(m[4]) - row}", formula
    )


def _shareable(cell: Cell) -> str:
    """A formula's text; nothing where it cannot be shared: Excel shares none that name another sheet."""
    formula = cell.formula
    return "" if formula is None or formula.array or "!" in formula.text else formula.text


def _runs(places: Iterable[Place], seen: Mapping[Place, str], step: Place) -> list[list[Place]]:
    """Places a step apart, each with the formula of the one before, moved."""
    runs: list[list[Place]] = []
    for at in places:
        before = at[0] - step[0], at[1] - step[1]
        if runs and runs[-1][-1] == before and seen[at] == seen[before]:
            runs[-1].append(at)
        else:
            runs.append([at])
    return [run for run in runs if len(run) > 1]
