"""A config.json as plain data, from disk or from the Hugging Face hub (`catalog import ORG/NAME` alone).

JSON is read and nothing is run: `auto_map` is text like any other. Of a repository, nothing else is fetched.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

from sheetgen.errors import CatalogError, shown

MAX_FILE_BYTES = 5_000_000
MAX_DEPTH = 30


def config_path(name: str | Path) -> Path:
    """The file that a path means: itself, or config.json where it is a folder."""
    path = Path(name).expanduser()
    if path.is_dir():
        inside = path / "config.json"
        if not inside.is_file():
            raise CatalogError(f"{shown(name, 200)}: the folder has no config.json.")
        return inside
    return path


def read_config(name: str | Path) -> tuple[dict[str, Any], str]:
    """The config, and the name of its file for messages."""
    try:
        path = config_path(name)
        where = shown(path, 200)
        if path.exists() and not path.is_file():
            raise CatalogError(f"{where}: is not a file.")  # a pipe would be waited for without end
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CatalogError(f"{shown(name, 200)}: cannot be read ({shown(reason)}).") from error
    return read_bytes(raw, where), where


def read_bytes(raw: bytes, where: str) -> dict[str, Any]:
    if len(raw) > MAX_FILE_BYTES:
        raise CatalogError(f"{where}: is larger than {MAX_FILE_BYTES:,} bytes, which no config.json is.")
    try:
        config = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_no_duplicates)
    except UnicodeDecodeError as error:
        raise CatalogError(f"{where}: is not UTF-8 text.") from error
    except json.JSONDecodeError as error:
        raise CatalogError(f"{where}:{error.lineno}: is not valid JSON ({shown(error.msg)}).") from error
    except _DuplicateKeyError as error:
        raise CatalogError(f"{where}: {shown(error)} is given twice. Keep one.") from error
    except RecursionError:
        raise CatalogError(f"{where}: is nested deeper than {MAX_DEPTH} levels.") from None
    except ValueError as error:  # a number of thousands of digits
        raise CatalogError(f"{where}: holds a number that is too long.") from error
    if not isinstance(config, dict):
        raise CatalogError(f"{where}: is a {_kind(config)}, but a config.json is a mapping of fields.")
    if _depth(config) > MAX_DEPTH:
        raise CatalogError(f"{where}: is nested deeper than {MAX_DEPTH} levels.")
    return config


class _DuplicateKeyError(ValueError):
    pass


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKeyError(key)
        found[key] = value
    return found


def _depth(value: Any) -> int:
    """Levels of nesting, without recursion."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        item, level = waiting.pop()
        deepest = max(deepest, level)
        if level > MAX_DEPTH:
            return level
        children = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        waiting += [(child, level + 1) for child in children if isinstance(child, (dict, list))]
    return deepest


def _kind(value: Any) -> str:
    return {list: "list", str: "text", bool: "true or false", type(None): "null"}.get(type(value), "number")


_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def is_hub_id(name: str) -> bool:
    """`org/name`, where no file or folder has that name."""
    return bool(_ID.fullmatch(name)) and not name.lower().endswith(".json") and not Path(name).exists()


def fetch_config(hf_id: str) -> tuple[dict[str, Any], str]:
    """The config, and its name for messages. The library's own cache is used, and its own login."""
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        raise CatalogError(
            f"{shown(hf_id, 200)}: is no file or folder here. To fetch its config.json from Hugging Face, install"
            " huggingface_hub (pip install huggingface_hub), or download the file and name it."
        ) from None
    try:
        path = hub.hf_hub_download(repo_id=hf_id, filename="config.json")
    except Exception as error:  # the library raises its own, its HTTP client's and the system's errors
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise CatalogError(
            f"{shown(hf_id, 200)}: its config.json cannot be fetched ({shown(reason, 150)})."
            " Download the file, and name it."
        ) from error
    config, _ = read_config(path)
    return config, hf_id
