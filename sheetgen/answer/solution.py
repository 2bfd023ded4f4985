"""The answer: every quantity of a sheet on its axes, and a choice per load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sheetgen.answer.answer_record import RentalRecord, SureAt
from sheetgen.answer.picks import Pick
from sheetgen.catalog.hardware import Workload
from sheetgen.program.grid import Grid, View
from sheetgen.question.market import Candidate
from sheetgen.question.sheet_question import Question, SheetModel
from sheetgen.sizing import kv_cache
from sheetgen.units import Layout


class Profile(NamedTuple):
    """A GPU at a layout: the hardware of one rank of a replica."""

    gpu: int
    layout: Layout


class Offer(NamedTuple):
    """A candidate instance with a layout."""

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
    chance: float = 0.0  # the largest level at which all that is rented still serves the load
    chance_of: Mapping[str, float] = field(default_factory=dict)  # by the part that has a chance of its own
    sure_at: SureAt | None = None  # the load of a replica that the chance is of
    sized_by: str = "memory"  # or the target that asks for more replicas, or for dearer hardware; or survival
    replicas_by: str = "memory"  # the same of the replicas on the chosen hardware
    requests_per_replica: int = 0
    tpot_seconds: float = 0.0
    ttft_seconds: float = 0.0
    output_tokens_per_second: float = 0.0  # of all replicas together
    bands: tuple[tuple[float, float], ...] = ()  # 80 %: TPOT, TTFT, output tokens a second
    prefill_fraction: float = 0.0
    bound_by: str = ""
    served_at_target: float = 0  # requests at once, whole; of a rate requests per second
    in_flight: float = 0.0  # at peak; for a rate as it follows
    n_places: int = 0  # of a rate: those of the replicas that serve
    wait_fraction: float | None = None  # for a rate: share of requests that find no place free, by exact Erlang-C
    mean_wait_seconds: float | None = None  # of those; None of requests at once, and where more arrive than have places
    few_wait_seconds: float | None = None  # for a place, which only one request in a hundred exceeds
    replica_clears_per_second: float | None = None  # of a rate, with every place taken
    memory_holds: int = 0
    cheapest: Pick | None = None  # the very cheapest
    without_targets: Pick | None = None  # what memory alone would take, where cheaper
    without_ttft: Pick | None = None  # without the target of the first token alone, where cheaper
    without_survival: Pick | None = None  # what the load alone would take, where a loss to survive makes it dearer


@dataclass(frozen=True)
class Solution:
    """Every quantity of the answer on its axes, and a choice per load. Tables hold NaN where there is no value."""

    question: Question
    profiles: tuple[Profile, ...]
    offers: tuple[Offer, ...]
    grid: Grid
    choices: tuple[Choice, ...]
    by_purchase: Mapping[str, list[RentalRecord | None]] = field(
        default_factory=dict
    )  # by class, each load's answer in it

    @cached_property
    def models(self) -> View:
        return self.grid.table("model")

    @cached_property
    def gpus(self) -> View:
        return self.grid.table("gpu")

    @cached_property
    def loads(self) -> View:
        return self.grid.table("load")

    @cached_property
    def pools(self) -> View:
        """Pools by model and profile."""
        return self.grid.table("model", "profile")

    @cached_property
    def sequences(self) -> View:
        """Sequences by load and profile."""
        return self.grid.table("load", "profile")

    @cached_property
    def costs(self) -> View:
        """Costs by load and offer."""
        return self.grid.table("load", "offer")

    def at(self, row: int, profile: int | None = None, offer: int | None = None) -> View:
        """Every quantity of one load on a profile, or on an offer: columns of one entry."""
        on = {"profile": [profile or 0]} if offer is None else {"offer": [offer]}
        return self.grid.along("chosen", {"load": [row], **on}).table("chosen")

    def model_of(self, row: int) -> SheetModel:
        return self.question.model_of(row)

    def workload_of(self, row: int) -> Workload:
        return self.question.workload_of(row)

    def candidate(self, offer: int) -> Candidate:
        """The instance behind an offer."""
        return self.question.candidates[self.offers[offer].candidate]

    def undivided_profile(self, row: int) -> int:
        """The position of the profile of one undivided GPU of the kind chosen for a load; of the first GPU where
        nothing is chosen."""
        offer = self.choices[row].offer
        gpu = 0 if offer is None else self.profiles[self.offers[offer].profile].gpu
        return gpu * len(self.question.layouts)

    def layout(self, offer: int) -> Layout:
        """The layout behind an offer."""
        return self.profiles[self.offers[offer].profile].layout


def short_tokens(count: int) -> str:
    """131072 as 128k, 4000 as 4000."""
    return str(kv_cache.short_tokens(count, kv_cache.TOKENS_PER_K))


def headline_rows(solved: Solution) -> tuple[int, ...]:
    """The loads of the headline, one for each model in its order."""
    question = solved.question
    return tuple(i for i, c in enumerate(question.loads) if (c.workload, c.tier) == question.headline)


@dataclass(frozen=True)
class Fit:
    """A load that something holds, with its choice and its numbers on the chosen GPU and TP, by name."""

    solved: Solution
    row: int
    choice: Choice
    offer: int

    @classmethod
    def of(cls, solved: Solution, row: int) -> Fit | None:
        """The fit of a load; None where nothing holds it."""
        choice = solved.choices[row]
        return None if choice.offer is None else cls(solved, row, choice, choice.offer)

    @property
    def model(self) -> int:
        return self.solved.question.loads[self.row].model

    @property
    def candidate(self) -> Candidate:
        return self.solved.candidate(self.offer)

    @property
    def layout(self) -> Layout:
        return self.solved.layout(self.offer)

    @property
    def gpus_per_replica(self) -> int:
        return self.layout.n_gpus * self.choice.pipeline_parallel_size

    @property
    def gpus_used(self) -> int:
        """GPUs at work: replicas x TP x PP x DP."""
        return self.gpus_per_replica * self.choice.n_replicas

    @property
    def draft_bytes_per_gpu(self) -> float:
        """A draft model's weights on one GPU; 0 where there is none."""
        return self["loaded_weights_bytes_per_gpu"] - self["weights_bytes_per_gpu"]

    @cached_property
    def numbers(self) -> View:
        return self.solved.at(self.row, offer=self.offer)

    def __getitem__(self, name: str) -> float:
        return float(self.numbers[name][0])
