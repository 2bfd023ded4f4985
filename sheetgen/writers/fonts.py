"""The bundled fonts (templates/fonts): where they are, what they can draw, how wide a text is in them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from sheetgen.sheet.page import Text

FONTS = {400: "Inter-Regular.otf", 600: "Inter-SemiBold.otf", 700: "Inter-Bold.otf"}  # weight: file
FAMILY = "Sheetgen Inter"  # a name of our own, so that an Inter of the system is never taken instead


@cache
def drawable_with(font: Path) -> Callable[[str], str]:
    """What makes a text drawable with the bundled fonts alone: a character they lack becomes its plain form, or `?`.

    So a name in another script, an emoji or a control character can never bring in a font of the system, which would
    differ from machine to machine.
    """
    import unicodedata

    from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

    with TTFont(font) as opened:
        known = frozenset(map(chr, opened.getBestCmap()))

    def drawable(text: str) -> str:
        if known.issuperset(text):
            return text
        return "".join(char if char in known else plain(char) for char in text)

    def plain(char: str) -> str:
        simple = "".join(c for c in unicodedata.normalize("NFKD", char) if c in known)
        return " " if char.isspace() else simple or "?"

    return drawable


def width_em(text: Text, font: Path) -> float:
    """The width of `text` on one line, in em."""
    advances = _advances(font)
    return sum(advances.get(char, 0.6) for char in str(text))


@cache
def _advances(font: Path) -> dict[str, float]:
    """The width of each character in em, figures in their tabular form."""
    from fontTools.ttLib import TTFont

    with TTFont(font) as opened:
        widths, per_em = opened["hmtx"], opened["head"].unitsPerEm
        tabular: dict[str, str] = {}
        table = opened["GSUB"].table
        for record in table.FeatureList.FeatureRecord:
            if record.FeatureTag == "tnum":
                for index in record.Feature.LookupListIndex:
                    for sub in table.LookupList.Lookup[index].SubTable:
                        tabular.update(getattr(sub, "ExtSubTable", sub).mapping)
        return {chr(code): widths[tabular.get(name, name)][0] / per_em for code, name in opened.getBestCmap().items()}
