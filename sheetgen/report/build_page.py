"""The page from the answer: every word and number that the writers draw.

A card for each model at the headline load, every load in a matrix, what its memory goes to as bars, and what stands at
the head of a model's part of the matrix.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sheetgen.answer.answer_record import DOUBTED, CellRecord, Record
from sheetgen.answer.solution import short_tokens
from sheetgen.answer.solve import TOO_SLOW
from sheetgen.catalog.hardware import Workload
from sheetgen.question.deployment import SECONDS_PER_HOUR
from sheetgen.question.sheet_question import ASKED, Question
from sheetgen.report import approval, headline_table, notes, page, sentences, wording
from sheetgen.report.fingerprints import fingerprints_of, longest_fit
from sheetgen.report.in_currency import in_currency
from sheetgen.report.page import NONE, Card, Cell, MoneyFacts, Page, Text, words
from sheetgen.report.wait_words import sure_words
from sheetgen.report.wording import (
    dollars,
    gpus,
    money,
    rent,
    rented_gpus,
    share,
    size,
    whole,
)
from sheetgen.sizing import cost
from sheetgen.units import PERCENT, PUBLISHED, UNIT_NAMES, WHOLE
from sheetgen.version import VERSION

TITLE = "LLM serving sizing sheet"
LITTLE_SPARE = 0.1  # of the load: that many more, or fewer, and the page says how few


def build_page(record: Record, question: Question) -> Page:
    """The page of an answer, in the budget's currency. The limits of tight and stale are in the catalogs' assumptions.

    The record is one made for pages, with the levers of the headline at least.
    """
    return in_currency(page_in_dollars(record, question), question.settings)


def page_in_dollars(record: Record, question: Question) -> Page:
    """The same page in US dollars, as prices are, except for budgets."""
    prints, name = fingerprints_of(record, question), "stale_after_days"
    stale_after = question.overrides.input(name, question.reference.assumption(name))
    cards = tuple(_card(question, cell) for cell in record.headline_cells)
    asked = _asked(record, question, cards)
    return Page(
        title=_stated(question, "title") or TITLE,
        request=approval.request_of(record, question, cards, asked["total"]),
        finding=headline_table.finding(question, cards, asked["total"] and asked["total"].monthly),
        question=_question(question),
        precision=" · ".join(_precision(question)),
        engine=question.engine.name,
        weights_in_short=headline_table.weights_in_short(record, question),
        load_note=headline_table.load_note(record, question),
        published_dtype=headline_table.published_dtype(record, question),
        as_of=question.as_of.isoformat(),
        price_banner=notes.price_banner(question, stale_after, record.oldest_price_as_of),
        oldest_price=record.oldest_price_as_of or "",
        version=VERSION,
        catalog=question.catalog_sha256[:8],
        unit=UNIT_NAMES[question.settings.units],
        paper=question.settings.paper,
        cards=cards,
        **asked,
        matrix=_matrix(record, question),
        models=tuple(
            wording.model_facts(question, *model_and_record)
            for model_and_record in zip(question.models, record.models, strict=True)
        ),
        bars=_bars(record, question),
        longest_fits=tuple(longest_fit(question, cell) for cell in record.headline_cells),
        fingerprints=tuple(f.on_page(named=i == 0) for i, f in enumerate(prints)),
        instances=notes.instance_rows(record, question, stale_after),
        subject=str(record.of_replica.get("model_name", "")) if prints else "",
        left_out=notes.left_out(question),
        discounted=notes.discounted(question),
        level=share(question.settings.confidence),
        sources=notes.sources(record, question),
        sources_in_use=notes.sources_in_use(record, question),
        purchase=notes.price_classes(question)[question.settings.purchase],
    )


def _stated(question: Question, name: str) -> str:
    """An option that only the page shows, as text; "" where it was not given."""
    return str(question.options.get(name) or "")


def _asked(record: Record, question: Question, cards: tuple[Card, ...]) -> dict[str, Any]:
    """The owner, the approver and the request, with the confidence in its figures."""
    together = _stated(question, "together").lower() == "yes"
    asks, most = (0 if len(cards) == 1 else question.ask), page.most_ways(len(cards))
    owning = [
        cell
        for place, (card, cell) in enumerate(zip(cards, record.headline_cells, strict=True))
        if any(way.kind == "own" for way in (card.ways if place == asks else card.shown_ways(most)))
    ]
    return {
        "owner": _stated(question, "owner"),
        "approver": _stated(question, "approver"),
        "valid_until": _stated(question, "valid_until"),
        "ask": asks,
        "is_asked": question.ask is not None,
        "total": _total(question, cards) if together and len(cards) > 1 else None,
        "sure_of": sure_words(question, record.headline_cells),
        "pages": int(_stated(question, "pages") or 2),
        "confidence": tuple(notes.confidence(record, question, owning)),
        "as_measured": tuple(f"{text}." for text in notes.as_measured(question)),
        "assumed": tuple(notes.most_assumed(record, question)),
        "contingency": wording.contingency_words(question.settings.contingency_fraction),
    }


def _total(question: Question, cards: Sequence[Card]) -> page.Total:
    """The answers of all models added up; none where one of them has none."""
    months = [card.monthly.value for card in cards if isinstance(card.monthly, Cell) and card.monthly]
    monthly = money(math.fsum(months)) if len(months) == len(cards) else NONE
    yearly = _annual_usd(monthly) if monthly else None
    return page.Total(
        model=" + ".join(card.model for card in cards),
        monthly=monthly,
        per_year=words("{} a year", money(yearly)) if monthly else NONE,
        approve=_to_approve(question, monthly, yearly),
    )


def _to_approve(question: Question, *usd: Cell | float | None) -> tuple[Text, ...]:
    """A month and a year with contingency; nothing where there is none, or no amount."""
    fraction = question.settings.contingency_fraction
    amounts = [amount.value if isinstance(amount, Cell) else amount for amount in usd]
    if not fraction or None in amounts:
        return ()
    month, year = (money(float(cost.total_usd(amount, cost.contingency_usd(amount, fraction)))) for amount in amounts)
    return month, words("{} a year", year)


def _annual_usd(monthly: Cell) -> float:
    return float(cost.annual_usd(monthly.value, cost.CONSTANTS["months_in_a_year"]))


def _question(question: Question) -> str:
    workload, tier = question.workloads[question.headline[0]], question.numbers[question.headline[1]]
    context = short_tokens(workload.context_tokens)
    load = wording.stated_rate(question) if tier is None else sentences.at_once.fill(requests=tier)
    name = workload.name if workload.id == ASKED else f"{workload.name} ({context} tokens)"
    return f"{name}, {load}"


def _precision(question: Question) -> tuple[str, ...]:
    settings, engine = question.settings, question.engine
    weights = "/".join(dict.fromkeys(wording.weights_name(m.model, m.weight_dtype) for m in question.models))
    kv = "/".join(dict.fromkeys(m.kv_cache_dtype for m in question.models))
    return (
        f"weights {weights}" + (" (the checkpoint's own)" if settings.weight_dtype == PUBLISHED else ""),
        f"KV cache {kv}",
        f"{engine.name} {engine.default_version}",
        *([wording.draft_words(question.draft)] if question.draft else []),
    )


def _card(question: Question, cell: CellRecord) -> Card:
    name, chosen = question.model_of(cell.row).model.name, cell.chosen
    if chosen is None:
        return Card(
            model=name, fits=False, rent=cell.verdict, monthly=NONE, provider="–", why=_why_nothing(question, cell)
        )
    candidate, units = question.instances[chosen.instance], cell.units
    return Card(
        model=name,
        fits=True,
        rent=rent(chosen.n_instances, chosen.instance),
        monthly=money(chosen.monthly_usd),
        per_year=words("{} a year", money(units.annual_usd)),
        approve=_to_approve(question, chosen.monthly_usd, units.annual_usd),
        provider=", ".join(filter(None, (wording.provider_name(candidate.provider), candidate.region))),
        gpus=rented_gpus(chosen.n_instances, candidate),
        is_short=wording.is_short(chosen),
        reserved=cell.needs_reservation,
        spare=_spare(cell),
        survivor=money(cell.survives_machine.monthly_usd) if cell.survives_machine else "",
        unmeasured="" if candidate.gpu.memory.basis == "measured" else candidate.gpu.short_name,
        row=headline_table.headline_row(question, cell),
        ways=headline_table.way_rows(question, cell),
    )


def _spare(cell: CellRecord) -> Text:
    """The requests that the rented machines serve, where these are hardly more than the load: 33, asked 32; of a rate
    those of an hour, as it differs little."""
    needed = cell.requests_per_second if cell.is_rate else cell.concurrent_requests or 0
    served = cell.answer.served_at_target
    if served > needed * (1 + LITTLE_SPARE):
        return ""
    if cell.is_rate:
        return words(
            "{} requests an hour, asked {}",
            whole(math.floor(SECONDS_PER_HOUR * served)),
            whole(SECONDS_PER_HOUR * needed),
        )
    return words("{}, asked {}", whole(served), whole(needed))


def _why_nothing(question: Question, cell: CellRecord) -> Text:
    model = question.model_of(cell.row)
    if question.loads[cell.row].over_limit:
        limit = short_tokens(int(model.model.max_context_tokens or 0))
        return words("{} requested, {} allowed", short_tokens(cell.context_tokens), limit)
    if cell.verdict == TOO_SLOW:
        target = wording.target_words(question.workload_of(cell.row))
        return words("a lone request misses {} on every candidate that holds it", target)
    if all(reason.why.kind in ("not_run", DOUBTED) for reason in cell.why_not):
        return f"no candidate runs {cell.weight_dtype} weights with a {cell.kv_cache_dtype} KV cache"
    return "no candidate holds weights and one request"


def _matrix(record: Record, question: Question) -> tuple[page.MatrixBlock, ...]:
    cells = {(c.workload, c.tier, c.model): record.cells[i] for i, c in enumerate(question.loads)}

    def row(w: int, t: int, requests: int | None) -> page.MatrixRow:
        return page.MatrixRow(
            wording.rate_words(cells[w, t, 0]) if requests is None else whole(requests),
            (w, t) == question.headline,
            tuple(_cell(question, cells[w, t, m]) for m in range(len(question.models))),
            requests or 0,
            wording.stated_rate(question) if requests is None else words("{} at once", whole(requests)),
            "" if requests is None else _people(cells[w, t, m] for m in range(len(question.models))),
        )

    def block(w: int, workload: Workload) -> page.MatrixBlock:
        listed = [(t, requests) for t, requests in enumerate(question.numbers) if (w, t, 0) in cells]
        tiers = tuple(row(w, *load) for load in sorted(listed, key=lambda load: (load[1] is None, load[1] or 0)))
        return page.MatrixBlock(workload.name, short_tokens(workload.context_tokens), tiers)

    return tuple(block(w, workload) for w, workload in enumerate(question.workloads))


def _people(cells: Iterable[CellRecord]) -> Text:
    """The people that every model's hardware for a load is enough for; "" where that is not known."""
    users = headline_table.least(cell.users for cell in cells if cell.chosen)
    return str(sentences.people.fill(users=int(users))) if users >= 1 else ""


