"""Prices in other regions than each row's own; read only where a question names a region.

`regions/<provider>.yaml` has the provider's regions with country and areas, and the prices of its instance types there.
A type without a price in a region is not sold there.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import ClassVar

from sheetgen.catalog.base import Date, Entry, Id, Label, Many, Problem, Some, Text
from sheetgen.catalog.hardware import Instance, InstancePrice, PlacedInstance, Price, PurchaseId
from sheetgen.units import ON_DEMAND, PURCHASES

EVERYWHERE, GOVERNMENT = {"all", "commercial"}, "gov"
SHORT = 3  # a text of so few letters must be a whole word of a region's name


class Region(Entry):
    id: Label
    country: Label
    city: Label | None = None  # or the nearest large one, without accents
    areas: Some[Id]  # eu and europe: all of it, the United Kingdom and Switzerland too


class RegionPrices(Entry):
    """Prices of one purchase class in USD per hour, by instance type and region, from one source and date."""

    purchase: PurchaseId
    as_of: Date
    kind: Label | None = None
    source: Text
    usd_per_hour: dict[Label, dict[Label, Price]]

    def problems(self) -> Iterator[Problem]:
        if "; " in self.source:
            yield ("source",), "source has a semicolon, which in a row's source begins that of another price"


class RegionFile(Entry):
    id_field: ClassVar[str] = "provider"
    provider: Id
    regions: Many[Region]
    prices: Many[RegionPrices] = ()

    def problems(self) -> Iterator[Problem]:
        yield from self.twice("regions", "id", "region {}")
        listed = {region.id for region in self.regions}
        priced: set[tuple[str, str, str]] = set()
        for i, block in enumerate(self.prices):
            for kind, by_region in block.usd_per_hour.items():
                for region in by_region:
                    loc, key = ("prices", i, "usd_per_hour", kind, region), (block.purchase, kind, region)
                    if region not in listed:
                        yield loc, f"{region} is none of the file's regions"
                    if key in priced:
                        yield loc, f"the {block.purchase} price of {kind} in {region} is given twice. Keep one"
                    priced.add(key)


class Regions:
    """The regions of all providers by the names that a question may use, and the rows at the prices there."""

    def __init__(self, rows: Sequence[Instance], files: Iterable[RegionFile]) -> None:
        self.rows = rows
        self._listed: dict[str, dict[str, Region]] = defaultdict(dict)
        self._prices: dict[str, dict[str, dict[str, tuple[InstancePrice, str]]]] = defaultdict(dict)
        for file in files:  # a later folder's prices replace an earlier one's
            self._listed[file.provider] |= {region.id.lower(): region for region in file.regions}
            for block in file.prices:
                for kind, by_region in block.usd_per_hour.items():
                    of_type = self._prices[f"{file.provider}/{kind}".lower()]
                    for region, usd in by_region.items():
                        price = InstancePrice(
                            purchase=block.purchase, usd_per_hour=usd, as_of=block.as_of, kind=block.kind
                        )
                        of_type.setdefault(region, {})[block.purchase] = (price, block.source)
        self._of_text: dict[str, tuple[Instance, ...]] = {}

    @cached_property
    def areas(self) -> tuple[str, ...]:
        """Every area that a question may name, in order."""
        listed = (region for regions in self._listed.values() for region in regions.values())
        return tuple(sorted({area for region in listed for area in region.areas}))

    @cached_property
    def by_provider(self) -> dict[str, dict[str, set[str]]]:
        """The types with a price, by provider and region; a region may have none."""
        types: dict[str, dict[str, set[str]]] = {
            provider: {region.id: set() for region in regions.values()} for provider, regions in self._listed.items()
        }
        for row in self.rows:
            for region in self.of_row(row):
                types.setdefault(row.provider, {}).setdefault(region, set()).add(row.type)
        return types

    def listed(self, provider: str, region: str) -> Region | None:
        """The entry of a region; None where only a row names it."""
        return self._listed[provider].get(region.lower())

    def of_row(self, row: Instance) -> dict[str, dict[str, tuple[InstancePrice, str]]]:
        """The row's prices and their sources by region and purchase class, its own region first."""
        own = {price.purchase: (price, "") for price in row.prices}
        of_type = self._prices.get(row.id.lower(), {})
        there = {**of_type.get(row.region, {}), **own}  # a row laid over the catalogs may have another region
        return {**({row.region: there} if there else {}), **{k: v for k, v in of_type.items() if k != row.region}}

    def rows_in(self, text: str) -> tuple[Instance, ...]:
        """The rows sold in the regions that `text` means (an area, a country, a city, a region's name or a part of
        one): one per type, with each purchase class at the price of the cheapest of these regions."""
        plain = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
        asked = " ".join(plain.lower().split())
        if asked not in self._of_text:
            names = {name for regions in self.by_provider.values() for name in regions}
            exact = {name for name in names if name.lower() in (asked, asked.replace(" ", ""))}
            placed = (self._placed(row, self._in_regions(row, asked, exact)) for row in self.rows)
            self._of_text[asked] = tuple(row for row in placed if row is not None)
        return self._of_text[asked]

    def placed_without(self, row: PlacedInstance, dropped: Collection[tuple[str, str]]) -> Instance:
        """A row of `rows_in` without its prices of some (purchase class, region) pairs: each class is at the price of
        the cheapest remaining region."""
        own = next(instance for instance in self.rows if instance.id == row.id)
        regions = list(dict.fromkeys(region for by_region in row.every.values() for region in by_region))
        placed = self._placed(own, regions, dropped)
        return placed or row.model_copy(update={"prices": (), "every": {}})

    def _in_regions(self, row: Instance, asked: str, exact: set[str]) -> list[str]:
        regions = [row.region, *(name for name in self._prices.get(row.id.lower(), ()) if name != row.region)]
        if asked in self.areas:
            return [name for name in regions if asked in self.areas_of(row.provider, name)]
        if exact:
            return [name for name in regions if name in exact]
        return [name for name in regions if _is_part(asked, name) or asked in self._places_of(row.provider, name)]

    def areas_of(self, provider: str, region: str) -> Collection[str]:
        """A region's areas. For a region that no file lists, such as `eu/us` or `Frankfurt, Germany`, those of the
        words or the country in its name; for `all commercial` every area but the government's."""
        if listed := self.listed(provider, region):
            return listed.areas
        words = set(re.findall("[a-z]+", region.lower()))
        if words >= EVERYWHERE:
            return {area for area in self.areas if GOVERNMENT not in area}
        all_regions = [place for regions in self._listed.values() for place in regions.values()]
        by_word = [[{*place.areas} for place in all_regions if word in place.areas] for word in words]
        by_country = {
            place.country: {*place.areas} for place in reversed(all_regions) if place.country.lower() in region.lower()
        }
        return set().union(*(set.intersection(*areas) for areas in by_word if areas), *by_country.values())

    @cached_property
    def cities(self) -> tuple[str, ...]:
        """Every city of a region, in order."""
        listed = (region for regions in self._listed.values() for region in regions.values())
        return tuple(sorted({region.city for region in listed if region.city}))

    def _places_of(self, provider: str, region: str) -> tuple[str, ...]:
        """A region's country and city in lower case, as far as they are listed."""
        listed = self.listed(provider, region)
        return tuple(place.lower() for place in (listed.country, listed.city) if place) if listed else ()

    def _placed(
        self, row: Instance, regions: Sequence[str], dropped: Collection[tuple[str, str]] = ()
    ) -> Instance | None:
        """`row` at the cheapest prices of these regions, without the dropped (purchase class, region) pairs; None where
        it is sold in none of them."""
        if not regions:
            return None
        by_region_and_class = self.of_row(row)
        offers = [
            (region, *offer)
            for region in regions
            for offer in by_region_and_class.get(region, {}).values()
            if (offer[0].purchase, region) not in dropped
        ]
        best: dict[str, tuple[str, InstancePrice, str]] = {}
        every: dict[str, dict[str, InstancePrice]] = defaultdict(dict)
        for offer in sorted(offers, key=lambda offer: offer[1].usd_per_hour):
            best.setdefault(offer[1].purchase, offer)
            every[offer[1].purchase][offer[0]] = offer[1]
        in_order = [best[purchase] for purchase in PURCHASES if purchase in best]
        if not in_order:
            return row if row.region in regions and not dropped else None
        if all(region == row.region for by_region in every.values() for region in by_region):
            return row
        places = {price.purchase: region for region, price, _ in in_order}
        return PlacedInstance.model_construct(
            **{
                **dict(row),
                "prices": tuple(price for _, price, _ in in_order),
                "region": next(iter(places.values())),
                "regions": places,
                "every": dict(every),
                "source": _source_of(row, {price.purchase: source for _, price, source in in_order}),
            }
        )


def _is_part(asked: str, region: str) -> bool:
    """True if a text is part of a region's name; up to three letters must be a whole word: `de` is not part of
    swedencentral, nor `es` of us-west-2."""
    low = region.lower()
    return asked in (re.findall("[a-z]+", low) if len(asked) <= SHORT else low)


def _source_of(row: Instance, sources: dict[str, str]) -> str:
    """The sources of a row's prices as one text, in the format of a row's `source`: first that of the on-demand price,
    then the others with their purchase class, last the row's own, without its day, which is of no price here."""
    first = sources.get(ON_DEMAND, "")
    own, _, rest = row.source.partition("; ")
    others = {f"{name.split('-')[0]}: {source}": None for name, source in sources.items() if source}
    others.pop(f"on: {first}", None)
    of_row = [f"the row: {_DAY.sub('', own)}"] if first else []
    return "; ".join([first or own, *others, *of_row, *((rest,) if rest else ())])


_DAY = re.compile(r" \(\d{4}-\d{2}-\d{2}\)")
