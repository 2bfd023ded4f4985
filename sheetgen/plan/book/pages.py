"""The sheets of the plan's workbook that are read: Plan, Decisions, Services, Supply, Money; live but where marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sheetgen.cost import contingency_usd, in_currency
from sheetgen.formula import both, formula, is_number, join_text, number_where, where
from sheetgen.plan.answer import CASE
from sheetgen.plan.book.workings import LATE, LIVE, Workings, chosen
from sheetgen.plan.charts import machines
from sheetgen.plan.decisions import Decision
from sheetgen.plan.draws import quantiles
from sheetgen.plan.findings import Findings, spans
from sheetgen.plan.pages import MONEY, PlanPage
from sheetgen.plan.schema import DOLLARS, QUANTILES
from sheetgen.plan.spending import budget_verdict, usd_per_million_planned
from sheetgen.plan.yellow import of_currency
from sheetgen.sheet.book.wiring import HEAD_ROWS, Wiring, put_light, titled
from sheetgen.sheet.model import NONE, Cell, Chart, Lookup, Range, Ref, Sheet, Source, derived
from sheetgen.sheet.page import Cell as Shown
from sheetgen.units import (
    DATE,
    EXACT_PERCENT,
    FACTOR,
    ONE_DECIMAL,
    PLAIN,
    TEXT,
    TWO_DECIMALS,
    USD,
    USD_CENTS,
    WHOLE,
    Display,
)

ON_A_PAGE = 12  # types and services, of which Money is one page
ON_PLAN, SPARE = 8, 8  # decisions on the first sheet; lines for orders that are new since the build
INKS = ("#1D4ED8", "#0E7490", "#7C3AED", "#B45309", "#4D7C0F", "#BE185D", "#475569")
P90_INK, SUPPLY_INK = "#8F1D16", "#17212B"
CHART_WIDTH, CHART_HEIGHT = 1080, 260
BUILT = "build"


@formula("State", TEXT)
def order_state(n_machines: Any, is_late: Any) -> Any:
    """What became of an order: late, live, or no more needed."""
    return where(n_machines > 0, where(is_late == 1, LATE, LIVE), "no more")


@formula("State", TEXT)
def release_state(n_machines: Any) -> Any:
    """Whether machines are still given back then."""
    return where(n_machines > 0, LIVE, "no more")


@formula("Budget", TEXT)
def budget_words(n_over: Any, n_stated: Any, first_over: Any) -> Any:
    """Whether the budget holds, contingency counted, at p90 too; else in how many quarters it does not."""
    some = join_text("over it in ", n_over, " of ", n_stated, " quarters, the first ", first_over)
    return where(
        n_stated == 0,
        "no budget is stated",
        where(n_over == 0, "every quarter with one is within it, at p90 too", some),
    )


@formula("Order that the build has not", PLAIN)
def unlisted(ordered_instances: Any, is_listed: Any) -> Any:
    """1 where machines must be ordered that the decisions of the build do not name.

    Source: definition.
    """
    return where(both(ordered_instances > 0, is_listed == 0), 1, 0)


class Pages:
    """The sheets, from the workings."""

    def __init__(
        self, found: Findings, page: PlanPage, work: Workings, wiring: Wiring, links: Mapping[str, str]
    ) -> None:
        """links: by service its sizing sheet."""
        self.links = dict(links)
        self.found, self.page, self.work, self.wiring = found, page, work, wiring
        self.plan, self.answer = found.answer.plan, found.answer
        self.spans = [*spans(self.plan)]
        self.sheets = {
            "Decisions": self.decisions(),
            "Services": self.services(),
            "Supply": self.supply(),
            "Money": self.money(),
        }
        self.sheets = {"Plan": self.first(), **self.sheets}

    # Pieces

    def _sheet(self, name: str, about: str, widths: Sequence[float], **more: Any) -> Sheet:
        sheet = titled(name, name, about, **more)
        sheet.widths = dict(enumerate(widths))
        return sheet

    def _bar(self, sheet: Sheet, row: int, title: str, n_columns: int) -> None:
        sheet.texts(row, 0, (title, *[""] * (n_columns - 1)), "section")

    def _usd(self, name: str, q: int, z: int) -> Ref:
        found: Ref = self.work.money.columns[name][self.work.row_of_money(q, z)]
        return found

    # Money ----------------------------------------------------------------------------------------------

    def _quarters(self, sheet: Sheet, row: int) -> list[list[Ref]]:
        """Spend against the budget by quarter, fiscal year where there are several, and in all; gives the columns of
        amounts."""
        sheet.texts(row, 0, ("Quarter", *MONEY[:-1], f"{MONEY[-1]} (build)", "Budget holds"))
        n, quarters = self.work.n_quarters, self.work.quarters.columns
        columns: list[list[Ref]] = [[] for _ in MONEY]
        for at, (name, _, many) in enumerate(self.spans, row + 1):
            together = quantiles(self.found.draws.spend_usd[:, many].sum(axis=1))["p90"]
            if at <= row + n:
                (q,) = many
                sheet.link(at, 0, quarters["quarter"][q], TEXT)
                live: list[Ref | Lookup] = [
                    derived(lambda usd: number_where(is_number(usd), usd), quarters["budget_usd"][q]),
                    *(self._usd("spend_usd", q, z) for z in CASE.values()),
                    self._usd("reserve_usd", q, 2),
                    self._usd("budget_left_usd", q, 2),
                ]
                verdict: Ref | Lookup = quarters["budget_verdict"][q]
            else:
                sheet.text(at, 0, name, "light")
                live = [added_up([refs[q] for q in many]) for refs in columns[:-1]]
                share = self.wiring.inputs["contingency_fraction"]
                verdict = derived(_verdict, *live[:3:2], live[5], share)
            role = "link" if at <= row + n else "total"
            for column, (one, refs) in enumerate(zip(live, columns, strict=False), 1):
                refs.append(sheet.link(at, column, one, USD, role))
            fixed = Cell(together, "fixed" if at <= row + n else "total", USD)
            columns[-1].append(sheet.put(at, len(MONEY), fixed))
            sheet.link(at, len(MONEY) + 1, verdict, TEXT, role)
        return columns

    def _in_currency(self, sheet: Sheet, row: int, columns: Sequence[Sequence[Ref]]) -> None:
        """The same amounts in the plan's currency, at the rate on Inputs."""
        sheet.texts(row, 0, ("Quarter", *MONEY[:-1], f"{MONEY[-1]} (build)", ""))
        display, _ = of_currency(self.plan.head)
        for at, ((name, *_), *amounts) in enumerate(zip(self.spans, *columns, strict=True), row + 1):
            sheet.text(at, 0, name, "label" if at <= row + self.work.n_quarters else "light")
            for column, usd in enumerate(amounts, 1):
                role = "link" if at <= row + self.work.n_quarters else "total"
                sheet.link(at, column, self._there(usd), display, role)

    def _there(self, usd: Ref | Lookup) -> Lookup:
        """Dollars in the plan's currency."""
        return derived(in_currency.function, usd, self.wiring.inputs["fx_rate"])

    def money(self) -> Sheet:
        work, n = self.work, self.work.n_quarters
        sheet = self._sheet(
            "Money",
            "What each quarter costs, in US dollars, live: what is bought, paid anyway, and what the budget leaves.",
            (24, *[14] * 7, 16),
            freeze=(HEAD_ROWS, 1),
            one_page=len(work.types) + len(self.plan.services) <= ON_A_PAGE,
        )
        row = HEAD_ROWS
        self._bar(sheet, row, "By quarter, contingency apart", 9)
        columns = self._quarters(sheet, row + 1)
        row += len(self.spans) + 3
        if self.plan.head.currency != DOLLARS:
            self._bar(sheet, row, f"The same in {self.plan.head.currency}, at the rate on Inputs", 9)
            self._in_currency(sheet, row + 1, columns)
            row += len(self.spans) + 3
        self._bar(sheet, row, "What it is made of, at p50", 9)
        sheet.texts(
            row + 1,
            0,
            (
                "Quarter",
                "Bought",
                "Late orders cost more",
                "Committed",
                "Owned",
                "Together",
                "Contingency",
                "Prices over today's",
                "",
            ),
        )
        for q in range(n):
            at = row + 2 + q
            sheet.link(at, 0, work.quarters.columns["quarter"][q], TEXT)
            for column, name in enumerate(
                ("bought_of_all_usd", "late_usd", "committed_usd", "owned_usd", "spend_usd", "reserve_usd"), 1
            ):
                sheet.link(at, column, self._usd(name, q, CASE["p50"]), USD)
            sheet.link(at, 7, work.quarters.columns["price_factor"][q], EXACT_PERCENT)
        row += n + 3
        self._by_quarter(
            sheet,
            row,
            "Bought by machine, at p50",
            [one.instance for one in work.types],
            lambda t, q: work.pools.columns["bought_usd"][work.row_of_pool(t, q, CASE["p50"])],
        )
        row += len(work.types) + 3
        names = [one.id for one in self.plan.services]
        self._by_quarter(
            sheet,
            row,
            "$ a month of each service, at p50",
            names,
            lambda s, q: work.loads.columns["service_month_usd"][work.row_of_load(s, q, CASE["p50"])],
        )
        row += len(names) + 3
        self._unit_costs(sheet, row)
        return sheet

    def _by_quarter(
        self, sheet: Sheet, row: int, title: str, names: Sequence[str], ref: Any, display: Display = USD
    ) -> None:
        """A block with a row for each name and a column for each quarter."""
        n = self.work.n_quarters
        sheet.texts(row, 0, (title, *[""] * max(8, n)), "section")
        sheet.texts(row + 1, 0, ("", *map(str, self.plan.quarters), *[""] * (8 - n)))
        for i, name in enumerate(names):
            sheet.text(row + 2 + i, 0, name, "label")
            for q in range(n):
                found = ref(i, q)
                if found is not None:
                    sheet.link(row + 2 + i, 1 + q, found, display)

    def _unit_costs(self, sheet: Sheet, row: int) -> None:
        """A million tokens of each service whose demand is a rate."""
        work, inputs = self.work, self.wiring.inputs
        services = [s for s, one in enumerate(self.plan.services) if not one.demand.at_once]

        def cost_of(i: int, q: int) -> Lookup:
            s = services[i]
            at = work.row_of_load(s, q, CASE["p50"])
            env: dict[str, Source] = {
                **inputs,
                "service_month_usd": work.loads.columns["service_month_usd"][at],
                "requests_per_second": work.loads.columns["requests_per_second"][at],
                "mean_over_peak": work.stated.columns["mean_over_peak"][s],
                "tokens_per_request": work.stated.columns["tokens_per_request"][s],
            }
            env = {name: env[name] for name in usd_per_million_planned.inputs}
            rate = env["requests_per_second"]
            return derived(lambda r, *v: where(r > 0, usd_per_million_planned(*v), NONE), rate, *env.values())

        if services:
            self._by_quarter(
                sheet,
                row,
                "$ per million tokens, at p50",
                [self.plan.services[s].id for s in services],
                cost_of,
                USD_CENTS,
            )

    # Services and supply --------------------------------------------------------------------------------

    def services(self) -> Sheet:
        work, loads = self.work, self.work.loads.columns
        sheet = self._sheet(
            "Services",
            "Each service by quarter. Demand: requests a second at peak, or at once where these were "
            "stated. p10, p50 and p90 of one service are exact. Hardware and its times are values of the build.",
            (22, 9, *[10] * 6, *[8] * 3, 12, 32, *[11] * 3),
            freeze=(HEAD_ROWS + 1, 2),
        )
        sheet.texts(
            HEAD_ROWS,
            0,
            (
                "Service",
                "Quarter",
                "Demand, p10",
                "p50",
                "p90",
                "At once, p10",
                "p50",
                "p90",
                "Replicas, p10",
                "p50",
                "p90",
                "Set by, as planned",
                "Machine (build)",
                "$ a month, p10",
                "p50",
                "p90",
            ),
        )
        row = HEAD_ROWS
        for s, service in enumerate(self.plan.services):
            for q, quarter in enumerate(self.plan.quarters):
                row += 1
                placed = self.answer.hardware.placed.get((s, q))
                rows = [work.row_of_load(s, q, z) for z in range(len(QUANTILES))]
                link = self.links.pop(service.id, None) if placed else None  # of its first quarter
                sheet.text(row, 0, service.id, "link_text" if link else "label", url=link)
                sheet.text(row, 1, str(quarter), "label")
                column = 2
                for name, display in (("demand", TWO_DECIMALS), ("at_once", ONE_DECIMAL), ("planned_replicas", WHOLE)):
                    for i in rows:
                        sheet.link(row, column, loads[name][i], display)
                        column += 1
                if placed is None:
                    why = self.answer.hardware.nothing.get((s, q), "not served")
                    sheet.text(row, column, NONE, "fixed")
                    sheet.text(row, column + 1, why, "fixed")
                else:
                    words = [loads["set_by"][i] for i in rows]
                    case = self.wiring.inputs["planned_case"]
                    sheet.link(row, column, chosen(case, words), TEXT)
                    sheet.text(row, column + 1, placed.instance, "fixed")
                for k, i in enumerate(rows):
                    sheet.link(row, column + 2 + k, loads["service_month_usd"][i], USD)
        return sheet

    def supply(self) -> Sheet:
        work, orders, n = self.work, self.work.orders.columns, self.work.n_quarters
        sheet = self._sheet(
            "Supply",
            "Machines by quarter and type at the quantile that is bought: needed, owned, committed, to buy.",
            (10, 36, *[11] * 7),
            freeze=(HEAD_ROWS + 1, 2),
        )
        sheet.texts(
            HEAD_ROWS,
            0,
            ("Quarter", "Machine", "Needed", "Owned", "Committed", "To buy", "Idle", "Order by", "$ a month of one"),
        )
        row = HEAD_ROWS
        for q in range(n):
            for t, one in enumerate(work.types):
                row += 1
                i = work.row_of_order(t, q)
                sheet.text(row, 0, str(self.plan.quarters[q]), "label")
                sheet.text(row, 1, one.instance, "label")
                names = ("needed_instances", "owned_instances", "committed_instances", "gap", "idle")
                for column, name in enumerate(names, 2):
                    sheet.link(row, column, orders[name][i], WHOLE)
                by = derived(
                    lambda count, day: where(count > 0, day, NONE),
                    orders["ordered_instances"][i],
                    orders["order_by_day"][i],
                )
                sheet.link(row, 7, by, DATE)
                sheet.link(row, 8, orders["quarter_instance_month_usd"][i], USD)
        self._gpus(sheet, row + 2)
        return sheet

    def _gpus(self, sheet: Sheet, row: int) -> None:
        """GPUs by quarter: by kind at p50 and what is there, live; of all together, by the joint draws."""
        work, drawn = self.work, machines(self.found)
        kinds: dict[str, list[int]] = {}
        for t, one in enumerate(work.types):
            name = NONE if one.gpu == NONE else self.plan.catalog.gpu(one.gpu).name
            kinds.setdefault(name, []).append(t)
        heads = (
            "GPUs",
            "",
            *(f"{name}, p50" for name in kinds),
            "Owned and committed",
            *(f"{name} of all together (build)" for name in QUANTILES),
        )
        self._bar(sheet, row, "GPUs by quarter", max(10, len(heads)))
        sheet.texts(row + 1, 0, (*heads, *[""] * (10 - len(heads))))
        self.gpus: dict[str, list[Ref]] = {}
        counts = work.by_type.columns["gpu_count"]
        for q, quarter in enumerate(drawn.quarters):
            at = row + 2 + q
            self.gpus.setdefault("quarter", []).append(sheet.text(at, 0, quarter, "label"))
            for column, (name, types) in enumerate(kinds.items(), 2):
                needed = work.pools.columns["needed_instances"]
                refs = [ref for t in types for ref in (needed[work.row_of_pool(t, q, CASE["p50"])], counts[t])]
                self.gpus.setdefault(name, []).append(sheet.link(at, column, _dot(refs), WHOLE))
            refs = []
            for t in range(len(work.types)):
                i = work.row_of_order(t, q)
                both_of = derived(
                    lambda a, b: a + b,
                    work.orders.columns["owned_instances"][i],
                    work.orders.columns["committed_instances"][i],
                )
                refs += [both_of, counts[t]]
            column = 2 + len(kinds)
            self.gpus.setdefault("supply", []).append(sheet.link(at, column, _dot(refs), WHOLE))
            together = quantiles(self.found.draws.n_gpus[:, q])
            for k, name in enumerate(QUANTILES, 1):
                self.gpus.setdefault(f"together {name}", []).append(
                    sheet.put(at, column + k, Cell(together[name], "fixed", WHOLE))
                )
        self.kinds = [name for name in kinds if any(ref.value for ref in self.gpus[name])] or [*kinds]

    # Decisions ------------------------------------------------------------------------------------------

    def decisions(self) -> Sheet:
        """All of the build by their days, live where they follow from the demand; then orders that are new since."""
        sheet = self._sheet(
            "Decisions",
            "What must be decided, by which day, for how much. live: it follows the yellow cells; build: "
            "a value of the build; no more: the machines are not needed any more.",
            (11, 14, 9, 32, 12, 18, 14, 14, 10, 70),
            freeze=(HEAD_ROWS + 1, 2),
        )
        heads = (
            "By",
            "What",
            "Machines",
            "Machine",
            "Needed from",
            "Owner",
            "$",
            "$ of a quarter's delay",
            "State",
            "In words, as built",
        )
        sheet.texts(HEAD_ROWS, 0, heads)
        in_order = sorted(self.found.decisions, key=lambda one: not one.late)
        rows = [row for one in (*self.page.first, *self.page.second) if "ecisions" in one.title for row in one.rows]
        listed: set[int] = set()
        self.lines: list[list[Ref]] = []
        for at, (one, shown) in enumerate(zip(in_order, rows, strict=True), HEAD_ROWS + 1):
            i = self._row_of(one)
            if one.what == "order" and i is not None:
                listed.add(i)
            self.lines.append(self._decision(sheet, at, one, i, str(shown[3]), str(shown[-1])))
        self._new_orders(sheet, HEAD_ROWS + 2 + len(in_order), listed)
        return sheet

    def _row_of(self, one: Decision) -> int | None:
        """The row of Orders that a decision is about, where it is live."""
        place = {each.instance: t for t, each in enumerate(self.work.types)}
        days = [self.plan.first_day(each) for each in self.plan.quarters]
        if one.what not in ("order", "release") or one.instance not in place or one.needed_from not in days:
            return None
        return self.work.row_of_order(place[one.instance], days.index(one.needed_from))

    def _quota_of(self, one: Decision) -> int | None:
        """The row of Quotas that a decision is about."""
        plan = self.plan
        types = [plan.machine(plan.supply.quota[i].type) for i in self.work.quota_of]
        return types.index(one.instance) if one.what == "raise quota" and types.count(one.instance) == 1 else None

    def _raise(self, sheet: Sheet, at: int, one: Decision, row: int, owner: str, words: str) -> list[Ref]:
        """A quota that is too small, live."""
        quotas = self.work.quotas.columns
        return [
            sheet.link(at, 0, quotas["raise_by_day"][row], DATE),
            sheet.text(at, 1, one.what, "label"),
            sheet.link(at, 2, quotas["most_instances"][row], WHOLE),
            sheet.text(at, 3, one.instance, "label"),
            sheet.link(at, 4, quotas["first_day_over"][row], DATE),
            sheet.text(at, 5, owner, "label"),
            *(sheet.put(at, column, Cell(NONE, "fixed", USD)) for column in (6, 7)),
            sheet.link(at, 8, quotas["quota_state"][row], TEXT),
            sheet.text(at, 9, words, "wrapped"),
        ]

    def _decision(self, sheet: Sheet, at: int, one: Decision, i: int | None, owner: str, words: str) -> list[Ref]:
        row = self._quota_of(one)
        if row is not None:
            return self._raise(sheet, at, one, row, owner, words)
        orders = self.work.orders.columns
        line: list[Ref] = []

        def put(column: int, live: Ref | Lookup | None, value: Any, display: Display) -> None:
            value = NONE if value is None else value
            cell = Cell(value, "fixed", display)
            line.append(sheet.put(at, column, cell) if live is None else sheet.link(at, column, live, display))

        is_order = one.what == "order"
        names = ("order_by_day", "first_day", "ordered_instances", "released_instances", "order_usd", "waiting_usd")
        known = {name: None if i is None else orders[name][i] for name in names}
        count = known["ordered_instances" if is_order else "released_instances"]
        put(0, known["order_by_day" if is_order else "first_day"], one.order_by, DATE)
        line.append(sheet.text(at, 1, one.what, "label"))
        put(2, count, one.n_instances, WHOLE if float(one.n_instances).is_integer() else FACTOR)
        line.append(sheet.text(at, 3, one.instance, "label"))
        put(4, known["first_day"], one.needed_from, DATE)
        line.append(sheet.text(at, 5, owner, "label"))
        put(6, known["order_usd"] if is_order else None, one.usd, USD)
        put(7, known["waiting_usd"] if is_order else None, one.cost_of_waiting_usd, USD)
        if i is None:
            more = (", late" if one.late else "") + (", in place of an order" if one.in_place_of else "")
            line.append(sheet.text(at, 8, f"{BUILT}{more}", "fixed"))
        elif is_order:
            env: dict[str, Source] = {"n_machines": orders["ordered_instances"][i], "is_late": orders["is_late"][i]}
            line.append(sheet.compute(at, 8, order_state, env))
        else:
            line.append(sheet.compute(at, 8, release_state, {"n_machines": orders["released_instances"][i]}))
        line.append(sheet.text(at, 9, words, "wrapped"))
        return line

    def _new_orders(self, sheet: Sheet, row: int, listed: set[int]) -> None:
        """Orders that follow from the yellow cells as they are now, and that the build had not."""
        table = self.work.orders
        flags = [int(i in listed) for i in range(table.n_rows)]
        self.work._given(table, "is_listed", "Order of the build", flags, PLAIN)
        table.computed(unlisted)
        column = table.begin_column("Number of it", "", 10)
        found: list[Ref] = []
        n = 0
        for i, ref in enumerate(table.columns["unlisted"]):
            n += ref.value
            counted = Lookup.of(
                n if ref.value else 0,
                "IF({0}=1,SUM({1}),0)",
                ref,
                Range((table.columns["unlisted"][0], ref), lock="none"),
            )
            found.append(table.sheet.link(*table.place(column, i), counted, PLAIN, "computed", lock="column"))
        numbers = Range(tuple(found))
        self.new_orders = Lookup.of(n, "SUM({0})", Range(tuple(table.columns["unlisted"])))
        self._others(sheet, row + SPARE + 3, {self._quota_of(one) for one in self.found.decisions})
        self._bar(sheet, row, f"Orders that are new since the build, the first {SPARE} (live)", 10)
        for k in range(SPARE):
            at = row + 1 + k
            place = f"MATCH({k + 1},{{1}},0)"
            value = next((i for i, one in enumerate(found) if one.value == k + 1), None)
            for c, name, display in (
                (0, "order_by_day", DATE),
                (2, "ordered_instances", WHOLE),
                (3, "instance", TEXT),
                (4, "first_day", DATE),
                (6, "order_usd", USD),
                (7, "waiting_usd", USD),
            ):
                refs = Range(tuple(table.columns[name]))
                shown = NONE if value is None else refs.refs[value].value
                sheet.link(at, c, Lookup.of(shown, f'IFERROR(INDEX({{0}},{place}),"-")', refs, numbers), display)

    def _others(self, sheet: Sheet, row: int, listed: set[int | None]) -> None:
        """Quotas that were large enough when the workbook was built."""
        rest = [i for i in range(len(self.work.quota_of)) if i not in listed]
        if not rest:
            return
        self._bar(sheet, row, "Quotas that were large enough (live)", 10)
        quotas = self.work.quotas.columns
        for at, i in enumerate(rest, row + 1):
            for column, name, display in (
                (0, "raise_by_day", DATE),
                (2, "most_instances", WHOLE),
                (3, "type", TEXT),
                (4, "first_day_over", DATE),
                (8, "quota_state", TEXT),
            ):
                sheet.link(at, column, quotas[name][i], display)

    # The first sheet --------------------------------------------------------------------------------------

    def first(self) -> Sheet:
        plan, work = self.plan, self.work
        head = plan.head
        other = "" if head.currency == DOLLARS else f"in US dollars; Money has it in {head.currency}, too"
        about = " · ".join(filter(None, (self.page.people, f"as of {self.page.as_of}", other)))
        sheet = titled("Plan", self.page.title, about, one_page=True)
        sheet.widths = dict(enumerate((22, 14, 18, 14, 18, 14, 14, 14, 24)))
        put_light(self.wiring, sheet, 2, 1, "All checks")
        sheet.text(2, 3, "values of the build:", "right_label")
        sheet.link(2, 4, self.wiring.ref("chk_values")._replace(name="chk_values"), TEXT, "light")
        sheet.status_cells.append((2, 4))
        sheet.text(2, 6, f"{LIVE}: follows Inputs. {BUILT}: a value of the build.", "remark")
        row = HEAD_ROWS
        self._bar(
            sheet,
            row,
            f"To approve, {plan.quarters[0]} to {plan.quarters[-1]}; beside it what it may be, contingency apart",
            9,
        )
        bottom = row + 8
        columns = self._quarters(sheet, bottom)
        totals = [refs[-1] for refs in columns[1:4]]
        inputs = self.wiring.inputs
        planned = chosen(inputs["planned_case"], totals)
        asked = derived(lambda usd, share: usd + contingency_usd(usd, share), planned, inputs["contingency_fraction"])
        shown: list[tuple[int, str, str, Ref | Lookup]] = [
            (0, "the machines as planned, and contingency", "asked", asked),
            (2, "at p50, the middle case", "p50", totals[CASE["p50"]]),
            (4, "where all demand is high (p90)", "p90", totals[CASE["p90"]]),
            (6, "below it in nine of ten cases (build)", "", columns[-1][-1]),
        ]
        display, _ = of_currency(head)
        for column, label, name, found in shown:
            sheet.text(row + 1, column, label, "unit")
            ref = sheet.link(row + 2, column, found, USD, "answer_money")
            if name:
                self.wiring.names[f"rec_{name}_usd"] = ref
            if head.currency != DOLLARS:
                sheet.link(row + 3, column, self._there(ref), display, "answer_money")
        quarters = work.quarters
        over, stated = (Range(tuple(quarters.columns[name])) for name in ("is_over", "has_budget"))
        n_over, n_stated = (sum(ref.value for ref in one.refs) for one in (over, stated))
        names = Range(tuple(quarters.columns["quarter"]))
        first = next((names.refs[q].value for q, ref in enumerate(over.refs) if ref.value), NONE)
        env: dict[str, Source] = {
            "n_over": Lookup.of(n_over, "SUM({0})", over),
            "n_stated": Lookup.of(n_stated, "SUM({0})", stated),
            "first_over": Lookup.of(first, 'IFERROR(INDEX({0},MATCH(1,{1},0)),"-")', names, over),
        }
        sheet.text(row + 4, 0, "Budget, contingency counted:", "label")
        sheet.compute(row + 4, 2, budget_words, env, role="light")
        sheet.text(row + 5, 0, "as built:", "label")
        sheet.text(row + 5, 2, str(self.page.verdict).removeprefix("Budget, contingency counted: "), "text")
        self._bar(sheet, bottom - 1, "Money by quarter, US dollars", 9)
        row = bottom + len(self.spans) + 2
        n_more = max(0, len(self.lines) - ON_PLAN)
        more = f"; {n_more} more on Decisions" if n_more else ""
        self._bar(sheet, row, f"Decisions, late ones first, then by the day by which each is due{more}", 9)
        heads = ("By", "What", "Machines", "Needed from", "$", "$ of a quarter's delay", "State", "Machine", "")
        sheet.texts(row + 1, 0, heads)
        for at, line in enumerate(self.lines[:ON_PLAN], row + 2):
            for column, (k, display) in enumerate(
                ((0, DATE), (1, TEXT), (2, WHOLE), (4, DATE), (6, USD), (7, USD), (8, TEXT), (3, TEXT))
            ):
                sheet.link(at, column, line[k], display)
        row += 3 + min(len(self.lines), ON_PLAN)
        self._chart(sheet, row)
        return sheet

    def _chart(self, sheet: Sheet, row: int) -> None:
        gpus = self.gpus

        def ends(name: str) -> tuple[Ref, Ref]:
            return gpus[name][0], gpus[name][-1]

        sheet.charts.append(
            Chart(
                row,
                0,
                "GPUs by quarter: needed at p50 by kind, at p90 of all together, and there without buying",
                "Stacked bars of the GPUs needed at p50, a dashed line at p90, a solid one of what is owned "
                "and committed.",
                ends("quarter"),
                [(name, *ends(name), INKS[i % len(INKS)]) for i, name in enumerate(self.kinds)],
                CHART_WIDTH,
                CHART_HEIGHT,
                "GPUs",
                [
                    ("needed at p90, all together (build)", *ends("together p90"), P90_INK, True),
                    ("owned and committed", *ends("supply"), SUPPLY_INK, False),
                ],
            )
        )


def added_up(refs: Sequence[Ref]) -> Lookup:
    """The sum of cells below one another; none where one of them is none."""
    known = [one.value for one in refs if isinstance(one.value, int | float)]
    area = Range((refs[0], refs[-1]), lock="none")
    return Lookup.of(sum(known) if len(known) == len(refs) else NONE, 'IF(COUNTIFS({0},"-")=0,SUM({0}),"-")', area)


def _verdict(budget_usd: Any, p50_usd: Any, left_p90_usd: Any, share: Any) -> Any:
    """What the budget of some quarters together says."""
    left = number_where(is_number(budget_usd), budget_usd - p50_usd - contingency_usd(p50_usd, share))
    return budget_verdict(left, left_p90_usd)


def _dot(refs: Sequence[Ref | Lookup]) -> Lookup:
    """The sum of products of pairs of cells."""
    return derived(lambda *v: sum(a * b for a, b in zip(v[::2], v[1::2], strict=True)), *refs)


def shown_value(one: Any) -> tuple[Any, Display]:
    """What a cell of a page shows, as a cell of a sheet has it."""
    if isinstance(one, Shown) and not one.parts and isinstance(one.value, int | float):
        return one.value, one.display
    return str(one), TEXT
