"""The longest context for all users of the What-if page, found by halving: a line a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.formula import formula, largest, round_up, where
from sheetgen.sheet.book.what_if_words import all_fit
from sheetgen.sheet.book.words import prompt_tokens
from sheetgen.sheet.model import Cell, Ref, Sheet, Source
from sheetgen.sizing import admission
from sheetgen.units import PLAIN, WHOLE

STEPS = 25  # halvings: 2^24 tokens is beyond every model's context
HEADS = ("Fits up to", "Not beyond", "Tried", "Prompt", "Charged", "In windows", "Blocks", "Charged, alone",
         "In windows, alone", "Blocks, alone", "Fits (0 or 1)", "Fits up to then", "Not beyond then")  # fmt: skip


@formula("Tried")
def middle_tokens(low: Any, high: Any, halves: Any) -> Any:
    """The context half-way between what fits and what may not.

    Source: bisection.
    """
    return round_up((low + high) / halves)


@formula("Fits up to")
def next_low(fits: Any, tried: Any, low: Any) -> Any:
    """The longest context that is known to fit.

    Source: bisection.
    """
    return where(fits == 1, tried, low)


@formula("Not beyond")
def next_high(fits: Any, tried: Any, low: Any, high: Any) -> Any:
    """The longest context that may fit.

    Source: bisection.
    """
    return where(fits == 1, high, largest(tried - 1, low))


@formula("Charged, alone")
def at_least_one(tried: Any) -> Any:
    """A request of the whole length, 1 token at least.

    Source: the engine starts only where one request of its longest context fits.
    """
    return largest(tried, 1)


def add_longest_context(
    sheet: Sheet, row: int, env: Mapping[str, Source], answer_tokens: Ref, zero: Source, limit: Source
) -> Ref:
    """The steps below `row`; gives the last one's cell. `env` has what the charge of a sequence reads."""
    for column, head in enumerate(HEADS, 1):
        sheet.text(row, column, head, "head")
    sheet.text(row, 0, "Longest context for all users, by halving", "section")
    sheet.text(row, len(HEADS) + 1, "Halves", "head")
    halves = sheet.put(row + 1, len(HEADS) + 1, Cell(2, "fixed", PLAIN))
    low: Source = zero
    high: Source = limit
    for step in range(STEPS):
        r = row + 1 + step
        a = sheet.formula(r, 1, low.value, low.expr(sheet.name), WHOLE)
        b = sheet.formula(r, 2, high.value, high.expr(sheet.name), WHOLE)
        tried = sheet.compute(r, 3, middle_tokens, {"low": a, "high": b, "halves": halves})
        prompt = sheet.compute(r, 4, prompt_tokens, {"context_tokens": tried, "answer_tokens": answer_tokens})
        asked = {**env, "context_tokens": tried, "max_model_len": tried, "input_tokens": prompt}
        charged = sheet.compute(r, 5, admission.charged_tokens, asked)
        asked |= {"charged_tokens": charged}
        asked |= {"windowed_tokens": sheet.compute(r, 6, admission.windowed_tokens, asked)}
        blocks = sheet.compute(r, 7, admission.kv_blocks_per_sequence, asked)
        alone = {**env, "charged_tokens": sheet.compute(r, 8, at_least_one, {"tried": tried})}
        alone |= {"windowed_tokens": sheet.compute(r, 9, admission.windowed_tokens, alone)}
        alone_blocks = sheet.compute(r, 10, admission.kv_blocks_per_sequence, alone)
        fits = sheet.compute(r, 11, all_fit, {**env, "charged": blocks, "alone": alone_blocks})
        state = {"fits": fits, "tried": tried, "low": a, "high": b}
        low = sheet.compute(r, 12, next_low, state)
        high = sheet.compute(r, 13, next_high, state)
    assert isinstance(low, Ref)
    return low
