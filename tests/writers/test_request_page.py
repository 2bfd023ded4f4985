"""The request on paper: one page, few words and numbers, no word that is for engineers, its bars from zero to scale."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from page_sample import page_of
from pages import TEMPLATES, alternatives_of, outside, read

from sheetgen.brand import read_brand
from sheetgen.report.page import Page
from sheetgen.writers.layout import FONTS, width_em
from sheetgen.writers.pdf import lay_out
from sheetgen.writers.pictures import FIGURES, range_bars

MOST_WORDS, MOST_NUMBERS = 400, 100
FOR_ENGINEERS = re.compile(
    r"GiB|\bGB\b|\bBF16|\bFP8|NVFP4|\bTP\b|\bKV\b|vLLM|SGLang|†|latency|throughput", re.IGNORECASE
)
ASKED = {"ask": "llama-3.1-70b", "owner": "Ada Lovelace", "approver": "Grace Hopper", "valid_until": "2026-12-31"}
LOADS = {
    "people": {"users": "640"},
    "measure first": {"users": "200"},
    "crowded": {"users": "400", "requests_per_user_per_day": "40"},
    "at once": {},
    "a rate": {"requests_per_second": "4"},
    "euro": {"currency": "EUR", "fx_rate": "0.92"},
    "a commitment": {"purchase": "reserved-1yr"},
}


@pytest.mark.some(2)
@pytest.mark.parametrize("paper", ["a4", "letter"])
@pytest.mark.parametrize("load", LOADS)
def test_it_is_one_page_of_few_words_for_who_pays(load: str, paper: str) -> None:
    page = page_of(2, paper, **ASKED, **LOADS[load])
    pdf = lay_out(page, templates=TEMPLATES).pdf()
    request, sheet = read(pdf)[:2]
    assert request.text.startswith("For approval") and sheet.text.startswith("LLM serving sizing sheet")
    assert len(request.text.split()) <= MOST_WORDS
    assert len(re.findall(r"\d[\d.,]*", request.text)) <= MOST_NUMBERS
    assert FOR_ENGINEERS.findall(request.text) == []
    assert min(char["size"] for char in request.chars) >= 8.5 - 1e-3 and outside(pdf, paper) == []
    for sentence in (
        page.request.sentence,
        page.request.finding,
        page.request.sure_of,
        "Asked by Ada Lovelace",
        "Approved by Grace",
    ):
        assert str(sentence) in request.text
    told = [
        *page.request.serves,
        *page.request.risks,
        *page.request.warnings,
        page.request.why,
        *page.request.reasons,
        page.request.less_only,
        page.request.basis,
        f"Not in the price: {page.request.excluded}.",
    ]
    told += [part for option in page.request.options for part in (option.price, *option.told, option.rent)]
    for way in page.request.ways:  # who takes less on a condition stands with it above the table
        told += [] if way.is_elsewhere else [way.monthly, way.commits, way.pays_after, way.lost]
    told += [part for mover in page.request.movers for part in (mover.name, mover.span, mover.low, mover.high)]
    words = {word for sentence in told for word in str(sentence).split()}
    assert sorted(words.difference(re.split(r"\s+", request.text))) == []
    assert "31 December 2026" in request.text


def test_without_the_option_there_is_none() -> None:
    assert read(lay_out(page_of(1), templates=TEMPLATES).pdf())[0].text.startswith("LLM serving sizing sheet")


def bars_of(page: Page) -> list[tuple[float, float]]:
    """The ends of each bar, as the picture has it."""
    pictures = range_bars(page.request, 2.0, "#1b5a8a", "Inter")["bars"]
    bar = re.compile(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="6.00"')
    bars = [next(iter(bar.finditer(str(picture)))) for picture in pictures]
    return [(float(bar[1]), float(bar[1]) + float(bar[2])) for bar in bars]


def test_bars_are_to_scale_on_one_axis_from_zero() -> None:
    page = page_of(2, **ASKED)
    points = [x for bar in bars_of(page) for x in bar]
    usd = [end.value for mover in page.request.movers for end in (mover.low, mover.high)]
    a_dollar = (points[1] - points[0]) / (usd[1] - usd[0])
    zero = points[0] - a_dollar * usd[0]
    assert points == pytest.approx(
        [zero + a_dollar * amount for amount in usd], abs=0.02
    )  # the picture has two decimals
    heads = str(range_bars(page.request, 2.0, "#1b5a8a", "Inter")["heads"])
    (at_zero,) = re.findall(r'<text x="([\d.]+)"[^>]*>\$0<', heads)
    assert float(at_zero) == pytest.approx(zero, abs=4)  # its figure ends a little behind the line


@pytest.mark.parametrize("share", [0.80, 0.86, 0.92, 0.98])
def test_no_line_runs_through_an_amount(share: float) -> None:
    """An amount that ends a little below the margin would stand on its line, which is left out there."""
    request = page_of(2, **ASKED).request
    margin, fonts = request.margin.value, TEMPLATES / "fonts" / FONTS[400]
    mover = request.movers[0]._replace(high=replace(request.margin, value=share * margin))
    pictures = range_bars(replace(request, movers=(mover, *request.movers[1:])), 2.0, "#1b5a8a", "Inter")["bars"]
    n_lines = 0
    for bar in map(str, pictures):
        lines = [float(x) for x in re.findall(r'<line x1="([\d.]+)"', bar)]
        n_lines += len(lines)
        for x, anchor, amount in re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="(\w+)"[^>]*>([^<]+)<', bar):
            edge, wide = float(x), FIGURES * width_em(amount, fonts)
            left, right = (edge - wide, edge) if anchor == "end" else (edge, edge + wide)
            assert not [line for line in lines if left - 1 < line < right + 1], amount
    assert n_lines >= 2 * len(pictures)  # zero and the cost as sized, at least


def test_pictures_say_what_they_show_and_long_names_and_brands_stay_on_the_page() -> None:
    name = "A-derivative-of-a-model-with-40-letters"
    page = page_of(
        2, "letter", {"Llama 3.1 70B": name}, **ASKED, contingency_fraction="0.15", currency="KRW", fx_rate="1410"
    )
    pdf = lay_out(page, templates=TEMPLATES, brand=read_brand(TEMPLATES / "brand" / "brand.yaml")).pdf()
    request = read(pdf)[0]
    assert name in request.text and "Acme" in request.text and outside(pdf, "letter") == []
    mover = page.request.movers[0]
    assert f"{mover.name}, {mover.span}: {mover.low} to {mover.high} a month" in alternatives_of(pdf)
