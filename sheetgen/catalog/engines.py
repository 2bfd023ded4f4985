"""Schemas of engines/*.yaml (how a serving engine accounts for GPU memory, by version, and its defaults) and speed.yaml
(speed constants by engine and GPU generation, and the error bands of predictions).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_type_hints

from pydantic import Field, create_model

from sheetgen.catalog.base import Count, CountOrZero, Date, DtypeName, Entry, Id, Label, Many, Problem, Some, Text, must
from sheetgen.catalog.hardware import Gpu
from sheetgen.catalog.load import Catalog
from sheetgen.catalog.model import Model
from sheetgen.errors import CatalogError, did_you_mean, shown
from sheetgen.shipped import shipped_table
from sheetgen.units import (
    DTYPES,
    ENDS,
    FACTOR,
    GIB,
    MIB,
    PLAIN,
    TWO_DECIMALS,
    WHOLE,
    Display,
)

Gib = Annotated[float, Field(ge=0, le=1024, allow_inf_nan=False)]
Mib = Annotated[float, Field(ge=0, le=1024, allow_inf_nan=False)]
SIZE_UNITS = {"gib": GIB, "mib": MIB}  # bytes, by the last word of a field's name
BytesEach = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Number = Annotated[int, Field(ge=1, le=10_000_000)]
PoolRatio = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
SERVED = ("none", "dense", "all")  # the models of a second runner; formulas use the index: 0, 1, 2
Served = Literal["none", "dense", "all"]
_VERSION = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?[.+\-A-Za-z0-9]{0,80}")
_BUILD = re.compile(r"b([0-9]{1,6})")  # llama.cpp counts builds: b7500

FP8_KV = ("fp8", "fp8_e5m2")
KV_BY_DEFAULT = "bf16"  # the cache's precision where a checkpoint states one that the engine does not follow
LEAST_SHARE = 0.01  # default utilization of a GPU with less memory than the engine's reserve


Version = Annotated[
    str, must(lambda text: _VERSION.fullmatch(text) or _BUILD.fullmatch(text), "is no version: write one like 0.19.0")
]


class BatchDefault(Entry):
    """The engine's own batch limits on a GPU of at least this memory.

    reserve_gib: GiB that the engine leaves free where its default utilization depends on the GPU.
    """

    min_memory_gib: Gib
    not_architectures: Many[Label] = ()
    max_num_seqs: Number
    max_num_batched_tokens: Number
    reserve_gib: Gib | None = None


class NonTorch(Entry):
    """Memory outside torch in GiB per GPU, by tensor-parallel size; staged: on a pipeline stage at TP 1."""

    tp1: Gib
    tp2: Gib
    tp4: Gib
    tp8: Gib
    staged: Gib


class Fit(Entry):
    """The measurements that one of the engine's figures was fitted to, and its error on them."""

    what: Label
    n_rows: Annotated[int, Field(ge=0, le=1_000_000)]
    error: Text


BandScope = Literal["calibrated", "shared", "cards", "other"]


class Band(Entry):
    """The error band of a figure: four of five runs had `measured - predicted` between low and high, cross-validated.

    Weights are in shares of the prediction, the other figures in GiB per GPU. Scope `calibrated` has the runs that the
    constants were fitted to, each predicted without the runs of its model. The other start-ups, each predicted without
    those of its source, are `shared` (GPU memory that is also the host's), `cards` (GPUs without HBM) or `other`.
    from_version, to_version: the oldest and the newest release among the runs.
    """

    figure: Literal["weights", "activation", "non_torch", "kv_pool"]
    scope: BandScope
    low: Annotated[float, Field(ge=-1000, le=1000, allow_inf_nan=False)]
    high: Annotated[float, Field(ge=-1000, le=1000, allow_inf_nan=False)]
    n_rows: Number
    from_version: Version
    to_version: Version

    @property
    def releases(self) -> str:
        """`0.6 to 0.31`, as people say it."""
        oldest, newest = (version.removesuffix(".0") for version in (self.from_version, self.to_version))
        return oldest if oldest == newest else f"{oldest} to {newest}"

    def problems(self) -> Iterator[Problem]:
        if self.low > self.high:
            yield (), f"low {self.low} is above high {self.high}"


class Calibrated(Entry):
    """The versions, GPUs and tensor-parallel sizes that the constants were fitted to."""

    from_version: Version
    below_version: Version
    gpus: Many[Id]
    max_tensor_parallel_size: Number


class PoolRatios(Entry):
    """The pool ratios that an engine uses for the models in `models` in place of its usual ones."""

    models: Many[Id]
    window_pool_ratio: PoolRatio | None = None
    state_pool_ratio: PoolRatio | None = None


class OwnKv(Entry):
    """Models whose KV cache an engine keeps in FP8 by default on GPUs of these architectures."""

    models: Many[Id]
    on: Many[Label]


