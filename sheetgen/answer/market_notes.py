"""Notes on the market beside an answer: cheaper machines nobody asked for, and machines that need a reservation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy

from sheetgen.answer.answer_record import ChosenRecord, NotAskedRecord, RentalRecord, SureRental
from sheetgen.answer.confidences import at_z, is_below, is_same_rental, least_level, were_measured
from sheetgen.answer.picks import Pick, pick
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import chances_of, sure_rentals, tables
from sheetgen.question.deployment import SPEED_SCOPES
from sheetgen.question.market import BEYOND, UNBOUND, Candidate
from sheetgen.question.sheet_question import Question
from sheetgen.sizing import speed
from sheetgen.sizing.certainty import confidence_z
from sheetgen.units import ON_DEMAND

Groups = Mapping[str, tuple[Candidate, ...]]  # candidates that the question leaves out, by kind


def needs_reservation(solved: Solution, row: int) -> bool:
    """True where a load's answer takes more machines than one may expect to find free."""
    most = solved.question.reference.assumption("reservation_above_instances")
    return solved.choices[row].n_instances > most


def fewer_machines(solved: Solution) -> list[RentalRecord | None]:
    """By load whose answer takes very many machines, the cheapest on at most a share of them."""
    question = solved.question
    many, share = (question.reference.assumption(name) for name in ("many_instances", "few_of_many_fraction"))
    counts = numpy.array([choice.n_instances or 0 for choice in solved.choices])
    fewest: list[RentalRecord | None] = [None] * len(counts)
    if (counts > many).any():
        n_instances = solved.costs["n_instances"]
        few = (n_instances > 0) & (n_instances <= share * counts[:, None])
        for row, picked in enumerate(pick(solved.grid, few)):
            if counts[row] > many and picked is not None:
                best = picked[1]
                fewest[row] = RentalRecord(solved.candidate(best.offer).instance, best.n_instances, best.usd)
    return fewest


def not_asked(solved: Solution) -> tuple[tuple[NotAskedRecord, ...], ...]:
    """By load the best of each group of `beyond` that costs clearly less than the answer, or holds what nothing else
    holds, and the same of what is sold on demand, where the answer's class binds; chosen as the answer is, across
    machines only where the answer may be, and of very many machines only where the answer is or fewer save nothing.
    Where that is less sure than the answer, the best that is as sure comes after it, or in its place where it rents the
    same in another layout."""
    question = solved.question
    in_class = _of_groups(solved, question, dict(zip(BEYOND, question.beyond, strict=False)))
    on_demand = replace(question, settings=replace(question.settings, purchase=ON_DEMAND))
    unbound = _of_groups(solved, on_demand, {UNBOUND: question.unbound})
    return tuple((*own, *others) for own, others in zip(in_class, unbound, strict=True))


def _of_groups(solved: Solution, question: Question, groups: Groups) -> list[list[NotAskedRecord]]:
    """By load, the records that `not_asked` has of these groups. question: in the class in which they are sold."""
    records: list[list[NotAskedRecord]] = [[] for _ in question.loads]
    candidates = tuple(candidate for group in groups.values() for candidate in group)
    if not candidates:
        return records
    gpus = {candidate.gpu.id: candidate.gpu for candidate in candidates}
    others = tables(replace(question, candidates=candidates, gpus=tuple(gpus.values())))
    cheapest = list(_cheaper(solved, others, groups))
    for row, other in cheapest:
        records[row].append(other)
    # Where the cheapest of a group is less sure than the answer, the cheapest that is as sure stands beside it.
    by_level: dict[float, set[tuple[int, str]]] = {}
    for row, other in cheapest:
        choice = solved.choices[row]
        if choice.offer is not None and is_below(other.chance, choice.chance):
            by_level.setdefault(least_level(choice.chance), set()).add((row, other.kind))
    for level, doubted in by_level.items():
        at_level = replace(others, grid=at_z(others.grid, float(confidence_z(level))))
        for row, other in _cheaper(solved, at_level, groups):
            if (row, other.kind) in doubted and not is_below(other.chance, solved.choices[row].chance):
                # It takes the place of the same machines in a less sure layout.
                records[row] = [*(record for record in records[row] if not is_same_rental(record, other)), other]
    return records


