"""The services to measure before their machines are signed, by the rule of `recommend`, at the price of a day."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sheetgen.answer.confidences import measure_first
from sheetgen.answer.recording import HOURS_OF_A_MEASUREMENT, by_the_day
from sheetgen.plan.stated_plan import machine_in
from sheetgen.plan.worked_plan import Answer
from sheetgen.sizing.parallelism import requests_per_replica

OWNED = "owned"  # in place of a class


@dataclass(frozen=True)
class ToMeasure:
    """A service to measure first, in the first quarter with a reason to: the machines of one replica for a day."""

    service: int
    quarter: int
    measure_first: tuple[str, ...]  # the reasons
    chance: float
    instance: str
    n_instances: int
    purchase: str
    usd: float  # 0 on machines that are owned


@dataclass(frozen=True)
class _Chosen:
    """The machines of a service in a quarter, as `recommend` counts them."""

    instance: str
    n_instances: int
    requests_per_replica: float


def reasons_to_measure(answer: Answer, s: int, q: int) -> tuple[str, ...]:
    """The reasons of `recommend` to measure a service before its machines of a quarter are rented, at the quantile that
    is bought."""
    names = ("own_instances", "load_requests", "paced_requests")
    n_instances, load, paced = (float(answer.services[name][s, q, answer.case]) for name in names)
    place, levels = answer.hardware.placed[s, q], answer.hardware.levels[s, q]
    chosen = _Chosen(place.instance, math.ceil(n_instances), requests_per_replica(load, paced))
    return measure_first(chosen, levels.usd, levels.asked, levels.is_even)


def to_measure(answer: Answer) -> list[ToMeasure]:
    """The services with a reason to measure in some quarter, the least sure first."""
    every = (_to_measure(answer, s) for s in range(len(answer.plan.services)))
    return sorted(filter(None, every), key=lambda measured: measured.chance)


def _to_measure(answer: Answer, s: int) -> ToMeasure | None:
    for q in answer.quarters_of(s):
        if reasons := reasons_to_measure(answer, s, q):
            place, plan = answer.hardware.placed[s, q], answer.plan
            question = plan.question_in(plan.services[s], plan.quarters[q])
            hourly_usd, purchase, instance = by_the_day(question, place.candidate)
            n = math.ceil(place.layout.n_gpus * place.pipeline_parallel_size / place.candidate.gpu_count)
            usd, chance = HOURS_OF_A_MEASUREMENT * n * hourly_usd, answer.hardware.speed[s, q, answer.case].chance
            if answer.supply["owned_instances"][answer.place[place.instance], q, answer.case] >= n:
                return ToMeasure(s, q, reasons, chance, place.instance, n, OWNED, 0.0)
            return ToMeasure(s, q, reasons, chance, machine_in(instance), n, purchase, usd)
    return None
