"""What the folders of `--catalogs` change: how many prices, models and GPUs each adds to the catalogs, replaces or
leaves as they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.base import Entry
from sheetgen.catalog.hardware import Gpu, InstanceFile, InstanceRow
from sheetgen.catalog.load import Catalog, Folder
from sheetgen.catalog.model import Model

DONE = ("added", "replaced", "taken away", "as before")


@dataclass(frozen=True)
class Overlay:
    """What one folder does to the catalogs below it: how many of each are done what with."""

    folder: str
    prices: Counter[str]
    models: Counter[str]
    gpus: Counter[str]
    files: tuple[str, ...]  # engines, workloads, tiers ...: read in place of those below


def overlays(catalog: Catalog) -> list[Overlay]:
    """What each folder over the first one changes. Raises CatalogError for a file that is broken."""
    return [_overlay(catalog.folders[:i], folder) for i, folder in enumerate(catalog.folders) if i]


def _overlay(below: Sequence[Folder], folder: Folder) -> Overlay:
    prices = Counter[str]()
    for provider in folder.names("instances"):
        before = _rows(below, provider)
        for row in _rows([folder], provider).values():
            old = _prices(before[row.type]) if row.type in before else {}
            prices += _done(old, _prices(row))
    models, gpus = (
        _done(_entries(below, part, folder.names(part), schema), _entries([folder], part, folder.names(part), schema))
        for part, schema in (("models", Model), ("gpus", Gpu))
    )
    files = (*(f"engines/{name}.yaml" for name in folder.names("engines")), *folder.files_like(below[0]))
    return Overlay(folder.shown_as, prices, models, gpus, files)


def _rows(folders: Iterable[Folder], provider: str) -> dict[str, InstanceRow]:
    """A provider's rows by type; a later folder's stand in place of an earlier one's."""
    file = f"instances/{provider}.yaml"
    return {row.type: row for one in folders if one.has(file) for row in one.entry(file, InstanceFile).instances}


def _prices(row: InstanceRow) -> dict[str, float]:
    return {price.purchase: price.usd_per_hour for price in row.prices}


def _entries(folders: Iterable[Folder], part: str, names: Iterable[str], schema: type[Entry]) -> dict[str, Entry]:
    """Those of these entries that the folders have, each as the last of them has it."""
    files = {name: f"{part}/{name}.yaml" for name in names}
    return {name: one.entry(file, schema) for one in folders for name, file in files.items() if one.has(file)}


def _done(before: Mapping[str, Any], after: Mapping[str, Any]) -> Counter[str]:
    """How many of `after` are new, or another than before; and how many of `before` are gone."""
    changed = ("added" if name not in before else "as before" if before[name] == value else "replaced"
               for name, value in after.items())  # fmt: skip
    return Counter[str]([*changed, *(["taken away"] * len(before.keys() - after.keys()))])
