"""Whether an edited workbook still works out what Python does: every formula, and every value beside one.

Which row and column of a sheet is which of the sheet as built is seen by what stands in them, not by number.
"""

from __future__ import annotations

import datetime
import difflib
import functools
import itertools
import math
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy
import numpy.typing

from sheetgen.book.sheets import EXCEL_DAY_ZERO, Book, Sheet, column_name, column_number, plain
from sheetgen.readback.file_cells import Cell, is_number
from sheetgen.readback.package import Place
from sheetgen.units import DTYPE_ALIASES

_SHEET = r"(?:'(?:[^']|'')+'|[^\W\d][\w.]*)!"
_TOKEN = re.compile(rf"""("(?:[^"]|"")*"|(?<![\w.$])(?:{_SHEET})?\$?[A-Z]{{1,3}}\$?[1-9]\d{{0,6}}(?![\w.(!]))""")
_CELL = re.compile(rf"({_SHEET})?(\$?)([A-Z]+)(\$?)(\d+)")
_BLANKS = re.compile(r"\s+")
_LOGICAL = re.compile(r"\b(true|false)\(\)")  # as LibreOffice writes TRUE and FALSE
# The load of the first sheet as built, which stands where a yellow cell names none.
AS_BUILT = re.compile(r"calc_built_\w+", re.IGNORECASE)
MARK = "\0"


class Target(NamedTuple):
    """A cell that a formula names. Rows and columns count from 1; `moves` where a copy of the formula names another."""

    sheet: str  # as it is written, with quotes and "!"; nothing where none is named
    row: int
    column: int
    row_moves: bool
    column_moves: bool

    def copied(self, rows: int, columns: int) -> str:
        """How a copy of the formula so many rows and columns away has it."""
        column = column_name(self.column - 1 + columns * self.column_moves)
        fixed = ("" if moves else "$" for moves in (self.column_moves, self.row_moves))
        return f"{self.sheet}{next(fixed)}{column}{next(fixed)}{self.row + rows * self.row_moves}"


@functools.cache
def _target(token: str) -> Target:
    sheet, column_fixed, column, row_fixed, row = _CELL.fullmatch(token).groups()  # type: ignore[union-attr]
    return Target(sheet or "", int(row), 1 + column_number(column), not row_fixed, not column_fixed)


@dataclass(frozen=True, eq=False)
class Parsed:
    """A formula: its text in pieces, every second a cell or a text; the text with a mark for each cell; and the cells,
    their sheets apart from rows and columns, which count from 1 (the first of two axes)."""

    pieces: tuple[str, ...]
    template: str
    sheets: tuple[str, ...]
    places: numpy.typing.NDArray[numpy.int64]
    moves: numpy.typing.NDArray[numpy.int64]

    def at(self, away: At) -> numpy.typing.NDArray[numpy.int64]:
        """The rows and the columns of the cells of a copy so many rows and columns away."""
        return self.places + self.moves * numpy.array(away)[:, None] if any(away) else self.places

    def copied(self, away: At) -> str:
        """The text of a copy so many rows and columns away."""
        tokens = self.pieces[1::2]
        now = {token: token if token[0] == '"' else _target(token).copied(*away) for token in set(tokens)}
        return "".join(itertools.chain(*zip(self.pieces[::2], (*(now[t] for t in tokens), ""), strict=True)))


def parsed(text: str, here: str) -> Parsed:
    """The formula `text` of a cell on sheet `here`. Blanks and capital letters outside of texts count for nothing."""
    return _parsed(_bare(text), here)


def _bare(text: str) -> str:
    return text.strip().removeprefix("{").removeprefix("=").removesuffix("}")


