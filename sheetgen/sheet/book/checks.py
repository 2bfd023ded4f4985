"""Checks: what must hold of the workbook, counted live, with one word for all of it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from sheetgen.formula import Expr, both, either, formula, is_number, where
from sheetgen.recommend import Solution
from sheetgen.sheet.book.inputs import OUT_OF_RANGE
from sheetgen.sheet.book.matrices import OF_REPLICA
from sheetgen.sheet.book.wiring import HEAD_ROWS, Wiring, titled
from sheetgen.sheet.book.words import check_word
from sheetgen.sheet.model import NONE, Cell, Lookup, Range, Ref, Sheet, Source, lookup, pick, worked_out
from sheetgen.sheet.what_if import OK, case_requests, model_lacks, own_instance_state, own_model_state
from sheetgen.units import FACTOR, PLAIN, TEXT, USD_CENTS, Display

Pair = tuple[str, Ref, Ref | Lookup]  # what it is, here and there


@formula("The same", PLAIN)
def same_amount(amount: Any, other: Any, tolerance: Any) -> Any:
    """1 where two amounts are the same but for rounding, or neither is known.

    Source: the tolerance below the checks.
    """
    gap = amount - other
    near = where(gap * gap <= tolerance * other * (tolerance * other), 1, 0)
    apart = where(either(is_number(amount), is_number(other)), 0, 1)
    return where(both(is_number(amount), is_number(other)), near, apart)


@formula("The same", PLAIN)
def same_value(value: Any, other: Any) -> Any:
    """1 where two cells hold the same.

    Source: definition.
    """
    return where(value == other, 1, 0)


@formula("What-if agrees", PLAIN)
def what_if_agrees(n_same: Any, n_choices: Any, same_cost: Any) -> Any:
    """1 where What-if has the cost that Workings has, or its choices ask for another load.

    Source: the choices compared above.
    """
    return where(n_same == n_choices, same_cost, 1)


class Pairs:
    """Blocks of two columns that are compared row by row; `row` is the next free one."""

    def __init__(self, sheet: Sheet, row: int, left: int, tolerance: Ref) -> None:
        self.sheet, self.row, self.left, self.tolerance = sheet, row, left, tolerance

    def block(self, heads: tuple[str, str, str], pairs: Sequence[Pair], display: Display, rounded: bool) -> Range:
        """A block; gives the column that says 1 where both are the same."""
        sheet, left = self.sheet, self.left
        for k, head in enumerate((*heads, "Same")):
            sheet.text(self.row, left + k, head, "head")
        same = []
        for label, here, there in pairs:
            self.row += 1
            sheet.text(self.row, left, label, "label")
            a, b = (self._shown(1 + k, ref, display) for k, ref in enumerate((here, there)))
            env: dict[str, Source] = {"value": a, "other": b}
            one = same_value
            if rounded:
                one, env = same_amount, {"amount": a, "other": b, "tolerance": self.tolerance}
            same.append(sheet.compute(self.row, left + 3, one, env))
        self.row += 2
        return Range(tuple(same))

    def _shown(self, column: int, ref: Ref | Lookup, display: Display) -> Ref:
        """What the cell holds; 0 for a blank one, as its look-up is."""
        value = 0 if ref.value is None else ref.value
        shown = TEXT if isinstance(value, str) else display
        return self.sheet.formula(self.row, self.left + column, value, ref.expr(self.sheet.name), shown)


def what_if_pairs(wiring: Wiring, sheet: Sheet, row: int, left: int) -> list[Pair]:
    """What-if's choices beside what the first model's headline on the first sheet is asked with.

    What no cell of either sheet holds stands in the two rows from `row`.
    """

    def cell(name: str) -> Ref:
        ref = wiring.names[name]
        assert isinstance(ref, Ref)
        return ref

    def picked(name: str) -> Ref:
        return cell(f"in_whatif_{name}")

    sheet.text(row, left, "No target, no factor", "label")
    nothing = sheet.put(row, left + 1, Cell(0, "fixed", PLAIN))
    one = sheet.put(row, left + 2, Cell(1, "fixed", PLAIN))
    sheet.text(row + 1, left, "Requests in flight on What-if; the headline's workload and tier", "label")
    env = {**wiring.inputs, "users": picked("users"), "case_factor": cell("in_case_users_base")}
    requests = sheet.compute(row + 1, left + 1, case_requests, env)
    load, cells = wiring.lists["headline_rows"].refs[0], wiring.tables["loads"]
    w, t = (
        sheet.formula(row + 1, left + 2 + k, *pick(cells.range(name), load, sheet.name), PLAIN)
        for k, name in enumerate(("workload_row", "tier_row"))
    )

    def asked(name: str, at: Ref) -> Lookup:
        return lookup(wiring.lists[name], at)

    return [("Model", picked("model"), wiring.tables["models"].columns["model"][0]), ("Context",
             picked("context_tokens"), asked("contexts", w)), ("Context of the base case, times",
             cell("in_case_context_base"), one), ("Answer", picked("answer_tokens"), asked("answers", w)),
             ("Requests in flight", requests, asked("tiers", t)), ("Weights' precision", picked("weight_dtype"),
             wiring.inputs["asked_weight_dtype"]), ("KV cache precision", picked("kv_cache_dtype"),
             wiring.inputs["asked_kv_dtype"]), ("Time per token, ms", picked("tpot_ms"), asked("tpot_targets", w)),
             ("Time to first token, ms", nothing, asked("ttft_targets", w))]  # fmt: skip


def add_what_if(pairs: Pairs, wiring: Wiring) -> Ref:
    """The block, and below it the cost of both; gives the cell that says 1 where they agree."""
    sheet, left = pairs.sheet, pairs.left
    load, cells = wiring.lists["headline_rows"].refs[0], wiring.tables["loads"]
    asked = what_if_pairs(wiring, sheet, pairs.row, left)
    pairs.row += 3
    cost = wiring.names["rec_whatif_monthly_usd"]
    assert isinstance(cost, Ref)
    same = pairs.block(("What-if asks", "What-if", "First sheet"), asked, FACTOR, rounded=False)
    monthly = [("$ per month", cost, lookup(cells.range("monthly_usd"), load))]
    costs = pairs.block(("What-if answers", "What-if", "Workings"), monthly, USD_CENTS, rounded=True)
    area = same.expr(sheet.name).text
    sheet.text(pairs.row, left, "Asked the same, they agree", "label")
    env: dict[str, Source] = {
        "n_same": Lookup(sum(r.value for r in same.refs), lambda here: Expr(f"SUM({area})")),
        "n_choices": Lookup(len(same.refs), lambda here: Expr(f"COUNT({area})")),
        "same_cost": costs.refs[0],
    }
    agrees = sheet.compute(pairs.row, left + 3, what_if_agrees, env)
    pairs.row += 2
    return agrees


OF_INSTANCE = ("type", "provider", "instance_gpu", "gpu_count", "price_usd_per_hour")  # side by side


def own_models(sheet: Sheet, row: int, wiring: Wiring) -> list[Ref]:
    """A line for each spare row of Models, below its head at `row`; gives what is said of them."""
    spare = wiring.tables["models"].spare
    columns = sorted(spare.values(), key=lambda refs: refs[0].column)
    sheet.text(row, 0, "Rows of your own on Models", "head")
    listed = wiring.names.get("list_whatif_model")  # the catalog's, too
    if not isinstance(listed, Range):
        listed = Range((wiring.tables["models"].columns["model"][0], spare["model"][-1]))
    found = []
    for k, name in enumerate(spare["model"]):
        given = {n: _zero(spare[n][k]) for n in model_lacks.inputs}
        sheet.text(row + 1 + k, 0, f"Row {name.row + 1}", "label")
        env: dict[str, Source] = {"model": name, "n_filled": _filled([refs[k] for refs in columns]),
                                  "facts": worked_out(model_lacks, given), "n_named": _named(listed, name)}  # fmt: skip
        found.append(sheet.compute(row + 1 + k, 1, own_model_state, env, display=TEXT))
    return found


def own_instances(sheet: Sheet, row: int, wiring: Wiring, first: int) -> list[Ref]:
    """The same of Instances, whose spare rows begin after `first` others."""
    columns = wiring.tables["instances"].columns
    row += len(wiring.tables["models"].spare["model"]) + 2
    sheet.text(row, 0, "Rows of your own on Instances", "head")
    listed = wiring.tables["instances"].range("instance")
    gpus = [str(ref.value).lower() for ref in wiring.tables["gpus"].columns["gpu"]]
    found = []
    for k in range(len(columns["type"]) - first):
        cells = {name: columns[name][first + k] for name in OF_INSTANCE}
        gpu = cells["instance_gpu"]
        sheet.text(row + 1 + k, 0, f"Row {gpu.row + 1}", "label")

        def known(here: str, gpu: Ref = gpu) -> Expr:
            asked = gpu.expr(here).text
            return Expr(f"IFERROR(1*(INDEX(list_gpu,MATCH({asked},list_gpu,0))={asked}),0)")

        env: dict[str, Source] = {
            **cells, "gpu_known": Lookup(int(str(gpu.value).lower() in gpus), known),
            "n_filled": _filled(list(cells.values())), "n_named": _named(listed, columns["instance"][first + k]),
        }  # fmt: skip
        found.append(sheet.compute(row + 1 + k, 1, own_instance_state, env, display=TEXT))
    return found


def _zero(ref: Ref) -> Ref:
    """A blank cell counts as 0."""
    return ref._replace(value=ref.value or 0)


def _filled(refs: Sequence[Ref]) -> Lookup:
    """How many cells of a row are filled."""
    area = Range((refs[0], refs[-1]))
    return Lookup(sum(ref.value is not None for ref in refs), lambda here: Expr(f"COUNTA({area.expr(here).text})"))


def _named(listed: Range, name: Ref) -> Lookup:
    """How many of a list have this name; spreadsheets do not tell capitals apart."""
    same = sum(str(ref.value).lower() == str(name.value).lower() for ref in listed.refs)
    return Lookup(same, lambda here: Expr(f"SUMPRODUCT(1*({listed.expr(here).text}={name.expr(here).text}))"))


@formula("A load is classified", PLAIN)
def classified(fit_word: Any) -> Any:
    """1 where the load has one of the four words.

    Source: definition.
    """
    return where(
        either(fit_word == "fits", fit_word == "tight", fit_word == "none fits", fit_word == "over limit"), 1, 0
    )


@formula("A load is held", PLAIN)
def load_is_held(n_instances: Any, sequences: Any, n_replicas: Any, load_requests: Any) -> Any:
    """1 where the replicas hold the load, or nothing was recommended.

    Source: sequences per replica x replicas >= load.
    """
    replicas = where(is_number(n_replicas), n_replicas, 0)
    return where(is_number(n_instances), where(sequences * replicas >= load_requests, 1, 0), 1)


@formula("Money adds up", PLAIN)
def money_adds_up(n_instances: Any, hourly_price: Any, paid_hours_per_month: Any, monthly_usd: Any) -> Any:
    """1 where instances x price x hours is the month's cost, or nothing was recommended.

    Source: definition.
    """
    count = where(is_number(n_instances), n_instances, 0)
    price = where(is_number(hourly_price), hourly_price, 0)
    month = where(is_number(monthly_usd), monthly_usd, 0)
    return where(count * price * paid_hours_per_month == month, 1, 0)


@formula("Tokens add up", PLAIN)
def tokens_add_up(
    usd_per_million_input_tokens: Any, million_input_tokens_per_month: Any, usd_per_million_output_tokens: Any,
    million_output_tokens_per_month: Any, monthly_usd: Any, tolerance: Any,
) -> Any:  # fmt: skip
    """1 where prompt and answer tokens at their prices are the month's cost, or a price of them is not known.

    Source: the tolerance below the checks; rounding alone may differ.
    """
    prompts = usd_per_million_input_tokens * million_input_tokens_per_month
    gap = prompts + usd_per_million_output_tokens * million_output_tokens_per_month - monthly_usd
    near = where(gap * gap <= tolerance * monthly_usd * (tolerance * monthly_usd), 1, 0)
    return where(both(is_number(usd_per_million_input_tokens), is_number(usd_per_million_output_tokens)), near, 1)


HEADS = (("Check", 58), ("Holds", 9), ("Of", 9), ("Verdict", 10))
OF_LOADS = (classified, load_is_held, money_adds_up, tokens_add_up)
CHECKS_OF_LOADS = (("loads_classified", "Every load is classified: fits, tight, none fits or over limit"),
                   ("loads_held", "Recommended hardware holds its load"), ("months_cost",
                   "Instances x price x hours is the month's cost"), ("tokens_cost",
                   "Prompt and answer tokens at their prices are the month's cost"))  # fmt: skip
LOADS = 5  # the column where the loads begin
PAIRS_ROW = HEAD_ROWS + 24  # below the checks
SMALL = Display("0E+0")
TOLERANCE = 1e-9  # two ways to the same amount differ by rounding alone


class ChecksSheet:
    """The sheet, filled line by line: what holds, of how many, and the verdict, named chk_<what>."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.sheet = titled(
            "Checks",
            "Checks",
            "Each line counts what holds against what there is. The first sheet and Inputs show the overall word.",
            freeze=(HEAD_ROWS + 1, 0),
        )
        heads = [("", 4), ("Model", 26), ("Load", 28), ("Classified", 11), ("Held", 9), ("Money", 9), ("Tokens", 9)]
        for column, (head, width) in enumerate((*HEADS, *heads)):
            self.sheet.widths[column] = width
            if head:
                self.sheet.text(HEAD_ROWS, column, head, "head")
        self.row = HEAD_ROWS + 1
        self.verdicts: list[Ref] = []

    @property
    def here(self) -> str:
        return self.sheet.name

    def line(self, name: str, label: str, holds: tuple[Any, Expr], of: tuple[Any, Expr | None]) -> None:
        """One check: it holds where the two counts are the same. `of` without a formula is a fact as built."""
        sheet, row = self.sheet, self.row
        sheet.text(row, 0, label, "label")
        a = sheet.formula(row, 1, *holds, PLAIN)
        role = "fixed" if of[1] is None else "computed"
        b = sheet.put(row, 2, Cell(of[0], role, PLAIN, formula=of[1]))
        same = Lookup(1 if a.value == b.value else 0, lambda here: where(a.expr(here) == b.expr(here), 1, 0))
        verdict = sheet.compute(row, 3, check_word, {"holds": same}, role="light")
        self.wiring.names[f"chk_{name}"] = verdict
        sheet.status_cells.append((row, 3))
        self.verdicts.append(verdict)
        self.row += 1

    def all_of(self, name: str, label: str, ones: Range) -> None:
        """A check that every cell of a column is 1."""
        area = ones.expr(self.here).text
        held = sum(int(one.value) for one in ones.refs)
        self.line(name, label, (held, Expr(f"SUM({area})")), (len(ones.refs), Expr(f"COUNT({area})")))

    def none_of(self, name: str, label: str, count: tuple[Any, Expr]) -> None:
        """A check that nothing of a kind is found."""
        self.line(name, label, count, (0, None))

    def total(self) -> None:
        """The overall word. What is counted is the lines that hold: one that is an error does not."""
        sheet, row = self.sheet, self.row + 1
        words = Range(tuple(self.verdicts))
        sheet.text(row, 0, "All checks", "label")
        n_lines = sheet.put(row, 2, Cell(len(self.verdicts), "fixed", PLAIN))
        counted = Expr(f'COUNTIFS({words.expr(self.here).text},"OK")')
        n_ok = sum(one.value == "OK" for one in self.verdicts)
        n_hold = sheet.formula(row, 1, n_ok, counted, PLAIN)
        word = "OK" if n_ok == len(self.verdicts) else "CHECK"
        expr = where(n_hold.expr(self.here) == n_lines.expr(self.here), "OK", "CHECK")
        all_of_them = sheet.formula(row, 3, word, expr, TEXT, "light")
        sheet.status_cells.append((row, 3))
        self.wiring.names["chk_all"] = all_of_them
        self.wiring.verdict = word
        for light in self.wiring.lights:
            light.value = word