class KvKernel(Entry):
    """Precisions in which kernels of an engine keep keys and values, beyond each GPU's own kv_run; never MLA latents.

    vendors, on: the GPUs' vendors and architectures (whole names; empty: all). head_dims: the head sizes (empty: all).
    not_models: models whose attention the kernels do not support.
    """

    dtypes: Some[DtypeName]
    vendors: Some[Id]
    on: Many[Label] = ()
    head_dims: Many[Number] = ()
    not_models: Many[Id] = ()

    def runs(self, dtype: str, gpu: Gpu) -> bool:
        """True if the kernel keeps keys and values in this precision on the GPU."""
        return dtype in self.dtypes and gpu.vendor in self.vendors and (not self.on or gpu.architecture in self.on)

    def takes(self, model: Model) -> bool:
        """True if the kernel supports the model's heads, whose keys and values must have the same width."""
        if model.entry_id in self.not_models:
            return False
        return all(
            group.value_width in (0, group.key_width) and (not self.head_dims or group.key_width in self.head_dims)
            for group in model.heads
        )


class Accounting(Entry):
    """One engine's memory accounting. Fields in GiB are per GPU.

    GPU architectures, by the beginning of their names: `older_gpus` (without symmetric memory) use
    `older_non_torch_gib`; `heavier_graphs_on` use `heavier_cuda_graph_layer_mib`; `sparse_attention_not_on` have no
    kernel for sparse attention (an indexer or compressed entries); `fp8_latents_not_on` keep MLA latents in 16 bits,
    though FP8 keys and values of heads work. `plain_fp8_latent_on` has whole names: their sparse-attention kernel keeps
    FP8 latents without scales, not in the entry format with scales.

    Budget: (total - context_gib) x gpu_memory_utilization; with `fraction_of_free` the share is taken of the memory
    that is free after the other parts, so each of them takes the same share of the budget. `set_pool_is_limit`: a pool
    that is set in bytes is only an upper limit beside the share's (TensorRT-LLM).

    Pages: `shares_pages`: all kinds of layers take pages of one size from one pool (vLLM). `frees_windows`: windowed
    layers free the tokens that have left their window (vLLM's hybrid KV manager). `state_blocks`: blocks that admission
    charges each group of recurrent layers, with `checkpoint_blocks` more during prefill.

    Packed pages, for models that compress their keys: layers that grow with the context share blocks of
    `packed_block_tokens` (0: the engine packs no pages), windows have blocks of `packed_window_tokens`, and elements
    that are not compressed yet, of `compressor_element_bytes` each, take pages of the windows' size. A page is a whole
    number of `packed_alignment_bytes`. `packs_tuples`: a block has a page of every size for each layer of a group, even
    where no layer uses it.

    `window_pool_ratio`, `state_pool_ratio`: for separate pools of windows and states (SGLang), the tokens of windowed
    layers per token of the others, and the bytes of states per byte of keys and values. `expands_latents`: keeps keys
    and values of all heads where a model's latents state a key's width. `checkpoint_kv_dtypes`: KV cache precisions
    that `auto` takes over from a checkpoint; any other becomes 16 bits. `second_runner`: the models that a second model
    runner, with its own sampler and reserve, serves (vLLM's V2; dense: without experts and states).
    `cold_start_embeddings`: peak memory of compiling there, in sizes of the embedding. Tensors of
    large_allocation_bytes and more take whole steps of allocation_step_bytes (both torch's own).
    """

    id_field: ClassVar[str] = "engine"
    engine: Id
    name: Label
    default_version: Version
    checked_on: Date
    vendors: Many[Id]
    gpu_memory_utilization: Share
    context_gib: Gib
    fraction_of_free: bool
    set_pool_is_limit: bool = False
    budget_source: Text
    block_size: Number
    batch_defaults: Many[BatchDefault]
    batch_defaults_source: Text
    activations_in_budget: bool
    sampler_bytes_per_logit: BytesEach
    sampler_bytes_per_vocabulary_entry: BytesEach
    forward_hidden_copies: Annotated[float, Field(ge=0, le=100)]
    encoder_hidden_copies: Annotated[float, Field(ge=0, le=100)] = 0
    expert_workspace_share: Annotated[float, Field(ge=0, le=10)]
    matmul_workspace_gib: Gib
    allocation_step_bytes: Number = 2 * 2**20
    large_allocation_bytes: Number = 10 * 2**20
    activation_source: Text
    non_torch_gib: NonTorch
    older_gpus: Many[Label] = ()
    older_non_torch_gib: NonTorch | None = None
    non_torch_source: Text
    sparse_attention_not_on: Many[Label] = ()
    sparse_attention_source: Text | None = None
    fp8_latents_not_on: Many[Label] = ()
    fp8_latents_source: Text | None = None
    plain_fp8_latent_on: Many[Label] = ()
    window_pool_ratio: PoolRatio = 0
    state_pool_ratio: PoolRatio = 0
    pool_ratio_source: Text = "the engine cuts no pools by ratio"
    pool_ratios_of: Many[PoolRatios] = ()
    cuda_graph_gib: Gib
    cuda_graph_layer_mib: Mib = 0
    heavier_cuda_graph_layer_mib: Mib = 0
    apart_cuda_graph_layer_mib: Mib = 0
    heavier_graphs_on: Many[Label] = ()
    cuda_graph_source: Text
    group_stretch: Annotated[float, Field(ge=1, le=100)]
    shares_pages: bool
    frees_windows: bool = True
    state_blocks: Annotated[int, Field(ge=1, le=8)] = 1
    checkpoint_blocks: Annotated[int, Field(ge=0, le=8)] = 0
    packed_block_tokens: CountOrZero = 0
    packed_window_tokens: CountOrZero = 0
    packed_alignment_bytes: Count = 1
    compressor_element_bytes: Count = 1
    packs_tuples: bool = False
    packed_source: Text = "the engine packs no pages of several sizes into a block"
    in_flight_batches: Annotated[int, Field(ge=1, le=8)]
    expands_latents: bool = False
    checkpoint_kv_dtypes: Many[DtypeName] = ()
    kv_kernels: Many[KvKernel] = ()
    kv_kernels_source: Text = "the engine keeps what the GPU does"
    fp8_kv: OwnKv | None = None
    checkpoint_kv_source: Text = "the engine asks for a precision of the KV cache beside 16 bits"
    tokens_by_concurrency: bool
    graphs_in_budget: bool
    second_runner: Served = "none"
    second_runner_sampler_bytes_per_logit: BytesEach = 0
    second_runner_graphs_in_budget: bool = False
    second_runner_table_bytes_per_logit: BytesEach = 0
    cold_start_embeddings: Annotated[float, Field(ge=0, le=10)] = 0
    second_runner_source: Text = ""
    accounting_source: Text
    fitted: Many[Fit] = ()
    calibrated: Calibrated | None = None
    bands: Many[Band] = ()
    bands_source: Text | None = None


