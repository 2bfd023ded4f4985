"""The answer as JSON: what was requested, the candidates, every cell with its choice and the reasons against others.

Same question, same bytes: keys in a fixed order, numbers as they are, no time but `as_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sheetgen.answer import (
    Choice,
    Fit,
    Hosted,
    NotAsked,
    Pick,
    Rental,
    Solution,
    hosts_of,
    needs_reservation,
    not_asked,
    was_measured,
    ways_to_pay,
    why_not,
)
from sheetgen.answer.levers import EveryLever, Lever, at_fp8, in_order
from sheetgen.question.discounts import words_of
from sheetgen.question.inputs import BY_OPTION, OF_SETTINGS, asked_in
from sheetgen.question.market import DEFAULT_PROVIDERS, DEFAULT_VENDORS, OwnedGpu
from sheetgen.question.sheet_question import OF_PAGE, Load, Question
from sheetgen.sizing import cost
from sheetgen.writers.formats import Options, json_text

if TYPE_CHECKING:
    from sheetgen.report.page import Page

SCHEMA_VERSION = 1

Record = dict[str, Any]
# Settings that the JSON has elsewhere.
NESTED = ("kv_reserved", "hybrid_kv_manager", *(one.name for one in asked_in("money")))
OF_WORKLOAD = ("id", "context_tokens", "input_tokens", "output_tokens", "tpot_target_ms", "ttft_target_ms")


def write_json(page: Page, options: Options) -> bytes:
    """The answer behind the page."""
    return json_text(options.record()).encode()


def document(solved: Solution, fingerprints: Sequence[Mapping[str, Any]] = (), levers: EveryLever = ()) -> Record:
    """The whole answer as plain values; what does not apply is None. `levers` are those of each cell."""
    question, others = solved.question, not_asked(solved)
    return {
        "schema_version": SCHEMA_VERSION,
        "as_of": question.as_of.isoformat(),
        "inputs": inputs(question),
        "candidates": [
            {
                **_fields(c, "instance", "provider"),
                "gpu": c.gpu.id,
                **_fields(c, "gpu_count", "purchase"),
                "hourly_usd": cost.discounted_usd_per_hour(c.usd_per_hour, question.discount(c.provider, c.purchase)),
                **_fields(c, "price_as_of", "region", "assumed_shape"),
            }
            for c in question.candidates
        ],
        "cells": [
            _cell(solved, row, others[row]) | _levers(levers[row] if levers else ())
            for row in range(len(question.loads))
        ],
        "fingerprints": [plain(f) for f in fingerprints],
        "sources": sources(question),
    }


def plain(value: Any) -> Any:
    """A nested value with lists for tuples, as it will be when it is read back."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _fields(one: Any, *names: str) -> Record:
    return {name: getattr(one, name) for name in names}


def inputs(question: Question) -> Record:
    """Every input, the defaults used among them."""
    settings, filters = question.settings, question.filters
    workload, tier = question.headline
    return {
        "models": [m.model.id for m in question.models],
        "workloads": [_fields(w, *OF_WORKLOAD) for w in question.workloads],
        "tiers": [one for one in question.tiers if one is not None],
        **_rate(question),
        "engine": question.engine.engine,
        "engine_version": question.engine.default_version,
        "draft_model": question.draft and question.draft.id,
        **{k: v for k, v in vars(settings).items() if k not in NESTED},
        "discounts": {words_of(key): value for key, value in question.discounts.items()},
        "kv_allocation": BY_OPTION["kv_allocation"].words[settings.kv_reserved],
        "hybrid_kv_manager": bool(settings.hybrid_kv_manager),
        "providers": list(filters.providers or (() if filters.instances else DEFAULT_PROVIDERS)),
        "vendors": list(filters.vendors or (() if filters.gpus or filters.instances else DEFAULT_VENDORS)),
        "gpus": list(filters.gpus),
        "instances": list(filters.instances),
        "region": filters.region or None,
        **_money_inputs(question),
        "headline": f"{question.workloads[workload].id}:{question.numbers[tier] or 'rate'}",
        "ask": None if question.ask is None else question.models[question.ask].model.id,
        **{one.asked_as: question.options.get(one.asked_as, one.default) for one in OF_PAGE},
        "left_out": [{"rows": count, "reason": reason} for reason, count in question.left_out],
        "catalog_sha256": question.catalog_sha256,
        "typed": question.overrides.data() or None,
    }


