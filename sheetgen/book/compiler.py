"""The compiler of blocks: a quantity of the program gets cells on the least axes that it differs by.

A sheet of blocks has tables beside it, whose rows are positions of the axes that run down (models, contexts, loads),
and a head, whose columns are positions of those that run along. Which of them a quantity needs follows from what it
reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy

from sheetgen.book.sheets import Lookup, Ref, RepeatedRow, Row, RowValues, Sheet, column_name, lookup
from sheetgen.book.wiring import LEFT, PLACES, SIDE_BY_SIDE, Block, Head, RowLookup, RowSource, Table, Wiring, matrix
from sheetgen.formula import Expr, Formula

Axes = frozenset[str]  # of the program, those that no other determines: model, workload, tier, gpu, tp, dp
NOWHERE: Axes = frozenset()
DOWN = {  # the tables whose rows blocks may have, the shortest first
    "models": frozenset({"model"}),
    "contexts": frozenset({"model", "workload"}),
    "loads": frozenset({"model", "workload", "tier"}),
}
# Of the columns along which a block stretches, the fewest first; of candidates all of them. latent: whether a GPU keeps
# FP8 latents as they are.
ALONG = {
    "tp": frozenset({"tp"}),
    "latent": frozenset({"tp", "latent"}),
    "gpu": frozenset({"gpu", "latent"}),
    "plain": frozenset({"gpu", "tp", "latent"}),
    "profile": frozenset({"gpu", "tp", "dp", "latent"}),
    "offer": frozenset({"gpu", "tp", "dp", "latent", "instance"}),
}
Rows = Callable[[Table], Iterable[int]]


def every_row(table: Table) -> Iterable[int]:
    """The indices of all rows of a table."""
    return range(table.n_rows)


@dataclass(frozen=True)
class Span:
    """The columns along which blocks stretch: where they begin, how many they are, and by name what the head says of
    each, of all columns of the sheet or of these alone. place: of what is said, which of a narrower block's cells a
    column reads."""

    width: int
    columns: Mapping[str, Sequence[RowSource]]
    place: str = ""
    left: int = LEFT


@dataclass
class Compiler:
    """Writes blocks on a sheet, one below the other.

    every: the workbook's wiring and those of models that a reader chooses (Decision), whose rows stand below. down: the
    tables whose rows blocks have. along: the columns that a block may have, the fewest first. ends: where the rows of
    some models end sooner, of each of `every`. facts: by name the axes of rows of the head. inside: what gets no cells,
    as it is worked out within what reads it. alike: what is the same on all GPUs for the workbook's own rows.
    by_model: by name the axes of what the batches tried have, and a source for each model, of each of `every`.
    """

    sheet: Sheet
    head: Head
    every: Sequence[Wiring]
    down: Sequence[str]
    along: Mapping[str, Span]
    ends: Sequence[Sequence[int]] = ()
    facts: Mapping[str, Axes] = field(default_factory=dict)
    inside: Sequence[Formula] = ()
    alike: Axes = NOWHERE
    by_model: Mapping[str, tuple[Axes, Sequence[Sequence[RowSource]]]] = field(default_factory=dict)
    axes: list[dict[str, Axes]] = field(default_factory=list)  # of the blocks, of each of `every`
    top: int = 0
    _shared: dict[tuple[str, int], RowValues] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.top = self.top or self.head.top + 1
        self.axes = self.axes or [{} for _ in self.every]

    @contextmanager
    def alone(self, *which: Wiring) -> Iterator[Compiler]:
        """The compiler of blocks whose rows are those of some of `every` alone."""
        places = [w for w, wiring in enumerate(self.every) if any(wiring is chosen for chosen in which)]
        some = replace(
            self,
            every=[self.every[w] for w in places],
            ends=[self.ends[w] for w in places] if self.ends else (),
            axes=[self.axes[w] for w in places],
            alike=self.alike if 0 in places else NOWHERE,
            by_model={name: (axes, [rows[w] for w in places]) for name, (axes, rows) in self.by_model.items()},
        )
        yield some
        self.top = some.top

    def write(
        self,
        name: str,
        quantity: Formula,
        *,
        down: str = "",
        given: Mapping[str, RowSource] | None = None,
        rows: Rows = every_row,
    ) -> None:
        """Write a quantity's block.

        down: the table whose rows it has, where that does not follow from what it reads.
        given: by name what is read in another way than the program says; a source for each row of the table, or one for
        all. rows: those of the table that are written.
        """
        whole = quantity.with_parts(self.inside, first=True).with_parts(self.inside, first=True)
        every, given = self.every, given or {}
        axes = [NOWHERE.union(*(self._axes_of(w, read) for read in whole.inputs)) for w in range(len(every))]
        down = down or next(key for key in self.down if axes[0].isdisjoint(DOWN[self.down[-1]] - DOWN[key]))
        spans = [self._span(of_wiring) for of_wiring in axes]
        labels: list[Ref] = []
        words: list[Ref] = []
        widths: list[int] = []
        lefts: list[int] = []
        repeated: list[str] = []
        sources: dict[str, list[RowSource]] = {read: [] for read in whole.inputs}
        n_before = 0
        for w, (wiring, span) in enumerate(zip(every, spans, strict=True)):
            table = wiring.tables[down]
            ends = self.ends[w] if self.ends else [span.width] * wiring.tables["models"].n_rows
            every_width, written_rows = table.by_row("models", ends), rows(table)
            for row in written_rows:
                labels.append(table.columns["model"][row])
                if down != "models":
                    words.append(table.columns["load_words" if down == "loads" else "workload"][row])
                widths.append(every_width[row])
                lefts.append(span.left)
                repeated.append(span.place)
            for read, row_sources in sources.items():
                if read in given:
                    of_rows = given[read][n_before:] if isinstance(given[read], list) else given[read]
                else:
                    of_rows = self._sources(w, read, down, span)
                row_sources += (of_rows[row] if isinstance(of_rows, list) else of_rows for row in written_rows)
            n_before += table.n_rows
        written = matrix(self.sheet, self.top, whole, labels, lefts, widths, sources, words or None)
        self.top += len(written) + 2
        whole_rows = iter(
            RepeatedRow(row, place, self._widest.columns[place]) if place else self._padded(row)
            for row, place in zip(written, repeated, strict=True)
        )
        for w, wiring in enumerate(every):
            wiring.blocks[name] = Block(down, [next(whole_rows) for _ in rows(wiring.tables[down])])
            self.axes[w][name] = axes[w] | DOWN[down]

    @property
    def _widest(self) -> Span:
        """The columns of the longest rows."""
        return list(self.along.values())[-1]

    def _span(self, axes: Axes) -> Span:
        """The fewest columns that have all of some axes."""
        return next(span for key, span in self.along.items() if axes.isdisjoint(ALONG["profile"] - ALONG[key]))

    def _padded(self, row: Row) -> Row:
        """A row with the blank cells to its right, where others are longer."""
        return row.padded(self.head.n_rows) if self.ends else row

    def same(self, name: str, other: str) -> None:
        """Let a quantity stand for another one, where that has cells."""
        for wiring, axes in zip(self.every, self.axes, strict=True):
            if other in axes:
                wiring.blocks[name], axes[name] = wiring.blocks[other], axes[other]

    def _axes_of(self, w: int, name: str) -> Axes:
        """The axes along which the quantity of that name differs, for the wiring `w` of `every`."""
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

    def sources(self, name: str, down: str) -> list[RowSource]:
        """By row of the tables of that name, the input of that name in the longest rows."""
        sources: list[RowSource] = []
        for w, wiring in enumerate(self.every):
            read, n_rows = self._sources(w, name, down, self._widest), wiring.tables[down].n_rows
            sources += read if isinstance(read, list) else [read] * n_rows
        return sources

    def _sources(self, w: int, name: str, down: str, span: Span) -> RowSource:
        """The input of that name for the rows of a table in some columns: one source for all rows, or one for each."""
        wiring = self.every[w]
        gpus, table = wiring.tables["gpus"], wiring.tables[down]
        if name in self.axes[w]:
            return list(self._own_rows(wiring, name, table, span))
        if name in wiring.blocks:
            return list(self._rows_elsewhere(wiring, name, table))
        if name in self.by_model:
            return list(table.by_row("models", self.by_model[name][1][w]))
        if name in SIDE_BY_SIDE:
            return list(table.by_row("models", self._side_by_side(wiring, name, span)))
        if name in span.columns or name in gpus.columns:
            key = name, span.left
            if key not in self._shared:
                own = span.columns.get(name) or [lookup(gpus.range(name), place) for place in span.columns["gpu_row"]]
                self._shared[key] = RowValues.of(own)
            return self._shared[key]
        for key_of_table in (down, *self.down):
            if name in wiring.tables[key_of_table].columns:
                return list(table.by_row(key_of_table, wiring.tables[key_of_table].columns[name]))
        return wiring.inputs[name]

    def _own_rows(self, wiring: Wiring, name: str, table: Table, span: Span) -> Sequence[RowSource]:
        """The values of a block on this sheet for the rows of a table. Where a reader chooses the workload of a row,
        the context's row is looked up."""
        block = wiring.blocks[name]
        whole: Sequence[RowSource] = [
            RepeatedRow(row.row, row.place, span.columns[row.place][: span.width])
            if isinstance(row, RepeatedRow)
            else row
            for row in block.rows
        ]
        above = Lookup(None, lambda here: Expr(_column_of(whole)))

        def chosen(
            row: int,
        ) -> RowSource:  # of a block of one row that row: Gnumeric finds nothing in a range of one cell
            place = table.columns[PLACES[block.down]][row]
            values = list(whole[int(place.value) - 1].values)
            return RowLookup(values, place, "INDEX({0},{1})", (above,)) if len(whole) > 1 else whole[0]

        return table.by_row(block.down, whole, chosen)

    def _rows_elsewhere(self, wiring: Wiring, name: str, table: Table) -> Sequence[RowSource]:
        """Look-ups of the rows of a table in a block of Profiles, at each column's profile."""
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

    def _side_by_side(self, wiring: Wiring, name: str, span: Span) -> list[RowLookup]:
        """By model a look-up, at each column's GPU, in that one of the side-by-side columns of GPUs which the model's
        row picks."""
        names, key = SIDE_BY_SIDE[name]
        columns = [wiring.tables["gpus"].range(of_place).refs for of_place in names]
        places = span.columns["gpu_row"]
        by_place = [[column[int(place.value) - 1].value for place in places] for column in columns]
        read = wiring.side_by_side(name), places[0]
        models = wiring.tables["models"].columns[key]
        return [RowLookup(by_place[int(place.value) - 1], place, "INDEX({0},{1},{2})", read) for place in models]


def _column_of(rows: Sequence[Row]) -> str:
    """The column of a block above or below the cell that reads it, as text."""
    letters, first, last = column_name(rows[0].left), 1 + rows[0].row, 1 + rows[-1].row
    return f"{letters}${first}:{letters}${last}"
