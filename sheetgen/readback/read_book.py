"""Read a workbook back, its record and its yellow cells: only by defined names, as rows and columns may have moved."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sheetgen.book.carried import KEY_COLUMNS, digest_of
from sheetgen.book.change_log import SCHEMA
from sheetgen.book.sheets import EXCEL_DAY_ZERO, NONE
from sheetgen.errors import SheetgenError, shown
from sheetgen.question.discounts import CELL
from sheetgen.question.inputs import (
    BY_NAME,
    BY_WORKLOAD,
    CONTEXT,
    HISTORY,
    LOAD,
    MONEY,
    PRECISION,
    RARE,
    TARGETS,
    rows_in,
)
from sheetgen.question.overrides import ENGINE, SETTINGS, TABLES, input_kind
from sheetgen.question.parse import Raw, name_part
from sheetgen.question.sheet_question import OPTIONS, SHEET_OPTIONS
from sheetgen.question.sheet_question import TARGETS as STATED_TARGETS
from sheetgen.question.stated_load import BY_DAY, RATE, mean_over_peak, stated_kind
from sheetgen.readback.file_cells import BLANK, Cell, Grid, as_shown, is_number, read_cells, read_named
from sheetgen.readback.package import Area, Outline, Place, WorkbookError, areas, listed, naming, outline, read_file
from sheetgen.readback.read_record import LOST, Carried, read_parts
from sheetgen.sizing import targets
from sheetgen.sizing.speed import cached_fraction


@dataclass(frozen=True)
class NamedCell:
    """The cell behind a defined name: its value, where it stands, and the words beside it.

    A date is a datetime.date; a blank cell is None, and so is a formula that nobody calculated.
    """

    value: Raw
    place: Place
    label: str
    unit: str
    number_format: str
    is_formula: bool


@dataclass(frozen=True)
class Table(Mapping[str, Mapping[str, Raw]]):
    """A table's rows by key, each by column; blank rows are left out.

    names and heads: what the sheet calls each row and column. formats: number format by column. formulas: cells (key,
    column) of inputs that hold a formula.
    """

    name: str
    rows: Mapping[str, Mapping[str, Raw]]
    areas: Mapping[str, Area]
    positions: Mapping[str, int]  # by key, the position in the areas, from 0
    names: Mapping[str, str] = field(default_factory=dict)
    heads: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    formulas: frozenset[tuple[str, str]] = frozenset()

    def __getitem__(self, key: str) -> Mapping[str, Raw]:
        return self.rows[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, key: str, column: str) -> Place:
        """The present place of a row's cell."""
        return self.areas[column].place(self.positions[key])


@dataclass(frozen=True)
class Snapshot:
    """A workbook: the record that it carries, and the present values of its yellow cells, by name without prefix.

    is_edited: whether a yellow cell was changed since it was built. results: the values of its formulas, which `pull`
    checks and uses for nothing else. cells: all cells with place, label and formula, by full name. notes: a remark for
    each unusual value that was accepted.
    """

    path: str
    record: Carried
    is_edited: bool
    inputs: Mapping[str, Raw]
    tables: Mapping[str, Table]
    results: Mapping[str, Raw]
    cells: Mapping[str, NamedCell]
    notes: tuple[str, ...] = ()

    @property
    def options(self) -> Mapping[str, Raw]:
        """The options with which it was built."""
        return self.record.options

    @property
    def catalog_sha256(self) -> str:
        """The hash of the catalogs with which it was built."""
        return self.record.answer.inputs.catalog_sha256


