"""Certainty: predicted times and pools at a level of their 80 % bands, and the largest level at which what is rented
still serves the load. docs/speed.md, docs/fidelity.md.
"""

from __future__ import annotations

from collections.abc import Callable

from sheetgen.formula import (
    Quantity,
    formula,
    largest,
    natural_log,
    normal_quantile,
    normal_share,
    power,
    ratio,
    round_up,
    smallest,
    where,
)
from sheetgen.sizing.kv_cache import pool_for
from sheetgen.sizing.memory import narrowed
from sheetgen.sizing.parallelism import POOL_OF_A_STAGE, surviving_replicas
from sheetgen.sizing.speed import TPOT_OF_BATCH, TTFT_OF_BATCH
from sheetgen.units import FACTOR, PERCENT, SECONDS, SURE, TWO_DECIMALS, WHOLE

BISECTIONS = 8  # of the range up to most_z: it leaves less than 0.01 standard deviations, 0.4 % of a chance


@formula("Standard deviations of the confidence", TWO_DECIMALS)
def confidence_z(confidence: Quantity) -> Quantity:
    """Standard deviations above a prediction within which a time stays with that chance; 0 for an even chance.

    Source: INTERFACE (certainty). Check: 0.524 for 0.7.
    """
    return normal_quantile(confidence)


SURE_Z = float(confidence_z(SURE))


@formula("Time at the confidence over the predicted one", FACTOR)
def level_factor(level_z: Quantity, band_low: Quantity, band_high: Quantity, band_end_z: Quantity) -> Quantity:
    """Factor from a predicted time to the time that is not exceeded with the chance in force: exp(z x s), s from the
    end of the 80 % band on that side.

    Source: INTERFACE (certainty). Check: with a band up to 1.6, 1.21 at 0.7 and 1.6 at 0.9; 1 at 0.5.
    """
    return power(where(level_z >= 0, band_high, 1 / band_low), level_z / band_end_z)


@formula("Predicted time that meets the target", SECONDS)
def allowed_seconds(limit_seconds: Quantity, level_factor: Quantity) -> Quantity:
    """The longest predicted time that still meets its target with the chance in force.

    Source: level_factor.
    """
    return limit_seconds / level_factor


@formula("Pool at the confidence less the predicted one")
def pool_level_bytes(
    level_z: Quantity, kv_pool_error_bytes_low: Quantity, kv_pool_error_bytes_high: Quantity, band_end_z: Quantity
) -> Quantity:
    """Bytes by which the KV pool of a GPU at the chance in force exceeds the predicted pool, mostly below 0: z standard
    deviations, from the end of its 80 % band on that side.

    Source: INTERFACE (certainty).
    """
    return where(level_z >= 0, kv_pool_error_bytes_low, -kv_pool_error_bytes_high) * level_z / band_end_z


@formula("Pool that may be counted on")
def counted_kv_budget_bytes(
    kv_budget_bytes_per_gpu: Quantity,
    pool_level_bytes: Quantity,
    measured_pool_error_bytes: Quantity,
    level_z: Quantity,
    band_end_z: Quantity,
) -> Quantity:
    """Memory of one GPU for the KV cache at the chance in force, in bytes; where start-up logs of this deployment were
    given, within their error.

    Source: pool_level_bytes; --measured.
    """
    most = measured_pool_error_bytes * largest(level_z, -level_z) / band_end_z
    return kv_budget_bytes_per_gpu + narrowed(pool_level_bytes, measured_pool_error_bytes, most)


@formula("Left for layers that may be counted on")
def counted_layer_budget_bytes(layer_budget_bytes: Quantity, pool_level_bytes: Quantity) -> Quantity:
    """Memory of one GPU of a pipeline stage for layers and their cache at the chance in force, in bytes.

    Source: pool_level_bytes.
    """
    return layer_budget_bytes + pool_level_bytes


# How sure the chosen hardware is --------------------------------------------------------------------------


