"""Whether an edited workbook still works out what Python does: every formula, and every value beside one."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sheetgen.pull.aligned import Alignment, align
from sheetgen.pull.formula_text import Parsed, parsed
from sheetgen.sheet.model import EXCEL_DAY_ZERO, Book, Sheet, plain
from sheetgen.workbook.cells import BLANK, Cell, Grid
from sheetgen.workbook.names import Place

_PERCENT = re.compile(r"\d+%")


class Written(NamedTuple):
    """A cell as it is built: its value, and its formula as in a `Cell` of the file."""

    value: Any
    formula: Parsed | None
    away: tuple[int, int]
    text: str
    role: str


@dataclass(frozen=True)
class Overwritten:
    """A formula that is not the one that was built."""

    place: Place
    label: str
    was: str
    now: Any  # a value, None where the cell is empty; text that begins with = where another formula stands there


@dataclass(frozen=True)
class Audit:
    """n_formulas: those found again. wrong: those among them whose value is not what Python gives for the inputs.
    n_as_built: of these, how many have the value as built. n_blank: how many have none."""

    n_formulas: int
    overwritten: tuple[Overwritten, ...]
    wrong: tuple[Place, ...]
    n_as_built: int
    n_blank: int
    missing: tuple[str, ...]  # sheets that are gone

    @property
    def verdict(self) -> str:
        """agrees, not calculated (nobody ever did), not recalculated (since the inputs were changed), or differs."""
        if not self.wrong:
            return "agrees"
        if self.n_blank == len(self.wrong) == self.n_formulas:
            return "not calculated"
        return "not recalculated" if self.n_as_built == len(self.wrong) else "differs"


def audit(before: Book, after: Book, edited: Mapping[str, Grid], *, same_catalog: bool = True) -> Audit:
    """An edited workbook against the one that was built (its formulas) and the one that its inputs give (values).

    Of a workbook of another catalog nobody knows the values as built, so what it tells of them is not judged.
    """
    old = {sheet.name: _written(sheet) for sheet in before.sheets}
    new = {sheet.name: _written(sheet) for sheet in after.sheets}
    found = {name: edited[name] for name in old if name in edited}
    places = {name: align(_marks(old[name]), _marks_found(name, cells, old[name])) for name, cells in found.items()}
    now = dict(places)
    for name in found.keys() & new.keys():
        if old[name].keys() != new[name].keys():  # the inputs moved the sheet's cells
            now[name] = align(_marks(new[name]), _marks_found(name, found[name], new[name]))
    still = all(one.is_still for one in places.values())
    overwritten: list[Overwritten] = []
    wrong: list[Place] = []
    n_formulas = n_as_built = n_blank = 0
    for name, cells in found.items():
        values = {now[name].at(*at): one.value for at, one in new.get(name, {}).items()}
        for at, one in old[name].items():
            here = places[name].at(*at)
            if one.formula is None or here is None:
                continue
            held = cells.get(here, BLANK)
            place = Place(name, *here)
            formula = None if held.formula is None else parsed(held.formula, name)
            copied = still and (one.formula, one.away) == (formula, held.away)
            if not copied and not _same_formula(one, formula, held.away, places):
                overwritten.append(Overwritten(place, _label(old[name], at), one.text, _now(held)))
                continue
            n_formulas += 1
            judged = here in values and (same_catalog or one.role != "told")
            if judged and not agree(values[here], held.value):
                wrong.append(place)
                n_blank += held.value is None
                n_as_built += agree(one.value, held.value)
    gone = tuple(name for name in old if name not in edited)
    return Audit(n_formulas, tuple(overwritten), tuple(wrong), n_as_built, n_blank, gone)


def _written(sheet: Sheet) -> dict[tuple[int, int], Written]:
    """The cells of a sheet as built; rows and columns count from 1, as in a file."""
    found: dict[tuple[int, int], Written] = {}
    for (row, column), cell in sheet.cells.items():
        text = cell.formula.text if cell.formula is not None else ""
        formula = parsed(text, sheet.name) if text else None
        if formula is not None or cell.value not in (None, ""):
            found[row + 1, column + 1] = Written(cell.value, formula, (0, 0), text, cell.role)
    for shared in sheet.rows:
        text = shared.formula.text if shared.formula is not None else ""
        formula = parsed(text, sheet.name) if text else None
        for i, value in enumerate(shared.values.tolist()):
            at = shared.row + 1, shared.left + i + 1
            found[at] = Written(plain(value), formula, (0, i), text, shared.role)
    return found


def _marks(cells: Mapping[tuple[int, int], Written]) -> dict[tuple[int, int], Any]:
    """What tells the cells apart; numbers only on sheets where nobody types any."""
    numbers = not any(one.role == "input" for one in cells.values())
    return {at: _mark(one.formula, one.value, numbers) for at, one in cells.items()}


def _marks_found(sheet: str, cells: Grid, built: Mapping[tuple[int, int], Written]) -> dict[tuple[int, int], Any]:
    numbers = not any(one.role == "input" for one in built.values())
    formulas = {at: parsed(one.formula, sheet) for at, one in cells.items() if one.formula is not None}
    return {at: _mark(formulas.get(at), one.value, numbers) for at, one in cells.items()}


def _mark(formula: Parsed | None, value: Any, numbers: bool) -> Any:
    if formula is not None:
        return formula.template
    if isinstance(value, str):
        return value
    return float(value) if numbers and isinstance(value, (int, float)) else 0


def _same_formula(
    one: Written, formula: Parsed | None, away: tuple[int, int], places: Mapping[str, Alignment]
) -> bool:
    """Whether the formula is that one with its cells where they are now."""
    if one.formula is None or formula is None or one.formula.template != formula.template:
        return False
    before, now = one.formula.at(*one.away), formula.at(*away)
    for old, new in zip(before, now, strict=True):
        moved = places[old.sheet].moved(old.row, old.column) if old.sheet in places else (old.row, old.column)
        if (new.sheet, new.row, new.column) != (old.sheet, *moved):
            return False
    return True


def _now(held: Cell) -> Any:
    return f"={held.formula.removeprefix('=')}" if held.formula is not None else held.value


def _label(cells: Mapping[tuple[int, int], Written], at: tuple[int, int]) -> str:
    """What stands at the head of a cell's row and of its column."""
    row, column = at
    left = (cells.get((row, c)) for c in range(1, column))
    up = (cells.get((r, column)) for r in range(row - 1, 0, -1))
    first = next((str(one.value) for one in left if one and isinstance(one.value, str)), "")
    head = next((str(one.value) for one in up if one and one.formula is None and isinstance(one.value, str)), "")
    return ", ".join(dict.fromkeys(filter(None, (first, head))))


def agree(expected: Any, got: Any) -> bool:
    """Equal to 9 digits, a percentage in words to one percent: half a percent is rounded either way."""
    if isinstance(expected, datetime.date):
        expected = (expected - EXCEL_DAY_ZERO).days
    if isinstance(expected, str) and isinstance(got, (int, float)) and not isinstance(got, bool):  # of digits alone
        return expected == f"{got:.15g}"
    if isinstance(expected, str) and isinstance(got, str):
        return expected == got or _same_words(expected, got)
    if isinstance(expected, (int, float)) and isinstance(got, (int, float)):
        nothing = 1e-12 if expected == 0 or got == 0 else 0.0
        return math.isclose(expected, got, rel_tol=1e-9, abs_tol=nothing)
    return bool(expected == got)


def _same_words(expected: str, got: str) -> bool:
    a, b = (_PERCENT.sub("%", one) for one in (expected, got))
    pairs: Iterator[tuple[str, str]] = zip(_PERCENT.findall(expected), _PERCENT.findall(got), strict=False)
    return a == b and all(abs(int(x[:-1]) - int(y[:-1])) <= 1 for x, y in pairs)
