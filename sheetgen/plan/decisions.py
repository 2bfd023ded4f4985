"""Decisions and their days: orders, quotas, commitments and pools that end, moves and releases."""

from __future__ import annotations

import datetime
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from sheetgen.plan.needs import machines
from sheetgen.plan.orders import (
    QUARTERS_OF_TERM,
    Cover,
    class_months,
    lead_days,
    quota_of,
    raised_on,
    shed,
    there_on,
)
from sheetgen.plan.placement import BOUGHT, DAYS_IN_A_MONTH, Placed
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER, months_after
from sheetgen.plan.schema import MIX, Committed, Ordered, Owned
from sheetgen.plan.spending import order_by_day, waiting_usd
from sheetgen.plan.stated_plan import Base, Plan
from sheetgen.plan.supplied import term
from sheetgen.plan.tables import Type, Z, commitment_month_usd
from sheetgen.plan.terms import quarters_of_term
from sheetgen.plan.together import moving_usd
from sheetgen.plan.worked_plan import CASE, OF_MONEY, Answer
from sheetgen.sizing.parallelism import needed_replicas
from sheetgen.units import listed, number_text

NOW, FORECAST = "now", "forecast"
RAISE_QUOTA = "raise quota"
BUDGET, QUOTA, MACHINES = "budget", "quota", "machines"  # limits
ORDERED_BEFORE = "ordered before"
A_BIT = 1e-9  # of a machine, by which shares may be off
IN_PLACE_OF_ORDERS = ("commit", "renew", "replace owned")


@dataclass(frozen=True)
class BreakEven:
    """Below which share of the demand planned for fewer machines do, and above which more are needed; none where that
    is not so up to twice the demand."""

    fewer_below: float | None
    more_above: float | None


@dataclass(frozen=True)
class InTime:
    """Machines of another type that are there in time for what is not served, all of it or as much as those hold that
    were ordered before and that nothing else keeps. usd: the cost of those days, at today's price, beside what is
    planned."""

    instance: str
    purchase: str
    n_instances: int
    there_on: datetime.date
    usd: float
    share: float  # of the service, that they serve
    was_ordered: bool = False


@dataclass(frozen=True)
class OnIdle:
    """A share of a service that machines of another type serve which are idle or spare."""

    instance: str
    share: float


@dataclass(frozen=True)
class Unserved:
    """A share of a service that has no machine on some days of a quarter, as no order can be there (limit: MACHINES),
    or as no more may be rented until a quota is raised (QUOTA)."""

    service: int
    quarter: int
    instance: str
    first: datetime.date
    last: datetime.date
    share: float
    limit: str
    other: InTime | None = None  # the cheapest; none where nothing that is allowed is there in time
    on_idle: tuple[OnIdle, ...] = ()  # beside it


@dataclass(frozen=True)
class Decision:
    """One thing to decide. usd: until the plan's end; binds_usd: to the end of the term, whether used or not.

    cost_of_waiting_usd: what a quarter's delay costs more, in the class that covers it; none (or NaN) where nothing
    that costs more does. other: the other way to the same machines, in place of this one and not in the money.
    """

    what: str
    instance: str
    n_instances: float
    purchase: str | None
    order_by: datetime.date
    needed_from: datetime.date
    usd: float | None = None
    late: bool = False
    cost_of_waiting_usd: float | None = None
    about: str = ""
    binds_usd: float = 0.0
    cover: Cover | None = None
    there_on: datetime.date | None = None  # of a late order, or a quota that is raised late
    shed: tuple[Unserved, ...] = ()
    break_even: BreakEven | None = None
    saves_usd: float | None = None  # expected, of a move or over a commitment's term; below 0 where it costs more
    saves_after_usd: float | None = None  # of that what lies after the plan's end
    other: Decision | None = None
    moving_usd: float | None = None  # of a move, which is counted in what it saves
    machine_months: tuple[float, ...] = ()  # of an order, those that are paid at each quarter's price
    p50_usd: float | None = None  # of an order by the hour in place of a term, where demand is at p50

    @property
    def ways(self) -> tuple[Decision, ...]:
        """This decision and what may be done in its place."""
        return (self, *(self.other.ways if self.other else ()))

    @property
    def weight_usd(self) -> float:
        """The money that it is about: what it binds, or costs or saves where it binds nothing."""
        return self.binds_usd or abs(self.usd or self.saves_usd or 0.0)

    @property
    def due(self) -> datetime.date:
        """The day until which every way is open."""
        return min(way.order_by for way in self.ways)


