"""The plan as a flat workbook: values of its day, with live sums and money.

Demand, quantities and prices stand in yellow cells on Inputs. Money follows a price: it is quantity x price, and totals
are formulas. What hangs on demand, quantities or policy says `run pull` once one of them is another, and so does what
was worked out of money by other means once anything is. `sheetgen pull` carries the yellow cells back to plan.yaml.
"""

from __future__ import annotations

import datetime
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from sheetgen.book.carried import put_record
from sheetgen.book.checks import HEADS, ChecksSheet
from sheetgen.book.inputs_sheet import AS_BUILT, CHANGED
from sheetgen.book.lookups import count_of
from sheetgen.book.sheets import (
    NONE,
    Book,
    Cell,
    Chart,
    Lookup,
    Range,
    Ref,
    Sheet,
    Source,
    Validation,
    derived,
    plain,
    worked_out,
)
from sheetgen.book.wiring import HEAD_ROWS, Wiring, put_light, titled
from sheetgen.formula import both, is_number, number_where, ratio, where
from sheetgen.plan import needs, spending
from sheetgen.plan.decisions import Decision, in_lines, is_of, kind, owners
from sheetgen.plan.draws import quantiles
from sheetgen.plan.findings import HOLDS, Findings, spans
from sheetgen.plan.pages import MONEY, PlanPage, decision_words
from sheetgen.plan.plan_currency import in_currency
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER
from sheetgen.plan.schema import DOLLARS, QUANTILES, Committed, Owned
from sheetgen.plan.sized_alone import commands
from sheetgen.plan.spending import NO_BUDGET, OVER, OVER_AT_P90
from sheetgen.plan.stated_plan import Base, in_class
from sheetgen.plan.supplied import paid_shares
from sheetgen.plan.tables import CONSTANTS, loan_shares
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.plan.yellow import (
    QUANTILE,
    SURVIVE,
    Yellow,
    listed_prices_of,
    part_of_name,
    price_name,
    yellow_rows,
)
from sheetgen.report.notes import first_link
from sheetgen.report.page import Cell as Shown
from sheetgen.report.page import Table, Text
from sheetgen.report.wording import prefix_of, sign_of
from sheetgen.sizing import cost
from sheetgen.units import (
    DATE,
    EXACT_PERCENT,
    FACTOR,
    ON_DEMAND,
    ONE_DECIMAL,
    PERCENT,
    PLAIN,
    PURCHASES,
    TEXT,
    TWO_DECIMALS,
    USD,
    USD_CENTS,
    WHOLE,
    Display,
)

PULL = "run pull"  # what a cell says whose value is not of the inputs any more
SCHEMA = 7  # of the layout
LABEL, P10, UNIT, STATE, NOTE, BUILT, LISTS = 0, 1, 4, 5, 6, 7, 10  # columns of Inputs; from BUILT on hidden
SOURCES = {QUANTILE.words: "list_quantile", SURVIVE.words: "list_survive"}  # defined names of the words of a list
ON_PLAN = 8  # decisions on the first sheet
INKS = ("#1D4ED8", "#0E7490", "#7C3AED", "#B45309", "#4D7C0F", "#BE185D", "#475569")
IN_DOLLARS = USD.in_currency(prefix_of(DOLLARS))  # beside amounts in another currency: USD 12,229
P90_INK, SUPPLY_INK = "#8F1D16", "#17212B"
LONG = 30  # characters from which a text is wrapped
Value = str | float | datetime.date | None  # of a cell
NOTES = {  # by head the formula whose documentation stands in its note
    "Needed": needs.needed_instances, "Spare": needs.spare_instances,
    "Idle": needs.idle, "To buy, p10": needs.gap, "Set by": needs.set_by,
    "Prices over today's": spending.price_factor, "$ a month of one": spending.quarter_instance_month_usd,
    "Machines, p10": needs.own_instances, "Cover of late orders, p10": spending.cover_usd,
    "Budget left at p90": spending.budget_left_usd, "Budget holds": spending.budget_verdict,
}  # fmt: skip


def _of_each(head: str, width: float) -> tuple[tuple[str, float], ...]:
    return tuple((f"{head}, {z}", width) for z in QUANTILES)


COLUMNS: Mapping[str, Sequence[tuple[str, float]]] = {  # of sheets that are one table: heads and widths
    "Supply": (
        ("Quarter", 10), ("Machine", 36), ("GPU", 18), ("Needed", 11), ("Owned", 11), ("Committed", 11), ("Idle", 11),
        *_of_each("To buy", 11), ("$ a month of one", 11), *_of_each("Bought, $", 11), ("Spare", 11),
        ("In use at p50, mean", 11), ("at the peak", 11), ("Borrowed", 11), ("Lent", 11),
    ),
    "Decisions": (
        ("By", 18), ("What", 16), ("Machines", 12), ("Machine", 34), ("Needed from", 14), ("Owner", 18), ("$", 14),
        ("$ of a quarter's delay", 14), ("Sign", 10), ("In words", 70),
    ),
    "Services": (
        ("Service", 22), ("Quarter", 12), *_of_each("Requests/s", 10), *_of_each("At once", 10), ("Replicas, p50", 10),
        ("p90", 10), ("Set by", 12), ("Machine", 34), *_of_each("Machines", 10), ("$ a month of one", 12),
        *_of_each("$ a month", 12), ("ms a token", 11), ("First token, s", 11), ("$ per million tokens, p50", 12),
    ),
}  # fmt: skip


def build_plan_book(findings: Findings, page: PlanPage, record: Mapping[str, Any]) -> Book:
    """The workbook, in the plan's currency. record: the plan as JSON, which it carries."""
    return _Sheets(findings, page, record).book()


