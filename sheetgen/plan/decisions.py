"""What must be decided, and by which day: orders, quotas, commitments and pools that end, moves and releases."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sheetgen.plan.schema import Committed, Owned
from sheetgen.plan.spending import (
    arrives_day,
    cover_usd,
    is_late,
    late_instances,
    missing_share,
    order_by_day,
    ordered_instances,
    waiting_usd,
)
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.supplied import term
from sheetgen.plan.tables import CONSTANTS, Type, commitment_month_usd
from sheetgen.plan.worked_plan import Answer
from sheetgen.sizing import cost
from sheetgen.units import PURCHASES

MONTHS_OF_TERM = {"reserved-1yr": 12, "reserved-3yr": 36}  # others run on, or for a quarter

IN_PLACE_OF_ORDERS = ("commit", "renew", "replace owned")


@dataclass(frozen=True)
class Cover:
    """What serves until an order arrives."""

    purchase: str
    month_usd: float  # of one


@dataclass(frozen=True)
class BreakEven:
    """Below which share of the demand planned for fewer machines do, and above which more are needed; none where that
    is not so up to twice the demand."""

    fewer_below: float | None
    more_above: float | None


@dataclass(frozen=True)
class Decision:
    """One thing to decide. usd: until the plan's end, or of the whole term where there is one.

    cost_of_waiting_usd: what a quarter's delay costs more, in the class that covers it; none (or NaN) where nothing
    that costs more does. in_place_of: the day of the order that is in the money, and not placed where this is done.
    """

    what: str
    instance: str
    n_instances: float
    purchase: str | None
    order_by: datetime.date
    needed_from: datetime.date
    usd: float | None
    late: bool
    cost_of_waiting_usd: float | None
    about: str = ""
    cover: Cover | None = None
    break_even: BreakEven | None = None
    saves_usd: float | None = None  # expected, over the term of a commitment; below 0 where it costs more
    in_place_of: datetime.date | None = None
    machine_months: tuple[float, ...] = ()  # of an order, those that are paid by quarter


def decisions(answer: Answer) -> tuple[Decision, ...]:
    """All that must be decided, by the day by which it must."""
    return in_order((*orders(answer), *_quotas(answer), *_endings(answer), *_moves(answer)))


def with_orders(found: Sequence[Decision]) -> Iterator[Decision]:
    """Commitments, renewals and pools with the order of the same machines that they are in place of."""
    ordered = {(one.instance, one.needed_from): one.order_by for one in found if one.what == "order"}
    for one in found:
        other = ordered.get((one.instance, one.needed_from)) if one.what in IN_PLACE_OF_ORDERS else None
        yield replace(one, in_place_of=other)


def in_order(found: Iterable[Decision]) -> tuple[Decision, ...]:
    """Decisions by the day by which they are due."""
    return tuple(sorted(found, key=lambda one: (one.order_by, one.needed_from, one.what, one.instance)))


def served(answer: Answer, one: Decision) -> list[int]:
    """The services that a decision's machines serve then."""
    quarter = answer.plan.quarter_of(one.needed_from)
    return sorted(
        {s for (s, q), each in answer.hardware.placed.items() if each.instance == one.instance and quarter in (None, q)}
    )


def owners(answer: Answer, one: Decision) -> list[str]:
    """Whose a decision is: the owners of those services, or the plan's."""
    plan = answer.plan
    found = [plan.services[s].owner or plan.head.owner for s in served(answer, one)]
    return [*dict.fromkeys(filter(None, found or [plan.head.owner]))]


def lead_days(plan: Plan, what: str) -> float:
    """Days from an order to its delivery, which nine of ten orders keep to; 0 where none is stated."""
    band = plan.supply.lead_time_days.get(what)
    return band.p90 if band else 0.0


def order_by(plan: Plan, first: datetime.date, days: float) -> datetime.date:
    """The day by which approval must be requested, so that what takes so many days is there on the first day."""
    return datetime.date.fromordinal(order_by_day(first.toordinal(), days, plan.policy.approval_days))


def allowed_prices(answer: Answer, instance: str) -> dict[str, float]:
    """By purchase class what an hour of an instance costs as listed, of the classes that may be used: those listed, or
    all but spot, which may be taken away. None of an instance that serves nothing."""
    plan, found = answer.plan, dict[str, float]()
    candidate = next((one.candidate for one in answer.hardware.placed.values() if one.instance == instance), None)
    allowed = plan.supply.allowed
    for purchase in PURCHASES if candidate else ():
        price = candidate.class_price(purchase)  # type: ignore[union-attr]
        listed = purchase in allowed.purchase if allowed.purchase else purchase != "spot"
        may = listed and purchase not in allowed.exclude
        if price is not None and (may or purchase == plan.policy.buy):
            found[purchase] = price.usd_per_hour
    return found


