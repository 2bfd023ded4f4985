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
# A price without a source page below this share of the other hosts' median is dropped, unless another host's is within
# a factor of NEAR: lists carry the smallest size's price for a 70B model, and prices of services that closed.
LEAST_SHARE = 0.2
NEAR = 2
PROMPTS_PER_ANSWER = 3  # prompt tokens per output token in such comparisons, the industry's usual blend
MOST_DIGITS = 18  # of a number of tokens
DIGITS = 6  # decimals of a price per million tokens, which lists state per token in floating point


@dataclass(frozen=True)
class HostedRefresh:
    """The changes that a list makes to hosted.yaml; nothing is written yet."""

    where: str
    file: HostedFile
    n_lines: int
    n_matched: int  # lines that price a model of the catalogs; of identical offers the file keeps one
    changed: tuple[tuple[str, HostedPrice, HostedPrice], ...]  # model, the price before, the price now
    added: tuple[tuple[str, HostedPrice], ...]
    gone: tuple[tuple[str, HostedPrice], ...]
    left_out: Mapping[str, tuple[str, ...]]  # names by reason
    skipped: tuple[Fault, ...]
    doubts: tuple[str, ...]  # sentences on prices that changed implausibly much


def read_hosted(places: Sequence[str], sheet: str | None = None) -> tuple[ListFile | None, dict[str, ListFile]]:
    """The list of hosted prices among `places`, if there is one, and every list that could be read, by place.

    Raises CatalogError where a list of hosted prices is given together with others.
    """
    read: dict[str, ListFile] = {}
    for place in dict.fromkeys(places):
        with contextlib.suppress(CatalogError):  # read_lists reports it with those of all lists
            read[place] = read_list(place, sheet)
    hosted = [place for place, file in read.items() if _is_hosted(file)]
    if hosted and len(set(places)) > 1:
        raise CatalogError(f"{read[hosted[0]].where}: holds hosted prices. Give that list alone.")
    return (read[hosted[0]] if hosted else None), read


def _is_hosted(read: ListFile) -> bool:
    first = next((cells for table in read.tables[:1] for _, cells in table.records), ())
    header = {name.lower() for name in first}
    return "provider" in header and len(set(COLUMNS) & header) >= len(COLUMNS) - 1


