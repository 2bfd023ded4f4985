"""The plan's PDF and Word document say what its JSON says, stay on their page, and take text as text alone."""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections import defaultdict
from copy import deepcopy
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import docx
import plan_books
import pytest
from amounts import IN_LONG, amount
from click.testing import CliRunner
from docx.oxml.ns import qn
from pages import TEMPLATES, read
from plan_books import decided, findings_without_levers
from test_pdf_hostile import EVIL
from verapdf import FEWEST_CHECKS, validate

from sheetgen.brand import read_brand
from sheetgen.catalog import Catalog, read_document
from sheetgen.catalog.base import Document
from sheetgen.cli import main
from sheetgen.errors import MissingLibraryError, PageError
from sheetgen.plan.bridge import Last, sums_of
from sheetgen.plan.charts import Machines, Waterfall, machines
from sheetgen.plan.cheaper import Trials, best_of_kinds
from sheetgen.plan.cheaper import closing as closing_of
from sheetgen.plan.decisions import Decision
from sheetgen.plan.findings import Check, Findings, findings
from sheetgen.plan.pages import PlanPage, plan_page
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.services_table import owners_table, services_table
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.spending import OVER, OVER_AT_P90, WITHIN
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.whole_amounts import in_whole
from sheetgen.plan.worked_plan import moves_usd
from sheetgen.report.wording import sure
from sheetgen.writers import plan_page as plan_page_writer
from sheetgen.writers.docx import write_plan_docx
from sheetgen.writers.formats import Archive, Options
from sheetgen.writers.html import parted
from sheetgen.writers.layout import FONTS, PLAN_SMALL, TEXT
from sheetgen.writers.pdf import Layout, laid_out
from sheetgen.writers.plan_page import PLOT, lay_out, write_plan_pdf
from sheetgen.writers.plan_pictures import machines_chart, waterfall_chart
from sheetgen.writers.weasyprint_boxes import part_of

CATALOG = Catalog()
FONT = TEMPLATES / "fonts" / FONTS[400]
DATA: dict[str, Any] = read_document(TEMPLATES / "plan.yaml").data
MM = 72 / 25.4  # points
SHOWN = {" ": r"\s*", "/": r"/\s*", "-": r"-\s*"}  # where a line may end


def plan(data: dict[str, Any]) -> Plan:
    return plan_of(Document("plan.yaml", data, {}), CATALOG)


@cache
def example() -> Findings:
    """The example, and what changed since a plan with fewer users, less headroom and a lower discount."""
    before = deepcopy(DATA)
    before["plan"]["as_of"] = "2026-11-01"
    before["policy"]["headroom_fraction"], before["prices"]["discount_fraction"] = 0.05, 0.05
    before["services"][0]["demand"]["users"]["dau"] = {"p10": 70000, "p50": 90000, "p90": 120000}
    old = plan(before)
    return findings(plan_books.example().answer, Last(old, sums_of(solved_plan(old, timed=False)), "last.json"))


@cache
def page(paper: str = "a4") -> PlanPage:
    return plan_page(example(), paper)


@cache
def laid(paper: str) -> Layout:
    return lay_out(page(paper), TEMPLATES)


@cache
def pdf(paper: str = "a4") -> bytes:
    return laid(paper).pdf(Archive(catalog_sha256="ab" * 32))


@cache
def word(paper: str = "a4") -> bytes:
    return write_plan_docx(page(paper), Options(TEMPLATES))


def shows(text: str, words: str) -> bool:
    """Whether `words` stand in the text of a page, whatever lines they are on."""
    pattern = "".join(SHOWN.get(char, re.escape(char)) for char in words)
    return re.search(pattern, text) is not None


def usd(value: float) -> str:
    return f"{'-' if value < 0 else ''}${abs(value):,.0f}"


def whole(text: Any) -> int:
    return int(str(text).replace("$", "").replace(",", ""))


