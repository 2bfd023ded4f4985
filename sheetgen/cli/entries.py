"""`sheetgen list`, `show` and `check`: what the catalogs hold, and every problem in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import common
from sheetgen.cli.output import count, note, number_text, print_json, say, table
from sheetgen.errors import CatalogError, UnknownNameError, did_you_mean, shown

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog

Row = dict[str, Any]
Value = Callable[[Any], Any]
Entry = tuple[str, str, dict[str, Any]]  # kind, file and fields
PARTS = ("models", "gpus", "instances", "engines")


def _same(*names: str) -> dict[str, Value]:
    """Columns that have the name of a field of the entry."""
    return {name: attrgetter(name) for name in names}


def _listed(instance: Any) -> Any:
    """The price of an hour that is not agreed on before."""
    from sheetgen.units import ON_DEMAND

    return instance.price(ON_DEMAND)


def _engines(catalog: Catalog) -> list[Any]:
    from sheetgen.catalog.engines import load_engine

    names = {n for folder in catalog.folders for n in folder.names("engines")}
    return [load_engine(catalog, name) for name in sorted(names)]


# By kind its entries, and what each column has of one.
_LISTS: dict[str, tuple[Callable[[Catalog], Iterable[Any]], dict[str, Value]]] = {
    "models": (lambda catalog: catalog.models(), {
        **_same("id", "name"), "aliases": lambda m: list(m.aliases), "n_params": attrgetter("params.total"),
        "n_params_active": attrgetter("params.active"),
        **_same("max_context_tokens", "weight_dtype", "kind", "confidence"),
    }),
    "gpus": (lambda catalog: catalog.gpus(), {
        **_same("id", "name"), "aliases": lambda g: list(g.aliases), **_same("vendor"),
        "memory_bytes": attrgetter("memory.engine_bytes"),
        "memory_gib": lambda g: round(g.memory.engine_bytes / 2**30, 2),
        "memory_basis": attrgetter("memory.basis"),
        "bandwidth_gb_per_second": lambda g: round(g.memory_bandwidth_bytes_per_second / 1e9, 1),
    }),
    "instances": (lambda catalog: catalog.instances(), {
        **_same("id", "gpu", "gpu_count", "unit", "region"),
        "on_demand_usd_per_hour": lambda i: price.usd_per_hour if (price := _listed(i)) else None,
        "price_as_of": lambda i: price.as_of if (price := _listed(i)) else None,
        "other_prices": lambda i: [p.purchase for p in i.prices if p != _listed(i)],
    }),
    "workloads": (
        lambda catalog: catalog.workloads(),
        _same("id", "name", "context_tokens", "input_tokens", "output_tokens", "about"),
    ),
    "engines": (_engines, {
        "id": attrgetter("engine"), **_same("name", "default_version"),
        "rules_change_from": lambda e: [v.from_version for v in e.versions],
        **_same("gpu_memory_utilization", "block_size"), "vendors": lambda e: list(e.vendors),
    }),
}  # fmt: skip


@click.command("list")
@click.argument("kind", type=click.Choice(list(_LISTS)))
@click.argument("words", nargs=-1)
@common
def list_entries(kind: str, words: tuple[str, ...], as_json: bool, catalogs: tuple[str, ...], quiet: bool) -> None:
    """Models, GPUs, instances, workloads or engines; only rows that contain every one of WORDS.

    \b
    Examples:
      sheetgen list models llama 70b
      sheetgen list gpus nvidia --json
      sheetgen list instances aws h100
    """
    from sheetgen.catalog import Catalog

    entries, columns = _LISTS[kind]
    listed = ({name: value(one) for name, value in columns.items()} for one in entries(Catalog(*catalogs)))
    rows = [row for row in listed if _matches(row, words)]
    if as_json:
        print_json(rows)
        return
    if not rows:
        say(f"No {kind} with {' and '.join(words)}." if words else f"No {kind}.")
        return
    head = list(rows[0])
    numbers = [i for i, name in enumerate(head) if any(isinstance(r[name], (int, float)) for r in rows)]
    cells = ([_cell(v) for v in row.values()] for row in rows)
    say(table([[name.replace("_", " ") for name in head], *cells], numbers))
    note(f"{len(rows)} {kind}", quiet)


def _matches(row: Row, words: Sequence[str]) -> bool:
    text = " ".join(_cell(v) for v in row.values()).lower()
    return all(word.lower() in text for word in words)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


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
    from sheetgen.catalog.engines import SpeedFile

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


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@click.option("--write-index", is_flag=True, help="First write the catalogs' index of names anew.")
@common
def check(paths: tuple[str, ...], write_index: bool, as_json: bool, catalogs: tuple[str, ...], quiet: bool) -> None:
    """Validate catalogs: all of them, or only the folders and files named. Exits 1 where there is a problem.

    \b
    Examples:
      sheetgen check
      sheetgen check my-catalogs/
      sheetgen check catalogs/models/llama-3.1-70b.yaml
      sheetgen check --write-index          after adding or renaming a model or GPU
    """
    if write_index:
        from sheetgen.catalog import default_folder
        from sheetgen.catalog import write_index as write

        write(default_folder())
    problems = list(dict.fromkeys(p for path in paths or (None,) for p in _problems(path, catalogs)))
    files = {p.split(":", 1)[0] for p in problems}
    if as_json:
        print_json({"problems": problems, "n_files": len(files)})
    else:
        for problem in problems:
            say(problem, err=True)
    if problems:
        if not as_json:
            say(f"{count(len(problems), 'problem')} in {count(len(files), 'file')}.", err=True)
        raise SystemExit(1)
    if not as_json and not quiet:
        say("No problem found in " + (", ".join(paths) if paths else "the catalogs") + ".")


def _problems(path: str | None, catalogs: tuple[str, ...]) -> list[str]:
    """The problems of all catalogs, or of the one folder or file at `path`."""
    from sheetgen.catalog import Catalog, default_folder
    from sheetgen.catalog.check import problems_of

    if path is None:
        return problems_of(Catalog(*catalogs))
    target = Path(path)
    folder = _catalog_of(target)
    shipped = folder.resolve() == default_folder().resolve()
    catalog = Catalog(*catalogs) if shipped else Catalog(*catalogs, folder)
    inside = target.resolve().relative_to(folder.resolve()).as_posix()
    prefix = "/".join(("catalogs" if shipped else str(folder).rstrip("/"), *((inside,) if inside != "." else ())))
    return [p for p in problems_of(catalog) if p.startswith((prefix + ":", prefix + "/"))]


def _catalog_of(target: Path) -> Path:
    """The catalog folder that `target` is, or is in."""
    if not target.exists():
        raise CatalogError(f"{shown(target)}: does not exist. Name a catalog folder or a file in one.")
    folder = target if target.is_dir() else target.parent
    if folder.resolve().name in PARTS:
        folder = folder.resolve().parent if folder.is_absolute() else folder.parent
    holds = any((folder / part).is_dir() for part in PARTS) or any(folder.glob("*.yaml"))
    if not holds or (target.is_file() and target.suffix != ".yaml"):
        raise CatalogError(f"{shown(target)}: is no catalog. Name a folder like catalogs/ or a .yaml file in one.")
    return folder
