"""The catalogs at the prices of lists: the changes to each row, and the texts of the changed files."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from sheetgen.catalog.base import MAX_FILE_BYTES, read_text, scalar, validate
from sheetgen.catalog.hardware import Instance, InstanceFile, InstanceRow
from sheetgen.catalog.load import Catalog, Folder
from sheetgen.catalog.plausible import Plausible
from sheetgen.catalog.prices.list_files import ListFile
from sheetgen.catalog.prices.list_tables import Fault
from sheetgen.catalog.prices.offers import Offer
from sheetgen.catalog.prices.own_list import Stated
from sheetgen.catalog.prices.own_rows import lay_own
from sheetgen.catalog.prices.price_lists import PriceList, read_prices
from sheetgen.catalog.prices.region_prices import RegionPrice, prices_of_regions
from sheetgen.catalog.prices.rows import Change, Reading, Unmatched, changed_row, match, new_rows
from sheetgen.errors import CatalogError, Problems, did_you_mean, shown
from sheetgen.units import count

MOST_REPORTED = 200  # problems of one run; a list of the wrong kind has one per line


@dataclass(frozen=True)
class Refresh:
    """The changes that price lists make to the catalogs; nothing is written yet."""

    lists: tuple[PriceList, ...]
    changes: tuple[Change, ...]  # one for every price read for a row, unchanged ones too
    changed: tuple[Instance, ...]  # rows to be written
    new: tuple[Instance, ...]  # rows for offers that the catalogs lack
    brought: tuple[Instance, ...]  # new rows from the user's own lists, which are written with the changed ones
    left: tuple[Unmatched, ...]
    notes: tuple[str, ...]  # sentences on the machines that prices without a machine are for
    skipped: tuple[Fault, ...]
    not_in_lists: tuple[str, ...]  # rows of the lists' providers that the lists do not price
    dropped: tuple[str, ...]  # prices in a row's old region that the lists lack in its new one
    n_other_regions: int  # lines of other regions than the requested one
    of_regions: tuple[RegionPrice, ...]  # in other regions than the rows' own, unchanged ones too
    doubts: tuple[str, ...]  # sentences on implausible prices of changes
    new_doubts: tuple[str, ...]  # the same for new rows and new pairs of type and region


def read_lists(
    places: Iterable[str], stated: Stated | None = None, files: Mapping[str, ListFile] = MappingProxyType({})
) -> tuple[PriceList, ...]:
    """The price lists at these places; `files` has those that `read_list` read already.

    Raises CatalogError with the problems of all files that are no price list.
    """
    problems = Problems()
    lists = [problems.attempt(read_prices, place, stated, files.get(place)) for place in dict.fromkeys(places)]
    if problems:
        raise CatalogError(*dict.fromkeys(problems))
    return tuple(lists)


def refresh(
    catalog: Catalog,
    lists: Sequence[PriceList],
    as_of: str | None = None,
    region: str | None = None,
    skip_broken: bool = False,
) -> Refresh:
    """The changes to the rows of `catalog` by the prices of `lists`, read on `as_of` where a line has no date.

    With `region`, in the lists' spelling, only prices of that region are used. Raises CatalogError for every broken or
    undated line and every contradiction between lines; with `skip_broken` these lines are in `skipped` instead.
    """
    if region is not None:  # as the lists spell it
        lists = [
            replace(price_list, offers=tuple(_in_region(price_list.offers, region.strip()))) for price_list in lists
        ]
        regions = (offer.region for price_list in lists for offer in price_list.offers)
        spelt = {listed.lower(): listed for listed in regions if listed}
        if (low := region.strip().lower()) not in spelt:
            near = did_you_mean(region.strip(), spelt)
            named = "which none of the lists has" if spelt else "but none of the lists names regions"
            raise CatalogError(f"region is {shown(region)!r}, {named}.{near}")
        region = spelt[low]
    rows, gpus = catalog.instances(), catalog.gpus()
    offers, undated, dateless = _dated(lists, as_of)
    own = lay_own([offer for offer in offers if offer.is_own], catalog, region)
    others = [offer for offer in offers if not offer.is_own]
    matched, unmatched = match([*others, *own.of_rows], rows, gpus)
    n_other_regions = 0
    if region is not None:
        n_read = len({reading.offer.at for reading in matched})
        matched = [reading for reading in matched if reading.offer.region.lower() in ("", region.lower())]
        n_other_regions = n_read - len({reading.offer.at for reading in matched})
    readings, at_odds = _agreeing(matched)
    faults = [*(fault for price_list in lists for fault in price_list.faults), *undated, *at_odds]
    if dateless or (faults and not skip_broken):
        raise CatalogError(*_problems(dateless, faults, lists))
    left_of_own = (*own.left, *(Unmatched(offer, why) for price_list in lists for offer, why in price_list.left))
    if left_of_own and not (own.of_rows or own.new):
        raise CatalogError(*_unusable(lists, left_of_own))
    of_row: dict[str, list[Reading]] = defaultdict(list)
    elsewhere: list[Reading] = []
    for reading in readings:
        in_own = region is not None or reading.offer.region.lower() in ("", reading.row.region.lower())
        (of_row[reading.row.id] if in_own else elsewhere).append(reading)
    of_regions, unlisted = prices_of_regions(elsewhere, catalog.regions)
    changes: list[Change] = []
    changed: list[Instance] = []
    dropped: list[str] = []
    for row in rows:
        if row.id in of_row:
            after, did = changed_row(row, of_row[row.id])
            changes += did
            kept = {price.purchase for price in after.prices}
            dropped += [f"{row.id} {price.purchase}" for price in row.prices if price.purchase not in kept]
            if any(change.touches_row for change in did):
                changed.append(after)
    new, left = new_rows(unmatched, rows, gpus, region)
    plausible = Plausible(catalog)
    of_forms = [reading for reading in readings if not reading.offer.is_own]  # lists of all that a provider sells
    providers = {reading.row.provider for reading in of_forms} | {entry.provider for entry in unmatched}
    priced = {reading.row.id for reading in readings}
    return Refresh(
        lists=tuple(lists),
        changes=tuple(changes),
        changed=tuple(changed),
        new=tuple(new),
        brought=tuple(own.new),
        left=(*left, *left_of_own, *unlisted),
        notes=tuple(own.notes),
        skipped=tuple(faults),
        not_in_lists=tuple(r.id for r in rows if r.provider in providers and r.id not in priced),
        dropped=tuple(dropped),
        n_other_regions=n_other_regions,
        of_regions=tuple(of_regions),
        doubts=(
            *_doubts([*changes, *(change for change in of_regions if not change.is_new_pair)], catalog, plausible),
            *(doubt for row in own.new for _, doubt in plausible.doubts_of(row)),
        ),
        new_doubts=(
            *(doubt for row in new for _, doubt in plausible.doubts_of(row)),
            *_doubts((change for change in of_regions if change.is_new_pair), catalog, plausible),
        ),
    )


def _in_region(offers: Sequence[Offer], region: str) -> Iterator[Offer]:
    """The offers of one list; those of the user's own list without any region get this one."""
    names_regions = any(offer.region for offer in offers)
    return (replace(offer, region=region) if offer.is_own and not names_regions else offer for offer in offers)


