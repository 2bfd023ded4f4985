"""Quarters of a fiscal year, and their days."""

from __future__ import annotations

import calendar
import datetime
import re
from typing import NamedTuple

from sheetgen.units import CAPACITY_BLOCK

_QUARTER = re.compile(r"(20[0-9]{2})-Q([1-4])")
QUARTERS_IN_A_YEAR, _MONTHS = 4, 12
MONTHS_IN_A_QUARTER = _MONTHS // QUARTERS_IN_A_YEAR
QUARTERS_OF_TERM = {"reserved-1yr": 4, "reserved-3yr": 12, CAPACITY_BLOCK: 1}  # other classes run on


def months_after(day: datetime.date, months: int) -> datetime.date:
    """The same day so many months later; the last of that month where it has no such day."""
    year, month = divmod(day.year * _MONTHS + day.month - 1 + months, _MONTHS)
    return datetime.date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


class Quarter(NamedTuple):
    """2027-Q1: the first quarter of the fiscal year that ends in 2027."""

    year: int
    number: int

    @classmethod
    def parse(cls, text: object) -> Quarter:
        """The quarter that a text such as 2027-Q1 names. Raises ValueError for any other value."""
        match = _QUARTER.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise ValueError("is no quarter. Write one such as 2027-Q1")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.year}-Q{self.number}"

    def after(self, quarters: int) -> Quarter:
        """The quarter so many later, or earlier where negative."""
        year, number = divmod(self.number - 1 + quarters, QUARTERS_IN_A_YEAR)
        return Quarter(self.year + year, number + 1)

    def since(self, other: Quarter) -> int:
        """Quarters from another to this one; negative where this one is earlier."""
        return (self.year - other.year) * QUARTERS_IN_A_YEAR + self.number - other.number

    def first_day(self, fiscal_year_starts: int) -> datetime.date:
        """Its first day, where the fiscal year starts in that month."""
        months = (self.number - 1) * MONTHS_IN_A_QUARTER + fiscal_year_starts - 1
        year = self.year - (fiscal_year_starts > 1) + months // _MONTHS
        return datetime.date(year, months % _MONTHS + 1, 1)

    def last_day(self, fiscal_year_starts: int) -> datetime.date:
        """Its last day, where the fiscal year starts in that month."""
        return self.after(1).first_day(fiscal_year_starts) - datetime.timedelta(days=1)


def quarter_of(day: datetime.date, fiscal_year_starts: int) -> Quarter:
    """The quarter in which a day lies."""
    months = (day.month - fiscal_year_starts) % _MONTHS
    year = day.year + (fiscal_year_starts > 1 and day.month >= fiscal_year_starts)
    return Quarter(year, months // MONTHS_IN_A_QUARTER + 1)
