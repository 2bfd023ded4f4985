"""The machines that are there anyway: owned, or committed and paid whether used or not."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy

from sheetgen.plan import needs
from sheetgen.plan.arrays import Array
from sheetgen.plan.placement import Placed
from sheetgen.plan.schema import Committed, Owned
from sheetgen.plan.stated_plan import Plan


@dataclass(frozen=True)
class Supplied:
    """Supply of each quarter: instances by type, and GPUs by kind."""

    committed: Mapping[str, Array]
    gpus: Mapping[str, Array]
    machines: Mapping[str, Sequence[tuple[int | None, Array]]]  # of each kind of GPU the sizes, and the GPUs in those

    def has(self, place: Placed, quarter: int) -> bool:
        """True where there is some of it in a quarter."""
        counts = self.committed.get(place.instance), self.gpus.get(place.candidate.gpu.id)
        return any(count is not None and count[quarter] > 0 for count in counts)

    def owned_instances(
        self, types: Sequence[tuple[str, int]], kept: Sequence[Array], gives_rest: bool
    ) -> Iterator[Array]:
        """By type the owned machines that serve it, with quarters as the last side. Types take in turn of the GPUs of
        their kind what they keep; the last of a kind has the rest, where it is given. types: the kind and the GPUs of
        each."""
        free, last = dict(self.gpus), {gpu: t for t, (gpu, _) in enumerate(types)}
        for t, (gpu, gpu_count) in enumerate(types):
            left = free.get(gpu, 0.0)
            able, is_last = numpy.minimum(left, self.usable_gpus(gpu, gpu_count)), gives_rest and last[gpu] == t
            owned = numpy.asarray(needs.owned_instances(able, gpu_count, kept[t], float(is_last)))
            free[gpu] = left - owned * gpu_count
            yield owned

    def usable_gpus(self, gpu: str, gpu_count: int) -> Array | float:
        """By quarter the owned GPUs whose machines can serve as machines of so many."""
        parts = [gpus * (1.0 if size is None else size // gpu_count * gpu_count / size) for size, gpus in self._of(gpu)]
        return sum(parts, 0.0)

    def lost_instances(self, gpu: str, gpu_count: int) -> Array | float:
        """By quarter the machines of so many GPUs that go with one owned machine: at least one."""
        most: Array | float = 1.0
        for size, gpus in self._of(gpu):
            most = numpy.maximum(most, (gpus > 0) * ((size or 0) // gpu_count))
        return most

    def _of(self, gpu: str) -> Sequence[tuple[int | None, Array]]:
        return self.machines.get(gpu, ())

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


def idle_at_ends(plan: Plan) -> Iterator[tuple[Committed | Owned, list[int]]]:
    """Pools and commitments paid for a part of quarters in which they serve nothing, and those quarters by position."""
    parts: tuple[Committed | Owned, ...] = (*plan.supply.owned, *plan.supply.committed)
    for part in parts:
        if quarters := [q for q, (serves, share) in enumerate(live(plan, part)) if share and not serves]:
            yield part, quarters


def there_days(plan: Plan, part: Committed | Owned) -> str:
    """The day from which on, or until which it is there, of a part that does not serve whole quarters."""
    first, last = term(part)
    return f"until {last}" if last < plan.last_day(plan.quarters[-1]) else f"from {first}"


def supplied(plan: Plan) -> Supplied:
    """The supply that serves all of each quarter."""
    committed, gpus = dict[str, Array](), dict[str, Array]()
    machines = defaultdict[str, list[tuple[int | None, Array]]](list)
    for part in plan.supply.committed:
        name = plan.machine(part.type)
        committed[name] = committed.get(name, 0) + numpy.array([part.count * on for on, _ in live(plan, part)], float)
    for base in plan.base:
        counts = committed[base.instance] = numpy.array(committed.get(base.instance, numpy.zeros(len(plan.quarters))))
        counts[base.runs(len(counts))] += base.count
    for pool in plan.supply.owned:
        gpu = plan.gpus[pool.id]
        serves = numpy.array([on for on, _ in live(plan, pool)], float)
        gpus[gpu.id] = gpus.get(gpu.id, 0) + pool.count * serves
        size = pool.gpus_per_machine or gpu.of_a_machine
        whole = pool.count // size * size if size else pool.count
        parts = ((size, whole), (pool.count - whole, pool.count - whole))
        machines[gpu.id] += ((of_machine, count * serves) for of_machine, count in parts if count)
    return Supplied(committed, gpus, machines)
