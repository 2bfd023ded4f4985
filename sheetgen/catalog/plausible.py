"""Implausible prices: far from their earlier value, or from the prices of all providers for that GPU.

The reference is the first catalog folder, the shipped one; its own prices are each compared with those of all its other
rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from math import inf

from sheetgen.catalog.hardware import Instance
from sheetgen.catalog.load import Catalog
from sheetgen.units import ON_DEMAND, rate_text


@lru_cache(maxsize=2)
def plausible_of(catalog: Catalog) -> Plausible:
    """The price ranges of these catalogs."""
    return Plausible(catalog)


class Plausible:
    """The prices of GPU hours in the first catalog folder, by which other prices are judged.

    far: the largest plausible factor between a price and the price before it; beyond: the same for the lowest and the
    highest price of all providers.
    """

    def __init__(self, catalog: Catalog) -> None:
        from statistics import median  # takes a while to load

        from sheetgen.catalog import guidance

        first = catalog if len(catalog.folders) == 1 else Catalog(base=catalog.folders[0].path)
        judgements = guidance.assumptions(catalog)
        self.far = guidance.number(judgements, "large_price_change_factor")
        self.beyond = guidance.number(judgements, "plausible_price_factor")
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
        self._share = {purchase: median(of_purchase) for purchase, of_purchase in shares.items()}

    def taken(self, gpu: str, purchase: str, but: str = "") -> tuple[float, float] | None:
        """The lowest and highest USD per GPU hour of all providers, `but` for one row's price in that class; None for a
        GPU without a price.

        Few GPUs have prices in every class, so the lowest also counts on-demand prices, times the class's usual share.
        """
        prices = {
            of_class: others
            for of_class, rows in self._per_gpu.get(gpu, {}).items()
            if (others := [usd for row, usd in rows if row != but or of_class != purchase])
        }
        on_demand = [price * self._share.get(purchase, 1) for price in prices.get(ON_DEMAND, ())]
        low = [*prices.get(purchase, ()), *on_demand]
        return (min(low), max(max(usd_per_gpu) for usd_per_gpu in prices.values())) if low else None

    def listed(self, instance: str, purchase: str) -> float | None:
        """The first folder's price in USD per hour; None where it has none."""
        return self._listed.get((instance, purchase))

    def far_from(self, usd: float, before: float) -> str:
        """A phrase on the change from the price `before`, if it is larger than `far`; else ""."""
        factor = round(max(usd / before, before / usd), 9) if usd else inf  # 0.3 / 0.1 is a bit below 3
        if factor <= self.far:
            return ""
        return f"{rate_text(factor) if usd else 'any'} times {'more' if usd > before else 'less'} than {before:,.6g}"

    def doubt_in(self, region: str, instance: str, gpu: str, gpu_count: float, purchase: str, usd: float) -> str:
        """The reason why a regional price is implausible, compared with the first folder's price of the instance in any
        region, and with all others; else ""."""
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
        """The reason why a price in USD per hour of an instance is implausible; else "".

        It is compared with the price `before` (which the phrase `when` describes) and with all others `but` one row's.
        """
        reasons = [f"{why} {when}"] if before and (why := self.far_from(usd, before)) else []
        per_gpu, taken = usd / gpu_count, self.taken(gpu, purchase, but)
        if taken and not taken[0] / self.beyond <= per_gpu <= taken[1] * self.beyond:
            reasons.append(f"{per_gpu:,.4g} a GPU-hour, where providers take {taken[0]:,.4g} to {taken[1]:,.4g}")
        return "; ".join(reasons)

    def doubts_of(self, row: Instance, but: str = "") -> Iterator[tuple[str, str]]:
        """The purchase classes of a row's implausible prices, each with a sentence; compared with all others `but` one
        row's."""
        for price in row.prices:
            before = self.listed(row.id, price.purchase)
            if why := self.doubt(row.gpu, row.gpu_count, price.purchase, price.usd_per_hour, before, but):
                yield price.purchase, f"{row.id} {price.purchase} is {price.usd_per_hour:,.6g} $/h, {why}"