class _Sheets:
    """The sheets, and what they share."""

    def __init__(self, findings: Findings, page: PlanPage, record: Mapping[str, Any]) -> None:
        self.findings, self.page, self.record = findings, page, record
        self.answer: Answer = findings.answer
        self.plan = self.answer.plan
        self.sign = sign_of(self.plan.head.currency)
        self.quarters = [str(quarter) for quarter in self.plan.quarters]
        self.listed = listed_prices_of(self.plan, record)
        self.wiring = Wiring(code=self.plan.head.currency)
        self.cells: dict[str, Ref] = {}  # yellow, by name
        self.inputs = self._inputs()
        self.money_sheet = self._sheet("Money", "What each quarter costs, in US dollars.", (34, *[14] * 8), 9)
        self._prices()
        self.supply_sheet = self._supply()
        self._spend()
        self.decisions_sheet = self._decisions()
        self.services_sheet = self._services()

    def book(self) -> Book:
        first, checks = self._first(), self._checks()
        pages = (first, self.decisions_sheet, self.services_sheet, self.supply_sheet, self.money_sheet)
        return Book(
            [self.inputs, *pages, checks, *(sheet.dollars for sheet in pages if sheet.currency)],
            self.wiring.names,
            {
                "sheetgen.plan_schema": str(SCHEMA),
                "sheetgen.version": self.page.version,
                "sheetgen.catalog_sha256": self.plan.catalog.catalog_sha256(),
            },
            datetime.datetime.combine(self.plan.as_of, datetime.time()),
            self.page.paper,
            self.page.title,
            "Capacity plan: machines, orders and money by quarter",
        )

    # Pieces

    def _sheet(
        self,
        name: str,
        about: str,
        widths: Sequence[float],
        n_printed: int,
        *,
        title: str = "",
        freeze: tuple[int, int] = (HEAD_ROWS, 0),
        one_page: bool = False,
    ) -> Sheet:
        """A sheet whose columns from `n_printed` on are hidden: there stand the values that its cells show."""
        currency = None if name == "Inputs" else self.wiring.currency
        sheet = titled(name, title or name, about, freeze=freeze, one_page=one_page, currency=currency)
        sheet.widths, sheet.n_printed = dict(enumerate(widths)), n_printed
        if name != "Inputs":
            self._put_state(sheet, 1)
        return sheet

    def _list(self, name: str, about: str) -> Sheet:
        """A sheet that is one table."""
        heads, widths = zip(*COLUMNS[name], strict=True)
        sheet = self._sheet(name, about, widths, len(heads), freeze=(HEAD_ROWS + 1, 2))
        put_heads(sheet, HEAD_ROWS, heads)
        return sheet

    def _put_state(self, sheet: Sheet, column: int) -> None:
        """In the row above the first heads if the values are still those of the inputs."""
        row, flags = HEAD_ROWS - 1, self.wiring.inputs
        sheet.text(row, column - 1, f"values of {self.page.as_of}:", "label")
        word = f'IF({{0}}>0,"{PULL}",IF({{1}}>0,"{CHANGED}","{AS_BUILT}"))'
        state = Lookup.of(AS_BUILT, word, flags["n_outdated"], flags["n_changed"])
        sheet.link(row, column, state, TEXT, "light")
        sheet.status_cells.append((row, column))

    def _bar(self, sheet: Sheet, row: int, title: str, heads: Sequence[str] = ()) -> None:
        """The title of a block, and its heads below."""
        sheet.texts(row, 0, (title, *[""] * ((sheet.n_printed or 1) - 1)), "section")
        put_heads(sheet, row + 1, heads)

    def _value(
        self,
        sheet: Sheet,
        row: int,
        column: int,
        value: Value,
        display: Display,
        *,
        role: str = "",
        of_money: bool = False,
    ) -> Ref:
        """A value that was worked out: it stands in a hidden column, and is shown while the inputs are those of its
        day. of_money: it hangs on prices too."""
        value = NONE if value is None or value == "" else plain(value)
        built = sheet.put(row, (sheet.n_printed or 0) + column, Cell(value, "off_page", display), lock="column")
        flag = self.wiring.inputs["n_changed" if of_money else "n_outdated"]
        is_long = isinstance(value, str) and len(value) > LONG
        shown = Lookup.of(value, f'IF({{0}}>0,"{PULL}",{{1}})', flag, built)
        return self._live(sheet, row, column, shown, display, role or ("wrapped" if is_long else "computed"))

    def _values(
        self, sheet: Sheet, row: int, column: int, values: Iterable[Value], display: Display, *, of_money: bool = False
    ) -> list[Ref]:
        """Values side by side."""
        return [
            self._value(sheet, row, position, value, display, of_money=of_money)
            for position, value in enumerate(values, column)
        ]

    def _text(self, sheet: Sheet, row: int, column: int, text: Text, *, of_money: bool = False) -> Ref:
        """A cell of a document's table."""
        if isinstance(text, Shown) and not text.parts and isinstance(text.value, int | float):
            of_money = of_money or bool(text.display.prefix)
            return self._value(sheet, row, column, text.value, text.display, of_money=of_money)
        words = str(in_currency(text, self.plan.head))
        return self._value(sheet, row, column, words, TEXT, of_money=of_money or self.sign in words)

    def _table(self, sheet: Sheet, row: int, table: Table, *, of_money: bool = False) -> int:
        """A table of the documents under its title; gives the row below it."""
        self._bar(sheet, row, table.title, [column.head for column in table.columns])
        for line_row, cells in enumerate(table.rows, row + 2):
            for column, text in enumerate(cells):
                if str(text):
                    self._text(sheet, line_row, column, text, of_money=of_money)
        return row + 3 + len(table.rows)

    def _tables(self, sheet: Sheet, row: int, *names: str, of_money: bool) -> int:
        """Tables that the workbook alone has, where the plan has them; gives the row below them."""
        for name in names:
            if name in self.page.book:
                row = self._table(sheet, row, self.page.book[name], of_money=of_money)
        return row

    def _live(
        self,
        sheet: Sheet,
        row: int,
        column: int,
        source: Ref | Lookup,
        display: Display = USD,
        role: str = "computed",
    ) -> Ref:
        """A cell that follows others, or says to run pull."""
        sheet.status_cells.append((row, column))
        return sheet.link(row, column, source, display, role, lock="column")

    # Inputs

    def _inputs(self) -> Sheet:
        sheet = self._sheet(
            "Inputs",
            f"Change any yellow cell. Money follows prices; what hangs on the rest says {PULL}: sheetgen pull THIS.xlsx"
            " carries all back to a plan.yaml and works it out anew.",
            (40, 13, 13, 13, 11, 11, 50),
            BUILT,
            freeze=(HEAD_ROWS, 1),
        )
        row = HEAD_ROWS
        for words, name in SOURCES.items():
            refs = [sheet.put(row + i, LISTS, Cell(word, "off_page")) for i, word in enumerate(words)]
            self.wiring.names[name] = Range(tuple(refs))
            row += len(words)
        row, states = HEAD_ROWS, list[Ref]()
        for section, rows in itertools.groupby(yellow_rows(self.plan, self.listed), key=attrgetter("section")):
            lines = [*rows]
            quantiles_of = QUANTILES if any(line.is_band for line in lines) else ("", "", "")
            sheet.texts(row, LABEL, (section, *quantiles_of, "", "state", "why"), "section")
            states += [self._line(sheet, line_row, line) for line_row, line in enumerate(lines, row + 1)]
            row += len(lines) + 2
        self._constants(sheet, row)
        every, inputs, flags = Range((states[0], states[-1])), self.wiring.inputs, HEAD_ROWS - 1
        outdated = Lookup.of(0, f'COUNTIFS({{0}},"{PULL}")', every)
        inputs["n_outdated"] = sheet.link(flags, BUILT, outdated, PLAIN, "off_page", name="calc_n_outdated")
        changed = Lookup.of(0, f'{{1}}+COUNTIFS({{0}},"{CHANGED}")', every, inputs["n_outdated"])
        inputs["n_changed"] = sheet.link(flags, BUILT + 1, changed, PLAIN, "off_page", name="calc_n_changed")
        self.wiring.names |= {ref.name: ref for ref in inputs.values() if ref.name and ref.name.startswith("calc_")}
        self._put_state(sheet, UNIT)
        put_light(self.wiring, sheet, HEAD_ROWS - 1, P10, "All checks")
        return sheet

    def _line(self, sheet: Sheet, row: int, line: Yellow) -> Ref:
        """A row of yellow cells, what they were built with, and whether they still hold it; gives that cell."""
        sheet.text(row, LABEL, line.label, "label")
        sheet.text(row, UNIT, line.unit, "remark")
        sheet.text(row, NOTE, line.note, "remark_wrapped")
        check = Validation.of(line.kind, line.label, line.note)
        if line.kind.words:
            choice = f"{', '.join(line.kind.words)}."
            check = Validation(line.label[:32], choice, SOURCES[line.kind.words], line.kind)
        pairs: list[Ref] = []
        for i, (name, _, value) in enumerate(line.cells):
            cell = Cell(value, "input", line.display, validation=check)
            ref = sheet.put(row, P10 + i, cell, f"in_{name}")
            self.wiring.names[f"in_{name}"] = self.cells[name] = ref
            if name in ("discount_fraction", "contingency_fraction", "hours_per_month", "fx_rate"):
                self.wiring.inputs[name] = ref
            built = sheet.put(row, BUILT + i, Cell(NONE if value is None else value, "off_page", line.display))
            pairs += (ref._replace(name=None, lock="column"), built._replace(lock="column"))
        if line.name == "price_change":
            self.wiring.inputs["expected_change_per_year"] = self.cells["price_change_p50"]
        same = "AND({0}={1},{2}={3},{4}={5})" if line.is_band else "{0}={1}"
        if line.kind.blank:
            same = f'IF({{0}}="",{{1}}="{NONE}",{{0}}={{1}})'
        word = f'IF({same},"{AS_BUILT}","{CHANGED if line.is_money else PULL}")'
        sheet.status_cells.append((row, STATE))
        return sheet.link(row, STATE, Lookup.of(AS_BUILT, word, *pairs), TEXT, "state")

    def _constants(self, sheet: Sheet, row: int) -> None:
        """Constants, and the hours of a month that are paid."""
        inputs = self.wiring.inputs
        sheet.texts(row, LABEL, ("What nobody chooses", *[""] * 6), "section")
        constants = {
            "months_in_a_quarter": CONSTANTS["months_in_a_quarter"],
            "quarters_in_a_year": CONSTANTS["quarters_in_a_year"],
            "hours_in_a_month": cost.HOURS_IN_A_MONTH,
        }
        for line_row, (name, value) in enumerate(constants.items(), row + 1):
            cell, label = Cell(value, "fixed", FACTOR), name.replace("_", " ").capitalize()
            inputs[name] = sheet.put(line_row, P10, cell, f"calc_{name}", label=label)
        line_row, buy = row + 1 + len(constants), self.plan.policy.purchase
        for name, label, is_committed in (
            ("bought_hours", f"Hours paid of a machine bought {buy}", int(PURCHASES[buy].committed)),
            ("committed_hours", "Hours paid of one that is committed", 1),
        ):
            env: dict[str, Source] = {**inputs, "is_committed": Lookup.of(is_committed, str(is_committed))}
            inputs[name] = sheet.compute(
                line_row, P10, cost.paid_hours_per_month, env, display=FACTOR, label=label, name=f"calc_{name}"
            )
            line_row += 1

    # Money: what a machine costs, what is paid anyway, then what each quarter costs

    def _prices(self) -> None:
        """At the sheet's end by quarter the price over today's, a month of each machine, and what is paid anyway."""
        sheet, inputs, plan = self.money_sheet, self.wiring.inputs, self.plan
        n = len(self.quarters)
        self.top_of_parts = HEAD_ROWS + len([*spans(plan)]) + 3
        row = self.top_of_parts + n + 3
        sheet.n_printed = max(11, 3 + n)
        sheet.widths |= dict.fromkeys(range(9, max(11, 3 + n)), 14)
        for q, n_ahead in enumerate(plan.quarters_ahead):
            ahead = sheet.put(
                self.top_of_parts + 2 + q, sheet.n_printed, Cell(n_ahead, "off_page", PLAIN), lock="column"
            )
            env: dict[str, Source] = {**inputs, "quarters_ahead": ahead}
            place = self.top_of_parts + 2 + q, 1
            sheet.compute(*place, spending.price_factor, env, display=EXACT_PERCENT, lock="column")
        heads = ("Machine", "$ an hour", "$ a month, today", *self.quarters)
        self._bar(sheet, row, f"$ a month of one machine, as it is bought ({plan.policy.purchase})", heads)
        self.months: dict[str, list[Ref]] = {}  # of a machine, by quarter
        for line_row, instance in enumerate(self.listed, row + 2):
            sheet.text(line_row, 0, instance, "label")
            usd = sheet.link(line_row, 1, self.cells[price_name(instance)], USD_CENTS, lock="column")
            price = worked_out(cost.discounted_usd_per_hour, {**inputs, "listed_usd_per_hour": usd})
            way = plan.class_of(instance)
            hours = "committed_hours" if PURCHASES[way].committed else "hours_per_month"
            hours = "bought_hours" if way == plan.policy.purchase else hours
            env = {"price_usd_per_hour": price, "paid_hours_per_month": inputs[hours]}
            today = sheet.compute(line_row, 2, cost.instance_month_usd, env, lock="column")
            self.months[instance] = []
            for q, n_ahead in enumerate(plan.order_quarters_ahead(way)):
                hidden = sheet.put(
                    line_row, (sheet.n_printed or 0) + q, Cell(n_ahead, "off_page", PLAIN), lock="column"
                )
                factor = worked_out(spending.order_price_factor, {**inputs, "order_quarters_ahead": hidden})
                env = {"instance_month_usd": today, "order_price_factor": factor}
                self.months[instance].append(sheet.compute(line_row, 3 + q, spending.quarter_instance_month_usd, env))
        row += len(self.listed) + 3
        self.paid: list[tuple[Committed | Owned, list[Ref]]] = []  # by quarter
        paid: list[Committed | Owned] = [*plan.supply.committed, *plan.supply.owned]
        if paid:
            heads = ("Paid anyway, $", "Machines or GPUs", "$ a month of one, or a quarter", *self.quarters)
            self._bar(sheet, row, "Committed, used or not, and owned: for the share of the days that are paid", heads)
        for line_row, part in enumerate(paid, row + 2):
            self._paid(line_row, part)
        row += (len(paid) + 3) if paid else 0
        self._tables(sheet, row, "changed", "levers", "swings", of_money=True)

    def _paid(self, row: int, part: Committed | Owned) -> None:
        """A commitment's or a pool's cost by quarter."""
        sheet, inputs, plan = self.money_sheet, self.wiring.inputs, self.plan
        is_committed = isinstance(part, Committed)
        many: Sequence[Any] = plan.supply.committed if is_committed else plan.supply.owned
        stem = f"{'committed' if is_committed else 'owned'}_{many.index(part) + 1}_"
        sheet.text(row, 0, part.id, "label")
        count = sheet.link(row, 1, self.cells[f"{stem}count"], PLAIN, lock="column")
        if isinstance(part, Committed):
            price = plan.types[part.type].price(part.purchase) or plan.types[part.type].price(ON_DEMAND)
            hour = None if price is None else price.usd_per_hour
            listed = sheet.put(row, sheet.n_printed or 0, Cell(hour, "off_page", USD_CENTS), lock="column")
            stated, less = self.cells[f"{stem}usd_per_hour"], inputs["discount_fraction"]
            month_usd = derived(_committed_month_usd, stated, listed, less, inputs["committed_hours"])
            month = self._live(sheet, row, 2, month_usd)
        elif plan.head.currency == DOLLARS:
            month = sheet.link(row, 2, self.cells[f"{stem}cost"], USD, lock="column")
        else:
            env: dict[str, Source] = {"amount": self.cells[f"{stem}cost"], "fx_rate": inputs["fx_rate"]}
            month = sheet.compute(row, 2, spending.in_dollars, env, lock="column")
        refs = []
        for q, share in enumerate(paid_shares(plan, part).tolist()):
            days = sheet.put(row, (sheet.n_printed or 0) + 1 + q, Cell(share, "off_page", FACTOR), lock="none")
            env = {**inputs, "count": count, "committed_month_usd": month, "paid_share": days}
            if is_committed:
                refs.append(sheet.compute(row, 3 + q, spending.committed_quarter_usd, env))
            else:
                refs.append(self._live(sheet, row, 3 + q, derived(lambda usd, share: usd * share, month, days)))
        self.paid.append((part, refs))

    def _spend(self) -> None:
        """At the sheet's top what each quarter, fiscal year and all of them cost against the budget; below it what that
        is made of."""
        sheet, money = self.money_sheet, self.answer.money
        top = self.top_of_parts
        bought = (f"Bought, {z}" for z in QUANTILES)
        cover = (f"Cover of late orders, {z}" for z in QUANTILES)
        heads = ("Quarter", "Prices over today's", *bought, *cover, "Committed", "Owned", "Bound to the terms' ends")
        self._bar(sheet, top, "What it is made of, US dollars", heads)
        parts: list[list[Ref]] = []
        for q, quarter in enumerate(self.quarters):
            line_row = top + 2 + q
            name = sheet.text(line_row, 0, quarter, "label")._replace(lock="column")
            usd = [float(money["bought_of_all_usd"][q, z]) for z in CASE.values()]
            flag, keys = self.wiring.inputs["n_outdated"], self.bought_keys
            sums = [
                Lookup.of(value, f'IF({{0}}>0,"{PULL}",SUMIFS({{1}},{{2}},{{3}}))', flag, area, keys, name)
                for value, area in zip(usd, self.bought, strict=True)
            ]
            row = [self._live(sheet, line_row, 2 + z, amount) for z, amount in enumerate(sums)]
            late = [float(money["late_usd"][q, z]) for z in CASE.values()]
            row += self._values(sheet, line_row, 5, late, USD, of_money=any(late))
            bound = self.answer.bound_usd[q]
            self._value(sheet, line_row, 10, bound, USD, of_money=bound > 0)
            for column, paid in ((8, Committed), (9, Owned)):
                of_quarter = [refs[q] for part, refs in self.paid if isinstance(part, paid)]
                row.append(sheet.link(line_row, column, _sum(of_quarter), USD, "computed", lock="column"))
            parts.append(row)
        self._by_quarter(HEAD_ROWS, parts)

    def _by_quarter(self, top: int, parts: Sequence[Sequence[Ref]]) -> None:
        sheet, inputs, n = self.money_sheet, self.wiring.inputs, len(self.quarters)
        self._bar(sheet, top, "By quarter, US dollars; contingency apart", ("Quarter", *MONEY, "Budget holds"))
        share = inputs["contingency_fraction"]
        self.columns: list[list[Ref]] = [[] for _ in (*MONEY, "")]  # of amounts and verdicts, by quarter, year, in all
        for line_row, (name, _, many) in enumerate(spans(self.plan), top + 2):
            is_quarter = line_row < top + 2 + n
            role = "computed" if is_quarter else "total"
            sheet.text(line_row, 0, name, "label" if is_quarter else "light")
            if is_quarter:
                (q,) = many
                bought, late, (committed, owned) = parts[q][:3], parts[q][3:6], parts[q][6:]
                stated = self.cells[f"budget_{part_of_name(name)}"]
                rate: tuple[Ref, ...] = (inputs["fx_rate"],) if "fx_rate" in inputs else ()
                amounts = [derived(spending.in_dollars if rate else _number, stated, *rate)]
                amounts += [
                    _or_pull(_spend_usd, usd, cover, committed, owned, n=2)
                    for usd, cover in zip(bought, late, strict=True)
                ]
            else:
                amounts = [_total([refs[q] for q in many]) for refs in self.columns[:4]]
            already = [_added([parts[q][i] for q in many]) for i in (6, 7)]
            self.already = already  # of all quarters, at last
            row = [self._live(sheet, line_row, 1 + i, amount, USD, role) for i, amount in enumerate(amounts)]
            if is_quarter:
                reserves = [_or_pull(spending.reserve_usd, usd, *already, share) for usd in row[2:4]]
            else:
                reserves = [_total([refs[q] for q in many]) for refs in self.columns[4:6]]
            row += [self._live(sheet, line_row, 5 + i, reserve, USD, role) for i, reserve in enumerate(reserves)]
            together = quantiles(self.findings.draws.spend_usd[:, many].sum(axis=1))["p90"]
            row.append(self._value(sheet, line_row, 7, together, USD, role=role, of_money=True))
            verdict = _or_pull(_verdict, *row[2:6], row[0], n=2)
            row.append(self._live(sheet, line_row, 8, verdict, TEXT, role))
            for refs, ref in zip(self.columns, row, strict=True):
                refs.append(ref)

    # Supply

    def _supply(self) -> Sheet:
        """Machines by quarter and type, and what is bought of them; GPUs by quarter below."""
        plan, answer = self.plan, self.answer
        at_case = plan.policy.plan_at
        about = f"Machines by quarter and type: needed, owned, committed and idle at {at_case}, and to buy at each."
        sheet = self._list("Supply", about)
        row, names = HEAD_ROWS, ("needed", "owned", "committed", "idle")
        keys, bought = list[Ref](), [list[Ref]() for _ in QUANTILES]
        self.costs: dict[tuple[str, int], list[Ref]] = {}  # of all machines of a type, by quarter
        table, paid, rows = answer.supply, answer.machine_months, dict[tuple[str, int], int]()
        for q, quarter in enumerate(self.quarters):
            for t, machine in enumerate(answer.types):
                at_plan = [float(answer.supply_counts[name][t, q, answer.case]) for name in names]
                gaps = [float(answer.to_buy[t, q, z]) for z in CASE.values()]
                if not any((*at_plan, *gaps)):
                    continue
                rows[machine.instance, q] = row = row + 1
                keys.append(sheet.text(row, 0, quarter, "label"))
                sheet.text(row, 1, machine.instance, "label")
                sheet.text(row, 2, plan.catalog.gpu(machine.gpu).short_name, "label")
                self._values(sheet, row, 3, at_plan, WHOLE)
                self._values(sheet, row, 7, gaps, WHOLE)
                if machine.instance not in self.months:
                    sheet.text(row, 10, NONE, "fixed")
                    cells = self._values(sheet, row, 11, [0.0] * len(QUANTILES), USD)
                else:
                    sheet.link(row, 10, self.months[machine.instance][q], USD, lock="column")
                    cells = []
                    for z in CASE.values():
                        months = {machine.instance: paid[t][:, q, z].tolist()}
                        months |= self._of_base([base for base in plan.base if base.instance == machine.instance], [q])
                        left = 2 * len(QUANTILES) + z * len(self.months) * len(self.quarters)  # behind `_cost_usd`
                        cells.append(self._bought_usd(sheet, row, 11 + z, months, left))
                for refs, cell in zip(bought, cells, strict=True):
                    refs.append(cell)
                self.costs[machine.instance, q] = [
                    self._cost_usd(sheet, row, t, q, z, cell) for z, cell in enumerate(cells)
                ]
                self._values(sheet, row, 14, (float(table["spare_instances"][t, q, answer.case]),), WHOLE)
                self._values(sheet, row, 15, (float(share[t, q]) for share in answer.in_use), PERCENT)
                loans = (float(answer.supply_counts[name][t, q, answer.case]) for name in ("borrowed", "lent"))
                self._values(sheet, row, 17, loans, WHOLE)
        self.costs |= {key: self._with_loans(sheet, rows[key], *key) for key, cells in self.costs.items() if cells}
        if not keys:
            row += 1
            keys.append(sheet.text(row, 0, NONE, "label"))
            for z, refs in enumerate(bought):
                refs.append(sheet.put(row, 11 + z, Cell(0, "fixed", USD)))
        self.bought_keys, self.bought = Range(tuple(keys)), [Range(tuple(refs)) for refs in bought]
        table_of_gpus = self.page.book["gpus"]
        self.gpus_top = row + 2
        row = self._table(sheet, row + 2, table_of_gpus)
        self._tables(sheet, row, "regions", of_money=False)
        self.gpus = table_of_gpus
        return sheet

    def _cost_usd(self, sheet: Sheet, row: int, t: int, q: int, z: int, bought: Ref) -> Ref:
        """The cost of the machines of a type in a quarter, those that serve it and are paid anyway too: of owned GPUs
        the share that the type has."""
        plan, machine = self.plan, self.answer.types[t]
        reserved = [(part, refs[q]) for part, refs in self.paid if is_of(plan, part, machine)]
        pools = [part.cost_per_quarter * paid_shares(plan, part)[q] for part, _ in reserved if isinstance(part, Owned)]
        share = ratio(float(self.answer.supply["owned_paid_usd"][t, q, z]), sum(pools))
        column = 2 * (sheet.n_printed or 0) + z
        part = sheet.put(row, column + len(QUANTILES), Cell(share, "off_page", FACTOR))

        def cost_usd(bought: Any, share: Any, *paid: Any) -> Any:
            n = len(paid) - len(pools)
            return sum(paid[:n], bought) + share * sum(paid[n:], 0 * share)

        cost = _or_pull(cost_usd, bought, part, *(ref for _, ref in reserved))
        return sheet.link(row, column, cost, USD, "off_page", lock="column")

    def _with_loans(self, sheet: Sheet, row: int, instance: str, q: int) -> list[Ref]:
        """The cost of the machines of a type in a quarter, less what it lends, and with what it borrows of others."""
        answer, costs = self.answer, self.costs[instance, q]
        t, names = answer.place[instance], [machine.instance for machine in answer.types]
        behind = 2 * (sheet.n_printed or 0) + (2 + len(self.months) * len(self.quarters)) * len(QUANTILES)
        whole = list[Ref]()
        for z, own_usd in enumerate(costs):
            shares = {key: float(share[q, z]) for key, share in loan_shares(answer.rented).items() if share[q, z]}
            parts = {t: 1 - sum(share for (lender, _), share in shares.items() if lender == t)}
            parts |= {lender: share for (lender, borrower), share in shares.items() if borrower == t}
            if parts == {t: 1.0}:
                whole.append(own_usd)
                continue
            cells = [
                sheet.put(row, behind + 1 + i, Cell(share, "off_page", FACTOR))
                for i, share in enumerate(parts.values())
            ]
            of_parts = derived(_shared_usd, *(self.costs[names[i], q][z] for i in parts), *cells)
            whole.append(sheet.link(row, behind, of_parts, USD, "off_page", lock="column"))
            behind += 1 + len(parts)
        return whole

    # Decisions and services

    def _decisions(self) -> Sheet:
        """All by their days; what an order costs is its machines' months by their price."""
        sheet = self._list("Decisions", "What must be decided, by which day, for how much; late ones first.")
        in_order = in_lines(self.findings.decisions)
        self.lines: list[list[Ref]] = []
        for line_row, (decision, is_other) in enumerate(in_order, HEAD_ROWS + 1):
            names = ("order_by", "what", "n_instances", "instance", "needed_from")
            values = [*(getattr(decision, name) for name in names), ", ".join(owners(self.answer, decision))]
            shown = zip(values, (DATE, TEXT, WHOLE, TEXT, DATE, TEXT), strict=True)
            line = [self._value(sheet, line_row, column, *value) for column, value in enumerate(shown)]
            months = self._months_of(decision)
            if months:
                line.append(self._bought_usd(sheet, line_row, 6, months))
            else:
                in_plan = decision.in_plan_usd  # what is offered is in none of the plan's sums
                line.append(self._value(sheet, line_row, 6, in_plan, USD, of_money=in_plan is not None))
            line.append(self._value(sheet, line_row, 7, decision.cost_of_waiting_usd, USD, of_money=True))
            sign = "or" if is_other else "late" if decision.late else kind(self.plan, decision)
            line.append(self._value(sheet, line_row, 8, sign, TEXT))
            self._text(sheet, line_row, 9, decision_words(self.answer, decision, is_other))
            self.lines.append(line)
        self._tables(sheet, HEAD_ROWS + 2 + len(in_order), "break even", of_money=False)
        return sheet

    def _of_base(self, bases: Iterable[Base], quarters: Sequence[int]) -> dict[str, list[float]]:
        """By price the months of a base's machines in some quarters, by the quarter at whose price."""
        n, months = len(self.quarters), dict[str, list[float]]()
        for base in bases:
            runs = sum(q in quarters for q in base.runs(n))
            key = in_class(base.instance, base.purchase, self.plan.policy.purchase)
            if runs:
                months.setdefault(key, [0.0] * n)[base.first] += base.count * MONTHS_IN_A_QUARTER * runs
        return months

    def _months_of(self, decision: Decision) -> Mapping[str, Sequence[float]]:
        """By price the months of machines that a decision pays, where prices are live."""
        plan = self.plan
        if decision.machine_months and decision.instance in self.months:
            return {decision.instance: decision.machine_months}
        key = decision.instance, decision.purchase, decision.needed_from
        bases = (base for base in plan.base if decision.what == "order")
        mine = (
            base for base in bases if (base.instance, base.purchase, plan.first_day(plan.quarters[base.first])) == key
        )
        return self._of_base(mine, range(len(self.quarters)))

    def _bought_usd(
        self, sheet: Sheet, row: int, column: int, months: Mapping[str, Sequence[float]], more: int = 0
    ) -> Ref:
        """The cost of machines. months: by price, how many of their months are paid at each quarter's; more: hidden
        columns before."""
        left, value = (sheet.n_printed or 0) * 2 + more, 0.0
        parts, ranges = list[str](), list[Range]()
        for i, (key, of_price) in enumerate(months.items()):
            first = left + i * len(self.quarters)
            refs = [
                sheet.put(row, first + q, Cell(float(count), "off_page", PLAIN)) for q, count in enumerate(of_price)
            ]
            parts.append(f"SUMPRODUCT({{{2 * i + 1}}},{{{2 * i + 2}}})")
            ranges += [Range(refs, lock="columns"), Range(self.months[key])]
            value += sum(float(count) * price.value for count, price in zip(of_price, self.months[key], strict=True))
        flag = self.wiring.inputs["n_outdated"]
        return self._live(
            sheet, row, column, Lookup.of(value, f'IF({{0}}>0,"{PULL}",{"+".join(parts)})', flag, *ranges)
        )

    def _services(self) -> Sheet:
        """Each service by quarter: demand, replicas, hardware, its part of the machines, and what that costs."""
        plan = self.plan
        about = (
            f"Each service by quarter. Set by, times: at {plan.policy.plan_at}. Money: its part of what machines cost, "
        )
        sheet = self._list("Services", f"{about}owned and committed ones too.")
        row, places = HEAD_ROWS, {quarter: q for q, quarter in enumerate(self.quarters)}
        lines = [*zip(*[iter(self.record["services"])] * len(QUANTILES), strict=True)]  # p10, p50, p90 of a quarter
        for line in lines:
            row += 1
            _, middle, high = line
            planned = line[CASE[plan.policy.plan_at]]
            service, instance = planned["id"], planned["instance"]
            sheet.text(row, 0, service, "label")
            sheet.text(row, 1, planned["quarter"], "label")
            self._values(sheet, row, 2, (quantile["requests_per_second"] for quantile in line), TWO_DECIMALS)
            self._values(sheet, row, 5, (quantile["concurrent_requests"] for quantile in line), ONE_DECIMAL)
            self._values(sheet, row, 8, (quantile["n_replicas"] for quantile in (middle, high)), WHOLE)
            self._values(sheet, row, 10, (planned["set_by"], instance or planned["verdict"]), TEXT)
            if instance is None:
                continue
            self._values(sheet, row, 12, (quantile["n_instances"] for quantile in line), TWO_DECIMALS)
            sheet.link(row, 15, self.months[instance][places[planned["quarter"]]], USD, lock="column")
            s, q = divmod(row - HEAD_ROWS - 1, len(self.quarters))
            for z in CASE.values():
                costs, shares = list[Ref](), list[Ref]()
                for t, own in self.answer.own_instances(s, q, z).items():
                    there = CONSTANTS["months_in_a_quarter"] * float(self.answer.supply["there_instances"][t, q, z])
                    share = Cell(own / there if there else 0.0, "off_page", FACTOR)
                    column = 2 * (sheet.n_printed or 0) + z + len(shares) * len(CASE)
                    costs.append(self.costs[self.answer.types[t].instance, q][z])
                    shares.append(sheet.put(row, column, share))
                self._live(sheet, row, 16 + z, derived(_shared_usd, *costs, *shares))
            self._value(sheet, row, 19, 1000 * planned["tpot_seconds"], ONE_DECIMAL)
            self._value(sheet, row, 20, planned["ttft_seconds"], TWO_DECIMALS)
            self._value(sheet, row, 21, middle["usd_per_million_tokens"], USD_CENTS, of_money=True)
        self._tables(sheet, row + 2, "owners", of_money=True)
        return sheet

    # The first sheet, and the last

    def _first(self) -> Sheet:
        """The sum to be approved, whether the budget holds, money by quarter, the first decisions, GPUs by quarter."""
        plan, n = self.plan, len(self.quarters)
        head, columns = plan.head, self.columns
        widths = (22, 14, 18, 14, 18, 14, 18, 14, 24)
        about = f"{self.page.people}." if self.page.people else ""
        sheet = self._sheet("Plan", about, widths, 9, title=self.page.title, one_page=True, freeze=(0, 0))
        put_light(self.wiring, sheet, HEAD_ROWS - 1, 4, "All checks")
        row = HEAD_ROWS
        self._bar(sheet, row, f"To approve, {self.quarters[0]} to {self.quarters[-1]}; beside it what it may be")
        share, planned = self.wiring.inputs["contingency_fraction"], columns[1 + self.answer.case][-1]
        asked = _or_pull(lambda usd, *paid: usd + spending.reserve_usd(usd, *paid), planned, *self.already, share)
        for column, label, name, answer in (
            (0, f"the machines at {plan.policy.plan_at}, and contingency", "asked", asked),
            (2, "at p50, the middle case", "p50", columns[2][-1]),
            (4, "where all demand is high (p90)", "p90", columns[3][-1]),
            (6, "below it in nine of ten cases", "", columns[6][-1]),
        ):
            sheet.text(row + 1, column, label, "remark")
            ref = sheet.link(row + 2, column, answer, USD, "answer_money")
            if name:
                self.wiring.names[f"rec_{name}_usd"] = ref
            if head.currency != DOLLARS:
                self._live(sheet, row + 3, column, ref, IN_DOLLARS, "answer_money")
        sheet.text(row + 4, 0, "Budget, contingency counted:", "label")
        sheet.link(row + 4, 2, self._budget_words(Range(tuple(columns[7][:n]))), TEXT, "light")
        row += 6
        self._bar(sheet, row, "Money by quarter, US dollars", ("Quarter", *MONEY, "Budget holds"))
        for i, (name, *_) in enumerate(spans(plan)):
            role = "link" if i < n else "total"
            sheet.text(row + 2 + i, 0, name, "label" if i < n else "light")
            for column, refs in enumerate(columns, 1):
                sheet.link(row + 2 + i, column, refs[i], TEXT if column == 8 else USD, role)
        row += 3 + len(columns[0])
        more = f"; {len(self.lines) - ON_PLAN} more on Decisions" if len(self.lines) > ON_PLAN else ""
        heads = ("By", "What", "Machines", "Needed from", "$", "$ of a quarter's delay", "Sign", "Machine", "")
        self._bar(sheet, row, f"Decisions, late ones first, then by the day by which each is due{more}", heads)
        shown = ((0, DATE), (1, TEXT), (2, WHOLE), (4, DATE), (6, USD), (7, USD), (8, TEXT), (3, TEXT))
        for line_row, line in enumerate(self.lines[:ON_PLAN], row + 2):
            for column, (k, how) in enumerate(shown):
                sheet.link(line_row, column, line[k], how)
        self._chart(sheet, row + 3 + min(len(self.lines), ON_PLAN))
        sheet.n_printed = None  # all that it shows is taken from other sheets
        return sheet

    def _budget_words(self, verdicts: Range) -> Lookup:
        """In how many quarters the budget does not hold."""
        values = [ref.value for ref in verdicts.refs]
        n, n_over = len(values) - values.count(NO_BUDGET), sum(value in (OVER, OVER_AT_P90) for value in values)
        within, none = "every quarter with one is within it, at p90 too", "no budget is stated"
        words = f"over it in {n_over} of {n} quarters" if n_over else within if n else none
        count = 'COUNTIFS({0},"%s")'
        over = f"{count % OVER}+{count % OVER_AT_P90}"
        stated = f"COUNTA({{0}})-{count % NO_BUDGET}"
        text = (
            f'IF({count % PULL}>0,"{PULL}",IF({stated}=0,"{none}",IF({over}=0,"{within}",'
            f'"over it in "&({over})&" of "&({stated})&" quarters")))'
        )
        return Lookup.of(words, text, verdicts)

    def _chart(self, sheet: Sheet, row: int) -> None:
        """GPUs of the table on Supply."""
        heads, top = [column.head for column in self.gpus.columns], self.gpus_top + 2

        def ends(head: str) -> tuple[Ref, Ref]:
            column = heads.index(head)
            first, last = (Ref("Supply", line_row, column, None) for line_row in (top, top + len(self.quarters) - 1))
            return first, last

        kinds = heads[1 : heads.index("p10 of all together")]
        sheet.draw(
            Chart(
                row,
                0,
                "GPUs by quarter: needed at p50 by kind, at p90 of all together, and there without buying",
                "Stacked bars of the GPUs needed at p50, a dashed line at p90, a solid one of what is owned "
                "and committed.",
                ends("Quarter"),
                [(name, *ends(name), INKS[i % len(INKS)]) for i, name in enumerate(kinds)],
                1080,
                260,
                lines=[
                    ("needed at p90, all together", *ends("p90"), P90_INK, True),
                    ("owned and committed", *ends("Owned and committed"), SUPPLY_INK, False),
                ],
            )
        )

    def _checks(self) -> Sheet:
        """Live checks; then what speaks against signing, assumptions, sources, and the plan as JSON."""
        page = ChecksSheet(self.wiring, HEADS[:4], "Checks", "what speaks against signing, assumptions and sources")
        n, columns = len(self.quarters), self.columns
        order = [derived(_rises, *(refs[q] for refs in columns[1:4])) for q in range(n)]
        in_order = derived(lambda *held: sum(held[1:], held[0]), *order)
        page.line("quantiles", "Quarters whose spend does not fall from p10 to p90", in_order, n)
        sheet, changed = page.sheet, self.wiring.inputs["n_changed"]
        sheet.n_printed = 5
        pairs = []
        for q, quarter in enumerate(self.quarters):
            usd = float(self.answer.money["spend_usd"][q, CASE["p90"]])
            built = sheet.put(page.below + 1 + q, 5, Cell(usd, "off_page", USD))
            pairs.append((quarter, columns[3][q], Lookup.of(usd, "IF({0}>0,{1},{2})", changed, columns[3][q], built)))
        heads = ("Spend at p90", "Here", "As worked out")
        same = page.pairs(heads, pairs, USD, rounded=True)
        page.all_of("money", "Until something is typed, money is what was worked out", same)
        sheet.widths |= {0: 58, 4: 90}
        row = page.below + 1
        table = self.page.book["checks"]
        sheet.texts(row, 0, ("Before signing", "Holds", "", "", "What speaks against it"))
        held: list[Ref] = []
        for line_row, (check, holds, against) in enumerate(table.rows, row + 1):
            sheet.text(line_row, 0, str(check), "label")
            held.append(self._value(sheet, line_row, 1, str(holds), TEXT, of_money=True))
            if str(against):
                self._text(sheet, line_row, 4, against, of_money=True)
        page.line("signing", "Before signing, what is said below", count_of(Range(tuple(held)), HOLDS), len(held))
        page.total()
        row += len(table.rows) + 2
        about = (
            f"sheetgen {self.page.version}, catalog {self.page.catalog}. Blue on yellow: an input. Sheets are "
            "protected without a password. The columns that are hidden hold the values as they were worked out.",
            "sheetgen plan plan.yaml --since THIS.xlsx says what changed since this plan.",
        )
        sources = [(source.text, source.url or first_link(source.text)) for source in self.page.sources]
        alone = "Each service by itself, in its first quarter (a floor, spares, neighbours change replicas and layout)"
        for title, texts in (
            ("About", [(text, None) for text in about]),
            (alone, [(line, None) for line in commands(self.answer)]),
            ("Assumptions", [(str(line), None) for line in self.page.behind[-1].lines]),
            ("Sources", sources),
        ):
            sheet.texts(row, 0, (title, *[""] * 4), "section")
            for text, url in texts:
                row += 1
                sheet.put(row, 0, Cell(text, "wrapped", span=4))
                if url:
                    sheet.text(row, 4, url, "link_text", url=url)
            row += 2
        self._put_record(sheet)
        return sheet

    def _put_record(self, sheet: Sheet) -> None:
        """The plan as JSON, packed into hidden cells, as `sheetgen pull` and `--since` read it."""
        rows = {
            "meta_plan_schema": SCHEMA,
            "meta_version": self.page.version,
            "meta_catalog_sha256": self.plan.catalog.catalog_sha256(),
        }
        for row, (name, value) in enumerate(rows.items()):
            self.wiring.names[name] = sheet.put(row, 6, Cell(value, "off_page"), name)
        put_record(self.wiring.names, sheet, len(rows), 6, self.record)


