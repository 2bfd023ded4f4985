"""The services to measure before their machines are signed: those for which `recommend`, asked for the service alone on
its machines, says that a measurement is worth the price of a day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sheetgen.answer.answer_record import MeasureRecord
from sheetgen.answer.joined import joined, with_loads
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
    measured = dict[At, Measured]()
    for slots, question in joined(_on_its_machine(answer, slot) for slot in answer.hardware.placed):
        every = zip(slots, measured_first(chosen_of(question)), strict=True)
        measured |= {slot: (reasons, measure) for slot, (reasons, measure) in every if measure is not None}
    return measured


def _alone(answer: Answer, slot: At) -> tuple[list[At], Question]:
    """The question of one service alone in a quarter. Where replicas that it loses start again on machines that it
    shares with other services, none are kept for that."""
    s, q = slot
    question = answer.plan.question_in(answer.plan.services[s], answer.plan.quarters[q])
    settings = replace(question.settings, survive=0) if starts_elsewhere(answer, s, q) else question.settings
    return [slot], with_loads(replace(question, settings=settings), [load_alone(answer, s, q)])


def _on_its_machine(answer: Answer, slot: At) -> tuple[list[At], Question]:
    """The same on the service's own type of machine."""
    slots, question = _alone(answer, slot)
    machine = answer.hardware.placed[slot].candidate
    return slots, replace(question, candidates=(machine,), gpus=(machine.gpu,))


def _failed_costs_usd(answer: Answer, slots: Sequence[At]) -> dict[At, float]:
    """A month of the cheapest machines of any type that are sure, over that of the service on its own; of those for
    which something is sure."""
    own = _cheapest((_on_its_machine(answer, slot) for slot in slots), None)
    sure = _cheapest((_alone(answer, slot) for slot in slots), SURE)
    return {slot: max(0.0, sure[slot] - own[slot]) for slot in sure.keys() & own.keys()}


def _cheapest(questions: Iterable[tuple[list[At], Question]], confidence: float | None) -> dict[At, float]:
    """A month of the cheapest machines at a confidence, or that of the question, where something serves then."""
    usd = dict[At, float]()
    for slots, question in joined(questions):
        levels = zip(slots, cheapest_at(question, confidence or question.settings.confidence), strict=True)
        usd |= {slot: level.monthly_usd for slot, level in levels if level is not None}
    return usd


def to_measure(answer: Answer, measured: Mapping[At, Measured]) -> list[ToMeasure]:
    """The services that are worth a measurement in any quarter: first those for which no machines are sure, then by the
    money that the measurement decides."""
    first = dict[int, tuple[At, Measured]]()
    for slot, parts in sorted(measured.items()):
        if parts[1].is_worth_it:
            first.setdefault(slot[0], (slot, parts))
    failed = _failed_costs_usd(answer, [slot for slot, (_, worth) in first.values() if worth.failed_costs_usd != 0])
    by_service = dict[int, ToMeasure]()
    for s, ((_, q), (reasons, worth)) in first.items():
        run, chance = worth.run, answer.hardware.speed[s, q, answer.case].chance
        paid_as = _paid_as(answer, (s, q), run.n_instances)
        price = (paid_as, 0.0) if paid_as else (run.purchase, run.usd)
        stakes = worth.passed_saves_usd, failed.get((s, q)) if worth.failed_costs_usd != 0 else 0.0
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
