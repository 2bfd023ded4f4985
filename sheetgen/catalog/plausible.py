"""Implausible prices: far from what they were, or from what any provider takes for that GPU.

The ranges are those of the first catalog folder, the shipped one: a folder laid over it is judged by them, and each of
its own prices by those of all other rows.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from math import inf

from sheetgen.catalog import guidance
from sheetgen.catalog.hardware import Instance
from sheetgen.catalog.load import Catalog
from sheetgen.units import ON_DEMAND, rate_text


@lru_cache(maxsize=2)
def plausible_of(catalog: Catalog) -> Plausible:
    """What to hold prices against, beside these catalogs."""
    return Plausible(catalog)


class Plausible:
    """What hours of GPUs cost, to hold a price against.

    far: by how much a price may differ from what it was; beyond: by how much from what providers take.
    """

    def __init__(self, catalog: Catalog) -> None:
        first = catalog if len(catalog.folders) == 1 else Catalog(base=catalog.folders[0].path)
        known = guidance.assumptions(catalog)
        self.far = guidance.number(known, "large_price_change_factor")
        self.beyond = guidance.number(known, "plausible_price_factor")
        self._listed = {
            (row.id, price.purchase): price.usd_per_hour for row in first.instances() for price in row.prices
        }
        self._regions = {row.id: row.region for row in first.instances()}
        self._per_gpu: dict[str, dict[str, list[tuple[str, float]]]] = defaultdict(lambda: defaultdict(list))
        shares: dict[str, list[float]] = defaultdict(list)
        for row in first.instances():
            on_demand = row.price(ON_DEMAND)
            for price in row.prices:
                self._per_gpu[row.gpu][price.purchase].append((row.id, price.usd_per_hour / row.gpu_count))
                if on_demand:
                    shares[price.purchase].append(price.usd_per_hour / on_demand.usd_per_hour)
        self._share = {purchase: statistics.median(found) for purchase, found in shares.items()}

    def taken(self, gpu: str, purchase: str, but: str = "") -> tuple[float, float] | None:
        """The least and the most that providers take for an hour of a GPU, `but` for one row's price in that class;
        None of a GPU without a price.

        Few GPUs have a price in each class: the least is also that on demand, times the class's usual share of it.
        """
        prices = {
            of_class: others
            for of_class, rows in self._per_gpu.get(gpu, {}).items()
            if (others := [usd for row, usd in rows if row != but or of_class != purchase])
        }
        on_demand = [price * self._share.get(purchase, 1) for price in prices.get(ON_DEMAND, ())]
        low = [*prices.get(purchase, ()), *on_demand]
        return (min(low), max(max(found) for found in prices.values())) if low else None

    def listed(self, instance: str, purchase: str) -> float | None:
        """The price that the first folder has."""
        return self._listed.get((instance, purchase))

    def far_from(self, usd: float, before: float) -> str:
        """How much more or less a price is than it was, where that is more than it may be; else nothing."""
        factor = round(max(usd / before, before / usd), 9) if usd else inf  # 0.3 / 0.1 is a bit below 3
        if factor <= self.far:
            return ""
        return f"{rate_text(factor) if usd else 'any'} times {'more' if usd > before else 'less'} than {before:,.6g}"

    def doubt_in(self, region: str, instance: str, gpu: str, gpu_count: float, purchase: str, usd: float) -> str:
        """Why a price of a region is implausible beside what the first folder has of that instance, in whatever
        region, and beside all others; else nothing."""
        own = self._regions.get(instance, region)
        when = "before" if own == region else f"in {own}"
        return self.doubt(gpu, gpu_count, purchase, usd, self.listed(instance, purchase), when=when)

    def doubt(
        self,
        gpu: str,
        gpu_count: float,
        purchase: str,
        usd: float,
        before: float | None,
        but: str = "",
        when: str = "before",
    ) -> str:
        """Why a price for an hour of an instance is implausible, beside the one that was `before` (or `when` this says)
        and all others `but` one row's; else nothing."""
        said = [f"{why} {when}"] if before and (why := self.far_from(usd, before)) else []
        each, taken = usd / gpu_count, self.taken(gpu, purchase, but)
        if taken and not taken[0] / self.beyond <= each <= taken[1] * self.beyond:
            said.append(f"{each:,.4g} a GPU-hour, where providers take {taken[0]:,.4g} to {taken[1]:,.4g}")
        return "; ".join(said)

    def doubts_of(self, row: Instance, but: str = "") -> Iterator[tuple[str, str]]:
        """The classes in which a row has a price that is implausible beside all others `but` one row's, each with a
        sentence."""
        for price in row.prices:
            before = self.listed(row.id, price.purchase)
            if why := self.doubt(row.gpu, row.gpu_count, price.purchase, price.usd_per_hour, before, but):
                yield price.purchase, f"{row.id} {price.purchase} is {price.usd_per_hour:,.6g} $/h, {why}"
