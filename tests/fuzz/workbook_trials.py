"""A workbook to try edits on: what Python says of them, what a spreadsheet says, and the fewest edits that differ."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import books
from agreement import Compared, compare
from answers import book_for
from asked_of_edits import asked
from option_values import OptionValue
from random_edits_of import Dealer, Edits, trial
from recalculation import edit, values_after
from workbook_cells import CellValue, Place, Values, formulas
from yellow_cells import Written, Yellow, as_cell, written

from sheetgen.answer.confidences import paces_at_even_chance
from sheetgen.answer.levers import EveryLever, levers_of_sheet
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.book.change_log import values_as_built
from sheetgen.book.decision_choices import Choices, decision
from sheetgen.book.sheets import Book, Ref, column_name
from sheetgen.errors import SheetgenError
from sheetgen.formula import same_money
from sheetgen.question.sheet_question import TARGETS, ask
from sheetgen.writers.xlsx import write_xlsx

MOST_TRIES = 60  # of shrinking: a trial takes seconds
Fails = Callable[[Edits], str]
Recalculated = Mapping[Place, CellValue]  # by (sheet, cell) of each formula


class Refused(Exception):
    """Python does not size these edits, and says why; or the workbook has no formula for what it says of them."""


@dataclass(frozen=True)
class After:
    """Python's answer to the edited inputs."""

    solved: Solution
    written: Written
    against_solve: tuple[str, ...]  # cells of Workings that are not what `solve` says


@dataclass(frozen=True)
class Workbook:
    """A workbook that was built from `options`, and the folder for its edited copies."""

    options: Mapping[str, OptionValue]
    folder: Path

    @cached_property
    def solved(self) -> Solution:
        return solve(ask(books.catalog(), self.options))

    @cached_property
    def levers(self) -> EveryLever:
        return levers_of_sheet(self.solved)

    @cached_property
    def book(self) -> Book:
        return book_for(self.solved, self.levers, decision(self.solved))

    @cached_property
    def sheets(self) -> books.Sheets:
        return books.Sheets(self.path)

    @cached_property
    def yellow(self) -> Yellow:
        return Yellow(self.book, self.solved.question)

    @cached_property
    def path(self) -> Path:
        path = self.folder / "built.xlsx"
        path.write_bytes(write_xlsx(self.book))
        return path

    @cached_property
    def formulas(self) -> list[tuple[str, str]]:
        return [cell.place for cell in formulas(self.path)]

    def trials(self, seed: int) -> Iterator[Edits]:
        """Random edits without end, the same for the same seed."""
        rng = random.Random(seed)
        dealer = Dealer(rng, self.yellow)
        while True:
            yield trial(rng, self.yellow, dealer, books.catalog())

    def after(self, edits: Edits) -> After:
        """Python's answer to the inputs; levers and what is told of the build stay as built. Raises Refused."""
        catalog = books.catalog()
        try:
            solved = solve(ask(catalog, asked(self.options, self.yellow, edits)))
            targets = self._targets_as_built(decision(solved), edits)
        except SheetgenError as error:
            raise Refused("; ".join(error.problems)) from error
        # A workbook answers at an even chance where nothing served a context at the confidence when it was built.
        if paces_at_even_chance(solved) != paces_at_even_chance(self.solved):
            raise Refused("a context is answered at another level than as built")
        shown_in = self.solved.question.settings.currency  # in which the workbook was built
        book = book_for(solved, self.levers, targets, values_as_built(self.book), shown_in=shown_in)
        after = written(book)
        return After(solved, after, tuple(self._against_solve(solved, book, after)))

    def _targets_as_built(self, choices: Choices, edits: Edits) -> Choices:
        """Decision's choices with the targets that were typed, or that stand or follow the tokens as built."""
        built = decision(self.solved)
        typed = {name for name in TARGETS if ("inputs", f"decision_{name}") in edits}
        standing = {name: built.picked[name] for name in TARGETS if name not in typed}
        return replace(choices, picked={**choices.picked, **standing}, follows=built.follows - typed)

    def _against_solve(self, solved: Solution, book: Book, after: Written) -> Iterator[str]:
        """The workbook is held against this book; here the book is held against what it was made of."""
        values: Values = dict(after.values.items())
        for name, ref in book.names.items():
            if isinstance(ref, Ref):
                values[name] = after.values.get((ref.sheet, f"{column_name(ref.column)}{ref.row + 1}"))
        yield from books.differences(values, self.sheets, solved)[1]

    def typed(self, edits: Edits) -> dict[Place, CellValue]:
        """By (sheet, cell), what is typed."""
        return {self.yellow.spots[key].place: as_cell(value) for key, value in edits.items()}

    def edited(self, edits: Edits, name: str = "edited", path: Path | None = None) -> Path:
        """A copy of the workbook with these cells typed into."""
        return edit(path or self.path, self.folder / f"{name}.xlsx", self.typed(edits))

    def recalculated(self, edits: Edits, path: Path | None = None) -> Recalculated:
        """The same, calculated by formualizer: the cells that hold a formula still. A target has one until it is typed
        over."""
        typed = self.typed(edits)
        by_place = values_after(path or self.path, typed)
        return {place: by_place[place] for place in self.formulas if place not in typed}

    def compared(self, after: After, recalculated: Recalculated) -> Compared:
        return compare(after.written, recalculated)

    def fault(self, edits: Edits, recalculate: Callable[[Edits], Recalculated] | None = None) -> str:
        """The fault after these edits; "" where there is none, or Python refuses them."""
        try:
            after = self.after(edits)
            result = self.compared(after, (recalculate or self.recalculated)(edits))
        except Refused:
            return ""
        except Exception as error:  # a crash of either side is a fault like any other
            return f"{type(error).__name__}: {error}"
        return "\n".join(after.against_solve[:12]) or (str(result) if result.wrong else "")

    def told(self, edits: Edits, recalculate: Callable[[Edits], Recalculated] | None = None) -> str:
        """The fewest of these edits that still fail, and how."""
        few = shrunk(edits, lambda some: self.fault(some, recalculate))
        lines = "\n".join(f"  {self.yellow.spots[key]}: {value!r}" for key, value in few.items())
        return f"{len(few)} of {len(edits)} edits fail:\n{lines}\n{self.fault(few, recalculate)}"


