"""GuideLLM's report (benchmarks.json): several benchmarks, each a strategy with its metrics by status of the requests.

Keys: guidellm/benchmark/schemas. Its time_per_output_token_ms includes the first token; its inter_token_latency_ms is
the TPOT of other tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sheetgen.catalog.base import RawMapping, RawValue
from sheetgen.errors import ScenarioError
from sheetgen.measured.measured_point import (
    MILLISECONDS_PER_SECOND,
    Reading,
    Unusable,
    at_path,
    name_at,
    needed_number,
    number_at,
    point_of,
)

TOOL = "GuideLLM"
MODEL_AT = (
    ("config", "backend", "model"), ("benchmarker", "backend", "model"), ("worker", "backend_model"),
)  # fmt: skip
STRATEGY_AT = (("config", "strategy"), ("scheduler", "strategy"), ("args", "strategy"))


def is_guidellm_report(document: RawValue) -> bool:
    return isinstance(at_path(document, "benchmarks", 0, "metrics", "inter_token_latency_ms"), Mapping)


def guidellm_points(document: RawMapping, source: str) -> Iterator[Reading]:
    """One point for each benchmark of a report."""
    benchmarks = document["benchmarks"]
    for i, benchmark in enumerate(benchmarks, 1):
        yield _point(document, benchmark, f"{source} ({i} of {len(benchmarks)})" if len(benchmarks) > 1 else source)


def _point(document: RawMapping, benchmark: RawValue, source: str) -> Reading:
    def mean(name: str) -> float:
        return needed_number(benchmark, source, TOOL, "metrics", name, "successful", "mean")

    if not isinstance(benchmark, Mapping):
        raise ScenarioError(f"{source}: a benchmark is no mapping of config and metrics.")
    kind = next((kind for path in STRATEGY_AT if (kind := name_at(benchmark, *path, "type_"))), "")
    if kind == "throughput":
        return Unusable(source, "its requests were sent as fast as possible, with no steady number at once")
    if not number_at(benchmark, "metrics", "output_token_count", "successful", "mean"):
        return Unusable(source, "none of its requests was answered")
    model = next((model for path in MODEL_AT if (model := name_at(benchmark, *path))), None)
    return point_of(
        source,
        {"model": model or name_at(document, "args", "model")},
        concurrent_requests=max(1.0, mean("request_concurrency")),
        input_tokens=mean("prompt_token_count"),
        output_tokens=mean("output_token_count"),
        tpot_seconds=mean("inter_token_latency_ms") / MILLISECONDS_PER_SECOND,
        ttft_seconds=mean("time_to_first_token_ms") / MILLISECONDS_PER_SECOND,
        output_tokens_per_second=number_at(benchmark, "metrics", "output_tokens_per_second", "successful", "mean"),
    )