@functools.lru_cache(maxsize=100_000)
def _parsed(text: str, here: str) -> Parsed:
    pieces = tuple(_TOKEN.split(text))
    template: list[str] = []
    sheets: list[str] = []
    targets: list[Target] = []
    sheet = here
    for between, token in zip(pieces[::2], (*pieces[1::2], '""'), strict=True):
        between = _LOGICAL.sub(r"\1", _BLANKS.sub("", between).lower())
        is_text = token[0] == '"'
        template += (between, token if is_text else MARK)
        if is_text:
            continue
        target = _target(token)
        if between == ":" and not target.sheet and target[1:] == targets[-1][1:]:
            del template[-2:]  # an area of one cell is that cell: LibreOffice 26 writes it so
            continue
        if target.sheet:
            sheet = target.sheet[:-1].removeprefix("'").removesuffix("'").replace("''", "'")
        elif between != ":":  # no second corner of an area
            sheet = here
        sheets.append(sheet)
        targets.append(target)
    axes = numpy.array([one[1:] for one in targets], int).reshape(-1, 4).T
    return Parsed(pieces, "".join(template), tuple(sheets), axes[:2], axes[2:])


At = tuple[int, int]  # row and column, which count from 1
Mark = Hashable  # what tells a cell's place: a label, or the form of its formula
_PERCENT = re.compile(r"\d+%")


class Written(NamedTuple):
    """A cell as built or found: its value, and its formula, which is that of a cell `away` rows and columns off."""

    value: Any
    formula: Parsed | None
    away: At
    text: str
    role: str = ""


Cells = Mapping[At, Written]
NOTHING = Written(None, None, (0, 0), "")


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


def audit(before: Book, after: Book, edited: Mapping[str, Mapping[At, Cell]], same_catalog: bool) -> Audit:
    """An edited workbook against the one that was built (its formulas) and the one that its inputs give (values).

    Of a workbook of another catalog nobody knows the values as built, so what it says of them is not judged.
    """
    old = {sheet.name: _written(sheet) for sheet in before.sheets}
    new = {sheet.name: _written(sheet) for sheet in after.sheets}
    found = {name: _found(edited[name], name) for name in old if name in edited}
    places = {name: _align(old[name], cells) for name, cells in found.items()}
    now = dict(places)
    for name in found.keys() & new.keys():
        # The inputs moved the sheet's lines; single cells that come and go leave the others where they are.
        if any({at[i] for at in old[name]} != {at[i] for at in new[name]} for i in (0, 1)):
            now[name] = _align(new[name], found[name])
    rearranged = {name for name, one in places.items() if not one.stays}
    overwritten: list[Overwritten] = []
    wrong: list[Place] = []
    n_formulas = n_as_built = n_blank = 0
    for name, cells in found.items():
        values = {now[name].at(*at): one.value for at, one in new.get(name, {}).items()}
        for at, one in old[name].items():
            here = places[name].at(*at)
            if one.formula is None or here is None:
                continue
            held = cells.get(here, NOTHING)
            place = Place(name, *here)
            is_copy = rearranged.isdisjoint(one.formula.sheets) and _is_copy(one, held)
            if not is_copy and not _same_formula(one, held, places):
                if one.role == "input":  # it follows others until it is typed over
                    continue
                text = held.value if held.formula is None else f"={held.text.removeprefix('=')}"
                overwritten.append(Overwritten(place, _label(old[name], at), one.text, text))
                continue
            n_formulas += 1
            judged = here in values and (same_catalog or one.role != "state") and not AS_BUILT.search(one.text)
            if judged and not agree(values[here], held.value):
                wrong.append(place)
                n_blank += held.value is None
                n_as_built += agree(one.value, held.value)
    gone = tuple(name for name in old if name not in edited)
    return Audit(n_formulas, tuple(overwritten), tuple(wrong), n_as_built, n_blank, gone)


