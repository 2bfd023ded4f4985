"""The machines that are there anyway: owned, or committed and paid whether used or not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy

from sheetgen.plan import needs
from sheetgen.plan.arrays import Array
from sheetgen.plan.placement import Placed
from sheetgen.plan.schema import Committed, Owned
from sheetgen.plan.spans import Spans
from sheetgen.plan.stated_plan import Base, Plan, machine_in, term


@dataclass(frozen=True)
class Supplied:
    """Supply of each span: instances by type, and GPUs by kind."""

    spans: Spans
    committed: Mapping[str, Array]
    gpus: Mapping[str, Array]
    machines: Mapping[str, Sequence[tuple[int | None, Array]]]  # of each kind of GPU the sizes, and the GPUs in those

    def has(self, place: Placed, quarter: int) -> bool:
        """True where there is some of it in a quarter, whatever its class."""
        counts = self.committed.get(machine_in(place.instance)), self.gpus.get(place.candidate.gpu.id)
        return any(count is not None and count[self.spans.quarters == quarter].any() for count in counts)

    def owned_instances(
        self, types: Sequence[tuple[str, int]], kept: Sequence[Array], gives_rest: bool
    ) -> Iterator[Array]:
        """By type the owned machines that serve it, with spans as the last side. Types take in turn of the GPUs of
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
        """By span the owned GPUs whose machines can serve as machines of so many."""
        parts = [gpus * (1.0 if size is None else size // gpu_count * gpu_count / size) for size, gpus in self._of(gpu)]
        return sum(parts, 0.0)

    def lost_instances(self, gpu: str, gpu_count: int) -> Array | float:
        """By span the machines of so many GPUs that go with one owned machine: at least one."""
        most: Array | float = 1.0
        for size, gpus in self._of(gpu):
            most = numpy.maximum(most, (gpus > 0) * ((size or 0) // gpu_count))
        return most

    def _of(self, gpu: str) -> Sequence[tuple[int | None, Array]]:
        return self.machines.get(gpu, ())

    @property
    def is_any(self) -> bool:
        return bool(self.committed or self.gpus)


def live(plan: Plan, part: Committed | Owned) -> Array:
    """By span 1 where it is there, and paid."""
    first, after = map(plan.position, term(part))
    return numpy.array([float(first <= start < after) for start in plan.spans.starts])


def base_by_span(plan: Plan, base: Base) -> Array:
    """By span the machines of an order of a mix's base."""
    return numpy.array([float(base.count * (base.start <= start < base.end)) for start in plan.spans.starts])


def paid_shares(plan: Plan, part: Committed | Owned) -> Array:
    """By quarter the share of its days in which it is there, and paid."""
    return plan.spans.means(live(plan, part))


def supplied(plan: Plan) -> Supplied:
    """The supply of each span."""
    committed, gpus = dict[str, Array](), dict[str, Array]()
    machines = defaultdict[str, list[tuple[int | None, Array]]](list)
    for part in plan.supply.committed:
        name = plan.machine(part.type)
        committed[name] = committed.get(name, 0) + part.count * live(plan, part)
    for base in plan.base:
        committed[base.instance] = committed.get(base.instance, 0) + base_by_span(plan, base)
    for pool in plan.supply.owned:
        gpu, serves = plan.gpus[pool.id], live(plan, pool)
        gpus[gpu.id] = gpus.get(gpu.id, 0) + pool.count * serves
        size = pool.gpus_per_machine or gpu.of_a_machine
        whole = pool.count // size * size if size else pool.count
        parts = ((size, whole), (pool.count - whole, pool.count - whole))
        machines[gpu.id] += ((of_machine, count * serves) for of_machine, count in parts if count)
    return Supplied(plan.spans, committed, gpus, machines)
