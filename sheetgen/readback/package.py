"""A user's file, treated with suspicion: only a small and honest zip archive is read, and what it says of itself is
checked.

What the archive says of its sizes is checked before any of it is read, and zipfile never reads more of a member than
was said. XML is read only where it is small, well formed and without a document type, which all entity tricks need.
Problems are raised without the file's name, which `naming` puts before them.
"""

from __future__ import annotations

import contextlib
import io
import math
import posixpath
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from xml.etree import ElementTree
from xml.parsers import expat

from sheetgen.book.sheets import column_name, column_number
from sheetgen.errors import SheetgenError, escaped, shown
from sheetgen.input_files import TooLargeError, read_bounded

_CHUNK = 1 << 20
MB = 10**6
MOST_FILE_BYTES = 64 * MB
MOST_MEMBERS = 2_000
MOST_DIRECTORY_BYTES = 1 * MB  # of the archive's list of members
MOST_UNPACKED_BYTES = 512 * MB  # LibreOffice writes every formula out: 43 MB of five models
MOST_PART_BYTES = 128 * MB  # of a part that is read at once; sheets are read by pieces
MOST_RATIO, RATIO_FROM_BYTES = 200, 1 * MB  # unpacked over packed; a sheet of formulas reaches 30
MOST_DEPTH = 64
MOST_ELEMENTS = 50_000  # of a part that lists things; ours have some hundreds
MOST_ROWS = 200_000  # of any sheet, read or not
MOST_ROW, MOST_COLUMN = 50_000, 1_000  # where a named cell may stand; a sheet of ours is far smaller
MOST_TABLE_ROWS = 5_000

COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # Excel before 2007, and any workbook with a password
SAVE_AS = "Save it as an Excel workbook (.xlsx) and try again."
COPY_AGAIN = "Copy it again from where it came."
SAVE_ANEW = "Open it in Excel or LibreOffice, save it as .xlsx and try again."
NAME_MANAGER = "Mend it in Formulas, Name Manager (LibreOffice: Sheet, Named Ranges), or start from a fresh build."
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/"
_CONTENT_TYPES, _CUSTOM = "[Content_Types].xml", "docProps/custom.xml"
_RELATIONS = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_REL_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PROPERTY = "{http://schemas.openxmlformats.org/officeDocument/2006/custom-properties}property"

CELLS, COLUMNS = ("in_", "rec_", "meta_"), ("cat_",)
_AREA = re.compile(
    r"(?:'((?:[^']|'')+)'|([^'!\[\]#(),]+))!\$?([A-Z]{1,3})\$?(\d{1,7})(?::\$?([A-Z]{1,3})\$?(\d{1,7}))?"
)
_OTHER_FILE = re.compile(r"\[|file:|#\$")
_WHOLE = re.compile(r".*!\$?[A-Z]{1,3}:\$?[A-Z]{1,3}|.*!\$?\d+:\$?\d+")


class WorkbookError(SheetgenError):
    """A workbook, or the JSON of a sheet, that cannot be read: the file, what is wrong, what to do."""


@contextlib.contextmanager
def naming(path: Path | str, kind: type[SheetgenError] = WorkbookError) -> Iterator[None]:
    """Put the file's name before each problem with it, which is raised as `kind`."""
    try:
        yield
    except SheetgenError as error:
        raise kind(*(f"{shown(path, 200)}: {problem}" for problem in error.problems)) from error


def read_file(path: Path) -> bytes:
    """All bytes of a file or a pipe that is not too large. Raises WorkbookError, with its name."""
    with naming(path):
        try:
            data = read_bounded(path, MOST_FILE_BYTES, "Name the file itself", pipes=True)
        except TooLargeError as error:
            raise WorkbookError(f"{error}. Take out the pictures and data that sheetgen did not write.") from error
        except ValueError as error:
            cure = " Check its name and who may read it." if error.__cause__ else ""
            raise WorkbookError(f"{error}.{cure}") from error
        if not data:
            raise WorkbookError("is empty. Give the workbook that sheetgen built, or build it anew.")
    return data


def _opened(data: bytes) -> zipfile.ZipFile:
    """The archive of a workbook, its sizes checked. Raises WorkbookError for everything that is no plain .xlsx."""
    if data.startswith(COMPOUND_FILE):
        raise WorkbookError(_compound(data))
    if data.startswith(b"%PDF-"):
        raise WorkbookError("is a PDF, not a workbook. Give the .xlsx beside it.")
    if not data.startswith(b"PK"):
        raise WorkbookError("is no workbook: it is no ZIP archive, as an .xlsx is. Give the one that sheetgen built.")
    guarded = _Guarded(data)
    try:
        package = zipfile.ZipFile(guarded)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, ValueError, NotImplementedError) as error:
        raise WorkbookError(f"is damaged or cut short ({shown(error)}). {COPY_AGAIN}") from error
    guarded.most = math.inf
    for problem in _refusals(package):
        raise WorkbookError(problem)
    return package


