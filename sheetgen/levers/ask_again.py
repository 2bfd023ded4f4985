"""Changed loads solved together: one `solve` for all that share settings and candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sheetgen.catalog.hardware import Workload
from sheetgen.levers.lever import Rented
from sheetgen.recommend import Solution, solve
from sheetgen.scenario.question import Question, SheetModel
from sheetgen.scenario.settings import Settings


@dataclass(frozen=True)
class Change:
    """A load of the sheet with something changed; what is not given stays.

    requests: in flight. memory_above: only candidates whose GPU shows more bytes than this.
    """

    row: int
    model: SheetModel | None = None
    workload: Workload | None = None
    requests: int | None = None
    settings: Settings | None = None
    memory_above: int = 0


def ask_again(solved: Solution, changes: Sequence[Change]) -> list[Rented | None]:
    """What each changed load takes; nothing where nothing holds it."""
    question = solved.question
    found: list[Rented | None] = [None] * len(changes)
    groups: dict[tuple[Settings, int], list[int]] = {}
    for i, change in enumerate(changes):
        groups.setdefault((change.settings or question.settings, change.memory_above), []).append(i)
    for (settings, memory_above), group in groups.items():
        asked = _with_candidates(question, settings, memory_above)
        if not asked.candidates:
            continue
        after = solve(_with_loads(question, asked, [changes[i] for i in group]))
        for row, i in enumerate(group):
            found[i] = Rented.of(after, row)
    return found


def _with_candidates(question: Question, settings: Settings, memory_above: int) -> Question:
    gpus = tuple(g for g in question.gpus if g.memory.engine_bytes > memory_above)
    candidates = tuple(c for c in question.candidates if c.gpu.memory.engine_bytes > memory_above)
    return replace(question, settings=settings, gpus=gpus, candidates=candidates)


def _with_loads(sheet: Question, asked: Question, changes: Sequence[Change]) -> Question:
    """`asked` with one load for each change, and the models and workloads that these are of."""
    models: dict[tuple[str, str, str], SheetModel] = {}
    workloads: dict[tuple[str, int], Workload] = {}
    cells = []
    for change in changes:
        cell = sheet.cells[change.row]
        model = change.model or sheet.models[cell.model]
        workload = change.workload or sheet.workloads[cell.workload]
        m = _place(models, (model.model.id, model.weight_dtype, model.kv_cache_dtype), model)
        w = _place(workloads, (workload.id, workload.context_tokens), workload)
        cells.append(
            replace(
                cell,
                model=m,
                workload=w,
                context_tokens=workload.context_tokens,
                input_tokens=workload.input_tokens,
                concurrent_requests=change.requests or cell.concurrent_requests,
                over_limit=workload.context_tokens > (model.model.max_context_tokens or 0),
            )
        )
    return replace(
        asked,
        models=tuple(models.values()),
        workloads=tuple(workloads.values()),
        cells=tuple(cells),
        headline=(0, 0),
    )


def _place(known: dict[Any, Any], key: Any, one: Any) -> int:
    """Where `one` stands among those of its kind, the last one where it is new."""
    known.setdefault(key, one)
    return list(known).index(key)