def budget_rows() -> list[str]:
    """The rows of the budget as they are printed: every amount is that of the JSON but for less than a dollar, and what
    is printed adds up, in each row and in each column."""
    (table,) = [
        section.table for section in page().first if section.table and str(section.table.columns[1].head) == "Budget"
    ]
    assert table is not None
    names = ("budget_usd", "p50_usd", "contingency_p50_usd", "", "p90_usd", "contingency_p90_usd", "")
    sums = [0] * len(names)
    for row, money in zip(table.rows, record_of(example())["money"], strict=False):
        amounts = [whole(cell) for cell in row[1:8]]
        assert str(row[0]) == money["quarter"] and str(row[8]) == money["verdict"]
        for printed, name in zip(amounts, names, strict=True):
            assert not name or abs(printed - money[name]) < 1
        budget, p50, p50_more, p50_left, p90, p90_more, p90_left = amounts
        assert (p50_left, p90_left) == (budget - p50 - p50_more, budget - p90 - p90_more)
        sums = [sum(pair) for pair in zip(sums, amounts, strict=True)]
    assert [whole(cell) for cell in table.rows[-1][1:8]] == sums
    return [" ".join(map(str, row)) for row in table.rows]


def first_facts() -> list[str]:
    """The facts that the first page must have, from the JSON alone."""
    record = record_of(example())
    for money in record["money"]:
        left = {
            name: money["budget_usd"] - money[f"{name}_usd"] - money[f"contingency_{name}_usd"]
            for name in ("p50", "p90")
        }
        # The row adds up to the verdict.
        assert money["verdict"] == (OVER if left["p50"] < 0 else OVER_AT_P90 if left["p90"] < 0 else WITHIN)
    rows = budget_rows()
    over = [row for row in rows if row.endswith((OVER_AT_P90, OVER))]
    assert over
    spent = [usd(sum(money[name] for money in record["money"])) for name in ("p50_usd", "p90_usd")]
    as_of = date.fromisoformat(DATA["plan"]["as_of"])
    late = [
        (as_of - date.fromisoformat(decision["order_by"])).days for decision in record["decisions"] if decision["late"]
    ]
    now = [decision["order_by"] for decision in record["decisions"] if decision["kind"] == "now"]
    asked = sum(money["p90_usd"] + money["contingency_p90_usd"] for money in record["money"])
    levers = {
        kind: max(lever["usd"] for lever in record["cheaper"] if lever["kind"] == kind)
        for kind in ("policy", "precision")
    }
    kinds = [lever["kind"] for lever in record["cheaper"] if lever["what"] in record["closing"]["by_itself"]]
    # Of the decisions, the one that binds most is there.
    signed = [decision for decision in record["decisions"] if decision["kind"] == "now"]
    largest = max(signed, key=lambda decision: decision["binds_usd"] or abs(decision["usd"] or 0))
    return [
        *rows,
        *now,
        f"Approve {usd(asked)} for 2027-Q1 to 2028-Q2",
        f"{spent[1]} for machines at p90",
        spent[0],
        usd(record["totals"]["sign_now_usd"]),
        f"below {usd(record['totals']['usd']['p90'])}",
        *map(usd, levers.values()),
        *kinds,
        "by itself brings every quarter",
        decided(largest),
        *(f"late by {days} days" for days in late),
        "Approved by vp-engineering",
    ]


def worst_limit() -> tuple[str, str]:
    """The limit that cuts most, from the JSON alone: its quarter, and its kind as it is said."""
    record = record_of(example())
    month_usd = {
        (row["id"], row["quarter"]): row["monthly_usd"] for row in record["services"] if row["quantile"] == "p90"
    }
    cut: dict[tuple[str, str], float] = defaultdict(float)
    for row in record["served"]:
        limit = row["quarter"], {"budget": "budget", "quota": "quota of"}.get(row["limit"], "what is there of")
        cut[limit] += (1 - row["share"]) * month_usd[row["service"], row["quarter"]]
    return max(cut, key=lambda limit: cut[limit])


@pytest.mark.parametrize("paper", ["a4", pytest.param("letter", marks=pytest.mark.long)])
def test_the_first_page_says_what_the_json_says(paper: str) -> None:
    first, *others = read(pdf(paper))
    for fact in first_facts():
        assert shows(first.text, fact), fact
    # What is ordered now adds up to what is to be signed.
    of_decisions = next(section.table for section in page().first if section.table)
    tables = [part.table for part in page().sections if part.table and part.table.columns == of_decisions.columns]
    printed = [row for table in tables for row in table.rows if str(row[1]).startswith("order")]
    orders = [
        decision
        for decision in record_of(example())["decisions"]
        if (decision["kind"], decision["what"]) == ("now", "order")
    ]
    assert sum(whole(row[4]) for row in printed) == whole(page().tiles[1].amount) and len(printed) == len(orders) > 1
    for order in orders:
        rows = [row for row in printed if str(row[0]) == order["order_by"] and str(row[1]).startswith(decided(order))]
        assert any(abs(whole(row[4]) - order["usd"]) < 1 for row in rows)
    behind = " ".join(sheet.text for sheet in others)
    assert shows(behind.partition("If the limits are kept")[2].partition(" serves")[0], worst_limit()[1])
    parts = sorted(record_of(example())["bridge"], key=lambda part: -max(abs(part["usd"]), abs(part["asked_usd"])))
    for part in parts[:6]:
        near = (usd(part["asked_usd"] + more) for more in (0, 1, -1))  # so that it adds up
        row = f"{part['factor']} {part['service'] or 'all together'}"
        assert any(shows(behind, f"{row} {amount_usd}") for amount_usd in near), row
    for decision in record_of(example())["decisions"]:
        if decision["break_even"] and decision["kind"] == "now":
            assert shows(behind, f"{decision['order_by']} {decided(decision)}")
    assert first.text.count("late by") == sum(decision.late for decision in example().decisions)


