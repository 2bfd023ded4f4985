"""Catalog rows under new readings, and rows of what a list sells and the catalogs do not have.

The newest price of a row holds, every other becomes its history. A row's source says which of its prices came from
price lists: `price list a.csv (on-demand, spot); ...`, and beside them what the row was made from, which still
holds for its shape and its other prices.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sheetgen.catalog.hardware import Gpu, Instance, InstancePrice, PastPrice, first_day
from sheetgen.catalog.prices.match import NO_ROW, Reading, Unmatched, by_core, gpus_named, words
from sheetgen.catalog.prices.offers import Offer
from sheetgen.units import PURCHASES

_LIST = re.compile(r"price list ([^;()]+) \(([a-z0-9, -]+)\)")


def list_of(source: str, purchase: str) -> str | None:
    """The list that the price in that class came from; nothing where it came with the row."""
    lists, _ = _taken_apart(source)
    return next((f"price list {name}" for name, classes in lists.items() if purchase in classes), None)


def with_list(source: str, name: str, purchase: str) -> str:
    """`source` when the price in that class came from the list `name`.

    The sheet cites what stands first: a list of on-demand prices, else what the row was made from.
    """
    lists, rest = _taken_apart(source)
    for classes in lists.values():
        if purchase in classes:
            classes.remove(purchase)
    lists.setdefault(name, []).append(purchase)
    cited = {one: f"price list {one} ({', '.join(classes)})" for one, classes in lists.items() if classes}
    first = [text for one, text in cited.items() if "on-demand" in lists[one]]
    last = [text for one, text in cited.items() if "on-demand" not in lists[one]]
    return "; ".join(filter(None, [*first, rest, *last]))


def without_lists(source: str) -> str:
    """What the row was made from."""
    return _taken_apart(source)[1]


def _taken_apart(source: str) -> tuple[dict[str, list[str]], str]:
    lists: dict[str, list[str]] = {}
    rest: list[str] = []
    for part in source.split("; "):
        if match := _LIST.fullmatch(part):
            lists.setdefault(match[1], []).extend(match[2].split(", "))
        else:
            rest.append(part)
    return lists, "; ".join(rest)


# What a reading does to its row. `moved`: the row was priced in another region. `older`: the catalog's price is
# newer, and stays.
What = Literal["changed", "added", "moved", "confirmed", "unchanged", "older"]

MOST_HISTORY = 40  # past prices of one row and class; a catalog file has a limit of size
ORDER = tuple(PURCHASES)  # as the shipped rows have them


@dataclass(frozen=True)
class Change:
    """What one reading does to one price. US dollars an hour; None where there was no price, or no date."""

    instance: str
    purchase: str
    what: What
    old_usd: float | None
    new_usd: float
    old_as_of: str | None
    new_as_of: str
    old_region: str
    new_region: str
    cited: str
    at: str
    touches_row: bool  # false where nothing is new: the same price, or an older one that the history has

    @property
    def share(self) -> float | None:
        """The change as a share of the old price."""
        return None if self.old_usd is None else self.new_usd / self.old_usd - 1


def changed_row(row: Instance, readings: Iterable[tuple[Reading, str]]) -> tuple[Instance, list[Change]]:
    """`row` as it is after `readings`, each with the day it was read, and what each of them did.

    The order of the readings does not matter. A row that they price in another region loses the prices that
    they do not give: they are those of a place where it is no more.
    """
    ordered = sorted(readings, key=lambda pair: first_day(pair[1]))
    region = ordered[0][0].offer.region or row.region
    moved = region.lower() != row.region.lower()
    before: dict[str, InstancePrice] = {price.purchase: price for price in row.prices}
    prices = {} if moved else dict(before)
    source = without_lists(row.source) if moved else row.source
    changes: list[Change] = []
    for reading, day in ordered:
        old = prices.get(reading.purchase)
        what: What = "moved" if moved and old is None else _what(old, reading, day)
        if what == "older" and old is not None:
            after = _with_past(old, reading, day)
        elif what == "unchanged" and old is not None:
            after = old
        else:
            after = _new_price(old, reading, day, source)
            source = with_list(source, reading.offer.cited, reading.purchase)
        prices[reading.purchase] = after
        was = old or before.get(reading.purchase)
        changes.append(
            Change(instance=row.id, purchase=reading.purchase, what=what, old_usd=was.usd_per_hour if was else None,
            new_usd=reading.usd_per_hour, old_as_of=was.as_of if was else None, new_as_of=day, old_region=row.region,
            new_region=region, cited=reading.offer.cited, at=reading.offer.at, touches_row=after is not old),
        )  # fmt: skip
    kept = sorted(prices.values(), key=lambda price: ORDER.index(price.purchase))
    return row.model_copy(update={"prices": tuple(kept), "source": source, "region": region}), changes


def _what(old: InstancePrice | None, reading: Reading, day: str) -> What:
    if old is None:
        return "added"
    newer, same = first_day(day) > first_day(old.as_of), old.usd_per_hour == reading.usd_per_hour
    if same:
        return "confirmed" if newer else "unchanged"
    return "older" if first_day(day) < first_day(old.as_of) else "changed"


def _new_price(old: InstancePrice | None, reading: Reading, day: str, source: str) -> InstancePrice:
    """The price as read. Its terms are the list's, or stay; the price that it replaces goes into the history."""
    history: tuple[PastPrice, ...] = old.history if old else ()
    if old is not None and old.usd_per_hour != reading.usd_per_hour:
        read_in = list_of(source, old.purchase)
        history = _past(history, PastPrice(usd_per_hour=old.usd_per_hour, as_of=old.as_of, source=read_in))
    kind = reading.offer.kinds.get(reading.purchase) or (old.kind if old else None)
    return InstancePrice.model_validate(
        {"purchase": reading.purchase, "usd_per_hour": reading.usd_per_hour, "as_of": day, "kind": kind,
        "history": history},
    )  # fmt: skip