def _cell(question: Question, cell: CellRecord) -> page.MatrixCell:
    if question.loads[cell.row].over_limit:
        limit = int(question.model_of(cell.row).model.max_context_tokens or 0)
        why = str(sentences.reads_at_most.fill(limit=short_tokens(limit)))
        return page.MatrixCell("over", f"over {short_tokens(limit)}", why=why)
    kv, chosen = wording.short_size(cell.kv_bytes, question.settings.units), cell.chosen
    if chosen is None:
        return page.MatrixCell("none", cell.verdict, kv)
    return page.MatrixCell(
        "fits",
        "fits",
        kv,
        rent(chosen.n_instances, chosen.instance),
        wording.full_money(chosen.monthly_usd),
        headline_table.even_month(cell),
        *headline_table.as_published(cell),
    )


def _bars(record: Record, question: Question) -> tuple[tuple[page.Bar, ...], ...]:
    """By model, a bar for each workload at the requests of the headline."""
    tier = question.headline[1]
    bars = [(load.model, cell) for load, cell in zip(question.loads, record.cells, strict=True) if load.tier == tier]
    return tuple(tuple(_bar(question, cell) for model, cell in bars if model == m) for m in range(len(question.models)))


def _bar(question: Question, cell: CellRecord) -> page.Bar:
    """The bar of GPU memory: weights on each replica, the KV cache on every rank that keeps it, and overhead, which
    includes a draft's weights."""
    units, weights, kv, chosen = question.settings.units, float(cell.weights_bytes), float(cell.kv_bytes), cell.chosen
    if chosen is None:
        return page.Bar(size(weights, units), size(kv, units))
    memory = chosen.memory
    return page.Bar(
        _times(chosen.n_replicas, weights, units),
        _copies(memory.kv_bytes, kv, units),
        size(memory.overhead_bytes, units),
        size(memory.limit_bytes, units),
    )


