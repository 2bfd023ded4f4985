"""The instances that may be rented, why others may not, and the price and power of a sheet's GPUs if bought instead."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from sheetgen.catalog.engines import Engine
from sheetgen.catalog.hardware import Gpu, Instance, InstancePrice, PlacedInstance, Term
from sheetgen.catalog.hardware import OwnedGpu as KnownGpu
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.plausible import plausible_of
from sheetgen.errors import Problems, ScenarioError, did_you_mean, shown
from sheetgen.question import parse
from sheetgen.question.inputs import BY_NAME, OF_TERMS, Input
from sheetgen.question.parse import Options
from sheetgen.sizing.parallelism import linked_gpus
from sheetgen.units import GIB, ON_DEMAND, PURCHASES

DEFAULT_PROVIDERS = ("aws", "azure", "gcp")
DEFAULT_VENDORS = ("nvidia",)
_VENDORS = {"nvidia": "NVIDIA", "amd": "AMD", "aws": "AWS"}  # as they are written; others with one capital letter
ALL = "all"
MOST_REGIONS = 12  # that an error lists beside the areas
LEAST_MEMORY_BYTES = 22 * GIB
LEAST_LINK_BYTES_PER_SECOND = 200e9  # of GPUs whose data-parallel ranks share experts
MAX_CANDIDATES = 120  # instances; more would make the workbook slow to open


@dataclass(frozen=True)
class ClassPrice:
    """The price of an hour of an instance in one purchase class, the day it was read, and its terms."""

    purchase: str
    usd_per_hour: float
    price_as_of: str | None
    price_kind: str = ""
    region: str = ""  # of this price; the candidate's where nobody says


@dataclass(frozen=True)
class Candidate:
    """An instance that may be rented, at the price of one purchase class; `prices` has the other classes too.

    Prices are as listed, or typed; a contract's discount comes off in `recommend`.
    """

    instance: str
    provider: str
    gpu: Gpu
    gpu_count: int
    purchase: str
    usd_per_hour: float
    price_as_of: str | None  # None where nobody says when the price was read
    region: str
    source: str
    price_kind: str = ""  # the terms of a reserved price, as the catalog names them
    assumed_shape: bool = False
    network_gbps: float = 0  # 0 where nobody states it
    nvlink_domain_gpus: int = 0  # of a rack that joins machines by NVLink, this one among them; 0: its own alone
    tries_ranks: bool = True  # data-parallel layouts too: not where the GPU's links are not made for them
    prices: tuple[ClassPrice, ...] = ()
    by_region: tuple[tuple[str, float], ...] = ()  # $ an hour in each region of the area asked for
    passed_over: tuple[str, ...] = ()  # classes in which another with the same GPUs of its provider is the candidate
    brought: bool = False  # whether its row is of the user's own catalogs

    @property
    def shape(self) -> tuple[str, str, int]:
        """Provider, GPU and count: the cheapest instance of each shape is a candidate."""
        return self.provider, self.gpu.id, self.gpu_count

    @cached_property
    def linked_gpus(self) -> int:
        """GPUs that a replica without stages may have: the machine's, or those of its rack."""
        return int(linked_gpus(self.gpu_count, self.nvlink_domain_gpus))

    def in_class(self, purchase: str) -> Candidate | None:
        """The same candidate at its price in that purchase class; None where it has none."""
        price = self.class_price(purchase)
        if price is None:
            return None
        return replace(
            self,
            purchase=purchase,
            usd_per_hour=price.usd_per_hour,
            price_as_of=price.price_as_of,
            price_kind=price.price_kind,
            region=price.region or self.region,
        )

    def class_price(self, purchase: str) -> ClassPrice | None:
        """The price in that purchase class; None where there is none: a missing price is never 0."""
        if purchase == self.purchase and self.usd_per_hour:
            return ClassPrice(purchase, self.usd_per_hour, self.price_as_of, self.price_kind, self.region)
        return next((p for p in self.prices if p.purchase == purchase), None)

    def usd_in(self, region: str) -> float:
        """$ an hour in that region of the area asked for; NaN where the candidate has no price there, or where its
        price was typed, as that is of one region."""
        usd = dict(self.by_region)
        if region == self.region or usd.get(self.region) != self.usd_per_hour:
            return self.usd_per_hour if region == self.region else math.nan
        return usd.get(region, math.nan)

    def in_region(self, region: str) -> Candidate:
        """The same candidate at its price in that region."""
        return replace(self, region=region, usd_per_hour=self.usd_in(region))


