"""One formula, two readings: the same Python function computes a number or writes Excel text.

A sizing quantity is one function under `@formula`. Its name is the column's name, its parameters' names are
the quantities that it reads. Called with numbers or numpy arrays it computes; called with `Expr` objects
(cell references) its operators build the text of an Excel formula. The helpers below exist in both readings
and stay inside the Excel 2007 vocabulary.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

import numpy

from sheetgen.units import PERCENT, PLAIN, WHOLE, Display

COMPARE, JOIN, ADD, MULTIPLY, SIGN, ATOM = range(6)


def _operator(sign: str, binding: int) -> Callable[[Expr, Any], Expr]:
    return lambda left, right: _infix(left, sign, right, binding)


def _reflected(sign: str, binding: int) -> Callable[[Expr, Any], Expr]:
    return lambda right, left: _infix(left, sign, right, binding)


class Expr:
    """A piece of Excel text that knows how tightly it binds. `array` marks text that needs `{=...}`."""

    __slots__ = ("array", "binding", "text")
    __array_ufunc__ = None  # numpy arrays leave the operator to us
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, text: str, binding: int = ATOM, array: bool = False) -> None:
        self.text = text
        self.binding = binding
        self.array = array

    def __bool__(self) -> bool:
        raise TypeError(f"a formula cannot branch on {self.text!r} with if, and, or, min, max: use where()")

    def __repr__(self) -> str:
        return f"Expr({self.text!r})"

    def __neg__(self) -> Expr:
        return Expr("-" + inside(self, SIGN), SIGN, self.array)

    __add__, __radd__ = _operator("+", ADD), _reflected("+", ADD)
    __sub__, __rsub__ = _operator("-", ADD), _reflected("-", ADD)
    __mul__, __rmul__ = _operator("*", MULTIPLY), _reflected("*", MULTIPLY)
    __truediv__, __rtruediv__ = _operator("/", MULTIPLY), _reflected("/", MULTIPLY)
    __eq__ = _operator("=", COMPARE)  # type: ignore[assignment]
    __ne__ = _operator("<>", COMPARE)  # type: ignore[assignment]
    __lt__, __le__ = _operator("<", COMPARE), _operator("<=", COMPARE)
    __gt__, __ge__ = _operator(">", COMPARE), _operator(">=", COMPARE)


# What a formula reads and gives: a number, a column of them, or a reference that is written out.
Quantity: TypeAlias = "float | numpy.ndarray[Any, Any] | Expr"


def literal(value: Any) -> Expr:
    """A constant as Excel text: text quoted, truth values named, numbers without an exponent."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        return Expr("TRUE" if value else "FALSE")
    if isinstance(value, str):
        return Expr('"' + value.replace('"', '""') + '"')
    if isinstance(value, (int, float)) and math.isfinite(value):
        text = f"{Decimal(repr(float(value) if isinstance(value, float) else value)).normalize():f}"
        return Expr(text, SIGN if text.startswith("-") else ATOM)
    raise TypeError(f"{value!r} cannot stand in a formula")


def inside(value: Any, outer: int) -> str:
    """`value`'s text, in brackets where it binds no tighter than `outer`."""
    expr = literal(value)
    return expr.text if expr.binding > outer else f"({expr.text})"


def _infix(left: Any, sign: str, right: Any, binding: int) -> Expr:
    # The left operand may bind as tightly (a-b-c); the right one may not: a-(b-c); a+(b+c) keeps its order.
    a, b = literal(left), literal(right)
    left_text = a.text if a.binding >= binding and binding != COMPARE else inside(a, binding)
    return Expr(f"{left_text}{sign}{inside(b, binding)}", binding, a.array or b.array)


def call(name: str, *arguments: Any) -> Expr:
    parts = [literal(a) for a in arguments]
    return Expr(f"{name}({','.join(p.text for p in parts)})", ATOM, any(p.array for p in parts))


def is_written(values: Iterable[Any]) -> bool:
    return Expr in map(type, values)


