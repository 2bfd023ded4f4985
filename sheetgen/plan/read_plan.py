"""Read plan.yaml: every problem at once, each with its line; then what each service asks of `recommend`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy

from sheetgen.catalog.base import Document, E, Entry, Loc, Problem, by_line, checked, read_document, unknown_field
from sheetgen.catalog.engines import load_engine
from sheetgen.catalog.hardware import Gpu, Instance
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, SheetgenError, did_you_mean, shown
from sheetgen.importer.model_names import resolve_model
from sheetgen.measured.measured_point import Reading, Unusable, at_path
from sheetgen.measured.read_measured import measured_beside, read_measured, written_out
from sheetgen.plan.quarters import quarter_of
from sheetgen.plan.schema import (
    DOLLARS,
    MAX_SERVICES,
    OF_LIKE,
    REGIONS,
    Allowed,
    Budget,
    EngineOf,
    Head,
    Places,
    Policy,
    Prices,
    Service,
    Supply,
)
from sheetgen.plan.stated_plan import (
    Key,
    Plan,
    Stated,
    class_in,
    in_class,
    key_of,
    machine_in,
    machines_there,
    options_of_service,
    region_of,
)
from sheetgen.plan.tables import OF_SERVICE, Z, demand_grid
from sheetgen.plan.week import at_its_peak, states_peak_hour
from sheetgen.question.market import Candidate
from sheetgen.question.parse import as_of_date
from sheetgen.question.sheet_question import Question, ask
from sheetgen.units import ON_DEMAND, PURCHASES, listed, number_text

SECTIONS: dict[str, type[Entry]] = {"plan": Head, "policy": Policy, "supply": Supply, "prices": Prices}
MOST_DEMAND = 1e12  # requests, a second or at once, as of one number in the file
KEYS = (*SECTIONS, "budget", "services")
# By option of `recommend` the key that states it for all services.
OF_OPTIONS = {name: f"supply.allowed.{name}" for name in Places.model_fields} | {"purchase": "policy.buy"}


def read_plan(path: Path, catalog: Catalog, measured: Sequence[str] = ()) -> Plan:
    """The plan in a file, with what was measured for every service; it carries what that and its own files say, written
    out. Raises ScenarioError with every problem found, in the order of their lines."""
    repeated: list[Problem] = []
    document = read_document(path, repeated=repeated, pipes=True)
    readings = _carry_measured(document.data, path, catalog)
    if measured and isinstance(document.data, dict):
        policy = document.data.setdefault("policy", {})
        given = read_measured(measured, catalog)
        policy["measured"] = [*policy.get("measured", ()), *written_out(given)]
        readings += given
    unread = tuple(reading for reading in readings if isinstance(reading, Unusable))
    return replace(plan_of(document, catalog, repeated), unread=unread)


def _carry_measured(data: Any, plan: Path, catalog: Catalog) -> list[Reading]:
    """The readings of the files that a plan names as measured, which are written out in their place."""
    every: list[Reading] = []
    services = at_path(data, "services")
    of_services = services if isinstance(services, list) else []
    places = [at_path(data, "policy"), *(at_path(service, "engine") for service in of_services)]
    for place in places:
        if isinstance(place, dict) and isinstance(place.get("measured"), (str, list)):
            stated = place["measured"]
            options = [stated] if isinstance(stated, str) else stated
            readings = read_measured((measured_beside(plan, str(option)) for option in options), catalog)
            place["measured"] = written_out(readings)
            every += readings
    return every


def plan_of(document: Document, catalog: Catalog, repeated: Sequence[Problem] = ()) -> Plan:
    """The plan in a document. Raises ScenarioError with every problem found, in the order of their lines."""
    reading = _Reading(document, catalog, list(repeated))
    plan = reading.plan()
    if plan is None or reading.problems:
        raise ScenarioError(*by_line(document, reading.problems))
    return plan


class _Reading:
    """One reading of a document: each part by itself, so that the faults of one hide none of another."""

    def __init__(self, document: Document, catalog: Catalog, problems: list[Problem]) -> None:
        self.document, self.catalog, self.problems = document, catalog, problems
        self.data: dict[str, Any] = {}
        self.pools: dict[str, str] = {}  # GPUs of one's own, by name

    def plan(self) -> Plan | None:
        if not isinstance(self.document.data, dict):
            self.problems.append(((), "holds no plan. `sheetgen plan init` writes one that runs."))
            return None
        self.data = self.document.data
        if "services" in (at_path(self.data, "inputs") or ()):
            self.problems.append(((), "is the JSON of a plan, which --since takes. Name the plan.yaml that it is of."))
            return None
        for key in self.data:
            if key not in KEYS:
                self.problems.append(((key,), unknown_field(key, KEYS)))
        head, policy, supply, prices = (
            self._part((name,), self.data.get(name, {}), schema) for name, schema in SECTIONS.items()
        )
        budget = self._part((), {"quarters": self.data.get("budget") or {}}, Budget)
        services = self._services()
        assert head is None or isinstance(head, Head)
        if supply is not None:
            supply = _of_currency(head, services.values(), supply)
        as_of = (head and head.as_of) or as_of_date(None)
        past = [*_past(head, as_of)]
        self.problems += (*_classes(services, policy, supply), *_ordered(policy, supply, self.data.get("services")))
        self.problems += past or _across(head, services, budget, self.data)
        resolved = _resolved(services)
        stated = self._sound_supply() if supply is None else supply
        region = self._region(resolved, stated or Supply())
        gpus, types = self._names(stated, region)
        self.pools = {pool: gpu.id for pool, gpu in gpus.items()}
        sections = Stated(policy or Policy(), prices or Prices(), supply or Supply(), as_of)
        there = [*machines_there(self.catalog, region, sections, gpus, types).values()]
        questions = self._questions(resolved, sections, there)
        listed = self._listed(sections, questions.values())
        if self.problems or head is None or budget is None:
            return None
        # Amounts without "usd" in their name are in the plan's currency; all is worked out in dollars.
        supply = supply.model_copy(
            update={
                "ordered": tuple(
                    order.model_copy(update={"purchase": order.purchase or policy.purchase}) for order in supply.ordered
                ),
                "owned": tuple(
                    pool.model_copy(update={"cost_per_quarter": pool.cost_per_quarter / head.fx_rate})
                    for pool in supply.owned
                ),
            }
        )
        budgets = {quarter: amount / head.fx_rate for quarter, amount in budget.quarters.items()}
        plan = Plan(
            policy,
            prices,
            supply,
            as_of,
            head,
            tuple(resolved[i] for i in sorted(resolved)),
            budgets,
            gpus,
            types,
            self.data,
            self.catalog,
            questions,
            listed or None,
            stated=listed,
        )
        self.problems += _too_much(plan)
        return plan

    def _sound_supply(self) -> Supply | None:
        """The supply without the entries that are wrong, so that what is unknown in the others is named too."""
        written = self.data.get("supply")
        wrong = {loc[1:3] for loc, _ in self.problems if loc[:1] == ("supply",)}
        lists = {
            name: [entry for i, entry in enumerate(many) if (name, i) not in wrong]
            for name, many in (written.items() if isinstance(written, dict) else ())
            if isinstance(many, list)
        }
        entry, problems = checked(lists, Supply, ("supply",))
        self.problems += problems if entry else ()
        return entry

    def _part(self, place: Loc, data: Any, schema: type[E]) -> Any:
        entry, problems = checked(data, schema, place)
        if schema is Budget:  # its one field is the whole section
            problems = [(("budget", *loc[1:]), text) for loc, text in problems]
        self.problems += problems
        return entry

    def _services(self) -> dict[int, Service]:
        """The services that are sound by themselves, by their place."""
        every = self.data.get("services")
        if not isinstance(every, list) or not every:
            if not _misspelled(self.data, "services"):
                self.problems.append((("services",), "services must be a list of at least one service."))
            return {}
        if len(every) > MAX_SERVICES:
            self.problems.append((("services",), f"{len(every):,} services; {MAX_SERVICES} are the most."))
            return {}
        read = ((i, self._service(("services", i), entry)) for i, entry in enumerate(every))
        return {i: entry for i, entry in read if entry is not None}

    def _service(self, place: Loc, data: Any) -> Service | None:
        """A service; where something in it is wrong, all else of it, so that its other faults are named too."""
        before = len(self.problems)
        entry: Service | None = self._part(place, data, Service)
        self.problems[before:] = [(loc, _of_whole_plan(loc, place, text)) for loc, text in self.problems[before:]]
        if entry is not None or not isinstance(data, dict):
            return entry
        wrong = {loc[len(place)] for loc, _ in self.problems[before:] if len(loc) > len(place)}
        wrong |= {"ramp"} if "launch" in wrong else set()
        sound = {name: value for name, value in data.items() if name not in wrong}
        sound = {"id": "unnamed", "demand": {"at_once": 1}} | sound
        return checked(sound, Service, place)[0]

    def _found(self, place: Loc, find: Any, *names: Any) -> Any:
        """The result of `find`, or nothing and a problem at a place."""
        try:
            return find(*names)
        except SheetgenError as error:
            self.problems += [(place, problem) for problem in error.problems]
            return None

    def _region(self, services: Mapping[int, Service], supply: Supply) -> str:
        """The region of all services, which share machines and their prices; empty where none is named."""
        asked: dict[str, str] = {}  # by region the first service
        for i, service in services.items():
            region = region_of(service, supply.allowed)
            asked.setdefault(region.lower(), service.id)
            if len(asked) > 1:
                (other, of_other), (mine, of_mine), *_ = asked.items()
                here, there = (
                    f"region {shown(asked_for)!r}" if asked_for else "no region" for asked_for in (mine, other)
                )
                text = f"{of_mine} asks for {here}, {of_other} for {there}: all machines of a plan stand in one region"
                mend = "State it in supply.allowed, and write a plan for each region."
                self.problems.append((("services", i), f"{text}. {mend}"))
                break
        return next(iter(asked), "")

    def _instance(self, name: str, region: str) -> Instance:
        """A type at its prices in the region, none where it is not sold there; of a row priced by the GPU a machine of
        as many as the name states: how many machines so many GPUs are, nobody knows."""
        row, n_gpus = self.catalog.instance_and_gpus(name)
        if n_gpus is None and not row.is_whole:
            raise ScenarioError(f"{row.id} is priced by the GPU. Name a machine: '{row.id} x1', or x2, x4, x8.")
        if region:
            here = (sold for sold in self.catalog.regions.rows_in(region) if sold.id == row.id)
            row = next(here, row.model_copy(update={"prices": ()}))
        return row.machine(n_gpus) if n_gpus else row

    def _names(self, supply: Supply | None, region: str) -> tuple[dict[str, Gpu], dict[str, Instance]]:
        """GPUs of the owned pools, and instances of commitments and quotas, of which there must be prices."""
        gpus, types = dict[str, Gpu](), dict[str, Instance]()
        for i, pool in enumerate(supply.owned if supply else ()):
            gpu = self._found(("supply", "owned", i, "gpu"), self.catalog.gpu, pool.gpu)
            if gpu is not None:
                gpus[pool.id] = gpu
        for i, part in enumerate(supply.committed if supply else ()):
            place: Loc = ("supply", "committed", i, "type")
            instance = types[part.type] = self._found(place, self._instance, part.type, region)
            is_priced = instance is not None and (instance.price(part.purchase) or instance.price(ON_DEMAND))
            if instance is not None and part.usd_per_hour is None and not is_priced:
                without = f"{instance.id} has no price for {part.purchase} or on demand {_where(region)}"
                self.problems.append((place, f"{without}. Give usd_per_hour."))
        for i, order in enumerate(supply.ordered if supply else ()):
            types[order.type] = self._found(("supply", "ordered", i, "type"), self._instance, order.type, region)
        for i, quota in enumerate(supply.quota if supply else ()):
            name = f"{quota.provider}/{quota.type}" if quota.provider and "/" not in quota.type else quota.type
            place = "supply", "quota", i, "type"
            limited = types[quota.type] = self._found(place, self._instance, name, region)
            if limited is not None and not limited.prices:
                text = f"{limited.id} has no price {_where(region)}, so no service is put on it. Leave its quota out."
                self.problems.append((place, text))
        return gpus, {name: sold for name, sold in types.items() if sold is not None}

    def _listed(self, sections: Stated, questions: Iterable[Question]) -> dict[str, dict[str, float]]:
        """The prices of machines that are stated, in the class that is bought, in place of the catalog's."""
        candidates = {candidate.instance for question in questions for candidate in question.candidates}
        listed: dict[str, dict[str, float]] = {}
        for name, usd in sections.prices.usd_per_hour.items():
            place: Loc = ("prices", "usd_per_hour", name)
            instance = self._found(place, self._instance, machine_in(name), "")
            buy = sections.policy.purchase
            purchase = class_in(name) or buy
            if purchase not in PURCHASES:
                near = did_you_mean(purchase, PURCHASES)
                text = f"{shown(purchase)!r} is no class. Allowed: {', '.join(PURCHASES)}.{near}"
                self.problems.append((place, text))
            elif instance is not None and instance.id not in candidates:
                self.problems.append((place, f"{instance.id} is no candidate for any service. Leave its price out."))
            elif instance is not None:
                listed[in_class(instance.id, purchase, buy)] = {purchase: usd}
        return listed

    def _asked(
        self, place: Loc, own: Mapping[str, Any], options: Mapping[str, Any], there: Sequence[Candidate]
    ) -> Question | None:
        """The question of these options; what is wrong with them stands where it was written, once, and by the keys of
        a plan."""
        try:
            return ask(self.catalog, options, there=there)
        except SheetgenError as error:
            allowed = at_path(at_path(self.data, "supply"), "allowed")
            told = {problem for _, problem in self.problems}
            keys = OF_OPTIONS | {"purchase": "services.buy"} if "buy" in own else OF_OPTIONS
            for text in error.problems:
                problem = re.sub("--([a-z_]+)", lambda option: keys.get(option[1], option[0]), text)
                problem += self._of_own(options) if problem.startswith("no instance is left") else ""
                named = re.search("'(.+?)'", problem)
                is_own = named is None or named[1].lower() in str(own).lower()
                fields = allowed.items() if named and isinstance(allowed, dict) else ()
                common = [name for name, value in fields if named and named[1].lower() in str(value).lower()]
                if is_own or problem not in told:
                    written = place if is_own or not common else ("supply", "allowed", common[0])
                    self.problems.append((written, problem))
            return None

    def _of_own(self, options: Mapping[str, Any]) -> str:
        """That owned GPUs serve as machines that are rented, where these options name such GPUs."""
        named = filter(None, (options.get("gpus") or "").split(","))
        try:
            asked = {self.catalog.gpu(name).id for name in named}
        except SheetgenError:
            return ""
        if not (pools := [pool for pool, gpu in self.pools.items() if gpu in asked]):
            return ""
        until = "serve as a type of machine that is rented, so they need an allowed provider that rents one"
        return f" Owned GPUs ({', '.join(pools)}) {until}."

    def _questions(
        self, services: Mapping[int, Service], sections: Stated, there: Sequence[Candidate]
    ) -> dict[Key, Question]:
        """Each question that some service asks, once."""
        asked: dict[Key, Question | None] = {}
        for i, service in services.items():
            own = self.data["services"][i]
            engine = service.engine or EngineOf()
            base: Loc = ("services", i)
            try:
                load_engine(self.catalog, engine.name, engine.version)
            except SheetgenError as error:
                if "like" not in own or "engine" in own:  # else said of the other service
                    self.problems += [((*base, "engine"), problem) for problem in error.problems]
                continue
            for j, served in enumerate(service.model or ()):
                place: Loc = (*base, "model", j, "id") if "model" in own else base
                if "like" in own and "model" not in own:  # said of the other service
                    try:
                        resolve_model(served.id, self.catalog)
                    except SheetgenError:
                        continue
                elif self._found(place, resolve_model, served.id, self.catalog) is None:
                    continue
                try:
                    options = options_of_service(sections, service, served)
                except ValueError as error:
                    self.problems.append(((*base, "request"), str(error)))
                    continue
                key = key_of(options, there)
                if asked.get(key) is None:
                    asked[key] = self._asked(place[:-1] if len(place) > len(base) else base, own, options, there)
        return {key: question for key, question in asked.items() if question is not None}


