"""Checks: conditions that must hold in the workbook, counted live, with one word for all of them."""

from __future__ import annotations

import datetime
import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sheetgen.answer.solution import Solution
from sheetgen.book.decision_choices import ANY
from sheetgen.book.inputs_sheet import OUT_OF_RANGE
from sheetgen.book.lookups import (
    ONE,
    ZERO,
    call,
    constant,
    count_filled,
    count_numbers,
    count_of,
    position_in,
    total,
    written,
)
from sheetgen.book.matrices import OF_REPLICA
from sheetgen.book.sheets import DOLLARS, NONE, Cell, Lookup, Range, Ref, Sheet, Source, derived, lookup, worked_out
from sheetgen.book.wiring import HEAD_ROWS, Wiring, titled
from sheetgen.formula import (
    Expr,
    Formula,
    Quantity,
    Value,
    both,
    count_where,
    either,
    formula,
    function,
    is_number,
    where,
)
from sheetgen.question.inputs import ASKS
from sheetgen.question.stated_load import RATE
from sheetgen.report.sentences import (
    CHECK,
    FIT_WORDS,
    OK,
    check_word,
    model_lacks,
    own_instance_state,
    own_model_state,
    why_check,
)
from sheetgen.units import FACTOR, PLAIN, PLAIN_LAYOUTS, TEXT, USD_CENTS, Display

HEADS = (
    ("Check", 58), ("Holds", 9), ("Of", 9), ("Verdict", 10), (None, 4), ("Model", 26), ("Load", 28), ("Classified", 11),
    ("Held", 9), ("Money", 9), ("Tokens", 9),
)  # fmt: skip
LOADS = 5  # the column where the loads begin
BELOW = HEAD_ROWS + 32  # the row below the checks
SMALL = Display("0E+0")
TOLERANCE = 1e-9  # two ways to the same amount differ by rounding alone


@formula("A load is classified", PLAIN)
def classified(fit_word: Value) -> Value:
    """1 where the load has one of the three words."""
    return where(either(*(fit_word == word for word in FIT_WORDS)), 1, 0)


@formula("A load is held", PLAIN)
def load_is_held(
    n_instances: Quantity, replica_sequences: Quantity, n_replicas: Quantity, load_requests: Quantity
) -> Value:
    """1 where the replicas, each with all its ranks, hold the load, or nothing was recommended."""
    replicas = where(is_number(n_replicas), n_replicas, 0)
    return where(is_number(n_instances), where(replica_sequences * replicas >= load_requests, 1, 0), 1)


@formula("Money adds up", PLAIN)
def money_adds_up(
    n_instances: Quantity, hourly_price: Value, paid_hours_per_month: Quantity, monthly_usd: Quantity
) -> Value:
    """1 where instances x price x hours is the month's cost, or nothing was recommended."""
    count = where(is_number(n_instances), n_instances, 0)
    price = where(is_number(hourly_price), hourly_price, 0)
    month = where(is_number(monthly_usd), monthly_usd, 0)
    return where(count * price * paid_hours_per_month == month, 1, 0)


@formula("Tokens add up", PLAIN)
def tokens_add_up(
    usd_per_million_input_tokens: Quantity,
    million_input_tokens_per_month: Quantity,
    usd_per_million_output_tokens: Quantity,
    million_output_tokens_per_month: Quantity,
    monthly_usd: Quantity,
    tolerance: Quantity,
) -> Value:
    """1 where prompt and answer tokens at their prices are the month's cost, or a price of them is not known."""
    prompts = usd_per_million_input_tokens * million_input_tokens_per_month
    gap = prompts + usd_per_million_output_tokens * million_output_tokens_per_month - monthly_usd
    near = where(gap * gap <= tolerance * monthly_usd * (tolerance * monthly_usd), 1, 0)
    return where(both(is_number(usd_per_million_input_tokens), is_number(usd_per_million_output_tokens)), near, 1)


