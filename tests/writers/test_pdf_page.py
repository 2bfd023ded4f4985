"""The PDF's first page stands alone, in the bundled fonts and in print that is never small, for few and many models on
both papers; what is for engineers is behind it."""

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
from amounts import amount
from answers import printed_page
from page_sample import page_of
from pages import TEMPLATES, alternatives_of, fonts_of, links_of, missing, outside, read, text_of

from sheetgen import __version__
from sheetgen.answer.solve import solve
from sheetgen.catalog import Catalog
from sheetgen.errors import PageError
from sheetgen.question.sheet_question import ask
from sheetgen.report.page import Page
from sheetgen.writers.formats import Options
from sheetgen.writers.html import PAPERS, print_environment, render_html
from sheetgen.writers.layout import MOST_ON_A_PAGE, SMALL, SPACINGS
from sheetgen.writers.pdf import Layout, _lay_out, lay_out, write_pdf

BUNDLED = {"Sheetgen-Inter", "Sheetgen-Inter-Semi-Bold", "Sheetgen-Inter-Bold"}
LONG = {
    "Llama 3.1 8B": "Meta-Llama-3.1-8B-Instruct-FP8-dynamic-quantized-by-somebody",
    "Llama 3.1 405B": "Meta-Llama-3.1-405B-Instruct-FP8-dynamic-quantized-by-us-v2",
    "Qwen3.6-27B": "Qwen3.6 27B Instruct with a name that goes on and on",
}
PAGES = [(n, paper, False) for n in (1, 3, 5, 8) for paper in PAPERS]
PAGES += [(1, "a4", True), (3, "letter", True), (5, "letter", True), (8, "letter", True)]
IN_GATE = ((3, "a4", False),)  # which is drawn for other tests too; on Letter a real one, below


