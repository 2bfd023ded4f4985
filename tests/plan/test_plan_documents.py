"""The plan's PDF and Word document say what its JSON says, stay on their page, and take text as text alone."""

from __future__ import annotations

import io
import json
import re
import zipfile
from copy import deepcopy
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import docx
import pytest
from amounts import IN_LONG, amount
from click.testing import CliRunner
from docx.oxml.ns import qn
from pages import TEMPLATES, read
from plan_books import decided
from test_pdf_hostile import EVIL
from verapdf import FEWEST_CHECKS, validate

from sheetgen.brand import read_brand
from sheetgen.catalog import Catalog, read_document
from sheetgen.catalog.base import Document
from sheetgen.cli import main
from sheetgen.errors import MissingLibraryError
from sheetgen.plan.bridge import Last, spend_usd
from sheetgen.plan.charts import Machines, Waterfall
from sheetgen.plan.findings import Findings, findings
from sheetgen.plan.pages import PlanPage, plan_page
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.record import record_of
from sheetgen.plan.service_pages import MOST
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.stated_plan import Plan
from sheetgen.writers import plan_page as plan_page_writer
from sheetgen.writers.docx import write_plan_docx
from sheetgen.writers.formats import Archive, Options
from sheetgen.writers.layout import FONTS, PLAN_SMALL, TEXT
from sheetgen.writers.pdf import Layout
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
    return findings(solved_plan(plan(DATA)), Last(old, spend_usd(old), "last.json"))


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


def first_facts() -> list[str]:
    """What the first page must say, from the JSON alone."""
    found = record_of(example())
    rows = [
        " ".join(
            (
                one["quarter"],
                *(usd(one[name]) for name in ("budget_usd", "p10_usd", "p50_usd", "p90_usd", "contingency_p90_usd")),
            )
        )
        for one in found["money"]
    ]
    spent = [usd(sum(one[name] for one in found["money"])) for name in ("p50_usd", "p90_usd")]
    over = [
        f"{one['quarter']} is over at p90 by " + usd(one["p90_usd"] + one["contingency_p90_usd"] - one["budget_usd"])
        for one in found["money"]
        if one["verdict"] == "over at p90"
    ]
    assert over
    as_of = date.fromisoformat(DATA["plan"]["as_of"])
    late = [(as_of - date.fromisoformat(one["order_by"])).days for one in found["decisions"] if one["late"]]
    days = [one["order_by"] for one in found["decisions"]][:4]  # the others stand on the next page
    gpus = [f"{one['n_gpus']['p90']:,}" for one in found["totals"]["quarters"]]
    asked = sum(one["p90_usd"] + one["contingency_p90_usd"] for one in found["money"])
    return [
        *rows,
        *over,
        *days,
        *gpus,
        f"{spent[0]} at p50, the middle case",
        f"{spent[1]} where all demand is high",
        f"2028-Q2: {usd(asked)} ({spent[1]} for the machines at p90",
        f"below {usd(found['totals']['usd']['p90'])}",
        *(f"late by {days} days" for days in late),
    ]


@pytest.mark.parametrize("paper", ["a4", pytest.param("letter", marks=pytest.mark.long)])
def test_the_first_page_says_what_the_json_says(paper: str) -> None:
    first, *others = read(pdf(paper))
    for fact in first_facts():
        assert shows(first.text, fact), fact
    behind = " ".join(one.text for one in others)
    assert shows(f"{first.text} {behind}", "2027-05-18 renew 7 x")
    for (name, service), part in example().bridge.of_services.items():  # type: ignore[union-attr]
        assert shows(behind, f"{name} {service or 'what services share'} {usd(part)}"), (name, service)
    for one in record_of(example())["decisions"]:
        if one["break_even"]:
            assert shows(behind, f"{one['order_by']} {decided(one)}")
    assert first.text.count("late by") == sum(one.late for one in example().decisions)


@pytest.mark.parametrize("paper", ["a4", pytest.param("letter", marks=pytest.mark.long)])
def test_the_print_has_its_size_and_the_chart_its_room(paper: str) -> None:
    found = read(pdf(paper))
    assert min(char["size"] for one in found for char in one.chars) >= PLAN_SMALL - 0.01
    assert TEXT >= 8.5
    paper_box = {box["x1"] - box["x0"]: box for box in found[0].boxes if box["bottom"] - box["top"] < 0.6}
    assert max(paper_box) > 55 * MM
    drawn = str(machines_chart(page(paper).machines, 500, PLOT, FONT, "Inter"))
    rules = [float(y) for y in re.findall(r'<line x1="[\d.]+" y1="([\d.]+)" x2="500', drawn)]
    assert max(rules) - min(rules) >= 35 * MM


