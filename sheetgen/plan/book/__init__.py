"""The plan as a workbook: live from the yellow cells of Inputs to the money; hardware and joint draws are values of the
build, and say so."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from sheetgen.formula import where
from sheetgen.plan.answer import CASE
from sheetgen.plan.book import built
from sheetgen.plan.book.inputs import STALE, PlanInputs
from sheetgen.plan.book.pages import SPARE, Pages
from sheetgen.plan.book.workings import Workings, chosen
from sheetgen.plan.findings import Findings
from sheetgen.plan.pages import PlanPage, plan_page
from sheetgen.plan.schema import DOLLARS
from sheetgen.plan.sized_alone import commands
from sheetgen.sheet.book.checks import HEADS, ChecksSheet
from sheetgen.sheet.book.guide import notes_sheet
from sheetgen.sheet.book.inputs import AS_BUILT, OUT_OF_RANGE
from sheetgen.sheet.book.wiring import Wiring
from sheetgen.sheet.model import BESIDE, LEGEND, Book, Lookup, Range, Sheet, derived
from sheetgen.sheet.notes import first_link
from sheetgen.sheet.page import Column, Table
from sheetgen.units import FACTOR, PLAIN, TEXT, USD_CENTS


def build_plan_book(
    found: Findings, page: PlanPage, record: Mapping[str, Any], sheets: Mapping[str, str] = MappingProxyType({})
) -> Book:
    """All sheets of the workbook, in the order of their tabs: in US dollars, whatever the plan's currency. record: the
    plan as JSON, which it carries; sheets: by service the file beside it that is its sizing sheet."""
    plan, wiring = found.answer.plan, Wiring()
    if plan.head.currency != DOLLARS:
        head = plan.head.model_copy(update={"currency": DOLLARS, "fx_rate": 1})
        answer = replace(found.answer, plan=replace(plan, head=head))
        page = plan_page(replace(found, answer=answer), page.paper)
    inputs = PlanInputs(plan, wiring)
    work = Workings(found.answer, inputs, wiring)
    links = {service: BESIDE + quote(name) for service, name in sheets.items()}
    pages = Pages(found, page, work, wiring, links)
    shown = pages.sheets
    rest = [built.commitments(page, wiring), built.bands(found, page, pages, wiring), built.bridge(page, wiring)]
    actuals = built.actuals(found, page, pages)
    checks = _checks(found, inputs, work, pages, wiring)
    sha = plan.catalog.catalog_sha256()
    hidden = [*work.sheets, built.record_sheet(record, page.version, sha, wiring)]
    notes = _notes(page, hidden, [(words, links.get(service)) for service, words in commands(found.answer)])
    return Book(
        [*shown.values(), *rest, inputs.sheet, actuals, checks, notes, *hidden],
        wiring.names,
        {"sheetgen.plan_schema": str(built.SCHEMA), "sheetgen.version": page.version, "sheetgen.catalog_sha256": sha},
        datetime.datetime.combine(plan.as_of, datetime.time()),
        page.paper,
        page.title,
        "Capacity plan: machines, orders and money by quarter",
    )


def _checks(found: Findings, inputs: PlanInputs, work: Workings, pages: Pages, wiring: Wiring) -> Sheet:
    """What must hold, live; below it what speaks against signing, as built."""
    page = ChecksSheet(wiring, HEADS[:4])
    states = wiring.area("lst_input_states")
    page.none_says(
        "inputs_in_range", "Inputs out of range, or bands out of order: none", states, OUT_OF_RANGE, inputs.states
    )
    quarters = range(work.n_quarters)
    shares, case = [], wiring.inputs["planned_case"]
    for q in quarters:
        own = [
            work.loads.columns["own_instances"][work.row_of_load(s, q, z)]
            for s in range(work.n_services)
            for z in CASE.values()
        ]
        needed = [work.planned("needed_instances", t, q) for t in range(len(work.types))]
        planned = [chosen(case, own[i : i + 3]) for i in range(0, len(own), 3)]
        shares.append((str(found.answer.plan.quarters[q]), derived(_added, *planned), derived(_added, *needed)))
    same = page.pairs(("Machines of the services and of all", "Services", "All"), shares, FACTOR, rounded=True)
    page.all_of("shares", "Services' machines add up to those needed, as planned", same)
    rows = []
    for q in quarters:
        parts = [pages._usd(name, q, 1) for name in ("bought_of_all_usd", "late_usd", "committed_usd", "owned_usd")]
        rows.append((str(found.answer.plan.quarters[q]), derived(_added, *parts), pages._usd("spend_usd", q, 1)))
    same = page.pairs(("What a quarter is made of", "Parts", "Spend at p50"), rows, USD_CENTS, rounded=True)
    page.all_of("money", "The parts of each quarter add up to what it costs", same)
    in_order = []
    for q in quarters:
        low, middle, high = (pages._usd("spend_usd", q, z) for z in CASE.values())
        in_order.append(derived(lambda a, b, c: where(a <= b, where(b <= c, 1, 0), 0), low, middle, high))
    n = sum(one.value for one in in_order)
    page.line(
        "quantiles",
        "Quarters whose spend does not fall from p10 to p90",
        Lookup(n, lambda here: derived(_added, *in_order).expr(here)),
        work.n_quarters,
    )
    too_many = derived(lambda new: where(new > SPARE, new, 0), pages.new_orders)
    page.line("new_orders", f"New orders for which Decisions has no line (it has {SPARE}): none", too_many, 0)
    page.total()
    sheet, row = page.sheet, page.row + 2
    sheet.text(row, 0, "Values of the build (hardware, its times, joint draws, commitments, bridge)", "label")
    sheet.link(row, 3, wiring.ref("chk_values")._replace(name="chk_values"), TEXT, "light")
    sheet.status_cells.append((row, 3))
    for at, (label, ref) in enumerate(
        (
            ("Quarters over their budget, now", _sum(work, "quarters", "is_over")),
            ("Quarters in which an order is late, now", _late(work)),
        ),
        row + 1,
    ):
        sheet.link(at, 1, ref, PLAIN, "computed", label=label)
    rows_of = [(one.what, "yes" if one.holds else "no", "", "", "; ".join(one.found)) for one in found.checks]
    names = ("Before signing, as built", "Holds", "", "", "What speaks against it")
    heads = tuple(map(Column, names))
    sheet.widths[4] = 90
    built.put_table(sheet, page.below + 1, Table("What a reader should know before signing", heads, tuple(rows_of)))
    return sheet


def _added(first: Any, *more: Any) -> Any:
    return sum(more, first)


def _sum(work: Workings, table: str, name: str) -> Lookup:
    refs = Range(tuple(getattr(work, table).columns[name]))
    return Lookup.of(sum(ref.value for ref in refs.refs), "SUM({0})", refs)


def _late(work: Workings) -> Lookup:
    """Rows of Orders with machines to order whose day is over."""
    ordered, late = (Range(tuple(work.orders.columns[name])) for name in ("ordered_instances", "is_late"))
    n = sum(o.value > 0 and bool(w.value) for o, w in zip(ordered.refs, late.refs, strict=True))
    return Lookup.of(n, "SUMPRODUCT(({0}>0)*{1})", ordered, late)


def _notes(page: PlanPage, hidden: list[Sheet], sized: list[tuple[str, str | None]]) -> Sheet:
    return notes_sheet(
        (
            (
                "About",
                [
                    (
                        "A capacity plan by quarter. Blue on yellow cells are inputs, all on Inputs; black "
                        "figures are formulas; "
                        "green ones are taken from another sheet. (build): a value that was worked out when the "
                        "workbook was "
                        f"built, and does not follow an edit; then the word beside it is {STALE} in place of "
                        f"{AS_BUILT}. The "
                        f"correlation between services is in the joint draws alone, and so no input here. {LEGEND}",
                        None,
                    ),
                    (
                        "sheetgen pull THIS.xlsx carries what was typed back to a plan.yaml, and works "
                        "everything out anew, the "
                        "hardware too; sheetgen plan plan.yaml --since THIS.xlsx says what changed since this plan.",
                        None,
                    ),
                    (
                        f"sheetgen {page.version}, catalog {page.catalog}, {page.as_of}. Sheets are protected "
                        "without a password.",
                        None,
                    ),
                ],
            ),
            (
                "Each service sized by itself, in its first quarter (a floor, spares and neighbours may change it)",
                sized,
            ),
            ("Assumptions as built", [(str(text), None) for text in page.assumptions]),
            ("Sources", [(one.text, one.url or first_link(one.text)) for one in page.sources]),
        ),
        hidden,
    )
