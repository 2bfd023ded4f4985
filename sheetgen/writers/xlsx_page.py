"""How each sheet is printed: its paper, what of it goes on a page and at which size, and what is said on every page."""

from __future__ import annotations

from typing import Any

from sheetgen.brand import Brand
from sheetgen.sheet.kinds import INPUT, OUTPUT, WORKINGS, kind_of
from sheetgen.sheet.model import Book, Sheet, column_name
from sheetgen.writers.xlsx_brand import put_print_marks
from sheetgen.writers.xlsx_fit import DEFAULT_WIDTH
from sheetgen.writers.xlsx_rules import filtered

CHART_ROWS = 9  # rows that a chart covers on the page
POINTS_PER_WIDTH = 5.6  # of one unit of column width in Arial 10
PAGE_POINTS = {True: 760.0, False: 520.0}  # width that A4 and Letter have both, landscape or not, in points
SMALLEST_SCALE = 0.5  # of print; a wider sheet goes over several pages, its first columns on each
_PAPER = {"a4": 9, "letter": 1}


def put_page(worksheet: Any, sheet: Sheet, book: Book, brand: Brand | None) -> None:
    """The print set-up of a sheet. Where not all columns are printed, the head of the page says so."""
    worksheet.set_paper(_PAPER[book.paper])
    if sheet.landscape:
        worksheet.set_landscape()
    worksheet.set_margins(left=0.4, right=0.4, top=0.5, bottom=0.6)
    is_first = sheet.name == book.sheets[0].name
    put_print_marks(worksheet, book.properties.get("sheetgen.version", ""), brand, first=is_first)
    first, last = printed_columns(sheet)
    if (first, last) != (0, last_column(sheet)):
        _say_columns(worksheet, sheet, first, last)
    last_row = max(r for (r, c), cell in sheet.cells.items() if cell.role != "off_page" and c <= last)
    last_row = max([last_row, *(c.row + CHART_ROWS for c in sheet.charts)])
    worksheet.print_area(0, first, last_row, last)
    if sheet.one_page:
        worksheet.fit_to_pages(1, 1)
        worksheet.center_horizontally()
    elif sheet.page_breaks:  # a sheet that is fitted to pages would ignore them
        worksheet.set_print_scale(int(100 * min(1.0, scale(sheet, first, last))))
        worksheet.set_h_pagebreaks(sheet.page_breaks)
    elif first or scale(sheet, first, last) < SMALLEST_SCALE:
        worksheet.set_print_scale(int(100 * SMALLEST_SCALE))
        worksheet.print_across()
        if sheet.freeze[1]:
            worksheet.repeat_columns(0, sheet.freeze[1] - 1)
    else:
        worksheet.fit_to_pages(1, 0)
    if sheet.freeze[0] and not sheet.one_page:
        worksheet.repeat_rows(0, sheet.freeze[0] - 1)


def last_column(sheet: Sheet) -> int:
    """The last column that holds something."""
    return max([c for _, c in sheet.cells] + [r.left + len(r) - 1 for r in sheet.rows])


def scale(sheet: Sheet, first: int, last: int) -> float:
    """How far the sheet must shrink so that these columns are one page wide, with those that are on every page."""
    columns = [*range(min(first, sheet.freeze[1])), *range(first, last + 1)]
    width = sum(sheet.widths.get(column, DEFAULT_WIDTH) for column in columns)
    return PAGE_POINTS[sheet.landscape] / (width * POINTS_PER_WIDTH)


def printed_columns(sheet: Sheet) -> tuple[int, int]:
    """The first and last column that are printed of a sheet that is wider than a page at the smallest size.

    Of workings those that one page holds: nobody tapes twenty together, and all of them are on the screen; of a matrix
    the first of its columns, beside the labels. Of inputs as far as there are yellow ones; of outputs the table,
    without what stands apart to its right.
    """
    kind, table, last = kind_of(sheet.name), filtered(sheet), last_column(sheet)
    if scale(sheet, 0, last) >= SMALLEST_SCALE:
        return 0, last
    if kind == WORKINGS:
        lefts = {row.left for row in sheet.rows if row.formula is not None}
        first = min(lefts) if lefts and min(lefts) > sheet.freeze[1] else 0
        fits = (column for column in range(last, first, -1) if scale(sheet, first, column) >= SMALLEST_SCALE)
        return first, next(fits, first)
    if kind == INPUT:
        return 0, max((c for (_, c), cell in sheet.cells.items() if cell.role == "input"), default=last)
    return 0, table.right if kind == OUTPUT and table is not None else last


def _say_columns(worksheet: Any, sheet: Sheet, first: int, last: int) -> None:
    """At the head of each page, which columns are printed."""
    labels = f"{_columns(0, sheet.freeze[1] - 1)} and " if first and sheet.freeze[1] else ""
    words = f"columns {labels}{_columns(first, last)} of {_columns(0, last_column(sheet))}"
    worksheet.set_header(f"&L&8{words}; the others are on the screen{worksheet.header}")


def _columns(first: int, last: int) -> str:
    return column_name(first) if first == last else f"{column_name(first)} to {column_name(last)}"
