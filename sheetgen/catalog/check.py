"""`sheetgen check`: every problem of every catalog file in one run; and the effect of the folders of `--catalogs`: how
many prices, models and GPUs each adds, replaces or leaves unchanged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    schema.file_name: schema
    for schema in (
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
    """The faults of single files, or, where there are none, those between files."""
    faults = [(folder, *fault) for folder in catalog.folders for fault in file_faults(folder)]
    if faults := faults or catalog.taken:
        return faults
    return [(folder, *fault) for folder in catalog.folders for fault in _cross_faults(catalog, folder)]


def remarks_of(catalog: Catalog) -> Iterator[Fault]:
    """Implausible prices, as questions: they are valid, and somebody may have confirmed them.

    A price of the first folder, which is the reference for the others, is compared with all other rows of that folder;
    its marketplace rows are not judged.
    """
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
                    price_locs = [("prices", j) for j, price in enumerate(own.prices) if price.purchase == purchase]
                    where = folder.document(file).at(("instances", i, *(price_locs[0] if price_locs else ())))
                    yield folder, file, f"{where}: {doubt}. Is it right?"
        for provider in folder.names("regions"):
            file = f"regions/{provider}.yaml"
            for loc, doubt in _doubts_of_regions(folder.entry(file, RegionFile), rows, plausible):
                yield folder, file, f"{folder.document(file).at(loc)}: {doubt}. Is it right?"


def _doubts_of_regions(
    file: RegionFile, rows: Mapping[str, Instance], plausible: Plausible
) -> Iterator[tuple[Loc, str]]:
    """The implausible prices of a region file, each with its location."""
    for i, block in enumerate(file.prices):
        for kind, by_region in block.usd_per_hour.items():
            row = rows[f"{file.provider}/{kind}"]
            for region, usd in by_region.items():
                if why := plausible.doubt(row.gpu, row.gpu_count, block.purchase, usd, None):
                    sentence = f"{row.id} {block.purchase} in {region} is {usd:,.6g} $/h, {why}"
                    yield ("prices", i, "usd_per_hour", kind, region), sentence


def file_faults(folder: Folder) -> Iterator[tuple[str, str]]:
    """The problems of each file by itself, and the files that are not read because of their name."""
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
    """The contradictions between files of a folder, or with the catalogs below it: file and sentence."""
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
        for loc, problem in _model_faults(catalog, folder, model):
            yield file, f"{folder.document(file).at(loc)}: {problem}"
    for gpu in folder.entries("gpus", Gpu):
        file = f"gpus/{gpu.id}.yaml"
        for loc, problem in _gpu_faults(catalog, gpu, is_own=not folder.has_index):
            yield file, f"{folder.document(file).at(loc)}: {problem}"
    for provider in folder.names("instances"):
        file = f"instances/{provider}.yaml"
        yield from ((file, fault) for fault in catalog.gpu_faults(folder, folder.entry(file, InstanceFile)))
        for loc, problem in _rack_faults(catalog, folder.entry(file, InstanceFile)):
            yield file, f"{folder.document(file).at(loc)}: {problem}"
    for provider in folder.names("regions"):
        file = f"regions/{provider}.yaml"
        for loc, problem in _region_faults(catalog, folder, file):
            yield file, f"{folder.document(file).at(loc)}: {problem}"
    if folder.has(file := OwningFile.file_name):
        yield from ((file, fault) for fault in catalog.gpu_faults(folder, folder.entry(file, OwningFile)))
    if folder.has(file := HostedFile.file_name):
        entry, place_of = folder.entry(file, HostedFile), folder.document(file).at
        faults = list(model_faults(entry, catalog.model_names, place_of))
        yield from ((file, fault) for fault in faults or name_faults(entry, catalog.models(), place_of))


_OWN_FILE = re.compile(r"\S+\.json of [^/]+")  # the source of an entry that was imported from a file


def _model_faults(catalog: Catalog, folder: Folder, model: Model) -> Iterator[tuple[Loc, str]]:
    """Unknown models in `nearest`, weights that another model of the folder names too, a shipped model without a public
    source, and names that left_out.yaml refuses."""
    model_ids, names = catalog.ids("models"), folder.index.models
    for i, other in enumerate(model.nearest):
        if other not in model_ids:
            near = did_you_mean(other, model_ids)
            yield ("nearest", i), f"nearest has {other}, which is not in catalogs/models.{near}"
    for i, weights in enumerate(model.same_architecture):
        others = [model_id for model_id in names.get(stem(weights), model.id).split() if model_id != model.id]
        if others:
            problem = f"{weights} is a name of {' and '.join(others)} as well"
            yield ("same_architecture", i), f"{problem}. Name it in one of them."
    if folder.has_index and model.kind == "model":
        if not model.hf_id:
            yield ("name",), "hf_id is missing: the repository by which people ask for it, as Qwen/Qwen3-8B"
        if _OWN_FILE.fullmatch(model.source):
            yield ("source",), f"source is {model.source!r}, a file of yours. Say where it was published."
    if catalog.has(LeftOutFile):
        refused = {stem(name): name for left_out in catalog.file(LeftOutFile).models for name in left_out.names}
        for name in dict.fromkeys(map(stem, [model.id, *model.names()[0]])):
            if name in refused:
                yield (
                    ("id",),
                    f"{refused[name]} is entered here, and {LeftOutFile.file_name} refuses it. Take it out there.",
                )


def _gpu_faults(catalog: Catalog, gpu: Gpu, is_own: bool) -> Iterator[tuple[Loc, str]]:
    """A host link that levers.yaml lacks, device names that are not read back as this GPU, and names that left_out.yaml
    refuses. is_own: the file is the user's own, which need not name a host link."""
    links = [link.name for link in catalog.file(LeverFile).host_links] if catalog.has(LeverFile) else []
    if gpu.host_link and links and gpu.host_link not in links:
        near = did_you_mean(gpu.host_link, links) or f" It has {', '.join(links)}."
        yield ("host_link",), f"host_link {gpu.host_link!r} is none of {LeverFile.file_name}.{near}"
    if links and not is_own and "host_link" not in gpu.model_fields_set:
        problem = f"host_link is missing: {', '.join(links)}, or null where its link to the host is not known."
        yield ("interconnect",), problem
    for i, name in enumerate(gpu.device_names):
        read = catalog.devices.find(f"GPU 0: {name}")
        written = (name, f"GPU 0: {name} (UUID: GPU-0a1b)", name.replace(" ", "-"), name.replace(" ", "_").lower())
        meant = {_meant(catalog, text) for text in written}
        if meant != {gpu.id} or read is None or read[1] != name:
            problem = ", ".join(sorted(meant - {gpu.id})) or "a part of it"
            yield ("device_names", i), f"{name!r}, as tools print it, is read as {problem}. Give the name as printed."
    if catalog.has(LeftOutFile):
        for name in (gpu.id, *gpu.aliases, *gpu.device_names):
            if reason := catalog.file(LeftOutFile).gpu_reason(gpu_words(name).core):
                yield (
                    ("id",),
                    f"{name} is entered here, and {LeftOutFile.file_name} refuses it: {reason}. Take it out there.",
                )


