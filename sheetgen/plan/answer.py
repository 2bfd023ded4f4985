"""The plan worked out: every quantity at the three quantiles, and the hardware behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sheetgen.plan.hardware import Hardware
from sheetgen.plan.needs import set_by
from sheetgen.plan.read import Plan
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.tables import Type
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
