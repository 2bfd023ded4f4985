"""A start-up log's KV pool: what the engine printed that it left for the cache, and what it was told."""

from __future__ import annotations

from pathlib import Path

from sheetgen.catalog.base import is_file
from sheetgen.catalog.load import Catalog
from sheetgen.errors import SheetgenError
from sheetgen.measured.measured_point import NAMES, OF_START, SIZES, MeasuredPool, Reading, Unusable
from sheetgen.startup.log_inputs import determined_inputs
from sheetgen.startup.printed_arguments import ENGINE_NAMES
from sheetgen.startup.startup_log import StartupLog, measure, read_log

OF_POOL = ("kv_pool_bytes_per_gpu", "kv_tokens")
STATES = "ssm_state_bytes_per_gpu"  # of SGLang beside its pool, which the prediction has within it
WHOLE = ("expert_parallel_size", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size", "kv_tokens")


def startup_log_at(path: Path, catalog: Catalog) -> StartupLog | None:
    """The start-up log in a file; None where it is none that measured anything."""
    if not is_file(str(path)):
        return None
    try:
        log = read_log(str(path), catalog)
    except SheetgenError:
        return None
    return log if log.figures else None


def pool_of_log(log: StartupLog, source: str, catalog: Catalog) -> Reading:
    """The pool that a log printed; unusable where it is not what weights and peaks left, or where it printed none."""
    measured = measure(log)
    seen = {name: figure.value for name, figure in measured.figures.items()}
    if STATES in log.figures:
        del seen["kv_pool_bytes_per_gpu"]
    told = determined_inputs(log, measured, {}, catalog)
    if not any(seen.get(name, 0) > 0 for name in OF_POOL):
        return Unusable(source, "it does not say how large the KV pool is")
    if told.inputs.get("kv_cache_memory_bytes"):
        return Unusable(source, "its pool was set outright, whatever was free")
    if told.inputs.get("enforce_eager"):
        return Unusable(source, "the engine keeps no CUDA graphs, which the prediction may err on")
    if told.not_sized:
        return Unusable(source, "; ".join(why.rstrip(".") for why in told.not_sized.values()))
    inputs = {**dict.fromkeys(SIZES, 1), **told.inputs, **{name: seen[name] for name in OF_POOL if name in seen}}
    if len(told.gpus) > 1:  # by its memory it may be any of them
        del inputs["gpu"]
    for name in (*SIZES, *WHOLE):
        if name in inputs:
            inputs[name] = int(inputs[name])
    return MeasuredPool(
        source=source,
        weights_bytes_per_gpu=seen.get("weights_bytes_per_gpu"),
        gpu_memory_bytes=seen.get("gpu_memory_bytes"),
        **{name: inputs[name] for name in (*NAMES, *SIZES, *OF_POOL, *OF_START) if name in inputs},
    )


def called(log: StartupLog) -> str:
    """A log, as a person calls it."""
    engine = ENGINE_NAMES[log.engine]
    return f"a start of {engine} {log.version}" if log.version else f"a start of {engine}"
