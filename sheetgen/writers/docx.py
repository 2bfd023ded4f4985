"""The plan as a Word document, from the page's tables: headings, tables with their heads repeated on each page,
pictures with alternative text; in the document's own styles, so that a company's template can be applied."""

from __future__ import annotations

import datetime
import html
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import docx
import resvg_py
from docx.document import Document
from docx.enum.style import WD_STYLE_TYPE
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.section import Section as Paper
from docx.shape import InlineShape
from docx.shared import Pt, RGBColor
from docx.text.paragraph import Paragraph

from sheetgen.brand import Brand
from sheetgen.plan.pages import PlanPage, Section
from sheetgen.report.page import Table, Text, joined
from sheetgen.writers.formats import Options
from sheetgen.writers.hand_edits import CORE, marked
from sheetgen.writers.html import PAPERS, visible
from sheetgen.writers.layout import FONTS, page_colors, width_em
from sheetgen.writers.plan_page import draw_picture

TEXT, SMALL = 9.0, 8.0  # points
MARGIN, _FOOTER = 32.0, 14.0  # points; the footer's distance from the paper's edge
_CELL, _BOLD = 3.0, 1.1  # points at either side of a cell's text; width of bold text relative to plain
_HEADER, _LOGO_BOX = 10.0, (100.0, 18.0)  # points: distance from the paper's edge, and the largest logo
_RULE = "B8C2CC"
_TWIPS = 20  # per point
_SHORT = 12  # characters that stay on one line, as on the page
FONT = "Arial"  # on every machine with Word
_PICTURE_FONT = "Inter"  # the bundled file's own name
_POINTS, _ZOOM = 72, 3  # points per inch; pixels per point
_DAY = (1980, 1, 1, 0, 0, 0)  # of the parts in the file: a fixed day gives the same bytes


def write_plan_docx(page: PlanPage, options: Options) -> bytes:
    """The plan as a Word document."""
    document = docx.Document()
    width = _set_up(document, page, options)
    by = f"answer by {page.sign_by}" if page.sign_by else ""
    document.add_paragraph(_plain(page.title), style="Title")
    document.add_paragraph(_plain(" · ".join(filter(None, (page.people, f"as of {page.as_of}", by)))))
    document.add_paragraph(_plain(page.sentence), style="Ask")
    for tile in page.tiles:
        paragraph = document.add_paragraph()
        paragraph.add_run(_plain(f"{tile.name} {tile.amount}: ")).bold = True
        paragraph.add_run(_plain(f"{joined('; ', tile.facts)}."))
    for warning in page.warnings:
        document.add_paragraph(_plain(warning))
    font = options.templates / "fonts" / FONTS[400]
    for section in page.first:
        _put_section(document, section, width, font)
    _put_signature(document, page)
    for i, section in enumerate((*page.reasons, *page.behind)):
        _put_section(document, section, width, font, apart=i == 0)
    document.add_heading("Sources", 1)
    document.add_paragraph(_plain(f"{' · '.join(source.text for source in page.sources)}."))
    return _packed(document)


def _put_section(document: Document, section: Section, width: float, font: Path, apart: bool = False) -> None:
    document.add_heading(_plain(section.title), 1).paragraph_format.page_break_before = apart or None
    is_list = len(section.lines) > 1
    for line in section.lines:
        document.add_paragraph(_plain(line), style="List Bullet" if is_list else None)
    if drawn := draw_picture(section.picture, font, width, _PICTURE_FONT, visible):
        _put_picture(document, drawn, width, font)
    if section.table is not None and section.table.rows:
        _put_table(document, section.table, width, font, section.late)


def _put_signature(document: Document, page: PlanPage) -> None:
    """The lines on which the plan is signed."""
    line = "_" * 24
    paragraph = document.add_paragraph(_plain(f"Asked by {page.owner} {line}   Approved by {page.approver} {line}   "))
    paragraph.add_run(f"Date {line[:12]}")


def _plain(text: Text) -> str:
    """`text` without the characters that XML does not allow."""
    return visible(str(text))


def _set_up(document: Document, page: PlanPage, options: Options) -> float:
    """Set paper, styles, footer and properties; return the width between the margins in points."""
    width, height = PAPERS[page.paper]
    section = document.sections[0]
    section.page_width, section.page_height = Pt(width), Pt(height)
    section.left_margin = section.right_margin = section.top_margin = section.bottom_margin = Pt(MARGIN)
    section.footer_distance = Pt(_FOOTER)
    brand = options.brand
    if brand is not None:
        _put_brand(section, brand)
    heading = RGBColor.from_string(page_colors(brand)["heading"].lstrip("#"))
    sizes = {"Normal": TEXT, "Title": 18.0, "Heading 1": 12.0, "Heading 2": 10.0, "List Bullet": TEXT}
    for name, size in sizes.items():
        style: Any = document.styles[name]
        style.font.size, style.font.name = Pt(size), FONT
        fonts = style.element.rPr.rFonts
        for script in ("asciiTheme", "hAnsiTheme", "eastAsiaTheme", "cstheme"):
            fonts.attrib.pop(qn(f"w:{script}"), None)
        style.paragraph_format.space_after = Pt(3)
        if name.startswith(("Title", "Heading")):
            style.font.color.rgb = heading
            style.paragraph_format.space_before = Pt(7 if name != "Title" else 0)
    for name, size, bold, after in (
        ("Table text", SMALL, False, 0),
        ("Table head", SMALL, True, 0),
        ("Ask", 10.0, True, 3),
    ):
        own: Any = document.styles.add_style(name, WD_STYLE_TYPE.PARAGRAPH)
        own.base_style, own.font.size, own.font.bold = document.styles["Normal"], Pt(size), bold
        own.paragraph_format.space_after = Pt(after)
    margins = next(document.styles["Table Grid"].element.iter(qn("w:tblCellMar")))
    for side in ("left", "right"):
        margins.find(qn(f"w:{side}")).set(qn("w:w"), str(round(_CELL * _TWIPS)))
    lines = next(document.styles["Table Grid"].element.iter(qn("w:tblBorders")))
    for side in ("top", "left", "bottom", "right", "insideH", "insideV"):  # thin rules between rows, as on the page
        edge = lines.find(qn(f"w:{side}"))
        edge.set(qn("w:val"), "nil" if side in ("left", "right", "insideV") else "single")
        edge.set(qn("w:color"), _RULE)
    about = document.core_properties
    about.title, about.author = _plain(page.title), _plain(brand.name if brand else f"sheetgen {page.version}")
    about.comments, about.subject = "", _plain(page.sentence)[:255]
    about.created = about.modified = datetime.datetime.fromisoformat(page.as_of)
    about.last_modified_by = about.author
    parts = (brand.footer if brand else "", f"sheetgen {page.version}", f"catalog {page.catalog}", "page ")
    footer = section.footer.paragraphs[0]
    footer.add_run(_plain(" · ".join(filter(None, parts))))
    _put_field(footer, "PAGE")
    return width - MARGIN - MARGIN


