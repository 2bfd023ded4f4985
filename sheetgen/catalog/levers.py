"""The schema of levers.yaml: what changes of a deployment are called and cost, host links, what engines lack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field

from sheetgen.catalog.base import Count, Date, DtypeName, Entry, Id, Label, Many, Text, twice, validate
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.reader import Loc

LEVERS = "levers.yaml"
Family = Literal["precision", "prefix", "context", "users", "hardware", "model", "offload"]
LeverId = Literal[
    "fp8-kv-cache", "fp8-weights", "fp8-both", "fp4-weights", "prefix-cache", "half-context", "shorter-context",
    "fewer-users", "users-for-less", "bigger-gpus", "leaner-model", "host-memory",
]  # fmt: skip


class LeverWords(Entry):
    """One kind of change: what it is called, and what it costs beside money. A page shows one of each family."""

    id: LeverId
    family: Family
    words: Label
    cost: Text
    source: Text


class HostLink(Entry):
    """The link between a host and one GPU: bytes per second one way, and the GPUs that have it."""

    name: Label
    bytes_per_second: Count
    gpus: Many[Id]
    source: Text


class NotRun(Entry):
    """Precisions that an engine without a launcher does not run, whether requests share a prefix's cache there, and
    what it has instead."""

    engine: Id
    weight_dtypes: Many[DtypeName] = ()
    kv_cache_dtypes: Many[DtypeName] = ()
    shared_prefix: bool = True
    instead: Text
    source: Text


class LeverFile(Entry):
    checked_on: Date
    levers: Annotated[tuple[LeverWords, ...], Field(strict=False, min_length=1)]
    host_links: Many[HostLink]
    nvme_bytes_per_second: Count
    nvme_source: Text
    not_run: Many[NotRun] = ()

    def problems(self) -> Iterator[tuple[Loc, str]]:
        ids = [one.id for one in self.levers]
        yield from twice(ids, lambda i: ("levers", i, "id"), "id {}")
        missing = [one for one in get_args(LeverId) if one not in ids]
        if missing:
            yield ("levers",), f"levers lacks {', '.join(missing)}"
        seen: set[str] = set()
        for i, link in enumerate(self.host_links):
            for gpu in link.gpus:
                if gpu in seen:
                    yield ("host_links", i, "gpus"), f"gpu {gpu} is given twice. Keep one"
                seen.add(gpu)

    def link(self, gpu_id: str) -> HostLink | None:
        """The host link of a GPU, or nothing where it is not known."""
        return next((one for one in self.host_links if gpu_id in one.gpus), None)


def lever_file(catalog: Catalog) -> LeverFile:
    """levers.yaml of the last folder that has one, checked."""
    return validate(catalog.read_document(LEVERS), LeverFile)
