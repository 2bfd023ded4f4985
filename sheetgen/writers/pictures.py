"""The page's pictures: small inline SVG, made by hand: on paper a bar a GPU, times as dots on their bands and the room
of a replica; on a screen bars of memory, and curves of where a recommendation breaks, with their scale.

Words stand beside them as text, so that they wrap, are read aloud and can be copied; a picture has figures at its axes
and names at its lines, and a `<title>`, its alternative text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from markupsafe import Markup

from sheetgen.report.page import Band, Bar, Breaks, Mover, ReplicaRow, Request

MEMORY, BAND, ROOM = (90.0, 8.0), (100.0, 8.0), (76.0, 8.0)  # points: width and height


def pictures_of(rows: Sequence[ReplicaRow]) -> dict[str, Any]:
    """What engineers.html.j2 draws in each row: one GPU, its times, and the room of a replica; each on one scale."""
    tokens, firsts = ([getattr(row, name) for row in rows] for name in ("token", "first_token"))
    most = max((row.held for row in rows), default=1)
    longest = max((row.longest_tokens for row in rows), default=1)
    return {
        "gpus": [gpu_bar(row) for row in rows],
        "token_bands": _bands("time per token", tokens),
        "first_bands": _bands("first token", firsts),
        "room": [_room(row.model, [row.requests, row.in_target, row.held], most) for row in rows],
        "lengths": [_room(row.model, [row.context_tokens, row.longest_tokens], longest) for row in rows],
    }


def gpu_bar(row: ReplicaRow) -> Any:
    """One GPU: weights, what else the engine keeps, the load's KV cache, free cache; a line ends what it may use."""
    width, height = MEMORY
    x, drawn = 0.0, [rect(0, 1, width, height - 2, FREE)]
    for part, colour in zip(row.parts.shares, (INK, OVERHEAD, ANSWER, UNUSED), strict=True):
        drawn.append(rect(x, 1, part * width, height - 2, colour))
        x += part * width
    drawn.append(rect(x, 0, LINE, height, LIMIT))
    names = ("weights", "activations", "outside torch", "graphs", "KV cache of the load", "free KV cache")
    said = ", ".join(f"{size} {name}" for size, name in zip(row.parts.sizes, names, strict=True))
    return picture(f"{row.model}, one GPU: {said}, of {row.parts.total}", drawn, width, height)


def _bands(name: str, bands: Sequence[Band | None]) -> list[Any]:
    """A dot on the line of its 80 % band, and the target, for each."""
    ends = [end for band in bands if band for end in (band.high, band.target or 0)]
    (width, height), right = BAND, max(ends, default=1.0)
    found = []
    for band in bands:
        if band is None:
            found.append("")
            continue
        time, low, high = (2 + (width - 5) * end / right for end in (band.time, band.low, band.high))
        drawn = [line(0.5, 0, 0.5, height, RULE), rect(low, height / 2 - 1.1, high - low, 2.2, INK)]
        if band.target:
            drawn.append(rect(2 + (width - 5) * band.target / right, 0, LINE, height, LIMIT))
        drawn.append(dot(time, height / 2, 2.7, ANSWER, "#ffffff", 0.9))
        target = f", target {band.aim}" if band.target else ""
        found.append(picture(f"{name}: {band.text}{target}", drawn, width, height))
    return found


def _room(name: str, ends: Sequence[float], right: float) -> Any:
    """The load, how much more there may be (within the targets, then by memory), and a line where it breaks."""
    width, height = ROOM
    x, drawn = 0.0, []
    for end, colour in zip(ends, (ANSWER, UNUSED, FREE)[: len(ends)], strict=True):
        to = (width - LINE) * end / right
        drawn.append(rect(x, 1, to - x, height - 2, colour))
        x = to
    drawn.append(rect((width - LINE) * ends[1] / right, 0, LINE, height, LIMIT))
    return picture(f"{name}: {' of '.join(f'{end:,}' for end in ends)}", drawn, width, height)


