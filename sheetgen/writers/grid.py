"""The page's one grid: a gutter for what a row is of, and a column for each model, in the matrix and its pictures.

A load of a model has one line of three columns, two lines, or three: the first form whose words all fit in the column
at no less than the smallest print. Letters are set a little closer than the font has them, so that nothing is added
for kerning and rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sheetgen.sheet.one_page import MatrixCell, OnePage
from sheetgen.writers.fonts import width_em

LEAST_PRINT = 7.0  # points
RULE = 2.5  # points: the white rule left of a model's column, `.first` in one_page.css
PADDING = 0.25  # em, on either side of a cell's text, as in one_page.css
BEFORE_GPUS = 6.0  # points: left of a load's GPUs, `.gpus` in one_page.css
_SPEED_MARK = 0.75  # em: what marks dollars that speed asked for, and the space behind it
PADDING_OF_THREE = 0.1  # em, the same where a load has three lines


@dataclass(frozen=True)
class Grid:
    """Where things stand, in points. `form` is how a load is written, `text` its size."""

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

    def money_beside(self, count: float) -> float:
        """The em that dollars have beside a count, in the first of three lines."""
        return max((self.column - RULE) / self.text - 2 * PADDING_OF_THREE - count - 0.05, 0.0)

    def holds_beside(self, count: float, money: float, by_speed: bool) -> bool:
        """Whether dollars of that many em stand beside the count; else they have a line of their own."""
        return money + (_SPEED_MARK if by_speed else 0.0) <= self.money_beside(count)

    def inner_of(self, width: float, n_models: int) -> float:
        """The same in a table of that width with the same gutter."""
        return (width - self.gutter) / n_models - RULE - 2.0


def grid_of(page: OnePage, content: float, text: float, regular: Path, bold: Path) -> Grid:
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
            hardware = form == "one" and sum(widths.values()) + _hardware(page, text, regular) <= (column - RULE) / text
            return Grid(gutter, column, form, text, widths, ticks, params, hardware)
    return Grid(gutter, column, "three", LEAST_PRINT, {}, False, False)


def money_words(cell: MatrixCell) -> str:
    """Dollars a month with the mark of those that speed asked for."""
    return f"s {cell.monthly}" if cell.by_speed else cell.monthly


def _hardware(page: OnePage, text: float, regular: Path) -> float:
    """The em that the GPUs of a load need behind what to rent."""
    words = [cell.hardware for block in page.matrix for row in block.rows for cell in row.cells]
    return BEFORE_GPUS / text + max(width_em(word, regular) for word in words) + 0.5


def _widths(page: OnePage, form: str, ticks: bool, regular: Path, bold: Path) -> dict[str, float]:
    """The em that a form needs in a model's column, part by part."""
    rows = [(row.headline, cell) for block in page.matrix for row in block.rows for cell in row.cells]
    weights = [w for m in page.models for w in (m.weights_bf16, m.weights_fp8, m.kv_per_token.partition(" ")[0])]

    def widest(words: list[tuple[bool, str]]) -> float:
        return max((width_em(w, bold if strong else regular) for strong, w in words), default=0.0)

    rents = widest([(s, cell.rent if cell.status == "fits" and not ticks else f"▲ {cell.rent}") for s, cell in rows])
    kv = widest([(strong, cell.kv) for strong, cell in rows] + [(True, w) for w in weights])
    money = widest([(True, money_words(cell)) for _, cell in rows])
    beside = 2 * PADDING
    if form == "one":
        return {"kv": kv + beside, "rent": rents + beside, "money": money + beside}
    return {"rent": max(rents, kv + money) + beside}