_MAY_CHANGE = {  # fields that a release may change, and the field with their source, if there is one
    "batch_defaults": "batch_defaults_source",
    "sampler_bytes_per_logit": "activation_source",
    "non_torch_gib": "non_torch_source",
    "older_non_torch_gib": "non_torch_source",
    **dict.fromkeys(
        ("cuda_graph_gib", "cuda_graph_layer_mib", "heavier_cuda_graph_layer_mib", "apart_cuda_graph_layer_mib"),
        "cuda_graph_source",
    ),
    "sparse_attention_not_on": "sparse_attention_source",
    "fp8_latents_not_on": "fp8_latents_source",
    **dict.fromkeys(
        ("graphs_in_budget", "group_stretch", "state_blocks", "checkpoint_blocks", "in_flight_batches"),
        "accounting_source",
    ),
    "checkpoint_kv_dtypes": "checkpoint_kv_source",
    "kv_kernels": "kv_kernels_source",
    "fp8_kv": None,
    **dict.fromkeys(("window_pool_ratio", "state_pool_ratio"), "pool_ratio_source"),
    "packs_tuples": "packed_source",
    **dict.fromkeys(
        (
            "second_runner",
            "second_runner_sampler_bytes_per_logit",
            "second_runner_graphs_in_budget",
            "second_runner_table_bytes_per_logit",
            "cold_start_embeddings",
        ),
        "second_runner_source",
    ),
    **dict.fromkeys(
        (
            "sampler_bytes_per_vocabulary_entry",
            "expert_workspace_share",
            "tokens_by_concurrency",
            "gpu_memory_utilization",
            "context_gib",
            "block_size",
            "plain_fp8_latent_on",
        )
    ),
}


class Release(Entry):
    """The accounting's changes from a release on. `pools_checked`: the number of start-up logs under these rules whose
    KV pool was predicted, as docs/engines.md counts them."""

    from_version: Version
    pools_checked: CountOrZero = 0
    source: Text

    def brings(self, dtype: str, gpu: Gpu) -> bool:
        """True if the release's own kernels keep the KV cache in this precision on the GPU."""
        kernels: tuple[KvKernel, ...] = getattr(self, "kv_kernels", None) or ()
        return any(kernel.runs(dtype, gpu) for kernel in kernels)

    @property
    def changed(self) -> set[str]:
        """The engine's fields that the release changes."""
        return self.model_fields_set & _MAY_CHANGE.keys()


if TYPE_CHECKING:
    VersionChange = Release
else:  # with the fields that it may change, each with the bounds of the engine's own field
    _TYPES = get_type_hints(Accounting, include_extras=True)
    _FIELDS = {name: (_TYPES[name] | None, None) for name in _MAY_CHANGE}
    VersionChange = create_model("VersionChange", __base__=Release, __module__=__name__, **_FIELDS)


