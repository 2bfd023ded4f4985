"""`sheetgen show`: one catalog entry, with its sources and the file that it is in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import common
from sheetgen.cli.output import number_text, print_json, say
from sheetgen.errors import CatalogError, UnknownNameError, did_you_mean, shown

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog

Entry = tuple[str, str, dict[str, Any]]  # kind, file and fields


@click.command()
@click.argument("name", metavar="ID")
@common
def show(name: str, as_json: bool, catalogs: tuple[str, ...], quiet: bool) -> None:
    """One model, GPU, instance, workload or engine, as its file has it. ID may be any of its names.

    \b
    Examples:
      sheetgen show 70b
      sheetgen show h100
      sheetgen show aws/p5.48xlarge --json
    """
    from sheetgen.catalog import Catalog

    kind, file, entry = find(name, Catalog(*catalogs))
    if as_json:
        print_json({"kind": kind, "file": file, **entry})
        return
    say(f"{kind}, in {file}\n")
    for line in _lines(entry):
        say(line)


def find(name: str, catalog: Catalog) -> Entry:
    """The kind of entry that `name` means, its file, and its fields.

    Raises CatalogError where it is ambiguous or in no catalog.
    """
    near = ""
    for look in (_model, _gpu, _workload, _engine, _instance):
        try:
            return look(name, catalog)
        except UnknownNameError as error:
            near = near or error.near
    listed = "`sheetgen list models` (gpus, instances, ...) has all."
    raise CatalogError(f"{shown(name)!r} is in no catalog.{near} {listed}")


def _model(name: str, catalog: Catalog) -> Entry:
    from sheetgen.scenario.deployment import model_columns
    from sheetgen.sizing.kv_cache import kv_bytes_per_token, state_bytes_per_sequence

    found = catalog.model(name)
    columns = model_columns(found, found.weight_dtype, found.kv_cache_dtype)
    derived = {
        f"kv_bytes_per_token at {found.kv_cache_dtype}": kv_bytes_per_token.of(columns),
        "state_bytes_per_sequence": state_bytes_per_sequence.of(columns),
    }
    where = catalog.read_document(f"models/{found.id}.yaml").where
    return "model", where, {**found.model_dump(mode="json"), "derived": derived}


def _gpu(name: str, catalog: Catalog) -> Entry:
    found = catalog.gpu(name)
    return "gpu", catalog.read_document(f"gpus/{found.id}.yaml").where, found.model_dump(mode="json")


def _instance(name: str, catalog: Catalog) -> Entry:
    found = catalog.instance(name)
    where = catalog.read_document(f"instances/{found.provider}.yaml").where
    return "instance", where, {"id": found.id, **found.model_dump(mode="json")}


def _workload(name: str, catalog: Catalog) -> Entry:
    known = {w.id: w for w in catalog.workloads()}
    found = known.get(name.strip().lower())
    if found is None:
        raise UnknownNameError(f"workload {shown(name)!r} is not in the catalogs.", did_you_mean(name, known))
    return "workload", catalog.read_document("workloads.yaml").where, found.model_dump(mode="json")


def _engine(name: str, catalog: Catalog) -> Entry:
    from sheetgen.catalog.engines import load_engine

    key = name.strip().lower()
    if not any(key in folder.names("engines") for folder in catalog.folders):
        raise UnknownNameError(f"engine {shown(name)!r} is not in the catalogs.", "")
    entry = load_engine(catalog, key).model_dump(mode="json")
    return "engine", catalog.read_document(f"engines/{key}.yaml").where, {**entry, "speed": _speed(key, catalog)}


def _speed(engine: str, catalog: Catalog) -> dict[str, Any]:
    """The constants of an engine's speed by generation of GPUs, and those for all other GPUs."""
    from sheetgen.catalog.speed import SpeedFile

    known = catalog.file(SpeedFile)
    name = known.same_as.get(engine, engine)
    found: dict[str, Any] = {"file": catalog.read_document(SpeedFile.file_name).where}
    if name != engine:
        found["as"] = f"{name}: {known.same_as_source}"
    for cell in (c for c in known.cells if c.engine == name):
        measured = {"n_rows": cell.n_rows, "n_configurations": cell.n_configurations,
                    "measured_gpus": list(cell.measured_gpus)}  # fmt: skip
        found[cell.generation] = {**measured, **cell.constants.model_dump(mode="json")}
    found["other GPUs"] = {"source": known.default_source, **known.default.model_dump(mode="json")}
    return found


def _lines(value: Any, indent: str = "") -> Iterator[str]:
    """Nested fields, a line each; a mapping of plain values stands on one line within a list."""
    for key, item in value.items() if isinstance(value, dict) else ((None, v) for v in value):
        label = f"{indent}{key}: " if key is not None else f"{indent}- "
        if (isinstance(item, dict) and item and key is not None) or (
            isinstance(item, list) and any(isinstance(x, (dict, str)) and len(str(x)) > 40 for x in item)
        ):
            yield label.rstrip()
            yield from _lines(item, indent + "  ")
        else:
            past = item.get("history", ()) if isinstance(item, dict) else ()  # of a price: what it was before
            yield label + _plain({k: v for k, v in item.items() if k != "history"} if isinstance(item, dict) else item)
            for price in past:
                yield f"{indent}  before: {_plain({k: v for k, v in price.items() if v is not None})}"


def _plain(value: Any) -> str:
    if value is None or value == {} or value == []:
        return "–"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_plain(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number_text(value)
    return f"{value:,}" if isinstance(value, int) and value > 9999 else str(value)
