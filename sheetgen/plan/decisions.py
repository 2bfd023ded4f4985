"""Decisions and their days: orders, quotas, commitments and pools that end, moves and releases."""

from __future__ import annotations

import datetime
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy

from sheetgen.plan.needs import machines
from sheetgen.plan.orders import Cover, InTime, OnOthers, Unserved, class_months, quota_of, shed
from sheetgen.plan.placement import BOUGHT, DAYS_IN_A_MONTH, Placed
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER, QUARTERS_OF_TERM, months_after
from sheetgen.plan.schema import MIX, Committed, Owned
from sheetgen.plan.spending import waiting_usd
from sheetgen.plan.stated_plan import Base, Held, Plan, term
from sheetgen.plan.tables import OF_MONEY, UNTIL, Type, Z, commitment_month_usd
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.sizing.parallelism import needed_replicas
from sheetgen.units import listed, number_text

NOW, FORECAST = "now", "forecast"
RAISE_QUOTA = "raise quota"
BUDGET, QUOTA, MACHINES = "budget", "quota", "machines"  # limits
A_BIT = 1e-9  # of a machine, by which shares may be off


@dataclass(frozen=True)
class BreakEven:
    """Below which share of the demand planned for fewer machines do, and above which more are needed; none where that
    is not so up to twice the demand."""

    fewer_below: float | None
    more_above: float | None


_DAY = datetime.timedelta(days=1)


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
    # Expected over a commitment's term; of a move what the plan would cost more without it, all other services laid out
    # anew, to approve and at p50, less the cost of the move. Below 0 where it costs more.
    saves_usd: float | None = None
    saves_p50_usd: float | None = None  # of a move
    saves_after_usd: float | None = None  # of that what lies after the plan's end
    other: Decision | None = None
    moving_usd: float | None = None  # of a move, in no sum
    moves: int | None = None  # of a move its service, by position
    machine_months: tuple[float, ...] = ()  # of an order, those that are paid at each quarter's price
    p50_usd: float | None = None  # of an order by the hour in place of a term, where demand is at p50

    @property
    def ways(self) -> tuple[Decision, ...]:
        """This decision and what may be done in its place."""
        return (self, *(self.other.ways if self.other else ()))

    @property
    def term_ends(self) -> datetime.date | None:
        """The last day for which machines that are ordered or committed for a term are paid; none without one."""
        if self.purchase not in QUARTERS_OF_TERM or self.what not in ("order", "commit"):
            return None
        first = max(self.needed_from, self.there_on or self.needed_from)
        return months_after(first, MONTHS_IN_A_QUARTER * QUARTERS_OF_TERM[self.purchase]) - _DAY

    @property
    def is_offered(self) -> bool:
        """True where it takes the place of machines in the plan's sums, and is in none of them itself."""
        return self.what in ("commit", "renew", "replace owned")

    @property
    def in_plan_usd(self) -> float | None:
        """The part of the plan's sums that it is."""
        return None if self.is_offered else self.usd

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
    day = plan.order_by(needed_from, days)
    return Decision(what, instance, n_instances, purchase, day, needed_from, usd, day < plan.as_of, **more)


def kind(plan: Plan, decision: Decision) -> str:
    """NOW where a decision is to be signed now, as it is due before the next plan, a quarter after this one."""
    return NOW if decision.due < months_after(plan.as_of, MONTHS_IN_A_QUARTER) else FORECAST


def decisions(answer: Answer, lost: Sequence[Unserved]) -> tuple[Decision, ...]:
    """All that must be decided, by the day by which it must. lost: what is not served."""
    every = [*orders(answer, lost)]
    ordered, moves = _after_moves(answer, every), _moves(answer, _moves_usd(answer, every))
    return in_order((*ordered, *_quotas(answer, lost), *_endings(answer), *moves))


def _after_moves(answer: Answer, decided: Iterable[Decision]) -> Iterator[Decision]:
    """Decisions in which machines that a service leaves are released when the days in which both run are over."""
    for decision in decided:
        stay, until = _run_on(answer, decision)
        if stay < decision.n_instances:
            yield replace(decision, n_instances=decision.n_instances - stay)
        if stay:
            about = "when the move is over"
            yield replace(decision, n_instances=stay, order_by=until, needed_from=until, about=about)