@dataclass(frozen=True)
class Filters:
    """Filters that narrow or widen the candidates; empty means the default."""

    providers: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    region: str = ""
    purchase: str = ON_DEMAND


class Selected(NamedTuple):
    """Candidates in the class asked for; the number of rows left out, by reason; and, by other class, its rows that are
    no candidates in this one. `rows`: candidates of all classes, in catalog order, at this class's prices. `doubted`:
    instances that an implausible price keeps out of this class, each with the reason. `n_there`: the last so many of
    the candidates are some as the user has them."""

    candidates: tuple[Candidate, ...]
    left_out: tuple[tuple[str, int], ...]
    others: Mapping[str, tuple[Candidate, ...]]
    rows: tuple[Candidate, ...]
    doubted: tuple[tuple[str, str], ...]
    n_there: int = 0


def vendor_name(vendor: str) -> str:
    """A vendor's name as it is written, from its id: NVIDIA."""
    return _VENDORS.get(vendor, vendor.capitalize())


def select(catalog: Catalog, engine: Engine, filters: Filters, there: Sequence[Candidate] = ()) -> Selected:
    """The candidates that `filters` allow, in catalog order: by default whole on-demand instances of AWS, Azure and GCP
    with NVIDIA data-centre GPUs of 22 GiB or more, and those that the user's own catalogs bring, of any provider and
    priced by the GPU too; per provider, GPU and count the cheapest. Behind them those of `there`, which the user has,
    whatever their class, and others as cheap, unless they are named otherwise.

    Raises ScenarioError where a named provider, vendor, GPU or instance does not exist, or nothing is left.
    """
    runs_on = _RunsOn.of(engine)
    taken = [*filter(_Asked.of(catalog, runs_on, filters).takes, there)] if there else []
    selected = _selected(catalog, runs_on, filters, MAX_CANDIDATES, not taken)
    selected_keys = {(candidate.instance, candidate.purchase) for candidate in selected.candidates}
    more = [candidate for candidate in taken if (candidate.instance, candidate.purchase) not in selected_keys]
    return selected._replace(candidates=(*selected.candidates, *more), n_there=len(more))


@lru_cache(16)  # the services of a plan ask for the same machines
def _selected(catalog: Catalog, engine: _RunsOn, filters: Filters, most: int, needs_any: bool) -> Selected:
    asked = _Asked.of(catalog, engine, filters)
    kept, left_out = asked.select(asked.is_by_provider)
    if needs_any and not kept:
        raise ScenarioError(asked.why_nothing(left_out))
    kept = _as_many_as_a_workbook_carries(kept, left_out, most)
    doubts = ((row.id, asked.doubted.get((row.id, filters.purchase))) for row, _ in asked.takes_part())
    return Selected(
        tuple(kept),
        tuple(left_out.items()),
        asked.of_other_classes(kept),
        tuple(asked.of_all_classes(kept, most)),
        tuple((instance, why) for instance, why in doubts if why),
    )


def machine_at(catalog: Catalog, row: Instance, price: InstancePrice) -> Candidate:
    """A whole instance as a candidate at a price, be it another than those that are listed."""
    asked = _Asked.of(catalog, _RunsOn("", ()), Filters())
    (candidate,) = asked.offers(row, catalog.gpu(row.gpu), price)
    own = candidate.class_price(price.purchase)
    others = (listed for listed in candidate.prices if listed.purchase != price.purchase)
    return replace(candidate, prices=(*others, own) if own else candidate.prices)


def is_sold(catalog: Catalog, engine: Engine, filters: Filters) -> bool:
    """True where an instance that these filters allow is sold in their purchase class."""
    return any(
        _offered(row, filters.purchase) for row, _ in _Asked.of(catalog, _RunsOn.of(engine), filters).takes_part()
    )


