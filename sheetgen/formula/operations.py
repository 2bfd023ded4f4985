"""The operations of formulas, each with its readings: numbers and numpy arrays, Excel text, JavaScript.

What an operation computes is the decorated function; how it is written stands in the decorator. JavaScript names a
function of sheetgen/program/runtime.js.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy

from sheetgen.formula.excel import ADD, COMPARE, MULTIPLY, Part, Text, call, equal, infix, join, over_rows, product
from sheetgen.formula.tree import Value, is_written, operation
from sheetgen.units import PERCENT, PLAIN, TWO_DECIMALS, WHOLE


@functools.cache
def _is_array_type(kind: type) -> bool:
    return hasattr(kind, "__array__")


def is_array(values: Iterable[Value]) -> bool:
    return any(map(_is_array_type, map(type, values)))


def _function(name: str, *more: Part) -> Callable[..., Text]:
    """How a function of Excel's is written, with constants after its arguments."""
    return lambda *arguments: call(name, *arguments, *more)


# Choices -----------------------------------------------------------------------------------------------------


@operation(_function("IF"), "?")
def where(condition: Value, then: Value, otherwise: Value) -> Value:
    """`then` where `condition` holds, else `otherwise`. Both are evaluated: guard a division with ratio()."""
    if is_array((condition, then, otherwise)):
        return choose(condition, then, otherwise)
    return then if condition else otherwise


def choose(condition: Value, then: Value, otherwise: Value) -> Value:
    """numpy.where, but numbers beside a text stay numbers."""
    if _is_text(then) != _is_text(otherwise):
        then, otherwise = (numpy.asarray(values, object) for values in (then, otherwise))
    return numpy.where(condition, then, otherwise)


def _is_text(value: Value) -> bool:
    dtype = getattr(value, "dtype", None)
    return isinstance(value, str) if dtype is None else dtype.kind in "US"


def _none(holds: Value) -> bool:
    """True where a condition holds nowhere: numpy counts in less time than it looks whether any holds."""
    return not numpy.count_nonzero(holds)


@operation(lambda condition, value: call("IF", condition, value, "-"), "?")
def number_where(condition: Value, value: Value) -> Value:
    """`value` where `condition` holds, else none: NaN in Python and JavaScript, "-" in Excel."""
    return where(condition, value, math.nan)


def where_number(x: Value, then: Callable[[], Value], otherwise: Value) -> Value:
    """The result of `then` where `x`, a number or a tree, is a number; else `otherwise`, where "-" stands for none."""
    holds = is_number(x)
    if is_written((x,)):
        return number_where(holds, then()) if otherwise == "-" else where(holds, then(), otherwise)
    return then() if holds else math.nan if otherwise == "-" else otherwise


@operation(lambda x: call("IFERROR", x, "-"), "")
def number_or_none(x: Value) -> Value:
    """`x`, or none where it is none: NaN in Python, "-" in Excel, where arithmetic on "-" is an error."""
    return x


def _fold(of_arrays: numpy.ufunc, plain: Callable[..., Value], values: tuple[Value, ...]) -> Value:
    return functools.reduce(of_arrays, values) if is_array(values) else plain(values)


@operation(_function("MIN"), "Math.min")
def smallest(*values: Value) -> Value:
    return _fold(numpy.minimum, min, values)


@operation(_function("MAX"), "Math.max")
def largest(*values: Value) -> Value:
    return _fold(numpy.maximum, max, values)


@operation(_function("AND"), "&&")
def both(*conditions: Value) -> Value:
    """True where all hold."""
    return _fold(numpy.logical_and, all, conditions)


@operation(_function("OR"), "||")
def either(*conditions: Value) -> Value:
    """True where at least one holds."""
    return _fold(numpy.logical_or, any, conditions)


# Numbers -----------------------------------------------------------------------------------------------------


@operation(_function("ROUNDUP", 0), "roundUp")
def round_up(x: Value) -> Value:
    """The next whole number at or above `x` (x >= 0: ROUNDUP moves away from zero).

    A spreadsheet takes 3.0000000000000004 for 3 here, and so do we: quotients of whole bytes that are not
    whole lie further than 1e-12 from a whole number.
    """
    if is_array((x,)):
        near = numpy.rint(x)
        if _none(near != x):
            return near
        return numpy.where(abs(x - near) <= 1e-12 * abs(near), near, numpy.ceil(x))
    if x != x:
        return x
    nearest = round(x)
    return nearest if abs(x - nearest) <= 1e-12 * abs(nearest) else math.ceil(x)


