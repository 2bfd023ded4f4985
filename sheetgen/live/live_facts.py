"""The data of the live page: every model, GPU, machine and price that a question may name, as its program reads them.

`grid_of` makes the columns from a question about all models at once. Columns that differ by model are kept by model;
where an engine treats a few models apart, its columns are kept once for these (a variant). Machines are kept by region
and purchase class.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

import numpy

from sheetgen.answer.answer_record import OF_SEARCH, not_in_price
from sheetgen.answer.confidences import ABOUT, MOST_MACHINES, MOST_OF_ASKED, MOST_OF_SURE
from sheetgen.answer.hosts import SHOWN_HOSTS
from sheetgen.answer.levers.changes import FP4, FP8
from sheetgen.answer.pay_less import JUDGED, MONTHS, NEAR, NOT_REQUESTED, SOLD_AS_ANSWER
from sheetgen.answer.people_loads import MOST_AT_ONCE
from sheetgen.answer.recording import HOURS_OF_A_MEASUREMENT
from sheetgen.answer.replica_bills import FEWER_SEQUENCES, FEWER_TOKENS
from sheetgen.answer.sheet_facts import PRECISIONS, grid_of
from sheetgen.answer.solve import NOTHING_FITS, TOO_SLOW
from sheetgen.answer.ways_to_pay import EUROPE
from sheetgen.api import question_of
from sheetgen.catalog import Catalog
from sheetgen.catalog.engines import MODEL_KINDS, Engine
from sheetgen.catalog.guidance import bare
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.model import SCALE_BLOCK, Model
from sheetgen.catalog.stacks import Launcher, LeverFile, StackFile
from sheetgen.errors import ELSEWHERE, ScenarioError
from sheetgen.live.packed import as_text
from sheetgen.program.declared import Axes
from sheetgen.program.grid import Column, Grid
from sheetgen.program.quantities import TOKENS
from sheetgen.question.deployment import SPEED_SCOPES, model_kind
from sheetgen.question.inputs import ASKS, BY_NAME, HISTORY
from sheetgen.question.market import (
    BEYOND,
    DEFAULT_PROVIDERS,
    UNBOUND,
    Candidate,
    OfMarket,
    OwnedGpu,
    in_class,
    owning_of,
    vendor_name,
)
from sheetgen.question.precision import DEPLOYED, has_deployed, loads_weights
from sheetgen.question.sheet_question import ASKED, OFF, OPTIONS, Question, SheetModel, models_named, one_workload
from sheetgen.question.stated_load import A_LOAD, mean_over_peak
from sheetgen.report.fingerprints import fingerprints_with
from sheetgen.report.live_words import (
    ABSENT_NAMES,
    AREAS,
    BASES,
    CHANGED_BY,
    DEFAULT_AREA,
    PARTS,
    PARTS_OF_TIME,
    SAME_AREAS,
)
from sheetgen.report.notes import sources_of
from sheetgen.report.pay_less_words import JUDGED as SAID
from sheetgen.report.pay_less_words import OF_SUPPLIERS, TERMS
from sheetgen.report.sentences import ENTERPRISE_ASKS
from sheetgen.report.wording import OF_LIMIT, prefix_of, provider_name, sign_of, weights_name
from sheetgen.sizing import targets
from sheetgen.sizing.rates import FEW_FRACTION
from sheetgen.units import CHANCE_STEP, DTYPES, EVEN, GIB, LAYOUTS, ON_DEMAND, PURCHASES, SURE, listed

Json: TypeAlias = Any  # any JSON value
Key = tuple[Axes, str]  # of a column: its axes, and its name
# The candidates of the class in use, and of each other class.
Classes: TypeAlias = tuple[Sequence[Candidate], Mapping[str, Sequence[Candidate]]]
OF_QUESTION = frozenset(("workload", "pace", "load", "instance", "offer"))  # axes whose facts a reader gives
CLEARLY, CLEAR = "clearly_cheaper_fraction", "clear_saving_of_chance_fraction"
MANY, A_PAGE = "many_instances", "tokens_per_page"
BETWEEN_SOURCES = "; "
ALL = "all"
FIRST = "llama-3.1-70b"  # the model with which the page opens, where it is among them
# Options that a reader types on the page, by their names in `recommend`.
TYPED = (
    "users", ASKS, "concurrent_requests", "requests_per_second", "input_tokens", "output_tokens", "context_tokens",
    "confidence", "tpot_ms", "ttft_ms", HISTORY,
)  # fmt: skip
CHOSEN = ("weight_dtype", "kv_cache_dtype", "purchase", "region", "providers")
OF_HEAD = ("title", "owner")
OF_HOST = (
    "input_usd_per_million", "cached_usd_per_million", "output_usd_per_million", "max_input_tokens", "precision",
    "source", "deprecation_date",
)  # fmt: skip


def facts_of_catalog(catalog: Catalog, names: Sequence[str], as_of: str | None = None) -> Json:
    """The data for these models of a catalog, or for all, with the defaults of `recommend`.

    Raises ScenarioError for a name that no model has.
    """
    plain = question_of({"model": names[0] if names else FIRST, "as_of": as_of}, catalog)
    return _facts(plain, _models(catalog, plain, names))


def facts_of_sheet(question: Question) -> Json:
    """The data for a sheet: its models, options and catalogs; the page opens at the headline."""
    return {
        **_facts(question, question.models),
        "opened": _opened(question),
        **{name: str(question.options.get(name) or "") for name in OF_HEAD},
        "command": {
            name: str(value)
            for name, value in question.options.items()
            if name in OPTIONS and name not in (*TYPED, *CHOSEN, *A_LOAD) and isinstance(value, (str, int, float))
        },
    }


def _opened(question: Question) -> dict[str, str]:
    """The question that the page of a sheet opens with, as its address has it."""
    shown = (question.ask or 0, *question.headline)
    row = next(i for i, load in enumerate(question.loads) if (load.model, load.workload, load.tier) == shown)
    load, workload = question.loads[row], question.workload_of(row)
    asked: dict[str, float]
    if load.users:
        asked = {"users": load.users}
    elif load.requests_per_second:
        asked = {"requests_per_second": load.requests_per_second}
    else:
        asked = {"concurrent_requests": load.requests}
    lengths = {"input_tokens": workload.input_tokens, "output_tokens": workload.output_tokens}
    if load.context_tokens != sum(lengths.values()):
        lengths["context_tokens"] = load.context_tokens
    stated = {name: by_workload.get(workload.id, ...) for name, by_workload in question.stated.items() if name != ASKS}
    return {
        "model": question.model_of(row).model.id,
        **{
            name: _shortest(value)
            for name, value in {**asked, **lengths, ASKS: workload.requests_per_user_per_day}.items()
        },
        **{name: OFF if ms is None else _shortest(ms) for name, ms in stated.items() if ms is not ...},
        **{name: str(getattr(question.settings, name)) for name in CHOSEN[:3]},
        "confidence": _shortest(question.settings.confidence),
        "region": question.filters.region,
        "providers": ",".join(question.filters.providers),
    }


def _shortest(value: float) -> str:
    """A number as one types it."""
    return str(int(value)) if value == int(value) else repr(float(value))


def _facts(plain: Question, models: Sequence[SheetModel]) -> Json:
    """The data of the page as JSON has it, with the settings of a question."""
    catalog = plain.reference.catalog
    market = _Market(catalog, plain)
    gpus = tuple(market.gpus.values())
    whole = replace(plain, gpus=gpus, candidates=(), others={}, rows=(), beyond=(), loads=plain.loads[:1])
    columns, variants, of_models = _columns(whole, models)
    reference = plain.reference
    judged = (*JUDGED, *SAID.values(), CLEARLY, CLEAR, MANY, A_PAGE, *targets.ASSUMED)
    settings, states_utilization = plain.settings, plain.options.get("utilization") is not None
    # A load of one's own, and no workload of the catalog.
    is_own = any(workload.id == ASKED for workload in plain.workloads)
    workloads = [workload for workload in catalog.workloads() if workload.is_default] if is_own else plain.workloads
    sources = dict.fromkeys(map(_source_of, models))
    has_people = plain.rate is not None and plain.rate.users > 0
    [usual] = one_workload(catalog, {})
    return {
        "as_of": plain.as_of.isoformat(),
        "first": next((entry.model.id for entry in models if entry.model.id == FIRST), models[0].model.id),
        "engine": plain.engine.name,
        "engine_version": plain.engine.default_version,
        "precisions": PRECISIONS,
        "kinds": list(MODEL_KINDS),
        "layouts": [list(layout) for layout in LAYOUTS],
        "columns": columns,
        "variants": variants,
        "models": [
            {**_model(entry), "variants": own, "source": list(sources).index(_source_of(entry))}
            for entry, own in zip(models, of_models, strict=True)
        ],
        "sources_of_models": list(sources),
        "of_models": _of_models(whole, models),
        "hosted": [price for place, entry in enumerate(models) for price in _hosted(place, entry.model, plain)],
        "hosted_origin": reference.hosted.origin,
        "gpus": [_gpu(gpu, owned) for gpu, owned in zip(gpus, _owned(plain, gpus), strict=True)],
        "has_draft": plain.draft is not None,
        "own_runs": SPEED_SCOPES.index("fitted"),
        "measured_gpus": {
            deployment.served.gpu: int(bool(deployment.runs)) for deployment in plain.measurements.deployments
        },
        "of_limit": OF_LIMIT,
        "between_sources": BETWEEN_SOURCES,
        "n_measurements": len(plain.measurements.deployments),
        "owning": dict(plain.owning.values),
        "market": market.as_json(),
        "purchases": {
            purchase: {
                "words": f"{TERMS[purchase]} commitment" if purchase in TERMS else paid.words,
                "is_committed": int(paid.committed),
                "binds": int(paid.binds),
                "months": MONTHS.get(purchase, 0),
            }
            for purchase, paid in PURCHASES.items()
        },
        "default_providers": list(DEFAULT_PROVIDERS),
        "judged": {name: reference.assumption(name) for name in judged},
        "asks": BY_NAME[ASKS].default,
        "mean_over_peak": settings.utilization
        if states_utilization
        else mean_over_peak(settings.peak_hour_share, settings.burst_factor),
        "utilization": BY_NAME["utilization"].default
        if has_people and not states_utilization
        else settings.utilization,
        "confidence": settings.confidence,
        "currency": {"prefix": prefix_of(sign_of(settings.currency)), "rate": settings.fx_rate},
        "levels": {"even": EVEN, "sure": SURE},
        "few_fraction": FEW_FRACTION,
        "measure_first": {"sure": MOST_OF_SURE, "asked": MOST_OF_ASKED, "machines": MOST_MACHINES, "about": ABOUT},
        "lower": {"fp8": FP8, "fp4": list(FP4), "deployed": DEPLOYED, **_run(catalog, plain)},
        "verdicts": {"slow": TOO_SLOW, "none": NOTHING_FITS},
        "beyond": list(BEYOND),
        "near": list(NEAR),
        "not_requested": list(NOT_REQUESTED),
        "unbound": UNBOUND,
        "of_suppliers": list(OF_SUPPLIERS),
        "sold_as_answer": list(SOLD_AS_ANSWER),
        "hosts_told": SHOWN_HOSTS,
        "enterprise_asks": ENTERPRISE_ASKS,
        "terms": TERMS,
        "vendors": {gpu.vendor: vendor_name(gpu.vendor) for gpu in gpus},
        "parts": PARTS,
        "parts_of_time": PARTS_OF_TIME,
        "bases": BASES,
        "areas": AREAS,
        "same_areas": SAME_AREAS,
        "default_area": DEFAULT_AREA,
        "other_area": EUROPE,
        "absent_names": ABSENT_NAMES,
        "changed_by": CHANGED_BY,
        "tried_targets": _tried_targets(catalog),
        "chance_step": CHANCE_STEP,
        "not_in_price": listed(not_in_price(settings.survive)),
        "reserved_above": reference.assumption("reservation_above_instances"),
        "most_at_once": MOST_AT_ONCE,
        "of_search": OF_SEARCH,
        "tokens": [formula.name for formula in TOKENS],
        "starts": _starts(catalog, plain),
        "scale_block": SCALE_BLOCK,
        "started_unless": ["mla_fp8_entry_bytes"],
        "fewer_tokens": FEWER_TOKENS,
        "fewer_sequences": FEWER_SEQUENCES,
        "deaths": [
            {
                "of": " ".join(filter(None, (fingerprint.label, fingerprint.case))),
                "words": [fingerprint.where, fingerprint.bill, fingerprint.looks_like],
                "fixes": [[bare(fix.flag), fix.direction, fix.cost] for fix in fingerprint.fixes],
            }
            for fingerprint in fingerprints_with({}, plain)
        ],
        "sources": [[source.text, source.web_url] for source in sources_of((), (), [plain.engine])],
        "measured_hours": HOURS_OF_A_MEASUREMENT,
        "tiers": [tier.requests for tier in catalog.tiers()]
        if is_own
        else [requests for requests in plain.tiers if requests],
        "gib": GIB,
        "longest_prompt_tokens": plain.speed.longest_prompt_tokens,
        "inputs": {name: _limits(name) for name in TYPED},
        "elsewhere": ELSEWHERE,
        "usual": {"input_tokens": usual.input_tokens, "output_tokens": usual.output_tokens},
        "workloads": [
            {
                "id": workload.id,
                "name": workload.name,
                "input_tokens": workload.input_tokens,
                "output_tokens": workload.output_tokens,
                "asks": workload.requests_per_user_per_day,
                "called": workload.request_name,
            }
            for workload in workloads
        ],
    }


def _tried_targets(catalog: Catalog) -> Json:
    """The looser targets that are tried where nothing serves those in force, in milliseconds."""
    tried = catalog.file(LeverFile).tried_targets
    return {"tpot": list(tried.tpot_ms), "ttft": list(tried.ttft_ms)}


def _limits(name: str) -> Json:
    """The bounds of an input, and these in words."""
    kind = BY_NAME[name].kind
    least = 1 if kind.what == "tokens" else kind.low
    return {
        "low": least,
        "high": kind.high,
        "is_whole": int(kind.what in ("whole", "tokens")),
        "is_share": int(kind.what == "share"),
        "words": str(replace(kind, low=least)),
    }


def _every_model(catalog: Catalog, plain: Question) -> Iterator[SheetModel]:
    """All models but drafts, which serve nothing by themselves, and models that the engine does not load."""
    for model in catalog.models():
        with contextlib.suppress(ScenarioError):
            yield from models_named(catalog, {"models": model.id}, plain.engine)


def _models(catalog: Catalog, plain: Question, names: Sequence[str]) -> list[SheetModel]:
    """The models named, or all, at what is published, each once."""
    named = (model for name in names for model in models_named(catalog, {"models": name}, plain.engine))
    models = named if names else _every_model(catalog, plain)
    return list({sheet_model.model.id: sheet_model for sheet_model in models}.values())


def _starts(catalog: Catalog, plain: Question) -> Json:
    """vLLM's words for the precisions of its cache; nothing of another engine."""
    if plain.engine.engine != "vllm":
        return None
    launcher = _launcher(catalog, plain)
    remarked = (
        word
        for remark in launcher.remarks
        if remark.flags
        for condition in remark.when
        if condition.fact == "architecture"
        for word in condition.is_one_of
    )
    return {
        "kv": dict(launcher.kv_cache_dtypes),
        "wide": launcher.kv_cache_16_bits,
        "remarked": list(dict.fromkeys(remarked)),
    }


