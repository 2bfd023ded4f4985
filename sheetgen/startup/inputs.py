"""What is sized for a start-up log: its arguments in our words, the options given, and what is in neither."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model
from sheetgen.catalog.names import stem, without_precision
from sheetgen.errors import ScenarioError, shown
from sheetgen.startup.read import Measured, StartupLog
from sheetgen.startup.words import DTYPES, QUANTIZATIONS, RENAMED, Value, pairs
from sheetgen.units import GIB

NEAR = 0.01  # a GPU is recognized by its memory where the log's figure is this near
_COPY = re.compile(r"models--([\w.-]{1,96}?)--([\w.-]{1,96})")  # a folder of the Hugging Face cache
_NAME = re.compile(r"[\w.-]{1,96}(?:/[\w.-]{1,96})?")
_STATED = (
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "gpu_memory_utilization",
    "max_model_len", "max_num_seqs", "max_num_batched_tokens", "kv_cache_dtype", "engine_version",
)  # fmt: skip


NOT_SIZED = {
    "enforce_eager": "the engine keeps no CUDA graphs, the prediction does",
    "disable_cuda_graph": "the engine keeps no CUDA graphs, the prediction does",
    "cpu_offload_gb": "the prediction keeps all weights on the GPU",
    "kv_cache_memory_bytes": "the engine takes this pool whatever is free",
    "num_gpu_blocks_override": "the engine takes these blocks whatever is free",
    "max_total_tokens": "the engine takes no more tokens than this",
    "enable_lora": "adapters are not in the prediction",
    "lora_paths": "adapters are not in the prediction",
    "speculative_config": "the draft is not in the prediction; name it with --draft-model",
    "speculative_algorithm": "the draft is not in the prediction; name it with --draft-model",
}


@dataclass
class SizingInputs:
    """Inputs of `sheetgen.size`, and one sentence for each that the log does not state or that is not sized."""

    inputs: dict[str, Any] = field(default_factory=dict)
    not_stated: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def inputs_of(log: StartupLog, measured: Measured, options: Mapping[str, Any], catalog: Catalog) -> SizingInputs:
    """Inputs from the options, which win, and the log. Raises ScenarioError where model or GPU cannot be determined."""
    given = {name: value for name, value in options.items() if value is not None}
    sized = SizingInputs({"engine": log.engine} | ({"engine_version": log.version} if log.version else {}))
    stated = {name: argument.value for name, argument in log.arguments.items()}
    for theirs, ours in RENAMED[log.engine].items():
        value = stated.get(theirs)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            sized.inputs[ours] = value
    _parallel(log.engine, stated, sized)
    problems: list[str] = []
    if "model" not in given:
        model = _model(stated, catalog, sized, problems)
        if model is not None and "max_model_len" not in sized.inputs:
            sized.inputs["max_model_len"] = model.max_context_tokens
            sized.not_stated.append(
                f"max_model_len is not in the log; the model's {model.max_context_tokens:,} was taken."
            )
    _dtypes(stated, sized)
    if "gpu" not in given:
        _gpu(log, measured, catalog, sized, problems)
    if problems:
        raise ScenarioError(*problems)
    sized.inputs |= given
    _within_limit(sized, given, catalog)
    context = sized.inputs.get("max_model_len")
    if context and not {"context", "context_tokens"} & given.keys():
        sized.inputs["context_tokens"] = context
    sized.notes += [f"{name} is {shown(value)} in the log; {why}." for name, value, why in _not_sized(stated)]
    return sized


def _within_limit(sized: SizingInputs, given: Mapping[str, Any], catalog: Catalog) -> None:
    """An engine may allow some tokens more than the model's config does: size the model's own limit, and say so."""
    if {"max_model_len", "context", "context_tokens"} & given.keys() or "max_model_len" not in sized.inputs:
        return
    limit = catalog.model(str(sized.inputs["model"])).max_context_tokens
    length = sized.inputs["max_model_len"]
    if limit is not None and length > limit:
        sized.notes.append(f"max_model_len is {length:,.0f} in the log, over the model's {limit:,}, which was taken.")
        sized.inputs["max_model_len"] = limit


def name_defaults(sized: SizingInputs, used: Mapping[str, Any]) -> None:
    """Name each input that neither the log nor an option stated, with the value that was taken."""
    for name in _STATED:
        if name not in sized.inputs and not any(line.startswith(name) for line in sized.not_stated):
            sized.not_stated.append(f"{name} is not in the log; {used[name]} was taken.")


def _model(stated: Mapping[str, Value], catalog: Catalog, sized: SizingInputs, problems: list[str]) -> Model | None:
    """The catalog model that the log names; its text is only ever compared with the names in the catalogs."""
    names = [n for key in ("model", "model_path", "model_tag", "served_model_name") for n in _names(stated.get(key))]
    known = {name for folder in catalog.folders for name in folder.index.models}
    for name in dict.fromkeys(names):
        low = name.lower()
        shorter = without_precision(low)
        keys = (low, stem(low), *((shorter[0], stem(shorter[0])) if shorter else ()))
        if known.isdisjoint(keys):
            continue
        model, dtype = catalog.resolve_model(name)
        sized.inputs["model"] = model.id
        if dtype is not None:
            sized.inputs["weight_dtype"] = dtype
        return model
    if names:
        problems.append(f"the log's model is {shown(names[0])!r}, which is not in the catalogs. Add --model NAME.")
    else:
        problems.append("the log does not say which model was loaded. Add --model NAME.")
    return None


def _names(value: Value) -> Iterator[str]:
    """Names that a path, a Hugging Face id or a list of names may stand for."""
    for part in re.split(r"[\[\]', ]+", str(value or "")[:2000]):
        if copy := _COPY.search(part):
            yield f"{copy[1]}/{copy[2]}"
        plain = part.rstrip("/")
        if _NAME.fullmatch(plain):
            yield plain
        if "/" in plain and _NAME.fullmatch(plain.rsplit("/", 1)[-1]):
            yield plain.rsplit("/", 1)[-1]


def _dtypes(stated: Mapping[str, Value], sized: SizingInputs) -> None:
    how = str(stated.get("quantization") or "").lower()
    if how in QUANTIZATIONS:
        sized.inputs.setdefault("weight_dtype", QUANTIZATIONS[how])
    elif "weight_dtype" not in sized.inputs and "32" in str(stated.get("dtype") or ""):
        sized.inputs["weight_dtype"] = "fp32"
    cache = str(stated.get("kv_cache_dtype") or "").lower().removeprefix("torch.")
    if cache in DTYPES:
        sized.inputs["kv_cache_dtype"] = DTYPES[cache]
    elif cache:
        sized.notes.append(f"kv_cache_dtype is {shown(cache)!r} in the log, which is not known here; auto was taken.")


def _parallel(engine: str, stated: Mapping[str, Value], sized: SizingInputs) -> None:
    """GPUs as vLLM counts them: expert parallelism adds none, SGLang's attention ranks are TP / DP."""
    size, ranks = sized.inputs.get("tensor_parallel_size", 1), sized.inputs.get("data_parallel_size", 1)
    if stated.get("enable_expert_parallel") is True:
        sized.inputs["expert_parallel_size"] = size * ranks
    if engine == "sglang" and stated.get("enable_dp_attention") is True and ranks > 1 and size % ranks == 0:
        sized.inputs["tensor_parallel_size"] = size // ranks
        sized.notes.append(f"DP attention: TP {size} with DP {ranks} is sized as TP {size // ranks}, DP {ranks}.")
    world = stated.get("world_size")
    if engine == "tensorrt-llm" and "tensor_parallel_size" not in sized.inputs and isinstance(world, int):
        sized.inputs["tensor_parallel_size"] = world
        sized.not_stated.append(f"tensor_parallel_size is not in the log; its {world} MPI ranks were taken.")
    if stated.get("enable_prefix_caching") is False:
        sized.inputs["enable_prefix_caching"] = 0
    if stated.get("disable_hybrid_kv_cache_manager") is True:
        sized.inputs["hybrid_kv_manager"] = 0