WEIGHTS, KV, OVERHEAD = "#24476f", "#c97a10", "#87929e"
FREE, INK = "#e9edf1", "#17212b"
ANSWER, UNUSED, LIMIT = "#1b5a8a", "#bcd3e6", "#b3261e"
LINE = 1.2  # points: the line where the memory ends
_SLIVER = 0.8  # points: something that is there is seen
HELD, EDGE, BROKEN = "#d9eadf", "#2c7a4b", "#a3241c"
RULE, QUIET = "#dfe4ea", "#55606d"
FIGURES = 8.5  # points: all figures and names
FOOT = 10.0  # points below the plot, for the contexts
_TOP, _RIGHT = 4.0, 3.5  # points: room for a mark on the edge
_FIGURE = 0.62  # em: the width of a figure, roughly
_APART = 3.0  # points between two figures of an axis


def stacked_bar(bar: Bar, lead: str, *, width: float, height: float) -> Any:
    """Weights, KV cache and overhead behind one another, within the memory of the GPUs chosen, where a line ends it.

    The whole width (points) is that memory, in every bar, so that shares compare. A load that nothing holds fills it,
    and has no line.
    """
    parts = [(bar.weights_bytes, WEIGHTS), (bar.kv_bytes, KV), (bar.overhead_bytes, OVERHEAD)]
    most = max(bar.capacity_bytes or 0.0, sum(n_bytes for n_bytes, _ in parts))
    scale = (width - LINE) / most if most > 0 else 0.0
    drawn = []
    if bar.capacity_bytes is not None:
        drawn.append(rect(0, 1.2, bar.capacity_bytes * scale, height - 2.4, FREE))
    x = 0.0
    for n_bytes, colour in parts:
        if n_bytes > 0:
            length = max(n_bytes * scale, _SLIVER)
            drawn.append(rect(x, 1.2, length, height - 2.4, colour))
            x += length
    title = f"{lead}{bar.weights} weights, {bar.kv} KV cache, {bar.overhead} overhead"
    if bar.capacity_bytes is not None:
        drawn.append(rect(bar.capacity_bytes * scale, 0, LINE, height, INK))
        title += f"; {bar.capacity}"
    return picture(title, drawn, width, height)


def rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{colour}"/>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 0.5, dash: str = "") -> str:
    at = f'x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"'
    return f'<line {at} stroke="{colour}" stroke-width="{width:g}"{_dashed(dash)}/>'


def polyline(points: Sequence[tuple[float, float]], colour: str, width: float, dash: str = "") -> str:
    at = f'points="{_places(points)}" fill="none"'
    return f'<polyline {at} stroke="{colour}" stroke-width="{width:g}"{_dashed(dash)}/>'


def _places(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)


def _dashed(dash: str) -> str:
    return f' stroke-dasharray="{dash}"' if dash else ""


def dot(x: float, y: float, radius: float, fill: str, ink: str, width: float) -> str:
    at = f'cx="{x:.2f}" cy="{y:.2f}" r="{radius:g}"'
    return f'<circle {at} fill="{fill}" stroke="{ink}" stroke-width="{width:g}"/>'


def label(
    x: float, y: float, text: str, family: str, anchor: str = "middle", colour: str = QUIET, weight: int = 400
) -> str:
    at = f'x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}"'
    font = f'font-family="{escape(family)}" font-size="{FIGURES:g}" font-weight="{weight}"'
    return f'<text {at} {font} fill="{colour}">{escape(text)}</text>'


def rules(marks: Mapping[float, str], y: Callable[[float], float], left: float, right: float, family: str) -> list[str]:
    """A rule across the plot at each amount, with its figure to the left."""
    places = [(y(amount), mark) for amount, mark in marks.items()]
    return [
        part
        for at, mark in places
        for part in (line(left, at, right, at, RULE), label(left - 3, at + 2.8, mark, family, "end"))
    ]


def picture(title: str, drawn: list[str], width: float, height: float) -> Any:
    """The picture, safe to put into HTML. Its units are points on the page."""
    named = f"<title>{escape(title)}</title>" if title else ""
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.2f} {height:.2f}"'
        f' width="{width:.2f}pt" height="{height:.2f}pt">{named}{"".join(drawn)}</svg>'
    )