def heads_of(template: str) -> dict[str, str]:
    """The heads of a page's sections by their bookmarks, but for heads that are findings."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    return dict(re.findall(r'<h2 data-name="([^"]+)">([^<{&]{3,})', text))


_OF_SHEET, _OF_ENGINEERS = heads_of("one_page.html.j2"), heads_of("engineers.html.j2")
FIRST = (
    *(_OF_SHEET[name] for name in ("Cost by workload and load", "If it runs out of memory", "Assumed")),
    "KV cache",
)
ENGINEERS = tuple(_OF_ENGINEERS.values())
RAN_OUT = _OF_ENGINEERS["Out of memory: which part ran out"]
MOST_CHARACTERS = 6_000  # of the first page with five models, the ways to pay less of each among them
MOST_WORDS = 550  # outside the grid, with three
FEW_LINES = 600  # characters
DENSE = "8b,49b,70b,100b,405b,deepseek-v3,qwen2.5-72b,mistral-large-2411"


@cache
def laid_out(n_models: int, paper: str, long: bool = False) -> Layout:
    return lay_out(page_of(n_models, paper, LONG if long else None), templates=TEMPLATES)


@cache
def drawn(n_models: int, paper: str, long: bool = False) -> bytes:
    return laid_out(n_models, paper, long).pdf()


@cache
def without_engineers(n_models: int) -> bytes:
    return write_pdf(dataclasses.replace(page_of(n_models), pages=1), Options(TEMPLATES))


def assert_whole(pdf: bytes, page: Page, layout: Layout) -> None:
    """All gates of a finished page: its pages, paper, margins, figures and fonts."""
    reader = pypdf.PdfReader(io.BytesIO(pdf))
    assert len(reader.pages) == len(layout.document.pages)
    assert len(reader.pages) == 2 or layout.n_engineers == 2
    for leaf in reader.pages:
        assert tuple(float(x) for x in leaf.mediabox[2:]) == pytest.approx(PAPERS[page.paper], abs=0.1)
    assert outside(pdf, page.paper) == []
    assert missing(pdf, page) == []
    assert fonts_of(pdf) == BUNDLED
    assert min(char["size"] for leaf in read(pdf) for char in leaf.chars) >= SMALL - 0.01
    first, *rest = (leaf.text for leaf in read(pdf))
    behind = " ".join(rest)
    sheet = first if layout.is_whole else first + rest[0]
    assert all(head in sheet for head in FIRST) and all(head in behind for head in ENGINEERS)
    assert "overleaf" in sheet and len(first) < MOST_CHARACTERS
    assert len(rest[-1]) > FEW_LINES, "the last page is nearly empty"
    if layout.n_engineers > 1:  # a section begins the second page for engineers, none is cut in two
        assert len([text for text in rest if text.startswith(RAN_OUT)]) == 1


@pytest.mark.parametrize(
    ("n_models", "paper", "long"),
    [(page if page in IN_GATE else pytest.param(*page, marks=pytest.mark.long)) for page in PAGES],
)
def test_the_page_is_whole(n_models: int, paper: str, long: bool) -> None:
    layout = laid_out(n_models, paper, long)
    assert not layout.problems and layout.is_whole == (n_models <= MOST_ON_A_PAGE)
    assert_whole(drawn(n_models, paper, long), page_of(n_models, paper, LONG if long else None), layout)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("n_models", "paper"),
    [(3, "letter"), (5, "a4"), *(pytest.param(n, "letter", marks=pytest.mark.long) for n in (1, 2, 4, 5))],
)
def test_a_sheet_of_one_load_is_whole_and_keeps_its_machines(n_models: int, paper: str) -> None:
    """Rows of one load leave room for the machines to rent; the part for engineers has one page too."""
    layout = lay_out(page_of(n_models, paper, users="200"), templates=TEMPLATES)
    pages = [leaf.text for leaf in read(layout.pdf())]
    assert len(pages) == 2 and "Machines to rent" in pages[0] and layout.spacing in SPACINGS[:4]


@pytest.mark.long
@pytest.mark.parametrize(
    ("models", "paper"),
    [
        ("gpt-oss-120b,8b", "letter"),
        ("gpt-oss-120b,70b,8b", "letter"),
        ("8b,49b,70b,100b,405b", "a4"),
        ("8b,49b,70b,100b,405b", "letter"),
        (DENSE, "letter"),
    ],
)
def test_real_models(models: str, paper: str) -> None:
    """Up to five models have one page on both papers, eight two of them; those for engineers are one of five on A4."""
    catalog = Catalog()
    page = printed_page(solve(ask(catalog, {"models": models, "paper": paper, "as_of": "2026-12-01"})))
    layout = lay_out(page, templates=TEMPLATES)
    assert layout.is_whole == (len(page.models) <= MOST_ON_A_PAGE)
    assert layout.n_engineers == 1 or paper == "letter"
    assert_whole(layout.pdf(), page, layout)


@pytest.mark.parametrize("ems", [8, 12, 18, 24, 60])
def test_no_comment_follows_a_backslash(ems: float) -> None:
    """A comment on its own line ends the command above it."""
    command = "vllm serve a/b --tensor-parallel-size 2 --max-num-seqs 12  # on 3 machines"
    text = str(print_environment(TEMPLATES).filters["commands"]([command], ems))
    assert re.split(r"\s+", text.replace("\\\n", "")) == command.split() and not re.search(r"\\\n *#", text)


def test_names_with_figures_stay_on_one_line() -> None:
    unbroken = print_environment(TEMPLATES).filters["unbroken"]
    whole = '<span style="white-space:nowrap">{}</span>'
    long = "a-name-with-more-letters-than-a-phone-has-1"
    assert unbroken("AWS us-east-1, <on-demand>") == f"AWS {whole.format('us-east-1')}, &lt;on-demand&gt;"
    assert unbroken(f"{long} of 2026-06-18") == f"{long} of {whole.format('2026-06-18')}"


@pytest.mark.parametrize("n_models", [3, pytest.param(8, marks=pytest.mark.long)])
def test_one_page_is_enough(n_models: int) -> None:
    """`--pages 1` leaves out what is for engineers; the loads of many models stay."""
    page, leaves = page_of(n_models), read(without_engineers(n_models))
    assert len(leaves) == (1 if n_models == 3 else 2)
    assert not any(head in leaf.text for leaf in leaves for head in ENGINEERS if " " in head)
    assert all(block.workload in " ".join(leaf.text for leaf in leaves) for block in page.matrix)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("n_models", "paper"), [(1, "a4"), (3, "a4"), pytest.param(8, "letter", marks=pytest.mark.long)]
)
def test_the_answer_is_large(n_models: int, paper: str) -> None:
    page = page_of(n_models, paper)
    chars = read(drawn(n_models, paper))[0].chars
    large = "".join(c["text"] for c in chars if c["size"] >= SPACINGS[-1].large - 0.1).replace(" ", "")
    assert all(str(card.monthly) in large for card in page.cards)


FAULTS = {  # what is put before the end of the sheet: what the gates then say
    "<p style='white-space: nowrap; width: 90pt'>" + "word " * 30 + "</p>": "wider than its place",
    "<div style='width: 900pt; height: 1pt'></div>": "leaves the page's margins",
}


@pytest.mark.some(1)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_on_the_page_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*args: Any, **options: Any) -> str:
        return render_html(*args, **options).replace("</main>", f"{fault}</main>")

    monkeypatch.setattr("sheetgen.writers.pdf.render_html", faulty)
    for spacing in (SPACINGS[0], SPACINGS[-1]):
        problems = _lay_out(page_of(1), TEMPLATES, spacing).problems
        assert any(re.search(FAULTS[fault], problem) for problem in problems)


def test_a_first_part_of_two_pages_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(*args: Any, **options: Any) -> str:
        return render_html(*args, **options).replace("</main>", "<div style='break-before: page'>more</div></main>")

    monkeypatch.setattr("sheetgen.writers.pdf.render_html", longer)
    assert not _lay_out(page_of(1), TEMPLATES, SPACINGS[0]).is_whole


@pytest.mark.long
def test_a_fault_in_a_picture_or_a_font_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults that the walk over the boxes cannot see: words inside a picture, and fonts."""

    def faulty(*args: Any, **options: Any) -> str:
        html = render_html(*args, **options)
        shifted = html.replace("</svg>", '<text x="5" y="5" dx="900">word</text></svg>', 1)
        return shifted.replace("</footer>", "<i style='font-family: monospace'>other</i></footer>")

    monkeypatch.setattr("sheetgen.writers.pdf.render_html", faulty)
    pdf = _lay_out(page_of(1), TEMPLATES, SPACINGS[1]).pdf()
    assert fonts_of(pdf) != BUNDLED and outside(pdf, "a4") != []
    assert missing(pdf, page_of(2)) != []


