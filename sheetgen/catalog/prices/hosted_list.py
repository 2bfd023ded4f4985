"""A list of hosted prices (one row per model and provider, US dollars per token) as the file hosted.yaml."""

from __future__ import annotations

import contextlib
import datetime
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sheetgen.catalog.base import Document, first_day, read_text, validate
from sheetgen.catalog.hosted import (
    MOST_USD_PER_MILLION,
    Host,
    HostedFile,
    HostedModel,
    HostedPrice,
    is_retired,
    models_by_key,
    name_key,
)
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.plausible import Plausible
from sheetgen.catalog.prices.list_files import ListFile, read_list
from sheetgen.catalog.prices.list_tables import Fault, read_table
from sheetgen.catalog.prices.refresh import MOST_REPORTED, comment_of, yaml_text
from sheetgen.errors import CatalogError, shown

COLUMNS = ("model", "provider", "input_usd_per_token", "output_usd_per_token")
CACHED, LONGEST, SOURCE = "cache_read_usd_per_token", "max_input_tokens", "source"
RETIRES, READ_ON = "deprecation_date", "source_date"
TOKENS = 10**6
# A price that no page stands for, under this share of what the middle one of the other hosts asks, is no offer unless
# another host is near it: lists carry the smallest size's price for a 70B model, and prices of services that closed.
LEAST_SHARE = 0.2
NEAR = 2  # times
PROMPTS_PER_ANSWER = 3  # tokens, for such comparisons; as the field blends the two prices
MOST_DIGITS = 18  # of a number of tokens
DIGITS = 6  # of a price of a million tokens: a list has it by the token, in floating point


@dataclass(frozen=True)
class HostedRefresh:
    """What a list does to hosted.yaml. Nothing of it is written yet."""

    where: str
    file: HostedFile
    n_lines: int
    n_matched: int  # lines that price a model of the catalogs; of those alike in all, one stays in the file
    changed: tuple[tuple[str, HostedPrice, HostedPrice], ...]  # model, the price before, the price now
    added: tuple[tuple[str, HostedPrice], ...]
    gone: tuple[tuple[str, HostedPrice], ...]
    left_out: Mapping[str, tuple[str, ...]]  # names by reason
    skipped: tuple[Fault, ...]
    doubts: tuple[str, ...]  # prices that are far from what they were, each with how far


def read_hosted(places: Sequence[str], sheet: str | None = None) -> tuple[ListFile | None, dict[str, ListFile]]:
    """The list of hosted prices among `places`, where there is one; and every list that could be read, by its place.

    Raises CatalogError where it does not stand alone: it is another kind of file, as a whole.
    """
    read: dict[str, ListFile] = {}
    for place in dict.fromkeys(places):
        with contextlib.suppress(CatalogError):  # which is told with those of all other lists
            read[place] = read_list(place, sheet)
    hosted = [place for place, one in read.items() if _is_hosted(one)]
    if hosted and len(set(places)) > 1:
        raise CatalogError(f"{read[hosted[0]].where}: holds hosted prices. Give that list alone.")
    return (read[hosted[0]] if hosted else None), read


def _is_hosted(read: ListFile) -> bool:
    first = next((cells for table in read.tables[:1] for _, cells in table.records), ())
    header = {name.lower() for name in first}
    return "provider" in header and len(set(COLUMNS) & header) >= len(COLUMNS) - 1


