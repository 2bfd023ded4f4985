"""The Money sheet: per model, at the load chosen on the first sheet, what finance asks of the recommendation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sheetgen import cost, units
from sheetgen.formula import Formula, both, is_number, is_text, where
from sheetgen.recommend import Solution
from sheetgen.recommend.hosted import SHOWN_HOSTS
from sheetgen.recommend.money import ENDS
from sheetgen.scenario.overrides import class_columns
from sheetgen.sheet.book import words
from sheetgen.sheet.book.catalogs import class_stem, of_class_in_use, price_mark
from sheetgen.sheet.book.hosted import PRICES as HOST_PRICES
from sheetgen.sheet.book.sizing import built_entry
from sheetgen.sheet.book.wiring import HEAD_ROWS, Wiring, titled
from sheetgen.sheet.book.workings import add_providers
from sheetgen.sheet.model import NONE, Cell, Lookup, Range, Ref, Sheet, Source, derived, lookup, place_of
from sheetgen.units import DATE, FACTOR, ONE_DECIMAL, PERCENT, PLAIN, TEXT, TWO_DECIMALS, USD, USD_CENTS, WHOLE, Display

HOURLY, MONTHLY = 1, 2  # columns of money in every table of a block; those of a year and of three follow


class Block:
    """What the tables of one model read of the chosen load, and the row that is filled next."""

    def __init__(self, sheet: Sheet, wiring: Wiring, at: Ref, row: int, built: Ref) -> None:
        self.sheet, self.wiring, self.at, self.row, self.built = sheet, wiring, at, row, built

    def of(self, name: str) -> Lookup:
        """What a column of Workings says of the load."""
        return lookup(self.wiring.tables["loads"].range(name), self.at)

    def as_built(self, name: str) -> Lookup:
        """What a column of Workings says of the load as built; none where it was not worked out then."""
        return built_entry(self.wiring.tables["loads"].range(name), self.built)

    def head(self, *labels: str) -> None:
        """A row of column heads."""
        self.sheet.texts(self.row, 0, labels)
        self.sheet.heights[self.row] = 31
        self.row += 1

    def label(self, text: str, column: int = 0, role: str = "label") -> Ref:
        return self.sheet.text(self.row, column, text, role)

    def show(self, column: int, what: Ref | Lookup, display: Display, role: str = "computed") -> Ref:
        """What stands elsewhere, in this row."""
        return self.sheet.link(self.row, column, what, display, role)

    def compute(self, column: int, one: Formula, env: Mapping[str, Source], **more: Any) -> Ref:
        """What a formula gives, in this row; read relative to the reader, as rows and columns of a block repeat."""
        return self.sheet.compute(self.row, column, one, {**self.wiring.inputs, **env}, lock="none", **more)

    def sums(self, monthly: Ref) -> list[Ref]:
        """The month, and a year and three years beside it, in this row."""
        longer = cost.annual_usd, cost.three_year_usd
        return [monthly, *(self.compute(MONTHLY + k, one, {"monthly_usd": monthly}) for k, one in enumerate(longer, 1))]


def entry(
    refs: Range, place: Ref | Lookup, test: Callable[[Any], Any], beside: Ref | None = None, less: Ref | None = None
) -> Lookup:
    """The entry of `refs` at a position; none where there is no position, or the entry does not pass `test`.

    An empty cell is no entry: its look-up alone would be 0. beside: a cell that must hold a number, too.
    less: the discount that is taken off the entry, a price.
    """

    def known(gate: Any, one: Any, *discount: Any) -> Any:
        paid = cost.discounted_usd_per_hour(one, *discount) if discount else one
        return where(is_number(gate), where(test(one), paid, NONE), NONE)

    return derived(known, place if beside is None else beside, lookup(refs, place), *([] if less is None else [less]))


def above_zero(one: Any) -> Any:
    """A price is a number above 0."""
    return both(is_number(one), one > 0)


SPARE_PROVIDERS = 3  # as many as Prices and hardware has spare rows
NOBODY = "Nobody on the list of hosted prices hosts this model."
NOT_GIVEN = (
    "For the same tokens; over 100 %: the host is cheaper at any use. A host does not give weights of your own or data "
    "that stay at home. Each class is the hardware above, rented in it."
)
NOT_IN_IT = (
    "GPUs are powered and housed in every hour. Staff, network between servers and licences are not in it; "
    "support and the cost of capital are as on Inputs, and not in the cash of three years."
)
WORDS = {"low": "low price", "base": "base", "high": "high price"}
WIDTHS = (34, 14, 13, 13, 14, 14, 13, 13, 13, 13, 13, 24, 13, 13)
UNITS = (
    ("Users: at once / active fraction", "users", WHOLE),
    ("$ per user and month", "usd_per_user_per_month", USD_CENTS),
    ("Million prompt tokens a month", "million_input_tokens_per_month", ONE_DECIMAL),
    ("Million answer tokens a month", "million_output_tokens_per_month", ONE_DECIMAL),
    ("$ per million prompt tokens", "usd_per_million_input_tokens", USD_CENTS),
    ("$ per million answer tokens", "usd_per_million_output_tokens", USD_CENTS),
    ("$ per million tokens", "usd_per_million_tokens", USD_CENTS),
)


def build_money(solved: Solution, wiring: Wiring, heads: Mapping[str, Range]) -> Sheet:
    """The sheet. heads: by name, a row of the head of Candidates."""
    question = solved.question
    sheet = titled("Money", "Money", "At the load chosen on the first sheet, in US dollars. Rent is what is paid: "
                   "the prices of Prices and hardware, less the discount on Inputs. Prices to own stand on GPUs, the "
                   "rest on Inputs.",
                   freeze=(HEAD_ROWS, 1))  # fmt: skip
    sheet.widths = dict(enumerate(WIDTHS))
    # As many providers as the catalog's rows have; those that were typed fill the spare rows first.
    of_rows = {c.provider for c in question.rows}
    n_providers = max(len(of_rows), len(of_rows | {c.provider for c in question.candidates}) - SPARE_PROVIDERS)
    of_providers = add_providers(wiring, heads, n_providers + SPARE_PROVIDERS)
    row = HEAD_ROWS
    for m, at in enumerate(wiring.lists["headline_rows"].refs):
        name = f"calc_money_load_{m + 1}"
        wiring.names[name] = at
        model = wiring.tables["models"].columns["model"][m]
        built = wiring.names[f"calc_money_built_{m + 1}"] = wiring.lists["built_rows"].refs[m]
        block = Block(sheet, wiring, at._replace(name=name), row, built._replace(name=f"calc_money_built_{m + 1}"))
        place, count = _title(block, model, heads)
        on_demand, by_class, usd = _classes(
            block, place, count, list(units.PURCHASES).index(question.settings.purchase)
        )
        wiring.of_money.append((str(model.value), usd, wiring.headline_usd[m]))
        block.head("Unit costs", *(label for label, _, _ in UNITS), "Utilization")
        block.label("All replicas together")
        for column, (_, fact, display) in enumerate(UNITS, 1):
            block.show(column, block.of(fact), display)
        block.show(1 + len(UNITS), wiring.inputs["utilization"], PERCENT)
        block.row += 1
        _providers(block, of_providers[m])
        _owned(block, on_demand)
        _hosted(block, m, by_class)
        row = block.row + 1
        sheet.page_breaks.append(row)
    sheet.page_breaks.pop()  # nothing begins after the last
    return sheet


def _title(block: Block, model: Ref, heads: Mapping[str, Range]) -> tuple[Ref, Ref]:
    """The bar with the model's name, and what to rent; gives the row on Prices and hardware, and how many."""
    sheet = block.sheet
    sheet.link(block.row, 0, model, TEXT, "section")
    sheet.texts(block.row, 1, [""] * (len(WIDTHS) - 1), "section")
    sheet.heights[block.row] = 20
    block.row += 1
    block.label("To rent")
    rented = {"n_instances": block.of("n_instances"), "instance": block.of("type")}
    block.compute(1, words.rent_words, rented, role="light")
    block.show(4, block.of("load_words"), TEXT)
    block.show(7, block.of("hardware_words"), TEXT)
    block.label("found: column on Candidates, row on Prices and hardware, how many", 10, "small")
    position = block.show(11, block.of("position"), PLAIN, "small")
    place = block.show(12, entry(heads["instance_row"], position, is_number), PLAIN, "small")
    count = block.show(13, block.of("n_instances"), PLAIN, "small")
    block.row += 1
    return place, count


