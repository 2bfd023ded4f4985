"""The money of a cell as JSON: plain numbers in US dollars, null where something is not known."""

from __future__ import annotations

from typing import Any

from sheetgen.recommend import Solution, money
from sheetgen.scenario.inputs import OF_SETTINGS, asked_in
from sheetgen.scenario.money import OwnedGpu
from sheetgen.scenario.question import Question

Record = dict[str, Any]


def inputs(question: Question) -> Record:
    """The inputs about money, and the terms of owning, the defaults used among them."""
    settings = question.settings
    of_money = (one.name for one in OF_SETTINGS if one in asked_in("money"))
    names = dict.fromkeys(("currency", "fx_rate", "fx_date", *of_money))
    return {
        "money": {name: getattr(settings, name) for name in names}
        | {"fx_date": settings.fx_date or question.as_of.isoformat()},
        "owning": {
            **question.owning.values,
            "capex_usd_per_gpu": dict(question.owning.capex_usd_per_gpu),
            "kw_per_gpu": dict(question.owning.kw_per_gpu),
        },
    }


def cell(solved: Solution, row: int) -> Record:
    """Unit costs, purchase classes, providers, owning and the budget of one load."""
    return {
        **{k: _known(v) for k, v in money.unit_costs(solved, row).items() if not k.startswith("million_")},
        "purchase_classes": [
            {k: _known(v) for k, v in vars(one).items()} for one in money.purchase_classes(solved, row)
        ],
        "providers": [_provider(solved, one) for one in money.providers(solved, row)],
        "owned": _owned(solved, row),
        "budget": _budget(solved, row),
    }


def _known(value: Any) -> Any:
    """A value as JSON has it: nothing for NaN and for an empty text."""
    return None if value == "" or value != value else value


def _provider(solved: Solution, one: money.ProviderCost) -> Record:
    candidate = None if one.offer is None else solved.candidate(one.offer)
    return {
        "provider": one.provider,
        "instance": candidate.instance if candidate else None,
        "gpu": candidate.gpu.id if candidate else None,
        "tensor_parallel_size": None if one.offer is None else solved.tensor_parallel_size(one.offer),
        "n_instances": one.n_instances if candidate else None,
        "hourly_usd": _known(one.hourly_usd),
        "monthly_usd": _known(one.monthly_usd),
    }


def _owned(solved: Solution, row: int) -> Record | None:
    """Owning the recommended GPUs at the low, base and high price; None where nothing is recommended."""
    ends = money.owned(solved, row)
    offer = solved.choices[row].offer
    if ends is None or offer is None:
        return None
    gpu = solved.candidate(offer).gpu.id
    known = solved.question.owning.gpus.get(gpu, OwnedGpu())
    return {
        "gpu": gpu,
        "n_gpus": money.n_gpus(solved, row),
        "capex_as_of": known.capex_as_of,
        "capex_source": _known(known.capex_source),
        "kw_source": known.kw_source,
        "confidence": _known(known.confidence),
        **{end: {k: _known(v) for k, v in figures.items()} for end, figures in ends.items()},
    }


def _budget(solved: Solution, row: int) -> Record | None:
    """The sums with their contingency: in dollars, and in the budget's currency."""
    found = money.budget(solved, row)
    if found is None:
        return None
    keys = ("usd", "contingency_usd", "total")
    return {
        "currency": solved.question.settings.currency,
        **{period: dict(zip(keys, sums, strict=True)) for period, sums in vars(found).items()},
    }
