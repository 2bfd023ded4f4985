"""`sheetgen check`: every problem of every catalog file in one run."""

from __future__ import annotations

from collections.abc import Iterator

from sheetgen.catalog.base import Entry
from sheetgen.catalog.engines import Engine, SpeedFile
from sheetgen.catalog.guidance import AssumptionFile, FingerprintFile
from sheetgen.catalog.hardware import Gpu, InstanceFile, OwningFile, TierFile, WorkloadFile
from sheetgen.catalog.hosted import HostedFile, model_faults
from sheetgen.catalog.load import INDEX, Catalog, Fault, Folder, index_text
from sheetgen.catalog.model import LeftOutFile, Model
from sheetgen.catalog.plausible import Plausible
from sheetgen.catalog.stacks import LeverFile, StackFile
from sheetgen.errors import CatalogError, did_you_mean, shown

_SCHEMAS: dict[str, type[Entry]] = {"models": Model, "gpus": Gpu, "instances": InstanceFile, "engines": Engine}
_FILES: dict[str, type[Entry]] = {one.file_name: one for one in (
    WorkloadFile, TierFile, FingerprintFile, AssumptionFile, LeverFile, StackFile, SpeedFile, OwningFile,
    HostedFile, LeftOutFile,
)}  # fmt: skip


def faults_of(catalog: Catalog) -> list[Fault]:
    """Faults of single files first; what holds between files only where the files are sound."""
    found = [(folder, *fault) for folder in catalog.folders for fault in file_faults(folder)]
    if found := found or catalog.taken:
        return found
    return [(folder, *fault) for folder in catalog.folders for fault in _cross_faults(catalog, folder)]


def remarks_of(catalog: Catalog) -> Iterator[Fault]:
    """Prices of folders over the first one that hardly can be: somebody confirmed them, or wrote them by hand."""
    plausible, rows = Plausible(catalog), {row.id: row for row in catalog.instances()}
    for folder in catalog.folders[1:]:
        for provider in folder.names("instances"):
            file = f"instances/{provider}.yaml"
            for i, own in enumerate(folder.entry(file, InstanceFile).instances):
                for purchase, doubt in plausible.doubts_of(rows[f"{provider}/{own.type}"]):
                    at = [("prices", j) for j, price in enumerate(own.prices) if price.purchase == purchase]
                    where = folder.document(file).at(("instances", i, *(at[0] if at else ())))
                    yield folder, file, f"{where}: {doubt}. Is it right?"


def file_faults(folder: Folder) -> Iterator[tuple[str, str]]:
    """What is wrong with each file by itself, and which are not read for their names."""
    for path in sorted(folder.path.rglob("*")):
        relative = path.relative_to(folder.path).as_posix()
        if not path.is_file() or relative == INDEX or path.name.startswith("."):
            continue
        part = relative.split("/", 1)[0]
        if path.suffix != ".yaml":
            if part in _SCHEMAS:
                yield relative, f"{folder.shown_as}/{relative}: is not read. Name it {shown(path.stem)}.yaml."
            continue
        schema = _SCHEMAS.get(part) or _FILES.get(relative)
        try:
            if schema is None:
                folder.document(relative)
            else:
                folder.entry(relative, schema)
        except CatalogError as error:
            yield from ((relative, problem) for problem in error.problems)


def _cross_faults(catalog: Catalog, folder: Folder) -> Iterator[tuple[str, str]]:
    index, clashes = folder.built_index()
    for clash in clashes:
        yield "", f"{folder.shown_as}: {clash}. Give each its own name."
    if folder.has_index and not clashes:
        target = folder.path / INDEX
        if not target.is_file() or target.read_text(encoding="utf-8") != index_text(index):
            older = "is older than the files. Write it anew: sheetgen check --write-index."
            yield INDEX, f"{folder.shown_as}/{INDEX}: {older}"
            return
    known = catalog.ids("models")
    for model in folder.entries("models", Model):
        for i, other in enumerate(model.nearest):
            if other not in known:
                file, near = f"models/{model.id}.yaml", did_you_mean(other, known)
                at = folder.document(file).at(("nearest", i))
                yield file, f"{at}: nearest has {other}, which is not in catalogs/models.{near}"
    for provider in folder.names("instances"):
        file = f"instances/{provider}.yaml"
        yield from ((file, fault) for fault in catalog.gpu_faults(folder, folder.entry(file, InstanceFile)))
    if folder.has(file := OwningFile.file_name):
        yield from ((file, fault) for fault in catalog.gpu_faults(folder, folder.entry(file, OwningFile)))
    if folder.has(file := HostedFile.file_name):
        faults = model_faults(folder.entry(file, HostedFile), known, folder.document(file).at)
        yield from ((file, fault) for fault in faults)
