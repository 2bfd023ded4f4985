"""A budget's currency: the whole page is in it, with US dollars beside what is to be approved."""

from __future__ import annotations

import functools
import math
import re
from unittest.mock import patch

import pytest
from answers import page_for, record_for
from option_values import OptionValue

from sheetgen.answer.solve import solve
from sheetgen.answer.ways_to_pay import with_europe
from sheetgen.catalog import Catalog
from sheetgen.mail.message import Letter, bodies
from sheetgen.question.sheet_question import ask
from sheetgen.report import approval
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
def pages(**more: OptionValue) -> tuple[Page, Page]:
    """In the budget's currency, and as prices are."""
    solved = solve(ask(Catalog(), ASKED | more))
    with patch.multiple(approval, MOST_WORDS=math.inf, MOST_NUMBERS=math.inf):
        return page_for(solved), page_in_dollars(with_europe(record_for(solved), solved), solved.question)


def test_every_amount_is_in_the_budgets_currency_with_dollars_beside_the_ask() -> None:
    page, dollars = pages(**EURO)
    assert page.cards[1].monthly.value == pytest.approx(dollars.cards[1].monthly.value * 0.86)
    asked, month = page.request.options[0], dollars.request.options[0].price
    assert str(asked.price).startswith("€") and f" {month} at 0.86 EUR a dollar." in str(page.request.basis)
    euros = f"€{dollars.cards[1].monthly.value * 0.86:,.0f}"
    beside = {f"{month} at 0.86 EUR", *(str(card.in_dollars) for card in page.cards)}
    first, *letter = render_html(page, templates=templates_folder()), *bodies(Letter(page, "x"), templates_folder())
    for text in (first, *letter, write_brief(page, Options()).decode()):
        told = re.sub(r"\\(.)", r"\1", text)
        for amount in beside:
            told = told.replace(amount, "")
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


@pytest.mark.parametrize(("code", "rate"), [("EUR", 0.92), ("KRW", 1410)])
def test_a_difference_is_that_of_the_sums_as_they_are_printed(code: str, rate: float) -> None:
    """Also with a contingency, which the boxes have, and where sums are in millions."""
    page, _ = pages(currency=code, fx_rate=str(rate), contingency_fraction="0.1")
    sized, margin, measured = (str(option.price) for option in page.request.options)
    risks = {str(risk).partition(" ")[0]: str(risk) for risk in page.request.risks}
    more = re.search(r"margin, (.*) more", risks["Too"])
    assert (
        more and measured and amount_in_text(margin) - amount_in_text(sized) == pytest.approx(amount_in_text(more[1]))
    )
    told_of = str(page.request.uncertainty).partition(",")[0]
    mover = next(mover for mover in page.request.movers if mover.name.split(" ")[0].lower() in told_of)
    low, high = (amount_in_text(str(end)) for end in (mover.low, mover.high))
    rent = amount_in_text(str(page.request.sized))
    told = [amount_in_text(text) for text in re.findall(rf"(?:{code} |€)[\d.,]+M?", str(page.request.uncertainty))]
    assert told == pytest.approx([*dict.fromkeys((round(rent - low, 6), round(high - rent, 6)))])


def amount_in_text(text: str) -> float:
    """The number in an amount: KRW 56.65M, €36,965."""
    [number] = re.findall(r"\d[\d,.]*", text)
    return float(number.replace(",", "")) * (1e6 if text.strip().endswith("M") else 1)
