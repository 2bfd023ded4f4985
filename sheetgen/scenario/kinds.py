"""What one input takes: the vocabulary of bounds that options, scenario files, JSON and yellow cells share."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.errors import ScenarioError, SheetgenError, shown
from sheetgen.scenario import parse
from sheetgen.units import DTYPES

MOST_TEXT = 200  # characters
MOST = 1e15
LEAST = 1e-9  # the least that a number may be which must be above 0


@dataclass(frozen=True)
class Kind:
    """What one input takes: a number within bounds, a text, a date, a precision or a word; or nothing, where `blank`.

    what: number, share (shown as a percentage), whole, tokens (a whole number, 16k too), text, name (without a slash),
    any (a number or a text), date, dtype, auto dtype (auto as well), currency, or word (one of `words`).
    """

    what: str = "number"
    low: float = 0
    high: float = MOST
    blank: bool = False
    words: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        return self.what in ("number", "share", "whole", "tokens")

    @property
    def is_whole(self) -> bool:
        return self.what in ("whole", "tokens")

    @property
    def holds(self) -> str:
        """What a cell of that kind holds: a number, a date, a text, or any."""
        if self.is_number:
            return "number"
        return self.what if self.what in ("date", "any") else "text"

    def read(self, value: Any, name: str) -> Any:
        """`value` as data gives it, as it is kept. Raises ScenarioError with the value and what is allowed."""
        if value is None or (isinstance(value, str) and not value.strip()):
            if self.blank:
                return None
            raise ScenarioError(f"{name} is blank. It must be {self}.")
        try:
            return _READ.get(self.what, _number)(self, value)
        except (ValueError, SheetgenError):
            raise ScenarioError(f"{name} is {shown(value)!r}. It must be {self}.") from None

    def parse(self, value: Any, name: str) -> Any:
        """`value` as it is written on a command line. Raises ScenarioError with the value and what is allowed."""
        if self.what in _PARSE:
            return _PARSE[self.what](self, value, name)
        found = parse.number(value)
        if not self.low <= found <= self.high or (self.is_whole and found != int(found)):
            raise ScenarioError(f"{name} is {shown(value)!r}. It must be {self}.")
        return int(found) if self.is_whole else found

    def __str__(self) -> str:
        if self.is_number:
            span = f"from {_plain(self.low)} to" if self.low != LEAST else "above 0 and up to"
            return f"{'a whole number' if self.is_whole else 'a number'} {span} {_plain(self.high)}"
        if self.what == "date":
            return f"a date such as 2026-11-20, from {parse.FIRST_DAY} to {parse.LAST_DAY}"
        if self.what == "any":
            return f"a number, or a text of at most {MOST_TEXT} characters"
        if self.what == "dtype":
            return f"one of {', '.join(DTYPES)}"
        return f"a text of at most {MOST_TEXT} characters{' without a slash' if self.what == 'name' else ''}"


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) and abs(number) < MOST else f"{number:g}"


def _number(kind: Kind, value: Any) -> float:
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError
    whole = float(value).is_integer()
    if not kind.low <= value <= kind.high or (kind.is_whole and not whole):
        raise ValueError
    return int(value) if whole else value


def _text(kind: Kind, value: Any) -> str:
    text = str(value)
    if isinstance(value, bool) or not text.isprintable() or len(text) > MOST_TEXT:
        raise ValueError
    if kind.what == "name" and "/" in text:
        raise ValueError
    return text


def _date(kind: Kind, value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime):
        value = value.date()
    return parse.day(value, "")


def _dtype(kind: Kind, value: Any) -> str:
    found = parse.dtype(value, "")
    if found == "auto":
        raise ValueError
    return found


def _any(kind: Kind, value: Any) -> Any:
    return _text(kind, value) if isinstance(value, str) else _number(kind, value)


_READ: dict[str, Any] = {"any": _any, "text": _text, "name": _text, "date": _date, "dtype": _dtype}
_PARSE: dict[str, Any] = {
    "text": lambda kind, value, name: str(value),
    "tokens": lambda kind, value, name: parse.tokens(value, name),
    "date": lambda kind, value, name: parse.day(value, name).isoformat(),
    "auto dtype": lambda kind, value, name: parse.dtype(value, name),
    "currency": lambda kind, value, name: parse.currency(value, name),
    "word": lambda kind, value, name: parse.one_of(value, name, kind.words),
}

ANY = Kind()
FLAG = Kind("whole", 0, 1)
SHARE, SHARE_ABOVE_0 = Kind("share", 0, 1), Kind("share", LEAST, 1)
COUNT = Kind("whole", 1, 10_000_000)
TOKENS = Kind("tokens", 1, parse.MAX_TOKENS)
TEXT = Kind("text", blank=True)
DAY = Kind("date", blank=True)
AUTO_DTYPE = Kind("auto dtype")


def name_part(text: str) -> str:
    """A catalog id as part of a cell's name: dots and dashes become underscores."""
    return "".join(c if c.isalnum() else "_" for c in text)


def plain(value: Any) -> Any:
    """A kept value as JSON and YAML have it."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.isoformat() if isinstance(value, datetime.date) else value