@pytest.mark.parametrize("paper", ["a4", pytest.param("letter", marks=pytest.mark.long)])
def test_the_print_has_its_size_and_the_chart_its_room(paper: str) -> None:
    sheets = read(pdf(paper))
    assert min(char["size"] for sheet in sheets for char in sheet.chars) >= PLAN_SMALL - 0.01
    assert TEXT >= 8.5
    paper_box = {box["x1"] - box["x0"]: box for box in sheets[0].boxes if box["bottom"] - box["top"] < 0.6}
    assert max(paper_box) > 55 * MM
    drawn = str(machines_chart(machines(example().answer), 500, PLOT, FONT, "Inter"))
    rules = [float(y) for y in re.findall(r'<line x1="[\d.]+" y1="([\d.]+)" x2="500', drawn)]
    assert max(rules) - min(rules) >= 30 * MM


def test_decisions_go_overleaf_where_warnings_take_their_lines() -> None:
    """The chart and the signature stay on the first page."""
    planned = example()
    more = tuple(Check(f"check {i}", ["x"], f"check {i} fails: {'a word of it ' * 12}") for i in range(6))
    warned = plan_page(replace(planned, checks=(*planned.checks, *more)))
    before, after = (drawn.first[0].table for drawn in (page(), warned))
    assert before and after and len(after.rows) < len(before.rows)
    first, *_ = read(write_plan_pdf(warned, Options(TEMPLATES)))
    assert shows(first.text, "GPUs by quarter") and shows(first.text, "Approved by vp-engineering")


def test_remarks_give_way_to_the_chart_and_the_signature() -> None:
    """Remarks of a page's half put both overleaf: the first page has the first of them, the second page all."""
    planned = example()
    long = replace(planned.now[0], about="; ".join(f"a remark of forty characters, number {i}" for i in range(60)))
    others = (long if decision == planned.now[0] else decision for decision in planned.decisions)
    told = plan_page(replace(planned, decisions=tuple(others)))
    (shown, *_), behind = (section.table for section in told.first), told.reasons[0].table
    assert shown and behind and sum("overleaf" in str(row[-1]) for row in shown.rows) == len(behind.rows) >= 1
    assert any("number 59" in str(row[-1]) for row in behind.rows)
    first, *_ = read(write_plan_pdf(told, Options(TEMPLATES)))
    assert shows(first.text, "GPUs by quarter") and shows(first.text, "Approved by vp-engineering")


@pytest.mark.long
def test_only_the_first_page_is_of_the_first_part() -> None:
    brand = read_brand(TEMPLATES / "brand" / "brand.yaml")
    for paper in ("a4", "letter")[: amount(1, 2)]:
        layout = lay_out(page(paper), TEMPLATES, brand)
        assert layout.is_whole and not layout.problems
        assert [part_of(sheet) for sheet in layout.document.pages][:2] == ["first", "further"]


@pytest.mark.long
def test_twelve_quarters_and_many_decisions_are_drawn() -> None:
    data = deepcopy(DATA)
    data["plan"]["quarters"] = 12
    data["plan"]["fiscal_year_starts"] = 1
    for n in range(6):
        data["services"].append(
            {
                "id": f"more-{n}",
                "like": "support-chat",
                "demand": {"at_once": 40 + 30 * n},
                "growth": {"per_quarter": 0.2},
            }
        )
    drawn = plan_page(findings(solved_plan(plan(data))), "letter")
    first, *_ = read(write_plan_pdf(drawn, Options(TEMPLATES)))
    shown = drawn.first[0].table
    assert shown is not None and shown.rows
    assert "GPUs by quarter" in first.text


