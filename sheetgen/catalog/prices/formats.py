"""The price lists that sheetgen reads, each known by its columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from sheetgen.catalog.prices.table import Table
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
    title="AWS on demand",
    provider="aws",
    name="instance_type",
    required=("region", "instance_type", "on_demand_usd_hr", "accelerator_count", "accelerator_name"),
    optional=("accelerator_memory_mib", "vcpu", "memory_mib", "local_nvme_gb", "network_mbps", "ebs_mbps"),
    prices=(PriceColumn("on-demand", "on_demand_usd_hr"),),
    gpu="accelerator_name",
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
    optional=(),
    prices=(PriceColumn("on-demand", "on_demand_usd_hr"),),
    type_starts="Standard_",  # an AWS list that lost columns would look like one of Azure
)
GCP = Format(
    title="GCP accelerators",
    provider="gcp",
    name="machine_type",
    required=("region", "machine_type", "on_demand_usd_hr", "spot_usd_hr", "month_1y_cud_usd", "month_3y_cud_usd"),
    optional=("month_usd", "month_spot_usd"),
    prices=(
        PriceColumn("on-demand", "on_demand_usd_hr"),
        PriceColumn("reserved-1yr", "month_1y_cud_usd", HOURS_OF_A_LISTED_MONTH, "resource CUD (month/730)"),
        PriceColumn("reserved-3yr", "month_3y_cud_usd", HOURS_OF_A_LISTED_MONTH, "resource CUD (month/730)"),
        PriceColumn("spot", "spot_usd_hr"),
    ),
    decimals=4,  # as the catalog's rows: sums of parts have more digits than any invoice
)
NEOCLOUD = Format(
    title="neocloud offerings",
    provider=None,
    name="gpu_model",
    required=("provider_id", "gpu_model", "vram_gb", "interconnect", "tier", "is_spot", "price_usd_hour"),
    optional=("gpu_brand", "vcpu", "ram_gb", "source_url", "collected_at", "notes"),
    prices=(PriceColumn("on-demand", "price_usd_hour"), PriceColumn("spot", "price_usd_hour")),  # by is_spot
    region=None,
    date="collected_at",
    gpu="gpu_model",
    amounts={"gpu_memory_gb": ("vram_gb", 1), "vcpu": ("vcpu", 1), "ram_gib": ("ram_gb", 1)},
)
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
