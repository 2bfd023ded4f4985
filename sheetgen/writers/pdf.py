"""The page as a PDF: one A4 or Letter page that stands alone, after the request for approval if there is one, and
before the part for engineers; with the bundled fonts, nothing fetched, and the same bytes every time.

The print has one size: a full page gets less white space, and then continues on the next page. Every PDF is tagged and
declares conformance to PDF/UA-1 and PDF/A-3a.
"""

from __future__ import annotations

import datetime
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sheetgen.errors import PageError, shown
from sheetgen.report.page import Cell, Page
from sheetgen.writers.formats import Archive, Options, gc_paused
from sheetgen.writers.html import render_html
from sheetgen.writers.layout import (
    ENGINEERS_STEPS,
    FONTS,
    LOGO,
    MOST_ON_A_PAGE,
    REQUEST_SPACINGS,
    SPACINGS,
    STEPS,
    Spacing,
    tried_first,
)
from sheetgen.writers.weasyprint_boxes import WeasyObject, finish, imported, overflows, part_of, put_metadata

if TYPE_CHECKING:
    from sheetgen.brand import Brand

VARIANT = "pdf/a-3a"  # WeasyPrint's name; a PDF/A-3 may hold a workbook
_USUAL, _OF_A_MODEL = 10_000, 4_500  # rough numbers of characters of a page, and of each of its models
_MOST_TIMES = 2  # pages with more than twice as many are refused


@dataclass(frozen=True)
class Layout:
    """The page laid out; is_whole: the sizing sheet fits on one page. n_engineers: pages of the part for engineers."""

    spacing: Spacing
    document: WeasyObject
    problems: list[str]
    is_whole: bool
    n_engineers: int = 0

    def pdf(self, archive: Archive | None = None) -> bytes:
        """The PDF's bytes: tagged for screen readers, and fit for archives."""
        from weasyprint import Attachment

        archive, document = archive or Archive(), self.document.copy()
        document.color_profiles, document.metadata = {}, copy(self.document.metadata)  # both are modified below
        about = document.metadata
        put_metadata(document, xmp(archive, about.generator.split()[-1]))
        day = datetime.datetime.fromisoformat(about.created) if about.created else _UNDATED
        workbook = Attachment(
            string=archive.workbook,
            name=archive.name,
            description="The live workbook of this sheet",
            created=day,
            modified=day,
            relationship="Source",
        )
        return bytes(
            document.write_pdf(
                pdf_variant=VARIANT,
                pdf_tags=True,
                attachments=[workbook] if archive.name else [],
                finisher=finish,
            )
        )


def write_pdf(page: Page, options: Options) -> bytes:
    """The PDF's bytes, in a company's brand if there is one, with the archive's attachments.

    Raises PageError if something leaves its place on the page, and MissingLibraryError if Pango is not installed.
    """
    with gc_paused():
        layout, archive = lay_out(page, templates=options.templates, brand=options.brand), options.archive
        workbook = archive.workbook or (options.file("xlsx") if archive.name else b"")
        return layout.pdf(replace(archive, workbook=workbook))


def lay_out(page: Page, *, templates: Path, brand: Brand | None = None) -> Layout:
    """The page with the most white space at which its first part fits on one page.

    A layout takes most of a second, so the search begins at the usual result for pages of this size. If no spacing
    suffices, the machines to rent move to the part for engineers, then the ways to pay less of several models are
    left out, and then the first part continues on a second page, as with more than five models, of which the part for
    engineers has two. Where that part's last layout does not fit either, whole sections continue on a page more.
    Raises PageError if something leaves its place, or the page has far too many characters.
    """
    n_models = len(page.models)
    is_short = n_models <= MOST_ON_A_PAGE
    most_for_engineers = 1 if is_short else 2
    n_characters = sum(len(text) for _, text in _texts(page, ""))
    usual_characters = _USUAL + _OF_A_MODEL * n_models
    most = _MOST_TIMES * usual_characters
    if n_characters > most:  # a layout would take minutes
        limit = f"such a page takes about {usual_characters:,}, and at most {most:,} are tried"
        raise PageError(f"The page has {n_characters:,} characters; {limit}. Ask for less.{_longest(page)}")
    request = _request_spacing(page, templates, brand)
    sheet, engineers = tried_first(n_models, len(page.grid_loads), page.paper)
    is_full = False
    while not is_full:
        step = STEPS[sheet]
        how = {"has_machines": step.has_machines, "has_ways": step.has_ways, "engineers": ENGINEERS_STEPS[engineers]}
        layout = _lay_out(page, templates, step.spacing, brand, of_request=request, **how)
        sheet_goes_on = is_short and not layout.is_whole and sheet < len(STEPS) - 1
        engineers_go_on = layout.n_engineers > most_for_engineers and engineers < len(ENGINEERS_STEPS) - 1
        is_full = not (sheet_goes_on or engineers_go_on)
        sheet, engineers = sheet + sheet_goes_on, engineers + engineers_go_on
    if layout.n_engineers > most_for_engineers:  # a few lines alone would look lost on the next page
        how |= {"engineers": ENGINEERS_STEPS[0], "has_overleaf": True}
        layout = _lay_out(page, templates, step.spacing, brand, of_request=request, **how)
    if layout.problems:
        raise PageError(f"The {page.paper} page cannot be drawn: {layout.problems[0]}.{_longest(page)}")
    return layout


