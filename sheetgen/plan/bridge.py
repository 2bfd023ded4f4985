"""The difference from the last plan in US dollars, at p50 and of what is to be approved, as a sum over what changed.

Each factor's part is its Shapley value: what its change adds, on average over all orders in which the factors could
have changed. So no order is preferred, and the parts sum to the whole. Of a factor that changed for several services
each has what its own change adds to the whole plan, on average of the last plan and of this one. The rest is of all
services together, as is what changed for the whole plan: who pays for a machine that services share is no cause.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sheetgen.catalog.base import Document, first_fault
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, SheetgenError, shown
from sheetgen.input_files import read_bounded
from sheetgen.plan.hardware_by_quarter import Loads
from sheetgen.plan.quarters import QUARTERS_OF_TERM, Quarter
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.schema import MIX, Committed, Owned, Service, Supply
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.spending import reserve_usd
from sheetgen.plan.stated_plan import Key, Plan
from sheetgen.plan.supplied import paid_shares
from sheetgen.plan.tables import grown_in, share_live, stated_for
from sheetgen.plan.whole_amounts import in_whole_at
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.question.sheet_question import Question
from sheetgen.units import ON_DEMAND

USERS, CONTEXT, MODEL, ENGINE = "users", "context", "model and precision", "engine facts and speed"
PRICE, SUPPLY, HEADROOM, CALENDAR = "price", "supply and class", "headroom and survival", "calendar and orders"
LAUNCHES = "launches and ends"
FACTORS = (USERS, LAUNCHES, CONTEXT, MODEL, ENGINE, PRICE, SUPPLY, HEADROOM, CALENDAR)
# Those that are another for every load first: what follows changes some services, whose others stay as they were.
IN_TURN = (USERS, LAUNCHES, PRICE, HEADROOM, CALENDAR, CONTEXT, MODEL, ENGINE, SUPPLY)
OF_SOME = frozenset(IN_TURN[5:])
# What of a service, and of the policy, each factor is; the rest of a service is of its users.
OF_SERVICE = {
    LAUNCHES: ("launch", "ramp", "retire"),
    CONTEXT: ("request",),
    MODEL: ("model",),
    ENGINE: ("engine", "targets"),
    SUPPLY: ("allowed", "buy"),
    HEADROOM: ("floor_replicas", "redundancy"),
}
OF_DEMAND = ("demand", "profile", "working_days", "time_zone")  # and growth, and the quarter for which it is stated
OF_POLICY = {
    ENGINE: ("measured",),
    SUPPLY: ("buy", "start_minutes"),
    HEADROOM: (
        "plan_at",
        "headroom_fraction",
        "redundancy",
        "release_after_quarters",
        "near_tie_fraction",
        "moving_cost_usd",
        "move_days",
    ),
    CALENDAR: ("approval_days",),
}
MOST_BYTES = 50_000_000
CENTS = 100
A_TRACE = 1e-9  # of a demand
K = TypeVar("K")
Sums = tuple[float, float]  # the spend of all quarters at p50, and what is to be approved


@dataclass(frozen=True)
class Last:
    """The last plan: as it was written, at the prices of its day, and what it said that its quarters would cost, as
    `sums_of` has it. variance: by quarter and service what it planned, and what was spent, where that is given."""

    plan: Plan
    said_usd: Sums
    where: str
    variance: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Calendar:
    """Parts of the calendar's factor, which has no sum for each: quarters that are the last plan's or this one's alone;
    pools and commitments of the former that serve nothing in the latter; services whose demand was to be another by
    this plan's last quarter than in the last plan's first; and machines that were ordered, where those are others."""

    left_out: tuple[str, ...]
    added: tuple[str, ...]
    ended: tuple[str, ...]
    other_demand: tuple[str, ...]
    ordered: tuple[str, ...]


@dataclass(frozen=True)
class Steps:
    """From a sum of the last plan to this one's; the parts sum to the difference, in whole cents. of_services: by
    factor and service; of none what is of all services together."""

    last_usd: float
    usd: float
    of_services: Mapping[tuple[str, str | None], float]

    @property
    def parts(self) -> dict[str, float]:
        """By factor."""
        cents = Counter[str]()
        for (factor, _), usd in self.of_services.items():
            cents[factor] += round(usd * CENTS)
        return {factor: n_cents / CENTS for factor, n_cents in cents.items()}

    def in_whole(self, rate: float) -> Steps:
        """The same in whole amounts of a currency of which so many are a US dollar; see `in_whole_at`."""
        last, now = (in_whole_at(rate, (end,))[0] for end in (self.last_usd, self.usd))
        amounts = in_whole_at(rate, [*self.of_services.values()], now - last)
        return Steps(last, now, dict(zip(self.of_services, amounts, strict=True)))


@dataclass(frozen=True)
class Bridge:
    """From the last plan to this one: the spend at p50, and what is to be approved."""

    p50: Steps
    asked: Steps
    calendar: Calendar

    def in_whole(self, rate: float) -> Bridge:
        """The same in whole amounts, as every document has them."""
        return replace(self, p50=self.p50.in_whole(rate), asked=self.asked.in_whole(rate))

    @property
    def rows(self) -> list[tuple[tuple[str, str | None], float, float]]:
        """By factor and service the parts of both."""
        p50, asked = self.p50.of_services, self.asked.of_services
        return [(key, p50.get(key, 0.0), asked.get(key, 0.0)) for key in dict.fromkeys((*p50, *asked))]


class _Part(BaseModel):
    """A part of a plan's JSON that is read again; what else stands there is left as it is."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, allow_inf_nan=False)