def put_heads(sheet: Sheet, row: int, heads: Sequence[str]) -> None:
    """The heads of a table; what a formula gives has its documentation as a note."""
    for column, head in enumerate(heads):
        note = NOTES[head].documentation if head in NOTES else ""
        sheet.text(row, column, head, "head", note=note)


# What cells hold: numbers, or the word that says to run pull


def _or_pull(formula: Callable[..., Any], *read: Source, n: int = 1) -> Lookup:
    """The result of a formula; the word where one of the first so many cells that it reads has it."""

    def result(*parts: Any) -> Any:
        return where(functools.reduce(both, map(is_number, parts[:n])), formula(*parts), PULL)

    return derived(result, *read)


def _shared_usd(*sources: Any) -> Any:
    """The sum of shares of amounts. sources: the amounts, then the shares."""
    n = len(sources) // 2
    shares = zip(sources[1:n], sources[n + 1 :], strict=True)
    return where(is_number(sources[0]), sum((usd * share for usd, share in shares), sources[0] * sources[n]), PULL)


def _committed_month_usd(stated: Any, listed: Any, discount: Any, hours: Any) -> Any:
    price = where(is_number(stated), stated, cost.discounted_usd_per_hour(listed, discount))
    return price * hours


def _number(amount: Any) -> Any:
    return number_where(is_number(amount), amount)


