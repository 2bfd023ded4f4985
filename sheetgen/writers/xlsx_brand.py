"""A brand in the workbook: logo and name at the head of the first sheet; on every printed page its name and line."""

from __future__ import annotations

import io
from typing import Any

from sheetgen.brand import Brand
from sheetgen.sheet.model import Sheet

TITLE_PIXELS = 340  # what the title takes at the left of the first row
LOGO_SHARE = 0.85  # of the first row's height
NAME_ROWS = (2, 0, 1)  # where the name may stand; beside the logo's row first
LEAST_LOGO, MOST_LOGO = 60, 240  # pixels of width


def put_brand(workbook: Any, worksheet: Any, sheet: Sheet, brand: Brand) -> None:
    """Logo and name at the right edge of the first rows."""
    column = max(c for (_, c), cell in sheet.cells.items() if cell.role != "off_page")
    if brand.logo is not None:
        right = sum(_pixels(sheet.widths.get(c, 8.43)) for c in range(column + 1))
        row = sheet.heights.get(0, 15.0) * 4 / 3
        width, height = brand.logo.within(max(LEAST_LOGO, min(MOST_LOGO, right - TITLE_PIXELS)), row * LOGO_SHARE)
        place = {
            "image_data": io.BytesIO(brand.logo.png),
            "x_offset": int(right - width),
            "y_offset": int((row - height) / 2),
            "x_scale": width / brand.logo.width,
            "y_scale": height / brand.logo.height,
            "description": f"Logo of {brand.name}",
            "object_position": 2,  # moves with the cells, keeps its size
        }
        worksheet.insert_image(0, 0, "logo.png", place)
    rows = NAME_ROWS if brand.logo is not None else NAME_ROWS[1:]
    free = next((r for r in rows if (r, column) not in sheet.cells), None)
    if free is not None:
        look = {"bold": True, "font_size": 11, "align": "right", "valign": "vcenter", "quote_prefix": True}
        worksheet.write_string(free, column, brand.name, workbook.add_format(look))


def put_print_marks(worksheet: Any, version: str, brand: Brand | None = None, *, first: bool = False) -> None:
    """A printed page's foot: who made it, the sheet's name, the page. A brand's name at the head, but on the `first`
    sheet, which shows it; its footer line alone above the foot, for the three parts are drawn over one another.
    """
    line = _in_codes(brand.footer) + "\n" if brand and brand.footer else ""
    below = "\n" if line else ""
    worksheet.set_footer(f"&L&8{line}sheetgen {version}&C&8{below}&A&R&8{below}Page &P of &N")
    if brand is not None and not first:
        worksheet.set_header(f"&R&8{_in_codes(brand.name)}")


def _in_codes(text: str) -> str:
    """`text` as Excel shows it after &8 in a header or footer, where & begins a code.

    The size said once more parts an & from G and [, which the library would take for a picture; a space parts digits
    from the size before them.
    """
    coded = text.replace("&", "&&").replace("&G", "&&8G").replace("&[", "&&8[")
    return f" {coded}" if coded[0].isdigit() else coded


def _pixels(width: float) -> int:
    """A column's width in pixels, at Arial 10."""
    return int(width * 7 + 5.5) if width >= 1 else int(width * 12 + 0.5)
