"""Models x workloads x tiers on candidates: the question that a sheet answers, completed with its defaults."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from sheetgen.catalog.base import Loc
from sheetgen.catalog.engines import Engine, SpeedFile, load_engine
from sheetgen.catalog.hardware import MOST_WORKLOADS, Gpu, Workload
from sheetgen.catalog.hosted import HostedPrice
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Checkpoint, Model
from sheetgen.catalog.stacks import StackFile
from sheetgen.errors import Problems, ScenarioError, shown
from sheetgen.importer.model_names import place_of_model, resolve_model
from sheetgen.question import overrides as typed
from sheetgen.question import parse
from sheetgen.question.deployment import (
    DEFAULTS,
    Reference,
    at_weights,
    default_answer,
    draft_model,
    engine_defaults,
)
from sheetgen.question.discounts import Discounts, discounts_of, in_force, in_general
from sheetgen.question.inputs import BY_NAME, OF_SETTINGS, OF_WORKLOAD, OPTION_GROUPS, Settings, asked_in
from sheetgen.question.market import Candidate, Filters, Owning, is_sold, not_asked, not_bound, owning_of, select
from sheetgen.question.measurements import (
    NOTHING_MEASURED,
    Measurements,
    Served,
    asked_once,
    measurements_of,
    refuse_factors,
    split_used,
)
from sheetgen.question.parse import Options, Raw, name_part
from sheetgen.question.precision import recommended_weights
from sheetgen.question.stated_load import BY_DAY, Rate, mean_over_peak, rate_of, requests_at_once, users_of
from sheetgen.sizing import targets
from sheetgen.sizing.parallelism import ZONE
from sheetgen.sizing.speed import cached_fraction
from sheetgen.units import AUTO, DTYPES, LAYOUTS, ON_DEMAND, PLAIN_LAYOUTS, PUBLISHED, RECOMMENDED, UNQUANTIZED, Layout


def settings_of(options: Options, engine: Engine | None) -> Settings:
    """The settings from the options of `build`; those not given have the engine's default or ours.

    Raises ScenarioError with every problem.
    """
    of_engine = engine_defaults(engine) if engine else {}
    problems = Problems()
    values: dict[str, Raw] = {}
    for setting in OF_SETTINGS:
        given = None if setting.name in typed.SETTINGS else options.get(setting.asked_as)
        given = in_general(given) if setting.name == "discount_fraction" else given
        parsed = problems.attempt(setting.parse, given)
        values[setting.name] = of_engine.get(setting.name, setting.default) if parsed is None else parsed
    by_day = any(options.get(name) is not None for name in BY_DAY) and options.get("active_fraction") is None
    if by_day and options.get("utilization") is None:
        values["utilization"] = mean_over_peak(values["peak_hour_share"], values["burst_factor"])
    settings, has_rate = Settings(**values), options.get("fx_rate") is not None
    if settings.currency != "USD" and not has_rate:
        problems.append(
            f"currency is {settings.currency!r}, but no fx_rate is given. "
            "Add --fx-rate, such as 0.92: how many of it one USD is."
        )
    if has_rate and settings.currency == "USD" and settings.fx_rate != 1:
        problems.append(f"fx_rate is {settings.fx_rate:g}, but currency is USD, whose rate is 1. Name the currency.")
    if problems:
        raise ScenarioError(*problems)
    return settings


OFF = "off"
TARGETS = {"tpot_ms": "tpot_target_ms", "ttft_ms": "ttft_target_ms"}  # option: field of a workload
_EXAMPLES = {
    **dict.fromkeys(
        TARGETS,
        "Write milliseconds from 0.01 to 3,600,000, or off, for all workloads or by name: 50, or chat=40,rag=off.",
    ),
    **{
        name: f"Write {BY_NAME[name].kind}, for all workloads or by name, such as {option.pairs}."
        for name in OF_WORKLOAD
        if (option := BY_NAME[name].option)
    },
}


def workloads_of(catalog: Catalog, options: Options) -> tuple[Workload, ...]:
    """The workloads requested, or the catalog's default ones, at the contexts requested.

    Raises ScenarioError for a name that is none, and for more than three.
    """
    by_id = {w.id: w for w in catalog.workloads()}
    names = parse.words(options.get("workloads")) or tuple(w.id for w in by_id.values() if w.is_default)
    chosen = tuple(by_id[parse.one_of(name, "workload", by_id)] for name in names)
    if len({w.id for w in chosen}) != len(chosen) or len(chosen) > MOST_WORKLOADS:
        raise ScenarioError(f"workloads are {shown(','.join(names))!r}. Name up to three, each once.")
    wanted: dict[str, int] = {}  # the answer's length stays, the prompt takes the rest
    for pair in parse.words(options.get("contexts")):
        name, equals, length = pair.partition("=")
        if not equals:
            raise ScenarioError(f"contexts has {shown(pair)!r}. Write a workload and its tokens, such as rag=32k.")
        workload = parse.one_of(name, "contexts", {w.id: w for w in chosen})
        if workload in wanted:
            raise ScenarioError(f"contexts names {workload} twice. Keep one.")
        wanted[workload] = parse.tokens(length, f"context of {workload}")
    return tuple(sized(w, wanted.get(w.id, w.context_tokens), w.output_tokens) for w in chosen)


class _WithContext(Workload):
    """A workload whose input and output do not make up its context: they leave a part of it unused, or do not fit in
    it, until `ask` sees that."""

    context: int

    @property
    def context_tokens(self) -> int:
        return self.context


def sized(workload: Workload, context: int, answer: int, prompt: int | None = None) -> Workload:
    """`workload` with this context and answer; the prompt takes what the answer leaves, or less where it is stated."""
    rest = max(0, context - answer)
    fields = {"input_tokens": rest if prompt is None else min(prompt, rest), "output_tokens": answer}
    if answer <= context and prompt is None:
        return workload.model_copy(update=fields)
    return _WithContext.model_construct(**{**dict(workload), **fields, "context": context})


def headline_of(text: str | None, workloads: tuple[Workload, ...], tiers: tuple[int | None, ...]) -> tuple[int, int]:
    """Positions of the headline's workload and tier. The workload is RAG, else the first. The tier is the rate where
    one was asked for, else 32 at once, else the middle tier (the lower of two); one past the last where the headline
    names a number that is no tier.
    """
    ids = [w.id for w in workloads]
    usual = next((tiers.index(tier) for tier in (None, 32) if tier in tiers), (len(tiers) - 1) // 2)
    if not text:
        return ids.index("rag") if "rag" in ids else 0, usual
    name, colon, _ = str(text).partition(":")
    workload = parse.one_of(name, "headline", tuple(ids))
    number = headline_number(text) if colon else tiers[usual]
    return ids.index(workload), tiers.index(number) if number in tiers else len(tiers)


def headline_number(text: str | None) -> int | None:
    """The requests at once that a headline names, even where they are no tier; None where it names a workload."""
    _, colon, tier = str(text or "").partition(":")
    return parse.whole(tier, "headline tier", most=MOST_TYPED) if colon else None


ASKED = "asked"  # the workload of the user's own load
OF_ASKED = ("context_tokens", "input_tokens", "output_tokens")


def one_workload(catalog: Catalog, options: Options) -> tuple[Workload]:
    """The workload behind `context_tokens`, `input_tokens` and `output_tokens`, split as in `size`."""

    def given(name: str, least: int = 0) -> int | None:
        value = options.get(name)
        if value is None:
            return None
        return 0 if str(value).strip() == "0" and least == 0 else parse.tokens(value, name)

    context = given("context_tokens", 1) or int(DEFAULTS["context_tokens"])
    prompt, answer = given("input_tokens"), given("output_tokens")
    if answer is None:
        answer = int(default_answer(context, ())) if prompt is None else context - prompt
    prompt = context - answer if prompt is None else prompt
    if min(prompt, answer) < 0 or prompt + answer > context:
        raise ScenarioError(
            f"input_tokens and output_tokens do not fit in the context of {context:,} tokens. Together they "
            f"may be {context:,} at most."
        )
    words = f"{context:,} tokens of context"
    return (
        _WithContext.model_construct(
            id=ASKED,
            name=words,
            input_tokens=prompt,
            output_tokens=answer,
            about=words,
            source="the question",
            context=context,
        ),
    )


OF_WORKLOADS = {**TARGETS, **{name: name for name in OF_WORKLOAD}}  # option: field of a workload
Stated = Mapping[str, Mapping[str, float | None]]  # by option and workload; None for a target that is off


def stated_of(workloads: Sequence[Workload], options: Options) -> Stated:
    """The targets, requests per person and histories that options state, or the workloads' own. Raises ScenarioError
    for a value that cannot be read."""
    stated: dict[str, dict[str, float | None]] = {}
    for option, own in OF_WORKLOADS.items():
        entries = {w.id: ms for w in workloads if (ms := getattr(w, own, None)) is not None}
        typed_in = _stated(options.get(option), option, workloads)
        of_all = {w.id: typed_in[""] for w in workloads if "" in typed_in}
        stated[option] = {**entries, **of_all, **{key: ms for key, ms in typed_in.items() if key}}
    return stated


def with_stated(
    workloads: Sequence[Workload], stated: Stated, settings: Settings, reference: Reference
) -> tuple[Workload, ...]:
    """The workloads with the stated requests per person and history, and with the targets in force: as stated, else as
    they follow from context and prompt."""
    assumed = {name: reference.assumption(name) for name in targets.ASSUMED}

    def in_force(workload: Workload) -> dict[str, float | None]:
        lengths = {name: getattr(workload, name) for name in ("context_tokens", "input_tokens")}
        own = {option: stated[option].get(workload.id) for option in OF_WORKLOAD}
        cached = {"cached_fraction": cached_fraction.of({**vars(settings), **own})}
        defaults = (formula.of({**assumed, **lengths, **cached}) for formula in targets.DEFAULTS)
        of_time = {
            own: stated[option].get(workload.id, default)
            for (option, own), default in zip(TARGETS.items(), defaults, strict=True)
        }
        return {**of_time, **own}

    return tuple(workload.model_copy(update=in_force(workload)) for workload in workloads)


def _stated(text: object, option: str, workloads: Sequence[Workload]) -> dict[str, float | None]:
    """By workload ("" for all), the value stated for it; None for a target that is off."""
    if text is None:
        return {}
    kind, by_workload = BY_NAME[option].kind, dict[str, float | None]()
    for part in parse.words(str(text)):
        name, equals, value = (word.strip() for word in part.rpartition("="))
        key = parse.one_of(name, option, {w.id: w for w in workloads}) if equals else ""
        if key in by_workload:
            raise ScenarioError(f"{option} is {shown(text)!r}, which says {key or 'all workloads'} twice. Keep one.")
        by_workload[key] = number = None if value.lower() == OFF and option in TARGETS else kind.number(value)
        if number is not None and not kind.takes(number):
            raise ScenarioError(f"{option} is {shown(part)!r}. {_EXAMPLES[option]}")
    if not by_workload:
        raise ScenarioError(f"{option} is {shown(text)!r}. {_EXAMPLES[option]}")
    return by_workload


MEASURED = "measured"  # the option
MOST_TYPED = 1_000_000  # requests at once of a load
MAX_PIPELINE_PARALLEL_SIZE = 4  # machines that one replica spans
MAX_MODELS = 8
OF_PAGE = tuple(BY_NAME[name] for name in ("together", "title", "owner", "approver", "valid_until", "pages"))
SHEET_OPTIONS = tuple(entry.asked_as for entry in asked_in("sheet"))
OPTIONS = tuple(entry.asked_as for entry in asked_in(*OPTION_GROUPS))  # what `ask` reads beside them, and for one load


@dataclass(frozen=True)
class SheetModel:
    """A model on the sheet, and the precisions that `published`, `auto` and `recommended` stand for.

    checkpoint_named: the id of the checkpoint, where the model was named by it.
    """

    model: Model
    weight_dtype: str
    kv_cache_dtype: str
    auto_weight_dtype: str
    auto_kv_cache_dtype: str
    recommended_weight_dtype: str
    checkpoint_named: str | None = None

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The listed checkpoint whose weights are in use, where somebody quantized them after they were published; None
        for the published weights, and where none is known."""
        if self.checkpoint_named is not None:
            low, is_used = self.checkpoint_named.lower(), self.weight_dtype == self.auto_weight_dtype
            named = (c for c in self.model.checkpoints if is_used and (c.hf_id or "").lower() == low)
            return next(named, None)
        is_published = self.weight_dtype == self.model.weight_dtype
        return None if is_published else self.model.checkpoint(self.weight_dtype)

    @property
    def served_as(self) -> str | None:
        """The Hugging Face id of the weights in use; None where none is known. Weights of 16 bits are read as any."""
        if self.checkpoint_named is not None:
            return self.checkpoint_named if self.weight_dtype == self.auto_weight_dtype else None
        is_wide = {self.weight_dtype, self.model.weight_dtype} <= set(UNQUANTIZED)
        if is_wide or self.weight_dtype == self.model.weight_dtype:
            return self.model.hf_id
        return self.checkpoint.hf_id if self.checkpoint else None

    @property
    def as_published(self) -> SheetModel | None:
        """The same model with the weights that were published; None where these are in use."""
        is_same = self.weight_dtype == self.auto_weight_dtype
        return None if is_same else replace(self, weight_dtype=self.auto_weight_dtype)


