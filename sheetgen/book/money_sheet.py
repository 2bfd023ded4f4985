"""The Money sheet: one model at a time, at the load chosen on the first sheet: each way to pay for the hardware that is
recommended, the source of its price, the providers, owning, hosts, and the cash of 36 months.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sheetgen import units
from sheetgen.answer.hosts import SHOWN_HOSTS
from sheetgen.answer.solution import Solution
from sheetgen.answer.ways_to_pay import ENDS
from sheetgen.book import discount_table
from sheetgen.book.catalogs import of_class_in_use, price_mark
from sheetgen.book.decision_choices import n_table_rows
from sheetgen.book.hosts_sheet import PRICES as HOST_PRICES
from sheetgen.book.lookups import NO_VALUE, ONE, constant, position_in, written
from sheetgen.book.money_block import FOUND, HOURLY, MONTHLY, N_PRINTED, WIDTHS, Block, above_zero, entry
from sheetgen.book.money_page import add_cash
from sheetgen.book.sheets import (
    LINE,
    NONE,
    Cell,
    Lookup,
    Range,
    Ref,
    Sheet,
    Source,
    Validation,
    choose,
    derived,
    lookup,
)
from sheetgen.book.wiring import HEAD_ROWS, Table, Wiring, titled
from sheetgen.book.workings import add_classes, add_providers
from sheetgen.formula import Value, function, is_number, is_text, where
from sheetgen.question.overrides import class_columns
from sheetgen.question.parse import TEXT as ANY_TEXT
from sheetgen.report import sentences
from sheetgen.report.templates import short_type
from sheetgen.sizing import cost
from sheetgen.units import (
    DATE,
    FACTOR,
    ONE_DECIMAL,
    PERCENT,
    PLAIN,
    PRICE_DATE,
    TEXT,
    TWO_DECIMALS,
    USD,
    USD_CENTS,
    WHOLE,
)

LISTED = "list_money_model"
SOURCE_HEIGHT = 27.0  # of a row of two lines
HOST_REMARKS = (
    "For the tokens of the people above in a month; over 100 %: the host is cheaper at any use.",
    "A host does not give weights of your own or data that stay at home. Each class rents the hardware in its row.",
)
OWNING_REMARK = (
    "GPUs are powered and housed in every hour. Not in it: staff, network between servers, licences; "
    "nor, in the cash, the cost of capital."
)
WORDS = {"low": "low price", "base": "base", "high": "high price"}
PARTS = "{}, its parts"
UNITS = (
    ("People: as stated, or at least so many by the targets", "users", WHOLE),
    ("$ per user and month", "usd_per_user_per_month", USD_CENTS),
    ("Million prompt tokens a month", "million_input_tokens_per_month", ONE_DECIMAL),
    ("Million answer tokens a month", "million_output_tokens_per_month", ONE_DECIMAL),
    ("$ per million prompt tokens", "usd_per_million_input_tokens", USD_CENTS),
    ("$ per million answer tokens", "usd_per_million_output_tokens", USD_CENTS),
    ("$ per million tokens", "usd_per_million_tokens", USD_CENTS),
)
OF_THE_PEOPLE = "$ per million that these people ask for"
PRICE_HEADS = (
    "Where the price is from", "List price, $ per hour", "Discount", "Paid, $ per hour", "Hours a month", "Provider",
    "Purchase class", "Price date", "Price age", "Region", "", "",
)  # fmt: skip
CLASS_HEADS = (
    "Purchase class", "$ per hour", "$ per month", "$ per year", "$ in 3 years", "Hours paid", "Unused, $ per month",
    "Price date", "Price age", "To rent", "", "",
)  # fmt: skip
PROVIDER_HEADS = (
    "Provider", "$ per hour", "$ per month", "$ per year", "$ in 3 years", "Instances", "TP",
    "$ per instance and hour", "Instance", "", "",
)  # fmt: skip
OWNING_HEADS = (
    "Owning: yearly depreciation, but for cash", "$ per GPU and hour", "$ per month", "$ per year", "$ in 3 years",
    "Break-even utilization", "Cash paid in 3 years, $",
)  # fmt: skip
PURCHASE_HEADS = (
    "To own", "Price, $ per GPU", "Installed, $ per GPU", "Purchase, $", "Hardware, $ per month",
    "Power, $ per month", "Site, $ per month", "Support, $ per month", "Power, site, support, $ per month",
)  # fmt: skip
POWER_HEADS = (
    "GPU", "kW per GPU", "kW per GPU at the meter", "Its own draw (1)", "Price of the module (1)", "Price date",
    "Price age", "Source", "", "", "", "",
)  # fmt: skip


def build_money(solved: Solution, wiring: Wiring) -> Sheet:
    """The sheet Money."""
    question = solved.question
    sheet = titled(
        "Money",
        "Money",
        "One model at a time, at the load of Sizing sheet (Decision has its own), in US dollars: list prices less "
        "discounts.",
        freeze=(HEAD_ROWS, 1),
        currency=wiring.currency,
    )
    sheet.widths, sheet.n_printed = dict(WIDTHS), N_PRINTED
    block = _chosen(solved, wiring, sheet)
    n_providers = n_table_rows(
        (candidate.provider for candidate in question.candidates), (candidate.provider for candidate in question.rows)
    )
    on_demand = _classes(block, list(units.PURCHASES).index(question.settings.purchase))
    headline = choose(wiring.ref("calc_money_model"), wiring.headline_usd)  # two rows a model on the first sheet
    wiring.of_money.append((str(wiring.ref("in_money_model").value), block.sums[0], headline))
    _source(block)
    block.head("Unit costs", *(label for label, _, _ in UNITS), "at a utilization of", OF_THE_PEOPLE)
    block.label("All replicas together")
    for column, (_, fact, display) in enumerate(UNITS, 1):
        block.show(column, block.of_load(fact), display)
    block.show(1 + len(UNITS), wiring.inputs["utilization"], PERCENT)
    asked = {
        f"million_{kind}_tokens_per_month": block.of_load(f"hosted_million_{kind}_tokens")
        for kind in ("input", "output")
    }
    block.compute(2 + len(UNITS), cost.usd_per_million_tokens, {**asked, "monthly_usd": block.of_load("monthly_usd")})
    block.row += 1
    _providers(block, add_providers(wiring, n_providers, block.load, wiring.ref("calc_money_model")))
    _owned(block, on_demand)
    _hosted(block)
    add_cash(block)
    for row in range(HEAD_ROWS, block.row):
        sheet.heights.setdefault(row, LINE)
    for column, text, ref in (
        (4, "to Inputs: class, discount, hours", wiring.ref("in_purchase")),
        (8, "to Prices and hardware", wiring.tables["instances"].columns["type"][0]),
    ):
        sheet.text(HEAD_ROWS - 1, column, text, "link_text", url=f"internal:'{ref.sheet}'!B{ref.row + 1}")
    return sheet


def _chosen(solved: Solution, wiring: Wiring, sheet: Sheet) -> Block:
    """Add the yellow cell with the model, the row of its load on Workings, and the instances that are rented for it."""
    question, models = solved.question, wiring.tables["models"].columns["model"]
    wiring.names[LISTED] = Range(tuple(models))
    check = Validation("Model", "One of the models of this workbook.", source=LISTED, kind=ANY_TEXT)
    value = question.overrides.input("money_model", question.models[question.ask or 0].model.name)
    cell = Cell(value, "input", TEXT, validation=check, span=2)
    row = HEAD_ROWS - 1
    asked = wiring.names["in_money_model"] = sheet.put(row, 1, cell, "in_money_model", label="Model")
    model_row = position_in(wiring.area(LISTED), asked, ONE)
    sheet.text(row, FOUND, "Found: the model's row, its load's on Workings", "off_page")
    place = wiring.names["calc_money_model"] = sheet.link(row, FOUND + 1, model_row, PLAIN, "off_page")
    held = lookup(wiring.lists["headline_rows"], place)
    load = wiring.names["calc_money_load"] = sheet.link(row, FOUND + 2, held, PLAIN, "off_page")
    block = Block(sheet, wiring, load._replace(name="calc_money_load"), HEAD_ROWS)
    block.bar(lookup(Range(tuple(models)), place), "renting, hardware as recommended")
    block.place, block.count = _title(block)
    return block


def _title(block: Block) -> tuple[Ref, Ref]:
    """Show the instances to rent; returns the row on Prices and hardware, and their number."""
    block.label("To rent")
    rented = {"n_instances": block.of_load("n_instances"), "instance": block.of_load("type")}
    block.compute(1, sentences.rent_words, rented, role="light")
    block.show(5, block.of_load("load_words"), TEXT)
    block.show(8, block.of_load("hardware_words"), TEXT)
    block.label("Found: column on Candidates, row on Prices and hardware, how many", FOUND, "off_page")
    position = block.show(FOUND + 1, block.of_load("position"), PLAIN, "off_page")
    rows = block.wiring.tables["candidates"].range("instance_row")
    place = block.show(FOUND + 2, entry(rows, position, is_number), PLAIN, "off_page")
    count = block.show(FOUND + 3, block.of_load("n_instances"), PLAIN, "off_page")
    for name, ref in (("row", place), ("count", count)):
        block.wiring.names[f"calc_money_{name}"] = ref
    block.row += 1
    return place, count


def _source(block: Block) -> None:
    """The list price with its discount, provider, date and region, and its source."""
    table, inputs = block.wiring.tables["instances"], block.wiring.inputs
    region = "region_in_use" if "region_in_use" in table.columns else "region"
    block.head(*PRICE_HEADS)
    price, place = table.range("price_in_use"), block.place._replace(name="calc_money_row")
    less = block.show(2, entry(table.range("discount_in_use"), place, is_number), units.EXACT_PERCENT)
    shown: tuple[tuple[Ref | Lookup, units.Display], ...] = (
        (entry(price, place, above_zero), USD_CENTS),
        (entry(price, place, above_zero, less=less), USD_CENTS),
        (inputs["paid_hours_per_month"], WHOLE),
        (entry(table.range("provider_name"), place, is_text), TEXT),
        (inputs["purchase"], TEXT),
        (entry(table.range("date_in_use"), place, is_number), PRICE_DATE),
        (entry(table.range("mark_in_use"), place, is_text), TEXT),
        (entry(table.range(region), place, is_text), TEXT),
    )
    for column, (source, display) in zip((1, *range(3, 10)), shown, strict=True):
        block.show(column, source, display)
    block.label("List price in use")
    block.row += 1
    block.label("Source")
    env: dict[str, Source] = {
        "row": place,
        "instance": block.of_load("instance"),
        "source": lookup(table.range("source"), place),
    }
    block.compute(1, sentences.source_words, env, role="remark_wrapped")
    block.sheet.cells[block.row, 1].span, block.sheet.heights[block.row] = N_PRINTED - 1, SOURCE_HEIGHT
    block.row += 1


def _classes(block: Block, class_place: int) -> Ref:
    """The recommended instances in the class in use and on demand, in each other class those that are cheapest in it;
    then contingency and currency for the class in use. Returns $ an hour on demand."""
    table, inputs = block.wiring.tables["instances"], block.wiring.inputs
    block.head(*CLASS_HEADS)
    best = add_classes(block.wiring, block.load, block.wiring.ref("calc_money_model"))
    hourly: dict[str, Ref] = {}
    sums: dict[str, list[Ref]] = {}
    for purchase, committed in zip(units.PURCHASES, block.wiring.lists["committed"].refs, strict=True):
        called = block.label(purchase)
        names = class_columns(purchase)
        block.label("Found: discount, row on Prices and hardware, how many", FOUND, "off_page")
        place, count = block.place, block.count
        if purchase in best:
            place, count = (
                block.show(
                    column, derived(_of_class, inputs["purchase"], called, own, best[purchase][name]), PLAIN, "off_page"
                )
                for column, own, name in (
                    (FOUND + 2, place, "instance_row"),
                    (FOUND + 3, count, "n_instances"),
                )
            )
        provider = lookup(table.range("provider"), place)
        discount = discount_table.of_class(block.wiring, provider, purchase)
        less = block.show(FOUND + 1, discount, units.EXACT_PERCENT, "off_page")
        price = entry(table.range(names["price"]), place, above_zero, less=less)
        paid = block.compute(5, cost.paid_hours_per_month, {"is_committed": committed})
        env: dict[str, Source] = {"n_instances": count, "price_usd_per_hour": price}
        hourly[purchase] = hour = block.compute(HOURLY, cost.hourly_usd, env)
        env = {"hourly_usd": hour, "paid_hours_per_month": paid, "is_committed": committed}
        sums[purchase] = block.sums_of(block.compute(MONTHLY, cost.monthly_usd, env))
        block.compute(6, cost.commitment_waste_usd, env)
        for column, key, test, display in (
            (7, "date", is_number, PRICE_DATE),
            (8, "mark", is_text, TEXT),
        ):
            block.show(column, entry(table.range(names[key]), place, test, hour), display)
        rented: dict[str, Source] = {"instance": lookup(table.range("type"), place)}
        rented["provider_name"] = lookup(table.range("provider_name"), place)
        rented["lacking"] = constant(sentences.NOT_SOLD if purchase in best else sentences.NOT_ON_DEMAND)
        block.compute(9, sentences.rent_from, {**rented, "n_instances": count, "hourly_usd": hour})
        block.row += 1
    block.paid = {purchase: usd[0] for purchase, usd in sums.items()}
    block.compute(0, sentences.class_in_use, {}, role="light")
    row = inputs["purchase_row"]
    block.sums = [
        block.show(c, of_class_in_use(refs, class_place, row), USD, "light")
        for c, refs in enumerate(zip(*sums.values(), strict=True), MONTHLY)
    ]
    block.row += 1
    block.compute(0, sentences.contingency_on_class, {})
    extra = [block.compute(c, cost.contingency_usd, {"usd": usd}) for c, usd in enumerate(block.sums, MONTHLY)]
    block.show(5, inputs["contingency_fraction"], PERCENT)
    block.row += 1
    block.label("Total with contingency")
    pairs = enumerate(zip(block.sums, extra, strict=True), MONTHLY)
    totals = [block.compute(c, cost.total_usd, {"usd": usd, "contingency_usd": more}) for c, (usd, more) in pairs]
    block.row += 1
    _converted(block, totals)
    block.show(5, inputs["fx_rate"], FACTOR)
    block.sheet.put(block.row, 6, Cell("per $, of", "right_text"))
    block.show(7, inputs["fx_date"], DATE)
    block.compute(8, price_mark, {"price_date": inputs["fx_date"]})
    block.row += 1
    return hourly[units.ON_DEMAND]


def _of_class(in_use: Value, purchase: Value, recommended: Value, best: Value) -> Value:
    """For the purchase class in use the recommended hardware, for any other class its own cheapest."""
    return where(in_use == purchase, recommended, best)


def _converted(block: Block, totals: Sequence[Ref]) -> None:
    """Add the totals in the currency on Inputs, or in US dollars where the sheet shows that currency already."""
    if block.sheet.currency is None:
        block.compute(0, sentences.total_in_currency, {})
        for column, total in enumerate(totals, MONTHLY):
            block.compute(column, cost.in_currency, {"usd": total}, role="light")
        return
    block.sheet.put(block.row, 0, Cell("Total, US dollars", "label"))
    for column, total in enumerate(totals, MONTHLY):
        block.show(column, total, WHOLE, "light")


def _providers(block: Block, rows: Sequence[Mapping[str, Ref]]) -> None:
    """A row per provider of Prices and hardware, and one for each that a reader may type in the spare rows there."""
    block.head(*PROVIDER_HEADS)
    instances = block.wiring.tables["instances"]
    for row in rows:
        provider = block.show(0, row["provider"], TEXT).expr(block.sheet.name).text
        shown = [(block.row, column) for column, _ in enumerate(PROVIDER_HEADS)]
        block.sheet.marked.append((shown, f'{provider}="{NONE}"', "blank"))  # a row for a provider that may be typed
        monthly = block.show(MONTHLY, row["usd"], USD)
        for column, name in ((5, "n_instances"), (6, "size")):
            block.show(column, row[name], PLAIN)
        price = block.show(7, row["price"], USD_CENTS)
        block.compute(HOURLY, cost.hourly_usd, {"n_instances": row["n_instances"], "price_usd_per_hour": price})
        block.sums_of(monthly)
        kind = entry(instances.range("type"), row["instance_row"], is_text, row["position"])
        block.show(8, derived(short_type, kind), TEXT)
        block.row += 1


def _owned(block: Block, on_demand: Ref) -> None:
    """The purchase price and the monthly cost of owning at its low, base and high price, and the break-even.

    on_demand: the cost of an hour of the recommended instances on demand.
    """
    block.head(*OWNING_HEADS)
    top = block.row
    block.row += len(ENDS)
    parts = _parts_of_owning(block)
    below, block.row = block.row, top
    break_even: dict[str, Source] = {"capex_usd_per_gpu": parts["base"]["capex_usd_per_gpu"]}
    for end, env in parts.items():
        block.label(WORDS[end])
        env["on_demand_hourly_usd"] = on_demand
        for column, quantity in (
            (MONTHLY, cost.monthly_owned_usd),
            (HOURLY, cost.owned_usd_per_gpu_hour),
            (5, cost.break_even_utilization),
            (6, cost.owned_three_year_cash_usd),
        ):
            env[quantity.name] = ref = block.compute(column, quantity, env)
            if column == MONTHLY:
                block.sums_of(ref)
        break_even[end] = env[cost.break_even_utilization.name]
        block.row += 1
    block.row = below
    block.compute(0, sentences.break_even_words, break_even, role="light")
    block.row += 1
    block.label(OWNING_REMARK, role="remark")
    block.row += 1


def _parts_of_owning(block: Block) -> dict[str, dict[str, Source]]:
    """Write the parts of the cost of owning at the low, base and high price, and below them the facts of the GPU;
    returns by price the inputs of formulas."""
    block.head(*PURCHASE_HEADS)
    top = block.row
    block.row += len(ENDS)
    place, facts = _facts(block)
    below, block.row = block.row, top
    gpus, parts = block.wiring.tables["gpus"], dict[str, dict[str, Source]]()
    for end in ENDS:
        block.label(PARTS.format(WORDS[end]))
        parts[end] = env = dict(facts)
        env["capex_usd_per_gpu"] = block.show(1, entry(gpus.range(f"capex_{end}_usd"), place, above_zero), USD)
        for column, quantity in enumerate(
            (
                cost.installed_usd_per_gpu,
                cost.owned_capex_usd,
                cost.owned_hardware_usd,
                cost.owned_energy_usd,
                cost.owned_site_usd,
                cost.owned_support_usd,
                cost.owned_running_usd,
            ),
            2,
        ):
            ref = block.compute(column, quantity, env)
            env[quantity.name] = ref
            if end == "base" and quantity is cost.owned_capex_usd:
                purchase = ref
            if end == "base" and quantity is cost.owned_running_usd:
                block.owned = purchase, ref
        block.row += 1
    block.row = below
    return parts


SOURCE, SOURCES_HEIGHT = 7, 26.0  # the column with the sources of a GPU's price and power; two lines


def _facts(block: Block) -> tuple[Ref, dict[str, Source]]:
    """Show the facts of the recommended GPU, below its money; returns its row on GPUs, and the inputs of formulas."""
    gpus, gpu = block.wiring.tables["gpus"], block.of_load("gpu")
    block.head(*POWER_HEADS)
    names = gpus.range("gpu")  # the row is none where nothing was recommended
    block.label("Found: row on GPUs", FOUND, "off_page")
    place = block.show(FOUND + 1, position_in(names, gpu, NO_VALUE), PLAIN, "off_page")
    facts: dict[str, Source] = {
        fact: block.show(column, entry(gpus.range(fact), place, test), display)
        for column, fact, test, display in (
            (1, "kw_per_gpu", is_number, TWO_DECIMALS),
            (3, "is_it_power", is_number, PLAIN),
            (4, "is_module_price", is_number, PLAIN),
            (5, "capex_date", is_number, PRICE_DATE),
            (6, "capex_mark", is_text, TEXT),
            (SOURCE, "owning_source", is_text, TEXT),
        )
    }
    together = entry(gpus.range("sold_together"), place, is_number)
    facts["sold_together"] = block.show(FOUND + 2, together, PLAIN, "off_page")
    env = {"n_gpus": block.of_load("n_gpus"), "sold_together": facts["sold_together"]}
    facts["n_owned_gpus"] = block.compute(FOUND + 3, cost.n_owned_gpus, env, role="off_page")
    block.compute(0, sentences.owned_words, {**facts, "gpu_name": block.of_load("gpu_name")})
    facts["metered_kw_per_gpu"] = block.compute(2, cost.metered_kw_per_gpu, facts)
    source = block.sheet.cells[block.row, SOURCE]
    source.role, source.span, block.sheet.heights[block.row] = "remark_wrapped", N_PRINTED - SOURCE, SOURCES_HEIGHT
    block.row += 1
    return place, facts


def _hosted(block: Block) -> None:
    """The cheapest hosts of the model for the same tokens, and the utilization above which each class is cheaper."""
    hosts = block.wiring.tables["hosts"]
    prompt, cached, answer = HOST_PRICES
    renting = (units.PURCHASES[purchase].words for purchase in block.paid)
    block.head(
        "Hosted instead; at the right the use above which renting is cheaper",
        prompt[1],
        "$ per month",
        "$ per year",
        "$ in 3 years",
        *renting,
        cached[1],
        answer[1],
    )
    model = block.wiring.ref("calc_money_model")._replace(name="calc_money_model")
    amounts = ("hosted_million_output_tokens", "million_output_tokens_per_month")
    tokens: dict[str, Source] = {
        "utilization": block.wiring.inputs["utilization"],
        **{name: block.of_load(name) for name in amounts},
    }
    for rank in range(1, SHOWN_HOSTS + 1 if hosts.n_rows else 1):
        block.label("Found: rank, row of the model's on Hosts", FOUND, "off_page")
        number = block.sheet.put(block.row, FOUND + 1, Cell(rank, "off_page", PLAIN))
        place = block.show(FOUND + 2, _host_of_rank(hosts, model, number), PLAIN, "off_page")
        host = block.show(0, entry(hosts.range("host"), place, is_text), TEXT, "label")
        block.sheet.cells[host.row, 0].wraps = True
        usd = block.show(MONTHLY, entry(hosts.range("hosted_monthly_usd"), place, is_number), USD)
        block.sums_of(usd)
        for column, monthly in enumerate(block.paid.values(), 5):
            env = {**tokens, "monthly_usd": monthly, "hosted_monthly_usd": usd}
            block.compute(column, cost.hosted_break_even_utilization, env)
        after = 5 + len(block.paid)
        for column, (name, _) in zip((HOURLY, after, after + 1), HOST_PRICES, strict=True):
            block.show(column, entry(hosts.range(name), place, above_zero), USD_CENTS)
        block.row += 1
    for line in HOST_REMARKS:
        block.label(line, role="remark")
        block.row += 1


def _host_of_rank(hosts: Table, model: Ref, rank: Ref) -> Lookup:
    """The row of Hosts with a model's host of that rank; none where the model has fewer."""
    models, ranks = hosts.columns["model_row"], hosts.columns["host_rank"]
    pairs = enumerate(zip(models, ranks, strict=True), 1)
    value = next((row for row, (m, r) in pairs if (m.value, r.value) == (model.value, rank.value)), NONE)

    def row_of(rows: Value, models: Value, model: Value, ranks: Value, rank: Value) -> Value:
        row = function("SUMIFS", rows, models, model, ranks, rank)
        return where(row > 0, row, NONE)

    return written(value, row_of, hosts.range("row"), hosts.range("model_row"), model, hosts.range("host_rank"), rank)
