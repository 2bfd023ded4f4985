"""Cost of a recommendation in every way that finance asks for: the formulas of `cost` for each cell.

All in US dollars and unrounded, NaN where something is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy

from sheetgen.answer.answer_record import Budget, ClassCost, EuropeRecord, ProviderCost, Record, Sum
from sheetgen.answer.picks import Pick, pick
from sheetgen.answer.sheet_facts import settings_of
from sheetgen.answer.solution import Fit, Solution
from sheetgen.formula import Formula
from sheetgen.program.grid import Column, Columns, evaluate
from sheetgen.question.market import ClassPrice, OwnedGpu, price_in
from sheetgen.sizing import cost
from sheetgen.units import ON_DEMAND, PURCHASES

ENDS = ("low", "base", "high")
EUROPE = "eu"  # the area, as a question names it
OF_A_LOAD = (
    cost.usd_per_user_per_month,
    cost.million_output_tokens_per_month,
    cost.million_input_tokens_per_month,
    cost.usd_per_million_input_tokens,
    cost.usd_per_million_output_tokens,
    cost.usd_per_million_tokens,
)
UNIT_COSTS = (cost.annual_usd, cost.three_year_usd, *OF_A_LOAD)
HOSTED_TOKENS = (cost.hosted_million_output_tokens, cost.hosted_million_input_tokens)
OF_CLASS = (
    cost.paid_hours_per_month,
    cost.hourly_usd,
    cost.monthly_usd,
    cost.annual_usd,
    cost.three_year_usd,
    cost.commitment_waste_usd,
)
PAYBACK = (  # of owning beside the rent of the answer
    cost.owned_running_usd,
    cost.owning_pays_off_month.reading(
        up_front_usd="owned_capex_usd", owned_each_month_usd="owned_running_usd", each_month_usd="monthly_usd"
    ),
)
OF_OWNING = (
    cost.n_owned_gpus,
    cost.purchase_share_per_year,
    cost.installed_usd_per_gpu,
    cost.kw_per_gpu,
    cost.metered_kw_per_gpu,
    cost.owned_capex_usd,
    cost.owned_hardware_usd,
    cost.owned_support_usd,
    cost.owned_energy_usd,
    cost.owned_site_usd,
    cost.monthly_owned_usd,
    cost.owned_usd_per_gpu_hour,
    cost.break_even_utilization,
    PAYBACK[0],
    cost.owned_three_year_cash_usd,
    PAYBACK[1],
)


def _inputs(solved: Solution) -> Columns:
    """The inputs of the formulas of `cost` that hold for the whole sheet."""
    return {**settings_of(solved.question), **solved.question.owning.values}


def _evaluated(formulas: tuple[Formula, ...], values: Mapping[str, Column]) -> dict[str, float]:
    quantities = evaluate(formulas, values)
    return {formula.name: float(quantities[formula.name]) for formula in formulas}


def unit_costs(solved: Solution, row: int) -> dict[str, float]:
    """Cost of a year, three years, a user, a million tokens: the results of `UNIT_COSTS`, NaN where nothing holds the
    load."""
    choice = solved.choices[row]
    of_choice = ("monthly_usd", "prefill_fraction", "output_tokens_per_second")
    return _evaluated(
        UNIT_COSTS,
        {
            **_inputs(solved),
            "users": float(solved.loads["users"][row]),
            "input_tokens": float(solved.question.loads[row].input_tokens),
            "output_tokens": float(solved.workload_of(row).output_tokens),
            **{name: math.nan if choice.offer is None else getattr(choice, name) for name in of_choice},
        },
    )


def hosted_tokens(solved: Solution, row: int) -> dict[str, float]:
    """Tokens of a month for which a host would be paid, in millions; NaN where nothing holds the load."""
    load = solved.question.loads[row]
    quantities = {
        **_inputs(solved),
        **unit_costs(solved, row),
        "requests_per_second": float(load.requests_per_second),
        "users": float(solved.loads["users"][row]),
        "requests_per_user_per_day": float(solved.workload_of(row).requests_per_user_per_day),
        "input_tokens": float(load.input_tokens),
        "output_tokens": float(solved.workload_of(row).output_tokens),
    }
    return _evaluated(HOSTED_TOKENS, quantities)


def purchase_classes(solved: Solution, row: int) -> tuple[ClassCost, ...]:
    """Cost of the recommended instances in every purchase class, NaN where no price is known; empty where nothing
    fits."""
    fit, classes = Fit.of(solved, row), []
    if fit is None:
        return ()
    for purchase in PURCHASES:
        price = fit.candidate.class_price(purchase)
        usd = _of_class(solved, fit, purchase, price)
        classes.append(
            ClassCost(
                purchase,
                **usd,
                region=(price.region or fit.candidate.region) if price else None,
                price_as_of=price.price_as_of if price else None,
                terms=(price.price_kind or None) if price else None,
                source=(fit.candidate.source or None) if price else None,
            )
        )
    return tuple(classes)


def with_europe(record: Record, solved: Solution) -> Record:
    """The record of a sheet with the cost of its headlines' machines in Europe."""
    if solved.question.filters.region:
        return record
    cells = [
        replace(cell, in_europe=_in_europe(solved, cell.row)) if cell in record.headline_cells and cell.chosen else cell
        for cell in record.cells
    ]
    return replace(record, cells=tuple(cells))