@formula("The same", PLAIN)
def same_amount(here: Value, there: Value, tolerance: Quantity) -> Value:
    """1 where two amounts are the same but for rounding, or neither is known."""
    gap = here - there
    near = where(gap * gap <= tolerance * there * (tolerance * there), 1, 0)
    apart = where(either(is_number(here), is_number(there)), 0, 1)
    return where(both(is_number(here), is_number(there)), near, apart)


@formula("The same", PLAIN)
def same_value(here: Value, there: Value) -> Value:
    """1 where two cells hold the same."""
    return where(here == there, 1, 0)


@formula("Decision agrees", PLAIN)
def decision_agrees(n_same: Quantity, n_choices: Quantity, same_cost: Quantity) -> Value:
    """1 where Decision has the cost that Workings has, or its choices ask for another load."""
    return where(n_same == n_choices, same_cost, 1)


CHECKS_OF_LOADS = (
    (classified, "loads_classified", "All loads are classified: fits, none fits or over limit"),
    (load_is_held, "loads_held", "Recommended hardware holds its load"),
    (money_adds_up, "months_cost", "Instances x price x hours is the month's cost"),
    (tokens_add_up, "tokens_cost", "Prompt and answer tokens at their prices are the month's cost"),
)


class ChecksSheet:
    """The sheet, filled line by line: what holds, of how many, and the verdict, named chk_<what>.

    Below the lines stand blocks: what begun rows of one's own still lack, and what must be the same on two sheets.
    """

    def __init__(
        self,
        wiring: Wiring,
        heads: Sequence[tuple[str | None, float]] = HEADS,
        name: str = "Sources and checks",
        below: str = "hidden sheets, words and sources",
    ) -> None:
        self.wiring = wiring
        self.sheet = sheet = titled(
            name,
            name,
            f"Each line counts what holds against what there is; below: {below}.",
            freeze=(HEAD_ROWS + 1, 0),
        )
        sheet.texts(HEAD_ROWS, 0, [head for head, _ in heads])
        sheet.widths = {column: width for column, (_, width) in enumerate(heads)}
        self.tolerance = sheet.put(
            BELOW, 1, Cell(TOLERANCE, "fixed", SMALL), label="Rounding may part amounts by a share of"
        )
        self.row, self.below = HEAD_ROWS + 1, BELOW + 2  # the next line, and the next free row of blocks
        self.verdicts: list[Ref] = []
        self.remarks: dict[str, Source] = {"n_old": ZERO, "stale_after_days": ZERO}

    def line(self, name: str, label: str, holds: Lookup, expected: Lookup | int) -> None:
        """One check: it holds where the two counts are the same. A number as `expected` is a fact as built."""
        sheet, row = self.sheet, self.row
        a = sheet.link(row, 1, holds, PLAIN, "computed", label=label)
        if isinstance(expected, int):
            b = sheet.put(row, 2, Cell(expected, "fixed", PLAIN))
        else:
            b = sheet.link(row, 2, expected, PLAIN, "computed")
        same = derived(lambda holds, expected: where(holds == expected, 1, 0), a, b)
        verdict = sheet.compute(row, 3, check_word, {"holds": same}, role="light")
        self.wiring.names[f"chk_{name}"] = verdict
        sheet.status_cells.append((row, 3))
        self.verdicts.append(verdict)
        self.row += 1

    def all_of(self, name: str, label: str, ones: Sequence[Ref]) -> None:
        """A check that every cell of a column is 1."""
        area = Range(tuple(ones))
        self.line(name, label, total(area), count_numbers(area))

    def none_says(self, name: str, label: str, refs: Range, word: str, states: Sequence[Ref] | None = None) -> None:
        """A check that no cell of a range holds a word. states: its cells, where the range has the corners alone."""
        n_found = sum(state.value == word for state in (refs.refs if states is None else states))
        self.line(name, label, replace(count_of(refs, word), value=n_found), 0)

    def old_prices(self, ages: Range, limit: Ref) -> None:
        """A line that counts the loads with an old price, which is no fault of the workbook. limit: in days."""
        label = "No fault: loads whose recommended instance has an old price"
        self.remarks["n_old"] = self.sheet.link(self.row, 1, count_of(ages, "old"), PLAIN, "computed", label=label)
        self.remarks["stale_after_days"] = limit
        self.row += 1

    def total(self) -> None:
        """Add the overall verdict, and the reason. It counts the lines that hold: a line with an error does not."""
        sheet, row = self.sheet, self.row + 1
        n_lines = sheet.put(row, 2, Cell(len(self.verdicts), "fixed", PLAIN))
        area = Range(tuple(self.verdicts))
        counted = count_of(area, OK)
        n_hold = sheet.link(row, 1, counted, PLAIN, "computed", label="All checks")
        word = derived(lambda hold, lines: where(hold == lines, OK, CHECK), n_hold, n_lines)
        self.wiring.names["chk_all"] = sheet.link(row, 3, word, TEXT, "light")
        sheet.status_cells.append((row, 3))
        self.wiring.verdict = word.value
        place = sheet.link(
            row + 1, 1, position_in(area, constant(CHECK), ONE), PLAIN, "computed", label="The first that does not hold"
        )
        label, held, expected = (
            lookup(Range(tuple(self._cell(verdict, column) for verdict in self.verdicts)), place) for column in range(3)
        )
        env = {"n_wrong": count_of(area, CHECK), "all_checks": self.wiring.names["chk_all"], **self.remarks}
        env |= {"line": label, "held": held, "expected": expected}
        why = sheet.compute(row + 2, 0, why_check, env, role="light")
        self.wiring.names["chk_why"] = why
        for cells, value in ((self.wiring.lights, word.value), (self.wiring.reasons, why.value)):
            for cell in cells:
                cell.value = value

    def _cell(self, verdict: Ref, column: int) -> Ref:
        """Another cell of a verdict's line."""
        value = self.sheet.cells[verdict.row, column].value
        return verdict._replace(column=column, value=value)

    def own_rows(
        self,
        name: str,
        title: str,
        state_formula: Formula,
        listed: Range,
        rows: Iterable[tuple[Ref, Sequence[Ref], Mapping[str, Source]]],
    ) -> None:
        """A block of the facts that spare rows with any entry still lack, and the check that they lack nothing.

        listed: the names in use. rows: a row's name, its cells from the first to the last, and what else the
        formula of a row's state reads.
        """
        self.sheet.text(self.below, 0, f"Rows of your own on {title}", "head")
        states = []
        for called, cells, facts in rows:
            self.below += 1
            n_filled, area = sum(ref.value is not None for ref in cells), Range((cells[0], cells[-1]))
            # How many have the name: spreadsheets do not tell capitals apart.
            n_named = sum(str(ref.value).lower() == str(called.value).lower() for ref in listed.refs)
            env = {
                **facts,
                "n_filled": written(n_filled, call("COUNTA"), area),
                "n_named": written(n_named, lambda listed, name: count_where(listed == name), listed, called),
            }
            label = f"Row {called.row + 1}"
            states.append(self.sheet.compute(self.below, 1, state_formula, env, display=TEXT, label=label))
        self.below += 2
        area = Range(tuple(states))
        unfinished = derived(
            lambda n_rows, n_done, n_blank: n_rows - n_done - n_blank,
            *(count_filled(area), count_of(area, OK), count_of(area, NONE)),
        )
        self.line(name, f"Unfinished rows of yours on {title} here: none", unfinished, 0)

    def pairs(
        self, heads: Sequence[str], pairs: Iterable[tuple[str, Source, Source]], display: Display, rounded: bool
    ) -> list[Ref]:
        """A block of values that must be equal on two sheets; returns the column that says 1 where they are."""
        sheet, same = self.sheet, []
        sheet.texts(self.below, 0, (*heads, "Same"))
        for label, here, there in pairs:
            self.below += 1
            sheet.text(self.below, 0, label, "label")
            cells: dict[str, Source] = {"tolerance": self.tolerance}
            for column, (name, ref) in enumerate((("here", here), ("there", there)), 1):
                value = 0 if ref.value is None else ref.value  # of a blank cell, as its look-up is
                shown = TEXT if isinstance(value, str) else display
                cells[name] = sheet.formula(self.below, column, value, ref.expr(sheet.name), shown)
            same.append(sheet.compute(self.below, 3, same_amount if rounded else same_value, cells))
        self.below += 2
        return same


