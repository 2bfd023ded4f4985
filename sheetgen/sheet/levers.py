"""What one change buys: the headline question asked again with FP8 weights, FP8 KV cache, and both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from sheetgen.recommend import Choice, Solution, solve
from sheetgen.sheet.fit import headline_rows
from sheetgen.sheet.one_page import Lever
from sheetgen.sheet.wording import NONE, change, money, rent
from sheetgen.units import DTYPES

FP8 = "fp8"


def levers(solved: Solution) -> tuple[Lever, ...]:
    """Every change of every model that lowers a precision: the best one of each model, then the others, both
    with those first that save most dollars."""
    found: list[tuple[bool, float, Lever]] = []
    for row in headline_rows(solved):
        mine = sorted(_of_model(solved, row), key=lambda pair: -pair[0])
        found += [(i > 0, -saved, lever) for i, (saved, lever) in enumerate(mine)]
    found.sort(key=lambda one: one[:2])
    return tuple(lever for _, _, lever in found)


def _of_model(solved: Solution, row: int) -> Iterator[tuple[float, Lever]]:
    """Dollars a month saved, and the line."""
    question, before = solved.question, solved.choices[row]
    cell = question.cells[row]
    if cell.over_limit:
        return
    model = question.models[cell.model]
    weights = DTYPES[model.weight_dtype].linear_bytes > DTYPES[FP8].linear_bytes
    kv = DTYPES[model.kv_cache_dtype].kv_bytes > DTYPES[FP8].kv_bytes
    changes = [
        *([("FP8 weights", FP8, model.kv_cache_dtype)] if weights else []),
        *([("FP8 KV cache", model.weight_dtype, FP8)] if kv else []),
        *([("FP8 weights and KV cache", FP8, FP8)] if weights and kv else []),
    ]
    for words, weight_dtype, kv_dtype in changes:
        other = replace(model, weight_dtype=weight_dtype, kv_cache_dtype=kv_dtype)
        asked = replace(question, models=(other,), cells=(replace(cell, model=0),))
        after = solve(asked)
        choice = after.choices[0]
        if choice.slot is None:
            saved, hired, monthly = -math.inf, choice.verdict, NONE
        else:
            saved = before.monthly_usd - choice.monthly_usd if before.slot is not None else math.inf
            hired = rent(choice.n_instances, after.candidate(choice.slot))
            monthly = money(choice.monthly_usd)
        yield saved, Lever(model.model.name, words, hired, monthly, _saving(before, choice))


def _saving(before: Choice, after: Choice) -> str:
    if after.slot is None:
        return "no change" if before.slot is None else "does not fit"
    return "now fits" if before.slot is None else change(before.monthly_usd, after.monthly_usd)