def _run_on(answer: Answer, decision: Decision) -> tuple[float, datetime.date]:
    """Of machines that are released those that services leave in that quarter, and the day until which they run on."""
    plan, q = answer.plan, answer.plan.quarter_of(decision.needed_from)
    if decision.what != "release" or plan.policy.moving_cost_usd is not None or q is None:
        return 0.0, decision.needed_from
    leave = _left(answer, q, decision.instance, decision.needed_from)
    left = sum(leave.values())
    if q:
        left = math.ceil(left - A_BIT)
    moved_on = max((answer.moves_on(s, q) for s in leave), default=_needed_from(plan, q))
    over = moved_on + datetime.timedelta(days=math.ceil(plan.policy.move_days))
    return min(float(left), decision.n_instances), max(decision.needed_from, over)


def _moved_from(answer: Answer, instance: str) -> float:
    """The machines of earlier orders that still run for services that move from them, and serve no others."""
    policy = answer.plan.policy
    if policy.moving_cost_usd is not None or not policy.move_days:
        return 0.0
    return sum(_left(answer, 0, instance, _needed_from(answer.plan, 0)).values())


def _left(answer: Answer, q: int, instance: str, day: datetime.date) -> dict[int, float]:
    """The machines of a type that services leave as a quarter begins, or on a day within it, by service: their parts of
    them; in the first quarter those that were ordered for them, in even parts."""
    plan, placed = answer.plan, answer.hardware.placed
    moved = [s for (s, r), place in placed.items() if r == q and place.moved]
    on_that_day = [s for s in moved if answer.moves_on(s, q) == day]
    moved = on_that_day or [s for s in moved if (s, q) not in answer.hardware.until]
    if q:
        leave = [s for s in moved if (s, q - 1) in placed and placed[s, q - 1].instance == instance]
        names = {
            s: (f"{UNTIL}own_instances", q) if (s, q) in answer.hardware.until else ("own_instances", q - 1)
            for s in leave
        }
        return {s: float(answer.services[name][s, r, answer.case]) for s, (name, r) in names.items()}
    left = defaultdict[int, float](float)
    for order in plan.supply.ordered:
        leave = [s for s in moved if plan.instance_of(order) == instance and plan.services[s].id in order.services]
        for s in leave:
            left[s] += order.count / len(leave)
    return left


def _moves_usd(answer: Answer, releases: Iterable[Decision]) -> dict[tuple[int, int], float]:
    """By service and quarter the cost of the machines that it leaves in the days in which they run on: of those that
    are released then. Those that are paid anyway, or that others need, cost nothing more."""
    factors = answer.grid.spread("price_factor", OF_MONEY)[:, answer.case]
    usd = defaultdict[tuple[int, int], float](float)
    plan = answer.plan
    for decision in releases:
        q = plan.quarter_of(decision.needed_from)
        stay, _ = _run_on(answer, decision)
        if q is None or not stay:
            continue
        left = _left(answer, q, decision.instance, decision.needed_from)
        moved_on = max(answer.moves_on(s, q) for s in left)
        days = max(0.0, plan.policy.move_days - (decision.needed_from - moved_on).days)
        ways = (answer.hardware.on((s, max(0, q - 1)), decision.instance) for s in left)
        month_usd = next((place.instance_month_usd for place in ways if place), 0.0) * float(factors[q])
        of_all = stay * month_usd * days / DAYS_IN_A_MONTH
        for s, n in left.items():
            usd[s, q] += of_all * n / sum(left.values())
    return usd


def two_ways(plan: Plan, decided: Sequence[Decision]) -> Iterator[Decision]:
    """Commitments, renewals and pools are the other way of the order of the same machines, where there is one."""
    others = defaultdict[Decision, list[Decision]](list)
    of_mix = plan.policy.buy == MIX  # whose base is ordered for a term already
    orders = [
        decision
        for decision in decided
        if decision.what == "order" and not (of_mix and decision.purchase in QUARTERS_OF_TERM)
    ]
    apart = list[Decision]()
    for decision in decided:
        q, instance = plan.quarter_of(decision.needed_from), decision.instance
        mine = [order for order in orders if (order.instance, plan.quarter_of(order.needed_from)) == (instance, q)]
        same_day = [order for order in mine if order.needed_from == decision.needed_from]
        if decision.is_offered and same_day:
            others[same_day[0]].append(decision)
        elif decision.what == "commit":
            apart.append(replace(decision, about=f"in place of {plan.class_of(instance)}: {decision.about}"))
        else:
            apart.append(decision)
    for decision in apart:
        other = decision.other
        for way in sorted(others[decision], key=lambda way: way.saves_usd or -math.inf):
            other = replace(way, other=other, about=f"in place of {decision.purchase}: {way.about}")
        yield replace(decision, other=other) if other else decision


def in_lines(decided: Iterable[Decision]) -> list[tuple[Decision, bool]]:
    """Decisions, those that are late first, each with the other ways below it; and whether a line is such a way."""
    late_first = sorted(decided, key=lambda decision: not decision.late)  # otherwise by their days, as they are
    return [(way, i > 0) for decision in late_first for i, way in enumerate(decision.ways)]