@dataclass(frozen=True)
class Load:
    """One load: a model, a workload and the requests at once, which follow where it is a rate.

    users: people, where the load was stated as people, some of whom may wait at the same moment.
    """

    model: int
    workload: int
    tier: int
    context_tokens: int
    input_tokens: int
    concurrent_requests: float
    over_limit: bool
    requests_per_second: float = 0.0  # at peak; 0 where the requests at once were stated
    users: int | None = None

    @property
    def requests(self) -> int:
        """Whole requests at once."""
        return math.ceil(self.concurrent_requests)


DeclinedReason = Literal["unsold", "not_held", "even_chance", "no_saving"]


@dataclass(frozen=True)
class DeclinedClass:
    """A purchase class that was requested and is no answer, so that the load is answered on demand.

    reason: no instance has a price in it (`unsold`), nothing sold in it holds the load (`not_held`), it binds money and
    serves the load at an even chance alone (`even_chance`), or it costs no less (`no_saving`). monthly_usd: none where
    it has no answer. unpriced, instances: how many of the instances sold on demand have no price in it.
    """

    purchase: str
    reason: DeclinedReason
    monthly_usd: float | None
    unpriced: int
    instances: int


@dataclass(frozen=True)
class Question:
    """All that a sheet needs to be answered."""

    models: tuple[SheetModel, ...]
    workloads: tuple[Workload, ...]
    tiers: tuple[int | None, ...]  # requests at once; None is the rate
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
    options: Options = field(default_factory=dict)  # as they were given
    overrides: typed.Overrides = field(default=typed.Overrides())
    others: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)  # see `Selected`
    rows: tuple[Candidate, ...] = ()  # the catalog's instances as a workbook lists them: candidates of every class
    beyond: tuple[tuple[Candidate, ...], ...] = ()  # what the defaults leave out: see `market.not_asked`
    unbound: tuple[Candidate, ...] = ()  # of others on demand, where the class binds: see `market.not_bound`
    rate: Rate | None = None
    draft: Model | None = None  # drafts for each of the models
    typed: int | None = None  # requests at once of the headline, where they are no tier: it has loads of its own
    ask: int | None = None  # position of the model that is to be approved; none: each
    discounts: Discounts = field(default_factory=dict)  # beside that of the settings
    stated: Stated = field(default_factory=dict)
    doubted: tuple[tuple[str, str], ...] = ()  # instances of which a price takes no part, as it is implausible: and why
    declined: DeclinedClass | None = None
    measurements: Measurements = NOTHING_MEASURED
    n_there: int = 0  # the last so many candidates would be none if the user had no such machines

    @property
    def catalog_sha256(self) -> str:
        return self.reference.sha256

    @cached_property
    def instances(self) -> dict[str, Candidate]:
        """Every instance that an answer may name, in any class: candidates, and those that took no part."""
        elsewhere = itertools.chain.from_iterable((*self.beyond, *self.others.values()))
        return {candidate.instance: candidate for candidate in (*elsewhere, *self.candidates)}

    def recommended_weights(self, model: Model) -> str:
        """The weights recommended for a model of the catalog on the GPUs that take part."""
        gpus = {candidate.gpu.id: candidate.gpu for candidate in self.candidates}.values()
        return recommended_weights(model, model.weight_dtype, self.engine, gpus, self.reference.catalog)

    def live_hosts(self, model: Model) -> tuple[HostedPrice, ...]:
        """The prices of hosts of a model that an answer may name on the day of the sheet."""
        days = self.reference.assumption("stale_host_after_days")
        return self.reference.hosted.live(model.hosted_id, self.as_of, days)

    def model_of(self, row: int) -> SheetModel:
        """The model of a load, in its precisions."""
        return self.models[self.loads[row].model]

    def workload_of(self, row: int) -> Workload:
        return self.workloads[self.loads[row].workload]

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The ways in which a replica's GPUs may share its work, data-parallel layouts included where a model has
        experts."""
        return LAYOUTS if any(m.model.experts for m in self.models) else PLAIN_LAYOUTS

    @property
    def has_latent_entries(self) -> bool:
        """True where a model's checkpoint has latents that an engine may keep in its own kind of FP8 entries."""
        return any(getattr(g, "fp8_entry_bytes", 0) for m in self.models for g in m.model.attention)

    @property
    def is_use_of_load(self) -> bool:
        """True where the utilization follows from how a rate is stated: nobody states it itself."""
        return self.rate is not None and self.options.get("utilization") is None

    @property
    def fp8_remarks(self) -> list[str]:
        """A sentence for each model whose KV cache the engine by itself keeps in FP8 on some of the GPUs."""
        is_auto = self.settings.kv_cache_dtype == "auto"
        wider = (sheet.model for sheet in self.models if is_auto and sheet.kv_cache_dtype != "fp8")
        remarks = (self.engine.fp8_remark(model.entry_id, model.name, self.gpus) for model in wider)
        return [remark for remark in remarks if remark]

    @property
    def states_prompt(self) -> bool:
        """True where the prompt of a load of the user's own is stated: memory then is for its context, and times are of
        shorter requests."""
        return self.options.get("input_tokens") is not None

    @property
    def numbers(self) -> tuple[int | None, ...]:
        """Requests at once by a load's tier: those of the tiers, and the headline's own where it is no tier."""
        return self.tiers if self.typed is None else (*self.tiers, self.typed)

    def discount(self, provider: str, purchase: str) -> float:
        """The discount on the prices of a provider in a purchase class, as a share."""
        return in_force(self.discounts, self.settings.discount_fraction, provider, purchase)

    @cached_property
    def paces(self) -> dict[tuple[int, int], int]:
        """The pairs of model and workload that loads have, each with its place: speed does not depend on the tier."""
        pairs = dict.fromkeys((load.model, load.workload) for load in self.loads)
        return {pair: place for place, pair in enumerate(pairs)}

    def pace(self, cell: Load) -> int:
        """The place of a load's pair of model and workload."""
        return self.paces[cell.model, cell.workload]