def _launcher(catalog: Catalog, plain: Question) -> Launcher:
    return next(launcher for launcher in catalog.file(StackFile).launchers if launcher.engine == plain.engine.engine)


def _run(catalog: Catalog, plain: Question) -> Json:
    """The precisions that the engine loads weights and keeps a cache in."""
    launcher = _launcher(catalog, plain)
    return {
        "weights": [dtype for dtype in DTYPES if dtype in launcher.weight_dtypes],
        "kv": [dtype for dtype in DTYPES if dtype in launcher.kv_cache_dtypes],
        "deploys": loads_weights(catalog, plain.engine.engine, DEPLOYED),
    }


def _plain(column: Any) -> Any:
    """A column as JSON has it: texts as they are, whole numbers without a point, none as null."""
    if numpy.asarray(column).dtype == object:
        return list(column)
    value = numpy.asarray(column, float)
    flat = [
        None if math.isnan(number) else int(number) if number == int(number) else number
        for number in numpy.ravel(value).tolist()
    ]
    return flat if numpy.ndim(value) else flat[0]


def _same(column: Column, other: Column) -> bool:
    """True where two columns of the same axes and name hold the same."""
    if not isinstance(column, numpy.ndarray):
        return bool(column == other or (column != column and other != other))
    if column.dtype != object and (column.dtype, column.shape) == (other.dtype, other.shape):
        return bool(column.tobytes() == other.tobytes())
    return bool(_plain(column) == _plain(other))


