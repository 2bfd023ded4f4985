"""All that is read or changed of WeasyPrint beneath its public names, and why. The names are those of 70, to which
pyproject.toml holds the library.

- Boxes of a laid-out page (`_page_box` and below) are walked: does everything stay where it belongs (`overflows`)?
- The first of them says which part of the document a page belongs to (`part_of`).
- A cell is tied to the heads of its own row and column alone, without a scope: each gets all that HTML says it has,
  for those who hear the page (`mend_tables`).
- `DocumentMetadata.generate_rdf_metadata` is wrapped: what is added must stand inside its one RDF, where readers look
  (`put_metadata`).
- Attached files lack a media type that is the same on every machine, and a name in the catalog (`mend_attachments`).
- `ctypes.util.find_library` is set aside during the import (`imported`).
"""

from __future__ import annotations

import contextlib
import ctypes.util
import io
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sheetgen.errors import MissingLibraryError

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_MISSING = (
    "The PDF needs Pango, which is not installed. Debian, Ubuntu: apt-get install libpangoft2-1.0-0"
    " libharfbuzz-subset0. macOS: brew install pango."
)
_FRAMES = ("html", "body")  # they end where their page does, and all that is seen is inside them
_MEASURES = ("width", "height", "position_x")  # numbers once a box is laid out
_SLACK = 0.6  # CSS pixels: rounding
SCOPES = {"col": "/Column", "colgroup": "/Column", "row": "/Row", "rowgroup": "/Row"}


def imported() -> Any:
    """The library. Raises MissingLibraryError where Pango is not installed."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints a page of advice before it raises
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
    """On Linux a library is looked for by its file's name alone: WeasyPrint tries four names of each, and behind every
    wrong one Python runs a C compiler, a linker and ldconfig to find what might be meant: 50 processes."""
    search = ctypes.util.find_library
    if sys.platform == "linux":
        ctypes.util.find_library = lambda name: None
    try:
        yield
    finally:
        ctypes.util.find_library = search


def overflows(page: Any) -> list[str]:
    """Sentences on what leaves its place on `page` (a weasyprint Page): nothing for a sound page.

    Two questions: is a box in the flow beyond the page's content box, and is a text beyond the content of the block
    (the cell, the paragraph) that holds it.
    """
    root = page._page_box
    left, top = root.content_box_x(), root.content_box_y()
    right, bottom = left + root.width, top + root.height
    found = []
    for box, holder in _walk(root, root):
        if type(box).__name__ == "TextBox":
            start, end = box.position_x, box.position_x + box.width
            edge = holder.content_box_x() + holder.width
            if start < holder.content_box_x() - _SLACK or end > edge + _SLACK:
                found.append(f"{box.text[:40]!r} is {max(end - edge, 0) * 0.75:.1f} pt wider than its place")
        elif box.element_tag in _FRAMES:
            continue
        elif box.is_in_normal_flow() and all(isinstance(getattr(box, name, None), int | float) for name in _MEASURES):
            x, y = box.border_box_x(), box.border_box_y()
            out = max(left - x, top - y, x + box.border_width() - right, y + box.border_height() - bottom)
            if out > _SLACK:
                found.append(f"<{box.element_tag}> leaves the page's margins by {out * 0.75:.1f} pt")
    return found


def part_of(page: Any) -> str:
    """The class of the first element of the page's body: which of the document's parts the page belongs to."""
    body = page._page_box.children[0].children[0]
    return str(body.children[0].element.get("class", ""))


def _walk(box: Any, holder: Any) -> Iterator[tuple[Any, Any]]:
    """All boxes below `box`, each with the block that holds its text."""
    for child in getattr(box, "children", ()):
        if type(child).__name__ == "MarginBox":
            continue
        yield child, holder
        inside = child if type(child).__name__ in ("BlockBox", "TableCellBox", "InlineBlockBox") else holder
        yield from _walk(child, inside)


@dataclass(frozen=True)
class _Cell:
    """A cell of a table's grid. `element` is its structure element, `group` counts the row groups from the top."""

    element: Any
    scope: str  # of a head; empty for data
    group: int
    row: int
    column: int
    n_columns: int

    def is_head_of(self, other: _Cell) -> bool:
        """As HTML has it: heads of a column stand above, those of a row beside, those of a row group lead the group."""
        if self.scope in ("col", "colgroup"):
            meet = self.column < other.column + other.n_columns and other.column < self.column + self.n_columns
            return meet and self.row < other.row
        if self.scope == "row":
            return self.row == other.row
        return self.group == other.group and self.row <= other.row


def mend_tables(document: Any, pdf: Any) -> None:
    """Give every head its scope and every cell its heads, and list the heads by their names."""
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
        root = next(one for one in pdf.objects if isinstance(one, dict) and one.get("Type") == "/StructTreeRoot")
        root["IDTree"] = tree.reference


def _cells(table: Any) -> Iterator[_Cell]:
    """The cells that were tagged as such, each of one row; boxes that only look like a table have none."""
    lines = [(group, line) for group, part in enumerate(table.children) for line in part.children]
    for row, (group, line) in enumerate(lines):
        column = 0
        for box in line.children:
            if box.element is not None and box.element_tag in ("th", "td"):
                scope = box.element.get("scope", "") if box.element_tag == "th" else ""
                yield _Cell(box.mark, scope, group, row, column, box.colspan)
            column += box.colspan


def put_metadata(document: Any, xmp: bytes) -> None:
    """Let the document's metadata end with `xmp`, inside its one RDF, where readers look for it."""
    original = document.metadata.generate_rdf_metadata

    def with_ours(*arguments: Any) -> bytes:
        rdf: bytes = original(*arguments)
        body, end, rest = rdf.rpartition(b"</rdf:RDF>")
        return body + xmp + end + rest

    document.metadata.generate_rdf_metadata = with_ours


def finish(document: Any, pdf: Any) -> None:
    """What is mended just before the file is written."""
    mend_tables(document, pdf)
    mend_attachments(pdf)


def mend_attachments(pdf: Any) -> None:
    """Call the workbook what it is on every machine, and name it once as a file associated with the document."""
    import pydyf

    files: list[Any] = [one for one in pdf.objects if isinstance(one, dict) and one.get("Type") == "/Filespec"]
    for one in files:
        one["AFRelationship"] = "/Source"
        pdf.objects[int(one["EF"]["F"].split()[0])].extra["Subtype"] = "/" + XLSX.replace("/", "#2f")
    if files:
        pdf.catalog["AF"] = pydyf.Array([one.reference for one in files])
