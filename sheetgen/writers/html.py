"""The page as HTML, from which the PDF is made (templates/one_page.html.j2), and the filters of all HTML pages.

Everything from a catalog is text: Jinja2 escapes it, unknown names are errors, characters that cannot be drawn are
replaced, and only http and https links are drawn.
"""

from __future__ import annotations

import base64
import datetime
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from sheetgen.errors import PageError
from sheetgen.report.page import Cell, Page, Text, capital
from sheetgen.writers import layout, pictures
from sheetgen.writers.layout import (
    ENGINEERS_STEPS,
    FONTS,
    REQUEST_SPACINGS,
    SPACINGS,
    EngineersStep,
    Spacing,
    drawable_with,
    page_colors,
    width_em,
)

if TYPE_CHECKING:
    from jinja2 import Environment

    from sheetgen.brand import Brand

PAPERS = {"a4": (595.28, 841.89), "letter": (612.0, 792.0)}  # width and height, points
MARGIN_X, MARGIN_Y = 30.0, 18.0  # points
TITLE_SIZES = (13.0, 16.5)  # points
GRID_HEAD, LEAST_LOADS = 62.0, 4  # points and columns, as in one_page.html.j2
GRID_PAD, GRID_TIGHT = 0.71, 0.025  # em: before a cell, and negative letter spacing, as in one_page.css
COMMAND_PAD = 4.0  # points beside a command, as in one_page.css
REQUEST_X, REQUEST_Y = 51.0, {"a4": 40.0, "letter": 32.0}  # points: margins of the request


def render_html(
    page: Page,
    *,
    templates: Path,
    spacing: Spacing = SPACINGS[0],
    engineers: EngineersStep = ENGINEERS_STEPS[-1],
    of_request: Spacing = REQUEST_SPACINGS[0],
    brand: Brand | None = None,
    has_machines: bool = True,
    has_ways: bool = True,
    has_sheet: bool = True,
    has_overleaf: bool = False,
) -> str:
    """The page as one HTML document, which refers to its fonts and the logo as `asset:<file>`.

    spacing, of_request, engineers: white space of the sheet, of the request before it, and of the page for engineers.
    has_machines: the sheet, not the page for engineers, lists the machines to rent. has_ways: with a line per model on
    cheaper ways. has_sheet: false for the request alone. has_overleaf: the part for engineers takes two pages.
    """
    if page.paper not in PAPERS:
        raise PageError(f"paper {page.paper!r} is not known. Use one of: {', '.join(PAPERS)}.")
    width, _ = PAPERS[page.paper]
    content = width - 2 * MARGIN_X
    colors = page_colors(brand)
    return (
        print_environment(templates)
        .get_template("one_page.html.j2")
        .render(
            page=page,
            **on_paper(page.title, page.paper, templates, spacing, brand),
            day=_day(page.as_of),
            grid_loads=page.grid_loads,
            has_machines=has_machines,
            has_ways=has_ways,
            h1=_title_size(str(page.finding), content, templates / "fonts" / FONTS[700]),
            load_ems=(content - GRID_HEAD) / max(len(page.grid_loads), LEAST_LOADS) / layout.SMALL - GRID_PAD,
            e=engineers.spacing,
            has_commands=engineers.has_commands,
            has_bench=engineers.has_bench,
            command_ems=(content - 2 * COMMAND_PAD) / layout.SMALL,
            has_sheet=has_sheet,
            has_overleaf=has_overleaf or len(page.models) > layout.MOST_ON_A_PAGE,
            sources=[(s.text, s.web_url) for s in page.sources_in_use],
            **pictures.pictures_of(page.replicas),
            request={"x": REQUEST_X, "y": REQUEST_Y[page.paper], "s": of_request},
            ranges=(
                pictures.range_bars(page.request, of_request.pad, colors["accent"], layout.FAMILY)
                if page.has_request and page.request.movers
                else None
            ),
        )
    )


