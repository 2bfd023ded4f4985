"""A price list of any form, read by the names of its columns: its lines as offers in USD per hour."""

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
_TEXT = re.compile(r"[^\W_][^<>:;{}|=\"'`\\]*")  # a region or a provider: no mark-up, no formula
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/+,-]*")
MOST_LENGTH = 80
MOST_NUMBER = 1e9
SPOT = "spot"
A_MONTHS_HOURS = 0.025  # tolerance: the months of price lists have 720 to 744 hours


@dataclass(frozen=True)
class Stated:
    """The user's options for lists of their own: the provider, the sheet of a workbook, and exchange rates in USD per
    unit of a currency."""

    provider: str = ""
    sheet: str | None = None
    usd_per: Mapping[str, float] = field(default_factory=dict)


def usd_per_currency(texts: Iterable[str]) -> dict[str, float]:
    """Exchange rates in USD per unit by currency, from texts such as EUR=1.1. Raises CatalogError for other texts."""
    rates: dict[str, float] = {}
    for text in texts:
        code, _, rate = (part.strip() for part in text.partition("="))
        usd = float(rate) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", rate) else 0.0
        if code.upper() not in CURRENCIES - {USD} or not usd:
            example = "Write a currency and the US dollars for one of it, such as EUR=1.1"
            raise CatalogError(f"usd-per is {shown(text)!r}. {example}.")
        rates[code.upper()] = usd
    return rates


@dataclass(frozen=True)
class OwnList:
    """A list of the user's own: its offers, lines left out with the reason, faults, and notes on assumptions."""

    offers: tuple[Offer, ...]
    left: tuple[tuple[Offer, str], ...]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Reader:
    """The properties of a list that reading each of its lines needs."""

    where: str
    cited: str
    columns: OwnColumns
    stated: Stated
    decimal: str
    currency: str  # of prices that name none; empty where they must

    def cell(self, line: Mapping[str, str], role: str) -> str:
        """The text in a line's column of a role; empty where the list has no such column."""
        column = self.columns.roles.get(role)
        return line[column] if column else ""


def _with_prices(columns: OwnColumns, table: Lines) -> OwnColumns:
    """The columns, with each price column without any price replaced by another of its class that has some."""

    def is_priced(column: PriceColumn) -> bool:
        return any(re.search("[1-9]", line[column.name]) for line in table.lines.values())

    prices = list(columns.prices)
    for i, column in enumerate(prices):
        rest = (other for other in columns.others if other.purchase == column.purchase and is_priced(other))
        if not is_priced(column):
            prices[i] = next(rest, column)
    every = (*columns.prices, *columns.others)
    return replace(columns, prices=tuple(prices), others=tuple(column for column in every if column not in prices))


def read_own(table: Lines, where: str, cited: str, columns: OwnColumns, stated: Stated) -> OwnList:
    """The offers of a list with these columns.

    Raises CatalogError where no line has a price, or where the provider, the currency or an exchange rate is missing.
    """
    columns = _with_prices(columns, table)
    decimal = decimal_sign(line[column.name] for line in table.lines.values() for column in columns.prices)
    reader = _Reader(where, cited, columns, stated, decimal, "" if columns.is_german or decimal == "," else USD)
    offers, left, faults = list[Offer](), list[tuple[Offer, str]](), list(table.faults)
    currencies = Counter[str]()
    for number, line in table.lines.items():
        offer, unread, wrong, currency = _offer(reader, number, line)
        if reason := _other_product(reader, line) or (unread if not wrong else ""):
            left.append((offer, reason))
            continue
        faults += [Fault(where, number, problem) for problem in wrong]
        if not wrong:
            offers.append(offer)
        if offer.prices:
            currencies[currency] += 1
    if problems := list(_problems(table.place, where, currencies, reader)):
        raise CatalogError(*problems)
    if not (currencies or left or faults):
        named = " or ".join(shown(column.name) for column in columns.prices)
        raise CatalogError(f"{where}: none of its {count(len(table.lines), 'line')} has a price in {named}.")
    return OwnList(tuple(offers), tuple(left), tuple(faults), tuple(_notes(columns, currencies, stated)))


