"""The data of the plan's two charts: GPUs by quarter, and the bridge from the last plan."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy

from sheetgen.plan.findings import Findings
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.units import USD


@dataclass(frozen=True)
class Machines:
    """GPUs by quarter: needed at p50 by kind (kinds), needed at p90, owned or committed already (supply), and paid for
    by the budget; NaN in a quarter without a budget."""

    quarters: tuple[str, ...]
    kinds: tuple[tuple[str, tuple[float, ...]], ...]
    p90: tuple[float, ...]
    supply: tuple[float, ...]
    budget: tuple[float, ...]


@dataclass(frozen=True)
class Waterfall:
    """The steps from the sum that the last plan asked to approve to the sum that this one asks, in US dollars or
    another currency, by its code and sign."""

    last_usd: float
    parts: tuple[tuple[str, float], ...]
    usd: float
    currency: str = "US dollars"
    prefix: str = USD.prefix


def machines(answer: Answer) -> Machines:
    """The GPUs of all machines, by quarter."""
    sizes = numpy.array([float(machine.gpu_count) for machine in answer.types])[:, None]
    needed = answer.supply["needed_instances"]
    supply = (answer.supply["owned_instances"] + answer.signed_instances)[..., answer.case]
    kinds: dict[str, numpy.ndarray] = {}
    for t, machine in enumerate(answer.types):
        name = answer.plan.catalog.gpu(machine.gpu).short_name
        kinds[name] = kinds.get(name, 0) + needed[t, :, CASE["p50"]] * machine.gpu_count
    p90 = (needed[..., CASE["p90"]] * sizes).sum(axis=0)
    bought = (answer.to_buy[..., CASE["p90"]] * sizes).sum(axis=0)
    return Machines(
        tuple(map(str, answer.plan.quarters)),
        tuple((name, tuple(map(float, counts))) for name, counts in kinds.items() if counts.any()),
        tuple(map(float, p90)),
        tuple(map(float, (supply * sizes).sum(axis=0))),
        tuple(float(p90[q] - bought[q] * _unpaid_share(answer, q)) for q in range(len(p90))),
    )


def _unpaid_share(answer: Answer, q: int) -> float:
    """The share of what is bought at p90 that a quarter's budget does not pay for, below 0 where it pays for more; NaN
    without a budget, or where nothing is bought."""
    committed, owned = (float(answer.money[name][q, 0]) for name in ("committed_usd", "owned_usd"))
    spend, reserve = (float(answer.money[name][q, CASE["p90"]]) for name in ("spend_usd", "reserve_usd"))
    bought = spend + reserve - committed - owned
    return -answer.left_usd(q)[1] / bought if bought else math.nan


def waterfall(findings: Findings) -> Waterfall | None:
    """The steps from the sum that the last plan asked to approve to this plan's; None without a last plan, or where
    nothing changed."""
    if findings.bridge is None or not findings.bridge.asked.parts:
        return None
    steps = findings.bridge.asked.in_whole(findings.answer.plan.head.fx_rate)
    return Waterfall(steps.last_usd, tuple(steps.parts.items()), steps.usd)
