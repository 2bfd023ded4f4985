"""Does everything on a laid-out page stay where it belongs? Asked of WeasyPrint's boxes, before a PDF is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_FRAMES = ("html", "body")  # they end where their page does, and all that is seen is inside them
_SLACK = 0.6  # CSS pixels: rounding


def overflows(page: Any) -> list[str]:
    """Sentences on what leaves its place on `page` (a weasyprint Page): nothing for a sound page.

    Two questions: is a box in the flow beyond the page's content box, and is a text beyond the content of the block
    (the cell, the paragraph) that holds it. WeasyPrint has no public name for its boxes; the attributes used here
    are those of 70, to which pyproject.toml holds it.
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
        elif box.is_in_normal_flow() and hasattr(box, "border_box_x") and _is_laid_out(box):
            x, y = box.border_box_x(), box.border_box_y()
            out = max(left - x, top - y, x + box.border_width() - right, y + box.border_height() - bottom)
            if out > _SLACK:
                name = f"<{box.element_tag}>"
                found.append(f"{name} leaves the page's margins by {out * 0.75:.1f} pt")
    return found


def height_left(page: Any) -> float:
    """Points between the last box of a page (the sheet, or its appendix) and its bottom margin."""
    root = page._page_box
    bottom = root.content_box_y() + root.height
    sheet = root.children[0].children[0].children[0]
    return float(bottom - (sheet.border_box_y() + sheet.border_height())) * 0.75


def _walk(box: Any, holder: Any) -> Iterator[tuple[Any, Any]]:
    """All boxes below `box`, each with the block that holds its text."""
    for child in getattr(box, "children", ()):
        if type(child).__name__ == "MarginBox":
            continue
        yield child, holder
        inside = child if type(child).__name__ in ("BlockBox", "TableCellBox", "InlineBlockBox") else holder
        yield from _walk(child, inside)


def _is_laid_out(box: Any) -> bool:
    return all(isinstance(getattr(box, name, None), int | float) for name in ("width", "height", "position_x"))
