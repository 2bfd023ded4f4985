"""The page as a PDF: exactly one A4 or Letter page, the bundled fonts, nothing fetched, the same bytes every time; and
that page as a picture (PNG).

The page is set ever more tightly until it holds everything; what is left over is given back to it as space. A layout
takes as long as all the rest, so most pages are laid out once. Every PDF is tagged and says that it conforms to
PDF/UA-1; a PDF/A says both.
"""

from __future__ import annotations

import datetime
import io
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from sheetgen.brand import Brand
from sheetgen.errors import MissingLibraryError, PageError, shown
from sheetgen.sheet.page import Cell, Page
from sheetgen.writers.formats import ACCESSIBLE, Archive, Options, gc_paused
from sheetgen.writers.html import PAPERS, render_html
from sheetgen.writers.layout import DENSITIES, FONTS, LOGO, Density, usual
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
        from weasyprint import Attachment

        archive, document = archive or Archive(), self.document.copy()
        document.color_profiles, document.metadata = {}, copy(self.document.metadata)  # both are added to
        about = document.metadata
        put_metadata(document, xmp(archive, about.generator.split()[-1]))
        day = datetime.datetime.fromisoformat(about.created) if about.created else _UNDATED
        workbook = Attachment(
            string=archive.workbook, name=archive.name, description="The live workbook of this sheet", created=day,
            modified=day, relationship="Source",
        )  # fmt: skip
        return bytes(
            document.write_pdf(
                pdf_variant=archive.variant, pdf_tags=True, attachments=[workbook] if archive.name else [],
                finisher=finish,
            )
        )  # fmt: skip


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
    n_characters = sum(len(text) for _, text in _texts(page, ""))
    if n_characters > _MOST_CHARACTERS:  # to lay it out would take minutes
        limit = f"a page takes about 8,000, and at most {_MOST_CHARACTERS:,} are tried"
        raise PageError(f"The page has {n_characters:,} characters; {limit}. Ask for less.{_longest(page)}")

    def at(step: int) -> Layout:
        return _lay_out(page, templates, DENSITIES[step], brand, tall=True)

    step, last = usual(len(page.models), page.paper, sum(len(block.rows) for block in page.matrix)), len(DENSITIES) - 1
    tall, tried = at(step), -1
    while not tall.fits:
        if step == last:
            raise PageError(_too_much(page, tall))
        tried, step = step, min(step + max(1, round(-tall.left / _POINTS_A_STEP)), last)
        tall = at(step)
    for roomier in range(step - 1, tried, -1):
        if tall.left < _ROOM_FOR_MORE or not (found := at(roomier)).fits:
            break
        tall = found
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


NAMESPACE = "urn:sheetgen:pdf:1#"
_UNDATED = datetime.datetime(1980, 1, 1)  # of a workbook without a day: never the clock's, the bytes would differ
_UA = "http://www.aiim.org/pdfua/ns/id/"


def _schema(uri: str, prefix: str, about: str, fields: tuple[tuple[str, str, str], ...]) -> str:
    """A namespace that PDF/A does not know, explained as it asks."""
    properties = "".join(
        '<rdf:li rdf:parseType="Resource">'
        f"<pdfaProperty:name>{name}</pdfaProperty:name><pdfaProperty:valueType>{kind}</pdfaProperty:valueType>"
        "<pdfaProperty:category>internal</pdfaProperty:category>"
        f"<pdfaProperty:description>{words}</pdfaProperty:description></rdf:li>"
        for name, kind, words in fields
    )
    return (
        '<rdf:li rdf:parseType="Resource">'
        f"<pdfaSchema:schema>{about}</pdfaSchema:schema><pdfaSchema:namespaceURI>{uri}</pdfaSchema:namespaceURI>"
        f"<pdfaSchema:prefix>{prefix}</pdfaSchema:prefix>"
        f"<pdfaSchema:property><rdf:Seq>{properties}</rdf:Seq></pdfaSchema:property></rdf:li>"
    )


_FIELDS = (
    ("Version", "Text", "Version of sheetgen that drew the sheet"),
    ("CatalogSHA256", "Text", "Hash of the catalogs that its figures rest on"),
)
_SCHEMAS = (
    '<rdf:Description rdf:about="" xmlns:pdfaExtension="http://www.aiim.org/pdfa/ns/extension/"'
    ' xmlns:pdfaSchema="http://www.aiim.org/pdfa/ns/schema#"'
    ' xmlns:pdfaProperty="http://www.aiim.org/pdfa/ns/property#"><pdfaExtension:schemas><rdf:Bag>'
    + _schema(_UA, "pdfuaid", "PDF/UA identification", (("part", "Integer", "Part of ISO 14289"),))
    + _schema(NAMESPACE, "sheetgen", "sheetgen", _FIELDS)
    + "</rdf:Bag></pdfaExtension:schemas></rdf:Description>"
)


def xmp(archive: Archive, version: str) -> bytes:
    """What is added to the metadata: sheetgen's version, the catalogs' hash; in a PDF/A also that it is a PDF/UA,
    and what the added names mean."""
    ours = {"Version": version} | ({"CatalogSHA256": archive.catalog_sha256} if archive.catalog_sha256 else {})
    fields = "".join(f"<sheetgen:{name}>{escape(value)}</sheetgen:{name}>" for name, value in ours.items())
    parts = [f'<rdf:Description rdf:about="" xmlns:sheetgen="{NAMESPACE}">{fields}</rdf:Description>']
    if archive.variant != ACCESSIBLE:
        is_ua = "<pdfuaid:part>1</pdfuaid:part>"
        parts += [f'<rdf:Description rdf:about="" xmlns:pdfuaid="{_UA}">{is_ua}</rdf:Description>', _SCHEMAS]
    return "\n".join(parts).encode()


DPI = 150  # an A4 page becomes 1,240 x 1,754 pixels
_MISSING = "The picture (png) needs pypdfium2, which is not installed. python -m pip install pypdfium2"


def write_png(page: Page, options: Options) -> bytes:
    """The PDF's first page as a PNG. Raises MissingLibraryError where pypdfium2 is not installed."""
    try:
        import pypdfium2
    except ImportError as error:
        raise MissingLibraryError(_MISSING) from error
    document = pypdfium2.PdfDocument(options.file("pdf"))
    try:
        bitmap = document[0].render(scale=DPI / 72)
        out = io.BytesIO()
        bitmap.to_pil().save(out, "PNG", dpi=(DPI, DPI), optimize=True)
    finally:
        document.close()
    return out.getvalue()