def build_checks(solved: Solution, wiring: Wiring) -> Sheet:
    """The sheet. What stands on sheets that are not built yet is not checked."""
    page = ChecksSheet(wiring)
    _loads(page, solved)
    _prices(page, solved)
    _inputs(page, solved)
    _errors(page)
    _rows_read(page)
    page.total()
    return page.sheet


def _rows_read(page: ChecksSheet) -> None:
    """A row that is inserted inside a table pushes others past those that the workings read."""
    wiring = page.wiring
    for key, title, column in (("models", "Models", "n_layers"), ("instances", "Instances", "price_usd_per_hour")):
        refs = [*wiring.tables[key].columns[column], *wiring.tables[key].spare.get(column, [])]
        label = f"Rows of {title}: as many as the workings read"
        area = f"cat_{key}_{column}"
        counted = Expr(f"SUMPRODUCT(1*({area}={area}))")  # blank cells, too: ROWS is not in the portable vocabulary
        page.line(f"rows_of_{key}", label, (len(refs), counted), (len(refs), None))


def _loads(page: ChecksSheet, solved: Solution) -> None:
    """A line per load beside the checks, and what is counted of them."""
    sheet, wiring, n = page.sheet, page.wiring, len(solved.question.loads)
    cells, top = wiring.tables["loads"], HEAD_ROWS + 1
    sheet.text(PAIRS_ROW, 0, "Rounding may part amounts by a share of", "label")
    tolerance = sheet.put(PAIRS_ROW, 1, Cell(TOLERANCE, "fixed", SMALL))
    columns: list[list[Ref]] = [[] for _ in OF_LOADS]
    for i in range(n):
        for k, name in enumerate(("model", "load_words")):
            sheet.link(top + i, LOADS + k, cells.columns[name][i], TEXT)
        env = {**wiring.inputs, **cells.row(i), "tolerance": tolerance}
        for k, one in enumerate(OF_LOADS):
            columns[k].append(sheet.compute(top + i, LOADS + 2 + k, one, env))
    for (name, label), refs in zip(CHECKS_OF_LOADS, columns, strict=True):
        page.all_of(name, label, Range(tuple(refs)))
    pairs = Pairs(sheet, _own_rows(page, solved, PAIRS_ROW + 2), 0, tolerance)
    if wiring.of_money:
        same = pairs.block(
            ("Money and the first sheet", "Money", "First sheet"), wiring.of_money, USD_CENTS, rounded=True
        )
        page.all_of("money_sheet", "Money has the month's cost of the first sheet", same)
    if "rec_whatif_monthly_usd" in wiring.names:
        agrees = add_what_if(pairs, wiring)
        page.all_of("what_if", "What-if has the first sheet's cost where it asks the same", Range((agrees,)))


