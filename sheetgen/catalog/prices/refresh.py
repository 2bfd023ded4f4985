"""The catalogs at the prices of lists: what changes in which row, and the files as they are then."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sheetgen.catalog.base import MAX_FILE_BYTES, read_text, scalar, validate
from sheetgen.catalog.hardware import Instance, InstanceFile, InstancePrice, InstanceRow
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.names import Folder
from sheetgen.catalog.prices.match import Reading, Unmatched, match
from sheetgen.catalog.prices.offers import Offer, PriceList, read_prices
from sheetgen.catalog.prices.rows import Change, changed_row, new_rows
from sheetgen.catalog.prices.table import Fault
from sheetgen.errors import CatalogError, did_you_mean, shown

MOST_REPORTED = 200  # problems of one run; a list of the wrong kind has one a line


@dataclass(frozen=True)
class Refresh:
    """What price lists do to the catalogs. Nothing of it is written yet."""

    lists: tuple[PriceList, ...]
    changes: tuple[Change, ...]  # one for every price that was read for a row, unchanged ones too
    changed: tuple[Instance, ...]  # rows as they are to be written
    new: tuple[Instance, ...]  # rows that the lists have and the catalogs not
    left: tuple[Unmatched, ...]
    skipped: tuple[Fault, ...]
    not_in_lists: tuple[str, ...]  # rows of the lists' providers that the lists do not price
    dropped: tuple[str, ...]  # prices of a row's old region that the lists do not have in its new one
    n_other_regions: int


def read_lists(places: Iterable[str]) -> tuple[PriceList, ...]:
    """Every list. Raises CatalogError with the problems of all that are none."""
    lists: list[PriceList] = []
    problems: list[str] = []
    for place in dict.fromkeys(places):
        try:
            lists.append(read_prices(place))
        except CatalogError as error:
            problems += error.problems
    if problems:
        raise CatalogError(*dict.fromkeys(problems))
    return tuple(lists)


def refresh(
    catalog: Catalog, lists: Sequence[PriceList], as_of: str | None = None, region: str | None = None,
    skip_broken: bool = False,
) -> Refresh:  # fmt: skip
    """The rows of `catalog` at the prices of `lists`, read on `as_of` where a line has no day of its own.

    Raises CatalogError with every line that is broken, undated or at odds with another, unless such lines are
    to be left out, which `skipped` then has.
    """
    if region is not None:
        region = _known_region(region, lists)
    faults = [fault for one in lists for fault in one.faults]
    offers, undated, dateless = _dated(lists, as_of)
    matches = match(offers, catalog.instances(), catalog.gpus(), region)
    readings, at_odds = _agreeing(matches.readings, as_of)
    faults += undated + at_odds
    if dateless or (faults and not skip_broken):
        raise CatalogError(*_problems(dateless, faults, lists))
    of_row: dict[str, list[tuple[Reading, str]]] = defaultdict(list)
    for reading in readings:
        of_row[reading.row.id].append((reading, _day(reading.offer, as_of)))
    changes: list[Change] = []
    changed: list[Instance] = []
    dropped: list[str] = []
    for row in catalog.instances():
        if row.id in of_row:
            after, did = changed_row(row, of_row[row.id])
            changes += did
            kept = {price.purchase for price in after.prices}
            dropped += [f"{row.id} {price.purchase}" for price in row.prices if price.purchase not in kept]
            if any(one.touches_row for one in did):
                changed.append(after)
    new, left = new_rows(matches.unmatched, catalog.instances(), catalog.gpus(), region, as_of)
    providers = {r.row.provider for r in readings} | {one.provider for one in matches.unmatched}
    return Refresh(
        lists=tuple(lists), changes=tuple(changes), changed=tuple(changed), new=tuple(new), left=tuple(left),
        skipped=tuple(faults),
        not_in_lists=tuple(r.id for r in catalog.instances() if r.provider in providers and r.id not in of_row),
        dropped=tuple(dropped), n_other_regions=matches.n_other_regions,
    )  # fmt: skip


def files(catalog: Catalog, to: Path, rows: Iterable[Instance]) -> dict[Path, str]:
    """The instance files of the folder `to` with these rows in them, by provider; its other rows stay.

    Raises CatalogError where a file that is there cannot be read, or one would be too large.
    """
    folder = Folder(to, str(to).rstrip("/"), has_index=False)
    out: dict[Path, str] = {}
    by_provider: dict[str, dict[str, InstanceRow]] = defaultdict(dict)
    for row in rows:
        by_provider[row.provider][row.type.lower()] = row
    for provider, left in by_provider.items():
        relative = f"instances/{provider}.yaml"
        present = folder.entry(relative, InstanceFile) if folder.has(relative) else None
        merged = [left.pop(row.type.lower(), row) for row in (present.instances if present else ())]
        # Else the provider's place in the catalogs, which the first folder decides.
        known = present or next(f.entry(relative, InstanceFile) for f in catalog.folders if f.has(relative))
        text = file_text(provider, known.order, [*merged, *left.values()], f"{folder.shown_as}/{relative}")
        out[to / relative] = (_comment(to / relative) if present else "") + text
    return out


def _comment(path: Path) -> str:
    """The comment at the top of a file, which its rows do not hold; others are lost when it is written anew."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return "".join(line + "\n" for line in itertools.takewhile(lambda line: line.startswith("#"), lines))


def _known_region(region: str, lists: Iterable[PriceList]) -> str:
    """`region` as the lists spell it."""
    known = {offer.region.lower(): offer.region for one in lists for offer in one.offers if offer.region}
    if region.strip().lower() not in known:
        near = did_you_mean(region.strip(), known)
        named = "which none of the lists has" if known else "but none of the lists names regions"
        raise CatalogError(f"region is {shown(region)!r}, {named}.{near}")
    return known[region.strip().lower()]


