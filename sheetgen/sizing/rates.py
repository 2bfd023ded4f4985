"""A load that is a rate: requests a second at peak, the places that they take, and the state of the chosen hardware at
that rate.

A place is one request that a replica serves within all targets, so a replica has `paced_requests` of them. Requests
that arrive by chance find all places taken with a probability that Erlang-C gives; the square-root form of it, n = a +
z x sqrt(a), pools the places of all replicas and decides, in Python and in a workbook alike. docs/rates.md.
"""

from __future__ import annotations

from collections.abc import Callable

from sheetgen.formula import (
    Quantity,
    Value,
    formula,
    largest,
    natural_log,
    normal_density,
    normal_share,
    power,
    ratio,
    round_up,
    smallest,
    where,
)
from sheetgen.sizing.parallelism import instances_less_replica, needed_replicas, surviving_replicas
from sheetgen.sizing.speed import TPOT_OF_BATCH, TTFT_OF_BATCH, prefill_round_seconds, turn_seconds
from sheetgen.units import SECONDS, TEXT, TWO_DECIMALS, WHOLE

PREFILL, RATE = "prefill", "rate"  # what may set the replicas of a rate
FEW_FRACTION = 0.01  # of the requests: those whose wait a time for all others leaves out
SECANTS = 4  # secant steps, which leave requests at once at most 0.1 % too high: tests/test_rates.py
Z_STEPS = 8  # steps of Newton's method, which leave no share from 0.0001 to 1 off by more than 1e-12


@formula("Requests per second at peak", TWO_DECIMALS)
def peak_requests_per_second(
    requests_per_second: Quantity,
    day_requests: Quantity,
    peak_hour_share: Quantity,
    burst_factor: Quantity,
    seconds_in_an_hour: Quantity,
) -> Quantity:
    """Requests that arrive in a second at peak: as stated, or those of a day's busiest hour times the burst inside it.

    Source: definition. Check: 200,000 a day at 12 % in the busiest hour and a burst of 1.3 are 8.67.
    """
    of_a_day = day_requests * peak_hour_share / seconds_in_an_hour * burst_factor
    return where(day_requests > 0, of_a_day, requests_per_second)


@formula("Allowance for chance, first estimate", TWO_DECIMALS)
def first_z(max_wait_fraction: Quantity) -> Quantity:
    """Square roots of the load to leave free, an estimate that is never too low: at it, the density of a normal
    distribution over its density in the middle is the share that may wait.

    Source: the upper bound of its tail.
    """
    return power(-2 * natural_log(max_wait_fraction), 1 / 2)


@formula("Allowance for chance", TWO_DECIMALS)
def next_z(z: Quantity, max_wait_fraction: Quantity) -> Quantity:
    """A better estimate of the square roots of the load to leave free: at z, the share of requests that wait is 1 / (1
    + z x P(z) / p(z)), P and p the normal distribution and its density.

    Source: Halfin and Whitt, Operations Research 29 (1981), 567; a step of Newton's method, from above, never too low.
    Check: for 5 % z is 1.74.
    """
    mills = normal_share(z) / normal_density(z)
    return z - (z * mills - (1 / max_wait_fraction - 1)) / (mills + z * (1 + z * mills))


def z_of(max_wait_fraction: float) -> float:
    """Square roots of the load to leave free, so that no more requests wait than this share: first_z, then steps."""
    z = float(first_z(max_wait_fraction))
    for _ in range(Z_STEPS):
        z = float(next_z(z, max_wait_fraction))
    return max(z, 0.0)


def _batch_of(requests: Quantity, data_parallel_size: Quantity, pipeline_parallel_size: Quantity) -> Quantity:
    """Requests that take their steps together where this many run on a replica: an even share for each of its ranks and
    stages, at least one."""
    return largest(1, ratio(requests, data_parallel_size * pipeline_parallel_size))


@formula("Requests of one batch of a full replica", TWO_DECIMALS)
def full_batch_requests(
    paced_requests: Quantity, data_parallel_size: Quantity, pipeline_parallel_size: Quantity
) -> Quantity:
    """Requests that take their steps together with every place of the replica taken; at least one.

    Source: batch_requests, whose ranks and stages have an even share each.
    """
    return _batch_of(paced_requests, data_parallel_size, pipeline_parallel_size)


@formula("Replicas that take the load", WHOLE)
def loaded_replicas(load_requests: Quantity, paced_requests: Quantity) -> Quantity:
    """Replicas that the places of a load fill, without those to spare.

    Source: n_replicas.
    """
    return needed_replicas(load_requests, paced_requests)


