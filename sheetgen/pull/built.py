"""A sheet built anew: its answer, its book, and what its yellow cells hold by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.load import Catalog
from sheetgen.recommend import Solution, solve
from sheetgen.scenario.question import Question, ask
from sheetgen.sheet.book import build_book
from sheetgen.sheet.build_page import build_page
from sheetgen.sheet.model import NONE, Book, Range, Ref
from sheetgen.sheet.what_if import what_if
from sheetgen.units import DTYPES
from sheetgen.workbook.read import KEYS, unlike
from sheetgen.writers.formats import uncollected


@dataclass(frozen=True)
class BuiltRow:
    """A filled row of a table: what it is called, the key under which `typed` has it, and its cells by column.

    `key` is None for a row of the reader's own.
    """

    name: str
    key: str | None
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class Built:
    """A sheet as `build` makes it of some options."""

    solved: Solution
    book: Book
    inputs: Mapping[str, Any]
    fixed: frozenset[str]  # inputs that no reader is meant to change
    tables: Mapping[str, Sequence[BuiltRow]]
    n_rows: Mapping[str, int]  # of each table, the blank ones too
    results: Mapping[str, Any]

    @property
    def question(self) -> Question:
        return self.solved.question


@uncollected()
def build_anew(catalog: Catalog, options: Mapping[str, Any], baseline: Mapping[str, Any] | None = None) -> Built:
    """The sheet of these options, which marks what differs from `baseline`.

    Raises ScenarioError or CatalogError where the question cannot be put.
    """
    solved = solve(ask(catalog, options))
    no_levers = ((),) * len(solved.question.loads)  # they stand on sheets of their own, and decide nothing
    book = build_book(solved, build_page(solved, no_levers), no_levers, what_if(solved), baseline)
    roles = {(sheet.name, *at): cell.role for sheet in book.sheets for at, cell in sheet.cells.items()}
    named = {n: r for n, r in book.names.items() if isinstance(r, Ref)}
    inputs = {n.removeprefix("in_"): r for n, r in named.items() if n.startswith("in_")}
    fixed = (n for n, r in inputs.items() if roles.get((r.sheet, r.row, r.column)) != "input")
    columns = {name: dict(_columns(book, name)) for name in KEYS}
    return Built(
        solved,
        book,
        {n: r.value for n, r in inputs.items()},
        frozenset(fixed),
        {name: tuple(_rows(solved.question, name, columns[name])) for name in KEYS},
        {name: len(columns[name][KEYS[name]].refs) for name in KEYS},
        {n.removeprefix("rec_"): r.value for n, r in named.items() if n.startswith("rec_")},
    )


def _columns(book: Book, table: str) -> Iterator[tuple[str, Range]]:
    prefix = f"cat_{table}_"
    for name, refs in book.names.items():
        if name.startswith(prefix) and isinstance(refs, Range):
            yield name.removeprefix(prefix), refs


def _rows(question: Question, table: str, columns: Mapping[str, Range]) -> Iterator[BuiltRow]:
    own_key = KEYS[table]
    keys = _keys(question, table)
    taken: dict[str, bool] = {}
    for i, ref in enumerate(columns[own_key].refs):
        value = ref.value
        if value is None and table == "models":
            value = columns["model"].refs[i].value  # one of the reader's own has a name alone
        if value not in (None, NONE):
            name = unlike(str(value), taken)
            taken[name] = True
            cells = {column: refs.refs[i].value for column, refs in columns.items() if column != own_key}
            yield BuiltRow(name, keys[i] if i < len(keys) else None, cells)


def _keys(question: Question, table: str) -> Sequence[str]:
    """The keys of a table's rows in `typed`, in the order of the rows."""
    return {
        "models": [m.model.id for m in question.models],
        "gpus": [g.id for g in question.gpus],
        "instances": [c.instance for c in question.rows],
        "precisions": list(DTYPES),
    }[table]
