"""The look of each role in the workbook (colours of finance, quiet tints, one font), and the sizes that its cells need:
a number that does not fit is shown as ####, a text beside a filled cell is cut."""

from __future__ import annotations

import datetime
import functools
import math
from dataclasses import replace
from typing import TypeAlias

import numpy

from sheetgen.book.sheets import Cell, Sheet
from sheetgen.brand import Colors
from sheetgen.units import DATE, PRICE_DATE, Display

Look: TypeAlias = dict[str, str | int | float | bool]  # properties of a cell format in XlsxWriter
INK, BAR, RULE, GREY = "#111827", "#1F2937", "#D1D5DB", "#6B7280"
WHITE = "#FFFFFF"
INPUT_FILL, INPUT_INK, LINK_INK = "#FFF9DB", "#1D4ED8", "#15803D"

_BASE: Look = {"font_color": INK, "valign": "vcenter"}
_BOTTOM: Look = {"bottom": 1, "bottom_color": RULE}

_ROLES: dict[str, Look] = {
    "text": {},
    "title": {"bold": True, "font_size": 18},
    "finding": {"bold": True, "font_size": 18, "shrink": True},
    "section": {"bold": True, "font_color": WHITE, "bg_color": BAR, "indent": 1, "align": "left"},
    "head": {
        "bold": True,
        "bg_color": "#E5E7EB",
        "text_wrap": True,
        "align": "center",
        "bottom": 1,
        "bottom_color": GREY,
    },
    "label": {},
    "remark": {"font_color": GREY},
    "remark_wrapped": {"font_color": GREY, "text_wrap": True},
    "off_page": {"font_color": GREY, "font_size": 8, "align": "left"},
    "input": {"font_color": INPUT_INK, "bg_color": INPUT_FILL, "border": 1, "border_color": "#E3C65B", "locked": False},
    "fixed": {},
    "computed": {},
    "state": {},  # the change of an input since the workbook was built
    "link": {"font_color": LINK_INK},
    "answer": {"bold": True, "font_size": 15, "font_color": "#1D4ED8"},
    "answer_money": {"bold": True, "font_size": 15, "align": "left", "indent": 1},
    "right_link": {"font_color": LINK_INK, "align": "right"},
    "left_number": {"align": "left", "indent": 1},
    "light": {"bold": True},
    "total": {"bold": True, "top": 1, "top_color": RULE},
    "wrapped": {"text_wrap": True, "valign": "top"},
    "wrapped_bold": {"text_wrap": True, "valign": "top", "bold": True},
    "link_text": {"font_color": "#1D4ED8", "underline": 1},
    "remark_link": {"font_color": "#1D4ED8", "text_wrap": True, "underline": 1},
    "rent": {"align": "left", "shrink": True, **_BOTTOM},
    # The grid, as on the printed page: no bars, thin rules between rows.
    "rule": {"bold": True, "bottom": 1, "bottom_color": INK},
    "rule_head": {"font_color": GREY, "bottom": 1, "bottom_color": INK},
    "rule_beside_number": {"font_color": GREY, "bottom": 1, "bottom_color": INK},
    "rule_head_right": {"font_color": GREY, "bottom": 1, "bottom_color": INK, "align": "right", "text_wrap": True},
    "answer_large": {"bold": True, "font_size": 18, "font_color": "#1D4ED8", "align": "left"},
    "large": {"bold": True, "font_size": 14, "font_color": "#1D4ED8", "align": "right"},
    "plain": {},
    "bold": {"bold": True, "shrink": True},
    "strong": {"bold": True},
    "quiet": {"font_color": GREY},
    "line": {"font_color": GREY, "text_wrap": True},
    "quiet_right": {"font_color": GREY, "align": "right", "indent": 1},
    "right_text": {"align": "right"},
    "beside_number": {"font_color": GREY, "shrink": True, **_BOTTOM},
    "small_value": {"font_color": GREY, "align": "right"},
    "band": {"bold": True, "top": 1, "top_color": INK},
    "band_quiet": {"font_color": GREY, "top": 1, "top_color": INK},
    "grid_number": {"align": "right", **_BOTTOM},
    "grid_money": {"bold": True, "align": "left"},
}
for _name in ("plain", "quiet"):
    _ROLES[f"{_name}_last"] = {**_ROLES[_name], **_BOTTOM}

FLUSH = (
    *("title", "finding", "link_text", "line", "bold", "band", "band_quiet", "rent", "strong", "rule", "rule_head"),
    *("plain", "plain_last", "quiet", "quiet_last"),
)
ASKED = {"font_color": "#1D4ED8"}
UNUSED = {"font_color": GREY, "bg_color": "#E5E7EB"}