@formula("Requests of one batch, on average", TWO_DECIMALS)
def mean_batch_requests(
    in_flight: Quantity,
    loaded_replicas: Quantity,
    data_parallel_size: Quantity,
    pipeline_parallel_size: Quantity,
    full_batch_requests: Quantity,
) -> Quantity:
    """Requests that take their steps together as one of them sees it: itself and the others, where so many run at once
    on the replica on average. Where requests arrive by chance at a lone replica, the others are as many as run on
    average; where each goes to the replica with the fewest, what chance adds shrinks with the square root of the number
    of replicas. At least one and at most a full batch, beyond which a request waits.

    Source: Wolff, Operations Research 30 (1982), 223; the spread of all requests over so many replicas; simulated in
    docs/rates.md.
    """
    by_chance = ratio(1, power(loaded_replicas, 1 / 2), 1)
    batch = _batch_of(in_flight + by_chance, data_parallel_size, pipeline_parallel_size)
    return smallest(full_batch_requests, batch)


@formula("Time of a request on a full replica", SECONDS, within=[TPOT_OF_BATCH, TTFT_OF_BATCH])
def full_turn_seconds(
    tpot_seconds: Callable[..., Quantity],
    service_ttft_seconds: Callable[..., Quantity],
    full_batch_requests: Quantity,
    output_tokens: Quantity,
    tpot_level_factor: Quantity,
    ttft_level_factor: Quantity,
) -> Quantity:
    """Seconds from a request's turn to its last token where every place of its replica is taken, at the chance in
    force.

    Source: service_ttft_seconds, tpot_seconds, level_factor.
    """
    ttft = service_ttft_seconds(batch_requests=full_batch_requests) * ttft_level_factor
    return turn_seconds(ttft, output_tokens, tpot_seconds(batch_requests=full_batch_requests) * tpot_level_factor)


@formula("Offered load", TWO_DECIMALS)
def offered_requests(
    requests_per_second: Quantity, extra_headroom_fraction: Quantity, full_turn_seconds: Quantity
) -> Quantity:
    """Places taken on average if all replicas were as slow as full ones, in erlangs, including the extra headroom.

    Source: Little's law.
    """
    return requests_per_second * (1 + extra_headroom_fraction) * full_turn_seconds


@formula("Places with allowance for chance")
def places(offered_requests: Quantity, wait_z: Quantity) -> Quantity:
    """Places that a rate takes, with the allowance for chance over all replicas together.

    Source: INTERFACE (n + z x sqrt(n)); the square-root form of Erlang-C.
    """
    return round_up(offered_requests + wait_z * power(offered_requests, 1 / 2))


@formula("Work of one prompt", SECONDS, within=[prefill_round_seconds])
def replica_prefill_seconds(
    prefill_round_seconds: Quantity,
    busy_ranks: Quantity,
    pipeline_parallel_size: Quantity,
    speed_factor: Quantity,
    tpot_residual: Quantity,
    tpot_level_factor: Quantity,
) -> Quantity:
    """Seconds for which one prompt keeps a replica busy, at the chance in force: its ranks and stages work side by
    side.

    Source: prefill_seconds, as it stands in tpot_seconds; tokens that a cache holds are not computed.
    """
    round_of_ranks = speed_factor * tpot_residual * tpot_level_factor * prefill_round_seconds
    return ratio(round_of_ranks, busy_ranks * pipeline_parallel_size)


@formula("Replicas that the prompts keep busy", TWO_DECIMALS)
def prefill_replicas(
    requests_per_second: Quantity,
    extra_headroom_fraction: Quantity,
    replica_prefill_seconds: Quantity,
    max_prefill_utilization: Quantity,
) -> Quantity:
    """Replicas whose prompts fill the share of their time that prompts may take, fractions included.

    Source: rate x work of a prompt / share. Check: 866.7 prompts/s of 10 ms each at 0.8 are 10.8 replicas.
    """
    return requests_per_second * (1 + extra_headroom_fraction) * replica_prefill_seconds / max_prefill_utilization


@formula("Places with allowance for chance and for prompts")
def rate_places(places: Quantity, prefill_replicas: Quantity, paced_requests: Quantity) -> Quantity:
    """Places that a rate takes: with the allowance for chance, or as many as the replicas have that its prompts need,
    whichever is more.

    Source: INTERFACE (max_prefill_utilization).
    """
    return largest(places, round_up(prefill_replicas) * paced_requests)


@formula("Load")
def load_with_rates(requests_per_second: Quantity, load_requests: Quantity, rate_places: Quantity) -> Quantity:
    """Places that a load takes: for a rate with the allowance for chance and for prompts, for any other load its
    requests at once.

    Source: rate_places.
    """
    return where(requests_per_second > 0, rate_places, load_requests)


