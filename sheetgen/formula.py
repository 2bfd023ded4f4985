"""One formula, two readings: the same Python function computes a number or writes Excel text.

A sizing quantity is one function under `@formula`. Its name is the column's name, its parameters' names are
the quantities that it reads. Called with numbers or numpy arrays it computes; called with `Expr` objects
(cell references) its operators build the text of an Excel formula. The helpers below exist in both readings
and stay inside the Excel 2007 vocabulary.
"""

from __future__ import annotations

import functools
import inspect
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sheetgen.units import PERCENT, WHOLE, Display

_COMPARE, _JOIN, _ADD, _MULTIPLY, _SIGN, _ATOM = range(6)


class Expr:
    """A piece of Excel text that knows how tightly it binds. `array` marks text that needs `{=...}`."""

    __slots__ = ("array", "binding", "text")
    __array_ufunc__ = None  # numpy arrays leave the operator to us
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, text: str, binding: int = _ATOM, array: bool = False) -> None:
        self.text = text
        self.binding = binding
        self.array = array

    def __bool__(self) -> bool:
        raise TypeError(f"a formula cannot branch on {self.text!r} with if, and, or, min, max: use where()")

    def __repr__(self) -> str:
        return f"Expr({self.text!r})"

    def __add__(self, other: Any) -> Expr:
        return _infix(self, "+", other, _ADD)

    def __radd__(self, other: Any) -> Expr:
        return _infix(other, "+", self, _ADD)

    def __sub__(self, other: Any) -> Expr:
        return _infix(self, "-", other, _ADD)

    def __rsub__(self, other: Any) -> Expr:
        return _infix(other, "-", self, _ADD)

    def __mul__(self, other: Any) -> Expr:
        return _infix(self, "*", other, _MULTIPLY)

    def __rmul__(self, other: Any) -> Expr:
        return _infix(other, "*", self, _MULTIPLY)

    def __truediv__(self, other: Any) -> Expr:
        return _infix(self, "/", other, _MULTIPLY)

    def __rtruediv__(self, other: Any) -> Expr:
        return _infix(other, "/", self, _MULTIPLY)

    def __neg__(self) -> Expr:
        return Expr("-" + _inside(self, _SIGN), _SIGN, self.array)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return _infix(self, "=", other, _COMPARE)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return _infix(self, "<>", other, _COMPARE)

    def __lt__(self, other: Any) -> Expr:
        return _infix(self, "<", other, _COMPARE)

    def __le__(self, other: Any) -> Expr:
        return _infix(self, "<=", other, _COMPARE)

    def __gt__(self, other: Any) -> Expr:
        return _infix(self, ">", other, _COMPARE)

    def __ge__(self, other: Any) -> Expr:
        return _infix(self, ">=", other, _COMPARE)


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
        return Expr(text, _SIGN if text.startswith("-") else _ATOM)
    raise TypeError(f"{value!r} cannot stand in a formula")


def _inside(value: Any, outer: int) -> str:
    """`value`'s text, in brackets where it binds no tighter than `outer`."""
    expr = literal(value)
    return expr.text if expr.binding > outer else f"({expr.text})"


def _infix(left: Any, sign: str, right: Any, binding: int) -> Expr:
    # The left operand may bind as tightly (a-b-c); the right one may not: a-(b-c); a+(b+c) keeps its order.
    a, b = literal(left), literal(right)
    left_text = a.text if a.binding >= binding and binding != _COMPARE else _inside(a, binding)
    return Expr(f"{left_text}{sign}{_inside(b, binding)}", binding, a.array or b.array)


def _call(name: str, *arguments: Any) -> Expr:
    parts = [literal(a) for a in arguments]
    return Expr(f"{name}({','.join(p.text for p in parts)})", _ATOM, any(p.array for p in parts))


def _is_text(values: Iterable[Any]) -> bool:
    return any(isinstance(v, Expr) for v in values)


def _is_array(values: Iterable[Any]) -> bool:
    return any(hasattr(v, "__array__") for v in values)


# The vocabulary -----------------------------------------------------------------------------------------