class Engine(Accounting):
    """An engine's accounting, and the changes that its releases made."""

    versions: Many[VersionChange] = ()
    newest_read: Version | None = None  # the newest release with entered rules; set by `at`

    def problems(self) -> Iterator[Problem]:
        last = self.batch_defaults[-1] if self.batch_defaults else None
        if last is None or last.min_memory_gib > 0 or last.not_architectures:
            yield ("batch_defaults",), "batch_defaults must end with a row for every GPU: min_memory_gib 0, not none"

    def at(self, version: str | None) -> Self:
        """The engine with the changes of all releases up to `version` (None: its default version)."""
        wanted = _version(version or self.default_version, like=self.default_version)
        releases = (self.default_version, *(change.from_version for change in self.versions))
        changes: dict[str, object] = {"default_version": version or self.default_version}
        changes["newest_read"] = max(releases, key=_version)
        for change in self.versions:
            if _version(change.from_version) <= wanted:
                named = change.changed
                changes |= {name: getattr(change, name) for name in named if getattr(change, name) is not None}
                changes |= {source: change.source for name in named if (source := _MAY_CHANGE[name])}
        return self.model_copy(update=changes)

    def for_models(self, model_ids: Iterable[str]) -> Self:
        """The engine with the pool ratios that it sets for these models, if it sets the same for all of them."""
        sets = [next((ratios for ratios in self.pool_ratios_of if id_ in ratios.models), None) for id_ in model_ids]
        own = sets[0] if sets and all(ratios is sets[0] for ratios in sets) else None
        ratios = own.model_dump(exclude={"models"}, exclude_none=True) if own else {}
        return self.model_copy(update={name: ratio for name, ratio in ratios.items() if getattr(self, name) > 0})

    def drafting(self, n_tokens: int) -> Self:
        """The engine when it drafts `n_tokens` ahead: in a shared pool each takes one more state block."""
        return self.model_copy(update={"state_blocks": self.state_blocks + n_tokens}) if self.shares_pages else self

    def as_kept(self, model: Model) -> Model:
        """The model with the layers that this engine keeps a cache of."""
        return model.with_whole_heads() if self.expands_latents else model

    @property
    def keeps_graphs(self) -> bool:
        """True if the engine keeps CUDA graphs."""
        return self.cuda_graph_gib + self.cuda_graph_layer_mib > 0

    @property
    def caution(self) -> str | None:
        """A sentence that this version is newer than all entered rules, and which are used; None for other versions."""
        read = self.newest_read or self.default_version
        if _version(self.default_version) <= _version(read):
            return None
        newest = max((change.from_version for change in self.versions), key=_version, default=read)
        return f"{self.name} {self.default_version}: the newest rules known, those since {newest}, are used."

    def keeps_fp8(self, model_id: str, architecture: str) -> bool:
        """True if the engine keeps this model's KV cache in FP8 by default on such a GPU; sizing does not follow it."""
        return self.fp8_kv is not None and model_id in self.fp8_kv.models and architecture in self.fp8_kv.on

    def runs_kv(self, gpu: Gpu, dtype: str, models: Collection[Model] = ()) -> int:
        """1 if a GPU keeps any KV cache in this precision, 2 if it keeps keys and values of these models but no
        latents, 0 if it keeps none."""
        if dtype in gpu.kv_typed:
            return gpu.kv_typed[dtype]
        if dtype in gpu.kv_run:
            no_latents = dtype in FP8_KV and gpu.architecture.startswith(tuple(self.fp8_latents_not_on))
            return 2 if no_latents else 1
        kernels = [kernel for kernel in self.kv_kernels if kernel.runs(dtype, gpu)]
        return 2 * any(all(map(kernel.takes, models)) for kernel in kernels)

    def no_kv(self, gpu: Gpu, dtype: str, model: Model) -> str | None:
        """A sentence that a model's KV cache cannot have this precision on a GPU, and which it can; None if it can."""
        of_latents, kept = ([d for d in DTYPES if self.runs_kv(gpu, d, [model]) in levels] for levels in ((1,), (1, 2)))
        if dtype in (of_latents if model.shape()["n_mla_layers"] > 0 else kept):
            return None
        named = f"{self.name} {self.default_version}"
        if dtype in kept:
            where = f" on {gpu.name}" if dtype in gpu.kv_run else ""
            return f"{named} keeps no latents in {dtype}{where}. It keeps them in {', '.join(of_latents)}."
        of_others, own = self.runs_kv(gpu, dtype) > 0, [d for d in kept if d != dtype]
        whose = f" of {model.name}" if of_others else ""
        since = next((f", {change.from_version} does" for change in self.versions if change.brings(dtype, gpu)), "")
        later = "" if of_others else since
        return f"{named} keeps no KV cache{whose} in {dtype} on {gpu.name}{later}. It keeps {', '.join(own)}."

    def fp8_remark(self, model_id: str, model_name: str, gpus: Iterable[Gpu]) -> str | None:
        """A sentence that names those of these GPUs on which the model's KV cache is FP8 by default; None for none."""
        kept = dict.fromkeys(gpu.short_name for gpu in gpus if self.keeps_fp8(model_id, gpu.architecture))
        if not kept:
            return None
        whose = f"{self.name} {self.default_version} keeps the KV cache of {model_name} in FP8"
        return f"{whose} on {', '.join(kept)} unless told otherwise: --kv-cache-dtype fp8 sizes that."

    def auto_kv_dtype(self, stated: str) -> str:
        """The precision of the KV cache under `auto`, for a checkpoint that states the precision `stated`."""
        follows = stated in self.checkpoint_kv_dtypes or DTYPES[stated].kv_bytes >= DTYPES[KV_BY_DEFAULT].kv_bytes
        return stated if follows else KV_BY_DEFAULT

    def columns(self) -> dict[str, float]:
        """Every constant of the accounting, in the units that formulas read."""
        return {constant.column: constant.value(self) for constant in CONSTANTS}

    def with_columns(self, values: Mapping[str, float]) -> Self:
        """The engine with some constants replaced, given by column; other columns are ignored."""
        fields: dict[str, Any] = {}  # parts of fields are models
        for constant in CONSTANTS:
            field, size_unit = constant.field, constant.size_unit
            if constant.column not in values or field not in Engine.model_fields or getattr(self, field) is None:
                continue
            value: Any = values[constant.column]
            value = SERVED[int(value)] if field == "second_runner" else value
            value = value / size_unit if size_unit else bool(value) if constant.kind == "flag" else value
            if constant.part:
                value = fields.get(field, getattr(self, field)).model_copy(update={constant.part: value})
            fields[field] = value
        return self.model_copy(update=fields)

    @property
    def calibrated_tensor_parallel_size(self) -> int:
        """The largest TP among the runs that the constants were fitted to; 0 for none."""
        return self.calibrated.max_tensor_parallel_size if self.calibrated else 0

    def band_scope(self, gpu: Gpu) -> BandScope:
        """The scope of the error bands for a GPU: `calibrated` if the constants were fitted to this version and GPU."""
        calibrated = self.calibrated
        is_fitted = calibrated and gpu.id in calibrated.gpus and self._is_calibrated
        return "calibrated" if is_fitted else self.scope_elsewhere(gpu)

    def scope_elsewhere(self, gpu: Gpu) -> BandScope:
        """The scope of the error bands for a GPU outside the calibration."""
        if gpu.memory.shared_with_host:
            return "shared"
        return "cards" if self.has_heavier_graphs(gpu.architecture) else "other"

    @property
    def _is_calibrated(self) -> bool:
        """True if the constants were fitted to runs of this version."""
        fitted, version = self.calibrated, _version(self.default_version)
        return fitted is not None and _version(fitted.from_version) <= version < _version(fitted.below_version)

    @property
    def pools_seen(self) -> tuple[int, int]:
        """The numbers of runs and logs whose KV pool was predicted: under this version's rules, and in all versions."""
        n_rows = {band.scope: band.n_rows for band in self.bands if band.figure == "kv_pool"}
        since = [change for change in self.versions if _version(change.from_version) <= _version(self.default_version)]
        checked = since[-1].pools_checked if since else 0
        return checked + n_rows.get("calibrated", 0) * self._is_calibrated, sum(n_rows.values())

    def band(self, figure: str, scope: str) -> Band | None:
        """The error band of a figure in a scope; None where there were too few runs."""
        return next((b for b in self.bands if b.figure == figure and b.scope == scope), None)

    def batch_limits(self, gpu_memory_gib: float, architecture: str) -> tuple[int, int]:
        """Default (max_num_seqs, max_num_batched_tokens) on a GPU of this memory and architecture."""
        row = self._batch_default(gpu_memory_gib, architecture)
        return row.max_num_seqs, row.max_num_batched_tokens

    def utilization_on(self, gpu_memory_gib: float, architecture: str) -> float:
        """Default gpu_memory_utilization on a GPU of this memory: the engine's constant, or 1 less its reserve."""
        reserve = self._batch_default(gpu_memory_gib, architecture).reserve_gib
        if reserve is None:
            return self.gpu_memory_utilization
        return max(LEAST_SHARE, round(1 - reserve / gpu_memory_gib, 3))

    def _batch_default(self, gpu_memory_gib: float, architecture: str) -> BatchDefault:
        large = (row for row in self.batch_defaults if gpu_memory_gib >= row.min_memory_gib)  # the last row fits all
        return next(row for row in large if not architecture.startswith(tuple(row.not_architectures)))

    def is_older(self, architecture: str) -> bool:
        """True for the architectures that use `older_non_torch_gib`."""
        return self.older_non_torch_gib is not None and architecture.startswith(tuple(self.older_gpus))

    def has_heavier_graphs(self, architecture: str) -> bool:
        """True for the architectures that use `heavier_cuda_graph_layer_mib`."""
        return architecture.startswith(tuple(self.heavier_graphs_on))

    def runs_sparse_attention(self, architecture: str) -> bool:
        """True if the engine has kernels for sparse attention on GPUs of that architecture."""
        return not architecture.startswith(tuple(self.sparse_attention_not_on))

    def keeps_plain_fp8_latents(self, architecture: str) -> bool:
        """True if sparse attention on GPUs of that architecture keeps FP8 latents without scales."""
        return architecture in self.plain_fp8_latent_on