def class_months(plan: Plan, answer: Answer, instance: str) -> dict[str, float]:
    """By purchase class a month of one instance, less the discount."""
    found = {}
    for purchase, listed in allowed_prices(answer, instance).items():
        hours = cost.paid_hours_per_month(
            plan.prices.hours_per_month, cost.HOURS_IN_A_MONTH, int(PURCHASES[purchase].committed)
        )
        usd = cost.discounted_usd_per_hour(listed, plan.prices.discount_fraction)
        found[purchase] = float(cost.instance_month_usd(usd, hours))
    return found


def cover(answer: Answer, instance: str) -> Cover | None:
    """What is there soonest in place of an order: of the classes without a term that may be used the quickest, then the
    cheapest."""
    plan = answer.plan
    months = class_months(plan, answer, instance)
    without_term = (one for one in months if not PURCHASES[one].committed)
    ranked = sorted(without_term, key=lambda one: (lead_days(plan, one), months[one]))
    return Cover(ranked[0], months[ranked[0]]) if ranked else None


def late_usd(answer: Answer) -> list[float]:
    """By quarter what covers the orders that are late costs more than they will, until they are there."""
    plan, usd = answer.plan, [0.0] * len(answer.plan.quarters)
    days = lead_days(plan, plan.policy.buy)
    arrives = arrives_day(plan.as_of.toordinal(), days, plan.policy.approval_days)
    for t, one in enumerate(answer.types):
        gaps = answer.supply["gap"][t, :, answer.case]
        until = cover(answer, one.instance) if gaps.any() else None
        before = late = 0.0
        for q, quarter in enumerate(plan.quarters) if until else ():
            first, after = plan.first_day(quarter), plan.last_day(quarter) + datetime.timedelta(days=1)
            is_over = is_late(order_by(plan, first, days).toordinal(), plan.as_of.toordinal())
            late = late_instances(late, ordered_instances(float(gaps[q]), before), is_over)
            share = missing_share(arrives, first.toordinal(), after.toordinal())
            month = float(answer.supply["quarter_instance_month_usd"][t, q, answer.case])
            usd[q] += cover_usd(late, until.month_usd, month, share, CONSTANTS["months_in_a_quarter"])  # type: ignore[union-attr]
            before = float(gaps[q])
    return usd


def orders(answer: Answer) -> Iterator[Decision]:
    """What must be bought more of than in the quarter before, and what is given back."""
    plan, gaps = answer.plan, answer.supply["gap"][..., answer.case]
    months = answer.supply["quarter_instance_month_usd"][..., answer.case]
    n_months = MONTHS_OF_TERM.get(plan.policy.buy, CONSTANTS["months_in_a_quarter"])
    for t, one in enumerate(answer.types):
        before = 0.0
        for q, quarter in enumerate(plan.quarters):
            now = float(gaps[t, q])
            first = plan.first_day(quarter)
            if now > before:
                kept = _kept_until_end(gaps[t], q, before, now, plan.policy.buy)
                usd = sum(count * float(month) * n_months for count, month in zip(kept, months[t], strict=True))
                machine_months = tuple(count * n_months for count in kept)
                yield _order(answer, one, now - before, first, usd, machine_months)
            elif now < before:
                yield Decision("release", one.instance, before - now, plan.policy.buy, first, first, 0.0, False, None)
            before = now


def _kept_until_end(gaps: Sequence[float], first: int, low: float, high: float, buy: str) -> list[float]:
    """By quarter the machines above `low` and up to `high` that are paid, until fewer are needed; those of a term are
    paid in its first quarter."""
    kept = [0.0] * len(gaps)
    for q in range(first, first + 1 if buy in MONTHS_OF_TERM else len(gaps)):
        count = min(float(gaps[q]), high) - low
        if count <= 0:
            break
        kept[q] = count
    return kept


