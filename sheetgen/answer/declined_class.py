"""The purchase class that was requested: the answer in it, or a load answered on demand instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sheetgen.answer.confidences import is_fallback
from sheetgen.answer.solution import Solution
from sheetgen.answer.solve import solve
from sheetgen.question.market import in_class
from sheetgen.question.sheet_question import DeclinedClass, DeclinedReason, Question
from sheetgen.units import ON_DEMAND, PURCHASES


def in_class_or_on_demand(solved: Solution, on_demand: Callable[[], Question]) -> Solution:
    """The answer of one load in the class that was requested; or, where that class is no answer, on demand.

    on_demand: makes the same question with on demand as its class.
    """
    question = solved.question
    purchase = question.settings.purchase
    candidates = in_class(question.candidates, question.others.get(ON_DEMAND, ()), ON_DEMAND)
    if purchase == ON_DEMAND or not candidates:
        return solved
    question_on_demand = on_demand()
    reason = _reason_to_decline(solved, question_on_demand)
    if reason is None:
        return solved
    own = solved.by_purchase[purchase][0]
    priced = {candidate.instance for candidate in question.candidates}
    unpriced = sum(candidate.instance not in priced for candidate in question_on_demand.candidates)
    usd = own.monthly_usd if own else None
    declined = DeclinedClass(purchase, reason, usd, unpriced, len(question_on_demand.candidates))
    answered = solve(replace(question_on_demand, declined=declined))
    return solved if answered.choices[0].offer is None else answered


def _reason_to_decline(solved: Solution, question_on_demand: Question) -> DeclinedReason | None:
    """The reason why the answer in the requested class is not taken; None where it is.

    A class that binds money is not taken for an answer at an even chance where more confidence was requested; any class
    is not taken where on demand costs no more at the same confidence.
    """
    own, usual = (solved.by_purchase[name][0] for name in (solved.question.settings.purchase, ON_DEMAND))
    if own is None:
        return "not_held"
    if is_fallback(solved, 0):
        if PURCHASES[solved.question.settings.purchase].binds:
            return "even_chance"
        other = solve(question_on_demand).choices[0]
        return "no_saving" if other.offer is not None and other.monthly_usd <= own.monthly_usd else None
    return None if usual is None or own.monthly_usd < usual.monthly_usd else "no_saving"