class _QuarterMoney(_Part):
    quarter: str
    p10_usd: float
    p50_usd: float
    p90_usd: float
    owned_usd: float
    committed_usd: float
    by_class_usd: dict[str, float] = {}  # an older plan's JSON has none


class _ServiceRow(_Part):
    id: str
    owner: str | None = None
    quarter: str
    quantile: str
    instance: str | None
    purchase: str | None = None
    concurrent_requests: float | None
    n_replicas: float | None
    n_instances: float | None
    monthly_usd: float | None
    monthly_owned_usd: float = 0


class _SupplyRow(_Part):
    quarter: str
    instance: str
    p50_usd: float


class _Decision(_Part):
    what: str
    kind: str
    instance: str
    n_instances: float
    purchase: str | None
    needed_from: str
    there_on: str | None
    binds_usd: float


class _Policy(_Part):
    buy: str = ON_DEMAND


class _Inputs(_Part):
    plan: dict[str, Any]
    policy: _Policy = _Policy()
    services: list[dict[str, Any]] = Field(min_length=1)


class PlanRecord(_Part):
    """The keys of a plan's JSON that a later plan, its actuals and its workbook read."""

    as_of: str
    inputs: _Inputs
    prices: dict[str, dict[str, float]]
    money: list[_QuarterMoney]
    services: list[_ServiceRow]
    supply: list[_SupplyRow]
    decisions: list[_Decision] = []


def checked_record(record: object) -> dict[str, Any]:
    """A plan as JSON has it. Raises ValueError where it is none, with the first key that is wrong."""
    try:
        PlanRecord.model_validate(record)
    except ValidationError as error:
        raise ValueError(f"is no plan: {first_fault(error, PlanRecord)}") from None
    return cast(dict[str, Any], record)


def read_record(path: Path) -> dict[str, Any]:
    """The JSON of a plan. Raises ScenarioError where it is none."""
    where = shown(path, 200)
    try:
        return checked_record(json.loads(read_bounded(path, MOST_BYTES, "Name the JSON of a plan.", pipes=True)))
    except (ValueError, RecursionError) as error:
        is_unread = isinstance(error, (json.JSONDecodeError, RecursionError))
        why = "is no plan: no JSON that can be read" if is_unread else error
        raise ScenarioError(
            f"{where}: {str(why).rstrip('.')}. `sheetgen plan PLAN.yaml --format json` writes one."
        ) from None


