"""SGLang's `bench_serving`: one JSON object per run, each on a line (--output-file).

Keys: python/sglang/bench_serving.py. Older versions without `server_info` state the backend, but not the model; until
2025 they wrote medians alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sheetgen.catalog.base import RawMapping, RawRecord, RawValue
from sheetgen.measured.measured_point import (
    MILLISECONDS_PER_SECOND,
    Reading,
    by_rate,
    deployment_stated,
    name_at,
    needed_number,
    number_at,
    point_of,
    unsteady,
)

TOOL = "SGLang's bench_serving"
OWN_KEYS = ("backend", "dataset_name", "total_output_tokens_retokenized", "output_throughput")
ENGINES = {"sglang": "sglang", "vllm": "vllm", "lmdeploy": "lmdeploy", "trt": "tensorrt-llm"}
SIZES = {"tensor_parallel_size": "tp_size", "data_parallel_size": "dp_size", "pipeline_parallel_size": "pp_size"}


def is_sglang_result(document: RawValue) -> bool:
    return isinstance(document, Mapping) and all(key in document for key in OWN_KEYS)


def sglang_points(document: RawMapping, source: str) -> Iterator[Reading]:
    """The point of one run."""

    def needed(key: str) -> float:
        return needed_number(document, source, TOOL, key)

    completed, duration = needed("completed"), needed("duration")
    prompt, answer = needed("total_input_tokens") / completed, needed("total_output_tokens") / completed
    whole = needed("mean_e2e_latency_ms") / MILLISECONDS_PER_SECOND
    first = number_at(document, "mean_ttft_ms") or needed("median_ttft_ms")
    ttft, tpot = first / MILLISECONDS_PER_SECOND, number_at(document, "mean_tpot_ms")
    at_once, sent = number_at(document, "max_concurrency"), number_at(document, "request_rate")
    if why := unsteady(source, at_once, sent, completed / duration):
        yield why
        return
    if at_once is None or sent is not None:
        at_once = number_at(document, "concurrency") or by_rate(completed / duration, whole)
    yield point_of(
        source,
        {**_server(document), **deployment_stated(document)},
        concurrent_requests=max(1.0, at_once),
        input_tokens=prompt,
        output_tokens=answer,
        tpot_seconds=tpot / MILLISECONDS_PER_SECOND if tpot else (whole - ttft) / max(1, answer - 1),
        ttft_seconds=ttft,
        output_tokens_per_second=number_at(document, "output_throughput"),
    )


def _server(document: RawMapping) -> RawRecord:
    """The deployment that a result states: the engine by its backend, and the server's own information."""
    backend = (name_at(document, "backend") or "").split("-")[0]
    server: RawRecord = {"engine": ENGINES[backend]} if backend in ENGINES else {}
    if model := name_at(document, "server_info", "model_path"):
        server["model"] = model
    sizes = {name: number_at(document, "server_info", key) for name, key in SIZES.items()}
    return server | {name: int(size) for name, size in sizes.items() if size}
