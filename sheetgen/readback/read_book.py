"""Read a workbook back, its record and its yellow cells: by defined names alone, as rows and columns may have moved."""

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
from typing import Any

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
from sheetgen.question.parse import name_part
from sheetgen.question.sheet_question import OPTIONS, SHEET_OPTIONS
from sheetgen.question.sheet_question import TARGETS as STATED_TARGETS
from sheetgen.question.stated_load import RATE
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

    value: Any
    place: Place
    label: str
    unit: str
    number_format: str
    is_formula: bool


@dataclass(frozen=True)
class Table(Mapping[str, Mapping[str, Any]]):
    """A table's rows by their key, each by column; rows that are blank are left out.

    names and heads: what the sheet calls each row and column. formats: number format by column. formulas: cells (key,
    column) of inputs that hold a formula.
    """

    name: str
    rows: Mapping[str, Mapping[str, Any]]
    areas: Mapping[str, Area]
    at: Mapping[str, int]  # by key, the position in the areas, from 0
    names: Mapping[str, str] = field(default_factory=dict)
    heads: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    formulas: frozenset[tuple[str, str]] = frozenset()

    def __getitem__(self, key: str) -> Mapping[str, Any]:
        return self.rows[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, key: str, column: str) -> Place:
        """Where a row's cell stands now."""
        return self.areas[column].place(self.at[key])


@dataclass(frozen=True)
class Snapshot:
    """A workbook: the record that it carries, and what its yellow cells say now; names stand here without their prefix.

    is_edited: whether a yellow cell was changed since it was built. results: what its formulas gave, which `pull`
    checks and of which nothing is made. cells has all of them with place, label and formula, by full name. notes are
    remarks for the reader of a message: what was taken though it is unusual, each a line.
    """

    path: str
    record: Carried
    is_edited: bool
    inputs: Mapping[str, Any]
    tables: Mapping[str, Table]
    results: Mapping[str, Any]
    cells: Mapping[str, NamedCell]
    notes: tuple[str, ...] = ()

    @property
    def options(self) -> Mapping[str, Any]:
        """Those that it was built with."""
        return self.record.options

    @property
    def catalog_sha256(self) -> str:
        """Of the catalogs that it was built with."""
        return self.record.answer.inputs.catalog_sha256


OF_DECISION = "decision_"
OF_LENGTHS = f"{OF_DECISION}context_tokens", f"{OF_DECISION}answer_tokens"
# Inputs that hold a formula until somebody types over it.
FOLLOWING = ("in_tpot_ms_", "in_ttft_ms_", f"in_{OF_DECISION}tpot_ms", f"in_{OF_DECISION}ttft_ms")
OF_EACH_WORKLOAD = ("context", "output", *BY_WORKLOAD)
REQUIRED = (
    "tier_1",
    "headline_workload",
    "headline_tier",
    *ENGINE,
    *SETTINGS,
    *(
        one.name
        for section in (CONTEXT, LOAD, PRECISION, MONEY, TARGETS, RARE)
        for one in rows_in(section)
        if not one.shown and one.option and one.option.group not in ("money", "factors")
    ),
)
_TIERS = re.compile(r"in_(headline_)?tier(_\d+)?")  # that may be a rate
LOG_LINE = "in_log_"
OF_INSTANCES = ("type", "provider", "instance_gpu", "gpu_count", "price_usd_per_hour", "price_date")
PREFIX = "cat_"
_NUMBERS = re.compile(rf"({'|'.join((*OF_EACH_WORKLOAD, 'tier'))})_.*")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")  # tab and line breaks may stand in a cell
_KIND = {"n": "number", "s": "text", "b": "yes or no", "d": "date", "e": "error"}
OPEN_AND_SAVE = "Open the workbook in Excel or LibreOffice, save it once, and try again."
_NAME_AT = {"models": -1, "gpus": 1}  # columns from the key to the name that people use
_HEAD_ROWS = 6  # how far above a column its head is looked for


def read_workbook(path: Path | str) -> Snapshot:
    """What a workbook of `sheetgen build` says now, whoever edited it.

    An input that holds a formula has the formula's value, and a note says so. Raises WorkbookError, a line for each
    problem, where the file is no such workbook, names are missing or broken, or an input holds what no input can.
    """
    return read_workbook_bytes(read_file(Path(path)), str(path))