def _classes(block: Block, place: Ref, count: Ref, at: int) -> tuple[Ref, dict[str, Ref], Ref]:
    """The recommended instances in each purchase class, then contingency and currency for the class in use.

    Gives $ an hour on demand, and $ a month in each class and in the one in use.
    """
    table, inputs = block.wiring.tables["instances"], block.wiring.inputs
    block.head("Purchase class", "$ per hour", "$ per month", "$ per year", "$ in 3 years", "Commitment (0 or 1)",
               "Hours paid a month", "of it unused, $ per month", "Price date", "Price age", "Terms",
               "Answered anew, as built", "$ per month, as built")  # fmt: skip
    hourly: dict[str, Ref] = {}
    sums: dict[str, list[Ref]] = {}
    for purchase, one in units.PURCHASES.items():
        block.label(purchase)
        names = class_columns(purchase)
        price = entry(table.range(names["price"]), place, above_zero, less=inputs["discount_fraction"])
        committed = block.sheet.put(block.row, 5, Cell(int(one.committed), "fixed", PLAIN), lock="none")
        paid = block.compute(6, cost.paid_hours_per_month, {"is_committed": committed})
        env: dict[str, Source] = {"n_instances": count, "price_usd_per_hour": price}
        hourly[purchase] = hour = block.compute(HOURLY, cost.hourly_usd, env)
        env = {"hourly_usd": hour, "paid_hours_per_month": paid, "is_committed": committed}
        sums[purchase] = block.sums(block.compute(MONTHLY, cost.monthly_usd, env))
        block.compute(7, cost.commitment_waste_usd, env)
        for column, what, test, display in (
            (8, "date", is_number, DATE), (9, "mark", is_text, TEXT), (10, "terms", is_text, TEXT),
        ):  # fmt: skip
            block.show(column, entry(table.range(names[what]), place, test, hour), display)
        block.show(11, block.as_built(f"rent_{class_stem(purchase)}"), TEXT)
        block.show(12, block.as_built(f"usd_{class_stem(purchase)}"), USD)
        block.row += 1
    block.label("Discount, in all rent on this sheet")
    block.show(1, inputs["discount_fraction"], units.EXACT_PERCENT)
    block.row += 1
    block.compute(0, words.in_use_words, {}, role="light")
    row = inputs["purchase_row"]
    in_use = [block.show(c, of_class_in_use(refs, at, row), USD, "light")
              for c, refs in enumerate(zip(*sums.values(), strict=True), MONTHLY)]  # fmt: skip
    block.row += 1
    block.compute(0, words.contingency_words, {})
    extra = [block.compute(c, cost.contingency_usd, {"usd": usd}) for c, usd in enumerate(in_use, MONTHLY)]
    block.show(5, inputs["contingency_fraction"], PERCENT)
    block.row += 1
    block.label("Total with contingency")
    pairs = enumerate(zip(in_use, extra, strict=True), MONTHLY)
    totals = [block.compute(c, cost.total_usd, {"usd": usd, "contingency_usd": more}) for c, (usd, more) in pairs]
    block.row += 1
    block.compute(0, words.total_words, {})
    for column, total in enumerate(totals, MONTHLY):
        block.compute(column, cost.in_currency, {"usd": total}, role="light")
    block.show(5, inputs["fx_rate"], FACTOR)
    block.label("per $, of", 6, "right_label")
    block.show(7, inputs["fx_date"], DATE)
    block.compute(8, price_mark, {"price_date": inputs["fx_date"]})
    block.row += 1
    block.label("Source of the prices")
    block.show(1, entry(table.range("source"), place, is_text), TEXT, "small")
    block.row += 1
    block.label("Took no part, and cheaper, as built")
    block.show(1, block.as_built("not_asked_words"), TEXT, "small")
    block.row += 1
    return hourly[units.ON_DEMAND], {purchase: usd[0] for purchase, usd in sums.items()}, in_use[0]


