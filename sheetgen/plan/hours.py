"""Machines by the hour: what is missing in each, and the share of a month that each is needed.

Machines without a term are rented for the hours in which something needs them. Each is asked for some minutes before
(`start_minutes`), and paid from then on. The machine that is needed in the most hours is the first, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from sheetgen.plan import needs


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
