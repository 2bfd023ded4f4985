"""The page as HTML, before it is a PDF: templates/one_page.html.j2 and one_page.css filled in.

Everything that comes from a catalog is text: Jinja2 escapes it, characters that the bundled fonts do not have are
replaced, and a link is drawn only where it is http or https.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sheetgen.brand import Brand
from sheetgen.brand.colors import PAGE
from sheetgen.errors import PageError
from sheetgen.sheet.one_page import OnePage
from sheetgen.writers import svg
from sheetgen.writers.columns import PAD, column_widths, instance_name
from sheetgen.writers.density import DENSITIES, MOST_BESIDE_WORKLOAD, WIDE_MODELS, Density
from sheetgen.writers.fonts import FAMILY, FONTS, drawable_with, font_url, width_em
from sheetgen.writers.letterhead import letterhead

if TYPE_CHECKING:
    from jinja2 import Environment

PAPERS = {"a4": (595.28, 841.89), "letter": (612.0, 792.0)}  # width and height, points
MARGIN_X, MARGIN_Y = 26.0, 20.0  # points
GUTTER = 16.0  # points between two halves
INSTANCE_COLUMNS = ("instance", "gpus", "memory", "hourly", "where", "date", "used")
LEAST_WORDS = 5.0  # em: what a column of words keeps where room is short
MOST_WHEN = 42.0  # em: dates and precisions at the head of the page; longer ones break
LEVER_COLUMNS = ("lever-rent", "lever-money", "saving")
MARKS = {"fits": "✓", "tight": "▲", "none": "✗", "over": "✗"}  # a status without its colour


def render_html(
    page: OnePage,
    *,
    templates: Path,
    density: Density = DENSITIES[1],
    embed_fonts: bool = True,
    extra_height: float = 0.0,
    brand: Brand | None = None,
) -> str:
    """The page as one HTML document.

    With `embed_fonts` it stands alone (fonts and logo inside, base64); without, it asks for `asset:<file>`.
    `extra_height` (points) makes the paper taller, to measure how much a page needs.
    """
    from markupsafe import Markup

    if page.paper not in PAPERS:
        raise PageError(f"paper {page.paper!r} is not known. Use one of: {', '.join(PAPERS)}.")
    drawable = drawable_with(templates / "fonts" / FONTS[400])
    width, height = PAPERS[page.paper]
    content = width - 2 * MARGIN_X
    half = (content - GUTTER) / 2
    crowded = len(page.models) > MOST_BESIDE_WORKLOAD
    shown = replace(page, instances=page.instances[: density.n_instances], levers=page.levers[: density.n_levers])
    widths = column_widths(shown, templates / "fonts" / FONTS[400], templates / "fonts" / FONTS[700])
    bar_width = density.text * 12 if density.compact else half - density.small * widths["usable"] - density.text * 0.4
    main_width = _main_width(widths, density, content)
    longest = max((max(b.capacity_bytes or 0, svg.needed(b)) for b in page.bars), default=0.0)
    most = max((f.full_attention_bytes for f in page.models), default=0.0)
    return (
        _environment(templates)
        .get_template("one_page.html.j2")
        .render(
            page=page,
            css=Markup((templates / "one_page.css").read_text(encoding="utf-8")),
            faces=[(weight, Markup(font_url(templates, name, embed_fonts))) for weight, name in FONTS.items()],
            family=Markup(FAMILY),
            brand=brand,
            when_width=_when_width(page, templates / "fonts"),
            letterhead=letterhead(brand, page.title, content, templates / "fonts", embed=embed_fonts)
            if brand
            else None,
            colors=PAGE | (brand.colors.model_dump(exclude_none=True) if brand else {}),
            main_width=main_width,
            d=asdict(replace(density, abreast=2) if crowded else density),
            widths=widths,
            paper={
                "width": width,
                "height": height + extra_height,
                "x": MARGIN_X,
                "y": MARGIN_Y,
                "gutter": GUTTER,
            },
            crowded=crowded,
            wide=len(page.models) <= WIDE_MODELS,
            day=_day(page.as_of),
            marks=MARKS,
            memory_bars=[
                svg.stacked_bar(b, f"{drawable(b.model)}: ", longest, width=bar_width, height=density.text * 0.8)
                for b in page.bars
            ],
            kv_bars=[
                svg.pair_bar(
                    f.kv_per_token_bytes,
                    f.full_attention_bytes,
                    most,
                    drawable(f"{f.name}: {f.kv_per_token} a token, {f.full_attention_per_token} with full attention"),
                    width=3.2 * density.text,
                    height=density.text * 0.8,
                )
                for f in page.models
            ],
            instances=shown.instances,
            levers=shown.levers,
            n_instances_more=len(page.instances) - len(shown.instances),
            sources=[(s.text, s.web_url) for s in page.sources],
        )
    )


def _when_width(page: OnePage, fonts: Path) -> float:
    """How wide the dates and precisions at the head of the page are, in em: the question has what they leave."""
    dates = width_em(page.as_of, fonts / FONTS[600]) + width_em(f" · {page.price_banner}", fonts / FONTS[400])
    return round(min(max(dates, width_em(page.precision_line, fonts / FONTS[400])) + 0.5, MOST_WHEN), 2)


def _main_width(widths: dict[str, float], density: Density, content: float) -> float:
    """How wide the list of instances is, in points, the levers beside it; narrows `widths` where both lack room.

    Then "used for" gives way first, which has what the others leave, and after it "where".
    """
    em = density.small
    wanted = sum(widths[name] for name in INSTANCE_COLUMNS) * em
    least = wanted - sum(max(widths[name] - LEAST_WORDS, 0.0) for name in ("used", "where")) * em
    levers = (sum(widths[name] for name in LEVER_COLUMNS) - PAD) * em
    room = content - GUTTER - min(max(levers, 0.25 * content), 0.4 * content)
    width = min(max(wanted, 0.55 * content), max(room, min(least, 0.75 * content)))
    lacking = (wanted - width) / em - (widths["used"] - LEAST_WORDS)
    widths["where"] -= min(max(lacking, 0.0), max(widths["where"] - LEAST_WORDS, 0.0))
    return width


@cache
def _environment(templates: Path) -> Environment:
    """Jinja2, strict: every value is escaped, an unknown name is an error, and all text can be drawn."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    drawable = drawable_with(templates / "fonts" / FONTS[400])

    def finalize(value: Any) -> Any:
        return _tied(drawable(value)) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["instance_name"] = instance_name
    environment.filters["breakable"] = lambda text: _breakable(drawable(text))
    return environment


def _day(as_of: str) -> str | None:
    """`as_of` where it is a date, for the metadata."""
    try:
        return datetime.date.fromisoformat(as_of).isoformat()
    except ValueError:
        return None


def _tied(text: str) -> str:
    """`text` with its arrows kept on the line of the word before them."""
    return re.sub(r" ([↑↓])", "\u00a0\\1", text)


def _breakable(text: str) -> Any:
    """`text`, escaped, that may break after an underscore (Standard_ND96isr_H100_v5) and nowhere odd."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in text.split("_"))
