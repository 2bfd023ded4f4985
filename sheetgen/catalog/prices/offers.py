"""Price lists, each known by its columns, and their lines as offers: who sells what, where and how, at what price."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from sheetgen.catalog.prices import table as cells
from sheetgen.catalog.prices.table import Fault, Line, Table, read_list, read_table
from sheetgen.errors import CatalogError, did_you_mean, shown

# Google's lists state a committed price for a month, made from the hour by this number.
HOURS_OF_A_LISTED_MONTH = 730


@dataclass(frozen=True)
class PriceColumn:
    """A column of prices: bought in which way, for how many hours, and what the catalogs call its terms."""

    purchase: str
    column: str
    hours: int = 1
    kind: str | None = None


@dataclass(frozen=True)
class Format:
    """One kind of list. `provider` is None where a column names it; `decimals` is how far its prices are kept."""

    title: str
    provider: str | None
    name: str  # the column with the instance type, or with the GPU where prices are by the GPU
    required: tuple[str, ...]
    optional: tuple[str, ...]
    prices: tuple[PriceColumn, ...]
    region: str | None = "region"
    date: str | None = None
    gpu: str | None = None
    amounts: dict[str, tuple[str, float]] = field(default_factory=dict)  # field: column, unit of the column
    type_starts: str = ""
    decimals: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.required + self.optional


AWS = Format(
    title="AWS on demand", provider="aws", name="instance_type", required=("region", "instance_type",
    "on_demand_usd_hr", "accelerator_count", "accelerator_name"), optional=("accelerator_memory_mib", "vcpu",
    "memory_mib", "local_nvme_gb", "network_mbps", "ebs_mbps"), prices=(PriceColumn("on-demand", "on_demand_usd_hr"),),
    gpu="accelerator_name", amounts={"gpu_count": ("accelerator_count", 1),
    "gpu_memory_gb": ("accelerator_memory_mib", 1024), "vcpu": ("vcpu", 1), "ram_gib": ("memory_mib", 1024),
    "local_nvme_gb": ("local_nvme_gb", 1), "network_gbps": ("network_mbps", 1000)},
)  # fmt: skip
AZURE = Format(
    title="Azure on demand", provider="azure", name="instance_type",
    required=("region", "instance_type", "on_demand_usd_hr"), optional=(),
    prices=(PriceColumn("on-demand", "on_demand_usd_hr"),),
    type_starts="Standard_",  # an AWS list that lost columns would look like one of Azure
)  # fmt: skip
_CUD = HOURS_OF_A_LISTED_MONTH, "resource CUD (month/730)"
GCP = Format(
    title="GCP accelerators", provider="gcp", name="machine_type", optional=("month_usd", "month_spot_usd"),
    required=("region", "machine_type", "on_demand_usd_hr", "spot_usd_hr", "month_1y_cud_usd", "month_3y_cud_usd"),
    prices=(PriceColumn("on-demand", "on_demand_usd_hr"), PriceColumn("reserved-1yr", "month_1y_cud_usd", *_CUD),
        PriceColumn("reserved-3yr", "month_3y_cud_usd", *_CUD), PriceColumn("spot", "spot_usd_hr")),
    decimals=4,  # as the catalog's rows: sums of parts have more digits than any invoice
)  # fmt: skip
NEOCLOUD = Format(
    title="neocloud offerings", provider=None, name="gpu_model", region=None, date="collected_at", gpu="gpu_model",
    required=("provider_id", "gpu_model", "vram_gb", "interconnect", "tier", "is_spot", "price_usd_hour"),
    optional=("gpu_brand", "vcpu", "ram_gb", "source_url", "collected_at", "notes"),
    prices=(PriceColumn("on-demand", "price_usd_hour"), PriceColumn("spot", "price_usd_hour")),  # by is_spot
    amounts={"gpu_memory_gb": ("vram_gb", 1), "vcpu": ("vcpu", 1), "ram_gib": ("ram_gb", 1)},
)  # fmt: skip
FORMATS = (AWS, AZURE, GCP, NEOCLOUD)


def recognise(table: Table) -> Format:
    """The format whose columns the header has. Raises CatalogError, one line, where none fits."""
    present = set(table.header)
    best = max(FORMATS, key=lambda f: (len(present & set(f.columns)), -len(set(f.required) - present)))
    missing = [column for column in best.required if column not in present]
    at = f"{table.where}:{table.header_line}"
    if len(present & set(best.required)) < 2:
        raise CatalogError(
            f"{at}: begins with {shown(', '.join(table.header))!r}, which is no price list that sheetgen knows"
            f"{_separator(table)}. Known: {_known()}."
        )
    if missing:
        spare = [column for column in table.header if column not in best.columns]
        near = did_you_mean(missing[0], spare) or (
            f" Is it {shown(spare[0])}?" if len(spare) == len(missing) == 1 else ""
        )
        known = ", ".join(f.title for f in FORMATS)
        raise CatalogError(
            f"{at}: looks like {best.title}, but has no column {', '.join(missing)}.{near} Known: {known}."
        )
    return best


def _separator(table: Table) -> str:
    """Why a table of one column may be none: other programs put other signs between columns."""
    for sign, called in ((";", "semicolons"), ("\t", "tabs")):
        if len(table.header) == 1 and sign in table.header[0]:
            return f"; its columns are separated by {called}, not commas"
    return ""


def _known() -> str:
    return "; ".join(f"{f.title} ({', '.join(f.required)})" for f in FORMATS)


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
    clashing = {fault.line for fault, _ in clashes} | {other for _, other in clashes}
    kept = tuple(offer for line, offer in offers if offer.prices and line.number not in clashing)
    all_faults = tuple(sorted([*faults, *(fault for fault, _ in clashes)], key=lambda fault: fault.line))
    n_without_price = sum(not offer.prices for _, offer in offers)
    return PriceList(table.where, known, kept, len(table.lines) + len(table.faults), n_without_price, all_faults)


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
        hourly = row.read(cells.price_in, one.column, one.hours)
        if hourly is not None:
            prices[one.purchase] = hourly if known.decimals is None else round(hourly, known.decimals)
    name = row.read(cells.name_in, known.name) or ""
    if not name.startswith(known.type_starts) and not row.wrong:
        row.wrong.append(f"{known.name} is {shown(name)!r}. Every type of {known.title} begins {known.type_starts}.")
    amounts = {field: row.read(cells.amount_in, *how) for field, how in known.amounts.items()}
    offer = Offer(
        table.where,
        line.number,
        table.cited,
        known.provider or row.read(cells.name_in, "provider_id") or "",
        name,
        prices,
        region=row.read(cells.name_in, known.region, not prices),  # a type without a price may have no region
        as_of=row.read(cells.day_in, known.date),
        tier=(row.read(cells.name_in, "tier", True) if known is NEOCLOUD else "") or "",
        per_gpu=known is NEOCLOUD,
        gpu=row.read(cells.name_in, known.gpu, True),
        interconnect=(row.read(cells.name_in, "interconnect", True) if known is NEOCLOUD else "") or "",
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
