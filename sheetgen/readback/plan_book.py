"""A plan's workbook as a reader hands it back: the plan that it was built from, and what its yellow cells hold now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sheetgen.errors import ScenarioError, SheetgenError, shown
from sheetgen.input_files import ending_of
from sheetgen.plan.bridge import checked_record, is_record
from sheetgen.plan.flat_book import SCHEMA
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.yellow import Yellow, YellowCell, listed_prices_of, yellow_rows
from sheetgen.question import parse
from sheetgen.question.parse import Raw
from sheetgen.readback.file_cells import BLANK, Cell, as_shown, read_named
from sheetgen.readback.package import Area, Outline, Place, WorkbookError, listed, naming, outline, read_file
from sheetgen.readback.read_book import still_holds, value_of
from sheetgen.readback.read_record import LOST, read_parts

SCHEMA_NAME = "meta_plan_schema"


class Typed(NamedTuple):
    """A yellow cell as it is now."""

    cell: Cell
    place: Place


class Edit(NamedTuple):
    """A yellow cell that does not hold what it was built with."""

    row: Yellow
    cell: YellowCell
    label: str
    place: Place
    new: Raw


@dataclass(frozen=True)
class PlanBook:
    """The workbook of a plan. record: the plan as JSON, as it was built."""

    path: str
    record: Mapping[str, Raw]
    version: str  # of the sheetgen that built it
    catalog_sha256: str
    typed: Mapping[str, Typed]  # by name without in_
    results: Mapping[str, Raw]  # what it says now, by name without rec_
    from_1904: bool


def is_plan_book(path: Path | str) -> bool:
    """True where a file is the workbook of a plan; False where it is no workbook."""
    if ending_of(Path(path)) != ".xlsx":
        return False
    try:
        return _is_plan(outline(read_file(Path(path))))
    except SheetgenError:
        return False


def is_plan(path: Path | str) -> bool:
    """True for a plan's workbook or its JSON; False where it cannot be read, which other commands report."""
    try:
        return is_plan_book(path) or is_record(read_file(Path(path)))
    except SheetgenError:
        return False


def _is_plan(book: Outline) -> bool:
    return "sheetgen.plan_schema" in book.properties or any(
        defined.name.lower() == SCHEMA_NAME for defined in book.names
    )


def read_plan_book(path: Path | str) -> PlanBook:
    """The content of a plan's workbook. Raises WorkbookError where it is none, or lost the plan that it was built
    from."""
    data = read_file(Path(path))
    with naming(path):
        book = outline(data)
        if not _is_plan(book):
            raise WorkbookError(f"is no plan's workbook, or lost the plan that it was built of. {LOST}")
        places, grids = read_named(book)

        def cell_at(area: Area) -> Cell:
            return as_shown(grids[area.sheet].get((area.row, area.column), BLANK), book.from_1904)

        def cell(name: str) -> Cell:
            if name not in places:
                raise WorkbookError(f"lacks the defined name {name}. {LOST}")
            return cell_at(places[name])

        if cell(SCHEMA_NAME).value != SCHEMA:
            raise WorkbookError(
                f"its layout is {shown(cell(SCHEMA_NAME).value)}, of another sheetgen; this one reads {SCHEMA}. "
                "Build it anew: sheetgen plan PLAN.yaml --format xlsx."
            )
        record = read_parts(places, lambda area: cell_at(area).value, checked_record)
        typed = {
            name.removeprefix("in_"): Typed(cell(name), area.place())
            for name, area in places.items()
            if name.startswith("in_")
        }
        version, sha = (str(cell(f"meta_{name}").value or "") for name in ("version", "catalog_sha256"))
        results = {name.removeprefix("rec_"): cell(name).value for name in places if name.startswith("rec_")}
        return PlanBook(str(path), record, version, sha, typed, results, book.from_1904)


def edits_of(book: PlanBook, plan: Plan) -> tuple[Edit, ...]:
    """The yellow cells that do not hold what `plan` says. Raises WorkbookError with every cell whose content is not
    allowed."""
    rows = [*yellow_rows(plan, listed_prices_of(plan, book.record))]
    missing = [f"in_{cell.name}" for row in rows for cell in row.cells if cell.name not in book.typed]
    if missing:
        with naming(book.path):
            raise WorkbookError(f"lacks the defined name{'s' if missing[1:] else ''} {listed(missing)}. {LOST}")
    problems, edits = list[str](), list[Edit]()
    for row in rows:
        values = []
        for cell, quantile in zip(row.cells, QUANTILES, strict=False):
            typed = book.typed[cell.name]
            label = f"{row.section}: {row.label}{f', {quantile}' if row.is_band else ''}"
            try:
                values.append(_read(typed, row, book.from_1904))
            except (WorkbookError, ScenarioError) as error:
                problems += (f"{typed.place}: {label}: {_without_subject(problem)}" for problem in error.problems)
                continue
            if not still_holds(cell.value, values[-1]):
                edits.append(Edit(row, cell, label, typed.place, values[-1]))
        if row.is_band and len(values) == len(QUANTILES) and values != sorted(values):
            problems.append(
                f"{book.typed[row.cells[0].name].place}: {row.section}: {row.label}, p10: is out of order: p10 may not "
                "be above p50, nor p50 above p90."
            )
    if problems:
        with naming(book.path):
            raise WorkbookError(*problems)
    return tuple(edits)


VALUE = "its cell"  # how messages name a typed value; the place and the label before them say which


def _without_subject(problem: str) -> str:
    """A message on a value without its first words, which the place and the label replace."""
    return problem.removeprefix(f"{VALUE} ")


def _read(typed: Typed, row: Yellow, from_1904: bool) -> Raw:
    """The value that was typed, as its kind reads it; None for a cell that may be blank and is."""
    value = value_of(typed.cell, row.kind.holds, from_1904)
    if value is None and row.kind.blank:
        return None
    if value is None:
        raise WorkbookError("is blank. Type a value.")
    if row.kind.words:
        return parse.one_of(value, VALUE, row.kind.words)
    return row.kind.read(value, VALUE)
