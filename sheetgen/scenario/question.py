"""Models x workloads x tiers on candidates: the question that a sheet answers, completed with its defaults."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sheetgen.catalog.engines import Engine, load_engine
from sheetgen.catalog.hardware import Gpu, Workload
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model
from sheetgen.catalog.speed import SpeedFile, load_speed
from sheetgen.errors import ScenarioError, SheetgenError, shown
from sheetgen.scenario import parse
from sheetgen.scenario.candidates import Candidate, Filters, select
from sheetgen.scenario.money import MONEY_OPTIONS, Owning, owning_of
from sheetgen.scenario.one_load import one_workload, over_limit, requests_in_flight
from sheetgen.scenario.settings import Settings, settings_of
from sheetgen.scenario.targets import TARGETS, with_targets

TENSOR_PARALLEL_SIZES = (1, 2, 4, 8)
MAX_PIPELINE_PARALLEL_SIZE = 8
MAX_MODELS = 8
SHEET_OPTIONS = ("models", "workloads", "contexts", "tiers", "headline", "units", "paper")
OPTIONS = (  # what `ask` reads beside them, and for one load
    "gpus", "providers", "instances", "region", "purchase", "engine", "engine_version", "weight_dtype",
    "kv_cache_dtype", "gpu_memory_utilization", "block_size", "kv_allocation", "average_context_fraction",
    "prefix_cache_hit_fraction", "active_fraction", "extra_headroom_fraction", "spare_replicas", "hours_per_month",
    "as_of", *TARGETS, "speed_factor", "ttft_factor", *MONEY_OPTIONS,
)  # fmt: skip


@dataclass(frozen=True)
class SheetModel:
    """A model on the sheet, and the precisions that `auto` stands for."""

    model: Model
    weight_dtype: str
    kv_cache_dtype: str
    auto_weight_dtype: str
    auto_kv_cache_dtype: str


@dataclass(frozen=True)
class Cell:
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
    catalog_sha256: str
    cells: tuple[Cell, ...] = field(default=())
    filters: Filters = field(default=Filters())
    owning: Owning = field(default=Owning())
    speed: SpeedFile | None = None

    def pace(self, cell: Cell) -> int:
        """Which pair of model and workload a cell is of: speed does not depend on the tier."""
        return cell.model * len(self.workloads) + cell.workload


def ask(catalog: Catalog, options: Mapping[str, Any]) -> Question:
    """The question behind the options of `build` (by their long names with underscores).

    With `context_tokens` among them it is one load of the user's own, as `recommend` asks it.

    Raises ScenarioError or CatalogError with every problem found, one line each.
    """
    problems: list[str] = []

    def attempt(make: Any, *arguments: Any) -> Any:
        try:
            return make(*arguments)
        except SheetgenError as error:
            problems.extend(error.problems)
            return None

    engine = attempt(lambda: load_engine(catalog, options.get("engine") or "vllm", options.get("engine_version")))
    settings = attempt(settings_of, options, engine)
    models = attempt(_models, catalog, options, settings)
    one_load = options.get("context_tokens") is not None
    workloads = attempt(one_workload, options) if one_load else attempt(_workloads, catalog, options)
    workloads = attempt(with_targets, workloads, catalog.workloads(), options) if workloads else None
    speed = attempt(load_speed, catalog)
    if one_load:
        tiers = attempt(requests_in_flight, options, settings.active_fraction if settings else 1.0)
    else:
        tiers = (
            attempt(parse.tiers, options["tiers"])
            if options.get("tiers")
            else tuple(t.requests for t in catalog.tiers())
        )
    as_of = attempt(parse.as_of_date, options.get("as_of"))
    filters = Filters(
        parse.words(options.get("providers")),
        parse.words(options.get("gpus")),
        parse.words(options.get("instances")),
        options.get("region") or "",
        settings.purchase if settings else "on-demand",
    )
    selection = attempt(select, catalog, engine, filters) if engine else None
    by_id = {c.gpu.id: c.gpu for c in selection.candidates} if selection else {}
    owning = attempt(owning_of, catalog, options, tuple(by_id.values()))
    headline = attempt(_headline, options.get("headline"), workloads, tiers) if workloads and tiers else None
    if problems or selection is None or headline is None or owning is None or speed is None or workloads is None:
        raise ScenarioError(*dict.fromkeys(problems))
    cells = tuple(_cells(models, workloads, tiers))
    if all(c.over_limit for c in cells):
        longest = max(m.model.max_context_tokens or 0 for m in models)
        if one_load:
            raise over_limit(cells[0].context_tokens, longest, models[0].model.id)
        raise ScenarioError(f"every context is over what the models allow (the longest is {longest:,} tokens).")
    return Question(
        models,
        workloads,
        tiers,
        engine,
        tuple(by_id.values()),
        selection.candidates,
        selection.left_out,
        settings,
        as_of,
        headline,
        catalog.catalog_sha256(),
        cells,
        filters,
        owning,
        speed,
    )


def _models(catalog: Catalog, options: Mapping[str, Any], settings: Settings | None) -> tuple[SheetModel, ...]:
    names = parse.words(options.get("models"))
    if not names:
        raise ScenarioError("no model was named. Use --models, for example --models 8b,70b,405b.")
    if len(names) > MAX_MODELS:
        raise ScenarioError(f"{len(names)} models were named; one page holds at most {MAX_MODELS}.")
    problems: list[str] = []
    found: list[SheetModel] = []
    for name in names:
        try:
            model, named_dtype = catalog.resolve_model(name)
        except SheetgenError as error:
            problems.extend(error.problems)
            continue
        if model.kind == "draft":
            problems.append(f"model {model.id} is a draft of another model and serves nothing by itself.")
            continue
        weight = settings.weight_dtype if settings else "auto"
        kv = settings.kv_cache_dtype if settings else "auto"
        found.append(
            SheetModel(
                model,
                weight if weight != "auto" else named_dtype or model.weight_dtype,
                kv if kv != "auto" else model.kv_cache_dtype,
                named_dtype or model.weight_dtype,
                model.kv_cache_dtype,
            )
        )
    ids = [m.model.id for m in found]
    problems += [f"model {i} is named twice." for i in sorted({i for i in ids if ids.count(i) > 1})]
    if problems:
        raise ScenarioError(*problems)
    return tuple(found)


def _workloads(catalog: Catalog, options: Mapping[str, Any]) -> tuple[Workload, ...]:
    known = {w.id: w for w in catalog.workloads()}
    names = parse.words(options.get("workloads")) or tuple(known)
    chosen = tuple(known[parse.one_of(name, "workload", known)] for name in names)
    if len({w.id for w in chosen}) != len(chosen) or len(chosen) > 3:
        raise ScenarioError(f"workloads are {shown(','.join(names))!r}. Name up to three, each once.")
    return tuple(_with_contexts(chosen, parse.words(options.get("contexts"))))


def _with_contexts(chosen: tuple[Workload, ...], asked: tuple[str, ...]) -> Iterator[Workload]:
    """The workloads at the contexts asked for (`rag=32k`); the answer's length stays, the prompt takes the rest."""
    known = {w.id: w for w in chosen}
    wanted: dict[str, int] = {}
    for one in asked:
        name, equals, length = one.partition("=")
        if not equals:
            raise ScenarioError(f"contexts has {shown(one)!r}. Write a workload and its tokens, such as rag=32k.")
        workload = parse.one_of(name, "contexts", known)
        if workload in wanted:
            raise ScenarioError(f"contexts names {workload} twice. Keep one.")
        wanted[workload] = parse.tokens(length, f"context of {workload}")
    for w in chosen:
        context = wanted.get(w.id, w.context_tokens)
        output = w.output_tokens if context > w.output_tokens else context // 2
        yield w.model_copy(update={"input_tokens": context - output, "output_tokens": output})