@dataclass(frozen=True)
class Constant:
    """One constant of an engine's accounting: its name in formulas, its display, its note and its allowed values.

    column: the quantity's name in JSON and formulas, and of its cell. source: the field of the engine with its origin.
    kind, low, high: the values that a cell takes: any number, a whole one, or a flag (0 or 1). field, part: the field
    of `Engine` with the value, and the part of a composite field; sizes in GiB or MiB become bytes. label: empty for a
    constant that is not shown.
    """

    column: str
    source: str
    display: Display = WHOLE
    kind: Literal["number", "whole", "flag"] = "number"
    low: float = 0
    high: float = 1e15
    field: str = ""
    part: str = ""
    label: str = ""
    unit: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "field", self.field or self.column)
        if self.kind == "flag":
            object.__setattr__(self, "high", 1)

    def value(self, engine: Engine) -> float:
        """The engine's value in the column's unit; memory of older GPUs that is not stated is that of newer ones."""
        held = getattr(engine, self.field)
        if self.part:
            held = getattr(engine.non_torch_gib if held is None else held, self.part)
        held = SERVED.index(held) if isinstance(held, str) else held
        number: float = held * (self.size_unit or 1)
        return round(number) if self.size_unit or self.kind == "flag" else number

    @property
    def size_unit(self) -> int | None:
        """Bytes per unit of the field; None if the field is no size."""
        return SIZE_UNITS.get(self.field.rpartition("_")[2])

    def words(self, engine: Engine) -> str:
        """The note beside the constant: its own, else the engine's source."""
        return self.note or str(getattr(engine, self.source))


