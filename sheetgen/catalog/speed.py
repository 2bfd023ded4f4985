"""The schema of speed.yaml: constants of speed by engine and generation of GPUs, and how far predictions lie off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from sheetgen.catalog.base import Count, Date, Entry, Id, Label, Many, Problem, Some, Text
from sheetgen.catalog.hardware import Gpu

Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
ShareFrom0 = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
Factor = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Figure = Literal["tpot", "ttft", "output_tokens_per_second"]
Scope = Literal["fitted", "other", "anchored"]


class SpeedConstants(Entry):
    """What sizing/speed.py reads beside a model and a GPU, under the head that it has in a workbook. Efficiencies are
    shares of published peaks; what may be 0 is no divisor."""

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
    wait_factor: ShareFrom0 = Field(title="Share of other prompts waited for")
    base_ttft_seconds: Seconds = Field(title="Seconds before any work")
    steps_before_prefill: Factor = Field(title="Steps before the prompt")


class SpeedCell(Entry):
    """Constants of one engine on one generation of GPUs, and the runs behind them."""

    engine: Id
    generation: Label
    architectures: Some[Label]
    measured_gpus: Many[Id] = ()
    n_rows: Count
    n_configurations: Count
    constants: SpeedConstants


class SpeedBand(Entry):
    """What 80 % of measurements are within, as factors of the prediction."""

    figure: Figure
    scope: Scope
    kind: Literal["dense", "moe"]
    low: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
    high: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)]
    n_rows: Count


class SpeedFile(Entry):
    """Constants for every engine and GPU: those of a fitted cell, or `default` where there is none."""

    file_name: ClassVar[str] = "speed.yaml"
    checked_on: Date
    source: Text
    licence: Text
    nvlink_gpus: Count
    all_reduce_growth: Share
    all_reduce_source: Text
    default: SpeedConstants
    default_source: Text
    cells: Some[SpeedCell]
    same_as: dict[Id, Id] = Field(default_factory=dict)
    same_as_source: Text
    bands: Some[SpeedBand]
    bands_source: Text

    def problems(self) -> Iterator[Problem]:
        seen: set[tuple[str, str]] = set()
        for i, cell in enumerate(self.cells):
            for architecture in cell.architectures:
                if (cell.engine, architecture) in seen:
                    yield ("cells", i, "architectures"), f"{architecture} has constants for {cell.engine} already"
                seen.add((cell.engine, architecture))
        known = {(b.figure, b.scope, b.kind) for b in self.bands}
        if len(known) != len(self.bands) or len(known) != 18:
            yield ("bands",), "bands need one row for each of 3 figures, 3 scopes and 2 kinds"

    def cell(self, engine: str, gpu: Gpu) -> SpeedCell | None:
        """The cell whose constants hold for an engine on a GPU; None where the default ones do."""
        name = self.same_as.get(engine, engine)
        return next((c for c in self.cells if c.engine == name and gpu.architecture in c.architectures), None)

    def constants(self, engine: str, gpu: Gpu) -> SpeedConstants:
        cell = self.cell(engine, gpu)
        return cell.constants if cell else self.default

    def scope(self, engine: str, gpu: Gpu) -> Scope:
        """Whether runs of this engine on this very GPU are among those that the constants were fitted on."""
        cell = self.cell(engine, gpu)
        return "fitted" if cell and cell.engine == engine and gpu.id in cell.measured_gpus else "other"

    def band(self, figure: Figure, scope: Scope, is_moe: bool) -> SpeedBand:
        kind = "moe" if is_moe else "dense"
        return next(b for b in self.bands if (b.figure, b.scope, b.kind) == (figure, scope, kind))
