"""Sheets as data: cells with a value and the formula it came from, wired by reference before anyone draws them.

A cell's `value` is what Python computed; its `formula` is the same function read with cell references. Both
come from one call of `compute`, so a value and its formula cannot be wired differently.

A block of cells that one formula fills is worked out together, and written once a row: cell by cell, a matrix of
thousands would take seconds to work out and megabytes to write. A row of a block is one array of values, and one
formula that its cells share: the text as the first cell has it, which a spreadsheet moves along the row.

A sheet of answers may show another currency than US dollars. Each amount is then worked out in dollars on a hidden
sheet, in the cell of the same address, where formulas read it; the sheet itself shows it at the rate on Inputs.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sheetgen.errors import PageError
from sheetgen.formula import Expr, Formula, Later, Quantity, Value, function, is_number, where
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.parse import MOST, MOST_TEXT, Kind
from sheetgen.report.templates import FX_RATE, Sentence
from sheetgen.report.wording import prefix_of, sign_of
from sheetgen.units import FIRST_DAY, LAST_DAY, TEXT, USD, Display

if TYPE_CHECKING:
    import numpy

# Of a cell: a number, a text, a day, or None. No narrower type has the arithmetic of all of them.
CellValue: TypeAlias = Any
EXCEL_DAY_ZERO = datetime.date(1899, 12, 30)
NONE = "-"  # the result of a formula without a number; never 0, which would read as free
INPUT, WORKINGS, OUTPUT, CONTROL = "Input", "Workings", "Output", "Control"
IN_DOLLARS = "{} in US dollars"  # the name of the hidden sheet with the dollars of a sheet that shows another currency
KINDS = {
    "Sizing sheet": OUTPUT,
    "Decision": OUTPUT,
    "Inputs": INPUT,
    "Constants": INPUT,
    "Models": INPUT,
    "GPUs": INPUT,
    "Prices and hardware": INPUT,
    "Money": OUTPUT,
    "Hosts": WORKINGS,
    "Workings": WORKINGS,
    "Contexts": WORKINGS,
    "Profiles": WORKINGS,
    "Candidates": WORKINGS,
    "Levers": OUTPUT,
    "OOM guide": OUTPUT,
    "Sources and checks": CONTROL,
    "Checks": CONTROL,
    "Change log": CONTROL,
    "Record": CONTROL,
    # Of a plan.
    "Plan": OUTPUT,
    "Decisions": OUTPUT,
    "Services": OUTPUT,
    "Supply": OUTPUT,
    "Catalog": WORKINGS,
    "Decision data": WORKINGS,
    "Decision contexts": WORKINGS,
    "Decision loads": WORKINGS,
}
# In the order of the tabs; every other sheet of the workbook is hidden, and listed on the last of these.
TABS_OF_PLAN = ("Plan", "Decisions", "Services", "Supply")
KINDS |= {IN_DOLLARS.format(name): WORKINGS for name in ("Sizing sheet", "Decision", "Money", *TABS_OF_PLAN)}
TABS_SHOWN = (
    "Sizing sheet", "Decision", "Inputs", "Money", "Prices and hardware", *TABS_OF_PLAN, "Checks",
    "Sources and checks",
)  # fmt: skip
PRINTED = (*TABS_SHOWN[:4], *TABS_OF_PLAN)
# Repeated for the choices of Decision: their heads are explained on the sheet that they repeat.
TWINS = {"Decision contexts": "Contexts", "Decision loads": "Workings"}
TABS = {
    INPUT: ("yellow", "#FACC15"),
    OUTPUT: ("green", "#16A34A"),
    WORKINGS: ("grey", "#9CA3AF"),
    CONTROL: ("black", "#1F2937"),
}
LEGEND = "Tabs: " + ", ".join(f"{kind.lower()} {color}" for kind, (color, _) in TABS.items()) + "."
PRECISIONS = "list_precision"  # the defined name of the precisions, without auto
AND_AUTO = "list_dtype"  # of the same with auto
OF_WEIGHTS = "list_weight_dtype"  # of the same with recommended and published, too
MOST_MESSAGE, MOST_TITLE = 225, 32  # characters that Excel allows


@dataclass(frozen=True)
class Validation:
    """The values that a cell accepts: an entry of a list (a range by its defined name), or a value of its kind.

    at_least, at_most: the defined names of cells that bound it too.
    """

    title: str
    message: str
    source: str | None = None
    kind: Kind | None = None
    at_least: str = ""
    at_most: str = ""

    @classmethod
    def of(cls, kind: Kind, title: str, about: str = "") -> Validation:
        """The validation of a yellow cell of that kind, the same in `build` and `pull`; `about` ends its message."""
        sentence = _said(kind) + (" Blank: none." if kind.blank and "Blank:" not in about else "")
        full = f"{sentence} {about}" if about else sentence
        title = title if len(title) <= MOST_TITLE else title[: MOST_TITLE + 1].rpartition(" ")[0]
        source = {"dtype": PRECISIONS, "auto dtype": AND_AUTO, "weights dtype": OF_WEIGHTS}.get(kind.what)
        return cls(title, full if len(full) <= MOST_MESSAGE else sentence, source, kind)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value, as a spreadsheet counts them: of a number, of a day, or of a text's
        characters."""
        assert self.kind is not None
        if self.kind.what == "date":
            return (FIRST_DAY - EXCEL_DAY_ZERO).days, (LAST_DAY - EXCEL_DAY_ZERO).days
        if self.kind.what == "currency":
            return 3, 3
        if self.kind.holds == "text":
            return 0 if self.kind.blank else 1, MOST_TEXT
        return self.kind.low, self.kind.high


