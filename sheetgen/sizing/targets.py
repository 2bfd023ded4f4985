"""From target times to requests: how many one batch may hold so that TPOT and TTFT stay within their targets."""

from __future__ import annotations

from typing import Any

from sheetgen.formula import Quantity, both, count_steps, fading, formula, largest, ratio, round_up, smallest, where
from sheetgen.sizing.speed import service_ttft_seconds, tpot_seconds
from sheetgen.units import SECONDS, TEXT


@formula("Target in force", SECONDS)
def limit_seconds(
    target_ms: Quantity, speed_targets: Quantity, milliseconds_per_second: Quantity, no_limit_seconds: Quantity
) -> Any:
    """The time that a token may take, in seconds; very long where no target is set or targets are off.

    Source: INTERFACE: TPOT drives the count by default, TTFT only where it is asked for.
    """
    return where(both(speed_targets == 1, target_ms > 0), target_ms / milliseconds_per_second, no_limit_seconds)


def _meets(
    batch: Quantity, untouched: Quantity, tpot_limit_seconds: Quantity, ttft_limit_seconds: Quantity,
    output_tokens: Quantity, fixed_step_seconds: Quantity, request_step_seconds: Quantity, expert_seconds: Quantity,
    prefill_seconds: Quantity, wait_factor: Quantity, base_ttft_seconds: Quantity, steps_before_prefill: Quantity,
    speed_factor: Quantity, ttft_factor: Quantity,
) -> Any:  # fmt: skip
    """Whether a batch of this many requests, which leaves this share of the experts alone, meets both targets."""
    step = fixed_step_seconds, request_step_seconds, expert_seconds, untouched
    tpot = tpot_seconds(batch, output_tokens, *step, prefill_seconds, wait_factor, speed_factor)
    ttft = service_ttft_seconds(
        batch, *step, prefill_seconds, wait_factor, base_ttft_seconds, steps_before_prefill, ttft_factor
    )
    return (tpot <= tpot_limit_seconds) * (ttft <= ttft_limit_seconds)


@formula("Strides within the targets")
def strides_within_targets(
    steps: Quantity, untouched_by_stride: Quantity, requests_per_stride: Quantity, tpot_limit_seconds: Quantity,
    ttft_limit_seconds: Quantity, output_tokens: Quantity, fixed_step_seconds: Quantity, request_step_seconds: Quantity,
    expert_seconds: Quantity, prefill_seconds: Quantity, wait_factor: Quantity, base_ttft_seconds: Quantity,
    steps_before_prefill: Quantity, speed_factor: Quantity, ttft_factor: Quantity,
) -> Any:  # fmt: skip
    """Of batches of 64, 128, ... 4,096 requests, how many meet both targets: both times only grow with the batch.

    In:     steps, the numbers from 1 to 64; untouched_by_stride, the share of experts that each stride leaves alone.
    Source: tpot_seconds, service_ttft_seconds.
    """
    return count_steps(
        lambda stride, untouched: _meets(
            stride * requests_per_stride, untouched, tpot_limit_seconds, ttft_limit_seconds, output_tokens,
            fixed_step_seconds, request_step_seconds, expert_seconds, prefill_seconds, wait_factor,
            base_ttft_seconds, steps_before_prefill, speed_factor, ttft_factor,
        ),
        steps,
        untouched_by_stride,
    )  # fmt: skip


@formula("Most requests of a batch within the targets")
def batch_limit(
    strides_within_targets: Quantity, steps: Quantity, untouched_by_request: Quantity, expert_miss_fraction: Quantity,
    requests_per_stride: Quantity, tpot_limit_seconds: Quantity, ttft_limit_seconds: Quantity, output_tokens: Quantity,
    fixed_step_seconds: Quantity, request_step_seconds: Quantity, expert_seconds: Quantity, prefill_seconds: Quantity,
    wait_factor: Quantity, base_ttft_seconds: Quantity, steps_before_prefill: Quantity, speed_factor: Quantity,
    ttft_factor: Quantity,
) -> Any:  # fmt: skip
    """The largest batch that meets both targets: the strides that do, and of the next one every single request.

    In:     untouched_by_request, the share of experts that 1 to 64 requests leave alone.
    Out:    0 where a lone request already misses a target. 4,160 where no batch that an engine runs does.
    Source: tpot_seconds, service_ttft_seconds.
    """
    begun = strides_within_targets * requests_per_stride
    left = fading(expert_miss_fraction, begun)
    return begun + count_steps(
        lambda one, untouched: _meets(
            begun + one, left * untouched, tpot_limit_seconds, ttft_limit_seconds, output_tokens,
            fixed_step_seconds, request_step_seconds, expert_seconds, prefill_seconds, wait_factor,
            base_ttft_seconds, steps_before_prefill, speed_factor, ttft_factor,
        ),
        steps,
        untouched_by_request,
    )  # fmt: skip


def paced_sequences(sequences: Quantity, batch_limit: Quantity, pipeline_stages: Quantity) -> Any:
    """Sequences that one replica may serve: what memory holds, at most one batch within the targets a stage."""
    return smallest(sequences, batch_limit * pipeline_stages)


@formula("Requests of one replica")
def requests_per_replica(load_requests: Quantity, n_replicas: Quantity, spare_replicas: Quantity) -> Any:
    """Requests in flight on the fullest of the replicas that serve; spare ones wait.

    Source: ceil(load / serving replicas).
    """
    return round_up(ratio(load_requests, largest(0, n_replicas - spare_replicas)))


@formula("Sized by", TEXT)
def sized_by(load_requests: Quantity, sequences: Quantity, paced_requests: Quantity) -> Any:
    """What asked for the replicas: speed where its targets need more of them than memory does, else memory.

    Source: n_replicas.
    """
    by_speed = round_up(ratio(load_requests, smallest(sequences, paced_requests)))
    return where(by_speed > round_up(ratio(load_requests, sequences)), "speed", "memory")
