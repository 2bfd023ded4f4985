"""How wide a text is in Arial, in units of a spreadsheet's column, which are digits of 10 points."""

from __future__ import annotations

import functools
from typing import Any

_EM = {
    **dict.fromkeys("ijl|'", 0.222),
    **dict.fromkeys(".,:;!/ ft[]I", 0.278),
    **dict.fromkeys('()r-"`', 0.355),
    **dict.fromkeys("ckszvxyJ", 0.5),
    **dict.fromkeys("ABEKPSVXY", 0.667),
    **dict.fromkeys("CDHNRUw", 0.722),
    **dict.fromkeys("FTZL", 0.611),
    **dict.fromkeys("GOQ", 0.778),
    **dict.fromkeys("mM", 0.833),
    **dict.fromkeys("W@%", 0.944),
}
DIGIT = 0.556  # of an em
BOLD = 1.08
PADDING, INDENT = 0.8, 1.3
LINE = 1.24  # of the font's size


def text_width(text: str, look: dict[str, Any]) -> float:
    """The width that a cell of this look needs for the text on one line."""
    return _bare(text, look) + PADDING + INDENT * int(look.get("indent", 0))


def text_height(text: str, width: float, look: dict[str, Any]) -> float:
    """The height in points that the text needs, wrapped in a column of this width; words stay whole."""
    room = width - PADDING - INDENT * int(look.get("indent", 0))
    lines = 0
    for paragraph in text.split("\n"):
        lines, left = lines + 1, room
        for word in paragraph.split():
            needed = _bare(word, look)
            if needed > left and left < room:
                lines, left = lines + 1, room
            left -= needed + _bare(" ", look)
    return lines * LINE * float(look.get("font_size", 10)) + 2


def longest_word(text: str, look: dict[str, Any]) -> float:
    """The width of the widest word, which a wrapped cell needs at least."""
    return max((text_width(word, look) for word in text.split()), default=0.0)


@functools.lru_cache(maxsize=1 << 14)
def _ems(text: str) -> float:
    return sum(_EM.get(letter, DIGIT) for letter in text)


def _bare(text: str, look: dict[str, Any]) -> float:
    return _ems(text) / DIGIT * float(look.get("font_size", 10)) / 10 * (BOLD if look.get("bold") else 1)
