"""The whole workbook: its sheets in reading order, built in order of dependence."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from sheetgen.answer.answer_record import Record
from sheetgen.answer.confidences import paces_at_even_chance
from sheetgen.answer.levers import EveryLever
from sheetgen.answer.solution import Solution
from sheetgen.book.carried import (
    KEY_COLUMNS,
    compared_part,
    count_formulas,
    formula_digests,
    record_sheet,
    results_beside_loads,
    yellow_digest,
)
from sheetgen.book.catalogs import build_gpus, build_instances, build_models
from sheetgen.book.change_log import SCHEMA, build_log
from sheetgen.book.checks import build_checks
from sheetgen.book.constants import build_constants, derive_constants
from sheetgen.book.contexts_sheet import build_contexts
from sheetgen.book.decision_choices import Choices
from sheetgen.book.decision_sheet import DecisionSheets
from sheetgen.book.guide import add_notes, build_guide
from sheetgen.book.hosts_sheet import build_hosts
from sheetgen.book.inputs_sheet import build_inputs
from sheetgen.book.levers_sheet import build_levers
from sheetgen.book.matrices import build_candidates, build_profiles
from sheetgen.book.money_sheet import build_money
from sheetgen.book.sheets import Book, CellValue, Range, Ref
from sheetgen.book.sizing_sheet import OTHER_ROW, TITLE_ROW, build_sizing, headline_cells
from sheetgen.book.wiring import Wiring, name_all
from sheetgen.book.workings import add_choices, build_loads, rows_of_book
from sheetgen.report import sentences
from sheetgen.report.page import Page


def build_book(
    solved: Solution,
    record: Record,
    page: Page,
    every_lever: EveryLever = (),
    choices: Choices | None = None,
    baseline: Mapping[str, CellValue] | None = None,
    shown_in: str | None = None,
) -> Book:
    """The workbook as data: every cell with its value, and the formula that gives it.

    `every_lever` are those of each load; without any there is no Levers sheet. Without `choices` there is no Decision.
    `baseline`: of another build, which this one is compared with (`values_as_built`); of this one where not given.
    shown_in: the code of the currency of its amounts, where that is of another build too.
    """
    wiring = Wiring(baseline=baseline or {}, code=shown_in or solved.question.settings.currency)
    constants = build_constants(solved, wiring)
    inputs = build_inputs(solved, wiring)
    derive_constants(constants)
    name_all(wiring, inputs.name)
    name_all(wiring, constants.sheet.name)
    question = solved.question
    models = build_models(solved, wiring)
    gpus = build_gpus(solved, wiring)
    instances = build_instances(solved, wiring)
    of_book = [question.loads[row] for row in rows_of_book(solved)]
    loads = [(load.model, load.workload, load.tier) for load in of_book]
    workloads = [workload.name for workload in question.workloads]
    at_even_chance = paces_at_even_chance(solved)
    contexts = zip(wiring.lists["contexts"].refs, workloads, strict=True)  # beside them on Inputs
    listed = tuple(r._replace(column=0, value=words, name=None) for r, words in contexts)
    wiring.names["list_workload"] = Range(listed, name="list_workload")
    wiring.names["list_tier"] = wiring.lists["tiers"]
    workings = build_loads(wiring, workloads, loads, headline=headline_cells(solved, wiring))
    levels = at_even_chance if any(at_even_chance) or choices is not None else ()
    contexts_sheet = build_contexts(wiring, workloads, at_even_chance=levels)
    decision = None if choices is None else DecisionSheets(solved, choices, wiring)
    live = [] if decision is None else [decision.wiring]
    profiles = build_profiles(solved, wiring, live)
    candidates = build_candidates(solved, wiring, live)
    add_choices(wiring)
    guide = build_guide(solved, page, wiring)
    sizing = build_sizing(solved, page, wiring, [*(["Decision"] if decision else []), "Money"])
    hosts = build_hosts(solved, wiring)
    money = build_money(solved, wiring)
    first, behind = [], []
    if decision is not None:
        decision.answer()
        first, behind = [decision.sheet], decision.behind
        sizing.compute(OTHER_ROW, 0, sentences.decision_asks, {"other_title": decision.title()}, role="line")
        sizing.cells[OTHER_ROW, 0].span = sizing.n_printed or 1
        decision.point_to(sizing.name, Ref(sizing.name, TITLE_ROW, 0, sizing.cells[TITLE_ROW, 0].value))
    log = build_log(solved, page, wiring, [sizing, *first, money, instances])
    levers = [build_levers(solved, every_lever, wiring)] if any(every_lever) else []
    checks = build_checks(solved, wiring)
    _name_columns(wiring)
    shown = [*first, sizing] if question.ask is not None else [sizing, *first]
    visible = [*shown, inputs, money, instances, checks]
    in_dollars = [sheet.dollars for sheet in (*first, sizing, money) if sheet.currency]
    hidden = [constants.sheet, models, gpus, hosts, workings, contexts_sheet, profiles, candidates, *levers, guide, log]
    hidden += [*behind, *in_dollars]
    carried = {
        "version": page.version,
        "options": question.options,
        "answer": compared_part(record),
        "beside_loads": results_beside_loads(wiring.names),
        "yellow_sha256": yellow_digest(wiring.names),
        "formulas": formula_digests([*visible, *hidden]),
        "n_formulas": count_formulas([*visible, *hidden]),
    }
    hidden.append(record_sheet(wiring.names, carried))
    add_notes(checks, page, hidden)
    sheets = [*visible, *hidden]
    return Book(
        sheets,
        wiring.names,
        {
            "sheetgen.schema": str(SCHEMA),
            "sheetgen.version": page.version,
            "sheetgen.catalog_sha256": solved.question.catalog_sha256,
        },
        datetime.datetime.combine(question.as_of, datetime.time()),
        page.paper,
        page.title,
        page.owner,
        page.approver,
        page.valid_until,
    )


def _name_columns(wiring: Wiring) -> None:
    """Defined names cat_<table>_<column> of the columns that a reader may change, which `pull` and `diff` read."""
    for name in (table for table in KEY_COLUMNS if table in wiring.tables):
        table, key = wiring.tables[name], KEY_COLUMNS[name]
        for column in (key, *(["model"] if name == "models" else []), *table.given_columns):
            refs = [*table.columns[column], *table.spare.get(column, [])]
            wiring.names[f"cat_{name}_{column}"] = Range(tuple(refs))
    for column in (c.removeprefix("dtypes_") for c in wiring.lists if c.startswith("dtypes_")):
        if column != "meant":
            wiring.names[f"cat_precisions_{column}"] = wiring.lists[f"dtypes_{column}"]
