"""Reads price lists of the known forms, which are recognized by their columns, and of the user's own form."""

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
    """One list: its offers, the lines without a price by number, the faults of broken lines, lines left out with the
    reason, and notes on assumptions."""

    where: str
    title: str
    date: str | None  # the column with the day of a line
    offers: tuple[Offer, ...]
    n_lines: int
    without_price: tuple[int, ...]
    faults: tuple[Fault, ...]
    left: tuple[tuple[Offer, str], ...] = ()
    notes: tuple[str, ...] = ()


def read_prices(place: str, stated: Stated | None = None, file: ListFile | None = None) -> PriceList:
    """The list at a path or an http(s) address; `file` is the result of `read_list` for it, if it was read already.

    Raises CatalogError where it is no price list, or `stated` lacks something that its form needs; broken lines are in
    `faults`, in order.
    """
    stated = stated or Stated()
    file = file or read_list(place, stated.sheet)
    with_prices = [(table, *head_and_form) for table in file.tables if (head_and_form := _form_of(table))]
    if len(with_prices) > 1:
        sheets = ", ".join(shown(table.sheet, 31) for table, *_ in with_prices)
        raise CatalogError(f"{file.where}: has prices on {len(with_prices)} sheets: {sheets}. Name one: --sheet NAME.")
    if not with_prices:
        first = max(file.tables, key=lambda table: len(table.records), default=Table(file.where, ()))
        raise CatalogError(" ".join([_unknown(read_table(first)), *_hidden(file)]))
    ((table, head, form),) = with_prices
    lines = read_table(table, head)
    if not lines.lines and not lines.faults:
        raise CatalogError(f"{table.where}: has a header and no line under it.")
    n_lines = len(lines.lines) + len(lines.faults)
    if isinstance(form, Format):
        offers, faults = read_offers(lines, table.where, file.cited, form)
        hidden = tuple(_hidden(file))
        read = PriceList(table.where, form.title, form.date, offers, n_lines, (), tuple(faults), notes=hidden)
        return _priced_once(read, lines, form)
    form, of_titles = with_titles(form, list(titles_of(_around(table, head))))
    own = read_own(lines, table.where, file.cited, form, stated)
    notes = (*of_titles, *own.notes, *_hidden(file))
    read = PriceList(table.where, OWN, form.roles.get("date"), own.offers, n_lines, (), own.faults, own.left, notes)
    return _priced_once(read, lines, None)


def _around(table: Table, head: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The records above the header of a table, and those below it with a single cell, each with its location."""
    for i, (number, cells) in enumerate(table.records):
        if i < head or (i > head and len(cells) > 2 and sum(map(bool, cells)) == 1):
            yield table.at(number), cells


def _hidden(file: ListFile) -> Iterator[str]:
    """A sentence that names the hidden sheets, which were not read."""
    if names := [shown(table.sheet, 31) for table in file.tables if table.is_hidden]:
        yield f"Not read, as hidden: {', '.join(names)}. --sheet NAME reads one."


def _unknown(table: Lines) -> str:
    begins = f"begins with {shown_key(', '.join(table.header).lower())!r}, which is no price list that sheetgen knows"
    own = "A list of your own has a column of instances or GPUs and one of prices, such as gpu and price_per_hour"
    return f"{table.place}: {begins}. {own}. `sheetgen catalog prices --help` has the known forms."


def _form_of(table: Table) -> tuple[int, Format | OwnColumns] | None:
    """The index of a table's header record, and its form: a known one, or the columns of the user's own.

    None where no record is a header. Raises CatalogError for a header of a known form with a misspelt column.
    """
    heads = [(i, number, names) for i, (number, names) in enumerate(table.records[:MOST_ABOVE])]
    for i, number, names in heads:
        header = tuple(name.lower() for name in names)
        form, missing = most_like(header)
        if not missing:
            return i, form
        if problem := misspelt(header):
            raise CatalogError(f"{table.at(number)}: {problem}")
    for i, number, names in heads:
        try:
            columns = own_columns(names) if sum(map(bool, names)) > 1 else None
        except CatalogError as error:
            raise CatalogError(f"{table.at(number)}: {error.problems[0]}.") from error
        if columns:
            return i, columns
    return None


def _priced_once(read: PriceList, table: Lines, form: Format | None) -> PriceList:
    """The list without offers that another line prices differently; those lines become faults.

    Offers without a price are removed, and their lines kept.
    """
    faults, clashing = list(read.faults), set[int]()
    first: dict[tuple[str, ...], Offer] = {}
    for offer in read.offers:
        key, named = _priced(offer, table.lines[offer.line], form)
        before = first.setdefault(key, offer)
        if before.prices != offer.prices and before.prices and offer.prices:
            old, new = (", ".join(f"{usd:g}" for usd in priced.prices.values()) for priced in (before, offer))
            problem = f"{named} is priced twice: {old} on line {before.line}, {new} here. Keep one."
            faults.append(Fault(offer.where, offer.line, problem, is_pair=True))
            clashing |= {before.line, offer.line}
    return replace(
        read,
        offers=tuple(offer for offer in read.offers if offer.prices and offer.line not in clashing),
        without_price=tuple(offer.line for offer in read.offers if not offer.prices),
        faults=tuple(sorted(faults, key=lambda fault: fault.line)),
    )


def _priced(offer: Offer, cells: Mapping[str, str], form: Format | None) -> tuple[tuple[str, ...], str]:
    """The key by which lines for the same offer are recognized, and its name in messages."""
    if form is not None and form.region is None:
        # One GPU has several offers; only those alike in every other column are one.
        return tuple(text for column, text in cells.items() if column != "price_usd_hour"), (
            f"{offer.name} of {offer.provider}"
        )
    purchase = cells[form.purchase] if form and form.purchase else ""
    if form is None:
        purchase = " ".join((*offer.prices, offer.gpu, f"{offer.gpu_memory_gb or ''}"))
    place = f" in {offer.region}" if offer.region else ""
    return (offer.provider.lower(), offer.name.lower(), offer.region.lower(), purchase), f"{offer.name}{place}"
