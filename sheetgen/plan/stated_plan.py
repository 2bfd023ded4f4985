"""A plan as it is stated: its services, supply and prices, and the question that each service asks of `recommend`."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from sheetgen.catalog.engines import load_engine
from sheetgen.catalog.guidance import assumptions, number
from sheetgen.catalog.hardware import Gpu, Instance, InstancePrice
from sheetgen.catalog.load import Catalog
from sheetgen.measured.measured_point import Unusable
from sheetgen.plan import schema
from sheetgen.plan.quarters import (
    MONTHS_IN_A_QUARTER,
    QUARTERS_IN_A_YEAR,
    QUARTERS_OF_TERM,
    Quarter,
    months_after,
    quarter_of,
)
from sheetgen.plan.spans import Spans
from sheetgen.plan.spending import arrives_day, order_by_day, price_factor
from sheetgen.plan.week import Week, week_of
from sheetgen.question.market import Candidate, Filters, is_sold, machine_at, select
from sheetgen.question.sheet_question import Question, ask
from sheetgen.units import CAPACITY_BLOCK, PURCHASES

DEFAULT_CONTEXT = 4096  # tokens, as in `recommend`
Key = tuple[tuple[str, Any], ...]  # the options of a question
THERE = "there"  # beside them, the machines that the plan has


@dataclass(frozen=True)
class Base:
    """Machines of a mix that are bought for a term, from a quarter on, at the price that is expected then."""

    instance: str
    purchase: str
    count: int
    needed: Fraction  # from which on, in quarters from the plan's first day
    start: Fraction  # from which on they run: later where the order is late
    term: int  # in quarters
    month_usd: float

    @property
    def first(self) -> int:
        """The quarter for which they are ordered, by position."""
        return math.floor(self.needed)

    @property
    def end(self) -> Fraction:
        return self.start + self.term

    def shares(self, n_quarters: int) -> list[float]:
        """By quarter of the plan the share of it in which they run."""
        overlaps = (min(self.end, Fraction(q + 1)) - max(self.start, Fraction(q)) for q in range(n_quarters))
        return [float(max(Fraction(0), overlap)) for overlap in overlaps]


@dataclass(frozen=True)
class Held:
    """Machines of an earlier order that are kept in a span, as services wait for others then."""

    instance: str
    count: int
    span: int  # by position
    month_usd: float


@dataclass(frozen=True)
class Stated:
    """The sections of a plan from which the questions of all its services follow."""

    policy: schema.Policy
    prices: schema.Prices
    supply: schema.Supply
    as_of: datetime.date


@dataclass(frozen=True)
class Plan(Stated):
    """A plan as it was written, its names found in the catalogs, and the questions that its services ask."""

    head: schema.Head
    services: tuple[schema.Service, ...]  # each with what it takes from the one that it is `like`
    budget: Mapping[Quarter, float]  # US dollars, as all that follows
    gpus: Mapping[str, Gpu]  # of the owned pools, by their id
    types: Mapping[str, Instance]  # of commitments and quotas, by their name in the plan
    data: Mapping[str, Any]  # as it was written
    catalog: Catalog = field(repr=False)
    questions: dict[Key, Question] = field(repr=False)  # that were asked
    listed: Mapping[str, Mapping[str, float]] | None = None  # $ an hour by instance and class, not the catalog's
    priced_for: Quarter | None = None  # in which machines cost what they do today; none: that of the plan's day
    priced: dict[tuple[Key, str, int], Question] = field(default_factory=dict, repr=False)  # questions at those
    base: tuple[Base, ...] = ()  # of a mix, once it is worked out
    held: tuple[Held, ...] = ()  # once it is worked out who waits
    stated: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of those listed, what it states itself
    unread: tuple[Unusable, ...] = ()  # of the files that it was written with, what says nothing

    @property
    def measured(self) -> list[str]:
        """Measurements of hardware that its services may take."""
        of_questions = (question.measurements.deployments for question in self.questions.values())
        deployments = itertools.chain.from_iterable(of_questions)
        return list(dict.fromkeys(source for measured in deployments for source in measured.sources))

    @property
    def unused(self) -> list[Unusable]:
        """Measurements that set nothing for any service, each with a reason."""
        used = set(self.measured)
        of_questions = (question.measurements.unused for question in self.questions.values())
        every = (*itertools.chain.from_iterable(of_questions), *self.unread)
        return list({unused.source: unused for unused in every if unused.source not in used}.values())

    @cached_property
    def quarters(self) -> tuple[Quarter, ...]:
        return self.head.every_quarter

    @cached_property
    def _candidates(self) -> dict[str, tuple[str, str, int]]:
        """By instance provider, GPU and count of the candidates, those behind that the plan has itself."""
        mine = (question for key, question in self.questions.items() if dict(key)["purchase"] == self.policy.purchase)
        return {candidate.instance: candidate.shape for question in mine for candidate in question.candidates}

    @cached_property
    def there(self) -> dict[str, Candidate]:
        """The machines of the supply, by instance: see `machines_there`."""
        return machines_there(self.catalog, self.region, self, self.gpus, self.types)

    def machine(self, name: str) -> str:
        """The instance behind a type of the supply; of a quota for a type that no service may be on the candidate with
        the same GPUs of its provider, as only the cheapest of those is."""
        row = self.types[name]
        if row.id in self.there or row.id in self._candidates:
            return row.id
        shape = row.provider, row.gpu, int(row.gpu_count)
        return next((instance for instance, other in self._candidates.items() if other == shape), row.id)

    def ordered(self, instance: str) -> tuple[int, datetime.date] | None:
        """The machines of a type that were ordered before, and the day on which the last of them is there."""
        mine = [order for order in self.supply.ordered if self.instance_of(order) == instance]
        days = [order.starts or datetime.date.min for order in mine]
        return (sum(order.count for order in mine), max(days)) if mine else None

    def was_ordered(self, instance: str) -> bool:
        """True where machines of a type were ordered before, and not for services that are named."""
        return any(not order.services and self.instance_of(order) == instance for order in self.supply.ordered)

    def stands_on(self, s: int, q: int) -> list[str]:
        """The machines, of whichever class, that were ordered before for a service, or are committed and run it, and
        that are there in a quarter."""
        name, first, last = self.services[s].id, self.first_day(self.quarters[q]), self.last_day(self.quarters[q])
        signed = [part for part in self.supply.committed if term(part)[0] <= last and first < term(part)[1]]
        ordered = [order for order in self.supply.ordered if (order.starts or last) <= last]
        supplied: tuple[schema.Committed | schema.Ordered, ...] = (*signed, *ordered)
        return sorted({self.machine(part.type) for part in supplied if name in part.services})

    def instance_of(self, order: schema.Ordered) -> str:
        """The instance behind an earlier order, in its class."""
        instance = self.machine(order.type)
        return in_class(instance, order.purchase or self.policy.purchase, self.class_of(instance))

    @property
    def region(self) -> str:
        """The region of all machines; empty where none is named."""
        return region_of(self.services[0], self.supply.allowed)

    @property
    def priorities(self) -> list[float]:
        """By service: the lowest number is served first, those without one last."""
        return [math.inf if service.priority is None else service.priority for service in self.services]

    def redundancy(self, s: int) -> schema.Redundancy:
        """The loss that a service survives."""
        return self.services[s].redundancy or self.policy.redundancy

    @cached_property
    def months(self) -> list[float]:
        """By quarter how many of today's months it costs, at the price expected."""
        return self.months_ahead(range(len(self.quarters)))

    def months_ahead(self, quarters: Iterable[int]) -> list[float]:
        """The same of quarters by position, past the plan's end too."""
        return self._months([self.quarters_ahead[0] + q for q in quarters])

    def months_of(self, purchase: str) -> list[float]:
        """By quarter how many of today's months a quarter costs of what is bought for it in a class."""
        return self._months(self.order_quarters_ahead(purchase))

    def _months(self, quarters_ahead: Iterable[int]) -> list[float]:
        change = self.prices.expected_change_per_year.p50
        return [
            MONTHS_IN_A_QUARTER * float(price_factor(change, ahead, QUARTERS_IN_A_YEAR)) for ahead in quarters_ahead
        ]

    def order_quarters_ahead(self, purchase: str) -> list[int]:
        """By quarter how many after the one with today's prices that has the price of what is bought for it in a class:
        its own; of a term the one in which the order is approved, the lead time before it is needed; 0 where that is to
        be signed now."""
        if purchase not in QUARTERS_OF_TERM:
            return self.quarters_ahead
        starts, approval = self.head.fiscal_year_starts, datetime.timedelta(days=self.policy.approval_days)
        now, next_plan = quarter_of(self.as_of, starts), months_after(self.as_of, MONTHS_IN_A_QUARTER)
        asked = [self.order_by(self.first_day(quarter), self.lead_days(purchase)) for quarter in self.quarters]
        approved = (now if day < next_plan else quarter_of(day + approval, starts) for day in asked)
        return [*map(min, self.quarters_ahead, (quarter.since(self.today) for quarter in approved))]

    def order_by(self, first: datetime.date, days: float) -> datetime.date:
        """The day by which approval must be requested, so that what takes so many days is there on the first day."""
        return datetime.date.fromordinal(order_by_day(first.toordinal(), days, self.policy.approval_days))

    @property
    def quarters_ahead(self) -> list[int]:
        """By quarter how many it is after the one with today's prices."""
        return [quarter.since(self.today) for quarter in self.quarters]

    @property
    def today(self) -> Quarter:
        """The quarter with today's prices."""
        return self.priced_for or quarter_of(self.as_of, self.head.fiscal_year_starts)

    def first_day(self, quarter: Quarter) -> datetime.date:
        return quarter.first_day(self.head.fiscal_year_starts)

    def last_day(self, quarter: Quarter) -> datetime.date:
        return quarter.last_day(self.head.fiscal_year_starts)

    def position(self, day: datetime.date) -> Fraction:
        """The place of a day, in quarters from the first day; one outside of the plan is at its end."""
        q = self.quarter_of(day)
        if q is None:
            return Fraction(0 if day < self._days_of_quarters[0][0] else len(self.quarters))
        first, last = self._days_of_quarters[q]
        return q + Fraction((day - first).days, (last - first).days + 1)

    @cached_property
    def today_at(self) -> Fraction:
        """The place of the plan's day."""
        return self.position(self.as_of)

    @cached_property
    def spans(self) -> Spans:
        """Its quarters, cut where something that is owned or committed begins or ends, or is no longer kept after it,
        where an order can be there, and where a term ends."""
        policy, supply = self.policy, self.supply
        bought = {policy.purchase, *(service.buy for service in self.services if service.buy)}
        bought |= {machine.purchase for machine in self.there.values()}
        ways = [way for way in PURCHASES if way in bought or supply.allowed.may_buy(way)]
        raised = [self.raised_on(quota) for quota in supply.quota]
        arrivals = {way: {max(day, self.there_on(way)) for day in (self.as_of, *raised)} for way in ways}
        days = {self.as_of, *raised, *itertools.chain(*arrivals.values())}
        days |= {max(self.as_of, order.starts) for order in supply.ordered if order.starts}
        parts: tuple[schema.Committed | schema.Owned, ...] = (*supply.committed, *supply.owned)
        ends = {self.position(day) for part in parts for day in term(part)}
        with_term = {*ways} if policy.buy == schema.MIX else bought
        terms = {
            (self.position(day), QUARTERS_OF_TERM[way])
            for way in with_term & {*QUARTERS_OF_TERM}
            for day in arrivals[way]
        }
        after = {end + policy.release_after_quarters for end in {*ends, self.today_at}}
        places = {*map(self.position, days), *ends, *after}
        # What ends with a term may have served another class, which keeps what it rents in its place.
        lends = bool(terms) and any(service.buy not in (None, policy.purchase) for service in self.services)
        kept = policy.release_after_quarters if lends else 0
        return Spans.cut(len(self.quarters), places, self.today_at, terms, kept)

    @cached_property
    def days(self) -> list[tuple[datetime.date, datetime.date]]:
        """By span its first and its last day."""
        firsts = [self.day_at(start) for start in self.spans.starts]
        ends = [*firsts[1:], self.last_day(self.quarters[-1]) + _DAY]
        return [(first, end - _DAY) for first, end in zip(firsts, ends, strict=True)]

    def day_at(self, place: Fraction) -> datetime.date:
        """The day at a place in quarters from the plan's first day."""
        quarter = self.quarters[math.floor(place)]
        first, last = self.first_day(quarter), self.last_day(quarter)
        return first + datetime.timedelta(days=math.ceil(place % 1 * ((last - first).days + 1)))

    def lead_days(self, way: str) -> float:
        """Days from an order to its delivery, which nine of ten orders keep to; where none is stated 0, of a capacity
        block those that are judged."""
        band = self.supply.lead_time_days.get(way)
        if band is None:
            return number(assumptions(self.catalog), "capacity_block_lead_days") if way == CAPACITY_BLOCK else 0.0
        return band.p90

    def there_after(self, days: float) -> datetime.date:
        """The day on which something that takes so many days is there, for which approval is requested on the day of
        the plan."""
        return datetime.date.fromordinal(int(arrives_day(self.as_of.toordinal(), days, self.policy.approval_days)))

    def there_on(self, way: str) -> datetime.date:
        """The day on which something of a class is there that is ordered today."""
        return self.there_after(self.lead_days(way))

    def raised_on(self, quota: schema.Quota) -> datetime.date:
        """The day from which on a quota no longer limits what is rented, where it is asked for today that it is
        raised."""
        return self.there_after(quota.request_lead_days)

    def question(self, key: Key) -> Question:
        """The question of these options, at the prices of the plan. Raises ScenarioError where it cannot be put."""
        if key not in self.questions:
            self.questions[key] = ask(self.catalog, options_of(key), there=[*self.there.values()])
        question, purchase = self.questions[key], dict(key)["purchase"]
        if self.listed is None and purchase == self.policy.purchase:
            return question
        priced = key, self.policy.purchase, id(self.listed)
        if priced not in self.priced:
            candidates = (self._priced(candidate) for candidate in question.candidates)
            self.priced[priced] = replace(question, candidates=tuple(candidates))
        return self.priced[priced]

    @cached_property
    def week(self) -> Week:
        """The hours of a week in which its services have loads of their own."""
        return week_of(self.services, [first + (last - first) / 2 for first, last in self._days_of_quarters])

    @property
    def rents_by_hour(self) -> bool:
        """True where machines are rented for the hours that need them."""
        classes = (PURCHASES[service.buy or self.policy.purchase] for service in self.services)
        return not self.week.is_flat and any(not way.committed and not way.prepaid for way in classes)

    @property
    def worst_case(self) -> str:
        """The demand of which it is said what is not served: at the quantile that is bought, in the hour that lacks
        most."""
        return f"{self.policy.plan_at}{'' if self.week.is_flat else ' in its worst hour'}"

    @property
    def start_minutes(self) -> float:
        """How long before it is needed a machine of the hour is asked for."""
        stated = self.policy.start_minutes
        return number(assumptions(self.catalog), "start_minutes") if stated is None else stated

    def _priced(self, candidate: Candidate) -> Candidate:
        """A candidate at the prices of the plan, named with its class where that is not the one in which such machines
        are bought: machines of two classes are two types."""
        instance, prices = candidate.instance, dict[str, float]()
        for name in (instance, *(in_class(instance, way, self.policy.purchase) for way in PURCHASES)):
            prices |= (self.listed or {}).get(name, {})
        name, purchase = in_class(instance, candidate.purchase, self.class_of(instance)), candidate.purchase
        sold = (replace(way, usd_per_hour=prices.get(way.purchase, way.usd_per_hour)) for way in candidate.prices)
        usd = prices.get(purchase, candidate.usd_per_hour)
        return replace(candidate, instance=name, usd_per_hour=usd, prices=tuple(sold))

    def class_of(self, instance: str) -> str:
        """The class in which a type of machine is bought: the plan's, or that in which it is sold of one that is
        there."""
        machine = self.there.get(instance)
        return class_in(instance) or (machine.purchase if machine else self.policy.purchase)

    def quarter_of(self, day: datetime.date) -> int | None:
        """The quarter in which a day lies, by position; none after the plan's end."""
        return next((q for q, (first, last) in enumerate(self._days_of_quarters) if first <= day <= last), None)

    @cached_property
    def _days_of_quarters(self) -> list[tuple[datetime.date, datetime.date]]:
        """By quarter its first and its last day."""
        return [(self.first_day(quarter), self.last_day(quarter)) for quarter in self.quarters]

    def ordering(self, base: tuple[Base, ...], held: tuple[Held, ...] = ()) -> Plan:
        """The plan with a mix's base and what is held, of which neither its spans nor its week depend."""
        other = replace(self, base=base, held=held)
        for name in ("quarters", "spans", "week", "there", "_days_of_quarters"):
            other.__dict__[name] = getattr(self, name)
        return other

    def question_in(self, service: schema.Service, quarter: Quarter) -> Question:
        """The question of a service in a quarter."""
        return self.question(self.key(service, served_in(service, quarter)))

    def key(self, service: schema.Service, served: schema.Served) -> Key:
        return key_of(options_of_service(self, service, served), self.there.values())