@pytest.mark.long
def test_only_the_first_page_is_of_the_first_part() -> None:
    brand = read_brand(TEMPLATES / "brand" / "brand.yaml")
    for paper in ("a4", "letter")[: amount(1, 2)]:
        found = lay_out(page(paper), TEMPLATES, brand)
        assert found.is_whole and not found.problems
        assert [part_of(one) for one in found.document.pages][:2] == ["first", "further"]


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
                "demand": {"in_flight": 40 + 30 * n},
                "growth": {"per_quarter": 0.2},
            }
        )
    found = plan_page(findings(solved_plan(plan(data))), "letter")
    first, *_ = read(write_plan_pdf(found, Options(TEMPLATES)))
    shown, more = found.first[1].rows, [one for one in found.second if one.title == "Further decisions"]
    assert len(shown) < len(example().decisions) + 12 and len(more) == 1
    assert "GPUs by quarter" in first.text


@pytest.mark.long
def test_it_is_accessible_and_an_archive() -> None:
    jobs = [("PDFUA-1", pdf("a4"))]  # its archive is written as that of the page, of which test_standards holds both
    jobs += [("PDFA-3A", pdf("a4")), ("PDFUA-1", pdf("letter"))] if IN_LONG else []
    for report in validate(jobs):
        assert report.failed == []
        assert report.compliant and report.checks > FEWEST_CHECKS


def test_the_word_document_has_the_same_tables() -> None:
    document, wanted = docx.Document(io.BytesIO(word())), [one for one in page().tables if one.rows]
    assert len(document.tables) == len(wanted)
    for drawn, one in zip(document.tables, wanted, strict=True):
        texts = [[cell.text for cell in row.cells] for row in drawn.rows]
        assert texts == [[column.head for column in one.columns], *([str(cell) for cell in row] for row in one.rows)]
        heads = [row._tr.trPr is not None and row._tr.trPr.find(qn("w:tblHeader")) is not None for row in drawn.rows]
        assert heads == [True, *[False] * len(one.rows)]
    headings = [one.text for one in document.paragraphs if one.style and one.style.name.startswith("Heading")]  # type: ignore[union-attr]
    assert headings[:4] == [*(one.title for one in page().first), "GPUs by quarter"]
    assert {one.title for one in page().tables} < set(headings)
    text = "\n".join(one.text for one in document.paragraphs)
    for said in (page().ask, page().verdict, page().next, page().since, *page().assumptions):
        assert str(said) in text


@pytest.mark.some(1)
@pytest.mark.parametrize(("paper", "inches"), [("a4", (8.27, 11.69)), ("letter", (8.5, 11.0))])
def test_the_word_document_has_its_paper_and_pictures(paper: str, inches: tuple[float, float]) -> None:
    document = docx.Document(io.BytesIO(word(paper)))
    section = document.sections[0]
    assert (section.page_width.inches, section.page_height.inches) == pytest.approx(inches, abs=0.01)  # type: ignore[union-attr]
    alternatives = [one._inline.docPr.get("descr") for one in document.inline_shapes]
    totals = record_of(example())["totals"]["quarters"]
    assert len(alternatives) == 2 + len(DATA["services"])
    for one, of_it in zip(DATA["services"], alternatives[2:], strict=True):
        assert of_it.startswith(f"Demand of {one['id']}, requests ")
    for one in totals:
        assert f"{one['quarter']} " in alternatives[0] and f"{one['n_gpus']['p90']} at p90" in alternatives[0]
    assert "from the last plan" in alternatives[1].lower()
    for shape in document.inline_shapes:
        assert shape.width.mm >= 55
        assert shape.width <= section.page_width - section.left_margin - section.right_margin + 1  # type: ignore[operator]
    assert document.core_properties.title == page().title


@pytest.mark.parametrize("paper", ["a4", pytest.param("letter", marks=pytest.mark.long)])
def test_each_service_has_a_page(paper: str) -> None:
    """Its demand, what sets its replicas, its hardware and why, and its money."""
    found = [one.text for one in read(pdf(paper))]
    for one in page().services:
        (at,) = [i for i, text in enumerate(found) if text.startswith(one.title)]
        assert shows(found[at], "Demand, replicas and what sets them")
        for line in one.lines:
            assert shows(found[at], str(line)), line
    heads = [[column.head for column in one.tables[0].columns] for one in page().services]
    words = {
        str(row[of.index("Set by")])
        for of, one in zip(heads, page().services, strict=True)
        for row in one.tables[0].rows
    }
    of_json = {
        one["set_by"] or "not served"
        for one in record_of(example())["services"]
        if one["quantile"] == example().answer.plan.policy.plan_at
    }
    assert {one.rpartition(" + ")[2] for one in words} == of_json and {"rate + survival", "memory"} <= words


