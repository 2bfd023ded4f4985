"""The next smaller model of a series, at the load of the model that is to be approved, where the sheet has none that
costs less. The quality of models is not compared."""

from __future__ import annotations

from dataclasses import replace

from sheetgen.answer.answer_record import CellRecord, Record, SmallerModel
from sheetgen.answer.confidences import is_fallback
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import chosen_of
from sheetgen.errors import SheetgenError
from sheetgen.question.sheet_question import ask


def with_smaller_model(record: Record, solved: Solution) -> Record:
    """The record of a sheet with the next smaller model beside the one that is to be approved."""
    asked = solved.question.ask
    if asked is None:
        return record
    row = record.headline[asked]
    cells = [
        replace(cell, smaller_model=_smaller(record, solved, cell)) if cell.row == row else cell
        for cell in record.cells
    ]
    return replace(record, cells=tuple(cells))


def _smaller(record: Record, solved: Solution, cell: CellRecord) -> SmallerModel | None:
    """None too where the smaller model cannot be asked the same, or nothing serves it at the confidence."""
    question, chosen = solved.question, [other.chosen for other in record.headline_cells]
    if cell.chosen is None or any(other and other.monthly_usd < cell.answer.monthly_usd for other in chosen):
        return None
    catalog = question.reference.catalog
    smaller = catalog.next_smaller(question.model_of(cell.row).model)
    if smaller is None:
        return None
    try:
        alone = ask(catalog, {**question.options, "models": smaller.id, "ask": None})
    except SheetgenError:  # such as a draft of the model that is to be approved
        return None
    loads = [load for load in alone.loads if (load.workload, load.tier) == alone.headline and not load.over_limit]
    if not loads:
        return None
    answered = chosen_of(replace(alone, loads=tuple(loads)))
    choice = answered.choices[0]
    if choice.offer is None or is_fallback(answered, 0):
        return None
    instance = answered.candidate(choice.offer).instance
    return SmallerModel(smaller.id, smaller.name, instance, choice.n_instances, choice.monthly_usd, choice.chance)
