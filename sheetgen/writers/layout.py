"""How the page is set: the bundled fonts (templates/fonts) and how wide a text is in them, the steps from a roomy page
to the fullest one that can still be read, and where things stand: the widths of columns, the row of an answer, the one
grid of models, the letterhead. So a number never wraps, and words get all the width that the numbers leave.
"""

from __future__ import annotations

import itertools
import json
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sheetgen.brand import Brand
from sheetgen.sheet.page import MatrixCell, Page, Text

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


@dataclass(frozen=True)
class Density:
    """How tightly the page is set. All sizes in points; `n_*` is how many rows a list shows, the rest is counted."""

    name: str
    text: float
    small: float  # notes, the second line of a name
    head: float  # section headings
    answer: float  # what to rent and what it costs: never below 15
    pad: float  # above and below the text of a table cell
    gap: float  # above a section
    leading: float  # line height over text size
    chart: float  # height of the curves
    n_instances: int
    n_levers: int = 3
    why: int = 0  # lines below each answer: 2 all of it, 1 what asked for the hardware and what comes second
    compact: bool = False  # one line an answer, its hardware in small print beside it
    symptoms: bool = False  # what each death looks like, beside its bill
    run_in: bool = False  # the notes in one paragraph
    beside: bool = False  # bars beside curves where they would stand below one another
    appendix: bool = False  # instances, assumptions and sources on a second page
    brief: bool = False  # a row for the KV cache of a workload's first load, where each load would have a third line
    pay: bool = True  # what the answers cost in each purchase class, and owned
    market: bool = True  # what these are rented on, and who took no part and is cheaper


_CLOSER = Density("closer", 7.0, 7.0, 8.0, 15.0, 0.0, 2.5, 1.1, 32.0, 1, why=1, run_in=True)
_TIGHTEST = Density("tightest", 7.0, 7.0, 8.0, 15.0, 0.0, 2.5, 1.1, 32.0, 2, compact=True, run_in=True, beside=True)
_LEAST = replace(_TIGHTEST, name="least", gap=2.0, chart=28.0, n_levers=2, pay=False)
_TWO = Density("two tight", 7.0, 7.0, 8.0, 15.0, 0.0, 2.5, 1.1, 34.0, 30, compact=True, run_in=True, appendix=True)
DENSITIES = (  # from the roomiest to the last resort; 7 pt is the floor
    Density("roomy", 9.0, 8.0, 10.0, 19.0, 1.7, 10.0, 1.3, 70.0, 12, why=2, symptoms=True),
    Density("normal", 8.4, 7.6, 9.5, 18.0, 1.2, 9.0, 1.28, 62.0, 12, why=2, symptoms=True),
    Density("airy", 8.0, 7.4, 9.2, 17.0, 0.9, 7.5, 1.25, 58.0, 12, why=2),
    Density("dense", 7.7, 7.2, 9.0, 16.5, 0.6, 6.5, 1.22, 54.0, 10, why=1),
    Density("denser", 7.4, 7.0, 8.8, 16.0, 0.4, 5.0, 1.17, 50.0, 5, why=1),
    Density("tight", 7.2, 7.0, 8.4, 15.5, 0.2, 4.5, 1.15, 46.0, 5, why=1, run_in=True),
    Density("tighter", 7.0, 7.0, 8.2, 15.0, 0.1, 4.0, 1.13, 42.0, 4, why=1, run_in=True),
    Density("close", 7.0, 7.0, 8.0, 15.0, 0.0, 3.0, 1.11, 38.0, 3, why=1, run_in=True),
    _CLOSER,
    replace(_CLOSER, name="closest", n_instances=0, n_levers=2),
    Density("short", 7.0, 7.0, 8.2, 15.0, 0.1, 3.5, 1.12, 42.0, 4, run_in=True),
    Density("compact", 7.0, 7.0, 8.2, 15.0, 0.1, 3.5, 1.12, 40.0, 4, compact=True, run_in=True),
    Density("beside", 7.0, 7.0, 8.0, 15.0, 0.1, 3.0, 1.12, 38.0, 3, compact=True, run_in=True, beside=True),
    _TIGHTEST,
    replace(_TIGHTEST, name="paid", n_instances=0, market=False),
    replace(_LEAST, name="paid least", chart=26.0, n_instances=0, n_levers=1, pay=True, market=False),
    replace(_LEAST, name="listed", chart=32.0, n_instances=3, n_levers=3),
    _LEAST,
    Density("two pages", 7.4, 7.2, 9.0, 16.0, 0.5, 6.0, 1.18, 52.0, 30, why=1, appendix=True),
    Density("two short", 7.2, 7.0, 8.6, 15.5, 0.2, 4.5, 1.15, 46.0, 30, appendix=True),
    Density("two compact", 7.0, 7.0, 8.2, 15.0, 0.1, 3.5, 1.12, 42.0, 30, compact=True, run_in=True, appendix=True),
    _TWO,
    replace(_TWO, name="two tightest", gap=2.0, chart=28.0, n_levers=2, market=False),
    replace(_TWO, name="brief", gap=2.8, leading=1.12, chart=36.0, brief=True, market=False),
    replace(_TWO, name="briefer", chart=30.0, n_levers=2, brief=True, market=False),
    replace(_TWO, name="last", gap=1.8, chart=26.0, n_levers=1, brief=True, market=False),
)
_FEW_LOADS, _MOST_OF_FEW = 4, 5  # a page of so few loads begins as one of five models
_USUAL = {  # by models, from one on: the density at which most pages of three workloads and four tiers land
    "a4": ("tight", "tighter", "closer", "tightest", "paid", "two tight", "two tight", "two tightest"),
    "letter": ("tight", "close", "closest", "paid", "paid least", "two tightest", "brief", "briefer"),
}


