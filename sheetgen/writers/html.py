"""The page as HTML, before it is a PDF: templates/one_page.html.j2 and one_page.css filled in.

Everything that comes from a catalog is text: Jinja2 escapes it, characters that the bundled fonts do not have are
replaced, and a link is drawn only where it is http or https.
"""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sheetgen.errors import PageError
from sheetgen.sheet.one_page import OnePage
from sheetgen.writers import svg
from sheetgen.writers.columns import column_widths, instance_name

FONTS = {400: "Inter-Regular.otf", 600: "Inter-SemiBold.otf", 700: "Inter-Bold.otf"}  # weight: file
FAMILY = "Sheetgen Inter"  # a name of our own, so that an Inter of the system is never taken instead
PAPERS = {"a4": (595.28, 841.89), "letter": (612.0, 792.0)}  # width and height, points
MARGIN_X, MARGIN_Y = 26.0, 20.0  # points
GUTTER = 16.0  # points between two halves
INSTANCE_COLUMNS = ("instance", "gpus", "memory", "hourly", "where", "date", "used")
MARKS = {"fits": "✓", "tight": "▲", "none": "✗", "over": "✗"}  # a status without its colour
WIDE_MODELS = 3  # up to here a model has three columns and a card; above, two lines in one column and a row
MOST_BESIDE_WORKLOAD = 5  # models that leave room for a column of workloads; above, they are headings between rows


@dataclass(frozen=True)
class Density:
    """How tightly the page is set. All sizes in points; `n_*` is how many rows a list shows, the rest is counted."""

    name: str
    text: float
    small: float
    head: float  # section headings
    pad: float  # above and below the text of a table cell
    gap: float  # above a section
    leading: float  # line height over text size
    n_instances: int
    n_levers: int
    compact: bool = False  # one line a model where there were two
    abreast: int = 1  # answers beside one another, where there are rows and not cards
    symptoms: bool = True  # what each death looks like, beside its bill

    def stretched(self, pad: float, gap: float) -> Density:
        """The same with `pad` points more in each cell, above and below, and `gap` more above each section."""
        return replace(self, pad=self.pad + pad, gap=self.gap + gap)


DENSITIES = (
    Density("roomy", 9.0, 8.0, 10.0, 1.7, 10.0, 1.3, 12, 6),
    Density("normal", 8.4, 7.6, 9.5, 1.4, 9.0, 1.28, 12, 5),
    Density("dense", 7.9, 7.3, 9.0, 1.0, 7.0, 1.22, 12, 5),
    Density("denser", 7.5, 7.0, 8.5, 0.5, 5.0, 1.17, 10, 4),
    Density("compact", 7.5, 7.0, 8.5, 0.5, 4.5, 1.17, 8, 4, compact=True),
    Density("tight", 7.2, 7.0, 8.0, 0.3, 4.0, 1.15, 8, 4, compact=True),
    Density("tighter", 7.0, 7.0, 8.0, 0.1, 3.5, 1.12, 5, 3, compact=True),
    Density("tightest", 7.0, 7.0, 8.0, 0.1, 3.0, 1.12, 5, 2, compact=True, symptoms=False),
    Density("last", 7.0, 7.0, 8.0, 0.1, 3.0, 1.12, 0, 0, compact=True, abreast=2, symptoms=False),
)
USUAL = {True: 4, False: 6}  # where in DENSITIES a page of up to WIDE_MODELS models lands, and one of more


