"""The audit of an edited workbook against Python's results: every formula, and the value of every formula.

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
from typing import NamedTuple, TypeAlias

import numpy
import numpy.typing

from sheetgen.book.sheets import EXCEL_DAY_ZERO, Book, Row, Sheet, column_name, column_number, plain
from sheetgen.book.sheets import Cell as BookCell
from sheetgen.question import parse
from sheetgen.question.parse import Raw
from sheetgen.readback.file_cells import Cell, is_number
from sheetgen.readback.package import Place
from sheetgen.units import DTYPE_ALIASES

_SHEET = r"(?:'(?:[^']|'')+'|[^\W\d][\w.]*)!"
_TOKEN = re.compile(rf"""("(?:[^"]|"")*"|(?<![\w.$])(?:{_SHEET})?\$?[A-Z]{{1,3}}\$?[1-9]\d{{0,6}}(?![\w.(!]))""")
_CELL = re.compile(rf"({_SHEET})?(\$?)([A-Z]+)(\$?)(\d+)")
_BLANKS = re.compile(r"\s+")
_LOGICAL = re.compile(r"\b(true|false)\(\)")  # as LibreOffice writes TRUE and FALSE
_NEWER = re.compile(r"(?:_xlfn\.)?\bnorm\.(s\.inv|dist)\(")  # as Gnumeric writes NORMSINV and NORMDIST
_LONG = re.compile(r"(?<![\w.])\d+\.\d{15,}(?![\w.])")  # as Gnumeric writes 99.95: 99.9499999999999999972
# The load of the first sheet as built, which stands where a yellow cell names none.
AS_BUILT = re.compile(r"calc_built_\w+", re.IGNORECASE)
Numbers: TypeAlias = numpy.typing.NDArray[numpy.int64]
MARK = "\0"


class Target(NamedTuple):
    """A cell that a formula names. Rows and columns count from 1; `moves` where a copy of the formula names another
    cell."""

    sheet: str  # as written, with quotes and "!"; "" where none is named
    row: int
    column: int
    row_moves: bool
    column_moves: bool

    def copied(self, rows: int, columns: int) -> str:
        """The target as a copy of the formula so many rows and columns away names it."""
        column = column_name(self.column - 1 + columns * self.column_moves)
        fixed = ("" if moves else "$" for moves in (self.column_moves, self.row_moves))
        return f"{self.sheet}{next(fixed)}{column}{next(fixed)}{self.row + rows * self.row_moves}"


@functools.cache
def _target(token: str) -> Target:
    sheet, column_fixed, column, row_fixed, row = _CELL.fullmatch(token).groups()  # type: ignore[union-attr]
    return Target(sheet or "", int(row), 1 + column_number(column), not row_fixed, not column_fixed)


@dataclass(frozen=True, eq=False)
class Parsed:
    """A formula: its text in pieces, every second one a cell or a text; the text with a mark for each cell; and the
    cells, their sheets apart from rows and columns, which count from 1 (rows on the first of two axes)."""

    pieces: tuple[str, ...]
    template: str
    sheets: tuple[str, ...]
    places: Numbers
    moves: Numbers

    def at(self, away: At) -> Numbers:
        """The rows and the columns of the cells in a copy so many rows and columns away."""
        return self.places + self.moves * numpy.array(away)[:, None] if any(away) else self.places

    def copied(self, away: At) -> str:
        """The text of a copy so many rows and columns away."""
        tokens = self.pieces[1::2]
        now = {token: token if token[0] == '"' else _target(token).copied(*away) for token in set(tokens)}
        return "".join(itertools.chain(*zip(self.pieces[::2], (*(now[t] for t in tokens), ""), strict=True)))


def parsed(text: str, own_sheet: str) -> Parsed:
    """The formula `text` of a cell on sheet `here`. Spaces and capital letters outside of texts are ignored."""
    return _parsed(_without_braces(text), own_sheet)


def _without_braces(text: str) -> str:
    return text.strip().removeprefix("{").removeprefix("=").removesuffix("}")


