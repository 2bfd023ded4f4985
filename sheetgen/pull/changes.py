"""A sheet built anew, and what differs between it and a workbook, cell by cell of those that a reader may change."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from sheetgen.catalog.load import Catalog
from sheetgen.recommend import Solution, solve
from sheetgen.scenario.overrides import TABLES
from sheetgen.scenario.question import Question, ask
from sheetgen.sheet.book import build_book
from sheetgen.sheet.build_page import build_page
from sheetgen.sheet.model import NONE, Book, Range, Ref
from sheetgen.sheet.what_if import what_if
from sheetgen.units import DTYPE_ALIASES
from sheetgen.workbook.bridge import row_keys
from sheetgen.workbook.cells import is_number
from sheetgen.workbook.package import Place
from sheetgen.workbook.read import KEYS, Snapshot, Table, unlike
from sheetgen.writers.formats import gc_paused

T = TypeVar("T", Ref, Range)
HEADLINE = "headline"
NOT_COMPARED = ("headline_workload", "headline_tier")  # read together, as a load


class BuiltRow(NamedTuple):
    """A filled row of a table: the key under which `typed` has it, None for one of the reader's own, and its cells."""

    key: str | None
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class Built:
    """A sheet as `build` makes it of some options."""

    solved: Solution
    book: Book
    inputs: Mapping[str, Any]
    fixed: frozenset[str]  # inputs that no reader is meant to change
    tables: Mapping[str, Mapping[str, BuiltRow]]  # rows by what they are called
    n_rows: Mapping[str, int]  # of each table, the blank ones too
    results: Mapping[str, Any]

    @property
    def question(self) -> Question:
        return self.solved.question


@gc_paused()
def build_anew(catalog: Catalog, options: Mapping[str, Any], baseline: Mapping[str, Any] | None = None) -> Built:
    """The sheet of these options, which marks what differs from `baseline`.

    Raises ScenarioError or CatalogError where the question cannot be put.
    """
    solved = solve(ask(catalog, options))
    no_levers = ((),) * len(solved.question.loads)  # they stand on sheets of their own, and decide nothing
    book = build_book(solved, build_page(solved, no_levers), no_levers, what_if(solved), baseline)
    roles = {(sheet.name, *at): cell.role for sheet in book.sheets for at, cell in sheet.cells.items()}
    inputs, results = _named(book, "in_", Ref), _named(book, "rec_", Ref)
    fixed = (n for n, r in inputs.items() if roles.get((r.sheet, r.row, r.column)) != "input")
    columns = {name: _named(book, f"cat_{name}_", Range) for name in KEYS}
    keys = {"instances": [c.instance for c in solved.question.rows], **row_keys(solved.question)}
    return Built(
        solved, book, {n: r.value for n, r in inputs.items()}, frozenset(fixed),
        {name: _rows(name, columns[name], keys[name]) for name in KEYS},
        {name: len(columns[name][KEYS[name]].refs) for name in KEYS}, {n: r.value for n, r in results.items()},
    )  # fmt: skip


def _named(book: Book, prefix: str, kind: type[T]) -> dict[str, T]:
    """What the book's names of a prefix stand for, by the rest of the name."""
    return {n.removeprefix(prefix): r for n, r in book.names.items() if n.startswith(prefix) and isinstance(r, kind)}


def _rows(table: str, columns: Mapping[str, Range], keys: Sequence[str]) -> dict[str, BuiltRow]:
    found: dict[str, BuiltRow] = {}
    for i, ref in enumerate(columns[KEYS[table]].refs):
        value = ref.value
        if value is None and table == "models":
            value = columns["model"].refs[i].value  # one of the reader's own has a name alone
        if value not in (None, NONE):
            cells = {column: refs.refs[i].value for column, refs in columns.items() if column != KEYS[table]}
            found[unlike(str(value), found)] = BuiltRow(keys[i] if i < len(keys) else None, cells)
    return found


@dataclass(frozen=True)
class Change:
    """One cell that does not hold what it was built with.

    `part` is inputs, or a table; `row` its row as `typed` has it, and `name` an input or a column. A row that is gone
    has the name "" and no place; one that is the reader's own has the row None and all its cells as `new`.
    """

    part: str
    row: str | None
    name: str
    old: Any
    new: Any
    label: str
    unit: str = ""
    number_format: str = ""
    place: Place | None = None
    is_fixed: bool = False  # a figure that nobody is meant to change

    @property
    def is_own(self) -> bool:
        """Whether it is a row of the reader's own."""
        return self.part != "inputs" and self.row is None


def changes(built: Built, found: Snapshot) -> Iterator[Change]:
    """Every difference, in the order of the sheets; those of fixed figures too."""
    yield from _inputs(built, found)
    for name in TABLES:
        yield from _table(built, found, name)