class OfMarket:
    """All instances that may be rented in a region, however many, of each provider apart: a rule that holds for all
    providers holds for some of them."""

    def __init__(self, catalog: Catalog, engine: Engine, filters: Filters) -> None:
        self._asked = _Asked.of(catalog, _RunsOn.of(engine), filters)

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Those in the class asked for."""
        return tuple(self._asked.select(self._asked.is_by_provider)[0])

    @property
    def others(self) -> Mapping[str, tuple[Candidate, ...]]:
        """Those of other classes that are no candidates in this one."""
        return self._asked.of_other_classes(self.candidates)

    @property
    def whole(self) -> tuple[Candidate, ...]:
        """Those with the GPUs asked for that an answer may name at providers that were not asked for."""
        return () if self._asked.filters.instances else tuple(self._asked.select(self._asked.is_named)[0])

    @property
    def of_other_vendors(self) -> tuple[Candidate, ...]:
        """Those with GPUs of other vendors."""
        return tuple(self._asked.of_other_vendors())

    @property
    def of_other_gpus(self) -> tuple[Candidate, ...]:
        """Those with other GPUs, where some were named."""
        return tuple(self._asked.of_other_gpus())


def in_class(candidates: Sequence[Candidate], others: Sequence[Candidate], purchase: str) -> tuple[Candidate, ...]:
    """The candidates of another purchase class: those of this one that have a price in it, and `others`; per provider,
    GPU and count the cheapest."""
    in_this_class = [priced for candidate in candidates if (priced := candidate.in_class(purchase))]
    return tuple(_cheapest([*in_this_class, *others], Counter()))


BEYOND = ("vendor", "cloud", "provider", "gpu")  # kinds of hardware that nobody asked for, group by group
UNBOUND = "unbound"  # the kind of what is sold on demand by others, where the class asked for binds


def not_asked(catalog: Catalog, engine: Engine, filters: Filters) -> tuple[tuple[Candidate, ...], ...]:
    """Instances that took no part and that one more option would let take part, by the kinds of BEYOND: GPUs of other
    vendors at the same providers, instances with the same GPUs of the clouds that take part by default and of other
    providers, and other GPUs where some were named. Of providers that were not named only whole instances at list
    prices, in a region those priced by the GPU too."""
    return _not_asked(catalog, _RunsOn.of(engine), filters)


def not_bound(catalog: Catalog, engine: Engine, filters: Filters) -> tuple[Candidate, ...]:
    """Instances on demand of providers that took no part, where the class asked for binds: nothing else does."""
    if not PURCHASES[filters.purchase].binds:
        return ()
    _, of_clouds, of_providers, _ = not_asked(catalog, engine, replace(filters, purchase=ON_DEMAND))
    return (*of_clouds, *of_providers)


@lru_cache(16)
def _not_asked(catalog: Catalog, engine: _RunsOn, filters: Filters) -> tuple[tuple[Candidate, ...], ...]:
    asked = _Asked.of(catalog, engine, filters)
    by_cloud, by_provider = list[Candidate](), list[Candidate]()
    if not filters.instances:
        elsewhere, _ = asked.select(lambda row: not asked.is_by_provider(row) and asked.is_named(row))
        for candidate in elsewhere:
            (by_cloud if candidate.provider in DEFAULT_PROVIDERS else by_provider).append(candidate)
    return tuple(asked.of_other_vendors()), tuple(by_cloud), tuple(by_provider), tuple(asked.of_other_gpus())


class _RunsOn(NamedTuple):
    """An engine, as far as candidates hang on it."""

    name: str
    vendors: tuple[str, ...]

    @classmethod
    def of(cls, engine: Engine) -> _RunsOn:
        return cls(engine.name, tuple(engine.vendors))


@dataclass(frozen=True)
class _Asked:
    """Filters with their names resolved; `explicit` where GPUs or instances were named: those then take part as they
    are, whoever made them."""

    catalog: Catalog
    engine: _RunsOn
    filters: Filters
    providers: tuple[str, ...]
    vendors: tuple[str, ...]
    gpus: frozenset[str]
    instances: Mapping[str, frozenset[int | None]]  # by row the numbers of GPUs that were named with it, or None
    rows: tuple[Instance, ...]  # of the region asked for, or each in its own
    brought: frozenset[str]  # rows of the user's own catalogs, which take part where no provider is named
    doubted: Mapping[tuple[str, str], str]  # by instance and class an implausible price that takes no part, and why

    @classmethod
    def of(cls, catalog: Catalog, engine: _RunsOn, filters: Filters) -> _Asked:
        """Raises ScenarioError for a name that is in no catalog."""
        every = tuple(dict.fromkeys(row.provider for row in catalog.instances()))
        vendors = tuple(dict.fromkeys(gpu.vendor for gpu in catalog.gpus()))
        asked = [catalog.instance_and_gpus(name) for name in filters.instances]
        named_instances = {row.id: frozenset(n for other, n in asked if other.id == row.id) for row, _ in asked}
        rows, doubted = _plausible_rows(catalog, filters.region, catalog.brought.union(named_instances))
        named = every if filters.instances else _named(filters.providers, every, "provider") or DEFAULT_PROVIDERS
        return cls(
            catalog,
            engine,
            filters,
            named,
            _named(filters.vendors, vendors, "vendor") or DEFAULT_VENDORS,
            frozenset(catalog.gpu(name).id for name in filters.gpus),
            named_instances,
            rows,
            frozenset() if filters.providers else catalog.brought,
            doubted,
        )

    @property
    def explicit(self) -> bool:
        return bool(self.gpus or self.instances)

    def select(self, takes: Callable[[Instance], bool]) -> tuple[list[Candidate], Counter[str]]:
        """Candidates among the rows that `takes` takes, in catalog order, and by reason how many were left out."""
        left_out: Counter[str] = Counter()
        kept: list[Candidate] = []
        for row, gpu, reason in self._rows(takes):
            price = _offered(row, self.filters.purchase)
            if reason is None and price is not None:
                kept += self.offers(row, gpu, price)
            else:
                left_out[reason or self._unpriced(row)] += 1
        return (kept if self.instances else _cheapest(kept, left_out)), left_out

    def _unpriced(self, row: Instance) -> str:
        """The reason why a row has no price in the class asked for: none is listed, it is listed but not sold, or it is
        implausible."""
        purchase = self.filters.purchase
        if (row.id, purchase) in self.doubted:
            return "at an implausible price"
        not_sold = row.price(purchase) is not None or (row.sold_as and purchase not in row.sold_as)
        return f"not sold {purchase}, whatever price is listed" if not_sold else f"without a price for {purchase}"

    def of_all_classes(self, kept: Sequence[Candidate], most: int) -> Iterator[Candidate]:
        """`kept`, the candidates of this class, and those of the other classes, up to as many as a workbook holds."""
        in_use = self.filters.purchase
        named = {in_use: {candidate.instance for candidate in kept}}  # the candidates' names by class
        for purchase in PURCHASES:
            if purchase != in_use:
                other = replace(self, filters=replace(self.filters, purchase=purchase))
                named[purchase] = {candidate.instance for candidate in other.select(self.is_by_provider)[0]}
        kept_by_name, room = {candidate.instance: candidate for candidate in kept}, most - len(kept)
        candidates = []
        for row, gpu in self.takes_part():
            own = _offered(row, in_use)
            for offer in self.offers(row, gpu, own or row.offered[0]) if row.offered else ():
                is_candidate = any(offer.instance in names for names in named.values())
                if offer.instance not in kept_by_name and (room == 0 or not is_candidate):
                    continue
                room -= offer.instance not in kept_by_name
                blank = replace(offer, purchase=in_use, usd_per_hour=0, price_as_of=None, price_kind="")
                candidates.append(kept_by_name.get(offer.instance, offer if own else blank))
        taken = {(c.shape, p) for c in candidates for p, names in named.items() if c.instance in names}
        for candidate in candidates:
            name, shape = candidate.instance, candidate.shape
            passed = (p for p, names in named.items() if name not in names and (shape, p) in taken)
            yield replace(candidate, passed_over=() if self.instances else tuple(passed))

    def of_other_classes(self, kept: Sequence[Candidate]) -> dict[str, tuple[Candidate, ...]]:
        """By purchase class, the candidates at its price that are not among those kept in the class asked for."""
        known_here = {candidate.instance for candidate in kept}
        others: dict[str, list[Candidate]] = {}
        for row, gpu in self.takes_part():
            for price in row.offered:
                if price.purchase != self.filters.purchase:
                    offers = (offer for offer in self.offers(row, gpu, price) if offer.instance not in known_here)
                    others.setdefault(price.purchase, []).extend(offers)
        return {purchase: tuple(candidates) for purchase, candidates in others.items()}

    def of_other_vendors(self) -> list[Candidate]:
        """Candidates of the same providers with GPUs of vendors that were not asked for."""
        every = dict.fromkeys(gpu.vendor for gpu in self.catalog.gpus())
        wider = self._of_any_gpu
        return self._not_named(replace(wider, vendors=tuple(vendor for vendor in every if vendor not in self.vendors)))

    def of_other_gpus(self) -> list[Candidate]:
        """Candidates of the same providers with GPUs that were not named, where some were."""
        return self._not_named(self._of_any_gpu) if self.explicit else []

    @property
    def _of_any_gpu(self) -> _Asked:
        """The same filters with no GPU and no instance named."""
        return _Asked.of(self.catalog, self.engine, replace(self.filters, gpus=(), instances=()))

    def _not_named(self, wider: _Asked) -> list[Candidate]:
        """The candidates of wider filters whose GPUs were not named."""
        named = {row.gpu for row, _, _ in self._rows(self.is_by_provider)} if self.explicit else set()
        return wider.select(lambda row: wider.is_by_provider(row) and row.gpu not in named)[0]

    def is_by_provider(self, row: Instance) -> bool:
        return row.provider in self.providers or row.id in self.brought

    def is_named(self, row: Instance) -> bool:
        """True for a row that an answer may name where nobody asked for its provider: at a list price, and a whole
        instance; in a region, where few others are known, one that is priced by the GPU too."""
        return row.offer == "list" and (row.is_whole or bool(self.filters.region))

    def takes_part(self) -> list[tuple[Instance, Gpu]]:
        """Rows of the region asked for that are candidates in the classes in which they have a price."""
        return [(row, gpu) for row, gpu, reason in self._rows(self.is_by_provider) if reason is None]

    def _rows(self, takes: Callable[[Instance], bool]) -> Iterator[tuple[Instance, Gpu, str | None]]:
        """Rows of the names that were asked for, with their GPU and the reason why each is no candidate whatever its
        price."""
        for row in self.rows:
            if not takes(row) or (self.instances and row.id not in self.instances):
                continue
            gpu = self.catalog.gpu(row.gpu)
            if not self.gpus or gpu.id in self.gpus:
                yield row, gpu, self._refusal(row, gpu)

    def _refusal(self, row: Instance, gpu: Gpu) -> str | None:
        """The reason why a row is no candidate, whatever its region and price."""
        if reason := self._refusal_of_gpu(gpu):
            return reason
        if not self.explicit:
            if gpu.vendor not in self.vendors:
                return f"without a GPU of {' or '.join(map(vendor_name, self.vendors))}"
            if not gpu.data_center:
                return "without a data-centre GPU"
            if gpu.memory.engine_bytes < LEAST_MEMORY_BYTES:
                return "with less than 22 GiB a GPU"
        if row.is_whole and (row.gpu_count < 1 or row.gpu_count != int(row.gpu_count)):
            return "with a fraction of a GPU"
        is_usual = row.provider in self.providers and row.id not in self.brought
        if not row.is_whole and is_usual and not (self.explicit or self.filters.providers):
            return "priced by the GPU"
        if row.offer != "list" and not self.explicit:
            return "that are marketplaces or averages"
        return None

    def _refusal_of_gpu(self, gpu: Gpu) -> str | None:
        if gpu.memory.basis not in ("measured", "derived", "stated"):
            return "whose GPU memory is not known"
        return None if gpu.vendor in self.engine.vendors else f"that {self.engine.name} does not run on"

    def takes(self, candidate: Candidate) -> bool:
        """True for a machine that the user has and that no filter leaves out: what by default takes no part is no
        reason."""
        gpu, row_id = candidate.gpu, candidate.instance.removesuffix(f" x{candidate.gpu_count}")
        sizes = self.instances.get(candidate.instance) or self.instances.get(row_id, frozenset())
        of_vendor = self.explicit or not self.filters.vendors or gpu.vendor in self.vendors
        return (
            self._refusal_of_gpu(gpu) is None
            and (not self.instances or not sizes.isdisjoint((candidate.gpu_count, None)))
            and (not self.gpus or gpu.id in self.gpus)
            and (not self.filters.providers or candidate.provider in self.providers)
            and of_vendor
        )

    def offers(self, row: Instance, gpu: Gpu, price: InstancePrice) -> Iterator[Candidate]:
        """`row` as candidates at that price: the instance itself, or GPUs priced one by one in each size of a
        replica."""
        assumed = not row.is_whole
        named = self.instances.get(row.id, frozenset({None}))
        shapes = [size for size in gpu.assumed_shapes if not named.isdisjoint((size, None))]
        for shape in shapes if assumed else (int(row.gpu_count),):
            times = shape if assumed else 1
            yield Candidate(
                instance=f"{row.id} x{shape}" if assumed else row.id,
                provider=row.provider,
                gpu=gpu,
                gpu_count=shape,
                purchase=price.purchase,
                usd_per_hour=price.usd_per_hour * times,
                price_as_of=price.as_of,
                region=row.region_of(price.purchase),
                source=row.source,
                price_kind=price.kind or "",
                assumed_shape=assumed,
                network_gbps=row.network_gbps or 0,
                nvlink_domain_gpus=row.nvlink_domain_gpus or 0,
                tries_ranks=shares_experts(gpu),
                prices=tuple(
                    ClassPrice(p.purchase, p.usd_per_hour * times, p.as_of, p.kind or "", row.region_of(p.purchase))
                    for p in row.offered
                ),
                by_region=tuple(
                    (region, p.usd_per_hour * times) for region, p in row.prices_by_region(price.purchase).items()
                ),
                brought=row.id in self.catalog.brought,
            )

    def why_nothing(self, left_out: Counter[str]) -> str:
        """The sentence for no candidate left: the regions or the purchase classes that there are, or the reasons."""
        taking_part = self.takes_part()
        if not taking_part and (could := replace(self, rows=self.catalog.instances()).takes_part()):
            places = self.catalog.regions
            regions = sorted({region for row, _ in could for region in places.of_row(row)})
            is_area = self.filters.region.lower() in places.areas
            near = "" if is_area else did_you_mean(self.filters.region, [*places.areas, *places.cities, *regions])
            areas = "" if self.rows else f" Areas: {', '.join(places.areas)}."
            where = f"no instance is left in region {shown(self.filters.region)!r}"
            named = f" Regions: {', '.join(regions)}." if len(regions) <= MOST_REGIONS or not areas else ""
            return f"{where}.{named}{areas} Name one with --region.{near}"
        classes = [purchase for purchase in PURCHASES if any(_offered(row, purchase) for row, _ in taking_part)]
        if classes:
            where = f" in region {shown(self.filters.region)!r}" if self.filters.region else ""
            without = f"no instance is left{where} with a price for {self.filters.purchase}"
            return f"{without}. Classes with prices: {', '.join(classes)}. Name one with --purchase."
        reasons = "; ".join(f"{n} rows {why}" for why, n in left_out.items()) or "no row matches the filters"
        sellers = dict.fromkeys(row.provider for row, _, why in self._rows(lambda row: True) if why is None)
        if sellers and not left_out:
            rent_it = f"Name one that does with --providers: {', '.join(sellers)}"
            return f"no instance is left to choose from: no provider requested rents it. {rent_it}."
        options = "--providers, --vendors, --gpus, --instances, --region or --purchase"
        return f"no instance is left to choose from: {reasons}. Widen {options}."


def _named(names: tuple[str, ...], every: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """The names asked for, or all names for `all`. Raises ScenarioError for an unknown name."""
    low = tuple(dict.fromkeys(name.lower() for name in names))
    problems = [
        f"{kind} {shown(name)!r} is in no catalog. Known: {', '.join((ALL, *every))}.{did_you_mean(name, every)}"
        for name in low
        if name not in (ALL, *every)
    ]
    if problems:
        raise ScenarioError(*problems)
    return every if ALL in low else low


@lru_cache(maxsize=2)  # one question puts it for every purchase class and every wider filter
def _plausible_rows(
    catalog: Catalog, region: str, taken: frozenset[str]
) -> tuple[tuple[Instance, ...], Mapping[tuple[str, str], str]]:
    """The rows of a region, or each in its own, at their cheapest plausible prices; and by instance and class why the
    cheapest is none. taken: rows whose prices are taken as they are, as the user named or wrote them."""
    if not region:
        return catalog.instances(), {}
    rows = list[Instance]()
    doubted: dict[tuple[str, str], str] = {}
    for row in catalog.regions.rows_in(region):
        placed, doubts = (row, {}) if row.id in taken else _plausible_row(catalog, row)
        for (purchase, _), why in doubts.items():
            doubted.setdefault((row.id, purchase), why)
        rows.append(placed)
    return tuple(rows), doubted


def _plausible_row(catalog: Catalog, row: Instance) -> tuple[Instance, Mapping[tuple[str, str], str]]:
    """A row of a region at its cheapest plausible prices; and, by class and region, the reason why others are
    implausible."""
    if not isinstance(row, PlacedInstance):
        return row, {}
    plausible, doubts = plausible_of(catalog), dict[tuple[str, str], str]()
    for purchase, by_region in row.every.items():
        for name, price in by_region.items():
            of_price = name, row.id, row.gpu, row.gpu_count, purchase, price.usd_per_hour
            if why := plausible.doubt_in(*of_price):
                doubts[purchase, name] = f"${price.usd_per_hour:,.4f} an hour in {name}, {why}"
    return (catalog.regions.placed_without(row, doubts) if doubts else row), doubts


def price_in(catalog: Catalog, area: str, candidate: Candidate) -> ClassPrice | None:
    """The cheapest plausible price of a candidate in an area, in its own class; None where it is not sold there in that
    class."""
    shape = f" x{candidate.gpu_count}" if candidate.assumed_shape else ""
    name, times = candidate.instance.removesuffix(shape), candidate.gpu_count if shape else 1
    for row in catalog.regions.rows_in(area):
        if row.id == name:
            placed, _ = _plausible_row(catalog, row)
            if price := _offered(placed, candidate.purchase):
                usd, region = price.usd_per_hour * times, placed.region_of(price.purchase)
                return ClassPrice(price.purchase, usd, price.as_of, price.kind or "", region)
    return None


def _offered(row: Instance, purchase: str) -> InstancePrice | None:
    """The price in that purchase class; None where the row is not sold in it."""
    return next((price for price in row.offered if price.purchase == purchase), None)


def shares_experts(gpu: Gpu, typed_bytes_per_second: float = 0) -> bool:
    """True where a GPU's links are made for data-parallel ranks that share experts, by the catalog or as typed."""
    return max(gpu.interconnect_bytes_per_second or 0, typed_bytes_per_second) >= LEAST_LINK_BYTES_PER_SECOND