def usual(n_models: int, paper: str = "a4", n_loads: int = 12) -> int:
    """The index in DENSITIES to try first for a page of `n_models`: a right guess saves a layout.

    With few loads, many models have their page without an appendix.
    """
    names = _USUAL.get(paper, _USUAL["a4"])
    most = _MOST_OF_FEW if n_loads <= _FEW_LOADS else len(names)
    return [density.name for density in DENSITIES].index(names[min(n_models, most) - 1])


PAD = 0.8  # em: 0.4 on either side of a cell's text, as in one_page.css; a table's outer edges have none
_SPARE = 0.2  # em: kerning and rounding
_RAGGED = 1.02  # of a text's width: what breaking between words leaves unused
_LEAST_SHARE = 20  # per cent
_MARK = 0.7  # em: the letter of a figure's provenance


def column_widths(page: Page, regular: Path, bold: Path) -> dict[str, float]:
    """Width by column class (`c-` in one_page.html.j2), in em, measured in the font that the column is set in."""
    rows, levers = page.instances, page.levers

    def fits(*texts: Text, font: Path = regular, beside: float = 0.0, most: float = 99.0) -> float:
        """Holds each text on one line, with `beside` em more, unless that takes more than `most` em."""
        return round(min(max((width_em(t, font) for t in texts), default=0.0) + PAD + _SPARE + beside, most), 2)

    owned = fits("Owned", beside=0.2 + _MARK)
    of_class = {
        f"{kind}-{n}": fits(name, *(one.classes[n] for one in listed), font=bold, most=most)
        for kind, listed, most in (("class", rows, 8.0), ("pay", page.paid, 9.0))
        for n, name in enumerate(page.price_classes)
    }
    return {
        **of_class,
        "pay-fp8": fits("at FP8", *(c.fp8_monthly for c in page.paid), most=9.0),
        "pay-model": fits("Model", *(c.model for c in page.paid), font=bold, most=14.0),
        "owned": max(owned, fits(*(c.owned for c in page.paid), beside=0.2, most=26.0)),
        "owned-usd": max(owned, fits(*(c.owned_usd for c in page.paid), beside=0.2, most=20.0)),
        "hosted": fits("hosted", *(c.hosted_monthly for c in page.paid), most=9.0),
        "instance": fits("Instance", *(i.name for i in rows), font=bold, most=12.0),
        "gpus": fits("GPUs", *(i.gpus for i in rows), most=11.0),
        "memory": fits("Memory", *(i.memory for i in rows), beside=_MARK, most=12.0),
        "where": fits("Where", *(f"{i.provider} {i.region}" for i in rows), most=11.5),
        "date": fits("Price of", *(f"{i.price_date}{' old' * i.stale}" for i in rows), most=9.0),
        "lever-model": fits("Model", *(v.model for v in levers), font=bold, most=14.0),
        "lever-change": fits("Change", *(v.change for v in levers), most=24.0),
        "lever-rent": fits("Then rent", *(v.rent for v in levers), most=14.0),
        "lever-money": fits("$/month", *(v.monthly for v in levers), most=9.0),
        "saving": fits("saves", *(v.saving for v in levers), most=9.0),
        "share": fits("", *(v.share for v in levers), most=6.0),
    }


