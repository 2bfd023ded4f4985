"""A piece of Excel text that operators put together, with the brackets that it needs and no others."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from sheetgen.units import WHOLE, Display

if TYPE_CHECKING:
    import numpy.typing

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
