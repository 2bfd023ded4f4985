"""The model that a user names, by a name of the catalogs or by the path of a config.json of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model
from sheetgen.errors import CatalogError, ScenarioError, SheetgenError, shown

_OF_SHAPE = ("n_layers", "hidden_size", "n_heads", "vocab_size")


def resolve_model(name: str, catalog: Catalog) -> tuple[Model, str | None]:
    """The model that `name` means, and the weight dtype if the name states one.

    An imported model is added to the catalog under its id. Raises CatalogError for an unknown name, and for a config
    that cannot be read.
    """
    if catalog.lists_model(name) or not is_path(name):
        return catalog.resolve_model(name)
    from sheetgen.catalog.families import FamilyFile
    from sheetgen.importer.model_entry import import_file, names_of_file

    model, where = import_file(name, families=catalog.file(FamilyFile))
    of_catalog = model_named_by_file(model, names_of_file(name), catalog)
    model = model.model_copy(update={"hosted_as": of_catalog.id if of_catalog else ""})
    catalog.add_model(model, where)
    return model, None


def place_of_model(name: str, ids: Sequence[str], option: str, catalog: Catalog) -> int:
    """The position of the model that `name` means among the ids of a sheet's. Raises ScenarioError where it is none."""
    with contextlib.suppress(ValueError, SheetgenError):
        return ids.index(name if name in ids else resolve_model(name, catalog)[0].id)
    raise ScenarioError(f"{option} is {shown(name)!r}. It must be one of the sheet's models: {', '.join(ids)}.")


def model_named_by_file(model: Model, names: Iterable[str], catalog: Catalog) -> Model | None:
    """The catalog model of the first of an imported model's names that the catalogs know.

    None if they know none, or if that model is not listed or has another shape.
    """
    for name in names:
        with contextlib.suppress(CatalogError):
            listed = catalog.model(name)
            is_same = all(getattr(listed, field) == getattr(model, field) for field in _OF_SHAPE)
            return listed if listed.is_listed and is_same else None
    return None


def is_path(name: str) -> bool:
    """True for a `.json` file or a folder: a model of the user's own, not a name in the catalogs."""
    if name.lower().endswith(".json") or name.startswith(("/", "./", "../", "~", ".\\")) or "\\" in name:
        return True
    try:
        return (Path(name) / "config.json").is_file()
    except (OSError, ValueError):  # too long, or no file name at all
        return False
