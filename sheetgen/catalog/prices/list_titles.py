"""Texts around the table of a price list, its title or a remark under it, that state the period, the unit (one GPU) or
the currency of all its prices."""

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
MOST_BARE = 6  # words of a remark that states a unit without mentioning a price
_CURRENCY = re.compile(r"\b[A-Z]{3}\b|[A-Za-z]{0,3}\$|[€£₹₩¥]|\b[Ee]uros?\b|\b[Dd]ollars?\b")
_WITH_TAX = re.compile(
    r"\b(incl|including|inkl|inklusive|with|mit)\b[^;]*?(vat|tax|taxes|mwst|ust|tva)\b|\bttc\b|\bbrutto"
)
_NO_UNIT = re.compile(r"\b(in|all) (thousands?|tausend|millions?|cents?|cts?)\b|\b(kusd|keur|teur|tusd)\b")
_OF_CLASS = re.compile(r"\b(spot|preemptible|reserved|commitment|committed|laufzeit)\b")
MOST_SHOWN = 80


@dataclass(frozen=True)
class Title:
    """A text around a table, and the hours of a price (0: not stated), unit and currency (empty: not stated) in it."""

    place: str
    text: str
    hours: float
    per_gpu: bool
    currency: str


def titles_of(records: Iterable[tuple[str, Sequence[str]]]) -> Iterator[Title]:
    """The texts around a table that state something about its prices; `records` are places and cells.

    Raises CatalogError for unsupported statements: with tax, in thousands, in two currencies.
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
            kind = "times" if len(hours) > 1 else "currencies"
            mend = "Name the columns by theirs, such as price per hour, or take it out"
            raise CatalogError(f"{place}: {shown(text, MOST_SHOWN)!r} names several {kind}. {mend}.")
        title = Title(place, text, next(iter(hours), 0.0), bool(_PER_GPU.search(words)), next(iter(named), ""))
        if title.hours or title.per_gpu or title.currency or _OF_CLASS.search(words):
            yield title


def _is_currency(mark: str) -> bool:
    return mark in CURRENCIES or not re.fullmatch("[A-Z]{3}", mark)


def with_titles(columns: OwnColumns, titles: Sequence[Title]) -> tuple[OwnColumns, list[str]]:
    """The columns completed by the texts around the table, and notes on the texts that were used.

    Raises CatalogError for a text that contradicts a column.
    """
    notes = list[str]()
    for title in titles:
        prices = tuple(_under(title, column, columns) for column in columns.prices)
        quoted = shown(title.text, MOST_SHOWN)
        if not (title.hours or title.per_gpu or title.currency):
            classes = {column.purchase for column in columns.prices}
            if not {"purchase", "spot"} & columns.roles.keys() and classes == {ON_DEMAND}:
                mend = "Name the column by its class, such as spot price or 1 year price, or take it out"
                raise CatalogError(f"{title.place}: says {quoted!r}, and no column does. {mend}.")
            continue
        if prices != columns.prices:
            notes.append(f"Read as it says around the table: {quoted!r}.")
        others = tuple(_filled(title, column, columns) for column in columns.others)
        columns = replace(columns, prices=prices, others=others)
    return columns, notes


def _under(title: Title, column: PriceColumn, columns: OwnColumns) -> PriceColumn:
    """A column of prices completed by a text around the table. Raises CatalogError where they contradict each other."""
    stated = (("time", title.hours, column.hours), ("currency", title.currency, column.currency))
    for kind, of_title, of_column in stated:
        if of_title and of_column and of_title != of_column:
            quoted, name = shown(title.text, MOST_SHOWN), shown(column.name)
            mend = "Name the column as it is meant, and take the other out"
            raise CatalogError(f"{title.place}: says {quoted!r}, and column {name} another {kind}. {mend}.")
    return _filled(title, column, columns)


def _filled(title: Title, column: PriceColumn, columns: OwnColumns) -> PriceColumn:
    """A column of prices; what neither its name nor other columns state is taken from the text around the table."""
    is_of_machine = bool(_PER_MACHINE.search(plain(column.name))) or "unit" in columns.roles
    return replace(
        column,
        hours=column.hours or (0.0 if "unit" in columns.roles else title.hours),
        per_gpu=column.per_gpu or (title.per_gpu and not is_of_machine),
        currency=column.currency or ("" if "currency" in columns.roles else title.currency),
    )
