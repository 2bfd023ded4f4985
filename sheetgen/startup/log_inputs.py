"""The sizing inputs of a deployment from a start-up log and the user's options, and notes on what is not sized."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sheetgen.catalog.base import RawMapping, RawRecord
from sheetgen.catalog.engines import load_engine
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import MTP, Model, without_precision
from sheetgen.catalog.stacks import StackFile
from sheetgen.errors import CatalogError, ScenarioError, SheetgenError, shown
from sheetgen.importer.model_names import resolve_model
from sheetgen.startup.printed_arguments import DTYPES, NOT_SIZED, QUANTIZATIONS, RENAMED, Value, pairs
from sheetgen.startup.startup_log import Measured, StartupLog
from sheetgen.units import GIB, KV_NOT_SIZED

NEAR = 0.01  # largest relative difference of memory by which a GPU is recognized
FAR = 0.2  # larger relative differences of weights or memory mean another model or GPU; real logs lie within 0.05
_COPY = re.compile(r"models--([\w.-]{1,96}?)--([\w.-]{1,96})")  # a folder of the Hugging Face cache
_NAME = re.compile(r"[\w.-]{1,96}(?:/[\w.-]{1,96})?")
DRAFTS = ("speculative_config", "speculative_algorithm")


@dataclass
class SizingInputs:
    """Inputs of `sheetgen.size`, and a sentence for each that the log does not state or that is not sized.

    named: the model that the log names. gpus: if the log names none, those with the memory that it states.
    """

    inputs: RawRecord
    named: Model | None = None
    gpus: tuple[str, ...] = ()
    not_stated: dict[str, str] = field(default_factory=dict)  # by input
    notes: list[str] = field(default_factory=list)
    not_sized: dict[str, str] = field(default_factory=dict)  # by argument
    problems: list[str] = field(default_factory=list)


def inputs_of(log: StartupLog, measured: Measured, options: RawMapping, catalog: Catalog) -> SizingInputs:
    """The inputs from the options, which take precedence, and the log.

    Raises ScenarioError where model or GPU cannot be determined.
    """
    sized = determined_inputs(log, measured, options, catalog)
    if sized.problems:
        raise ScenarioError(*sized.problems)
    return sized


def determined_inputs(log: StartupLog, measured: Measured, options: RawMapping, catalog: Catalog) -> SizingInputs:
    """The inputs from the options, which take precedence, and the log; where model or GPU cannot be determined, they
    are missing and `problems` says so."""
    given = {name: value for name, value in options.items() if value is not None}
    sized = SizingInputs({"engine": log.engine} | ({"engine_version": log.version} if log.version else {}))
    stated = {name: argument.value for name, argument in log.arguments.items()}
    for theirs, ours in RENAMED[log.engine].items():
        value = stated.get(theirs)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            sized.inputs[ours] = value
    _parallel(log.engine, stated, sized)
    if "model" not in given:
        _model(stated, catalog, sized)
    else:
        _precision(stated, str(given["model"]), catalog, sized)
    how, dtype = (str(stated.get(name) or "").lower() for name in ("quantization", "dtype"))
    if how in QUANTIZATIONS:
        sized.inputs.setdefault("weight_dtype", QUANTIZATIONS[how])
    elif "weight_dtype" not in sized.inputs and "32" in dtype:
        sized.inputs["weight_dtype"] = "fp32"
    cache = str(stated.get("kv_cache_dtype") or "").lower().removeprefix("torch.")
    if DTYPES.get(cache) == "auto":
        sized.inputs.setdefault("kv_cache_dtype", "auto")
    elif cache in DTYPES:
        sized.inputs["kv_cache_dtype"] = DTYPES[cache]
    elif cache:
        why = f"is not sized ({KV_NOT_SIZED[cache]})" if cache in KV_NOT_SIZED else "is not known here"
        sized.notes.append(f"kv_cache_dtype is {shown(cache)!r} in the log, which {why}; auto was taken.")
    if any("hisparse" in f"{name} {value}".lower() for name, value in stated.items() if value):
        sized.not_sized["hisparse"] = (
            "HiSparse keeps the KV cache in the host's memory; the prediction keeps it on the GPU."
        )
    if "gpu" not in given:
        _gpu(log, measured, catalog, sized)
    _own_draft(stated, given, catalog, sized)
    sized.inputs |= given
    if not {"max_model_len", "context", "context_tokens"} & given.keys():
        keep_within_limit(sized, catalog, "taken")
    context = sized.inputs.get("max_model_len")
    if context and not {"context", "context_tokens"} & given.keys():
        sized.inputs["context_tokens"] = context
    for name, why in NOT_SIZED.items():
        value = stated.get(name)
        if value in (None, False, 0, "", "{}", "[]", "None"):
            continue
        if name in DRAFTS and sized.inputs.get("draft_model"):
            continue
        if name == "speculative_config":
            inner = pairs(str(value))
            value = inner.get("method") or inner.get("model") or value
        sized.not_sized[name] = f"{name} is {shown(value)} in the log; {why}."
    return sized


def _own_draft(stated: Mapping[str, Value], given: RawMapping, catalog: Catalog, sized: SizingInputs) -> None:
    """Set the model's own layer as the draft, if the log says that it drafts and the layer can be sized."""
    drafting = pairs(str(stated.get("speculative_config") or ""))
    method = str(drafting.get("method") or stated.get("speculative_algorithm") or "").lower()
    name = given.get("model", sized.inputs.get("model"))
    if "draft_model" in given or name is None or not (method.endswith("mtp") or method == "nextn"):
        return
    try:
        resolve_model(str(name), catalog)[0].own_draft()
    except SheetgenError:
        return  # the argument is reported as not sized
    sized.inputs["draft_model"] = MTP
    words = ("num_speculative_tokens", "num_spec_tokens")
    n_tokens = next((drafting[word] for word in words if word in drafting), stated.get("speculative_num_steps"))
    counted = catalog.file(StackFile).speculative_tokens
    if n_tokens not in (None, counted):
        sized.notes.append(f"{n_tokens} tokens are drafted ahead in the log; {counted} were counted.")


