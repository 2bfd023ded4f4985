"""One cell of a price list as a price, a number, a date, a name: or a ValueError with what it must be."""

from __future__ import annotations

import datetime
import re

from sheetgen.errors import shown

LEAST_USD, MOST_USD = 1e-4, 1e6  # an hour: what the catalogs' schema takes

_NUMBER = re.compile(r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/+-]*")
_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def price(cells: dict[str, str], column: str, hours: int = 1) -> float | None:
    """US dollars an hour, of a price for so many hours; None where the cell is empty: no price is no fault."""
    text = cells.get(column, "")
    if not text:
        return None
    value = _number(text)
    if not value:  # 0 is no price, whatever it was meant to say
        raise ValueError(f"{column} is {shown(text)!r}. It must be a price above 0.")
    hourly = value / hours
    if not LEAST_USD <= hourly <= MOST_USD:
        span = "an hour" if hours == 1 else f"for {hours} hours"
        bounds = f"{LEAST_USD * hours:g} to {MOST_USD * hours:,.0f} USD {span}"
        raise ValueError(f"{column} is {shown(text)!r}. It must be a price from {bounds}.")
    return hourly


def amount(cells: dict[str, str], column: str, unit: float = 1) -> float | None:
    """A size or a count, in units of `unit`; None where the cell is empty or the list has no such column."""
    text = cells.get(column, "")
    if not text:
        return None
    value = _number(text)
    if value is None or value / unit > 1e9:
        raise ValueError(f"{column} is {shown(text)!r}. It must be a number, 0 or more.")
    return value / unit


def _number(text: str) -> float | None:
    """A plain number, 0 or more: neither nan nor inf, no sign, no thousands, only the digits 0 to 9."""
    value = float(text) if len(text) <= 40 and _NUMBER.fullmatch(text) else None
    return value if value is None or value < float("inf") else None


def name(cells: dict[str, str], column: str, optional: bool = False) -> str:
    """A name to be compared with those of the catalogs."""
    text = cells.get(column, "")
    if not text and optional:
        return ""
    if not text:
        raise ValueError(f"{column} is empty.")
    if len(text) > 120:
        raise ValueError(f"{column} is {shown(text, 30)!r}, {len(text):,} characters. A name has at most 120.")
    if not _NAME.fullmatch(text):
        raise ValueError(f"{column} is {shown(text)!r}, which is no name: letters, digits and . _ - ( ) / + only.")
    return text


def day(cells: dict[str, str], column: str) -> str | None:
    """The day of 2026-05-24 or of 2026-05-24T12:00:00Z."""
    text = cells.get(column, "")
    if not text:
        return None
    try:
        found = datetime.date.fromisoformat(text[:10])
    except ValueError:
        found = None
    if found is None or text[10:11] not in ("", "T", " ") or not 2000 <= found.year <= 2100:
        raise ValueError(f"{column} is {shown(text)!r}. It must be a day such as 2026-05-24.")
    return found.isoformat()


def yes_or_no(cells: dict[str, str], column: str) -> bool:
    text = cells.get(column, "")
    if text.lower() not in _YES_NO:
        raise ValueError(f"{column} is {shown(text)!r}. It must be True or False.")
    return _YES_NO[text.lower()]
