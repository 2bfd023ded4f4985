"""What a workbook's package says of itself: its sheets, its properties, and where each of our names stands now."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from sheetgen.errors import escaped, shown
from sheetgen.sheet.model import column_name, column_number
from sheetgen.workbook.package import CONTENT_TYPES, MAIN, SAVE_AS, STRICT, WorkbookError, read_xml

CELLS, COLUMNS = ("in_", "rec_", "meta_"), ("cat_",)
PREFIXES = (*CELLS, *COLUMNS)
MOST_ROW, MOST_COLUMN = 50_000, 1_000  # where a named cell may stand; a sheet of ours is far smaller
MOST_TABLE_ROWS = 5_000

_AREA = re.compile(
    r"(?:'((?:[^']|'')+)'|([^'!\[\]#(),]+))!\$?([A-Z]{1,3})\$?(\d{1,7})(?::\$?([A-Z]{1,3})\$?(\d{1,7}))?"
)
_OTHER_FILE = re.compile(r"\[|file:|#\$")
_WHOLE = re.compile(r".*!\$?[A-Z]{1,3}:\$?[A-Z]{1,3}|.*!\$?\d+:\$?\d+")
NAME_MANAGER = "Mend it in Formulas, Name Manager (LibreOffice: Sheet, Named Ranges), or start from a fresh build."
MOST_ELEMENTS = 50_000  # of a part that lists things; ours have some hundreds
MOST_ROWS = 200_000  # of any sheet, read or not
_CHUNK = 1 << 20
_RELATIONS = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_REL_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_CUSTOM = "docProps/custom.xml"
_PROPERTY = "{http://schemas.openxmlformats.org/officeDocument/2006/custom-properties}property"


@dataclass(frozen=True)
class DefinedName:
    """A defined name as the file has it; `sheet` is the sheet that it is local to."""

    name: str
    text: str
    sheet: str | None = None


@dataclass(frozen=True)
class Area:
    """A block of cells; rows and columns count from 1."""

    sheet: str
    top: int
    left: int
    bottom: int
    right: int


@dataclass(frozen=True)
class Place:
    """One cell, as messages name it."""

    sheet: str
    row: int
    column: int

    def __str__(self) -> str:
        sheet = f"'{self.sheet}'" if re.search(r"\W", self.sheet) else self.sheet
        return f"{escaped(sheet)}!{column_name(self.column - 1)}{self.row}"


@dataclass(frozen=True)
class Outline:
    """A workbook before any cell is read. Sheets and parts stand under their names in the archive."""

    sheets: Mapping[str, str]
    names: Sequence[DefinedName]
    properties: Mapping[str, str]
    from_1904: bool
    strings: str | None
    styles: str | None


def outline(package: zipfile.ZipFile, where: str) -> Outline:
    """The outline of a checked archive. Raises WorkbookError where it is no workbook that openpyxl reads."""

    def tree(part: str) -> ElementTree.Element:
        return read_xml(package, part, where, MOST_ELEMENTS)

    tree(CONTENT_TYPES)
    documents = (target for kind, target in _relations(tree, "").values() if kind == "officeDocument")
    book = next(documents, "xl/workbook.xml")
    root = tree(book)
    if root.tag.startswith("{" + STRICT):
        raise WorkbookError(f"{where}: is saved as Strict Open XML. {SAVE_AS}")
    if root.tag != f"{{{MAIN}}}workbook":
        raise WorkbookError(f"{where}: is an Office file, but no workbook. Give the .xlsx that sheetgen built.")
    targets = _relations(tree, book)
    members = set(package.namelist())
    order = [(s.get("name", ""), targets.get(s.get(_REL_ID, ""), ("", ""))) for s in root.iter(f"{{{MAIN}}}sheet")]
    sheets = {name: target for name, (kind, target) in order if kind == "worksheet" and target in members}
    for name, part in sheets.items():
        _check_rows(package, part, name, where)
    properties = root.find(f"{{{MAIN}}}workbookPr")
    of_kind = {kind: target for kind, target in targets.values() if target in members}
    custom = tree(_CUSTOM).iter(_PROPERTY) if _CUSTOM in members else ()
    is_1904 = properties is not None and properties.get("date1904", "0") in ("1", "true")
    return Outline(
        sheets, tuple(_names(root, [name for name, _ in order])),
        {one.get("name", ""): "".join(one.itertext()).strip() for one in custom}, is_1904,
        of_kind.get("sharedStrings"), of_kind.get("styles"),
    )  # fmt: skip


def _relations(tree: Callable[[str], ElementTree.Element], part: str) -> dict[str, tuple[str, str]]:
    """By id what a part refers to within the archive: the last word of its kind, and its name."""
    folder, name = posixpath.split(part)
    found = {}
    for one in tree(posixpath.join(folder, "_rels", f"{name}.rels")).iter(_RELATIONS):
        if one.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, one.get("Target", ""))).lstrip("/")
            found[one.get("Id", "")] = one.get("Type", "").rpartition("/")[2], target
    return found


def _names(root: ElementTree.Element, order: Sequence[str]) -> Iterator[DefinedName]:
    for one in root.iter(f"{{{MAIN}}}definedName"):
        local = one.get("localSheetId")
        sheet = None
        if local is not None:
            sheet = order[int(local)] if local.isdecimal() and int(local) < len(order) else "?"
        yield DefinedName(one.get("name", ""), one.text or "", sheet)


def _check_rows(package: zipfile.ZipFile, part: str, sheet: str, where: str) -> None:
    """Refuse a sheet of a great many rows, be it one that is not read: nothing here can be meant for us."""
    rows, rest = 0, b""
    try:
        with package.open(part) as source:
            while chunk := source.read(_CHUNK):
                rows += (rest + chunk).count(b"<row ")
                rest = chunk[-4:]
                if rows > MOST_ROWS:
                    break
    except Exception as error:  # as in read_member
        raise WorkbookError(f"{where}: its sheet {shown(sheet)!r} is damaged ({shown(error)}). {SAVE_AS}") from error
    if rows > MOST_ROWS:
        raise WorkbookError(
            f"{where}: its sheet {shown(sheet)!r} has more than {MOST_ROWS:,} rows. Delete that sheet, or those rows, "
            "and try again."
        )


def areas(written: Iterable[DefinedName], sheets: Iterable[str], where: str) -> dict[str, Area]:
    """Our names, each with its area on one of `sheets`, in the order of sheets, rows and columns.

    A name that is local to a sheet is passed over: a copied sheet has such names beside the workbook's.

    Raises WorkbookError with a line for each way in which names are broken.
    """
    found: dict[str, Area] = {}
    broken: dict[str, list[str]] = defaultdict(list)
    local: dict[str, str] = {}
    seen: set[str] = set()
    order = list(sheets)
    by_lower = {name.lower(): name for name in order}
    for one in written:
        name = one.name.lower()  # spreadsheets do not tell cases apart
        if not name.startswith(PREFIXES):
            continue
        if one.sheet is not None:
            local[name] = one.sheet
            continue
        area = "stands twice in the workbook" if name in seen else _area(one.text, by_lower)
        seen.add(name)
        problem = area if isinstance(area, str) else _misfit(name, area)
        if problem:
            broken[problem].append(name)
        elif isinstance(area, Area):
            found[name] = area
    for name, sheet in local.items():
        if name not in seen:
            broken[f"is defined for the sheet {shown(sheet)!r} alone, not for the workbook"].append(name)
    if broken:
        lines = (f"the name {listed(names)} {why}. {NAME_MANAGER}" for why, names in broken.items())
        raise WorkbookError(*(f"{where}: {line}" for line in lines))
    return dict(sorted(found.items(), key=lambda one: (order.index(one[1].sheet), one[1].top, one[1].left)))


def listed(names: Iterable[str], most: int = 4) -> str:
    """A few names, and how many more there are."""
    every = [shown(name, 80) for name in names]
    rest = f" (and {len(every) - most:,} more)" if len(every) > most else ""
    return ", ".join(every[:most]) + rest


def _area(text: str, sheets: Mapping[str, str]) -> Area | str:
    """Where a name points, or what is wrong with that."""
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
    first, last = (1 + column_number(name) for name in (match[3], match[5] or match[3]))
    top, bottom = int(match[4]), int(match[6] or match[4])
    return Area(sheets[sheet.lower()], min(top, bottom), min(first, last), max(top, bottom), max(first, last))


def _misfit(name: str, area: Area) -> str | None:
    """What is wrong with the size of an area, or with where it stands."""
    rows, columns = area.bottom - area.top + 1, area.right - area.left + 1
    if columns > 1 or (rows > 1 and name.startswith(CELLS)):
        return "points to more cells than one" if name.startswith(CELLS) else "points to more columns than one"
    if rows > MOST_TABLE_ROWS:
        return f"points to {rows:,} rows, more than the {MOST_TABLE_ROWS:,} that are read"
    if not (area.top >= 1 and area.bottom <= MOST_ROW and area.right <= MOST_COLUMN):
        return f"points to {Place(area.sheet, area.bottom, area.right)}, too far out to be read"
    return None


def ends_by_sheet(found: Iterable[Area]) -> dict[str, tuple[int, int]]:
    """Each sheet that the areas stand on, with its last row and column."""
    ends: dict[str, tuple[int, int]] = {}
    for area in found:
        row, column = ends.get(area.sheet, (0, 0))
        ends[area.sheet] = max(row, area.bottom), max(column, area.right)
    return ends
