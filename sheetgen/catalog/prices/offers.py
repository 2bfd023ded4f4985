"""Price lists as offers: a list's text, from a file or a web address; the columns by which its kind is known; and its
lines: who sells what, where and how, at what price.

The address is one that the user named: nothing else is ever fetched. What is wrong with a line is kept beside it, not
raised.
"""

from __future__ import annotations

import csv
import datetime
import http.client
import io
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sheetgen.catalog.base import decoded, read_bounded
from sheetgen.errors import CatalogError, did_you_mean, shown, shown_key
from sheetgen.units import PURCHASES, count

MAX_BYTES = 32 * 2**20
MAX_LINES = 50_000
MAX_COLUMNS = 200
SILENCE_SECONDS = 30  # how long a server may say nothing
FETCH_SECONDS = 120  # how long a whole list may take
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*)://")
_HANDLERS = (  # what urllib opens by itself, less file:, ftp: and data:
    urllib.request.ProxyHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPRedirectHandler,
    urllib.request.HTTPErrorProcessor,
    urllib.request.UnknownHandler,
)
_STARTS = (  # the first bytes of what people take for CSV
    (b"\x1f\x8b", "is compressed (gzip). Unpack it first"),
    (b"PK\x03\x04", "is a zip archive or an Excel workbook. Save the sheet as CSV"),
    (b"\xff\xfe", "is UTF-16 text. Save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16 text. Save it as UTF-8"),
    (b"<", "is a web page or XML, not CSV. Name the file itself"),
    (b"{", "is JSON, not CSV"),
    (b"[", "is JSON, not CSV"),
)


Read = tuple[str, str, str]  # a list's name in messages, its name in a catalog row's source, its text


def read_list(place: str) -> Read:
    """The list at a path or an http(s) address.

    Raises CatalogError, one line, where it cannot be read, is no text, or has more than 32 MiB.
    """
    if scheme := _SCHEME.match(place):
        if scheme[1].lower() not in ("http", "https"):
            raise CatalogError(f"{shown(place, 200)}: is neither a file nor an address of http or https.")
        name = cited = _public(place.strip())
        raw = _fetched(place.strip(), name)
    else:
        name, cited = shown(place, 300), Path(place).name
        try:
            raw = read_bounded(Path(place), MAX_BYTES, "Name a CSV file", folders_too=True)
        except ValueError as error:
            raise CatalogError(f"{name}: {error}.") from error
    if len(raw) > MAX_BYTES:
        raise CatalogError(f"{name}: is larger than {MAX_BYTES // 2**20} MiB, the most that a price list may have.")
    for start, what in _STARTS:
        if raw.lstrip().startswith(start):
            raise CatalogError(f"{name}: {what}.")
    text = decoded(raw, name)
    if not text.strip():
        raise CatalogError(f"{name}: is empty.")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise CatalogError(f"{name}:{line}: holds a NUL byte, so it is no text. Name a CSV file.")
    # As it may stand in a catalog row: no mark-up, no colon but of the scheme and the port.
    scheme_name, sign, rest = cited.rpartition("://")
    clean = re.sub(r":(?![0-9]+(/|$))|[^A-Za-z0-9 ._/@%+:-]", "_", rest)
    return name, f"{scheme_name}{sign}{clean}"[:120].strip() or "list", text


