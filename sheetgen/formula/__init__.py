"""One formula, two readings: the same Python function computes a number or writes Excel text.

A sizing quantity is one function under `@formula`. Its name is the column's name, its parameters' names are
the quantities that it reads. Called with numbers or numpy arrays it computes; called with `Expr` objects
(cell references) its operators build the text of an Excel formula. The helpers below exist in both readings
and stay inside the Excel 2007 vocabulary.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

from sheetgen.formula.expr import (
    ATOM,
    JOIN,
    MULTIPLY,
    Expr,
    Formula,
    Quantity,
    call,
    formula,
    inside,
    is_array,
    is_written,
    literal,
)
from sheetgen.units import PERCENT, PLAIN

__all__ = [
    "Expr", "Formula", "Quantity", "both", "cheapest", "count_steps", "either", "fading", "first_where", "formula",
    "greatest_where", "is_number", "is_text", "join_text", "largest", "least_above_zero", "least_where", "literal",
    "number_or_none", "number_where", "percent_text", "power", "ratio", "remainder", "round_down", "round_nearest",
    "round_up", "same_money", "smallest", "where", "whole_text",
]  # fmt: skip


def where(condition: Any, then: Any, otherwise: Any) -> Any:
    """`then` where `condition` holds, else `otherwise`. Both are evaluated: guard a division with ratio()."""
    if is_written((condition, then, otherwise)):
        return call("IF", condition, then, otherwise)
    if is_array((condition, then, otherwise)):
        return choose(condition, then, otherwise)
    return then if condition else otherwise


def choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """numpy.where, but numbers beside a text stay numbers."""
    import numpy

    then, otherwise = numpy.asarray(then), numpy.asarray(otherwise)
    if (then.dtype.kind in "US") != (otherwise.dtype.kind in "US"):
        then, otherwise = then.astype(object), otherwise.astype(object)
    return numpy.where(condition, then, otherwise)


def _fold(name: str, numpy_name: str, plain: Callable[..., Any], *values: Any) -> Any:
    if is_written(values):
        return call(name, *values)
    if is_array(values):
        import numpy

        return functools.reduce(getattr(numpy, numpy_name), values)
    return plain(values)


smallest = functools.partial(_fold, "MIN", "minimum", min)
largest = functools.partial(_fold, "MAX", "maximum", max)
both = functools.partial(_fold, "AND", "logical_and", all)  # true where all hold
either = functools.partial(_fold, "OR", "logical_or", any)  # true where at least one holds


def round_up(x: Any) -> Any:
    """The next whole number at or above `x` (x >= 0: ROUNDUP moves away from zero).

    A spreadsheet takes 3.0000000000000004 for 3 here, and so do we: quotients of whole bytes that are not
    whole lie further than 1e-12 from a whole number.
    """
    if isinstance(x, Expr):
        return call("ROUNDUP", x, 0)
    if is_array((x,)):
        import numpy

        near = numpy.round(x)
        if near.dtype.kind == "f" and (near == x).all():
            return near
        return numpy.where(abs(x - near) <= 1e-12 * abs(near), near, numpy.ceil(x))
    if x != x:
        return x
    nearest = round(x)
    return nearest if abs(x - nearest) <= 1e-12 * abs(nearest) else math.ceil(x)


def round_down(x: Any) -> Any:
    """The next whole number at or below `x`."""
    if isinstance(x, Expr):
        return call("INT", x)
    if is_array((x,)):
        import numpy

        return numpy.floor(x)
    return x if x != x else math.floor(x)


def round_nearest(x: Any) -> Any:
    """The whole number nearest to `x` (x >= 0)."""
    return call("ROUND", x, 0) if isinstance(x, Expr) else round_down(x + 0.5)


def number_or_none(x: Any) -> Any:
    """`x`, or none where it reads none: NaN in Python, "-" in Excel, where arithmetic on "-" is an error."""
    return call("IFERROR", x, "-") if isinstance(x, Expr) else x


def ratio(x: Any, n: Any, otherwise: Any = 0) -> Any:
    """x / n, or `otherwise` where n is 0: the one guarded division, lazy in both readings."""
    if is_written((x, n, otherwise)):
        return call("IF", literal(n) == 0, otherwise, literal(x) / n)
    if is_array((x, n, otherwise)):
        import numpy

        safe = numpy.where(numpy.equal(n, 0), 1, n)
        return choose(numpy.equal(n, 0), otherwise, x / safe)
    return otherwise if n == 0 else x / n


def remainder(x: Any, n: Any) -> Any:
    """x modulo n, for x >= 0 and n > 0."""
    return call("MOD", x, n) if is_written((x, n)) else x % n


def same_money(x: Any, y: Any) -> Any:
    """x = y as a spreadsheet compares: in some 15 digits, so that 3 x $0.70 ties with 1 x $2.10."""
    if is_written((x, y)):
        return literal(x) == y
    import numpy

    return numpy.isclose(x, y, rtol=1e-12, atol=0)


def is_number(x: Any) -> Any:
    """True for a number; false for text or a blank (NaN or None in Python)."""
    if isinstance(x, Expr):
        return call("ISNUMBER", x)
    if is_array((x,)):
        import numpy

        return ~numpy.isnan(x)
    return isinstance(x, (int, float)) and x == x


def is_text(x: Any) -> Any:
    """True for a text that is not empty: in a spreadsheet every text is greater than every number or blank."""
    return x > "" if isinstance(x, Expr) else isinstance(x, str) and x > ""


def number_where(condition: Any, value: Any) -> Any:
    """`value` where `condition` holds, else none: NaN in Python, "-" in Excel."""
    return where(condition, value, "-" if is_written((condition, value)) else math.nan)


def join_text(*parts: Any) -> Any:
    """Text and whole numbers put together (&)."""
    if is_written(parts):
        parts = parts if len(parts) > 1 else (*parts, "")  # one number alone becomes a text, too
        text = "&".join(inside(p, JOIN) for p in parts)
        return Expr(text, JOIN, any(literal(p).array for p in parts))
    return "".join(_as_text(p) for p in parts)


def _as_text(x: Any) -> str:
    if isinstance(x, float):
        return "-" if x != x else str(int(x)) if x == int(x) else str(x)
    return str(x)


def percent_text(x: Any) -> Any:
    """A share as text in whole percent (TEXT with a format that every locale reads alike)."""
    return call("TEXT", x, "0%") if isinstance(x, Expr) else PERCENT.text(x)


def whole_text(x: Any) -> Any:
    """A number as text, rounded to a whole one (TEXT with a format that every locale reads alike)."""
    return call("TEXT", x, "0") if isinstance(x, Expr) else PLAIN.text(x)


def fading(share: Any, times: Any) -> Any:
    """A share taken so many times: 0 where that is too little for a number, which LibreOffice calls an error."""
    if is_written((share, times)):
        return call("IFERROR", call("POWER", share, times), 0)
    import numpy

    with numpy.errstate(under="ignore"):
        return power(share, times)


def power(base: Any, exponent: Any) -> Any:
    """base to the exponent, for base > 0. (`^` is left out: Excel reads -3^2 as 9.)"""
    return call("POWER", base, exponent) if is_written((base, exponent)) else (base * 1.0) ** exponent


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
    texts = [literal(c).text for c in conditions]
    for text in texts:
        if text.startswith(("AND(", "OR(")):
            raise TypeError(f"{text!r} answers once for a whole row: give its conditions one by one")
    one_text = texts[0] if len(texts) == 1 else "*".join(t if t == "1" else f"({t})" for t in texts)
    return Expr(one_text, MULTIPLY)
