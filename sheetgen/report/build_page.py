"""From the answer to the one page: every word and number that all writers draw.

A card for each model at the headline load, every load in a matrix, what its memory goes to as bars, the changes that
would save most, and what stands at the head of a model's column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sheetgen.answer.answer_record import DOUBTED, CellRecord, Record
from sheetgen.answer.levers import best
from sheetgen.answer.solution import short_tokens
from sheetgen.answer.solve import TOO_SLOW
from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.stacks import LeverFile
from sheetgen.question.sheet_question import ASKED, Question
from sheetgen.report import approval, headline_table, notes, page, sentences, wording
from sheetgen.report.fingerprints import breaks, fingerprints_of
from sheetgen.report.host_words import hosted_facts
from sheetgen.report.in_currency import in_currency
from sheetgen.report.page import NONE, Card, Cell, MoneyFacts, Page, Text, joined, words
from sheetgen.report.precision_words import weights_note
from sheetgen.report.wording import (
    dollars,
    gpus,
    money,
    named_size,
    plural,
    rent,
    rented,
    rented_gpus,
    share,
    size,
    whole,
)
from sheetgen.sizing import cost
from sheetgen.units import PERCENT, PUBLISHED, UNIT_NAMES, WHOLE, Layout

TITLE = "LLM serving sizing sheet"
LITTLE_SPARE = 0.1  # of the load: that many more, or fewer, and the page says how few
LEAST_LEVERS = 3  # with more models, one of each at least


def build_page(record: Record, question: Question) -> Page:
    """The page of an answer, in the budget's currency. What is tight and what is stale is in the catalogs' assumptions.

    The record is one made for pages, with the levers of the headline at least.
    """
    return in_currency(page_in_dollars(record, question), question.settings)


def page_in_dollars(record: Record, question: Question) -> Page:
    """The same as prices are: in US dollars, but for budgets."""
    prints, name = fingerprints_of(record, question), "stale_after_days"
    stale_after = question.overrides.input(name, question.reference.assumption(name))
    cards = tuple(_card(question, cell) for cell in record.headline_cells)
    asked = _asked(record, question, cards)
    return Page(
        title=_stated(question, "title") or TITLE,
        request=approval.request_of(record, question, cards, asked["total"]),
        finding=headline_table.finding(question, cards, asked["total"] and asked["total"].monthly),
        question=_question(question),
        precision_line=" · ".join((*_precision(question), *_rule(question))),
        precision_in_short=" · ".join(_precision(question)),
        engine=question.engine.name,
        weights_note=weights_note(record, question),
        weights_in_short=headline_table.weights_in_short(record, question),
        load_note=headline_table.load_note(record, question),
        published_dtype=headline_table.published_dtype(record, question),
        as_of=question.as_of.isoformat(),
        price_banner=notes.price_banner(question, stale_after),
        version=notes.own_version(),
        catalog=question.catalog_sha256[:8],
        unit=UNIT_NAMES[question.settings.units],
        paper=question.settings.paper,
        cards=cards,
        **asked,
        matrix=_matrix(record, question),
        models=tuple(wording.model_facts(question, *one) for one in zip(question.models, record.models, strict=True)),
        bars=_bars(record, question),
        breaks=tuple(breaks(question, cell) for cell in record.headline_cells),
        fingerprints=tuple(f.on_page(named=i == 0) for i, f in enumerate(prints)),
        levers=_lever_rows(record, question),
        fp8_quality=_fp8_quality(question),
        instances=notes.instance_rows(record, question, stale_after),
        price_classes=tuple(notes.price_classes(question).values()),
        subject=str(record.of_replica.get("model_name", "")) if prints else "",
        left_out=notes.left_out(question),
        assumptions=tuple(notes.assumption_lines(question)),
        level=share(question.settings.confidence),
        sources=notes.sources(record, question),
        sources_in_use=notes.sources_in_use(record, question),
        purchase=notes.price_classes(question)[question.settings.purchase],
        hosted_for=f"hosted: the cheapest host, same tokens at {share(question.settings.utilization)} use; not your "
        "weights, data leaves your site",
    )


def _stated(question: Question, name: str) -> str:
    """An option that is words for the page alone; "" where it was not given."""
    return str(question.options.get(name) or "")


def _asked(record: Record, question: Question, cards: tuple[Card, ...]) -> dict[str, Any]:
    """Who asks whom for what, and how well that is known."""
    together = _stated(question, "together").lower() == "yes"
    return {
        "owner": _stated(question, "owner"),
        "approver": _stated(question, "approver"),
        "valid_until": _stated(question, "valid_until"),
        "ask": 0 if len(cards) == 1 else question.ask,
        "is_asked": question.ask is not None,
        "total": _total(question, cards) if together and len(cards) > 1 else None,
        "pages": int(_stated(question, "pages") or 2),
        "confidence": tuple(notes.confidence(record, question)),
        "as_measured": tuple(f"{text}." for text in notes.as_measured(question)),
        "assumed": tuple(notes.most_assumed(question, any(cell.needs_reservation for cell in record.cells))),
        "contingency": wording.contingency_words(question.settings.contingency_fraction),
    }


def _total(question: Question, cards: Sequence[Card]) -> page.Total:
    """The answers of all models added up; none where one of them has none."""
    months = [one.monthly.value for one in cards if isinstance(one.monthly, Cell) and one.monthly]
    monthly = money(math.fsum(months)) if len(months) == len(cards) else NONE
    yearly = _annual_usd(monthly) if monthly else None
    return page.Total(
        model=" + ".join(one.model for one in cards),
        monthly=monthly,
        per_year=words("{} a year", money(yearly)) if monthly else NONE,
        approve=_to_approve(question, monthly, yearly),
    )


def _to_approve(question: Question, *usd: Any) -> tuple[Text, ...]:
    """A month and a year with contingency; nothing where there is none, or no amount."""
    fraction = question.settings.contingency_fraction
    amounts = [one.value if isinstance(one, Cell) else one for one in usd]
    if not fraction or None in amounts:
        return ()
    month, year = (money(float(cost.total_usd(one, cost.contingency_usd(one, fraction)))) for one in amounts)
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


def _rule(question: Question) -> tuple[str, ...]:
    """What sets the sizes."""
    chance = f"a rate: allowance for chance, {share(question.settings.max_wait_fraction)} may wait"
    return (wording.sizing_rule(question), *([chance] if question.rate else []))


def _card(question: Question, cell: CellRecord) -> Card:
    name, load, chosen = question.model_of(cell.row).model.name, wording.load_words(question, cell), cell.chosen
    parts = (named_size(part, question.settings.units) for part in (cell.weights_bytes, cell.kv_bytes))
    memory = words("{} weights + {} KV cache", *parts)
    less = [wording.not_asked_words(one) for one in sorted(cell.not_asked, key=lambda one: one.monthly_usd)]
    cheaper = joined("; ", less)
    if chosen is None:
        return Card(
            model=name,
            fits=False,
            rent=cell.verdict,
            monthly=NONE,
            provider="–",
            hardware=_why_nothing(question, cell),
            memory=memory,
            load=load,
            not_asked=cheaper,
        )
    one, shown = question.instances[chosen.instance], tuple(notes.price_classes(question))
    classes = class_costs(cell)
    survives = bool(question.settings.survive)
    return Card(
        **vars(facts_of(question, cell)),
        **vars(hosted_facts(question, cell)),
        fits=True,
        rent=rent(chosen.n_instances, chosen.instance),
        monthly=money(chosen.monthly_usd),
        provider=", ".join(filter(None, (wording.provider_name(one.provider), one.region))),
        region=one.region,
        hardware=_hardware(question, cell),
        memory=words("{} × {}", whole(chosen.n_replicas), memory) if chosen.n_replicas > 1 else memory,
        load=load,
        headroom=wording.served(question, cell),
        token_time=wording.token_time(cell),
        throughput=wording.throughput(cell),
        first_token=wording.first_token(cell),
        sized_by=wording.sized_by(question, cell),
        runner_up=_runner_up(cell),
        chance=wording.sure(chosen.chance),
        is_short=wording.is_short(chosen),
        **_at_fp8(question, cell),
        not_asked=cheaper,
        cheapest_not_asked=less[0] if less else NONE,
        classes=tuple(classes[purchase] for purchase in shown),
        class_rents=tuple(rented(cell.by_purchase[purchase]) for purchase in shown),
        reserved=cell.needs_reservation,
        spare=_spare(question, cell),
        spare_machine="" if survives else money(chosen.monthly_usd / chosen.n_instances),
        unmeasured="" if one.gpu.memory.basis == "measured" else one.gpu.short_name,
        row=headline_table.headline_row(question, cell),
        ways=headline_table.way_rows(question, cell),
    )


def _hardware(question: Question, cell: CellRecord) -> Cell:
    """The GPUs that are rented, how they share the work, and which are idle."""
    chosen, one = cell.answer, question.instances[cell.answer.instance]
    idle = chosen.n_instances * one.gpu_count - chosen.n_gpus
    layout = Layout(chosen.tensor_parallel_size, chosen.data_parallel_size)
    parts = (
        rented_gpus(chosen.n_instances, one),
        layout.words(chosen.pipeline_parallel_size),
        plural(chosen.n_replicas, "replica"),
        *([words("{} idle", plural(idle, "GPU"))] if idle else []),
        *(["needs a reservation"] if cell.needs_reservation else []),
    )
    return joined(", ", parts)


def _spare(question: Question, cell: CellRecord) -> Text:
    """How many requests what is rented serves, where these are hardly more than the load: 33, asked 32."""
    needed = cell.requests_per_second if cell.is_rate else cell.concurrent_requests or 0
    if cell.answer.served_at_target > needed * (1 + LITTLE_SPARE):
        return ""
    at = wording.rate_words(cell) if cell.is_rate else whole(needed)
    return words("{}, asked {}", wording.served_count(cell), at)


def _runner_up(cell: CellRecord) -> Text:
    second, before = cell.runner_up, cell.answer.monthly_usd
    if second is None:
        return sentences.runner_up.fill(found=False)
    usd = second.monthly_usd
    return sentences.runner_up.fill(
        found=True,
        cheaper=usd < before,
        rent=rent(second.n_instances, second.instance),
        provider=wording.provider_name(second.provider),
        usd=money(usd),
        differs="the same" if usd == before else wording.change(before, usd),
    )


def _why_nothing(question: Question, cell: CellRecord) -> Text:
    model = question.model_of(cell.row)
    if question.loads[cell.row].over_limit:
        limit = short_tokens(int(model.model.max_context_tokens or 0))
        return words("{} requested, {} allowed", short_tokens(cell.context_tokens), limit)
    if cell.verdict == TOO_SLOW:
        target = wording.target_words(question.workload_of(cell.row))
        return words("a lone request misses {} on every candidate that holds it", target)
    if all(one.why.kind in ("not_run", DOUBTED) for one in cell.why_not):
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

    def block(w: int, of: Workload) -> page.MatrixBlock:
        split = words("{} in + {} out", whole(of.input_tokens), whole(of.output_tokens))
        listed = [(t, requests) for t, requests in enumerate(question.numbers) if (w, t, 0) in cells]
        tiers = tuple(row(w, *one) for one in sorted(listed, key=lambda one: (one[1] is None, one[1] or 0)))
        return page.MatrixBlock(of.name, short_tokens(of.context_tokens), split, tiers, of.context_tokens)

    return tuple(block(w, workload) for w, workload in enumerate(question.workloads))


def _people(cells: Iterable[CellRecord]) -> Text:
    """Whom every model's hardware for a load is enough for; nothing where that is not known."""
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
        rented_gpus(chosen.n_instances, question.instances[chosen.instance]),
        rent(chosen.n_instances, chosen.instance),
        wording.full_money(chosen.monthly_usd),
        headline_table.even_month(cell),
        *headline_table.as_published(cell),
        "",
        chosen.sized_by in ("tpot", "ttft"),
        cell.needs_reservation,
    )


