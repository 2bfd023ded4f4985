"""The texts of `regions/PROVIDER.yaml` with the prices of lists: blocks by class, date and source, a line per type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from sheetgen.catalog.base import first_day, read_text, validate
from sheetgen.catalog.load import Catalog, Folder
from sheetgen.catalog.prices.refresh import bounded, comment_of, yaml_scalar
from sheetgen.catalog.prices.region_prices import RegionPrice
from sheetgen.catalog.regions import Region, RegionFile
from sheetgen.units import PURCHASES


class _Block(NamedTuple):
    """The properties that all prices of a block share."""

    purchase: str
    as_of: str
    kind: str | None
    source: str


def region_files(catalog: Catalog, to: Path, prices: Iterable[RegionPrice]) -> dict[Path, str]:
    """The texts of the region files of the folder `to` with these prices, by path; other prices in them are kept.

    Raises CatalogError where an existing file cannot be read, or a new one would be too large.
    """
    folder = Folder(to, str(to).rstrip("/"), has_index=False)
    by_provider: dict[str, list[RegionPrice]] = defaultdict(list)
    for price in prices:
        if price.touches_row:
            by_provider[price.instance.split("/")[0]].append(price)
    out: dict[Path, str] = {}
    for provider, new in by_provider.items():
        relative = f"regions/{provider}.yaml"
        present = folder.entry(relative, RegionFile) if folder.has(relative) else None
        listed = {region.id: region for region in (present.regions if present else ())}
        for price in new:
            region = catalog.regions.listed(provider, price.new_region)
            assert region is not None  # `prices_of_regions` left out all others
            listed.setdefault(region.id, region)
        rank = {row.type: i for i, row in enumerate(catalog.instances()) if row.provider == provider}
        text = _file_text(provider, listed, _merged(present, new), rank, f"{folder.shown_as}/{relative}")
        out[to / relative] = comment_of(to / relative) + text
    return out


_Prices = Mapping[tuple[str, str, str], tuple[_Block, float]]  # by class, type and region


def _merged(present: RegionFile | None, new: Iterable[RegionPrice]) -> _Prices:
    prices: dict[tuple[str, str, str], tuple[_Block, float]] = {}
    for block in present.prices if present else ():
        common = _Block(block.purchase, block.as_of, block.kind, block.source)
        for kind, by_region in block.usd_per_hour.items():
            prices |= {(block.purchase, kind, region): (common, usd) for region, usd in by_region.items()}
    for price in new:
        common = _Block(price.purchase, price.new_as_of, price.kind, price.source)
        prices[price.purchase, price.instance.partition("/")[2], price.new_region] = (common, price.new_usd)
    return prices


def _file_text(
    provider: str, listed: Mapping[str, Region], prices: _Prices, rank: Mapping[str, int], where: str
) -> str:
    """The text of a region file, regions by id and types in the order of the catalogs; it is asserted to read back as
    the same regions and prices."""
    by_block: dict[_Block, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for (_, kind, region), (block, usd) in sorted(prices.items()):
        by_block[block][kind][region] = usd
    order = list(PURCHASES)
    lines = [f"provider: {provider}", "regions:"]
    for place in sorted(listed.values(), key=lambda region: region.id):
        country, areas = yaml_scalar("country", place.country), ", ".join(place.areas)
        city = f", city: {place.city}" if place.city else ""
        lines.append(f"  - {{id: {place.id}, country: {country}{city}, areas: [{areas}]}}")
    lines.append("prices:")
    for block in sorted(
        by_block, key=lambda common: (order.index(common.purchase), first_day(common.as_of), common.source)
    ):
        first, *rest = (
            f"{name}: {yaml_scalar(name, value)}" for name, value in block._asdict().items() if value is not None
        )
        lines += [f"  - {first}", *(f"    {line}" for line in rest), "    usd_per_hour:"]
        for kind, by_region in sorted(by_block[block].items(), key=lambda pair: rank.get(pair[0], len(rank))):
            cells = ", ".join(f"{region}: {yaml_scalar('usd', usd)}" for region, usd in by_region.items())
            lines.append(f"      {yaml_scalar('type', kind)}: {{{cells}}}")
    text = bounded("\n".join(lines) + "\n", where)
    back = validate(read_text(text, where), RegionFile)
    assert _merged(back, ()) == dict(prices) and {region.id: region for region in back.regions} == dict(listed)
    return text
