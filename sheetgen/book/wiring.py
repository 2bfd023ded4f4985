"""The state that the sheets of a book share: inputs by name, tables that others look up, and matrices of formulas."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy

from sheetgen.book.lookups import ZERO, element, entry_of
from sheetgen.book.sheets import (
    DOLLARS,
    NONE,
    Cell,
    CellValue,
    Currency,
    Lookup,
    Range,
    Ref,
    RepeatedRow,
    Row,
    RowValues,
    Sheet,
    Source,
    Validation,
    column_name,
    derived,
    lookup,
    number,
)
from sheetgen.catalog.engines import MODEL_KINDS, band_names
from sheetgen.formula import Expr, Formula, is_number, where
from sheetgen.question.overrides import TABLES
from sheetgen.question.parse import Raw
from sheetgen.question.sheet_question import Question
from sheetgen.report.notes import first_link
from sheetgen.units import DTYPES, FACTOR, PLAIN, PLAIN_LAYOUTS, SECONDS, TEXT, WHOLE, Display, Layout

PASSED_ON = "What the search beside it found; all else reads it here, as LibreOffice passes on what a plain cell gives."
HEAD_ROWS = 3  # title, purpose of the sheet, blank
TITLE_HEIGHT = 24.0  # points
LABELS = 2  # columns of a matrix with the labels of a row
LEFT = 22  # the first column of a matrix; those between hold a row's inputs from other sheets


def profile_columns(question: Question) -> list[tuple[int, Layout]]:
    """The columns of Profiles, each a GPU by its index and a layout: the plain ones of all GPUs, then the data-parallel
    ones of GPUs whose links are fast enough for them."""
    plain = [(gpu, layout) for gpu in range(len(question.gpus)) for layout in PLAIN_LAYOUTS]
    linked = [i for i, gpu in enumerate(question.gpus) if question.overrides.shares_experts(gpu)]
    return plain + [(gpu, layout) for gpu in linked for layout in question.layouts if layout not in PLAIN_LAYOUTS]


def held_at(place: Ref, held: Source, otherwise: Source = ZERO) -> Lookup:
    """The value `held` where the place is a number, else `otherwise`."""
    return derived(lambda place, held, otherwise: where(is_number(place), held, otherwise), place, held, otherwise)


def display_of(name: str) -> Display:
    """The display of a quantity in workings, by its name."""
    is_factor = name.startswith(("wait", "expert", "steps", "gather"))
    return SECONDS if name.endswith("_seconds") else FACTOR if is_factor else WHOLE


def in_words(name: str) -> str:
    """The head of a column, from its name: kv_budget_bytes is Kv budget bytes."""
    return name.replace("_", " ").capitalize()


def named(names: dict[str, Ref | Range], name: str, refs: Sequence[Ref]) -> Range:
    """A range under a defined name: a formula that many cells share must not name another sheet."""
    names.setdefault(name, Range(refs))
    return Range(refs, name=name)


MOST_LOOK_UPS = 6  # of one figure in a formula: a figure that it reads more often has a column of its own
# Where a profile stands in blocks that have fewer columns.
SHORT = ("tp_position", "latent_position", "gpu_row", "plain_position")
# By table, the column of others that numbers its rows.
PLACES = {
    "models": "model_row",
    "contexts": "pace_row",
    "candidates": "position",
    "profiles": "profile",
    "gpus": "gpu_row",
    "instances": "instance_row",
    **{axis: axis for axis in SHORT},
}
TABLES_READ = ("candidates", "profiles", "instances", "gpus", "contexts", "models")
# Columns of GPUs side by side, and the column of Models whose position picks one of them.
SIDE_BY_SIDE = {
    **{name: ([f"{stem}_{dtype}" for dtype in DTYPES], key) for name, stem, key in (
        ("runs_weights", "weights", "weight_dtype_row"), ("runs_kv", "kv", "kv_dtype_row"),
        ("peak_flops", "peak_flops", "weight_dtype_row"), ("tpot_of_dtype", "tpot_of_dtype", "weight_dtype_row"),
        ("ttft_of_dtype", "ttft_of_dtype", "weight_dtype_row"),
    )},
    **{name: ([f"{name}_{kind}" for kind in MODEL_KINDS], "speed_kind")
       for name in ("tpot_of_kind", "ttft_of_kind", *band_names("other"))},
}  # fmt: skip
Entry = TypeVar("Entry")
Read = Source | Sequence[Source]  # an input of a column: the same source in all rows, or one for each


@dataclass
class Table:
    """A table on a sheet: one header row, then its rows. Columns are found by name."""

    wiring: Wiring
    sheet: Sheet
    n_rows: int
    # Of the names of its columns, cat_<key>_<column> or tbl_<key>_<column>, and of itself in the wiring.
    key: str = ""
    top: int = HEAD_ROWS
    left: int = 0
    overrides: Callable[[int, str, Raw], Raw] | None = None  # the value that was typed over a row's
    columns: dict[str, list[Any]] = field(default_factory=dict)
    spare: dict[str, list[Ref]] = field(default_factory=dict)  # blank rows below, by column
    given_columns: list[str] = field(default_factory=list)  # those that a reader may change
    n_fixed: int = field(init=False)  # rows whose workload and tier are what they were built with
    rows_below: int = 0  # that something else below the table takes
    places: Mapping[str, Ref] = field(default_factory=dict)  # by table, the cell with the place that all rows have
    asked: Sequence[str] = ()  # of loads, the columns that state the request
    chosen: str = ""  # the column that is none where no hardware was chosen for a row
    lock = "column"

    def __post_init__(self) -> None:
        self.next_column, self.n_fixed, self.heads = self.left, self.n_rows, set[str]()
        if self.key:
            self.wiring.tables[self.key] = self
            self.key = self.wiring.prefix + self.key

    def begin_column(self, label: str, note: str, width: float) -> int:
        """Place the head of the next column; returns its position."""
        column = self.next_column
        self.next_column += 1
        self.heads.add(label)
        self.sheet.text(self.top, column, label, "head", note=note)
        self.sheet.widths[column] = max(self.sheet.widths.get(column, 0), width)
        return column

    def has_head(self, label: str) -> bool:
        """True where a column has that head."""
        return label in self.heads

    def place(self, column: int, i: int) -> tuple[int, int]:
        """The row and the column of cell `i` of a column on the sheet."""
        return self.top + 1 + i, column

    def given(
        self,
        name: str,
        label: str,
        values: Iterable[CellValue],
        display: Display,
        *,
        role: str = "input",
        note: str = "",
        width: float = 12,
        validation: Validation | None = None,
        validations: Sequence[Validation] = (),
        linked: bool = False,
    ) -> None:
        """A column of values; None is an empty input, as are the rows for which there is no value.

        validations: one a row, where rows differ. linked: to the address that a text names. A yellow column accepts
        what `pull` does, where nothing else is said.
        """
        column = self.begin_column(label, note, width)
        kind = TABLES.get(self.key, {}).get(name)
        if validation is None and kind is not None and role == "input":
            validation = Validation.of(kind, label, note)
        if role == "input":
            self.given_columns.append(name)
        refs = []
        values = list(values)
        for i, value in enumerate((*values, *[None] * (self.n_rows - len(values)))):
            url = first_link(value) if linked and value else None
            cell = Cell(
                self.overrides(i, name, value) if self.overrides else value,
                "link_text" if url else role,
                display,
                validation=validations[i] if validations else validation,
                url=url,
            )
            refs.append(self.sheet.put(*self.place(column, i), cell, lock=self.lock))
        self.columns[name] = refs

    def computed(
        self,
        quantity: Formula,
        given: Mapping[str, Read] | None = None,
        *,
        name: str = "",
        label: str = "",
        width: float = 12,
    ) -> None:
        """A column of one quantity: its inputs are those `given`, else columns of this table, else inputs of the
        workbook."""
        label = label or quantity.label
        sources: dict[str, Read] = {**self.wiring.inputs, **self.columns, **(given or {})}
        sources = {
            read: sources[read] if read in sources else self._reached(read, quantity) for read in quantity.inputs
        }
        line = self.begin_column(label, quantity.documentation, width)
        shared = {read: source for read, source in sources.items() if isinstance(source, Ref | Range | Lookup)}
        by_row = {read: source for read, source in sources.items() if not isinstance(source, Ref | Range | Lookup)}
        envs = [{**shared, **{read: source[i] for read, source in by_row.items()}} for i in range(self.n_rows)]
        cells = [self.sheet.compute(*self.place(line, i), quantity, env, lock=self.lock) for i, env in enumerate(envs)]
        if cells and self.sheet.is_search(cells[0]):
            line = self.begin_column(f"{label}, found", PASSED_ON, width)
            cells = [
                self.sheet.pass_on(ref.row, line, ref, quantity, env) for ref, env in zip(cells, envs, strict=True)
            ]
        self.columns[name or quantity.name] = cells

    def replace(self, name: str, i: int, source: Ref | Lookup, display: Display) -> Ref:
        """Replace the cell of a row by a look-up."""
        old = self.columns[name][i]
        assert isinstance(old, Ref)
        del self.sheet.cells[old.row, old.column]
        new = self.sheet.link(old.row, old.column, source, display, "computed", lock=self.lock)
        self.columns[name][i] = new
        return new

    def looked_up(
        self,
        name: str,
        label: str,
        sources: Iterable[Ref | Lookup],
        display: Display,
        *,
        note: str = "",
        width: float = 12,
    ) -> None:
        """A column of look-ups or links."""
        line = self.begin_column(label, note, width)
        self.columns[name] = [
            self.sheet.link(*self.place(line, i), source, display, "computed", lock=self.lock)
            for i, source in enumerate(sources)
        ]

    def picked(
        self, name: str, label: str, refs: Range, key: str, display: Display = WHOLE, *, width: float = 12
    ) -> None:
        """A column of the entries of `refs` at the positions that the column `key` holds."""
        self.looked_up(name, label, (lookup(refs, position) for position in self.columns[key]), display, width=width)

    def row(self, i: int) -> dict[str, Ref]:
        """The cells of row `i` by column name, of the columns that have that row."""
        return {name: refs[i] for name, refs in self.columns.items() if i < len(refs)}

    def by_row(self, key: str, rows: Sequence[Entry], chosen: Callable[[int], Entry] | None = None) -> Sequence[Entry]:
        """By row of this table the entry of `rows`, which are of another table: of models for contexts, of contexts for
        loads.

        chosen: the entry of a row whose workload a reader chooses.
        """
        if self.wiring.tables[key] is self:
            return rows
        places = self.columns[PLACES[key]]
        n_fixed = self.n_fixed if chosen and key == "contexts" else self.n_rows
        fixed = [rows[int(place.value) - 1] for place in places[:n_fixed]]
        return fixed + [chosen(row) for row in range(n_fixed, self.n_rows) if chosen]

    def sources_by_row(self, name: str) -> list[Ref | Lookup]:
        """By row the input of that name, which is no column here: of the row's model, context, profile and so on."""
        by_table = {
            key: refs for key, column in PLACES.items() if (refs := self.places.get(key) or self.columns.get(column))
        }
        rows = (
            {key: refs if isinstance(refs, Ref) else refs[i] for key, refs in by_table.items()}
            for i in range(self.n_rows)
        )
        return [self.wiring.source_at(name, places) for places in rows]

    def bring(self, *names: str, label: str = "", width: float = 12) -> None:
        """Columns of quantities from other sheets: 0 where the quantity is of hardware and none was chosen."""
        for name in names:
            whole: Iterable[Ref | Lookup] = self.sources_by_row(name)
            if self.chosen and self.wiring.is_of_hardware(name):
                whole = map(held_at, self.columns[self.chosen], whole)
            self.looked_up(name, label or in_words(name), whole, display_of(name), width=width)

    def _reached(self, name: str, quantity: Formula) -> list[Ref | Lookup]:
        """The cells or look-ups of an input that is no column here; brought into a column where it is of chosen
        hardware and often read."""
        if self.chosen and quantity.tree.text.count(f"{{{name}}}") > MOST_LOOK_UPS:
            self.bring(name)
        return self.columns.get(name) or self.sources_by_row(name)

    def range(self, name: str) -> Range:
        """A whole column, by a defined name where the table has a key."""
        refs = tuple(self.columns[name])
        if not self.key:
            return Range(refs)
        whole = name in self.given_columns and name not in self.spare  # cat_... takes the spare rows in
        return named(self.wiring.names, f"{'cat' if whole else 'tbl'}_{self.key}_{name}", refs)


