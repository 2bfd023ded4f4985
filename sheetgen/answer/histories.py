"""A person's history that GPU memory loses before the next question: the answer when it has to be read anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sheetgen.answer.answer_record import ChosenRecord, HistoryRecord, ReadAnewRecord
from sheetgen.answer.solution import Choice, Solution
from sheetgen.answer.solve import solve
from sheetgen.question.inputs import HISTORY
from sheetgen.question.sheet_question import with_stated
from sheetgen.sizing import people


def lost_histories(solved: Solution, chosen: Mapping[int, ChosenRecord]) -> dict[int, HistoryRecord]:
    """By load of people who ask again only after GPU memory has dropped their history: how long it is kept, and the
    answer to the same question without history, at the default targets for that."""
    question = solved.question
    lost: dict[int, tuple[float, float]] = {}
    for row, answer in chosen.items():
        load = question.loads[row]
        rate = float(solved.loads["load_requests_per_second"][row])
        if not (load.users and load.requests_per_second and question.workload_of(row).history_hit_fraction):
            continue
        kept = float(people.history_kept_seconds(answer.memory_holds, load.concurrent_requests, rate))
        again = float(people.asks_again_seconds(load.users, rate))
        if kept < again:
            lost[row] = kept, again
    if not lost:
        return {}
    stated = {**question.stated, HISTORY: dict.fromkeys(question.stated[HISTORY], 0.0)}
    workloads = with_stated(question.workloads, stated, question.settings, question.reference)
    loads = tuple(question.loads[row] for row in lost)
    others = solve(replace(question, workloads=workloads, loads=loads, headline=(loads[0].workload, loads[0].tier)))
    return {
        row: HistoryRecord(*times, _read_anew(others, choice))
        for (row, times), choice in zip(lost.items(), others.choices, strict=True)
    }


def _read_anew(solved: Solution, choice: Choice) -> ReadAnewRecord | None:
    if choice.offer is None:
        return None
    return ReadAnewRecord(
        solved.candidate(choice.offer).instance,
        choice.n_instances,
        choice.monthly_usd,
        choice.chance,
        choice.ttft_seconds,
        choice.served_at_target,
    )