def _own_rows(page: ChecksSheet, solved: Solution, row: int) -> int:
    """What the spare rows of Models and Instances that are begun still lack; gives the next free row."""
    sheet, wiring = page.sheet, page.wiring
    for name, title, states in (
        ("own_models", "Models", own_models(sheet, row, wiring)),
        ("own_instances", "Instances", own_instances(sheet, row, wiring, len(solved.question.rows))),
    ):
        area = Range(tuple(states)).expr(page.here).text
        unfinished = sum(one.value not in (OK, NONE) for one in states)
        counted = Expr(f'COUNTA({area})-COUNTIFS({area},"{OK}")-COUNTIFS({area},"{NONE}")')
        page.none_of(name, f"Unfinished rows of your own on {title}, told below: none", (unfinished, counted))
        row = states[-1].row + 2
    if "wi_choices_state" in wiring.names:
        state = wiring.names["wi_choices_state"]
        assert isinstance(state, Ref)
        counted = Expr(f'COUNTIFS({state.expr(page.here).text},"{OK}")')
        label = "What-if's choices stand in their lists, and its model has all facts"
        page.line("what_if_choices", label, (int(state.value == OK), counted), (1, None))
    return row


def _errors(page: ChecksSheet) -> None:
    """Errors in what a replica holds: to the choice they are hardware that does not hold the load."""
    stems = {f"tbl_{prefix}profiles_{what}" for prefix in ("", "wi_") for what in OF_REPLICA}
    names = sorted(stems & page.wiring.names.keys())
    counted = Expr("+".join(f"SUMPRODUCT(1*ISERROR({name}))" for name in names))
    page.none_of("no_errors", "Errors in what a replica holds: none", (0, counted))


