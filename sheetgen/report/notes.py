"""The small print of the page: the date of prices, what was left out, what is assumed, the sources and their links."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from sheetgen.answer.answer_record import CellRecord, Record
from sheetgen.answer.sheet_facts import gpu_columns
from sheetgen.catalog.engines import Engine
from sheetgen.question.market import Candidate
from sheetgen.question.overrides import BY_READER
from sheetgen.question.sheet_question import Question, SheetModel
from sheetgen.report import wording
from sheetgen.report.page import Cell, InstanceRow, Source, words
from sheetgen.report.page import day_of as day_of
from sheetgen.units import PUBLISHED, PURCHASES, RECOMMENDED, USD_CENTS, listed

UNKNOWN_DATE, TYPED_DATE = "date unknown", "typed in"
_SHOWN_REASONS = 2
_PAPERS = (
    ("Grouped keys and values: arXiv:2305.13245", "https://arxiv.org/abs/2305.13245"),
    ("Paged KV cache: arXiv:2309.06180", "https://arxiv.org/abs/2309.06180"),
    ("Answers at FP8 and FP4: arXiv:2411.02355", "https://arxiv.org/abs/2411.02355"),
)


def is_stale(price_as_of: str | None, as_of: datetime.date, stale_after_days: float) -> bool:
    """True where a price is older than allowed. A price without a date counts as fresh; that it has none is said
    elsewhere."""
    day = day_of(price_as_of)
    return day is not None and (as_of - day).days > stale_after_days


def is_old(candidate: Candidate, question: Question, stale_after_days: float) -> bool:
    """True where the workbook marks the price as old; a price that was typed over keeps the date of the listed one."""
    return candidate.source != BY_READER and is_stale(candidate.price_as_of, question.as_of, stale_after_days)


def capex_as_of(question: Question, gpu: str) -> str | None:
    """The date of a GPU's purchase price; None where nobody states the price or its date."""
    owned = question.owning.gpus.get(gpu)
    return None if owned is None or owned.capex_usd is None else owned.capex_as_of


def is_capex_old(question: Question, gpu: str) -> bool:
    """True where a GPU's purchase price is older than allowed."""
    return is_stale(capex_as_of(question, gpu), question.as_of, question.reference.assumption("stale_after_days"))


def doubt(candidate: Candidate, question: Question) -> str:
    """The reason why a candidate's price is implausible; "" for others."""
    of_price = (
        candidate.region,
        candidate.instance,
        candidate.gpu.id,
        candidate.gpu_count,
        candidate.purchase,
        candidate.usd_per_hour,
    )
    return question.reference.plausible.doubt_in(*of_price)


def _where(question: Question) -> str:
    """The region whose prices were requested; "" where none was."""
    region = wording.region_words(question)
    return f" in {region}" if region else ""


def price_banner(question: Question, stale_after_days: float, oldest: str | None) -> str:
    """The purchase class, the oldest date of the answers' prices, and of all candidates the numbers of prices without
    a date, old, or implausible."""
    candidates = question.candidates
    undated = [c.source for c in candidates if day_of(c.price_as_of) is None]
    prices = f"{question.settings.purchase} prices{_where(question)}{wording.discounted('', question)}"
    parts = [prices + (f", the oldest in use of {oldest}" if oldest else "")]
    for overrides, how in ((True, "typed in without a date"), (False, "without a date")):
        if n := sum((source == BY_READER) == overrides for source in undated):
            parts.append(f"{'one price' if n == 1 else f'{n:,} prices'} {how}")
    if n_old := sum(is_old(c, question, stale_after_days) for c in candidates):
        parts.append(f"{n_old} of {len(candidates)} older than {wording.plain(stale_after_days)} days")
    if far := [c.instance for c in candidates if doubt(c, question)]:
        more = " and others" if len(far) > _SHOWN_REASONS else ""
        parts.append(f"{len(far)} far from what providers take: {', '.join(far[:_SHOWN_REASONS])}{more}")
    return "; ".join(parts)