@formula("Requests of the fullest rank of all that is rented", within=[surviving_replicas])
def rank_requests(load_requests: Quantity, surviving_replicas: Quantity, data_parallel_size: Quantity) -> Quantity:
    """Requests at once on the fullest data-parallel rank where the load is spread over all rented replicas that are
    left after the loss to be survived.

    Source: an even share.
    """
    return round_up(ratio(round_up(ratio(load_requests, surviving_replicas)), data_parallel_size))


@formula("Requests of the fullest batch of all that is rented")
def fullest_batch_requests(rank_requests: Quantity, pipeline_stages: Quantity) -> Quantity:
    """Requests that take their steps together on the fullest rank of all that is rented.

    Source: batch_limit, whose batches are whole.
    """
    return largest(1, round_up(ratio(rank_requests, pipeline_stages)))


@formula("Time per token of the fullest batch", SECONDS, within=[TPOT_OF_BATCH])
def fullest_tpot_seconds(tpot_seconds: Callable[..., Quantity], fullest_batch_requests: Quantity) -> Quantity:
    """Predicted seconds between two tokens in the fullest batch of all that is rented.

    Source: tpot_seconds.
    """
    return tpot_seconds(batch_requests=fullest_batch_requests)


@formula("Time to first token of the fullest batch", SECONDS, within=[TTFT_OF_BATCH])
def fullest_ttft_seconds(service_ttft_seconds: Callable[..., Quantity], fullest_batch_requests: Quantity) -> Quantity:
    """Predicted seconds to the first token in the fullest batch of all that is rented.

    Source: service_ttft_seconds.
    """
    return service_ttft_seconds(batch_requests=fullest_batch_requests)


@formula("Standard deviations to a target", TWO_DECIMALS)
def time_z(
    limit_seconds: Quantity, predicted_seconds: Quantity, band_low: Quantity, band_high: Quantity, band_end_z: Quantity
) -> Quantity:
    """Standard deviations of its error by which a predicted time is within its target; below 0 where it is not.

    Source: level_factor, solved for z.
    """
    room = natural_log(limit_seconds / predicted_seconds)
    end = where(room >= 0, natural_log(band_high), -natural_log(band_low))
    return band_end_z * ratio(room, end, room * limit_seconds)


@formula("Room in the pool of the fullest rank", WHOLE, within=POOL_OF_A_STAGE)
def pool_room_bytes(
    fullest_stage: tuple[Quantity, Quantity],
    windows_of_stages: Quantity,
    held_requests: Quantity,
    charge_bytes: Quantity,
    steady_bytes: Quantity,
) -> Quantity:
    """Bytes by which the pool of the fullest rank is larger than what its requests take; below 0 where it is smaller.

    Source: sequences.
    """
    pool, share = fullest_stage
    charged = charge_bytes + windows_of_stages
    return pool - pool_for(held_requests, charged * share, steady_bytes * share)


@formula("Standard deviations to a full pool", TWO_DECIMALS)
def memory_z(
    pool_room_bytes: Quantity,
    kv_pool_error_bytes_low: Quantity,
    kv_pool_error_bytes_high: Quantity,
    measured_pool_error_bytes: Quantity,
    pipeline_stages: Quantity,
    band_end_z: Quantity,
) -> Quantity:
    """Standard deviations of its error by which the pool of the fullest rank exceeds what its requests take; below 0
    where it is smaller. Where no error is known, the bytes of room plus one instead. Start-up logs that were given are
    of deployments without pipeline stages.

    Source: pool_level_bytes, counted_kv_budget_bytes, solved for z.
    """
    predicted = where(pool_room_bytes >= 0, -kv_pool_error_bytes_low, kv_pool_error_bytes_high)
    measured = where(pipeline_stages == 1, measured_pool_error_bytes, 0)
    end = narrowed(predicted, measured, measured_pool_error_bytes)
    return band_end_z * ratio(pool_room_bytes, end, pool_room_bytes + 1)


@formula("Chance", PERCENT)
def chance_at_z(z: Quantity) -> Quantity:
    """The chance that a time or a pool is no worse than so many standard deviations of its error.

    Source: the normal distribution of the errors' logarithms, or of bytes.
    """
    return normal_share(z)


