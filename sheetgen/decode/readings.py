"""Each way in which a claim can have been run, sized and timed by the formulas; and whether the claim can be true."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy

from sheetgen.api import record, size_columns, sized_point
from sheetgen.catalog.load import Catalog
from sheetgen.decode.claim import OF_GPUS, Claim, read_claim
from sheetgen.errors import Problems, ScenarioError
from sheetgen.estimate import PACE, RUNNING, STEP, evaluate
from sheetgen.scenario.deployment import Resolved
from sheetgen.scenario.inputs import BY_NAME
from sheetgen.units import TENSOR_PARALLEL_SIZES, count
from sheetgen.verdict import judge, obstacle

Record = dict[str, Any]
SPARSE_FACTOR = 2  # peaks of 2:4 sparsity are twice the dense ones (NVIDIA's data sheets since the A100)
_PERFECT = {
    "weight_bandwidth_efficiency": 1,
    "expert_bandwidth_efficiency": 1,
    "kv_bandwidth_efficiency": 1,
    "decode_compute_efficiency": 1,
    "expert_decode_factor": 1,
    "prefill_compute_efficiency": 1,
    "expert_prefill_factor": 1,
    "attention_compute_efficiency": 1,
    "prefill_weight_reads": 0,
    "seconds_per_layer": 0,
    "seconds_per_all_reduce": 0,
    "wait_factor": 0,
    "base_ttft_seconds": 0,
    "steps_before_prefill": 0,
    "chunks_power": 0,
    "speed_factor": 1,
    "ttft_factor": 1,
    "tpot_of_kind": 1,
    "tpot_of_dtype": 1,
    "ttft_of_kind": 1,
    "ttft_of_dtype": 1,
    "interconnect_bytes_per_second": numpy.inf,
    "gather_steps": numpy.finfo(float).tiny,  # above 0: ranks take their prompts side by side
}
LEAST_SHARE = 0.5  # of the fastest layout's rate: nobody publishes, or serves in, a layout that wastes more
Verdict = Literal["consistent", "slower", "unlikely", "impossible", "unknown"]
Shape = tuple[int, int]
SHAPES: tuple[Shape, ...] = ((128, 128), (1024, 1024), (8192, 1024), (2048, 2048))  # input, output: vendors' usual ones
KV_DTYPES = ("bf16", "fp8")
RAISED_SHARE = 0.95  # gpu_memory_utilization that operators go up to where the engine's default holds nothing


@dataclass(frozen=True)
class Layout:
    """One way to lay out N GPUs: tensor_parallel_size x data_parallel_size x n_replicas of them."""

    tensor_parallel_size: int
    data_parallel_size: int
    n_replicas: int

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
    if tensor_parallel_size is not None and n_gpus % tensor_parallel_size:
        why = f"which does not divide the {count(n_gpus, 'GPU')} of the claim."
        raise ScenarioError(f"tensor_parallel_size is {tensor_parallel_size:,}, {why}")
    pairs = [(size, 1) for size in (TENSOR_PARALLEL_SIZES if tensor_parallel_size is None else (tensor_parallel_size,))]
    if is_moe and tensor_parallel_size in (None, 1):
        pairs += [(1, size) for size in TENSOR_PARALLEL_SIZES[1:]]
    return tuple(Layout(tp, dp, n_gpus // (tp * dp)) for tp, dp in pairs if n_gpus % (tp * dp) == 0)


@dataclass(frozen=True)
class Way:
    """One way to run `n_requests` at once on all GPUs of a claim. Without lengths of prompt and answer the context
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
        layout = self.layout
        return {
            **{name: value for name, value in vars(self).items() if name not in ("layout", "n_requests")},
            "tensor_parallel_size": layout.tensor_parallel_size,
            "data_parallel_size": layout.data_parallel_size,
            "concurrent_requests": -(-self.n_requests // layout.n_replicas),
            "ttft_factor": self.speed_factor,
        }


@dataclass(frozen=True)
class Reading:
    """A way, with the record of one replica as `size` gives it.

    reason: why it fits, or does not. runs: the engine runs on the GPU, and the GPU takes both precisions. holds: it
    runs, and at least one request of the whole length fits. fit: requests at their full length that all GPUs hold at
    once. rate, low, high, ceiling, sparse_ceiling: output tokens per second of all GPUs; NaN where the GPU's speed is
    not known.
    """

    way: Way
    answer: Record
    reason: str
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


def read_ways(ways: Sequence[Way], inputs: Mapping[str, Any], max_num_seqs: int, catalog: Catalog) -> list[Reading]:
    """The readings of all ways that can be sized, with the `inputs` that they share; ways that no engine takes (heads
    that TP does not divide, contexts over the model's limit) are left out. `max_num_seqs` is the engine's own: whoever
    runs more raises it.

    Raises ScenarioError where none of them can be sized.
    """
    rows = [{**inputs, **way.inputs} for way in ways]
    for row in rows:
        row["max_num_seqs"] = max(max_num_seqs, row["concurrent_requests"])
    columns = {name: numpy.array([row[name] for row in rows], object) for name in rows[0]}
    sized = size_columns(columns, len(rows), catalog)
    if not len(sized.points.good):
        raise ScenarioError(*(sized.points.errors[-1] or "").splitlines())
    with numpy.errstate(invalid="ignore", divide="ignore"):
        bounds = ceiling(sized.known), ceiling(sized.known, SPARSE_FACTOR)
    reasons = judge(sized.known, sized.points.names).reason
    found = []
    for place, at in enumerate(sized.points.good.tolist()):
        way, answer = ways[at], record(sized, at)
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
        found.append(Reading(way, answer, reasons[place], runs, holds, fit, *rates, *most))
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
    Source: formulas of sizing/speed.py; published dense peaks.
    """
    room = known["gpu_memory_bytes"] - known["loaded_weights_bytes_per_gpu"]
    ideal = {**known, **_PERFECT, "kv_budget_bytes_per_gpu": room}
    peaks = {name: known[name] * flops_factor for name in ("peak_flops", "peak_flops_16_bit")}
    memory_bound = {**ideal, **dict.fromkeys(peaks, numpy.inf)}
    compute_bound = {**ideal, **peaks, "memory_bandwidth_bytes_per_second": numpy.inf}
    each = [evaluate((*RUNNING, *STEP, *PACE), values) for values in (memory_bound, compute_bound)]
    return numpy.fmin(*(found["max_requests_per_second"] * found["output_tokens"] for found in each))


@dataclass(frozen=True)
class Analysis:
    """A claim with its readings.

    capacity: at the model's longest context, one reading for each layout and precision of the cache. shapes: by input
    and output tokens. at_context: at the requested context; empty where none was given. has_raised_share: nothing
    holds at the engine's default gpu_memory_utilization, and RAISED_SHARE was taken. read: `read_ways` with the inputs
    of the claim.
    """

    claim: Claim
    names: Resolved
    read: Callable[[Sequence[Way]], list[Reading]]
    kv_dtypes: tuple[str, ...]
    capacity: list[Reading]
    shapes: dict[Shape, list[Reading]]
    at_context: list[Reading]
    has_raised_share: bool = False

    @property
    def contenders(self) -> list[Reading]:
        """The readings of all shapes that a claim can be held against."""
        return [one for found in self.shapes.values() for one in contenders(found)]

    def verdict(self, shape: Shape, tokens_per_second: float | None = None) -> Verdict:
        """Whether the claim can be true of requests of a shape, in any layout and precision that was read."""
        rate = self.claim.tokens_per_second if tokens_per_second is None else tokens_per_second
        return verdict(self.shapes[shape], rate)

    @property
    def overall(self) -> Verdict:
        """The verdict over all shapes: consistent too where the claim lies between what two of them give."""
        each = {self.verdict(shape) for shape in self.shapes}
        if "consistent" in each or ("slower" in each and each & {"unlikely", "impossible"}):
            return "consistent"
        order: tuple[Verdict, ...] = ("slower", "unlikely", "unknown")
        return next((one for one in order if one in each), "impossible")

    @property
    def nearest(self) -> Reading | None:
        return nearest(self.contenders, self.claim.tokens_per_second, self.names.kv_cache_dtype)

    def variant(self, weight_dtype: str | None = None, prefix_cache_hit_fraction: float = 0.0) -> Analysis:
        """The same shapes with other weights, or with prompts that a prefix cache holds."""
        dtype = weight_dtype or self.names.weight_dtype
        ways = [
            replace(one.way, weight_dtype=dtype, prefix_cache_hit_fraction=prefix_cache_hit_fraction)
            for readings in self.shapes.values()
            for one in readings
        ]
        return replace(self, shapes=_by_shape(self.read(ways)))


def verdict(readings: list[Reading], tokens_per_second: float) -> Verdict:
    """Consistent: within the 80 % band of a reading. Unlikely: above all bands. Impossible: above every physical
    ceiling, or no reading holds. Slower: below the fastest one's band. Unknown: no speed is known."""
    counting = contenders(readings)
    if not counting:
        return "unknown" if any(one.holds for one in readings) else "impossible"
    if any(one.matches(tokens_per_second) for one in counting):
        return "consistent"
    if tokens_per_second <= max(one.high for one in counting):
        return "slower"
    return "impossible" if tokens_per_second > max(one.ceiling for one in counting) else "unlikely"


def analyse(options: Mapping[str, Any], catalog: Catalog) -> Analysis:
    """Read a claim. Raises ScenarioError or CatalogError with every problem found."""
    problems = Problems()
    claim = problems.attempt(read_claim, options, catalog.gpu_words())
    inputs = claim.inputs if claim else {name: options[name] for name in OF_GPUS if options.get(name) is not None}
    one = problems.attempt(sized_point, {**inputs, "context_tokens": 1}, catalog)
    if problems:
        raise ScenarioError(*dict.fromkeys(problems))
    names = one.points.names[0]
    read = partial(read_ways, inputs=inputs, max_num_seqs=int(one.inputs["max_num_seqs"][0]), catalog=catalog)
    laid_out = layouts(claim.n_gpus, names.model.experts is not None, claim.tensor_parallel_size)
    # The stated precision of the cache; else the model's own, bf16 and FP8, as far as the GPU keeps them.
    own, stated = names.kv_cache_dtype, str(inputs.get("kv_cache_dtype", "auto")).strip().lower()
    known = dict.fromkeys(("bf16" if own == "fp16" else own, *KV_DTYPES)) if stated == "auto" else ()
    kv_dtypes = tuple(one for one in known if one in names.gpu.kv_run) or (own,)

    def ways(n_requests: int, *lengths: tuple[int, int | None, int | None]) -> list[Way]:
        """Every layout and precision of the cache, for contexts with their input and output tokens."""
        each = [(layout, names.weight_dtype, kv, n_requests) for layout in laid_out for kv in kv_dtypes]
        return [Way(*one, *length) for length in lengths for one in each]

    n, context = claim.concurrency, claim.context_tokens
    shapes = dict.fromkeys((claim.input_tokens or i, claim.output_tokens or o) for i, o in SHAPES)
    tries = ways(n, *((i + o, i, o) for i, o in shapes))
    of_shapes, is_raised = read(tries), False
    if not any(one.holds for one in of_shapes) and "gpu_memory_utilization" not in inputs:
        raised = partial(read, inputs={**inputs, "gpu_memory_utilization": RAISED_SHARE})
        again = raised(tries)
        if any(one.holds for one in again):
            read, of_shapes, is_raised = raised, again, True
    capacity = read(ways(n, (names.model.max_context_tokens or 1, None, None)))
    at_context = read(ways(claim.users or n, (context, None, None))) if context is not None else []
    return Analysis(claim, names, read, kv_dtypes, capacity, _by_shape(of_shapes), at_context, is_raised)


def _by_shape(readings: list[Reading]) -> dict[Shape, list[Reading]]:
    found: dict[Shape, list[Reading]] = {}
    for one in readings:
        found.setdefault((one.answer["input_tokens"], one.answer["output_tokens"]), []).append(one)
    return found


def scaled(analysis: Analysis) -> tuple[Reading, Reading] | None:
    """The reading that predicts the claim itself, and the prediction at the requested context scaled by what the claim
    is over it: the same layout and precision, both times multiplied alike. None where the claim's lengths were not
    stated, where it cannot be true, or where no layout holds both.

    Source: one measured point of a configuration takes a third off the error (docs/speed.md); here the claim is it.
    """
    claim = analysis.claim
    if not claim.states_lengths or analysis.overall in ("impossible", "unknown"):
        return None
    there = {(one.way.layout, one.way.kv_cache_dtype): one for one in analysis.at_context if one.counts}
    bases = [one for one in analysis.contenders if (one.way.layout, one.way.kv_cache_dtype) in there]
    basis = nearest(bases, claim.tokens_per_second, analysis.names.kv_cache_dtype)
    if basis is None:
        return None
    factor, kind = claim.tokens_per_second / basis.rate, BY_NAME["speed_factor"].kind
    if not kind.low <= 1 / factor <= kind.high:
        return None
    way = there[basis.way.layout, basis.way.kv_cache_dtype].way
    return basis, analysis.read([replace(way, speed_factor=1 / factor)])[0]
