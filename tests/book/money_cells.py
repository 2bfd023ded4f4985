"""The Money sheet of a recalculated workbook by its words, and what `recommend.money` says of the same loads."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import replace

import books
from books import HEAD, Sheets
from workbook_cells import CellValue, Place

from sheetgen.answer import ways_to_pay
from sheetgen.answer.answer_record import ClassCost
from sheetgen.answer.confidences import paces_at_even_chance
from sheetgen.answer.hosts import hosts_of
from sheetgen.answer.solution import Solution, headline_rows
from sheetgen.answer.solve import on_gpus_of_classes, rented_in
from sheetgen.book.decision_choices import instances
from sheetgen.book.money_page import SHOWN
from sheetgen.book.sheets import EXCEL_DAY_ZERO
from sheetgen.question.market import in_class
from sheetgen.question.overrides import BY_READER
from sheetgen.report.notes import day_of
from sheetgen.report.wording import instance_name, provider_name
from sheetgen.units import ON_DEMAND, PURCHASES

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
OF_OWNED, PAID_OFF = (
    ("owned_support_usd", "owned_energy_usd", "owned_site_usd", "owned_capex_usd"),
    "Owning has paid off in month",
)
WORKINGS = {
    "$ per user and month": "usd_per_user_per_month", "Million prompt tokens a month": "million_input_tokens_per_month",
    "Million answer tokens a month": "million_output_tokens_per_month",
    "$ per million prompt tokens": "usd_per_million_input_tokens",
    "$ per million answer tokens": "usd_per_million_output_tokens", "$ per million tokens": "usd_per_million_tokens",
}  # fmt: skip


def block(values: Mapping[Place | str, CellValue]) -> dict[CellValue, dict[str, CellValue]]:
    """The rows of Money by what stands in their first column (a month's number too): the cells by column."""
    rows: dict[int, dict[str, CellValue]] = {}
    for key, value in values.items():
        if isinstance(key, tuple) and key[0] == "Money":
            letters = key[1].rstrip("0123456789")
            rows.setdefault(int(key[1][len(letters) :]), {})[letters] = value
    out: dict[CellValue, dict[str, CellValue]] = {}
    for number in sorted(rows):
        out.setdefault(rows[number].get("A"), rows[number])
    return out


def chosen(values: Mapping[Place | str, CellValue], solved: Solution) -> int:
    """The headline's row of the model that Money is of."""
    names = [m.model.name for m in solved.question.models]
    return headline_rows(solved)[names.index(str(values["in_money_model"]))]


def classes(solved: Solution, row: int) -> list[ClassCost]:
    """The cost of each purchase class: of the machines of the answer in the class in use and on demand, in each other
    of those that the choice takes at its prices; none where it binds money and the answer is an even chance."""
    question, settings = solved.question, solved.question.settings
    answered, in_all = on_gpus_of_classes(solved), 730  # hours in a month
    costs: list[ClassCost] = []
    for of_class in ways_to_pay.purchase_classes(solved, row):
        paid = PURCHASES[of_class.purchase]
        if of_class.purchase in (settings.purchase, ON_DEMAND):
            costs.append(of_class)
            continue
        rental = rented_in(answered, answered.grid, of_class.purchase)[row]
        hours = max(settings.hours_per_month, in_all) if paid.committed else settings.hours_per_month
        month, day = math.nan, None
        if rental and not (paid.binds and paces_at_even_chance(solved)[question.pace(question.loads[row])]):
            month = rental.monthly_usd
            sold = in_class(question.candidates, question.others.get(of_class.purchase, ()), of_class.purchase)
            day = next(candidate.price_as_of for candidate in sold if candidate.instance == rental.instance)
        costs.append(
            replace(
                of_class,
                price_as_of=day,
                hourly_usd=month / hours,
                monthly_usd=month,
                annual_usd=12 * month,
                three_year_usd=36 * month,
                commitment_waste_usd=month * (1 - settings.hours_per_month / hours),
            )
        )
    return costs


def expected(solved: Solution, row: int) -> dict[tuple[CellValue, str], CellValue]:
    """The cells of a block by row label and column, from `recommend.money`."""
    out: dict[tuple[CellValue, str], CellValue] = {}
    question = solved.question
    for purchase_class in classes(solved, row):
        out |= {
            (purchase_class.purchase, c): getattr(purchase_class, name) for c, name in zip("BCDE", CLASS, strict=True)
        }
        out[purchase_class.purchase, "G"] = purchase_class.commitment_waste_usd
        is_priced = not math.isnan(purchase_class.hourly_usd)
        out[purchase_class.purchase, "H"] = (day_of(purchase_class.price_as_of) if is_priced else None) or "-"
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
    users, load = float(solved.loads["users"][row]), question.loads[row]
    used = question.settings.utilization  # the share of the hours in which the hardware does the work of its people
    if load.requests_per_second or users >= 1:
        workload = solved.workload_of(row)
        peak = question.settings.peak_hour_share * question.settings.burst_factor
        a_day = load.requests_per_second * 3600 / peak or users * workload.requests_per_user_per_day
        answers = ways_to_pay.unit_costs(solved, row)["million_output_tokens_per_month"] / used
        if answers:
            used = a_day / 24 * question.settings.hours_per_month * workload.output_tokens / 1e6 / answers
    for price in hosts_of(solved, row):
        usd, name = price.monthly_usd, question.reference.hosted.host_name(price.host)
        label = f"{name}, {price.precision or 'precision unknown'}"
        out |= {(label, "C"): usd, (label, "D"): 12 * usd, (label, "E"): 36 * usd}
        above = (of_class.monthly_usd * used / usd for of_class in classes(solved, row))
        prices = price.input_usd_per_million, price.cached_usd_per_million, price.output_usd_per_million
        out |= {
            (label, column): "-" if value is None else value
            for column, value in zip("FGHIJBKL", (*above, *prices), strict=True)
        }
    return out


def source_and_cash(solved: Solution, row: int) -> dict[tuple[CellValue, str], CellValue]:
    """By row label and column, where the price is from, and the cash of months."""
    out = dict[tuple[CellValue, str], CellValue]()
    settings, choice = solved.question.settings, solved.choices[row]
    named = zip(instances(solved.question), solved.question.rows, strict=False)
    listed = {name: purchase_class.source for (name, _), purchase_class in named}
    if choice.offer is not None:
        candidate = solved.candidate(choice.offer)
        price = candidate.class_price(settings.purchase)
        less = solved.question.discount(candidate.provider, candidate.purchase)
        paid = candidate.usd_per_hour * (1 - less)
        values: dict[str, CellValue] = {
            "B": candidate.usd_per_hour,
            "C": less,
            "D": paid,
            "E": choice.monthly_usd / choice.n_instances / paid,
            "F": provider_name(candidate.provider),
            "G": settings.purchase,
            "H": (price and day_of(price.price_as_of)) or "-",
            "J": candidate.region or "-",
        }
        out |= {("List price in use", column): value for column, value in values.items()}
        # A listed row whose price is typed over keeps its source, beside an age that says "typed here".
        source = listed.get(candidate.instance) if candidate.source == BY_READER else candidate.source
        out["Source", "B"] = f"{candidate.instance}: {source or BY_READER}"
    monthly_usd = [purchase_class.monthly_usd for purchase_class in classes(solved, row)] or [math.nan] * len(PURCHASES)
    owned = ways_to_pay.owned(solved, row)
    base = owned["base"] if owned else dict.fromkeys(OF_OWNED, math.nan)
    ahead = base["owned_capex_usd"]
    running = sum(base[name] for name in OF_OWNED[:-1]) + 0 * ahead  # none where the purchase is not known
    for column, usd in zip("BCDEF", monthly_usd, strict=True):
        saved = usd - running
        out[PAID_OFF, column] = math.ceil(ahead / saved) if saved > 0 else math.nan
        out |= {(month, column): month * usd for month in SHOWN}
    return out | {(month, "G"): ahead + month * running for month in SHOWN}


def differences(values: Mapping[Place | str, CellValue], sheets: Sheets, solved: Solution) -> tuple[int, list[str]]:
    """How many cells of Money, and of money on Workings, were held against Python; and which differ."""
    n, wrong = 0, []

    def hold(where: str, got: CellValue, want: CellValue) -> None:
        nonlocal n
        n += 1
        want = "-" if isinstance(want, float) and math.isnan(want) else want
        want = (want - EXCEL_DAY_ZERO).days if isinstance(want, datetime.date) else want
        if not books.same(got, want):
            wrong.append(f"{where}: the workbook says {got!r}, Python {want!r}")

    shown, row = block(values), chosen(values, solved)
    for (label, column), want in {**expected(solved, row), **source_and_cash(solved, row)}.items():
        hold(f"{label} {column}", shown[label].get(column), want)
    for row in range(len(solved.choices)):
        units = ways_to_pay.unit_costs(solved, row)
        for head, name in WORKINGS.items():
            hold(f"Workings {row} {head}", values.get(sheets.at("Workings", HEAD + 1 + row, head)), units[name])
    return n, wrong
