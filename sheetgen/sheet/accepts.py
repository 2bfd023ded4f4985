"""What a yellow cell accepts: what `build` and `pull` accept, so that all say no to the same values."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from sheetgen.scenario import parse
from sheetgen.scenario.kinds import LEAST, MOST, MOST_TEXT, Kind
from sheetgen.sheet.model import EXCEL_DAY_ZERO, Validation

PRECISIONS = "list_precision"  # the defined name of the precisions, without auto
MOST_MESSAGE, MOST_TITLE = 225, 32  # characters that Excel allows


@dataclass
class Days(Validation):
    """A day; `low` and `high` are counted as a spreadsheet does."""


@dataclass
class Words(Validation):
    """A text of `low` to `high` characters."""


@dataclass
class Within(Validation):
    """A whole number that other cells bound too: the defined names of the least and of the most."""

    at_least: str = ""
    at_most: str = ""


def accepts(kind: Kind, title: str, about: str = "") -> Validation:
    """What a cell of that kind accepts; `about` is said after it."""
    blank = " Blank: none." if kind.blank else ""
    message = f"{_said(kind)}{blank}{' ' if about else ''}{about}"
    message = message if len(message) <= MOST_MESSAGE else f"{_said(kind)}{blank}"
    title = title if len(title) <= MOST_TITLE else title[: MOST_TITLE + 1].rpartition(" ")[0]
    if kind.what == "dtype":
        return Validation(title, message, source=PRECISIONS)
    if kind.what == "date":
        return Days(title, message, low=_day(parse.FIRST_DAY), high=_day(parse.LAST_DAY), whole=True)
    if kind.what in ("text", "name"):
        return Words(title, message, low=0 if kind.blank else 1, high=MOST_TEXT)
    return Validation(title, message, low=kind.low, high=kind.high, whole=kind.what == "whole")


def number(title: str, low: float, high: float, about: str = "") -> Validation:
    """A number between two bounds."""
    return accepts(Kind(low=low, high=high), title, about)


def whole(title: str, low: float = 1, high: float = 10_000_000, about: str = "") -> Validation:
    """A whole number between two bounds."""
    return accepts(Kind("whole", low, high), title, about)


def share(title: str, about: str = "", *, above_zero: bool = False) -> Validation:
    """A share up to 1, of 0 or above it."""
    said = f"A share {'above' if above_zero else 'from'} 0% and up to 100%."
    return Validation(title, f"{said} {about}".strip(), low=LEAST if above_zero else 0, high=1)


def day(title: str, about: str = "") -> Validation:
    """A date that a sheet can have."""
    return accepts(Kind("date"), title, about)


def letters(title: str, n: int, about: str) -> Validation:
    """A text of so many characters."""
    return Words(title, about, low=n, high=n)


def _day(one: datetime.date) -> int:
    return (one - EXCEL_DAY_ZERO).days


def _said(kind: Kind) -> str:
    """`Kind` in a sentence; bounds that nobody meets are left out."""
    if kind.what == "share":
        return f"A share {'above' if kind.low else 'from'} 0% and up to 100%."
    if kind.what == "whole" and (kind.low, kind.high) == (0, 1):
        return "0 or 1."
    if kind.what in ("number", "whole") and kind.high >= MOST:
        return f"A {'whole ' if kind.what == 'whole' else ''}number, {kind.low:,g} or more."
    text = str(kind)
    return f"{text[0].upper()}{text[1:]}."