def test_it_says_what_it_is() -> None:
    reader = pypdf.PdfReader(io.BytesIO(drawn(3, "a4")))
    assert reader.metadata is not None
    assert reader.metadata.title.endswith(": RAG (16k tokens), 32 requests at once")
    assert reader.metadata.author == f"sheetgen {__version__}"
    assert reader.metadata["/CreationDate"] == reader.metadata["/ModDate"] == "D:20261120"
    assert reader.trailer["/Root"]["/Lang"] == "en"


def test_pictures_have_words() -> None:
    """Each says what it draws: a GPU's parts, times with their target, the room of a replica."""
    alternatives, row = alternatives_of(drawn(3, "a4")), page_of(3).replicas[1]
    sizes = [str(size) for size in row.parts.sizes]
    gpu = next(text for text in alternatives if text.startswith("Llama 3.1 70B, one GPU: "))
    assert all(size in gpu for size in (*sizes, f"of {row.parts.total}"))
    assert row.token is not None and f"time per token: {row.token.text}, target 50" in alternatives
    assert f"Llama 3.1 70B: {row.requests} of {row.in_target} of {row.held}" in alternatives
    assert len(alternatives) == 3 * 5


def test_a_gpu_is_full_where_its_line_is() -> None:
    """Its contents, the pool as its log says it, and its limit are one sum."""
    for row in page_of(8).replicas:
        *parts, used, free = (part.value for part in row.parts.sizes)
        assert used + free == pytest.approx(row.pool.value)
        assert sum(row.parts.shares) == pytest.approx(row.parts.limit.value / row.parts.total.value)
        assert row.parts.limit.value <= row.parts.total.value and row.requests <= row.in_target <= row.held
        assert sum(parts) + used + free >= row.parts.limit.value * 0.999  # graphs may stand beside


def test_a_sheet_is_short_and_its_columns_do_not_depend_on_the_models() -> None:
    """Words outside the grid; the heads of the loads stand at the same places for one model and for three."""
    single, three = (read(pdf)[0] for pdf in (without_engineers(1), drawn(3, "a4")))
    words = three.page.extract_words()
    top = next(w["top"] for w in words if w["text"] == "Cost")
    bottom = next(w["top"] for w in words if w["text"] == "Machines")
    assert len([w for w in words if not top < w["top"] < bottom]) <= MOST_WORDS
    heads = [
        [round(c["x0"]) for c in page.chars if c["text"] == "G" and c["fontname"].endswith("Regular")]
        for page in (single, three)
    ]
    assert set(heads[0]) <= set(heads[1])


def test_states_have_a_word_beside_their_colour() -> None:
    text = text_of(without_engineers(4))
    assert "measure first" in text and "or $" in text


def test_links_are_web_addresses() -> None:
    links = links_of(drawn(3, "a4"))
    assert links and all(re.match(r"https?://", link) for link in links)


@pytest.mark.long
def test_the_same_bytes_whatever_the_hash_seed_and_the_time_zone(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from page_sample import page_of; from sheetgen.writers.pdf import *;"
        f"Path(sys.argv[1]).write_bytes(write_pdf(page_of(1), Options(Path({str(TEMPLATES)!r}))))"
    )
    file = tmp_path / "page.pdf"
    paths = os.pathsep.join(filter(None, sys.path))  # those of pytest, for the sample's own imports
    env = {**os.environ, "PYTHONHASHSEED": "31337", "TZ": "Asia/Tokyo", "PYTHONPATH": paths}
    env.pop("SOURCE_DATE_EPOCH", None)
    subprocess.run([sys.executable, "-c", program, str(file)], env=env, check=True)
    assert file.read_bytes() == drawn(1, "a4")


def test_a_page_that_is_too_full_goes_on_overleaf() -> None:
    """In the same print: it never shrinks, and nothing is left out. First the machines go, then what follows."""
    page = dataclasses.replace(page_of(amount(1, 3), "letter"), pages=1)
    block = page.matrix[0]
    full = dataclasses.replace(page, matrix=(block,) * amount(7, 4))
    fuller = dataclasses.replace(full, assumed=full.assumed * 25)
    for full_page, is_whole in ((full, True), (fuller, False))[amount(1, 0) :]:
        layout = lay_out(full_page, templates=TEMPLATES)
        assert layout.is_whole == is_whole and layout.problems == []
        printed = read(layout.pdf())
        assert min(char["size"] for leaf in printed for char in leaf.chars) >= SMALL - 0.01
        assert "Machines to rent" not in printed[0].text


def test_a_paper_that_is_not_known() -> None:
    with pytest.raises(PageError, match="a4, letter"):
        write_pdf(dataclasses.replace(page_of(1), paper="a3"), Options(TEMPLATES))
