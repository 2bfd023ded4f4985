"""Cells that are alike as the fewest rectangles: what a workbook says once a range, not once a cell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sheetgen.sheet.model import column_name


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