def read_workbook_bytes(data: bytes, path: str) -> Snapshot:
    """The same of a file that was read; `path` names it in messages."""
    with naming(path):
        book = outline(data)
        if "sheetgen.schema" not in book.properties and all(one.name.lower() != "meta_schema" for one in book.names):
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
        tables = {name: reading.table(name, of_it) for name, of_it in columns.items() if KEY_COLUMNS.get(name) in of_it}
        reading.follow(cells, reading.parts_of(places.get("list_workload"), record))
        if reading.problems:
            raise WorkbookError(*(f"{listed(spots)} {shown(why, 400)}" for why, spots in reading.problems.items()))
        inputs, results = (
            {name.removeprefix(prefix): cell.value for name, cell in cells.items() if name.startswith(prefix)}
            for prefix in ("in_", "rec_")
        )
        held = {name: cell.value for name, cell in cells.items() if name.startswith("in_")}
        return Snapshot(
            path,
            record,
            digest_of(held, reading.columns) != record.yellow_sha256,
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


def _check_schema(schema: Any, book: Outline, path: str) -> None:
    """Refuse a layout that is not this version's, before its names are missed one by one."""
    try:
        layout = float(SCHEMA if schema is None else schema)
    except (TypeError, ValueError):
        layout = math.nan
    if math.isnan(layout):
        raise WorkbookError(f"its layout is {shown(schema)!r}; it must be {SCHEMA}. {LOST}")
    if layout != SCHEMA:
        version = shown(book.properties.get("sheetgen.version", "?"), 20)
        age, cure = ("a newer", "Update sheetgen.") if layout > SCHEMA else ("an older", _anew(book, path))
        what = f"has the layout {layout:g} of {age} sheetgen ({version})"
        raise WorkbookError(f"{what}; this one reads {SCHEMA}. {cure}")


def _anew(book: Outline, path: str) -> str:
    """How to build a workbook of an older layout anew: of the scenario beside it, or of the options that it names."""
    scenario = Path(path).with_suffix(".scenario.yaml")
    if scenario.is_file():
        return f"Build it anew: sheetgen build --scenario {shown(shlex.quote(str(scenario)), 200)}."
    options: Any = None
    with contextlib.suppress(SheetgenError, KeyError, ValueError, RecursionError):
        area = areas(book)["meta_options"]  # where layouts up to 3 had them
        cell = read_cells(book, {area.sheet: (area.row, area.column)})[area.sheet][area.row, area.column]
        options = json.loads(str(cell.value))
    words = ["sheetgen build"]
    for name, value in options.items() if isinstance(options, dict) else ():
        if name in (*OPTIONS, *SHEET_OPTIONS) and isinstance(value, str | int | float):
            words.append(f"--{name.replace('_', '-')} {shlex.quote(str(value))}")
    typed = isinstance(options, dict) and options.get("typed")
    return f"Build it anew: {shown(' '.join(words), 300)}{', and type anew what was typed over' if typed else ''}."


def required_names(workloads: Iterable[str], n_tiers: int) -> list[str]:
    """The names that a workbook of these workloads and as many tiers has."""
    of_workloads = (f"{what}_{name_part(workload)}" for workload in workloads for what in OF_EACH_WORKLOAD)
    inputs = (*REQUIRED, *of_workloads, *(f"tier_{n}" for n in range(1, n_tiers + 1)))
    return [*(f"in_{name}" for name in dict.fromkeys(inputs)), *required_columns()]


def _check_names(places: Mapping[str, Area], record: Carried) -> None:
    """Refuse a workbook that lost a name: what it stood for would pass for never having been there."""
    inputs = record.answer.inputs
    required = required_names((workload.id for workload in inputs.workloads), len(inputs.tiers))
    missing = [name for name in required if name not in places]
    if missing:
        s, them = ("", "it") if len(missing) == 1 else ("s", "them")
        how = f"Define {them} again (Formulas, Name Manager), or start from a fresh build."
        raise WorkbookError(f"lacks the defined name{s} {listed(missing)}. {how}")


def required_columns() -> list[str]:
    """The names of columns that every workbook of ours has."""
    tables = {**TABLES, "instances": OF_INSTANCES}
    return [f"{PREFIX}{table}_{column}" for table, key in KEY_COLUMNS.items() for column in (key, *tables[table])]


def _is_unknown_target(name: str, value: Any, is_formula: bool) -> bool:
    """Whether an input is a target that follows its workload, and nobody calculated it."""
    return value is None and is_formula and name.startswith(FOLLOWING)


def target_that_follows(name: str, inputs: Mapping[str, Any], parts: Mapping[str, str]) -> float:
    """The target of an input's name that nobody states, such as tpot_ms_chat or decision_tpot_ms: what the lengths of
    its workload, or those on Decision, give. parts: of names of inputs, by the name of their workload."""
    if name.startswith(OF_DECISION):
        option, history = name.removeprefix(OF_DECISION), 0.0
        part = parts.get(inputs.get(f"{OF_DECISION}workload", ""))
        lengths = (f"context_{part}", f"output_{part}") if part else OF_LENGTHS
        context, answer = (inputs[length] for length in lengths)
        stated = inputs.get("prompt_asked")
        prompt = max(0, context - answer) if stated is None else min(stated, max(0, context - answer))
    else:
        option = next(one for one in STATED_TARGETS if name.startswith(f"{one}_"))
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
    """The cells of a workbook, and what is wrong with those that were looked at."""

    def __init__(self, grids: Mapping[str, Grid], from_1904: bool) -> None:
        self._grids = {s: {at: as_shown(cell, from_1904) for at, cell in grid.items()} for s, grid in grids.items()}
        self._from_1904 = from_1904
        self.problems: dict[str, list[str]] = defaultdict(list)  # what is wrong: where it is
        self.columns: dict[str, list[Any]] = {}  # of tables, by name

    def value_at(self, area: Area) -> Any:
        """What the first cell of an area holds."""
        return self._at(area).value

    def _at(self, area: Area, down: int = 0, right: int = 0) -> Cell:
        """A cell, so many rows and columns from the first of an area."""
        return self._grids[area.sheet].get((area.row + down, area.column + right), BLANK)

    def _value(self, name: str, place: Place, found: Cell, holds: str) -> Any:
        try:
            return value_of(found, holds, self._from_1904)
        except WorkbookError as error:
            self.problems[error.problems[0]].append(f"{name} ({place})")

    def named_cell(self, name: str, area: Area) -> NamedCell:
        found, unit, label = self._at(area), self._at(area, 0, 1).value, ""
        if name.startswith(LOG_LINE):  # beside it stands another text that somebody typed
            line, _, what = name.removeprefix(LOG_LINE).partition("_")
            label = f"Change log, line {line}, {what}"
        elif name.startswith(f"in_{CELL}"):  # its head is above it
            label = name.removeprefix("in_").replace("_", " ").capitalize()
        else:
            before = (_text(self._at(area, 0, -i)) for i in range(1, area.column))
            label = next((text for text in before if text.strip()), "")
        value, form = found.value, found.number_format
        if name.startswith("in_"):
            is_rate = value == RATE and _TIERS.fullmatch(name)
            holds = "text" if is_rate else input_holds(name.removeprefix("in_"), form)
            if not _is_unknown_target(name, value, found.formula is not None):
                value = self._value(name, area.place(), found, holds)
        unit = unit if isinstance(unit, str) else ""
        return NamedCell(value, area.place(), label, unit, form, found.formula is not None)

    def parts_of(self, area: Area | None, record: Carried) -> Mapping[str, str]:
        """By the name of a workload what its inputs' names have."""
        ids = (workload.id for workload in record.answer.inputs.workloads)
        return {str(self._at(area, i).value): name_part(one) for i, one in enumerate(ids)} if area else {}

    def follow(self, cells: dict[str, NamedCell], parts: Mapping[str, str]) -> None:
        """Give the targets whose formulas nobody calculated what they follow from: their workload's lengths."""
        inputs = {name.removeprefix("in_"): cell.value for name, cell in cells.items() if name.startswith("in_")}
        for name, cell in cells.items():
            if _is_unknown_target(name, cell.value, cell.is_formula):
                try:
                    value = target_that_follows(name.removeprefix("in_"), inputs, parts)
                except (KeyError, TypeError):  # a cell that it follows from is blank
                    why = f"holds a formula without a value. {OPEN_AND_SAVE}"
                    self.problems[why].append(f"{name} ({cell.place})")
                else:
                    cells[name] = replace(cell, value=float(f"{value:.15g}"))  # as a cell holds it

    def table(self, name: str, areas: Mapping[str, Area]) -> Table:
        """The rows of a table by key, wherever they stand now."""
        first = areas[KEY_COLUMNS[name]]
        for column, area in areas.items():  # they stand side by side; precisions in three blocks of as many rows
            is_beside = name == "precisions" or (area.sheet, area.row) == (first.sheet, first.row)
            if not is_beside or area.n_rows != first.n_rows:
                why = "does not span the same rows as the others of its table. Insert and delete whole rows only"
                self.problems[f"{why}; start from a fresh build."].append(f"{PREFIX}{name}_{column}")
        cells = {c: [self._at(area, i) for i in range(first.n_rows)] for c, area in areas.items()}
        formats = {c: next((f.number_format for f in found if f.value is not None), "") for c, found in cells.items()}
        rows: dict[str, Mapping[str, Any]] = {}
        at: dict[str, int] = {}
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
            rows[key], at[key] = row, i
            formulas |= {(key, column) for column in row if cells[column][i].formula is not None}
        names = {key: _text(self._at(first, i, _NAME_AT.get(name, 0))) or key for key, i in at.items()}
        heads = {column: self._head(area) for column, area in areas.items()}
        return Table(name, rows, areas, at, names, heads, formats, frozenset(formulas))

    def _cell_of(self, table: str, column: str, place: Place, found: Cell) -> Any:
        holds = column_holds(table, column, found.number_format)
        if column == KEY_COLUMNS[table]:
            if found.kind == "e" or found.value == NONE:
                return None
            found, holds = found._replace(formula=None), "text"  # it may be worked out, and is, if nobody did so
        return self._value(f"{PREFIX}{table}_{column}", place, found, holds)

    def _head(self, area: Area) -> str:
        """The nearest text above a column."""
        above = (_text(self._at(area, -i)) for i in range(1, 1 + min(_HEAD_ROWS, area.row - 1)))
        return next(filter(None, above), "")

    def below(self, table: Table) -> list[str]:
        """A remark where an instance was typed under the table, out of its reach."""
        area = table.areas["type"]
        if self._at(area, area.n_rows).value is None:
            return []
        what = "stands under the table and is not read. Use a spare row, or insert a row inside the table."
        return [f"{area.place(area.n_rows)} {what}"]


def _text(found: Cell) -> str:
    return found.value if isinstance(found.value, str) and found.kind == "s" else ""


def _key(table: str, row: Mapping[str, Any]) -> str:
    """What tells the row apart: an instance by provider and type, whether or not it was recalculated."""
    if table == "instances":
        return f"{row.get('provider') or ''}/{row['type']}" if row.get("type") else ""
    if table == "models":  # one of the reader's own has a name alone
        return row[KEY_COLUMNS[table]] or row.get("model") or ""
    return row[KEY_COLUMNS[table]] or ""


def unlike(key: str, taken: Mapping[str, Any]) -> str:
    """`key`, or with a number where a row before has it too."""
    found, n = key, 1
    while found in taken:
        n += 1
        found = f"{key} (row {n} of this name)"
    return found


def _formula_notes(cells: Mapping[str, NamedCell], tables: Mapping[str, Table]) -> list[str]:
    """A note on inputs whose value a formula gives that a person typed: it is taken as it stands."""
    typed = {n: c for n, c in cells.items() if n.startswith("in_") and not n.startswith(FOLLOWING) and c.is_formula}
    places = [f"{n} ({c.place})" for n, c in typed.items()]
    for table in tables.values():
        places += [f"{PREFIX}{table.name}_{c} ({table.place(k, c)})" for k, c in sorted(table.formulas)]
    if not places:
        return []
    hold, value, is_ = ("holds a formula", "value", "is") if len(places) == 1 else ("hold formulas", "values", "are")
    return [f"{listed(places)} {hold}: the {value} of the last recalculation {is_} taken."]


def input_holds(name: str, number_format: str) -> str:
    """What an input takes (number, text, date), as far as it is known by its name or its format; or any."""
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


def value_of(found: Cell, holds: str, from_1904: bool) -> Any:
    """The value that a cell gives; None where it is blank. Raises WorkbookError with what is wrong with it."""
    value = found.value
    if value is None and found.formula is not None:
        raise WorkbookError(f"holds a formula without a value. {OPEN_AND_SAVE}")
    if value is not None and found.kind == "e":
        raise WorkbookError(f"holds the error {shown(value)}. Mend it, or type a value.")
    if isinstance(value, str) and _CONTROL.search(value):
        raise WorkbookError(f"holds a control character in {shown(value)!r}. Type it anew.")
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    text = value.isoformat() if hasattr(value, "isoformat") else value
    described = f"the {_KIND.get(found.kind, 'value')} {shown(text)!r}"
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