def _day(offer: Offer, as_of: str | None) -> str:
    """When the price was read: a line's own day says more than that of the list."""
    day = offer.as_of or as_of
    assert day is not None  # _dated leaves no other
    return day


def _dated(lists: Iterable[PriceList], as_of: str | None) -> tuple[list[Offer], list[Fault], list[str]]:
    """The offers whose day is known, the lines that lack one, and the lists that never say one."""
    offers: list[Offer] = []
    faults: list[Fault] = []
    dateless: list[str] = []
    for one in lists:
        undated = [offer for offer in one.offers if not (offer.as_of or as_of)]
        if undated and len(undated) == len(one.offers):
            example = "such as --as-of 2026-11-20"
            dateless.append(f"{one.where}: says no date. Give the day when its prices were read, {example}.")
            continue
        what = f"{one.format.date} is empty. Write the day, or give one by --as-of."
        faults += [Fault(one.where, offer.line, what) for offer in undated]
        offers += [offer for offer in one.offers if offer.as_of or as_of]
    return offers, faults, dateless


def _agreeing(readings: Iterable[Reading], as_of: str | None) -> tuple[list[Reading], list[Fault]]:
    """The readings less those that price one row in one class on one day differently, which two lists can."""
    first: dict[tuple[str, str, str], Reading] = {}
    kept: list[Reading] = []
    faults: list[Fault] = []
    at_odds: set[tuple[str, str, str]] = set()
    for reading in readings:
        key = (reading.row.id, reading.purchase, _day(reading.offer, as_of))
        before = first.setdefault(key, reading)
        if before.usd_per_hour != reading.usd_per_hour:
            at_odds.add(key)
            what = (
                f"{key[0]} {key[1]} is {reading.usd_per_hour:g} here and {before.usd_per_hour:g} in "
                f"{before.offer.at}, both of {key[2]}. Keep one."
            )
            faults.append(Fault(reading.offer.where, reading.offer.line, what, is_pair=True))
        else:
            kept.append(reading)
    return [r for r in kept if (r.row.id, r.purchase, _day(r.offer, as_of)) not in at_odds], faults


def _problems(dateless: Sequence[str], faults: Sequence[Fault], lists: Sequence[PriceList]) -> list[str]:
    """Every problem in the order of the lists, and how many there are."""
    order = {one.where: i for i, one in enumerate(lists)}
    ordered = sorted(faults, key=lambda fault: (order[fault.where], fault.line))
    problems = [*dateless, *(str(fault) for fault in ordered[:MOST_REPORTED])]
    n_problems = len(dateless) + len(ordered)
    if n_problems > 1:
        more = f"{len(ordered) - MOST_REPORTED:,} more are not shown. " if len(ordered) > MOST_REPORTED else ""
        problems.append(f"{more}{n_problems:,} problems. Nothing was written.")
        if faults:
            problems[-1] += " --skip-broken leaves broken lines out."
    return problems


_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/;@%+-]*")


def file_text(provider: str, order: int, rows: Sequence[InstanceRow], where: str) -> str:
    """Text that reads back as these rows, and that `sheetgen check` accepts; held to it here.

    Raises CatalogError, under the name `where`, for more than a catalog file may hold.
    """
    lines = [f"provider: {_scalar(provider)}", f"order: {order}", "instances:" if rows else "instances: []"]
    for row in rows:
        lines += _row(row)
    text = "\n".join(lines) + "\n"
    if len(text.encode()) > MAX_FILE_BYTES:
        raise CatalogError(f"{where}: would be larger than {MAX_FILE_BYTES:,} bytes, the most a catalog file may have.")
    back = validate(read_text(text, where), InstanceFile)
    assert [row.model_dump() for row in back.instances] == [_fields(row) for row in rows]
    return text


def _fields(row: InstanceRow) -> dict[str, object]:
    """What a file says of a row: an `Instance` has its provider besides."""
    return row.model_dump(include=set(InstanceRow.model_fields))


def _row(row: InstanceRow) -> Iterator[str]:
    start = "  - "
    for name in InstanceRow.model_fields:
        value = getattr(row, name)
        if name == "prices":
            yield f"{start}prices:" if value else f"{start}prices: []"
            for price in value:
                yield from _price(price)
        elif name == "notes":
            yield f"{start}notes:" if value else f"{start}notes: []"
            yield from (f"      - {_scalar(note)}" for note in value)
        else:
            yield f"{start}{name}: {_scalar(value)}"
        start = "    "


def _price(price: InstancePrice) -> Iterator[str]:
    """A line; with a history a block, and under it a line for every earlier price."""
    fields: dict[str, object] = {"purchase": price.purchase, "usd_per_hour": price.usd_per_hour, "as_of": price.as_of}
    if price.kind is not None:
        fields["kind"] = price.kind
    if not price.history:
        yield f"      - {_flow(fields)}"
        return
    start = "      - "
    for name, value in fields.items():
        yield f"{start}{name}: {_quoted_date(name, value)}"
        start = "        "
    yield f"{start}history:"
    for past in price.history:
        before: dict[str, object] = {"usd_per_hour": past.usd_per_hour, "as_of": past.as_of}
        yield f"          - {_flow(before | ({'source': past.source} if past.source else {}))}"


def _flow(fields: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{name}: {_quoted_date(name, value)}" for name, value in fields.items()) + "}"


def _quoted_date(name: str, value: object) -> str:
    return f"'{value}'" if name == "as_of" and value is not None else _scalar(value)


def _scalar(value: object) -> str:
    text = scalar(value, _PLAIN)
    return text.removesuffix(".0") if isinstance(value, float) else text
