"""Inputs: first the three questions that decide a sizing, then money and targets; below, folded away, what is rarely
changed.

What stands in the table of inputs gets its row from there; what is by workload or tier from here. What nobody chooses
is on Constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sheetgen import units
from sheetgen.answer.solution import Solution
from sheetgen.book.figures import prompt_of
from sheetgen.book.lookups import count_of
from sheetgen.book.sheets import (
    BLANK,
    DOLLARS,
    LEGEND,
    LINE,
    Cell,
    CellValue,
    Lookup,
    Range,
    Ref,
    Sheet,
    Validation,
    number,
    worked_out,
)
from sheetgen.book.wiring import HEAD_ROWS, Wiring, in_words, put_light, put_reason, titled
from sheetgen.catalog.engines import CONSTANTS, MODEL_KINDS, OF_ANY_KIND, ModelKind, Scope, band_names
from sheetgen.catalog.hardware import Workload
from sheetgen.formula import (
    Expr,
    Formula,
    Quantity,
    Value,
    either,
    formula,
    is_number,
    round_down,
    round_nearest,
    where,
)
from sheetgen.question.deployment import band_columns_of_any_kind, draft_columns, speed_band_columns
from sheetgen.question.inputs import (
    ASKS,
    BY_NAME,
    CONTEXT,
    HISTORY,
    LOAD,
    MONEY,
    OF_TERMS,
    OWNING,
    PRECISION,
    RARE,
    TARGETS,
    Input,
    asked_in,
    rows_in,
)
from sheetgen.question.overrides import OUTPUT, input_kind
from sheetgen.question.parse import TOKENS, Kind, name_part
from sheetgen.question.sheet_question import MAX_PIPELINE_PARALLEL_SIZE
from sheetgen.question.sheet_question import TARGETS as OPTION_TARGETS
from sheetgen.question.stated_load import RATE, Rate
from sheetgen.report.notes import day_of
from sheetgen.report.sentences import n_changed_here, n_out_of_range
from sheetgen.report.wording import DRAFT_COUNTED
from sheetgen.sizing import people
from sheetgen.sizing.speed import cached_fraction
from sheetgen.sizing.targets import DEFAULTS
from sheetgen.units import DATE, FACTOR, PLAIN, TENSOR_PARALLEL_SIZES, TEXT, WHOLE, Display

OF_SHOWN = "Prices are in US dollars; amounts are shown in this one, at the rate below. For another: sheetgen pull."
AS_BUILT, CHANGED, OUT_OF_RANGE = "as built", "changed", "out of range"
CLASSES, NO_YES = "list_purchase", "list_no_yes"  # the defined names of the purchase classes, and of two words
BOUND = Display("[>=10000000]0E+0;[<=-10000000]0E+0;General")


@formula("State", TEXT)
def text_state(value: Value, built: Value) -> Value:
    """The state of a text: as built, or changed."""
    return where(value == built, AS_BUILT, CHANGED)


@formula("State", TEXT)
def listed_state(value: Value, built: Value, place: Value) -> Value:
    """The state of a choice: as built, changed, or not in its list."""
    return where(value == built, AS_BUILT, where(is_number(place), CHANGED, OUT_OF_RANGE))


@formula("State", TEXT)
def number_state(value: Value, built: Value, least: Quantity, most: Quantity) -> Value:
    """The state of a number: as built, changed, or out of its bounds; a text is above all bounds."""
    return where(either(value < least, value > most), OUT_OF_RANGE, where(value == built, AS_BUILT, CHANGED))


@formula("State", TEXT)
def whole_state(value: Value, built: Value, least: Quantity, most: Quantity) -> Value:
    """The same for a whole number."""
    state = where(round_down(value) == value, where(value == built, AS_BUILT, CHANGED), OUT_OF_RANGE)
    return where(either(value < least, value > most), OUT_OF_RANGE, state)


@formula("State", TEXT)
def optional_state(value: Value, built: Value, least: Quantity, most: Quantity) -> Value:
    """The same of a number that may be blank."""
    return where(value == "", where(built == "", AS_BUILT, CHANGED), number_state(value, built, least, most))


@formula("State", TEXT)
def optional_whole_state(value: Value, built: Value, least: Quantity, most: Quantity) -> Value:
    """The same of a whole number that may be blank."""
    return where(value == "", where(built == "", AS_BUILT, CHANGED), whole_state(value, built, least, most))


@formula("State", TEXT)
def followed_state(value: Value, built: Value, least: Quantity, most: Quantity) -> Value:
    """The same of a number that is worked out until somebody types over it, to two decimals: programs multiply with
    more or fewer digits than a file keeps."""
    near = where(round_nearest(value, 2) == round_nearest(built, 2), AS_BUILT, CHANGED)
    inside = where(either(value < least, value > most), OUT_OF_RANGE, near)
    return where(value == "", where(built == "", AS_BUILT, CHANGED), inside)


def beside(sheet: Sheet, row: int, column: int) -> Expr:
    """A cell of the same row, as a formula that runs down the column names it."""
    return Ref(sheet.name, row, column, None, lock="column").expr(sheet.name)


def put_state(
    sheet: Sheet,
    row: int,
    columns: Mapping[str, int],
    value: CellValue,
    built: CellValue,
    check: Validation | None,
    display: Display,
    *,
    may_be_blank: bool = False,
    is_worked_out: bool = False,
    name: str = "",
    listed: Sequence[CellValue] | None = None,
) -> Ref:
    """Beside a value and the one as built: the bounds between which it may lie, and what became of it.

    columns: where `value`, `built`, `least`, `most` and `state` stand. name: of the choice, where the column shows it
    alone. listed: the choices, where the cell may hold another one. is_worked_out: the value is a formula's.
    """
    env = {part: beside(sheet, row, column) for part, column in columns.items()}
    values = {"value": value, "built": built}
    state_formula, kind = text_state, check.kind if check is not None else None
    if check is not None and check.source is not None:
        state_formula = listed_state
        env["place"] = Expr(f"MATCH({name or env['value'].text},{check.source},0)")
        is_known = listed is None or str(value).lower() in {str(choice).lower() for choice in listed}
        values["place"] = 1 if is_known else float("nan")
    elif check is not None and kind is not None and kind.holds != "text":
        of_kind = (number_state, optional_state), (whole_state, optional_whole_state)
        state_formula = followed_state if is_worked_out else of_kind[kind.is_whole][may_be_blank]
        shown = display if display.percent else DATE if kind.what == "date" else BOUND
        for part, bound in zip(("least", "most"), check.bounds, strict=True):
            values[part] = sheet.put(row, columns[part], Cell(bound, "fixed", shown)).value
    # In a spreadsheet a blank cell is 0 to a number, a text above all numbers, and letters large or small are the same.
    if state_formula in (text_state, listed_state):
        if isinstance(value, str) and isinstance(built, str):
            values |= {"value": value.lower(), "built": built.lower()}
        state = state_formula.of(values)
    elif may_be_blank and value is None:
        state = AS_BUILT if built is None else CHANGED
    elif isinstance(value, str):
        state = OUT_OF_RANGE
    else:
        state = state_formula.of({part: 0 if amount is None else number(amount) for part, amount in values.items()})
    return sheet.formula(row, columns["state"], state, state_formula.written(env), TEXT, "state")


LABEL, VALUE, UNIT, BUILT, STATE, NOTE, LEAST, MOST, NTH = range(9)
PRINTED = NOTE + 1  # columns; those to the right are for formulas
WIDTHS = {LABEL: 36, VALUE: 13, UNIT: 10, BUILT: 11, STATE: 10.5, NOTE: 62, LEAST: 11, MOST: 11, NTH: 4}
STATE_COLUMNS = {"value": VALUE, "built": BUILT, "least": LEAST, "most": MOST, "state": STATE}
HEADS = {BUILT: "as built", STATE: "state", NOTE: "why"}  # in each section's bar
NOT_ZERO = Display("0;;")
FOLDED = f"{RARE}: open it with the + at the left"
_SCOPES = {
    "ranks": "Data-parallel attention, experts shared.", "stages": "Pipeline stages: no run of the fit had any.",
    "anchored": "Of runs that a measured point set right: where the factor above is not 1.",
}  # fmt: skip


class InputsSheet:
    """Fills a sheet from the top, and remembers each input and each constant under its name."""

    def __init__(self, solved: Solution, wiring: Wiring, name: str, about: str) -> None:
        self.solved, self.wiring = solved, wiring
        self.sheet = titled(name, name, about, freeze=(HEAD_ROWS, 2))
        self.sheet.widths = dict(WIDTHS)
        about_cell = self.sheet.cells[1, 0]
        about_cell.role, about_cell.span = "line", PRINTED
        self.row = HEAD_ROWS
        self.states: list[Ref] = []

    def section(self, title: str, heads: Mapping[int, str] = HEADS) -> None:
        if self.row > HEAD_ROWS:
            self.sheet.heights[self.row] = BLANK
            self.row += 1
        self.sheet.page_breaks.append(self.row)
        self.sheet.texts(self.row, LABEL, [title, *(heads.get(column, "") for column in range(1, NOTE + 1))], "section")
        self.row += 1

    def put(
        self,
        name: str,
        label: str,
        value: CellValue,
        display: Display,
        unit: str,
        note: str,
        check: Validation | None = None,
        *,
        read_as: str = "",
        role: str = "input",
        follows: Lookup | None = None,
    ) -> Ref:
        """One input with its label, unit and reason, its bounds and its state; its defined name is in_<name>."""
        value = self.solved.question.overrides.input(name, value)
        kind = input_kind(name)
        if check is None and kind is not None and role == "input":
            check = Validation.of(kind, label)
        self.words(label, unit, note)
        written = follows.expr(self.sheet.name) if follows else None
        ref = self.sheet.put(self.row, VALUE, Cell(value, role, display, written, validation=check), f"in_{name}")
        self.wiring.names[f"in_{name}"] = self.wiring.inputs[read_as or name] = ref
        if role == "input":
            built = self.wiring.baseline.get(f"in_{name}", ref.value)
            if built is not None:
                self.sheet.put(self.row, BUILT, Cell(built, "fixed", display))
            may_be_blank = bool(check and check.kind and check.kind.blank)
            self.states.append(
                put_state(
                    self.sheet,
                    self.row,
                    STATE_COLUMNS,
                    ref.value,
                    built,
                    check,
                    display,
                    may_be_blank=may_be_blank,
                    is_worked_out=follows is not None,
                )
            )
        self.row += 1
        return ref

    def place(
        self,
        entry: Input,
        value: CellValue,
        note: str = "",
        by: tuple[str, str] | None = None,
        follows: Lookup | None = None,
    ) -> Ref:
        """The row of an input of the table, or of one workload, where it is by (part of a name, workload's name).

        follows: what the cell holds until somebody types over it.
        """
        row = entry.row
        assert row is not None
        name, label = (f"{entry.name}_{by[0]}", f"{by[1]}: {row.label}") if by else (entry.name, row.label)
        check = Validation.of(entry.kind, row.title or row.label, row.about)
        if entry.name == "purchase":
            check = replace(check, message=f"{', '.join(units.PURCHASES)}.", source=CLASSES)
        if entry.name == "together":
            check = replace(check, message="yes or no.", source=NO_YES)
        ref = self.put(
            name, label, value, row.display, row.unit, note or row.note, check, read_as=row.read_as, follows=follows
        )
        if row.repeated:
            self.wiring.assumptions.append((Ref(self.sheet.name, ref.row, LABEL, label), ref, row.display))
        return ref

    def fixed(self, name: str, label: str, value: CellValue, display: Display, unit: str, note: str) -> Ref:
        """A constant that is no input."""
        return self.put(name, label, value, display, unit, note, role="fixed")

    def of_table(
        self,
        title: str,
        other: Mapping[str, CellValue] | None = None,
        after: Mapping[str, Callable[[], None]] | None = None,
        notes: Mapping[str, str] | None = None,
        follows: Mapping[str, Lookup] | None = None,
    ) -> None:
        """The inputs of a section, at the values of the settings or at `other`, and the rows that follow some of
        them. notes: of some, in place of their own; follows: what some hold until somebody types over it."""
        settings, values, own = self.solved.question.settings, other or {}, notes or {}
        for entry in rows_in(title):
            value = values.get(entry.name, getattr(settings, entry.name, None))
            self.place(entry, value, own.get(entry.name, ""), follows=(follows or {}).get(entry.name))
            if after and entry.name in after:
                after[entry.name]()

    def computed(self, quantity: Formula, unit: str, note: str) -> None:
        """A quantity that follows from inputs alone: computed here once, and read by many cells."""
        self.words(quantity.label, unit, note)
        self.wiring.inputs[quantity.name] = self.sheet.compute(self.row, VALUE, quantity, dict(self.wiring.inputs))
        self.row += 1

    def words(self, label: str, unit: str, note: str = "") -> None:
        self.sheet.heights[self.row] = LINE
        if self.row - 1 not in self.sheet.page_breaks:  # no page ends with the bar of a section
            self.sheet.page_breaks.append(self.row)
        self.sheet.text(self.row, LABEL, label, "label")
        self.sheet.cells[self.row, LABEL].wraps = True
        self.sheet.text(self.row, UNIT, unit, "remark")
        self.sheet.text(self.row, NOTE, note, "remark_wrapped")


def build_inputs(solved: Solution, wiring: Wiring) -> Sheet:
    """The sheet Inputs, with every input registered in `wiring`, where the constants are."""
    page = InputsSheet(
        solved,
        wiring,
        "Inputs",
        "Change any yellow cell; all else follows, but Decision has a load of its own. "
        f"Blue on yellow: input. Black: formula. Green: from another sheet. {LEGEND}",
    )
    for fill in (_questions, _money, _targets, _draft):
        fill(page)
    page.sheet.rows_printed = page.row  # up to the head of what is folded away
    page.section(FOLDED)
    folded = page.row
    for fill in (_rare, _owning, _engine, _bands):
        fill(page)
    page.sheet.folded = folded, page.row - 1
    page.sheet.n_printed = PRINTED
    _watch(page)
    wiring.inputs_sheet = page.sheet
    return page.sheet


def _watch(page: InputsSheet) -> None:
    """Add the lists of all inputs that the Change log and the checks read, and in the frozen rows the overall
    verdict."""
    sheet, lists = page.sheet, page.wiring.lists
    row = HEAD_ROWS - 1
    put_light(page.wiring, sheet, row, VALUE, "All checks")
    put_reason(page.wiring, sheet, row, STATE, PRINTED - STATE)
    first, last = page.states[0], page.states[-1]
    for name, column in (("labels", LABEL), ("values", VALUE), ("built", BUILT), ("states", STATE), ("nth", NTH)):
        corners = (first._replace(column=column, value=None), last._replace(column=column, value=None))
        lists[f"input_{name}"] = Range(corners)
    top, n_apart = first.expr(sheet.name).text, 0
    for state in page.states:
        own = beside(sheet, state.row, STATE)
        counted = "+".join(f'COUNTIFS({top}:{own.text},"{word}")' for word in (CHANGED, OUT_OF_RANGE))
        n_apart += state.value != AS_BUILT
        nth = n_apart if state.value != AS_BUILT else 0
        sheet.formula(state.row, NTH, nth, where(own == AS_BUILT, 0, Expr(counted)), NOT_ZERO, "state")
        sheet.status_cells.append((state.row, state.column))
    page.wiring.input_states = list(page.states)
    for column, word, quantity in ((UNIT, CHANGED, n_changed_here), (BUILT, OUT_OF_RANGE, n_out_of_range)):
        sheet.compute(row, column, quantity, {"n_inputs": count_of(Range(page.states), word)}, role="state")


def _questions(page: InputsSheet) -> None:
    question = page.solved.question
    page.section(CONTEXT)
    page.wiring.lists["contexts"] = Range(
        tuple(
            page.put(
                f"context_{name_part(w.id)}",
                w.name,
                w.context_tokens,
                WHOLE,
                "tokens",
                f"{w.about}. A request is charged all of it.",
                Validation(
                    f"Context of {w.name}",
                    "A whole number of tokens from 1; not below the answer.",
                    kind=TOKENS,
                    at_least=f"in_output_{name_part(w.id)}",
                ),
            )
            for w in question.workloads
        )
    )
    _lengths(page)
    page.of_table(CONTEXT)
    _by_workload(page, HISTORY)
    _cached(page)
    page.section(LOAD)
    page.wiring.lists["tiers"] = Range(
        tuple(
            page.put(
                f"tier_{i}",
                f"Tier {i}",
                n,
                WHOLE,
                "requests",
                "Loads are alternatives; they are never added up.",
                Validation.of(Kind("whole", 1, 1_000_000), f"Tier {i}"),
            )
            if n is not None
            else page.fixed(
                f"tier_{i}",
                "Requests that arrive",
                RATE,
                TEXT,
                "",
                "As stated below: how many there are at once follows.",
            )
            for i, n in enumerate(question.tiers, 1)
        )
    )
    if question.rate is not None:
        _rate(page, question.rate)
    _by_workload(page, ASKS)
    page.of_table(LOAD)
    page.section(PRECISION)
    page.of_table(PRECISION)


def _by_workload(page: InputsSheet, name: str) -> None:
    """The cells of an input that is a field of each workload."""
    cells = (
        page.place(BY_NAME[name], getattr(w, name), by=(name_part(w.id), w.name))
        for w in page.solved.question.workloads
    )
    page.wiring.lists[name] = Range(tuple(cells))


def _cached(page: InputsSheet) -> None:
    """By workload the share of its prompt that is not computed again."""
    cells, histories = [], page.wiring.lists[HISTORY].refs
    for workload, history in zip(page.solved.question.workloads, histories, strict=True):
        page.words(f"{workload.name}: {cached_fraction.label}", "")
        cells.append(page.sheet.compute(page.row, VALUE, cached_fraction, {**page.wiring.inputs, HISTORY: history}))
        page.row += 1
    page.wiring.lists["cached"] = Range(tuple(cells))


def _rate(page: InputsSheet, rate: Rate) -> None:
    """The arrival rate as stated: the first of people, tokens and requests a day that is above 0 counts."""
    for name, label, display, unit, note in (
        ("users", "People", WHOLE, "people", "0: what stands below counts. Else each asks as often a day as below."),
        ("tokens_per_day", "Tokens per day", WHOLE, "tokens", "Prompts and answers; 0: what stands below counts."),
        ("requests_per_day", "Requests per day", WHOLE, "requests", "0: the rate below counts."),
        ("requests_per_second", "Requests per second at peak", FACTOR, "requests/s", "Counts where all above are 0."),
    ):
        check = Validation.of(replace(BY_NAME[name].kind, low=0), label)
        page.put(name, label, getattr(rate, name), display, unit, note, check, read_as=f"stated_{name}")


def _lengths(page: InputsSheet) -> None:
    """By workload the answer, and the prompt, which is the rest of the context where none is stated."""
    question = page.solved.question
    answers = [
        page.put(
            f"output_{name_part(w.id)}",
            f"{w.name}: answer",
            w.output_tokens,
            WHOLE,
            "tokens",
            "Part of the context; the rest is the prompt.",
            Validation(
                f"{w.name}: answer",
                "A whole number of tokens from 0; not above the context.",
                kind=OUTPUT,
                at_most=f"in_context_{name_part(w.id)}",
            ),
        )
        for w in question.workloads
    ]
    if question.states_prompt:
        (w,) = question.workloads
        page.put(
            f"prompt_{w.id}",
            f"{w.name}: prompt, mean",
            w.input_tokens,
            WHOLE,
            "tokens",
            "Times are of it; memory is for the whole context.",
            Validation(
                f"{w.name}: prompt",
                "A whole number of tokens from 0; not above what the answer leaves.",
                kind=OUTPUT,
                at_most=f"in_context_{w.id}",
            ),
        )
    prompts = []
    for w, answer, context in zip(question.workloads, answers, page.wiring.lists["contexts"].refs, strict=True):
        page.sheet.text(page.row, LABEL, f"{w.name}: prompt", "label")
        page.sheet.text(page.row, UNIT, "tokens", "remark")
        prompts.append(page.sheet.compute(page.row, VALUE, *prompt_of(page.wiring.inputs, context, answer)))
        page.row += 1
    page.wiring.lists |= {"prompts": Range(tuple(prompts)), "answers": Range(tuple(answers))}


def _money(page: InputsSheet) -> None:
    """Purchase, utilization, contingency and currency."""
    question = page.solved.question
    page.section(MONEY)
    together = BY_NAME["together"].parse(question.options.get("together"))
    notes = {} if page.wiring.code == DOLLARS else {"currency": OF_SHOWN}
    fx_date = day_of(question.settings.fx_date) or question.as_of
    follows: dict[str, Lookup] = {}
    if question.is_use_of_load:
        read: dict[str, Lookup | Ref] = {**page.wiring.inputs}
        read["day_utilization"] = worked_out(people.day_utilization, read)
        follows["utilization"] = worked_out(people.default_utilization, read)
    page.of_table(MONEY, {"fx_date": fx_date, "together": together}, notes=notes, follows=follows)


def _targets(page: InputsSheet) -> None:
    """Targets by workload (a blank one is off, one that nobody states follows the load), and what must be survived."""
    question, lists = page.solved.question, page.wiring.lists
    names = ("context_tokens", "input_tokens", "cached_fraction")
    columns = zip(*(lists[name].refs for name in ("contexts", "prompts", "cached")), strict=True)
    rows = zip(question.workloads, columns, strict=True)
    read = {workload.id: dict(zip(names, row, strict=True)) for workload, row in rows}

    def place(target: Input, default: Formula, workload: Workload) -> Ref:
        is_stated = workload.id in question.stated[target.name]
        usual = worked_out(default, {**page.wiring.inputs, **read[workload.id]})
        ms = getattr(workload, OPTION_TARGETS[target.name])
        named = (name_part(workload.id), workload.name)
        return page.place(target, ms, by=named, follows=None if is_stated else usual)

    def by_workload() -> None:
        for target, default in zip(asked_in("targets"), DEFAULTS, strict=True):
            cells = tuple(place(target, default, workload) for workload in question.workloads)
            lists[f"{target.name.removesuffix('_ms')}_targets"] = Range(cells)

    page.section(TARGETS)
    page.of_table(TARGETS, after={"speed_targets": by_workload})


def _rare(page: InputsSheet) -> None:
    question = page.solved.question
    assumed = {name: question.reference.assumption(name) for name in ("stale_after_days",)}
    page.of_table(RARE, {"as_of": question.as_of, **assumed})


def _owning(page: InputsSheet) -> None:
    owning = page.solved.question.owning
    page.section(OWNING)
    for entry in OF_TERMS:
        term = owning.terms[entry.name]
        named = "Our judgement" if term.source == "sheetgen" else term.source
        origin = f"{named}{f', {term.as_of}' if term.as_of else ''}"
        own = owning.values[entry.name] == term.value
        page.place(
            entry, owning.values[entry.name], f"{term.reason}. {origin if own else f'Yours, not {term.value:g}'}."
        )


def _engine(page: InputsSheet) -> None:
    """Constants of the engine's memory accounting."""
    engine, lists = page.solved.question.engine, page.wiring.lists
    page.section(f"Engine: {engine.name} {engine.default_version}")
    for constant in (constant for constant in CONSTANTS if constant.label):
        if constant.column == "calibrated_tensor_parallel_size":
            page.put(
                "max_pipeline_parallel_size",
                "Most pipeline stages",
                MAX_PIPELINE_PARALLEL_SIZE,
                PLAIN,
                "stages",
                "A replica may span at most this many instances.",
            )
        page.put(
            constant.column,
            constant.label,
            constant.value(engine),
            constant.display,
            constant.unit,
            constant.words(engine),
        )
    apart = [page.wiring.inputs[f"{o}non_torch_bytes_tp{t}"] for o in ("", "older_") for t in TENSOR_PARALLEL_SIZES]
    lists["non_torch"] = Range(tuple(apart))
    lists["non_torch_newer"] = Range(tuple(apart[: len(TENSOR_PARALLEL_SIZES)]))  # the rest: older GPUs


def _draft(page: InputsSheet) -> None:
    """The draft model, where one was asked for: it is part of the question, and stated here."""
    draft = page.solved.question.draft
    if draft is None:
        return
    page.section("Speculative draft", {NOTE: "what"})
    for name, label, value, display, unit, note in (
        ("draft_model", "Draft model", draft.name, TEXT, "", DRAFT_COUNTED),
        *(
            (name, in_words(name), value, WHOLE, "bytes" if name.endswith("bytes") else "", draft.source)
            for name, value in draft_columns(draft).items()
        ),
    ):
        page.words(label, unit, note)
        page.wiring.inputs[name] = page.sheet.put(page.row, VALUE, Cell(value, "fixed", display))
        page.row += 1
    named = page.wiring.inputs["draft_model"]
    page.wiring.assumptions.append((Ref(page.sheet.name, named.row, LABEL, "Draft model"), named, TEXT))


def _bands(page: InputsSheet) -> None:
    """The bands of speed that do not differ by GPU: of ranks, stages and measured points."""
    question = page.solved.question
    assert question.speed is not None
    page.section("Speed: 80 % bands, as factors of the prediction")
    page.sheet.text(page.row, 0, f"{question.speed.bands_source}; those of GPUs stand on GPUs", "remark")
    page.row += 1
    gpu, engine = question.gpus[0], question.engine.engine  # the same for all

    def ends(scope: Scope, kind: ModelKind) -> Mapping[str, float]:
        return speed_band_columns(question.speed, scope, kind, engine, gpu)

    def put(name: str, scope: Scope, end: float, *kinds: ModelKind) -> Ref:
        label = f"{name.replace('_band', '').removesuffix(f'_{scope}')}, {' '.join((*kinds, scope))}"
        return page.put("_".join((name, *kinds)), label.replace("_", " "), end, FACTOR, "", _SCOPES[scope])

    for scope in OF_ANY_KIND:
        for name, end in band_columns_of_any_kind(question.speed, scope).items():
            put(name, scope, end)
    anchored = {kind: ends("anchored", kind) for kind in MODEL_KINDS}
    for name in band_names("anchored"):  # its kinds next to one another: a list is a range of cells
        page.wiring.lists[name] = Range(tuple(put(name, "anchored", anchored[k][name], k) for k in MODEL_KINDS))