_DISPLAYS = {"plain": PLAIN, "two_decimals": TWO_DECIMALS, "factor": FACTOR}
CONSTANTS: tuple[Constant, ...] = tuple(
    Constant(column, **{**stated, "display": _DISPLAYS.get(stated.get("display", ""), WHOLE)})
    for column, stated in shipped_table("engine.toml").items()
)

# A build between releases, named as its image is: nightly, nightly-20260216-d3bae71e, gpt-oss-dev.
_OWN_BUILD = re.compile(r"(?:nightly|latest|main|dev|head)|[A-Za-z][A-Za-z0-9_.]{0,40}(?:-[A-Za-z0-9_.]{1,40}){1,6}")
# A build of a source tree without tags: 0.1.dev1+g4d2a68d64.d20260816 does not tell the release.
_UNTAGGED = re.compile(r"v?0\.[0-9]{1,2}\.(?:0\.)?dev[0-9]{1,9}(?:[.+][A-Za-z0-9.+]{0,80})?")
NEWEST = (10**6, 0, 0)


def _version(text: str, like: str = "") -> tuple[int, ...]:
    """A version as numbers, for comparison; `like` is a version that it must match in kind: a release or a build.

    Raises CatalogError for text that is no version, or is of the other kind.
    """
    build, release = _BUILD.fullmatch(text), release_of(text)
    if build is None and release is None and (_OWN_BUILD.fullmatch(text) or _UNTAGGED.fullmatch(text)):
        return NEWEST
    counted = (0, 0, int(build[1])) if build else release
    if counted is None or (like and bool(build) != bool(_BUILD.fullmatch(like))):
        raise CatalogError(f"engine version {shown(text)!r} is not a version. Write one like {like or '0.19.0'}.")
    return counted


def release_of(text: str) -> tuple[int, ...] | None:
    """`0.11.0rc1+cu128` as (0, 11, 0), without the suffix; None for text that is no release, or a build without
    tags."""
    match = None if _UNTAGGED.fullmatch(text) else _VERSION.fullmatch(text)
    return tuple(int(part or 0) for part in match.groups()[:3]) if match else None


def load_engine(catalog: Catalog, name: str, version: str | None = None) -> Engine:
    """The engine called `name` at `version` (None: its default version).

    Raises CatalogError for an engine without memory accounting in the catalogs, and for text that is no version.
    """
    key = name.strip().lower()
    engine_ids = sorted(catalog.ids("engines"))
    if key not in engine_ids:
        problem = f"has no memory accounting in catalogs/engines. Known: {', '.join(engine_ids)}"
        raise CatalogError(f"engine {shown(name)!r} {problem}.{did_you_mean(key, engine_ids)}")
    return catalog.entry("engines", key, Engine).at(version)


Seconds = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
Ratio = Annotated[float, Field(gt=0.01, le=100, allow_inf_nan=False)]
Factor = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Figure = Literal["tpot", "ttft", "output_tokens_per_second"]
SPEED_FIGURES: tuple[Figure, ...] = ("tpot", "ttft", "output_tokens_per_second")
Scope = Literal["fitted", "other", "ranks", "stages", "anchored"]
ModelKind = Literal["dense", "moe", "windowed", "linear", "sparse"]  # in the order of `speed_kind`
MODEL_KINDS: tuple[ModelKind, ...] = ("dense", "moe", "windowed", "linear", "sparse")
OF_ANY_KIND: tuple[Scope, ...] = ("ranks", "stages")  # scopes with one band for all kinds of models
BANDS_OF_SPEED = tuple(f"{figure}_band_{end}" for figure in SPEED_FIGURES for end in ENDS)


def band_names(scope: Scope, kinds: Iterable[ModelKind] = ()) -> list[str]:
    """The names of both ends of every figure's band in a scope, one for each kind of model where `kinds` are given:
    `tpot_band_low_fitted`, `tpot_band_low_other_dense`."""
    ends = [f"_{kind}" for kind in kinds] or [""]
    return [f"{name}_{scope}{end}" for name in BANDS_OF_SPEED for end in ends]