def _prices(page: ChecksSheet, solved: Solution) -> None:
    wiring, here = page.wiring, page.here
    dates, prices = (wiring.tables["instances"].range(c) for c in ("price_date", "price_usd_per_hour"))
    page.line("prices_dated", "Every price has a date", _count(dates, here), _count(prices, here))
    ages = wiring.tables["loads"].range("price_age")
    old = sum(r.value == "old" for r in ages.refs)
    count = Expr(f'COUNTIFS({ages.expr(here).text},"old")')
    page.none_of("prices_fresh", "Loads whose recommended instance has an old price: none", (old, count))


def _inputs(page: ChecksSheet, solved: Solution) -> None:
    """Inputs that a person may have emptied, or typed past what the cell accepts."""
    wiring, here, question = page.wiring, page.here, solved.question
    cells = wiring.tables["loads"]
    for name, label, key, refs, n in (
        ("contexts", "Every context is a number above 0", "workload_row", wiring.lists["contexts"],
         len(question.workloads)),
        ("tiers", "Every tier is a number above 0", "tier_row", wiring.lists["tiers"], len(question.tiers)),
    ):  # fmt: skip
        of = Expr(f"MAX({cells.range(key).expr(here).text})")
        page.line(name, label, (n, Expr(f'COUNTIFS({refs.expr(here).text},">0")')), (n, of))
    contexts, answers = wiring.lists["contexts"], wiring.lists["answers"]
    n_long = sum((a.value or 0) > (c.value or 0) for a, c in zip(answers.refs, contexts.refs, strict=True))
    longer = Expr(f"SUMPRODUCT(1*({answers.expr(here).text}>{contexts.expr(here).text}))")
    page.none_of("answers_fit", "Answers longer than their context: none", (n_long, longer))
    _numbers_on_inputs(page)
    states = wiring.lists.get("input_states")
    if states is not None:
        n_out = sum(state.value == OUT_OF_RANGE for state in wiring.input_states)
        out = Expr(f'COUNTIFS({states.expr(here).text},"{OUT_OF_RANGE}")')
        page.none_of("inputs_in_range", "Cells of Inputs that are out of range: none", (n_out, out))
    columns = wiring.lists.get("columns_out_of_range")
    if columns is not None:
        label = "Numbers of tables that are out of range: none"
        n_out = sum(int(one.value) for one in columns.refs)
        page.none_of("tables_in_range", label, (n_out, Expr(f"SUM({columns.expr(here).text})")))
    choices = wiring.lists.get("choice_states")
    if choices is not None:
        n_out = sum(one.value == OUT_OF_RANGE for one in choices.refs)
        out = Expr(f'COUNTIFS({choices.expr(here).text},"{OUT_OF_RANGE}")')
        page.none_of("choices_in_range", "Choices on other sheets, out of range or of their list: none", (n_out, out))


