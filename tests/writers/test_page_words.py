"""Words of the page that depend on what is asked: a budget, an answer of one request, sums beyond a billion."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from typing import Any

import pytest
from page_sample import page_of
from pages import TEMPLATES, markdown_of, outside, read, text_of, web_of

from sheetgen.catalog import Catalog
from sheetgen.mail.message import Letter, bodies
from sheetgen.recommend import solve
from sheetgen.scenario.question import ask
from sheetgen.sheet import wording
from sheetgen.sheet.build_page import build_page
from sheetgen.sheet.page import Page, words
from sheetgen.writers import pictures as curves
from sheetgen.writers.html import render_html
from sheetgen.writers.layout import DENSITIES
from sheetgen.writers.pdf import lay_out

BUDGET = words("{} a month, {} a year, {}", "EUR 40,554", "EUR 486,643", "with 10% contingency (1 USD = 0.92 EUR)")
ONE = {"models": "8b", "workloads": "rag", "tiers": "1", "headline": "rag:1", "as_of": "2026-11-20"}


@cache
def built(**more: Any) -> Page:
    catalog = Catalog()
    return build_page(solve(ask(catalog, ONE | more)))


def with_budgets(page: Page) -> Page:
    return dataclasses.replace(page, cards=tuple(dataclasses.replace(c, budget=BUDGET) for c in page.cards))


def test_a_budget_is_told_wherever_the_answer_is() -> None:
    page = built(currency="EUR", fx_rate="0.92", contingency_fraction="0.15")
    told = str(page.cards[0].budget)
    assert re.fullmatch(r"EUR [\d,]+ a month, EUR [\d,]+ a year, with 15% contingency \(1 USD = 0\.92 EUR\)", told)
    assert told in web_of(page) and told in markdown_of(page)
    assert all(told in body for body in bodies(Letter(page, "x"), TEMPLATES))
    assert "EUR" not in str(page.cards[0].unit_money)  # said once


@pytest.mark.parametrize("density", DENSITIES, ids=lambda d: d.name)
def test_a_budget_is_on_a_page_however_full_it_is(density: Any) -> None:
    first, _, _ = render_html(with_budgets(page_of(2)), templates=TEMPLATES, density=density).partition("</main>")
    if density.compact:  # the month beside each answer, and what it rests on in the head
        assert first.count("; EUR 40,554 a month") == 2
        assert first.count("budget with 10% contingency (1 USD = 0.92 EUR)") == 1
    else:
        assert first.count(str(BUDGET)) == 2
    assert "EUR" not in render_html(page_of(2), templates=TEMPLATES, density=density)


@pytest.mark.parametrize(("n_models", "paper"), [(3, "a4"), (8, "letter")])
def test_budgets_leave_the_page_whole(n_models: int, paper: str) -> None:
    layout = lay_out(with_budgets(page_of(n_models, paper)), templates=TEMPLATES)
    pdf = layout.pdf()
    assert layout.fits and outside(pdf, paper) == []
    assert read(pdf)[0].text.count("EUR 40,554 a month") == n_models


def test_a_verdict_has_the_width_of_its_missing_sum() -> None:
    page = page_of(3)
    dead = dataclasses.replace(page.cards[1], fits=False, rent="no count meets the target", monthly="–")
    pdf = lay_out(dataclasses.replace(page, cards=(page.cards[0], dead, page.cards[2])), templates=TEMPLATES).pdf()
    lines: dict[int, str] = {}
    for c in read(pdf)[0].chars:
        if c["size"] >= 14.9:
            lines[round(c["bottom"])] = lines.get(round(c["bottom"]), "") + c["text"]
    assert any("no count meets the target" in line for line in lines.values())  # on one line


@pytest.mark.parametrize(
    ("count", "words"), [(1, "1 request fits"), (2, "2 requests fit"), (1024, "1,024 requests fit")]
)
def test_one_does_and_two_do(count: int, words: str) -> None:
    assert wording.plural_does(count, "request", "fit") == words


def test_an_answer_of_one_request() -> None:
    page = built(ttft_ms="off")  # a GPU that is too small for 128k
    assert str(page.breaks[0].longest_fit).startswith("1 request fits up to ")
    said = [str(f.here) for f in page.fingerprints]
    assert any(": 1 request fills the pool at " in text for text in said)


@pytest.mark.parametrize(
    ("usd", "words"), [(999_994_999, "$999.99M"), (999_995_000, "$1.00B"), (1_732_780_000, "$1.73B"), (None, "–")]
)
def test_sums_beyond_a_billion(usd: float | None, words: str) -> None:
    assert wording.short_money(usd) == words


def test_an_axis_beyond_a_million() -> None:
    axes = curves.Axes((1024, 131_072), (1.0, 10.0**7), ())
    drawn = str(curves.scale(axes, width=30, height=90, family="x"))
    assert ">1M<" in drawn and ">100k<" in drawn and "000k" not in drawn


def test_no_line_begins_with_a_dot() -> None:
    html = render_html(page_of(8, "letter"), templates=TEMPLATES, density=DENSITIES[-2])
    body = html.partition("<body>")[2]
    assert "\u00a0· " in body and page_of(8, "letter").precision_line.replace(" · ", "\u00a0· ") in body


MANY = words("{} × {}", "100,002", "g7e.2xlarge")


def test_dollars_never_break_within() -> None:
    """Many dollars of many instances in a narrow column: on a line of their own, and whole."""
    page = page_of(8, "letter")

    def many(cell: Any) -> Any:
        return dataclasses.replace(cell, rent=MANY, monthly="$245.51M") if cell.monthly else cell

    first, *more = page.matrix
    rows = tuple(dataclasses.replace(row, cells=tuple(map(many, row.cells))) for row in first.rows[:2])
    page = dataclasses.replace(page, matrix=(dataclasses.replace(first, rows=rows), *more))
    pdf = lay_out(page, templates=TEMPLATES).pdf()
    lines: dict[int, str] = {}
    for c in read(pdf)[0].chars:
        lines[round(c["bottom"])] = lines.get(round(c["bottom"]), "") + c["text"]
    n_loads = sum(c.monthly == "$245.51M" for row in rows for c in row.cells)
    assert n_loads > 10 and sum(line.count("$245.51M") for line in lines.values()) == n_loads


def test_a_brief_page_has_the_cache_in_rows_of_its_own() -> None:
    """All loads have their KV cache beside them, or none has: a part of them would be a riddle."""
    page = page_of(8, "letter")
    (density,) = [d for d in DENSITIES if d.name == "brief"]
    cells = [cell for block in page.matrix for row in block.rows for cell in row.cells]
    assert any(not cell.monthly for cell in cells) and any(cell.monthly for cell in cells)
    html = render_html(page, templates=TEMPLATES, density=density)
    assert html.count('class="kv-apart"') == len(page.matrix) and 'class="kv"' not in html
    for block in page.matrix:
        first = "".join(f'<td class="first">{cell.kv}</td>' for cell in block.rows[0].cells)
        assert f"KV of {block.rows[0].tier}</th>{first}" in html
    html = render_html(page, templates=TEMPLATES, density=next(d for d in DENSITIES if d.name == "two tight"))
    assert "kv-apart" not in html.partition("</style>")[2] and html.count('class="kv"') == len(cells)


@pytest.mark.parametrize("purchase", ["on-demand", "reserved-3yr"])
def test_the_page_tells_what_the_other_ways_to_pay_cost(purchase: str) -> None:
    """Each model's month in every purchase class, as `recommend` has it, and the one that is answered in bold."""
    page = built(models="8b,70b", purchase=purchase, tiers="32", headline="rag:32")
    paid = dict(zip(page.price_classes, page.cards[1].classes, strict=True))
    assert paid[page.purchase] == page.cards[1].monthly != paid["on demand" if page.purchase == "3 yr" else "3 yr"]
    pdf = lay_out(page, templates=TEMPLATES).pdf()
    part = read(pdf)[0].text.partition("How to pay for it")[2].partition("Instances on")[0]
    wanted = [str(text) for card in page.cards for text in (*card.classes, card.owned) if text]
    assert len(wanted) > 4 and [text for text in wanted if text not in part] == []
    bold = "".join(c["text"] for c in read(pdf)[0].chars if "Semi-Bold" in c["fontname"])
    assert str(paid[page.purchase]) in bold
    own = str(page.cards[1].break_even).removeprefix("cheaper than renting on demand ")
    assert own.startswith("above ") and own in markdown_of(page)
    for text in (web_of(page), part):
        assert page.cards[1].owning in text and [w for w in wanted if w not in text] == []


def test_an_answer_without_hardware_has_nothing_to_pay() -> None:
    page = built(models="405b", gpus="a10g")
    assert page.paid == () and "How to pay" not in text_of(lay_out(page, templates=TEMPLATES).pdf())
    assert all("How to pay" not in text for text in (web_of(page), markdown_of(page)))


def test_a_second_choice_at_the_same_price() -> None:
    page = built(models="405b", tiers="32", headline="rag:32", survive="machine")
    assert "(no change)" not in str(page.cards[0].runner_up)
