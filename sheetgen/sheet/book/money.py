"""The Money sheet: per model, at the load chosen on the first sheet, what finance asks of the recommendation.

Purchase classes side by side, contingency and currency apart, a user and a million tokens, each provider's
cheapest, and owning the GPUs instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from sheetgen import cost
from sheetgen.formula import is_number, is_text
from sheetgen.recommend import Solution
from sheetgen.sheet.book.money_block import ANNUAL, HOURLY, MONTHLY, THREE_YEARS, Block, above_zero, entry
from sheetgen.sheet.book.money_columns import class_columns, price_mark
from sheetgen.sheet.book.money_owned import add_owned
from sheetgen.sheet.book.money_providers import SPARE_PROVIDERS, add_providers
from sheetgen.sheet.book.money_words import total_words
from sheetgen.sheet.book.wiring import HEAD_ROWS, Wiring, titled
from sheetgen.sheet.book.words import rent_words
from sheetgen.sheet.model import Cell, Found, Range, Ref, Sheet, Source
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
    USD_CENTS,
    WHOLE,
)

WIDTHS = (30, 14, 13, 13, 14, 14, 13, 13, 13, 13, 13, 13, 13, 13)
UNITS = (
    ("Users", "users", WHOLE),
    ("$ per user and month", "usd_per_user_per_month", USD_CENTS),
    ("Million prompt tokens a month", "million_input_tokens_per_month", ONE_DECIMAL),
    ("Million answer tokens a month", "million_output_tokens_per_month", ONE_DECIMAL),
    ("$ per million prompt tokens", "usd_per_million_input_tokens", USD_CENTS),
    ("$ per million answer tokens", "usd_per_million_output_tokens", USD_CENTS),
    ("$ per million tokens", "usd_per_million_tokens", USD_CENTS),
)


def build_money(solved: Solution, wiring: Wiring, heads: Mapping[str, Range]) -> Sheet:
    """The sheet. heads: by name, a row of the head of Candidates."""
    sheet = titled(
        "Money",
        "Money",
        "At the load chosen on the first sheet, in US dollars. Rent is what is paid: prices of Instances, less the "
        "discount on Inputs. Prices to own stand on GPUs, the rest on Inputs.",
        freeze=(HEAD_ROWS, 1),
    )
    sheet.widths = dict(enumerate(WIDTHS))
    row = HEAD_ROWS
    shown: list[tuple[str, Ref, Ref]] = []
    n_providers = _n_providers(solved)
    for m, at in enumerate(wiring.lists["headline_rows"].refs):
        name = f"calc_money_load_{m + 1}"
        wiring.names[name] = at
        block = Block(sheet, wiring, at._replace(name=name), row)
        place, count = _title(block, wiring.tables["models"].columns["model"][m], heads)
        model = wiring.tables["models"].columns["model"][m]
        on_demand, usd = _classes(block, place, count, solved.question.settings.purchase)
        shown.append((str(model.value), usd, wiring.headline_usd[m]))
        _units(block)
        add_providers(block, heads, n_providers)
        add_owned(block, on_demand)
        row = block.row + 1
        sheet.page_breaks.append(row)
    sheet.page_breaks.pop()  # nothing begins after the last
    wiring.pairs["money"] = shown
    return sheet


def _n_providers(solved: Solution) -> int:
    """As many as the catalog's rows have; those that were typed fill the spare row first."""
    of_rows = {c.provider for c in solved.question.rows}
    of_candidates = {c.provider for c in solved.question.candidates}
    return max(len(of_rows), len(of_rows | of_candidates) - SPARE_PROVIDERS)


def _title(block: Block, model: Ref, heads: Mapping[str, Range]) -> tuple[Ref, Ref]:
    """The bar with the model's name, and what to rent; gives the row on Instances, and how many."""
    sheet = block.sheet
    sheet.link(block.row, 0, model, TEXT, "section")
    for column in range(1, len(WIDTHS)):
        sheet.text(block.row, column, "", "section")
    sheet.heights[block.row] = 20
    block.row += 1
    block.label("To rent")
    block.compute(1, rent_words, {"n_instances": block.of("n_instances"), "instance": block.of("type")}, role="light")
    block.show(4, block.of("load_words"), TEXT)
    block.show(7, block.of("hardware_words"), TEXT)
    block.label("found: column on Candidates, row on Instances, how many", 10, "small")
    position = block.show(11, block.of("position"), PLAIN, "small")
    place = block.show(12, entry(heads["instance_row"], position, is_number), PLAIN, "small")
    count = block.show(13, block.of("n_instances"), PLAIN, "small")
    block.row += 1
    return place, count


