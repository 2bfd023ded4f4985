"""Look-ups into the blocks of Profiles, at the context of a load and the profile of its choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sheetgen.formula import Expr, is_number, where
from sheetgen.sheet.book.wiring import Table, Wiring, named
from sheetgen.sheet.model import Range
from sheetgen.units import WHOLE, Display


def of_profile(
    wiring: Wiring, table: Table, name: str, label: str, rows: Sequence[Range], display: Display = WHOLE
) -> None:
    """What a block of Profiles, a row for each model and workload or each model, holds in the chosen profile's
    column; 0 where nothing was chosen."""
    key = "model_row" if name in wiring.by_model else "pace_row"
    here = table.sheet.name
    block = named(wiring.names, f"tbl_{wiring.prefix}profiles_{name}", (rows[0].refs[0], rows[-1].refs[-1]))

    def find(i: int) -> tuple[Any, Expr]:
        place, pace = table.columns["profile"][i], table.columns[key][i]
        text = f"INDEX({block.expr(here).text},{pace.expr(here).text},{place.expr(here).text})"
        expr = where(is_number(place.expr(here)), Expr(text), 0)
        return (0 if place.value == "-" else rows[pace.value - 1].refs[place.value - 1].value), expr

    table.looked_up(name, label, find, display)
