"""Makes the record, the answer as data, from a solution. All outputs read the record; only the workbook reads the
solution, too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeVar

from sheetgen.answer import ways_to_pay
from sheetgen.answer.answer_record import (
    SCHEMA_VERSION,
    AtConfidence,
    CandidateRecord,
    CellRecord,
    ChosenRecord,
    DeciderRecord,
    HistoryRecord,
    Json,
    LeftOut,
    LeverRecord,
    MeasureRecord,
    MemoryRecord,
    NotAskedRecord,
    NotChosen,
    OtherWeights,
    OwnedRecord,
    ProviderCost,
    PublishedRecord,
    Record,
    RentalRecord,
    RunnerUp,
    SourceRecord,
    SureRental,
    SurvivorRental,
    UnitCosts,
    WaitsRecord,
    keys_of,
    not_in_price,
)
from sheetgen.answer.confidences import (
    ABOUT,
    by_confidence,
    is_fallback,
    is_same_rental,
    less_sure,
    measure_first,
    were_measured,
)
from sheetgen.answer.histories import lost_histories
from sheetgen.answer.hosts import hosts_of
from sheetgen.answer.levers.lever import EveryLever, Lever, Loads, at_fp8, in_order
from sheetgen.answer.longer_contexts import cheaper_longer
from sheetgen.answer.market_notes import fewer_machines, measured_hardware, needs_reservation, not_asked
from sheetgen.answer.moves import moves_of
from sheetgen.answer.other_precisions import as_published, as_recommended, kv_bytes_by_dtype, model_records
from sheetgen.answer.pay_less import JUDGED, MORE, OF_LEVERS, as_sure_ways, cheapest_same, other_terms, ways_to_pay_less
from sheetgen.answer.people_loads import Otherwise, asking_otherwise
from sheetgen.answer.picks import Pick
from sheetgen.answer.reasons import passed_over, why_not
from sheetgen.answer.replica_bills import longest_context, replica_bills, startup_log, subject
from sheetgen.answer.sheet_facts import MILLISECONDS_PER_SECOND
from sheetgen.answer.solution import Fit, Solution, headline_rows
from sheetgen.answer.solve import tables
from sheetgen.answer.surer_terms import terms_as_sure
from sheetgen.answer.survivors import survivors
from sheetgen.answer.waits import waits_of
from sheetgen.question.deployment import RATES
from sheetgen.question.discounts import words_of
from sheetgen.question.inputs import BY_OPTION, OF_SETTINGS, OF_WORKLOAD, asked_in
from sheetgen.question.market import DEFAULT_PROVIDERS, DEFAULT_VENDORS, Candidate, OwnedGpu
from sheetgen.question.measurements import with_measured
from sheetgen.question.sheet_question import OF_PAGE, Question
from sheetgen.sizing import choice, cost
from sheetgen.units import EVEN, ON_DEMAND, SPOT, SURE

Sure = TypeVar("Sure", AtConfidence, SureRental)  # a rental with its chance

# Settings that the inputs have elsewhere.
NESTED = ("kv_reserved", "hybrid_kv_manager", *(asked.name for asked in asked_in("money")))
KEPT_OF_WORKLOAD = (
    "id", "context_tokens", "input_tokens", "output_tokens", *OF_WORKLOAD, "tpot_target_ms", "ttft_target_ms",
)  # fmt: skip
OF_OFFER = (
    "replicas_per_instance", "paced_requests", "overhead_bytes_per_gpu", "loaded_weights_bytes_per_gpu",
    "weights_bytes_per_gpu", "memory_budget_bytes", "steady_bytes",
)  # fmt: skip


def record_of(solved: Solution, levers: EveryLever = ()) -> Record:
    """The record of an answer. `levers` are those of each load."""
    question, others, providers = solved.question, not_asked(solved), ways_to_pay.providers(solved)
    headline, chosen, confidences = headline_rows(solved), _chosen(solved), by_confidence(solved)
    of_levers = levers or [()] * len(question.loads)
    otherwise, published, caches = asking_otherwise(solved), as_published(solved), kv_bytes_by_dtype(solved)
    cheaper = less_sure(solved, confidences) if levers else (None,) * len(question.loads)
    few, recommended, waits = fewer_machines(solved), as_recommended(solved), waits_of(solved)
    surer_terms = terms_as_sure(solved) if levers else [{} for _ in question.loads]
    rented = confidences, cheaper, surer_terms, few, others, providers, published, recommended
    parts = zip(*rented, *(caches, otherwise, of_levers), strict=True)
    with_runs, lost = measured_hardware(solved, chosen), lost_histories(solved, chosen)
    machine_survivors, seconds = survivors(solved), _runners_up(solved)
    cells = [
        _cell(
            solved,
            row,
            chosen.get(row),
            waits.get(row),
            machine_survivors.get(row),
            seconds.get(row),
            with_runs.get(row),
            lost.get(row),
            *of_load,
        )
        for row, of_load in enumerate(parts)
    ]
    cells = [replace(c, longest_context=longest_context(solved, c.row)) if c.row in headline else c for c in cells]
    if levers:
        longer = cheaper_longer(solved, headline)
        moves = moves_of(solved, [c for c in cells if c.row in headline], Loads(solved))
        cells = [
            replace(c, moves=moves.get(c.row, ()), cheaper_longer=longer.get(c.row)) if c.row in headline else c
            for c in cells
        ]
    fit = subject(solved)
    return Record(
        SCHEMA_VERSION,
        question.as_of.isoformat(),
        min((cell.chosen.price_as_of for cell in cells if cell.chosen and cell.chosen.price_as_of), default=None),
        not_in_price(question.settings.survive),
        _inputs(question),
        tuple(_candidates(question)),
        tuple(cells),
        (),
        tuple(_sources(question)),
        headline,
        model_records(solved),
        replica_bills(fit) if fit else {},
    )


def _fields(source: object, *names: str) -> Json:
    return {name: getattr(source, name) for name in names}


def _candidates(question: Question) -> Iterator[CandidateRecord]:
    """The candidates that took part, at prices less the discount."""
    names = ("instance", "provider", "gpu_count", "purchase", "price_as_of", "region", "assumed_shape")
    for candidate in question.candidates:
        discount = question.discount(candidate.provider, candidate.purchase)
        hourly_usd = float(cost.discounted_usd_per_hour(candidate.usd_per_hour, discount))
        sold_as = tuple(price.purchase for price in candidate.prices) or (candidate.purchase,)
        yield CandidateRecord(
            gpu=candidate.gpu.id, sold_as=sold_as, hourly_usd=hourly_usd, **_fields(candidate, *names)
        )


def _inputs(question: Question) -> Json:
    """Every input, the defaults used among them."""
    settings, filters, rate = question.settings, question.filters, question.rate
    workload, tier = question.headline
    inputs = {
        "models": [m.model.id for m in question.models],
        "workloads": [_fields(w, *KEPT_OF_WORKLOAD) for w in question.workloads],
        "tiers": [requests for requests in question.tiers if requests is not None],
        **{name: rate and getattr(rate, name) for name in RATES},
        "engine": question.engine.engine,
        "engine_version": question.engine.default_version,
        "draft_model": question.draft and question.draft.id,
        **{k: v for k, v in vars(settings).items() if k not in NESTED},
        "discounts": {words_of(key): value for key, value in question.discounts.items()},
        "kv_allocation": BY_OPTION["kv_allocation"].words[settings.kv_reserved],
        "hybrid_kv_manager": bool(settings.hybrid_kv_manager),
        "providers": list(filters.providers or (() if filters.instances else _default_providers(question))),
        "vendors": list(filters.vendors or (() if filters.gpus or filters.instances else DEFAULT_VENDORS)),
        "gpus": list(filters.gpus),
        "instances": list(filters.instances),
        "region": filters.region or None,
        **_money_inputs(question),
        "headline": f"{question.workloads[workload].id}:{question.numbers[tier] or 'rate'}",
        "ask": None if question.ask is None else question.models[question.ask].model.id,
        **{words.asked_as: question.options.get(words.asked_as, words.default) for words in OF_PAGE},
        "left_out": [{"rows": count, "reason": reason} for reason, count in question.left_out],
        "catalog_sha256": question.catalog_sha256,
        "typed": question.overrides.data() or None,
    }
    return with_measured(inputs, question.measurements)


def _default_providers(question: Question) -> dict[str, None]:
    """The providers asked where none is named: the large clouds, and those whose rows the user adds."""
    return dict.fromkeys((*DEFAULT_PROVIDERS, *(row.provider for row in question.rows if row.brought)))


def _money_inputs(question: Question) -> Json:
    """The inputs about money, and the terms of owning, the defaults used among them."""
    settings, owning = question.settings, question.owning
    of_money = (setting.name for setting in OF_SETTINGS if setting in asked_in("money"))
    names = dict.fromkeys(("currency", "fx_rate", "fx_date", *of_money))
    day = {"fx_date": settings.fx_date or question.as_of.isoformat()}
    by_gpu = {name: dict(getattr(owning, name)) for name in ("capex_usd_per_gpu", "kw_per_gpu")}
    return {"money": _fields(settings, *names) | day, "owning": {**owning.values, **by_gpu}}


def _cell(
    solved: Solution,
    row: int,
    chosen: ChosenRecord | None,
    waits: WaitsRecord | None,
    survivor: SurvivorRental | None,
    runner_up: RunnerUp | None,
    with_runs: SureRental | None,
    history: HistoryRecord | None,
    confidences: tuple[AtConfidence | None, ...],
    cheaper: AtConfidence | None,
    surer_terms: Mapping[str, RentalRecord],
    few: RentalRecord | None,
    others: tuple[NotAskedRecord, ...],
    providers: tuple[ProviderCost, ...],
    published: PublishedRecord | None,
    recommended: OtherWeights | None,
    kv_bytes_by_dtype: Mapping[str, int],
    people: Otherwise,
    levers: Sequence[Lever],
) -> CellRecord:
    """The record of one load, from what was worked out for all loads together."""
    question, choice, reasons = solved.question, solved.choices[row], why_not(solved, row)
    load, workload = question.loads[row], question.workload_of(row)
    model, units = question.models[load.model], ways_to_pay.unit_costs(solved, row)
    confidences = tuple(level and _as_sure_as(level, cheaper) for level in confidences)
    if with_runs is not None:
        with_runs = reduce(_as_sure_as, filter(None, confidences), with_runs)
    reasons_to_measure, measure = _measured(solved, row, chosen, confidences)
    cell = CellRecord(
        model=model.model.id,
        workload=workload.id,
        tier=question.numbers[load.tier],
        context_tokens=load.context_tokens,
        input_tokens=workload.input_tokens,
        output_tokens=workload.output_tokens,
        tpot_target_seconds=_seconds(workload.tpot_target_ms) if question.settings.speed_targets else None,
        ttft_target_seconds=_seconds(workload.ttft_target_ms) if question.settings.speed_targets else None,
        users=float(solved.loads["users"][row]),
        requests_per_second=float(solved.loads["load_requests_per_second"][row]),
        requests_per_hour=float(solved.loads["requests_per_hour"][row]),
        # A rate that nothing serves has no concurrent requests.
        concurrent_requests=None if load.requests_per_second and chosen is None else load.concurrent_requests,
        n_places=choice.n_places or None,
        wait_fraction=choice.wait_fraction,
        weight_dtype=model.weight_dtype,
        kv_cache_dtype=model.kv_cache_dtype,
        weights_bytes=int(solved.models["weights_bytes"][load.model]),
        kv_bytes=int(solved.loads["kv_bytes"][row]),
        checkpoint=model.served_as,
        kv_bytes_by_dtype=kv_bytes_by_dtype,
        as_published=published,
        as_recommended=recommended,
        log=startup_log(solved, row),
        verdict=choice.verdict,
        chosen=chosen,
        by_confidence=confidences,
        measure_first=reasons_to_measure,
        by_purchase={
            name: _in_surer_layout(answers[row], surer_terms.get(name)) for name, answers in solved.by_purchase.items()
        },
        declined=vars(question.declined) if question.declined else None,
        cheapest=_picked(solved, choice.cheapest),
        waits=waits,
        all_at_once=people.all_at_once,
        by_requests_per_day=people.by_requests_per_day,
        more_people=people.more_people,
        history=history,
        without_targets=_picked(solved, choice.without_targets),
        without_ttft=_picked(solved, choice.without_ttft),
        without_survival=_picked(solved, choice.without_survival),
        survives_machine=survivor,
        needs_reservation=needs_reservation(solved, row),
        fewer_machines=few,
        not_asked=others,
        hosted=hosts_of(solved, row),
        units=UnitCosts(**{name: units[name] for name in keys_of(UnitCosts)}),
        purchase_classes=ways_to_pay.purchase_classes(solved, row),
        providers=providers,
        in_europe=None,
        smaller_model=None,
        owned=_owned(solved, row),
        budget=ways_to_pay.budget(solved, row),
        measure=measure,
        runner_up=runner_up,
        passed_over=passed_over(reasons),
        why_not=tuple(NotChosen(instance, why.words, why) for instance, why in reasons),
        **_levers(levers),
        measured_hardware=with_runs,
        moves=(),
        cheaper_longer=None,
        left_out=tuple(LeftOut(*reason) for reason in question.left_out),
        pay_less=(),
        other_terms=(),
        as_sure=(),
        cheapest_same=None,
        row=row,
    )
    if chosen is None or not levers:
        return cell
    reference = question.reference
    judged = {name: reference.assumption(name) for name in JUDGED}
    judged["hours_per_month"] = question.settings.hours_per_month
    ways = ways_to_pay_less(cell, cheaper, model.model.checkpoint_ids, judged)
    cell = replace(cell, pay_less=ways, other_terms=other_terms(cell, ways, judged))
    cell = replace(cell, as_sure=as_sure_ways(cell, ways, surer_terms, judged))
    return replace(cell, cheapest_same=cheapest_same(cell))


def _in_surer_layout(rental: RentalRecord | None, surer: RentalRecord | None) -> RentalRecord | None:
    """A rental, or the same machines in a surer layout, where one was looked for."""
    return surer if rental and surer and is_same_rental(rental, surer) else rental


def _as_sure_as(rental: Sure, surer: AtConfidence | None) -> Sure:
    """A rental with the chance of the same machines in a surer layout, where one was looked for."""
    is_same = surer is not None and is_same_rental(rental, surer)
    return replace(rental, chance=max(rental.chance, surer.chance)) if surer is not None and is_same else rental


def _seconds(milliseconds: float | None) -> float | None:
    return milliseconds / MILLISECONDS_PER_SECOND if milliseconds else None


def _picked(solved: Solution, pick: Pick | None) -> RentalRecord | None:
    """The rental that another rule would choose; None where it chooses nothing."""
    return pick and RentalRecord(solved.candidate(pick.offer).instance, pick.n_instances, pick.usd)


def _chosen(solved: Solution) -> dict[int, ChosenRecord]:
    """The recommendations of the loads that something holds, by row."""
    offers = {row: choice.offer for row, choice in enumerate(solved.choices) if choice.offer is not None}
    if not offers:
        return {}
    along = solved.grid.along("chosen", {"load": list(offers), "offer": list(offers.values())})
    table, measured = along.table("chosen"), were_measured(along)
    columns = {name: table[name] for name in (*OF_OFFER, "offered_requests") if name in table}
    return {
        row: _chosen_of(solved, row, offer, {name: float(column[i]) for name, column in columns.items()}, measured[i])
        for i, (row, offer) in enumerate(offers.items())
    }


def _chosen_of(solved: Solution, row: int, offer: int, quantities: Mapping[str, float], measured: bool) -> ChosenRecord:
    """The recommendation of one load; `quantities` are those of its offer. measured: whether runs of it took part."""
    choice, candidate, layout = solved.choices[row], solved.candidate(offer), solved.layout(offer)
    n_gpus = layout.n_gpus * choice.pipeline_parallel_size
    n_gpus_used, n_held = choice.n_replicas * n_gpus, quantities["replicas_per_instance"] * choice.n_instances
    draft_bytes = quantities["loaded_weights_bytes_per_gpu"] - quantities["weights_bytes_per_gpu"]
    times = ("tpot_seconds", "ttft_seconds", "output_tokens_per_second")
    bands: Json = {}
    for name, (low, high) in zip(times, choice.bands, strict=True):
        bands |= {f"{name}_low": low, f"{name}_high": high}
    kv_bytes = quantities["steady_bytes"] * layout.tensor_parallel_size * solved.question.loads[row].concurrent_requests
    names = {name for name in keys_of(ChosenRecord) if hasattr(choice, name)}
    return ChosenRecord(
        **_fields(choice, *names),
        **_fields(candidate, "instance", "region", "price_as_of", "purchase"),
        gpu=candidate.gpu.id,
        tensor_parallel_size=layout.tensor_parallel_size,
        data_parallel_size=layout.data_parallel_size,
        spans_machines=n_gpus > candidate.gpu_count,
        measured=measured,
        n_gpus=n_gpus_used,
        **bands,
        replicas_held=int(n_held) if choice.pipeline_parallel_size == 1 else choice.n_replicas,
        paced_requests=quantities["paced_requests"],
        offered_requests=quantities.get("offered_requests", 0.0),
        memory=MemoryRecord(
            (quantities["overhead_bytes_per_gpu"] + draft_bytes) * n_gpus_used,
            kv_bytes,
            quantities["memory_budget_bytes"] * n_gpus_used,
        ),
    )


HOURS_OF_A_MEASUREMENT = 24


def cheapest_at(question: Question, confidence: float) -> list[AtConfidence | None]:
    """By load the cheapest rental at a confidence; None where nothing holds the load."""
    return [cheapest for (cheapest,) in by_confidence(tables(question), (confidence,))]


def measured_first(solved: Solution) -> Iterator[tuple[tuple[str, ...], MeasureRecord | None]]:
    """By load the reasons to measure before its machines are rented, and the measurement."""
    chosen, confidences = _chosen(solved), by_confidence(solved)
    for row, levels in enumerate(confidences):
        yield _measured(solved, row, chosen.get(row), levels)


def _measured(
    solved: Solution, row: int, chosen: ChosenRecord | None, confidences: Sequence[AtConfidence | None]
) -> tuple[tuple[str, ...], MeasureRecord | None]:
    question = solved.question
    months = {level.confidence: level.monthly_usd for level in confidences if level}
    reasons = measure_first(chosen, months, question.settings.confidence, is_fallback(solved, row))
    if chosen is None or question.models[question.loads[row].model].model.is_reference_shape:
        return reasons, None
    return reasons, _measure(question, chosen, confidences, reasons)


def _measure(
    question: Question, chosen: ChosenRecord, confidences: Sequence[AtConfidence | None], reasons: Sequence[str]
) -> MeasureRecord:
    """The measurement of a day on the machines of one replica. Where an even chance costs less than the answer by more
    than a near tie, the month's money depends on the cheaper machines: `decider` is a day on those."""
    levels = {level.confidence: level for level in confidences if level}
    months = {confidence: level.monthly_usd for confidence, level in levels.items()}
    decides_usd = decided_usd(chosen.monthly_usd, months.get(SURE), months.get(EVEN))

    def a_day_on(rental: ChosenRecord | AtConfidence) -> tuple[str, int, float, str]:
        rented = question.instances[rental.instance]
        hourly_usd, purchase, instance = by_the_day(question, rented)
        n_machines = math.ceil(rental.gpus_per_replica / rented.gpu_count)
        return instance, n_machines, HOURS_OF_A_MEASUREMENT * n_machines * hourly_usd, purchase

    instance, machines_of_replica, usd, purchase = a_day_on(chosen)
    decider, even = None, levels.get(EVEN)
    if even and even.monthly_usd * (1 + question.settings.near_tie_fraction) < chosen.monthly_usd:
        decider = DeciderRecord(*a_day_on(even), even.monthly_usd, even.limit, even.measured)
    is_worth_it = bool(reasons) or (decides_usd or 0) > (decider.usd if decider else usd)
    sure = levels.get(SURE)
    is_sure = chosen.chance >= SURE or (sure is not None and sure.monthly_usd <= chosen.monthly_usd * ABOUT)
    more_usd = None if sure is None else sure.monthly_usd - chosen.monthly_usd
    return MeasureRecord(
        instance,
        HOURS_OF_A_MEASUREMENT,
        usd,
        purchase,
        None,  # the commands `serve` and `bench` come with the flags
        None,
        decides_usd,
        chosen.monthly_usd - decider.monthly_usd if decider else 0.0,
        0.0 if is_sure else more_usd,
        is_worth_it,
        machines_of_replica,
        decider,
    )