def _problems(place: str, where: str, currencies: Mapping[str, int], reader: _Reader) -> Iterator[str]:
    """Messages on information that neither the list nor the user gives: provider, currency, exchange rate."""
    if "provider" not in reader.columns.roles and not reader.stated.provider:
        yield f"{place}: no column says whose prices these are. Add a column provider, or give --provider NAME."
    if "" in currencies:
        yield f"{place}: no column says the currency. Add a column currency, such as EUR or USD."
    for code, n_lines in currencies.items():
        if code not in ("", USD, *reader.stated.usd_per):
            give = f"Give your own rate: --usd-per {code}=RATE, the US dollars for 1 {code}"
            yield f"{where}: has {count(n_lines, 'line')} in {code}. {give}."


def _notes(columns: OwnColumns, currencies: Mapping[str, int], stated: Stated) -> Iterator[str]:
    """Sentences on the exchange rates used, and on assumptions about currency, period and choice of column."""
    yield from (f"1 {code} = {stated.usd_per[code]:g} USD, your rate." for code in currencies if code != USD)
    if USD in currencies and "currency" not in columns.roles and not any(column.currency for column in columns.prices):
        yield "Prices without a currency are taken as US dollars."
    if "unit" not in columns.roles and not all(column.hours for column in columns.prices):
        yield "Prices without a time are taken as for an hour."
    for other in columns.others:
        read = next(shown(column.name) for column in columns.prices if column.purchase == other.purchase)
        yield f"The {other.purchase} price is that of {read}, not of {shown(other.name)}."


def _offer(reader: _Reader, number: int, line: Mapping[str, str]) -> tuple[Offer, str, list[str], str]:
    """A line as an offer, the reason why its prices are not read (or ""), its faults, and the currency of its
    prices."""
    roles, wrong = reader.columns.roles, list[str]()

    def text(role: str, allowed: re.Pattern[str], must_be: str) -> str:
        cell = " ".join(reader.cell(line, role).replace("×", "x").strip(" ,").split())
        if cell and (len(cell) > MOST_LENGTH or not cell.isprintable() or not allowed.fullmatch(cell)):
            wrong.append(_refused(roles[role], cell, must_be))
        return cell

    name = text("name", _NAME, "a name of letters, digits and . _ - ( ) / + ,")
    gpu, n_gpus = _counted(text("gpu", _NAME, "a GPU's name, such as H100 SXM"))
    provider = text("provider", _TEXT, "the name of a provider") or reader.stated.provider
    if not provider and "provider" in roles:
        wrong.append(_refused(roles["provider"], "", "the name of a provider"))
    if roles.get("gpu_count") != roles.get("gpu"):
        counted = _number(reader, line, "gpu_count", wrong)
        if counted and n_gpus and counted != n_gpus:
            must_be = f"{n_gpus:g}, as {shown(roles['gpu'])} says"
            wrong.append(_refused(roles["gpu_count"], line[roles["gpu_count"]], must_be))
        n_gpus = counted or n_gpus
    if "gpu" not in roles and _counted(name.replace("_", " "))[1]:
        gpu, n_gpus = _counted(name.replace("_", " "))
    prices, is_for_gpu, currency = _prices(reader, line, wrong)
    has_type = bool(name) and name != gpu
    by_gpu = n_gpus is None and bool(gpu) and not has_type
    if n_gpus is not None and is_for_gpu:
        prices = {purchase: round(usd * n_gpus, 6) for purchase, usd in prices.items()}
    wrong += _contradictions(reader, line, n_gpus)
    rate = reader.stated.usd_per.get(currency)
    memory = re.search(r"[0-9]+(\.[0-9]+)?", reader.cell(line, "gpu_memory"))
    offer = Offer(
        where=reader.where,
        line=number,
        cited=f"{reader.cited} at {rate:g} USD per {currency}" if rate else reader.cited,
        provider=provider,
        name=gpu if by_gpu else name or (f"{n_gpus:g}x {gpu}" if n_gpus else gpu),
        prices=prices,
        region=text("region", _TEXT, "a place, such as Frankfurt"),
        as_of=_day(reader, line, wrong),
        per_gpu=by_gpu,
        is_for_gpu=is_for_gpu and n_gpus is None,
        gpu=gpu,
        interconnect=reader.cell(line, "interconnect"),
        gpu_count=n_gpus,
        gpu_memory_gb=float(memory[0]) if memory else None,
        vcpu=_number(reader, line, "vcpu"),
        ram_gib=_number(reader, line, "ram_gib"),
        kinds={purchase: "as the list states it" for purchase in prices if purchase.startswith("reserved")},
        is_own=True,
        has_region=bool(reader.cell(line, "region").strip()),
        has_type=has_type,
        has_gpu_column="gpu" in roles,
    )
    return offer, "" if prices else _unread(reader, line), wrong, currency


