"""A lever: one change, what is rented without and with it, its cost besides money; and the order in which readers see
levers.

Changed loads are worked out together: each model, workload and settings once, whatever the requests at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy

from sheetgen.answer.answer_record import LeverRecord
from sheetgen.answer.confidences import is_fallback
from sheetgen.answer.picks import Chances, picks_of, with_other_requests
from sheetgen.answer.solution import Fit, Solution
from sheetgen.answer.solve import tables
from sheetgen.catalog.hardware import Workload
from sheetgen.formula import same_money
from sheetgen.question.inputs import Settings
from sheetgen.question.market import Candidate
from sheetgen.question.sheet_question import Load, Question, SheetModel

ANOTHER_MODEL = "model"  # a family left out of the ranking by dollars: quality is not compared
FP8_LEVERS = ("fp8-both", "fp8-kv-cache")  # the change to FP8; the second where weights have 8 bits or fewer already
OneLoad = tuple[Settings, SheetModel, Workload]
ModelKey = tuple[int, str, str]
Key = tuple[Settings, ModelKey, Workload]


@dataclass(frozen=True)
class Rented:
    """The machines that a load takes. `n_gpus` are those at work (replicas x TP x PP), as in the cells of the JSON.

    cheapest_usd: a month of the very cheapest, which may be another within the near tie. is_even_chance:
    nothing serves the load at the confidence requested, and this is what an even chance takes.
    """

    candidate: Candidate
    n_instances: int
    n_gpus: int
    monthly_usd: float
    cheapest_usd: float
    is_even_chance: bool = False
    chances: tuple[Chances, int] | None = field(default=None, compare=False, repr=False)  # with its position there

    @property
    def chance(self) -> float | None:
        """How sure the machines are to serve the changed load; None for a load that was not changed."""
        return None if self.chances is None else self.chances[0].of(self.chances[1])

    @classmethod
    def of(cls, solved: Solution, row: int) -> Rented | None:
        """The choice for a load; None where nothing holds it."""
        fit = Fit.of(solved, row)
        if fit is None:
            return None
        choice = fit.choice
        assert choice.cheapest is not None, "what is chosen is chosen beside the very cheapest"
        return cls(
            fit.candidate,
            choice.n_instances,
            fit.gpus_used,
            choice.monthly_usd,
            choice.cheapest.usd,
            is_fallback(solved, row),
        )


def saved_usd(before: Rented, after: Rented) -> float:
    """Dollars a month that `after` costs less; negative where it costs more, 0 where the month costs the same.

    What would be rented is compared with what would be rented, as both months stand on the page. But the choice may
    take dearer hardware within the near tie, and a change may tip it either way where nothing became cheaper or
    dearer. So a difference counts only where the very cheapest moves the same way; else it is 0. What is left of the
    tie in a saving is at most the near tie.
    """
    chosen, cheapest = (
        0.0 if same_money(x, y) else x - y
        for x, y in ((before.monthly_usd, after.monthly_usd), (before.cheapest_usd, after.cheapest_usd))
    )
    return chosen if chosen * cheapest > 0 else 0.0


def is_less(before: Rented | None, after: Rented | None) -> bool:
    """True where a load costs less than before, or where something holds it only now."""
    return after is not None and (before is None or saved_usd(before, after) > 0)


@dataclass(frozen=True)
class Offload:
    """Weights in host memory, as an indication: bytes of each GPU that every step of decoding reads over the link.

    Seconds are the least that the link allows: each token of each request waits for them.
    """

    n_gpus: int
    bytes_per_gpu: float
    link: str
    link_bytes_per_second: int
    seconds_per_token: float
    nvme_seconds_per_token: float
    parked_kv_bytes_per_gpu: float
    parked_kv_seconds: float


@dataclass(frozen=True)
class Lever:
    """The effect of one change on one load.

    `before` and `after` are nothing where nothing holds the load. `why_not` says why the change does not apply, and
    is empty where it does. `offload` has an indication in place of a price. `further`: a step beyond the best one of
    the same lever.
    """

    id: str
    family: str
    words: str  # "FP8 KV cache"
    changed: str  # "KV cache bf16 to fp8"
    cost: str  # the cost besides money, in short: "8 bits lose little"
    note: str  # the same in full
    before: Rented | None
    after: Rented | None = None
    why_not: str = ""
    offload: Offload | None = None
    further: bool = False

    @cached_property
    def saved_usd(self) -> float | None:
        """Dollars a month, from `saved_usd`; None without a price."""
        return None if self.before is None or self.after is None else saved_usd(self.before, self.after)

    @property
    def saved_fraction(self) -> float | None:
        """The same as a share of what the month costs without the change."""
        saved = self.saved_usd
        return None if saved is None or self.before is None else saved / self.before.monthly_usd

    @property
    def is_near_tie(self) -> bool:
        """True where the months differ, though the change saves nothing: see `saved_usd`."""
        if self.before is None or self.after is None or self.saved_usd:
            return False
        return not same_money(self.before.monthly_usd, self.after.monthly_usd)

    @property
    def now_fits(self) -> bool:
        """True where something holds the load only with the change."""
        return self.before is None and self.after is not None


def at_fp8(levers: Iterable[Lever]) -> Rented | None:
    """Machines that take the load with FP8 weights and an FP8 KV cache; weights of 8 bits or fewer stay. None where
    neither the engine nor any hardware runs them, or nothing holds it then."""
    by_id = {lever.id: lever for lever in levers}
    lowered = (by_id[name] for name in FP8_LEVERS if name in by_id and not by_id[name].why_not)
    lever = next(lowered, None)
    return None if lever is None else lever.after


EveryLever = Sequence[Sequence[Lever]]  # of every load of a sheet, in their order


L = TypeVar("L", Lever, LeverRecord)


def rank(lever: Lever | LeverRecord) -> float:
    """Sort key of levers: those that make a load fit first, then by dollars saved, where 12 digits tell them apart."""
    return -math.inf if lever.now_fits else -float(f"{lever.saved_usd or 0.0:.12g}")


def in_order(levers: Iterable[Lever]) -> list[Lever]:
    """The levers that have a price, those that save most first; where they tie, as the catalog has them."""
    return sorted((lever for lever in levers if lever.after), key=rank)


def best(by_row: Mapping[int, Sequence[L]], count: int) -> list[tuple[int, L]]:
    """The `count` best levers of some loads, with their rows: first the best of each load, then each load's second.

    by_row: those that have a price, in their order. Of a load one of each family, none that costs more: where fewer
    save anything, those that change nothing follow: that they do not is worth knowing. Another model is never among
    them, and of a target's steps the best alone.
    """
    chosen: list[tuple[int, float, int, L]] = []  # its position among the levers of its load, its rank, its load
    for row, levers in by_row.items():
        families: dict[str, L] = {}
        for candidate in levers:
            if candidate.family != ANOTHER_MODEL and not candidate.further and rank(candidate) <= 0:
                families.setdefault(candidate.family, candidate)
        chosen += [(place, rank(lever), row, lever) for place, lever in enumerate(families.values())]
    return [(row, lever) for _, _, row, lever in sorted(chosen, key=lambda entry: entry[:2])[:count]]


@dataclass(frozen=True)
class Change:
    """A load of the sheet with something changed; whatever is not given stays.

    requests: at once, or per second where the load is a rate. memory_above: only candidates whose GPU shows more
    bytes than this.
    """

    row: int
    model: SheetModel | None = None
    workload: Workload | None = None
    requests: float | None = None
    settings: Settings | None = None
    memory_above: int = 0


class Loads:
    """The loads of a sheet, and every changed one that was requested: the tables it was worked out in, and its row.

    Other requests at once and bigger GPUs change nothing but the last columns of these tables: see `_cheapest`.
    """

    def __init__(self, solved: Solution) -> None:
        self.solved = solved
        self._known: dict[Key, tuple[Solution, int]] = {}
        for row in range(len(solved.question.loads)):
            self._known.setdefault(_key(self._load(Change(row))), (solved, row))

    def ask(self, changes: Sequence[Change]) -> list[Rented | None]:
        """The machines that each changed load takes; None where nothing holds it."""
        self.work_out(changes)
        changed = [self._known[_key(self._load(change))] for change in changes]  # its tables, and the row there
        answers: list[Rented | None] = [None] * len(changes)
        for here in {id(solved): solved for solved, _ in changed}.values():
            mine = [i for i, (solved, _) in enumerate(changed) if solved is here]
            loads = [_with_requests(self.solved.question.loads[changes[i].row], changes[i].requests) for i in mine]
            rows, above = [changed[i][1] for i in mine], [changes[i].memory_above for i in mine]
            for i, answer in zip(mine, _cheapest(here, rows, loads, above), strict=True):
                answers[i] = answer
        return answers

    def work_out(self, changes: Iterable[Change]) -> None:
        """Work out all new changed loads of the same settings together."""
        groups: dict[Settings, dict[Key, OneLoad]] = {}
        for change in changes:
            load = self._load(change)
            if (key := _key(load)) not in self._known:
                groups.setdefault(load[0], {})[key] = load
        for settings, loads in groups.items():
            solved = tables(_question(self.solved.question, settings, list(loads.values())))
            self._known |= {key: (solved, row) for row, key in enumerate(loads)}

    def _load(self, change: Change) -> OneLoad:
        question = self.solved.question
        cell = question.loads[change.row]
        model, workload = question.models[cell.model], question.workloads[cell.workload]
        return change.settings or question.settings, change.model or model, change.workload or workload


def _with_requests(load: Load, requests: float | None) -> Load:
    if requests is None:
        return load
    if load.requests_per_second:
        return replace(load, requests_per_second=requests)
    return replace(load, concurrent_requests=requests)


def _key(load: OneLoad) -> Key:
    return load[0], _model_key(load[1]), load[2]


def _model_key(model: SheetModel) -> ModelKey:
    """A model by its object and precisions: two models with one id may differ, as an imported one does."""
    return id(model.model), model.weight_dtype, model.kv_cache_dtype


def _question(sheet: Question, settings: Settings, loads: Sequence[OneLoad]) -> Question:
    """A sheet's question with a cell for each load, and the models and workloads of these."""
    models = {_model_key(model): model for _, model, _ in loads}
    workloads = tuple(dict.fromkeys(w for _, _, w in loads))
    model_places = {key: i for i, key in enumerate(models)}
    workload_places = {workload: i for i, workload in enumerate(workloads)}
    # Where the sheet has a rate, the times of full replicas are needed.
    any_rate = float(any(load.requests_per_second for load in sheet.loads))
    cells = tuple(
        Load(
            model_places[_model_key(model)],
            workload_places[workload],
            tier=0,
            context_tokens=workload.context_tokens,
            input_tokens=workload.input_tokens,
            concurrent_requests=1,
            requests_per_second=any_rate,
            over_limit=workload.context_tokens > (model.model.max_context_tokens or 0),
        )
        for _, model, workload in loads
    )
    models_ = tuple(models.values())
    return replace(sheet, settings=settings, models=models_, workloads=workloads, loads=cells, headline=(0, 0))


