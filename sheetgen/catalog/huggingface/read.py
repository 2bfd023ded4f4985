"""A config.json from disk as plain data. JSON is read and nothing is run: `auto_map` is text like any other."""

from __future__ import annotations

import json
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
