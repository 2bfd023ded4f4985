"""The demand at which a decision would be another, as a share of what is planned for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy

from sheetgen.plan.arrays import Array
from sheetgen.plan.decisions import BreakEven, Decision
from sheetgen.plan.solve_plan import bases
from sheetgen.plan.tables import OF_TYPE, Z
from sheetgen.plan.worked_plan import Answer

STEPS = 200  # a hundredth of the demand each, so up to twice of it
KEEP = "keep"  # what earlier plans ordered
OF_DEMAND = (KEEP, "order", "renew", "raise quota", "replace owned")
OfTerm = tuple[str, str, int]  # a type of machine, a class and the quarter of an order


def _at_shares(answer: Answer) -> tuple[Array, Array, dict[OfTerm, Array]]:
    """Shares of the demand; by type, quarter and share what must be bought; and by order of a mix's base the machines
    of it."""
    shares, gaps, ordered = (numpy.arange(STEPS) + 1) * 2 / STEPS, list[Array](), dict[OfTerm, Array]()
    z, plan = Z[answer.plan.policy.plan_at], replace(answer.plan, base=())
    at_once = max(1, STEPS // answer.plan.week.over_peak.shape[-1])  # so many as hours leave memory for
    for first in range(0, STEPS, at_once):
        part = shares[first : first + at_once]
        gaps.append(answer.at_demand(numpy.full(len(part), z), part)[0].spread("gap", OF_TYPE))
        hours = answer.at_demand(numpy.full(len(part), z), part, plan)[1] if answer.plan.base else []
        for case in range(len(part)):
            for base in bases(plan, answer.types, hours, case) if hours else ():
                counts = ordered.setdefault((base.instance, base.purchase, base.first), numpy.zeros(STEPS))
                counts[first + case] = base.count
    return shares, numpy.concatenate(gaps, axis=2), ordered


def kept(answer: Answer) -> Iterator[Decision]:
    """The machines that earlier plans ordered and that the first quarter keeps, as if they were decided."""
    plan = answer.plan
    day = max(plan.as_of, plan.first_day(plan.quarters[0]))
    for machine, gaps in zip(answer.types, answer.supply["gap"], strict=True):
        ordered = plan.ordered(machine.instance)
        if ordered and (n := min(float(ordered[0]), float(gaps[0, answer.case]))):
            yield Decision(KEEP, machine.instance, n, machine.buying.purchase, day, day)


def with_break_even(answer: Answer, decided: Iterable[Decision]) -> Iterator[Decision]:
    """Decisions that follow from the demand with the shares of it at which they would be others."""
    shares, gaps, of_terms = _at_shares(answer)
    for decision in decided:
        quarter, t = answer.plan.quarter_of(decision.needed_from), answer.place.get(decision.instance)
        if decision.what not in OF_DEMAND or quarter is None or t is None:
            yield decision
            continue
        if decision.what == "order" and decision.purchase not in (None, answer.types[t].buying.purchase):
            assert decision.purchase is not None
            bought = of_terms.get((decision.instance, decision.purchase, quarter), numpy.zeros(STEPS))
            planned = decision.n_instances
        else:
            bought, planned = gaps[t, quarter], float(answer.supply["gap"][t, quarter, answer.case])
        least = decision.n_instances if decision.what == KEEP else planned  # others are given back before
        # At other shares a mix may prefer another class: what is planned for is 1.
        fewer, more = shares[(bought < least) & (shares < 1)], shares[(bought > planned) & (shares > 1)]
        ends = float(fewer.max()) if len(fewer) else None, float(more.min()) if len(more) else None
        yield replace(decision, break_even=BreakEven(*ends))