def _fetched(url: str, name: str) -> bytes:
    """The body, read in pieces: a server that drips bytes does not hold the command for ever."""
    if "@" in url.split("/")[2]:
        raise CatalogError(f"{name}: has a user or a password before the host, which is not sent. Take it out.")
    opener = urllib.request.OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    opener.addheaders = [("User-Agent", "sheetgen"), ("Accept", "text/csv, text/plain;q=0.9, */*;q=0.1")]
    raw = bytearray()
    try:
        with opener.open(url, timeout=SILENCE_SECONDS) as answer:
            until = time.monotonic() + FETCH_SECONDS
            while len(raw) <= MAX_BYTES and (piece := answer.read1(2**16)):
                raw += piece
                if time.monotonic() > until:
                    late = f"not all of it came within {FETCH_SECONDS} seconds"
                    raise CatalogError(f"{name}: cannot be fetched ({late}).")
            stated = answer.headers.get("Content-Length", "")
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        if isinstance(error, urllib.error.HTTPError):
            reason = f"{error.code} {error.reason}"
            error.close()  # it is the server's answer, too
        raise CatalogError(f"{name}: cannot be fetched ({shown(reason, 100)}).") from error
    if stated.isdecimal() and len(raw) < min(int(stated), MAX_BYTES):
        raise CatalogError(f"{name}: cannot be fetched (it ended after {len(raw):,} of {int(stated):,} bytes).")
    return bytes(raw)


def _public(url: str) -> str:
    """The address without what may be secret: user, password, query."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return shown(url.split("?")[0].rpartition("@")[2], 200)
    host = parts.netloc.rpartition("@")[2]
    return shown(urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", "")), 200)


@dataclass(frozen=True)
class Fault:
    where: str
    line: int
    what: str  # one sentence or two, with their full stops
    is_pair: bool = False  # another line, which `what` names, cannot be used either

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.what}"


def read_table(where: str, text: str) -> tuple[str, tuple[str, ...], dict[int, dict[str, str]], list[Fault]]:
    """Where the header stands, its columns, the lines by their numbers, each with its cells by column, and the lines
    that have more or fewer cells. Raises CatalogError where `text` is no CSV.
    """
    records = _records(where, text)
    first, head = next(records, (1, []))
    at, header = f"{where}:{first}", tuple(cell.lower() for cell in head)
    if len(header) > MAX_COLUMNS:
        raise CatalogError(f"{at}: has {len(header):,} columns. A price list has at most {MAX_COLUMNS}.")
    if twice := next((name for i, name in enumerate(header) if name and name in header[:i]), None):
        raise CatalogError(f"{at}: column {shown(twice)} is there twice. Keep one.")
    lines: dict[int, dict[str, str]] = {}
    faults: list[Fault] = []
    for number, cells in records:
        if len(lines) + len(faults) >= MAX_LINES:
            raise CatalogError(f"{where}: has more than {MAX_LINES:,} lines. Keep the GPU rows.")
        if len(cells) == len(header):
            lines[number] = dict(zip(header, cells, strict=True))
        else:
            what = f"has {count(len(cells), 'cell')} under a header of {len(header)} columns."
            faults.append(Fault(where, number, what))
    return at, header, lines, faults


def _records(where: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """The records that hold anything, each with the number of the line where it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    begins = 1
    try:
        for record in reader:
            cells = [cell.strip() for cell in record]
            if any(cells):
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        raise CatalogError(f"{where}:{begins}: is not valid CSV ({shown(error, 80)}).") from error


# Google's lists state a committed price for a month, made from the hour by this number.
HOURS_OF_A_LISTED_MONTH = 730


@dataclass(frozen=True)
class Format:
    """One kind of list. `provider` is None where a column names it; `decimals` is how far its prices are kept.

    name: the column with the instance type, or with the GPU where prices are by the GPU. names, amounts: columns of an
    offer's other fields, those of amounts with their unit. prices: by purchase class a column and its hours; terms:
    what the catalogs call their terms. purchase: the column that says of which class a line's one price is.
    """

    title: str
    provider: str | None
    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    prices: dict[str, tuple[str, int]]
    region: str | None = "region"
    date: str = "source_date"
    names: dict[str, str] = field(default_factory=dict)
    amounts: dict[str, tuple[str, float]] = field(default_factory=dict)
    type_starts: str = ""
    decimals: int | None = None
    terms: dict[str, str] = field(default_factory=dict)
    provider_column: str = "provider"
    purchase: str | None = None


