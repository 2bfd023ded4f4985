"""The page's pictures: small inline SVG, made by hand. Words stand beside them as text, so that they wrap, are read
aloud and can be copied; a picture has figures at its axes alone, and a `<title>`, its alternative text.
"""

from __future__ import annotations

from html import escape
from typing import Any

from sheetgen.sheet.one_page import Bar

WEIGHTS, KV, OVERHEAD = "#24476f", "#c97a10", "#87929e"
FREE, INK = "#e9edf1", "#17212b"
LINE = 1.2  # points: the line where the memory ends
_SLIVER = 0.8  # points: something that is there is seen


def needed(bar: Bar) -> float:
    """Bytes that the load needs: weights, KV cache and overhead."""
    return bar.weights_bytes + bar.kv_bytes + bar.overhead_bytes


def stacked_bar(bar: Bar, lead: str, *, width: float, height: float) -> Any:
    """Weights, KV cache and overhead behind one another, within the memory of the GPUs chosen, where a line ends it.

    The whole width (points) is that memory, in every bar, so that shares compare. A load that nothing holds fills it,
    and has no line.
    """
    most = max(bar.capacity_bytes or 0.0, needed(bar))
    scale = (width - LINE) / most if most > 0 else 0.0
    parts = [(bar.weights_bytes, WEIGHTS), (bar.kv_bytes, KV), (bar.overhead_bytes, OVERHEAD)]
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
    """A filled box."""
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{colour}"/>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 0.5, dash: str = "") -> str:
    """A straight line."""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    at = f'x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"'
    return f'<line {at} stroke="{colour}" stroke-width="{width:g}"{dashed}/>'


def label(x: float, y: float, text: str, anchor: str, size: float, colour: str, family: str) -> str:
    """A figure at an axis."""
    at = f'x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}"'
    return f'<text {at} font-family="{escape(family)}" font-size="{size:g}" fill="{colour}">{escape(text)}</text>'


def picture(title: str, drawn: list[str], width: float, height: float) -> Any:
    """The picture, safe to put into HTML. Its units are points on the page."""
    from markupsafe import Markup

    named = f"<title>{escape(title)}</title>" if title else ""
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.2f} {height:.2f}"'
        f' width="{width:.2f}pt" height="{height:.2f}pt">{named}{"".join(drawn)}</svg>'
    )
