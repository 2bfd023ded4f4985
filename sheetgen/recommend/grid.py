"""Which axes each quantity of a sheet has, and the one way in which a formula is worked out over its axes.

A column is kept with the axes that it has. Reading it over others follows what one axis says of another: an offer is
of a profile (a GPU at a layout), a load of a model. numpy's shapes follow from TABLES; nobody else aligns columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy

from sheetgen import cost, estimate
from sheetgen.formula import Formula
from sheetgen.sizing import kv_cache, memory, parallelism, weights

# pace: a model and a workload, as speed does not depend on the requests in flight. layout: a tensor-parallel size.
# profile: a GPU at a layout. offer: a candidate instance at a layout. chosen: what was chosen for some loads.
Axis = Literal["model", "gpu", "layout", "profile", "pace", "load", "offer", "chosen"]
Axes = tuple[Axis, ...]
Named = Formula | tuple[str, Formula]  # under another name where a formula is read for something else

TARGETS = (parallelism.strides_within_targets, parallelism.batch_limit)
# What one replica on a profile takes and holds of a load, and how many replicas the load needs.
LOAD = (
    kv_cache.charge_bytes, parallelism.layers_that_fit, parallelism.pipeline_stages, parallelism.sequences,
    parallelism.sure_sequences, parallelism.shared_replicas, parallelism.staged_instances,
)  # fmt: skip
# Every table of a sheet: its axes, and its quantities in the order in which they come about.
TABLES: dict[str, tuple[Axes, tuple[Named, ...]]] = {
    "models": (("model",), (*estimate.MODEL, *estimate.WORK)),
    "shards": (("model", "layout"), estimate.SHARD),
    "profiles": (
        ("profile",),
        (
            ("kv_pool_error_bytes_low", parallelism.pool_error_bytes),
            memory.staged_non_torch_bytes_per_gpu,
            memory.memory_budget_bytes,
        ),
    ),
    # What a model leaves on a profile: pools are those without pipeline stages, and no sheet has a draft model.
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
    "steps": (("pace", "profile"), (*estimate.STEP, *TARGETS)),
    "cells": (
        ("load",),
        (kv_cache.charged_tokens, parallelism.load_requests, parallelism.users, parallelism.within_limit),
    ),
    "sequences": (("load", "profile"), LOAD),
    "offers": (
        ("offer",),
        (
            ("price_usd_per_hour", cost.discounted_usd_per_hour),
            parallelism.replicas_per_instance,
            parallelism.larger_tensor_parallel_size,
        ),
    ),
    # Per load and offer: replicas, whole instances, $ an hour and a month; NaN where it cannot hold the load.
    "costs": (
        ("load", "offer"),
        (
            parallelism.n_replicas, cost.n_instances, cost.paid_hours_per_month, cost.hourly_usd, cost.monthly_usd,
        ),
    ),
}  # fmt: skip
GRID: dict[str, Axes] = {
    one.name if isinstance(one, Formula) else one[0]: axes for axes, formulas in TABLES.values() for one in formulas
}


@dataclass(frozen=True)
class Grid:
    """Columns by name, each with its axes, the latest last; and where a position of one axis stands on another.

    A column with no axes holds for the whole sheet. A side of length 1 stands for all of its axis.
    """

    columns: dict[str, tuple[tuple[Axes, Any], ...]]
    places: Mapping[tuple[Axis, Axis], Any]  # (an axis, another): a position on the other for each of the one

    def put(self, axes: Axes, columns: Mapping[str, Any]) -> None:
        """Add columns; they are read in place of earlier ones wherever their axes can be."""
        for name, column in columns.items():
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
        for own, column in reversed(self.columns.get(name, ())):
            targets_of = [self._target(one, axes) for one in own]
            if None not in targets_of:
                return self._aligned(own, column, axes, targets_of)  # type: ignore[arg-type]
        raise KeyError(f"{name!r} is nowhere in the grid over {', '.join(axes)}")

    def _target(self, own: Axis, axes: Axes) -> int | None:
        if own in axes:
            return axes.index(own)
        return next((i for i, one in enumerate(axes) if (one, own) in self.places), None)

    def _aligned(self, own: Axes, column: Any, axes: Axes, targets_of: list[int]) -> Any:
        if own == axes or not own:
            return column
        index = []
        for side, (one, target) in zip(column.shape, zip(own, targets_of, strict=True), strict=True):
            at = numpy.zeros(1, int) if side == 1 else None
            if at is None:
                at = numpy.arange(side) if axes[target] == one else self.places[axes[target], one]
            index.append(at.reshape([-1 if i == target else 1 for i in range(len(axes))]))
        return column[tuple(index)]

    def has(self, name: str, axes: Axes) -> bool:
        """Whether a column can be read over `axes`."""
        return any(None not in [self._target(one, axes) for one in own] for own, _ in self.columns.get(name, ()))

    def evaluate(self, formulas: Iterable[Named], axes: Axes, also: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Each formula in turn over `axes`, put into the grid; `also` are values that it holds for this once."""
        known, found = dict(also or {}), {}
        for named in formulas:
            name, one = (named.name, named) if isinstance(named, Formula) else named
            for read in one.inputs:
                if read not in known:
                    known[read] = self.read(read, axes)
            found[name] = known[name] = one.of(known)
        self.put(axes, found)
        return found

    def table(self, axes: Axes, sizes: tuple[int, ...]) -> Table:
        return Table(self, axes, sizes)


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
