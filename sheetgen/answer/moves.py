"""Effects of other inputs on a headline's month: half and twice its people, half and twice its context, speed, and list
prices; people and context together, and all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from sheetgen.answer.answer_record import CellRecord, MoveRecord
from sheetgen.answer.levers.changes import with_context
from sheetgen.answer.levers.lever import Change, Loads
from sheetgen.answer.solution import Solution
from sheetgen.question.sheet_question import with_stated
from sheetgen.units import EVEN, SURE

LOAD_AND_CONTEXT, EVERYTHING = "load_and_context", "everything"  # moves of several inputs together
LOAD_FACTORS = ("move_load_low_factor", "move_load_high_factor")  # judgements, in assumptions.yaml
PRICE_FACTORS = ("move_price_low_factor", "move_price_high_factor")


def moves_of(solved: Solution, cell: CellRecord, loads: Loads) -> tuple[MoveRecord, ...]:
    """The inputs that move a cell's month, each with two values and the month's cost at them; None where nothing holds
    the load then."""
    if cell.chosen is None:
        return ()
    return tuple(_moves(solved, cell, loads))


def _moves(solved: Solution, cell: CellRecord, loads: Loads) -> Iterator[MoveRecord]:
    question, row = solved.question, cell.row
    load, workload = question.loads[row], question.workload_of(row)
    assumption = question.reference.assumption
    low, high = (assumption(name) for name in LOAD_FACTORS)
    if load.requests_per_second:
        few, many = low * load.requests_per_second, high * load.requests_per_second
    else:
        few, many = (max(1, math.ceil(factor * load.concurrent_requests)) for factor in (low, high))
    longest = question.model_of(row).model.max_context_tokens or 0
    contexts = [min(longest, int(factor * workload.context_tokens)) for factor in (low, high)]
    shapes = [
        with_stated((with_context(workload, context),), question.stated, question.settings, question.reference)[0]
        for context in contexts
    ]
    changes = [Change(row, requests=few), Change(row, requests=many)]
    changes += [Change(row, workload=shape) for shape in shapes]
    answers = loads.ask(changes)
    fewer, more, shorter, longer = (answer.monthly_usd if answer else None for answer in answers)
    together = [
        Change(row, requests=requests, workload=shape) for requests, shape in zip((few, many), shapes, strict=True)
    ]
    name = "requests_per_second" if load.requests_per_second else "concurrent_requests"
    yield MoveRecord(name, few, many, fewer, more)
    yield MoveRecord("context_tokens", contexts[0], contexts[1], shorter, longer)
    levels = [level for level in cell.by_confidence if level is not None]
    if len(levels) > 1:
        yield MoveRecord(
            "confidence", levels[0].confidence, levels[-1].confidence, levels[0].monthly_usd, levels[-1].monthly_usd
        )
    cheap, dear = (assumption(name) for name in PRICE_FACTORS)
    yield MoveRecord("price_factor", cheap, dear, cheap * cell.answer.monthly_usd, dear * cell.answer.monthly_usd)
    both = [answer.monthly_usd if answer else None for answer in loads.ask(together)]
    yield MoveRecord(LOAD_AND_CONTEXT, low, high, *both)
    surely = [
        replace(change, settings=replace(question.settings, confidence=level))
        for change, level in zip(together, (EVEN, SURE), strict=True)
    ]
    every = [
        factor * answer.monthly_usd if answer and not answer.is_even_chance else None
        for factor, answer in zip((cheap, dear), loads.ask(surely), strict=True)
    ]
    yield MoveRecord(EVERYTHING, low, high, *every)
