"""Words of a catalog are text on the page: never markup, a link, a fetch, or a font of the system."""

from __future__ import annotations

import dataclasses
import importlib.abc
import logging
import re
import sys
from html.parser import HTMLParser
from typing import Any

import pytest
from page_sample import page_of
from pages import TEMPLATES, fonts_of, links_of, outside, text_of
from test_pdf_page import BUNDLED

from sheetgen.errors import MissingLibraryError, PageError
from sheetgen.report.page import Cell, Page, Source
from sheetgen.writers.formats import Options
from sheetgen.writers.html import render_html
from sheetgen.writers.layout import SPACINGS
from sheetgen.writers.pdf import _lay_out, assets_only, lay_out, write_pdf
from sheetgen.writers.weasyprint_boxes import overflows

EVIL = (
    "<script>alert(1)</script>",
    "</style><img src=file:///etc/passwd>",
    '"><a href="javascript:alert(1)">x</a>',
    "{{ 7 * 7 }}{% raw %}",
    "</title></svg><b>bold",
    "@import url(http://example.com/x.css);",
    "null\x00bell\x07escape\x1b[31m",
    "=cmd()|' /C calc'!A0",
)


def everywhere(value: object, evil: str) -> Any:
    """`value` with `evil` put before every text that a catalog could have written."""
    if isinstance(value, tuple):
        inside = (everywhere(item, evil) for item in value)
        return type(value)(*inside) if hasattr(value, "_fields") else tuple(inside)
    if isinstance(value, Cell):
        parts = tuple(everywhere(part, evil) for part in value.parts)
        return (
            dataclasses.replace(value, parts=parts)
            if parts
            else Cell(f"{evil} {value}")
            if isinstance(value.value, str)
            else value
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = {"status", "paper", "as_of", "url", "monthly", "kv", "unit", "why"}
        return dataclasses.replace(
            value,
            **{
                f.name: everywhere(getattr(value, f.name), evil)
                for f in dataclasses.fields(value)
                if f.name not in kept
            },
        )
    return f"{evil} {value}" if isinstance(value, str) else value


class Tags(HTMLParser):
    """Which elements and attributes a document has."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen |= {tag, *(f"{tag} {name}" for name, _ in attrs)}


def little(names: dict[str, str] | None = None) -> Page:
    """A page of two models and one workload, quick to lay out."""
    page = page_of(2, names=names)
    return dataclasses.replace(page, matrix=page.matrix[:1], fingerprints=page.fingerprints[:1])


def drawn(page: Page) -> bytes:
    """The page with little white: a search for the best would ask nothing more of its texts."""
    layout = _lay_out(page, TEMPLATES, SPACINGS[-1])
    assert layout.problems == []
    return layout.pdf()


@pytest.mark.parametrize("evil", EVIL)
def test_markup_is_text(evil: str) -> None:
    plain, attacked = Tags(), Tags()
    page = page_of(1, ask="llama-3.1-8b")
    plain.feed(render_html(page, templates=TEMPLATES))
    attacked.feed(render_html(everywhere(page, evil), templates=TEMPLATES))
    assert attacked.seen <= plain.seen


@pytest.mark.some(1)
@pytest.mark.parametrize("evil", [EVIL[0], EVIL[1], EVIL[6]])
def test_hostile_words_are_drawn_as_they_are(evil: str) -> None:
    page = dataclasses.replace(little(), question=evil, left_out=evil, sources_in_use=(Source(evil, evil),))
    pdf = drawn(page)
    printable = re.sub(r"[\x00-\x1f]", "?", evil)
    assert printable.replace(" ", "") in text_of(pdf).replace(" ", "")
    assert outside(pdf, "a4") == [] and fonts_of(pdf) == BUNDLED and links_of(pdf) == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "//x", "http://", "x"]
)
def test_only_web_addresses_become_links(url: str) -> None:
    assert "<a " not in render_html(
        dataclasses.replace(page_of(1), sources_in_use=(Source("text", url),)), templates=TEMPLATES
    )


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "http://example.com/", "asset:../../x", "asset:OFL.txt", "data:,x"]
)
def test_nothing_but_the_fonts_is_ever_fetched(url: str) -> None:
    fetcher = assets_only(TEMPLATES)
    with pytest.raises(ValueError, match="not an asset"):
        fetcher.fetch(url)
    assert len(fetcher.refused) == 1
    assert fetcher.fetch("asset:Inter-Regular.otf").read()[:4] == b"OTTO"


def test_a_page_that_asks_for_a_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def unescaped(*args: Any, **options: object) -> str:
        return render_html(*args, **options).replace("<body", '<body style="background: url(file:///etc/passwd)"')

    monkeypatch.setattr("sheetgen.writers.pdf.render_html", unescaped)
    with pytest.raises(PageError, match="file:///etc/passwd"):
        lay_out(little(), templates=TEMPLATES)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["W" * 60, "通义千问 🚀 Ünïcode ﬁne", "‮right to left", "a\tb\nc"])
def test_any_name_is_drawn_in_the_bundled_fonts(name: str) -> None:
    pdf = drawn(little({"Llama 3.1 8B": name}))
    assert fonts_of(pdf) <= BUNDLED
    assert outside(pdf, "a4") == []


@pytest.mark.long
def test_a_long_name_lacks_its_middle_and_a_text_without_end_is_named() -> None:
    names = {"Llama 3.1 8B": "first" + "x" * 3_000 + "last"}
    text = text_of(drawn(little(names)))
    assert re.search("first ?x[x ]*…[x ]*last", text)
    page = dataclasses.replace(little(), precision="x" * 50_000)
    with pytest.raises(PageError, match="precision, 50,000 characters: shorten it"):
        write_pdf(page, Options(TEMPLATES))


def test_a_number_wider_than_its_column_is_caught() -> None:
    page = little()
    wide = dataclasses.replace(page.replicas[0], kv_tokens="1" * 120)
    with pytest.raises(PageError, match=r"wider than its place|leaves the page"):
        write_pdf(dataclasses.replace(page, replicas=(wide, *page.replicas[1:])), Options(TEMPLATES))


FAULTS = {
    "<p style='white-space: nowrap'>" + "word " * 60: "wider than its place",
    "<div style='width: 900pt; height: 1pt'></div>": "leaves the page's margins",
    "<div style='margin-top: -300pt'>up</div>": "leaves the page's margins",
    "<table style='table-layout: fixed; width: 100%'><tr><td style='width: 20pt; white-space: nowrap'>"
    "a long name</td><td>x</td></tr></table>": "wider than its place",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_walk_finds_what_leaves_its_place(fault: str) -> None:
    import weasyprint

    logging.getLogger("weasyprint").setLevel(logging.CRITICAL)
    document = weasyprint.HTML(string=f"<style>@page {{ size: a4 }}</style><p>sound</p>{fault}").render()
    assert any(FAULTS[fault] in problem for problem in overflows(document.pages[0]))


def test_without_pango_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class NoPango(importlib.abc.MetaPathFinder):
        def find_spec(self, name: str, path: Any, target: Any = None) -> None:
            if name == "weasyprint":
                raise OSError("cannot load library 'libpango-1.0-0'")

    page = dataclasses.replace(page_of(1), title="A page that no other test has laid out")
    monkeypatch.delitem(sys.modules, "weasyprint", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoPango(), *sys.meta_path])
    with pytest.raises(MissingLibraryError) as error:
        write_pdf(page, Options(TEMPLATES))
    (line,) = error.value.problems
    assert "\n" not in line and "libpangoft2-1.0-0" in line and "brew install pango" in line
    assert capsys.readouterr() == ("", "")
