"""The plan's pictures as SVG: GPUs by quarter, and the bridge from the last plan's spend."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from sheetgen.plan.charts import Machines, Waterfall
from sheetgen.report.wording import short_money
from sheetgen.units import USD
from sheetgen.writers.layout import width_em
from sheetgen.writers.pictures import FIGURES, INK, QUIET, label, line, picture, polyline, rect, rules

INKS = ("#24476f", "#a3560f", "#1d6a4a", "#8f1d16", "#5b3a8c", "#2b6f86", "#6b5b00", "#7a2f63")  # of kinds of GPUs
P90, SUPPLY, BUDGET = "#8f1d16", "#17212b", "#1d6a4a"
_ROW, _FEET = 11.0, 24.0  # points: a line of the key, and what stands below the plot
_POWERS = 12  # of ten, of GPUs: more than there are
_RULES = 5  # across the plot, at most
_MOST_BUDGET = 1.5  # times all else; a budget beyond lies along the top
_FIGURE = 8.6  # points: the height of a figure
_BAR = 0.56  # of a quarter's width
_STEP = 13.0  # points from one part of the bridge to the next
_MARK = 14.0  # points: a mark of the key
_PAIR = 18.0  # points between two entries of the key


def machines_chart(shown: Machines, width: float, plot: float, font: Path, family: str) -> Markup:
    """Stacks of what is needed at p50 by kind of GPU; a dashed step at p90, a solid one of what is there, a dotted one
    of what the budget pays for. `plot`: its height without key and figures."""
    inks = dict(zip((name for name, _ in shown.kinds), itertools.cycle(INKS), strict=False))
    key = [(name, ink, "box") for name, ink in inks.items()]
    steps = [(shown.supply, SUPPLY, "", "owned and committed"), (shown.p90, P90, "4 2", "needed at p90")]
    if any(map(math.isfinite, shown.budget)):
        steps.append((shown.budget, BUDGET, "1.5 2.5", "what the budget pays for"))
    key += [(name, ink, dash) for _, ink, dash, name in steps]
    drawn, top = _key(key, width, font, family)
    top += _ROW + 3  # the axis' name
    bottom, height = top + plot, top + plot + _ROW + 3
    stacks = [sum(values[q] for _, values in shown.kinds) for q in range(len(shown.quarters))]
    most = max(*stacks, *shown.p90, *shown.supply, 1.0)
    most = max([most, *(budget for budget in shown.budget if budget <= _MOST_BUDGET * most)])
    rule = _rule_every(most)
    n_rules = math.ceil(most / rule)
    left = width_em(f"{n_rules * rule:,}", font) * FIGURES + 5
    band = (width - left) / len(shown.quarters)

    def y(n_gpus: float) -> float:
        return bottom - min(n_gpus / (n_rules * rule), 1) * (bottom - top)

    drawn.append(label(0, top - 6, "GPUs; bars: needed at p50", family, "start"))
    drawn += rules({n * rule: f"{n * rule:,}" for n in range(n_rules + 1)}, y, left, width, family)
    for q, quarter in enumerate(shown.quarters):
        x, below = left + band * (q + (1 - _BAR) / 2), 0.0
        for name, values in shown.kinds:
            drawn.append(rect(x, y(below + values[q]), band * _BAR, y(below) - y(below + values[q]), inks[name]))
            below += values[q]
        drawn.append(label(x + band * _BAR / 2, bottom + 10, quarter, family))
    for values, ink, dash, _ in steps:
        for is_known, run in itertools.groupby(enumerate(values), lambda pair: math.isfinite(pair[1])):
            corners = [(left + band * (q + side), y(value)) for q, value in run for side in (0, 1)]
            if is_known:
                drawn += [polyline(corners, "#ffffff", 3.6), polyline(corners, ink, 1.6, dash)]  # seen on every ink
    for q, n_gpus in enumerate(shown.p90):  # on white, above its line, or below it where another is there
        text, middle = f"{n_gpus:,.0f}", left + band * (q + 1 / 2)
        wide = width_em(text, font) * FIGURES + 2
        others = [y(values[q]) for values, *_ in steps if math.isfinite(values[q]) and values is not shown.p90]
        places = [y(n_gpus) - _FIGURE - 1.4, y(n_gpus) + 1.4]
        free = (start for start in places if not any(start - 1 < other < start + _FIGURE + 1 for other in others))
        start = next(free, places[0])
        drawn.append(rect(middle - wide / 2, start, wide, _FIGURE, "#ffffff"))
        drawn.append(label(middle, start + _FIGURE - 1.1, text, family, colour=P90))
    return picture(machines_words(shown), drawn, width, height)


def machines_words(shown: Machines) -> str:
    """The picture's alternative text: all that it shows."""
    parts = []
    for q, quarter in enumerate(shown.quarters):
        kinds = " and ".join(f"{values[q]:,.0f} {name}" for name, values in shown.kinds if values[q]) or "none"
        budget = f", the budget pays for {shown.budget[q]:,.0f}" if math.isfinite(shown.budget[q]) else ""
        there = f"{shown.supply[q]:,.0f} owned and committed"
        parts.append(f"{quarter} {kinds} at p50, {shown.p90[q]:,.0f} at p90, {there}{budget}")
    return f"GPUs needed by quarter: {'; '.join(parts)}"


