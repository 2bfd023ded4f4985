"""A part of a long line, cut between words, so that what it says can be read."""

from __future__ import annotations

from sheetgen.errors import shown

MOST = 300
_BEFORE = 80  # characters before what was found
_NEAR = 40  # a place between words is looked for within so many


def excerpt(text: str, begin: int = 0, end: int = 0, most: int = MOST) -> str:
    """The line from its beginning where `begin` to `end` are within `most` characters, else from a little before."""
    first = 0 if end <= most else max(0, begin - _BEFORE)
    if first:
        gap = text.find(" ", first, first + _NEAR)
        first = gap + 1 if gap >= 0 else first
    part = text[first : first + most]
    if first + most < len(text):
        gap = part.rfind(" ", most - _NEAR)
        part = f"{part[: gap if gap >= 0 else most]}…"
    return str(shown(f"…{part}" if first else part, 2 * most))