class Head(Table):
    """Rows above a matrix, each a property of every column: a table on its side."""

    lock = "row"

    def begin_column(self, label: str, note: str, width: float) -> int:
        self.sheet.text(self.top, 0, label, "head", note=note)
        self.sheet.text(self.top, 1, "", "head")
        self.top += 1
        return self.top - 1

    def place(self, column: int, i: int) -> tuple[int, int]:
        return column, LEFT + i


@dataclass(frozen=True)
class Block:
    """The rows of a quantity, those of a table, with a cell for each profile or candidate."""

    down: str
    rows: list[Row | RepeatedRow]


@dataclass
class Wiring:
    """The inputs by the name under which formulas read them, and the tables."""

    inputs: dict[str, Ref] = field(default_factory=dict)
    prefix: str = ""  # of the names of tables: those of Decision differ from the workbook's own
    names: dict[str, Ref | Range] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    lists: dict[str, Range] = field(default_factory=dict)
    inputs_sheet: Sheet = field(default_factory=lambda: Sheet("Inputs"))
    input_states: list[Ref] = field(default_factory=list)  # on that sheet
    baseline: Mapping[str, CellValue] = field(
        default_factory=dict
    )  # by defined name, where not the values of this build
    code: str = DOLLARS  # of the currency of the sheets of answers
    verdict: str = "OK"  # of all checks
    lights: list[Cell] = field(default_factory=list)  # the cells that show it
    reasons: list[Cell] = field(default_factory=list)  # the cells beside them, with the reason
    headline_usd: list[Ref] = field(default_factory=list)  # by model, $ per month on the first sheet
    of_money: list[tuple[str, Ref, Ref | Lookup]] = field(
        default_factory=list
    )  # by model its name, and the same on Money
    blocks: dict[str, Block] = field(default_factory=dict)  # on Profiles and Candidates
    tried: dict[str, list[list[Range]]] = field(default_factory=dict)  # by model, and by ranks, of the batches tried
    assumptions: list[tuple[Ref, Ref, Display]] = field(default_factory=list)  # label, value, how it shows

    @property
    def currency(self) -> Currency | None:
        """The currency of the sheets of answers, where that is not US dollars."""
        return None if self.code == DOLLARS else Currency(self.code, self.inputs["fx_rate"])

    def ref(self, name: str) -> Ref:
        """The cell of that defined name."""
        cell = self.names[name]
        assert isinstance(cell, Ref)
        return cell

    def area(self, name: str) -> Range:
        """The cells of that defined name, read by it."""
        area = self.names[name]
        assert isinstance(area, Range)
        return Range(area.refs, name=name)

    def of_block(self, name: str, row: Ref, profile: Ref, places: Mapping[str, Ref]) -> Lookup:
        """The entry of a block of Profiles in a row and at a profile, by their positions. places: the profile's
        position in blocks that have fewer columns, where a cell holds it."""
        rows, heads = self.blocks[name].rows, self.tables["profiles"]
        block = self.area_of_block(name)
        column: Ref | Lookup = profile
        if isinstance(rows[0], RepeatedRow):
            column = places.get(rows[0].place) or lookup(heads.range(rows[0].place), profile)
        value = NONE if profile.value == NONE else rows[row.value - 1][profile.value - 1].value
        if block.refs[0] == block.refs[-1]:  # Gnumeric finds nothing in a range of one cell
            return Lookup(value, block.refs[0]._replace(lock="both").expr)
        return element(value, block, row, column)

    def ranges(self, name: str) -> list[Range]:
        """The rows of a block, each read as a whole."""
        return [Range(row, lock="columns") for row in self.blocks[name].rows]

    def area_of_block(self, name: str) -> Range:
        """All cells of a block of Profiles, by a defined name."""
        rows = self.blocks[name].rows
        first, last = (row.row if isinstance(row, RepeatedRow) else row for row in (rows[0], rows[-1]))
        return named(self.names, f"blk_{self.prefix}{name}", (first[0], last[-1]))

    def side_by_side(self, name: str) -> Range:
        """The columns of GPUs that stand side by side, of which a model's place picks one."""
        first, *_, last = SIDE_BY_SIDE[name][0]
        gpus = self.tables["gpus"]
        ends = gpus.range(first).refs[0], gpus.range(last).refs[-1]
        return named(self.names, f"tbl_gpus_from_{first}", ends)

    def first_name(self, dtype: Ref) -> Lookup:
        """A precision's first name where another one was typed (fp8_e4m3 is fp8)."""
        names = self.lists["dtypes_meant"], self.lists["dtype_aliases"]
        return entry_of(*names, dtype, dtype)

    def source_at(self, name: str, places: Mapping[str, Ref]) -> Ref | Lookup:
        """The input of that name, where cells say which row of some tables is meant."""
        if name in self.blocks:
            return self.of_block(name, places[self.blocks[name].down], places["profiles"], places)
        if name in SIDE_BY_SIDE:
            (columns, key), gpu = SIDE_BY_SIDE[name], self._gpu(places)
            dtype = lookup(self.tables["models"].range(key), places["models"])
            value = NONE
            if gpu.value != NONE:
                value = self.tables["gpus"].range(columns[int(dtype.value) - 1]).refs[int(gpu.value) - 1].value
            return element(value, self.side_by_side(name), gpu, dtype)
        key = self.key_of(name, places)
        return lookup(self.tables[key].range(name), self._gpu(places) if key == "gpus" else places[key])

    def _gpu(self, places: Mapping[str, Ref]) -> Ref | Lookup:
        """The row of GPUs: as said, or the profile's."""
        return places.get("gpus") or lookup(self.tables["profiles"].range("gpu_row"), places["profiles"])

    def key_of(self, name: str, places: Collection[str]) -> str:
        """The table that has a column, or a row of its head, of that name."""
        keys = [key for key in TABLES_READ if key in self.tables and (key in places or key == "gpus")]
        return next(key for key in keys if isinstance(self.tables[key].columns.get(name, [None])[0], Ref))

    def is_of_hardware(self, name: str) -> bool:
        """True where the quantity of that name differs by hardware."""
        if name in self.blocks or name in SIDE_BY_SIDE:
            return True
        return self.key_of(name, TABLES_READ) not in ("models", "contexts")


