"""Everything that is read of a claim: what fits, what each shape would give, and whether the claim can be true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from sheetgen.api import sized_point
from sheetgen.catalog.load import Catalog
from sheetgen.decode.claim import OF_GPUS, Claim, read_claim
from sheetgen.decode.readings import Layout, Reader, Reading, Way, contenders, layouts, nearest
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.scenario.deployment import Resolved
from sheetgen.scenario.inputs import BY_NAME

Verdict = Literal["consistent", "slower", "unlikely", "impossible", "unknown"]
Shape = tuple[int, int]
SHAPES: tuple[Shape, ...] = ((128, 128), (1024, 1024), (8192, 1024), (2048, 2048))  # input, output: vendors' usual ones
KV_DTYPES = ("bf16", "fp8")
RAISED_SHARE = 0.95  # gpu_memory_utilization that operators go up to where the engine's default holds nothing


@dataclass(frozen=True)
class Analysis:
    """A claim with its readings.

    capacity: at the model's longest context, one reading for each layout and precision of the cache. shapes: by input
    and output tokens. at_context: at the requested context; empty where none was given. has_raised_share: nothing
    holds at the engine's default gpu_memory_utilization, and RAISED_SHARE was taken.
    """

    claim: Claim
    names: Resolved
    reader: Reader
    layouts: tuple[Layout, ...]
    kv_dtypes: tuple[str, ...]
    capacity: list[Reading]
    shapes: dict[Shape, list[Reading]]
    at_context: list[Reading]
    has_raised_share: bool = False

    @property
    def own_dtype(self) -> str:
        """The precision of the cache that is taken where none is stated."""
        return self.names.kv_cache_dtype

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
        return nearest(self.contenders, self.claim.tokens_per_second, self.own_dtype)

    def ways(self, n_requests: int, *lengths: tuple[int, int | None, int | None]) -> list[Way]:
        """Every layout and precision of the cache, for contexts with their input and output tokens."""
        dtype = self.names.weight_dtype
        each = [(one, kv) for one in self.layouts for kv in self.kv_dtypes]
        return [Way(one, dtype, kv, n_requests, *length) for length in lengths for one, kv in each]

    def variant(self, weight_dtype: str | None = None, prefix_cache_hit_fraction: float = 0.0) -> Analysis:
        """The same shapes with other weights, or with prompts that a prefix cache holds."""
        dtype = weight_dtype or self.names.weight_dtype
        ways = [
            replace(one.way, weight_dtype=dtype, prefix_cache_hit_fraction=prefix_cache_hit_fraction)
            for readings in self.shapes.values()
            for one in readings
        ]
        return replace(self, shapes=_by_shape(self.reader.read(ways)))


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
    problems: list[str] = []
    claim = one = None
    inputs = {name: options[name] for name in OF_GPUS if options.get(name) is not None}
    try:
        claim = read_claim(options, catalog.gpu_words())
        inputs = claim.inputs
    except SheetgenError as error:
        problems.extend(error.problems)
    try:
        one = sized_point({**inputs, "context_tokens": 1}, catalog)
    except SheetgenError as error:
        problems.extend(error.problems)
    if claim is None or one is None:
        raise ScenarioError(*dict.fromkeys(problems))
    names = one.points.names[0]
    reader = Reader(claim.inputs, int(one.inputs["max_num_seqs"][0]), catalog)
    laid_out = layouts(claim.n_gpus, names.model.experts is not None, claim.tensor_parallel_size)
    empty = Analysis(claim, names, reader, laid_out, _kv_dtypes(claim, names), [], {}, [])
    n, context = claim.concurrency, claim.context_tokens
    shapes = dict.fromkeys((claim.input_tokens or i, claim.output_tokens or o) for i, o in SHAPES)
    ways = empty.ways(n, *((i + o, i, o) for i, o in shapes))
    of_shapes, is_raised = reader.read(ways), False
    if not any(one.holds for one in of_shapes) and "gpu_memory_utilization" not in claim.inputs:
        raised = replace(reader, inputs={**claim.inputs, "gpu_memory_utilization": RAISED_SHARE})
        again = raised.read(ways)
        if any(one.holds for one in again):
            reader, of_shapes, is_raised = raised, again, True
    capacity = reader.read(empty.ways(n, (names.model.max_context_tokens or 1, None, None)))
    at_context = reader.read(empty.ways(claim.users or n, (context, None, None))) if context is not None else []
    return replace(
        empty, reader=reader, shapes=_by_shape(of_shapes), capacity=capacity, at_context=at_context,
        has_raised_share=is_raised,
    )  # fmt: skip


def _kv_dtypes(claim: Claim, names: Resolved) -> tuple[str, ...]:
    """The stated precision of the cache; else the model's own, bf16 and FP8, as far as the GPU keeps them."""
    stated = str(claim.inputs.get("kv_cache_dtype", "auto")).strip().lower()
    if stated != "auto":
        return (names.kv_cache_dtype,)
    known = dict.fromkeys(("bf16" if names.kv_cache_dtype == "fp16" else names.kv_cache_dtype, *KV_DTYPES))
    return tuple(one for one in known if one in names.gpu.kv_run) or (names.kv_cache_dtype,)


def _by_shape(readings: list[Reading]) -> dict[Shape, list[Reading]]:
    found: dict[Shape, list[Reading]] = {}
    for one in readings:
        found.setdefault((one.answer["input_tokens"], one.answer["output_tokens"]), []).append(one)
    return found


@dataclass(frozen=True)
class Scaled:
    """A prediction set right by the claim. factor: claimed over predicted at the claim's own shape, in `basis`."""

    factor: float
    basis: Reading
    reading: Reading


def fastest(analysis: Analysis) -> Reading | None:
    """The fastest layout at the requested context; with the cache in the stated or the model's own precision where
    that holds, else in any."""
    counting = contenders(analysis.at_context)
    own = [one for one in counting if one.way.kv_cache_dtype == analysis.own_dtype]
    return max(own or counting, key=lambda one: one.rate, default=None)


def scaled(analysis: Analysis) -> Scaled | None:
    """The prediction at the requested context, scaled by what the claim is over its own prediction: the same layout and
    precision, both times multiplied alike. None where the claim's lengths were not stated, where it cannot be true,
    or where no layout holds both.

    Source: one measured point of a configuration takes a third off the error (docs/speed.md); here the claim is it.
    """
    claim = analysis.claim
    if not claim.states_lengths or analysis.overall in ("impossible", "unknown"):
        return None
    there = {(one.way.layout, one.way.kv_cache_dtype): one for one in analysis.at_context if one.counts}
    bases = [one for one in analysis.contenders if (one.way.layout, one.way.kv_cache_dtype) in there]
    basis = nearest(bases, claim.tokens_per_second, analysis.own_dtype)
    if basis is None:
        return None
    factor, kind = claim.tokens_per_second / basis.rate, BY_NAME["speed_factor"].kind
    if not kind.low <= 1 / factor <= kind.high:
        return None
    way = there[basis.way.layout, basis.way.kv_cache_dtype].way
    return Scaled(factor, basis, analysis.reader.read([replace(way, speed_factor=1 / factor)])[0])