def left_out(question: Question) -> str:
    """The number of candidates and their vendors, and the commonest reasons why other instances were left out."""
    reasons = sorted(question.left_out, key=lambda pair: -pair[1])
    parts = [f"{count:,} {why}" for why, count in reasons[:_SHOWN_REASONS]]
    if others := sum(count for _, count in reasons[_SHOWN_REASONS:]):
        parts.append(f"{others:,} for other reasons")
    n, n_out = len(question.candidates), sum(count for _, count in reasons)
    total = f"{n + n_out:,} offers: {n:,} candidates {wording.took_part(question.candidates)}"
    return f"{total}; {n_out:,} left out: {', '.join(parts)}." if parts else f"{total}; none left out."


def discounted(question: Question) -> str:
    """The discount on the prices of the page; nothing where there is none."""
    if question.discounts:
        return f"Prices of instances are as listed; contracts take off {wording.discount_words(question)}."
    if discount := question.settings.discount_fraction:
        return f"Prices of instances are as listed; what is paid is {wording.share(discount)} less."
    return ""


def instance_rows(record: Record, question: Question, stale_after_days: float) -> tuple[InstanceRow, ...]:
    """Every instance recommended somewhere: those of the headline load first, then by how often."""
    used = used_instances(record)
    listed = [candidate for candidate in question.candidates if candidate.instance in used]
    listed.sort(
        key=lambda candidate: (used[candidate.instance][0].row not in record.headline, -len(used[candidate.instance]))
    )
    return tuple(_instance_row(question, candidate, stale_after_days) for candidate in listed)


def used_instances(record: Record) -> dict[str, list[CellRecord]]:
    """Instances that the page recommends, each with its loads; those of the headline load first."""
    by_instance: dict[str, list[CellRecord]] = {}
    for cell in sorted(record.cells, key=lambda cell: cell.row not in record.headline):
        if cell.chosen:
            by_instance.setdefault(cell.chosen.instance, []).append(cell)
    return by_instance


def _instance_row(question: Question, candidate: Candidate, stale_after_days: float) -> InstanceRow:
    return InstanceRow(
        name=wording.instance_name(candidate.instance),
        provider=wording.provider_name(candidate.provider),
        gpus=words("{}× {}", candidate.gpu_count, candidate.gpu.short_name),
        hourly=Cell(candidate.usd_per_hour, USD_CENTS),
        region=candidate.region + (", assumed shape" if candidate.assumed_shape else ""),
        price_date=price_date(candidate),
        stale=is_old(candidate, question, stale_after_days),
    )


def price_classes(question: Question) -> dict[str, str]:
    """The purchase classes that a sheet lists, each with its name; the one in use is always among them."""
    used = question.settings.purchase
    listed = {key: purchase_class.words for key, purchase_class in PURCHASES.items() if purchase_class.always_listed}
    return listed if used in listed else {used: PURCHASES[used].words, **listed}


def confidence(record: Record, question: Question, owning: Iterable[CellRecord]) -> Iterator[str]:
    """How well memory, speed and prices are known, each in a few words. owning: the cells whose price to own stands on
    the page."""
    settings = question.settings
    of_version, seen = question.engine.pools_seen
    named = f"{question.engine.name} {question.engine.default_version}"
    if of_version:
        yield f"KV pool checked on {of_version:,} starts under the rules of {named}"
    elif seen:
        yield f"KV pool checked on {seen:,} starts of other versions, none yet of {named}"
    yield from as_measured(question)
    if settings.speed_factor != 1:
        yield "Times are set right by your factor"
    own_lists = {
        wording.provider_name(candidate.provider): own_list(candidate)
        for candidate in _answered(record, question)
        if candidate.brought
    }
    to_own: dict[str, list[str]] = {}
    for cell in owning:
        if cell.owned and (day := capex_as_of(question, cell.owned.gpu)):
            gpu = question.instances[cell.answer.instance].gpu.short_name
            to_own.setdefault(day, []).extend([gpu] if gpu not in to_own.get(day, []) else [])
    parts = [f"to own {' and '.join(names)} of {day}" for day, names in to_own.items()]
    if parts := [*parts, *(f"of {provider} from {origin}" for provider, origin in own_lists.items())]:
        yield f"Prices {'; '.join(parts)}"
    if settings.currency != "USD":
        day = settings.fx_date or question.as_of.isoformat()
        yield f"1 US dollar is {wording.plain(settings.fx_rate)} {settings.currency}, as of {day}"


