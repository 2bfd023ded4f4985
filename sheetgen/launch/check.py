"""One engine's flags checked: the same point under that engine's accounting, and what would make it fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.stacks import Launcher
from sheetgen.launch.served import UNQUANTIZED, known_checkpoint
from sheetgen.launch.trial import Trial, inputs_for, trials
from sheetgen.units import DTYPES

MOST_TRIED = 64  # numbers of sequences tried at once


@dataclass(frozen=True)
class Offer:
    """A change of one input with which all requests fit, or fewer at a time; trial: the point as it is then."""

    setting: str
    value: Any
    says: str
    trial: Trial | None = None


@dataclass(frozen=True)
class Checked:
    """asked: the point with every request admitted at once. printed: the point that the flags describe, None where
    nothing that they could say would start. obstacles: why the engine cannot take the point at all."""

    asked: Trial
    printed: Trial | None
    obstacles: tuple[str, ...] = ()
    offers: tuple[Offer, ...] = ()
    loads_unquantized: bool = False

    @property
    def fits(self) -> bool:
        return self.asked.fits and not self.obstacles

    @property
    def verdict(self) -> str:
        if self.obstacles:
            return f"does not run: {'; '.join(self.obstacles)}."
        return self.asked.verdict


def check(asked: Mapping[str, Any], point: Mapping[str, Any], launcher: Launcher, catalog: Catalog) -> Checked:
    """`asked` holds the inputs as typed, `point` the record of the same point as `sheetgen size` sized it."""
    given = inputs_for(launcher.engine, asked, point)
    ranks = point["data_parallel_size"]
    wanted = math.ceil(point["concurrent_requests"] / ranks)
    given.setdefault("max_num_seqs", wanted)
    plain = {**given, "weight_dtype": "auto"}
    first, unquantized = trials([given, plain], launcher, catalog)
    assert first is not None
    loads = (
        unquantized is not None
        and unquantized.names.weight_dtype in UNQUANTIZED
        and unquantized.known["loaded_weights_bytes_per_gpu"] <= unquantized.known["memory_budget_bytes"]
    )
    obstacles = tuple(_obstacles(first, launcher))
    if obstacles:
        return Checked(first, None, obstacles, loads_unquantized=loads)
    printed = first if first.holds else _most_that_hold(first, given, launcher, catalog)
    offers = () if first.fits else tuple(_offers(first, printed, given, launcher, catalog))
    return Checked(first, printed, (), offers, loads)


def _obstacles(first: Trial, launcher: Launcher) -> Iterator[str]:
    """What the engine cannot be told, or does not take."""
    names, point, engine = first.names, first.answer, first.names.engine
    if names.gpu.vendor not in engine.vendors:
        yield f"{engine.name} does not run on {names.gpu.name}"
        return
    for size, what in (("pipeline_parallel_size", "pipeline stages"), ("expert_parallel_size", "expert parallelism")):
        if point[size] > 1 and size not in launcher.flags:
            yield f"{engine.name} has no {what} ({size} {point[size]})"
    if names.draft is not None and "draft_model" not in launcher.flags:
        yield f"{engine.name} takes no draft model"
    if names.weight_dtype not in launcher.weight_dtypes:
        loads = ", ".join(launcher.weight_dtypes)
        yield f"{engine.name} loads no {names.weight_dtype} weights; it loads {loads}"
    yield from _cache_obstacles(first, launcher)
    if point["data_parallel_size"] > 1 and first.known["n_params_routed"] and not _shares_experts(first, launcher):
        yield (
            f"{engine.name} shares experts over data-parallel ranks of one GPU each alone"
            f" (tensor_parallel_size {point['tensor_parallel_size']})"
            if "data_parallel_size" in launcher.flags
            else f"{engine.name} shares no experts over data-parallel ranks"
        )


def _shares_experts(first: Trial, launcher: Launcher) -> bool:
    """TensorRT-LLM's attention ranks are its tensor-parallel ones: none of them can have a TP of its own."""
    if "data_parallel_size" not in launcher.flags:
        return False
    return launcher.engine != "tensorrt-llm" or first.answer["tensor_parallel_size"] == 1


def _cache_obstacles(first: Trial, launcher: Launcher) -> Iterator[str]:
    names, engine = first.names, first.names.engine
    dtype, version = names.kv_cache_dtype, engine.default_version
    if names.weight_dtype == "fp32" and dtype in ("bf16", "fp16"):
        yield f"{engine.name} keeps the cache of 32-bit weights in 32 bits: size it with --kv-cache-dtype fp32"
    elif dtype == "fp32" and names.weight_dtype == "fp32":
        return
    elif dtype not in launcher.kv_cache_dtypes:
        keeps = ", ".join(launcher.kv_cache_dtypes)
        yield f"{engine.name} keeps no KV cache in {dtype}; it keeps {keeps}"
    elif not launcher.keeps(dtype, version):
        yield f"{engine.name} {version} keeps no KV cache in {dtype}; {launcher.kv_cache_from[dtype]} and later do"


