"""The next step down: the longest context, and the most requests in flight, at which the month costs less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import numpy

from sheetgen.formula import same_money
from sheetgen.levers.ask_again import Change, Loads
from sheetgen.levers.load import LEAST_CONTEXT, at_context, at_requests, with_context
from sheetgen.levers.plan import Planned
from sheetgen.levers.rented import Rented
from sheetgen.recommend import Solution

CONTEXT_STEPS = 128  # a context is sought in steps of this part of it, in whole blocks: within 0.8 %


def next_steps(loads: Loads, rows: Sequence[int]) -> Iterator[Planned]:
    """Both levers of each load, found by halving: all loads are asked for together in each round."""
    searches = [search for row in rows for search in (_Context(loads.solved, row), _Requests(loads.solved, row))]
    first = [one for one in searches if one.high > 1]
    loads.work_out([one.change(n) for one in first for n in (1, (1 + one.high) // 2)])  # two rounds in one
    _ask(loads, first, [1] * len(first))
    while open_ones := [one for one in searches if one.low and one.high - one.low > 1]:
        _ask(loads, open_ones, [(one.low + one.high) // 2 for one in open_ones])
    for one in searches:
        yield one.planned()


class _Search:
    """A number of steps: `low` of them cost less than the load as it is (0: none was found), `high` do not."""

    lever = ""

    def __init__(self, solved: Solution, row: int, step: int, now: int) -> None:
        self.row, self.step = row, step
        before = Rented.of(solved, row)
        self.monthly_usd = inf if before is None else before.monthly_usd
        self.low, self.high = 0, -(-now // step)  # the first multiple of the step that is not below the load as it is

    def change(self, steps: int) -> Change:
        """The load with so many steps."""
        raise NotImplementedError

    def planned(self) -> Planned:
        raise NotImplementedError


class _Context(_Search):
    lever = "shorter-context"

    def __init__(self, solved: Solution, row: int) -> None:
        question = solved.question
        self.workload = question.workloads[question.loads[row].workload]
        context, block = self.workload.context_tokens, max(LEAST_CONTEXT, question.settings.block_size)
        super().__init__(solved, row, max(block, context // CONTEXT_STEPS // block * block), context)

    def change(self, steps: int) -> Change:
        return Change(self.row, workload=with_context(self.workload, self.step * steps))

    def planned(self) -> Planned:
        if not self.low:
            return Planned(self.lever, self.row, why_not="no shorter context costs less")
        return at_context(self.lever, self.row, self.workload, self.step * self.low)


class _Requests(_Search):
    lever = "users-for-less"

    def __init__(self, solved: Solution, row: int) -> None:
        self.now = solved.question.loads[row].concurrent_requests
        super().__init__(solved, row, 1, self.now)

    def change(self, steps: int) -> Change:
        return Change(self.row, requests=steps)

    def planned(self) -> Planned:
        if not self.low:
            return Planned(self.lever, self.row, why_not="no smaller number of requests costs less")
        return at_requests(self.lever, self.row, self.now, self.low)


def _ask(loads: Loads, searches: Sequence[_Search], steps: Sequence[int]) -> None:
    """Narrow the bounds of each search by what a load of so many steps takes."""
    answers = loads.ask([one.change(n) for one, n in zip(searches, steps, strict=True)])
    after = numpy.array([inf if one is None else one.monthly_usd for one in answers])
    before = numpy.array([one.monthly_usd for one in searches])
    for one, n, is_less in zip(searches, steps, (after < before) & ~same_money(after, before), strict=True):
        if is_less:
            one.low = n
        else:
            one.high = n