def as_measured(question: Question) -> Iterator[str]:
    """The deployments whose times or memory are as measured, with the file that set them."""
    models = {model.model.id: model.model.name for model in question.models}
    gpus = {gpu.id: gpu.short_name for gpu in question.gpus}
    for measured in question.measurements.deployments:
        served = measured.served
        n_gpus = served.tensor_parallel_size * served.pipeline_parallel_size * served.data_parallel_size
        where = f"{models[served.model]} ({served.weight_dtype}) on {n_gpus}× {gpus[served.gpu]}"
        if measured.runs:
            yield f"Times of {where} as measured: {_file(measured.runs[-1].point.source)}"
        for start in measured.starts[-1:]:
            pool = wording.named_size(start.kv_pool_bytes, question.settings.units)
            yield f"KV pool of {where} as measured: {pool} a GPU, {_file(start.pool.source)}"


def _file(source: str) -> str:
    """A source without its folder."""
    return source.rpartition("/")[2]


def _answered(record: Record, question: Question) -> Iterator[Candidate]:
    """The candidates that the headlines' answers rent in every class shown, at its prices."""
    for purchase in price_classes(question):
        for cell in record.headline_cells:
            rental = cell.by_purchase.get(purchase)
            if rental and (priced := question.instances[rental.instance].in_class(purchase)):
                yield priced


def own_list(candidate: Candidate) -> str:
    """The list that a price of the user's own was read from, or the source that its row names."""
    return _price_origin(candidate.source, candidate.purchase)


def price_list(source: str, purchase: str) -> str:
    """The list, in a row's source, that the price of a class was read from; empty where it came with the row."""
    from sheetgen.catalog.prices.rows import list_of

    return list_of(source, purchase) or ""


def price_date(candidate: Candidate) -> str:
    """The date of a price, as the page shows it."""
    return TYPED_DATE if candidate.source == BY_READER else candidate.price_as_of or UNKNOWN_DATE


_WEIGHTS = {RECOMMENDED: "in FP8 where a checkpoint is known", PUBLISHED: "as published"}


def most_assumed(record: Record, question: Question) -> Iterator[str]:
    """The assumptions that decide most, in words."""
    settings, engine = question.settings, question.engine
    times = question.workloads[question.headline[0]].requests_per_user_per_day
    if (active := settings.active_fraction) is None:
        busiest = f"{wording.share(settings.peak_hour_share)} of them in the busiest hour"
        others = [
            f"{workload.name} {workload.requests_per_user_per_day:g}"
            for workload in question.workloads
            if workload.requests_per_user_per_day != times
        ]
        asks = f"{times:g} times a day{f' ({listed(others)})' if others else ''}"
        yield f"People ask {asks}, {busiest}, whose peak is {settings.burst_factor:g} times that."
    else:
        yield f"{wording.share(active)} of the people wait for an answer at the same moment."
    yield f"Every request fills {wording.share(settings.average_context_fraction)} of its context."
    yield wording.targets_of_readers(question)
    shares = sorted(gpu_columns(question)["own_utilization"])
    if settings.gpu_memory_utilization != engine.gpu_memory_utilization:
        shares = [settings.gpu_memory_utilization]
    share = " to ".join(dict.fromkeys(wording.share(end) for end in (shares[0], shares[-1])))
    taken = (
        "gives its KV cache {} of the GPU memory that is free after loading"
        if engine.fraction_of_free
        else ("may use {} of GPU memory")
    )
    weights = _WEIGHTS.get(settings.weight_dtype, f"in {settings.weight_dtype}")
    yield f"{engine.name} {engine.default_version} {taken.format(share)}; weights {weights}."
    price = f"{wording.discounted(PURCHASES[settings.purchase].words, question)}{_where(question)}"
    lacks = listed(record.not_in_price, " or ")
    yield f"Prices {price}, {wording.plain(settings.hours_per_month)} hours a month, without {lacks}."
    if any(cell.needs_reservation for cell in record.cells):
        most = wording.plain(question.reference.assumption("reservation_above_instances"))
        yield f"More than {most} machines: ask the provider first."


def sources(record: Record, question: Question) -> tuple[Source, ...]:
    """The sources of a sheet's models, prices and engine accounting."""
    used = [*map(question.instances.__getitem__, used_instances(record)), *_answered(record, question)]
    return sources_of(question.models, used, [question.engine])


