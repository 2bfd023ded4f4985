"""The answer as data: every table that led to it, and a choice per load."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sheetgen.recommend.grid import Axis, Grid, Table
from sheetgen.scenario.market import Candidate
from sheetgen.scenario.question import Question
from sheetgen.sizing import kv_cache
from sheetgen.units import TENSOR_PARALLEL_SIZES

Columns = dict[str, Any]


@dataclass(frozen=True)
class Profile:
    """A GPU at a tensor-parallel size: what one replica's rank is."""

    gpu: int
    tensor_parallel_size: int


@dataclass(frozen=True)
class Offer:
    """A candidate instance at a tensor-parallel size."""

    candidate: int
    profile: int


@dataclass(frozen=True)
class Choice:
    """The answer for one load; `offer` is None where nothing holds it, and `verdict` says why."""

    verdict: str
    offer: int | None = None
    runner_up: int | None = None
    sequences_per_replica: int = 0
    pipeline_parallel_size: int = 1
    n_replicas: int = 0
    n_instances: int = 0
    hourly_usd: float = 0.0
    monthly_usd: float = 0.0
    runner_up_monthly_usd: float | None = None
    headroom_fraction: float = 0.0
    sure_headroom_fraction: float = 0.0
    sized_by: str = "memory"  # or speed: where its targets ask for more replicas, or for dearer hardware
    replicas_by: str = "memory"  # or speed: which of the two asked for the replicas on the chosen hardware
    requests_per_replica: int = 0
    tpot_seconds: float = 0.0
    ttft_seconds: float = 0.0
    output_tokens_per_second: float = 0.0  # of all replicas together
    bands: tuple[tuple[float, float], ...] = ()  # 80 %: TPOT, TTFT, output tokens a second
    prefill_fraction: float = 0.0
    bound_by: str = ""
    without_targets: tuple[int, int, float] | None = None  # offer, instances, $ a month by memory alone, where cheaper


@dataclass(frozen=True)
class Solution:
    """Every quantity of the answer on its axes, and a choice per load. Tables hold NaN where there is none."""

    question: Question
    profiles: tuple[Profile, ...]
    offers: tuple[Offer, ...]
    grid: Grid
    choices: tuple[Choice, ...]

    def _table(self, *axes: Axis) -> Table:
        question = self.question
        sizes = {
            "model": len(question.models), "gpu": len(question.gpus), "layout": len(TENSOR_PARALLEL_SIZES),
            "profile": len(self.profiles), "load": len(question.loads), "offer": len(self.offers),
            "pace": len(question.models) * len(question.workloads),
        }  # fmt: skip
        return Table(self.grid, axes, tuple(sizes[one] for one in axes))

    @cached_property
    def models(self) -> Table:
        return self._table("model")

    @cached_property
    def gpus(self) -> Table:
        return self._table("gpu")

    @cached_property
    def cells(self) -> Table:
        """By load."""
        return self._table("load")

    @cached_property
    def pools(self) -> Table:
        """By model and profile."""
        return self._table("model", "profile")

    @cached_property
    def sequences(self) -> Table:
        """By load and profile."""
        return self._table("load", "profile")

    @cached_property
    def costs(self) -> Table:
        """By load and offer."""
        return self._table("load", "offer")

    def at(self, row: int, profile: int | None = None, offer: int | None = None) -> Table:
        """Every quantity at one load on a profile, or on what is offered: columns of one entry."""
        where: dict[Axis, Any] = (
            {"load": [row], "profile": [profile]} if offer is None else {"load": [row], "offer": [offer]}
        )
        return Table(self.grid.along("chosen", where), ("chosen",), (1,))

    def candidate(self, offer: int) -> Candidate:
        """The instance behind an offer."""
        return self.question.candidates[self.offers[offer].candidate]

    def tensor_parallel_size(self, offer: int) -> int:
        """The tensor-parallel size behind an offer."""
        return self.profiles[self.offers[offer].profile].tensor_parallel_size


def short_tokens(count: int) -> str:
    """131072 as 128k, 4000 as 4000."""
    return str(kv_cache.short_tokens(count, kv_cache.TOKENS_PER_K))
