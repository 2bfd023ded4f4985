"""Amounts as they are printed: whole ones of the plan's currency, so that the parts of a sum add up to it."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    spend, reserve = by_quarter_in_whole(answer, case)
    return math.fsum(spend), math.fsum(reserve)


def in_whole_of_spend(answer: Answer, case: int, parts: Sequence[float]) -> list[float]:
    """The parts of that spend."""
    return in_whole(answer.plan, parts, asked_in_whole(answer, case)[0])


def by_quarter_in_whole(answer: Answer, case: int) -> tuple[list[float], list[float]]:
    """The same by quarter."""
    spend, reserve = (answer.money[name][:, case].tolist() for name in ("spend_usd", "reserve_usd"))
    return quarters_in_whole(answer.plan.head.fx_rate, spend, reserve)


def quarters_in_whole(rate: float, spend: Sequence[float], reserve: Sequence[float]) -> tuple[list[float], list[float]]:
    """By quarter the spend and its contingency, which sum to what is asked for; see `in_whole_at`."""
    (asked,) = in_whole_at(rate, (math.fsum(spend) + math.fsum(reserve),))
    whole = in_whole_at(rate, spend)
    return whole, in_whole_at(rate, reserve, asked - math.fsum(whole))