def build_checks(solved: Solution, wiring: Wiring) -> Sheet:
    """The sheet Checks; all others must be built before."""
    page = ChecksSheet(wiring)
    _loads(page, wiring.tables["loads"].n_rows)
    _own_rows(page, len(solved.question.rows))
    _headline(page)
    heads = "Money and Sizing sheet", "Money", "Sizing sheet"
    same = page.pairs(heads, wiring.of_money, USD_CENTS, rounded=True)
    page.all_of("money_sheet", "Money has the month's cost of Sizing sheet", same)
    if "rec_decision_monthly_usd" in wiring.names:
        agrees = _decision(page, solved.question.ask or 0)
        page.all_of("decision", "Decision has the cost of Sizing sheet where it asks the same", [agrees])
    instances, loads = wiring.tables["instances"], wiring.tables["loads"]
    counts = [count_numbers(instances.range(column)) for column in ("date_in_use", "price_in_use")]
    page.line("prices_dated", "Every price has a date", *counts)
    _inputs(page)
    # Errors in the capacity of a replica: the choice reads them as hardware that does not hold the load.
    stems = {f"blk_{prefix}{quantity}" for prefix in ("", "wi_") for quantity in OF_REPLICA}
    held = [wiring.area(name) for name in sorted(stems & wiring.names.keys())]
    page.line("no_errors", "Errors in what a replica holds: none", written(0, _count_errors, *held), 0)
    if len(solved.question.layouts) > len(PLAIN_LAYOUTS):
        # Workings have data-parallel layouts of the GPUs alone whose links were made for them when they were built.
        gpus = wiring.tables["gpus"]
        read = gpus.range("interconnect_bytes_per_second"), gpus.range("plain_columns")
        raised = derived(
            lambda links, ranks, least: count_where((links >= least) * (ranks == 0)),
            *(*read, wiring.inputs["least_link_bytes_per_second"]),
        )
        page.line(
            "layouts",
            "GPUs whose links were raised for data-parallel ranks, which takes a rebuild (pull): none",
            raised,
            0,
        )
    # A row that is inserted inside a table pushes others past those that the workings read.
    for key, title, column in (
        ("models", "Models", "n_layers"),
        ("instances", "Prices and hardware", "price_usd_per_hour"),
    ):
        n_rows = len(wiring.tables[key].columns[column]) + len(wiring.tables[key].spare.get(column, []))
        area = f"cat_{key}_{column}"
        # Blank cells, too: ROWS is not in the portable vocabulary.
        counted = written(n_rows, lambda area: count_where(area == area), Range((), name=area))
        page.line(f"rows_of_{key}", f"Rows of {title}: as many as the workings read", counted, n_rows)
    page.old_prices(loads.range("price_age"), wiring.ref("in_stale_after_days"))
    page.total()
    return page.sheet


