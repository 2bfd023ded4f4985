"""The answer: every quantity of a sheet on its axes, and a choice per load.

A column is kept with the axes that it has. Reading it over others follows what one axis says of another: an offer is
of a profile (a GPU at a layout), a load of a model. numpy's shapes follow from TABLES; nobody else aligns columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy

from sheetgen import cost, estimate
from sheetgen.catalog.hardware import Workload
from sheetgen.formula import Formula
from sheetgen.recommend.choice import Pick
from sheetgen.scenario.market import Candidate
from sheetgen.scenario.question import Question, SheetModel
from sheetgen.sizing import draft, kv_cache, memory, parallelism, rates, weights
from sheetgen.units import Layout

# pace: a model and a workload, as speed does not depend on the requests at once. layout: TP x DP.
# profile: a GPU at a layout. offer: a candidate instance at a layout. chosen: what was chosen for some loads.
# Of a plan: service, quarter, case (a quantile of the demand, or a draw), type (of instances that services share).
Axis = Literal[
    "model", "gpu", "layout", "profile", "pace", "load", "offer", "chosen", "service", "quarter", "case", "type"
]
Axes = tuple[Axis, ...]
Named = Formula | tuple[str, Formula]  # under another name where a formula is read for something else

# Every table of a sheet: its axes, and its quantities in the order in which they come about.
TABLES: dict[str, tuple[Axes, tuple[Named, ...]]] = {
    "models": (("model",), (*estimate.MODEL, *estimate.WORK)),
    "shards": (("model", "profile"), estimate.SHARD),
    "profiles": (
        ("profile",),
        (
            ("kv_pool_error_bytes_low", parallelism.pool_error_bytes),
            memory.staged_non_torch_bytes_per_gpu,
            memory.memory_budget_bytes,
        ),
    ),
    # What a model leaves on a profile: pools are those without pipeline stages.
    "pools": (
        ("model", "profile"),
        (
            *estimate.PEAK,
            ("activation_bytes_per_gpu", memory.profile_peak_bytes),
            ("weights_bytes_per_gpu", weights.rank_weights_bytes),
            ("loaded_weights_bytes_per_gpu", weights.rank_weights_bytes),
            memory.overhead_bytes_per_gpu,
            memory.stage_overhead_bytes,
            memory.kv_budget_bytes_per_gpu,
            parallelism.layer_budget_bytes,
            parallelism.runs,
        ),
    ),
    # What a load's context takes of one rank, and how many stages a replica needs for it.
    "paces": (("pace",), (*estimate.TOKENS, parallelism.within_limit)),
    "stages": (
        ("pace", "profile"),
        (
            kv_cache.UNSTAGED_WINDOWS,
            kv_cache.charge_bytes,
            kv_cache.steady_bytes,
            parallelism.layers_that_fit,
            parallelism.pipeline_stages,
        ),
    ),
    "steps": (("pace", "profile"), estimate.STEP),
    "limits": (("pace", "profile"), (parallelism.strides_within_targets, parallelism.batch_limit)),
    "loads": (
        ("load",),
        (
            kv_cache.charged_tokens,
            parallelism.load_requests,
            parallelism.users,
            parallelism.within_limit,
        ),
    ),
    # What one replica on a profile takes and holds of a load, and how many replicas the load needs.
    "sequences": (
        ("load", "profile"),
        (
            parallelism.sequences,
            parallelism.sure_sequences,
            parallelism.paced_requests,
        ),
    ),
    # Of a rate: how long a request takes on a full replica, and the places that it takes with allowance for chance.
    "rates": (
        ("load", "profile"),
        (
            rates.full_batch_requests,
            rates.full_turn_seconds,
            rates.offered_requests,
            rates.places,
            ("load_requests", rates.load_with_rates),
        ),
    ),
    "offers": (
        ("offer",),
        (
            parallelism.linked_gpus,
            ("price_usd_per_hour", cost.discounted_usd_per_hour),
            cost.paid_hours_per_month,
            cost.instance_month_usd,
            cost.gpu_month_usd,
        ),
    ),
    # Per load and offer: replicas, whole instances, $ an hour and a month; NaN where it cannot hold the load.
    "costs": (
        ("load", "offer"),
        (
            parallelism.replicas_per_instance,
            parallelism.requests_per_instance,
            parallelism.n_replicas,
            cost.n_instances,
            cost.hourly_usd,
            cost.monthly_usd,
        ),
    ),
    # Of a rate, what a candidate would serve: the choice ranks by it.
    "ranks": (("load", "offer"), (rates.served_requests_per_second, rates.ranked_requests)),
}
# Where a draft model serves beside: what stands in place of quantities of the same name.
WITH_DRAFT: dict[str, tuple[Formula, ...]] = {
    "models": tuple(one.with_parts(draft.OF_A_MODEL) for one in estimate.MODEL),
    "shards": draft.beside(estimate.SHARD),
    "pools": draft.beside((weights.loaded_weights_bytes_per_gpu, parallelism.layer_budget_bytes)),
}


def by_name(quantities: Iterable[Named]) -> Iterator[tuple[str, Formula]]:
    """Quantities with the names that they go by."""
    return ((one.name, one) if isinstance(one, Formula) else one for one in quantities)


def quantities_of(table: str, has_draft: bool) -> Iterator[tuple[str, Formula]]:
    """The quantities of a table by name, in the order in which they come about."""
    others = {one.name: one for one in WITH_DRAFT.get(table, ())} if has_draft else {}
    return ((name, others.get(name, one)) for name, one in by_name(TABLES[table][1]))


@dataclass(frozen=True)
class Grid:
    """Columns by name, each with its axes, the latest last; and where a position of one axis stands on another.

    A column with no axes holds for the whole sheet. A side of length 1 stands for all of its axis.
    """

    columns: dict[str, tuple[tuple[Axes, Any], ...]]
    places: Mapping[tuple[Axis, Axis], Any]  # (an axis, another): a position on the other for each of the one

    def put(self, axes: Axes, columns: Mapping[str, Any]) -> None:
        """Add columns (lists are numbers); they are read in place of earlier ones wherever their axes can be."""
        for name, column in columns.items():
            column = numpy.array(column, float) if isinstance(column, list) else column
            own = axes if getattr(column, "ndim", 0) else ()
            self.columns[name] = (*self.columns.get(name, ()), (own, column))

    def along(self, axis: Axis, positions: Mapping[Axis, Any]) -> Grid:
        """This grid with one more axis, whose positions stand where given on others; columns put there stay there."""
        places = {(axis, at): numpy.asarray(where) for at, where in positions.items()}
        through = {
            (axis, far): numpy.asarray(far_of)[where]
            for (_, at), where in places.items()
            for (near, far), far_of in self.places.items()
            if near == at
        }
        return replace(self, columns=dict(self.columns), places={**self.places, **through, **places})

    def read(self, name: str, axes: Axes) -> Any:
        """A column as it stands over `axes`, ready to be combined with others. Raises KeyError where none can be."""
        found = self._readable(name, axes)
        if found is None:
            raise KeyError(f"{name!r} is nowhere in the grid over {', '.join(axes)}")
        own, column, stands_on = found
        if own == axes or not own:
            return column
        index = []
        for side, one, at in zip(column.shape, own, stands_on, strict=True):
            if side == 1:
                positions = numpy.zeros(1, int)
            else:
                positions = numpy.arange(side) if axes[at] == one else self.places[axes[at], one]
            index.append(positions.reshape([-1 if i == at else 1 for i in range(len(axes))]))
        return column[tuple(index)]

    def has(self, name: str, axes: Axes) -> bool:
        """Whether a column can be read over `axes`."""
        return self._readable(name, axes) is not None

    def _readable(self, name: str, axes: Axes) -> tuple[Axes, Any, list[int]] | None:
        """The latest column that can be read over `axes`, and which of these each of its own stands on."""
        for own, column in reversed(self.columns.get(name, ())):
            stands_on = [
                next((i for i, axis in enumerate(axes) if axis == one or (axis, one) in self.places), None)
                for one in own
            ]
            if None not in stands_on:
                return own, column, stands_on  # type: ignore[return-value]
        return None

    def evaluate(self, formulas: Iterable[Named], axes: Axes, also: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Each formula in turn over `axes`, put into the grid; `also` are values that it holds for this once."""
        known, found = dict(also or {}), {}
        for name, one in by_name(formulas):
            for read in one.inputs:
                if read not in known:
                    known[read] = self.read(read, axes)
            found[name] = known[name] = one.of(known)
        self.put(axes, found)
        return found


