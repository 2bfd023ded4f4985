"""Price lists as they are read: each with its form, known by its columns, or of the user's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sheetgen.catalog.prices.known_columns import Format
from sheetgen.catalog.prices.list_files import ListFile, read_list
from sheetgen.catalog.prices.list_tables import Fault, Lines, Table, read_table
from sheetgen.catalog.prices.list_titles import titles_of, with_titles
from sheetgen.catalog.prices.offers import Offer, misspelt, most_like, read_offers
from sheetgen.catalog.prices.own_columns import OwnColumns, own_columns
from sheetgen.catalog.prices.own_list import Stated, read_own
from sheetgen.errors import CatalogError, shown, shown_key

MOST_ABOVE = 40  # records above the header of a list: its title, the day, what it is for
OWN = "a price list of your own"


@dataclass(frozen=True)
class PriceList:
    """One list, read: what it offers, how many of its lines have no price, the lines that are broken, those that are no
    offer, each with the reason, and what was assumed of it."""

    where: str
    title: str
    date: str | None  # the column with the day of a line
    offers: tuple[Offer, ...]
    n_lines: int
    n_without_price: int
    faults: tuple[Fault, ...]
    left: tuple[tuple[Offer, str], ...] = ()
    notes: tuple[str, ...] = ()


def read_prices(place: str, stated: Stated | None = None, file: ListFile | None = None) -> PriceList:
    """The list at a path or an http(s) address; `file` is what `read_list` gave for it, where it was read already.

    Raises CatalogError where it is no price list at all, or its form needs something beside it; broken lines are in
    `faults`, in order.
    """
    stated = stated or Stated()
    file = file or read_list(place, stated.sheet)
    found = [(table, *known) for table in file.tables if (known := _form_of(table))]
    if len(found) > 1:
        sheets = ", ".join(shown(one.sheet, 31) for one, *_ in found)
        raise CatalogError(f"{file.where}: has prices on {len(found)} sheets: {sheets}. Name one: --sheet NAME.")
    if not found:
        first = max(file.tables, key=lambda table: len(table.records), default=Table(file.where, ()))
        raise CatalogError(" ".join([_unknown(read_table(first)), *_hidden(file)]))
    ((table, head, form),) = found
    lines = read_table(table, head)
    if not lines.lines and not lines.faults:
        raise CatalogError(f"{table.where}: has a header and no line under it.")
    n_lines = len(lines.lines) + len(lines.faults)
    if isinstance(form, Format):
        offers, faults = read_offers(lines, table.where, file.cited, form)
        hidden = tuple(_hidden(file))
        read = PriceList(table.where, form.title, form.date, offers, n_lines, 0, tuple(faults), notes=hidden)
        return _priced_once(read, lines, form)
    form, of_titles = with_titles(form, list(titles_of(_around(table, head))))
    own = read_own(lines, table.where, file.cited, form, stated)
    notes = (*of_titles, *own.notes, *_hidden(file))
    read = PriceList(table.where, OWN, form.of.get("date"), own.offers, n_lines, 0, own.faults, own.left, notes)
    return _priced_once(read, lines, None)


def _around(table: Table, head: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The records above the header of a table, and those below with one cell, each with its place."""
    for i, (number, cells) in enumerate(table.records):
        if i < head or (i > head and len(cells) > 2 and sum(map(bool, cells)) == 1):
            yield table.at(number), cells


def _hidden(file: ListFile) -> Iterator[str]:
    """Which sheets were not read, as nobody sees them."""
    if names := [shown(table.sheet, 31) for table in file.tables if table.is_hidden]:
        yield f"Not read, as hidden: {', '.join(names)}. --sheet NAME reads one."


def _unknown(table: Lines) -> str:
    begins = f"begins with {shown_key(', '.join(table.header).lower())!r}, which is no price list that sheetgen knows"
    own = "A list of your own has a column of instances or GPUs and one of prices, such as gpu and price_per_hour"
    return f"{table.at}: {begins}. {own}. `sheetgen catalog prices --help` has the known forms."


def _form_of(table: Table) -> tuple[int, Format | OwnColumns] | None:
    """The record that is the header of a table, and what its columns say; nothing where none does.

    Raises CatalogError for the header of a known form with a column misspelt.
    """
    heads = [(i, number, names) for i, (number, names) in enumerate(table.records[:MOST_ABOVE])]
    for i, number, names in heads:
        header = tuple(name.lower() for name in names)
        known, missing = most_like(header)
        if not missing:
            return i, known
        if what := misspelt(header):
            raise CatalogError(f"{table.at(number)}: {what}")
    for i, number, names in heads:
        try:
            columns = own_columns(names) if sum(map(bool, names)) > 1 else None
        except CatalogError as error:
            raise CatalogError(f"{table.at(number)}: {error.problems[0]}.") from error
        if columns:
            return i, columns
    return None


def _priced_once(read: PriceList, table: Lines, known: Format | None) -> PriceList:
    """The same without lines that price one thing a second time and differently, which are faults."""
    faults, clashing = list(read.faults), set[int]()
    first: dict[tuple[str, ...], Offer] = {}
    for offer in read.offers:
        key, named = _priced(offer, table.lines[offer.line], known)
        before = first.setdefault(key, offer)
        if before.prices != offer.prices and before.prices and offer.prices:
            old, new = (", ".join(f"{usd:g}" for usd in one.prices.values()) for one in (before, offer))
            what = f"{named} is priced twice: {old} on line {before.line}, {new} here. Keep one."
            faults.append(Fault(offer.where, offer.line, what, is_pair=True))
            clashing |= {before.line, offer.line}
    return replace(
        read,
        offers=tuple(offer for offer in read.offers if offer.prices and offer.line not in clashing),
        n_without_price=sum(not offer.prices for offer in read.offers),
        faults=tuple(sorted(faults, key=lambda fault: fault.line)),
    )


def _priced(offer: Offer, cells: Mapping[str, str], known: Format | None) -> tuple[tuple[str, ...], str]:
    """What a line prices, by which another line of the same is known, and in words."""
    if known is not None and known.region is None:
        # One GPU has several offers; only those alike in every other column are one.
        return tuple(text for column, text in cells.items() if column != "price_usd_hour"), (
            f"{offer.name} of {offer.provider}"
        )
    purchase = cells[known.purchase] if known and known.purchase else ""
    if known is None:
        purchase = " ".join((*offer.prices, offer.gpu, f"{offer.gpu_memory_gb or ''}"))
    place = f" in {offer.region}" if offer.region else ""
    return (offer.provider.lower(), offer.name.lower(), offer.region.lower(), purchase), f"{offer.name}{place}"