def ask(
    catalog: Catalog, options: Options, on_demand_where_unsold: bool = False, there: Sequence[Candidate] = ()
) -> Question:
    """The question that the options of `build` (by their long names with underscores) state.

    With `context_tokens` among them it is one load of the user's own, as `recommend` asks it. on_demand_where_unsold:
    ask on demand where no instance has a price in the class that was requested. there: machines that the user has.

    Raises ScenarioError or CatalogError with every problem found, one line each.
    """
    problems = Problems()
    attempt = problems.attempt
    engine = attempt(load_engine, catalog, options.get("engine") or "vllm", options.get("engine_version"))
    settings = attempt(settings_of, options, engine)
    models = attempt(models_named, catalog, options, engine)
    engine = engine and engine.for_models([named.model.entry_id for named in models or ()])
    draft = None
    if name := options.get("draft_model"):
        draft = attempt(draft_model, str(name), [named.model for named in models or ()], catalog)
        # The bands of memory are of runs without one.
        engine = engine and engine.model_copy(update={"calibrated": None})
        engine = engine and engine.drafting(catalog.file(StackFile).speculative_tokens)
    one_load = options.get("context_tokens") is not None
    workloads = attempt(one_workload if one_load else workloads_of, catalog, options)
    stated = attempt(stated_of, workloads, options) if workloads else None
    speed = attempt(catalog.file, SpeedFile)
    rate = attempt(rate_of, options)
    elsewhere = [name for name in (("workloads", "contexts") if one_load else OF_ASKED[1:]) if options.get(name)]
    for name in elsewhere:
        problems.append(
            f"{name} is given with context_tokens, which is a load of one's own. Keep one of them."
            if one_load
            else f"{name} is of a load of one's own, whose context_tokens are not given. Give them, or leave it out."
        )
    if one_load and settings and options.get("zones") is not None and settings.survive != ZONE:
        problems.append("zones is given, and counts only with survive zone. Add --survive zone, or leave it out.")
    at_once = attempt(requests_at_once, options, settings.active_fraction if settings else None)
    if options.get("tiers"):
        tiers = attempt(parse.tiers, options["tiers"])
        tiers = (*(tiers or ()), None) if rate else tiers
    elif one_load or rate:
        tiers = (at_once,)
    else:
        tiers = tuple(t.requests for t in catalog.tiers())
    providers = dict.fromkeys(row.provider for row in catalog.instances())
    less = attempt(discounts_of, options.get("discount_fraction"), providers)
    as_of = attempt(parse.as_of_date, options.get("as_of"))
    named = {name: parse.words(options.get(name)) for name in ("providers", "vendors", "gpus", "instances")}
    places = {name: i for i, name in enumerate(providers)}  # the sheet is the same in whatever order they are named
    named["providers"] = tuple(sorted(dict.fromkeys(named["providers"]), key=lambda name: places.get(name.lower(), -1)))
    purchase = settings.purchase if settings else ON_DEMAND
    filters, requested = Filters(**named, region=options.get("region") or "", purchase=purchase), purchase
    plain = replace(filters, purchase=ON_DEMAND)
    if on_demand_where_unsold and purchase != ON_DEMAND and engine and settings:
        is_sold_here, is_sold_plainly = (attempt(is_sold, catalog, engine, choice) for choice in (filters, plain))
        if is_sold_plainly and not is_sold_here:
            filters, purchase, settings = plain, ON_DEMAND, replace(settings, purchase=ON_DEMAND)
            options = {**options, "purchase": ON_DEMAND}
    selected = attempt(select, catalog, engine, filters, there) if engine else None
    candidates, left_out, others, rows, doubted, n_there = selected or ((), (), {}, (), (), 0)
    overrides = attempt(typed.read_overrides, options.get("typed"))
    by_id = {c.gpu.id: c.gpu for c in (*rows, *candidates)}
    if overrides:  # a user's own instance may have a GPU that nothing else offers
        own = {str(row.get("instance_gpu")).lower() for row in overrides[0].own_instances}
        by_id |= {gpu.id: gpu for gpu in catalog.gpus() if gpu.id.lower() in own and gpu.id not in by_id}
    owning = attempt(owning_of, catalog, options, tuple(by_id.values()))
    headline = attempt(headline_of, options.get("headline"), workloads, tiers) if workloads and tiers else None
    of_page = {entry.asked_as: attempt(entry.parse, options.get(entry.asked_as)) for entry in OF_PAGE}
    if as_of and (last := of_page["valid_until"]) and last < as_of.isoformat():
        problems.append(f"valid_until is {last}, before the day of the sheet, {as_of}. Give a later day, or --as-of.")
    to_approve = None
    if models and (name := options.get("ask")) is not None:
        to_approve = attempt(place_of_model, name, [m.model.id for m in models], "ask", catalog)
    if problems or workloads is None or headline is None or stated is None:
        raise ScenarioError(*dict.fromkeys(problems))
    gpus = {candidate.gpu.id: candidate.gpu for candidate in candidates}.values()
    models = tuple(at_settings(_with_recommended(model, engine, gpus, catalog), settings) for model in models)
    given = {name: value for name, value in options.items() if value is not None and name != "typed"}
    given |= {name: value for name, value in of_page.items() if name in given}
    given |= {"providers": ",".join(filters.providers)} if "providers" in given else {}
    question = Question(
        models,
        workloads,
        tiers,
        engine,
        tuple(by_id.values()),
        candidates,
        left_out,
        settings,
        as_of,
        headline,
        Reference(catalog),
        speed,
        (),
        filters,
        owning,
        given | {"as_of": as_of.isoformat()},  # so that a workbook asks the same on another day
        ask=to_approve,
        discounts=less or {},
        stated=stated,
        others=others,
        rows=rows,
        beyond=not_asked(catalog, engine, filters),
        unbound=not_bound(catalog, engine, filters),
        rate=rate,
        draft=draft and at_weights(draft, models[0].weight_dtype),
        doubted=doubted,
        n_there=n_there,
        declined=None
        if requested == purchase
        else DeclinedClass(requested, "unsold", None, len(candidates), len(candidates)),
    )
    question = _measured(question, catalog)
    question = _overridden(question, *overrides)
    in_force = with_stated(question.workloads, stated, question.settings, question.reference)
    question = replace(question, workloads=in_force)
    number = question.overrides.input("headline_tier", None) or headline_number(options.get("headline"))
    if number is None and users_of(options) and not rate:
        number = at_once
    if number is not None:
        tier = tiers.index(number) if number in tiers else len(tiers)
        question = replace(question, headline=(headline[0], tier), typed=None if number in tiers else number)
    # No room would be left for a prompt, and the hardware would be too cheap.
    too_long = [
        f"{w.id}: the answer of {w.output_tokens:,} tokens is longer than the context of {w.context_tokens:,}, which"
        " holds prompt and answer. Lengthen the context, or shorten the answer"
        f" (output_{name_part(w.id)} on Inputs, or of a scenario file's typed inputs)."
        for w in question.workloads
        if w.output_tokens > w.context_tokens
    ]
    if too_long:
        raise ScenarioError(*too_long)

    def load(m: int, w: int, t: int, requests: int | None) -> Load:
        workload = question.workloads[w]
        return Load(
            m,
            w,
            t,
            workload.context_tokens,
            workload.input_tokens,
            requests or 0,
            workload.context_tokens > (question.models[m].model.max_context_tokens or 0),
            rate.at_peak(question.settings, workload) if rate and requests is None else 0.0,
            users_of(options) if requests in (None, at_once) else None,
        )

    n_models, n_workloads = range(len(question.models)), range(len(question.workloads))
    loads = [load(m, w, *tier) for m in n_models for w in n_workloads for tier in enumerate(tiers)]
    if question.typed is not None:
        loads += [load(m, *question.headline, question.typed) for m in n_models]
    if all(c.over_limit for c in loads):
        longest = max(m.model.max_context_tokens or 0 for m in question.models)
        if one_load:
            asked, name = loads[0].context_tokens, models[0].model.id
            raise ScenarioError(
                f"context_tokens is {asked:,}, over the {longest:,} that {name} allows. Use {longest} or less."
            )
        raise ScenarioError(f"every context is over what the models allow (the longest is {longest:,} tokens).")
    return replace(question, loads=tuple(loads))


