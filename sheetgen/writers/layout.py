"""The page's layout: the bundled fonts (templates/fonts) and the widths of texts in them, the spacings, and the
letterhead. The print has one size however full a page is; longer content continues on another page.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sheetgen.report.page import Text

if TYPE_CHECKING:  # which loads the catalogs' schemas, and most sheets have no brand
    from sheetgen.brand import Brand

PAGE = {"heading": "#17212B", "accent": "#24476F"}  # the page's colours, where a brand names none
FONTS = {400: "Inter-Regular.otf", 600: "Inter-SemiBold.otf", 700: "Inter-Bold.otf"}  # weight: file
FAMILY = "Sheetgen Inter"  # a name of our own, so that an installed Inter is never used instead


@cache
def _advances(font: Path) -> dict[str, float]:
    """The width in em of each character of a font, with tabular figures (scripts/make_fonts.py)."""
    widths: dict[str, float] = json.loads(font.with_suffix(".json").read_text(encoding="utf-8"))
    return widths


def width_em(text: Text, font: Path) -> float:
    """The width of `text` on one line, in em."""
    advances = _advances(font)
    return sum(advances.get(char, 0.6) for char in str(text))


@cache
def drawable_with(font: Path) -> Callable[[str], str]:
    """A function that makes a text drawable with this font: a missing character becomes its plain form, or `?`.

    So other scripts, emoji and control characters never bring in an installed font, which differs between machines.
    """
    characters = _advances(font).keys()

    def plain(char: str) -> str:
        simple = "".join(c for c in unicodedata.normalize("NFKD", char) if c in characters)
        return " " if char.isspace() else simple or "?"

    return lambda text: "".join(char if char in characters else plain(char) for char in text)


def undrawable(text: str, font: Path) -> str:
    """The characters of `text` that become `?`, each once."""
    drawable = drawable_with(font)
    return "".join(char for char in dict.fromkeys(text) if char != "?" and drawable(char) == "?")


class Spacing(NamedTuple):
    """The white space of a page in points; the print is never smaller than 8.5."""

    pad: float  # above and below the text of a table's cell
    gap: float  # above a section
    large: float  # the size of the answers


TEXT = SMALL = 8.5  # points: of text, and of tables and all else
PLAN_SMALL = 8.0  # of a plan's tables: larger ones do not fit its first page
SPACINGS = (
    Spacing(2.4, 11.0, 14.0),
    Spacing(1.7, 9.0, 13.0),
    Spacing(1.0, 7.0, 12.0),
    Spacing(0.4, 5.0, 11.0),
    Spacing(0.0, 3.0, 10.0),
)


class Step(NamedTuple):
    """A layout of the sizing sheet to try; has_machines, has_ways: with the machines to rent, and ways to pay less."""

    spacing: Spacing
    has_machines: bool = True
    has_ways: bool = True


class EngineersStep(NamedTuple):
    """A layout of the part for engineers to try; has_commands: with the command that prints each model's memory.
    has_bench: with that of the measurement, else its load alone."""

    spacing: Spacing
    has_commands: bool = True
    has_bench: bool = True


STEPS = (*map(Step, SPACINGS), Step(SPACINGS[-1], has_machines=False), Step(SPACINGS[-1], False, False))
ENGINEERS_STEPS = (
    *map(EngineersStep, SPACINGS),
    EngineersStep(SPACINGS[2], has_commands=False),
    EngineersStep(SPACINGS[-1], has_commands=False),
    EngineersStep(SPACINGS[-1], has_commands=False, has_bench=False),
)
REQUEST_SPACINGS = (  # of the request; `large` is the size of the prices
    Spacing(4.0, 19.0, 28.0),
    Spacing(3.0, 15.0, 27.0),
    Spacing(2.0, 11.0, 25.0),
    Spacing(1.2, 8.0, 22.0),
    Spacing(0.4, 5.0, 18.0),
)
# By paper and number of models, what most pages end with, as each further layout takes time: the indices in STEPS and
# in ENGINEERS_STEPS; of a grid of several loads, and of one load alone, whose rows are half as high.
_TRIED_FIRST = {
    "a4": ((1, 0), (3, 1), (2, 3), (4, 1), (5, 3), (1, 1), (1, 1), (1, 1)),
    "letter": ((2, 0), (4, 2), (3, 4), (5, 2), (6, 4), (1, 2), (1, 2), (1, 2)),
}
_TRIED_FIRST_OF_A_LOAD = {
    "a4": ((1, 0), (0, 2), (0, 4), (2, 2), (2, 3), (0, 0), (0, 1), (0, 1)),
    "letter": ((2, 0), (0, 3), (1, 4), (3, 3), (3, 4), (0, 0), (0, 1), (0, 2)),
}


def tried_first(n_models: int, n_loads: int, paper: str) -> tuple[int, int]:
    """The indices in STEPS and in ENGINEERS_STEPS of the layout to try first."""
    by_paper = _TRIED_FIRST_OF_A_LOAD if n_loads == 1 else _TRIED_FIRST
    return by_paper.get(paper, by_paper["a4"])[n_models - 1]


MOST_ON_A_PAGE = 5  # models; a sheet of more takes several pages


LOGO = "logo.png"  # its name among the page's assets
LOGO_BOX = (120.0, 18.5)  # points: the largest logo, a little lower than the title's line
NAME_SIZES = ((10.0, 1.0), (8.0, 9.0))  # points, and the most lines of a name at that size
TITLE_SIZE = 17.0  # of h1, in one_page.css
GAP = 6.0  # points between name and logo
_FAR = 14.0  # points between the title and the name
_KERNED = 1.02  # factor for kerning and rounding


def page_colors(brand: Brand | None) -> dict[str, str]:
    """The page's colours by name, with those of a brand in place of its own."""
    return PAGE | (brand.colors.model_dump(exclude_none=True) if brand else {})


def letterhead(brand: Brand, title: str, content: float, fonts: Path) -> dict[str, object]:
    """The template variables of the brand at the top of the page: logo at the right, name before it. Sizes in points.

    The title is at the left of the same line of `content` points; the name has the width between.
    """
    logo = None
    left = content - width_em(title, fonts / FONTS[700]) * TITLE_SIZE - _FAR
    if brand.logo is not None:
        width, height = brand.logo.within(*LOGO_BOX)
        logo = {"src": f"asset:{LOGO}", "width": round(width, 2), "height": round(height, 2)}
        left -= width + GAP
    left = max(left, content / 4)
    ems = width_em(brand.name, fonts / FONTS[600]) * _KERNED
    size = next(points for points, lines in NAME_SIZES if points * ems <= lines * left or points == NAME_SIZES[-1][0])
    return {"size": size, "width": round(min(size * ems, left), 2), "gap": GAP, "logo": logo}