def render_html(
    page: OnePage,
    *,
    templates: Path,
    density: Density = DENSITIES[1],
    embed_fonts: bool = True,
    extra_height: float = 0.0,
) -> str:
    """The page as one HTML document.

    With `embed_fonts` it stands alone (the fonts inside, base64); without, it asks for `asset:<font file>`.
    `extra_height` (points) makes the paper taller, to measure how much a page needs.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    if page.paper not in PAPERS:
        raise PageError(f"paper {page.paper!r} is not known. Use one of: {', '.join(PAPERS)}.")
    drawable = _drawable(templates / "fonts" / FONTS[400])

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
    width, height = PAPERS[page.paper]
    content = width - 2 * MARGIN_X
    half = (content - GUTTER) / 2
    crowded = len(page.models) > MOST_BESIDE_WORKLOAD
    widths = column_widths(page, templates / "fonts" / FONTS[400], templates / "fonts" / FONTS[700])
    bar_width = density.text * 12 if density.compact else half - density.small * widths["usable"] - density.text * 0.4
    instances_width = sum(widths[name] for name in INSTANCE_COLUMNS) * density.small
    longest = max((max(b.capacity_bytes or 0, svg.needed(b)) for b in page.bars), default=0.0)
    most = max((f.full_attention_bytes for f in page.models), default=0.0)
    return environment.get_template("one_page.html.j2").render(
        page=page,
        css=Markup((templates / "one_page.css").read_text(encoding="utf-8")),
        faces=[(weight, Markup(_font_url(templates, name, embed_fonts))) for weight, name in FONTS.items()],
        family=Markup(FAMILY),
        main_width=min(max(instances_width, 0.55 * content), 0.74 * content),
        d=asdict(replace(density, abreast=2) if crowded else density),
        widths=widths,
        paper={"width": width, "height": height + extra_height, "x": MARGIN_X, "y": MARGIN_Y, "gutter": GUTTER},
        crowded=crowded,
        wide=len(page.models) <= WIDE_MODELS,
        day=_day(page.as_of),
        marks=MARKS,
        memory_bars=[
            svg.stacked_bar(
                b, f"{drawable(b.model)}: ", longest, width=bar_width, height=density.text * 0.8
            ) for b in page.bars
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
        instances=page.instances[: density.n_instances],
        levers=page.levers[: density.n_levers],
        n_instances_more=max(0, len(page.instances) - density.n_instances),
        sources=[(s.text, s.url if _is_web(s.url) else None) for s in page.sources],
    )


def _is_web(url: str | None) -> bool:
    """Whether `url` is a plain http or https address."""
    if not url or any(c.isspace() or not c.isprintable() for c in url):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _day(as_of: str) -> str | None:
    """`as_of` where it is a date, for the metadata."""
    try:
        return datetime.date.fromisoformat(as_of).isoformat()
    except ValueError:
        return None


def _font_url(templates: Path, name: str, embed: bool) -> str:
    if not embed:
        return f"asset:{name}"
    data = base64.b64encode((templates / "fonts" / name).read_bytes()).decode("ascii")
    return f"data:font/otf;base64,{data}"


def _tied(text: str) -> str:
    """`text` with its arrows kept on the line of the word before them."""
    return re.sub(r" ([↑↓])", "\u00a0\\1", text)


def _breakable(text: str) -> Any:
    """`text`, escaped, that may break after an underscore (Standard_ND96isr_H100_v5) and nowhere odd."""
    from markupsafe import Markup, escape

    return Markup("_<wbr>").join(escape(part) for part in text.split("_"))


@cache
def _drawable(font: Path) -> Callable[[str], str]:
    """What makes a text drawable with the bundled fonts alone: a character they lack becomes its plain form, or `?`.

    So a name in another script, an emoji or a control character can never bring in a font of the system, which would
    differ from machine to machine.
    """
    import unicodedata

    from fontTools.ttLib import TTFont

    known = frozenset(map(chr, TTFont(font, lazy=True).getBestCmap()))

    def drawable(text: str) -> str:
        if known.issuperset(text):
            return text
        plain = []
        for char in text:
            if char in known:
                plain.append(char)
            elif char.isspace():
                plain.append(" ")
            else:
                simple = "".join(c for c in unicodedata.normalize("NFKD", char) if c in known)
                plain.append(simple or "?")
        return "".join(plain)

    return drawable