def _measured(question: Question, catalog: Catalog) -> Question:
    """`question` with the measurements of its options; each point is written out, whatever file it was read from.

    Raises ScenarioError for a file that cannot be read, and for a point whose deployment nobody says.
    """
    if question.options.get(MEASURED) is None:
        return question
    from sheetgen.measured.read_measured import read_measured, written_out

    readings = read_measured(question.options[MEASURED], catalog)
    if not readings:
        return question
    refuse_factors(question.options, readings)
    engine, settings = question.engine, question.settings
    of_candidates = dict.fromkeys(candidate.gpu.id for candidate in question.candidates)
    deployments = [
        Served(model.model.id, gpu, engine.engine, model.weight_dtype, layout.tensor_parallel_size, 1, layout[1])
        for model in question.models
        for gpu in of_candidates
        for layout in question.layouts
    ]
    settled = {"engine_version": engine.default_version, "draft_model": question.draft and question.draft.id}
    if settings.kv_cache_dtype != "auto":
        settled["kv_cache_dtype"] = settings.kv_cache_dtype
    measurements = measurements_of(readings, asked_once(deployments), settled, catalog)
    # Measurements that differ only in the weights' precision set times and memory of answers at that precision.
    used = {served for served in deployments if measurements.of(served)}
    requested = {served._replace(weight_dtype="") for served in deployments}
    kept = tuple(served for served in measurements.deployments if served.served._replace(weight_dtype="") in requested)
    return replace(
        question,
        measurements=replace(split_used(measurements, used, deployments), deployments=kept),
        options={**question.options, MEASURED: written_out(readings)},
    )


