"""Where the inputs of speed are from: fitted constants, bands, a GPU's published rates, a measured point."""

from __future__ import annotations

import re
from typing import Any

from sheetgen.calibration import Anchored
from sheetgen.catalog import Gpu
from sheetgen.catalog.speed import SPEED, SpeedConstants
from sheetgen.provenance.origin import Origin
from sheetgen.scenario.deployment import ASSUMED_FLOPS_PER_BYTE, SPEED_DEFINITIONS, Resolved
from sheetgen.scenario.reference import Reference

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
        return Origin("catalog", reference.document(SPEED).at((name,)), source=names.speed.all_reduce_source)
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
    document, speed, engine = reference.document(SPEED), names.speed, names.engine.engine
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
    where = reference.document(SPEED).at(("bands", row))
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
