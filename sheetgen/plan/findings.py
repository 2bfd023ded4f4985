"""Everything that follows from a plan, worked out once for the JSON and for every document."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy

from sheetgen.answer.confidences import is_below
from sheetgen.catalog.guidance import assumptions, number
from sheetgen.plan.break_even import kept, with_break_even
from sheetgen.plan.bridge import Bridge, Last, bridge
from sheetgen.plan.cheaper import Closing, Lever, Trials, cheaper, closing
from sheetgen.plan.commitments import with_commitments
from sheetgen.plan.decisions import (
    NOW,
    RAISE_QUOTA,
    Decision,
    base_needed_from,
    decisions,
    in_order,
    kind,
    ordered_before_usd,
    two_ways,
    unserved,
    with_others,
    without_ordered_spare,
)
from sheetgen.plan.draws import Draws, drawn, quantiles
from sheetgen.plan.hosted_prices import Hosted, hosted, million_tokens
from sheetgen.plan.measuring import Measured, ToMeasure, measurements, to_measure
from sheetgen.plan.orders import Unserved, class_months
from sheetgen.plan.paid_prices import paid_prices
from sheetgen.plan.placement import At
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER, QUARTERS_OF_TERM
from sheetgen.plan.served import Served, served
from sheetgen.plan.services_table import NAMED, first_named
from sheetgen.plan.solve_plan import solved_plan, without_moves
from sheetgen.plan.spending import budget_verdict, usd_per_million_planned
from sheetgen.plan.stated_plan import Base, Plan
from sheetgen.plan.tables import OF_MONEY, Z, committed_by_quarter
from sheetgen.plan.worked_plan import CASE, Answer, moves_usd
from sheetgen.report import sentences
from sheetgen.report.in_currency import amount_in
from sheetgen.report.notes import is_stale
from sheetgen.report.wording import money, share, sure
from sheetgen.units import CAPACITY_BLOCK, ON_DEMAND, SPOT, USD, count, listed, number_text

HOLDS, FAILS = "yes", "no"
IS_SERVED = "every service is served"
OF_TABLES = "every quarter is within its budget", "nothing is late"  # checks of which the tables speak


@dataclass(frozen=True)
class Check:
    """A statement that should hold before a plan is signed; against: the reasons why it does not; failing: what is so
    where it does not hold."""

    statement: str
    against: Sequence[str]
    failing: str

    @property
    def holds(self) -> bool:
        return not self.against


@dataclass(frozen=True)
class WithoutMoves:
    """The plan without any of the moves that are to be signed now, worked out anew. over_usd: by quarter that is over
    its budget then, the amount at p90 with contingency."""

    n_moves: int
    asked_usd: float
    p50_usd: float
    moves_usd: float  # of the moves that it has itself
    over_usd: Mapping[str, float]


@dataclass(frozen=True)
class Findings:
    """A plan worked out, its joint draws, what is worth committing, what must be decided, and what changed."""

    answer: Answer
    draws: Draws
    decisions: tuple[Decision, ...]
    kept: tuple[Decision, ...]  # of earlier plans' orders
    unserved: tuple[Unserved, ...]
    on_others: tuple[Unserved, ...]  # those that other machines serve, some or all of it
    last: Last | None
    bridge: Bridge | None
    checks: tuple[Check, ...]
    cheaper: tuple[Lever, ...]
    closing: Closing | None  # of levers that make the budget hold where it does not
    without_moves: WithoutMoves | None  # none where no move is to be signed, or a service cannot do without
    served: tuple[Served, ...]  # where a budget or a quota does not hold
    hosted: tuple[Hosted, ...]
    measurements: Mapping[At, Measured]  # by service and quarter
    to_measure: list[ToMeasure]  # that which decides most money first

    @cached_property
    def together_p90_usd(self) -> float:
        """The spend of all quarters that nine of ten joint draws do not exceed."""
        return quantiles(self.draws.spend_usd.sum(axis=1))["p90"]

    @cached_property
    def covered_fraction(self) -> float:
        """The share of joint draws that cost no more than what is to be approved, its contingency counted."""
        return float((self.draws.spend_usd.sum(axis=1) <= sum(self.answer.asked_usd)).mean())

    @property
    def now(self) -> list[Decision]:
        """The decisions that are to be signed now."""
        return [decision for decision in self.decisions if kind(self.answer.plan, decision) == NOW]

    @property
    def sign_now_usd(self) -> tuple[float, float]:
        """The cost of the orders that are to be signed now, until the plan's end; and what they bind."""
        orders = [order for order in self.now if order.what == "order"]
        return math.fsum(order.usd or 0 for order in orders), math.fsum(order.binds_usd for order in orders)

    @cached_property
    def p50_once_signed_usd(self) -> float:
        """The spend of all quarters at p50 where the orders of a term that are to be signed now are signed, at
        `plan_at`, and paid to their ends: at p50 fewer may be needed."""
        answer, plan = self.answer, self.answer.plan
        is_base = {(base.instance, base.purchase, base_needed_from(plan, base)) for base in plan.base}
        orders = [order for order in self.now if order.what == "order" and order.purchase in QUARTERS_OF_TERM]
        signed = [order for order in orders if (order.instance, order.purchase, order.needed_from) not in is_base]
        if not signed:
            return float(answer.money["spend_usd"][:, CASE["p50"]].sum())
        base = (*plan.base, *(_as_base(plan, order) for order in signed))
        grid, _ = answer.at_demand(numpy.array([Z["p50"]]), plan=plan.ordering(base, plan.held))
        return float(grid.spread("spend_usd", OF_MONEY).sum())

    @property
    def offered_now(self) -> list[Decision]:
        """The decisions to sign now that bind money which is in none of the plan's sums."""
        return [decision for decision in self.now if decision.is_offered and decision.binds_usd]

    @cached_property
    def ordered_before_usd(self) -> float:
        """The cost of what earlier plans ordered."""
        return ordered_before_usd(self.answer)

    @property
    def covers_usd(self) -> float:
        """The cost of what covers late orders, without machines of earlier orders, which are a part of their own."""
        answer = self.answer
        every = (answer.money["late_usd"], answer.held_usd_of_types.sum(axis=0))
        late, held = (float(usd[:, answer.case].sum()) for usd in every)
        return late - held

    @property
    def forecast_usd(self) -> float:
        """The cost of the orders on which later plans decide."""
        plan = self.answer.plan
        later = (order for order in self.decisions if order.what == "order" and kind(plan, order) != NOW)
        return math.fsum(order.usd or 0 for order in later)

    @property
    def moves_usd(self) -> float:
        """The cost of moves to other machines, which no sum has."""
        return math.fsum(decision.moving_usd or 0 for decision in self.decisions)

    @cached_property
    def days_in_time(self) -> int:
        """The days of approval with which no decision would be late; 0 where those are too many already."""
        plan = self.answer.plan
        late = [(decision.order_by - plan.as_of).days for decision in self.decisions if decision.late]
        return max(0, plan.policy.approval_days + min(late, default=0))

    @cached_property
    def at_once(self) -> Answer | None:
        """The plan on its machines if the answer came after `days_in_time`; None where that is what it counts on, or
        where nothing is late."""
        plan, days = self.answer.plan, self.answer.plan.policy.approval_days
        if not days or not any(decision.late for decision in self.decisions):
            return None
        policy = plan.policy.model_copy(update={"approval_days": self.days_in_time})
        return solved_plan(replace(plan, policy=policy), timed=False, hardware=self.answer.hardware)


