"""The cheapest answer that still serves its load within the targets after the loss of a machine."""

from __future__ import annotations

from dataclasses import replace

from sheetgen.answer.answer_record import SurvivorRental
from sheetgen.answer.picks import picks_of
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import chances_of, sure_rentals
from sheetgen.program.sheet_program import AGAIN


def survivors(solved: Solution) -> dict[int, SurvivorRental]:
    """By the row of a load that something holds, the rental that serves it after a machine has failed, chosen by the
    answer's rule at the answer's confidence. Empty where the answer survives a loss already."""
    if solved.question.settings.survive:
        return {}
    after = replace(solved, grid=solved.grid.read_again(AGAIN.again("with_loss"), AGAIN))
    before = replace(after, grid=after.grid.again({"survive": 0.0}))  # the same machines, none of them lost
    of_loads = enumerate(zip(solved.question.loads, picks_of(after.grid), strict=True))
    picks = {row: pair[0] for row, (load, pair) in of_loads if pair and not load.over_limit}
    all_running = chances_of(before, [*picks], [best.offer for best in picks.values()])
    rentals = sure_rentals(after, picks)
    return {
        row: SurvivorRental(**vars(rental), chance_before=chance)
        for (row, rental), chance in zip(rentals.items(), all_running, strict=True)
    }