def _gpu(log: StartupLog, measured: Measured, catalog: Catalog, sized: SizingInputs, problems: list[str]) -> None:
    """By its name in the log, else by the memory that the engine saw."""
    if log.gpu is not None:
        sized.inputs["gpu"] = log.gpu[0]
        return
    seen = measured.figures.get("gpu_memory_bytes")
    if seen is None:
        problems.append("the log names no GPU and no total memory of one. Add --gpu NAME.")
        return
    off = {gpu.id: abs(gpu.memory.engine_bytes - seen.value) / gpu.memory.engine_bytes for gpu in catalog.gpus()}
    near = sorted((share, name) for name, share in off.items() if share <= NEAR)
    if not near:
        size = f"{seen.value / GIB:.2f} GiB"
        problems.append(f"the log names no GPU, and its {size} are within 1 % of none in the catalogs. Add --gpu NAME.")
        return
    sized.inputs["gpu"] = near[0][1]
    others = ", ".join(name for _, name in near[1:])
    sized.not_stated.append(
        f"gpu is not in the log; {near[0][1]} was taken by its memory of {seen.value / GIB:.2f} GiB"
        + (f" ({others} would do as well)." if others else ".")
    )


def _not_sized(stated: Mapping[str, Value]) -> Iterator[tuple[str, Value, str]]:
    for name, why in NOT_SIZED.items():
        value = stated.get(name)
        if value not in (None, False, 0, "", "{}", "[]", "None"):
            if name == "speculative_config":
                inner = pairs(str(value))
                value = inner.get("method") or inner.get("model") or value
            yield name, value, why