_DAY = datetime.timedelta(days=1)


def term(part: schema.Committed | schema.Owned) -> tuple[datetime.date, datetime.date]:
    """The first day of what is owned or committed, and the first one after it."""
    first = part.starts or datetime.date.min
    if isinstance(part, schema.Committed) and part.days is not None:
        return first, first + datetime.timedelta(days=part.days)
    return first, datetime.date.max if part.until is None else part.until + _DAY


def in_class(instance: str, purchase: str, buy: str) -> str:
    """A machine as a type of the plan, which buys in the class `buy`."""
    return instance if purchase == buy else f"{instance} ({purchase})"


def class_in(name: str) -> str:
    """The class that a type's name has; "" where it is the plan's."""
    return name.rpartition(" (")[2].removesuffix(")") if name.endswith(")") and " (" in name else ""


def machine_in(name: str) -> str:
    """The machine of a type's name."""
    return name.rpartition(" (")[0] if class_in(name) else name


def served_in(service: schema.Service, quarter: Quarter) -> schema.Served:
    """The model that is served in a quarter; before the first one's it is the first one."""
    models = service.model or ()
    return ([served for served in models if served.starts is None or served.starts <= quarter] or models[:1])[-1]


def _lengths(request: schema.Request) -> dict[str, int]:
    """Context, prompt and answer as `recommend` takes them: the context is that of the long requests, times are those
    of the mean ones. Raises ValueError where a part is missing."""
    prompt, answer, context = request.input_tokens, request.output_tokens, request.context_tokens
    lengths = {"input_tokens": prompt.mean if prompt else None, "output_tokens": answer.mean if answer else None}
    if context is None:
        if (prompt is None) != (answer is None):
            raise ValueError("request has one of input_tokens and output_tokens. Give both, or context_tokens.")
        context = prompt.p95 + answer.p95 if prompt and answer else DEFAULT_CONTEXT
    return {"context_tokens": context, **{name: value for name, value in lengths.items() if value is not None}}


