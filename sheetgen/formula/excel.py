"""Excel text, piece by piece: constants, operators with the brackets that they need, functions.

The vocabulary is that of Excel 2007. An argument is a piece of text, or a constant.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple, TypeAlias

COMPARE, JOIN, ADD, MULTIPLY, SIGN, ATOM = range(6)  # how tightly a piece binds


class Text(NamedTuple):
    """A piece of Excel text; `array` marks text that needs `{=...}`."""

    text: str
    binding: int = ATOM
    array: bool = False


Constant: TypeAlias = bool | int | float | str
Part: TypeAlias = Text | Constant


def constant(value: object) -> Text:
    """A constant as text: text quoted, truth values named, numbers without an exponent."""
    if isinstance(value, bool):
        return Text("TRUE" if value else "FALSE")
    if isinstance(value, str):
        return Text('"' + value.replace('"', '""') + '"')
    if isinstance(value, (int, float)) and math.isfinite(value):
        return _number(value + 0)  # zero has no sign
    raise TypeError(f"{value!r} cannot stand in a formula")


@functools.lru_cache(maxsize=2**12)
def _number(value: float) -> Text:
    text = f"{Decimal(repr(float(value) if isinstance(value, float) else value)).normalize():f}"
    return Text(text, SIGN if text.startswith("-") else ATOM)


def piece(part: Part) -> Text:
    return part if isinstance(part, Text) else constant(part)


def inside(part: Part, outer: int) -> str:
    """The text of a part, in brackets where it binds no tighter than `outer`."""
    text = piece(part)
    return text.text if text.binding > outer else f"({text.text})"


def infix(left: Part, sign: str, right: Part, binding: int) -> Text:
    """Two parts with an operator between them."""
    # The left operand may bind as tightly (a-b-c); the right one may not: a-(b-c); a+(b+c) keeps its order.
    a, b = piece(left), piece(right)
    left_text = a.text if a.binding >= binding and binding != COMPARE else inside(a, binding)
    return Text(f"{left_text}{sign}{inside(b, binding)}", binding, a.array or b.array)


def equal(left: Part, right: Part) -> Text:
    return infix(left, "=", right, COMPARE)


def negative(part: Part) -> Text:
    """A part with a minus sign before it."""
    return Text("-" + inside(part, SIGN), SIGN, piece(part).array)


def call(name: str, *arguments: Part) -> Text:
    """A function of Excel's, with its arguments."""
    parts = [piece(argument) for argument in arguments]
    return Text(f"{name}({','.join(part.text for part in parts)})", ATOM, any(part.array for part in parts))


def join(parts: Iterable[Part]) -> Text:
    """Parts put together to one text."""
    pieces = [piece(part) for part in parts]
    if len(pieces) == 1:
        pieces.append(constant(""))  # a number alone becomes a text, too
    return Text("&".join(inside(part, JOIN) for part in pieces), JOIN, any(part.array for part in pieces))


def product(conditions: Iterable[Part]) -> Text:
    """Conditions multiplied, cell by cell; a leading 1 makes numbers of truth values, as MATCH needs them."""
    texts = [piece(condition).text for condition in conditions]
    text = texts[0] if len(texts) == 1 else "*".join(t if t == "1" else f"({t})" for t in texts)
    return Text(text, MULTIPLY)


def over_rows(part: Text) -> Text:
    """The same text as an array formula's."""
    return Text(part.text, ATOM, array=True)
