"""The plan's quantities on their axes: service, quarter, case (a quantile of the demand, or a draw), type of machine.

`TABLES` says every table's axes, and its quantities in the order in which they come about, as the sheet's do.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.catalog.hardware import GPUS_OF_A_MACHINE
from sheetgen.formula import ratio
from sheetgen.plan import demand, needs, spending
from sheetgen.plan.arrays import Array
from sheetgen.plan.hardware_by_quarter import OF_RATE, Hardware
from sheetgen.plan.hours import kept_by_span, missing_by_hour, needed_shares
from sheetgen.plan.lending import PaidPool
from sheetgen.plan.orders import Bought, Buying, bought, buying, quota_of, wanted
from sheetgen.plan.placement import At, Placed
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER, QUARTERS_IN_A_YEAR, Quarter
from sheetgen.plan.schema import QUANTILES, Amounts, Band, Committed, Demand, Growth, Service
from sheetgen.plan.spans import Spans
from sheetgen.plan.stated_plan import Plan
from sheetgen.plan.supplied import base_by_span, live, paid_shares, supplied
from sheetgen.program.declared import Axes, Table
from sheetgen.program.grid import Columns, Grid
from sheetgen.question.inputs import BY_NAME
from sheetgen.question.market import Candidate
from sheetgen.sizing import cost, parallelism, rates
from sheetgen.units import ON_DEMAND

Z_OF_P90 = 1.2815515655446004  # standard deviations below which nine of ten cases of a normal distribution lie
Z = dict(zip(QUANTILES, (-Z_OF_P90, 0.0, Z_OF_P90), strict=True))
CONSTANTS = {
    "z_of_p90": Z_OF_P90,
    "quarters_in_a_year": float(QUARTERS_IN_A_YEAR),
    "months_in_a_quarter": float(MONTHS_IN_A_QUARTER),
    "seconds_in_an_hour": float(cost.CONSTANTS["seconds_in_an_hour"]),
}
OF_SERVICE: Axes = ("service", "quarter", "case")
OF_PLACE: Axes = ("service", "quarter")
OF_TYPE: Axes = ("type", "quarter", "case")
OF_MONEY: Axes = ("quarter", "case")
OF_PAID: Axes = ("type", "earlier", "quarter", "case")  # the earlier quarter is that at whose price

_TABLES = (
    Table(
        "loads",
        OF_SERVICE,
        (demand.demand, ("concurrent_requests", needs.stated_at_once), ("requests_per_second", needs.peak_rate)),
    ),
    Table(
        "replicas",
        OF_SERVICE,
        (
            rates.offered_requests,
            rates.places,
            rates.prefill_replicas,
            rates.rate_places,
            parallelism.load_requests,
            ("load_requests", rates.load_with_rates),
            parallelism.n_replicas,
            needs.hot_replicas,
            needs.safe_replicas,
            needs.planned_replicas,
            needs.machines,
            needs.safe_machines,
            needs.half_machines,
        ),
    ),
    # At the times of the load that is planned for: values, with the bands that `recommend` states.
    Table("times", OF_SERVICE, (("in_flight", rates.in_flight_at_peak), needs.at_once, needs.busy_replicas)),
    Table("prices", OF_MONEY, (spending.price_factor,)),
    Table("pools", ("type", "span", "case"), (needs.needed_instances,)),
    Table("gaps", OF_TYPE, (needs.spare_instances, spending.order_price_factor, spending.quarter_instance_month_usd)),
    Table("mean", OF_TYPE, (spending.mean_month_usd,)),
    Table("shares", OF_SERVICE, (needs.own_instances, spending.service_month_usd)),
    Table("money", OF_MONEY, (spending.spend_usd, spending.reserve_usd, spending.budget_left_usd)),
)
TABLES = {table.name: table for table in _TABLES}


@dataclass(frozen=True)
class Type:
    """A type of instance that services, commitments or owned GPUs are of."""

    instance: str
    gpu: str
    gpu_count: int
    month_usd: float  # of one, at today's price of the class that is bought, less the discount; NaN where none is
    buying: Buying
    candidate: Candidate | None  # None where nothing is served on it


# What was written, as columns -------------------------------------------------------------------------------


def amounts_of(stated: Demand) -> dict[str, Amounts | float]:
    """The bands whose product is the demand, and behind them the other numbers from which it follows, by field."""
    amount = stated.users or stated.requests or stated.tokens
    read: dict[str, Any] = {"at_once": stated.at_once} if amount is None else amount.read
    amounts = ((name, value) for name, value in read.items() if not isinstance(value, str))
    return dict(sorted(amounts, key=lambda named: not isinstance(named[1], Amounts)))


def level(stated: Demand, quantities: Mapping[str, float], prompt: int, answer: int) -> float:
    """The demand at its p50, as requests per second at peak or at once, of requests with so many tokens. quantities:
    its bands' p50, its other numbers and the constants."""
    if "at_once" in quantities:
        return quantities["at_once"]
    if "active_fraction" in quantities:
        return quantities["people"] * quantities["active_fraction"]
    if "peak_per_second" in quantities:
        rate = quantities["peak_per_second"]
    else:
        if "dau" in quantities:
            of_day = demand.requests_of_users.of(quantities)
        elif "people" in quantities:
            of_day = quantities["people"] * quantities["requests_per_user_per_day"]
        else:
            of_day = quantities["per_day"] if "per_day" in quantities else demand.requests_of_month.of(quantities)
        rate = rates.peak_requests_per_second.of({**quantities, "day_requests": of_day, "requests_per_second": 0})
    if stated.tokens is None:
        return rate
    counted = {"output": answer, "input": prompt, "all": prompt + answer}[stated.tokens.of]
    return float(demand.requests_of_tokens(rate, counted))