def _bars(record: Record, question: Question) -> tuple[tuple[page.Bar, ...], ...]:
    """By model, a bar for each workload at the requests of the headline."""
    tier = question.headline[1]
    bars = [(load.model, cell) for load, cell in zip(question.loads, record.cells, strict=True) if load.tier == tier]
    return tuple(tuple(_bar(question, cell) for of, cell in bars if of == m) for m in range(len(question.models)))


def _bar(question: Question, cell: CellRecord) -> page.Bar:
    """What the GPUs hold: the weights on each replica, the KV cache as often as ranks keep it, and as overhead what
    lies beside both, a draft's weights with it."""
    units, weights, kv, chosen = question.settings.units, float(cell.weights_bytes), float(cell.kv_bytes), cell.chosen
    of_load = (
        question.model_of(cell.row).model.name,
        question.workload_of(cell.row).name,
        short_tokens(cell.context_tokens),
        question.loads[cell.row].workload == question.headline[0],
    )
    if chosen is None:
        return page.Bar(*of_load, weights, kv, size(weights, units), size(kv, units), capacity=cell.verdict)
    memory, on = chosen.memory, wording.gpus(chosen.n_gpus, question.instances[chosen.instance])
    return page.Bar(
        *of_load,
        weights_bytes=weights * chosen.n_replicas,
        kv_bytes=memory.kv_bytes,
        overhead_bytes=memory.overhead_bytes,
        capacity_bytes=memory.limit_bytes,
        weights=_times(chosen.n_replicas, weights, units),
        kv=_copies(memory.kv_bytes, kv, units),
        overhead=size(memory.overhead_bytes, units),
        limit=size(memory.limit_bytes, units),
        capacity=words("{} on {}", named_size(memory.limit_bytes, units), on),
    )