AWS = Format(
    title="AWS on demand",
    provider="aws",
    name="instance_type",
    required=("region", "instance_type", "on_demand_usd_hr", "accelerator_count", "accelerator_name"),
    optional=(
        *("accelerator_memory_mib", "vcpu", "memory_mib", "local_nvme_gb", "network_mbps", "ebs_mbps"),
        *("reserved_1yr_no_upfront_usd_hr", "source", "source_date"),
    ),
    prices={"on-demand": ("on_demand_usd_hr", 1), "reserved-1yr": ("reserved_1yr_no_upfront_usd_hr", 1)},
    terms={"reserved-1yr": "Standard RI, No Upfront"},
    names={"gpu": "accelerator_name"},
    amounts={
        "gpu_count": ("accelerator_count", 1),
        "gpu_memory_gb": ("accelerator_memory_mib", 1024),
        "vcpu": ("vcpu", 1),
        "ram_gib": ("memory_mib", 1024),
        "local_nvme_gb": ("local_nvme_gb", 1),
        "network_gbps": ("network_mbps", 1000),
    },
)
AZURE = Format(
    title="Azure on demand",
    provider="azure",
    name="instance_type",
    required=("region", "instance_type", "on_demand_usd_hr"),
    optional=("source", "source_date"),
    prices={"on-demand": ("on_demand_usd_hr", 1)},
    type_starts="Standard_",  # an AWS list that lost columns would look like one of Azure
)
GCP = Format(
    title="GCP accelerators",
    provider="gcp",
    name="machine_type",
    optional=("month_usd", "month_spot_usd", "source", "source_date"),
    required=("region", "machine_type", "on_demand_usd_hr", "spot_usd_hr", "month_1y_cud_usd", "month_3y_cud_usd"),
    prices={
        "on-demand": ("on_demand_usd_hr", 1),
        "reserved-1yr": ("month_1y_cud_usd", HOURS_OF_A_LISTED_MONTH),
        "reserved-3yr": ("month_3y_cud_usd", HOURS_OF_A_LISTED_MONTH),
        "spot": ("spot_usd_hr", 1),
    },
    decimals=4,  # as the catalog's rows: sums of parts have more digits than any invoice
    terms=dict.fromkeys(("reserved-1yr", "reserved-3yr"), "resource CUD (month/730)"),
)
CAPACITY_BLOCKS = Format(
    title="AWS Capacity Blocks",
    provider="aws",
    name="instance_type",
    required=("region", "instance_type", "capacity_block_usd_hr"),
    optional=("accelerator", "accelerator_count", "usd_per_accelerator_hr", "source", "source_date"),
    prices={"capacity-block": ("capacity_block_usd_hr", 1)},
    names={"gpu": "accelerator"},
    amounts={"gpu_count": ("accelerator_count", 1)},
)
COMMITMENTS = Format(
    title="commitments",
    provider=None,
    name="instance_type",
    required=("provider", "instance_type", "region", "purchase", "usd_per_hour", "kind"),
    optional=("source", "source_date"),
    prices={purchase: ("usd_per_hour", 1) for purchase in PURCHASES},
    purchase="purchase",
)
NEOCLOUD = Format(
    title="neocloud offerings",
    provider=None,
    name="gpu_model",
    region=None,
    date="collected_at",
    required=("provider_id", "gpu_model", "vram_gb", "interconnect", "tier", "is_spot", "price_usd_hour"),
    optional=("gpu_brand", "vcpu", "ram_gb", "source_url", "collected_at", "notes"),
    prices={"on-demand": ("price_usd_hour", 1), "spot": ("price_usd_hour", 1)},  # by is_spot
    names={"tier": "tier", "interconnect": "interconnect"},
    amounts={"gpu_memory_gb": ("vram_gb", 1), "vcpu": ("vcpu", 1), "ram_gib": ("ram_gb", 1)},
    provider_column="provider_id",
)
FORMATS = (AWS, AZURE, GCP, NEOCLOUD, CAPACITY_BLOCKS, COMMITMENTS)


