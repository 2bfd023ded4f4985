"""The workings of the plan's workbook, on hidden sheets: a row for each service, quarter and quantile, each type, each
order; every formula of `TABLES` once more, from the yellow cells on."""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sheetgen import cost
from sheetgen.formula import (
    Formula,
    cheapest,
    either,
    formula,
    is_number,
    largest,
    least_where,
    literal,
    number_where,
    smallest,
    where,
)
from sheetgen.plan import needs, spending
from sheetgen.plan.answer import Answer
from sheetgen.plan.book.inputs import QUANTILE_LIST, SURVIVE_LIST, PlanInputs
from sheetgen.plan.decisions import MONTHS_OF_TERM, allowed_prices
from sheetgen.plan.quarters import Quarter
from sheetgen.plan.schema import QUANTILES, Committed, Demand, Growth, Owned
from sheetgen.plan.supplied import live
from sheetgen.plan.tables import (
    CONSTANTS,
    TABLES,
    Type,
    Z,
    bands_of,
    first_quarter,
    grown_in,
    growth_bands,
    level,
    numbers_of,
    request_of,
    share_live,
    spreads,
)
from sheetgen.plan.yellow import SURVIVE, holder, part_of_name
from sheetgen.scenario.demand import HOURS_PER_DAY
from sheetgen.scenario.inputs import BY_NAME
from sheetgen.sheet.book.wiring import HEAD_ROWS, Table, Wiring, name_all, named, titled
from sheetgen.sheet.model import NONE, Cell, Lookup, Range, Ref, Sheet, Source, derived, lookup
from sheetgen.units import DATE, FACTOR, PLAIN, PURCHASES, TEXT, USD, USD_CENTS, Display

N_CASES = len(QUANTILES)
LATE, LIVE = "late", "live"


@formula("Of them still needed")
def kept_of_order(kept_before: Any, gap: Any, gap_of_order: Any, gap_before: Any) -> Any:
    """Of the machines of an order those that are still needed, while some are in all quarters until then.

    Source: definition.
    """
    return where(kept_before > 0, largest(0, smallest(gap, gap_of_order) - gap_before), 0)


def formulas_of(table: str) -> Iterator[tuple[str, Formula]]:
    """The formulas of a table of the plan, with the names of what they give."""
    return iter(TABLES[table].named().items())


