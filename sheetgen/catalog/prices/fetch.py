"""The text of a price list: a local file, or a web address that the user named. Nothing else is ever fetched."""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise CatalogError(f"{name}:{line}: is not UTF-8 text. Save it as UTF-8.") from error
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
