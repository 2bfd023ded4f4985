"""Offers matched to the catalogs' rows: the row that each prices, the row at its new prices, and new rows for offers
that the catalogs lack.

An offer is matched by its type, or by the words of a GPU's name, its memory and its form. An uncertain match is
reported, never guessed. The newest price of a row is used, all others become its history. A row's source states which
of its prices came from price lists, `price list a.csv (on-demand, spot); ...`, and the original source of its shape and
other prices.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sheetgen.catalog.base import first_day, is_id
from sheetgen.catalog.gpu_names import by_core, could_be, gpus_named, words
from sheetgen.catalog.hardware import Gpu, Instance, InstancePrice, PastPrice
from sheetgen.catalog.prices.offers import Offer
from sheetgen.units import PURCHASES

NO_ROW = "no row of the catalogs"


@dataclass(frozen=True)
class Reading:
    """A list's price of one catalog row in one purchase class."""

    row: Instance
    purchase: str
    usd_per_hour: float
    offer: Offer


@dataclass(frozen=True)
class Unmatched:
    """An offer that prices no row of the catalogs, and the reason; `gpu` if it was recognized."""

    offer: Offer
    why: str
    provider: str = ""  # in the catalogs' spelling
    gpu: Gpu | None = None
    named: str = ""  # its name in the report; empty: the offer's own


def match(
    offers: Iterable[Offer], rows: Sequence[Instance], gpus: Sequence[Gpu]
) -> tuple[list[Reading], list[Unmatched]]:
    """The offers' prices with their rows, matched by type in any region, or by provider and GPU; and the other
    offers."""
    readings: list[Reading] = []
    unmatched: list[Unmatched] = []
    of_types = {(row.provider, row.type.lower()): row for row in rows}
    by_gpu: list[Offer] = []
    for offer in offers:
        row = of_types.get((offer.provider, offer.name.lower()))
        if offer.per_gpu:
            by_gpu.append(offer)
        elif row is None:
            unmatched.append(Unmatched(offer, NO_ROW, offer.provider))
        else:
            readings += [Reading(row, purchase, usd, offer) for purchase, usd in offer.prices.items()]

    sold: dict[str, list[Instance]] = defaultdict(list)
    for row in rows:
        sold[row.provider].append(row)
    spelt: dict[str, list[str]] = defaultdict(list)
    for provider in sold:
        spelt[letters_of(provider)].append(provider)
    by_words, by_id = by_core(gpus), {gpu.id: gpu for gpu in gpus}
    claims: dict[tuple[str, str, str, bool], list[tuple[bool, Reading]]] = defaultdict(list)
    for offer in by_gpu:
        names = (offer.provider, offer.provider + offer.tier)
        named = next(filter(None, (spelt.get(letters_of(name)) for name in names)), [])
        begins = [seller for seller in sold if letters_of(seller).startswith(letters_of(offer.provider))]
        provider = provider_id(offer.provider)
        if len(named) != 1 and (begins or not is_id(provider)):
            could_be_of = " or ".join(begins) or "one whose name has letters from a to z"
            unmatched.append(Unmatched(offer, f"of a provider that could be {could_be_of}"))
            continue
        provider = named[0] if named else provider
        could = gpus_named(words(offer.name, offer.interconnect, offer.gpu_memory_gb), by_words)
        row_or_why, by_name = _row_of(offer, sold.get(provider, ()), could, by_id)
        if isinstance(row_or_why, str):
            unmatched.append(Unmatched(offer, row_or_why, provider, could[0] if len(could) == 1 else None))
            continue
        for purchase, usd in offer.prices.items():
            claim_of = claims[row_or_why.id, purchase, offer.as_of, offer.has_own_day]
            claim_of.append((by_name, Reading(row_or_why, purchase, usd, offer)))
    for claim in claims.values():
        best = [reading for by_name, reading in claim if by_name] or [reading for _, reading in claim]
        row = best[0].row
        if len({reading.usd_per_hour for reading in best}) > 1 and row.vcpu is not None:  # those of its very machine
            best = [r for r in best if (r.offer.vcpu, r.offer.ram_gib) == (row.vcpu, row.ram_gib)] or best
        prices = sorted({reading.usd_per_hour for reading in best})
        if len(prices) == 1:
            readings += best
        else:
            why = f"could be {row.id}, which has {len(prices)} prices here: {' and '.join(f'{p:g}' for p in prices)}"
            unmatched += [Unmatched(reading.offer, why, row.provider) for reading in best]
    return readings, unmatched


