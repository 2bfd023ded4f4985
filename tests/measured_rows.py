"""Measured runs and public start-up logs (tests/data/measured) as deployments, and what sheetgen predicts for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import pandas
from numpy.typing import NDArray

from sheetgen.catalog import Catalog
from sheetgen.program.grid import Column, Grid, evaluate
from sheetgen.program.quantities import CHARGE, MODEL, POOL, SHARD, TOKENS, all_of
from sheetgen.program.row_program import DEPLOYMENT, ROW, evaluate_deployments
from sheetgen.question.deployment import DEFAULTS, complete
from sheetgen.sizing import draft, memory
from sheetgen.units import DTYPES, GIB

Floats = NDArray[numpy.float64]
Flags = NDArray[numpy.bool_]
Columns = dict[str, Floats]  # by a quantity's name

DATA = Path(__file__).parent / "data" / "measured"
V1 = (0, 9)  # from this version on the engine has its new core: prompts in batches, more sequences
V0_LONGEST_BATCH = 32_768  # before it, a whole prompt was one batch up to this length
V0_SEQUENCES = 256
# State blocks that admission charges a recurrent group: one more from 0.21 on ("align" mode of the prefix cache).
STATE_BLOCKS = ((0, 21), 2)
CONV_TOKENS = 3  # tokens of a convolution's state: its kernel of 4 less one; each drafted token adds one
ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
PRECISIONS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}


def tuples(frame: pandas.DataFrame) -> Iterable[Any]:
    """A frame's rows, their columns by name; no type knows what a CSV holds."""
    return frame.itertuples()


def deployment(values: Mapping[str, Column]) -> Columns:
    """Every quantity of deployments whose facts are in `values`, numbers or columns of one length."""
    grid = Grid.over(row=max((len(column) for column in values.values() if numpy.ndim(column)), default=1))
    grid.put(ROW, values)
    evaluate_deployments(grid)
    return {name: columns[-1][1] for name, columns in grid.columns.items()}


def h100_rows() -> pandas.DataFrame:
    """The runs of vLLM on H100, each completed with the deployment that it was."""
    rows = pandas.read_csv(DATA / "vllm_h100_measured.csv", dtype={"engine_version": str})
    quantized = rows["model"].str.contains("quantized") | rows["quantization"].notna()
    weight = rows["quantization"].where(rows["quantization"].notna(), "auto")
    rows["weight_dtype"] = weight.where(quantized, rows["dtype"].replace(PRECISIONS))
    # An "auto" cache has the type that the model runs in.
    runs_in = rows["dtype"].replace(PRECISIONS)
    rows["kv_cache_dtype"] = rows["kv_cache_dtype"].where(rows["kv_cache_dtype"] != "auto", runs_in)
    rows = rows.rename(
        columns={"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size"}
    )
    rows["id"] = [f"{name.split('/')[1]}-{i}" for i, name in enumerate(rows["model"], 1)]
    return rows


def log_rows() -> pandas.DataFrame:
    """The public start-up logs. What engine_logs_rows.csv says of a row stands in for, or over, what the log says."""
    logs = pandas.read_csv(DATA / "engine_logs.csv", dtype={"engine_version": str, "kv_cache_dtype": str})
    rows = pandas.read_csv(DATA / "engine_logs_rows.csv", dtype={"engine_version": str, "kv_cache_dtype": str})
    logs = logs.rename(
        columns={"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size"}
    )
    if list(logs["id"]) != list(rows["id"]):
        raise ValueError("engine_logs_rows.csv has other rows than engine_logs.csv")
    logs["logged_model"] = logs["model"]
    logs["engine_version"] = logs["engine_version"].map(_plain_version)
    logs["weight_dtype"] = "auto"
    logs["kv_cache_dtype"] = logs["kv_cache_dtype"].where(logs["kv_cache_dtype"].isin(DTYPES), "auto")
    logs["gpu"] = "h100"
    logs["enforce_eager"] = (logs["enforce_eager"].astype(str) == "True").astype(int)
    for name in rows.columns:
        logs[name] = rows[name].where(rows[name].notna(), logs[name]) if name in logs else rows[name]
    return logs