def _as_base(plan: Plan, order: Decision) -> Base:
    """An order of a term as one that is paid whatever the demand."""
    assert order.purchase is not None
    term, needed = QUARTERS_OF_TERM[order.purchase], plan.position(order.needed_from)
    there = plan.position(plan.there_on(order.purchase))
    month_usd = order.binds_usd / order.n_instances / term / MONTHS_IN_A_QUARTER
    return Base(order.instance, order.purchase, int(order.n_instances), needed, max(needed, there), term, month_usd)


def findings(answer: Answer, last: Last | None = None) -> Findings:
    """Everything that follows from a plan; with the changes since the last one, where that is given."""
    draws, lost = drawn(answer), with_others(answer, unserved(answer))
    every = with_commitments(answer, draws, with_break_even(answer, decisions(answer, lost)))
    decided = in_order(two_ways(answer.plan, [*every]))
    trials, measured = Trials(answer, lost), measurements(answer)
    levers = cheaper(trials)
    return Findings(
        answer,
        draws,
        decided,
        tuple(with_break_even(answer, kept(answer))) if answer.plan.supply.ordered else (),
        tuple(lost),
        tuple(gap for gap in answer.waiting if gap.on_others),
        last,
        None if last is None else bridge(last, answer),
        tuple(checks(answer, decided, lost)),
        levers,
        closing(trials, levers),
        _without_moves(answer, decided),
        tuple(served(answer, lost)),
        tuple(hosted(answer)),
        measured,
        to_measure(answer, measured),
    )