class Workings:
    """The hidden sheets. Each table's columns are lists of cells; `at`-functions say which row is which."""

    def __init__(self, answer: Answer, inputs: PlanInputs, wiring: Wiring) -> None:
        self.answer, self.plan, self.inputs, self.wiring = answer, answer.plan, inputs, wiring
        self.types: Sequence[Type] = answer.types or (Type(NONE, NONE, 1, math.nan),)  # nothing is served
        self.n_quarters, self.n_services = len(self.plan.quarters), len(self.plan.services)
        self.sheets: list[Sheet] = []
        for fill in (
            self._constants,
            self._quarters,
            self._types,
            self._stated,
            self._growth,
            self._loads,
            self._paid,
            self._pools,
            self._orders,
            self._quotas,
            self._shares,
            self._money,
        ):
            fill()

    # Which row is which

    def row_of_growth(self, s: int, q: int) -> int:
        return s * self.n_quarters + q

    def row_of_load(self, s: int, q: int, z: int) -> int:
        return (s * self.n_quarters + q) * N_CASES + z

    def row_of_pool(self, t: int, q: int, z: int) -> int:
        """The quarters of a type are one below the other, as what is kept reads them."""
        return (t * N_CASES + z) * self.n_quarters + q

    def row_of_order(self, t: int, q: int) -> int:
        return t * self.n_quarters + q

    def row_of_money(self, q: int, z: int) -> int:
        return q * N_CASES + z

    # Building

    def _table(self, name: str, about: str, n_rows: int) -> Table:
        sheet = titled(name, name, about, freeze=(HEAD_ROWS + 1, 2))
        self.sheets.append(sheet)
        return Table(self.wiring, sheet, n_rows)

    def column(self, table: Table, name: str) -> Range:
        """A whole column, by a defined name."""
        return named(self.wiring.names, f"tbl_{part_of_name(table.sheet.name)}_{name}", tuple(table.columns[name]))

    def _given(self, table: Table, name: str, label: str, values: Iterable[Any], display: Display = FACTOR) -> None:
        known = [NONE if isinstance(one, float) and math.isnan(one) else one for one in values]
        table.given(name, label, known, display, role="fixed")

    def _sum_where(self, values: Range, keys: Range, key: Ref | int) -> Lookup:
        """The sum of a column where another has a number."""
        wanted = key.value if isinstance(key, Ref) else key
        total = sum(
            v.value
            for v, k in zip(values.refs, keys.refs, strict=True)
            if k.value == wanted and isinstance(v.value, (int, float))
        )
        if isinstance(key, int):
            return Lookup.of(total, f"SUMIFS({{0}},{{1}},{key})", values, keys)
        return Lookup.of(total, "SUMIFS({0},{1},{2})", values, keys, key)

    def _constants(self) -> None:
        """What nobody chooses; and inputs under the names that formulas read."""
        sheet = titled("Constants", "Constants", "What nobody chooses, and the words of lists.")
        sheet.widths = {0: 40, 1: 16}
        self.sheets.append(sheet)
        row = HEAD_ROWS
        known = {
            **cost.CONSTANTS,
            **CONSTANTS,
            "hours_in_a_day": HOURS_PER_DAY,
            "least_utilization": BY_NAME["utilization"].kind.low,
            "n_months": MONTHS_OF_TERM.get(self.plan.policy.buy, 1),
        }
        for name, value in known.items():
            label = name.replace("_", " ").capitalize()
            self.wiring.inputs[name] = sheet.put(row, 1, Cell(value, "fixed", FACTOR), label=label)
            row += 1
        for name, words in ((QUANTILE_LIST, QUANTILES), (SURVIVE_LIST, SURVIVE.words)):
            refs = [sheet.text(row + i, 1, word, "fixed") for i, word in enumerate(words)]
            sheet.text(row, 0, name, "label")
            self.wiring.names[name] = Range(tuple(refs))
            row += len(words)
        cells = self.inputs.cells
        read_as = {"extra_headroom_fraction": "headroom_fraction", "release_after_quarters": "release_after_quarters",
                   "approval_days": "approval_days", "contingency_fraction": "contingency_fraction",
                   "discount_fraction": "discount_fraction", "hours_per_month": "hours_per_month",
                   "expected_change_per_year": "price_change_p50", "as_of_day": "as_of"}  # fmt: skip
        self.wiring.inputs |= {name: cells[of] for name, of in read_as.items()}
        if "fx_rate" in cells:  # of a plan that is not in US dollars
            self.wiring.inputs["fx_rate"] = cells["fx_rate"]
        for label, name, what in (
            ("Quantile that is bought, from 1", "planned_case", self.inputs.word("plan_at")),
            ("What may be lost", "survive", self.inputs.survive("survive")),
        ):
            self.wiring.inputs[name] = sheet.link(row, 1, what, PLAIN, "computed", label=label)
            row += 1
        self.wiring.inputs["lead_days"] = cells[f"lead_days_{part_of_name(self.plan.policy.buy)}"]
        self.wiring.inputs["arrives_day"] = sheet.compute(
            row, 1, spending.arrives_day, self.wiring.inputs, label=spending.arrives_day.label
        )
        name_all(self.wiring, sheet.name)

    def _quarters(self) -> None:
        plan = self.plan
        table = self.quarters = self._table("Quarters", "Their days, prices, and what is late.", self.n_quarters)
        table.given("quarter", "Quarter", map(str, plan.quarters), TEXT, role="label")
        self._given(table, "number", "Number", range(self.n_quarters), PLAIN)
        table.columns["quarters_ahead"] = table.columns["number"]
        first = [plan.first_day(one) for one in plan.quarters]
        self._given(table, "first_day", "First day", first, DATE)
        after = [plan.last_day(one) + datetime.timedelta(days=1) for one in plan.quarters]
        self._given(table, "next_first_day", "First day of the next", after, DATE)
        budget = [self.inputs.cells[f"budget_{part_of_name(str(one))}"] for one in plan.quarters]
        if "fx_rate" in self.wiring.inputs:
            table.computed(spending.in_dollars, {"amount": budget}, name="budget_usd", label="Budget, US dollars")
        else:
            table.columns["budget_usd"] = list(budget)
        for one in (spending.price_factor, spending.order_by_day, spending.is_late, spending.missing_share):
            table.computed(one)

    def _types(self) -> None:
        """By type its price; and what covers a late order: of the classes without a term the quickest, then the
        cheapest."""
        plan, types = self.plan, self.types
        prices = [
            {
                purchase: usd
                for purchase, usd in allowed_prices(self.answer, one.instance).items()
                if not PURCHASES[purchase].committed
            }
            for one in types
        ]
        known = [
            (t, purchase, usd)
            for t, of in enumerate(prices)
            for purchase, usd in (of or {plan.policy.buy: math.nan}).items()
        ]
        covers = self.covers = self._table("Covers", "What there is without a term, by type and class.", len(known))
        self._given(covers, "type", "Type", [t for t, _, _ in known], PLAIN)
        covers.given("purchase", "Class", [one for _, one, _ in known], TEXT, role="label", width=16)
        self._given(covers, "listed_usd_per_hour", "List price, $ an hour", [usd for _, _, usd in known], USD_CENTS)
        covers.looked_up(
            "lead_days",
            "Lead time",
            [self.inputs.cells[f"lead_days_{part_of_name(one)}"] for _, one, _ in known],
            FACTOR,
        )
        self._given(covers, "is_committed", "Paid in all hours", [0] * len(known), PLAIN)
        self._month(covers, month_or_none, "month_usd")
        table = self.by_type = self._table("Types", "Machines, and what a month of one costs today.", len(types))
        table.given("instance", "Machine", [one.instance for one in types], TEXT, role="label", width=34)
        self._given(table, "number", "Number", range(len(types)), PLAIN)
        self._given(table, "gpu_count", "GPUs", [one.gpu_count for one in types], PLAIN)
        placed = {one.instance: one.candidate for one in self.answer.hardware.placed.values()}
        listed = [placed[one.instance].usd_per_hour if one.instance in placed else math.nan for one in types]
        self._given(table, "listed_usd_per_hour", "List price, $ an hour", listed, USD_CENTS)
        committed = int(PURCHASES[plan.policy.buy].committed)
        self._given(table, "is_committed", "Paid in all hours", [committed] * len(types), PLAIN)
        self._month(table, cost.instance_month_usd, "instance_month_usd")
        of_type = [[i for i, one in enumerate(covers.columns["type"]) if one.value == t] for t in range(len(types))]
        table.computed(
            cover_month,
            {
                name: [Range([covers.columns[of][i] for i in mine]) for mine in of_type]
                for name, of in (("months", "month_usd"), ("leads", "lead_days"))
            },
            name="cover_month_usd",
        )

    def _month(self, table: Table, one: Formula, name: str) -> None:
        """A month of one machine from its list price on."""
        table.computed(less_discount, name="price_usd_per_hour")
        table.computed(cost.paid_hours_per_month)
        table.computed(one, name=name)

    def _stated(self) -> None:
        """By service the demand as stated, and what may be lost."""
        plan, cells = self.plan, self.inputs.cells
        table = self.stated = self._table(
            "Stated", "The demand of each service as stated, and what may be lost.", self.n_services
        )
        table.given("service", "Service", [one.id for one in plan.services], TEXT, role="label", width=24)
        levels, sides = list[Lookup](), (list[Lookup](), list[Lookup]())
        z_of_p90, hour = (self.wiring.inputs[name] for name in ("z_of_p90", "seconds_in_an_hour"))
        for s, service in enumerate(plan.services):
            stem, stated = f"service_{s + 1}_", service.demand
            bands, numbers = bands_of(stated), numbers_of(stated)
            names = [*bands, *numbers, "seconds_in_an_hour"]
            refs = [*(cells[f"{stem}{one}_p50"] for one in bands), *(cells[f"{stem}{one}"] for one in numbers), hour]
            of_request = request_of(plan, service)
            levels.append(_derived(functools.partial(_level, stated, names, of_request), *refs))
            every = [cells[f"{stem}{one}_{z}"] for one in bands for z in QUANTILES]
            for side, column in enumerate(sides):
                column.append(_derived(functools.partial(_spread, side), z_of_p90, *every))
        table.looked_up("stated_demand", "Demand as stated", levels, FACTOR)
        table.looked_up("stated_spread_below", "Spread below", sides[0], FACTOR)
        table.looked_up("stated_spread_above", "Spread above", sides[1], FACTOR)
        self._given(table, "is_rate", "Is a rate", [int(not one.demand.at_once) for one in plan.services], PLAIN)
        people = [int(one.demand.users is not None) for one in plan.services]
        self._given(table, "counts_people", "Counts people", people, PLAIN)
        self._rates(table)
        own = [
            f"service_{holder(plan, s, 'redundancy') + 1}_" if one.redundancy is not None else ""
            for s, one in enumerate(plan.services)
        ]
        lost = [self.inputs.survive(f"{stem}survive") if stem else self.wiring.inputs["survive"] for stem in own]
        table.looked_up("survive", "What may be lost", lost, PLAIN)
        for name, label in (("zones", "Zones"), ("spare_replicas", "Spare replicas")):
            table.looked_up(name, label, [cells[f"{stem}{name}"] for stem in own], PLAIN)
        holders = (holder(plan, s, "floor_replicas") for s in range(self.n_services))
        floors = [cells[f"service_{s + 1}_floor_replicas"] for s in holders]
        table.looked_up("floor_replicas", "Floor", floors, PLAIN)

    def _rates(self, table: Table) -> None:
        """Of a rate the share of its peak that there is on average, and the tokens of a request."""
        services = self.plan.services
        for name, label in (("peak_hour_share", "Peak hour's share"), ("burst_factor", "Burst")):
            line, column = table.begin_column(label, "", 12), list[Ref]()
            for s, service in enumerate(services):
                stated, at = service.demand, table.place(line, s)
                of = stated.users or stated.requests or stated.tokens
                cell = self.inputs.cells.get(f"service_{s + 1}_{name}")
                value = 1.0 if of is None else getattr(of, name)
                column.append(
                    table.sheet.put(*at, Cell(value, "fixed", FACTOR), lock="column")
                    if cell is None
                    else table.sheet.link(*at, cell, FACTOR, lock="column")
                )
            table.columns[name] = column
        table.computed(mean_share, name="mean_over_peak")
        tokens = [sum(request_of(self.plan, one)) for one in services]
        self._given(table, "tokens_per_request", "Tokens of a request", tokens, PLAIN)

    def _growth(self) -> None:
        """By service and quarter the growth, and how far the demand reaches down and up."""
        plan = self.plan
        table = self.growth = self._table(
            "Growth",
            "By service and quarter what became of the demand as stated, and "
            "the hardware that was chosen when the workbook was built.",
            self.n_services * self.n_quarters,
        )
        pairs = [(s, q) for s in range(self.n_services) for q in range(self.n_quarters)]
        table.given("service", "Service", [plan.services[s].id for s, _ in pairs], TEXT, role="label", width=24)
        table.given("quarter", "Quarter", [str(plan.quarters[q]) for _, q in pairs], TEXT, role="label")
        z_of_p90 = self.wiring.inputs["z_of_p90"]
        columns: tuple[list[Lookup], ...] = ([], [], [])
        ahead = [max(0, plan.quarters[q].since(first_quarter(plan.services[s], plan))) for s, q in pairs]
        self._given(table, "quarters_grown", "Quarters since its demand", ahead, PLAIN)
        for (s, q), n, place in zip(pairs, ahead, table.columns["quarters_grown"], strict=True):
            service, quarter = plan.services[s], plan.quarters[q]
            names = [*growth_bands(service.growth)]
            stem = f"service_{s + 1}_growth_"
            refs = [self.inputs.cells[f"{stem}{part_of_name(name)}_{z}"] for name in names for z in QUANTILES]
            for part, column in enumerate(columns):
                found = functools.partial(_grown, service.growth, names, quarter, n, part)
                column.append(_derived(found, z_of_p90, place, *refs))
        for column, name, label in zip(
            columns,
            ("growth", "growth_spread_below", "growth_spread_above"),
            ("Growth", "Its spread below", "Its spread above"),
            strict=True,
        ):
            table.looked_up(name, label, column, FACTOR)
        shares = [share for one in plan.services for share in share_live(one, plan)]
        self._given(table, "share_live", "Share live", shares)
        of_stated = {
            name: [self.stated.columns[name][s] for s, _ in pairs]
            for name in ("stated_spread_below", "stated_spread_above")
        }
        for _, one in formulas_of("demand"):
            table.computed(one, of_stated)
        self._hardware(table, pairs)

    def _hardware(self, table: Table, pairs: Sequence[tuple[int, int]]) -> None:
        """What was chosen, and how fast it is at the load that is planned for: values of the build."""
        placed, place = self.answer.hardware.placed, {one.instance: i for i, one in enumerate(self.types)}
        chosen = [placed.get(at) for at in pairs]
        for name, label, nothing in (
            ("paced_requests", "Places of a replica", 1.0),
            ("replicas_per_instance", "Replicas of a machine", 0.0),
            ("full_turn_seconds", "Time of a request, full", 0.0),
            ("wait_z", "Allowance for chance", 0.0),
            ("output_tokens", "Answer, tokens", 0.0),
        ):
            known = [nothing if one is None else getattr(one, name) for one in chosen]
            values = [nothing if math.isnan(value) else value for value in known]
            self._given(table, name, f"{label} (build)", values)
        self._given(table, "type", "Type (build)", [0 if one is None else place[one.instance] for one in chosen], PLAIN)
        speed = self.answer.hardware.speed
        for name, label in (("ttft_seconds", "First token, s"), ("tpot_seconds", "A token, s")):
            refs: list[list[Ref]] = []
            for z, quantile in enumerate(QUANTILES):
                known = [getattr(speed[(*at, z)], name) if at in placed else 0.0 for at in pairs]
                self._given(table, f"{name}_{quantile}", f"{label}, {quantile} (build)", known)
                refs.append(table.columns[f"{name}_{quantile}"])
            case = self.wiring.inputs["planned_case"]
            found = [lookup(Range(row, lock="columns"), case) for row in zip(*refs, strict=True)]
            table.looked_up(name, f"{label}, as planned", found, FACTOR)

    def _loads(self) -> None:
        """By service, quarter and quantile the demand, the replicas, and the machines that they fill."""
        rows = [(s, q, z) for s in range(self.n_services) for q in range(self.n_quarters) for z in range(N_CASES)]
        table = self.loads = self._table(
            "Loads", "By service, quarter and quantile: demand, replicas, machines.", len(rows)
        )
        plan = self.plan
        table.given("service", "Service", [plan.services[s].id for s, _, _ in rows], TEXT, role="label", width=24)
        table.given("quarter", "Quarter", [str(plan.quarters[q]) for _, q, _ in rows], TEXT, role="label")
        table.given("case", "Quantile", [QUANTILES[z] for _, _, z in rows], TEXT, role="label")
        self._given(table, "z", "z", [Z[QUANTILES[z]] for _, _, z in rows])
        of_type = [int(self.growth.columns["type"][self.row_of_growth(s, q)].value) for s, q, _ in rows]
        places = [self.row_of_pool(t, q, z) + 1 for t, (_, q, z) in zip(of_type, rows, strict=True)]
        self._given(table, "pool_row", "Row on Pools", places, PLAIN)
        stated = {
            name: [self.stated.columns[name][s] for s, _, _ in rows]
            for name in (
                "stated_demand",
                "is_rate",
                "counts_people",
                "survive",
                "zones",
                "spare_replicas",
                "floor_replicas",
            )
        }
        grown = {
            name: [self.growth.columns[name][self.row_of_growth(s, q)] for s, q, _ in rows]
            for name in (
                "growth",
                "share_live",
                "spread_below_p50",
                "spread_above_p50",
                "paced_requests",
                "replicas_per_instance",
                "full_turn_seconds",
                "wait_z",
                "ttft_seconds",
                "tpot_seconds",
                "output_tokens",
            )
        }
        known = {**stated, **grown}
        for of in ("loads", "replicas", "times"):
            for name, one in formulas_of(of):
                table.computed(one, known, name=name)
        speed = self.answer.hardware.speed
        sized = [speed[at].sized_by if at[:2] in self.answer.hardware.placed else NONE for at in rows]
        table.given("sized_by", "What limits a replica (build)", sized, TEXT, role="fixed", width=14)
        table.computed(needs.set_by, known)

    def _paid(self) -> None:
        """What is owned and committed, by quarter."""
        plan, cells = self.plan, self.inputs.cells
        supply: list[Committed | Owned] = [*plan.supply.committed, *plan.supply.owned]
        rows = [(i, q, on, share) for i, one in enumerate(supply) for q, (on, share) in enumerate(live(plan, one))]
        table = self.paid = self._table("Paid", "What is owned and committed, by quarter.", max(1, len(rows)))
        self.on = {(i, q): bool(on) for i, q, on, _ in rows}
        table.given("id", "What", [supply[i].id for i, *_ in rows] or [NONE], TEXT, role="label", width=24)
        self._given(table, "quarter", "Quarter", [q for _, q, *_ in rows] or [-1], PLAIN)
        n = len(plan.supply.committed)
        self._given(table, "is_owned", "Owned", [int(i >= n) for i, *_ in rows] or [-1], PLAIN)
        self._given(table, "paid_share", "Share of its days", [share for *_, share in rows] or [0])
        months = []
        for i, one in enumerate(plan.supply.committed):
            row = plan.types[one.type]
            price = row.price(one.purchase) or row.price("on-demand")
            listed = math.nan if price is None else price.usd_per_hour
            months.append((cells[f"committed_{i + 1}_usd_per_hour"], listed))
        stated = self._table("Commitment prices", "A month of one machine of each commitment.", max(1, n))
        stated.given("id", "What", [one.id for one in plan.supply.committed] or [NONE], TEXT, role="label", width=24)
        listed_usd = [usd for _, usd in months] or [0.0]
        self._given(stated, "listed_usd_per_hour", "List price, $ an hour", listed_usd, USD_CENTS)
        self._given(stated, "is_committed", "Paid in all hours", [1] * max(1, n), PLAIN)
        stated.computed(less_discount, name="discounted_usd_per_hour")
        stated.columns["stated_usd_per_hour"] = [ref for ref, _ in months] or [stated.columns["is_committed"][0]]
        stated.computed(price_of_commitment, name="price_usd_per_hour")
        stated.computed(cost.paid_hours_per_month)
        stated.computed(cost.instance_month_usd, name="committed_month_usd")
        counts, month = list[Ref | Lookup](), list[Ref | Lookup]()
        owned: list[Any] = [cells[f"owned_{i + 1}_cost"] for i in range(len(plan.supply.owned))]
        if rate := self.wiring.inputs.get("fx_rate"):
            owned = [derived(spending.in_dollars.function, cost, rate) for cost in owned]
        for i, *_ in rows:
            counts.append(cells[f"committed_{i + 1}_count"] if i < n else cells[f"owned_{i - n + 1}_count"])
            month.append(stated.columns["committed_month_usd"][i] if i < n else owned[i - n])
        zero = Lookup.of(0, "0")
        table.looked_up("count", "Count", counts or [zero], PLAIN)
        table.looked_up("month_usd", "$ a month of one; of a pool a quarter", month or [zero], USD_CENTS)
        table.computed(paid_usd)

    def _pools(self) -> None:
        """By type, quantile and quarter: machines needed, kept, owned, committed, to buy, idle."""
        plan, types = self.plan, self.types
        rows = [(t, z, q) for t in range(len(types)) for z in range(N_CASES) for q in range(self.n_quarters)]
        table = self.pools = self._table(
            "Pools", "By type of machine, quantile and quarter: needed, owned, to buy.", len(rows)
        )
        table.given("instance", "Machine", [types[t].instance for t, _, _ in rows], TEXT, role="label", width=34)
        table.given("case", "Quantile", [QUANTILES[z] for _, z, _ in rows], TEXT, role="label")
        self._given(table, "quarter", "Quarter", [q for _, _, q in rows], PLAIN)
        self._given(table, "row", "Row", [i + 1 for i in range(len(rows))], PLAIN)
        keys = [q * N_CASES + z for _, z, q in rows]
        self._given(table, "money_row", "Row on Totals", keys, PLAIN)
        machines, places = self.column(self.loads, "machines"), self.column(self.loads, "pool_row")
        by_place: dict[int, float] = {}
        for value, key in zip(machines.refs, places.refs, strict=True):
            by_place[key.value] = by_place.get(key.value, 0.0) + value.value
        found = [
            Lookup.of(by_place.get(key.value, 0), "SUMIFS({0},{1},{2})", machines, places, key)
            for key in table.columns["row"]
        ]
        table.looked_up("machines_of_all", "Machines filled", found, FACTOR)
        (_, needed), (_, kept) = formulas_of("pools")
        table.computed(needed)
        spans = [range(self.row_of_pool(t, 0, z), self.row_of_pool(t, 0, z) + self.n_quarters) for t, z, _ in rows]

        def all_quarters(name: str) -> list[Range]:
            return [Range([table.columns[name][i] for i in span]) for span in spans]

        now = {"position": all_quarters("quarter"), "this_quarter": table.columns["quarter"]}
        table.computed(kept, now | {"needed": all_quarters("needed_instances")})
        self._owned(table, rows)
        committed = []
        for t, _, q in rows:
            mine = [
                self.inputs.cells[f"committed_{i + 1}_count"]
                for i, one in enumerate(plan.supply.committed)
                if plan.machine(one.type) == types[t].instance and self.on[i, q]
            ]
            committed.append(_sum(mine))
        table.looked_up("committed_instances", "Committed", committed, PLAIN)
        by_quarter = {
            "price_factor": [self.quarters.columns["price_factor"][q] for _, _, q in rows],
            "instance_month_usd": [self.by_type.columns["instance_month_usd"][t] for t, _, _ in rows],
        }
        for _, one in formulas_of("gaps"):
            table.computed(one, now | {"short": all_quarters("short_instances")} if one is needs.gap else by_quarter)

    def _owned(self, table: Table, rows: Sequence[tuple[int, int, int]]) -> None:
        """Types take in turn of the owned GPUs of their kind; the last of a kind has the rest."""
        plan, types = self.plan, self.types
        pools = [(i, plan.gpus[one.id].id) for i, one in enumerate(plan.supply.owned)]
        n = len(plan.supply.committed)
        last = {one.gpu: t for t, one in enumerate(types)}
        before: dict[tuple[str, int, int], int] = {}  # row of the type that took before
        counts = self.by_type.columns["gpu_count"]
        # The GPUs that are left hang on the column to the right, a row above: both are filled a row at a time.
        labels = "GPUs owned, left", needs.owned_instances.label
        free_at, owned_at = (table.begin_column(label, "", 12) for label in labels)
        free, owned = list[Ref](), list[Ref]()
        for r, (t, z, q) in enumerate(rows):
            key = types[t].gpu, z, q
            if key in before:
                i = before[key]
                left = derived(lambda f, o, g: f - o * g, free[i], owned[i], counts[rows[i][0]])
            else:
                left = _sum(
                    [
                        self.inputs.cells[f"owned_{i + 1}_count"]
                        for i, gpu in pools
                        if gpu == types[t].gpu and self.on[n + i, q]
                    ]
                )
            free.append(table.sheet.link(*table.place(free_at, r), left, PLAIN, "computed", lock="column"))
            rest = int(last[types[t].gpu] == t)
            env: dict[str, Source] = {
                "owned_gpus_free": free[-1],
                "gpu_count": counts[t],
                "kept_instances": table.columns["kept_instances"][r],
                "takes_rest": Lookup.of(rest, str(rest)),
            }
            owned.append(table.sheet.compute(*table.place(owned_at, r), needs.owned_instances, env, lock="column"))
            before[key] = r
        table.columns["owned_instances"] = owned

    def planned(self, name: str, t: int, q: int) -> Lookup:
        """A column of Pools at the quantile that is bought."""
        refs = [self.pools.columns[name][self.row_of_pool(t, q, z)] for z in range(N_CASES)]
        return chosen(self.wiring.inputs["planned_case"], refs)

    def _orders(self) -> None:
        """By type and quarter what must be bought more of, what of it is late, and what it costs."""
        types, n = self.types, self.n_quarters
        rows = [(t, q) for t in range(len(types)) for q in range(n)]
        table = self.orders = self._table(
            "Orders",
            "By type and quarter, at the quantile that is bought: what to order, what is late, what is given back.",
            len(rows),
        )
        table.given("instance", "Machine", [types[t].instance for t, _ in rows], TEXT, role="label", width=34)
        self._given(table, "quarter", "Quarter", [q for _, q in rows], PLAIN)
        for name, label in (
            ("gap", "To buy"),
            ("kept_instances", "Kept"),
            ("needed_instances", "Needed"),
            ("owned_instances", "Owned"),
            ("committed_instances", "Committed"),
            ("idle", "Idle"),
            ("quarter_instance_month_usd", "$ a month of one"),
        ):
            found = [self.planned(name, t, q) for t, q in rows]
            table.looked_up(name, label, found, USD_CENTS if name.endswith("usd") else PLAIN)
        zero, gaps = Lookup.of(0, "0"), table.columns["gap"]
        before: list[Source] = [gaps[i - 1] if q else zero for i, (_, q) in enumerate(rows)]
        table.computed(spending.ordered_instances, {"gap_before": before})
        table.computed(released_instances, {"gap_before": before})
        of_quarter = {
            name: [self.quarters.columns[name][q] for _, q in rows]
            for name in ("order_by_day", "first_day", "is_late", "missing_share")
        }
        self._running(table, rows, of_quarter["is_late"])
        covers = [self.by_type.columns["cover_month_usd"][t] for t, _ in rows]
        table.computed(spending.cover_usd, {"missing_share": of_quarter["missing_share"], "cover_month_usd": covers})
        for name, label, display in (
            ("order_by_day", "Order by", DATE),
            ("first_day", "Needed from", DATE),
            ("is_late", "Late", PLAIN),
        ):
            table.looked_up(name, label, of_quarter[name], display)
        self._until_end(table, rows, before)
        table.computed(
            order_waiting_usd,
            {
                "cover_month_usd": covers,
                "planned_month_usd": [self.by_type.columns["instance_month_usd"][t] for t, _ in rows],
                "n_instances": table.columns["ordered_instances"],
            },
            name="waiting_usd",
        )

    def _quotas(self) -> None:
        """By quota the most machines of its type that are rented, and from which day on it is too small."""
        plan, n = self.plan, self.n_quarters
        place = {one.instance: t for t, one in enumerate(self.types)}
        every = [(i, place.get(plan.machine(one.type))) for i, one in enumerate(plan.supply.quota)]
        self.quota_of = [i for i, t in every if t is not None]  # by row, those whose type is one of the plan's
        rows = [(i, t, q) for i, t in every if t is not None for q in range(n)]
        if not rows:
            return
        table = self._table(
            "Rented", "Of each quota the machines of its type, bought or committed, by quarter.", len(rows)
        )
        table.given("type", "Type", [plan.supply.quota[i].type for i, *_ in rows], TEXT, role="label", width=34)
        self._given(table, "quarter", "Quarter", [q for *_, q in rows], PLAIN)
        for name, label in (("gap", "Bought"), ("committed_instances", "Committed")):
            found = [self.orders.columns[name][self.row_of_order(t, q)] for _, t, q in rows]
            table.looked_up(name, label, found, PLAIN)
        limits = [self.inputs.cells[f"quota_{i + 1}_limit"] for i, *_ in rows]
        table.computed(rented_instances)
        table.computed(over_quota, {"quota": limits})
        table.looked_up("first_day", "First day", [self.quarters.columns["first_day"][q] for *_, q in rows], DATE)
        quotas = self.quotas = self._table("Quotas", "Quotas: what is needed of each, and from when.", len(rows) // n)
        quotas.given("type", "Type", [plan.supply.quota[i].type for i in self.quota_of], TEXT, role="label", width=34)
        spans = {
            name: [Range(table.columns[name][k : k + n]) for k in range(0, len(rows), n)]
            for name in ("rented_instances", "over_quota", "first_day")
        }
        most = [Lookup.of(max(ref.value for ref in one.refs), "MAX({0})", one) for one in spans["rented_instances"]]
        quotas.looked_up("most_instances", "Most rented", most, PLAIN)
        quotas.computed(first_day_over, {"over": spans["over_quota"], "days": spans["first_day"]})
        days = [self.inputs.cells[f"quota_{i + 1}_days"] for i in self.quota_of]
        quotas.computed(raise_by_day, {"lead_days": days})
        quotas.computed(quota_state)

    def _running(self, table: Table, rows: Sequence[tuple[int, int]], late: Sequence[Ref]) -> None:
        """The machines ordered late, added up from quarter to quarter."""
        one = spending.late_instances
        line, found = table.begin_column(one.label, one.documentation, 12), list[Ref]()
        for r, (_, q) in enumerate(rows):
            env: dict[str, Source] = {
                "late_before": found[-1] if q else Lookup.of(0, "0"),
                "is_late": late[r],
                "ordered_instances": table.columns["ordered_instances"][r],
            }
            found.append(table.sheet.compute(*table.place(line, r), one, env, lock="column"))
        table.columns[one.name] = found

    def _until_end(self, table: Table, rows: Sequence[tuple[int, int]], before: Sequence[Source]) -> None:
        """What each order costs until fewer are needed, or of its whole term."""
        gaps, months, buy = table.columns["gap"], table.columns["quarter_instance_month_usd"], self.plan.policy.buy
        term, n = MONTHS_OF_TERM.get(buy), self.n_quarters
        if term is not None:
            table.computed(of_term_usd, name="order_usd")
            return
        ordered, kept = table.columns["ordered_instances"], list[list[Ref]]()
        for ahead in range(n):
            line = table.begin_column(f"Needed {ahead} quarters later", kept_of_order.documentation, 10)
            column = list[Ref]()
            for r, (_, q) in enumerate(rows):
                if q + ahead >= n:
                    column.append(table.sheet.put(*table.place(line, r), Cell(0, "fixed", PLAIN), lock="column"))
                    continue
                env: dict[str, Source] = {
                    "kept_before": kept[-1][r] if ahead else ordered[r],
                    "gap": gaps[r + ahead],
                    "gap_of_order": gaps[r],
                    "gap_before": before[r],
                }
                column.append(table.sheet.compute(*table.place(line, r), kept_of_order, env, lock="column"))
            kept.append(column)
        per_quarter = self.wiring.inputs["months_in_a_quarter"]
        found = []
        for r, (_, q) in enumerate(rows):
            pairs = [ref for ahead in range(n - q) for ref in (kept[ahead][r], months[r + ahead])]
            found.append(
                _derived(
                    lambda m, *v: sum(k * usd for k, usd in zip(v[::2], v[1::2], strict=True)) * m, per_quarter, *pairs
                )
            )
        table.looked_up("order_usd", "$ until fewer are needed", found, USD)

    def _shares(self) -> None:
        """Each service's part of the machines, and what that costs."""
        table, case = self.loads, self.wiring.inputs["planned_case"]
        rows = [(s, q, z) for s in range(self.n_services) for q in range(self.n_quarters) for z in range(N_CASES)]
        trios = [[self.row_of_load(s, q, z) for z in range(N_CASES)] for s, q, _ in rows]
        machines, places = table.columns["machines"], table.columns["pool_row"]
        table.looked_up(
            "planned_machines",
            "Machines, as planned",
            [chosen(case, [machines[i] for i in trio]) for trio in trios],
            FACTOR,
        )
        of_all = [[self.pools.columns["machines_of_all"][int(places[i].value) - 1] for i in trio] for trio in trios]
        table.looked_up("planned_machines_of_all", "Of all, as planned", [chosen(case, one) for one in of_all], FACTOR)
        for name, label in (("needed_instances", "Machines of all"), ("quarter_instance_month_usd", "$ of one")):
            found = [self.pools.columns[name][int(place.value) - 1] for place in places]
            table.looked_up(name, label, found, USD_CENTS if name.endswith("usd") else PLAIN)
        for _, one in formulas_of("shares"):
            table.computed(one)

    def _money(self) -> None:
        """By quarter and quantile what is spent, and what the budget leaves."""
        rows = [(q, z) for q in range(self.n_quarters) for z in range(N_CASES)]
        table = self.money = self._table("Totals", "By quarter and quantile: spend, contingency, budget.", len(rows))
        table.given("quarter", "Quarter", [str(self.plan.quarters[q]) for q, _ in rows], TEXT, role="label")
        table.given("case", "Quantile", [QUANTILES[z] for _, z in rows], TEXT, role="label")
        bought, keys = (self.column(self.pools, name) for name in ("bought_usd", "money_row"))
        table.looked_up(
            "bought_of_all_usd", "Bought, $", [self._sum_where(bought, keys, i) for i in range(len(rows))], USD
        )
        late, of_quarter = (self.column(self.orders, name) for name in ("cover_usd", "quarter"))
        by_quarter = [self._sum_where(late, of_quarter, q) for q in range(self.n_quarters)]
        table.looked_up("late_usd", "Late orders cost more, $", [by_quarter[q] for q, _ in rows], USD)
        usd, quarters, owned = (self.column(self.paid, name) for name in ("paid_usd", "quarter", "is_owned"))
        for name, label, is_owned in (("committed_usd", "Committed, $", 0), ("owned_usd", "Owned, $", 1)):
            found = []
            for q, _ in rows:
                mine = (
                    u.value
                    for u, k, o in zip(usd.refs, quarters.refs, owned.refs, strict=True)
                    if (k.value, o.value) == (q, is_owned)
                )
                found.append(Lookup.of(sum(mine), f"SUMIFS({{0}},{{1}},{q},{{2}},{is_owned})", usd, quarters, owned))
            table.looked_up(name, label, found, USD)
        budget = [self.quarters.columns["budget_usd"][q] for q, _ in rows]
        for _, one in formulas_of("money"):
            table.computed(one, {"budget_usd": budget})
        left = table.columns["budget_left_usd"]
        self.quarters.computed(
            spending.budget_verdict,
            {
                f"budget_left_{name}_usd": [left[self.row_of_money(q, z)] for q in range(self.n_quarters)]
                for z, name in enumerate(QUANTILES)
            },
        )
        self.quarters.computed(is_over)
        self.quarters.computed(has_budget)


@formula("$ an hour", USD_CENTS)
def price_of_commitment(stated_usd_per_hour: Any, discounted_usd_per_hour: Any) -> Any:
    """What an hour of a commitment costs: as stated, else the list price less the discount.

    Source: commitment_month_usd.
    """
    return where(is_number(stated_usd_per_hour), stated_usd_per_hour, discounted_usd_per_hour)


@formula("Paid, $", USD)
def paid_usd(is_owned: Any, count: Any, month_usd: Any, months_in_a_quarter: Any, paid_share: Any) -> Any:
    """What a commitment or a pool costs in a quarter, used or not.

    Source: committed_quarter_usd; of a pool its share of what a quarter costs.
    """
    committed = spending.committed_quarter_usd(count, month_usd, months_in_a_quarter, paid_share)
    return where(is_owned == 1, month_usd * paid_share, committed)


@formula("Rented machines")
def rented_instances(gap: Any, committed_instances: Any) -> Any:
    """Machines of a type that count against its quota: bought or committed.

    Source: definition.
    """
    return gap + committed_instances


@formula("Over the quota", PLAIN)
def over_quota(rented_instances: Any, quota: Any) -> Any:
    """1 where more machines are rented than the quota allows.

    Source: definition.
    """
    return where(rented_instances > quota, 1, 0)


@formula("Too small from", DATE, rows=["days", "over"])
def first_day_over(days: Any, over: Any) -> Any:
    """The first day of the first quarter in which the quota is too small; none where it never is.

    Source: definition.
    """
    return least_where(days, over == 1, otherwise=NONE)


@formula("Raise by", DATE)
def raise_by_day(first_day_over: Any, lead_days: Any, approval_days: Any) -> Any:
    """The day by which approval must be requested, so that the quota is raised in time; none where it is large enough.

    Source: order_by_day.
    """
    return number_where(is_number(first_day_over), spending.order_by_day(first_day_over, lead_days, approval_days))


@formula("State", TEXT)
def quota_state(raise_by_day: Any, as_of_day: Any) -> Any:
    """What became of a quota that is too small: late, live, or large enough."""
    return where(is_number(raise_by_day), where(raise_by_day < as_of_day, LATE, LIVE), "enough")


@formula("Mean over peak", FACTOR)
def mean_share(peak_hour_share: Any, burst_factor: Any, hours_in_a_day: Any, least_utilization: Any) -> Any:
    """The share of the peak's load that there is on average.

    Source: mean_over_peak.
    """
    return largest(least_utilization, 1 / (hours_in_a_day * peak_hour_share * burst_factor))


@formula("Over its budget", PLAIN)
def is_over(budget_verdict: Any) -> Any:
    """1 where a quarter is over its budget, at p90 at least.

    Source: budget_verdict.
    """
    return where(either(budget_verdict == spending.OVER, budget_verdict == spending.OVER_AT_P90), 1, 0)


@formula("Has a budget", PLAIN)
def has_budget(budget_usd: Any) -> Any:
    """1 where a budget is stated.

    Source: definition.
    """
    return where(is_number(budget_usd), 1, 0)


@formula("Machines given back")
def released_instances(gap: Any, gap_before: Any) -> Any:
    """Instances that must be bought fewer of than in the quarter before.

    Source: definition.
    """
    return largest(0, gap_before - gap)


@formula("$ of the term", USD)
def of_term_usd(ordered_instances: Any, quarter_instance_month_usd: Any, n_months: Any) -> Any:
    """What an order costs over its whole term.

    Source: definition.
    """
    return ordered_instances * quarter_instance_month_usd * n_months


@formula("Cost of waiting, $", USD)
def order_waiting_usd(cover_month_usd: Any, planned_month_usd: Any, n_instances: Any, months_in_a_quarter: Any) -> Any:
    """What a quarter's delay of an order costs more; none where nothing covers it.

    Source: waiting_usd.
    """
    found = spending.waiting_usd(cover_month_usd, planned_month_usd, n_instances, months_in_a_quarter)
    return number_where(is_number(cover_month_usd), found)


@formula("$ per hour, less the discount", USD_CENTS)
def less_discount(listed_usd_per_hour: Any, discount_fraction: Any) -> Any:
    """The list price less the discount; none where no price is known.

    Source: discounted_usd_per_hour.
    """
    discounted = cost.discounted_usd_per_hour(listed_usd_per_hour, discount_fraction)
    return number_where(is_number(listed_usd_per_hour), discounted)


@formula("$ a month of one", USD_CENTS)
def month_or_none(price_usd_per_hour: Any, paid_hours_per_month: Any) -> Any:
    """A month of one machine; none where no price is known.

    Source: monthly_usd.
    """
    return cost.monthly_usd(price_usd_per_hour, paid_hours_per_month)


@formula("A month of what covers a late order, $", USD_CENTS, rows=["months", "leads"])
def cover_month(months: Any, leads: Any) -> Any:
    """A month of what is there soonest in place of an order: of the classes without a term the quickest, then the
    cheapest; none where there is none.

    Source: sheetgen plan (what covers a late order).
    """
    return least_where(months, leads == cheapest(leads, 0), otherwise=NONE)


def _level(stated: Demand, names: Sequence[str], of_request: tuple[int, int], *values: Any) -> Any:
    return level(stated, dict(zip(names, values, strict=True)), *of_request)


def _spread(side: int, z_of_p90: Any, *values: Any) -> Any:
    return spreads(_threes(values), z_of_p90)[side]


def _grown(
    growth: Growth | None,
    names: Sequence[str],
    quarter: Quarter,
    n: int,
    part: int,
    z_of_p90: Any,
    quarters_grown: Any,
    *values: Any,
) -> Any:
    bands = dict(zip(names, _threes(values), strict=True))
    return grown_in(growth, bands, quarter, n, z_of_p90, quarters_grown)[part]


def _threes(values: Sequence[Any]) -> list[Sequence[Any]]:
    return [values[i : i + N_CASES] for i in range(0, len(values), N_CASES)]


def _derived(function: Callable[..., Any], *read: Source) -> Lookup:
    """`derived`, of a function that may give a plain number, too."""
    found = derived(function, *read)
    return Lookup(found.value, lambda here: literal(found.write(here)))


def _sum(refs: Sequence[Ref]) -> Lookup:
    """The sum of a few cells, 0 of none."""
    text = "+".join(f"{{{i}}}" for i in range(len(refs))) or "0"
    return Lookup.of(sum(one.value for one in refs), text, *refs)


def chosen(case: Ref, refs: Sequence[Ref]) -> Lookup:
    """One of some cells, by its position from 1."""
    text = ",".join(f"{{{i + 1}}}" for i in range(len(refs)))
    return Lookup.of(refs[int(case.value) - 1].value, f"CHOOSE({{0}},{text})", case, *refs)