def _written(sheet: Sheet) -> dict[At, Written]:
    found: dict[At, Written] = {}

    def read(one: Any) -> tuple[Parsed | None, str]:
        text = one.formula.text if one.formula is not None else ""
        return parsed(text, sheet.name) if text else None, text

    for (row, column), cell in sheet.cells.items():
        formula, text = read(cell)
        if formula is not None or cell.value not in (None, ""):
            found[row + 1, column + 1] = Written(cell.value, formula, (0, 0), text, cell.role)
    for shared in sheet.rows:
        formula, text = read(shared)
        for i, value in enumerate(shared.values.tolist()):
            found[shared.row + 1, shared.left + i + 1] = Written(plain(value), formula, (0, i), text, shared.role)
    return found


def _found(grid: Mapping[At, Cell], sheet: str) -> dict[At, Written]:
    """The cells of a sheet of the file; numbers as floats, as spreadsheets keep them.

    LibreOffice writes every formula out. One that is a copy of that on its left or above is found by writing that one
    there: reading it apart would take ten times as long.
    """
    found: dict[At, Written] = {}
    for (row, column), cell in grid.items():
        text, formula, away = cell.formula, None, cell.away
        value = float(cell.value) if type(cell.value) is int else cell.value
        if text is not None and away == (0, 0):
            for near, step in (((row, column - 1), (0, 1)), ((row - 1, column), (1, 0))):
                beside = found.get(near, NOTHING)
                copied = beside.away[0] + step[0], beside.away[1] + step[1]
                if beside.formula is not None and beside.formula.copied(copied) == _bare(text):
                    formula, away = beside.formula, copied
                    break
        if text is not None and formula is None:
            formula = parsed(text, sheet)
        found[row, column] = Written(value, formula, away, text or "")
    return found


@dataclass(frozen=True)
class Alignment:
    """By each row and column as built, where it is now; what is gone is not there."""

    rows: Mapping[int, int]
    columns: Mapping[int, int]

    def at(self, row: int, column: int) -> At | None:
        here = self.rows.get(row), self.columns.get(column)
        return None if here[0] is None or here[1] is None else (here[0], here[1])

    @functools.cached_property
    def stays(self) -> bool:
        """Whether every row and column that is left is where it was."""
        return all(before == now for axis in (self.rows, self.columns) for before, now in axis.items())

    @functools.cached_property
    def _axes(self) -> list[tuple[Any, Any]]:
        return [(numpy.array([0, *axis]), numpy.array([0, *axis.values()])) for axis in (self.rows, self.columns)]

    def moved(self, places: Any) -> Any:
        """The rows and columns where a formula that named cells names them now; past the table as built, as far off as
        before."""
        now = []
        for at, (before, after) in zip(places, self._axes, strict=True):
            near = numpy.searchsorted(before, at, "right") - 1
            now.append(after[near] + at - before[near])
        return numpy.array(now)


def _align(built: Cells, found: Cells) -> Alignment:
    """Rows by what stands in them from left to right, columns by what stands in them from top to bottom."""
    numbers = not any(one.role == "input" for one in built.values())  # they tell cells apart where nobody types any
    marks = [{at: _mark(one, numbers) for at, one in cells.items()} for cells in (built, found)]
    rows, columns = (_places(_lines(marks[0], axis), _lines(marks[1], axis)) for axis in (0, 1))
    return Alignment(rows, columns)


def _mark(one: Written, numbers: bool) -> Mark:
    if one.formula is not None:
        return one.formula.template
    if isinstance(one.value, str):
        return one.value
    return float(one.value) if numbers and isinstance(one.value, (int, float)) else 0


def _lines(marks: Mapping[At, Mark], axis: int) -> dict[int, tuple[Mark, ...]]:
    """By row (axis 0) or column (axis 1) its marks, in their order; lines without any are left out."""
    lines: dict[int, list[tuple[int, Mark]]] = {}
    for at, mark in marks.items():
        lines.setdefault(at[axis], []).append((at[1 - axis], mark))
    return {n: tuple(mark for _, mark in sorted(lines[n], key=lambda one: one[0])) for n in sorted(lines)}