def _meant(catalog: Catalog, name: str) -> str:
    """The id of the GPU that a name leads to, or the error message."""
    try:
        return catalog.gpu(name).id
    except CatalogError as error:
        return error.problems[0]


def _rack_faults(catalog: Catalog, file: InstanceFile) -> Iterator[tuple[Loc, str]]:
    """Rows without nvlink_domain_gpus, or with another one, where a row of as many equal GPUs has it."""
    try:
        listed = catalog.instances()
    except CatalogError:
        return  # the faults of those rows are reported elsewhere
    domains = {(row.gpu, row.gpu_count): (row.nvlink_domain_gpus, row.id) for row in listed if row.nvlink_domain_gpus}
    rows = {row.type: row for row in listed if row.provider == file.provider}
    for i, own in enumerate(file.instances):
        row = rows[own.type]
        joined, other = domains.get((row.gpu, row.gpu_count), (None, ""))
        if joined and row.nvlink_domain_gpus != joined:
            problem = f"{other}, of as many {row.gpu}, has nvlink_domain_gpus: {joined}, and {row.id} has not"
            yield ("instances", i, "type"), f"{problem}. Say the same of both."


def _region_faults(catalog: Catalog, folder: Folder, file: str) -> Iterator[tuple[Loc, str]]:
    """Regional prices of types without a row, and of a row's own region, whose price belongs in the row."""
    regions = folder.entry(file, RegionFile)
    own = {row.type: row.region for row in catalog.instances() if row.provider == regions.provider}
    for i, block in enumerate(regions.prices):
        for kind, by_region in block.usd_per_hour.items():
            loc = ("prices", i, "usd_per_hour", kind)
            if kind not in own:
                yield loc, f"{kind} is no type of instances/{regions.provider}.yaml.{did_you_mean(kind, own)}"
            elif own[kind] in by_region:
                yield (*loc, own[kind]), f"{own[kind]} is the region of {kind}'s row. State the price there."


