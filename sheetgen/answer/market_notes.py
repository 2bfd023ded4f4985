"""What the market says beside an answer: what was not asked for and is clearly cheaper, what needs a reservation."""

from __future__ import annotations

from dataclasses import replace

import numpy

from sheetgen.answer.answer_record import MeasuredHardware, NotAskedRecord, RentalRecord
from sheetgen.answer.picks import pick
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import chance_of, tables, was_measured
from sheetgen.question.deployment import SPEED_SCOPES
from sheetgen.question.market import BEYOND
from sheetgen.sizing import speed


def needs_reservation(solved: Solution, row: int) -> bool:
    """Whether a load's answer is of more machines than one may expect to find free."""
    most = solved.question.reference.assumption("reservation_above_instances")
    return solved.choices[row].n_instances > most


def fewer_machines(solved: Solution) -> list[RentalRecord | None]:
    """By load, where its answer is of very many machines, the cheapest on at most a share of them."""
    question = solved.question
    many, share = (question.reference.assumption(name) for name in ("many_instances", "few_of_many_fraction"))
    counts = numpy.array([choice.n_instances or 0 for choice in solved.choices])
    found: list[RentalRecord | None] = [None] * len(counts)
    if (counts > many).any():
        n_instances = solved.costs["n_instances"]
        few = (n_instances > 0) & (n_instances <= share * counts[:, None])
        for row, picked in enumerate(pick(solved.grid, few)):
            if counts[row] > many and picked is not None:
                best = picked[1]
                found[row] = RentalRecord(solved.candidate(best.offer).instance, best.n_instances, best.usd)
    return found


def not_asked(solved: Solution) -> tuple[tuple[NotAskedRecord, ...], ...]:
    """By load the best of each group of `beyond` that costs clearly less than the answer, or holds what nothing else
    holds; chosen as the answer is, across machines only where the answer may be, and of very many machines only where
    the answer is or fewer save nothing."""
    question = solved.question
    found: list[list[NotAskedRecord]] = [[] for _ in question.loads]
    candidates = tuple(one for group in question.beyond for one in group)
    if not candidates:
        return tuple(map(tuple, found))
    gpus = {one.gpu.id: one.gpu for one in candidates}
    others = tables(replace(question, candidates=candidates, gpus=tuple(gpus.values())))
    may_span = solved.loads["held_inside"][:, None] == 0
    allowed = may_span | (others.costs["pipeline_stages"] == 1)
    group = numpy.repeat(range(len(question.beyond)), [len(one) for one in question.beyond])
    group = group[[one.candidate for one in others.offers]]
    clearly = 1 - question.reference.assumption("clearly_cheaper_fraction")
    many = question.reference.assumption("many_instances")
    most = numpy.array([max(many, choice.n_instances or 0) for choice in solved.choices])
    is_few = others.costs["n_instances"] <= most[:, None]
    for i, kind in enumerate(BEYOND):
        of_kind = allowed & (group == i)
        picks = pick(others.grid, of_kind)
        is_many = any(picked is not None and picked[0].n_instances > most[row] for row, picked in enumerate(picks))
        few = pick(others.grid, of_kind & is_few) if is_many else picks
        for row, (of_few, of_all) in enumerate(zip(few, picks, strict=True)):
            answer, load = solved.choices[row], question.loads[row]
            for picked in () if load.over_limit else (of_few, of_all):
                if picked is None:
                    continue
                offer, n_instances, usd = picked[0]
                if answer.offer is not None and not usd < clearly * answer.monthly_usd:
                    continue
                measured = was_measured(others, row, offer)
                one = others.candidate(offer)
                chance = chance_of(others, row, offer)
                rented = NotAskedRecord(one.instance, one.gpu.vendor, kind, n_instances, usd, measured, chance)
                found[row].append(rented)
                break
    return tuple(map(tuple, found))


def measured_hardware(solved: Solution, row: int) -> MeasuredHardware | None:
    """The cheapest of a load on hardware that has runs of its own, with its chance; None where the answer has them, or
    nothing with runs holds the load."""
    answer = solved.choices[row].offer
    if answer is None or was_measured(solved, row, answer):
        return None
    grid = solved.grid.along("chosen", {"load": [row]})
    grid.evaluate((speed.has_own_runs, speed.measured_scope), ("chosen", "offer"))
    has_runs = grid.spread("measured_scope", ("chosen", "offer")) == SPEED_SCOPES.index("fitted")
    [picked] = pick(grid, has_runs, "chosen")
    if picked is None:
        return None
    cheapest, choice = picked[1], solved.choices[row]
    if (solved.offers[cheapest.offer].candidate, cheapest.n_instances) == (
        solved.offers[answer].candidate,
        choice.n_instances,
    ):
        return None  # the same machines, in another layout
    chance = chance_of(solved, row, cheapest.offer)
    return MeasuredHardware(solved.candidate(cheapest.offer).instance, cheapest.n_instances, cheapest.usd, chance)
