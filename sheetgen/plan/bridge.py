"""What changed since the last plan, in US dollars: the difference in spend as a sum over what changed.

Each factor's part is its Shapley value: what its change adds, on average over all orders in which the factors could
have changed. So no order is preferred, and the parts sum to the whole.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sheetgen.catalog.base import Document, read_bounded
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError, SheetgenError, shown
from sheetgen.plan.hardware_by_quarter import Loads
from sheetgen.plan.read_plan import plan_of
from sheetgen.plan.schema import Service
from sheetgen.plan.solve_plan import solved_plan
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.worked_plan import CASE

USERS, CONTEXT, MODEL, ENGINE = "users", "context", "model and precision", "engine facts and speed"
PRICE, CLASS_MIX, HEADROOM, CALENDAR = "price", "class mix", "headroom and survival", "calendar"
FACTORS = (USERS, CONTEXT, MODEL, ENGINE, PRICE, CLASS_MIX, HEADROOM, CALENDAR)
# Those that are another for every load first: what follows changes some services, whose others stay as they were.
IN_TURN = (USERS, PRICE, HEADROOM, CALENDAR, CONTEXT, MODEL, ENGINE, CLASS_MIX)
OF_SOME = frozenset(IN_TURN[4:])
# What of a service, and of the policy, each factor is; the rest of a service is of its users.
OF_SERVICE = {
    CONTEXT: ("request",),
    MODEL: ("model",),
    ENGINE: ("engine", "targets"),
    CLASS_MIX: ("allowed",),
    HEADROOM: ("floor_replicas", "redundancy"),
}
OF_USERS = ("demand", "growth", "launch", "ramp", "retire", "stated_for")
OF_POLICY = {
    CLASS_MIX: ("buy",),
    HEADROOM: (
        "plan_at",
        "headroom_fraction",
        "redundancy",
        "release_after_quarters",
        "near_tie_fraction",
        "moving_cost_usd",
        "move_days",
    ),
}
MOST_BYTES = 50_000_000
CENTS = 100


@dataclass(frozen=True)
class Last:
    """The last plan: as it was written, at the prices of its day, and what it said that its quarters would cost."""

    plan: Plan
    said_usd: float
    where: str


@dataclass(frozen=True)
class Bridge:
    """From the last plan's spend at p50 to this one's; the parts sum to the difference, in whole cents."""

    last_usd: float
    usd: float
    parts: Mapping[str, float]


def checked_record(known: Any) -> dict[str, Any]:
    """A plan as JSON has it. Raises ValueError, KeyError or TypeError where it is none."""
    parts = known["inputs"]["plan"], known["prices"], known["as_of"]
    for one in known["money"]:
        parts += (one["quarter"], *(one[f"{name}_usd"] + 0 for name in CASE))
    return dict(known)


def read_record(path: Path) -> dict[str, Any]:
    """The JSON of a plan. Raises ScenarioError where it is none."""
    where = shown(path, 200)
    try:
        return checked_record(json.loads(read_bounded(path, MOST_BYTES, "Name the JSON of a plan.")))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        why = error if isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError) else "is no plan"
        raise ScenarioError(f"{where}: {str(why).rstrip('.')}. `sheetgen plan PLAN.yaml` writes one as JSON.") from None


def is_record(data: bytes) -> bool:
    """Whether these bytes are the JSON of a plan."""
    try:
        known = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(known, dict) and isinstance(known.get("inputs"), dict) and "services" in known["inputs"]


def plan_of_record(known: Mapping[str, Any], where: str, catalog: Catalog) -> Plan:
    """The plan of a record at the prices of its day. Raises ScenarioError where it cannot be worked out any more."""
    return replace(plan_of(document_of(known, where), catalog), listed=known["prices"])


def document_of(known: Mapping[str, Any], where: str) -> Document:
    """The plan of a record as it was written, of its day."""
    return Document(where, {**known["inputs"], "plan": {**known["inputs"]["plan"], "as_of": known["as_of"]}}, {})


def last_of(known: Mapping[str, Any], where: str, catalog: Catalog) -> Last:
    """The last plan, of a record that was read. Raises ScenarioError where it cannot be worked out any more."""
    said = math.fsum(one["p50_usd"] for one in known["money"])
    try:
        return Last(plan_of_record(known, where, catalog), said, where)
    except SheetgenError as error:
        raise ScenarioError(*(f"{line} (of the last plan)" for line in error.problems)) from None


def bridge(last: Last, plan: Plan, said_usd: float | None = None) -> Bridge:
    """What makes the difference between the last plan and this one; said_usd: what this one's JSON says that it costs,
    where it was made on another day."""
    old = last.plan
    changed = [name for name in IN_TURN if differs(name, old, plan)]
    kept: Loads = {}
    common: frozenset[str] | None = None

    def spend(taken: frozenset[str]) -> float:
        nonlocal common
        if common != (common := taken - OF_SOME):
            kept.clear()  # no load is the same any more
        return spend_usd(mixed(old, plan, taken), kept)

    parts, before, after = shapley(changed, spend)
    said = after if said_usd is None else said_usd
    facts = before - last.said_usd + said - after  # the same plans at what is known today of engines and hardware
    if round(facts * CENTS):
        parts[ENGINE] = parts.get(ENGINE, 0.0) + facts
    in_order = {name: parts[name] for name in FACTORS if name in parts}
    total = round(said * CENTS) - round(last.said_usd * CENTS)
    return Bridge(last.said_usd, said, in_cents(in_order, total))


def spend_usd(plan: Plan, kept: Loads | None = None) -> float:
    """What all quarters cost at p50; kept: loads that were worked out before."""
    return math.fsum(solved_plan(plan, timed=False, kept=kept).money["spend_usd"][:, CASE["p50"]])


def shapley(names: Sequence[str], value: Callable[[frozenset[str]], float]) -> tuple[dict[str, float], float, float]:
    """Each name's part of what all of them add to nothing, and the values of nothing and of all."""
    each = itertools.product((False, True), repeat=len(names))  # the last name changes from one to the next
    subsets = (frozenset(itertools.compress(names, one)) for one in each)
    values = {one: value(one) for one in subsets}
    n, parts = len(names), dict[str, float]()
    for name in names:
        others = [one for one in names if one != name]
        added = []
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for combo in itertools.combinations(others, size):
                without = frozenset(combo)
                added.append(weight * (values[without | {name}] - values[without]))
        parts[name] = math.fsum(added)
    return parts, values[frozenset()], values[frozenset(names)]


