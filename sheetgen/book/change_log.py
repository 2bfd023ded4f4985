"""The Change log: the version and the catalog that made the workbook, blank lines for its next editors, and the cells
that are no longer as built."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from sheetgen.answer.solution import Solution
from sheetgen.book.inputs_sheet import AS_BUILT, BOUND, CHANGED, OUT_OF_RANGE, put_state
from sheetgen.book.sheets import NONE, Book, Cell, CellValue, Range, Ref, Sheet, Validation, column_name, plain
from sheetgen.book.wiring import HEAD_ROWS, Wiring, in_words, titled
from sheetgen.formula import Expr, formula, where
from sheetgen.question.inputs import LOG, LOG_LINES
from sheetgen.question.overrides import TABLES
from sheetgen.question.parse import Kind
from sheetgen.report.page import Page
from sheetgen.units import DATE, PLAIN, TEXT, Display

WHAT, WHERE, BUILT, NOW, STATE, LEAST, MOST, OUT = range(8)
COLUMNS = {"value": NOW, "built": BUILT, "least": LEAST, "most": MOST, "state": STATE}
HEADS = ("Input", "Where", "As built", "Now", "State", "From", "To", "Out of range")
CHANGED_LINES = 10  # of Inputs that are shown
TOLERANCE = 1e-9  # a sum that differs by less was added up in another order
AMOUNT = Display("#,##0.######")
SMALL = Display("0E+0")
NUMBERS = ("number", "whole", "date")


@formula("State", TEXT)
def sum_state(now: float, built: float, tolerance: float) -> str:
    """The state of a column's sum: as built, but for rounding, or changed."""
    gap, allowed = now - built, tolerance * built
    state: str = where(gap * gap <= allowed * allowed, AS_BUILT, CHANGED)
    return state


SCHEMA = 17  # raised with the text of formulas, and with each name that a workbook must have; a test holds the names
LOG_HEADS = ("What was changed, and why", "Where", "Was", "Is", "Who", "Date")
WIDTHS = (56, 22, 36, 36, 14, 12, 12, 13)


