"""Readings of a claim: each way in which it can have been run, sized and timed by the formulas, all rows at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.api import record, size_columns
from sheetgen.catalog.load import Catalog
from sheetgen.errors import ScenarioError
from sheetgen.estimate import PACE, RUNNING, STEP, evaluate
from sheetgen.units import TENSOR_PARALLEL_SIZES
from sheetgen.verdict import obstacle

Record = dict[str, Any]
GPUS_OF_A_NODE = 8  # of the HGX and DGX boards that claims name
SPARSE_FACTOR = 2  # peaks of 2:4 sparsity are twice the dense ones (NVIDIA's data sheets since the A100)
_PERFECT = {
    "weight_bandwidth_efficiency": 1, "expert_bandwidth_efficiency": 1, "kv_bandwidth_efficiency": 1,
    "decode_compute_efficiency": 1, "expert_decode_factor": 1, "prefill_compute_efficiency": 1,
    "expert_prefill_factor": 1, "attention_compute_efficiency": 1, "prefill_weight_reads": 0,
    "seconds_per_layer": 0, "seconds_per_all_reduce": 0, "wait_factor": 0,
    "base_ttft_seconds": 0, "steps_before_prefill": 0, "speed_factor": 1, "ttft_factor": 1,
    "interconnect_bytes_per_second": numpy.inf,
}  # fmt: skip
LEAST_SHARE = 0.5  # of the fastest layout's rate: nobody publishes, or serves in, a layout that wastes more


@dataclass(frozen=True)
class Layout:
    """One way to lay out N GPUs: tensor_parallel_size x data_parallel_size x n_replicas of them."""

    tensor_parallel_size: int
    data_parallel_size: int
    n_replicas: int

    def requests_per_replica(self, n_requests: int) -> int:
        """Requests of the fullest replica."""
        return -(-n_requests // self.n_replicas)

    @property
    def words(self) -> str:
        """`TP 4 x 2`, with the ranks of data-parallel attention where there are any."""
        ranks = f" DP {self.data_parallel_size}" if self.data_parallel_size > 1 else ""
        return f"TP {self.tensor_parallel_size}{ranks}" + (f" x {self.n_replicas}" if self.n_replicas > 1 else "")


def layouts(n_gpus: int, is_moe: bool, tensor_parallel_size: int | None = None) -> tuple[Layout, ...]:
    """The layouts of `n_gpus`: replicas of TP 1, 2, 4 or 8, and for models with experts replicas of 2, 4 or 8 GPUs
    whose attention is data-parallel; those of one TP where it is stated. Whether a model's heads divide is not
    checked here: sizing refuses those that do not.

    Raises ScenarioError where a stated tensor_parallel_size does not divide the GPUs.
    """
    if tensor_parallel_size is not None:
        if n_gpus % tensor_parallel_size:
            why = f"which does not divide the {n_gpus:,} GPUs of the claim."
            raise ScenarioError(f"tensor_parallel_size is {tensor_parallel_size:,}, {why}")
        pairs = [(tensor_parallel_size, 1)]
        if is_moe and tensor_parallel_size == 1:
            pairs += [(1, size) for size in TENSOR_PARALLEL_SIZES[1:]]
    else:
        pairs = [(t, 1) for t in TENSOR_PARALLEL_SIZES] + [(1, t) for t in TENSOR_PARALLEL_SIZES[1:] if is_moe]
    return tuple(Layout(tp, dp, n_gpus // (tp * dp)) for tp, dp in pairs if n_gpus % (tp * dp) == 0)


@dataclass(frozen=True)
class Way:
    """One way to run `n_requests` in flight on all GPUs of a claim. Without lengths of prompt and answer the context
    is divided as `size` does."""

    layout: Layout
    weight_dtype: str
    kv_cache_dtype: str
    n_requests: int
    context_tokens: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    prefix_cache_hit_fraction: float = 0.0
    speed_factor: float = 1.0

    @property
    def inputs(self) -> Record:
        """What is sized: the fullest replica. An anchor scales both times."""
        return {
            "weight_dtype": self.weight_dtype, "kv_cache_dtype": self.kv_cache_dtype,
            "tensor_parallel_size": self.layout.tensor_parallel_size,
            "data_parallel_size": self.layout.data_parallel_size, "context_tokens": self.context_tokens,
            "input_tokens": self.input_tokens, "output_tokens": self.output_tokens,
            "prefix_cache_hit_fraction": self.prefix_cache_hit_fraction,
            "concurrent_requests": self.layout.requests_per_replica(self.n_requests),
            "speed_factor": self.speed_factor, "ttft_factor": self.speed_factor,
        }  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """A way, with the record of one replica as `size` gives it.

    runs: the engine runs on the GPU, and the GPU takes both precisions. holds: it runs, and at least one request of
    the whole length fits. fit: requests at their full length that all GPUs hold at once. rate, low, high, ceiling,
    sparse_ceiling: output tokens per second of all GPUs; NaN where
    the GPU's speed is not known.
    """

    way: Way
    answer: Record
    runs: bool
    holds: bool
    fit: int
    rate: float
    low: float
    high: float
    ceiling: float
    sparse_ceiling: float

    @property
    def running(self) -> int:
        """Requests that are being answered at once; the others wait for their turn."""
        return min(self.way.n_requests, self.way.layout.n_replicas * int(self.answer["running_requests"]))

    @property
    def waiting(self) -> int:
        return self.way.n_requests - self.running

    @property
    def counts(self) -> bool:
        """Whether a claim can be held against it."""
        return self.holds and not math.isnan(self.rate)

    def matches(self, tokens_per_second: float) -> bool:
        """Whether a rate of all GPUs lies in the 80 % band."""
        return self.counts and self.low <= tokens_per_second <= self.high


@dataclass(frozen=True)
class Reader:
    """Reads ways with the `inputs` that they share. `max_num_seqs` is the engine's own: whoever runs more raises it."""

    inputs: Mapping[str, Any]
    max_num_seqs: int
    catalog: Catalog

    def read(self, ways: Sequence[Way]) -> list[Reading]:
        """The readings of all ways that can be sized; ways that no engine takes (heads that TP does not divide,
        contexts over the model's limit) are left out.

        Raises ScenarioError where none of them can be sized.
        """
        rows = [{**self.inputs, **way.inputs} for way in ways]
        for row in rows:
            row["max_num_seqs"] = max(self.max_num_seqs, row["concurrent_requests"])
        columns = {name: numpy.array([row[name] for row in rows], object) for name in rows[0]}
        sized = size_columns(columns, len(rows), self.catalog)
        if not len(sized.points.good):
            raise ScenarioError(*(sized.points.errors[-1] or "").splitlines())
        with numpy.errstate(invalid="ignore", divide="ignore"):
            bounds = ceiling(sized.known), ceiling(sized.known, SPARSE_FACTOR)
        found = []
        for place, row in enumerate(sized.points.good.tolist()):
            way, answer = ways[row], record(sized, row)
            in_pool = int(sized.known["sequences_in_pool"][place]) * way.layout.data_parallel_size
            runs = obstacle(sized.points.names[place]) is None
            holds = runs and in_pool >= 1
            # The fullest replica's rate of each request, for all requests.
            share = way.n_requests / answer["concurrent_requests"]
            ends = (answer[f"output_tokens_per_second{end}"] for end in ("", "_low", "_high"))
            rates = [math.nan if rate is None else rate * share for rate in ends]
            busy = min(way.n_requests, way.layout.n_replicas)
            fit = in_pool * way.layout.n_replicas if holds else 0
            most = [float(bound[place]) * busy for bound in bounds]
            found.append(Reading(way, answer, runs, holds, fit, *rates, *most))
        return found


def contenders(readings: Sequence[Reading]) -> list[Reading]:
    """Those that hold and whose speed is known, without layouts that waste more than half of what the fastest one gives
    at the same precisions (as a model that a GPU barely holds, on every GPU of its own)."""
    counting = [one for one in readings if one.counts]
    fastest: dict[tuple[str, str], float] = {}
    for one in counting:
        key = one.way.weight_dtype, one.way.kv_cache_dtype
        fastest[key] = max(one.rate, fastest.get(key, 0))
    return [one for one in counting if one.rate >= LEAST_SHARE * fastest[one.way.weight_dtype, one.way.kv_cache_dtype]]


def nearest(readings: Iterable[Reading], tokens_per_second: float, own_dtype: str) -> Reading | None:
    """The reading that needs the least belief: within its band, else below what is possible; then the cache in
    `own_dtype`, then the nearest rate."""

    def disbelief(one: Reading) -> tuple[bool, bool, bool, float]:
        is_above, is_other = one.ceiling < tokens_per_second, one.way.kv_cache_dtype != own_dtype
        off = abs(math.log(tokens_per_second / one.rate))  # up or down
        return not one.matches(tokens_per_second), is_above, is_other, off

    return min(readings, key=disbelief, default=None)


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