def waterfall_chart(shown: Waterfall, width: float, font: Path, family: str) -> Markup:
    """From the last plan's spend, each part where the one before ended; the axis is the difference to the last plan."""
    rows = [*shown.parts, ("together", shown.usd - shown.last_usd)]
    ends = [0.0, *itertools.accumulate(usd for _, usd in shown.parts)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    span = (high - low) or 1.0

    def signed(usd: float) -> str:
        return _signed(usd, shown.prefix)

    names = max(width_em(name, font) for name, _ in rows) * FIGURES + 6
    figures = max(width_em(signed(usd), font) for _, usd in rows) * FIGURES + 6
    plot = width - names - figures
    height = _STEP * len(rows) + _FEET

    def x(usd: float) -> float:
        return names + (usd - low) / span * plot

    drawn = [line(x(0), 0, x(0), height - _FEET + 2, INK, 0.8)]
    for i, (name, usd) in enumerate(rows):
        start, end = (0.0, usd) if i == len(shown.parts) else (ends[i], ends[i + 1])
        ink = INK if i == len(shown.parts) else P90 if usd > 0 else INKS[2]
        top = _STEP * i + 2
        drawn += [
            label(names - 6, top + 8, name, family, "end", INK),
            rect(min(x(start), x(end)), top, max(abs(x(end) - x(start)), 0.8), _STEP - 4, ink),
            label(width, top + 8, signed(usd), family, "end", INK),
        ]
        if i + 1 < len(shown.parts):
            drawn.append(line(x(end), top, x(end), top + _STEP, QUIET, 0.5))
    for usd in sorted({low, 0.0, high}):
        if usd == 0.0 or abs(x(usd) - x(0)) > figures:
            words = "last plan" if usd == 0.0 else _short(usd, shown.prefix)
            anchor = "start" if x(usd) == names else "end" if usd == high else "middle"
            drawn.append(label(x(usd), height - _FEET + 11, words, family, anchor))
    axis = f"{shown.currency} to approve, more or less than in the last plan"
    drawn.append(label(names + plot / 2, height - 2, axis, family))
    return picture(waterfall_words(shown), drawn, width, height)


def waterfall_words(shown: Waterfall) -> str:
    parts = "; ".join(f"{name} {_signed(usd, shown.prefix)}" for name, usd in shown.parts)
    whole = replace(USD, prefix=shown.prefix)
    return f"From the last plan's {whole.text(shown.last_usd)} to {whole.text(shown.usd)}: {parts}"


def _signed(usd: float, prefix: str) -> str:
    return f"{'−' if usd < 0 else '+'}{replace(USD, prefix=prefix).text(abs(usd))}"


def _short(usd: float, prefix: str) -> str:
    return f"{'−' if usd < 0 else '+'}{short_money(abs(usd), prefix)}"


def _rule_every(most: float) -> int:
    """GPUs from one rule to the next: 1, 2 or 5 of a power of ten, with at most so many rules."""
    steps: Iterator[int] = (first * 10**n for n in range(_POWERS) for first in (1, 2, 5))
    return next(step for step in steps if step * _RULES >= most)


def _key(entries: Sequence[tuple[str, str, str]], width: float, font: Path, family: str) -> tuple[list[str], float]:
    """The meaning of the marks, in as many lines as it takes; and where it ends. entries: words, ink, and box or the
    dashes of a line."""
    drawn, x, y = [], 0.0, _ROW - 3
    for words, ink, kind in entries:
        wide = _MARK + 4 + width_em(words, font) * FIGURES
        if x and x + wide > width:
            x, y = 0.0, y + _ROW
        if kind == "box":
            drawn.append(rect(x, y - 6.5, _MARK, 7, ink))
        else:
            drawn.append(line(x, y - 3, x + _MARK, y - 3, ink, 1.6, kind))
        drawn.append(label(x + _MARK + 4, y, words, family, "start", INK))
        x += wide + _PAIR
    return drawn, y + 4
