"""A price list of any form, read by what its columns are called: its lines as offers, in US dollars an hour."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sheetgen.catalog.prices.amounts import CURRENCIES, USD, Amount, AmountError, currency_in, decimal_sign, read_amount
from sheetgen.catalog.prices.list_tables import Fault, Lines
from sheetgen.catalog.prices.offers import LEAST_USD, MOST_USD, Offer
from sheetgen.catalog.prices.own_columns import PER_GPU, PERIODS, OwnColumns, PriceColumn, how_many, plain, purchase_in
from sheetgen.errors import CatalogError, shown
from sheetgen.units import ON_DEMAND, PURCHASES, count

_COUNTED = (  # a GPU's name and how many
    re.compile(r"(?<![\w.])(?P<n>[0-9]{1,3}) ?[xX×] ?(?P<gpu>.*\S)"),
    re.compile(r"(?P<gpu>.*\S) [xX×] ?(?P<n>[0-9]{1,3})$"),
)
_TEXT = re.compile(r"[^\W_][^<>:;{}|=\"'`\\]*")  # of a region or a provider: no mark-up, no formula
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/+,-]*")
MOST_LENGTH = 80
SPOT = "spot"
A_MONTHS_HOURS = 0.025  # months of price lists have 720 to 744 hours


@dataclass(frozen=True)
class Stated:
    """What the user says beside the lists: whose prices they are, which sheet of a workbook is meant, and the US
    dollars for one unit of other currencies."""

    provider: str = ""
    sheet: str | None = None
    usd_per: Mapping[str, float] = field(default_factory=dict)


def usd_per_currency(texts: Iterable[str]) -> dict[str, float]:
    """The US dollars for one unit of each currency, of texts such as EUR=1.1. Raises CatalogError for any other."""
    found: dict[str, float] = {}
    for text in texts:
        code, _, rate = (part.strip() for part in text.partition("="))
        usd = float(rate) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", rate) else 0.0
        if code.upper() not in CURRENCIES - {USD} or not usd:
            example = "Write a currency and the US dollars for one of it, such as EUR=1.1"
            raise CatalogError(f"usd-per is {shown(text)!r}. {example}.")
        found[code.upper()] = usd
    return found


@dataclass(frozen=True)
class OwnList:
    """What a list offers; lines that are no offer, each with the reason; and what was assumed of it."""

    offers: tuple[Offer, ...]
    left: tuple[tuple[Offer, str], ...]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Reader:
    where: str
    cited: str
    columns: OwnColumns
    stated: Stated
    decimal: str
    currency: str  # of prices that name none; empty where the list must say


def _with_prices(columns: OwnColumns, table: Lines) -> OwnColumns:
    """The columns where one without any price gives its place to another of its class that has some."""

    def is_priced(one: PriceColumn) -> bool:
        return any(re.search("[1-9]", line[one.column]) for line in table.lines.values())

    prices = list(columns.prices)
    for i, one in enumerate(prices):
        rest = (other for other in columns.others if other.purchase == one.purchase and is_priced(other))
        if not is_priced(one):
            prices[i] = next(rest, one)
    every = (*columns.prices, *columns.others)
    return replace(columns, prices=tuple(prices), others=tuple(one for one in every if one not in prices))


def read_own(table: Lines, where: str, cited: str, columns: OwnColumns, stated: Stated) -> OwnList:
    """The offers of a list whose columns are known.

    Raises CatalogError where no line has a price, or nothing says whose prices they are, in what currency, or at what
    rate.
    """
    columns = _with_prices(columns, table)
    decimal = decimal_sign(line[one.column] for line in table.lines.values() for one in columns.prices)
    reader = _Reader(where, cited, columns, stated, decimal, "" if columns.is_german or decimal == "," else USD)
    offers, left, faults = list[Offer](), list[tuple[Offer, str]](), list(table.faults)
    currencies = Counter[str]()
    for number, line in table.lines.items():
        offer, unread, wrong, currency = _offer(reader, number, line)
        if reason := _other_product(reader, line) or (unread if not wrong else ""):
            left.append((offer, reason))
            continue
        faults += [Fault(where, number, what) for what in wrong]
        if not wrong:
            offers.append(offer)
        if offer.prices:
            currencies[currency] += 1
    if problems := list(_problems(table.at, where, currencies, reader)):
        raise CatalogError(*problems)
    if not (currencies or left or faults):
        named = " or ".join(shown(one.column) for one in columns.prices)
        raise CatalogError(f"{where}: none of its {count(len(table.lines), 'line')} has a price in {named}.")
    return OwnList(tuple(offers), tuple(left), tuple(faults), tuple(_notes(columns, currencies, stated)))


def _problems(at: str, where: str, currencies: Mapping[str, int], reader: _Reader) -> Iterator[str]:
    """What a list says nowhere and the user must: whose prices they are, in which currency, and its rate."""
    if "provider" not in reader.columns.of and not reader.stated.provider:
        yield f"{at}: no column says whose prices these are. Add a column provider, or give --provider NAME."
    if "" in currencies:
        yield f"{at}: no column says the currency. Add a column currency, such as EUR or USD."
    for code, n_lines in currencies.items():
        if code not in ("", USD, *reader.stated.usd_per):
            give = f"Give your own rate: --usd-per {code}=RATE, the US dollars for 1 {code}"
            yield f"{where}: has {count(n_lines, 'line')} in {code}. {give}."


def _notes(columns: OwnColumns, currencies: Mapping[str, int], stated: Stated) -> Iterator[str]:
    """The rates that were used, and what was taken for granted where no column says it."""
    yield from (f"1 {code} = {stated.usd_per[code]:g} USD, your rate." for code in currencies if code != USD)
    if USD in currencies and "currency" not in columns.of and not any(one.currency for one in columns.prices):
        yield "Prices without a currency are taken as US dollars."
    if "unit" not in columns.of and not all(one.hours for one in columns.prices):
        yield "Prices without a time are taken as for an hour."
    for other in columns.others:
        read = next(shown(one.column) for one in columns.prices if one.purchase == other.purchase)
        yield f"The {other.purchase} price is that of {read}, not of {shown(other.column)}."


def _offer(reader: _Reader, number: int, line: Mapping[str, str]) -> tuple[Offer, str, list[str], str]:
    """A line as an offer, why it is none, what is wrong with it, and the currency of its prices."""
    of, wrong = reader.columns.of, list[str]()

    def text(role: str, allowed: re.Pattern[str], must_be: str) -> str:
        found = " ".join(line[of[role]].replace("×", "x").strip(" ,").split()) if role in of else ""
        if found and (len(found) > MOST_LENGTH or not found.isprintable() or not allowed.fullmatch(found)):
            wrong.append(_refused(of[role], found, must_be))
        return found

    name = text("name", _NAME, "a name of letters, digits and . _ - ( ) / + ,")
    gpu, n_gpus = _counted(text("gpu", _NAME, "a GPU's name, such as H100 SXM"))
    provider = text("provider", _TEXT, "the name of a provider") or reader.stated.provider
    if not provider and "provider" in of:
        wrong.append(_refused(of["provider"], "", "the name of a provider"))
    if of.get("gpu_count") != of.get("gpu"):
        counted = _number(reader, line, "gpu_count", wrong)
        if counted and n_gpus and counted != n_gpus:
            wrong.append(_refused(of["gpu_count"], line[of["gpu_count"]], f"{n_gpus:g}, as {shown(of['gpu'])} says"))
        n_gpus = counted or n_gpus
    if "gpu" not in of and _counted(name.replace("_", " "))[1]:
        gpu, n_gpus = _counted(name.replace("_", " "))
    prices, is_for_gpu, currency = _prices(reader, line, wrong)
    by_gpu = n_gpus is None and bool(gpu) and name in ("", gpu)
    if n_gpus is not None and is_for_gpu:
        prices = {purchase: round(usd * n_gpus, 6) for purchase, usd in prices.items()}
    wrong += _contradictions(reader, line, n_gpus)
    rate = reader.stated.usd_per.get(currency)
    memory = re.search(r"[0-9]+(\.[0-9]+)?", line[of["gpu_memory"]]) if "gpu_memory" in of else None
    offer = Offer(
        where=reader.where,
        line=number,
        cited=f"{reader.cited} at {rate:g} USD per {currency}" if rate else reader.cited,
        provider=provider,
        name=gpu if by_gpu else name or (f"{n_gpus:g}x {gpu}" if n_gpus else gpu),
        prices=prices,
        region=text("region", _TEXT, "a place, such as Frankfurt"),
        as_of=_day(line, of.get("date"), wrong),
        per_gpu=by_gpu,
        is_for_gpu=is_for_gpu and n_gpus is None,
        gpu=gpu,
        interconnect=line[of["interconnect"]] if "interconnect" in of else "",
        gpu_count=n_gpus,
        gpu_memory_gb=float(memory[0]) if memory else None,
        vcpu=_number(reader, line, "vcpu"),
        ram_gib=_number(reader, line, "ram_gib"),
        kinds={purchase: "as the list states it" for purchase in prices if purchase.startswith("reserved")},
        is_own=True,
        has_gpu_column="gpu" in of,
    )
    return offer, "" if prices else _unread(reader, line), wrong, currency


def _refused(column: str, text: str, must_be: object) -> str:
    """What is wrong with a cell, and what it must be."""
    return f"{shown(column)} is {shown(text)!r}. It must be {must_be}."


def _counted(text: str) -> tuple[str, float | None]:
    """A GPU's name and how many, of `8x H100 SXM` or `H100 x8`; None where it does not say."""
    for pattern in _COUNTED:
        if found := pattern.search(text):
            return found["gpu"].strip(), float(found["n"])
    return text, None