def letters_of(provider: str) -> str:
    """A provider's name reduced to letters and digits, so that `vast-ai` and `vast.ai` are equal, as are `runpod` with
    the tier `secure` and runpod-secure."""
    return re.sub(r"[^a-z0-9]", "", provider.lower())


def provider_id(name: str) -> str:
    """A provider's name as the id of a file: `Hetzner Cloud GmbH` is hetzner-cloud-gmbh."""
    low = name.lower()
    for letter, plain in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")):
        low = low.replace(letter, plain)
    return re.sub(r"[^a-z0-9._]+", "-", low).strip("-._")


def _row_of(
    offer: Offer, rows: Sequence[Instance], could: Sequence[Gpu], gpus: dict[str, Gpu]
) -> tuple[Instance | str, bool]:
    """The provider's row for a GPU, or the reason why there is none; and whether the row's name matches the offer's.

    A price per GPU applies only to rows that are priced per GPU: a whole machine costs more than its parts.
    """
    named, stated = words(offer.name), words(offer.name, offer.interconnect, offer.gpu_memory_gb)
    single = [row for row in rows if row.unit == "per_gpu" and row.gpu_count == 1 and row.offer != "average"]
    fits: list[Instance] = []
    for row in single:
        own = words(row.type)  # a row that names no memory takes that of its GPU
        is_called_so = (own.core, own.forms) == (named.core, named.forms) and own.memory_gb in (None, stated.memory_gb)
        if is_called_so and could_be(stated, gpus[row.gpu]):
            fits.append(row)
    by_name = bool(fits)
    if not fits:
        if not could:
            return "with a GPU that is in no catalog", False
        if len(could) > 1:
            return f"could be {' or '.join(gpu.id for gpu in could)}", False
        fits = [row for row in single if row.gpu == could[0].id]
    if len(fits) == 1:
        return fits[0], by_name
    if fits:
        return f"could be {' or '.join(row.id for row in fits)}", False
    if any(row.gpu == could[0].id and row.unit == "instance" for row in rows):
        return "priced by the GPU, where the catalogs have whole instances", False
    return NO_ROW, False


OWN = "own "  # begins the title of a list of the user's own
_LIST = re.compile(rf"((?:{OWN})?price list [^;()]+) \(([a-z0-9, -]+)\)")


def taken_apart(source: str) -> tuple[dict[str, list[str]], str]:
    """A row's source parsed: the purchase classes by the title of their list, and the original source."""
    lists: dict[str, list[str]] = {}
    rest: list[str] = []
    for part in source.split("; "):
        if match := _LIST.fullmatch(part):
            lists.setdefault(match[1], []).extend(match[2].split(", "))
        else:
            rest.append(part)
    return lists, "; ".join(rest)


def list_of(source: str, purchase: str) -> str | None:
    """The list in a row's source that the price of a class came from; None if it came with the row."""
    lists, _ = taken_apart(source)
    return next((title for title, classes in lists.items() if purchase in classes), None)


def with_list(source: str, title: str, purchase: str) -> str:
    """A row's source after the price of a class came from the list of that title.

    The sheet cites the first part: a list of on-demand prices, else the original source.
    """
    lists, rest = taken_apart(source)
    for classes in lists.values():
        if purchase in classes:
            classes.remove(purchase)
    lists.setdefault(title, []).append(purchase)
    cited = {listed: f"{listed} ({', '.join(classes)})" for listed, classes in lists.items() if classes}
    first = [text for listed, text in cited.items() if "on-demand" in lists[listed]]
    last = [text for listed, text in cited.items() if "on-demand" not in lists[listed]]
    return "; ".join(filter(None, [*first, rest, *last]))


# The outcome of a reading. `moved`: the row had prices of another region. `older`: the catalog's price is newer, and
# is kept.
What = Literal["changed", "added", "moved", "confirmed", "unchanged", "older"]

MOST_HISTORY = 40  # past prices of one row and class, as catalog files are limited in size
ORDER = tuple(PURCHASES)  # as the shipped rows have them


@dataclass(frozen=True)
class Change:
    """The outcome of one reading for one price, in USD per hour; None where there was no price or date before."""

    instance: str
    purchase: str
    what: What
    old_usd: float | None
    new_usd: float
    old_as_of: str | None
    new_as_of: str
    old_region: str
    new_region: str
    at: str
    touches_row: bool  # false for the same price, or an older one that the history has

    @property
    def share(self) -> float | None:
        """The change as a share of the old price."""
        return None if self.old_usd is None else self.new_usd / self.old_usd - 1


