"""The plan as a PDF (templates/plan.html.j2). Its first part has one page as long as its white space can be reduced;
the print never shrinks."""

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
    """The plan's pictures by name, and one per service in `demands`; `shown` replaces characters without a glyph."""
    drawn = {
        "machines": machines_chart(page.machines, width, plot, font, family),
        "waterfall": page.waterfall and waterfall_chart(page.waterfall, width, font, family),
    }
    demands = [demand_chart(service.demand, width, OF_SERVICE, font, family) for service in page.services]
    of_services = [Markup(shown(str(chart))) for chart in demands]
    return {name: chart and Markup(shown(str(chart))) for name, chart in drawn.items()} | {"demands": of_services}


def write_plan_pdf(page: PlanPage, options: Options) -> bytes:
    """The PDF's bytes, tagged as the sheet's. Raises PageError if something leaves its place, and MissingLibraryError
    if Pango is not installed."""
    with gc_paused():
        return lay_out(page, options.templates, options.brand).pdf(options.archive)


def lay_out(page: PlanPage, templates: Path, brand: Brand | None = None) -> Layout:
    """The plan with the largest spacing at which its first part fits on one page; else it takes several."""
    font = templates / "fonts" / FONTS[400]
    width = html.PAPERS[page.paper][0] - 2 * html.MARGIN_X
    drawn = pictures(page, font, width, PLOT, FAMILY, drawable_with(font))  # the same for every spacing
    template = html.print_environment(templates).get_template(TEMPLATE)

    def laid(spacing: Spacing, *, apart: bool = True, is_first: bool = False) -> Layout:
        """The plan laid out. apart: the rest begins on a new page after the first part; is_first: that part alone."""
        text = template.render(
            page=page,
            apart=apart,
            is_first=is_first,
            sources=_sources(page),
            **html.on_paper(page.title, page.paper, templates, spacing, brand) | {"small": PLAN_SMALL},
            **drawn,
        )
        return laid_out(text, templates, spacing, brand)

    # The first part is tried alone: laying out all pages of a large plan takes seconds.
    spacing = next((candidate for candidate in SPACINGS if laid(candidate, is_first=True).is_whole), None)
    layout = laid(SPACINGS[-1] if spacing is None else spacing, apart=spacing is not None)
    if layout.problems:
        raise PageError(f"The {page.paper} plan cannot be drawn: {layout.problems[0]}.")
    return layout


def _sources(page: PlanPage) -> list[tuple[str, str | None]]:
    return [(source.text, source.web_url) for source in page.sources]