def _said(kind: Kind) -> str:
    """`Kind` in a sentence; bounds that nobody meets are left out."""
    if kind.what == "share":
        return f"A share {'above' if kind.low else 'from'} 0% and up to {kind.high:.0%}."
    if kind.what == "auto dtype":
        return "auto or one of the precisions below."
    if kind.what == "weights dtype":
        return "recommended, published or one of the precisions below."
    if kind.what == "currency":
        return "Its three letters, such as EUR."
    if kind.is_whole and (kind.low, kind.high) == (0, 1):
        return "0 or 1."
    if kind.is_number and kind.high >= MOST:
        return f"A {'whole ' if kind.is_whole else ''}number, {kind.low:,g} or more."
    text = str(kind)
    return f"{text[0].upper()}{text[1:]}."


@dataclass
class Cell:
    """One cell. `role` is its kind (input, computed, head, ...), which the writer formats."""

    value: CellValue
    role: str = "text"
    display: Display = TEXT
    formula: Expr | None = None
    note: str = ""
    url: str | None = None
    validation: Validation | None = None
    span: int = 1  # columns merged, for long text
    wraps: bool = False  # on several lines, whatever its role


@functools.cache
def column_name(column: int) -> str:
    """0 is A, 26 is AA."""
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name


@functools.cache
def column_number(name: str) -> int:
    """A is 0, AA is 26."""
    number = 0
    for letter in name:
        number = 26 * number + ord(letter) - 64
    return number - 1


class Ref(NamedTuple):
    """A placed cell: its address, its value, and the part of its address that a copied formula keeps."""

    sheet: str
    row: int
    column: int
    value: CellValue
    name: str | None = None
    lock: str = "both"  # both | column (a table's row) | row (a matrix's head)

    def expr(self, reader: str) -> Expr:
        """This cell as the sheet `reader` addresses it."""
        return Expr(self.name) if self.name else _address(self.sheet, self.row, self.column, self.lock, reader)


@functools.lru_cache(maxsize=2**16)  # most cells are read by several formulas of a sheet
def _address(sheet: str, row: int, column: int, lock: str, reader: str) -> Expr:
    letters = ("$" if lock in ("both", "column") else "") + column_name(column)
    digits = ("$" if lock in ("both", "row") else "") + str(row + 1)
    return Expr(_sheet_prefix(sheet, reader) + letters + digits)