def refresh_hosted(catalog: Catalog, read: ListFile, as_of: str | None, skip_broken: bool = False) -> HostedRefresh:
    """hosted.yaml of the catalogs at the prices of a list that was read on `as_of`.

    A line prices the model whose id or Hugging Face name its own reads like, or that `also_called` names; any other
    is left out, and so are lines without a price, of a host that closed or past their deprecation date, and those
    that another of the same host is as cheap as in all. A line's own day says more than `as_of`.

    Raises CatalogError where the list lacks a column, for every broken line, and without a day.
    """
    table = read_table(read.tables[0])
    where, cited, lines, faults = read.where, read.cited, table.lines, list(table.faults)
    if missing := [column for column in COLUMNS if column not in {name.lower() for name in table.header}]:
        raise CatalogError(f"{table.at}: looks like hosted prices, but has no column {', '.join(missing)}.")
    days = {_day_of(cells) for cells in lines.values()}
    if as_of is None and "" not in days:
        as_of = max(days, default=None)
    if as_of is None:
        raise CatalogError(
            f"{where}: says no date. Give the day when its prices were read, such as --as-of 2026-11-20."
        )
    known = catalog.file(HostedFile)
    models = models_by_key(catalog.models(), known.also_called)
    others = {one.name for one in known.other_weights}
    hosts = {provider: one.id for one in known.hosts for provider in one.providers}
    closed = {host.id for host in known.hosts if host.closed_on and first_day(host.closed_on) <= as_of}
    known_ids, new_hosts = set(hosts.values()), dict[str, Host]()
    found: dict[str, list[HostedPrice]] = {}
    left_out: dict[str, list[str]] = {}
    for number, cells in lines.items():
        name, provider = cells["model"], cells["provider"]
        key, precision = name_key(name)
        model = models.get(key)
        if reason := _reason(name, model, others) or ("of hosts that closed" if hosts.get(provider) in closed else ""):
            left_out.setdefault(reason, []).append(name)
            continue
        usd = [_per_million(cells.get(column, "")) for column in (*COLUMNS[2:], CACHED)]
        if bad := [value for value in usd if isinstance(value, str)]:
            faults.append(Fault(where, number, f"{shown(name)}: a price {bad[0]}"))
            continue
        if not usd[0] or not usd[1]:
            left_out.setdefault("without a price, or free", []).append(name)
            continue
        longest = cells.get(LONGEST, "")
        fields = {
            "host": hosts.get(provider) or _host_id(provider),
            "name": name,
            "precision": precision,
            "input_usd_per_million": usd[0],
            "cached_usd_per_million": usd[2] or None,
            "output_usd_per_million": usd[1],
            "max_input_tokens": (longest.isdecimal() and len(longest) <= MOST_DIGITS and int(longest)) or None,
            "source": cells.get(SOURCE) or None,
            "deprecation_date": cells.get(RETIRES) or None,
            "read_on": day if (day := _day_of(cells)) and day != as_of else None,
        }
        try:
            price = validate(Document(shown(name), fields, {}), HostedPrice)
            if price.host not in known_ids:
                new = {"id": price.host, "name": provider, "providers": (provider,)}
                new_hosts[price.host] = validate(Document(shown(name), new, {}), Host)
        except CatalogError as error:
            faults.append(Fault(where, number, error.problems[0]))
            continue
        if is_retired(price, first_day(price.read_on or as_of)):
            left_out.setdefault("past their deprecation date", []).append(name)
            continue
        found.setdefault(str(model), []).append(price)
    if faults and not skip_broken:
        raise CatalogError(*(str(fault) for fault in sorted(faults, key=lambda one: one.line)[:MOST_REPORTED]))
    for model, prices in found.items():
        if odd := _too_cheap(prices):
            left_out.setdefault("without a source page, under a fifth of what other hosts ask", []).extend(
                one.name for one in odd
            )
            found[model] = [one for one in prices if one not in odd]
    file = HostedFile(
        read_on=as_of,
        origin=f"price list {cited}",
        hosts=(*known.hosts, *new_hosts.values()),
        also_called=known.also_called,
        other_weights=known.other_weights,
        models=tuple(HostedModel(model=model, prices=cheapest(found[model])) for model in sorted(found)),
    )
    before, now = _by_name(known), _by_name(file)
    same = before.keys() & now.keys()
    changed = tuple((key[0], before[key], now[key]) for key in now if key in same and before[key] != now[key])
    return HostedRefresh(
        where,
        file,
        len(lines) + len(faults),
        sum(map(len, found.values())),
        changed=changed,
        added=tuple((key[0], now[key]) for key in now if key not in same),
        gone=tuple((key[0], before[key]) for key in before if key not in same),
        left_out={reason: tuple(names) for reason, names in left_out.items()},
        skipped=tuple(faults),
        doubts=tuple(_doubts(changed, Plausible(catalog))),
    )


def _doubts(changed: Iterable[tuple[str, HostedPrice, HostedPrice]], plausible: Plausible) -> Iterator[str]:
    for model, before, now in changed:
        for name in (field for field in HostedPrice.model_fields if field.endswith("_usd_per_million")):
            old, usd = getattr(before, name), getattr(now, name)
            if old and usd and (why := plausible.far_from(usd, old)):
                yield f"{model}: {shown(now.name, 80)}: {name} is {usd:,.6g}, {why} before"


def _reason(name: str, model: str | None, others: Iterable[str]) -> str:
    """Why a line is not for the file, whatever its price; empty where it is."""
    if model is None:
        return "of models that are not in the catalogs"
    if name in others:
        return "of other weights than the catalog's"
    if "us-gov" in name:
        return "sold to government alone"
    return ""


def _day_of(cells: Mapping[str, str]) -> str:
    """The day that a line states of itself, such as 2026-11-28 of `2026-11-28 (release 1.110.2)`; empty for none."""
    return cells.get(READ_ON, "").split(" ")[0]


