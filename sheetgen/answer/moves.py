"""Effects of other inputs on a headline's month: half and twice its people, half and twice its context, speed, and list
prices, unless the price is the user's own; people and context together, and all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from sheetgen.answer.answer_record import CellRecord, MoveRecord
from sheetgen.answer.levers.changes import at_context
from sheetgen.answer.levers.lever import Change, Loads, Rented
from sheetgen.answer.solution import Solution
from sheetgen.units import EVEN, SURE

LOAD_AND_CONTEXT, EVERYTHING = "load_and_context", "everything"  # moves of several inputs together
LOAD_FACTORS = ("move_load_low_factor", "move_load_high_factor")  # judgements, in assumptions.yaml
PRICE_FACTORS = ("move_price_low_factor", "move_price_high_factor")


class _Moved(NamedTuple):
    """The headline of a cell with other inputs, low and high: requests at once or a second, contexts, and both."""

    cell: CellRecord
    requests: tuple[float, float]
    contexts: tuple[int, int]
    alone: list[Change]
    together: list[Change]
    surely: list[Change]


def moves_of(solved: Solution, cells: Sequence[CellRecord], loads: Loads) -> dict[int, tuple[MoveRecord, ...]]:
    """By the row of each cell that something holds, the inputs that move its month, each with two values and the
    month's cost at them; None where nothing holds the load then."""
    moved = [_moved(solved, cell) for cell in cells if cell.chosen is not None]
    changes = (change for load in moved for change in (*load.alone, *load.together, *load.surely))
    answers = iter(loads.ask([*changes]))
    return {load.cell.row: tuple(_moves(solved, load, answers)) for load in moved}


def _moved(solved: Solution, cell: CellRecord) -> _Moved:
    question, row = solved.question, cell.row
    load, workload = question.loads[row], question.workload_of(row)
    low, high = (question.reference.assumption(name) for name in LOAD_FACTORS)
    if load.requests_per_second:
        few, many = low * load.requests_per_second, high * load.requests_per_second
    else:
        few, many = (max(1, math.ceil(factor * load.concurrent_requests)) for factor in (low, high))
    longest = question.model_of(row).model.max_context_tokens or 0
    short, long = (min(longest, int(factor * workload.context_tokens)) for factor in (low, high))
    shapes = [at_context(question, workload, context) for context in (short, long)]
    together = [
        Change(row, requests=requests, workload=shape) for requests, shape in zip((few, many), shapes, strict=True)
    ]
    surely = [
        replace(change, settings=replace(question.settings, confidence=level))
        for change, level in zip(together, (EVEN, SURE), strict=True)
    ]
    alone = [Change(row, requests=few), Change(row, requests=many), *(Change(row, workload=shape) for shape in shapes)]
    return _Moved(cell, (few, many), (short, long), alone, together, surely)


def _moves(solved: Solution, moved: _Moved, answers: Iterator[Rented | None]) -> Iterator[MoveRecord]:
    """answers: of the changes in their order."""
    cell, assumption = moved.cell, solved.question.reference.assumption
    months = [answer.monthly_usd if answer else None for answer in islice(answers, len(moved.alone))]
    is_rate = bool(solved.question.loads[cell.row].requests_per_second)
    yield MoveRecord("requests_per_second" if is_rate else "concurrent_requests", *moved.requests, *months[:2])
    yield MoveRecord("context_tokens", *moved.contexts, *months[2:])
    levels = [level for level in cell.by_confidence if level is not None]
    if len(levels) > 1:
        yield MoveRecord(
            "confidence", levels[0].confidence, levels[-1].confidence, levels[0].monthly_usd, levels[-1].monthly_usd
        )
    cheap, dear = (assumption(name) for name in PRICE_FACTORS)
    if solved.question.instances[cell.answer.instance].brought:  # a contract's price moves with nothing
        cheap = dear = 1.0
    else:
        yield MoveRecord("price_factor", cheap, dear, cheap * cell.answer.monthly_usd, dear * cell.answer.monthly_usd)
    low, high = (assumption(name) for name in LOAD_FACTORS)
    both = [answer.monthly_usd if answer else None for answer in islice(answers, len(moved.together))]
    yield MoveRecord(LOAD_AND_CONTEXT, low, high, *both)
    every = [
        factor * answer.monthly_usd if answer and not answer.is_even_chance else None
        for factor, answer in zip((cheap, dear), islice(answers, len(moved.surely)), strict=True)
    ]
    yield MoveRecord(EVERYTHING, low, high, *every)