@dataclass(frozen=True)
class Range:
    """A row or column of placed cells, read as a whole."""

    refs: Sequence[Ref]
    lock: str = "both"  # both | rows (a column whose rows stay) | columns (a row that moves down)
    name: str | None = None  # its defined name, by which formulas of other sheets read it

    @functools.cached_property
    def value(self) -> Any:
        import numpy

        block_values = getattr(self.refs, "values", None)  # a row of a block
        if block_values is not None:
            return block_values
        values = [r.value for r in self.refs]
        if all(isinstance(v, (int, float)) or v in (None, NONE) for v in values):
            return numpy.array([v if isinstance(v, (int, float)) else numpy.nan for v in values], float)
        return numpy.array(["" if v is None else v for v in values], object)

    @functools.cached_property
    def _area(self) -> str:
        first, last = self.refs[0], self.refs[-1]
        row = "" if self.lock == "columns" else "$"
        return f"${column_name(first.column)}{row}{first.row + 1}:${column_name(last.column)}{row}{last.row + 1}"

    def expr(self, reader: str) -> Expr:
        return Expr(self.name or _sheet_prefix(self.refs[0].sheet, reader) + self._area)


@dataclass(frozen=True)
class Lookup:
    """A look-up: its value, and how it is written on a sheet."""

    value: CellValue
    write: Callable[[str], Expr]

    @classmethod
    def of(cls, value: CellValue, text: str, *read: Source) -> Lookup:
        """A look-up that is written as `text`, with what it reads put in for {0}, {1} and so on."""
        return cls(value, lambda reader: Expr(text.format(*(source.expr(reader).text for source in read))))

    def expr(self, reader: str) -> Expr:
        """The look-up as the sheet `reader` addresses it."""
        return self.write(reader)


BESIDE = "external:"  # of a link to a file in the workbook's own folder


@functools.cache
def _sheet_prefix(sheet: str, reader: str) -> str:
    if sheet == reader:
        return ""
    return f"'{sheet}'!" if re.search(r"\W", sheet) else f"{sheet}!"


@dataclass(frozen=True)
class Row(Sequence[Ref]):
    """A row of a block: its cells as references, made when they are read."""

    sheet: str
    row: int
    left: int
    values: numpy.ndarray
    formula: Expr | None  # none: the values are facts
    role: str
    display: Display
    lock: str

    def __len__(self) -> int:
        return len(self.values)

    def padded(self, width: int) -> Row:
        """The same row with blank cells to its right, up to the width of longer rows."""
        import numpy

        blanks = numpy.full(width - len(self), numpy.nan)
        return replace(self, values=numpy.concatenate([self.values, blanks])) if len(blanks) else self

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return tuple(self[k] for k in range(*i.indices(len(self))))
        position = range(len(self))[i]
        return Ref(self.sheet, self.row, self.left + position, plain(self.values[position]), lock=self.lock)


Source = Ref | Range | Lookup  # an input of a formula


@dataclass(frozen=True)
class RowValues:
    """The input of the cells of a row, written as the first cell sees it: one value for each cell, or, where each reads
    a whole range, a column of the values."""

    values: numpy.ndarray
    first: Source

    @classmethod
    def of(cls, sources: Sequence[Source]) -> RowValues:
        """A source for each cell of a row."""
        import numpy

        values = getattr(sources, "values", None)
        if values is None:
            values = [number(s.value) for s in sources]
            values = numpy.array(values, float if all(isinstance(v, (int, float)) for v in values) else object)
        return cls(values, getattr(sources, "first", None) or sources[0])

    def expr(self, reader: str) -> Expr:
        """The source as the row's first cell has it."""
        return self.first.expr(reader)

    def cut(self, width: int) -> RowValues:
        """The same for the first cells alone."""
        return RowValues(self.values[..., :width], self.first)