@pytest.mark.long
def test_it_is_accessible_and_an_archive() -> None:
    jobs = [("PDFUA-1", pdf("a4"))]  # its archive is written as that of the page, of which test_standards holds both
    jobs += [("PDFA-3A", pdf("a4")), ("PDFUA-1", pdf("letter"))] if IN_LONG else []
    for report in validate(jobs):
        assert report.failed == []
        assert report.compliant and report.checks > FEWEST_CHECKS


def test_the_word_document_has_the_same_tables() -> None:
    document = docx.Document(io.BytesIO(word()))
    wanted = [section.table for section in page().sections if section.table is not None and section.table.rows]
    assert len(document.tables) == len(wanted)
    for drawn, table in zip(document.tables, wanted, strict=True):
        texts = [[cell.text for cell in row.cells] for row in drawn.rows]
        assert texts == [
            [column.head for column in table.columns],
            *([str(cell) for cell in row] for row in table.rows),
        ]
        heads = [row._tr.trPr is not None and row._tr.trPr.find(qn("w:tblHeader")) is not None for row in drawn.rows]
        assert heads == [True, *[False] * len(table.rows)]
    headings = [
        paragraph.text
        for paragraph in document.paragraphs
        if paragraph.style and paragraph.style.name.startswith("Heading")
    ]  # type: ignore[union-attr]
    assert headings == [*(section.title for section in page().sections), "Sources"]
    text = "\n".join(paragraph.text for paragraph in document.paragraphs)
    for line in (page().sentence, *(line for section in page().sections for line in section.lines)):
        assert str(line) in text


@pytest.mark.some(1)
@pytest.mark.parametrize(("paper", "inches"), [("a4", (8.27, 11.69)), ("letter", (8.5, 11.0))])
def test_the_word_document_has_its_paper_and_pictures(paper: str, inches: tuple[float, float]) -> None:
    document = docx.Document(io.BytesIO(word(paper)))
    section = document.sections[0]
    assert (section.page_width.inches, section.page_height.inches) == pytest.approx(inches, abs=0.01)  # type: ignore[union-attr]
    alternatives = [shape._inline.docPr.get("descr") for shape in document.inline_shapes]
    assert len(alternatives) == 2
    drawn = machines(example().answer)
    for quarter, p90, budget in zip(drawn.quarters, drawn.p90, drawn.budget, strict=True):
        assert f"{quarter} " in alternatives[0] and f"{p90:.0f} at p90" in alternatives[0]
        assert f"the budget pays for {budget:.0f}" in alternatives[0]
    assert "from the last plan" in alternatives[1].lower()
    for shape in document.inline_shapes:
        assert shape.width.mm >= 55
        assert shape.width <= section.page_width - section.left_margin - section.right_margin + 1  # type: ignore[operator]
    assert document.core_properties.title == page().title


def test_each_service_has_a_row() -> None:
    """With its owner, what sets its replicas, and its money; the rows sum to the plan."""
    (section,) = [section for section in page().behind if section.title.startswith("Services")]
    services, hosted = section.table, record_of(example())["hosted"]
    assert services is not None and len(hosted) > 1
    assert all(usd(math.fsum(row[name] for row in hosted)) in str(section.lines[0]) for name in ("usd", "p50_usd"))
    *rows, shared, plan_row = services.rows
    assert [row[0] for row in rows] == [service["id"] for service in DATA["services"]]
    for column in (6, 7):
        assert sum(whole(row[column]) for row in (*rows, shared)) == whole(plan_row[column])
    set_by = {
        row["set_by"]
        for row in record_of(example())["services"]
        if row["quantile"] == example().answer.plan.policy.plan_at and row["set_by"]
    }
    text = " ".join(str(row[5]) for row in rows)
    assert set_by and all(word in text for word in set_by)


def test_a_chance_is_said_as_recommend_says_it() -> None:
    """Over 95%, never 100%."""
    places = {"allowed": {"instances": ["aws/p5.48xlarge"]}}
    service = {"id": "a", "demand": {"at_once": 4}, "model": "8b", **places}
    planned = findings(solved_plan(plan({"plan": DATA["plan"] | {"quarters": 1}, "services": [service]})))
    (row, *_) = services_table(planned.answer, ()).rows
    chance = record_of(planned)["services"][0]["chance"]
    assert 0.95 < chance < 1 and str(row[4]).endswith(f"; {sure(chance)}") and "100%" not in str(row[4])


