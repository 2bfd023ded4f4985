"""The answers if people ask more or less often than was stated, or all at the same moment, or are more than the
answer's machines serve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sheetgen.answer.answer_record import AllAtOnceRecord, AskingRecord, MorePeopleRecord
from sheetgen.answer.picks import Picks, picks_of, with_other_requests
from sheetgen.answer.solution import Solution
from sheetgen.formula import round_down, round_up
from sheetgen.program.grid import Grid
from sheetgen.program.sheet_program import AGAIN

MOST_AT_ONCE = 500  # people: that more than these ask at the same moment is not plausible
TIMES_AS_OFTEN = (0.5, 2)  # the stated requests per person and day, which is a judgement


class Otherwise(NamedTuple):
    """The answers for a load's people if they ask otherwise than stated; empty for a load not stated as people."""

    all_at_once: AllAtOnceRecord | None = None
    by_requests_per_day: tuple[AskingRecord, ...] = ()
    more_people: MorePeopleRecord | None = None


def asking_otherwise(solved: Solution) -> list[Otherwise]:
    """By load, the rentals if its people asked half or twice as often, or all at the same moment, or were one more than
    the answer's machines serve."""
    loads = solved.question.loads
    often = [
        (row, times)
        for row, load in enumerate(loads)
        for times in TIMES_AS_OFTEN
        if load.users and load.requests_per_second
    ]
    at_once = [row for row, load in enumerate(loads) if load.users and load.users <= MOST_AT_ONCE]
    asking: dict[int, list[AskingRecord]] = {}
    arriving = [loads[row].requests_per_second * times for row, times in often]
    picks = _picks(solved.grid, [row for row, _ in often], [0.0] * len(often), arriving)
    for (row, times), rented in zip(often, _rented(solved, picks), strict=True):
        if rented and not loads[row].over_limit:
            asks = solved.workload_of(row).requests_per_user_per_day * times
            asking.setdefault(row, []).append(AskingRecord(asks, *rented))
    people = [float(loads[row].users or 0) for row in at_once]
    picks = _picks(in_closed_loop(solved), at_once, people, [0.0] * len(at_once)) if at_once else []
    records = {
        row: AllAtOnceRecord(int(loads[row].users or 0), *rented)
        for row, rented in zip(at_once, _rented(solved, picks), strict=True)
        if rented and not loads[row].over_limit
    }
    more = _more_people(solved)
    return [Otherwise(records.get(row), tuple(asking.get(row, ())), more.get(row)) for row in range(len(loads))]


def _more_people(solved: Solution) -> dict[int, MorePeopleRecord]:
    """By the row of a load of people that something holds, the most whom its machines serve within the targets, and the
    rental for one more."""
    loads, share = solved.question.loads, solved.question.settings.active_fraction or 0.0
    most: dict[int, int] = {}
    for row, load in enumerate(loads):
        choice = solved.choices[row]
        if load.users and choice.offer is not None:
            people_of_one = load.users / load.requests_per_second if load.requests_per_second else 1 / share
            most[row] = int(round_down(choice.served_at_target * people_of_one))
    rates = [loads[row].requests_per_second * (users + 1) / (loads[row].users or 1) for row, users in most.items()]
    at_once = [
        0.0 if rate else float(round_up((users + 1) * share)) for rate, users in zip(rates, most.values(), strict=True)
    ]
    rented = _rented(solved, _picks(solved.grid, [*most], at_once, rates))
    return {
        row: MorePeopleRecord(users, *(rental or (None, None, None)))
        for (row, users), rental in zip(most.items(), rented, strict=True)
    }


def in_closed_loop(solved: Solution) -> Grid:
    """The grid with the times of requests at once, which differ from a rate's times where answers are short."""
    grid = solved.grid
    if grid.read("closed_loop", ()) == 1:
        return grid
    return grid.again({"closed_loop": 1.0}).read_again(AGAIN.again("at_levels"), AGAIN)


def _picks(grid: Grid, rows: Sequence[int], at_once: Sequence[float], arriving: Sequence[float]) -> Picks:
    """The choice for these loads, given by their rows, with other requests."""
    return picks_of(with_other_requests(grid, rows, at_once, arriving), "chosen") if rows else []


def _rented(solved: Solution, picks: Picks) -> list[tuple[str, int, float] | None]:
    """Instance, number of instances and $ a month of each choice."""
    return [pair and (solved.candidate(pair[0].offer).instance, pair[0].n_instances, pair[0].usd) for pair in picks]