def _times(count: int, n_bytes: float, units: str) -> Cell:
    return size(n_bytes, units) if count == 1 else words("{} × {}", whole(count), size(n_bytes, units))


def _copies(held: float, kv: float, units: str) -> Cell:
    """The KV cache on all ranks; a whole number of copies as a multiple (every rank keeps an MLA cache)."""
    copies = held / kv if kv else 1.0
    is_whole = math.isclose(copies, round(copies), rel_tol=0.01)
    return _times(round(copies), kv, units) if is_whole else size(held, units)


def facts_of(question: Question, cell: CellRecord) -> MoneyFacts:
    """The money of one load; empty where no hardware holds it."""
    chosen, units = cell.chosen, cell.units
    if chosen is None:
        return MoneyFacts()
    owned, break_even = _owning(question, cell)
    prompt, answer = units.usd_per_million_input_tokens, units.usd_per_million_output_tokens
    spent = "{} prompt, {} answer per million tokens at {} utilization"
    tokens = (dollars(prompt), dollars(answer), share(question.settings.utilization))
    return MoneyFacts(
        per_user=words("{} per user", dollars(units.usd_per_user_per_month))
        if cell.users > 0
        else words("{} per request at once", dollars(chosen.monthly_usd / (cell.concurrent_requests or 1))),
        per_million_tokens=words(spent, *tokens) if answer == answer else NONE,
        owned=owned,
        break_even=break_even,
        budget=_budget(question, cell),
        capex_is_old=notes.is_capex_old(question, chosen.gpu),
    )


