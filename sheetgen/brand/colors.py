"""The colours that a brand may set, and whether words can be read in them: WCAG 2 level AA asks a contrast of 4.5.

What carries meaning is not among them: the tints of fits, tight and none, and the blue on yellow of inputs.
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator

from sheetgen.catalog.base import Entry

LEAST_CONTRAST = 4.5
WHITE = "#FFFFFF"
PAGE = {"heading": "#17212B", "accent": "#24476F", "tint": "#F3F6F9"}  # the PDF's own, where a brand names none
ON_TINT = ("#3B4753", "#8F1D16")  # the lightest words that stand on the tint, in one_page.css
RESERVED = {  # hues of the grounds that carry meaning, in degrees
    "the yellow of inputs and the amber of what is tight": 50,
    "the green of what fits": 141,
    "the red of what does not fit": 3,
}
_TOO_NEAR = 25  # degrees
_GREY = 8  # of 255: below this difference between its parts a ground has no hue that one would see
_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")


def _color(value: Any) -> str:
    if not isinstance(value, str) or not _COLOR.fullmatch(value):
        example = 'such as "#0B5FFF" (without quotes # begins a comment)'
        raise ValueError(f"is no colour: write # and six hex digits in quotes, {example}")
    return value.upper()


Color = Annotated[str | None, BeforeValidator(_color)]


class Colors(Entry):
    """A brand's colours, as #RRGGBB; None where the sheet's own stays."""

    heading: Color = None  # the title, the sections' headings (white words on it in the workbook), the page's rules
    accent: Color = None  # the answers, and the links of the page
    tint: Color = None  # the ground of the answers on the page, and of the tables' heads in the workbook

    def wrong(self) -> Iterator[tuple[str, str]]:
        """Which colour cannot be read or is taken, and one sentence with its contrast and one that would do."""
        for name in ("heading", "accent"):
            color = getattr(self, name)
            if color is not None:
                ground = min(WHITE, self.tint or PAGE["tint"], key=_luminance)
                if (ratio := contrast(color, ground)) < LEAST_CONTRAST:
                    where = "white" if contrast(color, WHITE) < LEAST_CONTRAST else f"the tint {ground}"
                    ratio = contrast(color, WHITE) if where == "white" else ratio
                    yield name, _too_pale(name, color, where, ratio, _nearest(color, -0.01, (ground,)))
        if self.tint is not None:
            yield from (("tint", sentence) for sentence in _tint_faults(self.tint))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG defines it: 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _tint_faults(tint: str) -> Iterator[str]:
    ink, ratio = min(((ink, contrast(tint, ink)) for ink in ON_TINT), key=lambda pair: pair[1])
    if ratio < LEAST_CONTRAST:
        yield _too_pale("tint", tint, f"dark words ({ink})", ratio, _nearest(tint, 0.01, ON_TINT))
    parts = _parts(tint)
    hue = 360 * colorsys.rgb_to_hls(*(p / 255 for p in parts))[0]
    for what, taken in RESERVED.items():
        if max(parts) - min(parts) >= _GREY and abs((hue - taken + 180) % 360 - 180) < _TOO_NEAR:
            yield f"tint is {tint!r}, too near to {what}, which means something. Take a grey, a blue or a violet"


def _too_pale(name: str, color: str, where: str, ratio: float, best: str | None) -> str:
    # Rounded down: 4.46 must not read as 4.5.
    shown = int(ratio * 100) / 100
    advice = f"Try {best!r}" if best else f"Take one that is {'lighter' if name == 'tint' else 'darker'}"
    return f"{name} is {color!r}: its contrast with {where} is {shown}, and words need {LEAST_CONTRAST}. {advice}"


def _nearest(color: str, step: float, others: Iterable[str]) -> str | None:
    """The first colour of the same hue that can be read with all `others`, going darker or lighter by `step`."""
    hue, light, saturation = colorsys.rgb_to_hls(*(p / 255 for p in _parts(color)))
    while 0 <= (light := light + step) <= 1:
        red, green, blue = (round(p * 255) for p in colorsys.hls_to_rgb(hue, light, saturation))
        found = f"#{red:02X}{green:02X}{blue:02X}"
        if all(contrast(found, other) >= LEAST_CONTRAST for other in others):
            return found
    return None


def _parts(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _luminance(color: str) -> float:
    parts = (x / 255 for x in _parts(color))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def page_colors(colors: Colors | None) -> dict[str, str]:
    """The page's colours by name, those of a brand in place of its own."""
    return PAGE | (colors.model_dump(exclude_none=True) if colors else {})
