"""The plan worked out: every quantity at the three quantiles, and the hardware behind it."""

from __future__ import annotations

import datetime
import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy

from sheetgen.formula import ratio
from sheetgen.plan import needs
from sheetgen.plan.arrays import Array
from sheetgen.plan.hardware_by_quarter import Hardware
from sheetgen.plan.orders import Unserved
from sheetgen.plan.placement import At, Placed
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.spending import NO_BUDGET, WITHIN, budget_verdict
from sheetgen.plan.stated_plan import Plan, machine_in, term
from sheetgen.plan.tables import (
    CONSTANTS,
    OF_MONEY,
    OF_PAID,
    OF_PLACE,
    OF_SERVICE,
    OF_TYPE,
    THEN,
    UNTIL,
    Rented,
    Type,
    before_moves,
    buy,
    committed_by_quarter,
    lent_usd,
    put_supply,
    work_out,
)
from sheetgen.plan.together import moving_usd
from sheetgen.program.grid import Grid, View
from sheetgen.question.stated_load import mean_over_peak

A_TRACE = 6  # digits of a dollar
CASE = {name: i for i, name in enumerate(QUANTILES)}
DAY, BAND, RESERVE, SPARE = "day", "band", "reserve", "spare machines"  # factors of the utilization


def moves_usd(answer: Answer, plan: Plan) -> float:
    """The cost of a plan's moves, as a plan counts them."""
    moved = ((q, place) for (_, q), place in answer.hardware.placed.items() if place.moved)
    return sum(moving_usd(plan, place, plan.months[q]) for q, place in moved)