OF_DECISION = "decision_"
OF_LENGTHS = f"{OF_DECISION}context_tokens", f"{OF_DECISION}answer_tokens"
# Inputs that hold a formula until somebody types over it.
FOLLOWING = ("in_utilization", "in_tpot_ms_", "in_ttft_ms_", f"in_{OF_DECISION}tpot_ms", f"in_{OF_DECISION}ttft_ms")
OF_EACH_WORKLOAD = ("context", "output", *BY_WORKLOAD)
REQUIRED = (
    "tier_1",
    "headline_workload",
    "headline_tier",
    *ENGINE,
    *SETTINGS,
    *(
        asked.name
        for section in (CONTEXT, LOAD, PRECISION, MONEY, TARGETS, RARE)
        for asked in rows_in(section)
        if not asked.shown and asked.option and asked.option.group not in ("money", "factors")
    ),
)
_TIERS = re.compile(r"in_(headline_)?tier(_\d+)?")  # cells that may hold the word for a rate
LOG_LINE = "in_log_"
OF_INSTANCES = ("type", "provider", "instance_gpu", "gpu_count", "price_usd_per_hour", "price_date")
PREFIX = "cat_"
_NUMBERS = re.compile(rf"({'|'.join((*OF_EACH_WORKLOAD, 'tier'))})_.*")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")  # tab and line breaks may stand in a cell
_KIND = {"n": "number", "s": "text", "b": "yes or no", "d": "date", "e": "error"}
OPEN_AND_SAVE = "Open the workbook in Excel or LibreOffice, save it once, and try again."
_NAME_AT = {"models": -1, "gpus": 1}  # the number of columns from the key to the name that people use
_HEAD_ROWS = 6  # the number of rows above a column in which its head is looked for


def read_workbook(path: Path | str) -> Snapshot:
    """The present content of a workbook of `sheetgen build`, edited or not.

    An input that holds a formula has the formula's value, and a note says so. Raises WorkbookError, a line for each
    problem, where the file is no such workbook, names are missing or broken, or an input holds what no input can.
    """
    return read_workbook_bytes(read_file(Path(path)), str(path))


def read_workbook_bytes(data: bytes, path: str) -> Snapshot:
    """The same from a file's bytes; `path` names it in messages."""
    with naming(path):
        book = outline(data)
        if "sheetgen.schema" not in book.properties and all(
            defined.name.lower() != "meta_schema" for defined in book.names
        ):
            raise WorkbookError("was not made by sheetgen, or lost its names. Give a workbook of `sheetgen build`.")
        _check_schema(book.properties.get("sheetgen.schema"), book, path)
        places, grids = read_named(book)
        if "meta_schema" not in places:
            raise WorkbookError(f"lacks the defined name meta_schema. {LOST}")
        reading = _Reading(grids, book.from_1904)
        _check_schema(reading.value_at(places["meta_schema"]), book, path)
        record: Carried = read_parts(places, reading.value_at, Carried.model_validate)
        _check_names(places, record)
        cells = {
            name: reading.named_cell(name, area)
            for name, area in places.items()
            if not name.startswith((PREFIX, "meta_"))
        }
        columns: dict[str, dict[str, Area]] = defaultdict(dict)
        for name in (name for name in places if name.startswith(PREFIX)):
            table, _, column_of_table = name.removeprefix(PREFIX).partition("_")
            columns[table][column_of_table] = places[name]
        tables = {
            name: reading.table(name, of_table)
            for name, of_table in columns.items()
            if KEY_COLUMNS.get(name) in of_table
        }
        reading.follow(cells, reading.parts_of(places.get("list_workload"), record))
        if reading.problems:
            raise WorkbookError(*(f"{listed(spots)} {shown(why, 400)}" for why, spots in reading.problems.items()))
        inputs, results = (
            {name.removeprefix(prefix): cell.value for name, cell in cells.items() if name.startswith(prefix)}
            for prefix in ("in_", "rec_")
        )
        typed = {name: cell.value for name, cell in cells.items() if name.startswith("in_")}
        return Snapshot(
            path,
            record,
            digest_of(typed, reading.columns) != record.yellow_sha256,
            inputs,
            tables,
            results,
            cells,
            (*_formula_notes(cells, tables), *reading.below(tables["instances"])),
        )


def read_every_cell(path: Path | str) -> dict[str, Grid]:
    """By sheet, every cell of a workbook, as it stands in the file. Raises WorkbookError."""
    data = read_file(Path(path))
    with naming(path):
        return read_cells(outline(data))


