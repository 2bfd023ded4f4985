"""The kinds of inputs: how each reads a user's words, and the bounds that all places of input share."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sheetgen.errors import ScenarioError, SheetgenError, did_you_mean, shown
from sheetgen.units import (
    AUTO,
    DTYPE_ALIASES,
    DTYPE_CHOICES,
    DTYPES,
    ENGINE_DTYPES,
    FIRST_DAY,
    KV_ALIASES,
    KV_NOT_SIZED,
    LAST_DAY,
    PUBLISHED,
    WEIGHT_CHOICES,
    today,
)

Raw: TypeAlias = Any  # a value of an input as the command line, a file, a cell or Python gave it, or as it is kept
Options: TypeAlias = Mapping[str, Raw]  # by the name of an option or input
MAX_TOKENS = 100_000_000
_TOKENS = re.compile(r"\s*([0-9]{1,3}(?:,[0-9]{3}|_[0-9]{3})+|[0-9]+)(\.[0-9]+)?\s*([kKmM]?)\s*")
_POINTS = re.compile(r"\s*[1-9][0-9]{0,2}(?:\.[0-9]{3})+\s*")
_PARTING = str.maketrans("", "", ",_")
_THOUSANDS = re.compile(r"\s*[+-]?[0-9]{1,3}(?:,[0-9]{3}|_[0-9]{3})+(?:\.[0-9]+)?\s*")


def number(value: object) -> float:
    """`value` as a number, NaN where it is none, or not in the digits 0 to 9. Commas and underscores may only part
    thousands: 1,000 but not 1,0 or 1,5."""
    text = str(value)
    if "," in text or "_" in text:
        if not _THOUSANDS.fullmatch(text):
            return math.nan
        text = text.translate(_PARTING)
    try:
        return float(text) if text.isascii() else math.nan
    except ValueError:
        return math.nan


def people(value: object) -> float:
    """`value` as a number of people or requests, NaN where it is none: 200k is 200,000, 1.5m is 1,500,000."""
    text = str(value).strip()
    unit = {"k": 1e3, "m": 1e6}.get(text[-1:].lower())
    # Worked out in decimals: 4.35k is 4,350, which 4.35 x 1000 in floats is not.
    return round(number(text[:-1]) * unit, 6) if unit and text[:-1][-1:].isdigit() else number(text)


def plainly(value: object) -> str:
    """A hint that rewrites a whole number which is 1 to some readers and 1000 to others (1.000); "" for any other."""
    if isinstance(value, str) and _POINTS.fullmatch(value):
        return f"Write {value.strip().replace('.', '')}."
    return ""


def tokens(value: object, name: str = "context") -> int:
    """A number of tokens: 4k is 4096, 128k is 131072, a plain number stays as it is.

    Raises ScenarioError for anything that is not a whole number of tokens from 1 to 100 million.
    """
    if cure := plainly(value):
        raise ScenarioError(f"{name} is {shown(value)!r}. {cure}")
    match = _TOKENS.fullmatch(str(value))
    if match is None:
        raise ScenarioError(f"{name} is {shown(value)!r}. Write a number of tokens, such as 16k (16,384) or 20000.")
    count = float(match[1].translate(_PARTING) + (match[2] or "")) * {"": 1, "k": 1024, "m": 1024**2}[match[3].lower()]
    if not (1 <= count <= MAX_TOKENS) or count != int(count):
        raise ScenarioError(f"{name} is {shown(value)!r}. It must be a whole number of tokens from 1 to 100,000,000.")
    return int(count)


def whole(value: object, name: str, least: int = 1, most: int = 10_000_000) -> int:
    """A whole number between `least` and `most`."""
    return int(Kind("whole", least, most).parse(value, name))


def tiers(text: str) -> tuple[int, ...]:
    """`1,32,128,1024` as numbers of requests at once: one to four, each once."""
    numbers = tuple(Kind("whole", 1, 1_000_000, decimal=True).parse(part, "tier") for part in words(str(text)))
    if not 1 <= len(numbers) <= 4:
        raise ScenarioError(f"tiers are {shown(text)!r}. Give one to four numbers, such as 1,32,128,1024.")
    if len(set(numbers)) != len(numbers):
        raise ScenarioError(f"tiers are {shown(text)!r}. Each may stand only once.")
    return numbers


def dtype(value: object, name: str) -> str:
    """A precision or a word for one: auto, or for weights recommended or published (auto is published there)."""
    text = str(value).strip().lower()
    if name == "kv_cache_dtype" and text in KV_NOT_SIZED:
        raise ScenarioError(f"{name} {text} is not sized: {KV_NOT_SIZED[text]}.")
    of_weights = name == "weight_dtype"
    text = ENGINE_DTYPES.get(text, text if of_weights else KV_ALIASES.get(text, text))
    precision = one_of(text, name, WEIGHT_CHOICES if of_weights else DTYPE_CHOICES)
    return PUBLISHED if of_weights and precision == AUTO else DTYPE_ALIASES.get(precision, precision)


def one_of(value: object, name: str, allowed: Collection[str]) -> str:
    """One word of `allowed`."""
    text = str(value).strip().lower()
    if text not in allowed:
        raise ScenarioError(f"{name} is {shown(value)!r}. Allowed: {', '.join(allowed)}." + did_you_mean(text, allowed))
    return text


def words(text: str | None) -> tuple[str, ...]:
    """A comma-separated list as words; empty where the text is blank."""
    return tuple(w.strip() for w in (text or "").split(",") if w.strip())


def day(text: object, name: str) -> datetime.date:
    """A date such as 2026-11-20, from 2000 to the first day of 2100, a range that workbooks can count."""
    try:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", str(text), re.ASCII):
            raise ValueError
        date = datetime.date.fromisoformat(str(text))
    except ValueError:
        raise ScenarioError(f"{name} is {shown(text)!r}. Write a date such as 2026-11-20.") from None
    if not FIRST_DAY <= date <= LAST_DAY:
        raise ScenarioError(f"{name} is {shown(text)!r}. It must be a day from {FIRST_DAY} to {LAST_DAY}.")
    return date


def as_of_date(text: str | None) -> datetime.date:
    """The date from which the age of prices is counted: as given, or `today`.

    Raises ScenarioError for a day before 2000 or after the first of 2100, which workbooks cannot count from.
    """
    return day(text, "as_of") if text else today()


MOST_TEXT = 200  # characters
MOST = 1e15
PERCENTAGES = (50, 99)  # that can be no share: 1 is all of it, and 1.5 or 2 may be meant as a factor
LEAST = 1e-9  # the least value of a number that must be above 0


@dataclass(frozen=True)
class Kind:
    """The kind of an input: a number within bounds, a text, a date, a precision or a word; blank only where `blank` is
    set.

    what: number, share (shown as a percentage), whole, tokens (a whole number, 16k too), text, line (a text that stays
    one line on the command line too), name (without a slash), any (a number or a text), date, dtype, auto dtype
    (auto as well), weights dtype (recommended and published as well), currency, or word (one of `words`).
    decimal: 200k is 200,000 where it is written as text. percent: 50 to 99 is a percentage there; 90% is of any share.
    """

    what: str = "number"
    low: float = 0
    high: float = MOST
    blank: bool = False
    words: tuple[str, ...] = ()
    decimal: bool = False
    percent: bool = False

    @property
    def is_number(self) -> bool:
        return self.what in ("number", "share", "whole", "tokens")

    @property
    def is_whole(self) -> bool:
        return self.what in ("whole", "tokens")

    @property
    def holds(self) -> str:
        """The type of content of a cell of that kind: number, date, text or any."""
        if self.is_number:
            return "number"
        return self.what if self.what in ("date", "any") else "text"

    def read(self, value: object, name: str) -> Raw:
        """`value` from data, in the form in which it is kept. Raises ScenarioError with the value and what is
        allowed."""
        if value is None or (isinstance(value, str) and not value.strip()):
            if self.blank:
                return None
            raise ScenarioError(f"{name} is blank. It must be {self}.")
        try:
            return self._kept(value)
        except (ValueError, SheetgenError):
            if self.holds == "text" and isinstance(value, str) and not value.isprintable():
                cure = "It holds a line break or a control character. Write it on one line."
                raise ScenarioError(f"{name} is {shown(value)!r}. {cure}") from None
            raise ScenarioError(f"{name} is {shown(value)!r}. It must be {self}.") from None

    def _kept(self, value: object) -> Raw:
        """`value` from data, in the form in which it is kept. Raises ValueError or ScenarioError where it is not of
        this kind."""
        if self.what == "date":
            return day(value.date() if isinstance(value, datetime.datetime) else value, "")
        if self.what == "dtype":
            precision = dtype(value, "")
            if precision == AUTO:
                raise ValueError
            return precision
        if isinstance(value, bool):
            raise ValueError
        if self.what in ("text", "line", "name") or (self.what == "any" and isinstance(value, str)):
            text = str(value)
            if not text.isprintable() or len(text) > MOST_TEXT or (self.what == "name" and "/" in text):
                raise ValueError
            return text
        if not isinstance(value, (int, float)) or not self.takes(value):
            raise ValueError
        return int(value) if float(value).is_integer() else value

    def takes(self, number: float) -> bool:
        """True where a number is within the bounds, and whole where it must be; NaN never is."""
        return self.low <= number <= self.high and not (self.is_whole and number != int(number))

    def number(self, value: object) -> float:
        """The number that a text on a command line writes, NaN where it is none: of a share 90% is 0.9."""
        if self.decimal:
            return people(value)
        text = str(value).strip()
        if self.what == "share" and text.endswith("%"):
            return number(text[:-1]) / 100
        return number(text) / 100 if self.is_percentage(value) else number(text)

    def is_percentage(self, value: object) -> bool:
        """True where a number without a sign can only be meant in per cent, of what is no discount: 90 is 0.9."""
        return self.percent and PERCENTAGES[0] <= number(value) <= PERCENTAGES[1]

    def parse(self, value: object, name: str) -> Raw:
        """`value` from its text on a command line. Raises ScenarioError with the value and what is allowed."""
        match self.what:
            case "text":
                return str(value)
            case "line":
                return self.read(str(value), name)
            case "tokens":
                return tokens(value, name)
            case "date":
                return day(value, name).isoformat()
            case "auto dtype" | "weights dtype":
                return dtype(value, name)
            case "word":
                return one_of(value, name, self.words)
            case "currency":
                text = str(value).strip().upper()
                if not re.fullmatch(r"[A-Z]{3}", text):
                    raise ScenarioError(f"{name} is {shown(value)!r}. Write its three letters, such as EUR.")
                return text
        if self.is_whole and (cure := plainly(value)):
            raise ScenarioError(f"{name} is {shown(value)!r}. {cure}")
        parsed = self.number(value)
        if not self.takes(parsed):
            is_percent = self.what == "share" and parsed > 1 and self.takes(parsed / 100)
            cure = f" Write {parsed / 100:g} or {parsed:g}%." if is_percent else ""
            raise ScenarioError(f"{name} is {shown(value)!r}. It must be {self}.{cure}")
        return int(parsed) if self.is_whole else parsed

    def __str__(self) -> str:
        if self.is_number:
            span = f"from {_plain(self.low)} to" if self.low != LEAST else "above 0 and up to"
            return f"{'a whole number' if self.is_whole else 'a number'} {span} {_plain(self.high)}"
        if self.what == "date":
            return f"a date such as 2026-11-20, from {FIRST_DAY} to {LAST_DAY}"
        if self.what == "any":
            return f"a number, or a text of at most {MOST_TEXT} characters"
        if self.what == "dtype":
            return f"one of {', '.join(DTYPES)}"
        return f"a text of at most {MOST_TEXT} characters{' without a slash' if self.what == 'name' else ''}"


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) and abs(number) < MOST else f"{number:g}"


ANY = Kind()
FLAG = Kind("whole", 0, 1)
SHARE, SHARE_ABOVE_0 = Kind("share", 0, 1), Kind("share", LEAST, 1)
COUNT = Kind("whole", 1, 10_000_000)
PEOPLE = Kind("whole", 1, 1_000_000_000, decimal=True)
TOKENS = Kind("tokens", 1, MAX_TOKENS)
TEXT = Kind("text", blank=True)
DAY = Kind("date", blank=True)


def name_part(text: str) -> str:
    """A catalog id as part of a cell's name: dots and dashes become underscores."""
    return "".join(c if c.isalnum() else "_" for c in text)


def plain(value: object) -> Raw:
    """A kept value as JSON and YAML write it."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.isoformat() if isinstance(value, datetime.date) else value