def spreads(bands: Sequence[Band], more: float = 0) -> tuple[float, float]:
    """How far a product of bands reaches down and up; more: what is added to each of their numbers."""
    below = [demand.spread_below(band.p10 + more, band.p50 + more, Z_OF_P90) for band in bands]
    above = [demand.spread_above(band.p50 + more, band.p90 + more, Z_OF_P90) for band in bands]
    return demand.combined(0, *below), demand.combined(0, *above)


def grown_in(growth: Growth | None, quarter: Quarter, n: int) -> tuple[float, float, float]:
    """The growth since the quarter for which the demand is stated, n before this one: at its p50, and its spreads."""
    if growth is None:
        return 1.0, 0.0, 0.0
    if growth.per_quarter is not None:
        persists = float(growth.bands == "persist")
        below, above = (demand.grown_spread(spread, n, persists) for spread in spreads([growth.per_quarter], more=1))
        return demand.grown(growth.per_quarter.p50, n), below, above
    if growth.series is not None:
        every = [growth.series[min(n, len(growth.series) - 1)]]
    else:
        every = [band for step, band in (growth.steps or {}).items() if step <= quarter]
    return math.prod((band.p50 for band in every), start=1.0), *spreads(every)


def stated_demand(service: Service, prompt: int, answer: int) -> tuple[float, list[Amounts]]:
    """The demand as stated at its p50, as requests per second at peak or at once, of requests with so many tokens; and
    its bands."""
    amounts = amounts_of(service.demand)
    bands = [amount for amount in amounts.values() if isinstance(amount, Amounts)]
    middles = {name: amount.p50 if isinstance(amount, Amounts) else amount for name, amount in amounts.items()}
    return float(level(service.demand, middles | CONSTANTS, prompt, answer)), bands


def stated_for(plan: Plan, service: Service, launch: Quarter | None) -> Quarter:
    """The quarter for which a service's demand is stated, where it is launched in that one; of a series the plan's
    first."""
    is_series = service.growth is not None and service.growth.series is not None
    return service.stated_for or max(plan.head.start, plan.head.start if is_series else launch or plan.head.start)


def request_of(plan: Plan, service: Service) -> tuple[int, int]:
    """Tokens of the prompt and of the answer of a service's mean request, as of its first model; 0 where they make no
    difference."""
    if service.demand.tokens is None:
        return 0, 0
    load = plan.question(plan.key(service, (service.model or ())[0])).workloads[0]
    return load.input_tokens, load.output_tokens


def share_live(service: Service, plan: Plan) -> Iterator[float]:
    for quarter in plan.quarters:
        if (service.launch and quarter < service.launch) or (service.retire and quarter >= service.retire):
            yield 0.0
            continue
        since = quarter.since(service.launch) if service.launch else len(service.ramp)
        yield service.ramp[since] if since < len(service.ramp) else 1.0


def demand_columns(plan: Plan) -> tuple[Columns, Columns]:
    """Columns of the stated demand: by service, and by service and quarter."""
    stated, of_quarter = [], []
    for service in plan.services:
        at_p50, bands = stated_demand(service, *request_of(plan, service))
        stated.append(at_p50)
        first, (below, above) = stated_for(plan, service, service.launch), spreads(bands)
        rows = []
        for quarter, share in zip(plan.quarters, share_live(service, plan), strict=True):
            grown, *more = grown_in(service.growth, quarter, max(0, quarter.since(first)))
            rows.append((grown, *map(demand.combined, (below, above), more), share))
        of_quarter.append(rows)
    lost = [plan.redundancy(s) for s in range(len(plan.services))]
    words = BY_NAME["survive"].words
    of_service = {
        "stated_demand": numpy.array(stated),
        "is_rate": numpy.array([float(not service.demand.is_at_once) for service in plan.services]),
        "counts_people": numpy.array([float(service.demand.users is not None) for service in plan.services]),
        "survive": numpy.array([float(words.index(redundancy.survive)) for redundancy in lost]),
        "zones": numpy.array([float(redundancy.zones) for redundancy in lost]),
        "spare_replicas": numpy.array([float(redundancy.replicas) for redundancy in lost]),
        "hot_share": numpy.array([redundancy.hot_share for redundancy in lost]),
        "floor_replicas": numpy.array([float(service.floor_replicas or 1) for service in plan.services]),
    }
    names = ("growth", "spread_below_p50", "spread_above_p50", "share_live")
    return of_service, dict(zip(names, numpy.array(of_quarter).transpose(2, 0, 1), strict=True))