def _where(region: str) -> str:
    """The place of prices that are missing."""
    return f"in region {shown(region)!r}" if region else "in the catalogs"


def _too_much(plan: Plan) -> Iterator[Problem]:
    """Services whose numbers, each of them possible, come to a demand that is none."""
    with numpy.errstate(over="ignore", invalid="ignore"):
        loads = demand_grid(plan, numpy.array([*Z.values()])).read("demand", OF_SERVICE)
    for s, service in enumerate(plan.services):
        most = numpy.nan_to_num(loads[s], nan=numpy.inf).max(axis=1)
        q = int(most.argmax())
        if most[q] > MOST_DEMAND:
            unit = "requests at once" if service.demand.is_at_once else "requests a second"
            text = f"comes to {number_text(most[q])} {unit} in {plan.quarters[q]}"
            yield ("services", s, "demand"), f"{text}; {number_text(MOST_DEMAND)} are the most."


def _resolved(services: Mapping[int, Service]) -> dict[int, Service]:
    """The services with what they take from the one that each is like; as they are where that cannot be found."""
    by_id = {service.id: service for service in services.values()}

    def whole(service: Service, seen: tuple[str, ...] = ()) -> Service:
        other = by_id.get(service.like or "")
        if other is None or other.id in seen or other is service:
            return service
        taken = whole(other, (*seen, service.id))
        missing = {name: getattr(taken, name) for name in OF_LIKE if getattr(service, name) is None}
        return service.model_copy(update=missing)

    return {i: at_its_peak(whole(service)) for i, service in services.items()}