def _given(grid: Grid) -> dict[Key, Column]:
    """The columns of a grid that do not depend on the loads or machines of a question."""
    return {
        (axes, name): column
        for name, columns in grid.columns.items()
        for axes, column in columns
        if OF_QUESTION.isdisjoint(axes)
    }


def _columns(whole: Question, models: Sequence[SheetModel]) -> tuple[list[Json], list[Json], list[list[int]]]:
    """The columns of the first model, by axes and name; the columns that differ from these in each variant; and by
    model its variants, with a cache in its own precision and in FP8."""
    base: dict[Key, Column] = {}
    variants = dict[str, int]()
    of_models = list[list[int]]()
    engines = list[Engine]()
    for entry in models:
        own_engine = whole.engine.for_models([entry.model.entry_id])
        if own_engine not in engines:
            engines.append(own_engine)
        engine = engines[engines.index(own_engine)]  # the same object: what is worked out of it is kept
        of_model = list[int]()
        for kv in dict.fromkeys((entry.auto_kv_cache_dtype, FP8)):
            asked = replace(whole, models=(replace(entry, kv_cache_dtype=kv),), engine=engine)
            given = {key: column for key, column in _given(grid_of(asked, (), ())).items() if "model" not in key[0]}
            base = base or given
            differences = [[*key, _plain(column)] for key, column in given.items() if not _same(column, base[key])]
            of_model.append(variants.setdefault(as_text(differences), len(variants)))
        of_models.append(of_model)
    return [[*key, _plain(column)] for key, column in base.items()], [json.loads(text) for text in variants], of_models


