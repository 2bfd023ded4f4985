"""The first pages of Money: what all models cost, where each price comes from, each way to pay, and cash by month."""

from __future__ import annotations

from collections.abc import Sequence

from sheetgen import units
from sheetgen.answer.solution import Solution
from sheetgen.book import figures
from sheetgen.book.catalogs import of_class_in_use
from sheetgen.book.lookups import NO_VALUE, count_filled, count_numbers, position_in, total
from sheetgen.book.money_block import N_PRINTED, Block, above_zero, entry
from sheetgen.book.sheets import (
    NONE,
    Cell,
    Chart,
    Lookup,
    Range,
    Ref,
    Source,
    Validation,
    column_name,
    derived,
    lookup,
)
from sheetgen.book.wiring import HEAD_ROWS, Wiring
from sheetgen.formula import Formula, is_number, is_text, where
from sheetgen.question.parse import TEXT as ANY_TEXT
from sheetgen.report import sentences
from sheetgen.sizing import cost
from sheetgen.units import DATE, EXACT_PERCENT, PERCENT, PLAIN, TEXT, USD, USD_CENTS, WHOLE

MONTHS = cost.CONSTANTS["months_in_three_years"]
ALL_MODELS, LISTED = "All models together", "list_money_model"
OWNED = "owned"
WAYS = {**{purchase: one.words for purchase, one in units.PURCHASES.items()}, OWNED: "owned"}
CHART_ROWS, CHART_WIDTH, PIXELS_PER_POINT = 13, 960, 4 / 3
USD_AT, TOTAL_AT, IN_MONTH_AT = 5, 9, 8  # columns where the dollars begin, the totals, and the month's own cash
MONTH_HEIGHT, SOURCE_HEIGHT = 12.75, 27.0  # of a row of the table of months; of a source, two lines
MOST_ABOVE = 5  # models whose ways to pay stand on the first printed page, too
ADDED_UP = "An amount is added up where the models are meant together (Inputs), and each has one."
WHAT_IS_PAID = (
    "Renting: the hardware above, renewed at today's price and counted by the month (a capacity block is paid ahead).",
    "Owning: the purchase at the base price, then power and site. Nothing is discounted, and no contingency is in it.",
)
PRICE_HEADS = (
    "Model", "List price, $ per hour", "Discount", "Paid, $ per hour", "Instances", "Hours a month", "$ per month",
    "Provider", "Purchase class", "Price date", "Price age", "Region",
)  # fmt: skip
COST_HEADS = (
    "Model", "To rent", "", "", "", "per month", "per year", "in 3 years", "Contingency", "per month", "per year",
    "in 3 years",
)  # fmt: skip


def n_rows_of_page(n_models: int) -> int:
    """The row below these pages."""
    return HEAD_ROWS + 4 * n_models + CHART_ROWS + MONTHS + 25


def build_page_of_money(solved: Solution, wiring: Wiring, blocks: Sequence[Block]) -> None:
    """Fill the rows above the models' own tables, which stand."""
    page = MoneyPage(solved, wiring, blocks)
    page.costs()
    page.sources()
    if len(blocks) > MOST_ABOVE:
        page.sheet.page_breaks.append(page.row)
    page.ways()
    if len(blocks) <= MOST_ABOVE:
        page.sheet.page_breaks.append(page.row)
    page.cash()
    assert page.row + 1 == n_rows_of_page(len(blocks))