class SpeedConstants(Entry):
    """The speed constants of sizing/speed.py, each with its heading in a workbook as title.

    Efficiencies are shares of published peaks; constants that may be 0 are never divisors.
    """

    weight_bandwidth_efficiency: Share = Field(title="Bandwidth reached, dense weights")
    expert_bandwidth_efficiency: Share = Field(title="Bandwidth reached, experts")
    kv_bandwidth_efficiency: Share = Field(title="Bandwidth reached, KV cache")
    decode_compute_efficiency: Share = Field(title="Peak reached, decoding")
    expert_decode_factor: Share = Field(title="of which experts reach")
    prefill_compute_efficiency: Share = Field(title="Peak reached, prompts")
    expert_prefill_factor: Share = Field(title="of which experts reach, prompts")
    attention_compute_efficiency: Share = Field(title="Peak reached, attention of prompts")
    prefill_weight_reads: Factor = Field(title="Readings of the weights, a prompt")
    seconds_per_layer: Seconds = Field(title="Seconds a layer")
    seconds_per_all_reduce: Seconds = Field(title="Seconds an all-reduce")
    link_efficiency: Share = Field(title="Link's rate reached")
    wait_factor: float = Field(ge=0, le=1, allow_inf_nan=False, title="Share of other prompts waited for")
    seconds_per_request: Seconds = Field(title="Seconds a request of a step")
    base_ttft_seconds: Seconds = Field(title="Seconds before any work")
    busy_ttft_seconds: Seconds = Field(title="and beside other requests")
    steps_before_prefill: Factor = Field(title="Steps before the prompt")
    gather_steps: Factor = Field(title="Steps to gather a rank's prompt")


class Residual(Entry):
    """Mean measured over predicted time to first token and time per output token; 1 is unbiased."""

    tpot: Ratio
    ttft: Ratio


UNBIASED = Residual(tpot=1, ttft=1)
RESIDUALS: dict[str, tuple[str, str, str]] = {  # by name: the figure, the field of a cell, and the entry
    f"{figure}_of_{axis}_{entry}": (figure, f"of_{axis}", entry)
    for axis, every in (("kind", MODEL_KINDS), ("dtype", DTYPES))
    for figure in ("tpot", "ttft")
    for entry in every
}


class SpeedCell(Entry):
    """Speed constants of one engine on one GPU generation, and the runs behind them; kinds: the models of those runs.

    of_kind, of_dtype: residuals by kind of model and by precision of weights; 1 without runs.
    """

    engine: Id
    generation: Label
    architectures: Some[Label]
    measured_gpus: Many[Id] = ()
    kinds: Some[ModelKind]
    n_rows: Count
    n_configurations: Count
    constants: SpeedConstants
    of_kind: dict[ModelKind, Residual] = Field(default_factory=dict)
    of_dtype: dict[Id, Residual] = Field(default_factory=dict)


class SpeedBand(Entry):
    """The ends of an 80 % band, as factors of the prediction, for both times together (docs/speed.md).

    gpu: the GPU of a band of scope fitted. generation: the GPU generation of a band of scope other; None: all GPUs.
    engine: the engine whose runs it is made of; None: all engines.
    """

    figure: Figure
    scope: Scope
    kind: ModelKind | Literal["any"]
    gpu: Id | None = None
    generation: Label | None = None
    engine: Label | None = None
    low: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
    high: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)]
    n_rows: CountOrZero  # runs behind the band


