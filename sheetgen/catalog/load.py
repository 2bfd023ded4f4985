"""The catalogs for the rest of the program: look up a name, get a validated entry.

The default folder lies beside the package (in a repository) or inside it (installed); folders given by the
user add to it or override it, the last one first.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from pydantic import Field

from sheetgen.catalog import gpu_names, hardware
from sheetgen.catalog.base import MAX_FILE_BYTES, Document, E, Entry, is_id, read_document, validate
from sheetgen.catalog.hardware import MIG, Devices, Gpu, Instance, InstanceFile, InstanceRow, OwningFile, gpu_key
from sheetgen.catalog.model import LeftOutFile, Model, pasted, stem, untrained, without_gguf, without_precision
from sheetgen.catalog.nearest_names import hint, model_parts, nearest
from sheetgen.catalog.regions import RegionFile, Regions
from sheetgen.errors import CatalogError, UnknownNameError, did_you_mean, shown, unreadable
from sheetgen.input_files import read_bounded
from sheetgen.shipped import shipped_folder
from sheetgen.units import TENSOR_PARALLEL_SIZES


def default_folder() -> Path:
    """The shipped catalogs."""
    return shipped_folder("catalogs")


def table(entries: Iterable[tuple[str, tuple[Iterable[str], Iterable[str]]]]) -> tuple[dict[str, str], list[str]]:
    """Name to id for all entries, and messages on names that two entries call their own.

    entries: an id with its own names and its derived names. An own name beats a derived one; a name derived from
    several entries maps to all their ids, joined by spaces, so that a message can name the candidates.
    """
    own: dict[str, str] = {}
    follows: dict[str, list[str]] = {}
    clashes: list[str] = []
    for entry_id, (names, following) in entries:
        for name in names:
            if own.setdefault(name, entry_id) != entry_id:
                clashes.append(f"{name} names both {own[name]} and {entry_id}")
        for name in following:
            follows.setdefault(name, []).append(entry_id)
    merged = {name: " ".join(dict.fromkeys(ids)) for name, ids in follows.items()} | own
    return dict(sorted(merged.items())), clashes


PARTS = ("models", "gpus", "instances", "regions", "engines")  # folders of a catalog, with a file for each entry
LONGEST = 200  # characters of an unknown name that are compared with those of the catalogs
MOST_LOOKED_AT = 200  # subfolders of a folder without a catalog that are searched for the one that was meant
INDEX = "index.yaml"
_SIZE = re.compile(r"-\d+(?:\.\d+)?[bm](?![a-z0-9])")  # parameters in an id; what stands before them is a series
INDEX_NOTE = (
    "# Every name of a model or GPU and the id that it means. Written by `sheetgen check --write-index`; do not edit.\n"
    "# Two ids with a space between: the name could mean either, and is refused with both.\n"
    "# Devices: what drivers and engines print, and the GPU's first name. n_params: all parameters of each model.\n"
)


class Index(Entry):
    models: dict[str, str]
    gpus: dict[str, str]
    devices: dict[str, str] = Field(default_factory=dict)
    n_params: dict[str, int] = Field(default_factory=dict)  # by id


class Folder:
    """`catalogs/`, or a folder of the user's laid over it. Files are read on demand, each once."""

    def __init__(self, path: Path, shown_as: str, has_index: bool) -> None:
        self.path = path
        self.shown_as = shown(shown_as, 300)
        self.has_index = has_index
        self._entries: dict[str, Entry] = {}
        self._listed: dict[str, tuple[str, ...]] = {}

    def names(self, part: str) -> tuple[str, ...]:
        """The ids of the files under one of PARTS, sorted."""
        if part not in self._listed:
            self._listed[part] = tuple(sorted(file.stem for file in (self.path / part).glob("*.yaml")))
        return self._listed[part]

    def files_like(self, other: Folder) -> list[str]:
        """The folder's top-level files that `other` has too: workloads.yaml, tiers.yaml ..."""
        files = (file.name for file in self.path.glob("*.yaml"))
        return sorted(name for name in files if name != INDEX and other.has(name))

    def adds_to(self, other: Folder) -> bool:
        """True if any file of the folder is read when it is laid over `other`."""
        return any(map(self.names, PARTS)) or bool(self.files_like(other))

    def has(self, relative: str) -> bool:
        return relative in self._entries or (self.path / relative).is_file()

    def document(self, relative: str) -> Document:
        return read_document(self.path / relative, f"{self.shown_as}/{relative}")

    def entry(self, relative: str, schema: type[E]) -> E:
        """One file as its schema. Raises CatalogError for problems, and for an id that differs from the file's name."""
        if relative not in self._entries:
            document = self.document(relative)
            entry = validate(document, schema)
            expected = Path(relative).stem
            key = schema.id_field
            given = getattr(entry, key, expected)
            if given != expected:
                raise CatalogError(f"{document.at((key,))}: {key} is {given}, but the file is named {expected}.yaml.")
            self._entries[relative] = entry
        validated = self._entries[relative]
        assert isinstance(validated, schema)
        return validated

    def entries(self, part: str, schema: type[E]) -> Iterator[E]:
        for name in self.names(part):
            yield self.entry(f"{part}/{name}.yaml", schema)

    @cached_property
    def index(self) -> Index:
        """The names of the folder's models and GPUs: from index.yaml if the folder has one, else from all its files."""
        if self.has_index and self.has(INDEX):
            return validate(self.document(INDEX), Index)
        return self.built_index()[0]

    def built_index(self) -> tuple[Index, list[str]]:
        """The index built from the files, and messages on names claimed twice."""
        all_models = list(self.entries("models", Model))
        models, model_clashes = table((m.id, m.names()) for m in all_models)
        all_gpus = [part for gpu in self.entries("gpus", Gpu) for part in (gpu, *gpu.slices)]
        gpus, gpu_clashes = table((g.id, g.names()) for g in all_gpus)
        devices, device_clashes = table(((g.aliases or (g.id,))[0], (g.device_names, ())) for g in all_gpus)
        n_params = {m.id: m.params.total for m in all_models}
        index = Index(models=models, gpus=gpus, devices=devices, n_params=n_params)
        return index, [*model_clashes, *gpu_clashes, *device_clashes]


