"""People, a rate, requests at once: one load in three words, each put in the others by Little's law.

People ask so many requests a day, of which a share falls in the busiest hour, with a burst inside it. Requests at once
are a rate times the seconds of a request; those that are stated hold the mean of a rate and the places to spare for
chance.
"""

from __future__ import annotations

from sheetgen.formula import (
    Quantity,
    either,
    formula,
    is_number,
    largest,
    natural_log,
    number_where,
    power,
    ratio,
    round_down,
    smallest,
    where,
)
from sheetgen.sizing.parallelism import surviving_replicas
from sheetgen.sizing.rates import mean_of_places
from sheetgen.sizing.speed import turn_seconds
from sheetgen.units import PERCENT, SECONDS, TWO_DECIMALS


@formula("Requests per day", TWO_DECIMALS)
def day_requests(
    requests_per_day: Quantity,
    tokens_per_day: Quantity,
    users: Quantity,
    requests_per_user_per_day: Quantity,
    input_tokens: Quantity,
    output_tokens: Quantity,
) -> Quantity:
    """Requests in a day: those of all people, or the stated tokens over those of a request, or as stated; 0 where the
    load is not stated by the day.

    Source: definition. Check: 200 people who ask 20 times a day are 4,000.
    """
    of_tokens = ratio(tokens_per_day, input_tokens + output_tokens)
    return where(users > 0, users * requests_per_user_per_day, where(tokens_per_day > 0, of_tokens, requests_per_day))


@formula("Utilization of a day", PERCENT)
def day_utilization(
    peak_hour_share: Quantity, burst_factor: Quantity, hours_in_a_day: Quantity, least_utilization: Quantity
) -> Quantity:
    """The mean load as a share of the peak's, where a day's requests are known: at least the smallest utilization that
    is allowed, at most 1.

    Source: the busiest hour has its share of a day's requests, and a burst in it is so many times its mean.
    Check: a share of 0.12 and a burst of 1.3 are 26.7 %.
    """
    mean_over_peak = ratio(1, hours_in_a_day * peak_hour_share * burst_factor, 1)
    return smallest(1, largest(least_utilization, mean_over_peak))


@formula("Utilization, if nobody states it", PERCENT)
def default_utilization(
    stated_users: Quantity,
    stated_tokens_per_day: Quantity,
    stated_requests_per_day: Quantity,
    day_utilization: Quantity,
    rate_utilization: Quantity,
) -> Quantity:
    """That of a day where the load is stated by the day, else the usual one.

    Source: a rate at the peak says nothing of the other hours.
    """
    is_by_day = either(stated_users > 0, stated_tokens_per_day > 0, stated_requests_per_day > 0)
    return where(is_by_day, day_utilization, rate_utilization)


@formula("Seconds of a request at its targets", SECONDS)
def target_turn_seconds(
    ttft_limit_seconds: Quantity, output_tokens: Quantity, tpot_limit_seconds: Quantity, no_limit_seconds: Quantity
) -> Quantity:
    """Seconds from a request to its last token where both times just meet their targets; none where a target that the
    request has is off.

    Source: INTERFACE: TTFT target + (output - 1) x TPOT target.
    """
    seconds = turn_seconds(ttft_limit_seconds, output_tokens, tpot_limit_seconds)
    return number_where(seconds < no_limit_seconds, seconds)


@formula("Requests per second of so many at once", TWO_DECIMALS)
def at_once_per_second(concurrent_requests: Quantity, wait_z: Quantity, target_turn_seconds: Quantity) -> Quantity:
    """The rate whose requests, each as slow as its targets allow, are this many at once, with places to spare for
    chance.

    Source: Little's law; INTERFACE: the mean a at once satisfies a + z x sqrt(a) = the requests at once.
    """
    per_second = mean_of_places(concurrent_requests, wait_z) / target_turn_seconds
    return number_where(is_number(target_turn_seconds), per_second)


@formula("Requests per second", TWO_DECIMALS)
def rate_or_at_once(requests_per_second: Quantity, at_once_per_second: Quantity) -> Quantity:
    """The rate of a load: as stated, or that of its requests at once.

    Source: at_once_per_second.
    """
    return where(requests_per_second > 0, requests_per_second, at_once_per_second)


@formula("Requests per second whose prompts are read", TWO_DECIMALS, within=[surviving_replicas])
def read_per_second(
    load_requests_per_second: Quantity,
    surviving_replicas: Quantity,
    extra_headroom_fraction: Quantity,
    replica_prefill_seconds: Quantity,
    max_prefill_utilization: Quantity,
) -> Quantity:
    """The rate of a load, limited to the rate whose prompts fill the share of the rented replicas' time that prompts
    may take.

    Source: INTERFACE: where the hardware cannot read that many prompts, people are what it can; prefill_replicas.
    """
    share = surviving_replicas * max_prefill_utilization / (1 + extra_headroom_fraction)
    most = smallest(load_requests_per_second, ratio(share, replica_prefill_seconds, load_requests_per_second))
    return number_where(is_number(load_requests_per_second), most)


@formula("Requests per second on what is rented", TWO_DECIMALS)
def rented_per_second(load_requests_per_second: Quantity, read_per_second: Quantity) -> Quantity:
    """The rate of a load as its hardware serves it; where nothing is rented, as stated or by the targets.

    Source: read_per_second.
    """
    return where(is_number(read_per_second), read_per_second, load_requests_per_second)


@formula("People")
def users(
    stated_users: Quantity,
    load_requests_per_second: Quantity,
    requests_per_user_per_day: Quantity,
    peak_hour_share: Quantity,
    burst_factor: Quantity,
    seconds_in_an_hour: Quantity,
    decimal_base: Quantity,
) -> Quantity:
    """The number of people of a load: as stated, or those whose requests arrive at its rate at peak, rounded down to
    two figures: it is enough for at least so many.

    Source: INTERFACE; peak_requests_per_second, solved for people. Check: 4.5 a second at 20 a day are 5,100.
    """
    of_a_person = requests_per_user_per_day * peak_hour_share * burst_factor
    people = load_requests_per_second * seconds_in_an_hour / of_a_person
    digits = round_down(natural_log(largest(1, people)) / natural_log(decimal_base))
    step = largest(1, power(decimal_base, digits - 1))
    at_least = number_where(is_number(load_requests_per_second), round_down(people / step) * step)
    return where(stated_users > 0, stated_users, at_least)


@formula("Seconds for which a history is kept", SECONDS)
def history_kept_seconds(
    memory_holds: Quantity, concurrent_requests: Quantity, load_requests_per_second: Quantity
) -> Quantity:
    """Seconds for which GPU memory keeps what a request left there: until arriving requests have filled what the
    requests at work leave free.

    Source: Little's law; the prefix cache evicts what was used longest ago. Check: 40 free at 0.5 a second are 80 s.
    """
    return largest(0, memory_holds - concurrent_requests) / load_requests_per_second


@formula("Seconds until a person asks again", SECONDS)
def asks_again_seconds(stated_users: Quantity, load_requests_per_second: Quantity) -> Quantity:
    """Average seconds from one request of a person to the next, at peak.

    Source: Little's law. Check: 200 people at 0.5 a second ask every 400 s.
    """
    return stated_users / load_requests_per_second


@formula("Requests per hour", TWO_DECIMALS)
def requests_per_hour(load_requests_per_second: Quantity, seconds_in_an_hour: Quantity) -> Quantity:
    """Requests of an hour that is as busy throughout as the busiest minutes.

    Source: definition.
    """
    return number_where(is_number(load_requests_per_second), load_requests_per_second * seconds_in_an_hour)
