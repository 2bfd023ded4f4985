"""CSV text as lines with their numbers, and a cell of one as a price, a number, a day or a name.

What is wrong with a line is kept beside it, not raised; what is wrong with a cell is a ValueError with what it must be.
"""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sheetgen.catalog.prices.fetch import ListText
from sheetgen.errors import CatalogError, shown

MAX_LINES = 50_000
MAX_COLUMNS = 200


@dataclass(frozen=True)
class Fault:
    """Why one line of a list cannot be used."""

    where: str
    line: int
    what: str  # one sentence or two, with their full stops
    is_pair: bool = False  # another line, which `what` names, cannot be used either

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.what}"


@dataclass(frozen=True)
class Line:
    """One line under the header: its number in the file, and its cells by column."""

    number: int
    cells: dict[str, str]


@dataclass(frozen=True)
class Table:
    where: str
    cited: str
    header: tuple[str, ...]
    header_line: int
    lines: tuple[Line, ...]
    faults: tuple[Fault, ...]


def read_table(source: ListText) -> Table:
    """`source` as a table. Raises CatalogError where it is no CSV, or has a header only."""
    records = _records(source)
    first, head = next(records, (1, []))
    header = tuple(cell.lower() for cell in head)
    if len(header) > MAX_COLUMNS:
        raise CatalogError(
            f"{source.where}:{first}: has {len(header):,} columns. A price list has at most {MAX_COLUMNS}."
        )
    if twice := next((name for i, name in enumerate(header) if name and name in header[:i]), None):
        raise CatalogError(f"{source.where}:{first}: column {shown(twice)} is there twice. Keep one.")
    lines: list[Line] = []
    faults: list[Fault] = []
    for number, cells in records:
        if len(lines) + len(faults) >= MAX_LINES:
            raise CatalogError(f"{source.where}: has more than {MAX_LINES:,} lines. Keep the GPU rows.")
        if len(cells) == len(header):
            lines.append(Line(number, dict(zip(header, cells, strict=True))))
        else:
            columns = f"{len(cells)} cell{'' if len(cells) == 1 else 's'}"
            faults.append(Fault(source.where, number, f"has {columns} under a header of {len(header)} columns."))
    return Table(source.where, source.cited, header, first, tuple(lines), tuple(faults))


def _records(source: ListText) -> Iterator[tuple[int, list[str]]]:
    """The records that hold anything, each with the number of the line where it begins."""
    reader = csv.reader(io.StringIO(source.text, newline=""), strict=True)
    while True:
        begins = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise CatalogError(f"{source.where}:{begins}: is not valid CSV ({shown(error, 80)}).") from error
        if any(cell.strip() for cell in record):
            yield begins, [cell.strip() for cell in record]


LEAST_USD, MOST_USD = 1e-4, 1e6  # an hour: what the catalogs' schema takes

_NUMBER = re.compile(r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/+-]*")
_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def price_in(cells: dict[str, str], column: str, hours: int = 1) -> float | None:
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


def amount_in(cells: dict[str, str], column: str, unit: float = 1) -> float | None:
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


def name_in(cells: dict[str, str], column: str, optional: bool = False) -> str:
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


def day_in(cells: dict[str, str], column: str) -> str | None:
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
