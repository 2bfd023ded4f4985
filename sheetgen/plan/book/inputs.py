"""Inputs of the plan's workbook: every yellow cell, beside it what it was built with, and whether it still is."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import both, either, formula, where
from sheetgen.plan.read import Plan
from sheetgen.plan.yellow import Line, sections
from sheetgen.sheet.book.inputs import AS_BUILT, BOUND, CHANGED, OUT_OF_RANGE, beside, put_state
from sheetgen.sheet.book.wiring import HEAD_ROWS, Wiring, put_light, titled
from sheetgen.sheet.model import Cell, Lookup, Range, Ref, Validation, derived, number
from sheetgen.units import TEXT

LABEL, P10, P50, P90, UNIT, STATE, NOTE, BUILT, LEAST, MOST = (*range(8), 10, 11)
PRINTED = NOTE + 1  # columns; those to the right are for formulas
WIDTHS = {LABEL: 40, P10: 13, P50: 13, P90: 13, UNIT: 11, STATE: 11, NOTE: 50, **dict.fromkeys(range(7, 12), 11)}
STALE = "stale"
QUANTILE_LIST, SURVIVE_LIST = "list_quantile", "list_survive"  # defined names of the words that may be chosen
_SOURCES = {("p10", "p50", "p90"): QUANTILE_LIST, ("none", "replica", "machine", "zone"): SURVIVE_LIST}


@formula("State", TEXT)
def band_state(
    p10: Any, p50: Any, p90: Any, built_p10: Any, built_p50: Any, built_p90: Any, least: Any, most: Any
) -> Any:
    """Whether a band is the one as built, in order and within its bounds; a text is above all bounds."""
    wrong = either(p10 < least, p90 > most, p10 > p50, p50 > p90)
    same = both(p10 == built_p10, p50 == built_p50, p90 == built_p90)
    return where(wrong, OUT_OF_RANGE, where(same, AS_BUILT, CHANGED))


@formula("Values of the build", TEXT)
def freshness(n_changed: Any, n_out_of_range: Any) -> Any:
    """Whether what was worked out when the workbook was built is still of its inputs."""
    return where(n_changed + n_out_of_range == 0, AS_BUILT, STALE)


class PlanInputs:
    """The sheet, filled from the top; every cell is remembered under its name."""

    def __init__(self, plan: Plan, wiring: Wiring) -> None:
        self.wiring, self.row = wiring, HEAD_ROWS
        self.cells: dict[str, Ref] = {}
        self.states: list[Ref] = []
        self.sheet = sheet = titled(
            "Inputs",
            "Inputs",
            "Change any yellow cell: demand, machines, orders and money follow. Hardware, times "
            "and joint draws are values of the build.",
            freeze=(HEAD_ROWS, 1),
        )
        sheet.widths, sheet.n_printed = dict(WIDTHS), PRINTED
        for section in sections(plan):
            if self.row > HEAD_ROWS:
                self.row += 1
            heads = ("p10", "p50", "p90") if any(one.is_band for one in section.lines) else ("", "", "")
            sheet.texts(self.row, LABEL, (section.title, *heads, "", "state", "why"), "section")
            self.row += 1
            for line in section.lines:
                self._line(line)
        self._watch()

    def _line(self, line: Line) -> None:
        sheet, row = self.sheet, self.row
        sheet.text(row, LABEL, line.label, "label")
        sheet.text(row, UNIT, line.unit, "unit")
        sheet.text(row, NOTE, line.note, "remark_wrapped")
        check = Validation.of(line.kind, line.label, line.note)
        if line.kind.words:
            said = f"{', '.join(line.kind.words)}."
            check = Validation(line.label[:32], said, _SOURCES[line.kind.words], line.kind)
        refs, built = [], []
        for i, cell in enumerate(line.cells):
            name = f"in_{cell.name}"
            refs.append(sheet.put(row, P10 + i, Cell(cell.value, "input", line.display, validation=check), name))
            self.wiring.names[name] = self.cells[cell.name] = refs[-1]
            if cell.value is not None:
                built.append(sheet.put(row, BUILT + i, Cell(cell.value, "fixed", line.display)))
        if not line.is_band:
            columns = {"value": P10, "built": BUILT, "least": LEAST, "most": MOST, "state": STATE}
            value = line.cells[0].value
            state = put_state(sheet, row, columns, value, value, check, line.display, may_be_blank=line.kind.blank)
        else:
            env = {name: beside(sheet, row, P10 + i) for i, name in enumerate(("p10", "p50", "p90"))}
            env |= {f"built_{name}": beside(sheet, row, BUILT + i) for i, name in enumerate(("p10", "p50", "p90"))}
            known: dict[str, Any] = dict(zip(env, [number(ref.value) for ref in (*refs, *built)], strict=True))
            for name, column, bound in zip(("least", "most"), (LEAST, MOST), check.bounds, strict=True):
                known[name] = sheet.put(row, column, Cell(bound, "fixed", BOUND)).value
                env[name] = beside(sheet, row, column)
            state = sheet.formula(row, STATE, band_state.of(known), band_state.written(env), TEXT, "state")
        self.states.append(state)
        sheet.status_cells.append((row, STATE))
        self.row += 1

    def _watch(self) -> None:
        """In the frozen rows the word for all checks, and whether values of the build are still of these inputs."""
        sheet, row = self.sheet, HEAD_ROWS - 1
        put_light(self.wiring, sheet, row, P10, "All checks")
        states = Range((self.states[0], self.states[-1]))
        self.wiring.names["lst_input_states"] = states
        env = {
            name: Lookup.of(0, f'COUNTIFS({{0}},"{word}")', states)
            for name, word in (("n_changed", CHANGED), ("n_out_of_range", OUT_OF_RANGE))
        }
        sheet.text(row, P90, "values of the build:", "right_label")
        found = sheet.compute(row, UNIT, freshness, env, role="light", name="chk_values")
        sheet.status_cells.append((row, UNIT))
        self.wiring.names["chk_values"] = found

    def word(self, name: str) -> Lookup:
        """The position of the word that is chosen, from 1."""
        ref = self.cells[name]
        source = QUANTILE_LIST if name == "plan_at" else SURVIVE_LIST
        words = next(words for words, of in _SOURCES.items() if of == source)
        return Lookup.of(words.index(ref.value) + 1, f"MATCH({{0}},{source},0)", ref)

    def survive(self, name: str) -> Lookup:
        """What may be lost, as formulas have it."""
        return derived(lambda place: place - 1, self.word(name))