def _plain_version(text: str | float) -> str | None:
    """0.29.1 of 0.29.1rc1.dev17; nothing of a nightly build's hash."""
    match = re.match(r"\d+\.\d+\.\d+", str(text))
    return match[0] if match else None


def _numbers(text: str | float | None) -> tuple[int, ...]:
    return tuple(int(n) for n in str(text).split(".")[:2]) if text == text and text else V1


def predict(rows: pandas.DataFrame, catalog: Catalog) -> pandas.DataFrame:
    """Every quantity of sheetgen's sizing for deployments with the inputs' names as columns.

    `headless_` quantities are those of a pipeline stage without the output head. Raises ValueError with all rows
    that cannot be sized.
    """
    evaluated = _evaluated(rows, catalog, deployment)
    headless = _evaluated(rows, catalog, _stage_without_head)
    for name in ("activation_bytes_per_gpu", "kv_pool_bytes_per_gpu"):
        evaluated[f"headless_{name}"] = headless[name]
    # From 0.26 on the printed peak of activations holds the estimate of the CUDA graphs.
    inside = numpy.array([_numbers(text) >= (0, 26) for text in rows["engine_version"]], bool)
    inside &= (rows["engine"] == "vllm").to_numpy()
    evaluated["activation_bytes_per_gpu"] += numpy.where(
        inside, evaluated["graphs_reserved"] * evaluated["cuda_graph_bytes_per_gpu"], 0
    )
    # The second runner's tables are held before the profile run, and logged as consumed beside the weights.
    evaluated["activation_bytes_per_gpu"] -= evaluated["sampler_table_bytes"]
    evaluated["non_torch_bytes_per_gpu"] += evaluated["sampler_table_bytes"]
    return evaluated


def predict_tokens(rows: pandas.DataFrame, catalog: Catalog) -> pandas.DataFrame:
    """kv_tokens and max_concurrency that sheetgen prints for the pool that the log states."""
    vllm = rows["engine"] == "vllm"
    kinds = ((rows[vllm], _tokens_of_pool), (rows[~vllm], _plain_tokens))
    parts = [_evaluated(part, catalog, sizing) for part, sizing in kinds if len(part)]
    return pandas.concat(parts).reindex(rows.index)


def _evaluated(rows: pandas.DataFrame, catalog: Catalog, sizing: Callable[[Columns], Columns]) -> pandas.DataFrame:
    inputs: dict[str, Sequence[str] | Floats] = {name: rows[name].to_numpy() for name in DEFAULTS if name in rows}
    inputs["engine"] = [ENGINES[name] if sizing is not _plain_tokens else "vllm" for name in rows["engine"]]
    inputs["context_tokens"] = rows["max_model_len"].fillna(DEFAULTS["context_tokens"]).to_numpy()
    for name, value in _before_v1(rows).items():
        inputs[name] = value
    points = complete(inputs, len(rows), catalog)
    bad = [f"{name}: {error}" for name, error in zip(rows["id"], points.errors, strict=True) if error]
    if bad:
        raise ValueError("rows that cannot be sized:\n" + "\n".join(bad))
    weights = _loaded_parts(rows, points.values, catalog)
    given = {**points.values, **_as_logged(rows, points.values), **weights}
    values = sizing(evaluate(DEPLOYMENT["given"].quantities, given))
    return pandas.DataFrame({name: numpy.broadcast_to(c, len(rows)) for name, c in values.items()}, index=rows.index)


def _before_v1(rows: pandas.DataFrame) -> dict[str, Floats]:
    """The batch limits that old versions took where none were given."""
    versions = zip(rows["engine"], rows["engine_version"], strict=True)
    old = numpy.array([engine == "vllm" and _numbers(text) < V1 for engine, text in versions], bool)
    length = rows["max_model_len"].fillna(DEFAULTS["context_tokens"])
    batch = length.clip(lower=2048).where(length <= V0_LONGEST_BATCH, 2048)
    limits: dict[str, Floats] = {}
    for name, value in (("max_num_seqs", V0_SEQUENCES), ("max_num_batched_tokens", batch)):
        given = rows[name] if name in rows else pandas.Series(numpy.nan, rows.index)
        limits[name] = numpy.asarray(given.where(given.notna() | ~old, value), float)
    return limits