def _check_schema(schema: Raw, book: Outline, path: str) -> None:
    """Refuse a layout that is not this version's, before its missing names are reported one by one."""
    try:
        layout = float(SCHEMA if schema is None else schema)
    except (TypeError, ValueError):
        layout = math.nan
    if math.isnan(layout):
        raise WorkbookError(f"its layout is {shown(schema)!r}; it must be {SCHEMA}. {LOST}")
    if layout != SCHEMA:
        version = shown(book.properties.get("sheetgen.version", "?"), 20)
        age, cure = ("a newer", "Update sheetgen.") if layout > SCHEMA else ("an older", _how_to_rebuild(book, path))
        layout_words = f"has the layout {layout:g} of {age} sheetgen ({version})"
        raise WorkbookError(f"{layout_words}; this one reads {SCHEMA}. {cure}")


def _how_to_rebuild(book: Outline, path: str) -> str:
    """A sentence with the command that builds a workbook of an older layout anew: from the scenario beside it, or with
    the options that the workbook carries."""
    scenario = Path(path).with_suffix(".scenario.yaml")
    if scenario.is_file():
        return f"Build it anew: sheetgen build --scenario {shown(shlex.quote(str(scenario)), 200)}."
    options: Raw = None
    with contextlib.suppress(SheetgenError, KeyError, ValueError, RecursionError):
        area = areas(book)["meta_options"]  # the cell of the options in layouts up to 3
        cell = read_cells(book, {area.sheet: (area.row, area.column)})[area.sheet][area.row, area.column]
        options = json.loads(str(cell.value))
    words = ["sheetgen build"]
    for name, value in options.items() if isinstance(options, dict) else ():
        if name in (*OPTIONS, *SHEET_OPTIONS) and isinstance(value, str | int | float):
            words.append(f"--{name.replace('_', '-')} {shlex.quote(str(value))}")
    typed = isinstance(options, dict) and options.get("typed")
    return f"Build it anew: {shown(' '.join(words), 300)}{', and type anew what was typed over' if typed else ''}."


def required_names(workloads: Iterable[str], n_tiers: int) -> list[str]:
    """The defined names that a workbook with these workloads and this number of tiers must have."""
    of_workloads = (f"{length}_{name_part(workload)}" for workload in workloads for length in OF_EACH_WORKLOAD)
    inputs = (*REQUIRED, *of_workloads, *(f"tier_{n}" for n in range(1, n_tiers + 1)))
    return [*(f"in_{name}" for name in dict.fromkeys(inputs)), *required_columns()]


def _check_names(places: Mapping[str, Area], record: Carried) -> None:
    """Refuse a workbook that lost a defined name: its input would be taken for one that the workbook never had."""
    inputs = record.answer.inputs
    required = required_names((workload.id for workload in inputs.workloads), len(inputs.tiers))
    missing = [name for name in required if name not in places]
    if missing:
        s, pronoun = ("", "it") if len(missing) == 1 else ("s", "them")
        how = f"Define {pronoun} again (Formulas, Name Manager), or start from a fresh build."
        raise WorkbookError(f"lacks the defined name{s} {listed(missing)}. {how}")


def required_columns() -> list[str]:
    """The names of columns that every workbook of ours has."""
    tables = {**TABLES, "instances": OF_INSTANCES}
    return [f"{PREFIX}{table}_{column}" for table, key in KEY_COLUMNS.items() for column in (key, *tables[table])]


def _is_unknown_target(name: str, value: Raw, is_formula: bool) -> bool:
    """True where an input holds a formula over other inputs that no program has calculated."""
    return value is None and is_formula and name.startswith(FOLLOWING)