class PayColumns(NamedTuple):
    """What "How to pay for it" has beside the purchase classes: FP8, a host, and which GPUs are owned."""

    fp8: bool
    hosted: bool
    gpus: bool


def pay_columns(page: Page, widths: Mapping[str, float], ems: float, regular: Path) -> PayColumns:
    """What has room in `ems`, with where owning is cheaper on one line. The GPUs, which stand in the answer, go first,
    then the host."""
    fp8, hosted = any(c.fp8_monthly for c in page.paid), any(c.hosted_monthly for c in page.paid)
    last = max((width_em(c.owning, regular) for c in page.paid), default=0.0) + PAD / 2 + _SPARE
    always = last + widths["pay-model"] + sum(widths[f"pay-{n}"] for n in range(len(page.price_classes)))

    def needs(one: PayColumns) -> float:
        others = widths["pay-fp8"] * one.fp8 + widths["hosted"] * one.hosted
        return always + others + widths["owned" if one.gpus else "owned-usd"]

    least = PayColumns(fp8, False, False)
    tried = (PayColumns(fp8, hosted, True), PayColumns(fp8, hosted, False), least._replace(gpus=True), least)
    return next((one for one in tried if needs(one) <= ems), least)


def oom_shares(page: Page, symptoms: bool, width: float, regular: Path, bold: Path) -> list[int]:
    """How the rows on where a deployment dies share `width` em: the split, in per cent, that takes the fewest lines."""
    rows = []
    for f in page.fingerprints:
        place, bill = width_em(f"{f.where}: ", bold), width_em(f.bill, regular)
        symptom = [width_em(f.looks_like, regular)] if symptoms else []
        first = max(place, bill) if symptoms else place + bill
        rows.append([first, *symptom, width_em(f.change, regular), width_em(f.said, regular)])
    splits = itertools.product(range(_LEAST_SHARE, 50, 2), repeat=2 + symptoms)
    shares: list[tuple[int, ...]] = [(*s, 100 - sum(s)) for s in splits if sum(s) <= 100 - _LEAST_SHARE]

    def lines(split: tuple[int, ...]) -> tuple[int, float]:
        left = [share / 100 * width - PAD for share in split]
        n_lines = [
            [math.ceil(max(ems, 0.1) * _RAGGED / has) for ems, has in zip(row, left, strict=True)] for row in rows
        ]
        return sum(max(row) for row in n_lines), max(split) - min(split)

    best: tuple[int, ...] = min(shares, key=lines)
    return list(best)


