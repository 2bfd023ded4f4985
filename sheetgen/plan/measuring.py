"""The services to measure before their machines are signed: those for which `recommend`, asked for the service alone on
its machines, says that a measurement is worth the price of a day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sheetgen.answer.answer_record import MeasureRecord
from sheetgen.answer.recording import cheapest_at, measured_first
from sheetgen.answer.solve import chosen_of
from sheetgen.plan.placement import At
from sheetgen.plan.schema import COMMITTED, OWNED
from sheetgen.plan.sized_alone import load_alone, starts_elsewhere
from sheetgen.plan.stated_plan import machine_in
from sheetgen.plan.worked_plan import Answer
from sheetgen.question.sheet_question import Question
from sheetgen.units import SURE

A_BIT = 1e-9  # of a machine


@dataclass(frozen=True)
class ToMeasure:
    """A service to measure on some machines for a day, in the first quarter in which that is worth its price.

    purchase: the class of these machines, or that they are owned or committed, which costs nothing more; usd: the price
    of the day. passed_saves_usd, failed_costs_usd: the money a month that the measurement decides. If it fails, the
    service moves to the cheapest machines of any type that are sure; None where none are.
    """

    service: int
    quarter: int
    measure_first: tuple[str, ...]  # the reasons beside its worth
    chance: float
    instance: str
    n_instances: int
    purchase: str
    usd: float
    passed_saves_usd: float
    failed_costs_usd: float | None

    @property
    def at_stake_usd(self) -> float:
        return self.passed_saves_usd + (self.failed_costs_usd or 0.0)


Measured = tuple[tuple[str, ...], MeasureRecord]  # the reasons to measure, and the measurement


def measurements(answer: Answer) -> dict[At, Measured]:
    """The reasons to measure each service and the measurement, by quarter, at the quantile that is bought."""
    return {slot: parts for s in range(len(answer.plan.services)) for slot, parts in _of_service(answer, s)}


def _of_service(answer: Answer, s: int) -> Iterator[tuple[At, Measured]]:
    """The measurements of a service by quarter; quarters with the same question on the same machine are solved at
    once."""
    plan, service = answer.plan, answer.plan.services[s]
    alike = dict[tuple[int, str, bool], list[int]]()
    for q in answer.quarters_of(s):
        question, place = plan.question_in(service, plan.quarters[q]), answer.hardware.placed[s, q]
        alike.setdefault((id(question), place.instance, starts_elsewhere(answer, s, q)), []).append(q)
    for (_, _, elsewhere), quarters in alike.items():
        place = answer.hardware.placed[s, quarters[0]]
        asked = replace(_alone(answer, s, quarters, elsewhere), candidates=(place.candidate,))
        for q, (reasons, measure) in zip(quarters, measured_first(chosen_of(asked)), strict=True):
            if measure is not None:
                yield (s, q), (reasons, measure)


def _alone(answer: Answer, s: int, quarters: Sequence[int], elsewhere: bool) -> Question:
    """The question of one service alone in these quarters. elsewhere: replicas that it loses start again on machines
    that it shares with other services, so that none are kept for that."""
    question = answer.plan.question_in(answer.plan.services[s], answer.plan.quarters[quarters[0]])
    load = replace(question.loads[0], users=None)
    loads = [
        replace(load, tier=i, requests_per_second=rate, concurrent_requests=float(at_once))
        for i, (rate, at_once) in enumerate(load_alone(answer, s, q) for q in quarters)
    ]
    return replace(
        question,
        settings=replace(question.settings, survive=0) if elsewhere else question.settings,
        tiers=tuple(range(1, len(loads) + 1)),
        loads=tuple(loads),
    )


def _failed_costs_usd(answer: Answer, slot: At, measure: MeasureRecord) -> float | None:
    """A month of the cheapest machines of any type that are sure, over that of the service on its own; None where
    nothing is sure."""
    s, q = slot
    if measure.failed_costs_usd == 0:
        return 0.0
    asked, place = _alone(answer, s, [q], starts_elsewhere(answer, s, q)), answer.hardware.placed[slot]
    own = cheapest_at(replace(asked, candidates=(place.candidate,)), asked.settings.confidence)
    sure = cheapest_at(asked, SURE)
    return None if sure is None or own is None else max(0.0, sure.monthly_usd - own.monthly_usd)


def to_measure(answer: Answer, measured: Mapping[At, Measured]) -> list[ToMeasure]:
    """The services that are worth a measurement in any quarter: first those for which no machines are sure, then by the
    money that the measurement decides."""
    by_service = dict[int, ToMeasure]()
    for (s, q), (reasons, measure) in sorted(measured.items()):
        if measure.is_worth_it and s not in by_service:
            run, chance = measure.run, answer.hardware.speed[s, q, answer.case].chance
            paid_as = _paid_as(answer, (s, q), run.n_instances)
            price = (paid_as, 0.0) if paid_as else (run.purchase, run.usd)
            stakes = measure.passed_saves_usd, _failed_costs_usd(answer, (s, q), measure)
            by_service[s] = ToMeasure(s, q, reasons, chance, machine_in(run.instance), run.n_instances, *price, *stakes)
    return sorted(by_service.values(), key=lambda first: (first.failed_costs_usd is not None, -first.at_stake_usd))


def _paid_as(answer: Answer, slot: At, n: int) -> str | None:
    """`owned` or `committed` where n machines of the service's type are paid for anyway; None where they would have to
    be rented."""
    s, q = slot
    t = answer.place[answer.hardware.placed[s, q].instance]
    owned, committed = (float(answer.supply_counts[name][t, q, answer.case]) for name in (OWNED, COMMITTED))
    if owned >= n - A_BIT:
        return OWNED
    return COMMITTED if owned + committed >= n - A_BIT else None
