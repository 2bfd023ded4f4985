"""From the answer to the one page: every word and number that all writers draw.

A card for each model at the headline load, every load in a matrix, what its memory goes to as bars, the changes that
would save most, and what stands at the head of a model's column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sheetgen.answer import (
    TOO_SLOW,
    Fit,
    NotAsked,
    Rental,
    Solution,
    headline_rows,
    needs_reservation,
    not_asked,
    short_tokens,
)
from sheetgen.answer import ways_to_pay as figures
from sheetgen.answer.levers import EveryLever, Lever, at_fp8, best, levers_of_sheet, terms_at_fp8
from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.stacks import LeverFile
from sheetgen.question.sheet_question import ASKED, Question
from sheetgen.report import notes, page, wording
from sheetgen.report.fingerprints import breaks, fingerprints_for
from sheetgen.report.host_words import hosted_facts
from sheetgen.report.in_currency import in_currency
from sheetgen.report.page import NONE, Card, Cell, MoneyFacts, Page, Text, joined, words
from sheetgen.report.wording import dollars, gpus, money, named_size, plural, rent, rented_gpus, share, size, whole
from sheetgen.sizing import cost
from sheetgen.units import ON_DEMAND, ONE_DECIMAL, PERCENT, UNIT_NAMES, WHOLE

TITLE = "LLM serving sizing sheet"
LITTLE_SPARE = 0.1  # of the load: that many more, or fewer, and the page says how few
_TERMS = (("reserved-1yr", "1-year term", "months_in_a_year"), ("reserved-3yr", "3-year term", "months_in_three_years"))
LEAST_LEVERS = 3  # with more models, one of each at least


def build_page(solved: Solution, levers: EveryLever | None = None) -> Page:
    """The page of an answer, in the budget's currency. What is tight and what is stale is in the catalogs' assumptions.

    `levers` are those of every load where they are known already; else those of the headline are worked out.
    """
    return in_currency(page_in_dollars(solved, levers), solved.question.settings)


def page_in_dollars(solved: Solution, levers: EveryLever | None = None) -> Page:
    """The same as prices are: in US dollars, but for budgets."""
    question, prints, rows = solved.question, fingerprints_for(solved), headline_rows(solved)
    others = not_asked(solved)
    if levers is None:
        levers = levers_of_sheet(solved, rows)
    name = "stale_after_days"
    stale_after = question.overrides.input(name, question.reference.assumption(name))
    terms = terms_at_fp8(solved, levers)
    cards = tuple(_card(solved, row, levers[row], terms[row], others[row]) for row in rows)
    return Page(
        title=_stated(question, "title") or TITLE,
        question=_question(question),
        precision_line=_precision(question),
        as_of=question.as_of.isoformat(),
        price_banner=notes.price_banner(question, stale_after),
        version=notes.own_version(),
        catalog=question.catalog_sha256[:8],
        unit=UNIT_NAMES[question.settings.units],
        paper=question.settings.paper,
        cards=cards,
        **_asked(solved, cards),
        matrix=_matrix(solved),
        models=tuple(wording.model_facts(solved, m) for m in range(len(question.models))),
        bars=_bars(solved),
        breaks=breaks(solved),
        fingerprints=tuple(f.on_page(named=i == 0) for i, f in enumerate(prints)),
        levers=_lever_rows(solved, levers),
        fp8_quality=_fp8_quality(question),
        instances=notes.instance_rows(solved, stale_after),
        price_classes=tuple(notes.price_classes(question).values()),
        subject=next((str(f.numbers.get("model_name", "")) for f in prints), ""),
        left_out=notes.left_out(question),
        assumptions=tuple(notes.assumption_lines(question)),
        sources=notes.sources(solved),
        purchase=notes.price_classes(question)[question.settings.purchase],
        hosted_for=f"hosted: the cheapest host, same tokens at {share(question.settings.utilization)} use; not your "
        "weights, data leaves your site",
    )


def _stated(question: Question, name: str) -> str:
    """An option that is words for the page alone; "" where it was not given."""
    return str(question.options.get(name) or "")


def _asked(solved: Solution, cards: tuple[Card, ...]) -> dict[str, Any]:
    """Who asks whom for what, and how well that is known."""
    question = solved.question
    together = _stated(question, "together").lower() == "yes"
    return {
        "owner": _stated(question, "owner"),
        "approver": _stated(question, "approver"),
        "valid_until": _stated(question, "valid_until"),
        "ask": 0 if len(cards) == 1 else question.ask,
        "total": _total(solved, cards) if together and len(cards) > 1 else None,
        "pages": int(_stated(question, "pages") or 2),
        "confidence": tuple(notes.confidence(solved)),
        "assumed": tuple(notes.most_assumed(question)),
        "contingency": wording.contingency_words(question.settings.contingency_fraction),
    }


def _total(solved: Solution, cards: Sequence[Card]) -> page.Total:
    """The answers of all models added up; none where one of them has none."""

    def added(cells: Sequence[Any]) -> Cell:
        known = [one.value for one in cells if one]
        return money(math.fsum(known)) if len(known) == len(cells) else NONE

    monthly = added([one.monthly for one in cards])
    yearly = _annual_usd(monthly) if monthly else None
    classes = tuple(map(added, zip(*(one.classes for one in cards), strict=True))) if monthly else ()
    return page.Total(
        monthly=monthly,
        per_year=words("{} a year", money(yearly)) if monthly else NONE,
        classes=classes,
        class_rents=(NONE,) * len(classes),
        class_years=tuple(map(_a_year, classes)),
        fp8_monthly=added([one.fp8_monthly for one in cards]),
        span=wording.total_range([solved.choices[row] for row in headline_rows(solved)]),
        approve=_to_approve(solved, monthly, yearly),
    )


def _to_approve(solved: Solution, *usd: Any) -> tuple[Text, ...]:
    """A month and a year with contingency; nothing where there is none, or no amount."""
    fraction = solved.question.settings.contingency_fraction
    amounts = [one.value if isinstance(one, Cell) else one for one in usd]
    if not fraction or None in amounts:
        return ()
    month, year = (money(float(cost.total_usd(one, cost.contingency_usd(one, fraction)))) for one in amounts)
    return month, words("{} a year", year)


def _a_year(monthly: Cell) -> Cell:
    """Twelve of these months, in short."""
    return wording.short_money(_annual_usd(monthly)) if monthly else NONE


def _annual_usd(monthly: Cell) -> float:
    return float(cost.annual_usd(monthly.value, cost.CONSTANTS["months_in_a_year"]))


def _question(question: Question) -> str:
    workload, tier = question.workloads[question.headline[0]], question.numbers[question.headline[1]]
    context = short_tokens(workload.context_tokens)
    load = wording.rate_words(question) if tier is None else words("{} at once", plural(tier, "request"))
    name = workload.name if workload.id == ASKED else f"{workload.name} ({context} tokens)"
    return f"{name}, {load}"


def _precision(question: Question) -> str:
    settings, engine = question.settings, question.engine
    weights = "/".join(dict.fromkeys(m.weight_dtype for m in question.models))
    kv = "/".join(dict.fromkeys(m.kv_cache_dtype for m in question.models))
    active = settings.active_fraction
    return " · ".join(
        (
            f"weights {weights}" + (" (the checkpoint's own)" if settings.weight_dtype == "auto" else ""),
            f"KV cache {kv}",
            f"{engine.name} {engine.default_version}",
            *([wording.draft_words(question.draft)] if question.draft else []),
            wording.sizing_rule(question),
            *([f"a rate: allowance for chance, {share(settings.max_wait_fraction)} may wait"] if question.rate else []),
            "every user counted as active" if active == 1 else f"{share(active)} of the users active",
        )
    )


def _card(
    solved: Solution, row: int, levers: Sequence[Lever], fp8_terms: Mapping[str, Rental], others: Sequence[NotAsked]
) -> Card:
    question, choice = solved.question, solved.choices[row]
    name, load = solved.model_of(row).model.name, wording.load_words(solved, row)
    parts = (solved.loads[part][row] for part in ("weights_bytes", "kv_bytes"))
    memory = words("{} weights + {} KV cache", *(named_size(part, question.settings.units) for part in parts))
    less = [wording.not_asked_words(one) for one in sorted(others, key=lambda one: one.monthly_usd)]
    cheaper = joined("; ", less)
    fit = Fit.of(solved, row)
    if fit is None:
        return Card(
            model=name,
            fits=False,
            rent=choice.verdict,
            monthly=NONE,
            provider="–",
            hardware=_why_nothing(solved, row),
            memory=memory,
            load=load,
            not_asked=cheaper,
        )
    one, stages = fit.candidate, choice.pipeline_parallel_size
    idle = choice.n_instances * one.gpu_count - fit.gpus_used
    classes = class_costs(solved, row)
    hardware = (
        rented_gpus(choice.n_instances, one),
        fit.layout.words(stages),
        plural(choice.n_replicas, "replica"),
        *([words("{} idle", plural(idle, "GPU"))] if idle else []),
        *(["needs a reservation"] if needs_reservation(solved, row) else []),
    )
    return Card(
        **vars(facts_of(solved, row)),
        **vars(hosted_facts(solved, row)),
        fits=True,
        rent=rent(choice.n_instances, one),
        monthly=money(choice.monthly_usd),
        provider=", ".join(filter(None, (wording.provider_name(one.provider), one.region))),
        region=one.region,
        hardware=joined(", ", hardware),
        memory=words("{} × {}", whole(choice.n_replicas), memory) if choice.n_replicas > 1 else memory,
        load=load,
        headroom=wording.served(solved, row),
        token_time=wording.token_time(solved, row),
        throughput=wording.throughput(solved, row),
        first_token=wording.first_token(solved, row),
        sized_by=wording.sized_by(solved, row),
        runner_up=_runner_up(solved, row),
        span=wording.month_range(choice),
        band=wording.money_band(choice),
        machines=wording.machines_range(choice),
        spread=wording.spread(choice),
        measured=wording.measured_range(choice),
        slow_end=wording.AT_SLOW_END if choice.monthly_usd_ends[1] is None else "",
        **_at_fp8(solved, row, levers, fp8_terms),
        not_asked=cheaper,
        cheapest_not_asked=less[0] if less else NONE,
        held=words("serves {}", wording.served_count(choice)),
        targets=wording.short_targets(question, row) if question.settings.speed_targets else "",
        late=wording.late_first_token(solved, row),
        classes=tuple(classes[purchase] for purchase in notes.price_classes(question)),
        class_years=tuple(_a_year(classes[purchase]) for purchase in notes.price_classes(question)),
        class_rents=tuple(_class_rent(solved, row, purchase) for purchase in notes.price_classes(question)),
        class_tight=tuple(_is_tight_elsewhere(solved, row, purchase) for purchase in notes.price_classes(question)),
        tight=solved.is_tight(row),
        reserved=needs_reservation(solved, row),
        spare=_spare(solved, row),
        committed=_committed(classes),
        spare_machine="" if question.settings.survive else money(choice.monthly_usd / choice.n_instances),
        unmeasured="" if one.gpu.memory.basis == "measured" else one.gpu.short_name,
    )


def _spare(solved: Solution, row: int) -> Text:
    """How many requests what is rented serves, where these are hardly more than the load: 33, asked 32."""
    choice, load = solved.choices[row], solved.question.loads[row]
    needed = load.requests_per_second or load.concurrent_requests
    if choice.served_at_target > needed * (1 + LITTLE_SPARE):
        return ""
    at = wording.rate_words(solved.question) if load.requests_per_second else whole(needed)
    return words("{}, asked {}", wording.served_count(choice), at)


def _committed(classes: Mapping[str, Cell]) -> Text:
    """What the longest term that has a price commits to, in all, and how long that pays for on demand: a 3-year term to
    $624,867, 15.6 months on demand."""
    on_demand = classes.get(ON_DEMAND)
    for purchase, said, months in reversed(_TERMS):
        if (usd := classes.get(purchase)) and on_demand:
            total = float(usd.value * cost.CONSTANTS[months])
            lasts = Cell(total / on_demand.value, ONE_DECIMAL)
            return words(f"a {said} to {{}}, {{}} months on demand", money(total), lasts)
    return ""


def _runner_up(solved: Solution, row: int) -> Text:
    choice = solved.choices[row]
    second, usd = choice.runner_up, choice.runner_up_monthly_usd
    if second is None or usd is None:
        return "no other GPU or provider holds it"
    one = solved.candidate(second)
    rented = rent(round(float(solved.costs["n_instances"][row, second])), one)
    differs = "the same" if usd == choice.monthly_usd else wording.change(choice.monthly_usd, usd)
    lead = wording.NEAR_TIE if usd < choice.monthly_usd else wording.NEXT
    return words(f"{lead}{{}} on {{}}, {{}} ({{}})", rented, wording.provider_name(one.provider), money(usd), differs)


def _why_nothing(solved: Solution, row: int) -> Text:
    load, model = solved.question.loads[row], solved.model_of(row)
    if load.over_limit:
        limit = short_tokens(int(model.model.max_context_tokens or 0))
        return words("{} requested, {} allowed", short_tokens(load.context_tokens), limit)
    if solved.choices[row].verdict == TOO_SLOW:
        target = wording.target_words(solved.question, row)
        return words("a lone request misses {} on every candidate that holds it", target)
    if not (solved.pools["runs"][load.model] == 1).any():
        return f"no candidate runs {model.weight_dtype} weights with a {model.kv_cache_dtype} KV cache"
    return "no candidate holds weights and one request"


def _matrix(solved: Solution) -> tuple[page.MatrixBlock, ...]:
    question = solved.question
    rows = {(c.workload, c.tier, c.model): i for i, c in enumerate(question.loads)}
    short = wording.short_names([question.candidates[i] for i in notes.used_instances(solved)])

    def row(w: int, t: int, requests: int | None) -> page.MatrixRow:
        cells = tuple(_cell(solved, rows[w, t, m], short) for m in range(len(question.models)))
        return page.MatrixRow(
            wording.rate_words(question) if requests is None else whole(requests),
            (w, t) == question.headline,
            cells,
            requests or 0,
        )

    def block(w: int, of: Workload) -> page.MatrixBlock:
        split = words("{} in + {} out", whole(of.input_tokens), whole(of.output_tokens))
        listed = [(t, requests) for t, requests in enumerate(question.numbers) if (w, t, 0) in rows]
        tiers = tuple(row(w, *one) for one in sorted(listed, key=lambda one: (one[1] is None, one[1] or 0)))
        return page.MatrixBlock(of.name, short_tokens(of.context_tokens), split, tiers, of.context_tokens)

    return tuple(block(w, workload) for w, workload in enumerate(question.workloads))


def _cell(solved: Solution, row: int, short: Mapping[str, str]) -> page.MatrixCell:
    question, choice = solved.question, solved.choices[row]
    if question.loads[row].over_limit:
        return page.MatrixCell("over", f"over {short_tokens(int(solved.model_of(row).model.max_context_tokens or 0))}")
    kv, fit = wording.short_size(float(solved.loads["kv_bytes"][row]), question.settings.units), Fit.of(solved, row)
    if fit is None:
        return page.MatrixCell("none", choice.verdict, kv)
    status = "tight" if solved.is_tight(row) else "fits"
    hardware, rented = (of(choice.n_instances, fit.candidate) for of in (rented_gpus, rent))
    usd, by_speed = wording.short_money(choice.monthly_usd), choice.sized_by in ("tpot", "ttft")
    in_short = words("{} × {}", whole(choice.n_instances), short[fit.candidate.instance])
    reserved = needs_reservation(solved, row)
    word = "little headroom" if status == "tight" else "fits"
    return page.MatrixCell(status, word, kv, hardware, rented, usd, by_speed, reserved, in_short)


def _bars(solved: Solution) -> tuple[tuple[page.Bar, ...], ...]:
    """By model, a bar for each workload at the requests of the headline."""
    question = solved.question
    rows = [(row, load.model) for row, load in enumerate(question.loads) if load.tier == question.headline[1]]
    return tuple(tuple(_bar(solved, row) for row, of in rows if of == m) for m in range(len(question.models)))


def _bar(solved: Solution, row: int) -> page.Bar:
    """What the GPUs hold: the weights on each replica, the KV cache as often as ranks keep it, and as overhead what
    lies beside both, a draft's weights with it."""
    question = solved.question
    load, units = question.loads[row], question.settings.units
    of_load = (
        solved.model_of(row).model.name,
        question.workloads[load.workload].name,
        short_tokens(load.context_tokens),
        load.workload == question.headline[0],
    )
    weights, kv = (float(solved.loads[bill][row]) for bill in ("weights_bytes", "kv_bytes"))
    fit = Fit.of(solved, row)
    if fit is None:
        verdict = solved.choices[row].verdict
        return page.Bar(*of_load, weights, kv, size(weights, units), size(kv, units), capacity=verdict)
    overhead = (fit["overhead_bytes_per_gpu"] + fit.draft_bytes_per_gpu) * fit.gpus_used
    capacity = fit["memory_budget_bytes"] * fit.gpus_used
    held = fit["steady_bytes"] * fit.layout.tensor_parallel_size * load.concurrent_requests
    return page.Bar(
        *of_load,
        weights_bytes=weights * fit.choice.n_replicas,
        kv_bytes=held,
        overhead_bytes=overhead,
        capacity_bytes=capacity,
        weights=_times(fit.choice.n_replicas, weights, units),
        kv=_copies(held, kv, units),
        overhead=size(overhead, units),
        limit=size(capacity, units),
        capacity=words("{} on {}", named_size(capacity, units), wording.gpus(fit.gpus_used, fit.candidate)),
    )


