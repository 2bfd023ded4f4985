"""Work a plan out: demand, hardware, machines, supply, what is late, and money."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy

from sheetgen.plan.hardware_by_quarter import Hardware, Loads, placed
from sheetgen.plan.orders import class_months
from sheetgen.plan.schema import MIX, QUANTILES
from sheetgen.plan.stated_plan import Base, Plan
from sheetgen.plan.supplied import supplied
from sheetgen.plan.tables import (
    Rented,
    Type,
    Z,
    buy,
    demand_grid,
    put_hardware,
    put_supply,
    put_times,
    share,
    types_of,
    work_out,
)
from sheetgen.plan.terms import base_of
from sheetgen.plan.together import moving_usd
from sheetgen.plan.worked_plan import CASE, OF_SERVICE, Answer
from sheetgen.program.grid import Grid


def solved_plan(plan: Plan, timed: bool = True, kept: Loads | None = None, hardware: Hardware | None = None) -> Answer:
    """The plan worked out; not timed, without how fast its hardware is. kept: see `placed`; hardware: what it is on,
    where that is not to be chosen."""
    plan = replace(plan, base=())
    grid = demand_grid(plan, numpy.array([Z[name] for name in QUANTILES]))
    rates, at_once = (grid.spread(name, OF_SERVICE) for name in ("requests_per_second", "concurrent_requests"))
    every = [hardware] if hardware else placed(plan, rates, at_once, plan.months, timed, kept)
    return min((_bought(plan, grid, way, timed) for way in every), key=_mean_usd)


def _mean_usd(answer: Answer) -> float:
    """The cost of a plan and its moves, on average at p50 and at the quantile that is bought."""
    spend = answer.money["spend_usd"][:, [CASE["p50"], answer.case]].sum() / 2
    return float(spend) + moves_usd(answer, answer.plan)


def moves_usd(answer: Answer, plan: Plan) -> float:
    """The cost of a plan's moves, as a plan counts them."""
    moved = ((q, place) for (_, q), place in answer.hardware.placed.items() if place.moved)
    return sum(moving_usd(plan, place, plan.months[q]) for q, place in moved)


def _bought(plan: Plan, grid: Grid, hardware: Hardware, timed: bool) -> Answer:
    """The plan on some hardware."""
    types = types_of(plan, hardware)
    grid = grid.again({}, type=len(types))
    put_hardware(grid, plan, hardware, types)
    put_supply(grid, plan, types)
    if timed:
        put_times(grid, plan, hardware, CASE[plan.policy.plan_at])
    rented = buy(grid, plan, types)
    if plan.policy.buy == MIX and (base := (*bases(plan, types, rented, CASE[plan.policy.plan_at]),)):
        plan = replace(plan, base=base)
        put_supply(grid, plan, types)
        rented = buy(grid, plan, types)
    share(grid, CASE[plan.policy.plan_at])
    work_out(grid, "money")
    return Answer(plan, hardware, types, grid, rented)


def bases(plan: Plan, types: Sequence[Type], rented: Sequence[Rented], case: int) -> Iterator[Base]:
    """The orders of a mix for a term, of every type that is bought in its class, in a case of the demand."""
    committed = supplied(plan).committed
    for machine, hours in zip(types, rented, strict=True):
        if machine.candidate is not None and machine.buying.purchase == plan.policy.purchase:
            shares, months = hours.shares(case), class_months(plan, machine.candidate)
            most = machine.buying.most(committed.get(machine.instance, 0.0))
            yield from base_of(plan, machine.instance, shares, machine.month_usd, months, most)
