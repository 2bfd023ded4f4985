"""The Money sheet of a recalculated workbook by its words, and what `recommend.money` says of the same loads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import books
from books import HEAD, Sheets

from sheetgen.recommend import Solution, headline_rows, hosts_of, money
from sheetgen.sheet.notes import day_of

CLASS = ("hourly_usd", "monthly_usd", "annual_usd", "three_year_usd")
ENDS = {"low price": "low", "base": "base", "high price": "high"}
OWNED = {
    "B": "owned_usd_per_gpu_hour", "C": "monthly_owned_usd", "F": "break_even_utilization", "G": "capex_usd_per_gpu",
    "H": "installed_usd_per_gpu", "I": "owned_capex_usd", "J": "owned_hardware_usd", "K": "owned_energy_usd",
    "L": "owned_site_usd", "M": "owned_support_usd",
}  # fmt: skip
WORKINGS = {
    "$ per user and month": "usd_per_user_per_month", "Million prompt tokens a month": "million_input_tokens_per_month",
    "Million answer tokens a month": "million_output_tokens_per_month",
    "$ per million prompt tokens": "usd_per_million_input_tokens",
    "$ per million answer tokens": "usd_per_million_output_tokens", "$ per million tokens": "usd_per_million_tokens",
}  # fmt: skip


def blocks(found: Mapping[Any, Any], solved: Solution) -> list[dict[str, dict[str, Any]]]:
    """Per model, the rows of its block by what stands in their first column: the cells by column."""
    rows: dict[int, dict[str, Any]] = {}
    for key, value in found.items():
        if isinstance(key, tuple) and key[0] == "Money":
            letters = key[1].rstrip("0123456789")
            rows.setdefault(int(key[1][len(letters) :]), {})[letters] = value
    names = [m.model.name for m in solved.question.models]
    out: list[dict[str, dict[str, Any]]] = []
    for number in sorted(rows):
        label = rows[number].get("A")
        if label in names and len(out) == names.index(label):
            out.append({})
        elif out and isinstance(label, str) and label not in out[-1]:
            out[-1][label] = rows[number]
    assert len(out) == len(names)
    return out


def expected(solved: Solution, row: int) -> dict[tuple[str, str], Any]:
    """The cells of a block by row label and column, from `recommend.money`."""
    out: dict[tuple[str, str], Any] = {}
    question = solved.question
    for one in money.purchase_classes(solved, row):
        out |= {(one.purchase, c): getattr(one, name) for c, name in zip("BCDE", CLASS, strict=True)}
        out[one.purchase, "H"] = one.commitment_waste_usd
        known = not math.isnan(one.hourly_usd)
        out[one.purchase, "I"] = (day_of(one.price_as_of) if known else None) or "-"
    budget, in_use = money.budget(solved, row), question.settings.purchase
    if budget is not None:
        for column, sums in zip("CDE", vars(budget).values(), strict=True):
            out[f"Contingency on {in_use}", column] = sums[1]
            out[f"Total, {question.settings.currency}", column] = sums[2]
            out["Total with contingency", column] = sums[0] + sums[1]
    units = money.unit_costs(solved, row)
    names = list(WORKINGS.values())
    out["All replicas together", "B"] = solved.loads["users"][row]
    out |= {("All replicas together", c): units[name] for c, name in zip("CDEFGH", names, strict=True)}
    out["All replicas together", "I"] = question.settings.utilization
    for offer in money.providers(solved, row):
        candidate = None if offer.offer is None else solved.candidate(offer.offer)
        out[offer.provider, "B"], out[offer.provider, "C"] = offer.hourly_usd, offer.monthly_usd
        out[offer.provider, "F"] = offer.n_instances if candidate else "-"
        out[offer.provider, "G"] = "-" if offer.offer is None else solved.layout(offer.offer).tensor_parallel_size
        out[offer.provider, "I"] = candidate.instance.split("/", 1)[1] if candidate else "-"
    owned = money.owned(solved, row)
    if owned is not None:
        for label, end in ENDS.items():
            out |= {(label, column): owned[end][name] for column, name in OWNED.items()}
    classes = money.purchase_classes(solved, row)
    for host in hosts_of(solved, row).cheapest:
        price, usd = host.price, host.monthly_usd
        label = f"{host.host_name}, {price.precision or 'precision unknown'}"
        out |= {(label, "C"): usd, (label, "D"): 12 * usd, (label, "E"): 36 * usd}
        above = (of_class.monthly_usd * question.settings.utilization / usd for of_class in classes)
        prices = price.input_usd_per_million, price.cached_usd_per_million, price.output_usd_per_million
        out |= {(label, column): "-" if value is None else value
                for column, value in zip("FGHIJKLM", (*above, *prices), strict=True)}  # fmt: skip
    return out


def differences(found: Mapping[Any, Any], sheets: Sheets, solved: Solution) -> tuple[int, list[str]]:
    """How many cells of Money, and of money on Workings, were held against Python; and which differ."""
    n, wrong = 0, []

    def hold(where: str, got: Any, want: Any) -> None:
        nonlocal n
        n += 1
        want = "-" if isinstance(want, float) and math.isnan(want) else want
        want = (want - books_day_zero()).days if hasattr(want, "isoformat") else want
        if not books.same(got, want):
            wrong.append(f"{where}: the workbook says {got!r}, Python {want!r}")

    for block, row in zip(blocks(found, solved), headline_rows(solved), strict=True):
        for (label, column), want in expected(solved, row).items():
            hold(f"{label} {column}", block[label].get(column), want)
    for row in range(len(solved.choices)):
        units = money.unit_costs(solved, row)
        for head, name in WORKINGS.items():
            hold(f"Workings {row} {head}", found.get(sheets.at("Workings", HEAD + 1 + row, head)), units[name])
    return n, wrong


def books_day_zero() -> Any:
    from sheetgen.sheet.model import EXCEL_DAY_ZERO

    return EXCEL_DAY_ZERO
