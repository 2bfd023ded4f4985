"""The compiler of blocks: a quantity of the program gets cells on the least axes that it differs by.

A sheet of blocks has tables beside it, whose rows are positions of the axes that run down (models, contexts, loads),
and a head, whose columns are positions of those that run along. Which of them a quantity needs follows from what it
reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from sheetgen.book.sheets import Lookup, Ref, RepeatedRow, Row, RowValues, Sheet, column_name, lookup
from sheetgen.book.wiring import PLACES, SIDE_BY_SIDE, Block, Head, RowLookup, Table, Wiring, matrix
from sheetgen.formula import Expr, Formula

Axes = frozenset[str]  # of the program, those that no other determines: model, workload, tier, gpu, tp, dp
NOWHERE: Axes = frozenset()
DOWN = {  # the tables whose rows blocks may have, the shortest first
    "models": frozenset({"model"}),
    "contexts": frozenset({"model", "workload"}),
    "loads": frozenset({"model", "workload", "tier"}),
}
# Of the columns along which a block stretches, the fewest first; of candidates all of them.
ALONG = {
    "tp": frozenset({"tp"}),
    "plain": frozenset({"gpu", "tp"}),
    "profile": frozenset({"gpu", "tp", "dp"}),
    "offer": frozenset({"gpu", "tp", "dp", "instance"}),
}
Rows = Callable[[Table], Iterable[int]]


def every_row(table: Table) -> Iterable[int]:
    """The places of all rows of a table."""
    return range(table.n_rows)


@dataclass
class Compiler:
    """Writes blocks on a sheet, one below the other.

    every: the workbook's wiring and those of models that a reader chooses (Decision), whose rows stand below. down: the
    tables whose rows blocks have. along: by axis of the head's columns how many of them a row takes. ends: where the
    rows of some models end sooner, of each of `every`. facts: by name the axes of rows of the head. inside: what gets
    no cells, as it is worked out within what reads it. alike: what is the same on all GPUs for the workbook's own rows.
    by_model: by name the axes of what the batches tried have, and a source for each model, of each of `every`.
    """

    sheet: Sheet
    head: Head
    every: Sequence[Wiring]
    down: Sequence[str]
    along: Mapping[str, int]
    ends: Sequence[Sequence[int]] = ()
    facts: Mapping[str, Axes] = field(default_factory=dict)
    inside: Sequence[Formula] = ()
    alike: Axes = NOWHERE
    by_model: Mapping[str, tuple[Axes, Sequence[Sequence[Any]]]] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    axes: list[dict[str, Axes]] = field(default_factory=list)  # of the blocks, of each of `every`
    top: int = 0
    _shared: dict[str, RowValues] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.top = self.head.top + 1
        self.inputs = {**self.every[0].inputs, **self.inputs}
        self.axes = [{} for _ in self.every]

    def write(
        self,
        name: str,
        quantity: Formula,
        *,
        live: bool = True,
        down: str = "",
        given: Mapping[str, Any] | None = None,
        rows: Rows = every_row,
    ) -> None:
        """Write a quantity's block.

        live: with rows of the others. down: the table whose rows it has, where that does not follow from what it reads.
        given: by name what is read in another way than the program says; a source for each row of the table, or one for
        all. rows: those of the table that are written.
        """
        whole = quantity.with_parts(self.inside, first=True).with_parts(self.inside, first=True)
        every, given = self.every if live else self.every[:1], given or {}
        axes = [NOWHERE.union(*(self._axes_of(w, read) for read in whole.inputs)) for w in range(len(every))]
        down = down or next(key for key in self.down if axes[0].isdisjoint(DOWN[self.down[-1]] - DOWN[key]))
        labels: list[Ref] = []
        words: list[Ref] = []
        kept: list[int] = []
        widths: list[int] = []
        places: list[Sequence[Ref] | None] = []
        for w, wiring in enumerate(every):
            table, before = wiring.tables[down], sum(earlier.tables[down].n_rows for earlier in every[:w])
            along = next(key for key in self.along if axes[w].isdisjoint(ALONG["profile"] - ALONG[key]))
            full, width = list(self.along.values())[-1], self.along[along]
            ends = self.ends[w] if self.ends else [width] * wiring.tables["models"].n_rows
            every_width = table.by_row("models", ends)
            repeated = self.head.columns.get(f"{along}_position", [])[:full] if width < full else None
            for row in rows(table):
                labels.append(table.columns["model"][row])
                if down != "models":
                    words.append(table.columns["load_words" if down == "loads" else "workload"][row])
                kept.append(before + row)
                widths.append(every_width[row])
                places.append(repeated)
        sources = {}
        for read in whole.inputs:
            rows_read = given[read] if read in given else self.sources(read, down, len(every))
            sources[read] = [rows_read[row] for row in kept] if isinstance(rows_read, list) else rows_read
        written = matrix(self.sheet, self.top, whole, labels, widths, sources, words or None)
        self.top += len(written) + 2
        whole_rows = iter(
            RepeatedRow(row, repeated) if repeated else row.padded(self.head.n_rows) if self.ends else row
            for row, repeated in zip(written, places, strict=True)
        )
        for w, wiring in enumerate(every):
            wiring.blocks[name] = Block(down, [next(whole_rows) for _ in rows(wiring.tables[down])])
            self.axes[w][name] = axes[w] | DOWN[down]

    def same(self, name: str, other: str) -> None:
        """Let a quantity stand for another one, where that has cells."""
        for wiring, axes in zip(self.every, self.axes, strict=True):
            if other in axes:
                wiring.blocks[name], axes[name] = wiring.blocks[other], axes[other]

    def _axes_of(self, w: int, name: str) -> Axes:
        """The axes that what is read by a name, for that one of `every`, differs by."""
        wiring = self.every[w]
        if name in self.alike and w == 0:
            return NOWHERE
        for declared in (self.axes[w], self.facts):
            if name in declared:
                return declared[name]
        if name in wiring.blocks:
            return DOWN[wiring.blocks[name].down] | ALONG["profile"]
        if name in self.by_model:
            return self.by_model[name][0]
        if name in SIDE_BY_SIDE:
            return frozenset({"gpu", "model"})
        if name in self.head.columns:
            return ALONG["plain"]
        if name in wiring.tables["gpus"].columns:
            return frozenset({"gpu"})
        return next((DOWN[key] for key in self.down if name in wiring.tables[key].columns), NOWHERE)

    def sources(self, name: str, down: str, n: int | None = None) -> Any:
        """What the rows of a table read by a name: the same in all of them, or a source for each."""
        every, first = self.every[:n], self.every[0]
        gpus = first.tables["gpus"]
        if name in first.blocks:
            held = self._own_rows if name in self.axes[0] else self._rows_elsewhere
            return [row for wiring in every for row in held(wiring, name, wiring.tables[down])]
        if name in self.by_model:
            pairs = zip(every, self.by_model[name][1], strict=False)
            return [source for wiring, rows in pairs for source in wiring.tables[down].by_row("models", rows)]
        if name in SIDE_BY_SIDE:
            by_model = ((wiring, self._side_by_side(wiring, name)) for wiring in every)
            return [row for wiring, rows in by_model for row in wiring.tables[down].by_row("models", rows)]
        if name in self.head.columns or name in gpus.columns:
            if name not in self._shared:
                places = self.head.columns["gpu_row"]
                own = self.head.columns.get(name) or [lookup(gpus.range(name), place) for place in places]
                self._shared[name] = RowValues.of(own)
            return self._shared[name]
        for key in (down, *self.down):
            if name in first.tables[key].columns:
                columns = ((wiring, wiring.tables[key].columns[name]) for wiring in every)
                return [ref for wiring, refs in columns for ref in wiring.tables[down].by_row(key, refs)]
        return self.inputs[name]

    def _own_rows(self, wiring: Wiring, name: str, table: Table) -> Sequence[Any]:
        """What the rows of a table read of a block on this sheet. Where a reader chooses the workload of a row, that of
        the context is looked up."""
        block = wiring.blocks[name]
        whole: Any = block.rows
        above = Lookup(None, lambda here: Expr(_column_of(whole)))

        def chosen(row: int) -> Any:  # of a block of one row that row: Gnumeric finds nothing in a range of one cell
            place = table.columns[PLACES[block.down]][row]
            values = list(whole[int(place.value) - 1].values)
            return RowLookup(values, place, "INDEX({0},{1})", (above,)) if len(whole) > 1 else whole[0]

        return table.by_row(block.down, whole, chosen)

    def _rows_elsewhere(self, wiring: Wiring, name: str, table: Table) -> Sequence[Any]:
        """What the rows of a table look up in a block of Profiles, at each column's profile."""
        block, places = wiring.blocks[name], self.head.columns["profile"]
        profiles = [int(place.value) - 1 for place in places]
        values, read = (
            [numpy.asarray(row.values)[profiles] for row in block.rows],
            (wiring.area_of_block(name), places[0]),
        )

        def looked_up(number: Ref | int) -> RowLookup:
            row = number if isinstance(number, int) else int(number.value)
            return RowLookup(list(values[row - 1]), number, "INDEX({0},{2},{1})", read)

        def chosen(row: int) -> RowLookup:
            return looked_up(table.columns[PLACES[block.down]][row])

        return table.by_row(block.down, list(map(looked_up, range(1, 1 + len(values)))), chosen)

    def _side_by_side(self, wiring: Wiring, name: str) -> list[RowLookup]:
        """By model, what that one of some columns of GPUs holds whose place is the model's, for each column's GPU."""
        names, key = SIDE_BY_SIDE[name]
        columns = [wiring.tables["gpus"].range(of_place).refs for of_place in names]
        places = self.head.columns["gpu_row"]
        by_place = [[column[int(place.value) - 1].value for place in places] for column in columns]
        read = wiring.side_by_side(name), places[0]
        models = wiring.tables["models"].columns[key]
        return [RowLookup(by_place[int(place.value) - 1], place, "INDEX({0},{1},{2})", read) for place in models]


def _column_of(rows: Sequence[Row]) -> str:
    """A block's column above or below the cell that reads it."""
    letters, first, last = column_name(rows[0].left), 1 + rows[0].row, 1 + rows[-1].row
    return f"{letters}${first}:{letters}${last}"
