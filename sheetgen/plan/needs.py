"""The machines that demand takes: replicas, machines that services of a type share, owned and missing ones."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import (
    Quantity,
    both,
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
from sheetgen.sizing import rates
from sheetgen.sizing.parallelism import REPLICA, n_replicas, needed_replicas
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


@formula("Replicas that are up at once")
def hot_replicas(
    load_requests: Quantity,
    paced_requests: Quantity,
    replicas_per_instance: Quantity,
    survive: Quantity,
    zones: Quantity,
    hot_share: Quantity,
) -> Any:
    """Replicas of which the stated share of those that the load needs is up after the loss without that any starts
    anew: those and what may be lost, which are as many again at most, for half of them lie on other machines; none
    where that share is 0.

    Source: n_replicas, of that share of the load. Check: 10 replicas, 8 to a machine, half of them hot, take 5 + 5; all
            of them 10 + 8.
    """
    hot = round_up(hot_share * needed_replicas(load_requests, paced_requests))
    safe = n_replicas(hot * paced_requests, paced_requests, replicas_per_instance, survive, zones)
    return where(hot_share > 0, smallest(safe, hot + hot), 0)


@formula("Replicas without the floor")
def safe_replicas(
    load_requests: Quantity,
    paced_requests: Quantity,
    n_replicas: Quantity,
    hot_replicas: Quantity,
    spare_replicas: Quantity,
    is_alone: Quantity,
) -> Any:
    """Replicas that serve the load, with so many spare ones, and those that survive a loss: of a service that has its
    machines alone as in recommend, for nothing else may start there; of one that shares them those that must be up at
    once, for the others start anew on the spare machines of the pool.

    Source: n_replicas, hot_replicas; the spare replicas are an input.
    """
    spared = needed_replicas(load_requests, paced_requests) + spare_replicas
    return largest(where(is_alone == 1, n_replicas, hot_replicas), spared)


@formula("Replicas")
def planned_replicas(load_requests: Quantity, safe_replicas: Quantity, floor_replicas: Quantity) -> Any:
    """Replicas that serve the load and survive a loss, at least the floor; none without a load.

    Source: safe_replicas; the floor is an input.
    """
    return where(load_requests > 0, largest(safe_replicas, floor_replicas), 0)


@formula("What set the replicas", TEXT)
def set_by(
    planned_replicas: Quantity,
    safe_replicas: Quantity,
    load_requests: Quantity,
    paced_requests: Quantity,
    offered_requests: Quantity,
    places: Quantity,
    prefill_replicas: Quantity,
    sized_by: Quantity,
) -> Any:
    """The reason for the number of replicas: the floor; else of a rate its prompts (prefill), where they need more than
    places do, or the allowance for chance (rate), where the mean load would take fewer; else what limits the requests
    of a replica: memory, tpot or ttft; and survival, where there are more of them so that some may be lost.

    Source: planned_replicas.
    """
    needed = needed_replicas(load_requests, paced_requests)
    mean = needed_replicas(where(offered_requests > 0, round_up(offered_requests), load_requests), paced_requests)
    by_chance = where(needed > mean, rates.RATE, sized_by)
    by_load = where(round_up(prefill_replicas) > needed_replicas(places, paced_requests), rates.PREFILL, by_chance)
    spared = where(safe_replicas > needed, join_text(by_load, f" + {SURVIVAL}"), by_load)
    return where(planned_replicas > safe_replicas, "floor", spared)


@formula("Machines", FACTOR)
def machines(planned_replicas: Quantity, replicas_per_instance: Quantity) -> Any:
    """Instances that the replicas fill, parts of one too.

    Source: replicas over those of one instance.
    """
    return ratio(planned_replicas, replicas_per_instance)


@formula("Machines that a loss must leave", FACTOR)
def safe_machines(
    load_requests: Quantity, paced_requests: Quantity, replicas_per_instance: Quantity, survive: Quantity
) -> Any:
    """Instances, parts of one too, that the replicas fill which the load needs, of a service that is to survive a
    loss: so much must be left after it.

    Source: n_replicas, less what may be lost.
    """
    needed = needed_replicas(load_requests, paced_requests)
    return where(survive > 0, ratio(needed, replicas_per_instance), 0)


@formula("Machines of a half that lies apart", FACTOR)
def half_machines(replicas_per_instance: Quantity, survive: Quantity, hot_replicas: Quantity) -> Any:
    """Instances, parts of one too, that half of the replicas fill which must be up at once, of a service so small that
    one machine could hold and take them all: halves lie on other machines.

    Source: hot_replicas.
    """
    is_small = both(survive > REPLICA, hot_replicas <= replicas_per_instance * 2)
    return where(is_small, ratio(hot_replicas, replicas_per_instance * 2), 0)


@formula("Machines needed")
def needed_instances(
    machines_of_all: Quantity,
    safe_of_replicas: Quantity,
    safe_of_machines: Quantity,
    safe_of_zones: Quantity,
    halves: Quantity,
    largest_replica: Quantity,
    zone_share: Quantity,
    lost_instances: Quantity,
) -> Any:
    """Whole instances of a type for all services that share them. After the loss of a replica, of a machine or of a
    zone, what is left holds the load of all services that are to survive it: what is lost is spared once for all of
    them, as a machine takes its GPUs from all services on it. Halves that lie apart have machines of their own each, in
    parts into which the largest replica goes.

    In:     halves, half_machines of those services; largest_replica, the instances that the largest replica of those
            that survive takes; zone_share, over all zones but one; lost_instances, those that are lost with one
            machine: more than one where an owned machine serves as several.
    Source: n_replicas, of a pool. Check: three services that fill 0.4 of a machine each and survive the loss of one
            take 2 + 1; by themselves each would take 2. On machines of eight GPUs that serve as instances of one, 6
            instances and the loss of a machine take 6 + 8.
    """
    unit = largest(lost_instances, largest_replica)
    replica = where(safe_of_replicas > 0, safe_of_replicas + largest_replica, 0)
    machine = where(safe_of_machines > 0, round_up(safe_of_machines) + unit, 0)
    zone = round_up(safe_of_zones) + unit * round_up(round_up(safe_of_zones) / unit * zone_share)
    apart = largest_replica * round_up(ratio(halves, largest_replica)) - halves
    beside = largest(machines_of_all + apart + apart, round_up(halves) + round_up(halves))
    return round_up(largest(beside, replica, machine, zone))


@formula("Spare machines")
def spare_instances(needed_instances: Quantity, machines_of_all: Quantity) -> Any:
    """Instances that serve no service by itself and all of them after a loss.

    Source: needed_instances.
    """
    return needed_instances - round_up(machines_of_all)


@formula("Machines of a service", FACTOR)
def own_instances(planned_machines: Quantity, planned_machines_of_all: Quantity, machines_of_all: Quantity) -> Any:
    """A service's part of the instances that it shares, less the spare ones: by what its replicas fill of them at the
    quantile that is bought, so that its part does not fall where the demand of all is higher.

    Source: INTERFACE (shared out by the replicas on them).
    """
    return round_up(machines_of_all) * ratio(planned_machines, planned_machines_of_all)


@formula("Replicas in use at the peak", FACTOR)
def busy_replicas(
    at_once: Quantity,
    paced_requests: Quantity,
    requests_per_second: Quantity,
    replica_prefill_seconds: Quantity,
    max_prefill_utilization: Quantity,
) -> Any:
    """Replicas whose places the requests at once fill, or whose prompts fill the share of their time that prompts may
    fill, where that is more.

    Source: prefill_replicas, without headroom.
    """
    by_prompts = rates.prefill_replicas(requests_per_second, 0, replica_prefill_seconds, max_prefill_utilization)
    return largest(ratio(at_once, paced_requests), by_prompts)


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
def idle(
    needed_instances: Quantity,
    owned_instances: Quantity,
    committed_instances: Quantity,
    gap: Quantity,
    lent_instances: Quantity,
) -> Any:
    """Instances that are there and that nothing needs. lent_instances: those of other types that serve this one, less
    those of this one that serve others.

    Source: definition.
    """
    return largest(0, owned_instances + committed_instances + gap + lent_instances - needed_instances)
