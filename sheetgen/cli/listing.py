"""`sheetgen list`: what the catalogs hold, as a table that words narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from sheetgen.cli.options import common
from sheetgen.cli.output import note, print_json, say, table
from sheetgen.units import ON_DEMAND

if TYPE_CHECKING:
    from sheetgen.catalog import Catalog

Row = dict[str, Any]
KINDS = ("models", "gpus", "instances", "workloads", "engines")


@click.command("list")
@click.argument("kind", type=click.Choice(KINDS))
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

    rows = [row for row in _LISTS[kind](Catalog(*catalogs)) if _matches(row, words)]
    if as_json:
        print_json(rows)
        return
    if not rows:
        say(f"No {kind} with {' and '.join(words)}." if words else f"No {kind}.")
        return
    head = list(rows[0])
    numbers = [i for i, name in enumerate(head) if any(isinstance(r[name], (int, float)) for r in rows)]
    say(
        table(
            [name.replace("_", " ") for name in head],
            ([_cell(v) for v in row.values()] for row in rows),
            numbers,
        )
    )
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


def _models(catalog: Catalog) -> list[Row]:
    return [
        {
            "id": m.id,
            "name": m.name,
            "aliases": list(m.aliases),
            "n_params": m.params.total,
            "n_params_active": m.params.active,
            "max_context_tokens": m.max_context_tokens,
            "weight_dtype": m.weight_dtype,
            "kind": m.kind,
            "confidence": m.confidence,
        }
        for m in catalog.models()
    ]


def _gpus(catalog: Catalog) -> list[Row]:
    return [
        {
            "id": g.id,
            "name": g.name,
            "aliases": list(g.aliases),
            "vendor": g.vendor,
            "memory_bytes": g.memory.engine_bytes,
            "memory_gib": round(g.memory.engine_bytes / 2**30, 2),
            "memory_basis": g.memory.basis,
            "bandwidth_gb_per_second": round(g.memory_bandwidth_bytes_per_second / 1e9, 1),
        }
        for g in catalog.gpus()
    ]


def _instances(catalog: Catalog) -> list[Row]:
    rows = []
    for i in catalog.instances():
        on_demand = i.price(ON_DEMAND)
        others = [p.purchase for p in i.prices if p.purchase != ON_DEMAND]
        rows.append(
            {
                "id": i.id,
                "gpu": i.gpu,
                "gpu_count": i.gpu_count,
                "unit": i.unit,
                "region": i.region,
                "on_demand_usd_per_hour": on_demand.usd_per_hour if on_demand else None,
                "price_as_of": on_demand.as_of if on_demand else None,
                "other_prices": others,
            }
        )
    return rows


def _workloads(catalog: Catalog) -> list[Row]:
    return [
        {
            "id": w.id,
            "name": w.name,
            "context_tokens": w.context_tokens,
            "input_tokens": w.input_tokens,
            "output_tokens": w.output_tokens,
            "about": w.about,
        }
        for w in catalog.workloads()
    ]


def _engines(catalog: Catalog) -> list[Row]:
    from sheetgen.catalog.engines import load_engine

    names = sorted({n for folder in catalog.folders for n in folder.names("engines")})
    return [
        {
            "id": e.engine,
            "name": e.name,
            "default_version": e.default_version,
            "rules_change_from": [v.from_version for v in e.versions],
            "gpu_memory_utilization": e.gpu_memory_utilization,
            "block_size": e.block_size,
            "vendors": list(e.vendors),
        }
        for e in (load_engine(catalog, name) for name in names)
    ]


_LISTS = {
    "models": _models,
    "gpus": _gpus,
    "instances": _instances,
    "workloads": _workloads,
    "engines": _engines,
}
