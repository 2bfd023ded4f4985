"""By GPU what speed is predicted from: bandwidth, links, peaks, the engine's constants, whether runs were measured."""

from __future__ import annotations

from sheetgen.catalog.speed import SpeedConstants
from sheetgen.recommend import Solution
from sheetgen.sheet.book.wiring import Table
from sheetgen.units import DTYPES, FACTOR, PLAIN, WHOLE, Display

SMALL = Display("0.0000000##", 7, optional=2, thousands=False)  # microseconds, in seconds
CONSTANTS = tuple(SpeedConstants.model_fields)
OF_GPU = ("memory_bandwidth_bytes_per_second", "interconnect_bytes_per_second", "peak_flops_16_bit", *CONSTANTS)


def add_speed_columns(solved: Solution, table: Table) -> None:
    """The columns of GPUs that speed is predicted from."""
    gpus = solved.gpus
    for name, label, note in (
        ("memory_bandwidth_bytes_per_second", "Bandwidth, bytes/s", "Of the GPU's own memory."),
        ("interconnect_bytes_per_second", "Links, bytes/s", "Each way, to the other GPUs of the node."),
        ("peak_flops_16_bit", "Peak, 16 bits", "Dense operations per second."),
        *((f"peak_flops_{d}", f"Peak, {d} weights", "Dense operations per second with weights of this precision.")
          for d in DTYPES),
    ):  # fmt: skip
        table.given(name, label, [float(v) for v in gpus[name]], WHOLE, width=24, note=note)
    for name in CONSTANTS:
        display = SMALL if name.startswith("seconds_per") else FACTOR
        label = str(SpeedConstants.model_fields[name].title)
        table.given(name, label, [float(v) for v in gpus[name]], display, width=13,
                    note=f"{name}: fitted on measured runs (docs/speed.md).")  # fmt: skip
    table.given(
        "speed_is_fitted", "Runs measured (0 or 1)", [int(v) for v in gpus["speed_is_fitted"]], PLAIN,
        note="1: runs of this engine on this GPU are among those that the constants were fitted on.",
    )  # fmt: skip
