"""How wide the page's columns must be for what stands in them, measured in the bundled fonts.

So a number never wraps, and the columns of words get all the width that the numbers leave.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sheetgen.sheet.one_page import OnePage

_PAD = 0.8  # em: 0.4 on either side of a cell's text, as in one_page.css
_SPARE = 0.2  # em: kerning and rounding


def column_widths(page: OnePage, font: Path) -> dict[str, str]:
    """CSS width by column class (one_page.css), in em. `font` is the boldest that the page sets, the widest."""
    cells = [cell for block in page.matrix for row in block.rows for cell in row.cells]
    facts, rows, levers = page.models, page.instances, page.levers

    def fits(*texts: str, most: float = 99.0) -> str:
        """Holds each text on one line, unless that takes more than `most` em."""
        return f"{min(max((width_em(t, font) for t in texts), default=0.0) + _PAD + _SPARE, most):.2f}em"

    def words(*texts: str, most: float) -> str:
        """Breaks the texts only between words, unless that takes more than `most` em."""
        return fits(*(word for text in texts for word in text.split()), most=most)

    return {
        "tier": fits("In flight", *(f"{'◆ ' * row.headline}{row.tier}" for b in page.matrix for row in b.rows)),
        "workload": words(
            "Workload", *(t for b in page.matrix for t in (b.workload, b.context, b.split)), most=8.0
        ),
        "kv": fits(page.unit, *(c.kv for c in cells), *(t for f in facts for t in (f.weights_bf16, f.weights_fp8))),
        "money": fits("$/month", *(c.monthly for c in cells)),
        "token": fits("a token", *(f.kv_per_token for f in facts)),
        "full": fits("if full", *(f.full_attention_per_token for f in facts)),
        "ratio": fits("that is", *(f.ratio for f in facts)),
        "sum": fits(*(f"{b.weights} + {b.kv} + {b.overhead}" for b in page.bars), most=16.0),
        "usable": fits(*(b.capacity for b in page.bars), most=18.0),
        "gpus": fits("GPUs", *(i.gpus for i in rows), most=8.0),
        "memory": fits("memory", *(i.memory for i in rows)),
        "hourly": fits("$/hour", *(i.hourly for i in rows)),
        "where": fits("Where", *(f"{i.provider} {i.region}" for i in rows), most=9.2),
        "date": words("price of", *(i.price_date for i in rows), most=7.5),
        "used": fits("used for", *(i.used_for for i in rows), most=7.0),
        "lever-money": fits("$/month", *(v.monthly for v in levers)),
        "saving": words("saves", *(v.saving for v in levers), most=6.0),
    }


def width_em(text: str, font: Path) -> float:
    """The width of `text` on one line, in em."""
    advances = _advances(font)
    return sum(advances.get(char, 0.6) for char in text)


@cache
def _advances(font: Path) -> dict[str, float]:
    """The width of each character in em, figures in their tabular form."""
    from fontTools.ttLib import TTFont

    opened = TTFont(font, lazy=True)
    widths, per_em = opened["hmtx"], opened["head"].unitsPerEm
    tabular: dict[str, str] = {}
    table = opened["GSUB"].table
    for record in table.FeatureList.FeatureRecord:
        if record.FeatureTag == "tnum":
            for index in record.Feature.LookupListIndex:
                for sub in table.LookupList.Lookup[index].SubTable:
                    tabular.update(getattr(sub, "ExtSubTable", sub).mapping)
    return {chr(code): widths[tabular.get(name, name)][0] / per_em for code, name in opened.getBestCmap().items()}
