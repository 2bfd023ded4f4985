"""Where an input of a formula is from: given, a default, a catalog file, an assumption, or other inputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.calibration import Anchored
from sheetgen.catalog import Gpu
from sheetgen.catalog.engines import CONSTANTS
from sheetgen.catalog.speed import SpeedConstants, SpeedFile
from sheetgen.scenario.deployment import ASSUMED_FLOPS_PER_BYTE, DEFAULTS, SPEED_DEFINITIONS, Resolved
from sheetgen.scenario.reference import Reference
from sheetgen.units import DTYPES


@dataclass(frozen=True)
class Origin:
    """Where a number is from: a word, a sentence or place, that place's own source, what it follows from."""

    kind: str
    about: str
    inputs: tuple[str, ...] = ()
    source: str = ""


_RATES = ("memory_bandwidth_bytes_per_second", "interconnect_bytes_per_second")
_PEAKS = ("peak_flops", "peak_flops_16_bit")
_BAND = re.compile(r"(tpot|ttft|output_tokens_per_second)_band_(low|high)")
# The peak that weights of a precision are multiplied at where the GPU has it.
_PEAK_OF = {"fp8": "fp8", "fp8_e5m2": "fp8", "int8": "int8", "nvfp4": "fp4", "mxfp4": "fp8"}
_PARTS = {2: "half of", 4: "a quarter of"}


def speed_origin(name: str, names: Resolved, scope: str, reference: Reference) -> Origin | None:
    """The origin of a catalog's number that speed reads; None for any other name. `scope` is the bands' own."""
    if name in SpeedConstants.model_fields:
        return _constant(name, names, reference)
    if name in ("nvlink_gpus", "all_reduce_growth"):
        where = reference.document(SpeedFile.file_name).at((name,))
        return Origin("catalog", where, source=names.speed.all_reduce_source)
    if name in SPEED_DEFINITIONS:
        return Origin("default", "a definition: " + name.replace("_", " "))
    if name in _RATES:
        return _rate(name, names.gpu, reference)
    if name in _PEAKS:
        return _peak(names.gpu, names.weight_dtype if name == "peak_flops" else "bf16", reference)
    if match := _BAND.fullmatch(name):
        return _band(match[1], scope, names, reference)
    return None


def _constant(name: str, names: Resolved, reference: Reference) -> Origin:
    """The cell of the engine on this generation of GPUs, or the constants of all where it has none."""
    document, speed, engine = reference.document(SpeedFile.file_name), names.speed, names.engine.engine
    cell = speed.cell(engine, names.gpu)
    if cell is None:
        about = f"default: no runs of {names.engine.name} on {names.gpu.architecture}"
        return Origin("catalog", f"{document.at(('default', name))}, {about}", source=speed.default_source)
    where = document.at(("cells", speed.cells.index(cell), "constants", name))
    stands_in = "" if cell.engine == engine else f", which stand in for {names.engine.name} ({speed.same_as_source})"
    runs = f"{cell.n_rows:,} runs of {cell.engine} on {cell.generation}"
    return Origin("catalog", f"{where}, fitted on {runs}{stands_in}", source=speed.source)


def _rate(name: str, gpu: Gpu, reference: Reference) -> Origin:
    where = _gpu_file(gpu, (name,), reference)
    if getattr(gpu, name) is None:
        return Origin("assumption", f"{where}, none is published: that of PCIe 4 x16 is assumed", source=gpu.source)
    link = f", {gpu.interconnect}" if name.startswith("interconnect") else ""
    return Origin("catalog", where + link, source=gpu.source)


def _peak(gpu: Gpu, weight_dtype: str, reference: Reference) -> Origin:
    """Which of the GPU's published peaks weights of this precision are multiplied at."""
    peaks, found = gpu.peak_dense_flops, gpu.peak_flops_for(weight_dtype)
    own = _PEAK_OF.get(weight_dtype)
    for field in (*((own,) if own else ()), "bf16", "fp16"):
        if found is not None and getattr(peaks, field) == found:
            where = _gpu_file(gpu, ("peak_dense_flops", field), reference)
            return Origin("catalog", f"{where}, the dense {field} peak, for {weight_dtype} weights", source=gpu.source)
    for parts, words in _PARTS.items():
        for field in ("fp8", "fp4"):
            if found is not None and (getattr(peaks, field) or 0) // parts == found:
                where = _gpu_file(gpu, ("peak_dense_flops", field), reference)
                about = f"{where}, {words} the dense {field} peak, for {weight_dtype} weights: no other is published"
                return Origin("catalog", about, source=gpu.source)
    where = _gpu_file(gpu, ("peak_dense_flops",), reference)
    assumed = f"{ASSUMED_FLOPS_PER_BYTE} operations a byte of its bandwidth are assumed, as of the A100"
    return Origin("assumption", f"{where}, no peak is published: {assumed}", source=gpu.source)