def settings(plan: Plan) -> Columns:
    """Quantities of the whole plan."""
    change = plan.prices.expected_change_per_year
    return CONSTANTS | {
        "extra_headroom_fraction": plan.policy.headroom_fraction,
        "max_prefill_utilization": BY_NAME["max_prefill_utilization"].default,
        "contingency_fraction": plan.prices.contingency_fraction,
        "expected_change_per_year": change.p50,
    }


# Supply -----------------------------------------------------------------------------------------------------


def commitment_month_usd(plan: Plan, committed: Committed) -> float:
    """A month of one instance of a commitment: as stated, else the catalog's price less the discount; on demand where
    the class has none, which a check says."""
    paid = cost.paid_hours_per_month(plan.prices.hours_per_month, cost.HOURS_IN_A_MONTH, 1)
    usd = committed.usd_per_hour
    if usd is None:
        row = plan.types[committed.type]
        price = row.price(committed.purchase) or row.price(ON_DEMAND)
        assert price is not None
        usd = float(cost.discounted_usd_per_hour(price.usd_per_hour, plan.prices.discount_fraction))
    return float(cost.instance_month_usd(usd, paid))


def committed_by_quarter(plan: Plan, committed: Committed) -> Any:
    """By quarter what a commitment costs, whether used or not."""
    month_usd, months = commitment_month_usd(plan, committed), CONSTANTS["months_in_a_quarter"]
    return spending.committed_quarter_usd(committed.count, month_usd, months, paid_shares(plan, committed))


def types_of(plan: Plan, hardware: Hardware) -> tuple[Type, ...]:
    """Every type of machine of the plan, in the order in which services come to them; those that no service uses, of
    commitments, earlier orders and owned GPUs, are behind."""
    types: dict[str, Type] = {}

    def add(name: str, gpu: str, gpu_count: int, month_usd: float = math.nan, served: Candidate | None = None) -> None:
        if name not in types:
            way = buying(plan, served, plan.class_of(name), quota_of(plan, name), plan.ordered(name))
            types[name] = Type(name, gpu, gpu_count, month_usd, way, served)

    for place in hardware.places:
        add(
            place.instance, place.candidate.gpu.id, place.candidate.gpu_count, place.instance_month_usd, place.candidate
        )
    parts = [(part.type, plan.machine(part.type)) for part in plan.supply.committed]
    for order in plan.supply.ordered:
        parts.append((order.type, plan.instance_of(order)))
    for listed, name in parts:
        row = plan.types[listed]
        add(name, row.gpu, int(row.gpu_count))
    for pool in plan.supply.owned:
        gpu = plan.gpus[pool.id].id
        if all(machine.gpu != gpu for machine in types.values()):
            size = pool.gpus_per_machine or plan.gpus[pool.id].of_a_machine or GPUS_OF_A_MACHINE
            add(f"owned {gpu}", gpu, min(size, pool.count))
    return tuple(types.values())


# The quantities ---------------------------------------------------------------------------------------------


def demand_grid(plan: Plan, z: Any) -> Grid:
    """The plan's grid up to the loads: at the quantiles z of the demand, a case each."""
    grid = Grid.over(service=len(plan.services), quarter=len(plan.quarters), case=len(z))
    grid = grid.along("span", {"quarter": plan.spans.quarters.tolist()})
    of_service, of_quarter = demand_columns(plan)
    grid.put((), settings(plan))
    grid.put(("service",), of_service)
    grid.put(OF_PLACE, of_quarter)
    grid.put(("case",), {"z": z})
    work_out(grid, "loads")
    return grid


def work_out(grid: Grid, *tables: str) -> None:
    grid.work_out(*(TABLES[name] for name in tables))


ONES, ZEROS = ("paced_requests", "is_alone"), ("replicas_per_instance", *OF_RATE, "type", "wait_z")
TIMES = ("ttft_seconds", "tpot_seconds", "output_tokens")
UNTIL, THEN = "until_", "then_"  # before the name of a column of a quarter's days before services move within it, after


def put_hardware(grid: Grid, plan: Plan, hardware: Hardware, types: Sequence[Type]) -> None:
    """Put in the columns of the chosen hardware, by service and quarter; where nothing is served it takes no
    machine."""
    columns = _of_places(plan, hardware.placed, types)
    columns["stays_on"] = _stays_on(plan, hardware, columns["type"])
    grid.put(OF_PLACE, columns)
    if hardware.until:
        earlier = {**hardware.placed, **{slot: until.place for slot, until in hardware.until.items()}}
        grid.put(OF_PLACE, {UNTIL + name: column for name, column in _of_places(plan, earlier, types).items()})
        ends = {q: until.start for (_, q), until in hardware.until.items()}
        starts = zip(plan.spans.quarters.tolist(), plan.spans.starts, strict=True)
        grid.put(("span",), {"is_until": numpy.array([float(start < ends.get(q, q)) for q, start in starts])})


