"""How wide the page's columns must be for what stands in them, measured in the bundled fonts.

So a number never wraps, and the columns of words get all the width that the numbers leave.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path

from sheetgen.sheet.one_page import OnePage
from sheetgen.writers.fonts import width_em

PAD = 0.8  # em: 0.4 on either side of a cell's text, as in one_page.css; a table's outer edges have none
_SPARE = 0.2  # em: kerning and rounding
_RAGGED = 1.02  # of a text's width: what breaking between words leaves unused
_LEAST_SHARE = 20  # per cent
_MARK = 0.7  # em: the letter of a figure's provenance


def column_widths(page: OnePage, regular: Path, bold: Path) -> dict[str, float]:
    """Width by column class (`c-` in one_page.html.j2), in em, measured in the font that the column is set in."""
    rows, levers = page.instances, page.levers

    def fits(*texts: str, font: Path = regular, beside: float = 0.0, most: float = 99.0) -> float:
        """Holds each text on one line, with `beside` em more, unless that takes more than `most` em."""
        return round(min(max((width_em(t, font) for t in texts), default=0.0) + PAD + _SPARE + beside, most), 2)

    classes = {
        f"class-{n}": fits(name, *(i.classes[n] for i in rows), font=bold, most=8.0)
        for n, name in enumerate(page.price_classes)
    }
    paid = {
        f"pay-{n}": fits(name, *(c.classes[n] for c in page.paid), font=bold, most=9.0)
        for n, name in enumerate(page.price_classes)
    }
    return {
        **classes,
        **paid,
        "pay-model": fits("Model", *(c.model for c in page.paid), font=bold, most=14.0),
        "owned": fits("Owned", *(c.owned for c in page.paid), beside=0.6 + _MARK, most=26.0),
        "instance": fits("Instance", *(instance_name(i.instance) for i in rows), font=bold, most=12.0),
        "gpus": fits("GPUs", *(i.gpus for i in rows), most=11.0),
        "memory": fits("Memory", *(i.memory for i in rows), beside=_MARK, most=12.0),
        "where": fits("Where", *(f"{i.provider} {i.region}" for i in rows), most=11.5),
        "date": fits("Price of", *(f"{i.price_date}{' old' * i.stale}" for i in rows), most=9.0),
        "lever-model": fits("Model", *(v.model for v in levers), font=bold, most=14.0),
        "lever-change": fits("Change", *(v.change for v in levers), most=24.0),
        "lever-money": fits("$/month", *(v.monthly for v in levers), most=9.0),
        "saving": fits("saves", *(v.saving for v in levers), most=9.0),
        "share": fits("", *(v.share for v in levers), most=6.0),
    }


def oom_shares(page: OnePage, symptoms: bool, room: float, regular: Path, bold: Path) -> list[int]:
    """How the rows on where a deployment dies share `room` em: the split, in per cent, that takes the fewest lines."""
    rows = []
    for f in page.fingerprints:
        here = width_em(f.here.removeprefix(f"{page.subject}: "), regular)
        place, bill = width_em(f"{f.where}: ", bold), width_em(f.bill, regular)
        symptom = [width_em(f.looks_like, regular)] if symptoms else []
        rows.append([max(place, bill) if symptoms else place + bill, *symptom, width_em(f.change, regular), here])
    n = 3 + symptoms
    splits = itertools.product(range(_LEAST_SHARE, 50, 2), repeat=n - 1)
    shares: list[tuple[int, ...]] = [(*s, 100 - sum(s)) for s in splits if sum(s) <= 100 - _LEAST_SHARE]

    def lines(split: tuple[int, ...]) -> tuple[int, float]:
        left = [share / 100 * room - PAD for share in split]
        n_lines = [
            [math.ceil(max(ems, 0.1) * _RAGGED / has) for ems, has in zip(row, left, strict=True)] for row in rows
        ]
        return sum(max(row) for row in n_lines), max(split) - min(split)

    best: tuple[int, ...] = min(shares, key=lines)
    return list(best)


def instance_name(instance: str) -> str:
    """An instance as the page names it: `azure/Standard_NC96ads_A100_v4` is NC96ads A100 v4."""
    return instance.rpartition("/")[2].removeprefix("Standard_").replace("_", " ")