def where(condition: Any, then: Any, otherwise: Any) -> Any:
    """`then` where `condition` holds, else `otherwise`. Both are evaluated: guard a division with ratio()."""
    if _is_text((condition, then, otherwise)):
        return _call("IF", condition, then, otherwise)
    if _is_array((condition, then, otherwise)):
        return _choose(condition, then, otherwise)
    return then if condition else otherwise


def _choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """numpy.where, but numbers beside a text stay numbers."""
    import numpy

    then, otherwise = numpy.asarray(then), numpy.asarray(otherwise)
    if (then.dtype.kind in "US") != (otherwise.dtype.kind in "US"):
        then, otherwise = then.astype(object), otherwise.astype(object)
    return numpy.where(condition, then, otherwise)


def _fold(name: str, numpy_name: str, plain: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    if _is_text(values):
        return _call(name, *values)
    if _is_array(values):
        import numpy

        return functools.reduce(getattr(numpy, numpy_name), values)
    return plain(values)


def smallest(*values: Any) -> Any:
    """The least of several numbers."""
    return _fold("MIN", "minimum", min, values)


def largest(*values: Any) -> Any:
    """The greatest of several numbers."""
    return _fold("MAX", "maximum", max, values)


def both(*conditions: Any) -> Any:
    """True where all hold."""
    return _fold("AND", "logical_and", all, conditions)


def either(*conditions: Any) -> Any:
    """True where at least one holds."""
    return _fold("OR", "logical_or", any, conditions)


def round_up(x: Any) -> Any:
    """The next whole number at or above `x` (x >= 0: ROUNDUP moves away from zero).

    A spreadsheet takes 3.0000000000000004 for 3 here, and so do we: quotients of whole bytes that are not
    whole lie further than 1e-12 from a whole number.
    """
    if isinstance(x, Expr):
        return _call("ROUNDUP", x, 0)
    if _is_array((x,)):
        import numpy

        near = numpy.round(x)
        return numpy.where(abs(x - near) <= 1e-12 * abs(near), near, numpy.ceil(x))
    if x != x:
        return x
    nearest = round(x)
    return nearest if abs(x - nearest) <= 1e-12 * abs(nearest) else math.ceil(x)


def round_down(x: Any) -> Any:
    """The next whole number at or below `x`."""
    if isinstance(x, Expr):
        return _call("INT", x)
    if _is_array((x,)):
        import numpy

        return numpy.floor(x)
    return x if x != x else math.floor(x)


def ratio(x: Any, n: Any, otherwise: Any = 0) -> Any:
    """x / n, or `otherwise` where n is 0: the one guarded division, lazy in both readings."""
    if _is_text((x, n, otherwise)):
        return _call("IF", literal(n) == 0, otherwise, literal(x) / n)
    if _is_array((x, n, otherwise)):
        import numpy

        safe = numpy.where(numpy.equal(n, 0), 1, n)
        return _choose(numpy.equal(n, 0), otherwise, x / safe)
    return otherwise if n == 0 else x / n


def remainder(x: Any, n: Any) -> Any:
    """x modulo n, for x >= 0 and n > 0."""
    return _call("MOD", x, n) if _is_text((x, n)) else x % n


def is_number(x: Any) -> Any:
    """True for a number; false for text or a blank (NaN or None in Python)."""
    if isinstance(x, Expr):
        return _call("ISNUMBER", x)
    if _is_array((x,)):
        import numpy

        return ~numpy.isnan(x)
    return isinstance(x, (int, float)) and x == x


def is_text(x: Any) -> Any:
    """True for a text."""
    return _call("ISTEXT", x) if isinstance(x, Expr) else isinstance(x, str)


def number_where(condition: Any, value: Any) -> Any:
    """`value` where `condition` holds, else none: NaN in Python, "-" in Excel."""
    if _is_text((condition, value)):
        return _call("IF", condition, value, "-")
    return where(condition, value, math.nan)


def join_text(*parts: Any) -> Any:
    """Text and whole numbers put together (&)."""
    if _is_text(parts):
        text = "&".join(_inside(p, _JOIN) for p in parts)
        return Expr(text, _JOIN, any(literal(p).array for p in parts))
    return "".join(_as_text(p) for p in parts)


def _as_text(x: Any) -> str:
    if isinstance(x, float):
        return "-" if x != x else str(int(x)) if x == int(x) else str(x)
    return str(x)


def percent_text(x: Any) -> Any:
    """A share as text in whole percent (TEXT with a format that every locale reads alike)."""
    if isinstance(x, Expr):
        return _call("TEXT", x, "0%")
    return PERCENT.text(x)


def power(base: Any, exponent: Any) -> Any:
    """base to the exponent, for base > 0. (`^` is left out: Excel reads -3^2 as 9.)"""
    return _call("POWER", base, exponent) if _is_text((base, exponent)) else (base * 1.0) ** exponent


# Ranges: a row of numbers, with text where there is none (NaN in Python, "-" in Excel) -----------------
#
# In Excel "-" is greater than any number, NaN in Python never is: compare rows that may hold none with
# ==, < and <= only. And both() or either() over a row answers once, not cell by cell.


def cheapest(costs: Any, otherwise: Any) -> Any:
    """The least number of a row (its last axis), or `otherwise` where the row holds none.

    MIN of nothing is 0, and 0 would read as free: COUNT guards it.
    """
    if isinstance(costs, Expr):
        return _call("IF", _call("COUNT", costs) == 0, otherwise, _call("MIN", costs))
    import numpy

    return _least(~numpy.isnan(costs), costs, otherwise)


def _least(holds: Any, values: Any, otherwise: Any) -> Any:
    import numpy

    least = numpy.where(holds, values, numpy.inf).min(axis=-1)
    return _choose(numpy.isinf(least), otherwise, least)[()]


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
    if _is_text((values, *conditions)):
        found = _call("IF", _product(conditions), values)
        least = _call("MIN", found)
        if isinstance(otherwise, Expr) or otherwise != 0:
            least = _call("IF", _call("COUNT", found) == 0, otherwise, least)
        return Expr(least.text, _ATOM, array=True)
    import numpy

    holds = functools.reduce(numpy.logical_and, conditions)
    return _least(numpy.logical_and(holds, ~numpy.isnan(values)), values, otherwise)


def first_where(*conditions: Any, otherwise: Any = 0) -> Any:
    """The position, from 1, of the first place where all hold, or `otherwise` (an array formula)."""
    if _is_text(conditions):
        found = _call("MATCH", 1, _product((literal(1), *conditions)), 0)
        return Expr(_call("IFERROR", found, otherwise).text, _ATOM, array=True)
    import numpy

    hold = functools.reduce(numpy.logical_and, conditions)
    return _choose(hold.any(axis=-1), hold.argmax(axis=-1) + 1, otherwise)[()]


def _product(conditions: Iterable[Any]) -> Expr:
    """Conditions multiplied, cell by cell; a leading 1 makes numbers of truth values, as MATCH needs them."""
    texts = _cell_by_cell(conditions)
    one_text = texts[0] if len(texts) == 1 else "*".join(t if t == "1" else f"({t})" for t in texts)
    return Expr(one_text, _MULTIPLY)


# Formulas -----------------------------------------------------------------------------------------------


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
        missing = [name for name in self.inputs if name not in values]
        if missing:
            raise KeyError(f"formula {self.name!r} reads {missing[0]!r}, which nothing provides")
        return self.function(*(values[name] for name in self.inputs))

    @functools.cached_property
    def _template(self) -> Expr:
        """The Excel text with each input's name in braces: the same for every cell, so written once."""
        text: Expr = self.function(*(Expr(f"{{{name}}}") for name in self.inputs))
        return text

    def written(self, texts: Mapping[str, Expr]) -> Expr:
        """The Excel text with `texts` put in for the inputs."""
        inside = {name: e.text if e.binding == _ATOM else f"({e.text})" for name, e in texts.items()}
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


def formula(label: str, display: Display = WHOLE) -> Callable[[Callable[..., Any]], Formula]:
    """Make a function a `Formula`: its name is the column's name, its parameters' names are its inputs."""

    def wrap(function: Callable[..., Any]) -> Formula:
        inputs = tuple(inspect.signature(function).parameters)
        return Formula(function.__name__, label, display, inputs, function)

    return wrap
