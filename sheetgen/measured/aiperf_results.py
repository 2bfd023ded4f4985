"""AIPerf's summary (profile_export_aiperf.json): the input, and for each metric an object with unit and average.

Keys: aiperf/common/models/export_models.py, which follows GenAI-Perf. Per-request records (profile_export.jsonl) are
not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import AliasPath, Field, model_validator

from sheetgen.catalog.base import among
from sheetgen.measured.measured_point import Reading, Unusable, by_rate, point_of
from sheetgen.measured.result_schema import Name, Number, Positive, Result

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
OWN_PATHS = (("inter_token_latency", "unit"), ("input_sequence_length", "unit"))


class Time(Result):
    """A metric of time."""

    unit: Annotated[str, among(SECONDS, f"is no unit of time, one of {', '.join(SECONDS)}")]
    avg: Positive

    @property
    def seconds(self) -> float:
        return self.avg * SECONDS[self.unit]


class Phase(Result):
    """A phase of the load, such as the warm-up."""

    concurrency: Number = None
    exclude_from_results: bool = False


class AiperfExport(Result):
    """A summary. The tokenizer's name is that of a checkpoint; a served name may be anything."""

    tokenizer: Name = Field(None, validation_alias=AliasPath("input_config", "tokenizer", "name"))
    first_model: Name = Field(None, validation_alias=AliasPath("input_config", "models", "items", 0, "name"))
    served_model: Name = Field(None, validation_alias=AliasPath("input_config", "endpoint", "model_names", 0))
    concurrency: Number = Field(None, validation_alias=AliasPath("input_config", "loadgen", "concurrency"))
    phases: list[Phase] | None = Field(None, validation_alias=AliasPath("input_config", "phases"))
    request_throughput: Number = Field(None, validation_alias=AliasPath("request_throughput", "avg"))
    request_latency: Time | None = None
    input_tokens: Positive = Field(validation_alias=AliasPath("input_sequence_length", "avg"))
    output_tokens: Positive = Field(validation_alias=AliasPath("output_sequence_length", "avg"))
    inter_token_latency: Time
    time_to_first_token: Time
    output_tokens_per_second: Number = Field(None, validation_alias=AliasPath("output_token_throughput", "avg"))
    was_cancelled: bool | None = None

    @property
    def model(self) -> str | None:
        return self.tokenizer or self.first_model or self.served_model

    @property
    def requests_at_once(self) -> float | None:
        """The concurrency of the last measured phase that states it, or of the load; None where none does."""
        measured = [phase.concurrency for phase in self.phases or () if not phase.exclude_from_results]
        return next((at_once for at_once in reversed(measured) if at_once), self.concurrency)

    @model_validator(mode="after")
    def says_its_load(self) -> Self:
        if self.requests_at_once is None and not (self.request_throughput and self.request_latency):
            raise ValueError("has neither a concurrency nor both request_throughput and request_latency")
        return self


def aiperf_points(export: AiperfExport, source: str) -> Iterator[Reading]:
    """The point of one export."""
    if export.was_cancelled:
        yield Unusable(source, "the run was cancelled")
        return
    at_once = export.requests_at_once
    if at_once is None:
        assert export.request_throughput is not None and export.request_latency is not None
        at_once = by_rate(export.request_throughput, export.request_latency.seconds)
    yield point_of(
        source,
        {"model": export.model},
        concurrent_requests=max(1.0, at_once),
        input_tokens=export.input_tokens,
        output_tokens=export.output_tokens,
        tpot_seconds=export.inter_token_latency.seconds,
        ttft_seconds=export.time_to_first_token.seconds,
        output_tokens_per_second=export.output_tokens_per_second,
    )
