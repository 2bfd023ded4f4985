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
LAST_SECOND = 253_402_300_799  # of the year 9999


def tokens(value: Any, name: str = "context") -> int:
    """A number of tokens: 4k is 4096, 128k is 131072, a plain number is itself.

    Raises ScenarioError for anything that is not a whole number of tokens from 1 to 100 million.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmM]?)\s*", str(value).replace(",", "").replace("_", ""))
    if match is None:
        raise ScenarioError(
            f"{name} is {shown(value)!r}. Write a number of tokens, such as 16k (16,384) or 20000."
        )
    count = float(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[match[2].lower()]
    if not (1 <= count <= MAX_TOKENS) or count != int(count):
        raise ScenarioError(
            f"{name} is {shown(value)!r}. It must be a whole number of tokens from 1 to 100,000,000."
        )
    return int(count)


def whole(value: Any, name: str, least: int = 1, most: int = 10_000_000) -> int:
    """A whole number between `least` and `most`."""
    try:
        number = float(str(value).replace(",", "").replace("_", ""))
    except ValueError:
        number = math.nan
    if not (least <= number <= most) or number != int(number):
        raise ScenarioError(
            f"{name} is {shown(value)!r}. It must be a whole number from {least:,} to {most:,}."
        )
    return int(number)


def fraction(value: Any, name: str, above_zero: bool = True) -> float:
    """A share between 0 and 1."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (0 <= number <= 1) or (above_zero and number == 0):
        raise ScenarioError(
            f"{name} is {shown(value)!r}. It must be a number {'above 0 and' if above_zero else 'from 0 and'} up to 1."
        )
    return number


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
            f"{name} is {shown(value)!r}. Allowed: {', '.join(DTYPE_CHOICES)}."
            + did_you_mean(text, DTYPE_CHOICES)
        )
    return DTYPE_ALIASES.get(text, text)


def one_of(value: Any, name: str, allowed: Mapping[str, Any] | tuple[str, ...]) -> str:
    """One word of `allowed`."""
    text = str(value).strip().lower()
    if text not in allowed:
        raise ScenarioError(
            f"{name} is {shown(value)!r}. Allowed: {', '.join(allowed)}." + did_you_mean(text, allowed)
        )
    return text


def words(text: str | None) -> tuple[str, ...]:
    """A comma-separated list as words; empty where nothing was given."""
    return tuple(w.strip() for w in (text or "").split(",") if w.strip())


def as_of_date(text: str | None) -> datetime.date:
    """The date that price ages count from: as given, SOURCE_DATE_EPOCH's, or today in UTC."""
    if text:
        try:
            return datetime.date.fromisoformat(str(text))
        except ValueError:
            raise ScenarioError(f"as_of is {shown(text)!r}. Write a date such as 2026-11-20.") from None
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if re.fullmatch(r"\d{1,12}", epoch) and int(epoch) <= LAST_SECOND:
        return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date()
    return datetime.datetime.now(datetime.UTC).date()
