"""`sheetgen list`: what the catalogs hold, as a table that words narrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import common
from sheetgen.cli.output import note, print_json, say, table

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog

Row = dict[str, Any]
Value = Callable[[Any], Any]


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
    say(table([name.replace("_", " ") for name in head], cells, numbers))
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
