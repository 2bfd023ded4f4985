"""Price lists of the known forms as offers: the form of a list, and each line's provider, machine, region, purchase
classes and prices. Faults of single lines are collected, not raised."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from sheetgen.catalog.prices.amounts import USD, AmountError, decimal_sign, read_amount
from sheetgen.catalog.prices.known_columns import FORMATS, Format
from sheetgen.catalog.prices.list_tables import Fault, Lines
from sheetgen.errors import CatalogError, did_you_mean, shown

MOST_PRESENT = 4  # columns of a form that another list may have by chance


def most_like(header: Collection[str]) -> tuple[Format, list[str]]:
    """The known form that shares the most columns with a header, and its required columns that the header lacks."""
    present = set(header)
    best = max(FORMATS, key=lambda f: (len(present & {*f.required, *f.optional}), -len(set(f.required) - present)))
    return best, [column for column in best.required if column not in present]


def misspelt(header: Sequence[str]) -> str:
    """A message on the column that a header lacks of a known form, with the one that may be misspelt; else empty."""
    best, missing = most_like(header)
    spare = [column for column in header if column not in (*best.required, *best.optional)]
    near = did_you_mean(missing[0], spare)
    if len(missing) > 1 or (not near and len(best.required) <= MOST_PRESENT):
        return ""
    if not near and len(spare) == 1:
        near = f" Is it {shown(spare[0])}?"
    problem = f"looks like {best.title}, but has no column {missing[0]}"
    return f"{problem}.{near} Known: {', '.join(f.title for f in FORMATS)}."


@dataclass(frozen=True)
class Offer:
    """One line of a list: prices in USD per hour by purchase class, and the machine's properties."""

    where: str
    line: int
    cited: str
    provider: str
    name: str  # instance type, or GPU where the price is per GPU
    prices: dict[str, float]
    region: str = ""
    as_of: str = ""
    has_own_day: bool = True  # false: `as_of` is that of the whole list
    tier: str = ""
    per_gpu: bool = False
    gpu: str = ""
    interconnect: str = ""
    gpu_count: float | None = None
    gpu_memory_gb: float | None = None
    vcpu: float | None = None
    ram_gib: float | None = None
    local_nvme_gb: float | None = None
    network_gbps: float | None = None
    source: str = ""  # as the line states it
    is_for_gpu: bool = False  # its prices are per GPU of a machine, whose GPUs the list does not count
    has_region: bool = True
    has_type: bool = True  # false: `name` is made of its GPUs, as the list names no machine
    kinds: dict[str, str] = field(default_factory=dict)
    is_own: bool = False  # from a list of the user's own form, which may add providers and machines
    has_gpu_column: bool = False

    @property
    def at(self) -> str:
        return f"{self.where}:{self.line}"

    @property
    def title(self) -> str:
        """The list as sources of prices name it."""
        return f"{'own ' if self.is_own else ''}price list {self.cited}"


def read_offers(table: Lines, where: str, cited: str, form: Format) -> tuple[tuple[Offer, ...], list[Fault]]:
    """The offers of a list of a known form, including those without a price, and the faults of broken lines.

    Raises CatalogError where no line is of that form.
    """
    lines, faults = table.lines, list(table.faults)
    if lines and not any(cells[form.name].startswith(form.type_starts) for cells in lines.values()):
        problem = f"has the columns of {form.title}, but no type in it begins {form.type_starts}"
        raise CatalogError(f"{table.place}: {problem}. Lists of other providers have more columns.")
    prices = (cells.get(column, "") for cells in lines.values() for column, _ in form.prices.values())
    decimal = decimal_sign(prices) or "."
    offers: list[Offer] = []
    for number, cells in lines.items():
        row = _Cells(cells, decimal)
        offer = _offer(form, row, where=where, line=number, cited=cited)
        faults += [Fault(where, number, problem) for problem in row.wrong]
        if not row.wrong:
            offers.append(offer)
    return tuple(offers), faults