def _times(count: int, n_bytes: float, units: str) -> Cell:
    return size(n_bytes, units) if count == 1 else words("{} × {}", whole(count), size(n_bytes, units))


def _copies(held: float, kv: float, units: str) -> Cell:
    """KV on all ranks: a whole number of copies is said as one (an MLA cache is kept by every rank)."""
    copies = held / kv if kv else 1.0
    is_whole = math.isclose(copies, round(copies), rel_tol=0.01)
    return _times(round(copies), kv, units) if is_whole else size(held, units)


def _lever_rows(solved: Solution, every_lever: EveryLever) -> tuple[page.LeverRow, ...]:
    """The changes that save most at the headline load: the best of each model, then each one's second, and so on; none
    where none has a price. What saves nothing costs nothing that is worth saying."""
    rows = []
    headlines = headline_rows(solved)
    for row, lever in best({row: every_lever[row] for row in headlines}, max(LEAST_LEVERS, len(headlines))):
        name, after = solved.model_of(row).model.name, lever.after
        assert after is not None, "the best are among those that have a price"
        then = rent(after.n_instances, after.candidate), money(after.monthly_usd)
        saved = wording.saved_money(lever), wording.saved_share(lever)
        rows.append(page.LeverRow(name, lever.words, *then, *saved, NONE if lever.saved_usd == 0 else lever.cost))
    return tuple(rows)


