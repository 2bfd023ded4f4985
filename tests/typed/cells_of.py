"""A workbook's cells by the names of inputs and table columns, and random values to type into them."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import books
from amounts import IN_LONG
from workbook_cells import CellValue, Place, areas, values

from sheetgen.question.overrides import ENGINE, SETTINGS, TABLES
from sheetgen.question.parse import Kind
from sheetgen.units import DTYPES

KEYS = {"models": "model_id", "gpus": "gpu", "instances": "instance", "precisions": "dtype"}
TINY = {**books.SMALL, "models": "8b,gemma-3-27b,gpt-oss-20b", "tiers": "1,64", "headline": "chat:64"}
# In the gate a leaner one, where a whole workbook is read back: fewer rows of the same formulas.
FEW = "aws/g6.xlarge,aws/g6e.12xlarge,aws/p5.48xlarge,gcp/a3-highgpu-8g,azure/Standard_NC80adis_H100_v5"
LEAST = "aws/g6.xlarge,aws/g6e.12xlarge,aws/p5.48xlarge"
LEAN = TINY if IN_LONG else {**TINY, "models": "8b,gemma-3-27b", "instances": LEAST}
DAY_ZERO = datetime.date(1899, 12, 30)


class Places:
    """The places of each table's cells: `table[name][row key][column]`, the rows without a key under `spare`."""

    def __init__(self, path: Path) -> None:
        self.values = values(path)
        self.columns = areas(path)

    def rows(self, table: str) -> dict[str, dict[str, Place]]:
        """The places of a table's rows that hold something, by key and column."""
        keys = [self.values.get(place) for place in self.columns[f"cat_{table}_{KEYS[table]}"]]
        return {str(key): self._row(table, i) for i, key in enumerate(keys) if key not in (None, "-")}

    def spare(self, table: str) -> list[dict[str, Place]]:
        """The places of its empty rows."""
        keys = [self.values.get(place) for place in self.columns[f"cat_{table}_{KEYS[table]}"]]
        return [self._row(table, i) for i, key in enumerate(keys) if key in (None, "-")]

    def _row(self, table: str, i: int) -> dict[str, Place]:
        stem = f"cat_{table}_"
        return {name[len(stem) :]: places[i] for name, places in self.columns.items() if name.startswith(stem)}


@dataclass
class Edits:
    """The same edits as cells to type into, and as `typed` of a scenario."""

    cells: dict[Place | str, CellValue] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)

    def input(self, name: str, value: CellValue) -> None:
        self.cells[f"in_{name}"] = value
        self.overrides.setdefault("inputs", {})[name] = value

    def table(self, table: str, key: str, places: Mapping[str, Place], column: str, value: CellValue) -> None:
        self.cells[places[column]] = _as_cell(value)
        self.overrides.setdefault(table, {}).setdefault(key, {})[column] = value

    def own(self, places: Mapping[str, Place], row: Mapping[str, CellValue]) -> None:
        self.cells |= {places[column]: _as_cell(value) for column, value in row.items()}
        self.overrides.setdefault("own_instances", []).append(dict(row))


def _as_cell(value: CellValue) -> CellValue:
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return (datetime.date.fromisoformat(value) - DAY_ZERO).days
    return value


# Random values: near what stands there, so that answers change and are not all alike.
PRECISIONS = [d for d in DTYPES if d not in ("fp32",)]


def value_for(rng: random.Random, kind: Kind, old: CellValue) -> CellValue:
    """A value that the cell takes."""
    if kind.what == "dtype":
        return rng.choice(PRECISIONS)
    if kind.what == "date":
        return f"20{rng.randint(20, 30)}-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}"
    if kind.what == "whole" and kind.high <= 2:
        return rng.randint(0, int(kind.high))
    base = old if isinstance(old, (int, float)) and old else rng.choice((1, 100, 1e9))
    number = base * rng.choice((0.5, 0.9, 1.3, 2, 3))
    number = min(max(number, kind.low), kind.high)
    if kind.what == "whole":
        return int(number)
    return rng.choice((0, number, None)) if kind.blank else number


def typed_columns(places: Places, table: str) -> Iterator[str]:
    """The table's columns that a reader may change."""
    here = next(iter(places.rows(table).values()))
    return (column for column in TABLES[table] if column in here)


ANY_INPUT = {**ENGINE, **SETTINGS}


def without_picks(typed: Mapping[str, Mapping[str, CellValue]]) -> dict[str, Any]:
    """`typed` without what sheets are pointed at: the Decision page begins with the answer of its own build."""
    picks = ("decision_", "case_", "speed_")
    inputs = {n: v for n, v in typed.get("inputs", {}).items() if not n.startswith(picks)}
    rest = {part: rows for part, rows in typed.items() if part != "inputs"}
    return rest | ({"inputs": inputs} if inputs else {})