def name_all(wiring: Wiring, sheet: str) -> None:
    """Defined names of the scalars and lists on a sheet that have none, so that other sheets can read them by it."""
    for name, ref in wiring.inputs.items():
        if ref.sheet == sheet and not ref.name:
            full = f"{wiring.prefix or 'calc_'}{name}"
            wiring.names[full] = ref
            wiring.inputs[name] = ref._replace(name=full)
    for name, refs in wiring.lists.items():
        if refs.refs[0].sheet == sheet and not refs.name:
            wiring.lists[name] = named(wiring.names, f"lst_{wiring.prefix}{name}", refs.refs)


def put_light(wiring: Wiring, sheet: Sheet, row: int, column: int, label: str) -> None:
    """Place the word for all checks, as its name alone: Checks is built last."""
    cell = Cell(wiring.verdict, "light", TEXT, formula=Expr("chk_all"))
    sheet.put(row, column, cell, label=label)
    sheet.status_cells.append((row, column))
    wiring.lights.append(cell)


def put_reason(wiring: Wiring, sheet: Sheet, row: int, column: int, span: int) -> None:
    """Place the reason for the word of all checks, or a remark beside it."""
    cell = Cell("", "line", TEXT, formula=Expr("chk_why"), span=span)
    sheet.put(row, column, cell)
    wiring.reasons.append(cell)