def on_paper(title: str, paper: str, templates: Path, spacing: Spacing, brand: Brand | None) -> dict[str, object]:
    """The template variables of every printed page: style, fonts, size, spacing and brand."""
    width, height = PAPERS[paper]
    content = width - 2 * MARGIN_X
    return {
        "css": Markup((templates / "one_page.css").read_text(encoding="utf-8")),
        "brand": brand,
        "faces": [(weight, Markup(f"asset:{name}")) for weight, name in FONTS.items()],
        "family": Markup(layout.FAMILY),
        "letterhead": layout.letterhead(brand, title, content, templates / "fonts") if brand else None,
        "colors": page_colors(brand),
        "s": spacing,
        "text": layout.TEXT,
        "small": layout.SMALL,
        "paper": {"width": width, "height": height, "x": MARGIN_X, "y": MARGIN_Y},
    }


@cache
def print_environment(templates: Path) -> Environment:
    """The environment of the printed pages' templates, with filters; all text is drawable with the bundled fonts."""
    drawable = drawable_with(templates / "fonts" / FONTS[400])
    environment = strict_environment(templates, lambda text: tied(drawable(text)))
    plain, bold = (templates / "fonts" / FONTS[weight] for weight in (400, 700))
    environment.filters |= {
        "within": lambda text, ems: _within(drawable(text), ems, bold),
        "breakable": lambda text: breakable(drawable(str(text))),
        "short": without_code,
        "commands": lambda lines, ems: Markup("\n").join(
            _continued(drawable(line), ems, templates / "fonts" / FONTS[400]) for line in lines
        ),
        "text_ems": lambda text: _grid_ems(text, plain),
        "bold_ems": lambda text: _grid_ems(text, bold),
        "day": _day_words,
        "capital": capital,
        "amounts": lambda text: _bold_amounts(drawable(str(text))),
        "in_two": lambda text, longest: parted(drawable(str(text)), longest),
    }
    return environment


def _day_words(day: str) -> str:
    """A date in words: 20 July 2026; any other text unchanged."""
    try:
        date = datetime.date.fromisoformat(day)
    except ValueError:
        return day
    return f"{date.day} {date:%B %Y}"


def _day(as_of: str) -> str | None:
    """`as_of` as an ISO date for the metadata; None if it is no date."""
    try:
        return datetime.date.fromisoformat(as_of).isoformat()
    except ValueError:
        return None


def _title_size(title: str, content: float, font: Path) -> float:
    """The font size in points at which the title fits on one line, within TITLE_SIZES."""
    least, most = TITLE_SIZES
    return round(max(least, min(most, 0.98 * content / width_em(title, font))), 1)


def _within(text: str, ems: float, font: Path) -> str:
    """`text` no wider than `ems`; the middle is left out, as names differ at their ends."""
    kept = len(text)
    short = text
    while kept > 2 and width_em(short, font) > ems:
        kept -= 1
        short = f"{text[: (kept + 1) // 2].rstrip()}…{text[len(text) - kept // 2 :].lstrip()}"
    return short


def _grid_ems(text: Text, font: Path) -> float:
    """The width of `text` in the grid, in em."""
    return width_em(text, font) - GRID_TIGHT * len(str(text))


def _continued(line: str, ems: float, font: Path) -> str:
    """A shell command broken before flags into lines of the page's width, with backslashes, so that it can be
    pasted; a comment behind it that does not fit the last line has one of its own."""
    command, mark, comment = line.partition("  # ")
    lines: list[str] = []
    for word in re.split(r" (?=--|\$)", command):
        if lines and width_em(f"{lines[-1]} {word} \\", font) <= ems:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{'  ' * bool(lines)}{word}")
    text = " \\\n".join(lines)
    if not comment:
        return text
    before = "  " if width_em(f"{lines[-1]}{mark}{comment}", font) <= ems else "\n"
    return f"{text}{before}# {comment}"


