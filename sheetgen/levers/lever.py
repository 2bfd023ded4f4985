"""A lever: one change, what is rented without and with it, its cost beside money; and which a reader sees first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy

from sheetgen import cost
from sheetgen.formula import same_money
from sheetgen.recommend import Solution
from sheetgen.recommend.solution import Axes, Table
from sheetgen.recommend.solve import cheapest_position
from sheetgen.scenario.market import Candidate
from sheetgen.sizing import parallelism

# What the requests in flight decide: the last columns of the tables.
OF_REQUESTS = (
    parallelism.load_requests, parallelism.shared_replicas, parallelism.staged_instances, parallelism.n_replicas,
    cost.n_instances, cost.hourly_usd, cost.monthly_usd,
)  # fmt: skip


@dataclass(frozen=True)
class Rented:
    """What a load takes. `n_gpus` are those at work (replicas x TP x PP), as in the cells of the JSON."""

    candidate: Candidate
    n_instances: int
    n_replicas: int
    n_gpus: int
    monthly_usd: float

    @classmethod
    def of(cls, solved: Solution, row: int) -> Rented | None:
        """What was chosen for a load, or nothing where nothing holds it."""
        choice = solved.choices[row]
        if choice.offer is None:
            return None
        size = solved.tensor_parallel_size(choice.offer) * choice.pipeline_parallel_size
        return cls(
            solved.candidate(choice.offer),
            choice.n_instances,
            choice.n_replicas,
            choice.n_replicas * size,
            choice.monthly_usd,
        )


def cheapest(
    tables: Solution, rows: Sequence[int], requests: Sequence[int], memory_above: Sequence[int]
) -> list[Rented | None]:
    """What loads of the tables take with other requests in flight, on GPUs that show more bytes than `memory_above`.

    Chosen as in the sheet itself; nothing where nothing holds a load.
    """
    axes: Axes = ("chosen", "offer")
    grid = tables.grid.along("chosen", {"load": rows})
    grid.put(("chosen",), {"concurrent_requests": numpy.array(requests, float)})
    costs = grid.evaluate(OF_REQUESTS, axes)
    memory = numpy.array([tables.candidate(offer).gpu.memory.engine_bytes for offer in range(len(tables.offers))])
    monthly = numpy.where(memory > numpy.array(memory_above)[:, None], costs["monthly_usd"], numpy.nan)
    known = Table(grid, axes, monthly.shape)
    best, position = cheapest_position(monthly, costs["n_instances"], known["tensor_parallel_size"])
    found: list[Rented | None] = [None] * len(rows)
    for i in numpy.flatnonzero(~numpy.isnan(best)).tolist():
        offer = int(position[i]) - 1
        count, replicas = int(costs["n_instances"][i, offer]), int(costs["n_replicas"][i, offer])
        size = tables.tensor_parallel_size(offer) * int(known["pipeline_stages"][i, offer])
        found[i] = Rented(tables.candidate(offer), count, replicas, replicas * size, float(monthly[i, offer]))
    return found


@dataclass(frozen=True)
class Offload:
    """Weights in host memory, as an indication: bytes of each GPU that every step of decoding reads over the link.

    Seconds are the least that the link allows: each token of each request waits for them.
    """

    n_gpus: int
    bytes_per_gpu: float
    link: str
    link_bytes_per_second: int
    seconds_per_token: float
    nvme_seconds_per_token: float
    parked_kv_bytes_per_gpu: float
    parked_kv_seconds: float


@dataclass(frozen=True)
class Lever:
    """What one change buys for one load.

    `before` and `after` are nothing where nothing holds the load. `why_not` says why the change does not apply, and
    is empty where it does. `offload` has an indication in place of a price.
    """

    id: str
    family: str
    words: str  # "FP8 KV cache"
    changed: str  # "KV cache bf16 to fp8"
    note: str  # what the change costs beside money
    before: Rented | None
    after: Rented | None = None
    why_not: str = ""
    offload: Offload | None = None

    @property
    def priced(self) -> bool:
        """Whether the change applies and has a price."""
        return self.after is not None

    @cached_property
    def saved_usd(self) -> float | None:
        """Dollars a month, 0 where the month costs the same; negative where it costs more, nothing without a price."""
        if self.before is None or self.after is None:
            return None
        before, after = self.before.monthly_usd, self.after.monthly_usd
        return 0.0 if same_money(before, after) else before - after

    @property
    def saved_fraction(self) -> float | None:
        """The same as a share of what the month costs without the change."""
        saved = self.saved_usd
        return None if saved is None or self.before is None else saved / self.before.monthly_usd

    @property
    def now_fits(self) -> bool:
        """Whether something holds the load only with the change."""
        return self.before is None and self.after is not None


EveryLever = Sequence[Sequence[Lever]]  # of every load of a sheet, in their order


ANOTHER_MODEL = "model"  # a family that no ranking by dollars holds: quality is not compared


def rank(lever: Lever) -> float:
    """Sorts levers: what makes a load fit comes first, then by dollars saved, where 12 digits tell them apart."""
    return -math.inf if lever.now_fits else -float(f"{lever.saved_usd or 0.0:.12g}")


def in_order(levers: Iterable[Lever]) -> list[Lever]:
    """The levers that have a price, those that save most first; where they tie, as the catalog has them."""
    return sorted((one for one in levers if one.priced), key=rank)


def best(by_row: Mapping[int, Sequence[Lever]], count: int) -> list[tuple[int, Lever]]:
    """The `count` best levers of some loads, with their rows: one of each family and load, none that costs more.

    Where fewer save anything, those that change nothing follow: that they do not is worth knowing. Another model is
    never among them.
    """
    order = {
        (row, place): (rank(one), place)
        for row, levers in by_row.items()
        for place, one in enumerate(levers)
        if one.priced and one.family != ANOTHER_MODEL and rank(one) <= 0
    }
    chosen: dict[tuple[int, str], tuple[int, Lever]] = {}
    for row, place in sorted(order, key=lambda key: order[key]):
        lever = by_row[row][place]
        chosen.setdefault((row, lever.family), (row, lever))
    return list(chosen.values())[:count]
