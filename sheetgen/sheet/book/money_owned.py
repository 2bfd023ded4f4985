"""Owning the recommended GPUs instead of renting them: a part of the Money sheet."""

from __future__ import annotations

from sheetgen import cost
from sheetgen.formula import Expr, is_number, is_text
from sheetgen.recommend.money import ENDS
from sheetgen.sheet.book.money_block import HOURLY, MONTHLY, Block, above_zero, entry
from sheetgen.sheet.book.money_words import break_even_words, owned_words
from sheetgen.sheet.model import NONE, Range, Ref, Source
from sheetgen.units import DATE, PLAIN, TEXT, TWO_DECIMALS, USD

NOT_IN_IT = (
    "GPUs are powered and housed in every hour. Staff, network between servers and licences are not in it; "
    "support is as on Inputs."
)
WORDS = {"low": "low price", "base": "base", "high": "high price"}


def add_owned(block: Block, on_demand: Ref) -> None:
    """The purchase and what it takes a month at its low, base and high price, and the break-even.

    on_demand: what the recommended instances cost an hour on demand.
    """
    block.head("Owning", "$ per GPU and hour", "$ per month", "$ per year", "$ in 3 years", "Break-even utilization",
               "Price, $ per GPU", "Installed, $ per GPU", "Purchase, $", "Hardware, $ per month",
               "Power, $ per month", "Site, $ per month", "Support, $ per month")  # fmt: skip
    top = block.row
    block.row += len(ENDS)
    place, facts = _facts(block)
    words_at, block.row = block.row, top
    shared: dict[str, Source] = {**facts, "n_gpus": block.of("n_gpus"), "on_demand_hourly_usd": on_demand}
    ends = [_end(block, end, place, shared) for end in ENDS]
    block.row = words_at
    block.compute(0, break_even_words, dict(zip(ENDS, ends, strict=True)), role="light")
    block.row += 1
    block.label(NOT_IN_IT, role="remark")
    block.row += 1


def _facts(block: Block) -> tuple[Ref, dict[str, Source]]:
    """What GPUs says of the recommended one, below its money; gives the row there, and what formulas read."""
    gpus = block.wiring.tables["gpus"]
    block.head("To own", "Row on GPUs", "kW per GPU", "Its own draw (1)", "kW per GPU at the meter",
               "Price of the module (1)", "Price date", "Price age", "Source")  # fmt: skip
    block.compute(0, owned_words, {"n_gpus": block.of("n_gpus"), "gpu_name": block.of("gpu_name")})
    place = _place(block, gpus.range("gpu"))
    kw = block.show(2, entry(gpus.range("kw_per_gpu"), place, is_number), TWO_DECIMALS)
    own = block.show(3, entry(gpus.range("is_it_power"), place, is_number), PLAIN)
    metered = block.compute(4, cost.metered_kw_per_gpu, {"kw_per_gpu": kw, "is_it_power": own})
    module = block.show(5, entry(gpus.range("is_module_price"), place, is_number), PLAIN)
    block.show(6, entry(gpus.range("capex_date"), place, is_number), DATE)
    block.show(7, entry(gpus.range("capex_mark"), place, is_text), TEXT)
    block.show(8, entry(gpus.range("owning_source"), place, is_text), TEXT, "small")
    block.row += 1
    return place, {"kw_per_gpu": kw, "metered_kw_per_gpu": metered, "is_module_price": module}


def _end(block: Block, end: str, place: Ref, shared: dict[str, Source]) -> Ref:
    """One end of the price's range in a row of its own; gives the break-even."""
    gpus = block.wiring.tables["gpus"]
    block.label(WORDS[end])
    env = dict(shared)
    env["capex_usd_per_gpu"] = block.show(6, entry(gpus.range(f"capex_{end}_usd"), place, above_zero), USD)
    for column, one in (
        (7, cost.installed_usd_per_gpu),
        (8, cost.owned_capex_usd),
        (9, cost.owned_hardware_usd),
        (10, cost.owned_energy_usd),
        (11, cost.owned_site_usd),
        (12, cost.owned_support_usd),
        (MONTHLY, cost.monthly_owned_usd),
        (HOURLY, cost.owned_usd_per_gpu_hour),
    ):
        env[one.name] = block.compute(column, one, env)
    monthly = env["monthly_owned_usd"]
    assert isinstance(monthly, Ref)
    block.sums(monthly)
    found = block.compute(5, cost.break_even_utilization, env)
    block.row += 1
    return found


def _place(block: Block, names: Range) -> Ref:
    """The row of the recommended GPU on GPUs; none where nothing was recommended."""
    gpu = block.of("gpu")
    here = block.sheet.name
    known = [r.value for r in names.refs]
    value = known.index(gpu.value) + 1 if gpu.value in known else NONE
    expr = Expr(f'IFERROR(MATCH({gpu.expr(here).text},{names.expr(here).text},0),"{NONE}")')
    return block.sheet.formula(block.row, 1, value, expr, PLAIN)
