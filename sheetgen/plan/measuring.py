"""The services to measure before their machines are signed: those for which `recommend`, asked for the service alone on
its machines, says that a measurement is worth the price of a day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sheetgen.answer.answer_record import MeasureRecord
from sheetgen.answer.recording import cheapest_at, measured_first
from sheetgen.answer.solve import chosen_of
from sheetgen.plan.joined import joined, on_machines
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
    measured = dict[At, Measured]()
    for slots, question in joined(_on_own_machines(answer, answer.hardware.placed)):
        for slot, (reasons, measure) in zip(slots, measured_first(chosen_of(question)), strict=True):
            if measure is not None:
                measured[slot] = reasons, measure
    return measured


def _on_own_machines(answer: Answer, slots: Iterable[At]) -> Iterator[tuple[list[At], Question]]:
    """The question of each service alone on its machines; quarters with the same question are put together."""
    plan, placed, alike = answer.plan, answer.hardware.placed, dict[tuple[int, int, str, bool], list[At]]()
    for s, q in slots:
        question = plan.question_in(plan.services[s], plan.quarters[q])
        key = s, id(question), placed[s, q].instance, starts_elsewhere(answer, s, q)
        alike.setdefault(key, []).append((s, q))
    for many in alike.values():
        yield many, on_machines(_alone(answer, many), [placed[many[0]].candidate])


def _alone(answer: Answer, slots: Sequence[At]) -> Question:
    """The question of one service alone in some quarters. Where replicas that it loses start again on machines that it
    shares with other services, none are kept for that."""
    s, q = slots[0]
    question = answer.plan.question_in(answer.plan.services[s], answer.plan.quarters[q])
    load, settings = replace(question.loads[0], users=None), question.settings
    loads = [
        replace(load, requests_per_second=rate, concurrent_requests=float(at_once))
        for rate, at_once in (load_alone(answer, *slot) for slot in slots)
    ]
    settings = replace(settings, survive=0) if starts_elsewhere(answer, s, q) else settings
    return replace(question, settings=settings, loads=tuple(loads))


def _failed_costs_usd(answer: Answer, slots: Sequence[At]) -> dict[At, float | None]:
    """A month of the cheapest machines of any type that are sure, over that of the service on its own; None where
    nothing is sure."""
    own = _cheapest(_on_own_machines(answer, slots), None)
    sure = _cheapest((([slot], _alone(answer, [slot])) for slot in slots), SURE)
    return {slot: max(0.0, usd - own[slot]) if slot in own else None for slot, usd in sure.items()}


def _cheapest(questions: Iterable[tuple[list[At], Question]], confidence: float | None) -> dict[At, float]:
    """A month of the cheapest machines at a confidence, or at that of the question, where something serves then."""
    usd = dict[At, float]()
    for slots, question in joined(questions):
        months = cheapest_at(question, question.settings.confidence if confidence is None else confidence)
        usd |= {slot: month.monthly_usd for slot, month in zip(slots, months, strict=True) if month is not None}
    return usd


def to_measure(answer: Answer, measured: Mapping[At, Measured]) -> list[ToMeasure]:
    """The services that are worth a measurement in any quarter: first those for which no machines are sure, then by the
    money that the measurement decides."""
    worth = dict[int, tuple[At, Measured]]()
    for slot, measure in sorted(measured.items()):
        if measure[1].is_worth_it:
            worth.setdefault(slot[0], (slot, measure))
    failed = _failed_costs_usd(answer, [slot for slot, (_, measure) in worth.values() if measure.failed_costs_usd != 0])
    by_service = dict[int, ToMeasure]()
    for s, (slot, (reasons, measure)) in worth.items():
        run, chance = measure.run, answer.hardware.speed[*slot, answer.case].chance
        paid_as = _paid_as(answer, slot, run.n_instances)
        price = (paid_as, 0.0) if paid_as else (run.purchase, run.usd)
        stakes = measure.passed_saves_usd, failed.get(slot) if measure.failed_costs_usd != 0 else 0.0
        by_service[s] = ToMeasure(*slot, reasons, chance, machine_in(run.instance), run.n_instances, *price, *stakes)
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
