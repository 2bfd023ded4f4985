"""One deployment a row: names and sizes as typed, completed with defaults, turned into columns of numbers.

All rows are worked on together: names are resolved once per distinct combination, numbers are checked and
completed as columns, so that a million rows take seconds. A row that cannot be computed gets its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from sheetgen.catalog.engines import Engine, load_engine
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.model import Model
from sheetgen.errors import ScenarioError, SheetgenError
from sheetgen.scenario import parse
from sheetgen.units import DTYPES, GIB

Columns = dict[str, Any]

# Every input of one deployment and its default; None is worked out from the other inputs.
DEFAULTS: dict[str, Any] = {
    "model": None,
    "gpu": "h100",
    "engine": "vllm",
    "engine_version": None,
    "weight_dtype": "auto",
    "kv_cache_dtype": "auto",
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "data_parallel_size": 1,
    "expert_parallel_size": 1,
    "gpu_memory_utilization": None,
    "max_model_len": None,
    "max_num_seqs": None,
    "max_num_batched_tokens": None,
    "block_size": None,
    "context_tokens": 4096,
    "concurrent_requests": 1,
    "input_tokens": None,
    "output_tokens": None,
    "prefix_cache_hit_fraction": 0.0,
    "draft_model": None,
    "average_context_fraction": 1.0,
    "kv_allocation": "paged",
    "hybrid_kv_manager": 1,
}
NAMES = (
    "model", "gpu", "engine", "engine_version", "weight_dtype", "kv_cache_dtype", "draft_model", "kv_allocation"
)
NUMBERS = tuple(name for name in DEFAULTS if name not in NAMES)
# (lowest, highest) allowed; whole numbers unless the name ends in _fraction or _utilization
BOUNDS: dict[str, tuple[float, float]] = {
    "context_tokens": (1, parse.MAX_TOKENS),
    "max_model_len": (1, parse.MAX_TOKENS),
    "input_tokens": (0, parse.MAX_TOKENS),
    "output_tokens": (0, parse.MAX_TOKENS),
    "tensor_parallel_size": (1, 1024),
    "pipeline_parallel_size": (1, 1024),
    "data_parallel_size": (1, 1024),
    "expert_parallel_size": (1, 1024),
    "hybrid_kv_manager": (0, 1),
    "prefix_cache_hit_fraction": (0, 1),
    "average_context_fraction": (1e-9, 1),
    "gpu_memory_utilization": (1e-9, 1),
}
OUTPUT_TOKENS = 1024  # the default split: the context less 1,024, and 1,024; half and half below 2,048


@dataclass(frozen=True)
class Resolved:
    """What the names of one row stand for."""

    model: Model
    gpu: Gpu
    engine: Engine
    weight_dtype: str
    kv_cache_dtype: str
    draft: Model | None


def resolve(row: Mapping[str, Any], catalog: Catalog) -> Resolved:
    """The catalog entries behind the names of one row, and the precisions that `auto` stands for."""
    model, named_dtype = catalog.resolve_model(str(row["model"]))
    asked = parse.dtype(row["weight_dtype"], "weight_dtype")
    weight = asked if asked != "auto" else (named_dtype or model.weight_dtype)
    kv = parse.dtype(row["kv_cache_dtype"], "kv_cache_dtype")
    engine = load_engine(catalog, str(row["engine"]), row["engine_version"])
    draft = catalog.model(str(row["draft_model"])) if row["draft_model"] else None
    return Resolved(
        model, catalog.gpu(str(row["gpu"])), engine, weight, model.kv_cache_dtype if kv == "auto" else kv, draft
    )


def model_columns(model: Model, weight_dtype: str, kv_cache_dtype: str) -> Columns:
    """The numbers that a model and its precisions contribute."""
    weight, kv = DTYPES[weight_dtype], DTYPES[kv_cache_dtype]
    return {
        **model.shape(),
        "checkpoint_bytes": model.checkpoint_bytes(weight_dtype),
        "linear_bytes": weight.linear_bytes,
        "other_bytes": weight.other_bytes,
        "kv_dtype_bytes": kv.kv_bytes,
        "kv_scale_bytes": kv.kv_scale_bytes,
    }


def engine_columns(engine: Engine) -> Columns:
    """The numbers that an engine's accounting contributes."""
    return {
        "sampler_bytes_per_logit": engine.sampler_bytes_per_logit,
        "activation_bytes_per_element": engine.activation_bytes_per_element,
        "cuda_graph_bytes_per_gpu": engine.cuda_graph_gib * GIB,
        "graphs_in_budget": int(engine.graphs_in_budget),
        "tokens_by_concurrency": int(engine.tokens_by_concurrency),
        "in_flight_batches": engine.in_flight_batches,
        "group_stretch": engine.group_stretch,
        **{f"non_torch_bytes_tp{t}": round(engine.non_torch_at(t) * GIB) for t in (1, 2, 4, 8)},
    }