def in_order(decided: Iterable[Decision]) -> tuple[Decision, ...]:
    """Decisions by their days, as they are printed; another way may be due before."""

    def rank(decision: Decision) -> tuple[datetime.date, datetime.date, str, str]:
        return decision.order_by, decision.needed_from, decision.what, decision.instance

    return tuple(sorted(decided, key=rank))


def served(answer: Answer, decision: Decision) -> list[int]:
    """The services that a decision's machines serve then."""
    quarter = answer.plan.quarter_of(decision.needed_from)
    return sorted(
        {
            s
            for (s, q), place in answer.hardware.placed.items()
            if quarter in (None, q) and decision.instance in (place.instance, _until(answer, s, q))
        }
    )


def _until(answer: Answer, s: int, q: int) -> str | None:
    """The machine of a service in the days of a quarter before it moves within it."""
    until = answer.hardware.until.get((s, q))
    return until.place.instance if until else None


def owners(answer: Answer, decision: Decision) -> list[str]:
    """Whose a decision is: the owners of those services, or the plan's."""
    plan = answer.plan
    names = [plan.services[s].owner or plan.head.owner for s in served(answer, decision)]
    return [*dict.fromkeys(filter(None, names or [plan.head.owner]))]


def _needed_from(plan: Plan, q: int) -> datetime.date:
    """The first day of a quarter on which something that is ordered can be needed: today in the one that runs."""
    return max(plan.first_day(plan.quarters[q]), plan.as_of)


def late(answer: Answer) -> tuple[list[Unserved], tuple[Held, ...]]:
    """The loads that have no machine of their own type until an order or its cover is there, or a quota is raised, by
    quarter and type; and the machines of earlier orders that are kept for them. Before a service waits it takes of the
    idle and spare machines of other types that are there on these days, owned, committed or ordered, and can hold it,
    then of those that were ordered before and would be given back; the highest priority first."""
    plan, types, case = answer.plan, answer.types, answer.case
    free, lacking = _free(answer), defaultdict[int, list[Unserved]](list)
    for s, lack in _lacking(answer):
        lacking[s].append(lack)
    every, held = list[Unserved](), list[Held]()
    kept = numpy.array([max(0, machine.buying.n_ordered - _moved_from(answer, machine.instance)) for machine in types])
    for s, start in enumerate(plan.spans.starts):
        in_use, came = numpy.zeros(len(types)), numpy.zeros(len(types), bool)
        for t, machine in enumerate(types):
            for part in answer.rented[t].parts:
                if part.way is machine.buying.before and start >= plan.today_at and not part.way.missing[s]:
                    in_use[t], came[t] = part.gap[s, case], True
        before = numpy.where(came, numpy.maximum(0, kept - in_use), 0)
        left = before.copy()
        for lack in sorted(lacking[s], key=lambda lack: plan.priorities[lack.service]):
            every.append(_on_others(answer, lack, free[:, s], left))
        used = numpy.ceil(before - left - A_BIT)
        kept = numpy.where(came, in_use + used, kept)
        for t in numpy.flatnonzero(used).tolist():
            names = (answer.hardware.on((lack.service, lack.quarter), types[t].instance) for lack in lacking[s])
            month_usd = next(place.instance_month_usd for place in names if place)
            held.append(Held(types[t].instance, int(used[t]), s, month_usd))
    order = attrgetter("quarter", "first", "service")
    return sorted(_without_cuts(every), key=lambda gap: (answer.place[gap.instance], *order(gap))), tuple(held)


def _on_others(answer: Answer, lack: Unserved, free: Any, ordered: Any) -> Unserved:
    """A load that lacks machines, less what it finds on those of other types; they have so much less then. free,
    ordered: by type those that are idle, and those that were ordered before and would be given back."""
    share, on_others = lack.share, list[OnOthers]()
    for was_ordered, left in ((False, free), (True, ordered)):
        for t, machine in enumerate(answer.types):
            place = answer.hardware.on((lack.service, lack.quarter), machine.instance)
            if place is None or machine.instance == lack.instance:
                continue
            n = place.replicas_per_instance
            of_all = math.ceil(place.machines[BOUGHT] * n - A_BIT)
            taken = min(math.floor(left[t] * n + A_BIT), math.ceil(share * of_all - A_BIT))
            left[t] -= taken / n
            if taken:
                on_others.append(OnOthers(machine.instance, min(share, taken / of_all), was_ordered))
            share = max(0.0, share - taken / of_all)
    return replace(lack, share=share if share > A_BIT else 0.0, on_others=tuple(on_others))


