"""Read a workbook back: by defined names alone, so that rows and columns may have moved."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sheetgen.errors import shown
from sheetgen.scenario.inputs import CHOICES, KV_CACHE, rows_in
from sheetgen.scenario.override_kinds import ENGINE, SETTINGS
from sheetgen.workbook.cells import BLANK, Grid, as_shown, read_cells
from sheetgen.workbook.names import Area, Place, areas, ends_by_sheet, listed
from sheetgen.workbook.outline import Outline, outline
from sheetgen.workbook.package import WorkbookError, open_package, read_file
from sheetgen.workbook.snapshot import NOT_A_LOAD, RESULTS, NamedCell, Snapshot
from sheetgen.workbook.tables import Problems, below, columns_of, problem_lines, read_table, required_columns
from sheetgen.workbook.values import input_holds, value_of

META = ("schema", "version", "catalog_sha256", "options")
OF_EACH_WORKLOAD = ("context", "output", "tpot_ms", "ttft_ms")
REQUIRED = (
    "tier_1", "headline_workload", "headline_tier", *ENGINE, *SETTINGS,
    *(one.name for one in (*rows_in(KV_CACHE), *rows_in(CHOICES)) if not one.added and not one.shown),
)  # fmt: skip
_RESULT = re.compile(rf"(rec_\w+_(\d+))_({'|'.join(RESULTS)})")
_TIER = re.compile(r"in_tier_(\d+)")
_OF_WORKLOAD = re.compile(r"in_(?:context|tpot_ms|ttft_ms)_(\w+)")
LOG_LINE = "in_log_"


def read_workbook(path: Path | str) -> Snapshot:
    """What a workbook of `sheetgen build` says now, whoever edited it.

    An input that holds a formula has the formula's value, and a note says so. Raises WorkbookError, a line for each
    problem, where the file is no such workbook, names are missing or broken, or an input holds what no input can.
    """
    where = shown(path, 200)
    return read_workbook_bytes(read_file(Path(path)), str(path), where)


def read_workbook_bytes(data: bytes, path: str, where: str) -> Snapshot:
    """The same of a file that was read. `where` is how messages name it."""
    package = open_package(data, where)
    book = outline(package, where)
    _check_origin(book, where)
    _check_schema(book.properties.get("sheetgen.schema"), book, where)
    found = areas(book.names, book.sheets, where)
    _check_names(found, where)
    wanted = {sheet: (row + 1, column + 1) for sheet, (row, column) in ends_by_sheet(found.values()).items()}
    grids = {
        sheet: {at: as_shown(cell, book.from_1904) for at, cell in grid.items()}
        for sheet, grid in read_cells(package, book, where, wanted).items()
    }
    cells = {name: _cell(name, area, grids) for name, area in found.items() if not name.startswith("cat_")}
    _check_schema(cells["meta_schema"].value, book, where)

    problems: Problems = {}
    inputs = {}
    for name, cell in cells.items():
        if name.startswith("in_"):
            raw = grids[cell.place.sheet].get((cell.place.row, cell.place.column), BLANK)
            value, problem = value_of(raw, input_holds(name[3:], raw.number_format), book.from_1904)
            inputs[name[3:]] = value
            cells[name] = NamedCell(**{**vars(cell), "value": value})
            if problem:
                problems.setdefault(problem, []).append(f"{name} ({cell.place})")
    tables = {
        name: read_table(name, columns, grids, book.from_1904, problems) for name, columns in columns_of(found).items()
    }
    if problems:
        raise WorkbookError(*(f"{where}: {line}" for line in problem_lines(problems)))
    meta = {name: cells[f"meta_{name}"].value for name in META}
    return Snapshot(
        path, int(meta["schema"]), str(meta["version"] or ""), str(meta["catalog_sha256"] or ""),
        _options(meta["options"], where), inputs, tables,
        {name[4:]: cell.value for name, cell in cells.items() if name.startswith("rec_")},
        cells, (*_formula_notes(cells, tables), *below(tables["instances"], grids)),
    )  # fmt: skip


def read_every_cell(path: Path | str) -> dict[str, Grid]:
    """By sheet, every cell of a workbook, as it stands in the file. Raises WorkbookError."""
    where = shown(path, 200)
    package = open_package(read_file(Path(path)), where)
    return read_cells(package, outline(package, where), where)


def _check_origin(book: Outline, where: str) -> None:
    named = any(one.name.lower() == "meta_schema" for one in book.names)
    if not named and "sheetgen.schema" not in book.properties:
        raise WorkbookError(
            f"{where}: was not made by sheetgen, or lost its names. Give a workbook of `sheetgen build`."
        )


def _check_schema(schema: Any, book: Outline, where: str) -> None:
    """Refuse a layout that is not this version's, before its names are missed one by one."""
    from sheetgen.sheet.book.change_log import SCHEMA

    if schema is None:
        return
    try:
        found = float(schema)
    except (TypeError, ValueError):
        found = float("nan")
    if found == SCHEMA:
        return
    version = shown(book.properties.get("sheetgen.version", "?"), 20)
    if found > SCHEMA or found < SCHEMA:
        age, cure = ("a newer", "Update sheetgen.") if found > SCHEMA else ("an older", "Build it anew.")
        what = f"has the layout {found:g} of {age} sheetgen ({version}); this one reads {SCHEMA}. {cure}"
    else:
        what = f"its layout is {shown(schema)!r}; it must be {SCHEMA}. Start from a fresh build."
    raise WorkbookError(f"{where}: {what}")


