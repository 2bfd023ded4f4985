"""GuideLLM's report (benchmarks.json): several benchmarks, each a strategy with its metrics by status of the requests.

Keys: guidellm/benchmark/schemas. Its time_per_output_token_ms includes the first token; its inter_token_latency_ms is
the TPOT of other tools.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import AliasPath, Field

from sheetgen.catalog.base import RawValue
from sheetgen.measured.measured_point import MILLISECONDS_PER_SECOND, Reading, Unusable, point_of
from sheetgen.measured.result_schema import Name, Number, Positive, Result, checked_result

OWN_PATH = ("benchmarks", 0, "metrics", "inter_token_latency_ms")


def _mean(metric: str) -> AliasPath:
    """The mean of a metric over the requests that were answered."""
    return AliasPath("metrics", metric, "successful", "mean")


class GuidellmReport(Result):
    """A report, and the model by versions of the tool."""

    benchmarks: list[RawValue] = Field(min_length=1)
    model: Name = Field(None, validation_alias=AliasPath("args", "model"))


class Strategy(Result):
    """The benchmark as any has it: how its requests were sent and how many tokens answered them; and the model."""

    of_config: Name = Field(None, validation_alias=AliasPath("config", "strategy", "type_"))
    of_scheduler: Name = Field(None, validation_alias=AliasPath("scheduler", "strategy", "type_"))
    of_args: Name = Field(None, validation_alias=AliasPath("args", "strategy", "type_"))
    output_tokens: Number = Field(None, validation_alias=_mean("output_token_count"))
    model_of_config: Name = Field(None, validation_alias=AliasPath("config", "backend", "model"))
    model_of_benchmarker: Name = Field(None, validation_alias=AliasPath("benchmarker", "backend", "model"))
    model_of_worker: Name = Field(None, validation_alias=AliasPath("worker", "backend_model"))

    @property
    def kind(self) -> str | None:
        return self.of_config or self.of_scheduler or self.of_args

    @property
    def model(self) -> str | None:
        return self.model_of_config or self.model_of_benchmarker or self.model_of_worker


class Answered(Result):
    """The means of a benchmark whose requests were answered."""

    concurrency: Positive = Field(validation_alias=_mean("request_concurrency"))
    input_tokens: Positive = Field(validation_alias=_mean("prompt_token_count"))
    output_tokens: Positive = Field(validation_alias=_mean("output_token_count"))
    tpot_ms: Positive = Field(validation_alias=_mean("inter_token_latency_ms"))
    ttft_ms: Positive = Field(validation_alias=_mean("time_to_first_token_ms"))
    output_tokens_per_second: Number = Field(None, validation_alias=_mean("output_tokens_per_second"))


def guidellm_points(report: GuidellmReport, source: str) -> Iterator[Reading]:
    """One point for each benchmark of a report."""
    n = len(report.benchmarks)
    for i, benchmark in enumerate(report.benchmarks, 1):
        yield _point(report, benchmark, f"{source} ({i} of {n})" if n > 1 else source)


def _point(report: GuidellmReport, benchmark: RawValue, source: str) -> Reading:
    strategy = checked_result(benchmark, Strategy, source)
    if strategy.kind == "throughput":
        return Unusable(source, "its requests were sent as fast as possible, with no steady number at once")
    if not strategy.output_tokens:
        return Unusable(source, "none of its requests was answered")
    means = checked_result(benchmark, Answered, source)
    return point_of(
        source,
        {"model": strategy.model or report.model},
        concurrent_requests=max(1.0, means.concurrency),
        input_tokens=means.input_tokens,
        output_tokens=means.output_tokens,
        tpot_seconds=means.tpot_ms / MILLISECONDS_PER_SECOND,
        ttft_seconds=means.ttft_ms / MILLISECONDS_PER_SECOND,
        output_tokens_per_second=means.output_tokens_per_second,
    )