LEAST_USD, MOST_USD = 1e-4, 1e6  # USD per hour, as the catalogs' schema allows

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/+-]*")
_DAY = re.compile(r"([0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?)([T ]|$)", re.ASCII)
_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class _Cells:
    """The cells of one line as values; their faults are collected in `wrong`, a sentence or two each.

    An empty cell or a missing column has no value, which is a fault only where one is required.
    """

    def __init__(self, cells: dict[str, str], decimal: str) -> None:
        self._cells, self._decimal = cells, decimal
        self.wrong: list[str] = []

    def _refuse(self, column: str, must_be: str) -> None:
        self.wrong.append(f"{column} is {shown(self._cells[column])!r}. It must be {must_be}.")

    def _number(self, column: str) -> float | None:
        """A number of 0 or more, in dollars or without a currency; None for anything else."""
        try:
            amount = read_amount(self._cells[column], self._decimal)
        except AmountError:
            return None
        return amount.value if amount and amount.currency in ("", USD) else None

    def price(self, column: str, hours: int) -> float | None:
        """A price for `hours` hours as USD per hour; None if there is none."""
        if not self._cells.get(column):
            return None
        value = self._number(column)
        if not value:  # 0 is no price
            self._refuse(column, "a price above 0")
            return None
        if LEAST_USD <= value / hours <= MOST_USD:
            return value / hours
        span = "an hour" if hours == 1 else f"for {hours} hours"
        self._refuse(column, f"a price from {LEAST_USD * hours:g} to {MOST_USD * hours:,.0f} USD {span}")
        return None

    def amount(self, column: str, unit: float) -> float | None:
        """A size or a count, in units of `unit`."""
        if not self._cells.get(column):
            return None
        value = self._number(column)
        if value is not None and value / unit <= 1e9:
            return value / unit
        self._refuse(column, "a number, 0 or more")
        return None

    def name(self, column: str, optional: bool = False) -> str:
        """A name, to be looked up in the catalogs."""
        text = self._cells.get(column, "")
        if not text and not optional:
            self.wrong.append(f"{column} is empty.")
        elif len(text) > 120:
            self.wrong.append(f"{column} is {shown(text, 30)!r}, {len(text):,} characters. A name has at most 120.")
        elif text and not _NAME.fullmatch(text):
            problem = "which is no name: letters, digits and . _ - ( ) / + only"
            self.wrong.append(f"{column} is {shown(text)!r}, {problem}.")
        return text

    def label(self, column: str, most: int = 120) -> str:
        """A short text for a catalog row; empty if it is too long or not printable."""
        text = " ".join(self._cells.get(column, "").split())
        return text if len(text) <= most and text.isprintable() and not set("<>") & set(text) else ""

    def day(self, column: str) -> str:
        """The date of `2026-05-24`, `2026-05-24T12:00:00Z`, or a date with a remark after it; a month or a year where
        the line states no more."""
        text = self._cells.get(column, "")
        stated = _DAY.match(text)
        try:
            day = datetime.date.fromisoformat(f"{stated[1]}-01-01"[:10]) if stated else None
        except ValueError:
            day = None
        if stated and day and 2000 <= day.year <= 2100:
            return stated[1]
        if text:
            self._refuse(column, "a day such as 2026-05-24")
        return ""

    def yes_or_no(self, column: str) -> bool | None:
        answer = _YES_NO.get(self._cells[column].lower())
        if answer is None:
            self._refuse(column, "True or False")
        return answer


def _offer(form: Format, row: _Cells, **fields: Any) -> Offer:
    """The offer of a line; `fields` has its location (where, line, cited)."""
    columns = form.prices
    if form.spot:  # one column of prices, and another with their class
        spot = row.yes_or_no(form.spot)
        columns = {purchase: how for purchase, how in columns.items() if (purchase == "spot") == spot}
    if form.purchase:  # a price of a class that the catalogs lack is ignored
        columns = {purchase: how for purchase, how in columns.items() if purchase == row.label(form.purchase)}
    read = {purchase: row.price(*how) for purchase, how in columns.items()}
    prices = {
        purchase: usd if form.decimals is None else round(usd, form.decimals)
        for purchase, usd in read.items()
        if usd is not None
    }
    name = row.name(form.name) if columns else row.label(form.name)
    if not name.startswith(form.type_starts) and not row.wrong:
        row.wrong.append(f"{form.name} is {shown(name)!r}. Every type of {form.title} begins {form.type_starts}.")
    fields |= {field: row.amount(*how) for field, how in form.amounts.items()}
    fields["provider"] = form.provider or row.name(form.provider_column)
    if form.region:
        fields["region"] = row.name(form.region, optional=not prices)  # a type without a price may have none
    fields["as_of"] = row.day(form.date)
    fields["source"] = row.label("source", most=400).replace(";", ",")
    fields |= {field: row.name(column, optional=True) for field, column in form.names.items()}
    kinds = {purchase: row.label("kind") for purchase in columns if row.label("kind")} if form.purchase else form.terms
    return Offer(name=name, prices=prices, per_gpu=form.per_gpu, kinds=kinds, **fields)