def region_of(service: schema.Service, common: schema.Allowed) -> str:
    """The region whose prices a service asks for; empty where it names none."""
    own = service.allowed.region if service.allowed else None
    return " ".join((own or common.region or "").split())


def options_of_service(stated: Stated, service: schema.Service, served: schema.Served) -> dict[str, Any]:
    """The options of `recommend` that put a service's question, less its load."""
    policy, prices = stated.policy, stated.prices
    targets, engine = service.targets or schema.Targets(), service.engine or schema.EngineOf()
    request, redundancy = service.request or schema.Request(), service.redundancy or policy.redundancy
    own, common = service.allowed or schema.Places(), stated.supply.allowed
    given = {
        **_lengths(request),
        "models": served.id,
        "weight_dtype": served.weight_dtype,
        "kv_cache_dtype": served.kv_cache_dtype,
        "engine": engine.name,
        "engine_version": engine.version,
        "prefix_cache_hit_fraction": request.prefix_hit_fraction,
        "history_hit_fraction": request.history_hit_fraction,
        "extra_headroom_fraction": policy.headroom_fraction,
        "survive": redundancy.survive,
        "zones": redundancy.zones if redundancy.survive == "zone" else None,
        "near_tie_fraction": policy.near_tie_fraction,
        "discount_fraction": prices.discount_fraction,
        "hours_per_month": prices.hours_per_month,
        "purchase": service.buy or policy.purchase,
        "max_wait_fraction": targets.max_wait_probability,
        "confidence": targets.confidence,
        "tpot_ms": targets.tpot_ms,
        "ttft_ms": targets.ttft_ms,
        "region": region_of(service, common) or None,
        "as_of": stated.as_of.isoformat(),
        "concurrent_requests": 1,
        **{
            name: ",".join(getattr(own, name) or getattr(common, name)) or None
            for name in ("providers", "vendors", "gpus", "instances")
        },
        **{name: getattr(engine, name) for name in schema.OF_ENGINE},
    }
    texts: dict[str, Any] = {name: str(value) for name, value in given.items() if value is not None}
    measured = (*policy.measured, *engine.measured)
    return texts | ({"measured": measured} if measured else {})