def unserved(answer: Answer) -> list[Unserved]:
    """Those of them that are not wholly served on other machines."""
    return [gap for gap in answer.waiting if gap.share]


def _without_cuts(every: Iterable[Unserved]) -> list[Unserved]:
    """Those of a quarter that follow each other, and are the same, as one."""
    whole = dict[Unserved, Unserved]()  # by what would follow it
    for lack in every:
        begins = replace(lack, last=datetime.date.min)
        now = replace(whole.pop(begins, lack), last=lack.last)
        whole[replace(begins, first=lack.last + _DAY)] = now
    return [*whole.values()]


def with_others(answer: Answer, lost: Sequence[Unserved]) -> list[Unserved]:
    """The same with other machines that are there in time, where there are some: each with those that it takes beside
    what is offered to the ones before it for the same days, so that the offers add up."""
    offered = defaultdict[tuple[datetime.date, datetime.date, str, str], float](float)
    every = list[Unserved]()
    for lack in lost:
        ways = [*_in_time(answer, lack, offered)]
        other, filled = min(ways, key=lambda way: (way[0].usd, way[0].instance), default=(None, 0.0))
        if other is not None:
            offered[lack.first, lack.last, other.instance, other.purchase] += filled
        every.append(replace(lack, other=other))
    return every


def _in_time(
    answer: Answer, lack: Unserved, offered: Mapping[tuple[datetime.date, datetime.date, str, str], float]
) -> Iterator[tuple[InTime, float]]:
    """Machines of other types that are there on the first of the days, within today's quota, in a class without a long
    term; with what it fills of them. offered: by days, type and class what others fill."""
    plan, months = answer.plan, ((lack.last - lack.first).days + 1) / DAYS_IN_A_MONTH
    for instance, place in answer.hardware.everywhere((lack.service, lack.quarter)).items():
        filled, quota = place.machines[BOUGHT] * lack.share, quota_of(plan, instance)
        if instance == lack.instance:
            continue
        for purchase, month_usd in class_months(plan, place.candidate).items():
            day, before = plan.there_on(purchase), offered[lack.first, lack.last, instance, purchase]
            of_all = math.ceil(before + filled - A_BIT)
            if quota is not None and of_all > quota.limit:
                continue
            if day <= lack.first and QUARTERS_OF_TERM.get(purchase, 0) <= 1:
                n = of_all - math.ceil(before - A_BIT)
                yield InTime(instance, purchase, n, day, n * month_usd * months), filled


def _free(answer: Answer) -> Any:
    """By type and span the machines, parts of them too, that are there and that services do not fill: owned,
    committed, or ordered in time."""
    filled, case = answer.filled_in_spans, answer.case
    running = [
        (part.owned + part.committed + part.lent + part.gap - part.added("late"))[:, case] for part in answer.rented
    ]
    return numpy.maximum(0.0, numpy.array(running).reshape(filled.shape) - filled)


def _short(answer: Answer, t: int) -> Iterator[tuple[int, str, float]]:
    """The spans in which machines of a type are short, by what they are limited, and how many are short."""
    beyond = answer.types[t].buying.beyond
    for s in range(len(answer.plan.spans)):
        short = [
            (part.way is beyond, float(part.late[s, answer.case] * part.way.unserved[s]))
            for part in answer.rented[t].parts
        ]
        if n := sum(count for _, count in short):
            yield s, QUOTA if all(is_beyond for is_beyond, count in short if count) else MACHINES, n


def _without_spare(answer: Answer, t: int, q: int) -> str:
    """The days of a quarter on which some machines of a type are short, not all, though a service on it is to survive a
    loss."""
    survives = any(answer.plan.redundancy(s).survive != "none" for s in answer.on(answer.types[t].instance, q))
    days, quarters, needed = answer.plan.days, answer.plan.spans.quarters, answer.rented[t].needed[:, answer.case]
    short = (days[s][1] for s, _, n in _short(answer, t) if quarters[s] == q and n < needed[s])
    last = max(short, default=None) if survives else None
    return f"until {last} a loss takes capacity" if last else ""


def without_ordered_spare(answer: Answer) -> Iterator[str]:
    """The same of machines that were ordered before and come later than they are needed, of which no decision says
    it."""
    for (t, machine), q in itertools.product(enumerate(answer.types), range(len(answer.plan.quarters))):
        mine = answer.plan.spans.quarters == q
        of_before = (part for part in answer.rented[t].parts if part.way is machine.buying.before)
        is_late = any(part.late[mine, answer.case].any() for part in of_before)
        if is_late and (until := _without_spare(answer, t, q)):
            yield f"{machine.instance}: {until}, as what was ordered comes later"