@operation(_function("INT"), "Math.floor")
def round_down(x: Value) -> Value:
    """The next whole number at or below `x`."""
    if is_array((x,)):
        return numpy.floor(x)
    return x if x != x else math.floor(x)


@operation(_function("ROUND"), "roundNearest")
def round_nearest(x: Value, decimals: int = 0) -> Value:
    """`x` (x >= 0) rounded to the nearest whole number, or to so many decimals."""
    return round_down(x * 10**decimals + 0.5) / 10**decimals if decimals else round_down(x + 0.5)


@operation(lambda x, n, otherwise: call("IF", equal(n, 0), otherwise, infix(x, "/", n, MULTIPLY)), "ratioOr")
def ratio(x: Value, n: Value, otherwise: Value = 0) -> Value:
    """x / n, or `otherwise` where n is 0: the one guarded division, lazy in all readings."""
    if is_array((x, n, otherwise)):
        is_none = numpy.equal(n, 0)
        if type(otherwise) in (int, float) and _none(is_none):
            return x / n
        return choose(is_none, otherwise, x / numpy.where(is_none, 1, n))
    return otherwise if n == 0 else x / n


@operation(_function("MOD"), "remainderOf")
def remainder(x: Value, n: Value) -> Value:
    """x modulo n, for x >= 0 and n > 0."""
    return x % n


@operation(_function("POWER"), "powerOf")
def power(base: Value, exponent: Value) -> Value:
    """base to the exponent, for base > 0. (`^` is left out: Excel reads -3^2 as 9.)"""
    return (base * 1.0) ** exponent


@operation(lambda share, times: call("IFERROR", call("POWER", share, times), 0), "powerOf")
def fading(share: Value, times: Value) -> Value:
    """A share to the power of a count: 0 where the result is too small for a number, which LibreOffice calls an
    error."""
    with numpy.errstate(under="ignore"):
        return power(share, times)


@operation(_function("LN"), "Math.log")
def natural_log(x: Value) -> Value:
    """The natural logarithm of `x` > 0."""
    return numpy.log(x) if is_array((x,)) else math.log(x)


@operation(_function("EXP"), "Math.exp")
def exponential(x: Value) -> Value:
    """e to the power of `x`."""
    return numpy.exp(x) if is_array((x,)) else math.exp(x)


@operation(_function("NORMSDIST"), "normalShare")
def normal_share(z: Value) -> Value:
    """The share of a normal distribution below `z` standard deviations."""
    if is_array((z,)):
        return numpy.reshape([normal_share(quantile) for quantile in numpy.ravel(z).tolist()], numpy.shape(z))
    return math.erfc(-z / math.sqrt(2)) / 2


@operation(_function("NORMSINV"), "normalQuantile")
def normal_quantile(share: Value) -> Value:
    """The number of standard deviations below which that share of a normal distribution lies; NaN unless 0 < share < 1.
    For numbers only, not for columns."""
    from statistics import NormalDist  # which most commands do without

    return NormalDist().inv_cdf(share) if 0 < share < 1 else math.nan


@operation(_function("NORMDIST", 0, 1, False), "normalDensity")
def normal_density(z: Value) -> Value:
    """The density of a normal distribution at `z` standard deviations. For numbers only, not for columns."""
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


# Comparisons -------------------------------------------------------------------------------------------------


@operation(equal, "isSameMoney")
def same_money(x: Value, y: Value) -> Value:
    """x = y as a spreadsheet compares: in some 15 digits, so that 3 x $0.70 ties with 1 x $2.10."""
    if is_array((x, y)):
        with numpy.errstate(invalid="ignore"):  # for inf - inf; numpy.isclose takes nine times as long
            return (x == y) | (abs(x - y) <= 1e-12 * numpy.minimum(abs(x), abs(y)))
    return math.isclose(x, y, rel_tol=1e-12)


