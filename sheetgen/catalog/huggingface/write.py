"""A model entry as the YAML text of its catalog file."""

from __future__ import annotations

import re
from typing import Any

from sheetgen.catalog.model import Model
from sheetgen.catalog.reader import plain_value

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/()+-]*")


def write_yaml(model: Model) -> str:
    """Text that `sheetgen check` accepts and that reads back as the same entry. One line a field."""
    data = model.model_dump(mode="json", exclude_defaults=True)
    lines: list[str] = []
    for key in type(model).model_fields:
        if key in data:
            lines += _field(key, data[key])
    return "\n".join(lines) + "\n"


def _field(key: str, value: Any) -> list[str]:
    if isinstance(value, dict) and key == "params":
        return [f"{key}:", *(f"  {name}: {_scalar(item)}" for name, item in value.items())]
    if isinstance(value, dict):
        return [f"{key}: {_flow(value)}"]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [f"{key}:", *(f"  - {_flow(item)}" for item in value)]
    if isinstance(value, list) and key == "notes":
        return [f"{key}:", *(f"  - {_scalar(item)}" for item in value)] if value else []
    if isinstance(value, list):
        return [f"{key}: [{', '.join(map(_scalar, value))}]"]
    return [f"{key}: {_scalar(value)}"]


def _flow(value: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{_scalar(key)}: {_scalar(item)}" for key, item in value.items() if item is not None) + "}"


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and isinstance(plain_value(text), str) and text == text.strip():
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