def draft_columns(draft: Model | None, kv_cache_dtype: str) -> Columns:
    """The numbers that a speculative-decoding draft contributes: its own weights, its own KV per token."""
    shape = draft.shape() if draft else {}
    kv = DTYPES[kv_cache_dtype]
    head = shape.get("full_kv_width", 0) * kv.kv_bytes + 2 * kv.kv_scale_bytes
    return {
        "draft_layers": shape.get("n_full_layers", 0),
        "draft_kv_heads": shape.get("full_kv_heads", 0),
        "draft_head_bytes": head,
        "draft_weights_bytes": (draft.checkpoint_bytes(draft.weight_dtype) or 2 * shape["n_params"]) if draft else 0,
    }


@dataclass(frozen=True)
class Points:
    """Deployments as columns of one length.

    inputs: every input, completed with the defaults used. errors: the reason why a row cannot be computed,
    or None. good: positions of the rows without error. values: what the formulas read, for those rows only.
    names: what the names of the good rows stand for.
    """

    inputs: dict[str, Any]
    errors: list[str | None]
    good: Any
    values: Columns
    names: list[Resolved]


def complete(given: Mapping[str, Any], n_rows: int, catalog: Catalog) -> Points:
    """Check and complete `given` (columns by input name; a missing column or a blank takes the default)."""
    errors: list[str | None] = [None] * n_rows
    texts = {name: _text_column(given.get(name), n_rows, DEFAULTS[name]) for name in NAMES}
    codes: dict[tuple[Any, ...], int] = {}
    code = numpy.array([codes.setdefault(key, len(codes)) for key in zip(*texts.values(), strict=True)], int)
    found: list[Resolved | None] = []
    reasons: list[str | None] = []
    for key in codes:
        one, reason = _resolved(dict(zip(NAMES, key, strict=True)), catalog)
        found.append(one)
        reasons.append(reason)
    for i, c in enumerate(code):
        errors[i] = reasons[c]
    numbers = {name: _number_column(name, given.get(name), n_rows, errors) for name in NUMBERS}
    table = [_named_columns(one) if one else None for one in found]
    some = next((row for row in table if row), None)
    if some is not None:
        filled = [row or some for row in table]
        columns = {k: numpy.array([row[k] for row in filled], dtype=float)[code] for k in some}
        _fill(numbers, columns)
        _check(numbers, columns, found, code, errors)
    good = numpy.array([i for i, e in enumerate(errors) if e is None], int)
    values: Columns = {}
    if some is not None and len(good):
        values = {k: v[good] for k, v in (columns | numbers).items()}
        _derive(values, numpy.array([texts["kv_allocation"][i] == "reserved" for i in good]))
    names = [one for one in (found[code[i]] for i in good) if one is not None]
    versions = [one.engine.default_version if one else None for one in found]
    texts["engine_version"] = [versions[c] or t for c, t in zip(code, texts["engine_version"], strict=True)]
    return Points({name: (texts | numbers)[name] for name in DEFAULTS}, errors, good, values, names)


def _text_column(given: Any, n_rows: int, default: Any) -> list[Any]:
    if given is None:
        return [default] * n_rows
    return [default if _blank(v) else str(v).strip() for v in given]


def _blank(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())


def _number_column(name: str, given: Any, n_rows: int, errors: list[str | None]) -> Any:
    """The column as floats, NaN where blank; a value that is no number is told in `errors`."""
    default = numpy.nan if DEFAULTS[name] is None else float(DEFAULTS[name])
    if given is None:
        return numpy.full(n_rows, default)
    try:
        column = numpy.asarray(given, dtype=float)
    except (TypeError, ValueError):
        column = numpy.array([_number(name, v, i, errors) for i, v in enumerate(given)], dtype=float)
    return numpy.where(numpy.isnan(column), default, column)


def _number(name: str, value: Any, row: int, errors: list[str | None]) -> float:
    if _blank(value):
        return numpy.nan
    try:
        return parse.tokens(value, name) if name in _TOKENS else float(str(value).replace(",", ""))
    except (ScenarioError, ValueError):
        errors[row] = errors[row] or f"{name} is {shown(value)!r}, which is not a number."
        return numpy.nan


_TOKENS = ("context_tokens", "max_model_len", "input_tokens", "output_tokens", "max_num_batched_tokens")


def _resolved(row: dict[str, Any], catalog: Catalog) -> tuple[Resolved | None, str | None]:
    try:
        if row["model"] is None:
            raise ScenarioError("model is missing. Name one, such as 70b or meta-llama/Llama-3.1-70B-Instruct.")
        parse.one_of(row["kv_allocation"], "kv_allocation", ("paged", "reserved"))
        return resolve(row, catalog), None
    except SheetgenError as error:
        return None, " ".join(error.problems)