@dataclass(frozen=True)
class Answer:
    """A plan, and what follows from it. `table` reads any quantity on its axes."""

    plan: Plan
    hardware: Hardware
    types: Sequence[Type]
    grid: Grid
    rented: Sequence[Rented]  # by type, at the three quantiles
    waiting: Sequence[Unserved] = ()  # see decisions.late
    # What was worked out of it without some of its moves; none where a service cannot do without.
    without_moves: dict[frozenset[At], Answer | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def case(self) -> int:
        """The position of the quantile that is bought."""
        return CASE[self.plan.policy.plan_at]

    @cached_property
    def services(self) -> View:
        return self.grid.table(*OF_SERVICE)

    @cached_property
    def supply(self) -> View:
        return self.grid.table(*OF_TYPE)

    @cached_property
    def money(self) -> View:
        return self.grid.table(*OF_MONEY)

    @cached_property
    def signed_instances(self) -> Array:
        """By type, quarter and case the machines of commitments that are signed: those of a mix's base are ordered."""
        return numpy.asarray(self.supply["committed_instances"] - self.supply["base_instances"])

    @cached_property
    def rented_instances(self) -> Array:
        """By type, quarter and case the machines that a quota counts: committed or bought."""
        return numpy.asarray(self.supply["rented_instances"])

    @cached_property
    def to_buy(self) -> Array:
        """By type, quarter and case the machines that are ordered: a mix's base, and what is missing beside it."""
        return numpy.asarray(self.supply["gap"] + self.supply["base_instances"])

    @cached_property
    def supply_counts(self) -> dict[str, Array]:
        """The machines of a type, quarter and case, by what they are."""
        names = {"needed": "needed_instances", "kept": "kept_instances", "idle": "idle", "spare": "spare_instances"}
        names |= {"borrowed": "borrowed_instances", "lent": "lent_instances"}
        signed = {"owned": self.supply["owned_instances"], "committed": self.signed_instances}
        return signed | {name: self.supply[column] for name, column in names.items()} | {"gap": self.to_buy}

    @cached_property
    def place(self) -> dict[str, int]:
        """By instance the position of its type."""
        return {machine.instance: t for t, machine in enumerate(self.types)}

    def region_of(self, instance: str, purchase: str | None = None) -> str:
        """The provider of a type of machine and the region of its price in a class; "" of owned GPUs alone."""
        machine, plan = self.types[self.place[instance]], self.plan
        way = purchase or machine.buying.purchase
        if machine.candidate is not None:
            sold = machine.candidate.in_class(way) or machine.candidate
            return f"{sold.provider} {sold.region}".strip()
        rows = (row for name, row in plan.types.items() if plan.machine(name) == machine_in(instance))
        return next((f"{row.provider} {row.region_of(way)}".strip() for row in rows), "")

    def pools_alone(self, instance: str, q: int) -> list[str]:
        """The owned pools whose machines are all that there is of a type in a quarter; none where others are rented."""
        t, plan = self.place[instance], self.plan
        counts = {name: float(column[t, q, self.case]) for name, column in self.supply_counts.items()}
        if not counts["owned"] or counts["committed"] or counts["gap"]:
            return []
        first, last = plan.first_day(plan.quarters[q]), plan.last_day(plan.quarters[q])
        pools = (pool for pool in plan.supply.owned if plan.gpus[pool.id].id == self.types[t].gpu)
        return [pool.id for pool in pools if term(pool)[0] <= last and term(pool)[1] > first]

    @cached_property
    def regions(self) -> dict[str, list[str]]:
        """By provider and region the types of machine that are bought or committed there."""
        ways = [
            (machine.instance, machine.buying.purchase)
            for machine, gap in zip(self.types, self.supply["gap"], strict=True)
            if gap[:, self.case].any()
        ]
        ways += [(base.instance, base.purchase) for base in self.plan.base]
        ways += [(self.plan.machine(part.type), part.purchase) for part in self.plan.supply.committed]
        regions = dict[str, list[str]]()
        for instance, purchase in dict.fromkeys(ways):
            names = regions.setdefault(self.region_of(instance, purchase), [])
            if (name := machine_in(instance)) not in names:
                names.append(name)
        return dict(sorted(regions.items()))

    def quarters_of(self, s: int) -> list[int]:
        """The quarters in which a service runs, by position."""
        return [q for q in range(len(self.plan.quarters)) if (s, q) in self.hardware.placed]

    def at_demand(
        self, z: Array, live: Array | float = 1.0, plan: Plan | None = None, **columns: Array
    ) -> tuple[Grid, list[Rented]]:
        """The plan at other demand on its hardware, as cases of its own, and what is rented by the hour. z: of the
        cases, or of service and case; live: by service and case, or case, what of the demand is there; plan: with
        another base; columns: other quantities by case."""
        n_services, n_cases = len(self.plan.services), numpy.shape(z)[-1]
        grid = self.grid.again({}, case=n_cases)
        if plan is not None:
            put_supply(grid, plan, self.types)
        shares = numpy.broadcast_to(live, (n_services, n_cases))[:, None]
        whole = grid.spread("share_live", OF_PLACE)[..., None]
        grid.put(("service", "case"), {"z": numpy.broadcast_to(z, (n_services, n_cases))})
        grid.put(OF_SERVICE, {"share_live": whole * shares})
        grid.put(("case",), columns)
        work_out(grid, "loads")
        rented = buy(grid, plan or self.plan, self.types)
        work_out(grid, "money")
        return grid, rented

    def on(self, instance: str, q: int) -> list[int]:
        """The services on a type of machine in a quarter, by position."""
        placed = self.hardware.placed
        some = (s for s in range(len(self.plan.services)) if (s, q) in placed)
        return [s for s in some if placed[s, q].instance == instance]

    def moves_on(self, s: int, q: int) -> datetime.date:
        """The first day of a quarter on which a service is on its machines: today in the one that runs."""
        until = self.hardware.until.get((s, q))
        return until.day if until else max(self.plan.first_day(self.plan.quarters[q]), self.plan.as_of)

    def in_span(self, instance: str, span: int) -> dict[int, Placed]:
        """The services on a type of machine in a span, by position, and their places."""
        q, placed, start = int(self.plan.spans.quarters[span]), self.hardware.placed, self.plan.spans.starts[span]
        until = {s: before.place for (s, r), before in self.hardware.until.items() if r == q and start < before.start}
        here = {s: until.get(s, placed[s, q]) for s in range(len(self.plan.services)) if (s, q) in placed}
        return {s: place for s, place in here.items() if place.instance == instance}

    def own_instances(self, s: int, q: int, z: int) -> dict[int, float]:
        """By type a service's part of the machines, on average over the days of a quarter."""
        place, own = self.hardware.placed[s, q], float(self.services["own_instances"][s, q, z])
        until = self.hardware.until.get((s, q))
        if until is None:
            return {self.place[place.instance]: own}
        before, share = float(self.services[f"{UNTIL}own_instances"][s, q, z]), float(self.shares_until[q])
        return {self.place[place.instance]: (1 - share) * own, self.place[until.place.instance]: share * before}

    @cached_property
    def shares_until(self) -> Array:
        """By quarter the share of its days before services move within it."""
        return numpy.asarray(self.plan.spans.means(self.grid.spread("is_until", ("span",))))

    @cached_property
    def filled_in_spans(self) -> Array:
        """By type and span the machines that services fill, at the quantile that is bought."""
        names = (
            ("machines_of_all",) if not self.hardware.until else (f"{THEN}machines_of_all", f"{UNTIL}machines_of_all")
        )
        parts = [numpy.asarray(self.supply[name][..., self.plan.spans.quarters, self.case]) for name in names]
        return parts[0] if len(parts) == 1 else numpy.where(self.grid.spread("is_until", ("span",)) > 0, *parts[::-1])

    def beside(self, s: int, q: int) -> list[int]:
        """The other services on a service's type of machine in a quarter, by position."""
        return [i for i in self.on(self.hardware.placed[s, q].instance, q) if i != s]

    @property
    def asked_usd(self) -> tuple[float, float]:
        """The amounts to be approved: the spend on the machines that are bought, and its contingency."""
        spend, reserve = (float(self.money[name][:, self.case].sum()) for name in ("spend_usd", "reserve_usd"))
        return spend, reserve

    def more_usd(self, other: Answer) -> tuple[float, float]:
        """The amounts by which another way to serve this plan costs more to approve and at p50."""
        at_p50 = float((other.money["spend_usd"] - self.money["spend_usd"])[:, CASE["p50"]].sum())
        return sum(other.asked_usd) - sum(self.asked_usd), at_p50

    @property
    def already_usd(self) -> float:
        """The cost of what is owned or committed already, which is paid whatever is decided."""
        return float(self.money["committed_usd"][:, 0].sum() + self.money["owned_usd"][:, 0].sum())

    @cached_property
    def machine_months(self) -> list[Array]:
        """By type the months of machines that are paid: by the quarter at whose price, quarter and case."""
        return [*self.grid.read("machine_months", OF_PAID)]

    @cached_property
    def paid_shares(self) -> list[Array]:
        """By type, at the quantile that is bought: by span and machine, of the hours in which it is paid."""
        return [rented.paid_shares(self.case) for rented in self.rented]

    @cached_property
    def bound_usd(self) -> list[float]:
        """By quarter what is ordered for it binds to the end of its term, whether used or not."""
        ordered, months = (
            self.supply[name][..., self.case] for name in ("ordered_instances", "quarter_instance_month_usd")
        )
        terms = [[MONTHS_IN_A_QUARTER * (machine.buying.term or 0)] for machine in self.types]
        bound = (ordered * months * numpy.array(terms).reshape(-1, 1)).sum(axis=0)
        for base in self.plan.base:
            bound[base.first] += base.count * base.month_usd * MONTHS_IN_A_QUARTER * base.term
        return [float(usd) for usd in bound]

    @property
    def bound_after_usd(self) -> float:
        """The part of that which is paid after the plan's end."""
        return sum(self.bound_usd) - self._term_spend_usd

    @property
    def _term_spend_usd(self) -> float:
        """The cost of orders of a term within the plan."""
        has_term = [machine.buying.term is not None for machine in self.types]
        return float(self.supply["bought_usd"][has_term, :, self.case].sum()) + self.base_usd

    @property
    def base_usd(self) -> float:
        """The cost of a mix's base within the plan, which every case of the demand pays."""
        return float(self.supply["base_usd"][..., self.case].sum())

    def left_usd(self, q: int) -> tuple[float, float]:
        """The rest of a quarter's budget at p50 and at p90."""
        left = self.money["budget_left_usd"]
        return float(left[q, CASE["p50"]]), float(left[q, CASE["p90"]])

    @cached_property
    def verdicts(self) -> list[str]:
        """By quarter whether its budget holds."""
        return [str(budget_verdict(*self.left_usd(q))) for q in range(len(self.plan.quarters))]

    @cached_property
    def over(self) -> dict[str, str]:
        """The quarters that are over their budget, each with its verdict."""
        quarters = map(str, self.plan.quarters)
        return {
            quarter: verdict
            for quarter, verdict in zip(quarters, self.verdicts, strict=True)
            if verdict not in (WITHIN, NO_BUDGET)
        }

    def part_usd(self, s: int, z: int) -> float:
        """A service's part of what all quarters cost."""
        return float(self.services["service_month_usd"][s, :, z].sum()) * CONSTANTS["months_in_a_quarter"]

    def owned_month_usd(self, s: int, q: int, z: int) -> float:
        """The part of a service's month that owned machines cost."""
        owned_usd = 0.0
        for t, own in self.own_instances(s, q, z).items():
            there = float(self.supply["there_instances"][t, q, z])
            owned_usd += own / there * float(self.owned_serving_usd[t, q, z]) if there else 0.0
        return owned_usd / MONTHS_IN_A_QUARTER

    @cached_property
    def idle_while_buying(self) -> dict[int, list[int]]:
        """By type the quarters in which owned or committed machines are idle though machines are ordered for them."""
        idle, buys = self.supply["idle_anyway"][..., self.case], self.to_buy[..., self.case].any(axis=0)
        return {t: numpy.flatnonzero(row).tolist() for t, row in enumerate((idle > 0) & buys) if row.any()}

    @property
    def idle_while_buying_usd(self) -> float:
        """The cost of those."""
        usd = self.supply["idle_usd"][..., self.case]
        return math.fsum(float(usd[t, quarters].sum()) for t, quarters in self.idle_while_buying.items())

    @cached_property
    def owned_serving_usd(self) -> Array:
        """By type, quarter and case the cost of the owned machines that serve it."""
        owned_usd = self.grid.spread("owned_paid_usd", OF_TYPE)
        return numpy.asarray(owned_usd + lent_usd(self.rented, owned_usd))

    @cached_property
    def mean_shares(self) -> Array:
        """By service and quarter its mean load over that of its peak: of a profile its hours', over the burst; else as
        its busiest hour says, and all of it where requests at once were stated."""
        means = numpy.array(self.plan.week.mean_over_peak)
        for s, service in enumerate(self.plan.services):
            amount = service.demand.users or service.demand.requests or service.demand.tokens
            if amount is not None and not service.demand.is_at_once:
                by_hour = service.profile is not None
                means[s] = (
                    means[s] / amount.burst_factor
                    if by_hour
                    else mean_over_peak(amount.peak_hour_share, amount.burst_factor)
                )
        return means

    @cached_property
    def in_use(self) -> tuple[Array, Array]:
        """By type and quarter the share of the machines that are there that requests keep busy, on average and in
        the busiest hour of all its services: at p50 of the demand, on what is bought."""
        (mean, there_on_average), (peak, there) = self._busy
        return ratio(mean, there_on_average, math.nan), ratio(peak, there, math.nan)

    @cached_property
    def in_use_of_all(self) -> tuple[float, float]:
        """The same of all types and quarters, by their GPUs."""
        mean, peak = (ratio(self._gpus(busy), self._gpus(there)) for busy, there in self._busy)
        return mean, peak

    @cached_property
    def in_use_parts(self) -> dict[str, float]:
        """The factors of which the mean is the product, by what each is of."""
        mean, peak = self.in_use_of_all
        (at_p50, there), planned = self._busy[1], self._busy_at_peak(self.case)
        filled = self.supply["machines_of_all"][..., self.case]
        return {
            DAY: ratio(mean, peak),
            BAND: ratio(self._gpus(at_p50), self._gpus(planned)),
            RESERVE: ratio(self._gpus(planned), self._gpus(filled)),
            SPARE: ratio(self._gpus(filled), self._gpus(there)),
        }

    def _gpus(self, machines: Array) -> float:
        """The GPUs of machines by type and quarter."""
        return float((machines * numpy.array([machine.gpu_count for machine in self.types])[:, None]).sum())

    def _busy_machines(self, z: int) -> Iterator[tuple[Array, Array | float]]:
        """By type, service and quarter the machines that requests keep busy at the peak of a quantile, and by quarter
        the share of its days: after services move within it, and before."""
        before = before_moves(self.grid)
        grids = (
            [(self.grid, 1.0)] if before is None else [(self.grid, 1 - self.shares_until), (before, self.shares_until)]
        )
        for grid, days in grids:
            if grid is before:
                work_out(grid, "times")
            names = ("busy_replicas", "replicas_per_instance")
            busy = needs.machines(*(grid.spread(name, OF_SERVICE)[..., z] for name in names))
            yield busy * (grid.spread("type", OF_PLACE) == numpy.arange(len(self.types))[:, None, None]), days

    def _busy_at_peak(self, z: int) -> Array:
        """By type and quarter the machines that requests keep busy in the busiest hour of all its services."""
        hours = ((busy[..., None] * self.plan.week.over_peak).sum(axis=1) for busy, _ in self._busy_machines(z))
        return numpy.asarray(numpy.maximum.reduce([by_hour.max(axis=-1, initial=0) for by_hour in hours]))

    @cached_property
    def _busy(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """By type and quarter the machines that requests keep busy, and those that are there: on average, and at the
        peak; at p50."""
        there, gap = (self.supply[name][..., self.case] for name in ("mean_anyway", "mean_gap"))
        mean = sum((busy * self.mean_shares).sum(axis=1) * days for busy, days in self._busy_machines(CASE["p50"]))
        return (mean, there + self.rented_on_average), (self._busy_at_peak(CASE["p50"]), there + gap)

    @cached_property
    def rented_on_average(self) -> Array:
        """By type and quarter the machines that are rented, on average over the hours; at the quantile that is
        bought."""
        means = [self.plan.spans.means(rented.counts[:, self.case] @ rented.weights) for rented in self.rented]
        return numpy.array(means).reshape(len(self.types), len(self.plan.quarters))

    @cached_property
    def held_usd(self) -> Array:
        """By type and quarter what the machines that are bought, a mix's base too, would cost if all of the peak were
        held in all hours of the days on which they are there, at the price of the class that is bought; of a mix on
        demand."""
        base, months = (self.supply[name][..., self.case] for name in ("base_instances", "quarter_instance_month_usd"))
        there = [
            sum(part.gap[:, self.case] * (1 - part.way.missing) for part in rented.parts) for rented in self.rented
        ]
        held = numpy.array([self.plan.spans.means(numpy.asarray(counts)) for counts in there]).reshape(base.shape)
        return numpy.asarray((held + base) * months * MONTHS_IN_A_QUARTER)

    @cached_property
    def saved_by_hour_usd(self) -> Array:
        """By type and quarter what the hours save of that: nothing where every peak is held, and bought in one way, as
        are machines of a term."""
        if self.plan.week.is_flat and not self.plan.base:
            return numpy.zeros(self.held_usd.shape)
        by_hour = numpy.array([[machine.buying.term is None] for machine in self.types])
        return numpy.where(by_hour, self.held_usd - self.supply["bought_usd"][..., self.case], 0.0)

    @cached_property
    def of_owners(self) -> dict[str | None, Array]:
        """By owner what its services' machines cost, by quarter and quantile; of None what is shared: spare and idle
        machines, and what covers late orders. All of them sum to the spend."""
        usd = self.grid.spread("service_month_usd", OF_SERVICE) * CONSTANTS["months_in_a_quarter"]
        owners = [service.owner or self.plan.head.owner for service in self.plan.services]
        usd_of: dict[str | None, Array] = {
            owner: usd[[name == owner for name in owners]].sum(axis=0) for owner in dict.fromkeys(owners)
        }
        shared = self.grid.spread("spend_usd", OF_MONEY) - usd.sum(axis=0)
        return usd_of | {None: numpy.round(shared, A_TRACE) + 0.0}  # sums leave a trace that is no money

    @cached_property
    def held_usd_of_types(self) -> Array:
        """By type, quarter and quantile the cost of machines of earlier orders that are kept for services that wait."""
        return numpy.asarray(self.grid.spread("held_usd", OF_TYPE))

    @cached_property
    def of_classes(self) -> dict[str, Array]:
        """By purchase class the cost of what is rented: bought, committed already, or a cover of late orders; by
        quarter and quantile."""
        usd = defaultdict[str, Array](lambda: numpy.zeros(self.money["late_usd"].shape))
        bought, of_base = (self.grid.spread(name, OF_TYPE) for name in ("bought_usd", "base_usd"))
        quarters = self.plan.spans.quarters
        for t, machine in enumerate(self.types):
            usd[machine.buying.purchase] += bought[t] - of_base[t] + self.held_usd_of_types[t]
            for part, (s, q) in itertools.product(self.rented[t].parts, enumerate(quarters)):
                if (cover := part.way.covers[s]) is not None:
                    usd[cover.purchase][q] += part.cover_usd[s]
        for base in self.plan.base:
            usd[base.purchase][base.runs(len(self.plan.quarters))] += base.count * base.month_usd * MONTHS_IN_A_QUARTER
        for committed in self.plan.supply.committed:
            usd[committed.purchase] += committed_by_quarter(self.plan, committed)[:, None]
        return usd

    @cached_property
    def rented_usd(self) -> Array:
        """By type, quarter and quantile the same."""
        parts = (self.grid.spread(name, OF_TYPE) for name in ("bought_usd", "cover_usd", "committed_paid_usd"))
        return numpy.asarray(sum(parts))

    @property
    def largest(self) -> list[int]:
        """The services by position, the one that costs most first."""
        return sorted(range(len(self.plan.services)), key=lambda s: -self.part_usd(s, self.case))

    def set_by(self, s: int, q: int, z: int) -> str:
        """The reason for the replicas of a service."""
        quantities = {name: float(self.services[name][s, q, z]) for name in needs.set_by.inputs if name != "sized_by"}
        return str(needs.set_by.of(quantities | {"sized_by": self.hardware.speed[s, q, z].sized_by}))
