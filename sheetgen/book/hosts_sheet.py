"""Hosts: token prices of hosts of the sheet's models, the cost of each for the load on the first sheet, and its rank
among those of its model. Money shows the cheapest."""

from __future__ import annotations

from collections.abc import Sequence

from sheetgen.answer.solution import Solution
from sheetgen.book.lookups import written
from sheetgen.book.sheets import NONE, Range, Sheet, lookup
from sheetgen.book.wiring import HEAD_ROWS, Table, Wiring, titled
from sheetgen.catalog.hosted import HostedFile, HostedPrice
from sheetgen.formula import Expr, Value, count_where, function, is_number, number_where
from sheetgen.report import sentences
from sheetgen.report.notes import day_of
from sheetgen.sizing import cost
from sheetgen.units import DATE, PLAIN, TEXT, USD_CENTS, WHOLE

PRICES = (
    ("input_usd_per_million", "$ per million prompt tokens"),
    ("cached_usd_per_million", "$ per million cached tokens"),
    ("output_usd_per_million", "$ per million answer tokens"),
)


def build_hosts(solved: Solution, wiring: Wiring) -> Sheet:
    """The sheet Hosts: a row per price, grouped by model and host."""
    file = solved.question.reference.hosted
    sheet = titled(
        "Hosts",
        "Hosts",
        f"What live hosts of the models ask for tokens, read {file.read_on}: {file.origin}"
        f"{f', {file.license}' if file.license else ''}.",
        freeze=(HEAD_ROWS + 1, 2),
    )
    listed: list[tuple[int, HostedPrice]] = []
    for m, model in enumerate(solved.question.models):
        listed += [
            (m, price) for price in sorted(solved.question.live_hosts(model.model), key=lambda price: price.host)
        ]
    table = Table(wiring, sheet, len(listed), "hosts")
    models = wiring.tables["models"].columns["model"]
    prices = [price for _, price in listed]
    table.given("model_row", "Model row", [m + 1 for m, _ in listed], PLAIN, role="fixed", width=8)
    table.given("row", "Row", list(range(1, len(listed) + 1)), PLAIN, role="fixed", width=8)
    table.looked_up("model", "Model", (models[m] for m, _ in listed), TEXT, width=24)
    called = [_called(file, price, solved.question.filters.region) for price in prices]
    table.given("host", "Host, and its precision", called, TEXT, role="label", width=36)
    table.given("hosted_name", "Its name of the model", [price.name for price in prices], TEXT, role="label", width=60)
    for name, label in PRICES:
        table.given(name, label, [getattr(price, name) for price in prices], USD_CENTS, role="fixed", width=14)
    table.given(
        "max_input_tokens",
        "Longest prompt",
        [price.max_input_tokens for price in prices],
        WHOLE,
        role="fixed",
        note="Tokens; blank where the host states none.",
    )
    loads, load_rows = wiring.tables["loads"], wiring.lists["headline_rows"].refs
    of_load = ("hosted_million_input_tokens", "hosted_million_output_tokens", "input_tokens", "cached_fraction")
    table.computed(
        cost.hosted_monthly_usd,
        {name: [lookup(loads.range(name), load_rows[m]) for m, _ in listed] for name in of_load},
        width=14,
    )
    table.computed(cost.hosted_monthly_cents, width=14)
    _add_ranks(table, listed)
    table.given("read_on", "Read on", [day_of(file.day_of(price)) for price in prices], DATE, role="remark")
    ends = [day_of(price.deprecation_date) for price in prices]
    table.given("deprecation_date", "Retires on", ends, DATE, role="remark", note="Blank where no date is stated.")
    sources = [str(price.source) for price in prices]
    table.given("source", "Source", sources, TEXT, role="remark", width=90, linked=True)
    return sheet


def _called(file: HostedFile, price: HostedPrice, region: str) -> str:
    """A host with its precision and, where a region was requested, that its place is unknown."""
    precision = [price.precision] if price.precision else []
    is_lacking = bool(region) or not precision
    lacks = sentences.host_lacks.fill(region=region, is_unknown=int(not precision))
    return ", ".join([file.host_name(price.host), *precision, *([str(lacks)] if is_lacking else [])])


def _add_ranks(table: Table, listed: Sequence[tuple[int, HostedPrice]]) -> None:
    """Each host's lowest cost, at the first price that gives it, and its rank: as `recommend.hosted.by_host` orders."""
    at_host, of_model = _groups([(m, price.host) for m, price in listed]), _groups([m for m, _ in listed])
    table.given(
        "row_of_host", "Row of its host", [i - own[0] + 1 for i, own in enumerate(at_host)], PLAIN, role="fixed"
    )
    cents, numbers, lowest = table.columns["hosted_monthly_cents"], table.columns["row_of_host"], []
    for i, own in enumerate(at_host):
        priced = {k: cents[k].value for k in own if cents[k].value != NONE}
        value = cents[i].value if priced and i == min(priced, key=priced.__getitem__) else NONE
        bills = Range([cents[k] for k in own])
        lowest.append(written(value, _if_lowest, cents[i], bills, numbers[i]))
    table.looked_up("lowest_cents", "The host's lowest, cents per month", lowest, WHOLE, width=14)
    best, ranks = table.columns["lowest_cents"], []
    for i, own in enumerate(of_model):
        order = sorted((best[k].value, k) for k in own if best[k].value != NONE)
        rank = order.index((best[i].value, i)) + 1 if best[i].value != NONE else NONE
        others, before = Range([best[k] for k in own]), Range([best[k] for k in own if k <= i])
        ranks.append(written(rank, _rank, best[i], others, before))
    table.looked_up("host_rank", "Rank", ranks, PLAIN, note="Among the hosts of the model: 1 is the cheapest.")


def _if_lowest(cents: Expr, bills: Expr, number: Expr) -> Value:
    """The cents of a row where it is the first of its host's lowest bills."""
    first = function("IFERROR", function("MATCH", function("MIN", bills), bills, 0), 0)
    return number_where(first == number, cents)


def _rank(best: Expr, others: Expr, before: Expr) -> Value:
    """The number of lower bills, plus that of equal ones up to this row."""
    return number_where(is_number(best), count_where(others < best) + count_where(before == best))


def _groups(keys: Sequence[object]) -> list[list[int]]:
    """For each position the positions of the same key."""
    return [[i for i, other in enumerate(keys) if other == key] for key in keys]
