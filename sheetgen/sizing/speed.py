"""Speed as users see it: time to the first token, time for each further one, tokens a second, and what bounds them."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, both, formula, largest, ratio, round_down, round_up, smallest, where
from sheetgen.sizing.steps import experts_read_seconds, step_seconds
from sheetgen.units import PERCENT, SECONDS, TEXT, TWO_DECIMALS


@formula("Prompts waited for", TWO_DECIMALS)
def prompts_waited_for(batch_requests: Quantity, wait_factor: Quantity) -> Any:
    """Prompts of other requests that a new one waits for before its first token, on average.

    Source: fitted, a share of the others; powers of their number fit no better.
    """
    return wait_factor * (batch_requests - 1)


@formula("Time per output token", SECONDS)
def tpot_seconds(
    batch_requests: Quantity, output_tokens: Quantity, fixed_step_seconds: Quantity, request_step_seconds: Quantity,
    expert_seconds: Quantity, untouched_fraction: Quantity, prefill_seconds: Quantity, wait_factor: Quantity,
    speed_factor: Quantity,
) -> Any:  # fmt: skip
    """Seconds between two tokens of one answer (TPOT), the prompts of others among the steps.

    While a request is answered, each other one of its batch is prefilled once. Those that it waited for before its
    first token do not come again; the others lengthen its answer.

    Source: one step and the share of others' prompts; docs/speed.md.
    """
    step = step_seconds(batch_requests, fixed_step_seconds, request_step_seconds, expert_seconds, untouched_fraction)
    others = batch_requests - 1 - prompts_waited_for(batch_requests, wait_factor)
    return speed_factor * (step + prefill_seconds * others / where(output_tokens > 1, output_tokens, 1))


@formula("Time to first token, once its turn comes", SECONDS)
def service_ttft_seconds(
    batch_requests: Quantity, fixed_step_seconds: Quantity, request_step_seconds: Quantity, expert_seconds: Quantity,
    untouched_fraction: Quantity, prefill_seconds: Quantity, wait_factor: Quantity, base_ttft_seconds: Quantity,
    steps_before_prefill: Quantity, ttft_factor: Quantity,
) -> Any:  # fmt: skip
    """Seconds from a request's turn to its first token: overhead, the running steps, prompts before it, its own.

    Source: fitted; indicative under load.
    """
    step = step_seconds(batch_requests, fixed_step_seconds, request_step_seconds, expert_seconds, untouched_fraction)
    waited = prefill_seconds * (1 + prompts_waited_for(batch_requests, wait_factor))
    others = (batch_requests - 1) / batch_requests  # nobody's steps are in the way of a lone request
    return ttft_factor * (base_ttft_seconds + steps_before_prefill * step * others + waited)


# How many run at once, and what waiting for a turn costs -------------------------------------------------


@formula("Tokens of a running request")
def filled_tokens(
    charged_tokens: Quantity, input_tokens: Quantity, output_tokens: Quantity, prefix_cache_hit_fraction: Quantity,
    average_answer_share: Quantity, kv_reserved: Quantity,
) -> Any:  # fmt: skip
    """Tokens of cache that a running request holds on average: its prompt and half of its answer, at most what it is
    charged; all of the charge where the cache is reserved.

    Source: paged engines let a request in by what is filled now, and preempt when that was too much.
    """
    filled = round_up(input_tokens * (1 - prefix_cache_hit_fraction) + output_tokens * average_answer_share)
    return where(kv_reserved == 1, charged_tokens, largest(1, smallest(charged_tokens, filled)))


@formula("Requests that can run at once")
def running_capacity(
    kv_budget_bytes_per_gpu: Quantity, filled_kv_blocks_per_sequence: Quantity, kv_block_bytes: Quantity,
    stage_fraction: Quantity, max_num_seqs: Quantity, data_parallel_size: Quantity,
) -> Any:  # fmt: skip
    """Requests that one replica runs at once: what the pool holds at their average length, at most max_num_seqs.

    Source: floor(pool / cache of a running request), per rank.
    """
    each = filled_kv_blocks_per_sequence * kv_block_bytes * stage_fraction
    held = round_down(ratio(largest(0, kv_budget_bytes_per_gpu), each))
    return data_parallel_size * smallest(held, max_num_seqs)


@formula("Requests running")
def running_requests(concurrent_requests: Quantity, running_capacity: Quantity) -> Any:
    """Requests of the replica that are being answered; the others wait. Where memory holds none at all, the speed is
    that of a GPU with more memory: all run.

    Source: the smaller of the two.
    """
    return where(running_capacity >= 1, smallest(concurrent_requests, running_capacity), concurrent_requests)


@formula("Requests of one batch", TWO_DECIMALS)
def batch_requests(running_requests: Quantity, data_parallel_size: Quantity, pipeline_parallel_size: Quantity) -> Any:
    """Requests that take their steps together: data-parallel ranks and pipeline stages each have a batch of their own.

    Source: vLLM runs one batch a rank, and one a stage.
    """
    return largest(1, running_requests / (data_parallel_size * pipeline_parallel_size))


def _turn(service_ttft_seconds: Quantity, output_tokens: Quantity, tpot_seconds: Quantity) -> Any:
    """Seconds from a request's turn to its last token."""
    return service_ttft_seconds + largest(0, output_tokens - 1) * tpot_seconds