def in_cents(parts: Mapping[str, float], total_cents: int) -> dict[str, float]:
    """The parts in whole cents that sum to the total: what rounding leaves goes to the largest of them."""
    cents = {name: round(usd * CENTS) for name, usd in parts.items()}
    if rest := total_cents - sum(cents.values()):
        largest = max(cents, key=lambda name: abs(cents[name]))
        cents[largest] += rest
    return {name: one / CENTS for name, one in cents.items()}


def _same(services: Iterable[Service], others: Mapping[str, Service], names: Iterable[str]) -> bool:
    fields = tuple(names)
    return all(
        getattr(one, name) == getattr(others[one.id], name) for one in services if one.id in others for name in fields
    )


def differs(factor: str, old: Plan, new: Plan) -> bool:
    """Whether a factor is another in the two plans."""
    by_id = {one.id: one for one in new.services}
    if not _same(old.services, by_id, OF_USERS if factor == USERS else OF_SERVICE.get(factor, ())):
        return True
    if any(getattr(old.policy, name) != getattr(new.policy, name) for name in OF_POLICY.get(factor, ())):
        return True
    match factor:
        case "users":
            return [one.id for one in old.services] != [one.id for one in new.services]
        case "price":
            return old.prices != new.prices or _listed(old) != _listed(new)
        case "class mix":
            return old.supply != new.supply
        case "calendar":
            return old.quarters != new.quarters or old.head.fiscal_year_starts != new.head.fiscal_year_starts
    return False


def _listed(plan: Plan) -> Mapping[str, Any]:
    return listed_prices(plan) if plan.listed is None else plan.listed


def listed_prices(plan: Plan) -> dict[str, dict[str, float]]:
    """What every candidate of the plan costs an hour, by instance and purchase class, as listed."""
    found: dict[str, dict[str, float]] = {}
    for key in sorted(plan.questions):
        for one in plan.question(key).candidates:
            found.setdefault(one.instance, {each.purchase: each.usd_per_hour for each in one.prices})
    return found


def mixed(old: Plan, new: Plan, taken: frozenset[str]) -> Plan:
    """The old plan with some factors as in the new one."""

    def of(factor: str) -> Plan:
        return new if factor in taken else old

    users, supply = of(USERS), of(CLASS_MIX)
    known = {id(plan): {one.id: one for one in plan.services} for plan in (old, new)}
    services = []
    for one in users.services:
        if one.stated_for is None and not one.launch:  # demand keeps its day where the calendar is another's
            one = one.model_copy(update={"stated_for": users.head.start})
        fields = {
            name: getattr(known[id(of(factor))].get(one.id, one), name)
            for factor, names in OF_SERVICE.items()
            for name in names
        }
        services.append(one.model_copy(update=fields))
    policy = {name: getattr(of(factor).policy, name) for factor, names in OF_POLICY.items() for name in names}
    prices = of(PRICE)
    return replace(
        new,
        head=of(CALENDAR).head,
        policy=new.policy.model_copy(update=policy),
        services=tuple(services),
        supply=supply.supply,
        gpus=supply.gpus,
        types=supply.types,
        prices=prices.prices,
        listed=prices.listed,
        as_of=new.as_of,
        budget={},
    )
