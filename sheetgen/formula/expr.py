"""A piece of Excel text that operators put together, with the brackets that it needs and no others."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy.typing

COMPARE, JOIN, ADD, MULTIPLY, SIGN, ATOM = range(6)


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

    def __add__(self, other: Any) -> Expr:
        return _infix(self, "+", other, ADD)

    def __radd__(self, other: Any) -> Expr:
        return _infix(other, "+", self, ADD)

    def __sub__(self, other: Any) -> Expr:
        return _infix(self, "-", other, ADD)

    def __rsub__(self, other: Any) -> Expr:
        return _infix(other, "-", self, ADD)

    def __mul__(self, other: Any) -> Expr:
        return _infix(self, "*", other, MULTIPLY)

    def __rmul__(self, other: Any) -> Expr:
        return _infix(other, "*", self, MULTIPLY)

    def __truediv__(self, other: Any) -> Expr:
        return _infix(self, "/", other, MULTIPLY)

    def __rtruediv__(self, other: Any) -> Expr:
        return _infix(other, "/", self, MULTIPLY)

    def __neg__(self) -> Expr:
        return Expr("-" + inside(self, SIGN), SIGN, self.array)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return _infix(self, "=", other, COMPARE)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return _infix(self, "<>", other, COMPARE)

    def __lt__(self, other: Any) -> Expr:
        return _infix(self, "<", other, COMPARE)

    def __le__(self, other: Any) -> Expr:
        return _infix(self, "<=", other, COMPARE)

    def __gt__(self, other: Any) -> Expr:
        return _infix(self, ">", other, COMPARE)

    def __ge__(self, other: Any) -> Expr:
        return _infix(self, ">=", other, COMPARE)


# What a formula reads and gives: a number, a column of them, or a reference that is written out.
Quantity: TypeAlias = "float | numpy.typing.NDArray[Any] | Expr"


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


def is_array(values: Iterable[Any]) -> bool:
    return any(hasattr(v, "__array__") for v in values)