WARNING = {"bg_color": "#FEF3C7", "font_color": "#78350F"}
STATUS: dict[str, Look] = {
    "fits": {"bg_color": "#DCFCE7", "font_color": "#14532D"},
    "none fits": {"bg_color": "#FEE2E2", "font_color": "#7F1D1D"},
    "over limit": {"bg_color": "#E5E7EB", "font_color": "#374151"},
}
for _word, _tint in STATUS.items():
    _ROLES["legend_" + _word.split()[0]] = {**_tint, "align": "center"}


# The uses of a brand's colours. Inputs, links between sheets and states keep theirs, which have a meaning.
BRANDED = {
    "title": ("font_color", "heading"),
    "finding": ("font_color", "heading"),
    "section": ("bg_color", "heading"),
    "answer": ("font_color", "accent"),
}


def style(role: str, number_format: str, colors: Colors | None = None) -> Look:
    """The format properties of a role with a number format; in text cells typing cannot make a formula."""
    look = {**_BASE, **_ROLES[role], "num_format": number_format}
    if colors is not None and role in BRANDED:
        part, name = BRANDED[role]
        look[part] = getattr(colors, name) or look[part]
    if number_format == "@":
        # With "@" Excel shows a formula's text once the cell is edited; General shows text as well.
        look["num_format"] = "General"
        look["quote_prefix"] = role in ("input", "label", "text", "remark", "remark_wrapped", "wrapped")
        if role not in FLUSH and look.get("align", "left") == "left":
            look |= {"align": "left", "indent": 1}  # in line with the bars, and apart from the number before it
    elif role.removesuffix("_last") in ("computed", "state", "link", "fixed", "total"):
        look["align"] = "right"  # the dash for no number, too
        if number_format in (DATE.excel, PRICE_DATE.excel):
            look |= {"align": "left", "indent": 1}  # dates are aligned as words
    return look


_LARGE = {role for role, look in _ROLES.items() if int(look.get("font_size", 10)) > 10}
_look = functools.cache(style)  # shared: callers must not modify it

ROOM = 0.7  # beside the digits, in units of a column's width
DEFAULT_WIDTH, DEFAULT_HEIGHT = 8.43, 15.0
EDGE = 0.71  # of a column beside its width, which is without it
MOST_WIDTH = 48  # of a column for a text; longer texts are prose, which runs on or is wrapped
SCIENTIFIC = 6  # characters of 1E+15
_LETTERS = (  # letters of Arial with their width in em; any other is as wide as a digit
    ("ijl|'", 0.222), (".,:;!/ ft[]I", 0.278), ('()r-"`', 0.355), ("ckszvxyJ", 0.5), ("ABEKPSVXY", 0.667),
    ("CDHNRUw", 0.722), ("FTZL", 0.611), ("GOQ", 0.778), ("mM", 0.833), ("W@%", 0.944),
)  # fmt: skip
_EM = {letter: ems for letters, ems in _LETTERS for letter in letters}
DIGIT = 0.556  # of an em
BOLD = 1.08
PADDING, INDENT = 0.8, 1.3
LINE = 1.24  # of the font's size


def fitted(sheet: Sheet) -> Sheet:
    """The sheet with columns wide enough for numbers and short texts, and rows high enough for wrapped texts."""
    widths, heights = dict(sheet.widths), dict(sheet.heights)
    _fit_numbers(sheet, widths)
    wrapped = []
    for (row, column), cell in sheet.cells.items():
        if isinstance(cell.value, str) and cell.value and cell.role != "off_page":
            look = _look(cell.role, cell.display.excel)
            if cell.wraps or look.get("text_wrap"):
                wrapped.append((row, column, cell.span, cell.value, look))
            elif not look.get("shrink") and not sheet.keeps_widths:
                _fit_text(sheet, widths, (row, column), cell, look)
    for _, column, span, text, look in wrapped:
        have = _width(widths, column, span)
        longest = max((text_width(word, look) for word in text.split()), default=0.0)
        if have < longest <= MOST_WIDTH and not sheet.keeps_widths:
            widths[column] = longest
    for row, column, span, text, look in wrapped:
        needed = text_height(text, _width(widths, column, span), look)
        if needed > heights.get(row, DEFAULT_HEIGHT):
            heights[row] = round(needed, 1)
    return replace(sheet, widths=widths, heights=heights)


def _width(widths: dict[int, float], column: int, span: int) -> float:
    return EDGE * (span - 1) + sum(widths.get(covered, DEFAULT_WIDTH) for covered in range(column, column + span))


