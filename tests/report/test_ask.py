"""The decision that the page asks for: for which model, or all together, by whom, until when; as options and in a
scenario."""

from __future__ import annotations

import functools
import re
import zipfile
from pathlib import Path

import openpyxl
import pytest
from answers import book_for, page_for, record_for
from option_values import OptionValue
from solved_pages import CENTRAL

from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import load_engine
from sheetgen.cli.options import with_scenario
from sheetgen.cli.output import warn_of_letters
from sheetgen.errors import ScenarioError
from sheetgen.question.sheet_question import ask
from sheetgen.report.notes import confidence
from sheetgen.report.page import Page
from sheetgen.writers.xlsx import write_xlsx

ASKED = {"models": "8b,70b", "workloads": "rag", "tiers": "1,32", "as_of": "2026-11-20", **CENTRAL}


@functools.cache
def page(**more: OptionValue) -> Page:
    return page_for(solve(ask(Catalog(), ASKED | more)))


def test_the_head_is_as_it_was_typed() -> None:
    head = {"owner": "Platform", "approver": "CFO", "valid_until": "2026-12-31", "title": "Serving <RAG>"}
    drawn = page(ask="70b", **head)
    assert {name: getattr(drawn, name) for name in head} == head


@pytest.mark.long
def test_a_spare_machine_has_its_price_until_a_loss_is_survived() -> None:
    """It is what the answer costs where the loss is survived."""

    def spare(**more: OptionValue) -> list[str]:
        return [str(risk) for risk in page(models="405b", **more).risks if "spare machine" in str(risk)]

    (survivor,) = page(models="405b", survive="machine").cards
    assert [line.partition(": ")[2] for line in spare()] == [f"Llama 3.1 405B {survivor.monthly}."]
    assert spare(survive="machine") == []


def test_models_that_are_meant_together_add_up(tmp_path: Path) -> None:
    scenario = tmp_path / "both.yaml"
    scenario.write_text("together: true\npages: 1\n")
    drawn = page(**with_scenario(str(scenario), {"together": None, "pages": None}))
    assert drawn.total is not None and drawn.pages == 1
    months = [card.monthly.value for card in drawn.cards]
    assert drawn.total.monthly.value == pytest.approx(sum(months))
    assert drawn.request.options[0].price == drawn.total.monthly
    assert page().total is None
    none = page(together="yes", gpus="a10g", models="8b,405b")
    assert ": Llama 3.1 8B + Llama 3.1 405B for " in str(none.request.sentence)
    assert none.total is not None and not none.total.monthly  # no sum where one of them has no answer


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("ask", "405b", "ask is '405b'. It must be one of the sheet's models: llama-3.1-8b, llama-3.1-70b."),
        ("pages", "3", "pages is '3'"),
        ("valid_until", "soon", "valid_until is 'soon'"),
        ("valid_until", "2020-01-01", "valid_until is 2020-01-01, before the day of the sheet, 2026-"),
        ("title", "a\nb", "title is 'a\\nb'. It holds a line break or a control character. Write it on one line."),
        ("title", "x" * 201, "It must be a text of at most 200 characters."),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(option: str, value: str, words: str) -> None:
    with pytest.raises(ScenarioError) as error:
        page(**{option: value})
    (line,) = error.value.problems
    assert words in line


@pytest.mark.long
def test_confidence_is_of_the_version_and_of_the_prices_that_are_answered_with() -> None:
    """Not of all versions, nor of the day of the sheet. The counts are those of the bands and versions of vLLM's file:
    34 calibrated runs and 2 logs of 0.19, and 85 of all versions."""
    catalog = Catalog()
    for version, words in (
        ("0.19.0", "KV pool checked on 36 starts under the rules of vLLM 0.19.0"),
        ("0.29.0", "KV pool checked on 2 starts under the rules of vLLM 0.29.0"),
        ("0.33.0", "KV pool checked on 85 starts of other versions, none yet of vLLM 0.33.0"),
    ):
        solved = solve(ask(catalog, ASKED | {"engine_version": version}))
        record = record_for(solved)
        assert words in list(confidence(record, solved.question, record.headline_cells))
    solved = solve(ask(catalog, ASKED | {"tiers": "32"}))
    owned = {cell.owned.capex_as_of for cell in record_for(solved).headline_cells if cell.owned} - {None}
    [told] = [str(text) for text in page(tiers="32").confidence if str(text).startswith("Prices")]
    assert owned and all(re.search(rf"to own .* of {day}", told) for day in owned)


