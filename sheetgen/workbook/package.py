"""A user's file, held at arm's length: what kind it is, and a zip archive only if it is a small and honest one.

What the archive says of its sizes is checked before any of it is read, and zipfile never reads more of a member than
was said. XML is read only where it is small, well formed and without a document type, which all entity tricks need.
"""

from __future__ import annotations

import io
import math
import stat
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from sheetgen.errors import SheetgenError, shown

_CHUNK = 1 << 20
MB = 10**6
MOST_FILE_BYTES = 32 * MB
MOST_MEMBERS = 2_000
MOST_DIRECTORY_BYTES = 1 * MB  # of the archive's list of members
MOST_UNPACKED_BYTES = 256 * MB
MOST_PART_BYTES = 24 * MB  # of a part that is read
MOST_RATIO, RATIO_FROM_BYTES = 200, 1 * MB  # unpacked over packed; a sheet of formulas reaches 30

COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # Excel before 2007, and any workbook with a password
SAVE_AS = "Save it as an Excel workbook (.xlsx) and try again."
COPY_AGAIN = "Copy it again from where it came."
SAVE_ANEW = "Open it in Excel or LibreOffice, save it as .xlsx and try again."
CONTENT_TYPES = "[Content_Types].xml"
MOST_DEPTH = 64
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/"


class WorkbookError(SheetgenError):
    """A workbook, or the JSON of a sheet, that cannot be read: the file, what is wrong, what to do."""


def read_file(path: Path) -> bytes:
    """All of a regular file that is not too large. Raises WorkbookError."""
    where = shown(path, 200)
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise WorkbookError(f"{where}: is a folder. Name the file in it.")
        if not stat.S_ISREG(found.st_mode):
            raise WorkbookError(f"{where}: is not a file. Name a workbook.")
        if found.st_size > MOST_FILE_BYTES:
            raise WorkbookError(
                f"{where}: has {found.st_size / MB:,.0f} MB; the most that is read is {MOST_FILE_BYTES // MB} MB. "
                "Take out the pictures and data that sheetgen did not write."
            )
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise WorkbookError(f"{where}: cannot be read ({reason}). Check its name and who may read it.") from error
    if not data:
        raise WorkbookError(f"{where}: is empty. Give the workbook that sheetgen built, or build it anew.")
    return data


def open_package(data: bytes, where: str) -> zipfile.ZipFile:
    """The archive of a workbook, its sizes checked. Raises WorkbookError for all that is no plain .xlsx."""
    if data.startswith(COMPOUND_FILE):
        raise WorkbookError(f"{where}: {_compound(data)}")
    if data.startswith(b"%PDF-"):
        raise WorkbookError(f"{where}: is a PDF, not a workbook. Give the .xlsx beside it.")
    if not data.startswith(b"PK"):
        start = shown(data[:24].decode("utf-8", "replace"), 24)
        raise WorkbookError(f"{where}: is no workbook; it begins with {start!r}. Give the .xlsx that sheetgen built.")
    guarded = _Guarded(data)
    try:
        package = zipfile.ZipFile(guarded)
    except _TooLong as error:
        raise WorkbookError(f"{where}: lists far more parts than a workbook has. It is not opened.") from error
    except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, ValueError, NotImplementedError) as error:
        raise WorkbookError(f"{where}: is damaged or cut short ({shown(error)}). {COPY_AGAIN}") from error
    guarded.most = math.inf
    for problem in (*_sizes(package.infolist()), *_kind(package, where)):
        raise WorkbookError(f"{where}: {problem}")
    return package


class _TooLong(Exception):
    """The list of an archive's members is longer than any workbook's."""


class _Guarded(io.BytesIO):
    """Bytes that refuse one long read: zipfile takes the whole list of members, as long as the file says it is."""

    most: float = MOST_DIRECTORY_BYTES

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self.most:
            raise _TooLong
        return super().read(size)


def read_member(package: zipfile.ZipFile, name: str, where: str) -> bytes:
    """One member, whole. Raises WorkbookError where it is missing, damaged or too large."""
    try:
        size = package.getinfo(name).file_size
        if size > MOST_PART_BYTES:
            raise WorkbookError(
                f"{where}: its part {shown(name)} has {size / MB:,.0f} MB; the most that is read is "
                f"{MOST_PART_BYTES // MB} MB. Take out the rows that sheetgen did not write."
            )
        with package.open(name) as member:  # by pieces: one long read unpacks past the size that is stated
            return b"".join(iter(lambda: member.read(_CHUNK), b""))
    except KeyError:
        raise WorkbookError(f"{where}: lacks its part {shown(name)}. {SAVE_AS}") from None
    except WorkbookError:
        raise
    except Exception as error:  # zlib, lzma, bz2, struct and zipfile each raise their own
        raise WorkbookError(f"{where}: its part {shown(name)} is damaged ({shown(error)}). {COPY_AGAIN}") from error