def by_the_day(question: Question, rented: Candidate) -> tuple[float, str, str]:
    """$ an hour, class and instance of the machine to measure on: the one that is rented, on demand or else spot. Where
    it is sold in neither, the cheapest with as many of the same GPUs that is; else the rented one, in its class."""
    alike = [
        machine for machine in question.rows if (machine.gpu.id, machine.gpu_count) == (rented.gpu.id, rented.gpu_count)
    ]
    own = (rented,)
    of_class = ((ON_DEMAND, own), (SPOT, own), (ON_DEMAND, alike), (SPOT, alike), (rented.purchase, own))
    for purchase, candidates in of_class:
        prices = [
            (float(cost.discounted_usd_per_hour(price.usd_per_hour, discount)), purchase, machine.instance)
            for machine in candidates
            if (price := machine.class_price(purchase))
            for discount in (question.discount(machine.provider, purchase),)
        ]
        if prices:
            return min(prices)
    raise AssertionError("a candidate has a price in its class")


def decided_usd(answer_usd: float, surest_usd: float | None, even_usd: float | None) -> float | None:
    """The month's money that a measurement decides: the cost at a confidence of 0.9 (the answer's cost where nothing is
    so sure) less the cost at 0.5; None where that is not known."""
    return None if even_usd is None else (answer_usd if surest_usd is None else surest_usd) - even_usd