def _classes(block: Block, place: Ref, count: Ref, in_use: str) -> tuple[Ref, Ref]:
    """The recommended instances in each purchase class, then contingency and currency.

    Gives $ an hour on demand, and $ a month in the class in use.
    """
    table = block.wiring.tables["instances"]
    block.head("Purchase class", "$ per hour", "$ per month", "$ per year", "$ in 3 years", "Commitment (0 or 1)",
               "Hours paid a month", "of it unused, $ per month", "Price date", "Price age", "Terms")  # fmt: skip
    hourly: dict[str, Ref] = {}
    sums: dict[str, list[Ref]] = {}
    for purchase in PURCHASES:
        block.label(purchase, role="light" if purchase == in_use else "label")
        names = class_columns(purchase, in_use)
        price = entry(table.range(names["price"]), place, above_zero, less=block.wiring.inputs["discount_fraction"])
        committed = block.sheet.put(block.row, 5, Cell(int(PURCHASES[purchase].committed), "fixed", PLAIN), lock="none")
        paid = block.compute(6, cost.paid_hours_per_month, {"is_committed": committed})
        env: dict[str, Source] = {"n_instances": count, "price_usd_per_hour": price}
        hourly[purchase] = hour = block.compute(HOURLY, cost.hourly_usd, env)
        env = {"hourly_usd": hour, "paid_hours_per_month": paid, "is_committed": committed}
        monthly = block.compute(MONTHLY, cost.monthly_usd, env)
        sums[purchase] = [monthly, *block.sums(monthly)]
        block.compute(7, cost.commitment_waste_usd, env)
        block.show(8, entry(table.range(names["date"]), place, is_number, hour), DATE)
        block.show(9, entry(table.range(names["mark"]), place, is_text, hour), TEXT)
        block.show(10, entry(table.range(names["terms"]), place, is_text, hour), TEXT)
        block.row += 1
    _foot(block, in_use, sums[in_use])
    block.label("Source of the prices")
    block.show(1, entry(table.range("source"), place, is_text), TEXT, "small")
    block.row += 1
    return hourly[ON_DEMAND], sums[in_use][0]


def _foot(block: Block, in_use: str, sums: list[Ref]) -> None:
    """Contingency, the total, and the total in the budget's currency: for the class in use."""
    columns = (MONTHLY, ANNUAL, THREE_YEARS)
    block.label("Discount, in all rent on this sheet")
    block.show(1, _input(block, "discount_fraction"), EXACT_PERCENT)
    block.row += 1
    block.label(f"Contingency on {in_use}")
    extra = [block.compute(c, cost.contingency_usd, {"usd": usd}) for c, usd in zip(columns, sums, strict=True)]
    block.show(5, _input(block, "contingency_fraction"), PERCENT)
    block.row += 1
    block.label("Total with contingency")
    pairs = zip(columns, sums, extra, strict=True)
    totals = [block.compute(c, cost.total_usd, {"usd": usd, "contingency_usd": more}) for c, usd, more in pairs]
    block.row += 1
    block.compute(0, total_words, {})
    for column, total in zip(columns, totals, strict=True):
        block.compute(column, cost.in_currency, {"usd": total}, role="light")
    block.show(5, _input(block, "fx_rate"), FACTOR)
    block.label("per $, of", 6, "right_label")
    block.show(7, _input(block, "fx_date"), DATE)
    block.compute(8, price_mark, {"price_date": block.wiring.inputs["fx_date"]})
    block.row += 1


def _input(block: Block, name: str) -> Found:
    """An input, as it stands on Inputs."""
    ref = block.wiring.inputs[name]
    return Found(ref.value, ref.expr)


def _units(block: Block) -> None:
    """A user and a million tokens, as Workings has them."""
    block.head("Unit costs", *(label for label, _, _ in UNITS), "Utilization")
    block.label("All replicas together")
    for column, (_, name, display) in enumerate(UNITS, 1):
        block.show(column, block.of(name), display)
    block.show(1 + len(UNITS), _input(block, "utilization"), PERCENT)
    block.row += 1
