"""One catalog row under new readings: the newest price holds, every other becomes its history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sheetgen.catalog.hardware import Instance, InstancePrice, PastPrice, first_day
from sheetgen.catalog.prices.cited import list_of, with_list, without_lists
from sheetgen.catalog.prices.match import Reading
from sheetgen.units import PURCHASES

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
            Change(
                instance=row.id,
                purchase=reading.purchase,
                what=what,
                old_usd=was.usd_per_hour if was else None,
                new_usd=reading.usd_per_hour,
                old_as_of=was.as_of if was else None,
                new_as_of=day,
                old_region=row.region,
                new_region=region,
                cited=reading.offer.cited,
                at=reading.offer.at,
                touches_row=after is not old,
            )
        )
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
        {
            "purchase": reading.purchase,
            "usd_per_hour": reading.usd_per_hour,
            "as_of": day,
            "kind": kind,
            "history": history,
        }
    )


def _with_past(old: InstancePrice, reading: Reading, day: str) -> InstancePrice:
    """The newer price as it is, with the older one that was read in its history."""
    read = PastPrice(usd_per_hour=reading.usd_per_hour, as_of=day, source=f"price list {reading.offer.cited}")
    history = _past(old.history, read)
    return old if history == old.history else old.model_copy(update={"history": history})


def _past(history: tuple[PastPrice, ...], price: PastPrice) -> tuple[PastPrice, ...]:
    """`history` with one more price at its place, the newest first; one that it has already is not told twice."""
    if any((p.usd_per_hour, p.as_of) == (price.usd_per_hour, price.as_of) for p in history):
        return history
    return tuple(sorted([price, *history], key=lambda p: first_day(p.as_of), reverse=True))[:MOST_HISTORY]