def dated(
    plan: Plan,
    what: str,
    instance: str,
    n_instances: float,
    purchase: str | None,
    needed_from: datetime.date,
    days: float,
    usd: float | None,
    **more: Any,
) -> Decision:
    """A decision with the day by which it is due: what takes so many days after its approval is there when it is
    needed."""
    day = order_by(plan, needed_from, days)
    return Decision(what, instance, n_instances, purchase, day, needed_from, usd, day < plan.as_of, **more)


def kind(plan: Plan, decision: Decision) -> str:
    """NOW where a decision is to be signed now, as it is due before the next plan, a quarter after this one."""
    return NOW if decision.due < months_after(plan.as_of, MONTHS_IN_A_QUARTER) else FORECAST


def decisions(answer: Answer, lost: Sequence[Unserved]) -> tuple[Decision, ...]:
    """All that must be decided, by the day by which it must. lost: what is not served."""
    ordered = _with_hours(answer, _after_moves(answer, orders(answer, lost)))
    return in_order((*ordered, *_quotas(answer, lost), *_endings(answer), *_moves(answer)))


def _after_moves(answer: Answer, decided: Iterable[Decision]) -> Iterator[Decision]:
    """Decisions in which machines that a service leaves are released when the days in which both run are over."""
    plan, placed = answer.plan, answer.hardware.placed
    own = answer.services["own_instances"][..., answer.case]
    for decision in decided:
        q = plan.quarter_of(decision.needed_from)
        if decision.what != "release" or plan.policy.moving_cost_usd is not None or q is None:
            yield decision
            continue
        moved = [s for (s, r), place in placed.items() if r == q and place.moved]
        if q:
            leave = (s for s in moved if (s, q - 1) in placed and placed[s, q - 1].instance == decision.instance)
            left = math.ceil(sum(float(own[s, q - 1]) for s in leave) - A_BIT)
        else:
            left = sum(order.count for order in plan.supply.ordered if _is_left(plan, order, decision.instance, moved))
        stay = min(float(left), decision.n_instances)
        if stay < decision.n_instances:
            yield replace(decision, n_instances=decision.n_instances - stay)
        if stay:
            day = decision.needed_from + datetime.timedelta(days=math.ceil(plan.policy.move_days))
            yield replace(decision, n_instances=stay, order_by=day, needed_from=day, about="when the move is over")


def _is_left(plan: Plan, order: Ordered, instance: str, moved: Sequence[int]) -> bool:
    """True where an earlier order is of these machines, for a service that moves."""
    return plan.instance_of(order) == instance and any(plan.services[s].id in order.services for s in moved)


def _with_hours(answer: Answer, decided: Iterable[Decision]) -> Iterator[Decision]:
    """Orders for a term of which more than half lies after the plan's end have the same machines by the hour beside
    them, at the price of every hour until the plan's end."""
    plan = answer.plan
    for decision in decided:
        q = plan.quarter_of(decision.needed_from)
        n_quarters = len(plan.quarters)
        if decision.what != "order" or decision.purchase not in QUARTERS_OF_TERM or decision.other or q is None:
            yield decision
            continue
        months = class_months(plan, answer.types[answer.place[decision.instance]].candidate)
        by_hour = {way: usd for way, usd in months.items() if way not in QUARTERS_OF_TERM}
        if quarters_of_term(decision.purchase, q, n_quarters) or not by_hour:
            yield decision
            continue
        way = min(by_hour, key=by_hour.__getitem__)
        usd = decision.n_instances * by_hour[way] * sum(plan.months[q:])
        subject = "order", decision.instance, decision.n_instances, way, decision.needed_from, lead_days(plan, way)
        about = f"in place of {decision.purchase}: by the hour"
        yield replace(decision, other=dated(plan, *subject, usd, about=about))


