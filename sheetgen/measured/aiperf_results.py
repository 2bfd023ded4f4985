"""AIPerf's summary (profile_export_aiperf.json): the input, and for each metric an object with unit and average.

Keys: aiperf/common/models/export_models.py, which follows GenAI-Perf. Per-request records (profile_export.jsonl) are
not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from sheetgen.catalog.base import RawMapping, RawValue
from sheetgen.errors import ScenarioError, shown
from sheetgen.measured.measured_point import (
    Reading,
    Unusable,
    at_path,
    by_rate,
    name_at,
    needed_number,
    number_at,
    point_of,
)

TOOL = "AIPerf"
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
OWN_METRICS = ("inter_token_latency", "input_sequence_length")  # each a mapping with its unit
MODEL_AT = (
    ("input_config", "tokenizer", "name"), ("input_config", "models", "items", 0, "name"),
    ("input_config", "endpoint", "model_names", 0),
)  # fmt: skip  # the tokenizer's name first: it is a checkpoint, a served name may be anything


def is_aiperf_export(document: RawValue) -> bool:
    return all(isinstance(at_path(document, metric, "unit"), str) for metric in OWN_METRICS)


def aiperf_points(document: RawMapping, source: str) -> Iterator[Reading]:
    """The point of one export."""

    def average(metric: str) -> float:
        return needed_number(document, source, TOOL, metric, "avg")

    def seconds(metric: str) -> float:
        unit = name_at(document, metric, "unit") or ""
        if unit not in SECONDS:
            raise ScenarioError(
                f"{source}: the unit of {metric} is {shown(unit)!r}. It must be one of time, such as ms."
            )
        return average(metric) * SECONDS[unit]

    at_once = number_at(document, "input_config", "loadgen", "concurrency")
    phases = at_path(document, "input_config", "phases")
    for phase in phases if isinstance(phases, list) else ():
        if at_path(phase, "exclude_from_results") is not True:
            at_once = number_at(phase, "concurrency") or at_once
    if at_once is None:
        at_once = by_rate(average("request_throughput"), seconds("request_latency"))
    if at_path(document, "was_cancelled") is True:
        yield Unusable(source, "the run was cancelled")
        return
    yield point_of(
        source,
        {"model": next((name for path in MODEL_AT if (name := name_at(document, *path))), None)},
        concurrent_requests=max(1.0, at_once),
        input_tokens=average("input_sequence_length"),
        output_tokens=average("output_sequence_length"),
        tpot_seconds=seconds("inter_token_latency"),
        ttft_seconds=seconds("time_to_first_token"),
        output_tokens_per_second=number_at(document, "output_token_throughput", "avg"),
    )
