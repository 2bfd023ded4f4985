"""Levers: what one change buys for each load, as values, and whether inputs were edited since they were worked out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sheetgen.formula import Expr, both, is_number, where
from sheetgen.levers import EveryLever, Lever
from sheetgen.recommend import Solution
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, titled
from sheetgen.sheet.model import NONE, Cell, Ref, Sheet
from sheetgen.sheet.wording import rent
from sheetgen.units import PERCENT, TEXT, USD, WHOLE, Display

AS_BUILT, CHANGED = "as built", "inputs changed"
SENTENCES = {"What changes": 58, "What it costs, or why it does not apply": 96}  # columns that wrap, and their widths
_LOOKED_AT = ("models", "gpus", "instances")  # tables whose yellow columns are watched by their sums


def build_levers(solved: Solution, every_lever: EveryLever, wiring: Wiring) -> Sheet:
    """The sheet. Its lever columns are values: working them out takes a choice anew, which no cell does."""
    sheet = titled(
        "Levers",
        "Levers: what one change buys",
        "Worked out when the sheet was built, for the inputs as built; they do not follow edits. "
        "Each line is the cheapest of all candidates with that one change.",
        freeze=(HEAD_ROWS + 1, 3),
    )
    rows = [(row, lever) for row, levers in enumerate(every_lever) for lever in levers]
    loads = wiring.tables["cells"]
    table = Table(sheet, HEAD_ROWS, 0, len(rows))
    models = [solved.question.models[solved.question.cells[row].model].model.name for row, _ in rows]
    words = [loads.columns["load_words"][row].value for row, _ in rows]
    after = [lever.after for _, lever in rows]
    columns: tuple[tuple[str, list[Any], Display, float], ...] = (
        ("Model", models, TEXT, 22),
        ("Load", words, TEXT, 26),
        ("Lever", [lever.words for _, lever in rows], TEXT, 32),
        ("What changes", [lever.changed or NONE for _, lever in rows], TEXT, 0),
        ("Then rent", [rent(one.n_instances, one.candidate) if one else NONE for one in after], TEXT, 30),
        ("GPUs then", [one.n_gpus if one else NONE for one in after], WHOLE, 10),
        ("$ per month then", [one.monthly_usd if one else NONE for one in after], USD, 13),
        ("Saves, $ per month", [_or_none(lever.saved_usd) for _, lever in rows], USD, 13),
        ("Saves", [_or_none(lever.saved_fraction) for _, lever in rows], PERCENT, 9),
        ("What it costs, or why it does not apply", [_costs(lever) for _, lever in rows], TEXT, 0),
    )
    for label, values, display, width in columns:
        role = "remark_wrapped" if label in SENTENCES else "fixed"
        table.given(label, label, values, display, role=role, width=SENTENCES.get(label, width))
        for i, text in enumerate(values if label in SENTENCES else ()):
            row = HEAD_ROWS + 1 + i
            lines = -(-len(text) // SENTENCES[label])  # of a smaller print: some room is left
            sheet.heights[row] = max(sheet.heights.get(row, 15.0), 13.0 * lines + 2)

    built = _loads_as_built(sheet, table.next_column + 1, rows, wiring)
    watched = _watch(sheet, built.next_column + 1, list(_inputs(wiring)))
    state = _overall(sheet, built, watched)
    wiring.names["chk_levers"] = state
    return sheet


def _loads_as_built(sheet: Sheet, left: int, rows: Sequence[tuple[int, Lever]], wiring: Wiring) -> Table:
    """To the right, a line per load: what it took when the levers were worked out, and whether that still holds."""
    loads = wiring.tables["cells"]
    before = {row: lever.before for row, lever in rows}
    table = Table(sheet, HEAD_ROWS, left, len(before))
    at = list(before)
    for name, label, width in (("model", "Model of the load", 22), ("load_words", "The load", 26)):
        refs = loads.columns[name]
        table.looked_up(
            name, label, lambda i, r=refs: (r[at[i]].value, r[at[i]].expr(sheet.name)), TEXT, width=width,  # type: ignore[misc]
        )  # fmt: skip
    table.given("gpus", "GPUs as built", [one.n_gpus if one else NONE for one in before.values()], WHOLE, role="fixed")
    usd = [one.monthly_usd if one else NONE for one in before.values()]
    table.given("usd", "$ per month as built", usd, USD, role="fixed", width=13)

    def now(i: int) -> tuple[str, Expr]:
        live, built = loads.columns["monthly_usd"][at[i]], table.columns["usd"][i]
        return AS_BUILT, _money_state(live.expr(sheet.name), built.expr(sheet.name))

    note = "Compares the load's $ per month on Workings with the one as built, to the dollar."
    table.looked_up("now", "This load now", now, TEXT, note=note, width=16)
    return table


def _or_none(value: float | None) -> Any:
    return NONE if value is None else value


def _costs(lever: Lever) -> str:
    """What the change costs beside money, or why it does not apply."""
    if lever.why_not:
        return f"Does not apply: {lever.why_not}."
    return f"{'Now fits. ' if lever.now_fits else ''}{lever.note}."


def _state(now: Any, built: Any) -> Expr:
    expr: Expr = where(now == built, AS_BUILT, CHANGED)
    return expr


def _money_state(now: Any, built: Any) -> Expr:
    """The same for money: a file keeps 16 digits of the one as built, so less than a dollar is no change."""
    apart = now - built
    near: Expr = where(apart * apart < 1, AS_BUILT, CHANGED)
    expr: Expr = where(both(is_number(now), is_number(built)), near, _state(now, built))
    return expr


def _inputs(wiring: Wiring) -> Iterator[tuple[str, Cell, Expr]]:
    """Every input with its label, its value as built, and how it is read: each cell of Inputs, the sum of a column."""
    for (row, column), cell in sorted(wiring.inputs_cells.items()):
        if cell.role == "input" and cell.value not in (None, ""):
            label = wiring.inputs_cells[row, 0].value
            ref = Ref("Inputs", row, column, cell.value)
            yield str(label), Cell(cell.value, "fixed", cell.display), ref.expr("Levers")
    for name in _LOOKED_AT:
        table = wiring.tables[name]
        for refs in table.columns.values():
            yield from _column(table, refs)


def _column(table: Table, refs: Sequence[Ref]) -> Iterator[tuple[str, Cell, Expr]]:
    """A column of yellow numbers: whole ones by their sum, others one by one, because sums of those are not exact."""
    sheet = table.sheet
    numbers = [r for r in refs if sheet.cells[r.row, r.column].role == "input" and isinstance(r.value, (int, float))]
    if not numbers:
        return
    head, first = sheet.cells[table.top, refs[0].column].value, sheet.cells[numbers[0].row, numbers[0].column]
    if all(r.value == int(r.value) for r in numbers):
        area = f"{refs[0].expr('Levers').text}:{refs[-1].expr(sheet.name).text}"
        total = sum(r.value for r in numbers)
        yield f"{sheet.name}: {head}, sum", Cell(total, "fixed", first.display), Expr(f"SUM({area})")
        return
    for r in numbers:
        yield f"{sheet.name}: {head}, row {r.row + 1}", Cell(r.value, "fixed", first.display), r.expr("Levers")


def _watch(sheet: Sheet, left: int, inputs: Sequence[tuple[str, Cell, Expr]]) -> list[Ref]:
    """A table of all inputs as built, as they are now, and whether they are the same."""
    for k, (label, width) in enumerate(
        (("Input", 44), ("Input as built", 26), ("Input now", 26), ("Input's state", 16))
    ):
        sheet.text(HEAD_ROWS, left + k, label, "head")
        sheet.widths[left + k] = width
    states = []
    for i, (label, cell, live) in enumerate(inputs):
        row = HEAD_ROWS + 1 + i
        sheet.text(row, left, label, "label")
        built = sheet.put(row, left + 1, cell)
        live_ref = sheet.formula(row, left + 2, cell.value, live, cell.display)
        expr = _state(live_ref.expr(sheet.name), built.expr(sheet.name))
        states.append(sheet.formula(row, left + 3, AS_BUILT, expr, TEXT))
    return states


def _overall(sheet: Sheet, table: Table, watched: Sequence[Ref]) -> Ref:
    """One word for all, beside the title: as built while no load and no input has changed."""
    here = sheet.name
    counts = [
        Expr(f'COUNTIFS({refs[0].expr(here).text}:{refs[-1].expr(here).text},"{CHANGED}")') == 0
        for refs in (table.columns.get("now", []), watched)
        if refs
    ]
    sheet.text(HEAD_ROWS - 1, 0, "All inputs now", "label")
    expr: Expr = where(both(*counts), AS_BUILT, CHANGED)
    return sheet.formula(HEAD_ROWS - 1, 1, AS_BUILT, expr, TEXT, "light")
