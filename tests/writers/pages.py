"""Readings of a finished PDF for its tests, with pdfplumber and pypdf."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pdfplumber
import pypdf

from sheetgen.brand import Brand
from sheetgen.report.page import Page, formatted
from sheetgen.writers.formats import Options
from sheetgen.writers.html import MARGIN_X, MARGIN_Y, PAPERS
from sheetgen.writers.markdown import write_brief

TEMPLATES = Path(__file__).parents[2] / "templates"


@dataclass(frozen=True)
class Read:
    """One page as pdfplumber reads it, which takes as long as to draw it: what nobody asks for is not read."""

    page: pdfplumber.page.Page

    @cached_property
    def text(self) -> str:
        """Spaces and line ends folded into one space, without the soft breaks of long names."""
        return re.sub(r"\s+", " ", self.page.extract_text(x_tolerance=1.5).replace("\u200b", ""))

    @property
    def chars(self) -> list[dict[str, Any]]:
        return self.page.chars

    @property
    def boxes(self) -> list[dict[str, Any]]:
        """Drawings."""
        return [*self.page.rects, *self.page.curves, *self.page.lines]


def markdown_of(page: Page, brand: Brand | None = None) -> str:
    """The ask, one table and the assumptions as Markdown."""
    return write_brief(page, Options(TEMPLATES, brand)).decode()


@cache
def read(pdf: bytes) -> tuple[Read, ...]:
    """Each page of the file."""
    return tuple(map(Read, pdfplumber.open(io.BytesIO(pdf)).pages))


def text_of(pdf: bytes) -> str:
    """All text of the file."""
    return " ".join(page.text for page in read(pdf))


def missing(pdf: bytes, page: Page) -> list[str]:
    """The figures of `page` that cannot be read on the first page of the file, and those for engineers on any; of more
    models than one page holds the loads, too."""
    shown: Any = formatted(page)
    rows = [card.row for card in shown.cards if card.fits]
    wanted = [text for card in shown.cards for text in (card.monthly, card.rent)]
    wanted += [text for row in rows for text in (row.year, row.sure, row.as_published, shown.finding)]
    wanted += [*shown.load_note, shown.weights_in_short, shown.as_of]
    whole = [row.load for block in shown.matrix for row in block.rows]
    cells = [cell for block in shown.matrix for row in block.rows for cell in row.cells]
    whole += [text for cell in cells for text in (cell.kv, cell.monthly, cell.rent, cell.even, cell.why)]
    whole += [text for f in shown.models for text in (f.weights_in, f.kv_per_token)]
    whole += [text for row in shown.deaths for text in (row.where, row.bill, row.first_change)]
    whole += [*shown.assumed, shown.version, shown.catalog]
    anywhere = [*shown.risks, *shown.confidence]
    wanted, anywhere = (wanted + whole, anywhere) if len(shown.models) <= 5 else (wanted, anywhere + whole)
    anywhere += [text for r in shown.replicas for text in (r.pool, r.kv_tokens, r.max_concurrency)]
    anywhere += [text for r in shown.replicas for text in (r.breaks, r.replicas)]
    anywhere += [band.text for r in shown.replicas for band in (r.token, r.first_token) if band]
    findings = shown.findings[len(shown.replicas) > 3 :]  # of more models each row has its bar, and no row of parts
    anywhere += [*findings, *shown.start.lines, shown.start.note]
    anywhere += [figure for f in shown.started_deaths for figure in re.findall(r"\d[\d,.]*\d", f.here)]
    anywhere += [text for i in shown.instances for text in (i.hourly, i.name)]
    first, all_of_it = ("".join(text.split()) for text in (read(pdf)[0].text, text_of(pdf)))

    def is_in(text: Any, words: str) -> bool:
        """Word by word: of sentences side by side the lines are mixed when they are read. An instance may be broken
        after its dot, a word after its hyphen."""
        return all(word in words for word in re.split(r"\s+|(?<=-)|(?<=\.)(?=\d*x?large)", str(text)))

    lacking = [text for text in wanted if text not in ("", "–") and not is_in(text, first)]
    return lacking + [text for text in anywhere if text not in ("", "–") and not is_in(text, all_of_it)]


def outside(pdf: bytes, paper: str) -> list[str]:
    """Characters and drawings beyond the page's margins."""
    width, height = PAPERS[paper]
    slack = 1  # point: a long line gathers the rounding of its letters
    left, top, right, bottom = MARGIN_X - slack, MARGIN_Y - slack, width - MARGIN_X + slack, height - MARGIN_Y + slack
    return [
        f"{char.get('text', 'a drawing')!r} at {char['x0']:.0f}, {char['top']:.0f}"
        for page in read(pdf)
        for char in [*page.chars, *page.boxes]
        if char.get("text") != " "  # which shows nothing
        and (char["x0"] < left or char["x1"] > right or char["top"] < top or char["bottom"] > bottom)
    ]


def fonts_of(pdf: bytes) -> set[str]:
    """The /BaseFont of every font, without the tag of its subset."""
    fonts = {}
    for page in pypdf.PdfReader(io.BytesIO(pdf)).pages:
        resources: Any = page["/Resources"]
        fonts.update(resources["/Font"])
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
    problems: list[str] = []

    def walk(node: object) -> None:
        node = node.get_object() if hasattr(node, "get_object") else node
        if isinstance(node, pypdf.generic.ArrayObject):
            for child in node:
                walk(child)
        elif isinstance(node, pypdf.generic.DictionaryObject):
            if "/Alt" in node:
                problems.append(str(node["/Alt"]))
            if "/K" in node:
                walk(node["/K"])

    root: Any = pypdf.PdfReader(io.BytesIO(pdf)).trailer["/Root"]
    walk(root["/StructTreeRoot"])
    return problems
