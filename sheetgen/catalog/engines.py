"""Engines: how a serving engine accounts for GPU memory, by version, and its defaults."""

from __future__ import annotations

import re
from typing import Any

from pydantic import PositiveFloat, PositiveInt

from sheetgen.catalog.base import Entry
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.validate import validate
from sheetgen.errors import CatalogError, did_you_mean, shown


class BatchDefault(Entry):
    """The engine's own batch limits on a GPU of at least this memory."""

    min_memory_gib: float
    not_architecture: str
    max_num_seqs: PositiveInt
    max_num_batched_tokens: PositiveInt


class VersionChange(Entry):
    """What differs from a version on."""

    from_version: str
    graphs_in_budget: bool | None = None
    tokens_by_concurrency: bool | None = None
    gpu_memory_utilization: float | None = None
    in_flight_batches: PositiveInt | None = None


class NonTorch(Entry):
    """Memory outside torch per GPU, in GiB, by tensor-parallel size."""

    tp1: float
    tp2: float
    tp4: float
    tp8: float


class Engine(Entry):
    """One engine's memory accounting. Fields in GiB are per GPU."""

    engine: str
    name: str
    default_version: str
    checked_on: str
    vendors: list[str]
    gpu_memory_utilization: PositiveFloat
    block_size: PositiveInt
    batch_defaults: list[BatchDefault]
    batch_defaults_source: str
    sampler_bytes_per_logit: float
    activation_bytes_per_element: float
    activation_source: str
    non_torch_gib: NonTorch
    non_torch_source: str
    cuda_graph_gib: float
    cuda_graph_source: str
    group_stretch: float
    in_flight_batches: PositiveInt
    tokens_by_concurrency: bool
    graphs_in_budget: bool
    accounting_source: str
    versions: list[VersionChange]

    def at(self, version: str | None) -> Engine:
        """This engine with all that `version` changes (the default version where None)."""
        wanted = _version(version or self.default_version)
        changes: dict[str, Any] = {"default_version": version or self.default_version}
        for change in self.versions:
            if _version(change.from_version) <= wanted:
                changes |= change.model_dump(exclude={"from_version"}, exclude_none=True)
        return self.model_copy(update=changes)

    def batch_limits(self, gpu_memory_gib: float, architecture: str) -> tuple[int, int]:
        """Default (max_num_seqs, max_num_batched_tokens) on a GPU of this memory and architecture."""
        for row in self.batch_defaults:
            if gpu_memory_gib >= row.min_memory_gib and not architecture.startswith(row.not_architecture):
                return row.max_num_seqs, row.max_num_batched_tokens
        raise AssertionError(f"{self.engine}: batch_defaults has no row for every GPU")

    def non_torch_at(self, tensor_parallel_size: int) -> float:
        """Non-torch memory per GPU, in GiB, at the nearest measured TP at or below this one."""
        known = self.non_torch_gib
        size = tensor_parallel_size
        return known.tp1 if size < 2 else known.tp2 if size < 4 else known.tp4 if size < 8 else known.tp8


def _version(text: str) -> tuple[int, ...]:
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text)
    if not match:
        raise CatalogError(f"engine version {shown(text)!r} is not a version. Write one like 0.19.0.")
    return tuple(int(x or 0) for x in match.groups())


def load_engine(catalog: Catalog, name: str, version: str | None = None) -> Engine:
    """The engine called `name` at `version` (its default one where None).

    Raises CatalogError for an engine without memory accounting in the catalogs, or a version that is none.
    """
    key = name.strip().lower()
    known = sorted({n for folder in catalog.folders for n in folder.names("engines")})
    if key not in known:
        raise CatalogError(
            f"engine {shown(name)!r} has no memory accounting in catalogs/engines yet. Known: {', '.join(known)}."
            + did_you_mean(key, known)
        )
    return validate(catalog.read_document(f"engines/{key}.yaml"), Engine).at(version)
