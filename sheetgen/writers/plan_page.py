"""The plan as a PDF (templates/plan.html.j2). Its first part is fitted on one page by less white space and a lower
chart, never by smaller print."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from markupsafe import Markup

from sheetgen.brand import Brand
from sheetgen.errors import PageError
from sheetgen.plan.charts import Machines, Waterfall
from sheetgen.plan.pages import PlanPage
from sheetgen.writers import html
from sheetgen.writers.formats import Options, gc_paused
from sheetgen.writers.layout import FAMILY, FONTS, PLAN_SMALL, SPACINGS, Spacing, drawable_with
from sheetgen.writers.pdf import Layout, laid_out
from sheetgen.writers.plan_pictures import machines_chart, waterfall_chart

TEMPLATE = "plan.html.j2"
PLOT, LEAST_PLOT = 88.0, 46.0  # points: the height of the chart without key and figures, 31 and 16 mm
STEPS = (*((spacing, PLOT) for spacing in SPACINGS), (SPACINGS[-1], LEAST_PLOT))


def draw_picture(
    drawn: Machines | Waterfall | None,
    font: Path,
    width: float,
    family: str,
    shown: Callable[[str], str],
    plot: float = PLOT,
) -> Markup | None:
    """The SVG of a section's chart, without characters that the font lacks; None for a section without a chart.
    shown: a function that replaces such characters in a text."""
    if drawn is None:
        return None
    if isinstance(drawn, Machines):
        svg = machines_chart(drawn, width, plot, font, family)
    else:
        svg = waterfall_chart(drawn, width, font, family)
    return Markup(shown(str(svg)))


def write_plan_pdf(page: PlanPage, options: Options) -> bytes:
    """The bytes of the tagged PDF. Raises PageError if a box leaves its page or a text its cell, and
    MissingLibraryError if Pango is not installed."""
    with gc_paused():
        return lay_out(page, options.templates, options.brand).pdf(options.archive)


def lay_out(page: PlanPage, templates: Path, brand: Brand | None = None) -> Layout:
    """The plan with the most white space with which its first part stays on one page, and with a lower chart if need
    be; where even that does not fit, the first part runs on to a second page."""
    font = templates / "fonts" / FONTS[400]
    width, shown = html.PAPERS[page.paper][0] - 2 * html.MARGIN_X, drawable_with(font)
    template = html.print_environment(templates).get_template(TEMPLATE)

    @cache
    def drawn(place: int, plot: float) -> Markup | None:
        return draw_picture(page.sections[place].picture, font, width, FAMILY, shown, plot)

    def laid(spacing: Spacing, plot: float, *, whole_words: bool, apart: bool = True, is_first: bool = False) -> Layout:
        """`whole_words`: no table breaks a word that is not long; `apart`: the part behind the first begins on its own
        page; `is_first`: the first part alone."""
        text = template.render(
            page=page,
            apart=apart,
            whole_words=whole_words,
            is_first=is_first,
            picture=lambda section: drawn(page.sections.index(section), plot),
            sources=[(source.text, source.web_url) for source in page.sources],
            **html.on_paper(page.title, page.paper, templates, spacing, brand) | {"small": PLAN_SMALL},
        )
        return laid_out(text, templates, spacing, brand)

    for whole_words in (True, False):  # in a plan of long names a table fits the page only with broken ones
        # The first part is laid out by itself until it fits: all pages of a large plan take seconds.
        fits = (step for step in STEPS if laid(*step, whole_words=whole_words, is_first=True).is_whole)
        step = next(fits, None)
        whole = laid(*(step or STEPS[-2]), whole_words=whole_words, apart=step is not None)
        if not whole.problems:
            break
    if whole.problems:
        raise PageError(f"The {page.paper} plan cannot be drawn: {whole.problems[0]}.")
    return whole
