"""The demand at which a decision would be another, as a share of what is planned for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy

from sheetgen.plan.arrays import Array
from sheetgen.plan.decisions import BreakEven, Decision
from sheetgen.plan.solve_plan import bases
from sheetgen.plan.tables import Z
from sheetgen.plan.worked_plan import OF_TYPE, Answer

STEPS = 200  # a hundredth of the demand each, so up to twice of it
OF_DEMAND = ("order", "renew", "raise quota", "replace owned")
OfTerm = tuple[str, str, int]  # a type of machine, a class and the quarter of an order


def _parts(answer: Answer) -> Iterator[Array]:
    """Shares of the demand, so many at once as hours leave memory for."""
    shares, at_once = (numpy.arange(STEPS) + 1) * 2 / STEPS, max(1, STEPS // answer.plan.week.over_peak.shape[-1])
    return (shares[i : i + at_once] for i in range(0, STEPS, at_once))


def rented(answer: Answer) -> tuple[Array, Array]:
    """Shares of the demand, and by type, quarter and share what must be bought."""
    z, parts = Z[answer.plan.policy.plan_at], [*_parts(answer)]
    grids = (answer.at_demand(numpy.full(len(part), z), part)[0] for part in parts)
    return numpy.concatenate(parts), numpy.concatenate([grid.spread("gap", OF_TYPE) for grid in grids], axis=2)


def _in_base(answer: Answer) -> Mapping[OfTerm, Array]:
    """By order of a mix's base the machines of it at each share of the demand."""
    if not answer.plan.base:
        return {}
    plan, z = replace(answer.plan, base=()), Z[answer.plan.policy.plan_at]
    ordered: dict[OfTerm, Array] = {}
    n = 0
    for part in _parts(answer):
        _, hours = answer.at_demand(numpy.full(len(part), z), part, plan)
        for case in range(len(part)):
            for base in bases(plan, answer.types, hours, case):
                counts = ordered.setdefault((base.instance, base.purchase, base.first), numpy.zeros(STEPS))
                counts[n + case] = base.count
        n += len(part)
    return ordered


def with_break_even(answer: Answer, decided: Iterable[Decision]) -> Iterator[Decision]:
    """Decisions that follow from the demand with the shares of it at which they would be others."""
    (shares, gaps), of_terms = rented(answer), _in_base(answer)
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
        fewer, more = shares[bought < planned], shares[bought > planned]
        yield replace(
            decision,
            break_even=BreakEven(
                float(fewer.max()) if len(fewer) else None,
                float(more.min()) if len(more) else None,
            ),
        )