def titled(
    name: str,
    title: str,
    about: str,
    *,
    freeze: tuple[int, int],
    one_page: bool = False,
    currency: Currency | None = None,
) -> Sheet:
    """A sheet with its title, and a line on its kind and purpose."""
    sheet = Sheet(name, about=about, freeze=freeze, one_page=one_page, currency=currency)
    sheet.text(0, 0, title, "title")
    sheet.heights[0] = TITLE_HEIGHT
    sheet.text(1, 0, sheet.second_line, "quiet")
    return sheet


@dataclass(frozen=True)
class RowLookup:
    """Look-ups of the cells of a row in a block: each at its own column, all in one row of the block."""

    values: Sequence[CellValue]
    row: Ref | int  # the cell that says which row, or its number
    text: str  # the first cell's look-up, with {0}, {1} for the cells that it reads, the cell of the row last
    read: tuple[Source, ...]


# An input of a row of cells: a source, a RowValues or a RowLookup for all of them, or a source for each.
RowSource: TypeAlias = Any


def matrix(
    sheet: Sheet,
    top: int,
    quantity: Formula,
    labels: Sequence[Ref],
    lefts: Sequence[int],
    widths: Sequence[int],
    given: Mapping[str, RowSource],
    loads: Sequence[Ref] | None = None,
) -> list[Row]:
    """A block of rows below `top`: the quantity's name, then a row of cells per label. A label stands once on a sheet:
    further rows of it name its cell.

    lefts, widths: by row the first column and the number of cells. given: the inputs by name: a source for all cells, a
    RowValues for all rows, or one of these (a RowLookup, a source for each cell) for each row. loads: the second label
    of each row, where the rows are loads.
    """
    sheet.text(top, 0, quantity.label, "section", note=quantity.documentation)
    sheet.text(top, 1, quantity.name, "section")
    sources = {name: given[name] for name in quantity.inputs if name in given}
    rows = []
    for r, label in enumerate(labels):
        row = top + 1 + r
        for column, words in enumerate((label,) if loads is None else (label, loads[r])):
            key = (words.sheet, words.row, words.column)
            if above := sheet.linked.get(key):
                sheet.text(row, column, f"as {column_name(above.column)}{above.row + 1}", "label")
            else:
                sheet.linked[key] = sheet.link(row, column, words, TEXT, role="computed", lock="column")
        env = {}
        for name, source in sources.items():
            of_row: RowSource = source if isinstance(source, RowValues | Ref | Range | Lookup) else source[r]
            whole = isinstance(of_row, RowValues | RowLookup | Ref | Range | Lookup)
            env[name] = of_row if whole else RowValues.of(of_row)
        linked = _linked(sheet, top, row, env)
        cut = {name: s.cut(widths[r]) if isinstance(s, RowValues) else s for name, s in linked.items()}
        rows.append(sheet.fill_row(row, lefts[r], widths[r], quantity, cut))
    return rows