def _cheapest(kept: list[Candidate], left_out: Counter[str]) -> list[Candidate]:
    """The cheapest for each provider, GPU and count; the first one where prices are equal."""
    best: dict[tuple[str, str, int], Candidate] = {}
    for candidate in sorted(kept, key=lambda candidate: candidate.usd_per_hour):
        best.setdefault(candidate.shape, candidate)
    chosen = [candidate for candidate in kept if best[candidate.shape] is candidate]
    if len(chosen) < len(kept):
        left_out["more expensive than an equivalent of the same provider"] += len(kept) - len(chosen)
    return chosen


def _as_many_as_a_workbook_carries(kept: list[Candidate], left_out: Counter[str], most: int) -> list[Candidate]:
    """The first so many by their rank in price among those with the same GPUs and links, the user's own before
    all: the cheapest machine of every kind stays, so that the choice is the one among all."""
    if len(kept) <= most:
        return kept
    of_a_kind: dict[tuple[str, int, float, int], list[Candidate]] = {}
    for candidate in sorted(kept, key=lambda candidate: candidate.usd_per_hour):
        kind = candidate.gpu.id, candidate.gpu_count, candidate.network_gbps, candidate.nvlink_domain_gpus
        of_a_kind.setdefault(kind, []).append(candidate)
    ranks = {candidate.instance: rank for same in of_a_kind.values() for rank, candidate in enumerate(same)}
    by_rank = sorted(kept, key=lambda candidate: (not candidate.brought, ranks[candidate.instance]))
    carried = {candidate.instance for candidate in by_rank[: max(most, len(of_a_kind))]}
    left_out["more expensive than another provider's with the same GPUs"] += len(kept) - len(carried)
    return [candidate for candidate in kept if candidate.instance in carried]


