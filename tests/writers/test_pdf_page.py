"""The PDF is one page, whole, in the bundled fonts, for few and many models on both papers."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pypdf
import pytest
from page_sample import page_of
from pages import TEMPLATES, alternatives_of, fonts_of, links_of, missing, outside, read, text_of

from sheetgen.catalog import Catalog
from sheetgen.errors import PageError
from sheetgen.recommend import solve
from sheetgen.scenario.question import ask
from sheetgen.sheet.build_page import build_page
from sheetgen.sheet.page import Page
from sheetgen.writers.formats import Options
from sheetgen.writers.html import PAPERS, render_html
from sheetgen.writers.layout import DENSITIES
from sheetgen.writers.pdf import Layout, _lay_out, lay_out, write_pdf

BUNDLED = {"Sheetgen-Inter", "Sheetgen-Inter-Semi-Bold", "Sheetgen-Inter-Bold"}
LONG = {
    "Llama 3.1 8B": "Meta-Llama-3.1-8B-Instruct-FP8-dynamic-quantized-by-somebody",
    "Llama 3.1 405B": "Meta-Llama-3.1-405B-Instruct-FP8-dynamic-quantized-by-us-v2",
    "Qwen3.6-27B": "Qwen3.6 27B Instruct with a name that goes on and on",
}
PAGES = [(n, paper, False) for n in (1, 3, 5, 8) for paper in PAPERS]
PAGES += [(1, "a4", True), (3, "letter", True), (5, "letter", True), (8, "letter", True)]
SHEET = ("Every load", "Where the memory goes", "Where it breaks", "Out of memory", "What one change buys")
DENSE = "8b,49b,70b,100b,405b,deepseek-v3,qwen2.5-72b,mistral-large-2411"


@cache
def laid_out(n_models: int, paper: str, long: bool = False) -> Layout:
    return lay_out(page_of(n_models, paper, LONG if long else None), templates=TEMPLATES)


@cache
def drawn(n_models: int, paper: str, long: bool = False) -> bytes:
    return laid_out(n_models, paper, long).pdf()


def assert_whole(pdf: bytes, page: Page, layout: Layout) -> None:
    """All gates of a finished page: its pages, paper, margins, figures and fonts."""
    reader = pypdf.PdfReader(io.BytesIO(pdf))
    assert len(reader.pages) == 1 + layout.density.appendix
    for one in reader.pages:
        assert tuple(float(x) for x in one.mediabox[2:]) == pytest.approx(PAPERS[page.paper], abs=0.1)
    assert outside(pdf, page.paper) == []
    assert missing(pdf, page, layout.density.brief) == []
    assert fonts_of(pdf) == BUNDLED
    first, *rest = (one.text for one in read(pdf))
    assert all(head in first for head in SHEET)
    assert all(one.startswith("Appendix") and not any(head in one for head in SHEET) for one in rest)
    assert ("page 2" in first) == bool(rest)


@pytest.mark.parametrize(("n_models", "paper", "long"), PAGES)
def test_the_page_is_whole(n_models: int, paper: str, long: bool) -> None:
    layout = laid_out(n_models, paper, long)
    assert min(layout.density.text, layout.density.small) >= 7
    assert not layout.problems and 0 <= layout.left < 25
    assert_whole(drawn(n_models, paper, long), page_of(n_models, paper, LONG if long else None), layout)


@pytest.mark.parametrize(("models", "paper", "n_pages"), [
    ("8b,49b,70b,100b,405b", "letter", 1), (DENSE, "a4", 2), ("gpt-oss-120b,70b,8b", "letter", 1),
])  # fmt: skip
def test_real_models(models: str, paper: str, n_pages: int) -> None:
    """The ladder of the sheet has its one page; eight dense models have an appendix behind it. A checkpoint in FP4
    has the weights in use beside those in BF16 and FP8."""
    catalog = Catalog()
    page = build_page(solve(ask(catalog, {"models": models, "paper": paper, "as_of": "2026-11-20"})))
    layout = lay_out(page, templates=TEMPLATES)
    assert layout.fits and not layout.density.brief
    assert_whole(layout.pdf(), page, layout)
    assert len(layout.document.pages) == n_pages


@pytest.mark.parametrize(("n_models", "paper"), [(1, "a4"), (5, "letter"), (8, "letter")])
def test_the_answer_is_large(n_models: int, paper: str) -> None:
    page = page_of(n_models, paper)
    chars = read(drawn(n_models, paper))[0].chars
    large = "".join(c["text"] for c in chars if c["size"] >= 14.9).replace(" ", "")
    for card in page.cards:
        assert card.rent.replace(" ", "") in large
        assert card.monthly in large and card.users in large


FAULTS = {  # what is put before the end of the sheet: what the gates then say
    "<div style='break-before: page'>more</div>": "needs 2 pages|needs 3 pages",
    "<p style='white-space: nowrap; width: 90pt'>" + "word " * 30 + "</p>": "wider than its place",
    "<div style='width: 900pt; height: 1pt'></div>": "leaves the page's margins",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_on_the_page_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*args: Any, **options: Any) -> str:
        return render_html(*args, **options).replace("</main>", f"{fault}</main>")

    monkeypatch.setattr("sheetgen.writers.pdf.render_html", faulty)
    for step in (5, -1):
        problems = _lay_out(page_of(1), TEMPLATES, DENSITIES[step], tall=True).problems
        assert any(re.search(FAULTS[fault], problem) for problem in problems)


def test_a_fault_in_a_picture_or_a_font_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the walk over the boxes cannot see: words inside a picture, and fonts."""

    def faulty(*args: Any, **options: Any) -> str:
        html = render_html(*args, **options).replace("</polygon>", "")
        shifted = html.replace('text-anchor="middle"', 'text-anchor="middle" dx="900"', 1)
        return shifted.replace("</footer>", "<i style='font-family: monospace'>other</i></footer>")

    monkeypatch.setattr("sheetgen.writers.pdf.render_html", faulty)
    pdf = _lay_out(page_of(1), TEMPLATES, DENSITIES[5]).pdf()
    assert fonts_of(pdf) != BUNDLED and outside(pdf, "a4") != []
    assert missing(pdf, page_of(2)) != []


