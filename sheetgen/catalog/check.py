"""`sheetgen check`: every problem of every catalog file in one run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sheetgen.catalog.base import Entry, validate
from sheetgen.catalog.engines import Engine
from sheetgen.catalog.folder import INDEX, Folder, index_text
from sheetgen.catalog.guidance import AssumptionFile, FingerprintFile
from sheetgen.catalog.hardware import Gpu, InstanceFile, TierFile, WorkloadFile
from sheetgen.catalog.levers import LEVERS, LeverFile
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model
from sheetgen.catalog.owning import OWNING, OwningFile, gpu_faults
from sheetgen.catalog.speed import SPEED, SpeedFile
from sheetgen.catalog.stacks import STACKS, StackFile
from sheetgen.errors import CatalogError, did_you_mean, shown

_SCHEMAS: dict[str, type[Entry]] = {"models": Model, "gpus": Gpu, "instances": InstanceFile, "engines": Engine}
_FILES: dict[str, type[Entry]] = {
    "workloads.yaml": WorkloadFile, "tiers.yaml": TierFile, "fingerprints.yaml": FingerprintFile,
    "assumptions.yaml": AssumptionFile, LEVERS: LeverFile, STACKS: StackFile, SPEED: SpeedFile, OWNING: OwningFile,
}  # fmt: skip


def problems_of(catalog: Catalog) -> list[str]:
    """Faults of single files first; what holds between files only where the files are sound."""
    out = [problem for folder in catalog.folders for problem in _file_problems(folder)]
    return out or [problem for folder in catalog.folders for problem in _cross_problems(catalog, folder)]


def _file_problems(folder: Folder) -> Iterator[str]:
    for path in sorted(folder.path.rglob("*")):
        relative = path.relative_to(folder.path).as_posix()
        if not path.is_file() or relative == INDEX or path.name.startswith("."):
            continue
        part = relative.split("/", 1)[0]
        if path.suffix != ".yaml":
            if part in _SCHEMAS:
                yield f"{folder.shown_as}/{relative}: is not read. Name it {shown(path.stem)}.yaml."
            continue
        yield from _one(folder, relative, _SCHEMAS.get(part) or _FILES.get(relative))


def _one(folder: Folder, relative: str, schema: type[Entry] | None) -> Iterator[str]:
    try:
        if schema is None:
            folder.document(relative)
        elif relative in _FILES or schema is Engine:
            validate(folder.document(relative), schema)
        else:
            folder.entry(relative, schema)
    except CatalogError as error:
        yield from error.problems


def _cross_problems(catalog: Catalog, folder: Folder) -> Iterator[str]:
    index, clashes = folder.built_index()
    for clash in clashes:
        yield f"{folder.shown_as}: {clash}. Give each its own name."
    if folder.has_index and not clashes:
        target = Path(folder.path / INDEX)
        if not target.is_file() or target.read_text(encoding="utf-8") != index_text(index):
            yield f"{folder.shown_as}/{INDEX}: is older than the files. Write it anew: sheetgen check --write-index."
            return
    known = {model_id for layer in catalog.folders for model_id in layer.names("models")}
    for model in folder.models():
        for i, other in enumerate(model.nearest):
            if other not in known:
                at = folder.document(f"models/{model.id}.yaml").at(("nearest", i))
                near = did_you_mean(other, known)
                yield f"{at}: nearest has {other}, which is not in catalogs/models.{near}"
    for provider in folder.names("instances"):
        relative = f"instances/{provider}.yaml"
        yield from catalog.gpu_faults(folder, relative, folder.entry(relative, InstanceFile))
    if folder.has(OWNING):
        document = folder.document(OWNING)
        yield from gpu_faults(catalog, document, validate(document, OwningFile))
