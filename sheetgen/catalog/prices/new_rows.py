"""What a list sells and the catalogs do not have: whole rows where the list says enough, the reason where not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sheetgen.catalog.hardware import Gpu, Instance
from sheetgen.catalog.prices.change import ORDER
from sheetgen.catalog.prices.cited import with_list
from sheetgen.catalog.prices.gpu_words import by_core, gpus_named, words
from sheetgen.catalog.prices.match import NO_ROW, Unmatched
from sheetgen.catalog.prices.offers import Offer

MOST_GPUS = 1024  # of one row, by the catalogs' schema
ANY_REGION = "mixed"  # what the catalogs say of offers without one
MARKETS = ("marketplace", "community")  # tiers in which others than the provider sell


def new_rows(
    unmatched: Iterable[Unmatched], rows: Sequence[Instance], gpus: Sequence[Gpu], region: str | None, as_of: str | None
) -> tuple[list[Instance], list[Unmatched]]:
    """Rows for offers without one, and the offers of which no row can be made, each with its reason.

    A type is added in `region`, or in the region of most of its provider's rows.
    """
    by_type: dict[tuple[str, str], list[Unmatched]] = defaultdict(list)
    by_gpu: dict[tuple[str, str], list[Unmatched]] = defaultdict(list)
    left: list[Unmatched] = []
    for one in unmatched:
        if one.why != NO_ROW:
            left.append(one)
        elif one.offer.per_gpu:
            assert one.gpu is not None  # a provider without a row of it says so only of a GPU that is known
            by_gpu[one.provider, one.gpu.id].append(one)
        else:
            by_type[one.provider, one.offer.name.lower()].append(one)
    added: list[Instance] = []
    known = by_core(gpus)
    homes = {provider: region or _home(rows, provider) for provider, _ in by_type}
    for (provider, _), several in by_type.items():
        here = [one for one in several if (one.offer.region or "").lower() == homes[provider].lower()]
        one = (here or several)[-1]
        made = _of_type(one, known, as_of) if here else f"new, but not sold in {homes[provider]}"
        _sort_in(made, [one], added, left)
    types = {(row.provider, row.type.lower()) for row in rows}
    for several in by_gpu.values():
        _sort_in(_of_gpu(several, types, as_of), several, added, left)
    return added, left


def _sort_in(made: Instance | str, of: list[Unmatched], added: list[Instance], left: list[Unmatched]) -> None:
    if isinstance(made, str):
        left += [replace(one, why=made) for one in of]
    else:
        added.append(made)


def _home(rows: Sequence[Instance], provider: str) -> str:
    regions = Counter(row.region for row in rows if row.provider == provider)
    return regions.most_common(1)[0][0] if regions else ""


def _of_type(one: Unmatched, known: dict[frozenset[str], list[Gpu]], as_of: str | None) -> Instance | str:
    """A whole machine, or why the list does not say enough of it."""
    offer = one.offer
    if not offer.gpu or offer.gpu_count is None:
        return "new, but the list does not say its GPU and how many"
    count = int(offer.gpu_count)
    if not 1 <= count <= MOST_GPUS or count != offer.gpu_count:
        return f"new, with {offer.gpu_count:g} GPUs by the list, which is no whole number from 1"
    could = gpus_named(words(offer.gpu, "", offer.gpu_memory_gb), known)
    if len(could) != 1:
        named = " or ".join(gpu.id for gpu in could)
        return f"new, but its GPU could be {named}" if could else "new, with a GPU that is in no catalog"
    return _row(
        one.provider, offer.name, could[0], [offer], as_of, unit="instance", gpu_count=count, region=offer.region or ""
    )


def _of_gpu(several: list[Unmatched], types: set[tuple[str, str]], as_of: str | None) -> Instance | str:
    """A GPU by the hour, or why it cannot be told which of the provider's offers is meant."""
    gpu, provider = several[0].gpu, several[0].provider
    assert gpu is not None
    offers = [one.offer for one in several]
    if (provider, gpu.short_name.lower()) in types:
        return f"new, but {provider} has another row called {gpu.short_name}"
    for purchase in ORDER:
        if len({offer.prices[purchase] for offer in offers if purchase in offer.prices}) > 1:
            return f"new, but {provider} has several {purchase} prices for it"
    market = any(offer.tier.lower() in MARKETS for offer in offers)
    return _row(
        provider, gpu.short_name, gpu, offers, as_of, unit="per_gpu", gpu_count=1, region=ANY_REGION,
        offer="marketplace" if market else "list",
    )  # fmt: skip


def _row(provider: str, name: str, gpu: Gpu, offers: Sequence[Offer], as_of: str | None, **fields: object) -> Instance:
    """A row from the list alone: its own name only where it is a type, sizes where its offers agree on them."""
    prices: dict[str, dict[str, object]] = {}
    source = ""
    for offer in sorted(offers, key=lambda o: o.as_of or as_of or ""):
        for purchase, usd in offer.prices.items():
            prices[purchase] = {
                "purchase": purchase,
                "usd_per_hour": usd,
                "as_of": offer.as_of or as_of,
                "kind": offer.kinds.get(purchase),
            }
            source = with_list(source, offer.cited, purchase)
    sizes = {}
    for size in ("vcpu", "ram_gib", "local_nvme_gb", "network_gbps"):
        values = {getattr(offer, size) for offer in offers}
        sizes[size] = values.pop() if len(values) == 1 else None
    return Instance.model_validate(
        {
            "provider": provider,
            "type": name,
            "gpu": gpu.id,
            **sizes,
            "prices": [prices[purchase] for purchase in ORDER if purchase in prices],
            "source": source,
            "confidence": "medium",
            "checked_on": max(str(price["as_of"]) for price in prices.values()),
            **fields,
        }
    )