def key_of(options: Mapping[str, Any], there: Iterable[Candidate]) -> Key:
    """The key of a question with these options, in a plan that has these machines."""
    facts = tuple((candidate.instance, candidate.purchase, candidate.usd_per_hour) for candidate in there)
    return tuple(sorted({**options, **({THERE: facts} if facts else {})}.items()))


def options_of(key: Key) -> dict[str, Any]:
    """The options of `recommend` in a question's key."""
    return {name: value for name, value in key if name != THERE}


def machines_there(
    catalog: Catalog, region: str, stated: Stated, gpus: Mapping[str, Gpu], types: Mapping[str, Instance]
) -> dict[str, Candidate]:
    """The machines that a plan has whatever is bought, each in the class in which more of it are: the plan's, where it
    is sold in that or its price is stated; else another that may be used, on demand first; of one that is not sold the
    plan's, at what is paid. Those of commitments and earlier orders, and for owned GPUs that no machine has which is
    sold in the plan's class those of others."""
    buy, supply, machines = stated.policy.purchase, stated.supply, dict[str, Candidate]()
    ways = [buy, *(way for way in PURCHASES if way != buy and supply.allowed.may_buy(way))]
    parts: tuple[schema.Committed | schema.Ordered, ...] = (*supply.committed, *supply.ordered)
    for part in parts:
        row = types.get(part.type)
        if row is None or row.id in machines or row.gpu_count != int(row.gpu_count):
            continue
        listed = {price.purchase: price for price in row.offered}
        usd = _stated_usd(stated.prices, row, buy)
        price = next((listed[way] for way in ways if way in listed), None) if usd is None else None
        if price is None:
            paid = part.usd_per_hour if isinstance(part, schema.Committed) else None
            mine = next((listed[way].usd_per_hour for way in (part.purchase, *PURCHASES) if way in listed), None)
            usd = next((usd for usd in (usd, paid, mine) if usd is not None), None)
            price = None if usd is None else InstancePrice(purchase=buy, usd_per_hour=usd, as_of=None)
        if price is not None:
            machines[row.id] = machine_at(catalog, row, price)
    engine, sellers = load_engine(catalog, schema.EngineOf().name, None), {row.provider for row in catalog.instances()}
    providers = tuple(name for name in supply.allowed.providers if name.lower() in sellers)  # else it is said of those
    for gpu in dict.fromkeys(gpu.id for gpu in gpus.values()):
        for way in ways:
            filters = Filters(providers=providers, gpus=(gpu,), region=region, purchase=way)
            if is_sold(catalog, engine, filters):
                sold = select(catalog, engine, filters).candidates if way != buy else ()
                machines |= {candidate.instance: candidate for candidate in sold if candidate.instance not in machines}
                break
    return machines


def _stated_usd(prices: schema.Prices, row: Instance, purchase: str) -> float | None:
    """The price of an hour of a machine that a plan states in its class."""
    names = {row.id.lower(), row.type.lower()}
    stated = prices.usd_per_hour.items()
    mine = (usd for name, usd in stated if machine_in(name).lower() in names and class_in(name) in ("", purchase))
    return next(mine, None)
