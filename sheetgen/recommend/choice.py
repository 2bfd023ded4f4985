"""The choice among candidates, step by step, each a formula over one load's row of them: Python and workbook read the
same steps. A row holds none where a candidate cannot hold the load, and 0 where it is too slow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy

from sheetgen.formula import (
    Formula,
    at_most,
    first_where,
    formula,
    greatest_where,
    is_number,
    is_number_in_row,
    least_where,
    number_where,
    of_whole_row,
    ratio,
    round_nearest,
    same_money,
)
from sheetgen.sizing.parallelism import instances_less_replica
from sheetgen.units import PLAIN, USD

# What the steps read of the candidates: the name there, and that of the quantity.
ROWS = {
    "monthly": "monthly_usd", "instance_months": "instance_month_usd", "gpu_months": "gpu_month_usd",
    "precisions": "runs_weights", "of_instance": "requests_per_instance",
    "sizes": "tensor_parallel_size", "ranks": "data_parallel_size", "gpus": "gpu_count",
}  # fmt: skip
RANKED = "ranked_requests"  # in place of requests_per_instance, where some loads are rates
OF_CANDIDATES = (*ROWS, "among")


def _where_held(usd: Any, found: Any) -> Any:
    """What was found where something holds the load, which has a price then; else none."""
    return number_where(is_number(of_whole_row(usd)), found)


@formula("Lowest $ per month", USD, rows=OF_CANDIDATES)
def cheapest_usd(monthly: Any, among: Any) -> Any:
    """The least $ per month of the candidates; none where nothing holds the load, or it is too slow on all.

    Source: INTERFACE (the very cheapest).
    """
    return least_where(monthly, monthly > 0, is_number_in_row(monthly), among, otherwise="-")


@formula("GPUs rented at the lowest price", PLAIN, rows=OF_CANDIDATES)
def cheapest_gpus(cheapest_usd: Any, monthly: Any, gpu_months: Any, among: Any) -> Any:
    """GPUs of all instances of the very cheapest; the fewest where several cost the same.

    Source: its month over what one of its GPUs costs a month: within a millionth of a whole number.
    """
    count = least_where(ratio(monthly, gpu_months), same_money(monthly, cheapest_usd), among)
    return _where_held(cheapest_usd, round_nearest(count))


def _no_more(monthly: Any, count: Any, months: Any) -> Any:
    """Candidates that rent no more GPUs or machines, by what one costs a month; half a one more settles what rounding
    leaves open."""
    return monthly < (2 * count + 1) * months / 2  # a text is not below it, and no number of it


@formula("Instances", rows=OF_CANDIDATES)
def fewest_instances(
    cheapest_usd: Any,
    cheapest_gpus: Any,
    near_tie_fraction: Any,
    monthly: Any,
    gpu_months: Any,
    instance_months: Any,
    among: Any,
) -> Any:
    """The fewest machines among candidates that cost at most so much more than the cheapest, and rent no more GPUs.

    Source: INTERFACE (the choice); instances are the month over what one of them costs a month.
    """
    near = at_most(monthly, cheapest_usd * (1 + near_tie_fraction))
    few = _no_more(monthly, cheapest_gpus, gpu_months)
    count = least_where(ratio(monthly, instance_months), monthly > 0, near, few, among)
    return _where_held(cheapest_usd, round_nearest(count))


def left(
    cheapest_usd: Any,
    cheapest_gpus: Any,
    near_tie_fraction: Any,
    n_instances: Any,
    monthly: Any,
    gpu_months: Any,
    instance_months: Any,
    among: Any,
) -> tuple[Any, ...]:
    """The candidates that the steps up to the fewest machines leave, as conditions."""
    near = at_most(monthly, cheapest_usd * (1 + near_tie_fraction))
    few = _no_more(monthly, cheapest_gpus, gpu_months), _no_more(monthly, n_instances, instance_months)
    return monthly > 0, near, *few, among


@formula("Runs the precision (2 natively)", PLAIN, within=[left], rows=OF_CANDIDATES)
def best_precision(left: tuple[Any, ...], cheapest_usd: Any, precisions: Any) -> Any:
    """2 where one of those left computes in the weights' precision, 1 where all of them only keep weights in it.

    Source: INTERFACE (the choice: hardware that runs the precision natively).
    """
    return _where_held(cheapest_usd, greatest_where(precisions, *left))


def _served(of_instance: Any, sizes: Any, ranks: Any, gpus: Any, n_instances: Any, survive: Any) -> Any:
    """What candidates with as many instances serve within the targets, as far as it orders them: after the loss of a
    machine or a zone what is left goes with what one instance serves, after that of a replica one is less."""
    return of_instance * instances_less_replica(n_instances, survive, sizes, ranks, gpus)


@formula("Requests within the targets", within=[left], rows=OF_CANDIDATES)
def most_served(
    left: tuple[Any, ...],
    cheapest_usd: Any,
    n_instances: Any,
    precision: Any,
    precisions: Any,
    of_instance: Any,
    sizes: Any,
    ranks: Any,
    gpus: Any,
    survive: Any,
) -> Any:
    """The most requests that as many instances of those left serve within the targets.

    Source: INTERFACE (the choice: the most served_at_target).
    """
    served = _served(of_instance, sizes, ranks, gpus, n_instances, survive)
    return _where_held(cheapest_usd, greatest_where(served, *left, precisions == precision))


@formula("$ per month", USD, within=[left], rows=OF_CANDIDATES)
def chosen_usd(
    left: tuple[Any, ...],
    cheapest_usd: Any,
    n_instances: Any,
    monthly: Any,
    precision: Any,
    served: Any,
    precisions: Any,
    of_instance: Any,
    sizes: Any,
    ranks: Any,
    gpus: Any,
    survive: Any,
) -> Any:
    """What the chosen candidate costs a month: the lowest price of those left; none where nothing holds the load.

    Source: INTERFACE (the choice).
    """
    enough = _served(of_instance, sizes, ranks, gpus, n_instances, survive) >= served
    return _where_held(cheapest_usd, least_where(monthly, *left, precisions == precision, enough))


def alike(
    usd: Any,
    cheapest_gpus: Any,
    n_instances: Any,
    precision: Any,
    served: Any,
    monthly: Any,
    gpu_months: Any,
    instance_months: Any,
    among: Any,
    precisions: Any,
    of_instance: Any,
    sizes: Any,
    ranks: Any,
    gpus: Any,
    survive: Any,
) -> tuple[Any, ...]:
    """The candidates that are alike in all but their layout and place, as conditions."""
    few = _no_more(monthly, cheapest_gpus, gpu_months), _no_more(monthly, n_instances, instance_months)
    enough = _served(of_instance, sizes, ranks, gpus, n_instances, survive) >= served
    return same_money(monthly, usd), *few, precisions == precision, enough, among


@formula("TP", PLAIN, within=[alike], rows=OF_CANDIDATES)
def chosen_tp(alike: tuple[Any, ...], usd: Any, sizes: Any) -> Any:
    """Tensor-parallel size of the chosen candidate; the smallest where the rest ties.

    Source: INTERFACE (ties: then smaller TP).
    """
    return _where_held(usd, least_where(sizes, *alike))


@formula("DP", PLAIN, within=[alike], rows=OF_CANDIDATES)
def chosen_dp(alike: tuple[Any, ...], usd: Any, sizes: Any, ranks: Any, size: Any) -> Any:
    """Data-parallel size of the chosen candidate; the smallest where the rest ties.

    Source: INTERFACE (ties: then smaller DP).
    """
    return _where_held(usd, least_where(ranks, *alike, sizes == size))


@formula("Candidate", PLAIN, within=[alike], rows=OF_CANDIDATES)
def chosen_position(alike: tuple[Any, ...], usd: Any, sizes: Any, ranks: Any, size: Any, n_ranks: Any) -> Any:
    """Column of the chosen candidate; the first in catalog order where all else ties.

    Source: INTERFACE (ties: then catalog order).
    """
    return _where_held(usd, first_where(*alike, sizes == size, ranks == n_ranks))


@formula("Candidate at the lowest price", PLAIN, rows=OF_CANDIDATES)
def cheapest_position(cheapest_usd: Any, cheapest_gpus: Any, monthly: Any, gpu_months: Any, among: Any) -> Any:
    """Column of the very cheapest: of those with the fewest GPUs the first in catalog order.

    Source: INTERFACE (the very cheapest).
    """
    few = _no_more(monthly, cheapest_gpus, gpu_months)
    return _where_held(cheapest_usd, first_where(same_money(monthly, cheapest_usd), few, among))


# In this order; each under the name by which later ones read it.
STEPS: tuple[tuple[str, Formula], ...] = (
    ("cheapest_usd", cheapest_usd),
    ("cheapest_gpus", cheapest_gpus),
    ("n_instances", fewest_instances),
    ("precision", best_precision),
    ("served", most_served),
    ("usd", chosen_usd),
    ("size", chosen_tp),
    ("n_ranks", chosen_dp),
    ("position", chosen_position),
)
Picks = list[tuple["Pick", "Pick"] | None]


class Pick(NamedTuple):
    """The chosen of a load's candidates: its offer, how many of its instances, and $ a month."""

    offer: int
    n_instances: int
    usd: float