def _most_that_hold(first: Trial, given: Mapping[str, Any], launcher: Launcher, catalog: Catalog) -> Trial | None:
    """The point with the largest max_num_seqs whose sequences all have their cache; None where not one has.

    Fewer sequences leave a larger pool, so what the pool holds now is a number that surely holds, and the largest lies
    between it and what the pool holds then.
    """
    least, most = int(first.known["sequences_in_pool"]), int(first.known["max_num_seqs"])
    low = trials([{**given, "max_num_seqs": max(1, min(least, most))}], launcher, catalog)[0]
    if low is None or not low.holds:
        return None
    top = min(most, int(low.known["sequences_in_pool"]))
    bottom = int(low.known["max_num_seqs"])
    step = max(1, (top - bottom) // MOST_TRIED)
    rows = [{**given, "max_num_seqs": n} for n in range(bottom + 1, top + 1, step)]
    tried = trials(rows, launcher, catalog) if rows else []
    return next((t for t in reversed(tried) if t is not None and t.holds), low)


def _offers(
    first: Trial, printed: Trial | None, given: Mapping[str, Any], launcher: Launcher, catalog: Catalog
) -> Iterator[Offer]:
    """Changes of one input each, sized like the point itself: only what the prediction says would fit is offered."""
    point = first.answer
    requests = f"{point['concurrent_requests']:,} request{'' if point['concurrent_requests'] == 1 else 's'}"
    if printed is not None and printed.known["max_num_seqs"] < first.known["max_num_seqs"]:
        n = int(printed.known["max_num_seqs"])
        each = " on each data-parallel rank" if point["data_parallel_size"] > 1 else ""
        yield Offer("max_num_seqs", n, f"{n:,} at a time{each}, the others wait", printed)
    variants = list(_variants(first, given, launcher))
    if not variants:
        return
    tried = trials([given, *(row for _, row, _ in variants)], launcher, catalog)[1:]
    done: set[str] = set()
    for (setting, row, says), trial in zip(variants, tried, strict=True):
        if setting in done or trial is None or any(_obstacles(trial, launcher)):
            continue
        if trial.fits and trial.is_roomy:
            done.add(setting)
            yield Offer(setting, row[setting], f"{requests} {says}", trial)
    if point["min_gpus"] is not None and "tensor_parallel_size" not in done:
        n_gpus = point["tensor_parallel_size"] * point["pipeline_parallel_size"] * point["data_parallel_size"]
        if point["min_gpus"] > n_gpus:
            yield Offer("n_gpus", point["min_gpus"], f"{requests} in {point['min_gpus']:,} of these GPUs at the fewest")


def _variants(first: Trial, given: Mapping[str, Any], launcher: Launcher) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Inputs to try, the mildest change of each setting first: the setting, the whole row, what to say of it."""
    point, names = first.answer, first.names
    now, most = (math.floor(round(100 * one, 6)) for one in (point["gpu_memory_utilization"], launcher.most_share))
    for percent in range(now + 1, most + 1):  # nobody types a finer share
        yield "gpu_memory_utilization", {**given, "gpu_memory_utilization": percent / 100}, "at full length"
    for dtype in ("fp8", "int8"):
        smaller = DTYPES[dtype].kv_bytes < DTYPES[names.kv_cache_dtype].kv_bytes
        if smaller and launcher.keeps(dtype, names.engine.default_version):
            yield "kv_cache_dtype", {**given, "kv_cache_dtype": dtype}, "at full length"
    longest = point["max_context_tokens_that_fit"]
    if longest and longest < point["context_tokens"]:
        output = min(point["output_tokens"], longest)
        cut = {"context_tokens": longest, "max_model_len": longest, "output_tokens": output, "input_tokens": None}
        yield "max_model_len", {**given, **cut}, f"of {longest:,} tokens"
    if point["max_model_len"] > point["context_tokens"]:
        yield "max_model_len", {**given, "max_model_len": point["context_tokens"]}, "at the context that was asked for"
    if names.weight_dtype in UNQUANTIZED and "fp8" in launcher.weight_dtypes and known_checkpoint(names.model, "fp8"):
        yield "weight_dtype", {**given, "weight_dtype": "fp8"}, "at full length"
    size = point["tensor_parallel_size"]
    for more in (2, 4, 8):
        if more > size:
            yield "tensor_parallel_size", {**given, "tensor_parallel_size": more}, "at full length"