def _across(
    head: Head | None, services: Mapping[int, Service], budget: Budget | None, data: Mapping[str, Any]
) -> Iterator[Problem]:
    """Faults of a plan of which every part by itself is right."""
    written = data.get("services")
    raw = [entry if isinstance(entry, dict) else {} for entry in written] if isinstance(written, list) else []
    ids = [_word(entry, "id") for entry in raw]
    twice = [i for i, name in enumerate(ids) if name is not None and name in ids[:i]]
    for i in twice:
        yield ("services", i, "id"), f"service {shown(ids[i])} stands twice. Give each its own id."
    if not twice:
        yield from _likeness(raw)
    for i, service in services.items():
        yield from _of_service(service, ("services", i), head)
    if head is not None and head.currency != DOLLARS and "fx_rate" not in head.model_fields_set:
        text = "but no fx_rate is given. Add one, such as 0.92: how many of it one USD is."
        yield ("plan", "currency"), f"currency is {head.currency!r}, {text}"
    if head is not None and head.currency == DOLLARS and head.fx_rate != 1:
        text = "but currency is USD, whose rate is 1. Name the currency."
        yield ("plan", "fx_rate"), f"fx_rate is {head.fx_rate:g}, {text}"
    outside = [quarter for quarter in budget.quarters if quarter not in head.every_quarter] if head and budget else []
    if head is not None and outside:
        names = f"{listed(list(map(str, outside)))} {'is no quarter' if len(outside) == 1 else 'are no quarters'}"
        yield ("budget", str(outside[0])), f"{names} of the plan, {_span(head)}."


