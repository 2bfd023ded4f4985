"""What the tests of the PDF ask of a finished file, with pdfplumber and pypdf."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pdfplumber
import pypdf

from sheetgen.sheet.one_page import OnePage
from sheetgen.writers.html import MARGIN_X, MARGIN_Y, PAPERS

TEMPLATES = Path(__file__).parents[2] / "templates"


def text_of(pdf: bytes) -> str:
    """All text of the file, spaces and line ends folded into one space, without the soft breaks of long names."""
    with pdfplumber.open(io.BytesIO(pdf)) as opened:
        found = " ".join(page.extract_text(x_tolerance=1.5) for page in opened.pages)
    return re.sub(r"\s+", " ", found.replace("\u200b", ""))


def missing(pdf: bytes, page: OnePage) -> list[str]:
    """The figures of `page` that cannot be read in the file."""
    squeezed = text_of(pdf).replace(" ", "")
    wanted = [text for card in page.cards for text in (card.monthly,)]
    wanted += [text for block in page.matrix for row in block.rows for c in row.cells for text in (c.kv, c.monthly)]
    wanted += [row.tier for block in page.matrix for row in block.rows]
    wanted += [text for f in page.models for text in (f.weights_bf16, f.weights_fp8, f.kv_per_token, f.ratio)]
    wanted += [text for bar in page.bars for text in (bar.weights, bar.kv)]
    wanted += [page.as_of, page.version, page.catalog]
    return [text for text in wanted if text not in ("–", "") and text.replace(" ", "") not in squeezed]


def outside(pdf: bytes, paper: str) -> list[str]:
    """Characters and drawings beyond the page's margins."""
    width, height = PAPERS[paper]
    slack = 1  # point: a long line gathers the rounding of its letters
    left, top, right, bottom = MARGIN_X - slack, MARGIN_Y - slack, width - MARGIN_X + slack, height - MARGIN_Y + slack
    found = []
    with pdfplumber.open(io.BytesIO(pdf)) as opened:
        for page in opened.pages:
            for thing in [*page.chars, *page.rects]:
                if thing["x0"] < left or thing["x1"] > right or thing["top"] < top or thing["bottom"] > bottom:
                    found.append(f"{thing.get('text', 'a drawing')!r} at {thing['x0']:.0f}, {thing['top']:.0f}")
    return found


def fonts_of(pdf: bytes) -> set[str]:
    """The /BaseFont of every font, without the tag of its subset."""
    fonts = {}
    for page in pypdf.PdfReader(io.BytesIO(pdf)).pages:
        fonts.update(page["/Resources"]["/Font"])
    return {font.get_object()["/BaseFont"].rpartition("+")[2].lstrip("/") for font in fonts.values()}


def links_of(pdf: bytes) -> list[str]:
    """The addresses that the file links to."""
    return [
        note.get_object()["/A"]["/URI"]
        for page in pypdf.PdfReader(io.BytesIO(pdf)).pages
        for note in page.get("/Annots", ())
        if "/A" in note.get_object()
    ]


def alternatives_of(pdf: bytes) -> list[str]:
    """The alternative texts of the file's pictures."""
    found: list[str] = []

    def walk(node: object) -> None:
        node = node.get_object() if hasattr(node, "get_object") else node
        if isinstance(node, pypdf.generic.ArrayObject):
            for child in node:
                walk(child)
        elif isinstance(node, pypdf.generic.DictionaryObject):
            if "/Alt" in node:
                found.append(str(node["/Alt"]))
            if "/K" in node:
                walk(node["/K"])

    walk(pypdf.PdfReader(io.BytesIO(pdf)).trailer["/Root"]["/StructTreeRoot"])
    return found