def _as_built(text: str) -> str:
    """A piece of a formula without what other programs spell otherwise: blanks, capitals, numbers, functions."""
    text = _LONG.sub(lambda digits: repr(float(digits[0])), text)
    text = _LOGICAL.sub(r"\1", _BLANKS.sub("", text).lower())
    return _NEWER.sub(lambda name: f"norm{name[1].replace('.', '')}(", text) if "norm." in text else text


@functools.lru_cache(maxsize=100_000)
def _parsed(text: str, own_sheet: str) -> Parsed:
    pieces = tuple(_TOKEN.split(text))
    template: list[str] = []
    sheets: list[str] = []
    targets: list[Target] = []
    sheet = own_sheet
    for between, token in zip(pieces[::2], (*pieces[1::2], '""'), strict=True):
        between = _as_built(between)
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
            sheet = own_sheet
        sheets.append(sheet)
        targets.append(target)
    axes = numpy.array([target[1:] for target in targets], int).reshape(-1, 4).T
    return Parsed(pieces, "".join(template), tuple(sheets), axes[:2], axes[2:])


At = tuple[int, int]  # row and column, which count from 1
Mark = Hashable  # what identifies a cell's line: a label, or the form of its formula
_PERCENT = re.compile(r"\d+%")


class Written(NamedTuple):
    """A cell as built or as read: its value, and its formula, which is that of a cell `away` rows and columns off."""

    value: Raw
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
    now: Raw  # a value, None where the cell is empty; text that begins with = where another formula stands there

    def data(self) -> dict[str, Raw]:
        """The formula as JSON has it."""
        return {"place": str(self.place), "label": self.label, "was": f"={self.was}", "now": parse.plain(self.now)}


@dataclass(frozen=True)
class Audit:
    """n_formulas: formulas found again. wrong: those whose value is not what Python gives for the inputs. n_as_built:
    the number of these that have the value as built. n_blank: the number that have no value."""

    n_formulas: int
    overwritten: tuple[Overwritten, ...]
    wrong: tuple[Place, ...]
    n_as_built: int
    n_blank: int
    missing: tuple[str, ...]  # sheets that are gone

    @property
    def verdict(self) -> str:
        """agrees, not calculated (no program ever calculated it), not recalculated (since the inputs were changed), or
        differs."""
        if not self.wrong:
            return "agrees"
        if self.n_blank == len(self.wrong) == self.n_formulas:
            return "not calculated"
        return "not recalculated" if self.n_as_built == len(self.wrong) else "differs"


def audit(before: Book, after: Book, edited: Mapping[str, Mapping[At, Cell]], same_catalog: bool) -> Audit:
    """Audit an edited workbook against the one that was built (its formulas) and the one that its inputs give (values).

    Of a workbook of another catalog nobody knows the values as built, so what it says of them is not judged.
    """
    old = {sheet.name: _cells_as_built(sheet) for sheet in before.sheets}
    new = {sheet.name: _cells_as_built(sheet) for sheet in after.sheets}
    edited_cells = {name: _cells_of_file(edited[name], name) for name in old if name in edited}
    places = {name: _align(old[name], cells) for name, cells in edited_cells.items()}
    now = dict(places)
    for name in edited_cells.keys() & new.keys():
        # The inputs moved the sheet's lines; single cells that come and go leave the others where they are.
        if any({position[i] for position in old[name]} != {position[i] for position in new[name]} for i in (0, 1)):
            now[name] = _align(new[name], edited_cells[name])
    rearranged = {name for name, alignment in places.items() if not alignment.stays}
    overwritten: list[Overwritten] = []
    wrong: list[Place] = []
    n_formulas = n_as_built = n_blank = 0
    for name, cells in edited_cells.items():
        values = {now[name].at(*position): cell.value for position, cell in new.get(name, {}).items()}
        for position, cell in old[name].items():
            now_at = places[name].at(*position)
            if cell.formula is None or now_at is None:
                continue
            held = cells.get(now_at, NOTHING)
            place = Place(name, *now_at)
            is_copy = rearranged.isdisjoint(cell.formula.sheets) and _is_copy(cell, held)
            if not is_copy and not _same_formula(cell, held, places):
                if cell.role == "input":  # it follows others until it is typed over
                    continue
                text = held.value if held.formula is None else f"={held.text.removeprefix('=')}"
                overwritten.append(Overwritten(place, _label(old[name], position), cell.text, text))
                continue
            n_formulas += 1
            judged = now_at in values and (same_catalog or cell.role != "state") and not AS_BUILT.search(cell.text)
            if judged and not agree(values[now_at], held.value):
                wrong.append(place)
                n_blank += held.value is None
                n_as_built += agree(cell.value, held.value)
    gone = tuple(name for name in old if name not in edited)
    return Audit(n_formulas, tuple(overwritten), tuple(wrong), n_as_built, n_blank, gone)


