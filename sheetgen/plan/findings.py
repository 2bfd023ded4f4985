"""All that a plan has to say, found once: for the JSON and for every document."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sheetgen.plan.break_even import with_break_even
from sheetgen.plan.bridge import Bridge, Last, bridge
from sheetgen.plan.cheaper import Cheaper, cheaper
from sheetgen.plan.commitments import Commitment, commitments, renewal_usd
from sheetgen.plan.decisions import NOW, Decision, Unserved, decisions, in_order, kind, order_by, two_ways, unserved
from sheetgen.plan.draws import Draws, drawn, quantiles
from sheetgen.plan.orders import QUARTERS_OF_TERM, lead_days
from sheetgen.plan.served import Served, served
from sheetgen.plan.spending import budget_verdict, usd_per_million_planned
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.tables import CONSTANTS
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.sizing import cost

HOLDS, FAILS = "yes", "no"


@dataclass(frozen=True)
class Check:
    """What a reader should know before signing; `found`: what speaks against it."""

    what: str
    found: Sequence[str]

    @property
    def holds(self) -> bool:
        return not self.found


@dataclass(frozen=True)
class Findings:
    """A plan worked out, its joint draws, what is worth committing, what must be decided, and what changed."""

    answer: Answer
    draws: Draws
    commitments: tuple[Commitment, ...]
    decisions: tuple[Decision, ...]
    unserved: tuple[Unserved, ...]
    last: Last | None
    bridge: Bridge | None
    checks: tuple[Check, ...]
    cheaper: tuple[Cheaper, ...]
    served: tuple[Served, ...]  # where a budget or a quota does not hold

    @property
    def sign_now_usd(self) -> tuple[float, float]:
        """What the orders cost that are to be signed now, until the plan's end; and what they bind."""
        now = [one for one in self.decisions if one.what == "order" and kind(self.answer.plan, one) == NOW]
        return math.fsum(one.usd or 0 for one in now), math.fsum(one.binds_usd for one in now)


def findings(answer: Answer, last: Last | None = None) -> Findings:
    """All that a plan has to say; with what changed since the last one, where that is given."""
    draws = drawn(answer)
    found = tuple(commitments(answer, draws))
    decided = in_order(two_ways(answer.plan, [*_with_commitments(answer, draws, found)]))
    return Findings(
        answer,
        draws,
        found,
        decided,
        tuple(unserved(answer)),
        last,
        None if last is None else bridge(last, answer.plan, math.fsum(answer.money["spend_usd"][:, CASE["p50"]])),
        tuple(checks(answer, decided)),
        cheaper(answer),
        tuple(served(answer)),
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
    """What some quarters cost together, against their budget."""

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
    """What a million tokens cost, where the demand is a rate: its month over the month's tokens."""
    service = answer.plan.services[s]
    rate, usd = (float(answer.services[name][s, q, z]) for name in ("requests_per_second", "service_month_usd"))
    if not rate:
        return None
    request = answer.plan.question_in(service, answer.plan.quarters[q]).workloads[0]
    known = {
        "service_month_usd": usd,
        "requests_per_second": rate,
        "mean_over_peak": float(answer.mean_shares[s, q]),
        "tokens_per_request": request.input_tokens + request.output_tokens,
        "hours_per_month": answer.plan.prices.hours_per_month,
        **cost.CONSTANTS,
    }
    return float(usd_per_million_planned.of(known))


def inputs_sha256(answer: Answer) -> str:
    """A fingerprint of all that the plan was worked out from."""
    plan = answer.plan
    known = {"inputs": plan.data, "as_of": plan.as_of.isoformat(), "catalogs": plan.catalog.catalog_sha256()}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def _with_commitments(answer: Answer, draws: Draws, found: Sequence[Commitment]) -> Iterator[Decision]:
    """All decisions: a commitment that is worth making where one at the same price ends is one line, a renewal of as
    many."""
    new = {(one.instance, one.purchase, one.first): one for one in found}
    for one in with_break_even(answer, decisions(answer)):
        quarter = answer.plan.quarter_of(one.needed_from)
        if one.what != "renew" or quarter is None:
            yield one
            continue
        assert one.purchase is not None
        worth = new.get((one.instance, one.purchase, quarter))
        if worth is not None and math.isclose(worth.term_usd / worth.n_instances, one.binds_usd / one.n_instances):
            again = _commit(answer, new.pop((one.instance, one.purchase, quarter)))
            yield replace(
                again, what="renew", about=f"{one.about}, {again.about}", late=one.late, break_even=one.break_even
            )
            continue
        n, quarters = one.n_instances, QUARTERS_OF_TERM.get(one.purchase, 1)
        t, month_usd = answer.place[one.instance], one.binds_usd / n / quarters / CONSTANTS["months_in_a_quarter"]
        saved = renewal_usd(answer, draws, t, one.purchase, month_usd, quarter, int(n))
        saves, after = saved or (None, None)
        waiting = one.cost_of_waiting_usd if saves is None else saves / quarters
        worth_it = waiting if waiting and waiting > 0 else None
        yield replace(one, saves_usd=saves, saves_after_usd=after, cost_of_waiting_usd=worth_it)
    yield from (_commit(answer, one) for one in new.values())


def _commit(answer: Answer, one: Commitment) -> Decision:
    """A commitment as a decision."""
    plan = answer.plan
    first = plan.first_day(plan.quarters[one.first])
    day = order_by(plan, first, lead_days(plan, one.purchase))
    return Decision(
        "commit",
        one.instance,
        one.n_instances,
        one.purchase,
        day,
        first,
        one.term_usd * (one.quarters - one.beyond) / one.quarters,
        False,
        one.saves_usd / one.quarters,
        about=f"for {one.quarters} quarters",
        binds_usd=one.term_usd,
        saves_usd=one.saves_usd,
        saves_after_usd=one.saves_after_usd,
    )


def unpriced(plan: Plan) -> Iterator[str]:
    """Commitments whose price neither the plan nor the catalog has."""
    for one in plan.supply.committed:
        if one.usd_per_hour is None and plan.types[one.type].price(one.purchase) is None:
            yield (
                f"Commitment {one.id}: {one.purchase} of {one.type} is counted at the price on demand; give its "
                "usd_per_hour"
            )


def checks(answer: Answer, decided: Sequence[Decision]) -> Iterator[Check]:
    """What a reader should know before signing: each with whether it holds."""
    nothing = [
        f"{answer.plan.services[s].id} in {answer.plan.quarters[q]}: {why}"
        for (s, q), why in sorted(answer.hardware.nothing.items())
    ]
    nothing += [
        f"{answer.plan.services[one.service].id} from {one.first} to {one.last}: {one.share:.0%} of its demand at "
        f"{answer.plan.policy.plan_at} has no machine yet"
        for one in unserved(answer)
    ]
    yield Check("every service is served", nothing)
    yield Check("every quarter is within its budget", [f"{quarter} is {one}" for quarter, one in answer.over.items()])
    late = [f"{one.what} {one.instance} by {one.order_by}" for one in decided if one.late]
    yield Check("nothing is late", late)
    yield Check("every commitment has a price", [*unpriced(answer.plan)])
    shares = answer.services["own_instances"].sum(axis=0)
    spares, needed = (answer.supply[name].sum(axis=0) for name in ("spare_instances", "needed_instances"))
    is_off = abs(shares + spares - needed).max(initial=0) > 1e-6
    off = ["the shares of services and the spare machines are not the machines needed"] if is_off else []
    yield Check("services' machines and the spare ones add up", off)
