"""Cut the fonts of the PDF out of Inter: Latin, figures and the marks that the pages use.

    apt-get install fonts-inter
    .venv/bin/python scripts/make_fonts.py

Same Inter and same fonttools, same bytes. WeasyPrint takes a missing glyph from any font of the system
without a word, so this exits 1 when a mark that we use is missing from a weight.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

SOURCE = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/fonts/opentype/inter")
TARGET = Path(__file__).parent.parent / "templates" / "fonts"
WEIGHTS = ("Regular", "SemiBold", "Bold")

# Latin, Latin-1, Latin Extended-A, spacing marks, Greek that units use, spaces, dashes and quotes, super- and
# subscript figures, currency, arrows, mathematics, shapes and ticks.
BLOCKS = """
U+0020-007E U+00A0-017F U+02C6-02C7 U+02D8-02DD U+0394 U+03A3 U+03BC U+2002-200B U+2010-2015 U+2018-201E
U+2020-2022 U+2026 U+202F-2030 U+2032-2033 U+2039-203A U+2044 U+2070-208E U+20AC U+2116 U+2122 U+2190-2199
U+21D0-21D4 U+2202 U+2206 U+2211-2212 U+221A U+221E U+2248 U+2260 U+2264-2265 U+25A0-25A1 U+25AA U+25B2-25B3
U+25B6 U+25BA U+25BC-25BD U+25C6-25C7 U+25CB U+25CF U+25E6 U+2605-2606 U+26A0 U+2713 U+2717
"""
MUST_HAVE = "×÷±≤≥≈≠−–—…•·→←↑↓✓✗▲▼●○■□°µ¹²³⁹₂½¼¾€£$™©®‘’“”\u00a0\u2009\u202f"

# Not `calt`: it prints "8x7B" as "8×7B" and "->" as an arrow, and a name must be printed as it is written.
FEATURES = ["kern", "mark", "ccmp", "locl", "tnum", "zero", "case", "frac", "sups", "subs", "ss01", "ss02"]
NAMES = [0, 1, 2, 3, 4, 5, 6, 13, 14, 16, 17]  # copyright, family, version, licence


def cut(weight: str) -> bytes:
    options = subset.Options(layout_features=FEATURES, hinting=False, name_IDs=NAMES)
    font = subset.load_font(str(SOURCE / f"Inter-{weight}.otf"), options)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=subset.parse_unicodes(BLOCKS.replace("\n", " ")))
    cutter.subset(font)
    path = TARGET / f"Inter-{weight}.otf"
    subset.save_font(font, str(path), options)
    path.with_suffix(".json").write_text(json.dumps(widths(path), ensure_ascii=False, indent=0) + "\n", "utf-8")
    return path.read_bytes()


def widths(path: Path) -> dict[str, float]:
    """The width of each character in em, figures in their tabular form: what the page is measured with."""
    with TTFont(path) as font:
        advances, per_em = font["hmtx"], font["head"].unitsPerEm
        tabular: dict[str, str] = {}
        table = font["GSUB"].table
        for record in table.FeatureList.FeatureRecord:
            if record.FeatureTag == "tnum":
                for index in record.Feature.LookupListIndex:
                    for sub in table.LookupList.Lookup[index].SubTable:
                        tabular.update(getattr(sub, "ExtSubTable", sub).mapping)
        return {chr(code): advances[tabular.get(name, name)][0] / per_em for code, name in font.getBestCmap().items()}


def main() -> int:
    TARGET.mkdir(parents=True, exist_ok=True)
    wanting = 0
    for weight in WEIGHTS:
        size = len(cut(weight))
        glyphs = TTFont(TARGET / f"Inter-{weight}.otf").getBestCmap()
        missing = [f"{c} U+{ord(c):04X}" for c in MUST_HAVE if ord(c) not in glyphs]
        wanting += len(missing)
        print(f"Inter-{weight}.otf: {len(glyphs)} characters, {size:,} bytes", *missing, sep="\n  missing ")
    return 1 if wanting else 0


if __name__ == "__main__":
    sys.exit(main())
