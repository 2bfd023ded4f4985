"""What two sheets are compared by, whether they come from a workbook or from JSON, and which part is which."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sheetgen.scenario.inputs import INPUTS
from sheetgen.workbook.cells import is_number

LoadKey = tuple[str, str, int]  # model id, workload's key, number of the tier from 1
ASKED = "asked"  # the workload of `recommend`: a context of the user's own


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
    sheet's own words for rows and columns. options: those of `build`, for solving the sheet again.
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
    answers: Mapping[LoadKey, Answer]
    other_results: Mapping[str, Setting]
    options: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    is_calculated: bool = True

    @property
    def classes(self) -> set[str]:
        """The purchase classes that it has prices of."""
        return {purchase for offer in self.offers.values() for purchase in offer.prices}


# Options of `build` that stand in no cell of the workbook.
OF_MARKET = ("providers", "gpus", "instances", "region", "purchase")  # what may be rented, and in which class
OF_PRICES = (*OF_MARKET, "discount_fraction")  # with an input: what moves prices other than their lists
# Inputs that files of earlier versions do not have: what held then.
HELD_BEFORE: dict[str, float] = {one.name: one.default for one in INPUTS if one.added}
BUILT_WITH = ("engine", "engine_version", *OF_MARKET)
MORE_OF_ANSWER = {  # figures of an answer that JSON has and a workbook's names do not
    "tensor_parallel_size": "TP", "pipeline_parallel_size": "PP", "n_replicas": "replicas", "n_gpus": "GPUs",
    "sized_by": "sized by",
}  # fmt: skip
OF_LOAD = ("context", "output", "tier", "headline")  # inputs that make the load: the first part of their names


def same(a: Any, b: Any) -> bool:
    """Equal; numbers to 1e-9 of themselves."""
    if is_number(a) and is_number(b):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return bool(a == b)


def load_words(side: SheetFacts, workload: str, tier: int) -> str:
    """`RAG at 32`."""
    requests = side.tiers[tier - 1]
    return f"{side.workloads[workload].name} at {requests:,}" if requests is not None else f"tier {tier}, blank"


def model_name(model: str, *sides: SheetFacts) -> str:
    """The model's name, where a sheet has another one than its id."""
    return next((s.models[model] for s in sides if s.models.get(model, model) != model), model)


@dataclass(frozen=True)
class Pairing:
    """Which tier, workload and model of one sheet is which of the other, by name and number, never by place alone.

    Pairs (of A, of B); what stands alone is in neither.
    """

    tiers: tuple[tuple[int, int], ...]
    workloads: tuple[tuple[str, str], ...]
    models: tuple[str, ...]

    def loads(self) -> list[tuple[LoadKey, LoadKey]]:
        """Every load that both sheets have, in B's order."""
        pairs = [(w, t) for w in self.workloads for t in self.tiers]
        return [((m, wa, ta), (m, wb, tb)) for m in self.models for (wa, wb), (ta, tb) in pairs]

    def in_a(self, workload: str, tier: int) -> tuple[str, int] | None:
        """A's name for a workload and tier of B."""
        wa = next((a for a, b in self.workloads if b == workload), None)
        ta = next((a for a, b in self.tiers if b == tier), None)
        return (wa, ta) if wa is not None and ta is not None else None


def pair(a: SheetFacts, b: SheetFacts) -> Pairing:
    """Tiers of the same number of requests are the same; of the others, those of the same rank."""
    return Pairing(_tiers(a, b), _workloads(a, b), tuple(m for m in b.models if m in a.models))


def _tiers(a: SheetFacts, b: SheetFacts) -> tuple[tuple[int, int], ...]:
    left = {i: n for i, n in enumerate(b.tiers, 1)}
    found: list[tuple[int, int]] = []
    alone: list[int] = []
    for i, requests in enumerate(a.tiers, 1):
        at = next((k for k, n in left.items() if same(n, requests)), None)
        if at is None:
            alone.append(i)
        else:
            found.append((i, at))
            del left[at]
    found += [(i, i) for i in alone if i in left]
    return tuple(sorted(found, key=lambda one: one[1]))


def _workloads(a: SheetFacts, b: SheetFacts) -> tuple[tuple[str, str], ...]:
    """The same id; the one load of `recommend` is the other sheet's workload of the same context and answer."""
    found = [(key, key) for key in b.workloads if key in a.workloads]
    left_a = [k for k in a.workloads if k not in b.workloads]
    left_b = [k for k in b.workloads if k not in a.workloads]
    for wa in left_a:
        for wb in left_b:
            lengths = [(w.context_tokens, w.output_tokens) for w in (a.workloads[wa], b.workloads[wb])]
            if ASKED in (wa, wb) and lengths[0] == lengths[1]:
                found.append((wa, wb))
                left_b.remove(wb)
                break
    return tuple(found)