def _of_places(plan: Plan, placed: Mapping[At, Placed], types: Sequence[Type]) -> dict[str, Array]:
    """The columns of places, by service and quarter."""
    values = dict.fromkeys(ONES, 1.0) | dict.fromkeys(ZEROS, 0.0)
    columns = {name: numpy.full((len(plan.services), len(plan.quarters)), value) for name, value in values.items()}
    place = {there.instance: i for i, there in enumerate(types)}
    sharing = Counter((q, there.instance) for (_, q), there in placed.items())
    for slot, there in placed.items():
        for name in ("paced_requests", "replicas_per_instance", "wait_z"):
            columns[name][slot] = getattr(there, name)
        for name in OF_RATE:
            columns[name][slot] = 0.0 if math.isnan(seconds := getattr(there, name)) else seconds
        columns["type"][slot] = place[there.instance]
        columns["is_alone"][slot] = float(sharing[slot[1], there.instance] == 1)
    return columns


def _stays_on(plan: Plan, hardware: Hardware, types: Array) -> Array:
    """By service and quarter the type on which it is, or was as it had a load last; -1 where it has retired, or has had
    none."""
    every = numpy.zeros(types.shape)
    for s, service in enumerate(plan.services):
        stays_on = -1
        for q, quarter in enumerate(plan.quarters):
            if (s, q) in hardware.placed:
                stays_on = int(types[s, q])
            elif service.retire and quarter >= service.retire:
                stays_on = -1  # others without a load may have one again
            every[s, q] = stays_on
    return every


def before_moves(grid: Grid) -> Grid | None:
    """The grid of the days before services move within a quarter, with the replicas of then; None where none does."""
    if f"{UNTIL}type" not in grid.columns:
        return None
    before = grid.again({})
    names = (name for name in (*ONES, *ZEROS, *TIMES) if UNTIL + name in grid.columns)
    before.put(OF_PLACE, {name: grid.spread(UNTIL + name, OF_PLACE) for name in names})
    work_out(before, "replicas")
    return before


def put_times(grid: Grid, plan: Plan, hardware: Hardware, case: int) -> None:
    """How long a request takes at the load that is planned for, and the requests at once that follow."""
    columns = {name: numpy.zeros((len(plan.services), len(plan.quarters))) for name in TIMES}
    for slot, place in hardware.placed.items():
        speed = hardware.speed[(*slot, case)]
        columns["ttft_seconds"][slot], columns["tpot_seconds"][slot] = speed.ttft_seconds, speed.tpot_seconds
        columns["output_tokens"][slot] = place.output_tokens
    grid.put(OF_PLACE, columns)
    if hardware.until:
        until = {name: column.copy() for name, column in columns.items()}
        for slot in hardware.until:
            speed = hardware.speed_until[(*slot, case)]
            until["ttft_seconds"][slot], until["tpot_seconds"][slot] = speed.ttft_seconds, speed.tpot_seconds
        grid.put(OF_PLACE, {UNTIL + name: column for name, column in until.items()})
    work_out(grid, "times")


def put_supply(grid: Grid, plan: Plan, types: Sequence[Type]) -> None:
    """Put in what is owned and committed, its cost, used or not, and the budget."""
    n_quarters, months, supply = len(plan.quarters), CONSTANTS["months_in_a_quarter"], supplied(plan)
    none, no_spans = numpy.zeros(n_quarters), numpy.zeros(len(plan.spans))
    committed_usd, owned_usd = none.copy(), none.copy()
    of_type, base_usd = (defaultdict[str, Any](none.copy) for _ in range(2))
    of_gpus, base_counts = (defaultdict[str, Any](no_spans.copy) for _ in range(2))
    for committed in plan.supply.committed:
        paid = committed_by_quarter(plan, committed)
        committed_usd += paid
        of_type[plan.machine(committed.type)] += paid
    for pool in plan.supply.owned:
        owned_usd += pool.cost_per_quarter * paid_shares(plan, pool)
        of_gpus[plan.gpus[pool.id].id] += pool.cost_per_quarter * live(plan, pool)
    for base in plan.base:
        base_usd[base.instance] += base.count * base.month_usd * months * numpy.array(base.shares(n_quarters))
        base_counts[base.instance] += base_by_span(plan, base)
    by_span = {
        "lost_instances": [supply.lost_instances(machine.gpu, machine.gpu_count) + no_spans for machine in types],
        "committed_by_span": [supply.committed.get(machine.instance, no_spans) for machine in types],
        "base_by_span": [base_counts[machine.instance] for machine in types],
        "owned_gpu_usd": [ratio(of_gpus[machine.gpu], supply.gpus.get(machine.gpu, no_spans)) for machine in types],
    }
    by_quarter = {
        "committed_paid_usd": [of_type[machine.instance] for machine in types],
        "base_usd": [base_usd[machine.instance] for machine in types],
        "order_quarters_ahead": [plan.order_quarters_ahead(machine.buying.purchase) for machine in types],
    }
    for axis, columns in (("span", by_span), ("quarter", by_quarter)):
        shape = len(types), grid.sizes[axis]
        grid.put(("type", axis), {name: numpy.array(rows).reshape(shape) for name, rows in columns.items()})
    of_plan = {
        "committed_usd": committed_usd,
        "owned_usd": owned_usd,
        "budget_usd": numpy.array([plan.budget.get(quarter, math.nan) for quarter in plan.quarters]),
        "quarters_ahead": numpy.array(plan.quarters_ahead, float),
    }
    grid.put(("quarter",), of_plan)
    months_usd = [0.0 if math.isnan(machine.month_usd) else machine.month_usd for machine in types]
    grid.put(
        ("type",), {"gpu_count": [float(machine.gpu_count) for machine in types], "instance_month_usd": months_usd}
    )


