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

import pypdf
import pytest
from page_sample import page_of
from pages import TEMPLATES, alternatives_of, fonts_of, links_of, missing, outside, text_of

from sheetgen.errors import PageError
from sheetgen.writers.html import PAPERS
from sheetgen.writers.pdf import Layout, lay_out, write_pdf

BUNDLED = {"Sheetgen-Inter", "Sheetgen-Inter-Semi-Bold", "Sheetgen-Inter-Bold"}
LONG = {
    "Llama 3.1 8B": "Meta-Llama-3.1-8B-Instruct-FP8-dynamic-quantized-by-somebody",
    "Llama 3.1 405B": "Meta-Llama-3.1-405B-Instruct-FP8-dynamic-quantized-by-us-v2",
    "Qwen3.6-27B": "Qwen3.6 27B Instruct with a name that goes on and on",
}
PAGES = [(n, paper, long) for n in (3, 5) for paper in PAPERS for long in (False, True)]
PAGES += [(1, "a4", False), (2, "letter", False), (8, "a4", False), (8, "letter", False)]


@cache
def laid_out(n_models: int, paper: str, long: bool = False) -> Layout:
    return lay_out(page_of(n_models, paper, LONG if long else None), templates=TEMPLATES)


@cache
def drawn(n_models: int, paper: str, long: bool = False) -> bytes:
    return laid_out(n_models, paper, long).pdf()


@pytest.mark.parametrize(("n_models", "paper", "long"), PAGES)
def test_the_page_is_whole(n_models: int, paper: str, long: bool) -> None:
    pdf = drawn(n_models, paper, long)
    reader = pypdf.PdfReader(io.BytesIO(pdf))
    assert len(reader.pages) == 1
    assert tuple(float(x) for x in reader.pages[0].mediabox[2:]) == pytest.approx(PAPERS[paper], abs=0.1)
    assert outside(pdf, paper) == []
    assert missing(pdf, page_of(n_models, paper, LONG if long else None)) == []
    assert fonts_of(pdf) == BUNDLED


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("n_models", [3, 5])
def test_no_print_below_seven_points_and_the_page_is_full(n_models: int, paper: str) -> None:
    layout = laid_out(n_models, paper)
    assert min(layout.density.text, layout.density.small) >= 7
    assert not layout.problems
    assert 0 <= layout.left < 25


@pytest.mark.parametrize("n_models", [3, 5])
def test_the_answer_is_large(n_models: int) -> None:
    import pdfplumber

    page = page_of(n_models, "a4")
    with pdfplumber.open(io.BytesIO(drawn(n_models, "a4"))) as opened:
        large = "".join(c["text"] for c in opened.pages[0].chars if c["size"] >= 14.9).replace(" ", "")
    for card in page.cards:
        assert card.rent.replace(" ", "") in large
        assert card.monthly in large


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
        "Llama 3.1 70B" in text and "131.4 weights" in text and "570.6 GiB on 8× A100 80GB" in text
        for text in alternatives
    )
    assert any("320.0 KiB a token" in text for text in alternatives)


def test_states_have_a_mark_beside_their_colour() -> None:
    text = text_of(drawn(5, "a4"))
    assert "✓ fits" in text and "▲ tight" in text and "✗ over 32k" in text and "◆ 32" in text


def test_links_are_web_addresses() -> None:
    links = links_of(drawn(3, "a4"))
    assert links and all(re.match(r"https?://", link) for link in links)


def test_the_same_bytes_whatever_the_hash_seed_and_the_time_zone(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from page_sample import page_of; from sheetgen.writers.pdf import *;"
        f"Path(sys.argv[1]).write_bytes(write_pdf(page_of(3), templates=Path({str(TEMPLATES)!r})))"
    )
    files = []
    for seed, zone in (("1", "America/New_York"), ("31337", "Asia/Tokyo")):
        file = tmp_path / f"{seed}.pdf"
        paths = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "PYTHONPATH": paths}
        env.pop("SOURCE_DATE_EPOCH", None)
        subprocess.run([sys.executable, "-c", program, str(file)], env=env, check=True)
        files.append(file.read_bytes())
    assert files[0] == files[1] == drawn(3, "a4")


def test_a_page_that_is_too_full_says_by_how_much_and_what_to_do() -> None:
    page = page_of(5, "letter")
    block = page.matrix[0]
    full = dataclasses.replace(page, matrix=(dataclasses.replace(block, rows=block.rows * 5), *page.matrix[1:]))
    with pytest.raises(PageError) as error:
        write_pdf(full, templates=TEMPLATES)
    assert re.search(r"5 models x 28 loads at 7 pt \(\d+ pt too long\)\. Ask for fewer --models", str(error.value))
    assert "--paper a4" in str(error.value)


def test_a_paper_that_is_not_known() -> None:
    with pytest.raises(PageError, match="a4, letter"):
        write_pdf(page_of(1, "a3"), templates=TEMPLATES)
