"""Every lever of every load of a sheet: planned load by load, solved together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sheetgen.levers.hardware import bigger_gpus, host_memory, named
from sheetgen.levers.leaner import leaner_models
from sheetgen.levers.lever import Lever
from sheetgen.levers.plan import Facts, Loads, Planned, work_out
from sheetgen.levers.smaller import next_steps, one_fp4, precisions, smaller_loads
from sheetgen.recommend import Solution


def levers_of(solved: Solution, row: int) -> tuple[Lever, ...]:
    """Every lever of one load, in the catalog's order: with its answer, or with the reason why it does not apply."""
    return levers_of_sheet(solved, (row,))[row]


def levers_of_sheet(solved: Solution, rows: Iterable[int] | None = None) -> tuple[tuple[Lever, ...], ...]:
    """The same for every load, or for `rows` alone; nothing for the others, and for a load over its model's limit."""
    question = solved.question
    requested = range(len(question.loads)) if rows is None else rows
    open_rows = [row for row in requested if not question.loads[row].over_limit]
    if not open_rows:
        return ((),) * len(question.loads)
    facts = Facts.of(question)
    loads = Loads(solved)
    planned = list(_planned(loads, open_rows, facts))
    found: dict[int, list[Lever]] = {row: [] for row in open_rows}
    for one, lever in zip(planned, work_out(loads, planned, facts), strict=True):
        found[one.row].append(lever)
    place = {one.id: i for i, one in enumerate(facts.file.levers)}
    for row, levers in found.items():
        found[row] = sorted(_finished(solved, row, levers, facts), key=lambda one: place[one.id])  # type: ignore[index]
    return tuple(tuple(found.get(row, ())) for row in range(len(question.loads)))


def _planned(loads: Loads, rows: Sequence[int], facts: Facts) -> Iterable[Planned]:
    solved = loads.solved
    for row in rows:
        yield from precisions(solved, row, facts)
        yield from smaller_loads(solved, row, facts)
        yield bigger_gpus(solved, row)
    yield from next_steps(loads, rows)
    yield from leaner_models(solved, rows, facts)


def _finished(solved: Solution, row: int, levers: Sequence[Lever], facts: Facts) -> Iterable[Lever]:
    """The levers of a load with what only their answers tell: the better FP4, the bigger GPU, the host's memory."""
    four_bits = [one for one in levers if one.id == "fp4-weights"]
    yield one_fp4(*four_bits)
    for one in levers:
        if one.id != "fp4-weights":
            yield named(one) if one.id == "bigger-gpus" else one
    yield host_memory(solved, row, facts)
