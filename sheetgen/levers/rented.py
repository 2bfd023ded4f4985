"""What a load takes: the cheapest candidate, how many of it, and what the month costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from sheetgen import cost
from sheetgen.recommend import Solution
from sheetgen.recommend.choose import cheapest_position
from sheetgen.recommend.grid import Axes, Table
from sheetgen.scenario.candidates import Candidate
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
