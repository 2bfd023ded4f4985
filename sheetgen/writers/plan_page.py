"""The plan as a PDF (templates/plan.html.j2). Its first part has one page as long as the white between things can give
way; the print never shrinks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sheetgen.brand import Brand
from sheetgen.errors import PageError
from sheetgen.plan.pages import PlanPage
from sheetgen.writers import html
from sheetgen.writers.formats import Options, gc_paused
from sheetgen.writers.layout import FAMILY, FONTS, PLAN_SMALL, SPACINGS, Spacing, drawable_with
from sheetgen.writers.pdf import Layout, laid_out
from sheetgen.writers.plan_pictures import demand_chart, machines_chart, waterfall_chart

TEMPLATE = "plan.html.j2"
PLOT = 100.0  # points: the height of the chart without key and figures, 35 mm
OF_SERVICE = 80.0  # points: the height of a service's demand


def pictures(
    page: PlanPage, font: Path, width: float, plot: float, family: str, shown: Callable[[str], str]
) -> dict[str, Any]:
    """The pictures, with the characters that can be shown there: of the services one each."""
    drawn = {
        "machines": machines_chart(page.machines, width, plot, font, family),
        "waterfall": page.waterfall and waterfall_chart(page.waterfall, width, font, family),
    }
    demands = [demand_chart(one.demand, width, OF_SERVICE, font, family) for one in page.services]
    of_services = [Markup(shown(str(one))) for one in demands]
    return {name: one and Markup(shown(str(one))) for name, one in drawn.items()} | {"demands": of_services}


def write_plan_pdf(page: PlanPage, options: Options) -> bytes:
    """The PDF's bytes, tagged as the sheet's. Raises PageError where something leaves its place, and
    MissingLibraryError where Pango is not installed."""
    with gc_paused():
        return lay_out(page, options.templates, options.brand).pdf(options.archive)


def lay_out(page: PlanPage, templates: Path, brand: Brand | None = None) -> Layout:
    """The plan with as much white as leaves its first part on one page; where there is none it goes on overleaf."""
    font = templates / "fonts" / FONTS[400]
    width = html.PAPERS[page.paper][0] - 2 * html.MARGIN_X
    drawn = pictures(page, font, width, PLOT, FAMILY, drawable_with(font))  # the same whatever white is between things
    template = html.print_environment(templates).get_template(TEMPLATE)

    def laid(spacing: Spacing, *, apart: bool = True, is_first: bool = False) -> Layout:
        """`apart`: what is behind the first part begins on its own page; `is_first`: the first part alone."""
        text = template.render(
            page=page,
            apart=apart,
            is_first=is_first,
            sources=_sources(page),
            **html.on_paper(page.title, page.paper, templates, spacing, brand) | {"small": PLAN_SMALL},
            **drawn,
        )
        return laid_out(text, templates, spacing, brand)

    # The first part is laid out by itself until it fits: all pages of a large plan take seconds.
    spacing = next((one for one in SPACINGS if laid(one, is_first=True).is_whole), None)
    found = laid(SPACINGS[-1] if spacing is None else spacing, apart=spacing is not None)
    if found.problems:
        raise PageError(f"The {page.paper} plan cannot be drawn: {found.problems[0]}.")
    return found


def _sources(page: PlanPage) -> list[tuple[str, str | None]]:
    return [(one.text, one.web_url) for one in page.sources]
