"""Variants of one point, sized together under an engine's own accounting, each with its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from sheetgen.api import SHORT_SPELLINGS, record, size_columns
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.stacks import Launcher
from sheetgen.errors import ScenarioError
from sheetgen.launch.room import left_outside_bytes_per_gpu, needed_outside_bytes_per_gpu
from sheetgen.scenario.amounts import DEFAULTS
from sheetgen.scenario.deployment import Resolved
from sheetgen.units import GIB
from sheetgen.verdict import judge

# Words that mean something only to the engine they were typed for.
ENGINES_OWN = ("engine_version", "gpu_memory_utilization", "block_size", "hybrid_kv_manager")


@dataclass(frozen=True)
class Trial:
    """One sized variant: its record (inputs and results), every quantity of it, and its names."""

    answer: dict[str, Any]
    known: dict[str, float]
    names: Resolved
    fits: bool
    verdict: str
    left_outside_bytes: float
    needed_outside_bytes: float

    @property
    def runs(self) -> bool:
        """Whether the engine runs on the GPU, and the GPU takes both precisions."""
        gpu, names = self.names.gpu, self.names
        precisions = names.weight_dtype in gpu.weights_run and names.kv_cache_dtype in gpu.kv_run
        return gpu.vendor in names.engine.vendors and precisions

    @property
    def starts(self) -> bool:
        """Whether one request of max_model_len fits in the pool."""
        return self.known["max_concurrency"] >= 1

    @property
    def is_roomy(self) -> bool:
        """Whether what the engine does not count has its place beside the pool."""
        return self.left_outside_bytes >= self.needed_outside_bytes

    @property
    def holds(self) -> bool:
        """Whether the engine starts and every sequence that max_num_seqs admits has its cache."""
        return self.runs and self.starts and self.known["sequences_in_pool"] >= self.known["max_num_seqs"]


def inputs_for(engine: str, asked: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, Any]:
    """The typed inputs of a point as they hold for `engine`: a version is its own engine's; a share, a block size or a
    KV manager that was typed with --engine is that engine's, and without it everyone's."""
    own = engine == point["engine"]
    long = {SHORT_SPELLINGS.get(name, name): value for name, value in asked.items()}
    given = {name: value for name, value in long.items() if value is not None and name in DEFAULTS}
    for name in ENGINES_OWN:
        if not own and (name == "engine_version" or asked.get("engine") is not None):
            given.pop(name, None)
    return {**given, "engine": engine}


def trials(rows: Sequence[Mapping[str, Any]], launcher: Launcher, catalog: Catalog) -> list[Trial | None]:
    """Every row of inputs sized; None for one that cannot be. Raises ScenarioError where the first cannot be."""
    columns = {name: [row.get(name) for row in rows] for name in DEFAULTS}
    sized = size_columns(columns, len(rows), catalog)
    error = sized.points.errors[0]
    if error is not None:
        raise ScenarioError(*error.splitlines())
    names = [_with_caches_of(launcher, one) for one in sized.points.names]
    verdicts = judge(sized.known, names)
    ranks = numpy.asarray(sized.known["tensor_parallel_size"])
    uncharged = numpy.where(ranks > 1, launcher.uncharged_gib_at_more_ranks, launcher.uncharged_gib) * GIB
    known = {**sized.known, "uncharged_bytes": uncharged}
    left, needed = left_outside_bytes_per_gpu.of(known), needed_outside_bytes_per_gpu.of(known)
    columns_of = {k: v for k, v in sized.known.items() if getattr(v, "ndim", 0) and v.dtype.kind in "fiub"}
    found: list[Trial | None] = [None] * len(rows)
    for place, row in enumerate(sized.points.good.tolist()):
        numbers = {name: float(column[place]) for name, column in columns_of.items()}
        found[row] = Trial(
            record(sized, row), numbers, names[place], bool(verdicts.fits[place]), verdicts.verdict[place],
            float(left[place]), float(needed[place]),
        )  # fmt: skip
    return found


def _with_caches_of(launcher: Launcher, names: Resolved) -> Resolved:
    """The same names, with the GPU keeping what the engine quantizes by itself, whatever the GPU."""
    added = tuple(d for d in launcher.kv_cache_anywhere if d not in names.gpu.kv_run)
    if names.kv_cache_dtype not in added:
        return names
    return replace(names, gpu=names.gpu.model_copy(update={"kv_run": (*names.gpu.kv_run, *added)}))
