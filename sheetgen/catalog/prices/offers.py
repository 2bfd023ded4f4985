"""The lines of a price list as offers: who sells what, where, bought how, at what price."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from sheetgen.catalog.prices import cells
from sheetgen.catalog.prices.fetch import read_list
from sheetgen.catalog.prices.formats import NEOCLOUD, Format, recognise
from sheetgen.catalog.prices.table import Fault, Line, Table, read_table
from sheetgen.errors import CatalogError, shown

T = TypeVar("T")


@dataclass(frozen=True)
class Offer:
    """One line: prices by purchase class, US dollars an hour, and what the line says of the machine."""

    where: str
    line: int
    cited: str
    provider: str
    name: str  # instance type, or GPU where the price is by the GPU
    prices: dict[str, float]
    region: str | None = None
    as_of: str | None = None
    tier: str = ""
    per_gpu: bool = False
    gpu: str | None = None
    interconnect: str = ""
    gpu_count: float | None = None
    gpu_memory_gb: float | None = None
    vcpu: float | None = None
    ram_gib: float | None = None
    local_nvme_gb: float | None = None
    network_gbps: float | None = None
    kinds: dict[str, str] = field(default_factory=dict)

    @property
    def at(self) -> str:
        return f"{self.where}:{self.line}"


@dataclass(frozen=True)
class PriceList:
    """One list, read: what it offers, how many of its lines have no price, and the lines that are broken."""

    where: str
    format: Format
    offers: tuple[Offer, ...]
    n_lines: int
    n_without_price: int
    faults: tuple[Fault, ...]


def read_prices(place: str) -> PriceList:
    """The list at a path or an http(s) address.

    Raises CatalogError where it is no price list at all; broken lines are in `faults`, in order.
    """
    table = read_table(read_list(place))
    known = recognise(table)
    if not table.lines and not table.faults:
        raise CatalogError(f"{table.where}: has a header and no line under it.")
    if table.lines and not any(line.cells[known.name].startswith(known.type_starts) for line in table.lines):
        raise CatalogError(
            f"{table.where}:{table.header_line}: has the columns of {known.title}, but no type in it begins"
            f" {known.type_starts}. Lists of other providers have more columns."
        )
    offers: list[tuple[Line, Offer]] = []
    faults = list(table.faults)
    for line in table.lines:
        try:
            offers.append((line, _offer(table, known, line)))
        except _Broken as broken:
            faults += [Fault(table.where, line.number, what) for what in broken.args]
    clashes = list(_clashes(known, offers))
    told = {fault.line for fault, _ in clashes} | {other for _, other in clashes}
    return PriceList(
        where=table.where,
        format=known,
        offers=tuple(offer for line, offer in offers if offer.prices and line.number not in told),
        n_lines=len(table.lines) + len(table.faults),
        n_without_price=sum(not offer.prices for _, offer in offers),
        faults=tuple(sorted([*faults, *(fault for fault, _ in clashes)], key=lambda fault: fault.line)),
    )


class _Broken(Exception):
    """All that is wrong with one line, a sentence each."""


class _Cells:
    """Reads the cells of one line, and keeps what is wrong with each."""

    def __init__(self, line: Line) -> None:
        self.cells = line.cells
        self.wrong: list[str] = []

    def read(self, reader: Callable[..., T], column: str | None, *how: object) -> T | None:
        """The cell of `column` as `reader` reads it; None where the list has no such column."""
        try:
            return reader(self.cells, column, *how) if column is not None else None
        except ValueError as error:
            self.wrong.append(str(error))
            return None


def _offer(table: Table, known: Format, line: Line) -> Offer:
    row = _Cells(line)
    columns = known.prices
    if known is NEOCLOUD:  # one column of prices, and another that says of which class
        spot = row.read(cells.yes_or_no, "is_spot")
        columns = tuple(one for one in columns if (one.purchase == "spot") == spot)
    prices: dict[str, float] = {}
    for one in columns:
        hourly = row.read(cells.price, one.column, one.hours)
        if hourly is not None:
            prices[one.purchase] = hourly if known.decimals is None else round(hourly, known.decimals)
    name = row.read(cells.name, known.name) or ""
    if not name.startswith(known.type_starts) and not row.wrong:
        row.wrong.append(f"{known.name} is {shown(name)!r}. Every type of {known.title} begins {known.type_starts}.")
    amounts = {field: row.read(cells.amount, *how) for field, how in known.amounts.items()}
    offer = Offer(
        where=table.where,
        line=line.number,
        cited=table.cited,
        provider=known.provider or row.read(cells.name, "provider_id") or "",
        name=name,
        prices=prices,
        region=row.read(cells.name, known.region, not prices),  # a type without a price may have no region
        as_of=row.read(cells.day, known.date),
        tier=(row.read(cells.name, "tier", True) if known is NEOCLOUD else "") or "",
        per_gpu=known is NEOCLOUD,
        gpu=row.read(cells.name, known.gpu, True),
        interconnect=(row.read(cells.name, "interconnect", True) if known is NEOCLOUD else "") or "",
        kinds={one.purchase: one.kind for one in columns if one.kind},
        **amounts,
    )
    if row.wrong:
        raise _Broken(*row.wrong)
    return offer


def _clashes(known: Format, offers: Iterable[tuple[Line, Offer]]) -> Iterator[tuple[Fault, int]]:
    """Lines that price one thing a second time, and differently; each with the number of the first."""
    first: dict[tuple[str, ...], Offer] = {}
    for line, offer in offers:
        if known.region is not None:
            key: tuple[str, ...] = (offer.name.lower(), (offer.region or "").lower())
            named = f"{offer.name} in {offer.region}"
        else:  # one GPU has several offers; only those alike in every other column are one
            key = tuple(text for column, text in line.cells.items() if column != "price_usd_hour")
            named = f"{offer.name} of {offer.provider}"
        before = first.setdefault(key, offer)
        if before.prices != offer.prices and before.prices and offer.prices:
            old, new = (", ".join(f"{usd:g}" for usd in one.prices.values()) for one in (before, offer))
            what = f"{named} is priced twice: {old} on line {before.line}, {new} here. Keep one."
            yield Fault(offer.where, line.number, what, is_pair=True), before.line
