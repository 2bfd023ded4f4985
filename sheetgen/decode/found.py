"""Everything that is read of a claim: what fits, what each shape would give, and whether the claim can be true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from sheetgen.api import sized_point
from sheetgen.catalog.load import Catalog
from sheetgen.decode.claim import OF_GPUS, Claim, read_claim
from sheetgen.decode.layouts import Layout, layouts
from sheetgen.decode.readings import Reader, Reading, Way, contenders, nearest
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.scenario.deployment import Resolved

Verdict = Literal["consistent", "slower", "unlikely", "impossible", "unknown"]
Shape = tuple[int, int]
SHAPES: tuple[Shape, ...] = ((128, 128), (1024, 1024), (8192, 1024), (2048, 2048))  # input, output: vendors' usual ones
KV_DTYPES = ("bf16", "fp8")
RAISED_SHARE = 0.95  # gpu_memory_utilization that operators go up to where the engine's default holds nothing


@dataclass(frozen=True)
class Found:
    """A claim with its readings.

    capacity: at the model's longest context, one reading for each layout and precision of the cache. shapes: by input
    and output tokens. yours: at the asker's own context; empty where none was given. has_raised_share: nothing holds at
    the engine's default gpu_memory_utilization, and RAISED_SHARE was taken.
    """

    claim: Claim
    names: Resolved
    reader: Reader
    layouts: tuple[Layout, ...]
    kv_dtypes: tuple[str, ...]
    capacity: list[Reading]
    shapes: dict[Shape, list[Reading]]
    yours: list[Reading]
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

    def variant(self, weight_dtype: str | None = None, prefix_cache_hit_fraction: float = 0.0) -> Found:
        """The same shapes with other weights, or with prompts that a prefix cache holds."""
        ways = [
            replace(
                one.way,
                weight_dtype=weight_dtype or one.way.weight_dtype,
                prefix_cache_hit_fraction=prefix_cache_hit_fraction,
            )
            for found in self.shapes.values()
            for one in found
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


def find(options: Mapping[str, Any], catalog: Catalog) -> Found:
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
    spread = layouts(claim.n_gpus, names.model.experts is not None, claim.tensor_parallel_size)
    found = Found(claim, names, reader, spread, _kv_dtypes(claim, names), [], {}, [])
    n, context = claim.concurrency, claim.context_tokens
    shapes = dict.fromkeys((claim.input_tokens or i, claim.output_tokens or o) for i, o in SHAPES)
    ways = found.ways(n, *((i + o, i, o) for i, o in shapes))
    of_shapes = reader.read(ways)
    if not any(one.holds for one in of_shapes) and "gpu_memory_utilization" not in claim.inputs:
        raised = replace(reader, inputs={**claim.inputs, "gpu_memory_utilization": RAISED_SHARE})
        again = raised.read(ways)
        if any(one.holds for one in again):
            reader, of_shapes, found = raised, again, replace(found, reader=raised, has_raised_share=True)
    capacity = reader.read(found.ways(n, (names.model.max_context_tokens or 1, None, None)))
    yours: list[Reading] = []
    if context is not None:
        yours = reader.read(found.ways(claim.users or n, (context, None, None)))
    return replace(found, shapes=_by_shape(of_shapes), capacity=capacity, yours=yours)


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
