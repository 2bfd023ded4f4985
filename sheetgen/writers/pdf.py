"""The page as a PDF: exactly one A4 or Letter page, the bundled fonts, nothing fetched, the same bytes every time.

The page is set ever more tightly until it holds everything; what is left over is given back to it as space.
"""

from __future__ import annotations

import contextlib
import io
import logging
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from sheetgen.brand import Brand
from sheetgen.errors import MissingLibraryError, PageError, shown
from sheetgen.sheet.one_page import OnePage
from sheetgen.writers.density import DENSITIES, Density, usual
from sheetgen.writers.fonts import FONTS
from sheetgen.writers.html import render_html
from sheetgen.writers.letterhead import LOGO
from sheetgen.writers.page_gates import height_left, overflows

_MISSING = (
    "The PDF needs Pango, which is not installed. Debian, Ubuntu: apt-get install libpangoft2-1.0-0"
    " libharfbuzz-subset0. macOS: brew install pango."
)
_MOST_PAD = 2.2  # points that a cell may gain above and below; the rest of the space goes between sections
_N_GAPS = 6  # gaps that lie below one another, from the head of the page to its foot
_ENDLESS = 4000.0  # points of paper to measure on
_ROOM_FOR_MORE = 30.0  # points left below which the next roomier density has never fitted
_HOPELESS = -250.0  # points lacking that only the last density can save
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

    def pdf(self) -> bytes:
        """The file: tagged, so that it can be read aloud."""
        return bytes(self.document.write_pdf(pdf_tags=True))


def write_pdf(page: OnePage, *, templates: Path, brand: Brand | None = None) -> bytes:
    """The PDF's bytes, in a company's `brand` where one is given.

    Raises PageError where the page cannot hold everything at the smallest print, and MissingLibraryError where Pango
    is not installed.
    """
    return lay_out(page, templates=templates, brand=brand).pdf()


def lay_out(page: OnePage, *, templates: Path, brand: Brand | None = None) -> Layout:
    """The page at the roomiest density that holds it, with the space left over shared out.

    A layout takes most of a second, so it begins where pages of this size usually end, and does not try what the
    height left or lacking shows to be hopeless.
    """
    _refuse_endless(page)
    step = usual(len(page.models))
    tall = _lay_out(page, templates, DENSITIES[step], brand, tall=True)
    if tall.fits:
        for density in reversed(DENSITIES[:step]):
            if tall.left < _ROOM_FOR_MORE:
                break
            roomier = _lay_out(page, templates, density, brand, tall=True)
            if not roomier.fits:
                break
            tall = roomier
    while not tall.fits:
        step += 1
        if step == len(DENSITIES):
            raise PageError(_too_much(page, tall))
        if tall.left < _HOPELESS:
            step = len(DENSITIES) - 1
        tall = _lay_out(page, templates, DENSITIES[step], brand, tall=True)
    return _filled(page, templates, tall, brand)


def _lay_out(
    page: OnePage, templates: Path, density: Density, brand: Brand | None = None, *, tall: bool = False
) -> Layout:
    """The page at one density; `tall` on paper without end, which tells how much it is too long."""
    weasyprint = _weasyprint()
    extra = _ENDLESS if tall else 0.0
    html = render_html(page, templates=templates, density=density, embed_fonts=False, extra_height=extra, brand=brand)
    fetcher = assets_only(templates, brand.logo.png if brand and brand.logo else None)
    document = weasyprint.HTML(string=html, url_fetcher=fetcher).render()
    problems = list(fetcher.refused)
    if len(document.pages) > 1:
        problems.append(f"it needs {len(document.pages)} pages")
    problems += overflows(document.pages[0])
    return Layout(density, document, problems, height_left(document.pages[0]) - extra)


def _filled(page: OnePage, templates: Path, tall: Layout, brand: Brand | None) -> Layout:
    """`tall` on its paper, the height that is left given to the table rows and then to the gaps between sections."""
    if tall.left > 3 * _N_GAPS:
        rows = sum(len(block.rows) for block in page.matrix) + len(page.fingerprints) + len(page.models) + 12
        pad = min(_MOST_PAD, 0.8 * tall.left / (2 * rows))
        padded = _lay_out(page, templates, tall.density.stretched(pad, 0), brand, tall=True)
        tall = padded if padded.fits else tall
    gap = max(0.0, tall.left - 0.5) / _N_GAPS
    final = _lay_out(page, templates, tall.density.stretched(0, gap), brand)
    return final if not final.problems else _lay_out(page, templates, tall.density, brand)


def _weasyprint() -> Any:
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints a page of advice before it raises
            import weasyprint
    except OSError as error:
        raise MissingLibraryError(_MISSING) from error
    logging.getLogger("weasyprint").setLevel(logging.CRITICAL)  # it warns of refused URLs; we list them
    return weasyprint


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


def _too_much(page: OnePage, tried: Layout) -> str:
    """Where the page bursts, and what to do."""
    n_loads = sum(len(block.rows) for block in page.matrix)
    what = tried.problems[0] if tried.problems else f"{-tried.left:.0f} pt too long"
    other = " or --paper a4" if page.paper == "letter" else ""
    return (
        f"The {page.paper} page cannot hold {len(page.models)} models x {n_loads} loads at {tried.density.text:g} pt"
        f" ({what}). Ask for fewer --models, --workloads or --tiers{other}.{_longest(page)}"
    )


def _refuse_endless(page: OnePage) -> None:
    """Say at once what no page can hold; to lay it out would take minutes."""
    n_characters = sum(len(text) for _, text in _texts(page, ""))
    if n_characters > _MOST_CHARACTERS:
        limit = f"a page takes about 8,000, and at most {_MOST_CHARACTERS:,} are tried"
        raise PageError(f"The page has {n_characters:,} characters; {limit}. Ask for less.{_longest(page)}")


def _longest(page: OnePage) -> str:
    """A word on the longest text, where it is out of all proportion."""
    name, text = max(_texts(page, ""), key=lambda item: len(item[1]))
    return f" The longest text is {name}, {len(text):,} characters: shorten it." if len(text) > 400 else ""


def _texts(value: Any, name: str) -> list[tuple[str, str]]:
    """Every text on the page with the name of its place."""
    if isinstance(value, str):
        return [(name, value)]
    if isinstance(value, tuple):
        return [found for n, item in enumerate(value) for found in _texts(item, f"{name}[{n}]")]
    if is_dataclass(value):
        return [
            found
            for field in fields(value)
            for found in _texts(getattr(value, field.name), f"{name}.{field.name}".lstrip("."))
        ]
    return []
