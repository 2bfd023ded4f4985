"""Amounts as they are printed: whole ones of the plan's currency, each rounded by itself, so that equal amounts are
printed alike wherever they stand. Budget less spend and contingency is what is left; a column may differ from its total
by half of one for each of its rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from sheetgen.plan.spending import budget_left_usd
from sheetgen.plan.worked_plan import Answer


class InWhole(NamedTuple):
    """Money of quarters: NaN, and nothing left, without a budget."""

    budget: float
    spend: float
    reserve: float
    left: float


def in_whole(rate: float, usd: float) -> float:
    """An amount in US dollars that is a whole one, rounded half up, of a currency of which so many are a US dollar."""
    return usd if math.isnan(usd) else math.floor(usd * rate + 0.5) / rate


def money_in_whole(rate: float, budget: float, spend: float, reserve: float) -> InWhole:
    """A budget, the spend and its contingency, which is the rest of the sum of both, and what this sum leaves."""
    stated, spent, asked = (in_whole(rate, usd) for usd in (budget, spend, spend + reserve))
    return InWhole(stated, spent, asked - spent, float(budget_left_usd(stated, spent, asked - spent)))


def quarters_in_whole(answer: Answer, case: int, quarters: Sequence[int]) -> InWhole:
    """The same of quarters of a plan together, in a case of the demand."""
    names = ("budget_usd", "spend_usd", "reserve_usd")
    sums = (math.fsum(answer.money[name][[*quarters], case].tolist()) for name in names)
    return money_in_whole(answer.plan.head.fx_rate, *sums)


def asked_in_whole(answer: Answer, case: int) -> InWhole:
    """The same of all quarters."""
    return quarters_in_whole(answer, case, range(len(answer.plan.quarters)))


def parts_in_whole(rate: float, parts: Sequence[float], total_usd: float) -> list[float]:
    """The steps of a bridge as whole amounts that sum to the difference of its ends: those with the largest fractions
    are rounded up. What is nothing stays so."""
    exact = [part * rate for part in parts]
    whole = [math.floor(part) for part in exact]
    rest = round(total_usd * rate) - sum(whole)
    ranked = sorted((i for i, part in enumerate(exact) if part), key=lambda i: whole[i] - exact[i])
    for n in range(abs(rest) if ranked else 0):
        whole[ranked[n % len(ranked) if rest > 0 else -1 - n % len(ranked)]] += 1 if rest > 0 else -1
    return [amount / rate for amount in whole]