def two_ways(plan: Plan, decided: Sequence[Decision]) -> Iterator[Decision]:
    """Commitments, renewals and pools are the other way of the order of the same machines, where there is one."""
    others = defaultdict[tuple[str, int | None], list[Decision]](list)
    for decision in decided:
        if decision.what in IN_PLACE_OF_ORDERS:
            others[decision.instance, plan.quarter_of(decision.needed_from)].append(decision)
    of_mix = plan.policy.buy == MIX  # whose base is ordered for a term already
    orders = [
        decision
        for decision in decided
        if decision.what == "order" and not (of_mix and decision.purchase in QUARTERS_OF_TERM)
    ]
    ordered = {(decision.instance, plan.quarter_of(decision.needed_from)) for decision in orders}
    for decision in decided:
        key = decision.instance, plan.quarter_of(decision.needed_from)
        if decision in orders:
            other = decision.other
            for way in sorted(others[key], key=lambda way: way.saves_usd or -math.inf):
                other = replace(way, other=other, about=f"in place of {decision.purchase}: {way.about}")
            yield replace(decision, other=other)
        elif decision.what not in IN_PLACE_OF_ORDERS or key not in ordered:
            yield decision


def in_lines(decided: Iterable[Decision]) -> list[tuple[Decision, bool]]:
    """Decisions, those that are late first, each with the other ways below it; and whether a line is such a way."""
    late_first = sorted(decided, key=lambda decision: not decision.late)  # otherwise by their days, as they are
    return [(way, i > 0) for decision in late_first for i, way in enumerate(decision.ways)]


def in_order(decided: Iterable[Decision]) -> tuple[Decision, ...]:
    """Decisions by the day by which they are due."""
    return tuple(
        sorted(decided, key=lambda decision: (decision.due, decision.needed_from, decision.what, decision.instance))
    )


def served(answer: Answer, decision: Decision) -> list[int]:
    """The services that a decision's machines serve then."""
    quarter = answer.plan.quarter_of(decision.needed_from)
    return sorted(
        {
            s
            for (s, q), place in answer.hardware.placed.items()
            if place.instance == decision.instance and quarter in (None, q)
        }
    )


def owners(answer: Answer, decision: Decision) -> list[str]:
    """Whose a decision is: the owners of those services, or the plan's."""
    plan = answer.plan
    names = [plan.services[s].owner or plan.head.owner for s in served(answer, decision)]
    return [*dict.fromkeys(filter(None, names or [plan.head.owner]))]


def order_by(plan: Plan, first: datetime.date, days: float) -> datetime.date:
    """The day by which approval must be requested, so that what takes so many days is there on the first day."""
    return datetime.date.fromordinal(order_by_day(first.toordinal(), days, plan.policy.approval_days))


def _needed_from(plan: Plan, q: int) -> datetime.date:
    """The first day of a quarter on which something that is ordered can be needed: today in the one that runs."""
    return max(plan.first_day(plan.quarters[q]), plan.as_of)


def unserved(answer: Answer) -> list[Unserved]:
    """The loads that are not served until an order or its cover is there, or a quota is raised, by quarter and type.
    Before a service waits it takes of the idle and spare machines that are there on these days, owned, committed or
    ordered, and can hold it, the highest priority first."""
    free, left = defaultdict[datetime.date, Any](lambda: _free(answer)), dict[Unserved, float]()
    on_idle = defaultdict[Unserved, list[OnIdle]](list)
    lacking = [*_lacking(answer)]
    priorities = answer.plan.priorities
    for lack in sorted(lacking, key=lambda gap: (gap.quarter, priorities[gap.service])):
        left[lack], idle = lack.share, free[lack.first]
        for t, machine in enumerate(answer.types):
            there = answer.hardware.on((lack.service, lack.quarter), machine.instance)
            if there is None or machine.instance == lack.instance:
                continue
            n = there.replicas_per_instance
            of_all = math.ceil(there.machines[BOUGHT] * n - A_BIT)
            taken = min(math.floor(idle[t, lack.quarter] * n + A_BIT), math.ceil(left[lack] * of_all - A_BIT))
            idle[t, lack.quarter] -= taken / n
            if taken:
                on_idle[lack].append(OnIdle(machine.instance, min(left[lack], taken / of_all)))
            left[lack] = max(0.0, left[lack] - taken / of_all)
    waiting = (lack for lack in lacking if left[lack] > A_BIT)
    return [replace(lack, share=left[lack], on_idle=tuple(on_idle[lack])) for lack in waiting]


