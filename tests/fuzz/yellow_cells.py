"""Every yellow cell of a workbook: where it stands, what it holds, and under which key Python is told of it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from workbook_cells import CellValue, Place

from sheetgen.book.sheets import EXCEL_DAY_ZERO, Book, Range, Ref, Sheet, Validation, column_name, plain
from sheetgen.question.sheet_question import Question
from sheetgen.units import DTYPES

Key = tuple[Any, ...]  # ("inputs", name) or (table, row, column); a spare row is a number
MODEL_NAME = "model"  # the column of a spare model's name has no defined name: Decision alone reads it


@dataclass(frozen=True)
class Spot:
    """One yellow cell."""

    key: Key
    place: Place
    old: CellValue
    validation: Validation | None

    @property
    def kind(self) -> Key:
        """The kind of the cells of one column."""
        return self.key if self.key[0] == "inputs" else (self.key[0], self.key[2])

    def __str__(self) -> str:
        where = "!".join(self.place)
        return f"in_{self.key[1]} ({where})" if len(self.key) == 2 else f"{' '.join(map(str, self.key))} ({where})"


@dataclass(frozen=True)
class Yellow:
    """The yellow cells of a workbook as built."""

    book: Book
    question: Question

    @cached_property
    def sheets(self) -> dict[str, Sheet]:
        return {sheet.name: sheet for sheet in self.book.sheets}

    @cached_property
    def spots(self) -> dict[Key, Spot]:
        return {spot.key: spot for spot in (*self._inputs(), *self._tables(), *self._model_names())}

    @cached_property
    def inputs(self) -> dict[str, CellValue]:
        """The values of the named inputs."""
        return {key[1]: spot.old for key, spot in self.spots.items() if key[0] == "inputs"}

    def lists(self, name: str) -> list[CellValue]:
        """The entries of a dropdown."""
        refs = self.book.names[name]
        assert isinstance(refs, Range)
        return [ref.value for ref in refs.refs]

    def rows(self, table: str) -> list[str | int]:
        """The keys of a table's rows in their order: those of the catalog, or the numbers of the spare rows."""
        return list(dict.fromkeys(key[1] for key in self.spots if key[0] == table))

    def unnamed(self) -> Iterator[Place]:
        """Yellow cells that no key stands for; the lines of the Change log are nobody's input."""
        places = {spot.place for spot in self.spots.values()}
        for sheet in self.book.sheets:
            for (row, column), cell in sheet.cells.items():
                place = (sheet.name, f"{column_name(column)}{row + 1}")
                if cell.role == "input" and place not in places and sheet.name != "Change log":
                    yield place

    def _spot(self, key: Key, ref: Ref) -> Iterator[Spot]:
        cell = self.sheets[ref.sheet].cells[ref.row, ref.column]
        if cell.role == "input":
            yield Spot(key, (ref.sheet, f"{column_name(ref.column)}{ref.row + 1}"), cell.value, cell.validation)

    def _inputs(self) -> Iterator[Spot]:
        for name, ref in self.book.names.items():
            if name.startswith("in_") and isinstance(ref, Ref):
                yield from self._spot(("inputs", name.removeprefix("in_")), ref)

    def _tables(self) -> Iterator[Spot]:
        question = self.question
        rows = {
            "models": [m.model.id for m in question.models],
            "gpus": [g.id for g in question.gpus],
            "instances": [c.instance for c in question.rows],
            "precisions": list(DTYPES),
        }
        for table, keys in rows.items():
            stem = f"cat_{table}_"
            for name, refs in self.book.names.items():
                column = name.removeprefix(stem)
                if not name.startswith(stem) or not isinstance(refs, Range):
                    continue
                for i, ref in enumerate(refs.refs):
                    if i < len(keys):
                        yield from self._spot((table, keys[i], column), ref)
                    else:
                        yield from self._spot((f"own_{table}", i - len(keys), column), ref)

    def _model_names(self) -> Iterator[Spot]:
        ids = self.book.names["cat_models_model_id"]
        assert isinstance(ids, Range)
        for i, ref in enumerate(ids.refs[len(self.question.models) :]):
            yield from self._spot(("own_models", i, MODEL_NAME), Ref(ref.sheet, ref.row, ref.column - 1, None))


def as_cell(value: CellValue) -> CellValue:
    """A value as it is typed into a cell: a date is its number of days."""
    if isinstance(value, datetime.date):
        return (value - EXCEL_DAY_ZERO).days
    return value


def as_number_or_text(value: CellValue) -> CellValue:
    """A cell of a book as a file's reader gives it: every number a float."""
    value = plain(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


class Written(NamedTuple):
    """The values of a book's cells, and the formulas; of a row that shares one, the text as the first cell has it."""

    values: dict[Place, CellValue]
    formulas: dict[Place, str]


def written(book: Book) -> Written:
    """Every cell of a book."""
    values: dict[Place, CellValue] = {}
    formulas: dict[Place, str] = {}
    for sheet in book.sheets:
        for (row, column), cell in sheet.cells.items():
            place = (sheet.name, f"{column_name(column)}{row + 1}")
            values[place] = as_number_or_text(cell.value)
            if cell.formula is not None:
                formulas[place] = cell.formula.text
        for row_cells in sheet.rows:
            for i, value in enumerate(row_cells.values.tolist()):
                place = (sheet.name, f"{column_name(row_cells.left + i)}{row_cells.row + 1}")
                values[place] = as_number_or_text(value)
                if row_cells.formula is not None:
                    formulas[place] = row_cells.formula.text
    return Written(values, formulas)