def _of_currency(head: Head | None, services: Iterable[Service], supply: Supply) -> Supply:
    """The supply, at the prices of its currency's region where the plan names none."""
    region = REGIONS.get(head.currency) if head else None
    if region is None or any(region_of(service, supply.allowed) for service in services):
        return supply
    return supply.model_copy(update={"allowed": supply.allowed.model_copy(update={"region": region})})


def _past(head: Head | None, as_of: datetime.date) -> Iterator[Problem]:
    """A plan of quarters that are over on its day."""
    if head is None:
        return
    past = [quarter for quarter in head.every_quarter if quarter.last_day(head.fiscal_year_starts) < as_of]
    if past:
        first = quarter_of(as_of, head.fiscal_year_starts)
        over = f"{past[0]} ended on {past[0].last_day(head.fiscal_year_starts)}, before the day of the plan, {as_of}"
        yield ("plan", "start"), f"{over}: nothing can be decided for it. Start with {first}."


def _classes(services: Mapping[int, Service], policy: Policy | None, supply: Supply | None) -> Iterator[Problem]:
    """Classes of services that are left out, or have a term, which is of the whole plan."""
    for i, service in services.items():
        place: Loc = ("services", i, "buy")
        if service.buy is None or (policy and service.buy == policy.purchase):
            continue
        if PURCHASES[service.buy].committed:
            text = "has a term, which is of the whole plan. Write it in policy.buy, or supply.committed."
            yield place, f"{service.buy} {text}"
        elif supply and service.buy in supply.allowed.exclude:
            yield place, f"{service.buy} is excluded in supply.allowed. Take it out there, or buy another class."


