"""A block of cells that one formula fills: worked out together, and written once a row.

Cell by cell, a matrix of thousands would take seconds to work out and megabytes to write. A row of a block is
one array of values, and one formula that its cells share: the text as the first cell has it, which a
spreadsheet moves along the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sheetgen.formula import Expr, Formula
from sheetgen.sheet.model import Lookup, Range, Ref, Row, Source, lookup, number
from sheetgen.units import Display

if TYPE_CHECKING:
    import numpy


@dataclass(frozen=True)
class BlockColumn(Sequence[Ref]):
    """A column through the rows of a block, made when it is read."""

    rows: Sequence[Sequence[Ref]]
    column: int

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: Any) -> Any:
        return self.rows[i][self.column]


@dataclass(frozen=True)
class RepeatedRow(Sequence[Ref]):
    """A short row as the cells of a longer one read it: each by the position that a head of its column names."""

    row: Row
    positions: Sequence[Ref]

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, i: Any) -> Any:
        return self.row[i]  # the first columns are those of the short row

    @property
    def values(self) -> numpy.ndarray:
        """What each column reads."""
        return self.row.values[[int(p.value) - 1 for p in self.positions]]

    @property
    def first(self) -> Lookup:
        """The look-up as the first column has it."""
        return lookup(Range(self.row, lock="columns"), self.positions[0])


@dataclass(frozen=True)
class RowValues:
    """What the cells of a row read: one value each, written as the first of them sees it."""

    values: Any
    first: Source

    def expr(self, here: str) -> Expr:
        """The source as the row's first cell has it."""
        return self.first.expr(here)

    def cut(self, width: int) -> RowValues:
        """The same for the first cells alone."""
        return RowValues(self.values[:width], self.first)


def row_values(sources: Sequence[Source]) -> RowValues:
    """A source for each cell of a row."""
    import numpy

    values = getattr(sources, "values", None)
    if values is None:
        values = [number(s.value) for s in sources]
        values = numpy.array(values, float if all(isinstance(v, (int, float)) for v in values) else object)
    return RowValues(values, getattr(sources, "first", None) or sources[0])


def fill_row(
    sheet: str, row: int, left: int, width: int, one: Formula, env: Mapping[str, Source | RowValues], lock: str,
    display: Display | None = None, role: str = "computed",
) -> Row:  # fmt: skip
    """A row of `width` cells that `one` fills: what it reads is the same for all, or a RowValues."""
    import numpy

    given = {i: e.values if isinstance(e := env[i], RowValues) else number(e.value) for i in one.inputs}
    text = one.written({i: env[i].expr(sheet) for i in one.inputs})
    values = numpy.broadcast_to(numpy.asarray(one.of(given)), (width,))
    return Row(sheet, row, left, values, text, role, display or one.display, lock)