@dataclass(frozen=True)
class Rented:
    """Machines of a type that are rented, by span, case and hour of a week, with the weights of the hours; those that
    are needed, owned, committed and lent, by span and case; and the parts in which they are bought."""

    spans: Spans
    counts: Array
    weights: Array
    needed: Array
    owned: Array
    committed: Array
    lent: Array  # those of other types that serve this one, less those of this one that serve others
    loans: Mapping[int, Array]  # those of this one that serve another, by the position of that
    up: Array  # those that are needed, by span, case and hour, whose weights are `hours`; counts may be of the peak
    hours: Array
    parts: Sequence[Bought]

    @property
    def gap(self) -> Array:
        """By span and case those that are there or were to be, in the hour that has most."""
        return numpy.asarray(self.counts.max(axis=-1))

    @property
    def short(self) -> Array:
        """By quarter and case the most that are needed on a day beyond those that are paid anyway: without those that
        are kept idle."""
        paid = self.committed + numpy.maximum(0, self.lent)
        return self.spans.most(needs.short_instances(self.needed, self.owned, paid))

    def there(self, lent: Array | float) -> Array:
        """By quarter and case the mean of those that are there, with what is lent."""
        counts = spending.there_instances(self.needed, self.owned, self.committed, self.gap, lent)
        return self.spans.means(counts)

    def added(self, name: str) -> Array:
        """The sum of a column of all parts."""
        return numpy.asarray(sum(getattr(part, name) for part in self.parts))

    def shares(self, case: int) -> Array:
        """By quarter and machine the share of the hours in which it is rented, in a case."""
        return self.spans.means(self._shares(case))

    def _shares(self, case: int) -> Array:
        return needed_shares(self.counts[:, case], self.weights, int(self.counts.max(initial=0)))

    def of_all_cases(self) -> Array:
        """The same, summed over the cases."""
        n_spans, n_cases = self.counts.shape[:2]
        weights = numpy.tile(self.weights, n_cases)
        shares = needed_shares(self.counts.reshape(n_spans, -1), weights, int(self.counts.max(initial=0)))
        return self.spans.means(shares)

    def paid_shares(self, case: int) -> Array:
        """By span and machine, in the order of the parts, the share of the hours for which it is paid: of those that
        are there, which are rented first."""
        ways = [part.way for part in self.parts]
        ends = numpy.cumsum([part.gap[:, case] for part in self.parts], axis=0)
        shares = self._shares(case)
        of_way = (numpy.arange(shares.shape[1]) >= ends[:-1, :, None]).sum(axis=0)
        states = numpy.array([way.missing + way.unserved for way in ways])[of_way, numpy.arange(len(shares))[:, None]]
        ranks = states.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        return numpy.asarray(numpy.take_along_axis(shares, ranks, axis=1) * (states == 0))


