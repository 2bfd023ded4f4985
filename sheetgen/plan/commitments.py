"""How much to commit, for how long: machines that are paid in every quarter of a term, against buying what is missing.

One machine more is worth its commitment where it would be rented often and long enough otherwise: the newsvendor's
critical share. What is only recommended here is in the decisions, not in the money.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sheetgen.formula import Quantity, formula, largest, ratio
from sheetgen.plan.decisions import order_by
from sheetgen.plan.draws import Draws
from sheetgen.plan.orders import QUARTERS_OF_TERM, class_months, lead_days
from sheetgen.plan.quarters import MONTHS_IN_A_QUARTER
from sheetgen.plan.schema import MIX, QUANTILES
from sheetgen.plan.terms import in_plan, quarters_of_term, quarters_usd, worth_a_term
from sheetgen.plan.worked_plan import Answer
from sheetgen.units import PERCENT, USD


@formula("Critical share", PERCENT)
def critical_share(committed_term_usd: Quantity, bought_term_usd: Quantity) -> Any:
    """The share of the term in which a machine must be needed for its commitment to cost no more than to buy it then.

    Source: the newsvendor: what it costs always, over what it costs when needed.
    """
    return ratio(committed_term_usd, bought_term_usd)


@formula("Cost of the term, $", USD)
def term_usd(
    committed_instances: Quantity,
    wanted_instances: Quantity,
    committed_quarter_usd: Quantity,
    bought_quarter_usd: Quantity,
) -> Any:
    """What a quarter of the term costs with so many committed: those, needed or not, and what must be bought beside
    them.

    Source: definition.
    """
    bought = largest(0, wanted_instances - committed_instances)
    return committed_instances * committed_quarter_usd + bought * bought_quarter_usd


@dataclass(frozen=True)
class Regret:
    """At one quantile of the demand: the cost of the commitment, and of the best one in hindsight."""

    quantile: str
    usd: float
    best_instances: int
    best_usd: float

    @property
    def regret_usd(self) -> float:
        return self.usd - self.best_usd


@dataclass(frozen=True)
class Commitment:
    """What is worth committing of a type in a class, from a quarter on."""

    instance: str
    purchase: str
    first: int  # quarter, by position
    quarters: int
    beyond: int  # of them after the plan's end, which are taken to be as its last one
    n_instances: int
    critical_share: float
    term_usd: float  # of the commitment itself
    saves_usd: float  # expected, over the term
    saves_after_usd: float  # of that what lies after the plan's end
    regrets: tuple[Regret, ...]


def commitments(answer: Answer, draws: Draws) -> Iterator[Commitment]:
    """By type the class and the first quarter whose commitment is expected to save most by quarter, where one saves
    anything; of the quarters that leave time to order and in which something is missing. None where what is bought has
    a term itself, which nothing ends early, or is a mix, whose base has one."""
    plan = answer.plan
    for t, one in enumerate(() if plan.policy.buy == MIX else answer.types):
        if one.buying.term:
            continue
        missing = [q for q in range(len(plan.quarters)) if answer.supply["gap"][t, q, answer.case] > 0]
        months = class_months(plan, one.candidate) if missing else {}
        found = (
            _commitment(answer, draws, t, purchase, usd, q)
            for purchase, usd in months.items()
            if purchase in QUARTERS_OF_TERM
            for q in missing
            if order_by(plan, plan.first_day(plan.quarters[q]), lead_days(plan, purchase)) >= plan.as_of
        )
        best = max((c for c in found if c is not None), key=lambda c: c.saves_usd / c.quarters, default=None)
        if best is not None and best.n_instances:
            yield best


def _term(answer: Answer, t: int, purchase: str, first: int) -> tuple[Any, Any] | None:
    """The quarters of the plan whose demand those of a term have, and what one machine costs in each of the term's
    where it is bought; none of a class without a term, or where more than half of it is after the plan's end."""
    plan, n_quarters = answer.plan, len(answer.plan.quarters)
    if purchase not in QUARTERS_OF_TERM or not (ahead := quarters_of_term(purchase, first, n_quarters)):
        return None
    return in_plan(ahead, n_quarters), quarters_usd(plan, answer.types[t].month_usd, ahead)


def renewal_usd(
    answer: Answer, draws: Draws, t: int, purchase: str, month_usd: float, first: int, count: int
) -> tuple[float, float] | None:
    """What to renew so many machines is expected to save over the term, below 0 where it costs more, and what of that
    lies after the plan's end; none of a class without a term, or where more than half of it is after the plan's end."""
    term = _term(answer, t, purchase, first)
    if term is None:
        return None
    ahead, bought = term
    shares, committed = draws.rented[t][ahead], month_usd * MONTHS_IN_A_QUARTER
    return _saved(count, shares, committed, bought, len(answer.plan.quarters) - first)


def _commitment(answer: Answer, draws: Draws, t: int, purchase: str, month_usd: float, first: int) -> Commitment | None:
    """The best number of a class, from a quarter on."""
    n_quarters, quarters = len(answer.plan.quarters), QUARTERS_OF_TERM[purchase]
    term = _term(answer, t, purchase, first)
    if term is None:
        return None
    ahead, bought = term
    committed = month_usd * MONTHS_IN_A_QUARTER
    shares = draws.rented[t][ahead]
    count = newsvendor(shares, committed, bought)
    regrets = []
    for z, name in enumerate(QUANTILES):
        path = answer.rented[t].shares(z)[ahead]
        best = newsvendor(path, committed, bought)
        usd = [expected_usd(n, path, committed, bought) for n in (count, best)]
        regrets.append(Regret(name, usd[0], best, usd[1]))
    share = float(critical_share(committed * quarters, float(bought.sum())))
    return Commitment(
        answer.types[t].instance,
        purchase,
        first,
        quarters,
        max(0, first + quarters - n_quarters),
        count,
        share,
        count * committed * quarters,
        *_saved(count, shares, committed, bought, n_quarters - first),
        tuple(regrets),
    )


def newsvendor(shares: Any, committed_quarter_usd: float, bought_quarter_usd: Any) -> int:
    """The machines that are worth their commitment. shares: by quarter of the term and machine, of the cases and hours
    in which it is wanted."""
    return int(worth_a_term(shares, bought_quarter_usd, committed_quarter_usd).sum())


def expected_usd(count: int, shares: Any, committed_quarter_usd: float, bought_quarter_usd: Any) -> float:
    """What the term costs with so many committed, on average over the cases."""
    return float(_expected(count, shares, committed_quarter_usd, bought_quarter_usd).sum())


def _expected(count: int, shares: Any, committed_quarter_usd: float, bought_quarter_usd: Any) -> Any:
    """The same by quarter of the term."""
    above = shares[:, count:].sum(axis=1)
    return term_usd(count, count + above, committed_quarter_usd, bought_quarter_usd)


def _saved(count: int, shares: Any, committed_usd: float, bought_usd: Any, inside: int) -> tuple[float, float]:
    """What so many committed are expected to save over the term, and after its first quarters, which the plan has."""
    none, these = (_expected(n, shares, committed_usd, bought_usd) for n in (0, count))
    return float((none - these).sum()), float((none - these)[inside:].sum())