def _headline(text: str | None, workloads: tuple[Workload, ...], tiers: tuple[int, ...]) -> tuple[int, int]:
    """Positions of the headline's workload and tier: RAG at 32 in flight, or the middle of what there is."""
    ids = [w.id for w in workloads]
    usual = tiers.index(32) if 32 in tiers else (len(tiers) - 1) // 2
    if not text:
        return ids.index("rag") if "rag" in ids else 0, usual
    name, _, tier = str(text).partition(":")
    workload = parse.one_of(name, "headline", tuple(ids))
    number = parse.whole(tier, "headline tier", most=1_000_000) if tier else tiers[usual]
    if number not in tiers:
        raise ScenarioError(f"headline is {shown(text)!r}. Its tier must be one of {', '.join(map(str, tiers))}.")
    return ids.index(workload), tiers.index(number)


def _cells(models: tuple[SheetModel, ...], workloads: tuple[Workload, ...], tiers: tuple[int, ...]) -> list[Cell]:
    return [
        Cell(
            m,
            w,
            t,
            workload.context_tokens,
            workload.input_tokens,
            requests,
            workload.context_tokens > (model.model.max_context_tokens or 0),
        )
        for m, model in enumerate(models)
        for w, workload in enumerate(workloads)
        for t, requests in enumerate(tiers)
    ]
