"""The physical ceiling of a rate: the same formulas with every efficiency at 1 and no overhead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy

from sheetgen.estimate import PACE, RUNNING, STEP, evaluate

SPARSE_FACTOR = 2  # peaks of 2:4 sparsity are twice the dense ones (NVIDIA's data sheets since the A100)

_PERFECT = {
    "weight_bandwidth_efficiency": 1, "expert_bandwidth_efficiency": 1, "kv_bandwidth_efficiency": 1,
    "decode_compute_efficiency": 1, "expert_decode_factor": 1, "prefill_compute_efficiency": 1,
    "expert_prefill_factor": 1, "attention_compute_efficiency": 1, "prefill_weight_reads": 0,
    "seconds_per_layer": 0, "seconds_per_all_reduce": 0, "wait_factor": 0,
    "base_ttft_seconds": 0, "steps_before_prefill": 0, "speed_factor": 1, "ttft_factor": 1,
    "interconnect_bytes_per_second": numpy.inf,
}  # fmt: skip


def ceiling(known: Mapping[str, Any], flops_factor: float = 1) -> Any:
    """Output tokens per second that one replica can reach at most, whatever software runs on it.

    Memory and arithmetic may overlap wholly, so each is tried with the other infinitely fast, and the slower one is
    the ceiling; links are taken as free. Requests wait for their turn without a gap. All memory beside the weights
    holds cache. `flops_factor` multiplies the arithmetic peaks.

    In:     every quantity of `estimate.point`, as columns.
    Errors: none by design, it is a bound; it counts one token a step, so speculative decoding can pass it, and
            prompts found in a prefix cache can. NaN where neither peak is known.
    Source: formulas of sizing/steps.py and speed.py; published dense peaks.
    """
    room = known["gpu_memory_bytes"] - known["loaded_weights_bytes_per_gpu"]
    ideal = {**known, **_PERFECT, "kv_budget_bytes_per_gpu": room}
    peaks = {name: known[name] * flops_factor for name in ("peak_flops", "peak_flops_16_bit")}
    memory_bound = {**ideal, **dict.fromkeys(peaks, numpy.inf)}
    compute_bound = {**ideal, **peaks, "memory_bandwidth_bytes_per_second": numpy.inf}
    return numpy.fmin(_rate(memory_bound), _rate(compute_bound))


def _rate(values: Mapping[str, Any]) -> Any:
    known = evaluate((*STEP, *RUNNING, *PACE), values)
    return known["max_requests_per_second"] * known["output_tokens"]
