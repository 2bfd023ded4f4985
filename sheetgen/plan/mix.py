"""A mix: the machines of a type that are worth a term by the hours in which they are needed, at the quantile that is
bought, and all above them on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sheetgen.plan.hours import base_orders
from sheetgen.plan.orders import QUARTERS_OF_TERM, there_on
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER
from sheetgen.plan.spending import price_factor
from sheetgen.plan.stated_plan import Base, Plan

QUARTERS_IN_A_YEAR = 4.0


@dataclass(frozen=True)
class Term:
    """The class with a term in which a base is bought, and what a month of one of its machines costs today."""

    purchase: str
    month_usd: float

    @property
    def quarters(self) -> int:
        return QUARTERS_OF_TERM[self.purchase]


def term_of(plan: Plan, months: Mapping[str, float]) -> Term | None:
    """The cheapest of the classes with a term of which at least half lies in the plan. months: by class what a month of
    one machine costs."""
    able = [
        Term(purchase, usd)
        for purchase, usd in months.items()
        if purchase in QUARTERS_OF_TERM and QUARTERS_OF_TERM[purchase] <= 2 * len(plan.quarters)
    ]
    return min(able, key=lambda one: (one.month_usd, one.quarters), default=None)


def bases(plan: Plan, instance: str, shares: Any, month_usd: float, term: Term) -> Iterator[Base]:
    """What is ordered of a type for its base. shares: by quarter and machine, of the hours in which it is needed;
    month_usd: of one on demand."""
    n_quarters, change = len(plan.quarters), plan.prices.expected_change_per_year.p50
    factors = [float(price_factor(change, q, QUARTERS_IN_A_YEAR)) for q in range(n_quarters + term.quarters)]
    on_time = (q for q, one in enumerate(plan.quarters) if there_on(plan, term.purchase) <= plan.first_day(one))
    bought, of_term = (_times(factors, usd * MONTHS_IN_A_QUARTER) for usd in (month_usd, term.month_usd))
    orders = base_orders(shares, bought, of_term, term.quarters, next(on_time, n_quarters))
    for q, count in enumerate(orders):
        if count:
            yield Base(instance, term.purchase, count, q, term.quarters, term.month_usd * factors[q])


def _times(factors: Sequence[float], usd: float) -> list[float]:
    return [factor * usd for factor in factors]