def _overridden(question: Question, overrides: typed.Overrides, where: Callable[[Loc], str]) -> Question:
    """`question` with its overrides applied.

    Raises ScenarioError for a row or an input that the sheet does not have, and where nothing can be rented then.
    """
    if not overrides:
        return question
    allowed = {
        "inputs": typed.input_names(question.workloads),
        "models": (m.model.id for m in question.models),
        "gpus": (g.id for g in question.gpus),
        "instances": (c.instance for c in question.rows),
        "precisions": DTYPES,
    }
    problems = list(typed.unknown_keys(overrides, allowed, where))
    overrides = overrides.spelled((g.id for g in question.gpus), (c.instance for c in question.rows))
    gpus = {g.id: typed.overridden_gpu(g, overrides.gpus.get(g.id, {})) for g in question.gpus}
    candidates = tuple(typed.overridden_candidates(question.rows, gpus, overrides))
    if not candidates:
        problems.append(f"{where(())}no instance is left to choose from: none has a price above 0. Give one a price.")
    if problems:
        raise ScenarioError(*problems)

    def model(sheet_model: SheetModel) -> SheetModel:
        row = overrides.models.get(sheet_model.model.id, {})
        precisions = {"own_weight_dtype": "auto_weight_dtype", "own_kv_dtype": "auto_kv_cache_dtype"}
        precisions["recommended_weight_dtype"] = "recommended_weight_dtype"
        changes = {field: row[column] for column, field in precisions.items() if column in row}
        changed = replace(sheet_model, model=typed.overridden_model(sheet_model.model, row), **changes)
        return at_settings(changed, question.settings)

    def workload(asked: Workload) -> Workload:
        answer, prompt = (overrides.input(f"{length}_{name_part(asked.id)}", None) for length in ("output", "prompt"))
        if answer is None and prompt is None:
            return asked
        stated = asked.input_tokens if prompt is None and question.states_prompt else prompt
        return sized(asked, asked.context_tokens, asked.output_tokens if answer is None else answer, stated)

    of_settings = {name: value for name, value in overrides.inputs.items() if name in typed.SETTINGS}
    return replace(
        question,
        models=tuple(map(model, question.models)),
        workloads=tuple(map(workload, question.workloads)),
        engine=question.engine.with_columns(overrides.inputs),
        gpus=tuple(gpus.values()),
        candidates=candidates,
        settings=replace(question.settings, **of_settings),
        owning=typed.overridden_owning(question.owning, overrides),
        options={**question.options, "typed": overrides.data()},
        overrides=overrides,
        beyond=tuple(
            tuple(replace(candidate, gpu=gpus.get(candidate.gpu.id, candidate.gpu)) for candidate in group)
            for group in question.beyond
        ),
    )