def _doubts(changes: Iterable[Change], catalog: Catalog, plausible: Plausible) -> Iterator[str]:
    """Sentences on the implausible prices among some changes."""
    for change in changes:
        row = catalog.instance(change.instance)
        if change.what in ("changed", "added", "moved") and (
            why := plausible.doubt(row.gpu, row.gpu_count, change.purchase, change.new_usd, change.old_usd)
        ):
            place = f" in {change.new_region}" if change.new_region != row.region else ""
            yield f"{change.at}: {change.instance} {change.purchase}{place} is {change.new_usd:,.6g} $/h, {why}"


def files(catalog: Catalog, to: Path, rows: Iterable[Instance]) -> dict[Path, str]:
    """The texts of the instance files of the folder `to` with these rows, by path; other rows in them are kept.

    Raises CatalogError where an existing file cannot be read, or a new one would be too large.
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
        # A new file takes the provider's order from the first folder that has one.
        file = present or next((f.entry(relative, InstanceFile) for f in catalog.folders if f.has(relative)), None)
        order = file.order if file else InstanceFile.model_fields["order"].default
        text = file_text(provider, order, [*merged, *left.values()], f"{folder.shown_as}/{relative}")
        out[to / relative] = comment_of(to / relative) + text
    return out


def comment_of(path: Path) -> str:
    """The comment at the top of a file, which is kept when the file is rewritten; other comments are lost."""
    lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True) if path.is_file() else ()
    return "".join(itertools.takewhile(lambda line: line.startswith("#"), lines))


def _dated(lists: Iterable[PriceList], as_of: str | None) -> tuple[list[Offer], list[Fault], list[str]]:
    """The offers with their date (a line's own, else `as_of`), faults of lines without one, and messages on lists
    without any date."""
    offers: list[Offer] = []
    faults: list[Fault] = []
    dateless: list[str] = []
    for price_list in lists:
        dated = [
            offer if offer.as_of else replace(offer, as_of=as_of or "", has_own_day=False)
            for offer in price_list.offers
        ]
        undated = [offer for offer in dated if not offer.as_of]
        if undated and len(undated) == len(dated):
            example = "such as --as-of 2026-11-20"
            dateless.append(f"{price_list.where}: says no date. Give the day when its prices were read, {example}.")
            continue
        problem = f"{shown(price_list.date)} is empty. Write the day, or give one by --as-of."
        faults += [Fault(price_list.where, offer.line, problem) for offer in undated]
        offers += [offer for offer in dated if offer.as_of]
    return offers, faults, dateless


def _agreeing(readings: Iterable[Reading]) -> tuple[list[Reading], list[Fault]]:
    """The readings without those that give one row, class and day several prices, which become faults."""
    by_price: dict[tuple[str, str, str, str], list[Reading]] = defaultdict(list)
    for reading in readings:
        offer = reading.offer
        by_price[reading.row.id, offer.region.lower(), reading.purchase, offer.as_of].append(reading)
    kept: list[Reading] = []
    faults: list[Fault] = []
    for (row, region, purchase, day), (first, *others) in by_price.items():
        at_odds = [other for other in others if other.usd_per_hour != first.usd_per_hour]
        kept += [] if at_odds else [first, *others]
        for other in at_odds:
            priced = (
                f"{row} {purchase}" if region in ("", first.row.region.lower()) else f"{row} {purchase} in {region}"
            )
            problem = f"{priced} is {other.usd_per_hour:g} here and {first.usd_per_hour:g} in {first.offer.at}"
            faults.append(
                Fault(other.offer.where, other.offer.line, f"{problem}, both of {day}. Keep one.", is_pair=True)
            )
    return kept, faults


def _problems(dateless: Sequence[str], faults: Sequence[Fault], lists: Sequence[PriceList]) -> list[str]:
    """The problems in the order of the lists, at most MOST_REPORTED, and a sentence with their number."""
    order = {price_list.where: i for i, price_list in enumerate(lists)}
    ordered = sorted(faults, key=lambda fault: (order[fault.where], fault.line))
    problems = [*dateless, *(str(fault) for fault in ordered[:MOST_REPORTED])]
    n_problems = len(dateless) + len(ordered)
    if n_problems > 1:
        more = f"{len(ordered) - MOST_REPORTED:,} more are not shown. " if len(ordered) > MOST_REPORTED else ""
        skip = " --skip-broken leaves broken lines out." if faults else ""
        problems.append(f"{more}{n_problems:,} problems. Nothing was written.{skip}")
    return problems


def _unusable(lists: Sequence[PriceList], left: Sequence[Unmatched]) -> list[str]:
    """A sentence for each list of the user's own with the reasons why none of its lines can be used."""
    problems = []
    for price_list in lists:
        by_why: dict[str, list[str]] = defaultdict(list)
        for line in left:
            if line.offer.where == price_list.where:
                by_why[line.why].append(line.offer.name)
        whys = (
            f"{count(len(names), 'line')} {why} ({', '.join(map(shown, dict.fromkeys(names[:3])))})"
            for why, names in by_why.items()
        )
        problems += [f"{price_list.where}: no line can be used: {'; '.join(whys)}."] if by_why else []
    return problems


_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/;@%+-]*")