def _cells_as_built(sheet: Sheet) -> dict[At, Written]:
    cells: dict[At, Written] = {}

    def read(source: BookCell | Row) -> tuple[Parsed | None, str]:
        text = source.formula.text if source.formula is not None else ""
        return parsed(text, sheet.name) if text else None, text

    for (row, column), cell in sheet.cells.items():
        formula, text = read(cell)
        if formula is not None or cell.value not in (None, ""):
            cells[row + 1, column + 1] = Written(cell.value, formula, (0, 0), text, cell.role)
    for shared in sheet.rows:
        formula, text = read(shared)
        for i, value in enumerate(shared.values.tolist()):
            cells[shared.row + 1, shared.left + i + 1] = Written(plain(value), formula, (0, i), text, shared.role)
    return cells


def _cells_of_file(grid: Mapping[At, Cell], sheet: str) -> dict[At, Written]:
    """The cells of a sheet of the file; numbers as floats, as spreadsheets keep them.

    LibreOffice writes every formula out. One that is a copy of that on its left or above is found by writing that one
    there: reading it apart would take ten times as long.
    """
    cells: dict[At, Written] = {}
    for (row, column), cell in grid.items():
        text, formula, away = cell.formula, None, cell.away
        value = float(cell.value) if type(cell.value) is int else cell.value
        if text is not None and away == (0, 0):
            for near, step in (((row, column - 1), (0, 1)), ((row - 1, column), (1, 0))):
                beside = cells.get(near, NOTHING)
                copied = beside.away[0] + step[0], beside.away[1] + step[1]
                if beside.formula is not None and beside.formula.copied(copied) == _without_braces(text):
                    formula, away = beside.formula, copied
                    break
        if text is not None and formula is None:
            formula = parsed(text, sheet)
        cells[row, column] = Written(value, formula, away, text or "")
    return cells


@dataclass(frozen=True)
class Alignment:
    """The present position of each row and column as built; deleted ones are missing."""

    rows: Mapping[int, int]
    columns: Mapping[int, int]

    def at(self, row: int, column: int) -> At | None:
        position = self.rows.get(row), self.columns.get(column)
        return None if position[0] is None or position[1] is None else (position[0], position[1])

    @functools.cached_property
    def stays(self) -> bool:
        """True where every row and column that is left is where it was."""
        return all(before == now for axis in (self.rows, self.columns) for before, now in axis.items())

    @functools.cached_property
    def _axes(self) -> list[tuple[Numbers, Numbers]]:
        return [(numpy.array([0, *axis]), numpy.array([0, *axis.values()])) for axis in (self.rows, self.columns)]

    def moved(self, places: Numbers) -> Numbers:
        """The rows and columns that a formula's cells have now; beyond the table as built, at the same distance as
        before."""
        now = []
        for lines, (before, after) in zip(places, self._axes, strict=True):
            near = numpy.searchsorted(before, lines, "right") - 1
            now.append(after[near] + lines - before[near])
        return numpy.array(now)


def _align(built: Cells, edited: Cells) -> Alignment:
    """Align rows by their contents from left to right, columns by their contents from top to bottom."""
    numbers = not any(cell.role == "input" for cell in built.values())  # they tell cells apart where nobody types any
    marks = [{position: _mark(cell, numbers) for position, cell in cells.items()} for cells in (built, edited)]
    rows, columns = (_places(_marks_by_line(marks[0], axis), _marks_by_line(marks[1], axis)) for axis in (0, 1))
    return Alignment(rows, columns)