@formula("What set the replicas of a rate", TEXT)
def sized_with_rates(
    sized_by: Quantity,
    requests_per_second: Quantity,
    offered_requests: Quantity,
    places: Quantity,
    prefill_replicas: Quantity,
    paced_requests: Quantity,
) -> Value:
    """The limit that set the number of replicas. For a rate: the prompts (prefill) where they need more replicas than
    the places do; else the allowance for chance (rate) where the mean load would take fewer; else the limit on the
    places of a replica.

    Source: rate_places, sized_by.
    """
    needed = needed_replicas(places, paced_requests)
    by_chance = where(needed > needed_replicas(round_up(offered_requests), paced_requests), RATE, sized_by)
    of_rate = where(round_up(prefill_replicas) > needed, PREFILL, by_chance)
    return where(requests_per_second > 0, of_rate, sized_by)


# The chosen hardware at this rate -------------------------------------------------------------------------


@formula("Requests per second of one replica", TWO_DECIMALS)
def replica_requests_per_second(
    requests_per_second: Quantity, extra_headroom_fraction: Quantity, loaded_replicas: Quantity
) -> Quantity:
    """Requests that each serving replica takes in a second, with the extra headroom, and after the loss to be survived,
    if any.

    Source: an even share.
    """
    return ratio(requests_per_second * (1 + extra_headroom_fraction), loaded_replicas)


@formula("At once on a replica, a step nearer", TWO_DECIMALS, within=[TPOT_OF_BATCH, TTFT_OF_BATCH])
def next_in_flight(
    tpot_seconds: Callable[..., Quantity],
    service_ttft_seconds: Callable[..., Quantity],
    mean_batch_requests: Quantity,
    replica_requests_per_second: Quantity,
    output_tokens: Quantity,
) -> Quantity:
    """Requests at once on a replica at the speed that it has with batches of this size: a step from above towards the
    number at which both agree.

    Source: Little's law.
    """
    ttft, tpot = (times(batch_requests=mean_batch_requests) for times in (service_ttft_seconds, tpot_seconds))
    return replica_requests_per_second * turn_seconds(ttft, output_tokens, tpot)


@formula("At once on a replica", TWO_DECIMALS)
def secant_in_flight(
    in_flight: Quantity, next_in_flight: Quantity, later_in_flight: Quantity, next_later_in_flight: Quantity
) -> Quantity:
    """Requests at once where the straight line through two guesses, the later one nearer, meets the requests that
    follow from each guess.

    Times grow with the requests at once along a line, or less and less where experts are shared: never too low.

    Source: a step of the secant method.
    """
    before, after = in_flight - next_in_flight, later_in_flight - next_later_in_flight
    line = later_in_flight - after * ratio(in_flight - later_in_flight, before - after)
    return largest(0, where(before > after, smallest(line, next_later_in_flight), next_later_in_flight))


@formula("Requests of the fullest replica")
def running_with_rates(requests_per_second: Quantity, in_flight: Quantity, requests_per_replica: Quantity) -> Quantity:
    """Requests that run on the fullest replica: for a rate the average number at once, for any other load whole
    requests.

    Source: next_in_flight, requests_per_replica.
    """
    return where(requests_per_second > 0, in_flight, requests_per_replica)


@formula("Requests of one batch, of a rate on average", TWO_DECIMALS)
def batch_with_rates(
    requests_per_second: Quantity, mean_batch_requests: Quantity, batch_requests: Quantity
) -> Quantity:
    """Requests that take their steps together; for a rate the average number.

    Source: mean_batch_requests, batch_requests.
    """
    return where(requests_per_second > 0, mean_batch_requests, batch_requests)


@formula("Load, of a rate on average", TWO_DECIMALS)
def served_load_with_rates(
    requests_per_second: Quantity,
    in_flight_at_peak: Quantity,
    extra_headroom_fraction: Quantity,
    load_requests: Quantity,
) -> Quantity:
    """Requests at once of all replicas, with the extra headroom; for a rate the average number at peak.

    Source: in_flight_at_peak, load_requests.
    """
    return where(requests_per_second > 0, in_flight_at_peak * (1 + extra_headroom_fraction), load_requests)


@formula("At once at peak", TWO_DECIMALS)
def in_flight_at_peak(
    requests_per_second: Quantity, ttft_seconds: Quantity, output_tokens: Quantity, tpot_seconds: Quantity
) -> Quantity:
    """Average number of requests at once while they arrive at this rate.

    Source: Little's law: rate x (TTFT + (output tokens - 1) x TPOT).
    """
    return requests_per_second * turn_seconds(ttft_seconds, output_tokens, tpot_seconds)


