"""Columns about money on the sheets of the catalogs: prices of the other purchase classes, and of GPUs to own."""

from __future__ import annotations

from typing import Any

from sheetgen import cost
from sheetgen.formula import Expr, formula, is_number, is_text, where
from sheetgen.recommend import Solution
from sheetgen.scenario.money import OwnedGpu
from sheetgen.sheet.book.wiring import Table, Wiring
from sheetgen.sheet.links import links
from sheetgen.sheet.model import NONE
from sheetgen.sheet.notes import day_of
from sheetgen.units import DATE, FACTOR, PLAIN, PURCHASES, TEXT, USD, USD_CENTS, WHOLE


@formula("Price age", TEXT)
def price_mark(as_of: Any, price_date: Any, stale_after_days: Any) -> Any:
    """`old` where a price was read longer ago than the sheet allows, `ok` else; none without a date.

    Source: the limit on Inputs; a date that names only a year or a month counts from its first day.
    """
    return where(is_number(price_date), where(as_of - price_date > stale_after_days, "old", "ok"), "-")


def class_columns(purchase: str, in_use: str) -> dict[str, str]:
    """The columns of Instances that hold a purchase class: price, date, mark and terms."""
    if purchase == in_use:
        return {"price": "price_usd_per_hour", "date": "price_date", "mark": "age_word", "terms": "terms"}
    stem = purchase.replace("-", "_")
    return {what: f"{what}_{stem}" for what in ("price", "date", "mark", "terms")}


def add_class_prices(solved: Solution, wiring: Wiring, table: Table) -> None:
    """What the same instances cost in the other purchase classes; blank where nobody lists a price."""
    in_use = solved.question.settings.purchase
    rows = solved.question.rows
    blank: list[Any] = [None] * (table.n_rows - len(rows))
    table.given("terms", "Terms", [r.price_kind or None for r in rows] + blank, TEXT, role="remark", width=24)
    for purchase in PURCHASES:
        if purchase == in_use:
            continue
        names = class_columns(purchase, in_use)
        prices = [r.class_price(purchase) for r in rows]
        table.given(
            names["price"], f"$ per hour, {purchase}", [p.usd_per_hour if p else None for p in prices] + blank,
            USD_CENTS,
            note="Beside the class in use: shown on Money, it decides nothing. A blank is no price.",
        )  # fmt: skip
        days = [day_of(p.price_as_of) if p else None for p in prices]
        table.given(names["date"], f"Price date, {purchase}", days + blank, DATE)
        dates = table.columns[names["date"]]
        table.computed(
            price_mark, lambda i, d=dates: {**wiring.inputs, "price_date": d[i]},  # type: ignore[misc]
            name=names["mark"], label=f"Price age, {purchase}",
        )  # fmt: skip
        kinds = [p.price_kind or None if p else None for p in prices]
        table.given(names["terms"], f"Terms, {purchase}", kinds + blank, TEXT, role="remark", width=24)
    _providers_in_order(table)


def _providers_in_order(table: Table) -> None:
    """The providers of the rows, each once, in their order: a reader may type another one."""
    here, providers = table.sheet.name, table.range("provider")
    names = [r.value for r in providers.refs]
    firsts = [i + 1 if n and names.index(n) == i else NONE for i, n in enumerate(names)]
    table.given("row", "Row", list(range(1, table.n_rows + 1)), PLAIN, role="fixed", width=7)

    def first(i: int) -> tuple[Any, Expr]:
        provider, row = table.columns["provider"][i].expr(here), table.columns["row"][i].expr(here)
        found = Expr(f"MATCH({provider.text},{providers.expr(here).text},0)")
        expr: Expr = where(is_text(provider), where(found == row, row, NONE), NONE)
        return firsts[i], expr

    table.looked_up("first_of_provider", "First of its provider", first, PLAIN)
    rows = [f for f in firsts if f != NONE]

    def in_order(i: int) -> tuple[Any, Expr]:
        refs = table.range("first_of_provider").expr(here).text
        nth = f"SMALL({refs},{table.columns['row'][i].expr(here).text})"
        expr = Expr(f'IFERROR(INDEX({providers.expr(here).text},{nth}),"{NONE}")')
        return (names[int(rows[i]) - 1] if i < len(rows) else NONE), expr

    table.looked_up("provider_in_order", "Providers in order", in_order, TEXT, width=14)


def add_owning_columns(solved: Solution, wiring: Wiring, table: Table) -> None:
    """What one GPU costs to buy, as a range, and what power it takes; blank where nothing is known."""
    question = solved.question
    owned = [question.owning.gpus.get(g.id, OwnedGpu()) for g in question.gpus]
    for k, end in enumerate(("low", "base", "high")):
        table.given(
            f"capex_{end}_usd", f"Purchase, {end}, $", [o.capex_usd[k] if o.capex_usd else None for o in owned], USD,
            note="US dollars for one GPU. No maker publishes a price: type your own quote over all three.",
        )  # fmt: skip
    table.given(
        "is_module_price", "Price of the module (1) or installed (0)", [o.is_module_price for o in owned], PLAIN,
        width=14, note="A module's price is multiplied by the installed price's share on Inputs.",
    )  # fmt: skip
    table.given("capex_date", "Purchase price's date", [day_of(o.capex_as_of) for o in owned], DATE)
    table.computed(
        price_mark, lambda i: {**wiring.inputs, "price_date": table.columns["capex_date"][i]},
        name="capex_mark", label="Purchase price's age",
    )  # fmt: skip
    table.given(
        "stated_kw_per_gpu", "kW per GPU, stated", [o.stated_kw_per_gpu for o in owned], FACTOR,
        note="With its share of the server. Blank: it follows from the rated power.",
    )  # fmt: skip
    table.given(
        "rated_watts", "Rated power, W", [o.rated_watts for o in owned], WHOLE, note="Watts of the GPU alone.",
    )  # fmt: skip
    table.given(
        "is_it_power", "Machine's own draw (1) or all-in (0)", [o.is_it_power for o in owned], PLAIN, width=14,
        note="A machine's own draw is multiplied by the PUE; an all-in figure has the cooling in it.",
    )  # fmt: skip
    table.computed(cost.kw_per_gpu, lambda i: wiring.inputs)
    sources = [f"{o.capex_source or 'no price known'}; power: {o.kw_source}" for o in owned]
    table.given(
        "owning_source", "Source of price and power", sources, TEXT, role="remark", width=160, urls=links(sources)
    )
