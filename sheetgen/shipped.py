"""The folders that stand beside the package in a repository, or in it where it is installed; and tables of words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sheetgen.errors import SheetgenError


def shipped_folder(name: str) -> Path:
    """`catalogs/` or `templates/` of the repository, or the copy that an installed package carries."""
    package = Path(__file__).resolve().parent
    for candidate in (package.parent / name, package / "_data" / name):
        if candidate.is_dir():
            return candidate
    raise SheetgenError(f"no {name} found beside {package} or in it. Reinstall sheetgen.")


@cache
def shipped_table(file: str) -> Mapping[str, Any]:
    """A table of `templates/`."""
    import tomllib  # which most commands do without

    return tomllib.loads((shipped_folder("templates") / file).read_text(encoding="utf-8"))
