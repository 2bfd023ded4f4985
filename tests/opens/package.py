"""A workbook as what it is: a zip of parts with content types and relationships. Read here, and damaged in tests."""

from __future__ import annotations

import functools
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
VML_EXCEL = "{urn:schemas-microsoft-com:office:excel}"
OFFICE_TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
CONTENT_TYPES = "[Content_Types].xml"
WORKBOOK = "xl/workbook.xml"
COLUMNS, ROWS = 16_384, 1_048_576  # of an Excel sheet

Element = ElementTree.Element
Parts = dict[str, bytes]


@functools.lru_cache(maxsize=128)  # a damaged copy shares all parts but one with the workbook
def _parsed(xml: bytes) -> Element:
    return ElementTree.fromstring(xml)


class Relation(NamedTuple):
    id: str
    kind: str  # the type's last word: worksheet, comments, hyperlink ...
    target: str  # a part's name, or an address outside
    external: bool


class Sheet(NamedTuple):
    name: str
    part: str
    root: Element
    position: int  # from 0, as localSheetId counts


class Box(NamedTuple):
    """A cell or a rectangle of cells, counted from 1."""

    left: int
    top: int
    right: int
    bottom: int

    def overlaps(self, other: Box) -> bool:
        across = self.left <= other.right and other.left <= self.right
        return across and self.top <= other.bottom and other.top <= self.bottom

    def holds(self, column: int, row: int) -> bool:
        return self.left <= column <= self.right and self.top <= row <= self.bottom

    @property
    def is_cell(self) -> bool:
        return self.left == self.right and self.top == self.bottom


_BOX = re.compile(r"\$?([A-Z]{1,3})\$?([1-9][0-9]{0,6})(?::\$?([A-Z]{1,3})\$?([1-9][0-9]{0,6}))?")
_BAND = re.compile(r"\$?([A-Z]{1,3}):\$?([A-Z]{1,3})|\$?([1-9][0-9]{0,6}):\$?([1-9][0-9]{0,6})")


@functools.cache
def number_of(letters: str) -> int:
    """A -> 1, XFD -> 16384."""
    return functools.reduce(lambda n, letter: 26 * n + ord(letter) - 64, letters, 0)


def box(text: str) -> Box | None:
    """`A1`, `$A$1:$C$3`, `A:C` or `1:3` as numbers; None where it is no place on a sheet."""
    match = _BOX.fullmatch(text)
    if match:
        left, top, right, bottom = number_of(match[1]), int(match[2]), match[3] or match[1], match[4] or match[2]
        place = Box(left, top, number_of(right), int(bottom))
    else:
        band = _BAND.fullmatch(text)
        if not band:
            return None
        columns = (number_of(band[1]), number_of(band[2])) if band[1] else (1, COLUMNS)
        rows = (1, ROWS) if band[1] else (int(band[3]), int(band[4]))
        place = Box(columns[0], rows[0], columns[1], rows[1])
    inside = 1 <= place.left <= place.right <= COLUMNS and 1 <= place.top <= place.bottom <= ROWS
    return place if inside else None


@dataclass(frozen=True, eq=False)
class Package:
    """The parts of a workbook by name, and the names that the zip holds twice."""

    parts: Mapping[str, bytes]
    twice: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Package:
        with zipfile.ZipFile(path) as file:
            names = file.namelist()
            twice = tuple(sorted({n for n in names if names.count(n) > 1}))
            return cls({name: file.read(name) for name in names}, twice)

    def write(self, path: Path) -> Path:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in self.parts.items():
                file.writestr(name, data)
        return path

    def xml(self, name: str) -> Element:
        return _parsed(self.parts[name])

    @functools.cached_property
    def content_types(self) -> tuple[dict[str, str], dict[str, str]]:
        """By extension, and by part."""
        by_extension, by_part = {}, {}
        for entry in self.xml(CONTENT_TYPES):
            if entry.tag.endswith("Default"):
                by_extension[entry.get("Extension", "").lower()] = entry.get("ContentType", "")
            else:
                by_part[entry.get("PartName", "").removeprefix("/")] = entry.get("ContentType", "")
        return by_extension, by_part

    def content_type(self, name: str) -> str | None:
        by_extension, by_part = self.content_types
        return by_part.get(name) or by_extension.get(name.rpartition(".")[2].lower())

    def relations(self, name: str) -> list[Relation]:
        """The parts that a part ("" for the package) refers to."""
        folder, base = posixpath.split(name)
        rels = posixpath.join(folder, "_rels", f"{base}.rels")
        if rels not in self.parts:
            return []
        problems = []
        for relation in self.xml(rels):
            external, target = relation.get("TargetMode") == "External", relation.get("Target", "")
            if not external:
                target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            kind = relation.get("Type", "").rpartition("/")[2]
            problems.append(Relation(relation.get("Id", ""), kind, target, external))
        return problems

    def related(self, name: str, kind: str) -> list[str]:
        """The parts of one kind that a part refers to, as far as they exist."""
        return [r.target for r in self.relations(name) if r.kind == kind and r.target in self.parts]

    @functools.cached_property
    def sheets(self) -> list[Sheet]:
        targets = {r.id: r.target for r in self.relations(WORKBOOK)}
        listed = enumerate(self.xml(WORKBOOK).iter(f"{MAIN}sheet"))
        named = ((i, s.get("name", ""), targets.get(s.get(f"{REL}id", ""), "")) for i, s in listed)
        return [Sheet(name, part, self.xml(part), i) for i, name, part in named if part in self.parts]

    def cells(self) -> Iterator[tuple[Sheet, Element]]:
        return ((sheet, cell) for sheet in self.sheets for cell in sheet.root.iter(f"{MAIN}c"))

    def strings(self) -> list[str]:
        """The shared strings."""
        if "xl/sharedStrings.xml" not in self.parts:
            return []
        return ["".join(t.text or "" for t in item.iter(f"{MAIN}t")) for item in self.xml("xl/sharedStrings.xml")]


def sheet_of(reference: str) -> tuple[str, str]:
    """`'Sizing sheet'!$A$1` -> its sheet and its place; "" where it names no sheet."""
    sheet, _, place = reference.rpartition("!")
    if sheet.startswith("'") and sheet.endswith("'"):
        sheet = sheet[1:-1].replace("''", "'")
    return sheet, place