class AsBuilt:
    """Fills a sheet from a row downwards."""

    def __init__(self, sheet: Sheet, row: int, wiring: Wiring) -> None:
        self.sheet, self.row, self.wiring, self.built = sheet, row, wiring, wiring.baseline

    def text_of(self, name: str) -> str:
        """A list as text in formulas of this sheet."""
        return self.wiring.lists[name].expr(self.sheet.name).text

    def changed_inputs(self) -> None:
        """The number of cells of Inputs that are not as built, and the first of them."""
        wiring, sheet = self.wiring, self.sheet
        apart = [state for state in wiring.input_states if state.value != AS_BUILT]
        self._bar("Inputs that are not as built: the first lines of them, live", "No.", *HEADS[BUILT:LEAST])
        sheet.text(self.row, WHAT, "Cells of Inputs that are not as built", "label")
        states = self.text_of("input_states")
        counted = Expr(f'COUNTIFS({states},"{CHANGED}")+COUNTIFS({states},"{OUT_OF_RANGE}")')
        wiring.names["chk_inputs_changed"] = sheet.formula(self.row, BUILT, len(apart), counted, PLAIN, "state")
        for k in range(1, CHANGED_LINES + 1):
            self.row += 1
            nth = sheet.put(self.row, WHERE, Cell(k, "fixed", PLAIN), lock="column")
            place = f"MATCH({nth.expr(sheet.name).text},{self.text_of('input_nth')},0)"
            for column, name in (
                (WHAT, "input_labels"),
                (BUILT, "input_built"),
                (NOW, "input_values"),
                (STATE, "input_states"),
            ):
                value: object = NONE
                if k <= len(apart):  # the look-up of a cell of Inputs: 0 for a blank one
                    cell = wiring.inputs_sheet.cells.get((apart[k - 1].row, wiring.lists[name].refs[0].column))
                    value = 0 if cell is None or cell.value is None else plain(cell.value)
                shown = Expr(f'IFERROR(INDEX({self.text_of(name)},{place}),"{NONE}")')
                sheet.formula(self.row, column, value, shown, TEXT if column in (WHAT, STATE) else AMOUNT, "state")
        self.row += 2

    def choices(self, others: Sequence[Sheet]) -> None:
        """The yellow cells of other sheets."""
        self._bar("Choices on other sheets", *HEADS[1:OUT])
        states = []
        for name, label, ref, sheet in _choices(self.wiring, others):
            cell = sheet.cells[ref.row, ref.column]
            check, before = cell.validation, self.built.get(name, ref.value)
            self._begin(label, f"{sheet.name}!{column_name(ref.column)}{ref.row + 1}")
            built = self._put(BUILT, 0 if before is None else before, cell.display)
            value = 0 if ref.value is None else ref.value  # as the look-up of a blank cell
            self.sheet.formula(self.row, NOW, value, Expr(name), cell.display)
            listed = self.wiring.names.get(check.source or "") if check is not None else None
            choices = None if listed is None else [ref.value for ref in getattr(listed, "refs", [listed])]
            states.append(
                put_state(
                    self.sheet, self.row, COLUMNS, value, built.value, check, cell.display, name=name, listed=choices
                )
            )
            self.row += 1
        self.wiring.lists["choice_states"] = self._watched(states)
        self.row += 1

    def columns(self) -> None:
        """A line for each yellow column of numbers: its sum, and the count of numbers that are out of range."""
        self._bar("Columns of numbers: their sums", *HEADS[1:])
        sheet, states, outs = self.sheet, [], []
        sheet.text(self.row, WHAT, "Sums are the same within a share of", "label")
        tolerance = sheet.put(self.row, BUILT, Cell(TOLERANCE, "fixed", SMALL))
        self.row += 1
        for label, where_, name, kind, refs in _columns(self.wiring):
            self._begin(label, where_)
            numbers, total = _numbers(refs), _total(refs)
            built = self._put(BUILT, self.built.get(name, total), AMOUNT)
            now = sheet.formula(self.row, NOW, total, Expr(f"SUM({name})"), AMOUNT, lock="column")
            env = {"now": now, "built": built, "tolerance": tolerance}
            states.append(sheet.compute(self.row, STATE, sum_state, env, role="state"))
            low, high = Validation.of(kind, "").bounds
            least, most = (self._put(c, v, BOUND).expr(sheet.name).text for c, v in ((LEAST, low), (MOST, high)))
            beyond = Expr(f'SUMPRODUCT(({name}<>"")*(({name}<{least})+({name}>{most})))')
            outs.append(sheet.formula(self.row, OUT, sum(not low <= n <= high for n in numbers), beyond, PLAIN))
            self.row += 1
        self.wiring.lists["column_states"] = self._watched(states)
        sheet.text(self.row, WHAT, "Columns that are not as built", "label")
        changed = Expr(f'COUNTIFS({self.text_of("column_states")},"{CHANGED}")')
        n_changed = sum(state.value == CHANGED for state in states)
        self.wiring.names["chk_columns_changed"] = sheet.formula(self.row, BUILT, n_changed, changed, PLAIN, "state")
        self.wiring.lists["columns_out_of_range"] = Range(tuple(outs))

    def _bar(self, *heads: str) -> None:
        self.sheet.texts(self.row, WHAT, [*heads, *[""] * (len(HEADS) - len(heads))], "section")
        self.row += 1

    def _begin(self, label: str, where_: str) -> None:
        self.sheet.text(self.row, WHAT, label, "label")
        self.sheet.text(self.row, WHERE, where_, "remark")

    def _put(self, column: int, value: object, display: Display) -> Ref:
        return self.sheet.put(self.row, column, Cell(value, "fixed", display), lock="column")

    def _watched(self, states: list[Ref]) -> Range:
        self.sheet.status_cells += [(state.row, state.column) for state in states]
        return Range(tuple(states))


def _choices(wiring: Wiring, others: Sequence[Sheet]) -> Iterator[tuple[str, str, Ref, Sheet]]:
    """The named yellow cells on these sheets, with the words to their left; cells that share these, as those of a table
    do, also with their kind and the head of their column."""
    sheets = {sheet.name: sheet for sheet in others}
    choices = [
        (name, ref, sheets[ref.sheet])
        for name, ref in wiring.names.items()
        if name.startswith("in_") and isinstance(ref, Ref) and ref.sheet in sheets
    ]
    labels = [_beside(sheet, ref, name) for name, ref, sheet in choices]
    for (name, ref, sheet), label in zip(choices, labels, strict=True):
        check = sheet.cells[ref.row, ref.column].validation
        above = (sheet.cells.get((row, ref.column)) for row in range(ref.row - 1, -1, -1))
        head = next((str(cell.value) for cell in above if cell is not None and cell.role in ("head", "section")), "")
        words = dict.fromkeys((check.title if check else label, label, head))
        yield name, label if labels.count(label) == 1 else ", ".join(filter(None, words)), ref, sheet