def _providers(block: Block, rows: Sequence[Mapping[str, Ref]]) -> None:
    """A row per provider of Prices and hardware, and one for each that a reader may type in the spare rows there."""
    block.head("Provider", "$ per hour", "$ per month", "$ per year", "$ in 3 years", "Instances", "TP",
               "Column on Candidates", "Instance", "$ per instance and hour")  # fmt: skip
    instances = block.wiring.tables["instances"]
    for row in rows:
        block.show(0, row["provider"], TEXT)
        monthly = block.show(MONTHLY, row["usd"], USD)
        for column, name, display in ((5, "n_instances", PLAIN), (6, "size", PLAIN), (7, "position", PLAIN)):
            block.show(column, row[name], display)
        price = block.show(9, row["price"], USD_CENTS)
        block.compute(HOURLY, cost.hourly_usd, {"n_instances": row["n_instances"], "price_usd_per_hour": price})
        block.sums(monthly)
        block.show(8, entry(instances.range("type"), row["instance_row"], is_text, row["position"]), TEXT)
        block.row += 1


def _owned(block: Block, on_demand: Ref) -> None:
    """The purchase and what it takes a month at its low, base and high price, and the break-even.

    on_demand: what the recommended instances cost an hour on demand.
    """
    block.head("Owning", "$ per GPU and hour", "$ per month", "$ per year", "$ in 3 years", "Break-even utilization",
               "Price, $ per GPU", "Installed, $ per GPU", "Purchase, $", "Hardware, $ per month",
               "Power, $ per month", "Site, $ per month", "Support, $ per month", "Cash in 3 years, $")  # fmt: skip
    top = block.row
    block.row += len(ENDS)
    place, facts = _facts(block)
    words_at, block.row = block.row, top
    gpus, break_even = block.wiring.tables["gpus"], dict[str, Source]()
    for end in ENDS:
        block.label(WORDS[end])
        env = {**facts, "n_gpus": block.of("n_gpus"), "on_demand_hourly_usd": on_demand}
        env["capex_usd_per_gpu"] = block.show(6, entry(gpus.range(f"capex_{end}_usd"), place, above_zero), USD)
        for column, one in (
            (7, cost.installed_usd_per_gpu), (8, cost.owned_capex_usd), (9, cost.owned_hardware_usd),
            (10, cost.owned_energy_usd), (11, cost.owned_site_usd), (12, cost.owned_support_usd),
            (13, cost.owned_three_year_cash_usd),
            (MONTHLY, cost.monthly_owned_usd), (HOURLY, cost.owned_usd_per_gpu_hour),
        ):  # fmt: skip
            env[one.name] = ref = block.compute(column, one, env)
            if column == MONTHLY:
                block.sums(ref)
        break_even[end] = block.compute(5, cost.break_even_utilization, env)
        block.row += 1
    block.row = words_at
    block.compute(0, words.break_even_words, break_even, role="light")
    block.row += 1
    block.label(NOT_IN_IT, role="remark")
    block.row += 1


