"""The compiler of blocks: a quantity of the program gets cells on the least axes that it differs by.

A sheet of blocks has tables beside it, whose rows are positions of the axes that run down (models, contexts, loads),
and a head, whose columns are positions of those that run along. Which of them a quantity needs follows from what it
reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sheetgen.book.sheets import Ref, RepeatedRow, RowValues, Sheet, lookup
from sheetgen.book.wiring import SIDE_BY_SIDE, Block, Head, RowLookup, Wiring, matrix
from sheetgen.formula import Formula

Axes = frozenset[str]  # those of the program that nothing else determines: model, workload, tier, gpu, tp, dp
NOWHERE: Axes = frozenset()
DOWN = {  # the tables whose rows blocks may have, the shortest first
    "models": frozenset({"model"}),
    "contexts": frozenset({"model", "workload"}),
    "loads": frozenset({"model", "workload", "tier"}),
}
ALONG = {"tp": frozenset({"tp"}), "plain": frozenset({"gpu", "tp"}), "profile": frozenset({"gpu", "tp", "dp"})}


@dataclass
class Compiler:
    """Writes blocks on a sheet, one below the other.

    every: the workbook's wiring and, where it has one, What-if's, whose rows stand below. down: the tables whose rows
    blocks have. along: by axis of the head's columns how many of them a row of the workbook's own takes; rows of
    What-if take all columns but on the first. facts: by name the axes of rows of the head. inside: what gets no cells,
    as it is worked out within what reads it. alike: what is the same on all GPUs for the workbook's own rows.
    """

    sheet: Sheet
    head: Head
    every: Sequence[Wiring]
    down: Sequence[str]
    along: Mapping[str, int]
    facts: Mapping[str, Axes]
    inside: Sequence[Formula] = ()
    alike: Axes = NOWHERE
    inputs: dict[str, Any] = field(default_factory=dict)
    by_model: dict[str, tuple[Axes, list[Sequence[Any]]]] = field(default_factory=dict)  # sources, of each of `every`
    axes: list[dict[str, Axes]] = field(default_factory=list)  # of the blocks, of each of `every`
    top: int = 0
    _shared: dict[str, RowValues] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.top = self.head.top + 1
        self.inputs = {**self.every[0].inputs, **self.inputs}
        self.axes = [{} for _ in self.every]

    def write(self, name: str, quantity: Formula, live: bool = True) -> None:
        """Write a quantity's block. live: with rows of What-if."""
        whole = quantity.with_parts(self.inside, first=True).with_parts(self.inside, first=True)
        every = self.every if live else self.every[:1]
        axes = [NOWHERE.union(*(self._axes_of(of, read) for read in whole.inputs)) for of in range(len(every))]
        down = next(key for key in self.down if axes[0].isdisjoint(DOWN[self.down[-1]] - DOWN[key]))
        labels: list[Ref] = []
        words: list[Ref] = []
        widths: list[int] = []
        places: list[Sequence[Ref] | None] = []
        for of, wiring in enumerate(every):
            columns = wiring.tables[down].columns
            along = next(key for key in self.along if axes[of].isdisjoint(ALONG["profile"] - ALONG[key]))
            full = len(self.head.columns["gpu_row"]) if of else self.along["profile"]
            width = full if of and along != "tp" else self.along[along]
            labels += columns["model"]
            words += columns.get("workload", ())
            widths += [width] * len(columns["model"])
            places += [self.head.columns[f"{along}_position"][:full] if width < full else None] * len(columns["model"])
        given = {read: self._sources(read, down, len(every)) for read in whole.inputs}
        rows: list[Any] = matrix(self.sheet, self.top, whole, labels, widths, given, words or None)
        rows = [RepeatedRow(row, at) if at else row for row, at in zip(rows, places, strict=True)]
        self.top += len(rows) + 2
        for of, wiring in enumerate(every):
            n_rows = wiring.tables[down].n_rows
            wiring.blocks[name] = Block(down, rows[:n_rows])
            self.axes[of][name] = axes[of]
            rows = rows[n_rows:]

    def same(self, name: str, other: str) -> None:
        """Let a quantity stand for another one, where that has cells."""
        for wiring, axes in zip(self.every, self.axes, strict=True):
            if other in axes:
                wiring.blocks[name], axes[name] = wiring.blocks[other], axes[other]

    def _axes_of(self, of: int, name: str) -> Axes:
        """The axes that what is read by a name differs by."""
        if name in self.alike and of == 0:
            return NOWHERE
        for known in (self.axes[of], self.facts):
            if name in known:
                return known[name]
        if name in self.by_model:
            return self.by_model[name][0]
        if name in SIDE_BY_SIDE:
            return frozenset({"gpu", "model"})
        if name in self.head.columns:
            return ALONG["plain"]
        tables = self.every[0].tables
        if name in tables["gpus"].columns:
            return frozenset({"gpu"})
        return next((DOWN[key] for key in self.down if name in tables[key].columns), NOWHERE)

    def _sources(self, name: str, down: str, n: int) -> Any:
        """What the rows of a table read by a name: the same in all of them, or a source for each."""
        every, gpus = self.every[:n], self.every[0].tables["gpus"]

        def rows_of(key: str, sources: Iterable[Sequence[Any]]) -> list[Any]:
            pairs = zip(every, sources, strict=False)
            return [source for wiring, rows in pairs for source in wiring.tables[down].by_row(key, rows)]

        if name in self.axes[0]:
            return rows_of(self.every[0].blocks[name].down, (of.blocks[name].rows for of in every))
        if name in self.by_model:
            return rows_of("models", self.by_model[name][1])
        if name in SIDE_BY_SIDE:
            return rows_of("models", (self.side_by_side(of, name) for of in every))
        if name in self.head.columns or name in gpus.columns:
            if name not in self._shared:
                places = self.head.columns["gpu_row"]
                own = self.head.columns.get(name) or [lookup(gpus.with_below(name), at) for at in places]
                self._shared[name] = RowValues.of(own)
            return self._shared[name]
        for key in (down, *self.down):
            if name in self.every[0].tables[key].columns:
                return rows_of(key, (of.tables[key].columns[name] for of in every))
        return self.inputs[name]

    def side_by_side(self, wiring: Wiring, name: str) -> list[RowLookup]:
        """By model, what that one of some columns of GPUs holds whose place is the model's, for each column's GPU."""
        names, key = SIDE_BY_SIDE[name]
        columns = [wiring.tables["gpus"].with_below(of_place).refs for of_place in names]
        places = self.head.columns["gpu_row"]
        by_place = [[column[int(place.value) - 1].value for place in places] for column in columns]
        read = wiring.side_by_side(name), places[0]
        models = wiring.tables["models"].columns[key]
        return [RowLookup(by_place[int(at.value) - 1], at, "INDEX({0},{1},{2})", read) for at in models]