def _of_models(whole: Question, models: Sequence[SheetModel]) -> Json:
    """The columns of the models by name, a single number where all models have the same; columns that depend on the
    precision of the weights are listed by precision."""

    def columns(dtype: str) -> dict[str, Any]:
        asked = replace(whole, models=tuple(replace(entry, weight_dtype=dtype) for entry in models))
        given = _given(grid_of(asked, (), ()))
        return {name: _plain(column) for (axes, name), column in given.items() if axes == ("model",)}

    def short(values: list[Any]) -> Any:
        return values[0] if len(set(values)) == 1 else values

    by_dtype = {dtype: columns(dtype) for dtype in PRECISIONS}
    first = by_dtype[PRECISIONS[0]]
    differ = [name for name in first if any(columns_of[name] != first[name] for columns_of in by_dtype.values())]
    return {
        "columns": {name: short(values) for name, values in first.items() if name not in differ},
        "by_weights": {
            name: {dtype: short(columns_of[name]) for dtype, columns_of in by_dtype.items()} for name in differ
        },
    }


def _hosted(place: int, model: Model, plain: Question) -> Iterator[Json]:
    """The live prices of the hosts of a model, under the names of the record. place: the index of the model."""
    file = plain.reference.hosted
    for price in plain.live_hosts(model):
        yield {
            "place": place,
            "host": price.host,
            "name": file.host_name(price.host),
            **{name: getattr(price, name) for name in OF_HOST},
            "read_on": file.day_of(price),
        }