class SpeedFile(Entry):
    """Speed constants for every engine and GPU: those of a fitted cell, or `default` where there is none."""

    file_name: ClassVar[str] = "speed.yaml"
    checked_on: Date
    source: Text
    licence: Text
    nvlink_gpus: Count
    all_reduce_growth: Share
    all_reduce_source: Text
    chunks_power: float = Field(ge=0, le=1, allow_inf_nan=False)
    chunks_source: Text
    expert_kernels: Factor
    state_kernels: Factor
    sparse_kernels: Factor
    kernels_source: Text
    eager_seconds_per_layer: Seconds
    eager_source: Text
    least_step_seconds: Seconds
    least_step_source: Text
    network_hop_seconds: Seconds
    network_source: Text
    longest_prompt_tokens: Count
    default: SpeedConstants
    default_source: Text
    cells: Some[SpeedCell]
    same_as: dict[Id, Id] = Field(default_factory=dict)
    same_as_source: Text
    bands: Some[SpeedBand]
    bands_source: Text

    def is_beyond(self, input_tokens: float) -> bool:
        """True if a prompt is longer than those of all measured runs."""
        return input_tokens > self.longest_prompt_tokens

    def problems(self) -> Iterator[Problem]:
        seen: set[tuple[str, str]] = set()
        for i, cell in enumerate(self.cells):
            for architecture in cell.architectures:
                if (cell.engine, architecture) in seen:
                    yield ("cells", i, "architectures"), f"{architecture} has constants for {cell.engine} already"
                seen.add((cell.engine, architecture))
        given = {(b.figure, b.scope, b.kind, b.gpu, b.generation, b.engine) for b in self.bands}
        needed = {
            *((scope, kind) for scope in ("other", "anchored") for kind in MODEL_KINDS),
            *((scope, "any") for scope in OF_ANY_KIND),
        }
        missing = {(figure, *pair, None, None, None) for figure in SPEED_FIGURES for pair in needed} - given
        if missing or len(given) != len(self.bands):
            yield (
                ("bands",),
                f"bands need one row for each figure and {', '.join(' '.join(pair) for pair in sorted(needed))}",
            )
        for i, band in enumerate(self.bands):
            if (band.scope == "fitted") != (band.gpu is not None):
                yield ("bands", i), "a band of scope fitted is of a gpu, and no other is"

    def cell(self, engine: str, gpu: Gpu) -> SpeedCell | None:
        """The fitted cell of an engine on a GPU; None where the default constants are used."""
        return self._cells.get((self.same_as.get(engine, engine), gpu.architecture))

    @cached_property
    def _cells(self) -> dict[tuple[str, str], SpeedCell]:
        """The cells by engine and architecture."""
        return {(cell.engine, architecture): cell for cell in self.cells for architecture in cell.architectures}

    def constants(self, engine: str, gpu: Gpu) -> SpeedConstants:
        cell = self.cell(engine, gpu)
        return cell.constants if cell else self.default

    def residuals(self, engine: str, gpu: Gpu) -> dict[str, float]:
        """Residual factors by the names of RESIDUALS, such as `tpot_of_kind_moe`; 1 without runs."""
        cell = self.cell(engine, gpu)
        return {
            name: getattr(getattr(cell, field).get(entry, UNBIASED), figure) if cell else 1.0
            for name, (figure, field, entry) in RESIDUALS.items()
        }

    def measured_kinds(self, engine: str, gpu: Gpu) -> int:
        """The kinds of models for which `has_runs` holds, as the bit mask that `measured_scope` reads."""
        return sum(2**i for i, kind in enumerate(MODEL_KINDS) if self.has_runs(kind, engine, gpu))

    def has_runs(self, kind: ModelKind, engine: str, gpu: Gpu) -> bool:
        """True if the fit used runs of this engine, GPU and kind of model, and the GPU has a band of its own."""
        cell = self.cell(engine, gpu)
        if cell is None or cell.engine != engine or gpu.id not in cell.measured_gpus or kind not in cell.kinds:
            return False
        return any((figure, gpu.id) in self._of_gpus for figure in SPEED_FIGURES)

    def band_of_any_kind(self, figure: Figure, end: str, scope: Scope) -> float:
        """An end ("low" or "high") of a figure's band in a scope that has one for all kinds of models and GPUs."""
        factor: float = getattr(self._drawn_bands[figure, scope, "any"][None, None], end)
        return factor

    def band(self, figure: Figure, end: str, scope: Scope, kind: ModelKind, engine: str, gpu: Gpu) -> SpeedBand:
        """The band that gives one end ("low" or "high") of a figure's interval in a scope.

        A configuration that was not measured on a GPU is no more certain than those that were: unless a measured point
        anchors it, its band is at least as wide, at either end, as the GPU's own; and that of several ranks at least as
        wide as that of one rank, where the GPU has no run of this kind of model.
        """
        drawn = [self.drawn_band(figure, scope, kind, engine, gpu)]
        if scope != "anchored":
            drawn += self._of_gpus.get((figure, gpu.id), ())
        if scope == "ranks" and not self.has_runs(kind, engine, gpu):
            drawn.append(self.band(figure, end, "other", kind, engine, gpu))
        return (min if end == "low" else max)(drawn, key=lambda row: getattr(row, end))

    def drawn_band(self, figure: Figure, scope: Scope, kind: ModelKind, engine: str, gpu: Gpu) -> SpeedBand:
        """The band of a figure in a scope.

        Scope fitted: the GPU's own band, or the widest (`stages`) where it has none. Other scopes: the band of the
        engine's GPU generation and kind of model if measured, else the engine's on any GPU, else the one for all.
        """
        if scope == "fitted":
            of_gpu = self._of_gpus.get((figure, gpu.id))
            return of_gpu[0] if of_gpu else self.drawn_band(figure, "stages", kind, engine, gpu)
        drawn = self._drawn_bands[figure, scope, "any" if scope in OF_ANY_KIND else kind]
        cell = self.cell(engine, gpu)
        own_cell = cell is not None and cell.engine == engine and kind in cell.kinds
        generation = cell.generation if cell is not None and own_cell else None
        of_generation = drawn.get((generation, None)) if generation else None
        return of_generation or drawn.get((None, engine)) or drawn[None, None]

    @cached_property
    def _drawn_bands(self) -> dict[tuple[Figure, Scope, str], dict[tuple[str | None, str | None], SpeedBand]]:
        """The bands by (figure, scope, kind of model), and then by (GPU generation, engine)."""
        bands: dict[tuple[Figure, Scope, str], dict[tuple[str | None, str | None], SpeedBand]] = {}
        for band in self.bands:
            of_kind = bands.setdefault((band.figure, band.scope, band.kind), {})
            of_kind.setdefault((band.generation, band.engine), band)
        return bands

    @cached_property
    def _of_gpus(self) -> dict[tuple[Figure, str], list[SpeedBand]]:
        """The bands made of one GPU's own runs, by (figure, GPU); none for a GPU with too few runs."""
        bands: dict[tuple[Figure, str], list[SpeedBand]] = {}
        for band in self.bands:
            if band.gpu is not None:
                bands.setdefault((band.figure, band.gpu), []).append(band)
        return bands
