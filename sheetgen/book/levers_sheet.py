"""Levers: the saving of one change for each load, as values, and whether inputs were edited since they were
computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sheetgen.answer.levers import EveryLever, Lever
from sheetgen.answer.solution import Solution
from sheetgen.book.inputs_sheet import AS_BUILT
from sheetgen.book.sheets import NONE, CellValue, Sheet
from sheetgen.book.wiring import HEAD_ROWS, Table, Wiring, titled
from sheetgen.formula import Expr, Value, both, formula, is_number, where
from sheetgen.report.wording import rent
from sheetgen.units import PERCENT, TEXT, USD, WHOLE, Display

CENTS = 2  # digits of a dollar
CHANGED = "inputs changed"
IDLE = "The month costs the same with each by itself; two together may save"
SENTENCES = {"What changes": 58, "What it costs, or why it does not apply": 96}  # columns that wrap, and their widths


@formula("This load now", TEXT)
def load_state(now: Value, built: Value) -> Value:
    """Compares the load's $ per month on Workings with the one as built, to the dollar: a file keeps 16 digits of it.

    Source: the amount as built, beside it; a dash where nothing holds the load.
    """
    apart = now - built
    near = where(apart * apart < 1, AS_BUILT, CHANGED)
    return where(is_number(now), where(is_number(built), near, CHANGED), where(is_number(built), CHANGED, AS_BUILT))


def build_levers(solved: Solution, every_lever: EveryLever, wiring: Wiring) -> Sheet:
    """The sheet Levers. Its lever columns are values: each is a new choice, which no cell can make."""
    sheet = titled(
        "Levers",
        "Levers: what one change buys",
        "Worked out when the sheet was built, for the inputs as built; they do not follow edits. "
        "Each line is what would be chosen among all candidates with that one change.",
        freeze=(HEAD_ROWS + 1, 3),
    )
    question, loads = solved.question, wiring.tables["loads"].columns
    rows = list(_lines(every_lever, [cell.model for cell in question.loads]))
    table = Table(wiring, sheet, len(rows))
    models = [question.models[question.loads[places[0]].model].model.name for places, _ in rows]
    words = [
        loads["load_words"][places[0]].value if len(places) == 1 else f"{len(places)} loads of the model"
        for places, _ in rows
    ]
    after = [lever.after for _, lever in rows]
    columns: tuple[tuple[str, list[CellValue], Display, float], ...] = (
        ("Model", models, TEXT, 22),
        ("Load", words, TEXT, 26),
        ("Lever", [lever.words for _, lever in rows], TEXT, 32),
        ("What changes", [lever.changed or NONE for _, lever in rows], TEXT, 0),
        (
            "Then rent",
            [str(rent(answer.n_instances, answer.candidate.instance)) if answer else NONE for answer in after],
            TEXT,
            30,
        ),
        ("GPUs then", [answer.n_gpus if answer else NONE for answer in after], WHOLE, 10),
        ("$ per month then", [_rounded(answer.monthly_usd if answer else None, CENTS) for answer in after], USD, 13),
        ("Saves, $ per month", [_rounded(lever.saved_usd, CENTS) for _, lever in rows], USD, 13),
        ("Saves", [_rounded(lever.saved_fraction, 4) for _, lever in rows], PERCENT, 9),
        ("What it costs, or why it does not apply", [_costs(lever) for _, lever in rows], TEXT, 0),
    )
    for label, values, display, width in columns:
        wrapped = SENTENCES.get(label, 0)
        table.given(
            label, label, values, display, role="remark_wrapped" if wrapped else "fixed", width=wrapped or width
        )

    # To the right, a line per load: its hardware when the levers were computed, and whether that still holds.
    # The load of the first sheet is not among them: to choose another one there leaves these as built.
    every = list(every_lever)[: wiring.tables["loads"].n_fixed]
    before = {load: levers[0].before for load, levers in enumerate(every) if levers}
    built = Table(wiring, sheet, len(before), left=table.next_column + 1)
    for name, label, width in (("model", "Model of the load", 22), ("load_words", "The load as built", 26)):
        built.given(name, label, [loads[name][load].value for load in before], TEXT, role="fixed", width=width)
    built.given(
        "gpus", "GPUs as built", [answer.n_gpus if answer else NONE for answer in before.values()], WHOLE, role="fixed"
    )
    usd = [answer.monthly_usd if answer else NONE for answer in before.values()]
    built.given("usd", "$ per month as built", usd, USD, role="fixed", width=13)
    live = [loads["monthly_usd"][load] for load in before]
    built.computed(load_state, {"now": live, "built": built.columns["usd"]}, name="now", width=16)

    # One word for all, beside the title: as built while no load and no input has changed.
    states, counts = built.columns["now"], [wiring.ref(f"chk_{part}_changed") for part in ("inputs", "columns")]
    area = Expr(f'COUNTIFS({states[0].expr(sheet.name).text}:{states[-1].expr(sheet.name).text},"{CHANGED}")')
    expr = where(both(area == 0, *(count.expr(sheet.name) == 0 for count in counts)), AS_BUILT, CHANGED)
    apart = any(state.value == CHANGED for state in states) or any(count.value for count in counts)
    wiring.names["chk_levers"] = sheet.formula(
        HEAD_ROWS - 1, 1, CHANGED if apart else AS_BUILT, expr, TEXT, "light", label="All inputs now"
    )
    return sheet


def _lines(every_lever: EveryLever, model_of: Sequence[int]) -> Iterator[tuple[list[int], Lever]]:
    """The loads of a line, and its lever: by load the one that saves most first, those that save nothing in one line;
    those that do not apply at the end, a line for all loads of a model that have the same reason."""
    refused: dict[tuple[object, ...], tuple[list[int], Lever]] = {}
    for load, levers in enumerate(every_lever):
        for lever in levers:
            if lever.why_not:
                key = model_of[load], lever.words, lever.changed, lever.why_not
                refused.setdefault(key, ([], lever))[0].append(load)
        applies = [lever for lever in levers if not lever.why_not]
        idle = [lever for lever in applies if lever.saved_usd == 0 and not lever.is_near_tie]
        if len(idle) > 1:
            listed = "; ".join(lever.words for lever in idle)
            together = replace(
                idle[0],
                id="idle",
                words=f"{len(idle)} that save nothing, each by itself",
                changed=listed,
                after=idle[0].before,
                note=IDLE,
            )
            applies = [*(lever for lever in applies if lever not in idle), together]
        for lever in sorted(applies, key=lambda lever: -(lever.saved_usd or 0)):
            yield [load], lever
    yield from refused.values()


def _rounded(value: float | None, digits: int) -> CellValue:
    return NONE if value is None else round(value, digits)


def _costs(lever: Lever) -> str:
    """The cost of the change beside money, or the reason why it does not apply."""
    if lever.why_not:
        return f"Does not apply: {lever.why_not}."
    return f"{'Now fits. ' if lever.now_fits else ''}{lever.note}."
