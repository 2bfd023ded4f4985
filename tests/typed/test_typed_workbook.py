"""`solve` with typed values says what the workbook says with those cells typed into it and recalculated."""

from __future__ import annotations

import random
from pathlib import Path

import books
import money_cells
import pytest
from amounts import IN_LONG, amount
from books import Sheets
from cells_of import LEAN, Places
from random_edits import random_edits
from recalculation import values_after
from workbook_cells import ErrorValue

from sheetgen.answer.confidences import is_fallback
from sheetgen.answer.solve import solve
from sheetgen.question.sheet_question import Question, ask

N_RANDOM = amount(2, 40)  # in the gate tests/fuzz draws more of them, of the same cells
MOST_RANDOM = 10 * N_RANDOM  # until every verdict was reached
VERDICTS = {"fits", "none fits", "over limit"}


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Question]:
    return books.build(tmp_path_factory.mktemp("typed"), "tiny", LEAN, with_decision=IN_LONG)


def test_random_edits_give_what_solve_gives_of_the_typed_values(book: tuple[Path, Question]) -> None:
    path, _ = book
    sheets, places, n_cells, n_compared, words = Sheets(path), Places(path), 0, 0, set()
    for seed in range(MOST_RANDOM):
        if n_compared >= N_RANDOM and (words == VERDICTS or not IN_LONG):
            break
        edits = random_edits(random.Random(seed), places)
        solved = solve(ask(books.catalog(), {**LEAN, "typed": edits.overrides}))
        if any(is_fallback(solved, row) for row in range(len(solved.question.loads))):
            continue  # none is as built, and whether a load is answered at an even chance is no live cell
        values, n_compared = values_after(path, edits.cells), n_compared + 1
        errors = [key for key, value in values.items() if isinstance(value, ErrorValue)]
        assert not errors, f"seed {seed}: errors in {errors[:5]} after {edits.overrides}"
        for compare in (books.differences, money_cells.differences):
            n, wrong = compare(values, sheets, solved)
            assert not wrong, f"seed {seed}: {len(wrong)} of {n} differ after {edits.overrides}\n" + "\n".join(
                wrong[:10]
            )
            n_cells += n
        words |= {load["Fit"] for load in books.expected(solved)}
    assert words == VERDICTS or not IN_LONG, "the edits do not reach every verdict"
    print(f"{n_compared} random edits: {n_cells} cells against solve")