def facts_of(solved: Solution, row: int) -> MoneyFacts:
    """The money of one load; nothing where nothing holds it."""
    question, load = solved.question, solved.question.loads[row]
    name, fit = solved.model_of(row).model.name, Fit.of(solved, row)
    if fit is None:
        return MoneyFacts(model=name)
    owned, break_even = _owning(fit)
    units, known = figures.unit_costs(solved, row), question.owning.gpus.get(fit.candidate.gpu.id)
    quoted = known is None or known.capex_usd is None or known.capex_as_of is None
    stale_after_days = question.reference.assumption("stale_after_days")
    old = known is not None and notes.is_stale(known.capex_as_of, question.as_of, stale_after_days)
    prompt, answer = (units[f"usd_per_million_{kind}_tokens"] for kind in ("input", "output"))
    spent = "{} prompt, {} answer per million tokens at {} utilization"
    tokens = (dollars(prompt), dollars(answer), share(question.settings.utilization))
    return MoneyFacts(
        model=name,
        per_year=words("{} a year", money(units["annual_usd"])),
        per_user=words("{} per user", dollars(units["usd_per_user_per_month"]))
        if question.counts_people(load)
        else words("{} per request at once", dollars(fit.choice.monthly_usd / load.concurrent_requests)),
        per_million_tokens=words(spent, *tokens) if answer == answer else NONE,
        owned=owned,
        approve=_to_approve(solved, fit.choice.monthly_usd, units["annual_usd"]),
        break_even=break_even,
        budget=_budget(solved, row),
        capex_is_old=not quoted and old,
        is_quoted=quoted,
    )


