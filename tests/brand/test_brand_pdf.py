"""A brand on the page: still exactly one page, everything in its place, the logo said in words, only its colours."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import books
import pdfplumber
import pypdf
import pytest
from amounts import amount
from answers import page_for
from brands import LONG_FOOTER, LONG_NAME, TEMPLATES, named
from page_sample import page_of
from pages import alternatives_of, fonts_of, links_of, markdown_of, missing, outside, read, text_of

from sheetgen.answer.solve import solve
from sheetgen.brand import Brand
from sheetgen.question.sheet_question import ask
from sheetgen.writers.html import MARGIN_X, MARGIN_Y, PAPERS, render_html
from sheetgen.writers.layout import SPACINGS
from sheetgen.writers.pdf import _lay_out, assets_only, lay_out

BUNDLED = {"Sheetgen-Inter", "Sheetgen-Inter-Semi-Bold", "Sheetgen-Inter-Bold"}
PAGES = [
    (1, "letter", "tall"),
    (3, "a4", "example"),
    (1, "a4", "unbroken"),
    (5, "letter", "codes"),
    (2, "a4", "wide"),
    pytest.param(8, "a4", "wide", marks=pytest.mark.long),
]


@cache
def drawn(n_models: int, paper: str, brand: str) -> bytes:
    """The PDF in a brand; in the gate its first page, which alone has a letterhead."""
    page = replace(page_of(n_models, paper), pages=amount(1, 2))
    layout = lay_out(page, templates=TEMPLATES, brand=named(brand))
    assert layout.is_whole and layout.problems == []
    return layout.pdf()


def squeezed(pdf: bytes) -> str:
    return text_of(pdf).replace(" ", "")


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize(("n_models", "paper", "name"), PAGES)
def test_the_page_is_whole(n_models: int, paper: str, name: str) -> None:
    pdf, brand = drawn(n_models, paper, name), named(name)
    assert brand is not None
    assert outside(pdf, paper) == []
    assert missing(pdf, page_of(n_models, paper)) == []
    assert fonts_of(pdf) == BUNDLED
    assert brand.name.replace(" ", "") in squeezed(pdf) or name in ("name", "wide", "tall", "unbroken")  # may break
    assert brand.footer.replace(" ", "") in squeezed(pdf) or name == "unbroken"
    with pdfplumber.open(io.BytesIO(pdf)) as opened:
        pictures = opened.pages[0].images
        width, _ = PAPERS[paper]
        assert len(pictures) == (brand.logo is not None)
        for picture in pictures:
            assert picture["x1"] == pytest.approx(width - MARGIN_X, abs=0.5) and picture["top"] >= MARGIN_Y - 0.5
            assert 15 <= max(picture["width"] / 6, picture["height"]) <= 20.1
            assert brand.logo is not None
            shape = brand.logo.width / brand.logo.height
            assert picture["width"] / picture["height"] == pytest.approx(shape, rel=0.02)
        name_chars = [c for c in opened.pages[0].chars if c["top"] < MARGIN_Y + 30 and c["x0"] > width / 2]
        assert name_chars and min(c["size"] for c in name_chars) >= 6.99


@pytest.mark.long
@pytest.mark.parametrize("paper", ["letter"])
def test_the_usual_question_has_a_branded_page_with_all_its_parts(paper: str) -> None:
    asked = ask(books.catalog(), {"models": books.DEFAULT, "paper": paper, "as_of": books.AS_OF})
    page = page_for(solve(asked))
    layout = lay_out(page, templates=TEMPLATES, brand=named("example"))
    assert layout.is_whole
    pdf = layout.pdf()
    assert missing(pdf, page) == [] and outside(pdf, paper) == [] and fonts_of(pdf) == BUNDLED


def test_a_long_name_is_read_whole() -> None:
    words = text_of(drawn(2, "a4", "wide"))
    assert all(word in words for word in LONG_NAME.split()) and LONG_FOOTER in words


def test_the_colours_are_where_they_are_said_to_be_and_nowhere_else() -> None:
    plain, branded = (_colours(drawn(3, "a4", name)) for name in ("none", "example"))
    example = named("example")
    assert example is not None
    accent, heading = _rgb(example.colors.accent), _rgb(example.colors.heading)
    assert all(str(card.monthly) in branded[accent] for card in page_of(3).cards) and heading in branded
    assert "".join(str(page_of(3).finding).split()) in branded[heading]
    # What means something keeps its colour: the mark of a load that nothing holds.
    for meaning in ("#8f1d16",):
        assert sorted(branded[_rgb(meaning)]) == sorted(plain[_rgb(meaning)])
    assert set(branded) - set(plain) == {accent, heading}


def _rgb(color: str | None) -> tuple[float, ...]:
    assert color is not None
    return tuple(round(int(color[i : i + 2], 16) / 255, 2) for i in (1, 3, 5))


def _colours(pdf: bytes) -> dict[tuple[float, ...], str]:
    """The text in each colour, spaces left out."""
    pictures: dict[tuple[float, ...], str] = {}
    for char in read(pdf)[0].chars:
        color = tuple(round(float(part), 2) for part in char["non_stroking_color"])
        pictures[color] = pictures.get(color, "") + char["text"].strip()
    return pictures


def test_the_logo_is_said_in_words_and_the_author_is_the_company() -> None:
    pdf = drawn(3, "a4", "example")
    assert "Acme GmbH" in alternatives_of(pdf)
    metadata = pypdf.PdfReader(io.BytesIO(pdf)).metadata
    assert metadata is not None and metadata.author == "Acme GmbH"


@pytest.mark.long
@pytest.mark.some(1)
@pytest.mark.parametrize("words", ["{{ 7 * 7 }}{% raw %}", '"><img src=file:///etc/passwd>', "a & b &amp; c", "'); x"])
def test_words_of_a_brand_are_text(words: str) -> None:
    html = render_html(page_of(1), templates=TEMPLATES, brand=Brand(words, words))
    assert html.count("<img") == 0
    layout = _lay_out(page_of(1), TEMPLATES, SPACINGS[1], Brand(words, words))
    pdf = layout.pdf()
    assert layout.problems == []
    assert squeezed(pdf).count(words.replace(" ", "")) == 2
    assert set(links_of(pdf)) == set(links_of(drawn(1, "letter", "tall")))


def test_the_page_asks_for_its_logo_and_the_pdf_fetches_no_other() -> None:
    brand = named("example")
    assert brand is not None and brand.logo is not None
    assert 'src="asset:logo.png"' in render_html(page_of(1), templates=TEMPLATES, brand=brand)
    fetcher = assets_only(TEMPLATES, brand.logo.png)
    assert fetcher.fetch("asset:logo.png").read() == brand.logo.png
    for without in (assets_only(TEMPLATES), fetcher):
        with pytest.raises(ValueError, match="not an asset"):
            without.fetch("asset:../logo.png" if without is fetcher else "asset:logo.png")


@pytest.mark.long
def test_the_same_bytes_each_time(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from brands import *; from page_sample import page_of;"
        "from sheetgen.writers.formats import Options; from sheetgen.writers.pdf import write_pdf;"
        "Path(sys.argv[1]).write_bytes(write_pdf(page_of(3), Options(TEMPLATES, named('example'))))"
    )
    file = tmp_path / "page.pdf"
    here = Path(__file__).parent
    paths = os.pathsep.join(map(str, (here, here.parent / "writers", here.parents[1], *sys.path)))
    env = {**os.environ, "PYTHONHASHSEED": "31337", "TZ": "Asia/Tokyo", "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", program, str(file)], env=env, check=True)
    assert file.read_bytes() == drawn(3, "a4", "example")


def test_markdown_has_name_and_footer() -> None:
    text = markdown_of(page_of(1), Brand("*Acme* & Sons", "Confidential_."))
    assert text.startswith("\\*Acme\\* & Sons\n\n# ") and text.endswith("\n\nConfidential\\_.\n")
    assert markdown_of(page_of(1)) == markdown_of(replace(page_of(1)), None)