def test_of_many_services_the_largest_have_a_page() -> None:
    data = deepcopy(DATA)
    data["plan"]["quarters"] = 2
    data["budget"], data["services"] = (
        {},
        [{"id": f"s{i}", "demand": {"in_flight": 20 * (i + 1)}, "model": "8b"} for i in range(MOST + 2)],
    )
    found = plan_page(findings(solved_plan(plan(data))))
    shown = {one.title.split(" ")[0] for one in found.services}
    table = next(one for one in found.further if one.title.startswith("All services"))
    *services, _, _ = table.rows  # what is shared, and the plan, stand below
    spent = {str(row[0]): row[-1].value for row in services}  # type: ignore[union-attr]
    assert len(shown) == MOST
    assert min(spent[name] for name in shown) >= max(usd for name, usd in spent.items() if name not in shown)
    assert len(services) == MOST + 2 and f"the {MOST} that cost most have a page above" in table.title


@pytest.mark.long
def test_the_pictures_of_the_print_are_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever spacings are tried; they were drawn anew for each, which took seconds of a large plan."""
    drawn = []

    def counted(*of: Any) -> Any:
        drawn.append(of)
        return machines_chart(*of)

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
@pytest.mark.parametrize("evil", [one for one in EVIL if one.isprintable()])
def test_text_is_only_text(evil: str) -> None:
    found, options = hostile(evil), Options(TEMPLATES)
    document = docx.Document(io.BytesIO(write_plan_docx(found, options)))
    assert document.paragraphs[0].text == evil
    assert any(evil in cell.text for row in document.tables[1].rows for cell in row.cells)
    assert (
        "instrText"
        not in zipfile.ZipFile(io.BytesIO(write_plan_docx(found, options))).read("word/document.xml").decode()
    )  # no field but the page's number, which is in the footer
    assert evil[:8] in read(write_plan_pdf(found, options))[0].text


def test_the_pictures_of_nothing_and_of_much() -> None:
    """A plan that needs no GPU, one of thousands, and a bridge that only falls are drawn within their size."""
    none = Machines(("2027-Q1",), (), (0.0,), (0.0,))
    many = Machines(("2027-Q1", "2027-Q2"), (("NVIDIA X", (41_000.0, 99_999.0)),), (50_000.0, 120_000.0), (0.0, 1e5))
    for one in (none, many):
        drawn = str(machines_chart(one, 400, PLOT, FONT, "Inter"))
        assert all(0 <= float(y) <= 158 for y in re.findall(r' y[12]?="([-\d.]+)"', drawn))
        assert all(0 <= float(x) <= 400 for x in re.findall(r' x[12]?="([-\d.]+)"', drawn))
    falls = str(waterfall_chart(Waterfall(5e6, (("users", -2e5), ("price", -1e5)), 4.7e6), 400, FONT, "Inter"))
    assert all(0 <= float(x) <= 400 for x in re.findall(r' x[12]?="([-\d.]+)"', falls))
    assert "−$300,000" in falls


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
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["q1.docx", "q1.pdf"]
    assert "No last plan was named" in read((tmp_path / "out" / "q1.pdf").read_bytes())[1].text
    for named in ("xls", "html", ","):
        refused = run.invoke(main, [*arguments[:2], "--out", str(tmp_path), "--format", named])
        assert refused.exit_code == 1
        assert f"format is '{named}'. Allowed: xlsx, pdf, docx, md, csv, json." in refused.output


@pytest.mark.long
def test_without_pango_what_else_was_asked_for_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise MissingLibraryError("Pango is missing.")

    monkeypatch.setattr(plan_page_writer, "write_plan_pdf", refuse)
    arguments = ["plan", str(TEMPLATES / "plan.yaml"), "--out", str(tmp_path), "--format"]
    made = CliRunner().invoke(main, [*arguments, "pdf,md"])
    assert made.exit_code == 1 and made.stderr == "Pango is missing.\n"
    assert [one.name for one in tmp_path.iterdir()] == ["capacity-plan.md"]
