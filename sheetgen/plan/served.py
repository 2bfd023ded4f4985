"""The share of each service's demand that a limit leaves: a quarter's budget, a quota, or the machines of a date.

Services are served in the order of their priority, those of the same in the plan's. Each has all of its demand as long
as that is within the limit; the first that is not has as much of it as is; those behind it wait. The cost of the next
step of its demand stands beside it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy

from sheetgen.plan.decisions import served_until
from sheetgen.plan.spending import reserve_usd
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.tables import Z, buy, put_supply, work_out
from sheetgen.plan.worked_plan import OF_MONEY, OF_TYPE, Answer

STEPS = 20  # of a service's demand
AT_ONCE = 500  # plans that are worked out together

BUDGET, QUOTA, MACHINES = "budget", "quota", "machines"


@dataclass(frozen=True)
class Limit:
    """A limit of a quarter that does not hold: of the money, of machines of a type that are rented, or of those that
    are there until a day."""

    kind: str
    quarter: int
    type: int | None = None
    most: float = 0.0
    until: datetime.date | None = None


@dataclass(frozen=True)
class Served:
    """The share of a service's demand that a limit leaves, at the quantile that is bought."""

    service: int
    quarter: int
    limit: str
    instance: str | None  # of a quota, or of machines
    until: datetime.date | None  # the last day of machines
    share: float
    next_usd: float | None  # of the first that has not all of it, how much more the quarter costs with the next step


def in_order_of_priority(plan: Plan) -> list[int]:
    """The services by position, those that are served first first."""
    priorities = plan.priorities
    return sorted(range(len(priorities)), key=lambda s: priorities[s])


def served(answer: Answer) -> Iterator[Served]:
    """By limit that does not hold the services on its machines, or all, and the share of its demand that each has."""
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
    spend, rented, needed = (
        numpy.minimum.reduce([numpy.concatenate(column, axis=-1) for column in columns])
        for columns in zip(*(zip(*part, strict=True) for part in parts), strict=True)
    )
    for limit in limits:
        q = limit.quarter
        if limit.type is None:
            used, most, instance = _asked_usd(answer, q, spend[q]), answer.plan.budget[answer.plan.quarters[q]], None
        else:
            used = (rented if limit.kind == QUOTA else needed)[limit.type, q]
            most, instance = limit.most, answer.types[limit.type].instance
        # What is paid anyway serves, though that alone may be beyond the limit. All of the demand is not within it.
        last = int(numpy.argmin(used <= max(most, used[0]))) - 1
        for place, s in enumerate(order):
            there = answer.hardware.placed.get((s, q))
            if there is not None and instance in (None, there.instance):
                is_next = place == last // STEPS
                more = float(spend[q, last + 1] - spend[q, last]) if is_next else None
                yield Served(s, q, limit.kind, instance, limit.until, float(shares[place, last]), more)


def _ladder(n: int) -> Any:
    """Shares of the demand by service, in their order, and step: the first rises to all of its own, then the second."""
    return numpy.clip((numpy.arange(n * STEPS + 1) - STEPS * numpy.arange(n)[:, None]) / STEPS, 0, 1)


def _limits(answer: Answer) -> Iterator[Limit]:
    """The limits that do not hold, by quarter."""
    plan, counts = answer.plan, {name: column[..., answer.case] for name, column in answer.supply_counts.items()}
    left = answer.money["budget_left_usd"][:, answer.case]
    rented = (answer.supply["gap"] + answer.supply["committed_instances"])[..., answer.case]
    for q in range(len(plan.quarters)):
        if left[q] < 0:
            yield Limit(BUDGET, q)
        for quota in plan.supply.quota:
            t = answer.place.get(plan.machine(quota.type))
            if t is not None and rented[t, q] > quota.limit:
                yield Limit(QUOTA, q, t, float(quota.limit))
        for t in range(len(answer.types)):
            late = float(answer.supply["late_instances"][t, q, answer.case])
            if late and (until := served_until(answer, t, q)) is not None:
                yield Limit(MACHINES, q, t, float(counts["needed"][t, q]) - late, until)


def _asked_usd(answer: Answer, q: int, spend: Any) -> Any:
    """The spend of a quarter with its contingency."""
    committed, owned = (float(answer.money[name][q, 0]) for name in ("committed_usd", "owned_usd"))
    return spend + reserve_usd(spend, committed, owned, answer.plan.prices.contingency_fraction)


def _worked_out(answer: Answer, plan: Plan, order: list[int], shares: Any) -> tuple[Any, Any, Any]:
    """By quarter the cost, and by type the machines that are rented and needed, with these shares of the services'
    demands. plan: that of the answer, or with another base."""
    grid = answer.grid.again({}, case=shares.shape[1])
    put_supply(grid, plan, answer.types)
    live = grid.spread("share_live", ("service", "quarter"))[..., None] * shares[numpy.argsort(order)][:, None, :]
    grid.put(("case",), {"z": numpy.full(shares.shape[1], Z[answer.plan.policy.plan_at])})
    grid.put(("service", "quarter", "case"), {"share_live": live})
    work_out(grid, "loads")
    buy(grid, plan, answer.types)
    work_out(grid, "money")
    gap, committed, needed = (grid.spread(name, OF_TYPE) for name in ("gap", "committed_instances", "needed_instances"))
    return grid.spread("spend_usd", OF_MONEY), gap + committed, needed