def _without_moves(answer: Answer, decided: Sequence[Decision]) -> WithoutMoves | None:
    plan = answer.plan
    signed = [move for move in decided if move.moves is not None and kind(plan, move) == NOW]
    moves = frozenset((s, q) for s, q in answer.hardware.moves for move in signed if _is_of(plan, move, (s, q)))
    other = without_moves(answer, moves) if moves else None
    if other is None:
        return None
    over = {
        quarter: -other.left_usd(q)[1] for q, quarter in enumerate(map(str, plan.quarters)) if quarter in other.over
    }
    at_p50 = float(other.money["spend_usd"][:, CASE["p50"]].sum())
    return WithoutMoves(len(moves), sum(other.asked_usd), at_p50, moves_usd(other, plan), over)


def _is_of(plan: Plan, move: Decision, slot: At) -> bool:
    return slot == (move.moves, plan.quarter_of(move.needed_from))


@dataclass(frozen=True)
class Changed:
    """A decision to sign now, and its number of machines with the levers that close the budget: 0 where it is not to
    be signed then; of a decision that is to be signed then alone n_instances is 0."""

    decision: Decision
    n_instances: float
    n_then: float

    @property
    def less_usd(self) -> float:
        """The money that changes."""
        return self.decision.weight_usd * abs(self.n_then - self.n_instances) / self.decision.n_instances


def changed_now(findings: Findings) -> list[Changed]:
    """The decisions to sign now, or with the levers that close the budget, whose number is another with them; what
    changes most money first."""
    plan, closing = findings.answer.plan, findings.closing
    if closing is None:
        return []

    def subject(decision: Decision) -> tuple[str, str, str | None, int | None]:
        quarter = None if decision.what == RAISE_QUOTA else plan.quarter_of(decision.needed_from)  # there is but one
        return decision.what, decision.instance, decision.purchase, quarter

    # What is offered was not worked out with the levers.
    then = {subject(decision): decision for decision in closing.decisions if not decision.is_offered}
    now = {subject(decision): decision for decision in findings.now if not decision.is_offered}
    changed = []
    for decision in now.values():
        other = then.get(subject(decision))
        changed.append(Changed(decision, decision.n_instances, other.n_instances if other else 0.0))
    for decision in then.values():
        if subject(decision) not in now and kind(plan, decision) == NOW:
            changed.append(Changed(decision, 0.0, decision.n_instances))
    differing = (part for part in changed if part.n_then != part.n_instances)
    return sorted(differing, key=lambda part: -part.less_usd)


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
    """The cost of some quarters together, against their budget; by quantile, all services at theirs."""

    budget_usd: float | None
    usd: Mapping[str, float]
    reserve_usd: Mapping[str, float]  # the contingency
    together_p90_usd: float  # over joint draws
    verdict: str


