"""The plan worked out: every quantity at the three quantiles, and the hardware behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy

from sheetgen.plan.hardware import Hardware, placed
from sheetgen.plan.needs import set_by
from sheetgen.plan.read import Plan
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.tables import CONSTANTS, Type, Z, demand_grid, put_hardware, put_supply, share, spend, types_of
from sheetgen.recommend.solution import Axes, Axis, Grid, Table

CASE = {name: i for i, name in enumerate(QUANTILES)}
OF_SERVICE: Axes = ("service", "quarter", "case")
OF_TYPE: Axes = ("type", "quarter", "case")
OF_MONEY: Axes = ("quarter", "case")


@dataclass(frozen=True)
class Answer:
    """A plan, and what follows from it. `table` reads any quantity on its axes."""

    plan: Plan
    hardware: Hardware
    types: Sequence[Type]
    grid: Grid

    @property
    def case(self) -> int:
        """The position of the quantile that is bought."""
        return CASE[self.plan.policy.plan_at]

    def table(self, axes: Axes) -> Table:
        sizes: dict[Axis, int] = {"service": len(self.plan.services), "quarter": len(self.plan.quarters),
                                  "case": len(QUANTILES), "type": len(self.types)}  # fmt: skip
        return Table(self.grid, axes, tuple(sizes[one] for one in axes))

    @cached_property
    def services(self) -> Table:
        return self.table(OF_SERVICE)

    @cached_property
    def supply(self) -> Table:
        return self.table(OF_TYPE)

    @cached_property
    def money(self) -> Table:
        return self.table(OF_MONEY)

    def set_by(self, s: int, q: int, z: int) -> str:
        """What set the replicas of a service."""
        known = {name: float(self.services[name][s, q, z]) for name in set_by.inputs if name != "sized_by"}
        return str(set_by.of(known | {"sized_by": self.hardware.speed[s, q, z].sized_by}))


def solved_plan(plan: Plan) -> Answer:
    """The plan worked out."""
    grid = demand_grid(plan, numpy.array([Z[name] for name in QUANTILES]))
    rates, at_once = (numpy.broadcast_to(grid.read(name, OF_SERVICE), (len(plan.services), len(plan.quarters), 3))
                      for name in ("requests_per_second", "concurrent_requests"))  # fmt: skip
    hardware = placed(plan, rates, at_once, _months(plan))
    types = types_of(plan, hardware)
    put_hardware(grid, plan, hardware, types)
    put_supply(grid, plan, types)
    spend(grid, plan, types)
    share(grid, CASE[plan.policy.plan_at])
    return Answer(plan, hardware, types, grid)


def _months(plan: Plan) -> list[float]:
    """By quarter how many of today's months it costs, at the price expected."""
    from sheetgen.plan.needs import price_factor

    change, year = plan.prices.expected_change_per_year.p50, CONSTANTS["quarters_in_a_year"]
    months = CONSTANTS["months_in_a_quarter"]
    return [float(price_factor(change, q, year)) * months for q in range(len(plan.quarters))]



