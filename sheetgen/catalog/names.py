"""How a name that people write finds its entry (ids, aliases, Hugging Face ids, quantized checkpoints), and one catalog
folder on disk: its files, and the index of such names that finds one entry without reading all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from pydantic import Field

from sheetgen.catalog.base import Document, E, Entry, read_document, validate
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.model import Model
from sheetgen.errors import CatalogError, shown

SPARE_WORDS = {"meta", "instruct", "chat", "it", "hf", "base"}  # parts of a name that name no other shape

# The end of a checkpoint's name, and the precision of its weights. First match wins.
_SUFFIXES = tuple((re.compile(rf"[-_.]({pattern})$"), dtype) for pattern, dtype in (
    (r"fp8[-_](dynamic|static|block|kv|tensor)", "fp8"), (r"(quantized\.)?w8a8[-_]fp8", "fp8"), (r"fp8", "fp8"),
    (r"nvfp4(a16)?([-_](kv|v\d+))?|fp4", "nvfp4"), (r"mxfp4", "mxfp4"),
    (r"gptq[-_](int8|8bit)|(quantized\.)?(w8a8|w8a16)([-_](int8|g128))?|int8|8bit", "int8"),
    (r"(quantized\.)?w4a16([-_]g128)?", "int4"), (r"(awq|gptq|autoround)([-_](int4|4bit|g128|w4a16|marlin))*", "int4"),
    (r"(unsloth[-_])?bnb[-_]4bit|int4([-_](awq|gptq|autoround))?|4bit", "int4"), (r"bf16", "bf16"), (r"fp16", "fp16"),
))  # fmt: skip


def stem(name: str) -> str:
    """The catalog id that a Hugging Face name asks for: no organisation, no spare words, lower case."""
    last = name.strip().lower().rsplit("/", 1)[-1].replace("_", ".")
    parts = last.split("-")
    return "-".join(part for part in parts if part not in SPARE_WORDS) or last


def without_precision(name: str) -> tuple[str, str] | None:
    """`x-FP8-dynamic` as (`x`, `fp8`); nothing where the name ends in no known precision."""
    low = name.strip().lower()
    for pattern, dtype in _SUFFIXES:
        if match := pattern.search(low):
            return low[: match.start()], dtype
    return None


def is_path(name: str) -> bool:
    """A `.json` file, or a folder: a model of the user's own, not a name in the catalogs."""
    if name.lower().endswith(".json") or name.startswith(("/", "./", "../", "~", ".\\")) or "\\" in name:
        return True
    try:
        return (Path(name) / "config.json").is_file()
    except (OSError, ValueError):  # too long, or no file name at all
        return False


def model_names(model: Model) -> tuple[list[str], list[str]]:
    """The names that are a model's own, and those that only follow from them."""
    own = [model.id, *model.aliases, *model.same_architecture, *([model.hf_id] if model.hf_id else [])]
    shorter = [found[0] for name in own if (found := without_precision(name)) and found[1] == "bf16"]
    checkpoints = [checkpoint.hf_id for checkpoint in model.checkpoints if checkpoint.hf_id]
    follows = [model.name, *map(stem, [*own, *shorter]), *checkpoints]  # its name: as workbooks and pages call it
    return [name.lower() for name in own], [name.lower() for name in follows]


def gpu_names(gpu: Gpu) -> tuple[list[str], list[str]]:
    """The same of a GPU."""
    follows = gpu.id.removeprefix(f"{gpu.vendor}-"), gpu.name, gpu.short_name
    return [gpu.id, *gpu.aliases], [gpu_key(name) for name in follows]


class Devices:
    """The GPUs that a text names as drivers and engines print them.

    words: a text without any of them names no device.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        makers = sorted({name.split()[0] for name in names})
        self.words = tuple(f"{maker}{end}" for maker in makers for end in (" ", "_"))
        longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        # A size or letter behind it, a `Ti` or a laptop's GPU is another device.
        self._pattern = re.compile(rf"(?<![A-Za-z])({longest_first})(?!\w| (?:Ti|D|Laptop)\b)")

    def find(self, text: str) -> tuple[str, str] | None:
        """The GPU that `text` names, as the catalog calls it and as it stands there; `_` counts as a blank."""
        if not any(word in text for word in self.words):
            return None
        match = self._pattern.search(text.replace("_", " "))
        return (self._names[match[1]], match[1]) if match else None


def gpu_key(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().lower())


def table(entries: Iterable[tuple[str, tuple[Iterable[str], Iterable[str]]]]) -> tuple[dict[str, str], list[str]]:
    """Name to id for all entries, and the names that two entries call their own.

    An own name beats one that only follows; a name that follows from several leads to all of them, with
    spaces between, so that a message can name the candidates.
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

    def entries(self, part: str, schema: type[E]) -> Iterator[E]:
        for name in self.names(part):
            yield self.entry(f"{part}/{name}.yaml", schema)

    @cached_property
    def index(self) -> Index:
        """From index.yaml where the folder has one, else from all its files."""
        if self.has_index and self.has(INDEX):
            return validate(self.document(INDEX), Index)
        return self.built_index()[0]

    def built_index(self) -> tuple[Index, list[str]]:
        """The index as the files are now, and the names claimed twice."""
        models, model_clashes = table((m.id, model_names(m)) for m in self.entries("models", Model))
        all_gpus = list(self.entries("gpus", Gpu))
        gpus, gpu_clashes = table((g.id, gpu_names(g)) for g in all_gpus)
        devices, device_clashes = table(((g.aliases or (g.id,))[0], (g.device_names, ())) for g in all_gpus)
        return Index(models=models, gpus=gpus, devices=devices), [*model_clashes, *gpu_clashes, *device_clashes]


def index_text(index: Index) -> str:
    lines = [INDEX_NOTE.rstrip()]
    for part, names in index:
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
