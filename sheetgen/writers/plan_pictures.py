"""The plan's pictures as SVG: GPUs and each service's demand by quarter, and the bridge from the last plan's spend."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from sheetgen.plan.charts import Demand, Machines, Waterfall
from sheetgen.report.wording import short_money
from sheetgen.units import USD
from sheetgen.writers.layout import width_em
from sheetgen.writers.pictures import FIGURES, INK, QUIET, label, line, picture, polyline, rect, rules

INKS = ("#24476f", "#a3560f", "#1d6a4a", "#8f1d16", "#5b3a8c", "#2b6f86", "#6b5b00", "#7a2f63")  # by kind of GPU
P90, SUPPLY, BAND = "#8f1d16", "#17212b", "#a9bfd8"
_ROW, _FEET = 11.0, 24.0  # points: a line of the key, and the space below the plot
_POWERS = 12  # powers of ten of the largest scale in GPUs
_RULES = 5  # the most rules across the plot
_BAR = 0.56  # of a quarter's width
_STEP = 13.0  # points from one part of the bridge to the next
_MARK = 14.0  # points: a mark of the key
_PAIR = 18.0  # points between two entries of the key


def machines_chart(machines: Machines, width: float, plot: float, font: Path, family: str) -> Markup:
    """Stacks of the GPUs needed at p50 by kind, with steps for p90 (dashed) and the supply (solid).

    plot: the height in points without key and figures.
    """
    inks = dict(zip((name for name, _ in machines.kinds), itertools.cycle(INKS), strict=False))
    key = [(f"{name}, needed at p50", ink, "box") for name, ink in inks.items()]
    key += [("needed at p90, all together", P90, "dashed"), ("owned and committed", SUPPLY, "solid")]
    drawn, top = _key(key, width, font, family)
    top += _ROW + 3  # the axis' name
    bottom, height = top + plot, top + plot + _FEET
    stacks = [sum(values[q] for _, values in machines.kinds) for q in range(len(machines.quarters))]
    rule_step = _rule_every(max(*stacks, *machines.p90, *machines.supply, 1.0))
    n_rules = math.ceil(max(*stacks, *machines.p90, *machines.supply, 1.0) / rule_step)
    left = width_em(f"{n_rules * rule_step:,}", font) * FIGURES + 5
    band = (width - left) / len(machines.quarters)

    def y(n_gpus: float) -> float:
        return bottom - n_gpus / (n_rules * rule_step) * (bottom - top)

    drawn.append(label(0, top - 6, "GPUs", family, "start"))
    drawn += rules({n * rule_step: f"{n * rule_step:,}" for n in range(n_rules + 1)}, y, left, width, family)
    for q, quarter in enumerate(machines.quarters):
        x, below = left + band * (q + (1 - _BAR) / 2), 0.0
        for name, values in machines.kinds:
            drawn.append(rect(x, y(below + values[q]), band * _BAR, y(below) - y(below + values[q]), inks[name]))
            below += values[q]
        drawn += [
            label(x + band * _BAR / 2, bottom + 10, quarter, family),
            label(x + band * _BAR / 2, y(machines.p90[q]) - 2.5, f"{machines.p90[q]:,.0f}", family, colour=P90),
        ]
    drawn.append(label((left + width) / 2, height - 2, "quarter", family))
    for values, ink, dash in ((machines.supply, SUPPLY, ""), (machines.p90, P90, "4 2")):
        corners = [(left + band * (q + side), y(value)) for q, value in enumerate(values) for side in (0, 1)]
        drawn += [polyline(corners, "#ffffff", 3.6), polyline(corners, ink, 1.6, dash)]  # visible on every colour
    return picture(machines_words(machines), drawn, width, height)


def machines_words(machines: Machines) -> str:
    """The alternative text of the picture, with all its figures."""
    sentences = []
    for q, quarter in enumerate(machines.quarters):
        kinds = " and ".join(f"{values[q]:,.0f} {name}" for name, values in machines.kinds if values[q]) or "none"
        p90, supply = machines.p90[q], machines.supply[q]
        sentences.append(f"{quarter} {kinds} at p50, {p90:,.0f} at p90, {supply:,.0f} owned and committed")
    return f"GPUs needed by quarter: {'; '.join(sentences)}"


def demand_chart(demand: Demand, width: float, plot: float, font: Path, family: str) -> Markup:
    """A box from p10 to p90 for each quarter, with p50 as a line across it."""
    most = max((band[-1] for band in demand.bands), default=0.0) or 1.0
    exponent = math.floor(math.log10(most / _RULES))
    rule_step = next(n * 10.0**exponent for n in (1, 2, 5, 10) if n * 10.0**exponent * _RULES >= most)
    n_rules = math.ceil(most / rule_step)
    decimals = max(0, -exponent)
    left = width_em(f"{n_rules * rule_step:,.{decimals}f}", font) * FIGURES + 5
    bottom = _ROW + _ROW + plot  # the axis' name, and the figure above a quarter that reaches the top
    wide = (width - left) / len(demand.quarters)

    def y(value: float) -> float:
        return bottom - value / (n_rules * rule_step) * plot

    drawn = [label(0, _ROW - 4, f"{demand.unit}: p10 to p90, p50 as a line", family, "start")]
    marks = {n * rule_step: f"{n * rule_step:,.{decimals}f}" for n in range(n_rules + 1)}
    drawn += rules(marks, y, left, width, family)
    for q, (quarter, (low, middle, high)) in enumerate(zip(demand.quarters, demand.bands, strict=True)):
        x = left + wide * (q + (1 - _BAR) / 2)
        drawn.append(label(x + wide * _BAR / 2, bottom + 10, quarter, family))
        if high:
            drawn += [
                rect(x, y(high), wide * _BAR, max(y(low) - y(high), 0.8), BAND),
                line(x, y(middle), x + wide * _BAR, y(middle), INK, 1.2),
                label(x + wide * _BAR / 2, y(high) - 2.5, f"{middle:,.{max(decimals, 1)}f}", family, colour=INK),
            ]
    return picture(demand_words(demand), drawn, width, bottom + 14)


def demand_words(demand: Demand) -> str:
    quarters = (
        f"{quarter} {' to '.join(f'{amount:,.2f}' for amount in (band[0], band[-1]))}, p50 {band[1]:,.2f}"
        for quarter, band in zip(demand.quarters, demand.bands, strict=True)
    )
    return f"Demand of {demand.service}, {demand.unit}: {'; '.join(quarters)}"


def waterfall_chart(waterfall: Waterfall, width: float, font: Path, family: str) -> Markup:
    """The bridge from the last plan's spend, each part from the end of the one before, as differences to that plan."""
    rows = [*waterfall.parts, ("together", waterfall.usd - waterfall.last_usd)]
    ends = [0.0, *itertools.accumulate(usd for _, usd in waterfall.parts)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    span = (high - low) or 1.0

    def signed(usd: float) -> str:
        return _signed(usd, waterfall.prefix)

    names = max(width_em(name, font) for name, _ in rows) * FIGURES + 6
    figures = max(width_em(signed(usd), font) for _, usd in rows) * FIGURES + 6
    plot = width - names - figures
    height = _STEP * len(rows) + _FEET

    def x(usd: float) -> float:
        return names + (usd - low) / span * plot

    drawn = [line(x(0), 0, x(0), height - _FEET + 2, INK, 0.8)]
    for i, (name, usd) in enumerate(rows):
        start, end = (0.0, usd) if i == len(waterfall.parts) else (ends[i], ends[i + 1])
        ink = INK if i == len(waterfall.parts) else P90 if usd > 0 else INKS[2]
        top = _STEP * i + 2
        drawn += [
            label(names - 6, top + 8, name, family, "end", INK),
            rect(min(x(start), x(end)), top, max(abs(x(end) - x(start)), 0.8), _STEP - 4, ink),
            label(width, top + 8, signed(usd), family, "end", INK),
        ]
        if i + 1 < len(waterfall.parts):
            drawn.append(line(x(end), top, x(end), top + _STEP, QUIET, 0.5))
    for usd in sorted({low, 0.0, high}):
        if usd == 0.0 or abs(x(usd) - x(0)) > figures:
            words = "last plan" if usd == 0.0 else _short(usd, waterfall.prefix)
            anchor = "start" if x(usd) == names else "end" if usd == high else "middle"
            drawn.append(label(x(usd), height - _FEET + 11, words, family, anchor))
    axis = f"{waterfall.currency} more or less than the last plan, at p50"
    drawn.append(label(names + plot / 2, height - 2, axis, family))
    return picture(waterfall_words(waterfall), drawn, width, height)


def waterfall_words(waterfall: Waterfall) -> str:
    parts = "; ".join(f"{name} {_signed(usd, waterfall.prefix)}" for name, usd in waterfall.parts)
    whole = replace(USD, prefix=waterfall.prefix)
    return f"From the last plan's {whole.text(waterfall.last_usd)} to {whole.text(waterfall.usd)}: {parts}"


def _signed(usd: float, prefix: str) -> str:
    return f"{'−' if usd < 0 else '+'}{replace(USD, prefix=prefix).text(abs(usd))}"


def _short(usd: float, prefix: str) -> str:
    return f"{'−' if usd < 0 else '+'}{short_money(abs(usd), prefix)}"


def _rule_every(most: float) -> int:
    """The GPUs between two rules: 1, 2 or 5 times a power of ten, for at most _RULES rules."""
    steps: Iterator[int] = (digit * 10**n for n in range(_POWERS) for digit in (1, 2, 5))
    return next(step for step in steps if step * _RULES >= most)


def _key(entries: Sequence[tuple[str, str, str]], width: float, font: Path, family: str) -> tuple[list[str], float]:
    """The key of the marks (words, colour, kind) in as many lines as needed, and its height in points."""
    drawn, x, y = [], 0.0, _ROW - 3
    for words, ink, kind in entries:
        wide = _MARK + 4 + width_em(words, font) * FIGURES
        if x and x + wide > width:
            x, y = 0.0, y + _ROW
        if kind == "box":
            drawn.append(rect(x, y - 6.5, _MARK, 7, ink))
        else:
            drawn.append(line(x, y - 3, x + _MARK, y - 3, ink, 1.6, "4 2" if kind == "dashed" else ""))
        drawn.append(label(x + _MARK + 4, y, words, family, "start", INK))
        x += wide + _PAIR
    return drawn, y + 4