def _lacking(answer: Answer) -> Iterator[tuple[int, Unserved]]:
    """By span the loads without a machine of their own type until an order or its cover is there, or a quota is
    raised, in the hour that lacks most; the lowest priority first."""
    plan, case = answer.plan, answer.case
    for t, machine in enumerate(answer.types):
        for span, limit, short in _short(answer, t):
            q = int(plan.spans.quarters[span])
            filled = {s: _serving(answer, s, q, place) for s, place in answer.in_span(machine.instance, span).items()}
            available = float(answer.rented[t].needed[span, case]) - short
            loads = plan.week.over_peak[:, q].T  # of a kind of hour, by service
            hours = [{s: n * float(hour[s]) for s, n in filled.items()} for hour in loads]
            lost = [shed(hour, plan.priorities, available) for hour in hours]
            for s in filled:
                if share := max(hour.get(s, 0.0) for hour in lost):
                    yield span, Unserved(s, q, machine.instance, *plan.days[span], share, limit)


def _serving(answer: Answer, s: int, q: int, place: Placed) -> float:
    """The machines, parts of one too, that a service's load takes in a place: without what may be lost, and without its
    floor."""
    load = float(answer.services["load_requests"][s, q, answer.case])
    return float(machines(needed_replicas(load, place.paced_requests), place.replicas_per_instance))


def orders(answer: Answer, lost: Sequence[Unserved]) -> Iterator[Decision]:
    """Orders of machines that are more than in the span before, or anew as a term ends, and releases."""
    plan, months = answer.plan, answer.supply["quarter_instance_month_usd"][..., answer.case]
    yield from _bases(answer)
    for t, machine in enumerate(answer.types):
        rented, way = answer.rented[t], machine.buying
        gaps, ordered = rented.gap[:, answer.case], rented.added("ordered")[:, answer.case]
        short_of_quota = {
            s for part in rented.parts if part.way is way.beyond for s in part.late[:, answer.case].nonzero()[0]
        }
        mine = [lack for lack in lost if (lack.instance, lack.limit) == (machine.instance, MACHINES)]
        before = numpy.append(way.n_ordered, gaps[:-1])
        more = ordered if way.term else gaps - before
        back = _given_back(answer, t, gaps)
        days = [max(first, plan.as_of) for first, _ in plan.days]
        first_late = True
        for s, q in enumerate(plan.spans.quarters.tolist()):
            if more[s] > 0:
                paid = _paid_months(answer, t, s, (float(before[s]), float(gaps[s])))
                usd = float(sum(n * month_usd for n, month_usd in zip(paid, months[t], strict=True)))
                order = _order(answer, machine, float(more[s]), s, usd)
                if order.late:  # what is unserved before it is needed follows from it too
                    until = next((days[r] for r in range(s + 1, len(gaps)) if more[r] > 0), datetime.date.max)
                    rows = [lack for lack in mine if (first_late or lack.first >= days[s]) and lack.first < until]
                    order, first_late = replace(order, shed=tuple(rows)), False
                if way.term:
                    ended = [p for p in range(s) if way.ends[p] == plan.spans.starts[s] and ordered[p]]
                    again = [f"{number_text(ordered[p])} from {plan.quarters[plan.spans.quarters[p]]}" for p in ended]
                    binds = float(more[s]) * MONTHS_IN_A_QUARTER * way.term * float(months[t, q])
                    about = order.about or (f"as the term of {listed(again)} ends" if again else "")
                    order = replace(order, binds_usd=binds, about=about)
                    order = replace(order, other=_by_hour(answer, t, s, order))
                by_hour = "by the hour" if plan.rents_by_hour and not way.term else ""
                few = f"no more than {way.quota:g} before the quota is raised" if s in short_of_quota else ""
                about = ", ".join(filter(None, (order.about, by_hour, few, _without_spare(answer, t, q))))
                yield replace(order, about=about, machine_months=tuple(paid))
            if back[s] > 0 and not way.term:
                yield Decision("release", machine.instance, float(back[s]), way.purchase, days[s], days[s], 0.0)