def _spend_usd(bought: Any, late: Any, *paid: Any) -> Any:
    return spending.spend_usd(bought, *paid, late)


def _verdict(p50_usd: Any, p90_usd: Any, reserve_p50_usd: Any, reserve_p90_usd: Any, budget_usd: Any) -> Any:
    cases = (p50_usd, reserve_p50_usd), (p90_usd, reserve_p90_usd)
    return spending.budget_verdict(*(spending.budget_left_usd(budget_usd, *case) for case in cases))


def _rises(low_usd: Any, middle_usd: Any, high_usd: Any) -> Any:
    return where(is_number(middle_usd), where(both(low_usd <= middle_usd, middle_usd <= high_usd), 1, 0), 1)


def _sum(refs: Sequence[Ref]) -> Lookup:
    """The sum of a few cells, 0 of none."""
    text = "+".join(f"{{{i}}}" for i in range(len(refs))) or "0"
    return Lookup.of(sum(ref.value for ref in refs), text, *refs)


def _added(refs: Sequence[Ref]) -> Lookup:
    """The sum of cells below one another, of numbers alone."""
    return Lookup.of(sum(ref.value for ref in refs), "SUM({0})", Range((refs[0], refs[-1]), lock="none"))


def _total(refs: Sequence[Ref]) -> Lookup:
    """The sum of cells below one another; none where one of them is none, and the word where one has it."""
    numbers = [ref.value for ref in refs if isinstance(ref.value, int | float)]
    area = Range((refs[0], refs[-1]), lock="none")
    text = f'IF(COUNTIFS({{0}},"{PULL}")>0,"{PULL}",IF(COUNTIFS({{0}},"{NONE}")=0,SUM({{0}}),"{NONE}"))'
    return Lookup.of(sum(numbers) if len(numbers) == len(refs) else NONE, text, area)
