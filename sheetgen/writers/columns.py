"""How wide the page's columns must be for what stands in them, measured in the bundled fonts.

So a number never wraps, and the columns of words get all the width that the numbers leave.
"""

from __future__ import annotations

from pathlib import Path

from sheetgen.sheet.one_page import OnePage
from sheetgen.writers.fonts import width_em

PAD = 0.8  # em: 0.4 on either side of a cell's text, as in one_page.css; a table's outer edges have none
_RULE = 0.36  # em: the white rule left of a model's figures in the matrix, `.matrix .first` in one_page.css
_SPARE = 0.2  # em: kerning and rounding


def column_widths(page: OnePage, regular: Path, bold: Path) -> dict[str, float]:
    """Width by column class (`c-` in one_page.html.j2), in em, measured in the font that the column is set in."""
    cells = [cell for block in page.matrix for row in block.rows for cell in row.cells]
    facts, rows, levers = page.models, page.instances, page.levers

    def fits(*texts: str, font: Path = regular, beside: float = 0.0, most: float = 99.0) -> float:
        """Holds each text on one line, with `beside` em of rule, unless that takes more than `most` em."""
        return round(min(max((width_em(t, font) for t in texts), default=0.0) + PAD + _SPARE + beside, most), 2)

    def words(*texts: str, font: Path = regular, most: float) -> float:
        """Breaks the texts only between words, unless that takes more than `most` em."""
        return fits(*(word for text in texts for word in text.split()), font=font, most=most)

    headline = [c.kv for block in page.matrix for row in block.rows if row.headline for c in row.cells]
    weights = [text for f in facts for text in (f.weights_bf16, f.weights_fp8)]
    splits = [text for b in page.matrix for text in (b.workload, b.context, b.split)]
    tiers = [f"{'◆ ' * row.headline}{row.tier}" for b in page.matrix for row in b.rows]
    return {
        "tier": max(fits("In flight"), fits(*tiers, font=bold)),
        "workload": words("Workload", *splits, font=bold, most=8.0),
        # Only the headline's figures and the weights in use are bold.
        "kv": max(
            fits(page.unit, *(c.kv for c in cells), beside=_RULE),
            fits(*headline, *weights, font=bold, beside=_RULE),
        ),
        "money": fits("$/month", *(("s " if c.by_speed else "") + c.monthly for c in cells), font=bold),
        "token": fits("A token", *(f.kv_per_token for f in facts), font=bold),
        "full": fits("If full", *(f.full_attention_per_token for f in facts)),
        "ratio": fits("That is", *(f.ratio for f in facts)),
        "sum": fits(*(f"{b.weights} + {b.kv} + {b.overhead}" for b in page.bars), font=bold, most=16.0),
        "usable": fits(*(text for b in page.bars for text in (b.model, b.capacity)), most=19.0),
        "instance": fits("Instance", *(instance_name(i.instance) for i in rows), font=bold, most=10.0),
        "gpus": fits("GPUs", *(i.gpus for i in rows), most=11.0),
        "memory": fits("Memory", *(i.memory for i in rows)),
        "hourly": fits("$/hour", *(i.hourly for i in rows)),
        "where": fits("Where", *(f"{i.provider} {i.region}" for i in rows), most=10.5),
        "date": words("Price of", *(i.price_date for i in rows), most=7.5),
        "used": fits("Used for", *(i.used_for for i in rows), most=9.0),
        "lever-rent": fits("Change, then rent", *(v.rent for v in levers), most=13.0),
        "lever-money": fits("$/month", *(v.monthly for v in levers)),
        "saving": fits("Saves", *(v.saving for v in levers)),
    }


def instance_name(instance: str) -> str:
    """An instance as the page names it: `azure/Standard_NC96ads_A100_v4` is NC96ads A100 v4."""
    return instance.rpartition("/")[2].removeprefix("Standard_").replace("_", " ")
