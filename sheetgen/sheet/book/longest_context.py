"""The longest context for all users of the What-if page, found by halving: a line a step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
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
    env = _beside(sheet, row, len(HEADS) + 2, env)
    low: Source = zero
    high: Source = limit
    put = partial(sheet.compute, lock="column")
    for step in range(STEPS):
        r = row + 1 + step
        a = sheet.formula(r, 1, low.value, low.expr(sheet.name), WHOLE, lock="column")
        b = sheet.formula(r, 2, high.value, high.expr(sheet.name), WHOLE, lock="column")
        tried = put(r, 3, middle_tokens, {"low": a, "high": b, "halves": halves})
        prompt = put(r, 4, prompt_tokens, {"context_tokens": tried, "answer_tokens": answer_tokens})
        asked = {**env, "context_tokens": tried, "max_model_len": tried, "input_tokens": prompt}
        charged = put(r, 5, admission.charged_tokens, asked)
        asked |= {"charged_tokens": charged}
        asked |= {"windowed_tokens": put(r, 6, admission.windowed_tokens, asked)}
        blocks = put(r, 7, admission.kv_blocks_per_sequence, asked)
        alone = {**env, "charged_tokens": put(r, 8, at_least_one, {"tried": tried})}
        alone |= {"windowed_tokens": put(r, 9, admission.windowed_tokens, alone)}
        alone_blocks = put(r, 10, admission.kv_blocks_per_sequence, alone)
        fits = put(r, 11, all_fit, {**env, "charged": blocks, "alone": alone_blocks})
        state = {"fits": fits, "tried": tried, "low": a, "high": b}
        low = put(r, 12, next_low, state)
        high = put(r, 13, next_high, state)
    assert isinstance(low, Ref)
    return low


def _beside(sheet: Sheet, row: int, column: int, env: Mapping[str, Source]) -> dict[str, Source]:
    """`env` with what has no name of its own brought into cells beside the steps: these then share their formulas."""
    read = {name for one in (admission.charged_tokens, admission.windowed_tokens, admission.kv_blocks_per_sequence,
                             all_fit) for name in one.inputs}  # fmt: skip
    apart = sorted(name for name in read & env.keys() if not getattr(env[name], "name", None))
    sheet.text(row, column, "Read by all steps", "head")
    sheet.text(row, column + 1, "", "head")
    found = dict(env)
    for r, name in enumerate(apart, row + 1):
        sheet.text(r, column, name.replace("_", " ").capitalize(), "label")
        found[name] = sheet.formula(r, column + 1, env[name].value, env[name].expr(sheet.name), WHOLE)
    return found