def change_of(
    reading: Reading, outcome: What, before: InstancePrice | None, regions: tuple[str, str], touches_row: bool
) -> Change:
    """The outcome of a reading after the price `before`, with the old and the new region."""
    return Change(
        reading.row.id,
        reading.purchase,
        outcome,
        before.usd_per_hour if before else None,
        reading.usd_per_hour,
        before.as_of if before else None,
        reading.offer.as_of,
        *regions,
        reading.offer.at,
        touches_row,
    )


def changed_row(row: Instance, readings: Iterable[Reading]) -> tuple[Instance, list[Change]]:
    """`row` at the prices of `readings`, in any order, and the outcome of each.

    A row that they price in another region loses its prices of the old region.
    """
    ordered = sorted(readings, key=lambda reading: first_day(reading.offer.as_of))
    region = ordered[0].offer.region or row.region
    moved = region.lower() != row.region.lower()
    before = {price.purchase: price for price in row.prices}
    prices: dict[str, InstancePrice] = {} if moved else dict(before)
    source = taken_apart(row.source)[1] if moved else row.source
    changes: list[Change] = []
    for reading in ordered:
        offer, old = reading.offer, prices.get(reading.purchase)
        outcome: What = "moved" if moved and old is None else compared(old, reading, list_of(source, reading.purchase))
        if old is not None and outcome == "older":
            after = _with_past(old, reading.usd_per_hour, offer.as_of, offer.title)
        elif old is not None and outcome == "unchanged":
            after = old
        else:  # the terms are the list's, else those of the old price
            past = old
            if old is not None and outcome == "changed":
                past = _with_past(old, old.usd_per_hour, old.as_of, list_of(source, old.purchase))
            after = InstancePrice.model_validate(
                {
                    "purchase": reading.purchase,
                    "usd_per_hour": reading.usd_per_hour,
                    "as_of": offer.as_of,
                    "kind": offer.kinds.get(reading.purchase) or (old.kind if old else None),
                    "history": past.history if past else (),
                },
            )
            source = with_list(source, offer.title, reading.purchase)
        prices[reading.purchase] = after
        was = old or before.get(reading.purchase)
        changes.append(change_of(reading, outcome, was, (row.region, region), touches_row=after is not old))
    kept = sorted(prices.values(), key=lambda price: ORDER.index(price.purchase))
    contracted = {reading.purchase for reading in ordered if reading.offer.is_own} - {*row.sold_as}
    sold_as = (*row.sold_as, *sorted(contracted, key=ORDER.index)) if row.sold_as else ()
    changed = {"prices": tuple(kept), "source": source, "region": region, "sold_as": sold_as}
    return row.model_copy(update=changed), changes


def compared(old: InstancePrice | None, reading: Reading, old_list: str | None) -> What:
    """The outcome of a reading compared with the price before it, which came from the list of that title.

    The user's own price holds over a list price of any day; only one of the user's own can be newer.
    """
    if old is None:
        return "added"
    day, old_day = first_day(reading.offer.as_of), first_day(old.as_of)
    if old.usd_per_hour == reading.usd_per_hour:
        return "confirmed" if day > old_day else "unchanged"
    is_contract = reading.offer.is_own and not (old_list or "").startswith(OWN)
    return "older" if day < old_day and not is_contract else "changed"


def _with_past(price: InstancePrice, usd_per_hour: float, as_of: str | None, source: str | None) -> InstancePrice:
    """`price` with one more price in its history, the newest first, unless the history has it."""
    if any((past.usd_per_hour, past.as_of) == (usd_per_hour, as_of) for past in price.history):
        return price
    history = [PastPrice(usd_per_hour=usd_per_hour, as_of=as_of, source=source), *price.history]
    kept = tuple(sorted(history, key=lambda past: first_day(past.as_of), reverse=True)[:MOST_HISTORY])
    return price if kept == price.history else price.model_copy(update={"history": kept})


MOST_GPUS = 1024  # of one row, by the catalogs' schema
ANY_REGION = "mixed"  # the catalogs' region of offers without one
MARKETS = ("marketplace", "community")  # tiers of third-party offers