def test_owned_machines_keep_their_name_and_a_small_load_its_digits() -> None:
    """The row said the cloud's machine with as many GPUs, which another plan has from another cloud; and 0.0."""
    service = {"id": "a", "demand": {"requests": {"peak_per_second": 0.026}}, "model": "8b"}
    pool = {"id": "dc", "gpu": "h100", "count": 8, "cost_per_quarter": 45_000}
    places = {"allowed": {"gpus": ["h100"]}, "owned": [pool]}
    answer = solved_plan(plan({"plan": DATA["plan"] | {"quarters": 1}, "services": [service], "supply": places}))
    (row, *_) = services_table(answer, ()).rows
    assert str(row[4]).startswith("dc (owned H100 SXM), ") and row[3] == "a second: 0.026"
    assert str(row[5]) == "1, the fewest"


def test_printed_parts_add_up() -> None:
    """In whole ones of the plan's currency: 587,376 and 119,707 stood under 707,082."""
    dollars, euros = (plan({**DATA, "plan": DATA["plan"] | more}) for more in ({}, {"currency": "EUR", "fx_rate": 0.9}))
    assert in_whole(dollars, [587_375.7, 119_706.6]) == [587_376, 119_706]
    assert in_whole(dollars, [1.5, -1.5, 0.0], 1) == [2, -1, 0]
    parts = [amount * 0.9 for amount in in_whole(euros, [1.0, 1.0, 1.0])]
    assert parts == pytest.approx([1, 1, 1]) and in_whole(euros, [], 0) == []


def test_an_owner_has_the_sum_of_the_services_and_the_mail_what_the_page_has() -> None:
    """An owner of one service had a dollar more than that, and the mail a dollar less than the page."""
    answer = example().answer
    of_services, of_owners = services_table(answer, ()), owners_table(answer)
    owners = {str(row[0]): whole(row[3]) for row in of_owners.rows}
    for name, usd_of_owner in [*owners.items()][:-2]:
        ids = [service.id for service in answer.plan.services if (service.owner or answer.plan.head.owner) == name]
        assert usd_of_owner == sum(whole(row[6]) for row in of_services.rows if str(row[0]) in ids)
    tables = [section.table for section in page().first if section.table]
    (budget,) = (drawn for drawn in tables if str(drawn.columns[1].head) == "Budget")
    quarters = [row for row in budget.rows if str(row[0]) in map(str, answer.plan.quarters)]
    worst = min(whole(row[7]) for row in quarters)
    (told,) = (str(text) for label, text in page().brief.points if label == "Budget")
    assert worst < 0 and f"${-worst:,} " in told


@pytest.mark.parametrize("paper", ["a4", pytest.param("letter", marks=pytest.mark.long)])
def test_eight_services_have_five_pages_at_most(paper: str) -> None:
    data = deepcopy(DATA)
    for i, model in enumerate(("8b", "70b", "gpt-oss-120b", "8b")):
        data["services"].append({"id": f"more-{i}", "owner": f"team-{i}", "demand": {"at_once": 30}, "model": model})
    whole = findings_without_levers(solved_plan(plan(data)))  # those of the example take as many lines
    whole = replace(whole, cheaper=example().cheaper, closing=example().closing)
    drawn = lay_out(plan_page(whole, paper), TEMPLATES)
    assert drawn.is_whole and len(drawn.document.pages) <= 5


def test_what_the_budget_pays_for_is_less_than_is_needed_where_it_is_exceeded() -> None:
    drawn, over = machines(example().answer), example().answer.over
    assert over and len(over) < len(drawn.quarters)
    for quarter, p90, budget in zip(drawn.quarters, drawn.p90, drawn.budget, strict=True):
        assert (budget < p90) == (quarter in over)


def test_what_was_spent_stands_beside_what_the_last_plan_said() -> None:
    """By service, what differs most first."""
    planned = example()
    assert planned.last is not None
    spent = (
        {"quarter": "2027-Q1", "service": "agents", "planned": 100.0, "approved": 160.0, "measured": 90.0},
        {"quarter": "2027-Q1", "service": None, "planned": 100.0, "approved": 110.0, "measured": 130.0},
    )
    drawn = plan_page(replace(planned, last=replace(planned.last, variance=spent)))
    (section,) = [
        section
        for section in drawn.reasons
        if section.table and "Spent" in [column.head for column in section.table.columns]
    ]
    assert section.table is not None
    assert [[str(cell) for cell in row[2:]] for row in section.table.rows] == [
        ["$200", "$270", "$220", "$20"],  # all of it
        ["$100", "$110", "$130", "$30"],
        ["$100", "$160", "$90", "-$10"],
    ]


