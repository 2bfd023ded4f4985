"""Tables out of named columns: rows by key, wherever they stand now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.errors import shown
from sheetgen.scenario.override_kinds import TABLES
from sheetgen.workbook.cells import BLANK, Cell, Grid
from sheetgen.workbook.names import Area, Place, listed
from sheetgen.workbook.snapshot import Table
from sheetgen.workbook.values import column_holds, value_of

KEYS = {"models": "model_id", "gpus": "gpu", "instances": "instance", "precisions": "dtype"}
OF_INSTANCES = ("type", "provider", "instance_gpu", "gpu_count", "price_usd_per_hour", "price_date")
PREFIX = "cat_"
NONE = "-"  # what a formula shows where there is nothing
_NAME_AT = {"models": -1, "gpus": 1}  # columns from the key to the name that people use
_HEAD_ROWS = 6  # how far above a column its head is looked for
Problems = dict[str, list[str]]  # what is wrong: where it is


def required_columns() -> list[str]:
    """The names of columns that every workbook of ours has."""
    found = {table: (KEYS[table], *(OF_INSTANCES if table == "instances" else TABLES[table])) for table in KEYS}
    return [f"{PREFIX}{table}_{column}" for table, columns in found.items() for column in columns]


def columns_of(areas: Mapping[str, Area]) -> dict[str, dict[str, Area]]:
    """By table, each column's area."""
    found: dict[str, dict[str, Area]] = {}
    for name, area in areas.items():
        if name.startswith(PREFIX):
            table, _, column = name.removeprefix(PREFIX).partition("_")
            found.setdefault(table, {})[column] = area
    return {table: columns for table, columns in found.items() if KEYS.get(table) in columns}


def read_table(
    name: str, areas: Mapping[str, Area], grids: Mapping[str, Grid], from_1904: bool, problems: Problems
) -> Table:
    """One table; what is wrong with its cells is added to `problems`."""
    key_column = KEYS[name]
    n_rows = areas[key_column].bottom - areas[key_column].top + 1
    _check_rows(name, areas, n_rows, problems)
    cells = {c: [grids[a.sheet].get((a.top + i, a.left), BLANK) for i in range(n_rows)] for c, a in areas.items()}
    formats = {c: next((f.number_format for f in found if f.value is not None), "") for c, found in cells.items()}
    rows: dict[str, Mapping[str, Any]] = {}
    at: dict[str, int] = {}
    formulas = set()
    for i in range(n_rows):
        row = {c: _value(name, c, i, areas, found[i], from_1904, problems) for c, found in cells.items()}
        inputs = {c: v for c, v in row.items() if c != key_column}
        key = _key(name, row)
        if not key and all(v is None for v in inputs.values()):
            continue
        key = unlike(key or "(no name)", rows)
        rows[key], at[key] = inputs, i
        formulas |= {(key, c) for c, found in cells.items() if found[i].formula is not None and c != key_column}
    names = {key: _beside(name, areas[key_column], i, grids) or key for key, i in at.items()}
    heads = {c: _above(a, grids) for c, a in areas.items()}
    return Table(name, rows, areas, at, names, heads, formats, frozenset(formulas))


def _check_rows(name: str, areas: Mapping[str, Area], n_rows: int, problems: Problems) -> None:
    """Columns of one table stand side by side; those of precisions in three blocks of as many rows."""
    first = areas[KEYS[name]]
    for column, area in areas.items():
        alike = area.bottom - area.top + 1 == n_rows
        if name != "precisions":
            alike = alike and (area.sheet, area.top) == (first.sheet, first.top)
        if not alike:
            why = "does not span the same rows as the others of its table. Insert and delete whole rows only"
            problems.setdefault(f"{why}; start from a fresh build.", []).append(f"{PREFIX}{name}_{column}")


def _value(
    table: str, column: str, i: int, areas: Mapping[str, Area], found: Cell, from_1904: bool, problems: Problems
) -> Any:
    if column == KEYS[table]:
        if found.kind == "e" or found.value == NONE:
            return None
        holds = "text"
        found = found._replace(formula=None)  # a key may be worked out; it is, if nobody did so
    else:
        holds = column_holds(table, column, found.number_format)
    value, problem = value_of(found, holds, from_1904)
    if problem:
        area = areas[column]
        place = Place(area.sheet, area.top + i, area.left)
        problems.setdefault(problem, []).append(f"{PREFIX}{table}_{column} ({place})")
    return value


def _key(table: str, row: Mapping[str, Any]) -> str:
    """What tells the row apart: an instance by provider and type, whether or not it was recalculated."""
    if table == "instances":
        return f"{row.get('provider') or ''}/{row['type']}" if row.get("type") else ""
    if table == "models":  # one of the reader's own has a name alone
        return row[KEYS[table]] or row.get("model") or ""
    return row[KEYS[table]] or ""


def unlike(key: str, taken: Mapping[str, Any]) -> str:
    """`key`, or with a number where a row before has it too."""
    found, n = key, 1
    while found in taken:
        n += 1
        found = f"{key} (row {n} of this name)"
    return found


def _beside(table: str, area: Area, i: int, grids: Mapping[str, Grid]) -> str:
    """What the sheet calls a row, in the column beside its key."""
    found = grids[area.sheet].get((area.top + i, area.left + _NAME_AT.get(table, 0)), BLANK)
    return found.value if isinstance(found.value, str) and found.kind == "s" else ""


def _above(area: Area, grids: Mapping[str, Grid]) -> str:
    """The nearest text above a column: its head."""
    for row in range(area.top - 1, max(0, area.top - 1 - _HEAD_ROWS), -1):
        found = grids[area.sheet].get((row, area.left), BLANK)
        if isinstance(found.value, str) and found.kind == "s":
            return found.value
    return ""


def below(table: Table, grids: Mapping[str, Grid]) -> list[str]:
    """A remark where an instance was typed under the table, out of its reach."""
    area = table.areas["type"]
    if grids[area.sheet].get((area.bottom + 1, area.left), BLANK).value is None:
        return []
    place = Place(area.sheet, area.bottom + 1, area.left)
    return [f"{place} stands under the table and is not read. Use a spare row, or insert a row inside the table."]


def problem_lines(problems: Problems) -> list[str]:
    """One line for each way in which cells are wrong."""
    return [f"{listed(places)} {shown(problem, 400)}" for problem, places in problems.items()]
