"""A config.json from disk or from the Hugging Face hub (only for `catalog import ORG/NAME`), and its fields by name.

Only JSON is read, and nothing is run: `auto_map` is text like any other. The only other file fetched of a repository is
ModelOpt's hf_quant_config.json. Missing fields and wrong types are reported, never guessed.
"""

from __future__ import annotations

import difflib
import importlib
import itertools
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from sheetgen.catalog.base import RawMapping, RawRecord, RawValue
from sheetgen.errors import CatalogError, as_stated, did_you_mean, shown, unreadable
from sheetgen.input_files import is_pipe, read_bounded

MAX_FILE_BYTES = 5_000_000
MAX_DEPTH = 30
MOST_NAMED = 3  # files of a folder that could have been meant


def config_path(name: str | Path) -> Path:
    """The file at a path, or config.json in a folder. Raises CatalogError if that cannot be a config."""
    path = Path(name).expanduser()
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError as error:  # a name that is too long for a file
        raise CatalogError(f"{shown(name, 200)}: {unreadable(error)}.") from error
    if not is_folder:
        if is_there and path.suffix.lower() != ".json" and not is_pipe(path):
            raise CatalogError(f"{shown(name, 200)}: is no config. Name a .json file, or a folder with a config.json.")
        return path
    if not (path / "config.json").is_file():
        others = itertools.islice(itertools.chain(path.glob("*.json"), path.glob("*/config.json")), MOST_NAMED)
        near = " or ".join(shown(other, 200) for other in sorted(others))
        how = f"Name the file itself: {near}" if near else "It comes with the model's weights: copy it there"
        raise CatalogError(f"{shown(name, 200)}: the folder has no config.json. {how}.")
    return path / "config.json"


def read_config(name: str | Path, pipes: bool = False) -> tuple[RawRecord, str]:
    """The config at a path, and the name of its file for messages. Raises CatalogError if it cannot be read.

    `pipes`: it may be a pipe. That of an answer may not: its launch command names the path once more.
    """
    try:
        path = config_path(name)
        raw = read_bounded(path, MAX_FILE_BYTES, pipes=pipes)
    except RuntimeError as error:  # ~ of an unknown user
        raise CatalogError(f"{shown(name, 200)}: {unreadable(error)}.") from error
    except ValueError as error:
        raise CatalogError(f"{shown(name, 200)}: {error}.") from error
    where = shown(path, 200)
    return read_bytes(raw, where), where


def read_quantization_beside(file: Path) -> RawRecord | None:
    """The hf_quant_config.json in the folder of a config.json; None if there is none."""
    other = file.with_name(BESIDE)
    if file.name.lower() != "config.json" or not other.is_file():
        return None
    return read_config(other)[0]


def read_bytes(raw: bytes, where: str) -> RawRecord:
    """The JSON object in a file's bytes. Raises CatalogError, with `where`, for anything else, and for duplicate
    keys."""

    def without_duplicates(pairs: list[tuple[str, RawValue]]) -> RawRecord:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            twice = next(key for i, (key, _) in enumerate(pairs) if any(key == other for other, _ in pairs[:i]))
            raise CatalogError(f"{where}: {shown(twice)} is given twice. Keep one.")
        return fields

    try:
        config = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=without_duplicates)
    except UnicodeDecodeError as error:
        raise CatalogError(f"{where}: is not UTF-8 text.") from error
    except json.JSONDecodeError as error:
        raise CatalogError(f"{where}:{error.lineno}: is not valid JSON ({shown(error.msg)}).") from error
    except RecursionError:
        raise CatalogError(f"{where}: is nested deeper than {MAX_DEPTH} levels.") from None
    except ValueError as error:  # a number of thousands of digits
        raise CatalogError(f"{where}: holds a number that is too long.") from error
    if not isinstance(config, dict):
        kind = {list: "list", str: "text", bool: "true or false", type(None): "null"}.get(type(config), "number")
        raise CatalogError(f"{where}: is a {kind}, but a config.json is a mapping of fields.")
    inside: list[RawValue] = [config]
    for _ in range(MAX_DEPTH):
        values = (value for part in inside for value in (part.values() if isinstance(part, dict) else part))
        inside = [value for value in values if isinstance(value, (dict, list))]
    if inside:
        raise CatalogError(f"{where}: is nested deeper than {MAX_DEPTH} levels.")
    return config