@functools.cache
def _is_array_type(kind: type) -> bool:
    return hasattr(kind, "__array__")


def is_array(values: Iterable[Any]) -> bool:
    return any(map(_is_array_type, map(type, values)))


@dataclass(frozen=True)
class Formula:
    """A documented sizing quantity: a function, and what a reader needs to know of its result."""

    name: str
    label: str
    display: Display
    inputs: tuple[str, ...]
    function: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def of(self, values: Mapping[str, Any]) -> Any:
        """This formula read with `values`, which hold its inputs by name (numbers, columns or `Expr`)."""
        try:
            arguments = [values[name] for name in self.inputs]
        except KeyError as error:
            missing = next(name for name in self.inputs if name not in values)
            raise KeyError(f"formula {self.name!r} reads {missing!r}, which nothing provides") from error
        return self.function(*arguments)

    def with_parts(self, parts: Iterable[Formula], first: bool = False) -> Formula:
        """The same formula, working out within itself those of `parts` which it reads: it reads their inputs, in the
        places of the parts or, where `first`, before all else."""
        inner = {part.name: part for part in parts if part.name in self.inputs}
        if not inner:
            return self
        own = dict.fromkeys((*inner, *self.inputs) if first else self.inputs)
        read = (inner[name].inputs if name in inner else (name,) for name in own)
        inputs = tuple(dict.fromkeys(itertools.chain.from_iterable(read)))

        @functools.wraps(self.function)
        def function(*args: Any) -> Any:
            values = dict(zip(inputs, args, strict=True))
            return self.of(values | {name: part.of(values) for name, part in inner.items()})

        return replace(self, inputs=inputs, function=function)

    def reading(self, **quantities: str) -> Formula:
        """The same formula of other quantities: by the name of an input, what is read in its place."""
        unknown = quantities.keys() - set(self.inputs)
        if unknown:
            raise KeyError(f"formula {self.name!r} does not read {', '.join(sorted(unknown))}")
        return replace(self, inputs=tuple(quantities.get(name, name) for name in self.inputs))

    @functools.cached_property
    def _template(self) -> Expr:
        """The Excel text with each input's name in braces: the same for every cell, so written once."""
        text: Expr = self.function(*(Expr(f"{{{name}}}") for name in self.inputs))
        return text

    def written(self, texts: Mapping[str, Expr]) -> Expr:
        """The Excel text with `texts` put in for the inputs."""
        inside = {name: e.text if e.binding == ATOM else f"({e.text})" for name, e in texts.items()}
        return Expr(self._template.text.format_map(inside), self._template.binding, self._template.array)

    @property
    def documentation(self) -> str:
        """The docstring, for header notes and `explain`."""
        return textwrap.dedent(inspect.getdoc(self.function) or "").strip()

    @property
    def summary(self) -> str:
        """The docstring's first sentence."""
        return self.documentation.split("\n\n")[0].replace("\n", " ")

    @property
    def source(self) -> str:
        """What the docstring names as its source."""
        lines = self.documentation.replace("\n    ", " ").splitlines()
        return next((x.removeprefix("Source:").strip() for x in lines if x.startswith("Source:")), "")


def formula(
    label: str, display: Display = WHOLE, *, within: Iterable[Formula] = (), passed_on: Iterable[str] = ()
) -> Callable[[Callable[..., Any]], Formula]:
    """Make a function a `Formula`: its name is the column's name, its parameters' names are its inputs.

    within: formulas that it works out within itself, where it reads them. passed_on: inputs that it hands by name to
    another formula, as its `**known`.
    """

    def wrap(function: Callable[..., Any]) -> Formula:
        parameters = inspect.signature(function).parameters.values()
        inputs = (*passed_on, *(one.name for one in parameters if one.kind is not one.VAR_KEYWORD))

        @functools.wraps(function)
        def by_name(*args: Any) -> Any:
            return function(**dict(zip(inputs, args, strict=True)))

        return Formula(function.__name__, label, display, inputs, by_name if passed_on else function).with_parts(within)

    return wrap