def _places(built: Mapping[int, Mark], found: Mapping[int, Mark]) -> dict[int, int]:
    """Where each line is now: the same lines in their order; of those that differ, as many in a row as before."""
    known: dict[Mark, int] = {}  # a number for each different line: numbers compare faster than long lines
    a, b = ([known.setdefault(mark, len(known)) for mark in lines.values()] for lines in (built, found))
    old, new, least = list(built), list(found), min(len(built), len(found))
    head = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), least)
    tail = 0
    while tail < least - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    places = dict(zip(old[:head], new[:head], strict=True))
    places |= dict(zip(old[len(old) - tail :], new[len(new) - tail :], strict=True))
    a, b, old, new = (one[head : len(one) - tail] for one in (a, b, old, new))
    for what, i, j, k, n in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if what in ("equal", "replace"):
            places |= dict(zip(old[i:j], new[k:n], strict=False))
    return places


def _is_copy(one: Written, held: Written) -> bool:
    """Whether both are the same formula where no line has moved: asked of every cell, answered once for those that
    share a formula."""
    away = held.away[0] - one.away[0], held.away[1] - one.away[1]
    return bool(one.formula and held.formula and _same_away(one.formula, held.formula, away))


@functools.lru_cache(maxsize=100_000)
def _same_away(one: Parsed, held: Parsed, away: At) -> bool:
    """Whether a formula is the copy of another so many rows and columns away."""
    if one.template != held.template or one.sheets != held.sheets or (one.moves != held.moves).any():
        return False
    return bool((one.places == held.at(away)).all())


def _same_formula(one: Written, held: Written, places: Mapping[str, Alignment]) -> bool:
    """Whether the formula is that one with its cells where they are now."""
    if one.formula is None or held.formula is None:
        return False
    if (one.formula.template, one.formula.sheets) != (held.formula.template, held.formula.sheets):
        return False
    moved = one.formula.at(one.away)
    if rearranged := [name for name in set(one.formula.sheets) & places.keys() if not places[name].stays]:
        moved, named = moved.copy(), numpy.array(one.formula.sheets)
        for sheet in rearranged:
            moved[:, named == sheet] = places[sheet].moved(moved[:, named == sheet])
    return bool((moved == held.formula.at(held.away)).all())


def _label(cells: Cells, at: At) -> str:
    """What stands at the head of a cell's row and of its column."""
    row, column = at
    left = (cells.get((row, c)) for c in range(1, column))
    up = (cells.get((r, column)) for r in range(row - 1, 0, -1))
    first = next((str(one.value) for one in left if one and isinstance(one.value, str)), "")
    head = next((str(one.value) for one in up if one and one.formula is None and isinstance(one.value, str)), "")
    return ", ".join(dict.fromkeys(filter(None, (first, head))))


def agree(expected: Any, got: Any) -> bool:
    """Equal to 9 digits, a percentage in words to one percent: half a percent is rounded either way. A precision under
    another name is the same one."""
    if isinstance(expected, datetime.date):
        expected = (expected - EXCEL_DAY_ZERO).days
    if isinstance(expected, str) and is_number(got):  # of digits alone
        return expected == f"{got:.15g}"
    if isinstance(expected, str) and isinstance(got, str):
        expected, got = (DTYPE_ALIASES.get(text, text) for text in (expected, got))
        pairs = zip(_PERCENT.findall(expected), _PERCENT.findall(got), strict=False)
        alike = _PERCENT.sub("%", expected) == _PERCENT.sub("%", got)
        return alike and all(abs(int(x[:-1]) - int(y[:-1])) <= 1 for x, y in pairs)
    if isinstance(expected, (int, float)) and isinstance(got, (int, float)):
        nothing = 1e-12 if expected == 0 or got == 0 else 0.0
        return math.isclose(expected, got, rel_tol=1e-9, abs_tol=nothing)
    return bool(expected == got)
