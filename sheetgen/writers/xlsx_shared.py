"""Formulas that run down a column share one text, as spreadsheets themselves store them: files are a third as large."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from sheetgen.sheet.model import Cell, column_name

_REFERENCE = re.compile(r"(?<![\w.$])(\$?[A-Z]{1,3})(\d+)(?![\w(.])")  # one whose row moves


class Shared(NamedTuple):
    """A cell's part in a run: the run's number on its sheet; its text and area in the first cell, else nothing."""

    number: int
    text: str = ""
    area: str = ""


def shared_runs(cells: Mapping[tuple[int, int], Cell]) -> dict[tuple[int, int], Shared]:
    """By row and column, the cells whose formula is the one above moved down, and those that such a run begins with."""
    runs: list[list[tuple[int, int]]] = []
    before: tuple[int, int] | None = None
    below = ""
    for row, column in sorted(cells, key=lambda at: (at[1], at[0])):
        formula = cells[row, column].formula
        if formula is None or formula.array or "!" in formula.text:  # Excel shares none that name another sheet
            before = None
            continue
        if before == (row - 1, column) and formula.text == below:
            runs[-1].append((row, column))
        else:
            runs.append([(row, column)])
        before, below = (row, column), moved_down(formula.text)
    found: dict[tuple[int, int], Shared] = {}
    for number, run in enumerate(run for run in runs if len(run) > 1):
        (first, column), (last, _) = run[0], run[-1]
        area = f"{column_name(column)}{first + 1}:{column_name(column)}{last + 1}"
        found[run[0]] = Shared(number, _text(cells, run[0]), area)
        found |= dict.fromkeys(run[1:], Shared(number))
    return found


def moved_down(formula: str) -> str:
    """The formula as it reads one row further down."""
    return _REFERENCE.sub(lambda m: f"{m[1]}{int(m[2]) + 1}", formula)


def _text(cells: Mapping[tuple[int, int], Cell], at: tuple[int, int]) -> str:
    formula = cells[at].formula
    return formula.text if formula is not None else ""