def test_logs_are_counted_as_the_page_of_engines_has_them() -> None:
    rows = [[cell.strip() for cell in line.split("|")] for line in Path("docs/engines.md").read_text().splitlines()]
    counted = {(row[1], row[2]): row[6] for row in rows if len(row) > 8 and row[2][:1].isdigit()}
    catalog = Catalog()
    by_engine = {
        (engine.name, version.from_version): str(version.pools_checked or "–")
        for engine in (load_engine(catalog, name) for name in ("vllm", "sglang", "tensorrt-llm"))
        for version in engine.versions
    }
    assert counted == by_engine


HEAD = {"owner": "Ann Lee", "approver": "Bo Chen", "valid_until": "2027-03-31", "title": "Serving RAG"}


@pytest.mark.long
def test_the_workbook_says_who_asks_whom_on_its_first_sheet_and_in_its_properties(tmp_path: Path) -> None:
    solved = solve(ask(Catalog(), ASKED | {"models": "8b", **HEAD}))
    book = book_for(solved)
    path = tmp_path / "book.xlsx"
    path.write_bytes(write_xlsx(book))
    read = openpyxl.load_workbook(path)
    assert read["Sizing sheet"]["A2"].value == "Owner: Ann Lee · For approval: Bo Chen · prices valid to 2027-03-31"
    assert (read.properties.title, read.properties.creator) == ("Serving RAG", "Ann Lee")
    assert "Prices valid to 2027-03-31" in read.properties.description
    with zipfile.ZipFile(path) as package:
        assert b"<Manager>Bo Chen</Manager>" in package.read("docProps/app.xml")


def test_a_total_and_one_model_are_not_both_to_be_approved() -> None:
    with pytest.raises(ScenarioError, match="ask names one model"):
        with_scenario(None, {"ask": "70b", "together": "yes"})


def test_letters_that_the_pdf_lacks_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    question = ask(Catalog(), ASKED | {"models": "8b", "owner": "Ann \N{ROCKET}\N{ROCKET} Lee", "title": "Łódź"})
    warn_of_letters(question, ("xlsx", "pdf"), None)
    notes = capsys.readouterr().err
    assert notes.count("owner is") == 1 and notes.count("\N{ROCKET}") == 3 and "title" not in notes
    warn_of_letters(question, ("xlsx", "md"), None)
    warn_of_letters(question, ("pdf",), None, quiet=True)
    assert not capsys.readouterr().err


def test_risks_name_the_answers_without_a_request_to_spare_and_memory_that_is_not_measured() -> None:
    risks = " ".join(map(str, page(models="8b,70b,405b").risks))
    assert ": Llama 3.1 8B serves 33, asked 32, " in risks
    assert "70B serves" not in risks and ": H100 NVL, B200 SXM." in risks
    assert any("without tax, storage, network, staff or a spare machine." in line for line in page().assumed)
    assert not any("spare machine" in line for line in page(survive="machine", models="8b").assumed)


def test_the_guide_has_the_numbers_of_the_model_to_approve() -> None:
    assert page(ask="8b").subject == "Llama 3.1 8B" and page().subject == "Llama 3.1 70B"


def test_sources_have_where_the_prices_of_every_class_shown_were_read() -> None:
    texts = [source.text for source in page(tiers="32").sources]
    assert any(re.fullmatch(r"[\w, ]*AWS[\w, ]* prices: sooddvs/gpu-pricing@\w+, 2026-06-15", text) for text in texts)