def _cell(solved: Solution, row: int, others: Sequence[NotAsked]) -> Record:
    question = solved.question
    load, choice = question.loads[row], solved.choices[row]
    model = question.models[load.model]
    return {
        "model": model.model.id,
        "workload": question.workloads[load.workload].id,
        "tier": question.numbers[load.tier],
        "context_tokens": load.context_tokens,
        **_requests(load, choice),
        **_fields(model, "weight_dtype", "kv_cache_dtype"),
        "weights_bytes": int(solved.models["weights_bytes"][load.model]),
        "kv_bytes": int(solved.loads["kv_bytes"][row]),
        "verdict": choice.verdict,
        **_chosen(solved, row, choice),
        **_speed(choice),
        "by_purchase": {name: _rental(of[row]) for name, of in solved.by_purchase.items()},
        **{name: _picked(solved, getattr(choice, name)) for name in PICKS},
        "needs_reservation": needs_reservation(solved, row),
        "not_asked": [_not_asked(one) for one in others],
        "hosted": [_hosted(one) for one in hosts_of(solved, row).cheapest],
        **_money(solved, row),
        "runner_up": _runner_up(solved, choice, row),
        "why_not": [{"instance": i, "reason": r.words} for i, r in why_not(solved, row)],
    }


def _requests(load: Load, choice: Choice) -> Record:
    """The requests of a load; of a rate those at once follow, and there are none where nothing serves it."""
    in_flight = None if load.requests_per_second and choice.offer is None else load.concurrent_requests
    rate = load.requests_per_second or None
    return {
        "concurrent_requests": in_flight,
        "requests_per_second": rate,
        "n_places": choice.n_places or None,
        "wait_fraction": choice.wait_fraction,
    }


def _rate(question: Question) -> Record:
    """The rate as it was asked for; the shares of a day are among the settings."""
    stated = question.rate
    names = ("requests_per_second", "requests_per_day")
    return {name: getattr(stated, name) if stated else None for name in names}


def _rental(one: Rental | None) -> Record | None:
    return one and {"instance": one.candidate.instance, "n_instances": one.n_instances, "monthly_usd": one.usd}


def _not_asked(one: NotAsked) -> Record:
    more = _fields(one, "n_instances", "monthly_usd", "measured")
    return {"instance": one.candidate.instance, "vendor": one.candidate.gpu.vendor, **more}


PICKS = ("cheapest", "without_targets", "without_ttft", "without_survival")


def _hosted(one: Hosted) -> Record:
    prices = _fields(one.price, *(f"{kind}_usd_per_million" for kind in ("input", "cached", "output")))
    said = _fields(one.price, "precision", "source")
    money = _fields(one, "monthly_usd", "cheaper_above")
    return {"host": one.price.host, "model": one.price.name, **prices, **said, **money}


def _picked(solved: Solution, one: Pick | None) -> Record | None:
    """What another rule would take: the very cheapest, or where it is cheaper memory alone, or no target of the first
    token."""
    if one is None:
        return None
    return _rental(Rental(solved.candidate(one.offer), one.n_instances, one.usd))


def _speed(choice: Choice) -> Record:
    """What users get of the recommendation, with 80 % bands, and what asked for the replicas."""
    if choice.offer is None:
        return dict.fromkeys(SPEED)
    found = _fields(choice, *SPEED[:3])
    for name, (low, high) in zip(TIMES, choice.bands, strict=True):
        found |= {name: getattr(choice, name), f"{name}_low": low, f"{name}_high": high}
    return found