def sources_in_use(record: Record, question: Question) -> tuple[Source, ...]:
    """The sources of the rented machines alone, without papers."""
    used = map(question.instances.__getitem__, used_instances(record))
    return sources_of(question.models, used, [question.engine])[: -len(_PAPERS)]


class ReadPrice(Protocol):
    """A price with its source, and the day on which it was read."""

    @property
    def provider(self) -> str: ...
    @property
    def purchase(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def price_as_of(self) -> str | None: ...


def sources_of(
    models: Iterable[SheetModel], used: Iterable[ReadPrice], engines: Iterable[Engine]
) -> tuple[Source, ...]:
    """The sources of these models, prices and engines' accounting."""
    listed: list[Source] = []
    by_origin: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for model in models:
        place, revision = _origin(model.model.source)
        by_origin.setdefault((place, model.model.checked_on), []).append((model.model.name, revision))
    most_read = max(by_origin.values(), key=len, default=[])
    for (place, day), models_read in sorted(by_origin.items(), key=lambda pair: pair[1] is most_read):
        is_rest = models_read is most_read and len(models_read) > 2
        rest = "Other models" if is_rest else ", ".join(name for name, _ in models_read)
        names = "Models" if len(by_origin) == 1 else rest
        revisions = ", ".join(dict.fromkeys(revision for _, revision in models_read if revision))
        listed.append(_source(f"{names}: {place}{revisions}, checked {day}"))
    by_list: dict[tuple[str, str], dict[str, None]] = {}
    for c in used:
        of_list = by_list.setdefault((_price_origin(c.source, c.purchase), c.price_as_of or UNKNOWN_DATE), {})
        of_list[wording.provider_name(c.provider)] = None
    listed += [_source(f"{', '.join(names)} prices: {origin}, {day}") for (origin, day), names in by_list.items()]
    listed += [_source(f"{engine.name}: {_FIRST_WORDS.split(engine.accounting_source)[0]}") for engine in engines]
    listed += [Source(text, url) for text, url in _PAPERS]
    return tuple(listed)


def _origin(source: str) -> tuple[str, str]:
    """A model's source without the path inside its repository: the repository, and @revision."""
    place = re.match(r"github:([^:@]+)(@[0-9a-f]{0,8})?", source)
    return (place[1], place[2] or "") if place else (source, "")


def _price_origin(source: str, purchase: str) -> str:
    """The list that a price was read from, else its source without the file inside its repository and what it says of
    the shape; that of its purchase class where it names one: `...; reserved: owner/repository@1234abcd`."""
    from sheetgen.catalog.prices.rows import taken_apart

    if origin := price_list(source, purchase):
        return origin
    source = taken_apart(source)[1] or source
    parts, kind = source.split("; "), f"{purchase.split('-')[0]}: "
    first = next((part.removeprefix(kind) for part in parts if part.startswith(kind)), parts[0])
    place = re.match(r"[\w.-]+/[\w.-]+@[0-9a-f]+", first)
    return place[0] if place else first


def _source(text: str) -> Source:
    return Source(text, first_link(text))


_FIRST_WORDS = re.compile(r"[.] | [(]")  # their end
_SHAPES = (  # patterns in a text, and the address that each leads to
    (re.compile(r"https?://[^\s;,)\]>\"']+"), "{0}"),
    (re.compile(r"(?:github:)?\b([A-Za-z0-9][\w.-]*/[\w.-]+)@([0-9a-f]{7,40})\b"), "https://github.com/{1}/tree/{2}"),
    (re.compile(r"github:([A-Za-z0-9][\w.-]*/[\w.-]*\w)"), "https://github.com/{1}"),
    (re.compile(r"\barXiv:(\d{4}\.\d{4,5})"), "https://arxiv.org/abs/{1}"),
    (re.compile(r"(?<![\w.@/-])(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|co)(?:/[\w.~/-]*)?(?![\w@])"), "https://{0}"),
)
MOST_LINK = 2079  # characters that Excel allows


def first_link(text: str | None) -> str | None:
    """The address of the first link in a text; None where there is none."""
    links = [(match, where) for shape, where in _SHAPES if (match := shape.search(text or ""))]
    if not links:
        return None
    match, where = min(links, key=lambda link: link[0].start())
    link = where.format(match[0], *match.groups()).rstrip(".")
    return link if len(link) <= MOST_LINK else None