def input_that_follows(name: str, inputs: Mapping[str, Raw], parts: Mapping[str, str]) -> float:
    """The default for an input's name: of a target, such as tpot_ms_chat or decision_tpot_ms, from the lengths of its
    workload or those on Decision; of the utilization, from how the rate is stated.

    parts: the ends of the names of each workload's inputs, by its name.
    """
    if name == "utilization":
        is_by_day = stated_kind(inputs) in BY_DAY
        of_day = mean_over_peak(inputs["peak_hour_share"], inputs["burst_factor"])
        return of_day if is_by_day else float(BY_NAME["utilization"].default)
    if name.startswith(OF_DECISION):
        option, history = name.removeprefix(OF_DECISION), 0.0
        part = parts.get(inputs.get(f"{OF_DECISION}workload", ""))
        lengths = (f"context_{part}", f"output_{part}") if part else OF_LENGTHS
        context, answer = (inputs[length] for length in lengths)
        stated = inputs.get("prompt_asked")
        prompt = max(0, context - answer) if stated is None else min(stated, max(0, context - answer))
    else:
        option = next(target for target in STATED_TARGETS if name.startswith(f"{target}_"))
        part = name.removeprefix(f"{option}_")
        context, prompt = inputs[f"context_{part}"], inputs.get(f"prompt_{part}")
        prompt = context - inputs[f"output_{part}"] if prompt is None else prompt
        history = inputs[f"{HISTORY}_{part}"]
    quantities = {
        **inputs,
        "context_tokens": context,
        "input_tokens": prompt,
        "cached_fraction": cached_fraction.of({**inputs, HISTORY: history}),
    }
    return float(dict(zip(STATED_TARGETS, targets.DEFAULTS, strict=True))[option].of(quantities))


