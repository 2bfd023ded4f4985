"""What a workbook's package says of itself: its sheets, its defined names, its properties."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from sheetgen.errors import shown
from sheetgen.workbook.names import DefinedName
from sheetgen.workbook.package import CONTENT_TYPES, MAIN, SAVE_AS, STRICT, WorkbookError, read_xml

MOST_ELEMENTS = 50_000  # of a part that lists things; ours have some hundreds
MOST_ROWS = 200_000  # of any sheet, read or not
_CHUNK = 1 << 20
_RELATIONS = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_REL_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_CUSTOM = "docProps/custom.xml"
_PROPERTY = "{http://schemas.openxmlformats.org/officeDocument/2006/custom-properties}property"


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
    return Outline(
        sheets,
        tuple(_names(root, [name for name, _ in order])),
        {one.get("name", ""): "".join(one.itertext()).strip() for one in tree(_CUSTOM).iter(_PROPERTY)}
        if _CUSTOM in members
        else {},
        properties is not None and properties.get("date1904", "0") in ("1", "true"),
        of_kind.get("sharedStrings"),
        of_kind.get("styles"),
    )


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
