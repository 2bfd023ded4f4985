"""A cell of the answer with what was chosen for it, and its numbers by name: what all parts of the page read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.recommend import Choice, Solution
from sheetgen.scenario.market import Candidate


def at(columns: Mapping[str, Any], name: str, row: int, column: int) -> float:
    """One number of a table whose columns may be as wide or as long as one cell."""
    value: Any = columns[name]
    if getattr(value, "ndim", 0) == 2:
        return float(value[min(row, value.shape[0] - 1), min(column, value.shape[1] - 1)])
    return float(value[row]) if getattr(value, "ndim", 0) == 1 else float(value)


def headline_rows(solved: Solution) -> tuple[int, ...]:
    """The cells of the headline load, one for each model in its order."""
    load = solved.question.headline
    return tuple(i for i, c in enumerate(solved.question.loads) if (c.workload, c.tier) == load)


def largest_where(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number up to `high` at which something still holds that holds at `low`."""
    while low < high:
        middle = -(-(low + high) // 2)
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


@dataclass(frozen=True)
class Fit:
    """A cell that something holds, with what was chosen for it."""

    solved: Solution
    row: int
    choice: Choice
    offer: int

    @classmethod
    def of(cls, solved: Solution, row: int) -> Fit | None:
        """The answer of a cell, or nothing where nothing holds it."""
        choice = solved.choices[row]
        return None if choice.offer is None else cls(solved, row, choice, choice.offer)

    @property
    def model(self) -> int:
        return self.solved.question.loads[self.row].model

    @property
    def candidate(self) -> Candidate:
        return self.solved.candidate(self.offer)

    @property
    def profile(self) -> int:
        return self.solved.offers[self.offer].profile

    @property
    def tensor_parallel_size(self) -> int:
        return self.solved.tensor_parallel_size(self.offer)

    @property
    def gpus_per_replica(self) -> int:
        return self.tensor_parallel_size * self.choice.pipeline_parallel_size

    @property
    def gpus_used(self) -> int:
        return self.gpus_per_replica * self.choice.n_replicas

    @property
    def gpus_rented(self) -> int:
        return self.choice.n_instances * self.candidate.gpu_count

    def pool(self, name: str) -> float:
        """A number of the model on the GPU and TP that were chosen."""
        return at(self.solved.pools, name, self.model, self.profile)

    def load(self, name: str) -> float:
        """A number of the cell on the GPU and TP that were chosen."""
        return at(self.solved.sequences, name, self.row, self.profile)


def used_instances(solved: Solution) -> dict[int, list[int]]:
    """Candidates that the page recommends, each with its loads; those of the headline load first."""
    found: dict[int, list[int]] = {}
    for row in (*headline_rows(solved), *range(len(solved.choices))):
        fit = Fit.of(solved, row)
        if fit is not None and row not in found.setdefault(solved.offers[fit.offer].candidate, []):
            found[solved.offers[fit.offer].candidate].append(row)
    return found
