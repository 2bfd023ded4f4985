"""The waits of an answer beyond its usual times: a request alone, every place taken, all people at the same moment."""

from __future__ import annotations

from sheetgen.answer.answer_record import SameMoment, WaitsRecord
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import OF_CHOSEN
from sheetgen.program.sheet_program import AGAIN, ANSWERED, CHOSEN, WAITS


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
    columns = (
        alone.spread("service_ttft_seconds", OF_CHOSEN),
        *(grid.spread(name, OF_CHOSEN) for name in ("full_ttft_seconds", "full_tpot_seconds", "served_at_target")),
        together.spread("last_ttft_seconds", OF_CHOSEN),
    )
    return {
        row: WaitsRecord(
            first,
            full,
            pace,
            int(places),
            solved.choices[row].mean_wait_seconds,
            _same_moment(solved, row, int(places), last),
        )
        for row, first, full, pace, places, last in zip(offers, *(column.tolist() for column in columns), strict=True)
    }


def _same_moment(solved: Solution, row: int, n_places: int, last_ttft_seconds: float) -> SameMoment | None:
    """When the last of a load's people has the first token if all ask at the same moment; None for a load that is not
    stated as people."""
    n_people = int(solved.question.loads[row].users or 0)
    if not n_people:
        return None
    return SameMoment(n_people, last_ttft_seconds if n_people > n_places else None)