def _loads(page: ChecksSheet, n_loads: int) -> None:
    """A line per load beside the checks, and the checks that count them."""
    sheet, loads = page.sheet, page.wiring.tables["loads"]
    columns: list[list[Ref]] = [[] for _ in CHECKS_OF_LOADS]
    for i, row in enumerate(range(HEAD_ROWS + 1, HEAD_ROWS + 1 + n_loads)):
        for k, name in enumerate(("model", "load_words")):
            sheet.link(row, LOADS + k, loads.columns[name][i], TEXT)
        env = {**page.wiring.inputs, **loads.row(i), "tolerance": page.tolerance}
        for k, (check, _, _) in enumerate(CHECKS_OF_LOADS):
            columns[k].append(sheet.compute(row, LOADS + 2 + k, check, env))
    for (_, name, label), refs in zip(CHECKS_OF_LOADS, columns, strict=True):
        page.all_of(name, label, refs)


def _headline(page: ChecksSheet) -> None:
    """Add the check that the first sheet answers the load that is typed there, not a substitute."""
    wiring = page.wiring
    workload, requests = (wiring.ref(f"in_headline_{name}") for name in ("workload", "tier"))
    in_use, number = (wiring.ref(f"calc_headline_{name}") for name in ("workload", "requests"))
    named = lookup(wiring.area("list_workload"), in_use)
    pairs = (str(workload.value).lower(), str(named.value).lower()), (requests.value, number.value)
    n_same = sum(typed == used for typed, used in pairs)
    counted = written(
        n_same,
        lambda workload, named, requests, number: where(workload == named, 1, 0) + where(requests == number, 1, 0),
        *(workload, named, requests, number),
    )
    page.line("headline", "What is typed on Sizing sheet is what it answers", counted, 2)


