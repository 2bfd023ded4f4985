"""Offers of the user's own lists matched to the catalogs' rows: providers and types as the catalogs spell them, and new
rows for the machines and GPUs that the lists add."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sheetgen.catalog.base import is_id
from sheetgen.catalog.gpu_names import GpuWords, by_core, gpus_named, usual_one, words
from sheetgen.catalog.hardware import Gpu, Instance
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.prices.offers import Offer
from sheetgen.catalog.prices.rows import ANY_REGION, MOST_GPUS, Unmatched, letters_of, provider_id, row_of_offers
from sheetgen.errors import CatalogError, UnknownNameError, did_you_mean
from sheetgen.units import count

_CALLED = {  # providers by other names, reduced to their letters
    "amazon": "aws", "amazonwebservices": "aws", "amazonec2": "aws", "awsec2": "aws", "microsoft": "azure",
    "microsoftazure": "azure", "google": "gcp", "googlecloud": "gcp", "googlecloudplatform": "gcp",
    "googlecomputeengine": "gcp", "lambdalabs": "lambda", "lambdacloud": "lambda", "oracle": "oci",
    "oraclecloud": "oci", "ovh": "ovhcloud", "vast": "vast.ai", "datacrunch": "verda",
}  # fmt: skip
MOST_REGION = 110  # characters of a row's region, which may list several


@dataclass
class OwnOffers:
    """Offers for rows of the catalogs, in their spelling; new rows; offers that are neither; and sentences on the
    machines that prices without a machine are for."""

    of_rows: list[Offer] = field(default_factory=list)
    new: list[Instance] = field(default_factory=list)
    left: list[Unmatched] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def lay_own(offers: Iterable[Offer], catalog: Catalog, region: str | None) -> OwnOffers:
    """The offers of the user's own lists, matched to rows of the catalogs or made new rows.

    A price without a machine's type is that of every machine that the catalogs have of this provider with this GPU, or
    with so many of them where the line counts them. With `region`, offers of other regions become no new machines.
    """
    rows = catalog.instances()
    spelt = {letters_of(row.provider): row.provider for row in rows}
    of_type = {(row.provider, row.type.lower()): row for row in rows}
    sold: dict[str, dict[str, list[Instance]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.offer != "average":
            sold[row.provider][row.gpu].append(row)
    by_words = by_core(catalog.gpus())
    laid = OwnOffers()
    machines: dict[tuple[str, str], list[tuple[Offer, Gpu]]] = defaultdict(list)
    parts: dict[tuple[str, str], list[tuple[Offer, Gpu]]] = defaultdict(list)
    untyped: list[tuple[Offer, Gpu, list[Instance]]] = []
    for offer in offers:
        letters = letters_of(offer.provider)
        provider = spelt.get(letters_of(_CALLED.get(letters, letters))) or provider_id(offer.provider)
        offer = replace(offer, provider=provider)
        if not is_id(provider):
            laid.left.append(Unmatched(offer, "of a provider whose name has no letters from a to z", provider))
            continue
        of_provider = sold[provider]
        named = offer.name
        row_of_type = None if offer.per_gpu else _row_of_type(offer, of_type)
        if row_of_type is None and offer.is_for_gpu and offer.gpu:
            offer = replace(offer, per_gpu=True, name=offer.gpu)
        gpu = None if row_of_type else _gpu_of(offer, by_words, of_provider, catalog)
        with_gpu = of_provider.get(gpu.id, []) if isinstance(gpu, Gpu) else []
        if row_of_type is not None and offer.gpu_count not in (None, row_of_type.gpu_count):
            why = f"with {offer.gpu_count:g} GPUs, and {row_of_type.id} has {row_of_type.gpu_count}"
            laid.left.append(Unmatched(offer, why, provider))
        elif row_of_type is not None:
            laid.of_rows.append(_of_row(offer, row_of_type))
        elif isinstance(gpu, str):
            laid.left.append(Unmatched(offer, gpu, provider))
        elif gpu is not None and not offer.has_type and (same := _of_count(with_gpu, offer)):
            untyped.append((offer, gpu, same))
        elif gpu is not None and offer.per_gpu and with_gpu:
            could = " or ".join(row.id for row in with_gpu)
            why = f"of a type that is in no catalog: could be {could}"
            laid.left.append(Unmatched(offer, why, provider, named=named))
        elif gpu is not None and offer.per_gpu:
            parts[provider, gpu.id].append((offer, gpu))
        elif gpu is not None and region and offer.region.lower() != region.lower():
            laid.left.append(Unmatched(offer, f"of other regions than {region}", provider))
        elif gpu is not None:
            machines[provider, offer.name.lower()].append((offer, gpu))
            if with_gpu and not offer.has_type:
                there = ", ".join(f"{row.id} ({row.gpu_count:g})" for row in with_gpu)
                other = f"of {offer.gpu_count:g}x {gpu.short_name} is in the catalogs; with other numbers: {there}"
                laid.notes.append(f"{offer.at}: no machine of {provider} {other}.")
    _add_untyped(laid, untyped)
    for several in machines.values():
        _add_machines(laid, several)
    for (provider, _), several in parts.items():
        name = several[0][1].short_name
        _add_gpu(laid, several, name, (provider, name.lower()) in of_type, spelt.values())
    if homes := [offer.region for offer in laid.of_rows if _is_sold_elsewhere(offer, of_type, catalog)]:
        taken = f"A price without a region is that of the catalogs' own, {', '.join(dict.fromkeys(homes))}"
        laid.notes.append(f"{taken}: elsewhere the machine stays at its list price.")
    return laid


def _of_count(rows: Sequence[Instance], offer: Offer) -> list[Instance]:
    """The machines that a line without a type prices: all of a price by the GPU, else those with its number of GPUs."""
    return [row for row in rows if offer.per_gpu or (row.is_whole and row.gpu_count == offer.gpu_count)]


def _of_row(offer: Offer, row: Instance) -> Offer:
    """The offer as one of a row's type, with the prices of all GPUs of the row."""
    times = row.gpu_count if (offer.is_for_gpu or offer.per_gpu) and row.is_whole else 1
    prices = {purchase: round(usd * times, 6) for purchase, usd in offer.prices.items()}
    region = row.region if offer.per_gpu and not row.is_whole else _region_in(offer.region, row.region)
    return replace(offer, name=row.type, region=region, prices=prices, is_for_gpu=False, per_gpu=False)