# Helpers that read both ways -----------------------------------------------------------------------------


def where(condition: Any, then: Any, otherwise: Any) -> Any:
    """`then` where `condition` holds, else `otherwise`. Both are evaluated: guard a division with ratio()."""
    if is_written((condition, then, otherwise)):
        return call("IF", condition, then, otherwise)
    if is_array((condition, then, otherwise)):
        return choose(condition, then, otherwise)
    return then if condition else otherwise


def choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """numpy.where, but numbers beside a text stay numbers."""
    then = then if hasattr(then, "dtype") else numpy.asarray(then)
    otherwise = otherwise if hasattr(otherwise, "dtype") else numpy.asarray(otherwise)
    if (then.dtype.kind in "US") != (otherwise.dtype.kind in "US"):
        then, otherwise = then.astype(object), otherwise.astype(object)
    return numpy.where(condition, then, otherwise)


def _fold(name: str, of_arrays: numpy.ufunc, plain: Callable[..., Any], *values: Any) -> Any:
    if is_written(values):
        return call(name, *values)
    return functools.reduce(of_arrays, values) if is_array(values) else plain(values)


smallest = functools.partial(_fold, "MIN", numpy.minimum, min)
largest = functools.partial(_fold, "MAX", numpy.maximum, max)
both = functools.partial(_fold, "AND", numpy.logical_and, all)  # true where all hold
either = functools.partial(_fold, "OR", numpy.logical_or, any)  # true where at least one holds


def round_up(x: Any) -> Any:
    """The next whole number at or above `x` (x >= 0: ROUNDUP moves away from zero).

    A spreadsheet takes 3.0000000000000004 for 3 here, and so do we: quotients of whole bytes that are not
    whole lie further than 1e-12 from a whole number.
    """
    if isinstance(x, Expr):
        return call("ROUNDUP", x, 0)
    if is_array((x,)):
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
        return numpy.floor(x)
    return x if x != x else math.floor(x)


def round_nearest(x: Any, decimals: int = 0) -> Any:
    """The number nearest to `x` (x >= 0) that is whole, or has so many decimals."""
    if isinstance(x, Expr):
        return call("ROUND", x, decimals)
    return round_down(x * 10**decimals + 0.5) / 10**decimals if decimals else round_down(x + 0.5)


def number_or_none(x: Any) -> Any:
    """`x`, or none where it reads none: NaN in Python, "-" in Excel, where arithmetic on "-" is an error."""
    return call("IFERROR", x, "-") if isinstance(x, Expr) else x


def ratio(x: Any, n: Any, otherwise: Any = 0) -> Any:
    """x / n, or `otherwise` where n is 0: the one guarded division, lazy in both readings."""
    if is_written((x, n, otherwise)):
        return call("IF", literal(n) == 0, otherwise, literal(x) / n)
    if is_array((x, n, otherwise)):
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
    return numpy.isclose(x, y, rtol=1e-12, atol=0)


def at_most(x: Any, y: Any) -> Any:
    """x <= y as a spreadsheet compares: what is the same in some 15 digits is not above."""
    if is_written((x, y)):
        return (1 * (literal(x) < y) + 1 * (literal(x) == y)) > 0
    return (x < y) | same_money(x, y)


def is_number(x: Any) -> Any:
    """True for a number; false for text or a blank (NaN or None in Python)."""
    if isinstance(x, Expr):
        return call("ISNUMBER", x)
    if is_array((x,)):
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


def replace_text(x: Any, old: str, new: str) -> Any:
    """A text with every `old` in it replaced."""
    return call("SUBSTITUTE", x, old, new) if isinstance(x, Expr) else _as_text(x).replace(old, new)


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
    with numpy.errstate(under="ignore"):
        return power(share, times)


def power(base: Any, exponent: Any) -> Any:
    """base to the exponent, for base > 0. (`^` is left out: Excel reads -3^2 as 9.)"""
    return call("POWER", base, exponent) if is_written((base, exponent)) else (base * 1.0) ** exponent