RANGE = 332.0  # points: the width of the bars of the request
_TWO_LINES = 22.0  # points: a bar's height, beside a name and what stands under it
_CHARACTER = 4.9  # points: the width of a character of an amount, roughly
_DOT = 4.6  # points: the radius of the dot at the month as sized
_NAMES_WIDE = 62.0  # points: room for the name of a line through the bars


def range_bars(request: Request, pad: float, accent: str, family: str) -> dict[str, Any]:
    """The bars of what moves the month, each beside its name, on one axis from zero, and what stands above them. Lines
    through all of them are the month as sized and with a margin. pad: points of white above and below each."""
    width, height = RANGE, _TWO_LINES + pad
    ends = [end.value for mover in request.movers for end in (mover.low, mover.high) if end]
    sized, margin = request.sized.value, request.margin.value if request.margin else None
    most = max([*ends, sized, margin or 0.0])
    shown = (str(end) for mover in request.movers for end in (mover.low, mover.high))
    room = _CHARACTER * max(map(len, shown)) + 10  # beside each end of a bar

    def x(amount: float) -> float:
        return room + (width - 2 * room) * float(amount / most)

    lines = {0.0: RULE, **({margin: INK} if margin else {}), sized: accent}
    through = [line(x(amount), 0, x(amount), height, colour, 0.7) for amount, colour in lines.items()]
    heads = [label(x(0) + 3, 9, f"{request.sized.display.prefix}0", family, "end")]
    anchors = ["middle" if x(sized) - x(0) > _NAMES_WIDE else "start", "middle"]
    if margin is not None and abs(x(margin) - x(sized)) < _NAMES_WIDE:
        anchors = ["end", "start"] if margin > sized else ["start", "end"]
    heads.append(label(x(sized), 9, "as sized", family, anchors[0], accent, 600))
    heads += [label(x(margin), 9, "with a margin", family, anchors[1], INK, 600)] if margin else []
    beyond = f", with a margin {request.margin}" if margin else ""
    return {
        "heads": picture(f"From zero; as sized {request.sized}{beyond} a month", heads, width, 12),
        "bars": [_range_bar(mover, x, through, x(sized), (height, room), accent, family) for mover in request.movers],
    }


def _range_bar(
    mover: Mover,
    x: Callable[[float], float],
    through: list[str],
    sized: float,
    size: tuple[float, float],
    accent: str,
    family: str,
) -> Any:
    """One bar with its amounts. size: its height, and the room beside its ends."""
    height, room = size
    middle, end = height / 2, RANGE - room
    low = x(mover.low.value) if mover.low else sized
    high = x(mover.high.value) if mover.high else end
    left, right = min(low, sized - _DOT) - 4, max(high, sized + _DOT) + 4
    drawn = [*through]
    for amount, at, anchor, start in (
        (mover.low, left, "end", left + 9 - room),
        (mover.high, right, "start", right - 1),
    ):
        drawn.append(rect(start, middle - 5, room - 8, 10, "#ffffff"))
        drawn.append(label(at, middle + 3, str(amount) if amount else "nothing", family, anchor, INK))
    drawn += [rect(low, middle - 3, high - low, 6, INK), dot(sized, middle, _DOT, accent, "#ffffff", 1.3)]
    return picture(
        f"{mover.name}, {mover.span}: {mover.low} to {mover.high or 'nothing'} a month", drawn, RANGE, height
    )


@dataclass(frozen=True)
class Axes:
    """What the axes of all curves of a page span, and the contexts that are marked on them."""

    contexts: tuple[float, float]
    requests: tuple[float, float]
    marked: tuple[tuple[int, str], ...]  # (16384, "16k")

    def x(self, tokens: float, width: float) -> float:
        """Where a context stands."""
        low, high = (math.log(c) for c in self.contexts)
        return (math.log(max(tokens, self.contexts[0])) - low) / (high - low) * (width - _RIGHT)

    def y(self, requests: float, height: float) -> float:
        """Where a number of requests stands."""
        high = math.log(self.requests[1])
        plot = height - FOOT - _TOP
        return _TOP + plot * (1 - math.log(max(requests, 1.0)) / high)