def _add_untyped(laid: OwnOffers, untyped: Iterable[tuple[Offer, Gpu, list[Instance]]]) -> None:
    """Add the offers without a type for each of their rows, but for the classes that a more exact line prices: one with
    the type, else one with the number of GPUs."""

    def key_of(offer: Offer, purchase: str) -> tuple[str, ...]:
        return offer.provider, offer.name.lower(), offer.region.lower(), purchase

    exact = {key_of(offer, purchase): offer for offer in laid.of_rows for purchase in offer.prices}
    for per_gpu in (False, True):
        priced: list[Offer] = []
        for offer, gpu, same in untyped:
            if offer.per_gpu != per_gpu:
                continue
            shapes, held = list[str](), list[str]()
            for row in same:
                of_row = _of_row(offer, row)
                lines = {purchase: exact.get(key_of(of_row, purchase)) for purchase in of_row.prices}
                held += [f"{row.id} {purchase}, priced by {line.at}" for purchase, line in lines.items() if line]
                if left := {purchase: usd for purchase, usd in of_row.prices.items() if not lines[purchase]}:
                    priced.append(replace(of_row, prices=left))
                    sizes = f"{row.gpu_count:g}" if row.is_whole else f"{_sizes(gpu)}, assumed shape"
                    shapes.append(f"{row.id} ({sizes})")
            whose = f"{offer.provider}'s {'' if per_gpu else f'{offer.gpu_count:g}x '}{gpu.short_name}"
            machines = f"{count(len(shapes), 'machine')}{': ' if shapes else ''}{', '.join(shapes)}"
            but = f"; not {', nor '.join(held)}" if held else ""
            laid.notes.append(f"{offer.at}: the price of {whose} is that of {machines}{but}.")
        laid.of_rows += priced
        exact |= {key_of(offer, purchase): offer for offer in priced for purchase in offer.prices}


def _sizes(gpu: Gpu) -> str:
    return ", ".join(map(str, gpu.assumed_shapes))


def _is_sold_elsewhere(offer: Offer, of_type: Mapping[tuple[str, str], Instance], catalog: Catalog) -> bool:
    """True for a line without a region whose machine has prices in other regions in the same classes."""
    prices = catalog.regions.of_row(of_type[offer.provider, offer.name.lower()])
    return (
        not offer.has_region and sum(not offer.prices.keys().isdisjoint(by_class) for by_class in prices.values()) > 1
    )


def _row_of_type(offer: Offer, of_type: Mapping[tuple[str, str], Instance]) -> Instance | None:
    low = offer.name.lower()
    names = (f"{low} ({offer.region.lower()})", low, f"standard_{low}".replace(" ", "_"))
    return next((row for name in names if (row := of_type.get((offer.provider, name)))), None)


def _region_in(region: str, of_row: str) -> str:
    """A list's region in the spelling of its row, which may list several; the row's if the list names none."""
    low = region.lower()
    return of_row if not region or low in of_row.lower().split(", ") else region