@dataclass(frozen=True)
class Table(Mapping[str, Any]):
    """All columns that can be read over some axes, each with every position of them."""

    grid: Grid
    axes: Axes
    sizes: tuple[int, ...]

    def __getitem__(self, name: str) -> Any:
        return numpy.broadcast_to(self.grid.read(name, self.axes), self.sizes)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.grid.columns if self.grid.has(name, self.axes))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.grid.has(name, self.axes)


Columns = dict[str, Any]


class Profile(NamedTuple):
    """A GPU at a layout: what one replica's rank is."""

    gpu: int
    layout: Layout


class Offer(NamedTuple):
    """A candidate instance at a layout."""

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
    in_flight: float = 0.0  # at peak; of a rate what follows
    n_places: int = 0  # of a rate: those of the replicas that serve
    wait_fraction: float | None = None  # of a rate: who finds no place free, by exact Erlang-C
    memory_holds: int = 0
    cheapest: Pick | None = None  # the very cheapest
    monthly_usd_ends: tuple[float | None, float | None] = (None, None)  # of the chosen hardware at the band of TPOT
    monthly_usd_measured: tuple[float | None, float | None] = (None, None)  # the same, once a run confirms the TPOT
    without_targets: Pick | None = None  # what memory alone would take, where cheaper
    without_targets_tpot_seconds: float = 0.0  # the time of a token then
    without_ttft: Pick | None = None  # without the target of the first token alone, where cheaper
    without_survival: Pick | None = None  # what the load alone would take, where a loss to survive makes it dearer