def _cheapest(
    tables: Solution, rows: Sequence[int], loads: Sequence[Load], memory_above: Sequence[int]
) -> list[Rented | None]:
    """The machines that loads of the tables take with the requests of others, on GPUs that show more bytes than
    `memory_above`.

    Chosen as in the sheet itself; nothing where nothing holds a load.
    """
    at_once = [0 if load.requests_per_second else load.concurrent_requests for load in loads]
    arriving = [load.requests_per_second for load in loads]
    memory = numpy.array([tables.candidate(offer).gpu.memory.engine_bytes for offer in range(len(tables.offers))])
    shows_more = memory > numpy.array(memory_above)[:, None]
    grid = with_other_requests(tables.grid, rows, at_once, arriving, shows_more)
    columns = grid.table("chosen", "offer")
    sizes = columns["tensor_parallel_size"] * columns["data_parallel_size"] * columns["pipeline_stages"]
    n_gpus = columns["n_replicas"] * sizes
    picks = picks_of(grid, "chosen")
    chances = Chances(grid, picks)
    return [
        pair
        and Rented(
            tables.candidate(pair[0].offer),
            pair[0].n_instances,
            int(n_gpus[i, pair[0].offer]),
            pair[0].usd,
            pair[1].usd,
            is_fallback(tables, rows[i]),
            (chances, i),
        )
        for i, pair in enumerate(picks)
    ]