DOLLARS = str(BY_NAME["currency"].default)  # of all that is worked out
_IN_DOLLARS = re.compile(r"US dollars|\$(?=$|[ :,])")  # in heads and titles


@dataclass(frozen=True)
class Currency:
    """The currency of the budget: its code, and the cell with how many of it a US dollar is."""

    code: str
    rate: Ref

    @functools.cached_property
    def sign(self) -> str:
        return sign_of(self.code)

    @functools.cached_property
    def prefix(self) -> str:
        return prefix_of(self.sign)

    def named(self, text: str) -> str:
        """A head or a title that names this currency in place of dollars."""
        return _IN_DOLLARS.sub(lambda found: self.code if found[0] == "US dollars" else self.sign, text)


@dataclass
class Sheet:
    """One worksheet being filled. Rows and columns count from 0.

    currency: of its amounts, where that is not US dollars.
    """

    name: str
    landscape: bool = True
    one_page: bool = False
    freeze: tuple[int, int] = (0, 0)
    about: str = ""
    cells: dict[tuple[int, int], Cell] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # cells that share a formula
    linked: dict[tuple[str, int, int], Ref] = field(default_factory=dict)  # cells of other sheets, by where they are
    widths: dict[int, float] = field(default_factory=dict)
    heights: dict[int, float] = field(default_factory=dict)  # least ones: the writer makes room for wrapped texts
    status_cells: list[tuple[int, int]] = field(default_factory=list)
    marked: list[tuple[list[tuple[int, int]], str, str]] = field(default_factory=list)  # cells, a rule, a tint
    page_breaks: list[int] = field(default_factory=list)  # rows that may begin a printed page
    folded: tuple[int, int] | None = None  # rows that one click on the row above them shows
    rows_printed: int | None = None  # those below are for the screen alone; None: all
    n_printed: int | None = None  # columns, those to the right being hidden; None: all
    rows_repeated: tuple[int, int] | None = None  # the first and the last row printed on further pages
    last_headed: int | None = None  # the last row that these are the heads of; None: all
    keeps_widths: bool = False  # a long text shrinks or wraps, and does not widen its column
    charts: list[Chart] = field(default_factory=list)
    currency: Currency | None = None

    @functools.cached_property
    def dollars(self) -> Sheet:
        """The hidden sheet with the amounts of this one as they are worked out; itself where it shows dollars."""
        if self.currency is None:
            return self
        about = f"The amounts of {self.name} as they are worked out; there they stand at the rate on Inputs."
        sheet = Sheet(IN_DOLLARS.format(self.name), about=about)
        sheet.text(0, 0, sheet.name, "title")
        sheet.text(1, 0, sheet.second_line, "quiet")
        return sheet

    @property
    def kind(self) -> str:
        """Input, workings, output or control; "" for a sheet that is none of the workbook's."""
        return KINDS.get(self.name, "")

    @property
    def is_hidden(self) -> bool:
        """True where the workbook opens without the sheet's tab."""
        return self.name in KINDS and self.name not in TABS_SHOWN

    @property
    def second_line(self) -> str:
        """The line under the title: the kind of the sheet, and its purpose."""
        twin = f" Heads are explained on {TWINS[self.name]}." if self.name in TWINS else ""
        return f"{self.kind}. {self.about}{twin}" if self.kind else self.about

    def put(
        self, row: int, column: int, cell: Cell, name: str | None = None, lock: str = "both", label: str = ""
    ) -> Ref:
        """Place a cell, and its label to the left of it; placing two on one address is a bug."""
        if label:
            self.text(row, column - 1, label, "label")
        if (row, column) in self.cells:
            raise PageError(f"{self.name}!{column_name(column)}{row + 1} is used twice")
        home = self._home(cell.display)
        if home is self:
            self.cells[row, column] = cell
            return Ref(self.name, row, column, cell.value, name, lock)
        role = "fixed" if cell.formula is None else "computed"
        held = home.put(row, column, Cell(cell.value, role, cell.display, cell.formula), name, lock)
        self.cells[row, column] = self._shown(cell, held)
        return held

    def _home(self, display: Display) -> Sheet:
        """The sheet where a value of that display is worked out: amounts in dollars."""
        return self.dollars if display.prefix == USD.prefix else self

    def _shown(self, cell: Cell, held: Ref) -> Cell:
        """A cell with an amount that is held in dollars, in the currency of the sheet."""
        assert self.currency is not None
        there = derived(_there, held, self.currency.rate)
        display = cell.display.in_currency(self.currency.prefix)
        return replace(cell, value=there.value, display=display, formula=Later(lambda: there.expr(self.name)))

    def text(self, row: int, column: int, value: CellValue, role: str = "text", **more: Any) -> Ref:
        """Place a text."""
        cell = Cell(value, role, **more)
        if self.currency is not None and isinstance(value, str):
            cell = replace(cell, value=self.currency.named(value), note=self.currency.named(cell.note))
        return self.put(row, column, cell)

    def draw(self, chart: Chart) -> None:
        """Place a chart, in the currency of the sheet."""
        self.charts.append(chart if self.currency is None else chart.on(self, self.currency))

    def texts(self, row: int, column: int, texts: Iterable[str | None], role: str = "head") -> list[Ref]:
        """Place texts side by side; None leaves a cell free."""
        return [self.text(row, k, text, role) for k, text in enumerate(texts, column) if text is not None]

    def compute(
        self,
        row: int,
        column: int,
        quantity: Formula,
        env: Mapping[str, Source],
        *,
        role: str = "computed",
        display: Display | None = None,
        name: str | None = None,
        lock: str = "both",
        label: str = "",
    ) -> Ref:
        """Place the result of a quantity for the cells in `env`: the value, and the formula that Excel evaluates."""
        if self.currency is not None and isinstance(quantity, Sentence):
            quantity, env = quantity.in_currency(self.currency.prefix), {**env, FX_RATE: self.currency.rate}
        missing = [i for i in quantity.inputs if i not in env]
        if missing:
            raise KeyError(f"{self.name}: formula {quantity.name!r} reads {missing[0]!r}, which no cell provides")
        result, display = worked_out(quantity, env), display or quantity.display
        home = self._home(display).name
        cell = Cell(result.value, role, display, formula=Later(lambda: result.expr(home)))
        return self.put(row, column, cell, name, lock, label)

    def is_search(self, ref: Ref) -> bool:
        """True where a cell holds an array formula."""
        written = self.cells[ref.row, ref.column].formula
        return written is not None and written.array

    def pass_on(
        self,
        row: int,
        column: int,
        searched: Ref,
        quantity: Formula,
        env: Mapping[str, Source],
        role: str = "computed",
    ) -> Ref:
        """Place the result of an array formula in a plain cell, for all others to read.

        After the first edit LibreOffice works an array formula out anew, but not what reads it. This plain cell
        reads what the formula reads, so it is worked out anew too, and whatever reads it.
        """
        home = self._home(quantity.display).name
        read = function("COUNT", *(env[i].expr(home) for i in quantity.inputs))
        lock = "column" if searched.lock == "column" else "both"
        passed = function("IF", read >= 0, searched.expr(home))
        return self.formula(row, column, searched.value, passed, quantity.display, role, lock=lock)

    def link(
        self, row: int, column: int, source: Ref | Lookup, display: Display, role: str = "link", **more: Any
    ) -> Ref:
        """Place the value of another cell, or of a look-up."""
        home = self._home(display).name
        return self.formula(row, column, source.value, Later(lambda: source.expr(home)), display, role, **more)

    def formula(
        self, row: int, column: int, value: CellValue, expr: Expr, display: Display, role: str = "computed", **more: Any
    ) -> Ref:
        """Place a formula with the value it has: look-ups, which carry no arithmetic."""
        where = {key: more.pop(key) for key in ("name", "lock", "label") if key in more}
        return self.put(row, column, Cell(plain(value), role, display, formula=expr, **more), **where)

    def fill_row(
        self, row: int, left: int, width: int, quantity: Formula, env: Mapping[str, Source | RowValues]
    ) -> Row:
        """Place a row of `width` cells of one quantity; each input is the same for all cells, or a RowValues."""
        import numpy

        given = {i: e.values if isinstance(e := env[i], RowValues) else number(e.value) for i in quantity.inputs}
        text = quantity.written({i: env[i].expr(self.name) for i in quantity.inputs})
        values = numpy.broadcast_to(numpy.asarray(quantity.of(given)), (width,))
        self.rows.append(Row(self.name, row, left, values, text, "computed", quantity.display, "none"))
        return self.rows[-1]