def class_costs(solved: Solution, row: int) -> dict[str, Cell]:
    """What a month costs in each purchase class, each answered anew; nothing where nothing holds the load."""
    if solved.choices[row].offer is None:
        return {}
    answers = ((purchase, of[row]) for purchase, of in solved.by_purchase.items())
    return {purchase: NONE if one is None else dollars(one.usd) for purchase, one in answers}


def _at_fp8(solved: Solution, row: int, levers: Sequence[Lever], terms: Mapping[str, Rental]) -> dict[str, Any]:
    """What the load takes at FP8 weights and an FP8 KV cache; large where the answer is of more machines than one may
    expect to find free."""
    one = at_fp8(levers)
    if one is None:
        return {}
    rented, monthly = rent(one.n_instances, one.candidate), money(one.monthly_usd)
    is_same = one.monthly_usd == solved.choices[row].monthly_usd  # the same is no line of its own, as in `recommend`
    return {
        "at_fp8": NONE if is_same else words("at FP8: {}, {}", rented, monthly),
        "fp8_rent": rented,
        "fp8_monthly": monthly,
        "fp8_is_large": needs_reservation(solved, row),
        "fp8_term": _fp8_term(solved, row, one.monthly_usd, terms),
        "fp8_tight": terms[solved.question.settings.purchase].tight,
    }


