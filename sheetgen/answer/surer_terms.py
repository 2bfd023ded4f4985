"""Commitments that are as sure as the answer, where the cheapest of their class is less sure."""

from __future__ import annotations

from sheetgen.answer.answer_record import RentalRecord
from sheetgen.answer.confidences import at_z, is_below, least_level
from sheetgen.answer.pay_less import MONTHS
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import on_gpus_of_classes, rented_in
from sheetgen.sizing.certainty import confidence_z


def terms_as_sure(solved: Solution) -> list[dict[str, RentalRecord]]:
    """By load, for each class that commits for months and whose own answer is less sure than the load's, the answer in
    it that is as sure."""
    terms: list[dict[str, RentalRecord]] = [{} for _ in solved.question.loads]
    by_level: dict[float, set[tuple[int, str]]] = {}
    for row, choice in enumerate(solved.choices):
        for purchase in MONTHS:
            rental = solved.by_purchase[purchase][row]
            if rental and choice.offer is not None and is_below(rental.chance or 0, choice.chance):
                by_level.setdefault(least_level(choice.chance), set()).add((row, purchase))
    if not by_level:
        return terms
    answered = on_gpus_of_classes(solved)
    for level, wanted in by_level.items():
        grid = at_z(answered.grid, float(confidence_z(level)))
        rented = {purchase: rented_in(answered, grid, purchase) for _, purchase in wanted}
        for row, purchase in sorted(wanted):
            surer = rented[purchase][row]
            if surer and not is_below(surer.chance or 0, solved.choices[row].chance):
                terms[row][purchase] = surer
    return terms