def test_it_says_what_it_is() -> None:
    reader = pypdf.PdfReader(io.BytesIO(drawn(3, "a4")))
    assert reader.metadata is not None
    assert reader.metadata.title == "LLM serving sizing sheet: RAG, 16,384 tokens a request, 32 requests in flight"
    assert reader.metadata.author == "sheetgen 0.1.0"
    assert reader.metadata["/CreationDate"] == reader.metadata["/ModDate"] == "D:20261120"
    assert reader.trailer["/Root"]["/Lang"] == "en"


def test_pictures_have_words() -> None:
    alternatives = alternatives_of(drawn(3, "a4"))
    assert any(
        "Llama 3.1 70B, RAG 16k: 131.4 weights" in text and "570.6 GiB on 8× A100 80GB" in text for text in alternatives
    )
    breaks = page_of(3).breaks[1]
    assert f"Llama 3.1 70B: {breaks.next_request} at 16k; {breaks.longest_fit}" in alternatives
    assert len([text for text in alternatives if text.startswith("Llama")]) == 3 * (3 + 1)


def test_figures_say_where_they_are_from() -> None:
    """The legend has the four marks; the memory of an instance has its own."""
    text = text_of(drawn(2, "a4"))
    assert re.search(r"m ?measured p ?published d ?derived a ?assumed", text)
    assert re.search(r"GiB ?m \$", text) and re.search(r"GiB ?d \$", text)


def test_states_have_a_mark_beside_their_colour() -> None:
    text = text_of(drawn(5, "a4"))
    assert "✓ fits" in text and text.count("✓") > 20 and "▲ tight" in text and "✗ over 32k" in text and "◆ 32" in text


def test_links_are_web_addresses() -> None:
    links = links_of(drawn(3, "a4"))
    assert links and all(re.match(r"https?://", link) for link in links)


def test_the_same_bytes_whatever_the_hash_seed_and_the_time_zone(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from page_sample import page_of; from sheetgen.writers.pdf import *;"
        f"Path(sys.argv[1]).write_bytes(write_pdf(page_of(1), Options(Path({str(TEMPLATES)!r}))))"
    )
    file = tmp_path / "page.pdf"
    paths = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])
    env = {**os.environ, "PYTHONHASHSEED": "31337", "TZ": "Asia/Tokyo", "PYTHONPATH": paths}
    env.pop("SOURCE_DATE_EPOCH", None)
    subprocess.run([sys.executable, "-c", program, str(file)], env=env, check=True)
    assert file.read_bytes() == drawn(1, "a4")


def test_a_page_that_is_too_full_says_by_how_much_and_what_to_do() -> None:
    page = page_of(5, "letter")
    block = page.matrix[0]
    full = dataclasses.replace(page, matrix=(dataclasses.replace(block, rows=block.rows * 7), *page.matrix[1:]))
    with pytest.raises(PageError) as error:
        write_pdf(full, Options(TEMPLATES))
    assert re.search(r"5 models x 36 loads at 7 pt \(\d+ pt too long\)\. Ask for fewer --models", str(error.value))
    assert "--paper a4" in str(error.value)


def test_a_paper_that_is_not_known() -> None:
    with pytest.raises(PageError, match="a4, letter"):
        write_pdf(page_of(1, "a3"), Options(TEMPLATES))
