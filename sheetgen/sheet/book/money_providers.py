"""Each provider's cheapest for the load, side by side: a part of the Money sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sheetgen import cost
from sheetgen.formula import Expr, is_text
from sheetgen.sheet.book.choices import chosen_n_instances
from sheetgen.sheet.book.money_block import HOURLY, MONTHLY, Block, entry
from sheetgen.sheet.book.money_words import (
    provider_monthly_usd,
    provider_position,
    provider_price,
    provider_tp,
)
from sheetgen.sheet.model import Found, Range, Ref, Source, found
from sheetgen.units import TEXT

SPARE_PROVIDERS = 3  # as many as Instances has spare rows
PRICE, SEARCHES = 9, 10  # the first column of the array formulas, which the others pass on


def add_providers(block: Block, heads: Mapping[str, Range], n_providers: int) -> None:
    """A row per provider of Instances, and one for each that a reader may type in the spare rows there."""
    block.head("Provider", "$ per hour", "$ per month", "$ per year", "$ in 3 years", "Instances", "TP",
               "Column on Candidates", "Instance", "$ per instance and hour",
               "$ per month, found", "$ per hour, found", "TP, found", "Column, found")  # fmt: skip
    rows: dict[str, Source] = {
        "monthly": _row_of(block.wiring.monthly, block.at),
        "prices": heads["price_usd_per_hour"],
        "sizes": heads["tp"],
        "providers": heads["provider"],
    }
    names = block.wiring.tables["instances"].columns["provider_in_order"]
    for name in names[: n_providers + SPARE_PROVIDERS]:
        provider = block.sheet.link(block.row, 0, name, TEXT)
        env: dict[str, Source] = {**rows, "provider": provider}
        best = block.search(MONTHLY, provider_monthly_usd, env, SEARCHES)
        env |= {"best": best}
        env |= {"price": block.search(PRICE, provider_price, env, SEARCHES + 1)}
        count = block.compute(5, chosen_n_instances, env)
        env |= {"size": block.search(6, provider_tp, env, SEARCHES + 2)}
        position = block.search(7, provider_position, env, SEARCHES + 3)
        block.compute(HOURLY, cost.hourly_usd, {"n_instances": count, "price_usd_per_hour": env["price"]})
        block.sums(best)
        row = found(heads["instance_row"], position)
        block.show(8, entry(block.wiring.tables["instances"].range("type"), row, is_text, position), TEXT)
        block.row += 1


def _row_of(rows: Sequence[Range], at: Ref) -> Found:
    """The row of a matrix at a position from 1, as a whole."""
    block = Range((rows[0].refs[0], rows[-1].refs[-1]))

    def write(here: str) -> Expr:
        return Expr(f"INDEX({block.expr(here).text},{at.expr(here).text},0)")

    return Found(rows[int(at.value) - 1].value, write)