def mean_of_places(places: Quantity, wait_z: Quantity) -> Quantity:
    """Average number of requests at once whose allowance for chance fills this many places: the inverse of `places`."""
    root = (power(wait_z * wait_z + 2 * 2 * places, 1 / 2) - wait_z) / 2
    return root * root


@formula("Requests per second within the targets", TWO_DECIMALS)
def served_requests_per_second(
    n_instances: Quantity,
    replicas_per_instance: Quantity,
    paced_requests: Quantity,
    survive: Quantity,
    zones: Quantity,
    extra_headroom_fraction: Quantity,
    full_turn_seconds: Quantity,
    wait_z: Quantity,
    replica_prefill_seconds: Quantity,
    max_prefill_utilization: Quantity,
) -> Quantity:
    """The highest rate that all rented replicas serve within all targets, after the loss to be survived, with the same
    allowances for chance and for prompts and with the extra headroom left.

    Source: INTERFACE (served_at_target): rate_places, solved for the rate.
    """
    serving = surviving_replicas(n_instances, replicas_per_instance, survive, zones)
    by_places = ratio(mean_of_places(serving * paced_requests, wait_z), full_turn_seconds)
    by_prompts = ratio(serving * max_prefill_utilization, replica_prefill_seconds)
    return smallest(by_places, by_prompts) / (1 + extra_headroom_fraction)


@formula("Requests of one instance, as the choice ranks them", TWO_DECIMALS)
def ranked_requests(
    requests_per_second: Quantity,
    served_requests_per_second: Quantity,
    requests_per_instance: Quantity,
    n_instances: Quantity,
    survive: Quantity,
    tensor_parallel_size: Quantity,
    data_parallel_size: Quantity,
    gpu_count: Quantity,
) -> Quantity:
    """Load that one instance serves within the targets: requests at once; for a rate, whose allowance for chance all
    replicas share, its share of the requests per second.

    Source: INTERFACE (the choice: the most served_at_target).
    """
    left = instances_less_replica(n_instances, survive, tensor_parallel_size, data_parallel_size, gpu_count)
    return where(requests_per_second > 0, ratio(served_requests_per_second, left), requests_per_instance)


@formula("Mean wait for a place", SECONDS)
def mean_wait_seconds(full_turn_seconds: Quantity, n_places: Quantity, offered_requests: Quantity) -> Quantity:
    """Time that a request which finds every place taken waits for one, on average: that of a request in its place, over
    the places that the mean load leaves free.

    Source: Erlang (1917). Check: 5 places at 3 erlangs, 0.5 s each: 0.25 s.
    """
    return ratio(full_turn_seconds, n_places - offered_requests)


@formula("Wait that few exceed", SECONDS)
def few_wait_seconds(mean_wait_seconds: Quantity, wait_fraction: Quantity, few_fraction: Quantity) -> Quantity:
    """Time for a place that only so small a share of all requests waits longer than: the waits of those that wait are
    exponential; none where no more of them wait at all.

    Source: Erlang (1917). Check: 23.6 % wait 0.25 s on average: 1 % longer than 0.79 s.
    """
    return mean_wait_seconds * natural_log(largest(1, ratio(wait_fraction, few_fraction)))


@formula("Requests per second that replicas clear", TWO_DECIMALS)
def cleared_per_second(
    clearing_replicas: Quantity,
    paced_requests: Quantity,
    full_turn_seconds: Quantity,
    replica_prefill_seconds: Quantity,
) -> Quantity:
    """The rate at which full replicas end requests, at the chance in force: what arrives above it queues. Without
    allowances: every place taken, prompts all of the time if they need it.

    Source: Little's law.
    """
    by_places = ratio(clearing_replicas * paced_requests, full_turn_seconds)
    return smallest(by_places, ratio(clearing_replicas, replica_prefill_seconds))


def exact_wait_fraction(n_places: int, offered: float) -> float:
    """The share of requests that find every place taken, by Erlang-C, which is exact for random arrivals and
    exponential service times; 1 where more is offered than there are places.

    The inverse of Erlang-B is the sum of n/a x (n-1)/a x ... to each length, all above 0: nothing cancels.
    Source: Erlang (1917). Check: 5 places at 3 erlangs: 23.6 %.
    """
    if offered <= 0:
        return 0.0
    if n_places <= offered:
        return 1.0
    term = inverse = 1.0
    for left in range(n_places, 0, -1):
        term *= left / offered
        inverse += term
        if left < offered and term < 1e-17 * inverse:
            break
        if inverse > 1e300:
            return 0.0
    lost = 1 / inverse
    return lost / (1 - offered / n_places * (1 - lost))
