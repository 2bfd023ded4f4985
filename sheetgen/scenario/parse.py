"""What a user types, read strictly: token counts, lists of tiers, fractions, dates."""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Mapping
from typing import Any

from sheetgen.errors import ScenarioError, did_you_mean, shown
from sheetgen.units import DTYPE_ALIASES, DTYPE_CHOICES

MAX_TOKENS = 100_000_000
FIRST_DAY, LAST_DAY = datetime.date(2000, 1, 1), datetime.date(2100, 1, 1)  # that a sheet can have
_TOKENS = re.compile(r"\s*(\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)(\.\d+)?\s*([kKmM]?)\s*")
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?\s*")


def number(value: Any) -> float:
    """`value` as a number, NaN where it is none. Commas may only part thousands: 1,000 but not 1,0 or 1,5."""
    text = str(value)
    if "," in text:
        if not _THOUSANDS.fullmatch(text):
            return math.nan
        text = text.replace(",", "")
    try:
        return float(text)
    except ValueError:
        return math.nan


def tokens(value: Any, name: str = "context") -> int:
    """A number of tokens: 4k is 4096, 128k is 131072, a plain number is itself.

    Raises ScenarioError for anything that is not a whole number of tokens from 1 to 100 million.
    """
    match = _TOKENS.fullmatch(str(value))
    if match is None:
        raise ScenarioError(f"{name} is {shown(value)!r}. Write a number of tokens, such as 16k (16,384) or 20000.")
    count = float(match[1].replace(",", "") + (match[2] or "")) * {"": 1, "k": 1024, "m": 1024**2}[match[3].lower()]
    if not (1 <= count <= MAX_TOKENS) or count != int(count):
        raise ScenarioError(f"{name} is {shown(value)!r}. It must be a whole number of tokens from 1 to 100,000,000.")
    return int(count)


def whole(value: Any, name: str, least: int = 1, most: int = 10_000_000) -> int:
    """A whole number between `least` and `most`."""
    count = number(value)
    if not (least <= count <= most) or count != int(count):
        raise ScenarioError(f"{name} is {shown(value)!r}. It must be a whole number from {least:,} to {most:,}.")
    return int(count)


def currency(value: Any, name: str) -> str:
    """Three letters of a currency, such as EUR."""
    text = str(value).strip().upper()
    if not re.fullmatch(r"[A-Z]{3}", text):
        raise ScenarioError(f"{name} is {shown(value)!r}. Write its three letters, such as EUR.")
    return text


def tiers(text: str) -> tuple[int, ...]:
    """`1,32,128,1024` as numbers of requests in flight: one to four, each once."""
    parts = [p for p in str(text).split(",") if p.strip()]
    numbers = tuple(whole(p.strip(), "tier", most=1_000_000) for p in parts)
    if not 1 <= len(numbers) <= 4:
        raise ScenarioError(f"tiers are {shown(text)!r}. Give one to four numbers, such as 1,32,128,1024.")
    if len(set(numbers)) != len(numbers):
        raise ScenarioError(f"tiers are {shown(text)!r}. Each may stand only once.")
    return numbers


def dtype(value: Any, name: str) -> str:
    """A precision, or auto."""
    text = str(value).strip().lower()
    if text not in DTYPE_CHOICES:
        raise ScenarioError(
            f"{name} is {shown(value)!r}. Allowed: {', '.join(DTYPE_CHOICES)}." + did_you_mean(text, DTYPE_CHOICES)
        )
    return DTYPE_ALIASES.get(text, text)


def one_of(value: Any, name: str, allowed: Mapping[str, Any] | tuple[str, ...]) -> str:
    """One word of `allowed`."""
    text = str(value).strip().lower()
    if text not in allowed:
        raise ScenarioError(f"{name} is {shown(value)!r}. Allowed: {', '.join(allowed)}." + did_you_mean(text, allowed))
    return text


def words(text: str | None) -> tuple[str, ...]:
    """A comma-separated list as words; empty where nothing was given."""
    return tuple(w.strip() for w in (text or "").split(",") if w.strip())


def day(text: Any, name: str) -> datetime.date:
    """A date such as 2026-11-20, from 2000 to the first of 2100, which workbooks can count from."""
    try:
        found = datetime.date.fromisoformat(str(text))
    except ValueError:
        raise ScenarioError(f"{name} is {shown(text)!r}. Write a date such as 2026-11-20.") from None
    if not FIRST_DAY <= found <= LAST_DAY:
        raise ScenarioError(f"{name} is {shown(text)!r}. It must be a day from {FIRST_DAY} to {LAST_DAY}.")
    return found


def as_of_date(text: str | None) -> datetime.date:
    """The date that price ages count from: as given, SOURCE_DATE_EPOCH's, or today in UTC.

    Raises ScenarioError for a day before 2000 or after the first of 2100, which workbooks cannot count from.
    """
    if text:
        return day(text, "as_of")
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not re.fullmatch(r"\d+", epoch):
        return datetime.datetime.now(datetime.UTC).date()
    seconds = int(epoch) if len(epoch) <= 12 else -1
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    days = seconds // 86_400
    if not (FIRST_DAY - start.date()).days <= days <= (LAST_DAY - start.date()).days:
        raise ScenarioError(
            f"SOURCE_DATE_EPOCH is {shown(epoch)!r}. It must be the seconds of a day from {FIRST_DAY} to {LAST_DAY}."
        )
    return start.date() + datetime.timedelta(days)