YOUR_QUOTE = "your quote"


@dataclass(frozen=True)
class OwnedGpu:
    """The price and power of one GPU if it were owned, as far as they are known."""

    capex_usd: tuple[float, float, float] | None = None  # low, base, high
    capex_as_of: str | None = None
    capex_source: str = ""
    is_module_price: int = 0
    stated_kw_per_gpu: float | None = None
    is_it_power: int = 1
    rated_watts: float | None = None
    sold_together: int = 1  # the fewest that one can buy
    kw_source: str = "rated power of the GPU"
    confidence: str = ""


@dataclass(frozen=True)
class Owning:
    """The terms of owning by their names, as given or from the catalog, and the GPUs of the sheet.

    What the user gave of GPUs stands by their id, or by "all".
    """

    values: Mapping[str, float] = field(default_factory=dict)
    terms: Mapping[str, Term] = field(default_factory=dict)
    gpus: Mapping[str, OwnedGpu] = field(default_factory=dict)
    capex_usd_per_gpu: Mapping[str, float] = field(default_factory=dict)
    kw_per_gpu: Mapping[str, float] = field(default_factory=dict)


def owning_of(catalog: Catalog, options: Options, gpus: tuple[Gpu, ...]) -> Owning:
    """The terms of owning: the catalog's, with those that the user gives in their place. A quote is for a GPU as
    installed."""
    file = catalog.owning()
    terms = {term.id: term for term in file.terms}
    problems = Problems()
    attempt = problems.attempt
    values = {
        term.name: terms[term.name].value if options.get(term.name) is None else attempt(term.parse, options[term.name])
        for term in OF_TERMS
    }
    quotes, powers = (
        attempt(_per_gpu, BY_NAME[name], options.get(name), catalog) for name in ("capex_usd_per_gpu", "kw_per_gpu")
    )
    if problems:
        raise ScenarioError(*problems)
    listed = {gpu.gpu: gpu for gpu in file.gpus}
    owned = {
        gpu.id: _owned(gpu, listed.get(gpu.id), *(given.get(gpu.id, given.get(ALL)) for given in (quotes, powers)))
        for gpu in gpus
    }
    return Owning(values, terms, owned, quotes, powers)


