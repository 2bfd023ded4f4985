"""The page as a PDF: exactly one A4 or Letter page, the bundled fonts, nothing fetched, the same bytes every time.

The page is set ever more tightly until it holds everything; what is left over is given back to it as space. A layout
takes as long as all the rest, so most pages are laid out once.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from sheetgen.brand import Brand
from sheetgen.errors import PageError, shown
from sheetgen.sheet.page import Cell, Page
from sheetgen.writers.density import DENSITIES, Density, usual
from sheetgen.writers.fonts import FONTS
from sheetgen.writers.formats import Options, gc_paused
from sheetgen.writers.html import PAPERS, render_html
from sheetgen.writers.layout import LOGO
from sheetgen.writers.pdf_archive import Archive
from sheetgen.writers.weasyprint_boxes import cut_to, finish, height_left, imported, overflows, put_metadata, share_out

_ENDLESS = 4000.0  # points of paper to measure on
_ROOM_FOR_MORE = 65.0  # points left below which the next roomier density has seldom fitted
_MOST_FOR_APPENDIX = 90.0  # points that its rows and gaps may gain: its foot is white, as of any last page
_POINTS_A_STEP = 40.0  # that a step of the densities saves, about
_MOST_CHARACTERS = 40_000  # a full page has about 8,000


@dataclass(frozen=True)
class Layout:
    """The page laid out once. `left` is the height it does not use, in points: below 0 where it needs more."""

    density: Density
    document: Any
    problems: list[str]
    left: float

    @property
    def fits(self) -> bool:
        """Whether everything is on the page and in its place."""
        return self.left >= 0 and not self.problems

    def pdf(self, archive: Archive | None = None) -> bytes:
        """The file: tagged, so that it can be read aloud."""
        kept = archive or Archive()
        document = self.document.copy()
        document.color_profiles, document.metadata = {}, copy(self.document.metadata)  # both are added to
        about = document.metadata
        put_metadata(document, kept.xmp(about.generator.split()[-1]))
        attached = kept.attachments(about.created)
        return bytes(document.write_pdf(pdf_variant=kept.variant, pdf_tags=True, attachments=attached, finisher=finish))


def write_pdf(page: Page, options: Options) -> bytes:
    """The PDF's bytes, in a company's brand where there is one, with what the archive has it carry.

    Raises PageError where the page cannot hold everything at the smallest print, and MissingLibraryError where Pango
    is not installed.
    """
    with gc_paused():
        layout, archive = lay_out(page, templates=options.templates, brand=options.brand), options.archive
        workbook = archive.workbook or (options.file("xlsx") if archive.name else b"")
        return layout.pdf(replace(archive, workbook=workbook))


def lay_out(page: Page, *, templates: Path, brand: Brand | None = None) -> Layout:
    """The page at the roomiest density that holds it, with the space left over shared out.

    A layout takes most of a second, so it begins where pages of this size usually end, and does not try what the
    height left or lacking shows to be hopeless.
    """
    _refuse_endless(page)

    def at(step: int) -> Layout:
        return _lay_out(page, templates, DENSITIES[step], brand, tall=True)

    def roomier(tall: Layout, steps: Iterable[int]) -> Layout:
        for step in steps:
            if tall.left < _ROOM_FOR_MORE or not (found := at(step)).fits:
                break
            tall = found
        return tall

    step, last = usual(len(page.models), page.paper, sum(len(block.rows) for block in page.matrix)), len(DENSITIES) - 1
    tall, tried = at(step), -1
    while not tall.fits:
        if step == last:
            raise PageError(_too_much(page, tall))
        tried, step = step, min(step + max(1, round(-tall.left / _POINTS_A_STEP)), last)
        tall = at(step)
    tall = roomier(tall, range(step - 1, tried, -1))
    return _filled(page, templates, tall, brand)


def _lay_out(
    page: Page, templates: Path, density: Density, brand: Brand | None = None, *, tall: bool = False
) -> Layout:
    """The page at one density; `tall` on paper without end, which shows how much it is too long."""
    weasyprint, extra = imported(), _ENDLESS if tall else 0.0
    html = render_html(page, templates=templates, density=density, extra_height=extra, brand=brand)
    fetcher = assets_only(templates, brand.logo.png if brand and brand.logo else None)
    document = weasyprint.HTML(string=html, url_fetcher=fetcher).render()
    problems = list(fetcher.refused)
    if len(document.pages) > 1 + density.appendix:
        problems.append(f"it needs {len(document.pages)} pages")
    problems += [problem for one in document.pages for problem in overflows(one)]
    return Layout(density, document, problems, min(map(height_left, document.pages)) - extra)


def _filled(page: Page, templates: Path, tall: Layout, brand: Brand | None) -> Layout:
    """`tall` on its paper, the height that is left shared out."""
    pages = tall.document.pages
    for n, one in enumerate(pages):
        left = max(0.0, height_left(one) - _ENDLESS - 0.5)
        share_out(one, left if n == 0 else min(left, _MOST_FOR_APPENDIX))
    pages[:] = [cut_to(one, PAPERS[page.paper][1]) for one in pages]
    problems = [problem for one in pages for problem in overflows(one)]
    filled = replace(tall, problems=problems, left=height_left(pages[0]))
    return filled if filled.fits else _lay_out(page, templates, tall.density, brand)


def assets_only(templates: Path, logo: bytes | None = None) -> Any:
    """A URL fetcher that knows the bundled fonts and the logo by name; all else is refused, listed in `refused`."""
    from weasyprint.urls import URLFetcher, URLFetcherResponse

    class AssetsOnly(URLFetcher):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(allowed_protocols=("asset",))
            self.refused: list[str] = []

        def fetch(self, url: str, headers: Any = None) -> Any:
            name = url.removeprefix("asset:")
            if url.startswith("asset:") and name in FONTS.values():
                body = (templates / "fonts" / name).read_bytes()
                return URLFetcherResponse(url, body, {"Content-Type": "font/otf"})
            if logo is not None and url == f"asset:{LOGO}":
                return URLFetcherResponse(url, logo, {"Content-Type": "image/png"})
            self.refused.append(f"it asks for {shown(url)}")
            raise ValueError(f"not an asset of the page: {shown(url)}")

    return AssetsOnly()


def _too_much(page: Page, tried: Layout) -> str:
    """Where the page bursts, and what to do."""
    n_loads = sum(len(block.rows) for block in page.matrix)
    what = tried.problems[0] if tried.problems else f"{-tried.left:.0f} pt too long"
    other = " or --paper a4" if page.paper == "letter" else ""
    return (
        f"The {page.paper} page cannot hold {len(page.models)} models x {n_loads} loads at {tried.density.text:g} pt"
        f" ({what}). Ask for fewer --models, --workloads or --tiers{other}.{_longest(page)}"
    )


def _refuse_endless(page: Page) -> None:
    """Say at once what no page can hold; to lay it out would take minutes."""
    n_characters = sum(len(text) for _, text in _texts(page, ""))
    if n_characters > _MOST_CHARACTERS:
        limit = f"a page takes about 8,000, and at most {_MOST_CHARACTERS:,} are tried"
        raise PageError(f"The page has {n_characters:,} characters; {limit}. Ask for less.{_longest(page)}")


def _longest(page: Page) -> str:
    """A word on the longest text, where it is out of all proportion."""
    name, text = max(_texts(page, ""), key=lambda item: len(item[1]))
    return f" The longest text is {name}, {len(text):,} characters: shorten it." if len(text) > 400 else ""


def _texts(value: Any, name: str) -> list[tuple[str, str]]:
    """Every text on the page with the name of its place."""
    if isinstance(value, Cell | str):
        return [(name, str(value))]
    if isinstance(value, tuple):
        return [found for n, item in enumerate(value) for found in _texts(item, f"{name}[{n}]")]
    inside = [(one.name, getattr(value, one.name)) for one in fields(value)] if is_dataclass(value) else []
    return [found for key, item in inside for found in _texts(item, f"{name}.{key}".lstrip("."))]
