"""Machines by the hour: what is missing in each, and the share of a month that each is needed.

Machines without a term are rented for the hours in which something needs them. Each is asked for some minutes before
(`start_minutes`), and paid from then on. The machine that is needed in the most hours is the first, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy

from sheetgen.plan import needs
from sheetgen.plan.arrays import Array


def missing_by_hour(
    up: Array,
    kept: Array,
    owned: Array,
    committed: Array,
    kept_since: Sequence[int],
    wanted: Callable[[Array], Array] = numpy.asarray,
) -> tuple[Array, Array]:
    """Machines of a type that are short in each hour, and those that are bought: in a span that needs fewer than one
    of those before it from which they are kept, as many as in that. up, kept: by span, case and hour; owned, committed:
    by span and case; kept_since: by span the first of those; wanted: of those that are short, those that an order is
    for."""
    there = [counts[..., None] for counts in (owned, committed)]
    short, missing = needs.short_instances(up, *there), numpy.zeros(up.shape)
    orders = wanted(short)
    for s, since in enumerate(kept_since):
        position = numpy.arange(since, s + 1).reshape(-1, *[1] * (up.ndim - 1))
        counts = (part[s] for part in there)
        missing[s] = needs.gap(orders[since : s + 1], position, s, s - since, kept[s], *counts)
    return short, missing


def kept_by_span(needed: Sequence[Array], kept_since: Sequence[int], quarters: Sequence[int], is_until: Array) -> Array:
    """By span, the first side, the machines that are kept: the most needed from another one on. needed: by how many
    quarters later, those of the services that are there then still, and at last of those that are there after services
    move within the quarter; quarters: by span; is_until: by span whether it is before such moves."""
    now = needed[0]
    kept = numpy.empty(now.shape)
    for s, since in enumerate(kept_since):
        position = numpy.arange(since, s + 1).reshape(-1, *[1] * (now.ndim - 1))
        moved = [is_until[i] and not is_until[s] and quarters[i] == quarters[s] for i in range(since, s + 1)]
        later = [-1 if is_moved else quarters[s] - quarters[i] for i, is_moved in enumerate(moved, since)]
        counts = numpy.stack([needed[n][i] for i, n in enumerate(later, since)])
        kept[s] = needs.kept_instances(counts, position, s, s - since)
    return kept


def needed_shares(counts: Array, weights: Array, n: int) -> Array:
    """The share of the hours in which the first machine is needed, the second, and so on to the n-th, the last side
    now. counts: by hour, the last side; weights: of the hours."""
    spread = counts.reshape(-1, counts.shape[-1]).astype(int)
    rows = numpy.arange(len(spread))[:, None] * (n + 1)
    many = numpy.broadcast_to(weights, spread.shape)
    exactly = numpy.bincount((rows + spread).ravel(), many.ravel(), len(spread) * (n + 1)).reshape(-1, n + 1)
    at_least = numpy.cumsum(exactly[:, ::-1], axis=1)[:, ::-1]
    return at_least[:, 1:].reshape(*counts.shape[:-1], n)
