"""Where a service of the plan runs in a quarter."""

from __future__ import annotations

from dataclasses import dataclass

from sheetgen.question.market import Candidate
from sheetgen.units import Layout

At = tuple[int, int]  # a service and a quarter, by position


@dataclass(frozen=True)
class Placed:
    """Where a service runs in a quarter, and what one replica there serves."""

    offer: int  # of its question, by position
    candidate: Candidate
    layout: Layout
    machines: float  # that its replicas fill at the quantile that is bought
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
    saves_usd: float = 0.0  # until the plan's end, of a move

    @property
    def instance(self) -> str:
        return self.candidate.instance