def _put_brand(section: Paper, brand: Brand) -> None:
    """Put the brand's name and logo into the header of every page."""
    section.header_distance = Pt(_HEADER)
    line = section.header.paragraphs[0]
    line.alignment = WD_ALIGN_PARAGRAPH.RIGHT
    line.add_run(_plain(brand.name) + "  ")
    if brand.logo is not None:
        wide, high = brand.logo.within(*_LOGO_BOX)
        _describe(line.add_run().add_picture(io.BytesIO(brand.logo.png), Pt(wide), Pt(high)), _plain(brand.name))


def _put_field(paragraph: Paragraph, name: str) -> None:
    """A field that Word works out: the page's number."""
    field = OxmlElement("w:fldSimple")
    field.set(qn("w:instr"), name)
    paragraph._p.append(field)


def _widths(table: Table, width: float, font: Path) -> list[float]:
    """Points for each column: short ones what they need, the others what is left, by what they hold."""
    least, most = [], []
    for i, column in enumerate(table.columns):
        texts = [str(row[i]) for row in table.rows]
        short = column.right or max(map(len, texts)) <= _SHORT
        kept = texts if short else [word for text in texts for word in text.split()]
        head = max(width_em(word, font) for word in column.head.split()) * _BOLD
        least.append(max(head, *(width_em(text, font) for text in kept)) * SMALL + _CELL + _CELL)
        most.append(least[-1] if short else max(width_em(text, font) for text in texts) * SMALL + _CELL + _CELL)
    left, wished = width - sum(least), sum(most) - sum(least)
    if left <= 0 or wished <= 0:
        return [points * width / sum(least) for points in least]
    return [low + (high - low) * left / wished for low, high in zip(least, most, strict=True)]


def _put_table(document: Document, table: Table, width: float, font: Path, late: Sequence[int] = ()) -> None:
    """A table; its head stands again on each page, and no row is torn."""
    grid = document.add_table(rows=1 + len(table.rows), cols=len(table.columns), style="Table Grid")
    grid.autofit = False
    widths = [Pt(points) for points in _widths(table, width, font)]
    for of_grid, points in zip(grid.columns, widths, strict=True):
        of_grid.width = points
    styles = [document.styles[name].style_id for name in ("Table head", "Table text")]
    heads: tuple[Text, ...] = tuple(column.head for column in table.columns)
    for i, (line, texts) in enumerate(zip(grid.rows, (heads, *table.rows), strict=True)):
        marks = line._tr.get_or_add_trPr()
        marks.append(OxmlElement("w:cantSplit"))
        if i == 0:
            marks.append(OxmlElement("w:tblHeader"))
        for cell, text, column, points in zip(line.cells, texts, table.columns, widths, strict=True):
            cell.width, paragraph = points, cell.paragraphs[0]
            paragraph._p.style = styles[i > 0]  # by its id: python-docx looks through all styles for each paragraph
            paragraph.add_run(_plain(text)).bold = True if i - 1 in late else None
            if column.right:
                paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT


def _put_picture(document: Document, svg: str, width: float, font: Path) -> None:
    """Append an SVG picture as PNG; its title is the alternative text."""
    text = str(svg)
    title = html.unescape(text[text.index("<title>") + len("<title>") : text.index("</title>")])
    png = resvg_py.svg_to_bytes(
        svg_string=text,
        dpi=_POINTS,
        zoom=_ZOOM,
        background="#ffffff",
        skip_system_fonts=True,
        font_family=_PICTURE_FONT,
        font_files=[str(font)],
    )
    shape = document.add_picture(io.BytesIO(bytes(png)), Pt(width))
    _describe(shape, title)


def _describe(shape: InlineShape, words: str) -> None:
    """Set the alternative text of a picture, and align it with the text."""
    shape._inline.docPr.set("descr", words)
    for side in ("distT", "distB", "distL", "distR"):
        shape._inline.set(side, "0")


def _packed(document: Document) -> bytes:
    """The file with a fixed day for its parts, so that a plan gives the same bytes."""
    saved, out = io.BytesIO(), io.BytesIO()
    document.save(saved)
    with zipfile.ZipFile(saved) as made, zipfile.ZipFile(out, "w") as file:
        for name in sorted(made.namelist(), key=CORE.__eq__):  # it has a mark of all others
            data = made.read(name) if name != CORE else marked(made.read(name), file)
            file.writestr(zipfile.ZipInfo(name, _DAY), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
