"""The waits of an answer beyond its usual times: a request alone, every place taken, all people at the same moment."""

from __future__ import annotations

import numpy

from sheetgen.answer.answer_record import SameMoment, WaitsRecord
from sheetgen.answer.solution import Choice, Solution
from sheetgen.answer.solve import OF_CHOSEN
from sheetgen.program.sheet_program import AGAIN, ANSWERED, CHOSEN, WAITS
from sheetgen.sizing import speed
from sheetgen.sizing.cost import CONSTANTS


def waits_of(solved: Solution) -> dict[int, WaitsRecord]:
    """By the row of a load that something holds, the waits on what is rented for it.

    People who all ask at the same moment are served as concurrent requests are: the next of them takes each place as
    soon as it becomes free.
    """
    offers = {row: choice.offer for row, choice in enumerate(solved.choices) if choice.offer is not None}
    if not offers:
        return {}
    grid = solved.grid.along("chosen", {"load": list(offers), "offer": list(offers.values())})
    grid.work_out(*CHOSEN.tables, ANSWERED)
    alone = grid.read_again(AGAIN.again("prompts_alone"), AGAIN)
    together = grid.again({"closed_loop": 1.0})
    grid.work_out(WAITS)
    together.work_out(WAITS)
    output_tokens = [solved.workload_of(row).output_tokens for row in offers]
    full_ttft_seconds, full_tpot_seconds = (
        grid.spread(name, OF_CHOSEN) for name in ("full_ttft_seconds", "full_tpot_seconds")
    )
    turns = speed.turn_seconds(full_ttft_seconds, numpy.array(output_tokens), full_tpot_seconds)
    columns = (
        alone.spread("service_ttft_seconds", OF_CHOSEN),
        full_ttft_seconds,
        full_tpot_seconds,
        grid.spread("served_at_target", OF_CHOSEN),
        numpy.asarray(turns),
        together.spread("last_ttft_seconds", OF_CHOSEN),
        grid.spread("ttft_level_factor", OF_CHOSEN) * full_ttft_seconds,
        grid.spread("replicas_per_instance", OF_CHOSEN),
    )
    return {
        row: WaitsRecord(
            first,
            full,
            pace,
            int(places),
            (wait := solved.choices[row].mean_wait_seconds),
            None if wait is None else wait + late,
            None if (few := solved.choices[row].few_wait_seconds) is None else few + late,
            _cleared_less_machine(solved.choices[row], held),
            _same_moment(solved, row, int(places), turn, last, last - full + turn),
        )
        for row, first, full, pace, places, turn, last, late, held in zip(
            offers, *(column.tolist() for column in columns), strict=True
        )
    }


def _cleared_less_machine(choice: Choice, replicas_per_instance: float) -> float | None:
    """Requests an hour that the other machines clear when one fails, with every place taken."""
    if choice.replica_clears_per_second is None:
        return None
    is_within = choice.pipeline_parallel_size == 1
    left = replicas_per_instance * (choice.n_instances - 1) if is_within else choice.n_replicas - 1
    return left * choice.replica_clears_per_second * CONSTANTS["seconds_in_an_hour"]


def _same_moment(
    solved: Solution, row: int, n_places: int, turn_seconds: float, *last_seconds: float
) -> SameMoment | None:
    """When the last of a load's people has the first token and the answer if all ask at the same moment; None for a
    load that is not stated as people."""
    n_people = int(solved.question.loads[row].users or 0)
    if not n_people:
        return None
    return SameMoment(n_people, turn_seconds, *(last_seconds if n_people > n_places else (None, None)))
