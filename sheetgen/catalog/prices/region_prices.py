"""The changes that lists make to prices in other regions than a row's own (`regions/PROVIDER.yaml`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sheetgen.catalog.base import first_day
from sheetgen.catalog.prices.rows import Change, Reading, Unmatched, change_of, compared
from sheetgen.catalog.regions import Regions


@dataclass(frozen=True)
class RegionPrice(Change):
    """The change of the price of a type in one region, which is both `old_region` and `new_region`."""

    kind: str | None
    source: str
    is_new_pair: bool  # the catalogs have no price of that type in that region, in any class


def prices_of_regions(readings: Iterable[Reading], regions: Regions) -> tuple[list[RegionPrice], list[Unmatched]]:
    """The changes by the newest reading of each type, region and class, in the order of the lists; and the offers in
    regions that the catalogs do not list, or in classes in which the type is not sold. Older prices are not kept."""
    newest: dict[tuple[str, str, str], Reading] = {}
    left: dict[str, Unmatched] = {}
    for reading in readings:
        offer, provider = reading.offer, reading.row.provider
        region = regions.listed(provider, offer.region)
        sold_as = reading.row.sold_as
        if region is None:
            why = f"in regions that regions/{provider}.yaml does not list: add their ids, countries and areas there"
            left[offer.at] = Unmatched(offer, why, provider, named=offer.region)
            continue
        if sold_as and reading.purchase not in sold_as:
            left[offer.at] = Unmatched(offer, "priced in classes in which it is not sold", provider)
            continue
        key = (reading.row.id, region.id, reading.purchase)
        before = newest.get(key)
        if before is None or first_day(before.offer.as_of) < first_day(offer.as_of):
            newest[key] = reading
    prices: list[RegionPrice] = []
    for (_, region_id, purchase), reading in newest.items():
        offer = reading.offer
        of_type = regions.of_row(reading.row)
        old, old_list = of_type.get(region_id, {}).get(purchase, (None, ""))
        outcome = compared(old, reading, old_list)
        touches_row = outcome not in ("unchanged", "older")
        change = change_of(reading, outcome, old, (region_id, region_id), touches_row)
        prices.append(
            RegionPrice(
                **vars(change),
                kind=offer.kinds.get(purchase) or (old.kind if old else None),
                source=offer.source or offer.title,
                is_new_pair=region_id not in of_type,
            )
        )
    return prices, list(left.values())