def _gpu_of(
    offer: Offer, by_words: dict[frozenset[str], list[Gpu]], sold: Collection[str], catalog: Catalog
) -> Gpu | str:
    """The GPU of an offer that names no row, or the reason why it cannot be told. Where an offer without a type names
    several, it is the one of them in the provider's machines, whose GPUs are `sold`."""
    n_gpus = offer.gpu_count or (1 if offer.per_gpu else None)
    if not offer.gpu:
        add = "of a type that is in no catalog: add columns gpu and gpu_count"
        return "without a GPU" if offer.has_gpu_column else add
    if n_gpus is None:
        return "of a type that is in no catalog: add a column gpu_count"
    if not 1 <= n_gpus <= MOST_GPUS or n_gpus != int(n_gpus):
        return f"with {n_gpus:g} GPUs, which is no whole number from 1"
    stated = words(re.sub(r"\([^()0-9]*\)", "", offer.gpu), offer.interconnect)  # `V100 (NVLink)`
    forms = stated.forms or words(offer.name).forms
    sizes = (offer.gpu_memory_gb, offer.gpu_memory_gb / n_gpus) if offer.gpu_memory_gb else (None,)
    for memory in dict.fromkeys((stated.memory_gb, *sizes) if stated.memory_gb else sizes):
        asked = GpuWords(stated.core, forms, memory, stated.mig_profile)
        named = gpus_named(asked, by_words)
        of_provider = [gpu for gpu in named if gpu.id in sold and not offer.has_type]
        could = of_provider if len(of_provider) == 1 else usual_one(asked, named)
        if len(could) == 1:
            return could[0]
        if could:
            ids = " or ".join(gpu.id for gpu in could)
            return f"whose GPU could be {ids}: write its form and memory, such as A100 SXM 80GB"
    return f"with a GPU that is in no catalog{_near(offer.gpu, catalog)}"


def _near(gpu: str, catalog: Catalog) -> str:
    """The GPUs that an unknown name may mean, as a clause; empty for none."""
    try:
        catalog.gpu(gpu)
    except UnknownNameError as error:
        near = error.near.strip(" .")
        return f": {near[:1].lower()}{near[1:]}" if near else ""
    except CatalogError:
        pass
    return ""


def _add_machines(laid: OwnOffers, several: Sequence[tuple[Offer, Gpu]]) -> None:
    """Add rows for the offers of one type: one row for all regions with the same prices; those after the first have a
    region in their name."""
    if len(shapes := {(gpu.id, offer.gpu_count) for offer, gpu in several}) > 1:
        described = " and ".join(f"{n:g}x {gpu}" for gpu, n in sorted(shapes, key=str))
        laid.left += [Unmatched(offer, f"of one name for {described}", offer.provider) for offer, _ in several]
        return
    by_region: dict[str, list[Offer]] = defaultdict(list)
    for offer, _ in several:
        by_region[offer.region].append(offer)
    by_price: dict[tuple[tuple[str, float], ...], list[str]] = defaultdict(list)
    for region, offers in by_region.items():
        by_price[tuple(sorted({pair for offer in offers for pair in offer.prices.items()}))].append(region)
    gpu = several[0][1]
    for i, regions in enumerate(by_price.values()):
        offers = by_region[regions[0]]
        name = offers[0].name if i == 0 else f"{offers[0].name} ({regions[0]})"
        shape = {"unit": "instance", "gpu_count": int(offers[0].gpu_count or 1), "region": _joined(regions)}
        laid.new.append(row_of_offers(offers[0].provider, name, gpu, offers, **shape))


def _joined(regions: Sequence[str]) -> str:
    """Several regions joined as one row's region, as many as fit."""
    joined = ""
    for region in regions:
        if len(more := f"{joined}, {region}" if joined else region) <= MOST_REGION:
            joined = more
    return joined or ANY_REGION


def _add_gpu(
    laid: OwnOffers, several: Sequence[tuple[Offer, Gpu]], name: str, is_taken: bool, providers: Collection[str]
) -> None:
    """Add one row for a GPU by the hour of a provider without a machine that has it; none where its prices differ."""
    offers, (provider, gpu) = [offer for offer, _ in several], (several[0][0].provider, several[0][1])
    prices: dict[str, set[float]] = defaultdict(set)
    for offer in offers:
        for purchase, usd in offer.prices.items():
            prices[purchase].add(usd)
    if twice := next((purchase for purchase, usd in prices.items() if len(usd) > 1), None):
        amounts = " and ".join(f"{usd:g}" for usd in sorted(prices[twice]))
        why = f"of {gpu.short_name} at {amounts} {twice}: keep one, or name the machines in a column instance_type"
        laid.left += [Unmatched(offer, why, provider) for offer in offers]
        return
    regions = list(dict.fromkeys(offer.region for offer in offers))
    shape = {"unit": "per_gpu", "gpu_count": 1, "region": _joined(regions)}
    laid.new.append(row_of_offers(provider, f"{name} GPU" if is_taken else name, gpu, offers, **shape))
    near = "" if provider in providers else did_you_mean(provider, providers)
    none = f"{provider} has no machine with {gpu.short_name} in the catalogs.{near}"
    made = f"Made of its price: machines of {_sizes(gpu)}, marked assumed shape"
    laid.notes.append(f"{offers[0].at}: {none} {made}. A column instance_type with gpu_count names real ones.")
