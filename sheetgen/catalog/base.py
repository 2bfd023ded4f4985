"""What every catalog entry has in common: strict, frozen, and text that is safe to put on a page."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sheetgen.catalog.reader import Loc
from sheetgen.errors import did_you_mean
from sheetgen.units import DTYPE_ALIASES, DTYPES

T = TypeVar("T")

_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_DATE = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?")
_LINK = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|\b(javascript|vbscript|data):(?=\S)", re.IGNORECASE)


def _text(value: str) -> str:
    """Text for a page: no spreadsheet formula, no link but to the web."""
    if not value.strip():
        raise ValueError("is empty")
    if value.startswith(("=", "+", "-", "@", "{", "\t", "|")):
        raise ValueError("starts with a character that a spreadsheet reads as a formula (= + - @ { |)")
    for match in _LINK.finditer(value):
        if (match.group(1) or match.group(2)).lower() not in ("http", "https"):
            raise ValueError("holds a link that is neither http nor https")
    return value


def _label(value: str) -> str:
    if "\n" in _text(value) or "<" in value or ">" in value:
        raise ValueError("holds a line break or one of < >, which a name may not")
    if len(value) > 120:
        raise ValueError(f"has {len(value)} characters; a name may have 120")
    return value


def _id(value: str) -> str:
    if not _ID.fullmatch(value) or len(value) > 100 or ".." in value:
        raise ValueError("is no id: lower case letters, digits, dot, dash and underscore")
    return value


def _date(value: str) -> str:
    if not _DATE.fullmatch(value):
        raise ValueError("is no date: write YYYY, YYYY-MM or YYYY-MM-DD")
    year, *rest = (int(part) for part in value.split("-"))
    try:
        datetime.date(year, *[*rest, 1, 1][:2])
    except ValueError:
        raise ValueError("is no day of the calendar") from None
    if not 2000 <= year <= 2100:
        raise ValueError("is not between 2000 and 2100")
    return value


def _dtype(value: str) -> str:
    name = DTYPE_ALIASES.get(value, value)
    if name not in DTYPES:
        raise ValueError(f"is not one of {', '.join(DTYPES)}.{did_you_mean(value, DTYPES)}".rstrip("."))
    return name


Text = Annotated[str, AfterValidator(_text)]
Label = Annotated[str, AfterValidator(_label)]
Id = Annotated[str, AfterValidator(_id)]
Date = Annotated[str, AfterValidator(_date)]
DtypeName = Annotated[str, AfterValidator(_dtype)]
Count = Annotated[int, Field(gt=0, le=10**18)]
CountOrZero = Annotated[int, Field(ge=0, le=10**18)]
Many = Annotated[tuple[T, ...], Field(strict=False)]  # a YAML list, kept as a tuple


class Entry(BaseModel):
    """A part of a catalog file. Nothing is converted, nothing unknown passes, nothing changes later."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)
    id_field: ClassVar[str] = "id"  # the field that says the file's name

    def problems(self) -> Iterator[tuple[Loc, str]]:
        """What is wrong although every field by itself is right: where, and one sentence."""
        yield from ()