def pick(known: Mapping[str, Any], among: Any = True) -> Picks:
    """By row the chosen of its offers and the very cheapest, or nothing where all are NaN or 0.

    known: the quantities of ROWS over rows and offers, near_tie_fraction and survive. among: which offers take part.
    """
    rows = {name: known[of] for name, of in ROWS.items()}
    if RANKED in known:
        rows["of_instance"] = known[RANKED]
    rows |= {name: known[name] for name in ("near_tie_fraction", "survive")} | {"among": among}
    found: dict[str, Any] = {}
    for name, one in (*STEPS, ("cheapest_position", cheapest_position)):
        found[name] = one.of(rows)
        rows[name] = numpy.asarray(found[name])[..., None]
    picks: Picks = [None] * len(found["usd"])
    months = numpy.broadcast_to(rows["instance_months"], (len(picks), numpy.shape(rows["monthly"])[-1]))
    for row in numpy.flatnonzero(~numpy.isnan(found["usd"])).tolist():
        offer, first = (int(found[name][row]) - 1 for name in ("position", "cheapest_position"))
        usd = float(found["cheapest_usd"][row])
        least = Pick(first, round(usd / float(months[row, first])), usd)
        picks[row] = Pick(offer, int(found["n_instances"][row]), float(found["usd"][row])), least
    return picks