def _band(figure: str, scope: str, names: Resolved, reference: Reference) -> Origin:
    kind = "dense" if names.model.experts is None else "moe"
    bands = names.speed.bands
    row = next(i for i, b in enumerate(bands) if (b.figure, b.scope, b.kind) == (figure, scope, kind))
    where = reference.document(SpeedFile.file_name).at(("bands", row))
    about = f"{where}, 80 % of {bands[row].n_rows:,} runs ({scope}, {kind})"
    return Origin("catalog", about, source=names.speed.bands_source)


def _gpu_file(gpu: Gpu, loc: tuple[str, ...], reference: Reference) -> str:
    return reference.document(f"gpus/{gpu.id}.yaml").at(loc)


def anchored_origin(name: str, found: Anchored) -> Origin | None:
    """The origin of a factor that a measured point sets; None for any other name."""
    figures: dict[str, tuple[str, float | None, Any]] = {
        "speed_factor": ("TPOT", found.anchor.tpot_seconds, found.predicted_tpot_seconds),
        "ttft_factor": ("TTFT", found.anchor.ttft_seconds, found.predicted_ttft_seconds),
    }
    figure, measured, predicted = figures.get(name, ("", None, None))
    if measured is None:
        return None
    about = f"anchor: {figure} of {1000 * measured:,.6g} ms measured over {1000 * predicted[0]:,.6g} ms predicted"
    return Origin("given", f"{about}, {found.anchor.words} in flight")