def _runners_up(solved: Solution) -> dict[int, RunnerUp]:
    """By row, the best with another GPU or provider, where it is one that somebody would rent instead."""
    seconds = {row: choice.runner_up for row, choice in enumerate(solved.choices) if choice.runner_up is not None}
    if not seconds:
        return {}
    measured = were_measured(solved.grid.along("chosen", {"load": list(seconds), "offer": list(seconds.values())}))
    runners_up = zip(seconds, measured, strict=True)
    return {row: other for row, has_runs in runners_up if (other := _runner_up(solved, row, has_runs))}


def _runner_up(solved: Solution, row: int, measured: bool) -> RunnerUp | None:
    answer = solved.choices[row]
    second, usd = answer.runner_up, answer.runner_up_monthly_usd
    if second is None or usd is None:
        return None
    candidate, layout = solved.candidate(second), solved.layout(second)
    counts = ("pipeline_stages", "n_replicas", "n_instances")
    stages, n_replicas, n_instances = (int(solved.costs[name][row, second]) for name in counts)
    limits = (solved.question.reference.assumption(name) for name in choice.OF_RUNNER_UP)
    if not choice.is_alternative(usd, n_instances, answer.monthly_usd, answer.n_instances, *limits):
        return None
    return RunnerUp(
        candidate.instance,
        candidate.provider,
        candidate.gpu.id,
        layout.tensor_parallel_size,
        layout.data_parallel_size,
        stages,
        n_replicas,
        n_replicas * layout.n_gpus * stages,
        n_instances,
        float(solved.costs["hourly_usd"][row, second]),
        usd,
        measured,
    )