def at_settings(model: SheetModel, settings: Settings) -> SheetModel:
    """A model in the precisions of the settings, or in those that they stand for."""
    weights = {PUBLISHED: model.auto_weight_dtype, RECOMMENDED: model.recommended_weight_dtype}
    return replace(
        model,
        weight_dtype=weights.get(settings.weight_dtype, settings.weight_dtype),
        kv_cache_dtype=model.auto_kv_cache_dtype if settings.kv_cache_dtype == AUTO else settings.kv_cache_dtype,
    )


def sheet_model(model: Model, recommended_weight_dtype: str, settings: Settings) -> SheetModel:
    """A model of the catalog at the precisions of the settings."""
    own = model.weight_dtype, model.kv_cache_dtype
    return at_settings(SheetModel(model, *own, *own, recommended_weight_dtype), settings)


def _with_recommended(model: SheetModel, engine: Engine, gpus: Collection[Gpu], catalog: Catalog) -> SheetModel:
    """A model with the weights recommended on these GPUs; a checkpoint that the user named is kept."""
    own = model.auto_weight_dtype
    named = model.checkpoint_named is not None
    dtype = own if named else recommended_weights(model.model, own, engine, gpus, catalog)
    return replace(model, recommended_weight_dtype=dtype)


def models_named(catalog: Catalog, options: Options, engine: Engine | None) -> tuple[SheetModel, ...]:
    """The models named, in their own precisions."""
    names = parse.words(options.get("models"))
    if not names:
        raise ScenarioError("no model was named. Use --models, for example --models 8b,70b,405b.")
    if len(names) > MAX_MODELS:
        raise ScenarioError(f"{len(names)} models were named; one page holds at most {MAX_MODELS}.")
    problems = Problems()
    chosen: list[SheetModel] = []
    for name in names:
        model, named_dtype = problems.attempt(resolve_model, name, catalog) or (None, None)
        if model is not None and model.kind == "draft":
            problems.append(f"model {model.id} is a draft of another model and serves nothing by itself.")
        elif model is not None and engine and (foreign := model.foreign_format(model.weight_dtype)):
            problems.append(f"model {model.id}: {engine.name} {foreign}. `size` has its memory.")
        elif model is not None:
            kv = engine.auto_kv_dtype(model.kv_cache_dtype) if engine else model.kv_cache_dtype
            weights, is_id = named_dtype or model.weight_dtype, "/" in name and catalog.lists_model(name)
            named = name if is_id and named_dtype else None
            chosen.append(
                SheetModel(engine.as_kept(model) if engine else model, weights, kv, weights, kv, weights, named)
            )
    ids = [m.model.id for m in chosen]
    problems += [f"model {i} is named twice." for i in sorted({i for i in ids if ids.count(i) > 1})]
    if problems:
        raise ScenarioError(*problems)
    return tuple(chosen)
