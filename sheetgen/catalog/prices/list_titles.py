"""What stands around the table of a price list, its title or a remark under it, and says of all its prices: for how
long they are, of one GPU, in which currency."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sheetgen.catalog.prices.amounts import CURRENCIES, AmountError, currency_in
from sheetgen.catalog.prices.own_columns import PERIODS, OwnColumns, PriceColumn, plain
from sheetgen.errors import CatalogError, shown
from sheetgen.units import ON_DEMAND

_GPU, _PERIOD, _PER = r"(?:gpu|card|accelerator|karte)s?", f"(?:{'|'.join(PERIODS)})", "(?:per|je|pro|par|each)"
_AND, _MONEY = f"(?:{_PER}|and|und|et)", r"(?:usd|eur|gbp|chf|dollars?|euros?|[$€£])"
_PER_GPU = re.compile(rf"\b{_PER} {_GPU}\b|\b{_GPU} {_PERIOD}\b|\b{_PER} {_PERIOD} {_AND} {_GPU}\b")
_PER_MACHINE = re.compile(r"\b(server|node|instance|instanz|machine|maschine|vm)\b")
_OF_TIME = re.compile(
    rf"\b{_PER} (?:{_GPU} (?:{_AND} )?)?(?P<per>{_PERIOD})\b|\b{_GPU} (?P<gpu>{_PERIOD})\b"
    rf"|{_MONEY} (?:an? )?(?P<money>{_PERIOD})\b"
    r"|\b(?P<adjective>hourly|daily|weekly|monthly|quarterly|yearly|annual|stündlich|monatlich|stundenpreis|monatspreis)"
)
_OF_PRICES = re.compile(r"\b(price|prices|pricing|rates?|costs?|preise?|kosten|prix|tarifs?|net|netto|vat|mwst|tva)\b")
MOST_BARE = 6  # words of a remark that names a unit and no price
_CURRENCY = re.compile(r"\b[A-Z]{3}\b|[A-Za-z]{0,3}\$|[€£₹₩¥]|\b[Ee]uros?\b|\b[Dd]ollars?\b")
_WITH_TAX = re.compile(
    r"\b(incl|including|inkl|inklusive|with|mit)\b[^;]*?(vat|tax|taxes|mwst|ust|tva)\b|\bttc\b|\bbrutto"
)
_NO_UNIT = re.compile(r"\b(in|all) (thousands?|tausend|millions?|cents?|cts?)\b|\b(kusd|keur|teur|tusd)\b")
_OF_CLASS = re.compile(r"\b(spot|preemptible|reserved|commitment|committed|laufzeit)\b")
MOST_SHOWN = 80


@dataclass(frozen=True)
class Title:
    """A text around a table, and what it says of its prices: hours that each is for (0: none), whether of one GPU,
    and the currency; empty where it says nothing of that."""

    at: str
    text: str
    hours: float
    per_gpu: bool
    currency: str


def titles_of(records: Iterable[tuple[str, Sequence[str]]]) -> Iterator[Title]:
    """The texts around a table that say something of its prices, from records each with its place.

    Raises CatalogError for one that says what no list may be: with tax, in thousands, in two currencies.
    """
    for place, cells in records:
        text = " ".join(filter(None, cells))
        words = plain(text.replace("/", " per "))
        with_tax = _WITH_TAX.search(text.lower())
        if refused := with_tax or _NO_UNIT.search(words):
            mend = "Give prices without tax" if with_tax else "Give whole dollars, or whole euros"
            raise CatalogError(f"{place}: says {refused[0]!r} of its prices. {mend}, and take these words out.")
        try:
            named = {currency_in(mark) for mark in _CURRENCY.findall(text) if _is_currency(mark)}
        except AmountError as error:
            raise CatalogError(f"{place}: {shown(text, MOST_SHOWN)!r} must be {error}.") from error
        if not (named or _OF_PRICES.search(words) or len(words.split()) <= MOST_BARE):
            continue
        hours = {PERIODS[next(filter(None, match.groups()))] for match in _OF_TIME.finditer(words)}
        if len(hours) > 1 or len(named) > 1:
            what = "times" if len(hours) > 1 else "currencies"
            mend = "Name the columns by theirs, such as price per hour, or take it out"
            raise CatalogError(f"{place}: {shown(text, MOST_SHOWN)!r} names several {what}. {mend}.")
        found = Title(place, text, next(iter(hours), 0.0), bool(_PER_GPU.search(words)), next(iter(named), ""))
        if found.hours or found.per_gpu or found.currency or _OF_CLASS.search(words):
            yield found


def _is_currency(mark: str) -> bool:
    return mark in CURRENCIES or not re.fullmatch("[A-Z]{3}", mark)


def with_titles(columns: OwnColumns, titles: Sequence[Title]) -> tuple[OwnColumns, list[str]]:
    """The columns as the texts around the table have them, and what was read of these, in words.

    Raises CatalogError for a text that says otherwise than a column does.
    """
    notes = list[str]()
    for title in titles:
        prices = tuple(_under(title, one, columns) for one in columns.prices)
        said = shown(title.text, MOST_SHOWN)
        if not (title.hours or title.per_gpu or title.currency):
            if not {"purchase", "spot"} & columns.of.keys() and {one.purchase for one in columns.prices} == {ON_DEMAND}:
                mend = "Name the column by its class, such as spot price or 1 year price, or take it out"
                raise CatalogError(f"{title.at}: says {said!r}, and no column does. {mend}.")
            continue
        if prices != columns.prices:
            notes.append(f"Read as it says around the table: {said!r}.")
        others = tuple(_filled(title, one, columns) for one in columns.others)
        columns = replace(columns, prices=prices, others=others)
    return columns, notes


def _under(title: Title, one: PriceColumn, columns: OwnColumns) -> PriceColumn:
    """A column of prices as a text around the table has it. Raises CatalogError where they contradict each other."""
    for what, of_title, of_column in (("time", title.hours, one.hours), ("currency", title.currency, one.currency)):
        if of_title and of_column and of_title != of_column:
            said, mend = shown(title.text, MOST_SHOWN), "Name the column as it is meant, and take the other out"
            raise CatalogError(f"{title.at}: says {said!r}, and column {shown(one.column)} another {what}. {mend}.")
    return _filled(title, one, columns)


def _filled(title: Title, one: PriceColumn, columns: OwnColumns) -> PriceColumn:
    """A column of prices with what its own name, and the columns beside it, leave to the text around the table."""
    is_of_machine = bool(_PER_MACHINE.search(plain(one.column))) or "unit" in columns.of
    return replace(
        one,
        hours=one.hours or (0.0 if "unit" in columns.of else title.hours),
        per_gpu=one.per_gpu or (title.per_gpu and not is_of_machine),
        currency=one.currency or ("" if "currency" in columns.of else title.currency),
    )
