"""The cash of Money: the payments of each way to pay, up front, each month and to date, and a chart of 36 months."""

from __future__ import annotations

from sheetgen import units
from sheetgen.book.lookups import constant
from sheetgen.book.money_block import FOUND, N_PRINTED, Block
from sheetgen.book.sheets import Cell, Chart, Ref, Source, derived
from sheetgen.formula import is_number, where
from sheetgen.report import sentences
from sheetgen.sizing import cost
from sheetgen.units import PLAIN, USD

MONTHS = cost.CONSTANTS["months_in_three_years"]
SHOWN = (1, *range(6, MONTHS - 6, 6), MONTHS)  # months to whose end the cash is shown
OWNED = "owned"
WAYS = {**{purchase: purchase_class.words for purchase, purchase_class in units.PURCHASES.items()}, OWNED: "owned"}
LACKS = {units.ON_DEMAND: sentences.NOT_ON_DEMAND, OWNED: sentences.UNPRICED}
CHART_AT, CHART_GAP, CHART_WIDTH, CHART_HEIGHT = len(WAYS) + 1, 12, 356, 264
WHAT_IS_PAID = (
    "Renting: the hardware in its row, at today's price; a block is paid ahead, spot can be taken away.",
    "Owning: the purchase at the base price, then support, power and site. Nothing is discounted, without contingency.",
)


def add_cash(block: Block) -> None:
    """Add the table below the last row, and the chart beside it."""
    sheet, wiring = block.sheet, block.wiring
    top = block.row
    sheet.page_breaks.append(top)
    sheet.texts(top, 0, (f"Cash of {MONTHS} months, US dollars", *[""] * (N_PRINTED - 1)), "section")
    heads = sheet.texts(top + 1, 0, ("", *WAYS.values()))
    sheet.heights[top + 1] = 31
    purchase, running = block.owned
    up_front, each_month, in_all = list[Ref](), list[Ref](), list[Ref]()
    for column, (way, month) in enumerate({**block.paid, OWNED: running}.items(), 1):
        # Without a known price of the GPU, power alone would look cheap.
        gate = purchase if way == OWNED else month
        monthly = derived(lambda gate, amount: where(is_number(gate), amount, "-"), gate, month)
        each_month.append(sheet.link(top + 3, column, monthly, USD, "computed"))
        # Rent has no payment up front, where there is a price at all.
        ahead = purchase if way == OWNED else derived(lambda amount: where(is_number(amount), 0, "-"), each_month[-1])
        up_front.append(sheet.link(top + 2, column, ahead, USD, "computed"))
        env: dict[str, Source] = {**wiring.inputs, "monthly_usd": each_month[-1]._replace(lock="row")}
        in_all.append(sheet.compute(top + 4, column, cost.three_year_usd, env))
    env = {"up_front_usd": up_front[-1], "owned_each_month_usd": each_month[-1]}
    for column, ref in enumerate(each_month[:-1], 1):
        sheet.compute(top + 5, column, cost.owning_pays_off_month, {**env, "each_month_usd": ref})
    labels = "Up front", "Each month", f"Months 1 to {MONTHS}, beside it", cost.owning_pays_off_month.label
    for row, label in enumerate(labels, top + 2):
        sheet.text(row, 0, label, "label")
    sheet.text(top + 6, 0, "Paid to date, by month", "light")
    bars: list[Ref] = []
    lacks = [LACKS.get(way, sentences.NOT_SOLD) for way in WAYS]
    for row, month in enumerate(SHOWN, top + 7):
        number = sheet.put(row, 0, Cell(month, "fixed", PLAIN), lock="column")
        for column, (ahead_of, month_usd) in enumerate(zip(up_front, each_month, strict=True), 1):
            env = {
                "month": number,
                "up_front_usd": ahead_of._replace(lock="row"),
                "each_month_usd": month_usd._replace(lock="row"),
            }
            cash = sheet.compute(row, column, cost.cash_to_month_usd, env)
            if month == MONTHS:
                env = {"way": heads[column], "cash_usd": cash, "lacking": constant(lacks[column - 1])}
                bars.append(sheet.compute(top + 1, FOUND + column, sentences.way_of_cash, env, role="off_page"))
    sheet.draw(
        Chart(
            top + 1,
            CHART_AT,
            f"Cash of {MONTHS} months by way to pay, US dollars",
            "Stacked bars: what is paid up front and in the months, for each purchase class and for owning.",
            (bars[0], bars[-1]),
            [("Up front", up_front[0], up_front[-1], "#F59E0B"), ("Months", in_all[0], in_all[-1], "#1D4ED8")],
            CHART_WIDTH,
            CHART_HEIGHT,
            "$",
            left=CHART_GAP,
            labelled=True,
        )
    )
    block.row = top + 7 + len(SHOWN)
    for line in WHAT_IS_PAID:
        sheet.text(block.row, 0, line, "remark")
        block.row += 1