def is_record(data: bytes) -> bool:
    """True where these bytes are the JSON of a plan."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and isinstance(record.get("inputs"), dict) and "services" in record["inputs"]


def plan_of_record(record: Mapping[str, Any], where: str, catalog: Catalog) -> Plan:
    """The plan of a record at the prices of its day. Raises ScenarioError where it cannot be worked out any more."""
    return replace(plan_of(document_of(record, where), catalog), listed=record["prices"])


def document_of(record: Mapping[str, Any], where: str) -> Document:
    """The plan of a record as it was written, of its day."""
    return Document(where, {**record["inputs"], "plan": {**record["inputs"]["plan"], "as_of": record["as_of"]}}, {})


def last_of(record: Mapping[str, Any], where: str, catalog: Catalog) -> Last:
    """The last plan, of a record that was read. Raises ScenarioError where it cannot be worked out any more."""
    try:
        plan = plan_of_record(record, where, catalog)
    except SheetgenError as error:
        raise ScenarioError(*(f"{line} (of the last plan)" for line in error.problems)) from None
    rows, asked, share = record["money"], f"{plan.policy.plan_at}_usd", plan.prices.contingency_fraction
    reserves = (reserve_usd(row[asked], row["committed_usd"], row["owned_usd"], share) for row in rows)
    p50_usd, asked_usd = (math.fsum(row[name] for row in rows) for name in ("p50_usd", asked))
    return Last(plan, (p50_usd, asked_usd + math.fsum(reserves)), where)


def bridge(last: Last, now: Answer) -> Bridge:
    """The parts of the difference between the last plan and this one."""
    old, plan = last.plan, now.plan
    changed = {name: change for name in IN_TURN if (change := changes(name, old, plan)).is_any}
    asked, mixtures = {**old.questions, **plan.questions}, _Mixtures(solved_plan(old, timed=False), now)
    kept: Loads = {}
    common: frozenset[str] | None = None

    def sums(taken: frozenset[str]) -> Any:
        nonlocal common
        if common != (common := taken - OF_SOME):
            kept.clear()  # no load is the same any more
        ends = (not taken, taken == {*changed})
        return mixtures.sums(mixed(old, plan, taken, asked), kept, ends)

    by_factor, before, after = shapley([*changed], sums)
    parts: dict[tuple[str, str | None], Any] = {(name, None): part for name, part in by_factor.items()}
    ends: tuple[tuple[Plan, Plan, Any, int, Loads], ...] = ((old, plan, before, 1, {}), (plan, old, after, -1, {}))
    for name, change in changed.items():
        if len(change.services) == 1 and not change.of_plan:
            parts[name, min(change.services)] = parts.pop((name, None))
            continue
        for service in sorted(change.services):
            adds = [
                sign * (mixtures.sums(changed_plan, loads) - usd)
                for base, other, usd, sign, loads in ends
                if (changed_plan := with_change(base, other, service, name, asked)) is not None
            ]
            parts[name, service] = sum(adds) / len(adds)
            parts[name, None] = parts[name, None] - parts[name, service]
    # The same plans at what is known today of engines and hardware.
    last_usd, now_usd = numpy.array(last.said_usd), numpy.array(sums_of(now))
    parts[ENGINE, None] = parts.get((ENGINE, None), 0.0) + before - last_usd + now_usd - after
    in_order = {key: usd for name in FACTORS for key, usd in parts.items() if key[0] == name}
    p50, asked_for = (_steps(in_order, k, last.said_usd[k], float(now_usd[k])) for k in range(2))
    return Bridge(p50, asked_for, moved_calendar(old, plan))


def _steps(parts: Mapping[tuple[str, str | None], Any], k: int, last_usd: float, usd: float) -> Steps:
    total = round(usd * CENTS) - round(last_usd * CENTS)
    in_whole = in_cents({key: float(sums[k]) for key, sums in parts.items()}, total)
    return Steps(last_usd, usd, {key: amount for key, amount in in_whole.items() if amount})


@dataclass(frozen=True)
class _Mixtures:
    """Plans between two. They are tried without the types of machine that one of the two leaves out, and on those alone
    that one of them has: else a plan between them may be on machines of neither, and dearer than both."""

    old: Answer
    new: Answer

    def sums(self, plan: Plan, kept: Loads, ends: tuple[bool, bool] = (False, False)) -> Any:
        """The sums of a plan between the two. ends: whether it is the old one, or the new one."""
        is_old, is_new = ends
        of_old, of_new = self.old.hardware.left_out, self.new.hardware.left_out
        tried = [*([] if is_new else [of_old]), *([] if is_old else [of_new])]
        if not is_old and not is_new:
            tried.append(self._of_neither)
        return numpy.array(sums_of(solved_plan(plan, timed=False, kept=kept, tried=tried)))

    @cached_property
    def _of_neither(self) -> frozenset[str]:
        """The types of machine on which no service is in either plan."""
        ends = self.old.hardware, self.new.hardware
        able = {name for hardware in ends for load in hardware.ways.values() for name in load.everywhere}
        return frozenset(able - {place.instance for hardware in ends for place in hardware.placed.values()})


def sums_of(answer: Answer) -> Sums:
    """The sums of a plan that are compared."""
    return math.fsum(answer.money["spend_usd"][:, CASE["p50"]]), math.fsum(answer.asked_usd)


def with_change(base: Plan, other: Plan, service: str, factor: str, asked: dict[Key, Question]) -> Plan | None:
    """A plan in which one factor of one service is as in another plan; None where no service is left."""
    named = [entry for entry in other.services if entry.id == service]
    services = [*base.services]
    place = next((s for s, entry in enumerate(services) if entry.id == service), len(services))
    if factor != USERS:
        fields = {name: getattr(named[0], name) for name in OF_SERVICE[factor]}
        services[place] = services[place].model_copy(update=fields)
    else:
        keeps = (entry.model_copy(update={"stated_for": stated_for(other, entry, entry.launch)}) for entry in named)
        services[place : place + 1] = keeps
    return mixed(base, replace(base, services=tuple(services)), frozenset((factor,)), asked) if services else None


def moved_calendar(old: Plan, new: Plan) -> Calendar:
    """The parts of a calendar that is another one in two plans."""
    left_out = [quarter for quarter in old.quarters if quarter not in new.quarters]
    added = [quarter for quarter in new.quarters if quarter not in old.quarters]

    def serving(plan: Plan, many: Sequence[Quarter]) -> list[str]:
        parts: tuple[Owned | Committed, ...] = (*plan.supply.owned, *plan.supply.committed)
        some = [quarter in many for quarter in plan.quarters]
        return [part.id for part in parts if paid_shares(plan, part)[some].any()]

    def level(plan: Plan, service: Service, q: int) -> float:
        since = plan.quarters[q].since(stated_for(plan, service, service.launch))
        return grown_in(service.growth, plan.quarters[q], max(0, since))[0] * [*share_live(service, plan)][q]

    before, still = serving(old, left_out), serving(new, added)
    now = {service.id: service for service in new.services}
    moved = [
        service.id
        for service in old.services
        if service.id in now and not math.isclose(level(old, service, 0), level(new, now[service.id], -1))
    ]
    return Calendar(
        tuple(map(str, left_out)),
        tuple(map(str, added)),
        tuple(name for name in before if name not in still) if added else (),
        tuple(moved) if left_out or added else (),
        tuple(f"{order.count} x {order.type}" for order in new.supply.ordered if order not in old.supply.ordered),
    )


def shapley(names: Sequence[str], value: Callable[[frozenset[str]], Any]) -> tuple[dict[str, Any], Any, Any]:
    """Each name's part of what all of them add to nothing, and the values of nothing and of all."""
    choices = itertools.product((False, True), repeat=len(names))  # the last name changes from one to the next
    subsets = (frozenset(itertools.compress(names, choice)) for choice in choices)
    values = {subset: value(subset) for subset in subsets}
    n, parts = len(names), dict[str, Any]()
    for name in names:
        others = [other for other in names if other != name]
        parts[name] = 0.0
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for combo in itertools.combinations(others, size):
                without = frozenset(combo)
                parts[name] = parts[name] + weight * (values[without | {name}] - values[without])
    return parts, values[frozenset()], values[frozenset(names)]