def index_text(index: Index) -> str:
    lines = [INDEX_NOTE.rstrip()]
    for part, names in index:
        lines.append(f"{part}:")
        lines += [f"  '{name}': {entry_id}" for name, entry_id in names.items()]
    return "\n".join(lines) + "\n"


def write_index(path: Path) -> Path:
    """Write `index.yaml` of the catalog folder `path` from its files, and return its path."""
    index, clashes = Folder(path, path.name, has_index=False).built_index()
    if clashes:
        raise CatalogError(*(f"{path.name}: {clash}. Give each its own name." for clash in clashes))
    target = path / INDEX
    half = target.with_suffix(".yaml.tmp")
    half.write_text(index_text(index), encoding="utf-8")
    half.replace(target)
    return target


def nothing_in(folder: Folder, base: Folder) -> str:
    """The message on a folder without any file that is read: what it should have, and the folder that was meant."""
    path = folder.path.resolve()
    shown_path = Path(folder.shown_as)
    parent_shown = str(shown_path.parent if shown_path.name in PARTS else shown_path / "..")
    above = [(path.parent, parent_shown)] if path.name in PARTS else []
    inside = ((child, f"{folder.shown_as}/{child.name}") for child in path.iterdir() if child.is_dir())
    around = (Folder(*place, has_index=False) for place in (*above, *itertools.islice(inside, MOST_LOOKED_AT)))
    parts = [f"{part}/*.yaml" for part in PARTS]
    problem = f"{folder.shown_as}: adds nothing: it has neither {', '.join(parts)} nor a file such as workloads.yaml."
    if meant := sorted(other.shown_as for other in around if other.adds_to(base)):
        return f"{problem} Did you mean {meant[0]}?"
    misnamed = sorted(file for part in PARTS for file in (path / part).glob("*.y*ml"))
    if misnamed:
        return f"{problem} Name {shown(misnamed[0].name)} {shown(misnamed[0].stem)}.yaml."
    return f"{problem} --catalogs takes a folder like catalogs/."


