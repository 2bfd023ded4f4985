"""What demand takes: replicas, the machines that services of one type share, what is owned, and what is missing."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import (
    Quantity,
    formula,
    greatest_where,
    join_text,
    largest,
    ratio,
    round_down,
    round_up,
    smallest,
    where,
)
from sheetgen.sizing.parallelism import needed_replicas
from sheetgen.sizing.rates import PREFILL, RATE
from sheetgen.units import FACTOR, ONE_DECIMAL, TEXT

SURVIVAL = "survival"  # beside what the load takes


@formula("Requests at once, stated", FACTOR)
def stated_at_once(demand: Quantity, is_rate: Quantity, counts_people: Quantity) -> Any:
    """Requests at once where those were stated, or follow from people; whole ones of people. 0 of a rate.

    Source: INTERFACE (what a load is).
    """
    return where(is_rate == 1, 0, where(counts_people == 1, round_up(demand), demand))


@formula("Requests per second at peak", FACTOR)
def peak_rate(demand: Quantity, is_rate: Quantity) -> Any:
    """Requests per second at peak where the demand is a rate; else 0.

    Source: definition.
    """
    return where(is_rate == 1, demand, 0)


@formula("Requests at once", ONE_DECIMAL)
def at_once(in_flight: Quantity, concurrent_requests: Quantity, is_rate: Quantity) -> Any:
    """Requests at once at peak: as stated, or of a rate what follows at the times of the planned load, so that more
    demand is never fewer at once.

    Source: in_flight_at_peak.
    """
    return where(is_rate == 1, in_flight, concurrent_requests)


@formula("Replicas")
def planned_replicas(
    n_replicas: Quantity,
    load_requests: Quantity,
    paced_requests: Quantity,
    spare_replicas: Quantity,
    floor_replicas: Quantity,
) -> Any:
    """Replicas that serve the load and may be lost: n_replicas, or so many spare ones, whichever is more; at least the
    floor, and none without a load.

    Source: n_replicas; the floor and the spare replicas are inputs.
    """
    spared = needed_replicas(load_requests, paced_requests) + spare_replicas
    return where(load_requests > 0, largest(n_replicas, spared, floor_replicas), 0)


@formula("What set the replicas", TEXT)
def set_by(
    planned_replicas: Quantity,
    n_replicas: Quantity,
    load_requests: Quantity,
    paced_requests: Quantity,
    spare_replicas: Quantity,
    offered_requests: Quantity,
    places: Quantity,
    prefill_replicas: Quantity,
    sized_by: Quantity,
) -> Any:
    """What set the number of replicas: the floor; else of a rate its prompts (prefill), where they need more than
    places do, or the allowance for chance (rate), where the mean load would take fewer; else what limits the requests
    of a replica: memory, tpot or ttft; and survival, where there are more of them so that some may be lost.

    Source: planned_replicas.
    """
    needed = needed_replicas(load_requests, paced_requests)
    safe = largest(n_replicas, needed + spare_replicas)
    mean = needed_replicas(where(offered_requests > 0, round_up(offered_requests), load_requests), paced_requests)
    by_chance = where(needed > mean, RATE, sized_by)
    by_load = where(round_up(prefill_replicas) > needed_replicas(places, paced_requests), PREFILL, by_chance)
    spared = where(safe > needed, join_text(by_load, f" + {SURVIVAL}"), by_load)
    return where(planned_replicas > safe, "floor", spared)


@formula("Machines", FACTOR)
def machines(planned_replicas: Quantity, replicas_per_instance: Quantity) -> Any:
    """Instances that the replicas fill, parts of one too.

    Source: replicas over those of one instance.
    """
    return ratio(planned_replicas, replicas_per_instance)


@formula("Machines needed")
def needed_instances(machines_of_all: Quantity) -> Any:
    """Whole instances of a type for all services that share them.

    Source: INTERFACE (machines that services share).
    """
    return round_up(machines_of_all)


@formula("Machines of a service", FACTOR)
def own_instances(planned_machines: Quantity, planned_machines_of_all: Quantity, needed_instances: Quantity) -> Any:
    """A service's part of the instances that it shares: by what its replicas fill of them at the quantile that is
    bought, so that its part does not fall where the demand of all is higher.

    Source: INTERFACE (shared out by the replicas on them).
    """
    return needed_instances * ratio(planned_machines, planned_machines_of_all)


def _at_most_until(counts: Quantity, position: Quantity, this_quarter: Quantity, before: Quantity) -> Any:
    """The greatest count of this quarter and of so many before it."""
    return greatest_where(counts, position <= this_quarter, position >= this_quarter - before)


@formula("Machines kept", rows=["needed", "position"])
def kept_instances(
    needed: Quantity, position: Quantity, this_quarter: Quantity, release_after_quarters: Quantity
) -> Any:
    """Instances that are kept: as many as were needed at most in this quarter and in so many before it.

    Source: policy; with 0 what is needed.
    """
    return _at_most_until(needed, position, this_quarter, release_after_quarters)


@formula("Owned machines")
def owned_instances(
    owned_gpus_free: Quantity, gpu_count: Quantity, kept_instances: Quantity, takes_rest: Quantity
) -> Any:
    """Machines of one's own that serve this type: GPUs of its kind that are not yet taken, as whole machines. Types
    take in turn what they keep, and the last of a kind of GPU has the rest.

    Source: definition.
    """
    free = round_down(ratio(owned_gpus_free, gpu_count))
    return where(takes_rest == 1, free, smallest(kept_instances, free))


@formula("Machines short")
def short_instances(needed_instances: Quantity, owned_instances: Quantity, committed_instances: Quantity) -> Any:
    """Instances that are needed beyond what is owned and committed.

    Source: definition.
    """
    return largest(0, needed_instances - owned_instances - committed_instances)


@formula("Missing machines", rows=["short", "position"])
def gap(
    short: Quantity,
    position: Quantity,
    this_quarter: Quantity,
    release_after_quarters: Quantity,
    kept_instances: Quantity,
    owned_instances: Quantity,
    committed_instances: Quantity,
) -> Any:
    """Instances that must be bought: those that are kept, less what is owned and committed; and of those that nothing
    needs no more than were bought when it did, so that nothing is bought to keep what was owned or committed.

    Source: definition.
    """
    bought = _at_most_until(short, position, this_quarter, release_after_quarters)
    return smallest(bought, largest(0, kept_instances - owned_instances - committed_instances))


@formula("Idle machines")
def idle(needed_instances: Quantity, owned_instances: Quantity, committed_instances: Quantity, gap: Quantity) -> Any:
    """Instances that are there and that nothing needs.

    Source: definition.
    """
    return largest(0, owned_instances + committed_instances + gap - needed_instances)