TIMES = ("tpot_seconds", "ttft_seconds", "output_tokens_per_second")
SPEED = (
    "sized_by",
    "bound_by",
    "requests_per_replica",
    *(f"{name}{end}" for name in TIMES for end in ("", "_low", "_high")),
)


def _chosen(solved: Solution, row: int, choice: Choice) -> Record:
    """The recommendation of a cell, all None where nothing holds it."""
    if choice.offer is None:
        return dict.fromkeys(CHOSEN)
    candidate, layout = solved.candidate(choice.offer), solved.layout(choice.offer)
    low, high = choice.monthly_usd_ends
    n_gpus = layout.n_gpus * choice.pipeline_parallel_size
    known = {
        "monthly_usd_low": low,
        "monthly_usd_high": high,
        **_fields(candidate, "instance", "purchase"),
        "gpu": candidate.gpu.id,
        **layout._asdict(),
        "spans_machines": n_gpus > candidate.gpu_count,
        "measured": was_measured(solved, row, choice.offer),
        "n_gpus": choice.n_replicas * n_gpus,
    }
    return {name: known[name] if name in known else getattr(choice, name) for name in CHOSEN}


CHOSEN = (
    "instance", "gpu", "purchase", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
    "spans_machines", "measured", "sequences_per_replica", "n_replicas", "n_gpus", "n_instances", "hourly_usd",
    "monthly_usd", "monthly_usd_low", "monthly_usd_high", "served_at_target", "memory_holds", "headroom_fraction",
    "sure_headroom_fraction",
)  # fmt: skip


def _runner_up(solved: Solution, choice: Choice, row: int) -> Record | None:
    if choice.runner_up is None:
        return None
    candidate, costs, at = solved.candidate(choice.runner_up), solved.costs, (row, choice.runner_up)
    layout = solved.layout(choice.runner_up)
    stages, replicas = int(costs["pipeline_stages"][at]), int(costs["n_replicas"][at])
    return {
        **_fields(candidate, "instance", "provider"),
        "gpu": candidate.gpu.id,
        **layout._asdict(),
        "pipeline_parallel_size": stages,
        "n_replicas": replicas,
        "n_gpus": replicas * layout.n_gpus * stages,
        "n_instances": int(costs["n_instances"][at]),
        "hourly_usd": float(costs["hourly_usd"][at]),
        "monthly_usd": choice.runner_up_monthly_usd,
    }


def _money_inputs(question: Question) -> Record:
    """The inputs about money, and the terms of owning, the defaults used among them."""
    settings, owning = question.settings, question.owning
    of_money = (one.name for one in OF_SETTINGS if one in asked_in("money"))
    names = dict.fromkeys(("currency", "fx_rate", "fx_date", *of_money))
    day = {"fx_date": settings.fx_date or question.as_of.isoformat()}
    by_gpu = {name: dict(getattr(owning, name)) for name in ("capex_usd_per_gpu", "kw_per_gpu")}
    return {"money": _fields(settings, *names) | day, "owning": {**owning.values, **by_gpu}}


def _money(solved: Solution, row: int) -> Record:
    """Unit costs, purchase classes, providers, owning and the budget of one load."""
    known = {k: v for k, v in _all_known(ways_to_pay.unit_costs(solved, row)).items() if not k.startswith("million_")}
    if not solved.question.counts_people(solved.question.loads[row]):
        known["usd_per_user_per_month"] = None
    return {
        **known,
        "purchase_classes": [_all_known(vars(one)) for one in ways_to_pay.purchase_classes(solved, row)],
        "providers": [_provider(solved, one) for one in ways_to_pay.providers(solved, row)],
        "owned": _owned(solved, row),
        "budget": _budget(solved, row),
    }


def _known(value: Any) -> Any:
    """A value as JSON has it: nothing for NaN and for an empty text."""
    return None if value == "" or value != value else value


def _all_known(values: Mapping[str, Any]) -> Record:
    return {name: _known(value) for name, value in values.items()}