def in_cents(parts: Mapping[K, float], total_cents: int) -> dict[K, float]:
    """The parts in whole cents that sum to the total: what rounding leaves goes to the largest of them."""
    cents = {name: round(usd * CENTS) for name, usd in parts.items()}
    if rest := total_cents - sum(cents.values()):
        largest = max(cents, key=lambda name: abs(cents[name]))
        cents[largest] += rest
    assert sum(cents.values()) == total_cents
    return {name: n_cents / CENTS for name, n_cents in cents.items()}


@dataclass(frozen=True)
class Changes:
    """Of a factor whether it is another for the whole plan, and the services for which it is."""

    of_plan: bool
    services: frozenset[str]

    @property
    def is_any(self) -> bool:
        return self.of_plan or bool(self.services)


def changes(factor: str, old: Plan, new: Plan) -> Changes:
    """The services, or the plan, of which a factor is another in the two plans."""
    by_id = {service.id: service for service in new.services}
    names = OF_SERVICE.get(factor, ())
    services = {
        service.id
        for service in old.services
        if service.id in by_id and any(getattr(service, name) != getattr(by_id[service.id], name) for name in names)
    }
    of_plan = any(getattr(old.policy, name) != getattr(new.policy, name) for name in OF_POLICY.get(factor, ()))
    match factor:
        case "users":
            services = {service.id for service in old.services} | by_id.keys()
            services -= {service.id for service in old.services if _has_same_users(old, service, new)}
        case "price":
            of_plan |= old.prices != new.prices or _listed(old) != _listed(new)
            # A year's change begins anew at the prices of another day.
            of_plan |= old.quarters[0] != new.quarters[0] and new.prices.expected_change_per_year.p50 != 0
        case "supply and class":
            of_plan |= _but_orders(old) != _but_orders(new)
        case "calendar and orders":
            of_plan |= old.supply.ordered != new.supply.ordered or _run_on(old.supply) != _run_on(new.supply)
            starts = old.head.fiscal_year_starts, new.head.fiscal_year_starts
            of_plan |= old.quarters != new.quarters or starts[0] != starts[1]
            of_plan |= old.as_of != new.as_of and (_waits(old, new.as_of) or _waits(new, old.as_of))
    return Changes(of_plan, frozenset(services))


