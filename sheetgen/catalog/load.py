"""The catalogs as the rest of the program sees them: ask by name, get a checked entry.

The default folder lies beside the package (in a repository) or inside it (installed); folders given by the
user add to it or override it, the last one first.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from functools import cached_property
from pathlib import Path

from sheetgen.catalog import hardware
from sheetgen.catalog.base import Document, E
from sheetgen.catalog.hardware import Gpu, Instance, InstanceFile, InstanceRow, OwningFile
from sheetgen.catalog.model import Model
from sheetgen.catalog.names import Devices, Folder, gpu_key, is_path, stem, without_precision
from sheetgen.errors import CatalogError, UnknownNameError, did_you_mean, shown


def default_folder() -> Path:
    """`catalogs/` of the repository, or the copy that an installed package carries."""
    package = Path(__file__).resolve().parent.parent
    for candidate in (package.parent / "catalogs", package / "_data" / "catalogs"):
        if (candidate / "models").is_dir():
            return candidate
    raise CatalogError(f"no catalogs found beside {package} or in it. Reinstall sheetgen.")


class Catalog:
    """Models, GPUs, instances, workloads and tiers; every entry is read when it is needed."""

    def __init__(self, *extra: str | Path, base: str | Path | None = None) -> None:
        root = Path(base) if base is not None else default_folder()
        self._imported: dict[str, Document] = {}
        self.folders = [Folder(root, "catalogs" if base is None else str(base), has_index=True)]
        for folder in extra:
            if not Path(folder).is_dir():
                raise CatalogError(f"{shown(folder)}: is no folder. --catalogs takes a folder like catalogs/.")
            self.folders.append(Folder(Path(folder), str(folder).rstrip("/"), has_index=False))

    # Models

    def model(self, name: str) -> Model:
        return self.resolve_model(name)[0]

    def resolve_model(self, name: str) -> tuple[Model, str | None]:
        """The model that `name` means, and the weight dtype if the name says one."""
        low = name.strip().lower()
        if low not in self._names["models"] and is_path(name):
            from sheetgen.catalog.huggingface import import_file

            model, where = import_file(name)  # a config of the user's own; `read_document` then has its entry too
            self._imported[f"models/{model.id}.yaml"] = Document(where, model.model_dump(mode="json"), {})
            return model, None
        for key, stated in ((low, None), without_precision(low) or (low, None)):
            found = self._names["models"].get(key) or self._names["models"].get(stem(key))
            if found:
                model, dtype = self._named(name, key, found)
                return model, stated or dtype
        raise self._unknown("model", name, low, self._names["models"])

    def _named(self, name: str, key: str, found: str) -> tuple[Model, str | None]:
        if " " in found:
            raise CatalogError(f"model {shown(name)!r} could be {' or '.join(found.split())}. Say which.")
        model = self.entry("models", found, Model)
        dtype = next((c.weight_dtype for c in model.checkpoints if (c.hf_id or "").lower() == key), None)
        if key in (model.id, (model.hf_id or "").lower()):
            dtype = None
        names = (key, stem(key))
        context = next((n for other, n in model.max_context_of.items() if other.lower() == key), None)
        if context is None and key != model.id and key not in model.aliases:
            context = next((n for other, n in model.max_context_of.items() if stem(other) in names), None)
        return (model.model_copy(update={"max_context_tokens": context}) if context else model), dtype

    def models(self) -> tuple[Model, ...]:
        return tuple(self.entry("models", entry_id, Model) for entry_id in self.ids("models"))

    # GPUs

    def gpu(self, name: str) -> Gpu:
        found = self._names["gpus"].get(gpu_key(name))
        if found is None:
            raise self._unknown("gpu", name, gpu_key(name), self._names["gpus"])
        if " " in found:
            raise CatalogError(f"gpu {shown(name)!r} could be {' or '.join(found.split())}. Say which.")
        return self.entry("gpus", found, Gpu)

    def gpus(self) -> tuple[Gpu, ...]:
        return tuple(self.entry("gpus", entry_id, Gpu) for entry_id in self.ids("gpus"))

    @cached_property
    def devices(self) -> Devices:
        """The GPUs by the names that drivers and engines print."""
        return Devices(self._names["devices"])

    def gpu_words(self) -> tuple[str, ...]:
        """GPUs in one word of letters and a number, as sentences name them: h100, l40s."""
        return tuple(name for name in self._names["gpus"] if re.fullmatch(r"[a-z]+[0-9]+[a-z]?", name))

    # Instances

    @cached_property
    def _instances(self) -> tuple[Instance, ...]:
        rows: dict[tuple[str, str], InstanceRow] = {}
        order: dict[str, int] = {}
        for folder in self.folders:
            for provider in folder.names("instances"):
                file = folder.entry(f"instances/{provider}.yaml", InstanceFile)
                order.setdefault(provider, file.order)
                if faults := self.gpu_faults(folder, file):
                    raise CatalogError(*faults)
                rows.update({(provider, row.type): row for row in file.instances})
        names = self._names["gpus"]
        out = [
            Instance.model_construct(**{**dict(row), "gpu": names[row.gpu], "provider": provider})
            for (provider, _), row in rows.items()
        ]
        return tuple(sorted(out, key=lambda row: (order[row.provider], row.provider)))

    def gpu_faults(self, folder: Folder, file: InstanceFile | OwningFile) -> list[str]:
        """Rows whose GPU is in no catalog; those of instances may have any name that means one GPU."""
        if isinstance(file, InstanceFile):
            relative, part, names = f"instances/{file.provider}.yaml", "instances", self._names["gpus"]
            gpus = [row.gpu for row in file.instances]
        else:
            relative, part, names = file.file_name, "gpus", dict.fromkeys(self.ids("gpus"), "")
            gpus = [owned.gpu for owned in file.gpus]
        unknown = [(i, gpu) for i, gpu in enumerate(gpus) if " " in names.get(gpu, " ")]
        if not unknown:
            return []
        at = folder.document(relative).at
        return [
            f"{at((part, i, 'gpu'))}: gpu is {gpu!r}, which is not in catalogs/gpus.{did_you_mean(gpu, names)}"
            for i, gpu in unknown
        ]

    def instances(self) -> tuple[Instance, ...]:
        """Every row in catalog order: providers by their `order`, rows as their file has them."""
        return self._instances

    def instance(self, name: str) -> Instance:
        """`provider/type`, or the bare type where one provider has it."""
        low = name.strip().lower()
        found = [i for i in self.instances() if low in (i.id.lower(), i.type.lower())]
        if len(found) == 1:
            return found[0]
        if found:
            raise CatalogError(f"instance {shown(name)!r} could be {' or '.join(i.id for i in found)}. Say which.")
        ids = {key: i.id for i in self.instances() for key in (i.type.lower(), i.id.lower())}
        raise self._unknown("instance", name, low, ids)

    # Files

    def workloads(self) -> tuple[hardware.Workload, ...]:
        return self.file(hardware.WorkloadFile).workloads

    def tiers(self) -> tuple[hardware.Tier, ...]:
        return self.file(hardware.TierFile).tiers

    def owning(self) -> OwningFile:
        """What the catalogs say of owning GPUs. Raises CatalogError with every problem of the file."""
        file = self.file(OwningFile)
        if faults := self.gpu_faults(self._folder_with(file.file_name), file):
            raise CatalogError(*faults)
        return file

    def file(self, schema: type[E]) -> E:
        """The one file of that schema in the last folder that has it, checked; each is read once."""
        return self._folder_with(schema.file_name).entry(schema.file_name, schema)

    def read_document(self, relative: str) -> Document:
        """A file of the last folder that has it, with the lines of its fields; an imported model by its id."""
        return self._imported.get(relative) or self._folder_with(relative).document(relative)

    def catalog_sha256(self) -> str:
        """One fingerprint of all catalog files: their names and bytes, folder by folder."""
        digest = hashlib.sha256()
        for folder in self.folders:
            for path in sorted(folder.path.rglob("*.yaml")):
                data = path.read_bytes()
                digest.update(f"{path.relative_to(folder.path).as_posix()}\0{len(data)}\0".encode() + data)
        for relative, document in sorted(self._imported.items()):
            digest.update(f"{relative}\0{document.data}\0".encode())
        return digest.hexdigest()

    # Inner parts

    @cached_property
    def _names(self) -> dict[str, dict[str, str]]:
        """What names mean, by part of the index; the last folder decides."""
        names: dict[str, dict[str, str]] = defaultdict(dict)
        for folder in self.folders:
            for part, found in folder.index:
                names[part] |= found
        return names

    def ids(self, part: str) -> list[str]:
        """Every id of a part of the catalogs, those of the first folder first."""
        return list(dict.fromkeys(name for folder in self.folders for name in folder.names(part)))

    def entry(self, part: str, entry_id: str, schema: type[E]) -> E:
        """The file of that id in the last folder that has one, checked; each is read once."""
        relative = f"{part}/{entry_id}.yaml"
        return self._folder_with(relative, ", though the index names it. Write the index anew").entry(relative, schema)

    def _folder_with(self, relative: str, though: str = "") -> Folder:
        for folder in reversed(self.folders):
            if folder.has(relative):
                return folder
        raise CatalogError(f"catalogs/{relative}: is missing{though}.")

    def _unknown(self, what: str, name: str, low: str, names: dict[str, str]) -> UnknownNameError:
        near = did_you_mean(low, names)
        keys = sorted((key for key in names if len(low) > 1 and low in key), key=len)
        holding = dict.fromkeys(names[key] for key in keys)
        if holding and not near:
            near = f" Did you mean {next(iter(holding))}?"
        if len(holding) > 1:
            listed = list(holding)[:8]
            near = f" It could be {', '.join(listed)}{' and others' if len(holding) > 8 else ''}."
        problem = f"{what} {shown(name)!r} is not in the catalogs.{near} `sheetgen list {what}s` has all."
        return UnknownNameError(problem, near)
