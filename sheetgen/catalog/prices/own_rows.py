"""Offers of the user's own lists matched to the catalogs' rows: providers and types as the catalogs spell them, and new
rows for the machines and GPUs that the lists add."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sheetgen.catalog.base import is_id
from sheetgen.catalog.gpu_names import GpuWords, by_core, gpus_named, usual_one, words
from sheetgen.catalog.hardware import Gpu, Instance
from sheetgen.catalog.prices.offers import Offer
from sheetgen.catalog.prices.rows import ANY_REGION, MOST_GPUS, Unmatched, letters_of, provider_id, row_of_offers

_CALLED = {  # providers by other names, reduced to their letters
    "amazon": "aws", "amazonwebservices": "aws", "amazonec2": "aws", "awsec2": "aws", "microsoft": "azure",
    "microsoftazure": "azure", "google": "gcp", "googlecloud": "gcp", "googlecloudplatform": "gcp",
    "googlecomputeengine": "gcp", "lambdalabs": "lambda", "lambdacloud": "lambda", "oracle": "oci",
    "oraclecloud": "oci", "ovh": "ovhcloud", "vast": "vast.ai", "datacrunch": "verda",
}  # fmt: skip
MOST_REGION = 110  # characters of a row's region, which may list several


@dataclass
class OwnOffers:
    """Offers for rows of the catalogs, in their spelling; new rows; and offers that are neither."""

    of_rows: list[Offer] = field(default_factory=list)
    new: list[Instance] = field(default_factory=list)
    left: list[Unmatched] = field(default_factory=list)


def lay_own(offers: Iterable[Offer], rows: Sequence[Instance], gpus: Sequence[Gpu], region: str | None) -> OwnOffers:
    """The offers of the user's own lists, matched to rows of the catalogs or made new rows.

    With `region`, offers of other regions become no new machines.
    """
    spelt = {letters_of(row.provider): row.provider for row in rows}
    of_type = {(row.provider, row.type.lower()): row for row in rows}
    by_gpu: dict[tuple[str, str], list[Instance]] = defaultdict(list)
    for row in rows:
        if row.unit == "per_gpu" and row.gpu_count == 1 and row.offer != "average":
            by_gpu[row.provider, row.gpu].append(row)
    by_words = by_core(gpus)
    laid = OwnOffers()
    machines: dict[tuple[str, str], list[tuple[Offer, Gpu]]] = defaultdict(list)
    parts: dict[tuple[str, str], list[tuple[Offer, Gpu]]] = defaultdict(list)
    for offer in offers:
        letters = letters_of(offer.provider)
        provider = spelt.get(letters_of(_CALLED.get(letters, letters))) or provider_id(offer.provider)
        offer = replace(offer, provider=provider)
        if not is_id(provider):
            laid.left.append(Unmatched(offer, "of a provider whose name has no letters from a to z", provider))
            continue
        found_row = None if offer.per_gpu else _row_of_type(offer, of_type)
        if found_row is None and offer.is_for_gpu and offer.gpu:
            offer = replace(offer, per_gpu=True, name=offer.gpu)
        gpu = None if found_row else _gpu_of(offer, by_words)
        if found_row is not None and offer.gpu_count not in (None, found_row.gpu_count):
            why = f"with {offer.gpu_count:g} GPUs, and {found_row.id} has {found_row.gpu_count}"
            laid.left.append(Unmatched(offer, why, provider))
        elif found_row is not None:
            if offer.is_for_gpu:
                by_machine = {name: round(usd * found_row.gpu_count, 6) for name, usd in offer.prices.items()}
                offer = replace(offer, prices=by_machine, is_for_gpu=False)
            region = _region_in(offer.region, found_row.region)
            laid.of_rows.append(replace(offer, name=found_row.type, region=region))
        elif isinstance(gpu, str):
            laid.left.append(Unmatched(offer, gpu, provider))
        elif gpu is not None and offer.per_gpu:
            same = by_gpu[provider, gpu.id]
            if len(same) == 1:
                laid.of_rows.append(replace(offer, per_gpu=False, name=same[0].type, region=same[0].region))
            elif same:
                could = " or ".join(row.id for row in same)
                laid.left.append(Unmatched(offer, f"could be {could}", provider))
            else:
                parts[provider, gpu.id].append((offer, gpu))
        elif gpu is not None and region and offer.region.lower() != region.lower():
            laid.left.append(Unmatched(offer, f"of other regions than {region}", provider))
        elif gpu is not None:
            machines[provider, offer.name.lower()].append((offer, gpu))
    types = {(row.provider, row.type.lower()) for row in rows}
    for several in machines.values():
        _add_machines(laid, several)
    for (provider, _), several in parts.items():
        _add_gpu(laid, several, f"{several[0][1].short_name}", (provider, several[0][1].short_name.lower()) in types)
    return laid


def _row_of_type(offer: Offer, of_type: Mapping[tuple[str, str], Instance]) -> Instance | None:
    low = offer.name.lower()
    names = (f"{low} ({offer.region.lower()})", low, f"standard_{low}".replace(" ", "_"))
    return next((row for name in names if (row := of_type.get((offer.provider, name)))), None)


def _region_in(region: str, of_row: str) -> str:
    """A list's region in the spelling of its row, which may list several; the row's if the list names none."""
    low = region.lower()
    return of_row if not region or low in of_row.lower().split(", ") else region


def _gpu_of(offer: Offer, by_words: dict[frozenset[str], list[Gpu]]) -> Gpu | str:
    """The GPU of a machine that the catalogs lack, or the reason why it cannot be told."""
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
        could = usual_one(asked, gpus_named(asked, by_words))
        if len(could) == 1:
            return could[0]
        if could:
            named = " or ".join(gpu.id for gpu in could)
            return f"whose GPU could be {named}: write its form and memory, such as A100 SXM 80GB"
    return "with a GPU that is in no catalog"


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


def _add_gpu(laid: OwnOffers, several: Sequence[tuple[Offer, Gpu]], name: str, is_taken: bool) -> None:
    """Add one row for a GPU by the hour; none where its prices differ."""
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
