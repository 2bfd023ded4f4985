"""Levers before they are worked out, and changed loads worked out together.

Each model, workload and settings is solved once, whatever the requests in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sheetgen.catalog.engines import Engine
from sheetgen.catalog.hardware import Workload
from sheetgen.catalog.stacks import Launcher, LeverFile, LeverWords, NotRun, StackFile
from sheetgen.levers.lever import Lever, Rented, cheapest
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
    """The loads of a sheet, and every changed one that was requested: the tables it was worked out in, and its row.

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


@dataclass(frozen=True)
class Facts:
    """The catalogs' part; fractions are those of assumptions.yaml."""

    file: LeverFile
    words: Mapping[str, LeverWords]
    prefix_hit_fraction: float
    context_fraction: float
    fewer_users_fraction: float
    like_size_fraction: float
    launcher: Launcher | None
    not_run: NotRun | None

    @classmethod
    def of(cls, question: Question) -> Facts:
        """The facts for a question's engine. Raises CatalogError where the catalogs lack one."""
        reference, engine = question.reference, question.engine
        known, file = reference.assumption, reference.catalog.file(LeverFile)
        return cls(
            file=file,
            words={one.id: one for one in file.levers},
            prefix_hit_fraction=known("lever_prefix_cache_hit_fraction"),
            context_fraction=known("lever_context_fraction"),
            fewer_users_fraction=known("lever_fewer_users_fraction"),
            like_size_fraction=known("lever_like_size_fraction"),
            launcher=next((x for x in reference.catalog.file(StackFile).launchers if x.engine == engine.engine), None),
            not_run=next((one for one in file.not_run if one.engine == engine.engine), None),
        )

    def engine_lacks(self, engine: Engine, what: str, dtype: str) -> str:
        """Why an engine does not run weights or a KV cache of a precision, or nothing where it does.

        An engine that the catalogs say nothing of is taken to run it.
        """
        if self.launcher is not None:
            runs = self.launcher.kv_cache_dtypes if what == "KV cache" else self.launcher.weight_dtypes
            return "" if dtype in runs else f"{engine.name} does not run {_named(what, dtype)}"
        known = self.not_run
        if known is None or dtype not in (known.kv_cache_dtypes if what == "KV cache" else known.weight_dtypes):
            return ""
        return f"{engine.name} does not run {_named(what, dtype)}: {known.instead}"


def _named(what: str, dtype: str) -> str:
    return f"a KV cache in {dtype}" if what == "KV cache" else f"{dtype} weights"


WEIGHT_ONLY = "weight_only"  # as a GPU's file says it


@dataclass(frozen=True)
class Planned:
    """A lever of one load; `change` is nothing where it does not apply, and `why_not` says why.

    `words` stand in place of the usual ones.
    """

    id: str
    row: int
    change: Change | None = None
    words: str = ""
    changed: str = ""
    why_not: str = ""


def work_out(loads: Loads, planned: Sequence[Planned], facts: Facts) -> list[Lever]:
    """Every planned lever with its answer, solved together."""
    changes = [one.change for one in planned if one.change is not None]
    answers = iter(loads.ask(changes))
    return [finished(loads.solved, one, None if one.change is None else next(answers), facts) for one in planned]


def finished(solved: Solution, one: Planned, after: Rented | None, facts: Facts) -> Lever:
    """A planned lever with its answer."""
    known = facts.words[one.id]
    why_not = one.why_not or ("" if after is not None else "nothing that may be rented holds it then")
    return Lever(
        id=one.id,
        family=known.family,
        words=one.words or known.words,
        changed=one.changed,
        note=". ".join(filter(None, (_weights_only(solved, one, after), known.cost))),
        before=Rented.of(solved, one.row),
        after=after,
        why_not=why_not,
    )


def _weights_only(solved: Solution, one: Planned, after: Rented | None) -> str:
    """A word on a GPU that keeps other weights than before in fewer bits than it computes in."""
    model = one.change.model if one.change else None
    if model is None or after is None:
        return ""
    before = solved.question.models[solved.question.loads[one.row].model]
    dtype, gpu = model.weight_dtype, after.candidate.gpu
    if (model.model.id, dtype) == (before.model.id, before.weight_dtype) or gpu.weights_run.get(dtype) != WEIGHT_ONLY:
        return ""
    return f"{gpu.short_name} keeps {dtype} and computes in 16 bits"
