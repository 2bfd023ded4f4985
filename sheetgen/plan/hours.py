"""Machines by the hour: what is missing in each, the share of a month that each is needed, and when a term is cheaper.

Machines above a base are rented on demand for the hours in which something needs them. Each is asked for some minutes
before (`start_minutes`), and paid from then on. The machine that is needed in the most hours is the first, and so on: a
machine belongs to the base where the hours that it is needed, at the price on demand, cost more than its term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from sheetgen.formula import Quantity, formula, ratio
from sheetgen.plan import needs
from sheetgen.units import ONE_DECIMAL


@formula("Hours a month from which a term is cheaper", ONE_DECIMAL)
def break_even_hours(term_month_usd: Quantity, instance_month_usd: Quantity, hours_per_month: Quantity) -> Any:
    """The hours of a month in which a machine must be needed for a month of its term to cost less than those hours on
    demand.

    Source: definition. Check: at $60 an hour for a term and $100 on demand 438 hours of 730.
    """
    return ratio(term_month_usd, instance_month_usd) * hours_per_month


def missing_by_hour(
    up: Any, owned: Any, committed: Any, release: int, wanted: Callable[[Any], Any] = numpy.asarray
) -> tuple[Any, Any]:
    """Machines of a type that are short in each hour, and those that are rented: in a quarter that needs fewer than one
    of the last so many before it, as many as in that. up: by quarter, case and hour; owned, committed: by quarter and
    case; wanted: of those that are short, those that an order is for."""
    there = [counts[..., None] for counts in (owned, committed)]
    short, missing = needs.short_instances(up, *there), numpy.zeros(up.shape)
    orders = wanted(short)
    for q in range(len(up)):
        rows = slice(max(0, q - release), q + 1)
        position = numpy.arange(rows.start, rows.stop).reshape(-1, *[1] * (up.ndim - 1))
        kept = needs.kept_instances(up[rows], position, q, release)
        missing[q] = needs.gap(orders[rows], position, q, release, kept, *(counts[q] for counts in there))
    return short, missing


def needed_shares(counts: Any, weights: Any, n: int) -> Any:
    """The share of the hours in which the first machine is needed, the second, and so on to the n-th, the last side
    now. counts: by hour, the last side; weights: of the hours."""
    spread = counts.reshape(-1, counts.shape[-1]).astype(int)
    rows = numpy.arange(len(spread))[:, None] * (n + 1)
    many = numpy.broadcast_to(weights, spread.shape)
    exactly = numpy.bincount((rows + spread).ravel(), many.ravel(), len(spread) * (n + 1)).reshape(-1, n + 1)
    at_least = numpy.cumsum(exactly[:, ::-1], axis=1)[:, ::-1]
    return at_least[:, 1:].reshape(*counts.shape[:-1], n)


def base_orders(
    shares: Any, bought_usd: Sequence[float], term_usd: Sequence[float], term: int, first: int
) -> list[int]:
    """By quarter how many machines are ordered for a term of so many quarters: those of which the hours in which they
    are needed cost more on demand than the term, in its first quarter and over the whole of it; beyond those whose term
    runs. After the plan's end demand is as in its last quarter; a term of which more than half is there is not ordered.

    shares: by quarter and machine, of the hours in which it is needed. bought_usd: by quarter, on past the plan's end,
    what one machine on demand costs all hours long; term_usd: by quarter what one of its orders costs a quarter; first:
    the quarter from which orders can be there.
    """
    n_quarters = len(shares)
    orders = [0] * n_quarters
    for q in range(first, n_quarters):
        if 2 * (n_quarters - q) < term:
            break
        ahead = numpy.arange(q, q + term)
        hours_usd = shares[numpy.minimum(ahead, n_quarters - 1)] * numpy.array(bought_usd)[ahead, None]
        pays = (hours_usd[0] > term_usd[q]) & (hours_usd.sum(axis=0) > term * term_usd[q])
        orders[q] = max(0, int(pays.sum()) - sum(orders[max(0, q - term + 1) : q]))
    return orders
