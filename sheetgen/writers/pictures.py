"""The page's pictures as small inline SVG: a bar of one GPU's memory, times as dots on their bands, the capacity of a
replica, and bars of the inputs that move the cost.

Words are beside them as text, so that they wrap, are read aloud and can be copied; a picture has figures at its axes,
names at its lines, and a `<title>` as alternative text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from markupsafe import Markup

from sheetgen.report.page import Band, Mover, ReplicaRow, Request

MEMORY, BAND, ROOM = (90.0, 8.0), (100.0, 8.0), (76.0, 8.0)  # points: width and height


def pictures_of(rows: Sequence[ReplicaRow]) -> dict[str, object]:
    """The pictures of engineers.html.j2 by kind, one per row, on one scale: GPU memory, times, capacity of a
    replica."""
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


def gpu_bar(row: ReplicaRow) -> Markup:
    """The bar of one GPU's memory: weights, other memory, the load's KV cache, free cache; a line marks the limit."""
    width, height = MEMORY
    x, drawn = 0.0, [rect(0, 1, width, height - 2, FREE)]
    for part, colour in zip(row.parts.shares, (INK, OVERHEAD, ANSWER, UNUSED), strict=True):
        drawn.append(rect(x, 1, part * width, height - 2, colour))
        x += part * width
    drawn.append(rect(x, 0, LINE, height, LIMIT))
    names = ("weights", "activations", "outside torch", "graphs", "KV cache of the load", "free KV cache")
    sizes = ", ".join(f"{size} {name}" for size, name in zip(row.parts.sizes, names, strict=True))
    return picture(f"{row.model}, one GPU: {sizes}, of {row.parts.total}", drawn, width, height)


def _bands(name: str, bands: Sequence[Band | None]) -> list[Markup | str]:
    """For each row the time as a dot on its 80 % band, with the target and a ring at the time with every place taken;
    empty without a band."""
    ends = [end for band in bands if band for end in (band.high, band.target or 0, band.full or 0)]
    (width, height), right = BAND, max(ends, default=1.0)
    pictures = []
    for band in bands:
        if band is None:
            pictures.append("")
            continue
        time, low, high = (2 + (width - 5) * end / right for end in (band.time, band.low, band.high))
        drawn = [line(0.5, 0, 0.5, height, RULE), rect(low, height / 2 - 1.1, high - low, 2.2, INK)]
        if band.target:
            drawn.append(rect(2 + (width - 5) * band.target / right, 0, LINE, height, LIMIT))
        drawn.append(dot(time, height / 2, 2.7, ANSWER, "#ffffff", 0.9))
        if band.full is not None:
            drawn.append(dot(2 + (width - 5) * band.full / right, height / 2, 2.2, "#ffffff", ANSWER, 0.9))
        target = f", target {band.aim}" if band.target else ""
        pictures.append(picture(f"{name}: {band.text}{target}", drawn, width, height))
    return pictures


def _room(name: str, ends: Sequence[float], right: float) -> Markup:
    """A bar of the load and of further capacity (within the targets, then by memory), with a line at the limit."""
    width, height = ROOM
    x, drawn = 0.0, []
    for end, colour in zip(ends, (ANSWER, UNUSED, FREE)[: len(ends)], strict=True):
        to = (width - LINE) * end / right
        drawn.append(rect(x, 1, to - x, height - 2, colour))
        x = to
    drawn.append(rect((width - LINE) * ends[1] / right, 0, LINE, height, LIMIT))
    return picture(f"{name}: {' of '.join(f'{end:,}' for end in ends)}", drawn, width, height)


OVERHEAD = "#87929e"
FREE, INK = "#e9edf1", "#17212b"
ANSWER, UNUSED, LIMIT = "#1b5a8a", "#bcd3e6", "#b3261e"
LINE = 1.2  # points: width of a limit's line
RULE, QUIET = "#dfe4ea", "#55606d"
FIGURES = 8.5  # points: all figures and names


def rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{colour}"/>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 0.5, dash: str = "") -> str:
    ends = f'x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"{_dashed(dash)}/>'


def polyline(points: Sequence[tuple[float, float]], colour: str, width: float, dash: str = "") -> str:
    shape = f'points="{_places(points)}" fill="none"'
    return f'<polyline {shape} stroke="{colour}" stroke-width="{width:g}"{_dashed(dash)}/>'


def _places(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)


def _dashed(dash: str) -> str:
    return f' stroke-dasharray="{dash}"' if dash else ""


def dot(x: float, y: float, radius: float, fill: str, ink: str, width: float) -> str:
    shape = f'cx="{x:.2f}" cy="{y:.2f}" r="{radius:g}"'
    return f'<circle {shape} fill="{fill}" stroke="{ink}" stroke-width="{width:g}"/>'


def label(
    x: float, y: float, text: str, family: str, anchor: str = "middle", colour: str = QUIET, weight: int = 400
) -> str:
    place = f'x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}"'
    font = f'font-family="{escape(family)}" font-size="{FIGURES:g}" font-weight="{weight}"'
    return f'<text {place} {font} fill="{colour}">{escape(text)}</text>'


def rules(marks: Mapping[float, str], y: Callable[[float], float], left: float, right: float, family: str) -> list[str]:
    """Rules across the plot at these amounts, with their figures at the left."""
    places = [(y(amount), mark) for amount, mark in marks.items()]
    return [
        part
        for height, mark in places
        for part in (line(left, height, right, height, RULE), label(left - 3, height + 2.8, mark, family, "end"))
    ]


def picture(title: str, drawn: list[str], width: float, height: float) -> Markup:
    """The picture as markup for HTML; its units are points on the page."""
    named = f"<title>{escape(title)}</title>" if title else ""
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.2f} {height:.2f}"'
        f' width="{width:.2f}pt" height="{height:.2f}pt">{named}{"".join(drawn)}</svg>'
    )


RANGE = 332.0  # points: the width of the bars of the request
_TWO_LINES = 22.0  # points: a bar's height, beside a name of two lines
_CHARACTER = 4.9  # points: the rough width of a character of an amount
_CLEAR = 3.0  # points between an amount and a line through the bars
_DOT = 4.6  # points: the radius of the dot at the cost as sized
_NAMES_WIDE = 62.0  # points: the width of the name of a line through the bars


def range_bars(request: Request, pad: float, accent: str, family: str) -> dict[str, object]:
    """The bars of the inputs that move the monthly cost, on one axis from zero, and the heading above them.

    Lines through all of them mark the cost as sized and with a margin. pad: points of white above and below each.
    """
    width, height = RANGE, _TWO_LINES + pad
    ends = [end.value for mover in request.movers for end in (mover.low, mover.high) if end]
    sized, margin = request.sized.value, request.margin.value if request.margin else None
    most = max([*ends, sized, margin or 0.0])
    shown = (str(end) for mover in request.movers for end in (mover.low, mover.high))
    room = _CHARACTER * max(map(len, shown)) + 10  # beside each end of a bar

    def x(amount: float) -> float:
        return room + (width - 2 * room) * float(amount / most)

    lines = {0.0: RULE, **({margin: INK} if margin else {}), sized: accent}
    through = [(x(amount), colour) for amount, colour in lines.items()]
    heads = [label(x(0) + 3, 9, f"{request.sized.display.prefix}0", family, "end")]
    anchors = ["middle" if x(sized) - x(0) > _NAMES_WIDE else "start", "middle"]
    places = [x(sized), x(margin or 0)]
    if margin is not None and abs(x(margin) - x(sized)) < _NAMES_WIDE:
        anchors = ["end", "start"] if margin > sized else ["start", "end"]
        edges = {"start": width - _NAMES_WIDE, "end": width - _NAMES_WIDE - 4}
        places = [min(place, edges[anchor]) for place, anchor in zip(places, anchors, strict=True)]
    heads.append(label(places[0], 9, "as sized", family, anchors[0], accent, 600))
    heads += [label(places[1], 9, "with a margin", family, anchors[1], INK, 600)] if margin else []
    beyond = f", with a margin {request.margin}" if margin else ""
    return {
        "heads": picture(f"From zero; as sized {request.sized}{beyond} a month", heads, width, 12),
        "bars": [_range_bar(mover, x, through, x(sized), (height, room), accent, family) for mover in request.movers],
    }


def _range_bar(
    mover: Mover,
    x: Callable[[float], float],
    through: Sequence[tuple[float, str]],
    sized: float,
    size: tuple[float, float],
    accent: str,
    family: str,
) -> Markup:
    """One bar with its amounts. through: the lines through all bars, left out where an amount stands. size: its height,
    and the space beside its ends, in points."""
    height, room = size
    middle, end = height / 2, RANGE - room
    low = x(mover.low.value) if mover.low else sized
    high = x(mover.high.value) if mover.high else end
    left, right = min(low, sized - _DOT) - 4, max(high, sized + _DOT) + 4
    amounts, taken = list[str](), list[tuple[float, float]]()
    for amount, edge, anchor in ((mover.low, left, "end"), (mover.high, right, "start")):
        text = str(amount) if amount else "nothing"
        wide = _CHARACTER * len(text) + _CLEAR
        taken.append((edge - wide, edge) if anchor == "end" else (edge, edge + wide))
        amounts.append(label(edge, middle + 3, text, family, anchor, INK))
    free = [(place, colour) for place, colour in through if not any(first < place < last for first, last in taken)]
    drawn = [line(place, 0, place, height, colour, 0.7) for place, colour in free]
    drawn += [*amounts, rect(low, middle - 3, high - low, 6, INK), dot(sized, middle, _DOT, accent, "#ffffff", 1.3)]
    return picture(
        f"{mover.name}, {mover.span}: {mover.low} to {mover.high or 'nothing'} a month", drawn, RANGE, height
    )
