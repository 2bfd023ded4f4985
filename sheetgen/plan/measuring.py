"""The chance that a service's hardware is as fast, and holds as much, as predicted; and the services to measure before
their machines are signed, at the price of a day."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sheetgen.answer.confidences import is_below
from sheetgen.answer.recording import HOURS_OF_A_MEASUREMENT, by_the_day
from sheetgen.plan.stated_plan import machine_in
from sheetgen.plan.worked_plan import Answer
from sheetgen.units import SURE


@dataclass(frozen=True)
class ToMeasure:
    """A service to measure first, in the quarter in which it is least sure: the machines of one replica for a day."""

    service: int
    quarter: int
    chance: float
    instance: str
    n_instances: int
    purchase: str
    usd: float


def chance(answer: Answer, s: int, q: int) -> float:
    """The chance of a service in a quarter, at the quantile that is bought."""
    return answer.hardware.speed[s, q, answer.case].chance


def to_measure(answer: Answer) -> Iterator[ToMeasure]:
    """The services that are less sure than 0.9 in some quarter, the least sure first."""
    least = dict[int, int]()
    for s in range(len(answer.plan.services)):
        if quarters := answer.quarters_of(s):
            least[s] = min(quarters, key=lambda q: chance(answer, s, q))
    for s, q in sorted(least.items(), key=lambda slot: chance(answer, *slot)):
        if not is_below(chance(answer, s, q), SURE):
            continue
        place, plan = answer.hardware.placed[s, q], answer.plan
        question = plan.question_in(plan.services[s], plan.quarters[q])
        hourly_usd, purchase, instance = by_the_day(question, place.candidate)
        n_gpus = place.layout.n_gpus * place.pipeline_parallel_size
        n = math.ceil(n_gpus / place.candidate.gpu_count)
        usd = HOURS_OF_A_MEASUREMENT * n * hourly_usd
        yield ToMeasure(s, q, chance(answer, s, q), machine_in(instance), n, purchase, usd)