def _cheaper(solved: Solution, others: Solution, groups: Groups) -> Iterator[tuple[int, NotAskedRecord]]:
    """The best of each group for each load for which it costs clearly less than the answer, or holds what
    nothing else holds, with the load's row."""
    question = solved.question
    allowed = (solved.loads["held_inside"][:, None] == 0) | (others.costs["pipeline_stages"] == 1)
    group = numpy.repeat(range(len(groups)), [len(offered) for offered in groups.values()])
    group = group[[offer.candidate for offer in others.offers]]
    clearly = 1 - question.reference.assumption("clearly_cheaper_fraction")
    many = question.reference.assumption("many_instances")
    most = numpy.array([max(many, choice.n_instances or 0) for choice in solved.choices])
    is_few = others.costs["n_instances"] <= most[:, None]
    cheaper: list[tuple[int, str, Pick]] = []
    for i, kind in enumerate(groups):
        of_kind = allowed & (group == i)
        every = pick(others.grid, of_kind)
        is_many = [picked is not None and picked[0].n_instances > most[row] for row, picked in enumerate(every)]
        few = pick(others.grid, of_kind & is_few) if any(is_many) else every
        for row, picks in enumerate(zip(few, every, strict=True)):
            choice, is_over = solved.choices[row], question.loads[row].over_limit
            saving = (
                picked[0]
                for picked in (picks if is_many[row] else picks[1:])
                if picked is not None
                and not is_over
                and (choice.offer is None or picked[0].usd < clearly * choice.monthly_usd)
            )
            cheaper += ((row, kind, best) for best in itertools.islice(saving, 1))
    rows, offers = [row for row, _, _ in cheaper], [best.offer for _, _, best in cheaper]
    if not rows:
        return
    chosen = others.grid.along("chosen", {"load": rows, "offer": offers})
    sureness = zip(were_measured(chosen), chances_of(others, rows, offers), strict=True)
    for (row, kind, best), (measured, chance) in zip(cheaper, sureness, strict=True):
        machine = others.candidate(best.offer)
        yield (
            row,
            NotAskedRecord(
                machine.instance,
                machine.gpu.vendor,
                kind,
                best.n_instances,
                best.usd,
                measured,
                chance,
                machine.gpu.short_name,
                machine.region if machine.assumed_shape else "",
            ),
        )


def measured_hardware(solved: Solution, chosen: Mapping[int, ChosenRecord]) -> dict[int, SureRental]:
    """By the row of a load the cheapest on hardware that has runs of its own, with its chance; of those alone whose
    answer in `chosen` has none, where something with runs holds them."""
    rows = [row for row, answer in chosen.items() if not answer.measured]
    if not rows:
        return {}
    grid = solved.grid.along("chosen", {"load": rows})
    grid.evaluate((speed.has_own_runs, speed.measured_scope), ("chosen", "offer"))
    has_runs = grid.spread("measured_scope", ("chosen", "offer")) == SPEED_SCOPES.index("fitted")
    cheapest = {row: picked[1] for row, picked in zip(rows, pick(grid, has_runs, "chosen"), strict=True) if picked}
    others = {row: best for row, best in cheapest.items() if not _is_of_answer(solved, row, best)}
    return sure_rentals(solved, others)


def _is_of_answer(solved: Solution, row: int, picked: Pick) -> bool:
    """True where a load would rent the machines of its answer, even if in another layout."""
    choice = solved.choices[row]
    assert choice.offer is not None
    machines = solved.offers[choice.offer].candidate, choice.n_instances
    return (solved.offers[picked.offer].candidate, picked.n_instances) == machines