def _times(count: int, n_bytes: float, units: str) -> Cell:
    return size(n_bytes, units) if count == 1 else words("{} × {}", whole(count), size(n_bytes, units))


def _copies(held: float, kv: float, units: str) -> Cell:
    """KV on all ranks: a whole number of copies is said as one (an MLA cache is kept by every rank)."""
    copies = held / kv if kv else 1.0
    is_whole = math.isclose(copies, round(copies), rel_tol=0.01)
    return _times(round(copies), kv, units) if is_whole else size(held, units)


def _lever_rows(record: Record, question: Question) -> tuple[page.LeverRow, ...]:
    """The changes that save most at the headline load: the best of each model, then each one's second, and so on; none
    where none has a price. What saves nothing costs nothing that is worth saying."""
    rows = []
    of_cells = {cell.row: cell.levers for cell in record.headline_cells}
    for row, lever in best(of_cells, max(LEAST_LEVERS, len(of_cells))):
        name, then = question.model_of(row).model.name, rent(lever.n_instances, lever.instance)
        saved = wording.saved_money(lever), wording.saved_share(lever)
        cost_of_it = NONE if lever.saved_usd == 0 else lever.cost
        rows.append(page.LeverRow(name, lever.words, then, money(lever.monthly_usd), *saved, cost_of_it))
    return tuple(rows)