def with_others(answer: Answer, lost: Sequence[Unserved]) -> list[Unserved]:
    """The same with other machines that are there in time, where there are some: each with those that it takes beside
    what is offered to the ones before it for the same days, so that the offers add up."""
    offered = defaultdict[tuple[datetime.date, datetime.date, str, str], float](float)
    every = list[Unserved]()
    for lack in lost:
        ways = [*_in_time(answer, lack, offered)]
        # What serves all of it from its first day on, at the least cost; else what serves most of its days.
        other, filled = min(
            ways,
            key=lambda way: (-_served_days(way[0], lack), way[0].usd, way[0].instance),
            default=(None, 0.0),
        )
        if other is not None:
            way = ORDERED_BEFORE if other.was_ordered else other.purchase
            offered[lack.first, lack.last, other.instance, way] += filled
        every.append(replace(lack, other=other))
    return every


def _in_time(
    answer: Answer, lack: Unserved, offered: Mapping[tuple[datetime.date, datetime.date, str, str], float]
) -> Iterator[tuple[InTime, float]]:
    """Machines of other types that are there on the first of the days, within today's quota, in a class without a long
    term; with what it fills of them. offered: by days, type and class what others fill."""
    plan = answer.plan
    for instance, place in answer.hardware.everywhere((lack.service, lack.quarter)).items():
        filled, quota = place.machines[BOUGHT] * lack.share, quota_of(plan, instance)
        if instance == lack.instance:
            continue
        for purchase, month_usd in class_months(plan, place.candidate).items():
            day, before = there_on(plan, purchase), offered[lack.first, lack.last, instance, purchase]
            of_all = math.ceil(before + filled - A_BIT)
            if quota is not None and of_all > quota.limit:
                continue
            if day <= lack.first and QUARTERS_OF_TERM.get(purchase, 0) <= 1:
                n = of_all - math.ceil(before - A_BIT)
                yield InTime(instance, purchase, n, day, n * month_usd * _months(day, lack), lack.share), filled
        yield from _of_before(answer, lack, place, offered)


def _served_days(other: InTime, lack: Unserved) -> float:
    return round(other.share * _months(other.there_on, lack), 9)


def _of_before(
    answer: Answer,
    lack: Unserved,
    place: Placed,
    offered: Mapping[tuple[datetime.date, datetime.date, str, str], float],
) -> Iterator[tuple[InTime, float]]:
    """The machines of an earlier order that the plan releases, kept until then."""
    instance, ordered = place.instance, answer.plan.ordered(place.instance)
    if ordered is None or ordered[1] > lack.last:
        return
    count, day = ordered
    before = offered[lack.first, lack.last, instance, ORDERED_BEFORE]
    left = count - float(answer.supply["gap"][answer.place[instance], lack.quarter, answer.case])
    replicas = place.replicas_per_instance
    filled = min(place.machines[BOUGHT] * lack.share, math.floor((left - before) * replicas + A_BIT) / replicas)
    if filled > A_BIT:
        n = math.ceil(before + filled - A_BIT) - math.ceil(before - A_BIT)
        usd, share = n * place.instance_month_usd * _months(day, lack), filled / place.machines[BOUGHT]
        purchase = answer.plan.class_of(instance)
        yield InTime(instance, purchase, n, max(day, lack.first), usd, share, was_ordered=True), filled


def _months(day: datetime.date, lack: Unserved) -> float:
    """From a day on those in which a load has no machine."""
    return ((lack.last - max(day, lack.first)).days + 1) / DAYS_IN_A_MONTH


def _free(answer: Answer) -> Any:
    """By type and quarter the machines, parts of them too, that are there on its first day and that services do not
    fill: owned, committed, or ordered in time."""
    names = ("owned_instances", "committed_instances", "gap", "late_instances", "machines_of_all")
    owned, committed, gap, late, filled = (answer.supply[name][..., answer.case] for name in names)
    return numpy.maximum(0.0, owned + committed + gap - late - filled)


