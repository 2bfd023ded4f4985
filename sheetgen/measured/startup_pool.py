"""The KV pool that an engine printed in its start-up log, and its settings."""

from __future__ import annotations

from pathlib import Path

from sheetgen.catalog.load import Catalog
from sheetgen.errors import SheetgenError
from sheetgen.measured.measured_point import NAMES, OF_START, SIZES, MeasuredPool, Reading, Unusable
from sheetgen.startup.log_inputs import determined_inputs
from sheetgen.startup.printed_arguments import ENGINE_NAMES
from sheetgen.startup.startup_log import StartupLog, measure, read_log

OF_POOL = ("kv_pool_bytes_per_gpu", "kv_tokens")
STATES = "ssm_state_bytes_per_gpu"  # SGLang counts them beside its pool, the prediction inside it
WHOLE = ("expert_parallel_size", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size", "kv_tokens")


def startup_log_at(path: Path, catalog: Catalog) -> StartupLog | None:
    """The start-up log in a file; None for any other file, or a log without measurements."""
    try:
        log = read_log(str(path), catalog)
    except SheetgenError:
        return None
    return log if log.figures else None


def pool_of_log(log: StartupLog, source: str, catalog: Catalog) -> Reading:
    """The pool in a log; Unusable if there is none, or if it is not the memory left by weights and peaks."""
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
    if len(told.gpus) > 1:  # several GPUs have this memory
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
    """A log in words: `a start of vLLM 0.19.0`."""
    engine = ENGINE_NAMES[log.engine]
    return f"a start of {engine} {log.version}" if log.version else f"a start of {engine}"
