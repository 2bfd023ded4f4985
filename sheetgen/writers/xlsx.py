"""Writes a Book as an Excel workbook: live formulas with cached values, by typed writes alone.

Text is always written as text, so that no string from a catalog or a user can become a formula or a link.
"""

from __future__ import annotations

import datetime
import functools
import io
import itertools
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from xlsxwriter.utility import xl_range, xl_rowcol_to_cell
from xlsxwriter.worksheet import Worksheet

from sheetgen.book import sheets
from sheetgen.book.sheets import EXCEL_DAY_ZERO, Book, Cell, Chart, Range, Ref, Row, Sheet, Validation
from sheetgen.brand import Brand
from sheetgen.errors import PageError, shown
from sheetgen.units import PRICE_DATE
from sheetgen.writers.formats import Options
from sheetgen.writers.xlsx_library import CellFormat, PortableWorksheet, Shared, Workbook, shared_rows, shared_runs
from sheetgen.writers.xlsx_styles import (
    ASKED,
    DEFAULT_HEIGHT,
    DEFAULT_WIDTH,
    EDGE,
    STATUS,
    UNUSED,
    WARNING,
    fitted,
    style,
)

# Number formats of a chart of money: at the ends of columns, where 0 (of another series) shows nothing; and of an axis.
AMOUNTS = '[>=1000000]"{0}"0.00,,"M";[>=1]"{0}"#,##0;'
AXIS = '[>=1000000]"{0}"0.0,,"M";[>=10000]"{0}"#,##0,"k";"{0}"#,##0'
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # not allowed in XML, but tab and newline