def _gaps(answer: Answer, t: int, q: int) -> Iterator[tuple[str, datetime.date, datetime.date, float]]:
    """The days of a quarter on which machines of a type are short: by what they are limited, the first and the last of
    them, and how many are short."""
    buying, plan = answer.types[t].buying, answer.plan
    first, end = _needed_from(plan, q), plan.last_day(plan.quarters[q])
    ordered, whole, beyond = (
        float(answer.supply[name][t, q, answer.case])
        for name in ("late_ordered", "late_instances", "late_beyond_quota")
    )
    parts = ((buying.before, ordered), (buying, whole - ordered - beyond), (buying.beyond, beyond))
    waits = [
        (min((way.covers[q] or way).there_on - _DAY, end), short, QUOTA if way is buying.beyond else MACHINES)
        for way, short in parts
        if way is not None and short and way.unserved[q]
    ]
    for last in sorted({last for last, *_ in waits}):
        left = [(short, limit) for until, short, limit in waits if until >= last]
        if first <= last:
            limits = {limit for _, limit in left}
            yield MACHINES if MACHINES in limits else QUOTA, first, last, sum(short for short, _ in left)
            first = last + _DAY


def _without_spare(answer: Answer, t: int, q: int) -> str:
    """The days of a quarter on which machines of a type are short, though a service on it is to survive a loss."""
    survives = any(answer.plan.redundancy(s).survive != "none" for s in answer.on(answer.types[t].instance, q))
    last = max((last for _, _, last, _ in _gaps(answer, t, q)), default=None) if survives else None
    return f"until {last} a loss takes capacity" if last else ""


def without_ordered_spare(answer: Answer) -> Iterator[str]:
    """The same of machines that were ordered before and come later than they are needed, of which no decision says
    it."""
    late = answer.supply["late_ordered"][..., answer.case]
    for (t, machine), q in itertools.product(enumerate(answer.types), range(len(answer.plan.quarters))):
        if late[t, q] and (until := _without_spare(answer, t, q)):
            yield f"{machine.instance}: {until}, as what was ordered comes later"


def _lacking(answer: Answer) -> Iterator[Unserved]:
    """The loads without a machine of their own type until an order or its cover is there, or a quota is raised, in the
    hour that lacks most; the lowest priority first."""
    plan, case = answer.plan, answer.case
    for (t, machine), q in itertools.product(enumerate(answer.types), range(len(plan.quarters))):
        for limit, first, last, short in _gaps(answer, t, q):
            filled = {s: _serving(answer, s, q) for s in answer.on(machine.instance, q)}
            available = float(answer.supply["needed_instances"][t, q, case]) - short
            loads = plan.week.over_peak[:, q].T  # of a kind of hour, by service
            hours = [{s: n * float(hour[s]) for s, n in filled.items()} for hour in loads]
            lost = [shed(hour, plan.priorities, available) for hour in hours]
            for s in filled:
                if share := max(hour.get(s, 0.0) for hour in lost):
                    yield Unserved(s, q, machine.instance, first, last, share, limit)


def _serving(answer: Answer, s: int, q: int) -> float:
    """The machines, parts of one too, that a service's load takes: without what may be lost, and without its floor."""
    names = ("load_requests", "paced_requests", "replicas_per_instance")
    load, paced, of_machine = (float(answer.services[name][s, q, answer.case]) for name in names)
    return float(machines(needed_replicas(load, paced), of_machine))


