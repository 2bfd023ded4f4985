"""The listed prices that a plan pays or binds, each with its source and the day on which it was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sheetgen.plan.decisions import Decision
from sheetgen.plan.worked_plan import Answer
from sheetgen.units import ON_DEMAND


@dataclass(frozen=True)
class PaidPrice:
    """A price of the catalog, for which the plan states none. key: where it may state one."""

    subject: str
    provider: str
    purchase: str
    source: str
    price_as_of: str | None
    key: str


def paid_prices(answer: Answer, decided: Sequence[Decision]) -> Iterator[PaidPrice]:
    """The prices of what is bought, ordered for a term, or covers a late order; and of commitments. decided: its
    decisions."""
    plan, ways = answer.plan, dict[tuple[str, str], None]()
    for machine, bought_usd in zip(answer.types, answer.supply["bought_usd"], strict=True):
        if bought_usd.any():
            ways[machine.instance, machine.buying.purchase] = None
    for decision in decided:
        covered = [decision.cover.purchase] if decision.cover else []
        ordered = [decision.purchase] if decision.what == "order" and decision.purchase else []
        ways |= {(decision.instance, purchase): None for purchase in (*ordered, *covered)}
    for instance, purchase in ways:
        candidate = answer.types[answer.place[instance]].candidate
        sold = candidate and candidate.in_class(purchase)
        if sold and purchase not in plan.stated.get(instance, {}):
            yield PaidPrice(instance, sold.provider, purchase, sold.source, sold.price_as_of, "prices.usd_per_hour")
    for committed in plan.supply.committed:
        row = plan.types[committed.type]
        price = row.price(committed.purchase) or row.price(ON_DEMAND)
        if committed.usd_per_hour is None and price is not None:
            subject = f"commitment {committed.id} ({row.id})"
            yield PaidPrice(subject, row.provider, price.purchase, row.source, price.as_of, "usd_per_hour")
