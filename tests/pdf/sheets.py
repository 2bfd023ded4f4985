"""Real sheets as PDFs, each drawn once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from answers import printed_page

from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import Question, ask
from sheetgen.report.page import Page
from sheetgen.writers.formats import Archive, Options
from sheetgen.writers.pdf import write_pdf

TEMPLATES = Path(__file__).parent.parent.parent / "templates"
DEFAULT = "8b,70b,405b"
TWO = "8b,deepseek-v3"
FOUR = f"{DEFAULT},gemma-2-9b"
FIVE = "8b,gemma-2-9b,qwen3-30b-a3b,deepseek-v3,405b"
EIGHT = "8b,70b,405b,gemma-2-9b,gemma-2-27b,qwen3-30b-a3b,deepseek-v3,llama-2-7b"


def asked_of(models: str = DEFAULT, paper: str = "a4", approved: str = "") -> Question:
    """approved: the model of the request that stands before the sheet; none without."""
    request = {"ask": approved} if approved else {}
    return ask(Catalog(), {"models": models, "paper": paper, "as_of": "2026-11-20", **request})


@cache
def page_of(models: str = DEFAULT, paper: str = "a4", approved: str = "") -> Page:
    return printed_page(solve(asked_of(models, paper, approved)))


@cache
def pdf_of(models: str = DEFAULT, paper: str = "a4", approved: str = "", archive: Archive | None = None) -> bytes:
    return write_pdf(page_of(models, paper, approved), Options(TEMPLATES, archive=archive or Archive()))