def spent(answer: Answer, draws: Draws, many: Sequence[int]) -> Spent:
    """The money of some quarters, by position."""
    plan = answer.plan
    budgets = [plan.budget.get(plan.quarters[q]) for q in many]
    usd, reserve, left = (
        {quantile: float(answer.money[name][[*many], z].sum()) for quantile, z in CASE.items()}
        for name in ("spend_usd", "reserve_usd", "budget_left_usd")
    )
    return Spent(
        None if None in budgets else math.fsum(filter(None, budgets)),
        usd,
        reserve,
        quantiles(draws.spend_usd[:, [*many]].sum(axis=1))["p90"],
        budget_verdict(left["p50"], left["p90"]),
    )


def warnings(findings: Findings) -> Iterator[str]:
    """The checks that do not hold, but for those of which the tables speak."""
    committed = findings.answer.plan.supply.committed
    if findings.last and committed and not any(part.services for part in committed):
        yield _NO_SERVICES
    yield from above_planned(findings)
    answer, shed = findings.answer, [gap for decision in findings.decisions for gap in decision.shed]
    for check in findings.checks:
        if not check.holds and check.statement not in OF_TABLES:
            against = check.against
            if check.statement == IS_SERVED and len(shed) == len(findings.unserved):  # of which a decision says more
                waiting = dict.fromkeys(answer.plan.services[gap.service].id for gap in shed)
                against = [*against[: len(against) - len(shed)], *waiting]
            named, n = against[:NAMED], len(against[NAMED:])
            failing = f"{check.failing[0].upper()}{check.failing[1:]}"
            yield f"{failing}: {'; '.join(named)}{f'; and {n} more' if n else ''}."


_NO_SERVICES = (
    "No commitment says which services are on it (supply.committed[].services), so one may leave it without a decision;"
    " sheetgen plan init --from the last plan's JSON writes them."
)


def above_planned(findings: Findings) -> Iterator[str]:
    """The services that had more requests at once at their measured peak than the last plan had planned, by more than
    chance makes of it: three standard deviations of so many independent ones."""
    rows = [row for row in (findings.last.variance if findings.last else ()) if row.get("in_flight_peak") is not None]
    more = {
        f"{row['service']} {number_text(row['in_flight_peak'])}, planned {number_text(round(planned))}": planned
        for row in rows
        if (planned := row.get("planned_at_once")) and row["in_flight_peak"] > planned + 3 * math.sqrt(planned)
    }
    if more:
        yield (
            f"Measured above plan: {len(more)} of {count(len(rows), 'service')} had more requests at once at the peak "
            f"than planned at {findings.answer.plan.policy.plan_at}, beyond chance: {'; '.join(more)}. State their "
            "demand anew before signing, or the slower answers that make more of it at once."
        )


def not_charged(findings: Findings) -> Iterator[str]:
    """The services that no line of the actuals names, though the last plan has a cost of them."""
    rows = [row for row in (findings.last.variance if findings.last else ()) if row["service"] and not row["measured"]]
    if rows:
        names = first_named([*dict.fromkeys(row["service"] for row in rows)])
        yield f"No charge names {names}: what was planned for it counts as not spent."


def answered_at_once(findings: Findings) -> Iterator[str]:
    """The days of approval that late orders count, and what is so if the answer comes in time for them, or on the
    plan's day: on the same machines."""
    at_once = findings.at_once
    if at_once is None:
        return
    plan, ids = findings.answer.plan, [service.id for service in findings.answer.plan.services]
    answered = plan.as_of + datetime.timedelta(days=plan.policy.approval_days)
    waiting, still = ({ids[gap.service] for gap in gaps} for gaps in (findings.unserved, unserved(at_once)))
    days, approval = findings.days_in_time, plan.policy.approval_days
    sooner = "nothing is late" if days else f"they are {count(approval, 'day')} sooner"
    then = [f"with one on {plan.as_of + datetime.timedelta(days=days)} {sooner}"]
    if waiting:
        then.append(f"{len(still)} of {count(len(waiting), 'service')} wait" if still else "no service waits")
    if (less_usd := math.fsum(findings.answer.asked_usd) - math.fsum(at_once.asked_usd)) > 1:
        then.append(f"{in_plan(plan, less_usd)} less is to be approved")
    yield f"The days of late decisions assume an answer on {answered}, the last day of approval; {listed(then)}."


