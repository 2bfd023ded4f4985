"""The page as one HTML file for a screen, phone or desktop: templates/page.html.j2 and page.css filled in.

It stands alone: no script, no fonts or pictures of the network, a policy in its head that refuses them. Everything
that comes from a catalog is text: Jinja2 escapes it, and a link is drawn only where it is http or https.
"""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sheetgen.brand import Brand
from sheetgen.brand.colors import page_colors
from sheetgen.sheet.page import Page
from sheetgen.sheet.tables import MARKS
from sheetgen.writers import svg
from sheetgen.writers.formats import Options
from sheetgen.writers.strict import breakable, strict_environment, style, tied, visible

if TYPE_CHECKING:
    from jinja2 import Environment

LOGO_BOX = (160.0, 36.0)  # CSS pixels
BAR = (330.0, 14.0)  # width and height of a bar, before it is stretched
CURVE, SCALE = (240.0, 100.0), 24.0  # a curve, and the width of its scale: a phone makes its figures about 10 px
FAMILY = "inherit"  # the figures of pictures in the page's own font


def write_web(page: Page, options: Options) -> bytes:
    """The page as one HTML document, in a company's brand where there is one."""
    templates, brand = options.templates, options.brand
    axes = svg.axes_of(page.breaks, [(block.context_tokens, visible(block.context)) for block in page.matrix])
    html = _environment(templates).get_template("page.html.j2").render(
        page=page, css=style(templates, "page.css"), colors=page_colors(brand.colors if brand else None), brand=brand,
        logo=_logo(brand) if brand else None, marks=MARKS,
        bars=[[_bar(bar) for bar in of_model] for of_model in page.bars],
        scale=svg.scale(axes, width=SCALE, height=CURVE[1], family=FAMILY),
        curves=[_curve(b, axes) for b in page.breaks], sources=[(s.text, s.web_url) for s in page.sources],
    )  # fmt: skip
    return html.encode()


def _bar(bar: Any) -> dict[str, Any]:
    """A bar, stretched to the width that there is."""
    drawn = svg.stacked_bar(bar, f"{bar.model}, {bar.workload} {bar.context}: ", width=BAR[0], height=BAR[1])
    return {"bar": bar, "picture": _picture(str(drawn).replace("<svg ", '<svg preserveAspectRatio="none" ', 1))}


def _curve(b: Any, axes: svg.Axes) -> Any:
    title = f"{b.model}: {b.next_request}; {b.longest_fit}"
    return _picture(svg.curve(b, axes, title, width=CURVE[0], height=CURVE[1], family=FAMILY))


def _picture(drawn: str) -> Any:
    """A picture, whose words are escaped already, without what has no shape."""
    from markupsafe import Markup

    return Markup(visible(str(drawn)))


def _logo(brand: Brand) -> dict[str, Any] | None:
    """The logo inside the file, and its size."""
    from markupsafe import Markup

    if brand.logo is None:
        return None
    width, height = brand.logo.within(*LOGO_BOX)
    data = base64.b64encode(brand.logo.png).decode("ascii")
    return {"src": Markup(f"data:image/png;base64,{data}"), "width": round(width), "height": round(height)}


@cache
def _environment(templates: Path) -> Environment:
    """The templates; all text has a shape."""
    environment = strict_environment(templates, lambda text: tied(visible(text)))
    environment.filters["breakable"] = lambda text: breakable(tied(visible(str(text))), "_/")
    return environment