# What neither a formula nor a file gives: how it follows, and from what.
DERIVED: dict[str, tuple[str, tuple[str, ...]]] = {
    "requests_per_rank": (
        "the requests in flight, shared out over the data-parallel ranks",
        ("concurrent_requests", "data_parallel_size"),
    ),
    "non_torch_bytes_per_tp": (
        "the engine's figure at this tensor-parallel size",
        ("tensor_parallel_size",),
    ),
    "draft_weights_bytes_per_gpu": (
        "the draft model's weights over the tensor-parallel ranks",
        ("tensor_parallel_size",),
    ),
    "kv_reserved": ("1 where kv_allocation is reserved, 0 where it is paged", ()),
    "output_tokens_per_second_per_gpu": (
        "the replica's output_tokens_per_second over its GPUs",
        ("output_tokens_per_second", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"),
    ),
    "speed_scope": (
        "which runs the bands of speed are from: fitted where the engine was measured on this GPU (no draft, no"
        " pipeline stages, one node), anchored where a factor was set, other elsewhere",
        ("speed_factor", "ttft_factor", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
         "nvlink_gpus"),
    ),
    "queue": (
        "who waits: requests in flight beyond those that run, or arrivals beyond those that are finished",
        ("concurrent_requests", "running_requests", "requests_per_second", "max_requests_per_second"),
    ),
}  # fmt: skip
# Found by trying, not by one formula.
SEARCHED: dict[str, tuple[str, tuple[str, ...]]] = {
    "max_context_tokens_that_fit": (
        "The longest context at which all requests fit: found by halving, with kv_bytes_per_sequence_per_gpu.",
        ("kv_budget_bytes_per_gpu", "requests_per_rank", "max_context_tokens"),
    ),
    "min_gpus": (
        "The fewest GPUs of this kind that hold weights and kv_bytes: TP 1, 2, 4, 8 and pipeline stages tried.",
        ("weights_bytes", "kv_bytes", "memory_budget_bytes"),
    ),
}
_BAND_ENDS = {
    "weights_bytes_per_gpu": "weights_error_share",
    "activation_bytes_per_gpu": "activation_error_bytes",
    "non_torch_bytes_per_gpu": "non_torch_error_bytes",
    "kv_pool_bytes_per_gpu": "kv_pool_error_bytes",
    "kv_tokens": "kv_pool_error_bytes",
    "max_concurrency": "kv_pool_error_bytes",
}
SEARCHED |= {
    f"{name}_{end}": (f"The {end} end of the 80 % error band of {name}.", (name, f"{error}_{end}"))
    for name, error in _BAND_ENDS.items()
    for end in ("low", "high")
}
ADDED_BY_DRAFT = {"other_bytes_per_token": "draft_bytes_per_token", "n_other_layers": "draft_layers"}
_PARAMS = {
    "n_params": "total",
    "n_params_active": "active",
    "n_params_quantizable": "body",
    "n_params_copied": "copied",
    "n_params_routed": "routed_experts",
    "n_params_embedding": "embedding",
    "n_params_lm_head": "lm_head",
    "n_params_per_layer_embedding": "per_layer_embedding",
}
_FIELDS = {  # columns that stand under another name in the model's file
    "ffn_matrices": ("gated_ffn",),
    "n_params_mtp": ("params", "mtp_extra"),
    "n_experts": ("experts", "n"),
    "experts_per_token": ("experts", "top_k"),
    "expert_intermediate_size": ("moe_intermediate_size",),
    "encoder_item_tokens": ("encoder", "max_item_tokens"),
    "encoder_item_elements": ("encoder", "max_item_elements"),
}
_PRECISION = {
    "linear_bytes": ("weight_dtype", "bytes of a quantized weight"),
    "other_bytes": ("weight_dtype", "bytes of a weight that stays unquantized"),
    "activation_copy_bytes": ("weight_dtype", "bytes of the quantized copy of a layer's input"),
    "kv_dtype_bytes": ("kv_cache_dtype", "bytes of an element"),
    "kv_scale_bytes": ("kv_cache_dtype", "bytes of a scale per token and head"),
}
_ENGINE = {one.column: one.source for one in CONSTANTS}  # the field of the engine's file that names its source
_FITTED = ("activation_source", "cuda_graph_source")  # measured on some machines, assumed on others


class Origins:
    """The origins of one deployment's inputs; `typed` holds what the user gave, under the long names. `scope` says
    which runs the bands of speed are from, `anchored` is the measured point that sets factors."""

    def __init__(
        self, names: Resolved, overrides: Mapping[str, Any], reference: Reference, scope: str = "other",
        anchored: Anchored | None = None,
    ) -> None:  # fmt: skip
        self.scope = scope
        self.anchored = anchored
        self.names = names
        self.overrides = overrides
        self.reference = reference
        self.has_draft = self.names.draft is not None

    def before(self, name: str) -> int:
        """A column of the model alone, without a draft."""
        return int(self.names.model.shape()[name])

    def of(self, name: str) -> Origin:
        if name in SEARCHED:
            return Origin("search", *SEARCHED[name])
        if name in DEFAULTS:
            return self._of_input(name)
        if name in DERIVED:
            about, inputs = DERIVED[name]
            if name == "non_torch_bytes_per_tp":
                about = f"{self._engine_file()}, {about}"
                return Origin("assumption", about, inputs, self.names.engine.non_torch_source)
            return Origin("computed", about, inputs)
        if name in _PRECISION:
            return self._precision(name)
        if name in _ENGINE:
            source = _ENGINE[name]
            kind = "assumption" if source in _FITTED else "catalog"
            return Origin(kind, self._engine_file(), source=getattr(self.names.engine, source))
        if "_error_" in name:
            about = f"{self._engine_file()}, bands"
            return Origin("assumption", about, source=self.names.engine.bands_source or "")
        if name == "gpu_memory_bytes":
            gpu = self.names.gpu
            where = self.reference.document(f"gpus/{gpu.id}.yaml").at(("memory", "engine_bytes"))
            kind = "assumption" if gpu.memory.basis == "assumed" else "catalog"
            return Origin(kind, where, source=gpu.memory.source)
        if name == "checkpoint_bytes":
            return self._checkpoint()
        if name.startswith("draft_"):
            return self._draft()
        return speed_origin(name, self.names, self.scope, self.reference) or self._model(name)

    def _of_input(self, name: str) -> Origin:
        if self.anchored is not None and (found := anchored_origin(name, self.anchored)):
            return found
        if self.overrides.get(name) is not None:
            return Origin("given", f"typed: {self.overrides[name]}")
        if DEFAULTS[name] is not None:
            return Origin("default", "the default of sheetgen")
        if name in ("max_model_len", "input_tokens", "output_tokens"):
            return Origin("default", "follows from context_tokens", ("context_tokens",))
        engine = self.names.engine
        source = engine.batch_defaults_source if name.startswith("max_num") else ""
        return Origin("default", f"{self._engine_file()}, the engine's own", source=source)

    def _precision(self, name: str) -> Origin:
        option, what = _PRECISION[name]
        dtype = getattr(self.names, option)
        overrides = str(self.overrides.get(option) or "auto")
        why = f"{option} {dtype}" if overrides != "auto" else f"{option} {dtype}, the checkpoint's own"
        return Origin("given" if overrides != "auto" else "default", f"{what} in {DTYPES[dtype].about} ({why})")

    def _checkpoint(self) -> Origin:
        model, dtype = self.names.model, self.names.weight_dtype
        size = model.checkpoint_bytes(dtype)
        for i, checkpoint in enumerate(model.checkpoints):
            if size and checkpoint.weight_dtype == dtype and checkpoint.size_bytes == size:
                where = self._file(("checkpoints", i, "size_bytes"))
                return Origin("catalog", f"{where}, {checkpoint.hf_id or checkpoint.format}", source=checkpoint.source)
        return Origin("catalog", f"{self._file(('checkpoints',))}, no checkpoint of this precision is known")

    def _draft(self) -> Origin:
        draft = self.names.draft
        if draft is None:
            return Origin("default", "no draft model")
        where = self.reference.document(f"models/{draft.id}.yaml").where
        return Origin("catalog", where, source=draft.source)

    def _model(self, name: str) -> Origin:
        model = self.names.model
        loc: tuple[str, ...] = (name,) if hasattr(model, name) else ("attention",)
        loc = _FIELDS.get(name, ("params", _PARAMS[name]) if name in _PARAMS else loc)
        return Origin("catalog", self._file(loc), source=model.source)

    def _file(self, loc: tuple[str | int, ...]) -> str:
        return self.reference.document(f"models/{self.names.model.id}.yaml").at(loc)

    def _engine_file(self) -> str:
        return self.reference.document(f"engines/{self.names.engine.engine}.yaml").where
