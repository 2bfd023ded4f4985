"""Words on the page can be read: every text colour has a contrast of 4.5 or more on the grounds it stands on."""

from __future__ import annotations

import re

import pytest
from pages import TEMPLATES

CSS = (TEMPLATES / "one_page.css").read_text(encoding="utf-8")
RULES = [
    (head.strip(), body)
    for head, body in re.findall(r"([^{}]+)\{([^{}]*)\}", re.sub(r"/\*.*?\*/", "", CSS, flags=re.S))
]
TEXT = {
    colour for head, body in RULES if "fill-" not in head for colour in re.findall(r"(?<![-\w])color: (#\w+)", body)
}
GROUNDS = {"#ffffff"} | {  # a bar has no words on it
    colour for head, body in RULES if ".bar" not in head for colour in re.findall(r"background: (#\w+)", body)
}
OWN_GROUND = {"#8f1d16": "#fae3e0"}  # a state's words, on its tint


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(color: str, other: str) -> float:
    light, dark = sorted((luminance(color), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colour", sorted(TEXT))
def test_contrast(colour: str) -> None:
    assert len(TEXT) >= 4 and len(GROUNDS) >= 2
    grounds = {"#ffffff", OWN_GROUND[colour]} if colour in OWN_GROUND else GROUNDS
    assert min(contrast(colour, ground) for ground in grounds) >= 4.5
