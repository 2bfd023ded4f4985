"""`sheetgen check`: every problem of every catalog file in one run; and what the folders of `--catalogs` change: how
many prices, models and GPUs each adds to the catalogs, replaces or leaves as they were."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.base import Entry, Loc
from sheetgen.catalog.engines import Engine, SpeedFile
from sheetgen.catalog.families import FamilyFile
from sheetgen.catalog.gpu_names import words as gpu_words
from sheetgen.catalog.guidance import AssumptionFile, FingerprintFile
from sheetgen.catalog.hardware import Gpu, Instance, InstanceFile, InstanceRow, OwningFile, TierFile, WorkloadFile
from sheetgen.catalog.hosted import HostedFile, model_faults, name_faults
from sheetgen.catalog.load import INDEX, Catalog, Fault, Folder, index_text
from sheetgen.catalog.model import LeftOutFile, Model, stem
from sheetgen.catalog.plausible import Plausible
from sheetgen.catalog.regions import RegionFile
from sheetgen.catalog.signatures import SignatureFile, StartupFile
from sheetgen.catalog.stacks import LeverFile, StackFile
from sheetgen.errors import CatalogError, did_you_mean, shown

_SCHEMAS: dict[str, type[Entry]] = {
    "models": Model,
    "gpus": Gpu,
    "instances": InstanceFile,
    "regions": RegionFile,
    "engines": Engine,
}
_FILES: dict[str, type[Entry]] = {
    one.file_name: one
    for one in (
        WorkloadFile,
        TierFile,
        FingerprintFile,
        SignatureFile,
        StartupFile,
        AssumptionFile,
        LeverFile,
        StackFile,
        SpeedFile,
        OwningFile,
        HostedFile,
        LeftOutFile,
        FamilyFile,
    )
}


def faults_of(catalog: Catalog) -> list[Fault]:
    """Faults of single files first; what holds between files only where the files are sound."""
    found = [(folder, *fault) for folder in catalog.folders for fault in file_faults(folder)]
    if found := found or catalog.taken:
        return found
    return [(folder, *fault) for folder in catalog.folders for fault in _cross_faults(catalog, folder)]


def remarks_of(catalog: Catalog) -> Iterator[Fault]:
    """Implausible prices: somebody confirmed them, or wrote them by hand. Of the first folder, whose prices are those
    that others are held against, each is held against all other rows; but marketplaces take what they get."""
    plausible, rows = Plausible(catalog), {row.id: row for row in catalog.instances()}
    for folder in catalog.folders:
        is_first = folder is catalog.folders[0]
        for provider in folder.names("instances"):
            file = f"instances/{provider}.yaml"
            for i, own in enumerate(folder.entry(file, InstanceFile).instances):
                row = rows[f"{provider}/{own.type}"].model_copy(update={"prices": own.prices})
                if is_first and own.offer == "marketplace":
                    continue
                for purchase, doubt in plausible.doubts_of(row, row.id if is_first else ""):
                    at = [("prices", j) for j, price in enumerate(own.prices) if price.purchase == purchase]
                    where = folder.document(file).at(("instances", i, *(at[0] if at else ())))
                    yield folder, file, f"{where}: {doubt}. Is it right?"
        for provider in folder.names("regions"):
            file = f"regions/{provider}.yaml"
            for loc, doubt in _doubts_of_regions(folder.entry(file, RegionFile), rows, plausible):
                yield folder, file, f"{folder.document(file).at(loc)}: {doubt}. Is it right?"


def _doubts_of_regions(
    file: RegionFile, rows: Mapping[str, Instance], plausible: Plausible
) -> Iterator[tuple[Loc, str]]:
    """The implausible prices of a file of regions, each with its place."""
    for i, block in enumerate(file.prices):
        for kind, by_region in block.usd_per_hour.items():
            row = rows[f"{file.provider}/{kind}"]
            for region, usd in by_region.items():
                if why := plausible.doubt(row.gpu, row.gpu_count, block.purchase, usd, None):
                    what = f"{row.id} {block.purchase} in {region} is {usd:,.6g} $/h, {why}"
                    yield ("prices", i, "usd_per_hour", kind, region), what


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
    for model in folder.entries("models", Model):
        file = f"models/{model.id}.yaml"
        for loc, what in _model_faults(catalog, folder, model):
            yield file, f"{folder.document(file).at(loc)}: {what}"
    for gpu in folder.entries("gpus", Gpu):
        file = f"gpus/{gpu.id}.yaml"
        for loc, what in _gpu_faults(catalog, gpu, is_own=not folder.has_index):
            yield file, f"{folder.document(file).at(loc)}: {what}"
    for provider in folder.names("instances"):
        file = f"instances/{provider}.yaml"
        yield from ((file, fault) for fault in catalog.gpu_faults(folder, folder.entry(file, InstanceFile)))
        for loc, what in _rack_faults(catalog, folder.entry(file, InstanceFile)):
            yield file, f"{folder.document(file).at(loc)}: {what}"
    for provider in folder.names("regions"):
        file = f"regions/{provider}.yaml"
        for loc, what in _region_faults(catalog, folder, file):
            yield file, f"{folder.document(file).at(loc)}: {what}"
    if folder.has(file := OwningFile.file_name):
        yield from ((file, fault) for fault in catalog.gpu_faults(folder, folder.entry(file, OwningFile)))
    if folder.has(file := HostedFile.file_name):
        entry, place_of = folder.entry(file, HostedFile), folder.document(file).at
        faults = list(model_faults(entry, catalog.model_names, place_of))
        yield from ((file, fault) for fault in faults or name_faults(entry, catalog.models(), place_of))


_OWN_FILE = re.compile(r"\S+\.json of [^/]+")  # the source of an entry that was imported from a file


def _model_faults(catalog: Catalog, folder: Folder, model: Model) -> Iterator[tuple[Loc, str]]:
    """Models named as near that are not there, other weights that another model of the folder has too, a shipped one
    that nobody else can find, a name that is left out as well."""
    known, names = catalog.ids("models"), folder.index.models
    for i, other in enumerate(model.nearest):
        if other not in known:
            near = did_you_mean(other, known)
            yield ("nearest", i), f"nearest has {other}, which is not in catalogs/models.{near}"
    for i, weights in enumerate(model.same_architecture):
        others = [one for one in names.get(stem(weights), model.id).split() if one != model.id]
        if others:
            what = f"{weights} is a name of {' and '.join(others)} as well"
            yield ("same_architecture", i), f"{what}. Name it in one of them."
    if folder.has_index and model.kind == "model":
        if not model.hf_id:
            yield ("name",), "hf_id is missing: the repository by which people ask for it, as Qwen/Qwen3-8B"
        if _OWN_FILE.fullmatch(model.source):
            yield ("source",), f"source is {model.source!r}, a file of yours. Say where it was published."
    if catalog.has(LeftOutFile):
        left = {stem(name): name for one in catalog.file(LeftOutFile).models for name in one.names}
        for name in dict.fromkeys(map(stem, [model.id, *model.names()[0]])):
            if name in left:
                yield (
                    ("id",),
                    f"{left[name]} is entered here, and {LeftOutFile.file_name} refuses it. Take it out there.",
                )


def _gpu_faults(catalog: Catalog, gpu: Gpu, is_own: bool) -> Iterator[tuple[Loc, str]]:
    """A link to the host that nothing describes, names of tools that do not lead to the GPU, one that is left out as
    well. is_own: whether the file is the user's own, which need not name the link."""
    links = [link.name for link in catalog.file(LeverFile).host_links] if catalog.has(LeverFile) else []
    if gpu.host_link and links and gpu.host_link not in links:
        near = did_you_mean(gpu.host_link, links) or f" It has {', '.join(links)}."
        yield ("host_link",), f"host_link {gpu.host_link!r} is none of {LeverFile.file_name}.{near}"
    if links and not is_own and "host_link" not in gpu.model_fields_set:
        what = f"host_link is missing: {', '.join(links)}, or null where its link to the host is not known."
        yield ("interconnect",), what
    for i, name in enumerate(gpu.device_names):
        read = catalog.devices.find(f"GPU 0: {name}")
        written = (name, f"GPU 0: {name} (UUID: GPU-0a1b)", name.replace(" ", "-"), name.replace(" ", "_").lower())
        meant = {_meant(catalog, text) for text in written}
        if meant != {gpu.id} or read is None or read[1] != name:
            what = ", ".join(sorted(meant - {gpu.id})) or "a part of it"
            yield ("device_names", i), f"{name!r}, as tools print it, is read as {what}. Give the name as printed."
    if catalog.has(LeftOutFile):
        for name in (gpu.id, *gpu.aliases, *gpu.device_names):
            if reason := catalog.file(LeftOutFile).gpu_reason(gpu_words(name).core):
                yield (
                    ("id",),
                    f"{name} is entered here, and {LeftOutFile.file_name} refuses it: {reason}. Take it out there.",
                )