def _per_gpu(entry: Input, value: object, catalog: Catalog) -> dict[str, float]:
    """Amounts by GPU id, from one amount for all GPUs or amounts by name: `h100=39375,b200=55000`."""
    if value is None:
        return {}
    name, kind = entry.name, entry.kind
    if "=" not in str(value):
        return {ALL: kind.parse(value, name)}
    amounts: dict[str, float] = {}
    for part in parse.words(str(value)):
        gpu, equals, figure = part.partition("=")
        if not equals:
            raise ScenarioError(f"{name} has {shown(part)!r}. Write a GPU and its amount, such as h100=39375.")
        key = catalog.gpu(gpu).id
        if key in amounts:
            raise ScenarioError(f"{name} names {key} twice. Keep one.")
        amounts[key] = kind.parse(figure.strip(), f"{name} of {shown(gpu.strip())}")
    return amounts


def _owned(gpu: Gpu, listed: KnownGpu | None, quote_usd: float | None, quoted_kw: float | None) -> OwnedGpu:
    """The price and power of an installed GPU as the user states them, with the cooling, else the catalog's; power that
    nobody stated will follow from the GPU's rated power."""
    capex, power = (listed.capex_usd, listed.power) if listed else (None, None)
    owned = OwnedGpu(
        rated_watts=gpu.tdp_watts,
        sold_together=gpu.sold_together,
        confidence=listed.confidence if listed else "",
    )
    if quote_usd is not None:
        owned = replace(owned, capex_usd=(quote_usd,) * 3, capex_source=YOUR_QUOTE)
    elif capex is not None:
        owned = replace(
            owned,
            capex_usd=(capex.low, capex.base, capex.high),
            capex_as_of=capex.as_of,
            capex_source=capex.source,
            is_module_price=int(capex.price_of == "module"),
        )
    if quoted_kw is not None:
        return replace(owned, stated_kw_per_gpu=quoted_kw, is_it_power=0, kw_source=YOUR_QUOTE)
    if power is not None:
        is_it_power = int(power.kw_of == "it")
        return replace(owned, stated_kw_per_gpu=power.kw, is_it_power=is_it_power, kw_source=power.source)
    return owned