def cautions(answer: Answer, decision: Decision) -> list[str]:
    """That the machines of a decision may be taken away or end on their day, and those of an order may not be free; and
    over how many zones they are."""
    plan, q = answer.plan, answer.plan.quarter_of(decision.needed_from)
    told = [_OF_CLASS[decision.purchase]] if decision.purchase in _OF_CLASS and decision.what in _SIGNED else []
    if decision.what != "order":
        return told
    if decision.n_instances > number(assumptions(plan.catalog), "reservation_above_instances"):
        told.append(sentences.ASK_CAPACITY.format(machines=f"{decision.n_instances:,.0f} machines"))
    losses = {plan.services[s].id: plan.redundancy(s) for s in ([] if q is None else answer.on(decision.instance, q))}
    if over := {name: loss.zones for name, loss in losses.items() if loss.survive == "zone"}:
        told.append(f"over {max(over.values())} zones with those that are there, for {first_named([*over])}")
    return told


_OF_CLASS = {SPOT: sentences.SPOT_TAKEN, CAPACITY_BLOCK: sentences.BLOCK_ENDS}
_SIGNED = ("order", "commit", "renew")


def unit_cost(answer: Answer, s: int, q: int, z: int) -> float | None:
    """The price of a million tokens, where the demand is a rate: its month over the month's tokens."""
    service = answer.plan.services[s]
    if not float(answer.services["requests_per_second"][s, q, z]):
        return None
    request = answer.plan.question_in(service, answer.plan.quarters[q]).workloads[0]
    million = million_tokens(answer, s, q, z, request.input_tokens + request.output_tokens)
    return float(usd_per_million_planned(float(answer.services["service_month_usd"][s, q, z]), million))


def inputs_sha256(answer: Answer) -> str:
    """A fingerprint of all that the plan was worked out from."""
    plan = answer.plan
    sources = {"inputs": plan.data, "as_of": plan.as_of.isoformat(), "catalogs": plan.catalog.catalog_sha256()}
    return hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()


def in_plan(plan: Plan, usd: float) -> str:
    """An amount in words, in the plan's currency."""
    return str(amount_in(money(usd), plan.head.currency, plan.head.fx_rate))


def unpriced(plan: Plan) -> Iterator[str]:
    """Commitments whose price neither the plan nor the catalog has."""
    for committed in plan.supply.committed:
        if committed.usd_per_hour is None and plan.types[committed.type].price(committed.purchase) is None:
            yield (
                f"{committed.id}: {committed.purchase} of {committed.type} is counted at the price on demand, "
                f"{in_plan(plan, float(committed_by_quarter(plan, committed).sum()))}; give its usd_per_hour"
            )


def stale_after(plan: Plan) -> float:
    """The days after which a price is old."""
    return number(assumptions(plan.catalog), "stale_after_days")


def _old_prices(answer: Answer, decided: Sequence[Decision]) -> Iterator[str]:
    """The prices that were read long before the day of the plan, and are not stated in it."""
    plan = answer.plan
    for price in paid_prices(answer, decided):
        if is_stale(price.price_as_of, plan.as_of, stale_after(plan)):
            yield f"{price.subject}, {price.purchase}, of {price.price_as_of}; give its {price.key}"


def _dear_terms(answer: Answer) -> Iterator[str]:
    """The machines that are bought for a term that costs no less than on demand."""
    for machine in answer.types:
        months = class_months(answer.plan, machine.candidate)
        of_term, hours = months.get(machine.buying.purchase), months.get(ON_DEMAND)
        if machine.buying.term and of_term is not None and hours is not None and of_term >= hours:
            costs = f"{machine.buying.purchase} {USD.text(of_term)} a month, {ON_DEMAND} {USD.text(hours)}"
            yield f"{machine.instance}: {costs}; write policy.buy: {ON_DEMAND}"