def new_rows(
    unmatched: Iterable[Unmatched], rows: Sequence[Instance], gpus: Sequence[Gpu], region: str | None
) -> tuple[list[Instance], list[Unmatched]]:
    """New rows for offers without one, and the offers for which none can be made, each with the reason.

    A type is added in `region`, or in the region of most of its provider's rows.
    """
    of_type: dict[tuple[str, str], list[Unmatched]] = defaultdict(list)
    of_gpu: dict[tuple[str, str], list[Unmatched]] = defaultdict(list)
    left: list[Unmatched] = []
    for entry in unmatched:
        if entry.why != NO_ROW:
            left.append(entry)
        elif entry.offer.per_gpu:
            assert entry.gpu is not None  # NO_ROW is given only for a recognized GPU
            of_gpu[entry.provider, entry.gpu.id].append(entry)
        else:
            of_type[entry.provider, entry.offer.name.lower()].append(entry)
    made: list[tuple[Instance | str, list[Unmatched]]] = []
    by_words = by_core(gpus)
    for (provider, _), several in of_type.items():
        most_common = Counter(row.region for row in rows if row.provider == provider).most_common(1)
        home = region or (most_common[0][0] if most_common else "")
        here = [entry for entry in several if entry.offer.region.lower() == home.lower()]
        entry = (here or several)[-1]
        made.append((_of_type(entry, by_words) if here else f"new, but not sold in {home}", [entry]))
    types = {(row.provider, row.type.lower()) for row in rows}
    made += [(_of_gpu(several, types), several) for several in of_gpu.values()]
    left += [replace(entry, why=why) for why, several in made if isinstance(why, str) for entry in several]
    return [row for row, _ in made if isinstance(row, Instance)], left


def _of_type(entry: Unmatched, by_words: dict[frozenset[str], list[Gpu]]) -> Instance | str:
    """A row for a whole machine, or the reason why the list does not suffice for one."""
    offer = entry.offer
    if not offer.gpu or offer.gpu_count is None:
        return "new, but the list does not say its GPU and how many"
    count = int(offer.gpu_count)
    if not 1 <= count <= MOST_GPUS or count != offer.gpu_count:
        return f"new, with {offer.gpu_count:g} GPUs by the list, which is no whole number from 1"
    could = gpus_named(words(offer.gpu, "", offer.gpu_memory_gb), by_words)
    if len(could) != 1:
        named = " or ".join(gpu.id for gpu in could)
        return f"new, but its GPU could be {named}" if could else "new, with a GPU that is in no catalog"
    shape = {"unit": "instance", "gpu_count": count, "region": offer.region}
    return row_of_offers(entry.provider, offer.name, could[0], [offer], **shape)


def _of_gpu(several: list[Unmatched], types: set[tuple[str, str]]) -> Instance | str:
    """A row for a GPU by the hour, or the reason why the provider's offers for it are ambiguous."""
    gpu, provider = several[0].gpu, several[0].provider
    assert gpu is not None
    offers = [entry.offer for entry in several]
    if (provider, gpu.short_name.lower()) in types:
        return f"new, but {provider} has another row called {gpu.short_name}"
    for purchase in ORDER:
        if len({offer.prices[purchase] for offer in offers if purchase in offer.prices}) > 1:
            return f"new, but {provider} has several {purchase} prices for it"
    kind = "marketplace" if any(offer.tier.lower() in MARKETS for offer in offers) else "list"
    shape = {"unit": "per_gpu", "gpu_count": 1, "region": ANY_REGION, "offer": kind}
    return row_of_offers(provider, gpu.short_name, gpu, offers, **shape)


def row_of_offers(provider: str, name: str, gpu: Gpu, offers: Sequence[Offer], **fields: object) -> Instance:
    """A row made of offers alone, with the sizes on which they agree."""
    prices: dict[str, dict[str, object]] = {}
    source = ""
    for offer in sorted(offers, key=lambda o: o.as_of):
        for purchase, usd in offer.prices.items():
            kind = offer.kinds.get(purchase)
            prices[purchase] = {"purchase": purchase, "usd_per_hour": usd, "as_of": offer.as_of, "kind": kind}
            source = with_list(source, offer.title, purchase)
    for size in ("vcpu", "ram_gib", "local_nvme_gb", "network_gbps"):
        values = {getattr(offer, size) for offer in offers}
        fields[size] = values.pop() if len(values) == 1 else None
    return Instance.model_validate(
        {
            "provider": provider,
            "type": name,
            "gpu": gpu.id,
            "source": source,
            "confidence": "medium",
            "prices": [prices[purchase] for purchase in ORDER if purchase in prices],
            "checked_on": max(str(price["as_of"]) for price in prices.values()),
            **fields,
        },
    )