def _owning(question: Question, cell: CellRecord) -> tuple[Cell, Cell]:
    """The monthly cost of owning the replicas' GPUs, from the low to the high price, and its break-even."""
    if cell.owned is None:
        return NONE, NONE
    ends = cell.owned.low, cell.owned.base, cell.owned.high
    (low, base, high), shares = (
        [end[name] for end in ends] for name in ("monthly_owned_usd", "break_even_utilization")
    )
    span = dollars(low) if dollars(low) == dollars(high) else words("{} to {}", dollars(low), dollars(high))
    on = gpus(cell.owned.n_gpus, question.instances[cell.answer.instance])
    owned = words("{}: {}", on, span) if base == base else NONE
    return owned, _break_even(*shares) if shares[1] == shares[1] else NONE


def _break_even(least: float, share_of_hours: float, most: float) -> Cell:
    """The share of the hours above which owning is cheaper than renting on demand, or that it never is."""
    low, base, high = (Cell(end, PERCENT) for end in (least, share_of_hours, most))
    if share_of_hours > 1:
        return words("{}", words("renting on demand is cheaper at any use (owning costs {} of it)", base))
    if most > 1:
        high = Cell("never")
    hours = words("above {} of the hours", base)
    span = hours if low == high else words("{} ({} to {})", hours, low, high)
    return words("cheaper than renting on demand {}", span)


def _budget(question: Question, cell: CellRecord) -> Cell:
    """The month and the year with contingency in the budget's currency, where that adds anything."""
    settings, budget = question.settings, cell.budget
    between, terms = wording.budget_terms(settings.currency, settings.fx_rate, settings.contingency_fraction)
    if budget is None or not terms:
        return NONE
    display = replace(WHOLE, prefix=f"{settings.currency} ")
    month, year = (Cell(total.total, display) for total in (budget.monthly, budget.annual))
    return words(f"{{}} a month, {{}} a year{between}{{}}", month, year, terms)
