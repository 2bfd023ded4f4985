"""The cost of an answer at other confidences, and where a measurement comes before the machines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy

from sheetgen.answer.answer_record import AtConfidence, limit_of
from sheetgen.answer.picks import Pick, picks_of
from sheetgen.answer.solution import Solution
from sheetgen.program.grid import Column, Grid
from sheetgen.program.sheet_program import AGAIN, CHOSEN, OF_CHANCE
from sheetgen.question.deployment import SPEED_SCOPES
from sheetgen.sizing import speed
from sheetgen.sizing.certainty import confidence_z
from sheetgen.units import CHANCE_STEP, EVEN, SURE

ABOUT_A_STEP = 1e-9
AT_LEVEL = {EVEN: "at_even_chance", SURE: "at_sure_chance"}  # the tables read again
# When one measures first: judgements, docs/speed.md.
MOST_OF_SURE = 3.0  # times an even chance's month, for 0.9
MOST_OF_ASKED = 1.5  # times an even chance's month, for the confidence asked for
ABOUT = 1 + 1e-9  # rounding: three times as many machines cost no more than three times as much
MOST_MACHINES = 8  # with one request each, above which one measures first


def said_steps(chance: float) -> int:
    """The steps of CHANCE_STEP as which a chance is said: those that it reaches, one more where it is over the last."""
    most = round(1 / CHANCE_STEP)
    return most if chance > 1 - CHANCE_STEP else min(most - 1, math.floor(round(chance / CHANCE_STEP, 2)))


def is_below(chance: float, other: float) -> bool:
    """True where a chance is said to be less than another one."""
    return said_steps(chance) < said_steps(other)


class Rental(Protocol):
    """The machines that are rented."""

    @property
    def instance(self) -> str: ...
    @property
    def n_instances(self) -> int: ...


class Chosen(Rental, Protocol):
    """The machines that are rented, and the requests at once on a replica."""

    @property
    def requests_per_replica(self) -> float: ...


def is_same_rental(rental: Rental, other: Rental) -> bool:
    """True where two answers rent the same machines, if in another layout."""
    return (rental.instance, rental.n_instances) == (other.instance, other.n_instances)


def least_level(chance: float) -> float:
    """The lowest confidence at which an answer is said to be as sure as one with this chance."""
    return round(min(said_steps(chance) * CHANCE_STEP, 1 - CHANCE_STEP), 2)


def in_force(grid: Grid, confidence: float) -> Grid:
    """The sheet's grid in which contexts that no hardware serves at the confidence asked for are answered at an even
    chance, where hardware serves that."""
    if confidence <= EVEN or _served(grid).all():
        return grid
    even = grid.read_again(AGAIN.again(AT_LEVEL[EVEN]), AGAIN)
    falls_back = _served(even) & ~_served(grid)
    if not falls_back.any():
        return grid
    paces = grid.places["load", "pace"][falls_back]
    levels = grid.spread("level_z", ("pace",)).copy()
    levels[paces] = 0.0
    grid.put(("pace",), {"level_z": levels})
    return grid.read_again(AGAIN.again("at_levels"), AGAIN)


def at_confidence_asked(grid: Grid) -> Grid:
    """The grid up to the choice, with every context at the confidence asked for."""
    return at_z(grid, float(grid.spread("confidence_z", ())))


def at_z(grid: Grid, level_z: float) -> Grid:
    """The grid up to the choice, with every context at this many standard deviations."""
    other = grid.again({})
    other.put(("pace",), {"level_z": numpy.full(grid.sizes["pace"], level_z)})
    return other.read_again(AGAIN.again("at_levels"), AGAIN)


def _served(grid: Grid) -> Column:
    """For each load, True where some offer serves it."""
    return (grid.spread("monthly_usd", ("load", "offer")) > 0).any(axis=1)


def by_confidence(solved: Solution, levels_of: Sequence[float] = ()) -> list[tuple[AtConfidence | None, ...]]:
    """By load, the cheapest at an even chance, at the confidence asked for and at 0.9, in increasing order, each in the
    layout that the rule of near ties takes among those of its price; None where nothing holds the load. levels_of:
    other confidences, in their order."""
    asked, levels = solved.question.settings.confidence, list[list[AtConfidence | None]]()
    for confidence in levels_of or sorted({EVEN, asked, SURE}):
        is_asked = confidence == asked
        grid = solved.grid.read_again(AGAIN.again("at_lowest_price" if is_asked else AT_LEVEL[confidence]), AGAIN)
        picks = [
            None if pair is None or (is_asked and is_fallback(solved, row)) else pair[0]
            for row, pair in enumerate(picks_of(grid))
        ]
        levels.append(_levels(solved, grid, confidence, picks))
    return list(zip(*levels, strict=True))


def less_sure(
    solved: Solution, confidences: Sequence[Sequence[AtConfidence | None]]
) -> tuple[AtConfidence | None, ...]:
    """By load, the cheapest answer at the highest confidence below the one asked for that clearly lowers the month's
    cost, in the steps in which chances are printed; if there is none, the answer at an even chance. None where no more
    than an even chance was asked for, or nothing serves the load at the confidence asked for.

    confidences: as `by_confidence` has them.
    """
    question = solved.question
    asked, least = question.settings.confidence, question.reference.assumption("clear_saving_of_chance_fraction")
    steps = range(math.ceil(asked / CHANCE_STEP - ABOUT_A_STEP) - 1, round(EVEN / CHANCE_STEP), -1)
    answers = [
        next((level for level in of_load if level and level.confidence == EVEN < asked), None)
        for of_load in confidences
    ]
    answers = [None if is_fallback(solved, row) else even for row, even in enumerate(answers)]

    def is_clear(row: int, level_answer: AtConfidence | None) -> bool:
        usd = solved.choices[row].monthly_usd
        return level_answer is not None and usd is not None and level_answer.monthly_usd <= (1 - least) * usd * ABOUT

    open_rows = {row for row, even in enumerate(answers) if is_clear(row, even)}
    for step in steps:
        if not open_rows:
            break
        level = round(step * CHANCE_STEP, 2)
        grid = at_z(solved.grid, float(confidence_z(level)))
        grid = grid.read_again(AGAIN.again("at_lowest_price"), AGAIN)
        picks = [pair and pair[0] if row in open_rows else None for row, pair in enumerate(picks_of(grid))]
        for row, level_answer in enumerate(_levels(solved, grid, level, picks)):
            if is_clear(row, level_answer):
                answers[row] = level_answer
                open_rows.discard(row)
    return tuple(answers)


def _levels(solved: Solution, grid: Grid, confidence: float, picks: Sequence[Pick | None]) -> list[AtConfidence | None]:
    """By load, the cheapest at a confidence, with its actual chance."""
    loads = solved.question.loads
    held = {row: pick for row, pick in enumerate(picks) if pick is not None and not loads[row].over_limit}
    levels: list[AtConfidence | None] = [None] * len(loads)
    if held:
        chosen = grid.along("chosen", {"load": list(held), "offer": [pick.offer for pick in held.values()]})
        chosen.work_out(*CHOSEN.tables)
        names = ("chance", "pipeline_stages", *(f"{name}_chance" for name in OF_CHANCE))
        columns = (chosen.spread(name, ("chosen",)).tolist() for name in names)
        of_picks = zip(held.items(), were_measured(chosen), *columns, strict=True)
        for (row, pick), measured, chance, stages, *chances in of_picks:
            instance, n_gpus = solved.candidate(pick.offer).instance, solved.layout(pick.offer).n_gpus * int(stages)
            limit = limit_of(dict(zip(OF_CHANCE, chances, strict=True)), chance)
            levels[row] = AtConfidence(
                confidence, instance, pick.n_instances, pick.usd, measured, chance, limit, n_gpus
            )
    return levels


def were_measured(chosen: Grid) -> list[bool]:
    """For each of some loads on an offer, along `chosen`, True where runs of this kind took part in the fit of the
    speed: of the engine, the offer's GPU and the model's kind, inside one machine and without data-parallel ranks; or
    where runs of this deployment were given."""
    chosen.evaluate((speed.has_own_runs, speed.measured_scope), ("chosen",))
    columns = (chosen.spread(name, ("chosen",)).tolist() for name in ("measured_scope", "measured_tpot_factor"))
    return [SPEED_SCOPES[int(scope)] == "fitted" or own_factor > 0 for scope, own_factor in zip(*columns, strict=True)]


def is_fallback(solved: Solution, row: int) -> bool:
    """True where a load is answered at an even chance because nothing serves it at the confidence asked for."""
    return paces_at_even_chance(solved)[solved.question.pace(solved.question.loads[row])]


def paces_at_even_chance(solved: Solution) -> list[bool]:
    """By model and workload, True where nothing serves it at the confidence asked for, but something does at an even
    chance."""
    levels = solved.grid.spread("level_z", ("pace",)).tolist()
    return [solved.question.settings.confidence > EVEN and level == 0.0 for level in levels]


def measure_first(
    chosen: Chosen | None, usd_by_confidence: Mapping[float, float], asked: float, is_even: bool
) -> tuple[str, ...]:
    """Reasons to measure before renting: nothing serves the load at the confidence asked for (`impossible`, answered
    at an even chance); its cost is several times an even chance's (`asked_dear`), or its machines have one request
    each (`one_each`); nothing serves it at 0.9 (`sure_impossible`), or at several times an even chance's cost
    (`sure_dear`)."""
    if chosen is None:
        return ()
    even, sure = usd_by_confidence.get(EVEN, math.nan), usd_by_confidence.get(SURE)
    alone = chosen.n_instances > MOST_MACHINES and chosen.requests_per_replica <= 1
    reasons = {
        "impossible": is_even,
        "asked_dear": usd_by_confidence.get(asked, 0.0) > MOST_OF_ASKED * even * ABOUT,
        "one_each": alone and asked > EVEN and not is_even,
        "sure_impossible": sure is None,
        "sure_dear": sure is not None and sure > MOST_OF_SURE * even * ABOUT,
    }
    return tuple(reason for reason, holds in reasons.items() if holds)
