"""How the page is set: the bundled fonts (templates/fonts) and how wide a text is in them, how much white stands
between things, the columns of the table of every load, and the letterhead. The print has one size however full a page
is: what has no room continues on another page.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sheetgen.brand import Brand
from sheetgen.report.page import Page, Text, words

FONTS = {400: "Inter-Regular.otf", 600: "Inter-SemiBold.otf", 700: "Inter-Bold.otf"}  # weight: file
FAMILY = "Sheetgen Inter"  # a name of our own, so that an Inter of the system is never taken instead


@cache
def _advances(font: Path) -> dict[str, float]:
    """The width in em of each character that a font has, figures in their tabular form; scripts/make_fonts.py."""
    widths: dict[str, float] = json.loads(font.with_suffix(".json").read_text(encoding="utf-8"))
    return widths


def width_em(text: Text, font: Path) -> float:
    """The width of `text` on one line, in em."""
    advances = _advances(font)
    return sum(advances.get(char, 0.6) for char in str(text))


@cache
def drawable_with(font: Path) -> Callable[[str], str]:
    """What makes a text drawable with the bundled fonts alone: a character they lack becomes its plain form, or `?`.

    So a name in another script, an emoji or a control character can never bring in a font of the system, which would
    differ from machine to machine.
    """
    known = _advances(font).keys()

    def plain(char: str) -> str:
        simple = "".join(c for c in unicodedata.normalize("NFKD", char) if c in known)
        return " " if char.isspace() else simple or "?"

    return lambda text: "".join(char if char in known else plain(char) for char in text)


def undrawable(text: str, font: Path) -> str:
    """The characters of `text` that become `?`, each once."""
    drawable = drawable_with(font)
    return "".join(char for char in dict.fromkeys(text) if char != "?" and drawable(char) == "?")


class Spacing(NamedTuple):
    """How much white a page has, in points; the print is never smaller: text 8.5, tables and all else 8."""

    pad: float  # above and below the text of a table's cell
    gap: float  # above a section
    chart: float  # height of the curves of cost


TEXT, SMALL = 8.5, 8.0  # points
SPACINGS = (Spacing(1.7, 9.0, 165.0), Spacing(1.2, 7.0, 150.0), Spacing(0.5, 5.0, 124.0), Spacing(0.0, 3.5, 112.0))
_TRIED_FIRST = {"a4": (2, 1, 2, 2, 3, 1, 1, 1), "letter": (2, 2, 2, 3, 3, 1, 1, 1)}  # by models


def usual(n_models: int, paper: str) -> int:
    """The index in SPACINGS to try first: a right guess saves a layout."""
    return _TRIED_FIRST.get(paper, _TRIED_FIRST["a4"])[n_models - 1]


MOST_IN_LADDER = 3  # models beside one another with what to rent
MOST_SHORT = 5  # and without it, where the first page has room for all its loads
PADDING = 0.3  # em: either side of a cell's text, as in one_page.css; letters are set closer than measured


def points(font: Path, *texts: Text) -> float:
    """The width of a column that holds each of these on one line."""
    return round(SMALL * (max((width_em(text, font) for text in texts), default=0.0) + 2 * PADDING), 2)


def answer_columns(page: Page, bold: Path) -> list[float]:
    """The widths of what stands behind the names of what to rent: purchase classes, FP8, requests, speed."""
    cards = [one for one in page.cards if one.fits]
    summed = [page.total] if page.total and page.total.classes else []

    def classes(i: int) -> list[Text]:
        shown: list[Any] = [*cards, *summed]
        years = [words("{}{}", one.class_years[i], one.marks[i]) for one in shown if one.class_years]
        return [*(one.classes[i] for one in shown), *years]

    speeds = [text for one in cards for text in (one.token_time, one.first_token)]
    of_runs = "(80 % of runs)"  # behind a rate on a line of its own
    heads = (f"Speed{page.at_load}", of_runs) if page.is_rate else (f"Speed{page.at_load} {of_runs}",)
    return [
        *(points(bold, page.price_classes[i], *classes(i)) for i in page.shown_classes),
        points(bold, "at FP8", *(one.fp8_monthly for one in cards), *(one.fp8_monthly for one in summed)),
        points(bold, "at once", *(one.serves for one in cards)),
        points(bold, *heads, *speeds),
    ]


WIDEST_NAME = 78.0  # points: longer names take two lines


def name_column(page: Page, bold: Path) -> float:
    """The width of the models' names."""
    return min(WIDEST_NAME, points(bold, *(one.model for one in page.cards)))


def saving_column(page: Page, bold: Path) -> float:
    """The width of what the best changes save."""
    return points(bold, *(f"−{lever.saving}" for lever in page.best_levers))


class Ladder(NamedTuple):
    """Some models beside one another in the table of every load; widths in points. `full`: with what to rent."""

    models: range
    full: bool
    gutter: float
    kv: float
    money: float
    workload: float  # that of their names, which stand over the rows where there is what to rent


def _ladder(page: Page, models: range, full: bool, bold: Path) -> Ladder:
    """The columns of figures take what they need, and what to rent has the rest."""
    rows = [row for block in page.matrix for row in block.rows]
    cells = [row.cells[m] for row in rows for m in models]

    gutter = points(bold, "KV/token", *(row.tier for row in rows))
    kv = points(bold, "KV, GiB", *(cell.kv for cell in cells))
    month = points(bold, f"{page.sign}/month", *(cell.monthly for cell in cells))
    names = (word for block in page.matrix for word in (*block.workload.split(), block.context))
    return Ladder(models, full, gutter, kv, month, points(bold, *names))


def ladders(page: Page, bold: Path, *, short: bool = True) -> tuple[list[Ladder], list[Ladder]]:
    """The tables of every load on the first page, and those on further pages; `short`: whether there is room for one
    on the first page, which of many models lacks what to rent."""
    n = len(page.models)
    full = [_ladder(page, range(i, min(i + MOST_IN_LADDER, n)), True, bold) for i in range(0, n, MOST_IN_LADDER)]
    if n <= MOST_IN_LADDER:
        return (full, []) if short else ([], full)
    return ([_ladder(page, range(n), False, bold)] if short and n <= MOST_SHORT else []), full


LOGO = "logo.png"  # its name among the page's assets
LOGO_BOX = (120.0, 18.5)  # points: the most that the logo takes, a little less than the title's line
NAME_SIZES = ((10.0, 1.0), (8.0, 9.0))  # points, and the lines that a name may take at that size
TITLE_SIZE = 17.0  # of h1, in one_page.css
GAP = 6.0  # points between name and logo
_FAR = 14.0  # points between the title and the name
_KERNED = 1.02  # kerning and rounding


def letterhead(brand: Brand, title: str, content: float, fonts: Path) -> dict[str, Any]:
    """A brand at the head of the page: the logo at the right, the name before it, as low as the title beside them.

    Sizes in points. `title` stands at the left of the same line, `content` points wide; the name has the width between.
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
