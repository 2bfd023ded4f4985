"""Amounts as they are printed: whole ones of the plan's currency, so that the parts of a sum add up to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from sheetgen.plan.spending import budget_left_usd
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.worked_plan import Answer


def in_whole(plan: Plan, parts: Sequence[float], total_usd: float | None = None) -> list[float]:
    """Parts in US dollars that are whole ones of the plan's currency and sum to the total, else to their own sum: those
    with the largest fractions are rounded up. What is nothing stays so."""
    return in_whole_at(plan.head.fx_rate, parts, total_usd)


def in_whole_at(rate: float, parts: Sequence[float], total_usd: float | None = None) -> list[float]:
    """The same in a currency of which so many are a US dollar."""
    exact = [part * rate for part in parts]
    whole = [math.floor(part) for part in exact]
    rest = round(math.fsum(exact) if total_usd is None else total_usd * rate) - sum(whole)
    ranked = sorted((i for i, part in enumerate(exact) if part), key=lambda i: whole[i] - exact[i])
    for n in range(abs(rest) if ranked else 0):
        whole[ranked[n % len(ranked) if rest > 0 else -1 - n % len(ranked)]] += 1 if rest > 0 else -1
    return [amount / rate for amount in whole]


def asked_in_whole(answer: Answer, case: int) -> tuple[float, float]:
    """The spend of all quarters in a case of the demand, and its contingency: what is left of the sum of both."""
    whole = by_quarter_in_whole(answer, case)
    return math.fsum(whole.spend), math.fsum(whole.reserve)


def in_whole_of_spend(answer: Answer, case: int, parts: Sequence[float]) -> list[float]:
    """The parts of that spend."""
    return in_whole(answer.plan, parts, asked_in_whole(answer, case)[0])


def by_quarter_in_whole(answer: Answer, case: int) -> InWhole:
    """The same by quarter, beside the budgets."""
    names = ("budget_usd", "spend_usd", "reserve_usd")
    return quarters_in_whole(answer.plan.head.fx_rate, *(answer.money[name][:, case].tolist() for name in names))


class InWhole(NamedTuple):
    """Money by quarter: NaN, and nothing left, of a quarter without a budget."""

    budget: list[float]
    spend: list[float]
    reserve: list[float]
    left: list[float]


def quarters_in_whole(
    rate: float, budget: Sequence[float], spend: Sequence[float], reserve: Sequence[float]
) -> InWhole:
    """By quarter the budget, the spend and its contingency, which sum to what is asked for, and what they leave of the
    budget; see `in_whole_at`."""
    (asked,) = in_whole_at(rate, (math.fsum(spend) + math.fsum(reserve),))
    stated = [usd if math.isnan(usd) else in_whole_at(rate, (usd,))[0] for usd in budget]
    whole = in_whole_at(rate, spend)
    apart = in_whole_at(rate, reserve, asked - math.fsum(whole))
    return InWhole(stated, whole, apart, [*map(budget_left_usd, stated, whole, apart)])