def orders(answer: Answer, lost: Sequence[Unserved]) -> Iterator[Decision]:
    """Orders of machines that are more than in the quarter before, or anew as a term ends, and releases."""
    plan, months = answer.plan, answer.supply["quarter_instance_month_usd"][..., answer.case]
    yield from _bases(answer)
    for t, machine in enumerate(answer.types):
        names = ("gap", "ordered_instances", "late_beyond_quota")
        gaps, ordered, short_of_quota = (answer.supply[name][t, :, answer.case] for name in names)
        mine = [lack for lack in lost if (lack.instance, lack.limit) == (machine.instance, MACHINES)]
        allowed = machine.buying.allowed(answer.supply["committed_instances"][t, :, answer.case])
        first_late = True
        for q in range(len(plan.quarters)):
            before, now = float(gaps[q - 1]) if q else machine.buying.n_ordered, float(gaps[q])
            more = float(ordered[q]) if machine.buying.term else now - before
            if more > 0:
                at_its_price = float(answer.machine_months[t][q, :, answer.case].sum())
                paid = _paid_months(machine, gaps, answer.rented_shares[t], allowed, q, (before, now), at_its_price)
                order = _order(
                    answer, machine, more, q, float(sum(n * usd for n, usd in zip(paid, months[t], strict=True)))
                )
                if order.late:  # what is unserved before it is needed follows from it too
                    until = next((r for r in range(q + 1, len(gaps)) if float(gaps[r]) > float(gaps[r - 1])), len(gaps))
                    rows = [lack for lack in mine if (first_late or lack.quarter >= q) and lack.quarter < until]
                    order, first_late = replace(order, shed=tuple(rows)), False
                if machine.buying.term:
                    ends = q - machine.buying.term
                    again = (
                        f"as the term of {number_text(ordered[ends])} from {plan.quarters[ends]} ends"
                        if ends >= 0 and ordered[ends]
                        else ""
                    )
                    binds = more * MONTHS_IN_A_QUARTER * machine.buying.term * float(months[t, q])
                    order = replace(order, binds_usd=binds, about=order.about or again)
                by_hour = "by the hour" if plan.rents_by_hour else ""
                few = f"no more than {machine.buying.quota:g} before the quota is raised" if short_of_quota[q] else ""
                about = ", ".join(filter(None, (order.about, by_hour, few, _without_spare(answer, t, q))))
                yield replace(order, about=about, machine_months=tuple(paid))
            elif more < 0 and not machine.buying.term:
                first = _needed_from(plan, q)
                yield Decision("release", machine.instance, -more, machine.buying.purchase, first, first, 0.0)


def ordered_before_usd(answer: Answer) -> float:
    """The cost of machines that earlier plans ordered, without a term, for as long as this one keeps them."""
    months, usd = answer.supply["quarter_instance_month_usd"][..., answer.case], 0.0
    for t, machine in enumerate(answer.types):
        gaps = answer.supply["gap"][t, :, answer.case]
        allowed = machine.buying.allowed(answer.supply["committed_instances"][t, :, answer.case])
        of_all = 0.0, min(machine.buying.n_ordered, float(gaps[0]))
        paid = _paid_months(machine, gaps, answer.rented_shares[t], allowed, 0, of_all, 0.0)
        usd += math.fsum(n * month_usd for n, month_usd in zip(paid, months[t], strict=True))
    return usd


def _bases(answer: Answer) -> Iterator[Decision]:
    """Orders of a mix for its base."""
    plan = answer.plan
    for base in plan.base:
        first, runs = plan.first_day(plan.quarters[base.first]), base.runs(len(plan.quarters))
        quarter_usd = base.count * base.month_usd * MONTHS_IN_A_QUARTER
        ended = sum(
            earlier.count
            for earlier in plan.base
            if earlier.instance == base.instance and earlier.first + earlier.term == base.first
        )
        about, days = f"base of the mix{f', as {ended} of it end' if ended else ''}", lead_days(plan, base.purchase)
        usd, binds = quarter_usd * len(runs), quarter_usd * base.term
        subject = "order", base.instance, base.count, base.purchase
        yield dated(plan, *subject, first, days, usd, about=about, binds_usd=binds, other=_without(answer, base, first))


def _without(answer: Answer, base: Base, first: datetime.date) -> Decision:
    """The same machines by the hour in place of a term: those of the base that are needed then."""
    plan = answer.plan
    others = tuple(other for other in plan.base if other is not base)
    quantiles = {"p50": CASE["p50"], plan.policy.plan_at: answer.case}
    grid, _ = answer.at_demand(numpy.array([Z[name] for name in quantiles]), plan=replace(plan, base=others))
    paid = base.count * base.month_usd * MONTHS_IN_A_QUARTER * len(base.runs(len(plan.quarters)))
    with_base = answer.money["spend_usd"][:, [*quantiles.values()]]
    spent = grid.spread("spend_usd", OF_MONEY).sum(axis=0) - with_base.sum(axis=0)
    purchase = plan.policy.purchase
    subject = "order", base.instance, base.count, purchase, first, lead_days(plan, purchase)
    about = f"in place of {base.purchase}: by the hour"
    return dated(plan, *subject, float(spent[-1] + paid), about=about, p50_usd=float(spent[0] + paid))