def recognise(at: str, header: tuple[str, ...]) -> Format:
    """The format whose columns the header has. Raises CatalogError, one line, where none fits."""
    present = set(header)
    best = max(FORMATS, key=lambda f: (len(present & {*f.required, *f.optional}), -len(set(f.required) - present)))
    missing = [column for column in best.required if column not in present]
    if len(present & set(best.required)) < 2:
        known = "; ".join(f"{f.title} ({', '.join(f.required)})" for f in FORMATS)
        what = f"begins with {shown_key(', '.join(header))!r}, which is no price list that sheetgen knows"
        for sign, called in ((";", "semicolons"), ("\t", "tabs")):  # other programs put other signs between columns
            if len(header) == 1 and sign in header[0]:
                what += f"; its columns are separated by {called}, not commas"
        raise CatalogError(f"{at}: {what}. Known: {known}.")
    if missing:
        spare = [column for column in header if column not in (*best.required, *best.optional)]
        near = did_you_mean(missing[0], spare)
        if not near and len(spare) == len(missing) == 1:
            near = f" Is it {shown(spare[0])}?"
        what = f"looks like {best.title}, but has no column {', '.join(missing)}"
        raise CatalogError(f"{at}: {what}.{near} Known: {', '.join(f.title for f in FORMATS)}.")
    return best


@dataclass(frozen=True)
class Offer:
    """One line: prices by purchase class, US dollars an hour, and what the line says of the machine."""

    where: str
    line: int
    cited: str
    provider: str
    name: str  # instance type, or GPU where the price is by the GPU
    prices: dict[str, float]
    region: str = ""
    as_of: str = ""
    has_own_day: bool = True  # else `as_of` is that of the whole list
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


def read_prices(place: str, read: Read | None = None) -> PriceList:
    """The list at a path or an http(s) address; `read` is what `read_list` gave for it, where it was read already.

    Raises CatalogError where it is no price list at all; broken lines are in `faults`, in order.
    """
    where, cited, text = read or read_list(place)
    at, header, lines, faults = read_table(where, text)
    known = recognise(at, header)
    if not lines and not faults:
        raise CatalogError(f"{where}: has a header and no line under it.")
    if lines and not any(cells[known.name].startswith(known.type_starts) for cells in lines.values()):
        what = f"has the columns of {known.title}, but no type in it begins {known.type_starts}"
        raise CatalogError(f"{at}: {what}. Lists of other providers have more columns.")
    n_lines = len(lines) + len(faults)
    offers: list[Offer] = []
    for number, cells in lines.items():
        row = _Cells(cells)
        offer = _offer(known, row, where=where, line=number, cited=cited)
        faults += [Fault(where, number, what) for what in row.wrong]
        if not row.wrong:
            offers.append(offer)
    clashing: set[int] = set()
    first: dict[tuple[str, ...], Offer] = {}
    for offer in offers:  # lines that price one thing a second time, and differently
        if known.region is not None:
            purchase = lines[offer.line][known.purchase] if known.purchase else ""
            key: tuple[str, ...] = (offer.provider, offer.name.lower(), offer.region.lower(), purchase)
            named = f"{offer.name} in {offer.region}"
        else:  # one GPU has several offers; only those alike in every other column are one
            key = tuple(text for column, text in lines[offer.line].items() if column != "price_usd_hour")
            named = f"{offer.name} of {offer.provider}"
        before = first.setdefault(key, offer)
        if before.prices != offer.prices and before.prices and offer.prices:
            old, new = (", ".join(f"{usd:g}" for usd in one.prices.values()) for one in (before, offer))
            what = f"{named} is priced twice: {old} on line {before.line}, {new} here. Keep one."
            faults.append(Fault(offer.where, offer.line, what, is_pair=True))
            clashing |= {before.line, offer.line}
    return PriceList(
        where,
        known,
        tuple(offer for offer in offers if offer.prices and offer.line not in clashing),
        n_lines=n_lines,
        n_without_price=sum(not offer.prices for offer in offers),
        faults=tuple(sorted(faults, key=lambda fault: fault.line)),
    )


LEAST_USD, MOST_USD = 1e-4, 1e6  # an hour: what the catalogs' schema takes