def _number(reader: _Reader, line: Mapping[str, str], role: str, wrong: list[str] | None = None) -> float | None:
    """A number above 0; of one that is none nothing, which is `wrong` where that is given."""
    column = reader.columns.of.get(role)
    if column is None:
        return None
    try:
        amount = read_amount(line[column], reader.decimal)
    except AmountError as error:
        if wrong is not None:
            wrong.append(_refused(column, line[column], error))
        return None
    if amount is None and wrong is not None and re.search("[a-z]{3}", line[column].lower()):
        wrong.append(_refused(column, line[column], "a whole number from 1"))
    return amount.value if amount and 0 < amount.value < 1e9 else None


def _contradictions(reader: _Reader, line: Mapping[str, str], n_gpus: float | None) -> Iterator[str]:
    """What is wrong with a line whose other columns of prices differ from those that are read, where they are of one
    currency or its rate is known."""
    for other in reader.columns.others:
        read = next(one for one in reader.columns.prices if one.purchase == other.purchase)
        try:
            amounts = [(one, read_amount(line[one.column], reader.decimal)) for one in (read, other)]
            priced = [(one, amount) for one, amount in amounts if amount and amount.value]
            currencies = {_currency(reader, line, one, amount) for one, amount in priced}
            usd = [_usd(reader, line, one, amount) * (n_gpus or 1 if one.per_gpu else 1) for one, amount in priced]
        except AmountError:
            continue  # what cannot be read is said where it would be
        is_known = len(currencies) == 1 or currencies <= {USD, *reader.stated.usd_per}
        if len(usd) == 2 and is_known and not (read.per_gpu != other.per_gpu and n_gpus is None):
            least, most = sorted(usd)
            if most > least * (1 + A_MONTHS_HOURS):
                both = f"{shown(read.column)} and {shown(other.column)}"
                yield f"{both} differ: {usd[0]:g} and {usd[1]:g} an hour. Take one of the columns out."


