"""numpy's reading of a program: columns with the axes that they have, each formula worked out on the fewest axes.

Reading a column over other axes follows the places that one axis has on another: an offer is of a profile (a GPU at a
layout), a load of a model. numpy's shapes follow from the axes; nobody else aligns columns.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy

from sheetgen.program.declared import Again, Axes, Declared, Named, Program, Repeat, by_name

Column: TypeAlias = Any  # a number, or a numpy array with a side for each of its axes
Positions: TypeAlias = "numpy.ndarray[Any, Any]"  # whole numbers: of each position on one axis that on another
Columns: TypeAlias = dict[str, Column]
TRIED = "tried"  # the axis of what some steps of a search may try
MOST_TRIED = 1_000  # values of a column, about: as many take numpy little longer than few


@dataclass(frozen=True)
class _AxisFacts:
    """Facts that follow from the places of axes and from their sizes: shared by all grids with the same ones."""

    sides: dict[tuple[Axes, Axes], tuple[int | None, ...]] = field(default_factory=dict)
    differing: dict[tuple[frozenset[Axes], Axes, Axes], Axes] = field(default_factory=dict)
    readable: dict[Axes, dict[Axes, bool]] = field(default_factory=dict)  # by the axes that are read over, its own


@functools.lru_cache(256)
def _facts_of(_places: tuple[tuple[str, str], ...], _sizes: tuple[tuple[str, int], ...]) -> _AxisFacts:
    return _AxisFacts()


@dataclass(frozen=True)
class Grid:
    """Columns by name, each with its axes, the latest last.

    places: for an axis and another, where each position of the one stands on the other. sizes: positions by axis. A
    column without axes holds everywhere.
    """

    columns: dict[str, tuple[tuple[Axes, Column], ...]]
    places: Mapping[tuple[str, str], Positions]
    sizes: Mapping[str, int]
    _layouts: dict[tuple[Axes, Axes, tuple[int, ...]], Callable[[Column], Column]] = field(
        default_factory=dict, compare=False, repr=False
    )
    _facts: _AxisFacts = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_facts", _facts_of(tuple(self.places), tuple(self.sizes.items())))

    @classmethod
    def over(cls, **sizes: int) -> Grid:
        """An empty grid over axes of these sizes."""
        return cls({}, {}, sizes)

    def along(self, axis: str, places: Mapping[str, Sequence[int]], size: int | None = None) -> Grid:
        """This grid with one more axis, whose positions stand at the given positions of other axes. Columns put there
        stay there."""
        near = {(axis, other): numpy.asarray(positions, int) for other, positions in places.items()}
        size = len(next(iter(near.values()))) if size is None else size
        far = {
            (axis, end): numpy.asarray(far_positions)[positions]
            for (_, other), positions in near.items()
            for (start, end), far_positions in self.places.items()
            if start == other
        }
        others = {key: positions for key, positions in self.places.items() if key[0] != axis}
        return Grid(dict(self.columns), {**others, **far, **near}, {**self.sizes, axis: size})

    def again(self, under: Mapping[str, Column], **sizes: int) -> Grid:
        """A copy with numbers in place of some quantities, for tables that are read again; sizes: axes with another
        number of positions there."""
        copy = replace(self, columns=dict(self.columns), sizes={**self.sizes, **sizes})
        copy.put((), under)
        return copy

    def put(self, axes: Axes, columns: Mapping[str, Column]) -> None:
        """Add columns (lists are numbers); they replace earlier ones of the same name wherever their axes can be
        read."""
        for name, column in columns.items():
            self._add(name, axes, numpy.array(column, float) if isinstance(column, list) else column)

    def _add(self, name: str, axes: Axes, column: Column) -> None:
        own = axes if getattr(column, "ndim", 0) else ()
        self.columns[name] = (*self.columns.get(name, ()), (own, column))

    def combine(self, name: str, function: Callable[..., Column], reads: Iterable[str], axes: Axes) -> None:
        """Put in a column that a function makes of others, on the fewest axes by which these differ: for texts and
        other values that no formula gives."""
        names = tuple(reads)
        own = self.fewest_axes(names, axes)
        self.put(own, {name: function(*(self.spread(read, own) for read in names))})

    def restricted(self, kept: Mapping[str, Positions]) -> Grid:
        """The grid with only some positions of some axes; other axes stay whole."""
        places = {}
        for (axis, other), positions in self.places.items():
            positions = positions[kept[axis]] if axis in kept else positions
            if other in kept:
                numbers = numpy.zeros(self.sizes[other], int)
                numbers[kept[other]] = numpy.arange(len(kept[other]))
                positions = numbers[positions]
            places[axis, other] = positions
        columns = {}
        for name, every in self.columns.items():
            columns[name] = tuple((axes, self._restricted(column, axes, kept)) for axes, column in every)
        sizes = {axis: len(positions) for axis, positions in kept.items()}
        return Grid(columns, places, {**self.sizes, **sizes})

    @staticmethod
    def _restricted(column: Column, axes: Axes, kept: Mapping[str, Positions]) -> Column:
        for side, axis in enumerate(axes):
            if axis in kept and column.shape[side] > 1:
                column = column.take(kept[axis], side)
        return column

    def has(self, name: str, axes: Axes) -> bool:
        """True for a column that can be read over `axes`."""
        return self._readable(name, axes) is not None

    def read(self, name: str, axes: Axes) -> Column:
        """A column over `axes`, ready to be combined with others: sides on which it does not differ have length 1.

        Raises KeyError where no column of that name can be read there.
        """
        own, column = self._find(name, axes)
        return self._laid_out(own, column, axes)

    def _find(self, name: str, axes: Axes) -> tuple[Axes, Column]:
        """The latest column that can be read over `axes`, with its own axes. Raises KeyError where there is none."""
        readable = self._readable(name, axes)
        if readable is None:
            raise KeyError(f"{name!r} is nowhere in the grid over {', '.join(axes)}")
        return readable

    def _laid_out(self, own: Axes, column: Column, axes: Axes) -> Column:
        """A column with axes of its own, laid out over other axes."""
        if own == axes or not own:
            return column
        key = own, axes, column.shape
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = self._layout(*key)
        return layout(column)

    def _layout(self, own: Axes, axes: Axes, shape: tuple[int, ...]) -> Callable[[Column], Column]:
        """The function that lays a column of this shape out over other axes."""
        sides = [side for side in self._sides_of(own, axes) if side is not None]
        moves = [length > 1 and axes[side] != axis for axis, side, length in zip(own, sides, shape, strict=True)]
        if len(set(sides)) == len(own) and sum(moves) <= 1:  # sides in order, at most one of them looked up
            order = sorted(range(len(own)), key=sides.__getitem__)
            moved = moves.index(True) if True in moves else None
            positions = None if moved is None else self.places[axes[sides[moved]], own[moved]]
            lengths = [1] * len(axes)
            for i, side in enumerate(sides):
                lengths[side] = shape[i] if i != moved or positions is None else len(positions)

            def lay_out(column: Column) -> Column:
                column = column if moved is None else column.take(positions, moved)
                return column.transpose(order).reshape(lengths)

            return lay_out
        index = tuple(
            (self.places[axes[side], axis] if is_moved else numpy.arange(length)).reshape(
                [-1 if i == side else 1 for i in range(len(axes))]
            )
            for axis, side, length, is_moved in zip(own, sides, shape, moves, strict=True)
        )
        return lambda column: column[index]

    def spread(self, name: str, axes: Axes) -> Column:
        """A column with every position of `axes`."""
        column, shape = self.read(name, axes), tuple(self.sizes[axis] for axis in axes)
        return column if getattr(column, "shape", None) == shape else numpy.broadcast_to(column, shape)

    def _readable(self, name: str, axes: Axes) -> tuple[Axes, Column] | None:
        """The latest column that can be read over `axes`, with its own axes."""
        readable = self._facts.readable.setdefault(axes, {axes: True, (): True})
        for standing in reversed(self.columns.get(name, ())):
            own = standing[0]
            if own not in readable:
                readable[own] = None not in self._sides_of(own, axes)
            if readable[own]:
                return standing
        return None

    def _sides_of(self, own: Axes, axes: Axes) -> tuple[int | None, ...]:
        """For each of a column's own axes, its position in `axes`; None where it has none there."""
        key = own, axes
        if key not in self._facts.sides:
            self._facts.sides[key] = tuple(self._side(own_axis, axes) for own_axis in own)
        return self._facts.sides[key]

    def _side(self, own_axis: str, axes: Axes) -> int | None:
        if own_axis in axes:
            return axes.index(own_axis)
        return next((side for side, axis in enumerate(axes) if (axis, own_axis) in self.places), None)

    def fewest_axes(self, names: Iterable[str], axes: Axes, rows: str | None = None) -> Axes:
        """The axes by which a result made of these columns differs. For each of `axes`, the smallest axis that has all
        that is read there, and no axis where nothing is read. Columns on the axis `rows` are read whole and add no
        axis.

        Raises KeyError where a column cannot be read.
        """
        every = axes if rows is None else (*axes, rows)
        owns = (self._find(name, every)[0] for name in names)
        return self._fewest(frozenset(filter(None, owns)), axes, every)

    def _fewest(self, different: frozenset[Axes], axes: Axes, every: Axes) -> Axes:
        """The fewest axes for columns that have these axes of their own."""
        key = different, axes, every
        if key not in self._facts.differing:
            wanted: list[set[str]] = [set() for _ in every]
            for own in different:
                for own_axis, side in zip(own, self._sides_of(own, every), strict=True):
                    assert side is not None
                    wanted[side].add(own_axis)
            self._facts.differing[key] = tuple(
                self._smallest(axis, needed) for axis, needed in zip(axes, wanted, strict=False) if needed
            )
        return self._facts.differing[key]

    def _smallest(self, axis: str, needed: set[str]) -> str:
        if axis in needed:
            return axis
        others = [other for start, other in self.places if start == axis]
        able = [other for other in others if all(end == other or (other, end) in self.places for end in needed)]
        return min([axis, *able], key=lambda name: self.sizes[name])

    def evaluate(self, quantities: Iterable[Named], axes: Axes, rows: str | None = None) -> None:
        """Work out formulas in order over `axes` and put each in the grid, on the fewest axes by which it differs.

        rows: the axis of which what stands on it is read whole, as a first side.
        """
        every = axes if rows is None else (*axes, rows)
        standing: dict[str, tuple[Axes, Column]] = {}
        read: dict[tuple[str, Axes], Column] = {}  # columns read once for all formulas
        for name, formula in by_name(quantities):
            for quantity in formula.inputs:
                if quantity not in standing:
                    standing[quantity] = self._find(quantity, every)
            inputs = [standing[quantity] for quantity in formula.inputs]
            stands = frozenset([own for own, _ in inputs if own])
            own = self._fewest(stands, axes, every)
            if not formula.rows and (not stands or stands == {own}):
                values = [column for _, column in inputs]
            else:
                whole = own if rows is None else (rows, *own)
                values = []
                for quantity, (stood, column) in zip(formula.inputs, inputs, strict=True):
                    wanted = whole if quantity in formula.rows else own
                    if stood and stood != wanted:
                        key = quantity, wanted
                        if key not in read:
                            read[key] = self._laid_out(stood, column, wanted)
                        column = read[key]
                    values.append(column)
            self._add(name, own, formula.function(*values))
            if standing.pop(name, None):
                read = {key: column for key, column in read.items() if key[0] != name}

    def work_out(self, *declared: Declared, program: Program | None = None) -> None:
        """Work out tables in the order given; those whose fact is missing are left out."""
        for table in declared:
            if isinstance(table, Again):
                assert program is not None
                self._work_out_again(table, program)
            elif table.where is not None and table.where not in self.columns:
                continue
            elif isinstance(table, Repeat):
                self._repeat(table)
            else:
                self.evaluate(table.quantities, table.axes, table.rows)

    def _repeat(self, repeat: Repeat) -> None:
        self.evaluate(repeat.start, repeat.axes)
        left = repeat.times
        while repeat.answer is not None and left:
            left -= self._steps_together(repeat, repeat.answer, left)
        for _ in range(left):
            self.evaluate(repeat.step, repeat.axes, repeat.rows)
            self._carry(repeat)

    def _carry(self, repeat: Repeat) -> None:
        carried = {name: self.columns[quantity][-1] for name, quantity in repeat.carry.items()}
        for name, column in carried.items():
            self.columns[name] = (*self.columns[name], column)

    def _steps_together(self, repeat: Repeat, answer: str, most: int) -> int:
        """Take some steps of a search, at most so many, and return their number: all that they may try is worked out at
        once, and then followed answer by answer."""
        axes, (tried, after) = repeat.axes, repeat.parts()
        shape = tuple(self.sizes[axis] for axis in axes)
        n_steps = min(most, max(1, int(math.log2(1 + MOST_TRIED / max(1, math.prod(shape))))))
        ahead = self.along(TRIED, {}, 2**n_steps - 1)
        ahead.put((TRIED, *axes), self._ways(repeat, answer, n_steps))
        ahead.evaluate(tried, (TRIED, *axes), repeat.rows)
        read = {name for _, formula in by_name(after) for name in formula.inputs}
        results = {name: ahead.spread(name, (TRIED, *axes)) for name, _ in by_name(tried) if name in read}
        place = numpy.zeros((1, *shape), int)
        for _ in range(n_steps):
            here = {name: numpy.take_along_axis(column, place, axis=0)[0] for name, column in results.items()}
            self.put(axes, here)
            self.evaluate(after, axes)
            self._carry(repeat)
            place = 2 * place + numpy.where(here[answer] == 1, 1, 2)
        return n_steps

    def _ways(self, repeat: Repeat, answer: str, n_steps: int) -> Columns:
        """All that so many steps of a search may read of the steps before them: first what the first step reads, and
        after the one at place n, counted from 0, the next one's at 2n + 1 where its answer is 1, and at 2n + 2."""
        read = {name for _, formula in by_name(repeat.parts()[0]) for name in formula.inputs}
        step = {name: self.spread(name, repeat.axes)[None] for name in repeat.carry if name in read}
        steps = [step]
        for _ in range(n_steps - 1):
            yes, no = (self._carried(repeat, {**step, answer: value}) for value in (1, 0))
            step = {name: numpy.stack([yes[name], no[name]], 1).reshape(-1, *step[name].shape[1:]) for name in step}
            steps.append(step)
        return {name: numpy.concatenate([step[name] for step in steps]) for name in step}

    @staticmethod
    def _carried(repeat: Repeat, values: Columns) -> Columns:
        """Of what the next step reads, all that follows from `values` alone, by the names under which it reads it."""
        for name, formula in by_name(repeat.step):
            if name not in values and all(quantity in values for quantity in formula.inputs):
                values[name] = formula.of(values)
        return {name: values[quantity] for name, quantity in repeat.carry.items() if quantity in values}

    def read_again(self, again: Again, program: Program) -> Grid:
        """A copy in which tables are read again under other values."""
        copy = replace(self, columns=dict(self.columns))
        for name, value in again.under.items():
            own, column = self.columns[value][-1] if isinstance(value, str) else ((), value)
            copy.columns[name] = (*copy.columns.get(name, ()), (own, column))
        copy.work_out(*again.tables_of(program))
        return copy

    def _work_out_again(self, again: Again, program: Program) -> None:
        copy = self.read_again(again, program)
        for name, quantity in again.keeps.items():
            self.columns[name] = (*self.columns.get(name, ()), copy.columns[quantity][-1])

    def table(self, *axes: str) -> View:
        """All columns that can be read over `axes`."""
        return View(self, axes)


@dataclass(frozen=True)
class View(Mapping[str, Column]):
    """All columns that can be read over some axes, each with every position of them."""

    grid: Grid
    axes: Axes
    _read: dict[str, tuple[Column, Column]] = field(default_factory=dict, compare=False, repr=False)

    def __getitem__(self, name: str) -> Column:
        columns = self.grid.columns.get(name)
        if name not in self._read or self._read[name][0] is not columns:
            self._read[name] = columns, self.grid.spread(name, self.axes)
        return self._read[name][1]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.grid.columns if self.grid.has(name, self.axes))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.grid.has(name, self.axes)


def evaluate(quantities: Iterable[Named], values: Mapping[str, Column]) -> Columns:
    """`values` and the results of each formula in order, by name: for work that needs no axes."""
    quantities_by_name = dict(values)
    for name, formula in by_name(quantities):
        quantities_by_name[name] = formula.of(quantities_by_name)
    return quantities_by_name
