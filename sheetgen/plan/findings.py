"""Everything that follows from a plan, worked out once for the JSON and for every document."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sheetgen.plan.break_even import with_break_even
from sheetgen.plan.bridge import Bridge, Last, bridge
from sheetgen.plan.cheaper import Closing, Lever, cheaper, closing
from sheetgen.plan.commitments import with_commitments
from sheetgen.plan.decisions import NOW, Decision, Unserved, decisions, in_order, kind, two_ways, unserved
from sheetgen.plan.draws import Draws, drawn, quantiles
from sheetgen.plan.served import Served, served
from sheetgen.plan.spending import budget_verdict, usd_per_million_planned
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.sizing import cost

HOLDS, FAILS = "yes", "no"


@dataclass(frozen=True)
class Check:
    """A statement that should hold before a plan is signed; against: the reasons why it does not."""

    statement: str
    against: Sequence[str]

    @property
    def holds(self) -> bool:
        return not self.against


@dataclass(frozen=True)
class Findings:
    """A plan worked out, its joint draws, what is worth committing, what must be decided, and what changed."""

    answer: Answer
    draws: Draws
    decisions: tuple[Decision, ...]
    unserved: tuple[Unserved, ...]
    last: Last | None
    bridge: Bridge | None
    checks: tuple[Check, ...]
    cheaper: tuple[Lever, ...]
    closing: Closing | None  # of levers that make the budget hold where it does not
    served: tuple[Served, ...]  # where a budget or a quota does not hold

    @property
    def sign_now_usd(self) -> tuple[float, float]:
        """The cost of the orders that are to be signed now, until the plan's end; and what they bind."""
        orders = [order for order in self.decisions if order.what == "order" and kind(self.answer.plan, order) == NOW]
        return math.fsum(order.usd or 0 for order in orders), math.fsum(order.binds_usd for order in orders)


def findings(answer: Answer, last: Last | None = None) -> Findings:
    """Everything that follows from a plan; with the changes since the last one, where that is given."""
    draws, lost = drawn(answer), unserved(answer)
    every = with_commitments(answer, draws, with_break_even(answer, decisions(answer, lost)))
    decided = in_order(two_ways(answer.plan, [*every]))
    levers = cheaper(answer, lost)
    return Findings(
        answer,
        draws,
        decided,
        tuple(lost),
        last,
        None if last is None else bridge(last, answer.plan, math.fsum(answer.money["spend_usd"][:, CASE["p50"]])),
        tuple(checks(answer, decided, lost)),
        levers,
        closing(answer, levers, lost),
        tuple(served(answer, lost)),
    )


def spans(plan: Plan) -> Iterator[tuple[str, int | None, list[int]]]:
    """The plan's quarters, fiscal years where there are several, and all of it: a name, the year, the quarters by
    position."""
    of_year: dict[int, list[int]] = {}
    for q, quarter in enumerate(plan.quarters):
        of_year.setdefault(quarter.year, []).append(q)
        yield str(quarter), None, [q]
    for year, many in of_year.items() if len(of_year) > 1 else ():
        first, last = plan.quarters[many[0]], plan.quarters[many[-1]]
        more = f"–Q{last.number}" if first != last else ""
        yield f"{year}, Q{first.number}{more}", year, many
    yield "all quarters", None, [*range(len(plan.quarters))]


@dataclass(frozen=True)
class Spent:
    """The cost of some quarters together, against their budget."""

    budget_usd: float | None
    usd: Mapping[str, float]  # by quantile, all services at theirs
    reserve_p90_usd: float
    left_p90_usd: float  # NaN without a budget
    together_p90_usd: float  # over joint draws
    verdict: str


def spent(answer: Answer, draws: Draws, many: Sequence[int]) -> Spent:
    """The money of some quarters, by position."""
    plan, left = answer.plan, answer.money["budget_left_usd"]
    budgets = [plan.budget.get(plan.quarters[q]) for q in many]
    at_p50, at_p90 = (math.fsum(float(left[q, CASE[name]]) for q in many) for name in ("p50", "p90"))
    return Spent(
        None if None in budgets else math.fsum(filter(None, budgets)),
        {name: float(answer.money["spend_usd"][[*many], z].sum()) for name, z in CASE.items()},
        float(answer.money["reserve_usd"][[*many], CASE["p90"]].sum()),
        at_p90,
        quantiles(draws.spend_usd[:, [*many]].sum(axis=1))["p90"],
        budget_verdict(at_p50, at_p90),
    )


def unit_cost(answer: Answer, s: int, q: int, z: int) -> float | None:
    """The price of a million tokens, where the demand is a rate: its month over the month's tokens."""
    service = answer.plan.services[s]
    rate, usd = (float(answer.services[name][s, q, z]) for name in ("requests_per_second", "service_month_usd"))
    if not rate:
        return None
    request = answer.plan.question_in(service, answer.plan.quarters[q]).workloads[0]
    quantities = {
        "service_month_usd": usd,
        "requests_per_second": rate,
        "mean_over_peak": float(answer.mean_shares[s, q]),
        "tokens_per_request": request.input_tokens + request.output_tokens,
        "hours_per_month": answer.plan.prices.hours_per_month,
        **cost.CONSTANTS,
    }
    return float(usd_per_million_planned.of(quantities))


def inputs_sha256(answer: Answer) -> str:
    """A fingerprint of all that the plan was worked out from."""
    plan = answer.plan
    sources = {"inputs": plan.data, "as_of": plan.as_of.isoformat(), "catalogs": plan.catalog.catalog_sha256()}
    return hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()


def unpriced(plan: Plan) -> Iterator[str]:
    """Commitments whose price neither the plan nor the catalog has."""
    for committed in plan.supply.committed:
        if committed.usd_per_hour is None and plan.types[committed.type].price(committed.purchase) is None:
            yield (
                f"Commitment {committed.id}: {committed.purchase} of {committed.type} is counted at the price on "
                "demand; give its usd_per_hour"
            )


def checks(answer: Answer, decided: Sequence[Decision], lost: Sequence[Unserved]) -> Iterator[Check]:
    """The statements that should hold before signing."""
    plan = answer.plan
    nothing = [
        f"{plan.services[s].id} in {plan.quarters[q]}: {why}" for (s, q), why in sorted(answer.hardware.nothing.items())
    ]
    nothing += [
        f"{plan.services[gap.service].id} from {gap.first} to {gap.last}: {gap.share:.0%} of its demand at "
        f"{plan.policy.plan_at} has no machine yet"
        for gap in lost
    ]
    yield Check("every service is served", nothing)
    over = [f"{quarter} is {verdict}" for quarter, verdict in answer.over.items()]
    yield Check("every quarter is within its budget", over)
    late = [f"{decision.what} {decision.instance} by {decision.order_by}" for decision in decided if decision.late]
    yield Check("nothing is late", late)
    yield Check("every commitment has a price", [*unpriced(plan)])
    shares = answer.services["own_instances"].sum(axis=0)
    spares, needed = (answer.supply[name].sum(axis=0) for name in ("spare_instances", "needed_instances"))
    is_off = abs(shares + spares - needed).max(initial=0) > 1e-6
    differs = ["the shares of services and the spare machines are not the machines needed"] if is_off else []
    yield Check("services' machines and the spare ones add up", differs)
