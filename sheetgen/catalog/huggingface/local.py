"""A config on disk as an entry, named after its file, its folder, or its place in the Hugging Face cache."""

from __future__ import annotations

import re
from pathlib import Path

from sheetgen.catalog.huggingface.entry import import_config
from sheetgen.catalog.huggingface.read import config_path, read_config
from sheetgen.catalog.model import Model

_CACHED = re.compile(r"models--([\w.-]+?)--([\w.-]+)")


def import_file(path: str | Path, *, name: str | None = None, model_id: str | None = None) -> tuple[Model, str]:
    """The entry, and the name of its file for messages. A folder stands for its config.json."""
    config, where = read_config(path)
    file = config_path(path)
    hf_id = _cached_id(file)
    label = name or (hf_id.split("/")[1] if hf_id else _label_of(file))
    source = f"config.json of {hf_id}" if hf_id else f"{_printable(file.name)} of {_label_of(file)}"
    model = import_config(config, name=label, hf_id=hf_id, model_id=model_id, source=source, where=where)
    return model, where


def _label_of(file: Path) -> str:
    """The folder's name where the file is plainly called config.json, else the file's."""
    stem = file.stem if file.name.lower() != "config.json" else file.resolve().parent.name
    return _printable(stem)


def _printable(text: str) -> str:
    """Without what no name may hold: control characters, < and >, and a first character that starts a formula."""
    kept = "".join(c for c in text if c.isprintable() and c not in "<>").lstrip("=+-@{| ").strip()
    return kept[:100] or "model"


def _cached_id(file: Path) -> str | None:
    """`org/name` where the file lies in the cache of huggingface_hub."""
    for part in reversed(file.absolute().parts):
        if match := _CACHED.fullmatch(part):
            return f"{match.group(1)}/{match.group(2)}"
    return None