def shrunk(edits: Edits, fails: Fails) -> Edits:
    """The fewest of these edits that still fail: halves are dropped first, single edits last."""
    size, left = max(1, len(edits) // 2), itertools.count(MOST_TRIES, -1)
    while True:
        smaller = next((some for some in _without(edits, size) if next(left) > 0 and fails(some)), None)
        if smaller is not None:
            edits = smaller
            size = min(size, max(1, len(edits) // 2))
        elif size == 1:
            return edits
        else:
            size = max(1, size // 2)


def _without(edits: Edits, size: int) -> Iterator[Edits]:
    keys = list(edits)
    if len(keys) > 1:
        for start in range(0, len(keys), size):
            dropped = keys[start : start + size]
            yield {key: value for key, value in edits.items() if key not in dropped}


def reached(solved: Solution) -> Iterator[str]:
    """The kinds of answer in a trial: the verdicts, and whether the cheapest stands at more than one place."""
    for row, choice in enumerate(solved.choices):
        if choice.offer is None:
            yield "over limit" if solved.question.loads[row].over_limit else "none fits"
            continue
        yield "fits"
        tied = same_money(solved.costs["monthly_usd"][row], choice.monthly_usd)
        if len(set(solved.costs["n_instances"][row][tied].tolist())) > 1:
            yield "ties"


def n_edits(edits: Edits) -> int:
    """How many things were edited: cells, a spare row as one."""
    return len({key[:2] if key[0].startswith("own_") else key for key in edits})
