"""One engine's flags checked: the point under that engine's accounting, and the changes with which it would fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy

from sheetgen.answer.verdict import judge, obstacle, refused_cache
from sheetgen.api import SHORT_SPELLINGS, record, size_columns
from sheetgen.catalog.base import RawMapping, RawRecord, RawValue
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model
from sheetgen.catalog.stacks import Launcher
from sheetgen.errors import ScenarioError
from sheetgen.formula import Quantity, formula, ratio, round_down, round_up
from sheetgen.program.row_program import ROW
from sheetgen.question.deployment import DEFAULTS, Resolved
from sheetgen.units import DTYPES, GIB, PUBLISHED, UNQUANTIZED

MOST_TRIED = 64  # numbers of sequences tried at once
# Inputs that apply only to the engine they were typed for.
ENGINES_OWN = ("engine_version", "gpu_memory_utilization", "block_size", "hybrid_kv_manager")


@formula("Left outside the pool")
def left_outside_bytes_per_gpu(
    gpu_memory_bytes: Quantity,
    context_bytes: Quantity,
    loaded_weights_bytes_per_gpu: Quantity,
    overhead_bytes_per_gpu: Quantity,
    kv_pool_bytes_per_gpu: Quantity,
) -> Quantity:
    """Memory of one GPU that neither the parts in the engine's budget nor its KV pool take, in bytes.

    Source: the KV pool's accounting (sizing/memory.py), read from the other side.
    """
    taken = loaded_weights_bytes_per_gpu + overhead_bytes_per_gpu + kv_pool_bytes_per_gpu
    return gpu_memory_bytes - context_bytes - taken


@formula("Needed outside the pool")
def needed_outside_bytes_per_gpu(
    activation_bytes_per_gpu: Quantity,
    cuda_graph_bytes_per_gpu: Quantity,
    activations_in_budget: Quantity,
    graphs_reserved: Quantity,
    uncharged_bytes: Quantity,
) -> Quantity:
    """Memory of one GPU that the engine uses outside its budget, in bytes: activations and CUDA graphs that it does not
    count, and memory that it counts nowhere.

    Source: catalogs/engines (activations_in_budget), graphs_reserved; catalogs/stacks.yaml (uncharged_gib).
    """
    activations = (1 - activations_in_budget) * activation_bytes_per_gpu
    return activations + (1 - graphs_reserved) * cuda_graph_bytes_per_gpu + uncharged_bytes


@formula("Sequences in a limit of tokens")
def sequences_in_tokens(limit_tokens: Quantity, max_model_len: Quantity, block_size: Quantity) -> Quantity:
    """The number of sequences of full length, in whole blocks, that a pool of a limited number of tokens holds.

    Source: TensorRT-LLM, max_tokens of KvCacheConfig. Check: 24,000 tokens, 2,048 each, blocks of 64: 11.
    """
    held: Quantity = round_down(ratio(limit_tokens, round_up(max_model_len / block_size) * block_size))
    return held


@dataclass(frozen=True)
class Trial:
    """One sized variant: its record (inputs and results), all its quantities, and the resolved names."""

    answer: RawRecord
    quantities: dict[str, float]
    names: Resolved
    fits: bool
    verdict: str
    left_outside_bytes: float
    needed_outside_bytes: float

    @property
    def n_gpus(self) -> int:
        return math.prod(self.answer[f"{kind}_parallel_size"] for kind in ("tensor", "pipeline", "data"))

    @property
    def runs(self) -> bool:
        """True if the engine runs on the GPU, and both precisions do."""
        return obstacle(self.names) is None

    @property
    def has_place_outside(self) -> bool:
        """True if the memory that the engine does not count fits beside the pool."""
        return self.left_outside_bytes >= self.needed_outside_bytes

    @property
    def holds(self) -> bool:
        """True if the engine starts, and the pool holds every sequence that max_num_seqs admits."""
        starts = self.quantities["max_concurrency"] >= 1  # with one request of max_model_len
        return self.runs and starts and self.quantities["sequences_in_pool"] >= self.quantities["max_num_seqs"]


def trials(
    rows: Sequence[RawMapping],
    launchers: Sequence[Launcher],
    catalog: Catalog,
    needed: Sequence[int] = (0,),
    longest: bool = False,
) -> list[Trial | None]:
    """The rows of inputs sized, each for its launcher; None for one that cannot be sized.

    Sizing a hundred rows in one go takes about as long as one. longest: compute the longest context that fits, too.
    Raises ScenarioError where one of the rows `needed` cannot be sized.
    """
    columns = {name: [row.get(name) for row in rows] for name in DEFAULTS}
    sized = size_columns(columns, len(rows), catalog, longest=longest)
    for error in (sized.points.errors[row] for row in needed):
        if error is not None:
            raise ScenarioError(*error.splitlines())
    of_good = [launchers[row] for row in sized.points.good.tolist()]
    names = sized.points.names
    judged = sized.grid.again({})
    judge(judged, names, sized.points.axis)
    fits, sentences = (judged.spread(name, ROW) for name in ("fits", "verdict"))
    charges = [(launcher.uncharged_gib, launcher.uncharged_gib_at_more_ranks) for launcher in of_good]
    alone, beside = numpy.array(charges).T
    uncharged = numpy.where(numpy.asarray(sized.known["tensor_parallel_size"]) > 1, beside, alone) * GIB
    quantities = {**sized.known, "uncharged_bytes": uncharged}
    left, used = left_outside_bytes_per_gpu.of(quantities), needed_outside_bytes_per_gpu.of(quantities)
    columns_of = {k: v for k, v in sized.known.items() if getattr(v, "ndim", 0) and v.dtype.kind in "fiub"}
    tried: list[Trial | None] = [None] * len(rows)
    for place, row in enumerate(sized.points.good.tolist()):
        numbers = {name: float(column[place]) for name, column in columns_of.items()}
        tried[row] = Trial(
            record(sized, row),
            numbers,
            names[place],
            bool(fits[place]),
            sentences[place],
            float(left[place]),
            float(used[place]),
        )
    return tried


@dataclass(frozen=True)
class Remedy:
    """A change of one input with which all requests fit, or fewer at a time; trial: the point with the change."""

    setting: str
    value: RawValue
    says: str
    trial: Trial | None = None


@dataclass(frozen=True)
class Checked:
    """The check of one point under one engine.

    requested: the point with every request admitted at once. printed: the point that the flags describe; None if no
    flags would start it. obstacles: the reasons why the engine cannot serve the point at all.
    """

    requested: Trial
    printed: Trial | None
    obstacles: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    loads_unquantized: bool = False

    @property
    def fits(self) -> bool:
        return self.requested.fits and not self.obstacles

    @property
    def verdict(self) -> str:
        if self.obstacles:
            return f"does not run: {'; '.join(self.obstacles)}."
        return self.requested.verdict


def checks(asked: Sequence[tuple[RawMapping, RawMapping, Launcher]], catalog: Catalog) -> list[Checked]:
    """The checks of some points, each given as the typed inputs, their record by `sheetgen size`, and the launcher."""
    rows = [_inputs_for(*point) for point in asked]
    pairs = [row for given in rows for row in (given, {**given, "weight_dtype": PUBLISHED})]
    launchers = [launcher for *_, launcher in asked for _ in range(2)]
    tried = trials(pairs, launchers, catalog, range(0, len(pairs), 2), longest=True)
    return [
        _checked(tried[2 * i], tried[2 * i + 1], rows[i], launcher, catalog) for i, (*_, launcher) in enumerate(asked)
    ]


def _inputs_for(requested: RawMapping, point: RawMapping, launcher: Launcher) -> RawRecord:
    """The inputs for a launcher: a typed version applies to its own engine alone; so do a share, a block size and a KV
    manager, but only if --engine was typed with them."""
    long = {SHORT_SPELLINGS.get(name, name): value for name, value in requested.items()}
    given = {name: value for name, value in long.items() if value is not None and name in DEFAULTS}
    for name in ENGINES_OWN if launcher.engine != point["engine"] else ():
        if name == "engine_version" or requested.get("engine") is not None:
            given.pop(name, None)
    given["engine"] = launcher.engine
    given.setdefault("max_num_seqs", math.ceil(point["concurrent_requests"] / point["data_parallel_size"]))
    return given


def _checked(
    first: Trial | None, unquantized: Trial | None, given: RawMapping, launcher: Launcher, catalog: Catalog
) -> Checked:
    """The check of a point: `first` is the trial as typed, `unquantized` the same with the published weights."""
    assert first is not None, "trials raises for it"
    loads = (
        unquantized is not None
        and unquantized.names.weight_dtype in UNQUANTIZED
        and unquantized.quantities["loaded_weights_bytes_per_gpu"] <= unquantized.quantities["memory_budget_bytes"]
    )
    obstacles = tuple(_obstacles(first, launcher))
    if obstacles:
        return Checked(first, None, obstacles, loads_unquantized=loads)
    printed = first if first.holds else _most_that_hold(first, given, launcher, catalog)
    remedies = () if first.fits else tuple(_remedies(first, printed, given, launcher, catalog))
    return Checked(first, printed, (), remedies, loads)


def _obstacles(first: Trial, launcher: Launcher) -> Iterator[str]:
    """The reasons why the engine cannot serve the point: no flag for an input, or a value that it does not support."""
    names, point, engine = first.names, first.answer, first.names.engine
    if names.gpu.vendor not in engine.vendors:
        yield f"{engine.name} does not run on {names.gpu.name}"
        return
    features = {"pipeline_parallel_size": "pipeline stages", "expert_parallel_size": "expert parallelism"}
    for size, feature in features.items():
        if point[size] > 1 and size not in launcher.flags:
            yield f"{engine.name} has no {feature} ({size} {point[size]})"
    if names.draft is not None and "draft_model" not in launcher.flags:
        yield f"{engine.name} takes no draft model"
    if names.weight_dtype not in launcher.weight_dtypes:
        yield f"{engine.name} loads no {names.weight_dtype} weights; it loads {', '.join(launcher.weight_dtypes)}"
    dtype, is_fp32 = names.kv_cache_dtype, names.weight_dtype == "fp32"
    if is_fp32 and dtype in ("bf16", "fp16"):
        yield f"{engine.name} keeps the cache of 32-bit weights in 32 bits: size it with --kv-cache-dtype fp32"
    elif is_fp32 and dtype == "fp32":
        pass  # as wide as the weights, which every engine supports
    elif dtype not in launcher.kv_cache_dtypes:
        yield f"{engine.name} keeps no KV cache in {dtype}; it keeps {', '.join(launcher.kv_cache_dtypes)}"
    elif names.gpu.vendor in engine.vendors and (why := refused_cache(names)):
        yield why.rstrip(".")
    if point["data_parallel_size"] > 1 and first.quantities["n_params_routed"]:
        size = point["tensor_parallel_size"]
        if "data_parallel_size" not in launcher.flags:
            yield f"{engine.name} shares no experts over data-parallel ranks"
        elif launcher.engine == "tensorrt-llm" and size > 1:  # its attention ranks are the tensor-parallel ones
            rest = f"(tensor_parallel_size {size})"
            yield f"{engine.name} shares experts over data-parallel ranks of one GPU each alone {rest}"


def _most_that_hold(first: Trial, given: RawMapping, launcher: Launcher, catalog: Catalog) -> Trial | None:
    """The point with the largest max_num_seqs whose sequences all fit the pool; None where not even one does.

    Fewer sequences leave a larger pool: the number that the pool holds now certainly fits, and the largest lies between
    it and the number that the pool of that smaller point holds.
    """
    least, most = int(first.quantities["sequences_in_pool"]), int(first.quantities["max_num_seqs"])
    low = trials([{**given, "max_num_seqs": max(1, min(least, most))}], [launcher], catalog)[0]
    if low is None or not low.holds:
        return None
    top = min(most, int(low.quantities["sequences_in_pool"]))
    bottom = int(low.quantities["max_num_seqs"])
    step = max(1, (top - bottom) // MOST_TRIED)
    rows = [{**given, "max_num_seqs": n} for n in range(bottom + 1, top + 1, step)]
    tried = trials(rows, [launcher] * len(rows), catalog) if rows else []
    return next((t for t in reversed(tried) if t is not None and t.holds), low)


def _remedies(
    first: Trial, printed: Trial | None, given: RawMapping, launcher: Launcher, catalog: Catalog
) -> Iterator[Remedy]:
    """Changes of one input each with which the point fits by the prediction."""
    point = first.answer
    requests = f"{point['concurrent_requests']:,} request{'' if point['concurrent_requests'] == 1 else 's'}"
    if printed is not None and printed.quantities["max_num_seqs"] < first.quantities["max_num_seqs"]:
        n = int(printed.quantities["max_num_seqs"])
        of_rank = " on each data-parallel rank" if point["data_parallel_size"] > 1 else ""
        yield Remedy("max_num_seqs", n, f"{n:,} at a time{of_rank}, the others wait", printed)
    variants = list(_variants(first, given, launcher))
    if not variants:
        return
    rows = [given, *(row for _, row, _ in variants)]
    tried = trials(rows, [launcher] * len(rows), catalog)[1:]
    done: set[str] = set()
    for (setting, row, says), trial in zip(variants, tried, strict=True):
        if setting in done or trial is None or any(_obstacles(trial, launcher)):
            continue
        if trial.fits and trial.has_place_outside:
            done.add(setting)
            yield Remedy(setting, row[setting], f"{requests} {says}", trial)
    fewest = point["min_gpus"]
    if fewest is not None and fewest > first.n_gpus and "tensor_parallel_size" not in done:
        yield Remedy("n_gpus", fewest, f"{requests} in {fewest:,} of these GPUs at the fewest")


def _variants(first: Trial, given: RawMapping, launcher: Launcher) -> Iterator[tuple[str, RawRecord, str]]:
    """Changes to try, the smallest of each setting first: the setting, the whole row of inputs, and its words."""
    point, names = first.answer, first.names
    now, most = (math.floor(round(100 * share, 6)) for share in (point["gpu_memory_utilization"], launcher.most_share))
    for percent in range(now + 1, most + 1):  # in whole percent
        yield "gpu_memory_utilization", {**given, "gpu_memory_utilization": percent / 100}, "at full length"
    for dtype in ("fp8", "int8"):
        smaller = DTYPES[dtype].kv_bytes < DTYPES[names.kv_cache_dtype].kv_bytes
        if smaller and dtype in launcher.kv_cache_dtypes and not refused_cache(replace(names, kv_cache_dtype=dtype)):
            yield "kv_cache_dtype", {**given, "kv_cache_dtype": dtype}, "at full length"
    longest = point["max_context_tokens_that_fit"]
    if longest and longest < point["context_tokens"]:
        output = min(point["output_tokens"], longest)
        cut = {"context_tokens": longest, "max_model_len": longest, "output_tokens": output, "input_tokens": None}
        yield "max_model_len", {**given, **cut}, f"of {longest:,} tokens"
    if point["max_model_len"] > point["context_tokens"]:
        yield "max_model_len", {**given, "max_model_len": point["context_tokens"]}, "at the context that was stated"
    if names.weight_dtype in UNQUANTIZED and "fp8" in launcher.weight_dtypes and known_checkpoint(names.model, "fp8"):
        yield "weight_dtype", {**given, "weight_dtype": "fp8"}, "at full length"
    size = point["tensor_parallel_size"]
    for more in (2, 4, 8):
        if more > size:
            yield "tensor_parallel_size", {**given, "tensor_parallel_size": more}, "at full length"


def known_checkpoint(model: Model, dtype: str) -> str | None:
    """The Hugging Face id of the model's checkpoint in a precision; None where none is known."""
    checkpoint = model.checkpoint(dtype)
    return checkpoint.hf_id if checkpoint else None
