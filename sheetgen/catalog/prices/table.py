"""A price list: its text, from a file or a web address; its lines with their numbers; a cell as a price, a day, a name.

The address is one that the user named: nothing else is ever fetched. What is wrong with a line is kept beside it, not
raised; what is wrong with a cell is a ValueError with what it must be.
"""

from __future__ import annotations

import csv
import datetime
import http.client
import io
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sheetgen.catalog.base import decoded
from sheetgen.errors import CatalogError, shown

MAX_BYTES = 32 * 2**20
SILENCE_SECONDS = 30  # how long a server may say nothing
FETCH_SECONDS = 120  # how long a whole list may take
_CHUNK = 2**16
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*)://")
_HANDLERS = (  # what urllib opens by itself, less file:, ftp: and data:
    urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler,
    urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPRedirectHandler, urllib.request.HTTPErrorProcessor,
    urllib.request.UnknownHandler,
)  # fmt: skip
_STARTS = (  # the first bytes of what people take for CSV
    (b"\x1f\x8b", "is compressed (gzip). Unpack it first"),
    (b"PK\x03\x04", "is a zip archive or an Excel workbook. Save the sheet as CSV"),
    (b"\xff\xfe", "is UTF-16 text. Save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16 text. Save it as UTF-8"),
    (b"<", "is a web page or XML, not CSV. Name the file itself"),
    (b"{", "is JSON, not CSV"),
    (b"[", "is JSON, not CSV"),
)


@dataclass(frozen=True)
class ListText:
    """A price list as it was read: its name in messages, its name in a catalog row's source, its text."""

    where: str
    cited: str
    text: str


def read_list(place: str) -> ListText:
    """The list at `place`, a path or an http(s) address.

    Raises CatalogError, one line, where it cannot be read, is no text, or has more than 32 MiB.
    """
    if scheme := _SCHEME.match(place):
        if scheme[1].lower() not in ("http", "https"):
            raise CatalogError(f"{shown(place, 200)}: is neither a file nor an address of http or https.")
        name = _public(place.strip())
        raw = _fetched(place.strip(), name)
        cited = name
    else:
        name = shown(place, 300)
        raw = _file(Path(place), name)
        cited = Path(place).name
    return ListText(name, _plain_name(cited), _text(raw, name))


def _file(path: Path, name: str) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise CatalogError(f"{name}: is {'a folder' if path.is_dir() else 'not a file'}. Name a CSV file.")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        raise CatalogError(f"{name}: cannot be read ({shown(getattr(error, 'strerror', None) or error)}).") from error
    return _bounded(raw, name)


def _fetched(url: str, name: str) -> bytes:
    if "@" in url.split("/")[2]:
        raise CatalogError(f"{name}: has a user or a password before the host, which is not sent. Take it out.")
    opener = urllib.request.OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    try:
        opener.addheaders = [("User-Agent", "sheetgen"), ("Accept", "text/csv, text/plain;q=0.9, */*;q=0.1")]
        answer = opener.open(url, timeout=SILENCE_SECONDS)
        with answer:
            return _bounded(_received(answer, name), name)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise CatalogError(f"{name}: cannot be fetched ({shown(_reason(error), 100)}).") from error


def _received(answer: Any, name: str) -> bytes:
    """The body in pieces: a server that drips bytes does not hold the command for ever."""
    until = time.monotonic() + FETCH_SECONDS
    raw = bytearray()
    while piece := answer.read1(_CHUNK):
        raw += piece
        if len(raw) > MAX_BYTES:
            break
        if time.monotonic() > until:
            raise CatalogError(f"{name}: cannot be fetched (not all of it came within {FETCH_SECONDS} seconds).")
    stated = answer.headers.get("Content-Length", "")
    if stated.isdecimal() and len(raw) < min(int(stated), MAX_BYTES):
        raise CatalogError(f"{name}: cannot be fetched (it ended after {len(raw):,} of {int(stated):,} bytes).")
    return bytes(raw)


def _reason(error: Exception) -> object:
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return getattr(error.reason, "strerror", None) or error.reason
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _bounded(raw: bytes, name: str) -> bytes:
    if len(raw) > MAX_BYTES:
        raise CatalogError(f"{name}: is larger than {MAX_BYTES // 2**20} MiB, the most that a price list may have.")
    return raw


def _text(raw: bytes, name: str) -> str:
    for start, what in _STARTS:
        if raw.lstrip().startswith(start):
            raise CatalogError(f"{name}: {what}.")
    text = decoded(raw, name)
    if not text.strip():
        raise CatalogError(f"{name}: is empty.")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise CatalogError(f"{name}:{line}: holds a NUL byte, so it is no text. Name a CSV file.")
    return text


def _public(url: str) -> str:
    """The address without what may be secret: user, password, query."""
    try:
        parts = urllib.parse.urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return shown(url.split("?")[0].rpartition("@")[2], 200)
    return shown(urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", "")), 200)


def _plain_name(name: str) -> str:
    """A name that may stand in a catalog row: no mark-up, no colon but of the scheme and the port."""
    scheme, sign, rest = name.rpartition("://")
    clean = re.sub(r":(?![0-9]+(/|$))|[^A-Za-z0-9 ._/@%+:-]", "_", rest)
    return f"{scheme}{sign}{clean}"[:120].strip() or "list"


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