def _owned(solved: Solution, row: int) -> OwnedRecord | None:
    """Owning the recommended GPUs; None where nothing is recommended."""
    ends, fit = ways_to_pay.owned(solved, row), Fit.of(solved, row)
    if ends is None or fit is None:
        return None
    gpu = fit.candidate.gpu.id
    terms = solved.question.owning.gpus.get(gpu, OwnedGpu())
    source, confidence = terms.capex_source or None, terms.confidence or None
    n_gpus = round(ends["base"][cost.n_owned_gpus.name])
    return OwnedRecord(gpu, n_gpus, terms.capex_as_of, source, terms.kw_source, confidence, **ends)


def _levers(levers: Sequence[Lever]) -> Json:
    """A cell's levers that have a price, those that save most first; the answer at FP8; and the indication for host
    memory."""
    host_memory = None
    for lever in levers:
        if lever.offload:
            indication = vars(lever.offload)
            whole = {name: round(indication[name]) for name in ("bytes_per_gpu", "parked_kv_bytes_per_gpu")}
            host_memory = {**indication, **whole, "note": lever.note}
            break
    after = at_fp8(levers)
    return {
        "fp8": after and RentalRecord(after.candidate.instance, after.n_instances, after.monthly_usd),
        "levers": tuple(map(_lever, in_order(levers))),
        "host_memory": host_memory,
    }


