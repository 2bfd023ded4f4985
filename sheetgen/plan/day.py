"""The day: how many machines each hour takes where services have profiles over it, and what a base and the hours above
it cost.

A service's profile is its load by the hour, over that of its largest hour. Services of several time zones are laid over
one another in UTC, and a plan has the machines of the hour that takes most: a batch of the night fills the valley of
the day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.formula import Quantity, formula
from sheetgen.plan.orders import QUARTERS_OF_TERM, class_months
from sheetgen.plan.schema import HOURS
from sheetgen.plan.tables import Z, pooled, work_out
from sheetgen.plan.worked_plan import Answer
from sheetgen.units import ON_DEMAND, PURCHASES, USD

MINUTES_OF_AN_HOUR = 60


@formula("Base and the hours above it, $ a month", USD)
def mix_month_usd(
    base_instances: Quantity,
    needed_above: Quantity,
    started_above: Quantity,
    base_month_usd: Quantity,
    hour_month_usd: Quantity,
    start_hours: Quantity,
) -> Any:
    """A month of so many machines that are paid in all hours, and of those above them in the hours that need them and
    while they start.

    In:     needed_above, started_above: sums over the hours of a day; hour_month_usd, what one machine costs in one
            hour of every day of a month.
    Source: definition.
    """
    return base_instances * base_month_usd + (needed_above + started_above * start_hours) * hour_month_usd


@dataclass(frozen=True)
class Mix:
    """The machines of a type by the hour of a day in a quarter, and the cheapest base beside hours on demand."""

    instance: str
    quarter: int
    needed: tuple[int, ...]  # by hour, UTC
    base: int
    base_purchase: str
    peak_usd: float  # a month of the largest hour's machines, on demand
    mix_usd: float


def needed_by_hour(answer: Answer) -> Any:
    """By type, quarter and hour the machines that the services take together, at the quantile that is bought."""
    plan, grid = answer.plan, answer.grid.again({}, case=HOURS)
    live = grid.spread("share_live", ("service", "quarter"))[..., None] * plan.shapes
    grid.put(("case",), {"z": numpy.full(HOURS, Z[plan.policy.plan_at])})
    grid.put(("service", "quarter", "case"), {"share_live": live})
    work_out(grid, "loads")
    return pooled(grid, answer.types)


def mixes(answer: Answer) -> Iterator[Mix]:
    """Each type and quarter in which a service with a profile is on it."""
    plan = answer.plan
    if all(one.profile is None for one in plan.services):
        return
    needed = needed_by_hour(answer)
    for t, one in enumerate(answer.types):
        months = class_months(plan, one.candidate)
        if ON_DEMAND not in months:
            continue
        for q in range(len(plan.quarters)):
            placed = (
                s for (s, k), place in answer.hardware.placed.items() if k == q and place.instance == one.instance
            )
            if any(plan.services[s].profile is not None for s in placed):
                yield _mix(answer, t, q, needed[t, q], months)


def _mix(answer: Answer, t: int, q: int, needed: Any, months: dict[str, float]) -> Mix:
    """The cheapest base of a type in a quarter: bound for a term of which at least half is in the plan, where there is
    such a class."""
    plan, most = answer.plan, int(needed.max())
    left = len(plan.quarters) - q
    bound = [name for name in months if PURCHASES[name].committed and 2 * left >= QUARTERS_OF_TERM.get(name, 1)]
    purchase = min(bound, key=lambda name: months[name], default=ON_DEMAND)
    start_hours = plan.policy.start_minutes / MINUTES_OF_AN_HOUR

    def usd(base: int) -> float:
        above = numpy.maximum(needed, base) - base
        started = numpy.maximum(0, above - numpy.roll(above, 1)).sum()
        hour = months[ON_DEMAND] / HOURS
        return float(mix_month_usd(base, above.sum(), started, months[purchase], hour, start_hours))

    base = min(range(most + 1), key=usd)
    counts = tuple(int(n) for n in needed)
    peak_usd = most * months[ON_DEMAND]
    return Mix(answer.types[t].instance, q, counts, base, purchase, peak_usd, usd(base))