class _Guarded(io.BytesIO):
    """Bytes that refuse one long read: zipfile reads the whole list of members, however long the file says it is."""

    most: float = MOST_DIRECTORY_BYTES

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self.most:
            raise WorkbookError("lists far more parts than a workbook has. It is not opened.")
        return super().read(size)


def _pieces(package: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """A member in pieces: one long read unpacks beyond the size that is stated."""
    with package.open(name) as member:
        while piece := member.read(_CHUNK):
            yield piece


def read_member(package: zipfile.ZipFile, name: str) -> bytes:
    """One member, whole. Raises WorkbookError where it is missing, damaged or too large."""
    if name not in package.namelist():
        raise WorkbookError(f"lacks its part {shown(name)}. {SAVE_AS}")
    size = package.getinfo(name).file_size
    if size > MOST_PART_BYTES:
        raise WorkbookError(
            f"its part {shown(name)} has {size / MB:,.0f} MB; the most that is read is {MOST_PART_BYTES // MB} MB. "
            "Take out the rows that sheetgen did not write."
        )
    return b"".join(sound_pieces(package, name))


def _refusals(package: zipfile.ZipFile) -> Iterator[str]:
    """Problems of the sizes and names that the archive states; then the kind of file that it is, where it is no
    .xlsx."""
    members, names = package.infolist(), package.namelist()
    if len(members) > MOST_MEMBERS:
        yield f"holds {len(members):,} parts; a workbook has at most {MOST_MEMBERS:,}. It is not opened."
    unpacked = sum(m.file_size for m in members)
    if unpacked > MOST_UNPACKED_BYTES:
        yield f"unpacks to {unpacked / MB:,.0f} MB; {MOST_UNPACKED_BYTES // MB} MB are the most. It is not opened."
    for member in members:
        ratio = member.file_size / max(1, member.compress_size)
        if member.file_size > RATIO_FROM_BYTES and ratio > MOST_RATIO:
            yield f"its part {shown(member.filename)} unpacks to {ratio:,.0f} times its size. It is not opened."
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        yield f"holds the part {shown(twice[0])} twice. {SAVE_AS}"
    if any(m.flag_bits & 1 for m in members):
        yield f"is an archive with a password. {SAVE_AS}"
    if "mimetype" in names:
        kind = read_member(package, "mimetype")[:80].decode("ascii", "replace")
        if "opendocument" in kind:
            yield f"is an OpenDocument file ({shown(kind.rpartition('.')[2])}). {SAVE_AS}"
    if "xl/workbook.bin" in names:
        yield f"is a binary workbook (.xlsb). {SAVE_AS}"
    if _CONTENT_TYPES not in names or not any(n.startswith("xl/") for n in names):
        yield "is an archive, but no workbook. Give the .xlsx that sheetgen built."
    elif "xl/vbaProject.bin" in names or b"macroenabled" in read_member(package, _CONTENT_TYPES).lower():
        yield f"holds macros (.xlsm). {SAVE_AS}"


def _compound(data: bytes) -> str:
    """The sentence on the kind of an OLE compound file: it contains its streams' names in UTF-16."""
    if "EncryptedPackage".encode("utf-16-le") in data:
        return "is protected with a password. Open it, take the password off (File, Info), save it and try again."
    if any(f"{name}\0".encode("utf-16-le") in data for name in ("Workbook", "Book")):
        return f"is a workbook of Excel 97-2003 (.xls). {SAVE_AS}"
    return f"is an old Office file, not an .xlsx. {SAVE_AS}"


def read_xml(package: zipfile.ZipFile, part: str, most_elements: int) -> ElementTree.Element:
    """The tree of a part that was read through first, so that nothing in it can keep its parser busy without end.

    Raises WorkbookError where it is not well formed, declares a document type, or is too large.
    """
    data = read_member(package, part)
    walk(part, [data], most_elements, expat.ParserCreate())
    with _well_formed(part):
        return ElementTree.fromstring(data)


def sound_pieces(package: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    """A part in pieces. Raises WorkbookError where it is damaged."""
    pieces = _pieces(package, part)
    while True:
        try:
            piece = next(pieces, None)
        except Exception as error:  # zlib, lzma, bz2, struct and zipfile each raise their own
            raise WorkbookError(f"its part {shown(part)} is damaged ({shown(error)}). {COPY_AGAIN}") from error
        if piece is None:
            return
        yield piece


def walk(part: str, pieces: Iterable[bytes], most_elements: int, parser: expat.XMLParserType) -> int:
    """Read the pieces of a part with a parser, which may have its own handlers for elements. Returns the number of
    elements. Raises as `read_xml` does."""
    n_elements = depth = 0
    of_start: Any = parser.StartElementHandler
    of_end: Any = parser.EndElementHandler

    def refuse(why: str) -> NoReturn:
        raise WorkbookError(f"its part {shown(part)} {why}")

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal n_elements, depth
        n_elements += 1
        depth += 1
        if n_elements > most_elements:
            refuse("holds far more than sheetgen writes. Take out the rows that sheetgen did not write.")
        if depth > MOST_DEPTH:
            refuse(f"is nested more than {MOST_DEPTH} deep. {SAVE_ANEW}")
        if of_start:
            of_start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        if of_end:
            of_end(name)

    def doctype(*declared: object) -> None:
        refuse("declares a document type (DOCTYPE), as no workbook does. It is not read.")

    def declaration(version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "utf8", "us-ascii"):
            refuse(f"is not written in UTF-8. {SAVE_ANEW}")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler, parser.XmlDeclHandler = doctype, declaration
    is_first = True
    with _well_formed(part):
        for piece in pieces:
            if is_first and piece[:2] in (b"\xff\xfe", b"\xfe\xff"):
                refuse(f"is not written in UTF-8. {SAVE_ANEW}")
            is_first = False
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    return n_elements


@contextlib.contextmanager
def _well_formed(part: str) -> Iterator[None]:
    try:
        yield
    except (expat.ExpatError, ElementTree.ParseError, ValueError, LookupError) as error:  # unknown encodings: the last
        raise WorkbookError(f"its part {shown(part)} is not well-formed XML ({shown(error)}). {SAVE_ANEW}") from error


class DefinedName(NamedTuple):
    """A defined name as the file has it; `sheet` is the sheet that it is local to."""

    name: str
    text: str
    sheet: str | None


@dataclass(frozen=True)
class Place:
    """One cell as messages name it. Rows and columns count from 1."""

    sheet: str
    row: int
    column: int

    def __str__(self) -> str:
        sheet = f"'{self.sheet}'" if re.search(r"\W", self.sheet) else self.sheet
        return f"{escaped(sheet)}!{column_name(self.column - 1)}{self.row}"


class Area(NamedTuple):
    """The cells of one name: the first, and the number of rows from there."""

    sheet: str
    row: int
    column: int
    n_rows: int

    def place(self, down: int = 0) -> Place:
        """The cell so many rows below the first."""
        return Place(self.sheet, self.row + down, self.column)


@dataclass(frozen=True)
class Outline:
    """A workbook before any cell is read. Sheets and parts stand under their names in the archive."""

    package: zipfile.ZipFile
    sheets: Mapping[str, str]
    names: Sequence[DefinedName]
    properties: Mapping[str, str]
    from_1904: bool
    strings: str | None
    styles: str | None


def outline(data: bytes) -> Outline:
    """The outline of a workbook. Raises WorkbookError where it is no plain .xlsx, or one that openpyxl cannot read."""
    package = _opened(data)
    read_xml(package, _CONTENT_TYPES, MOST_ELEMENTS)
    documents = (target for kind, target in _relations(package, "").values() if kind == "officeDocument")
    book = next(documents, "xl/workbook.xml")
    root = read_xml(package, book, MOST_ELEMENTS)
    if root.tag.startswith("{" + STRICT):
        raise WorkbookError(f"is saved as Strict Open XML. {SAVE_AS}")
    if root.tag != f"{{{MAIN}}}workbook":
        raise WorkbookError("is an Office file, but no workbook. Give the .xlsx that sheetgen built.")
    targets = _relations(package, book)
    members = set(package.namelist())
    order = [(s.get("name", ""), targets.get(s.get(_REL_ID, ""), ("", ""))) for s in root.iter(f"{{{MAIN}}}sheet")]
    sheets = {name: target for name, (kind, target) in order if kind == "worksheet" and target in members}
    for name, part in sheets.items():
        _check_rows(package, part, name)
    properties = root.find(f"{{{MAIN}}}workbookPr")
    of_kind = {kind: target for kind, target in targets.values() if target in members}
    custom = read_xml(package, _CUSTOM, MOST_ELEMENTS).iter(_PROPERTY) if _CUSTOM in members else ()
    is_1904 = properties is not None and properties.get("date1904", "0") in ("1", "true")
    return Outline(
        package,
        sheets,
        tuple(_names(root, [name for name, _ in order])),
        {entry.get("name", ""): "".join(entry.itertext()).strip() for entry in custom},
        is_1904,
        of_kind.get("sharedStrings"),
        of_kind.get("styles"),
    )


def _relations(package: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """By id, what a part refers to within the archive: the last word of the relation's kind, and the name."""
    folder, name = posixpath.split(part)
    root = read_xml(package, posixpath.join(folder, "_rels", f"{name}.rels"), MOST_ELEMENTS)
    relations = {}
    for relation in root.iter(_RELATIONS):
        if relation.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
            relations[relation.get("Id", "")] = relation.get("Type", "").rpartition("/")[2], target
    return relations


def _names(root: ElementTree.Element, order: Sequence[str]) -> Iterator[DefinedName]:
    for element in root.iter(f"{{{MAIN}}}definedName"):
        local = element.get("localSheetId")
        sheet = None
        if local is not None:
            sheet = order[int(local)] if local.isdecimal() and int(local) < len(order) else "?"
        yield DefinedName(element.get("name", ""), element.text or "", sheet)


def _check_rows(package: zipfile.ZipFile, part: str, sheet: str) -> None:
    """Refuse a sheet with a great many rows, even one that is not read: it cannot be meant for us."""
    rows, rest = 0, b""
    try:
        for piece in _pieces(package, part):
            rows += (rest + piece).count(b"<row ")
            rest = piece[-4:]
            if rows > MOST_ROWS:
                break
    except Exception as error:  # as in sound_pieces
        raise WorkbookError(f"its sheet {shown(sheet)!r} is damaged ({shown(error)}). {SAVE_AS}") from error
    if rows > MOST_ROWS:
        problem = f"its sheet {shown(sheet)!r} has more than {MOST_ROWS:,} rows"
        raise WorkbookError(f"{problem}. Delete that sheet, or those rows, and try again.")


def areas(book: Outline) -> dict[str, Area]:
    """Our names, each with its area on one of the sheets, in the order of sheets, rows and columns.

    A name that is local to a sheet is passed over: a copied sheet has such names beside the workbook's.

    Raises WorkbookError with a line for each way in which names are broken.
    """
    placed: dict[str, Area] = {}
    broken: dict[str, list[str]] = defaultdict(list)
    local: dict[str, str] = {}
    seen: set[str] = set()
    order = list(book.sheets)
    by_lower = {name.lower(): name for name in order}
    for defined in book.names:
        name = defined.name.lower()  # spreadsheets ignore case
        if not name.startswith((*CELLS, *COLUMNS)):
            continue
        if defined.sheet is not None:
            local[name] = defined.sheet
            continue
        area = "stands twice in the workbook" if name in seen else _area(name, defined.text, by_lower)
        seen.add(name)
        if isinstance(area, Area):
            placed[name] = area
        else:
            broken[area].append(name)
    for name, sheet in local.items():
        if name not in seen:
            broken[f"is defined for the sheet {shown(sheet)!r} alone, not for the workbook"].append(name)
    if broken:
        raise WorkbookError(*(f"the name {listed(names)} {why}. {NAME_MANAGER}" for why, names in broken.items()))
    return dict(sorted(placed.items(), key=lambda entry: (order.index(entry[1].sheet), entry[1].row, entry[1].column)))


def listed(names: Iterable[str], most: int = 4) -> str:
    """A few names, and how many more there are."""
    every = [shown(name, 80) for name in names]
    rest = f" (and {len(every) - most:,} more)" if len(every) > most else ""
    return ", ".join(every[:most]) + rest


def _area(name: str, text: str, sheets: Mapping[str, str]) -> Area | str:
    """The area of a name, or the problem with it."""
    text = text.strip().removeprefix("=")
    if "#REF!" in text:
        return "points to a cell that was deleted (#REF!)"
    if _OTHER_FILE.search(text):
        return f"points to another file ({shown(text)})"
    if _WHOLE.fullmatch(text):
        return f"points to whole rows or columns ({shown(text)})"
    match = _AREA.fullmatch(text)
    if match is None:
        return f"points to no plain cells ({shown(text)})"
    sheet = (match[1] or match[2]).replace("''", "'")
    if sheet.lower() not in sheets:
        return f"points to the sheet {shown(sheet)!r}, which is not in the workbook"
    left, right = sorted(1 + column_number(column) for column in (match[3], match[5] or match[3]))
    top, bottom = sorted((int(match[4]), int(match[6] or match[4])))
    n_rows = bottom - top + 1
    if name.startswith(CELLS) and (n_rows > 1 or right > left):
        return "points to more cells than one"
    if right > left:
        return "points to more columns than one"
    if n_rows > MOST_TABLE_ROWS:
        return f"points to {n_rows:,} rows, more than the {MOST_TABLE_ROWS:,} that are read"
    area = Area(sheets[sheet.lower()], top, left, n_rows)
    if not (top >= 1 and bottom <= MOST_ROW and right <= MOST_COLUMN):
        return f"points to {area.place(n_rows - 1)}, too far out to be read"
    return area
