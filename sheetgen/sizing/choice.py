"""The choice among candidates, step by step, each a formula over one load's row of them: Python and workbook read the
same steps. A row holds none where a candidate cannot hold the load, and 0 where it is too slow.
"""

from __future__ import annotations

from sheetgen.formula import (
    Formula,
    Quantity,
    at_most,
    both,
    first_where,
    formula,
    greatest_where,
    is_number,
    is_number_in_row,
    largest,
    least_where,
    number_where,
    ratio,
    round_nearest,
    same_money,
    where,
)
from sheetgen.sizing.parallelism import instances_less_replica
from sheetgen.units import PLAIN, TWO_DECIMALS, USD

# Columns of the candidates that the steps read as whole rows. among: which candidates take part.
OF_CANDIDATES = (
    "monthly_usd", "instance_month_usd", "gpu_month_usd", "suitability", "ranked_requests", "tensor_parallel_size",
    "data_parallel_size", "gpu_count", "among",
)  # fmt: skip


def _where_held(usd: Quantity, result: Quantity) -> Quantity:
    """`result` where a candidate holds the load, which has a price then; else none."""
    return number_where(is_number(usd), result)


@formula("Suits the model and the load (2 in full)", TWO_DECIMALS)
def suitability(runs_weights: Quantity, load_requests: Quantity, data_parallel_size: Quantity) -> Quantity:
    """2 where a candidate computes in the weights' precision, 1 where it only stores weights in it; less the share of a
    replica's data-parallel ranks that have no request of the load, which is never all of them.

    Source: INTERFACE (the choice: hardware that runs the precision natively, then no idle ranks).
    Check: one request on 2 ranks is 1.5, on 8 ranks 1.125.
    """
    return runs_weights - 1 + where(load_requests < data_parallel_size, load_requests / data_parallel_size, 1)


@formula("Lowest $ per month", USD, rows=OF_CANDIDATES)
def cheapest_usd(monthly_usd: Quantity, among: Quantity) -> Quantity:
    """The lowest $ per month of the candidates; none where nothing holds the load, or it is too slow on all.

    Source: INTERFACE (the very cheapest).
    """
    return least_where(monthly_usd, monthly_usd > 0, is_number_in_row(monthly_usd), among, otherwise="-")


@formula("GPUs rented at the lowest price", PLAIN, rows=OF_CANDIDATES)
def cheapest_gpus(cheapest_usd: Quantity, monthly_usd: Quantity, gpu_month_usd: Quantity, among: Quantity) -> Quantity:
    """GPUs of all instances of the cheapest candidate; the fewest where several cost the same.

    Source: its month over what one of its GPUs costs a month: within a millionth of a whole number.
    """
    count = least_where(ratio(monthly_usd, gpu_month_usd), same_money(monthly_usd, cheapest_usd), among)
    return _where_held(cheapest_usd, round_nearest(count))


def _no_more(monthly_usd: Quantity, count: Quantity, months: Quantity) -> Quantity:
    """Candidates that rent no more than `count` GPUs or machines, judged by the month's cost of one (`months`); half a
    unit more absorbs rounding."""
    return monthly_usd < (2 * count + 1) * months / 2  # false for a text, and for a count that is a text


@formula("Instances", rows=OF_CANDIDATES)
def fewest_instances(
    cheapest_usd: Quantity,
    cheapest_gpus: Quantity,
    near_tie_fraction: Quantity,
    monthly_usd: Quantity,
    gpu_month_usd: Quantity,
    instance_month_usd: Quantity,
    among: Quantity,
) -> Quantity:
    """The fewest machines among candidates that rent no more GPUs than the cheapest and cost at most the share of a
    near tie more.

    Source: INTERFACE (the choice); instances are the month over what one of them costs a month.
    """
    near = at_most(monthly_usd, cheapest_usd * (1 + near_tie_fraction))
    few = _no_more(monthly_usd, cheapest_gpus, gpu_month_usd)
    count = least_where(ratio(monthly_usd, instance_month_usd), monthly_usd > 0, near, few, among)
    return _where_held(cheapest_usd, round_nearest(count))


def few(
    cheapest_gpus: Quantity,
    fewest_instances: Quantity,
    monthly_usd: Quantity,
    gpu_month_usd: Quantity,
    instance_month_usd: Quantity,
) -> tuple[Quantity, ...]:
    """Conditions for the candidates with no more GPUs than the cheapest one and no more than the fewest machines."""
    return (
        _no_more(monthly_usd, cheapest_gpus, gpu_month_usd),
        _no_more(monthly_usd, fewest_instances, instance_month_usd),
    )


def left(
    cheapest_usd: Quantity,
    near_tie_fraction: Quantity,
    monthly_usd: Quantity,
    few: tuple[Quantity, ...],
    among: Quantity,
) -> tuple[Quantity, ...]:
    """Conditions for the candidates that the steps up to the fewest machines leave."""
    near = at_most(monthly_usd, cheapest_usd * (1 + near_tie_fraction))
    return monthly_usd > 0, near, *few, among


@formula("Suits the model and the load", PLAIN, within=[left, few], rows=OF_CANDIDATES)
def best_suitability(left: tuple[Quantity, ...], cheapest_usd: Quantity, suitability: Quantity) -> Quantity:
    """The greatest suitability among those left: 2 where one of them computes in the weights' precision and has a
    request on each of its ranks.

    Source: INTERFACE (the choice: hardware that runs the precision natively, then no idle ranks).
    """
    return _where_held(cheapest_usd, greatest_where(suitability, *left))


