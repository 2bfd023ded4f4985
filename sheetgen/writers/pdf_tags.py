"""Which heads a table's cell has, for those who hear the page, and short names for its bookmarks.

WeasyPrint (70) ties a cell to the heads of its own row and column alone, without a scope: here each cell gets all
that HTML says it has, from the heads' scopes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SCOPES = {"col": "/Column", "colgroup": "/Column", "row": "/Row", "rowgroup": "/Row"}


@dataclass(frozen=True)
class _Cell:
    """A cell of a table's grid. `element` is its structure element, `group` counts the row groups from the top."""

    element: Any
    scope: str  # of a head; empty for data
    group: int
    row: int
    column: int
    n_rows: int
    n_columns: int

    def is_head_of(self, other: _Cell) -> bool:
        """As HTML has it: heads of a column stand above, those of a row beside, those of a row group lead the group."""
        if self.scope in ("col", "colgroup"):
            return self.row < other.row and _meet(self.column, self.n_columns, other.column, other.n_columns)
        if self.scope == "row":
            return _meet(self.row, self.n_rows, other.row, other.n_rows)
        return self.group == other.group and self.row <= other.row


def mend_tables(document: Any, pdf: Any) -> None:
    """Give every head its scope and every cell its heads, and list the heads by their names."""
    import pydyf

    named = {}
    for page in document.pages:
        for table in _tables(page._page_box):
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


def name_bookmarks(document: Any) -> None:
    """A bookmark says what its heading does up to the first colon, and not the small print beside it."""
    for page in document.pages:
        headings = [box for box in page._page_box.descendants() if box.bookmark_label and box.element is not None]
        names = [(box.element.text or box.bookmark_label).partition(":")[0].strip() for box in headings]
        page.bookmarks[:] = [
            (level, name, target, state) for name, (level, _, target, state) in zip(names, page.bookmarks, strict=True)
        ]


def _meet(start: int, length: int, other: int, other_length: int) -> bool:
    return start < other + other_length and other < start + length


def _tables(box: Any) -> Iterator[Any]:
    if type(box).__name__ in ("TableBox", "InlineTableBox"):
        yield box
    for child in getattr(box, "children", ()):
        yield from _tables(child)


def _cells(table: Any) -> Iterator[_Cell]:
    """The cells that were tagged as such; a layout made of boxes that only look like a table has none."""
    taken: set[tuple[int, int]] = set()
    row = -1
    for group, part in enumerate(table.children):
        for line in part.children:
            row += 1
            column = 0
            for box in line.children:
                while (row, column) in taken:
                    column += 1
                taken |= {(row + r, column + c) for r in range(box.rowspan) for c in range(box.colspan)}
                if box.element is not None and box.element_tag in ("th", "td"):
                    scope = box.element.get("scope", "") if box.element_tag == "th" else ""
                    yield _Cell(box.mark, scope, group, row, column, box.rowspan, box.colspan)
                column += box.colspan