def _fp8_quality(question: Question) -> str:
    """What FP8 costs in answers, and who found it."""
    levers = question.reference.catalog.file(LeverFile).levers
    both = next(one for one in levers if one.id == "fp8-both")
    more = both.more or both.cost
    return f"FP8: {more[:1].lower()}{more[1:]} ({both.source.partition(';')[0]})."


def _fp8_term(solved: Solution, row: int, fp8_usd: float, terms: Mapping[str, Rental]) -> Text:
    """FP8 and a term together, of the terms the cheapest, where that is the cheapest way of all that are named."""
    known = [(said, terms[purchase]) for purchase, said, _ in _TERMS if purchase in terms]
    said, best = min(known, key=lambda term: term[1].usd, default=("", None))
    others = (solved.by_purchase[purchase][row] for purchase, _, _ in _TERMS if purchase in solved.by_purchase)
    if best is None or best.usd >= min(fp8_usd, *(one.usd for one in others if one)):
        return ""
    return words(f"{{}} with FP8 on a {said} on {{}}", money(best.usd), rent(best.n_instances, best.candidate))


def _class_rent(solved: Solution, row: int, purchase: str) -> Cell:
    one = solved.by_purchase[purchase][row]
    return NONE if one is None else rent(one.n_instances, one.candidate)