class _Reading:
    """The cells of a workbook, and the problems of those that were read."""

    def __init__(self, grids: Mapping[str, Grid], from_1904: bool) -> None:
        self._grids = {
            s: {position: as_shown(cell, from_1904) for position, cell in grid.items()} for s, grid in grids.items()
        }
        self._from_1904 = from_1904
        self.problems: dict[str, list[str]] = defaultdict(list)  # by problem, its place
        self.columns: dict[str, list[Raw]] = {}  # of tables, by name

    def value_at(self, area: Area) -> Raw:
        """The value of the first cell of an area."""
        return self._at(area).value

    def _at(self, area: Area, down: int = 0, right: int = 0) -> Cell:
        """The cell `down` rows and `right` columns from the first cell of an area."""
        return self._grids[area.sheet].get((area.row + down, area.column + right), BLANK)

    def _value(self, name: str, place: Place, cell: Cell, holds: str) -> Raw:
        try:
            return value_of(cell, holds, self._from_1904)
        except WorkbookError as error:
            self.problems[error.problems[0]].append(f"{name} ({place})")

    def named_cell(self, name: str, area: Area) -> NamedCell:
        cell, unit, label = self._at(area), self._at(area, 0, 1).value, ""
        if name.startswith(LOG_LINE):  # beside it stands another text that somebody typed
            line, _, column = name.removeprefix(LOG_LINE).partition("_")
            label = f"Change log, line {line}, {column}"
        elif name.startswith(f"in_{CELL}"):  # its head is above it
            label = name.removeprefix("in_").replace("_", " ").capitalize()
        else:
            before = (_text(self._at(area, 0, -i)) for i in range(1, area.column))
            label = next((text for text in before if text.strip()), "")
        value, form = cell.value, cell.number_format
        if name.startswith("in_"):
            is_rate = value == RATE and _TIERS.fullmatch(name)
            holds = "text" if is_rate else input_holds(name.removeprefix("in_"), form)
            if not _is_unknown_target(name, value, cell.formula is not None):
                value = self._value(name, area.place(), cell, holds)
        unit = unit if isinstance(unit, str) else ""
        return NamedCell(value, area.place(), label, unit, form, cell.formula is not None)

    def parts_of(self, area: Area | None, record: Carried) -> Mapping[str, str]:
        """The ends of the names of each workload's inputs, by its name."""
        ids = (workload.id for workload in record.answer.inputs.workloads)
        return {str(self._at(area, i).value): name_part(workload) for i, workload in enumerate(ids)} if area else {}

    def follow(self, cells: dict[str, NamedCell], parts: Mapping[str, str]) -> None:
        """Fill in the targets whose formulas no program calculated, from their workload's lengths."""
        inputs = {name.removeprefix("in_"): cell.value for name, cell in cells.items() if name.startswith("in_")}
        for name, cell in cells.items():
            if _is_unknown_target(name, cell.value, cell.is_formula):
                try:
                    value = input_that_follows(name.removeprefix("in_"), inputs, parts)
                except (KeyError, TypeError):  # a cell that it follows from is blank
                    why = f"holds a formula without a value. {OPEN_AND_SAVE}"
                    self.problems[why].append(f"{name} ({cell.place})")
                else:
                    cells[name] = replace(cell, value=float(f"{value:.15g}"))  # as a cell holds it

    def table(self, name: str, areas: Mapping[str, Area]) -> Table:
        """A table as it stands now, which may be elsewhere than where it was built."""
        first = areas[KEY_COLUMNS[name]]
        for column, area in areas.items():  # they stand side by side; precisions in three blocks of as many rows
            is_beside = name == "precisions" or (area.sheet, area.row) == (first.sheet, first.row)
            if not is_beside or area.n_rows != first.n_rows:
                why = "does not span the same rows as the others of its table. Insert and delete whole rows only"
                self.problems[f"{why}; start from a fresh build."].append(f"{PREFIX}{name}_{column}")
        cells = {c: [self._at(area, i) for i in range(first.n_rows)] for c, area in areas.items()}
        formats = {c: next((f.number_format for f in held if f.value is not None), "") for c, held in cells.items()}
        rows: dict[str, Mapping[str, Raw]] = {}
        positions: dict[str, int] = {}
        formulas = set()
        for i in range(first.n_rows):
            row = {
                column: self._cell_of(name, column, area.place(i), cells[column][i]) for column, area in areas.items()
            }
            for column, value in row.items():
                self.columns.setdefault(f"{PREFIX}{name}_{column}", []).append(value)
            key = _key(name, row)
            del row[KEY_COLUMNS[name]]
            if not key and all(v is None for v in row.values()):
                continue
            key = unlike(key or "(no name)", rows)
            rows[key], positions[key] = row, i
            formulas |= {(key, column) for column in row if cells[column][i].formula is not None}
        names = {key: _text(self._at(first, i, _NAME_AT.get(name, 0))) or key for key, i in positions.items()}
        heads = {column: self._head(area) for column, area in areas.items()}
        return Table(name, rows, areas, positions, names, heads, formats, frozenset(formulas))

    def _cell_of(self, table: str, column: str, place: Place, cell: Cell) -> Raw:
        holds = column_holds(table, column, cell.number_format)
        if column == KEY_COLUMNS[table]:
            if cell.kind == "e" or cell.value == NONE:
                return None
            cell, holds = cell._replace(formula=None), "text"  # a key may have a formula
        return self._value(f"{PREFIX}{table}_{column}", place, cell, holds)

    def _head(self, area: Area) -> str:
        """The nearest text above a column."""
        above = (_text(self._at(area, -i)) for i in range(1, 1 + min(_HEAD_ROWS, area.row - 1)))
        return next(filter(None, above), "")

    def below(self, table: Table) -> list[str]:
        """A remark where somebody typed an instance below the table, where no formula reads it."""
        area = table.areas["type"]
        if self._at(area, area.n_rows).value is None:
            return []
        problem = "stands under the table and is not read. Use a spare row, or insert a row inside the table."
        return [f"{area.place(area.n_rows)} {problem}"]


def _text(cell: Cell) -> str:
    return cell.value if isinstance(cell.value, str) and cell.kind == "s" else ""


def _key(table: str, row: Mapping[str, Raw]) -> str:
    """The key of a row: for an instance provider and type, whether or not it was recalculated."""
    if table == "instances":
        return f"{row.get('provider') or ''}/{row['type']}" if row.get("type") else ""
    if table == "models":  # a reader's own row has only a name
        return row[KEY_COLUMNS[table]] or row.get("model") or ""
    return row[KEY_COLUMNS[table]] or ""