def facts_of(question: Question, cell: CellRecord) -> MoneyFacts:
    """The money of one load; nothing where nothing holds it."""
    name, chosen, units = question.model_of(cell.row).model.name, cell.chosen, cell.units
    if chosen is None:
        return MoneyFacts(model=name)
    owned, break_even = _owning(question, cell)
    known = question.owning.gpus.get(chosen.gpu)
    quoted = known is None or known.capex_usd is None or known.capex_as_of is None
    stale_after_days = question.reference.assumption("stale_after_days")
    old = known is not None and notes.is_stale(known.capex_as_of, question.as_of, stale_after_days)
    prompt, answer = units.usd_per_million_input_tokens, units.usd_per_million_output_tokens
    spent = "{} prompt, {} answer per million tokens at {} utilization"
    tokens = (dollars(prompt), dollars(answer), share(question.settings.utilization))
    return MoneyFacts(
        model=name,
        per_year=words("{} a year", money(units.annual_usd)),
        per_user=words("{} per user", dollars(units.usd_per_user_per_month))
        if cell.users > 0
        else words("{} per request at once", dollars(chosen.monthly_usd / (cell.concurrent_requests or 1))),
        per_million_tokens=words(spent, *tokens) if answer == answer else NONE,
        owned=owned,
        approve=_to_approve(question, chosen.monthly_usd, units.annual_usd),
        break_even=break_even,
        budget=_budget(question, cell),
        capex_is_old=not quoted and old,
        is_quoted=quoted,
    )


def class_costs(cell: CellRecord) -> dict[str, Cell]:
    """What a month costs in each purchase class, each answered anew; nothing where nothing holds the load."""
    if cell.chosen is None:
        return {}
    return {purchase: dollars(one.monthly_usd) if one else NONE for purchase, one in cell.by_purchase.items()}


def _at_fp8(question: Question, cell: CellRecord) -> dict[str, Any]:
    """What the load takes at FP8 weights and an FP8 KV cache; large where the answer is of more machines than one may
    expect to find free."""
    one = cell.fp8
    if one is None:
        return {}
    monthly = money(one.monthly_usd)
    is_same = one.monthly_usd == cell.answer.monthly_usd  # the same is no line of its own, as in `recommend`
    return {
        "at_fp8": NONE if is_same else words("{}, {}", rented(one), monthly),
        "fp8_rent": rented(one),
        "fp8_monthly": monthly,
        "fp8_is_large": cell.needs_reservation,
    }


def _fp8_quality(question: Question) -> str:
    """What FP8 costs in answers, and who found it."""
    levers = question.reference.catalog.file(LeverFile).levers
    both = next(one for one in levers if one.id == "fp8-both")
    more = both.more or both.cost
    return f"FP8: {more[:1].lower()}{more[1:]} ({both.source.partition(';')[0]})."


def _owning(question: Question, cell: CellRecord) -> tuple[Cell, Cell]:
    """What the GPUs of the replicas cost a month when owned, from the low to the high price, and its break-even."""
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
    """The month and the year with contingency in the budget's currency, where these say anything new."""
    settings, found = question.settings, cell.budget
    between, terms = wording.budget_terms(settings.currency, settings.fx_rate, settings.contingency_fraction)
    if found is None or not terms:
        return NONE
    display = replace(WHOLE, prefix=f"{settings.currency} ")
    month, year = (Cell(one.total, display) for one in (found.monthly, found.annual))
    return words(f"{{}} a month, {{}} a year{between}{{}}", month, year, terms)