def _fit_text(sheet: Sheet, widths: dict[int, float], place: tuple[int, int], cell: Cell, look: Look) -> None:
    """Widen a column whose text would be cut; a text may run into empty cells, a right-aligned one to the left, and one
    on a dark ground into cells on the same ground: white letters cannot be read beside it."""
    row, column = place
    have = widths.get(column, DEFAULT_WIDTH)
    needed = text_width(cell.value, look)
    step = -1 if look.get("align") == "right" else 1
    beside = column + step
    while have < needed and beside >= 0 and _is_empty(sheet, row, beside):
        neighbour = sheet.cells.get((row, beside))
        if look["font_color"] == WHITE and (neighbour is None or neighbour.role != cell.role):
            break
        have += EDGE + widths.get(beside, DEFAULT_WIDTH)
        beside += step
    if have < needed <= MOST_WIDTH:
        widths[column] = widths.get(column, DEFAULT_WIDTH) + needed - have


def _is_empty(sheet: Sheet, row: int, column: int) -> bool:
    cell = sheet.cells.get((row, column))
    if cell is not None:
        return cell.value in (None, "") and cell.formula is None
    return not any(cells.row == row and cells.left <= column < cells.left + len(cells) for cells in sheet.rows)


def _fit_numbers(sheet: Sheet, widths: dict[int, float]) -> None:
    """Widen columns whose numbers would be shown as #### otherwise, by the size of their print."""
    cells: dict[tuple[int, str, Display, type], list[float]] = {}
    for (_, column), cell in sheet.cells.items():
        if cell.value is not None and not isinstance(cell.value, str) and cell.role != "off_page":
            cells.setdefault((column, cell.role, cell.display, type(cell.value)), []).append(cell.value)
    numbers: list[tuple[int, float, Display, float]] = []  # with the size of the print
    for (column, role, display, _), values in cells.items():
        look = _look(role, display.excel)
        if role in _LARGE:
            texts = (display.text(value) for value in values if isinstance(value, int | float))
            widths[column] = max(widths.get(column, DEFAULT_WIDTH), *(text_width(text, look) for text in texts))
        longest = (max(values), min(values)) if _grows(display) else values
        numbers += ((column, value, display, _of_em(look) * DIGIT) for value in longest)
    blocks: dict[tuple[int, int, Display], list[numpy.ndarray]] = {}
    for row in sheet.rows:
        blocks.setdefault((row.left, len(row), row.display), []).append(row.values)
    for (left, _, display), rows in blocks.items():
        if _grows(display) and all(values.dtype.kind in "fi" for values in rows):
            rows = [numpy.fmax.reduce(rows), numpy.fmin.reduce(rows)]
        numbers += ((column, value, display, 1.0) for row in rows for column, value in enumerate(row.tolist(), left))
    for column, value, display, size in numbers:
        if value is None or isinstance(value, str):
            continue
        needed = shown_length(value, display) * size + ROOM
        if needed > widths.get(column, DEFAULT_WIDTH):
            widths[column] = needed


def _grows(display: Display) -> bool:
    """True where a number is shown at least as long as a smaller one of its sign."""
    return not (display.optional or display.whole_from < math.inf or "E+" in display.excel or "yy" in display.excel)


def shown_length(value: float | datetime.date, display: Display) -> int:
    """The approximate number of characters of a displayed number."""
    if hasattr(value, "isoformat") or display.excel.startswith("yyyy"):
        return 10
    if "E+" in display.excel:
        return SCIENTIFIC if abs(value) >= 10**SCIENTIFIC else len(f"{value:g}")
    number = value * 100 if display.percent else value
    text = f"{number:{',' if display.thousands else ''}.{display.decimals_of(number)}f}"
    if display.optional:
        text = max(text, f"{number:.{display.decimals + display.optional}f}".rstrip("0"), key=len)
    return len(text) + len(display.prefix) + len(display.suffix)


def text_width(text: str, look: Look) -> float:
    """The column width that the text needs on one line in a cell of this look."""
    return _ems(text) * _of_em(look) + PADDING + INDENT * int(look.get("indent", 0))


def text_height(text: str, width: float, look: Look) -> float:
    """The height in points of the text wrapped in a column of this width; a word that is longer is split."""
    usable = width - PADDING - INDENT * int(look.get("indent", 0))
    lines, of_em = 0, _of_em(look)
    for paragraph in text.split("\n"):
        lines, left = lines + 1, usable
        for word in paragraph.split():
            needed = _ems(word) * of_em
            if needed > left and left < usable:
                lines, left = lines + 1, usable
            more = max(0, math.ceil(needed / usable) - 1)
            lines += more
            left -= needed - more * usable + _ems(" ") * of_em
    return lines * LINE * float(look.get("font_size", 10)) + 1


@functools.cache
def _ems(text: str) -> float:
    return sum(_EM.get(letter, DIGIT) for letter in text)


def _of_em(look: Look) -> float:
    """The width of an em in a cell of this look."""
    return float(look.get("font_size", 10)) / 10 / DIGIT * (BOLD if look.get("bold") else 1)