_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def is_hub_id(name: str) -> bool:
    """True for a name such as `org/name`, unless a file or folder has it."""
    return bool(_ID.fullmatch(name)) and not name.lower().endswith(".json") and not Path(name).exists()


BESIDE = "hf_quant_config.json"  # ModelOpt's description of the quantization


def fetch_config(hf_id: str) -> tuple[RawRecord, RawRecord | None]:
    """The config of a Hugging Face repository, and its hf_quant_config.json if there is one.

    The library's own cache and login are used. Raises CatalogError if the config cannot be fetched.
    """
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        raise CatalogError(
            f"{shown(hf_id, 200)}: is no file or folder here. To fetch its config.json from Hugging Face, install"
            f" huggingface_hub ({sys.executable} -m pip install huggingface_hub), or download the file and name it."
        ) from None
    config = _fetched(hub, hf_id, "config.json")
    assert config is not None
    return config, _fetched(hub, hf_id, BESIDE, may_be_missing=True)


def _fetched(hub: Any, hf_id: str, file: str, may_be_missing: bool = False) -> RawRecord | None:
    try:
        path = hub.hf_hub_download(repo_id=hf_id, filename=file)
    except Exception as error:  # errors of the library, its HTTP client and the system
        if may_be_missing and any(kind.__name__ == "EntryNotFoundError" for kind in type(error).__mro__):
            return None
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise CatalogError(
            f"{shown(hf_id, 200)}: its {file} cannot be fetched ({shown(reason, 150)}). Download the file, and name it."
        ) from error
    return read_config(path)[0]


MAX_COUNT = 10**9  # no published width, vocabulary or context is larger
MAX_LAYERS = 2_000
LIKE_KEYS = 0.7  # the least likeness of a key to a missing one that it may be: many end in the same word
_NEEDED = object()
_EXAMPLES: dict[str, int] = {
    "max_position_embeddings": 131072, "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256,
}  # fmt: skip


