"""The page for a screen: it stands alone, all of it is there, and what a catalog says stays text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from page_sample import page_of
from pages import TEMPLATES, web_of
from test_pdf_hostile import EVIL, Tags, everywhere

from sheetgen.brand import Brand, read_brand
from sheetgen.report.page import NONE, Source

FETCHES = re.compile(
    r"""(?:src|srcset|poster|data|action)\s*=|@import|url\(|<(?:link|script|iframe|object|embed|base)\b"""
)


@pytest.mark.parametrize("n_models", [1, 3, 8])
def test_everything_is_there(n_models: int) -> None:
    page = page_of(n_models)
    html = web_of(page)
    text = unescape(re.sub(r"<wbr>|</?(?:b|span|sup)\b[^>]*>", "", html))
    cards = [value for c in page.cards for value in (c.monthly, c.load, c.headroom, c.runner_up, c.unit_money)]
    cells = [value for b in page.matrix for r in b.rows for c in r.cells for value in (c.rent, c.monthly, c.kv)]
    more = [b.next_request for b in page.breaks] + [f.here for f in page.fingerprints] + list(page.assumptions)
    wanted = map(str, (*cards, *cells, *more, page.left_out, page.catalog))
    assert [t for t in wanted if t not in text] == []
    assert html.count("<svg") == len(page.models) * len(page.matrix) + 2 * len([b for b in page.breaks if b.curve])


def test_it_stands_alone() -> None:
    """No script and nothing that a browser would fetch, and a policy that refuses both."""
    html = web_of(page_of(3))
    assert FETCHES.findall(html) == [] and " on" not in {name[:3] for name in re.findall(r"\s\w+=", html)}
    assert (
        "default-src 'none'" in html and '<meta name="viewport" content="width=device-width, initial-scale=1">' in html
    )
    assert len(html.encode()) < 200_000 and html == web_of(page_of(3))


@pytest.mark.parametrize("evil", EVIL)
def test_markup_is_text(evil: str) -> None:
    plain, attacked = Tags(), Tags()
    plain.feed(web_of(page_of(1)))
    html = web_of(everywhere(page_of(1), evil))
    attacked.feed(html)
    assert attacked.seen <= plain.seen
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", html)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "//x", "x"])
def test_only_web_addresses_become_links(url: str) -> None:
    page = dataclasses.replace(page_of(1), sources=(Source("text", url), Source("good", "https://a.example/?a&b")))
    assert re.findall(r'href="([^"]*)"', web_of(page)) == ["https://a.example/?a&amp;b"]


def test_a_load_that_nothing_holds() -> None:
    page = page_of(1)
    card = dataclasses.replace(
        page.cards[0], fits=False, rent="nothing fits", monthly=NONE, hardware="no candidate holds it"
    )
    block, bar = page.matrix[0], dataclasses.replace(page.bars[0][0], capacity_bytes=None, capacity="nothing fits")
    cells = (dataclasses.replace(block.rows[0].cells[0], status="none", word="nothing fits", monthly=NONE),)
    rows = (dataclasses.replace(block.rows[0], cells=cells), *block.rows[1:])
    breaks = (dataclasses.replace(page.breaks[0], curve=()),)
    page = dataclasses.replace(
        page, cards=(card,), matrix=(dataclasses.replace(block, rows=rows),), bars=((bar,),), breaks=breaks
    )
    html = web_of(page)
    assert "+ –" not in html  # no sum of what there is not
    assert 'class="card cannot"' in html and 'class="none"' in html and "no candidate holds it" in html


def test_the_brand_is_on_it() -> None:
    brand = read_brand(TEMPLATES / "brand" / "brand.yaml")
    html = web_of(page_of(1), brand)
    assert brand.name in html and html.count("data:image/png;base64,") == (brand.logo is not None)
    assert f"--heading: {brand.colors.heading}" in html
    assert "&lt;b&gt;Acme" in web_of(page_of(1), Brand("<b>Acme", "Mine & ours"))


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize("width", [390, 720])
def test_no_word_of_the_tables_of_a_narrow_page_is_broken(width: int) -> None:
    """Drawn as narrow as a phone by a program that knows no width of a screen: rows below rows, each word whole."""
    from weasyprint import CSS, HTML

    size = CSS(string=f"@page {{ size: {width}px 4000px !important; margin: 0 !important }}")
    page = page_of(3)
    changed = tuple(
        dataclasses.replace(f, where="during a long completion", change="max_num_batched_tokens · cudagraph_sizes")
        for f in page.fingerprints
    )
    html = web_of(dataclasses.replace(page, fingerprints=changed))
    drawn = HTML(string=html, media_type="screen").render(stylesheets=[size])
    assert drawn.pages[0].width == width
    tables = [table for one in drawn.pages for table in _stacks(one._page_box)]
    assert tables and [word for table in tables for word in _broken(table)] == []


def _stacks(box: Any) -> Iterator[Any]:
    if box.element is not None and box.element.get("class") == "stacks":
        yield box
    else:
        for child in getattr(box, "children", ()):
            yield from _stacks(child)


def _broken(box: Any) -> list[str]:
    """Words of cells that stand whole on no line."""
    if box.element_tag not in ("td", "th"):
        return [word for child in getattr(box, "children", ()) for word in _broken(child)]
    lines = list(_lines(box))
    return [w for w in re.findall(r"[A-Za-z0-9.]+", " ".join(box.element.itertext())) if not any(w in t for t in lines)]


def _lines(box: Any) -> Iterator[str]:
    yield getattr(box, "text", "")
    for child in getattr(box, "children", ()):
        yield from _lines(child)


def test_every_figure_has_its_name_where_tables_are_stacked() -> None:
    """A phone, and paper as narrow, show no heads of columns: each cell of the tables names its own."""
    html = web_of(page_of(3))
    tables = re.findall(r"<table.*?</table>", html, re.DOTALL)
    assert len(tables) == 9
    assert [cell for table in tables for cell in re.findall(r"<td\b[^>]*>", table) if 'data-head="' not in cell] == []
    assert "@media (min-width: 560px) { @page { size: a4;" in html and "@media (max-width: 559.98px)" in html