def _at_most(x: Part, y: Part) -> Text:
    less, same = (infix(1, "*", infix(x, sign, y, COMPARE), MULTIPLY) for sign in "<=")
    return infix(infix(less, "+", same, ADD), ">", 0, COMPARE)  # no OR: it answers once for a row


@operation(_at_most, "isAtMost")
def at_most(x: Value, y: Value) -> Value:
    """x <= y as a spreadsheet compares: what is the same in some 15 digits is not above."""
    return (x < y) | same_money(x, y)


@operation(_function("ISNUMBER"), "isNumber")
def is_number(x: Value) -> Value:
    """True for a number; false for text or a blank (NaN or None in Python)."""
    if is_array((x,)):
        return ~numpy.isnan(x)
    return isinstance(x, (int, float)) and x == x


@operation(lambda row: infix(row, "<=", call("MAX", row), COMPARE), "isNumber")
def is_number_in_row(row: Value) -> Value:
    """is_number() of the cells of a row: a text is greater than every number, so greater than the row's largest."""
    return is_number(row)


@operation(lambda x: infix(x, ">", "", COMPARE), "isText")
def is_text(x: Value) -> Value:
    """True for a text that is not empty: in a spreadsheet every text is greater than every number or blank."""
    return isinstance(x, str) and x > ""


@operation(lambda x: equal(x, ""), "isBlank")
def is_blank(x: Value) -> Value:
    """True for a number that was left blank, which is none in Python."""
    return x != x


# Text --------------------------------------------------------------------------------------------------------


@operation(lambda *parts: join(parts), "joinText")
def join_text(*parts: Value) -> Value:
    """Text and whole numbers put together (&)."""
    return "".join(map(_as_text, parts))


@operation(_function("SUBSTITUTE"), "replaceText")
def replace_text(x: Value, old: str, new: str) -> Value:
    """A text with every `old` in it replaced."""
    return _as_text(x).replace(old, new)


def _as_text(x: Value) -> str:
    if isinstance(x, float):
        return "-" if x != x else str(int(x)) if x == int(x) else str(x)
    return str(x)


@operation(_function("TEXT", "0%"), "percentText")
def percent_text(x: Value) -> Value:
    """A share as text in whole percent (TEXT with a format that every locale reads alike)."""
    return PERCENT.text(x)


@operation(_function("TEXT", "0"), "wholeText")
def whole_text(x: Value) -> Value:
    """A number as text, rounded to a whole one (TEXT with a format that every locale reads alike)."""
    return PLAIN.text(x)


@operation(_function("FIXED", 0), "groupedText")
def grouped_text(x: Value) -> Value:
    """The same with its digits grouped as in the reader's locale."""
    return WHOLE.text(x)


@operation(_function("FIXED", 2), "hundredthsText")
def hundredths_text(x: Value) -> Value:
    """A number as text with two decimals: joined to a text as it is, Gnumeric would write twenty of 0.27."""
    return TWO_DECIMALS.text(x)


# Ranges: a row of numbers, with text where there is none (NaN in Python, "-" in Excel) -----------------------
#
# In Excel "-" is greater than any number, NaN in Python never is: compare rows that may hold none with
# ==, < and <= only. And both() or either() over a row answers once, not cell by cell.


def _least(holds: Value, values: Value, otherwise: Value) -> Value:
    least = numpy.where(holds, values, numpy.inf).min(axis=0)
    return choose(numpy.isinf(least), otherwise, least)[()]


def _or_otherwise(least: Text, values: Part, otherwise: Part) -> Text:
    return call("IF", equal(call("COUNT", values), 0), otherwise, least)


@operation(lambda row, otherwise: _or_otherwise(call("MIN", row), row, otherwise), "leastNumber", rows=True, n_values=1)
def least_number(row: Value, *, otherwise: Value) -> Value:
    """The least number of a row (its first axis), or `otherwise` where the row holds none.

    MIN of nothing is 0, and 0 would read as free: COUNT guards it.
    """
    return _least(~numpy.isnan(row), row, otherwise)


def _least_where(values: Text, *conditions: Text, otherwise: Text) -> Text:
    held = call("IF", product(conditions), values)
    least = call("MIN", held)
    return over_rows(least if otherwise.text == "0" else _or_otherwise(least, held, otherwise))