def keep_within_limit(sized: SizingInputs, catalog: Catalog, done: str) -> None:
    """Limit max_model_len to the model's own maximum, which an engine may exceed, with a note; `done` is its verb."""
    length = sized.inputs.get("max_model_len")
    named = sized.inputs.get("model")
    limit = resolve_model(str(named), catalog)[0].max_context_tokens if length and named else None
    if length and limit and length > limit:
        sized.notes.append(f"max_model_len is {length:,.0f} in the log, over the model's {limit:,}, which was {done}.")
        sized.inputs["max_model_len"] = limit


def _model(stated: Mapping[str, Value], catalog: Catalog, sized: SizingInputs) -> None:
    """Set the catalog model that the log names; the log's text is only compared with names in the catalogs."""
    names = _stated_names(stated)
    for name in names:
        try:
            model, dtype = catalog.resolve_model(name)
        except CatalogError:
            continue
        sized.inputs["model"], sized.named = model.id, model
        if model.kv_cache_dtype != catalog.model(model.id).kv_cache_dtype:  # the checkpoint's own
            engine = load_engine(catalog, sized.inputs["engine"], sized.inputs.get("engine_version"))
            sized.inputs["kv_cache_dtype"] = engine.auto_kv_dtype(model.kv_cache_dtype)
        if dtype is not None:
            sized.inputs["weight_dtype"] = dtype
        limit = model.max_context_tokens  # None for a draft, which is refused later
        if "max_model_len" not in sized.inputs and limit:
            sized.inputs["max_model_len"] = limit
            sized.not_stated["max_model_len"] = f"max_model_len is not in the log; the model's {limit:,} was taken."
        return
    named = f"the log's model is {shown(names[0])!r}, which is not in the catalogs." if names else None
    sized.problems.append(f"{named or 'the log does not say which model was loaded.'} Add --model NAME.")


def _precision(stated: Mapping[str, Value], given: str, catalog: Catalog, sized: SizingInputs) -> None:
    """Set the precisions of the log's checkpoint for the model `given` in the options, unless the log names a model of
    another shape."""
    of_log = SizingInputs({name: sized.inputs.get(name) for name in ("engine", "engine_version")})
    _model(stated, catalog, of_log)
    try:
        same = {resolve_model(str(name), catalog)[0].entry_id for name in (given, of_log.inputs.get("model", given))}
    except SheetgenError:
        return  # an unknown model is refused when it is sized
    if len(same) > 1:
        return
    named = next((parted[1] for name in _stated_names(stated) if (parted := without_precision(name))), None)
    for name, dtype in (("weight_dtype", named), ("kv_cache_dtype", None)):
        if (precision := of_log.inputs.get(name, dtype)) is not None:
            sized.inputs.setdefault(name, precision)


def _stated_names(stated: Mapping[str, Value]) -> list[str]:
    """The log's names of its model, the most specific first."""
    keys = ("model", "model_path", "model_tag", "served_model_name")
    return list(dict.fromkeys(name for key in keys for name in _names(stated.get(key))))