def _model(entry: SheetModel) -> Json:
    """A model: its names, its precisions, and its checkpoints."""
    model = entry.model
    checkpoints = model.checkpoint_ids
    names = dict.fromkeys((*model.aliases, *(name for name in (model.hf_id,) if name)))
    return {
        "id": model.id,
        "name": model.name,
        "names": list(names),
        "kind": MODEL_KINDS.index(model_kind(model)),
        "weights": entry.auto_weight_dtype,
        "kv": entry.auto_kv_cache_dtype,
        "deploys": int(has_deployed(model, entry.auto_weight_dtype)),
        "experts": int(model.experts is not None),
        "is_reference": int(model.is_reference_shape),
        "limit": model.max_context_tokens or 0,
        "checkpoints": checkpoints,
        "blocks": {
            dtype: width
            for dtype in dict.fromkeys((model.weight_dtype, *checkpoints))
            if (width := model.blocks_width(_checkpoint_id(model, dtype), dtype))
        },
        "licenses": dict(_licenses(model, checkpoints)),
        "weights_names": {
            dtype: name for dtype in checkpoints if (name := weights_name(model, dtype)) != dtype.upper()
        },
        "is_named": int(model.hf_id is not None),  # by its Hugging Face id, the last of its names
    }


def _licenses(model: Model, dtypes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """By precision the licence of the weights, where it is known."""
    if model.license:
        yield model.weight_dtype, model.license
    for dtype in dtypes:
        checkpoint = model.checkpoint(dtype)
        if dtype != model.weight_dtype and checkpoint and (own := model.license_of(checkpoint)):
            yield dtype, own


def _checkpoint_id(model: Model, weight_dtype: str) -> str | None:
    """The checkpoint that a launch names in a precision."""
    checkpoint = model.checkpoint(weight_dtype)
    return model.hf_id if weight_dtype == model.weight_dtype or checkpoint is None else checkpoint.hf_id


def _source_of(entry: SheetModel) -> str:
    """The source of a model's shape."""
    return sources_of([entry], (), ())[0].text


def _owned(plain: Question, gpus: tuple[Gpu, ...]) -> list[OwnedGpu]:
    owned = {**owning_of(plain.reference.catalog, plain.options, gpus).gpus, **plain.owning.gpus}
    return [owned.get(gpu.id, OwnedGpu()) for gpu in gpus]


def _gpu(gpu: Gpu, owned: OwnedGpu) -> Json:
    return {
        "id": gpu.id,
        "name": gpu.short_name,
        "vendor": gpu.vendor,
        "architecture": gpu.architecture,
        "deploys": int(DEPLOYED in gpu.weights_run),
        "memory_bytes": gpu.memory.engine_bytes,
        "own": [
            owned.capex_usd[1] if owned.capex_usd else None,
            owned.is_module_price,
            owned.stated_kw_per_gpu,
            owned.rated_watts,
            owned.is_it_power,
            owned.sold_together,
        ],
    }


class _Market:
    """Machines and prices, numbered as they come: lists of them by region and purchase class."""

    def __init__(self, catalog: Catalog, plain: Question) -> None:
        self.gpus = dict[str, Gpu]()
        self._machines = dict[str, tuple[int, Candidate]]()
        self._offers = dict[tuple[Any, ...], int]()
        self._lists = dict[tuple[int, ...], int]()
        self._parts = dict[str, int]()  # of sources
        self._sources = dict[tuple[int, ...], int]()
        self._plain, self._discount = plain, cache(plain.discount)
        areas = dict.fromkeys(("", *catalog.regions.areas, plain.filters.region))
        self._regions = {area: self._region(catalog, area) for area in areas}

    def as_json(self) -> Json:
        """Machines, their prices, lists of prices, and by region and purchase class the number of its list."""
        gpus = list(self.gpus)
        return {
            "machines": [
                [
                    machine.instance,
                    machine.provider,
                    gpus.index(machine.gpu.id),
                    machine.gpu_count,
                    machine.network_gbps,
                    machine.nvlink_domain_gpus,
                    [
                        place
                        for place, layout in enumerate(LAYOUTS)
                        if layout.n_gpus <= machine.linked_gpus
                        and (layout.data_parallel_size == 1 or machine.tries_ranks)
                    ],
                    int(machine.assumed_shape),
                ]
                for _, machine in self._machines.values()
            ],
            "offers": [list(offer) for offer in self._offers],
            "lists": [list(places) for places in self._lists],
            "regions": self._regions,
            "sources": [list(parts) for parts in self._sources],
            "parts_of_sources": list(self._parts),
            "providers": {machine.provider: provider_name(machine.provider) for _, machine in self._machines.values()},
        }

    def _region(self, catalog: Catalog, area: str) -> Json:
        """By purchase class the lists of a region. Each class has the machines that take part by default, and where
        providers are named, each by the class that is shown; then whole machines, machines of other vendors, and where
        GPUs were named machines of others."""
        return {purchase: self._lists_of(catalog, area, purchase) for purchase in PURCHASES}

    def _lists_of(self, catalog: Catalog, area: str, purchase: str) -> Json:
        """The lists of a region and a purchase class, as `_region` names them."""
        plain, filters = self._plain, replace(self._plain.filters, region=area, purchase=purchase)
        if plain.overrides:  # what was typed over holds for the sheet's own machines
            of_vendors, of_clouds, of_providers, of_gpus = plain.beyond
            own = plain.candidates, plain.others
            return self._listed(purchase, (own, own), (*of_clouds, *of_providers), of_vendors, of_gpus)
        usual, named = (
            OfMarket(catalog, plain.engine, replace(filters, providers=providers)) for providers in ((), (ALL,))
        )
        classes = [(market.candidates, market.others) for market in (usual, named)]
        return self._listed(purchase, classes, named.whole, named.of_other_vendors, named.of_other_gpus)

    def _listed(self, purchase: str, classes: Iterable[Classes], *beyond: Iterable[Candidate]) -> Json:
        """The numbers of lists: for each of `classes` by purchase class, then of the candidates `beyond`."""
        by_class = (
            {
                shown_class: self._list(
                    candidates
                    if shown_class == purchase
                    else in_class(candidates, others.get(shown_class, ()), shown_class)
                )
                for shown_class in PURCHASES
            }
            for candidates, others in classes
        )
        return [*by_class, *map(self._list, beyond)]

    def _list(self, candidates: Iterable[Candidate]) -> int:
        """The number of a list of candidates; a new one is added."""
        places = tuple(map(self._offer, candidates))
        return self._lists.setdefault(places, len(self._lists))

    def _offer(self, candidate: Candidate) -> int:
        """The number of a candidate's offer, its machine and its price; a new one is added."""
        self.gpus.setdefault(candidate.gpu.id, candidate.gpu)
        place, _ = self._machines.setdefault(candidate.instance, (len(self._machines), candidate))
        discount, plain = self._discount(candidate.provider, candidate.purchase), candidate.class_price(ON_DEMAND)
        on_demand_usd = 0.0  # of an offer on demand, and where there is none beside it
        if plain and candidate.purchase != ON_DEMAND:
            on_demand_usd = plain.usd_per_hour * (1 - self._discount(candidate.provider, ON_DEMAND))
        parts = tuple(
            self._parts.setdefault(part, len(self._parts)) for part in candidate.source.split(BETWEEN_SOURCES)
        )
        source = self._sources.setdefault(parts, len(self._sources))
        offer = (
            place,
            candidate.usd_per_hour,
            candidate.region,
            candidate.price_as_of,
            source,
            discount,
            on_demand_usd,
        )
        return self._offers.setdefault(offer, len(self._offers))