def _own_rows(page: ChecksSheet, n_listed: int) -> None:
    """Add the facts that spare rows of Models and of Prices and hardware lack, and the check that Decision can be
    answered.

    n_listed: instances of the catalog's, after which the spare rows stand.
    """
    wiring = page.wiring
    models, instances = wiring.tables["models"], wiring.tables["instances"].columns
    cells = sorted(models.spare.values(), key=lambda refs: refs[0].column)
    listed = wiring.names.get("list_decision_model")  # the catalog's, too
    if not isinstance(listed, Range):
        listed = Range((models.columns["model"][0], models.spare["model"][-1]))

    def facts(k: int) -> Lookup:
        given = {name: models.spare[name][k] for name in model_lacks.inputs}
        return worked_out(model_lacks, {name: ref._replace(value=ref.value or 0) for name, ref in given.items()})

    page.own_rows(
        "own_models",
        "Models",
        own_model_state,
        listed,
        (
            (name, [refs[k] for refs in cells], {"model": name, "facts": facts(k)})
            for k, name in enumerate(models.spare["model"])
        ),
    )
    gpus = [str(ref.value).lower() for ref in wiring.tables["gpus"].columns["gpu"]]

    def gpu_known(gpu: Ref) -> Lookup:
        value = int(str(gpu.value).lower() in gpus)
        return written(value, _stands_in, gpu, wiring.area("list_gpu"))

    side_by_side = ("type", "provider", "instance_gpu", "gpu_count", "price_usd_per_hour")
    own = [{n: instances[n][i] for n in side_by_side} for i in range(n_listed, len(instances["type"]))]
    page.own_rows(
        "own_instances",
        "Prices and hardware",
        own_instance_state,
        wiring.tables["instances"].range("instance"),
        (
            (
                name,
                list(row.values()),
                {
                    **row,
                    "gpu_known": gpu_known(row["instance_gpu"]),
                    "price_usd_per_hour": derived(lambda usd: where(is_number(usd), usd, 0), usd),
                },
            )
            for name, usd, row in zip(
                instances["instance"][n_listed:], instances["price_in_use"][n_listed:], own, strict=True
            )
        ),
    )
    if "wi_choices_state" in wiring.names:
        state = wiring.ref("wi_choices_state")
        answered = count_of(Range((state,), name=state.name), OK)
        page.line(
            "decision_choices", "Decision's choices stand in their lists, and its model has all facts", answered, 1
        )