def _by_hour(answer: Answer, t: int, s: int, order: Decision) -> Decision | None:
    """The machines of an order for a term by the hour in its place, for the hours in which something needs them: to the
    term's end, or until the next order for a term, which has those then that are needed on. None where that costs more:
    to the term's end than what the order binds, or with the next order than what the order costs in the plan."""
    plan, machine, spans = answer.plan, answer.types[t], answer.plan.spans
    months = {way: usd for way, usd in class_months(plan, machine.candidate).items() if way not in QUARTERS_OF_TERM}
    if not months:
        return None
    way, rented, case, n = min(months, key=months.__getitem__), answer.rented[t], answer.case, order.n_instances
    ordered, term_quarters = rented.added("ordered")[:, case], machine.buying.term or 0
    paid = rented.owned + rented.committed + rented.lent + rented.gap  # those that are lent are needed, too
    runs = [r for r in range(s, len(spans)) if spans.starts[r] < machine.buying.ends[s]]
    needed = {r: numpy.clip(rented.up[r, case] - (paid[r, case] - n), 0, n) for r in runs}
    quarters = spans.quarters.tolist()
    hours_usd = [
        float(needed[r] @ rented.hours * spans.shares[r]) * months[way] * plan.months[quarters[r]] for r in runs
    ]
    ways = [(math.fsum(hours_usd), 0.0, 0.0, s)] if math.fsum(hours_usd) < order.binds_usd else []
    for i, r in enumerate(runs):
        count = max(float(needed[later].max()) for later in runs[i:])
        if i and ordered[r]:
            quarter_usd = count * machine.month_usd * plan.months_of(order.purchase or "")[quarters[r]]
            in_plan = min(float(term_quarters), float(len(plan.quarters) - spans.starts[r]))
            usd = math.fsum(hours_usd[:i]) + quarter_usd * in_plan
            ways += [(usd, quarter_usd * term_quarters, count, r)] if usd < (order.usd or 0.0) else []
    if not ways:
        return None
    usd, binds, count, r = min(ways)
    others = f", and {number_text(count)} more in the order of {plan.days[r][0]}" if count else ""
    about = f"in place of {order.purchase}: by the hour{others}"
    subject = "order", order.instance, n, way, order.needed_from, plan.lead_days(way)
    return dated(plan, *subject, usd, about=about, binds_usd=binds)


def _given_back(answer: Answer, t: int, gaps: Any) -> Any:
    """By span the machines of a type that are given back: those that are fewer than in the one before, with those that
    are held for services that wait, which are not given back before they come."""
    way, held = answer.types[t].buying, numpy.zeros(len(gaps))
    for part in answer.plan.held:
        held[part.span] = part.count * (part.instance == answer.types[t].instance) or held[part.span]
    for s in reversed(numpy.flatnonzero([] if way.before is None else way.before.missing[:-1])):
        held[s] = max(held[s], held[s + 1])
    counts = gaps + held
    return numpy.maximum(0, numpy.append(way.n_ordered, counts[:-1]) - counts)


def ordered_before_usd(answer: Answer) -> float:
    """The cost of machines that earlier plans ordered, without a term, for as long as this one keeps them."""
    months, usd = answer.supply["quarter_instance_month_usd"][..., answer.case], 0.0
    for t, machine in enumerate(answer.types):
        if n := min(machine.buying.n_ordered, float(answer.rented[t].gap[0, answer.case])):
            paid = _paid_months(answer, t, 0, (0.0, n))
            usd += math.fsum(n * month_usd for n, month_usd in zip(paid, months[t], strict=True))
    return usd + float(answer.held_usd_of_types[..., answer.case].sum())


def _bases(answer: Answer) -> Iterator[Decision]:
    """Orders of a mix for its base."""
    plan = answer.plan
    for base in plan.base:
        first = base_needed_from(plan, base)
        quarter_usd = base.count * base.month_usd * MONTHS_IN_A_QUARTER
        ended = sum(
            earlier.count for earlier in plan.base if earlier.instance == base.instance and earlier.end == base.needed
        )
        about, days = f"base of the mix{f', as {ended} of it end' if ended else ''}", plan.lead_days(base.purchase)
        usd, binds = quarter_usd * math.fsum(base.shares(len(plan.quarters))), quarter_usd * base.term
        subject = "order", base.instance, base.count, base.purchase
        other = _without(answer, base, first)
        order = dated(plan, *subject, first, days, usd, about=about, binds_usd=binds, other=other)
        if order.late:  # the hours of the days before it comes are in the orders on demand
            machine, by_hour = answer.types[answer.place[base.instance]], plan.there_on(plan.policy.purchase)
            cover = Cover(plan.policy.purchase, machine.month_usd, by_hour)
            order = replace(order, cover=cover, there_on=plan.there_on(base.purchase))
        yield order


def base_needed_from(plan: Plan, base: Base) -> datetime.date:
    """The day from which on an order of a mix's base is needed."""
    return max(plan.day_at(base.needed), plan.as_of)