def _is_tight_elsewhere(solved: Solution, row: int, purchase: str) -> bool:
    """Whether the answer in another class than the one in use has little headroom: of that one the card says it."""
    one = solved.by_purchase[purchase][row]
    return one is not None and one.tight and purchase != solved.question.settings.purchase


def _owning(fit: Fit) -> tuple[Cell, Cell]:
    """What the GPUs of the replicas cost a month when owned, from the low to the high price, and its break-even."""
    ends = figures.owned(fit.solved, fit.row)
    if ends is None:
        return NONE, NONE
    (low, base, high), shares = (
        [ends[end][name] for end in figures.ENDS] for name in ("monthly_owned_usd", "break_even_utilization")
    )
    span = dollars(low) if dollars(low) == dollars(high) else words("{} to {}", dollars(low), dollars(high))
    owned = words("{}: {}", gpus(fit.gpus_used, fit.candidate), span) if base == base else NONE
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


def _budget(solved: Solution, row: int) -> Cell:
    """The month and the year with contingency in the budget's currency, where these say anything new."""
    settings, found = solved.question.settings, figures.budget(solved, row)
    between, terms = wording.budget_terms(settings.currency, settings.fx_rate, settings.contingency_fraction)
    if found is None or not terms:
        return NONE
    display = replace(WHOLE, prefix=f"{settings.currency} ")
    month, year = (Cell(one[2], display) for one in (found.monthly, found.annual))
    return words(f"{{}} a month, {{}} a year{between}{{}}", month, year, terms)
