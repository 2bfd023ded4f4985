"""Inputs of speed: targets, the anchor, and by GPU what the engine makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sheetgen.catalog.speed import SpeedConstants, SpeedFile
from sheetgen.recommend import Solution
from sheetgen.recommend.latency import BAND_SCOPES, MILLISECONDS_PER_SECOND, NO_LIMIT_SECONDS, STRIDE
from sheetgen.scenario.deployment import SPEED_DEFINITIONS, SPEED_FIGURES, speed_band_columns
from sheetgen.sheet.accepts import number
from sheetgen.sheet.book.wiring import Table
from sheetgen.sheet.model import Range
from sheetgen.units import DTYPES, FACTOR, PLAIN, WHOLE, Display

if TYPE_CHECKING:
    from sheetgen.sheet.book.inputs import InputsSheet

SMALL = Display("0.0000000##", 7, optional=2, thousands=False)  # microseconds, in seconds
KINDS = ("dense", "moe")
_LABELS = {
    "weight_bandwidth_efficiency": "Bandwidth reached, dense weights",
    "expert_bandwidth_efficiency": "Bandwidth reached, experts",
    "kv_bandwidth_efficiency": "Bandwidth reached, KV cache",
    "decode_compute_efficiency": "Peak reached, decoding",
    "expert_decode_factor": "of which experts reach",
    "prefill_compute_efficiency": "Peak reached, prompts",
    "expert_prefill_factor": "of which experts reach, prompts",
    "attention_compute_efficiency": "Peak reached, attention of prompts",
    "prefill_weight_reads": "Readings of the weights, a prompt",
    "seconds_per_layer": "Seconds a layer",
    "seconds_per_all_reduce": "Seconds an all-reduce",
    "link_efficiency": "Link's rate reached",
    "wait_factor": "Share of other prompts waited for",
    "base_ttft_seconds": "Seconds before any work",
    "steps_before_prefill": "Steps before the prompt",
}
BLANK_TARGET = "Milliseconds. Blank: no target."
_SCOPES = {"fitted": "GPUs and engines with measured runs.", "other": "All others."}
CONSTANTS = tuple(SpeedConstants.model_fields)
OF_GPU = ("memory_bandwidth_bytes_per_second", "interconnect_bytes_per_second", "peak_flops_16_bit", *CONSTANTS)


def speed_file(solved: Solution) -> SpeedFile:
    """The constants that the sheet was solved with."""
    if solved.question.speed is None:
        raise ValueError("a question without constants of speed")
    return solved.question.speed


def add_speed_targets(page: InputsSheet) -> None:
    """Targets by workload; a blank one is off."""
    question = page.solved.question
    page.section("How long may a token take?")
    page.put("speed_targets", "Targets drive the count (1 on, 0 off)", question.settings.speed_targets, PLAIN, "",
             "On: replicas are as many as memory or speed asks for, whichever is more. Off: memory alone.")  # fmt: skip
    for figure, label, note in (
        (
            "tpot",
            "time per output token",
            "50 ms is 20 tokens a second, faster than people read, 100 ms 10. Blank: no target.",
        ),
        ("ttft", "time to first token", "Blank, the default: shown, but not asked for. Indicative under load."),
    ):
        refs = []
        for w in question.workloads:
            value = getattr(w, f"{figure}_target_ms")
            name, check = f"{figure}_ms_{page.excel_name(w.id)}", number("Target", 0.01, 3_600_000, BLANK_TARGET)
            refs.append(page.put(name, f"{w.name}: {label}", value, WHOLE, "ms", note, check, may_be_blank=True))
        page.wiring.lists[f"{figure}_targets"] = Range(tuple(refs))
    for name, label in (("speed_factor", "Measured / predicted time per token"),
                        ("ttft_factor", "Measured / predicted time to first token")):  # fmt: skip
        page.put(name, label, getattr(question.settings, name), FACTOR, "",
                 "1: as predicted. A run of your own gives a better one.",
                 number("Factor", 0.01, 100))  # fmt: skip


def add_speed_constants(page: InputsSheet) -> None:
    """What all GPUs share, the error bands, and the row of batches that is tried."""
    known = speed_file(page.solved)
    page.section("Speed: what all GPUs share")
    for name, label, value, display, unit, note in (
        ("nvlink_gpus", "GPUs of a node", known.nvlink_gpus, PLAIN, "GPUs", known.all_reduce_source),
        ("all_reduce_growth", "Growth of an all-reduce's latency", known.all_reduce_growth, FACTOR, "",
         "(GPUs / GPUs of a node) to this power."),
        ("data_parallel_size", "Data-parallel ranks of a replica", 1, PLAIN, "", "A sheet has replicas instead."),
        ("milliseconds_per_second", "Milliseconds in a second", MILLISECONDS_PER_SECOND, WHOLE, "ms", ""),
        *((name, name.replace("_", " ").capitalize(), value, FACTOR, "", "A definition.")
          for name, value in SPEED_DEFINITIONS.items()),
        ("no_queue_seconds", "Waiting for memory", 0, PLAIN, "seconds", "Replicas are as many as hold all requests."),
        ("no_limit_seconds", "A target that is off", NO_LIMIT_SECONDS, WHOLE, "seconds", "Longer than anything takes."),
        ("requests_per_stride", "Requests of a stride", STRIDE, PLAIN, "requests",
         "The largest batch within the targets is found by strides, then request by request."),
    ):  # fmt: skip
        page.put(name, label, value, display, unit, note, role="fixed")
    page.section("Speed: 80 % bands, as factors of the prediction")
    heads = [f"{figure} {end}" for figure in SPEED_FIGURES for end in ("low", "high")]
    page.sheet.text(page.row, 0, known.bands_source, "remark")
    page.row += 1
    columns: dict[str, list[Any]] = {}
    bands = {(s, k): speed_band_columns(known, s, k == "moe") for s in BAND_SCOPES for k in KINDS}
    for head, name in zip(heads, next(iter(bands.values())), strict=True):
        for (scope, kind), values in bands.items():
            words = f"{head}, {kind}, {scope}".replace("_", " ")
            ref = page.put(f"{name}_{scope}_{kind}", words, values[name], FACTOR, "", _SCOPES[scope])
            columns.setdefault(name, []).append(ref)
    page.wiring.lists |= {name: Range(tuple(refs)) for name, refs in columns.items()}


def add_speed_columns(solved: Solution, table: Table) -> None:
    """By GPU its bandwidth, links, peaks, the engine's constants, and whether runs were measured on it."""
    gpus = solved.gpus
    for name, label, note in (
        ("memory_bandwidth_bytes_per_second", "Bandwidth, bytes/s", "Of the GPU's own memory."),
        ("interconnect_bytes_per_second", "Links, bytes/s", "Each way, to the other GPUs of the node."),
        ("peak_flops_16_bit", "Peak, 16 bits", "Dense operations per second."),
    ):
        table.given(name, label, [float(v) for v in gpus[name]], WHOLE, width=24, note=note)
    for d in DTYPES:
        table.given(f"peak_flops_{d}", f"Peak, {d} weights", [float(v) for v in gpus[f"peak_flops_{d}"]], WHOLE,
                    width=24, note="Dense operations per second with weights of this precision.")  # fmt: skip
    for name in CONSTANTS:
        display = SMALL if name.startswith("seconds_per") else FACTOR
        table.given(name, _LABELS[name], [float(v) for v in gpus[name]], display, width=13,
                    note=f"{name}: fitted on measured runs (docs/speed.md).")  # fmt: skip
    table.given(
        "speed_is_fitted", "Runs measured (0 or 1)", [int(v) for v in gpus["speed_is_fitted"]], PLAIN,
        note="1: runs of this engine on this GPU are among those that the constants were fitted on.",
    )  # fmt: skip
