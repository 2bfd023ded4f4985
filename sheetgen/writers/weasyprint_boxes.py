"""All uses of WeasyPrint's private names, with their reasons. They are those of release 70, to which pyproject.toml
limits the library.

- The boxes of a laid-out page (`_page_box` and below) are walked to find overflows (`overflows`).
- The first box tells the part of the document that a page belongs to (`part_of`).
- WeasyPrint relates a cell only to the heads of its own row and column, without scopes; screen readers need all heads
  that HTML defines (`mend_tables`).
- `DocumentMetadata.generate_rdf_metadata` is wrapped, as added metadata must be inside its RDF (`put_metadata`).
- Attached files get a media type that does not depend on the machine, and an entry in the catalog
  (`mend_attachments`).
- `ctypes.util.find_library` is replaced during the import (`imported`).
"""

from __future__ import annotations

import contextlib
import ctypes.util
import io
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from sheetgen.errors import MissingLibraryError

WeasyObject: TypeAlias = Any  # the library, its boxes and documents, and the objects of pydyf: none of them has types
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_MISSING = (
    "The PDF needs Pango, which is not installed. Debian, Ubuntu: apt-get install libpangoft2-1.0-0"
    " libharfbuzz-subset0. macOS: brew install pango."
)
_FRAMES = ("html", "body")  # they end with their page, and everything visible is inside them
_MEASURES = ("width", "height", "position_x")  # numbers once a box is laid out
_SLACK = 0.6  # CSS pixels: rounding
SCOPES = {"col": "/Column", "colgroup": "/Column", "row": "/Row", "rowgroup": "/Row"}


def imported() -> WeasyObject:
    """The library. Raises MissingLibraryError if Pango is not installed."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints a page of advice before raising
            try:
                with _no_search_of_libraries():
                    import weasyprint
            except OSError:
                import weasyprint
    except OSError as error:
        raise MissingLibraryError(_MISSING) from error
    logging.getLogger("weasyprint").setLevel(logging.CRITICAL)  # it warns of refused URLs; we list them
    return weasyprint


@contextlib.contextmanager
def _no_search_of_libraries() -> Iterator[None]:
    """A context in which libraries are found by their file names alone on Linux: WeasyPrint tries four names of each,
    and for every wrong one Python would run a C compiler, a linker and ldconfig, 50 processes in all."""
    search = ctypes.util.find_library
    if sys.platform == "linux":
        ctypes.util.find_library = lambda name: None
    try:
        yield
    finally:
        ctypes.util.find_library = search


def overflows(page: WeasyObject) -> list[str]:
    """Sentences on boxes beyond the content box of a WeasyPrint page, and on texts wider than the block (cell or
    paragraph) that holds them; empty for a sound page."""
    root = page._page_box
    left, top = root.content_box_x(), root.content_box_y()
    right, bottom = left + root.width, top + root.height
    problems = []
    for box, holder in _walk(root, root):
        if type(box).__name__ == "TextBox":
            start, end = box.position_x, box.position_x + box.width
            edge = holder.content_box_x() + holder.width
            if start < holder.content_box_x() - _SLACK or end > edge + _SLACK:
                problems.append(f"{box.text[:40]!r} is {max(end - edge, 0) * 0.75:.1f} pt wider than its place")
        elif box.element_tag in _FRAMES:
            continue
        elif box.is_in_normal_flow() and all(isinstance(getattr(box, name, None), int | float) for name in _MEASURES):
            x, y = box.border_box_x(), box.border_box_y()
            out = max(left - x, top - y, x + box.border_width() - right, y + box.border_height() - bottom)
            if out > _SLACK:
                problems.append(f"<{box.element_tag}> leaves the page's margins by {out * 0.75:.1f} pt")
    return problems


def part_of(page: WeasyObject) -> str:
    """The part of the document that a page belongs to: the class of the first element of its body."""
    body = page._page_box.children[0].children[0]
    return str(body.children[0].element.get("class", ""))


def _walk(box: WeasyObject, holder: WeasyObject) -> Iterator[tuple[WeasyObject, WeasyObject]]:
    """All boxes below `box`, each with the block that holds its text."""
    for child in getattr(box, "children", ()):
        if type(child).__name__ == "MarginBox":
            continue
        yield child, holder
        inside = child if type(child).__name__ in ("BlockBox", "TableCellBox", "InlineBlockBox") else holder
        yield from _walk(child, inside)


@dataclass(frozen=True)
class _Cell:
    """A cell of a table's grid; `element` is its structure element, `group` the index of its row group."""

    element: WeasyObject
    scope: str  # of a head; empty for data
    group: int
    row: int
    column: int
    n_columns: int

    def is_head_of(self, other: _Cell) -> bool:
        """True if this head applies to the other cell by HTML's rules for its scope: column, row or row group."""
        if self.scope in ("col", "colgroup"):
            meet = self.column < other.column + other.n_columns and other.column < self.column + self.n_columns
            return meet and self.row < other.row
        if self.scope == "row":
            return self.row == other.row
        return self.group == other.group and self.row <= other.row


