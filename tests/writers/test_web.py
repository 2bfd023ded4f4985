"""The page for a screen: it stands alone, all of it is there, and what a catalog says stays text."""

from __future__ import annotations

import dataclasses
import re
from html import unescape

import pytest
from page_sample import page_of
from pages import TEMPLATES
from test_pdf_hostile import EVIL, Tags, everywhere

from sheetgen.brand import Brand, read_brand
from sheetgen.sheet.one_page import Source
from sheetgen.writers.web import write_web

FETCHES = re.compile(
    r"""(?:src|srcset|poster|data|action)\s*=|@import|url\(|<(?:link|script|iframe|object|embed|base)\b"""
)


@pytest.mark.parametrize("n_models", [1, 3, 8])
def test_everything_is_there(n_models: int) -> None:
    page = page_of(n_models)
    html = write_web(page, templates=TEMPLATES)
    text = unescape(re.sub(r"<wbr>|</?(?:b|span|sup)\b[^>]*>", "", html))
    cards = [value for c in page.cards for value in (c.monthly, c.users, c.headroom, c.runner_up, c.unit_money)]
    cells = [value for b in page.matrix for r in b.rows for c in r.cells for value in (c.rent, c.monthly, c.kv)]
    more = [b.next_request for b in page.breaks] + [f.here for f in page.fingerprints] + list(page.assumptions)
    assert [t for t in (*cards, *cells, *more, page.left_out, page.catalog) if t not in text] == []
    assert html.count("<svg") == len(page.models) * len(page.matrix) + 2 * len([b for b in page.breaks if b.curve])


def test_it_stands_alone() -> None:
    """No script and nothing that a browser would fetch, and a policy that refuses both."""
    html = write_web(page_of(3), templates=TEMPLATES)
    assert FETCHES.findall(html) == [] and " on" not in {name[:3] for name in re.findall(r"\s\w+=", html)}
    assert (
        "default-src 'none'" in html and '<meta name="viewport" content="width=device-width, initial-scale=1">' in html
    )
    assert len(html.encode()) < 200_000 and html == write_web(page_of(3), templates=TEMPLATES)


@pytest.mark.parametrize("evil", EVIL)
def test_markup_is_text(evil: str) -> None:
    plain, attacked = Tags(), Tags()
    plain.feed(write_web(page_of(1), templates=TEMPLATES))
    html = write_web(everywhere(page_of(1), evil), templates=TEMPLATES)
    attacked.feed(html)
    assert attacked.seen <= plain.seen
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", html)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "//x", "x"])
def test_only_web_addresses_become_links(url: str) -> None:
    page = dataclasses.replace(page_of(1), sources=(Source("text", url), Source("good", "https://a.example/?a&b")))
    assert re.findall(r'href="([^"]*)"', write_web(page, templates=TEMPLATES)) == ["https://a.example/?a&amp;b"]


def test_a_load_that_nothing_holds() -> None:
    page = page_of(1)
    card = dataclasses.replace(
        page.cards[0], fits=False, rent="nothing fits", monthly="–", hardware="no candidate holds it"
    )
    block, bar = page.matrix[0], dataclasses.replace(page.bars[0][0], capacity_bytes=None, capacity="nothing fits")
    cells = (dataclasses.replace(block.rows[0].cells[0], status="none", word="nothing fits", monthly="–"),)
    rows = (dataclasses.replace(block.rows[0], cells=cells), *block.rows[1:])
    breaks = (dataclasses.replace(page.breaks[0], curve=()),)
    page = dataclasses.replace(
        page, cards=(card,), matrix=(dataclasses.replace(block, rows=rows),), bars=((bar,),), breaks=breaks
    )
    html = write_web(page, templates=TEMPLATES)
    assert "+ –" not in html  # no sum of what there is not
    assert 'class="card cannot"' in html and 'class="none"' in html and "no candidate holds it" in html


def test_the_brand_is_on_it() -> None:
    brand = read_brand(TEMPLATES / "brand" / "brand.yaml")
    html = write_web(page_of(1), templates=TEMPLATES, brand=brand)
    assert brand.name in html and html.count("data:image/png;base64,") == (brand.logo is not None)
    assert f"--heading: {brand.colors.heading}" in html
    assert "&lt;b&gt;Acme" in write_web(page_of(1), templates=TEMPLATES, brand=Brand("<b>Acme", "Mine & ours"))