def unlike(key: str, taken: Mapping[str, Raw]) -> str:
    """`key`, with a number behind it where an earlier row has the same key."""
    name, n = key, 1
    while name in taken:
        n += 1
        name = f"{key} (row {n} of this name)"
    return name


def _formula_notes(cells: Mapping[str, NamedCell], tables: Mapping[str, Table]) -> list[str]:
    """A note that names the inputs in which somebody typed a formula, whose last value is taken."""
    typed = {n: c for n, c in cells.items() if n.startswith("in_") and not n.startswith(FOLLOWING) and c.is_formula}
    places = [f"{n} ({c.place})" for n, c in typed.items()]
    for table in tables.values():
        places += [f"{PREFIX}{table.name}_{c} ({table.place(k, c)})" for k, c in sorted(table.formulas)]
    if not places:
        return []
    hold, value, is_ = ("holds a formula", "value", "is") if len(places) == 1 else ("hold formulas", "values", "are")
    return [f"{listed(places)} {hold}: the {value} of the last recalculation {is_} taken."]


def input_holds(name: str, number_format: str) -> str:
    """The type of value that an input takes: number, text or date, or any where neither its name nor its format
    tells."""
    kind = BY_NAME[name].kind if name in BY_NAME else input_kind(name)
    if kind is not None:
        return kind.holds
    return "number" if _NUMBERS.fullmatch(name) else _by_format(number_format)


def column_holds(table: str, column: str, number_format: str) -> str:
    """The same for a table's column."""
    kind = TABLES.get(table, {}).get(column)
    return kind.holds if kind else _by_format(number_format)


def _by_format(number_format: str) -> str:
    if number_format in ("General", "@"):
        return "text" if number_format == "@" else "any"
    return "date" if re.search(r"y{2}", number_format, re.IGNORECASE) else "number"


def still_holds(old: Raw, new: Raw) -> bool:
    """True where a cell still holds the value that it was built with, to 12 digits, as programs keep 15 of a number."""
    if isinstance(old, float) and math.isnan(old):
        old = None
    if is_number(old) and is_number(new):
        return math.isclose(old, new, rel_tol=1e-12, abs_tol=0.0)
    if isinstance(old, datetime.datetime):
        old = old.date()
    return bool(old == new) or (old in (None, "") and new in (None, ""))


def value_of(cell: Cell, holds: str, from_1904: bool) -> Raw:
    """The value of a cell as the type `holds`; None where it is blank. Raises WorkbookError where it holds another
    type."""
    value = cell.value
    if value is None and cell.formula is not None:
        raise WorkbookError(f"holds a formula without a value. {OPEN_AND_SAVE}")
    if value is not None and cell.kind == "e":
        raise WorkbookError(f"holds the error {shown(value)}. Mend it, or type a value.")
    if isinstance(value, str) and _CONTROL.search(value):
        raise WorkbookError(f"holds a control character in {shown(value)!r}. Type it anew.")
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    text = value.isoformat() if hasattr(value, "isoformat") else value
    described = f"the {_KIND.get(cell.kind, 'value')} {shown(text)!r}"
    if holds == "date" and not isinstance(value, datetime.date):
        if is_number(value) and 0 < value < 2_958_466:
            return (datetime.date(1904, 1, 1) if from_1904 else EXCEL_DAY_ZERO) + datetime.timedelta(days=int(value))
        try:
            return datetime.date.fromisoformat(str(value).strip())
        except ValueError:
            cure = "Type a date such as 2026-11-20."
            raise WorkbookError(f"holds {shown(value)!r}, where a date belongs. {cure}") from None
    if holds == "number" and not is_number(value):
        raise WorkbookError(f"holds {described}, where a number belongs. Type a number.")
    if holds == "number" and not math.isfinite(value):
        raise WorkbookError(f"holds {value}, which is no number. Type a number.")
    if holds == "text" and is_number(value):
        return f"{value:.15g}"  # a name of digits alone
    if holds == "text" and not isinstance(value, str):
        raise WorkbookError(f"holds {described}, where a text belongs. Type a text.")
    return value