def buy(grid: Grid, plan: Plan, types: Sequence[Type]) -> list[Rented]:
    """From the loads on: replicas, the machines of each type, supply, gaps and what they cost, for every case; gives
    what is rented by the hour."""
    for table in ("replicas", "prices"):
        work_out(grid, table)
    keeps = plan.policy.release_after_quarters
    needed_then = _needed_then(grid, types, keeps)
    up_then, weights = _by_hour(grid, plan, types, needed_then)
    axes, spans = TABLES["pools"].axes, plan.spans
    needed, committed = (grid.spread(name, axes) for name in ("needed_instances", "committed_by_span"))
    factors, since = grid.spread("price_factor", axes[1:]), spans.kept_since(keeps)
    quarters = spans.quarters.tolist()
    is_until = grid.spread("is_until", ("span",)) > 0 if "is_until" in grid.columns else numpy.zeros(len(spans), bool)

    def kept_of(counts: Sequence[Array], t: int) -> Array:
        """Machines of a type that are kept, of those that are needed by its services some quarters later still."""
        return kept_by_span([of_all[t] for of_all in counts], since, quarters, is_until)

    if not plan.week.is_flat:
        needed_then = [needed, *(counts.max(axis=-1) for counts in up_then[1:])]
    kept = [kept_of(needed_then, t) for t in range(len(types))]
    kinds = [(machine.gpu, machine.gpu_count) for machine in types]
    of_types = supplied(plan).owned_instances(kinds, [counts.T for counts in kept], gives_rest=True)
    owned = numpy.array([counts.T for counts in of_types]).reshape(needed.shape)
    shapes = [(machine.instance, machine.gpu, machine.gpu_count) for machine in types]
    pool, of_each = PaidPool(shapes, [*needed], [*owned], [*committed]), dict[int, tuple[Array, Array, list[Bought]]]()
    for t, machine in sorted(enumerate(types), key=lambda place: place[1].buying.term is None):
        way, there = machine.buying, committed[t, :, 0]
        is_held = way.term is not None or plan.week.is_flat
        hours, of_hours = (needed[t][..., None], numpy.ones(1)) if is_held else (up_then[0][t], weights)
        kept_hours = kept[t][..., None] if is_held else kept_of(up_then, t)
        orders, there_too = functools.partial(wanted, way, committed=there), committed[t] + pool.borrow(t)
        short, counts = missing_by_hour(hours, kept_hours, owned[t], there_too, since, orders)
        parts = bought(way, short, counts, there, factors, of_hours)
        if way.term is not None:
            counts = numpy.asarray(sum(part.gap for part in parts))[..., None]
            pool.add_paid(t, sum((part.gap * (1 - part.way.missing)[:, None] for part in parts), numpy.zeros(1)))
        of_each[t] = counts, of_hours, parts
    lent = numpy.array(pool.net).reshape(needed.shape)
    rented = [
        Rented(
            spans,
            counts,
            of_hours,
            needed[t],
            owned[t],
            committed[t],
            lent[t],
            pool.loans_of(t),
            up_then[0][t],
            weights,
            parts,
        )
        for t, (counts, of_hours, parts) in sorted(of_each.items(), key=lambda of_type: of_type[0])
    ]

    def summed(name: str) -> Any:
        """By type the sum of a column of all its parts."""
        return numpy.array([of_type.added(name) for of_type in rented]).reshape(needed.shape)

    gap = numpy.array([of_type.gap for of_type in rented]).reshape(needed.shape)
    owned_usd = grid.spread("owned_gpu_usd", axes) * grid.spread("gpu_count", axes)  # of one
    base = grid.spread("base_by_span", axes)
    signed = committed - base
    idle = needs.idle(needed, owned, committed, gap, lent)
    idle_owned, idle_anyway = numpy.minimum(owned, idle), numpy.minimum(owned + signed, idle)
    most = {
        "needed_instances": needed,
        "kept_instances": numpy.array(kept).reshape(needed.shape),
        "owned_instances": owned,
        "committed_instances": committed,
        "signed_instances": signed,
        "base_instances": base,
        "gap": gap,
        "rented_instances": gap + committed,
        "idle": idle,
        "idle_anyway": idle_anyway,
        "borrowed_instances": numpy.maximum(0, lent),
        "lent_instances": numpy.maximum(0, -lent),
    }
    means = {
        "mean_anyway": owned + committed + lent,
        "mean_gap": gap,
        "mean_base": base,
        "owned_paid_usd": owned * owned_usd,
    }
    means["idle_usd"] = idle_owned * owned_usd
    idle_share = ratio(spans.means(idle_anyway - idle_owned, 1), spans.means(signed, 1))
    sums = {"ordered_instances": summed("ordered"), "cover_usd": summed("cover_usd")}
    columns = {name: spans.most(counts, 1) for name, counts in most.items()}
    columns |= {name: spans.means(counts, 1) for name, counts in means.items()}
    columns |= {name: spans.sums(counts, 1) for name, counts in sums.items()}
    there = [of_type.there(of_type.lent) for of_type in rented]
    columns["there_instances"] = numpy.array(there).reshape(columns["gap"].shape)
    columns["held_usd"] = _held_usd(grid, plan, types)
    columns["cover_usd"] = columns["cover_usd"] + columns["held_usd"]
    grid.put(OF_TYPE, columns)
    work_out(grid, "gaps")
    months = grid.spread("quarter_instance_month_usd", OF_TYPE)
    paid = [spans.sums(spans.sums(of_type.added("machine_months")), 1) for of_type in rented]
    machine_months = numpy.array(paid).reshape(len(types), *months.shape[1:2], *months.shape[1:])
    grid.put(OF_PAID, {"machine_months": machine_months})
    on_demand = (machine_months * months[:, :, None]).sum(axis=1)
    bought_usd = on_demand + grid.spread("base_usd", OF_TYPE)
    grid.put(OF_TYPE, {"bought_usd": bought_usd})
    for name, of_all in (("bought_usd", "bought_of_all_usd"), ("cover_usd", "late_usd")):
        grid.put(OF_MONEY, {of_all: grid.spread(name, OF_TYPE).sum(axis=0)})
    committed_usd = grid.spread("committed_paid_usd", OF_TYPE)
    grid.put(OF_TYPE, {"idle_usd": columns["idle_usd"] + idle_share * committed_usd})
    paid_usd = committed_usd + columns["owned_paid_usd"]
    grid.put(OF_TYPE, {"paid_usd": paid_usd + lent_usd(rented, bought_usd + paid_usd)})
    work_out(grid, "mean")
    return rented