CHANGES = ("added", "replaced", "taken away", "as before")


@dataclass(frozen=True)
class Overlay:
    """The effect of one folder on the catalogs below it: by kind of entry the number of each of CHANGES."""

    folder: str
    prices: Counter[str]
    models: Counter[str]
    gpus: Counter[str]
    files: tuple[str, ...]  # engines, workloads, tiers ...: read in place of those below


def overlays(catalog: Catalog) -> list[Overlay]:
    """The effect of each folder over the first one. Raises CatalogError for a file that is broken."""
    return [_overlay(catalog.folders[:i], folder) for i, folder in enumerate(catalog.folders) if i]


def _overlay(below: Sequence[Folder], folder: Folder) -> Overlay:
    prices = Counter[str]()
    for provider in folder.names("instances"):
        before = _rows(below, provider)
        for row in _rows([folder], provider).values():
            old = _prices(before[row.type]) if row.type in before else {}
            prices += _changes(old, _prices(row))
    for provider in folder.names("regions"):
        of_regions, own = _prices_of_regions(below, provider), _prices_of_regions([folder], provider)
        prices += _changes({key: usd for key, usd in of_regions.items() if key in own}, own)
    models, gpus = (
        _changes(
            _entries(below, part, folder.names(part), schema), _entries([folder], part, folder.names(part), schema)
        )
        for part, schema in (("models", Model), ("gpus", Gpu))
    )
    files = (*(f"engines/{name}.yaml" for name in folder.names("engines")), *folder.files_like(below[0]))
    return Overlay(folder.shown_as, prices, models, gpus, files)


def _rows(folders: Iterable[Folder], provider: str) -> dict[str, InstanceRow]:
    """A provider's rows by type; a later folder's row replaces an earlier one's."""
    file = f"instances/{provider}.yaml"
    files = (folder.entry(file, InstanceFile) for folder in folders if folder.has(file))
    return {row.type: row for instances in files for row in instances.instances}


def _prices(row: InstanceRow) -> dict[str, float]:
    return {price.purchase: price.usd_per_hour for price in row.prices}


def _prices_of_regions(folders: Iterable[Folder], provider: str) -> dict[str, float]:
    """Prices in USD per hour by purchase class, type and region; a later folder's price replaces an earlier one's."""
    file = f"regions/{provider}.yaml"
    blocks = (block for folder in folders if folder.has(file) for block in folder.entry(file, RegionFile).prices)
    return {
        f"{block.purchase} {kind} {region}": usd
        for block in blocks
        for kind, by_region in block.usd_per_hour.items()
        for region, usd in by_region.items()
    }


def _entries(folders: Iterable[Folder], part: str, names: Iterable[str], schema: type[Entry]) -> dict[str, Entry]:
    """The entries of these names that the folders have, each from the last folder that has it."""
    files = {name: f"{part}/{name}.yaml" for name in names}
    return {name: folder.entry(file, schema) for folder in folders for name, file in files.items() if folder.has(file)}


def _changes(before: Mapping[str, object], after: Mapping[str, object]) -> Counter[str]:
    """The numbers of entries added, replaced, left as before and taken away."""
    changed = (
        "added" if name not in before else "as before" if before[name] == value else "replaced"
        for name, value in after.items()
    )
    return Counter[str]([*changed, *(["taken away"] * len(before.keys() - after.keys()))])