_AMOUNT = re.compile(r"(?:[$€£¥]|\b(?!PRO )[A-Z]{3}[ \u00a0])[\d,.]*\d[kMB]?")  # of RTX PRO 6000 is none


def _bold_amounts(text: str) -> Markup:
    """`text` with its amounts of money in bold."""
    return Markup(_AMOUNT.sub(lambda amount: f"<b>{amount[0]}</b>", str(escape(text))))


_HYPHENED, LONGEST_WHOLE = re.compile(r"(?:--)?[\w.]+(?:-[\w.]+)*"), 24  # characters, less than a phone's width


def _unbroken(text: str) -> Markup:
    """`text` with its days, options (--max-concurrency) and short names with a digit behind a hyphen or a dot
    (2026-06-18, us-east-1, g7e.2xlarge) on one line each."""

    def whole(name: re.Match[str]) -> str:
        is_dated = "-" in name[0] and re.search(r"\d", name[0])
        is_named = name[0].startswith("--") or is_dated or _DOT_IN_A_NAME.search(name[0])
        is_whole = is_named and len(name[0]) <= LONGEST_WHOLE
        return f'<span style="white-space:nowrap">{name[0]}</span>' if is_whole else name[0]

    return Markup(_HYPHENED.sub(whole, str(escape(text))))


def without_code(text: Text) -> Text:
    """An amount without a currency code, for a narrow column under the currency's name; signs stay."""
    if isinstance(text, Cell) and text.display.prefix.endswith(" "):
        return replace(text, display=replace(text.display, prefix=""))
    return text


LOGO_BOX = (160.0, 36.0)  # CSS pixels


def web_logo(brand: Brand) -> dict[str, object] | None:
    """The logo as a data URL, with its size in CSS pixels; None without a logo."""
    if brand.logo is None:
        return None
    width, height = brand.logo.within(*LOGO_BOX)
    data = base64.b64encode(brand.logo.png).decode("ascii")
    return {"src": Markup(f"data:image/png;base64,{data}"), "width": round(width), "height": round(height)}


def strict_environment(folder: Path, clean: Callable[[str], str], **more: object) -> Environment:
    """The environment for a folder's templates, with the filter `unbroken`. Every text passes through `clean`, and is
    escaped unless `more` (Jinja2 options) says otherwise."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    def finalize(value: object) -> object:
        if isinstance(value, Cell):
            value = str(value)
        return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    options: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, **more}
    environment = Environment(loader=FileSystemLoader(folder), undefined=StrictUndefined, finalize=finalize, **options)
    environment.filters["unbroken"] = lambda text: _unbroken(clean(str(text)))
    return environment


def breakable(text: str) -> Any:
    """`text`, escaped, that may break after an underscore (Standard_ND96isr_H100_v5) and nowhere odd."""
    parts = (part for part in re.split("(_)", text) if part)
    return Markup("").join(escape(part) + Markup("<wbr>") * (part == "_") for part in parts)


_DOT_IN_A_NAME = re.compile(r"[a-z]\.\d")  # g7e.2xlarge, which a line would end in


def parted(text: str, longest: int) -> Any:
    """`text`, escaped, that may break after a slash, and within a word of more characters than its place has the width
    for; where it has a hyphen it breaks after that."""
    parts = re.findall(rf"[^\s/-]{{1,{longest}}}[/-]?|\s+|[/-]", text)
    may_break = (part.endswith("/") or len(part) >= longest for part in parts)
    return Markup("").join(
        (Markup('<span class="whole">{}</span>').format(part) if _DOT_IN_A_NAME.search(part) else escape(part))
        + Markup("<wbr>") * may
        for part, may in zip(parts, may_break, strict=True)
    )


def visible(text: str) -> str:
    """`text` without invisible characters (controls, writing directions, lone surrogates), and with plain spaces."""
    return "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")


def tied(text: str) -> str:
    """`text` with arrows and dots on the same line as the word before them."""
    return re.sub(r" ([↑↓·])", "\u00a0\\1", text)