def loan_shares(rented: Sequence[Rented]) -> dict[tuple[int, int], Array]:
    """By lender and borrower the share of a type's machines that serve another, and so of what they cost, by quarter
    and case."""
    return {
        (t, other): numpy.asarray(ratio(of_type.spans.means(loan), of_type.there(0.0)))
        for t, of_type in enumerate(rented)
        for other, loan in of_type.loans.items()
    }


def lent_usd(rented: Sequence[Rented], usd: Array) -> Array:
    """By type what the machines that it borrows cost, less what those cost that it lends. usd: of its own."""
    moved = numpy.zeros(usd.shape)
    for (lender, borrower), share in loan_shares(rented).items():
        moved[lender] -= share * usd[lender]
        moved[borrower] += share * usd[lender]
    return moved


def _held_usd(grid: Grid, plan: Plan, types: Sequence[Type]) -> Array:
    """By type, quarter and case the cost of machines of earlier orders that are kept for services that wait."""
    usd, factors = (
        numpy.zeros([grid.sizes[axis] for axis in OF_TYPE]),
        grid.spread("price_factor", OF_MONEY),
    )
    place = {machine.instance: t for t, machine in enumerate(types)}
    for held in plan.held:
        q, months = plan.spans.quarters[held.span], MONTHS_IN_A_QUARTER * plan.spans.shares[held.span]
        usd[place[held.instance], q] += held.count * held.month_usd * months * factors[q]
    return usd


def _by_hour(grid: Grid, plan: Plan, types: Sequence[Type], needed_then: Sequence[Array]) -> tuple[list[Array], Array]:
    """Machines of each type that are up by span, case and hour of a week, and the weights of the hours; the most of
    any hour takes the place of what the services need at their peaks. Puts in what a service fills on average.
    needed_then: see `_needed_then`, as are those that are up."""
    axes, week = TABLES["pools"].axes, plan.week
    prefixes = ("", UNTIL, THEN) if f"{UNTIL}type" in grid.columns else ("",)
    if week.is_flat:
        grid.put(
            OF_SERVICE,
            {f"{of_days}mean_machines": grid.spread(f"{of_days}machines", OF_SERVICE) for of_days in prefixes},
        )
        return [needed[..., None] for needed in needed_then], numpy.ones(1)
    shape = grid.spread("machines", OF_SERVICE).shape
    n_kinds = week.over_peak.shape[-1]
    loads = grid.spread("demand", OF_SERVICE)[..., None] * week.over_peak[:, :, None, :]
    hourly = grid.again({}, case=shape[-1] * n_kinds)
    hourly.put(OF_SERVICE, {"demand": loads.reshape(*shape[:2], -1)})
    hourly.evaluate(TABLES["loads"].quantities[1:], OF_SERVICE)
    work_out(hourly, "replicas")

    def by_kind(counts: Array, axes: Axes) -> Array:
        """By kind of hour, the last side."""
        return counts.reshape(*(grid.sizes[axis] for axis in axes), n_kinds)

    every = [by_kind(counts, axes) for counts in _needed_then(hourly, types, len(needed_then) - 1)]
    grid.put(axes, {"needed_instances": every[0].max(axis=-1)})
    for of_days in prefixes:
        of_all = by_kind(hourly.spread(f"{of_days}machines_of_all", OF_TYPE), OF_TYPE).max(axis=-1)
        filled = by_kind(hourly.spread(f"{of_days}machines", OF_SERVICE), OF_SERVICE)
        grid.put(OF_TYPE, {f"{of_days}machines_of_all": of_all})
        grid.put(OF_SERVICE, {f"{of_days}mean_machines": (filled * week.shares[:, None, :]).sum(axis=-1)})
    ups = [week.up(counts, plan.start_minutes, plan.spans.quarters) for counts in every]
    return [up for up, _ in ups], ups[0][1]


def _needed_then(grid: Grid, types: Sequence[Type], quarters_later: int) -> list[Array]:
    """Machines that are needed, by type, span and case; of all services on them, which is put in, and of those that are
    still there a quarter later, and so on: what a service leaves that moves or retires is kept for nobody. Where some
    move within a quarter at last of those that are still there after it."""
    then, before = _needed_by_stay(grid, types, quarters_later), before_moves(grid)
    if before is None:
        return then
    until = _needed_by_stay(before, types, quarters_later)
    for axes, name in ((OF_TYPE, "machines_of_all"), (OF_SERVICE, "machines")):
        of_days = {UNTIL + name: before.spread(name, axes), THEN + name: grid.spread(name, axes)}
        grid.put(axes, of_days)
    of_all = numpy.maximum(grid.spread(f"{UNTIL}machines_of_all", OF_TYPE), grid.spread("machines_of_all", OF_TYPE))
    is_until = grid.spread("is_until", ("span",))[:, None] > 0
    every = [numpy.where(is_until, *counts) for counts in zip(until, then, strict=True)]
    grid.put(OF_TYPE, {"machines_of_all": of_all})
    grid.put(TABLES["pools"].axes, {"needed_instances": every[0]})
    stays = before.spread("type", OF_PLACE) == grid.spread("type", OF_PLACE)
    return [*every, _needed_of(before, types, stays)]