@dataclass
class Chart:
    """A native chart over cells: stacked bars; standing where there are `lines` (title, first, last, colour, whether it
    is dashed) over them; or columns, one series in place of another, with their amounts. sign: before its numbers.
    left: pixels to the left of it. labelled: its categories say the amounts, and no axis does."""

    row: int
    column: int
    title: str
    alt_text: str
    categories: tuple[Ref, Ref]
    series: list[tuple[str, Ref, Ref, str]]  # title, first, last, colour
    width: int
    height: int
    sign: str = ""
    lines: Sequence[tuple[str, Ref, Ref, str, bool]] = ()
    upright: bool = False  # columns instead of bars
    left: int = 0
    labelled: bool = False

    @property
    def is_upright(self) -> bool:
        return self.upright or bool(self.lines)

    def on(self, sheet: Sheet, currency: Currency) -> Chart:
        """The same over the amounts that `sheet` shows, in that currency."""

        def shown(ref: Ref) -> Ref:
            return ref._replace(sheet=sheet.name) if ref.sheet == sheet.dollars.name else ref

        series = [(title, shown(first), shown(last), colour) for title, first, last, colour in self.series]
        title, alt_text, sign = map(currency.named, (self.title, self.alt_text, self.sign))
        return replace(self, series=series, title=title, alt_text=alt_text, sign=prefix_of(sign) if sign else "")


