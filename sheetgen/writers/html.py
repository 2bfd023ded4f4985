"""The page as HTML, before it is a PDF: templates/one_page.html.j2 and one_page.css filled in.

Everything that comes from a catalog is text: Jinja2 escapes it, characters that the bundled fonts do not have are
replaced, and a link is drawn only where it is http or https.
"""

from __future__ import annotations

import datetime
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sheetgen.brand import Brand
from sheetgen.brand.colors import page_colors
from sheetgen.errors import PageError
from sheetgen.sheet.page import Page
from sheetgen.sheet.tables import MARKS
from sheetgen.writers.density import DENSITIES, Density
from sheetgen.writers.fonts import FAMILY, FONTS, drawable_with, width_em
from sheetgen.writers.layout import answers_of, column_widths, grid_of, letterhead, oom_shares
from sheetgen.writers.pictures import pictures_of
from sheetgen.writers.strict import breakable, strict_environment, style, tied

if TYPE_CHECKING:
    from jinja2 import Environment

PAPERS = {"a4": (595.28, 841.89), "letter": (612.0, 792.0)}  # width and height, points
MARGIN_X, MARGIN_Y = 26.0, 20.0  # points
MOST_WHEN = 44.0  # em: dates and precisions at the head of the page; longer ones break


def render_html(
    page: Page, *, templates: Path, density: Density = DENSITIES[1], extra_height: float = 0.0,
    brand: Brand | None = None,
) -> str:  # fmt: skip
    """The page as one HTML document, which asks for its fonts and the logo as `asset:<file>`.

    `extra_height` (points) makes the paper taller, to measure how much a page needs.
    """
    from markupsafe import Markup

    if page.paper not in PAPERS:
        raise PageError(f"paper {page.paper!r} is not known. Use one of: {', '.join(PAPERS)}.")
    fonts = templates / "fonts"
    regular, bold = fonts / FONTS[400], fonts / FONTS[700]
    width, height = PAPERS[page.paper]
    content = width - 2 * MARGIN_X
    shown = replace(page, instances=page.instances[: density.n_instances], levers=page.levers[: density.n_levers])
    grid = grid_of(page, content, density.text, regular, bold)
    return _environment(templates).get_template("one_page.html.j2").render(
        page=page, css=style(templates, "one_page.css"),
        faces=[(weight, Markup(f"asset:{name}")) for weight, name in FONTS.items()], family=Markup(FAMILY),
        brand=brand, when_width=_when_width(page, fonts),
        letterhead=letterhead(brand, page.title, content, fonts) if brand else None,
        colors=page_colors(brand.colors if brand else None), d=asdict(density),
        answers=answers_of(page, density, content, bold), grid=grid, name_ems=grid.longest_name(density),
        widths=column_widths(shown, regular, bold),
        paper={"width": width, "height": height + extra_height, "x": MARGIN_X, "y": MARGIN_Y}, day=_day(page.as_of),
        marks=MARKS, noted=[m for m in page.models if m.note or not density.run_in], instances=shown.instances,
        levers=shown.levers, n_instances_more=len(page.instances) - len(shown.instances),
        sources=[(s.text, s.web_url) for s in page.sources],
        **pictures_of(page, density, grid, content, drawable_with(regular), regular),
        oom_shares=oom_shares(page, density.symptoms, content / density.small, regular, bold),
    )  # fmt: skip


def _when_width(page: Page, fonts: Path) -> float:
    """How wide the dates and precisions at the head of the page are, in em: the question has what they leave."""
    dates = width_em(page.as_of, fonts / FONTS[600]) + width_em(f" · {page.price_banner}", fonts / FONTS[400])
    return round(min(max(dates, width_em(page.precision_line, fonts / FONTS[400])) + 0.5, MOST_WHEN), 2)


@cache
def _environment(templates: Path) -> Environment:
    """The templates; all text can be drawn."""
    drawable = drawable_with(templates / "fonts" / FONTS[400])
    environment = strict_environment(templates, lambda text: tied(drawable(text)))
    bold = templates / "fonts" / FONTS[700]
    environment.filters |= {
        "ems": lambda text: width_em(drawable(str(text)), bold),
        "within": lambda text, ems: _within(drawable(text), ems, bold),
        "breakable": lambda text: breakable(drawable(str(text))),
    }
    return environment


def _day(as_of: str) -> str | None:
    """`as_of` where it is a date, for the metadata."""
    try:
        return datetime.date.fromisoformat(as_of).isoformat()
    except ValueError:
        return None


def _within(text: str, ems: float, font: Path) -> str:
    """`text`, its middle left out where it is wider than `ems`: names differ at their ends."""
    kept = len(text)
    short = text
    while kept > 2 and width_em(short, font) > ems:
        kept -= 1
        short = f"{text[: (kept + 1) // 2].rstrip()}…{text[len(text) - kept // 2 :].lstrip()}"
    return short
