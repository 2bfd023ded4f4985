"""The machines that are there anyway: owned, or committed and paid whether used or not."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.plan.placement import Placed
from sheetgen.plan.schema import Committed, Owned
from sheetgen.plan.stated_plan import Plan


@dataclass(frozen=True)
class Supplied:
    """What is there in each quarter: instances by type, and GPUs by kind."""

    committed: Mapping[str, Any]
    gpus: Mapping[str, Any]

    def has(self, place: Placed, quarter: int) -> bool:
        """Whether there is some of it in a quarter."""
        counts = self.committed.get(place.instance), self.gpus.get(place.candidate.gpu.id)
        return any(count is not None and count[quarter] > 0 for count in counts)

    @property
    def is_any(self) -> bool:
        return bool(self.committed or self.gpus)


def term(part: Committed | Owned) -> tuple[datetime.date, datetime.date]:
    """The first and the last day of what is owned or committed."""
    first = part.starts or datetime.date.min
    if isinstance(part, Committed) and part.days is not None:
        return first, first + datetime.timedelta(days=part.days - 1)
    return first, part.until or datetime.date.max


def live(plan: Plan, part: Committed | Owned) -> Iterator[tuple[bool, float]]:
    """By quarter whether it serves all of it, and the share of its days that are paid."""
    first, last = term(part)
    for quarter in plan.quarters:
        start, end = plan.first_day(quarter), plan.last_day(quarter)
        days = (min(last, end) - max(first, start)).days + 1
        yield first <= start and last >= end, max(0, days) / ((end - start).days + 1)


def supplied(plan: Plan) -> Supplied:
    """What serves all of each quarter."""
    committed, gpus = dict[str, Any](), dict[str, Any]()
    for part in plan.supply.committed:
        name = plan.machine(part.type)
        committed[name] = committed.get(name, 0) + numpy.array([part.count * on for on, _ in live(plan, part)], float)
    for base in plan.base:
        counts = committed[base.instance] = numpy.array(committed.get(base.instance, numpy.zeros(len(plan.quarters))))
        counts[base.runs(len(counts))] += base.count
    for pool in plan.supply.owned:
        gpu = plan.gpus[pool.id].id
        gpus[gpu] = gpus.get(gpu, 0) + numpy.array([pool.count * on for on, _ in live(plan, pool)], float)
    return Supplied(committed, gpus)
