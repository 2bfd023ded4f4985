"""Changed loads worked out together: each model, workload and settings once, whatever the requests in flight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sheetgen.catalog.hardware import Workload
from sheetgen.levers.rented import Rented, cheapest
from sheetgen.recommend import Solution, tables
from sheetgen.scenario.inputs import Settings
from sheetgen.scenario.question import Load, Question, SheetModel

OneLoad = tuple[Settings, SheetModel, Workload]
ModelKey = tuple[int, str, str]
Key = tuple[Settings, ModelKey, Workload]


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


class Loads:
    """The loads of a sheet, and every changed one that was asked for: the tables it was worked out in, and its row.

    Other requests in flight and bigger GPUs change nothing but the last columns of these tables: see `cheapest`.
    """

    def __init__(self, solved: Solution) -> None:
        self.solved = solved
        self._known: dict[Key, tuple[Solution, int]] = {}
        for row in range(len(solved.question.loads)):
            self._known.setdefault(_key(self._load(Change(row))), (solved, row))

    def ask(self, changes: Sequence[Change]) -> list[Rented | None]:
        """What each changed load takes; nothing where nothing holds it."""
        self.work_out(changes)
        places = [self._known[_key(self._load(one))] for one in changes]
        requests = [one.requests or self.solved.question.loads[one.row].concurrent_requests for one in changes]
        found: list[Rented | None] = [None] * len(changes)
        for solved in {id(one): one for one, _ in places}.values():
            here = [i for i, (one, _) in enumerate(places) if one is solved]
            answers = cheapest(
                solved,
                [places[i][1] for i in here],
                [requests[i] for i in here],
                [changes[i].memory_above for i in here],
            )
            for i, answer in zip(here, answers, strict=True):
                found[i] = answer
        return found

    def work_out(self, changes: Iterable[Change]) -> None:
        """Make the changed loads known, all that are new together.

        Other models apart from other workloads: `tables` works out the speed of all pairs of those it is given.
        """
        groups: dict[tuple[Settings, bool], dict[Key, OneLoad]] = {}
        for change in changes:
            load = self._load(change)
            if (key := _key(load)) not in self._known:
                groups.setdefault((load[0], change.model is None), {})[key] = load
        for (settings, _), loads in groups.items():
            solved = tables(_question(self.solved.question, settings, list(loads.values())))
            self._known |= {key: (solved, row) for row, key in enumerate(loads)}

    def _load(self, change: Change) -> OneLoad:
        question = self.solved.question
        cell = question.loads[change.row]
        return (
            change.settings or question.settings,
            change.model or question.models[cell.model],
            change.workload or question.workloads[cell.workload],
        )


def _key(load: OneLoad) -> Key:
    return load[0], _model_key(load[1]), load[2]


def _model_key(model: SheetModel) -> ModelKey:
    """A model by its object and precisions: two models of one id may differ, as an imported one does."""
    return id(model.model), model.weight_dtype, model.kv_cache_dtype


def _question(sheet: Question, settings: Settings, loads: Sequence[OneLoad]) -> Question:
    """A sheet's question with a cell for each load, and the models and workloads that these are of."""
    models = {_model_key(model): model for _, model, _ in loads}
    places = {key: place for place, key in enumerate(models)}
    workloads = {workload: place for place, workload in enumerate(dict.fromkeys(w for _, _, w in loads))}
    cells = tuple(
        Load(
            places[_model_key(model)],
            workloads[workload],
            tier=0,
            context_tokens=workload.context_tokens,
            input_tokens=workload.input_tokens,
            concurrent_requests=1,
            over_limit=workload.context_tokens > (model.model.max_context_tokens or 0),
        )
        for _, model, workload in loads
    )
    return replace(
        sheet,
        settings=settings,
        models=tuple(models.values()),
        workloads=tuple(workloads),
        loads=cells,
        headline=(0, 0),
    )