def _ordered(policy: Policy | None, supply: Supply | None, written: object) -> Iterator[Problem]:
    """Orders of an earlier plan in a class with a term, which are commitments, and orders and commitments for services
    that there are not."""
    raw = written if isinstance(written, list) else []
    ids = [str(name) for entry in raw if isinstance(entry, dict) and (name := _word(entry, "id")) is not None]
    for field in ("committed", "ordered"):
        for i, part in enumerate(getattr(supply, field, ())):
            for k, service in enumerate(part.services):
                if service not in ids:
                    near = did_you_mean(service, ids)
                    text = f"services has {shown(service)!r}, which is no service of the plan.{near}"
                    yield ("supply", field, i, "services", k), text
    for i, order in enumerate(supply.ordered if supply else ()):
        purchase = order.purchase or (policy.purchase if policy else ON_DEMAND)
        if PURCHASES[purchase].committed:
            yield ("supply", "ordered", i), f"{purchase} has a term. Write it in supply.committed, with its end."


def _span(head: Head) -> str:
    return f"{head.start} to {head.every_quarter[-1]}"


def _likeness(raw: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Services that are like none that there is, or like each other in a circle; or that serve nothing."""
    like = {name: _word(entry, "like") for entry in raw if (name := _word(entry, "id")) is not None}
    served = {_word(entry, "id") for entry in raw if entry.get("model") is not None}
    for i, entry in enumerate(raw):
        name, other = _word(entry, "id"), _word(entry, "like")
        if name is None:
            continue
        place: Loc = ("services", i, "like") if other is not None else ("services", i)
        if other is not None and other not in like:
            near = did_you_mean(str(other), map(str, like))
            yield place, f"like is {shown(other)!r}, which is no service of the plan.{near}"
            continue
        path, following = [name], like.get(name)
        while following is not None and following not in path:
            path.append(following)
            following = like.get(following)
        if following is not None and following == name:
            circle = " -> ".join(map(shown, (*path, following)))
            yield place, f"services are like each other in a circle: {circle}. Let one of them say all itself."
        elif following is None and not any(step in served for step in path) and not _misspelled(entry, "model", "like"):
            yield place, f"service {shown(name)} has no model. Write one, such as model: llama-3.1-8b."


def _of_whole_plan(loc: Loc, place: Loc, problem: str) -> str:
    """What is wrong with a key of a service: of one that is unknown there, but not in the plan, where it belongs."""
    if not problem.startswith("unknown field"):
        return problem
    if loc[:-1] == place and loc[-1] in KEYS:
        return f"{loc[-1]} is of the whole plan: write it beside services."
    if loc[:-1] == (*place, "allowed") and loc[-1] in Allowed.model_fields:
        return f"{loc[-1]} is of the whole plan: write it in supply.allowed; a class of this service alone is its buy."
    return problem


def _misspelled(data: Mapping[str, Any], *names: str) -> bool:
    """True where an unknown field is nearly one of these, which is told of it."""
    fields = {*Service.model_fields, *KEYS}
    return any(did_you_mean(str(key), names) for key in data if key not in fields)


def _word(entry: Mapping[str, Any], key: str) -> str | None:
    """The value of a service's key, where that is text."""
    text = entry.get(key)
    return text if isinstance(text, str) else None


def _of_service(service: Service, place: Loc, head: Head | None) -> Iterator[Problem]:
    models = service.model or ()
    starts = [served.starts for served in models]
    for j, quarter in enumerate(starts):
        if quarter is None and j:
            yield (*place, "model", j), "a second model needs from: the quarter from which it is served."
        elif quarter is not None and quarter in starts[:j]:
            yield (*place, "model", j, "from"), f"{quarter} is given twice. Keep one model for each quarter."
        elif quarter is not None and any(earlier and earlier > quarter for earlier in starts[:j]):
            yield (*place, "model", j, "from"), f"{quarter} stands below a later quarter. Write models in order."
    if service.ramp and service.launch is None:
        yield (*place, "ramp"), "ramp is of a launch, and there is none. Give launch, or leave it out."
    if service.launch and service.retire and service.launch >= service.retire:
        yield (*place, "retire"), f"retire {service.retire} is not after launch {service.launch}."
    if service.profile is None:
        for name in ("working_days", "time_zone"):
            if name in service.model_fields_set:
                yield (*place, name), f"{name} is of a profile, and there is none. Give profile, or leave it out."
    elif states_peak_hour(service.demand):
        text = "profile says what its busiest hour has, and so does peak_hour_share. Keep one of them."
        yield (*place, "profile"), text
    growth = service.growth
    if growth and service.retire:
        retired = f"service {service.id} is retired in {service.retire}"
        if growth.per_quarter is not None:
            text = f"{retired}, and its growth has no end. Write growth up to then as steps, or leave it out."
            yield (*place, "growth"), text
        elif growth.series is not None:
            text = f"{retired}, and its series goes on to the plan's end. Write steps before that quarter."
            yield (*place, "growth", "series"), text
        for step in growth.steps or ():
            if step >= service.retire:
                text = f"{step} is not before {service.retire}, when it is retired."
                yield (*place, "growth", "steps", str(step)), text
    if head is None:
        return
    every, end = head.every_quarter, head.every_quarter[-1]
    if service.launch and service.launch > end:
        yield (*place, "launch"), f"launch {service.launch} is after the plan's end, {end}."
    if service.retire and service.retire <= head.start:
        yield (*place, "retire"), f"retire {service.retire} is not after the plan's start, {head.start}. Leave it out."
    for step in (growth and growth.steps) or ():
        if step not in every:
            yield (*place, "growth", "steps", str(step)), f"{step} is no quarter of the plan, {_span(head)}."
    if growth and growth.series is not None and len(growth.series) != head.quarters and not service.retire:
        text = f"series has {len(growth.series)} numbers, and the plan {head.quarters} quarters. Give one for each."
        yield (*place, "growth", "series"), text
    first = max(head.start, service.launch) if service.launch else head.start
    if starts and starts[0] is not None and starts[0] > first:
        yield (*place, "model", 0, "from"), f"no model is served in {first}: the first one is from {starts[0]}."
    for j, quarter in enumerate(starts):
        if quarter is not None and quarter > end:
            yield (*place, "model", j, "from"), f"from {quarter} is after the plan's end, {end}."
