"""Every small question has a page: a random sample of models, workloads, loads and papers, each with some white."""

from __future__ import annotations

import io
import random
from functools import cache
from unittest.mock import patch

import pypdf
import pytest
from amounts import amount
from answers import page_for, printed_page
from pages import TEMPLATES, missing, outside, text_of

from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.question.sheet_question import ask
from sheetgen.report.page import Page
from sheetgen.writers.formats import Options
from sheetgen.writers.html import PAPERS
from sheetgen.writers.layout import SPACINGS
from sheetgen.writers.pdf import _lay_out, lay_out, write_pdf

MODELS, WORKLOADS, TIERS = ("8b", "70b", "405b"), ("chat", "rag", "long-doc"), ("1", "32", "128", "1024")
NARROW = (  # only short KV figures: the weights, or a bold headline, are the widest of their column
    ("8b", "chat", "1"),
    ("8b", "rag", "32"),
    ("8b,70b,405b", "chat,rag", "1,32"),
)


@cache
def catalog() -> Catalog:
    return Catalog()


@cache
def asked(models: str, workloads: str, tiers: str, paper: str) -> Page:
    given = {"models": models, "workloads": workloads, "tiers": tiers, "paper": paper, "as_of": "2026-11-20"}
    return page_for(solve(ask(catalog(), given)))


def sample(n: int, seed: int) -> list[tuple[str, str, str, str, int]]:
    """`n` questions, each with the index of a spacing; models, workloads and loads in their usual order."""
    chance = random.Random(seed)

    def some(names: tuple[str, ...]) -> str:
        chosen = chance.sample(names, chance.randint(1, len(names)))
        return ",".join(name for name in names if name in chosen)

    return [
        (some(MODELS), some(WORKLOADS), some(TIERS), chance.choice(tuple(PAPERS)), i % len(SPACINGS)) for i in range(n)
    ]


@pytest.mark.some(1)
@pytest.mark.parametrize(("models", "workloads", "tiers", "paper", "step"), sample(amount(5, 8), seed=20261120))
def test_nothing_is_wider_than_its_place(models: str, workloads: str, tiers: str, paper: str, step: int) -> None:
    layout = _lay_out(asked(models, workloads, tiers, paper), TEMPLATES, SPACINGS[step])
    assert layout.problems == []


@pytest.mark.some(1)
@pytest.mark.parametrize("paper", PAPERS)
def test_the_usual_sheet_is_laid_out_once(paper: str) -> None:
    page = printed_page(solve(ask(catalog(), {"models": ",".join(MODELS), "paper": paper})))
    with patch("sheetgen.writers.pdf._lay_out", wraps=_lay_out) as layouts:
        lay_out(page, templates=TEMPLATES)
    assert layouts.call_count == 1


@pytest.mark.some(1)
@pytest.mark.parametrize(("models", "workloads", "tiers"), NARROW)
def test_short_figures_have_room_for_the_weights(models: str, workloads: str, tiers: str) -> None:
    page = asked(models, workloads, tiers, "a4")
    assert _lay_out(page, TEMPLATES, SPACINGS[-1]).problems == []


@pytest.mark.some(1)
@pytest.mark.parametrize(("models", "paper"), [("8b", "a4"), ("8b,70b,405b", "letter")])
def test_the_smallest_question_has_its_page(models: str, paper: str) -> None:
    page = asked(models, "rag", "32", paper)
    pdf = write_pdf(page, Options(TEMPLATES))
    assert len(pypdf.PdfReader(io.BytesIO(pdf)).pages) <= 3
    assert outside(pdf, paper) == [] and missing(pdf, page) == []
    assert "RAG (16k tokens), 32 requests at once" in text_of(pdf)
