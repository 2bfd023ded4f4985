"""The answer as data: every table that led to it, and a choice per cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sheetgen.scenario.candidates import Candidate
from sheetgen.scenario.question import Question
from sheetgen.sizing import tokens

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
    """The answer for one cell; `slot` is None where nothing holds it, and `verdict` says why."""

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
    without_targets: tuple[int, int, float] | None = None  # slot, instances, $ a month by memory alone, where cheaper


@dataclass(frozen=True)
class Solution:
    """Every table of the answer. Matrices are indexed [cell or model, profile or slot]; NaN where none."""

    question: Question
    profiles: tuple[Profile, ...]
    offers: tuple[Offer, ...]
    models: Columns  # by model
    shards: Columns  # [model, position in TENSOR_PARALLEL_SIZES]
    gpus: Columns  # by GPU
    cells: Columns  # by cell
    pools: Columns  # [model, profile]
    sequences: Columns  # [cell, profile]
    costs: Columns  # [cell, slot]
    latency: Columns  # by model and workload
    steps: Columns  # [model and workload, profile]
    choices: tuple[Choice, ...]

    def candidate(self, offer: int) -> Candidate:
        """The instance behind a slot."""
        return self.question.candidates[self.offers[offer].candidate]

    def tensor_parallel_size(self, offer: int) -> int:
        """The tensor-parallel size behind a slot."""
        return self.profiles[self.offers[offer].profile].tensor_parallel_size


def short_tokens(count: int) -> str:
    """131072 as 128k, 4000 as 4000."""
    return str(tokens.short_tokens(count, tokens.TOKENS_PER_K))