def _per_million(text: str) -> float | str | None:
    """US dollars per million tokens of a price by the token; None where there is none, what is wrong else."""
    if not text:
        return None
    try:
        usd = -1.0 if "_" in text or not text.isascii() else float(text)
    except ValueError:
        usd = -1.0
    if not 0 <= usd * TOKENS <= MOST_USD_PER_MILLION:  # nor nan
        return f"is {shown(text)!r}. It must be US dollars for one token, 0 to {MOST_USD_PER_MILLION / TOKENS:g}."
    return round(usd * TOKENS, DIGITS)


def _host_id(provider: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in provider.lower()).strip("-._")


def _too_cheap(prices: Sequence[HostedPrice]) -> list[HostedPrice]:
    """Prices without a source page that are too far below those of other hosts to be one's offer."""

    def blended(one: HostedPrice) -> float:
        parts = PROMPTS_PER_ANSWER * one.input_usd_per_million + one.output_usd_per_million
        return parts / (PROMPTS_PER_ANSWER + 1)

    of_host: dict[str, float] = {}
    for one in prices:
        of_host[one.host] = min(of_host.get(one.host, float("inf")), blended(one))

    def stands_alone(one: HostedPrice) -> bool:
        others = [usd for host, usd in of_host.items() if host != one.host]
        usd = blended(one)
        return len(others) > 1 and usd * NEAR < min(others) and usd < LEAST_SHARE * statistics.median_low(others)

    return [one for one in prices if not one.source and stands_alone(one)]


def cheapest(prices: Sequence[HostedPrice]) -> tuple[HostedPrice, ...]:
    """Those that no other of the same host and precision is as cheap as in all while it takes prompts as long, and may
    be named by as many answers: it has a source page too, was read as late and retires no earlier."""

    def terms(one: HostedPrice) -> tuple[float, ...]:
        cached = one.cached_usd_per_million or one.input_usd_per_million
        ends = (
            one.max_input_tokens or math.inf,
            bool(one.source),
            _ordinal(one.deprecation_date),
            _ordinal(one.read_on),
        )
        return one.input_usd_per_million, cached, one.output_usd_per_million, *(-end for end in ends)

    kept: list[HostedPrice] = []
    for one in sorted(prices, key=lambda p: (terms(p), len(p.name), p.name)):
        rivals = (k for k in kept if (k.host, k.precision) == (one.host, one.precision))
        if not any(all(a <= b for a, b in zip(terms(k), terms(one), strict=True)) for k in rivals):
            kept.append(one)
    return tuple(kept)


def _ordinal(day: str | None) -> float:
    """A date as a number of days, to be compared; none is later than any."""
    return datetime.date.fromisoformat(first_day(day)).toordinal() if day else math.inf


def _by_name(file: HostedFile) -> dict[tuple[str, str], HostedPrice]:
    return {(one.model, price.name): price for one in file.models for price in one.prices}


def hosted_text(file: HostedFile, to: Path) -> dict[Path, str]:
    """The file of the folder `to`, by its path; the comment at its top stays.

    Raises CatalogError for more than a catalog file may hold.
    """
    path = to / HostedFile.file_name
    text = yaml_text(file.model_dump(exclude_none=True), str(path), comment_of(path))
    assert validate(read_text(text, str(path)), HostedFile) == file
    return {path: text}


def hosted_report(found: HostedRefresh) -> Iterable[str]:
    """The list, what changes, and what is left out, in sentences."""
    n_prices = sum(len(one.prices) for one in found.file.models)
    n_hosts = len({price.host for one in found.file.models for price in one.prices})
    yield f"{found.where}: hosted prices, {found.n_lines:,} lines."
    yield (
        f"{found.n_matched:,} price {len(found.file.models):,} models of the catalogs; {n_prices:,} of them, of "
        f"{n_hosts} hosts, are cheapest for some load and kept."
    )
    if unsourced := sum(not price.source for one in found.file.models for price in one.prices):
        yield f"Without a source page, {unsourced:,}: `list hosts` has them, no answer names them."
    kinds = {"changed": len(found.changed), "new": len(found.added), "gone": len(found.gone)}
    yield f"Against the catalog: {', '.join(f'{count:,} {what}' for what, count in kinds.items())}."
    for model, price in found.added:
        yield f"  new: {model}: {price.host} {shown(price.name, 80)}"
    for model, before, now in found.changed:
        old, new = (
            "/".join(f"{usd:g}" for usd in (p.input_usd_per_million, p.output_usd_per_million)) for p in (before, now)
        )
        yield f"  changed: {model}: {shown(now.name, 80)}: {old} to {new} $ per million"
    for reason, names in sorted(found.left_out.items(), key=lambda pair: -len(pair[1])):
        each = list(dict.fromkeys(names))
        few = ", ".join(shown(name, 60) for name in each[:4])
        yield f"Left out, {len(names):,} {reason}: {few}{' ...' if len(each) > 4 else ''}"
