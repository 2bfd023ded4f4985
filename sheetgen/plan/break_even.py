"""What would change our mind: the demand at which a decision would be another, as a share of what is planned for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy

from sheetgen.plan.decisions import BreakEven, Decision
from sheetgen.plan.tables import Z, buy, work_out
from sheetgen.plan.worked_plan import OF_TYPE, Answer

STEPS = 200  # a hundredth of the demand each, so up to twice of it
OF_DEMAND = ("order", "renew", "raise quota", "replace owned")


def rented(answer: Answer) -> tuple[Any, Any]:
    """Shares of the demand, and by type, quarter and share what must be bought."""
    shares, at_once = (numpy.arange(STEPS) + 1) * 2 / STEPS, max(1, STEPS // answer.plan.week.over_peak.shape[-1])
    return shares, numpy.concatenate([_gaps(answer, shares[i : i + at_once]) for i in range(0, STEPS, at_once)], axis=2)


def _gaps(answer: Answer, shares: Any) -> Any:
    grid = answer.grid.again({}, case=len(shares))
    live = grid.spread("share_live", ("service", "quarter"))[..., None] * shares
    grid.put(("case",), {"z": numpy.full(len(shares), Z[answer.plan.policy.plan_at])})
    grid.put(("service", "quarter", "case"), {"share_live": live})
    work_out(grid, "loads")
    buy(grid, answer.plan, answer.types)
    return grid.spread("gap", OF_TYPE)


def with_break_even(answer: Answer, decided: Iterable[Decision]) -> Iterator[Decision]:
    """Decisions that follow from the demand with the shares of it at which they would be others."""
    shares, gaps = rented(answer)
    for decision in decided:
        quarter, t = answer.plan.quarter_of(decision.needed_from), answer.place.get(decision.instance)
        of_base = decision.what == "order" and t is not None and decision.purchase != answer.types[t].buying.purchase
        if decision.what not in OF_DEMAND or quarter is None or t is None or of_base:
            yield decision
            continue
        bought, planned = gaps[t, quarter], float(answer.supply["gap"][t, quarter, answer.case])
        fewer, more = shares[bought < planned], shares[bought > planned]
        yield replace(
            decision,
            break_even=BreakEven(
                float(fewer.max()) if len(fewer) else None,
                float(more.min()) if len(more) else None,
            ),
        )