def _in_europe(solved: Solution, row: int) -> EuropeRecord:
    fit = Fit.of(solved, row)
    assert fit is not None, "something serves this load"
    price = price_in(solved.question.reference.catalog, EUROPE, fit.candidate)
    if price is None:
        return EuropeRecord()
    usd = _of_class(solved, fit, price.purchase, price)
    return EuropeRecord(price.region, price.price_as_of, usd["hourly_usd"], usd["monthly_usd"])


def _of_class(solved: Solution, fit: Fit, purchase: str, price: ClassPrice | None) -> dict[str, float]:
    """Cost of the recommended instances in a purchase class at a price, in US dollars; NaN without one."""
    quantities = {
        **_inputs(solved),
        "is_committed": int(PURCHASES[purchase].committed),
        "n_instances": fit.choice.n_instances,
        "price_usd_per_hour": _paid(solved, fit, price),
    }
    usd = _evaluated(OF_CLASS, quantities)
    return {name: amount for name, amount in usd.items() if name != "paid_hours_per_month"}


def _paid(solved: Solution, fit: Fit, price: ClassPrice | None) -> float:
    """Hourly price of an instance less the discount, in US dollars; NaN without a price."""
    if price is None:
        return math.nan
    discount = solved.question.discount(fit.candidate.provider, price.purchase)
    return float(cost.discounted_usd_per_hour(price.usd_per_hour, discount))


def providers(solved: Solution) -> list[tuple[ProviderCost, ...]]:
    """By load, the cheapest answer at each provider of the candidates; ties are broken as in the choice."""
    loads = solved.question.loads
    of_offer = numpy.array([solved.candidate(i).provider for i in range(len(solved.offers))])
    names = list(dict.fromkeys(of_offer.tolist()))
    grid = solved.grid.along("chosen", {"load": [row for row in range(len(loads)) for _ in names]})
    picks = pick(grid, numpy.tile(of_offer == numpy.array(names)[:, None], (len(loads), 1)), "chosen")
    of_load = (picks[start : start + len(names)] for start in range(0, len(picks), len(names)))
    return [
        tuple(
            ProviderCost(name) if best is None or load.over_limit else _provider(solved, row, name, best[0])
            for name, best in zip(names, bests, strict=True)
        )
        for row, (load, bests) in enumerate(zip(loads, of_load, strict=True))
    ]


def _provider(solved: Solution, row: int, name: str, best: Pick) -> ProviderCost:
    candidate, size = solved.candidate(best.offer), solved.layout(best.offer).tensor_parallel_size
    hourly_usd = float(solved.costs["hourly_usd"][row, best.offer])
    return ProviderCost(name, candidate.instance, candidate.gpu.id, size, best.n_instances, hourly_usd, best.usd)


def owned(solved: Solution, row: int) -> dict[str, dict[str, float]] | None:
    """Cost of owning the recommended GPUs: every figure of `OF_OWNING` at the low, base and high price.

    None where nothing fits or nothing is known of the GPU; NaN where the price or the power is not known.
    """
    fit = Fit.of(solved, row)
    if fit is None:
        return None
    gpu = solved.question.owning.gpus.get(fit.candidate.gpu.id, OwnedGpu())
    on_demand = _paid(solved, fit, fit.candidate.class_price(ON_DEMAND))
    values = {
        **_inputs(solved),
        "n_gpus": fit.gpus_used,
        "is_module_price": gpu.is_module_price,
        "stated_kw_per_gpu": math.nan if gpu.stated_kw_per_gpu is None else gpu.stated_kw_per_gpu,
        "rated_watts": math.nan if gpu.rated_watts is None else gpu.rated_watts,
        "is_it_power": gpu.is_it_power,
        "sold_together": gpu.sold_together,
        "on_demand_hourly_usd": float(cost.hourly_usd(fit.choice.n_instances, on_demand)),
        "monthly_usd": fit.choice.monthly_usd,
    }
    prices = gpu.capex_usd or (math.nan, math.nan, math.nan)
    return {
        end: {"capex_usd_per_gpu": usd, **_evaluated(OF_OWNING, {**values, "capex_usd_per_gpu": usd})}
        for end, usd in zip(ENDS, prices, strict=True)
    }


def budget(solved: Solution, row: int) -> Budget | None:
    """The month, the year and three years of a recommendation, with contingency, in the budget's currency."""
    choice, settings = solved.choices[row], solved.question.settings
    if choice.offer is None:
        return None
    quantities, sums = {**_inputs(solved), "monthly_usd": choice.monthly_usd}, []
    for usd in (choice.monthly_usd, float(cost.annual_usd.of(quantities)), float(cost.three_year_usd.of(quantities))):
        extra = cost.contingency_usd(usd, settings.contingency_fraction)
        total = cost.in_currency(cost.total_usd(usd, extra), settings.fx_rate)
        sums.append(Sum(usd, float(extra), float(total)))
    return Budget(settings.currency, *sums)