def _lay_out(page: Page, templates: Path, spacing: Spacing, brand: Brand | None = None, **how: Any) -> Layout:
    """The page laid out with this spacing; how: further arguments of `render_html`."""
    html = render_html(page, templates=templates, spacing=spacing, brand=brand, **how)
    return laid_out(html, templates, spacing, brand)


def _request_spacing(page: Page, templates: Path, brand: Brand | None) -> Spacing:
    """The largest spacing at which the request fits on one page, tried alone, which is much faster than the sheet."""
    if page.has_request:
        for spacing in REQUEST_SPACINGS:
            alone = _lay_out(page, templates, SPACINGS[0], brand, of_request=spacing, has_sheet=False)
            if len(alone.document.pages) == 1:
                return spacing
    return REQUEST_SPACINGS[-1]


def laid_out(html: str, templates: Path, spacing: Spacing, brand: Brand | None) -> Layout:
    """A document laid out; its first part is `main.first`."""
    weasyprint = imported()
    fetcher = assets_only(templates, brand.logo.png if brand and brand.logo else None)
    document = weasyprint.HTML(string=html, url_fetcher=fetcher).render()
    problems = [*fetcher.refused, *(problem for drawn_page in document.pages for problem in overflows(drawn_page))]
    parts = [part_of(drawn_page) for drawn_page in document.pages]
    return Layout(spacing, document, problems, parts.count("first") <= 1, parts.count("engineers"))


def assets_only(templates: Path, logo: bytes | None = None) -> WeasyObject:
    """A URL fetcher for the bundled fonts and the logo by name; any other URL is refused and listed in `refused`."""
    from weasyprint.urls import URLFetcher, URLFetcherResponse

    class AssetsOnly(URLFetcher):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(allowed_protocols=("asset",))
            self.refused: list[str] = []

        def fetch(self, url: str, headers: object = None) -> WeasyObject:
            name = url.removeprefix("asset:")
            if url.startswith("asset:") and name in FONTS.values():
                body = (templates / "fonts" / name).read_bytes()
                return URLFetcherResponse(url, body, {"Content-Type": "font/otf"})
            if logo is not None and url == f"asset:{LOGO}":
                return URLFetcherResponse(url, logo, {"Content-Type": "image/png"})
            self.refused.append(f"it asks for {shown(url)}")
            raise ValueError(f"not an asset of the page: {shown(url)}")

    return AssetsOnly()


def _longest(page: Page) -> str:
    """A sentence on the longest text of the page, if it has over 400 characters; else ""."""
    name, text = max(_texts(page, ""), key=lambda item: len(item[1]))
    return f" The longest text is {name}, {len(text):,} characters: shorten it." if len(text) > 400 else ""


def _texts(value: object, name: str) -> list[tuple[str, str]]:
    """The texts of a page or a part of it, each with the name of its field."""
    if isinstance(value, Cell | str):
        return [(name, str(value))]
    if isinstance(value, tuple):
        return [text for n, item in enumerate(value) for text in _texts(item, f"{name}[{n}]")]
    inside = [(part.name, getattr(value, part.name)) for part in fields(value)] if is_dataclass(value) else []
    return [text for key, item in inside for text in _texts(item, f"{name}.{key}".lstrip("."))]


NAMESPACE = "urn:sheetgen:pdf:1#"
_UNDATED = datetime.datetime(1980, 1, 1)  # of a workbook without a date: a fixed day gives the same bytes
_UA = "http://www.aiim.org/pdfua/ns/id/"


def _schema(uri: str, prefix: str, about: str, fields: tuple[tuple[str, str, str], ...]) -> str:
    """The declaration of an extension schema that PDF/A requires for a namespace it does not define."""
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
    """Additional XMP metadata: sheetgen's version, the catalogs' hash, conformance to PDF/UA, and the schemas of these
    names."""
    ours = {"Version": version} | ({"CatalogSHA256": archive.catalog_sha256} if archive.catalog_sha256 else {})
    fields = "".join(f"<sheetgen:{name}>{escape(value)}</sheetgen:{name}>" for name, value in ours.items())
    parts = (
        f'<rdf:Description rdf:about="" xmlns:sheetgen="{NAMESPACE}">{fields}</rdf:Description>',
        f'<rdf:Description rdf:about="" xmlns:pdfuaid="{_UA}"><pdfuaid:part>1</pdfuaid:part></rdf:Description>',
        _SCHEMAS,
    )
    return "\n".join(parts).encode()