def _but_orders(plan: Plan) -> Supply:
    return _with_orders(plan.supply, Supply())


def _run_on(supply: Supply) -> dict[str, tuple[str, ...]]:
    """By commitment the services that run on it."""
    return {part.id: part.services for part in supply.committed if part.services}


def _with_orders(supply: Supply, other: Supply) -> Supply:
    """A supply with what another has ordered, and with the services where they run in that."""
    run_on = _run_on(other)
    committed = (part.model_copy(update={"services": run_on.get(part.id, ())}) for part in supply.committed)
    return supply.model_copy(update={"ordered": other.ordered, "committed": tuple(committed)})


def _has_same_users(old: Plan, service: Service, new: Plan) -> bool:
    """True where the demand of a service of the old plan is the new one's in each quarter of that: growth that is
    stated for another quarter may say the same. One that the new plan has not is the same if it has ended by then."""
    other = next((other for other in new.services if other.id == service.id), None)
    if other is None:
        return not any(share_live(service, new))
    if any(getattr(service, name) != getattr(other, name) for name in OF_DEMAND):
        return False
    since, since_other = stated_for(old, service, other.launch), stated_for(new, other, other.launch)
    return all(
        numpy.allclose(
            grown_in(service.growth, quarter, max(0, quarter.since(since))),
            grown_in(other.growth, quarter, max(0, quarter.since(since_other))),
            rtol=A_TRACE,
        )
        for quarter, share in zip(new.quarters, share_live(other, new), strict=True)
        if share
    )


