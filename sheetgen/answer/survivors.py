"""The cheapest answer that still serves its load within the targets after the loss of a machine."""

from __future__ import annotations

from dataclasses import replace

from sheetgen.answer.answer_record import SureRental
from sheetgen.answer.picks import picks_of
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import sure_rentals
from sheetgen.program.sheet_program import AGAIN


def survivors(solved: Solution) -> dict[int, SureRental]:
    """By the row of a load that something holds, the rental that serves it after a machine has failed, chosen by the
    answer's rule at the answer's confidence. Empty where the answer survives a loss already."""
    if solved.question.settings.survive:
        return {}
    after = replace(solved, grid=solved.grid.read_again(AGAIN.again("with_loss"), AGAIN))
    of_loads = enumerate(zip(solved.question.loads, picks_of(after.grid), strict=True))
    picks = {row: pair[0] for row, (load, pair) in of_loads if pair and not load.over_limit}
    return sure_rentals(after, picks)
