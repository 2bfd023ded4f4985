"""A column that has one value in all rows of a group: what follows from such columns is worked out once a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy
from numpy.lib.mixins import NDArrayOperatorsMixin

# Functions that read their columns row by row, and so group by group.
ROW_BY_ROW = {numpy.where, numpy.round, numpy.select, numpy.choose, numpy.zeros_like, numpy.full_like}
MANY_ROWS = 1000  # from here on it pays to import pandas


class Grouped(NDArrayOperatorsMixin):
    """Reads as the array of its rows. Beside a column that has a value of its own in each row it is spread over them.

    values: one for each group. group: of each row, the same array in all columns that meet.
    """

    def __init__(self, values: Any, group: Any) -> None:
        self.values, self.group = values, group
        self.dtype, self.ndim = values.dtype, 1

    @cached_property
    def rows(self) -> Any:
        return self.values[self.group]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return numpy.asarray(self.rows, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        options |= {"out": out} if any(type(one) is not Grouped for one in out) else {}
        return _read(getattr(ufunc, method), inputs, options, method == "__call__")

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        return _read(function, inputs, options, function in ROW_BY_ROW)

    def __len__(self) -> int:
        return len(self.group)

    def __getitem__(self, rows: Any) -> Any:
        return self.values[self.group[rows]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def any(self) -> bool:
        return bool(self.values.any())

    def all(self) -> bool:
        return bool(self.values.all())

    def astype(self, dtype: Any) -> Grouped:
        return Grouped(self.values.astype(dtype), self.group)


def once_a_group(function: Callable[[dict[str, Any]], Any], columns: Mapping[str, Any]) -> Any:
    """The column that `function` makes of columns, of their groups alone where all of them have the same groups."""
    return _read(lambda *read: function(dict(zip(columns, read, strict=True))), tuple(columns.values()), {}, True)


def _read(function: Any, inputs: tuple[Any, ...], options: dict[str, Any], row_by_row: bool) -> Any:
    group, spread = None, not row_by_row or bool(options)
    stack = list(inputs)
    for one in stack:
        if type(one) is Grouped:
            group = one.group
        elif type(one) in (list, tuple):
            stack += one
        elif getattr(one, "ndim", 0):
            spread = True

    def read(one: Any) -> Any:
        if type(one) is Grouped:
            return one.rows if spread else one.values
        return [read(each) for each in one] if type(one) in (list, tuple) else one

    found = function(*map(read, inputs), **options)
    return found if spread or group is None else Grouped(found, group)


def factorized(column: Any) -> tuple[Any, Any]:
    """Which of its different values a column has in each row, and these, in the order in which they come."""
    if len(column) > MANY_ROWS and getattr(column, "dtype", None) in (object, int):
        import pandas

        return pandas.factorize(column, use_na_sentinel=False)
    column = column.tolist() if isinstance(column, numpy.ndarray) else list(column)
    places = {value: i for i, value in enumerate(dict.fromkeys(column))}
    return numpy.fromiter(map(places.__getitem__, column), int, len(column)), list(places)