def test_levers_close_a_budget_together_or_it_is_named_what_stays_over() -> None:
    """The set of levers, worked out as a plan of its own, holds every budget; a budget of almost nothing none holds."""
    closing = example().closing
    assert closing is not None and not closing.over
    changed = example().answer.plan
    for lever in closing.levers:
        changed = lever.change.make(changed)
    together = solved_plan(replace(changed, questions={**changed.questions}), timed=False)
    assert not together.over
    # Of each kind the best that holds every budget by itself is named, not the first of them alone.
    best = {lever.change.kind: lever for lever in best_of_kinds(example().cheaper)}
    holds = [lever.change.name for lever in best.values() if not lever.over]
    assert record_of(example())["closing"]["by_itself"] == holds and len(holds) > 1
    moves = moves_usd(together, example().answer.plan) - moves_usd(example().answer, example().answer.plan)
    assert sum(example().answer.asked_usd) - sum(together.asked_usd) - moves == pytest.approx(closing.saves_usd)
    # What is to be signed now in another number with them is said, as that plan has it.

    def subject(decision: dict[str, Any]) -> tuple[Any, ...]:
        is_quota = decision["what"] == "raise quota"  # of which a type has one
        return (
            decision["what"],
            decision["instance"],
            decision["purchase"],
            None if is_quota else decision["needed_from"],
        )

    then = {
        subject(decision): decision["n_instances"]
        for decision in record_of(findings(solved_plan(replace(changed, questions={**changed.questions}))))["decisions"]
    }
    shown = {
        subject(line): (line["n_instances"], line["n_instances_then"])
        for line in record_of(example())["closing"]["sign_now"]
    }
    now = [decision for decision in record_of(example())["decisions"] if decision["kind"] == "now"]
    here = {subject(decision): decision["n_instances"] for decision in now}
    of_both = {key: (here.get(key, 0), then.get(key, 0)) for key in (*here, *(key for key in shown if key in then))}
    assert shown == {key: pair for key, pair in of_both.items() if pair[0] != pair[1]}
    assert shown


def test_levers_that_save_most_are_named_where_none_close_a_budget() -> None:
    """A budget of almost nothing: of all sets the one that saves most, without the class that adds nothing to it, and
    a lever alone where others with it save less. All that work were named, what they saved together or not."""
    data = deepcopy(DATA)
    data["services"], data["budget"] = data["services"][:1], {"2027-Q1": 1000}
    planned = findings(solved_plan(plan(data)))
    kinds = {lever.change.kind for lever in best_of_kinds(planned.cheaper)}
    assert kinds == {"policy", "class", "precision"}
    hopeless = planned.closing
    assert hopeless is not None and hopeless.over == ("2027-Q1",)
    assert [lever.change.kind for lever in hopeless.levers] == ["policy", "precision"]
    assert hopeless.saves_usd > max(lever.saves_usd for lever in hopeless.levers)

    trials = Trials(planned.answer, planned.unserved)
    policy, precision = hopeless.levers
    # The policy of a plan that is no other with it: the precision alone.
    nothing = replace(policy, change=replace(policy.change, name="nothing", make=lambda same: same), saves_usd=1.0)
    nothing = replace(nothing, saves_p50_usd=1.0)
    alone = closing_of(trials, (nothing, precision))
    assert alone is not None and alone.levers == (precision,) and alone.saves_usd == precision.saves_usd


def test_a_lever_that_is_dearer_to_approve_says_both_sums() -> None:
    """The mail had "saves -$14,734"."""
    lever = replace(example().cheaper[0], saves_usd=-14734.0, saves_p50_usd=107419.0)
    shown = plan_page(replace(example(), cheaper=(lever,), closing=None))
    (mail,) = [str(text) for label, text in shown.brief.points if label == "To pay less"]
    (section,) = [section for section in shown.first if section.table and str(section.table.columns[0].head) == "Lever"]
    texts = [mail, *(str(row[2]) for row in section.table.rows if str(row[0]) == lever.change.kind)]
    for text in texts:
        assert "107,419 at p50" in text and "costs $14,734 more" in text and "-$" not in text


