"""Commitments that are worth making, and renewals: machines that are paid in every quarter of a term, against buying
those that are missing.

A machine more is worth its commitment where it would be rented often and long enough otherwise, over all draws of the
demand. A commitment is recommended by a decision, and is not in the money.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy

from sheetgen.plan.decisions import Decision, dated
from sheetgen.plan.draws import Draws
from sheetgen.plan.orders import class_months
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER, QUARTERS_OF_TERM
from sheetgen.plan.schema import MIX
from sheetgen.plan.terms import in_plan, quarters_of_term, quarters_usd, worth_a_term
from sheetgen.plan.worked_plan import CASE, Answer
from sheetgen.units import count as count_of


def with_commitments(answer: Answer, draws: Draws, decisions: Iterable[Decision]) -> Iterator[Decision]:
    """All decisions: a commitment that is worth making where one at the same price ends is one line, a renewal of as
    many."""
    new = {(worth.instance, worth.purchase, worth.needed_from): worth for worth in commitments(answer, draws)}
    for decision in decisions:
        quarter = answer.plan.quarter_of(decision.needed_from)
        if decision.what != "renew" or quarter is None:
            yield decision
            continue
        assert decision.purchase is not None
        key = decision.instance, decision.purchase, answer.plan.first_day(answer.plan.quarters[quarter])
        n, same = int(decision.n_instances), new.get(key)
        if same is not None and math.isclose(same.binds_usd / same.n_instances, decision.binds_usd / n):
            about = f"{decision.about}, {new.pop(key).about}"
            yield replace(same, what="renew", about=about, late=decision.late, break_even=decision.break_even)
            continue
        n_quarters = QUARTERS_OF_TERM.get(decision.purchase, 1)
        month_usd = decision.binds_usd / n / n_quarters / MONTHS_IN_A_QUARTER
        place = answer.place[decision.instance]
        worth = _worth(answer, draws, place, decision.purchase, month_usd, quarter, n)
        waiting = decision.cost_of_waiting_usd if worth is None else worth[1] / n_quarters
        saves, after = worth[1:] if worth else (None, None)
        worth_it = waiting if waiting and waiting > 0 else None
        yield replace(decision, saves_usd=saves, saves_after_usd=after, cost_of_waiting_usd=worth_it)
    yield from new.values()


def commitments(answer: Answer, draws: Draws) -> Iterator[Decision]:
    """By type the class and the first quarter whose commitment is expected to save most by quarter, where one saves
    anything; of the quarters that leave time to order and in which something is missing. None where what is bought has
    a term itself, which nothing ends early, or is a mix, whose base has one."""
    plan = answer.plan
    for t, machine in enumerate(() if plan.policy.buy == MIX else answer.types):
        missing = numpy.flatnonzero(answer.rented[t].short[:, answer.case]).tolist()
        if machine.buying.term or not missing:
            continue
        possible = (
            _commitment(answer, draws, t, purchase, month_usd, q)
            for purchase, month_usd in class_months(plan, machine.candidate).items()
            for q in missing
        )
        in_time = (worth for worth in possible if worth is not None and worth.order_by >= plan.as_of)
        best = max(in_time, key=lambda worth: worth.cost_of_waiting_usd or 0.0, default=None)
        if best is not None and best.n_instances:
            yield best


def _commitment(answer: Answer, draws: Draws, t: int, purchase: str, month_usd: float, first: int) -> Decision | None:
    """The best number of a class, from a quarter on; none of a class without a term, or where most of it lies after
    the plan's end."""
    worth = _worth(answer, draws, t, purchase, month_usd, first)
    if worth is None:
        return None
    plan, n_quarters = answer.plan, QUARTERS_OF_TERM[purchase]
    count, saves, after = worth
    usd, day = count * month_usd * MONTHS_IN_A_QUARTER, plan.first_day(plan.quarters[first])
    subject = "commit", answer.types[t].instance, count, purchase
    in_plan_usd = usd * min(n_quarters, len(plan.quarters) - first)
    about = f"for {count_of(n_quarters, 'quarter')}"
    decision = dated(plan, *subject, day, plan.lead_days(purchase), in_plan_usd, about=about)
    waiting = saves / n_quarters
    binds = usd * n_quarters
    return replace(decision, binds_usd=binds, saves_usd=saves, saves_after_usd=after, cost_of_waiting_usd=waiting)


def _worth(
    answer: Answer, draws: Draws, t: int, purchase: str, month_usd: float, first: int, count: int | None = None
) -> tuple[int, float, float] | None:
    """Machines of a type that are committed from a quarter on (the best number, where none is given), what they are
    expected to save over the term, below 0 where they cost more, and of that what lies after the plan's end; none of a
    class without a term, or where more than half of it lies there."""
    plan, n_quarters = answer.plan, len(answer.plan.quarters)
    if purchase not in QUARTERS_OF_TERM or not (ahead := quarters_of_term(purchase, first, n_quarters)):
        return None
    rented, short = draws.rented[t], answer.rented[t].short[:, CASE["p90"]]
    needed = rented * (numpy.arange(rented.shape[1]) < short[:, None])  # less what is kept idle: it is not bound
    shares, bought = needed[in_plan(ahead, n_quarters)], quarters_usd(plan, answer.types[t].month_usd, ahead)
    committed = month_usd * MONTHS_IN_A_QUARTER
    if count is None:
        count = int(worth_a_term(shares, bought, committed).sum())
    saved = shares[:, :count].sum(axis=1) * bought - count * committed
    return count, float(saved.sum()), float(saved[n_quarters - first :].sum())