@formula("Waiting for a turn", SECONDS)
def queue_seconds(
    concurrent_requests: Quantity, running_requests: Quantity, service_ttft_seconds: Quantity, output_tokens: Quantity,
    tpot_seconds: Quantity,
) -> Any:  # fmt: skip
    """Seconds that a request waits until the pool has room; 0 where all in flight run.

    Source: Little's law: those that wait, over the rate at which the running ones finish.
    """
    turn = _turn(service_ttft_seconds, output_tokens, tpot_seconds)
    return ratio(concurrent_requests - running_requests, running_requests) * turn


@formula("Time to first token", SECONDS)
def ttft_seconds(service_ttft_seconds: Quantity, queue_seconds: Quantity) -> Any:
    """Seconds from sending a request to its first token (TTFT), waiting for a turn included. Under load indicative.

    Source: the sum of its parts.
    """
    return service_ttft_seconds + queue_seconds


@formula("Output tokens per second", TWO_DECIMALS)
def output_tokens_per_second(
    concurrent_requests: Quantity, output_tokens: Quantity, ttft_seconds: Quantity, tpot_seconds: Quantity
) -> Any:
    """Tokens that all requests of the replica together get in a second; prompts are not counted.

    Source: requests x output tokens / (TTFT + (output tokens - 1) x TPOT).
    """
    alive = _turn(ttft_seconds, output_tokens, tpot_seconds)
    return ratio(concurrent_requests * output_tokens, alive)


@formula("Most requests per second", TWO_DECIMALS)
def max_requests_per_second(
    running_requests: Quantity, service_ttft_seconds: Quantity, output_tokens: Quantity, tpot_seconds: Quantity
) -> Any:
    """Requests that these running ones finish in a second: where more arrive, the queue grows without bound.

    Source: Little's law.
    """
    return ratio(running_requests, _turn(service_ttft_seconds, output_tokens, tpot_seconds))


@formula("Requests running when the pool is full")
def full_house(running_requests: Quantity, running_capacity: Quantity) -> Any:
    """Requests that run where more are always waiting: as many as the pool holds.

    Source: running_capacity; without room for one, as many as asked for.
    """
    return largest(running_requests, running_capacity)


@formula("Queue grows")
def grows(requests_per_second: Quantity, max_requests_per_second: Quantity) -> Any:
    """1 where requests arrive at least as fast as a full pool finishes them: their queue grows without bound.

    Source: queueing theory; a stable queue needs arrivals below what is served.
    """
    return where(requests_per_second >= max_requests_per_second, 1, 0)


@formula("At one end of the band")
def at_speed_band(predicted: Quantity, band_factor: Quantity) -> Any:
    """A time or a rate at one end of its 80 % band, in its own unit.

    Source: catalogs/speed.yaml, bands; docs/speed.md.
    """
    return predicted * band_factor


@formula("Share of time in prompts", PERCENT)
def prefill_fraction(
    batch_requests: Quantity, prefill_seconds: Quantity, output_tokens: Quantity, fixed_step_seconds: Quantity,
    request_step_seconds: Quantity, expert_seconds: Quantity, untouched_fraction: Quantity,
) -> Any:  # fmt: skip
    """The share of a busy GPU's time that goes into prompts; the rest goes into answers.

    Source: prompts / (prompts + steps), for one answer of every request of the batch.
    """
    step = step_seconds(batch_requests, fixed_step_seconds, request_step_seconds, expert_seconds, untouched_fraction)
    prompts = prefill_seconds * batch_requests
    return ratio(prompts, prompts + output_tokens * step)


@formula("Bound by", TEXT)
def bound_by(
    batch_requests: Quantity, concurrent_requests: Quantity, running_requests: Quantity, output_tokens: Quantity,
    dense_seconds: Quantity, expert_seconds: Quantity, untouched_fraction: Quantity, kv_read_seconds: Quantity,
    decode_compute_seconds: Quantity, prefill_seconds: Quantity, all_reduce_seconds: Quantity,
    token_link_seconds: Quantity,
) -> Any:  # fmt: skip
    """What takes the most of the time between two tokens: bandwidth (reading weights), KV reads, compute (arithmetic
    and the prompts of others) or communication; queue where requests wait for memory.

    Source: the largest part of tpot_seconds.
    """
    experts = experts_read_seconds(expert_seconds, untouched_fraction)
    weights = dense_seconds + experts
    cache = kv_read_seconds * batch_requests
    prompts = prefill_seconds * (batch_requests - 1) / where(output_tokens > 1, output_tokens, 1)
    compute = decode_compute_seconds * batch_requests + prompts
    links = all_reduce_seconds + token_link_seconds * batch_requests
    most = largest(weights, cache, compute, links)
    named = where(cache == most, "KV reads", where(compute == most, "compute", "communication"))
    waits = both(running_requests < concurrent_requests, concurrent_requests >= 1)
    return where(waits, "queue", where(weights == most, "bandwidth", named))
