"""The files of price lists: from a folder, or from a web address that the user named (nothing else is ever fetched)."""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from sheetgen.catalog.prices.list_tables import Table, tables_of
from sheetgen.errors import CatalogError, shown
from sheetgen.input_files import TooLargeError, read_bounded

MAX_BYTES = 32 * 2**20
SILENCE_SECONDS = 30  # without data from the server
FETCH_SECONDS = 120  # for a whole list
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*)://")
_HANDLERS = (  # what urllib opens by itself, less file:, ftp: and data:
    urllib.request.ProxyHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPRedirectHandler,
    urllib.request.HTTPErrorProcessor,
    urllib.request.UnknownHandler,
)


@dataclass(frozen=True)
class ListFile:
    """A list: its name in messages, its name in a catalog row's source, and its tables (one per sheet of a
    workbook)."""

    where: str
    cited: str
    tables: tuple[Table, ...]


def read_list(place: str, sheet: str | None = None) -> ListFile:
    """The list at a path or an http(s) address; `sheet` selects one sheet of a workbook.

    Raises CatalogError with one problem where it cannot be read, holds no table, or has more than 32 MiB.
    """
    if scheme := _SCHEME.match(place):
        if scheme[1].lower() not in ("http", "https"):
            raise CatalogError(f"{shown(place, 200)}: is neither a file nor an address of http or https.")
        name = cited = _public(place.strip())
        raw = _fetched(place.strip(), name)
    else:
        name, cited = shown(place, 300), Path(place).name
        try:
            raw = read_bounded(Path(place), MAX_BYTES, "Name a CSV or Excel file", pipes=True)
        except ValueError as error:
            raise CatalogError(f"{name}: {error}.") from error
    # Safe in a catalog row: no mark-up, no colon except after the scheme and before a port.
    scheme_name, sign, rest = cited.rpartition("://")
    clean = re.sub(r":(?![0-9]+(/|$))|[^A-Za-z0-9 ._/@%+:-]", "_", rest)
    return ListFile(name, f"{scheme_name}{sign}{clean}"[:120].strip() or "list", tables_of(raw, name, sheet))


def _fetched(url: str, name: str) -> bytes:
    """The body of a response, read in pieces, so that a slow server cannot block the command for ever."""
    if "@" in url.split("/")[2]:
        raise CatalogError(f"{name}: has a user or a password before the host, which is not sent. Take it out.")
    opener = urllib.request.OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    opener.addheaders = [("User-Agent", "sheetgen"), ("Accept", "text/csv, text/plain;q=0.9, */*;q=0.1")]
    raw = bytearray()
    try:
        with opener.open(url, timeout=SILENCE_SECONDS) as answer:
            until = time.monotonic() + FETCH_SECONDS
            while len(raw) <= MAX_BYTES and (piece := answer.read1(2**16)):
                raw += piece
                if time.monotonic() > until:
                    late = f"not all of it came within {FETCH_SECONDS} seconds"
                    raise CatalogError(f"{name}: cannot be fetched ({late}).")
            stated = answer.headers.get("Content-Length", "")
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        if isinstance(error, urllib.error.HTTPError):
            reason = f"{error.code} {error.reason}"
            error.close()  # the exception holds the response
        raise CatalogError(f"{name}: cannot be fetched ({shown(reason, 100)}).") from error
    if len(raw) > MAX_BYTES:
        raise CatalogError(f"{name}: {TooLargeError(MAX_BYTES)}.")
    if stated.isdecimal() and len(raw) < min(int(stated), MAX_BYTES):
        raise CatalogError(f"{name}: cannot be fetched (it ended after {len(raw):,} of {int(stated):,} bytes).")
    return bytes(raw)


def _public(url: str) -> str:
    """The address without the parts that may be secret: user, password, query."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return shown(url.split("?")[0].rpartition("@")[2], 200)
    host = parts.netloc.rpartition("@")[2]
    return shown(urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", "")), 200)
