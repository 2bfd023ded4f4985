"""One catalog folder on disk: its files, and the index that finds one entry without reading all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from sheetgen.catalog.base import Entry, validate
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.model import Model
from sheetgen.catalog.names import device_names, gpu_names, model_names, table
from sheetgen.catalog.reader import Document, read_document
from sheetgen.errors import CatalogError, shown

E = TypeVar("E", bound=Entry)

INDEX = "index.yaml"
INDEX_NOTE = (
    "# Every name of a model or GPU and the id that it means. Written by `sheetgen check --write-index`; do not edit.\n"
    "# Two ids with a space between: the name could mean either, and is refused with both.\n"
    "# Devices: what drivers and engines print, and the GPU's first name.\n"
)


class Index(Entry):
    models: dict[str, str]
    gpus: dict[str, str]
    devices: dict[str, str] = Field(default_factory=dict)


class Folder:
    """`catalogs/`, or a folder that the user lays over it. Reads on demand, each file once."""

    def __init__(self, path: Path, shown_as: str, has_index: bool) -> None:
        self.path = path
        self.shown_as = shown(shown_as, 300)
        self.has_index = has_index
        self._entries: dict[str, Entry] = {}
        self._listed: dict[str, tuple[str, ...]] = {}

    def names(self, part: str) -> tuple[str, ...]:
        """Ids of the files under `models`, `gpus`, `instances` or `engines`, in order."""
        if part not in self._listed:
            folder = self.path / part
            files = folder.glob("*.yaml") if folder.is_dir() else ()
            self._listed[part] = tuple(sorted(file.stem for file in files))
        return self._listed[part]

    def has(self, relative: str) -> bool:
        return relative in self._entries or (self.path / relative).is_file()

    def document(self, relative: str) -> Document:
        return read_document(self.path / relative, f"{self.shown_as}/{relative}")

    def entry(self, relative: str, schema: type[E]) -> E:
        """One file as its schema, with an id that is the file's name."""
        if relative not in self._entries:
            document = self.document(relative)
            entry = validate(document, schema)
            expected = Path(relative).stem
            key = schema.id_field
            given = getattr(entry, key, expected)
            if given != expected:
                raise CatalogError(f"{document.at((key,))}: {key} is {given}, but the file is named {expected}.yaml.")
            self._entries[relative] = entry
        found = self._entries[relative]
        assert isinstance(found, schema)
        return found

    def models(self) -> Iterator[Model]:
        for name in self.names("models"):
            yield self.entry(f"models/{name}.yaml", Model)

    def gpus(self) -> Iterator[Gpu]:
        for name in self.names("gpus"):
            yield self.entry(f"gpus/{name}.yaml", Gpu)

    @cached_property
    def index(self) -> Index:
        """From index.yaml where the folder has one, else from all its files."""
        if self.has_index and self.has(INDEX):
            return validate(self.document(INDEX), Index)
        return self.built_index()[0]

    def built_index(self) -> tuple[Index, list[str]]:
        """The index as the files are now, and the names claimed twice."""
        models, model_clashes = table((m.id, model_names(m)) for m in self.models())
        gpus, gpu_clashes = table((g.id, gpu_names(g)) for g in self.gpus())
        called = (((g.aliases or (g.id,))[0], device_names(g)) for g in self.gpus())
        devices, device_clashes = table(called)
        index = Index(models=models, gpus=gpus, devices=devices)
        return index, [*model_clashes, *gpu_clashes, *device_clashes]


def index_text(index: Index) -> str:
    lines = [INDEX_NOTE.rstrip()]
    for part, names in (("models", index.models), ("gpus", index.gpus), ("devices", index.devices)):
        lines.append(f"{part}:")
        lines += [f"  '{name}': {entry_id}" for name, entry_id in names.items()]
    return "\n".join(lines) + "\n"


def write_index(path: Path) -> Path:
    """Write `index.yaml` for the catalog folder `path`, as its files are now."""
    index, clashes = Folder(path, path.name, has_index=False).built_index()
    if clashes:
        raise CatalogError(*(f"{path.name}: {clash}. Give each its own name." for clash in clashes))
    target = path / INDEX
    half = target.with_suffix(".yaml.tmp")
    half.write_text(index_text(index), encoding="utf-8")
    half.replace(target)
    return target