@operation(_least_where, "leastWhere", rows=True, n_values=1)
def least_where(values: Value, *conditions: Value, otherwise: Value = 0) -> Value:
    """The least of `values` where all conditions hold, or `otherwise` where they never do (an array formula).

    The 0 of the default is what MIN gives for nothing; "-" is no number, NaN in Python.
    """
    holds = functools.reduce(numpy.logical_and, conditions)
    none = numpy.nan if isinstance(otherwise, str) else otherwise
    return _least(numpy.logical_and(holds, ~numpy.isnan(values)), values, none)


def _greatest_where(values: Text, *conditions: Text) -> Text:
    return over_rows(call("MAX", call("IF", product(conditions), values)))


@operation(_greatest_where, "greatestWhere", rows=True, n_values=1)
def greatest_where(values: Value, *conditions: Value) -> Value:
    """The greatest of `values` where all conditions hold, or 0 where they never do (an array formula)."""
    holds = functools.reduce(numpy.logical_and, conditions)
    return numpy.where(numpy.logical_and(holds, ~numpy.isnan(values)), values, 0).max(axis=0)


def _first_where(*conditions: Text, otherwise: Text) -> Text:
    return over_rows(call("IFERROR", call("MATCH", 1, product((Text("1"), *conditions)), 0), otherwise))


@operation(_first_where, "firstWhere", rows=True)
def first_where(*conditions: Value, otherwise: Value = 0) -> Value:
    """The position, from 1, of the first place where all hold, or `otherwise` (an array formula)."""
    hold = functools.reduce(numpy.logical_and, conditions)
    return choose(hold.any(axis=0), hold.argmax(axis=0) + 1, otherwise)[()]


@operation(lambda condition: call("SUMPRODUCT", infix(1, "*", condition, MULTIPLY)), "countWhere", rows=True)
def count_where(condition: Value) -> Value:
    """The number of places of a row (its first axis) where the condition holds."""
    return (1 * condition).sum(axis=0)


def count_of_places(holds: Callable[..., Value], *rows: Value) -> Value:
    """The number of places of `rows` of equal length for which `holds` is true.

    The condition is worked out for the whole rows at once. In Excel it must be made of operators alone, as MIN, MAX,
    AND and OR answer once for a row and other functions look at its first cell. In Python the places are a first axis,
    before those that what the condition reads has.
    """
    return count_where(holds(*(rows if is_written(rows) else _as_first_axis(holds, rows))))


def count_steps(holds: Callable[..., Value], *rows: Value) -> Value:
    """The number of places of `rows` for which `holds` is true, where it is true for none after the first that it is
    not true for. Else as in `count_of_places`.

    Python tries the last place of each of some equal parts of the rows, then the places of the part where `holds` ends:
    of 64 places it tries 16.
    """
    if is_written(rows):
        return count_of_places(holds, *rows)
    whole = _as_first_axis(holds, rows)
    n_places = len(rows[0])
    length = math.isqrt(n_places)
    begun = length * count_where(holds(*(row[length - 1 :: length] for row in whole)))
    places = numpy.minimum(begun + numpy.arange(length).reshape(-1, *[1] * numpy.ndim(begun)), n_places - 1)
    rest = (
        numpy.take_along_axis(numpy.broadcast_to(row, (n_places, *places.shape[1:])), places, axis=0) for row in whole
    )
    return smallest(begun + count_where(holds(*rest)), n_places)


def greatest_of_places(values: Value, holds: Callable[..., Value], *rows: Value) -> Value:
    """The greatest of `values` at the places of `rows` for which `holds` is true; 0 where it is true for none. `rows`
    and `holds` are as in `count_of_places`."""
    if is_written((values, *rows)):
        return greatest_where(values, holds(*rows))
    whole, *places = _as_first_axis(lambda _, *of_place: holds(*of_place), (values, *rows))
    return greatest_where(whole, holds(*places))


def _as_first_axis(holds: Callable[..., Value], rows: Sequence[Value]) -> list[Value]:
    """Each row reshaped so that its places are the first axis, before the axes of the result of `holds` for one
    place."""
    n_axes = numpy.ndim(holds(*(row[0] for row in rows)))
    whole = []
    for row in rows:
        n_places, *rest = numpy.shape(row)
        whole.append(numpy.reshape(row, (n_places, *[1] * (n_axes - len(rest)), *rest)))
    return whole
