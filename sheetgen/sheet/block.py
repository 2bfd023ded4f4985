"""A block of cells that one formula fills: worked out together, and written once a row.

Cell by cell, a matrix of thousands would take seconds to work out and megabytes to write. A row of a block is
one array of values, and one formula that its cells share: the text as the first cell has it, which a
spreadsheet moves along the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sheetgen.formula import Expr, Formula
from sheetgen.sheet.model import Found, Range, Ref, Source, found, number, plain
from sheetgen.units import Display

if TYPE_CHECKING:
    import numpy


@dataclass(frozen=True)
class Row(Sequence[Ref]):
    """A row of a block: its cells as references, made when asked for."""

    sheet: str
    row: int
    left: int
    values: numpy.ndarray
    formula: Expr | None  # none: the values are facts
    role: str
    display: Display
    lock: str

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return tuple(self[k] for k in range(*i.indices(len(self))))
        at = range(len(self))[i]
        return Ref(self.sheet, self.row, self.left + at, plain(self.values[at]), lock=self.lock)

    def __iter__(self) -> Iterator[Ref]:
        return (self[i] for i in range(len(self)))


@dataclass(frozen=True)
class Down(Sequence[Ref]):
    """A column through the rows of a block, made when asked for."""

    rows: Sequence[Sequence[Ref]]
    column: int

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: Any) -> Any:
        return self.rows[i][self.column]


@dataclass(frozen=True)
class Spread(Sequence[Ref]):
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
    def first(self) -> Found:
        """The look-up as the first column has it."""
        return found(Range(self.row, lock="columns"), self.positions[0])


@dataclass(frozen=True)
class Along:
    """What the cells of a row read: one value each, written as the first of them sees it."""

    values: Any
    first: Source

    def expr(self, here: str) -> Expr:
        """The source as the row's first cell has it."""
        return self.first.expr(here)

    def cut(self, width: int) -> Along:
        """The same for the first cells alone."""
        return Along(self.values[:width], self.first)


def along(sources: Sequence[Source]) -> Along:
    """A source for each cell of a row."""
    import numpy

    values = getattr(sources, "values", None)
    if values is None:
        values = [number(s.value) for s in sources]
        values = numpy.array(values, float if all(isinstance(v, (int, float)) for v in values) else object)
    return Along(values, getattr(sources, "first", None) or sources[0])


def fill_row(
    sheet: str, row: int, left: int, width: int, one: Formula, env: Mapping[str, Source | Along], lock: str,
    display: Display | None = None, role: str = "computed",
) -> Row:  # fmt: skip
    """A row of `width` cells that `one` fills: what it reads is the same for all, or an Along."""
    import numpy

    given = {i: e.values if isinstance(e := env[i], Along) else number(e.value) for i in one.inputs}
    text = one.written({i: env[i].expr(sheet) for i in one.inputs})
    values = numpy.broadcast_to(numpy.asarray(one.of(given)), (width,))
    return Row(sheet, row, left, values, text, role, display or one.display, lock)