def _waits(plan: Plan, day: datetime.date) -> bool:
    """True where an order of a plan, or a quota that is to be raised, is late on its day, or on another."""
    terms = QUARTERS_OF_TERM if plan.policy.buy == MIX else ()
    ways = {plan.policy.purchase, *(service.buy for service in plan.services if service.buy), *terms}
    for on_day in (replace(plan, as_of=as_of) for as_of in (plan.as_of, day)):
        there = {*(on_day.there_on(way) for way in ways), *(on_day.raised_on(quota) for quota in plan.supply.quota)}
        if any(on_day.position(arrives) > on_day.today_at for arrives in there):
            return True
    return False


def _listed(plan: Plan) -> Mapping[str, Any]:
    return listed_prices(plan) if plan.listed is None else plan.listed


def listed_prices(plan: Plan) -> dict[str, dict[str, float]]:
    """The hourly price of every candidate of the plan, by instance and purchase class, as listed."""
    prices: dict[str, dict[str, float]] = {}
    for key in sorted(plan.questions):
        for candidate in plan.question(key).candidates:
            prices.setdefault(candidate.instance, {price.purchase: price.usd_per_hour for price in candidate.prices})
    return prices


def mixed(old: Plan, new: Plan, taken: frozenset[str], asked: dict[Key, Question] | None = None) -> Plan:
    """The old plan with some factors as in the new one. asked: questions of plans that were mixed before, to which its
    own are added."""

    def of(factor: str) -> Plan:
        return new if factor in taken else old

    users, supply, calendar = of(USERS), of(SUPPLY), of(CALENDAR)
    by_id = {id(plan): {service.id: service for service in plan.services} for plan in (old, new)}
    # Demand that is the same stands as in the old plan, also where the new one, which begins later, says it anew.
    same = {service.id: service for service in old.services if _has_same_users(old, service, new)}
    ids = {service.id for service in users.services}
    ending = [service for name, service in same.items() if name not in ids and any(share_live(service, calendar))]
    stated = [same.get(service.id, service) for service in users.services]
    services = []
    for service in (*stated, *ending):
        fields = {
            name: getattr(by_id[id(of(factor))].get(service.id, service), name)
            for factor, names in OF_SERVICE.items()
            for name in names
        }
        # Demand keeps its day where the calendar is another's, and goes with the launch.
        fields["stated_for"] = stated_for(old if service.id in same else users, service, fields["launch"])
        services.append(service.model_copy(update=fields))
    policy = {name: getattr(of(factor).policy, name) for factor, names in OF_POLICY.items() for name in names}
    prices, every = of(PRICE), {} if asked is None else asked
    plan = replace(
        new,
        head=calendar.head,
        policy=new.policy.model_copy(update=policy),
        services=tuple(services),
        supply=_with_orders(supply.supply, calendar.supply),
        gpus=supply.gpus,
        types={**calendar.types, **supply.types},
        prices=prices.prices,
        listed=prices.listed,
        priced_for=prices.today,
        as_of=calendar.as_of,
        budget={},
        questions=every,
        priced={},
    )
    mine = [plan.key(service, served) for service in services for served in service.model or ()]
    for key in mine:
        plan.question(key)
    return replace(plan, questions={key: every[key] for key in mine})