def _names(value: Value) -> Iterator[str]:
    """The model names in a path, a Hugging Face id or a list of names."""
    for part in re.split(r"[\[\]', ]+", str(value or "")[:2000]):
        if copy := _COPY.search(part):
            yield f"{copy[1]}/{copy[2]}"
        plain = part.rstrip("/")
        yield from filter(_NAME.fullmatch, dict.fromkeys((plain, plain.rpartition("/")[2])))


def _parallel(engine: str, stated: Mapping[str, Value], sized: SizingInputs) -> None:
    """Set the parallel sizes and the settings that go with them, as vLLM counts GPUs: expert parallelism adds none, and
    SGLang's attention ranks are TP / DP."""
    size, ranks = sized.inputs.get("tensor_parallel_size", 1), sized.inputs.get("data_parallel_size", 1)
    if stated.get("enable_expert_parallel") is True:
        sized.inputs["expert_parallel_size"] = size * ranks
    if engine == "sglang" and stated.get("enable_dp_attention") is True and ranks > 1 and size % ranks == 0:
        sized.inputs["tensor_parallel_size"] = size // ranks
        sized.notes.append(f"DP attention: TP {size} with DP {ranks} is sized as TP {size // ranks}, DP {ranks}.")
    world = stated.get("world_size")
    if engine == "tensorrt-llm" and "tensor_parallel_size" not in sized.inputs and isinstance(world, int):
        sized.inputs["tensor_parallel_size"] = world
        words = f"tensor_parallel_size is not in the log; its {world} MPI ranks were taken."
        sized.not_stated["tensor_parallel_size"] = words
    if stated.get("enable_prefix_caching") is False:
        sized.inputs["enable_prefix_caching"] = 0
    if engine == "vllm":
        sized.inputs |= {name: 1 for name in ("enforce_eager", "skip_mm_profiling") if stated.get(name) is True}
        if stated.get("language_model_only") is True:
            sized.inputs["skip_mm_profiling"] = 1
    if stated.get("disable_hybrid_kv_cache_manager") is True:
        sized.inputs["hybrid_kv_manager"] = 0


def _gpu(log: StartupLog, measured: Measured, catalog: Catalog, sized: SizingInputs) -> None:
    """Set the GPU by its name in the log, else by the memory that the engine saw."""
    if log.gpu is not None:
        sized.inputs["gpu"] = log.gpu[0]
        return
    seen = measured.figures.get("gpu_memory_bytes")
    if seen is None:
        sized.problems.append("the log names no GPU and no total memory of one. Add --gpu NAME.")
        return
    size = f"{seen.value / GIB:.2f} GiB"
    off = {gpu.id: abs(gpu.memory.engine_bytes - seen.value) / gpu.memory.engine_bytes for gpu in catalog.gpus()}
    near = [name for share, name in sorted((share, name) for name, share in off.items()) if share <= NEAR]
    if not near:
        lacks = f"the log names no GPU, and its {size} are within 1 % of none in the catalogs."
        sized.problems.append(f"{lacks} Add --gpu NAME.")
        return
    sized.gpus = tuple(near)
    sized.inputs["gpu"], *others = near
    also = f" ({', '.join(others)} would do as well)" if others else ""
    sized.not_stated["gpu"] = f"gpu is not in the log; {near[0]} was taken by its memory of {size}{also}."


def contradictions(
    model: str, gpu: str, seen: Mapping[str, float], predicted: Mapping[str, float | None]
) -> Iterator[str]:
    """Sentences on measured figures (`seen`) that are impossible for the sized model and GPU."""
    memory, weights, pool = (
        (seen.get(f"{name}_bytes{per}"), predicted[f"{name}_bytes{per}"] or 0)
        for name, per in (("gpu_memory", ""), ("weights", "_per_gpu"), ("kv_pool", "_per_gpu"))
    )
    if memory[0] and abs(memory[0] / memory[1] - 1) > FAR:
        saw = f"the engine saw {memory[0] / GIB:,.2f} GiB"
        yield f"{saw}, and {gpu} has {memory[1] / GIB:,.2f}: another GPU? --gpu NAME"
    elif pool[0] and pool[0] > memory[1]:
        yield (
            f"a KV pool of {pool[0] / GIB:,.2f} GiB cannot be on {gpu}, which has {memory[1] / GIB:,.2f}: "
            "another GPU? --gpu NAME"
        )
    if weights[0] and abs(weights[1] / weights[0] - 1) > FAR:
        why = "quantized (--weight-dtype), split over more GPUs, or another model?"
        if weights[1] < weights[0]:
            why = "another model, a wider --weight-dtype, or split over fewer GPUs?"
        yield (
            f"the weights of {model} are {weights[1] / GIB:,.2f} GiB a GPU as sized, and {weights[0] / GIB:,.2f} in "
            f"the log: {why}"
        )