def mend_tables(document: WeasyObject, pdf: WeasyObject) -> None:
    """Add scopes to the heads of tables and references to them to the cells, and list the heads by id."""
    import pydyf

    named = {}
    for page in document.pages:
        boxes = [box for box, _ in _walk(page._page_box, None)]
        for table in (box for box in boxes if type(box).__name__ in ("TableBox", "InlineTableBox")):
            cells = list(_cells(table))
            heads = [cell for cell in cells if cell.scope]
            for cell in heads:
                cell.element["A"]["Scope"] = SCOPES[cell.scope]
                named[cell.element["ID"].data] = cell.element
            for cell in cells:
                if not cell.scope:
                    own = [head.element["ID"] for head in heads if head.is_head_of(cell)]
                    cell.element["A"].pop("Headers", None)
                    if own:
                        cell.element["A"]["Headers"] = pydyf.Array(own)
    if named:
        pairs = pydyf.Array()
        for _, element in sorted(named.items()):
            pairs.extend([element["ID"], element.reference])
        tree = pydyf.Dictionary({"Names": pairs})
        pdf.add_object(tree)
        root = _of_type(pdf, "/StructTreeRoot")[0]
        root["IDTree"] = tree.reference


def _cells(table: WeasyObject) -> Iterator[_Cell]:
    """The tagged cells of a table; boxes that only look like a table have none."""
    lines = [(group, line) for group, part in enumerate(table.children) for line in part.children]
    for row, (group, line) in enumerate(lines):
        column = 0
        for box in line.children:
            if box.element is not None and box.element_tag in ("th", "td"):
                scope = box.element.get("scope", "") if box.element_tag == "th" else ""
                yield _Cell(box.mark, scope, group, row, column, box.colspan)
            column += box.colspan


def put_metadata(document: WeasyObject, xmp: bytes) -> None:
    """Add `xmp` at the end of the document's metadata, inside its RDF element."""
    original = document.metadata.generate_rdf_metadata

    def with_ours(*arguments: object) -> bytes:
        rdf: bytes = original(*arguments)
        body, end, rest = rdf.rpartition(b"</rdf:RDF>")
        return body + xmp + end + rest

    document.metadata.generate_rdf_metadata = with_ours


def finish(document: WeasyObject, pdf: WeasyObject) -> None:
    """Correct the PDF's objects just before the file is written."""
    mend_tables(document, pdf)
    mend_attachments(pdf)


def _of_type(pdf: WeasyObject, name: str) -> list[WeasyObject]:
    """The PDF's objects of a type, such as /Filespec."""
    return [entry for entry in pdf.objects if isinstance(entry, dict) and entry.get("Type") == name]


def mend_attachments(pdf: WeasyObject) -> None:
    """Set the media type of the attached workbook, and list it as a file associated with the document."""
    import pydyf

    files = _of_type(pdf, "/Filespec")
    for file in files:
        file["AFRelationship"] = "/Source"
        pdf.objects[int(file["EF"]["F"].split()[0])].extra["Subtype"] = "/" + XLSX.replace("/", "#2f")
    if files:
        pdf.catalog["AF"] = pydyf.Array([file.reference for file in files])
