"""What two sheets are compared by, whether they come from a workbook or from JSON."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Load = tuple[str, str, int]  # model id, workload's key, number of the tier from 1


@dataclass(frozen=True)
class Setting:
    """An input: its value, the words for it, and how it is shown (number, percent, text, date)."""

    value: Any
    label: str
    shown_as: str = "number"
    unit: str = ""
    built_with: bool = False  # an option of the build, None where its default held


@dataclass(frozen=True)
class WorkloadFacts:
    """A kind of request."""

    name: str
    context_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True)
class Price:
    """Dollars an hour of one purchase class, and the day they were read."""

    usd_per_hour: float
    date: datetime.date | None


@dataclass(frozen=True)
class Offer:
    """An instance as it can be rented."""

    gpu: str | None
    gpu_count: Any
    prices: Mapping[str, Price]


@dataclass(frozen=True)
class Answer:
    """What a load gets; no instance where nothing holds it, and then `verdict` says why."""

    instance: str | None
    n_instances: Any
    monthly_usd: float | None
    verdict: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SheetFacts:
    """One sheet. Workloads stand under their key (an id with underscores), tiers in order.

    tables: models, GPUs and precisions by row and column, as far as the file carries them; names and heads are the
    sheet's own words for rows and columns. options: what `build` was asked, for asking again.
    """

    path: str
    kind: str  # workbook or JSON
    version: str
    catalog_sha256: str
    as_of: datetime.date | None
    models: Mapping[str, str]  # of the loads: id and name
    workloads: Mapping[str, WorkloadFacts]
    tiers: tuple[Any, ...]
    headline: tuple[str, int] | None  # workload's key, number of the tier
    settings: Mapping[str, Setting]
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]]
    names: Mapping[str, Mapping[str, str]]
    heads: Mapping[str, Mapping[str, str]]
    offers: Mapping[str, Offer]
    purchase: str
    answers: Mapping[Load, Answer]
    other_results: Mapping[str, Setting]
    options: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    is_calculated: bool = True


# What `build` may be asked that stands in no cell of the workbook.
OF_MARKET = ("providers", "gpus", "instances", "region", "purchase")  # what may be rented, and in which class
OF_PRICES = (*OF_MARKET, "discount_fraction")  # with an input: what moves prices other than their lists
HELD_BEFORE = {"discount_fraction": 0.0}  # inputs that files of earlier versions do not have: what held then
BUILT_WITH = ("engine", "engine_version", *OF_MARKET)
OF_LOAD = ("context", "output", "tier", "headline")  # inputs that make the load: the first part of their names


def same(a: Any, b: Any) -> bool:
    """Equal; numbers to 1e-9 of themselves."""
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (a, b))
    if numbers:
        return bool(abs(a - b) <= 1e-9 * max(abs(a), abs(b)))
    return bool(a == b)


def load_words(side: SheetFacts, workload: str, tier: int) -> str:
    """`RAG at 32`."""
    requests = side.tiers[tier - 1]
    return f"{side.workloads[workload].name} at {requests:,}" if requests is not None else f"tier {tier}, blank"


def model_name(model: str, *sides: SheetFacts) -> str:
    """The model's name, where a sheet has another one than its id."""
    return next((s.models[model] for s in sides if s.models.get(model, model) != model), model)
