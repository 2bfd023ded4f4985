"""What can be served within a limit: a quarter's budget, or a quota of machines.

Services are served in the order of their priority, those of the same in the plan's. Each has all of its demand as long
as that is within the limit; the first that is not has as much of it as is; those behind it wait. What the next step of
its demand costs stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy

from sheetgen.plan.spending import reserve_usd
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.tables import Z, buy, put_supply, work_out
from sheetgen.plan.worked_plan import OF_MONEY, OF_TYPE, Answer

STEPS = 20  # of a service's demand
AT_ONCE = 500  # plans that are worked out together

BUDGET, QUOTA = "budget", "quota"


@dataclass(frozen=True)
class Served:
    """The share of a service's demand that a quarter's limit leaves, at the quantile that is bought."""

    service: int
    quarter: int
    limit: str
    instance: str | None  # of a quota
    share: float
    next_usd: float | None  # of the first that has not all of it, what the next step costs more in the quarter


def in_order_of_priority(plan: Plan) -> list[int]:
    """The services by position, those that are served first first."""
    priorities = plan.priorities
    return sorted(range(len(priorities)), key=lambda s: priorities[s])


def served(answer: Answer) -> Iterator[Served]:
    """By quarter whose budget does not hold, what each service has of its demand; and by quota that does not, those on
    its machines."""
    limits = [*_limits(answer)]
    if not limits:
        return
    order = in_order_of_priority(answer.plan)
    shares, at_once = _ladder(len(order)), max(1, AT_ONCE // answer.plan.week.over_peak.shape[-1])
    ways = [answer.plan, *([replace(answer.plan, base=())] if answer.plan.base else [])]  # a smaller plan may have none
    parts = [
        [_worked_out(answer, plan, order, shares[:, i : i + at_once]) for i in range(0, shares.shape[1], at_once)]
        for plan in ways
    ]
    spend, rented = (
        numpy.minimum.reduce([numpy.concatenate(column, axis=-1) for column in columns])
        for columns in zip(*(zip(*part, strict=True) for part in parts), strict=True)
    )
    for q, quota in limits:
        holds = _within(answer, q, quota, spend, rented)
        last = max(0, int(numpy.argmin(holds)) - 1)  # one at least does not: all of the demand
        instance = None if quota is None else answer.types[quota.type].instance
        for place, s in enumerate(order):
            one = answer.hardware.placed.get((s, q))
            if one is not None and instance in (None, one.instance):
                is_next = place == last // STEPS
                more = float(spend[q, last + 1] - spend[q, last]) if is_next else None
                share = float(shares[place, last]) if holds[0] else 0.0
                yield Served(s, q, BUDGET if quota is None else QUOTA, instance, share, more)


def _ladder(n: int) -> Any:
    """Shares of the demand by service, in their order, and step: the first rises to all of its own, then the second."""
    return numpy.clip((numpy.arange(n * STEPS + 1) - STEPS * numpy.arange(n)[:, None]) / STEPS, 0, 1)


class _Quota(NamedTuple):
    """The position of a type of machine, and how many of it may be rented."""

    type: int
    most: float


def _limits(answer: Answer) -> Iterator[tuple[int, _Quota | None]]:
    """The quarters with a limit that does not hold: of None the budget."""
    left = answer.money["budget_left_usd"][:, answer.case]
    rented = (answer.supply["gap"] + answer.supply["committed_instances"])[..., answer.case]
    quotas = [
        _Quota(t, float(quota.limit))
        for quota in answer.plan.supply.quota
        if (t := answer.place.get(answer.plan.machine(quota.type))) is not None
    ]
    for q in range(len(answer.plan.quarters)):
        if left[q] < 0:
            yield q, None
        for quota in quotas:
            if rented[quota.type, q] > quota.most:
                yield q, quota


def _within(answer: Answer, q: int, quota: _Quota | None, spend: Any, rented: Any) -> Any:
    """By step whether it is within a limit of a quarter. rented: by type, quarter and step."""
    if quota is not None:
        return rented[quota.type, q] <= quota.most
    committed, owned = (float(answer.money[name][q, 0]) for name in ("committed_usd", "owned_usd"))
    reserve = reserve_usd(spend[q], committed, owned, answer.plan.prices.contingency_fraction)
    return spend[q] + reserve <= answer.plan.budget[answer.plan.quarters[q]]


def _worked_out(answer: Answer, plan: Plan, order: list[int], shares: Any) -> tuple[Any, Any]:
    """What each quarter costs, and what is rented, with these shares of the services' demands. plan: that of the
    answer, or with another base."""
    grid = answer.grid.again({}, case=shares.shape[1])
    put_supply(grid, plan, answer.types)
    live = grid.spread("share_live", ("service", "quarter"))[..., None] * shares[numpy.argsort(order)][:, None, :]
    grid.put(("case",), {"z": numpy.full(shares.shape[1], Z[answer.plan.policy.plan_at])})
    grid.put(("service", "quarter", "case"), {"share_live": live})
    work_out(grid, "loads")
    buy(grid, plan, answer.types)
    work_out(grid, "money")
    return grid.spread("spend_usd", OF_MONEY), grid.spread("gap", OF_TYPE) + grid.spread("committed_instances", OF_TYPE)