def _refused(column: str, text: str, must_be: object) -> str:
    """The message on an invalid cell."""
    return f"{shown(column)} is {shown(text)!r}. It must be {must_be}."


def _counted(text: str) -> tuple[str, float | None]:
    """The GPU's name and the number of GPUs in `8x H100 SXM` or `H100 x8`; None where no number is stated."""
    for pattern in _COUNTED:
        if match := pattern.search(text):
            return match["gpu"].strip(), float(match["n"])
    return text, None


def _number(reader: _Reader, line: Mapping[str, str], role: str, wrong: list[str] | None = None) -> float | None:
    """The number above 0 in the column of a role; None for any other cell, with a message in `wrong` if given."""
    column = reader.columns.roles.get(role)
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
    if amount and amount.value >= MOST_NUMBER and wrong is not None:
        wrong.append(_refused(column, line[column], f"a number below {MOST_NUMBER:,.0f}"))
    return amount.value if amount and 0 < amount.value < MOST_NUMBER else None


def _contradictions(reader: _Reader, line: Mapping[str, str], n_gpus: float | None) -> Iterator[str]:
    """Messages on price columns of one class that contradict each other on a line, as far as both can be converted to
    the same unit and currency."""
    for other in reader.columns.others:
        read = next(column for column in reader.columns.prices if column.purchase == other.purchase)
        try:
            amounts = [(column, read_amount(line[column.name], reader.decimal)) for column in (read, other)]
            priced = [(column, amount) for column, amount in amounts if amount and amount.value]
            currencies = {_currency(reader, line, column, amount) for column, amount in priced}
            usd = [
                _usd(reader, line, column, amount) * (n_gpus or 1 if column.per_gpu else 1) for column, amount in priced
            ]
        except AmountError:
            continue  # reported where the cell itself is read
        is_known = len(currencies) == 1 or currencies <= {USD, *reader.stated.usd_per}
        if len(usd) == 2 and is_known and not (read.per_gpu != other.per_gpu and n_gpus is None):
            least, most = sorted(usd)
            if most > least * (1 + A_MONTHS_HOURS):
                both = f"{shown(read.name)} and {shown(other.name)}"
                yield f"{both} differ: {usd[0]:g} and {usd[1]:g} an hour. Take one of the columns out."


def _usd(reader: _Reader, line: Mapping[str, str], column: PriceColumn, amount: Amount) -> float:
    """A price in USD per hour; in its own currency where the exchange rate is missing."""
    currency, hours = _currency(reader, line, column, amount), _hours(reader, line, column)
    return amount.value * column.scale / hours * reader.stated.usd_per.get(currency, 1.0)


def _prices(reader: _Reader, line: Mapping[str, str], wrong: list[str]) -> tuple[dict[str, float], bool, str]:
    """A line's prices in USD per hour by purchase class, whether they are per GPU, and the currency they are listed in.

    Without its exchange rate they stay in that currency.
    """
    prices: dict[str, float] = {}
    currencies: set[str] = set()
    is_for_gpu = bool(PER_GPU.search(plain(reader.cell(line, "unit"))))
    for column in reader.columns.prices:
        text = line[column.name]
        try:
            amount = read_amount(text, reader.decimal)
            if amount is None or amount.value == 0:  # `on request`, `-`, or no such offer
                continue
            currency, usd = _currency(reader, line, column, amount), _usd(reader, line, column, amount)
        except AmountError as error:
            wrong.append(_refused(column.name, text, error))
            continue
        purchase = _purchase(reader, line) if column.purchase == ON_DEMAND else column.purchase
        if not LEAST_USD <= usd <= MOST_USD:
            must_be = f"from {LEAST_USD:g} to {MOST_USD:,.0f} USD an hour"
            wrong.append(_refused(column.name, text, must_be))
        elif purchase:
            prices[purchase] = round(usd, 6)
        currencies.add(currency)
        is_for_gpu = is_for_gpu or column.per_gpu or bool(PER_GPU.search(plain(text)))
    if len(currencies) > 1:
        wrong.append(f"has prices in {' and '.join(sorted(currencies))} on one line. Keep one currency a line.")
    return prices, is_for_gpu, next(iter(currencies), USD)


