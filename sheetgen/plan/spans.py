"""Spans: quarters, cut where supply changes, so that within a span as many machines are there on every day.

Places in time are counted in quarters from the plan's first day, exactly: a term of four quarters that begins after
half of one ends after half of another, though that has a day more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy

from sheetgen.plan.arrays import Array


@dataclass(frozen=True)
class Spans:
    """The spans of a plan, by where they start; every quarter starts one."""

    starts: tuple[Fraction, ...]
    n_quarters: int

    @classmethod
    def cut(
        cls,
        n_quarters: int,
        places: Iterable[Fraction],
        today: Fraction,
        terms: Iterable[tuple[Fraction, int]],
        after: int = 0,
    ) -> Spans:
        """Quarters cut at these places, and where terms end that begin at any of them. terms: when something is there
        that is ordered today, and the quarters of its term; after: so many quarters after each of them they are cut,
        too."""
        left, starts, every = [*map(Fraction, range(n_quarters)), *places], set[Fraction](), [*terms]
        while left:
            start = left.pop()
            if 0 <= start < n_quarters and start not in starts:
                starts.add(start)
                left += (end_of_term(start, term, today, arrival) for arrival, term in every)
        later = {start + after for start in starts if start + after < n_quarters}
        return cls(tuple(sorted(starts | later)), n_quarters)

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def quarters(self) -> Array:
        """By span its quarter, by position."""
        return numpy.array([math.floor(start) for start in self.starts])

    @cached_property
    def shares(self) -> Array:
        """By span the share of its quarter that it is."""
        ends = (*self.starts[1:], Fraction(self.n_quarters))
        return numpy.array([float(end - start) for start, end in zip(self.starts, ends, strict=True)])

    @cached_property
    def firsts(self) -> Array:
        """By quarter its first span."""
        return numpy.searchsorted(self.quarters, numpy.arange(self.n_quarters))

    def missing(self, today: Fraction, arrival: Fraction) -> Array:
        """By span 1 where it goes by, from today on, before something is there; days that are over went as they
        went."""
        return numpy.array([float(today <= start < arrival) for start in self.starts])

    def kept_since(self, n_quarters: int) -> list[int]:
        """By span the first one of which what was needed is kept for so many quarters after it."""
        ends = (*self.starts[1:], Fraction(self.n_quarters))
        return [
            next(i for i in range(s + 1) if i == s or ends[i] + n_quarters > start)
            for s, start in enumerate(self.starts)
        ]

    def sums(self, values: Any, side: int = 0) -> Array:
        """By quarter the sum of what its spans have. side: that of the spans."""
        return numpy.asarray(values if self.is_whole else numpy.add.reduceat(values, self.firsts, axis=side))

    def means(self, values: Any, side: int = 0) -> Array:
        """By quarter the mean over its days."""
        shape = [-1 if i == side else 1 for i in range(numpy.ndim(values))]
        return self.sums(values * self.shares.reshape(shape), side)

    def most(self, values: Any, side: int = 0) -> Array:
        """By quarter the most of any of its days."""
        return numpy.asarray(values if self.is_whole else numpy.maximum.reduceat(values, self.firsts, axis=side))

    @cached_property
    def is_whole(self) -> bool:
        """True where no quarter is cut."""
        return len(self) == self.n_quarters


def end_of_term(start: Fraction, term: int, today: Fraction, arrival: Fraction) -> Fraction:
    """The end of a term of so many quarters that is ordered for a start, today at the earliest: later by what goes by
    until its machines are there."""
    return start + term + max(Fraction(0), arrival - max(start, today))