def _check_names(found: Mapping[str, Area], where: str) -> None:
    """Refuse a workbook that lost a name: what it stood for would pass for never having been there."""
    required = [f"meta_{name}" for name in META] + [f"in_{name}" for name in REQUIRED] + required_columns()
    stems = {m[1]: int(m[2]) for m in map(_RESULT.fullmatch, found) if m}
    required += [f"{stem}_{what}" for stem in stems for what in RESULTS]
    tiers = [int(m[1]) for m in map(_TIER.fullmatch, found) if m]
    required += [f"in_tier_{n}" for n in range(1, max([*tiers, *stems.values()], default=1) + 1)]
    workloads = {m[1] for m in map(_OF_WORKLOAD.fullmatch, found) if m and m[0] != f"in_{NOT_A_LOAD}"}
    required += [f"in_{what}_{workload}" for workload in sorted(workloads) for what in OF_EACH_WORKLOAD]
    if not workloads:
        required.append("in_context_<workload>")
    missing = list(dict.fromkeys(name for name in required if name not in found))
    if missing:
        one = len(missing) == 1
        raise WorkbookError(
            f"{where}: lacks the defined name{'' if one else 's'} {listed(missing)}. Define {'it' if one else 'them'} "
            "again (Formulas, Name Manager), or start from a fresh build."
        )


def _cell(name: str, area: Area, grids: Mapping[str, Grid]) -> NamedCell:
    grid = grids[area.sheet]
    found = grid.get((area.top, area.left), BLANK)
    label = ""
    if name.startswith(LOG_LINE):  # beside it stands another text that somebody typed
        line, _, what = name.removeprefix(LOG_LINE).partition("_")
        label = f"Change log, line {line}, {what}"
    elif not name.startswith("meta_"):
        before = (grid.get((area.top, column), BLANK) for column in range(area.left - 1, 0, -1))
        label = next((f.value for f in before if isinstance(f.value, str) and f.kind == "s" and f.value.strip()), "")
    unit = grid.get((area.top, area.left + 1), BLANK).value
    is_formula = found.formula is not None
    return NamedCell(
        found.value, Place(area.sheet, area.top, area.left), label, unit if isinstance(unit, str) else "",
        found.number_format, is_formula, found.value is not None or not is_formula,
    )  # fmt: skip


def _options(text: Any, where: str) -> Mapping[str, Any]:
    """The options that the workbook was built with."""
    try:
        found = json.loads(str(text or "{}"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise WorkbookError(f"{where}: meta_options is no JSON object, {shown(text)!r}. Start from a fresh build.")
    return found


def _formula_notes(cells: Mapping[str, NamedCell], tables: Mapping[str, Any]) -> list[str]:
    """A note on inputs whose value a formula gives: it is taken as it stands."""
    places = [f"{n} ({c.place})" for n, c in cells.items() if n.startswith("in_") and c.is_formula]
    for table in tables.values():
        places += [f"cat_{table.name}_{c} ({table.place(k, c)})" for k, c in sorted(table.formulas)]
    if not places:
        return []
    one = len(places) == 1
    return [f"{listed(places)} hold{'s a' if one else ''} formula{'' if one else 's'}: the value{'' if one else 's'} "
            f"of the last recalculation {'is' if one else 'are'} taken."]  # fmt: skip