def _numbers_on_inputs(page: ChecksSheet) -> None:
    """As many numbers as when it was built: a number that is missing counts as 0 elsewhere."""
    wiring = page.wiring
    numbers = [r for r in wiring.inputs.values() if r.sheet == "Inputs" and isinstance(r.value, (int, float))]
    rows = sorted(r.row for r in numbers)
    column = Range(tuple(Ref("Inputs", r, 1, None) for r in (rows[0], rows[-1])))
    value = sum(
        c == 1 and rows[0] <= r <= rows[-1] and isinstance(cell.value, (int, float, datetime.date))
        for (r, c), cell in wiring.inputs_sheet.cells.items()
    )
    # A target may be blank, and one that is typed in makes up for no other number.
    targets = [wiring.lists[f"{figure}_targets"] for figure in ("tpot", "ttft")]
    value -= sum(isinstance(r.value, (int, float)) for refs in targets for r in refs.refs)
    counts = [Expr(f"COUNT({refs.expr(page.here).text})") for refs in (column, *targets)]
    counted = counts[0] - counts[1] - counts[2]
    page.line("no_number_missing", "No number is missing on Inputs", (value, counted), (value, None))


def _count(refs: Range, here: str) -> tuple[int, Expr]:
    return sum(r.value is not None for r in refs.refs), Expr(f"COUNT({refs.expr(here).text})")