def _order(
    answer: Answer, one: Type, count: float, first: datetime.date, usd: float, machine_months: tuple[float, ...]
) -> Decision:
    plan = answer.plan
    day = order_by(plan, first, lead_days(plan, plan.policy.buy))
    until = cover(answer, one.instance)
    waiting = None
    if until is not None:
        waiting = waiting_usd(until.month_usd, one.month_usd, count, CONSTANTS["months_in_a_quarter"])
    late = day < plan.as_of
    supply: tuple[Committed | Owned, ...] = (*plan.supply.committed, *plan.supply.owned)
    ended = [each.id for each in supply if _is_of(plan, each, one) and first - _QUARTER <= term(each)[1] < first]
    return Decision(
        "order",
        one.instance,
        count,
        plan.policy.buy,
        day,
        first,
        usd,
        late,
        waiting,
        f"as {' and '.join(ended)} ends" if ended else "",
        until if late else None,
        machine_months=machine_months,
    )


_QUARTER = datetime.timedelta(days=92)


def _is_of(plan: Plan, one: Committed | Owned, of: Type) -> bool:
    """Whether a commitment or a pool of one's own serves a type."""
    return plan.machine(one.type) == of.instance if isinstance(one, Committed) else plan.gpus[one.id].id == of.gpu


def _quotas(answer: Answer) -> Iterator[Decision]:
    """Quotas that are too small: rented machines of the type, bought or committed, in the first such quarter."""
    plan = answer.plan
    rented = (answer.supply["gap"] + answer.supply["committed_instances"])[..., answer.case]
    for quota in plan.supply.quota:
        t = answer.place.get(plan.machine(quota.type))
        over = [q for q in range(len(plan.quarters)) if t is not None and rented[t, q] > quota.limit]
        if t is None or not over:
            continue
        first = plan.first_day(plan.quarters[over[0]])
        day = order_by(plan, first, quota.request_lead_days)
        most = float(rented[t].max())
        yield Decision(
            "raise quota",
            answer.types[t].instance,
            most,
            None,
            day,
            first,
            None,
            day < plan.as_of,
            None,
            about=f"from {quota.limit} to {most:g}",
        )


def _endings(answer: Answer) -> Iterator[Decision]:
    """Commitments and pools of one's own that end within the plan, and that something still needs then."""
    plan = answer.plan
    start, end = plan.first_day(plan.quarters[0]), plan.last_day(plan.quarters[-1])
    months, quarter = answer.supply["quarter_instance_month_usd"], CONSTANTS["months_in_a_quarter"]
    for one in plan.supply.committed:
        last = term(one)[1]
        if not start <= last < end:
            continue
        t = answer.place[plan.machine(one.type)]
        first = last + datetime.timedelta(days=1)
        q = plan.quarter_of(first)
        paid = commitment_month_usd(plan, one)
        n_months = MONTHS_OF_TERM.get(one.purchase, quarter)
        day = order_by(plan, first, lead_days(plan, one.purchase))
        again = min(one.count, float(answer.supply["gap"][t, q, answer.case]))
        waiting = waiting_usd(float(months[t, q, answer.case]), paid, again, quarter)
        yield Decision(
            "renew" if again else "let end",
            answer.types[t].instance,
            again or one.count,
            one.purchase,
            day,
            first,
            paid * again * n_months,
            day < plan.as_of and again > 0,
            waiting if again else None,
            about=f"commitment {one.id}, {one.count} in all",
        )
    for pool in plan.supply.owned:
        last = term(pool)[1]
        if start <= last < end:
            first = last + datetime.timedelta(days=1)
            day = order_by(plan, first, lead_days(plan, "owned"))
            gpu = plan.gpus[pool.id].id
            types = [t for t, one in enumerate(answer.types) if one.gpu == gpu]
            q = plan.quarter_of(first)
            count = max(1.0, pool.count / answer.types[types[0]].gpu_count)
            waiting = count * max(float(months[t, q, answer.case]) for t in types) * quarter - pool.cost_per_quarter
            yield Decision(
                "replace owned",
                answer.types[types[0]].instance,
                count,
                None,
                day,
                first,
                None,
                day < plan.as_of,
                waiting if waiting > 0 else None,
                about=f"pool {pool.id}, {pool.count} x {gpu}",
            )


def _moves(answer: Answer) -> Iterator[Decision]:
    plan = answer.plan
    for (s, q), one in sorted(answer.hardware.placed.items()):
        before = answer.hardware.placed.get((s, q - 1))
        if not one.moved or (before and before.instance == one.instance):
            continue
        first = plan.first_day(plan.quarters[q])
        saves = None if math.isnan(one.saves_usd) else -one.saves_usd
        n = float(answer.services["own_instances"][s, q, answer.case])
        day = order_by(plan, first, 0)
        yield Decision(
            "move",
            one.instance,
            n,
            None,
            day,
            first,
            saves,
            day < plan.as_of,
            None,
            about=f"service {plan.services[s].id} from other hardware",
        )
