"""What a recommendation costs, in every way that finance asks for: the formulas of `cost`, cell by cell.

All in US dollars and unrounded, NaN where something is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.answer.picks import pick
from sheetgen.answer.sheet_facts import settings_of
from sheetgen.answer.solution import Fit, Solution
from sheetgen.formula import Formula
from sheetgen.program.grid import evaluate
from sheetgen.question.market import ClassPrice, OwnedGpu
from sheetgen.sizing import cost
from sheetgen.units import ON_DEMAND, PURCHASES

ENDS = ("low", "base", "high")
UNIT_COSTS = (
    cost.annual_usd,
    cost.three_year_usd,
    cost.usd_per_user_per_month,
    cost.million_output_tokens_per_month,
    cost.million_input_tokens_per_month,
    cost.usd_per_million_input_tokens,
    cost.usd_per_million_output_tokens,
    cost.usd_per_million_tokens,
)
OF_CLASS = (
    cost.paid_hours_per_month,
    cost.hourly_usd,
    cost.monthly_usd,
    cost.annual_usd,
    cost.three_year_usd,
    cost.commitment_waste_usd,
)
OF_OWNING = (
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
    cost.owned_three_year_cash_usd,
)


@dataclass(frozen=True)
class ClassCost:
    """The recommended instances in one purchase class."""

    purchase: str
    hourly_usd: float
    monthly_usd: float
    annual_usd: float
    three_year_usd: float
    commitment_waste_usd: float
    price_as_of: str | None
    terms: str
    source: str


@dataclass(frozen=True)
class ProviderCost:
    """The cheapest of one provider for a load; `offer` is None where nothing of it holds the load."""

    provider: str
    offer: int | None = None
    n_instances: int = 0
    hourly_usd: float = math.nan
    monthly_usd: float = math.nan


@dataclass(frozen=True)
class Sum:
    """A sum of a month, a year and three years with its contingency, in dollars and in the budget's currency."""

    monthly: tuple[float, float, float]  # dollars, contingency, total in the currency
    annual: tuple[float, float, float]
    three_year: tuple[float, float, float]


def _inputs(solved: Solution) -> dict[str, Any]:
    """What the formulas of `cost` read that holds for the whole sheet."""
    return {**settings_of(solved.question), **solved.question.owning.values}


def _evaluated(formulas: tuple[Formula, ...], values: Mapping[str, Any]) -> dict[str, float]:
    known = evaluate(formulas, values)
    return {one.name: float(known[one.name]) for one in formulas}


def unit_costs(solved: Solution, row: int) -> dict[str, float]:
    """A year, three years, a user, a million tokens: the results of `UNIT_COSTS`, NaN where nothing holds the load."""
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


def purchase_classes(solved: Solution, row: int) -> tuple[ClassCost, ...]:
    """The recommended instances in every purchase class, NaN where no price is known; empty where nothing fits."""
    fit, found = Fit.of(solved, row), []
    if fit is None:
        return ()
    for purchase, paid in PURCHASES.items():
        price = fit.candidate.class_price(purchase)
        usd = _evaluated(
            OF_CLASS,
            {
                **_inputs(solved),
                "is_committed": int(paid.committed),
                "n_instances": fit.choice.n_instances,
                "price_usd_per_hour": _paid(solved, fit, price),
            },
        )
        del usd["paid_hours_per_month"]
        as_of, terms, source = (price.price_as_of, price.price_kind, fit.candidate.source) if price else (None, "", "")
        found.append(ClassCost(purchase, **usd, price_as_of=as_of, terms=terms, source=source))
    return tuple(found)


def _paid(solved: Solution, fit: Fit, price: ClassPrice | None) -> float:
    """What an instance costs an hour at a price less the discount; NaN without one."""
    if price is None:
        return math.nan
    less = solved.question.discount(fit.candidate.provider, price.purchase)
    return float(cost.discounted_usd_per_hour(price.usd_per_hour, less))


def providers(solved: Solution, row: int) -> tuple[ProviderCost, ...]:
    """Per provider of the candidates its cheapest for this load; ties as in the choice itself."""
    over = solved.question.loads[row].over_limit
    of_offer = numpy.array([solved.candidate(i).provider for i in range(len(solved.offers))])
    names = list(dict.fromkeys(of_offer.tolist()))
    of_provider = solved.grid.along("chosen", {"load": [row] * len(names)})
    picks = pick(of_provider, of_offer == numpy.array(names)[:, None], "chosen")
    found = []
    for provider, one in zip(names, picks, strict=True):
        if over or one is None:
            found.append(ProviderCost(provider))
        else:
            best, hourly = one[0], float(solved.costs["hourly_usd"][row, one[0].offer])
            found.append(ProviderCost(provider, best.offer, best.n_instances, hourly, best.usd))
    return tuple(found)


def owned(solved: Solution, row: int) -> dict[str, dict[str, float]] | None:
    """Owning the recommended GPUs: every figure of `OF_OWNING` at the low, base and high price.

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
        "on_demand_hourly_usd": float(cost.hourly_usd(fit.choice.n_instances, on_demand)),
    }
    prices = gpu.capex_usd or (math.nan, math.nan, math.nan)
    return {
        end: {"capex_usd_per_gpu": usd, **_evaluated(OF_OWNING, {**values, "capex_usd_per_gpu": usd})}
        for end, usd in zip(ENDS, prices, strict=True)
    }


def budget(solved: Solution, row: int) -> Sum | None:
    """The month, the year and three years of a recommendation, with contingency, in the budget's currency."""
    choice, settings = solved.choices[row], solved.question.settings
    if choice.offer is None:
        return None
    known, sums = {**_inputs(solved), "monthly_usd": choice.monthly_usd}, []
    for usd in (choice.monthly_usd, float(cost.annual_usd.of(known)), float(cost.three_year_usd.of(known))):
        extra = cost.contingency_usd(usd, settings.contingency_fraction)
        total = cost.in_currency(cost.total_usd(usd, extra), settings.fx_rate)
        sums.append((usd, float(extra), float(total)))
    return Sum(*sums)