def _meant(catalog: Catalog, name: str) -> str:
    try:
        return catalog.gpu(name).id
    except CatalogError as error:
        return error.problems[0]


def _rack_faults(catalog: Catalog, file: InstanceFile) -> Iterator[tuple[Loc, str]]:
    """Machines of as many GPUs of one kind as another row has, of which one alone is said to be part of a rack."""
    try:
        listed = catalog.instances()
    except CatalogError:
        return  # which is told of the rows that it is about
    domains = {(row.gpu, row.gpu_count): (row.nvlink_domain_gpus, row.id) for row in listed if row.nvlink_domain_gpus}
    rows = {row.type: row for row in listed if row.provider == file.provider}
    for i, own in enumerate(file.instances):
        row = rows[own.type]
        joined, other = domains.get((row.gpu, row.gpu_count), (None, ""))
        if joined and row.nvlink_domain_gpus != joined:
            what = f"{other}, of as many {row.gpu}, has nvlink_domain_gpus: {joined}, and {row.id} has not"
            yield ("instances", i, "type"), f"{what}. Say the same of both."


def _region_faults(catalog: Catalog, folder: Folder, file: str) -> Iterator[tuple[Loc, str]]:
    """Prices by region of types without a row, and of a row's own region, which stand in the row."""
    found = folder.entry(file, RegionFile)
    own = {row.type: row.region for row in catalog.instances() if row.provider == found.provider}
    for i, block in enumerate(found.prices):
        for kind, by_region in block.usd_per_hour.items():
            at = ("prices", i, "usd_per_hour", kind)
            if kind not in own:
                yield at, f"{kind} is no type of instances/{found.provider}.yaml.{did_you_mean(kind, own)}"
            elif own[kind] in by_region:
                yield (*at, own[kind]), f"{own[kind]} is the region of {kind}'s row. State the price there."


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
    for provider in folder.names("regions"):
        of_regions, own = _prices_of_regions(below, provider), _prices_of_regions([folder], provider)
        prices += _done({key: usd for key, usd in of_regions.items() if key in own}, own)
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


def _prices_of_regions(folders: Iterable[Folder], provider: str) -> dict[str, float]:
    """Prices by class, type and region; a later folder's stand in place of an earlier one's."""
    file = f"regions/{provider}.yaml"
    blocks = (block for one in folders if one.has(file) for block in one.entry(file, RegionFile).prices)
    return {
        f"{block.purchase} {kind} {region}": usd
        for block in blocks
        for kind, by_region in block.usd_per_hour.items()
        for region, usd in by_region.items()
    }


def _entries(folders: Iterable[Folder], part: str, names: Iterable[str], schema: type[Entry]) -> dict[str, Entry]:
    """Those of these entries that the folders have, each as the last of them has it."""
    files = {name: f"{part}/{name}.yaml" for name in names}
    return {name: one.entry(file, schema) for one in folders for name, file in files.items() if one.has(file)}


def _done(before: Mapping[str, Any], after: Mapping[str, Any]) -> Counter[str]:
    """How many of `after` are new, or another than before; and how many of `before` are gone."""
    changed = (
        "added" if name not in before else "as before" if before[name] == value else "replaced"
        for name, value in after.items()
    )
    return Counter[str]([*changed, *(["taken away"] * len(before.keys() - after.keys()))])
