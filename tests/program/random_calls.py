"""Random calls of formulas and of operations: arguments, and what Python makes of them."""

import functools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from sheetgen.formula import Formula
from sheetgen.formula.tree import CONSTANT, INPUT

ROW_LENGTH = 9
ONE_BY_ONE = ("is_text", "is_blank", "join_text", "replace_text", "percent_text", "whole_text", "hundredths_text")
NONE = {"not a number": True}  # NaN as JSON has it here: nothing else stands for it
# What the numbers of a call are drawn from: few numbers, for those that are the same; whole ones; all kinds.
PALETTES: tuple[Callable[[random.Random], float], ...] = (
    lambda draw: float(draw.choice([0, 1, 2])),
    lambda draw: float(draw.choice([0, 1, 1, 2, 2, 3, 4, 8])),
    lambda draw: float(draw.choice([0, 1, 2, 4, 16, 64, 128, draw.randint(1, 10**6)])),
    lambda draw: draw.choice([1.0, round(draw.random() * 3, 4), float(draw.randint(1, 10**6))]),
)


@functools.cache
def asked_about(formula: Formula) -> set[str]:
    """Inputs of which a formula asks whether they are numbers."""
    asking = [part for part in formula.tree.walk() if part.operation.name in ("is_number", "is_blank")]
    return {part.arguments[0].arguments[0] for part in asking if part.arguments[0].operation is INPUT}


@functools.cache
def texts_of(formula: Formula) -> dict[str, list[str]]:
    """Inputs that are compared with texts, and those texts."""
    texts: dict[str, list[str]] = {}
    for part in formula.tree.walk():
        if part.operation.name in ("equal", "unequal"):
            names = [side.arguments[0] for side in part.arguments if side.operation is INPUT]
            words = [side.arguments[0] for side in part.arguments if side.operation is CONSTANT]
            for name in names:
                texts.setdefault(name, []).extend(word for word in words if isinstance(word, str))
    return {name: [*words, "other"] for name, words in texts.items() if words}


def arguments(formula: Formula, draw: random.Random) -> list[Any]:
    """A value for each input: a number or a text, or a row of numbers; none where columns hold none or it asks."""
    texts, asked = texts_of(formula), asked_about(formula)
    in_columns = not formula.rows and not is_one_by_one(formula)
    palette = draw.choice(PALETTES)

    def number(may_be_none: bool) -> float:
        return math.nan if may_be_none and draw.random() < 0.02 else palette(draw)

    def value(name: str) -> Any:
        if name == "requests_per_stride":
            return float(draw.randint(1, 64))
        if name in texts and draw.random() < 0.5:
            return draw.choice(texts[name])
        return number(in_columns or name in asked)

    def row(name: str) -> list[float]:
        if name == "among":  # which cells take part
            return [float(draw.random() < 0.8) for _ in range(ROW_LENGTH)]
        if name == "steps":  # times only grow with them
            return [float(step) for step in range(1, ROW_LENGTH + 1)]
        if name in ("untouched_by_stride", "untouched_by_request"):  # shares, of ever larger batches
            return sorted((draw.random() for _ in range(ROW_LENGTH)), reverse=True)
        return [number(may_be_none=True) for _ in range(ROW_LENGTH)]

    values = {name: row(name) if name in formula.rows else value(name) for name in formula.inputs}
    single = [name for name in formula.inputs if name not in formula.rows]
    if formula.rows and single and draw.random() < 0.7:  # what is looked for in a row stands in it
        choice = draw.choice(values[draw.choice(formula.rows)])
        values[draw.choice(single)] = 0.0 if choice != choice else choice
    return list(values.values())


@functools.cache
def is_one_by_one(formula: Formula) -> bool:
    """True where Python works a formula out of numbers and texts alone, not of columns."""
    return bool(texts_of(formula)) or any(part.operation.name in ONE_BY_ONE for part in formula.tree.walk())


def computed(formula: Formula, calls: list[list[Any]]) -> list[Any]:
    """Python's result for each list of arguments: of all at once, as columns, where it can; nothing where it refuses
    them."""
    if not formula.rows and not is_one_by_one(formula):
        columns = map(numpy.array, zip(*calls, strict=True))
        try:
            with numpy.errstate(all="ignore"):
                return list(numpy.broadcast_to(formula.function(*columns), len(calls)))
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            pass
    return [_value(formula, values) for values in calls]


def _value(formula: Formula, values: list[Any]) -> Any:
    try:
        with numpy.errstate(all="ignore"):
            value = formula.function(*(numpy.array(given) if isinstance(given, list) else given for given in values))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return None if isinstance(value, complex) else value


def as_json(value: Any) -> Any:
    """A value for JSON: infinite ones and none are told apart from texts."""
    if isinstance(value, list):
        return [as_json(cell) for cell in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return NONE if value != value else {"infinite": math.copysign(1, value)}
    return value


def calls_of(formulas: list[Formula], n_calls: int) -> Iterator[tuple[int, list[Any], Any]]:
    """So many random calls of each formula: its place, its arguments, its value in Python."""
    for place, formula in enumerate(formulas):
        draw = random.Random(f"{formula.name} {formula.inputs}")
        calls = [arguments(formula, draw) for _ in range(n_calls)]
        for values, value in zip(calls, computed(formula, calls), strict=True):
            if value is not None:
                yield place, as_json(values), as_json(value)