def write_xlsx(book: Book, options: Options | None = None) -> bytes:
    """The workbook as bytes, in a company's brand if there is one; the same book gives the same bytes.

    Raises PageError for a write that the library refuses, which it reports only by a return code.
    """
    settings = {
        "in_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
        "default_format_properties": {"font_name": "Arial", "font_size": 10},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        workbook = Workbook(io.BytesIO(), settings)
        _Writer(workbook, book, options.brand if options else None).write()
        workbook.close()
    return workbook.packing.package


class _Writer:
    """Writes one book, sheet by sheet, with one XlsxWriter format per role and number format."""

    def __init__(self, workbook: Workbook, book: Book, brand: Brand | None) -> None:
        self.workbook, self.book, self.brand = workbook, book, brand
        self.formats: dict[tuple[str, str, bool], CellFormat] = {}
        self.tint = functools.cache(lambda word: workbook.add_format(TINTS[word]))
        self.less_than_a_day = functools.cache(lambda shown: workbook.add_format({"num_format": shown}))

    def write(self) -> None:
        workbook, book = self.workbook, self.book
        workbook.set_properties(
            {
                "title": book.title,
                "subject": book.subject,
                "author": book.owner or "sheetgen",
                "manager": book.approver,
                "company": self.brand.name if self.brand else "sheetgen",
                "category": "Capacity planning",
                "keywords": "LLM serving, sizing, KV cache, GPU, capacity, cost",
                "created": book.created,
                "comments": "Live formulas; cached values from sheetgen. Type into yellow cells; start at Inputs."
                + (f" Prices valid to {book.valid_until}." if book.valid_until else ""),
            }
        )
        for name, value in book.properties.items():
            workbook.set_custom_property(name, value, "text")
        workbook.set_calc_mode("auto")
        worksheets = [workbook.add_worksheet(sheet.name, worksheet_class=PortableWorksheet) for sheet in book.sheets]
        for sheet, worksheet in zip(book.sheets, worksheets, strict=True):
            self._sheet(sheet, worksheet)
            if sheet.is_hidden:
                worksheet.hide()
        if self.brand is not None:
            put_brand(workbook, worksheets[0], book.sheets[0], self.brand)
        for name, target in sorted(book.names.items()):
            absolute = Range(target.refs) if isinstance(target, Range) else target._replace(lock="both", name=None)
            _check(workbook.define_name(name, f"={absolute.expr('').text}"), name)

    def _sheet(self, sheet: Sheet, worksheet: Worksheet) -> None:
        sheet = fitted(sheet)
        worksheet.hide_gridlines(2)
        if any(sheet.freeze):
            worksheet.freeze_panes(*sheet.freeze)
        for column, width in sheet.widths.items():
            worksheet.set_column(column, column, width)
        for row, height in sheet.heights.items():
            worksheet.set_row(row, height)
        if sheet.n_printed is not None:  # columns to the right are for formulas alone
            worksheet.set_column(sheet.n_printed, max(c for _, c in sheet.cells), None, None, {"hidden": True})
        if sheet.folded:
            first, last = sheet.folded
            worksheet.outline_settings(symbols_below=False)
            worksheet.set_row(first - 1, sheet.heights.get(first - 1), None, {"collapsed": True})
            for row in range(first, last + 1):
                worksheet.set_row(row, sheet.heights.get(row), None, {"level": 1, "hidden": True})
        runs = shared_runs(sheet.cells)
        for (row, column), cell in sorted(sheet.cells.items()):
            self._cell(worksheet, row, column, cell, runs.get((row, column)))
        first = 1 + max((r.number for r in runs.values()), default=-1)
        for line, shared in zip(sheet.rows, shared_rows(sheet.rows, first), strict=True):
            worksheet.write_row_of(line, self._format(line), shared)
        put_validations(worksheet, sheet)
        tinted = areas(sheet.status_cells)
        for word in TINTS if tinted else ():  # mutually exclusive rules, one per word for all cells of the sheet
            rule = {"type": "cell", "criteria": "==", "value": f'"{word}"', "format": self.tint(word)}
            worksheet.conditional_format(*tinted[0], rule | several(tinted))
        for cells, criterion, tint in sheet.marked:
            marked = areas(cells)
            rule = {"type": "formula", "criteria": f"={criterion}", "format": self.tint(tint)}
            worksheet.conditional_format(*marked[0], rule | several(marked))
        dated = [place for place, cell in sheet.cells.items() if cell.display == PRICE_DATE]
        for area in areas(dated):
            first = xl_rowcol_to_cell(area.top, area.left)
            for day_format, criterion in LESS_THAN_A_DAY.items():
                rule = {"type": "formula", "criteria": criterion.format(first), "stop_if_true": True}
                worksheet.conditional_format(*area, rule | {"format": self.less_than_a_day(day_format)})
        table = filtered(sheet)
        if table is not None and sheet.kind != sheets.CONTROL:
            worksheet.autofilter(*table)
        for chart in sheet.charts:
            self._chart(sheet, worksheet, chart)
        put_page(worksheet, sheet, self.book, self.brand)
        if sheet.kind:
            worksheet.set_tab_color(sheets.TABS[sheet.kind][1])
        if sheet.folded is None:  # spreadsheets cannot unfold rows of a protected sheet
            worksheet.protect("", {"format_columns": True, "format_rows": True, "autofilter": True, "sort": True})

    def _cell(self, worksheet: Worksheet, row: int, column: int, cell: Cell, shared: Shared | None) -> None:
        form = self._format(cell)
        if isinstance(cell.value, str) and _CONTROL.search(cell.value):
            where = _place(worksheet, row, column)
            raise PageError(f"{where}: the text {shown(cell.value)!r} holds a control character.")
        if cell.span > 1:
            worksheet.merge_range(row, column, row, column + cell.span - 1, "", form)
        if cell.formula is not None:
            if cell.value is None or cell.value == "":
                raise PageError(f"{_place(worksheet, row, column)}: a formula without a cached value")
            if cell.formula.array:
                text = "{=" + cell.formula.text + "}"
                done = worksheet.write_array_formula(row, column, row, column, text, form, cell.value)
            else:
                done = worksheet.write_one(cell, row, column, form, shared)
        elif cell.url is not None and cell.url.startswith(("https://", "http://", "internal:", sheets.BESIDE)):
            done = worksheet.write_url(row, column, cell.url, form, str(cell.value))
        elif cell.value is None or cell.value == "":
            done = worksheet.write_blank(row, column, None, form)
        elif hasattr(cell.value, "isoformat"):
            done = worksheet.write_datetime(row, column, cell.value, form)
        elif isinstance(cell.value, (int, float)):
            done = worksheet.write_one(cell, row, column, form, None)
        else:
            done = worksheet.write_string(row, column, str(cell.value), form)
        if done:
            _check(done, _place(worksheet, row, column))
        if cell.note and worksheet.get_name() not in sheets.TWINS:
            lines = 1 + sum(-(-len(line) // 60) for line in cell.note.splitlines())
            worksheet.write_comment(
                row, column, cell.note, {"x_scale": 3, "y_scale": max(0.6, lines / 5), "font_size": 9}
            )

    def _chart(self, sheet: Sheet, worksheet: Worksheet, chart: Chart) -> None:
        """Insert a native stacked chart, with lines over it if there are any; the library caches the cells' values."""
        font = {"name": "Arial", "size": 10}
        how = {"type": "column" if chart.is_upright else "bar"} | ({} if chart.upright else {"subtype": "stacked"})
        drawn = self.workbook.add_chart(how)
        amounts = {"value": True, "position": "outside_end", "num_format": AMOUNTS.format(chart.sign), "font": font}

        def area(first: Ref, last: Ref) -> list[str | int]:
            return [first.sheet, first.row, first.column, last.row, last.column]

        for title, first, last, colour in chart.series:
            drawn.add_series(
                {
                    "name": title,
                    "categories": area(*chart.categories),
                    "values": area(first, last),
                    "fill": {"color": colour} if colour else {"none": True},
                    "gap": 30 if chart.upright else 60,
                }
                | ({"overlap": 100, "data_labels": amounts} if chart.upright else {})
            )
        if chart.lines:
            over = self.workbook.add_chart({"type": "line"})
            for title, first, last, colour, dashed in chart.lines:
                look = {"color": colour, "width": 2, "dash_type": "dash" if dashed else "solid"}
                over.add_series(
                    {"name": title, "categories": area(*chart.categories), "values": area(first, last), "line": look}
                )
            drawn.combine(over)
        drawn.set_title(
            {"name": chart.title, "name_font": {"name": "Arial", "size": 10, "bold": True}, "overlay": False}
        )
        of_numbers = {
            "min": 0,
            "num_format": AXIS.format(chart.sign) if chart.sign else "#,##0",
            "num_font": font,
            "major_gridlines": {"visible": not (chart.upright or chart.labelled), "line": {"color": "#E5E7EB"}},
            "visible": not (chart.upright or chart.labelled),
        }
        drawn.set_y_axis(of_numbers if chart.is_upright else {"reverse": True, "num_font": font, "interval_unit": 1})
        drawn.set_x_axis({"num_font": font} if chart.is_upright else of_numbers)
        if chart.upright:  # the amount above the highest column keeps away from the title
            drawn.set_plotarea({"layout": {"x": 0.03, "y": 0.28, "width": 0.94, "height": 0.56}})
        drawn.set_legend(
            {"none": True} if chart.upright or not all(chart.series[0]) else {"position": "bottom", "font": font}
        )
        drawn.show_hidden_data()
        drawn.set_size({"width": chart.width, "height": chart.height})
        options = {"description": chart.alt_text, "object_position": 1, "x_offset": chart.left}
        worksheet.insert_chart(chart.row, chart.column, drawn, options)

    def _format(self, cell: Cell | Row) -> CellFormat:
        role, text = cell.role, "" if cell.formula is None else cell.formula.text
        if role == "computed" and "!" in text and "(" not in text:
            role = "link"
        wraps = isinstance(cell, Cell) and cell.wraps
        key = (role, cell.display.excel, wraps)
        if key not in self.formats:
            colors = self.brand.colors if self.brand else None
            look = style(role, cell.display.excel, colors) | ({"text_wrap": True} if wraps else {})
            self.formats[key] = self.workbook.add_format(look)
        return self.formats[key]


def _check(code: int | None, where: str, attempt: str = "the write") -> None:
    """Raise PageError for a return code by which the library refuses."""
    if code not in (None, 0):
        raise PageError(f"{where}: the workbook library refused {attempt} (code {code})")


def _place(worksheet: Worksheet, row: int, column: int) -> str:
    return f"{worksheet.get_name()}!{xl_rowcol_to_cell(row, column)}"


class Area(NamedTuple):
    """A rectangle of cells; rows and columns count from 0."""

    top: int
    left: int
    bottom: int
    right: int

    def __str__(self) -> str:
        return str(xl_range(*self))


def areas(cells: Iterable[tuple[int, int]]) -> list[Area]:
    """The rectangles that cover these cells: runs down a column, joined with neighbouring runs of the same rows."""
    runs: list[Area] = []
    for row, column in sorted(cells, key=lambda place: (place[1], place[0])):
        if runs and runs[-1].left == column and runs[-1].bottom == row - 1:
            runs[-1] = runs[-1]._replace(bottom=row)
        else:
            runs.append(Area(row, column, row, column))
    rectangles: list[Area] = []
    for run in sorted(runs, key=lambda run: (run.top, run.bottom, run.left)):
        last = rectangles[-1] if rectangles else None
        if last and (last.top, last.bottom, last.right) == (run.top, run.bottom, run.left - 1):
            rectangles[-1] = last._replace(right=run.right)
        else:
            rectangles.append(run)
    return rectangles


def several(rectangles: list[Area]) -> dict[str, str]:
    """The library's option for more than one rectangle."""
    return {"multi_range": " ".join(map(str, rectangles))} if len(rectangles) > 1 else {}


MOST_TITLE, MOST_PROMPT, MOST_ERROR = 32, 255, 225  # characters that Excel allows
LEAST_HEADS = 3  # heads of a table that gets a filter
# Words that are tinted in a sheet's status cells; the word has the same meaning as the tint.
# A price that was read with its month or its year alone counts from the first day of it, and shows no day.
LESS_THAN_A_DAY = {"yyyy": "=AND(MONTH({0})=1,DAY({0})=1)", "yyyy-mm": "=DAY({0})=1"}
TINTS = {
    **STATUS,
    "asked": ASKED,
    "unused": UNUSED,
    "blank": {"font_color": "#FFFFFF"},
    "OK": STATUS["fits"],
    "changed": WARNING,
    "run pull": WARNING,
    "CHECK": STATUS["none fits"],
    "out of range": STATUS["none fits"],
}


def put_validations(worksheet: Worksheet, sheet: Sheet) -> None:
    """Write each data validation once, for all its cells. Raises PageError for one that the library refuses."""
    alike: dict[Validation, list[tuple[int, int]]] = {}
    for place, cell in sheet.cells.items():
        if cell.validation is not None:
            alike.setdefault(cell.validation, []).append(place)
    for validation, cells in alike.items():
        rectangles = areas(cells)
        code = worksheet.data_validation(*rectangles[0], _options(validation) | several(rectangles))
        _check(code, f"{sheet.name}!{rectangles[0]}", "what the cell accepts")


def _options(v: Validation) -> dict[str, object]:
    """The library's options for a validation."""
    out: dict[str, object] = {
        "input_title": v.title[:MOST_TITLE],
        "input_message": v.message[:MOST_PROMPT],
        "ignore_blank": True,
        "error_title": "Not allowed",
        "error_message": v.message[:MOST_ERROR],
    }
    if v.source is not None:
        return out | {"validate": "list", "source": f"={v.source}", "ignore_blank": False}
    assert v.kind is not None
    low, high = v.bounds
    least: str | float | datetime.date = f"=MAX({low:.0f},{v.at_least})" if v.at_least else low
    most: str | float | datetime.date = f"=MIN({high:.0f},{v.at_most})" if v.at_most else high
    accepted = {"text": "length", "date": "date"}.get(v.kind.holds, "integer" if v.kind.is_whole else "decimal")
    if accepted == "date":
        least, most = (EXCEL_DAY_ZERO + datetime.timedelta(int(day)) for day in (low, high))
    return out | {"validate": accepted, "criteria": "between", "minimum": least, "maximum": most}


def filtered(sheet: Sheet) -> Area | None:
    """The table whose heads are the last frozen row, down to the last row with a first cell; None if it has too few
    heads for a filter."""
    top, heads = sheet.freeze[0] - 1, 0
    while (cell := sheet.cells.get((top, heads))) is not None and cell.role == "head":
        heads += 1
    if heads < LEAST_HEADS:
        return None
    bottom = top
    while (bottom + 1, 0) in sheet.cells:
        bottom += 1
    return Area(top, 0, bottom, heads - 1)


POINTS_PER_WIDTH = 5.54  # per unit of column width in Arial 10, as LibreOffice draws it
PAPERS = {"a4": (595.0, 842.0), "letter": (612.0, 792.0)}  # points
MARGINS = {"left": 0.4, "right": 0.4, "top": 0.4, "bottom": 0.5}  # inches
SPARE = 0.985  # share of a page that is filled
READABLE = 85  # percent, at which the text of a cell is 8.5 points high
_PAPER = {"a4": 9, "letter": 1}


def put_page(worksheet: Worksheet, sheet: Sheet, book: Book, brand: Brand | None) -> None:
    """Set up a sheet for printing. The print area of a sheet for the screen alone is a blank cell."""
    worksheet.set_paper(_PAPER[book.paper])
    if sheet.landscape:
        worksheet.set_landscape()
    worksheet.set_margins(**MARGINS)
    is_first = sheet.name == book.sheets[0].name
    put_print_marks(worksheet, book.properties.get("sheetgen.version", ""), brand, first=is_first)
    last = max([c for _, c in sheet.cells] + [r.left + len(r) - 1 for r in sheet.rows])
    last = last if sheet.n_printed is None else sheet.n_printed - 1
    if sheet.kind and sheet.name not in sheets.PRINTED:
        worksheet.print_area(0, last + 1, 0, last + 1)
        return
    last_row = max(r for (r, _), cell in sheet.cells.items() if cell.role != "off_page")
    n_rows = sheet.rows_printed or 1 + max([last_row, *(c.row + sheets.rows_of(c.height) for c in sheet.charts)])
    worksheet.print_area(0, 0, n_rows - 1, last)
    breaks: Sequence[int] = ()
    if sheet.one_page:
        worksheet.fit_to_pages(1, 1)
        worksheet.center_horizontally()
    elif sheet.page_breaks:  # a sheet that is fitted to pages would ignore them
        percent, breaks = pages_of(sheet, last, n_rows, printable(book.paper, landscape=sheet.landscape))
        worksheet.set_print_scale(percent)
        worksheet.set_h_pagebreaks(breaks)
    else:
        worksheet.fit_to_pages(1, 0)
    if not sheet.one_page:
        first_repeated, last_repeated = repeated(sheet, breaks)
        if last_repeated >= first_repeated:
            worksheet.repeat_rows(first_repeated, last_repeated)


def repeated(sheet: Sheet, breaks: Sequence[int]) -> tuple[int, int]:
    """The first and the last row that are printed on every page; none where no page but the first has rows that these
    are the heads of."""
    if sheet.last_headed is not None and all(row > sheet.last_headed for row in breaks):
        return 0, -1
    return sheet.rows_repeated or (0, sheet.freeze[0] - 1)


def printable(paper: str, *, landscape: bool) -> tuple[float, float]:
    """The width and the height in points that a page has within its margins, less what readers' columns differ by."""
    width, height = reversed(PAPERS[paper]) if landscape else PAPERS[paper]
    across, down = (72 * (MARGINS[a] + MARGINS[b]) for a, b in (("left", "right"), ("top", "bottom")))
    return SPARE * (width - across), SPARE * (height - down)


def pages_of(sheet: Sheet, last: int, n_rows: int, page: tuple[float, float]) -> tuple[int, list[int]]:
    """The print scale in percent, and the rows that begin a page: the columns up to `last` fit the width; of the scales
    at which all can be read, the largest that needs the fewest pages."""
    columns = sum(EDGE + sheet.widths.get(column, DEFAULT_WIDTH) for column in range(last + 1))
    fitting = min(100, int(100 * page[0] / (columns * POINTS_PER_WIDTH)))
    scales = range(fitting, min(fitting, READABLE) - 1, -1)
    breaks = {percent: page_breaks(sheet, n_rows, 100 * page[1] / percent) for percent in scales}
    percent = min(scales, key=lambda percent: len(breaks[percent]))
    return percent, breaks[percent]


def page_breaks(sheet: Sheet, n_rows: int, height: float) -> list[int]:
    """The rows that begin a printed page of that height: of those that may, the last before a page is full."""
    heights = [sheet.heights.get(row, DEFAULT_HEIGHT) for row in range(n_rows)]
    breaks, top, left = list[int](), 0, height
    rows = [row for row in sheet.page_breaks if row < n_rows]
    for row, after in itertools.pairwise([*rows, n_rows]):
        if row > top and sum(heights[top:after]) > left:
            breaks.append(row)
            first, last = repeated(sheet, breaks)
            top, left = row, height - sum(heights[first : last + 1])
    return breaks


TITLE_PIXELS = 340  # width of the title at the left of the first row
LOGO_SHARE = 0.85  # of the first row's height
NAME_ROWS = (1, 2)  # rows for the name, in order of preference; row 0 has the title and the logo
LEAST_LOGO, MOST_LOGO = 60, 240  # pixels of width


def put_brand(workbook: Workbook, worksheet: Worksheet, sheet: Sheet, brand: Brand) -> None:
    """Put the brand's logo and name at the right edge of the first rows."""
    column = max(c for (_, c), cell in sheet.cells.items() if cell.role != "off_page")
    if brand.logo is not None:
        right = sum(_pixels(sheet.widths.get(c, DEFAULT_WIDTH)) for c in range(column + 1))
        row = sheet.heights.get(0, DEFAULT_HEIGHT) * 4 / 3
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
    free = next((r for r in NAME_ROWS if (r, column) not in sheet.cells), None)
    if free is not None:
        look = {"bold": True, "font_size": 11, "align": "right", "valign": "vcenter", "quote_prefix": True}
        worksheet.write_string(free, column, brand.name, workbook.add_format(look))


def put_print_marks(worksheet: Worksheet, version: str, brand: Brand | None = None, *, first: bool = False) -> None:
    """Set the printed footer (version, sheet's name, page), and the brand's name as header, except on the `first`
    sheet, which shows it. The brand's footer has a line of its own, as the three parts of a line may overlap."""
    line = _in_codes(brand.footer) + "\n" if brand and brand.footer else ""
    below = "\n" if line else ""
    worksheet.set_footer(f"&L&10{line}sheetgen {version}&C&10{below}&A&R&10{below}Page &P of &N")
    if brand is not None and not first:
        worksheet.set_header(f"&R&10{_in_codes(brand.name)}")


def _in_codes(text: str) -> str:
    """`text` escaped for a header or footer after &10, where & begins a code.

    A repeated size separates an & from G and [, which the library would take for a picture; a space separates digits
    from the size before them.
    """
    coded = text.replace("&", "&&").replace("&G", "&&10G").replace("&[", "&&10[")
    return f" {coded}" if coded[0].isdigit() else coded


def _pixels(width: float) -> int:
    """A column's width in pixels, at Arial 10."""
    return int(width * 7 + 5.5) if width >= 1 else int(width * 12 + 0.5)