class Fields:
    """A mapping of the config, read by key with checks.

    inside: its location in the file, for messages. defaults: values for absent keys. rename: for absent keys, the
    dotted paths of a family's own names.
    """

    def __init__(
        self,
        data: RawMapping,
        where: str,
        inside: str = "",
        defaults: RawMapping | None = None,
        rename: Mapping[str, str] | None = None,
    ) -> None:
        self.data, self.where, self.inside = data, where, inside
        self.defaults, self.rename = defaults or {}, rename or {}

    def reading(self, defaults: RawMapping, rename: Mapping[str, str]) -> Fields:
        """The same fields with a family's defaults and key names."""
        return Fields(self.data, self.where, self.inside, defaults, rename)

    def adding(self, /, **values: object) -> Fields:
        """The same fields with some added or replaced."""
        return Fields({**self.data, **values}, self.where, self.inside, self.defaults, self.rename)

    def raw(self, key: str) -> RawValue:
        """The value in the file, else the default; None for neither."""
        value = self.data.get(key)
        if value is None and key in self.rename:
            value = self.data
            for step in self.rename[key].split("."):
                value = value.get(step) if isinstance(value, Mapping) else None
        if value is None and key not in self.data:
            return self.defaults.get(key)
        return value

    def has(self, key: str) -> bool:
        return self.raw(key) is not None

    def first(self, *keys: str) -> str:
        """The first of several keys that has a value; if none has, the first key."""
        return next((key for key in keys if self.has(key)), keys[0])

    def refuse(self, key: str, problem: str) -> NoReturn:
        name = key if key in self.data else self.rename.get(key, key)
        raise CatalogError(f"{self.where}: {shown(self.inside + name, 120)} {problem}")

    def number(self, key: str, default: RawValue = _NEEDED, least: float = 0, most: float = MAX_COUNT) -> float:
        value = self._given(key, default, f"a number from {least:,} to {most:,}")
        is_other = not isinstance(value, (int, float)) or value != value
        number: float = self._within(key, value, is_other, "a number", least, most)
        return number

    def _within(self, key: str, value: RawValue, is_other: bool, kind: str, least: float, most: float) -> RawValue:
        if isinstance(value, bool) or is_other:
            self.refuse(key, f"is {as_stated(value)}, but must be {kind}.")
        if not least <= value <= most:
            self.refuse(key, f"is {shown(value)}, but must be from {least:,} to {most:,}.")
        return value

    def count(self, key: str, default: RawValue = _NEEDED, least: int = 1, most: int = MAX_COUNT) -> int:
        value = self._given(key, default, f"a whole number from {least:,} to {most:,}")
        return int(self._within(key, value, not isinstance(value, int), "a whole number", least, most))

    def count_or_zero(self, key: str, default: int = 0) -> int:
        return self.count(key, default, least=0)

    def layers(self) -> int:
        return self.count("num_hidden_layers", most=MAX_LAYERS)

    def flag(self, key: str | bool, default: RawValue = _NEEDED) -> bool:
        """The boolean at a key; True or False in place of the key is returned as it is."""
        if isinstance(key, bool):
            return key
        return bool(self._of_kind(key, default, bool, "true or false"))

    def text(self, key: str, default: RawValue = _NEEDED) -> str:
        return str(self._of_kind(key, default, str, "text"))

    def one_of(self, key: str, allowed: Mapping[str, str], default: RawValue = _NEEDED) -> str:
        """The meaning of the word at a key, by the `allowed` words."""
        return self._among(key, self.text(key, default), allowed)

    def _among(self, key: str, word: object, allowed: Mapping[str, str]) -> str:
        if not isinstance(word, str) or word not in allowed:
            near = did_you_mean(word, allowed) if isinstance(word, str) else ""
            self.refuse(key, f"is {shown(word)!r}, but must be one of {', '.join(allowed)}.{near}")
        return allowed[word]

    def part(self, key: str, defaults: RawMapping | None = None) -> Fields:
        value = self._of_kind(key, _NEEDED if defaults is None else {}, Mapping, "a mapping of fields")
        return Fields(value, self.where, f"{self.inside}{key}.", defaults)

    def parts(self, key: str, length: int) -> list[Fields]:
        """The list of mappings at a key, one per layer."""
        items = self.items(key, length)
        for i, item in enumerate(items):
            if not isinstance(item, Mapping):
                self.refuse(f"{key}[{i}]", f"is {as_stated(item)}, but must be a mapping of fields.")
        return [Fields(item, self.where, f"{self.inside}{key}[{i}].") for i, item in enumerate(items)]

    def items(self, key: str, length: int | None = None) -> list[RawValue]:
        value = self._of_kind(key, _NEEDED, (list, tuple), "a list")
        if length is not None and len(value) != length:
            self.refuse(key, f"has {len(value):,} items, but the model has {length:,} layers.")
        return list(value)

    def whole_numbers(self, key: str, length: int | None = None) -> list[int]:
        items = self.items(key, length)
        for i, item in enumerate(items):
            if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item <= MAX_COUNT:
                self.refuse(f"{key}[{i}]", f"is {as_stated(item)}, but must be a whole number.")
        return items

    def words(self, key: str, allowed: Mapping[str, str], length: int | None = None) -> list[str]:
        """The meanings of the words in the list at a key, by the `allowed` words."""
        return [self._among(f"{key}[{i}]", item, allowed) for i, item in enumerate(self.items(key, length))]

    def _of_kind(self, key: str, default: RawValue, kind: type | tuple[type, ...], called: str) -> RawValue:
        value = self._given(key, default, called)
        if not isinstance(value, kind):
            self.refuse(key, f"is {as_stated(value)}, but must be {called}.")
        return value

    def refuse_missing(self, key: str, allowed: str, example: int | str | None = None) -> NoReturn:
        """Raise CatalogError for a key without a value, with the line to add: `allowed` is what its value may be."""
        keys = [str(k) for k in self.data if k != key][:500]
        near = did_you_mean(key, difflib.get_close_matches(key, keys, n=1, cutoff=LIKE_KEYS))
        line = f", such as {json.dumps(key)}: {json.dumps(example)}" if example is not None else ""
        self.refuse(key, f"is missing, and the model cannot be counted without it.{near} Add {allowed}{line}.")

    def _given(self, key: str, default: RawValue, allowed: str) -> RawValue:
        value = default if (given := self.raw(key)) is None else given
        if value is _NEEDED:
            self.refuse_missing(key, allowed, _EXAMPLES.get(key))
        return value
