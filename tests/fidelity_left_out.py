"""Leave one source out: what was calibrated on public logs is set again without those of one source, which are then
predicted. A source is a repository, a thread or a public file, and all logs from it go together.

tests/data/measured/calibrated_on.csv has the constants that logs decide: where they stand (`since` a release, after a
dot the part), how they follow from the logs, and what they are without any. A log counts as what it prints as memory
outside torch, or as the value behind its id. Of a source the lower median counts, so that ten of its logs are no more
than one of another.
"""

from __future__ import annotations

import copy
import csv
import statistics
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import pandas
import yaml
from measured_rows import DATA, ENGINES

from sheetgen.catalog import Catalog


class Calibrated(NamedTuple):
    """Constants of one engine that logs decide together."""

    engine: str
    constants: tuple[str, ...]
    rule: str  # median (the lower of two), largest, whole (the median as a whole number)
    otherwise: float
    logs: dict[str, float | None]


def calibrated_on() -> list[Calibrated]:
    with (DATA / "calibrated_on.csv").open(encoding="utf-8", newline="") as file:
        return [
            Calibrated(
                row["engine"],
                tuple(row["constants"].split()),
                row["rule"],
                float(row["otherwise"] or "nan"),
                {
                    name: float(value) if value else None
                    for name, _, value in (log.partition("=") for log in row["logs"].split())
                },
            )
            for row in csv.DictReader(file)
        ]


def source_of(text: str) -> str:
    """The repository, thread or public file of a log's source."""
    if text.startswith("public file"):
        return text.partition(" (")[0]
    return text.partition(" (")[0].partition(":")[0]


def refit(logs: pandas.DataFrame, without: str = "") -> dict[tuple[str, str], float]:
    """By engine and constant its value from all logs but those of the source `without`."""
    printed = logs.set_index("id")["non_torch_gib"]
    source = logs.set_index("id")["source"].map(source_of)
    moved_to: dict[tuple[str, str], float] = {}
    for row in calibrated_on():
        by_source: dict[str, list[float]] = {}
        for name, value in row.logs.items():
            by_source.setdefault(source[name], []).append(float(printed[name]) if value is None else value)
        left = [statistics.median_low(values) for name, values in by_source.items() if name != without]
        left = left or [row.otherwise]
        middle = max(left) if row.rule == "largest" else statistics.median_low(left)
        value = float(round(middle) if row.rule == "whole" else middle)
        moved_to |= {(row.engine, constant): value for constant in row.constants}
    return moved_to


def stated(catalog: Catalog, engine: str, constant: str) -> float:
    """A constant as the engine's file has it."""
    part, key, unit = _place(catalog.read_document(f"engines/{ENGINES[engine]}.yaml").data, constant)
    return float(unit[part][key] if key else unit[part])


def _place(document: Any, constant: str) -> tuple[str, str, Any]:
    since, _, name = constant.rpartition(":")
    part, _, key = name.partition(".")
    return part, key, next(v for v in document["versions"] if v["from_version"] == since) if since else document


def catalog_without(source: str, logs: pandas.DataFrame, folder: Path, under: Catalog) -> Catalog:
    """The catalogs with the constants set without one source; where that moves none, `under` itself."""
    whole, left = refit(logs), refit(logs, source)
    moved = {name: value for name, value in left.items() if value != whole[name]}
    if not moved:
        return under
    for engine in {engine for engine, _ in moved}:
        name = f"engines/{ENGINES[engine]}.yaml"
        document = copy.deepcopy(under.read_document(name).data)
        for (unit, constant), value in moved.items():
            if unit == engine:
                part, key, place = _place(document, constant)
                if key:
                    place[part][key] = value
                else:
                    place[part] = value
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return Catalog(*(part.path for part in under.folders[1:]), folder)


def moves(logs: pandas.DataFrame, sources: Collection[str]) -> list[str]:
    """The sources without which a constant is another."""
    whole = refit(logs)
    return [source for source in sources if refit(logs, source) != whole]