def _paid_months(
    machine: Type,
    gaps: Sequence[float],
    shares: Any,
    allowed: Any,
    first: int,
    of_all: tuple[float, float],
    at_its_price: float,
) -> list[float]:
    """By quarter at whose price months of the machines that are ordered for a quarter are paid within the plan: those
    of a term at that quarter's; others, which are the ones from a number to another (of_all), for the hours in which
    they are rented, until fewer are needed. shares: of the hours, by quarter and machine; allowed: by quarter within
    the quota of today."""
    paid = [0.0] * len(gaps)
    if machine.buying.term:
        paid[first] = at_its_price
        return paid
    low, left = of_all[0], of_all[1] - of_all[0]
    for q in range(first, len(gaps)):
        left = min(left, float(gaps[q]) - low)  # those given back once are another order's
        if left <= 0:
            break
        position, way = numpy.arange(int(low), int(low + left)), machine.buying
        missing = numpy.full(position.shape, way.missing[q])
        if way.beyond is not None:
            missing[position >= allowed[q]] = way.beyond.missing[q]
        if way.before is not None:
            missing[position < way.n_ordered] = way.before.missing[q]
        paid[q] = float((shares[q, position] * (1 - missing)).sum()) * MONTHS_IN_A_QUARTER
    return paid


def _order(answer: Answer, machine: Type, count: float, q: int, usd: float) -> Decision:
    plan, purchase = answer.plan, machine.buying.purchase
    first, quarter = _needed_from(plan, q), plan.first_day(plan.quarters[q])
    until = machine.buying.covers[q]
    in_time = [
        usd_of_month
        for name, usd_of_month in class_months(plan, machine.candidate).items()
        if name not in (purchase, *QUARTERS_OF_TERM) and there_on(plan, name) <= first
    ]
    waiting = None
    if in_time or until:
        month_usd = min(in_time) if in_time else until.month_usd  # type: ignore[union-attr]
        waiting = waiting_usd(month_usd, machine.month_usd, count, MONTHS_IN_A_QUARTER)
    supply: tuple[Committed | Owned, ...] = (*plan.supply.committed, *plan.supply.owned)
    ended = [part.id for part in supply if is_of(plan, part, machine) and quarter - _QUARTER <= term(part)[1] < quarter]
    about, days = f"as {' and '.join(ended)} ends" if ended else "", lead_days(plan, purchase)
    subject = "order", machine.instance, count, purchase
    order = dated(plan, *subject, first, days, usd, cost_of_waiting_usd=waiting, about=about)
    return replace(order, cover=until, there_on=machine.buying.there_on) if order.late else order


_DAY, _QUARTER = datetime.timedelta(days=1), datetime.timedelta(days=92)


def is_of(plan: Plan, part: Committed | Owned, machine: Type) -> bool:
    """True where a commitment or a pool of one's own is of a type."""
    if isinstance(part, Committed):
        return plan.machine(part.type) == machine.instance
    return plan.gpus[part.id].id == machine.gpu


def _quotas(answer: Answer, lost: Sequence[Unserved]) -> Iterator[Decision]:
    """Quotas that are too small: rented machines of the type, bought or committed, in the first such quarter; and who
    waits until they are raised."""
    plan, rented = answer.plan, answer.rented_instances[..., answer.case]
    for t, machine in enumerate(answer.types):
        quota = quota_of(plan, machine.instance)
        over = [q for q in range(len(plan.quarters)) if quota is not None and rented[t, q] > quota.limit]
        if quota is None or not over:
            continue
        most, waiting = float(rented[t].max()), [lack for lack in lost if lack.limit == QUOTA]
        subject, about = (RAISE_QUOTA, machine.instance, most, None), f"from {quota.limit:,} to {number_text(most)}"
        shed_here = tuple(lack for lack in waiting if lack.instance == machine.instance)
        first, days = _needed_from(plan, over[0]), quota.request_lead_days
        decision = dated(plan, *subject, first, days, None, about=about, shed=shed_here)
        yield replace(decision, there_on=raised_on(plan, quota)) if decision.late else decision


