"""Parts that the tables of Money share: the block of a model, filled row by row, and look-ups that may find no
value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sheetgen.book.sheets import NONE, Lookup, Range, Ref, Sheet, Source, derived, lookup
from sheetgen.book.wiring import Wiring
from sheetgen.formula import Formula, Quantity, Value, both, is_number, where
from sheetgen.sizing import cost
from sheetgen.units import TEXT, Display

HOURLY, MONTHLY = 1, 2  # columns of money in every table of a block; those of a year and of three follow
N_PRINTED = 12  # columns; results of look-ups stand to their right
FOUND = N_PRINTED + 1
WIDTHS = {0: 30.3, 1: 11, **dict.fromkeys(range(2, 8), 10), **dict.fromkeys(range(8, N_PRINTED), 9.3), N_PRINTED: 3}


class Block:
    """A model's block: the cells of the chosen load that its tables read, and the row that is filled next."""

    def __init__(self, sheet: Sheet, wiring: Wiring, load: Ref, row: int) -> None:
        self.sheet, self.wiring, self.load, self.row = sheet, wiring, load, row
        self.place: Ref  # the row on Prices and hardware
        self.count: Ref  # the number of instances
        self.paid: dict[str, Ref] = {}  # $ a month in each purchase class
        self.sums: list[Ref] = []  # in the class in use: a month, a year, three years
        self.owned: tuple[Ref, Ref]  # at the base price: the purchase, and the payment each month

    def of_load(self, name: str) -> Lookup:
        """The entry of a column of Workings for the chosen load."""
        return lookup(self.wiring.tables["loads"].range(name), self.load)

    def bar(self, model: Ref | Lookup, about: str) -> None:
        """Add a dark bar with the model's name."""
        self.sheet.link(self.row, 0, model, TEXT, "section")
        self.sheet.texts(self.row, 1, [about, *[""] * (N_PRINTED - 2)], "section")
        self.sheet.heights[self.row] = 20
        self.row += 1

    def head(self, *labels: str | None) -> None:
        """Add a row of column heads, with which a printed page may begin."""
        self.sheet.page_breaks.append(self.row)
        self.sheet.texts(self.row, 0, labels)
        self.row += 1

    def label(self, text: str, column: int = 0, role: str = "label") -> Ref:
        return self.sheet.text(self.row, column, text, role)

    def show(self, column: int, source: Ref | Lookup, display: Display, role: str = "computed") -> Ref:
        """Show a cell or a look-up in this row."""
        return self.sheet.link(self.row, column, source, display, role)

    def compute(self, column: int, quantity: Formula, env: Mapping[str, Source], role: str = "computed") -> Ref:
        """Compute a quantity in this row; its references are relative, as the rows and columns of a block repeat."""
        return self.sheet.compute(self.row, column, quantity, {**self.wiring.inputs, **env}, lock="none", role=role)

    def sums_of(self, monthly: Ref) -> list[Ref]:
        """Add a year and three years beside the cost of a month in this row; returns the cells of all three."""
        longer = cost.annual_usd, cost.three_year_usd
        return [
            monthly,
            *(self.compute(MONTHLY + k, quantity, {"monthly_usd": monthly}) for k, quantity in enumerate(longer, 1)),
        ]


def entry(
    refs: Range, place: Ref | Lookup, test: Callable[[Value], Value], beside: Ref | None = None, less: Ref | None = None
) -> Lookup:
    """The entry of `refs` at a position; none where there is no position, or the entry does not pass `test`.

    An empty cell is no entry: its look-up alone would be 0. beside: a cell that must hold a number, too.
    less: the discount that is taken off the entry, a price.
    """

    def accepted(gate: Quantity, value: Value, *discount: Quantity) -> Value:
        paid = cost.discounted_usd_per_hour(value, *discount) if discount else value
        return where(is_number(gate), where(test(value), paid, NONE), NONE)

    return derived(
        accepted, place if beside is None else beside, lookup(refs, place), *([] if less is None else [less])
    )


def above_zero(price: Quantity) -> Value:
    """True of a price, a number above 0."""
    return both(is_number(price), price > 0)
