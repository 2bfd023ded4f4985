"""The Money sheet of a recalculated workbook by its words, and what `recommend.money` says of the same loads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import books
from books import HEAD, Sheets

from sheetgen.answer import ways_to_pay
from sheetgen.answer.hosts import hosts_of
from sheetgen.answer.solution import Solution, headline_rows
from sheetgen.book.decision_choices import instances
from sheetgen.question.overrides import BY_READER
from sheetgen.report.notes import day_of
from sheetgen.report.wording import instance_name, provider_name
from sheetgen.units import PURCHASES

CLASS = ("hourly_usd", "monthly_usd", "annual_usd", "three_year_usd")
ENDS = {"low price": "low", "base": "base", "high price": "high"}
OWNED = {
    "B": "owned_usd_per_gpu_hour", "C": "monthly_owned_usd", "F": "break_even_utilization",
    "G": "owned_three_year_cash_usd",
}  # fmt: skip
PARTS = {
    "B": "capex_usd_per_gpu", "C": "installed_usd_per_gpu", "D": "owned_capex_usd", "E": "owned_hardware_usd",
    "F": "owned_energy_usd", "G": "owned_site_usd", "H": "owned_support_usd",
}  # fmt: skip
N_MONTHS = 36
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
        if label in names and str(rows[number].get("B")).startswith("renting"):
            assert label == names[len(out)]
            out.append({})
        elif out and isinstance(label, str) and label not in out[-1]:
            out[-1][label] = rows[number]
    assert len(out) == len(names)
    return out


def expected(solved: Solution, row: int) -> dict[tuple[str, str], Any]:
    """The cells of a block by row label and column, from `recommend.money`."""
    out: dict[tuple[str, str], Any] = {}
    question = solved.question
    for one in ways_to_pay.purchase_classes(solved, row):
        out |= {(one.purchase, c): getattr(one, name) for c, name in zip("BCDE", CLASS, strict=True)}
        out[one.purchase, "G"] = one.commitment_waste_usd
        known = not math.isnan(one.hourly_usd)
        out[one.purchase, "H"] = (day_of(one.price_as_of) if known else None) or "-"
    budget, in_use = ways_to_pay.budget(solved, row), question.settings.purchase
    if budget is not None:
        for column, sums in zip("CDE", (budget.monthly, budget.annual, budget.three_year), strict=True):
            out[f"Contingency on {in_use}", column] = sums[1]
            out[f"Total, {question.settings.currency}", column] = sums[2]
            out["Total with contingency", column] = sums[0] + sums[1]
    units = ways_to_pay.unit_costs(solved, row)
    names = list(WORKINGS.values())
    out["All replicas together", "B"] = solved.loads["users"][row]
    out |= {("All replicas together", c): units[name] for c, name in zip("CDEFGH", names, strict=True)}
    out["All replicas together", "I"] = question.settings.utilization
    for offer in ways_to_pay.providers(solved)[row]:
        out[offer.provider, "B"], out[offer.provider, "C"] = offer.hourly_usd, offer.monthly_usd
        out[offer.provider, "F"] = offer.n_instances or "-"
        out[offer.provider, "G"] = offer.tensor_parallel_size or "-"
        out[offer.provider, "I"] = instance_name(offer.instance) if offer.instance else "-"
    owned = ways_to_pay.owned(solved, row)
    if owned is not None:
        for label, end in ENDS.items():
            out |= {(label, column): owned[end][name] for column, name in OWNED.items()}
            out |= {(f"{label}, its parts", column): owned[end][name] for column, name in PARTS.items()}
    classes = ways_to_pay.purchase_classes(solved, row)
    for price in hosts_of(solved, row):
        usd, name = price.monthly_usd, question.reference.hosted.host_name(price.host)
        label = f"{name}, {price.precision or 'precision unknown'}"
        out |= {(label, "C"): usd, (label, "D"): 12 * usd, (label, "E"): 36 * usd}
        above = (of_class.monthly_usd * question.settings.utilization / usd for of_class in classes)
        prices = price.input_usd_per_million, price.cached_usd_per_million, price.output_usd_per_million
        out |= {
            (label, column): "-" if value is None else value
            for column, value in zip("FGHIJBKL", (*above, *prices), strict=True)
        }
    return out


def first_pages(solved: Solution) -> dict[str, Any]:
    """By cell, what the first pages have of the models: costs and their total, sources, ways to pay, cash by month."""
    rows, out = headline_rows(solved), dict[str, Any]()
    n, settings, together = len(rows), solved.question.settings, solved.question.options.get("together") == "yes"
    top = {"costs": 7, "sources": 7 + n + 4, "ways": 7 + n + 4 + 2 * n + 3}
    ways: list[list[float]] = []
    named = zip(instances(solved.question), solved.question.rows, strict=False)
    listed = {name: row.source for (name, _), row in named}
    for m, row in enumerate(rows):
        choice, budget = solved.choices[row], ways_to_pay.budget(solved, row)
        sums = [] if budget is None else [budget.monthly, budget.annual, budget.three_year]
        for column, k in (*((c, 0) for c in "FGH"), *((c, 2) for c in "JKL")):
            of = {"F": 0, "G": 1, "H": 2, "J": 0, "K": 1, "L": 2}[column]
            out[f"{column}{top['costs'] + m}"] = sums[of][k] if sums else math.nan
        at = top["sources"] + 2 * m
        if choice.offer is not None:
            one = solved.candidate(choice.offer)
            price = one.class_price(settings.purchase)
            less = solved.question.discount(one.provider, one.purchase)
            paid = one.usd_per_hour * (1 - less)
            hours = choice.monthly_usd / choice.n_instances / paid
            out |= {
                f"B{at}": one.usd_per_hour,
                f"C{at}": less,
                f"D{at}": paid,
                f"E{at}": choice.n_instances,
                f"F{at}": hours,
                f"G{at}": choice.monthly_usd,
                f"H{at}": provider_name(one.provider),
                f"I{at}": settings.purchase,
                f"L{at}": one.region or "-",
                f"J{at}": (price and day_of(price.price_as_of)) or "-",
            }
            # A listed row whose price is typed over keeps its source, beside an age that says "typed here".
            source = listed.get(one.instance) if one.source == BY_READER else one.source
            out[f"B{at + 1}"] = f"{one.instance}: {source or BY_READER}"
        classes = [one.monthly_usd for one in ways_to_pay.purchase_classes(solved, row)] or [math.nan] * 5
        owned = ways_to_pay.owned(solved, row)
        base = (
            owned["base"]
            if owned
            else dict.fromkeys(("owned_energy_usd", "owned_site_usd", "owned_capex_usd"), math.nan)
        )
        ways.append([*classes, base["owned_energy_usd"] + base["owned_site_usd"], base["owned_capex_usd"]])
        out |= {f"{c}{top['ways'] + m}": usd for c, usd in zip("BCDEFGH", ways[-1], strict=True)}
    added = [math.fsum(column) if together else math.nan for column in zip(*ways, strict=True)]
    if n > 1:
        out |= {f"{c}{top['ways'] + n}": usd for c, usd in zip("BCDEFGH", added, strict=True)}
    for column in "FGHJKL" if n > 1 else "":
        known = [out[f"{column}{top['costs'] + m}"] for m in range(n)]
        out[f"{column}{top['costs'] + n}"] = math.fsum(known) if together else math.nan
    *each, ahead = added if together else ways[solved.question.ask or 0]
    each[-1] += 0 * ahead  # none where the purchase is not known
    for column, usd in zip("BCDEF", each[:-1], strict=True):  # the month in which owning has paid off
        saved = usd - each[-1]
        out[f"{column}{top['ways'] + n + 9}"] = math.ceil(ahead / saved) if saved > 0 else math.nan
    first = top["ways"] + n + 27  # the first month, and its cells
    in_use = list(PURCHASES).index(settings.purchase)
    for month in range(1, N_MONTHS + 1):
        at = first + month - 1
        out |= {f"{c}{at}": month * usd for c, usd in zip("BCDEF", each[:-1], strict=True)}
        out |= {
            f"G{at}": ahead + month * each[-1],
            f"I{at}": each[in_use],
            f"J{at}": each[-1] + (ahead if month == 1 else 0),
        }
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
    for (cell, want), got in zip(
        first_pages(solved).items(), (found.get(("Money", c)) for c in first_pages(solved)), strict=True
    ):
        hold(cell, got, want)
    for row in range(len(solved.choices)):
        units = ways_to_pay.unit_costs(solved, row)
        for head, name in WORKINGS.items():
            hold(f"Workings {row} {head}", found.get(sheets.at("Workings", HEAD + 1 + row, head)), units[name])
    return n, wrong


def books_day_zero() -> Any:
    from sheetgen.book.sheets import EXCEL_DAY_ZERO

    return EXCEL_DAY_ZERO