def refresh_hosted(catalog: Catalog, read: ListFile, as_of: str | None, skip_broken: bool = False) -> HostedRefresh:
    """hosted.yaml of the catalogs at the prices of a list that was read on `as_of`.

    A line prices the model whose id or Hugging Face name reads like the line's name, or that `also_called` gives. Lines
    of other models are left out, as are lines without a price, of closed hosts or past their deprecation date, and
    offers that another of the same host matches or beats in every respect. A line's own date overrides `as_of`.

    Raises CatalogError for a missing column, a missing date and, unless `skip_broken`, every broken line.
    """
    table = read_table(read.tables[0])
    where, cited, lines, faults = read.where, read.cited, table.lines, list(table.faults)
    if missing := [column for column in COLUMNS if column not in {name.lower() for name in table.header}]:
        raise CatalogError(f"{table.place}: looks like hosted prices, but has no column {', '.join(missing)}.")
    days = {_day_of(cells) for cells in lines.values()}
    if as_of is None and "" not in days:
        as_of = max(days, default=None)
    if as_of is None:
        raise CatalogError(
            f"{where}: says no date. Give the day when its prices were read, such as --as-of 2026-11-20."
        )
    old_file = catalog.file(HostedFile)
    models = models_by_key(catalog.models(), old_file.also_called)
    others = {other.name for other in old_file.other_weights}
    hosts = {provider: host.id for host in old_file.hosts for provider in host.providers}
    closed = {host.id for host in old_file.hosts if host.closed_on and first_day(host.closed_on) <= as_of}
    known_ids, new_hosts = set(hosts.values()), dict[str, Host]()
    prices_of: dict[str, list[HostedPrice]] = {}
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
        prices_of.setdefault(str(model), []).append(price)
    if faults and not skip_broken:
        raise CatalogError(*(str(fault) for fault in sorted(faults, key=lambda fault: fault.line)[:MOST_REPORTED]))
    for model, prices in prices_of.items():
        if odd := _too_cheap(prices):
            left_out.setdefault("without a source page, under a fifth of what other hosts ask", []).extend(
                price.name for price in odd
            )
            prices_of[model] = [price for price in prices if price not in odd]
    file = HostedFile(
        read_on=as_of,
        origin=f"price list {cited}",
        hosts=(*old_file.hosts, *new_hosts.values()),
        also_called=old_file.also_called,
        other_weights=old_file.other_weights,
        models=tuple(HostedModel(model=model, prices=cheapest(prices_of[model])) for model in sorted(prices_of)),
    )
    before, now = _by_name(old_file), _by_name(file)
    same = before.keys() & now.keys()
    changed = tuple((key[0], before[key], now[key]) for key in now if key in same and before[key] != now[key])
    return HostedRefresh(
        where,
        file,
        len(lines) + len(faults),
        sum(map(len, prices_of.values())),
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
    """The reason to leave a line out whatever its price; empty for none."""
    if model is None:
        return "of models that are not in the catalogs"
    if name in others:
        return "of other weights than the catalog's"
    if "us-gov" in name:
        return "sold to government alone"
    return ""


def _day_of(cells: Mapping[str, str]) -> str:
    """A line's own date, such as 2026-11-28 in `2026-11-28 (release 1.110.2)`; empty for none."""
    return cells.get(READ_ON, "").split(" ")[0]


def _per_million(text: str) -> float | str | None:
    """A price per token as USD per million tokens; None for an empty cell, a message for an invalid one."""
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
    """Prices without a source page that are implausibly far below those of all other hosts."""

    def blended_usd(price: HostedPrice) -> float:
        parts = PROMPTS_PER_ANSWER * price.input_usd_per_million + price.output_usd_per_million
        return parts / (PROMPTS_PER_ANSWER + 1)

    of_host: dict[str, float] = {}
    for price in prices:
        of_host[price.host] = min(of_host.get(price.host, float("inf")), blended_usd(price))

    def stands_alone(price: HostedPrice) -> bool:
        others = [usd for host, usd in of_host.items() if host != price.host]
        usd = blended_usd(price)
        return len(others) > 1 and usd * NEAR < min(others) and usd < LEAST_SHARE * statistics.median_low(others)

    return [price for price in prices if not price.source and stands_alone(price)]


def cheapest(prices: Sequence[HostedPrice]) -> tuple[HostedPrice, ...]:
    """The prices that no other of the same host and precision matches or beats in every respect: input, cached and
    output price, prompt length, source page, retirement and reading date."""

    def terms(price: HostedPrice) -> tuple[float, ...]:
        cached = price.cached_usd_per_million or price.input_usd_per_million
        ends = (
            price.max_input_tokens or math.inf,
            bool(price.source),
            _ordinal(price.deprecation_date),
            _ordinal(price.read_on),
        )
        return price.input_usd_per_million, cached, price.output_usd_per_million, *(-end for end in ends)

    kept: list[HostedPrice] = []
    for price in sorted(prices, key=lambda p: (terms(p), len(p.name), p.name)):
        rivals = (k for k in kept if (k.host, k.precision) == (price.host, price.precision))
        if not any(all(a <= b for a, b in zip(terms(k), terms(price), strict=True)) for k in rivals):
            kept.append(price)
    return tuple(kept)


def _ordinal(day: str | None) -> float:
    """A date as a number of days, for comparison; None is later than all."""
    return datetime.date.fromisoformat(first_day(day)).toordinal() if day else math.inf


def _by_name(file: HostedFile) -> dict[tuple[str, str], HostedPrice]:
    return {(hosted.model, price.name): price for hosted in file.models for price in hosted.prices}


def hosted_text(file: HostedFile, to: Path) -> dict[Path, str]:
    """The text of hosted.yaml in the folder `to`, by its path; the comment at the top of an existing file is kept.

    Raises CatalogError for more than a catalog file may hold.
    """
    path = to / HostedFile.file_name
    text = yaml_text(file.model_dump(exclude_none=True), str(path), comment_of(path))
    assert validate(read_text(text, str(path)), HostedFile) == file
    return {path: text}


def hosted_report(result: HostedRefresh) -> Iterable[str]:
    """Sentences on the list, on the changes, and on the lines left out."""
    n_prices = sum(len(hosted.prices) for hosted in result.file.models)
    n_hosts = len({price.host for hosted in result.file.models for price in hosted.prices})
    yield f"{result.where}: hosted prices, {result.n_lines:,} lines."
    yield (
        f"{result.n_matched:,} price {len(result.file.models):,} models of the catalogs; {n_prices:,} of them, of "
        f"{n_hosts} hosts, are cheapest for some load and kept."
    )
    if unsourced := sum(not price.source for hosted in result.file.models for price in hosted.prices):
        yield f"Without a source page, {unsourced:,}: `list hosts` has them, no answer names them."
    kinds = {"changed": len(result.changed), "new": len(result.added), "gone": len(result.gone)}
    yield f"Against the catalog: {', '.join(f'{count:,} {kind}' for kind, count in kinds.items())}."
    for model, price in result.added:
        yield f"  new: {model}: {price.host} {shown(price.name, 80)}"
    for model, before, now in result.changed:
        old, new = (
            "/".join(f"{usd:g}" for usd in (p.input_usd_per_million, p.output_usd_per_million)) for p in (before, now)
        )
        yield f"  changed: {model}: {shown(now.name, 80)}: {old} to {new} $ per million"
    for reason, names in sorted(result.left_out.items(), key=lambda pair: -len(pair[1])):
        distinct = list(dict.fromkeys(names))
        few = ", ".join(shown(name, 60) for name in distinct[:4])
        yield f"Left out, {len(names):,} {reason}: {few}{' ...' if len(distinct) > 4 else ''}"
