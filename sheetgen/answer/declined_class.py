"""Whether the purchase class that was requested is an answer, or the load is answered on demand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from sheetgen.answer.confidences import ABOUT_A_STEP, is_fallback
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.question.market import in_class
from sheetgen.question.sheet_question import DeclinedClass, DeclinedReason, Question
from sheetgen.units import CHANCE_STEP, ON_DEMAND, PURCHASES

MOST_SURE = 1 - CHANCE_STEP  # a chance above it is said to be over it


def in_class_or_on_demand(solved: Solution, on_demand: Callable[[], Question]) -> Solution:
    """The answer of one load in the class that was requested; or, where that class is no answer, on demand.

    on_demand: asks the same question of that class.
    """
    question = solved.question
    purchase = question.settings.purchase
    candidates = in_class(question.candidates, question.others.get(ON_DEMAND, ()), ON_DEMAND)
    if purchase == ON_DEMAND or not candidates:
        return solved
    plain = on_demand()
    reason = _reason_to_decline(solved, plain)
    if reason is None:
        return solved
    own = solved.by_purchase[purchase][0]
    priced = {candidate.instance for candidate in question.candidates}
    unpriced = sum(candidate.instance not in priced for candidate in plain.candidates)
    usd = own.monthly_usd if own else None
    declined = DeclinedClass(purchase, reason, usd, unpriced, len(plain.candidates))
    answered = solve(replace(plain, declined=declined))
    return solved if answered.choices[0].offer is None else answered


def _reason_to_decline(solved: Solution, plain: Question) -> DeclinedReason | None:
    """Why the answer in a class is none; None where it stands.

    Money is not bound at an even chance where more was asked for. Else the class is no answer where on demand costs no
    more at the same confidence: at the one asked for, and where the difference is a near tie, at the one that is said
    of the class's answer.
    """
    own, usual = (solved.by_purchase[name][0] for name in (solved.question.settings.purchase, ON_DEMAND))
    if own is None:
        return "not_held"
    if is_fallback(solved, 0):
        if PURCHASES[solved.question.settings.purchase].binds:
            return "even_chance"
        other = solve(plain).choices[0]
        return "no_saving" if other.offer is not None and other.monthly_usd <= own.monthly_usd else None
    if usual is None or own.monthly_usd < usual.monthly_usd:
        return None
    level = _level_said(solved)
    is_near = own.monthly_usd <= (1 + plain.settings.near_tie_fraction) * usual.monthly_usd
    if not is_near or level <= plain.settings.confidence:
        return "no_saving"
    as_sure = solve(replace(plain, settings=replace(plain.settings, confidence=level)))
    is_as_sure = as_sure.choices[0].offer is not None and not is_fallback(as_sure, 0)
    return "no_saving" if is_as_sure and as_sure.choices[0].monthly_usd <= own.monthly_usd else None


def _level_said(solved: Solution) -> float:
    """The largest level that is said of a chance at which the answer still serves the load."""
    steps = math.floor(min(solved.choices[0].chance, MOST_SURE) / CHANCE_STEP + ABOUT_A_STEP)
    return round(steps * CHANCE_STEP, 2)