def _decision(page: ChecksSheet, model: int) -> Ref:
    """Decision's choices beside those of that model's headline on the first sheet, and below them the cost of both;
    returns the cell that says 1 where they agree."""
    sheet, wiring, row = page.sheet, page.wiring, page.below
    load, loads, inputs = wiring.lists["headline_rows"].refs[model], wiring.tables["loads"], wiring.inputs
    asked = "tier" if "tier" in loads.columns else "concurrent_requests"
    stated = derived(_or_0, lookup(loads.range(asked), load))
    asked_load = lookup(loads.range("workload_row"), load), stated
    w, at_once = (sheet.link(row, 1 + k, source, PLAIN, "computed") for k, source in enumerate(asked_load))
    sheet.text(row, 0, "Workload and requests at once of Sizing sheet", "label")
    everybody = sheet.text(row, 3, ANY)
    of_workload = {
        name: lookup(wiring.lists[name], w) for name in ("contexts", "answers", "tpot_targets", "ttft_targets")
    }
    page.below += 2
    first_name = wiring.first_name

    def picked(name: str) -> Ref:
        return wiring.ref(f"in_decision_{name}")

    same = page.pairs(
        ("Decision asks", "Decision", "Sizing sheet"),
        (
            ("Model", picked("model"), wiring.tables["models"].columns["model"][model]),
            ("Context", wiring.ref("calc_decision_context_tokens"), of_workload["contexts"]),
            ("Answer", wiring.ref("calc_decision_answer_tokens"), of_workload["answers"]),
            ("Requests at once; 0: of people", derived(_or_0, wiring.ref("wi_own_requests")), at_once),
            *_people(page, load, wiring.ref(f"calc_decision_{ASKS}")),
            ("Weights' precision", first_name(picked("weight_dtype")), first_name(inputs["asked_weight_dtype"])),
            ("KV cache precision", first_name(picked("kv_cache_dtype")), first_name(inputs["asked_kv_dtype"])),
            ("Purchase class", picked("purchase"), inputs["purchase"]),
            ("Provider", picked("provider"), everybody),
            ("Confidence", picked("confidence"), inputs["confidence"]),
            ("Time per token, ms", picked("tpot_ms"), of_workload["tpot_targets"]),
            ("Time to first token, ms", picked("ttft_ms"), of_workload["ttft_targets"]),
        ),
        FACTOR,
        rounded=False,
    )
    monthly = "$ per month", wiring.ref("rec_decision_monthly_usd"), lookup(loads.range("monthly_usd"), load)
    costs = page.pairs(("Decision answers", "Decision", "Workings"), [monthly], USD_CENTS, rounded=True)
    area = Range(tuple(same))
    sheet.text(page.below, 0, "Asked the same, they agree", "label")
    agrees = sheet.compute(
        page.below,
        3,
        decision_agrees,
        {
            "n_same": total(area),
            "n_choices": count_numbers(area),
            "same_cost": costs[0],
        },
    )
    page.below += 2
    return agrees


def _or_0(amount: Quantity) -> Value:
    """A number; 0 where there is none."""
    return where(is_number(amount), amount, 0)


def _people(page: ChecksSheet, load: Ref, asks: Ref) -> Iterator[tuple[str, Source, Source]]:
    """The people of Decision and of the first sheet, where its load may be a rate, and the questions of each a day."""
    loads = page.wiring.tables["loads"]
    if "stated_users" not in loads.columns:
        return
    here, there = page.wiring.ref("wi_own_users"), lookup(loads.range("stated_users"), load)
    yield "People", here, there

    def asked(users: Quantity, per_person: Quantity) -> Value:
        return where(users > 0, per_person, 0)

    yield "Questions a day, each", derived(asked, here, asks), derived(asked, there, lookup(loads.range(ASKS), load))


def _count_above_zero(refs: Expr, with_rates: bool) -> Expr:
    """The number of cells that hold a number above 0, or say that the load is a rate."""
    numbers = function("COUNTIFS", refs, ">0")
    return numbers + function("COUNTIFS", refs, RATE) if with_rates else numbers


def _count_less(numbers: Expr, *others: Expr) -> Expr:
    """The count of numbers in a range, less those of other ranges."""
    return functools.reduce(operator.sub, (function("COUNT", area) for area in (numbers, *others)))