def _facts(block: Block) -> tuple[Ref, dict[str, Source]]:
    """What GPUs says of the recommended one, below its money; gives the row there, and what formulas read."""
    gpus, gpu = block.wiring.tables["gpus"], block.of("gpu")
    block.head("To own", "Row on GPUs", "kW per GPU", "Its own draw (1)", "kW per GPU at the meter",
               "Price of the module (1)", "Price date", "Price age", "Source")  # fmt: skip
    block.compute(0, words.owned_words, {"n_gpus": block.of("n_gpus"), "gpu_name": block.of("gpu_name")})
    names = gpus.range("gpu")  # the row is none where nothing was recommended
    place = block.show(
        1, Lookup.of(place_of(names, gpu.value) or NONE, 'IFERROR(MATCH({0},{1},0),"-")', gpu, names), PLAIN
    )
    found: dict[str, Source] = {
        fact: block.show(column, entry(gpus.range(fact), place, test), display, role)
        for column, fact, test, display, role in (
            (2, "kw_per_gpu", is_number, TWO_DECIMALS, "computed"), (3, "is_it_power", is_number, PLAIN, "computed"),
            (5, "is_module_price", is_number, PLAIN, "computed"), (6, "capex_date", is_number, DATE, "computed"),
            (7, "capex_mark", is_text, TEXT, "computed"), (8, "owning_source", is_text, TEXT, "small"),
        )
    }  # fmt: skip
    found["metered_kw_per_gpu"] = block.compute(4, cost.metered_kw_per_gpu, found)
    block.row += 1
    return place, found


def _hosted(block: Block, m: int, by_class: Mapping[str, Ref]) -> None:
    """The cheapest hosts of a model for the same tokens, and above which utilization each class is cheaper.

    by_class: what the recommended instances cost a month in each purchase class.
    """
    hosts = block.wiring.tables["hosts"]
    mine = [i for i, ref in enumerate(hosts.columns["model_row"]) if ref.value == m + 1]
    block.head("Hosted instead", "Row of the model's on Hosts", "$ per month", "$ per year", "$ in 3 years",
               *(f"Renting cheaper above, {purchase}" for purchase in by_class), *(label for _, label in HOST_PRICES),
               "Rank")  # fmt: skip

    def of(name: str) -> Range:
        return Range([hosts.columns[name][i] for i in mine])

    for rank in range(1, SHOWN_HOSTS + 1 if mine else 1):
        number = block.sheet.put(block.row, 5 + len(by_class) + len(HOST_PRICES), Cell(rank, "fixed", PLAIN))
        at = place_of(of("host_rank"), rank) or NONE
        place = block.show(1, Lookup.of(at, 'IFERROR(MATCH({0},{1},0),"-")', number, of("host_rank")), PLAIN, "small")
        block.show(0, entry(of("host"), place, is_text), TEXT, "label")
        usd = block.show(MONTHLY, entry(of("hosted_monthly_usd"), place, is_number), USD)
        block.sums(usd)
        for column, monthly in enumerate(by_class.values(), 5):
            env = {"monthly_usd": monthly, "hosted_monthly_usd": usd}
            block.compute(column, cost.hosted_break_even_utilization, env)
        for column, (name, _) in enumerate(HOST_PRICES, 5 + len(by_class)):
            block.show(column, entry(of(name), place, above_zero), USD_CENTS)
        block.row += 1
    block.label(NOT_GIVEN if mine else NOBODY, role="remark")
    block.row += 1