def _inputs(built: Built, found: Snapshot) -> Iterator[Change]:
    for name, old in built.inputs.items():
        if name in found.inputs and name not in NOT_COMPARED and not same(old, found.inputs[name]):
            cell, new = found.cells[f"in_{name}"], whole(found.inputs[name])
            yield Change("inputs", None, name, old, new, cell.label or name, cell.unit, cell.number_format, cell.place,
                         name in built.fixed)  # fmt: skip
    was, now = built.question.headline, headline(built, found)
    if was != now:
        names = [w.name for w in built.question.workloads]
        old, new = (f"{names[workload]}, tier {tier + 1}" for workload, tier in (was, now))
        place = found.cells["in_headline_workload"].place
        yield Change("inputs", None, HEADLINE, old, new, "Headline", place=place)


def headline(built: Built, found: Snapshot) -> tuple[int, int]:
    """Positions of the load in the two dropdowns; where one names no load any more, the position as built stays."""
    question = built.question
    works = [w.name.lower() for w in question.workloads]
    tiers = [found.inputs.get(f"tier_{i}") for i, _ in enumerate(question.tiers, 1)]
    workload, tier = (found.inputs.get(name) for name in NOT_COMPARED)
    at = str(workload).lower()
    row, column = question.headline
    return works.index(at) if at in works else row, tiers.index(tier) if tier in tiers else column


def _table(built: Built, found: Snapshot, name: str) -> Iterator[Change]:
    table = found.tables[name]
    order, pairs = paired(built, table)
    for called, row in built.tables[name].items():
        here = pairs[called]
        if here is not None:
            yield from _row(built, table, called, row, here)
        else:
            yield Change(name, row.key, "", row.cells if row.key is None else called, None, called)
    for key in order:
        if key not in pairs.values():
            yield Change(name, None, "", None, _filled(table[key]), key, place=first_place(table, key))


def _filled(cells: Mapping[str, Any]) -> dict[str, Any]:
    return {column: whole(value) for column, value in cells.items() if value is not None}


def paired(built: Built, table: Table) -> tuple[list[str], dict[str, str | None]]:
    """The rows as found, in the order of the sheet, and by each row's name as built its name there, None where it is
    gone.

    A row whose name was typed over still stands between the same neighbours: where as many rows of unknown names
    stand between two known ones as are missing there, they are those. All others are the reader's own.
    """
    found, names = sorted(table, key=lambda key: table.at[key]), built.tables[table.name]
    pairs: dict[str, str | None] = {name: name if name in table else None for name in names}
    places = {name: i for i, name in enumerate(found)}
    gap: list[str] = []
    after = -1
    for name in (*names, None):
        if name is not None and pairs[name] is None:
            gap.append(name)
            continue
        until = len(found) if name is None else places[name]
        between = [one for one in found[after + 1 : until] if one not in pairs]
        if name is None:  # the reader's own rows stand below
            between = between[: len(gap)]
        if len(between) == len(gap):
            pairs.update(zip(gap, between, strict=True))
        gap, after = [], until
    return found, pairs


def first_place(table: Table, key: str) -> Place:
    """Where a row begins."""
    return min((table.place(key, column) for column in table.areas), key=lambda place: place.column)


def _row(built: Built, table: Table, called: str, row: BuiltRow, here: str) -> Iterator[Change]:
    """The cells of one row; all of it in one change where it is the reader's own."""
    columns = [column for column in row.cells if column in TABLES[table.name]]
    pairs = {c: (row.cells[c], _canonical(built, table.name, c, table[here].get(c))) for c in columns}
    differ = {column: pair for column, pair in pairs.items() if not same(*pair)}
    title = table.names.get(here) or here
    if row.key is None and differ:
        place = table.place(here, next(iter(differ)))
        yield Change(table.name, None, "", row.cells, _filled(table[here]), title, place=place)
    elif row.key is not None:
        for column, (old, new) in differ.items():
            label = f"{called if table.name == 'instances' else title}, {table.heads.get(column) or column}"
            yield Change(table.name, row.key, column, old, whole(new), label, "", table.formats.get(column, ""),
                         table.place(here, column))  # fmt: skip


def _canonical(built: Built, table: str, column: str, value: Any) -> Any:
    """A name as the catalogs spell it: a spreadsheet's look-up does not tell capital letters apart."""
    if not isinstance(value, str):
        return value
    if TABLES[table][column].what == "dtype":
        return DTYPE_ALIASES.get(value.strip().lower(), value.strip().lower())
    if column == "instance_gpu":
        return next((g.id for g in built.question.gpus if g.id.lower() == value.lower()), value)
    return value


def same(old: Any, new: Any) -> bool:
    """Whether a cell still holds what it was built with; programs keep 15 digits of a number."""
    if isinstance(old, float) and math.isnan(old):
        old = None
    if is_number(old) and is_number(new):
        return math.isclose(old, new, rel_tol=1e-12, abs_tol=0.0)
    if isinstance(old, datetime.datetime):
        old = old.date()
    return bool(old == new) or (old in (None, "") and new in (None, ""))


def whole(value: Any) -> Any:
    """A number without a fraction as an int: spreadsheets keep floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
