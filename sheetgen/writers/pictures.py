"""The page's pictures in their places: bars of memory, a row for each workload, and the curves with their scale.

Where models are few, or room is shortest, bars and curves stand beside one another; else below, in the matrix's grid.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sheetgen.sheet.page import Bar, Breaks, Page, Text
from sheetgen.writers import svg
from sheetgen.writers.density import Density
from sheetgen.writers.fonts import FAMILY, width_em
from sheetgen.writers.layout import Grid

MOST_BESIDE, MOST_BESIDE_AT_LAST = 3, 5  # models
LEFT_SHARE, LEFT_SHARE_AT_LAST = 0.48, 0.45  # of the page's width, for the bars
GUTTER = 14.0  # points between the halves, as in one_page.css
LEAST_BAR, MOST_THICK = 34.0, 16.0  # points: a shorter bar tells nothing, a thicker one no more
FIGURES = 7.0  # points: the figures beside a bar and below a curve
_CLOSER = 1.04  # as close as one_page.css sets what stands below a curve


def pictures_of(
    page: Page, density: Density, grid: Grid, content: float, drawable: Callable[[str], str], font: Path
) -> dict[str, Any]:
    """What one_page.html.j2 draws; `content` is the page's width."""
    n_models = len(page.models)
    left = 0.0
    bar_column = curve_column = grid.inner
    if n_models <= (MOST_BESIDE_AT_LAST if density.beside else MOST_BESIDE):
        left = round(content * (LEFT_SHARE_AT_LAST if density.beside else LEFT_SHARE), 2)
        bar_column = grid.inner_of(left, n_models)
        curve_column = grid.inner_of(content - left - GUTTER, n_models)
    thick = density.small * 1.05
    if left:  # as high together as the curves
        thick = min(max(thick, (density.chart + 2 * FIGURES) / len(page.matrix) - 2 * density.pad), MOST_THICK)
    figures, length = _beside_bars([b for of_model in page.bars for b in of_model], bar_column, font)
    loads = [(block.context_tokens, drawable(block.context)) for block in page.matrix]
    axes = svg.axes_of(page.breaks, loads)

    def bar(one: Bar) -> dict[str, Any]:
        lead = drawable(f"{one.model}, {one.workload} {one.context}: ")
        drawn = svg.stacked_bar(one, lead, width=length, height=thick)
        return {"bar": one, "figures": figures, "picture": drawn}

    def curve(b: Breaks) -> Any:
        asked = dict(loads).get(b.asked.context_tokens, f"{b.asked.context_tokens:,}")
        title = drawable(f"{b.model}: {b.next_request} at {asked}; {b.longest_fit}")
        return svg.curve(b, axes, title, width=curve_column, height=density.chart, family=FAMILY)

    return {
        "halves": {"left": left} if left else None,
        "figures": figures,
        "words": _below_curves(page, curve_column / FIGURES * _CLOSER, density.run_in and not left, font),
        "bars": [[bar(of_model[w]) for of_model in page.bars] for w in range(len(page.matrix))],
        "scale": svg.scale(axes, width=grid.gutter - 3.0, height=density.chart, family=FAMILY),
        "curves": [curve(b) for b in page.breaks],
    }


def _beside_bars(bars: list[Bar], column: float, font: Path) -> tuple[int, float]:
    """How many figures stand beside a bar (2: needed and usable, 1: usable, 0: none), and its length in points."""
    for kind, texts in ((2, [f"{b.weights} + {b.kv} of {b.limit}" for b in bars]), (1, [b.limit for b in bars])):
        left = column - FIGURES * (max(width_em(text, font) for text in texts) + 0.3) - 4.0
        if left >= LEAST_BAR:
            return kind, left
    return 0, column


def _below_curves(page: Page, room: float, on_one_line: bool, font: Path) -> str:
    """How much is said below a curve: the most whose lines all fit `room` em; `numbers` where none does."""
    words: dict[str, list[Text]] = {
        "long": [text for b in page.breaks for text in (b.next_request, b.longest_fit)],
        "short": [text for b in page.breaks for text in (f"request {b.next_short}", f"{b.longest_short} tokens")],
        "line": [f"{b.next_short} ✓ {b.longest_short}" for b in page.breaks],
    }
    for kind, texts in words.items():
        fits = max(width_em(f"✗ {text}", font) for text in texts) <= room
        if fits and (kind == "line" or not on_one_line):
            return kind
    return "numbers"