def _currency(reader: _Reader, line: Mapping[str, str], price_column: PriceColumn, amount: Amount) -> str:
    """The currency of a price: from its own sign, its column's name, or the line's currency column.

    A `$` beside another currency is that one's dollar. Raises AmountError where they differ or a code is unknown.
    """
    column, text = reader.columns.roles.get("currency"), reader.cell(line, "currency")
    of_line = currency_in(text)
    if column and text and not of_line:
        raise AmountError(f"in a currency by its code, such as EUR: {shown(column)} is {shown(text)!r}")
    named = {amount.currency, price_column.currency, of_line} - {""}
    if column and not text.strip() and not named:
        raise AmountError(f"in a currency by its code, such as EUR: {shown(column)} is empty")
    others = named - ({USD} if "$" in line[price_column.name] and amount.currency == USD else set())
    if len(others) > 1:
        raise AmountError(f"in one currency, not {' and '.join(sorted(others))}")
    return next(iter(others or named), reader.currency)


def _hours(reader: _Reader, line: Mapping[str, str], price_column: PriceColumn) -> float:
    """The hours of a price, from its text, its column's name or the line's unit; 1 where none states a period.

    Raises AmountError where they differ.
    """
    unit = reader.cell(line, "unit")
    words = re.findall(r"[^\W\d_]+", f"{line[price_column.name]} {unit}".lower())
    named = [PERIODS[word] for word in words if word in PERIODS]
    periods = {hours * how_many(unit, hours) for hours in named} | ({price_column.hours} - {0})
    if len(periods) > 1:
        raise AmountError("for one time: its column, its unit and the price itself name several")
    return next(iter(periods), 1.0)


def _purchase(reader: _Reader, line: Mapping[str, str]) -> str:
    """The purchase class in other columns of a line: on demand if none names one; empty for a commitment of another
    term."""
    is_spot = reader.cell(line, "spot").strip().lower() in ("true", "yes", "ja", "y", "x", "1", SPOT)
    if is_spot or re.search(r"\bspot\b", plain(" ".join(line[column] for column in reader.columns.of_windows))):
        return SPOT
    stated = reader.cell(line, "purchase").strip().lower()
    return stated if stated in PURCHASES else purchase_in(plain(stated)) or ""


def _other_product(reader: _Reader, line: Mapping[str, str]) -> str:
    """The reason why a line is not the price of a plain machine's time; empty for none."""
    for column, allowed in reader.columns.plain.items():
        if line[column].strip().lower() not in allowed:
            return f"of another product ({shown(column)}: {shown(line[column], 30)})"
    words = plain(" ".join([*(line[column] for column in reader.columns.of_windows), reader.cell(line, "purchase")]))
    if other := re.search("windows|dev ?test|low priority", words):
        return f"of another product ({other[0]})"
    unit = reader.cell(line, "unit").lower()
    if unit and not PERIODS.keys() & set(re.findall(r"[^\W\d_]+", unit)):
        return f"not priced by time ({shown(reader.columns.roles['unit'])}: {shown(unit, 30)})"
    return ""


def _unread(reader: _Reader, line: Mapping[str, str]) -> str:
    """The reason why the prices of a line were not read; empty where it has none."""
    has_price = any(re.search("[1-9]", line[column.name]) for column in reader.columns.prices)
    return "for a commitment: the form `commitments` takes its price by the hour, with its term" if has_price else ""


def _day(reader: _Reader, line: Mapping[str, str], wrong: list[str]) -> str:
    """The date of `2026-05-24`, `2026-05-24T12:00:00Z` or `24.5.2026`, or a month or year; empty for an empty cell.

    For any other text the message is added to `wrong`.
    """
    text = day = reader.cell(line, "date")
    if german := re.fullmatch(r"([0-9]{1,2})\.([0-9]{1,2})\.(20[0-9]{2})", text):
        day = f"{german[3]}-{int(german[2]):02}-{int(german[1]):02}"
    if re.fullmatch("20[0-9]{2}(-(0[1-9]|1[0-2]))?", day):
        return day
    try:
        return datetime.date.fromisoformat(day[:10]).isoformat() if day else ""
    except ValueError:
        wrong.append(_refused(reader.columns.roles["date"], text, "a day such as 2026-05-24"))
        return ""