def _usd(reader: _Reader, line: Mapping[str, str], one: PriceColumn, amount: Amount) -> float:
    """US dollars an hour of a price; in its currency where the rate is missing."""
    currency, hours = _currency(reader, line, one, amount), _hours(reader, line, one)
    return amount.value * one.scale / hours * reader.stated.usd_per.get(currency, 1.0)


def _prices(reader: _Reader, line: Mapping[str, str], wrong: list[str]) -> tuple[dict[str, float], bool, str]:
    """US dollars an hour by purchase class, whether they are for one GPU, and the currency in which they stand there;
    in that currency where its rate is missing."""
    prices: dict[str, float] = {}
    currencies: set[str] = set()
    unit = plain(line[reader.columns.of["unit"]]) if "unit" in reader.columns.of else ""
    is_for_gpu = bool(PER_GPU.search(unit))
    for one in reader.columns.prices:
        text = line[one.column]
        try:
            amount = read_amount(text, reader.decimal)
            if amount is None or amount.value == 0:  # `on request`, `-`, or no such offer
                continue
            currency, usd = _currency(reader, line, one, amount), _usd(reader, line, one, amount)
        except AmountError as error:
            wrong.append(_refused(one.column, text, error))
            continue
        purchase = _purchase(reader, line) if one.purchase == ON_DEMAND else one.purchase
        if not LEAST_USD <= usd <= MOST_USD:
            must_be = f"from {LEAST_USD:g} to {MOST_USD:,.0f} USD an hour"
            wrong.append(_refused(one.column, text, must_be))
        elif purchase:
            prices[purchase] = round(usd, 6)
        currencies.add(currency)
        is_for_gpu = is_for_gpu or one.per_gpu or bool(PER_GPU.search(plain(text)))
    if len(currencies) > 1:
        wrong.append(f"has prices in {' and '.join(sorted(currencies))} on one line. Keep one currency a line.")
    return prices, is_for_gpu, next(iter(currencies), USD)


