"""A budget's currency: the whole page is in it, with US dollars beside what is to be approved."""

from __future__ import annotations

import functools
import re
from typing import Any

import pytest
from answers import page_for, record_for

from sheetgen.answer.solve import solve
from sheetgen.answer.ways_to_pay import with_europe
from sheetgen.catalog import Catalog
from sheetgen.mail.message import Letter, bodies
from sheetgen.question.sheet_question import ask
from sheetgen.report.build_page import page_in_dollars
from sheetgen.report.page import Page
from sheetgen.writers.formats import Options, templates_folder
from sheetgen.writers.html import render_html
from sheetgen.writers.markdown import write_brief
from sheetgen.writers.pdf import lay_out

ASKED = {"models": "8b,70b", "workloads": "rag", "tiers": "1,32", "as_of": "2026-11-20", "ask": "70b"}
EURO = {"currency": "EUR", "fx_rate": "0.86", "fx_date": "2026-11-01"}
AMOUNT = re.compile(r"\$\s?\d|\$ ?/|\$ an?\b")


@functools.cache
def pages(**more: Any) -> tuple[Page, Page]:
    """In the budget's currency, and as prices are."""
    solved = solve(ask(Catalog(), ASKED | more))
    return page_for(solved), page_in_dollars(with_europe(record_for(solved), solved), solved.question)


def test_every_amount_is_in_the_budgets_currency_with_dollars_beside_the_ask() -> None:
    page, dollars = pages(**EURO)
    assert page.cards[1].monthly.value == pytest.approx(dollars.cards[1].monthly.value * 0.86)
    asked, month = page.request.options[0], dollars.request.options[0].price
    assert str(asked.price).startswith("€") and f" 0.86 EUR: {month}." in str(page.request.basis)
    euros = f"€{dollars.cards[1].monthly.value * 0.86:,.0f}"
    beside = {f"{month}.", *(str(card.in_dollars) for card in page.cards)}
    first, *letter = render_html(page, templates=templates_folder()), *bodies(Letter(page, "x"), templates_folder())
    for text in (first, *letter, write_brief(page, Options()).decode()):
        told = re.sub(r"\\(.)", r"\1", text)
        for said in beside:
            told = told.replace(said, "")
        assert not AMOUNT.findall(told)
        assert euros in told
    assert any(" 0.86 EUR, as of 2026-11-01" in str(line) for line in page.confidence)
    months = [row.cells[m].monthly.value for m in (0, 1) for row in page.case.rows]
    assert months == pytest.approx([row.cells[m].monthly.value * 0.86 for m in (0, 1) for row in dollars.case.rows])


def test_a_page_in_dollars_stays_as_it_is() -> None:
    page, dollars = pages()
    assert page == dollars and page.sign == "$" and "1 US dollar" not in str(page.request.basis)


@pytest.mark.some(1)
@pytest.mark.parametrize(("code", "rate", "millions"), [("CHF", 0.8, False), ("KRW", 1410, True)])
def test_a_currency_without_a_sign_goes_by_its_code(code: str, rate: float, millions: bool) -> None:
    page, dollars = pages(currency=code, fx_rate=str(rate))
    amount = dollars.cards[1].monthly.value * rate
    assert page.cards[1].monthly == (f"{code} {amount / 1e6:,.2f}M" if millions else f"{code} {amount:,.0f}")
    assert lay_out(page, templates=templates_folder()).is_whole