def _without(answer: Answer, base: Base, first: datetime.date) -> Decision:
    """The same machines by the hour in place of a term: those of the base that are needed then."""
    plan = answer.plan
    others = tuple(other for other in plan.base if other is not base)
    quantiles = {"p50": CASE["p50"], plan.policy.plan_at: answer.case}
    grid, _ = answer.at_demand(numpy.array([Z[name] for name in quantiles]), plan=plan.ordering(others, plan.held))
    paid = base.count * base.month_usd * MONTHS_IN_A_QUARTER * math.fsum(base.shares(len(plan.quarters)))
    with_base = answer.money["spend_usd"][:, [*quantiles.values()]]
    spent = grid.spread("spend_usd", OF_MONEY).sum(axis=0) - with_base.sum(axis=0)
    purchase = plan.policy.purchase
    subject = "order", base.instance, base.count, purchase, first, plan.lead_days(purchase)
    about = f"in place of {base.purchase}: by the hour"
    return dated(plan, *subject, float(spent[-1] + paid), about=about, p50_usd=float(spent[0] + paid))


def _paid_months(answer: Answer, t: int, first: int, of_all: tuple[float, float]) -> list[float]:
    """By quarter at whose price months of the machines that are ordered for a span are paid within the plan: those of
    a term at that one's; others, which are the ones from a number to another (of_all), for the hours in which they are
    rented, until fewer are needed."""
    rented, spans, case = answer.rented[t], answer.plan.spans, answer.case
    paid = [0.0] * spans.n_quarters
    if answer.types[t].buying.term:
        paid[spans.quarters[first]] = float(rented.added("machine_months")[first, :, case].sum())
        return paid
    low, left = of_all[0], of_all[1] - of_all[0]
    for s in range(first, len(spans)):
        left = min(left, float(rented.gap[s, case]) - low)  # those given back once are another order's
        if left <= 0:
            break
        shares = answer.paid_shares[t][s, int(low) : int(low + left)]
        paid[spans.quarters[s]] += float(shares.sum() * spans.shares[s]) * MONTHS_IN_A_QUARTER
    return paid


def _order(answer: Answer, machine: Type, count: float, s: int, usd: float) -> Decision:
    plan, purchase = answer.plan, machine.buying.purchase
    day, q = plan.days[s][0], plan.spans.quarters[s]
    first = max(day, plan.as_of)
    until = next(
        (cover for cover, r in zip(machine.buying.covers, plan.spans.quarters, strict=True) if cover and r == q), None
    )
    in_time = [
        usd_of_month
        for name, usd_of_month in class_months(plan, machine.candidate).items()
        if name not in (purchase, *QUARTERS_OF_TERM) and plan.there_on(name) <= first
    ]
    waiting = None
    if in_time or until:
        month_usd = min(in_time) if in_time else until.month_usd  # type: ignore[union-attr]
        waiting = waiting_usd(month_usd, machine.month_usd, count, MONTHS_IN_A_QUARTER)
    supply: tuple[Committed | Owned, ...] = (*plan.supply.committed, *plan.supply.owned)
    ended = [part.id for part in supply if is_of(plan, part, machine) and term(part)[1] == day]
    about, days = f"as {' and '.join(ended)} ends" if ended else "", plan.lead_days(purchase)
    subject = "order", machine.instance, count, purchase
    order = dated(plan, *subject, first, days, usd, cost_of_waiting_usd=waiting, about=about)
    return replace(order, cover=until, there_on=machine.buying.there_on) if order.late else order


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
        yield replace(decision, there_on=plan.raised_on(quota)) if decision.late else decision


