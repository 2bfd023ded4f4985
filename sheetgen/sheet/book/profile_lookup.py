"""Look-ups into the blocks of Profiles, at the context of a load and the profile of its choice; rows of Candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sheetgen.formula import Expr, is_number, where
from sheetgen.sheet.book.wiring import Table, Wiring, named
from sheetgen.sheet.model import Found, Range, Ref
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


def row_of(wiring: Wiring, name: str, rows: Sequence[Range], at: Ref) -> Found:
    """The row of a matrix at a position from 1, as a whole: by the matrix's defined name."""
    block = named(wiring.names, f"tbl_{wiring.prefix}candidates_{name}", (rows[0].refs[0], rows[-1].refs[-1]))

    def write(here: str) -> Expr:
        return Expr(f"INDEX({block.expr(here).text},{at.expr(here).text},0)")

    return Found(rows[int(at.value) - 1].value, write)