LEAST_ANSWER = 15.0  # points: what to rent, what it costs, for how many users
_SHARES = ((0.17, 0.345, 0.17, 0.105), (0.155, 0.33, 0.16, 0.06))  # of the page's width; roomy and compact
_LEAST_PACE = 0.2  # of the page's width: what how fast keeps where what to rent takes more than its share
_PADDING = 7.0  # points, in one_page.css
_BAR = 4.0  # points: the green one at the left
_NAME, _SHORTENED = 8.5, 7.0  # points: a name's print, and what one is measured in that may need to lose its middle


@dataclass(frozen=True)
class Answers:
    """The row of an answer: the name, what to rent, $ a month, users; how fast has the rest.

    Points: the size of the print, the width of each column, and what the names have.
    """

    size: float
    widths: tuple[float, ...]
    money_head: str

    @property
    def name(self) -> float:
        """The width that the names have."""
        return self.widths[0] - _PADDING

    @property
    def longest_name(self) -> float:
        """The em of a name that stands whole."""
        return self.name / _SHORTENED * 2.7

    def is_long(self, ems: float) -> bool:
        """Whether a name of that many em needs more than two lines of the usual print."""
        return ems * _NAME > 1.9 * self.name


def answers_of(page: Page, density: Density, content: float, bold: Path) -> Answers:
    """The density's print, or less where a name or a sum is too long for its column, never below 15 points.

    There the columns of sums and users take what they need: they never break. So does that of what to rent, while
    there is room.
    """

    def widest(texts: Iterable[Text]) -> float:  # set that much closer
        return max((width_em(text, bold) - 0.02 * len(str(text)) for text in texts), default=0.0)

    name, rent, money, users = (share * content for share in _SHARES[density.compact])
    found = [c for c in page.cards if c.fits]
    rents, sums = widest(c.rent for c in found), widest(c.monthly for c in found)
    people, verdicts = widest(c.users for c in page.cards), widest(c.rent for c in page.cards if not c.fits)
    pairs = ((rents, rent), (sums, money), (people, users), (verdicts, rent + money))  # a verdict has both columns
    size = max(LEAST_ANSWER, min([density.answer, *((width - _PADDING) / ems for ems, width in pairs if ems > 0)]))
    spans = not density.compact and any(c.span for c in found)
    head = "$ a month, speed band" if spans else "$ a month"
    ems = width_em(head, bold) + _MARK + PAD
    money, users = max(money, sums * size + _PADDING, ems * density.small), max(users, people * size + _PADDING)
    most = content * (1 - _LEAST_PACE) - name - money - users
    return Answers(size, (name - _BAR, max(rent, min(rents * size + _PADDING, most)), money, users), head)


LEAST_PRINT = 7.0  # points
RULE = 2.5  # points: the white rule left of a model's column, `.first` in one_page.css
PADDING = 0.25  # em, on either side of a cell's text, as in one_page.css
BEFORE_GPUS = 6.0  # points: left of a load's GPUs, `.gpus` in one_page.css
_SPEED_MARK = 0.75  # em: what marks dollars that speed asked for, and the space behind it
PADDING_OF_THREE = 0.1  # em, the same where a load has three lines


@dataclass(frozen=True)
class Grid:
    """The page's one grid, in points: a gutter for what a row is of, and a column for each model, in the matrix and its
    pictures. `form` is how a load is written, `text` its size.

    A load has one line of three columns, two lines, or three: the first form whose words all fit in the column at no
    less than the smallest print. Letters are set a little closer than the font has them, so that nothing is added for
    kerning and rounding.
    """

    gutter: float
    column: float
    form: str  # one | two | three
    text: float
    widths: dict[str, float]  # em, of the columns of form one: kv, rent, money
    ticks: bool  # whether what fits has a mark; else only what is tight or does not has one
    params: bool  # whether a model's parameters have room beside its name
    hardware: bool = False  # whether the GPUs have room beside what to rent

    @property
    def inner(self) -> float:
        """What a picture in a column has."""
        return self.column - RULE - 2.0

    @property
    def points(self) -> dict[str, float]:
        """The columns of form one whose width is fixed."""
        return {name: self.widths[name] * self.text + more for name, more in (("kv", RULE), ("money", 0.0))}

    def longest_name(self, density: Density) -> float:
        """The em of a model's name that stands whole at the head of its column."""
        return self.inner / density.text * (1.7 if density.compact else 2.6)

    def money_beside(self, count: float) -> float:
        """The em that dollars have beside a count, in the first of three lines."""
        return max((self.column - RULE) / self.text - 2 * PADDING_OF_THREE - count - 0.05, 0.0)

    def holds_beside(self, count: float, money: float, by_speed: bool) -> bool:
        """Whether dollars of that many em stand beside the count; else they have a line of their own."""
        return money + (_SPEED_MARK if by_speed else 0.0) <= self.money_beside(count)

    def inner_of(self, width: float, n_models: int) -> float:
        """`inner` in a table of that width with the same gutter."""
        return (width - self.gutter) / n_models - RULE - 2.0


