"""The place of a service in a quarter."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
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
    moved: bool = False

    @property
    def instance(self) -> str:
        return self.candidate.instance

    def twice_usd(self, move_days: float) -> float:
        """The cost of its replicas in the days in which those of before run beside them, at today's price."""
        return self.machines[BOUGHT] * self.instance_month_usd * move_days / DAYS_IN_A_MONTH


@dataclass(frozen=True)
class Until:
    """The place in which a service is in the days of a quarter before it moves within it."""

    place: Placed
    day: datetime.date  # of the move
    start: Fraction  # the same in quarters from the plan's first day, where a span starts
    quarter: int  # in which it would move if only quarters were looked at: this one or the next, by position


def filled_by_hour(places: Sequence[Placed], over_peak: Any) -> tuple[Any, Any, Any]:
    """machines, safe_machines and half_machines of each place, the last side, at p50 and at the quantile, each by kind
    of hour: whole replicas for so much of the load. What a search goes by; what is planned is worked out from the loads
    of the hours. over_peak: by place and kind of hour."""
    per_instance = numpy.array([place.replicas_per_instance for place in places])
    pairs = numpy.array([(place.machines, place.safe_machines, place.half_machines) for place in places])
    machines, safe, halves = (
        (pair[:, :, None] * over_peak[:, None, :]).reshape(len(places), -1).T for pair in pairs.transpose(1, 0, 2)
    )

    def whole(filled: Any) -> Any:
        return numpy.ceil(numpy.round(filled * per_instance, 9)) / per_instance

    return whole(machines), whole(safe), halves