class MoneyPage:
    """Fills the sheet from the top, a row for each model in a table."""

    def __init__(self, solved: Solution, wiring: Wiring, blocks: Sequence[Block]) -> None:
        self.solved, self.wiring, self.blocks, self.row = solved, wiring, blocks, HEAD_ROWS
        self.sheet, self.several = blocks[0].sheet, len(blocks) > 1
        self.models = wiring.tables["models"].columns["model"]

    def _bar(self, title: str, *apart: int) -> int:
        """A dark bar; gives its row, where these columns are left to be filled."""
        blanks = (None if column in apart else "" for column in range(1, N_PRINTED))
        self.sheet.texts(self.row, 0, (title, *blanks), "section")
        self.row += 1
        return self.row - 1

    def _heads(self, *labels: str | None) -> None:
        self.sheet.texts(self.row, 0, labels)
        self.row += 1

    def _total(self, row: int, column: int, cells: Sequence[Ref], display: units.Display = USD) -> Ref:
        """The sum of a column, where it may be added up."""
        area, inputs = Range(tuple(cells), lock="none"), self.wiring.inputs
        env: dict[str, Source] = {
            "together": inputs["together"],
            "sum_usd": total(area),
            "n_known": count_numbers(area),
            "n_models": count_filled(area),
        }
        return self.sheet.compute(row, column, figures.together_usd, env, role="total", display=display)

    def costs(self) -> None:
        """What each model costs in the class in use, and the total of models that are meant together."""
        sheet, inputs = self.sheet, self.wiring.inputs
        bar = self._bar("What it costs", 1, USD_AT)
        sheet.compute(bar, 1, sentences.class_in_use, inputs, role="section")
        sheet.link(bar, USD_AT, self.blocks[0].of("load_words"), TEXT, "section")
        sheet.texts(self.row, 0, ("", "", "", "", "", "Rent, $", "", "", ""))
        sheet.compute(self.row, TOTAL_AT, sentences.total_in_currency, inputs, role="head")
        sheet.texts(self.row, TOTAL_AT + 1, ("", ""))
        sheet.texts(self.row + 1, 0, COST_HEADS)
        self.row += 2
        top = self.row
        columns: dict[int, list[Ref]] = {}
        for block, model in zip(self.blocks, self.models, strict=True):
            sheet.link(self.row, 0, model, TEXT)
            rented: dict[str, Source] = {"n_instances": block.count, "instance": block.of("type")}
            sheet.compute(self.row, 1, sentences.rent_words, rented)
            for at, refs, display in ((USD_AT, block.sums, USD), (TOTAL_AT, block.totals, WHOLE)):
                for column, ref in enumerate(refs, at):
                    role = "light" if column == USD_AT else "computed"
                    columns.setdefault(column, []).append(sheet.link(self.row, column, ref, display, role))
            sheet.link(self.row, TOTAL_AT - 1, inputs["contingency_fraction"], PERCENT, "computed")
            self.row += 1
        if self.several:
            sheet.compute(self.row, 0, sentences.together_words, inputs, role="light")
            for column, refs in columns.items():
                self._total(self.row, column, refs, USD if column < TOTAL_AT else WHOLE)
        assert self.row == top + len(self.blocks)
        self.row += 2

    def sources(self) -> None:
        """List price x what the contract leaves x instances x hours, whose price it is, and where it was read."""
        sheet, inputs, table = self.sheet, self.wiring.inputs, self.wiring.tables["instances"]
        region = "region_in_use" if "region_in_use" in table.columns else "region"
        self._bar("Where each price comes from")
        self._heads(*PRICE_HEADS)
        for m, (block, model) in enumerate(zip(self.blocks, self.models, strict=True)):
            place = block.place._replace(name=f"calc_money_row_{m + 1}")
            count = block.count._replace(name=f"calc_money_count_{m + 1}")
            sheet.link(self.row, 0, model, TEXT)
            price = table.range("price_in_use")
            discount = entry(table.range("discount_in_use"), place, is_number)
            less = sheet.link(self.row, 2, discount, EXACT_PERCENT, "computed", lock="none")
            shown: tuple[tuple[Ref | Lookup, units.Display], ...] = (
                (entry(price, place, above_zero), USD_CENTS),
                (entry(price, place, above_zero, less=less), USD_CENTS),
                (count, PLAIN),
                (inputs["paid_hours_per_month"], WHOLE),
                (block.sums[0], USD),
                (entry(table.range("provider_name"), place, is_text), TEXT),
                (inputs["purchase"], TEXT),
                (entry(table.range("date_in_use"), place, is_number), DATE),
                (entry(table.range("mark_in_use"), place, is_text), TEXT),
                (entry(table.range(region), place, is_text), TEXT),
            )
            for column, (what, display) in zip((1, *range(3, N_PRINTED)), shown, strict=True):
                sheet.link(self.row, column, what, display, "light" if column == 6 else "computed")
            self.row += 1
            at = table.columns["source"][0 if place.value == NONE else int(place.value) - 1]  # which has its address
            to = f"internal:'{table.sheet.name}'!{column_name(at.column)}{at.row + 1}"
            sheet.text(self.row, 0, "to its source, as built", "link_text", url=to)
            env: dict[str, Source] = {
                "row": place,
                "instance": block.of("instance"),
                "source": lookup(table.range("source"), place),
            }
            sheet.compute(self.row, 1, sentences.source_words, env, role="unit_wrapped")
            sheet.cells[self.row, 1].span, sheet.heights[self.row] = N_PRINTED - 1, SOURCE_HEIGHT
            self.row += 1
        self.row += 1

    def ways(self) -> None:
        """A month of the same hardware in each purchase class, and owned: what the cash below is made of."""
        sheet = self.sheet
        self._bar("The same hardware, each way to pay")
        rented = list(WAYS.values())[:-1]
        self._heads("$ per month", *rented, "owned: power, site", "owned: purchase, $", "", "", "", "")
        self.column: dict[str, list[Ref]] = {}
        names = []
        for block, model in zip(self.blocks, self.models, strict=True):
            names.append(sheet.link(self.row, 0, model, TEXT))
            purchase, running = block.owned
            of_ways = {**block.paid, OWNED: running, "purchase": purchase}
            for column, (way, ref) in enumerate(of_ways.items(), 1):
                self.column.setdefault(way, []).append(sheet.link(self.row, column, ref, USD, "computed"))
            self.row += 1
        if self.several:
            names.append(sheet.text(self.row, 0, ALL_MODELS, "label"))
            for column, refs in enumerate(self.column.values(), 1):
                refs.append(self._total(self.row, column, refs))
            sheet.text(self.row + 1, 0, ADDED_UP, "unit")
        self.wiring.names[LISTED] = Range(tuple(names))
        self.row += 3

    def cash(self) -> None:
        """What the model that is chosen, or all of them, take month by month, each way to pay."""
        sheet, wiring, question = self.sheet, self.wiring, self.solved.question
        self._bar(f"Cash by month, {MONTHS} months, US dollars")
        together = wiring.inputs["together"].value == "yes"
        first = ALL_MODELS if together and self.several else question.models[question.ask or 0].model.name
        check = Validation("Cash of", f"One of the models, or {ALL_MODELS}.", source=LISTED, kind=ANY_TEXT)
        value = question.overrides.input("money_model", first)
        cell = Cell(value, "input", TEXT, validation=check)
        asked = wiring.names["in_money_model"] = sheet.put(self.row, 1, cell, "in_money_model", label="Cash of")
        listed = wiring.area(LISTED)
        found = position_in(listed, asked, NO_VALUE)
        sheet.text(self.row, N_PRINTED + 1, "Found: row of the ways to pay", "off_page")
        place = sheet.link(self.row, N_PRINTED + 2, found, PLAIN, "off_page")
        self.row += 1
        heads = sheet.texts(self.row, 0, ("", *WAYS.values()))
        sheet.heights[self.row] = 31
        self.row += 1
        up_front, each_month, in_all = [], [], []
        for column, way in enumerate(WAYS, 1):
            of_way = Range(tuple(self.column[way]))
            ahead: Lookup = entry(Range(tuple(self.column["purchase"])), place, is_number)
            # Of a GPU whose price nobody knows, power alone would look cheap.
            beside = Ref(sheet.name, self.row, column, ahead.value) if way == OWNED else None
            each = entry(of_way, place, is_number, beside)
            each_month.append(sheet.link(self.row + 1, column, each, USD, "computed"))
            if way != OWNED:  # nothing, where it has a price at all
                ahead = derived(lambda each: where(is_number(each), 0, NONE), each_month[-1])
            up_front.append(sheet.link(self.row, column, ahead, USD, "computed"))
            env = {**wiring.inputs, "monthly_usd": each_month[-1]._replace(lock="row")}
            in_all.append(sheet.compute(self.row + 2, column, cost.three_year_usd, env))
        env = {"up_front_usd": up_front[-1], "owned_each_month_usd": each_month[-1]}
        for column, ref in enumerate(each_month[:-1], 1):
            sheet.compute(self.row + 3, column, cost.owning_pays_off_month, {**env, "each_month_usd": ref})
        labels = "Up front", "Each month", f"Months 1 to {MONTHS}, beside it", cost.owning_pays_off_month.label
        for k, label in enumerate(labels):
            sheet.text(self.row + k, 0, label, "label")
        self.row += len(labels)
        for line in WHAT_IS_PAID:
            sheet.text(self.row, 0, line, "unit")
            self.row += 1
        self._chart(heads[1:], up_front, in_all)
        sheet.page_breaks.append(self.row)
        sheet.link(self._bar("Paid to date, by month", 1), 1, asked, TEXT, "section")
        self._heads("Month", *WAYS.values(), None, "In the month: class in use", "In the month: owned")
        at = list(units.PURCHASES).index(question.settings.purchase)
        in_use = of_class_in_use(each_month[:-1], at, wiring.inputs["purchase_row"])
        for month in range(1, MONTHS + 1):
            number = sheet.put(self.row, 0, Cell(month, "fixed", PLAIN), lock="column")
            for column, pair in enumerate(zip(up_front, each_month, strict=True), 1):
                self._month(column, cost.cash_to_month_usd, number, *pair)
            self._month(IN_MONTH_AT, cost.cash_in_month_usd, number, up_front[0], in_use)
            self._month(IN_MONTH_AT + 1, cost.cash_in_month_usd, number, up_front[-1], each_month[-1])
            sheet.heights[self.row] = MONTH_HEIGHT
            self.row += 1

    def _chart(self, heads: Sequence[Ref], up_front: Sequence[Ref], months: Sequence[Ref]) -> None:
        self.sheet.charts.append(
            Chart(
                self.row,
                0,
                f"Cash of {MONTHS} months by way to pay, US dollars (of the model chosen above)",
                "Stacked bars: what is paid up front and in the months, for each purchase class and for owning.",
                (heads[0], heads[-1]),
                [("Up front", up_front[0], up_front[-1], "#F59E0B"), ("Months", months[0], months[-1], "#1D4ED8")],
                CHART_WIDTH,
                int((CHART_ROWS - 1) * 15 * PIXELS_PER_POINT),
                "US dollars",
            )
        )
        self.row += CHART_ROWS

    def _month(self, column: int, one: Formula, month: Ref, ahead: Ref, each: Ref | Lookup) -> None:
        """A cell of the table of months, in this row."""
        monthly = each._replace(lock="row") if isinstance(each, Ref) else each
        env: dict[str, Source] = {"month": month, "up_front_usd": ahead._replace(lock="row"), "each_month_usd": monthly}
        self.sheet.compute(self.row, column, one, env)