def grid_of(page: Page, content: float, text: float, regular: Path, bold: Path) -> Grid:
    """The grid of a page whose text has `text` points; a load's may be smaller, down to the floor."""
    tiers = [f"{'◆ ' * row.headline}{row.tier}" for block in page.matrix for row in block.rows]
    contexts = [b.context for bars in page.bars for b in bars]
    ems = max(*(width_em(t, bold) for t in (*tiers, *contexts)), width_em("In flight", regular) - 0.35)
    gutter = text * (ems + 0.7)
    column = (content - gutter) / len(page.models)
    heads = max(width_em(m.name, bold) + width_em(f" {m.params} d", regular) for m in page.models)
    params = heads * text <= column - RULE - 2.0
    for form, ticks in (("one", True), ("one", False), ("two", True)):
        widths = _widths(page, form, ticks, regular, bold)
        size = (column - RULE) / sum(widths.values())
        if size >= LEAST_PRINT:
            text = min(text, size)
            gpus = BEFORE_GPUS / text + max(width_em(cell.hardware, regular) for _, cell in _cells(page)) + 0.5
            hardware = form == "one" and sum(widths.values()) + gpus <= (column - RULE) / text
            return Grid(gutter, column, form, text, widths, ticks, params, hardware)
    return Grid(gutter, column, "three", LEAST_PRINT, {}, False, False)


def _cells(page: Page) -> list[tuple[bool, MatrixCell]]:
    return [(row.headline, cell) for block in page.matrix for row in block.rows for cell in row.cells]


def _widths(page: Page, form: str, ticks: bool, regular: Path, bold: Path) -> dict[str, float]:
    """The em that a form needs in a model's column, part by part."""
    cells = _cells(page)
    facts = ((m.weights_bf16, m.weights_fp8, m.weights_in_use, m.kv_per_token.parts[0]) for m in page.models)
    figures = [text for of_model in facts for text in of_model]

    def widest(texts: list[tuple[bool, Text]]) -> float:
        return max((width_em(text, bold if strong else regular) for strong, text in texts), default=0.0)

    rents = widest([(s, cell.rent if cell.status == "fits" and not ticks else f"▲ {cell.rent}") for s, cell in cells])
    kv = widest([(strong, cell.kv) for strong, cell in cells] + [(True, w) for w in figures])
    # dollars that speed asked for have a mark before them
    money = widest([(True, f"s {cell.monthly}" if cell.by_speed else cell.monthly) for _, cell in cells])
    beside = 2 * PADDING
    if form == "one":
        return {"kv": kv + beside, "rent": rents + beside, "money": money + beside}
    return {"rent": max(rents, kv + money) + beside}


LOGO = "logo.png"  # its name among the page's assets
LOGO_BOX = (120.0, 18.5)  # points: the most that the logo takes, a little less than the title's line
NAME_SIZES = ((10.0, 1.0), (8.0, 1.8), (7.0, 9.0))  # points, and the lines that a name may take at that size
TITLE_SIZE = 15.0  # of h1, in one_page.css
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
