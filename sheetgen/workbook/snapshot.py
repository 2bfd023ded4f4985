"""A workbook as it was read back: plain values by name, and where each of them stands now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sheetgen.workbook.outline import Area, Place

RESULTS = ("instance", "n_instances", "monthly_usd")  # of each load: rec_<model>_<workload>_<tier number>_<result>
NOT_A_LOAD = "context_bytes"  # a constant of the engine's, named like a workload's context


@dataclass(frozen=True)
class NamedCell:
    """The cell behind a defined name: its value, where it stands, and the words beside it.

    A date is a datetime.date, a blank cell None. `has_value` is False for a formula that nobody calculated.
    """

    value: Any
    place: Place
    label: str = ""
    unit: str = ""
    number_format: str = "General"
    is_formula: bool = False
    has_value: bool = True


@dataclass(frozen=True)
class Table(Mapping[str, Mapping[str, Any]]):
    """A table's rows by their key, each by column; rows that are blank are left out.

    names: what the sheet calls each row. formats: number format by column.
    heads: what the sheet calls each column. formulas: cells (key, column) of inputs that hold a formula.
    """

    name: str
    rows: Mapping[str, Mapping[str, Any]]
    areas: Mapping[str, Area]
    at: Mapping[str, int]  # by key, the position in the areas, from 0
    names: Mapping[str, str] = field(default_factory=dict)
    heads: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)  # number format by column
    formulas: frozenset[tuple[str, str]] = frozenset()

    def __getitem__(self, key: str) -> Mapping[str, Any]:
        return self.rows[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, key: str, column: str) -> Place:
        """Where a row's cell stands now."""
        area = self.areas[column]
        return Place(area.sheet, area.top + self.at[key], area.left)


@dataclass(frozen=True)
class Snapshot:
    """All that a workbook says by its defined names; the names stand here without their prefix.

    cells has the same with place, label and formula, by full name. notes are remarks for the reader of a message:
    what was taken though it is unusual, each a line.
    """

    path: str
    version: str
    catalog_sha256: str
    options: Mapping[str, Any]
    inputs: Mapping[str, Any]
    tables: Mapping[str, Table]
    results: Mapping[str, Any]
    cells: Mapping[str, NamedCell]
    notes: tuple[str, ...] = ()

    @property
    def is_calculated(self) -> bool:
        """Whether every result has a value: a file that a program wrote may hold formulas alone."""
        return all(cell.has_value for name, cell in self.cells.items() if name.startswith("rec_"))