def _linked(
    sheet: Sheet, top: int, row: int, env: Mapping[str, Source | RowValues | RowLookup]
) -> dict[str, Source | RowValues]:
    """`env` with the cells of other sheets brought beside the row: a formula that many cells share must not name
    another sheet, and its inputs stay visible. Each is brought once."""
    column = LABELS

    def bring(name: str, source: Ref | Lookup | int) -> Ref:
        nonlocal column
        key = ("", source, 0) if isinstance(source, int) else (sheet.name, row, column)
        if isinstance(source, Ref):
            key = source.sheet, source.row, source.column
        if key in sheet.linked:
            return sheet.linked[key]
        if column == LEFT:
            raise ValueError(f"{sheet.name}: a row reads more of other sheets than there are columns for")
        if (top, column) not in sheet.cells:
            sheet.text(top, column, name, "section")
        if isinstance(source, int):
            ref = sheet.put(row, column, Cell(source, "fixed", PLAIN), lock="column")
        else:
            whole = float(number(source.value)).is_integer()
            ref = sheet.link(row, column, source, WHOLE if whole else FACTOR, lock="column")
        column += 1
        sheet.linked[key] = ref
        return ref

    brought: dict[str, Source | RowValues] = {}
    for name, source in sorted(env.items(), key=lambda item: isinstance(item[1], RowLookup)):
        if isinstance(source, RowLookup):
            row_cell = bring(f"row of {name}", source.row)
            brought[name] = RowValues(
                numpy.array([number(v) for v in source.values], float),
                Lookup.of(None, source.text, *source.read, row_cell),
            )
        elif isinstance(source, Ref) and source.sheet != sheet.name and not source.name:
            brought[name] = bring(name, source)
        else:
            brought[name] = source
    return brought
