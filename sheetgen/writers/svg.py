"""The page's pictures: small inline SVG bars, made by hand. Words stand beside them as text, so that they wrap,
are read aloud and can be copied; the only words in a picture are its `<title>`, which becomes the alternative text.
"""

from __future__ import annotations

from html import escape
from typing import Any

from sheetgen.sheet.one_page import Bar

WEIGHTS, KV, OVERHEAD = "#24476f", "#c97a10", "#87929e"
TRACK, INK = "#e9edf1", "#17212b"
_SLIVER = 0.8  # points: something that is there is seen


def needed(bar: Bar) -> float:
    """Bytes that the load needs: weights, KV cache and overhead."""
    return bar.weights_bytes + bar.kv_bytes + bar.overhead_bytes


def stacked_bar(bar: Bar, lead: str, longest: float, *, width: float, height: float) -> Any:
    """Weights, KV cache and overhead of one model behind one another, and a line where its GPUs' memory ends.

    `longest` bytes fill the `width` (points), the same for all models, so that bars compare with one another.
    """
    scale = (width - 2) / longest if longest > 0 else 0.0
    parts = [(bar.weights_bytes, WEIGHTS), (bar.kv_bytes, KV), (bar.overhead_bytes, OVERHEAD)]
    drawn = []
    if bar.capacity_bytes is not None:
        drawn.append(_rect(0, 1.5, bar.capacity_bytes * scale, height, TRACK))
    x = 0.0
    for n_bytes, colour in parts:
        if n_bytes > 0:
            length = max(n_bytes * scale, _SLIVER)
            drawn.append(_rect(x, 1.5, length, height, colour))
            x += length
    title = f"{lead}{bar.weights} weights, {bar.kv} KV cache, {bar.overhead} overhead"
    if bar.capacity_bytes is not None:
        drawn.append(_rect(bar.capacity_bytes * scale, 0, 1.2, height + 3, INK))
        title += f"; {bar.capacity}"
    return _svg(title, drawn, width, height + 3)


def pair_bar(kv: float, full: float, most: float, title: str, *, width: float, height: float) -> Any:
    """KV bytes of a token (dark) within what full multi-head attention would cost (light); `most` fills the width."""
    scale = width / most if most > 0 else 0.0
    drawn = [
        _rect(0, 0, max(full * scale, _SLIVER), height, "#f0d3a4"),
        _rect(0, 0, max(kv * scale, _SLIVER), height, "#a8620b"),
    ]
    return _svg(title, drawn, width, height)


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{colour}"/>'


def _svg(title: str, drawn: list[str], width: float, height: float) -> Any:
    """The picture, safe to put into HTML. Its units are points on the page."""
    from markupsafe import Markup

    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.2f} {height:.2f}"'
        f' width="{width:.2f}pt" height="{height:.2f}pt"><title>{escape(title)}</title>{"".join(drawn)}</svg>'
    )
