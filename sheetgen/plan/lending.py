"""Paid machines that their own type does not need, and that serve other types before anything is rented for those.

Owned and committed machines, and those of a term that runs, are paid whether used or not. A machine in two classes is
two types of the plan; so what one of them leaves idle serves the other, and owned GPUs smaller machines with the same
GPU too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from sheetgen.plan import needs
from sheetgen.plan.arrays import Array
from sheetgen.plan.stated_plan import machine_in

Shape = tuple[str, str, int]  # of a type: its instance, its GPU and how many of them


class PaidPool:
    """The paid machines of all types, and what they lend each other. needed, owned, committed: by type arrays of the
    same sides; a type's own need comes first."""

    def __init__(
        self, types: Sequence[Shape], needed: Sequence[Array], owned: Sequence[Array], committed: Sequence[Array]
    ) -> None:
        self.types, self.needed, self.owned = types, needed, owned
        self.paid = [of_owned + signed for of_owned, signed in zip(owned, committed, strict=True)]
        none = [numpy.zeros(counts.shape) for counts in needed]
        self.lent, self.lent_owned, self.borrowed = none, [*map(numpy.copy, none)], [*map(numpy.copy, none)]
        self.loans: dict[tuple[int, int], Array] = {}  # by lender and borrower, machines of the lender

    def add_paid(self, t: int, machines: Array) -> None:
        """Machines of a term that run beside those that are owned and committed."""
        self.paid[t] = self.paid[t] + machines

    def short(self, t: int) -> Array:
        """The machines of a type that are needed beyond what it has and borrows."""
        return numpy.asarray(needs.short_instances(self.needed[t], self.paid[t], self.borrowed[t]))

    def borrow(self, t: int) -> Array:
        """The machines of others that serve a type in place of what it is short of."""
        short = self.short(t)
        for other in range(len(self.types)):
            n = self._replaced(other, t)
            if not n or not short.any():
                continue
            loan = numpy.minimum(numpy.ceil(short / n), self._idle(other, t))
            self.loans[other, t] = loan
            self.lent[other] += loan
            self.borrowed[t] += loan * n
            if not self._is_same(other, t):
                self.lent_owned[other] += loan
            short = numpy.maximum(0, short - loan * n)
        return self.borrowed[t]

    def idle_for(self, t: int) -> Array:
        """The idle machines that can serve a type: its own, and those of others."""
        own = numpy.maximum(0, self.paid[t] + self.borrowed[t] - self.lent[t] - self.needed[t])
        others = range(len(self.types))
        return numpy.asarray(sum((n * self._idle(i, t) for i in others if (n := self._replaced(i, t))), own))

    def loans_of(self, t: int) -> dict[int, Array]:
        """The machines of a type that serve another, by the position of that."""
        return {other: loan for (lender, other), loan in self.loans.items() if lender == t and loan.any()}

    @property
    def net(self) -> list[Array]:
        """By type the machines of others that serve it, less those of its own that serve others."""
        return [came - went for came, went in zip(self.borrowed, self.lent, strict=True)]

    def _is_same(self, t: int, other: int) -> bool:
        return machine_in(self.types[t][0]) == machine_in(self.types[other][0])

    def _replaced(self, lender: int, t: int) -> int:
        """The machines of a type in whose place one of another serves; 0 where it cannot."""
        (_, gpu, n_gpus), (_, other_gpu, n_gpus_of_other) = self.types[t], self.types[lender]
        if lender == t or gpu != other_gpu:
            return 0
        return 1 if self._is_same(lender, t) else n_gpus_of_other // n_gpus * (n_gpus_of_other % n_gpus == 0)

    def _idle(self, lender: int, t: int) -> Array:
        """What a type leaves idle that can serve another; for another machine no more than what is owned."""
        idle = numpy.maximum(0, self.paid[lender] - self.needed[lender] - self.lent[lender])
        owned = self.owned[lender] - self.lent_owned[lender]
        return numpy.asarray(idle if self._is_same(lender, t) else numpy.minimum(idle, owned))
