"""A sheet solved again from what its file says, or from the prices of one and the load or settings of another.

Whether that may be believed is seen by asking a sheet again as it is: it must give its own figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sheetgen.catalog import Catalog
from sheetgen.recommend import solve
from sheetgen.scenario.override_kinds import BANDS, ENGINE, SETTINGS, TABLES, name_part
from sheetgen.scenario.question import Question, ask
from sheetgen.units import DTYPES
from sheetgen.workbook.pairing import ASKED
from sheetgen.workbook.sheet_facts import OF_MARKET, SheetFacts

OF_SETTINGS = (
    "weight_dtype", "kv_cache_dtype", "gpu_memory_utilization", "block_size", "average_context_fraction",
    "prefix_cache_hit_fraction", "extra_headroom_fraction", "spare_replicas", "hours_per_month", "speed_factor",
    "ttft_factor",
)  # fmt: skip


def monthly_usd(
    catalog: Catalog, prices: SheetFacts, load: SheetFacts, at: tuple[str, int], settings: SheetFacts
) -> dict[str, float | None]:
    """Dollars a month of each model at one load: a workload's key and a tier of `load`. None where nothing fits.

    Raises SheetgenError where it cannot be asked: a model that is in no catalog, a value out of range.
    """
    options = dict(_options(catalog, prices, load, at, settings))
    base = ask(catalog, options)
    solved = solve(ask(catalog, {**options, "typed": _typed(base, prices, load, at[0], settings)}))
    return {
        solved.question.models[cell.model].model.id: None if choice.offer is None else choice.monthly_usd
        for cell, choice in zip(solved.question.loads, solved.choices, strict=True)
    }


def _options(
    catalog: Catalog, prices: SheetFacts, load: SheetFacts, at: tuple[str, int], settings: SheetFacts
) -> Iterator[tuple[str, Any]]:
    workload, tier = at
    facts, requests = load.workloads[workload], load.tiers[tier - 1]
    yield "models", ",".join(load.models)
    if workload == ASKED:
        yield "context_tokens", facts.context_tokens
        yield "output_tokens", facts.output_tokens
        yield "users", requests
    else:
        ids = {name_part(w.id): w.id for w in catalog.workloads()}
        yield "workloads", ids.get(workload, workload)
        yield "contexts", f"{ids.get(workload, workload)}={facts.context_tokens}"
        yield "tiers", str(requests)
    for name in OF_MARKET:
        if prices.options.get(name):
            yield name, prices.options[name]
    if (discount := prices.settings.get("discount_fraction")) and discount.value is not None:
        yield "discount_fraction", discount.value
    for name in ("engine", "engine_version"):
        if settings.options.get(name):
            yield name, settings.options[name]
    given = {name: one.value for name, one in settings.settings.items() if one.value is not None}
    yield from ((name, given[name]) for name in OF_SETTINGS if name in given)
    if "kv_reserved" in given:
        yield "kv_allocation", "reserved" if given["kv_reserved"] else "paged"
    for figure in ("tpot_ms", "ttft_ms"):
        side = settings if f"{figure}_{workload}" in settings.settings else load
        if (target := side.settings.get(f"{figure}_{workload}")) is not None:
            yield figure, "off" if target.value is None else str(target.value)
    if settings.as_of is not None:
        yield "as_of", settings.as_of.isoformat()


def _typed(base: Question, prices: SheetFacts, load: SheetFacts, workload: str, settings: SheetFacts) -> dict[str, Any]:
    """All cells of a sheet as if every one of them had been typed: what the catalog says now is of no account."""
    names = (*ENGINE, *SETTINGS, *BANDS)
    inputs = {n: settings.settings[n].value for n in names if n in settings.settings}
    answer = load.workloads[workload].output_tokens
    if workload != ASKED and answer is not None:
        inputs[f"output_{workload}"] = answer
    rows = {"models": [m.model.id for m in base.models], "gpus": [g.id for g in base.gpus], "precisions": list(DTYPES)}
    tables = {name: dict(_rows(settings.tables.get(name, {}), name, keys)) for name, keys in rows.items()}
    return {"inputs": inputs, **tables, **_instances(base, prices)}


def _rows(
    table: Mapping[str, Mapping[str, Any]], name: str, keys: list[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key in keys:
        row = {column: value for column, value in table.get(key, {}).items() if column in TABLES[name]}
        if row:
            yield key, row


def _instances(base: Question, prices: SheetFacts) -> dict[str, Any]:
    """The instances of the sheet and no others, at its prices."""
    listed: dict[str, Any] = {}
    for one in base.candidates:
        offer = prices.offers.get(one.instance)
        price = offer.prices.get(prices.purchase) if offer else None
        listed[one.instance] = {"price_usd_per_hour": price.usd_per_hour if price else None}
        if offer:
            listed[one.instance] |= {"instance_gpu": offer.gpu, "gpu_count": offer.gpu_count}
    own = []
    for key, offer in prices.offers.items():
        price = offer.prices.get(prices.purchase)
        provider, _, kind = key.partition("/")
        if key not in listed and price and provider and kind:
            own.append({"provider": provider, "type": kind, "instance_gpu": offer.gpu, "gpu_count": offer.gpu_count,
                        "price_usd_per_hour": price.usd_per_hour})  # fmt: skip
    return {"instances": listed, "own_instances": own}
