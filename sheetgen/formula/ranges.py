"""Helpers that read a whole row: the least number, and where it stands (array formulas)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from sheetgen.formula.expr import ATOM, MULTIPLY, Expr, call, is_written, literal
from sheetgen.formula.vocabulary import choose

# Ranges: a row of numbers, with text where there is none (NaN in Python, "-" in Excel) -----------------
#
# In Excel "-" is greater than any number, NaN in Python never is: compare rows that may hold none with
# ==, < and <= only. And both() or either() over a row answers once, not cell by cell.


def cheapest(costs: Any, otherwise: Any) -> Any:
    """The least number of a row (its last axis), or `otherwise` where the row holds none.

    MIN of nothing is 0, and 0 would read as free: COUNT guards it.
    """
    if isinstance(costs, Expr):
        return call("IF", call("COUNT", costs) == 0, otherwise, call("MIN", costs))
    import numpy

    return _least(~numpy.isnan(costs), costs, otherwise)


def _least(holds: Any, values: Any, otherwise: Any) -> Any:
    import numpy

    least = numpy.where(holds, values, numpy.inf).min(axis=-1)
    return choose(numpy.isinf(least), otherwise, least)[()]


def _cell_by_cell(conditions: Iterable[Any]) -> list[str]:
    texts = [literal(c).text for c in conditions]
    for text in texts:
        if text.startswith(("AND(", "OR(")):
            raise TypeError(f"{text!r} answers once for a whole row: give its conditions one by one")
    return texts


def least_where(values: Any, *conditions: Any, otherwise: Any = 0) -> Any:
    """The least of `values` where all conditions hold, or `otherwise` where they never do (an array formula).

    The 0 of the default is what MIN gives for nothing.
    """
    if is_written((values, *conditions)):
        found = call("IF", _product(conditions), values)
        least = call("MIN", found)
        if isinstance(otherwise, Expr) or otherwise != 0:
            least = call("IF", call("COUNT", found) == 0, otherwise, least)
        return Expr(least.text, ATOM, array=True)
    import numpy

    holds = functools.reduce(numpy.logical_and, conditions)
    return _least(numpy.logical_and(holds, ~numpy.isnan(values)), values, otherwise)


def least_above_zero(costs: Any, otherwise: Any) -> Any:
    """The least number above 0 of a row without negative ones, or `otherwise` where the row holds none."""
    if isinstance(costs, Expr):
        above = call("COUNTIFS", costs, ">0")
        return call("IF", above == 0, otherwise, call("SMALL", costs, call("COUNTIFS", costs, 0) + 1))
    return _least(costs > 0, costs, otherwise)


def greatest_where(values: Any, *conditions: Any) -> Any:
    """The greatest of `values` where all conditions hold, or 0 where they never do (an array formula)."""
    if is_written((values, *conditions)):
        return Expr(call("MAX", call("IF", _product(conditions), values)).text, ATOM, array=True)
    import numpy

    holds = functools.reduce(numpy.logical_and, conditions)
    return numpy.where(numpy.logical_and(holds, ~numpy.isnan(values)), values, 0).max(axis=-1)


def first_where(*conditions: Any, otherwise: Any = 0) -> Any:
    """The position, from 1, of the first place where all hold, or `otherwise` (an array formula)."""
    if is_written(conditions):
        found = call("MATCH", 1, _product((literal(1), *conditions)), 0)
        return Expr(call("IFERROR", found, otherwise).text, ATOM, array=True)
    import numpy

    hold = functools.reduce(numpy.logical_and, conditions)
    return choose(hold.any(axis=-1), hold.argmax(axis=-1) + 1, otherwise)[()]


def count_steps(holds: Callable[..., Any], *rows: Any) -> Any:
    """For how many places of `rows` of equal length the condition `holds` is true of what stands there.

    The condition is worked out for the whole rows at once. In Excel it must be made of operators alone, as MIN, MAX,
    AND and OR answer once for a row and other functions look at its first cell. In Python the places are a first axis,
    before those that what the condition reads has.
    """
    if is_written(rows):
        return call("SUMPRODUCT", 1 * holds(*rows))
    import numpy

    n_axes = numpy.ndim(holds(*(row[0] for row in rows)))
    whole = []
    for row in rows:
        n_places, *rest = numpy.shape(row)
        whole.append(numpy.reshape(row, (n_places, *[1] * (n_axes - len(rest)), *rest)))
    return (1 * holds(*whole)).sum(axis=0)


def _product(conditions: Iterable[Any]) -> Expr:
    """Conditions multiplied, cell by cell; a leading 1 makes numbers of truth values, as MATCH needs them."""
    texts = _cell_by_cell(conditions)
    one_text = texts[0] if len(texts) == 1 else "*".join(t if t == "1" else f"({t})" for t in texts)
    return Expr(one_text, MULTIPLY)
