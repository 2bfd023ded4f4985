"""Models x workloads x tiers on candidates: the question that a sheet answers, completed with its defaults."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sheetgen.catalog.base import Loc
from sheetgen.catalog.engines import Engine, load_engine
from sheetgen.catalog.hardware import Gpu, Workload
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model
from sheetgen.catalog.speed import SpeedFile
from sheetgen.errors import Problems, ScenarioError
from sheetgen.scenario import overridden, parse
from sheetgen.scenario.candidates import Candidate, Filters, select
from sheetgen.scenario.inputs import OPTION_GROUPS, Settings, asked_in
from sheetgen.scenario.money import Owning, owning_of
from sheetgen.scenario.override_kinds import input_names
from sheetgen.scenario.overrides import Overrides, read_overrides, unknown_keys
from sheetgen.scenario.reference import Reference
from sheetgen.scenario.settings import settings_of
from sheetgen.scenario.workloads import (
    headline_of,
    one_workload,
    requests_in_flight,
    too_long_answers,
    with_targets,
    workloads_of,
)
from sheetgen.units import DTYPES, ON_DEMAND

MAX_PIPELINE_PARALLEL_SIZE = 8
MAX_MODELS = 8
SHEET_OPTIONS = tuple(one.asked_as for one in asked_in("sheet"))
OPTIONS = tuple(one.asked_as for one in asked_in(*OPTION_GROUPS))  # what `ask` reads beside them, and for one load


@dataclass(frozen=True)
class SheetModel:
    """A model on the sheet, and the precisions that `auto` stands for."""

    model: Model
    weight_dtype: str
    kv_cache_dtype: str
    auto_weight_dtype: str
    auto_kv_cache_dtype: str


@dataclass(frozen=True)
class Load:
    """One load: a model, a workload and the requests in flight."""

    model: int
    workload: int
    tier: int
    context_tokens: int
    input_tokens: int
    concurrent_requests: int
    over_limit: bool


@dataclass(frozen=True)
class Question:
    """All that a sheet needs to be answered."""

    models: tuple[SheetModel, ...]
    workloads: tuple[Workload, ...]
    tiers: tuple[int, ...]
    engine: Engine
    gpus: tuple[Gpu, ...]
    candidates: tuple[Candidate, ...]
    left_out: tuple[tuple[str, int], ...]
    settings: Settings
    as_of: datetime.date
    headline: tuple[int, int]  # positions in workloads and tiers
    reference: Reference = field(compare=False, repr=False)  # what the floors above read of the catalogs
    speed: SpeedFile
    loads: tuple[Load, ...] = field(default=())
    filters: Filters = field(default=Filters())
    owning: Owning = field(default=Owning())
    options: Mapping[str, Any] = field(default_factory=dict)  # as they were given
    overrides: Overrides = field(default=Overrides())
    listed: tuple[Candidate, ...] = ()  # the catalog's instances, where some were typed over; see `rows`

    @property
    def catalog_sha256(self) -> str:
        return self.reference.sha256

    @property
    def rows(self) -> tuple[Candidate, ...]:
        """The catalog's instances as a workbook lists them: those too that typed values leave without a price."""
        return self.listed or self.candidates

    def pace(self, cell: Load) -> int:
        """Which pair of model and workload a cell is of: speed does not depend on the tier."""
        return cell.model * len(self.workloads) + cell.workload


def ask(catalog: Catalog, options: Mapping[str, Any]) -> Question:
    """The question behind the options of `build` (by their long names with underscores).

    With `context_tokens` among them it is one load of the user's own, as `recommend` asks it.

    Raises ScenarioError or CatalogError with every problem found, one line each.
    """
    problems = Problems()
    attempt = problems.attempt
    engine = attempt(load_engine, catalog, options.get("engine") or "vllm", options.get("engine_version"))
    settings = attempt(settings_of, options, engine)
    models = attempt(_models, catalog, options, settings)
    one_load = options.get("context_tokens") is not None
    workloads = attempt(one_workload, options) if one_load else attempt(workloads_of, catalog, options)
    workloads = attempt(with_targets, workloads, catalog.workloads(), options) if workloads else None
    speed = attempt(catalog.file, SpeedFile)
    if one_load:
        tiers = attempt(requests_in_flight, options, settings.active_fraction if settings else 1.0)
    elif options.get("tiers"):
        tiers = attempt(parse.tiers, options["tiers"])
    else:
        tiers = tuple(t.requests for t in catalog.tiers())
    as_of = attempt(parse.as_of_date, options.get("as_of"))
    providers, gpus, instances = (parse.words(options.get(name)) for name in ("providers", "gpus", "instances"))
    purchase = settings.purchase if settings else ON_DEMAND
    filters = Filters(providers, gpus, instances, options.get("region") or "", purchase)
    selection = attempt(select, catalog, engine, filters) if engine else None
    by_id = {c.gpu.id: c.gpu for c in selection.candidates} if selection else {}
    owning = attempt(owning_of, catalog, options, tuple(by_id.values()))
    headline = attempt(headline_of, options.get("headline"), workloads, tiers) if workloads and tiers else None
    overrides = attempt(read_overrides, options.get("typed"))
    if problems or selection is None or headline is None or owning is None or speed is None or workloads is None:
        raise ScenarioError(*dict.fromkeys(problems))
    given = {name: value for name, value in options.items() if value is not None and name != "typed"}
    question = Question(
        models, workloads, tiers, engine, tuple(by_id.values()), selection.candidates, selection.left_out, settings,
        as_of, headline, Reference(catalog), speed, (), filters, owning,
        given | {"as_of": as_of.isoformat()},  # a workbook asks the same on another day
    )  # fmt: skip
    question = _overridden(question, *overrides)
    if too_long := list(too_long_answers(question.workloads)):
        raise ScenarioError(*too_long)
    loads = tuple(_loads(question.models, question.workloads, tiers))
    if all(c.over_limit for c in loads):
        longest = max(m.model.max_context_tokens or 0 for m in question.models)
        if one_load:
            asked, name = loads[0].context_tokens, models[0].model.id
            raise ScenarioError(
                f"context_tokens is {asked:,}, over the {longest:,} that {name} allows. Use {longest} or less."
            )
        raise ScenarioError(f"every context is over what the models allow (the longest is {longest:,} tokens).")
    return replace(question, loads=loads)


