"""The height that a page leaves is given back to it by moving its boxes: to lay it out once more would take as long
as the first time. Like page_gates, this knows WeasyPrint's boxes (those of 70), which have no public names.
"""

from __future__ import annotations

from typing import Any

_MOST_PAD = 2.2  # points that a row may gain above and below; the rest of the space goes between sections
_PX = 4 / 3  # WeasyPrint counts in CSS pixels


def share_out(page: Any, left: float) -> None:
    """Give `left` points to the rows of the page's tables, and then to the gaps between its sections."""
    sheet = _sheet(page)
    below = [child for child in sheet.children[1:] if child.is_in_normal_flow()]
    if left <= 0 or not below:
        return
    n_pads = sum(_n_pads(child) for child in sheet.children)
    pad = min(_MOST_PAD, 0.8 * left / n_pads) if n_pads and left > 3 * len(below) else 0.0
    gap = (left - pad * n_pads) / len(below)
    moved = 0.0
    for child in sheet.children:
        if child in below:
            moved += gap * _PX
        child.translate(0, moved)
        moved += _grown(child, pad * _PX)
    for box in (sheet, *_ancestors(page)):
        box.height += moved


def cut_to(page: Any, height: float) -> Any:
    """The page on paper of `height` points: it was laid out on a longer one, from which it differs in nothing else."""
    import weasyprint
    from weasyprint.layout.background import layout_backgrounds

    root = page._page_box
    root.height -= root.margin_height() - height * _PX
    layout_backgrounds(root, lambda *_, **__: None)
    return weasyprint.Page(root)


def _sheet(page: Any) -> Any:
    return page._page_box.children[0].children[0].children[0]


def _ancestors(page: Any) -> tuple[Any, Any]:
    html = page._page_box.children[0]
    return html, html.children[0]


def _is_table(box: Any) -> bool:
    """A real table, not a layout that is made like one."""
    return type(box).__name__ == "TableBox" and box.element_tag == "table"


def _rows(table: Any) -> list[Any]:
    return [row for group in table.children for row in group.children]


def _sides(row: Any) -> tuple[bool, bool]:
    """Whether a row grows above, and below: where it has padding. One without belongs to its neighbour."""
    cell = row.children[0]
    return cell.padding_top > 0, cell.padding_bottom > 0


def _n_pads(box: Any) -> int:
    if _is_table(box):
        return sum(sum(_sides(row)) for row in _rows(box))
    if type(box).__name__ != "BlockBox" or not box.is_in_normal_flow():
        return 0
    return sum(_n_pads(child) for child in box.children)


def _grown(box: Any, pad: float) -> float:
    """How much higher `box` is, in pixels, with `pad` more in each row of its tables."""
    if pad <= 0:
        return 0.0
    if _is_table(box):
        growth = _grown_table(box, pad)
    elif type(box).__name__ == "BlockBox" and box.is_in_normal_flow():
        growth = 0.0
        for child in box.children:
            child.translate(0, growth)
            growth += _grown(child, pad)
    else:
        return 0.0
    box.height += growth
    return growth


def _grown_table(table: Any, pad: float) -> float:
    moved = 0.0
    for group in table.children:
        group.position_y += moved
        before = moved
        ends: list[tuple[Any, int, float]] = []  # cells of several rows: the last of them, and where it was
        for n, row in enumerate(group.children):
            row.translate(0, moved)
            above, below = (pad if grows else 0.0 for grows in _sides(row))
            for cell in row.children:
                cell.padding_top += above
                cell.padding_bottom += below
                for inside in cell.children:
                    inside.translate(0, above)
                if cell.rowspan > 1:
                    ends.append((cell, n + cell.rowspan - 1, moved + above + below))
            row.height += above + below
            moved += above + below
            for cell, last, then in ends:
                if last == n:
                    cell.padding_bottom += moved - then
        group.height += moved - before
    return moved
