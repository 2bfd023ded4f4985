"""Draw a Book as an Excel workbook: live formulas, each with its cached value, typed writes only.

Text is always written as text, so that no string of a catalog or a user can become a formula or a link.
"""

from __future__ import annotations

import io
import re
import warnings
from typing import Any

from xlsxwriter.worksheet import Worksheet

from sheetgen.brand import Brand
from sheetgen.errors import PageError, shown
from sheetgen.sheet.kinds import TABS, TWINS, kind_of
from sheetgen.sheet.model import Book, Cell, Chart, Range, Ref, Row, Sheet, column_name
from sheetgen.writers.formats import Options
from sheetgen.writers.xlsx_brand import put_brand
from sheetgen.writers.xlsx_fit import fitted
from sheetgen.writers.xlsx_library import PortableWorksheet, Workbook
from sheetgen.writers.xlsx_page import put_page
from sheetgen.writers.xlsx_rules import TINTS, put_filter, put_tints, put_validations
from sheetgen.writers.xlsx_shared import Shared, shared_rows, shared_runs
from sheetgen.writers.xlsx_styles import style

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # what XML cannot hold; tab and newline may


def write_xlsx(book: Book, options: Options | None = None) -> bytes:
    """The workbook as bytes, in a company's brand where there is one; the same book gives the same bytes.

    Raises PageError where the library refuses a write (it would report it by a return code only).
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
    def __init__(self, workbook: Any, book: Book, brand: Brand | None) -> None:
        self.workbook, self.book, self.brand = workbook, book, brand
        self.formats: dict[tuple[str, str], Any] = {}

    def write(self) -> None:
        workbook, book = self.workbook, self.book
        workbook.set_properties(
            {
                "title": "LLM serving sizing sheet",
                "subject": "Memory, hardware, speed and price of serving large language models",
                "author": "sheetgen",
                "company": "sheetgen",
                "category": "Capacity planning",
                "keywords": "LLM serving, sizing, KV cache, GPU, capacity, cost",
                "created": book.created,
                "comments": "Live formulas; cached values from sheetgen. Type into yellow cells; start at Inputs.",
            }
            | ({"company": self.brand.name} if self.brand else {})
        )
        for name, value in book.properties.items():
            workbook.set_custom_property(name, value, "text")
        workbook.set_calc_mode("auto")
        worksheets = [workbook.add_worksheet(sheet.name, worksheet_class=PortableWorksheet) for sheet in book.sheets]
        for sheet, worksheet in zip(book.sheets, worksheets, strict=True):
            self._sheet(sheet, worksheet)
        if self.brand is not None:
            put_brand(workbook, worksheets[0], book.sheets[0], self.brand)
        for name, target in sorted(book.names.items()):
            self._check(workbook.define_name(name, "=" + _absolute(target)), name)

    def _sheet(self, sheet: Sheet, worksheet: Worksheet) -> None:
        sheet = fitted(sheet)
        worksheet.hide_gridlines(2)
        if any(sheet.freeze):
            worksheet.freeze_panes(*sheet.freeze)
        for column, width in sheet.widths.items():
            worksheet.set_column(column, column, width)
        for row, height in sheet.heights.items():
            worksheet.set_row(row, height)
        runs = shared_runs(sheet.cells)
        for (row, column), cell in sorted(sheet.cells.items()):
            self._cell(worksheet, row, column, cell, runs.get((row, column)))
        first = 1 + max((r.number for r in runs.values()), default=-1)
        for of, shared in zip(sheet.rows, shared_rows(sheet.rows, first), strict=True):
            worksheet.write_row_of(of, self._format(of), shared)
        put_validations(worksheet, sheet)
        put_tints(worksheet, sheet, self._tint)
        put_filter(worksheet, sheet)
        for chart in sheet.charts:
            self._chart(sheet, worksheet, chart)
        put_page(worksheet, sheet, self.book, self.brand)
        if kind_of(sheet.name):
            worksheet.set_tab_color(TABS[kind_of(sheet.name)][1])
        worksheet.protect("", {"format_columns": True, "format_rows": True, "autofilter": True, "sort": True})

    def _cell(self, worksheet: Worksheet, row: int, column: int, cell: Cell, shared: Shared | None) -> None:
        form = self._format(cell)
        if isinstance(cell.value, str) and _CONTROL.search(cell.value):
            where = _place(worksheet, row, column)
            raise PageError(f"{where}: the text {shown(cell.value)!r} holds a control character.")
        if cell.formula is not None:
            if cell.value is None or cell.value == "":
                raise PageError(f"{_place(worksheet, row, column)}: a formula without a cached value")
            if cell.formula.array:
                text = "{=" + cell.formula.text + "}"
                done = worksheet.write_array_formula(row, column, row, column, text, form, cell.value)
            else:
                done = worksheet.write_one(cell, row, column, form, shared)
        elif cell.url is not None and cell.url.startswith(("https://", "http://", "internal:")):
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
            self._check(done, _place(worksheet, row, column))
        if cell.note and worksheet.get_name() not in TWINS:
            lines = 1 + sum(-(-len(line) // 60) for line in cell.note.splitlines())
            worksheet.write_comment(
                row, column, cell.note, {"x_scale": 3, "y_scale": max(0.6, lines / 5), "font_size": 9}
            )

    def _chart(self, sheet: Sheet, worksheet: Worksheet, chart: Chart) -> None:
        """A native stacked bar chart; the library caches the cells' values in it."""
        drawn = self.workbook.add_chart({"type": "bar", "subtype": "stacked"})

        def area(first: Ref, last: Ref) -> list[Any]:
            return [sheet.name, first.row, first.column, last.row, last.column]

        for title, first, last, colour in chart.series:
            drawn.add_series({"name": title, "categories": area(*chart.categories), "values": area(first, last),
                             "fill": {"color": colour}, "gap": 60})  # fmt: skip
        font = {"name": "Arial", "size": 9}
        drawn.set_title(
            {"name": chart.title, "name_font": {"name": "Arial", "size": 10, "bold": True}, "overlay": False}
        )
        drawn.set_y_axis({"reverse": True, "num_font": font})
        drawn.set_x_axis({"num_format": "#,##0", "num_font": font, "major_gridlines": {"visible": True,
                         "line": {"color": "#E5E7EB"}}})  # fmt: skip
        drawn.set_legend({"position": "bottom", "font": font})
        drawn.set_size({"width": chart.width, "height": chart.height})
        worksheet.insert_chart(chart.row, chart.column, drawn, {"description": chart.alt_text, "object_position": 1})

    @staticmethod
    def _check(code: Any, where: str) -> None:
        if code not in (None, 0):
            raise PageError(f"{where}: the workbook library refused the write (code {code})")

    def _format(self, cell: Cell | Row) -> Any:
        role = cell.role
        if (
            role == "computed"
            and cell.formula is not None
            and "!" in cell.formula.text
            and "(" not in cell.formula.text
        ):
            role = "link"
        key = (role, cell.display.excel)
        if key not in self.formats:
            colors = self.brand.colors if self.brand else None
            self.formats[key] = self.workbook.add_format(style(role, cell.display.excel, colors))
        return self.formats[key]

    def _tint(self, word: str) -> Any:
        """The format of a word that is tinted."""
        key = ("tint", word)
        if key not in self.formats:
            self.formats[key] = self.workbook.add_format(TINTS[word])
        return self.formats[key]


def _place(worksheet: Worksheet, row: int, column: int) -> str:
    return f"{worksheet.get_name()}!{column_name(column)}{row + 1}"


def _absolute(target: Ref | Range) -> str:
    """An absolute reference with its sheet."""
    if isinstance(target, Ref):
        return Ref(target.sheet, target.row, target.column, None).expr("").text
    return Range(target.refs).expr("").text