def _endings(answer: Answer) -> Iterator[Decision]:
    """Commitments and pools of one's own that end within the plan, and that something still needs then: those of a type
    and class that end in one quarter are one decision, and of them the cheapest are renewed."""
    plan = answer.plan
    start, end = plan.first_day(plan.quarters[0]), plan.last_day(plan.quarters[-1])
    months, quarter = answer.supply["quarter_instance_month_usd"], MONTHS_IN_A_QUARTER
    start = max(start, plan.as_of - _DAY)
    ending = defaultdict[tuple[int, str, int], list[Committed]](list)
    for committed in plan.supply.committed:
        after = term(committed)[1]
        if start < after <= end:
            q = plan.quarter_of(after)
            assert q is not None
            ending[answer.place[plan.machine(committed.type)], committed.purchase, q].append(committed)
    for (t, purchase, q), parts in ending.items():
        first = min(term(part)[1] for part in parts)
        counts, n_quarters = [part.count for part in parts], QUARTERS_OF_TERM.get(purchase, 1)
        prices = numpy.repeat([commitment_month_usd(plan, part) for part in parts], counts)
        short = answer.rented[t].short[:, answer.case]
        last = min(q + n_quarters, len(plan.quarters))
        # What is kept idle for a quarter is not bound for a year, nor what is needed to the end of this one alone.
        again = min(sum(counts), short[q], max(short[q + 1 : last], default=short[q]))
        paid = float(numpy.sort(prices)[: int(again)].mean()) if again else 0.0
        about = f"commitment{'s' * (len(parts) > 1)} {listed([part.id for part in parts])}, {sum(counts)} in all"
        subject = "renew" if again else "let end", answer.types[t].instance, again or sum(counts), purchase
        usd, days = paid * again * quarter * min(n_quarters, len(plan.quarters) - q), plan.lead_days(purchase)
        decision = dated(plan, *subject, first, days, usd, about=about, binds_usd=paid * again * quarter * n_quarters)
        waiting = float(waiting_usd(float(months[t, q, answer.case]), paid, again, quarter))
        yield replace(decision, cost_of_waiting_usd=waiting) if again else replace(decision, late=False)
    for pool in plan.supply.owned:
        first, gpu = term(pool)[1], plan.gpus[pool.id].id
        if start < first <= end:
            types = [t for t, machine in enumerate(answer.types) if machine.gpu == gpu]
            q = plan.quarter_of(first)
            assert q is not None
            count = math.ceil(pool.count / answer.types[types[0]].gpu_count)
            if not _is_missed(answer, types, q):
                about = f"pool {pool.id}, {pool.count} x {gpu}, which nothing needs then"
                yield Decision("let end", answer.types[types[0]].instance, count, None, first, first, about=about)
                continue
            waiting = count * max(float(months[t, q, answer.case]) for t in types) * quarter - pool.cost_per_quarter
            replaced = "replace owned", answer.types[types[0]].instance, count, None
            about, waits = f"pool {pool.id}, {pool.count} x {gpu}", waiting if waiting > 0 else None
            yield dated(plan, *replaced, first, plan.lead_days("owned"), None, cost_of_waiting_usd=waits, about=about)


def _is_missed(answer: Answer, types: Sequence[int], q: int) -> bool:
    """True where machines of these types are bought in a quarter, or a service is on another type as it begins."""
    placed, names = answer.hardware.placed, {answer.types[t].instance for t in types}
    left = (s for t in types for s in (answer.on(answer.types[t].instance, q - 1) if q else ()))
    moved = any((s, q) in placed and placed[s, q].instance not in names for s in left)
    return moved or bool(answer.supply["gap"][[*types], q, answer.case].any())


def _before_pool(answer: Answer, instance: str, q: int) -> str:
    """That an owned pool is there only after a quarter has begun, and others are rented until then."""
    plan, t = answer.plan, answer.place[instance]
    first, last = plan.first_day(plan.quarters[q]), plan.last_day(plan.quarters[q])
    comes = [pool for pool in plan.supply.owned if first < term(pool)[0] <= last]
    mine = [pool for pool in comes if plan.gpus[pool.id].id == answer.types[t].gpu]
    if not mine or not answer.supply["gap"][t, q, answer.case]:
        return ""
    pool = min(mine, key=lambda pool: term(pool)[0])
    rented = "until then machines are rented, which a move on that day saves"
    return f"; pool {pool.id} is there from {term(pool)[0]}, {rented}"


def _moves(answer: Answer, runs_on_usd: Mapping[tuple[int, int], float]) -> Iterator[Decision]:
    """Moves to other machines. runs_on_usd: by service and quarter the cost of what runs on beside them."""
    plan, stated = answer.plan, answer.plan.policy.moving_cost_usd
    for (s, q), place in sorted(answer.hardware.placed.items()):
        before = answer.hardware.placed.get((s, q - 1))
        if not place.moved or (before and before.instance == place.instance):
            continue
        first = answer.moves_on(s, q)
        other = answer.without_moves.get(frozenset({(s, q)}))
        moving = runs_on_usd.get((s, q), 0.0) if stated is None else stated
        saves, at_p50 = (more_usd - moving for more_usd in answer.more_usd(other)) if other else (None, None)
        twice = f", which runs {plan.policy.move_days:g} days more" if stated is None and moving else ""
        n = math.ceil(float(answer.services["own_instances"][s, q, answer.case]) - A_BIT)  # some it may share
        left = before.instance if before else listed(plan.stands_on(s, q))
        about = f"service {plan.services[s].id} from {left}{twice}{_before_pool(answer, place.instance, q)}"
        subject = "move", place.instance, n, None
        move = dated(plan, *subject, first, 0, None, about=about, moves=s)
        yield replace(move, saves_usd=saves, saves_p50_usd=at_p50, moving_usd=moving)