def _provider(solved: Solution, one: ways_to_pay.ProviderCost) -> Record:
    rented: Record = dict.fromkeys(("instance", "gpu", "tensor_parallel_size", "n_instances"))
    if one.offer is not None:
        candidate, size = solved.candidate(one.offer), solved.layout(one.offer).tensor_parallel_size
        rented = dict(zip(rented, (candidate.instance, candidate.gpu.id, size, one.n_instances), strict=True))
    usd = {name: _known(getattr(one, name)) for name in ("hourly_usd", "monthly_usd")}
    return {"provider": one.provider, **rented, **usd}


def _owned(solved: Solution, row: int) -> Record | None:
    """Owning the recommended GPUs at the low, base and high price; None where nothing is recommended."""
    ends, fit = ways_to_pay.owned(solved, row), Fit.of(solved, row)
    if ends is None or fit is None:
        return None
    gpu = fit.candidate.gpu.id
    known = solved.question.owning.gpus.get(gpu, OwnedGpu())
    return {
        "gpu": gpu,
        "n_gpus": fit.gpus_used,
        "capex_as_of": known.capex_as_of,
        "capex_source": _known(known.capex_source),
        "kw_source": known.kw_source,
        "confidence": _known(known.confidence),
        **{end: _all_known(figures) for end, figures in ends.items()},
    }


def _budget(solved: Solution, row: int) -> Record | None:
    """The sums with their contingency: in dollars, and in the budget's currency."""
    found = ways_to_pay.budget(solved, row)
    if found is None:
        return None
    keys = ("usd", "contingency_usd", "total")
    sums = {period: dict(zip(keys, amounts, strict=True)) for period, amounts in vars(found).items()}
    return {"currency": solved.question.settings.currency, **sums}


def _levers(levers: Sequence[Lever]) -> Record:
    """A cell's levers that have a price, those that save most first, and the indication for host memory.

    saved_usd is None where nothing holds the load without the change, 0 where the months differ by the near tie alone.
    """
    host_memory = None
    for one in levers:
        if one.offload:
            found = vars(one.offload)
            whole = {name: round(found[name]) for name in ("bytes_per_gpu", "parked_kv_bytes_per_gpu")}
            host_memory = {**found, **whole, "note": one.note}
            break
    priced = [
        {
            "lever": one.id,
            **_fields(one, "words", "changed"),
            "instance": after.candidate.instance,
            **_fields(after, "n_instances", "n_gpus", "monthly_usd"),
            **_fields(one, "saved_usd", "saved_fraction", "cost", "note", "further"),
        }
        for one in in_order(levers)
        if (after := one.after)
    ]
    after = at_fp8(levers)
    fp8 = after and _rental(Rental(after.candidate, after.n_instances, after.monthly_usd))
    return {"fp8": fp8, "levers": priced, "host_memory": host_memory}


def sources(question: Question) -> list[Record]:
    """Where the figures come from: one entry per model, GPU, recommended-from instance, workload and engine."""
    found: list[tuple[str, str, str, str | None]]
    found = [("model", m.model.id, m.model.source, m.model.checked_on) for m in question.models]
    found += [("gpu", g.id, f"memory: {g.memory.source}; {g.source}", g.checked_on) for g in question.gpus]
    found += [("instance", c.instance, c.source, c.price_as_of) for c in question.candidates]
    found += [("workload", w.id, w.source, None) for w in question.workloads]
    hosted, ids = question.reference.hosted, {m.model.id for m in question.models}
    origin = f"{hosted.origin}, {hosted.license}" if hosted.license else hosted.origin
    found += [("hosted prices", one.model, origin, hosted.read_on) for one in hosted.models if one.model in ids]
    engine = question.engine
    parts = {
        "accounting": engine.accounting_source,
        "activations": engine.activation_source,
        "non-torch memory": engine.non_torch_source,
        "CUDA graphs": engine.cuda_graph_source,
        "batch limits": engine.batch_defaults_source,
    }
    found += [("engine", f"{engine.engine} {part}", source, engine.checked_on) for part, source in parts.items()]
    return [{"kind": k, "id": i, "source": s, "date": d} for k, i, s, d in found]