def _lever(lever: Lever) -> LeverRecord:
    assert lever.after is not None, "of levers that have a price"
    names = ("words", "changed", "saved_usd", "saved_fraction", "cost", "note", "further", "family", "is_near_tie")
    return LeverRecord(
        lever.id,
        instance=lever.after.candidate.instance,
        **_fields(lever.after, "n_instances", "n_gpus", "monthly_usd", "is_even_chance"),
        **_fields(lever, *names),
        chance=lever.after.chance if lever.id in (*OF_LEVERS, MORE) and not lever.further else None,
    )


def _sources(question: Question) -> Iterator[SourceRecord]:
    """The sources of the figures: one entry per model, GPU, candidate instance, workload and part of the engine."""
    for asked in question.models:
        yield SourceRecord("model", asked.model.id, asked.model.source, asked.model.checked_on)
    for gpu in question.gpus:
        yield SourceRecord("gpu", gpu.id, f"memory: {gpu.memory.source}; {gpu.source}", gpu.checked_on)
    for candidate in question.candidates:
        yield SourceRecord("instance", candidate.instance, candidate.source, candidate.price_as_of)
    for workload in question.workloads:
        yield SourceRecord("workload", workload.id, workload.source, None)
    hosted = question.reference.hosted
    origin = f"{hosted.origin}, {hosted.license}" if hosted.license else hosted.origin
    for asked in question.models:
        if live := question.live_hosts(asked.model):
            yield SourceRecord("hosted prices", asked.model.hosted_id, origin, min(map(hosted.day_of, live)))
    engine = question.engine
    for part, source in (
        ("accounting", engine.accounting_source),
        ("activations", engine.activation_source),
        ("non-torch memory", engine.non_torch_source),
        ("CUDA graphs", engine.cuda_graph_source),
        ("batch limits", engine.batch_defaults_source),
    ):
        yield SourceRecord("engine", f"{engine.engine} {part}", source, engine.checked_on)
