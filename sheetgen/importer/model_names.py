"""The model that a user names: by a name of the catalogs, or by the path of a config.json of the user's own."""

from __future__ import annotations

from pathlib import Path

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model


def resolve_model(name: str, catalog: Catalog) -> tuple[Model, str | None]:
    """The model that `name` means, and the weight dtype if the name says one.

    An imported model is in the catalog from then on, by its id. Raises CatalogError for a name that stands for
    nothing, and for a config that cannot be read.
    """
    if catalog.lists_model(name) or not is_path(name):
        return catalog.resolve_model(name)
    from sheetgen.importer.model_entry import import_file

    model, where = import_file(name)
    catalog.add_model(model, where)
    return model, None


def is_path(name: str) -> bool:
    """True for a `.json` file or a folder: a model of the user's own, not a name in the catalogs."""
    if name.lower().endswith(".json") or name.startswith(("/", "./", "../", "~", ".\\")) or "\\" in name:
        return True
    try:
        return (Path(name) / "config.json").is_file()
    except (OSError, ValueError):  # too long, or no file name at all
        return False