def _less_sure(answer: Answer) -> Iterator[str]:
    """The services whose machines are less sure than was asked for them, in the quarter in which they are least so."""
    plan = answer.plan
    for s, service in enumerate(plan.services):
        chances = {q: answer.hardware.speed[s, q, answer.case].chance for q in answer.quarters_of(s)}
        if not chances:
            continue
        q = min(chances, key=chances.__getitem__)
        confidence = plan.question_in(service, plan.quarters[q]).settings.confidence
        if is_below(chances[q], confidence):
            yield f"{service.id} is {sure(chances[q])}, {share(confidence)} was requested"


def checks(answer: Answer, decided: Sequence[Decision], lost: Sequence[Unserved]) -> Iterator[Check]:
    """The statements that should hold before signing."""
    plan = answer.plan
    nothing = [
        f"{plan.services[s].id} in {plan.quarters[q]}: {why}" for (s, q), why in sorted(answer.hardware.nothing.items())
    ]
    nothing += [
        f"{plan.services[gap.service].id} {days_text(gap.first, gap.last)}: {gap.share:.0%} of its demand at "
        f"{plan.worst_case} has no machine yet"
        for gap in sorted(lost, key=lambda gap: (plan.priorities[gap.service], -gap.share))
    ]
    waiting = {plan.services[s].id for s, _ in answer.hardware.nothing} | {
        plan.services[gap.service].id for gap in lost
    }
    failing = f"{_are(len(waiting), 'service')} not fully served"
    if lost and not answer.hardware.nothing:
        failing += f" {days_text(min(gap.first for gap in lost), max(gap.last for gap in lost))}"
    yield Check(IS_SERVED, nothing, failing)
    unsure = [*_less_sure(answer)]
    yield Check(
        "every service is as sure as requested",
        unsure,
        f"no hardware is as sure as requested for {count(len(unsure), 'service')}",
    )
    over = [f"{quarter} is {verdict}" for quarter, verdict in answer.over.items()]
    yield Check("every quarter is within its budget", over, f"{_are(len(over), 'quarter')} over budget")
    late = [f"{decision.what} {decision.instance} by {decision.order_by}" for decision in decided if decision.late]
    yield Check("nothing is late", late, f"{_are(len(late), 'decision')} late")
    prices, old, dear = [*unpriced(plan)], [*_old_prices(answer, decided)], [*_dear_terms(answer)]
    yield Check("every commitment has a price", prices, f"{_are(len(prices), 'commitment')} without a price")
    days = f"{stale_after(plan):g} days"
    yield Check(f"no price is older than {days}", old, f"{_are(len(old), 'price')} older than {days}")
    no_less = f"{_are(len(dear), 'term')} no cheaper than the hours on demand"
    yield Check("every term costs less than its hours on demand", dear, no_less)
    unspared = [*without_ordered_spare(answer)]
    yield Check("what was ordered is there when it is needed", unspared, "machines that were ordered come too late")
    shares = answer.services["own_instances"].sum(axis=0)
    spares, needed = (answer.supply[name].sum(axis=0) for name in ("spare_instances", "needed_instances"))
    cut = {q for _, q in answer.hardware.until}  # in which the machines of two days are needed at most
    is_off = any(abs(row).max() > 1e-6 for q, row in enumerate(shares + spares - needed) if q not in cut)
    differs = ["the shares of services and the spare machines are not the machines needed"] if is_off else []
    yield Check("services' machines and the spare ones add up", differs, "the machines do not add up")


def days_text(first: datetime.date, last: datetime.date) -> str:
    """A day, or the first and the last of several."""
    return f"on {first}" if first == last else f"from {first} to {last}"


def _are(n: int, noun: str) -> str:
    """So many of something, with the verb."""
    return f"{count(n, noun)} {'is' if n == 1 else 'are'}"
