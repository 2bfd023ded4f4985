"""The plan as a PDF (templates/plan.html.j2). Its first part has one page as long as its white space can be reduced;
the print never shrinks."""

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
    """A section's picture, with the characters that can be shown there."""
    if drawn is None:
        return None
    if isinstance(drawn, Machines):
        svg = machines_chart(drawn, width, plot, font, family)
    else:
        svg = waterfall_chart(drawn, width, font, family)
    return Markup(shown(str(svg)))


def write_plan_pdf(page: PlanPage, options: Options) -> bytes:
    """The PDF's bytes, tagged as the sheet's. Raises PageError if something leaves its place, and MissingLibraryError
    if Pango is not installed."""
    with gc_paused():
        return lay_out(page, options.templates, options.brand).pdf(options.archive)


def lay_out(page: PlanPage, templates: Path, brand: Brand | None = None) -> Layout:
    """The plan with as much white as leaves its first part on one page, then with a lower chart; where there is none it
    goes on overleaf."""
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
