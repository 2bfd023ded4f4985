"""Look-ups and counts of cells, each defined once: the value, and the tree that a spreadsheet evaluates."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable

from sheetgen.book.sheets import NONE, CellValue, Lookup, Range, Ref, Source, derived, number, place_of, plain
from sheetgen.formula import Expr, Value, function, where
from sheetgen.formula.tree import literal


def constant(value: CellValue) -> Lookup:
    """A constant, to be read as a cell is."""
    return Lookup(value, lambda here: literal(value))


ZERO, ONE, NO_VALUE = constant(0), constant(1), constant(NONE)


def written(value: CellValue, tree: Callable[..., Value], *read: Source) -> Lookup:
    """A known value and its formula: the tree that `tree` makes of the cells that it reads."""
    return Lookup(value, lambda here: tree(*(source.expr(here) for source in read)))


def call(name: str) -> Callable[..., Expr]:
    """A function of Excel as a maker of trees."""
    return lambda *arguments: function(name, *arguments)


def position_in(refs: Range, key: Ref | Lookup, otherwise: Source | None = None) -> Lookup:
    """The position of a key in a range, from 1; `otherwise` where the range lacks it."""
    place = place_of(refs, key.value)
    if otherwise is None:
        return written(place, lambda key, refs: function("MATCH", key, refs, 0), key, refs)
    return written(
        otherwise.value if place is None else place,
        lambda key, refs, none: function("IFERROR", function("MATCH", key, refs, 0), none),
        *(key, refs, otherwise),
    )


def position_or_after(refs: Range, key: Ref | Lookup) -> Lookup:
    """The position of a key in a range, from 1; one past the last where the range lacks it."""
    return position_in(refs, key, derived(lambda n_filled: 1 + n_filled, count_filled(refs)))


def entry_of(held: Range, refs: Range, key: Ref | Lookup, otherwise: Source) -> Lookup:
    """The entry of `held` beside a key in `refs`; `otherwise` where `refs` lacks the key."""
    place = place_of(refs, key.value)
    value = otherwise.value if place is None else held.refs[place - 1].value or 0

    def tree(held: Expr, refs: Expr, key: Expr, none: Expr) -> Expr:
        return function("IFERROR", function("INDEX", held, function("MATCH", key, refs, 0)), none)

    if len(refs.refs) == 1:  # Gnumeric finds nothing in a range of one cell
        return written(value, lambda held, refs, key, none: where(key == refs, held, none), held, refs, key, otherwise)
    return written(value, tree, held, refs, key, otherwise)


def element(value: CellValue, block: Range, row: Source, column: Source) -> Lookup:
    """The entry of a block at a row and a column, by their positions."""
    return written(value, call("INDEX"), block, row, column)


def _numbers(areas: Iterable[Range]) -> list[CellValue]:
    values = [ref.value for area in areas for ref in area.refs]
    return [number(value) for value in values if isinstance(value, int | float | datetime.date) and value == value]


def count_numbers(*areas: Range) -> Lookup:
    """The number of cells that hold numbers."""
    return written(len(_numbers(areas)), call("COUNT"), *areas)


def count_filled(area: Range) -> Lookup:
    """The number of cells that are not blank."""
    return written(sum(ref.value is not None for ref in area.refs), call("COUNTA"), area)


def count_of(area: Range, criterion: str) -> Lookup:
    """The number of cells that hold a word."""
    n_held = sum(str(ref.value) == criterion for ref in area.refs)
    return written(n_held, lambda area: function("COUNTIFS", area, criterion), area)


def total(area: Range) -> Lookup:
    """The sum of the numbers of a range."""
    return written(plain(sum(_numbers([area]))), call("SUM"), area)


def least(area: Range) -> Lookup:
    """The least number of a range; 0 where it has none."""
    return written(min(_numbers([area]), default=0), call("MIN"), area)


def greatest(area: Range) -> Lookup:
    """The greatest number of a range; 0 where it has none."""
    return written(max(_numbers([area]), default=0), call("MAX"), area)
