"""Outputs of a solution: its record, JSON, page, workbook and words, for tests that look into the solution too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sheetgen.answer.answer_record import CellRecord, Record, as_json
from sheetgen.answer.levers import EveryLever, levers_of_sheet
from sheetgen.answer.recording import record_of
from sheetgen.answer.solution import Solution, headline_rows
from sheetgen.answer.ways_to_pay import with_europe
from sheetgen.api import recommend_document, sheet_record
from sheetgen.book import build_book
from sheetgen.book.decision_choices import Choices
from sheetgen.book.sheets import Book
from sheetgen.catalog import Catalog
from sheetgen.cli.answer_text import recommendation
from sheetgen.launch.recommended import with_launch_rows
from sheetgen.report.approval import SENTENCES
from sheetgen.report.build_page import build_page
from sheetgen.report.page import Page


def record_for(solved: Solution, levers: EveryLever | None = None) -> Record:
    """The record for a page; with the levers of the headline where none are given."""
    levers = levers_of_sheet(solved, headline_rows(solved)) if levers is None else levers
    return record_of(solved, levers)


def page_for(solved: Solution, levers: EveryLever | None = None) -> Page:
    return build_page(with_europe(record_for(solved, levers), solved), solved.question)


def printed_page(solved: Solution) -> Page:
    """The page with how its answers are started, as it is printed."""
    record = with_europe(record_for(solved), solved)
    return with_launch_rows(build_page(record, solved.question), record, solved.question, {}, Catalog())


def never_measured() -> str:
    """How the request begins the risk that the speed of a GPU was never measured."""
    risk = SENTENCES["never_measured"].fill(usd="", rent="", other=False, named=False, is_same_gpu=0)
    return str(risk).partition(";")[0]


def book_for(
    solved: Solution,
    levers: EveryLever = (),
    choices: Choices | None = None,
    baseline: Mapping[str, Any] | None = None,
    page: Page | None = None,
    shown_in: str | None = None,
) -> Book:
    record = record_for(solved, levers)
    return build_book(solved, record, page or build_page(record, solved.question), levers, choices, baseline, shown_in)


def document(solved: Solution, levers: EveryLever = ()) -> dict[str, Any]:
    """The JSON without fingerprints."""
    record: dict[str, Any] = as_json(record_of(solved, levers))
    return record


def recommend_json(solved: Solution) -> dict[str, Any]:
    return recommend_document(sheet_record(solved), solved.question)


def recommend_text(solved: Solution, details: bool = False, show_all: bool = False) -> str:
    return recommendation(solved.question, sheet_record(solved).cells[0], details, show_all)


def cell_of(solved: Solution, row: int = 0) -> CellRecord:
    """The record of one load, with every lever."""
    return record_for(solved, levers_of_sheet(solved)).cells[row]