def _named_columns(names: Resolved) -> Columns:
    """All numbers that the names of a row contribute, the engine's defaults among them."""
    memory = names.gpu.memory.engine_bytes
    seqs, batched = names.engine.batch_limits(memory / GIB, names.gpu.architecture)
    return {
        **model_columns(names.model, names.weight_dtype, names.kv_cache_dtype),
        **engine_columns(names.engine),
        **draft_columns(names.draft, names.kv_cache_dtype),
        "gpu_memory_bytes": memory,
        "default_max_num_seqs": seqs,
        "default_max_num_batched_tokens": batched,
        "default_block_size": names.engine.block_size,
        "default_gpu_memory_utilization": names.engine.gpu_memory_utilization,
    }


def _fill(numbers: Columns, columns: Columns) -> None:
    """Fill the blanks whose default follows from the names or from the other numbers."""
    blank = numpy.isnan
    for name in ("max_num_seqs", "max_num_batched_tokens", "block_size", "gpu_memory_utilization"):
        numbers[name] = numpy.where(blank(numbers[name]), columns.pop(f"default_{name}"), numbers[name])
    context = numbers["context_tokens"]
    numbers["max_model_len"] = numpy.where(blank(numbers["max_model_len"]), context, numbers["max_model_len"])
    asked_in, asked_out = numbers["input_tokens"], numbers["output_tokens"]
    split = numpy.where(context < 2 * OUTPUT_TOKENS, numpy.floor(context / 2), OUTPUT_TOKENS)
    output = numpy.where(blank(asked_out), numpy.where(blank(asked_in), split, context - asked_in), asked_out)
    numbers["output_tokens"] = output
    numbers["input_tokens"] = numpy.where(blank(asked_in), context - output, asked_in)


def _check(numbers: Columns, columns: Columns, found: list[Any], code: Any, errors: list[str | None]) -> None:
    """Write a reason into `errors` for each row whose numbers cannot be."""

    def refuse(bad: Any, reason: Any) -> None:
        for i in numpy.flatnonzero(bad):
            if errors[i] is None:
                errors[i] = reason(i)

    for name in NUMBERS:
        low, high = BOUNDS.get(name, (1, 10_000_000))
        column = numbers[name]
        share = name.endswith(("_fraction", "_utilization"))
        bad = ~((column >= low) & (column <= high))
        if not share:
            bad |= column != numpy.floor(column)
        what = "a number above 0 and up to 1" if share else f"a whole number from {low:,.0f} to {high:,.0f}"
        what = "a number from 0 to 1" if share and low == 0 else what
        refuse(bad, lambda i, n=name, c=column, w=what: f"{n} is {c[i]:g}. It must be {w}.")
    limit, size = columns["max_context_tokens"], numbers["tensor_parallel_size"]
    context, length = numbers["context_tokens"], numbers["max_model_len"]

    def model_id(i: int) -> str:
        return str(found[code[i]].model.id)

    refuse(
        context > limit,
        lambda i: f"context_tokens is {context[i]:,.0f}, over the {limit[i]:,.0f} that {model_id(i)} allows."
        f" Use {limit[i]:.0f} or less.",
    )
    refuse(length > limit, lambda i: f"max_model_len is {length[i]:,.0f}, over the {limit[i]:,.0f} that {model_id(i)} allows.")
    refuse(length < context, lambda i: f"max_model_len is {length[i]:,.0f}, below the context of {context[i]:,.0f} tokens.")
    used = numbers["input_tokens"] + numbers["output_tokens"]
    refuse(used > context, lambda i: f"input_tokens and output_tokens are {used[i]:,.0f}, over the context of {context[i]:,.0f}.")
    heads, layers = columns["n_heads"], columns["n_layers"]
    refuse(
        numpy.mod(heads, numpy.maximum(size, 1)) > 0,
        lambda i: f"tensor_parallel_size is {size[i]:.0f}, which does not divide the {heads[i]:.0f} heads of {model_id(i)}.",
    )
    stages = numbers["pipeline_parallel_size"]
    refuse(
        stages > layers,
        lambda i: f"pipeline_parallel_size is {stages[i]:.0f}, more than the {layers[i]:.0f} layers of {model_id(i)}.",
    )


def _derive(values: Columns, reserved: Any) -> None:
    """Add to `values` what follows from names and sizes together."""
    size = values["tensor_parallel_size"]
    values["kv_reserved"] = reserved.astype(float)
    values["requests_per_rank"] = numpy.ceil(values["concurrent_requests"] / values["data_parallel_size"])
    steps = [values[f"non_torch_bytes_tp{t}"] for t in (1, 2, 4, 8)]
    values["non_torch_bytes_per_gpu"] = numpy.select([size < 2, size < 4, size < 8], steps[:3], steps[3])
    values["draft_weights_bytes_per_gpu"] = numpy.ceil(values["draft_weights_bytes"] / size)