def _beside(sheet: Sheet, ref: Ref, name: str) -> str:
    """The words to the left of a cell."""
    left = (sheet.cells.get((ref.row, column)) for column in range(ref.column - 1, -1, -1))
    return next((str(cell.value) for cell in left if cell is not None and cell.role == "label"), name)


def _columns(wiring: Wiring) -> Iterator[tuple[str, str, str, Kind, Sequence[Ref]]]:
    """The yellow columns of numbers: head, sheet, defined name, kind, cells."""
    for key in ("models", "gpus", "instances"):
        table = wiring.tables[key]
        for name in table.given_columns:
            kind = TABLES[key].get(name)
            if kind is not None and kind.what in NUMBERS:
                refs = [*table.columns[name], *table.spare.get(name, [])]
                head = str(table.sheet.cells[table.top, refs[0].column].value)
                yield head, table.sheet.name, f"cat_{key}_{name}", kind, refs
    for name, kind in TABLES["precisions"].items():
        refs = list(wiring.lists[f"dtypes_{name}"].refs)
        yield in_words(name), refs[0].sheet, f"cat_precisions_{name}", kind, refs


def _numbers(refs: Sequence[Ref]) -> list[float]:
    return [v for v in (plain(r.value) for r in refs) if isinstance(v, (int, float))]


def _total(refs: Sequence[Ref]) -> CellValue:
    return plain(math.fsum(_numbers(refs)))


def values_as_built(book: Book) -> Mapping[str, CellValue]:
    """By defined name the inputs of a book and the sums of its yellow columns."""
    values: dict[str, CellValue] = {}
    for name, refs in book.names.items():
        if isinstance(refs, Ref) and name.startswith("in_"):
            values[name] = refs.value
        elif isinstance(refs, Range) and name.startswith("cat_"):
            values[name] = _total(refs.refs)
    return values


def build_log(solved: Solution, page: Page, wiring: Wiring, others: Sequence[Sheet]) -> Sheet:
    """The sheet Change log; `sheetgen pull` and `diff` read its names. others: sheets with choices of their own."""
    sheet = titled(
        "Change log",
        "Change log",
        "What made this workbook, and what was changed since: in words by people, and live by comparison.",
        freeze=(HEAD_ROWS, 0),
    )
    sheet.widths = dict(enumerate(WIDTHS))
    question, row = solved.question, HEAD_ROWS
    options = {name: question.options[name] for name in sorted(question.options)}
    words = "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in options.items() if name != "typed")
    words += "; values typed over" if options.get("typed") else ""  # they are stated cell by cell below
    for name, label, value, display in (
        ("meta_schema", "Layout of the workbook", SCHEMA, PLAIN),
        ("meta_version", "sheetgen", page.version, TEXT),
        ("meta_catalog_sha256", "Catalog, SHA-256", question.catalog_sha256, TEXT),
        ("meta_date", "Sheet's date, as built", question.as_of, DATE),
        ("", "Built with", words, TEXT),
    ):
        ref = sheet.put(row, 1, Cell(value, "fixed", display), name or None, label=label)
        wiring.names |= {name: ref} if name else {}
        row += 1
    row += 1
    sheet.texts(row, 0, LOG_HEADS)
    for line in range(LOG_LINES):
        for column, head in enumerate(LOG_HEADS):
            is_day, name = head == "Date", f"log_{line + 1}_{LOG[column]}"
            check = Validation.of(Kind("date"), head, "The day of the change.") if is_day else None
            cell = Cell(question.overrides.input(name, None), "input", DATE if is_day else TEXT, validation=check)
            wiring.names[f"in_{name}"] = sheet.put(row + 1 + line, column, cell, f"in_{name}")
    rest = AsBuilt(sheet, row + LOG_LINES + 2, wiring)
    rest.changed_inputs()
    rest.choices(others)
    rest.columns()
    return sheet
