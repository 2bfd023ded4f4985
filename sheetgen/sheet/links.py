"""Addresses in what a source says of itself: catalogs name repositories, papers and sites in prose."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SHAPES = (  # what is found in a text, and where it leads
    (re.compile(r"https?://[^\s;,)\]>\"']+"), "{0}"),
    (re.compile(r"(?:github:)?\b([A-Za-z0-9][\w.-]*/[\w.-]+)@([0-9a-f]{7,40})\b"), "https://github.com/{1}/tree/{2}"),
    (re.compile(r"github:([A-Za-z0-9][\w.-]*/[\w.-]*\w)"), "https://github.com/{1}"),
    (re.compile(r"\barXiv:(\d{4}\.\d{4,5})"), "https://arxiv.org/abs/{1}"),
    (re.compile(r"(?<![\w.@/-])(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|co)(?:/[\w.~/-]*)?(?![\w@])"), "https://{0}"),
)
MOST_LINK = 2079  # characters that Excel allows


def first_link(text: str) -> str | None:
    """The address that stands first in a text; none where there is none."""
    found = [(match.start(), i, match) for i, (shape, _) in enumerate(_SHAPES) if (match := shape.search(text))]
    if not found:
        return None
    _, i, match = min(found, key=lambda one: one[:2])
    link = _SHAPES[i][1].format(match[0], *match.groups()).rstrip(".")
    return link if len(link) <= MOST_LINK else None


def links(texts: Iterable[str | None]) -> list[str | None]:
    """`first_link` of each text."""
    return [first_link(text) if text else None for text in texts]