def _as_logged(rows: pandas.DataFrame, values: Mapping[str, Floats]) -> dict[str, Floats]:
    """The memory that the engine saw, the pool that it printed, and MTP layers, shaped as the model's own."""
    logged: dict[str, Floats] = {"logged_pool_bytes": rows["kv_pool_gib_per_gpu"].to_numpy(float) * GIB}
    if "gpu_total_gib" in rows:
        total = rows["gpu_total_gib"].to_numpy(float) * GIB
        logged["gpu_memory_bytes"] = numpy.where(numpy.isnan(total), values["gpu_memory_bytes"], total)
    if "mtp_layers" in rows:
        layers = rows["mtp_layers"].fillna(0).to_numpy(float)
        drafted = rows["speculative_tokens"].fillna(0).to_numpy(float)
        newer = numpy.array([_numbers(text) >= STATE_BLOCKS[0] for text in rows["engine_version"]], bool)
        blocks = rows["state_blocks"].fillna(pandas.Series(numpy.where(newer, STATE_BLOCKS[1], 1), rows.index))
        logged |= {
            "state_blocks_charged": blocks.to_numpy(float) + drafted,
            "conv_bytes_per_state_layer": values["conv_bytes_per_state_layer"] * (1 + drafted / CONV_TOKENS),
            "draft_layers": layers,
            "draft_kv_heads": values["full_kv_heads"],
            "draft_kv_width": values["full_kv_width"],
        }
    return logged


def _loaded_parts(rows: pandas.DataFrame, values: Mapping[str, Floats], catalog: Catalog) -> dict[str, Floats]:
    """Parameters and checkpoint as a log has them loaded: without the image encoder where its weights are without it,
    which is not profiled then, and with the layers for multi-token prediction where these draft."""
    if "mtp_layers" not in rows:
        return {}
    without = rows["skip_mm_profiling"].fillna(0).to_numpy(float) > 0
    vision = numpy.array([catalog.resolve_model(str(name))[0].params.vision for name in rows["model"]], float) * without
    drafts = rows["mtp_layers"].fillna(0).to_numpy(float) > 0
    files, other = values["checkpoint_bytes"], values["other_bytes"]
    return {
        "n_params": values["n_params"] - vision + numpy.where(drafts, values["n_params_mtp"], 0),
        "n_params_mtp": numpy.where(drafts, 0, values["n_params_mtp"]),
        "checkpoint_bytes": numpy.maximum(0, files - vision * other),
    }


def _with_mtp(values: Columns) -> Columns:
    return {
        **values,
        "other_bytes_per_token": draft.other_bytes_beside_draft.of(values),
        "n_other_layers": draft.layers_beside_draft.of(values),
    }


def _stage_without_head(values: Columns) -> Columns:
    """A pipeline stage that does not sample: its peak is the forward pass. Without stages, the same as `point`."""
    staged = values["pipeline_parallel_size"] > 1
    silent = {name: values[name] * ~staged for name in ("max_num_seqs", "sampler_bytes_per_vocabulary_entry")}
    values_ = evaluate((*TOKENS, *MODEL, *SHARD, *CHARGE), values)
    return evaluate(POOL, {**values_, **silent})


def _tokens_of_pool(values: Columns) -> Columns:
    values_ = evaluate((*TOKENS, *MODEL, *SHARD), _with_mtp(values))
    values_ = evaluate(CHARGE, {**values_, **all_of(values_["max_model_len"]), "stage_fraction": 1})
    more = values_["n_state_groups"] * (values_["state_blocks_charged"] - values_.get("state_blocks", 1))
    values_["full_kv_blocks_per_sequence"] = values_["kv_blocks_per_sequence"] + more
    values_["kv_pool_bytes_per_gpu"] = values_["logged_pool_bytes"]
    return evaluate((memory.n_kv_blocks, memory.max_concurrency, memory.kv_tokens), values_)


def _plain_tokens(values: Columns) -> Columns:
    """SGLang and TensorRT-LLM: bytes of the pool through bytes of a token."""
    values_ = evaluate((*MODEL, *SHARD), _with_mtp(values))
    values_["kv_tokens"] = values_["logged_pool_bytes"] / values_["shard_kv_bytes_per_token"]
    return {**values_, "max_concurrency": numpy.nan}