def natural_log(x: Any) -> Any:
    """The natural logarithm of `x` > 0."""
    if is_array((x,)):
        return numpy.log(x)
    return call("LN", x) if isinstance(x, Expr) else math.log(x)


def exponential(x: Any) -> Any:
    """e to the power of `x`."""
    if is_array((x,)):
        return numpy.exp(x)
    return call("EXP", x) if isinstance(x, Expr) else math.exp(x)


def normal_share(z: Any) -> Any:
    """The share of a normal distribution below `z` standard deviations; of numbers, not of columns."""
    return call("NORMSDIST", z) if isinstance(z, Expr) else math.erfc(-z / math.sqrt(2)) / 2


def normal_density(z: Any) -> Any:
    """The density of a normal distribution at `z` standard deviations; of numbers, not of columns."""
    if isinstance(z, Expr):
        return call("NORMDIST", z, 0, 1, False)
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


# Ranges: a row of numbers, the first axis, with text where there is none (NaN in Python, "-" in Excel) -----
#
# In Excel "-" is greater than any number, NaN in Python never is: compare rows that may hold none with
# ==, < and <= only. And both() or either() over a row answers once, not cell by cell.


def cheapest(costs: Any, otherwise: Any) -> Any:
    """The least number of a row (its first axis), or `otherwise` where the row holds none.

    MIN of nothing is 0, and 0 would read as free: COUNT guards it.
    """
    if isinstance(costs, Expr):
        return call("IF", call("COUNT", costs) == 0, otherwise, call("MIN", costs))
    return _least(~numpy.isnan(costs), costs, otherwise)


def _least(holds: Any, values: Any, otherwise: Any) -> Any:
    least = numpy.where(holds, values, numpy.inf).min(axis=0)
    return choose(numpy.isinf(least), otherwise, least)[()]


def least_where(values: Any, *conditions: Any, otherwise: Any = 0) -> Any:
    """The least of `values` where all conditions hold, or `otherwise` where they never do (an array formula).

    The 0 of the default is what MIN gives for nothing; "-" is no number, NaN in Python.
    """
    if is_written((values, *conditions)):
        found = call("IF", _product(conditions), values)
        least = call("MIN", found)
        if isinstance(otherwise, Expr | str):
            least = call("IF", call("COUNT", found) == 0, otherwise, least)
        return Expr(least.text, ATOM, array=True)
    holds = functools.reduce(numpy.logical_and, conditions)
    none = numpy.nan if isinstance(otherwise, str) else otherwise
    return _least(numpy.logical_and(holds, ~numpy.isnan(values)), values, none)


def greatest_where(values: Any, *conditions: Any) -> Any:
    """The greatest of `values` where all conditions hold, or 0 where they never do (an array formula)."""
    if is_written((values, *conditions)):
        return Expr(call("MAX", call("IF", _product(conditions), values)).text, ATOM, array=True)
    holds = functools.reduce(numpy.logical_and, conditions)
    return numpy.where(numpy.logical_and(holds, ~numpy.isnan(values)), values, 0).max(axis=0)


def first_where(*conditions: Any, otherwise: Any = 0) -> Any:
    """The position, from 1, of the first place where all hold, or `otherwise` (an array formula)."""
    if is_written(conditions):
        found = call("MATCH", 1, _product((literal(1), *conditions)), 0)
        return Expr(call("IFERROR", found, otherwise).text, ATOM, array=True)
    hold = functools.reduce(numpy.logical_and, conditions)
    return choose(hold.any(axis=0), hold.argmax(axis=0) + 1, otherwise)[()]


def count_steps(holds: Callable[..., Any], *rows: Any) -> Any:
    """For how many places of `rows` of equal length the condition `holds` is true of what stands there.

    The condition is worked out for the whole rows at once. In Excel it must be made of operators alone, as MIN, MAX,
    AND and OR answer once for a row and other functions look at its first cell. In Python the places are a first axis,
    before those that what the condition reads has.
    """
    if is_written(rows):
        return call("SUMPRODUCT", 1 * holds(*rows))
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