def names_in(folders: Iterable[Folder]) -> dict[str, dict[str, str]]:
    """The ids by part of the index and name, for folders laid over one another; the last folder decides."""
    names: dict[str, dict[str, str]] = defaultdict(dict)
    for folder in folders:
        for part in ("models", "gpus", "devices"):
            names[part] |= getattr(folder.index, part)
    return names


def _instance_key(name: str) -> str:
    """A name by which an instance is found: on a page Standard_ND96isr_H200_v5 is ND96isr H200 v5."""
    return name.strip().lower().replace("standard_", "").replace("_", " ")


Fault = tuple[Folder, str, str]  # the folder, its file ("": the folder itself), and the problem in a sentence


class Catalog:
    """Models, GPUs, instances, workloads and tiers by name; every entry is read when it is needed."""

    def __init__(self, *extra: str | Path, base: str | Path | None = None) -> None:
        root = Path(base) if base is not None else default_folder()
        self._imported: dict[str, Document] = {}
        self._gpus: dict[str, Gpu] = {}  # by the names they were looked up by
        self.folders = [Folder(root, "catalogs" if base is None else str(base), has_index=True)]
        for folder in extra:
            if not str(folder).strip():
                raise CatalogError("catalogs is blank. Name a folder like catalogs/, or leave it out.")
            try:
                if not Path(folder).is_dir():
                    Path(folder).stat()
                    raise CatalogError(f"{shown(folder)}: is no folder. --catalogs takes a folder like catalogs/.")
                if not self.lay_over(folder).adds_to(self.folders[0]):
                    raise CatalogError(nothing_in(self.folders[-1], self.folders[0]))
            except (OSError, ValueError) as error:  # ValueError: a name that no folder can have
                raise CatalogError(f"{shown(folder)}: {unreadable(error)}.") from error

    def lay_over(self, path: str | Path) -> Folder:
        """Lay a folder over the others, even one without catalog files; to be called before anything is read."""
        self.folders.append(Folder(Path(path), str(path).rstrip("/") or "/", has_index=False))
        return self.folders[-1]

    def model(self, name: str) -> Model:
        return self.resolve_model(name)[0]

    @property
    def model_names(self) -> Collection[str]:
        """Every name of a model, in lower case: ids, aliases, Hugging Face ids, other weights."""
        return self._names["models"].keys()

    def lists_model(self, name: str) -> bool:
        """True if a folder has a model under exactly this name."""
        return name.strip().lower() in self._names["models"]

    def add_model(self, model: Model, where: str) -> None:
        """Make an entry of the user's own available to `read_document`; `where` is the file it was made from."""
        self._imported[f"models/{model.id}.yaml"] = Document(where, model.model_dump(mode="json"), {})

    def resolve_model(self, name: str) -> tuple[Model, str | None]:
        """The model that `name` means, and the weight dtype if the name states one.

        Raises UnknownNameError with the nearest names, or CatalogError for an ambiguous name.
        """
        written = pasted(name)
        low = written.lower()
        keys: list[tuple[str, str | None]] = [(low, None)]
        if bare := without_precision(low):
            keys.append(bare)
        for key, stated in keys:
            if listed_name := self._known_name(key):
                model, dtype = self._named(name, listed_name)
                return model, stated or dtype
        if left := self.file(LeftOutFile).model(low):
            how = " With its config.json: `sheetgen catalog import`." if left.config_counts else ""
            raise UnknownNameError(f"model {shown(name)!r} is not in the catalogs: {left.reason}.{how}", "")
        for key, stated in keys:
            trained_name = self._known_name(untrained(key)) if is_id(stem(key)) else None
            if trained_name:
                model, dtype = self._named(name, trained_name)
                return model.derivative(written[: len(key)]), stated or dtype
        if self._known_name(gguf := without_gguf(low)):
            whole = self.resolve_model(gguf)[0].id
            how = f"Name {whole}, with --weight-dtype int4 for four bits"
            raise UnknownNameError(
                f"model {shown(name)!r} is a GGUF file, whose mixed precisions no name says. {how}.", ""
            )
        raise self._unknown("model", name, hint(nearest(low[:LONGEST], self._names["models"], model_parts)))

    def _known_name(self, key: str) -> str | None:
        """The catalogs' name for a name in lower case that may have other spare words or separators (`llama3.1:70b`);
        None where there is none."""
        names = self._names["models"]
        plain = stem(key)
        if key in names or plain in names:
            return key if key in names else plain
        return self._names_by_parts.get(tuple(model_parts(plain.replace(":", "-"))))

    @cached_property
    def _names_by_parts(self) -> dict[tuple[str, ...], str]:
        """The models' names by their words and numbers, where these are of one model alone."""
        names = self._names["models"]
        by_parts: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for name in names:
            by_parts[tuple(model_parts(stem(name)))].add(name)
        return {
            parts: min(same, key=len)
            for parts, same in by_parts.items()
            if len(parts) > 1 and len({names[name] for name in same}) == 1
        }

    def _named(self, name: str, key: str) -> tuple[Model, str | None]:
        """The model of `key`, a name in the catalogs, and the weight dtype if that name is a checkpoint's.

        `name`, the user's own spelling, is for messages. Raises CatalogError where the key is of several models.
        """
        model_id = self._names["models"][key]
        if " " in model_id:
            raise CatalogError(f"model {shown(name)!r} could be {' or '.join(model_id.split())}. Say which.")
        model = self.entry("models", model_id, Model)
        own = next((c for c in model.checkpoints if (c.hf_id or "").lower() == key), None)
        is_entry = key in (model.id, (model.hf_id or "").lower())
        dtype = None if own is None or (is_entry and own.weight_dtype == model.weight_dtype) else own.weight_dtype
        weights = own.of.lower() if own and own.of else key
        context = None if key in (model.id, *model.aliases) else model.context_of(weights)
        stated = {"max_context_tokens": context, "kv_cache_dtype": own and own.kv_cache_dtype}
        changes: dict[str, object] = {name: value for name, value in stated.items() if value}
        if own is not None and dtype is not None:  # sized by this checkpoint, before others of its precision
            others = (c for c in model.checkpoints if c.weight_dtype != dtype)
            changes["checkpoints"] = (own.model_copy(update={"of": None}), *others)
        if base := model.base_named(key):
            changes |= {"hf_id": base, "checkpoints": ()}
        other = model.weights_named(key)
        model = model.model_copy(update=changes) if changes else model
        return (model.derivative(other) if other else model), dtype

    def models(self) -> tuple[Model, ...]:
        return tuple(self.entry("models", entry_id, Model) for entry_id in self.ids("models"))

    @property
    def _n_params(self) -> dict[str, int]:
        """All parameters of each model, by id."""
        n_params_by_id: dict[str, int] = {}
        for folder in self.folders:
            n_params_by_id |= folder.index.n_params
        return n_params_by_id

    def next_smaller(self, model: Model) -> Model | None:
        """The largest model with fewer parameters of the same series and publisher: gpt-oss-20b for gpt-oss-120b."""
        n_params, series = self._n_params, _SIZE.split(model.entry_id)[0]
        smaller = [i for i, n in n_params.items() if n < model.params.total and _SIZE.split(i)[0] == series]
        entries = (self.entry("models", i, Model) for i in sorted(smaller, key=n_params.__getitem__, reverse=True))
        return next((m for m in entries if m.kind == "model" and m.publisher == model.publisher), None)

    def models_of_size(self, n_params: int, share: float) -> Iterator[Model]:
        """The models whose number of parameters differs from `n_params` by at most this share of it."""
        for entry_id, own in self._n_params.items():
            if abs(own / n_params - 1) <= share:
                yield self.entry("models", entry_id, Model)

    def gpu(self, name: str) -> Gpu:
        """The GPU that a name means: an id, an alias, or a name as tools print it."""
        if name not in self._gpus:
            self._gpus[name] = self._gpu_named(name)
        return self._gpus[name]

    def _gpu_named(self, name: str) -> Gpu:
        gpu_id = self._names["gpus"].get(gpu_key(gpu_names.bare(name))) or " ".join(self._gpus_by_words(name))
        if not gpu_id:
            raise self._unknown_gpu(name)
        if " " in gpu_id:
            raise CatalogError(f"gpu {shown(name)!r} could be {' or '.join(gpu_id.split())}. Say which.")
        if gpu_id in self.ids("gpus"):
            return self.entry("gpus", gpu_id, Gpu)
        whole, _, profile = gpu_id.partition(MIG)
        return self.entry("gpus", whole, Gpu).slice(profile)

    def _gpus_by_words(self, name: str) -> list[str]:
        """The ids of the GPUs or MIG slices that the words of a name may mean; empty if no GPU has its core words."""
        asked = gpu_names.words(name)
        gpus = self.gpus()
        could = gpu_names.gpus_named(asked, gpu_names.by_core(gpus))
        if asked.mig_profile and not asked.core:
            could = [gpu for gpu in gpus if gpu_names.could_be(asked, gpu)]
        end = f"{MIG}{asked.mig_profile}" if asked.mig_profile else ""
        return [f"{gpu.id}{end}" for gpu in gpu_names.usual_one(asked, could)]

    def lists_gpu(self, name: str) -> bool:
        """True if a folder has a GPU under this name."""
        return gpu_key(gpu_names.bare(name)) in self._names["gpus"]

    def others_called(self, name: str) -> list[str]:
        """The GPUs beside the one that `name` means which share its words: of h100 h100-pcie and h100-nvl; none where
        the name says which."""
        meant = self._names["gpus"].get(gpu_key(gpu_names.bare(name)), "")
        if meant not in self.ids("gpus"):
            return []
        asked, core = gpu_names.words(name), gpu_names.words(meant).core
        alike = [i for i in self.ids("gpus") if i != meant and gpu_names.words(i).core == core]
        others = (self.entry("gpus", entry_id, Gpu) for entry_id in alike)
        return [(gpu.aliases or (gpu.id,))[0] for gpu in others if gpu_names.could_be(asked, gpu)]

    def _unknown_gpu(self, name: str) -> UnknownNameError:
        asked = gpu_names.words(name)
        if reason := self.file(LeftOutFile).gpu_reason(asked.core):
            return UnknownNameError(f"gpu {shown(name)!r} is not in the catalogs: {reason}.", "")
        if asked.mig_profile and asked.core:
            whole = self.gpu(gpu_names.without_profile(name))
            offered = f"It has {', '.join(whole.mig.slices)}." if whole.mig else "No profile of it is entered."
            return UnknownNameError(f"gpu {whole.id} has no MIG profile {asked.mig_profile}. {offered}", "")

        def parts(text: str) -> frozenset[str]:
            asked = gpu_names.words(text)
            return asked.core | asked.forms

        called = {gpu.id: (gpu.aliases or (gpu.id,))[0] for gpu in self.gpus()}
        names = self._names["gpus"]
        labels = {name: " ".join(called[gpu] for gpu in ids.split()) for name, ids in names.items() if MIG not in name}
        near = nearest(name[:LONGEST], labels, parts) or [
            called[gpu.id]
            for core, gpus in gpu_names.by_core(self.gpus()).items()
            if core and core <= asked.core
            for gpu in gpus
        ]
        return self._unknown("gpu", name, hint(list(dict.fromkeys(near))))

    def gpus(self) -> tuple[Gpu, ...]:
        """Every GPU of the catalogs, without MIG slices."""
        return tuple(self.entry("gpus", entry_id, Gpu) for entry_id in self.ids("gpus"))

    @cached_property
    def devices(self) -> Devices:
        """Finds GPUs by the names that drivers and engines print."""
        return Devices(self._names["devices"])

    @cached_property
    def _rows(self) -> tuple[tuple[Instance, ...], frozenset[str]]:
        """All instance rows in catalog order, and the ids of those that a folder over the first one adds or changes."""
        rows: dict[tuple[str, str], InstanceRow] = {}
        order: dict[str, int] = {}
        brought: set[str] = set()
        for folder in self.folders:
            for provider in folder.names("instances"):
                file = folder.entry(f"instances/{provider}.yaml", InstanceFile)
                order.setdefault(provider, file.order)
                if faults := self.gpu_faults(folder, file):
                    raise CatalogError(*faults)
                own = {(provider, row.type): row for row in file.instances}
                if folder is not self.folders[0]:
                    brought |= {"/".join(key) for key, row in own.items() if rows.get(key) != row}
                rows |= own
        names = self._names["gpus"]
        out = (
            Instance.model_construct(**{**dict(row), "gpu": names[row.gpu], "provider": provider})
            for (provider, _), row in rows.items()
        )
        return tuple(sorted(out, key=lambda row: (order[row.provider], row.provider))), frozenset(brought)

    def gpu_faults(self, folder: Folder, file: InstanceFile | OwningFile) -> list[str]:
        """A message for every row whose GPU is in no catalog; instance rows may use any unambiguous name of a GPU."""
        if isinstance(file, InstanceFile):
            relative, part, names = f"instances/{file.provider}.yaml", "instances", self._names["gpus"]
            gpus = [row.gpu for row in file.instances]
        else:
            relative, part, names = file.file_name, "gpus", dict.fromkeys(self.ids("gpus"), "")
            gpus = [owned.gpu for owned in file.gpus]
        unknown = [(i, gpu) for i, gpu in enumerate(gpus) if " " in names.get(gpu, " ")]
        if not unknown:
            return []
        place_of = folder.document(relative).at
        problem = "which is not in catalogs/gpus"
        return [
            f"{place_of((part, i, 'gpu'))}: gpu is {gpu!r}, {problem}.{did_you_mean(gpu, names)}" for i, gpu in unknown
        ]

    def instances(self) -> tuple[Instance, ...]:
        """All instance rows in catalog order: providers by their `order`, then as in their file."""
        return self._rows[0]

    @property
    def brought(self) -> frozenset[str]:
        """The ids of the rows that a folder over the first one adds or changes."""
        return self._rows[1]

    @cached_property
    def regions(self) -> Regions:
        """The prices of the rows in other regions than their own."""
        files = (file for folder in self.folders for file in folder.entries("regions", RegionFile))
        return Regions(self.instances(), files)

    def instance(self, name: str) -> Instance:
        """The row called `provider/type`, or the bare type where only one provider has it; a machine of a row that is
        priced by the GPU (`verda/B200 SXM6 x2`) by that row.

        Raises CatalogError for an unknown or ambiguous name.
        """
        return self.instance_and_gpus(name)[0]

    def instance_and_gpus(self, name: str) -> tuple[Instance, int | None]:
        """The row that `instance` finds, and the number of GPUs that the name states of a row priced by the GPU.

        Raises CatalogError for an unknown or ambiguous name.
        """
        low = name.strip().lower()
        matches = self._instances_called(name)
        if len(matches) == 1:
            return matches[0], None
        row_name, _, n_gpus = low.rpartition(" x")
        if not matches and n_gpus in map(str, TENSOR_PARALLEL_SIZES):
            matches = [row for row in self._instances_called(row_name) if not row.is_whole]
            if len(matches) == 1:
                return matches[0], int(n_gpus)
        if matches:
            raise CatalogError(f"instance {shown(name)!r} could be {' or '.join(i.id for i in matches)}. Say which.")
        ids = {key: i.id for i in self.instances() for key in (i.type.lower(), i.id.lower())}
        holding = dict.fromkeys(ids[key] for key in sorted(ids, key=len) if len(low) > 1 and low in key)
        called = [spelled for row in self.instances() for spelled in (row.type, row.id)]
        raise self._unknown("instance", name, hint(list(holding)) or did_you_mean(low, called))

    def _instances_called(self, name: str) -> list[Instance]:
        """The rows of that id or type, written as in the catalogs or as on a page."""
        key = _instance_key(name)
        return [row for row in self.instances() if key in (_instance_key(row.id), _instance_key(row.type))]

    def workloads(self) -> tuple[hardware.Workload, ...]:
        return self.file(hardware.WorkloadFile).workloads

    def tiers(self) -> tuple[hardware.Tier, ...]:
        return self.file(hardware.TierFile).tiers

    def owning(self) -> OwningFile:
        """owning.yaml, the costs of owning GPUs. Raises CatalogError with every problem of the file."""
        file = self.file(OwningFile)
        if faults := self.gpu_faults(self._folder_with(file.file_name), file):
            raise CatalogError(*faults)
        return file

    def file(self, schema: type[E]) -> E:
        """The validated file of a schema, from the last folder that has it; each file is read once."""
        return self._folder_with(schema.file_name).entry(schema.file_name, schema)

    def has(self, schema: type[Entry]) -> bool:
        """True if a folder has the file of a schema."""
        return any(folder.has(schema.file_name) for folder in self.folders)

    def read_document(self, relative: str) -> Document:
        """A file with the lines of its fields, from the last folder that has it; or an imported model's fields."""
        return self._imported.get(relative) or self._folder_with(relative).document(relative)

    def catalog_sha256(self) -> str:
        """The SHA-256 of the names and bytes of all catalog files, and of imported models."""
        digest = hashlib.sha256()
        for folder in self.folders:
            for path in sorted(filter(Path.is_file, folder.path.rglob("*.yaml"))):
                relative = path.relative_to(folder.path).as_posix()
                try:
                    data = read_bounded(path, MAX_FILE_BYTES)
                except ValueError as error:
                    raise CatalogError(f"{folder.shown_as}/{relative}: {error}.") from error
                digest.update(f"{relative}\0{len(data)}\0".encode() + data)
        for relative, document in sorted(self._imported.items()):
            digest.update(f"{relative}\0{document.data}\0".encode())
        return digest.hexdigest()

    @cached_property
    def _names(self) -> dict[str, dict[str, str]]:
        """The ids by part of the index and name. Raises CatalogError where a folder uses a name that is taken."""
        if self.taken:
            raise CatalogError(*(problem for *_, problem in self.taken))
        return names_in(self.folders)

    @cached_property
    def taken(self) -> list[Fault]:
        """The faults of folders that give a name of one entry to another."""
        over = [(folder, names_in(self.folders[:i])) for i, folder in enumerate(self.folders) if i]
        return [fault for folder, names in over for fault in self._taken(folder, names)]

    def _taken(self, folder: Folder, names: Mapping[str, Mapping[str, str]]) -> Iterator[Fault]:
        """The faults of one folder that gives an entry the id or an alias of another: of its own, or in `names`, those
        of the folders below."""
        own: tuple[tuple[str, type[Model] | type[Gpu]], ...] = (("models", Model), ("gpus", Gpu))
        for part, schema in own:
            seen: dict[str, str] = {}
            for entry in folder.entries(part, schema):
                for field, name in (("id", entry.id), *(("aliases", alias) for alias in entry.aliases)):
                    holder = seen.setdefault(name, entry.id)
                    if holder == entry.id:
                        holder = names[part].get(name, entry.id)
                        other = None if holder == entry.id or " " in holder else self.entry(part, holder, schema)
                        if other is None or name not in (other.id, *other.aliases):
                            continue
                    file = f"{part}/{entry.id}.yaml"
                    place = folder.document(file).at((field,))
                    yield folder, file, f"{place}: {name} is a name of {holder} already. Give each its own name."

    def ids(self, part: str) -> list[str]:
        """The ids of a part of the catalogs, those of the first folder first, without repetition."""
        return list(dict.fromkeys(name for folder in self.folders for name in folder.names(part)))

    def entry(self, part: str, entry_id: str, schema: type[E]) -> E:
        """The validated entry of an id, from the last folder that has it; each file is read once."""
        relative = f"{part}/{entry_id}.yaml"
        return self._folder_with(relative, ", though the index names it. Write the index anew").entry(relative, schema)

    def _folder_with(self, relative: str, though: str = "") -> Folder:
        for folder in reversed(self.folders):
            if folder.has(relative):
                return folder
        raise CatalogError(f"catalogs/{relative}: is missing{though}.")

    def _unknown(self, kind: str, name: str, near: str) -> UnknownNameError:
        """The error for a name in no catalog; `near` is a sentence on what it could have meant."""
        path = ""
        if kind == "model":
            is_there = is_folder = False
            with contextlib.suppress(OSError, ValueError):  # a name that no file can have
                is_there, is_folder = Path(name).exists(), Path(name).is_dir()
            if is_folder:
                path = " The folder of that name has no config.json."
            elif "/" in name:
                path = f" {'The file is no config.json' if is_there else 'There is no such file or folder either'}."
        own = "" if len(self.folders) > 1 else " One of your own is read with --catalogs DIR."
        problem = f"{kind} {shown(name)!r} is not in the catalogs.{path}{near}{own} `sheetgen list {kind}s` has all."
        return UnknownNameError(problem, near)