def _with_past(old: InstancePrice, reading: Reading, day: str) -> InstancePrice:
    """The newer price as it is, with the older one that was read in its history."""
    read = PastPrice(usd_per_hour=reading.usd_per_hour, as_of=day, source=f"price list {reading.offer.cited}")
    history = _past(old.history, read)
    return old if history == old.history else old.model_copy(update={"history": history})


def _past(history: tuple[PastPrice, ...], price: PastPrice) -> tuple[PastPrice, ...]:
    """`history` with one more price at its place, the newest first; one that it has already is not entered twice."""
    if any((p.usd_per_hour, p.as_of) == (price.usd_per_hour, price.as_of) for p in history):
        return history
    return tuple(sorted([price, *history], key=lambda p: first_day(p.as_of), reverse=True))[:MOST_HISTORY]


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
    shape = {"unit": "instance", "gpu_count": count, "region": offer.region or ""}
    return _row(one.provider, offer.name, could[0], [offer], as_of, **shape)


def _of_gpu(several: list[Unmatched], types: set[tuple[str, str]], as_of: str | None) -> Instance | str:
    """A GPU by the hour, or why it is not clear which of the provider's offers is meant."""
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
            day, kind = offer.as_of or as_of, offer.kinds.get(purchase)
            prices[purchase] = {"purchase": purchase, "usd_per_hour": usd, "as_of": day, "kind": kind}
            source = with_list(source, offer.cited, purchase)
    sizes = {}
    for size in ("vcpu", "ram_gib", "local_nvme_gb", "network_gbps"):
        values = {getattr(offer, size) for offer in offers}
        sizes[size] = values.pop() if len(values) == 1 else None
    return Instance.model_validate(
        {"provider": provider, "type": name, "gpu": gpu.id, **sizes,
        "prices": [prices[purchase] for purchase in ORDER if purchase in prices], "source": source,
        "confidence": "medium", "checked_on": max(str(price["as_of"]) for price in prices.values()), **fields},
    )  # fmt: skip
