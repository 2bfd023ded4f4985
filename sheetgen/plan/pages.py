"""The plan as tables of values, before anyone draws it: the ask, decisions by their days, money, services, supply,
commitments, what changed, checks. Every document draws these."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sheetgen.plan.answer import CASE, Answer
from sheetgen.plan.decisions import Decision
from sheetgen.plan.draws import quantiles
from sheetgen.plan.findings import Findings, Measure, measures
from sheetgen.plan.schema import QUANTILES
from sheetgen.plan.spending import NO_BUDGET, budget_verdict
from sheetgen.sheet.page import NONE, Cell, Column, Table, Text, joined, table, words
from sheetgen.units import EXACT_PERCENT, FACTOR, ONE_DECIMAL, PERCENT, TWO_DECIMALS, USD, WHOLE, Display

Heads = tuple[str | Column, ...]
Rows = list[tuple[Text, ...]]
FIRST_DECISIONS = 3  # that the ask names


@dataclass(frozen=True)
class PlanPage:
    """What a document of the plan says, in its order."""

    title: str
    people: str  # owner and approver; "" where none is named
    as_of: str
    ask: Text
    tables: tuple[Table, ...]
    assumptions: tuple[Text, ...]


def plan_page(found: Findings) -> PlanPage:
    """The tables of a plan, and what stands above and below them."""
    head = found.answer.plan.head
    people = [f"{what}: {who}" for what, who in (("Owner", head.owner), ("For approval", head.approver)) if who]
    return PlanPage(
        head.name, " · ".join(people), found.answer.plan.as_of.isoformat(), _ask(found), tuple(_tables(found)),
        tuple(_assumptions(found)),
    )  # fmt: skip


def _number(head: str) -> Column:
    return Column(head, right=True)


def _cell(value: Any, display: Display) -> Cell:
    return NONE if value is None or math.isnan(float(value)) else Cell(float(value), display)


def _usd(value: Any) -> Cell:
    return _cell(value, USD)


def _ask(found: Findings) -> Text:
    """What is to be approved, in a sentence: spend against the budget, and the first days."""
    answer, plan = found.answer, found.answer.plan
    usd = quantiles(found.draws.spend_usd.sum(axis=1))
    months = answer.money["spend_usd"].sum(axis=0)
    said = words(
        f"{plan.quarters[0]} to {plan.quarters[-1]}: {{}} as expected, {{}} where all demand is high; of all services "
        "together nine of ten cases are below {}.",
        _usd(months[CASE["p50"]]), _usd(months[CASE["p90"]]), _usd(usd["p90"]),
    )  # fmt: skip
    first = [words("{} by {}", _what(one), one.order_by.isoformat()) for one in found.decisions[:FIRST_DECISIONS]]
    return words("{} First: {}.", said, joined("; ", first)) if first else said


def _what(one: Decision) -> Text:
    return words(f"{one.what} {{}} x {one.instance}", _cell(one.n_instances, FACTOR if one.n_instances % 1 else WHOLE))


def _tables(found: Findings) -> Iterator[Table]:
    answer = found.answer
    yield _decisions(found)
    yield _money(found)
    yield _machines(found)
    if found.bridge is not None:
        ends = (("from the last plan's", _usd(found.bridge.last_usd)), ("to", _usd(found.bridge.usd)))
        parts = ((name, _usd(usd)) for name, usd in found.bridge.parts.items())
        yield table("What changed since the last plan", ("Factor", _number("$ at p50")), (*parts, *ends))
    yield table("Services", (), ())
    for s in range(len(answer.plan.services)):
        yield _service(answer, s)
    yield _supply(answer)
    if found.commitments:
        yield _commitments(found)
    measured = [*measures(answer)]
    if measured:
        yield _calibration(measured)
    rows: Rows = [(one.what, "yes" if one.holds else "no", "; ".join(one.found)) for one in found.checks]
    yield table("Checks", ("Check", "Holds", "What speaks against it"), rows)


def _decisions(found: Findings) -> Table:
    heads: Heads = ("By", "What", "From", "Class", _number("$"), _number("$ of a quarter's delay"),
             _number("Fewer below, of the demand"), _number("More above"), "About")  # fmt: skip
    rows: Rows = []
    for one in found.decisions:
        late = "late; " if one.late else ""
        cover = f"covered by {one.cover.purchase}; " if one.cover else ""
        fewer, more = (one.break_even.fewer_below, one.break_even.more_above) if one.break_even else (None, None)
        rows.append((
            one.order_by.isoformat(), _what(one), one.needed_from.isoformat(), one.purchase or "", _usd(one.usd),
            _usd(one.cost_of_waiting_usd), _cell(fewer, PERCENT), _cell(more, PERCENT),
            f"{late}{cover}{one.about}".removesuffix("; "),
        ))  # fmt: skip
    return table("Decisions", heads, rows)


def _money(found: Findings) -> Table:
    answer = found.answer
    spend, left, reserve = (answer.money[name] for name in ("spend_usd", "budget_left_usd", "reserve_usd"))
    rows: Rows = []
    for q, quarter in enumerate(answer.plan.quarters):
        at = {name: float(spend[q, z]) for name, z in CASE.items()}
        verdict = budget_verdict(float(left[q, CASE["p50"]]), float(left[q, CASE["p90"]]))
        together = quantiles(found.draws.spend_usd[:, q])
        rows.append((
            str(quarter), _usd(answer.plan.budget.get(quarter)), *(_usd(at[name]) for name in QUANTILES),
            _usd(reserve[q, CASE["p90"]]), _usd(together["p90"]), "" if verdict == NO_BUDGET else verdict,
        ))  # fmt: skip
    usd = ("Budget", "p10", "p50", "p90", "Contingency at p90", "p90 of all together")
    heads: Heads = ("Quarter", *map(_number, usd), "Budget holds")
    return table("Money by quarter, US dollars", heads, rows)


def _machines(found: Findings) -> Table:
    """GPUs by quarter: those needed, and those that are there without buying."""
    answer = found.answer
    sizes = [one.gpu_count for one in answer.types]
    there = answer.supply["owned_instances"][..., answer.case] + answer.supply["committed_instances"][..., answer.case]
    rows: Rows = []
    for q, quarter in enumerate(answer.plan.quarters):
        needed = quantiles(found.draws.n_gpus[:, q])
        supply = sum(float(there[t, q]) * size for t, size in enumerate(sizes))
        rows.append((str(quarter), *(_cell(needed[name], WHOLE) for name in QUANTILES), _cell(supply, WHOLE)))
    return table("GPUs by quarter", ("Quarter", *map(_number, ("p10", "p50", "p90", "Owned and committed"))), rows)


def _service(answer: Answer, s: int) -> Table:
    rows: Rows = []
    for q, quarter in enumerate(answer.plan.quarters):
        one, known = answer.hardware.placed.get((s, q)), answer.services
        if one is None:
            rows.append((str(quarter), *[NONE] * 6, answer.hardware.nothing.get((s, q), "not served"), NONE, NONE))
            continue
        middle, high = CASE["p50"], CASE["p90"]
        rate = float(known["requests_per_second"][s, q, middle])
        rows.append((
            str(quarter), _cell(rate or None, TWO_DECIMALS),
            *(_cell(known["at_once"][s, q, z], ONE_DECIMAL) for z in (middle, high)),
            *(_cell(known["planned_replicas"][s, q, z], WHOLE) for z in (middle, high)),
            answer.set_by(s, q, answer.case), one.instance,
            *(_usd(known["service_month_usd"][s, q, z]) for z in (middle, high)),
        ))  # fmt: skip
    service = answer.plan.services[s]
    owner = f" ({service.owner})" if service.owner else ""
    counts = ("Requests/s at p50", "At once, p50", "p90", "Replicas, p50", "p90")
    heads: Heads = ("Quarter", *map(_number, counts), "Set by", "Machines", _number("$ a month, p50"), _number("p90"))
    return table(f"{service.id}{owner}", heads, rows, level=3)


def _supply(answer: Answer) -> Table:
    names = ("needed_instances", "kept_instances", "owned_instances", "committed_instances", "gap", "idle")
    rows: Rows = []
    for q, quarter in enumerate(answer.plan.quarters):
        for t, one in enumerate(answer.types):
            counts = [float(answer.supply[name][t, q, answer.case]) for name in names]
            if any(counts):
                rows.append((str(quarter), one.instance, *(_cell(count, WHOLE) for count in counts)))
    heads: Heads = ("Quarter", "Machine", *map(_number, ("Needed", "Kept", "Owned", "Committed", "To buy", "Idle")))
    return table(f"Supply at {answer.plan.policy.plan_at}", heads, rows)


def _commitments(found: Findings) -> Table:
    numbers = ("Machines", "$ of the term", "Expected to save", "Worth it where needed")
    regrets = (f"Regret at {name}" for name in QUANTILES)
    heads: Heads = ("Machine", "Class", "From", *map(_number, (*numbers, *regrets)))
    rows: Rows = [
        (one.instance, one.purchase, str(found.answer.plan.quarters[one.first]), _cell(one.n_instances, WHOLE),
         _usd(one.term_usd), _usd(one.saves_usd), _cell(one.critical_share, EXACT_PERCENT),
         *(_usd(each.regret_usd) for each in one.regrets))
        for one in found.commitments
    ]  # fmt: skip
    return table("Commitments worth making (not in the money)", heads, rows)


def _calibration(found: list[Measure]) -> Table:
    heads: Heads = ("Service", "Quarter", *map(_number, ("At once at peak", "Replicas", "Predicted", "Error")))
    rows: Rows = [
        (one.service, str(one.quarter), _cell(one.in_flight_peak, WHOLE), _cell(one.replicas, WHOLE),
         _cell(one.predicted, WHOLE), _cell(one.error_fraction, EXACT_PERCENT))
        for one in found
    ]  # fmt: skip
    return table("Measured, and what the plan would have said", heads, rows)


def _assumptions(found: Findings) -> Iterator[Text]:
    """What the numbers rest on: the policy, prices, and how draws were made."""
    plan = found.answer.plan
    policy, change = plan.policy, plan.prices.expected_change_per_year
    yield f"Capacity is for {policy.plan_at} of each service's demand, and bought {policy.buy} where it is missing."
    yield words("Headroom {}; {} of approval; quarters of lower need until it is given back: {}.",
                _cell(policy.headroom_fraction, PERCENT), f"{policy.approval_days} days",
                str(policy.release_after_quarters))  # fmt: skip
    yield words("Prices are those read until now, less {}, and change by {} a year ({} to {}).",
                _cell(plan.prices.discount_fraction, EXACT_PERCENT),
                *(_cell(one, EXACT_PERCENT) for one in (change.p50, change.p10, change.p90)))  # fmt: skip
    yield words("All together: {} joint draws, correlation {}, seed {}.", _cell(found.draws.n, WHOLE),
                _cell(policy.correlation, FACTOR), str(found.draws.seed))  # fmt: skip
    yield "Times are predicted, with the bands that `sheetgen recommend` states; machines are those that it chooses."
