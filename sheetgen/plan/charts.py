"""What the plan's two pictures show, before anyone draws them: GPUs by quarter, and the bridge from the last plan."""

from __future__ import annotations

from dataclasses import dataclass

from sheetgen.plan.draws import quantiles
from sheetgen.plan.findings import Findings
from sheetgen.plan.worked_plan import CASE
from sheetgen.units import USD


@dataclass(frozen=True)
class Machines:
    """GPUs by quarter: needed at p50 by kind, at p90 of all services together, and there without buying."""

    quarters: tuple[str, ...]
    kinds: tuple[tuple[str, tuple[float, ...]], ...]
    p90: tuple[float, ...]
    supply: tuple[float, ...]


@dataclass(frozen=True)
class Demand:
    """A service's demand by quarter at p10, p50, p90."""

    service: str
    unit: str
    quarters: tuple[str, ...]
    bands: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Waterfall:
    """From the last plan's spend to this one's, in US dollars, or in another currency by its code and sign."""

    last_usd: float
    parts: tuple[tuple[str, float], ...]
    usd: float
    currency: str = "US dollars"
    prefix: str = USD.prefix


def machines(found: Findings) -> Machines:
    answer = found.answer
    needed = answer.supply["needed_instances"][..., CASE["p50"]]
    there = (answer.supply["owned_instances"] + answer.signed_instances)[..., answer.case]
    n_quarters = len(answer.plan.quarters)
    kinds: dict[str, list[float]] = {}
    supply = [0.0] * n_quarters
    for t, one in enumerate(answer.types):
        of_kind = kinds.setdefault(answer.plan.catalog.gpu(one.gpu).name, [0.0] * n_quarters)
        for q in range(n_quarters):
            of_kind[q] += float(needed[t, q]) * one.gpu_count
            supply[q] += float(there[t, q]) * one.gpu_count
    return Machines(
        tuple(map(str, answer.plan.quarters)),
        tuple((name, tuple(values)) for name, values in kinds.items() if any(values)),
        tuple(quantiles(found.draws.n_gpus[:, q])["p90"] for q in range(n_quarters)),
        tuple(supply),
    )


def waterfall(found: Findings) -> Waterfall | None:
    """None without a last plan, or where nothing changed."""
    bridge = found.bridge
    return (
        None
        if bridge is None or not bridge.parts
        else Waterfall(bridge.last_usd, tuple(bridge.parts.items()), bridge.usd)
    )