def test_a_quota_that_levers_take_is_said() -> None:
    """And an order of other machines in their place: only decisions to sign now that are others with them were."""
    planned, day = example(), date(2027, 1, 1)
    assert planned.closing is not None
    quota = Decision("raise quota", "aws/g6e.xlarge", 9, None, day, day)
    order = Decision("order", "aws/p5.4xlarge", 3, "on-demand", day, day)
    closing = replace(planned.closing, decisions=(quota, order))
    taken = replace(planned, closing=closing)
    lines = record_of(taken)["closing"]["sign_now"]
    there = {
        decision["instance"]: (decision["n_instances"], decision["n_instances_then"])
        for decision in lines
        if not decision["n_instances"]
    }
    assert there["aws/g6e.xlarge"] == (0, 9) and there["aws/p5.4xlarge"] == (0, 3)
    line = str(plan_page(taken).first[0].lines[0])
    assert "raise quota to 9 x g6e.xlarge" in line and "order 3 x p5.4xlarge, on-demand" in line


@pytest.mark.long
def test_the_pictures_of_the_print_are_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever spacings are tried; they were drawn anew for each, which took seconds of a large plan."""
    drawn = []

    def counted(*arguments: Any) -> Any:
        drawn.append(arguments)
        return machines_chart(*arguments)

    monkeypatch.setattr(plan_page_writer, "machines_chart", counted)
    lay_out(hostile("calm"), TEMPLATES)
    assert len(drawn) == 1


@pytest.mark.long
def test_the_same_bytes_again(nothing_is_kept: None) -> None:
    options = Options(TEMPLATES)
    assert write_plan_docx(page(), options) == word()
    assert write_plan_pdf(page(), Options(TEMPLATES, archive=Archive(catalog_sha256="ab" * 32))) == pdf()


def hostile(evil: str) -> PlanPage:
    data = deepcopy(DATA)
    data["plan"] |= {"name": evil, "owner": evil, "approver": evil, "quarters": 3}
    data["budget"] = {}
    data["services"] = data["services"][:1]
    data["services"][0]["owner"] = evil
    data["supply"]["committed"][0]["id"] = data["supply"]["owned"][0]["id"] = evil
    return plan_page(findings(solved_plan(plan(data))))


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize("evil", [*filter(str.isprintable, EVIL), "W" * 200])
def test_text_is_only_text(evil: str) -> None:
    drawn, options = hostile(evil), Options(TEMPLATES)
    document = docx.Document(io.BytesIO(write_plan_docx(drawn, options)))
    assert document.paragraphs[0].text == evil
    assert any(evil in cell.text for table in document.tables for row in table.rows for cell in row.cells)
    assert (
        "instrText"
        not in zipfile.ZipFile(io.BytesIO(write_plan_docx(drawn, options))).read("word/document.xml").decode()
    )  # no field but the page's number, which is in the footer
    assert evil[:8] in read(write_plan_pdf(drawn, options))[0].text


def test_the_pictures_of_nothing_and_of_much() -> None:
    """A plan that needs no GPU, one of thousands, and a bridge that only falls are drawn within their size."""
    none = Machines(("2027-Q1",), (), (0.0,), (0.0,), (math.nan,))
    kinds = (("NVIDIA X", (41_000.0, 99_999.0)),)
    many = Machines(("2027-Q1", "2027-Q2"), kinds, (50_000.0, 120_000.0), (0.0, 1e5), (1e9, math.nan))
    for chart in (none, many):
        drawn = str(machines_chart(chart, 400, PLOT, FONT, "Inter"))
        assert all(0 <= float(y) <= 158 for y in re.findall(r' y[12]?="([-\d.]+)"', drawn))
        assert all(0 <= float(x) <= 400 for x in re.findall(r' x[12]?="([-\d.]+)"', drawn))
    falls = str(waterfall_chart(Waterfall(5e6, (("users", -2e5), ("price", -1e5)), 4.7e6), 400, FONT, "Inter"))
    assert all(0 <= float(x) <= 400 for x in re.findall(r' x[12]?="([-\d.]+)"', falls))
    assert "−$300,000" in falls and "to approve" in falls and "p50" not in falls


@pytest.mark.long
def test_the_command_writes_them(tmp_path: Path) -> None:
    run, short = CliRunner(), deepcopy(DATA)
    short["services"] = short["services"][:1]  # of one service all is quicker
    (tmp_path / "in.yaml").write_text(json.dumps(short, default=str))
    arguments = [
        "plan",
        str(tmp_path / "in.yaml"),
        "--out",
        str(tmp_path / "out"),
        "--name",
        "q1",
        "--paper",
        "letter",
        "--format",
        "pdf,docx",
        "--brand",
        str(TEMPLATES / "brand" / "brand.yaml"),
    ]
    made = run.invoke(main, arguments)
    assert made.exit_code == 0, made.output
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["q1.docx", "q1.pdf"]
    assert "No last plan was named" in read((tmp_path / "out" / "q1.pdf").read_bytes())[1].text
    for named in ("xls", "html", ","):
        refused = run.invoke(main, [*arguments[:2], "--out", str(tmp_path), "--format", named])
        assert refused.exit_code == 1
        assert f"format is '{named}'. " in refused.output


@pytest.mark.parametrize(
    ("writer", "error", "told"),
    [
        ("plan_page.write_plan_pdf", MissingLibraryError("Pango is missing."), "Pango is missing.\n"),
        ("plan_page.write_plan_pdf", PageError("A row is too wide."), "No PDF is written. A row is too wide.\n"),
        ("xlsx.write_xlsx", PageError("Supply!BV5 is used twice"), "No XLSX is written. Supply!BV5 is used twice\n"),
    ],
)
def test_what_else_was_asked_for_is_written(
    writer: str, error: Exception, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bytes:
        raise error

    monkeypatch.setattr(f"sheetgen.writers.{writer}", refuse)
    head = "plan: {start: 2028-Q1, quarters: 1, as_of: 2026-11-30}\n"
    (tmp_path / "plan.yaml").write_text(f"{head}services: [{{id: a, demand: {{at_once: 8}}, model: 8b}}]\n")
    arguments = ["plan", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "out"), "--format"]
    made = CliRunner().invoke(main, [*arguments, "pdf,xlsx" if "xlsx" in writer else "pdf,md"])
    assert made.exit_code == 1 and made.stderr == told
    left = "capacity-plan.pdf" if "xlsx" in writer else "capacity-plan.md"
    assert [file.name for file in (tmp_path / "out").iterdir()] == [left]


def test_the_mail_names_first_what_the_first_page_does() -> None:
    page = plan_page(example())
    shown = page.first[0].table
    assert shown is not None
    points = str(dict(page.brief.points)["First"]).removesuffix(".").split("; ")
    days = [f"{row[1]}, ask by {row[0]}" for row in shown.rows[:2]]  # not of another way to the same machines
    assert [words.partition(" (late")[0] for words in points] == days
    assert len({str(row[0]) for row in shown.rows[:3]}) > 1  # by their days they stand otherwise


def test_nothing_to_sign_now_is_a_whole_sentence(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    head = "plan: {start: 2028-Q1, quarters: 1, as_of: 2026-11-30}\n"
    file.write_text(f"{head}services: [{{id: a, demand: {{at_once: 8}}, model: 8b}}]\n")
    made = CliRunner().invoke(main, ["plan", str(file), "--out", str(tmp_path), "--format", "md"])
    assert made.exit_code == 0, made.output
    text = (tmp_path / "capacity-plan.md").read_text()
    assert re.search(r"^- .+ \*\*\$0\*\*: .+ \$\d", text, re.MULTILINE) and ": ." not in text


def test_words_break_where_a_table_would_leave_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are kept whole where every table fits the page so."""
    kept_whole: list[bool] = []

    def narrow(text: str, *others: Any) -> Layout:
        layout = laid_out(text, *others)
        kept_whole.append('style="min-width' in text)
        return replace(layout, problems=["<table> leaves the page"]) if kept_whole[-1] else layout

    monkeypatch.setattr(plan_page_writer, "laid_out", narrow)
    assert lay_out(page(), TEMPLATES).problems == []
    assert kept_whole[0] and not kept_whole[-1]


def test_names_stand_whole_where_a_line_has_the_width_for_them() -> None:
    """Each word of 15 characters was cut after the fourteenth, and a line could end in the middle of g7e.2xlarge."""
    assert str(parted("nothing of vertragspruefung, technik-rag", 20)) == "nothing of vertragspruefung, technik-rag"
    assert str(parted("vertragspruefung", 14)) == "vertragspruefu<wbr>ng"
    assert str(parted("on g7e.2xlarge", 14)) == 'on <span class="whole">g7e.2xlarge</span>'
    assert str(parted("a<b", 14)) == "a&lt;b"