def _count_errors(*areas: Expr) -> Expr:
    """The number of ranges that hold an error."""
    return functools.reduce(operator.add, (1 * function("ISERROR", function("SUM", area)) for area in areas))


def _stands_in(key: Expr, listed: Expr) -> Expr:
    """1 where a list holds a key literally, else 0: MATCH takes * for any text."""
    entry = function("INDEX", listed, function("MATCH", key, listed, 0))
    return function("IFERROR", 1 * (entry == key), 0)


def _currency_has_its_rate(currency: Value, rate: Value) -> Value:
    """1 where the currency of the budget is named, and its rate is 1 for dollars alone; else 0."""
    of_dollars, of_others = where(rate == 1, 1, 0), where(rate == 1, 0, 1)
    return where(currency == "", 0, where(currency == DOLLARS, of_dollars, of_others))


def _currency_is(code: str, currency: Value, rate: Value) -> Value:
    """1 where the currency is still that of the signs of all amounts, and its rate is not 1; else 0."""
    return where(currency == code, where(rate == 1, 0, 1), 0)


def _inputs(page: ChecksSheet) -> None:
    """Checks of inputs that a person may have emptied, or typed out of range."""
    wiring, lists = page.wiring, page.wiring.lists
    for name, label, key in (
        ("contexts", "Every context is a number above 0", "workload_row"),
        ("tiers", "Every tier is a number above 0", "tier_row"),
    ):
        n = len(lists[name].refs)
        counted = written(n, partial(_count_above_zero, with_rates=RATE in lists[name].value), lists[name])
        page.line(name, label, counted, written(n, call("MAX"), wiring.tables["loads"].range(key)))
    contexts, answers = lists["contexts"], lists["answers"]
    n_long = sum((a.value or 0) > (c.value or 0) for a, c in zip(answers.refs, contexts.refs, strict=True))
    longer = written(n_long, lambda answers, contexts: count_where(answers > contexts), answers, contexts)
    page.line("answers_fit", "Answers longer than their context: none", longer, 0)
    money = [wiring.ref(f"in_{name}") for name in ("currency", "fx_rate")]
    typed = str(money[0].value or "").upper()
    agrees = bool(typed) and (typed == DOLLARS) == (money[1].value == 1)
    label, test = f"A currency is named, with its rate; that of {DOLLARS} is 1", _currency_has_its_rate
    if wiring.code != DOLLARS:
        agrees = agrees and typed == wiring.code
        label = f"The currency is {wiring.code}, whose sign amounts have, with its rate; another takes a rebuild (pull)"
        test = partial(_currency_is, wiring.code)
    page.line("currency", label, written(int(agrees), test, *money), 1)
    # As many numbers as when it was built: a number that is missing counts as 0 elsewhere.
    rows = sorted(r.row for r in wiring.inputs.values() if r.sheet == "Inputs" and isinstance(r.value, (int, float)))
    column = Range(tuple(Ref("Inputs", r, 1, None) for r in (rows[0], rows[-1])))
    value = sum(
        c == 1 and rows[0] <= r <= rows[-1] and isinstance(cell.value, (int, float, datetime.date))
        for (r, c), cell in wiring.inputs_sheet.cells.items()
    )
    # A target may be blank, and one that is typed in makes up for no other number.
    targets = [lists[f"{figure}_targets"] for figure in ("tpot", "ttft")]
    value -= sum(isinstance(r.value, (int, float)) for refs in targets for r in refs.refs)
    numbers = written(value, _count_less, column, *targets)
    page.line("no_number_missing", "No number is missing on Inputs", numbers, value)
    label = "Cells of Inputs that are out of range: none"
    page.none_says("inputs_in_range", label, lists["input_states"], OUT_OF_RANGE, wiring.input_states)
    columns = lists["columns_out_of_range"]
    page.line("tables_in_range", "Numbers of tables that are out of range: none", total(columns), 0)
    label = "Choices on other sheets, out of range or of their list: none"
    page.none_says("choices_in_range", label, lists["choice_states"], OUT_OF_RANGE)