def served(
    ranked_requests: Quantity,
    tensor_parallel_size: Quantity,
    data_parallel_size: Quantity,
    gpu_count: Quantity,
    fewest_instances: Quantity,
    survive: Quantity,
) -> Quantity:
    """Requests that this many instances of each candidate serve within the targets, as far as needed to order the
    candidates: after the loss of a machine or a zone the rest is in proportion to what one instance serves; after the
    loss of a replica there is one replica less."""
    return ranked_requests * instances_less_replica(
        fewest_instances, survive, tensor_parallel_size, data_parallel_size, gpu_count
    )


@formula("Requests within the targets", within=[left, few, served], rows=OF_CANDIDATES)
def most_served(
    left: tuple[Quantity, ...],
    cheapest_usd: Quantity,
    served: Quantity,
    best_suitability: Quantity,
    suitability: Quantity,
) -> Quantity:
    """The most requests that this many instances of one of those left serve within the targets.

    Source: INTERFACE (the choice: the most served_at_target).
    """
    return _where_held(cheapest_usd, greatest_where(served, *left, suitability == best_suitability))


def best(
    suitability: Quantity, best_suitability: Quantity, served: Quantity, most_served: Quantity
) -> tuple[Quantity, ...]:
    """Conditions for the candidates that suit the model best and serve the most requests."""
    return suitability == best_suitability, served >= most_served


@formula("$ per month", USD, within=[left, few, best, served], rows=OF_CANDIDATES)
def chosen_usd(
    left: tuple[Quantity, ...], best: tuple[Quantity, ...], cheapest_usd: Quantity, monthly_usd: Quantity
) -> Quantity:
    """Cost of the chosen candidate in a month, in US dollars: the lowest price among those left; none where nothing
    holds the load.

    Source: INTERFACE (the choice).
    """
    return _where_held(cheapest_usd, least_where(monthly_usd, *left, *best))


def alike(
    chosen_usd: Quantity,
    monthly_usd: Quantity,
    few: tuple[Quantity, ...],
    best: tuple[Quantity, ...],
    among: Quantity,
) -> tuple[Quantity, ...]:
    """Conditions for the candidates that equal the chosen one in all but layout and place."""
    return same_money(monthly_usd, chosen_usd), *few, *best, among


ALIKE = (alike, few, best, served)


@formula("TP", PLAIN, within=ALIKE, rows=OF_CANDIDATES)
def chosen_tp(alike: tuple[Quantity, ...], chosen_usd: Quantity, tensor_parallel_size: Quantity) -> Quantity:
    """Tensor-parallel size of the chosen candidate; the smallest where the rest ties.

    Source: INTERFACE (ties: then smaller TP).
    """
    return _where_held(chosen_usd, least_where(tensor_parallel_size, *alike))


@formula("DP", PLAIN, within=ALIKE, rows=OF_CANDIDATES)
def chosen_dp(
    alike: tuple[Quantity, ...],
    chosen_usd: Quantity,
    tensor_parallel_size: Quantity,
    data_parallel_size: Quantity,
    chosen_tp: Quantity,
) -> Quantity:
    """Data-parallel size of the chosen candidate; the smallest where the rest ties.

    Source: INTERFACE (ties: then smaller DP).
    """
    return _where_held(chosen_usd, least_where(data_parallel_size, *alike, tensor_parallel_size == chosen_tp))


@formula("Candidate", PLAIN, within=ALIKE, rows=OF_CANDIDATES)
def chosen_position(
    alike: tuple[Quantity, ...],
    chosen_usd: Quantity,
    tensor_parallel_size: Quantity,
    data_parallel_size: Quantity,
    chosen_tp: Quantity,
    chosen_dp: Quantity,
) -> Quantity:
    """Column of the chosen candidate; the first in catalog order where all else ties.

    Source: INTERFACE (ties: then catalog order).
    """
    return _where_held(
        chosen_usd, first_where(*alike, tensor_parallel_size == chosen_tp, data_parallel_size == chosen_dp)
    )


@formula("Candidate at the lowest price", PLAIN, rows=OF_CANDIDATES)
def cheapest_position(
    cheapest_usd: Quantity, cheapest_gpus: Quantity, monthly_usd: Quantity, gpu_month_usd: Quantity, among: Quantity
) -> Quantity:
    """Column of the cheapest candidate: among those with the fewest GPUs the first in catalog order.

    Source: INTERFACE (the very cheapest).
    """
    few = _no_more(monthly_usd, cheapest_gpus, gpu_month_usd)
    return _where_held(cheapest_usd, first_where(same_money(monthly_usd, cheapest_usd), few, among))


@formula("Next cheapest is an alternative (1 or 0)", PLAIN)
def is_alternative(
    second_usd: Quantity,
    second_n_instances: Quantity,
    monthly_usd: Quantity,
    n_instances: Quantity,
    next_cheapest_most_factor: Quantity,
    reservation_above_instances: Quantity,
) -> Quantity:
    """1 where the best candidate with another GPU or provider is one that somebody would rent instead: at a similar
    price, and without many more machines than the answer where these would need a reservation; else 0.

    Source: assumptions.yaml, next_cheapest_most_factor.
    """
    few = second_n_instances <= largest(reservation_above_instances, next_cheapest_most_factor * n_instances)
    return where(is_number(second_usd), both(second_usd <= next_cheapest_most_factor * monthly_usd, few), False)


OF_RUNNER_UP = ("next_cheapest_most_factor", "reservation_above_instances")  # judgements, in assumptions.yaml
STEPS: tuple[Formula, ...] = (
    cheapest_usd,
    cheapest_gpus,
    fewest_instances,
    best_suitability,
    most_served,
    chosen_usd,
    chosen_tp,
    chosen_dp,
    chosen_position,
)