@formula("Standard deviations that all hold", TWO_DECIMALS)
def least_z(memory_z: Quantity, tpot_z: Quantity, ttft_z: Quantity) -> Quantity:
    """Standard deviations at which memory and both times all still serve the load: the smallest of the three.

    Source: INTERFACE (certainty); on runs held out it agrees with what happened, the product is too low.
    """
    return smallest(memory_z, tpot_z, ttft_z)


# For a rate the level is searched: places, prompts and times all depend on it -------------------------------


@formula("Highest level that is tried", TWO_DECIMALS)
def highest_z(level_z: Quantity, most_z: Quantity) -> Quantity:
    """Standard deviations up to which the search looks for a level at which the load is still served.

    Source: chances above 99 % are said to be over 95 %.
    """
    return largest(level_z, most_z)


@formula("Level that is tried", TWO_DECIMALS)
def tried_z(low_z: Quantity, high_z: Quantity) -> Quantity:
    """Standard deviations midway between a level at which the load is served and one at which it is not.

    Source: bisection.
    """
    return (low_z + high_z) / 2


@formula("Served at the level that is tried (1 or 0)", within=[surviving_replicas])
def is_served(surviving_replicas: Quantity, paced_requests: Quantity, rate_places: Quantity) -> Quantity:
    """1 where all rented replicas have the places that the rate takes at a level, else 0.

    Source: n_replicas.
    """
    return where(surviving_replicas * paced_requests >= rate_places, 1, 0)


@formula("Level that is served", TWO_DECIMALS)
def served_z(is_served: Quantity, tried_z: Quantity, low_z: Quantity) -> Quantity:
    """The largest standard deviations so far at which the load is served.

    Source: bisection.
    """
    return where(is_served == 1, tried_z, low_z)


@formula("Level that is not served", TWO_DECIMALS)
def missed_z(is_served: Quantity, tried_z: Quantity, high_z: Quantity) -> Quantity:
    """The least standard deviations so far at which the load is not served.

    Source: bisection.
    """
    return where(is_served == 1, high_z, tried_z)


@formula("Places of a replica at the level that is served")
def served_places(is_served: Quantity, tried_paced_requests: Quantity, paced_at_level: Quantity) -> Quantity:
    """Requests that one replica may serve at the largest level so far at which the load is served.

    Source: paced_requests.
    """
    return where(is_served == 1, tried_paced_requests, paced_at_level)


@formula("Requests of the fullest rank at a rate")
def rank_requests_with_rates(
    requests_per_second: Quantity, rank_requests: Quantity, paced_at_level: Quantity, data_parallel_size: Quantity
) -> Quantity:
    """Requests at once on the fullest rank; for a rate, all places of the rank at the level at which it is still
    served.

    Source: served_places, rank_requests.
    """
    return where(requests_per_second > 0, ratio(paced_at_level, data_parallel_size), rank_requests)


@formula("Requests whose cache the fullest rank keeps, at a rate", within=[surviving_replicas])
def held_requests_with_rates(
    requests_per_second: Quantity,
    rank_requests: Quantity,
    served_load_requests: Quantity,
    wait_z: Quantity,
    surviving_replicas: Quantity,
    data_parallel_size: Quantity,
) -> Quantity:
    """Requests at once for which the fullest rank needs memory; for a rate, the average number with the allowance for
    chance, as few of very many places are ever taken, and at most all places.

    Source: places, of the requests at once at the predicted times; an even share.
    """
    at_once = served_load_requests + wait_z * power(served_load_requests, 1 / 2)
    share = round_up(ratio(round_up(ratio(at_once, surviving_replicas)), data_parallel_size))
    return where(requests_per_second > 0, smallest(rank_requests, share), rank_requests)


@formula("Standard deviations that all hold, at a rate", TWO_DECIMALS)
def least_z_with_rates(requests_per_second: Quantity, least_z: Quantity, low_z: Quantity) -> Quantity:
    """Standard deviations at which the load is still served; for a rate found by bisection, as its places depend on the
    level.

    Source: served_z, least_z.
    """
    return where(requests_per_second > 0, low_z, least_z)
