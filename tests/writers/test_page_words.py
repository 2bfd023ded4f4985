"""Words of the page that depend on what is asked: a budget, an answer of one request, sums beyond a billion."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from typing import Any

import pytest
from answers import page_for
from page_sample import page_of
from pages import TEMPLATES, markdown_of, read, text_of

from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.mail.message import Letter, bodies
from sheetgen.question.sheet_question import ask
from sheetgen.report import sentences, wording
from sheetgen.report.page import Page, words
from sheetgen.writers.html import render_html
from sheetgen.writers.layout import SPACINGS
from sheetgen.writers.pdf import lay_out

ONE = {"models": "8b", "workloads": "rag", "tiers": "1", "headline": "rag:1", "as_of": "2026-11-20"}


@cache
def built(**more: object) -> Page:
    catalog = Catalog()
    return page_for(solve(ask(catalog, ONE | more)))


def test_a_budget_is_told_wherever_the_answer_is() -> None:
    page = built(currency="EUR", fx_rate="0.92", contingency_fraction="0.15")
    month, year = page.cards[0].approve
    told = (str(month), str(year), "with 15% contingency", "0.92 EUR")
    assert re.fullmatch(r"€[\d,]+", told[0])
    for text in (markdown_of(page), *bodies(Letter(page, "x"), TEMPLATES)):
        assert [words for words in told if words not in text] == []


@pytest.mark.long
def test_a_verdict_has_the_width_of_its_missing_sum() -> None:
    page = page_of(3)
    dead = dataclasses.replace(page.cards[1], fits=False, rent="no count meets the target", monthly="–")
    pdf = lay_out(dataclasses.replace(page, cards=(page.cards[0], dead, page.cards[2])), templates=TEMPLATES).pdf()
    assert "✗ no count meets the target" in read(pdf)[0].text  # on one line


@pytest.mark.parametrize(
    ("count", "words"), [(1, "1 request fits"), (2, "2 requests fit"), (1024, "1,024 requests fit")]
)
def test_one_does_and_two_do(count: int, words: str) -> None:
    assert (
        sentences.longest_fit.fill(count, limit="128k", tokens=2, limit_tokens=2) == f"{words} even at the model's 128k"
    )


def test_an_answer_of_one_request() -> None:
    page = built(ttft_ms="off")  # a GPU that is too small for 128k
    assert re.fullmatch(r"1 request of [\d,]+ tokens fits", str(page.longest_fits[0]))
    texts = [str(f.here) for f in page.fingerprints]
    assert any("; 1 fills the pool at " in text for text in texts)


@pytest.mark.parametrize(
    ("usd", "words"), [(999_994_999, "$999.99M"), (999_995_000, "$1.00B"), (1_732_780_000, "$1.73B"), (None, "–")]
)
def test_sums_beyond_a_billion(usd: float | None, words: str) -> None:
    assert wording.short_money(usd) == words


@pytest.mark.long
def test_no_line_begins_with_a_dot() -> None:
    html = render_html(page_of(8, "letter"), templates=TEMPLATES, spacing=SPACINGS[-1])
    body = html.partition("<body>")[2]
    assert "\u00a0· " in body and page_of(8, "letter").precision.replace(" · ", "\u00a0· ") in body


MANY = words("{} × {}", "100,002", "g7e.2xlarge")


@pytest.mark.long
def test_dollars_never_break_within() -> None:
    """Many dollars of many instances in a narrow column: on a line of their own, and whole."""
    page = page_of(8, "letter")

    def many(cell: Any) -> Any:
        return dataclasses.replace(cell, rent=MANY, monthly="$245.51M") if cell.monthly else cell

    first, *more = page.matrix
    rows = tuple(dataclasses.replace(row, cells=tuple(map(many, row.cells))) for row in first.rows[:2])
    page = dataclasses.replace(page, matrix=(dataclasses.replace(first, rows=rows), *more))
    pdf = lay_out(page, templates=TEMPLATES).pdf()
    n_loads = sum(c.monthly == "$245.51M" for row in rows for c in row.cells)
    assert n_loads > 10 and text_of(pdf).count("$245.51M") == n_loads