def _sizes(members: list[zipfile.ZipInfo]) -> Iterator[str]:
    """What is wrong with the sizes and names that the archive states."""
    if len(members) > MOST_MEMBERS:
        yield f"holds {len(members):,} parts; a workbook has at most {MOST_MEMBERS:,}. It is not opened."
    unpacked = sum(m.file_size for m in members)
    if unpacked > MOST_UNPACKED_BYTES:
        yield f"unpacks to {unpacked / MB:,.0f} MB; {MOST_UNPACKED_BYTES // MB} MB are the most. It is not opened."
    for member in members:
        if member.file_size > RATIO_FROM_BYTES and member.file_size > MOST_RATIO * max(1, member.compress_size):
            ratio = member.file_size / max(1, member.compress_size)
            yield f"its part {shown(member.filename)} unpacks to {ratio:,.0f} times its size. It is not opened."
    twice = [name for name, n in Counter(m.filename for m in members).items() if n > 1]
    if twice:
        yield f"holds the part {shown(twice[0])} twice. {SAVE_AS}"
    if any(m.flag_bits & 1 for m in members):
        yield f"is an archive with a password. {SAVE_AS}"


def _kind(package: zipfile.ZipFile, where: str) -> Iterator[str]:
    """What else it is, where it is no .xlsx."""
    names = set(package.namelist())
    if "mimetype" in names:
        kind = read_member(package, "mimetype", where)[:80].decode("ascii", "replace")
        if "opendocument" in kind:
            yield f"is an OpenDocument file ({shown(kind.rpartition('.')[2])}). {SAVE_AS}"
    if "xl/workbook.bin" in names:
        yield f"is a binary workbook (.xlsb). {SAVE_AS}"
    if CONTENT_TYPES not in names or not any(n.startswith("xl/") for n in names):
        yield "is an archive, but no workbook. Give the .xlsx that sheetgen built."
    elif "xl/vbaProject.bin" in names or b"macroenabled" in read_member(package, CONTENT_TYPES, where).lower():
        yield f"holds macros (.xlsm). {SAVE_AS}"


def _compound(data: bytes) -> str:
    """What an OLE compound file is: its streams' names stand in it in UTF-16."""
    if "EncryptedPackage".encode("utf-16-le") in data:
        return "is protected with a password. Open it, take the password off (File, Info), save it and try again."
    if any(f"{name}\0".encode("utf-16-le") in data for name in ("Workbook", "Book")):
        return f"is a workbook of Excel 97-2003 (.xls). {SAVE_AS}"
    return f"is an old Office file, not an .xlsx. {SAVE_AS}"


class Refusal(Exception):
    """Why a part is not read."""


class Checked:
    """A part that was read through, so that nothing in it can keep the next reader busy without end."""

    characters: Callable[[str], Any] | None = None  # what takes the texts between the tags

    def __init__(self, data: bytes, part: str, where: str, most_elements: int) -> None:
        """Raises WorkbookError where the part is not well formed, declares a document type, or is too large."""
        self.elements = self.depth = 0
        self._most = most_elements
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self.start, self.end
        parser.StartDoctypeDeclHandler, parser.XmlDeclHandler = self._doctype, self._declaration
        parser.CharacterDataHandler = self.characters
        try:
            if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise Refusal(f"is not written in UTF-8. {SAVE_ANEW}")
            parser.Parse(data, True)
        except Refusal as refusal:
            raise WorkbookError(f"{where}: its part {shown(part)} {refusal}") from None
        except (expat.ExpatError, ValueError, LookupError) as error:  # the last two: an unknown encoding
            what = f"its part {shown(part)} is not well-formed XML ({shown(error)})"
            raise WorkbookError(f"{where}: {what}. {SAVE_ANEW}") from error

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        self.depth += 1
        if self.elements > self._most:
            raise Refusal("holds far more than sheetgen writes. Take out the rows that sheetgen did not write.")
        if self.depth > MOST_DEPTH:
            raise Refusal(f"is nested more than {MOST_DEPTH} deep. {SAVE_ANEW}")

    def end(self, name: str) -> None:
        self.depth -= 1

    def _doctype(self, *declared: object) -> None:
        raise Refusal("declares a document type (DOCTYPE), as no workbook does. It is not read.")

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "utf8", "us-ascii"):
            raise Refusal(f"is not written in UTF-8. {SAVE_ANEW}")


def read_xml(package: zipfile.ZipFile, part: str, where: str, most_elements: int) -> ElementTree.Element:
    """The checked tree of a small part. Raises WorkbookError."""
    data = read_member(package, part, where)
    Checked(data, part, where, most_elements)
    return ElementTree.fromstring(data)