_NUMBER = re.compile(r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/+-]*")
_DAY = re.compile(r"([0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?)([T ]|$)", re.ASCII)
_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class _Cells:
    """The cells of one line as values; what is wrong with them is kept in `wrong`, a sentence or two each.

    An empty cell, or a column that the list has not, is no value, and no fault where it need not have one.
    """

    def __init__(self, cells: dict[str, str]) -> None:
        self._cells = cells
        self.wrong: list[str] = []

    def _refuse(self, column: str, must_be: str) -> None:
        self.wrong.append(f"{column} is {shown(self._cells[column])!r}. It must be {must_be}.")

    def _number(self, column: str) -> float | None:
        """A plain number, 0 or more: neither nan nor inf, no sign, no thousands, only the digits 0 to 9."""
        text = self._cells[column]
        value = float(text) if len(text) <= 40 and _NUMBER.fullmatch(text) else None
        return value if value is None or value < float("inf") else None

    def price(self, column: str, hours: int) -> float | None:
        """US dollars an hour, of a price for so many hours."""
        if not self._cells.get(column):
            return None
        value = self._number(column)
        if not value:  # 0 is no price, whatever it was meant to say
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
        """A name to be compared with those of the catalogs."""
        text = self._cells.get(column, "")
        if not text and not optional:
            self.wrong.append(f"{column} is empty.")
        elif len(text) > 120:
            self.wrong.append(f"{column} is {shown(text, 30)!r}, {len(text):,} characters. A name has at most 120.")
        elif text and not _NAME.fullmatch(text):
            what = "which is no name: letters, digits and . _ - ( ) / + only"
            self.wrong.append(f"{column} is {shown(text)!r}, {what}.")
        return text

    def label(self, column: str, most: int = 120) -> str:
        """A few words for a catalog row; nothing of longer ones or of what a page could not show."""
        text = " ".join(self._cells.get(column, "").split())
        return text if len(text) <= most and text.isprintable() and not set("<>") & set(text) else ""

    def day(self, column: str) -> str:
        """The day of 2026-05-24, of 2026-05-24T12:00:00Z, or of a day with a remark after it; of a line that states
        less, its month or year."""
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
        found = _YES_NO.get(self._cells[column].lower())
        if found is None:
            self._refuse(column, "True or False")
        return found


def _offer(known: Format, row: _Cells, **fields: Any) -> Offer:
    """The offer of a line, whose place is in `fields`."""
    columns = known.prices
    if known is NEOCLOUD:  # one column of prices, and another that says of which class
        spot = row.yes_or_no("is_spot")
        columns = {purchase: how for purchase, how in columns.items() if (purchase == "spot") == spot}
    if known.purchase:  # a class that the catalogs do not have is no price
        columns = {purchase: how for purchase, how in columns.items() if purchase == row.label(known.purchase)}
    read = {purchase: row.price(*how) for purchase, how in columns.items()}
    prices = {
        purchase: usd if known.decimals is None else round(usd, known.decimals)
        for purchase, usd in read.items()
        if usd is not None
    }
    name = row.name(known.name) if columns else row.label(known.name)
    if not name.startswith(known.type_starts) and not row.wrong:
        row.wrong.append(f"{known.name} is {shown(name)!r}. Every type of {known.title} begins {known.type_starts}.")
    fields |= {field: row.amount(*how) for field, how in known.amounts.items()}
    fields["provider"] = known.provider or row.name(known.provider_column)
    if known.region:
        fields["region"] = row.name(known.region, optional=not prices)  # a type without a price may have none
    fields["as_of"] = row.day(known.date)
    fields["source"] = row.label("source", most=400).replace(";", ",")
    fields |= {field: row.name(column, optional=True) for field, column in known.names.items()}
    kinds = (
        {purchase: row.label("kind") for purchase in columns if row.label("kind")} if known.purchase else known.terms
    )
    return Offer(name=name, prices=prices, per_gpu=known is NEOCLOUD, kinds=kinds, **fields)