def _overridden(question: Question, overrides: Overrides, at: Callable[[Loc], str]) -> Question:
    """`question` with what was typed over it.

    Raises ScenarioError for a row or an input that the sheet does not have, and where nothing can be rented then.
    """
    if not overrides:
        return question
    known = {
        "inputs": input_names(question.workloads), "models": (m.model.id for m in question.models),
        "gpus": (g.id for g in question.gpus), "instances": (c.instance for c in question.candidates),
        "precisions": DTYPES,
    }  # fmt: skip
    problems = list(unknown_keys(overrides, known, at))
    overrides = overrides.spelled((g.id for g in question.gpus), (c.instance for c in question.candidates))
    gpus = {g.id: overridden.overridden_gpu(g, overrides.gpus.get(g.id, {})) for g in question.gpus}
    candidates = tuple(overridden.overridden_candidates(question.candidates, gpus, overrides))
    if not candidates:
        problems.append(f"{at(())}: no instance is left to choose from: none has a price above 0. Give one a price.")
    if problems:
        raise ScenarioError(*problems)
    return replace(
        question,
        models=tuple(_overridden_model(m, question.settings, overrides) for m in question.models),
        workloads=tuple(overridden.overridden_workload(w, overrides) for w in question.workloads),
        engine=question.engine.with_columns(overrides.inputs), gpus=tuple(gpus.values()),
        candidates=candidates, settings=overridden.overridden_settings(question.settings, overrides),
        owning=overridden.overridden_owning(question.owning, overrides),
        options={**question.options, "typed": overrides.data()}, overrides=overrides, listed=question.candidates,
    )  # fmt: skip


def _overridden_model(one: SheetModel, settings: Settings, overrides: Overrides) -> SheetModel:
    row = overrides.models.get(one.model.id, {})
    weight, kv = row.get("own_weight_dtype", one.auto_weight_dtype), row.get("own_kv_dtype", one.auto_kv_cache_dtype)
    return _sheet_model(overridden.overridden_model(one.model, row), weight, kv, settings)


def _sheet_model(model: Model, weight_dtype: str, kv_cache_dtype: str, settings: Settings | None) -> SheetModel:
    """A model of these precisions of its own, at those of the settings where they name others."""
    weight, kv = (settings.weight_dtype, settings.kv_cache_dtype) if settings else ("auto", "auto")
    return SheetModel(
        model, weight_dtype if weight == "auto" else weight, kv_cache_dtype if kv == "auto" else kv, weight_dtype,
        kv_cache_dtype,
    )  # fmt: skip


def _models(catalog: Catalog, options: Mapping[str, Any], settings: Settings | None) -> tuple[SheetModel, ...]:
    names = parse.words(options.get("models"))
    if not names:
        raise ScenarioError("no model was named. Use --models, for example --models 8b,70b,405b.")
    if len(names) > MAX_MODELS:
        raise ScenarioError(f"{len(names)} models were named; one page holds at most {MAX_MODELS}.")
    problems = Problems()
    found: list[SheetModel] = []
    for name in names:
        model, named_dtype = problems.attempt(catalog.resolve_model, name) or (None, None)
        if model is not None and model.kind == "draft":
            problems.append(f"model {model.id} is a draft of another model and serves nothing by itself.")
        elif model is not None:
            found.append(_sheet_model(model, named_dtype or model.weight_dtype, model.kv_cache_dtype, settings))
    ids = [m.model.id for m in found]
    problems += [f"model {i} is named twice." for i in sorted({i for i in ids if ids.count(i) > 1})]
    if problems:
        raise ScenarioError(*problems)
    return tuple(found)


def _loads(models: tuple[SheetModel, ...], workloads: tuple[Workload, ...], tiers: tuple[int, ...]) -> list[Load]:
    return [
        Load(m, w, t, workload.context_tokens, workload.input_tokens, requests,
             workload.context_tokens > (model.model.max_context_tokens or 0))
        for m, model in enumerate(models)
        for w, workload in enumerate(workloads)
        for t, requests in enumerate(tiers)
    ]  # fmt: skip