def _needed_by_stay(grid: Grid, types: Sequence[Type], quarters_later: int) -> list[Array]:
    """The same of the places of a grid."""
    _put_pools(grid, types)
    work_out(grid, "pools")
    every = [grid.spread("needed_instances", TABLES["pools"].axes)]
    on, stays_on = (grid.spread(name, OF_PLACE) for name in ("type", "stays_on"))
    filled = grid.spread("machines", OF_SERVICE).any(axis=-1)
    for later in range(1, quarters_later + 1):
        stays = numpy.full(on.shape, True)
        stays[:, :-later] = (stays_on[:, later:] == on[:, :-later]) | ~filled[:, :-later]
        every.append(every[0] if stays.all() else _needed_of(grid, types, stays))
    return every


def _needed_of(grid: Grid, types: Sequence[Type], some: Array) -> Array:
    """Machines that some services need, by type, span and case. some: by service and quarter."""
    part = grid.again({})
    _put_pools(part, types, some)
    work_out(part, "pools")
    return numpy.asarray(part.spread("needed_instances", TABLES["pools"].axes))


def _put_pools(grid: Grid, types: Sequence[Type], some: Array | bool = True) -> None:
    """Put in what the services of a type fill together, and what of it a loss must leave. some: by service and quarter
    those of which it is."""
    is_of = some & (grid.spread("type", OF_PLACE) == numpy.arange(len(types))[:, None, None])
    machines, safe, halves = (grid.spread(name, OF_SERVICE) for name in ("machines", "safe_machines", "half_machines"))
    survive, zones = (grid.spread(name, ("service",))[:, None] for name in ("survive", "zones"))
    replica = ratio(1.0, grid.spread("replicas_per_instance", OF_PLACE))

    def summed(filled: Any, counts: Any = 1) -> Any:
        parts = ((filled[on], (mask * counts)[on, :, None]) for on, mask in zip(is_of.any(axis=2), is_of, strict=True))
        return numpy.array([(of_type * shares).sum(axis=0) for of_type, shares in parts]).reshape(shape)

    def most(values: Any) -> Any:
        some = numpy.where(is_of & (safe > 0).any(axis=-1), values, 0).max(axis=1, initial=0)
        return numpy.broadcast_to(some[..., None], shape)

    shape = len(types), *machines.shape[1:]
    pooled = {
        "machines_of_all": summed(machines),
        "safe_of_replicas": summed(safe),
        "safe_of_machines": summed(safe, survive >= parallelism.MACHINE),
        "safe_of_zones": summed(safe, survive == parallelism.ZONE),
        "halves": summed(halves),
        "largest_replica": most(replica),
        "zone_share": most((survive == parallelism.ZONE) / (zones - 1)),
    }
    grid.put(OF_TYPE, pooled)


def share(grid: Grid, spans: Spans, case: int) -> None:
    """Share the machines of each type out to its services, by the replicas at the case that is bought. Where one moves
    within a quarter, its machines are those after that, and its cost is of both, by the days."""
    if not grid.spread("gap", OF_TYPE).size:  # nothing is served
        zeros = numpy.zeros(grid.spread("machines", OF_SERVICE).shape)
        grid.put(OF_SERVICE, {name: zeros for name in TABLES["shares"].named()})
        return
    if f"{UNTIL}type" not in grid.columns:
        grid.put(OF_SERVICE, _shared(grid, "type", "", case))
        return
    until, then = _shared(grid, f"{UNTIL}type", UNTIL, case), _shared(grid, "type", THEN, case)
    share_until = spans.means(grid.spread("is_until", ("span",)))[:, None]
    of_both = share_until * until["service_month_usd"] + (1 - share_until) * then["service_month_usd"]
    grid.put(OF_SERVICE, {UNTIL + "own_instances": until["own_instances"], **then, "service_month_usd": of_both})


def _shared(grid: Grid, types: str, of_days: str, case: int) -> Columns:
    """The services' shares of the machines of their types, and what those cost. types: the column of the types;
    of_days: see UNTIL, THEN."""
    place = grid.spread(types, OF_PLACE).astype(int)
    names = {"machines_of_all": f"{of_days}machines_of_all", "mean_month_usd": "mean_month_usd"}
    of_type = {
        name: grid.spread(column, OF_TYPE)[place, numpy.arange(place.shape[1])] for name, column in names.items()
    }
    filled = grid.spread(f"{of_days}mean_machines", OF_SERVICE)[..., case]
    of_all = numpy.array([(filled * (place == t)).sum(axis=0) for t in range(grid.sizes["type"])])
    planned = {"planned_machines": filled, "planned_machines_of_all": of_all[place, numpy.arange(place.shape[1])]}
    shared = grid.again({})
    shared.put(OF_SERVICE, of_type)
    shared.put(OF_PLACE, planned)
    work_out(shared, "shares")
    return {name: shared.spread(name, OF_SERVICE) for name in TABLES["shares"].named()}