def file_text(provider: str, order: int, rows: Sequence[InstanceRow], where: str) -> str:
    """The text of an instance file with these rows; it is asserted to read back as the same rows.

    Raises CatalogError, under the name `where`, for more than a catalog file may hold.
    """
    names = set(InstanceRow.model_fields)  # without the provider of an `Instance`
    few = {"nvlink_domain_gpus", "sold_as"}  # left out where empty
    fields = [
        row.model_dump(include=names - {name for name in few if not getattr(row, name)})
        | {"prices": [price.model_dump(exclude_defaults=True) for price in row.prices]}
        for row in rows
    ]
    text = yaml_text({"provider": provider, "order": order, "instances": fields}, where)
    back = validate(read_text(text, where), InstanceFile)
    assert [row.model_dump() for row in back.instances] == [row.model_dump(include=names) for row in rows]
    return text


def yaml_text(fields: Mapping[str, object], where: str, comment: str = "") -> str:
    """The text of a catalog file with these fields, below a comment. Raises CatalogError if it would be too large."""
    lines = (line for name, value in fields.items() for line in _yaml_lines(name, value))
    return bounded(comment + "".join(f"{line}\n" for line in lines), where)


def bounded(text: str, where: str) -> str:
    """`text` unchanged. Raises CatalogError for more than a catalog file may hold."""
    if len(text.encode()) > MAX_FILE_BYTES:
        raise CatalogError(f"{where}: would be larger than {MAX_FILE_BYTES:,} bytes, the most a catalog file may have.")
    return text


def _yaml_lines(name: str, value: object) -> list[str]:
    """A field as lines of YAML: a list below its name, and a mapping in it on one line unless it contains a list."""
    if not isinstance(value, (list, tuple)):
        return [f"{name}: {yaml_scalar(name, value)}"]
    out = [f"{name}:" if value else f"{name}: []"]
    for item in value:
        if not isinstance(item, dict):
            out.append(f"  - {yaml_scalar(name, item)}")
        elif any(isinstance(part, (list, tuple)) for part in item.values()):
            first, *rest = (line for field in item.items() for line in _yaml_lines(*field))
            out += [f"  - {first}", *(f"    {line}" for line in rest)]
        else:
            out.append("  - {" + ", ".join(line for field in item.items() for line in _yaml_lines(*field)) + "}")
    return out


def yaml_scalar(name: str, value: object) -> str:
    """A field's value, quoted where YAML would read something else."""
    if name == "as_of" and value is not None:
        return f"'{value}'"
    text = scalar(value, _PLAIN)
    return text.removesuffix(".0") if isinstance(value, float) else text
