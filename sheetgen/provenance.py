"""Where an input of a formula is from: given, a default, a catalog file, an assumption, or other inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sheetgen.calibration import Anchored
from sheetgen.catalog.engines import CONSTANTS, SpeedConstants, SpeedFile
from sheetgen.scenario.deployment import ASSUMED_FLOPS_PER_BYTE, DEFAULTS, SPEED_DEFINITIONS, Reference, Resolved
from sheetgen.units import DTYPES


@dataclass(frozen=True)
class Origin:
    """Where a number is from: a word, a sentence or place, what it follows from; that place's own source, and its
    file."""

    kind: str
    about: str
    inputs: tuple[str, ...] = ()
    source: str = ""
    file: str = ""


# Figures of speed that have bands, and what they are bands of.
SPEED_FIGURES = {
    "tpot": "tpot_seconds", "ttft": "ttft_seconds", "output_tokens_per_second": "output_tokens_per_second",
}  # fmt: skip
_SPEED_BANDS = {f"{figure}_band_{end}": figure for figure in SPEED_FIGURES for end in ("low", "high")}
_RATES = ("memory_bandwidth_bytes_per_second", "interconnect_bytes_per_second")
_PEAKS = ("peak_flops", "peak_flops_16_bit")
# The peak that weights of a precision are multiplied at where the GPU has it.
_PEAK_OF = {"fp8": "fp8", "fp8_e5m2": "fp8", "int8": "int8", "nvfp4": "fp4", "mxfp4": "fp8"}
_WIDER_PEAKS = (("bf16", 1), ("fp16", 1), ("fp8", 2), ("fp4", 2), ("fp8", 4), ("fp4", 4))
_PARTS = {1: "", 2: "half of ", 4: "a quarter of "}
# What neither a formula nor a file gives: how it follows, and from what.
DERIVED: dict[str, tuple[str, tuple[str, ...]]] = {
    "requests_per_rank": (
        "the requests in flight, shared out over the data-parallel ranks",
        ("concurrent_requests", "data_parallel_size"),
    ),
    "non_torch_bytes_per_tp": ("the engine's figure at this tensor-parallel size", ("tensor_parallel_size",)),
    "draft_weights_bytes_per_gpu": (
        "the draft model's weights over the tensor-parallel ranks", ("tensor_parallel_size",)
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
    "weights_bytes_per_gpu": "weights_error_share", "activation_bytes_per_gpu": "activation_error_bytes",
    "non_torch_bytes_per_gpu": "non_torch_error_bytes",
    **dict.fromkeys(("kv_pool_bytes_per_gpu", "kv_tokens", "max_concurrency"), "kv_pool_error_bytes"),
}  # fmt: skip
SEARCHED |= {
    f"{name}_{end}": (f"The {end} end of the 80 % error band of {name}.", (name, f"{error}_{end}"))
    for name, error in _BAND_ENDS.items()
    for end in ("low", "high")
}
ADDED_BY_DRAFT = {"other_bytes_per_token": "draft_bytes_per_token", "n_other_layers": "draft_layers"}
_FIELDS = {  # columns that stand under another name in the model's file
    "n_params": ("params", "total"), "n_params_active": ("params", "active"),
    "n_params_quantizable": ("params", "body"), "n_params_copied": ("params", "copied"),
    "n_params_routed": ("params", "routed_experts"), "n_params_embedding": ("params", "embedding"),
    "n_params_lm_head": ("params", "lm_head"),
    "n_params_per_layer_embedding": ("params", "per_layer_embedding"), "n_params_mtp": ("params", "mtp_extra"),
    "ffn_matrices": ("gated_ffn",), "expert_intermediate_size": ("moe_intermediate_size",),
    "n_experts": ("experts", "n"), "experts_per_token": ("experts", "top_k"),
    "encoder_item_tokens": ("encoder", "max_item_tokens"), "encoder_item_elements": ("encoder", "max_item_elements"),
}  # fmt: skip
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
    """The origins of one deployment's inputs; `overrides` holds what the user gave, under the long names. `scope` says
    which runs the bands of speed are from, `anchored` is the measured point that sets factors."""

    def __init__(
        self, names: Resolved, overrides: Mapping[str, Any], reference: Reference, scope: str = "other",
        anchored: Anchored | None = None,
    ) -> None:  # fmt: skip
        self.names = names
        self.overrides = overrides
        self.reference = reference
        self.scope = scope
        self.anchored = anchored

    def of(self, name: str) -> Origin:
        names, engine = self.names, self.names.engine
        if name in SEARCHED:
            return Origin("search", *SEARCHED[name])
        if name in DEFAULTS:
            return self._of_input(name)
        if name in DERIVED:
            about, inputs = DERIVED[name]
            if name == "non_torch_bytes_per_tp":
                return self._of_engine(f", {about}", engine.non_torch_source, "assumption", inputs)
            return Origin("computed", about, inputs)
        if name in _PRECISION:
            return self._precision(name)
        if name in _ENGINE:
            kind = "assumption" if _ENGINE[name] in _FITTED else "catalog"
            return self._of_engine("", getattr(engine, _ENGINE[name]), kind)
        if "_error_" in name:
            return self._of_engine(", bands", engine.bands_source or "", "assumption")
        if name == "gpu_memory_bytes":
            memory = names.gpu.memory
            kind = "assumption" if memory.basis == "assumed" else "catalog"
            return self._in_file(f"gpus/{names.gpu.id}.yaml", ("memory", "engine_bytes"), "", memory.source, kind)
        if name == "checkpoint_bytes":
            return self._checkpoint()
        if name.startswith("draft_"):
            if names.draft is None:
                return Origin("default", "no draft model")
            return self._in_file(f"models/{names.draft.id}.yaml", None, "", names.draft.source)
        loc = _FIELDS.get(name) or ((name,) if hasattr(names.model, name) else ("attention",))
        return self._of_speed(name) or self._in_file(f"models/{names.model.id}.yaml", loc, "", names.model.source)

    def _in_file(
        self, relative: str, loc: tuple[str | int, ...] | None, words: str, source: str, kind: str = "catalog",
        inputs: tuple[str, ...] = (),
    ) -> Origin:  # fmt: skip
        """A number in a file of the catalogs: at `loc`, or in no one line."""
        document = self.reference.document(relative)
        place = document.where if loc is None else document.at(loc)
        return Origin(kind, place + words, inputs, source, document.where)

    def _of_engine(self, words: str, source: str, kind: str, inputs: tuple[str, ...] = ()) -> Origin:
        return self._in_file(f"engines/{self.names.engine.engine}.yaml", None, words, source, kind, inputs)

    def of_gpu(self, loc: tuple[str, ...], words: str = "", kind: str = "catalog") -> Origin:
        gpu = self.names.gpu
        return self._in_file(f"gpus/{gpu.id}.yaml", loc, words, gpu.source, kind)

    def _of_input(self, name: str) -> Origin:
        if found := self._anchored(name):
            return found
        if self.overrides.get(name) is not None:
            return Origin("given", f"typed: {self.overrides[name]}")
        if DEFAULTS[name] is not None:
            return Origin("default", "the default of sheetgen")
        if name in ("max_model_len", "input_tokens", "output_tokens"):
            return Origin("default", "follows from context_tokens", ("context_tokens",))
        source = self.names.engine.batch_defaults_source if name.startswith("max_num") else ""
        return self._of_engine(", the engine's own", source, "default")

    def _anchored(self, name: str) -> Origin | None:
        """The origin of a factor that a measured point sets; None for any other name."""
        found = self.anchored
        if found is None or name not in ("speed_factor", "ttft_factor"):
            return None
        if name == "speed_factor":
            figure, predicted = "TPOT", found.predicted_tpot_seconds
            measured: float | None = found.anchor.tpot_seconds
        else:
            figure, measured, predicted = "TTFT", found.anchor.ttft_seconds, found.predicted_ttft_seconds
        if measured is None:
            return None
        about = f"anchor: {figure} of {1000 * measured:,.6g} ms measured over {1000 * predicted[0]:,.6g} ms predicted"
        return Origin("given", f"{about}, {found.anchor.words} in flight")

    def _precision(self, name: str) -> Origin:
        option, what = _PRECISION[name]
        dtype = getattr(self.names, option)
        overrides = str(self.overrides.get(option) or "auto")
        why = f"{option} {dtype}" if overrides != "auto" else f"{option} {dtype}, the checkpoint's own"
        return Origin("given" if overrides != "auto" else "default", f"{what} in {DTYPES[dtype].about} ({why})")

    def _checkpoint(self) -> Origin:
        model, dtype = self.names.model, self.names.weight_dtype
        file, size = f"models/{model.id}.yaml", model.checkpoint_bytes(dtype)
        for i, one in enumerate(model.checkpoints):
            if size and one.weight_dtype == dtype and one.size_bytes == size:
                words = f", {one.hf_id or one.format}"
                return self._in_file(file, ("checkpoints", i, "size_bytes"), words, one.source)
        return self._in_file(file, ("checkpoints",), ", no checkpoint of this precision is known", "")

    def _of_speed(self, name: str) -> Origin | None:
        """The origin of a catalog's number that speed reads; None for any other name."""
        gpu, speed = self.names.gpu, self.names.speed
        if name in SpeedConstants.model_fields:
            return self._constant(name)
        if name in ("nvlink_gpus", "all_reduce_growth"):
            return self._in_file(SpeedFile.file_name, (name,), "", speed.all_reduce_source)
        if name in SPEED_DEFINITIONS:
            return Origin("default", "a definition: " + name.replace("_", " "))
        if name in _RATES:
            if getattr(gpu, name) is None:
                return self.of_gpu((name,), ", none is published: that of PCIe 4 x16 is assumed", "assumption")
            return self.of_gpu((name,), f", {gpu.interconnect}" if name.startswith("interconnect") else "")
        if name in _PEAKS:
            return self._peak(self.names.weight_dtype if name == "peak_flops" else "bf16")
        if figure := _SPEED_BANDS.get(name):
            kind = "dense" if self.names.model.experts is None else "moe"
            of_band = (figure, self.scope, kind)
            row, band = next((i, b) for i, b in enumerate(speed.bands) if (b.figure, b.scope, b.kind) == of_band)
            words = f", 80 % of {band.n_rows:,} runs ({self.scope}, {kind})"
            return self._in_file(SpeedFile.file_name, ("bands", row), words, speed.bands_source)
        return None

    def _constant(self, name: str) -> Origin:
        """The cell of the engine on this generation of GPUs, or the constants of all where it has none."""
        speed, engine, gpu = self.names.speed, self.names.engine, self.names.gpu
        cell = speed.cell(engine.engine, gpu)
        if cell is None:
            words = f", default: no runs of {engine.name} on {gpu.architecture}"
            return self._in_file(SpeedFile.file_name, ("default", name), words, speed.default_source)
        alike = "" if cell.engine == engine.engine else f", which stand in for {engine.name} ({speed.same_as_source})"
        words = f", fitted on {cell.n_rows:,} runs of {cell.engine} on {cell.generation}{alike}"
        return self._in_file(
            SpeedFile.file_name, ("cells", speed.cells.index(cell), "constants", name), words, speed.source
        )

    def _peak(self, weight_dtype: str) -> Origin:
        """Which of the GPU's published peaks weights of this precision are multiplied at."""
        gpu = self.names.gpu
        peaks, found = gpu.peak_dense_flops, gpu.peak_flops_for(weight_dtype)
        own = _PEAK_OF.get(weight_dtype)
        for field, parts in (*([(own, 1)] if own else []), *_WIDER_PEAKS):
            if found is not None and (getattr(peaks, field) or 0) // parts == found:
                words = f", {_PARTS[parts]}the dense {field} peak, for {weight_dtype} weights"
                return self.of_gpu(
                    ("peak_dense_flops", field), words + (": no other is published" if parts > 1 else "")
                )
        assumed = f"{ASSUMED_FLOPS_PER_BYTE} operations a byte of its bandwidth are assumed, as of the A100"
        return self.of_gpu(("peak_dense_flops",), f", no peak is published: {assumed}", "assumption")