class Rental(NamedTuple):
    """What is rented, $ a month, and whether it has little headroom."""

    candidate: Candidate
    n_instances: int
    usd: float
    tight: bool = False


@dataclass(frozen=True)
class Solution:
    """Every quantity of the answer on its axes, and a choice per load. Tables hold NaN where there is none."""

    question: Question
    profiles: tuple[Profile, ...]
    offers: tuple[Offer, ...]
    grid: Grid
    choices: tuple[Choice, ...]
    by_purchase: Mapping[str, list[Rental | None]] = field(default_factory=dict)  # by class, each load's answer in it

    def _table(self, *axes: Axis) -> Table:
        question = self.question
        sizes = {
            "model": len(question.models),
            "gpu": len(question.gpus),
            "layout": len(question.layouts),
            "profile": len(self.profiles),
            "load": len(question.loads),
            "offer": len(self.offers),
            "pace": len(question.models) * len(question.workloads),
        }
        return Table(self.grid, axes, tuple(sizes[one] for one in axes))

    @cached_property
    def models(self) -> Table:
        return self._table("model")

    @cached_property
    def gpus(self) -> Table:
        return self._table("gpu")

    @cached_property
    def loads(self) -> Table:
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
        where: dict[Axis, Any] = {"profile": [profile]} if offer is None else {"offer": [offer]}
        where["load"] = [row]
        return Table(self.grid.along("chosen", where), ("chosen",), (1,))

    def model_of(self, row: int) -> SheetModel:
        """The model of a load, at its precisions."""
        return self.question.models[self.question.loads[row].model]

    def workload_of(self, row: int) -> Workload:
        return self.question.workloads[self.question.loads[row].workload]

    def candidate(self, offer: int) -> Candidate:
        """The instance behind an offer."""
        return self.question.candidates[self.offers[offer].candidate]

    def is_tight(self, row: int) -> bool:
        """Whether the answer of a load has little headroom."""
        one = self.by_purchase[self.question.settings.purchase][row]
        return one is not None and one.tight

    def undivided_profile(self, row: int) -> int:
        """The profile of one undivided GPU, of those chosen for a load; where nothing is chosen, of the first."""
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
    """A load that something holds, with what was chosen for it; its numbers on the GPU and TP chosen, by name."""

    solved: Solution
    row: int
    choice: Choice
    offer: int

    @classmethod
    def of(cls, solved: Solution, row: int) -> Fit | None:
        """The answer of a load, or nothing where nothing holds it."""
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
    def numbers(self) -> Table:
        return self.solved.at(self.row, offer=self.offer)

    def __getitem__(self, name: str) -> float:
        return float(self.numbers[name][0])
