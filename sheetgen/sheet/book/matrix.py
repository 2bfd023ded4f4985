"""Matrices: rows above that say what each column is, and blocks of rows that one formula fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.formula import Expr, Formula
from sheetgen.sheet.block import RowValues, fill_row, row_values
from sheetgen.sheet.book.wiring import named
from sheetgen.sheet.model import Cell, Lookup, Range, Ref, Row, Sheet, Source, number, pick, plain
from sheetgen.units import FACTOR, PLAIN, TEXT, WHOLE, Display

LABELS = 2  # columns that say what a row is
LEFT = 18  # the first column of the matrix; those between hold what a row reads of other sheets
Env = Mapping[str, Source]


@dataclass(frozen=True)
class RowLookup:
    """What the cells of a row look up in a block: each at its own column, all in one row of it.

    row: the cell that says which row, or its number. write: the first cell's look-up, with that row put in.
    """

    values: Sequence[Any]
    write: Callable[[Expr, str], Expr]
    row: Ref | int


Grid = Sequence[Sequence[Source] | RowLookup | RowValues]  # by row and column
RowEnv = Mapping[str, Source | RowValues | RowLookup]


class Head:
    """Rows above a matrix: each says one thing of every column. It reads like a table by `columns`."""

    def __init__(self, sheet: Sheet, top: int, n_columns: int, key: str, names: dict[str, Ref | Range]) -> None:
        self.sheet, self.row, self.n_columns, self.key, self.names = sheet, top, n_columns, key, names
        self.columns: dict[str, list[Ref]] = {}

    def _label(self, label: str, note: str) -> int:
        self.sheet.text(self.row, 0, label, "head", note=note)
        self.sheet.text(self.row, 1, "", "head")
        self.row += 1
        return self.row - 1

    def given(self, name: str, label: str, values: list[Any], note: str = "") -> None:
        """Fixed values: the structure of the matrix."""
        row = self._label(label, note)
        self.columns[name] = [
            self.sheet.put(row, LEFT + i, Cell(v, "fixed", PLAIN), lock="row") for i, v in enumerate(values)
        ]

    def looked_up(
        self, name: str, label: str, find: Callable[[int], tuple[Any, Expr]], display: Display, note: str = ""
    ) -> None:
        """Values from another sheet."""
        row = self._label(label, note)
        refs = []
        for i in range(self.n_columns):
            value, expr = find(i)
            refs.append(self.sheet.formula(row, LEFT + i, value, expr, display, "computed", lock="row"))
        self.columns[name] = refs

    def picked(self, name: str, label: str, refs: Range, key: str, display: Display) -> None:
        """The entries of `refs` at the positions that the row `key` holds."""
        self.looked_up(name, label, lambda i: pick(refs, self.columns[key][i], self.sheet.name), display)

    def computed(self, one: Formula, env: Callable[[int], Env], name: str | None = None) -> None:
        """Values that a formula gives."""
        row = self._label(one.label, one.documentation)
        self.columns[name or one.name] = [
            self.sheet.compute(row, LEFT + i, one, {**{k: v[i] for k, v in self.columns.items()}, **env(i)}, lock="row")
            for i in range(self.n_columns)
        ]

    def range(self, name: str) -> Range:
        """A whole row of the head, by its defined name."""
        return named(self.names, f"tbl_{self.key}_{name}", tuple(self.columns[name]))


def matrix(
    sheet: Sheet, top: int, one: Formula, labels: Sequence[Ref], widths: Sequence[int], env: Callable[[int], RowEnv],
    loads: Sequence[Ref] | None = None, *, headed: bool = True,
) -> list[Row]:  # fmt: skip
    """A block of rows below `top`: the formula's name, then a row of so many cells per label.

    loads: what a row is beside its label, where the rows are loads. headed: or the rows go on with the block above.
    """
    if headed:
        sheet.text(top, 0, one.label, "section", note=one.documentation)
        sheet.text(top, 1, one.name, "section")
    out = []
    for r, label in enumerate(labels):
        row = top + 1 + r
        for column, words in enumerate((label,) if loads is None else (label, loads[r])):
            key = (words.sheet, words.row, words.column)
            there = sheet.link(row, column, sheet.linked.get(key, words), TEXT, role="computed", lock="column")
            sheet.linked.setdefault(key, there)
        width = widths[r]
        here = {n: s.cut(width) if isinstance(s, RowValues) else s for n, s in _linked(sheet, top, row, env(r)).items()}
        out.append(fill_row(sheet.name, row, LEFT, width, one, here, "none"))
    sheet.rows += out
    return out


def with_parts(one: Formula, parts: Sequence[Formula]) -> Formula:
    """A formula that works out those of `parts` which it reads within itself, so that no cell need hold them."""
    inner = [part for part in parts if part.name in one.inputs]
    if not inner:
        return one
    named_parts = {part.name for part in inner}
    read = [name for part in inner for name in part.inputs] + [name for name in one.inputs if name not in named_parts]
    inputs = tuple(dict.fromkeys(read))

    def function(*args: Any) -> Any:
        values = dict(zip(inputs, args, strict=True))
        return one.of(values | {part.name: part.of(values) for part in inner})

    return Formula(one.name, one.label, one.display, inputs, function, one.documented or one.function)


def _linked(sheet: Sheet, top: int, row: int, env: RowEnv) -> Mapping[str, Source | RowValues]:
    """`env` with what stands on other sheets brought into cells beside the row: a formula that many cells share must
    not name another sheet, and its ingredients stand where they can be seen. Each is brought once."""
    column = LABELS
    found: dict[str, Source | RowValues] = {}

    def bring(name: str, what: Ref | int) -> Ref:
        nonlocal column
        key = ("", what, 0) if isinstance(what, int) else (what.sheet, what.row, what.column)
        if key in sheet.linked:
            return sheet.linked[key]
        if column == LEFT:
            raise ValueError(f"{sheet.name}: a row reads more of other sheets than there is room for")
        if (top, column) not in sheet.cells:
            sheet.text(top, column, name, "section")
        if isinstance(what, int):
            ref = sheet.put(row, column, Cell(what, "fixed", PLAIN), lock="column")
        else:
            whole = float(plain(number(what.value))).is_integer()
            ref = sheet.link(row, column, what, WHOLE if whole else FACTOR, lock="column")
        column += 1
        sheet.linked[key] = ref
        return ref

    for name, source in env.items():
        if isinstance(source, RowLookup):
            at = bring(f"row of {name}", source.row)
            first = Lookup(None, lambda here, s=source, a=at: s.write(a.expr(here), here))  # type: ignore[misc]
            found[name] = RowValues(numpy.array([number(v) for v in source.values], float), first)
        elif isinstance(source, Ref) and source.sheet != sheet.name and not source.name:
            found[name] = bring(name, source)
        else:
            found[name] = source
    return found


def env_of(
    one: Formula, grids: Mapping[str, Grid], columns: Mapping[str, Sequence[Source]],
    rows: Mapping[str, Sequence[Source]], shared: Mapping[str, Source],
) -> Callable[[int], RowEnv]:  # fmt: skip
    """What a formula reads in row r: cells of other blocks, of the head, of the row's table, of Inputs, the
    nearest first. Which is which is settled once, not for every row.
    """
    in_grid = {n: grids[n] for n in one.inputs if n in grids}
    in_column = {n: row_values(columns[n]) for n in one.inputs if n in columns and n not in in_grid}
    near = {*in_grid, *in_column}
    in_row = {n: rows[n] for n in one.inputs if n in rows and n not in near}
    fixed = {n: shared[n] for n in one.inputs if n in shared and n not in {*near, *in_row}}

    def env(r: int) -> RowEnv:
        found: dict[str, Source | RowValues | RowLookup] = {**fixed, **in_column}
        for n, by_row in in_row.items():
            found[n] = by_row[r]
        for n, grid in in_grid.items():
            found[n] = of_row if isinstance(of_row := grid[r], RowLookup | RowValues) else row_values(of_row)
        return found

    return env
