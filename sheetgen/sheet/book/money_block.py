"""One model's part of the Money sheet, filled row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sheetgen import cost
from sheetgen.formula import Expr, Formula, both, is_number, where
from sheetgen.sheet.book.wiring import Wiring
from sheetgen.sheet.model import NONE, Found, Range, Ref, Sheet, Source, found, index
from sheetgen.units import Display

HOURLY, MONTHLY, ANNUAL, THREE_YEARS = 1, 2, 3, 4  # the columns of money in every table of a block
SUMS = ((ANNUAL, cost.annual_usd), (THREE_YEARS, cost.three_year_usd))


class Block:
    """What the tables of one model read of the chosen load, and the row that is filled next."""

    def __init__(self, sheet: Sheet, wiring: Wiring, at: Ref, row: int) -> None:
        self.sheet, self.wiring, self.at, self.row = sheet, wiring, at, row

    def of(self, name: str) -> Found:
        """What a column of Workings says of the load."""
        return found(self.wiring.tables["cells"].range(name), self.at)

    def head(self, *labels: str) -> None:
        """A row of column heads; "" leaves a column without one."""
        for column, label in enumerate(labels):
            if label:
                self.sheet.text(self.row, column, label, "head")
        self.sheet.heights[self.row] = 31
        self.row += 1

    def label(self, text: str, column: int = 0, role: str = "label") -> Ref:
        return self.sheet.text(self.row, column, text, role)

    def show(self, column: int, what: Found, display: Display, role: str = "computed") -> Ref:
        """What stands elsewhere, in this row."""
        return self.sheet.formula(self.row, column, what.value, what.expr(self.sheet.name), display, role)

    def compute(self, column: int, one: Formula, env: Mapping[str, Source], **more: Any) -> Ref:
        """What a formula gives, in this row; read relative to the reader, as rows and columns of a block repeat."""
        return self.sheet.compute(self.row, column, one, {**self.wiring.inputs, **env}, lock="none", **more)

    def search(self, column: int, one: Formula, env: Mapping[str, Source], at: int) -> Ref:
        """What an array formula in column `at` finds, in this row."""
        env = {**self.wiring.inputs, **env}
        found = self.sheet.compute(self.row, at, one, env, role="small")
        return self.sheet.pass_on(self.row, column, found, one, env)

    def sums(self, monthly: Ref) -> list[Ref]:
        """A year and three years beside the month, in this row."""
        return [self.compute(column, one, {"monthly_usd": monthly}) for column, one in SUMS]


def entry(
    refs: Range, place: Ref | Found, test: Callable[[Any], Any], beside: Ref | None = None, less: Ref | None = None
) -> Found:
    """The entry of `refs` at a position; none where there is no position, or the entry does not pass `test`.

    An empty cell is no entry: its look-up alone would be 0. beside: a cell that must hold a number, too.
    less: the discount that is taken off the entry, a price.
    """
    gate = place if beside is None else beside

    def write(here: str) -> Expr:
        one = index(refs, place, here)
        paid = one if less is None else cost.discounted_usd_per_hour(one, less.expr(here))
        expr: Expr = where(is_number(gate.expr(here)), where(test(one), paid, NONE), NONE)
        return expr

    if NONE in (place.value, gate.value):
        return Found(NONE, write)
    value = refs.refs[int(place.value) - 1].value
    known = value not in (None, "", NONE) and (test is not above_zero or value > 0)
    if known and less is not None:
        value = cost.discounted_usd_per_hour(value, less.value)
    return Found(value if known else NONE, write)


def above_zero(one: Any) -> Any:
    """A price is a number above 0."""
    return both(is_number(one), one > 0)
