"""The place of a service in a quarter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.question.market import Candidate
from sheetgen.sizing.cost import HOURS_IN_A_MONTH
from sheetgen.units import Layout

At = tuple[int, int]  # a service and a quarter, by position
Pair = tuple[float, float]  # at p50, and at the quantile that is bought
MIDDLE, BOUGHT = 0, 1  # of a pair
DAYS_IN_A_MONTH = HOURS_IN_A_MONTH / 24


@dataclass(frozen=True)
class Placed:
    """The machines of a service in a quarter, and the load that one replica there serves."""

    offer: int  # of its question, by position
    candidate: Candidate
    layout: Layout
    machines: Pair  # that its replicas fill beside those of others
    safe_machines: Pair  # of them what a loss must leave
    half_machines: Pair  # and what lies apart
    pipeline_parallel_size: int
    paced_requests: float
    replicas_per_instance: float
    full_turn_seconds: float  # NaN where the load is no rate
    replica_prefill_seconds: float  # the same
    instance_month_usd: float
    wait_z: float
    output_tokens: float
    is_together: bool = False  # where it would not be alone: on what others fill a part of, or what is there anyway
    moved: bool = False
    saves_usd: float = 0.0  # until the plan's end or the next move, of a move; NaN where the plan cannot do without it

    @property
    def instance(self) -> str:
        return self.candidate.instance

    def twice_usd(self, move_days: float) -> float:
        """The cost of its replicas in the days in which those of before run beside them, at today's price."""
        return self.machines[BOUGHT] * self.instance_month_usd * move_days / DAYS_IN_A_MONTH

    def by_hour(self, over_peak: Any) -> tuple[Any, Any, Any]:
        """machines, safe_machines and half_machines at p50 and at the quantile, each by kind of hour: whole replicas
        for so much of the load. What a search goes by; what is planned is worked out from the loads of the hours."""
        machines, safe, halves = (
            (numpy.array(pair)[:, None] * over_peak).ravel()
            for pair in (self.machines, self.safe_machines, self.half_machines)
        )
        return self._whole(machines), self._whole(safe), halves

    def _whole(self, machines: Any) -> Any:
        """The same in whole replicas."""
        return numpy.ceil(numpy.round(machines * self.replicas_per_instance, 9)) / self.replicas_per_instance