def axes_of(breaks: Sequence[Breaks], loads: Sequence[tuple[int, str]]) -> Axes:
    """Axes that hold every curve and every load requested."""
    points = [p for b in breaks for p in (*b.curve, b.asked)]
    contexts = [p.context_tokens for p in points] + [tokens for tokens, _ in loads]
    most = max(10.0, *(p.requests for p in points))
    decade = 10.0 ** math.ceil(math.log10(most) - 1e-9)
    top = decade if most > decade / 2 else decade / 2
    low, high = float(min(contexts)), float(max(contexts))
    if low == high:
        low, high = low / 4, high * 4
    return Axes((low, high), (1.0, top), tuple(dict.fromkeys(sorted(loads))))


def decades(axes: Axes) -> list[int]:
    """The numbers of requests with a rule across."""
    return [10**n for n in range(int(math.log10(axes.requests[1]) + 1e-9) + 1)]


def scale(axes: Axes, *, width: float, height: float, family: str) -> Any:
    """The figures of the vertical axis, which stand once, left of the first curve."""
    shown, last = [], math.inf
    for n in decades(axes):
        y = axes.y(n, height)
        if last - y >= FIGURES:
            words = f"{n // 10**6}M" if n >= 10**6 else f"{n // 1000}k" if n >= 1000 else str(n)
            shown.append(label(width, y + 2.4, words, family, "end"))
            last = y
    return picture(f"Requests at once, from 1 to {axes.requests[1]:,.0f}", shown, width, height)


def curve(b: Breaks, axes: Axes, title: str, *, width: float, height: float, family: str) -> Any:
    """What the hardware holds below its edge, the load requested (a diamond) and where it breaks (rings)."""
    bottom = axes.y(1, height)
    drawn = [line(0, axes.y(n, height), width, axes.y(n, height), RULE) for n in decades(axes)]
    drawn += [line(axes.x(c, width), _TOP, axes.x(c, width), bottom, RULE) for c, _ in axes.marked]
    if b.curve:
        points = [(axes.x(p.context_tokens, width), axes.y(p.requests, height)) for p in b.curve]
        held = [(points[0][0], bottom), *points, (points[-1][0], bottom)]
        drawn.append(f'<polygon points="{_places(held)}" fill="{HELD}"/>')
        drawn += [line(axes.x(c, width), _TOP, axes.x(c, width), bottom, "#c3ccd5") for c, _ in axes.marked]
        drawn.append(polyline(points, EDGE, 1.1))
    x, y = axes.x(b.asked.context_tokens, width), axes.y(b.asked.requests, height)
    if b.curve:
        up = axes.y(b.held.requests, height)
        aside = axes.x(min(b.longest.context_tokens, b.curve[-1].context_tokens), width)
        drawn += [line(x, y, x, up, INK, 0.7, "1.5 1.2"), line(x, y, aside, y, INK, 0.7, "1.5 1.2")]
        drawn += [dot(*at, 1.9, "#ffffff", BROKEN, 1.1) for at in ((x, up), (aside, y))]
    drawn.append(f'<path d="M{x:.2f} {y - 2.8:.2f}l2.8 2.8l-2.8 2.8l-2.8 -2.8z" fill="{INK}"/>')
    drawn += _contexts(axes, b.asked.context_tokens, width, height, family)
    return picture(title, drawn, width, height)


def _contexts(axes: Axes, asked: int, width: float, height: float, family: str) -> list[str]:
    """The contexts of the loads below the plot: that of the load requested, and those that have room beside it."""
    shown: list[str] = []
    taken: list[tuple[float, float]] = []
    for tokens, words in sorted(axes.marked, key=lambda mark: mark[0] != asked):
        half = len(words) * _FIGURE * FIGURES / 2
        at = min(max(axes.x(tokens, width), half), width - half)
        if all(at + half + _APART <= low or at - half >= high + _APART for low, high in taken):
            shown.append(label(at, height - 1.2, words, family))
            taken.append((at - half, at + half))
    return shown