PIXELS_OF_A_ROW = 20
LINE, BLANK = 13.5, 6.0  # points: of a row of one line where many are printed, and of one between two parts


def rows_of(height: int) -> int:
    """The number of rows that a chart of this height in pixels covers."""
    return -(-height // PIXELS_OF_A_ROW)


@dataclass
class Book:
    """All sheets, the defined names, and the file's properties."""

    sheets: list[Sheet]
    names: dict[str, Ref | Range]
    properties: dict[str, str]
    created: datetime.datetime
    paper: str
    title: str = "LLM serving sizing sheet"
    owner: str = ""
    approver: str = ""
    valid_until: str = ""
    subject: str = "Memory, hardware, speed and price of serving large language models"


def _there(usd: Quantity, fx_rate: Quantity) -> Value:
    """An amount in another currency; a word that stands in place of one unchanged."""
    return where(is_number(usd), usd * fx_rate, usd)


def plain(value: CellValue) -> CellValue:
    """A Python value for a cell: numpy's scalars unwrapped, NaN as the sign for none."""
    kind = type(value)
    if kind is str or kind is int or value is None:
        return value
    if kind is not float and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        if value != value:
            return NONE
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return (value - EXCEL_DAY_ZERO).days if isinstance(value, datetime.date) else value


def number(value: CellValue) -> CellValue:
    """A cell's value as formulas read it: no number is NaN, a date its day count."""
    if type(value) is float:
        return value
    if value is None or (isinstance(value, str) and value == NONE):
        return float("nan")
    if isinstance(value, datetime.date):
        return (value - EXCEL_DAY_ZERO).days
    return value


def place_of(refs: Range, value: CellValue) -> int | None:
    """The position of a value in a range, from 1, as MATCH finds it: capital letters count for nothing."""
    wanted = _matched(value)
    return next((i for i, ref in enumerate(refs.refs, 1) if _matched(ref.value) == wanted), None)


def _matched(value: CellValue) -> CellValue:
    return value.lower() if isinstance(value, str) else value


def worked_out(quantity: Formula, env: Mapping[str, Source]) -> Lookup:
    """The result of a quantity for the cells in `env`, to be read within another formula."""
    value = plain(quantity(*(number(env[i].value) for i in quantity.inputs)))
    return Lookup(value, lambda reader: quantity.written({i: env[i].expr(reader) for i in quantity.inputs}))


def derived(function: Callable[..., Value], *read: Source) -> Lookup:
    """The result of a function that takes numbers and `Expr` alike, to be read within another formula."""
    value = plain(function(*(number(source.value) for source in read)))
    return Lookup(value, lambda reader: function(*(source.expr(reader) for source in read)))


def row_of(function: Callable[..., Value], *read: Source) -> Lookup:
    """The result of a function that takes whole rows and `Expr` alike, to be read as a row."""
    return Lookup(
        function(*(source.value for source in read)), lambda reader: function(*(source.expr(reader) for source in read))
    )


def lookup(refs: Range, position: Ref | Lookup) -> Lookup:
    """The entry of a range at a position from 1; none where the position is none.

    Written as INDEX, as Gnumeric reads it too: a row with its number, one cell as itself.
    """
    first, last = refs.refs[0], refs.refs[-1]

    def write(reader: str) -> Expr:
        text = refs.expr(reader).text
        if (first.row, first.column) == (last.row, last.column):
            return Expr(text.partition(":")[0])
        row = "1," if first.column != last.column else ""
        return Expr(f"INDEX({text},{row}{position.expr(reader).text})")

    return Lookup(NONE if position.value == NONE else refs.refs[int(position.value) - 1].value, write)


def choose(place: Ref, sources: Sequence[Source], otherwise: Source | None = None) -> Lookup:
    """The source at a place from 1, each read as a whole; `otherwise` where the place is none.

    Not INDEX(area,0,column): Gnumeric reads that as a single cell.
    """
    is_place = isinstance(place.value, int | float) and 1 <= place.value <= len(sources)
    held = sources[int(place.value) - 1].value if is_place else otherwise and otherwise.value

    def write(reader: str) -> Expr:
        more = () if otherwise is None else (otherwise.expr(reader),)
        return function("CHOOSE", place.expr(reader), *(source.expr(reader) for source in sources), *more)

    return Lookup(held, write)


def held_where(gate: Source, here: Source, otherwise: Source) -> Lookup:
    """The value `here` where the gate is a number, else `otherwise`."""
    value = here.value if isinstance(number(gate.value), int | float) and gate.value != NONE else otherwise.value
    write = function("IF", function("ISNUMBER", Expr("{0}")), Expr("{1}"), Expr("{2}")).text
    return Lookup.of(value, write, gate, here, otherwise)


@dataclass(frozen=True)
class BlockColumn(Sequence[Ref]):
    """A column through the rows of a block, made when it is read."""

    rows: Sequence[Sequence[Ref]]
    column: int

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: Any) -> Any:
        return self.rows[i][self.column]


@dataclass(frozen=True)
class RepeatedRow(Sequence[Ref]):
    """A short row as the cells of a longer one read it: each cell by the position that its column's head `place`
    names."""

    row: Row
    place: str
    positions: Sequence[Ref]

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return tuple(self[k] for k in range(*i.indices(len(self))))
        return self.row[int(self.positions[i].value) - 1]

    @property
    def values(self) -> numpy.ndarray:
        """The value that each column reads."""
        return self.row.values[[int(p.value) - 1 for p in self.positions]]

    @property
    def first(self) -> Lookup:
        """The look-up as the first column has it."""
        return lookup(Range(self.row, lock="columns"), self.positions[0])