def _currency(reader: _Reader, line: Mapping[str, str], one: PriceColumn, amount: Amount) -> str:
    """The currency of a price: by its own sign, its column's name, or the line's currency column. A `$` beside another
    currency is that one's dollar. Raises AmountError where they differ, or a code is not known."""
    column = reader.columns.of.get("currency")
    of_line = currency_in(line[column]) if column else ""
    if column and line[column] and not of_line:
        raise AmountError(f"in a currency by its code, such as EUR: {shown(column)} is {shown(line[column])!r}")
    named = {amount.currency, one.currency, of_line} - {""}
    if column and not line[column].strip() and not named:
        raise AmountError(f"in a currency by its code, such as EUR: {shown(column)} is empty")
    others = named - ({USD} if "$" in line[one.column] and amount.currency == USD else set())
    if len(others) > 1:
        raise AmountError(f"in one currency, not {' and '.join(sorted(others))}")
    return next(iter(others or named), reader.currency)


def _hours(reader: _Reader, line: Mapping[str, str], one: PriceColumn) -> float:
    """The hours that a price is for, by its text, its column's name or the line's unit; an hour where nothing says."""
    unit = line[reader.columns.of["unit"]] if "unit" in reader.columns.of else ""
    named = [
        PERIODS[word] for word in re.findall(r"[^\W\d_]+", f"{line[one.column]} {unit}".lower()) if word in PERIODS
    ]
    periods = {hours * how_many(unit, hours) for hours in named} | ({one.hours} - {0})
    if len(periods) > 1:
        raise AmountError("for one time: its column, its unit and the price itself name several")
    return next(iter(periods), 1.0)


def _purchase(reader: _Reader, line: Mapping[str, str]) -> str:
    """The class that other columns of a line name, on demand where none does; empty for a commitment without its
    term."""
    of = reader.columns.of
    is_spot = "spot" in of and line[of["spot"]].strip().lower() in ("true", "yes", "ja", "y", "x", "1", SPOT)
    if is_spot or re.search(r"\bspot\b", plain(" ".join(line[column] for column in reader.columns.of_windows))):
        return SPOT
    said = line[of["purchase"]].strip().lower() if "purchase" in of else ""
    return said if said in PURCHASES else purchase_in(plain(said)) or ""


def _other_product(reader: _Reader, line: Mapping[str, str]) -> str:
    """Why a line is not of the plain machine by time; empty where it is."""
    of = reader.columns.of
    for column, allowed in reader.columns.plain.items():
        if line[column].strip().lower() not in allowed:
            return f"of another product ({shown(column)}: {shown(line[column], 30)})"
    named = [*reader.columns.of_windows, *([of["purchase"]] if "purchase" in of else [])]
    said = plain(" ".join(line[column] for column in named))
    if other := re.search("windows|dev ?test|low priority", said):
        return f"of another product ({other[0]})"
    unit = line[of["unit"]].lower() if "unit" in of else ""
    if unit and not PERIODS.keys() & set(re.findall(r"[^\W\d_]+", unit)):
        return f"not priced by time ({shown(of['unit'])}: {shown(unit, 30)})"
    return ""


def _unread(reader: _Reader, line: Mapping[str, str]) -> str:
    """Why a line without prices that are read has some all the same; empty where it has none."""
    has_price = any(re.search("[1-9]", line[one.column]) for one in reader.columns.prices)
    return "for a commitment: the form `commitments` takes its price by the hour, with its term" if has_price else ""


def _day(line: Mapping[str, str], column: str | None, wrong: list[str]) -> str:
    """The day of 2026-05-24, 2026-05-24T12:00:00Z or 24.5.2026, or a month or year; empty where a line has none."""
    text = day = line[column] if column else ""
    if german := re.fullmatch(r"([0-9]{1,2})\.([0-9]{1,2})\.(20[0-9]{2})", text):
        day = f"{german[3]}-{int(german[2]):02}-{int(german[1]):02}"
    if re.fullmatch("20[0-9]{2}(-(0[1-9]|1[0-2]))?", day):
        return day
    try:
        return datetime.date.fromisoformat(day[:10]).isoformat() if day else ""
    except ValueError:
        wrong.append(_refused(str(column), text, "a day such as 2026-05-24"))
        return ""