def _mark(cell: Written, numbers: bool) -> Mark:
    if cell.formula is not None:
        return cell.formula.template
    if isinstance(cell.value, str):
        return cell.value
    return float(cell.value) if numbers and isinstance(cell.value, (int, float)) else 0


def _marks_by_line(marks: Mapping[At, Mark], axis: int) -> dict[int, tuple[Mark, ...]]:
    """The marks of each row (axis 0) or column (axis 1), in order; lines without marks are left out."""
    lines: dict[int, list[tuple[int, Mark]]] = {}
    for position, mark in marks.items():
        lines.setdefault(position[axis], []).append((position[1 - axis], mark))
    return {n: tuple(mark for _, mark in sorted(lines[n], key=lambda entry: entry[0])) for n in sorted(lines)}


def _places(built: Mapping[int, Mark], edited: Mapping[int, Mark]) -> dict[int, int]:
    """The present line of each line as built: equal lines in their order; lines that were replaced pair one by one."""
    numbers: dict[Mark, int] = {}  # a number for each different line: numbers compare faster than long lines
    a, b = ([numbers.setdefault(mark, len(numbers)) for mark in lines.values()] for lines in (built, edited))
    old, new, least = list(built), list(edited), min(len(built), len(edited))
    head = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), least)
    tail = 0
    while tail < least - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    places = dict(zip(old[:head], new[:head], strict=True))
    places |= dict(zip(old[len(old) - tail :], new[len(new) - tail :], strict=True))
    a, b, old, new = (lines[head : len(lines) - tail] for lines in (a, b, old, new))
    for operation, i, j, k, n in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if operation in ("equal", "replace"):
            places |= dict(zip(old[i:j], new[k:n], strict=False))
    return places


def _is_copy(built: Written, held: Written) -> bool:
    """True where both are the same formula if no line has moved: asked for every cell, answered once for those that
    share a formula."""
    away = held.away[0] - built.away[0], held.away[1] - built.away[1]
    return bool(built.formula and held.formula and _same_away(built.formula, held.formula, away))


@functools.lru_cache(maxsize=100_000)
def _same_away(built: Parsed, held: Parsed, away: At) -> bool:
    """True where a formula is the copy of another one so many rows and columns away."""
    if built.template != held.template or built.sheets != held.sheets or (built.moves != held.moves).any():
        return False
    return bool((built.places == held.at(away)).all())


def _same_formula(built: Written, held: Written, places: Mapping[str, Alignment]) -> bool:
    """True where the formula is the built one with its cells where they are now."""
    if built.formula is None or held.formula is None:
        return False
    if (built.formula.template, built.formula.sheets) != (held.formula.template, held.formula.sheets):
        return False
    moved = built.formula.at(built.away)
    if rearranged := [name for name in set(built.formula.sheets) & places.keys() if not places[name].stays]:
        moved, named = moved.copy(), numpy.array(built.formula.sheets)
        for sheet in rearranged:
            moved[:, named == sheet] = places[sheet].moved(moved[:, named == sheet])
    return bool((moved == held.formula.at(held.away)).all())


def _label(cells: Cells, position: At) -> str:
    """The texts at the head of a cell's row and of its column."""
    row, column = position
    left = (cells.get((row, c)) for c in range(1, column))
    up = (cells.get((r, column)) for r in range(row - 1, 0, -1))
    first = next((str(cell.value) for cell in left if cell and isinstance(cell.value, str)), "")
    head = next((str(cell.value) for cell in up if cell and cell.formula is None and isinstance(cell.value, str)), "")
    return ", ".join(dict.fromkeys(filter(None, (first, head))))


def agree(expected: object, got: object) -> bool:
    """True where two values are equal to 9 digits; a percentage in words to one percent, as half a percent is rounded
    either way. A precision under another name is the same precision."""
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