def _endings(answer: Answer) -> Iterator[Decision]:
    """Commitments and pools of one's own that end within the plan, and that something still needs then: those of a type
    and class that end in one quarter are one decision, and of them the cheapest are renewed."""
    plan = answer.plan
    start, end = plan.first_day(plan.quarters[0]), plan.last_day(plan.quarters[-1])
    months, quarter = answer.supply["quarter_instance_month_usd"], MONTHS_IN_A_QUARTER
    start = max(start, plan.as_of - _DAY)
    ending = defaultdict[tuple[int, str, int], list[Committed]](list)
    for committed in plan.supply.committed:
        last = term(committed)[1]
        if start <= last < end:
            q = plan.quarter_of(last + _DAY)
            assert q is not None
            ending[answer.place[plan.machine(committed.type)], committed.purchase, q].append(committed)
    for (t, purchase, q), parts in ending.items():
        first = min(term(part)[1] for part in parts) + _DAY
        counts, n_quarters = [part.count for part in parts], QUARTERS_OF_TERM.get(purchase, 1)
        prices = numpy.repeat([commitment_month_usd(plan, part) for part in parts], counts)
        most = (float(answer.supply[name][t, q, answer.case]) for name in ("gap", "needed_instances"))
        again = min(sum(counts), *most)  # what is kept idle for a quarter is not bound for a year
        paid = float(numpy.sort(prices)[: int(again)].mean()) if again else 0.0
        about = f"commitment{'s' * (len(parts) > 1)} {listed([part.id for part in parts])}, {sum(counts)} in all"
        subject = "renew" if again else "let end", answer.types[t].instance, again or sum(counts), purchase
        usd, days = paid * again * quarter * min(n_quarters, len(plan.quarters) - q), lead_days(plan, purchase)
        decision = dated(plan, *subject, first, days, usd, about=about, binds_usd=paid * again * quarter * n_quarters)
        waiting = waiting_usd(float(months[t, q, answer.case]), paid, again, quarter)
        yield replace(decision, cost_of_waiting_usd=waiting) if again else replace(decision, late=False)
    for pool in plan.supply.owned:
        last = term(pool)[1]
        if start <= last < end:
            first, gpu = last + _DAY, plan.gpus[pool.id].id
            types = [t for t, machine in enumerate(answer.types) if machine.gpu == gpu]
            q = plan.quarter_of(first)
            count = math.ceil(pool.count / answer.types[types[0]].gpu_count)
            waiting = count * max(float(months[t, q, answer.case]) for t in types) * quarter - pool.cost_per_quarter
            replaced = "replace owned", answer.types[types[0]].instance, count, None
            about, waits = f"pool {pool.id}, {pool.count} x {gpu}", waiting if waiting > 0 else None
            yield dated(plan, *replaced, first, lead_days(plan, "owned"), None, cost_of_waiting_usd=waits, about=about)


def _moves(answer: Answer) -> Iterator[Decision]:
    plan = answer.plan
    for (s, q), place in sorted(answer.hardware.placed.items()):
        before = answer.hardware.placed.get((s, q - 1))
        if not place.moved or (before and before.instance == place.instance):
            continue
        first = _needed_from(plan, q)
        saves = None if math.isnan(place.saves_usd) else place.saves_usd
        twice = f", which runs {plan.policy.move_days:g} days more" if plan.policy.moving_cost_usd is None else ""
        n = math.ceil(float(answer.services["own_instances"][s, q, answer.case]) - A_BIT)  # some it may share
        left = before.instance if before else listed(plan.stands_on(s, q))
        about = f"service {plan.services[s].id} from {left}{twice}"
        moving, subject = moving_usd(plan, place, plan.months[q]), ("move", place.instance, n, None)
        yield dated(plan, *subject, first, 0, None, about=about, saves_usd=saves, moving_usd=moving)
